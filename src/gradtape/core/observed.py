"""A sweep that shows itself: observers see each record before and after it is pulled. The plain sweep knows nothing of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradtape.core.backprop import Sweep, pull_several


class Observer:
    """What may watch a sweep, and change its cotangents as it passes."""

    changes = False  # whether it may compute new cotangents, which the recorders of the thread then have to see

    def before(self, sweep: Sweep, key: Any, record: tuple) -> None:
        """The cotangents of the record's outputs are complete; leaves have their turn in `finish`."""

    def after(self, sweep: Sweep, key: Any, record: tuple) -> None:
        """The record's rules have run, if any of its outputs had a cotangent."""

    def finish(self, sweep: Sweep) -> None:
        """All records have been passed."""


class ObservedSweep(Sweep):
    """One walk over the records of a tape, one record at a time."""

    __slots__ = ("observers",)
    observers: tuple[Observer, ...]

    def run(self, records: dict, keep: Any) -> None:
        while records:
            key, record = records.popitem()
            if record[0] is None:  # a leaf, or a further output
                continue
            for observer in self.observers:
                observer.before(self, key, record)
            super().run({key: record}, keep)
            for observer in self.observers:
                observer.after(self, key, record)
        for observer in self.observers:
            observer.finish(self)


class Remains(NamedTuple):
    """What a sweep that left a source without gradient knows of why, though its records may be gone."""

    targets: list  # tensors or variables
    missing: set  # the keys of the sources without gradient
    unused: list[tuple]  # as in `Sweep`
    blocked: list[tuple]


UNANSWERED: list[Any] = [lambda: None]
"""A weak reference to the tape that gave the latest gradient of None: what an optimizer asks if it received no other."""


def outputs_of(key: Any, record: tuple) -> tuple:
    """The keys of all outputs of a record."""
    return record[7] if record[0] is pull_several else (key,)
