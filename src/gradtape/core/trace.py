"""What a tape notes beside its records: where in the user's code each op was called, and, if asked for, with which values.

Noting must be light (the budget is 0.3 of a NumPy call), so a note is a bare tuple; `Entry` and `Place` are made of it when
somebody reads. With values it holds those of every op, so that no memory is used again: a tape then needs more of it than its
rules do, and more time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from gradtape.core.backprop import PAIR
from gradtape.core.callsite import MANY, Place, place_of, site
from gradtape.values.tensor import Tensor

CHECKS: dict[str, Callable[[Any], Any]] = {}
"""What looks at numbers for a tape that asks for it, set by `inspect`: "numerics" is called with the `Entry` of each op as it
is noted, "sweep" with the `Trace` and gives the observer of sweeps."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One record of a tape: an op that ran, or a value that the tape tracks from the start."""

    kind: str  # "op", "custom" (a custom gradient, also a call of a function), "variable" or "watched"
    name: str  # of the op, the function or the variable
    label: str  # TensorFlow's name of the op
    inputs: tuple  # keys, in the order of the op's arguments; None or False: not tracked
    input_values: tuple  # tensors (or variables, or whatever else a custom gradient was given); None: not kept
    outputs: tuple  # keys; None: an output that nothing can be differentiated by
    output_values: tuple[Tensor | None, ...]
    attributes: dict[str, Any]
    place: Place | None
    op: Any  # the `Op`: its kernel and rules
    record: tuple  # as the sweep reads it

    @property
    def key(self) -> Any:
        """The key under which the tape has the record."""
        return next(key for key in self.outputs if key is not None)

    @property
    def input_arrays(self) -> tuple:
        """The raw arrays of the inputs; None for what is no tensor."""
        return tuple(_array(value) for value in self.input_values)

    @property
    def output_arrays(self) -> tuple:
        return tuple(_array(value) for value in self.output_values)


class Trace:
    """The notes of one tape, in the order in which things happened.

    A note is ``(output or outputs, first input, second input, code, instruction)``; without values ``(key or keys of the
    outputs, code, instruction)``.
    """

    asked: tuple = ()  # targets, their seeds and sources of the last gradient

    def __init__(self, check: Callable[[Entry], None] | None = None) -> None:
        self.notes: list[tuple] = []
        self._read: list[Entry] = []
        self._check = check
        self.records: dict[Any, tuple] = {}  # the tape's own, from `clear` on
        self._variables: dict[Any, Any] = {}

    def clear(self, records: dict, variables: dict) -> None:
        """Begin again; both dicts are the tape's own."""
        self.notes.clear()
        self._read.clear()
        self.records, self._variables = records, variables
        self.asked = ()

    def note(self, note: tuple) -> None:
        """Append a note, and have the check look at it."""
        self.notes.append(note)
        if self._check is not None:
            self._check(self._entry(*note))

    def watch(self, value: Any) -> None:
        self.notes.append((value, None, WATCHED, *site(2)))

    @property
    def entries(self) -> dict[Any, Entry]:
        """Every entry by the key of its first output, in order; variables come before the first op that reads them."""
        self._read.extend(self._entry(*note) for note in self.notes[len(self._read) :])
        return {entry.key: entry for entry in self._with_variables()}

    def _with_variables(self) -> Iterator[Entry]:
        seen = set()
        for entry in self._read:
            for key, value in zip(entry.inputs, entry.input_values):
                if key in self._variables and key not in seen:
                    seen.add(key)
                    yield _leaf("variable", self._variables[key].name, key, value, entry.place)
            yield entry

    def sites(self) -> dict[Any, tuple[CodeType, int]]:
        """Code and instruction of every op, by the key of its first output."""
        return {_first(_keys(note[0]) if len(note) == _WITH_VALUES else note[0]): note[-2:] for note in self.notes}

    def _entry(self, *note: Any) -> Entry:
        return self._whole(*note) if len(note) == _WITH_VALUES else self._line(*note)

    def _line(self, keys: Any, code: CodeType, instruction: int) -> Entry:
        """What is known of an op whose values were not kept."""
        keys = keys if type(keys) is tuple else (keys,)
        record = self.records[_first(keys)]
        op, attributes = record[1], {} if record[0] is PAIR else record[6]
        kind = "custom" if "grad_fn" in attributes else "op"
        nothing = (None,) * len(record[2]), (None,) * len(keys)
        place = place_of(code, instruction)
        return Entry(kind, op.name, op.label, record[2], nothing[0], keys, nothing[1], attributes, place, op, record)

    def _whole(self, out: Any, first: Any, second: Any, code: CodeType, instruction: int) -> Entry:
        place = place_of(code, instruction)
        if second is WATCHED:
            return _leaf("watched", getattr(out, "name", "") if hasattr(out, "_tensor") else "", out._key, out, place)
        outs = out if type(out) is tuple else (out,)
        keys = _keys(outs)
        record = self.records[_first(keys)]
        op, attributes = record[1], {} if record[0] is PAIR else record[6]
        inputs = tuple(first) if second is MANY else (first,) if second is None else (first, second)
        kind = "custom" if "grad_fn" in attributes else "op"
        return Entry(kind, op.name, op.label, record[2][: len(inputs)], inputs, keys, outs, attributes, place, op, record)


_WITH_VALUES = 5


def _keys(out: Any) -> tuple:
    return tuple(o._key for o in out) if type(out) is tuple else (out._key,)


def _first(keys: Any) -> Any:
    return next(key for key in keys if key is not None) if type(keys) is tuple else keys


WATCHED = object()
"""Stands in a note for the second input of what no op produced."""


def _leaf(kind: str, name: str, key: Any, value: Any, place: Place | None) -> Entry:
    return Entry(kind, name, "", (), (), (key,), (getattr(value, "_tensor", value),), {}, place, None, (None,))


def _array(value: Any) -> Any:
    return getattr(getattr(value, "_tensor", value), "_array", None)
