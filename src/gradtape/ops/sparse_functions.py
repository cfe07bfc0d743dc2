"""Functions of sparse tensors. Places are arithmetic on the host; values are gathered and summed by ops with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import elementwise, indexing, segments, shape
from gradtape.ops.arguments import integer, integers
from gradtape.ops.nondiff import counted, counts_by_row, host
from gradtape.ops.sparse import SparseTensor, check_places, numbers, of, order, sparse
from gradtape.values import dtypes
from gradtape.values.composite import structured_in
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
    x = sparse(x)
    lengths = x._lengths
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
        text = "default_value should be a scalar."
        raise InvalidArgumentError(
            message(text, received=f"shape {filler.shape}", expected="one number: what stands where nothing is stored")
        )
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
        text = _OUT_OF_ORDER.format(row, place)
        raise InvalidArgumentError(
            message(text, received=f"indices {dims(tuple(x._places[row - 1]))}, then [{place}]", fix="tf.sparse.reorder(x)")
        )


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
            message(
                "Tensor 'a_shape' must have 2 elements" if len(lengths) != 2 else "Tensor 'b' is not a matrix",
                received=f"shapes {lengths} and {b._array.shape}",
                expected="two matrices",
                fix="give a vector an axis: b[:, tf.newaxis]",
            )
        )
    check_places(a, "SparseTensorDenseMatMul")
    b = shape.adjoint(b) if adjoint_b else b
    row, column = (1, 0) if adjoint_a else (0, 1)
    if lengths[column] != b._array.shape[0]:
        text = (
            f"Cannot multiply A and B because inner dimension does not match: {lengths[column]} vs. {b._array.shape[0]}.  "
            "Did you forget a transpose?  "
            f"Dimensions of A: {dims(lengths)}).  Dimensions of B: {dims(b._array.shape)}"
        )
        raise InvalidArgumentError(
            message(text, received=f"shapes {a._lengths} and {b.shape}", fix="adjoint_a=True or adjoint_b=True")
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
            message(
                "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
                f"{dims(mine)} vs. {dims(lengths)}",
                received=f"a sparse {mine} and a dense {lengths}",
                expected="a dense tensor that broadcasts to the sparse one",
            )
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
        text = "Invalid permutation of the axes of a SparseTensor."
        raise InvalidArgumentError(message(text, received=f"{axes}", expected=f"each of 0 to {rank - 1} once"))
    return reorder(of(x._places[:, list(axes)], x._values, [x._lengths[a] for a in axes]))


def reshape(x: SparseTensor, target: Any) -> SparseTensor:
    """The same elements in another shape, of which one length may be -1."""
    x = sparse(x)
    wanted, total = list(integers(target)), _size(x._lengths)
    if wanted.count(-1) > 1:
        first, second = [axis for axis, n in enumerate(wanted) if n == -1][:2]
        text = f"only one output dimension may be -1, not both {first} and {second}"
        raise InvalidArgumentError(message(text, received=f"shape={wanted}", fix="leave at most one length open"))
    if -1 in wanted:
        known = _size([n for n in wanted if n != -1])
        if not known or total % known:
            raise InvalidArgumentError(
                message(
                    f"Input to reshape is a SparseTensor with {total} dense values, but the requested shape requires a "
                    f"multiple of {known}. input_shape={list(x._lengths)} output_shape={wanted}",
                    received=f"{total} dense values for shape {wanted}",
                    expected="known lengths whose product divides that",
                )
            )
        wanted[wanted.index(-1)] = total // known
    if _size(wanted) != total:
        text = (
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has {_size(wanted)}. "
            f"input_shape={dims(x._lengths)} output_shape={dims(tuple(wanted))}"
        )
        raise InvalidArgumentError(
            message(text, received=f"shape {x._lengths} to {tuple(wanted)}", expected=f"{total} dense values")
        )
    places = np.stack(np.unravel_index(numbers(x._places, x._lengths), wanted), 1) if wanted and total else x._places[:, :0]
    return of(places, x._values, wanted)


def expand_dims(x: SparseTensor, axis: Any) -> SparseTensor:
    """A new axis of length 1; by default the last."""
    x = sparse(x)
    rank = len(x._lengths)
    at = -1 if axis is None else integer(axis)
    if not -rank - 1 <= at <= rank:
        text = f"Expected size[1] in [0, {rank}], but got {at}: the axis is out of range"
        raise InvalidArgumentError(
            message(text, received=f"axis={at} for rank {rank}", expected=f"an axis from {-rank - 1} to {rank}")
        )
    at %= rank + 1
    lengths = [*x._lengths[:at], 1, *x._lengths[at:]]
    return of(np.insert(x._places, at, 0, axis=1), x._values, lengths)


def concat(axis: Any, inputs: Any, expand: bool) -> SparseTensor:
    """Sparse tensors joined along an axis."""
    if isinstance(inputs, SparseTensor) or not isinstance(inputs, (list, tuple)):
        text = f"Inputs must be a list or tuple. Received: {type(inputs).__name__}"
        raise TypeError(message(text, received=shown(inputs), fix="tf.sparse.concat(axis, [x, y])"))
    parts = [sparse(part) for part in inputs]
    if len(parts) == 1:
        return parts[0]
    rank, at = len(parts[0]._lengths), integer(axis)
    if not -rank <= at < rank:
        text = f"Concat dimension must be in range [{-rank}, {rank}), got {at}"
        raise InvalidArgumentError(
            message(text, received=f"axis={at} for rank {rank}", expected=f"an axis from {-rank} to {rank - 1}")
        )
    if any(len(part._lengths) != rank for part in parts):
        ranks = [len(part._lengths) for part in parts]
        text = "Ranks of all input tensors must match"
        raise InvalidArgumentError(message(text, received=f"ranks {ranks}", expected="one rank for all"))
    at %= rank
    shapes = np.array([part._lengths for part in parts])
    others = np.delete(shapes, at, 1)
    if not expand and (others != others[0]).any():
        position, where = (int(i) for i in np.argwhere(others != others[0])[0])
        raise InvalidArgumentError(
            message(
                f"Input shapes must match: expected {others[0][where]} for dimension {where + (where >= at)} but got "
                f"{others[position][where]} at position {position}",
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
    for what, given in (("start", first), ("size", many)):
        if len(given) != len(x._lengths):
            rank = len(x._lengths)
            text = f"Expected {what} to be a vector of length {rank} but got length {len(given)}"
            raise InvalidArgumentError(
                message(text, received=f"{what}={given} for shape {x._lengths}", expected="one number per axis")
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
        text = f"Dimensions {x._values._array.shape[0]} and {kept.size} are not compatible"
        raise ValueError(
            message(text, received=f"{kept.size} truth values", expected=f"{x._values._array.shape[0]}, one per stored value")
        )
    return _kept(x, kept, 0, x._lengths)


def split(x: SparseTensor, count: Any, axis: Any) -> list[SparseTensor]:
    """Parts along an axis; the first ones are longer by one where it does not divide."""
    x, many = sparse(x), integer(count)
    rank, at = len(x._lengths), integer(axis)
    if not -rank <= at < rank:
        text = f"Input axis should be in range [{-rank}, {rank}), got {at}"
        raise InvalidArgumentError(
            message(text, received=f"axis={at} for rank {rank}", expected=f"an axis from {-rank} to {rank - 1}")
        )
    at %= rank
    length = x._lengths[at]
    if not 0 < many <= length:
        text = f"Input num_split should be between 1 and the splitting dimension size ({length}), got {many}"
        raise InvalidArgumentError(
            message(text, received=f"num_split={many} for an axis of length {length}", expected=f"1 to {length}")
        )
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
        text = f"Dimensions {len(lengths)} and {len(x._lengths)} are not compatible"
        raise ValueError(
            message(text, received=f"new_shape={lengths} for rank {len(x._lengths)}", expected="one length per axis")
        )
    if any(n < old for n, old in zip(lengths, x._lengths)):
        text = (
            f"Requested new_shape should have dimension sizes >= sp_input.shape.  Found new_shape ({lengths}), "
            f"sp_input.shape ({x._lengths})."
        )
        raise ValueError(message(text, received=f"new_shape={lengths}", expected=f"at least {x._lengths}"))
    return of(x._places, x._values, lengths)


def eye(rows: Any, columns: Any, dtype: Any) -> SparseTensor:
    """Ones on the diagonal."""
    lengths = (integer(rows), integer(rows if columns is None else columns))
    diagonal = np.arange(min(lengths))
    return of(np.stack([diagonal, diagonal], 1), wrap(np.ones(len(diagonal), dtypes.as_dtype(dtype).numpy)), lengths)


def fill_empty_rows(x: SparseTensor, default_value: Any) -> tuple[SparseTensor, Tensor]:
    """With a default at the beginning of every row that has no element; also, which rows those were."""
    x = sparse(x)
    filler = convert_to_tensor(default_value, x.dtype)
    if filler._array.ndim:
        text = f"default_value must be a scalar, saw: {dims(filler._array.shape)}"
        raise InvalidArgumentError(
            message(text, received=f"default_value of shape {filler._array.shape}", expected="one number")
        )
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
            text = f"Invalid reduction dimension {a}, for input with {rank} dimensions."
            raise InvalidArgumentError(message(text, received=f"axis={axis}", expected=f"axes from {-rank} to {rank - 1}"))
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
    if len(a._lengths) != len(b._lengths):
        text = f"Ranks of input tensors must match, but saw ranks: {len(a._lengths)} and {len(b._lengths)}"
        raise InvalidArgumentError(
            message(text, received=f"shapes {a._lengths} and {b._lengths}", expected="one rank for both")
        )
    for axis, (mine, theirs) in enumerate(zip(a._lengths, b._lengths)):
        if mine != theirs:
            text = f"Operands' shapes do not match: got {mine} and {theirs} for dimension {axis}"
            raise InvalidArgumentError(
                message(text, received=f"shapes {a._lengths} and {b._lengths}", expected="one shape for both")
            )
    if a.dtype is not b.dtype:
        text = "Operands' element types do not match"
        raise InvalidArgumentError(message(text, received=f"{a.dtype!r} and {b.dtype!r}", fix=f"tf.cast(b, {a.dtype!r})"))
    return np.unique(numbers(np.concatenate([a._places, b._places]), a._lengths), return_inverse=True)


def _at(positions: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    return np.stack(np.unravel_index(positions, lengths), 1)


def add(a: Any, b: Any, threshold: Any) -> Any:
    """The sum: sparse if both are, else dense. Elements below the threshold are left out."""
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError(message("At least one input should be SparseTensor; do you mean to use tf.add()?", fix="tf.add(a, b)"))
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if not isinstance(b, SparseTensor):
        return _add_dense(a, convert_to_tensor(b, None if isinstance(b, (Tensor, Convertible)) else a.dtype))
    present, group = _union(a, b)
    total = summed(shape.concatenate(a._values, b._values, axis=0), group.astype(np.int64), len(present))
    limit = host(convert_to_tensor(threshold, dtypes.as_dtype(total._array.real.dtype)))
    alone = np.bincount(group, minlength=len(present)) == 1  # the threshold is for sums
    return _kept(of(_at(present, a._lengths), total, a._lengths), alone | (np.abs(host(total)) >= limit), 0, a._lengths)


def _add_dense(a: SparseTensor, b: Tensor) -> Tensor:
    if a._lengths != b._array.shape:
        text = "Dimensions do not match"
        raise InvalidArgumentError(
            message(text, received=f"a sparse {a._lengths} and a dense {b._array.shape}", expected="one shape for both")
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
        text = f"Input should have rank >= 2, but received shape: {x._lengths}"
        raise InvalidArgumentError(
            message(text, received=f"shape {x._lengths}", expected="at least two axes: the last is normalised")
        )
    _, rows = np.unique(numbers(x._places[:, :-1], x._lengths[:-1]), return_inverse=True)
    ids, count = wrap(rows.astype(np.int64)), int(rows.max(initial=-1)) + 1
    largest = elementwise.stop_gradient(segments._max(x._values, ids, count))
    weights = elementwise.exp(elementwise.subtract(x._values, indexing.take(largest, ids, axis=0)))
    total = indexing.take(segments._sum(weights, ids, count), ids, axis=0)
    return x._with_differentiable_part(elementwise.divide(weights, total))


def to_indicator(x: SparseTensor, vocab_size: Any) -> Tensor:
    """True where a row holds the number: the last axis of a sparse tensor of numbers becomes one of ``vocab_size``."""
    x = sparse(x)
    size, values = integer(vocab_size), host(x._values).astype(np.int64)
    inside = (values >= 0) & (values < size)
    out = np.zeros((*x._lengths[:-1], size), bool)
    out[(*x._places[inside, :-1].T, values[inside])] = True
    return wrap(out)


def map_values(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function of the values of sparse arguments, which all have the same places."""
    found = [value for value in (*args, *kwargs.values()) if isinstance(value, SparseTensor)]
    if not found:
        text = "No SparseTensor in argument list of map_values"
        raise ValueError(message(text, fix="tf.sparse.map_values(op, sparse_tensor); call op itself on dense ones"))
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
    own = _FUNCTIONS.get(function.__name__)
    if own is not None:
        return own(*args, **kwargs)
    if function.__name__ in _KEEP_ZERO:
        return map_values(function, args, kwargs)
    return structured_in((*args, *kwargs.values()))._to_tensor()  # type: ignore[union-attr]  # says that it is refused


def _multiply(x: Any, y: Any, name: str | None = None) -> SparseTensor:
    return with_dense("multiply", x, y) if isinstance(x, SparseTensor) else with_dense("multiply", y, x)


def _divide(x: Any, y: Any, name: str | None = None) -> SparseTensor:
    return with_dense("true_divide", x, y) if isinstance(x, SparseTensor) else y._to_tensor()


def _shape(input: SparseTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    return wrap(np.array(input._lengths, _integers(out_type)))


def _count(input: SparseTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    return wrap(np.array(_size(input._lengths), _integers(out_type)))


def _rank(input: SparseTensor, name: str | None = None) -> Tensor:
    return wrap(np.array(len(input._lengths), np.int32))


def _integers(out_type: Any) -> np.dtype:
    return (dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)).numpy


def _bincount(
    arr: SparseTensor, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32,
    name: str | None = None, axis: Any = None, binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """How often each number occurs, in everything or in each row; what is not there does not count as zero."""
    rows = arr._places[:, 0] if counts_by_row(axis) and len(arr._lengths) > 1 else None
    loads = None if weights is None else host(weights.values)
    return counted(host(arr.values), rows, arr._lengths[0], loads, minlength, maxlength, dtype, binary_output)


_FUNCTIONS: dict[str, Callable] = {
    "bincount": _bincount,
    "concat": lambda values, axis, name=None: concat(axis, list(values), False),
    "multiply": _multiply,
    "rank": _rank,
    "shape": _shape,
    "size": _count,
    "true_divide": _divide,
}
