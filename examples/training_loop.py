"""A training step in three moves: compute the gradients, look at them and clip them, apply them.

python examples/training_loop.py
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np

import gradtape as tf


class Network(tf.Module):
    """tanh layers; a Module finds its variables by itself."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        self.kernels = [tf.Variable(tf.random.normal([a, b]) / a**0.5, name=f"kernel_{i}") for i, (a, b) in pairs(widths)]
        self.biases = [tf.Variable(tf.zeros([b]), name=f"bias_{i}") for i, (_, b) in pairs(widths)]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1]):
            x = tf.tanh(x @ kernel + bias)
        return x @ self.kernels[-1] + self.biases[-1]


def pairs(widths: list[int]) -> list[tuple[int, tuple[int, int]]]:
    return list(enumerate(pairwise(widths)))


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args(arguments)

    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (512, 1)).astype(np.float32)
    y = (np.sin(2 * x) + 0.05 * rng.normal(size=x.shape)).astype(np.float32)
    y[rng.integers(0, 512, 3)] += 20.0  # a few measurements are badly wrong, and their gradients are huge

    network = Network([1, 32, 32, 1])
    variables = network.trainable_variables
    optimizer = tf.optimizers.Adam(learning_rate=0.01)
    clipped, loss = 0, tf.constant(0.0)
    for step in range(options.steps):
        rows = rng.integers(0, 512, 64)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((network(tf.constant(x[rows])) - y[rows]) ** 2)
        gradients = tape.gradient(loss, variables)
        gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
        clipped += float(norm) > 1.0
        optimizer.apply_gradients(zip(gradients, variables))
        if step % 100 == 0 or step == options.steps - 1:
            sizes = {v.name: float(tf.reduce_sum(g**2)) for g, v in zip(gradients, variables)}
            most = max(sizes, key=sizes.get)
            print(f"step {step:3d}  loss {float(loss):7.4f}  |gradient| {float(norm):7.3f}, most of it in {most}")
    typical = float(np.median(np.abs(network(tf.constant(x)).numpy() - y)))
    print(f"clipped in {clipped} of {options.steps} steps; median error {typical:.3f}")
    return typical


if __name__ == "__main__":
    main()
