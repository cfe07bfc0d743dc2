"""`tf.autograph.experimental`: marks on functions and loops that a compiled function reads."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from gradtape.scope import missing

__all__ = ["Feature", "do_not_convert", "set_loop_options"]
__getattr__ = missing(__name__, __all__)


class Feature(enum.Enum):
    """Optional parts of the conversion."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def do_not_convert(func: Callable | None = None) -> Callable:
    """Decorator: leave the control flow of this function as it is."""
    if func is None:
        return do_not_convert

    if hasattr(func, "__dict__"):
        func.__gradtape_unconverted__ = True  # type: ignore[attr-defined]
    return func


def set_loop_options(
    parallel_iterations: Any = None, swap_memory: Any = None, maximum_iterations: Any = None, shape_invariants: Any = None
) -> None:
    """Accepted inside a loop: eager loops run one step after another."""
