"""What a tape holds in memory: every buffer once, by op, by line of the user's code, and by tensor."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from gradtape.core.callsite import Place
from gradtape.core.op import OUTPUT
from gradtape.core.tape import LEAF, GradientTape
from gradtape.core.variable import Variable
from gradtape.inspect.graph import records_of
from gradtape.inspect.tables import size, table
from gradtape.values.tensor import Tensor

_SHOWN = 10
_HEAD = ("tensor of", "shape", "dtype", "bytes", "holders", "line")


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer that a tape keeps alive."""

    op: str  # the first op whose record holds it
    place: Place | None
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    holders: int  # how many values in records share it


@dataclass(frozen=True, slots=True)
class Memory:
    """The answer of `memory`, in bytes. Printed, it shows the largest parts."""

    total: int  # arrays and bookkeeping
    arrays: int  # numbers: the buffers in ``tensors``
    bookkeeping: int  # the Python objects around them
    variables: int  # buffers of variables that records refer to; variables hold them anyway, so they are not in the total
    by_op: dict[str, int]
    by_line: dict[str, int]  # empty unless the tape traces
    tensors: tuple[Held, ...]  # the largest first

    def __str__(self) -> str:
        head = (
            f"The tape holds {size(self.total)}: {size(self.arrays)} in {len(self.tensors)} arrays, "
            f"{size(self.bookkeeping)} of records; {size(self.variables)} more belong to variables."
        )
        parts = [head]
        for title, found in (("op", self.by_op), ("line", self.by_line)):
            shares = [(name, size(n), f"{n / max(self.arrays, 1):.0%}") for name, n in Counter(found).most_common(_SHOWN)]
            if shares:
                parts.append(table((title, "bytes", "share"), shares, left=(title,)))
        largest = self.tensors[:_SHOWN]
        if largest:
            rows = [(h.op, str(h.shape), h.dtype, size(h.bytes), str(h.holders), str(h.place or "")) for h in largest]
            parts.append(table(_HEAD, rows, left=("tensor of", "shape", "line")))
        if not self.by_line:
            parts.append("GradientTape(trace=True) says which lines hold it.")
        return "\n\n".join(parts)

    __repr__ = __str__


def memory(tape: GradientTape) -> Memory:
    """The bytes that a tape keeps alive. A buffer that several records or views share counts once."""
    count = _Count({id(_owner(v._tensor._array)) for v in tape.variables.values()})
    if tape.records is None and tape.trace is None:
        return count.result()
    records, entries = records_of(tape), {} if tape.trace is None else tape.trace.entries
    count.own(records)
    for key, record in records.items():
        entry = entries.get(key)
        count.at(record[1].name if record[0] is not None else "watched", None if entry is None else entry.place)
        count.add(key)
        count.add(record)
        for value in () if entry is None else (*entry.output_values, *entry.input_values):
            count.add(value)
    if tape.trace is not None:
        count.own(tape.trace.notes)
        for note in tape.trace.notes:
            count.add(note)
    return count.result()


def _owner(array: Any) -> Any:
    """The array that owns a view's buffer."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


class _Count:
    """Adds up what can be reached from records, every object once."""

    def __init__(self, of_variables: set[int]) -> None:
        self._of_variables = of_variables
        self._seen: set[int] = {id(LEAF), id(OUTPUT), id(())}
        self._buffers: dict[int, list] = {}  # by owner: op, place, shape, dtype, bytes, holders
        self._bookkeeping = self._variables = 0
        self._op, self._place = "", None

    def at(self, op: str, place: Any) -> None:
        self._op, self._place = op, place

    def own(self, thing: Any) -> None:
        """An object itself, without what it refers to."""
        if id(thing) not in self._seen:
            self._seen.add(id(thing))
            self._bookkeeping += sys.getsizeof(thing)

    def add(self, thing: Any) -> None:
        """An object and what it refers to, as far as it belongs to the tape."""
        if isinstance(thing, Tensor):
            self._buffer(thing._array)
        if thing is None or id(thing) in self._seen or isinstance(thing, (Variable, str, bool, type)):
            return
        if isinstance(thing, (tuple, list, set, frozenset)):
            self.own(thing)
            for part in thing:
                self.add(part)
        elif isinstance(thing, dict):
            self.own(thing)
            for part in thing.values():
                self.add(part)
        elif isinstance(thing, Tensor):
            self.own(thing)
            self.add(thing._key)
        elif isinstance(thing, FunctionType):  # a custom gradient, and what it closed over
            self.own(thing)
            for cell in thing.__closure__ or ():
                self.own(cell)
                self.add(_contents(cell))
        elif isinstance(thing, np.ndarray):
            self._buffer(thing)
        elif type(thing) in (object, int):
            self.own(thing)

    def _buffer(self, array: Any) -> None:
        owner = _owner(array)
        number = int(getattr(owner, "nbytes", 0))
        if id(owner) in self._of_variables:
            if id(owner) not in self._seen:
                self._seen.add(id(owner))
                self._variables += number
            return
        if id(array) not in self._seen:  # sys.getsizeof of an array that owns its buffer includes that
            self._seen.add(id(array))
            self._bookkeeping += sys.getsizeof(array) - (number if owner is array else 0)
        if id(owner) not in self._buffers:
            self._buffers[id(owner)] = [self._op, self._place, owner.shape, str(owner.dtype), number, 0]
            if id(owner) not in self._seen:
                self._seen.add(id(owner))
                self._bookkeeping += sys.getsizeof(owner) - number
        self._buffers[id(owner)][-1] += 1

    def result(self) -> Memory:
        held = sorted((Held(*parts) for parts in self._buffers.values()), key=lambda h: -h.bytes)
        by_op: Counter = Counter()
        by_line: Counter = Counter()
        for h in held:
            by_op[h.op] += h.bytes
            if h.place is not None:
                by_line[f"{h.place}: {h.place.text}"] += h.bytes
        arrays = sum(h.bytes for h in held)
        total = arrays + self._bookkeeping
        return Memory(total, arrays, self._bookkeeping, self._variables, dict(by_op), dict(by_line), tuple(held))


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None
