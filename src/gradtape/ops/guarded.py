"""Products and quotients whose value at 0 is 0 by definition, where the plain formula gives nan."""

from __future__ import annotations

from gradtape.core.op import op
from gradtape.ops.arguments import not_allowed


def _check(xp, x, label):
    if xp.dtype(x).kind in "biuO":
        raise not_allowed(label, xp.dtype(x))


def _quotient(xp, x, y):
    zero = xp.equal(y, xp.zeros_like(y))
    return xp.where(zero, xp.zeros_like(y), xp.divide(x, xp.where(zero, xp.ones_like(y), y)))


def _product(xp, x, y):
    zero = xp.equal(y, xp.zeros_like(y))
    return xp.where(zero, xp.zeros_like(y), xp.multiply(x, xp.where(zero, xp.ones_like(y), y)))


def _smooth_product(xp, x, y):
    """The same for rules: x counts as 0 where it is not finite and y is 0, so that elsewhere the derivative in y is x."""
    harmless = xp.logical_or(xp.isfinite(x), xp.not_equal(y, xp.zeros_like(y)))
    return xp.multiply(xp.where(harmless, x, xp.zeros_like(x)), y)


def _times(xp, x, y, function):
    """x · function(y), and 0 where x is 0, whatever y is."""
    zero = xp.equal(x, xp.zeros_like(x))
    return xp.where(zero, xp.zeros_like(x), x * function(xp.where(zero, xp.ones_like(y), y)))


def _nonzero(xp, x):
    return xp.astype(xp.not_equal(x, xp.zeros_like(x)), dtype=xp.dtype(x))


@op(label="DivNoNan", elementwise=True)
def divide_no_nan(xp, x, y):
    """x / y, and 0 where y is 0."""
    return _quotient(xp, x, y)


divide_no_nan.vjp(
    lambda xp, g, y: _quotient(xp, g, xp.conj(y)),
    lambda xp, g, x, y: g * xp.conj(_quotient(xp, _quotient(xp, -x, y), y)),
)


@op(label="MulNoNan", elementwise=True)
def multiply_no_nan(xp, x, y):
    """x · y, and 0 where y is 0, even if x is infinite or nan."""
    _check(xp, x, "MulNoNan")
    return _product(xp, x, y)


multiply_no_nan.vjp(
    lambda xp, g, y: _smooth_product(xp, g, xp.conj(y)),
    lambda xp, g, x: _smooth_product(xp, xp.conj(x), g),
)


@op(elementwise=True)
def xlogy(xp, x, y):
    """x · log y, and 0 where x is 0."""
    _check(xp, x, "Xlogy")
    return _times(xp, x, y, xp.log)


@op(elementwise=True)
def xlog1py(xp, x, y):
    """x · log(1 + y), and 0 where x is 0."""
    _check(xp, x, "Xlog1py")
    return _times(xp, x, y, xp.log1p)


@op(elementwise=True)
def xdivy(xp, x, y):
    """x / y, and 0 where x is 0."""
    _check(xp, x, "Xdivy")
    zero = xp.equal(x, xp.zeros_like(x))
    return xp.where(zero, xp.zeros_like(x), xp.divide(x, xp.where(zero, xp.ones_like(y), y)))  # x · (1/y) rounds twice


xlogy.vjp(
    lambda xp, g, x, y: g * xp.conj(_times(xp, _nonzero(xp, x), y, xp.log)),
    lambda xp, g, x, y: g * xp.conj(_times(xp, x, y, xp.reciprocal)),
)
xlog1py.vjp(
    lambda xp, g, x, y: g * xp.conj(_times(xp, _nonzero(xp, x), y, xp.log1p)),
    lambda xp, g, x, y: g * xp.conj(_times(xp, x, y + 1, xp.reciprocal)),
)
xdivy.vjp(
    lambda xp, g, x, y: g * xp.conj(_times(xp, _nonzero(xp, x), y, xp.reciprocal)),
    lambda xp, g, x, y: g * xp.conj(_times(xp, -x, y * y, xp.reciprocal)),
)
