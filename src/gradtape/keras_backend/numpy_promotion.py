"""How operands of Keras's array functions become tensors of one dtype.

Keras promotes as JAX does: Python numbers are weak (they take the width of the tensor that they meet), integers become
floating where the function needs it, and nothing narrower than 64 bits becomes 64 bits wide. Each function of `numpy_*`
is one of our ops behind one of the makers below. In a training step next to nothing needs a cast: that is seen first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common import dtypes as keras_dtypes

from gradtape.keras_backend.core import convert_to_tensor
from gradtape.ops import elementwise
from gradtape.values import dtypes
from gradtape.values.convert import Convertible, operand
from gradtape.values.tensor import Tensor

_INEXACT = dtypes.TRAINABLE
_BOOL = np.dtype(bool)
_WEAK = (bool, int, float)


# Dtypes


def result_type(*kinds: Any) -> str:
    """Keras's common dtype of names, DTypes and Python types (``int`` and ``float`` are weak)."""
    return _result_type(config.floatx(), *[k.name if isinstance(k, dtypes.DType) else k for k in kinds])


@cache
def _result_type(floatx: str, *kinds: Any) -> str:
    return keras_dtypes.result_type(*kinds)


def kind_of(x: Any) -> Any:
    """What an operand brings to a promotion: a Python number its type, anything else its dtype's name."""
    return type(x) if type(x) in _WEAK else tensor(x).dtype.name


# Operands


def tensor(x: Any) -> Tensor:
    """x as a tensor, in its own dtype."""
    return x if isinstance(x, Tensor) else convert_to_tensor(x)


def in_dtype(x: Any, dtype: str) -> Tensor:
    """x as a tensor of the named dtype."""
    return elementwise.cast(x, dtype) if isinstance(x, Tensor) else convert_to_tensor(x, dtype)


def together(*values: Any, also: tuple = ()) -> list[Tensor]:
    """The values as tensors of their common dtype; ``also`` has further kinds that count, ``(float,)`` for one."""
    operands = [x if isinstance(x, Tensor) or type(x) in _WEAK else convert_to_tensor(x) for x in values]
    kinds = {kind_of(x) for x in operands}
    target = result_type(*kinds, *also)
    return operands if kinds == {target} else [in_dtype(x, target) for x in operands]


def matched(x1: Any, x2: Any, *, integers: bool = True) -> Any:
    """Two values as tensors of their common dtype, which is floating if integers are not wanted."""
    x1 = x1._operand() if isinstance(x1, Convertible) else x1
    x2 = x2._operand() if isinstance(x2, Convertible) else x2
    if isinstance(x1, Tensor):
        dtype = x1._array.dtype
        if isinstance(x2, Tensor):
            if dtype is x2._array.dtype and (integers or dtype in _INEXACT):
                return x1, x2
        elif _takes(dtype, x2, integers):
            return x1, operand(x2, dtype)
    elif isinstance(x2, Tensor) and _takes(x2._array.dtype, x1, integers):
        return operand(x1, x2._array.dtype), x2
    return together(x1, x2, also=() if integers else (float,))


def _takes(dtype: np.dtype, number: Any, integers: bool) -> bool:
    """Whether a Python number becomes one of the dtype, as nearly always: what follows needs no promotion then."""
    kind = type(number)
    return (kind is float or kind is int) and (dtype in _INEXACT or (integers and kind is int and dtype.kind in "iu"))


def floating(x: Any) -> Tensor:
    """x as a tensor; integers and booleans become floating."""
    x = tensor(x)
    return x if x._array.dtype in _INEXACT else elementwise.cast(x, result_type(x.dtype, float))


def numeric(x: Any) -> Tensor:
    """x as a tensor; booleans become integers."""
    x = tensor(x)
    return x if x._array.dtype is not _BOOL else elementwise.cast(x, "int32")


def of_integers(op: Callable) -> Callable:
    """What an op that refuses booleans makes of them: the same as of 0 and 1."""
    return lambda *operands: op(*map(numeric, operands))


# Makers: from one of our ops to a function of Keras


def unary(op: Callable, *, booleans: Callable | None = None) -> Callable:
    """A function that keeps the dtype of its argument; booleans go to ``booleans`` if the op refuses them."""

    def call(x: Any) -> Tensor:
        x = tensor(x)
        return op(x) if booleans is None or x._array.dtype is not _BOOL else booleans(x)

    return _named(call, op)


def floating_unary(op: Callable) -> Callable:
    """A function whose result is floating (or complex) whatever it is given."""

    def call(x: Any) -> Tensor:
        if type(x) is not Tensor or x._array.dtype not in _INEXACT:
            x = floating(x)
        return op(x)

    return _named(call, op)


def binary(op: Callable, *, booleans: Callable | None = None) -> Callable:
    """A function of the common dtype of its arguments; two booleans go to ``booleans`` if the op refuses them."""

    def call(x1: Any, x2: Any) -> Tensor:
        if type(x1) is not Tensor or type(x2) is not Tensor or x1._array.dtype is not x2._array.dtype:
            x1, x2 = matched(x1, x2)
        return op(x1, x2) if booleans is None or x1._array.dtype is not _BOOL else booleans(x1, x2)

    return _named(call, op)


def floating_binary(op: Callable) -> Callable:
    """A function of two arguments whose result is floating (or complex) whatever it is given."""

    def call(x1: Any, x2: Any) -> Tensor:
        return op(*matched(x1, x2, integers=False))

    return _named(call, op)


def _named(call: Callable, op: Callable) -> Callable:
    call.__name__ = getattr(op, "__name__", call.__name__)
    call.__doc__ = op.__doc__
    return call
