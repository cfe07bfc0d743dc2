"""Variables inside a function: read, assigned, created, and left alone when something goes wrong."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape.core.variable import Variable
from gradtape.function import function

pytest.importorskip("jax")
ONE = tf.constant(1.0)


@pytest.fixture(autouse=True)
def _the_cell_is_back():
    yield
    assert type(Variable.__dict__["_tensor"]).__name__ == "member_descriptor"


def test_assignments_come_back_and_reads_see_them():
    v = tf.Variable(1.0)
    w = tf.Variable([0.0, 0.0])

    @function
    def f(x):
        before = v * 1.0
        v.assign(before + x)
        w.assign([v * 2.0, v * 3.0])
        v.assign_sub(0.5)
        return before, v, w.value()

    before, after, pair = f(ONE)
    assert (float(before), float(after), pair.numpy().tolist()) == (1.0, 1.5, [4.0, 6.0])
    assert float(f(ONE)[1]) == 2.0 == float(v)
    v.assign(10.0)
    assert float(f(ONE)[0]) == 10.0


def test_a_tensor_read_before_the_call_stays():
    v = tf.Variable([1.0])
    f = function(lambda: v.assign_add([1.0]))
    reads = [v.read_value()]
    for _ in range(3):
        f()
        reads.append(v.read_value())
    assert [float(r[0]) for r in reads] == [1.0, 2.0, 3.0, 4.0]
    v.assign_add([5.0])  # eager, in between
    f()
    assert v.numpy().tolist() == [10.0]


def test_two_variables_may_share_a_buffer():
    value = tf.constant([1.0, 2.0])
    one, two = tf.Variable(value), tf.Variable(value)
    f = function(lambda: (one.assign_add(two), two.assign(one * 2.0)))
    f()
    assert (one.numpy().tolist(), two.numpy().tolist()) == ([2.0, 4.0], [4.0, 8.0])
    one.assign(two)
    f()
    assert (one.numpy().tolist(), two.numpy().tolist()) == ([8.0, 16.0], [16.0, 32.0])


def test_a_constant_assignment_is_made_at_every_call():
    v = tf.Variable(1.0)
    f = function(lambda: v.assign(7.0))
    f()
    v.assign(3.0)
    f()
    assert float(v) == 7.0


def test_a_variable_whose_shape_changes():
    v = tf.Variable([1.0], shape=[None])
    f = function(lambda: tf.reduce_sum(v))
    assert float(f()) == 1.0
    v.assign([1.0, 2.0])
    assert float(f()) == 3.0


def test_variables_created_on_the_first_call_are_kept():
    class Lazy:
        def __init__(self, initial):
            self.v = None
            self.initial = initial

        @function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(self.initial())
            return self.v.assign_add(x)

    for initial in (lambda: 5.0, lambda: tf.random.normal([]) * 0.0 + 5.0):  # known at once; part of the program
        lazy = Lazy(initial)
        assert [float(lazy(ONE)) for _ in range(3)] == [6.0, 7.0, 8.0]
        assert float(lazy.v) == 8.0


def test_variables_created_on_a_later_call_are_refused():
    made = []

    @function
    def always(x):
        made.append(tf.Variable(1.0))
        return made[-1] * x

    with pytest.raises(ValueError, match=r"tf.function only supports singleton tf.Variables created on the first call"):
        always(ONE)

    @function
    def by_kind(x, create):
        return tf.Variable(1.0) * x if create else x

    by_kind(ONE, False)
    with pytest.raises(ValueError, match="singleton"):
        by_kind(ONE, True)


@pytest.mark.parametrize("traced", [True, False], ids=["compiled", "run eagerly"])
def test_an_exception_in_the_body_changes_nothing(traced):
    v = tf.Variable(1.0)

    @function
    def f(x, fail):
        v.assign(x)
        if not traced:
            float(x)
        if fail:
            raise KeyError("mine")
        return v.read_value()

    with pytest.raises(KeyError, match="mine"):
        f(tf.constant(5.0), True)
    assert float(v) == 1.0
    assert float(f(tf.constant(3.0), False)) == 3.0 == float(v)


def test_an_exception_inside_a_tape_leaves_none_behind():
    v = tf.Variable(1.0)

    @function
    def f(x):
        with tf.GradientTape():
            v.assign(x)
            raise RuntimeError("inside")

    with tf.GradientTape() as tape:
        with pytest.raises(RuntimeError, match="inside"):
            f(ONE)
        y = v * 3.0
    assert float(tape.gradient(y, v)) == 3.0


def test_other_threads_see_numbers_while_a_function_is_traced():
    v = tf.Variable(1.0)
    seen = []

    @function
    def f(x):
        v.assign(v + x)
        thread = threading.Thread(target=lambda: seen.append((float(v), tf.config.functions_run_eagerly())))
        thread.start()
        thread.join()
        return v.read_value()

    assert float(f(ONE)) == 2.0
    assert seen == [(1.0, False)]


def test_64_threads_lose_no_update():
    v, count = tf.Variable(np.zeros(8)), tf.Variable(0)

    @function
    def step(x):
        v.assign_add(x * tf.ones([8], tf.float64))
        count.assign_add(1)
        return count.read_value()

    seen = []

    def work():
        seen.extend(int(step(tf.constant(2.0, tf.float64))) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert v.numpy().tolist() == [1280.0] * 8
    assert sorted(seen) == list(range(1, 641))
    assert step.experimental_get_tracing_count() == 1


def test_a_function_inside_one_that_runs_eagerly_is_compiled():
    v = tf.Variable(0.0)
    inner = function(lambda x: v.assign_add(x))

    @function
    def outer(x):
        x.numpy()
        inner(x)
        inner(x)
        return v * 10.0

    assert float(outer(ONE)) == 20.0
    assert float(v) == 2.0
    assert inner.experimental_get_tracing_count() == 1


def test_a_dataset_is_not_frozen_into_the_program():
    numbers = iter(tf.data.Dataset.range(4))
    f = function(lambda: next(numbers) + 0)
    assert [int(f()) for _ in range(4)] == [0, 1, 2, 3]


def test_init_scope_is_outside_of_a_function():
    """As TensorFlow does it: what is in the scope runs once, on what variables held before the call."""
    v, seen = tf.Variable(1.0), []

    @tf.function
    def f(x):
        v.assign_add(1.0)
        with tf.init_scope():
            seen.append((float(v), tf.executing_eagerly()))
            v.assign(10.0)
        return v + x

    assert [float(f(tf.constant(1.0))), float(f(tf.constant(1.0))), float(v)] == [12.0, 13.0, 12.0]
    assert seen == [(1.0, True)]
