"""What can be said of an array in a few numbers: extremes, mean, norm, zeros, non-finite values, a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.variable import Variable
from gradtape.values.tensor import Tensor

BINS = 24
_LARGEST = float(np.finfo(np.float64).max)
_SAMPLED = 1 << 17  # a histogram of more elements is one of a regular sample of them


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the finite elements, but for ``size`` and the two counts of those that are not finite."""

    size: int
    low: float
    high: float
    mean: float
    deviation: float
    norm: float
    zeros: float  # the fraction of elements that are exactly zero
    nans: int
    infinities: int
    counts: tuple[int, ...]  # how many elements fall into each of equal parts of low … high

    @property
    def nonfinite(self) -> int:
        return self.nans + self.infinities

    @property
    def root_mean_square(self) -> float:
        finite = self.size - self.nonfinite
        return self.norm / finite**0.5 if finite else 0.0


def is_tracer(array: Any) -> bool:
    """Whether it stands for an array that exists only when a compiled program runs."""
    return type(array).__name__.endswith("Tracer")


def numbers(value: Any) -> np.ndarray | None:
    """A tensor, variable, sparse gradient or array as real NumPy numbers (complex: moduli); None if it has none to show."""
    if isinstance(value, IndexedSlices):
        value = value._values
    if isinstance(value, Variable):
        value = value._tensor
    if isinstance(value, Tensor):
        value = value._array
    if value is None or is_tracer(value) or not hasattr(value, "dtype") or hasattr(value, "level"):
        return None
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        return None
    if array.dtype.kind == "c":
        return np.abs(array)
    if array.dtype.kind == "f" and array.dtype.itemsize >= 4:
        return array
    return array.astype(np.float64)  # integers, booleans, half types


def describe(value: Any, bins: int = BINS) -> Statistics | None:
    """The statistics of a value; None if its numbers are not known (a tracer) or it has none (strings)."""
    array = numbers(value)
    if array is None:
        return None
    with np.errstate(all="ignore"):
        return _described(array.ravel(), bins)


def _described(array: np.ndarray, bins: int) -> Statistics:
    size = array.size
    nans = infinities = 0
    scale = 1.0
    if not np.isfinite(np.dot(array, array)):  # something is not finite, or its square is not
        finite = np.isfinite(array)
        nans = int(np.isnan(array).sum())
        infinities = size - int(finite.sum()) - nans
        array = array[finite].astype(np.float64)
        scale = float(np.abs(array).max(initial=0.0)) or 1.0
    if not array.size:
        return Statistics(size, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, nans, infinities, ())
    low, high = float(array.min()), float(array.max())
    scaled = array if scale == 1.0 else array / scale
    moments = scaled.mean(dtype=np.float64), scaled.std(dtype=np.float64), np.dot(scaled, scaled) ** 0.5
    mean, deviation, norm = (min(max(float(m) * scale, -_LARGEST), _LARGEST) for m in moments)
    zeros = float(array.size - np.count_nonzero(array)) / size
    counts = histogram(array, low, high, bins)
    return Statistics(size, low, high, mean, deviation, norm, zeros, nans, infinities, counts)


def histogram(array: np.ndarray, low: float, high: float, bins: int) -> tuple[int, ...]:
    """How many elements fall into each of ``bins`` equal parts of low … high; a third of the time of np.histogram."""
    if array.size > _SAMPLED:
        array = array[:: array.size // _SAMPLED]
    if not low < high:
        return (int(array.size),)
    if not np.isfinite(high - low):
        array, low, high = array / 4, low / 4, high / 4
    places = ((array - low) / (high - low) * bins).astype(np.intp)
    return tuple(np.bincount(np.clip(places, 0, bins - 1), minlength=bins).tolist())


def dead_units(value: Any) -> float | None:
    """The fraction of units, along the last axis, that are zero for every example."""
    array = numbers(value)
    if array is None or not array.size:
        return None
    alive = array.any(axis=tuple(range(array.ndim - 1)))
    return 1 - np.count_nonzero(alive) / alive.size
