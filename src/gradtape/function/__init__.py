"""`function`: the same step as one XLA program.

The module is the decorator itself: ``gradtape.function`` can be called, and ``from gradtape.function import function`` works.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from gradtape.function import control  # noqa: F401  # loops and branches in a function become part of its program
from gradtape.function.decorator import ConcreteFunction, Function, function

__all__ = ["ConcreteFunction", "Function", "function"]


class _Module(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


sys.modules[__name__].__class__ = _Module
sys.modules[__name__].__doc__ = function.__doc__
