"""`tf.autograph`: Python's control flow over tensors. Eager code needs no conversion: it runs as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.autograph import experimental
from gradtape.errors import message, shown
from gradtape.ops.printing import print as _print
from gradtape.scope import missing

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]
__getattr__ = missing(__name__, __all__)


def to_code(entity: Callable, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The source code that a function becomes when its control flow is converted; needs diastatic-malt."""
    try:
        import malt
    except ImportError as error:
        raise ImportError(
            message(
                "tf.autograph.to_code needs the package diastatic-malt, which converts control flow.",
                fix="pip install diastatic-malt; inspect.getsource(function) shows what eager code runs",
            )
        ) from error
    return malt.to_code(entity, recursive=recursive)


def to_graph(entity: Callable, recursive: bool = True, experimental_optional_features: Any = None) -> Callable:
    """The function itself: eager code needs no conversion."""
    if not callable(entity):
        raise TypeError(message("to_graph expects a function.", received=shown(entity), fix="to_graph(function)"))
    return entity


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accepted: there is no conversion to tell about."""


def trace(*args: Any) -> None:
    """Print what is known while a function is converted; eagerly, the values."""
    _print(*args)
