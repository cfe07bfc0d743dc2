"""`experimental.to_sympy`: formulas of what a tape recorded, held against its numbers and against SymPy's own derivatives."""

from __future__ import annotations

import pickle
import re
import sys

import numpy as np
import pytest
from dialect_samples import SAMPLES, Sample
from hypothesis import assume, given
from hypothesis import strategies as st
from test_random_programs import Program, numbers, run, smooth

import gradtape as tf
from gradtape.core.op import OPS
from gradtape.derivatives.expressions import FORMULAS, SYMBOLIC, Expressions, Missing, expressions
from gradtape.experimental import Formula, to_sympy
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY

sympy = pytest.importorskip("sympy")


def elements(value) -> list:
    return list(value) if not isinstance(value, sympy.NDimArray) else list(value.reshape(len(value)))


def evaluated(expression, symbols: list, values: list) -> np.ndarray:
    """A formula at numbers; ``symbols`` and ``values`` are lists of the same shapes."""
    names = [s for symbol in symbols for s in ([symbol] if isinstance(symbol, sympy.Symbol) else elements(symbol))]
    at = [float(v) for value in values for v in np.ravel(value)]
    scalar = not isinstance(expression, sympy.NDimArray)
    function = sympy.lambdify(names, [expression] if scalar else elements(expression), modules=["scipy", "numpy"])
    with np.errstate(all="ignore"):
        found = np.array(function(*at), float)
    return found.reshape(() if scalar else expression.shape)


def formula_of(f, *values, **options) -> Formula:
    """The formula of ``f`` at these numbers, by all of its arguments."""
    inputs = [tf.constant(v, tf.float64) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = f(*inputs)
    return to_sympy(tape, result, inputs, **options)


# The namespace

TRANSLATABLE = [
    s for s in SAMPLES
    if s.name in FORMULAS or any(a.dtype.kind in "fc" and a.itemsize > 2 for a in s.arrays)
    if s.name not in dialect.INSPECTION
]  # fmt: skip


def translated(sample: Sample) -> list:
    """The arguments as expressions, but for indices, conditions and the like beside them."""
    inexact = [a.dtype.kind in "fc" for a in sample.arrays]
    return [expressions(a) if i or not any(inexact) else a for a, i in zip(sample.arrays, inexact)]


@pytest.mark.parametrize("sample", TRANSLATABLE, ids=str)
def test_a_function_means_what_it_means_to_numpy(sample):
    try:
        received = getattr(SYMBOLIC, sample.name)(*translated(sample), **sample.attributes)
    except Missing:
        assert sample.name not in FORMULAS
        return
    with NUMPY.scope():
        wanted = getattr(NUMPY, sample.name)(*sample.arrays, **sample.attributes)
    if type(received) is not Expressions:  # nothing but numbers came in
        np.testing.assert_array_equal(received, wanted)
        return
    assert received.dtype == wanted.dtype
    assert received.shape == wanted.shape
    kind = bool if wanted.dtype.kind == "b" else complex
    found = [kind(sympy.N(e, 20) if kind is complex else e) for e in received.value.ravel()]
    single = {np.dtype("float32"), np.dtype("complex64")} & {wanted.dtype, *(a.dtype for a in sample.arrays)}
    close = 1e-6 if single else 1e-11
    np.testing.assert_allclose(np.array(found).reshape(wanted.shape), wanted, close, close)


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (3.0, "float32", "3"), (-0.5, "float64", "-1/2"), (0.1, "float32", "1/10"), (1 / 3, "float64", "1/3"),
        (np.pi, "float64", "pi"), (np.pi / 2, "float32", "pi/2"), (-2 / np.sqrt(np.pi), "float64", "-2/sqrt(pi)"),
        (np.sqrt(2), "float64", "sqrt(2)"), (0.12345, "float64", "0.12345"), (1.23e-7, "float32", "1.23e-7"),
        (np.inf, "float64", "oo"), (-np.inf, "float64", "-oo"), (np.nan, "float64", "nan"), (1 - 2j, "complex64", "1 - 2*I"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_write_them(number, dtype, text):
    found = expressions(np.asarray(number, dtype)).value[()]
    assert re.sub(r"(\.\d*?)0+(?=$|e)", r"\1", str(found)) == text
    np.testing.assert_array_equal(np.asarray(type(number)(found), dtype), np.asarray(number, dtype))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_a_number_survives(number):
    for dtype in (np.float32, np.float64):
        assert dtype(float(expressions(dtype(number)).value[()])) == dtype(number)


# Every elementwise op: the formula of its rule against the numbers of its rule, and against SymPy's derivative

UNCHECKED = {"remainder", "igamma", "igammac", "complex", "real", "imag", "angle"}  # no derivative in SymPy, or complex
ELEMENTWISE = sorted(
    name for name in FORMULAS
    if name in OPS and OPS[name].op.paired and OPS[name].op.rules and name not in UNCHECKED
)  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_elementwise_op(name):
    op = OPS[name]
    at = [1.7 if name == "acosh" else 0.4, 0.7][: len(op.op.inputs)]
    inputs = [tf.constant(v, tf.float64) for v in at]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        result = op(*inputs)
    formula = to_sympy(tape, result, inputs)
    assert not formula.constants
    point = {symbol: sympy.Rational(str(v)) for symbol, v in zip(formula.symbols, at)}

    def agrees(expression, number):
        return abs(complex(sympy.N(expression.subs(point), 20)) - number) <= 1e-11 * max(1, abs(number))

    assert agrees(formula.value, result.numpy())
    for symbol, gradient, number in zip(formula.symbols, formula.gradients, numbers(tape.gradient(result, inputs))):
        assert agrees(gradient, number)
        assert agrees(sympy.diff(formula.value, symbol), number)


# Random programs


@given(smooth)
def test_formulas_of_random_programs_give_the_numbers_of_the_tape(program):
    tape, result, inputs = run(program, persistent=True)
    wanted = numbers(tape.gradient(result, inputs))
    formula = to_sympy(tape, result, inputs, simplify=False)
    assert not formula.constants
    at = program.inputs
    np.testing.assert_allclose(evaluated(formula.value, formula.symbols, at), result.numpy(), 1e-9, 1e-9)
    assert [g is None for g in formula.gradients] == [g is None for g in wanted]
    for gradient, number in zip(formula.gradients, wanted):
        if gradient is not None:
            found = evaluated(gradient, formula.symbols, at)
            np.testing.assert_allclose(found, number, 1e-9, 1e-9 * max(1, np.abs(number).max(initial=0)))


SMOOTH = [
    (1, tf.sin), (1, tf.tanh), (1, tf.sigmoid), (1, tf.math.softplus), (1, lambda x: tf.exp(-x * x)), (1, lambda x: x / 3 + 1),
    (1, lambda x: tf.sqrt(x * x + 0.5)), (1, lambda x: tf.math.log1p(x * x)), (1, lambda x: 2 ** (x / 4)),
    (1, lambda x: x**3 / 10), (1, tf.atan), (1, tf.math.erf), (2, tf.add), (2, tf.multiply), (2, tf.subtract),
    (2, lambda x, y: x / (1 + y * y)), (2, lambda x, y: (x * x + 1) ** (y / 5)), (2, lambda x, y: tf.atan2(x, y * y + 1)),
]  # fmt: skip


class Scalars(Program):
    """A program of smooth scalar steps."""

    def __call__(self, *inputs):
        values = list(inputs)
        for which, first, second in self.steps:
            count, step = SMOOTH[which]
            values.append(step(*(values[i % len(values)] for i in (first, second)[:count])))
            assume(abs(float(values[-1])) < 30)
        return values[-1]


scalar_programs = st.builds(
    Scalars,
    st.lists(st.just(()), min_size=1, max_size=2),
    st.lists(st.tuples(st.integers(0, len(SMOOTH) - 1), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3),
    st.integers(0, 99),
)


@given(scalar_programs)
def test_simplified_formulas_of_scalar_programs_are_their_derivatives(program):
    tape, result, inputs = run(program, persistent=True)
    wanted = numbers(tape.gradient(result, inputs))
    formula = to_sympy(tape, result, inputs)
    np.testing.assert_allclose(evaluated(formula.value, formula.symbols, program.inputs), result.numpy(), 1e-10, 1e-12)
    for symbol, gradient, number in zip(formula.symbols, formula.gradients, wanted):
        assert (gradient is None) == (number is None)
        exact = evaluated(sympy.diff(formula.value, symbol), formula.symbols, program.inputs)
        np.testing.assert_allclose(exact, 0 if number is None else number, 1e-8, 1e-9)
        if gradient is not None:
            np.testing.assert_allclose(evaluated(gradient, formula.symbols, program.inputs), number, 1e-8, 1e-10)


# What the formulas look like


@pytest.mark.parametrize(
    ("f", "at", "value", "gradient"),
    [
        (lambda x: x**2 + 3 * x + 1, 2.0, "x**2 + 3*x + 1", "2*x + 3"),
        (lambda x: 5 - x, 2.0, "5 - x", "-1"),
        (lambda x: 1 / x, 2.0, "1/x", "-1/x**2"),
        (lambda x: tf.sin(x) * tf.exp(x), 2.0, "exp(x)*sin(x)", "(sin(x) + cos(x))*exp(x)"),
        (lambda x: tf.sqrt(x * x + 1), 2.0, "sqrt(x**2 + 1)", "x/sqrt(x**2 + 1)"),
        (lambda x: tf.math.erf(x), 2.0, "erf(x)", "2*exp(-x**2)/sqrt(pi)"),
        (lambda x: tf.maximum(x, 1.0), 2.0, "Max(1, x)", "Piecewise((1, x >= 1), (0, True))"),
        (lambda x: tf.abs(x), 2.0, "Abs(x)", "sign(x)"),
        (lambda x: tf.where(x > 1, x * x, 7.0), 2.0, "x**2", "2*x"),  # a condition is a value: this branch was taken
        (lambda x: tf.where(x > 1, x * x, 7.0), 0.0, "7", "0"),
        (lambda x: x * tf.stop_gradient(x), 2.0, "2*x", "2"),
        (lambda x: tf.constant(0.25, tf.float64) - x, 2.0, "1/4 - x", "-1"),
        (lambda x: tf.reduce_sum(x**2), [1.0, 2.0], "x_0**2 + x_1**2", "[2*x_0, 2*x_1]"),
        (lambda x: tf.reduce_mean(x), [1.0, 2.0], "(x_0 + x_1)/2", "[1/2, 1/2]"),
        (lambda x: x[0] * x[-1], [1.0, 2.0, 3.0], "x_0*x_2", "[x_2, 0, x_0]"),
        (lambda x: tf.reduce_max(x), [1.0, 2.0], "Max(x_0, x_1)", None),
        (lambda x: tf.reduce_sum(x @ x), [[1.0, 2.0], [0.0, 1.0]], None, None),
        (lambda x: 2 * x, [1.0, 2.0], "[2*x_0, 2*x_1]", "[2, 2]"),
    ],
)  # fmt: skip
def test_a_formula_reads_well(f, at, value, gradient):
    formula = formula_of(f, at)
    assert value is None or str(formula.value) == value
    assert gradient is None or str(formula.gradients[0]) == gradient
    x = tf.constant(at, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = f(x)
    np.testing.assert_allclose(evaluated(formula.value, formula.symbols, [at]), result.numpy(), 1e-12)
    np.testing.assert_allclose(evaluated(formula.gradients[0], formula.symbols, [at]), tape.gradient(result, x).numpy(), 1e-12)


def test_logsumexp_without_its_guard_against_overflow():
    formula = formula_of(tf.reduce_logsumexp, [1.0, 2.0])
    assert str(formula.value) == "log(exp(x_0) + exp(x_1))"


def test_second_derivatives_from_nested_tapes():
    x = tf.Variable(0.5, name="x")
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.sin(x**2)
        slope = inner.gradient(y, x)
    value, curvature = to_sympy(outer, slope, x)
    symbol = sympy.Symbol("x", real=True)
    assert sympy.simplify(value - sympy.diff(sympy.sin(symbol**2), symbol)) == 0
    assert sympy.simplify(curvature - sympy.diff(sympy.sin(symbol**2), symbol, 2)) == 0


def test_complex_numbers_have_the_gradient_that_the_tape_has():
    z = tf.constant(1 + 2j)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = tf.math.real(z * z) + tf.abs(z)
    formula = to_sympy(tape, y, z)
    assert formula.symbols.is_real is None
    found = complex(sympy.N(formula.gradients.subs(formula.symbols, 1 + 2 * sympy.I)))
    assert abs(found - tape.gradient(y, z).numpy()) < 1e-6


# Names and structures


def test_names():
    w, b = tf.Variable(1.0, name="dense/kernel"), tf.Variable(2.0)
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = w * x + b
    assert str(to_sympy(tape, y, [w, x, b]).value) == "dense_kernel*x + y"
    formula = to_sympy(tape, y, {"mass": w, "speed": x, "offset": b})
    assert str(formula.value) == "mass*speed + offset"
    assert {k: str(g) for k, g in formula.gradients.items()} == {"mass": "speed", "speed": "mass", "offset": "1"}
    assert str(to_sympy(tape, y, (w, {"a": [x]}, b)).gradients) == "(x, {'a': [dense_kernel]}, 1)"


def test_many_sources_are_numbered_and_twice_the_same_is_one():
    inputs = [tf.constant(float(i)) for i in range(4)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        y = tf.add_n([x * x for x in inputs])
    assert str(to_sympy(tape, y, inputs).value) == "x0**2 + x1**2 + x2**2 + x3**2"
    assert str(to_sympy(tape, y, [inputs[0], inputs[0]]).gradients) == "[2*x, 2*x]"


def test_a_name_that_is_taken():
    x, other = tf.Variable(1.0, name="x"), tf.Variable(2.0, name="x")
    tensor = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        y = x * other * tensor
    assert {s.name for s in to_sympy(tape, y, [x, other, tensor]).symbols} == {"x", "x2", "y"}


def test_unconnected_sources_and_constant_targets():
    x, y = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = x * x
    assert to_sympy(tape, z, [x, y]).gradients[1] is None
    value, gradient = to_sympy(tape, tf.constant(4.0), x)
    assert (value, gradient) == (4, None)
    value, gradient = to_sympy(tape, x, x)
    assert (str(value), gradient) == ("x", 1)


def test_several_targets_are_added():
    x = tf.Variable(2.0, name="x")
    with tf.GradientTape() as tape:
        targets = {"square": x * x, "cube": x * x * x}
    value, gradient = to_sympy(tape, targets, x)
    assert {k: str(v) for k, v in value.items()} == {"square": "x**2", "cube": "x**3"}
    assert sympy.expand(gradient) == sympy.sympify("3*x**2 + 2*x").subs("x", sympy.Symbol("x", real=True))


def test_a_source_in_the_middle():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        middle = tf.reduce_sum(tf.sort(x)) * 2
        y = middle**2
    assert str(to_sympy(tape, y, middle)) == "(x**2, 2*x)"  # what is behind it, a sort, does not matter
    z = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        middle = z**3
        y = tf.sin(middle)
    formula = to_sympy(tape, y, {"z": z, "m": middle})
    assert str(formula.value) == "sin(m)"
    assert {k: str(g) for k, g in formula.gradients.items()} == {"z": "3*z**2*cos(m)", "m": "cos(m)"}


def test_a_formula_can_be_stored():
    formula = formula_of(lambda x: x * np.array([1.0, 2.0]) + np.array([1.0, 2.0]), [3.0, 4.0])
    again = pickle.loads(pickle.dumps(formula))
    assert again == formula
    assert (again.symbols, again.constants) == (formula.symbols, formula.constants)


# Constants


def test_constants_that_the_tape_did_not_keep_are_symbols_and_reported():
    x, data = tf.Variable([1.0, 2.0], name="x"), np.array([3.0, 4.0], np.float32)
    other = tf.Variable(5.0, name="other")
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x + data) * other
    formula = to_sympy(tape, y, x)
    assert formula.constants == {"other": "variable 'other:0'", "c1": "operand y of add, shape (2,)"}
    assert {s.name for s in formula.value.free_symbols} == {"x_0", "x_1", "c1_0", "c1_1", "other"}
    assert str(formula.gradients) == "[other, other]"


def test_arrays_that_a_rule_reads_are_numbers():
    x, data = tf.Variable([1.0, 2.0], name="x"), tf.constant([3.0, 0.5])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * data)
    assert str(to_sympy(tape, y, x)) == "(3*x_0 + x_1/2, [3, 1/2])"


def test_a_constant_of_rank_0_is_known_wherever_it_is_used_again():
    x, two = tf.Variable(1.0, name="x"), tf.constant(2.0)
    with tf.GradientTape() as tape:
        y = (x + two) * (x - two) + two
    assert sympy.expand(to_sympy(tape, y, x).value) == sympy.Symbol("x", real=True) ** 2 - 2


# The tape


def test_a_one_shot_tape_is_used_up_and_a_persistent_one_is_not():
    x = tf.Variable(2.0, name="x")
    with tf.GradientTape() as tape:
        y = x * x
    to_sympy(tape, y, x)
    with pytest.raises(RuntimeError, match="can only be used to compute one set"):
        tape.gradient(y, x)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    records = dict(tape.records)
    assert to_sympy(tape, y, x) == to_sympy(tape, y, x)
    assert tape.records == records
    assert tape.gradient(y, x).numpy() == 4.0


def test_nothing_is_recorded_by_an_outer_tape():
    x = tf.Variable(2.0, name="x")
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = x * x
        before = len(outer.records)
        to_sympy(tape, y, x)
        assert len(outer.records) == before


# Errors


def recorded(f, *values):
    inputs = [tf.constant(v) for v in values]
    tape = tf.GradientTape(persistent=True)
    with tape:
        tape.watch(inputs)
        result = f(*inputs)
    return tape, result, inputs


@pytest.mark.parametrize(
    ("f", "value", "words"),
    [
        (tf.linalg.inv, [[2.0, 1.0], [1.0, 3.0]], "cannot write inv as a formula.*function inv"),
        (tf.sort, [2.0, 1.0], "cannot write sort as a formula"),
        (tf.custom_gradient(lambda x: (x * 1.0, lambda g: g)), 2.0, "gradient function of the user's own"),
    ],
    ids=["inv", "sort", "custom_gradient"],
)
def test_an_op_without_a_formula_is_named(f, value, words):
    tape, result, inputs = recorded(f, value)
    with pytest.raises(tf.errors.UnimplementedError, match=f"(?s){words}"):
        to_sympy(tape, result, inputs)


def test_large_arrays_are_refused():
    tape, result, inputs = recorded(lambda x: tf.reduce_sum(x * x), np.ones(100, np.float32))
    with pytest.raises(ValueError, match=r"(?s)x is too large.*\(100,\), 100 elements.*max_size"):
        to_sympy(tape, result, inputs)
    assert str(to_sympy(tape, result, inputs, max_size=100, simplify=False).gradients[0][7]) == "2*x_7"
    tape, result, inputs = recorded(lambda x: x[:, None] * x[None, :], np.ones(10, np.float32))
    with pytest.raises(ValueError, match="A result of multiply is too large"):
        to_sympy(tape, result, inputs)


def test_a_variable_that_changed_is_refused():
    x = tf.Variable(2.0, name="x")
    with tf.GradientTape() as tape:
        y = x * x
        x.assign(3.0)
        z = y * x * x
    with pytest.raises(ValueError, match=r"(?s)A variable changed while the tape recorded.*2\.0 and 3\.0"):
        to_sympy(tape, z, x)


@pytest.mark.parametrize("bad", [3.0, "text", np.ones(2)], ids=["number", "text", "array"])
def test_sources_and_targets_are_tensors_or_variables(bad):
    tape, result, inputs = recorded(lambda x: x * x, 2.0)
    with pytest.raises(TypeError, match="as a source"):
        to_sympy(tape, result, bad)
    with pytest.raises(TypeError, match="as a target"):
        to_sympy(tape, bad, inputs)


def test_other_bad_input():
    tape, result, inputs = recorded(lambda x: x * x, 2.0)
    with pytest.raises(TypeError, match="reads a GradientTape"):
        to_sympy(result, tape, inputs)
    with pytest.raises(TypeError, match=r"(?s)formulas of numbers.*string"):
        to_sympy(tape, tf.constant("text"), inputs)


def test_without_sympy_the_error_names_the_extra(monkeypatch):
    tape, result, inputs = recorded(lambda x: x * x, 2.0)
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ImportError, match=r"gradtape\[symbolic\]"):
        to_sympy(tape, result, inputs)
