"""`tf.signal`: transforms against NumPy and SciPy, inverses, several axes, derivatives, errors."""

import numpy as np
import pytest
import scipy.fft
import scipy.signal
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape import signal
from gradtape.testing import check_gradients

lengths = st.integers(1, 9)


def values(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=shape))


def complexes(*shape):
    return tf.complex(values(*shape), values(*shape, seed=1))


# Fourier transforms


@given(lengths, lengths, st.integers(1, 12), st.integers(1, 12))
def test_transforms_are_numpy_s(rows, columns, first, second):
    z, x = complexes(2, rows, columns), values(2, rows, columns)
    for ours, theirs in [
        (signal.fft(z), np.fft.fft(z.numpy())),
        (signal.ifft2d(z), np.fft.ifft2(z.numpy())),
        (signal.fft3d(z), np.fft.fftn(z.numpy())),
        (signal.rfft(x, [second]), np.fft.rfft(x.numpy(), second)),
        (signal.rfft2d(x, [first, second]), np.fft.rfft2(x.numpy(), (first, second))),
        (signal.irfft(z, [second]), np.fft.irfft(z.numpy(), second)),
        (signal.irfft2d(z, [first, second]), np.fft.irfft2(z.numpy(), (first, second))),
        (signal.fftshift(x), np.fft.fftshift(x.numpy())), (signal.ifftshift(x, 1), np.fft.ifftshift(x.numpy(), 1)),
    ]:  # fmt: skip
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("axes", [[0, 2], [1], [-1, 0], None])
def test_transforms_over_any_axes(axes, norm):
    z, x = complexes(3, 4, 5), values(3, 4, 5)
    every = axes or [0, 1, 2]
    for ours, theirs, argument in [
        (signal.fftnd, np.fft.fftn, z), (signal.ifftnd, np.fft.ifftn, z), (signal.rfftnd, np.fft.rfftn, x),
        (signal.irfftnd, np.fft.irfftn, z),
    ]:  # fmt: skip
        expected = theirs(argument.numpy(), axes=every, norm=norm)
        np.testing.assert_allclose(ours(argument, axes=axes, norm=norm).numpy(), expected, rtol=1e-12, atol=1e-12)
    sizes = [2, 6, 3][: len(every)]
    expected = np.fft.rfftn(x.numpy(), sizes, axes=every)
    np.testing.assert_allclose(signal.rfftnd(x, sizes, axes).numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: signal.fftnd(complexes(2), axes=[1]), tf.errors.InvalidArgumentError, "Axes must be unique and in range"),
        (lambda: signal.fftnd(complexes(2, 2), axes=[0, -2]), tf.errors.InvalidArgumentError, "Axes must be unique"),
        (lambda: signal.fftnd(complexes(2), norm="x"), ValueError, "Invalid norm"),
        (lambda: signal.rfft([1.0], [-1]), tf.errors.InvalidArgumentError, r"fft_length\[0\] must >= 0"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_stays(dtype):
    x = tf.cast(values(8), dtype)
    spectrum = signal.rfft(x)
    assert spectrum.dtype == {"float32": "complex64", "float64": "complex128"}[dtype]
    assert signal.irfft(spectrum).dtype == signal.dct(x).dtype == signal.inverse_stft(signal.stft(x, 4, 2), 4, 2).dtype == dtype


def test_nothing_transforms_to_nothing():
    assert signal.fft(np.zeros((0, 3), complex)).shape == (0, 3)
    assert signal.rfft(np.zeros((2, 0))).shape == (2, 0)
    assert signal.rfft(np.zeros((2, 0)), [4]).numpy().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert signal.irfft(np.zeros((2, 1), complex)).shape == (2, 0)


# Derivatives


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.abs(signal.rfft2d(x)) ** 2,
        lambda x: tf.abs(signal.rfft(x, [3])) ** 2,
        lambda x: signal.irfft(signal.rfft(x, [7]), [5]) ** 3,
        lambda x: tf.math.real(signal.fft2d(tf.complex(x, x**2))),
        lambda x: tf.abs(signal.stft(x, 4, 1, fft_length=5)) ** 2,
        lambda x: signal.inverse_stft(signal.stft(x, 4, 2), 4, 2) ** 2,
        lambda x: signal.mdct(x, 4) ** 2,
        lambda x: signal.frame(x, 2, 1, axis=0) ** 2,
        lambda x: signal.mfccs_from_log_mel_spectrograms(x) ** 2,
        *(lambda x, kind=kind: signal.dct(x, kind, n=4) ** 3 for kind in (1, 2, 3, 4)),
    ],
)
def test_gradients_of_second_order(function):
    check_gradients(function, (values(3, 6).numpy(),), order=2)


# Windows, frames and inverses


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_windows_are_scipy_s(length):
    windows = scipy.signal.windows
    for ours, theirs in [
        (signal.hann_window(length, False, tf.float64), windows.hann(length)),
        (signal.hamming_window(length, False, tf.float64), windows.hamming(length)),
        (signal.kaiser_window(length, 5.0, tf.float64), windows.kaiser(length, 5.0)),
    ]:
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-14)
    if length % 2 == 0:
        derived = windows.kaiser_bessel_derived(length, 5.0)
        np.testing.assert_allclose(signal.kaiser_bessel_derived_window(length, 5.0, tf.float64).numpy(), derived, atol=1e-14)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 6))
def test_overlap_and_add_is_the_transpose_of_frame(length, step, count):
    size = length + step * (count - 1)
    x, frames = values(size).numpy(), values(count, length, seed=1).numpy()
    left = float(np.sum(signal.frame(x, length, step).numpy() * frames))
    right = float(np.sum(signal.overlap_and_add(frames, step).numpy() * x))
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)


@given(st.sampled_from([(8, 4), (8, 2), (6, 3), (9, 3)]), st.integers(3, 6))
def test_the_inverse_transform_undoes_the_transform(sizes, count):
    length, step = sizes
    x = values(length + step * (count - 1)).numpy()
    forward = signal.stft(x, length, step, window_fn=signal.hamming_window)
    window = signal.inverse_stft_window_fn(step, signal.hamming_window)
    back = signal.inverse_stft(forward, length, step, window_fn=window).numpy()
    inner = slice(length, len(x) - length)
    np.testing.assert_allclose(back[inner], x[inner], atol=1e-12)


@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms(norm):
    x = values(2, 6)
    for kind in (2, 3, 4) if norm else (1, 2, 3, 4):
        expected = scipy.fft.dct(x.numpy(), kind, norm=norm)
        np.testing.assert_allclose(signal.dct(x, kind, norm=norm).numpy(), expected, atol=1e-12)
        if norm:
            np.testing.assert_allclose(signal.idct(signal.dct(x, kind, norm=norm), kind, norm=norm).numpy(), x, atol=1e-12)
    folded = signal.mdct(values(24), 8, norm=norm)
    np.testing.assert_allclose(signal.inverse_mdct(folded, norm=norm).numpy()[4:-4], values(24)[4:-4], atol=1e-12)


def test_mel_bands_overlap_to_one():
    weights = signal.linear_to_mel_weight_matrix(10, 257, 16000, 60.0, 7000.0, tf.float64).numpy()
    frequencies = np.linspace(0, 8000, 257)
    edges = 700 * np.expm1(np.linspace(*(1127 * np.log1p(np.array([60.0, 7000.0]) / 700)), 12) / 1127)
    inside = (frequencies > edges[1]) & (frequencies < edges[-2])
    np.testing.assert_allclose(weights[inside].sum(axis=1), 1, atol=1e-12)
    assert not weights[0].any()
