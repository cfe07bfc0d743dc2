"""Linear maps along one axis whose outputs each read a few inputs: resampling, blurring, pooling.

Such a map is a sparse matrix, kept as the taps of its rows. Its transpose is a map of the same kind, so that the
derivative rule is the op's own kernel, and an inf or nan touches only the outputs that read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.op import op


class Taps:
    """Output i is Σₖ weights[i, k] · input[indices[i, k]]; ``length`` is the number of inputs.

    >>> taps = Taps([[0, 1], [1, 2]], [[0.5, 0.5], [0.5, 0.5]], 3)
    >>> taps.transpose.indices.tolist(), taps.transpose.weights.tolist()
    ([[0, 0], [0, 1], [1, 1]], [[0.5, 0.0], [0.5, 0.5], [0.5, 0.0]])
    """

    __slots__ = ("_transpose", "indices", "length", "weights")

    def __init__(self, indices: Any, weights: Any, length: int) -> None:
        self.indices = np.asarray(indices, np.int64)
        self.weights = np.asarray(weights)
        self.length = length
        self._transpose: Taps | None = None

    @property
    def is_identity(self) -> bool:
        """Whether every output is the input at its own place."""
        size = len(self.indices)
        here = self.indices == np.arange(size)[:, None]
        own = np.where(here, self.weights, 0).sum(1)
        return size == self.length and bool((own == 1).all()) and not self.weights[~here].any()

    @property
    def transpose(self) -> Taps:
        """The taps of the transposed matrix; rows that are shorter than the longest end in taps of weight 0."""
        if self._transpose is None:
            outputs, places = np.nonzero(self.weights)
            inputs = self.indices[outputs, places]
            order = np.argsort(inputs, kind="stable")
            inputs, outputs, places = inputs[order], outputs[order], places[order]
            counts = np.bincount(inputs, minlength=self.length)
            starts = np.cumsum(counts) - counts
            column = np.arange(len(inputs)) - starts[inputs]
            width = int(counts.max(initial=0))
            # A tap of weight 0 reads what its row reads anyway: 0 · nan must not spread to other rows.
            first = outputs[np.minimum(starts, len(outputs) - 1)] if len(outputs) else np.zeros(self.length, np.int64)
            indices = np.repeat(first[:, None], width, 1)
            weights = np.zeros((self.length, width), self.weights.dtype)
            indices[inputs, column] = outputs
            weights[inputs, column] = self.weights[outputs, places]
            self._transpose = Taps(indices, weights, len(self.indices))
            self._transpose._transpose = self
        return self._transpose


def _read(xp, x, indices, axis):
    """x at the indices: a slice, which is not copied, where they are evenly spaced."""
    steps = np.diff(indices)
    if len(steps) and steps[0] > 0 and (steps == steps[0]).all():
        where = slice(int(indices[0]), int(indices[-1]) + 1, int(steps[0]))
        return xp.getitem(x, index=(*(slice(None),) * axis, where))
    return xp.take(x, np.ascontiguousarray(indices), axis=axis)


def _applied(xp, x, taps, axis):
    dtype, shape = xp.dtype(x), xp.shape(x)
    column = (len(taps.indices), *[1] * (len(shape) - axis - 1))
    total = None
    for indices, weights in zip(taps.indices.T, taps.weights.T):
        term = _read(xp, x, indices, axis)
        if not (weights == 1).all():
            term = xp.multiply(term, weights.astype(dtype).reshape(column))
        total = term if total is None else xp.add(total, term)
    if total is None:
        return xp.zeros(shape=(*shape[:axis], len(taps.indices), *shape[axis + 1 :]), dtype=dtype)
    return total


def _in_float32(xp, x, taps, axis):
    """Half precision is summed in float32."""
    dtype = xp.dtype(x)
    if dtype.itemsize != 2 or dtype.kind in "iu":
        return _applied(xp, x, taps, axis)
    return xp.astype(_applied(xp, xp.astype(x, dtype=np.dtype(np.float32)), taps, axis), dtype=dtype)


@op
def weigh_taps(xp, x, *, taps, axis):
    """The map of ``taps`` along an axis (not negative)."""
    return _in_float32(xp, x, taps, axis)


weigh_taps.vjp(lambda xp, g, *, taps, axis: _in_float32(xp, g, taps.transpose, axis))
