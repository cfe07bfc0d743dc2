"""``GradientTape(check_numerics=True)``: the first op that makes a NaN or infinity raises, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.callsite import place_of, site
from gradtape.core.observed import Observer, outputs_of
from gradtape.core.trace import Entry, Trace
from gradtape.errors import InvalidArgumentError
from gradtape.inspect.nonfinite import is_bad
from gradtape.ops.numerics import nonfinite_text
from gradtape.values.tensor import Tensor


def check(entry: Entry) -> None:
    """Raise if an op that a tape has just recorded gave a result that is not finite."""
    if entry.op is None:
        return
    for i, array in enumerate(entry.output_arrays):
        if is_bad(array):
            _refuse(entry, "output", i, len(entry.output_arrays), array, entry.input_arrays)


class SweepCheck(Observer):
    """Raises in a sweep of a tape when a derivative rule gives what is not finite."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def before(self, sweep: Any, key: Any, record: tuple) -> None:
        self._given = [sweep.cotangents[k] for k in outputs_of(key, record) if k in sweep.cotangents]

    def after(self, sweep: Any, key: Any, record: tuple) -> None:
        if not self._given:
            return
        for i, input_key in enumerate(record[2]):
            g = sweep.cotangents.get(input_key)
            if is_bad(g):
                entry = self._trace.entries[key]
                _refuse(entry, "gradient", i, len(entry.inputs), g, (*entry.input_arrays, *self._given))


def _refuse(entry: Entry, what: str, position: int, count: int, value: Any, given: tuple) -> None:
    array = value._array if isinstance(value, Tensor) else value
    array = np.asarray(getattr(array, "_values", array))
    place = entry.place or place_of(*site(2))
    shown = [x for x in given if isinstance(x, np.ndarray)]
    raise InvalidArgumentError(nonfinite_text(entry.op, what, position, count, array, shown, place))
