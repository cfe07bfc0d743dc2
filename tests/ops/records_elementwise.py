"""Records of gradtape/ops/elementwise.py, in its order."""

import ml_dtypes
import numpy as np
import scipy.special

import gradtape as tf
from gradtape.ops import elementwise as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError


def normal(shape=(2, 3), count=1):
    return lambda rng: [tuple(rng.normal(size=shape) for _ in range(count))]


def between(low, high, shape=(2, 3), count=1):
    return lambda rng: [tuple(rng.uniform(low, high, shape) for _ in range(count))]


def apart(rng):
    """Two arrays whose elements are nowhere close to equal, nor to 0."""
    x = rng.normal(size=(2, 3))
    return [(x + 2 * np.sign(x), x)]


def apart_from_zero(rng):
    x = rng.normal(size=(2, 3))
    return [(x + np.sign(x),)]


def quotient(rng):
    return [(rng.normal(size=(2, 3)), rng.uniform(0.5, 2, (2, 3)))]


def remainders(rng):
    """Quotients are not close to integers."""
    return [(rng.integers(-3, 4, (2, 3)) + 0.4, np.ones((2, 3))), (np.array([2.3, -2.3, 7.1]), np.array([-0.7, 0.9, 2.0]))]


def choices(rng):
    return [(np.array([[True, False, True]]), rng.normal(size=(2, 3)), rng.normal(size=(2, 1)))]


def integers(dtype=np.int32, low=0, high=7, count=2):
    return lambda rng: [tuple(rng.integers(low, high, (2, 3)).astype(dtype) for _ in range(count))]


def booleans(count):
    return lambda rng: [tuple(rng.integers(0, 2, (2, 3)).astype(bool) for _ in range(count))]


def silent(function):
    def call(*arrays):
        with np.errstate(all="ignore"):
            return function(*arrays)

    return call


def unary(name, reference, samples=None, **options):
    return OpRecord(name, getattr(ops, name), samples or normal(), silent(reference), **{"extremes": True, **options})


def binary(name, reference, samples=None, **options):
    options = {"broadcasting": True, "extremes": True, **options}
    return OpRecord(name, getattr(ops, name), samples or normal(count=2), silent(reference), **options)


MIXED = (
    lambda: (tf.constant([1.0]), tf.constant([1.0], tf.float64)),
    INVALID,
    "was expected to be a float tensor but is a double tensor",
)
BOOLEAN = (lambda: (tf.constant([True]), tf.constant([True])), INVALID, "is not in the list of allowed values")
INTEGER = (lambda: (tf.constant([1]),), INVALID, "is not in the list of allowed values")
COMPLEX = (lambda: (tf.constant([1j]), tf.constant([1j])), INVALID, "is not in the list of allowed values")
TEXT = (lambda: (tf.constant(["a"]),), INVALID, "")

# Arithmetic

RECORDS = [
    binary("add", np.add, complex=True, bad=[MIXED, BOOLEAN]),
    binary("subtract", np.subtract, complex=True, bad=[MIXED, BOOLEAN]),
    binary("multiply", np.multiply, complex=True, bad=[MIXED, BOOLEAN]),
    binary("divide", np.divide, quotient, complex=True, bad=[MIXED]),
    binary("floor_divide", lambda x, y: np.floor(x / y), quotient, differentiable=False),
    binary("remainder", np.remainder, remainders),
    unary("negative", np.negative, complex=True),
    unary("reciprocal", np.reciprocal, between(0.5, 2), complex=True, bad=[INTEGER]),
    unary("square", np.square, complex=True),
    binary("power", np.power, between(0.5, 2, count=2), complex=True),
    OpRecord("power", lambda x: ops.power(x, 3.0), normal(), lambda x: x**3, case="of negatives"),
    OpRecord("power", lambda x: ops.power(x, 2), lambda rng: [(np.array([0.0, -1.0, 2.0]),)], np.square, case="square of 0"),
    # Absolute value, sign, rounding
    unary("abs", np.abs, complex=True),
    unary("sign", np.sign, complex=True),
    unary("floor", np.floor, differentiable=False),
    unary("ceil", np.ceil, differentiable=False),
    unary("rint", np.rint, differentiable=False),
    # Exponentials and logarithms
    unary("exp", np.exp, complex=True, bad=[INTEGER]),
    unary("expm1", np.expm1, complex=True),
    unary("log", np.log, between(0.2, 3), complex=True, bad=[INTEGER]),
    unary("log1p", np.log1p, between(-0.5, 3), complex=True),
    unary("sigmoid", scipy.special.expit),
    unary("softplus", lambda x: np.logaddexp(x, 0)),
    unary("sqrt", np.sqrt, between(0.2, 3), complex=True, bad=[INTEGER]),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), between(0.2, 3), complex=True),
    unary("cbrt", np.cbrt, apart_from_zero, bad=[INTEGER]),
    binary("logaddexp", np.logaddexp, bad=[MIXED, COMPLEX]),
    OpRecord("logaddexp", ops.logaddexp, lambda rng: [(np.ones(2), np.ones(2))], np.logaddexp, case="of equals"),
    binary("hypot", np.hypot, bad=[MIXED, COMPLEX]),
    # Trigonometric and hyperbolic
    unary("sin", np.sin, complex=True, bad=[INTEGER]),
    unary("cos", np.cos, complex=True),
    unary("tan", np.tan, complex=True),
    unary("asin", np.arcsin, between(-0.8, 0.8), complex=True),
    unary("acos", np.arccos, between(-0.8, 0.8), complex=True),
    unary("atan", np.arctan, complex=True),
    unary("sinh", np.sinh, complex=True),
    unary("cosh", np.cosh, complex=True),
    unary("tanh", np.tanh, complex=True),
    unary("asinh", np.arcsinh, complex=True),
    # Near 1 acosh loses digits: its derivative has a pole there, and the half types round what the pole is near to.
    unary("acosh", np.arccosh, between(1.5, 3), complex=True),
    unary("atanh", np.arctanh, between(-0.7, 0.7), complex=True),
    binary("atan2", np.arctan2, apart),
    # Special functions
    unary("erf", scipy.special.erf),
    unary("erfc", scipy.special.erfc),
    unary("erfinv", scipy.special.erfinv, between(-0.8, 0.8)),
    unary("lgamma", scipy.special.gammaln, between(0.5, 4)),
    unary("digamma", scipy.special.digamma, between(0.5, 4)),
    OpRecord("polygamma", lambda x: ops.polygamma(x, n=2), between(0.5, 4), lambda x: scipy.special.polygamma(2, x)),
    # Comparison, logic, bits
    *(
        binary(name, getattr(np, name), lambda rng: [(rng.integers(0, 3, (2, 3)).astype(float), np.ones((2, 3)))],
               differentiable=False)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    ),
    *(
        OpRecord(name, getattr(ops, name), booleans(2), getattr(np, name), floating=False, differentiable=False)
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    *(
        OpRecord(name, getattr(ops, name), integers(), getattr(np, name), floating=False, differentiable=False)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd")
    ),
    binary("nextafter", np.nextafter),
    OpRecord("logical_not", ops.logical_not, booleans(1), np.logical_not, floating=False, differentiable=False),
    OpRecord("bitwise_not", ops.bitwise_not, integers(count=1), np.invert, floating=False, differentiable=False),
    *(unary(name, getattr(np, name), differentiable=False) for name in ("isnan", "isinf", "isfinite")),
    unary("zeros_like", np.zeros_like, differentiable=False),
    unary("ones_like", np.ones_like, differentiable=False),
    # Complex parts
    unary("conj", np.conj, complex=True),
    OpRecord("real", lambda x: ops.real(ops.complex(x, x)), normal(), np.copy, dtypes=("float64", "float32")),
    OpRecord("real", ops.real, lambda rng: [(rng.normal(size=3) + 1j * rng.normal(size=3),)], np.real, case="complex",
             floating=False),
    OpRecord("imag", ops.imag, lambda rng: [(rng.normal(size=3) + 1j * rng.normal(size=3),)], np.imag, floating=False),
    OpRecord("complex", ops.complex, normal(count=2), lambda x, y: x + 1j * y, broadcasting=True, same_dtype=False,
             dtypes=("float64", "float32")),
    OpRecord("angle", ops.angle, lambda rng: [(rng.normal(size=3) + 1j * rng.normal(size=3),)], np.angle, floating=False),
    # Selection
    binary("maximum", np.maximum, apart, bad=[MIXED]),
    binary("minimum", np.minimum, apart, bad=[MIXED]),
    OpRecord("where", ops.where, choices, np.where, complex=True),
    # Identity and conversion
    OpRecord("identity", ops.identity, normal(), np.copy, complex=True),
    OpRecord("astype", lambda x: ops.astype(x, dtype=np.dtype(np.float64)), normal(), np.copy, same_dtype=False),
    OpRecord("astype", lambda x: ops.astype(x, dtype=np.dtype(ml_dtypes.bfloat16)), lambda rng: [(np.array([1.0, 2.5, -4.0]),)],
             np.copy, case="to bfloat16", same_dtype=False, order=0, batched=False),
    OpRecord("astype", lambda x: ops.astype(x, dtype=np.dtype(np.int32)), normal(), lambda x: x.astype(np.int32),
             case="to int32", differentiable=False),
    # Composites
    OpRecord("true_divide", ops.true_divide, integers(low=1), np.true_divide, floating=False, differentiable=False),
    OpRecord("cast", lambda x: ops.cast(x, tf.complex128), normal(), lambda x: x.astype(complex), same_dtype=False),
    OpRecord("stop_gradient", ops.stop_gradient, normal(), np.copy, differentiable=False),
]  # fmt: skip
