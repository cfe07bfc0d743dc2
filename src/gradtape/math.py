"""`tf.math`: elementwise functions, reductions, segments, counts, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, guarded, nondiff, reduce, segments, statistics
from gradtape.ops.arguments import (
    NUMERIC,
    REAL,
    axes,
    boolean,
    check_axes,
    floating,
    not_allowed,
    numeric,
    position,
    real_floating,
)
from gradtape.ops.elementwise import (
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atanh,
    conj,
    cos,
    cosh,
    digamma,
    equal,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    greater,
    greater_equal,
    less,
    less_equal,
    lgamma,
    log,
    log1p,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    reciprocal,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
)
from gradtape.ops.guarded import multiply_no_nan as _multiply_no_nan
from gradtape.ops.guarded import xdivy as _xdivy
from gradtape.ops.guarded import xlog1py as _xlog1py
from gradtape.ops.guarded import xlogy as _xlogy
from gradtape.scope import missing
from gradtape.values import dtypes
from gradtape.values.composite import take_composites
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "approx_max_k", "approx_min_k", "argmax", "argmin",
    "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "bincount",
    "ceil", "confusion_matrix", "conj", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp",
    "digamma", "divide", "divide_no_nan", "equal", "erf", "erfc", "erfcinv", "erfinv", "exp", "expm1", "floor", "floordiv",
    "floormod", "greater", "greater_equal", "igamma", "igammac", "imag", "in_top_k", "invert_permutation", "is_finite",
    "is_inf", "is_nan", "is_non_decreasing", "is_strictly_increasing", "l2_normalize", "lbeta", "less", "less_equal",
    "lgamma", "log", "log1p", "log_sigmoid", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "mod", "multiply", "multiply_no_nan", "ndtri", "negative", "nextafter", "not_equal", "polygamma", "polyval",
    "pow", "real", "reciprocal", "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum",
    "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max", "segment_mean", "segment_min", "segment_prod",
    "segment_sum", "sigmoid", "sign", "sin", "sinh", "sobol_sample", "softplus", "special", "sqrt", "square",
    "squared_difference", "subtract", "tan", "tanh", "top_k", "truediv", "unsorted_segment_max", "unsorted_segment_mean",
    "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum", "xdivy", "xlog1py",
    "xlogy", "zero_fraction", "zeta",
]  # fmt: skip

_INTEGRALS = (
    "bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc erfcinv igamma igammac ndtri polygamma sobol_sample special zeta".split()
)

if TYPE_CHECKING:
    from gradtape.math_integrals import (  # noqa: I001
        bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, betainc, erfcinv, igamma, igammac, ndtri, polygamma, sobol_sample,
        special, zeta,
    )  # fmt: skip


_FROM_NN = ("log_softmax", "softmax", "softsign")  # the same functions as in tf.nn


def __getattr__(name: str) -> Any:
    """Functions that few programs need load when one of them is touched."""
    if name in _INTEGRALS:
        from gradtape import math_integrals

        return getattr(math_integrals, name)
    if name in _FROM_NN:
        from gradtape import nn

        return getattr(nn, name)
    return missing(__name__, __all__)(name)


# Elementwise: those with other names than the ops, and those that take fewer dtypes

abs = elementwise.abs
divide = truediv = elementwise.true_divide
floordiv = elementwise.floor_divide
floormod = mod = elementwise.remainder
pow = elementwise.power


def _of_floats(function: Callable, label: str) -> Callable:
    def call(x: Any, name: str | None = None) -> Tensor:
        x = convert_to_tensor(x)
        real_floating(label, x)
        return function(x)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return call


ceil = _of_floats(elementwise.ceil, "Ceil")
floor = _of_floats(elementwise.floor, "Floor")
rint = _of_floats(elementwise.rint, "Rint")
is_finite = _of_floats(elementwise.isfinite, "IsFinite")
is_inf = _of_floats(elementwise.isinf, "IsInf")
is_nan = _of_floats(elementwise.isnan, "IsNan")


def round(x: Any, name: str | None = None) -> Tensor:
    """The nearest integer, halves to even; integers stay as they are."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_integer else elementwise.rint(x)


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point (x, y)."""
    return elementwise.atan2(y, x)


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(1 + eˣ), without overflow."""
    return elementwise.softplus(features)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + e⁻ˣ)), without overflow."""
    return elementwise.negative(elementwise.softplus(elementwise.negative(x)))


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """|x - y|²"""
    difference = elementwise.subtract(x, y)
    if difference._array.dtype.kind == "c":
        return elementwise.multiply(difference, elementwise.conj(difference))
    return elementwise.square(difference)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """log of the product of Γ(x) over the last axis, divided by Γ of the sum."""
    x, axis = _checked("Sum", x, -1)
    return elementwise.subtract(reduce.sum(lgamma(x), axis=axis), lgamma(reduce.sum(x, axis=axis)))


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """The polynomial with the given coefficients, highest power first, at x."""
    if not isinstance(coeffs, list):
        text = f"Argument coeffs must be list type. Received type {type(coeffs)}."
        raise ValueError(message(text, fix="a list, the coefficient of the highest power first: [1.0, 0.0, 2.0]"))
    x = convert_to_tensor(x)
    total = elementwise.zeros_like(x)
    for c in coeffs:
        total = elementwise.add(elementwise.multiply(total, x), c)
    return total


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0; integers divide as float64."""
    x = convert_to_tensor(x)
    y = convert_to_tensor(y, None if hasattr(y, "dtype") else x.dtype)
    if x.dtype.is_integer and y.dtype is x.dtype:
        x, y = elementwise.cast(x, "float64"), elementwise.cast(y, "float64")
    return guarded.divide_no_nan(x, y)


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x · y, and 0 where y is 0, even if x is infinite or nan."""
    return _multiply_no_nan(x, y)


def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    x = convert_to_tensor(x)
    floating("Reciprocal", x)
    return guarded.divide_no_nan(elementwise.ones_like(x), x)


def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x · log y, and 0 where x is 0."""
    return _xlogy(x, y)


def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x · log(1 + y), and 0 where x is 0."""
    return _xlog1py(x, y)


def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where x is 0."""
    return _xdivy(x, y)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next number after x1 in the direction of x2."""
    return nondiff.nextafter(x1, x2)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor or IndexedSlices."""
    factor = convert_to_tensor(scalar, None if hasattr(scalar, "dtype") else getattr(x, "dtype", None))
    if factor._array.ndim:
        text = f"The input scalar must be a 0-D value. Received shape {factor.shape}."
        raise ValueError(message(text, fix="scalar * x multiplies by any tensor that broadcasts"))
    if isinstance(x, IndexedSlices):
        return IndexedSlices(elementwise.multiply(factor, x.values), x.indices, x.dense_shape)
    return elementwise.multiply(factor, x)


# Logic: truth values only


def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x and y, elementwise."""
    return elementwise.logical_and(boolean(_AND, x), boolean(_AND, y, 1))


def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x or y, elementwise."""
    return elementwise.logical_or(boolean(_OR, x), boolean(_OR, y, 1))


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """Either x or y but not both, elementwise."""
    return elementwise.logical_xor(boolean(_XOR, x), boolean(_XOR, y, 1))


def logical_not(x: Any, name: str | None = None) -> Tensor:
    """not x, elementwise."""
    return elementwise.logical_not(boolean(_NOT, x))


_AND, _OR, _XOR, _NOT = (
    getattr(elementwise, name).op for name in ("logical_and", "logical_or", "logical_xor", "logical_not")
)

# Complex parts: real numbers have an imaginary part of 0


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part."""
    x = convert_to_tensor(input)
    return elementwise.real(x) if x.dtype.is_complex else x


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part."""
    x = convert_to_tensor(input)
    return elementwise.imag(x) if x.dtype.is_complex else elementwise.zeros_like(x)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of a complex number; of a real one 0 or π."""
    x = convert_to_tensor(input)
    if x.dtype.is_complex:
        return elementwise.angle(x)
    zero = elementwise.zeros_like(x)
    pi = convert_to_tensor(3.141592653589793, x.dtype)
    return elementwise.where(elementwise.less(x, zero), pi, zero)


# Reductions


def _reduction(function: Callable, label: str, name: str, doc: str, refused: str = "bO") -> Callable:
    def call(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        if axis is not None and type(axis) is not int:
            axis = axes(axis)
        try:
            out = function(input_tensor, axis=axis, keepdims=keepdims or False)
        except InvalidArgumentError:
            check_axes(label, convert_to_tensor(input_tensor)._array.ndim, axis)
            raise
        if out._array.dtype.kind in refused:
            raise not_allowed(label, out._array.dtype, REAL if "c" in refused else NUMERIC)
        return out

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


reduce_sum = _reduction(reduce.sum, "Sum", "reduce_sum", "The sum over axes (None: all).")
reduce_mean = _reduction(reduce.mean, "Mean", "reduce_mean", "The mean over axes; integers divide and floor.")
reduce_prod = _reduction(reduce.prod, "Prod", "reduce_prod", "The product over axes.")
reduce_max = _reduction(reduce.max, "Max", "reduce_max", "The largest element; ties share the gradient evenly.", "bcO")
reduce_min = _reduction(reduce.min, "Min", "reduce_min", "The smallest element; ties share the gradient evenly.", "bcO")


def _checked(label: str, input_tensor: Any, axis: Any) -> tuple[Tensor, Any]:
    x, axis = convert_to_tensor(input_tensor), axes(axis)
    check_axes(label, x._array.ndim, axis)
    return x, axis


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """log Σ eˣ over axes, without overflow."""
    x, axis = _checked("Max", input_tensor, axis)
    floating("IsFinite", x)
    return reduce.logsumexp(x, axis=axis, keepdims=keepdims or False)


def reduce_any(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Logical or over axes."""
    x, axis = _checked("Any", boolean(reduce.any.op, input_tensor), axis)
    return reduce.any(x, axis=axis, keepdims=keepdims or False)


def reduce_all(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Logical and over axes."""
    x, axis = _checked("All", boolean(reduce.all.op, input_tensor), axis)
    return reduce.all(x, axis=axis, keepdims=keepdims or False)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The mean of |x - mean(x)|² over axes."""
    x, axis = _checked("Mean", input_tensor, axis)
    return statistics.variance(x, axis, keepdims or False)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """√variance over axes; its gradient is nan where all elements are equal."""
    x, axis = _checked("Mean", input_tensor, axis)
    return statistics.std(x, axis, keepdims or False)


def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """√ Σ |x|² over axes."""
    x, axis = _checked("EuclideanNorm", input_tensor, axis)
    numeric("EuclideanNorm", x)
    return statistics.euclidean_norm(x, axis, keepdims or False)


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / √max(Σ |x|², epsilon), the sum over axes."""
    x, axis = _checked("Sum", x, dim if axis is None else axis)
    return statistics.l2_normalize(x, axis, epsilon)


def _extreme_index(function: Callable, label: str, input: Any, axis: Any, output_type: Any) -> Tensor:
    x = convert_to_tensor(input)
    rank = x._array.ndim
    axis = position(
        0 if axis is None else axis, rank, f"Expected dimension in the range [{{low}}, {{high}}), but got {{axis}} [Op:{label}]"
    )
    if x._array.dtype.kind in "cO":
        raise not_allowed(label, x._array.dtype, f"{REAL}, bool")
    if not x._array.shape[axis]:
        text = f"Reduction axis {axis} is empty in shape {dims(x._array.shape)} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"axis {axis} of shape {x._array.shape}", expected="at least one element along the axis")
        )
    out = function(x, axis=axis)
    return out if output_type is dtypes.int64 else elementwise.cast(out, output_type)


def argmax(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The index of the first largest element along an axis (None: 0)."""
    return _extreme_index(reduce.argmax, "ArgMax", input, axis, output_type)


def argmin(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The index of the first smallest element along an axis (None: 0)."""
    return _extreme_index(reduce.argmin, "ArgMin", input, axis, output_type)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running sum along an axis."""
    x = convert_to_tensor(x)
    numeric("Cumsum", x)
    return reduce.cumsum(x, axis=statistics.scan_axis(axis, x._array.ndim, "Cumsum"), exclusive=exclusive, reverse=reverse)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running product along an axis."""
    x = convert_to_tensor(x)
    numeric("Cumprod", x)
    return reduce.cumprod(x, axis=statistics.scan_axis(axis, x._array.ndim, "Cumprod"), exclusive=exclusive, reverse=reverse)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """log of the running sum of eˣ along an axis, without overflow."""
    x = convert_to_tensor(x)
    axis = statistics.scan_axis(axis, x._array.ndim, "CumulativeLogsumexp")
    return statistics.cumulative_logsumexp(x, axis, exclusive, reverse)


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape; IndexedSlices are made dense."""
    parts = [convert_to_tensor(x) for x in inputs] if hasattr(inputs, "__iter__") else []
    if not parts:
        text = "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
        raise ValueError(message(text, fix="tf.add_n([x, y])"))
    return elementwise.identity(parts[0]) if len(parts) == 1 else statistics.add_n(*parts)


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape."""
    parts = [convert_to_tensor(x) for x in inputs]
    for x in parts[1:]:
        if x._array.shape != parts[0]._array.shape:
            text = f"Shapes {parts[0].shape} and {x.shape} are not compatible"
            raise ValueError(message(text, received=f"shapes {[tuple(x.shape) for x in parts]}", expected="one shape for all"))
    return add_n(parts)


def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dtypes.int32, name: str | None = None
) -> statistics.TopKV2:
    """The k largest elements of every row, largest first, and their indices."""
    return statistics.top_k(convert_to_tensor(input), k, index_type)


def approx_max_k(
    operand: Any, k: Any, reduction_dimension: Any = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True, name: str | None = None,
) -> statistics.TopKV2:  # fmt: skip
    """The k largest elements along an axis and their indices: here exact, so the recall is 1."""
    return statistics.extremes(convert_to_tensor(operand), k, reduction_dimension, largest=True)


def approx_min_k(
    operand: Any, k: Any, reduction_dimension: Any = -1, recall_target: float = 0.95, reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True, name: str | None = None,
) -> statistics.TopKV2:  # fmt: skip
    """The k smallest elements along an axis and their indices: here exact, so the recall is 1."""
    return statistics.extremes(convert_to_tensor(operand), k, reduction_dimension, largest=False)


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether the target is among the k largest predictions of its row."""
    return statistics.in_top_k(convert_to_tensor(targets), convert_to_tensor(predictions), k)


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """How many elements are not zero."""
    x, axis = _checked("Sum", input, axis)
    return statistics.count_nonzero(x, axis, keepdims or False, dtype)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of zeros, as float32."""
    return statistics.zero_fraction(convert_to_tensor(value))


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None, weights: Any = None, dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """How often each label (row) was predicted as each class (column)."""
    return statistics.confusion_matrix(labels, predictions, num_classes, weights, dtype)


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32,
    name: str | None = None, axis: Any = None, binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """How often each non-negative integer occurs."""
    return nondiff.bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes x."""
    return nondiff.invert_permutation(x)


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether the elements, in order, never fall."""
    return nondiff.increasing(x, False)


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether the elements, in order, always rise."""
    return nondiff.increasing(x, True)


# Segments


def _segment(how: str) -> Callable:
    def call(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        return segments.SORTED[how](data, segment_ids)

    call.__name__ = call.__qualname__ = f"segment_{how}"
    call.__doc__ = f"The {how} over the rows of each segment; ids never fall."
    return call


def _unsorted_segment(how: str) -> Callable:
    def call(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        return segments.UNSORTED[how](data, segment_ids, num_segments)

    call.__name__ = call.__qualname__ = f"unsorted_segment_{how}"
    call.__doc__ = f"The {how} over the rows of each segment, ids in any order; negative ids are left out."
    return call


segment_max, segment_mean, segment_min, segment_prod, segment_sum = map(_segment, ("max", "mean", "min", "prod", "sum"))
unsorted_segment_max, unsorted_segment_mean, unsorted_segment_min = map(_unsorted_segment, ("max", "mean", "min"))
unsorted_segment_prod, unsorted_segment_sqrt_n, unsorted_segment_sum = map(_unsorted_segment, ("prod", "sqrt_n", "sum"))

take_composites(
    globals(),
    elementwise="angle ceil divide divide_no_nan floor imag is_finite is_inf is_nan logical_and logical_not logical_or "
    "logical_xor nextafter real reciprocal_no_nan rint round squared_difference truediv",
    others="add_n bincount cumsum reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod "
    "reduce_std reduce_sum reduce_variance",
)
