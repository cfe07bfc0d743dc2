"""Every golden case: importing the modules registers them."""

from spec import (
    cases_custom,
    cases_edges,
    cases_gradient,
    cases_jacobian,
    cases_structures,
    cases_tape,
    cases_tensor,
    cases_variable,
)

__all__ = [
    "cases_custom",
    "cases_edges",
    "cases_gradient",
    "cases_jacobian",
    "cases_structures",
    "cases_tape",
    "cases_tensor",
    "cases_variable",
]
