"""Stateless random numbers: the same seed, a pair of integers, always gives the same numbers; TensorFlow's (see `random`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import philox
from gradtape.ops import shape as shapes
from gradtape.ops.random import (
    SAMPLED,
    Source,
    accepted,
    binomial_from,
    categorical_from,
    full_range,
    gamma_from,
    index,
    lengths_of,
    normal_from,
    poisson_from,
    seed_pair,
    shuffled_from,
    stateless_source,
    uniform_from,
)  # fmt: skip
from gradtape.ops.reparameterized import truncated_sample
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.placement import placed
from gradtape.values.tensor import Tensor, wrap


def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32) -> Tensor:
    """`normal` as a function of its seed."""
    return normal_from(stateless_source(seed), philox.normal, shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32
) -> Tensor:
    """`truncated_normal` as a function of its seed."""
    return normal_from(stateless_source(seed), philox.truncated_normal, shape, mean, stddev, dtype)


def stateless_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32) -> Tensor:
    """`uniform` as a function of its seed; with minval and maxval None, any integer of the dtype."""
    kind = dtypes.as_dtype(dtype)
    if kind.is_integer and (minval is None) != (maxval is None):
        text = (
            f"For integer `dtype` argument {kind}, argument `minval` and `maxval` must be both None or not None. "
            f"Got `minval`={minval} and `maxval`={maxval}."
        )
        raise ValueError(message(text, fix="give both, or neither for the whole range"))
    return any_uniform(stateless_source(seed), shape, minval, maxval, kind)


def any_uniform(source: Source, shape: Any, minval: Any, maxval: Any, dtype: dtypes.DType) -> Tensor:
    if dtype not in (*SAMPLED, dtypes.uint32, dtypes.uint64):
        raise accepted(dtype, (*SAMPLED, dtypes.uint32, dtypes.uint64))
    if dtype.is_integer and minval is None:
        return full_range(source, shape, dtype)
    if dtype.is_unsigned:
        text = (
            f"Argument `dtype` got invalid value {dtype} when argument `minval` is not None. "
            "Please don't use unsigned integers in this case."
        )
        raise ValueError(message(text, fix="dtype=tf.int32, or minval=None and maxval=None for the whole range"))
    return uniform_from(source, shape, 0 if minval is None else minval, maxval, dtype)


def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64) -> Tensor:
    """`categorical` as a function of its seed."""
    return categorical_from(stateless_source(seed), logits, num_samples, dtypes.as_dtype(dtype))


def stateless_gamma(shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32) -> Tensor:
    """Samples of Gamma(alpha, rate beta) whose shape is ``shape``, as a function of the seed."""
    size = lengths_of(shape)
    parts = [convert_to_tensor(p)._array.shape for p in (alpha, beta) if p is not None]
    tail = np.broadcast_shapes(*parts)
    return _fill(lambda lead: gamma_from(stateless_source(seed), lead, alpha, beta, dtype), size, tail)


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32) -> Tensor:
    """Samples of Poisson(lam) whose shape is ``shape``, as a function of the seed."""
    size = lengths_of(shape)
    tail = convert_to_tensor(lam)._array.shape
    return _fill(lambda lead: placed(wrap(poisson_from(stateless_source(seed), lead, lam, dtype)[0])), size, tail)


def _fill(draw: Callable[[tuple[int, ...]], Tensor], size: tuple[int, ...], tail: tuple[int, ...]) -> Tensor:
    """Samples of shape ``size``, whose end must be the parameters' shape."""
    lead = len(size) - len(tail)
    if lead < 0 or size[lead:] != tail:
        raise InvalidArgumentError(
            message(f"Shape passed in must end with broadcasted shape: {list(tail)} vs {list(size)}", fix="end shape with it")
        )
    return draw(size[:lead])


def stateless_parameterized_truncated_normal(
    shape: Any, seed: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0, maxvals: Any = 2.0
) -> Tensor:
    """Normal values between minvals and maxvals, whose parameters broadcast to the shape; the numbers are our own."""
    size = lengths_of(shape)
    first = convert_to_tensor(means)
    parameters = [first, *(convert_to_tensor(p, first.dtype) for p in (stddevs, minvals, maxvals))]
    mean, stddev, low, high = (p._array.astype(np.float64) for p in parameters)
    if not (stddev > 0).all() or not (low < high).all():
        raise InvalidArgumentError(
            message("Invalid parameters", received=f"stddevs {stddev}, minvals {low}, maxvals {high}",
                    expected="stddevs > 0 and minvals < maxvals everywhere")
        )  # fmt: skip
    quantile = stateless_source(seed)(lambda key, counter: philox.uniform(key, counter, size, np.dtype(np.float64)), 0)
    drawn = mean + stddev * _truncated_quantile((low - mean) / stddev, (high - mean) / stddev, quantile)
    drawn = np.broadcast_to(np.clip(drawn, low, high), size)
    return truncated_sample(*parameters, *(wrap(a.astype(first.dtype.numpy)) for a in (quantile, drawn)))


def _truncated_quantile(alpha: np.ndarray, beta: np.ndarray, quantile: np.ndarray) -> np.ndarray:
    """z with P(α < Z < z) = q · P(α < Z < β); both bounds above 0 are mirrored, where the logarithms keep their digits."""
    from scipy.special import log_ndtr, ndtri_exp

    mirrored = alpha > 0
    low, high = np.where(mirrored, -beta, alpha), np.where(mirrored, -alpha, beta)
    q = np.where(mirrored, 1 - quantile, quantile)
    with np.errstate(divide="ignore"):
        z = ndtri_exp(np.logaddexp(log_ndtr(low) + np.log1p(-q), log_ndtr(high) + np.log(q)))
    return np.where(mirrored, -z, z)


def stateless_binomial(shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dtypes.int32) -> Tensor:
    """Numbers of successes in ``counts`` trials, as a function of the seed."""
    return binomial_from(stateless_source(seed), shape, counts, probs, output_dtype)


def stateless_shuffle(value: Any, seed: Any) -> Tensor:
    """`shuffle` as a function of its seed."""
    return shuffled_from(stateless_source(seed), value)


def split(seed: Any, num: int = 2) -> Tensor:
    """``num`` new stateless seeds (num, 2) from one."""
    return full_range(stateless_source(seed), (index(num, "number"), 2), convert_to_tensor(seed).dtype)


def fold_in(seed: Any, data: Any) -> Tensor:
    """A new stateless seed from a seed and an integer, such as a step number."""
    number = convert_to_tensor(data)
    return shapes.stack(full_range(stateless_source(seed), (), number.dtype), number, axis=0)


def index_shuffle(index: Any, seed: Any, max_index: Any) -> Tensor:
    """Where ``index`` goes in a pseudo-random permutation of 0 … max_index; the permutation is ours, not TensorFlow's.

    Four rounds of a Feistel network over the next power of four, walked until the value is in range again.
    """
    array = convert_to_tensor(index)._array
    value, top = (np.asarray(part).astype(np.uint64) for part in (array, convert_to_tensor(max_index)._array))
    if not (array >= 0).all() or (value > top).any():
        text = "index must lie between 0 and max_index"
        raise InvalidArgumentError(message(text, received=f"{array} of {top}", expected=f"indices from 0 to {top}"))
    half = np.uint64(max(1, -(-int(top.max(initial=1)).bit_length() // 2)))
    keys = philox.words(*philox.scrambled(*map(int, seed_pair(seed))), 4).astype(np.uint64)
    out = _feistel(value, keys, half)
    while (outside := out > top).any():
        out = np.where(outside, _feistel(out, keys, half), out)
    return wrap(out.astype(array.dtype))


def _feistel(value: np.ndarray, keys: np.ndarray, half: np.uint64) -> np.ndarray:
    mask = np.uint64((1 << int(half)) - 1)
    left, right = value >> half, value & mask
    for key in keys:
        with np.errstate(over="ignore"):  # products modulo 2⁶⁴
            mixed = (right + key) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
        left, right = right, left ^ (mixed >> np.uint64(32) & mask)
    return left << half | right
