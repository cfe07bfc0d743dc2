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
from problems import BAND, CONVOLUTION, EXAMPLES, JACOBIAN, LEARNING_RATE, ORDER, PIPELINE, PRODUCTS, SCAN, TRAINING

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

    def recorded_add(trace: bool = False) -> None:
        with tf.GradientTape(trace=trace) as tape:
            tape.watch(watched)
            add_ = tf.add
            for _ in repeat(None, OPS_PER_CALL):
                add_(watched, other)

    steps = {name: tensorflow_step(tf, name) for name in TRAINING}
    steps["convolution"] = tensorflow_convolution(tf)
    steps["pipeline"] = tensorflow_pipeline(tf)
    steps["scan"] = tensorflow_scan(tf)
    steps |= gradtape_products(tf) | gradtape_examples(tf) | gradtape_series(tf) | gradtape_band(tf)
    steps |= {"jacobian": jacobian, "add": add, "add after watch": add_after_watch}
    return {**steps, "recorded add": recorded_add, "traced add": lambda: recorded_add(trace=True)}


def gradtape_network(tf: Any, kernels: list) -> Callable:
    def network(x: Any) -> Any:
        for kernel in kernels:
            x = tf.tanh(x @ kernel)
        return tf.reduce_sum(x)

    return network


def gradtape_products(tf: Any) -> Cases:
    """Gradient and Hessian-vector product of a network by its inputs."""
    from gradtape import autodiff

    kernels, x, v = PRODUCTS.arrays()
    x, v = tf.constant(x), tf.constant(v)
    network = gradtape_network(tf, [tf.Variable(k) for k in kernels])
    return {
        "gradient": lambda: autodiff.value_and_gradient(network, x)[1],
        "hvp": lambda: autodiff.hvp(network, x, v),
    }


def gradtape_examples(tf: Any) -> Cases:
    """Gradients of each example, at once and one by one."""
    from gradtape import autodiff

    arrays, x, _ = EXAMPLES.arrays()
    x, kernels = tf.constant(x), [tf.Variable(a) for a in arrays]
    network = gradtape_network(tf, kernels)

    def one_by_one() -> Any:
        found = []
        for i in range(EXAMPLES.batch):
            with tf.GradientTape() as tape:
                loss = network(x[i : i + 1])
            found.append(tape.gradient(loss, kernels))
        return tf.stack([row[-1] for row in found])

    return {
        "per example": lambda: autodiff.per_example_gradients(lambda row: network(row[None]), kernels, x)[-1],
        "one by one": one_by_one,
    }


def gradtape_series(tf: Any) -> Cases:
    """All derivatives of a function of one number up to some order: as a power series, and by nested tapes."""
    from gradtape import autodiff

    x, one = tf.constant(0.5, tf.float64), tf.constant(1.0, tf.float64)

    def f(x: Any) -> Any:
        return tf.sin(x) * tf.exp(-x * x) / (1.0 + x)

    def nested(order: int) -> Any:
        if not order:
            return f(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = nested(order - 1)
        return tape.gradient(y, x)

    return {
        "taylor": lambda: autodiff.taylor(f, x, one, ORDER)[-1],
        "nested tapes": lambda: nested(ORDER),
    }


def gradtape_band(tf: Any) -> Cases:
    """A reaction with diffusion, and its Jacobian with three entries a row; the pattern is coloured once."""
    from gradtape import autodiff

    u = tf.constant(BAND)

    def rate(u: Any) -> Any:
        padded = tf.pad(u, [[1, 1]])
        return (padded[2:] - 2.0 * u + padded[:-2]) * 0.3 + u - u * u * u

    coloring = autodiff.coloring(autodiff.jacobian_sparsity(rate, u))

    def jacobian() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(u)
            y = rate(u)
        return tape.sparse_jacobian(y, u, coloring).data

    return {"band": jacobian, "rate": lambda: rate(u)}


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
    jacobian = {"jacobian": lambda: compiled(x).block_until_ready()}
    return {**{name: make(name) for name in TRAINING}, **jacobian, **jax_products(jax), **jax_series(jax)}


def jax_products(jax: Any) -> Cases:
    jnp = jax.numpy

    def network(kernels: Any, x: Any) -> Any:
        for kernel in kernels:
            x = jnp.tanh(x @ kernel)
        return x.sum()

    kernels, x, v = jax.tree.map(jnp.asarray, PRODUCTS.arrays())
    by_input, by_kernels = jax.grad(network, 1), jax.grad(network)
    gradient = jax.jit(lambda x: by_input(kernels, x))
    hvp = jax.jit(lambda x, v: jax.jvp(lambda x: by_input(kernels, x), (x,), (v,))[1])
    small, rows, _ = jax.tree.map(jnp.asarray, EXAMPLES.arrays())
    single = jax.jit(lambda row: by_kernels(small, row[None]))
    every = jax.jit(jax.vmap(lambda row: by_kernels(small, row[None])))
    return {
        "gradient": lambda: gradient(x).block_until_ready(),
        "hvp": lambda: hvp(x, v).block_until_ready(),
        "per example": lambda: jax.block_until_ready(every(rows))[-1],
        "one by one": lambda: np.stack([jax.block_until_ready(single(row))[-1] for row in rows]),
    }


def jax_series(jax: Any) -> Cases:
    from jax.experimental.jet import jet

    jnp = jax.numpy

    def f(x: Any) -> Any:
        return jnp.sin(x) * jnp.exp(-x * x) / (1.0 + x)

    nested = f
    for _ in range(ORDER):
        nested = jax.grad(nested)
    series = [1.0, *[0.0] * (ORDER - 1)]
    by_series, by_nesting = jax.jit(lambda x: jet(f, (x,), (series,))[1][-1]), jax.jit(nested)
    return {
        "taylor": lambda: by_series(0.5).block_until_ready(),
        "nested tapes": lambda: by_nesting(0.5).block_until_ready(),
    }


PEERS: dict[str, tuple[str, Callable[[], Cases]]] = {
    "TensorFlow": ("tensorflow", with_tensorflow),
    "PyTorch": ("torch", with_torch),
    "JAX": ("jax", with_jax),
    "HIPS autograd": ("autograd", with_autograd),
}
"""Peer → (module, cases)."""
