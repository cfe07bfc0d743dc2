"""Where NaN came from: the first op, forward or backward, that made a NaN or an infinity of finite numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.core.asking import leaves, ones_of
from gradtape.core.callsite import Place
from gradtape.core.context import suspended
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.observed import Observer, outputs_of
from gradtape.core.tape import GradientTape
from gradtape.inspect.graph import records_of
from gradtape.inspect.replay import Step, steps_of
from gradtape.inspect.statistics import Statistics, describe
from gradtape.values.tensor import Tensor

_SHOWN = 5  # indices
_MORE = "GradientTape(trace='values') gives lines, and the values that no rule keeps"


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of an array that went into an op, or came out of it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    statistics: Statistics | None

    def __str__(self) -> str:
        s = self.statistics
        text = f"{self.name}: {self.dtype} {self.shape}"
        if s is None or not s.size:
            return text
        bad = [f"{count} {word}" for count, word in ((s.nans, "NaN"), (s.infinities, "Inf")) if count]
        finite = f"{s.low:.6g} to {s.high:.6g}, mean {s.mean:.6g}" if s.size > s.nonfinite else "nothing finite"
        return f"{text}: {finite}" + (f"; {' and '.join(bad)} of {s.size}" if bad else "")


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The answer of `find_nonfinite`. It is false if all values and gradients are finite."""

    direction: str = ""  # "forward", "backward" (a derivative rule), "input" (it came from outside), or "" if there is none
    op: str = ""
    number: int | None = None  # of the op among those that the tape recorded
    place: Place | None = None  # of the op's call
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    indices: tuple[tuple[int, ...], ...] = ()  # of the first elements that are not finite, in the first such output
    path: tuple[str, ...] = ()  # from a source to this op
    reached: bool = True  # whether the target, or a gradient, is not finite because of it
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.direction)

    def __str__(self) -> str:
        if not self:
            return "All values and gradients are finite." + (f"\n  Note:     {self.note}" if self.note else "")
        made = {
            "forward": f"{self.op} made the first NaN or infinity",
            "backward": f"the derivative rule of {self.op} made the first NaN or infinity",
            "input": f"{self.op} was given a NaN or infinity that no op of this tape made",
        }[self.direction]
        where = "" if self.place is None else f", called at {self.place}: {self.place.text}"
        rows = [("Inputs", str(v)) for v in self.inputs] + [("Outputs", str(v)) for v in self.outputs]
        if self.indices:
            rows.append(("At", ", ".join(str(list(index)) if index else "its one number" for index in self.indices)))
        if self.path:
            rows.append(("Path", " → ".join(self.path)))
        if not self.reached:
            rows.append(("Effect", "none: neither the target nor a gradient has it"))
        if self.note:
            rows.append(("Note", self.note))
        lines = [f"  {name + ':' if i == 0 or rows[i - 1][0] != name else '':<9} {text}" for i, (name, text) in enumerate(rows)]
        return "\n".join([f"{made}{where}", *lines])

    __repr__ = __str__


def find_nonfinite(tape: GradientTape, target: Any, sources: Any = None) -> NonFinite:
    """The first op that made a NaN or infinity of finite values, on the way to the target or back to the sources.

    If the target is finite and so are the gradients, an op whose NaN or infinity was masked is named, with ``reached=False``.
    The sources are all watched values if none are given. Nothing is used up.
    """
    targets = leaves(target, "target")
    records = records_of(tape)
    given = [] if sources is None else leaves(sources, "source")
    keys = [s._key for s in given] or [key for key, record in records.items() if record[0] is None]
    steps = _ancestors(steps_of(tape, [*targets, *given]), {t._key for t in targets})
    names = {key: tape.variables[key].name if key in tape.variables else "source" for key in keys if key is not None}
    search = _Search(steps, names, _MORE if tape.trace is None or tape.line is not None else "")
    if any(is_bad(t) for t in targets):
        return search.behind({t._key for t in targets if is_bad(t)})
    found = _Backward()
    _swept(tape, records, targets, keys, found)
    if found.key is not None:
        step = next(step for step in steps if found.key in step.outputs)
        if any(map(is_bad, (*step.values, *step.results))):
            bad = {k for k, v in zip((*step.inputs, *step.outputs), (*step.values, *step.results)) if k and is_bad(v)}
            return search.behind(bad) if bad else search.given(step)
        return search.report(step, "backward", found.cotangents, found.gradients)
    for step in steps:
        if any(map(is_bad, step.results)) and not any(map(is_bad, step.values)):
            return search.report(step, "forward", reached=False)
    return NonFinite(note=search.note if any(value is None for step in steps for value in step.results) else "")


def _ancestors(steps: list[Step], wanted: set) -> list[Step]:
    """The steps that the wanted keys depend on."""
    kept = []
    for step in reversed(steps):
        if not wanted.isdisjoint(step.outputs):
            wanted.update(step.inputs)
            wanted.discard(None)
            wanted.discard(False)
            kept.append(step)
    return kept[::-1]


def is_bad(value: Any) -> bool:
    """Whether a value is known to have a NaN or an infinity."""
    array = _array(value)
    if array is None or array.dtype.kind in "biuOSU" or not array.size:
        return False
    with np.errstate(all="ignore"):
        return not np.isfinite(array).all()


def _array(value: Any) -> np.ndarray | None:
    """A value as a NumPy array; None if its numbers are not known."""
    if isinstance(value, IndexedSlices):
        value = value._values
    value = getattr(value, "_tensor", value)
    if isinstance(value, Tensor):
        value = value._array
    if value is None or type(value).__name__.endswith("Tracer") or not hasattr(value, "dtype") or hasattr(value, "level"):
        return None
    return np.asarray(value)


def described(name: str, value: Any) -> Value | None:
    array = _array(value)
    return None if array is None else Value(name, array.shape, str(array.dtype), describe(array))


def indices_of(values: Iterable) -> tuple[tuple[int, ...], ...]:
    """Where the first elements are that are not finite, in the first value that has any."""
    for value in values:
        if is_bad(value):
            found = np.argwhere(~np.isfinite(_array(value)))[:_SHOWN]  # type: ignore[arg-type]
            return tuple(tuple(map(int, index)) for index in found)
    return ()


class _Search:
    """What is asked about the steps that lead to a target."""

    def __init__(self, steps: list[Step], sources: dict[Any, str], note: str) -> None:
        self.steps, self.sources, self.note = steps, sources, note
        self._makers = {key: step for step in steps for key in step.outputs if key is not None}

    def behind(self, keys: set) -> NonFinite:
        """The earliest op on the way to values that are not finite whose inputs all are."""
        reached: list[Step] = []
        waiting = list(keys)
        seen = set(keys)
        while waiting:
            step = self._makers.get(waiting.pop())
            if step is None:
                continue
            reached.append(step)
            for key, value in zip(step.inputs, step.values):
                if key and key not in seen and (value is None or is_bad(value)):  # what is not known may be it
                    seen.add(key)
                    waiting.append(key)
        reached.sort(key=lambda step: step.number)
        for step in reached:
            if any(map(is_bad, step.values)):
                return self.given(step)
            if any(map(is_bad, step.results)):
                return self.report(step, "forward")
        return NonFinite("input", "the tape", note=self.note)

    def given(self, step: Step) -> NonFinite:
        return self.report(step, "input", outputs=[v for v in step.values if is_bad(v)])

    def report(self, step: Step, direction: str, cotangents: Any = (), outputs: Any = None, reached: bool = True) -> NonFinite:
        inputs = [described(step.named(i), value) for i, value in enumerate(step.values)]
        inputs += [described("cotangent", g) for g in cotangents]
        made = step.results if outputs is None else outputs
        names = ["gradient" if direction == "backward" else "output"] * len(made)
        shown = [] if direction == "input" else [described(name, value) for name, value in zip(names, made)]
        return NonFinite(
            direction, step.op.name, step.number, step.place,
            tuple(v for v in inputs if v is not None), tuple(v for v in shown if v is not None), indices_of(made),
            self._path(step), reached, self.note if step.place is None else "",
        )  # fmt: skip

    def _path(self, step: Step) -> tuple[str, ...]:
        """A shortest way from a source to this step."""
        readers: dict[Any, Step] = {}
        waiting = [step]
        for current in waiting:
            for key in current.inputs:
                if not key or key in readers:
                    continue
                readers[key] = current
                if key in self.sources:
                    return (self.sources[key], *self._names(key, readers, step))
                if key in self._makers:
                    waiting.append(self._makers[key])
        return ()

    def _names(self, key: Any, readers: dict, last: Step) -> list[str]:
        names = []
        while True:
            step = readers[key]
            names.append(step.op.name if step.place is None else f"{step.op.name} ({step.place})")
            if step is last:
                return names
            key = next(k for k in step.outputs if k in readers)


class _Backward(Observer):
    """Finds the first record whose rules make a NaN or infinity of finite cotangents."""

    key: Any = None
    cotangents: list = []
    gradients: list = []

    def before(self, sweep: Any, key: Any, record: tuple) -> None:
        if self.key is None:
            self._given = [sweep.cotangents[k] for k in outputs_of(key, record) if k in sweep.cotangents]
            self._present = {k: is_bad(sweep.cotangents.get(k)) for k in record[2]}

    def after(self, sweep: Any, key: Any, record: tuple) -> None:
        if self.key is not None or any(map(is_bad, self._given)):
            return
        made = [sweep.cotangents[k] for k, was_bad in self._present.items() if not was_bad and is_bad(sweep.cotangents.get(k))]
        if made:
            self.key, self.cotangents, self.gradients = key, self._given, made


def _swept(tape: GradientTape, records: dict, targets: list, keys: list, observer: Observer) -> None:
    """Pull gradients back from the targets, which uses nothing up."""
    sources = [_Source(key) for key in keys]
    trace = tape.trace
    saved = tape.records, tape.observers, () if trace is None else trace.asked
    tape.records, tape.observers = records, (observer,)
    try:
        with suspended():
            tape._pull_back(targets, [ones_of(t) for t in targets], sources, last=False)
    finally:
        tape.records, tape.observers = saved[:2]
        if trace is not None:
            trace.asked = saved[2]


class _Source:
    """Stands for a source of which only the key is known."""

    def __init__(self, key: Any) -> None:
        self._key = key


def replayed(function: Callable, args: tuple, kwargs: dict) -> NonFinite:
    """The first op that makes a NaN or infinity when a function is run eagerly; variables are left as they are."""
    from gradtape.function.state import State
    from gradtape.ops.execution import settings
    from gradtape.ops.numerics import watched

    first: list[NonFinite] = []
    places: dict[tuple[int, int], tuple[Any, Place]] = {}  # by op and array: the array, and where that op was called on it

    def look(op: Any, direction: str, given: list, made: list, place: Place) -> None:
        if direction == "forward":
            places.update({(id(op), id(a)): (a, place) for a in (*given, *made)})
        else:
            place = next((places[id(op), id(a)][1] for a in given if (id(op), id(a)) in places), place)
        if not first and any(map(is_bad, made)) and not any(map(is_bad, given)):
            names = ["cotangent"] * (direction == "backward") + [f"value {i}" for i in range(len(given))]
            inputs = tuple(v for name, a in zip(names, given) if (v := described(name, a)) is not None)
            word = "gradient" if direction == "backward" else "output"
            outputs = tuple(v for a in made if (v := described(word, a)) is not None)
            first.append(NonFinite(direction, op.name, None, place, inputs, outputs, indices_of(made)))

    saved, settings.run_eagerly = settings.run_eagerly, True
    try:
        with State(may_create=True), watched(look):
            function(*args, **kwargs)
    finally:
        settings.run_eagerly = saved
    return first[0] if first else NonFinite()
