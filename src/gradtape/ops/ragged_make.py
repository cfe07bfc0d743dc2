"""Ragged tensors from nested lists and ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message, shown
from gradtape.ops import partition, shape
from gradtape.ops.arguments import indices as as_indices
from gradtape.ops.arguments import integer
from gradtape.ops.nondiff import host
from gradtape.ops.ragged import RaggedTensor, gather_rows
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def constant(pylist: Any, dtype: Any, ragged_rank: int | None, inner_shape: Any, splits_dtype: Any) -> Any:
    """A ragged tensor from nested lists; the levels beyond ``ragged_rank`` must be uniform."""
    integers = dtypes.as_dtype(splits_dtype).numpy
    if not _is_list(pylist):
        if ragged_rank:
            text = f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}"
            raise ValueError(message(text, received=f"pylist={shown(pylist)}, a scalar", fix="ragged_rank=0, or a nested list"))
        if inner_shape:
            text = f"Invalid pylist={pylist!r}: incompatible with dim(inner_shape)={len(inner_shape)}"
            raise ValueError(
                message(text, received=f"pylist={shown(pylist)}, a scalar", fix="leave inner_shape out, or give a nested list")
            )
        return convert_to_tensor(pylist, dtype)
    if ragged_rank is not None and ragged_rank < 0:
        text = f"Invalid ragged_rank={ragged_rank}: must be nonnegative"
        raise ValueError(message(text, received=f"ragged_rank={ragged_rank}", expected="0 or more"))
    depth, deepest = _scalar_depth(pylist), _max_depth(pylist)
    depth = depth if depth is not None else deepest
    if deepest > depth:
        text = f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting"
        raise ValueError(message(text, received=f"pylist={shown(pylist)}", expected="empty lists no deeper than the numbers"))
    if inner_shape is not None:
        inner = tuple(int(n) for n in inner_shape)
        levels = depth - 1 - len(inner) if ragged_rank is None else ragged_rank
        if ragged_rank is not None and _scalar_depth(pylist) is not None and levels + len(inner) != depth - 1:
            raise ValueError(
                message(
                    f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and inner_shape={inner}",
                    received=f"pylist={shown(pylist)}",
                    expected="ragged_rank and the rank of inner_shape to add up to the nesting",
                )
            )
    else:
        levels = max(depth - 1, 0) if ragged_rank is None else ragged_rank
        if levels > 0 and levels >= depth and _scalar_depth(pylist) is not None:
            text = (
                f"pylist has scalar values depth {depth}, but ragged_rank={levels} requires scalar value depth greater "
                f"than {levels}"
            )
            raise ValueError(
                message(text, received=f"pylist={shown(pylist)}, ragged_rank={levels}", expected=f"ragged_rank below {depth}")
            )
        inner = _uniform_inner(pylist, levels)
    nested, flat = [], list(pylist)
    for _ in range(levels):
        nested.append(partition.starting_at_zero(np.array([len(row) for row in flat], integers)))
        flat = [element for row in flat for element in row]
    values: Any = _flat(flat, dtype, inner)
    for splits in reversed(nested):
        values = RaggedTensor._of(values, splits)
    return values


def _flat(elements: list, dtype: Any, inner: tuple[int, ...]) -> Tensor:
    if elements:
        tensor = convert_to_tensor(elements, dtype)
    else:
        tensor = wrap(np.zeros((0, *inner), (dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)).numpy))
    if tensor._array.shape[1:] != inner:
        if tensor._array.size and int(np.prod(inner)) * len(elements) == tensor._array.size:
            return wrap(tensor._array.reshape(-1, *inner))
        raise ValueError(
            message("inner values have inconsistent shape", received=f"{tensor._array.shape[1:]}", expected=f"{inner}")
        )
    return tensor


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _scalar_depth(value: Any) -> int | None:
    """How deep the elements are; None if there are none."""
    if not _is_list(value):
        return 0
    depths = {depth for depth in map(_scalar_depth, value) if depth is not None}
    if len(depths) > 1:
        text = f"all scalar values must have the same nesting depth in {value!r}"
        raise ValueError(message(text, received=f"pylist={shown(value)}", expected="all numbers at one depth: [[1, 2], [3]]"))
    return depths.pop() + 1 if depths else None


def _max_depth(value: Any) -> int:
    return 1 + max(map(_max_depth, value), default=0) if _is_list(value) else 0


def _uniform_inner(pylist: Any, levels: int) -> tuple[int, ...]:
    """The shape of what stands below so many levels."""
    flat = list(pylist)
    for _ in range(levels):
        flat = [element for row in flat for element in row]
    lengths: list[int] = []
    while flat and all(map(_is_list, flat)):
        lengths.append(len(flat[0]))
        if any(len(row) != lengths[0] for row in flat[1:] if not lengths[1:]):
            text = "inner values have inconsistent shape"
            raise ValueError(message(text, received=f"{flat[:4]!r}", expected="inner lists of one length"))
        flat = [element for row in flat for element in row]
    return tuple(lengths)


_KINDS = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]


def ranges(starts: Any, limits: Any, deltas: Any, dtype: Any, splits_dtype: Any) -> RaggedTensor:
    """start, start + delta, … below limit, for each row."""
    if limits is None:
        starts, limits = 0, starts
    parts = [convert_to_tensor(part, dtype) for part in (starts, limits, deltas)]
    widest = max([part.dtype for part in parts], key=_KINDS.index)
    arrays = [host(part).astype(widest.numpy) for part in parts]
    if any(array.ndim > 1 for array in arrays):
        text = "starts, limits and deltas must be scalars or vectors"
        raise InvalidArgumentError(
            message(text, received=f"shapes {[array.shape for array in arrays]}", expected="numbers or vectors")
        )
    sizes = {len(array) for array in arrays if array.ndim}
    if len(sizes) > 1:
        text = "starts, limits, and deltas must have the same shape"
        raise InvalidArgumentError(
            message(text, received=f"lengths {sorted(sizes)}", expected="one length for all, or single numbers")
        )
    start, limit, delta = np.broadcast_arrays(*map(np.atleast_1d, arrays))
    if (delta == 0).any():
        raise InvalidArgumentError(message("Requires delta != 0", received="a delta of 0", expected="deltas that are not 0"))
    steps = np.ceil((limit.astype(np.float64) - start) / delta)
    lengths = np.maximum(steps, 0).astype(dtypes.as_dtype(splits_dtype).numpy)
    splits = partition.starting_at_zero(lengths)
    values = np.repeat(start, lengths) + partition.columns(splits).astype(start.dtype) * np.repeat(delta, lengths)
    return RaggedTensor._of(wrap(values.astype(start.dtype)), splits)


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any) -> RaggedTensor:
    """One row for each number: the slices of data that have it."""
    x, numbers, count = convert_to_tensor(data), host(as_indices(partitions, "DynamicPartition")), integer(num_partitions)
    if x._array.shape[: numbers.ndim] != numbers.shape:
        raise ValueError(
            message(
                f"Shapes {numbers.shape} and {x._array.shape[: numbers.ndim]} are incompatible",
                received=f"data of shape {x._array.shape}",
                expected="partitions with the shape of the leading axes of data",
            )
        )
    flat = numbers.ravel()
    if ((flat < 0) | (flat >= count)).any():
        text = "partitions must be less than num_partitions"
        raise InvalidArgumentError(message(text, received=f"{flat.tolist()[:8]}", expected=f"numbers from 0 to {count - 1}"))
    rows = shape.reshape(x, shape=(flat.size, *x._array.shape[numbers.ndim :]))
    lengths = np.bincount(flat, minlength=count).astype(numbers.dtype)
    return RaggedTensor._of(gather_rows(rows, np.argsort(flat, kind="stable")), partition.starting_at_zero(lengths))


def map_flat_values(op: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A function of the flat values of ragged arguments, in lists too, which all have the same rows."""
    template: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            if template and not _same(template[0], value):
                raise InvalidArgumentError(
                    message(
                        "partitions have incompatible row_splits: the arguments have different rows",
                        received="ragged tensors whose rows differ in length",
                        expected="the same row_splits in all of them",
                    )
                )
            template.append(value)
            return value.flat_values
        return type(value)(map(flat, value)) if isinstance(value, (list, tuple)) else value

    plain, named = [flat(value) for value in args], {name: flat(value) for name, value in kwargs.items()}
    if not template:
        return op(*plain, **named)
    out = op(*plain, **named)
    count = template[0].flat_values._array.shape[0]
    if out._array.shape[:1] != (count,):
        raise ValueError(
            message(
                "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as flat_values "
                "of any ragged inputs.",
                received=f"{out._array.shape}",
                expected=f"({count}, …)",
            )
        )
    return template[0].with_flat_values(out)


def _same(x: RaggedTensor, y: RaggedTensor) -> bool:
    mine, theirs = x._nested(), y._nested()
    return len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))


def row_splits_to_segment_ids(splits: Any, out_type: Any) -> Tensor:
    """The row of every element."""
    array = _splits(splits)
    return wrap(partition.row_ids(array).astype(array.dtype if out_type is None else dtypes.as_dtype(out_type).numpy))


def segment_ids_to_row_splits(segment_ids: Any, num_segments: Any, out_type: Any) -> Tensor:
    """The splits of rows from the row of every element."""
    ids = host(convert_to_tensor(segment_ids, dtype_hint=dtypes.int64))
    if ids.dtype not in (np.int32, np.int64):
        text = "segment_ids must have dtype int32 or int64"
        raise ValueError(message(text, received=f"{ids.dtype}", fix="tf.cast(segment_ids, tf.int64)"))
    if ids.ndim != 1:
        text = f"Shape {ids.shape} must have rank 1"
        raise ValueError(message(text, received=f"segment_ids of shape {ids.shape}", expected="one axis"))
    counts = np.bincount(ids, minlength=0 if num_segments is None else int(host(num_segments)))
    splits = partition.starting_at_zero(counts)
    return wrap(splits.astype(ids.dtype if out_type is None else dtypes.as_dtype(out_type).numpy))


def _splits(splits: Any) -> np.ndarray:
    array = host(convert_to_tensor(splits, dtype_hint=dtypes.int64))
    if array.dtype not in (np.int32, np.int64):
        text = "splits must have dtype int32 or int64"
        raise ValueError(message(text, received=f"{array.dtype}", fix="tf.cast(splits, tf.int64)"))
    if array.ndim != 1:
        text = f"Shape {array.shape} must have rank 1"
        raise ValueError(message(text, received=f"splits of shape {array.shape}", expected="one axis"))
    if not len(array):
        raise ValueError(message("Invalid row_splits: []", received="[]", expected="one number more than rows, the first 0"))
    return array


