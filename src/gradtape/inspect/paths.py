"""What a tape's records connect: which values come from which."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from gradtape.core.callsite import Place
from gradtape.core.cuts import Cut, Severed
from gradtape.core.observed import outputs_of
from gradtape.core.tape import GradientTape


class Paths:
    """Each recorded value with the op that made it and what that read; of a used tape, what its sweep left over."""

    def __init__(self, tape: GradientTape) -> None:
        self.makers: dict[Any, tuple[Any, tuple]] = {}
        self.records = tape.records
        if self.records is None and tape.trace is not None:
            self.records = tape.trace.records
        if self.records is not None:
            for key, record in self.records.items():
                if record[0] is not None:
                    self.makers |= dict.fromkeys(outputs_of(key, record), (record[1], record[2]))
            self.makers.pop(None, None)  # an output without a gradient
        elif tape._remains is not None:
            unused = reversed(tape._remains.unused)
            self.makers = {key: (op, keys) for key, op, keys in unused if key is not None}
        self._readers: dict[Any, list] = {}
        for key, (_, inputs) in self.makers.items():
            for k in inputs:
                self._readers.setdefault(k, []).append(key)
        self.leaves = {*tape.variables, *getattr(tape, "_leaves", ())}
        self._places = {k: entry.place for entry in _entries(tape) for k in entry.outputs}

    @property
    def is_whole(self) -> bool:
        return self.records is not None

    def knows(self, key: Any) -> bool:
        return key in self.makers or key in self.leaves

    def after(self, keys: Iterable) -> set:
        """These values, and all that was computed from them."""
        found, pending = set(), list(keys)
        while pending:
            key = pending.pop()
            if key not in found:
                found.add(key)
                pending.extend(self._readers.get(key, ()))
        return found

    def before(self, keys: Iterable) -> set:
        """These values, and all that they were computed from."""
        found, pending = set(), list(keys)
        while pending:
            key = pending.pop()
            if key not in found:
                found.add(key)
                pending.extend(self.makers.get(key, (None, ()))[1])
        return found

    @cached_property
    def _order(self) -> dict[Any, int]:
        return {key: i for i, key in enumerate(self.makers)}

    def nearest(self, ours: set, theirs: set) -> tuple[Any, Any] | None:
        """The two values, one of each, that were computed closest to each other."""
        a, b = (np.sort([i for key, i in self._order.items() if key in keys]) for keys in (ours, theirs))
        if not len(a) or not len(b):
            return None
        after = np.searchsorted(b, a).clip(0, len(b) - 1)
        before = (after - 1).clip(0)
        closest = np.where(np.abs(b[after] - a) <= np.abs(b[before] - a), b[after], b[before])
        at = int(np.argmin(np.abs(closest - a)))
        keys = list(self.makers)
        return keys[a[at]], keys[closest[at]]

    def cuts(self, keys: Iterable) -> list[Severed]:
        """The cuts that lie behind values, latest first."""
        roots = {id(root): root for key in keys if type(key) is Cut for root in key.roots}
        return [Severed(*root) for root in roots.values()][::-1]

    def place(self, key: Any) -> Place | None:
        """Where a value was computed, if the tape traced it."""
        return self._places.get(key)

    def describe(self, key: Any, names: dict[Any, str]) -> str:
        """A value in words: ``'tanh' (model.py:12)``."""
        name = names.get(key) or (f"the result of {self.makers[key][0].name}" if key in self.makers else "a watched tensor")
        place = self.place(key)
        return f"{name} ({place})" if place is not None else name


def _entries(tape: GradientTape) -> Iterable[Any]:
    return tape.trace.entries.values() if tape.trace is not None else ()
