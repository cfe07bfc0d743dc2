"""Indices and class labels that the arguments of a call decide: the host looks at them before the program runs.

A program could find out by itself, but whoever wants to know would have to wait for it, and it would have to keep the old
values of variables until then. The smallest and the largest element of an argument cost 2 µs. So the text of a program is
followed from an index back to arguments, as long as only a few plain operations are in between; these NumPy repeats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

_MOST = 16
"""Operations between arguments and an index; what takes more is not plain."""
_MOST_ELEMENTS = 1 << 16
"""Of constants on the way."""


class Range:
    """Indices that a program uses, and the end of the range in which they have to be: one for all, or one for each column."""

    def __init__(self, array: Any, end: int | tuple[int, ...], always: bool) -> None:
        self.array, self.end, self.always = array, end, always

    def same(self, other: Range) -> bool:
        """Whether this says nothing new."""
        return self.array is other.array and self.end == other.end and self.always <= other.always

    def failed(self) -> Any:
        """1 if any index is out of range, otherwise 0; a part of the program."""
        import jax.numpy as jnp

        ends = jnp.asarray(np.asarray(self.end, np.int64))
        return jnp.any((self.array < 0) | (self.array >= ends)).astype(np.int32)


def has_numbers(array: Any, end: Any) -> bool:
    """Whether there are indices, and all lengths are known: in programs for files they may be symbols."""
    ends = end if isinstance(end, tuple) else (end,)
    return all(type(n) is int for n in (*ends, *array.shape)) and math.prod(array.shape) > 0


# The way back to arguments


class Look:
    """A test of a call's arguments: ``look(arrays)`` tells whether certain indices are in range."""

    def __init__(self, key: Any, arguments: list[int], holds: Callable[[Any], bool]) -> None:
        self.key = key  # equal ones ask the same
        self.arguments = arguments  # by their numbers
        self.holds = holds

    def __call__(self, arrays: Any) -> bool:
        return self.holds(arrays)


def on_host(equations: list, constants: dict, inputs: dict, variable: Any, end: int | tuple[int, ...]) -> Look | None:
    """The test that a variable of a program's text is in range; None if it takes more than a look at the arguments."""
    known = {v: np.asarray(constants[name]) for v, name in inputs.items() if name[0] == "constant" and _is_small(v.aval)}
    way = _between(equations, {*known, *(v for v, name in inputs.items() if name[0] == "argument")}, variable)
    if way is None:
        return None
    read = [variable, *(v for e in way for v in e.invars if not _is_literal(v))]
    arguments = {v: inputs[v][1] for v in read if inputs.get(v, ("",))[0] == "argument"}
    if len(arguments) == 1 and all(e.primitive.name in _SAME and _keeps_numbers(e) for e in way):
        ((source, which),) = arguments.items()
        return Look((which, end), [which], _test(source.aval, end, lambda arrays: arrays[which]))
    value = _value(way, {v: known[v] for v in read if v in known}, arguments, variable)
    return Look(variable, list(arguments.values()), _test(variable.aval, end, value))


def _value(equations: list, known: dict, arguments: dict, variable: Any) -> Callable[[Any], np.ndarray]:
    """What a variable is, as a function of the arguments' arrays."""

    def value(arrays: Any) -> np.ndarray:
        values = {**known, **{v: arrays[which] for v, which in arguments.items()}}
        with np.errstate(all="ignore"):  # as the program computes
            _evaluate(equations, values)
        return values[variable]

    return value


def _evaluate(equations: list, values: dict) -> None:
    for e in equations:
        read = [v.val if _is_literal(v) else values[v] for v in e.invars]
        values[e.outvars[0]] = _PLAIN[e.primitive.name](e.params, *read)


def _is_small(kind: Any) -> bool:
    return all(type(n) is int for n in kind.shape) and math.prod(kind.shape) <= _MOST_ELEMENTS


def _between(equations: list, known: set, variable: Any) -> list | None:
    """The equations that lead from what is known to a variable, in order; None if there are others than plain ones."""
    made = {v: i for i, equation in enumerate(equations) for v in equation.outvars}
    found: set[int] = set()
    todo = [variable]
    while todo:
        v = todo.pop()
        if _is_literal(v) or v in known:
            continue
        i = made.get(v)
        if i is None or len(found) > _MOST or not _is_plain(equations[i]):
            return None
        found.add(i)
        todo += equations[i].invars
    return [equations[i] for i in sorted(found)]


def _is_plain(equation: Any) -> bool:
    if equation.primitive.name == "select_n":
        return len(equation.invars) == 3 and equation.invars[0].aval.dtype == np.bool_
    if equation.primitive.name in ("div", "rem") and equation.outvars[0].aval.dtype.kind not in "iu":
        return False
    inner = equation.params.get("jaxpr")
    if inner is not None and (inner.consts or not all(map(_is_plain, inner.jaxpr.eqns))):
        return False
    return equation.primitive.name in _PLAIN and len(equation.outvars) == 1


def _is_literal(v: Any) -> bool:
    return hasattr(v, "val")


# What is asked of the numbers


def _test(kind: Any, end: int | tuple[int, ...], value: Callable[[Any], np.ndarray]) -> Callable[[Any], bool]:
    """Whether numbers, which are of this shape and dtype, are in range, as a function of the arguments' arrays."""
    if isinstance(end, tuple):
        ends = np.asarray(end, np.int64)
        return lambda arrays: bool(((at := value(arrays)) >= 0).all() and (at < ends).all())
    least, most = np.minimum.reduce, np.maximum.reduce
    if kind.dtype.kind not in "iub":  # NaN is not; -0.5 becomes 0
        return lambda arrays: bool(least(at := value(arrays), axis=None) > -1 and most(at, axis=None) < end)
    unsigned = np.dtype(f"u{kind.dtype.itemsize}")  # negative numbers are large ones
    return lambda arrays: bool(most(value(arrays).view(unsigned), axis=None) < end)


def _keeps_numbers(equation: Any) -> bool:
    """Whether an equation neither drops numbers nor makes others, as far as a range of indices goes."""
    if equation.primitive.name != "convert_element_type":
        return True
    return all(v.aval.dtype.kind in "iuf" and v.aval.dtype.itemsize >= 4 for v in (equation.invars[0], equation.outvars[0]))


def _broadcast(params: Any, x: Any) -> Any:
    shape = [1] * len(params["shape"])
    for axis, n in zip(params["broadcast_dimensions"], np.shape(x)):
        shape[axis] = n
    return np.broadcast_to(np.reshape(x, shape), params["shape"])


def _sliced(params: Any, x: Any) -> Any:
    strides = params["strides"] or (None,) * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _counted(params: Any) -> Any:
    """0, 1, 2, … along one axis."""
    shape, axis = params["shape"], params["dimension"]
    steps = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(steps.astype(params["dtype"]), shape)


def _divided(params: Any, x: Any, y: Any) -> Any:
    """Toward zero; by zero, what no index is."""
    x, y = np.broadcast_arrays(x, y)
    whole = np.abs(x) // np.abs(np.where(y == 0, 1, y)) * (np.sign(x) * np.sign(y))
    return np.where(y == 0, np.asarray(-1).astype(x.dtype), whole).astype(x.dtype)


def _called(params: Any, *arrays: Any) -> Any:
    """A function inside of the text, such as that of `where`."""
    text = params["jaxpr"].jaxpr
    values = dict(zip(text.invars, arrays))
    _evaluate(text.eqns, values)
    (out,) = text.outvars
    return out.val if _is_literal(out) else values[out]


_SAME: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "convert_element_type": lambda params, x: np.asarray(x).astype(params["new_dtype"]),
    "copy": lambda params, x: x,
    "reshape": lambda params, x: np.reshape(x, params["new_sizes"]),
    "squeeze": lambda params, x: np.squeeze(x, params["dimensions"]),
    "transpose": lambda params, x: np.transpose(x, params["permutation"]),
}
"""Operations that leave the numbers as they are."""

_PLAIN: dict[str, Callable] = {
    **_SAME,
    "add": lambda params, x, y: np.add(x, y),
    "and": lambda params, x, y: np.bitwise_and(x, y),
    "clamp": lambda params, least, x, most: np.minimum(np.maximum(x, least), most),
    "concatenate": lambda params, *arrays: np.concatenate(arrays, params["dimension"]),
    "div": _divided,
    "eq": lambda params, x, y: np.equal(x, y),
    "ge": lambda params, x, y: np.greater_equal(x, y),
    "gt": lambda params, x, y: np.greater(x, y),
    "iota": _counted,
    "jit": _called,
    "le": lambda params, x, y: np.less_equal(x, y),
    "lt": lambda params, x, y: np.less(x, y),
    "max": lambda params, x, y: np.maximum(x, y),
    "min": lambda params, x, y: np.minimum(x, y),
    "mul": lambda params, x, y: np.multiply(x, y),
    "ne": lambda params, x, y: np.not_equal(x, y),
    "neg": lambda params, x: np.negative(x),
    "not": lambda params, x: np.bitwise_not(x),
    "or": lambda params, x, y: np.bitwise_or(x, y),
    "pjit": _called,  # as jax called it
    "rem": lambda params, x, y: np.fmod(x, np.where(np.equal(y, 0), 1, y)),
    "select_n": lambda params, which, x, y: np.where(which, y, x),
    "sign": lambda params, x: np.sign(x),
    "slice": _sliced,
    "stack": lambda params, *arrays: np.stack(arrays, params["axis"]),
    "sub": lambda params, x, y: np.subtract(x, y),
}
"""Operations that NumPy repeats in a few microseconds."""
