"""Keras's array functions beyond Keras's own tests: elementwise functions, logic, creation, products.

The interface itself, derivatives against numerical ones, compiled = eager = NumPy where numbers end, dtypes, bad input.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape import keras
from gradtape.testing import check_gradients

ops = keras.ops

# The interface


def signatures_on_jax() -> dict[str, list[tuple[str, object]]]:
    """The functions of Keras's jax backend: their parameters, with the text of the defaults."""
    source = Path(importlib.util.find_spec("keras").origin).parent / "src" / "backend" / "jax" / "numpy.py"
    functions = [f for f in ast.parse(source.read_text()).body if isinstance(f, ast.FunctionDef) and f.name[0] != "_"]
    return {f.name: parameters(f.args) for f in functions}


def parameters(args: ast.arguments) -> list[tuple[str, object]]:
    defaults = [None] * (len(args.args) - len(args.defaults)) + list(args.defaults)
    found = list(zip(args.args, defaults)) + list(zip(args.kwonlyargs, args.kw_defaults))
    return [(arg.arg, inspect.Parameter.empty if d is None else ast.literal_eval(d)) for arg, d in found]


def test_every_function_that_keras_looks_up_is_there_with_its_arguments():
    from keras.src.backend import numpy as ours

    wrong = {}
    for name, expected in signatures_on_jax().items():
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        found = [p for p in inspect.signature(getattr(ours, name)).parameters.values() if p.kind not in variadic]
        if [(p.name, p.default) for p in found] != expected:
            wrong[name] = [str(p) for p in found]
    assert not wrong


# Derivatives: functions that are more than one op, at the places where their parts meet

X = np.array([[-1.7, -0.6, 0.3], [0.8, 1.4, 2.6]])
Y = np.array([[0.7, -1.1, 0.4], [-0.5, 2.2, 1.9]])
POSITIVE = np.abs(X)
HOLES = np.array([[True, False, False], [False, True, False]])
MATRIX = np.array([[0.3, -1.2, 0.5], [1.1, 0.7, -0.4]])

SMOOTH = {
    "sinc": (ops.sinc, [np.array([-1.0, -0.3, 0.0, 0.8])]),
    "cbrt": (ops.cbrt, [X]),
    "exp2, log2, log10": (lambda x: [ops.exp2(x), ops.log2(x), ops.log10(x)], [POSITIVE]),
    "logaddexp": (lambda x, y: [ops.logaddexp(x, y), ops.logaddexp2(x, y)], [X, Y]),
    "logaddexp of equals": (lambda x: ops.logaddexp(x, np.array([-1.0, 700.0])), [np.array([-1.0, 700.0])]),
    "hypot": (ops.hypot, [X, Y]),
    "angles": (lambda x: [ops.deg2rad(x), ops.rad2deg(x), ops.arctan2(x, 2.0)], [X]),
    "mod": (lambda x, y: [ops.mod(x, y), ops.fmod(x, y)], [X, Y]),
    "fmod of 0": (lambda x: ops.fmod(x, 1.5), [np.array([0.0, 2.0, -2.0])]),
    "ldexp": (lambda x: ops.ldexp(x, np.array([3, -2, 0])), [X]),
    "divide_no_nan": (lambda x, y: ops.divide_no_nan(x, ops.where(HOLES, 0.0, y)), [X, Y]),
    "fmax": (lambda x, y: [ops.fmax(ops.where(HOLES, np.nan, x), y), ops.fmin(y, ops.where(HOLES, np.nan, x))], [X, Y]),
    "clip": (lambda x, low: [ops.clip(x, low, 1.0), ops.clip(x, -0.5, 0.5)], [X, np.array(-1.0)]),
    "where": (lambda x, y: ops.where(HOLES, x * y, 2), [X, Y]),
    "nan_to_num": (lambda x: ops.nan_to_num(ops.where(HOLES, np.nan, x * x)), [X]),
    "i0": (ops.i0, [X]),
    "linspace": (lambda a, b: ops.linspace(a, b, 4, axis=-1), [X, Y]),
    "linspace and its step": (lambda a, b: ops.linspace(a, b, 4, endpoint=False, retstep=True), [X, Y]),
    "logspace": (lambda a, b: ops.logspace(a, b, 3, base=2), [X, Y]),
    "geomspace": (lambda a, b: ops.geomspace(a, b, 3), [X, 2.5 * X]),
    "full": (lambda v: [ops.full((2, 3), v, "float64"), ops.full_like(X, v)], [np.array(0.4)]),
    "vander": (lambda x: [ops.vander(x), ops.vander(x, 2, increasing=True)], [np.array([0.0, -0.5, 2.0])]),
    "triangles": (lambda x: [ops.tril(x, -1) + ops.triu(x, 1), ops.tril(x[0])], [MATRIX]),
    "meshgrid": (lambda x, y: [a * b for a, b in [ops.meshgrid(x, y)]], [X[0], Y[0]]),
    "matmul": (lambda x, y: [ops.matmul(x, y), ops.matmul(x, y[:, 0]), ops.matmul(x[0], y)], [MATRIX, MATRIX.T]),
    "dot": (lambda x, y: [ops.dot(x, y), ops.dot(x, 2.0), ops.inner(x, x), ops.vdot(x, x)], [MATRIX, MATRIX.T]),
    "tensordot": (lambda x, y: [ops.tensordot(x, y, ((1, 0), (0, 1))), ops.tensordot(x, y, 1)], [MATRIX, MATRIX.T]),
    "outer": (lambda x, y: [ops.outer(x, y), ops.kron(x, y)], [MATRIX, X]),
    "einsum": (lambda x, y: [ops.einsum("...ij,jk->...k", x, y), ops.einsum("ij,ij", x, x)], [MATRIX, MATRIX.T]),
    "cross": (lambda x, y: ops.cross(x, y), [MATRIX, X]),
    "cross of shorter ones": (lambda x, y: [ops.cross(x, y), ops.cross(x, x[:, ::-1])], [MATRIX[:, :2], X]),
    "cross along others": (lambda x, y: ops.cross(x, y, axisa=0, axisc=0), [MATRIX.T, X]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    function, arguments = SMOOTH[name]
    check_gradients(function, arguments, order=1)


@pytest.mark.parametrize("name", ["logaddexp of equals", "hypot", "geomspace", "vander"])
def test_second_derivatives(name):
    function, arguments = SMOOTH[name]
    check_gradients(function, arguments, order=2)


def test_derivatives_at_corners():
    """At a corner a number, not nan: of a length at 0, of a bound, of a choice between equals."""
    x = tf.constant([0.0, 1.0])
    for function in (
        lambda: ops.hypot(x, 0.0), lambda: ops.clip(x, 0.0, 1.0), lambda: ops.fmax(x, x), lambda: ops.heaviside(x, x),
        lambda: ops.divide_no_nan(x, 0.0), lambda: ops.power(x, 2), lambda: ops.vander(x),
    ):  # fmt: skip
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.sum(function())
        assert np.isfinite(tape.gradient(y, x)).all()


# Where numbers end: compiled = eager = NumPy

EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 1e300, 1e-300, 7.0])
WHOLE = np.array([0, 1, -1, 7, -12, 18], np.int32)
UNARY = (
    "absolute angle fabs arccos arcsin arctan arcsinh arctanh cbrt ceil cos deg2rad rad2deg exp exp2 expm1 floor isfinite "
    "isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not nan_to_num negative real imag reciprocal round sign "
    "signbit sin sinh sqrt square tan tanh trunc"
).split()
BINARY = (
    "add subtract multiply divide mod fmod maximum minimum fmax fmin arctan2 hypot logaddexp heaviside nextafter "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor isclose"
).split()
OF_INTEGERS = "gcd lcm bitwise_and bitwise_or bitwise_xor maximum mod fmod add multiply".split()
COMPOSED = "exp2 log2 isneginf nan_to_num round signbit trunc fmod fmax heaviside isclose lcm".split()  # of several ops


def cases():
    """(name, arguments) for every function of the lists, over all numbers and pairs of them."""
    pairs = [a.ravel() for a in np.meshgrid(EDGES, EDGES)]
    nonzero = WHOLE[1:]
    whole = [a.ravel() for a in np.meshgrid(WHOLE, nonzero)]
    return [(n, [EDGES]) for n in UNARY] + [(n, pairs) for n in BINARY] + [(n, whole) for n in OF_INTEGERS]


def assert_numpys(found, name, arguments):
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(*arguments)
    if name in ("mod", "fmod"):  # of 1e300 by small numbers nothing but the size is certain
        sensible = np.abs(np.asarray(arguments[0], float)) < 1e15
        found, wanted = np.asarray(found)[sensible], wanted[sensible]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-307, err_msg=name)


def test_edges_are_numpys():
    for name, arguments in cases():
        assert_numpys(getattr(ops, name)(*arguments), name, arguments)


def test_edges_are_the_same_compiled():
    pytest.importorskip("jax")
    names, given = zip(*[(name, arguments) for name, arguments in cases() if name in COMPOSED])
    compiled = tf.function(lambda given: [getattr(ops, name)(*arguments) for name, arguments in zip(names, given)])
    for name, arguments, found in zip(names, given, compiled(tf.nest.map_structure(tf.constant, list(given))), strict=True):
        assert_numpys(found, name, arguments)


def test_grids_are_numpys():
    for arguments in ({}, {"num": 5, "endpoint": False}, {"num": 1}, {"num": 0}, {"num": 4, "dtype": "int32"}):
        np.testing.assert_allclose(ops.linspace(-3, 7.5, **arguments), np.linspace(-3, 7.5, **arguments), rtol=1e-6)
        np.testing.assert_allclose(ops.geomspace(1.0, 99.0, **arguments), np.geomspace(1.0, 99.0, **arguments), rtol=1e-6)
    for n in range(2, 60):
        np.testing.assert_array_equal(ops.linspace(0, n - 1, n, dtype="int32"), np.arange(n))
    for arguments in ((5,), (2, 9, 3), (9, 2, -2), (0, 1, 0.25), (3, 3)):
        np.testing.assert_array_equal(ops.arange(*arguments), np.arange(*arguments))
    assert ops.arange(3).dtype.name == "int32"
    assert ops.arange(3.0).dtype.name == ops.arange(0, 3, 0.5).dtype.name == "float32"


# Dtypes

KINDS = "bool uint8 uint16 uint32 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()


@given(st.sampled_from(KINDS), st.sampled_from([*KINDS, bool, int, float]))
def test_promotion_is_that_of_jax(first, second):
    """As in jax with 64 bits, except that nothing narrower becomes 64 bits wide; Python's float is float32 among integers."""
    jax = pytest.importorskip("jax")
    x = ops.cast([1, 1], first)
    y = second(1) if isinstance(second, type) else ops.cast([1, 1], second)
    with jax.enable_x64(True):
        wanted = jax.numpy.result_type(first, y if isinstance(second, type) else second).name
    if not any("64" in kind.removeprefix("complex") for kind in (first, str(second))) or (second is float and "int" in first):
        wanted = {"int64": "int32", "float64": "float32"}.get(wanted, wanted)
    for swapped in (False, True):
        assert ops.add(*((y, x) if swapped else (x, y))).dtype.name == wanted
        chosen = ops.where(True, *((y, x) if swapped else (x, y)))
        assert chosen.dtype.name == wanted


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_stays(dtype):
    x = ops.cast([[0.3, 0.6], [0.7, 0.9]], dtype)
    unary = "exp2 log2 sinc cbrt i0 deg2rad nan_to_num round trunc arctanh reciprocal tril".split()
    binary = "add divide power hypot logaddexp fmod heaviside matmul kron inner nextafter divide_no_nan fmax".split()
    for name in unary + binary:
        function = getattr(ops, name)
        found = function(x) if name in unary else function(x, x)
        wide = [ops.cast(x, "float32")] * (1 if name in unary else 2)
        assert found.dtype.name == dtype, name
        np.testing.assert_allclose(ops.cast(found, "float32"), function(*wide), rtol=0.03, err_msg=name)
        if name in binary[:4]:
            assert function(x, 2.0).dtype.name == function(2, x).dtype.name == dtype


def test_variables_are_operands_in_the_dtype_of_the_scope():
    from keras.src.backend import AutocastScope

    v = keras.Variable(np.ones((2, 2), np.float32))
    x = ops.ones((2, 2), "float16")
    with AutocastScope("float16"):
        assert {f(x, v).dtype.name for f in (ops.add, ops.matmul, ops.divide)} == {"float16"}
        assert ops.exp(v).dtype.name == "float16"
    assert ops.add(x, v).dtype.name == "float32"


def test_products_of_small_integers_and_booleans():
    x = np.full((3, 200), 100, np.int8)
    assert ops.matmul(x, x.T).numpy()[0, 0] == ops.einsum("ij,kj->ik", x, x).numpy()[0, 0] == 200 * 100 * 100
    yes = np.ones((300, 300), bool)
    for product in (ops.matmul(yes, yes), ops.dot(yes, yes), ops.tensordot(yes, yes, 1), ops.einsum("ij,jk->ik", yes, yes)):
        assert product.dtype.name == "bool"
        assert product.numpy().all()


# Bad input


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ops.ldexp(1.0, 2.5), TypeError, "exponent must be an integer"),
        (lambda: ops.matmul(2.0, [1.0]), ValueError, "at least one axis"),
        (lambda: ops.add(np.ones((2, 3)), np.ones((4,))), tf.errors.InvalidArgumentError, "Incompatible shapes"),
        (lambda: ops.hypot(1j, 1.0), tf.errors.InvalidArgumentError, "complex"),
        (lambda: ops.signbit(1j), ValueError, "complex"),
        (lambda: ops.gcd(1.5, 2), tf.errors.InvalidArgumentError, "gcd"),
        (lambda: ops.bitwise_and(1.5, 2), tf.errors.InvalidArgumentError, "bitwise_and"),
        (lambda: ops.cross(np.ones(4), np.ones(4)), ValueError, "2 or 3"),
        (lambda: ops.vander(np.ones((2, 2))), ValueError, "1-dimensional"),
        (lambda: ops.tensordot(np.ones((2, 3)), np.ones((2, 3)), 1), ValueError, "shape-mismatch"),
        (lambda: ops.where(True, 1.0), ValueError, "both"),
        (lambda: ops.meshgrid([1, 2], indexing="yx"), ValueError, "'xy' or 'ij'"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("space", [ops.linspace, ops.logspace, ops.geomspace])
def test_a_negative_number_of_samples_is_refused(space):
    assert space(1, 2, 0).shape == (0,)
    with pytest.raises(ValueError, match="Number of samples, -1, must be non-negative"):
        space(1, 2, -1)
