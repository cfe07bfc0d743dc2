"""Functions of sparse tensors. Places are arithmetic on the host; values are gathered and summed by ops with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, segments, shape
from gradtape.ops.arguments import integer, integers
from gradtape.ops.nondiff import host
from gradtape.ops.sparse import SparseTensor, check_places, numbers, of, order, sparse
from gradtape.values import dtypes
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_OUT_OF_ORDER = (
    "indices[{}] = [{}] is out of order. Many sparse ops require sorted indices.\n"
    "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n"
)


def pick(values: Tensor, which: np.ndarray) -> Tensor:
    """Some values, by number; their gradient is dense."""
    if len(which) == values._array.shape[0] and (which == np.arange(len(which))).all():
        return values
    return indexing.take(elementwise.identity(values), wrap(np.asarray(which, np.int64)), axis=0, batch_dims=0)


def summed(values: Tensor, ids: np.ndarray, count: int) -> Tensor:
    """Values with the same id, added."""
    return indexing.take_transpose(values, wrap(ids), axis=0, shape=(count, *values._array.shape[1:]), batch_dims=0)


def _size(lengths: Any) -> int:
    return int(np.prod(lengths, dtype=np.int64))


# Dense


def to_dense(x: SparseTensor, default_value: Any = None, validate: bool = True) -> Tensor:
    """A gather from the values and one more, which stands everywhere else."""
    x, lengths = sparse(x), x._lengths if isinstance(x, SparseTensor) else ()
    if validate:
        _check_order(x)
    else:
        check_places(x, "SparseToDense")
    count = x._values._array.shape[0]
    place = np.full(_size(lengths), count, np.int64)
    place[numbers(x._places, lengths)] = np.arange(count)
    values = shape.concatenate(x._values, shape.reshape(_filler(default_value, x.dtype), shape=(1,)), axis=0)
    return shape.reshape(indexing.take(values, wrap(place), axis=0, batch_dims=0), shape=lengths)


def _filler(value: Any, dtype: dtypes.DType) -> Tensor:
    if value is None:
        return convert_to_tensor("" if dtype is dtypes.string else np.zeros((), dtype.numpy))
    filler = convert_to_tensor(value, dtype)
    if filler._array.ndim:
        raise InvalidArgumentError(message("default_value should be a scalar.", received=f"shape {filler.shape}"))
    return filler


def _check_order(x: SparseTensor) -> None:
    """Refuse places outside the shape, out of order or repeated."""
    check_places(x, "SparseToDense")
    at = numbers(x._places, x._lengths)
    wrong = np.diff(at) <= 0
    if wrong.any():
        row = int(np.argmax(wrong)) + 1
        place = ",".join(map(str, x._places[row]))
        if at[row] == at[row - 1]:
            raise InvalidArgumentError(message(f"indices[{row}] = [{place}] is repeated", fix="validate_indices=False"))
        raise InvalidArgumentError(_OUT_OF_ORDER.format(row, place))


def from_dense(tensor: Any) -> SparseTensor:
    """The elements that are not zero (or empty)."""
    x = convert_to_tensor(tensor)
    array = host(x)
    places = np.argwhere(array != (b"" if array.dtype.kind == "O" else 0))
    return of(places, indexing.gather_nd(elementwise.identity(x), wrap(places.astype(np.int64))), array.shape)


def matmul(a: Any, b: Any, adjoint_a: bool, adjoint_b: bool) -> Tensor:
    """A sparse matrix times a dense one, or a dense one times a sparse one."""
    if isinstance(b, SparseTensor):
        product = matmul(b, a, not adjoint_b, not adjoint_a)  # (A B)ᴴ = Bᴴ Aᴴ
        return shape.adjoint(product)
    a = sparse(a, "sp_a")
    b = convert_to_tensor(b, None if isinstance(b, (Tensor, Convertible)) else a.dtype)
    if b.dtype is not a.dtype:
        raise InvalidArgumentError(
            message(
                f"cannot compute SparseTensorDenseMatMul as input #3(zero-based) was expected to be a {a.dtype.word} tensor "
                f"but is a {b.dtype.word} tensor",
                fix="tf.cast one of them",
            )
        )
    lengths, places = a._lengths, a._places
    if len(lengths) != 2 or b._array.ndim != 2:
        raise InvalidArgumentError(
            message("Tensor 'a_shape' must have 2 elements", received=f"ranks {len(lengths)} and {b._array.ndim}")
            if len(lengths) != 2
            else message(f"Tensor 'b' is not a matrix", received=f"shape {b.shape}")
        )
    check_places(a, "SparseTensorDenseMatMul")
    b = shape.adjoint(b) if adjoint_b else b
    row, column = (1, 0) if adjoint_a else (0, 1)
    if lengths[column] != b._array.shape[0]:
        raise InvalidArgumentError(
            f"Cannot multiply A and B because inner dimension does not match: {lengths[column]} vs. {b._array.shape[0]}.  "
            "Did you forget a transpose?  "
            f"Dimensions of A: {dims(lengths)}).  Dimensions of B: {dims(b._array.shape)}"
        )
    values = elementwise.conj(a._values) if adjoint_a and a.dtype.is_complex else a._values
    terms = elementwise.multiply(shape.expand_dims(values, axis=1), pick(b, places[:, column]))
    return summed(terms, places[:, row], lengths[row])


def with_dense(name: str, x: SparseTensor, other: Any) -> SparseTensor:
    """Values with the elements of a dense tensor, which is broadcast to the sparse one's shape."""
    y = convert_to_tensor(other, x.dtype)
    lengths, mine = y._array.shape, x._lengths
    lead = len(mine) - len(lengths)
    if lead < 0 or any(n not in (1, m) for n, m in zip(lengths, mine[lead:])):
        raise InvalidArgumentError(
            f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: {dims(mine)} vs. {dims(lengths)}"
        )
    places = x._places[:, lead:] * (np.array(lengths, np.int64) > 1)
    operand = indexing.gather_nd(elementwise.identity(y), wrap(places)) if lengths else y
    function = {"multiply": elementwise.multiply, "true_divide": elementwise.true_divide}[name]
    return x._with_differentiable_part(function(x._values, operand))


# Order and shape


def reorder(x: SparseTensor) -> SparseTensor:
    """Places in row-major order."""
    x = sparse(x)
    which = order(x)
    return of(x._places[which], pick(x._values, which), x._lengths)


def transpose(x: SparseTensor, perm: Any) -> SparseTensor:
    """Axes in another order; None reverses them."""
    x = sparse(x)
    rank = len(x._lengths)
    axes = tuple(range(rank))[::-1] if perm is None else integers(perm)
    if sorted(axes) != list(range(rank)):
        raise InvalidArgumentError(message("Invalid permutation of the axes of a SparseTensor.", received=f"{axes}"))
    return reorder(of(x._places[:, list(axes)], x._values, [x._lengths[a] for a in axes]))


def reshape(x: SparseTensor, target: Any) -> SparseTensor:
    """The same elements in another shape, of which one length may be -1."""
    x = sparse(x)
    wanted, total = list(integers(target)), _size(x._lengths)
    if wanted.count(-1) > 1:
        raise ValueError("At most one dimension can be inferred (-1). Found: " + str(wanted))
    if -1 in wanted:
        known = _size([n for n in wanted if n != -1])
        if not known or total % known:
            raise InvalidArgumentError(
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested shape requires a multiple of "
                f"{known}. input_shape={list(x._lengths)} output_shape={wanted}"
            )
        wanted[wanted.index(-1)] = total // known
    if _size(wanted) != total:
        raise ValueError(
            f"Cannot reshape a tensor with {total} elements to shape {wanted} ({_size(wanted)} elements)."
        )
    places = np.stack(np.unravel_index(numbers(x._places, x._lengths), wanted), 1) if wanted and total else x._places[:, :0]
    return of(places, x._values, wanted)


def expand_dims(x: SparseTensor, axis: Any) -> SparseTensor:
    """A new axis of length 1; by default the last."""
    x = sparse(x)
    rank = len(x._lengths)
    at = -1 if axis is None else integer(axis)
    if not -rank - 1 <= at <= rank:
        raise ValueError(f"axis: Expected value in range [{-rank - 1}, {rank}], got {at}")
    at %= rank + 1
    lengths = [*x._lengths[:at], 1, *x._lengths[at:]]
    return of(np.insert(x._places, at, 0, axis=1), x._values, lengths)


def concat(axis: Any, inputs: Any, expand: bool) -> SparseTensor:
    """Sparse tensors joined along an axis."""
    if isinstance(inputs, SparseTensor) or not isinstance(inputs, (list, tuple)):
        raise TypeError(f"Inputs must be a list, got {type(inputs).__name__}.")
    parts = [sparse(part) for part in inputs]
    if len(parts) == 1:
        return parts[0]
    rank, at = len(parts[0]._lengths), integer(axis)
    if any(len(part._lengths) != rank for part in parts) or not -rank <= at < rank:
        raise InvalidArgumentError(
            message("Ranks of all input tensors must match, and the axis must be one of them.", received=f"axis {at}")
        )
    at %= rank
    shapes = np.array([part._lengths for part in parts])
    others = np.delete(shapes, at, 1)
    if not expand and (others != others[0]).any():
        raise InvalidArgumentError(
            message(
                f"Input shapes must match in all axes but {at}.",
                received=", ".join(str(part._lengths) for part in parts),
                fix="expand_nonconcat_dims=True takes the larger lengths",
            )
        )
    starts = np.append(0, np.cumsum(shapes[:, at]))
    lengths = shapes.max(0)
    lengths[at] = starts[-1]
    unit = np.arange(rank) == at
    places = np.concatenate([part._places + start * unit for part, start in zip(parts, starts)])
    return reorder(of(places, shape.concatenate(*[part._values for part in parts], axis=0), lengths.tolist()))


def slice_(x: SparseTensor, start: Any, size: Any) -> SparseTensor:
    """The part from ``start``, of at most ``size``."""
    x, first, many = sparse(x), np.array(integers(start)), np.array(integers(size))
    if len(first) != len(x._lengths) or len(many) != len(x._lengths):
        raise InvalidArgumentError(
            message("start and size need one number per axis.", received=f"{first}, {many} for shape {x._lengths}")
        )
    lengths = np.maximum(np.minimum(many, np.array(x._lengths) - first), 0)
    return _kept(x, ((x._places >= first) & (x._places < first + lengths)).all(1), first, lengths.tolist())


def _kept(x: SparseTensor, kept: np.ndarray, origin: Any, lengths: Any) -> SparseTensor:
    which = np.flatnonzero(kept)
    return of(x._places[which] - origin, pick(x._values, which), lengths)


def retain(x: SparseTensor, to_retain: Any) -> SparseTensor:
    """The elements where a vector of truth values says so."""
    x, kept = sparse(x), host(convert_to_tensor(to_retain, dtypes.bool_))
    if kept.shape != (x._values._array.shape[0],):
        raise ValueError(f"Shapes ({x._values._array.shape[0]},) and {kept.shape} are incompatible")
    return _kept(x, kept, 0, x._lengths)


def split(x: SparseTensor, count: Any, axis: Any) -> list[SparseTensor]:
    """Parts along an axis; the first ones are longer by one where it does not divide."""
    x, many = sparse(x), integer(count)
    rank, at = len(x._lengths), integer(axis)
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"Input axis should be in range [{-rank}, {rank}), got {at}")
    at %= rank
    length = x._lengths[at]
    if not 0 < many <= length:
        raise InvalidArgumentError(f"Input num_split should be between 1 and the splitting dimension size ({length}), got {many}")
    sizes = [length // many + (i < length % many) for i in range(many)]
    starts = np.append(0, np.cumsum(sizes))[:-1]
    rest = np.arange(rank) == at
    parts = []
    for start, size in zip(starts, sizes):
        first, lengths = np.where(rest, start, 0), np.where(rest, size, x._lengths)
        parts.append(slice_(x, first.tolist(), lengths.tolist()))
    return parts


def reset_shape(x: SparseTensor, new_shape: Any) -> SparseTensor:
    """The same places in another shape: by default the smallest that holds them."""
    x = sparse(x)
    if new_shape is None:
        smallest = x._places.max(0) + 1 if len(x._places) else np.zeros(len(x._lengths), np.int64)
        return of(x._places, x._values, smallest.tolist())
    lengths = integers(new_shape)
    if len(lengths) != len(x._lengths):
        raise ValueError(f"Shapes ({len(x._lengths)},) and ({len(lengths)},) are incompatible")
    if any(n < old for n, old in zip(lengths, x._lengths)):
        raise ValueError(
            f"New shape should have dimension sizes >= sp_input.shape.  sp_input.shape: {x.shape}.  New shape: {lengths}"
        )
    return of(x._places, x._values, lengths)


def eye(rows: Any, columns: Any, dtype: Any) -> SparseTensor:
    """Ones on the diagonal."""
    lengths = (integer(rows), integer(rows if columns is None else columns))
    diagonal = np.arange(min(lengths))
    return of(np.stack([diagonal, diagonal], 1), wrap(np.ones(len(diagonal), dtypes.as_dtype(dtype).numpy)), lengths)


def fill_empty_rows(x: SparseTensor, default_value: Any) -> tuple[SparseTensor, Tensor]:
    """With a default at the beginning of every row that has no element; also, which rows those were."""
    x, filler = sparse(x), convert_to_tensor(default_value, x.dtype if isinstance(x, SparseTensor) else None)
    if filler._array.ndim:
        raise InvalidArgumentError(message("default_value must be a scalar", received=f"shape {filler.shape}"))
    check_places(x, "SparseFillEmptyRows")
    empty = np.bincount(x._places[:, 0], minlength=x._lengths[0])[: x._lengths[0]] == 0
    rows = np.flatnonzero(empty)
    new = np.zeros((len(rows), len(x._lengths)), np.int64)
    new[:, 0] = rows
    fillers = shape.broadcast_to(filler, shape=(len(rows),))
    places = np.concatenate([x._places, new])
    values = shape.concatenate(x._values, fillers, axis=0)
    which = np.argsort(places[:, 0], kind="stable")
    return of(places[which], pick(values, which), x._lengths), wrap(empty)


# Sums


def _groups(x: SparseTensor, axis: Any) -> tuple[np.ndarray, list[int], list[int]]:
    """Each element's position after a reduction, the shape that is left, and which axes went."""
    rank = len(x._lengths)
    found = tuple(range(rank)) if axis is None else integers(axis)
    for a in found:
        if not -rank <= a < rank:
            raise InvalidArgumentError(f"Invalid reduction dimension {a}, for input with {rank} dimensions.")
    gone = sorted({a % rank for a in found})
    stays = [a for a in range(rank) if a not in gone]
    left = [x._lengths[a] for a in stays]
    return numbers(x._places[:, stays], tuple(left)), left, gone


def reduction(segment: Callable) -> Callable:
    """A reduction over axes to a dense or sparse tensor."""

    def call(x: SparseTensor, axis: Any, keepdims: Any, output_is_sparse: bool) -> Any:
        x = sparse(x)
        ids, left, gone = _groups(x, axis)
        full = [1 if a in gone else n for a, n in enumerate(x._lengths)] if keepdims else left
        if not output_is_sparse:
            return shape.reshape(segment(x._values, wrap(ids), _size(left)), shape=tuple(full))
        present, group = np.unique(ids, return_inverse=True)
        values = segment(x._values, wrap(group.astype(np.int64)), len(present))
        places = np.stack(np.unravel_index(present, full), 1) if full else np.zeros((len(present), 0), np.int64)
        return of(places, values, full)

    return call


reduce_sum = reduction(segments._sum)
reduce_max = reduction(segments._max_or_zero)


def _union(a: SparseTensor, b: SparseTensor) -> tuple[np.ndarray, np.ndarray]:
    """The places of either, in order, and for each element of a, then of b, which of them it has."""
    if a._lengths != b._lengths:
        raise InvalidArgumentError(
            message("Operands' shapes do not match", received=f"{a._lengths} and {b._lengths}", expected="equal shapes")
        )
    if a.dtype is not b.dtype:
        raise InvalidArgumentError(message("Operands' element types do not match", received=f"{a.dtype!r} and {b.dtype!r}"))
    return np.unique(numbers(np.concatenate([a._places, b._places]), a._lengths), return_inverse=True)


def _at(positions: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    return np.stack(np.unravel_index(positions, lengths), 1)


def add(a: Any, b: Any, threshold: Any) -> Any:
    """The sum: sparse if both are, else dense. Elements below the threshold are left out."""
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if not isinstance(b, SparseTensor):
        return _add_dense(a, convert_to_tensor(b, None if isinstance(b, (Tensor, Convertible)) else a.dtype))
    present, group = _union(a, b)
    total = summed(shape.concatenate(a._values, b._values, axis=0), group.astype(np.int64), len(present))
    limit = host(convert_to_tensor(threshold, dtypes.as_dtype(total._array.real.dtype)))
    return _kept(of(_at(present, a._lengths), total, a._lengths), np.abs(host(total)) >= limit, 0, a._lengths)


def _add_dense(a: SparseTensor, b: Tensor) -> Tensor:
    if a._lengths != b._array.shape:
        raise InvalidArgumentError(
            message("Dimensions do not match", received=f"a sparse {a._lengths} and a dense {b._array.shape}")
        )
    check_places(a, "SparseTensorDenseAdd")
    flat = summed(a._values, numbers(a._places, a._lengths), _size(a._lengths))
    return elementwise.add(shape.reshape(flat, shape=a._lengths), b)


def extreme(function: Callable, a: Any, b: Any) -> SparseTensor:
    """The larger (smaller) of two sparse tensors; a place that one lacks counts as zero there."""
    a, b = sparse(a, "sp_a"), sparse(b, "sp_b")
    present, group = _union(a, b)
    count = a._values._array.shape[0]
    operands = []
    for x, mine in ((a, group[:count]), (b, group[count:])):
        operands.append(summed(x._values, mine.astype(np.int64), len(present)))
    return of(_at(present, a._lengths), function(*operands), a._lengths)


def softmax(x: SparseTensor) -> SparseTensor:
    """eˣ / Σ eˣ over the elements of each row of the last axis."""
    x = sparse(x)
    if len(x._lengths) < 2:
        raise InvalidArgumentError(message("Input should have rank >= 2", received=f"shape {x._lengths}"))
    _, rows = np.unique(numbers(x._places[:, :-1], x._lengths[:-1]), return_inverse=True)
    ids, count = wrap(rows.astype(np.int64)), int(rows.max(initial=-1)) + 1
    largest = elementwise.stop_gradient(segments._max(x._values, ids, count))
    weights = elementwise.exp(elementwise.subtract(x._values, indexing.take(largest, ids, axis=0)))
    total = indexing.take(segments._sum(weights, ids, count), ids, axis=0)
    return x._with_differentiable_part(elementwise.divide(weights, total))


def to_indicator(x: SparseTensor, vocab_size: Any) -> Tensor:
    """True where a row holds the number: the last axis of a sparse tensor of numbers becomes one of ``vocab_size``."""
    x = sparse(x)
    if not x.dtype.is_integer:
        raise ValueError(message("sp_ids.values must be integers.", received=f"{x.dtype!r}"))
    size, values = integer(vocab_size), host(x._values)
    inside = (values >= 0) & (values < size)
    out = np.zeros((*x._lengths[:-1], size), bool)
    out[(*x._places[inside, :-1].T, values[inside])] = True
    return wrap(out)


def map_values(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function of the values of sparse arguments, which all have the same places."""
    found = [value for value in (*args, *kwargs.values()) if isinstance(value, SparseTensor)]
    if not found:
        raise ValueError("No SparseTensor in argument list of map_values")
    for other in found[1:]:
        if other._lengths != found[0]._lengths or not np.array_equal(other._places, found[0]._places):
            raise InvalidArgumentError(message("SparseTensors have different places.", fix="tf.sparse.reorder both"))

    def plain(value: Any) -> Any:
        return value._values if isinstance(value, SparseTensor) else value

    out = function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
    return SparseTensor(found[0]._indices, out, found[0]._dense_shape)


# Elementwise functions of tensors that keep zero where it is

_KEEP_ZERO = frozenset(
    "abs negative sign square sqrt sin tan tanh asin atan sinh asinh atanh erf expm1 log1p floor ceil rint round relu relu6 "
    "astype cast identity stop_gradient real imag conj elu selu softsign leaky_relu silu".split()
)


def call(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function of arguments of which at least one is sparse."""
    name = function.__name__
    x = next((value for value in (*args, *kwargs.values()) if isinstance(value, SparseTensor)), None)
    if name == "concat":
        return concat(kwargs.get("axis", args[1] if len(args) > 1 else 0), list(args[0]), False)
    if x is None:
        return next(part for value in args if isinstance(value, (list, tuple)) for part in value)._to_tensor()
    if name in _KEEP_ZERO:
        return map_values(function, args, kwargs)
    if name in ("multiply", "true_divide") and args and (args[0] is x or name == "multiply"):
        return with_dense(name, x, args[1] if args[0] is x else args[0])
    if name in ("shape", "size", "rank"):
        return _inspected(name, x, kwargs.get("out_type", args[1] if len(args) > 1 else None))
    return x._to_tensor()  # says that this function does not take it


def _inspected(name: str, x: SparseTensor, out_type: Any) -> Tensor:
    found: Any = {"shape": x._lengths, "size": _size(x._lengths), "rank": len(x._lengths)}[name]
    wanted = dtypes.as_dtype(out_type) if isinstance(out_type, dtypes.DType) else dtypes.int32
    return wrap(np.array(found, wanted.numpy))


