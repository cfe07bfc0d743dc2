"""Keras's reductions: sums, products, extremes, truth, counts, running totals, and those that skip NaN.

Sums and products of small integers are 32 bits wide, means are floating, places are int32: JAX's rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import floating, in_dtype, numeric, tensor, together
from gradtape.ops import elementwise, reduce, shape, statistics
from gradtape.ops import numpy_functions as functions
from gradtape.ops.arguments import integers
from gradtape.ops.numpy_functions import all_axes, one_axis
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor

_WIDER = {
    np.dtype(small): np.dtype(wide)
    for small, wide in (
        ("bool", "int32"), ("int8", "int32"), ("int16", "int32"), ("uint8", "uint32"), ("uint16", "uint32"),
    )
}  # fmt: skip


def widened(x: Any) -> Tensor:
    """x in a dtype that holds sums of its elements."""
    x = tensor(x)
    wide = _WIDER.get(x._array.dtype)
    return x if wide is None else elementwise.astype(x, dtype=wide)


def axes_of(axis: Any, x: Tensor) -> Any:
    """A reduction axis as our ops take it, inside the rank of x."""
    if axis is None:
        return None
    if type(axis) is int:
        return one_axis(axis, x._array.ndim)
    return all_axes(integers(axis), x._array.ndim)


# Sums and products


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes."""
    x = widened(x)
    return reduce.sum(x, axis=axes_of(axis, x), keepdims=keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The product over axes."""
    x = widened(x) if dtype is None else in_dtype(x, dtype)
    return reduce.prod(x, axis=axes_of(axis, x), keepdims=keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes."""
    x = floating(x)
    return reduce.mean(x, axis=axes_of(axis, x), keepdims=keepdims)


def average(x: Any, axis: Any = None, weights: Any = None) -> Tensor:
    """The mean over axes, each element with its weight; a vector of weights lies along the axis."""
    if weights is None:
        return mean(x, axis)
    x, weights = together(x, weights, also=(float,))
    along = weights._array.ndim == 1 and isinstance(axis, int)
    if weights._array.shape != x._array.shape and not (
        along and weights._array.shape == (x._array.shape[one_axis(axis, x._array.ndim)],)
    ):
        raise ValueError(
            message(
                "The weights of an average must have the shape of x, or be a vector along the axis.",
                received=f"weights of shape {weights._array.shape} for shape {x._array.shape} and axis={axis}",
            )
        )
    return functions.average(x, axis, weights)


def _running(op: Callable) -> Callable:
    def call(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        x = numeric(x) if dtype is None else in_dtype(x, dtype)
        if axis is None:
            x, axis = shape.reshape(x, shape=(-1,)), 0
        return op(x, axis=one_axis(axis, x._array.ndim))

    call.__name__, call.__doc__ = op.__name__, f"{op.__doc__[:-1]}, or over all elements."  # type: ignore[index]
    return call


cumsum = _running(reduce.cumsum)
cumprod = _running(reduce.cumprod)


# Extremes and their places


def _extreme(numbers: tuple[Callable, Callable], truths: tuple[Callable, Callable]) -> Callable:
    """The extreme over axes: of numbers or truths, by a reduction and the function of two that it consists of."""

    def call(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
        x = tensor(x)
        over, combine = truths if x._array.dtype.kind == "b" else numbers
        axes = axes_of(axis, x)
        if initial is None:
            _check_not_empty(x._array.shape, axes, call.__name__)
        out = over(x, axis=axes, keepdims=keepdims)
        return out if initial is None else combine(out, in_dtype(initial, x.dtype.name))

    call.__name__, call.__doc__ = numbers[0].__name__, numbers[0].__doc__
    return call


def _check_not_empty(lengths: tuple[int, ...], axes: Any, name: str) -> None:
    if 0 not in lengths:
        return
    over = lengths if axes is None else [lengths[axis] for axis in (axes if isinstance(axes, tuple) else (axes,))]
    if 0 in over:
        raise ValueError(
            message(
                f"zero-size array to reduction operation {name}imum which has no identity",
                received=f"shape {lengths} and axis={axes}",
                expected="at least one element along each axis that is reduced",
                fix=f"keras.ops.{name}(x, initial=…), the answer where there is none",
            )
        )


max = _extreme((reduce.max, elementwise.maximum), (reduce.any, elementwise.logical_or))
min = _extreme((reduce.min, elementwise.minimum), (reduce.all, elementwise.logical_and))


def amax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes."""
    return max(x, axis, keepdims)


def amin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes."""
    return min(x, axis, keepdims)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest less the smallest element over axes."""
    x = tensor(x)
    return elementwise.subtract(max(x, axis, keepdims), min(x, axis, keepdims))


def _place(op: Callable) -> Callable:
    def call(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
        x = tensor(x)
        if axis is None:
            kept = (1,) * x._array.ndim if keepdims else ()
            return shape.reshape(elementwise.cast(op(shape.reshape(x, shape=(-1,)), axis=0), "int32"), shape=kept)
        return elementwise.cast(op(x, axis=one_axis(axis, x._array.ndim), keepdims=keepdims), "int32")

    call.__name__, call.__doc__ = op.__name__, op.__doc__
    return call


argmax = _place(reduce.argmax)
argmin = _place(reduce.argmin)


# Truth and counts


def _truth(op: Callable) -> Callable:
    def call(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        x = in_dtype(x, "bool")
        return op(x, axis=axes_of(axis, x), keepdims=keepdims)

    call.__name__, call.__doc__ = op.__name__, op.__doc__
    return call


any = _truth(reduce.any)
all = _truth(reduce.all)


def count_nonzero(x: Any, axis: Any = None) -> Tensor:
    """How many elements are not zero."""
    x = tensor(x)
    return statistics.count_nonzero(x, axes_of(axis, x), dtype="int32")


# Reductions that skip NaN


def with_gaps(x: Any) -> tuple[Tensor, Tensor | None]:
    """x, and where it is NaN (None: nowhere, it is not floating)."""
    x = tensor(x)
    return x, elementwise.isnan(x) if x._array.dtype in dtypes.TRAINABLE else None


def filled(x: Tensor, gaps: Tensor, value: Any) -> Tensor:
    """x with a number in its gaps."""
    return elementwise.where(gaps, in_dtype(value, x.dtype.name), x)


def _skipping(function: Callable, neutral: float) -> Callable:
    """The reduction with NaN replaced by what changes nothing."""

    def call(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        x, gaps = with_gaps(x)
        return function(x if gaps is None else filled(x, gaps, neutral), axis=axis, keepdims=keepdims)

    return _without_nan(call, function)


def _skipping_totals(function: Callable, neutral: float) -> Callable:
    def call(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        x, gaps = with_gaps(x)
        return function(x if gaps is None else filled(x, gaps, neutral), axis=axis, dtype=dtype)

    return _without_nan(call, function)


def _skipping_extremes(function: Callable, neutral: float, of_nothing: float) -> Callable:
    """As `_skipping`; where every element is NaN, the answer is ``of_nothing``."""

    def call(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        x, gaps = with_gaps(x)
        if gaps is None:
            return function(x, axis=axis, keepdims=keepdims)
        out = function(filled(x, gaps, neutral), axis=axis, keepdims=keepdims)
        return filled(out, all(gaps, axis=axis, keepdims=keepdims), of_nothing)

    return _without_nan(call, function)


def _without_nan(call: Callable, function: Callable) -> Callable:
    call.__name__ = f"nan{function.__name__}"
    call.__doc__ = f"{function.__doc__[:-1]}; NaN is left out."  # type: ignore[index]
    return call


nansum = _skipping(sum, 0.0)
nanprod = _skipping(prod, 1.0)
nancumsum = _skipping_totals(cumsum, 0.0)
nancumprod = _skipping_totals(cumprod, 1.0)
nanmax = _skipping_extremes(max, -np.inf, np.nan)
nanmin = _skipping_extremes(min, np.inf, np.nan)
nanargmax = _skipping_extremes(argmax, -np.inf, -1)
nanargmin = _skipping_extremes(argmin, np.inf, -1)


def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes; NaN is left out."""
    x, gaps = with_gaps(x)
    if gaps is None:
        return mean(x, axis, keepdims)
    wide = in_dtype(x, "float32") if x._array.dtype.itemsize < 4 else x  # float16 cannot count beyond 2048
    number = sum(elementwise.cast(elementwise.logical_not(gaps), wide.dtype), axis, keepdims)
    total = sum(filled(wide, gaps, 0.0), axis, keepdims)
    return in_dtype(elementwise.divide(total, number), x.dtype.name)
