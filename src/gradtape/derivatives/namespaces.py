"""What the namespaces of this package share: the dialect on values of one's own, with Python's operators on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY

_ARITHMETIC = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "matmul": "matmul"
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"
}  # fmt: skip


class Namespace:
    """The dialect. ``entry(name, rule)`` makes a function; one that has no rule of its own gets ``otherwise``."""

    scope = staticmethod(NUMPY.scope)

    def __init__(self, entry: Callable[[str, Callable], Callable], otherwise: Callable) -> None:
        self._entry = entry
        self._otherwise = otherwise
        for name in dialect.CREATION:
            setattr(self, name, getattr(NUMPY, name))

    @staticmethod
    def shape(x: Any) -> tuple[int, ...]:
        return x.shape

    @staticmethod
    def dtype(x: Any) -> np.dtype:
        return x.dtype

    def give(self, names: Iterable[str], rule: Callable) -> None:
        """Let these functions follow ``rule(name, …)``."""
        for name in names:
            setattr(self, name, self._entry(name, rule))

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("_") or not hasattr(NUMPY, name):
            raise AttributeError(f"The array dialect has no function {name!r}.")
        self.give((name,), self._otherwise)
        return getattr(self, name)

    def operators(self, kind: type, number: Callable[[Any, Any], Any] = lambda x, like: np.asarray(x, like.dtype)) -> None:
        """Give Python's operators to the values of a class; ``number`` makes a value of a Python number."""
        for symbol, name in _ARITHMETIC.items():
            setattr(kind, f"__{symbol}__", self._operator(name, number))
            setattr(kind, f"__r{symbol}__", self._operator(name, number, reflected=True))
        for symbol, name in _COMPARISONS.items():
            setattr(kind, f"__{symbol}__", self._operator(name, number))
        kind.__neg__ = lambda x: self.negative(x)  # type: ignore[attr-defined,operator]
        kind.__hash__ = object.__hash__  # type: ignore[assignment,method-assign]

    def _operator(self, name: str, number: Callable, reflected: bool = False) -> Callable:
        function = getattr(self, name)

        def call(x: Any, other: Any) -> Any:
            other = number(other, x) if np.isscalar(other) else other
            return function(other, x) if reflected else function(x, other)

        return call
