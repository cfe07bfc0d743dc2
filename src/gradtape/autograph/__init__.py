"""`tf.autograph`: Python's control flow over tensors in compiled functions. Eager code runs as it is written."""

from __future__ import annotations

from typing import Any

from gradtape.autograph import experimental
from gradtape.function.autograph import set_verbosity, to_code, to_graph
from gradtape.scope import missing

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]
__getattr__ = missing(__name__, __all__)


def trace(*args: Any) -> None:
    """Print what is known while a function is traced; eagerly, the values."""
    print(*args)
