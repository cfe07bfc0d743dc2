"""A Wasserstein GAN with gradient penalty, as a Keras model whose `train_step` is written with tapes.

    python examples/wgan_gp.py

The data lie in eight spots on a ring, and a plain GAN likes to forget some of them. The critic's loss holds the gradient of
its own output, from a tape inside the tape. `fit` compiles the step and shows progress. Leaves a picture in ``out/``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as tf
from gradtape.keras import layers

SPOTS, RADIUS, DEVIATION = 8, 2.0, 0.1
BATCH, CRITIC_STEPS, PENALTY = 128, 3, 1.0
ANGLES = 2 * np.pi * np.arange(SPOTS) / SPOTS
CENTRES = RADIUS * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


def ring(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (CENTRES[rng.integers(SPOTS, size=count)] + DEVIATION * rng.normal(size=(count, 2))).astype(np.float32)


def network(n_in: int, n_out: int) -> tf.keras.Model:
    hidden = [layers.Dense(96, activation="relu") for _ in range(3)]
    return tf.keras.Sequential([layers.Input([n_in]), *hidden, layers.Dense(n_out)])


class WassersteinGAN(tf.keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = network(2, 2), network(2, 1)

    def compile(self, generator_optimizer: Any, critic_optimizer: Any, **options: Any) -> None:
        super().compile(**options)
        self.generator_optimizer, self.critic_optimizer = generator_optimizer, critic_optimizer

    def made(self, count: int) -> tf.Tensor:
        return self.generator(tf.random.normal([count, 2]))

    def critic_loss(self, real: tf.Tensor) -> tf.Tensor:
        """How much less the critic thinks of what is made, and how far its slope between the two is from 1."""
        made = self.made(BATCH)
        between = made + tf.random.uniform([BATCH, 1]) * (real - made)
        with tf.GradientTape() as inner:
            inner.watch(between)
            judged = self.critic(between)
        slope = tf.norm(inner.gradient(judged, between), axis=1)
        penalty = tf.reduce_mean((slope - 1.0) ** 2)
        return tf.reduce_mean(self.critic(made)) - tf.reduce_mean(self.critic(real)) + PENALTY * penalty

    def train_step(self, real: tf.Tensor) -> dict[str, tf.Tensor]:
        for part in tf.split(real, CRITIC_STEPS):
            with tf.GradientTape() as tape:
                critic_loss = self.critic_loss(part)
            gradients = tape.gradient(critic_loss, self.critic.trainable_variables)
            self.critic_optimizer.apply_gradients(zip(gradients, self.critic.trainable_variables))
        with tf.GradientTape() as tape:
            generator_loss = -tf.reduce_mean(self.critic(self.made(BATCH)))
        gradients = tape.gradient(generator_loss, self.generator.trainable_variables)
        self.generator_optimizer.apply_gradients(zip(gradients, self.generator.trainable_variables))
        return {"critic": critic_loss, "generator": generator_loss}


def judge(made: np.ndarray) -> tuple[float, int]:
    """The share of points that lie in a spot, and how many of the spots they fill."""
    distances = np.linalg.norm(made[:, None] - CENTRES, axis=2)
    inside = distances.min(axis=1) < 4 * DEVIATION
    filled = np.bincount(distances[inside].argmin(axis=1), minlength=SPOTS) > 0.02 * len(made)
    return float(inside.mean()), int(filled.sum())


def save(made: np.ndarray, real: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(4, 4))
    axes.scatter(*real[:1000].T, s=3, label="real")
    axes.scatter(*made[:1000].T, s=3, label="made")
    axes.set_aspect("equal")
    axes.legend(loc="center")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"what it makes: {path}")


def main(arguments: list[str] | None = None) -> tuple[float, int]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(0)
    real = ring(20_000)
    batches = tf.data.Dataset.from_tensor_slices(real).shuffle(len(real)).repeat().batch(CRITIC_STEPS * BATCH)
    model = WassersteinGAN()
    adam = tf.keras.optimizers.Adam
    model.compile(adam(5e-4, beta_1=0.0, beta_2=0.9), adam(1e-3, beta_1=0.0, beta_2=0.9), run_eagerly=options.eager)
    per_epoch = min(options.steps, 500)
    model.fit(batches, steps_per_epoch=per_epoch, epochs=options.steps // per_epoch, verbose=2)

    made = model.made(4000).numpy()
    share, filled = judge(made)
    print(f"{share:.1%} of what it makes lies in a spot, and {filled} of the {SPOTS} spots are filled")
    try:
        save(made, real, options.out / "wgan_gp.png")
    except ImportError:
        print("matplotlib is not installed: no picture")
    return share, filled


if __name__ == "__main__":
    main()
