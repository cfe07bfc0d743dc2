"""Programs as people write them with `tf.keras`, eagerly and compiled, against TensorFlow; and what went wrong in others."""

from __future__ import annotations

import json
from pathlib import Path

import everyday_programs
import numpy as np
import pytest

import gradtape as tf
from gradtape import keras

GOLDENS = json.loads((Path(__file__).parents[1] / "goldens" / "keras" / "everyday.json").read_text())
K, L = keras.backend, keras.layers
data = everyday_programs.data


@pytest.fixture(autouse=True)
def _fresh():
    keras.utils.clear_session()


def assert_close(found, expected) -> None:
    if isinstance(expected, list) and isinstance(found, list):
        assert len(found) == len(expected)
        for part, other in zip(found, expected):
            assert_close(part, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)  # float32, several training steps


PROGRAMS = {program.__name__: program for program in everyday_programs.PROGRAMS}
SLOW = {"penalty"}  # three layers, differentiated twice: long to compile


@pytest.mark.parametrize("name", PROGRAMS)
def test_everyday_programs_give_what_tensorflow_gives(name):
    assert_close(everyday_programs.numbers(PROGRAMS[name](tf, lambda f: f)), GOLDENS[name])


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in PROGRAMS])
def test_compiled_programs_give_what_tensorflow_gives(name):
    pytest.importorskip("jax")
    assert_close(everyday_programs.numbers(PROGRAMS[name](tf, tf.function)), GOLDENS[name])


# Variables


def test_the_shape_of_a_variable_is_a_tensor_shape():
    dense = L.Dense(2)
    dense(tf.ones((1, 3)))
    assert (dense.kernel.shape.rank, dense.kernel.shape.as_list()) == (2, [3, 2])
    assert dense.kernel.shape == (3, 2)
    assert K.count_params(dense.kernel) == 6


def test_variables_made_by_the_first_call_are_read_by_every_later_one():
    """Keras makes variables outside of the function: code that asks whether they are there has to run once more."""
    pytest.importorskip("jax")
    made: list[keras.Variable] = []

    @tf.function
    def scaled(x):
        factor = made[0] if made else 5.0
        if not made:
            made.append(keras.Variable(5.0))
        return x * factor

    scaled(tf.constant(1.0))
    made[0].assign(7.0)
    assert float(scaled(tf.constant(1.0))) == 7.0


def test_finding_out_shapes_changes_no_variable():
    class Counting(L.Layer):
        def __init__(self):
            super().__init__()
            self.count = tf.Variable(0.0, trainable=False)

        def call(self, x):
            self.count.assign_add(1.0)
            return x

    layer = Counting()
    inputs = keras.Input((3,))
    model = keras.Model(inputs, layer(inputs))
    assert float(layer.count) == 0.0
    model(tf.ones((2, 3)))
    assert float(layer.count) == 1.0


# Symbols


def test_tensors_meet_symbols_on_either_side():
    inputs = keras.Input((2,))
    model = keras.Model(inputs, tf.constant(3.0) * inputs - tf.Variable([1.0, 2.0]) / inputs)
    np.testing.assert_allclose(model(tf.constant([[1.0, 4.0]])), [[2.0, 11.5]])


@pytest.mark.parametrize(
    "call",
    [tf.exp, tf.reduce_mean, tf.convert_to_tensor, lambda x: tf.concat([x, x], 1), lambda x: tf.matmul(x, tf.ones((2, 2)))],
    ids=["exp", "reduce_mean", "convert_to_tensor", "concat", "matmul"],
)
def test_a_function_of_ours_on_a_symbol_says_what_to_do(call):
    with pytest.raises(ValueError, match=r"A KerasTensor cannot be used as input(.|\n)*Lambda"):
        call(keras.Input((2,)))


# tf.keras.backend

X = data(3, 4)
SEQUENCE = data(2, 5, 3)
IMAGE = data(2, 6, 6, 3)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: K.softmax(tf.constant(X)), np.exp(X) / np.exp(X).sum(-1, keepdims=True)),
        (lambda: K.softmax(tf.constant(X), axis=[0, 1]), np.exp(X) / np.exp(X).sum()),
        (lambda: K.switch(K.mean(tf.constant(X)) > 9.0, tf.constant(X), -tf.constant(X)), -X),
        (lambda: K.gather(tf.constant(X), [0, 2]), X[[0, 2]]),
        (lambda: K.temporal_padding(tf.constant(SEQUENCE)), np.pad(SEQUENCE, ((0, 0), (1, 1), (0, 0)))),
        (lambda: K.pool2d(tf.constant(IMAGE), (2, 2), (2, 2)), IMAGE.reshape(2, 3, 2, 3, 2, 3).max((2, 4))),
        (lambda: K.conv2d(tf.constant(IMAGE), tf.ones((1, 1, 3, 2))), np.repeat(IMAGE.sum(-1, keepdims=True), 2, -1)),
        (lambda: K.in_top_k(tf.constant([[0.1, 0.9, 0.5]]), tf.constant([2]), 2), [True]),
        (lambda: K.foldl(lambda a, b: a + b, tf.constant(X)), X.sum(0)),
        (lambda: K.map_fn(lambda row: row * 2.0, tf.constant(X)), X * 2),
        (lambda: K.update_add(K.variable(X), tf.constant(X)), 2 * X),
        (lambda: K.rnn(lambda x, s: (x + s[0], [x + s[0]]), tf.constant(SEQUENCE), [tf.zeros((2, 3))])[0], SEQUENCE.sum(1)),
        (lambda: K.dot(tf.constant(X), keras.Variable(X.T)), X @ X.T),
    ],
    ids=[
        "softmax", "softmax_of_axes", "switch", "gather", "temporal_padding", "pool2d", "conv2d", "in_top_k", "foldl", "map_fn",
        "update_add", "rnn", "dot",
    ],
)  # fmt: skip
def test_functions_of_keras_2(call, expected):
    np.testing.assert_allclose(call(), expected, rtol=1e-5, atol=1e-6)


def test_connectionist_classification_of_keras_2():
    probabilities = K.softmax(tf.constant(data(1, 6, 4)))
    cost = K.ctc_batch_cost(tf.constant([[1, 2]]), probabilities, tf.constant([[6]]), tf.constant([[2]]))
    np.testing.assert_allclose(cost, [[4.477872]], rtol=1e-5)
    (decoded,), score = K.ctc_decode(probabilities, tf.constant([6]))
    assert decoded.numpy().tolist() == [[2, 1, 1, -1, -1, -1]]
    np.testing.assert_allclose(score, [[4.5606456]], rtol=1e-5)


def test_losses_have_the_names_that_programs_use():
    for part in (keras.losses, keras.metrics, tf.losses, tf.metrics):
        np.testing.assert_allclose(part.mean_squared_error(tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 2.0]])), [2.0])
        assert part.mean_absolute_error is part.MAE


def test_the_learning_rate_by_the_words_of_keras_2():
    optimizer = keras.optimizers.SGD(0.5)
    K.set_value(optimizer.learning_rate, K.get_value(optimizer.learning_rate) * 0.1)
    np.testing.assert_allclose(optimizer.learning_rate.numpy(), 0.05)


# Errors


def test_an_operation_that_cannot_be_compiled_is_named_without_keras_around_it(caplog):
    pytest.importorskip("jax")

    class Sine(L.Layer):
        def call(self, x):
            return tf.numpy_function(np.sin, [x], tf.float32)

    layer = Sine()
    found = tf.function(lambda x: layer(x))(tf.constant([1.0]))
    np.testing.assert_allclose(found, np.sin([1.0]), rtol=1e-6)
    assert "because tf.numpy_function (" in caplog.text
    assert "Arguments received" not in caplog.text


def test_a_tensor_and_a_symbol_meet_in_a_function_of_ours():
    symbol = keras.Input((3,))
    assert isinstance(tf.multiply(tf.ones((2, 3)), symbol), keras.KerasTensor)
    assert isinstance(tf.ones((2, 3)) * symbol, keras.KerasTensor)
    for function in (tf.maximum, tf.matmul, tf.linalg.solve, tf.linalg.matvec):
        with pytest.raises(ValueError, match="A KerasTensor cannot be used as input"):
            function(tf.ones((3, 3)), symbol)
