"""Tensors made from numbers: one-hot rows, ranges, grids, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, shape
from gradtape.ops.arguments import integer, lengths
from gradtape.values import dtypes
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.placement import placed
from gradtape.values.tensor import Tensor, wrap


def one_hot(indices: Any, depth: Any, on: Any, off: Any, axis: Any, dtype: Any) -> Tensor:
    """``on`` at the index along a new axis and ``off`` elsewhere. Nothing of it is differentiable, as in TensorFlow."""
    where = convert_to_tensor(indices)
    if where._array.dtype.kind not in "iu":
        text = (
            f"Value for attr 'TI' of {where.dtype.word} is not in the list of allowed values: "
            "uint8, int8, int32, int64 [Op:OneHot]"
        )
        raise InvalidArgumentError(message(text, fix="tf.cast(indices, tf.int32)"))
    if extent := np.shape(getattr(depth, "_array", depth)):
        text = f"depth must be a scalar, but got: {dims(extent)} [Op:OneHot]"
        raise InvalidArgumentError(message(text, expected="one number: how many classes there are"))
    count, rank = integer(depth), where._array.ndim
    if count < 0:
        raise InvalidArgumentError(message(f"depth must be non-negative, got: {count} [Op:OneHot]", expected="0 or more"))
    axis = -1 if axis is None else integer(axis)
    if not -1 <= axis <= rank:
        text = f"Expected axis to be -1 or between [0, {rank + 1}).  But received: {axis} [Op:OneHot]"
        raise InvalidArgumentError(
            message(text, received=f"axis={axis} for indices of rank {rank}", expected=f"-1, or an axis from 0 to {rank}")
        )
    plain = on is None and off is None
    kind = _one_hot_dtype(on, off, dtype)
    if plain and kind.is_numeric:
        out = indexing.one_hot(where, depth=count, dtype=kind.numpy)
    else:
        hit = indexing.one_hot(where, depth=count, dtype=np.dtype(bool))
        high, low = convert_to_tensor(1 if on is None else on, kind), convert_to_tensor(0 if off is None else off, kind)
        out = elementwise.where(hit, elementwise.stop_gradient(high), elementwise.stop_gradient(low))
    if axis in (-1, rank):
        return out
    return shape.transpose(out, axes=(*range(axis), rank, *range(axis, rank)))


def _one_hot_dtype(on: Any, off: Any, dtype: Any) -> dtypes.DType:
    given = {n: convert_to_tensor(v).dtype for n, v in (("on_value", on), ("off_value", off)) if v is not None}
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype)
        for name, have in given.items():
            if have is not wanted:
                text = f"dtype {have} of {name} does not match dtype parameter {wanted}"
                raise TypeError(message(text, fix=f"dtype={have!r}, or tf.cast({name}, {wanted!r})"))
        return wanted
    if len(set(given.values())) > 1:
        text = f"dtype {given['on_value']} of on_value does not match dtype {given['off_value']} of off_value"
        raise TypeError(message(text, fix="tf.cast one of them, or give dtype="))
    return next(iter(given.values()), dtypes.float32)


def filled(target: Any, value: Any) -> Tensor:
    """A shape filled with one value, to which the gradient flows back."""
    x = convert_to_tensor(value)
    if x._array.size != 1:
        text = f"value must represent a scalar, got shape {dims(x._array.shape)} [Op:Fill]"
        raise InvalidArgumentError(message(text, fix="tf.broadcast_to(value, dims)"))
    if x._array.ndim:
        x = shape.reshape(x, shape=())
    return shape.broadcast_to(x, shape=lengths(target))


_RANGE_ORDER = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def arange(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """start, start + step, … up to, not including, stop; in the widest dtype of the three unless one is given."""
    if stop is None:
        start, stop = 0, start
    if dtype is not None:
        kind = dtypes.as_dtype(dtype)
        parts = [elementwise.cast(v, kind) if isinstance(v, (Tensor, Convertible)) else convert_to_tensor(v, kind)
                 for v in (start, stop, step)]  # fmt: skip
    else:
        parts = [convert_to_tensor(v) for v in (start, stop, step)]
        kind = max((p.dtype for p in parts), key=_RANGE_ORDER.index)
    first, last, by = (np.asarray(p._host()).astype(kind.numpy).reshape(-1)[0] for p in parts)
    if by == 0:
        text = "Requires delta != 0: 0 [Op:Range]"
        raise InvalidArgumentError(message(text, fix="a step of 1 counts up, one of -1 counts down"))
    if (by > 0 and first > last) or (by < 0 and first < last):
        sign, relation = (">", "<=") if by > 0 else ("<", ">=")
        text = f"Requires start {relation} limit when delta {sign} 0: {first}/{last} [Op:Range]"
        raise InvalidArgumentError(
            message(text, received=f"start={first}, limit={last}, delta={by}", fix="give delta the sign of limit - start")
        )
    if kind.is_integer:
        return placed(wrap(np.arange(int(first), int(last), int(by), dtype=kind.numpy)))
    count = int(np.ceil((last - first) / by))
    return placed(wrap((np.arange(count, dtype=kind.numpy) * by + first).astype(kind.numpy)))


def linspace(start: Any, stop: Any, count: Any, axis: int = 0) -> Tensor:
    """``count`` evenly spaced values from start to stop, both included; differentiable in both."""
    first = convert_to_tensor(start)
    last = convert_to_tensor(stop, first.dtype)
    if first._array.dtype.kind in "iu":
        first, last = elementwise.cast(first, "float64"), elementwise.cast(last, "float64")
    number = integer(count)
    if number < 0:
        raise InvalidArgumentError(message(f"Requires num >= 0, received {number} [Op:LinSpace]", expected="0 points or more"))
    full = np.broadcast_shapes(first._array.shape, last._array.shape)
    rank = len(full)
    axis = axis + rank + 1 if axis < 0 else axis
    first, last = (shape.expand_dims(shape.broadcast_to(v, shape=full), axis=axis) for v in (first, last))
    numbers = np.arange(max(number - 1, 0), dtype=first._array.dtype)
    steps = wrap(numbers.reshape([-1 if i == axis else 1 for i in range(rank + 1)]))
    if number <= 1:
        return indexing.getitem(first, index=(slice(None),) * axis + (slice(0, number),))
    step = elementwise.divide(elementwise.subtract(last, first), number - 1)
    return shape.concatenate(elementwise.add(first, elementwise.multiply(steps, step)), last, axis=axis)


def meshgrid(arrays: Any, order_of: str) -> list[Tensor]:
    """Coordinate tensors of a grid, with the first two axes exchanged (xy) or not (ij)."""
    if order_of not in ("xy", "ij"):
        text = f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{order_of}'"
        raise ValueError(message(text, expected="'xy' or 'ij'"))
    tensors = [convert_to_tensor(a) for a in arrays]
    order = list(range(len(tensors)))
    if order_of == "xy" and len(order) > 1:
        order[:2] = 1, 0
    full = tuple(tensors[i]._array.size for i in order)
    out = []
    for i, x in enumerate(tensors):
        line = shape.reshape(x, shape=tuple(x._array.size if k == order.index(i) else 1 for k in range(len(order))))
        out.append(shape.broadcast_to(line, shape=full))
    return out


def sequence_mask(sizes: Any, maximum: Any, dtype: Any) -> Tensor:
    """True at the first ``sizes[i]`` places of row i."""
    counts = convert_to_tensor(sizes)
    if maximum is None:
        array = np.asarray(counts._host())
        limit = int(array.max()) if array.size else 0
    else:
        if np.ndim(getattr(maximum, "_array", maximum)):
            text = (
                f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maximum} "
                f"with shape '{np.shape(getattr(maximum, '_array', maximum))}' instead"
            )
            raise ValueError(message(text, expected="one number: the length of every row of the mask"))
        limit = integer(maximum)
    row = wrap(np.arange(max(limit, 0)).astype(counts._array.dtype))
    return elementwise.cast(elementwise.less(row, shape.expand_dims(counts, axis=counts._array.ndim)), dtype)
