"""The variables of a converted block: which of them have a value, and whether two ways through a program agree on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.ops.execution import Unstageable
from gradtape.values import dtypes, nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_NUMBERS = (bool, int, float, complex)
_RETURNED = "retval_"


class Undefined:
    """Stands in a variable that has no value yet; reading it is the error that Python would raise."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Undefined) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class UndefinedReturnValue(Undefined):
    """Stands for the result of a function that has not returned yet."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_RETURNED)


def ld(value: Any) -> Any:
    """The value of a variable that is read."""
    if isinstance(value, Undefined):
        raise UnboundLocalError(f"cannot access local variable {value.name!r} where it is not associated with a value")
    return value


def ldu(read: Any, name: str) -> Any:
    """What an attribute or an element holds, if it exists."""
    try:
        return read()
    except (KeyError, IndexError, AttributeError, NameError):
        return Undefined(name)


# Branches


def check_branches(names: Sequence[str], main: Sequence[Any], other: Sequence[Any]) -> None:
    """Raise unless both branches leave the same kind of value in every variable."""
    for name, a, b in zip(names, main, other):
        _check_defined(name, a, b)
        if isinstance(a, Undefined) or a is b:
            continue
        for which, value in (("main", a), ("else", b)):
            if value is None:
                text = f"'{name}' is None at the end of the {which} branch."
                raise ValueError(message(text, received="", fix=_give(name, which)))
        _check_structure(f"'{name}' must have the same nested structure in the main and else branches:", a, b)
        for x, y in zip(nest.flatten(a), nest.flatten(b)):
            _check_branch_leaf(name, x, y)


def has_returned_in_one(names: Sequence[str], main: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether the function has returned after one of the branches only."""
    pairs = [(a, b) for name, a, b in zip(names, main, other) if name.startswith(_RETURNED)]
    return any(isinstance(a, Undefined) != isinstance(b, Undefined) for a, b in pairs)


def with_return_value(names: Sequence[str], values: Sequence[Any], other: Sequence[Any]) -> tuple:
    """The variables after a branch; if it did not return, zeros stand for what the other branch returned.

    Nobody reads them: a flag tells whether the function has returned, and it is asked first.
    """
    triples = zip(names, values, other)
    return tuple(placeholder(b) if isinstance(a, Undefined) and name.startswith(_RETURNED) else a for name, a, b in triples)


def _check_defined(name: str, main: Any, other: Any) -> None:
    if isinstance(main, Undefined) == isinstance(other, Undefined):
        return
    which = "main" if isinstance(main, Undefined) else "else"
    text = f"'{name}' must also be initialized in the {which} branch"
    raise ValueError(message(text, received="", fix=_give(name, which)))


def _give(name: str, which: str) -> str:
    return f"give {name!r} a value of the same dtype and shape in the {which} branch, or before the `if`"


def _check_branch_leaf(name: str, main: Any, other: Any) -> None:
    x, y = kind_of(main), kind_of(other)
    if x is None or y is None:
        return  # objects: the same one in both branches, or it cannot be compiled
    if x[0] != y[0] and not _bends(main, other) and not _bends(other, main):
        text = f"'{name}' has dtype {x[0].name} in the main branch, but dtype {y[0].name} in the else branch"
        fix = "tf.cast one of them: a compiled branch gives the same dtype either way"
        raise TypeError(message(text, received="", fix=fix))
    if x[1] != y[1]:
        raise Unstageable(f"an `if` after which {name!r} has shape {x[1]} or {y[1]}")


def _check_structure(text: str, first: Any, second: Any) -> None:
    try:
        nest.assert_same_structure(first, second)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{text}\n\n{error}") from None


# Loops


class Changed(Exception):
    """A loop variable is of another kind after one step: ``error`` says it in TensorFlow's words."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def check_step(names: Sequence[str], before: Sequence[Any], after: Sequence[Any]) -> None:
    """Raise `Changed` if one step of a loop changes the kind of a variable."""
    for name, a, b in zip(names, before, after):
        if a is b or isinstance(a, Undefined):
            continue
        if isinstance(b, Undefined):
            raise Unstageable(f"a loop that deletes {name!r}")
        if a is None:
            raise Changed(Unstageable(f"a loop before which {name!r} is None, and a tensor after one iteration"))
        if b is None:
            raise Changed(ValueError(f"'{name}' is None at the end of the iteration."))
        try:
            _check_structure(f"'{name}' does not have the same nested structure after one iteration.", a, b)
        except TypeError as error:
            raise Changed(error) from None
        for x, y in zip(nest.flatten(a), nest.flatten(b)):
            _check_step_leaf(name, x, y)


def _check_step_leaf(name: str, before: Any, after: Any) -> None:
    x, y = kind_of(before), kind_of(after)
    if x is None or y is None:
        return
    number = isinstance(before, _NUMBERS)  # it takes the dtype of what the loop makes of it
    if x[0] != y[0] and not number and not _bends(after, before):
        text = f"'{name}' has dtype {x[0].name} before the loop, but dtype {y[0].name} after one iteration"
        fix = "tf.cast it: a compiled loop keeps the dtype of its variables"
        raise Changed(TypeError(message(text, received="", fix=fix)))
    if x[1] != y[1]:
        text = f"'{name}' has shape {x[1]} before the loop, but shape {y[1]} after one iteration. "
        raise Changed(ValueError(text + "Use tf.autograph.experimental.set_loop_options to set shape invariants."))


def placeholder(like: Any) -> Any:
    """Stands for a variable that gets its first value inside a loop, in case the loop does not run: zeros."""
    return nest.map_structure(_zeros, like)


def _zeros(leaf: Any) -> Any:
    kind = kind_of(leaf)
    if kind is None or isinstance(leaf, Variable):
        return leaf
    if isinstance(leaf, _NUMBERS):
        return type(leaf)(0)
    return wrap(np.zeros(kind[1], kind[0].numpy))


# One value


def kind_of(value: Any) -> tuple[dtypes.DType, tuple[int, ...]] | None:
    """Dtype and shape of what can be computed with; None for any other object."""
    if isinstance(value, Tensor):
        return value.dtype, tuple(value._array.shape)
    if isinstance(value, (*_NUMBERS, np.ndarray, np.generic)):
        tensor = convert_to_tensor(value)
        return tensor.dtype, tuple(tensor._array.shape)
    if isinstance(value, Variable):
        return value.dtype, tuple(value.value()._array.shape)
    return None


def _bends(value: Any, to: Any) -> bool:
    """Whether a Python number can take the dtype of a tensor, being of its kind."""
    if isinstance(to, _NUMBERS):
        return False
    if type(value) is int:
        return to.dtype.is_integer
    return type(value) is float and to.dtype.is_floating
