"""Values that several threads share: which threads are there, and the locks under which values change.

A thread takes part from the first time that it asks for its context (`core.context`), so also one that Python did not start.
While there is one alone, a buffer that nobody else refers to may be written over: the thread holds `WRITING` then, and a
thread that comes waits for it once, before it reads its first value. As soon as there are two, whatever changes a value makes
a new buffer and puts it in the place of the old one, under the lock of the variable; what was read stays as it was read.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_here: dict[int, int] = {}  # by the identity of its Presence, the identifier of each thread


def new_lock() -> Any:
    """A re-entrant lock; a forked child finds it free, whichever thread of the parent had it."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


WRITING = new_lock()
"""Held while a buffer is written over."""


class Presence:
    """Stands for a thread, and ends with it."""

    def __init__(self) -> None:
        with WRITING:
            _here[id(self)] = threading.get_ident()

    def __del__(self) -> None:
        _here.pop(id(self), None)


def alone() -> bool:
    """Whether no other thread can be reading values; it stays true while `WRITING` is held."""
    return len(_here) < 2


def _in_forked_child() -> None:
    for presence in [presence for presence, thread in _here.items() if thread != threading.get_ident()]:
        del _here[presence]
    for lock in list(_locks):
        lock._at_fork_reinit()  # NOTE: private, but what the standard library's own locks are reset by


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)
