"""Tapes and functions in every nesting give what eager code gives."""

from __future__ import annotations

import numpy as np
import pytest
import test_random_programs as random_programs
from hypothesis import given, settings

import gradtape as tf
from gradtape.autodiff import ForwardAccumulator
from gradtape.function import function
from gradtape.ops.vectorized import vectorized_map

pytest.importorskip("jax")
X = tf.constant([0.5, -1.0, 2.0], tf.float64)


@pytest.fixture(autouse=True)
def _everything_is_compiled(caplog):
    yield
    assert "runs eagerly" not in caplog.text


def cubic(x):
    return tf.reduce_sum(x**3.0 * tf.sin(x))


def both(compute, *args):
    """What eager code and a function give, as NumPy arrays."""
    results = [compute(wrapper)(*args) for wrapper in (lambda f: f, function)]
    return [[None if t is None else tf.convert_to_tensor(t).numpy() for t in tf.nest.flatten(r)] for r in results]


def agree(compute, *args, rtol=1e-12):
    eager, compiled = both(compute, *args)
    assert [a is None for a in eager] == [a is None for a in compiled]
    for a, b in zip(eager, compiled):
        if a is not None:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(b, a, rtol, 1e-12)


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def test_tape_inside():
    agree(lambda wrap: wrap(lambda x: gradient(cubic, x)), X)


def test_tape_outside():
    agree(lambda wrap: lambda x: gradient(wrap(cubic), x), X)


@pytest.mark.parametrize("inner", [True, False], ids=["inner compiled", "inner eager"])
@pytest.mark.parametrize("outer", [True, False], ids=["outer compiled", "outer eager"])
def test_second_and_third_order(inner, outer):
    def compute(wrap):
        f = wrap(cubic) if inner else cubic
        g = lambda x: gradient(f, x)
        g = wrap(g) if outer else g
        return lambda x: (gradient(g, x), gradient(lambda x: gradient(g, x), x))

    agree(compute, X)


def test_jacobian_and_hessian_inside_and_outside():
    def jacobian(f, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x)

    def rows(x):
        return tf.sin(x) * tf.reduce_sum(x**2.0)

    agree(lambda wrap: wrap(lambda x: jacobian(rows, x)), X)
    agree(lambda wrap: lambda x: jacobian(wrap(rows), x), X)
    agree(lambda wrap: wrap(lambda x: jacobian(lambda x: gradient(cubic, x), x)), X)
    agree(lambda wrap: lambda x: jacobian(wrap(lambda x: gradient(cubic, x)), x), X)


def test_a_persistent_tape_across_two_functions():
    def compute(wrap):
        f, g = wrap(lambda x: (x**2.0, tf.sin(x))), wrap(lambda a, b: tf.reduce_sum(a * b))

        def run(x):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                a, b = f(x)
                y = g(a, b) + tf.reduce_sum(b)
            return [tape.gradient(y, s) for s in (x, a, b)] + [tape.gradient(b, x), tape.gradient(a, b)]

        return run

    agree(compute, X)


def test_gradients_of_captured_variables_with_the_values_of_the_call():
    def compute(wrap):
        v, w = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64), tf.Variable(2.0, dtype=tf.float64, trainable=False)

        def body(x):
            y = v * x * w
            v.assign_add(x)
            return tf.reduce_sum(y * v)

        f = wrap(body)

        def run(x):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as tape:
                    tape.watch([x, w])
                    y = f(x)
                v.assign(v * 100.0)  # what follows the call does not change its gradient
                g = tape.gradient(y, [x, v, w])
            return g, v.read_value(), [u.name for u in tape.watched_variables()], outer.gradient(g, [v])

        return lambda x: run(x)[:2] + run(x)[3:]

    agree(compute, X)


def test_watched_variables_are_those_of_the_body():
    v = tf.Variable(1.0, name="mine")
    f = function(lambda x: x * v)
    for _ in range(2):
        with tf.GradientTape() as tape:
            f(tf.constant(2.0))
        assert [u.name for u in tape.watched_variables()] == ["mine:0"]


def test_unconnected_results_give_none():
    def compute(wrap):
        f = wrap(lambda x, y: (x * 2.0, tf.cast(y, "int32"), tf.constant(1.0)))

        def run(x):
            y = tf.constant(3.0)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch([x, y])
                a, b, c = f(x, y)
            return [tape.gradient(a, [x, y]), tape.gradient(c, [x, y]), b]

        return run

    agree(compute, X)


def test_a_tensor_that_is_not_an_argument_gets_its_gradient():
    c = tf.constant(3.0)
    f = function(lambda x: c * x)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:  # first without it
        tape.watch(x)
        y = f(x)
    assert float(tape.gradient(y, x)) == 3.0
    with tf.GradientTape() as tape:
        tape.watch([x, c])
        y = f(x)
    assert [float(g) for g in tape.gradient(y, [x, c])] == [3.0, 2.0]


def test_so_does_one_that_only_a_helper_reads():
    class Holder:
        c = tf.constant(3.0)

    def helper(x):
        return Holder.c * x

    f = function(lambda x: helper(x) ** 2.0)
    x = tf.constant(2.0)
    for watched in ([x], [x, Holder.c], [Holder.c]):
        with tf.GradientTape() as tape:
            tape.watch(watched)
            y = f(x)
        assert [float(g) for g in tape.gradient(y, watched)] == [36.0 if s is x else 24.0 for s in watched]


def test_custom_gradients_inside():
    @tf.custom_gradient
    def twice_as_steep(x):
        return x * x, lambda g: 4.0 * g * x

    for f in (twice_as_steep, tf.recompute_grad(cubic), tf.grad_pass_through(tf.round)):
        agree(lambda wrap, f=f: wrap(lambda x: gradient(f, x)), X)
        agree(lambda wrap, f=f: lambda x: gradient(wrap(f), x), X)
        agree(lambda wrap, f=f: lambda x: gradient(lambda x: gradient(wrap(f), x), x), X)


def test_forward_accumulators_and_vectorized_map():
    def tangent(f, x):
        with ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    agree(lambda wrap: wrap(lambda x: tangent(cubic, x)), X)
    agree(lambda wrap: lambda x: tangent(wrap(cubic), x), X)
    agree(lambda wrap: wrap(lambda x: vectorized_map(lambda row: row * tf.sin(row), x)), X)
    agree(lambda wrap: lambda x: vectorized_map(wrap(lambda row: row * tf.sin(row)), x), X)


def test_a_sparse_gradient_is_a_result_and_an_update():
    def compute(wrap):
        table, optimizer = tf.Variable(np.arange(8.0).reshape(4, 2)), tf.optimizers.Adam(0.1)

        def step(rows):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(table, rows) ** 2.0)
            g = tape.gradient(loss, table)
            optimizer.apply_gradients([(g, table)])
            return g

        return lambda rows: (wrap(step)(rows), table.read_value())

    agree(compute, tf.constant([1, 3, 1]))


def test_the_gradient_of_rows_stays_sparse_through_a_call():
    table = tf.Variable(np.arange(8.0).reshape(4, 2))
    rows = tf.constant([1, 3, 1])

    def body(rows):
        return tf.reduce_sum(tf.gather(table, rows) ** 2.0)

    for f in (body, function(body)):
        with tf.GradientTape(persistent=True) as tape:
            y = f(rows)
        g = tape.gradient(y, table)
        assert isinstance(g, tf.IndexedSlices)
        assert g.indices.numpy().tolist() == [1, 3, 1]
        np.testing.assert_array_equal(tf.convert_to_tensor(g).numpy(), tape.jacobian(y, table).numpy())
        with tf.GradientTape() as tape:
            y = tf.function(lambda x, rows: tf.reduce_sum(tf.gather(x, rows)))(table * 2.0, rows)
        assert isinstance(tape.gradient(y, table), tf.Tensor)  # rows of something that was computed


def test_dropout_has_the_same_mask_in_the_backward_pass():
    f = function(lambda x: tf.nn.dropout(x, 0.5))
    x = tf.ones([100])
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


def plain(program):
    """A random program without the questions about sizes that its test asks."""

    def run(*inputs):
        values = list(inputs)
        for which, first, second in program.steps:
            x, y = values[first % len(values)], values[second % len(values)]
            unary = which < len(random_programs.UNARY)
            step = random_programs.UNARY[which] if unary else random_programs.BINARY[which - len(random_programs.UNARY)]
            values.append(step(x) if unary else step(x, y))
        return values[-1]

    return run


@settings(max_examples=25)
@given(random_programs.programs)
def test_random_programs(program):
    inputs = [tf.constant(i) for i in program.inputs]
    program(*inputs)  # discards those that grow

    def value_and_gradients(f):
        def run(*inputs):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                y = f(*inputs)
            return [y, *tape.gradient(y, inputs)]

        return run

    f = plain(program)
    agree(lambda wrap: wrap(value_and_gradients(f)), *inputs, rtol=1e-9)
    agree(lambda wrap: value_and_gradients(wrap(f)), *inputs, rtol=1e-9)
