"""Variables between the calls of a program that assigns them: still arrays of the program, handed on from call to call.

A step that nobody looks into need not make a tensor of each variable, and its memory can be written over by the next call
(donation). So a variable that a program has assigned is *held*: its class is a twin of its own in which reading the value
first makes it an ordinary variable again. Eager code pays nothing for that, for ordinary variables have their ordinary class.

What somebody has read is copied before the next call, so it stays valid. A call begins by holding all variables, with the
values that they have, and ends with one assignment, so that there is no moment at which some variables are new and some old.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.values import dtypes
from gradtape.values.sharing import new_lock
from gradtape.values.tensor import Tensor, wrap

LOCK = new_lock()
"""Nobody reads a held variable, assigns one that some program assigns, or takes one, while a program runs on it."""

_cell: Any = Variable.__dict__["_tensor"]
ordinary: Callable[[Variable], Tensor] = _cell.__get__
"""What a variable holds that no program holds."""


def settled(variable: Variable) -> Tensor:
    """What a variable holds; it is an ordinary variable from now on."""
    if not is_held(variable):
        return _cell.__get__(variable)
    with LOCK:
        if is_held(variable):  # no other thread was faster
            variable._held.settle(variable)
        return _cell.__get__(variable)


def settle_to(variable: Variable, tensor: Tensor) -> None:
    """Make an ordinary variable of it, which holds this tensor."""

    def settle() -> None:
        _cell.__set__(variable, tensor)
        if is_held(variable):  # then, so that there is no moment without a value
            variable._held.touched = True
            variable.__class__ = type(variable)._settled  # type: ignore[attr-defined]

    variable.atomically(settle)


def has_value(variable: Variable) -> bool:
    """Whether a variable has been given its first value."""
    if is_held(variable):
        return True
    try:
        _cell.__get__(variable)
    except AttributeError:
        return False
    return True


def is_held(variable: Variable) -> bool:
    """Whether a variable's value is still where a program left it."""
    return hasattr(type(variable), "_settled")


def _dtype(variable: Variable) -> Any:
    return dtypes.of(variable._held.array(variable).dtype)


@functools.cache
def _held_class(kind: type[Variable], value: property) -> type[Variable]:
    """The twin of a class of variables for those whose value a program holds."""
    text = {
        "__slots__": (), "__doc__": kind.__doc__, "__module__": kind.__module__,
        "_settled": kind, "_tensor": value, "dtype": property(_dtype),
    }  # fmt: skip
    return type(kind.__name__, (kind,), text)


class Holder:
    """The variables that one program assigns, as its last call left them.

    ``reads``: the program reads the variable, so it is an input of it; ``donated``: and writes over it.
    """

    def __init__(self, variables: list[Variable], reads: list[bool], donated: list[bool], value: property) -> None:
        self.variables = variables
        self.reads = reads
        self.donated = donated
        self.arrays: list[Any] = [None] * len(variables)
        self._all_read = all(reads)
        self.touched = True  # some variable may have been read, or may hold something else by now
        self._value = value  # the attribute of a held variable that gives its value
        self._places = {v._key: i for i, v in enumerate(variables)}
        self._read: dict[Any, Tensor] = {}  # the tensors that were made out of ``arrays``
        for variable in variables:
            variable.assign_under(LOCK)

    # Reading

    def array(self, variable: Variable) -> Any:
        return self.arrays[self._places[variable._key]]

    def settle(self, variable: Variable) -> None:
        """Make a tensor of what the last call left."""
        array = self.array(variable)
        if array.is_deleted():
            raise RuntimeError(
                message(
                    f"The value of {variable.name} was lost: a compiled call failed after it had begun to write over it.",
                    fix="restore a checkpoint, or assign the variable",
                )
            )
        from gradtape.xp import jax_devices

        tensor = wrap(np.asarray(array) if jax_devices.on_host(array) else array)
        tensor._key = variable._key
        self._read[variable._key] = tensor
        settle_to(variable, tensor)

    # A call

    def begin(self) -> list:
        """Hold all variables; the values of those that the program reads, which it may write over.

        What it has computed is to be assigned to ``arrays``, at once.
        """
        if self.touched:
            self.arrays = [self._current(i) for i in range(len(self.variables))]
            for variable in self.variables:
                self._take(variable)
            self._read.clear()
            self.touched = False
        if self._all_read:
            return self.arrays.copy()
        return [array for array, reads in zip(self.arrays, self.reads) if reads]

    def spare(self) -> list[tuple]:
        """Copies, in this machine's memory, of what the program writes over: for a call that may be interrupted midway."""
        arrays = [(i, array) for i, (array, donated) in enumerate(zip(self.arrays, self.donated)) if donated]
        return [(i, np.array(array), array.sharding if array.committed else None) for i, array in arrays]

    def restore(self, spare: list[tuple]) -> None:
        """Hold again what a call has written over that returned nothing."""
        from jax import device_put

        lost = {i: device_put(value, place) for i, value, place in spare if self.arrays[i].is_deleted()}
        self.arrays = [lost.get(i, array) for i, array in enumerate(self.arrays)]

    def _take(self, variable: Variable) -> None:
        if is_held(variable):
            if variable._held is self:
                return
            variable._held.touched = True
            variable._held = self
        else:
            held = _held_class(type(variable), self._value)  # type: ignore[arg-type]
            variable._held = self
            variable.__class__ = held
            _cell.__delete__(variable)  # last, so that there is no moment without a value

    def _current(self, i: int) -> Any:
        """The value on the device; a copy if somebody else may have it and the program writes over it."""
        from jax import device_put  # jnp.array would compile a program for each shape that it copies

        variable = self.variables[i]
        if is_held(variable):
            return variable._held.array(variable)
        tensor = settled(variable)
        if self._read.get(variable._key) is not tensor:
            return device_put(tensor._array, may_alias=not self.donated[i])
        return device_put(self.arrays[i], may_alias=False) if self.donated[i] else self.arrays[i]
