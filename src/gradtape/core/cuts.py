"""Where the path from a value to the tape is cut. Such places are rare, so each is noted, with the line of the user's code.

A result that no record was made for, though an input is tracked (``argmax``, a cast to integers, ``stop_gradient``), carries a
`Cut` instead of a plain key: it says where that was, and so does what is computed from it. A value that leaves for Python or
NumPy is noted by the tape (`leave`). What happens while a tape does not listen is seen by a witness, as long as that is cheap.
`inspect.explain` reads all of this.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple

from gradtape.core.callsite import site
from gradtape.core.context import NOBODY, thread
from gradtape.values.tensor import on_leaving

# Causes, by the names that `inspect.Cause` gives them.
NONDIFFERENTIABLE, DTYPE, STOP_GRADIENT = "nondifferentiable", "dtype", "stop_gradient"
LEFT, CONDITION, ASSIGNED = "left", "condition", "assigned"
ANOTHER_THREAD, STOP_RECORDING, OUTSIDE, PREDICT = "another_thread", "stop_recording", "outside", "predict"


class Severed(NamedTuple):
    """One place where a path ends."""

    cause: str
    name: str  # of the op or function that the value went through
    parents: tuple  # the keys of the tracked values that went in
    code: CodeType
    instruction: int


class Cut:
    """The key of a value whose path is cut. It counts as false, like the key of any number that is not tracked."""

    __slots__ = ("roots",)
    roots: tuple[tuple, ...]  # bare tuples of what `Severed` names: cuts inside a loop should cost little

    def __bool__(self) -> bool:
        return False


_new = object.__new__
_ENOUGH = 8  # cuts that one value remembers, and values that one place remembers


def sever(cause: str, name: str, out: Any, inputs: Any, recorders: tuple | None = None) -> None:
    """Mark results that no recorder has a record for, if some recorder tracks one of the inputs, or that is itself cut."""
    recorders = thread.recorders if recorders is None else recorders
    parents: tuple = ()
    roots: tuple = ()
    for x in inputs:
        key = x._key
        if type(key) is Cut:
            if key.roots is not roots:
                roots += key.roots
        elif key is not None:
            for recorder in recorders:
                if key in recorder.records:
                    parents += (key,)
                    break
    if parents:
        code, instruction = site(2)
        roots += ((cause, name, parents, code, instruction),)
        for recorder in recorders:
            _note(recorder, cause, name, parents[0], None, code, instruction)
    if roots:
        for o in out if type(out) is tuple else (out,):
            if o._key is None:
                o._key = cut = _new(Cut)
                cut.roots = roots if len(roots) <= _ENOUGH else roots[-_ENOUGH:]


def passed_by(recorder: Any, spec: Any, out: Any, inputs: Any) -> None:
    """Called for an op on values that have keys, if ``recorder`` made no record of it."""
    if recorder.records:
        sever(DTYPE if spec.differentiable else NONDIFFERENTIABLE, spec.name, out, inputs, (recorder,))


# Values that leave


class Exit(NamedTuple):
    """A place where values left the tape."""

    cause: str
    name: str  # how: the function that was called
    keys: list  # of the values, the first few
    into: Any  # the variable that took the value, if one did
    code: CodeType
    instruction: int


def leave(tensor: Any, name: str, cause: str = "", into: Any = None) -> None:
    """Note that a value which some tape of this thread tracks, or tracked up to a cut, leaves."""
    key = tensor._key
    cause = thread.activity or cause or (CONDITION if name == "bool()" else LEFT)
    for recorder in thread.recorders:
        if recorder.records and (type(key) is Cut or key in recorder.records):
            note_exit(recorder, cause, name, key, into)


@contextmanager
def during(activity: str) -> Iterator[None]:
    """What leaves in this block leaves because of it: ``with during(PREDICT):``."""
    before, thread.activity = thread.activity, activity
    try:
        yield
    finally:
        thread.activity = before


def note_exit(tape: Any, cause: str, name: str, key: Any, into: Any = None) -> None:
    _note(tape, cause, name, key, into, *site(2))


def _note(tape: Any, cause: str, name: str, key: Any, into: Any, code: CodeType, instruction: int) -> None:
    exits = getattr(tape, "exits", None)
    if exits is not None:
        at = cause, id(code), instruction
        found = exits.get(at)
        if found is None:
            found = exits[at] = Exit(cause, name, [], into, code, instruction)
        if len(found.keys) < _ENOUGH:
            found.keys.append(key)


on_leaving(leave)


# What happens while nobody records


class _Witness(dict):
    """Stands for the records of nobody while a tape can still be told: an op or a variable that asks is noted there."""

    def __init__(self) -> None:
        super().__init__()
        self._tapes: deque = deque(maxlen=4)
        self._patience = 0

    def attend(self, tape: Any) -> None:
        """Listen for this tape."""
        self._tapes.append(weakref.ref(tape))
        self._patience = 32
        NOBODY.records = self

    def __len__(self) -> int:
        return 1  # something to ask

    def __contains__(self, key: Any) -> bool:
        self._tell(key, False)
        return False

    def read(self, variable: Any) -> None:
        self._tell(variable._key, True)

    def _tell(self, key: Any, anyway: bool) -> None:
        alive = recording = False
        for reference in tuple(self._tapes):  # another thread may open a tape meanwhile
            tape = reference()
            if tape is None or tape.records is None:
                continue
            alive = True
            if tape._recording:
                recording = True
                if tape._thread == threading.get_ident():
                    continue  # silenced for a moment, by ourselves
                cause = ANOTHER_THREAD
            else:
                cause = STOP_RECORDING if tape._stopped else OUTSIDE
            if key is not None and (anyway or key in tape.records):
                note_exit(tape, cause, "", key)
        self._patience -= not recording
        if not alive or not self._patience:
            NOBODY.records = {}


WITNESS = _Witness()
