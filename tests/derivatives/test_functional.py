"""Derivatives of plain functions: structures, all mixtures of modes, and input that must be refused or answered with zeros."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from test_random_programs import numbers, smooth

import gradtape as tf
from gradtape import autodiff
from gradtape.autodiff import ForwardAccumulator


def along(f, x, v, forward: bool):
    """The derivative of a function of one tensor along v, by either mode."""
    if forward:
        with ForwardAccumulator(x, v) as accumulator:
            y = f(x)
        return accumulator.jvp(y, unconnected_gradients="zero")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tf.reduce_sum(tape.gradient(y, x, unconnected_gradients="zero") * v)


FUNCTIONS = {
    "sin of a cube": lambda x: tf.sin(x * x * x),
    "quotient": lambda x: x / (1.0 + tf.exp(-x)),
    "power": lambda x: tf.abs(x + 2.0) ** 2.5,
    "log of tanh": lambda x: tf.math.log(1.5 + tf.tanh(x)) * x,
    "erf": lambda x: tf.math.erf(x) * tf.math.lgamma(x + 3.0),
    "custom": lambda x: tf.recompute_grad(lambda y: tf.sin(y) * y)(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_orders_one_to_three_of_scalars_in_every_mixture(name):
    f, x, one = FUNCTIONS[name], tf.constant(0.6, tf.float64), tf.constant(1.0, tf.float64)
    exact = [float(d) for d in autodiff.taylor(f, x, 1.0, 3)]
    for order in (1, 2, 3):
        for modes in itertools.product([True, False], repeat=order):
            g = f
            for forward in modes:
                g = functools.partial(along, g, v=one, forward=forward)
            np.testing.assert_allclose(float(g(x)), exact[order], rtol=1e-10, err_msg=str(modes))


@given(smooth)
def test_orders_one_and_two_of_random_programs_in_every_mixture(program):
    assume(len(program.steps) < 6)
    rng = np.random.default_rng(2)
    shapes = [i.shape for i in program.inputs]
    x = tf.constant(np.concatenate([i.reshape(-1) for i in program.inputs]))
    v = tf.constant(rng.normal(size=x.shape))

    def f(x):
        parts = tf.split(x, [int(np.prod(s)) for s in shapes])
        return tf.reduce_sum(program(*(tf.reshape(p, s) for p, s in zip(parts, shapes))))

    exact = [float(d) for d in autodiff.taylor(f, x, v, 2)]
    scale = max(1.0, *map(abs, exact))
    for order in (1, 2):
        for modes in itertools.product([True, False], repeat=order):
            g = f
            for forward in modes:
                g = functools.partial(along, g, v=v, forward=forward)
            assert abs(float(g(x)) - exact[order]) < 1e-9 * scale, modes
    product = autodiff.hvp(f, x, v).numpy()
    whole = autodiff.hessian(f, x).numpy()
    np.testing.assert_allclose(whole @ v.numpy(), product, 1e-9, 1e-9 * scale)
    np.testing.assert_allclose(float(autodiff.laplacian(f, x)), np.trace(whole), 1e-9, 1e-9 * max(1, abs(whole).max()))


@given(smooth)
def test_products_are_products_with_the_jacobian(program):
    x = [tf.constant(i) for i in program.inputs]
    rng = np.random.default_rng(1)
    v = [rng.normal(size=i.shape) for i in program.inputs]
    f = lambda x: program(*x)
    y = f(x)
    u = rng.normal(size=y.shape)
    jacobians = numbers(autodiff.jacobian(f, x))
    pushed = sum(np.tensordot(j, t, t.ndim) for j, t in zip(jacobians, v))
    value, slope = autodiff.jvp(f, x, v)
    np.testing.assert_allclose(value, y)
    np.testing.assert_allclose(slope, pushed, 1e-10, 1e-10 * max(1, abs(pushed).max(initial=0)))
    _, pull_back = autodiff.vjp(f, x)
    for _ in range(2):  # as often as one likes
        for g, j in zip(numbers(pull_back(u)), jacobians):
            np.testing.assert_allclose(g, np.tensordot(u, j, u.ndim), 1e-10, 1e-10 * max(1, abs(j).max(initial=0)))


# Structures


def test_results_keep_the_structure_of_the_arguments():
    x = {"w": tf.constant([[1.0, 2.0]]), "b": [tf.Variable(3.0), np.float32(4.0)]}

    def f(p):
        return tf.reduce_sum(p["w"]) ** 2 * p["b"][0] * p["b"][1]

    value, gradient = autodiff.value_and_gradient(f, x)
    assert float(value) == 108
    assert gradient["w"].numpy().tolist() == [[72, 72]]
    assert [float(g) for g in gradient["b"]] == [36, 27]
    hessian = autodiff.hessian(f, x)
    assert hessian["w"]["w"].shape == (1, 2, 1, 2)
    assert hessian["b"][0]["w"].shape == (1, 2)
    assert float(hessian["b"][0]["b"][1]) == 9
    product = autodiff.hvp(f, x, {"w": [[0.0, 0.0]], "b": [1.0, 0.0]})
    assert float(product["b"][1]) == 9
    assert float(autodiff.laplacian(f, x)) == 48
    both = autodiff.jacobian(lambda p: (p["w"], {"s": p["b"][0] * 2.0}), x)
    assert both[0]["w"].shape == (1, 2, 1, 2)
    assert float(both[1]["s"]["b"][0]) == 2


def test_variables_that_are_not_arguments_are_constants():
    w = tf.Variable(3.0)
    value, gradient = autodiff.value_and_gradient(lambda x: w * x, 2.0)
    assert (float(value), float(gradient)) == (6, 3)


def test_derivatives_of_derivatives():
    f = lambda x: tf.reduce_sum(tf.sin(x) * x)
    x = tf.constant([0.3, 0.8], tf.float64)
    gradient = lambda x: autodiff.value_and_gradient(f, x)[1]
    exact = np.diag(2 * np.cos(x.numpy()) - x.numpy() * np.sin(x.numpy()))
    third = -3 * np.sin(x.numpy()) - x.numpy() * np.cos(x.numpy())
    np.testing.assert_allclose(autodiff.jacobian(gradient, x), exact)
    tensor = autodiff.jacobian(lambda x: autodiff.jacobian(gradient, x), x).numpy()
    np.testing.assert_allclose(tensor[[0, 1], [0, 1], [0, 1]], third)
    np.testing.assert_allclose(autodiff.value_and_gradient(lambda x: autodiff.laplacian(f, x), x)[1], third)
    product = lambda x: tf.reduce_sum(autodiff.hvp(f, x, [1.0, 1.0]))
    np.testing.assert_allclose(autodiff.value_and_gradient(product, x)[1], third)


# Per-example gradients


def test_per_example_gradients_equal_a_loop():
    rng = np.random.default_rng(0)
    variables = {"w": tf.Variable(rng.normal(size=(4, 3))), "b": tf.Variable(rng.normal(size=3)), "unused": tf.Variable(1.0)}
    x, y = tf.constant(rng.normal(size=(5, 4))), tf.constant(rng.integers(0, 3, 5))

    def loss(x, y):
        logits = tf.matmul(tf.nn.elu(x)[None], variables["w"]) + variables["b"]
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y[None], logits=logits)[0]

    received = autodiff.per_example_gradients(loss, variables, (x, y))
    assert received["unused"].numpy().tolist() == [0] * 5
    for i in range(5):
        with tf.GradientTape() as tape:
            value = loss(x[i], y[i])
        for name, g in zip("wb", tape.gradient(value, [variables["w"], variables["b"]])):
            np.testing.assert_allclose(received[name][i], g, 1e-12, 1e-14)


def test_per_example_gradients_need_one_number_per_example():
    w = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="one number"):
        autodiff.per_example_gradients(lambda row: row * w, w, tf.ones([3, 2]))


# Input at the edges


def test_what_is_unconnected_is_zero():
    x = tf.constant([1.0, 2.0])
    constant = lambda x: tf.constant(3.0)
    assert autodiff.value_and_gradient(constant, x)[1].numpy().tolist() == [0, 0]
    assert autodiff.jvp(constant, x, [1.0, 1.0])[1].numpy() == 0
    assert autodiff.vjp(constant, x)[1](1.0).numpy().tolist() == [0, 0]
    assert autodiff.jacobian(constant, x).numpy().tolist() == [0, 0]
    assert autodiff.hessian(constant, x).numpy().tolist() == [[0, 0], [0, 0]]
    assert autodiff.hvp(constant, x, [1.0, 1.0]).numpy().tolist() == [0, 0]
    assert float(autodiff.laplacian(constant, x)) == 0
    assert autodiff.hessian(lambda x: tf.reduce_sum(x), x).numpy().tolist() == [[0, 0], [0, 0]]
    assert float(autodiff.laplacian(lambda x: tf.reduce_sum(x), x)) == 0


def test_empty_arguments():
    x = tf.zeros([0, 2])
    value, gradient = autodiff.value_and_gradient(lambda x: tf.reduce_sum(x * x), x)
    assert float(value) == 0
    assert gradient.shape == (0, 2)
    assert autodiff.jacobian(lambda x: x * x, x).shape == (0, 2, 0, 2)
    assert autodiff.hessian(lambda x: tf.reduce_sum(x * x), x).shape == (0, 2, 0, 2)
    assert autodiff.hvp(lambda x: tf.reduce_sum(x * x), x, x).shape == (0, 2)
    assert float(autodiff.laplacian(lambda x: tf.reduce_sum(x * x), x)) == 0


def test_integers_are_refused_as_arguments_and_have_no_slope_as_results():
    for call in (
        lambda x: autodiff.value_and_gradient(tf.abs, x),
        lambda x: autodiff.jacobian(tf.abs, x),
        lambda x: autodiff.hessian(tf.abs, x),
        lambda x: autodiff.vjp(tf.abs, x),
        lambda x: autodiff.jvp(tf.abs, x, x),
        lambda x: autodiff.hvp(tf.abs, x, x),
        lambda x: autodiff.laplacian(tf.abs, x),
    ):
        with pytest.raises(TypeError, match="Cannot differentiate with respect to a tensor of dtype int32"):
            call(tf.constant(3))
    value, slope = autodiff.jvp(tf.argmax, tf.constant([1.0, 2.0]), [1.0, 1.0])
    assert (int(value), int(slope)) == (1, 0)


def test_wrong_structures_and_shapes_are_refused():
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="direction must have the shape"):
        autodiff.jvp(tf.sin, x, [1.0])
    with pytest.raises(ValueError, match="direction must have the shape"):
        autodiff.hvp(lambda x: tf.reduce_sum(x * x), x, 1.0)
    with pytest.raises(ValueError, match="cotangent must have the shape"):
        autodiff.vjp(tf.sin, x)[1]([1.0, 2.0, 3.0])
    with pytest.raises((ValueError, TypeError)):
        autodiff.jvp(lambda p: p[0] * p[1], [x, x], [x])
    with pytest.raises((ValueError, TypeError)):
        autodiff.jvp(lambda p: p["a"], {"a": x}, [x])
    for call in (autodiff.hessian, autodiff.laplacian, lambda f, x: autodiff.hvp(f, x, x)):
        with pytest.raises(ValueError, match="one number"):
            call(tf.sin, x)
    with pytest.raises(ValueError, match="Unknown mode"):
        autodiff.jacobian(tf.sin, x, mode="sideways")
