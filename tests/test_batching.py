"""The dialect on values with a hidden leading axis is the stacked dialect on each row."""

from __future__ import annotations

import itertools
import logging

import every_op  # noqa: F401
import numpy as np
import pytest
from dialect_samples import FIRST, SAMPLES, Sample, assert_same

import gradtape as tf
from gradtape.values import batched
from gradtape.values.batched import BATCHED, Batched
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY

BATCHABLE = [s for s in SAMPLES if s.arrays and s.name not in dialect.INSPECTION]
each = pytest.mark.parametrize("sample", BATCHABLE, ids=str)
ROWS = 3


def rows_of(array: np.ndarray, rolled: bool = True) -> np.ndarray:
    """Three different arrays with the same shape, dtype and range of values."""
    rows = [np.roll(array.ravel(), i * rolled).reshape(array.shape) for i in range(ROWS)]
    if array.dtype.kind in "fc":
        rows = [(row * (1 - 0.05 * i)).astype(array.dtype) for i, row in enumerate(rows)]
    return np.stack(rows)


def cases(sample: Sample):
    """Every choice of batched arguments, with the stacked results of the rows."""
    rows = [rows_of(a, sample.name not in dialect.LINALG) for a in sample.arrays]  # a definite matrix stays one
    for chosen in itertools.product([True, False], repeat=len(rows)):
        if any(chosen):
            picked = [[r[i] if batched else a for r, a, batched in zip(rows, sample.arrays, chosen)] for i in range(ROWS)]
            with NUMPY.scope():
                results = [getattr(NUMPY, sample.name)(*p, **sample.attributes) for p in picked]
            several = type(results[0]) is tuple
            expected = tuple(map(np.stack, zip(*results))) if several else np.stack(results)
            yield [(r, True) if batched else (a, False) for r, a, batched in zip(rows, sample.arrays, chosen)], expected


def run(sample: Sample, arguments, inside):
    """The batched call, with ``inside`` applied to every array."""
    values = [Batched(inside(a)) if batched else inside(a) for a, batched in arguments]
    with BATCHED.scope():
        result = getattr(BATCHED, sample.name)(*values, **sample.attributes)
    if type(result) is tuple:
        assert all(type(part) is Batched for part in result)
        return tuple(part.value for part in result)
    assert type(result) is Batched
    return result.value


@each
def test_batched_numpy_is_stacked_rows(sample):
    for arguments, expected in cases(sample):
        assert_same(run(sample, arguments, lambda a: a), expected, sample.tolerance)


@each
def test_batched_tensors_are_stacked_rows(sample):
    for arguments, expected in cases(sample):
        result = run(sample, arguments, wrap)
        if type(result) is tuple:
            result, expected = result[0], expected[0]
        assert isinstance(result, Tensor)
        assert_same(result._array, expected, sample.tolerance)


@pytest.mark.parametrize("sample", [s for s in FIRST if s.arrays and s.name not in dialect.INSPECTION], ids=str)
def test_batched_jax_arrays_are_stacked_rows(sample, compiled_quickly):
    jax = pytest.importorskip("jax")
    from gradtape.xp import jax as JAX

    inputs, expected = zip(*cases(sample))
    with JAX.scope():
        arrays = [[a for a, _ in arguments] for arguments in inputs]

        def all_cases(arrays):  # in one program: compiling takes the time
            placed = ([(x, batched) for x, (_, batched) in zip(xs, arguments)] for xs, arguments in zip(arrays, inputs))
            return [run(sample, arguments, lambda x: x) for arguments in placed]

        for result, right in zip(jax.jit(all_cases, compiler_options=compiled_quickly)(arrays), expected, strict=True):
            assert_same(result, right, sample.tolerance)


@each
def test_without_a_batched_argument_it_is_the_plain_function(sample):
    with NUMPY.scope():
        expected = getattr(NUMPY, sample.name)(*sample.arrays, **sample.attributes)
        assert_same(getattr(BATCHED, sample.name)(*sample.arrays, **sample.attributes), expected)


@pytest.mark.tiny
def test_what_a_batched_value_says_of_itself():
    x = Batched(np.zeros((5, 2, 3), np.float32))
    assert (BATCHED.shape(x), BATCHED.dtype(x), x.ndim, x.size) == ((2, 3), np.float32, 2, 6)
    assert BATCHED.shape(np.zeros((2, 3))) == (2, 3)
    assert BATCHED.dtype(wrap(np.zeros(2, np.float32))) == np.float32


OPERATORS = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "**": lambda x, y: x**y, "//": lambda x, y: x // y, "%": lambda x, y: x % y, "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y, "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}  # fmt: skip


@pytest.mark.tiny
@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_operators_with_numbers_and_arrays_on_either_side(symbol, dtype):
    operator = OPERATORS[symbol]
    rows = np.array([[1.0, 2.5], [0.5, 3.0]], dtype)
    for other in (2, 2.0, np.array([1.5, 2.5], dtype), np.array(2.0, dtype)):
        assert_same(operator(Batched(rows), other).value, operator(rows, other))
        assert_same(operator(other, Batched(rows)).value, operator(other, rows))
    assert_same(operator(Batched(rows), Batched(rows[::-1])).value, operator(rows, rows[::-1]))
    assert_same((-Batched(rows)).value, -rows)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_batch_may_be_empty_or_one(rows):
    x = Batched(np.ones((rows, 2, 3)))
    assert BATCHED.sum(x, axis=0).value.shape == (rows, 3)
    assert BATCHED.matmul(x, np.ones((3, 4))).value.shape == (rows, 2, 4)
    assert BATCHED.reshape(x, shape=(-1, 2)).value.shape == (rows, 3, 2)
    assert BATCHED.gather_nd(x, np.array([[0, 1]])).value.shape == (rows, 1)


@pytest.mark.tiny
def test_what_numpy_refuses_is_refused():
    """Vectors with a batch axis would look like matrices."""
    for x, y in [((3, 2), (2, 2)), ((3, 2, 2), (3, 2))]:
        with pytest.raises(ValueError, match="ndims must be >= 2"):
            BATCHED.matmul(Batched(np.ones(x)), Batched(np.ones(y)))
    with pytest.raises(ValueError):
        BATCHED.add(Batched(np.ones((3, 2))), np.ones(3))


def test_a_function_without_a_rule_runs_in_a_loop_and_says_so_once(monkeypatch, caplog):
    monkeypatch.setattr(NUMPY, "softsign", lambda x, y, *, power: x / (1 + np.abs(y)) ** power, raising=False)
    monkeypatch.setattr(batched, "_said", set())
    x, y = np.arange(6.0).reshape(3, 2), np.array([1.0, -2.0])
    with caplog.at_level(logging.WARNING, logger="gradtape"):
        for _ in range(2):
            result = BATCHED.softsign(Batched(x), y, power=2)
            assert_same(result.value, NUMPY.softsign(x, y, power=2))
    assert [r.getMessage() for r in caplog.records] == ["No batching rule for softsign: the Jacobian runs it in a loop."]


def test_no_function_of_the_dialect_needs_the_loop():
    rules = {**vars(type(BATCHED)), **vars(BATCHED)}
    assert not [name for name in dialect.NAMES if name not in rules]


def test_an_unknown_function_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no function 'svd_of_nothing'"):
        BATCHED.svd_of_nothing  # noqa: B018


@pytest.mark.tiny
def test_a_jacobian_through_many_rules_is_the_looped_one():
    x = tf.constant(np.linspace(0.3, 1.7, 6).reshape(2, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        xp = batched.RECORDED
        y = xp.matmul(xp.tanh(x), xp.matrix_transpose(x))
        y = xp.concatenate(xp.cumprod(y, axis=1), xp.sort(y, axis=0), axis=0)
        y = xp.take(y, np.array([3, 0, 0]), axis=0) / xp.sum(xp.exp(y))
    fast = tape.jacobian(y, x)
    slow = tape.jacobian(y, x, experimental_use_pfor=False)
    assert_same(fast, slow)
