"""Keras's comparisons, logic, tests of numbers, bits, and choices by a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import binary, matched, numeric, of_integers, tensor, unary
from gradtape.ops import elementwise, reduce, special
from gradtape.values.tensor import Tensor

# Comparison

equal = binary(elementwise.equal)
not_equal = binary(elementwise.not_equal)
less = binary(elementwise.less, booleans=of_integers(elementwise.less))
less_equal = binary(elementwise.less_equal, booleans=of_integers(elementwise.less_equal))
greater = binary(elementwise.greater, booleans=of_integers(elementwise.greater))
greater_equal = binary(elementwise.greater_equal, booleans=of_integers(elementwise.greater_equal))


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether |x1 - x2| ≤ atol + rtol · |x2|; infinities are close to themselves alone."""
    x1, x2 = matched(x1, x2, integers=False)
    near = elementwise.less_equal(elementwise.abs(x1 - x2), atol + rtol * elementwise.abs(x2))
    near = elementwise.logical_and(near, elementwise.isfinite(x2))
    near = elementwise.logical_or(near, elementwise.equal(x1, x2))
    if not equal_nan:
        return near
    return elementwise.logical_or(near, elementwise.logical_and(elementwise.isnan(x1), elementwise.isnan(x2)))


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    return reduce.all(isclose(x1, x2, rtol, atol, equal_nan))


# Logic


def _truth(x: Any) -> Tensor:
    x = tensor(x)
    return elementwise.not_equal(x, elementwise.zeros_like(x)) if x.dtype.is_complex else elementwise.cast(x, "bool")


def _logical(op: Callable) -> Callable:
    def call(x1: Any, x2: Any) -> Tensor:
        return op(_truth(x1), _truth(x2))

    call.__name__, call.__doc__ = op.__name__, op.__doc__
    return call


logical_and = _logical(elementwise.logical_and)
logical_or = _logical(elementwise.logical_or)
logical_xor = _logical(elementwise.logical_xor)


def logical_not(x: Any) -> Tensor:
    return elementwise.logical_not(_truth(x))


# Tests of numbers

isfinite = unary(elementwise.isfinite)
isinf = unary(elementwise.isinf)
isnan = unary(elementwise.isnan)


def _signed(name: str, test: Callable) -> Callable:
    """A test that needs the sign, which a complex number has not."""

    def call(x: Any) -> Tensor:
        x = numeric(x)
        if x.dtype.is_complex:
            text = f"{name} is not defined for complex numbers."
            raise ValueError(message(text, received=x.dtype.name, expected="real numbers", fix="take keras.ops.real(x)"))
        return test(x)

    call.__name__ = name
    return call


def _infinity(comparison: Callable) -> Callable:
    return lambda x: elementwise.logical_and(elementwise.isinf(x), comparison(x, elementwise.zeros_like(x)))


def _sign_bit(x: Tensor) -> Tensor:
    """Below 0, and of -0 and nan the bit."""
    if x.dtype.is_floating:
        x = special.bitcast(x, dtype=np.dtype(f"int{8 * x.dtype.size}"))
    return elementwise.less(x, elementwise.zeros_like(x))


isposinf = _signed("isposinf", _infinity(elementwise.greater))
isneginf = _signed("isneginf", _infinity(elementwise.less))
signbit = _signed("signbit", _sign_bit)


def isreal(x: Any) -> Tensor:
    x = tensor(x)
    if not x.dtype.is_complex:
        return elementwise.ones_like(_truth(x))
    part = elementwise.imag(x)
    return elementwise.equal(part, elementwise.zeros_like(part))


# Bits


def _bits(op: Callable, *, booleans: Callable | None = None) -> Callable:
    promoted = binary(op, booleans=booleans)

    def call(x: Any, y: Any) -> Tensor:
        return promoted(x, y)

    call.__name__, call.__doc__ = op.__name__, op.__doc__
    return call


def _shift(op: Callable) -> Callable:
    return _bits(op, booleans=of_integers(op))


bitwise_and = _bits(elementwise.bitwise_and)
bitwise_or = _bits(elementwise.bitwise_or)
bitwise_xor = _bits(elementwise.bitwise_xor)
bitwise_invert = bitwise_not = unary(elementwise.bitwise_not)
bitwise_left_shift = left_shift = _shift(elementwise.left_shift)
bitwise_right_shift = right_shift = _shift(elementwise.right_shift)


# Choices


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """x1 where the condition holds, x2 elsewhere; without both, the places where it holds."""
    if x1 is None and x2 is None:
        from gradtape.keras_backend.numpy_index import nonzero

        return nonzero(condition)
    if x1 is None or x2 is None:
        text = "`x1` and `x2` either both should be `None` or both should have non-None value."
        raise ValueError(message(text, received=f"x1={x1}, x2={x2}"))
    return elementwise.where(_truth(condition), *matched(x1, x2))
