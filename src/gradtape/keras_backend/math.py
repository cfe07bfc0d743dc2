"""Keras's mathematical functions: segments, largest elements, distances, spectra, error functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.core import convert_to_tensor
from gradtape.keras_backend.numpy_promotion import floating, floating_unary, together
from gradtape.ops import arrays, decompositions, elementwise, fourier, indexing, reduce, segments, signal, statistics, windows
from gradtape.ops import shape as shapes
from gradtape.values.tensor import Tensor, wrap

rsqrt = floating_unary(elementwise.rsqrt)
erf = floating_unary(elementwise.erf)
erfc = floating_unary(elementwise.erfc)
erfinv = floating_unary(elementwise.erfinv)


# Segments


def _segments(kind: str, reduction: Callable) -> Callable:
    def call(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Tensor:
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        if num_segments is None:
            num_segments = _number_of_segments(ids)
        return reduction(data, ids, num_segments)

    call.__name__ = f"segment_{kind}"
    call.__doc__ = f"The {kind} of the rows of each segment, in any order."
    return call


def _extreme(kind: str, op: Callable, infinity: float) -> Callable:
    """A segment without rows is infinite, or as far as integers go."""

    def reduction(x: Tensor, ids: Tensor, count: int) -> Tensor:
        limit = x.dtype.min if infinity < 0 else x.dtype.max
        return op(x, ids, count=count, empty=infinity if x.dtype.is_floating else limit)

    return segments.unsorted_segments(f"UnsortedSegment{kind.capitalize()}", reduction)


def _number_of_segments(ids: Tensor) -> int:
    known = np.asarray(ids)
    return int(known.max()) + 1 if known.size else 0


segment_sum = _segments("sum", segments.UNSORTED["sum"])
segment_prod = _segments("prod", segments.UNSORTED["prod"])
segment_max = _segments("max", _extreme("max", segments.segment_max, -np.inf))
segment_min = _segments("min", _extreme("min", segments.segment_min, np.inf))


# Order


def top_k(x: Any, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest elements of every row, largest first, and their places."""
    return statistics.top_k(convert_to_tensor(x), k, "int32")


def in_top_k(targets: Any, predictions: Any, k: int) -> Tensor:
    """Whether fewer than k predictions of a row exceed the target's; never where that is nan, or there is no such class."""
    targets, predictions = convert_to_tensor(targets), floating(predictions)
    classes = predictions._array.shape[-1]
    inside = elementwise.logical_and(elementwise.greater_equal(targets, 0), elementwise.less(targets, classes))
    index = elementwise.where(inside, targets, elementwise.zeros_like(targets))
    at_target = indexing.take_along_axis(predictions, shapes.expand_dims(index, axis=-1), axis=-1)
    above = elementwise.cast(elementwise.greater(predictions, at_target), "int32")
    known = elementwise.logical_and(inside, elementwise.logical_not(elementwise.isnan(shapes.squeeze(at_target, axis=-1))))
    return elementwise.logical_and(known, elementwise.less(reduce.sum(above, axis=-1), k))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log Σ eˣ, without overflow."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    return reduce.logsumexp(floating(x), axis=axis, keepdims=keepdims)


def cdist(x: Any, y: Any) -> Tensor:
    """The distances between the rows of x and those of y; equal rows have the gradient 0."""
    x, y = together(x, y, also=(float,))
    if min(x._array.ndim, y._array.ndim) < 2:
        raise ValueError(message("`cdist` inputs must have rank >= 2", received=f"shapes {x.shape} and {y.shape}"))
    if x._array.shape[-1] != y._array.shape[-1]:
        text = "Last dimension of inputs to `cdist` must match"
        raise ValueError(message(text, received=f"shapes {x.shape} and {y.shape}"))
    difference = shapes.expand_dims(x, axis=-2) - shapes.expand_dims(y, axis=-3)
    square = reduce.sum(elementwise.square(difference), axis=-1)
    apart = elementwise.greater(square, 0)
    root = elementwise.sqrt(elementwise.where(apart, square, elementwise.ones_like(square)))
    return elementwise.where(apart, root, elementwise.zeros_like(square))


# Fourier transforms: complex numbers are pairs of real tensors


def _get_complex_tensor_from_tuple(x: Any) -> Tensor:
    """The complex tensor of its two parts; Keras itself calls this, too."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        text = f"Input `x` should be a tuple of two tensors - real and imaginary. Received: x={x}"
        raise ValueError(message(text, expected="(real, imaginary)"))
    real, imaginary = (convert_to_tensor(part) for part in x)
    if real._array.shape != imaginary._array.shape:
        text = (
            "Input `x` should be a tuple of two tensors - real and imaginary. "
            "Both the real and imaginary parts should have the same shape. "
            f"Received: x[0].shape = {tuple(real.shape)}, x[1].shape = {tuple(imaginary.shape)}"
        )
        raise ValueError(message(text, expected="two tensors of one shape"))
    if not real.dtype.is_floating or not imaginary.dtype.is_floating:
        text = f"At least one tensor in input `x` is not of type float. Received: x={x}."
        raise ValueError(message(text, received=f"{real.dtype.name} and {imaginary.dtype.name}", expected="floating dtypes"))
    return elementwise.complex(real, imaginary)


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    return elementwise.real(x), elementwise.imag(x)


def fft(x: Any) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform over the last axis."""
    return _parts(fourier.last_axes("fft", _get_complex_tensor_from_tuple(x), 1))


def fft2(x: Any) -> tuple[Tensor, Tensor]:
    """The discrete Fourier transform over the last two axes."""
    return _parts(fourier.last_axes("fft", _get_complex_tensor_from_tuple(x), 2))


def ifft2(x: Any) -> tuple[Tensor, Tensor]:
    """The inverse of `fft2`."""
    return _parts(fourier.last_axes("ifft", _get_complex_tensor_from_tuple(x), 2))


def rfft(x: Any, fft_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The half of the spectrum of a real signal that determines the rest."""
    return _parts(fourier.last_axes("rfft", floating(x), 1, _lengths(fft_length)))


def irfft(x: Any, fft_length: int | None = None) -> Tensor:
    """The real signal of half a spectrum."""
    return fourier.last_axes("irfft", _get_complex_tensor_from_tuple(x), 1, _lengths(fft_length))


def _lengths(fft_length: int | None) -> list[int] | None:
    return None if fft_length is None else [fft_length]


# Sequences cut out of a signal, and their spectra


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Tensor:
    """Windows of the last axis, each ``sequence_stride`` after the one before."""
    return signal.frame(convert_to_tensor(x), sequence_length, sequence_stride)


_COSINE_SHARE = {"hann": 0.5, "hamming": 0.46}


def _window(window: Any, length: int, fft_length: int, dtype: Any) -> Tensor:
    """The window, periodic if it is named, in the middle of ``fft_length`` places."""
    if window is None:
        return wrap(np.ones(fft_length, dtype.as_numpy_dtype))
    if isinstance(window, str):
        share = _COSINE_SHARE.get(window)
        if share is None:
            text = 'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
            raise ValueError(message(f"{text}Received: window={window}", expected="'hann' or 'hamming'"))
        window = windows.raised_cosine(length, True, dtype, 1 - share, share)  # of odd lengths TensorFlow's are symmetric
    values = convert_to_tensor(window, dtype)
    if values._array.shape != (length,):
        text = f"The shape of `window` must be equal to [sequence_length]. Received: window shape={tuple(values.shape)}"
        raise ValueError(message(text, expected=f"shape ({length},)"))
    before = (fft_length - length) // 2
    return shapes.pad(values, widths=((before, fft_length - length - before),))


def stft(
    x: Any, sequence_length: int, sequence_stride: int, fft_length: int, window: Any = "hann", center: bool = True
) -> tuple[Tensor, Tensor]:
    """The spectra of windowed sequences, (…, sequences, fft_length // 2 + 1); ``center`` mirrors the signal at its ends."""
    x = convert_to_tensor(x)
    if x.dtype.name not in ("float32", "float64"):
        text = f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype.name}"
        raise TypeError(message(text, fix="ops.cast(x, 'float32')"))
    if fft_length < sequence_length:
        text = (
            "`fft_length` must equal or larger than `sequence_length`. "
            f"Received: sequence_length={sequence_length}, fft_length={fft_length}"
        )
        raise ValueError(message(text, expected=f"fft_length of {sequence_length} or more"))
    values = _window(window, sequence_length, fft_length, x.dtype)
    if center:
        half = fft_length // 2
        x = arrays.pad(x, [[0, 0]] * (x._array.ndim - 1) + [[half, half]], "REFLECT")
    framed = signal.frame(x, fft_length, sequence_stride)
    return _parts(fourier.last_axes("rfft", elementwise.multiply(framed, values), 1))


def istft(
    x: Any, sequence_length: int, sequence_stride: int, fft_length: int, length: int | None = None, window: Any = "hann",
    center: bool = True,
) -> Tensor:  # fmt: skip
    """The signal of its spectra: sequences, windowed so that the windows of both ways make 1, added up."""
    spectra = _get_complex_tensor_from_tuple(x)
    if spectra._array.ndim < 2:
        text = f"Input `x` must have at least 2 dimensions. Received shape: {tuple(spectra.shape)}"
        raise ValueError(message(text, expected="(…, sequences, fft_length // 2 + 1)"))
    sequences = fourier.last_axes("irfft", spectra, 1, [fft_length])
    if window is not None:
        values = _window(window, sequence_length, fft_length, sequences.dtype)
        sequences = elementwise.multiply(sequences, _inverse_window(values, sequence_stride))
    found = signal.add_overlapping(sequences, sequence_stride)
    start = fft_length // 2 if center else 0
    end = found._array.shape[-1] - start if length is None else start + length
    return indexing.getitem(found, index=(..., slice(start, end)))


def _inverse_window(values: Tensor, stride: int) -> Tensor:
    """The window divided by what the squares of all that overlap there add up to; 0 where that is 0."""
    length = values._array.shape[0]
    count = -(-length // stride)
    squares = fourier.resize(elementwise.square(values), 0, count * stride)
    total = reduce.sum(shapes.reshape(squares, shape=(count, stride)), axis=0)
    total = elementwise.where(elementwise.greater(total, 1e-10), total, elementwise.ones_like(total))
    return elementwise.divide(values, fourier.resize(arrays.tile(total, (count,)), 0, length))


def logdet(x: Any) -> Tensor:
    """log |det x|."""
    return decompositions.slogdet(floating(x))[1]
