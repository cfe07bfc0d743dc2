"""Keras's statistics: spread, quantiles, histograms, correlation, differences, areas; and `vectorize`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.numpy_index import searchsorted
from gradtape.keras_backend.numpy_promotion import floating, in_dtype, result_type, tensor, together
from gradtape.keras_backend.numpy_reduce import axes_of, filled, with_gaps
from gradtape.ops import contract, conv, elementwise, grids, indexing, reduce, shape, statistics
from gradtape.ops import numpy_functions as functions
from gradtape.ops.arguments import integers
from gradtape.ops.numpy_functions import all_axes, one_axis
from gradtape.ops.vectorized import vectorized_map
from gradtape.values.tensor import Tensor


def _wide(x: Tensor) -> Tensor:
    """x in a dtype in which squares of its elements can be summed: float16 ends at 65504."""
    return in_dtype(x, "float32") if x._array.dtype.itemsize < 4 else x


def _narrow(out: Tensor, x: Tensor) -> Tensor:
    """A result in the dtype of the argument; in the real one of a complex argument as it is."""
    return in_dtype(out, x.dtype.name) if x._array.dtype.itemsize < 4 else out


# Spread


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean squared distance from the mean, over axes."""
    x = floating(x)
    return _narrow(statistics.variance(_wide(x), axes_of(axis, x), keepdims), x)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The root of the variance, over axes."""
    x = floating(x)
    return _narrow(statistics.std(_wide(x), axes_of(axis, x), keepdims), x)


def nanvar(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean squared distance from the mean, over axes; NaN is left out."""
    x, gaps = with_gaps(floating(x))
    return _narrow(_variance_without(_wide(x), gaps, axis, keepdims), x)


def nanstd(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The root of the variance, over axes; NaN is left out."""
    x, gaps = with_gaps(floating(x))
    return _narrow(elementwise.sqrt(_variance_without(_wide(x), gaps, axis, keepdims)), x)


def _variance_without(x: Tensor, gaps: Any, axis: Any, keepdims: bool) -> Tensor:
    known = filled(x, gaps, 0.0)
    there = elementwise.cast(elementwise.logical_not(gaps), x.dtype)
    over = axes_of(axis, x)
    mean = elementwise.divide(reduce.sum(known, axis=over, keepdims=True), reduce.sum(there, axis=over, keepdims=True))
    squares = statistics.squared(filled(x - mean, gaps, 0.0))
    total, number = (reduce.sum(part, axis=over, keepdims=keepdims) for part in (squares, there))
    return elementwise.divide(total, number if number.dtype is total.dtype else elementwise.real(number))


# Quantiles

_BETWEEN: dict[str, Callable] = {
    "linear": lambda low, high, share: low * (1 - share) + high * share,
    "lower": lambda low, high, share: low,
    "higher": lambda low, high, share: high,
    "midpoint": lambda low, high, share: (low + high) / 2,
    "nearest": lambda low, high, share: elementwise.where(elementwise.less_equal(share, 0.5), low, high),
}


def _quantiles(x: Any, q: Any, axis: Any, method: str, keepdims: bool, skip: bool) -> Tensor:
    """The elements at the shares ``q`` of the sorted ones, over axes; shares stand on a first axis if there are several."""
    if method not in _BETWEEN:
        raise ValueError(message(f"Unknown method of quantiles: {method!r}.", expected=f"one of {', '.join(_BETWEEN)}"))
    x = floating(x)
    if not x._array.size:
        raise ValueError(message("There is no quantile of nothing.", received=f"shape {x._array.shape}"))
    wide = _wide(x)
    axes = all_axes(axis if axis is None or isinstance(axis, int) else integers(axis), x._array.ndim)
    q = in_dtype(q, wide.dtype.name)
    if type(q) is Tensor and not ((q._array >= 0) & (q._array <= 1)).all():
        text = "Quantiles must be in the range [0, 1], percentiles in [0, 100]."
        raise ValueError(message(text, received=f"shares {q._array}"))
    shares = shape.reshape(q, shape=(-1,))
    rest = tuple(n for i, n in enumerate(x._array.shape) if i not in axes)
    order = (*(i for i in range(x._array.ndim) if i not in axes), *axes)
    rows = shape.reshape(shape.transpose(wide, axes=order), shape=(*rest, -1))
    out = _at_shares(indexing.sort(rows, axis=len(rest)), shares, _BETWEEN[method], skip)
    if keepdims:
        rest = reduce.kept_shape(x._array.shape, axes)
    last = out._array.ndim - 1
    out = shape.reshape(shape.transpose(out, axes=(last, *range(last))), shape=(*q._array.shape, *rest))
    return _narrow(out, x)


def _at_shares(rows: Tensor, shares: Tensor, between: Callable, skip: bool) -> Tensor:
    """Rows sorted along the last axis (NaN at the end), read at shares of their lengths: a last axis as long as shares."""
    last, length = rows._array.ndim - 1, rows._array.shape[-1]
    gaps = elementwise.isnan(rows)
    if skip:
        number = reduce.sum(elementwise.cast(elementwise.logical_not(gaps), rows.dtype), axis=last, keepdims=True)
        place = shares * elementwise.maximum(number - 1, 0)
    else:
        place = shares * (length - 1)
    floor, ceil = elementwise.floor(place), elementwise.ceil(place)
    low, high = (_read(rows, elementwise.cast(p, "int32"), skip) for p in (floor, ceil))
    out = between(low, high, place - floor)
    if skip:
        return out
    end = indexing.getitem(rows, index=(..., slice(length - 1, length)))
    return elementwise.where(elementwise.isnan(end), end, out)


def _read(rows: Tensor, place: Tensor, paired: bool) -> Tensor:
    """Rows at places along the last axis, which are those of every row, or each row's own."""
    last = rows._array.ndim - 1
    if paired:
        return indexing.take_along_axis(rows, place, axis=last)
    return indexing.take(rows, place, axis=last, batch_dims=0)


def quantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The elements at the shares ``q`` (0 to 1) of the sorted ones, over axes."""
    return _quantiles(x, q, axis, method, keepdims, skip=False)


def nanquantile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The elements at the shares ``q`` (0 to 1) of the sorted ones, over axes; NaN is left out."""
    return _quantiles(x, q, axis, method, keepdims, skip=True)


def percentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The elements at the shares ``q`` (0 to 100) of the sorted ones, over axes."""
    return quantile(x, _hundredths(x, q), axis, method, keepdims)


def nanpercentile(x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The elements at the shares ``q`` (0 to 100) of the sorted ones, over axes; NaN is left out."""
    return nanquantile(x, _hundredths(x, q), axis, method, keepdims)


def _hundredths(x: Any, q: Any) -> Tensor:
    return in_dtype(q, _wide(floating(x)).dtype.name) / 100


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The middle of the sorted elements, over axes."""
    return quantile(x, 0.5, axis, "midpoint", keepdims)


def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The middle of the sorted elements, over axes; NaN is left out."""
    return nanquantile(x, 0.5, axis, "midpoint", keepdims)


def histogram(x: Any, bins: Any = 10, range: Any = None) -> tuple[Tensor, Tensor]:
    """How many elements lie in each bin, and the limits of the bins; the last bin has its upper limit too."""
    x = shape.reshape(floating(x), shape=(-1,))
    edges = _limits(x, bins, range) if np.ndim(bins) == 0 else in_dtype(bins, x.dtype.name)
    number = edges._array.shape[0] - 1
    place = searchsorted(edges, x, side="right") - 1
    top = indexing.getitem(edges, index=(number,))
    place = elementwise.where(elementwise.equal(x, top), number - 1, place)
    hits = elementwise.cast(indexing.one_hot(place, depth=number, dtype=np.dtype(bool)), x.dtype)  # outside: none
    return reduce.sum(hits, axis=0), edges


def _limits(x: Tensor, bins: int, range: Any) -> Tensor:
    if range is not None:
        low, high = (in_dtype(limit, x.dtype.name) for limit in range)
    elif x._array.size:
        low, high = reduce.min(x), reduce.max(x)
    else:
        low, high = (in_dtype(limit, x.dtype.name) for limit in (0.0, 1.0))
    half = elementwise.where(elementwise.equal(low, high), in_dtype(0.5, x.dtype.name), in_dtype(0.0, x.dtype.name))
    return in_dtype(grids.linspace(_wide(low - half), _wide(high + half), bins + 1), x.dtype.name)


# Correlation, differences, areas


def corrcoef(x: Any) -> Tensor:
    """The correlation of each row of a matrix with each other row."""
    x = tensor(x)
    x = in_dtype(x, "float64") if x.dtype.name == "int64" else floating(x)
    if x._array.ndim > 2:
        raise ValueError(message("corrcoef needs a matrix with one row per variable.", received=f"shape {x._array.shape}"))
    rows = _wide(x if x._array.ndim == 2 else shape.reshape(x, shape=(1, -1)))
    distance = rows - reduce.mean(rows, axis=1, keepdims=True)
    products = contract.matmul(distance, elementwise.conj(shape.transpose(distance, axes=(1, 0))))
    deviation = elementwise.sqrt(functions.diagonal(products))
    out = products / shape.expand_dims(deviation, axis=1) / shape.expand_dims(deviation, axis=0)
    if x.dtype.is_floating:
        out = functions.clip(out, -1, 1)
    return in_dtype(out if x._array.ndim == 2 else shape.reshape(out, shape=()), x.dtype.name)


def correlate(x1: Any, x2: Any, mode: str = "valid") -> Tensor:
    """Sums of products of one vector with the other (its conjugate), moved along it."""
    x1, x2 = tensor(x1), tensor(x2)
    if x1._array.ndim != 1 or x2._array.ndim != 1:
        text = "correlate() only support 1-dimensional inputs."
        raise ValueError(message(text, received=f"shapes {x1._array.shape} and {x2._array.shape}"))
    if mode not in ("valid", "same", "full"):
        raise ValueError(message(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}"))
    kind = result_type(x1.dtype, x2.dtype)
    kind = "float64" if kind == "int64" else result_type(kind, float)
    x1, x2 = in_dtype(x1, kind), elementwise.conj(in_dtype(x2, kind))
    swapped = x1._array.shape[0] < x2._array.shape[0]
    long, short = (x2, x1) if swapped else (x1, x2)
    n = short._array.shape[0]
    if not n:
        raise ValueError(message("correlate() of an empty vector", received=f"shapes {x1._array.shape}, {x2._array.shape}"))
    border = {"valid": (0, 0), "same": (n // 2, (n - 1) // 2), "full": (n - 1, n - 1)}[mode]
    signal = shape.reshape(shape.pad(long, widths=(border,)), shape=(1, -1, 1))
    kernel = shape.reshape(short, shape=(-1, 1, 1))
    out = conv.conv(signal, kernel, strides=(1,), padding=((0, 0),), dilations=(1,), groups=1)
    out = shape.reshape(out, shape=(-1,))
    return shape.flip(out, axis=(0,)) if swapped else out


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Differences of neighbours along an axis, ``n`` times."""
    a = tensor(a)
    if n < 0:
        raise ValueError(message(f"order must be non-negative but got {n}"))
    if a._array.dtype.kind != "b":
        return functions.diff(a, n, axis)
    before = (slice(None),) * one_axis(axis, a._array.ndim)
    for _ in range(n):
        parts = (slice(1, None), slice(None, -1))
        a = elementwise.not_equal(*(indexing.getitem(a, index=(*before, part)) for part in parts))
    return a


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The area under the lines through points ``y`` along an axis, at places ``x`` or ``dx`` apart."""
    if x is None:
        y = floating(y)
        return functions.trapezoid(y, None, in_dtype(dx, y.dtype.name), axis)
    y, x = together(y, x, also=(float,))
    return functions.trapezoid(y, x, axis=axis)


# Functions of elements


def vectorize(pyfunc: Callable, *, excluded: Any = None, signature: str | None = None) -> Callable:
    """The function of arrays that calls ``pyfunc`` on their elements, or on the axes that a signature names."""
    kept = set(excluded or ())
    wanted = None if signature is None else _ranks(signature)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {i: tensor(a) for i, a in enumerate(args) if i not in kept}
        given |= {name: tensor(a) for name, a in kwargs.items() if name not in kept}  # type: ignore[misc]
        ranks = dict.fromkeys(given, 0) if wanted is None else dict(zip(given, wanted))
        if wanted is not None and len(wanted) != len(given):
            text = f"The signature {signature!r} names {len(wanted)} arguments."
            raise TypeError(message(text, received=f"{len(given)} arguments"))

        def one(items: dict) -> Any:
            return pyfunc(*(items.get(i, a) for i, a in enumerate(args)), **{k: items.get(k, a) for k, a in kwargs.items()})

        return _over(one, given, ranks)

    call.__name__ = getattr(pyfunc, "__name__", "vectorized")
    call.__doc__ = pyfunc.__doc__
    return call


def _ranks(signature: str) -> list[int]:
    """How many axes of each argument the function wants: ``"(m,n),(n)->(m)"`` says 2 and 1."""
    if not re.fullmatch(r"(\([\w\s,]*\),?\s*)+->\s*(\([\w\s,]*\),?\s*)+", signature.strip()):
        raise ValueError(message(f"not a valid gufunc signature: {signature}", expected="such as '(m,n),(n)->(m)'"))
    arguments = re.findall(r"\(([^)]*)\)", signature.split("->")[0])
    return [len([name for name in names.split(",") if name.strip()]) for names in arguments]


def _over(function: Callable, given: dict, ranks: dict) -> Any:
    """``function`` of the last axes of the given tensors, mapped over the others, which broadcast."""
    cores = {k: t._array.shape[t._array.ndim - ranks[k] :] for k, t in given.items()}
    lead = np.broadcast_shapes(*(t._array.shape[: t._array.ndim - ranks[k]] for k, t in given.items()))
    if not lead:
        return function(given)
    rows = {k: shape.reshape(shape.broadcast_to(t, shape=(*lead, *cores[k])), shape=(-1, *cores[k])) for k, t in given.items()}
    found = vectorized_map(function, rows, warn=False)

    def spread(out: Tensor) -> Tensor:
        return shape.reshape(out, shape=(*lead, *out._array.shape[1:]))

    return tuple(map(spread, found)) if isinstance(found, (tuple, list)) else spread(found)
