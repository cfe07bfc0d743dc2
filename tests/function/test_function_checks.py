"""What eager code refuses because of a number, a compiled function refuses too, when its program has run."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function
from gradtape.function.holding import is_held

pytest.importorskip("jax")


def rows() -> tf.TensorArray:
    return tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(tf.constant([1.0, 2.0, 3.0]))


def empty() -> tf.TensorArray:
    return tf.TensorArray(tf.float32, size=3, clear_after_read=False, element_shape=())


def read_in_a_loop(last):
    total = tf.constant(0.0)
    for i in tf.range(20):
        total += rows().read(tf.minimum(i, last))
    return total


def read_in_a_branch(i):
    return tf.cond(i > 2, lambda: rows().read(i), lambda: tf.constant(7.0))


def read_in_a_condition(i):
    return tf.while_loop(lambda i: rows().read(i) < 2.5, lambda i: i + 1, [i])[0]


# by name: a function, and arguments that it takes and refuses
CHECKS = {
    "read": (lambda i: rows().read(i), 2, 3),
    "read before the first": (lambda i: rows().read(i), 0, -1),
    "write": (lambda i: empty().write(i, 1.0).stack(), 2, 3),
    "write before the first": (lambda i: empty().write(i, 1.0).stack(), 0, -1),
    "gather": (lambda i: rows().gather(i), [0, 2], [0, 3]),
    "gather before the first": (lambda i: rows().gather(i), [0, 2], [0, -1]),
    "scatter": (lambda i: empty().scatter(i, tf.constant([1.0, 2.0])).stack(), [0, 2], [0, 3]),
    "read in a loop": (read_in_a_loop, 2, 3),
    "read in a branch": (read_in_a_branch, 2, 3),
    "read in a condition": (read_in_a_condition, 0, -1),
    "Assert": (lambda x: (tf.Assert(x > 0, [x]), x)[1], 1.0, -1.0),
    "assert_equal": (lambda x: (tf.debugging.assert_equal(x, 1.0), x)[1], 1.0, -1.0),
    "assert_none_equal": (lambda x: (tf.debugging.assert_none_equal(x, 1.0), x)[1], -1.0, 1.0),
    "assert_less": (lambda x: (tf.debugging.assert_less(x, [1.0, 5.0]), x)[1], [0.0, 4.0], [0.0, 6.0]),
    "assert_positive": (lambda x: (tf.debugging.assert_positive(x, "ouch"), x)[1], [1.0, 2.0], [1.0, 0.0]),
    "assert_near": (lambda x: (tf.debugging.assert_near(x, 1.0), x)[1], 1.0, 1.1),
    "assert_all_finite": (lambda x: tf.debugging.assert_all_finite(1.0 / x, "ouch"), 1.0, 0.0),
    "check_numerics": (lambda x: tf.debugging.check_numerics(1.0 / x, "ouch"), 1.0, 0.0),
    "check_numerics in a loop": (
        lambda x: tf.while_loop(
            lambda i, y: i < tf.cast(x, tf.int32),
            lambda i, y: (i + 1, tf.debugging.check_numerics(1.0 / (1.0 - y), "")),
            [0, 0.0],
        )[1],
        0.5,
        3.0,
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_program_refuses_what_eager_code_refuses(name, caplog):
    f, good, bad = CHECKS[name]
    good, bad = tf.constant(good), tf.constant(bad)
    with pytest.raises(Exception) as expected:
        f(bad)
    changed = tf.Variable(0.0)

    @function(jit_compile=True)
    def compiled(x):
        changed.assign_add(1.0)
        return f(x)

    with caplog.at_level(logging.WARNING):
        np.testing.assert_allclose(compiled(good), f(good))
        with pytest.raises(type(expected.value)) as found:
            compiled(bad)
        np.testing.assert_allclose(compiled(good), f(good))
    assert str(found.value).split("\n")[0] == str(expected.value).split("\n")[0]
    assert float(changed) == 2.0
    assert compiled.experimental_get_tracing_count() == 1
    assert not caplog.records


def test_a_check_leaves_gradients_as_they_are():
    @function(jit_compile=True)
    def f(x, i):
        tf.debugging.assert_positive(x)
        return rows().write(i, x * x).stack()

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, tf.constant(1))
    assert float(tape.gradient(y, x)) == 6.0
    with tf.GradientTape() as tape, pytest.raises(tf.errors.OutOfRangeError):
        f(x, tf.constant(3))


def test_a_check_in_a_gradient_function_inside_a_loop_does_not_stop_the_program():
    @tf.custom_gradient
    def checked(x):
        def gradient(g):
            tf.debugging.assert_positive(x)
            return 2.0 * g

        return x + 1.0, gradient

    @function(jit_compile=True)
    def f(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, checked(y)), [0, x])[1]
        return tape.gradient(y, x)

    assert float(f(tf.constant(1.0), tf.constant(3))) == 8.0


def test_a_second_part_that_python_would_not_reach_is_not_checked():
    @function(jit_compile=True)
    def leading(i):
        while i < 3 and rows().read(i) < 5.0:
            i += 1
        return i

    pytest.importorskip("malt")
    assert int(leading(tf.constant(0))) == 3
    assert leading.experimental_get_tracing_count() == 1


def test_a_step_with_a_check_still_writes_over_its_variables():
    weights = tf.Variable(np.ones(4, np.float32))
    count = tf.Variable(0)

    @function(jit_compile=True)
    def step(x):
        count.assign(7)
        weights.assign_add(x * tf.ones(4))
        tf.debugging.assert_positive(weights)

    step(tf.constant(1.0))
    assert is_held(weights)
    before = weights.numpy()
    count.assign(3)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError):
            step(tf.constant(-5.0))
        np.testing.assert_array_equal(weights, before)
        assert int(count) == 3
    step(tf.constant(1.0))
    np.testing.assert_array_equal(weights, before + 1.0)
    np.testing.assert_array_equal(before, np.full(4, 2.0))


X = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def computed(i):
    """The same indices, which the arguments of a program do not tell."""
    return tf.reduce_sum(tf.stack([i, tf.zeros_like(i)]), 0)


@pytest.mark.parametrize("index", [-4, -1, 3])
def test_a_program_takes_no_row_for_an_index_that_eager_code_refuses(index):
    """Checking those that it computes would cost a wait for every call; but no row comes out that was not asked for."""
    rows, places = tf.constant([index, 0]), tf.constant([[index, 1], [0, 1]])
    taken = function(lambda i: tf.gather(X, computed(i)))(rows).numpy()
    np.testing.assert_array_equal(taken, [[np.nan, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(function(lambda i: tf.gather_nd(X, computed(i)))(places), [np.nan, 2.0])
    scattered = function(lambda i: tf.scatter_nd(computed(i), [7.0, 8.0], [3, 2]))(places)
    np.testing.assert_array_equal(scattered, [[0.0, 8.0], [0.0, 0.0], [0.0, 0.0]])
    for change, other in (("update", 9.0), ("max", 9.0), ("min", -9.0), ("add", 1.0)):
        changed = getattr(tf, f"tensor_scatter_nd_{change}")
        found = function(lambda i, changed=changed, other=other: changed(X, computed(i), [other, other]))(places)
        expected = changed(X, places[1:], [other])
        np.testing.assert_array_equal(found, expected)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = function(lambda x, i: tf.gather(1.0 * x, computed(i)))(X, rows)
    np.testing.assert_array_equal(tape.gradient(y, X), [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("index", [-4, -3, -1, 2, 3])
def test_indexing_with_a_traced_number_counts_from_the_end_as_eager_code_does(index):
    found = function(lambda x, i: (x[computed(i)], x[..., computed(i), :]))(X, tf.constant(index))
    expected = X.numpy()[index] if -4 < index < 3 else np.full(2, np.nan)
    for row in found:
        np.testing.assert_array_equal(row, expected)
