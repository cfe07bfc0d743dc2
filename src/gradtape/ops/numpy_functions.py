"""NumPy's functions over our ops: same names, same keywords, recorded. `numpy_protocol` says when they are used.

What a signature lacks (``out=``, ``where=`` …) is refused by the caller, who then lets NumPy answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.ops import elementwise, indexing, reduce, shape, statistics
from gradtape.values import dtypes
from gradtape.values.batched import NotVectorizable
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import BatchedTensor, Tensor, wrap

FUNCTIONS: dict[Callable, Callable] = {}
"""From a NumPy function to one of the same arguments that computes with ops."""


class Leaves(Exception):
    """This call cannot be recorded (an unusual keyword): NumPy must answer."""


# Operands


def leaves(args: Any) -> Iterator[Any]:
    for arg in args:
        if isinstance(arg, (list, tuple)):
            yield from leaves(arg)
        else:
            yield arg


def as_numpy(value: Any) -> Any:
    """The argument with every tensor in it as an array that cannot be written to."""
    if isinstance(value, BatchedTensor):
        raise NotVectorizable(message("This NumPy function has no rule for vectorised values.", fix="use the tf function"))
    if isinstance(value, (Tensor, Variable)):
        return np.asarray(value)
    if isinstance(value, Convertible):
        return np.asarray(value._operand())
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, (Tensor, Convertible)) for leaf in leaves(value)):
        return [as_numpy(v) for v in value] if isinstance(value, list) else tuple(map(as_numpy, value))
    if isinstance(value, dtypes.DType):
        return value.numpy
    return value


def one(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return value._operand() if isinstance(value, Convertible) else convert_to_tensor(value)


def common(values: Any) -> list[Tensor]:
    """Tensors of one dtype: that of the inexact tensors; arrays and numbers bend to it, unless they are complex."""
    values = [v._operand() if isinstance(v, Convertible) else v for v in values]
    have = [v._array.dtype for v in values if isinstance(v, Tensor) and v._array.dtype in dtypes.TRAINABLE]
    if not have:
        have = [v._array.dtype for v in values if isinstance(v, Tensor)] or [np.dtype(np.float64)]
    target = have[0] if have.count(have[0]) == len(have) else np.result_type(*have)
    if target.kind != "c" and any(not isinstance(v, Tensor) and np.iscomplexobj(v) for v in values):
        target = np.result_type(target, np.complex64)
    return [_cast(v, target) for v in values]


def _cast(value: Any, dtype: np.dtype) -> Tensor:
    if isinstance(value, (list, tuple)) and any(isinstance(leaf, (Tensor, Convertible)) for leaf in leaves(value)):
        value = convert_to_tensor(value)  # a recorded stack
    if not isinstance(value, Tensor):
        return convert_to_tensor(np.asarray(value).astype(dtype))
    return value if value._array.dtype == dtype else elementwise.astype(value, dtype=dtype)


def our_dtype(dtype: Any) -> dtypes.DType:
    """The element type that NumPy would understand: its float is float64, ours float32."""
    return dtypes.as_dtype(dtype if isinstance(dtype, dtypes.DType) else np.dtype(dtype))


def stands_for(*functions: Callable) -> Callable:
    def register(function: Callable) -> Callable:
        for f in functions:
            FUNCTIONS[f] = function
        return function

    return register


def all_axes(axis: Any, rank: int) -> tuple[int, ...]:
    axes = range(rank) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(one_axis(a, rank) for a in axes)


def one_axis(axis: Any, rank: int) -> int:
    axis = int(axis)
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def _reduction(function: Callable, *theirs: Callable) -> Callable:
    def call(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        a = one(a)
        keepdims = keepdims is not np._NoValue and bool(keepdims)
        if axis is not None:
            axis = all_axes(axis, a.ndim)
        return function(a, axis=axis, keepdims=keepdims)

    return stands_for(*theirs)(call)


_reduction(reduce.sum, np.sum)
_reduction(reduce.prod, np.prod)
_reduction(reduce.max, np.max, np.amax)
_reduction(reduce.min, np.min, np.amin)
mean = _reduction(reduce.mean, np.mean)
_reduction(lambda a, **k: reduce.sum(_no_nans(a), **k), np.nansum)
_reduction(lambda a, **k: reduce.max(a, **k) - reduce.min(a, **k), np.ptp)


def _no_nans(a: Tensor) -> Tensor:
    return elementwise.where(elementwise.isnan(a), elementwise.zeros_like(a), a)


@stands_for(np.nanmean)
def nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    a = one(a)
    number = np.sum(~np.isnan(as_numpy(a)), axis=axis, keepdims=bool(keepdims))
    return reduce.sum(_no_nans(a), axis=None if axis is None else all_axes(axis, a.ndim), keepdims=bool(keepdims)) / number


@stands_for(np.var)
def var(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    a = one(a)
    axes = all_axes(axis, a.ndim)
    squares = statistics.squared(a - reduce.mean(a, axis=axes, keepdims=True))
    total = reduce.sum(squares, axis=axes, keepdims=keepdims is not np._NoValue and bool(keepdims))
    return total / max(reduce.count(a._array.shape, axes) - ddof, 0)


@stands_for(np.std)
def std(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    return elementwise.sqrt(var(a, axis, ddof=ddof, keepdims=keepdims))


@stands_for(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Tensor:
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    a, weights = common((a, weights))
    if weights._array.shape != a._array.shape:
        if axis is None or isinstance(axis, tuple) or weights.ndim != 1:
            raise Leaves
        weights = reshape(weights, [-1 if i == one_axis(axis, a.ndim) else 1 for i in range(a.ndim)])
        weights = shape.broadcast_to(weights, shape=a._array.shape)
    keep = {"axis": all_axes(axis, a.ndim), "keepdims": keepdims is not np._NoValue and bool(keepdims)}
    return reduce.sum(a * weights, **keep) / reduce.sum(weights, **keep)


@stands_for(np.median)
def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    a = one(a)
    if isinstance(axis, tuple) or not a.size:
        raise Leaves
    ordered, at = (ravel(a), 0) if axis is None else (a, one_axis(axis, a.ndim))
    ordered = indexing.sort(ordered, axis=at)
    n = ordered._array.shape[at]
    middle = indexing.getitem(ordered, index=(slice(None),) * at + (slice((n - 1) // 2, n // 2 + 1),))
    out = reduce.mean(middle, axis=(at,), keepdims=bool(keepdims))
    return reshape(out, (1,) * a.ndim) if keepdims and axis is None else out


def _cumulative(function: Callable, theirs: Callable) -> Callable:
    def call(a: Any, axis: int | None = None) -> Tensor:
        a = one(a)
        return function(ravel(a), axis=0) if axis is None else function(a, axis=one_axis(axis, a.ndim))

    return stands_for(theirs)(call)


_cumulative(reduce.cumsum, np.cumsum)
_cumulative(reduce.cumprod, np.cumprod)


@stands_for(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    a = one(a)
    before = (slice(None),) * one_axis(axis, a.ndim)
    for _ in range(n):
        later, earlier = (indexing.getitem(a, index=(*before, part)) for part in (slice(1, None), slice(None, -1)))
        a = later - earlier
    return a


@stands_for(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    y = one(y)
    at = one_axis(axis, y.ndim)
    before = (slice(None),) * at
    middle = (indexing.getitem(y, index=(*before, slice(1, None))) + indexing.getitem(y, index=(*before, slice(None, -1)))) / 2
    if x is None:
        return reduce.sum(middle * dx, axis=(at,))
    y, x = common((y, x))
    step = diff(x) if x.ndim == 1 else diff(x, axis=axis)
    if x.ndim == 1:
        step = reshape(step, [-1 if i == at else 1 for i in range(y.ndim)])
    return reduce.sum(middle * step, axis=(at,))


# Elementwise functions that are not ufuncs


@stands_for(np.where)
def where(condition: Any, x: Any, y: Any) -> Tensor:
    x, y = common((x, y))
    return elementwise.where(as_numpy(condition) if not isinstance(condition, BatchedTensor) else condition, x, y)


@stands_for(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    """NumPy's clip: at a bound the gradient flows to a (where maximum and minimum tie, it goes to their first argument)."""
    low, high = (b if b is not np._NoValue else None for b in (a_min if min is None else min, a_max if max is None else max))
    out = one(a)
    if low is not None:
        out = elementwise.maximum(*common((out, low)))
    return out if high is None else elementwise.minimum(*common((out, high)))


@stands_for(np.nan_to_num)
def nan_to_num(x: Any, *, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    x = one(x)
    good = np.isfinite(as_numpy(x))
    replaced = np.nan_to_num(as_numpy(x), nan=nan, posinf=posinf, neginf=neginf)
    return elementwise.where(good, x, wrap(replaced))


@stands_for(np.sinc)
def sinc(x: Any) -> Tensor:
    x = one(x) * math.pi
    zero = np.asarray(as_numpy(x) == 0)
    safe = elementwise.where(zero, elementwise.ones_like(x), x)
    # 1 - x²/6 at 0, so that the first derivatives there are right too
    return elementwise.where(zero, 1 - elementwise.square(x) / 6, elementwise.sin(safe) / safe)


FUNCTIONS |= {
    np.real: lambda val: _real(one(val)), np.imag: lambda val: elementwise.imag(one(val)),
    np.copy: lambda a: elementwise.identity(one(a)), np.angle: lambda z: elementwise.angle(one(z)),
}  # fmt: skip


def _real(x: Tensor) -> Tensor:
    return elementwise.real(x) if x.dtype.is_complex else elementwise.identity(x)


@stands_for(np.astype)
def astype(x: Any, dtype: Any) -> Tensor:
    return elementwise.cast(one(x), our_dtype(dtype))


# Shape


def _lengths(value: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in value) if np.iterable(value) else (int(value),)


@stands_for(np.reshape)
def reshape(a: Any, shape: Any = None, *, newshape: Any = None) -> Tensor:
    return _shape.reshape(one(a), shape=_lengths(newshape if shape is None else shape))


_shape = shape


@stands_for(np.ravel)
def ravel(a: Any) -> Tensor:
    return shape.reshape(one(a), shape=(-1,))


@stands_for(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Tensor:
    a = one(a)
    return shape.transpose(a, axes=None if axes is None else all_axes(_lengths(axes), a.ndim))


@stands_for(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any) -> Tensor:
    return shape.matrix_transpose(one(x))


@stands_for(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    a = one(a)
    return shape.transpose(a, axes=_moved(a.ndim, lambda probe: np.moveaxis(probe, source, destination)))


@stands_for(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    a = one(a)
    return shape.transpose(a, axes=_moved(a.ndim, lambda probe: np.swapaxes(probe, axis1, axis2)))


@stands_for(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    a = one(a)
    return shape.transpose(a, axes=_moved(a.ndim, lambda probe: np.rollaxis(probe, axis, start)))


def _moved(rank: int, move: Callable) -> tuple[int, ...]:
    """The order in which ``move`` puts axes, seen on an empty array whose axis i has length i."""
    return move(np.empty(range(rank))).shape


@stands_for(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Tensor:
    a = one(a)
    return reshape(a, np.expand_dims(np.broadcast_to(0, a._array.shape), axis).shape)


@stands_for(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Tensor:
    a = one(a)
    return reshape(a, np.squeeze(np.broadcast_to(0, a._array.shape), axis).shape)


@stands_for(np.broadcast_to)
def broadcast_to(array: Any, shape: Any) -> Tensor:
    return _shape.broadcast_to(one(array), shape=_lengths(shape))


def _at_least(rank: int, arrange: Callable) -> Callable:
    def call(*args: Any) -> Any:
        outs = tuple(reshape(x, arrange(np.broadcast_to(0, x._array.shape)).shape) for x in map(one, args))
        return outs[0] if len(outs) == 1 else outs

    return call


FUNCTIONS |= {f: _at_least(i, f) for i, f in enumerate((np.atleast_1d, np.atleast_2d, np.atleast_3d), 1)}


@stands_for(np.concatenate)
def concatenate(arrays: Any, axis: int | None = 0) -> Tensor:
    parts = common(arrays)
    if axis is None:
        return shape.concatenate(*map(ravel, parts), axis=0)
    return shape.concatenate(*parts, axis=one_axis(axis, parts[0].ndim))


@stands_for(np.stack)
def stack(arrays: Any, axis: int = 0) -> Tensor:
    parts = common(arrays)
    return shape.stack(*parts, axis=one_axis(axis, parts[0].ndim + 1))


def _all_at_least(tup: Any, arrange: Callable) -> list[Tensor]:
    return [reshape(x, arrange(np.broadcast_to(0, x._array.shape)).shape) for x in common(tup)]


@stands_for(np.vstack)
def vstack(tup: Any) -> Tensor:
    return concatenate(_all_at_least(tup, np.atleast_2d), 0)


@stands_for(np.hstack)
def hstack(tup: Any) -> Tensor:
    parts = _all_at_least(tup, np.atleast_1d)
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


@stands_for(np.dstack)
def dstack(tup: Any) -> Tensor:
    return concatenate(_all_at_least(tup, np.atleast_3d), 2)


@stands_for(np.column_stack)
def column_stack(tup: Any) -> Tensor:
    return concatenate([reshape(x, (-1, 1)) if x.ndim < 2 else x for x in common(tup)], 1)


@stands_for(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    return concatenate((arr, values), axis)


@stands_for(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    ary = one(ary)
    at = one_axis(axis, ary.ndim)
    pieces = np.array_split(np.arange(ary._array.shape[at]), indices_or_sections)
    bounds = [(int(p[0]), int(p[-1]) + 1) if p.size else (0, 0) for p in pieces]
    return [indexing.getitem(ary, index=(slice(None),) * at + (slice(*b),)) for b in bounds]


@stands_for(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    if not np.iterable(indices_or_sections) and one(ary)._array.shape[axis] % indices_or_sections:
        raise ValueError(
            message(
                "array split does not result in an equal division",
                received=f"an axis of length {one(ary)._array.shape[axis]} in {indices_or_sections} parts",
                fix="np.array_split makes parts that differ by one",
            )
        )
    return array_split(ary, indices_or_sections, axis)


FUNCTIONS |= {
    np.vsplit: lambda ary, indices_or_sections: split(ary, indices_or_sections, 0),
    np.hsplit: lambda ary, indices_or_sections: split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1),
    np.unstack: lambda x, *, axis=0: tuple(unstacked(one(x), axis)),
}  # fmt: skip


def unstacked(x: Tensor, axis: int) -> list[Tensor]:
    at = one_axis(axis, x.ndim)
    return [indexing.getitem(x, index=(slice(None),) * at + (i,)) for i in range(x._array.shape[at])]


@stands_for(np.tile)
def tile(A: Any, reps: Any) -> Tensor:
    a, reps = one(A), _lengths(reps)
    rank = max(len(reps), a.ndim)
    a = reshape(a, (1,) * (rank - a.ndim) + a._array.shape)
    return shape.tile(a, repeats=(1,) * (rank - len(reps)) + reps)


@stands_for(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    a = one(a) if axis is not None else ravel(a)
    counts = np.asarray(as_numpy(repeats))
    at = 0 if axis is None else one_axis(axis, a.ndim)
    return shape.repeat(a, repeats=int(counts.reshape(-1)[0]) if counts.size == 1 else tuple(counts.tolist()), axis=at)


@stands_for(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    a = one(a)
    if axis is None:
        return reshape(shape.roll(ravel(a), shift=int(shift), axis=0), a._array.shape)
    shifts, axes = np.broadcast_arrays(shift, axis)
    return shape.roll(a, shift=tuple(map(int, shifts.reshape(-1))), axis=all_axes(axes.reshape(-1).tolist(), a.ndim))


@stands_for(np.flip)
def flip(m: Any, axis: Any = None) -> Tensor:
    m = one(m)
    return shape.flip(m, axis=all_axes(axis, m.ndim))


FUNCTIONS |= {np.flipud: lambda m: flip(m, 0), np.fliplr: lambda m: flip(m, 1)}


@stands_for(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    k %= 4
    if k in (0, 2):
        return elementwise.identity(one(m)) if k == 0 else flip(m, tuple(axes))
    return flip(swapaxes(m, *axes), axes[0]) if k == 1 else swapaxes(flip(m, axes[0]), *axes)


@stands_for(np.pad)
def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    array = one(array)
    if isinstance(pad_width, dict) or mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise Leaves
    if mode == "constant":
        if np.ndim(constant_values):
            raise Leaves
        pairs = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
        return shape.pad(array, widths=tuple(map(tuple, pairs)), value=constant_values)
    places = np.pad(np.arange(array.size).reshape(array._array.shape), pad_width, mode)  # type: ignore[call-overload]
    return indexing.take(ravel(array), places, axis=0, batch_dims=0)


# Picking


@stands_for(np.take)
def take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    a = ravel(a) if axis is None else elementwise.identity(one(a))  # an intermediate: its gradient is dense
    at = 0 if axis is None else one_axis(axis, a.ndim)
    return indexing.take(a, _nonnegative(indices, a._array.shape[at]), axis=at, batch_dims=0)


@stands_for(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Tensor:
    arr = one(arr)
    at = one_axis(axis, arr.ndim)
    indices = _nonnegative(indices, arr._array.shape[at])
    np.take_along_axis(np.broadcast_to(0, arr._array.shape), indices, at)  # refuses what is out of range
    lengths = list(np.broadcast_shapes(*((*n[:at], 1, *n[at + 1 :]) for n in (arr._array.shape, indices.shape))))
    lengths[at] = indices.shape[at]
    indices = np.broadcast_to(indices, lengths)
    lengths[at] = arr._array.shape[at]
    arr = shape.broadcast_to(arr, shape=tuple(lengths))
    return indexing.take_along_axis(arr, indices, axis=at)


def _nonnegative(indices: Any, length: int) -> np.ndarray:
    indices = np.asarray(as_numpy(indices))
    return np.where(indices < 0, indices + length, indices)


@stands_for(np.sort)
def sort(a: Any, axis: int | None = -1) -> Tensor:
    a = one(a)
    return indexing.sort(ravel(a), axis=0) if axis is None else indexing.sort(a, axis=one_axis(axis, a.ndim))


def _triangle(m: Tensor, k: int) -> np.ndarray:
    rows, columns = m._array.shape[-2:]
    return np.tri(rows, columns, k, bool)


@stands_for(np.tril)
def tril(m: Any, k: int = 0) -> Tensor:
    m = one(m)
    return elementwise.where(_triangle(m, k), m, elementwise.zeros_like(m))


@stands_for(np.triu)
def triu(m: Any, k: int = 0) -> Tensor:
    m = one(m)
    return elementwise.where(_triangle(m, k - 1), elementwise.zeros_like(m), m)


@stands_for(np.diagonal, np.linalg.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    a = one(a)
    places = np.diagonal(np.arange(a.size).reshape(a._array.shape), offset, axis1, axis2)
    return indexing.take(ravel(a), np.ascontiguousarray(places), axis=0, batch_dims=0)


@stands_for(np.diag)
def diag(v: Any, k: int = 0) -> Tensor:
    v = one(v)
    if v.ndim == 2:
        return diagonal(v, k)
    n = v.size + abs(k)
    rows = np.arange(v.size) + max(-k, 0)
    return indexing.scatter_nd(v, np.stack([rows, rows + k], -1), shape=(n, n))


@stands_for(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    return reduce.sum(diagonal(a, offset, axis1, axis2), axis=(-1,))
