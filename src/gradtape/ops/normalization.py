"""Moments and what is normalised with them: batch, L2 and local response normalisation; adding a bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import arguments, elementwise, matrix, reduce
from gradtape.ops import shape as shapes
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

# Moments


def axes_of(axes: Any) -> tuple[int, ...] | None:
    """Axes as a tuple, from an int, list, array or tensor; None stays."""
    if axes is None:
        return None
    if isinstance(axes, (list, tuple)) and all(type(a) is int for a in axes):
        return tuple(axes)
    array = np.asarray(convert_to_tensor(axes, dtype_hint=dtypes.int32))
    return tuple(int(a) for a in array.reshape(-1))


def moments(x: Any, axes: Any, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes; float16 in float32."""
    x = convert_to_tensor(x)
    wide = elementwise.cast(x, dtypes.float32) if x.dtype is dtypes.float16 else x
    axis = axes_of(axes)
    mean = reduce.mean(wide, axis=axis, keepdims=True)
    variance = reduce.mean(elementwise.square(elementwise.subtract(wide, mean)), axis=axis, keepdims=keepdims)
    if not keepdims:
        mean = shapes.reshape(mean, shape=variance._array.shape)
    return elementwise.cast(mean, x.dtype), elementwise.cast(variance, x.dtype)


def weighted_moments(x: Any, axes: Any, weights: Any, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes, where each element counts as often as its weight says (weights broadcast)."""
    x = convert_to_tensor(x)
    weights = convert_to_tensor(weights)
    kind = x.dtype
    if kind is dtypes.float16:
        x = elementwise.cast(x, dtypes.float32)
    weights = elementwise.cast(weights, x.dtype)
    axis = axes_of(axes)
    weights = elementwise.add(weights, elementwise.zeros_like(x))
    total = reduce.sum(weights, axis=axis, keepdims=True)
    mean = elementwise.divide(reduce.sum(weights * x, axis=axis, keepdims=True), total)
    squares = elementwise.square(elementwise.subtract(x, mean))
    variance = elementwise.divide(reduce.sum(weights * squares, axis=axis, keepdims=True), total)
    if not keepdims:
        dropped = np.sum(np.empty(x._array.shape, bool), axis=axis).shape
        mean, variance = shapes.reshape(mean, shape=dropped), shapes.reshape(variance, shape=dropped)
    return elementwise.cast(mean, kind), elementwise.cast(variance, kind)


def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keepdims: bool = False) -> tuple:
    """(count, Σ(x - shift), Σ(x - shift)², shift)"""
    x = convert_to_tensor(x)
    axis = axes_of(axes)
    counts = wrap(np.asarray(reduce.count(x._array.shape, axis), x._array.dtype))
    if shift is not None:
        shift = convert_to_tensor(shift, x.dtype)
        x = elementwise.subtract(x, shift)
    first = reduce.sum(x, axis=axis, keepdims=keepdims)
    return counts, first, reduce.sum(elementwise.square(x), axis=axis, keepdims=keepdims), shift


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any = None) -> tuple[Tensor, Tensor]:
    """Mean and variance from the sufficient statistics."""
    divisor = elementwise.reciprocal(counts)
    shifted = elementwise.multiply(mean_ss, divisor)
    variance = elementwise.subtract(elementwise.multiply(variance_ss, divisor), elementwise.square(shifted))
    return shifted if shift is None else elementwise.add(shifted, shift), variance


# Normalisation


def batch_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any, epsilon: float) -> Tensor:
    """(x - mean) / √(variance + ε) · scale + offset; the factors may have a wider dtype than x."""
    x, variance = convert_to_tensor(x), convert_to_tensor(variance)
    factor = elementwise.rsqrt(elementwise.add(variance, epsilon))
    if scale is not None:
        factor = elementwise.multiply(factor, scale)
    moved = elementwise.multiply(mean, factor)
    rest = elementwise.negative(moved) if offset is None else elementwise.subtract(offset, moved)
    return elementwise.add(elementwise.multiply(x, elementwise.cast(factor, x.dtype)), elementwise.cast(rest, x.dtype))


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12) -> Tensor:
    """x / √max(Σ |x|², ε)"""
    x = convert_to_tensor(x)
    squares = elementwise.square(x)
    if x.dtype.is_complex:
        squares = elementwise.square(elementwise.real(x)) + elementwise.square(elementwise.imag(x))
    total = reduce.sum(squares, axis=axes_of(axis), keepdims=True)
    factor = elementwise.rsqrt(elementwise.maximum(total, convert_to_tensor(epsilon, total.dtype)))
    return elementwise.multiply(x, elementwise.cast(factor, x.dtype))


def local_response_normalization(x: Any, radius: Any = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5) -> Tensor:
    """x / (bias + alpha · Σ x² over the channels at most ``radius`` away) ** beta"""
    x = convert_to_tensor(x)
    arguments.real_floating("LRN", x)
    shape = x._array.shape
    if len(shape) != 4:
        text = f"in must be 4-dimensional [Op:LRN] (received shape {dims(shape)})"
        raise InvalidArgumentError(message(text, received=f"shape {shape}", expected="(batch, height, width, channels)"))
    kind = x.dtype
    wide = elementwise.cast(x, dtypes.float32) if kind.size == 2 else x
    channel = np.arange(shape[-1])
    near = np.abs(channel[:, None] - channel) <= arguments.integer(radius)
    squares = shapes.reshape(elementwise.square(wide), shape=(-1 if shape[-1] else 0, shape[-1]))
    # One product with a band of ones: the sums over all neighbourhoods, on every namespace.
    sums = shapes.reshape(matrix.matmul(squares, wrap(near.astype(wide._array.dtype))), shape=shape)
    scale = elementwise.power(elementwise.add(elementwise.multiply(sums, float(alpha)), float(bias)), -float(beta))
    return elementwise.cast(elementwise.multiply(wide, scale), kind)


@op(label="BiasAdd")
def bias_add(xp, x, bias, *, channels_first=False):
    """x + bias, along the last axis or along axis 1."""
    shape, length = xp.shape(x), xp.shape(bias)
    if len(shape) < 2:
        text = f"Input tensor must be at least 2D: {dims(shape)} [Op:BiasAdd]"
        raise InvalidArgumentError(message(text, received=f"shape {shape}", expected="(batch, …, channels)"))
    if len(length) != 1:
        text = f"Biases must be 1D: {dims(length)} [Op:BiasAdd]"
        raise InvalidArgumentError(message(text, received=f"bias of shape {length}", expected="one axis: a bias per channel"))
    axis, name = (1, "channel") if channels_first else (len(shape) - 1, "last")
    if length[0] != shape[axis]:
        text = (
            f"Must provide as many biases as the {name} dimension of the input tensor: {dims(length)} vs. {dims(shape)} "
            "[Op:BiasAdd]"
        )
        raise InvalidArgumentError(
            message(text, received=f"a bias of length {length[0]} for an input {shape}", expected=f"{shape[axis]} biases")
        )
    return xp.add(x, xp.reshape(bias, shape=(*length, *[1] * (len(shape) - axis - 1))))


def _bias_rule(xp, g, *, x_shape, channels_first):
    channel = 1 if channels_first else len(x_shape) - 1
    return xp.sum(g, axis=tuple(i for i in range(len(x_shape)) if i != channel))


bias_add.vjp(lambda xp, g: g, _bias_rule)
