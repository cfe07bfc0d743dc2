"""What is active in this thread: the recorders (tapes, and whatever else listens to operations)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradtape.values.sharing import Presence


class _Nobody:
    """Stands for the only recorder where there is none: it knows no value, so nothing is recorded."""

    records: dict = {}
    variables: dict = {}
    limit = 0

    def accessed(self, variable: Any) -> None:
        """Nobody wants to know, but perhaps a witness (`cuts`) that stands in for the records."""
        witness: Any = self.records  # once: another thread may end it meanwhile
        if type(witness) is not dict:
            witness.read(variable)


NOBODY = _Nobody()


class _Thread(threading.local):
    # Class attributes: the defaults of every new thread.
    recorders: tuple = ()  # in order of entry
    sole: Any = NOBODY  # the only recorder, which is what nearly every op asks for; None if there are several
    activity = ""  # what the library does for the user just now, if values leave because of it: see `cuts.during`
    batch: tuple = ()  # the sizes of the batch axes that the running code is inside of

    def __init__(self) -> None:  # runs in each thread, when it first asks
        self.presence = Presence()


thread = _Thread()


def activate(recorders: tuple) -> None:
    """Make these the recorders of this thread."""
    thread.recorders = recorders
    thread.sole = NOBODY if not recorders else recorders[0] if len(recorders) == 1 else None


class suspended:
    """Context manager: silence every recorder of this thread; re-entrant."""

    def __enter__(self) -> None:
        self._saved = thread.recorders
        activate(())

    def __exit__(self, *_: object) -> None:
        activate(self._saved)


def level() -> int:
    """How many batch axes the code that runs now is inside of."""
    return len(thread.batch)


@contextmanager
def within(sizes: tuple[int, ...]) -> Iterator[int]:
    """Context manager: the code inside runs for batch axes of these sizes; gives the level of the last."""
    saved, thread.batch = thread.batch, sizes
    try:
        yield len(sizes)
    finally:
        thread.batch = saved


def deeper(size: int) -> Any:
    """Context manager: one batch axis of ``size`` more; gives its level."""
    return within((*thread.batch, size))
