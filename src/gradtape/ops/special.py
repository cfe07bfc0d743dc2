"""Special functions: Bessel's, Dawson's and Fresnel's, inverse error functions, incomplete gamma and beta functions, zeta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.op import binary, op, unary
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, shape
from gradtape.ops.arguments import integer
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

# Bessel functions


def _over(xp, value, x, at_zero):
    """value / x, and its limit at 0."""
    zero = xp.equal(x, xp.zeros_like(x))
    return xp.where(zero, xp.full(shape=(), value=at_zero, dtype=xp.dtype(x)), value / xp.where(zero, xp.ones_like(x), x))


bessel_i0 = unary("bessel_i0", "modified Bessel function I₀", derivative=lambda xp, x: xp.bessel_i1(x))
bessel_i1 = unary(
    "bessel_i1", "modified Bessel function I₁", derivative=lambda xp, out, x: xp.bessel_i0(x) - _over(xp, out, x, 0.5)
)
bessel_i0e = unary("bessel_i0e", "I₀(x) e^{-|x|}", derivative=lambda xp, out, x: xp.bessel_i1e(x) - xp.sign(x) * out)
bessel_i1e = unary(
    "bessel_i1e", "I₁(x) e^{-|x|}",
    derivative=lambda xp, out, x: xp.bessel_i0e(x) - xp.sign(x) * out - _over(xp, out, x, 0.5),
)  # fmt: skip
bessel_j0 = unary("bessel_j0", "Bessel function J₀", derivative=lambda xp, x: -xp.bessel_j1(x))
bessel_j1 = unary("bessel_j1", "Bessel function J₁", derivative=lambda xp, out, x: xp.bessel_j0(x) - _over(xp, out, x, 0.5))
bessel_y0 = unary("bessel_y0", "Bessel function Y₀, for x > 0", derivative=lambda xp, x: -xp.bessel_y1(x))
bessel_y1 = unary("bessel_y1", "Bessel function Y₁, for x > 0", derivative=lambda xp, out, x: xp.bessel_y0(x) - out / x)
bessel_k0 = unary("bessel_k0", "modified Bessel function K₀, for x > 0", derivative=lambda xp, x: -xp.bessel_k1(x))
bessel_k1 = unary(
    "bessel_k1", "modified Bessel function K₁, for x > 0", derivative=lambda xp, out, x: -xp.bessel_k0(x) - out / x
)
bessel_k0e = unary("bessel_k0e", "K₀(x) eˣ", derivative=lambda xp, out, x: out - xp.bessel_k1e(x))
bessel_k1e = unary("bessel_k1e", "K₁(x) eˣ", derivative=lambda xp, out, x: out * (1 - 1 / x) - xp.bessel_k0e(x))

# Integrals and inverses


def _quarter_turns(x):
    """The angle πx²/2."""
    return x * x * (math.pi / 2)


def _spence_derivative(xp, x):
    one = xp.equal(x, xp.ones_like(x))
    quotient = xp.log(x) / xp.where(one, xp.ones_like(x), 1 - x)
    return xp.where(one, -xp.ones_like(x), quotient)


dawsn = unary("dawsn", "Dawson's integral e^{-x²} ∫₀ˣ e^{t²} dt", derivative=lambda xp, out, x: 1 - 2 * x * out)
expint = unary("expint", "exponential integral Ei(x)", derivative=lambda xp, x: xp.exp(x) / x)
fresnel_sin = unary("fresnel_sin", "∫₀ˣ sin(πt²/2) dt", derivative=lambda xp, x: xp.sin(_quarter_turns(x)))
fresnel_cos = unary("fresnel_cos", "∫₀ˣ cos(πt²/2) dt", derivative=lambda xp, x: xp.cos(_quarter_turns(x)))
spence = unary("spence", "∫₁ˣ log t / (1 - t) dt", derivative=_spence_derivative)
ndtri = unary(
    "ndtri", "the point below which a standard normal variable is with probability x",
    derivative=lambda xp, out: math.sqrt(2 * math.pi) * xp.exp(out * out / 2),
)  # fmt: skip
erfcinv = unary("erfcinv", "inverse of erfc", derivative=lambda xp, out: -math.sqrt(math.pi) / 2 * xp.exp(out * out))


# Incomplete gamma functions. With p(t) the density tᵃ⁻¹ e⁻ᵗ / Γ(a), igamma is ∫₀ˣ p dt, so its derivative in x is p(x), and
# that in a is ∫₀ˣ p(t) (log t - ψ(a)) dt = -∫ₓ^∞ of the same.


def _density(xp, a, x):
    return xp.exp((a - 1) * xp.log(x) - x - xp.lgamma(a))


_NODES, _WEIGHTS = (np.polynomial.legendre.leggauss(64)[0] + 1) / 2, np.polynomial.legendre.leggauss(64)[1] / 2
_NEGLIGIBLE = 40.0
"""Tails below e⁻⁴⁰ are left out."""


def _shape_by_series(xp, a, x):
    """The derivative of igamma in a for x ≤ 1, from xᵃ/Γ(a) Σ (-x)ᵏ / (k! (a + k))."""
    factor, total, slope = xp.ones_like(x), xp.zeros_like(x), xp.zeros_like(x)
    for k in range(20):
        term = factor / (a + k)
        total, slope = total + term, slope - term / (a + k)
        factor = factor * x / -(k + 1.0)
    return xp.exp(a * xp.log(x) - xp.lgamma(a)) * (slope + (xp.log(x) - xp.digamma(a)) * total)


def _shape_by_quadrature(xp, a, x):
    """The derivative of igamma in a for x > 1, by Gauss's rule over s = |log(t / x)|, below x if x < a, else above.

    The reach of s is where the integrand has fallen by e⁻⁴⁰, from a quadratic lower bound of its exponent.
    """
    a, x = (xp.expand_dims(v, axis=-1) for v in (a, x))
    below = xp.less(x, a)
    middle = (x - a) + _NEGLIGIBLE / 2
    down = (middle + xp.sqrt(middle * middle + 2 * _NEGLIGIBLE * a)) / a
    up = (a - x + xp.sqrt((x - a) * (x - a) + 2 * _NEGLIGIBLE * x)) / x
    reach, sign = xp.where(below, down, up), xp.where(below, -xp.ones_like(a), xp.ones_like(a))
    s = sign * reach * _NODES
    weight = xp.exp(a * s - x * xp.expm1(s)) * _WEIGHTS
    total = xp.sum(weight * (xp.log(x) + s - xp.digamma(a)), axis=-1, keepdims=True)
    return xp.squeeze(-sign * reach * x * _density(xp, a, x) * total, axis=(-1,))


def _shape_derivative(xp, a, x):
    """∂igamma/∂a; 0 at x = 0 and at infinity."""
    inside = xp.logical_and(xp.greater(x, xp.zeros_like(x)), xp.isfinite(x))
    x = xp.where(inside, x, xp.ones_like(x))
    one = xp.ones_like(x)
    near = xp.less_equal(x, one)
    series = _shape_by_series(xp, a, xp.where(near, x, one))
    quadrature = _shape_by_quadrature(xp, a + xp.zeros_like(x), xp.where(near, one + one, x) + xp.zeros_like(a))
    return xp.where(inside, xp.where(near, series, quadrature), xp.zeros_like(x))


def _in_double(xp, g, function, x, y):
    """g · function(x, y), the function in float64: exponents of size a leave float32 few digits."""
    double = np.dtype(np.float64)
    value = function(xp, xp.astype(x, dtype=double), xp.astype(y, dtype=double))
    return g * xp.astype(value, dtype=xp.dtype(g))


igamma = binary(
    "igamma", "∫₀ʸ tˣ⁻¹ e⁻ᵗ dt / Γ(x)",
    lambda xp, g, x, y: _in_double(xp, g, _shape_derivative, x, y),
    lambda xp, g, x, y: _in_double(xp, g, _density, x, y),
)  # fmt: skip
igammac = binary(
    "igammac", "1 - igamma(x, y), exact where that is small",
    lambda xp, g, x, y: _in_double(xp, -g, _shape_derivative, x, y),
    lambda xp, g, x, y: _in_double(xp, -g, _density, x, y),
)  # fmt: skip


# Incomplete beta function and zeta: no gradient flows to a and b, nor to the exponent, as in TensorFlow


@op
def betainc(xp, a, b, x):
    """∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b)"""
    return xp.betainc(a, b, x)


def _powers(xp, exponent, log, x):
    """exponent · log(x), and 0 where the exponent is 0."""
    zero = xp.equal(exponent, xp.zeros_like(exponent))
    return xp.where(zero, xp.zeros_like(x), exponent * log(xp.where(zero, xp.full(shape=(), value=0.5, dtype=xp.dtype(x)), x)))


def _beta_density(xp, g, a, b, x):
    normalizer = xp.lgamma(a) + xp.lgamma(b) - xp.lgamma(a + b)
    return g * xp.exp(_powers(xp, a - 1, xp.log, x) + _powers(xp, b - 1, xp.log1p, -x) - normalizer)


betainc.vjp(None, None, _beta_density)


@op
def zeta(xp, x, q):
    """Σ (q + n)⁻ˣ over n ≥ 0, for x > 1"""
    return xp.zeta(x, q)


zeta.vjp(None, lambda xp, g, x, q: -g * x * xp.zeta(x + 1, q))


def checked_betainc(a: Any, b: Any, x: Any) -> Tensor:
    """betainc of tensors of one shape, among which may be scalars."""
    given = (a, b, x)
    dtype = next((v.dtype for v in given if hasattr(v, "dtype")), None)
    tensors = [convert_to_tensor(v, dtype if not hasattr(v, "dtype") else None) for v in given]
    if dtype is None:
        tensors = [tensors[0], *(convert_to_tensor(v, tensors[0].dtype) for v in given[1:])]
    shapes = {name: v._array.shape for name, v in zip("abx", tensors) if v._array.ndim}
    (first, shape), *others = shapes.items() or [("a", ())]
    for name, other in others:
        if other != shape:
            raise InvalidArgumentError(
                message(
                    f"Shapes of {first} and {name} are inconsistent: {dims(shape)} vs. {dims(other)} [Op:Betainc]",
                    expected="one shape, or scalars",
                    fix="tf.broadcast_to first",
                )
            )
    return betainc(*tensors)


# Bits


@op
def bitcast(xp, x, *, dtype):
    """The same bytes as another dtype; a last axis appears (or goes) where the sizes of the elements differ."""
    return xp.bitcast(x, dtype=dtype)


bitcast.nondifferentiable()


def checked_bitcast(x: Any, dtype: Any) -> Tensor:
    """bitcast to a named dtype, with what cannot be reinterpreted refused."""
    x, wanted = convert_to_tensor(x), dtypes.as_dtype(dtype)
    for attribute, kind in (("T", x.dtype), ("type", wanted)):
        if kind.numpy.kind in "bO":
            raise InvalidArgumentError(
                message(
                    f"Value for attr '{attribute}' of {kind.word} is not in the list of allowed values: bfloat16, half, float, "
                    "double, int64, int32, uint8, uint16, int8, int16, complex64, complex128, uint32, uint64 [Op:Bitcast]",
                    fix="tf.cast(x, tf.uint8) first",
                )
            )
    have, want = x._array.dtype.itemsize, wanted.numpy.itemsize
    if want > have and x._array.shape[-1:] != (want // have,):
        raise InvalidArgumentError(
            message(
                f"Cannot bitcast from {x.dtype.name} to {wanted.name} [Op:Bitcast]",
                received=f"shape {x._array.shape}",
                expected=f"a last axis of length {want // have}",
            )
        )
    return bitcast(x, dtype=wanted.numpy)


# Quasi-random points


def sobol(dim: Any, num_results: Any, skip: Any, dtype: Any) -> Tensor:
    """Points of the Sobol sequence, one per row, without the first (which is 0) and ``skip`` more."""
    kind = dtypes.as_dtype(dtype)
    if kind not in (dtypes.float32, dtypes.float64):
        text = f"Value for attr 'dtype' of {kind.word} is not in the list of allowed values: float, double [Op:SobolSample]"
        raise InvalidArgumentError(message(text, received=f"dtype={kind!r}", expected="tf.float32 or tf.float64"))
    numbers = []
    for name, value in (("dim", dim), ("num_results", num_results), ("skip", skip)):
        if np.ndim(getattr(value, "_array", value)):
            text = f"{name} must be a scalar [Op:SobolSample]"
            raise InvalidArgumentError(message(text, received=f"{value!r}", expected="one integer"))
        least, words = (0, "non-negative") if name == "skip" else (1, "at least one")
        numbers.append(integer(value))
        if numbers[-1] < least:
            text = f"{name} must be {words} [Op:SobolSample]"
            raise InvalidArgumentError(message(text, received=str(numbers[-1]), expected=f"{least} or more"))
    from scipy.stats import qmc

    dimensions, count, first = numbers
    sequence = qmc.Sobol(dimensions, scramble=False, bits=32).fast_forward(first + 1)
    return wrap(sequence.random(count).astype(kind.numpy))


def polygamma(a: Any, x: Tensor) -> Tensor:
    """The derivative of order a of digamma at x; nan where a is not a whole number ≥ 0."""
    if isinstance(a, Tensor) and a.dtype is not x.dtype:
        text = f"cannot compute Polygamma as input #1(zero-based) was expected to be a {a.dtype.word} tensor but is a "
        raise InvalidArgumentError(message(f"{text}{x.dtype.word} tensor [Op:Polygamma]", fix=f"tf.cast(a, {x.dtype!r})"))
    orders = np.asarray(convert_to_tensor(a)._host())
    try:
        both = np.broadcast_shapes(orders.shape, x._array.shape)
    except ValueError:
        text = f"Incompatible shapes: {dims(orders.shape)} vs. {dims(x._array.shape)} [Op:Polygamma]"
        fix = "shapes must be equal, or 1, from the last axis backwards"
        raise InvalidArgumentError(message(text, received=f"a {orders.shape}, x {x._array.shape}", fix=fix)) from None
    x = x if both == x._array.shape else shape.broadcast_to(x, shape=both)
    out = None
    for n in sorted(set(orders.ravel().tolist()), reverse=True):
        if n >= 0 and float(n).is_integer():
            part = elementwise.polygamma(x, n=int(n))
        else:
            part = elementwise.add(elementwise.zeros_like(x), float("nan"))
        out = part if out is None else elementwise.where(orders == n, part, out)
    return x if out is None else out
