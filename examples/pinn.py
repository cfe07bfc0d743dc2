"""Solve y″ = −y, y(0) = 0, y′(0) = 1 with a network whose loss holds the second derivative of its own output.

    python examples/pinn.py

Three tapes: two give y′ and y″ by t, the outermost one differentiates all of that by the weights.
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args(arguments)

    tf.random.set_seed(0)
    t = tf.constant(np.linspace(0.0, 2 * np.pi, 60)[:, None])  # float64: second derivatives deserve the digits
    weights = [
        tf.Variable(tf.random.normal([1, 24], dtype=tf.float64)),
        tf.Variable(tf.random.uniform([24], -3.0, 3.0, dtype=tf.float64)),
        tf.Variable(tf.zeros([24, 1], dtype=tf.float64)),
    ]

    def solution(t: tf.Tensor) -> tf.Tensor:
        into, bias, out = weights
        return t + t * (1.0 - tf.exp(-t)) * (tf.tanh(t @ into + bias) @ out)  # y(0) = 0 and y′(0) = 1, whatever the weights

    schedule = tf.optimizers.schedules.ExponentialDecay(0.02, decay_steps=500, decay_rate=0.5)
    optimizer = tf.optimizers.Adam(schedule)
    for step in range(options.steps):
        with tf.GradientTape() as training:
            with tf.GradientTape() as second:
                second.watch(t)
                with tf.GradientTape() as first:
                    first.watch(t)
                    y = solution(t)
                slope = first.gradient(y, t)
            curvature = second.gradient(slope, t)
            loss = tf.reduce_mean((curvature + y) ** 2)
        optimizer.apply_gradients(zip(training.gradient(loss, weights), weights))
        if step % 300 == 0 or step == options.steps - 1:
            error = float(np.abs(solution(t).numpy() - np.sin(t.numpy())).max())
            print(f"step {step:4d}  residual {float(loss):.2e}  largest error against sin(t) {error:.4f}")
    return error


if __name__ == "__main__":
    main()
