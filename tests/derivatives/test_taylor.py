"""`taylor`: derivatives along a direction to any order, against closed forms and nested accumulators."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_random_programs import programs

import gradtape as tf
from gradtape.autodiff import ForwardAccumulator, jacobian, taylor


def nested(f, x, v, order):
    if not order:
        return [f(x)]
    with ForwardAccumulator(x, v) as accumulator:
        lower = nested(f, x, v, order - 1)
    return [*lower, accumulator.jvp(lower[-1], unconnected_gradients="zero")]


def compare(f, x, v=None, order=3):
    x = tf.constant(x, tf.float64)
    v = tf.ones_like(x) if v is None else tf.constant(v, tf.float64)
    for received, wanted in zip(taylor(f, x, v, order), nested(f, x, v, order)):
        received, wanted = received.numpy(), wanted.numpy()
        np.testing.assert_allclose(received, wanted, 1e-9, 1e-9 * max(1, abs(wanted).max(initial=0)))


@given(programs, st.integers(2, 4))
def test_random_programs(program, order):
    assume(len(program.steps) < 6)
    x = [tf.constant(i) for i in program.inputs]
    rng = np.random.default_rng(0)
    v = [tf.constant(rng.normal(size=i.shape)) for i in program.inputs]
    slowly = nested(lambda x: program(*x), x, v, order)
    for received, wanted in zip(taylor(lambda x: program(*x), x, v, order), slowly):
        received, wanted = received.numpy(), wanted.numpy()
        np.testing.assert_allclose(received, wanted, 1e-8, 1e-8 * max(1, abs(wanted).max(initial=0)))


def test_high_orders_in_closed_form():
    x = tf.constant(0.7, tf.float64)
    for k, d in enumerate(taylor(tf.exp, x, 1.0, 12)):
        np.testing.assert_allclose(d, math.exp(0.7), rtol=1e-11, err_msg=str(k))
    for k, d in enumerate(taylor(lambda x: 1.0 / x, x, 2.0, 12)):
        np.testing.assert_allclose(d, (-2.0) ** k * math.factorial(k) * 0.7 ** -(k + 1), rtol=1e-10)
    for k, d in enumerate(taylor(tf.math.log, x, 1.0, 8)[1:], 1):
        np.testing.assert_allclose(d, (-1) ** (k - 1) * math.factorial(k - 1) / 0.7**k, rtol=1e-10)
    assert [float(d) for d in taylor(lambda x: x**5, tf.constant(1.0), 1.0, 7)] == [1, 5, 20, 60, 120, 120, 0, 0]


def test_nests_in_and_out():
    found = taylor(lambda p: {"s": p["a"] * p["b"], "c": [p["a"]]}, {"a": 2.0, "b": 3.0}, {"a": 1.0, "b": 10.0}, 2)
    assert [float(d["s"]) for d in found] == [6, 23, 20]
    assert [float(d["c"][0]) for d in found] == [2, 1, 0]


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (tf.nn.relu, 0.0), (tf.nn.elu, 0.0), (tf.nn.relu6, 6.0), (tf.nn.leaky_relu, 0.0), (tf.abs, 0.0),
        (lambda x: tf.maximum(x, -x), 0.0), (lambda x: tf.clip_by_value(x, 0.0, 1.0), 1.0), (tf.reduce_max, [1.0, 1.0]),
        (lambda x: x**2, 0.0), (lambda x: x**3, 0.0), (tf.reduce_prod, [1.0, 0.0, 2.0, 0.0]), (tf.sort, [1.0, 1.0, 0.0]),
        (tf.math.cumprod, [1.0, 0.0, 2.0]), (tf.math.softplus, 0.0), (lambda x: x % 1.0, 2.25),
    ],
    ids="relu elu relu6 leaky abs maximum clip reduce_max square cube prod sort cumprod softplus mod".split(),
)  # fmt: skip
def test_kinks_and_zeros_are_as_the_rules_say(f, x):
    compare(f, x)


def test_a_user_s_gradient_counts():
    @tf.custom_gradient
    def doubled(x):
        y = tf.exp(x)
        return y, lambda g: 2.0 * g * y

    compare(doubled, 0.3)
    compare(lambda x: doubled(x * x) * doubled(x), 0.3, order=4)
    compare(lambda x: x * tf.stop_gradient(x) * x, 1.5)
    compare(tf.grad_pass_through(tf.round), 1.3)
    compare(tf.recompute_grad(lambda x: tf.sin(x) * x), 1.3)


def test_derivatives_and_maps_inside():
    def f(x):
        return tf.sin(x) * tf.reduce_sum(x)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    x, v = [0.1, 0.4, 0.9], [1.0, -1.0, 0.5]
    for inner in (
        slope,
        lambda x: jacobian(f, x),
        lambda x: tf.vectorized_map(lambda r: r * r * r, x),
        lambda x: tf.map_fn(lambda r: r * r * r, x),
        lambda x: taylor(f, x, tf.ones_like(x), 2)[2],
        lambda x: np.sin(x) * x,
        lambda x: tf.where(x > 0.3, x * x, x),
    ):
        compare(inner, x, v)


def test_tapes_and_maps_outside():
    x, w = tf.constant(0.7, tf.float64), tf.Variable(1.3, dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        third = taylor(lambda x: tf.sin(w * x), x, 1.0, 3)[3]
    gx, gw = tape.gradient(third, [x, w])
    np.testing.assert_allclose(third, -(1.3**3) * math.cos(0.91))
    np.testing.assert_allclose(gx, 1.3**4 * math.sin(0.91))
    np.testing.assert_allclose(gw, -3 * 1.3**2 * math.cos(0.91) + 1.3**3 * 0.7 * math.sin(0.91))
    with tf.GradientTape() as tape:
        second = taylor(lambda x: tf.sin(w * x), x, 1.0, 2)[2]
    np.testing.assert_allclose(tape.gradient(second, w), -2 * 1.3 * math.sin(0.91) - 1.3**2 * 0.7 * math.cos(0.91))


def test_order_zero_integers_and_constants():
    assert float(taylor(lambda x: x * x, 3.0, 1.0, 0)[0]) == 9
    value, slope = taylor(lambda x: (tf.argmax(x), 2.0), tf.constant([1.0, 3.0]), [1.0, 1.0], 1)
    assert int(value[0]) == 1
    assert int(slope[0]) == 0
    assert float(slope[1]) == 0


def test_bad_arguments():
    with pytest.raises(ValueError, match="order from 0 on"):
        taylor(tf.sin, 1.0, 1.0, -1)
    with pytest.raises(ValueError, match="order from 0 on"):
        taylor(tf.sin, 1.0, 1.0, 1.5)
    with pytest.raises(ValueError, match="shape"):
        taylor(tf.sin, tf.constant([1.0, 2.0]), 1.0, 2)
    with pytest.raises(TypeError, match="int32"):
        taylor(tf.abs, tf.constant(1), 1, 2)
