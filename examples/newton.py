"""Newton's method: the Hessian is the Jacobian of a gradient, by one tape inside another.

python examples/newton.py
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf


def rosenbrock(x: tf.Tensor) -> tf.Tensor:
    """A curved valley; its minimum is 0 at (1, 1, …, 1)."""
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def derivatives(x: tf.Variable) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Value, gradient and Hessian at ``x``."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            value = rosenbrock(x)
        gradient = inner.gradient(value, x)  # inside the outer tape, so that it is recorded
    return value, gradient, outer.jacobian(gradient, x)


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args(arguments)

    x = tf.Variable(np.full(6, 0.5))  # float64, as NumPy made it
    value = rosenbrock(x)
    for step in range(options.steps):
        value, gradient, hessian = derivatives(x)
        size = float(np.linalg.norm(gradient.numpy()))
        print(f"step {step:2d}  value {float(value):12.4e}  |gradient| {size:10.3e}")
        if size < 1e-10:
            break
        direction = np.linalg.solve(hessian.numpy(), gradient.numpy())
        if gradient.numpy() @ direction < 0:  # the Hessian is not positive here: go downhill instead
            direction = gradient.numpy()
        length = 1.0
        while rosenbrock(x - length * direction) > value and length > 1e-8:
            length /= 2
        x.assign_sub(length * direction)
    print("x =", np.round(x.numpy(), 6))
    return float(value)


if __name__ == "__main__":
    main()
