"""Methods of `GradientTape` that live above the core; what they need is loaded when they are called."""

from __future__ import annotations

from typing import Any

from gradtape.core.tape import GradientTape


def _sparse_jacobian(self: GradientTape, target: Any, source: Any, coloring: Any = None) -> Any:
    from gradtape.derivatives import sparse

    return sparse.sparse_jacobian(self, target, source, coloring)


_sparse_jacobian.__doc__ = """The Jacobian of one target by one source as a scipy.sparse array: see `autodiff.sparse_jacobian`.

The pattern is read from the tape; `autodiff.coloring(autodiff.jacobian_sparsity(f, x))`, made once, saves finding it again.
"""
GradientTape.sparse_jacobian = _sparse_jacobian  # type: ignore[attr-defined]
