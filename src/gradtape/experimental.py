"""What may still change: bridges to other libraries."""

from gradtape.derivatives.symbolic import Formula, to_sympy
from gradtape.function.bridge import from_jax, to_jax

__all__ = ["Formula", "from_jax", "to_jax", "to_sympy"]
