"""Compute in float16, keep the weights in float32, and let `LossScale` save the gradients from vanishing.

    python examples/mixed_precision.py

The loss is a small part of a larger one, and its gradients are about 1e-8: less than float16 can hold. Without scaling they
are zero, and nothing is learned.
"""

from __future__ import annotations

import argparse

import gradtape as tf

SMALL_PART = 1e-5


def loss_of(weights: list[tf.Variable], x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    w1, b1, w2, b2 = (tf.cast(w, tf.float16) for w in weights)
    out = tf.tanh(x @ w1 + b1) @ w2 + b2
    return SMALL_PART * tf.reduce_mean((out - y) ** 2)


def fit(optimizer: tf.optimizers.Optimizer, steps: int) -> float:
    """Train from the same start with the given optimizer; returns the last loss, relative to the first."""
    tf.random.set_seed(0)
    x = tf.cast(tf.random.normal([512, 4]), tf.float16)
    y = tf.sin(tf.reduce_sum(x, axis=1, keepdims=True))
    weights = [
        tf.Variable(tf.random.normal([4, 32]) / 2.0),
        tf.Variable(tf.zeros([32])),
        tf.Variable(tf.zeros([32, 1])),
        tf.Variable(tf.zeros([1])),
    ]
    first = last = 0.0
    for step in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_of(weights, x, y)
            scaled = optimizer.scale_loss(loss)
        optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights))
        last = float(loss) / SMALL_PART
        first = first or last
        if step % 100 == 0 or step == steps - 1:
            print(f"  step {step:3d}  loss {last:.3f}")
    return last / first


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args(arguments)

    print("float16 without loss scaling")
    plain = fit(tf.optimizers.Adam(0.01, epsilon=1e-12), options.steps)
    print("float16 with loss scaling")
    scaled = fit(tf.optimizers.LossScale(tf.optimizers.Adam(0.01, epsilon=1e-12)), options.steps)
    print(f"loss left: {plain:.1%} without, {scaled:.1%} with scaling")
    return plain, scaled


if __name__ == "__main__":
    main()
