"""Random programs of loops and branches: eager and compiled agree in values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")

STEPS = {
    "sin": lambda x, y, v: tf.sin(x + y),
    "product": lambda x, y, v: x * tf.tanh(y),
    "variable": lambda x, y, v: x * v + 0.5 * y,
    "roll": lambda x, y, v: tf.roll(x, 1, 0) * 0.5 + y,
    "stop": lambda x, y, v: tf.stop_gradient(x) * y,
}


class Program:
    """A tree of steps, branches and loops, as a function of two tensors and a variable."""

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, parts

    def __repr__(self):
        return f"{self.kind}({', '.join(map(repr, self.parts))})"

    def __call__(self, x, y, v):
        return getattr(self, self.kind)(x, y, v, *self.parts)

    def step(self, x, y, v, name):
        return STEPS[name](x, y, v)

    def chain(self, x, y, v, first, second):
        return second(first(x, y, v), x, v)

    def assign(self, x, y, v, inner):
        v.assign(0.9 * v + 0.1 * tf.tanh(x))
        return inner(x, y, v)

    def branch(self, x, y, v, threshold, first, second):
        return tf.cond(tf.reduce_sum(x) > threshold, lambda: first(x, y, v), lambda: second(y, x, v))

    def counted(self, x, y, v, count, inner):
        return tf.while_loop(lambda n, h: n < count, lambda n, h: (n + 1, inner(h, y, v) * 0.5), (0, x))[1]

    def until(self, x, y, v, limit, inner):
        def going(n, h):
            return tf.logical_and(tf.reduce_sum(h * h) > limit, n < 40)

        return tf.while_loop(going, lambda n, h: (n + 1, inner(h, y, v) * 0.7), (0, x))[1]

    def rows(self, x, y, v, count, inner):
        elems = tf.cast(tf.linspace(-1.0, 1.0, count), x.dtype)[:, None] * y
        return tf.reduce_sum(tf.scan(lambda h, row: inner(h, row, v) * 0.5, elems, x), 0)


steps = st.builds(Program, st.just("step"), st.sampled_from(sorted(STEPS)))


def larger(programs):
    return st.one_of(
        st.builds(Program, st.just("chain"), programs, programs),
        st.builds(Program, st.just("assign"), programs),
        st.builds(Program, st.just("branch"), st.sampled_from([-1.0, 0.0, 1.0]), programs, programs),
        st.builds(Program, st.just("counted"), st.sampled_from([0, 2, 18]), programs),
        st.builds(Program, st.just("until"), st.sampled_from([0.01, 1.0]), programs),
        st.builds(Program, st.just("rows"), st.sampled_from([2, 18]), programs),
    )


programs = st.recursive(steps, larger, max_leaves=4)
START = np.array([0.4, -0.3])


def outcome(program, wrap, order):
    """Values, gradients and, if ``order`` is 2, their gradients; and what the variable holds afterwards."""
    v = tf.Variable(START)

    def run(x, y):
        with tf.GradientTape() as outer:
            outer.watch([x, y])
            with tf.GradientTape() as tape:
                tape.watch([x, y])
                z = program(x, y, v)
            g = tape.gradient(z, [x, y, v], unconnected_gradients="zero")
        again = outer.gradient(g, [x, y, v], unconnected_gradients="zero") if order == 2 else []
        return [z, *g, *again]

    found = wrap(run)(tf.constant([0.5, -1.0], tf.float64), tf.constant([0.2, 0.8], tf.float64))
    return [t.numpy() for t in found] + [v.numpy()]


@settings(max_examples=25)
@given(programs)
def test_values_and_gradients(program):
    compiled = outcome(program, lambda f: function(f, autograph=False, jit_compile=True), 1)
    for a, b in zip(outcome(program, lambda f: f, 1), compiled):
        np.testing.assert_allclose(b, a, 1e-8, 1e-10)


@pytest.mark.slow
@settings(max_examples=100)
@given(programs)
def test_second_order(program):
    compiled = outcome(program, lambda f: function(f, autograph=False, jit_compile=True), 2)
    for a, b in zip(outcome(program, lambda f: f, 2), compiled):
        np.testing.assert_allclose(b, a, 1e-7, 1e-9)
