"""A network that hardly learns, and what its tape says about it.

    python examples/look_inside.py
    python -m gradtape view examples/look_inside.py

Eight layers of sigmoids: by the time the gradient arrives at the first one, little is left of it. One scale was forgotten, and
most units of a rectifier with a bad bias are dead. The page and the picture of the tape show all three; the monitor shows how
the first layers stand still while the last one moves.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import gradtape as tf


class Dense(tf.Module):
    """One layer."""

    def __init__(self, inputs: int, outputs: int, activation, name: str, bias: float = 0.0) -> None:
        super().__init__(name)
        rng = np.random.default_rng(inputs)
        with self.name_scope:
            self.kernel = tf.Variable(rng.normal(size=(inputs, outputs)) / inputs**0.5, name="kernel", dtype="float32")
            self.bias = tf.Variable(tf.fill((outputs,), bias), name="bias")
        self.activation = activation

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return self.activation(x @ self.kernel + self.bias)


class Network(tf.Module):
    """Too many sigmoids, a rectifier that is mostly dead, and a scale that nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = [Dense(12, 12, tf.sigmoid, f"sigmoid_{i}") for i in range(8)]
        self.rectifier = Dense(12, 16, tf.nn.relu, "rectifier", bias=-0.6)
        self.last = Dense(16, 1, tf.identity, "last")
        self.scale = tf.Variable(1.0, name="scale")

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for layer in self.hidden:
            x = layer(x)
        return self.last(self.rectifier(x))


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(64, 12)), dtype="float32")
    y = tf.sin(tf.reduce_sum(x, axis=1, keepdims=True))
    network, optimizer = Network(), tf.optimizers.SGD(0.02)
    variables = [v for v in network.trainable_variables if v is not network.scale]
    with tf.inspect.GradientMonitor(every=10) as monitor:
        for _ in range(options.steps):
            with tf.GradientTape(trace=True) as tape:
                loss = tf.reduce_mean((network(x) - y) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    monitor.to_csv(options.out / "gradients.csv")
    monitor.to_png(options.out / "gradients.png")
    tape.page(options.out / "tape.html", loss, network.trainable_variables)
    tape.draw(options.out / "tape.svg", loss)
    norms = {row.name: row.norm for row in monitor.rows}
    share = norms["sigmoid_0/kernel"] / norms["last/kernel"]
    print(f"The first layer gets {share:.1e} of the gradient of the last one. Look at {options.out / 'tape.html'}.")
    return share


if __name__ == "__main__":
    main()
