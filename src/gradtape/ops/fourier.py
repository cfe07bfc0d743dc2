"""Discrete Fourier transforms: four ops along one axis, each other's derivatives, and transforms over several axes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, shape
from gradtape.ops.arguments import integers
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor


@op(label="FFT")
def fft(xp, x, *, axis):
    """Y_k = Σ_j x_j exp(-2πi jk/n) along an axis."""
    return xp.fft(x, axis=axis)


@op(label="IFFT")
def ifft(xp, x, *, axis):
    """Y_k = (1/n) Σ_j x_j exp(2πi jk/n) along an axis: the inverse of fft."""
    return xp.ifft(x, axis=axis)


fft.vjp(lambda xp, g, *, axis, x_shape: xp.ifft(g, axis=axis) * x_shape[axis])
ifft.vjp(lambda xp, g, *, axis, x_shape: xp.fft(g, axis=axis) / max(x_shape[axis], 1))


@op(label="RFFT")
def rfft(xp, x, *, axis):
    """The frequencies 0 … n // 2 of a real signal."""
    return xp.rfft(x, axis=axis)


@op(label="IRFFT")
def irfft(xp, x, *, axis, n):
    """The real signal of length n with the frequencies 0 … n // 2; the imaginary parts of the first and of n/2 do not count."""
    return xp.irfft(x, axis=axis, n=n)


def _weights(n: int, ndim: int, axis: int, inner: float) -> np.ndarray:
    """1 for the frequencies 0 and n/2, which stand for themselves; ``inner`` for those that stand for their conjugate too."""
    weights = np.full(n // 2 + 1, inner)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return weights.reshape([-1 if i == axis % ndim else 1 for i in range(ndim)])


def _rfft_rule(xp, g, *, axis, x_shape):
    n = x_shape[axis]
    weights = np.asarray(_weights(n, len(x_shape), axis, 0.5) * n, xp.dtype(g))
    return xp.irfft(g * weights, axis=axis, n=n)


def _irfft_rule(xp, g, *, axis, n, x_shape):
    spectrum = xp.rfft(g, axis=axis)
    return spectrum * np.asarray(_weights(n, len(x_shape), axis, 2) / n, xp.dtype(spectrum))


rfft.vjp(_rfft_rule)
irfft.vjp(_irfft_rule)


# Several axes


def resize(x: Tensor, axis: int, length: int) -> Tensor:
    """Cut, or filled up with zeros at the end, to a length along an axis."""
    axis %= x._array.ndim
    have = x._array.shape[axis]
    if have > length:
        return indexing.getitem(x, index=(slice(None),) * axis + (slice(length),))
    if have < length:
        widths = tuple((0, length - have if i == axis else 0) for i in range(x._array.ndim))
        return shape.pad(x, widths=widths)
    return x


def transform(kind: str, x: Any, axes: Sequence[int], lengths: Any = None, norm: str | None = None) -> Tensor:
    """The transform ``kind`` (fft, ifft, rfft, irfft) over axes, of signals cut or filled up to ``lengths``."""
    x = convert_to_tensor(x)
    sizes = _sizes(kind, x, axes, lengths)
    if not (x._array.size or kind == "rfft") or 0 in sizes:
        return _nothing(kind, x, axes, sizes)
    if kind == "irfft":
        stored = (*sizes[:-1], sizes[-1] // 2 + 1)
    else:
        stored = sizes
    for axis, length in zip(axes, stored):
        x = resize(x, axis, length)
    *others, last = axes
    if kind == "rfft":
        x = rfft(x, axis=last)
    for axis in others if kind in ("rfft", "irfft") else axes:
        x = fft(x, axis=axis) if kind in ("fft", "rfft") else ifft(x, axis=axis)
    if kind == "irfft":
        x = irfft(x, axis=last, n=sizes[-1])
    return _normalised(kind, x, norm, math.prod(sizes))


def _sizes(kind: str, x: Tensor, axes: Sequence[int], lengths: Any) -> tuple[int, ...]:
    """The lengths of the signals."""
    have = x._array.shape
    if lengths is None:
        sizes = tuple(have[axis] for axis in axes)
        return (*sizes[:-1], max(2 * (sizes[-1] - 1), 0)) if kind == "irfft" else sizes
    sizes = integers(lengths)
    if len(sizes) != len(axes):
        raise InvalidArgumentError(
            message(f"fft_length must have shape [{len(axes)}]", received=f"{sizes}", expected="one length per axis")
        )
    if any(n < 0 for n in sizes):
        where, least = min(enumerate(sizes), key=lambda item: item[1])
        text = f"fft_length[{where}] must >= 0, but got: {least}"
        raise InvalidArgumentError(message(text, received=f"{sizes}", expected="lengths of 0 or more"))
    return sizes


def _nothing(kind: str, x: Tensor, axes: Sequence[int], sizes: tuple[int, ...]) -> Tensor:
    """The transform of, or to, an array without elements: zeros."""
    lengths = list(x._array.shape)
    for axis, size in zip(axes, sizes):
        lengths[axis] = size
    if kind == "rfft":
        lengths[axes[-1]] = sizes[-1] // 2 + 1 if sizes[-1] else 0
    return convert_to_tensor(np.zeros(lengths, _result(kind, x._array.dtype)))


def _result(kind: str, dtype: np.dtype) -> np.dtype:
    single = dtype in (np.float32, np.complex64)
    real, complex_ = (np.float32, np.complex64) if single else (np.float64, np.complex128)
    return np.dtype(real if kind == "irfft" else complex_)


def _normalised(kind: str, x: Tensor, norm: str | None, size: int) -> Tensor:
    """``backward`` divides by n on the way back, ``forward`` on the way there, ``ortho`` by √n both ways."""
    inverse = kind in ("ifft", "irfft")
    scales = {"backward": 1.0, "forward": float(size) if inverse else 1 / size, "ortho": size ** (0.5 if inverse else -0.5)}
    scale = scales[norm or "backward"]
    return x if scale == 1 else elementwise.multiply(x, scale)


# The arguments of TensorFlow's functions


_COMPLEX = (dtypes.complex64, dtypes.complex128)
_REAL = (dtypes.float32, dtypes.float64)


def last_axes(kind: str, x: Any, rank: int, lengths: Any = None) -> Tensor:
    """The transform over the last ``rank`` axes."""
    label = f"{kind.upper()}{'' if rank == 1 else f'{rank}D'}"
    x = _checked(kind, label, x)
    if x._array.ndim < rank:
        if "r" in kind:
            raise ValueError(
                message(
                    f"Shape {x._array.shape} must have rank at least {rank}",
                    received=f"shape {x._array.shape}",
                    expected=f"at least {rank} axes: the last {rank} are transformed",
                )
            )
        text = f"Input must have rank of at least {rank} but got: {dims(x._array.shape)} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"shape {x._array.shape}", expected=f"at least {rank} axes: the last {rank} are transformed")
        )
    return transform(kind, x, tuple(range(-rank, 0)), lengths)


def _checked(kind: str, label: str, x: Any) -> Tensor:
    """A real tensor for rfft, a complex one for the others."""
    if kind == "rfft":
        x = convert_to_tensor(x, dtype_hint=dtypes.float32)
        if x.dtype not in _REAL:
            text = f"RFFT requires tf.float32 or tf.float64 inputs, got: {x}"
            raise ValueError(message(text, fix="tf.cast(x, tf.float32); tf.signal.fft takes complex numbers"))
        return x
    x = convert_to_tensor(x, dtype_hint=dtypes.complex64)
    if x.dtype not in _COMPLEX:
        raise InvalidArgumentError(
            message(
                f"Value for attr 'Tcomplex' of {x.dtype.word} is not in the list of allowed values: complex64, complex128 "
                f"[Op:{label}]",
                fix="tf.cast(x, tf.complex64) first; tf.signal.rfft takes real signals",
            )
        )
    return x


def over_axes(kind: str, x: Any, lengths: Any, axes: Any, norm: str | None) -> Tensor:
    """The transform over any axes, by default the last ones, as many as there are lengths."""
    x = _checked(kind, f"{kind.upper()}ND", x)
    rank = x._array.ndim
    if axes is None:
        axes = range(-(rank if lengths is None else len(integers(lengths))), 0)
    places = tuple(axis % rank if -rank <= axis < rank else axis for axis in integers(tuple(axes)))
    if any(axis >= rank or axis < 0 for axis in places) or len(set(places)) != len(places):
        text = "Axes must be unique and in range"
        raise InvalidArgumentError(
            message(text, received=f"axes {places} of rank {rank}", expected=f"different axes from {-rank} to {rank - 1}")
        )
    if norm not in (None, "backward", "forward", "ortho"):
        text = f"Invalid norm: {norm}. Expected one of backward, ortho, forward."
        raise ValueError(message(text, expected="'backward', 'ortho' or 'forward'"))
    return transform(kind, x, places, lengths, norm)
