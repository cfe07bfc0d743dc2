"""Arrays of SymPy expressions, and the array dialect on them: what `symbolic` runs kernels and derivative rules on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from gradtape.derivatives.namespaces import Namespace
from gradtape.xp import numpy as NUMPY


class Expressions:
    """An array of SymPy expressions; to kernels and rules it is an array of shape and dtype of the numbers it stands for."""

    __slots__ = ("dtype", "value")
    __array_ufunc__ = None

    def __init__(self, value: np.ndarray, dtype: Any) -> None:
        self.value = value  # dtype object; conditions are SymPy's booleans
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize


class Missing(Exception):
    """A function of the dialect has no formula."""


# From numbers to expressions


def _number(value: Any, kind: Any) -> Any:
    """The shortest exact-looking expression that rounds to this number in its dtype: 0.1 is 1/10, 1.5707963… is π/2."""
    import sympy

    if isinstance(value, (bool, np.bool_)):
        return sympy.true if value else sympy.false
    if isinstance(value, (int, np.integer)):
        return sympy.Integer(int(value))
    if isinstance(value, (complex, np.complexfloating)):
        part = np.dtype(np.float32 if kind.itemsize == 8 else np.float64)
        return _number(value.real, part) + sympy.I * _number(value.imag, part)
    value = float(value)
    if not math.isfinite(value):
        return sympy.nan if math.isnan(value) else sympy.oo if value > 0 else -sympy.oo
    for limit in (1, 10, 100, 1000) if abs(value) < 1e9 else ():
        near = Fraction(value).limit_denominator(limit)
        if kind.type(near.numerator / near.denominator) == kind.type(value):
            return sympy.Rational(near.numerator, near.denominator)
    known = _famous(kind).get(abs(value))
    if known is not None:
        return known if value > 0 else -known
    return sympy.Float(value) if kind.itemsize == 8 else sympy.Float(str(kind.type(value)))


@functools.cache
def _famous(kind: Any) -> dict[float, Any]:
    """Irrational numbers that rules and programs write as floats, by their value in this dtype."""
    import sympy as s

    bases = s.pi, s.E, s.sqrt(2), s.sqrt(3), s.sqrt(s.pi), s.sqrt(2 * s.pi), s.sqrt(2 / s.pi), s.log(2), s.log(10)
    found = [factor * base for b in bases for base in (b, 1 / b) for factor in (1, 2, s.Rational(1, 2))]
    return {float(kind.type(float(e))): e for e in found}


def expressions(x: Any) -> Expressions:
    """Numbers, or an array of them, as expressions."""
    if type(x) is Expressions:
        return x
    array = np.asarray(x)
    return _made(np.frompyfunc(lambda value: _number(value, array.dtype), 1, 1)(array), array.dtype)


def _made(value: Any, dtype: Any) -> Expressions:
    """What a NumPy function made of object arrays (of rank 0, it is the bare object); its zeros are Python's."""
    import sympy

    found = np.empty(np.shape(value), object)
    found[...] = np.frompyfunc(sympy.sympify, 1, 1)(value)
    return Expressions(found, np.dtype(dtype))


# The namespace


def _entry(name: str, rule: Callable) -> Callable:
    def call(*args: Any, **attributes: Any) -> Any:
        if not any(type(x) is Expressions for x in args):
            return getattr(NUMPY, name)(*args, **attributes)
        return rule(name, *args, **attributes)

    return call


def _missing(name: str, *_: Any, **__: Any) -> Any:
    raise Missing(name)


def _softplus(s: Any, x: Any) -> Any:
    return s.log(1 + s.exp(x))


def _bessel(function: str, order: int) -> Callable:
    return lambda s, x: getattr(s, function)(order, x)


def _finite(s: Any, x: Any) -> Any:
    return s.false if x.has(s.nan, s.oo, s.zoo) else s.true


def _given(s: Any, x: Any, condition: Any, holds: bool) -> Any:
    """x, of which only the values matter where the condition holds (or not): rules guard poles by asking twice."""
    return x.replace(
        lambda e: isinstance(e, s.Piecewise) and e.args[0][1] == condition, lambda e: e.args[0 if holds else 1][0]
    )


FORMULAS: dict[str, Callable] = {
    **{
        name: lambda s, *x, name=name: getattr(s, name)(*x)
        for name in (
            "exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 erf erfc erfinv digamma "
            "sign floor zeta"
        ).split()
    },
    "add": lambda s, x, y: x + y,
    "subtract": lambda s, x, y: x - y,
    "multiply": lambda s, x, y: x * y,
    "divide": lambda s, x, y: x / y,
    "power": lambda s, x, y: x**y,
    "floor_divide": lambda s, x, y: s.floor(x / y),
    "remainder": lambda s, x, y: x - s.floor(x / y) * y,
    "maximum": lambda s, x, y: s.Max(x, y),
    "minimum": lambda s, x, y: s.Min(x, y),
    "negative": lambda s, x: -x,
    "abs": lambda s, x: s.Abs(x),
    "square": lambda s, x: x**2,
    "reciprocal": lambda s, x: 1 / x,
    "rsqrt": lambda s, x: 1 / s.sqrt(x),
    "expm1": lambda s, x: s.exp(x) - 1,
    "log1p": lambda s, x: s.log(1 + x),
    "sigmoid": lambda s, x: 1 / (1 + s.exp(-x)),
    "softplus": _softplus,
    "ceil": lambda s, x: s.ceiling(x),
    "conj": lambda s, x: s.conjugate(x),
    "real": lambda s, x: s.re(x),
    "imag": lambda s, x: s.im(x),
    "angle": lambda s, x: s.arg(x),
    "complex": lambda s, x, y: x + s.I * y,
    "zeros_like": lambda s, x: s.Integer(0),
    "ones_like": lambda s, x: s.Integer(1),
    "lgamma": lambda s, x: s.loggamma(x) if x.is_positive else s.log(s.Abs(s.gamma(x))),
    "polygamma": lambda s, x, n: s.polygamma(n, x),
    "igamma": lambda s, x, y: s.lowergamma(x, y) / s.gamma(x),
    "igammac": lambda s, x, y: s.uppergamma(x, y) / s.gamma(x),
    "erfcinv": lambda s, x: s.erfinv(1 - x),
    "ndtri": lambda s, x: s.sqrt(2) * s.erfinv(2 * x - 1),
    "dawsn": lambda s, x: s.sqrt(s.pi) / 2 * s.exp(-(x**2)) * s.erfi(x),
    "expint": lambda s, x: s.Ei(x),
    "fresnel_sin": lambda s, x: s.fresnels(x),
    "fresnel_cos": lambda s, x: s.fresnelc(x),
    "spence": lambda s, x: s.polylog(2, 1 - x),
    "bessel_i0": _bessel("besseli", 0),
    "bessel_i1": _bessel("besseli", 1),
    "bessel_i0e": lambda s, x: s.exp(-s.Abs(x)) * s.besseli(0, x),
    "bessel_i1e": lambda s, x: s.exp(-s.Abs(x)) * s.besseli(1, x),
    "bessel_j0": _bessel("besselj", 0),
    "bessel_j1": _bessel("besselj", 1),
    "bessel_k0": _bessel("besselk", 0),
    "bessel_k1": _bessel("besselk", 1),
    "bessel_k0e": lambda s, x: s.exp(x) * s.besselk(0, x),
    "bessel_k1e": lambda s, x: s.exp(x) * s.besselk(1, x),
    "bessel_y0": _bessel("bessely", 0),
    "bessel_y1": _bessel("bessely", 1),
    # A formula stands for numbers at which it has a value: infinite and nan are only those that are written out.
    "isnan": lambda s, x: s.true if x.has(s.nan) else s.false,
    "isinf": lambda s, x: s.true if x.has(s.oo, s.zoo) else s.false,
    "isfinite": _finite,
    "equal": lambda s, x, y: s.Eq(x, y),
    "not_equal": lambda s, x, y: s.Ne(x, y),
    "less": lambda s, x, y: s.Lt(x, y),
    "less_equal": lambda s, x, y: s.Le(x, y),
    "greater": lambda s, x, y: s.Gt(x, y),
    "greater_equal": lambda s, x, y: s.Ge(x, y),
    "logical_and": lambda s, x, y: s.And(x, y),
    "logical_or": lambda s, x, y: s.Or(x, y),
    "logical_xor": lambda s, x, y: s.Xor(x, y),
    "logical_not": lambda s, x: s.Not(x),
    "where": lambda s, c, x, y: s.Piecewise((_given(s, x, c, True), c), (_given(s, y, c, False), True)),
}
"""The elementwise functions: from SymPy itself and the elements to one expression."""


def _elementwise(name: str, *args: Any, **attributes: Any) -> Expressions:
    import sympy

    formula = functools.partial(FORMULAS[name], sympy, **attributes)
    with NUMPY.scope():
        dtype = getattr(NUMPY, name)(*(np.ones((), x.dtype) for x in args), **attributes).dtype
    return _made(np.frompyfunc(formula, len(args), 1)(*(expressions(x).value for x in args)), dtype)


def _astype(name: str, x: Expressions, *, dtype: Any) -> Expressions:
    """Conversion as NumPy does it; between real floating dtypes it changes no formula."""
    import sympy as s

    old, new = x.dtype.kind, np.dtype(dtype).kind
    if old == "b" != new:
        change: Callable = lambda e: s.Piecewise((1, e), (0, True))
    elif new == "b" != old:
        change = lambda e: s.Ne(e, 0)
    elif new in "iu" and old not in "iu":
        change = lambda e: s.sign(s.re(e)) * s.floor(s.Abs(s.re(e)))
    elif old == "c" != new:
        change = s.re
    else:
        return Expressions(x.value, np.dtype(dtype))
    return _made(np.frompyfunc(change, 1, 1)(x.value), dtype)


def _structural(name: str, *args: Any, **attributes: Any) -> Expressions:
    """Functions that move, add or multiply elements: NumPy's own, on arrays of objects. Indices are numbers."""
    values = [x.value if type(x) is Expressions else x if x.dtype.kind in "iu" else expressions(x).value for x in args]
    dtype = next(x.dtype for x in args if type(x) is Expressions)
    return _made(getattr(NUMPY, name)(*values, **attributes), dtype)


def _reducing(name: str, x: Expressions, *, axis: Any = None, keepdims: bool = False) -> Expressions:
    import sympy

    pairwise = {"max": sympy.Max, "min": sympy.Min, "any": sympy.Or, "all": sympy.And}[name]
    axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in np.atleast_1d(axis))
    rest = [i for i in range(x.ndim) if i not in axes]
    rows = x.value.transpose(*rest, *axes).reshape(*(x.shape[i] for i in rest), -1)
    found = np.empty(rows.shape[:-1], object)
    for place in np.ndindex(found.shape):
        found[place] = pairwise(*rows[place])
    return Expressions(np.expand_dims(found, sorted(axes)) if keepdims else found, x.dtype)


def _complex_part(name: str, x: Expressions) -> Expressions:
    """conj, real and imag; of real numbers, though they come from a function that SymPy may take for complex."""
    if x.dtype.kind == "c":
        return _elementwise(name, x)
    return x if name != "imag" else SYMBOLIC.zeros_like(x)


def _adjoint(name: str, x: Expressions) -> Expressions:
    return SYMBOLIC.conj(SYMBOLIC.matrix_transpose(x))


def _put_slice(name: str, x: Expressions, *, index: Any, shape: Any) -> Expressions:
    found = np.zeros(shape, object)
    found[index] = x.value if x.ndim else x.value[()]  # NumPy would put the array of rank 0 itself there
    return _made(found, x.dtype)


_STRUCTURAL = (
    "sum prod cumsum cumprod flip reshape transpose matrix_transpose expand_dims squeeze broadcast_to concatenate stack tile "
    "pad roll repeat getitem take take_transpose take_along_axis along_axis_transpose gather_nd scatter_nd matmul "
    "einsum"
).split()
SYMBOLIC: Any = Namespace(_entry, _missing)  # a function without an entry has no formula
for _names, _function in (
    (FORMULAS, _elementwise), (_STRUCTURAL, _structural), (("max", "min", "any", "all"), _reducing),
    (("conj", "real", "imag"), _complex_part), (("adjoint",), _adjoint), (("astype",), _astype), (("put_slice",), _put_slice),
    (("adjoint_matmul",), lambda name, x, y: SYMBOLIC.matmul(SYMBOLIC.adjoint(x), y)),
    (("matmul_adjoint",), lambda name, x, y: SYMBOLIC.matmul(x, SYMBOLIC.adjoint(y))),
):  # fmt: skip
    SYMBOLIC.give(_names, _function)
# A Python number is weak: it takes the dtype of the array, but is not rounded to it.
SYMBOLIC.operators(Expressions, lambda x, like: Expressions(expressions(x).value, like.dtype))
