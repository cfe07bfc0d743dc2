"""Pooling: the largest or the mean element of windows, given by their size, or by how many of them there shall be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.nn_conv import Numbers, layout, padding_word, per_axis
from gradtape.keras_backend.numpy_promotion import floating, numeric
from gradtape.ops import conv, indexing, matrix, pool, reduce
from gradtape.values.tensor import Tensor, wrap

__all__ = ["adaptive_average_pool", "adaptive_max_pool", "average_pool", "max_pool"]


def max_pool(
    inputs: Any, pool_size: Numbers, strides: Numbers | None = None, padding: str = "valid", data_format: str | None = None
) -> Tensor:
    return _pooled("MAX", numeric(inputs), pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any, pool_size: Numbers, strides: Numbers | None = None, padding: str = "valid", data_format: str | None = None
) -> Tensor:
    """The mean of each window, without the padding."""
    return _pooled("AVG", floating(inputs), pool_size, strides, padding, data_format)


def _pooled(kind: str, x: Tensor, pool_size: Numbers, strides: Numbers | None, padding: str, data_format: str | None) -> Tensor:
    padding = padding_word(padding)
    n = x._array.ndim - 2
    form, size = layout(data_format, n), per_axis(pool_size, n)
    lengths = x._array.shape[2:] if form[1] == "C" else x._array.shape[1:-1]
    if padding == "VALID" and any(m < k for m, k in zip(lengths, size)):
        text = f"The pooling operation resulted in an empty output: windows of {size} over inputs of shape {x._array.shape}"
        raise ValueError(message(text, expected="inputs at least as long as the windows", fix="padding='same'"))
    strides = size if strides is None else per_axis(strides, n)
    return pool.pool(x, kind, n, size=size, strides=strides, padding=padding, data_format=form)


# Windows by their number: the i-th of m over a length n reaches from ⌊i n / m⌋ to ⌈(i + 1) n / m⌉. One axis after the other.


def adaptive_max_pool(inputs: Any, output_size: Numbers, data_format: str | None = None) -> Tensor:
    return _adapted(numeric(inputs), output_size, data_format, _largest)


def adaptive_average_pool(inputs: Any, output_size: Numbers, data_format: str | None = None) -> Tensor:
    return _adapted(floating(inputs), output_size, data_format, _mean)


def _adapted(x: Tensor, output_size: Numbers, data_format: str | None, combine: Callable) -> Tensor:
    n = x._array.ndim - 2
    if n not in (1, 2, 3):
        text = f"adaptive pooling supports only 1D/2D/3D inputs. Received: inputs.shape={tuple(x.shape)}"
        raise ValueError(message(text, expected="a batch axis, 1 to 3 axes of space, and channels"))
    first = layout(data_format, n)[1] == "C"
    for axis, count in enumerate(per_axis(output_size, n), 2 if first else 1):
        if x._array.shape[axis] != count:
            x = combine(x, axis, *_windows(x._array.shape[axis], count))
    return x


def _windows(length: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each window begins, and where it ends."""
    places = np.arange(count + 1) * length
    return places[:-1] // count, -(-places[1:] // count)


def _largest(x: Tensor, axis: int, starts: np.ndarray, ends: np.ndarray) -> Tensor:
    """Shorter windows name their last element again."""
    within = np.arange((ends - starts).max(initial=0))
    at = np.minimum(starts[:, None] + within, ends[:, None] - 1)
    return reduce.max(indexing.take(x, wrap(at), axis=axis), axis=axis + 1)


def _mean(x: Tensor, axis: int, starts: np.ndarray, ends: np.ndarray) -> Tensor:
    """One product with the windows' weights."""
    place = np.arange(x._array.shape[axis])[:, None]
    weights = ((place >= starts) & (place < ends)) / (ends - starts)
    n = x._array.ndim - axis - 1
    moved = conv.to_channels_last(x, n, True)
    return conv.from_channels_last(matrix.matmul(moved, wrap(weights.astype(x._array.dtype))), n, True)
