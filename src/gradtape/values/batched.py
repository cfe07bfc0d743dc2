"""The dialect on values that carry a hidden leading axis: one sweep then gives all rows of a Jacobian.

`BATCHED` has a rule per dialect function; ops and derivative rules are composed of those, so they need none of their own.
The array inside a `Batched` may be a NumPy array, a tensor (then the batched work is recorded) or a jax array.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import BatchedTensor, Tensor, store, wrap
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY

logger = logging.getLogger("gradtape")

_NO_VALUE = message(
    "The value of one element was asked for, but all elements are computed at once.",
    received="a tensor inside vectorized_map, as an array, number or truth value",
    fix="tf.where and tf.cond on tensors; or tf.map_fn, which computes one element at a time",
)


class NotVectorizable(TypeError, AttributeError):
    """Something that has no meaning for all elements of a batch at once."""


class Batched:
    """A value for each index of a leading axis that rules do not see: ``shape`` is that of one value.

    Batches nest. The array inside one of a higher ``level`` may be a tensor that holds one of a lower level.
    """

    __slots__ = ("level", "value")
    __array_priority__ = 200
    __array_ufunc__ = None  # ndarray + Batched asks Batched

    def __init__(self, value: Any, level: int = 1) -> None:
        self.value = value
        self.level = level

    @property
    def shape(self) -> tuple[int, ...]:
        return inner(self.value).shape(self.value)[1:]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return inner(self.value).dtype(self.value)

    def __repr__(self) -> str:
        return f"Batched({self.value!r})"

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise NotVectorizable(_NO_VALUE)

    def __getattr__(self, name: str) -> Any:
        """Code that takes it for a NumPy array."""
        raise NotVectorizable(_NO_VALUE)


store(Batched, BatchedTensor)


def _no_value(self: BatchedTensor) -> np.ndarray:
    raise NotVectorizable(_NO_VALUE)


def _text(self: BatchedTensor, form: Any) -> str:
    return "<each element of a batch>"


def _detached(self: BatchedTensor) -> Tensor:
    batch = self._array
    value = batch.value
    if isinstance(value, Tensor):  # somebody outside the batch records it
        value = value._array if type(value) is Tensor else value._detached()
    return wrap(Batched(value, batch.level))


BatchedTensor._host = _no_value  # type: ignore[method-assign,assignment]
BatchedTensor._text = _text  # type: ignore[method-assign,assignment]
BatchedTensor._detached = _detached  # type: ignore[method-assign,assignment]


class _Batched:
    """The namespace; its functions are set below."""

    @staticmethod
    @contextmanager
    def scope() -> Iterator[None]:
        """What the arrays inside need: which they are is not known yet, but a jax array has loaded its namespace."""
        JAX = sys.modules.get("gradtape.xp.jax", NUMPY)
        with NUMPY.scope(), JAX.scope():
            yield

    @staticmethod
    def shape(x: Any) -> tuple[int, ...]:
        return x.shape if type(x) is Batched else RECORDED.shape(x)

    @staticmethod
    def dtype(x: Any) -> np.dtype:
        return x.dtype if type(x) is Batched else inner(x).dtype(x)

    def __getattr__(self, name: str) -> Callable:
        """A function that has no rule below runs in a loop."""
        if name.startswith("_") or not hasattr(NUMPY, name):
            text = f"The array dialect has no function {name!r}."
            raise AttributeError(message(text, received=f"xp.{name}", expected="a name of gradtape.xp.dialect.NAMES"))
        return _entry(name, _loop)


BATCHED: Any = _Batched()
Batched.xp = BatchedTensor.xp = BATCHED  # type: ignore[attr-defined]


def inner(value: Any) -> Any:
    """The namespace of the array inside."""
    if isinstance(value, (np.ndarray, np.generic, int, float, complex, bool)):
        return NUMPY
    if isinstance(value, Tensor):
        return RECORDED
    if hasattr(value, "xp"):  # storage that brings its own namespace
        return value.xp
    from gradtape.xp import jax as JAX

    return JAX


def _namespace(args: tuple) -> Any:
    """The namespace for a mixture: recorded wins over raw, jax over NumPy."""
    found = NUMPY
    for x in args:
        namespace = inner(x.value if type(x) is Batched else x)
        if namespace is RECORDED:
            return RECORDED
        if namespace is not NUMPY:
            found = namespace
    return found


def _rank(x: Any) -> int:
    return len(BATCHED.shape(x))


def _rule(*names: str) -> Callable:
    """Register a batching rule ``rule(xp, name, *args, **attrs)``; it sees Batched arguments and returns the raw value."""

    def register(rule: Callable) -> Callable:
        for name in names:
            setattr(BATCHED, name, _entry(name, rule))
        return rule

    return register


def _entry(name: str, rule: Callable) -> Callable:
    def call(*args: Any, **attributes: Any) -> Any:
        levels = {x.level for x in args if type(x) is Batched}
        if not levels:
            return getattr(_namespace(args), name)(*args, **attributes)
        top = max(levels)
        if len(levels) > 1:  # batches of lower levels are plain values to the highest
            args = tuple([wrap(x) if type(x) is Batched and x.level < top else x for x in args])
        value = rule(_namespace(args), name, *args, **attributes)
        return tuple([Batched(v, top) for v in value]) if type(value) is tuple else Batched(value, top)

    return call


_said: set[str] = set()


def _loop(xp: Any, name: str, *args: Any, **attributes: Any) -> Any:
    """The rule for want of one: call the function once per batch index; says so once."""
    if name not in _said:
        _said.add(name)
        logger.warning("No batching rule for %s: the Jacobian runs it in a loop.", name)
    size = next(xp.shape(x.value)[0] for x in args if type(x) is Batched)
    rows = [
        getattr(xp, name)(*(xp.getitem(x.value, index=(i,)) if type(x) is Batched else x for x in args), **attributes)
        for i in range(size)
    ]
    if type(rows[0]) is tuple:
        return tuple(xp.stack(*parts, axis=0) for parts in zip(*rows))
    return xp.stack(*rows, axis=0)


def _all_batched(xp: Any, args: tuple) -> list:
    """Every argument with the leading axis, by broadcasting those that have none."""
    size = next(xp.shape(x.value)[0] for x in args if type(x) is Batched)
    return [x.value if type(x) is Batched else xp.broadcast_to(x, shape=(size, *xp.shape(x))) for x in args]


def _shift(axis: Any, rank: int) -> Any:
    """An axis (or several, or None for all) of one value as an axis of the batched array."""
    if axis is None:
        return tuple(range(1, rank + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(a % rank + 1 for a in axis)
    return axis % rank + 1


@_rule(*(name for name in dialect.ELEMENTWISE))
def _elementwise(xp: Any, name: str, *args: Any, **attributes: Any) -> Any:
    rank = max(map(_rank, args))
    return getattr(xp, name)(*(_aligned(xp, x, rank) for x in args), **attributes)


def _aligned(xp: Any, x: Any, rank: int) -> Any:
    """The array of ``x`` with axes of length 1 behind the batch axis, so that broadcasting meets the right ones."""
    if type(x) is not Batched:
        return x
    if x.ndim == rank:
        return x.value
    batch, *shape = xp.shape(x.value)
    return xp.reshape(x.value, shape=(batch, *[1] * (rank - len(shape)), *shape))


@_rule("sum", "prod", "max", "min", "any", "all")
def _reduction(xp: Any, name: str, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return getattr(xp, name)(x.value, axis=_shift(axis, x.ndim), keepdims=keepdims)


@_rule("argmax", "argmin", "cumsum", "cumprod", "sort", "argsort", "flip", "roll", "repeat", "squeeze", *dialect.FOURIER)
def _along_axis(xp: Any, name: str, x: Any, *, axis: Any, **attributes: Any) -> Any:
    return getattr(xp, name)(x.value, axis=_shift(axis, x.ndim), **attributes)


@_rule("expand_dims")
def _expand_dims(xp: Any, name: str, x: Any, *, axis: Any) -> Any:
    added = len(axis) if isinstance(axis, tuple) else 1
    return xp.expand_dims(x.value, axis=_shift(axis, x.ndim + added))


@_rule("reshape")
def _reshape(xp: Any, name: str, x: Any, *, shape: Any) -> Any:
    batch = xp.shape(x.value)[0]
    if -1 in shape:
        known = int(np.prod([n for n in shape if n != -1]))
        shape = tuple(x.size // max(known, 1) if n == -1 else n for n in shape)
    return xp.reshape(x.value, shape=(batch, *shape))


@_rule("broadcast_to")
def _broadcast_to(xp: Any, name: str, x: Any, *, shape: Any) -> Any:
    batch = xp.shape(x.value)[0]
    return xp.broadcast_to(_aligned(xp, x, len(shape)), shape=(batch, *shape))


@_rule("transpose")
def _transpose(xp: Any, name: str, x: Any, *, axes: Any) -> Any:
    axes = tuple(reversed(range(x.ndim))) if axes is None else axes
    return xp.transpose(x.value, axes=(0, *(_shift(a, x.ndim) for a in axes)))


@_rule("matrix_transpose", "adjoint")
def _matrix_transpose(xp: Any, name: str, x: Any) -> Any:
    return getattr(xp, name)(x.value)


@_rule("concatenate")
def _concatenate(xp: Any, name: str, *xs: Any, axis: int) -> Any:
    return xp.concatenate(*_all_batched(xp, xs), axis=_shift(axis, _rank(xs[0])))


@_rule("stack")
def _stack(xp: Any, name: str, *xs: Any, axis: int) -> Any:
    return xp.stack(*_all_batched(xp, xs), axis=_shift(axis, _rank(xs[0]) + 1))


@_rule("tile")
def _tile(xp: Any, name: str, x: Any, *, repeats: Any) -> Any:
    return xp.tile(x.value, repeats=(1, *repeats))


@_rule("pad")
def _pad(xp: Any, name: str, x: Any, *, widths: Any, value: Any = 0) -> Any:
    return xp.pad(x.value, widths=((0, 0), *widths), value=value)


@_rule("getitem")
def _getitem(xp: Any, name: str, x: Any, *, index: Any) -> Any:
    return xp.getitem(x.value, index=(slice(None), *index))


@_rule("put_slice")
def _put_slice(xp: Any, name: str, x: Any, *, index: Any, shape: Any) -> Any:
    return xp.put_slice(x.value, index=(slice(None), *index), shape=(xp.shape(x.value)[0], *shape))


@_rule("take")
def _take(xp: Any, name: str, x: Any, indices: Any, *, axis: int, batch_dims: int = 0) -> Any:
    if type(indices) is not Batched and batch_dims == 0:
        return xp.take(x.value, indices, axis=axis + 1)
    x, indices = _all_batched(xp, (x, indices))
    return xp.take(x, indices, axis=axis + 1, batch_dims=batch_dims + 1)


@_rule("take_transpose")
def _take_transpose(xp: Any, name: str, x: Any, indices: Any, *, axis: int, shape: Any, batch_dims: int = 0) -> Any:
    if type(indices) is not Batched and batch_dims == 0:
        return xp.take_transpose(x.value, indices, axis=axis + 1, shape=(xp.shape(x.value)[0], *shape))
    x, indices = _all_batched(xp, (x, indices))
    return xp.take_transpose(x, indices, axis=axis + 1, shape=(xp.shape(x)[0], *shape), batch_dims=batch_dims + 1)


@_rule("take_along_axis")
def _take_along_axis(xp: Any, name: str, x: Any, indices: Any, *, axis: int) -> Any:
    axis = _shift(axis, _rank(x))
    return xp.take_along_axis(*_all_batched(xp, (x, indices)), axis=axis)


@_rule("along_axis_transpose")
def _along_axis_transpose(xp: Any, name: str, x: Any, indices: Any, *, axis: int, shape: Any) -> Any:
    axis = _shift(axis, _rank(x))
    x, indices = _all_batched(xp, (x, indices))
    return xp.along_axis_transpose(x, indices, axis=axis, shape=(xp.shape(x)[0], *shape))


@_rule("gather_nd")
def _gather_nd(xp: Any, name: str, x: Any, indices: Any) -> Any:
    return xp.gather_nd(*_with_batch_index(xp, x, indices))


@_rule("scatter_nd")
def _scatter_nd(xp: Any, name: str, x: Any, indices: Any, *, shape: Any) -> Any:
    x, indices = _with_batch_index(xp, x, indices)
    return xp.scatter_nd(x, indices, shape=(xp.shape(x)[0], *shape))


def _with_batch_index(xp: Any, x: Any, indices: Any) -> tuple:
    """Both batched, and the batch index put in front of each index vector."""
    x, indices = _all_batched(xp, (x, indices))
    if xp.dtype(indices).itemsize < 4:  # must hold the batch index too
        indices = xp.astype(indices, dtype=np.dtype(np.int64))
    shape = xp.shape(indices)
    count = np.arange(shape[0], dtype=xp.dtype(indices)).reshape(-1, *[1] * (len(shape) - 1))
    first = np.broadcast_to(count, (*shape[:-1], 1))
    return x, xp.concatenate(first, indices, axis=len(shape) - 1)


@_rule("one_hot")
def _one_hot(xp: Any, name: str, indices: Any, **attributes: Any) -> Any:
    return xp.one_hot(indices.value, **attributes)


@_rule("matmul", "adjoint_matmul", "matmul_adjoint")
def _matmul(xp: Any, name: str, x: Any, y: Any) -> Any:
    if _rank(x) < 2 or _rank(y) < 2:
        return getattr(NUMPY, name)(*(np.broadcast_to(np.False_, BATCHED.shape(a)) for a in (x, y)))  # raises
    product = getattr(xp, name)
    if name != "adjoint_matmul" and type(y) is not Batched and _rank(y) == 2 and x.ndim == 2:
        # One product of (batch·rows) rows instead of one product per batch index.
        batch, rows, depth = xp.shape(x.value)
        flat = product(xp.reshape(x.value, shape=(batch * rows, depth)), y)
        return xp.reshape(flat, shape=(batch, rows, xp.shape(flat)[1]))
    rank = max(_rank(x), _rank(y))
    x, y = _aligned(xp, x, rank), _aligned(xp, y, rank)
    summed_x, summed_y = (-2 if name == "adjoint_matmul" else -1), (-1 if name == "matmul_adjoint" else -2)
    if xp.shape(x)[summed_x] == 1 == xp.shape(y)[summed_y]:  # columns times rows, as in gradients of one example each
        return xp.multiply(xp.adjoint(x) if summed_x == -2 else x, xp.adjoint(y) if summed_y == -1 else y)
    return product(x, y)


@_rule("einsum")
def _einsum(xp: Any, name: str, *xs: Any, equation: str) -> Any:
    inputs, output = equation.split("->")
    letter = next(c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba" if c not in equation)
    terms = [letter + t if type(x) is Batched else t for t, x in zip(inputs.split(","), xs)]
    values = [x.value if type(x) is Batched else x for x in xs]
    return xp.einsum(*values, equation=f"{','.join(terms)}->{letter}{output}")


@_rule("attention", "attention_gradient")
def _attention(xp: Any, name: str, *arrays: Any, **attributes: Any) -> Any:
    """The batch becomes examples."""
    values = _all_batched(xp, arrays)
    batch, examples = xp.shape(values[0])[:2]
    shapes = [(batch, examples, *xp.shape(value)[2:]) for value in values]  # a mask may be the same for all examples
    values = [xp.broadcast_to(value, shape=s) for value, s in zip(values, shapes)]
    flat = [xp.reshape(value, shape=(batch * examples, *s[2:])) for value, s in zip(values, shapes)]
    outs = getattr(xp, name)(*flat, **attributes)
    unfolded = lambda out: xp.reshape(out, shape=(batch, examples, *xp.shape(out)[1:]))
    return tuple(map(unfolded, outs)) if isinstance(outs, tuple) else unfolded(outs)


@_rule("solve", "triangular_solve", "tridiagonal_solve")
def _solve(xp: Any, name: str, x: Any, y: Any, **attributes: Any) -> Any:
    if type(x) is not Batched and _rank(x) == y.ndim == 2:  # one matrix: the batch becomes columns
        batch, rows, columns = xp.shape(y.value)
        flat = xp.reshape(xp.transpose(y.value, axes=(1, 0, 2)), shape=(rows, batch * columns))
        value = getattr(xp, name)(x, flat, **attributes)
        return xp.transpose(xp.reshape(value, shape=(rows, batch, columns)), axes=(1, 0, 2))
    rank = max(_rank(x), _rank(y))
    return getattr(xp, name)(_aligned(xp, x, rank), _aligned(xp, y, rank), **attributes)


@_rule("pinv")
def _pinv(xp: Any, name: str, x: Any, cutoff: Any) -> Any:
    return xp.pinv(*_all_batched(xp, (x, cutoff)))


@_rule(*(name for name in dialect.LINALG if "solve" not in name and name != "pinv"))
def _decomposition(xp: Any, name: str, x: Any, **attributes: Any) -> Any:
    return getattr(xp, name)(x.value, **attributes)


# Convolution: axes by letter, with the channels split into groups G. Values that are all batched join the groups; a batch of
# one argument alone joins an axis that the other does not have.

_ARRAY, _RESULT, _FILTER = "nsGc", "nsGo", "kcGo"
_FACES: dict[str, tuple[str, str, str, str, str]] = {
    "conv": (_ARRAY, _FILTER, _RESULT, "n", "o"),
    "conv_input": (_RESULT, _FILTER, _ARRAY, "n", "c"),
    "conv_filter": (_ARRAY, _RESULT, _FILTER, "c", "o"),
}


@_rule("conv", "conv_input", "conv_filter")
def _convolution(xp: Any, name: str, x: Any, y: Any, *, groups: int, **attributes: Any) -> Any:
    *layouts, result, free_x, free_y = _FACES[name]
    both = type(x) is type(y)
    letter = "G" if both else free_x if type(x) is Batched else free_y
    size = next(xp.shape(a.value)[0] for a in (x, y) if type(a) is Batched)
    folded = [_folded(xp, a.value, form, letter, groups) if type(a) is Batched else a for a, form in zip((x, y), layouts)]
    value = getattr(xp, name)(*folded, groups=groups * size if both else groups, **attributes)
    return _unfolded(xp, value, result, letter, groups, size)


def _axis_of(layout: str, letter: str, rank: int) -> int:
    """Where a letter's axis is among ``rank`` axes, the last of them split in two; s and k stand for all axes of space."""
    index = layout.index(letter)
    return index if letter == "n" else index - len(layout) + rank + 1


def _folded(xp: Any, value: Any, layout: str, letter: str, groups: int) -> Any:
    batch, *shape, channels = xp.shape(value)
    split = [*shape, groups, channels // groups]
    axis = _axis_of(layout, letter, len(shape) + 1)
    value = xp.reshape(value, shape=(batch, *split))
    value = xp.transpose(value, axes=(*range(1, axis + 1), 0, *range(axis + 1, len(split) + 1)))
    split[axis] *= batch
    return xp.reshape(value, shape=(*split[:-2], split[-2] * split[-1]))


def _unfolded(xp: Any, value: Any, layout: str, letter: str, groups: int, batch: int) -> Any:
    *shape, channels = xp.shape(value)
    axis = _axis_of(layout, letter, len(shape) + 1)
    whole = groups * batch if letter == "G" else groups
    split = [*shape, whole, channels // whole]
    split[axis : axis + 1] = [batch, split[axis] // batch]
    value = xp.transpose(xp.reshape(value, shape=tuple(split)), axes=(axis, *(i for i in range(len(split)) if i != axis)))
    _, *shape, groups, channels = xp.shape(value)
    return xp.reshape(value, shape=(batch, *shape, groups * channels))


@_rule("windows", "windows_transpose")
def _windows(xp: Any, name: str, x: Any, **attributes: Any) -> Any:
    batch, examples, *shape = xp.shape(x.value)
    value = getattr(xp, name)(xp.reshape(x.value, shape=(batch * examples, *shape)), **attributes)
    return xp.reshape(value, shape=(batch, examples, *xp.shape(value)[1:]))


for _name in dialect.CREATION:
    setattr(BATCHED, _name, getattr(NUMPY, _name))


def _operator(name: str, reflected: bool = False) -> Callable:
    function = getattr(BATCHED, name)
    if reflected:
        return lambda self, other: function(_lift(other, self), self)
    return lambda self, other: function(self, _lift(other, self))


def _lift(other: Any, like: Batched) -> Any:
    """A Python number as an array of the batched value's dtype."""
    return np.asarray(other, like.dtype) if type(other) in (int, float, complex, bool) else other


for _symbol, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "matmul": "matmul",
    "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}.items():  # fmt: skip
    setattr(Batched, f"__{_symbol}__", _operator(_name))
    setattr(Batched, f"__r{_symbol}__", _operator(_name, reflected=True))
for _symbol, _name in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"
}.items():
    setattr(Batched, f"__{_symbol}__", _operator(_name))
Batched.__neg__ = lambda self: BATCHED.negative(self)  # type: ignore[attr-defined,operator]
Batched.__hash__ = object.__hash__  # type: ignore[assignment,method-assign]
