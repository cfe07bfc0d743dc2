"""Signal processing: frames and their overlap, short-time Fourier, cosine and modified cosine transforms, mel spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import elementwise, fourier, indexing, reduce, shape, windows
from gradtape.ops.arguments import integer, integers
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

Window = Callable[..., Tensor]

# Frames and their overlap: two ops whose rules are one another


@op(label="Frame")
def frames(xp, x, *, length, step):
    """Windows of ``length`` of the last axis, ``step`` apart, as a new axis before it."""
    count = max(0, 1 + (xp.shape(x)[-1] - length) // step)
    index = np.arange(count)[:, None] * step + np.arange(length)
    return xp.take(x, index, axis=len(xp.shape(x)) - 1)


@op
def overlap_and_add(xp, x, *, step):
    """Frames (…, count, length) added up where they overlap when each starts ``step`` after the one before."""
    *outer, count, length = xp.shape(x)
    size = length + step * (count - 1) if count else 0
    out = xp.zeros(shape=(*outer, size), dtype=xp.dtype(x))
    rows = tuple([(0, 0)] * len(outer))
    if not count or not length:
        return out + xp.sum(x)  # nothing is added
    for start in range(0, length, step):  # one slice of every frame at a time: those do not overlap
        width = min(step, length - start)
        part = xp.getitem(x, index=(..., slice(start, start + width)))
        part = xp.reshape(xp.pad(part, widths=(*rows, (0, 0), (0, step - width))), shape=(*outer, count * step))
        end = min(start + count * step, size)
        part = xp.getitem(part, index=(..., slice(0, end - start)))
        out = out + xp.pad(part, widths=(*rows, (start, size - end)))
    return out


def _frames_rule(xp, g, *, length, step, x_shape):
    count = max(0, 1 + (x_shape[-1] - length) // step)
    if not count:
        return xp.zeros(shape=x_shape, dtype=xp.dtype(g)) + xp.sum(g)
    rest = x_shape[-1] - (length + step * (count - 1))
    added = overlap_and_add.op.kernel(xp, g, step=step)
    return xp.pad(added, widths=(*[(0, 0)] * (len(x_shape) - 1), (0, rest)))


frames.vjp(_frames_rule)
overlap_and_add.vjp(lambda xp, g, *, step, x_shape: frames.op.kernel(xp, g, length=x_shape[-1], step=step))


def frame(x: Any, length: Any, step: Any, pad_end: bool = False, pad_value: Any = 0, axis: Any = -1) -> Tensor:
    """Windows along an axis: (…, count, length, …) from (…, samples, …)."""
    x = convert_to_tensor(x)
    length, step, ndim = _size(length, "frame_length"), _size(step, "frame_step"), x._array.ndim
    if not ndim:
        text = "Argument signal must have rank at least 1, received a scalar"
        raise ValueError(message(text, received=shown(x), expected="a signal of shape (…, samples)"))
    axis = integer(axis)
    if not -ndim <= axis < ndim:
        text = f"axis {axis} is out of range for a signal of rank {ndim}"
        raise ValueError(message(text, received=f"axis={axis}", expected=f"an axis from {-ndim} to {ndim - 1}"))
    axis %= ndim
    if pad_end:
        samples = x._array.shape[axis]
        missing = max(0, length + step * (-(-samples // step) - 1) - samples)
        value = np.asarray(convert_to_tensor(pad_value, x.dtype)).item()
        x = shape.pad(x, widths=tuple((0, missing if i == axis else 0) for i in range(ndim)), value=value)
    if axis != ndim - 1:
        order = (*range(axis), *range(axis + 1, ndim), axis)
        back = (*range(axis), ndim - 1, ndim, *range(axis, ndim - 1))
        return shape.transpose(frames(shape.transpose(x, axes=order), length=length, step=step), axes=back)
    return frames(x, length=length, step=step)


def _size(value: Any, name: str) -> int:
    array = np.asarray(convert_to_tensor(value))
    if array.ndim:
        text = f"{name} must be a scalar, received shape {array.shape}"
        raise ValueError(message(text, received=f"{name}={shown(value)}", expected="one integer"))
    if array.dtype.kind not in "iu" or array <= 0:
        raise InvalidArgumentError(message(f"{name} must be a positive integer", received=f"{array}", expected="1 or more"))
    return int(array)


def add_overlapping(x: Any, step: Any) -> Tensor:
    """`overlap_and_add` with its arguments checked."""
    x = convert_to_tensor(x)
    if x._array.ndim < 2:
        text = f"Shape {dims(x._array.shape)} must have rank at least 2"
        raise ValueError(message(text, received=f"shape {x._array.shape}", expected="(…, frames, frame_length)"))
    count = np.asarray(convert_to_tensor(step))
    if count.dtype.kind not in "iu":
        text = f"frame_step must be an integer. Got {dtypes.of(count.dtype)!r}"
        raise ValueError(message(text, received=f"frame_step={shown(step)}", fix="int(frame_step)"))
    return overlap_and_add(x, step=_size(step, "frame_step"))


# Short-time Fourier transform


def _power_of_two(length: int) -> int:
    return 1 << max(length - 1, 0).bit_length()


def stft(
    x: Any, length: Any, step: Any, fft_length: Any = None, window: Window | None = windows.hann, pad_end: bool = False
) -> Tensor:
    """The spectra of windowed frames: (…, frames, fft_length // 2 + 1)."""
    x = convert_to_tensor(x)
    if not x._array.ndim:
        text = "Argument signals must have rank at least 1, received a scalar"
        raise ValueError(message(text, received=shown(x), expected="signals of shape (…, samples)"))
    size = _size(length, "frame_length")
    framed = _windowed(frame(x, size, step, pad_end), size, window)
    return fourier.last_axes("rfft", framed, 1, [_power_of_two(size) if fft_length is None else integer(fft_length)])


def _windowed(x: Tensor, length: int, window: Window | None) -> Tensor:
    return x if window is None else elementwise.multiply(x, window(length, dtype=x.dtype))


def inverse_stft(
    x: Any, length: Any, step: Any, fft_length: Any = None, window: Window | None = windows.hann
) -> Tensor:
    """Frames from their spectra, windowed and added up where they overlap."""
    x = convert_to_tensor(x)
    if x._array.ndim < 2:
        text = f"Shape {dims(x._array.shape)} must have rank at least 2"
        raise ValueError(
            message(text, received=f"shape {x._array.shape}", expected="(…, frames, bins), as tf.signal.stft gives it")
        )
    size = _size(length, "frame_length")
    points = _power_of_two(size) if fft_length is None else integer(fft_length)
    real = fourier.resize(fourier.last_axes("irfft", x, 1, [points]), -1, size)
    return add_overlapping(_windowed(real, size, window), step)


def inverse_window(step: Any, forward: Window = windows.hann) -> Window:
    """The window with which `inverse_stft` undoes `stft` with the window ``forward``: that divided by its squares' overlap."""

    def window(length: Any, dtype: Any) -> Tensor:
        size, hop = _size(length, "frame_length"), _size(step, "frame_step")
        values = forward(size, dtype=dtype)
        count = -(-size // hop)
        squares = fourier.resize(elementwise.multiply(values, values), 0, count * hop)
        total = reduce.sum(shape.reshape(squares, shape=(count, hop)), axis=0)
        spread = fourier.resize(shape.tile(total, repeats=(count,)), 0, size)
        return elementwise.divide(values, spread)

    return window


# Cosine transforms


def dct(x: Any, kind: int = 2, n: Any = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The cosine transform of type 1, 2, 3 or 4 of the last axis; ``ortho`` makes types 2 to 4 orthogonal."""
    x = convert_to_tensor(x)
    _check_dct(x, kind, n, axis, norm)
    if n is not None:
        x = fourier.resize(x, -1, int(n))
    size = x._array.shape[-1]
    if kind == 1:
        mirrored = indexing.getitem(x, index=(..., slice(-2, 0, -1)))
        return elementwise.real(fourier.rfft(shape.concatenate(x, mirrored, axis=-1), axis=-1))
    if kind == 4:
        odd = indexing.getitem(dct(x, 2, 2 * size), index=(..., slice(1, None, 2)))
        return elementwise.multiply(odd, np.sqrt(0.5 / size).item()) if norm else odd
    return _dct2(x, size, norm) if kind == 2 else _dct3(x, size, norm)


def _check_dct(x: Tensor, kind: int, n: Any, axis: int, norm: str | None) -> None:
    if axis != -1:
        text = f"axis must be -1. Got: {axis}"
        raise NotImplementedError(
            message(text, received=f"axis={axis}", fix="tf.experimental.numpy.moveaxis puts another axis last")
        )
    if n is not None and n < 1:
        text = "n should be a positive integer or None"
        raise ValueError(message(text, received=f"n={n}", expected="the length to cut or pad to: 1 or more"))
    if kind not in (1, 2, 3, 4):
        text = "Types I, II, III and IV (I)DCT are supported."
        raise ValueError(message(text, received=f"type={kind}", expected="1, 2, 3 or 4"))
    if norm not in (None, "ortho"):
        text = f"Unknown normalization. Expected None or 'ortho', got: {norm}"
        raise ValueError(message(text, received=f"norm={norm!r}", expected="None or 'ortho'"))
    if kind == 1 and norm == "ortho":
        text = "Normalization is not supported for the Type-I DCT."
        raise ValueError(message(text, received="type=1, norm='ortho'", fix="norm=None, or another type"))
    if not x._array.ndim or (kind == 1 and (n or x._array.shape[-1]) < 2):
        text = "Type-I DCT requires the dimension to be greater than one."
        raise ValueError(
            message(text, received=f"shape {x._array.shape}, n={n}", expected="2 or more samples along the last axis")
        )
    if x.dtype not in (dtypes.float32, dtypes.float64):
        text = f"dct requires tf.float32 or tf.float64 inputs, got: {x.dtype!r}"
        raise ValueError(message(text, fix="tf.cast(input, tf.float32)"))


def _turns(size: int, sign: int, dtype: dtypes.DType) -> Tensor:
    """exp(± iπk / 2n) for k < n."""
    half = np.exp(sign * 0.5j * np.pi * np.arange(size) / size)
    return wrap(half.astype(np.complex64 if dtype is dtypes.float32 else np.complex128))


def _ortho(size: int, first: float, dtype: dtypes.DType) -> np.ndarray:
    weights = np.full(size, np.sqrt(0.5 / size))
    weights[:1] *= first
    return weights.astype(dtype.numpy)


def _dct2(x: Tensor, size: int, norm: str | None) -> Tensor:
    """2 Σ_j x_j cos(π k (2j + 1) / 2n)"""
    spectrum = fourier.resize(fourier.rfft(fourier.resize(x, -1, 2 * size), axis=-1), -1, size)
    out = elementwise.multiply(elementwise.real(elementwise.multiply(spectrum, _turns(size, -1, x.dtype))), 2.0)
    return elementwise.multiply(out, _ortho(size, np.sqrt(0.5), x.dtype)) if norm else out


def _dct3(x: Tensor, size: int, norm: str | None) -> Tensor:
    """x_0 + 2 Σ_{j>0} x_j cos(π j (2k + 1) / 2n)"""
    if norm:
        x = elementwise.multiply(x, _ortho(size, np.sqrt(2.0), x.dtype))
    turns = _turns(size, 1, x.dtype)
    spectrum = elementwise.multiply(elementwise.astype(x, dtype=turns.dtype.numpy), turns)
    signal = fourier.irfft(fourier.resize(spectrum, -1, size + 1), axis=-1, n=2 * size)
    return elementwise.multiply(fourier.resize(signal, -1, size), 2.0 * size)


_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def idct(x: Any, kind: int = 2, n: Any = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse cosine transform: the transform of type 1, 3, 2 or 4, scaled only with ``ortho``."""
    return dct(x, _INVERSE.get(kind, kind), n, axis, norm)


def mdct(x: Any, length: Any, window: Window | None = windows.vorbis, pad_end: bool = False, norm: str | None = None) -> Tensor:
    """The modified cosine transform: frames that overlap by half, folded (a, b, c, d) → (-cᵣ - d, a - bᵣ), type 4."""
    x = convert_to_tensor(x)
    if not x._array.ndim:
        text = "Argument signals must have rank at least 1, received a scalar"
        raise ValueError(message(text, received=shown(x), expected="signals of shape (…, samples)"))
    size = _size(length, "frame_length")
    if size % 4:
        text = f"The frame length must be a multiple of 4. Got: {size}"
        raise ValueError(message(text, received=f"frame_length={size}", fix=f"{size - size % 4 or 4} or {size + 4 - size % 4}"))
    framed = frame(x, size, size // 2, pad_end)
    framed = _windowed(framed, size, window) if window else elementwise.multiply(framed, np.sqrt(0.5).item())
    a, b, c, d = (indexing.getitem(framed, index=(..., slice(i * size // 4, (i + 1) * size // 4))) for i in range(4))
    left = elementwise.subtract(elementwise.negative(_reversed(c)), d)
    return dct(shape.concatenate(left, elementwise.subtract(a, _reversed(b)), axis=-1), 4, norm=norm)


def inverse_mdct(x: Any, window: Window | None = windows.vorbis, norm: str | None = None) -> Tensor:
    """Frames unfolded from their transforms (p, q) → (q, -qᵣ, -pᵣ, -p), windowed and added up where they overlap."""
    x = convert_to_tensor(x)
    if x._array.ndim < 2:
        text = f"Shape {dims(x._array.shape)} must have rank at least 2"
        raise ValueError(
            message(text, received=f"shape {x._array.shape}", expected="(…, frames, bins), as tf.signal.mdct gives it")
        )
    half = x._array.shape[-1]
    folded = idct(x, 4, norm=norm)
    if norm is None:
        folded = elementwise.multiply(folded, 0.5 / half)
    p, q = (indexing.getitem(folded, index=(..., part)) for part in (slice(half // 2), slice(half // 2, None)))
    parts = (q, elementwise.negative(_reversed(q)), elementwise.negative(_reversed(p)), elementwise.negative(p))
    real = shape.concatenate(*parts, axis=-1)
    real = _windowed(real, 2 * half, window) if window else elementwise.multiply(real, np.sqrt(0.5).item())
    return overlap_and_add(real, step=half)


def _reversed(x: Tensor) -> Tensor:
    return shape.flip(x, axis=(-1,))


# Order of frequencies


def shifted(x: Any, axes: Any, forward: bool) -> Tensor:
    """Frequency 0 moved to the middle of each axis, or back."""
    x = convert_to_tensor(x)
    places = tuple(range(x._array.ndim)) if axes is None else integers(axes)
    middles = [x._array.shape[axis] // 2 for axis in places]
    steps = tuple(n if forward else -n for n in middles)
    return shape.roll(x, shift=steps, axis=places)


# Mel spectra


def _mel(hertz: Any) -> Any:
    return 1127 * np.log1p(np.asarray(hertz, np.float64) / 700)


def mel_matrix(
    num_mel_bins: int = 20, num_spectrogram_bins: int = 129, sample_rate: Any = 8000, lower: float = 125.0,
    upper: float = 3800.0, dtype: Any = dtypes.float32,
) -> Tensor:  # fmt: skip
    """Triangles on the mel scale, 1127 log(1 + f / 700), as a matrix (spectrogram bins, mel bins); frequency 0 has none."""
    rate = float(np.asarray(convert_to_tensor(sample_rate)))
    if num_mel_bins <= 0:
        text = f"num_mel_bins must be positive. Got: {num_mel_bins}"
        raise ValueError(message(text, received=f"num_mel_bins={num_mel_bins}", expected="1 or more"))
    if lower < 0:
        text = f"lower_edge_hertz must be non-negative. Got: {lower}"
        raise ValueError(message(text, received=f"lower_edge_hertz={lower}", expected="0 or more"))
    if lower >= upper:
        raise ValueError(
            message(
                f"lower_edge_hertz {lower:.1f} >= upper_edge_hertz {upper:.1f}",
                received=f"lower_edge_hertz={lower}, upper_edge_hertz={upper}",
                expected="the lower edge below the upper",
            )
        )
    if rate <= 0:
        text = f"sample_rate must be positive. Got: {rate}"
        raise ValueError(message(text, received=f"sample_rate={rate}", expected="samples per second, more than 0"))
    if upper > rate / 2:
        text = f"upper_edge_hertz must not be larger than the Nyquist frequency {rate / 2}. Got {upper}"
        raise ValueError(
            message(text, received=f"upper_edge_hertz={upper}, sample_rate={rate}", fix=f"upper_edge_hertz={rate / 2}")
        )
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        text = f"dtype must be a floating point type. Got: {kind!r}"
        raise ValueError(message(text, received=f"dtype={kind!r}", expected="tf.float32 or tf.float64"))
    edges = np.linspace(_mel(lower), _mel(upper), int(num_mel_bins) + 2)
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    mels = _mel(np.linspace(0, rate / 2, int(num_spectrogram_bins))[1:])[:, None]
    rising, falling = (mels - low) / (centre - low), (high - mels) / (high - centre)
    weights = np.maximum(0, np.minimum(rising, falling))
    return wrap(np.pad(weights, [(1, 0), (0, 0)]).astype(kind.numpy))


def mfccs(x: Any) -> Tensor:
    """Cepstral coefficients of log-mel spectra: the cosine transform of type 2 times 1 / √(2 bins)."""
    x = convert_to_tensor(x)
    bins = x._array.shape[-1] if x._array.ndim else 0
    if not bins:
        text = f"num_mel_bins must be positive. Got: log_mel_spectrograms of shape {x._array.shape}"
        raise ValueError(message(text, received=f"shape {x._array.shape}", expected="(…, bins) with 1 bin or more"))
    return elementwise.multiply(dct(x, 2), (2 * bins) ** -0.5)
