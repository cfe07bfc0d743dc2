"""Calibrate a simulator that was written in NumPy: the tape records NumPy's functions as they stand.

    python examples/numpy_simulator.py

A damped pendulum is simulated step by step. From a noisy measurement of its motion, gradient descent through all steps of the
simulation finds its stiffness and its damping.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import gradtape as tf


def simulate(stiffness: Any, damping: Any, steps: int = 120, dt: float = 0.05) -> Any:
    """The angle over time. Plain NumPy: it runs on floats and arrays as well as on tracked tensors."""
    angle, speed, path = np.float64(1.2), np.float64(0.0), []
    for _ in range(steps):
        speed = speed - dt * (stiffness * np.sin(angle) + damping * speed)
        angle = angle + dt * speed
        path.append(angle)
    return np.stack(path)


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args(arguments)

    measured = simulate(4.0, 0.3) + 0.02 * np.random.default_rng(0).normal(size=120)
    stiffness, damping = tf.Variable(np.float64(3.0), name="stiffness"), tf.Variable(np.float64(0.0), name="damping")
    optimizer = tf.optimizers.Adam(learning_rate=0.05)
    for step in range(options.steps):
        with tf.GradientTape() as tape:
            loss = np.mean((simulate(stiffness, damping) - measured) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [stiffness, damping]), [stiffness, damping]))
        if step % 30 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {float(loss):.5f}  stiffness {float(stiffness):.3f}  damping {float(damping):.3f}")
    print("true values:           stiffness 4.000  damping 0.300")
    return float(stiffness), float(damping)


if __name__ == "__main__":
    main()
