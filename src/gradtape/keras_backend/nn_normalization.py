"""Mean and variance, and what is normalised by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import floating, together
from gradtape.ops import elementwise, normalization
from gradtape.ops import shape as shapes
from gradtape.ops.clip import clip
from gradtape.values.tensor import Tensor

__all__ = ["batch_normalization", "moments"]

_LARGEST = float(np.finfo(np.float16).max)


def moments(x: Any, axes: int | Sequence[int], keepdims: bool = False, synchronized: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and variance over axes, for half precision computed in float32; what float16 cannot hold becomes its largest."""
    if synchronized:
        text = "Argument synchronized=True is not supported with gradtape."
        raise NotImplementedError(message(text, why="there is one replica", fix="synchronized=False"))
    x = floating(x)
    if x.dtype.size > 2:
        return normalization.moments(x, axes, keepdims)
    both = normalization.moments(elementwise.cast(x, "float32"), axes, keepdims)
    mean, variance = (elementwise.cast(clip(part, -_LARGEST, _LARGEST), x.dtype) for part in both)
    return mean, variance


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 1e-3
) -> Tensor:
    """(x - mean) / √(variance + ε) · scale + offset along an axis"""
    given = [value for value in (x, mean, variance, offset, scale) if value is not None]
    x, *rest = together(*given, also=(float,))
    rank = x._array.ndim
    if axis % rank != rank - 1:
        shape = [1] * rank
        shape[axis] = -1
        rest = [shapes.reshape(value, shape=tuple(shape)) for value in rest]
    mean, variance = rest[:2]
    factor = elementwise.rsqrt(variance + epsilon)
    if scale is not None:
        factor = factor * rest[-1]
    shift = mean * factor
    return x * factor + (rest[2] - shift if offset is not None else -shift)
