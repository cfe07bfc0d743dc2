"""Operators of Tensor and Variable: they are the ops themselves."""

from __future__ import annotations

from typing import Any

from gradtape.core.variable import Variable
from gradtape.ops import contract, elementwise
from gradtape.values.tensor import Tensor


def _reflected(function: Any) -> Any:
    return lambda self, other: function(other, self)


for _symbol, _function in {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.true_divide,
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder, "pow": elementwise.power, "matmul": contract.matmul,
}.items():  # fmt: skip
    for _class in (Tensor, Variable):
        setattr(_class, f"__{_symbol}__", _function)
        setattr(_class, f"__r{_symbol}__", _reflected(_function))
for _class in (Tensor, Variable):
    _class.__neg__ = elementwise.negative
    _class.__abs__ = elementwise.abs
