"""Counting, masking, and sums over picked rows: sparse inputs, dense results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.errors import InvalidArgumentError, message, shown
from gradtape.ops import clip, elementwise, guarded, indexing, segments, shape
from gradtape.ops.arguments import indices as as_indices
from gradtape.ops.arguments import integer
from gradtape.ops.nondiff import host
from gradtape.ops.ragged import RaggedTensor
from gradtape.ops.sparse import SparseTensor, of, sparse
from gradtape.ops.sparse_functions import pick, summed
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def segment(label: str, reduction: Callable) -> Callable:
    """A reduction over the rows of data that ``indices`` names, by segments whose ids never fall."""

    def call(data: Any, indices: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        x, which, ids = convert_to_tensor(data), as_indices(indices, label), host(as_indices(segment_ids, label))
        if ids.shape != which._array.shape or ids.ndim != 1:
            raise InvalidArgumentError(
                message(
                    f"segment_ids and indices should have same size. [Op:{label}]",
                    received=f"{ids.shape} and {which._array.shape}",
                    expected="one axis, and one segment id per index",
                )
            )  # fmt: skip
        if (np.diff(ids) < 0).any():
            raise InvalidArgumentError(
                message(
                    f"segment ids are not increasing [Op:{label}]",
                    received=f"segment_ids {shown(ids)}",
                    fix="sort indices and segment_ids by tf.argsort(segment_ids)",
                )
            )
        if (ids < 0).any():
            text = f"segment ids must be >= 0 [Op:{label}]"
            raise InvalidArgumentError(message(text, received=f"segment_ids from {ids.min()}", expected="0 or more"))
        last = int(ids[-1]) if len(ids) else -1
        count = last + 1 if num_segments is None else integer(num_segments)
        if count <= last:
            text = f"segment ids must be < num_segments [Op:{label}]"
            raise InvalidArgumentError(
                message(text, received=f"segment_ids up to {last}, num_segments={count}", fix=f"num_segments={last + 1}")
            )
        rows = indexing.take(elementwise.identity(x), which, axis=0, batch_dims=0)  # its gradient is dense
        return reduction(rows, wrap(ids), count)

    return call


segment_sum = segment("SparseSegmentSum", segments._sum)
segment_mean = segment("SparseSegmentMean", segments._mean)
segment_sqrt_n = segment("SparseSegmentSqrtN", segments._sqrt_n)


def mask(slices: IndexedSlices, masked: Any) -> IndexedSlices:
    """Without the rows at the given indices."""
    indices = host(slices.indices)
    kept = np.flatnonzero(~np.isin(indices, host(masked)))
    return IndexedSlices(pick(slices.values, kept), wrap(indices[kept]), slices.dense_shape)


def bincount(values: Any, weights: Any, axis: Any, minlength: Any, maxlength: Any, binary_output: bool) -> SparseTensor:
    """How often each number occurs, or the sum of its weights: over everything (axis 0), or by row (axis -1)."""
    if axis not in (0, -1, None):
        text = f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        raise ValueError(message(text, received=f"axis={axis}", fix="axis=-1 counts in each row, axis=0 in the whole input"))
    rows, numbers, count = _rows(values, -1 if axis == -1 else 0)
    kind = numbers.dtype
    if (numbers < 0).any():
        text = "Input values must all be non-negative"
        raise InvalidArgumentError(message(text, received=f"{numbers.min()}", expected="0 or more"))
    if weights is not None and binary_output:
        text = "Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one."
        raise ValueError(message(text, received="weights and binary_output=True", fix="leave one of them out"))
    kept = np.ones(len(numbers), bool) if maxlength is None else numbers < integer(maxlength)
    amounts = wrap(np.ones(len(numbers), kind)) if weights is None else _flat(weights)
    width = max(int(numbers[kept].max(initial=-1)) + 1, 0 if minlength is None else integer(minlength))
    which = np.flatnonzero(kept)
    present, group = np.unique(rows[which] * max(width, 1) + numbers[which], return_inverse=True)
    total = summed(pick(amounts, which), group.astype(np.int64), len(present))
    total = wrap(np.minimum(host(total), 1)) if binary_output else total
    if count is None:
        return of(present[:, None], total, [width])
    return of(np.stack([present // max(width, 1), present % max(width, 1)], 1), total, [count, width])


def _rows(values: Any, axis: int) -> tuple[np.ndarray, np.ndarray, int | None]:
    """The row of each number, the numbers, and how many rows there are (None: everything is one)."""
    if isinstance(values, (SparseTensor, RaggedTensor)):
        x = values if isinstance(values, SparseTensor) else values.to_sparse()
        numbers, rows, count = host(x.values), x._places[:, 0], x._lengths[0]
        flat = len(x._lengths) < 2
    else:
        array = host(convert_to_tensor(values))
        numbers, flat = array.ravel(), array.ndim < 2
        count = 1 if flat else array.shape[0]
        rows = np.repeat(np.arange(count), len(numbers) // max(count, 1))
    if numbers.dtype.kind not in "iu":
        text = "bincount counts integers."
        raise InvalidArgumentError(message(text, received=f"{numbers.dtype}", fix="tf.cast(values, tf.int32)"))
    if axis == 0 or flat:
        return np.zeros(len(numbers), np.int64), numbers, None
    return rows.astype(np.int64), numbers, count


def _flat(weights: Any) -> Tensor:
    if isinstance(weights, SparseTensor):
        return weights.values
    if isinstance(weights, RaggedTensor):
        return weights.flat_values
    return shape.reshape(convert_to_tensor(weights), shape=(-1,))


def embedding_lookup(params: Any, ids: Any, weights: Any, combiner: str | None, max_norm: Any) -> Tensor:
    """For each row of ids the sum, mean or mean by √n of their rows of the table, weighted."""
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("mean", "sqrtn", "sum"):
        text = f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}"
        raise ValueError(message(text, received=f"combiner={combiner!r}", expected="'mean', 'sqrtn' or 'sum'"))
    numbers, rows, count = _looked_up(ids)
    table = params[0] if isinstance(params, (list, tuple)) and len(params) == 1 else params
    found = indexing.take(convert_to_tensor(table), numbers, axis=0, batch_dims=0)
    if max_norm is not None:
        found = clip.clip_by_norm(found, max_norm, axes=tuple(range(1, found._array.ndim)))
    factors = wrap(np.ones(len(rows), found._array.dtype)) if weights is None else elementwise.cast(_flat(weights), found.dtype)
    if factors._array.shape != (len(rows),):
        text = "sp_weights must have the places of sp_ids."
        raise ValueError(message(text, received=f"{factors.shape} for {len(rows)} ids", expected=f"{len(rows)} weights"))
    column = (-1, *[1] * (found._array.ndim - 1))
    total = summed(elementwise.multiply(found, shape.reshape(factors, shape=column)), rows, count)
    if combiner == "sum":
        return total
    norm = summed(factors if combiner == "mean" else elementwise.square(factors), rows, count)
    norm = norm if combiner == "mean" else elementwise.sqrt(norm)
    return guarded.divide_no_nan(total, shape.reshape(norm, shape=column))


def _looked_up(ids: Any) -> tuple[Tensor, np.ndarray, int]:
    """The ids, the row of each, and the number of rows up to the last that has one."""
    if isinstance(ids, RaggedTensor):
        return ids.flat_values, host(ids.value_rowids()).astype(np.int64), len(ids._splits) - 1
    if not isinstance(ids, SparseTensor):
        raise TypeError(
            message(
                f"sp_ids must be SparseTensor, got {type(ids)}",
                received=shown(ids),
                fix="tf.sparse.from_dense(ids), or tf.nn.embedding_lookup(params, ids) for dense ids",
            )
        )
    rows = sparse(ids)._places[:, 0]
    return ids.values, rows, int(rows.max(initial=-1)) + 1


