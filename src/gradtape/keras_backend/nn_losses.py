"""Cross-entropies and the signal-to-noise ratio. Half precision is computed in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common.backend_utils import canonicalize_axes

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import in_dtype, result_type, tensor, together
from gradtape.ops import elementwise, nn, reduce
from gradtape.ops import shape as shapes
from gradtape.ops.clip import clip
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor

__all__ = ["binary_crossentropy", "categorical_crossentropy", "psnr", "sparse_categorical_crossentropy"]


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """-Σ target · log probability along an axis"""
    target, output, kind = _same_shape(target, output)
    rank = output._array.ndim
    if not rank:
        text = "Arguments `target` and `output` must be at least rank 1. Received: target.shape=(), output.shape=()"
        raise ValueError(message(text, expected="an axis of classes"))
    (axis,) = canonicalize_axes(axis, rank)
    loss = nn.cross_entropy(_log_probabilities(output, from_logits, axis), target, axis=axis - rank)
    return in_dtype(loss, kind)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """-log of the probability of the class that ``target`` names"""
    numbers, output = tensor(target), tensor(output)
    target = in_dtype(numbers, "int32")
    shape, given = output._array.shape, target._array.shape
    if not shape:
        text = "Argument `output` must be at least rank 1. Received: output.shape=()"
        raise ValueError(message(text, expected="an axis of classes"))
    if len(given) == len(shape) and given[-1] == 1:
        numbers, target, given = shapes.squeeze(numbers, axis=(-1,)), shapes.squeeze(target, axis=(-1,)), given[:-1]
    if given != shape[:-1]:
        text = (
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={given}, output.shape={shape}"
        )
        raise ValueError(message(text, fix="categorical_crossentropy takes one probability per class"))
    (axis,) = canonicalize_axes(axis, len(shape))
    log_probabilities = _log_probabilities(in_dtype(output, result_type(output.dtype, "float32")), from_logits, axis)
    if axis != len(shape) - 1:
        order = (*(i for i in range(len(shape)) if i != axis), axis)
        log_probabilities = shapes.transpose(log_probabilities, axes=order)
    loss = nn.sparse_cross_entropy(log_probabilities, target)
    return loss if isinstance(target._array, np.ndarray) else loss + _nan_without_class(log_probabilities, target, numbers)


def _nan_without_class(log_probabilities: Tensor, target: Tensor, numbers: Tensor) -> Tensor:
    """0, and NaN with a gradient of NaN for a number that is no class: on a device it is not refused."""
    first = log_probabilities[..., 0]
    zero = elementwise.zeros_like(first)
    is_class = elementwise.logical_and(target >= 0, target < log_probabilities._array.shape[-1])
    if numbers._array.dtype in dtypes.TRAINABLE:
        is_class = elementwise.logical_and(is_class, numbers > -1)  # XLA casts NaN to 0
    return elementwise.where(is_class, zero, first) * elementwise.where(is_class, zero, zero + math.nan)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """-target · log p - (1 - target) · log(1 - p), elementwise"""
    target, output, kind = _same_shape(target, output)
    if from_logits:
        return in_dtype(nn.sigmoid_cross_entropy(output, target), kind)
    p = _clipped(output)
    return in_dtype((target - 1.0) * elementwise.log(1.0 - p) - target * elementwise.log(p), kind)


def _same_shape(target: Any, output: Any) -> tuple[Tensor, Tensor, str]:
    """Both in one floating dtype of 32 bits or more, and the dtype that the loss shall have."""
    target, output = tensor(target), tensor(output)
    if target._array.shape != output._array.shape:
        text = (
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}"
        )
        raise ValueError(message(text, fix="sparse_categorical_crossentropy takes class numbers"))
    kind = result_type(target.dtype, output.dtype, float)
    wide = "float32" if kind in ("float16", "bfloat16") else kind
    return in_dtype(target, wide), in_dtype(output, wide), kind


def _log_probabilities(output: Tensor, from_logits: bool, axis: int) -> Tensor:
    if from_logits:
        return nn.log_softmax(output, axis=axis)
    return elementwise.log(_clipped(output / reduce.sum(output, axis=axis, keepdims=True)))


def _clipped(p: Tensor) -> Tensor:
    """Probabilities away from 0 and 1, where the logarithm ends."""
    return clip(p, config.epsilon(), 1.0 - config.epsilon())


def psnr(x1: Any, x2: Any, max_val: Any) -> Tensor:
    """20 log₁₀(max_val) - 10 log₁₀(mean (x1 - x2)²)"""
    x1, x2 = together(x1, x2, also=(float,))
    if x1._array.shape != x2._array.shape:
        text = f"Input shapes {tuple(x1.shape)} and {tuple(x2.shape)} must match for PSNR calculation."
        raise ValueError(message(text, expected="two signals of one shape"))
    peak = elementwise.log(in_dtype(max_val, x1.dtype.name))
    noise = elementwise.log(reduce.mean(elementwise.square(x1 - x2)))
    return (2.0 * peak - noise) * (10 / math.log(10))
