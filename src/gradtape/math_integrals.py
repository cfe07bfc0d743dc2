"""The functions of `tf.math` without elementary form; `gradtape.math` loads them when one is touched."""

from __future__ import annotations

from typing import Any

from gradtape import math_special as special
from gradtape.ops import special as _special
from gradtape.ops.special import bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, erfcinv, ndtri
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

__all__ = [
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "erfcinv", "igamma", "igammac", "ndtri", "polygamma",
    "sobol_sample", "special", "zeta",
]  # fmt: skip


def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a); differentiable in both."""
    return _special.igamma(a, x)


def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """1 - igamma(a, x), exact where that is small."""
    return _special.igammac(a, x)


def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b); no gradient flows to a and b."""
    return _special.checked_betainc(a, b, x)


def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The derivative of order a of digamma at x; nan where a is not a whole number ≥ 0. No gradient flows to a."""
    return _special.polygamma(a, convert_to_tensor(x))


def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """Σ (q + n)⁻ˣ over n ≥ 0; no gradient flows to x."""
    return _special.zeta(x, q)


def sobol_sample(dim: Any, num_results: Any, skip: Any = 0, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Points of the Sobol sequence in the unit cube, one per row; needs SciPy."""
    return _special.sobol(dim, num_results, skip, dtype)
