"""The bits of integers, with everything but integers refused, and shifts that are defined for every count."""

from __future__ import annotations

from typing import Any

from gradtape.core.op import pair
from gradtape.ops import elementwise
from gradtape.ops.arguments import not_allowed
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

_INTEGERS = "int8, int16, int32, int64, uint8, uint16, uint32, uint64"


def _checked(label: str, x: Tensor) -> Tensor:
    if x._array.dtype.kind not in "iu":
        raise not_allowed(label, x._array.dtype, _INTEGERS)
    return x


def combine(name: str, x: Any, y: Any) -> Tensor:
    """A function of the bits of two integers."""
    function = getattr(elementwise, name)
    x, y = pair(function.op, x, y)
    return function(_checked(function.op.label, x), y)


def invert(x: Any) -> Tensor:
    """Every bit turned over."""
    return elementwise.bitwise_not(_checked("Invert", convert_to_tensor(x)))


def shift(name: str, x: Any, y: Any) -> Tensor:
    """A shift by 0 up to the width less 1; counts outside are taken as the nearest of these, as TensorFlow does on a CPU."""
    function = getattr(elementwise, name)
    x, y = pair(function.op, x, y)
    last = 8 * _checked(function.op.label, x)._array.dtype.itemsize - 1
    if y._array.dtype == x._array.dtype:
        y = elementwise.maximum(elementwise.minimum(y, last), 0)
    return function(x, y)
