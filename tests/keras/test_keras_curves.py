"""The same weights and data give the loss curves of Keras on TensorFlow: by `train_on_batch`, and by a loop with a tape."""

import json
from pathlib import Path

import curve_models
import numpy as np
import pytest

import gradtape as tf
from gradtape import keras

CURVES = json.loads((Path(__file__).parent.parent / "goldens" / "keras" / "curves.json").read_text())


def by_keras(name: str, *, eagerly: bool) -> list[float]:
    model = curve_models.built(keras, name)
    model.compile(optimizer=curve_models.optimizer(keras, name), loss=curve_models.loss(keras), run_eagerly=eagerly)
    found = []
    for x, y in curve_models.batches(name):
        model.reset_metrics()
        found.append(float(model.train_on_batch(x, y)))
    return found


def by_tape(name: str, *, eagerly: bool) -> list[float]:
    model = curve_models.built(keras, name)
    optimizer, loss = curve_models.optimizer(keras, name), curve_models.loss(keras)

    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True)) + sum(model.losses)
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
        return value

    step = step if eagerly else tf.function(step)
    return [float(step(tf.constant(x), tf.constant(y))) for x, y in curve_models.batches(name)]


WAYS = [
    pytest.param(by_keras, False, id="keras-compiled"),
    pytest.param(by_tape, True, id="tape-eager"),
    pytest.param(by_keras, True, id="keras-eager", marks=pytest.mark.slow),
    pytest.param(by_tape, False, id="tape-compiled", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("train", "eagerly"), WAYS)
@pytest.mark.parametrize("name", curve_models.MODELS)
def test_loss_curves_are_those_of_keras_on_tensorflow(name, train, eagerly):
    if not eagerly:
        pytest.importorskip("jax")
    np.testing.assert_allclose(train(name, eagerly=eagerly), CURVES[name], rtol=1e-4, atol=1e-4)
