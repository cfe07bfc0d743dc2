"""Window functions of signal processing, as constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message, shown
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def _length(value: Any) -> int:
    """A window's length: one non-negative integer."""
    array = np.asarray(convert_to_tensor(value))
    if array.ndim:
        text = f"window_length must be a scalar, received shape {array.shape}"
        raise ValueError(message(text, received=shown(value), expected="one integer"))
    if array.dtype.kind not in "iu" or array < 0:
        text = "window_length must be a non-negative integer"
        raise InvalidArgumentError(message(text, received=f"{array}", expected="0 or more samples"))
    return int(array)


def _window(values: np.ndarray, dtype: Any) -> Tensor:
    wanted = dtypes.as_dtype(dtype)
    if not wanted.is_floating:
        text = f"dtype must be a floating point type. Found {wanted!r}"
        raise ValueError(
            message(text, received=f"dtype={wanted!r}", expected="tf.float32, tf.float64, tf.float16 or tf.bfloat16")
        )
    return wrap(values.astype(wanted.numpy))


def raised_cosine(length: Any, periodic: Any, dtype: Any, a: float, b: float) -> Tensor:
    """a - b cos(2πk/n); ``periodic`` leaves out the last of n + 1 values, for even lengths only, as in TensorFlow."""
    count = _length(length)
    if count == 1:
        return _window(np.ones(1), dtype)
    steps = count + (1 - count % 2 if bool(periodic) else 0) - 1
    return _window(a - b * np.cos(2 * np.pi * np.arange(count) / max(steps, 1)), dtype)


def hann(length: Any, periodic: Any = True, dtype: Any = dtypes.float32) -> Tensor:
    """½ - ½ cos(2πk/n)."""
    return raised_cosine(length, periodic, dtype, 0.5, 0.5)


def hamming(length: Any, periodic: Any = True, dtype: Any = dtypes.float32) -> Tensor:
    """0.54 - 0.46 cos(2πk/n)."""
    return raised_cosine(length, periodic, dtype, 0.54, 0.46)


def _kaiser(count: int, beta: float) -> np.ndarray:
    from scipy.special import i0e

    if count == 1:
        return np.ones(1)
    place = 2 * np.arange(count) / max(count - 1, 1) - 1
    arch = beta * np.sqrt(np.maximum(1 - place * place, 0))
    return np.exp(arch - abs(beta)) * i0e(arch) / i0e(beta)


def kaiser(length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32) -> Tensor:
    """I₀(β √(1 - x²)) / I₀(β) for x from -1 to 1."""
    return _window(_kaiser(_length(length), float(beta)), dtype)


def kaiser_bessel_derived(length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32) -> Tensor:
    """The square root of the running sum of a Kaiser window, and its mirror image."""
    running = np.cumsum(_kaiser(_length(length) // 2 + 1, float(beta)))
    half = np.sqrt(running[:-1] / running[-1])
    return _window(np.concatenate([half, half[::-1]]), dtype)


def vorbis(length: Any, dtype: Any = dtypes.float32) -> Tensor:
    """sin(½π sin²(π (k + ½) / n))."""
    count = _length(length)
    return _window(np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(count) + 0.5) / max(count, 1)) ** 2), dtype)
