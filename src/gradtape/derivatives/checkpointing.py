"""Deep chains within a budget of memory: keep the inputs of some segments, compute the inside again on the way back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.core.backprop import PAIR
from gradtape.core.callsite import logger
from gradtape.core.context import activate, thread
from gradtape.core.custom import VariableWatcher, record_recomputed
from gradtape.core.op import OUTPUT
from gradtape.errors import message
from gradtape.values import nest
from gradtape.values.convert import NUMBER, convert_to_tensor
from gradtape.values.tensor import Tensor


def checkpoint_sequential(layers: Sequence[Callable], x: Any, budget: float) -> Any:
    """``layers[-1](… layers[0](x))``, of which a tape holds at most about ``budget`` bytes at any time, if that can be done.

    What does not fit is divided into segments, of which only the inputs are kept; each is run again when the gradient reaches
    it, once. Which segments follows from the bytes that each layer's own records hold, measured while it runs. The last
    layers, as many as fit, are recorded as ever: if all fit, nothing runs twice. The least that n equal layers need is the
    memory of about 2√n of them. Layers must give the same values when they run again.
    """
    layers = list(layers)
    if not all(map(callable, layers)):
        text = "checkpoint_sequential needs a sequence of functions."
        raise TypeError(message(text, received=f"{layers!r}", fix="[layer1, layer2, …]"))
    if not budget > 0:
        text = "budget must be a number of bytes above zero."
        raise ValueError(message(text, received=repr(budget), expected="bytes that may be held: 2**20"))
    x = nest.map_structure(convert_to_tensor, x)
    if not thread.recorders:
        return _chain(layers)(x)
    segments, result = _run(layers, x, budget)
    if _peak(segments) > budget:
        needed = _peak(segments)
        logger.warning("checkpoint_sequential: %d layers need about %d bytes, the budget is %d.", len(layers), needed, budget)
    value = x
    for segment, end in zip(segments, [*(s.entry for s in segments[1:]), result]):
        value = segment.recorded(layers, value, end)
    return value


def _chain(layers: list) -> Callable:
    def segment(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return segment


def _run(layers: list, x: Any, budget: float) -> tuple[list[_Segment], Any]:
    """Run the layers, known to no recorder yet, and decide on the way what is kept of them."""
    segments: list[_Segment] = []
    saved = thread.recorders
    for i, layer in enumerate(layers):
        meter = _Meter(saved, x)
        activate((meter,))
        try:
            y = layer(x)
        finally:
            activate(saved)
        segments.append(_Segment(i, x, y, meter))
        _shrink(segments, budget)
        x = y
    return segments, x


class _Known(dict):
    """The records of a meter, which also knows what the recorders around it know."""

    def __init__(self, recorders: tuple) -> None:
        super().__init__()
        self._around = [recorder.records for recorder in recorders]

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(key) or self._is_foreign(key)

    def _is_foreign(self, key: Any) -> bool:
        return key is not None and any(key in records for records in self._around)

    def reach_outside(self) -> bool:
        """Whether a record uses something tracked that is neither the layer's input nor a variable."""
        used = {k for record in self.values() if record[0] is not None for k in record[2]}
        return any(map(self._is_foreign, used - self.keys()))


class _Meter(VariableWatcher):
    """Records one layer, to see what a tape would hold of it."""

    limit = 2**62

    def __init__(self, recorders: tuple, x: Any) -> None:
        super().__init__()
        self.records: _Known = _Known(recorders)
        for value in nest.flatten(x):
            if isinstance(value, Tensor) and value.dtype.is_trainable:
                if value._key is None or value._key is NUMBER:
                    value._key = object()
                self.records[value._key] = OUTPUT

    def accessed(self, variable: Any) -> None:
        super().accessed(variable)
        self.records[variable._key] = OUTPUT


class _Segment:
    """Layers ``start`` to ``stop``: what goes into them, how many bytes that is, and how many their inside holds."""

    def __init__(self, start: int, entry: Any, result: Any, meter: _Meter) -> None:
        self.start, self.stop = start, start + 1
        self.entry = entry
        self.boundary = sum(size for _, size in _owners(_tensors(entry)))
        self.variables = meter.variables
        self.records: dict | None = meter.records  # None: to be run again
        self.pinned = meter.records.reach_outside()  # running again would not reach what it uses from outside
        outside = {owner for owner, _ in _owners([*_tensors(entry), *_tensors(result)])}
        outside |= {owner for owner, _ in _owners([v._tensor for v in meter.variables.values()])}
        kept = dict(_owners(t for record in meter.records.values() for t in _kept(record)))
        self.inside = sum(size for owner, size in kept.items() if owner not in outside)

    def absorb(self, other: _Segment) -> None:
        """Take in the segment behind, whose input is then forgotten."""
        self.stop = other.stop
        self.inside += other.inside + other.boundary
        self.variables = {**self.variables, **other.variables}

    def recorded(self, layers: list, value: Any, end: Any) -> Any:
        """Put the segment into the active recorders, from ``value`` to ``end``; gives the end as they know it."""
        if self.records is None:
            return record_recomputed(_chain(layers[self.start : self.stop]), (value,), {}, end, self.variables)
        for variable in self.variables.values():
            for recorder in thread.recorders:
                recorder.accessed(variable)
        renamed = _renamed(self.entry, value)
        for key, record in self.records.items():
            if record is not OUTPUT and record[0] is not None:
                inputs = tuple(renamed.get(k, k) for k in record[2])
                _store(key, (*record[:2], inputs, *record[3:]))
        return end


def _renamed(entry: Any, value: Any) -> dict:
    """The tensors of ``entry`` take over the identity of those in ``value``; gives old keys and new ones."""
    renamed = {}
    for old, new in zip(_tensors(entry), _tensors(value)):
        if old is not new:
            renamed[old._key] = new._key
            old._key = new._key
    return renamed


def _store(key: Any, record: tuple) -> None:
    """Append a record to each recorder that tracks one of its inputs, as the op would have done."""
    keys = (key,) if record[0] is PAIR else [k for k in record[7] if k is not None]
    for recorder in thread.recorders:
        if any(k in recorder.records for k in record[2]):
            for k, stored in zip(keys, [record, *[OUTPUT] * len(keys)]):
                recorder.records[k] = stored


def _tensors(values: Any) -> list[Tensor]:
    return [t for t in nest.flatten(values) if isinstance(t, Tensor)]


def _kept(record: tuple) -> list[Tensor]:
    if record[0] is None:
        return []
    if record[0] is PAIR:
        return [t for t in record[6:] if t is not None]
    return [t for value in record[5].values() for t in (value if type(value) is tuple else (value,))]


def _owners(tensors: Any) -> Iterator[tuple[int, int]]:
    """For each tensor the identity and the bytes of the memory that it keeps alive."""
    for tensor in tensors:
        array = tensor._array
        while isinstance(getattr(array, "base", None), np.ndarray):
            array = array.base
        yield id(array), array.size * array.dtype.itemsize


# Which segments


def _peak(segments: list[_Segment]) -> int:
    """Bytes at the worst moment: all inputs of segments, and what is recorded or, later, the largest that runs again."""
    recorded = sum(s.inside for s in segments if s.records is not None and not s.pinned)
    again = max((s.inside for s in segments if s.records is None), default=0)
    return sum(s.boundary + s.inside * s.pinned for s in segments) + max(recorded, again)


def _shrink(segments: list[_Segment], budget: float) -> None:
    """Until the budget is met: join segments where that pays, or give up the oldest records."""
    while (peak := _peak(segments)) > budget:
        inputs = sum(s.boundary for s in segments if s.records is None)
        exhausted = all(s.records is None or s.pinned for s in segments)
        if (exhausted or 2 * inputs > peak) and _join(segments) < 0.9 * peak:
            continue
        if exhausted:
            return
        next(s for s in segments if s.records is not None and not s.pinned).records = None


def _join(segments: list[_Segment]) -> int:
    """Join neighbours that run again up to the size that gives the lowest peak; gives that peak."""
    again = [s for s in segments if s.records is None]
    sizes = [max((s.inside for s in again), default=0)]
    whole = sum(s.inside + s.boundary for s in again)
    while sizes[-1] < whole:
        sizes.append(int(sizes[-1] * 1.2) + 1)
    best = min(sizes, key=lambda size: _peak(_joined(segments, size)))
    segments[:] = _joined(segments, best)
    return _peak(segments)


def _joined(segments: list[_Segment], size: int) -> list[_Segment]:
    """Copies of the segments, neighbours that run again joined while their inside stays within ``size``."""
    found: list[_Segment] = []
    for segment in segments:
        last = found[-1] if found else segment
        if found and last.records is segment.records is None and last.inside + segment.inside + segment.boundary <= size:
            last.absorb(segment)
        else:
            found.append(copy.copy(segment))
    return found
