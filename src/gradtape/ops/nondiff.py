"""Functions without derivatives, whose result depends on values: they read them on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise
from gradtape.ops.arguments import integer, integers, not_allowed
from gradtape.ops.cutting import cutting
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor, wrong_dtype
from gradtape.values.tensor import Tensor, wrap


def host(value: Any) -> np.ndarray:
    """The NumPy array of a value."""
    return np.asarray(convert_to_tensor(value)._host())


@cutting(name="where")
def nonzero(condition: Any) -> Tensor:
    """The coordinates of the elements that are not zero, one row each."""
    array = host(condition)
    return wrap(np.argwhere(array != b"" if array.dtype.kind == "O" else array).astype(np.int64))


class Unique(NamedTuple):
    """The distinct values in order of first appearance, and for every element the index of its value."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """`Unique`, and how often each value occurs."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # a field name that tuple has as a method


@cutting
def unique(x: Any, index_type: Any) -> UniqueWithCounts:
    """The distinct values of a vector in order of first appearance, their indices and counts."""
    array = host(x)
    if array.ndim != 1:
        text = "unique expects a 1D vector. [Op:Unique]"
        raise InvalidArgumentError(message(text, received=f"shape {array.shape}", fix="tf.unique(tf.reshape(x, [-1]))"))
    _, first, inverse, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    kind = dtypes.numpy_dtype(index_type)
    return UniqueWithCounts(
        wrap(array[first[order]]), wrap(rank[inverse.reshape(-1)].astype(kind)), wrap(counts[order].astype(kind))
    )


@cutting
def searchsorted(rows: Any, values: Any, side: Any, out_type: Any) -> Tensor:
    """Where values would be inserted in sorted rows (the last axis), before or after equal elements."""
    if side not in ("left", "right"):
        text = f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'."
        raise ValueError(message(text, expected="'left' or 'right'"))
    sequence, wanted = host(rows), host(values)
    if sequence.dtype != wanted.dtype:
        raise wrong_dtype(_Label("LowerBound" if side == "left" else "UpperBound"), 1, sequence.dtype, wanted.dtype)
    if sequence.shape[:-1] != wanted.shape[:-1] and sequence.ndim > 1:
        raise InvalidArgumentError(
            message(
                f"Leading dimensions of sorted_sequence and values must match: {dims(sequence.shape)} vs. {dims(wanted.shape)}",
                received=f"{sequence.shape} and {wanted.shape}",
                expected="the same leading axes: one sequence per row of values",
            )
        )
    kind = dtypes.numpy_dtype(out_type)
    if sequence.ndim == 1:
        return wrap(np.searchsorted(sequence, wanted, side).astype(kind))
    out = np.empty(wanted.shape, kind)
    for i in np.ndindex(sequence.shape[:-1]):
        out[i] = np.searchsorted(sequence[i], wanted[i], side)
    return wrap(out)


class _Label:
    inputs = ("sorted_sequence", "values")

    def __init__(self, label: str) -> None:
        self.label = label


@cutting
def bincount(x: Any, weights: Any, least: Any, most: Any, dtype: Any, axis: Any, binary: bool) -> Tensor:
    """How often each non-negative integer occurs, or the sum of its weights; along the last axis if ``axis`` is -1."""
    array = host(x)
    by_row = counts_by_row(axis) and array.ndim > 1
    if axis is not None and array.ndim > 2:
        text = f"Shape must be at most rank 2 but is rank {array.ndim} [Op:DenseBincount]"
        raise InvalidArgumentError(message(text, received=f"shape {array.shape}", fix="tf.reshape(arr, [-1, arr.shape[-1]])"))
    heavy = None if weights is None else host(weights)
    if heavy is not None and heavy.shape != array.shape:
        text = "`weights` must be the same shape as `arr` or a length-0 `Tensor` [Op:Bincount]"
        raise InvalidArgumentError(
            message(text, received=f"{heavy.shape} and {array.shape}", expected=f"weights of shape {array.shape}")
        )
    rows = np.repeat(np.arange(len(array)), array.shape[1]) if by_row else None
    loads = None if heavy is None else heavy.ravel()
    return counted(array.ravel(), rows, len(array) if by_row else 1, loads, least, most, dtype, binary)


def counts_by_row(axis: Any) -> bool:
    """Whether `bincount` counts in each row, or in everything."""
    axis = axis if axis is None else integer(axis)
    if axis not in (None, 0, -1):
        text = f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported."
        raise ValueError(message(text, fix="axis=-1 counts in each row, axis=0 in the whole input"))
    return axis == -1


def counted(
    numbers: np.ndarray, rows: np.ndarray | None, count: int, loads: np.ndarray | None, least: Any, most: Any, dtype: Any,
    binary: bool,
) -> Tensor:  # fmt: skip
    """The counts of numbers in each of ``count`` rows; ``rows`` has the row of each number, None if there are none."""
    numbers = numbers if numbers.dtype.kind in "iu" else numbers.astype(np.int64)
    if numbers.size and numbers.min() < 0:
        text = "Input arr must be non-negative! [Op:DenseBincount]"
        raise InvalidArgumentError(
            message(text, received=f"{numbers.min()} in arr", fix="count from 0: arr - tf.reduce_min(arr)")
        )
    size = int(numbers.max()) + 1 if numbers.size else 0
    size = max(size, integer(least)) if least is not None else size
    size = min(size, integer(most)) if most is not None else size
    if size < 0:
        text = f"size ({size}) must be non-negative [Op:DenseBincount]"
        raise InvalidArgumentError(message(text, received=f"minlength={least}, maxlength={most}", expected="0 or more"))
    kind = dtypes.numpy_dtype(dtype) if loads is None else loads.dtype
    if kind.kind not in "iuf":
        raise not_allowed("DenseBincount", kind, "int32, int64, float, double")
    out = np.zeros((count, size), kind)
    inside = numbers < size
    where: Any = (0 if rows is None else rows[inside], numbers[inside])
    if binary:
        out[where] = 1
    else:
        np.add.at(out, where, 1 if loads is None else loads[inside])
    return wrap(out[0] if rows is None else out)


def histogram(values: Any, value_range: Any, bins: Any) -> np.ndarray:
    """The bin of each value; those outside the range count to the first or last bin."""
    array, (low, high), number = host(values), host(value_range), integer(bins)
    if not low < high:
        text = "value_range should satisfy value_range[0] < value_range[1]"
        raise InvalidArgumentError(message(text, received=f"[{low}, {high}]", expected="the lower limit first: [0.0, 1.0]"))
    if number <= 0:
        raise InvalidArgumentError(message(f"nbins should be a positive number, but got '{number}'", expected="1 bin or more"))
    scaled = (array - low) / (high - low)
    return np.clip(np.floor(scaled * number), 0, number - 1).astype(np.int64)


def invert_permutation(x: Any) -> Tensor:
    """The permutation that undoes x."""
    array = host(x)
    if array.ndim != 1:
        text = "invert_permutation expects a 1D vector. [Op:InvertPermutation]"
        raise InvalidArgumentError(message(text, received=f"shape {array.shape}", expected="one axis"))
    array = array if array.size or hasattr(x, "dtype") else array.astype(np.int32)
    if array.dtype.kind not in "iu":
        raise not_allowed("InvertPermutation", array.dtype, "int32, int64")
    out = np.full_like(array, -1)
    for i, n in enumerate(array):
        if not 0 <= n < array.size:
            text = f"{n} is not between 0 and {array.size} [Op:InvertPermutation]"
            raise InvalidArgumentError(
                message(text, received=f"{array.tolist()}", expected=f"each of 0 to {array.size - 1} once")
            )
        if out[n] != -1:
            text = f"{n} is duplicated in the input. [Op:InvertPermutation]"
            raise InvalidArgumentError(
                message(text, received=f"{array.tolist()}", expected=f"each of 0 to {array.size - 1} once")
            )
        out[n] = i
    return wrap(out)


def unravel_index(indices: Any, lengths: Any) -> Tensor:
    """Coordinates of flat positions in an array of the given shape."""
    array, shape = host(indices), integers(lengths)
    if array.size and (array.max() >= np.prod(shape, dtype=np.int64) or array.min() < 0):
        raise InvalidArgumentError(
            message(
                "index is out of bound as with dims [Op:UnravelIndex]",
                received=f"indices from {array.min()} to {array.max()} for dims {shape}",
                expected="indices of elements of such a tensor",
            )
        )
    return wrap(np.stack(np.unravel_index(array, shape)).astype(array.dtype))


def nextafter(x: Any, y: Any) -> Tensor:
    """The next number after x in the direction of y."""
    x = convert_to_tensor(x, None if hasattr(x, "dtype") else dtypes.float32)
    if x._array.dtype not in (np.float32, np.float64):
        raise not_allowed("NextAfter", x._array.dtype, "double, float")
    return elementwise.nextafter(x, convert_to_tensor(y, x.dtype))


def increasing(x: Any, strictly: bool) -> Tensor:
    """Whether the elements, in order, never fall (or always rise)."""
    array = host(x).ravel()
    before, after = array[:-1], array[1:]
    return wrap(np.asarray(bool((before < after).all() if strictly else (before <= after).all())))


def truncate_divide(x: Any, y: Any) -> Tensor:
    """x / y rounded toward zero."""
    x = convert_to_tensor(x)
    y = convert_to_tensor(y, None if isinstance(y, Tensor) else x.dtype)
    if x._array.dtype.kind in "iu":
        size = elementwise.floor_divide(elementwise.abs(x), elementwise.abs(y))
        return elementwise.multiply(size, elementwise.multiply(elementwise.sign(x), elementwise.sign(y)))
    quotient = elementwise.stop_gradient(elementwise.divide(x, y))
    down = elementwise.less(quotient, elementwise.zeros_like(quotient))
    return elementwise.where(down, elementwise.ceil(quotient), elementwise.floor(quotient))
