"""Keras's elementwise functions of numbers: arithmetic, powers, exponentials, trigonometry, rounding, parts of numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src.backend import config

from gradtape.errors import message
from gradtape.keras_backend.numpy_logic import signbit
from gradtape.keras_backend.numpy_promotion import (
    binary,
    floating,
    floating_binary,
    floating_unary,
    in_dtype,
    kind_of,
    numeric,
    of_integers,
    result_type,
    tensor,
    together,
    unary,
)  # fmt: skip
from gradtape.ops import clip as limits
from gradtape.ops import elementwise, guarded, special
from gradtape.ops.numpy_protocol import UFUNCS
from gradtape.values.tensor import Tensor

# Arithmetic

add = binary(elementwise.add, booleans=elementwise.logical_or)
subtract = binary(elementwise.subtract)
multiply = binary(elementwise.multiply, booleans=elementwise.logical_and)
divide = true_divide = floating_binary(elementwise.divide)
divide_no_nan = floating_binary(guarded.divide_no_nan)
negative = unary(elementwise.negative)
reciprocal = floating_unary(elementwise.reciprocal)


def _fmod(x: Tensor, y: Tensor) -> Tensor:
    """The remainder with the sign of x."""
    down = elementwise.less(x, elementwise.zeros_like(x))
    size = elementwise.where(down, elementwise.negative(x), x)  # unlike abs, with a derivative at 0
    rest = elementwise.remainder(size, elementwise.abs(y))
    return elementwise.where(down, elementwise.negative(rest), rest)


floor_divide = binary(elementwise.floor_divide, booleans=of_integers(elementwise.floor_divide))
mod = binary(elementwise.remainder, booleans=of_integers(elementwise.remainder))
fmod = binary(_fmod, booleans=of_integers(_fmod))
power = binary(elementwise.power, booleans=of_integers(elementwise.power))


square = unary(elementwise.square, booleans=of_integers(elementwise.square))


# The larger and the smaller

maximum = binary(elementwise.maximum, booleans=elementwise.logical_or)
minimum = binary(elementwise.minimum, booleans=elementwise.logical_and)


def _over_nan(choose: Callable) -> Callable:
    """A choice of two in which a number wins over nan."""

    def op(x: Tensor, y: Tensor) -> Tensor:
        x, y = elementwise.where(elementwise.isnan(x), y, x), elementwise.where(elementwise.isnan(y), x, y)
        return choose(x, y)

    return op


fmax = binary(_over_nan(elementwise.maximum), booleans=elementwise.logical_or)
fmin = binary(_over_nan(elementwise.minimum), booleans=elementwise.logical_and)


def clip(x: Any, x_min: Any, x_max: Any) -> Tensor:
    """x limited to [x_min, x_max]; either may be None, and x_max wins where they cross."""
    x = numeric(x)
    if x_min is None or x_max is None:
        x = x if x_min is None else maximum(x, x_min)
        return x if x_max is None else minimum(x, x_max)
    if type(x_min) is type(x_max) is float and x.dtype.is_floating:
        return limits.clip(x, min(x_min, x_max), x_max)
    x, low, high = together(x, x_min, x_max)
    return limits.clip(x, elementwise.minimum(low, high), high)


# Powers, exponentials, logarithms

sqrt = floating_unary(elementwise.sqrt)
cbrt = floating_unary(elementwise.cbrt)
exp = floating_unary(elementwise.exp)
exp2 = floating_unary(UFUNCS[np.exp2])
expm1 = floating_unary(elementwise.expm1)
log = floating_unary(elementwise.log)
log2 = floating_unary(UFUNCS[np.log2])
log10 = floating_unary(UFUNCS[np.log10])
log1p = floating_unary(elementwise.log1p)
logaddexp = floating_binary(elementwise.logaddexp)
logaddexp2 = floating_binary(UFUNCS[np.logaddexp2])
i0 = floating_unary(special.bessel_i0)


def ldexp(x1: Any, x2: Any) -> Tensor:
    """x1 · 2^x2 for integers x2."""
    exponent = tensor(x2)
    if not exponent.dtype.is_integer:
        text = f"ldexp exponent must be an integer type. Received: x2 dtype={exponent.dtype.name}"
        raise TypeError(message(text, received=exponent.dtype.name, fix="keras.ops.cast(x2, 'int32')"))
    x = in_dtype(x1, result_type(kind_of(x1), kind_of(x2), float))
    half = elementwise.floor_divide(exponent, 2)  # two steps: 2^x2 alone may overflow where the product does not
    for part in (half, elementwise.subtract(exponent, half)):
        x = elementwise.multiply(x, elementwise.power(2.0, elementwise.cast(part, x.dtype)))
    return x


# Trigonometry

sin = floating_unary(elementwise.sin)
cos = floating_unary(elementwise.cos)
tan = floating_unary(elementwise.tan)
sinh = floating_unary(elementwise.sinh)
cosh = floating_unary(elementwise.cosh)
tanh = floating_unary(elementwise.tanh)
arcsin = floating_unary(elementwise.asin)
arccos = floating_unary(elementwise.acos)
arctan = floating_unary(elementwise.atan)
arcsinh = floating_unary(elementwise.asinh)
arccosh = floating_unary(elementwise.acosh)
arctanh = floating_unary(elementwise.atanh)
arctan2 = floating_binary(elementwise.atan2)
hypot = floating_binary(elementwise.hypot)
deg2rad = floating_unary(UFUNCS[np.deg2rad])
rad2deg = floating_unary(UFUNCS[np.rad2deg])


def sinc(x: Any) -> Tensor:
    """sin(πx) / (πx), and 1 at 0."""
    x = elementwise.multiply(floating(x), math.pi)
    zero = elementwise.equal(x, elementwise.zeros_like(x))
    safe = elementwise.where(zero, elementwise.ones_like(x), x)
    around = 1 - elementwise.square(x) / 6  # has the first derivatives that are wanted at 0
    return elementwise.where(zero, around, elementwise.divide(elementwise.sin(safe), safe))


# Absolute value, sign, rounding


absolute = abs = unary(elementwise.abs, booleans=elementwise.identity)
sign = unary(elementwise.sign)
floor = floating_unary(elementwise.floor)
ceil = floating_unary(elementwise.ceil)


fabs = floating_unary(elementwise.abs)


def trunc(x: Any) -> Tensor:
    """x without its fraction."""
    x = tensor(x)
    if x.dtype.is_integer or x.dtype.is_bool:
        return x
    down = elementwise.less(x, elementwise.zeros_like(x))
    return elementwise.where(down, elementwise.ceil(x), elementwise.floor(x))


def round(x: Any, decimals: int = 0) -> Tensor:
    """The nearest number of so many decimals, halves to even."""
    x = numeric(x)
    if x.dtype.is_integer:
        return x if decimals >= 0 else elementwise.cast(round(elementwise.cast(x, config.floatx()), decimals), x.dtype)
    if x.dtype.is_complex:
        return elementwise.complex(round(elementwise.real(x), decimals), round(elementwise.imag(x), decimals))
    if not decimals:
        return elementwise.rint(x)
    scale = 10.0 ** builtins.abs(decimals)  # a whole number, unlike its inverse
    there, back = (elementwise.multiply, elementwise.divide) if decimals > 0 else (elementwise.divide, elementwise.multiply)
    return back(elementwise.rint(there(x, scale)), scale)


nextafter = floating_binary(elementwise.nextafter)


def _heaviside(x: Tensor, y: Tensor) -> Tensor:
    zero, one = elementwise.zeros_like(x), elementwise.ones_like(x)
    step = elementwise.where(elementwise.less(x, zero), zero, elementwise.where(elementwise.equal(x, zero), y, one))
    return elementwise.where(elementwise.isnan(x), x, step)


heaviside = floating_binary(_heaviside)


# Whole numbers


gcd = binary(elementwise.gcd)


def _lcm(x: Tensor, y: Tensor) -> Tensor:
    divisor = elementwise.gcd(x, y)
    zero, one = elementwise.zeros_like(divisor), elementwise.ones_like(divisor)
    divisor = elementwise.where(elementwise.equal(divisor, zero), one, divisor)  # of 0 and 0
    return elementwise.abs(elementwise.multiply(elementwise.floor_divide(x, divisor), y))


lcm = binary(_lcm)


# Parts of complex numbers


def real(x: Any) -> Tensor:
    x = tensor(x)
    return elementwise.real(x) if x.dtype.is_complex else x


def imag(x: Any) -> Tensor:
    x = tensor(x)
    return elementwise.imag(x) if x.dtype.is_complex else elementwise.zeros_like(x)


def conjugate(x: Any) -> Tensor:
    x = tensor(x)
    return elementwise.conj(x) if x.dtype.is_complex else x


conj = conjugate


def angle(x: Any) -> Tensor:
    """The argument of a complex number; that of a real one is 0 or π."""
    x = floating(x)
    if x.dtype.is_complex:
        return elementwise.angle(x)
    zero = elementwise.zeros_like(x)
    turned = elementwise.where(signbit(x), elementwise.add(zero, math.pi), zero)
    return elementwise.where(elementwise.isnan(x), x, turned)


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with numbers in the place of nan and the infinities; for these, the ends of the dtype's range."""
    x = tensor(x)
    if x.dtype.is_complex:
        return elementwise.complex(*[nan_to_num(part(x), nan, posinf, neginf) for part in (elementwise.real, elementwise.imag)])
    if not x.dtype.is_floating:
        return x
    top = float(x.dtype.max) if posinf is None else posinf
    bottom = float(x.dtype.min) if neginf is None else neginf
    zero = elementwise.zeros_like(x)
    infinite = elementwise.where(elementwise.greater(x, zero), elementwise.add(zero, top), elementwise.add(zero, bottom))
    x = elementwise.where(elementwise.isinf(x), infinite, x)
    return elementwise.where(elementwise.isnan(x), elementwise.add(zero, nan), x)
