"""Where the time of a tape goes: each op's kernel, and its derivative rules, run again and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradtape.core.backprop import Sweep
from gradtape.core.callsite import Place
from gradtape.core.context import suspended
from gradtape.core.op import select
from gradtape.core.tape import GradientTape
from gradtape.inspect.replay import Step, steps_of
from gradtape.inspect.tables import duration, table
from gradtape.values.tensor import wrap

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of one recorded op, in seconds; None: it could not be run again."""

    number: int
    op: str
    place: Place | None
    forward: float | None
    backward: float | None

    @property
    def total(self) -> float:
        return (self.forward or 0.0) + (self.backward or 0.0)


@dataclass(frozen=True, slots=True)
class Profile:
    """The answer of `profile`: one entry per recorded op, in order. Printed, the ops and lines that take longest."""

    entries: tuple[Timed, ...]

    @property
    def forward(self) -> float:
        return sum(entry.forward or 0.0 for entry in self.entries)

    @property
    def backward(self) -> float:
        return sum(entry.backward or 0.0 for entry in self.entries)

    def by(self, name: Callable[[Timed], str]) -> dict[str, tuple[int, float, float]]:
        """Calls, forward and backward seconds, by whatever ``name`` gives for an entry; the longest first."""
        found: dict[str, tuple[int, float, float]] = {}
        for entry in self.entries:
            count, forward, backward = found.get(name(entry), (0, 0.0, 0.0))
            found[name(entry)] = count + 1, forward + (entry.forward or 0.0), backward + (entry.backward or 0.0)
        return dict(sorted(found.items(), key=lambda item: -item[1][1] - item[1][2]))

    def __str__(self) -> str:
        parts = [f"{len(self.entries)} ops: {duration(self.forward)} forward, {duration(self.backward)} backward."]
        parts.append(_table("op", self.by(lambda entry: entry.op)))
        if any(entry.place is not None for entry in self.entries):
            parts.append(_table("line", self.by(lambda entry: f"{entry.place}: {entry.place.text}" if entry.place else "")))
        missing = sum(entry.forward is None for entry in self.entries)
        if missing:
            parts.append(f"{missing} ops could not be run again; GradientTape(trace='values') keeps their inputs.")
        return "\n\n".join(parts)

    __repr__ = __str__


def _table(title: str, found: dict[str, tuple[int, float, float]]) -> str:
    rows = [
        (name, str(count), duration(forward), duration(backward))
        for name, (count, forward, backward) in list(found.items())[:_SHOWN]
    ]
    return table((title, "calls", "forward", "backward"), rows, left=(title,))


def profile(tape: GradientTape, repeat: int = 3) -> Profile:
    """The time of each recorded op's kernel, and of its derivative rules for a cotangent of ones.

    Each is run ``repeat`` times, and the shortest counts. Custom gradients are called, too. Nothing is used up.
    """
    steps = steps_of(tape)
    with suspended():
        entries = [Timed(s.number, s.op.name, s.place, forward_seconds(s, repeat), _backward(s, repeat)) for s in steps]
    return Profile(tuple(entries))


def _best(function: Callable[[], Any], repeat: int) -> float:
    times = []
    for _ in range(max(repeat, 1)):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def forward_seconds(step: Step, repeat: int) -> float | None:
    """The time of an op's kernel; None if it cannot be run again."""
    if step.is_custom and step.function is not None:
        values = [wrap(v) if hasattr(v, "dtype") else v for v in step.arguments]
        return _best(lambda: step.function(*values), repeat)  # type: ignore[misc]
    if not step.is_known:
        return None
    xp = select([wrap(value) for value in step.values])
    with xp.scope():
        return _best(lambda: step.op.kernel(xp, *step.values, **step.attributes), repeat)


def _backward(step: Step, repeat: int) -> float | None:
    known = [value for value in (*step.values, *step.results) if hasattr(value, "dtype")]
    xp = select([wrap(value) for value in known])
    outputs = dict(zip(step.outputs, step.general[8]))
    needed = {key for key in step.inputs if key}

    def pull() -> None:
        sweep = Sweep(xp, True, True, needed)
        sweep.cotangents = {key: xp.ones(shape=s, dtype=d) for key, (s, d) in outputs.items() if key is not None}
        sweep.run({step.key: step.record}, ())

    with xp.scope():
        return _best(pull, repeat)
