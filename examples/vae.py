"""A variational autoencoder: two models, one tape, gradients through random numbers.

    python examples/vae.py

The data are pictures of a spot at some place, 144 pixels each. The encoder has two numbers to describe one, and finds
that two are enough: the place. Leaves a picture of what the decoder draws, for each pair of numbers, in ``out/``.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

import gradtape as tf

SIDE, HIDDEN = 12, 48


def spots(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures [count, 144] with values from 0 to 1, and the places of the spots [count, 2]."""
    places = np.random.default_rng(seed).uniform(2.5, SIDE - 3.5, (count, 2))
    rows, columns = np.mgrid[:SIDE, :SIDE]
    squared = (rows - places[:, :1, None]) ** 2 + (columns - places[:, 1:, None]) ** 2
    return np.exp(-squared / 4.0).reshape(count, -1).astype(np.float32), places


class Layers(tf.Module):
    """Dense layers with silu between them."""

    def __init__(self, *widths: int) -> None:
        super().__init__()
        pairs = list(pairwise(widths))
        self.kernels = [tf.Variable(tf.random.normal(pair, stddev=pair[0] ** -0.5)) for pair in pairs]
        self.biases = [tf.Variable(tf.zeros([n_out])) for _, n_out in pairs]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for kernel, bias in zip(self.kernels[:-1], self.biases):
            x = tf.nn.silu(x @ kernel + bias)
        return x @ self.kernels[-1] + self.biases[-1]


def parts_of_loss(encoder: Layers, decoder: Layers, pictures: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """What the decoder misses, and what the code costs, per picture."""
    mean, log_variance = tf.split(encoder(pictures), 2, axis=1)
    code = mean + tf.exp(0.5 * log_variance) * tf.random.normal(mean.shape)  # differentiable by both
    missed = tf.nn.sigmoid_cross_entropy_with_logits(labels=pictures, logits=decoder(code))
    cost = 0.5 * (mean**2 + tf.exp(log_variance) - log_variance - 1.0)
    return tf.reduce_mean(tf.reduce_sum(missed, axis=1)), tf.reduce_mean(tf.reduce_sum(cost, axis=1))


def explained(encoder: Layers, pictures: np.ndarray, places: np.ndarray) -> float:
    """How much of the variance of the places a smooth function of the two numbers explains."""
    a, b = encoder(tf.constant(pictures)).numpy()[:, :2].astype(np.float64).T
    terms = np.stack([a**i * b**j for i in range(6) for j in range(6 - i)], axis=1)
    fitted = terms @ np.linalg.lstsq(terms, places)[0]
    return 1.0 - float(((fitted - places) ** 2).mean() / places.var(axis=0).mean())


def draw(decoder: Layers, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axis = np.linspace(-1.8, 1.8, 11, dtype=np.float32)
    codes = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    pictures = tf.sigmoid(decoder(tf.constant(codes))).numpy().reshape(11, 11, SIDE, SIDE)
    framed = np.pad(pictures, [(0, 0), (0, 0), (0, 1), (0, 1)], constant_values=1.0)
    path.parent.mkdir(parents=True, exist_ok=True)
    plt.imsave(path, np.kron(framed.swapaxes(1, 2).reshape(11 * (SIDE + 1), -1), np.ones((5, 5))), cmap="Blues")
    print(f"what it learned to draw: {path}")


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.random.set_seed(1)
    encoder, decoder = Layers(SIDE**2, HIDDEN, 4), Layers(2, HIDDEN, HIDDEN, SIDE**2)
    variables = encoder.trainable_variables + decoder.trainable_variables
    optimizer = tf.optimizers.Adam(learning_rate=2e-3)

    @tf.function
    def train(pictures: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            missed, cost = parts_of_loss(encoder, decoder, pictures)
            loss = missed + cost
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return missed, cost

    batches = tf.data.Dataset.from_tensor_slices(spots(4000, seed=0)[0]).shuffle(4000).repeat().batch(32).take(options.steps)
    for step, pictures in enumerate(batches):
        missed, cost = map(float, train(pictures))
        if step % 300 == 0 or step == options.steps - 1:
            print(f"step {step:4d}  loss {missed + cost:6.2f}: pixels {missed:6.2f}, code {cost:5.2f}")

    score = explained(encoder, *spots(1000, seed=1))
    print(f"the two numbers explain {score:.1%} of where the spot is")
    try:
        draw(decoder, options.out / "vae.png")
    except ImportError:
        print("matplotlib is not installed: no picture")
    return score


if __name__ == "__main__":
    main()
