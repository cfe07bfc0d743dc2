"""Special functions on NumPy arrays: SciPy's, which is loaded when the first one runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.xp.poles import noted

_SINGLE = np.dtype(np.float32)


@functools.cache
def _scipy(name: str) -> Callable:
    import scipy.special

    return getattr(scipy.special, name)


def real_only(*arrays: Any) -> None:
    """Refuse what is not real and floating: SciPy would convert integers, and extend some functions to the complex plane."""
    for x in arrays:
        if x.dtype.kind in "biucO":
            kind = "string" if x.dtype.kind == "O" else x.dtype.name
            raise TypeError(f"Value for attr 'T' of {kind} is not in the list of allowed values: bfloat16, half, float, double")


def _special(name: str, output: int | None = None) -> Callable:
    """SciPy's function of that name; ``output`` picks one of several results."""

    def call(*arrays: np.ndarray) -> Any:
        real_only(*arrays)
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"):
            if dtype.itemsize == 2:  # SciPy has no loop for the half types
                arrays = tuple(x.astype(_SINGLE) for x in arrays)
            out = _scipy(name)(*arrays)
            return noted((out if output is None else out[output]).astype(dtype))

    return call


bessel_i0, bessel_i0e, bessel_i1, bessel_i1e = map(_special, ("i0", "i0e", "i1", "i1e"))
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = map(_special, ("j0", "j1", "y0", "y1"))
bessel_k0, bessel_k0e, bessel_k1, bessel_k1e = map(_special, ("k0", "k0e", "k1", "k1e"))
dawsn, expint, spence, ndtri, erfcinv = map(_special, ("dawsn", "expi", "spence", "ndtri", "erfcinv"))
_zeta, _gammainc, _gammaincc, _betainc = map(_special, ("zeta", "gammainc", "gammaincc", "betainc"))
_fresnel_sin, _fresnel_cos = _special("fresnel", 0), _special("fresnel", 1)


def fresnel_sin(x: np.ndarray) -> np.ndarray:
    """∫₀ˣ sin(πt²/2) dt"""
    return _fresnel_sin(_squarable(x))


def fresnel_cos(x: np.ndarray) -> np.ndarray:
    """∫₀ˣ cos(πt²/2) dt"""
    return _fresnel_cos(_squarable(x))


def _squarable(x: np.ndarray) -> np.ndarray:
    """Numbers whose square overflows (SciPy answers nan) made a little smaller: the value is 1/2 long before."""
    return np.clip(x, -1e100, 1e100) if x.dtype == np.float64 else x


def zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Σ (q + n)⁻ˣ over n ≥ 0 for x > 1; at x = ∞ the first term (SciPy says nan)."""
    out = _zeta(x, q)
    with np.errstate(all="ignore"):
        return np.where((x == np.inf) & (q > 0), np.power(q, -x), out).astype(x.dtype)


def igamma(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a) for a > 0 (SciPy answers the limit at a = 0)."""
    return noted(np.where(a > 0, _gammainc(a, x), np.asarray(np.nan, a.dtype)))


def igammac(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """1 - igamma(a, x), exact where that is small."""
    return noted(np.where(a > 0, _gammaincc(a, x), np.asarray(np.nan, a.dtype)))


def betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b) for a, b > 0 (SciPy answers the limits at 0)."""
    return noted(np.where((a > 0) & (b > 0), _betainc(a, b, x), np.asarray(np.nan, a.dtype)))


def bitcast(x: np.ndarray, *, dtype: Any) -> np.ndarray:
    """The same bytes as another dtype; a last axis appears (or goes) where the sizes of the elements differ."""
    dtype = np.dtype(dtype)
    x = np.ascontiguousarray(x).reshape(x.shape)
    if x.dtype.itemsize == dtype.itemsize:
        return x.view(dtype).copy()
    if x.dtype.itemsize > dtype.itemsize:
        parts = x.dtype.itemsize // dtype.itemsize
        return x.reshape(*x.shape, 1).view(dtype).reshape(*x.shape, parts).copy()
    return x.view(dtype).reshape(x.shape[:-1]).copy()
