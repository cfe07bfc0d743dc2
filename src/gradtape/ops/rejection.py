"""Gamma and Poisson samples by rejection, drawn from a Philox stream in TensorFlow's order: the same seed, the same numbers."""

from __future__ import annotations

import math

import numpy as np

from gradtape.ops import philox

_DOUBLE = np.dtype(np.float64)


class _Lanes:
    """One stretch of the stream for each sample, from which it takes uniform and normal numbers as it needs them.

    A block makes two numbers; the second is used first.
    """

    def __init__(self, key: int, counter: int, count: int) -> None:
        self.stream = key, counter
        self.offsets = np.arange(count, dtype=np.uint64) * np.uint64(philox.RESERVED)
        self.pairs = {make: np.empty((count, 2)) for make in (philox.fraction, philox.bell)}
        self.left = {make: np.zeros(count, np.int8) for make in self.pairs}

    def uniform(self, lanes: np.ndarray) -> np.ndarray:
        return self._take(philox.fraction, lanes)

    def normal(self, lanes: np.ndarray) -> np.ndarray:
        return self._take(philox.bell, lanes)

    def _take(self, make, lanes):
        pairs, left = self.pairs[make], self.left[make]
        empty = lanes[left[lanes] == 0]
        if empty.size:
            bits = philox.blocks(*self.stream, self.offsets[empty])
            pairs[empty] = make(bits.reshape(-1), _DOUBLE).reshape(-1, 2)
            left[empty] = 2
            self.offsets[empty] += np.uint64(1)
        left[lanes] -= 1
        return pairs[lanes, left[lanes]]


def gamma(key: int, counter: int, alpha: np.ndarray) -> np.ndarray:
    """A sample of Gamma(alpha, 1) per element of a vector, after Marsaglia and Tsang (2000).

    Below 1 it is a sample for alpha + 1 times u^(1/alpha); at 1 the distribution is exponential.
    """
    lanes = _Lanes(key, counter, len(alpha))
    out = np.empty(len(alpha))
    exponential = np.flatnonzero(alpha == 1)
    out[exponential] = -np.log1p(-lanes.uniform(exponential))
    below = alpha < 1
    d = np.where(below, alpha + 2 / 3, alpha - 1 / 3)
    c = 1 / 3 / np.sqrt(d)
    waiting = np.flatnonzero(alpha != 1)
    while waiting.size:
        x = lanes.normal(waiting)
        v = 1 + c[waiting] * x
        possible = v > 0
        tried, x, v = waiting[possible], x[possible], v[possible] ** 3
        u = lanes.uniform(tried)
        with np.errstate(divide="ignore"):
            accepted = (u < 1 - 0.0331 * x**4) | (np.log(u) < 0.5 * x * x + d[tried] * (1 - v + np.log(v)))
        done = tried[accepted]
        out[done] = d[done] * v[accepted]
        waiting = np.setdiff1d(waiting, done, assume_unique=True)
    small = np.flatnonzero(below)
    with np.errstate(divide="ignore"):
        out[small] *= lanes.uniform(small) ** (1 / alpha[small])
    return out


def poisson(key: int, counter: int, rate: np.ndarray) -> np.ndarray:
    """A sample of Poisson(rate) per element of a vector: by products of uniform numbers below 10, by Hörmann (1993) above."""
    lanes = _Lanes(key, counter, len(rate))
    out = np.zeros(len(rate))
    few = rate < 10
    _by_products(lanes, rate, np.flatnonzero(few), out)
    _by_transformed_rejection(lanes, rate, np.flatnonzero(~few), out)
    return out


def _by_products(lanes: _Lanes, rate: np.ndarray, waiting: np.ndarray, out: np.ndarray) -> None:
    """Events of a unit process before ``rate``: uniform numbers whose product stays above exp(-rate)."""
    product = np.ones(len(rate))
    limit = np.exp(-rate)
    while waiting.size:
        product[waiting] *= lanes.uniform(waiting)
        waiting = waiting[product[waiting] > limit[waiting]]
        out[waiting] += 1


def _by_transformed_rejection(lanes: _Lanes, rate: np.ndarray, waiting: np.ndarray, out: np.ndarray) -> None:
    log_factorial = np.vectorize(lambda k: math.lgamma(k + 1), otypes=[float])
    while waiting.size:
        mean = rate[waiting]
        b = 0.931 + 2.53 * np.sqrt(mean)
        a = -0.059 + 0.02483 * b
        u = lanes.uniform(waiting) - 0.5
        v = lanes.uniform(waiting)
        edge = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a / edge + b) * u + mean + 0.43)
            at_once = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
            hopeless = (k < 0) | ((edge < 0.013) & (v > edge))
            left = np.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (edge * edge) + b))
            right = -mean + k * np.log(mean) - log_factorial(np.where(hopeless, 0, k))
        accepted = at_once | (~hopeless & (left <= right))
        out[waiting[accepted]] = k[accepted]
        waiting = waiting[~accepted]
