"""Functions that TensorFlow has directly under ``tf``: shapes, joining, indexing, creation, clipping.

`TOPLEVEL_FROM_MATH`, `TOPLEVEL_FROM_LINALG` and `TOPLEVEL_FROM_DTYPES` name those of the other modules that stand under
``tf`` as well.
"""

from __future__ import annotations

import builtins
import math
import time
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import arrays, creation, elementwise, grids, indexing, nondiff, scatter, statistics
from gradtape.ops import clip as clipping
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import NUMERIC, integer, integers, lengths, not_allowed, position
from gradtape.values import dtypes
from gradtape.values.composite import take_composites
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.shape import TensorShape, has_open, refuse_open
from gradtape.values.tensor import Tensor, wrap

TOPLEVEL_FROM_MATH = (
    "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh",
    "cumsum", "divide", "equal", "exp", "floor", "greater", "greater_equal", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "maximum", "minimum", "multiply", "negative", "not_equal", "pow", "reduce_all", "reduce_any",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "round", "scalar_mul",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "truediv",
)  # fmt: skip
TOPLEVEL_FROM_LINALG = ("einsum", "eye", "matmul", "norm", "tensordot")
TOPLEVEL_FROM_DTYPES = ("as_dtype", "cast", "complex", "saturate_cast")

__all__ = [
    "argsort", "batch_to_space", "bitcast", "boolean_mask", "broadcast_dynamic_shape", "broadcast_static_shape",
    "broadcast_to", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "concat", "dynamic_partition", "dynamic_stitch",
    "ensure_shape", "expand_dims", "fill", "gather", "gather_nd", "get_static_value", "guarantee_const",
    "histogram_fixed_width", "histogram_fixed_width_bins", "identity", "identity_n", "is_tensor", "linspace", "meshgrid",
    "one_hot", "ones", "ones_like", "pad", "parallel_stack", "range", "rank", "realdiv", "repeat",
    "required_space_to_batch_paddings", "reshape", "reverse", "reverse_sequence", "roll", "scatter_nd", "searchsorted",
    "sequence_mask", "shape", "shape_n", "size", "slice", "sort", "space_to_batch", "space_to_batch_nd", "split", "squeeze",
    "stack", "strided_slice", "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tile", "timestamp", "transpose", "truncatediv", "truncatemod",
    "tuple", "unique", "unique_with_counts", "unravel_index", "unstack", "where", "zeros", "zeros_like",
]  # fmt: skip


# Shape


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in another shape, of which one length may be -1."""
    return shapes.reshape(tensor, shape=arrays.requested_shape(shape))


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """Axes in another order; None reverses them."""
    if perm is not None:
        perm = integers(perm)
    try:
        out = shapes.transpose(a, axes=perm)
    except InvalidArgumentError:
        arrays.permutation_error(perm, convert_to_tensor(a)._array.ndim)
        raise
    return elementwise.conj(out) if conjugate else out


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """A new axis of length 1."""
    x = input if isinstance(input, Tensor) else convert_to_tensor(input)
    at, ndim = integer(axis), x._array.ndim
    if not -ndim - 1 <= at <= ndim:
        text = f"Tried to expand dim index {at} for tensor with {ndim} dimensions. [Op:ExpandDims]"
        raise InvalidArgumentError(
            message(text, received=f"axis={at} for an input of rank {ndim}", expected=f"an axis from {-ndim - 1} to {ndim}")
        )
    return shapes.expand_dims(x, axis=at)


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Without axes of length 1: all of them, or those given."""
    return arrays.squeeze(convert_to_tensor(input), axis)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Repeated along axes of length 1 to fill a shape."""
    return arrays.broadcast_to(convert_to_tensor(input), shape)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeated along each axis."""
    return arrays.tile(convert_to_tensor(input), multiples)


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None) -> Tensor:
    """Surrounded by a constant, or by its mirror image (REFLECT, SYMMETRIC)."""
    return arrays.pad(convert_to_tensor(tensor), paddings, mode, constant_values)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Elements in reverse order along axes, which stand in a list."""
    return arrays.flip(convert_to_tensor(tensor), axis)


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None, name: str | None = None
) -> Tensor:
    """The first elements along an axis reversed, as many as ``seq_lengths`` says for each batch index."""
    return arrays.reverse_sequence(convert_to_tensor(input), seq_lengths, integer(seq_axis or 0), integer(batch_axis or 0))


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Elements moved along axes, those pushed out entering at the other end."""
    return arrays.roll(convert_to_tensor(input), shift, axis)


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Each element repeated."""
    return arrays.repeat(convert_to_tensor(input), repeats, axis)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The tensor itself, if its shape fits."""
    x, wanted = convert_to_tensor(x), TensorShape(shape)
    if wanted.rank == x._array.ndim:
        told = [n for n, m in zip(x._array.shape, wanted.as_list()) if m is not None]
        refuse_open(told, "whether a shape is the expected one")
    if not x.shape.is_compatible_with(wanted):
        text = "[" + ",".join("?" if n is None else str(n) for n in wanted) + "]"
        text = f"Shape of tensor input {dims(x._array.shape)} is not compatible with expected shape {text}. [Op:EnsureShape]"
        raise InvalidArgumentError(
            message(text, received=f"shape {x._array.shape}", expected=f"shape {wanted}", fix="tf.reshape changes a shape")
        )
    return elementwise.identity(x)


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The same bytes as another dtype; a last axis appears (or goes) where the sizes of the elements differ."""
    from gradtape.ops import special

    return special.checked_bitcast(input, type)


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Blocks of zero-padded space moved into the batch axis."""
    from gradtape.ops import spatial

    return spatial.space_to_batch(input, block_shape, paddings)


space_to_batch = space_to_batch_nd


def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of space_to_batch, with margins cut away; one number stands for a square block."""
    block_shape = [block_shape] * 2 if isinstance(block_shape, int) else block_shape
    from gradtape.ops import spatial

    return spatial.batch_to_space(input, block_shape, crops)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> builtins.tuple[Tensor, Tensor]:
    """The least paddings that make lengths multiples of the block, and the crops that undo them."""
    from gradtape.ops import spatial

    return spatial.required_paddings(input_shape, block_shape, base_paddings)


# Joining and splitting


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors joined along an existing axis."""
    return arrays.concatenate(values, axis)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape joined along a new axis."""
    return arrays.stack(values, axis)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """`stack` along a new first axis."""
    return arrays.stack(values, 0)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices along an axis, as a list."""
    x, axis = convert_to_tensor(value), integer(axis)
    ndim = x._array.ndim
    if not -ndim <= axis < ndim:
        raise ValueError(
            message(
                f"Argument `axis` = {axis} not in range [{-ndim}, {ndim})",
                received=f"axis={axis} of shape {x._array.shape}",
                expected=f"an axis from {-ndim} to {ndim - 1}" if ndim else "at least one axis",
            )
        )
    if num is not None and x._array.shape[axis] != num:
        text = f"Input shape axis {axis % ndim} must equal {num}, got shape {dims(x._array.shape)} [Op:Unpack]"
        raise InvalidArgumentError(message(text, fix=f"num={x._array.shape[axis]}, or leave it out"))
    return list(arrays.unstack(x, axis=axis % ndim))


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split") -> list[Tensor]:
    """Parts along an axis: so many equal ones, or ones of the given lengths."""
    x = convert_to_tensor(value)
    ndim = x._array.ndim
    at = position(axis, ndim, f"-input rank({-ndim}) <= split_dim < input rank ({ndim}), but got {{axis}} [Op:Split]")
    return list(arrays.split(x, sizes=arrays.split_sizes(num_or_size_splits, x._array.shape[at], at), axis=at))


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Coordinate tensors of a grid; ``indexing`` is "xy" or "ij"."""
    how = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        text = f"'{next(iter(kwargs))}' is an invalid keyword argument for this function"
        raise TypeError(message(text, received=f"{', '.join(kwargs)}", expected="indexing= and name="))
    return grids.meshgrid(args, how)


# Indexing


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """``size`` elements from ``begin`` along every axis; -1 means up to the end."""
    return arrays.basic_slice(convert_to_tensor(input_), begin, size)


def strided_slice(
    input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0,
    new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Slicing by vectors of begins, ends and steps; bit i of a mask changes what entry i means."""
    masks = {
        "begin": begin_mask, "end": end_mask, "ellipsis": ellipsis_mask, "new_axis": new_axis_mask,
        "shrink_axis": shrink_axis_mask,
    }  # fmt: skip
    return arrays.strided_slice(convert_to_tensor(input_), begin, end, strides, masks)


def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: Any = 0, name: str | None = None
) -> Tensor:
    """Slices along an axis, one per index; the gradient of axis 0 is IndexedSlices."""
    return arrays.take(params, indices, axis, batch_dims)


def gather_nd(
    params: Any, indices: Any, batch_dims: Any = 0, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """Slices at index vectors, which stand on the last axis of ``indices``."""
    return arrays.gather_nd(params, indices, batch_dims)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Tensor:
    """The elements (or slices) where the mask holds."""
    return arrays.boolean_mask(convert_to_tensor(tensor), mask, axis)


def scatter_nd(indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: str | None = None) -> Tensor:
    """Zeros of a shape to which slices are added at index vectors."""
    return scatter.scatter_nd(indices, updates, shape)


def tensor_scatter_nd_add(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """The tensor with slices added at index vectors."""
    return scatter.tensor_scatter("TensorScatterAdd", tensor, indices, updates, "add")


def tensor_scatter_nd_sub(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """The tensor with slices subtracted at index vectors."""
    return scatter.tensor_scatter("TensorScatterSub", tensor, indices, updates, "sub")


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """The tensor with slices replaced at index vectors; of several for one place, the last counts."""
    return scatter.tensor_scatter("TensorScatterUpdate", tensor, indices, updates, "update")


def tensor_scatter_nd_max(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """The tensor with the larger of old and new slices at index vectors."""
    return scatter.tensor_scatter("TensorScatterMax", tensor, indices, updates, "max")


def tensor_scatter_nd_min(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """The tensor with the smaller of old and new slices at index vectors."""
    return scatter.tensor_scatter("TensorScatterMin", tensor, indices, updates, "min")


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """Slices sorted into several tensors by the number that belongs to each."""
    return arrays.dynamic_partition(convert_to_tensor(data), partitions, integer(num_partitions))


def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """One tensor from slices and their positions."""
    return arrays.dynamic_stitch(indices, data)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where the condition holds and y elsewhere; without both, the coordinates of the true elements."""
    if x is None and y is None:
        return nondiff.nonzero(condition)
    if x is None or y is None:
        text = "x and y must both be non-None or both be None."
        raise ValueError(message(text, fix="tf.where(condition) for the places, tf.where(condition, x, y) to choose"))
    return arrays.select(condition, x, y)


def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """1 (or ``on_value``) at the index along a new axis, 0 (or ``off_value``) elsewhere."""
    return grids.one_hot(indices, depth, on_value, off_value, axis, dtype)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None) -> Tensor:
    """True at the first ``lengths[i]`` places of row i."""
    return grids.sequence_mask(lengths, maxlen, dtype)


# Order


def _ordered(values: Any, axis: Any, direction: str) -> builtins.tuple[Tensor, int]:
    if direction not in ("ASCENDING", "DESCENDING"):
        text = f"Argument `direction` should be one of ASCENDING, DESCENDING. Received: direction={direction}"
        raise ValueError(message(text, expected="'ASCENDING' or 'DESCENDING'"))
    x = convert_to_tensor(values)
    return x, position(axis, x._array.ndim, "slice index {axis} of dimension 0 out of bounds. [Op:StridedSlice]")


def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Elements in order along an axis; differentiable."""
    x, at = _ordered(values, axis, direction)
    out = indexing.sort(x, axis=at)
    return out if direction == "ASCENDING" else shapes.flip(out, axis=(at,))


def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The indices that sort along an axis; equal elements keep their order."""
    x, at = _ordered(values, axis, direction)
    out = indexing.argsort(x, axis=at) if direction == "ASCENDING" else statistics.argsort_descending(x, at)
    return elementwise.cast(out, dtypes.int32)


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> nondiff.Unique:
    """The distinct values in order of first appearance, and for every element the index of its value."""
    return nondiff.Unique(*nondiff.unique(x, out_idx)[:2])


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> nondiff.UniqueWithCounts:
    """`unique`, and how often each value occurs."""
    return nondiff.unique(x, out_idx)


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Where values would be inserted in sorted rows."""
    return nondiff.searchsorted(sorted_sequence, values, side, out_type)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The bin of each value among equal ones over a range."""
    return elementwise.cast(wrap(nondiff.histogram(values, value_range, nbins)), dtype)


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many values fall into each of equal bins over a range."""
    bins = nondiff.histogram(values, value_range, nbins)
    return elementwise.cast(wrap(np.bincount(bins.ravel(), minlength=integer(nbins))), dtype)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Coordinates of flat positions in an array of the given shape."""
    return nondiff.unravel_index(indices, dims)


# Creation


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """Zeros of a shape (strings: empty ones)."""
    kind = dtypes.numpy_dtype(dtype)
    if kind.kind == "O":
        return creation.full(shape=lengths(shape), value=b"", dtype=kind)
    return creation.zeros(shape=lengths(shape), dtype=kind)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """Ones of a shape."""
    kind = dtypes.numpy_dtype(dtype)
    if kind.kind == "O":
        raise TypeError(message("Cannot convert 1 to EagerTensor of dtype string", fix="tf.fill(shape, '')"))
    return creation.ones(shape=lengths(shape), dtype=kind)


def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Zeros of the shape, and unless given the dtype, of the input."""
    x = convert_to_tensor(input)
    if dtype is not None or x._array.dtype.kind == "O":
        return zeros(x._array.shape, x.dtype if dtype is None else dtype)
    return elementwise.zeros_like(x)


def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Ones of the shape, and unless given the dtype, of the input."""
    x = convert_to_tensor(input)
    if dtype is None and x._array.dtype.kind == "O":
        raise not_allowed("OnesLike", x._array.dtype, f"{NUMERIC}, bool")
    if dtype is not None or x._array.dtype.kind == "b":
        return ones(x._array.shape, x.dtype if dtype is None else dtype)
    return elementwise.ones_like(x)


def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Tensor:
    """A shape filled with one value."""
    return grids.filled(dims, value)


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """start, start + delta, … up to, not including, limit."""
    return grids.arange(start, limit, delta, dtype)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """Evenly spaced values from start to stop, both included."""
    return grids.linspace(start, stop, num, axis)


def identity(input: Any, name: str | None = None) -> Tensor:
    """The same value as a new tensor."""
    return elementwise.identity(input)


def identity_n(input: Any, name: str | None = None) -> list[Tensor]:
    """The same values as new tensors."""
    return [elementwise.identity(x) for x in input]


def tuple(tensors: Any, control_inputs: Any = None, name: str | None = None) -> list:
    """The tensors, as a list; eager values are ready already."""
    return [None if x is None else convert_to_tensor(x) for x in tensors]


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """The same value as a new tensor."""
    return elementwise.identity(input)


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970, as float64."""
    return convert_to_tensor(np.float64(time.time()))


# Inspection


def _index_dtype(out_type: Any) -> np.dtype:
    kind = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    if kind not in (dtypes.int32, dtypes.int64):
        text = f"Value for attr 'out_type' of {kind.name} is not in the list of allowed values: int32, int64 [Op:Shape]"
        raise InvalidArgumentError(message(text, expected="tf.int32 or tf.int64"))
    return kind.numpy


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """The shape as an integer vector."""
    found = RECORDED.shape(convert_to_tensor(input))
    if has_open(found):
        return creation.open_lengths(found, _index_dtype(out_type))
    return wrap(np.array(found, _index_dtype(out_type)))


def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return [shape(x, out_type) for x in input]


def size(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """The number of elements."""
    found = RECORDED.shape(convert_to_tensor(input))
    if has_open(found):
        return creation.open_lengths(math.prod(found), _index_dtype(out_type))
    return wrap(np.array(np.prod(found, dtype=np.int64), _index_dtype(out_type)))


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of axes."""
    return wrap(np.array(convert_to_tensor(input)._array.ndim, np.int32))


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor, a variable or IndexedSlices."""
    return isinstance(x, (Tensor, Convertible))


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value as a NumPy array, or None where it is not known while tracing."""
    if not isinstance(tensor, (Tensor, Convertible)):
        return tensor
    try:
        return convert_to_tensor(tensor).numpy()
    except TypeError:  # a tracer
        return None


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The shape to which two shapes broadcast."""
    try:
        return TensorShape(np.broadcast_shapes(integers([*shape_x]), integers([*shape_y])))
    except ValueError as error:
        raise ValueError(
            message(
                "Incompatible shapes for broadcasting. Two shapes are compatible if for each dimension pair they are "
                f"either equal or one of them is 1. Received: {shape_x} and {shape_y}.",
                received=f"{shape_x} and {shape_y}",
                expected="lengths that are equal, or 1, from the last axis backwards",
            )
        ) from error


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape to which two shapes broadcast, as a tensor."""
    x, y = integers(shape_x), integers(shape_y)
    try:
        return convert_to_tensor(np.array(np.broadcast_shapes(x, y), np.int32))
    except ValueError as error:
        text = f"Incompatible shapes: {dims(x)} vs. {dims(y)} [Op:BroadcastArgs]"
        raise InvalidArgumentError(
            message(text, expected="lengths that are equal, or 1, from the last axis backwards")
        ) from error


# Clipping


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Values limited to a range; the gradient is 1 on the limits themselves."""
    return clipping.clip_by_value(t, clip_value_min, clip_value_max)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """A tensor scaled so that its norm is at most ``clip_norm``."""
    return clipping.clip_by_norm(t, clip_norm, axes)


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> builtins.tuple[list, Tensor]:
    """Tensors scaled so that their common norm is at most ``clip_norm``, and that norm."""
    return clipping.clip_by_global_norm(t_list, clip_norm, use_norm)


# Division under other names


def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y of floating numbers."""
    return elementwise.divide(x, y)


def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded toward zero."""
    return nondiff.truncate_divide(x, y)


def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of truncatediv, with the sign of x."""
    x = convert_to_tensor(x)
    return elementwise.subtract(x, elementwise.multiply(nondiff.truncate_divide(x, y), y))

take_composites(
    globals(),
    elementwise="bitcast clip_by_value one_hot ones_like zeros_like",
    others="concat expand_dims gather rank reshape reverse shape size split squeeze stack tile where",
)
