"""Deep chains within a budget of memory: keep the inputs of some segments, compute the inside again on the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape.core.backprop import PAIR
from gradtape.core.callsite import logger
from gradtape.core.context import activate, thread
from gradtape.core.custom import VariableWatcher, record_recomputed
from gradtape.core.op import OUTPUT
from gradtape.errors import message
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor


class _Meter(VariableWatcher):
    """Records a layer for the time that it takes to see how much its record would hold."""

    limit = 2**62

    def track(self, values: Any) -> None:
        for value in nest.flatten(values):
            if isinstance(value, Tensor) and value.dtype.is_trainable:
                value._key = value._key or object()
                self.records[value._key] = OUTPUT

    def accessed(self, variable: Any) -> None:
        super().accessed(variable)
        self.records[variable._key] = OUTPUT

    def held(self, outside: Any) -> int:
        """Bytes of the arrays that the records keep, those of the input and of variables aside."""
        seen = {id(t._array) for t in nest.flatten(outside) if isinstance(t, Tensor)}
        seen |= {id(v._tensor._array) for v in self.variables.values()}
        total = 0
        for record in self.records.values():
            for tensor in _kept(record):
                if id(tensor._array) not in seen:
                    seen.add(id(tensor._array))
                    total += tensor._array.size * tensor._array.dtype.itemsize
        return total


def _kept(record: tuple) -> list[Tensor]:
    if record[0] is None:
        return []
    if record[0] is PAIR:
        return [t for t in record[6:] if t is not None]
    return [t for value in record[5].values() for t in (value if type(value) is tuple else (value,))]


class _Segment:
    """Layers ``start`` to ``stop``, what goes into them and how much their inside holds."""

    def __init__(self, start: int, entry: Any, inside: int, variables: dict) -> None:
        self.start, self.stop = start, start + 1
        self.entry = entry
        self.inside = inside
        self.boundary = _bytes(entry)
        self.variables = variables

    def absorb(self, other: _Segment) -> None:
        """Take in the segment behind, whose input is then forgotten."""
        self.stop = other.stop
        self.inside += other.inside + other.boundary
        self.variables = {**self.variables, **other.variables}


def _bytes(values: Any) -> int:
    return sum(t._array.size * t._array.dtype.itemsize for t in nest.flatten(values) if isinstance(t, Tensor))


def _peak(segments: list[_Segment]) -> int:
    return sum(s.boundary for s in segments) + max((s.inside for s in segments), default=0)


def _shrink(segments: list[_Segment], budget: float) -> None:
    """Merge neighbours, the smallest first, while the peak is over the budget and a merger lowers it."""
    while len(segments) > 1 and _peak(segments) > budget:
        widest = max(s.inside for s in segments)
        costs = [a.inside + b.inside + b.boundary for a, b in zip(segments, segments[1:])]
        i = min(range(len(costs)), key=costs.__getitem__)
        if max(widest, costs[i]) - widest >= segments[i + 1].boundary:
            return
        segments[i].absorb(segments.pop(i + 1))


def checkpoint_sequential(layers: Sequence[Callable], x: Any, budget: float) -> Any:
    """``layers[-1](… layers[0](x))``, of which a tape holds at most ``budget`` bytes at any time, if that can be done.

    The tape keeps the inputs of a few segments; each segment is run again when the gradient reaches it, once. Which segments
    follows from the bytes that each layer's own record would hold, measured while it runs. If the whole fits the budget,
    nothing is run twice.
    """
    layers = list(layers)
    if not all(map(callable, layers)):
        raise TypeError(message("checkpoint_sequential needs a sequence of functions.", received=f"{layers!r}"))
    if not budget > 0:
        raise ValueError(message("budget must be a number of bytes above zero.", received=repr(budget)))
    x = nest.map_structure(convert_to_tensor, x)
    if not thread.recorders:
        for layer in layers:
            x = layer(x)
        return x
    segments, result = _measured(layers, x, budget)
    if not segments:
        return result
    if _peak(segments) > budget:
        logger.warning(
            "checkpoint_sequential: %d layers need about %d bytes, the budget is %d.", len(layers), _peak(segments), budget
        )
    value = segments[0].entry
    ends = [*(s.entry for s in segments[1:]), result]
    for segment, end in zip(segments, ends):
        value = record_recomputed(_chain(layers[segment.start : segment.stop]), (value,), {}, end, segment.variables)
    return value


def _measured(layers: list, x: Any, budget: float) -> tuple[list[_Segment], Any]:
    """Run the layers unrecorded, and divide them into segments on the way."""
    segments: list[_Segment] = []
    saved = thread.recorders
    for i, layer in enumerate(layers):
        meter = _Meter()
        meter.track(x)
        activate((meter,))
        try:
            y = layer(x)
        finally:
            activate(saved)
        segments.append(_Segment(i, x, meter.held(x), meter.variables))
        del meter
        _shrink(segments, budget)
        x = y
    return segments, x


def _chain(layers: list) -> Callable:
    def segment(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return segment
