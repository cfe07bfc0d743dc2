"""Training programs as people write them with `tf.keras`: the same code on TensorFlow and here, with known weights and data.

``python tests/keras/everyday_programs.py > tests/goldens/keras/everyday.json`` records what they give on a real TensorFlow.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def filled(model: Any) -> Any:
    """The model with known weights; statistics and seeds stay as they are."""
    rng = np.random.default_rng(3)
    for weight in model.weights:
        if "variance" not in weight.path and "seed" not in weight.path:
            weight.assign((0.3 * rng.normal(size=weight.shape)).astype("float32"))
    return model


def mlp(tf: Any, inputs: int = 3, outputs: int = 2) -> Any:
    layers = tf.keras.layers
    return filled(tf.keras.Sequential([tf.keras.Input((inputs,)), layers.Dense(8, "tanh"), layers.Dense(outputs)]))


def update(tape: Any, loss: Any, model: Any, optimizer: Any) -> None:
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


def classifier(tf: Any, wrap: Callable) -> list:
    """A loop of one's own over a dataset, with metrics, a schedule and clipping."""
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.05, 4, 0.9)
    model, optimizer = mlp(tf), tf.keras.optimizers.Adam(schedule, clipnorm=1.0)
    cost = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    mean, accuracy = tf.keras.metrics.Mean(), tf.keras.metrics.SparseCategoricalAccuracy()
    x = data(24, 3)
    dataset = tf.data.Dataset.from_tensor_slices((x, (x[:, 0] > 0).astype("int64"))).batch(8)

    @wrap
    def step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = cost(y, logits)
        update(tape, loss, model, optimizer)
        mean.update_state(loss)
        accuracy.update_state(y, logits)

    history = []
    for _ in range(3):
        mean.reset_state()
        accuracy.reset_state()
        for x, y in dataset:
            step(x, y)
        history.append([mean.result(), accuracy.result()])
    return history


def lazily_built(tf: Any, wrap: Callable) -> list:
    """A subclassed model with statistics and regularizers, built by the first call of the step."""
    layers = tf.keras.layers

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = layers.Dense(5, kernel_initializer="ones", kernel_regularizer="l2")
            self.normalized, self.out = layers.BatchNormalization(), layers.Dense(1, kernel_initializer="ones")
            self.calls = tf.Variable(0, trainable=False)

        def call(self, x, training=None):
            self.calls.assign_add(1)
            return self.out(tf.tanh(self.normalized(self.hidden(x * [1.0, 2.0, 3.0]), training=training)))

    model, optimizer = Model(), tf.keras.optimizers.SGD(0.1, momentum=0.9)

    @wrap
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - 1.0) ** 2) + tf.add_n(model.losses)
        update(tape, loss, model, optimizer)
        return loss

    losses = [step(tf.constant(data(8, 3))) for _ in range(3)]
    return [losses, model.calls, model.normalized.moving_mean]


def loss_scale(tf: Any, wrap: Callable) -> list:
    """Loss scaling by hand, with steps that overflow."""
    model = mlp(tf)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.SGD(0.1), initial_scale=64.0, dynamic_growth_steps=2
    )

    @wrap
    def step(x, factor):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2) * factor
            scaled = optimizer.scale_loss(loss)
        update(tape, scaled, model, optimizer)
        return loss

    history = []
    for factor in (1.0, 1.0, np.inf, 1.0, np.inf, np.inf, 1.0, 1.0):
        loss = step(tf.constant(data(4, 3)), tf.constant(factor, tf.float32))
        history.append([loss if factor == 1 else 0.0, optimizer.dynamic_scale.numpy(), optimizer.iterations.numpy()])
    return [history, model.layers[0].kernel]


def penalty(tf: Any, wrap: Callable) -> list:
    """A gradient penalty, through a convolution, a recurrent layer and attention."""
    layers = tf.keras.layers
    inputs = tf.keras.Input((5, 4))
    x = layers.GRU(4, return_sequences=True)(layers.Conv1D(4, 3, padding="same", activation="tanh")(inputs))
    x = layers.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
    critic = filled(tf.keras.Model(inputs, layers.Dense(1)(layers.GlobalMaxPooling1D()(x))))

    @wrap
    def run(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                tape.watch(x)
                score = critic(x, training=True)
            norm = tf.sqrt(tf.reduce_sum(tape.gradient(score, x) ** 2, axis=[1, 2]))
            loss = tf.reduce_mean((norm - 1.0) ** 2)
        gradients = outer.gradient(loss, critic.trainable_variables)  # None for the last bias
        return [loss, [tf.reduce_sum(tf.sin(g)) for g in gradients if g is not None]]

    return run(tf.constant(data(3, 5, 4)))


def physics(tf: Any, wrap: Callable) -> list:
    """Burgers' equation: second derivatives by the input, and the gradient of what is made of them."""
    model, optimizer = mlp(tf, 2, 1), tf.keras.optimizers.Adam(1e-2)

    @wrap
    def step(x, t):
        with tf.GradientTape() as outer:
            with tf.GradientTape(persistent=True) as second:
                second.watch([x, t])
                with tf.GradientTape() as first:
                    first.watch(x)
                    u = model(tf.concat([x, t], 1))
                u_x = first.gradient(u, x)
            residual = second.gradient(u, t) + u * u_x - 0.01 * second.gradient(u_x, x)
            loss = tf.reduce_mean(residual**2)
        update(outer, loss, model, optimizer)
        return loss

    return [step(tf.constant(data(6, 1)), tf.constant(data(6, 1, seed=1))) for _ in range(3)]


def tied_embedding(tf: Any, wrap: Callable) -> list:
    """Sparse and dense gradients of one weight, clipped together and accumulated."""
    layers = tf.keras.layers
    model = filled(tf.keras.Sequential([tf.keras.Input((3,), dtype="int32"), layers.Embedding(7, 4), layers.Dense(4, "tanh")]))
    optimizer = tf.keras.optimizers.Adam(0.01)
    totals = [tf.Variable(tf.zeros(v.shape)) for v in model.trainable_variables]

    @wrap
    def step(words):
        with tf.GradientTape() as tape:
            states = tf.reshape(model(words), (-1, 4))
            logits = tf.matmul(states, model.layers[0].embeddings, transpose_b=True)
            labels = tf.reshape(words, [-1])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, model.trainable_variables), 0.1)
        for total, gradient in zip(totals, gradients):
            total.assign_add(tf.convert_to_tensor(gradient))
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return [loss, norm]

    return [[step(tf.constant([[1, 2, 2], [3, 0, 6]])) for _ in range(3)], totals[0]]


def custom_cell(tf: Any, wrap: Callable) -> list:
    """A recurrent cell of one's own in words of Keras 2, with a mask, stacked on one of Keras's."""
    layers, backend = tf.keras.layers, tf.keras.backend

    class Cell(layers.Layer):
        state_size = 4

        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], 4), initializer="ones", name="kernel")
            self.recurrent = self.add_weight(shape=(4, 4), initializer="ones", name="recurrent")

        def call(self, x, states):
            state = backend.softmax(backend.dot(x, self.kernel) + backend.dot(states[0], self.recurrent))
            return state, [state]

    model = filled(tf.keras.Sequential([tf.keras.Input((4, 3)), layers.Masking(), layers.RNN([Cell(), layers.GRUCell(2)])]))

    @wrap
    def run(x):
        with tf.GradientTape() as tape:
            y = model(x)
            loss = tf.reduce_sum(y**2)
        return [y, [tf.reduce_sum(tf.abs(g)) for g in tape.gradient(loss, model.trainable_variables)]]

    return run(tf.constant(data(2, 4, 3) * [[[1.0], [1.0], [0.0], [0.0]]], tf.float32))


PROGRAMS = (classifier, lazily_built, loss_scale, penalty, physics, tied_embedding, custom_cell)


def numbers(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [numbers(part) for part in result]
    return np.asarray(result, "float64").tolist()


if __name__ == "__main__":
    import tensorflow

    json.dump({program.__name__: numbers(program(tensorflow, lambda f: f)) for program in PROGRAMS}, sys.stdout, indent=1)
