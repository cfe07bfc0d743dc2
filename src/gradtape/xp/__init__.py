"""Array namespaces: NumPy and jax speaking one closed dialect (`dialect.NAMES`). Knows nothing of tensors or tapes."""

from collections.abc import Callable
from typing import Any

WHEN_JAX_LOADS: list[Callable[[Any], None]] = []
"""Called with it when the jax namespace has been loaded, which is when the first jax array shows up."""
