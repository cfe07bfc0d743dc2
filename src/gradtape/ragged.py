"""`tf.ragged`: making and transforming `RaggedTensor`s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape.ops import crosses, ragged_make, ragged_shape
from gradtape.ops.ragged import RaggedTensor
from gradtape.scope import missing
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor

__all__ = [
    "boolean_mask", "constant", "cross", "cross_hashed", "map_flat_values", "range", "row_splits_to_segment_ids",
    "segment_ids_to_row_splits", "stack", "stack_dynamic_partitions",
]  # fmt: skip


def constant(
    pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Sequence[int] | None = None,
    name: str | None = None, row_splits_dtype: Any = dtypes.int64,
) -> Any:  # fmt: skip
    """A ragged tensor from nested lists.

    >>> constant([[1, 2], [], [3]])
    <tf.RaggedTensor [[1, 2], [], [3]]>
    """
    return ragged_make.constant(pylist, dtype, ragged_rank, inner_shape, row_splits_dtype)


def range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None, name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:  # fmt: skip
    """The numbers from start (0) to below limit, one row for each pair.

    >>> range([3, 0, 2])
    <tf.RaggedTensor [[0, 1, 2], [], [0, 1]]>
    """
    return ragged_make.ranges(starts, limits, deltas, dtype, row_splits_dtype)


def cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """Every combination of one value from each input, row by row, as texts.

    >>> cross([constant([["a"], ["b", "c"]]), constant([["d"], ["e"]])])
    <tf.RaggedTensor [[b'a_X_d'], [b'b_X_e', b'c_X_e']]>
    """
    return crosses.ragged(inputs, crosses.joined("_X_"), dtypes.string)


def cross_hashed(inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None) -> RaggedTensor:
    """Every combination of one value from each input, row by row, as the number of its bucket."""
    return crosses.ragged(inputs, crosses.hashed(num_buckets, hash_key, "RaggedCross"), dtypes.int64)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors, ragged or not, joined along a new axis; their lengths may differ."""
    return ragged_shape.stack(values if isinstance(values, (list, tuple)) else [values], axis)


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> RaggedTensor:
    """One row for each number below ``num_partitions``: the slices of data that have it in ``partitions``.

    >>> stack_dynamic_partitions([1, 2, 3, 4], [2, 0, 2, 1], 3)
    <tf.RaggedTensor [[2], [4], [1, 3]]>
    """
    return ragged_make.stack_dynamic_partitions(data, partitions, num_partitions)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements where the mask holds, row by row.

    >>> boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, True]])
    <tf.RaggedTensor [[1, 3], [6]]>
    """
    return ragged_shape.boolean_mask(data, mask)


def map_flat_values(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """The function of the flat values of ragged arguments, in the same rows."""
    return ragged_make.map_flat_values(op, args, kwargs)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The row of every element."""
    return ragged_make.row_splits_to_segment_ids(splits, out_type)


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Where rows begin and end, from the row of every element."""
    return ragged_make.segment_ids_to_row_splits(segment_ids, num_segments, out_type)


__getattr__ = missing(__name__, __all__)
