"""`tf.signal`: TensorFlow's names and arguments for Fourier transforms, windows and spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.ops import fourier as _fourier
from gradtape.ops import signal as _signal
from gradtape.ops import windows as _windows
from gradtape.scope import missing
from gradtape.values.dtypes import float32
from gradtape.values.tensor import Tensor

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftnd", "fftshift", "frame", "hamming_window", "hann_window", "idct", "ifft", "ifft2d",
    "ifft3d", "ifftnd", "ifftshift", "inverse_mdct", "inverse_stft", "inverse_stft_window_fn", "irfft", "irfft2d", "irfft3d",
    "irfftnd", "kaiser_bessel_derived_window", "kaiser_window", "linear_to_mel_weight_matrix", "mdct",
    "mfccs_from_log_mel_spectrograms", "overlap_and_add", "rfft", "rfft2d", "rfft3d", "rfftnd", "stft", "vorbis_window",
]  # fmt: skip


def _complex_transform(kind: str, rank: int) -> Callable[..., Tensor]:
    def call(input: Any, name: str | None = None) -> Tensor:
        return _fourier.last_axes(kind, input, rank)

    return _named(call, kind, rank)


def _real_transform(kind: str, rank: int) -> Callable[..., Tensor]:
    def call(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        return _fourier.last_axes(kind, input_tensor, rank, fft_length)

    return _named(call, kind, rank)


def _transform_over_axes(kind: str) -> Callable[..., Tensor]:
    def call(
        input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
    ) -> Tensor:
        return _fourier.over_axes(kind, input_tensor, fft_length, axes, norm)

    call.__name__ = call.__qualname__ = f"{kind}nd"
    call.__doc__ = f"`{kind}` over the given axes."
    return call


def _named(call: Callable[..., Tensor], kind: str, rank: int) -> Callable[..., Tensor]:
    call.__name__ = call.__qualname__ = kind if rank == 1 else f"{kind}{rank}d"
    call.__doc__ = f"The {'inverse ' if kind[0] == 'i' else ''}discrete Fourier transform over the last {rank} axes."
    return call


fft, fft2d, fft3d = (_complex_transform("fft", rank) for rank in (1, 2, 3))
ifft, ifft2d, ifft3d = (_complex_transform("ifft", rank) for rank in (1, 2, 3))
rfft, rfft2d, rfft3d = (_real_transform("rfft", rank) for rank in (1, 2, 3))
irfft, irfft2d, irfft3d = (_real_transform("irfft", rank) for rank in (1, 2, 3))
fftnd, ifftnd, rfftnd, irfftnd = map(_transform_over_axes, ("fft", "ifft", "rfft", "irfft"))


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Frequency 0 moved from the first place to the middle."""
    return _signal.shifted(x, axes, forward=True)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Frequency 0 moved from the middle to the first place."""
    return _signal.shifted(x, axes, forward=False)


def hann_window(window_length: Any, periodic: Any = True, dtype: Any = float32, name: str | None = None) -> Tensor:
    """½ - ½ cos(2πk/n)."""
    return _windows.hann(window_length, periodic, dtype)


def hamming_window(window_length: Any, periodic: Any = True, dtype: Any = float32, name: str | None = None) -> Tensor:
    """0.54 - 0.46 cos(2πk/n)."""
    return _windows.hamming(window_length, periodic, dtype)


def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = float32, name: str | None = None) -> Tensor:
    """I₀(β √(1 - x²)) / I₀(β)."""
    return _windows.kaiser(window_length, beta, dtype)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """A window whose squares, half its length apart, add up to 1."""
    return _windows.kaiser_bessel_derived(window_length, beta, dtype)


def vorbis_window(window_length: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """sin(½π sin²(π (k + ½) / n))."""
    return _windows.vorbis(window_length, dtype)


def frame(
    signal: Any, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0, axis: Any = -1,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Windows of frame_length samples, frame_step apart."""
    return _signal.frame(signal, frame_length, frame_step, pad_end, pad_value, axis)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """A signal from frames (…, count, length), added up where they overlap."""
    return _signal.add_overlapping(signal, frame_step)


def stft(
    signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = None, window_fn: Any = hann_window,
    pad_end: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The short-time Fourier transform (…, frames, fft_length // 2 + 1)."""
    return _signal.stft(signals, frame_length, frame_step, fft_length, window_fn, pad_end)


def inverse_stft(
    stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None, window_fn: Any = hann_window,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The signal of a short-time Fourier transform; for exact inversion with `inverse_stft_window_fn`."""
    return _signal.inverse_stft(stfts, frame_length, frame_step, fft_length, window_fn)


def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Any = hann_window, name: str | None = None) -> Any:
    """The window function with which `inverse_stft` undoes `stft`."""
    return _signal.inverse_window(frame_step, forward_window_fn)


def dct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The discrete cosine transform of the last axis."""
    return _signal.dct(input, type, n, axis, norm)


def idct(
    input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The inverse discrete cosine transform of the last axis."""
    return _signal.idct(input, type, n, axis, norm)


def mdct(
    signals: Any, frame_length: Any, window_fn: Any = vorbis_window, pad_end: bool = False, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The modified discrete cosine transform of frames that overlap by half."""
    return _signal.mdct(signals, frame_length, window_fn, pad_end, norm)


def inverse_mdct(mdcts: Any, window_fn: Any = vorbis_window, norm: str | None = None, name: str | None = None) -> Tensor:
    """The signal of a modified discrete cosine transform."""
    return _signal.inverse_mdct(mdcts, window_fn, norm)


def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20, num_spectrogram_bins: Any = 129, sample_rate: Any = 8000, lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0, dtype: Any = float32, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The matrix that takes linear spectra to mel spectra: tf.matmul(spectra, matrix)."""
    return _signal.mel_matrix(
        num_mel_bins, num_spectrogram_bins, sample_rate, lower_edge_hertz, upper_edge_hertz, dtype
    )


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients."""
    return _signal.mfccs(log_mel_spectrograms)

__getattr__ = missing(__name__, __all__)
