"""`tape.explain`: why the gradient of a target by a source is None or zero.

What a tape recorded decides first: cuts that lie between source and target are proven. Where the value left the tape, nobody
can prove that it came back, so the exits that the source reached are named. What the tape cannot have seen, a name bound again
or a value computed too early, is looked up in the user's source.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from gradtape.core.asking import leaves, ones_of, shape_of
from gradtape.core.backprop import Sweep
from gradtape.core.callsite import Place, place_of
from gradtape.core.context import suspended
from gradtape.core.cuts import Cut, Exit, Severed
from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.observed import UNANSWERED, Observer, outputs_of
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.inspect.causes import Cause, Finding, Report
from gradtape.inspect.paths import Paths
from gradtape.inspect.source import Surroundings
from gradtape.values import dtypes
from gradtape.values.places import is_ours

_COMPARISONS = frozenset("greater greater_equal less less_equal equal not_equal logical_and logical_or logical_not".split())
_BRANCHES = ("if ", "elif ", "while ", "assert ")
_TELLING = ("print(", "log")  # lines that show a value, and compute nothing with it
_SHAPES = frozenset("shape size rank zeros_like ones_like".split())  # what nobody expects a gradient of


def explain(tape: GradientTape, target: Any, sources: Any) -> Report:
    """Why the gradient of ``target`` by each of ``sources`` is None or exactly zero."""
    if target is None:
        raise TypeError(message("explain needs a target.", received="None", expected="the tensor that gradient was asked for"))
    if tape.records is None and tape._used is None:
        raise RuntimeError(
            message(
                "This GradientTape has recorded nothing.",
                received="a tape that was never entered",
                fix="with tape: … around what is to be differentiated",
            )
        )
    flat = leaves(sources, "source")
    return _Explanation(tape, leaves(target, "target"), sys._getframe(1)).report(flat)


def explain_latest(variables: list[Variable]) -> Report | None:
    """The same for the tape that last gave None for all of these variables; None if there is none any more."""
    tape = UNANSWERED[0]()
    if tape is None or tape._remains is None or not {v._key for v in variables} <= tape._remains.missing:
        return None
    return _Explanation(tape, tape._remains.targets, sys._getframe(1)).report(variables)


class _Watcher(Observer):
    """Sees where a sweep gives nothing, and where a cotangent becomes zero."""

    def __init__(self) -> None:
        self.blocked: list[tuple] = []
        self.zeros: dict[Any, Any] = {}  # a key whose cotangent is zero, and the output of the op that made it so
        self._alive: list = []

    def before(self, sweep: Sweep, key: Any, record: tuple) -> None:
        gs = [sweep.cotangents.get(k) for k in outputs_of(key, record)]
        self._alive = [g for g in gs if g is not None and not _is_zero(g)]

    def after(self, sweep: Sweep, key: Any, record: tuple) -> None:
        for k in record[2] if self._alive else ():
            g = sweep.cotangents.get(k)
            if g is not None and _is_zero(g):
                self.zeros[k] = key

    def finish(self, sweep: Sweep) -> None:
        self.blocked = sweep.blocked


def _is_zero(g: Any) -> bool:
    """Whether a cotangent is exactly zero; one that exists only when a compiled program runs is not."""
    if isinstance(g, IndexedSlices):
        g = g._values
    array = getattr(g, "_array", g)
    return isinstance(array, (np.ndarray, np.generic)) and not array.any()


class _Explanation:
    """One question to a tape."""

    def __init__(self, tape: GradientTape, targets: list, frame: FrameType) -> None:
        self.tape, self.targets = tape, targets
        self.paths = Paths(tape)
        self.entered = None if is_ours(tape._entered[0].co_filename) else _place(tape._entered)
        self.code = Surroundings(tape._entered, frame)
        self.keys = [target._key for target in targets]
        self.behind = self.paths.before(self.keys)  # the targets, and all that they were computed from
        self.roots = self.paths.cuts(self.behind)
        self.watcher = _Watcher()
        remains = tape._remains
        asked = remains is not None and {*map(id, remains.targets)} == {*map(id, targets)}
        self.remains = remains if asked else None  # of the very call that gave None

    def report(self, sources: list) -> Report:
        gradients = self._gradients(sources)
        missing = [(source, g) for source, g in zip(sources, gradients) if not g]
        return Report(tuple(self._none(s) if g is None else self._zero(s) for s, g in missing), len(sources))

    def _gradients(self, sources: list) -> list:
        """For each source None, 0 or 1: no gradient, zeros, or one that needs no explanation."""
        tape = self.tape
        if not self.paths.is_whole:
            if self.remains is None:
                return [None] * len(sources)
            self.watcher.blocked = self.remains.blocked
            return [None if s._key in self.remains.missing else 1 for s in sources]
        state = tape.__dict__
        kept: dict[str, Any] = {name: state[name] for name in ("records", "observers", "_remains") if name in state}
        asked = tape.trace.asked if tape.trace is not None else ()
        tape.records, tape.observers = self.paths.records, (self.watcher,)
        try:
            with suspended():
                seeds = [ones_of(target) for target in self.targets]
                found = tape._pull_back(self.targets, seeds, sources, last=False)
        finally:  # as if nobody had asked
            del tape.observers, tape.records
            tape._remains = None
            state.update(kept)
            if tape.trace is not None:
                tape.trace.asked = asked
        return [None if g is None else 1 - _is_zero(g) for g in found]

    # One source

    def _finding(
        self, source: Any, cause: Cause, place: Place | None = None, detail: str = "", gradient: str = "None"
    ) -> Finding:
        return Finding(source, self._name(source), gradient, cause, place, detail)

    def _name(self, source: Any) -> str:
        names = self.code.names(source)
        shape = shape_of(source)  # that of a variable may be unknown
        if isinstance(source, Variable):
            return f"variable {source.name!r} {source.dtype.name} {shape}"
        return f"{names[0] if names else 'tensor'} {source.dtype.name} {shape}"

    def _none(self, source: Any) -> Finding:
        if not source.dtype.is_trainable:
            return self._finding(source, Cause.DTYPE, self.entered, f"the source itself is {source.dtype.name}")
        if not self.paths.is_whole and self.remains is None:
            at = self.tape._used
            return self._finding(source, Cause.USED, self.entered if is_ours(at[0].co_filename) else _place(at))
        key = source._key
        if not self.paths.knows(key):
            return self._unknown(source)
        reached = self.paths.after([key])
        attempts = (self._proven, self._renamed, self._watched_late, self._left, self._elsewhere, self._unconnected)
        return next(found for attempt in attempts if (found := attempt(source, reached)) is not None)

    def _unknown(self, source: Any) -> Finding:
        """A source that the tape does not track."""
        lost, where = self.tape._lost or ((), None)
        if source._key in lost:
            return self._finding(source, Cause.RESET, _place(where))
        if not isinstance(source, Variable):
            place = self.code.rebound(source)
            if place is not None:
                return self._finding(source, Cause.REBOUND, place)
            return self._finding(source, Cause.NOT_WATCHED, self.entered)
        if not source.trainable:
            return self._finding(source, Cause.NOT_TRAINABLE, self.entered)
        if not self.tape._watch_accessed:
            return self._finding(source, Cause.WATCH_ACCESSED_OFF, self.entered)
        found = self._left(source, {source._key})
        if found is not None:
            return found
        place = self.code.read_before(source)
        if place is not None:
            return self._finding(source, Cause.READ_BEFORE, place)
        place = self.code.replaced(source)
        if place is not None:
            return self._finding(source, Cause.REBOUND, place)
        unread = self._finding(source, Cause.UNCONNECTED, self.entered, "it was never read while the tape recorded")
        return self._elsewhere(source, {source._key}) or unread

    def _proven(self, source: Any, reached: set) -> Finding | None:
        """A cut between what was computed from the source and what the target was computed from."""
        for op, key, at in self.watcher.blocked:
            if key in reached:
                return self._blocked(source, op, key, at)
        roots = [root for root in self.roots if not reached.isdisjoint(root.parents)]
        for root in sorted(roots, key=lambda root: root.name in _SHAPES):
            return self._finding(source, Cause(root.cause), _place(root), _through(root))
        for exit in self.tape.exits.values():
            if exit.into is not None and exit.into in self.behind and self._reaches(exit, reached):
                return self._finding(source, Cause.ASSIGNED, _place(exit), _through(exit))
        return None

    def _blocked(self, source: Any, op: Any, key: Any, at: Any) -> Finding:
        """A rule, a custom gradient or a compiled function that gave nothing for the value under ``key``."""
        place = _place(at) or self._read_by(op, key) or self.entered
        broken = getattr(op.kernel, "broken", None)  # of a compiled function: what was found when it was traced
        if broken is None:
            cause = Cause.NONDIFFERENTIABLE if op.rules else Cause.CUSTOM_GRADIENT
            return self._finding(source, cause, place, f"{op.name} gives no gradient for this argument")
        cause, place, detail = broken.get(key, (Cause.UNCONNECTED, place, "it has no part in the result"))
        return self._finding(source, cause, place, f"{detail}, in {op.name}" if detail else f"in {op.name}")

    def _read_by(self, op: Any, key: Any) -> Place | None:
        """Where an op read a value, if the tape traced it."""
        makers = self.paths.makers.items()
        return next((self.paths.place(k) for k, (maker, inputs) in makers if maker is op and key in inputs), None)

    def _reaches(self, exit: Exit, reached: set) -> bool:
        roots = self.paths.cuts(exit.keys)
        return any(key in reached for key in exit.keys) or any(not reached.isdisjoint(root.parents) for root in roots)

    def _renamed(self, source: Any, reached: set) -> Finding | None:
        """A source that was itself computed, under a name that stood for something else before."""
        if source._key in self.paths.makers and not isinstance(source, Variable):
            place = self.code.rebound(source)
            if place is not None:
                return self._finding(source, Cause.REBOUND, place)
        lost, where = self.tape._lost or ((), None)
        if any(key in lost for key in self.keys):
            return self._finding(source, Cause.RESET, _place(where))
        return None

    def _watched_late(self, source: Any, reached: set) -> Finding | None:
        """A tensor that the target was computed from before anybody called `watch` with it."""
        if isinstance(source, Variable):
            return None
        places = (self.code.used_before_watch(source, target) for target in self.targets)
        place = next((place for place in places if place is not None), None)
        detail = "tape.watch was called only after it was used here"
        return None if place is None else self._finding(source, Cause.NOT_WATCHED, place, detail)

    def _left(self, source: Any, reached: set) -> Finding | None:
        """The exit that the source reached and by which it most likely came to the target; of several the last."""
        behind = {line for target in self.targets for line in self.code.lines_behind(target)}
        ranked = []
        for i, exit in enumerate(self.tape.exits.values()):
            likelihood = self._likelihood(exit, behind) if self._reaches(exit, reached) else 0
            if likelihood:
                ranked.append((likelihood, i, exit))
        if not ranked:
            return None
        exit = max(ranked)[2]
        if exit.name in _COMPARISONS and _place(exit).text.startswith(_BRANCHES):
            return self._finding(source, Cause.CONDITION, _place(exit), _through(exit))
        compared = [root for root in self.paths.cuts(exit.keys) if root.name in _COMPARISONS]
        at = compared[0] if compared and exit.cause == Cause.CONDITION.value else exit  # the call may be of generated code
        return self._finding(source, Cause(exit.cause), _place(at), _through(exit))

    def _likelihood(self, exit: Exit, behind: set[int]) -> int:
        """How likely it is that a value which left here is what the target was computed from; 0: it is not."""
        place = place_of(exit.code, exit.instruction)
        is_behind = place.file == self.code.file and place.line in behind
        severed = exit.cause in (Cause.NONDIFFERENTIABLE.value, Cause.DTYPE.value, Cause.STOP_GRADIENT.value)
        is_proof = self.paths.is_whole and self._is_recorded()  # all that the tape saw of the target is known
        if (exit.cause == Cause.OUTSIDE.value and self._is_recorded()) or (severed and exit.name in _SHAPES):
            return 0
        if is_proof and exit.into is not None and exit.into not in self.behind:
            return 0  # assigned to a variable that the target was not computed from
        if is_proof and severed:
            return int(is_behind)  # else it would be proven, if it was not read as a length, a count or an index
        if severed:
            return 1 if exit.name in _COMPARISONS else 3
        if exit.cause == Cause.CONDITION.value or place.text.startswith(_TELLING):
            return 2
        return 5 if is_behind else 2 if exit.name == "format()" else 4

    def _is_recorded(self) -> bool:
        """Whether the tape has, or had, a record of a target."""
        if self.paths.is_whole:
            return any(self.paths.knows(key) for key in self.keys)
        return any(key is not None and type(key) is not Cut for key in self.keys)

    def _elsewhere(self, source: Any, reached: set) -> Finding | None:
        """A target that the tape has not seen."""
        if self._is_recorded() or not self.targets:
            return None
        target = self.targets[0]
        place = self.code.stopped(target)
        if place is not None:
            return self._finding(source, Cause.STOP_RECORDING, place)
        place, is_inside = self.code.computed(target)
        last = self.code.frontier(target, reached) if is_inside else None
        if last is not None and ".gradient(" in last[0].text:
            return self._finding(source, Cause.UNCONNECTED, last[0], "the gradient that was taken here is a constant")
        if last is not None:
            cause = Cause.DTYPE if getattr(last[1], "dtype", None) is dtypes.string else Cause.NONDIFFERENTIABLE
            return self._finding(source, cause, last[0], "through a function that tapes do not follow")
        if is_inside:
            return self._finding(source, Cause.UNCONNECTED, place, "the target is a constant")
        return self._finding(source, Cause.OUTSIDE, place or self.entered)

    def _unconnected(self, source: Any, reached: set) -> Finding:
        """Nothing leads from the source to the target: the two points of the graph that come nearest to each other."""
        names = {key: f"variable {v.name!r}" for key, v in self.tape.variables.items()}
        names[source._key] = "the source itself"
        ends = self.paths.nearest(reached, self.behind)
        if ends is None:  # one of them was not used in any op
            leaves = [key for key in self.behind if self.paths.knows(key)]
            ends = (source._key, leaves[0]) if leaves else None
        if not self.paths.is_whole:  # nothing is left of the target's side
            last = next((key for key in reversed(self.paths.makers) if key in reached), source._key)
            detail = f"the last that was computed from it is {self.paths.describe(last, names)}"
            return self._finding(source, Cause.UNCONNECTED, self.entered, detail)
        if ends is None:
            return self._finding(source, Cause.UNCONNECTED, self.entered)
        ours, theirs = (self.paths.describe(key, names) for key in ends)
        detail = f"nearest points: from the source {ours}; on the way to the target {theirs}"
        return self._finding(source, Cause.UNCONNECTED, self.paths.place(ends[1]) or self.entered, detail)

    def _zero(self, source: Any) -> Finding:
        reached = self.paths.after([source._key])
        at = next((made for key, made in self.watcher.zeros.items() if key in reached), None)
        if at is None:
            return self._finding(source, Cause.ZERO, self.entered, gradient="zero")
        detail = f"the gradient becomes zero in {self.paths.makers[at][0].name}"
        return self._finding(source, Cause.ZERO, self.paths.place(at) or self.entered, detail, gradient="zero")


def _place(at: Any) -> Any:
    """The place of ``(code, instruction)``, a cut or an exit; None of None."""
    return None if at is None else place_of(*at[-2:])


def _through(cut: Severed | Exit) -> str:
    return f"through {cut.name}" if cut.name else ""
