"""Reductions and cumulative ops. ``axis`` is None (all), an int or a tuple of ints."""

from __future__ import annotations

import math

import numpy as np

from gradtape.core.op import op


def kept_shape(shape: tuple[int, ...], axis) -> tuple[int, ...]:
    """The shape of a reduction with keepdims."""
    if axis is None:
        return (1,) * len(shape)
    axes = {a % len(shape) for a in (axis if isinstance(axis, tuple) else (axis,))}
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def count(shape: tuple[int, ...], axis) -> int:
    """How many elements are reduced to one."""
    if axis is None:
        return math.prod(shape)
    return math.prod([shape[a] for a in (axis if isinstance(axis, tuple) else (axis,))])


def _expand(xp, g, shape, axis):
    """The cotangent of a reduction with axes of length 1 where the reduced ones were (a scalar broadcasts as it is)."""
    if axis is None and not xp.shape(g):
        return g
    return xp.reshape(g, shape=kept_shape(shape, axis))


@op(closed=True)
def sum(xp, x, *, axis=None, keepdims=False):
    """The sum over axes."""
    return xp.sum(x, axis=axis, keepdims=keepdims)


sum.vjp(lambda xp, g, *, x_shape, axis: xp.broadcast_to(_expand(xp, g, x_shape, axis), shape=x_shape))


@op(closed=True)
def mean(xp, x, *, axis=None, keepdims=False):
    """The mean over axes; of integers its whole part."""
    number = count(xp.shape(x), axis)
    dtype = xp.dtype(x)
    if number and dtype.char in "fd":
        return xp.sum(x, axis=axis, keepdims=keepdims) / number
    if dtype.kind in "iu":
        wide = np.dtype(np.int64 if dtype.kind == "i" else np.uint64)  # a sum of uint8 seldom fits one
        total = xp.sum(xp.astype(x, dtype=wide), axis=axis, keepdims=keepdims)
        whole = xp.floor_divide(xp.abs(total), xp.full(shape=(), value=number or 1, dtype=wide)) * xp.sign(total)
        return xp.astype(whole, dtype=dtype)
    total = xp.sum(_counting(xp, x), axis=axis, keepdims=keepdims)
    out = total / number if number else xp.divide(total, xp.zeros_like(total))
    return out if xp.dtype(out) is dtype else xp.astype(out, dtype=dtype)


def _counting(xp, x):
    """x in a dtype that can hold a count and a sum: float16 ends at 65504."""
    return xp.astype(x, dtype=np.dtype(np.float32)) if xp.dtype(x).char == "e" else x


mean.vjp(
    lambda xp, g, *, x_shape, axis: xp.broadcast_to(
        _counting(xp, _expand(xp, g, x_shape, axis)) / (count(x_shape, axis) or 1), shape=x_shape
    )
)


@op(closed=True)
def prod(xp, x, *, axis=None, keepdims=False):
    """The product over axes."""
    return xp.prod(x, axis=axis, keepdims=keepdims)


def _prod_rule(xp, g, x, *, axis):
    """g times the product of all others, by two running products: exact where elements are 0."""
    shape = xp.shape(x)
    if not shape:
        return g
    given = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % len(shape) for a in given)
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    order = (*rest, *axes)
    moved = xp.transpose(x, axes=order)
    flat = xp.reshape(moved, shape=(*(shape[i] for i in rest), int(np.prod([shape[i] for i in axes] or [1]))))
    last = len(rest)
    others = xp.cumprod(flat, axis=last, exclusive=True) * xp.cumprod(flat, axis=last, exclusive=True, reverse=True)
    back = xp.reshape(others, shape=tuple(shape[i] for i in order))
    inverse = tuple(int(i) for i in np.argsort(order))
    return _expand(xp, g, shape, axis) * xp.conj(xp.transpose(back, axes=inverse))


prod.vjp(_prod_rule)


def _extreme_rule(xp, g, out, x, *, axis):
    """Ties share the gradient evenly."""
    hit = xp.astype(xp.equal(x, _expand(xp, out, xp.shape(x), axis)), dtype=xp.dtype(g))
    return hit * (_expand(xp, g, xp.shape(x), axis) / xp.sum(hit, axis=axis, keepdims=True))


@op(closed=True)
def max(xp, x, *, axis=None, keepdims=False):
    """The largest element over axes; of nothing, the lowest value of the dtype."""
    return xp.max(x, axis=axis, keepdims=keepdims)


@op(closed=True)
def min(xp, x, *, axis=None, keepdims=False):
    """The smallest element over axes; of nothing, the highest value of the dtype."""
    return xp.min(x, axis=axis, keepdims=keepdims)


max.vjp(_extreme_rule)
min.vjp(_extreme_rule)


@op
def any(xp, x, *, axis=None, keepdims=False):
    """Logical or over axes."""
    return xp.any(x, axis=axis, keepdims=keepdims)


@op
def all(xp, x, *, axis=None, keepdims=False):
    """Logical and over axes."""
    return xp.all(x, axis=axis, keepdims=keepdims)


@op(label="ArgMax")
def argmax(xp, x, *, axis, keepdims=False):
    """The index of the first largest element."""
    return xp.argmax(x, axis=axis, keepdims=keepdims)


@op(label="ArgMin")
def argmin(xp, x, *, axis, keepdims=False):
    """The index of the first smallest element."""
    return xp.argmin(x, axis=axis, keepdims=keepdims)


for _op in (any, all, argmax, argmin):
    _op.nondifferentiable()


@op(closed=True)
def logsumexp(xp, x, *, axis=None, keepdims=False):
    """log Σ eˣ, without overflow."""
    top = xp.max(x, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))  # all -inf: no nan
    total = xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else xp.reshape(total, shape=_dropped(xp.shape(x), axis))


def _dropped(shape, axis):
    """The shape of a reduction without keepdims."""
    if axis is None:
        return ()
    axes = {a % len(shape) for a in (axis if isinstance(axis, tuple) else (axis,))}
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _logsumexp_rule(xp, g, x, *, axis):
    """g times the softmax, from x itself: the result is too coarse where it is large (1000.69 ± 3e-5 in float32)."""
    top = xp.max(x, axis=axis, keepdims=True)
    part = xp.exp(x - xp.where(xp.isfinite(top), top, xp.zeros_like(top)))
    total = xp.sum(part, axis=axis, keepdims=True)
    share = part / xp.where(xp.equal(total, xp.zeros_like(total)), xp.ones_like(total), total)  # all -inf: 0
    return _expand(xp, g, xp.shape(x), axis) * share


logsumexp.vjp(_logsumexp_rule)


@op(closed=True)
def cumsum(xp, x, *, axis=0, exclusive=False, reverse=False):
    """Running sum along an axis."""
    return xp.cumsum(x, axis=axis, exclusive=exclusive, reverse=reverse)


cumsum.vjp(lambda xp, g, *, axis, exclusive, reverse: xp.cumsum(g, axis=axis, exclusive=exclusive, reverse=not reverse))


@op(closed=True)
def cumprod(xp, x, *, axis=0, exclusive=False, reverse=False):
    """Running product along an axis."""
    return xp.cumprod(x, axis=axis, exclusive=exclusive, reverse=reverse)


def _cumprod_rule(xp, g, out, x, *, axis, exclusive, reverse):
    """Σ over later outputs, divided by x; where x is 0, the sum is taken over the product of the others.

    With zeros the quotient form fails, so the general form is used: out_j / x_i for j ≥ i is the product of all
    factors of out_j but x_i, which the matrix below holds for every pair (i, j).
    """
    shape = xp.shape(x)
    axis %= len(shape)
    n = shape[axis]
    order = (*(i for i in range(len(shape)) if i != axis), axis)
    inverse = tuple(int(i) for i in np.argsort(order))
    moved = xp.transpose(x, axes=order)
    if reverse:
        moved = xp.flip(moved, axis=len(shape) - 1)
    gm = xp.transpose(g, axes=order)
    if reverse:
        gm = xp.flip(gm, axis=len(shape) - 1)
    rows = (*(shape[i] for i in order[:-1]), n, n)
    # others[…, i, k] = x_k, or 1 at k = i
    keep = np.eye(n, dtype=bool)
    row = xp.expand_dims(moved, axis=len(shape) - 1)
    others = xp.where(keep, xp.ones_like(xp.broadcast_to(row, shape=rows)), row)
    products = xp.cumprod(others, axis=len(shape), exclusive=exclusive)
    later = np.triu(np.ones((n, n), bool), 1 if exclusive else 0)
    terms = xp.where(later, xp.conj(products) * xp.expand_dims(gm, axis=len(shape) - 1), xp.zeros_like(products))
    total = xp.sum(terms, axis=len(shape))
    if reverse:
        total = xp.flip(total, axis=len(shape) - 1)
    return xp.transpose(total, axes=inverse)


cumprod.vjp(_cumprod_rule)
