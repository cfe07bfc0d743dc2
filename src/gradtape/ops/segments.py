"""Reductions over groups of rows: sorted (ids never fall) and unsorted (a number of segments is given)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import elementwise, indexing, shape
from gradtape.ops.arguments import REAL, not_allowed
from gradtape.ops.arguments import indices as as_indices
from gradtape.ops.nondiff import truncate_divide
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor, wrap


def _columns(xp: Any, x: Any, rows: Any) -> Any:
    """One value per row, with axes of length 1 so that it meets the rows of x."""
    return xp.reshape(rows, shape=(-1, *[1] * (len(xp.shape(x)) - 1)))


def _counts(xp: Any, ids: Any, count: int) -> Any:
    ones = xp.ones(shape=xp.shape(ids), dtype=np.dtype(np.int64))
    return xp.take_transpose(ones, ids, axis=0, shape=(count,))


def scan(xp: Any, combine: Callable, x: Any, ids: Any, count: int, empty: Any) -> Any:
    """Rows combined within each segment, by doubling steps over the rows in order of their ids: log₂ n passes."""
    size = xp.shape(x)[0]
    if not size:
        return xp.full(shape=(count, *xp.shape(x)[1:]), value=empty, dtype=xp.dtype(x))
    order = xp.argsort(ids, axis=0)
    rows, sorted_ids = xp.take(x, order, axis=0), xp.take(ids, order, axis=0)
    step = 1
    while step < size:
        later = xp.getitem(rows, index=(slice(step, None),))
        same = xp.equal(
            xp.getitem(sorted_ids, index=(slice(step, None),)), xp.getitem(sorted_ids, index=(slice(0, size - step),))
        )
        joined = combine(later, xp.getitem(rows, index=(slice(0, size - step),)))
        later = xp.where(_columns(xp, x, same), joined, later)
        rows = xp.concatenate(xp.getitem(rows, index=(slice(0, step),)), later, axis=0)
        step *= 2
    counts = _counts(xp, sorted_ids, count)
    ends = xp.cumsum(counts, axis=0)
    ends = xp.where(xp.greater(counts, xp.zeros_like(counts)), xp.subtract(ends, xp.ones_like(ends)), xp.zeros_like(ends))
    filled = _columns(xp, x, xp.greater(counts, xp.zeros_like(counts)))
    nothing = xp.full(shape=(), value=empty, dtype=xp.dtype(x))
    return xp.where(filled, xp.take(rows, ends, axis=0), nothing)


@op(same=(0,))
def segment_max(xp, x, ids, *, count, empty):
    """The largest row of each segment, elementwise; ``empty`` where a segment has no rows."""
    return scan(xp, xp.maximum, x, ids, count, empty)


@op(same=(0,))
def segment_min(xp, x, ids, *, count, empty):
    """The smallest row of each segment, elementwise; ``empty`` where a segment has no rows."""
    return scan(xp, xp.minimum, x, ids, count, empty)


def _extreme_rule(xp, g, out, x, ids, *, count):
    """Ties share the gradient evenly."""
    hit = xp.astype(xp.equal(x, xp.take(out, ids, axis=0)), dtype=xp.dtype(g))
    ties = xp.take_transpose(hit, ids, axis=0, shape=xp.shape(out))
    share = g / xp.maximum(ties, xp.ones_like(ties))
    return hit * xp.take(share, ids, axis=0)


for _op in (segment_max, segment_min):
    _op.vjp(_extreme_rule, None)


# The six reductions, on ids in [0, count)


def _sum(x: Tensor, ids: Tensor, count: int) -> Tensor:
    return indexing.take_transpose(x, ids, axis=0, shape=(count, *x._array.shape[1:]))


def _divided(x: Tensor, ids: Tensor, count: int, divisor: Callable) -> Tensor:
    counts = _counts(RECORDED, ids, count)
    counts = _columns(RECORDED, x, elementwise.maximum(counts, 1))
    return divisor(_sum(x, ids, count), elementwise.cast(counts, x.dtype))


def _whole_mean(x: Tensor, ids: Tensor, count: int) -> Tensor:
    """Integers give the whole part."""
    return _divided(x, ids, count, truncate_divide if x.dtype.is_integer else elementwise.divide)


def _mean(x: Tensor, ids: Tensor, count: int) -> Tensor:
    return _divided(x, ids, count, elementwise.true_divide)


def _sqrt_n(x: Tensor, ids: Tensor, count: int) -> Tensor:
    return _divided(x, ids, count, lambda total, n: elementwise.divide(total, elementwise.sqrt(n)))


def _prod(x: Tensor, ids: Tensor, count: int) -> Tensor:
    dense = elementwise.identity(x)  # a gather from the source itself would give IndexedSlices
    return scan(RECORDED, RECORDED.multiply, dense, ids, count, 1)


def _limit(dtype: np.dtype, lowest: bool) -> Any:
    if dtype.kind in "iu":
        info: Any = np.iinfo(dtype)
    elif dtype.kind == "V":
        import ml_dtypes

        info = ml_dtypes.finfo(dtype)
    else:
        info = np.finfo(dtype)
    return info.min if lowest else info.max


# Public forms


def _check_dtype(label: str, x: Tensor) -> None:
    if x._array.dtype.kind in ("bcO" if label.endswith(("Max", "Min")) else "bO"):
        raise not_allowed(label, x._array.dtype, REAL)


def _segment_count(value: Any, label: str) -> int:
    array = np.asarray(convert_to_tensor(value)._host())
    if array.ndim:
        text = f"num_segments should be a scalar, not shape {dims(array.shape)} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=shown(value), expected="one integer"))
    if array.dtype.kind not in "iu":
        text = (
            f"Value for attr 'Tnumsegments' of {convert_to_tensor(value).dtype.word} is not in the list of allowed values: "
            f"int32, int64 [Op:{label}]"
        )
        raise InvalidArgumentError(message(text, received=shown(value), fix="tf.cast(num_segments, tf.int32)"))
    if array < 0:
        text = f"Input num_segments == {array} must not be negative. [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=shown(value), expected="0 or more", fix="tf.reduce_max(segment_ids) + 1")
        )
    return int(array)


def sorted_segments(label: str, reduction: Callable) -> Callable:
    """The reduction over rows whose ids never fall; a segment without rows is 0 (product: 1)."""

    def reduce(data: Any, segment_ids: Any) -> Tensor:
        x, ids = convert_to_tensor(data), as_indices(segment_ids, label)
        _check_dtype(label, x)
        known = np.asarray(ids._host())
        if not x._array.ndim:
            text = f"input must be at least rank 1 [Op:{label}]"
            raise InvalidArgumentError(message(text, received="data of shape ()", expected="at least one axis"))
        if known.ndim != 1:
            raise InvalidArgumentError(
                message(
                    f"segment_ids should be a vector. [Op:{label}]",
                    received=f"{known.shape}",
                    fix="one id per row of data; the unsorted_segment functions take ids of more axes",
                )
            )
        if known.shape != x._array.shape[:1]:
            raise InvalidArgumentError(
                message(
                    f"segment_ids should be the same size as dimension 0 of input. [Op:{label}]",
                    received=f"ids {known.shape}, data {x._array.shape}",
                    expected=f"{x._array.shape[0]} ids, one per row of data",
                )
            )
        if known.size and known[0] < 0:
            text = (
                f"Segment id {known[0]} out of range [0, {known[-1] + 1}), possibly because 'segment_ids' input is not sorted. "
                f"[Op:{label}]"
            )
            raise InvalidArgumentError(
                message(text, received=f"segment_ids from {known.min()} to {known.max()}", expected="ids from 0, sorted")
            )
        if (known[1:] < known[:-1]).any():
            raise InvalidArgumentError(
                message(
                    f"segment ids are not increasing [Op:{label}]",
                    received=f"segment_ids {shown(known)}",
                    fix="sort data and ids by tf.argsort(ids), or use the unsorted_segment function of the same name",
                )
            )
        return reduction(x, ids, int(known[-1]) + 1 if known.size else 0)

    return reduce


def unsorted_segments(label: str, reduction: Callable) -> Callable:
    """The reduction over rows with ids in any order; rows with negative ids are left out."""

    def reduce(data: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        x, ids, count = convert_to_tensor(data), as_indices(segment_ids, label), _segment_count(num_segments, label)
        _check_dtype(label, x)
        lead = ids._array.ndim
        if x._array.shape[:lead] != ids._array.shape:
            raise InvalidArgumentError(
                message(
                    f"data.shape = {dims(x._array.shape)} does not start with segment_ids.shape = {dims(ids._array.shape)} "
                    f"[Op:{label}]",
                    received=f"data {x._array.shape}, segment_ids {ids._array.shape}",
                    expected="one id per element, or per row, of data",
                )
            )
        known = ids._array if type(ids) is Tensor else None
        if known is not None and known.size and known.max() >= count:
            at = tuple(int(i) for i in np.argwhere(known >= count)[0])
            raise InvalidArgumentError(
                message(
                    f"segment_ids{list(at) if at else ''} = {known[at]} is out of range [0, {count}) [Op:{label}]",
                    received=f"segment_ids up to {known.max()}, num_segments={count}",
                    fix=f"num_segments={known.max() + 1}",
                )
            )
        indexing.look_at(elementwise.maximum(ids, 0)._array, count)
        if lead != 1:
            size = int(np.prod(ids._array.shape, dtype=np.int64))
            x = shape.reshape(x, shape=(size, *x._array.shape[lead:]))
            ids = shape.reshape(ids, shape=(size,))
        if known is not None and not (known < 0).any():
            return reduction(x, ids, count)
        ids = elementwise.where(elementwise.less(ids, 0), count, ids)  # rows to drop go to one more segment
        return indexing.getitem(reduction(x, ids, count + 1), index=(slice(0, count),))

    return reduce


def _extreme(function: Callable, empty: Callable) -> Callable:
    return lambda x, ids, count: function(x, ids, count=count, empty=empty(x._array.dtype))


_max_or_zero, _min_or_zero = (_extreme(f, lambda dtype: 0) for f in (segment_max, segment_min))
_max, _min = _extreme(segment_max, lambda d: _limit(d, True)), _extreme(segment_min, lambda d: _limit(d, False))

SORTED = {
    name: sorted_segments(f"Segment{name.capitalize()}", function)
    for name, function in {"sum": _sum, "mean": _whole_mean, "max": _max_or_zero, "min": _min_or_zero, "prod": _prod}.items()
}
UNSORTED = {
    name: unsorted_segments(f"UnsortedSegment{name.capitalize()}", function)
    for name, function in {"sum": _sum, "mean": _mean, "sqrt_n": _sqrt_n, "max": _max, "min": _min, "prod": _prod}.items()
}


def extreme_rows(x: Tensor, index: Tensor, updates: Tensor, largest: bool) -> Tensor:
    """Rows of x replaced by the larger (smaller) of themselves and the updates at ``index``."""
    rows = x._array.shape[0]
    ids = shape.concatenate(wrap(np.arange(rows, dtype=np.int64)), elementwise.cast(index, "int64"), axis=0)
    function = segment_max if largest else segment_min
    # One more, for traced indices that are out of range.
    out = function(shape.concatenate(x, updates, axis=0), ids, count=rows + 1, empty=0)
    return indexing.getitem(out, index=(slice(0, rows),))
