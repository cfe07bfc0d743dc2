"""Learn to learn: find the start from which one gradient step fits a new sine wave (MAML).

    python examples/maml.py

The inner tape's gradient step is itself recorded by the outer tape, so the start is trained *through* the adaptation.
"""

from __future__ import annotations

import argparse

import numpy as np

import gradtape as tf

INNER_RATE = 0.05


def predict(weights: list, x: tf.Tensor) -> tf.Tensor:
    k1, b1, k2, b2, k3, b3 = weights
    return tf.nn.relu(tf.nn.relu(x @ k1 + b1) @ k2 + b2) @ k3 + b3


def loss_of(weights: list, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean((predict(weights, x) - y) ** 2)


def adapted(weights: list, x: tf.Tensor, y: tf.Tensor) -> list[tf.Tensor]:
    """The weights after one gradient step: tensors that still depend on the variables they came from."""
    with tf.GradientTape() as inner:
        inner.watch(weights)
        loss = loss_of(weights, x, y)
    return [w - INNER_RATE * g for w, g in zip(weights, inner.gradient(loss, weights))]


def sine_task(rng: np.random.Generator, count: int = 10) -> tuple[tf.Tensor, ...]:
    """Points of one sine wave of random height and phase: some to adapt on, some to be judged on."""
    height, phase = rng.uniform(0.5, 2.0), rng.uniform(0, np.pi)
    x = rng.uniform(-3, 3, (2 * count, 1)).astype(np.float32)
    y = (height * np.sin(x - phase)).astype(np.float32)
    return tuple(tf.constant(part) for part in (x[:count], y[:count], x[count:], y[count:]))


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    shapes = [(1, 40), (40,), (40, 40), (40,), (40, 1), (1,)]
    start = [tf.Variable(tf.random.normal(s, stddev=(2 / s[0]) ** 0.5) if len(s) == 2 else tf.zeros(s)) for s in shapes]
    optimizer = tf.optimizers.Adam(1e-2)

    @tf.function
    def train(tasks: list) -> tf.Tensor:
        with tf.GradientTape() as outer:
            losses = [loss_of(adapted(start, x, y), x_new, y_new) for x, y, x_new, y_new in tasks]
            loss = tf.add_n(losses) / len(losses)
        optimizer.apply_gradients(zip(outer.gradient(loss, start), start))
        return loss

    for step in range(options.steps):
        loss = train([sine_task(rng) for _ in range(4)])
        if step % 150 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss after one step of adaptation {float(loss):.3f}")

    tasks = [sine_task(np.random.default_rng(1000 + i)) for i in range(50)]
    before = float(np.mean([float(loss_of(start, x_new, y_new)) for _, _, x_new, y_new in tasks]))
    after = float(np.mean([float(loss_of(adapted(start, x, y), x_new, y_new)) for x, y, x_new, y_new in tasks]))
    print(f"50 unseen tasks: loss {before:.3f} before one step of adaptation, {after:.3f} after it")
    return before, after


if __name__ == "__main__":
    main()
