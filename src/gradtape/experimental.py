"""What may still change: bridges to other libraries."""

from gradtape.derivatives.symbolic import Formula, to_sympy

__all__ = ["Formula", "to_sympy"]
