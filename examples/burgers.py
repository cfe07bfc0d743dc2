"""Solve Burgers' equation u_t + u u_x = ν u_xx with a Keras network that knows nothing but the equation (PINN).

    python examples/burgers.py

At t = 0 there is a sine wave, which steepens into a front at x = 0. Two tapes give the derivatives by place and time, a third
one differentiates the equation's residual by the weights. The exact solution is known, so the error is too. Leaves a picture
in ``out/``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import gradtape as tf
from gradtape.keras import layers

VISCOSITY = 0.03 / np.pi


def exact(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The solution by the transform of Cole and Hopf: a quotient of two integrals, by Gauss–Hermite quadrature."""
    nodes, weights = np.polynomial.hermite.hermgauss(120)
    places = x[..., None] - np.sqrt(4 * VISCOSITY * t[..., None]) * nodes
    exponents = -np.cos(np.pi * places) / (2 * np.pi * VISCOSITY)
    weighted = weights * np.exp(exponents - exponents.max(axis=-1, keepdims=True))
    return -(np.sin(np.pi * places) * weighted).sum(axis=-1) / weighted.sum(axis=-1)


class Solution(tf.keras.Model):
    """u(x, t) of a form that is −sin πx at the beginning and 0 at both ends, whatever the network says."""

    def __init__(self) -> None:
        super().__init__()
        hidden = [layers.Dense(24, activation="tanh") for _ in range(4)]
        self.network = tf.keras.Sequential([layers.Input([2]), *hidden, layers.Dense(1)])

    def call(self, x: tf.Tensor, t: tf.Tensor) -> tf.Tensor:
        free = self.network(tf.concat([x, t], axis=1))
        return -tf.sin(np.pi * x) + t * (1.0 - x**2) * free


def residual(solution: Solution, x: tf.Tensor, t: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch([x, t])
            u = solution(x, t)
        by_x, by_t = first.gradient(u, [x, t])
    return by_t + u * by_x - VISCOSITY * second.gradient(by_x, x)


def error(solution: Solution) -> tuple[float, np.ndarray, np.ndarray]:
    """The error relative to the size of the solution, what is found and what is true, for 100 times and 200 places."""
    t, x = np.meshgrid(np.linspace(0.01, 1.0, 100), np.linspace(-1.0, 1.0, 200), indexing="ij")
    columns = [tf.constant(axis.reshape(-1, 1), tf.float32) for axis in (x, t)]
    found, true = solution(*columns).numpy().reshape(x.shape), exact(x, t)
    return float(np.linalg.norm(found - true) / np.linalg.norm(true)), found, true


def save(found: np.ndarray, true: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
    left.imshow(found.T, extent=(0, 1, -1, 1), aspect="auto", cmap="RdBu", origin="lower")
    left.set(xlabel="t", ylabel="x", title="u(x, t)")
    for row in (25, 50, 99):
        (line,) = right.plot(np.linspace(-1, 1, 200), found[row], label=f"t = {0.01 * (row + 1):.2f}")
        right.plot(np.linspace(-1, 1, 200), true[row], "--", color=line.get_color())
    right.set(xlabel="x", title="network —, exact - -")
    right.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
    print(f"what it found: {path}")


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.keras.utils.set_random_seed(0)
    solution = Solution()
    schedule = tf.keras.optimizers.schedules.CosineDecay(5e-3, decay_steps=options.steps)
    optimizer = tf.keras.optimizers.Adam(schedule)

    @tf.function
    def train(x: tf.Tensor, t: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(residual(solution, x, t) ** 2)
        gradients = tape.gradient(loss, solution.trainable_variables)
        optimizer.apply_gradients(zip(gradients, solution.trainable_variables))
        return loss

    for step in range(options.steps):
        x, t = tf.random.uniform([512, 1], -1.0, 1.0), tf.random.uniform([512, 1])
        loss = train(x, t)
        if step % 500 == 0 or step == options.steps - 1:
            relative, found, true = error(solution)
            print(f"step {step:4d}  residual {float(loss):.2e}  error {relative:.2%}")
    try:
        save(found, true, options.out / "burgers.png")
    except ImportError:
        print("matplotlib is not installed: no picture")
    return relative


if __name__ == "__main__":
    main()
