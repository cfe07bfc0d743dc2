"""Fit a line with Adam: the smallest training loop there is.

python examples/linear_regression.py
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args(arguments)

    rng = np.random.default_rng(0)
    x = tf.constant(rng.uniform(-1, 1, 200), dtype=tf.float32)
    y = 3.0 * x + 2.0 + tf.constant(0.1 * rng.normal(size=200), dtype=tf.float32)

    slope, intercept = tf.Variable(0.0, name="slope"), tf.Variable(0.0, name="intercept")
    optimizer = tf.optimizers.Adam(learning_rate=0.05)
    for step in range(options.steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * x + intercept - y) ** 2)
        gradients = tape.gradient(loss, [slope, intercept])
        optimizer.apply_gradients(zip(gradients, [slope, intercept]))
        if step % 100 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss:.4f}  slope {float(slope):.3f}  intercept {float(intercept):.3f}")
    return float(slope), float(intercept)


if __name__ == "__main__":
    main()
