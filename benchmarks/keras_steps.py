"""Training steps of Keras models by a loop of one's own: the tape's, as a TensorFlow script writes it, and jax's, as the
guide of Keras writes it. Keras has one backend per process, so each peer needs a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

Cases = dict[str, Callable[[], Any]]
MODELS = {"mlp": (64, (784,)), "cnn": (32, (28, 28, 1))}
"""Model → batch size and the shape of an example."""


def model_of(keras: Any, name: str) -> Any:
    layers = keras.layers
    _, shape = MODELS[name]
    if name == "mlp":
        inner = [layers.Dense(128, activation="relu"), layers.Dense(64, activation="relu")]
    else:
        inner = [
            layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(), layers.Flatten(),
        ]  # fmt: skip
    model = keras.Sequential([keras.Input(shape), *inner, layers.Dense(10)])
    random = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign((random.normal(size=weight.shape) / np.sqrt(np.prod(weight.shape[:-1]))).astype("float32"))
    return model


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    batch, shape = MODELS[name]
    random = np.random.default_rng(1)
    return random.normal(size=(batch, *shape)).astype("float32"), random.integers(0, 10, batch).astype("int32")


def tape_step(tf: Any, name: str) -> Callable:
    """``tf`` is gradtape or TensorFlow."""
    model = model_of(tf.keras, name)
    optimizer = tf.keras.optimizers.Adam(1e-3)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step


def tape_cases(tf: Any) -> Cases:
    cases: Cases = {}
    for name in MODELS:
        x, y = (tf.constant(a) for a in data_of(name))
        for label, step in ((name, tape_step(tf, name)), (f"{name} compiled", tf.function(tape_step(tf, name)))):
            cases[label] = lambda step=step, x=x, y=y: step(x, y).numpy()
    return cases


def with_gradtape() -> Cases:
    import gradtape

    return tape_cases(gradtape)


def with_tensorflow() -> Cases:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import tensorflow

    return tape_cases(tensorflow)


def with_jax() -> Cases:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["KERAS_BACKEND"] = "jax"
    import jax
    import keras

    def make(name: str) -> Callable:
        model, optimizer = model_of(keras, name), keras.optimizers.Adam(1e-3)
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer.build(model.trainable_variables)

        def loss_and_updates(trained: Any, others: Any, x: Any, y: Any) -> Any:
            logits, others = model.stateless_call(trained, others, x, training=True)
            return loss_of(y, logits), others

        differentiated = jax.value_and_grad(loss_and_updates, has_aux=True)

        @jax.jit
        def step(state: Any, x: Any, y: Any) -> Any:
            trained, others, slots = state
            (loss, others), gradients = differentiated(trained, others, x, y)
            trained, slots = optimizer.stateless_apply(slots, gradients, trained)
            return loss, (trained, others, slots)

        parts = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
        state = tuple([v.value for v in part] for part in parts)
        x, y = (jax.numpy.asarray(a) for a in data_of(name))

        def run() -> Any:
            nonlocal state
            loss, state = step(state, x, y)
            return np.asarray(loss)

        return run

    return {f"{name} compiled": make(name) for name in MODELS}


PEERS: dict[str, tuple[str, Callable[[], Cases]]] = {
    "gradtape": ("gradtape", with_gradtape),
    "Keras on TensorFlow": ("tensorflow", with_tensorflow),
    "Keras on JAX": ("jax", with_jax),
}
"""Peer → (module, cases)."""
