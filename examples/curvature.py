"""How steep is the valley? Curvature of a network's loss while it trains, from Hessian-vector products alone.

    python examples/curvature.py

`autodiff.hvp` gives H·v, forward mode over reverse, at a few times the price of a gradient; the matrix never exists. Lanczos's
method turns a dozen of them into the extreme eigenvalues. Gradient descent with the rate η can follow a curvature of up to
2/η: the table shows the sharpness rise to that line and stay there. In the end the whole Hessian confirms the number.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import gradtape as tf

RATE = 0.2


def parameters() -> list[tf.Variable]:
    rng = np.random.default_rng(0)
    shapes = [(1, 16), (16,), (16, 16), (16,), (16, 1), (1,)]
    return [tf.Variable(rng.normal(size=s) / s[0] ** 0.5 if len(s) == 2 else np.zeros(s)) for s in shapes]


def unpacked(flat: np.ndarray, like: list) -> list[np.ndarray]:
    ends = np.cumsum([v.shape.num_elements() for v in like])
    return [part.reshape(v.shape) for part, v in zip(np.split(flat, ends[:-1]), like)]


def packed(parts: list) -> np.ndarray:
    return np.concatenate([np.ravel(p) for p in parts])


def extreme_eigenvalues(product: Callable, size: int, count: int = 20) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of a symmetric matrix, by Lanczos's method from ``count`` products with it."""
    basis = np.zeros((count, size))
    vector = np.random.default_rng(1).normal(size=size)
    projected = np.zeros((count, count))
    for i in range(count):
        basis[i] = vector / np.linalg.norm(vector)
        vector = product(basis[i])
        projected[i] = basis @ vector
        for _ in range(2):  # once is not enough in floating point
            vector = vector - basis.T @ (basis @ vector)
    values = np.linalg.eigvalsh(projected)
    return float(values[0]), float(values[-1])


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args(arguments)

    x = tf.constant(np.linspace(-1.0, 1.0, 40)[:, None])
    y = tf.sin(4.0 * x)
    weights = parameters()
    size = sum(v.shape.num_elements() for v in weights)
    optimizer = tf.optimizers.SGD(RATE)

    def loss(weights: list) -> tf.Tensor:
        w1, b1, w2, b2, w3, b3 = weights
        hidden = tf.tanh(tf.tanh(x @ w1 + b1) @ w2 + b2)
        return tf.reduce_mean((hidden @ w3 + b3 - y) ** 2)

    def product(v: np.ndarray) -> np.ndarray:
        return packed(tf.autodiff.hvp(loss, weights, unpacked(v, weights)))

    print(f"{size} weights; gradient descent follows curvatures up to 2/η = {2 / RATE:.1f}\n")
    print("step     loss   smallest and largest eigenvalue")
    for step in range(options.steps + 1):
        if step % max(1, options.steps // 10) == 0:
            smallest, largest = extreme_eigenvalues(product, size)
            bar = "▇" * round(10 * RATE * largest)
            print(f"{step:4d}  {float(loss(weights)):.5f}   {smallest:6.2f}  {largest:6.2f}  {bar}")
        optimizer.minimize(lambda: loss(weights), weights)

    def loss_of_flat(flat: tf.Tensor) -> tf.Tensor:
        parts = tf.split(flat, [v.shape.num_elements() for v in weights])
        return loss([tf.reshape(part, v.shape) for part, v in zip(parts, weights)])

    _, largest = extreme_eigenvalues(product, size, count=40)
    hessian = tf.autodiff.hessian(loss_of_flat, packed(weights)).numpy()
    exact = float(np.linalg.eigvalsh(hessian)[-1])
    print(f"\nlargest eigenvalue in the end: {largest:.8f} from 40 products, {exact:.8f} from the Hessian of {size} × {size}")
    return largest, exact


if __name__ == "__main__":
    main()
