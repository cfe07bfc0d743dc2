"""Random numbers inside a function: new at every call, and the same as in eager code with the same seed."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def _unpredictable_again():
    yield
    tf.random.set_seed(None)


def draws(x):
    return [
        tf.random.normal([3]) * x,
        tf.random.uniform([3], -1.0, 2.0),
        tf.random.uniform([4], 0, 10, tf.int32),
        tf.random.truncated_normal([2], seed=5),
        tf.nn.dropout(x, 0.5),
        tf.random.shuffle(x),
    ]


def test_the_numbers_are_those_of_eager_code():
    x = tf.constant([1.0, 2.0, 3.0])
    f = function(draws)
    for seed in (1, 2):
        tf.random.set_seed(seed)
        eager = [draws(x) for _ in range(3)]
        tf.random.set_seed(seed)
        compiled = [f(x) for _ in range(3)]
        for one, two in zip(eager, compiled):
            for a, b in zip(one, two):
                assert a.dtype is b.dtype
                np.testing.assert_allclose(b.numpy(), a.numpy(), 1e-6)
    assert f.experimental_get_tracing_count() == 1


def test_every_call_draws_anew():
    f = function(lambda: tf.random.normal([2]))
    numbers = {tuple(f().numpy().tolist()) for _ in range(5)}
    assert len(numbers) == 5


def test_gradients_flow_to_parameters():
    tf.random.set_seed(1)
    scale = tf.Variable(2.0)
    f = function(lambda: tf.random.normal([50], stddev=scale))
    with tf.GradientTape() as tape:
        y = f()
    np.testing.assert_allclose(tape.gradient(y, scale).numpy(), y.numpy().sum() / 2.0, 1e-5)


def test_a_call_that_makes_its_program_anew_draws_once():
    def step(x, n):
        drawn = tf.random.normal([])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 0.5), [0, x])[1]
        return drawn, tape.gradient(y, x)

    def numbers(decorate):
        tf.random.set_seed(1)
        f = decorate(step)
        return [float(f(tf.constant(1.0), tf.constant(n))[0]) for n in (3, 40, 5)]

    assert numbers(function) == numbers(lambda f: f)


def test_a_call_whose_variable_has_another_shape_now_draws_once():
    def numbers(decorate):
        tf.random.set_seed(1)
        v = tf.Variable([1.0], shape=tf.TensorShape([None]))
        f = decorate(lambda: tf.reduce_sum(v) + tf.random.normal([]))
        found = [float(f())]
        v.assign([1.0, 2.0])
        with tf.GradientTape():  # no value is held then
            found += [float(f()), float(f())]
        return found

    np.testing.assert_allclose(numbers(function), numbers(lambda f: f), rtol=1e-6)
