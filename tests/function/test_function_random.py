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
    scale = tf.Variable(2.0)
    f = function(lambda: tf.random.normal([50], stddev=scale))
    with tf.GradientTape() as tape:
        y = f()
    np.testing.assert_allclose(tape.gradient(y, scale).numpy(), y.numpy().sum() / 2.0, 1e-5)
