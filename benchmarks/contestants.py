"""The same problems, written by hand in NumPy and as a user writes them with gradtape and with each peer.

Every function here returns ``{case: callable}``; a training case returns its loss, a Jacobian case the matrix. Imports of
the libraries are inside, so that this file loads in any interpreter.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
from problems import CONVOLUTION, JACOBIAN, LEARNING_RATE, PIPELINE, SCAN, TRAINING

Cases = dict[str, Callable[[], Any]]

OPS_PER_CALL = 100


# The limit: no tape, no library


def with_numpy() -> Cases:
    a, b = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)

    def add() -> None:
        add_ = np.add
        for _ in repeat(None, OPS_PER_CALL):
            add_(a, b)

    return {**{name: _numpy_step(name) for name in TRAINING}, "jacobian": _numpy_jacobian(), "add": add}


def _numpy_step(name: str) -> Callable:
    (w1, b1, w2, b2, w3, b3), x, y = TRAINING[name].arrays()
    rate, scale = np.float32(LEARNING_RATE), np.float32(2 / y.size)

    def step() -> Any:
        h1 = np.tanh(x @ w1 + b1)
        h2 = np.tanh(h1 @ w2 + b2)
        error = h2 @ w3 + b3 - y
        loss = (error * error).mean()
        g3 = error * scale
        g2 = (g3 @ w3.T) * (1 - h2 * h2)
        g1 = (g2 @ w2.T) * (1 - h1 * h1)
        for weight, gradient in (
            (w3, h2.T @ g3), (b3, g3.sum(axis=0)),
            (w2, h1.T @ g2), (b2, g2.sum(axis=0)),
            (w1, x.T @ g1), (b1, g1.sum(axis=0)),
        ):  # fmt: skip
            weight -= rate * gradient
        return loss

    return step


def _numpy_jacobian() -> Callable:
    first, second, x = JACOBIAN.arrays()

    def jacobian() -> Any:
        h = np.tanh(x @ first)
        out = np.tanh(h @ second)
        return (((1 - out * out).T * second.T) * (1 - h * h)) @ first.T

    return jacobian


def with_gradtape() -> Cases:
    import gradtape as tf

    first, second, x = (tf.constant(a) for a in JACOBIAN.arrays())

    def jacobian() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = tf.tanh(tf.tanh(x @ first) @ second)
        return tape.jacobian(out, x)

    a, b = tf.ones([16, 16]), tf.ones([16, 16])

    def add() -> None:
        add_ = tf.add
        for _ in repeat(None, OPS_PER_CALL):
            add_(a, b)

    watched, other = tf.ones([16, 16]), tf.ones([16, 16])  # not those above, which no tape ever saw

    def add_after_watch() -> None:
        add_ = tf.add
        for _ in repeat(None, OPS_PER_CALL):
            add_(watched, other)

    def recorded_add() -> None:
        with tf.GradientTape() as tape:
            tape.watch(watched)
            add_ = tf.add
            for _ in repeat(None, OPS_PER_CALL):
                add_(watched, other)

    steps = {name: tensorflow_step(tf, name) for name in TRAINING}
    steps["convolution"] = tensorflow_convolution(tf)
    steps["pipeline"] = tensorflow_pipeline(tf)
    steps["scan"] = tensorflow_scan(tf)
    return {**steps, "jacobian": jacobian, "add": add, "recorded add": recorded_add, "add after watch": add_after_watch}


def tensorflow_step(tf: Any, name: str) -> Callable:
    """The training step as it stands in a TensorFlow 2 script; ``tf`` is gradtape or TensorFlow."""
    arrays, x, y = TRAINING[name].arrays()
    x, y = tf.constant(x), tf.constant(y)
    variables = [tf.Variable(a) for a in arrays]
    w1, b1, w2, b2, w3, b3 = variables
    optimizer = tf.optimizers.SGD(learning_rate=LEARNING_RATE)

    def step() -> Any:
        with tf.GradientTape() as tape:
            h1 = tf.tanh(x @ w1 + b1)
            h2 = tf.tanh(h1 @ w2 + b2)
            loss = tf.reduce_mean(tf.square(h2 @ w3 + b3 - y))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    return step


def tensorflow_convolution(tf: Any) -> Callable:
    """conv2d forward and backward, the sum of squares being the loss; gives the gradient of the filters."""
    x, w = (tf.constant(a) for a in CONVOLUTION.arrays())

    def convolve() -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.conv2d(x, w, strides=1, padding="SAME")
        _, by_filters = tape.gradient(y, [x, w], output_gradients=y)
        return by_filters

    return convolve


def tensorflow_pipeline(tf: Any) -> Callable:
    """A pass over a dataset: slices, shuffled with a full buffer, in batches; gives how many rows came."""
    dataset = tf.data.Dataset.from_tensor_slices(PIPELINE.arrays()).shuffle(PIPELINE.rows).batch(PIPELINE.batch)

    def once() -> Any:
        return sum(x.shape[0] for x, _ in dataset)

    return once


def tensorflow_scan(tf: Any) -> Callable:
    """`tf.scan` under a tape, and the gradient of its last state by the matrix."""
    w, inputs = (tf.constant(a) for a in SCAN.arrays())
    start = tf.zeros([SCAN.batch, SCAN.width])

    def recur() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            states = tf.scan(lambda h, x: tf.tanh(h @ w + x), inputs, initializer=start)
            last = states[-1]
        return tape.gradient(last, w)

    return recur


# The peers


def with_tensorflow() -> Cases:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    others = {"convolution": tensorflow_convolution(tf), "pipeline": tensorflow_pipeline(tf), "scan": tensorflow_scan(tf)}
    return {**{name: tensorflow_step(tf, name) for name in TRAINING}, **others}


def with_torch() -> Cases:
    import torch

    def make(name: str) -> Callable:
        arrays, x, y = TRAINING[name].arrays()
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        w1, b1, w2, b2, w3, b3 = weights = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
        optimizer = torch.optim.SGD(weights, lr=LEARNING_RATE)

        def step() -> Any:
            optimizer.zero_grad()
            h1 = torch.tanh(x @ w1 + b1)
            h2 = torch.tanh(h1 @ w2 + b2)
            loss = torch.mean((h2 @ w3 + b3 - y) ** 2)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return {name: make(name) for name in TRAINING}


def with_autograd() -> Cases:
    import autograd.numpy as anp
    from autograd import value_and_grad

    def make(name: str) -> Callable:
        weights, x, y = TRAINING[name].arrays()

        def loss_of(weights: Any) -> Any:
            w1, b1, w2, b2, w3, b3 = weights
            h1 = anp.tanh(x @ w1 + b1)
            h2 = anp.tanh(h1 @ w2 + b2)
            return anp.mean((h2 @ w3 + b3 - y) ** 2)

        both = value_and_grad(loss_of)
        rate = np.float32(LEARNING_RATE)

        def step() -> Any:
            loss, gradients = both(weights)
            for weight, gradient in zip(weights, gradients):
                weight -= rate * gradient
            return loss

        return step

    return {name: make(name) for name in TRAINING}


def with_jax() -> Cases:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax.numpy as jnp

    def make(name: str) -> Callable:
        arrays, x, y = TRAINING[name].arrays()

        def loss_of(weights: Any) -> Any:
            w1, b1, w2, b2, w3, b3 = weights
            h1 = jnp.tanh(x @ w1 + b1)
            h2 = jnp.tanh(h1 @ w2 + b2)
            return jnp.mean((h2 @ w3 + b3 - y) ** 2)

        def update(weights: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(weights)
            return loss, [w - LEARNING_RATE * g for w, g in zip(weights, gradients)]

        compiled = jax.jit(update, donate_argnums=0)
        weights = [jnp.asarray(a) for a in arrays]

        def step() -> Any:
            nonlocal weights
            loss, weights = compiled(weights)
            return loss.block_until_ready()

        return step

    first, second, x = (jnp.asarray(a) for a in JACOBIAN.arrays())
    compiled = jax.jit(jax.jacrev(lambda x: jnp.tanh(jnp.tanh(x @ first) @ second)))
    return {**{name: make(name) for name in TRAINING}, "jacobian": lambda: compiled(x).block_until_ready()}


PEERS: dict[str, tuple[str, Callable[[], Cases]]] = {
    "TensorFlow": ("tensorflow", with_tensorflow),
    "PyTorch": ("torch", with_torch),
    "JAX": ("jax", with_jax),
    "HIPS autograd": ("autograd", with_autograd),
}
"""Peer → (module, cases)."""
