"""Joining, repeating, picking and reordering rows of ragged tensors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import indexing, partition
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import integer, integers
from gradtape.ops.nondiff import host
from gradtape.ops.ragged import RaggedTensor, gather_rows
from gradtape.ops.ragged_dense import as_ragged, expand_first, uniform_rows
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    """A new axis of length 1."""
    if not isinstance(input, RaggedTensor):
        return shapes.expand_dims(input, axis=axis)
    axis, rank = integer(axis), input._rank
    if not -rank - 1 <= axis <= rank:
        text = f"axis={axis} out of bounds: expected {-rank - 1}<=axis<{rank + 1}"
        raise ValueError(message(text, received=f"axis={axis} for rank {rank}", expected=f"an axis from {-rank - 1} to {rank}"))
    axis %= rank + 1
    if axis == 0:
        return expand_first(input)
    if axis == 1:
        return RaggedTensor._of(input, np.arange(len(input._splits), dtype=input._splits.dtype), 1)
    return input.with_values(expand_dims(input._values, axis - 1))


def squeeze(input: RaggedTensor, axis: Any = None, name: str | None = None) -> Any:
    """Without these axes, which have length 1."""
    if axis is None:
        text = "Ragged.squeeze must have an axis argument."
        raise ValueError(message(text, received="axis=None", fix="axis=0, or any other axis of length 1"))
    out: Any = input
    for at in sorted({input._axis(a) for a in integers(axis)}, reverse=True):
        out = _squeezed(out, at)
    return out


def _squeezed(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return shapes.squeeze(value, axis=axis)
    if axis > 1:
        return value.with_values(_squeezed(value._values, axis - 1))
    lengths = np.diff(value._splits) if axis else np.array([len(value._splits) - 1])
    if (lengths != 1).any():
        text = f"Can not squeeze axis {axis}."
        raise InvalidArgumentError(
            message(text, received=f"lengths {lengths.tolist()[:8]}", expected="length 1 everywhere along the axis")
        )
    return value._values


# Joining


def concat(values: Any, axis: Any, name: str = "concat") -> Any:
    """Ragged tensors joined along an axis."""
    parts = [value if isinstance(value, RaggedTensor) else convert_to_tensor(value) for value in values]
    ranks = {part._rank if isinstance(part, RaggedTensor) else part._array.ndim for part in parts}
    if len(ranks) > 1:
        shown = next(p.shape for p in parts[1:] if p.shape.rank != parts[0].shape.rank)
        text = f"Shape {shown} must have rank {parts[0].shape.rank}"
        raise ValueError(message(text, received=f"ranks {sorted(ranks)}", expected=f"rank {parts[0].shape.rank} in all"))
    rank, at = ranks.pop(), integer(axis)
    if not -rank <= at < rank:
        text = f"axis={at} out of bounds: expected {-rank}<=axis<{rank}"
        raise ValueError(message(text, received=f"axis={at} for rank {rank}", expected=f"an axis from {-rank} to {rank - 1}"))
    return _joined(parts, at % rank)


def _joined(parts: list, axis: int) -> Any:
    if not any(isinstance(part, RaggedTensor) for part in parts):
        return shapes.concatenate(*parts, axis=axis)
    ragged = [as_ragged(part) for part in parts]
    if axis == 0:
        levels = max(part.ragged_rank for part in ragged)
        return _stacked_rows([_to_levels(part, levels) for part in ragged])
    _same_row_count(ragged)
    if axis == 1:
        count, many = len(ragged[0]._splits) - 1, len(ragged)
        rows = _joined(ragged, 0)
        side_by_side = gather_rows(rows, np.arange(count * many).reshape(many, count).T.ravel())
        return RaggedTensor._of(side_by_side._values, side_by_side._splits[::many])
    if any((part._splits != ragged[0]._splits).any() for part in ragged):
        raise InvalidArgumentError(
            message(
                "Inputs must have identical ragged splits",
                received="ragged tensors whose rows differ in length",
                expected="the same row lengths in all, to join along an inner axis",
            )
        )
    return ragged[0].with_values(_joined([part._values for part in ragged], axis - 1))


def _to_levels(part: RaggedTensor, levels: int) -> RaggedTensor:
    """With inner axes as rows, where the others have rows."""
    if levels == 1:
        return part
    inner = part._values if isinstance(part._values, RaggedTensor) else as_ragged(part._values)
    return part.with_values(_to_levels(inner, levels - 1))


def _stacked_rows(parts: list) -> Any:
    if not isinstance(parts[0], RaggedTensor):
        return shapes.concatenate(*parts, axis=0)
    lengths = np.concatenate([np.diff(part._splits) for part in parts])
    return RaggedTensor._of(_stacked_rows([part._values for part in parts]), partition.starting_at_zero(lengths))


def _same_row_count(parts: list[RaggedTensor]) -> None:
    counts = [len(part._splits) - 1 for part in parts]
    at = next((i for i, count in enumerate(counts) if count != counts[0]), 0)
    if at:
        text = f"Input tensors at index 0 (=x) and {at} (=y) have incompatible shapes."
        raise InvalidArgumentError(message(text, received=f"numbers of rows {counts}", expected="one number of rows in all"))


def stack(values: Any, axis: Any = 0, name: str = "stack") -> Any:
    """Ragged tensors joined along a new axis."""
    parts = [value if isinstance(value, RaggedTensor) else convert_to_tensor(value) for value in values]
    if not parts:
        raise ValueError(message("rt_inputs may not be empty.", received="an empty list", expected="one tensor or more"))
    rank = parts[0]._rank if isinstance(parts[0], RaggedTensor) else parts[0]._array.ndim
    at = integer(axis) + (rank + 1 if integer(axis) < 0 else 0)
    if rank == 0:
        return shapes.stack(*parts, axis=0)
    if rank == 1 and at == 0:
        return RaggedTensor.from_row_lengths(_joined(parts, 0), np.array([part._array.shape[0] for part in parts], np.int32))
    if rank > 1:
        parts = [as_ragged(part) for part in parts]
    return _joined([expand_dims(part, at) for part in parts], at)


def tile(input: RaggedTensor, multiples: Any, name: str | None = None) -> RaggedTensor:
    """Repeated along each axis."""
    counts = integers(multiples)
    if len(counts) != input._rank:
        text = f"Shapes ({len(counts)},) and ({input._rank},) are incompatible"
        raise ValueError(message(text, received=f"multiples {counts} for rank {input._rank}", expected="one count per axis"))
    out = input
    for axis, count in enumerate(counts):
        if count != 1:
            out = _joined([out] * count, axis) if count else _emptied(out, axis)
    return out


def _emptied(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return indexing.getitem(value, index=(slice(None),) * axis + (slice(0, 0),))
    if axis == 0:
        return gather_rows(value, np.zeros(0, np.int64))
    if axis == 1:
        return RaggedTensor._of(gather_rows(value._values, np.zeros(0, np.int64)), np.zeros_like(value._splits))
    return value.with_values(_emptied(value._values, axis - 1))


def split(value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split") -> list:
    """Parts along the first axis: so many equal ones, or ones of the given lengths."""
    if value._axis(axis):
        raise ValueError(message("A ragged tensor is split along its first axis only.", received=f"axis={axis}", fix="axis=0"))
    rows, sizes = len(value._splits) - 1, integers(num_or_size_splits)
    if np.ndim(num_or_size_splits) == 0:
        if sizes[0] <= 0 or rows % sizes[0]:
            raise InvalidArgumentError(
                message(
                    "Cannot exactly split the `axis` dimension of `value` with the given `num_or_size_split`.",
                    received=f"{rows} rows and {sizes[0]} parts",
                    fix=f"a number that divides {rows}, or a list of sizes that add up to {rows}",
                )
            )
        sizes = (rows // sizes[0],) * sizes[0]
    if sum(sizes) != rows:
        text = f"The lengths {sizes} do not add up to {rows} rows"
        raise InvalidArgumentError(message(text, received=f"sizes {sizes}", expected=f"{rows} in all"))
    ends = np.cumsum((0, *sizes))
    return [gather_rows(value, np.arange(start, end)) for start, end in itertools.pairwise(ends)]


def reverse(tensor: RaggedTensor, axis: Any, name: str | None = None) -> RaggedTensor:
    """Elements in reverse order along axes."""
    out = tensor
    for at in {tensor._axis(a) for a in integers(axis)}:
        out = _reversed(out, at)
    return out


def _reversed(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return shapes.flip(value, axis=(axis,))
    if axis == 0:
        return gather_rows(value, np.arange(len(value._splits) - 1)[::-1])
    if axis == 1:
        _, elements = partition.cut(value._splits, slice(None, None, -1))
        return value.with_values(gather_rows(value._values, elements))
    return value.with_values(_reversed(value._values, axis - 1))


def reshape(tensor: RaggedTensor, shape: Any, name: str | None = None) -> Tensor:
    """All elements, in order, in a dense shape."""
    return shapes.reshape(tensor.flat_values, shape=integers(shape))


# Picking


def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: Any = 0, name: str | None = None
) -> Any:
    """Rows of ragged params, or rows of tensors by ragged indices."""
    at = integer(axis if axis is not None else batch_dims)
    batch = integer(batch_dims)
    params = params if isinstance(params, RaggedTensor) else convert_to_tensor(params)
    if isinstance(indices, RaggedTensor) and not isinstance(params, RaggedTensor) and not batch and not at:
        return indices.with_flat_values(indexing.take(params, indices.flat_values, axis=0, batch_dims=0))
    if batch == 1 and at == 1:
        return _gather_in_rows(as_ragged(params), as_ragged(indices if _is_ragged(indices) else convert_to_tensor(indices)))
    if batch or at:
        raise ValueError(
            message(
                "tf.gather of ragged tensors works along the first axis, or with batch_dims=1 along the second.",
                received=f"axis={at}, batch_dims={batch}",
                fix="x.to_tensor() first, or tf.gather row by row in tf.map_fn",
            )
        )  # fmt: skip
    if isinstance(indices, RaggedTensor):
        return indices.with_flat_values(gather(params, indices.flat_values))
    where = host(indices)
    _check_rows(where, len(params._splits) - 1)
    if not where.ndim:
        return params[int(where)]
    return uniform_rows(gather_rows(params, where.ravel()), where.shape, params._splits.dtype)


def _is_ragged(value: Any) -> bool:
    return isinstance(value, RaggedTensor)


def _check_rows(where: np.ndarray, count: Any) -> None:
    bad = (where < 0) | (where >= count)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        length = np.broadcast_to(count, where.shape)[at]
        text = f"indices{list(at) if at else ''} = {where[at]} is not in [0, {length})"
        raise InvalidArgumentError(
            message(text, received=f"indices of shape {where.shape}", expected=f"rows from 0 to {length - 1}")
        )


def _gather_in_rows(params: RaggedTensor, indices: RaggedTensor) -> RaggedTensor:
    """From each row of params the elements that the row of indices names."""
    _same_row_count([params, indices])
    rows, where = partition.row_ids(indices._splits), host(indices._values)
    _check_rows(where, np.diff(params._splits)[rows])
    return indices.with_values(gather_rows(params._values, params._splits[:-1][rows] + where))


def nonzero(condition: RaggedTensor) -> Tensor:
    """The index vectors of the true elements."""
    flat = host(condition.flat_values)
    places = partition.coordinates(condition._nested())
    inner = np.argwhere(flat)
    return wrap(np.concatenate([places[inner[:, 0]], inner[:, 1:]], 1).astype(np.int64))


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements where the mask holds, row by row.

    A mask of n axes keeps the first n - 1 axes of the data and leaves out elements of the n-th.
    """
    data = data if isinstance(data, RaggedTensor) else convert_to_tensor(data)
    mask = mask if isinstance(mask, RaggedTensor) else convert_to_tensor(mask, dtypes.bool_)
    if mask.dtype is not dtypes.bool_:
        text = f"Tensor conversion requested dtype bool for Tensor with dtype {mask.dtype.name}"
        raise ValueError(message(text, received=f"{mask.dtype!r}", fix="tf.cast(mask, tf.bool)"))
    rank = mask._rank if isinstance(mask, RaggedTensor) else mask._array.ndim
    if not rank:
        text = "mask cannot be scalar."
        raise ValueError(message(text, received="a mask of shape ()", expected="a mask with at least one axis"))
    return _masked(data, mask, rank)


def _masked(data: Any, mask: Any, rank: int) -> Any:
    if rank == 1:
        kept = host(mask)
        rows = len(data._splits) - 1 if isinstance(data, RaggedTensor) else data._array.shape[0]
        if len(kept) != rows:
            raise ValueError(message(f"Shapes ({rows},) and ({len(kept)},) are incompatible", fix="one truth value per row"))
        return gather_rows(data, np.flatnonzero(kept))
    data, mask = as_ragged(data), as_ragged(mask)
    if not np.array_equal(data._splits, mask._splits):
        text = "Inputs must have identical ragged splits"
        raise InvalidArgumentError(
            message(text, received="data and mask that differ", expected="a mask whose rows are as long as the data's")
        )
    if rank > 2:
        return data.with_values(_masked(data._values, mask._values, rank - 1))
    before = np.append(0, np.cumsum(host(mask._values))).astype(mask._splits.dtype)  # how many are kept up to each element
    return RaggedTensor._of(_masked(data._values, mask._values, 1), before[mask._splits])
