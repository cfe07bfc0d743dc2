"""`tf.gradients` and `tf.hessians` inside a function, with what TensorFlow gives."""

from __future__ import annotations

import pytest

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")
X = tf.constant([1.0, 2.0])


def lists(structure):
    return tf.nest.map_structure(lambda t: None if t is None else t.numpy().tolist(), structure)


def test_gradients():
    @function
    def f(x):
        y, c = x * x, tf.constant(2.0)
        z = tf.reduce_sum(y * c)
        return [
            tf.gradients(z, [x, y, c]),
            tf.gradients(z, x, stop_gradients=[y]),
            tf.gradients([z, y], [x], grad_ys=[tf.constant(2.0), None]),
            tf.gradients(z, tf.constant(1.0), unconnected_gradients="zero"),
        ]

    assert lists(f(X)) == [[[4.0, 8.0], [2.0, 2.0], 5.0], [None], [[10.0, 20.0]], [0.0]]


def test_partial_derivatives_by_stopping_at_the_sources():
    @function
    def f(a):
        b, c = tf.unstack(tf.stack([2.0 * a, 3.0 * a]))
        return tf.gradients(a + b * c, [a, b, c], stop_gradients=[a, b]), tf.gradients(b * c, [a], stop_gradients=[b])

    assert lists(f(tf.constant(1.0))) == ([10.0 - 3.0, 3.0, 2.0], [6.0])


def test_hessians_and_gradients_of_gradients():
    @function
    def f(x):
        y = tf.reduce_sum(x**3.0)
        return tf.hessians(y, x), tf.gradients(tf.gradients(y, x)[0], x)

    assert lists(f(X)) == ([[[6.0, 0.0], [0.0, 12.0]]], [[6.0, 12.0]])


def test_variables_and_what_was_assigned_before():
    v, count = tf.Variable(3.0), tf.Variable(0)

    @function
    def f(x):
        count.assign_add(1)
        return tf.gradients(v * v * x + tf.random.normal([]), [v, x])

    assert lists([f(tf.constant(2.0)), f(tf.constant(1.0))]) == [[12.0, 9.0], [6.0, 9.0]]
    assert int(count) == 2


def test_under_a_tape_outside():
    f = function(lambda x: tf.gradients(x**3.0, x)[0])
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    assert lists(tape.gradient(y, X)) == [6.0, 12.0]


def test_eager_code_asks_a_tape():
    for name in ("gradients", "hessians"):
        with pytest.raises(RuntimeError, match=r"tf.gradients is not supported when eager execution is enabled"):
            getattr(tf, name)(X, X)
