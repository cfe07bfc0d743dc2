"""Special functions on jax arrays.

Where jax has none (Bessel's J, Y and K, Dawson's, Fresnel's), the function is split into pieces that are smooth in a suitable
variable, and each piece is a Chebyshev series through SciPy's values, computed when the function is first used. These
agree with SciPy to about 1e-14; the arithmetic is in float64, whatever the argument.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from gradtape.xp import numpy_special as _numpy


def _widened(function: Callable, dtype: Any = None) -> Callable:
    """The function of real arrays, computed at least in float32, or in ``dtype``."""

    def call(*arrays: Any) -> Any:
        _numpy.real_only(*arrays)
        own = arrays[0].dtype
        wide = dtype or (np.float32 if own.itemsize == 2 else own)
        return function(*(jnp.asarray(x).astype(wide) for x in arrays)).astype(own)

    return call


_in_double = functools.partial(_widened, dtype=np.float64)

bessel_i0, bessel_i0e, bessel_i1, bessel_i1e = map(_widened, (special.i0, special.i0e, special.i1, special.i1e))
spence, ndtri = _widened(special.spence), _widened(special.ndtri)
erfcinv = _widened(lambda x: -special.ndtri(x / 2) * np.sqrt(0.5).astype(x.dtype))


@_widened
def expint(x: Any) -> Any:
    """Ei(x); jax answers nan at 0 and at infinity."""
    inner = special.expi(jnp.where((x == 0) | jnp.isinf(x), 1, x))
    edge = jnp.where(x == 0, -jnp.inf, jnp.where(x > 0, jnp.inf, -0.0))
    return jnp.where((x == 0) | jnp.isinf(x), edge, inner)


# Chebyshev series


@functools.cache
def _series(function: Callable, low: float, high: float, degree: int) -> np.ndarray:
    """Coefficients of the series that meets the function, smooth from ``low`` to ``high``, at degree + 1 points."""
    return np.polynomial.Chebyshev.interpolate(function, degree, [low, high]).coef


def _smooth(function: Callable, low: float, high: float, degree: int, z: Any) -> Any:
    """The function at z (clipped to where it is fitted), by Clenshaw's recurrence."""
    t = (2 * jnp.clip(z, low, high) - (low + high)) / (high - low)
    first, *rest = _series(function, low, high, degree)
    older = newer = jnp.zeros_like(t)
    for c in reversed(rest):
        older, newer = newer, c + 2 * t * newer - older
    return first + t * newer - older


def _scipy(name: str) -> Callable:
    return getattr(_numpy, name)


# Bessel functions: J and Y below 8 are even or odd series (and a logarithm), above 8 a modulus and a phase in 1/x²


def _waves(order: int) -> Callable:
    """Re and Im of √(πx/2) (J + iY) e^{-i(x - (2·order + 1)π/4)} as smooth functions of 1/x²; the second over 1/x."""
    j, y = _scipy(f"bessel_j{order}"), _scipy(f"bessel_y{order}")

    def parts(w: np.ndarray) -> Any:
        x = 1 / np.sqrt(w)
        return np.sqrt(np.pi * x / 2) * (j(x) + 1j * y(x)) * np.exp(-1j * x) * np.exp(0.25j * np.pi * (2 * order + 1))

    return parts


@functools.cache
def _wave(order: int) -> tuple[Callable, Callable]:
    parts = _waves(order)
    return (lambda w: parts(w).real), (lambda w: parts(w).imag / np.sqrt(w))


def _far(order: int, x: Any) -> Any:
    """J + iY above 8, as a pair."""
    p, q = _wave(order)
    w = 1 / (x * x)
    real, imaginary = _smooth(p, 1e-12, 1 / 64, 24, w), _smooth(q, 1e-12, 1 / 64, 24, w) / x
    cos, sin = jnp.cos(x), jnp.sin(x)
    root = np.sqrt(0.5)
    cos, sin = ((cos + sin) * root, (sin - cos) * root) if order == 0 else ((sin - cos) * root, -(sin + cos) * root)
    scale = jnp.sqrt(2 / (np.pi * x))
    return scale * (real * cos - imaginary * sin), scale * (real * sin + imaginary * cos)


def _j0_near(w: np.ndarray) -> np.ndarray:
    return _scipy("bessel_j0")(np.sqrt(w))


def _j1_near(w: np.ndarray) -> np.ndarray:
    return _scipy("bessel_j1")(np.sqrt(w)) / np.sqrt(w)


def _y0_near(w: np.ndarray) -> np.ndarray:
    return _scipy("bessel_y0")(np.sqrt(w)) - np.log(w) / np.pi * _j0_near(w)


def _y1_near(w: np.ndarray) -> np.ndarray:
    x = np.sqrt(w)
    return (_scipy("bessel_y1")(x) + 2 / (np.pi * x)) / x - np.log(w) / np.pi * _j1_near(w)


def _j0(x: Any) -> Any:
    x = jnp.abs(x)
    return jnp.where(x < 8, _smooth(_j0_near, 0, 64, 24, x * x), _far(0, jnp.maximum(x, 8))[0])


def _j1(x: Any) -> Any:
    size = jnp.abs(x)
    far = jnp.sign(x) * _far(1, jnp.maximum(size, 8))[0]
    return jnp.where(size < 8, x * _smooth(_j1_near, 0, 64, 24, x * x), far)


def _y0(x: Any) -> Any:
    near = _smooth(_y0_near, 0, 64, 24, x * x) + 2 / np.pi * jnp.log(x) * _j0(x)
    return jnp.where(x < 8, near, _far(0, jnp.maximum(x, 8))[1])


def _y1(x: Any) -> Any:
    near = x * _smooth(_y1_near, 0, 64, 24, x * x) + 2 / np.pi * (jnp.log(x) * _j1(x) - 1 / x)
    return jnp.where(x < 8, jnp.where(x == 0, -jnp.inf, near), _far(1, jnp.maximum(x, 8))[1])


def _k0_near(w: np.ndarray) -> np.ndarray:
    x = np.sqrt(w)
    return _scipy("bessel_k0")(x) + np.log(x) * _scipy("bessel_i0")(x)


def _k1_near(w: np.ndarray) -> np.ndarray:
    x = np.sqrt(w)
    return x * (_scipy("bessel_k1")(x) - np.log(x) * _scipy("bessel_i1")(x))


def _k0_far(w: np.ndarray) -> np.ndarray:
    return _scipy("bessel_k0e")(1 / w) / np.sqrt(w)


def _k1_far(w: np.ndarray) -> np.ndarray:
    return _scipy("bessel_k1e")(1 / w) / np.sqrt(w)


def _k0e(x: Any) -> Any:
    near = jnp.exp(x) * (_smooth(_k0_near, 0, 4, 14, x * x) - jnp.log(x) * special.i0(x))
    return jnp.where(x < 2, near, _smooth(_k0_far, 1e-12, 0.5, 30, 1 / x) / jnp.sqrt(x))


def _k1e(x: Any) -> Any:
    near = jnp.exp(x) * (_smooth(_k1_near, 0, 4, 14, x * x) / x + jnp.log(x) * special.i1(x))
    near = jnp.where(x == 0, jnp.inf, near)
    return jnp.where(x < 2, near, _smooth(_k1_far, 1e-12, 0.5, 30, 1 / x) / jnp.sqrt(x))


bessel_j0, bessel_j1, bessel_y0, bessel_y1 = map(_in_double, (_j0, _j1, _y0, _y1))
bessel_k0e, bessel_k1e = _in_double(_k0e), _in_double(_k1e)
bessel_k0, bessel_k1 = _in_double(lambda x: jnp.exp(-x) * _k0e(x)), _in_double(lambda x: jnp.exp(-x) * _k1e(x))


# Dawson's integral: odd, 1/(2x) far away


def _dawsn_near(w: np.ndarray) -> np.ndarray:
    return _scipy("dawsn")(np.sqrt(w)) / np.sqrt(w)


def _dawsn_far(w: np.ndarray) -> np.ndarray:
    return _scipy("dawsn")(1 / np.sqrt(w)) / np.sqrt(w)


@_in_double
def dawsn(x: Any) -> Any:
    far = jnp.where(jnp.abs(x) < 5, 5, x)
    near = x * _smooth(_dawsn_near, 0, 25, 44, x * x)
    return jnp.where(jnp.abs(x) < 5, near, _smooth(_dawsn_far, 1e-12, 0.04, 24, 1 / (far * far)) / far)


# Fresnel integrals: odd series near 0, far away two functions of 1/x⁴ that weigh a sine and a cosine


def _sin_near(w: np.ndarray) -> np.ndarray:
    return _scipy("fresnel_sin")(w**0.25) / w**0.75


def _cos_near(w: np.ndarray) -> np.ndarray:
    return _scipy("fresnel_cos")(w**0.25) / w**0.25


def _fresnel_waves(w: np.ndarray) -> Any:
    x = w**-0.25
    missing = 0.5 - _scipy("fresnel_cos")(x) + 1j * (0.5 - _scipy("fresnel_sin")(x))
    return missing * np.exp(-0.5j * np.pi * x * x)  # g + if


def _fresnel_f(w: np.ndarray) -> np.ndarray:
    return _fresnel_waves(w).imag / w**0.25


def _fresnel_g(w: np.ndarray) -> np.ndarray:
    return _fresnel_waves(w).real / w**0.75


def _fresnel_far(size: Any) -> Any:
    x = jnp.clip(size, 1.6, 1e8)  # 1/2 from there on, to rounding
    w = x**-4
    f, g = _smooth(_fresnel_f, 1e-9, 1.6**-4, 34, w) / x, _smooth(_fresnel_g, 1e-9, 1.6**-4, 34, w) / x**3
    angle = 0.5 * np.pi * jnp.remainder(x * x, 4)
    return f, g, jnp.sin(angle), jnp.cos(angle)


@_in_double
def fresnel_sin(x: Any) -> Any:
    size = jnp.abs(x)
    f, g, sin, cos = _fresnel_far(size)
    near = size**3 * _smooth(_sin_near, 0, 1.6**4, 18, size**4)
    return jnp.sign(x) * jnp.where(size < 1.6, near, 0.5 - f * cos - g * sin) + 0 * jnp.where(jnp.isnan(x), x, 0)


@_in_double
def fresnel_cos(x: Any) -> Any:
    size = jnp.abs(x)
    f, g, sin, cos = _fresnel_far(size)
    near = size * _smooth(_cos_near, 0, 1.6**4, 18, size**4)
    return jnp.sign(x) * jnp.where(size < 1.6, near, 0.5 + f * sin - g * cos) + 0 * jnp.where(jnp.isnan(x), x, 0)


# Several arguments


def _positive(function: Callable) -> Callable:
    """nan where one of the leading arguments is not positive."""

    def call(*arrays: Any) -> Any:
        shapes = functools.reduce(jnp.logical_and, [x > 0 for x in arrays[:-1]])
        return jnp.where(shapes, function(*arrays), jnp.nan)

    return call


def _normal_limit(function: Callable, sign: int) -> Callable:
    """The function of (a, x) up to a = 1e15, and beyond it the normal distribution to which it tends: jax would not return."""

    def call(a: Any, x: Any) -> Any:
        huge = a > 1e15
        inner = jnp.clip(function(jnp.where(huge, 1, a), jnp.where(huge, 1, x)), 0, 1)
        deviation = jnp.where(jnp.isinf(a) & jnp.isfinite(x), -jnp.inf, (x - a) / jnp.sqrt(a))
        return jnp.where(x < 0, jnp.nan, jnp.where(huge, special.ndtr(sign * deviation), inner))

    return _in_double(_positive(call))


igamma, igammac = _normal_limit(special.gammainc, 1), _normal_limit(special.gammaincc, -1)
betainc = _widened(_positive(special.betainc))


@_widened
def zeta(x: Any, q: Any) -> Any:
    """Σ (q + n)⁻ˣ over n ≥ 0 for x > 1; at x = ∞ the first term."""
    first = (x == jnp.inf) & (q > 0)
    inner = special.zeta(jnp.where(first, 2, x), q)
    return jnp.where(first, jnp.power(q, -x), jnp.where(x < 1, jnp.nan, inner))


def bitcast(x: Any, *, dtype: Any) -> Any:
    """The same bytes as another dtype; a last axis appears (or goes) where the sizes of the elements differ."""
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = jnp.stack([jnp.real(x), jnp.imag(x)], -1)
        if x.dtype == dtype:
            return x
    return lax.bitcast_convert_type(x, dtype)
