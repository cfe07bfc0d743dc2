"""Functions composed of reductions: variance, norms, running log-sum-exp, the largest elements, counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import elementwise, indexing, reduce, shape
from gradtape.ops.arguments import REAL, floating, integer, not_allowed, numeric, position
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

# Moments


def variance(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of |x - mean(x)|² over axes; real for complex x."""
    numeric("Mean", x)
    if x._array.dtype.kind in "iu":
        text = f"Input must be either real or complex. Received integer type {x.dtype}."
        raise TypeError(message(text, fix="tf.cast(x, tf.float32)"))
    deviation = elementwise.subtract(x, reduce.mean(x, axis=axis, keepdims=True))
    return reduce.mean(squared(deviation), axis=axis, keepdims=keepdims)


def squared(x: Tensor) -> Tensor:
    """|x|², real for complex x; not by abs, whose second derivative at 0 is not that of a square."""
    if x._array.dtype.kind == "c":
        return elementwise.real(elementwise.multiply(x, elementwise.conj(x)))
    return elementwise.square(x)


def std(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """√variance; its gradient is nan where all elements are equal."""
    return elementwise.sqrt(variance(x, axis, keepdims))


def euclidean_norm(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """√ Σ |x|² over axes; integers give the integer part. Its gradient is nan at 0."""
    kind = x._array.dtype.kind
    if kind in "iu":
        root = elementwise.sqrt(euclidean_square(elementwise.cast(x, "float64"), axis, keepdims))
        return elementwise.cast(root, x.dtype)
    return elementwise.sqrt(euclidean_square(x, axis, keepdims))


def euclidean_square(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Σ |x|² over axes, in the dtype of x."""
    squares = elementwise.multiply(x, elementwise.conj(x)) if x._array.dtype.kind == "c" else elementwise.square(x)
    return reduce.sum(squares, axis=axis, keepdims=keepdims)


def l2_normalize(x: Tensor, axis: Any = None, epsilon: float = 1e-12) -> Tensor:
    """x / √max(Σ |x|², epsilon), the sum over axes."""
    if x._array.dtype.kind == "c":
        total = elementwise.real(euclidean_square(x, axis, True))
        inverse = elementwise.rsqrt(elementwise.maximum(total, epsilon))
        return elementwise.multiply(x, elementwise.cast(inverse, x.dtype))
    floating("Rsqrt", x)
    return elementwise.multiply(x, elementwise.rsqrt(elementwise.maximum(euclidean_square(x, axis, True), epsilon)))


# Sums


@op(label="AddN")
def add_n(xp, *xs):
    """The sum of arrays of one shape."""
    total = xs[0]
    for i, x in enumerate(xs[1:], 1):
        if xp.shape(x) != xp.shape(total):
            text = (
                "Inputs to operation AddN of type AddN must have the same size and shape.  "
                f"Input 0: {dims(xp.shape(total))} != input {i}: {dims(xp.shape(x))} [Op:AddN]"
            )
            raise InvalidArgumentError(message(text, expected="one shape for all", fix="x + y broadcasts"))
        total = xp.add(total, x)
    return total


add_n.vjp(lambda xp, g, *, xs_shape: [g] * len(xs_shape))


def cumulative_logsumexp(x: Tensor, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """log of the running sum of eˣ along an axis, without overflow, by doubling steps: log₂ n passes."""
    floating("CumulativeLogsumexp", x)
    if reverse:
        x = shape.flip(x, axis=(axis,))
    step, length = 1, x._array.shape[axis]
    if exclusive and length:
        x = _shifted(x, axis, 1)
    while step < length:
        x = _logaddexp(x, _shifted(x, axis, step))
        step *= 2
    return shape.flip(x, axis=(axis,)) if reverse else x


def _shifted(x: Tensor, axis: int, step: int) -> Tensor:
    """x moved towards higher indices, -inf entering."""
    before: tuple = (slice(None),) * axis
    widths = tuple((step if i == axis else 0, 0) for i in range(x._array.ndim))
    length = x._array.shape[axis]
    return shape.pad(indexing.getitem(x, index=(*before, slice(0, max(length - step, 0)))), widths=widths, value=-np.inf)


def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """log(eˣ + eʸ); both may be -inf, and no nan comes from it, in the gradient either."""
    top = elementwise.maximum(x, y)
    zero = elementwise.zeros_like(top)
    top = elementwise.where(elementwise.isfinite(top), top, zero)
    total = elementwise.add(elementwise.exp(elementwise.subtract(x, top)), elementwise.exp(elementwise.subtract(y, top)))
    none = elementwise.equal(total, zero)
    safe = elementwise.where(none, elementwise.ones_like(total), total)
    return elementwise.where(none, -np.inf, elementwise.add(elementwise.log(safe), top))


# Order


def argsort_descending(x: Tensor, axis: int) -> Tensor:
    """The indices that sort x from the largest down; equal elements keep their order."""
    last = x._array.shape[axis] - 1
    order = indexing.argsort(shape.flip(x, axis=(axis,)), axis=axis)
    return elementwise.subtract(last, shape.flip(order, axis=(axis,)))


class TopKV2(NamedTuple):
    """The largest elements along the last axis, and where they are."""

    values: Tensor
    indices: Tensor


def top_k(x: Tensor, k: Any, index_type: Any) -> TopKV2:
    """The k largest elements of every row, largest first; of equal elements the first ones."""
    if not x._array.ndim:
        text = "input must be >= 1-D, got shape [] [Op:TopKV2]"
        raise InvalidArgumentError(message(text, received="shape ()", expected="at least one axis"))
    return extremes(x, k, -1, largest=True, index_type=index_type)


def extremes(x: Tensor, k: Any, axis: Any, largest: bool, index_type: Any = "int32") -> TopKV2:
    """The k largest (smallest) elements along an axis, in order; of equal elements the first ones."""
    if x._array.dtype.kind in "bcO":
        raise not_allowed("TopKV2", x._array.dtype, REAL)
    if np.ndim(getattr(k, "_array", k)):
        text = f"k must be scalar, got shape {dims(np.shape(getattr(k, '_array', k)))} [Op:TopKV2]"
        raise InvalidArgumentError(message(text, expected="one number: how many to return"))
    k, axis = integer(k), position(axis, x._array.ndim, "reduction_dimension {axis} is not in [{low}, {high}) [Op:ApproxTopK]")
    if k < 0:
        raise InvalidArgumentError(message(f"Need k >= 0, got {k} [Op:TopKV2]", expected="0 or more"))
    columns = x._array.shape[axis]
    if k > columns:
        text = f"input must have at least k columns. Had {columns}, needed {k} [Op:TopKV2]"
        raise InvalidArgumentError(
            message(text, received=f"k={k} for {columns} columns", fix=f"k={columns}, or tf.sort(x) for all")
        )
    order = argsort_descending(x, axis) if largest else indexing.argsort(x, axis=axis)
    order = indexing.getitem(order, index=(slice(None),) * axis + (slice(0, k),))
    return TopKV2(indexing.take_along_axis(x, order, axis=axis), elementwise.cast(order, index_type))


def in_top_k(targets: Tensor, predictions: Tensor, k: Any) -> Tensor:
    """Whether fewer than k predictions of a row exceed the target's; False where one of them is not finite."""
    if predictions._array.ndim != 2 or targets._array.ndim != 1:
        name, wanted = ("predictions", 2) if predictions._array.ndim != 2 else ("targets", 1)
        received = f"targets {targets._array.shape}, predictions {predictions._array.shape}"
        text = f"{name} must be {wanted}-dimensional [Op:InTopKV2]"
        raise InvalidArgumentError(
            message(text, received=received, expected="targets (batch,) and predictions (batch, classes)")
        )
    if targets._array.dtype.kind not in "iu":
        raise not_allowed("InTopKV2", targets._array.dtype, "int32, int64")
    rows, classes = predictions._array.shape
    if targets._array.shape != (rows,):
        raise InvalidArgumentError(
            message(
                f"First dimension of predictions {rows} must match length of targets {targets._array.shape[0]} [Op:InTopKV2]",
                received=f"predictions {predictions._array.shape}, targets {targets._array.shape}",
                expected=f"{rows} targets",
            )
        )
    inside = elementwise.logical_and(elementwise.greater_equal(targets, 0), elementwise.less(targets, classes))
    safe = elementwise.where(inside, targets, elementwise.zeros_like(targets))
    chosen = indexing.take_along_axis(predictions, shape.expand_dims(safe, axis=1), axis=1)
    above = reduce.sum(elementwise.cast(elementwise.greater(predictions, chosen), "int32"), axis=1)
    finite = reduce.all(elementwise.isfinite(predictions), axis=1)
    return elementwise.logical_and(elementwise.logical_and(inside, finite), elementwise.less(above, integer(k)))


# Counts


def count_nonzero(x: Tensor, axis: Any = None, keepdims: bool = False, dtype: Any = "int64") -> Tensor:
    """How many elements are not zero (strings: not empty)."""
    if x._array.dtype.kind == "O":
        there = convert_to_tensor(x._array != b"")
    else:
        there = elementwise.not_equal(x, elementwise.zeros_like(x))
    return reduce.sum(elementwise.cast(there, dtype), axis=axis, keepdims=keepdims)


def zero_fraction(x: Tensor) -> Tensor:
    """The share of zeros, as float32; nan of nothing."""
    return reduce.mean(elementwise.cast(elementwise.equal(x, elementwise.zeros_like(x)), "float32"))


def confusion_matrix(labels: Any, predictions: Any, num_classes: Any, weights: Any, dtype: Any) -> Tensor:
    """How often each label (row) was predicted as each class (column)."""
    pairs = []
    for name, value in (("labels", labels), ("predictions", predictions)):
        array = np.asarray(convert_to_tensor(value)._host()).astype(np.int64)
        if array.size and array.min() < 0:
            text = f"`{name}` contains negative values.  "
            raise InvalidArgumentError(message(text, received=f"{array.min()}", expected="classes counted from 0"))
        pairs.append(array.ravel() if array.ndim != 1 and array.size == max(array.shape, default=1) else array)
    size = integer(num_classes) if num_classes is not None else max([int(a.max()) + 1 for a in pairs if a.size], default=0)
    for name, array in zip(("labels", "predictions"), pairs):
        if array.size and array.max() >= size:
            raise InvalidArgumentError(
                message(f"`{name}` out of bound", received=f"{array.max()}", expected=f"less than num_classes = {size}")
            )
    if pairs[0].shape != pairs[1].shape:
        shapes = f"values[0].shape = {dims(pairs[0].shape)} != values[1].shape = {dims(pairs[1].shape)}"
        text = f"Shapes of all inputs must match: {shapes} [Op:Pack]"
        raise InvalidArgumentError(
            message(text, received=f"labels {pairs[0].shape}, predictions {pairs[1].shape}", expected="one shape for both")
        )
    values = elementwise.ones_like(convert_to_tensor(pairs[0])) if weights is None else convert_to_tensor(weights)
    if values._array.shape != pairs[0].shape:
        raise ValueError(
            message(
                f"Shapes {pairs[0].shape} and {values._array.shape} are incompatible",
                received=f"weights {values._array.shape} for labels {pairs[0].shape}",
                expected=f"weights of shape {pairs[0].shape}",
            )
        )
    where = convert_to_tensor(np.stack(pairs, 1))
    return indexing.scatter_nd(elementwise.cast(values, dtype), where, shape=(size, size))


def scan_axis(axis: Any, ndim: int, label: str) -> int:
    """The axis of a cumulative op."""
    if np.ndim(getattr(axis, "_array", axis)):
        text = f"ScanOp: axis must be a scalar, not {dims(np.shape(getattr(axis, '_array', axis)))} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=shown(axis), expected="one integer"))
    return position(axis, ndim, f"ScanOp: Expected scan axis in the range [{{low}}, {{high}}), but got {{axis}} [Op:{label}]")
