"""Reading and writing by index. Each reader and its transpose are the derivative rules of one another."""

from __future__ import annotations

import math

import numpy as np

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops.execution import staging
from gradtape.values.shape import is_open


@op(label="StridedSlice")
def getitem(xp, x, *, index):
    """Basic indexing: ``index`` is a tuple of ints, slices, None and Ellipsis."""
    return xp.getitem(x, index=index)


@op
def put_slice(xp, x, *, index, shape):
    """Zeros of ``shape`` with x at ``index``."""
    return xp.put_slice(x, index=index, shape=shape)


getitem.vjp(lambda xp, g, *, x_shape, index: xp.put_slice(g, index=index, shape=x_shape))
put_slice.vjp(lambda xp, g, *, index: xp.getitem(g, index=index))


def check_range(indices, length: int, what: str = "indices") -> None:
    """Refuse indices outside [0, length), where NumPy would wrap negative ones; of traced ones those that arguments decide."""
    look_at(indices, length)
    if isinstance(indices, np.ndarray) and indices.size and (indices.min() < 0 or int(indices.max()) >= length):
        bad = (indices < 0) | (indices >= _limit(length))
        where = tuple(int(i) for i in np.argwhere(bad)[0]) if indices.ndim else ()
        at = f"[{','.join(map(str, where))}]" if where else ""
        raise InvalidArgumentError(
            message(
                f"{what}{at} = {indices[where]} is not in [0, {None if is_open(length) else length})",
                fix="indices count from 0; negative ones are not allowed here",
            )
        )


def look_at(indices, end: int | tuple[int, ...], *, always: bool = False) -> None:
    """Let a call of a function be refused if traced indices are out of range: if its arguments decide them, or ``always``."""
    if staging.inside and not isinstance(indices, np.ndarray):
        staging.control.within(indices, end, always=always)


def _limit(length: int) -> int:
    """A length, or for one that is left open more than any index."""
    return np.iinfo(np.int64).max if is_open(length) else length


@op(label="GatherV2", same=(0,))
def take(xp, x, indices, *, axis=0, batch_dims=0):
    """Slices of x along an axis (not negative), one per index."""
    check_range(indices, xp.shape(x)[axis])
    return xp.take(x, indices, axis=axis, batch_dims=batch_dims)


@op(same=(0,))
def take_transpose(xp, x, indices, *, axis, shape, batch_dims=0):
    """Zeros of ``shape`` to which the slices of x are added at ``indices``."""
    check_range(indices, shape[axis])
    return xp.take_transpose(x, indices, axis=axis, shape=shape, batch_dims=batch_dims)


def _take_sparse(xp, g, kept, attributes, shapes):
    """The gradient of rows of a source as IndexedSlices."""
    shape, indices = shapes[0], kept["indices"]
    if attributes["axis"] != 0 or attributes["batch_dims"] != 0:
        return xp.take_transpose(g, indices, **attributes, shape=shape)
    rows = math.prod(xp.shape(indices))
    values = xp.reshape(g, shape=(rows, *shape[1:]))
    return IndexedSlices._of(values, xp.reshape(indices, shape=(rows,)), shape)


take.vjp(
    lambda xp, g, indices, *, x_shape, axis, batch_dims: xp.take_transpose(
        g, indices, axis=axis, shape=x_shape, batch_dims=batch_dims
    ),
    None,
    sparse=_take_sparse,
)
take_transpose.vjp(
    lambda xp, g, indices, *, axis, batch_dims: xp.take(g, indices, axis=axis, batch_dims=batch_dims),
    None,
)


@op(same=(0,))
def take_along_axis(xp, x, indices, *, axis):
    """x at indices that run along an axis, paired on the others."""
    return xp.take_along_axis(x, indices, axis=axis)


@op(same=(0,))
def along_axis_transpose(xp, x, indices, *, axis, shape):
    """Zeros of ``shape`` to which x is added at indices along an axis."""
    return xp.along_axis_transpose(x, indices, axis=axis, shape=shape)


take_along_axis.vjp(
    lambda xp, g, indices, *, x_shape, axis: xp.along_axis_transpose(g, indices, axis=axis, shape=x_shape), None
)
along_axis_transpose.vjp(lambda xp, g, indices, *, axis: xp.take_along_axis(g, indices, axis=axis), None)


def check_range_nd(indices, shape: tuple[int, ...]) -> None:
    """Refuse index vectors that point outside ``shape``."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(
            message(
                f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(shape)}",
                received=f"indices of shape {indices.shape} into shape {shape}",
                expected=f"at most {len(shape)} numbers per index",
            )
        )
    look_at(indices, tuple(shape[:depth]))
    if not isinstance(indices, np.ndarray) or not indices.size:
        return
    ends = indices.reshape(-1, depth).max(0).tolist()
    if indices.min() < 0 or any(last >= length for last, length in zip(ends, shape)):
        bad = ((indices < 0) | (indices >= np.array([_limit(length) for length in shape[:depth]], np.int64))).any(-1)
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        text = f"indices{list(at)} = {indices[at].tolist()} does not index into param shape {dims(shape)}"
        raise InvalidArgumentError(
            message(text, received=f"indices of shape {indices.shape}", expected=f"places inside {shape}, counted from 0")
        )


@op(label="GatherNd", same=(0,))
def gather_nd(xp, x, indices):
    """Slices of x at index vectors, which stand on the last axis of ``indices``."""
    check_range_nd(indices, xp.shape(x))
    return xp.gather_nd(x, indices)


@op(label="ScatterNd", same=(0,))
def scatter_nd(xp, x, indices, *, shape):
    """Zeros of ``shape`` to which the slices of x are added at index vectors."""
    check_range_nd(indices, shape)
    return xp.scatter_nd(x, indices, shape=shape)


def _gather_nd_sparse(xp, g, kept, attributes, shapes):
    """The gradient of whole rows of a source as IndexedSlices, as that of take."""
    shape, indices = shapes[0], kept["indices"]
    if len(xp.shape(indices)) != 2 or xp.shape(indices)[-1] != 1:
        return xp.scatter_nd(g, indices, shape=shape)
    rows = math.prod(xp.shape(indices))
    values = xp.reshape(g, shape=(rows, *shape[1:]))
    return IndexedSlices._of(values, xp.reshape(indices, shape=(rows,)), shape)


gather_nd.vjp(
    lambda xp, g, indices, *, x_shape: xp.scatter_nd(g, indices, shape=x_shape), None, sparse=_gather_nd_sparse
)
scatter_nd.vjp(lambda xp, g, indices: xp.gather_nd(g, indices), None)


@op(label="OneHot")
def one_hot(xp, indices, *, depth, dtype):
    """A new last axis with 1 at the index and 0 elsewhere; indices out of range give zeros."""
    return xp.one_hot(indices, depth=depth, dtype=dtype)


@op
def sort(xp, x, *, axis):
    """Elements in ascending order along an axis."""
    return xp.sort(x, axis=axis)


@op
def argsort(xp, x, *, axis):
    """The indices that sort x along an axis; equal elements keep their order."""
    return xp.argsort(x, axis=axis)


sort.vjp(
    lambda xp, g, x, *, axis: xp.along_axis_transpose(g, xp.argsort(x, axis=axis), axis=axis, shape=xp.shape(x))
)
for _op in (one_hot, argsort):
    _op.nondifferentiable()
