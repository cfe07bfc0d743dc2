"""Keras's core functions on gradtape beyond Keras's own tests: derivatives, compiled = eager, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape import keras
from gradtape.testing import check_gradients

ops = keras.ops
X = np.arange(12.0).reshape(4, 3) / 7 - 0.61
ROWS = np.array([[2], [0], [2]])  # one of them twice
PLACES = np.array([[0, 1], [3, 2], [0, 1]])
START = tf.constant([1, 1])


def running(x):
    """The last carry and all results of a scan, forwards and backwards."""
    step = lambda carry, row: (carry * 0.5 + row * carry, carry * row)
    return ops.scan(step, x[0], x), ops.scan(step, x[0], x, reverse=True)


def doubled_gradient(x):
    @ops.custom_gradient
    def square(x):
        return ops.square(x), lambda *args, upstream=None: 2 * x * (args[0] if upstream is None else upstream)

    return square(x)


# Name: function, arguments that it is differentiated by
CASES = {
    "scatter": (lambda u: ops.scatter(ROWS, u, (5, 3)), [X[:3]]),
    **{f"scatter_update {how}": (
        lambda x, u, how=how: ops.scatter_update(x, PLACES, u, how), [X, np.array([0.83, 0.41, 1.37])],
    ) for how in ("add", "max", "min", "mul")},
    "scatter_update": (lambda x, u: ops.scatter_update(x, ROWS[:2], u), [X, X[:2] * 2]),
    "slice": (lambda x: ops.slice(x, (1, 0), (-1, 2)), [X]),
    "slice beyond the end": (lambda x: ops.slice(x, START + 2, (2, 2)), [X]),
    "slice from an unknown place": (lambda x: ops.slice(x, (ops.argmax(x[:, 1]) - 5, -3), (2, 2)), [X]),
    "slice_update": (lambda x, u: ops.slice_update(x, START, u), [X, X[:2, :2] * 2]),
    "slice_update at an unknown place": (
        lambda x, u: ops.slice_update(x, (ops.argmax(x[:, 1]) - 5, 9), u), [X, X[:2, :2] * 2],
    ),
    "slices of a batch": (lambda x: ops.vectorized_map(lambda i: ops.slice(x, (i, 0), (2, 3)), np.array([2, 0, -2])), [X]),
    "scan": (running, [X]),
    "scan without rows": (lambda x: ops.scan(lambda c, _: (c * c, None), x, length=3)[0], [X]),
    "associative_scan": (lambda x: ops.associative_scan(lambda a, b: a * b + b, x, axis=1), [X]),
    "map": (lambda x: ops.map(lambda row: row * ops.sum(row), x), [X]),
    "vectorized_map": (lambda x: ops.vectorized_map(lambda row: row * ops.sum(row), x), [X]),
    "fori_loop": (lambda x: ops.fori_loop(1, 4, lambda i, v: v * x + ops.cast(i, x.dtype), x), [X]),
    "while_loop": (lambda x: ops.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), (0, x))[1], [X]),
    "cond": (lambda x: ops.cond(ops.sum(x) > 100, lambda: x, lambda: x * x), [X]),
    "switch": (lambda x: ops.switch(5, [lambda x: x, lambda x: x * x], x), [X]),
    "unstack": (lambda x: [row * row for row in ops.unstack(x, axis=1)], [X]),
    "stop_gradient": (lambda x: x * ops.stop_gradient(X) + ops.stop_gradient(X * 2), [X]),
    "custom_gradient": (doubled_gradient, [X]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    function, arguments = CASES[name]
    check_gradients(function, arguments, order=1)


@pytest.mark.parametrize("name", CASES)
def test_compiled_is_eager(name):
    pytest.importorskip("jax")
    function, arguments = CASES[name]

    def value_and_gradients(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            outs = tf.nest.flatten(function(*arguments))
        return outs, tape.gradient(outs, arguments)

    arguments = [tf.constant(a) for a in arguments]
    eager, compiled = value_and_gradients(*arguments), tf.function(value_and_gradients)(*arguments)
    for one, other in zip(tf.nest.flatten(eager), tf.nest.flatten(compiled), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_rematerialized_layers_have_the_same_gradients():
    layer = keras.layers.Dense(3, activation="tanh")
    layer.build((None, 3))
    x = tf.constant(X, tf.float32)
    found = []
    for function in (layer, keras.remat(layer)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.sum(function(x) ** 2)
        found.append(tape.gradient(y, [x, *layer.trainable_weights]))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-6)


BAD = {
    "reduction": (ValueError, lambda: ops.scatter_update(X, ROWS, X[:3], reduction="median")),
    "place outside": (tf.errors.InvalidArgumentError, lambda: ops.scatter(ROWS, X[:3], (2, 3))),
    "slice larger than the tensor": (ValueError, lambda: ops.slice(X, (0, 0), (5, 3))),
    "scan of nothing": (ValueError, lambda: ops.scan(lambda c, x: (c, x), 0.0)),
    "scan of different lengths": (Exception, lambda: ops.scan(lambda c, x: (c, x[0]), 0.0, (X, X[:2]))),
    "no function": (TypeError, lambda: ops.associative_scan(None, X)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    kind, call = BAD[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value)


# Variables


def test_the_value_of_a_variable_is_the_variable_to_tapes():
    """On TensorFlow it is the variable underneath, which scripts watch and differentiate by."""
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    x = tf.ones([2, 3])
    layer(x)
    value = layer.kernel.value
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x) ** 2)
    np.testing.assert_array_equal(tape.gradient(loss, value), np.full((3, 1), 12.0))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(layer.kernel.value)
        loss = tf.reduce_sum(layer(x) ** 2)
    np.testing.assert_array_equal(tape.gradient(loss, layer.kernel), np.full((3, 1), 12.0))
    with tf.autodiff.ForwardAccumulator(value, tf.ones_like(value)) as accumulator:
        out = layer(x)
    np.testing.assert_array_equal(accumulator.jvp(out), np.full((2, 1), 3.0))
    layer.kernel.assign(value * 2)
    np.testing.assert_array_equal(value, np.ones((3, 1)))  # what it was when it was read


def test_windows_of_odd_length_are_symmetric_as_in_tensorflow():
    real, imaginary = keras.ops.stft(np.arange(12, dtype="float32"), 3, 2, 4)
    np.testing.assert_allclose(real[1], [1.0, 0.0, -1.0], atol=1e-6)
    np.testing.assert_allclose(imaginary[1], [0.0, -1.0, 0.0], atol=1e-6)
