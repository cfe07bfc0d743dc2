"""Activations, with Keras's names and defaults. Integers become floating, except where an activation only selects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src.backend.common.backend_utils import canonicalize_axes

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import floating, floating_unary, in_dtype, numeric, result_type, tensor
from gradtape.ops import arrays, elementwise, indexing, reduce
from gradtape.ops import nn as ops
from gradtape.ops import shape as shapes
from gradtape.ops.clip import clip
from gradtape.values.tensor import Tensor, wrap

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "log_sigmoid",
    "log_softmax", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus",
    "sparse_sigmoid", "sparsemax", "squareplus", "tanh", "tanh_shrink", "threshold",
]  # fmt: skip

relu6 = floating_unary(ops.relu6)
selu = floating_unary(ops.selu)
sigmoid = floating_unary(elementwise.sigmoid)
softplus = floating_unary(elementwise.softplus)
softsign = floating_unary(ops.softsign)
tanh = floating_unary(elementwise.tanh)


def relu(x: Any) -> Tensor:
    return ops.relu(numeric(x))


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Tensor:
    return ops.leaky_relu_any(floating(x), negative_slope)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    x = floating(x)
    return ops.elu(x) if alpha == 1 else ops.relu(x) + _below_zero(elementwise.expm1, x) * alpha


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    x = floating(x)
    return ops.elu(x) if alpha == 1 else ops.relu(x) + _below_zero(lambda y: elementwise.expm1(y / alpha), x) * alpha


def _below_zero(function: Callable, x: Tensor) -> Tensor:
    """The function of the negative part of x: never of numbers whose exponential is too large."""
    return function(elementwise.minimum(x, elementwise.zeros_like(x)))


def gelu(x: Any, approximate: bool = True) -> Tensor:
    return (ops.gelu_tanh if approximate else ops.gelu)(floating(x))


def silu(x: Any) -> Tensor:
    return ops.swish(floating(x))


def log_sigmoid(x: Any) -> Tensor:
    return -elementwise.softplus(-floating(x))


def squareplus(x: Any, b: float = 4) -> Tensor:
    """(x + √(x² + b)) / 2"""
    x = floating(x)
    return (x + elementwise.sqrt(elementwise.square(x) + b)) * 0.5


def tanh_shrink(x: Any) -> Tensor:
    x = floating(x)
    return x - elementwise.tanh(x)


def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half along an axis, where the second half lets it pass."""
    x = floating(x)
    (axis,) = canonicalize_axes(axis, x._array.ndim)
    length = x._array.shape[axis]
    if length % 2:
        text = f"axis size must be divisible by 2. Received: x.shape={tuple(x.shape)}, axis={axis}"
        raise ValueError(message(text, expected="two halves of one length"))
    passed, gate = arrays.split(x, sizes=(length // 2, length // 2), axis=axis)
    return passed * elementwise.sigmoid(gate)


# Piecewise linear and quadratic


def hard_sigmoid(x: Any) -> Tensor:
    return ops.relu6(floating(x) + 3.0) * (1 / 6)


def hard_silu(x: Any) -> Tensor:
    x = floating(x)
    return x * hard_sigmoid(x)


def hard_tanh(x: Any) -> Tensor:
    x = numeric(x)
    return clip(x, 0 if x._array.dtype.kind == "u" else -1, 1)


def sparse_sigmoid(x: Any) -> Tensor:
    return (clip(floating(x), -1.0, 1.0) + 1.0) * 0.5


def sparse_plus(x: Any) -> Tensor:
    """0 up to -1, x from 1 on, and a parabola between them."""
    x = floating(x)
    return elementwise.where(x >= 1.0, x, elementwise.square(clip(x, -1.0, 1.0) + 1.0) * 0.25)


def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    x = floating(x)
    return x - clip(x, -threshold, threshold)


def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    x = floating(x)
    return elementwise.where(elementwise.abs(x) > threshold, x, elementwise.zeros_like(x))


def threshold(x: Any, threshold: Any, default_value: Any) -> Tensor:
    """x where it is above the threshold, else the default value."""
    x = tensor(x)
    target = result_type(x.dtype, type(default_value))
    wide = in_dtype(x, result_type(target, type(threshold)))
    return elementwise.where(wide > threshold, in_dtype(x, target), in_dtype(default_value, target))


# Over several elements


def softmax(x: Any, axis: int | Sequence[int] | None = -1) -> Tensor:
    return _over_axes(ops.softmax, floating(x), axis)


def log_softmax(x: Any, axis: int | Sequence[int] | None = -1) -> Tensor:
    return _over_axes(ops.log_softmax, floating(x), axis)


def _over_axes(function: Callable, x: Tensor, axis: int | Sequence[int] | None) -> Tensor:
    """The function of one axis, over several as if they were one; None: over all."""
    if isinstance(axis, int):
        return function(x, axis=axis)
    shape = x._array.shape
    axes = tuple(range(len(shape))) if axis is None else canonicalize_axes(list(axis), len(shape))
    others = tuple(i for i in range(len(shape)) if i not in axes)
    order = (*others, *axes)
    moved = shapes.transpose(x, axes=order)
    joined = shapes.reshape(moved, shape=(*(shape[i] for i in others), math.prod(shape[i] for i in axes)))
    parted = shapes.reshape(function(joined, axis=-1), shape=moved._array.shape)
    return shapes.transpose(parted, axes=tuple(int(i) for i in np.argsort(order)))


def sparsemax(x: Any, axis: int = -1) -> Tensor:
    """The point of the simplex that is nearest to x (Martins and Astudillo 2016): max(x - τ, 0), which sums to 1."""
    x = floating(x)
    (axis,) = canonicalize_axes(axis, x._array.ndim)
    falling = shapes.flip(indexing.sort(x, axis=axis), axis=(axis,))
    ranks = np.arange(1, x._array.shape[axis] + 1).reshape([-1 if i == axis else 1 for i in range(x._array.ndim)])
    inside = falling * wrap(ranks.astype(x._array.dtype)) + 1.0 > reduce.cumsum(falling, axis=axis)
    count = reduce.sum(elementwise.cast(inside, x.dtype), axis=axis, keepdims=True)
    total = reduce.sum(elementwise.where(inside, falling, elementwise.zeros_like(falling)), axis=axis, keepdims=True)
    return ops.relu(x - (total - 1.0) / count)
