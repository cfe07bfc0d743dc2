"""Keras's random numbers: functions of a seed, a pair of integers, with tf.keras's numbers.

A seed may be known to a compiled program alone: a `SeedGenerator` used inside a function moves on at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend.common import standardize_dtype
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

from gradtape.keras_backend.core import cast, convert_to_tensor
from gradtape.ops import elementwise, indexing, nn, stateless
from gradtape.ops import shape as shapes
from gradtape.values.tensor import Tensor

__all__ = [
    "SeedGenerator", "beta", "binomial", "categorical", "draw_seed", "dropout", "gamma", "make_default_seed", "normal",
    "randint", "shuffle", "truncated_normal", "uniform",
]  # fmt: skip


def _seed(seed: Any) -> Tensor:
    return seed if isinstance(seed, Tensor) else draw_seed(seed)


def _dtype(dtype: Any) -> str:
    return standardize_dtype(dtype or floatx())


def _parameter(value: Any, dtype: str) -> Any:
    return value if isinstance(value, (int, float)) else convert_to_tensor(value, dtype)


def normal(shape: Sequence[int], mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    dtype = _dtype(dtype)
    mean, stddev = _parameter(mean, dtype), _parameter(stddev, dtype)
    return stateless.stateless_normal(shape, _seed(seed), mean, stddev, dtype)


def truncated_normal(shape: Sequence[int], mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """Normal values, drawn again where they are more than two standard deviations from the mean."""
    dtype = _dtype(dtype)
    mean, stddev = _parameter(mean, dtype), _parameter(stddev, dtype)
    return stateless.stateless_truncated_normal(shape, _seed(seed), mean, stddev, dtype)


def uniform(shape: Sequence[int], minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    dtype = _dtype(dtype)
    minval, maxval = _parameter(minval, dtype), _parameter(maxval, dtype)
    return stateless.stateless_uniform(shape, _seed(seed), minval, maxval, dtype)


def randint(shape: Sequence[int], minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Integers from ``minval`` up to, not including, ``maxval``."""
    dtype = standardize_dtype(dtype)
    drawn_in = dtype if dtype in ("int32", "int64") else "int64"
    minval, maxval = convert_to_tensor(minval, drawn_in), convert_to_tensor(maxval, drawn_in)
    if _is_one_known(minval) and _is_one_known(maxval):
        return cast(stateless.stateless_uniform(shape, _seed(seed), minval, maxval, drawn_in), dtype)
    words = stateless.stateless_uniform(shape, _seed(seed), None, None, "uint64")
    span = elementwise.cast(elementwise.subtract(maxval, minval), "uint64")
    return cast(elementwise.add(elementwise.cast(elementwise.remainder(words, span), drawn_in), minval), dtype)


def _is_one_known(x: Tensor) -> bool:
    return not x._array.ndim and not x._is_traced()


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Class indices (batch, num_samples), drawn with probabilities softmax(logits) per row."""
    return cast(stateless.stateless_categorical(convert_to_tensor(logits), num_samples, _seed(seed)), dtype)


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Tensor:
    """Elements set to 0 with probability ``rate``, the others divided by 1 - rate."""
    inputs = convert_to_tensor(inputs)
    if rate == 1.0:
        return elementwise.zeros_like(inputs)
    if rate == 0.0:
        return inputs
    return nn.dropout(inputs, rate, noise_shape, _seed(seed), stateless=True)


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Tensor:
    """The slices along an axis in random order."""
    x = convert_to_tensor(x)
    axis %= x._array.ndim
    order = indexing.argsort(stateless.stateless_uniform([x._array.shape[axis]], _seed(seed)), axis=0)
    return indexing.take(elementwise.identity(x), order, axis=axis)


def gamma(shape: Sequence[int], alpha: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Samples of Gamma(alpha, 1), where ``alpha`` broadcasts to the shape."""
    dtype = _dtype(dtype)
    return _gamma(tuple(shape), convert_to_tensor(alpha, dtype), dtype, _seed(seed))


def _gamma(shape: tuple[int, ...], alpha: Tensor, dtype: str, seed: Tensor) -> Tensor:
    own = alpha._array.shape
    if shape[len(shape) - len(own) :] != own:
        alpha = shapes.broadcast_to(alpha, shape=shape)
    return stateless.stateless_gamma(shape, seed, alpha, dtype=dtype)


def binomial(shape: Sequence[int], counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of successes in ``counts`` trials, each with a chance of ``probabilities``."""
    counts, probabilities = convert_to_tensor(counts), convert_to_tensor(probabilities)
    return cast(stateless.stateless_binomial(shape, _seed(seed), counts, probabilities, "int64"), _dtype(dtype))


_OTHER = 12  # what tf.keras adds to the seed for the second of two independent samples


def beta(shape: Sequence[int], alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Samples of Beta(alpha, beta): x / (x + y) with x of Gamma(alpha) and y of Gamma(beta)."""
    dtype, shape, first = _dtype(dtype), tuple(shape), _seed(seed)
    x = _gamma(shape, convert_to_tensor(alpha, dtype), dtype, first)
    y = _gamma(shape, convert_to_tensor(beta, dtype), dtype, first + _OTHER)
    return elementwise.divide(x, elementwise.add(x, y))
