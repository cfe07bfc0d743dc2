"""Keras's functions that pick, place, order and count elements by their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import in_dtype, numeric, result_type, tensor, together
from gradtape.keras_backend.numpy_reduce import widened
from gradtape.ops import elementwise, indexing, reduce
from gradtape.ops import numpy_functions as functions
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import integers
from gradtape.ops.cutting import cutting
from gradtape.ops.nondiff import host
from gradtape.ops.numpy_functions import one_axis
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor, wrap

_PLACES = np.dtype(np.int32)


# Picking


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Slices of x along an axis, one per index; negative ones count from the end."""
    x = tensor(x)
    if axis is None:
        x, axis = shapes.reshape(x, shape=(-1,)), 0
    at = one_axis(axis, x._array.ndim)
    return indexing.take(x, _from_start(indices, x._array.shape[at]), axis=at, batch_dims=0)


def _from_start(indices: Any, length: int) -> Tensor:
    """Indices counted from the start of an axis."""
    indices = tensor(indices)
    kind = indices._array.dtype
    if kind.kind not in "iu":
        text = "Indices must be integers."
        raise TypeError(message(text, received=f"indices of dtype {indices.dtype.name}", fix='cast(indices, "int32")'))
    if kind.itemsize < 4:
        indices = elementwise.astype(indices, dtype=_PLACES)
    if kind.kind == "u" or (type(indices) is Tensor and (indices._array >= 0).all()):
        return indices
    return elementwise.where(elementwise.less(indices, 0), elementwise.add(indices, length), indices)


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """x at indices that run along an axis, paired on the others (axes of length 1 broadcast)."""
    x, indices = tensor(x), tensor(indices)
    if axis is None:
        x, indices, axis = shapes.reshape(x, shape=(-1,)), shapes.reshape(indices, shape=(-1,)), 0
    if x._array.ndim != indices._array.ndim:
        text = "x and indices of take_along_axis must have one rank."
        raise ValueError(message(text, received=f"shapes {x._array.shape} and {indices._array.shape}"))
    at = one_axis(axis, x._array.ndim)
    lengths = [list(t._array.shape) for t in (x, indices)]
    length, number = (n[at] for n in lengths)
    indices = _from_start(indices, length)
    indexing.check_range(indices._array, length)
    lengths[0][at] = lengths[1][at] = 1
    common = np.broadcast_shapes(*map(tuple, lengths))
    x, indices = (
        t if t._array.shape == (full := (*common[:at], n, *common[at + 1 :])) else shapes.broadcast_to(t, shape=full)
        for t, n in ((x, length), (indices, number))
    )
    return indexing.take_along_axis(x, indices, axis=at)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """The element of the first choice whose condition holds there, or the default."""
    if len(condlist) != len(choicelist) or not condlist:
        text = "select needs as many conditions as choices, and at least one."
        raise ValueError(message(text, received=f"{len(condlist)} conditions and {len(choicelist)} choices"))
    *choices, out = together(*choicelist, default)
    for condition, choice in reversed([*zip(condlist, choices)]):
        out = elementwise.where(in_dtype(condition, "bool"), choice, out)
    return out


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements on a diagonal of two axes, as a last axis."""
    x = tensor(x)
    if x._array.ndim < 2:
        text = "`diagonal` requires an array of at least two dimensions"
        raise ValueError(message(text, received=f"shape {x._array.shape}"))
    return functions.diagonal(x, offset, axis1, axis2)


def diag(x: Any, k: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    x = tensor(x)
    if x._array.ndim not in (1, 2):
        raise ValueError(message("`x` must be 1-d or 2-d", received=f"shape {x._array.shape}"))
    return functions.diag(x, k)


def diagflat(x: Any, k: int = 0) -> Tensor:
    """The matrix with all elements of x on its diagonal."""
    return functions.diag(shapes.reshape(tensor(x), shape=(-1,)), k)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal of two axes."""
    return reduce.sum(widened(diagonal(x, offset, axis1, axis2)), axis=-1)


def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """Places among all elements of a shape as one index per axis."""
    lengths = integers(shape)
    rest = _from_start(indices, math.prod(lengths))
    indexing.check_range(rest._array, math.prod(lengths))
    places = []
    for n in reversed(lengths):
        places.append(elementwise.remainder(rest, n))
        rest = elementwise.floor_divide(rest, n)
    return tuple(in_dtype(p, tensor(indices).dtype.name) for p in reversed(places))


# Order


def sort(x: Any, axis: int | None = -1) -> Tensor:
    """Elements in ascending order along an axis, or all of them."""
    x = tensor(x)
    if axis is None:
        x, axis = shapes.reshape(x, shape=(-1,)), 0
    return indexing.sort(x, axis=one_axis(axis, x._array.ndim))


def argsort(x: Any, axis: int | None = -1) -> Tensor:
    """The indices that sort x along an axis; equal elements keep their order."""
    x = tensor(x)
    if axis is None or not x._array.ndim:
        x, axis = shapes.reshape(x, shape=(-1,)), 0
    return elementwise.cast(indexing.argsort(x, axis=one_axis(axis, x._array.ndim)), "int32")


def argpartition(x: Any, kth: int, axis: int | None = -1) -> Tensor:
    """Indices that put the element ``kth`` in its sorted place, smaller ones before it: here, those that sort x."""
    x = tensor(x)
    length = math.prod(x._array.shape) if axis is None else x._array.shape[one_axis(axis, x._array.ndim)]
    one_axis(kth, length)  # the same error for a place outside the axis
    return argsort(x, axis)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Tensor:
    """Where values would be inserted in a sorted vector, before or after equal elements."""
    row, values = map(numeric, together(sorted_sequence, values))
    if row._array.ndim != 1:
        raise ValueError(
            message(
                "`searchsorted` only supports 1-D sorted sequences. You can use `keras.ops.vectorized_map` "
                f"to extend it to N-D sequences. Received: sorted_sequence.shape={row._array.shape}"
            )
        )
    if side not in ("left", "right"):
        raise ValueError(message(f"Unknown side of searchsorted: {side!r}.", expected="'left' or 'right'"))
    if type(row) is Tensor and type(values) is Tensor:
        return _inserted(row, values, side)
    value = shapes.expand_dims(values, axis=values._array.ndim)
    smaller = (elementwise.less if side == "left" else elementwise.less_equal)(row, value)
    if row._array.dtype in dtypes.TRAINABLE:  # NaN comes after all others
        last = elementwise.isnan(value)
        last = elementwise.logical_and(last, elementwise.logical_not(elementwise.isnan(row))) if side == "left" else last
        smaller = elementwise.logical_or(smaller, last)
    return reduce.sum(elementwise.cast(smaller, "int32"), axis=-1)


@cutting(name="searchsorted")
def _inserted(row: Tensor, values: Tensor, side: Any) -> Tensor:
    return wrap(np.asarray(np.searchsorted(row._array, values._array, side)).astype(_PLACES))


def digitize(x: Any, bins: Any) -> Tensor:
    """The number of the bin of each element: how many of the ascending limits it reaches."""
    bins = tensor(bins)
    if bins._array.ndim != 1:
        raise ValueError(message(f"`bins` must be a 1D array. Received: bins with shape bins.shape={bins._array.shape}"))
    return searchsorted(bins, x, side="right")


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element of x1 is one of x2."""
    x1, x2 = map(numeric, together(x1, x2))
    row = indexing.sort(shapes.reshape(x2, shape=(-1,)), axis=0)
    length = row._array.shape[0]
    if not length:
        return wrap(np.full(x1._array.shape, invert))
    place = elementwise.minimum(searchsorted(row, x1), length - 1)
    same = elementwise.not_equal if invert else elementwise.equal
    return same(indexing.take(row, place, axis=0, batch_dims=0), x1)


# What depends on values so that they must be known


@cutting
def nonzero(x: Any) -> tuple[Tensor, ...]:
    """The places of the elements that are not zero: one vector of indices per axis."""
    return tuple(wrap(index.astype(_PLACES)) for index in np.nonzero(np.atleast_1d(host(tensor(x)))))


def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Tensor:
    """How often each number occurs in a vector, or in each row of a matrix; or the sum of the weights where it does."""
    if sparse:
        raise ValueError(message("bincount gives dense tensors only.", received="sparse=True", fix="sparse=False"))
    x = tensor(x)
    known = host(x)
    if known.size and known.min() < 0:
        raise ValueError(message("bincount counts numbers of 0 and more.", received=f"{known.min()}"))
    depth = max(int(known.max()) + 1 if known.size else 0, minlength)
    if weights is None:
        kind, loads = "int32", wrap(np.ones(known.shape, np.int32))
    else:
        loads = tensor(weights)
        kind = result_type(x.dtype, loads.dtype)
        loads = in_dtype(loads, kind)
    rows = math.prod(known.shape[:-1])
    places = known.reshape(rows, -1).astype(np.int64) + depth * np.arange(rows)[:, None]
    loads = shapes.reshape(loads, shape=(-1,))
    counts = indexing.take_transpose(loads, wrap(places.reshape(-1)), axis=0, shape=(rows * depth,), batch_dims=0)
    return shapes.reshape(counts, shape=(*known.shape[:-1], depth))


def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements (or slices along an axis) in ascending order; with a ``size``, cut or filled up to it."""
    x = tensor(x)
    if axis is None:
        source, at = shapes.reshape(x, shape=(-1,)), 0
    else:
        source, at = elementwise.identity(x), one_axis(axis, x._array.ndim)  # its gradient is dense
    if size is not None and axis is None and type(x) is not Tensor and source._array.shape[0]:
        values, first, inverse, counts = _distinct(source, size, fill_value)
    else:
        values, first, inverse, counts = _known_distinct(source, axis, at, size, fill_value)
    if axis is None:
        inverse = shapes.reshape(inverse, shape=x._array.shape)
    asked = ((return_index, first), (return_inverse, inverse), (return_counts, counts))
    others = [elementwise.cast(found, "int32") for wanted, found in asked if wanted]
    return (values, *others) if others else values


def _known_distinct(x: Tensor, axis: int | None, at: int, size: int | None, fill_value: Any) -> tuple[Tensor, ...]:
    """The distinct slices, where each is first, which of them each slice is, and how often each occurs."""
    _, first, inverse, counts = np.unique(host(x), True, True, True, axis=axis, equal_nan=False)
    extra = 0 if size is None else size - first.size
    if extra < 0:
        first, counts = first[:size], counts[:size]
    values = indexing.take(x, wrap(first), axis=at, batch_dims=0)
    if extra > 0:
        first, counts = np.pad(first, (0, extra), constant_values=first[:1].sum()), np.pad(counts, (0, extra))
        values = _filled_up(values, at, extra, fill_value)
    return values, wrap(first), wrap(inverse.reshape(-1)), wrap(counts)


def _distinct(x: Tensor, size: int, fill_value: Any) -> tuple[Tensor, ...]:
    """The same for a vector whose values are not known yet: equal ones are neighbours when they are sorted."""
    length = x._array.shape[0]
    order = indexing.argsort(x, axis=0)
    row = indexing.take(x, order, axis=0, batch_dims=0)
    changes = elementwise.not_equal(*(indexing.getitem(row, index=(part,)) for part in (slice(1, None), slice(-1))))
    begins = shapes.concatenate(wrap(np.ones(1, bool)), changes, axis=0)
    group = reduce.cumsum(elementwise.cast(begins, order.dtype), axis=0) - 1

    def of_groups(values: Tensor) -> Tensor:
        total = indexing.take_transpose(values, group, axis=0, shape=(max(length, size),), batch_dims=0)
        return indexing.getitem(total, index=(slice(size),))

    counts = of_groups(elementwise.ones_like(order))
    there = elementwise.greater(counts, 0)
    smallest = indexing.getitem(order, index=(0,))
    first = elementwise.where(there, of_groups(elementwise.where(begins, order, 0)), smallest)
    values = indexing.take(x, first, axis=0, batch_dims=0)
    if fill_value is not None:
        values = elementwise.where(there, values, in_dtype(fill_value, x.dtype.name))
    return values, first, indexing.take_transpose(group, order, axis=0, shape=(length,), batch_dims=0), counts


def _filled_up(values: Tensor, axis: int, extra: int, fill_value: Any) -> Tensor:
    """More slices along an axis: of a number, or of the first slice."""
    if fill_value is None:
        end = indexing.getitem(values, index=(slice(None),) * axis + (slice(0, 1),))
    else:
        end = in_dtype(fill_value, values.dtype.name)
    lengths = list(values._array.shape)
    lengths[axis] = extra
    return shapes.concatenate(values, shapes.broadcast_to(end, shape=tuple(lengths)), axis=axis)
