"""`tf.sparse`: functions of `SparseTensor`s, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.errors import message
from gradtape.ops import crosses, elementwise, sparse_functions, sparse_segments
from gradtape.ops.sparse import SparseTensor
from gradtape.scope import missing
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor

__all__ = [
    "SparseTensor", "add", "bincount", "concat", "cross", "cross_hashed", "expand_dims", "eye", "fill_empty_rows",
    "from_dense", "map_values", "mask", "maximum", "minimum", "reduce_max", "reduce_sum", "reorder", "reset_shape", "reshape",
    "retain", "segment_mean", "segment_sqrt_n", "segment_sum", "slice", "softmax", "sparse_dense_matmul", "split", "to_dense",
    "to_indicator", "transpose",
]  # fmt: skip


def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None) -> Tensor:
    """A dense tensor with ``default_value`` (zero) where the sparse one has no element."""
    return sparse_functions.to_dense(sp_input, default_value, validate_indices)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements that are not zero."""
    return sparse_functions.from_dense(tensor)


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse and a dense matrix, in either order; differentiable in both."""
    return sparse_functions.matmul(sp_a, b, adjoint_a, adjoint_b)


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Elements in row-major order."""
    return sparse_functions.reorder(sp_input)


def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Axes in another order; None reverses them."""
    return sparse_functions.transpose(sp_input, perm)


def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in another shape, of which one length may be -1."""
    return sparse_functions.reshape(sp_input, shape)


def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A new axis of length 1; by default the last."""
    return sparse_functions.expand_dims(sp_input, axis)


def concat(axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None) -> SparseTensor:
    """Sparse tensors joined along an axis."""
    return sparse_functions.concat(axis, sp_inputs, expand_nonconcat_dims)


def cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """Every combination of one value from each matrix, row by row, as texts."""
    return crosses.sparse(inputs, crosses.joined("_X_" if separator is None else separator), dtypes.string, "SparseCrossV2")


def cross_hashed(inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None) -> SparseTensor:
    """Every combination of one value from each matrix, row by row, as the number of its bucket."""
    return crosses.sparse(inputs, crosses.hashed(num_buckets, hash_key, "SparseCross"), dtypes.int64, "SparseCross")


def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The part from ``start``, of at most ``size``."""
    return sparse_functions.slice_(sp_input, start, size)


def split(sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None) -> list[SparseTensor]:
    """Parts along an axis."""
    for what, value in (("sp_input", sp_input), ("num_split", num_split), ("axis", axis)):
        if value is None:
            text = f"{what} is required"
            raise ValueError(message(text, received=f"{what}=None", fix="tf.sparse.split(sp_input, num_split, axis)"))
    return sparse_functions.split(sp_input, num_split, axis)


def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The elements where a vector of truth values says so."""
    return sparse_functions.retain(sp_input, to_retain)


def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a larger shape, or in the smallest that holds them."""
    return sparse_functions.reset_shape(sp_input, new_shape)


def eye(num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None) -> SparseTensor:
    """Ones on the diagonal."""
    return sparse_functions.eye(num_rows, num_columns, dtype)


def fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """With a default in every row that has no element; also, which rows those were."""
    return sparse_functions.fill_empty_rows(sp_input, default_value)


def reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: bool | None = None, output_is_sparse: bool = False, name: str | None = None
) -> Any:
    """The sum over axes (None: all)."""
    return sparse_functions.reduce_sum(sp_input, axis, keepdims, output_is_sparse)


def reduce_max(
    sp_input: Any, axis: Any = None, keepdims: bool | None = None, output_is_sparse: bool = False, name: str | None = None
) -> Any:
    """The largest of the elements that are there, over axes; 0 where there are none."""
    return sparse_functions.reduce_max(sp_input, axis, keepdims, output_is_sparse)


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum: sparse if both are, else dense. Elements below the threshold are left out."""
    return sparse_functions.add(a, b, threshold)


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger of both, elementwise; missing elements are 0."""
    return sparse_functions.extreme(elementwise.maximum, sp_a, sp_b)


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller of both, elementwise; missing elements are 0."""
    return sparse_functions.extreme(elementwise.minimum, sp_a, sp_b)


def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """eˣ / Σ eˣ over the elements of each row of the last axis."""
    return sparse_functions.softmax(sp_input)


def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """True where a row holds the number."""
    return sparse_functions.to_indicator(sp_input, vocab_size)


def map_values(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """The function of the values of sparse arguments that have the same places."""
    return sparse_functions.map_values(op, args, kwargs)


def mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """IndexedSlices without the rows at the given indices."""
    return sparse_segments.mask(a, mask_indices)


def segment_sum(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None) -> Tensor:
    """The sum of the rows that ``indices`` names, by segments."""
    return sparse_segments.segment_sum(data, indices, segment_ids, num_segments)


def segment_mean(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """The mean of the rows that ``indices`` names, by segments."""
    return sparse_segments.segment_mean(data, indices, segment_ids, num_segments)


def segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """The sum of the rows that ``indices`` names, divided by √n, by segments."""
    return sparse_segments.segment_sqrt_n(data, indices, segment_ids, num_segments)


def bincount(
    values: Any, weights: Any = None, axis: Any = 0, minlength: Any = None, maxlength: Any = None,
    binary_output: bool = False, name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """How often each number occurs, or the sum of its weights."""
    return sparse_segments.bincount(values, weights, axis, minlength, maxlength, binary_output)


__getattr__ = missing(__name__, __all__)
