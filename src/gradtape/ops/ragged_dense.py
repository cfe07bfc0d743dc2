"""Between ragged, dense and sparse tensors, and reading a ragged tensor by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import indexing, partition, shape
from gradtape.ops.nondiff import host
from gradtape.ops.ragged import RaggedTensor, gather_rows, row_range
from gradtape.ops.sparse import SparseTensor
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor, wrap

# From dense and sparse


def from_tensor(x: Tensor, lengths: Any, padding: Any, ragged_rank: int, splits_dtype: Any) -> RaggedTensor:
    """The rows of a dense tensor, cut to lengths, or without their padding."""
    if lengths is not None and padding is not None:
        raise ValueError(
            message(
                "Specify argument `lengths` or `padding`, but not both.",
                received="lengths and padding",
                fix="lengths= says how long rows are, padding= what fills them up: give one",
            )
        )
    if not isinstance(ragged_rank, int):
        text = f"Argument `ragged_rank` must be an int. Received {ragged_rank}."
        raise TypeError(message(text, received=f"ragged_rank={ragged_rank!r}", expected="an int of 1 or more"))
    if ragged_rank <= 0:
        text = f"Argument `ragged_rank` must be greater than 0. Received {ragged_rank}."
        raise ValueError(message(text, received=f"ragged_rank={ragged_rank}", expected="1 or more"))
    if x._array.ndim <= 1:
        text = (
            "The rank of a RaggedTensor must be greater than 1, i.e., a list of scalars won't have ragged dimensions. "
            f"Received argument `tensor` with rank {x._array.ndim}."
        )
        raise ValueError(
            message(text, received=f"shape {x._array.shape}", fix="tensor[tf.newaxis, :] makes one row of a vector")
        )
    x.shape.with_rank_at_least(ragged_rank + 1)
    integers = dtypes.as_dtype(splits_dtype).numpy
    if isinstance(lengths, (list, tuple)) and any(np.ndim(level) for level in lengths):
        if ragged_rank not in (1, len(lengths)):
            raise ValueError(
                message(
                    "If Argument `lengths` is a tuple of row_lengths, argument `ragged_rank` must be len(lengths)",
                    received=f"{len(lengths)} levels of lengths and ragged_rank={ragged_rank}",
                    fix=f"ragged_rank={len(lengths)}, or leave it out",
                )
            )
        return _cut_to_nested(x, [_vector(level).astype(integers) for level in lengths])
    if padding is not None:
        kept = _without_padding(x, padding, ragged_rank)
    elif lengths is not None:
        kept = np.clip(_vector(lengths), 0, x._array.shape[ragged_rank]).ravel()
        if len(kept) != int(np.prod(x._array.shape[:ragged_rank])):
            raise ValueError(
                message(
                    f"Shapes {x.shape[:ragged_rank]} and {np.shape(kept)} are incompatible",
                    received=f"{len(kept)} lengths for shape {x._array.shape}",
                    expected=f"one for each of the {int(np.prod(x._array.shape[:ragged_rank]))} rows",
                )
            )
    else:
        return uniform_rows(leading_rows(x, ragged_rank), x._array.shape[: ragged_rank + 1], integers)
    length = x._array.shape[ragged_rank]
    starts = np.arange(len(kept), dtype=np.int64) * length
    inner = gather_rows(leading_rows(x, ragged_rank), partition.runs(starts, kept))
    innermost = RaggedTensor._of(inner, partition.starting_at_zero(kept.astype(integers)))
    return uniform_rows(innermost, x._array.shape[:ragged_rank], integers)


def leading_rows(x: Tensor, ragged_rank: int) -> Tensor:
    """The leading axes of a tensor as one."""
    count = int(np.prod(x._array.shape[: ragged_rank + 1]))
    return shape.reshape(x, shape=(count, *x._array.shape[ragged_rank + 1 :]))


def uniform_rows(values: Any, lengths: tuple[int, ...], integers: Any) -> Any:
    """Values, whose first axis stands for axes of these lengths, as rows of rows."""
    for axis in range(len(lengths) - 1, 0, -1):
        count = int(np.prod(lengths[:axis]))
        values = RaggedTensor._of(values, np.arange(count + 1, dtype=integers) * lengths[axis], lengths[axis])
    return values


def _vector(lengths: Any) -> np.ndarray:
    array = host(convert_to_tensor(lengths, dtype_hint=dtypes.int64))
    if array.dtype not in (np.int32, np.int64):
        text = f"lengths must have dtype int32 or int64; received {array.dtype}"
        raise ValueError(message(text, received=f"lengths of {array.dtype}", fix="tf.cast(lengths, tf.int64)"))
    return array


def _cut_to_nested(x: Tensor, levels: list[np.ndarray]) -> RaggedTensor:
    """Row lengths for several axes, the outermost first."""
    rank = len(levels)
    ragged: Any = uniform_rows(leading_rows(x, rank), x._array.shape[: rank + 1], levels[0].dtype)
    for depth, lengths in enumerate(levels):
        ragged = _shortened(ragged, lengths, depth)
    return ragged


def _shortened(ragged: Any, lengths: np.ndarray, depth: int) -> Any:
    if depth:
        return RaggedTensor._of(_shortened(ragged._values, lengths, depth - 1), ragged._splits)
    starts = ragged._splits[:-1]
    if lengths.shape != starts.shape:
        text = f"Shapes {starts.shape} and {lengths.shape} are incompatible"
        raise ValueError(message(text, received=f"{lengths.shape[0]} lengths", expected=f"{starts.shape[0]}, one per row"))
    kept = np.clip(lengths, 0, np.diff(ragged._splits))
    return RaggedTensor._of(gather_rows(ragged._values, partition.runs(starts, kept)), partition.starting_at_zero(kept))


def _without_padding(x: Tensor, padding: Any, ragged_rank: int) -> np.ndarray:
    """The lengths of rows up to their last element that is no padding."""
    pad, array = convert_to_tensor(padding, x.dtype), host(x)
    if pad._array.shape != array.shape[ragged_rank + 1 :]:
        raise ValueError(
            message(
                f"Shapes {pad.shape} and {TensorShape(array.shape[ragged_rank + 1 :])} are incompatible",
                received=f"padding of shape {pad.shape}",
                expected=f"shape {array.shape[ragged_rank + 1 :]}, that of one element of a row",
            )
        )
    differs = np.asarray(array != host(pad))
    differs = differs.any(tuple(range(ragged_rank + 1, array.ndim))).reshape(-1, array.shape[ragged_rank])
    return (differs * np.arange(1, differs.shape[1] + 1)).max(1, initial=0)


def from_sparse(sparse: Any, splits_dtype: Any) -> RaggedTensor:
    """The rows of a SparseTensor whose elements stand at the beginning of each row, in order."""
    if not isinstance(sparse, SparseTensor):
        text = f"Argument `st_input` must be of type SparseTensor, but is of type {type(sparse).__name__}."
        raise TypeError(message(text, received=shown(sparse), fix="tf.RaggedTensor.from_tensor(x) takes dense tensors"))
    indices, lengths = host(sparse.indices), host(sparse.dense_shape)
    if len(lengths) != 2:
        raise ValueError(message("rank(st_input) must be 2.", received=f"shape {lengths}", expected="two axes"))
    rows, places = indices[:, 0], indices[:, 1]
    counts = np.bincount(rows, minlength=lengths[0])
    if (np.diff(rows) < 0).any() or (places != partition.columns(partition.starting_at_zero(counts))).any():
        raise InvalidArgumentError(
            message(
                "SparseTensor is not right-ragged",
                received=f"SparseTensor.indices = {indices.tolist()}",
                expected="in each row the places 0, 1, 2, …, and rows in order",
                fix="tf.sparse.reorder(x), or tf.RaggedTensor.from_tensor(tf.sparse.to_dense(x))",
            )
        )
    integers = dtypes.as_dtype(splits_dtype).numpy
    return RaggedTensor._of(sparse.values, partition.starting_at_zero(counts).astype(integers))


# To dense and sparse


def to_tensor(ragged: RaggedTensor, default_value: Any, wanted: Any) -> Tensor:
    """A gather from the values and one more row, which stands where there is no value."""
    flat, levels = ragged.flat_values, ragged.ragged_rank
    lengths = _dense_shape(ragged, wanted)
    inner = lengths[levels + 1 :]
    if inner != flat._array.shape[1:]:
        text = f"rt_input.shape and shape={dims(lengths)} are incompatible: inner axes {flat.shape[1:]} are uniform"
        raise InvalidArgumentError(
            message(text, received=f"shape={lengths}", expected=f"{flat._array.shape[1:]} for the inner axes")
        )
    place = partition.layout(ragged._nested(), lengths[: levels + 1])
    default = _default(default_value, flat)
    padded = shape.concatenate(flat, shape.expand_dims(shape.broadcast_to(default, shape=inner), axis=0), axis=0)
    picked = indexing.take(padded, wrap(np.where(place < 0, flat._array.shape[0], place)), axis=0, batch_dims=0)
    return shape.reshape(picked, shape=lengths)


def _default(value: Any, flat: Tensor) -> Tensor:
    """What stands where rows are too short."""
    if value is None:
        return convert_to_tensor("" if flat.dtype is dtypes.string else np.zeros((), flat.dtype.numpy))
    default = convert_to_tensor(value, flat.dtype)
    if default._array.ndim >= flat._array.ndim:
        a, b = default._array.shape, flat._array.shape
        text = (
            f"default_value.shape={dims(a)} and rt_input.flat_values.shape={dims(b)} are incompatible: "
            f"default_value.rank = {len(a)}  must be less than rt_input.flat_values.rank = {len(b)}"
        )
        raise InvalidArgumentError(message(text, expected="a scalar, or the shape of one inner value"))
    return default


def _dense_shape(ragged: RaggedTensor, wanted: Any) -> tuple[int, ...]:
    bounds = ragged._bounds()
    found = [bound if uniform is None else uniform for uniform, bound in zip(ragged.shape, bounds)]
    if wanted is None:
        return tuple(found)
    asked: list[int | None] = (
        list(TensorShape(wanted)) if not isinstance(wanted, Tensor) else [None if n < 0 else n for n in host(wanted).tolist()]
    )
    if len(asked) != len(bounds):
        text = "[" + ",".join("?" if n is None else str(n) for n in asked) + "]"
        text = f"rt_input.shape and shape={text} are incompatible: rt_input.rank = {len(bounds)} but shape.rank = {len(asked)}"
        raise InvalidArgumentError(
            message(text, received=f"shape={shown(wanted)}", expected=f"{len(bounds)} lengths; None takes the longest row")
        )
    return tuple([b if a is None else a for a, b in zip(asked, found)])


def to_sparse(ragged: RaggedTensor) -> SparseTensor:
    """The elements with their index vectors; those of uniform inner axes one by one."""
    flat = ragged.flat_values
    indices, inner = partition.coordinates(ragged._nested()), flat._array.shape[1:]
    if inner:
        grid = np.stack([axis.ravel() for axis in np.indices(inner, np.int64)], 1)
        indices = np.concatenate([np.repeat(indices, len(grid), 0), np.tile(grid, (len(indices), 1))], 1)
        flat = shape.reshape(flat, shape=(len(indices),))
    return SparseTensor._of(wrap(indices), flat, wrap(np.array(ragged._bounds(), np.int64)))


# Axes


def merged(ragged: Any, outer: int, inner: int) -> Any:
    """Axes from outer to inner as one."""
    if outer == inner:
        return ragged
    if not isinstance(ragged, RaggedTensor):
        lengths = ragged._array.shape
        return shape.reshape(ragged, shape=(*lengths[:outer], -1, *lengths[inner + 1 :]))
    if outer > 1:
        return ragged.with_values(merged(ragged._values, outer - 1, inner - 1))
    if outer == 1:
        joined = ragged.with_values(as_ragged(ragged._values))
        splits = joined._values._splits[ragged._splits]
        return merged(RaggedTensor._of(joined._values._values, splits), 1, inner - 1)
    return merged(ragged._values, 0, inner - 1)


def as_ragged(values: Any) -> RaggedTensor:
    """A tensor of at least two axes as a ragged one."""
    if isinstance(values, RaggedTensor):
        return values
    return uniform_rows(leading_rows(values, 1), values._array.shape[:2], np.int64)


def getitem(ragged: Any, key: Any) -> Any:
    """``ragged[key]``: integers, slices, None and Ellipsis."""
    items = list(key)
    rank = ragged._rank
    if any(item is Ellipsis for item in items):
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        used = sum(item is not None for item in items) - 1
        items[at : at + 1] = [slice(None)] * (rank - used)
    return _read(ragged, items)


def _read(ragged: Any, items: list) -> Any:
    if not items:
        return ragged
    if not isinstance(ragged, RaggedTensor):
        return ragged[tuple(items)]
    first, *rest = items
    if first is None:
        inner = _read(ragged, rest)
        return expand_first(inner)
    rows = len(ragged._splits) - 1
    if not isinstance(first, slice):
        at = _row(first, rows)
        return _read(row_range(ragged._values, int(ragged._splits[at]), int(ragged._splits[at + 1])), rest)
    picked = ragged if first == slice(None) else gather_rows(ragged, np.arange(rows)[_plain(first)])
    return _read_inner(picked, rest)


def expand_first(value: Any) -> Any:
    """A new first axis of length 1."""
    if not isinstance(value, RaggedTensor):
        return shape.expand_dims(value, axis=0)
    rows = len(value._splits) - 1
    return RaggedTensor._of(value, np.array([0, rows], value._splits.dtype), rows)


def _read_inner(ragged: RaggedTensor, items: list) -> Any:
    """Read along the axes after the first, which stays as it is."""
    if not items:
        return ragged
    first, *rest = items
    if first is None:
        return RaggedTensor._of(_read_inner(ragged, rest), np.arange(len(ragged._splits)), 1)
    if not isinstance(first, slice):
        if ragged._uniform is None:
            raise ValueError(
                message("Cannot index into an inner ragged dimension.", fix="slice it: x[:, 0:1], or x.to_tensor()[:, 0]")
            )
        at = ragged._splits[:-1] + _row(first, ragged._uniform)
        picked = gather_rows(ragged._values, at)
        return _read(picked, [slice(None), *rest])
    if first != slice(None):
        part = _plain(first)
        splits, elements = partition.cut(ragged._splits, part)
        uniform = None if ragged._uniform is None else len(range(*part.indices(ragged._uniform)))
        ragged = RaggedTensor._of(gather_rows(ragged._values, elements), splits, uniform)
    return ragged.with_values(_read(ragged._values, [slice(None), *rest])) if rest else ragged


def _plain(part: slice) -> slice:
    start, stop, step = (None if n is None else int(n) for n in (part.start, part.stop, part.step))
    if step == 0:
        text = "strides[0] must be non-zero"
        raise InvalidArgumentError(message(text, received=f"{part}", fix="1 takes every row, -1 goes backwards"))
    return slice(start, stop, step)


def _row(item: Any, length: int) -> int:
    """An index as a number from 0."""
    if not hasattr(item, "__index__"):
        text = (
            "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid "
            f"indices, got {item!r}"
        )
        raise TypeError(message(text, received=shown(item), fix="tf.gather(x, indices) picks several rows"))
    at = item.__index__()
    if not -length <= at < length:
        text = f"Row key {at} out of bounds"
        raise IndexError(message(text, received=f"{length} rows", expected=f"a row from {-length} to {length - 1}"))
    return at % length


def broadcast_rows(values: Any, rows: np.ndarray) -> Any:
    """Rows by number, unless that is all of them in order."""
    count = len(values._splits) - 1 if isinstance(values, RaggedTensor) else values._array.shape[0]
    if len(rows) == count and (rows == np.arange(count)).all():
        return values
    return gather_rows(values, rows)
