"""Calls in converted code: functions of the user are converted in turn, some of Python's own know what to do with tensors."""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.function.autograph_blocks import watch
from gradtape.function.autograph_convert import UNCONVERTED, converted, is_users
from gradtape.ops.elementwise import cast, maximum, minimum
from gradtape.ops.execution import Unstageable, staging
from gradtape.ops.shape import reshape
from gradtape.values import dtypes, nest
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_CONDITION = "condition of {} expected to be `tf.bool` scalar, got {!r}; to check for None, use `is not None`"


def converted_call(function: Any, args: tuple, kwargs: dict | None, scope: Any) -> Any:
    """``function(*args, **kwargs)``, converted if it is the user's own."""
    kwargs = kwargs or {}
    if type(function) is functools.partial:
        return converted_call(function.func, (*function.args, *args), {**function.keywords, **kwargs}, scope)
    if isinstance(function, (types.BuiltinFunctionType, type)):
        return _builtin(function, args, kwargs, scope)
    target, whole = _target(function, args)
    if is_users(target):
        return converted(target)(*whole, **kwargs)
    if getattr(function, "__module__", None) == "gradtape.toplevel" and function.__name__ == "range":
        return _tensor_range(function, *args, **kwargs)
    if staging.inside and getattr(function, "__name__", None) in _GIVEN_FUNCTIONS:
        args = tuple(converted(a) if is_users(a) else a for a in args)
        kwargs = {word: converted(a) if is_users(a) else a for word, a in kwargs.items()}
    return function(*args, **kwargs)


_GIVEN_FUNCTIONS = frozenset("cond case switch_case while_loop map_fn scan foldl foldr vectorized_map recompute_grad".split())
"""Functions of ours that call functions of the user."""


def _target(function: Any, args: tuple) -> tuple[Any, tuple]:
    """The plain function behind a method or a callable object, and its arguments."""
    if type(function) is types.FunctionType:
        return function, args
    if type(function) is types.MethodType:
        return function.__func__, (function.__self__, *args)
    return getattr(type(function), "__call__", None), (function, *args)  # noqa: B004  # as Python looks it up


def autograph_artifact(function: Any) -> Any:
    """A function inside a converted one, which is converted with it."""
    setattr(function, UNCONVERTED, True)
    return function


# Conditions


def traced(value: Any) -> bool:
    """Whether this is a tensor whose numbers exist only when the program runs."""
    return isinstance(value, Tensor) and value._is_traced()


def condition(value: Any, statement: str = "if statement") -> Any:
    """A value to decide by: a scalar bool tensor if its number is not known yet."""
    if isinstance(value, Variable):
        value = value.value()
    if not traced(value):
        return value
    if value.shape.num_elements() != 1:
        text = _CONDITION.format(statement, value)
        raise ValueError(message(text, received="", fix="tf.reduce_any or tf.reduce_all"))
    scalar = reshape(value, shape=()) if value.ndim else value
    return scalar if scalar.dtype is dtypes.bool_ else scalar != 0


# Python's own functions


def _builtin(function: Any, args: tuple, kwargs: dict, scope: Any) -> Any:
    if function in _FRAMES and not args:
        return _FRAMES[function](scope)
    if function is eval:
        from malt.operators import py_builtins

        return py_builtins.eval_in_original_context(function, args, scope)
    if staging.inside and function in _ON_TENSORS:
        return _ON_TENSORS[function](*args, **kwargs)
    watch(function)
    return function(*args, **kwargs)


def _locals(scope: Any) -> dict:
    from malt.operators import py_builtins

    return py_builtins.locals_in_original_context(scope)


def _globals(scope: Any) -> dict:
    from malt.operators import py_builtins

    return py_builtins.globals_in_original_context(scope)


_FRAMES: dict[Any, Callable] = {
    locals: _locals, vars: _locals, dir: lambda scope: sorted(_locals(scope)), globals: _globals,
}  # fmt: skip


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or not traced(args[0]):
        return int(*args, **kwargs)
    return args[0] if args[0].dtype.is_integer else cast(args[0], dtypes.int32)


def _float(*args: Any) -> Any:
    if not args or not traced(args[0]):
        return float(*args)
    return args[0] if args[0].dtype.is_floating else cast(args[0], dtypes.float32)


def _bool(*args: Any) -> Any:
    value = condition(args[0], "bool") if args else False
    return value if traced(value) else bool(value)


def _any(values: Iterable) -> Any:
    found: Any = False
    for value in values:
        value = condition(value, "any")
        if not traced(value) and value:
            return True
        if traced(value):
            found = value if found is False else found | value
    return found


def _all(values: Iterable) -> Any:
    found: Any = True
    for value in values:
        value = condition(value, "all")
        if not traced(value) and not value:
            return False
        if traced(value):
            found = value if found is True else found & value
    return found


def _extreme(own: Callable, is_better: Callable) -> Callable:
    """`max` or `min`, of scalars that are tensors too."""

    def extreme(*args: Any, **kwargs: Any) -> Any:
        from gradtape.function import control

        values = list(args[0]) if len(args) == 1 else list(args)
        if kwargs or not any(map(traced, values)):
            return own(*(args if len(args) > 1 else [values]), **kwargs)
        best = values[0]
        for value in values[1:]:
            better = condition(is_better(value, best), own.__name__)
            best = control.cond(better, lambda value=value: value, lambda best=best: best) if traced(better) else (
                value if better else best
            )  # fmt: skip
        return best

    return extreme


def _range(*args: Any) -> Any:
    given = [a.value() if isinstance(a, Variable) else a for a in args]
    if not any(map(traced, given)):
        return range(*args)
    return Counted(*given)


def _tensor_range(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """``tf.range``: without a known length there is no such tensor, but one can loop over it."""
    given = dict(zip(("start", "limit", "delta", "dtype", "name"), args)) | kwargs
    ends = [given.get("start"), given.get("limit"), given.get("delta")]
    ends = [a.value() if isinstance(a, Variable) else a for a in ends if a is not None]
    if not staging.inside or not any(map(traced, ends)) or not all(_is_integer(a) for a in ends):
        return function(*args, **kwargs)
    return Counted(*ends, dtype=given.get("dtype"))


def _is_integer(value: Any) -> bool:
    return value.dtype.is_integer if isinstance(value, Tensor) else isinstance(value, (int, np.integer))


class Counted(Convertible):
    """A range whose length is not known yet: there is nothing to do with it but to loop."""

    def __init__(self, *ends: Any, dtype: Any = None) -> None:
        start, limit, step = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
        kinds = [a.dtype for a in (start, limit, step) if isinstance(a, Tensor)]
        kind = dtypes.as_dtype(dtype) if dtype is not None else max(kinds, key=lambda k: k.size)
        self.start, self.limit, self.step = (cast(convert_to_tensor(a), kind) for a in (start, limit, step))
        self.dtype = kind

    def first(self, most: int | None) -> Any:
        """What to loop over: all of it, or ``most`` numbers."""
        from gradtape.function import control

        count = maximum(-((self.start - self.limit) // self.step), convert_to_tensor(0, self.dtype))  # rounded up
        if most is not None:
            count = minimum(count, convert_to_tensor(most, self.dtype))
        return control.Count(count, start=self.start, step=self.step, dtype=self.dtype.numpy)

    def _to_tensor(self, dtype: Any = None) -> Tensor:
        raise Unstageable("a range of a length that depends on the value of a tensor")

    def __iter__(self) -> Iterator:
        raise Unstageable("a range of a length that depends on the value of a tensor")

    def __getattr__(self, name: str) -> Any:
        raise Unstageable("a range of a length that depends on the value of a tensor")

    __len__ = __getitem__ = __reversed__ = __contains__ = __iter__


class Rows:
    """The rows of tensors side by side; of ranges among them, the numbers."""

    def __init__(self, columns: Any) -> None:
        self.columns = columns
        self._leaves = nest.flatten(columns)

    def __len__(self) -> int:
        return min(len(leaf) for leaf in self._leaves)

    def __iter__(self) -> Iterator:
        return (self._picked(at) for at in builtins.range(len(self)))

    def after(self, at: int) -> Rows:
        """The rows without the first ones."""
        return Rows(self._packed([leaf[at:] for leaf in self._leaves]))

    def first(self, most: int | None) -> Any:
        """What to loop over: all rows, or ``most``, as a nest of tensors."""
        length = len(self) if most is None else min(len(self), int(most))
        return self._packed([_column(leaf)[:length] for leaf in self._leaves])

    def _picked(self, at: int) -> Any:
        return self._packed([leaf[at] for leaf in self._leaves])

    def _packed(self, leaves: list) -> Any:
        return nest.pack_sequence_as(self.columns, leaves) if nest.is_nested(self.columns) else leaves[0]


def _column(leaf: Any) -> Tensor:
    return wrap(np.arange(leaf.start, leaf.stop, leaf.step, dtype=np.int32)) if isinstance(leaf, builtins.range) else leaf


def is_column(value: Any) -> bool:
    """Whether this is a tensor of numbers that has rows."""
    return isinstance(value, Tensor) and value.ndim > 0 and value._array.dtype.kind != "O"


def _enumerate(iterable: Any, start: int = 0) -> Any:
    if not is_column(iterable):
        return enumerate(iterable, start)
    return Rows((builtins.range(start, start + len(iterable)), iterable))


def _zip(*iterables: Any, strict: bool = False) -> Any:
    if not iterables or not all(map(is_column, iterables)) or (strict and len({len(i) for i in iterables}) > 1):
        return zip(*iterables, strict=strict)
    return Rows(iterables)


_ON_TENSORS: dict[Any, Callable] = {
    int: _int, float: _float, bool: _bool, any: _any, all: _all, range: _range, enumerate: _enumerate, zip: _zip,
    max: _extreme(max, lambda x, y: x > y), min: _extreme(min, lambda x, y: x < y),
}  # fmt: skip
