"""A generator draws digits, a discriminator tells them from real ones: two convolutional networks, two tapes (DCGAN).

    python examples/dcgan.py

Both tapes record the same forward pass, and each is asked for the gradient of one network. Leaves a picture in ``out/``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import gradtape as tf
from gradtape.keras import layers

BATCH, CODE = 64, 24


def make_generator() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            layers.Input([CODE]),
            layers.Dense(4 * 4 * 64, use_bias=False),
            layers.Reshape([4, 4, 64]),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Conv2DTranspose(32, 3, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Conv2D(1, 3, padding="same", activation="sigmoid"),
        ]
    )


def make_discriminator() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            layers.Input([8, 8, 1]),
            layers.Conv2D(32, 3, padding="same"),
            layers.LeakyReLU(),
            layers.Dropout(0.3),
            layers.Conv2D(64, 3, strides=2, padding="same"),
            layers.LeakyReLU(),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )


cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)


class Game:
    """The two networks, their optimizers, and a step of both."""

    def __init__(self) -> None:
        self.generator, self.discriminator = make_generator(), make_discriminator()
        self.generator_optimizer = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)
        self.discriminator_optimizer = tf.keras.optimizers.Adam(5e-4, beta_1=0.5)

    @tf.function
    def step(self, real: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        noise = tf.random.normal([BATCH, CODE])
        with tf.GradientTape() as generator_tape, tf.GradientTape() as discriminator_tape:
            drawn = self.generator(noise, training=True)
            judged_real, judged_drawn = self.discriminator(real, training=True), self.discriminator(drawn, training=True)
            generator_loss = cross_entropy(tf.ones_like(judged_drawn), judged_drawn)
            discriminator_loss = cross_entropy(tf.ones_like(judged_real), judged_real)
            discriminator_loss += cross_entropy(tf.zeros_like(judged_drawn), judged_drawn)
        for tape, loss, model, optimizer in [
            (generator_tape, generator_loss, self.generator, self.generator_optimizer),
            (discriminator_tape, discriminator_loss, self.discriminator, self.discriminator_optimizer),
        ]:
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return generator_loss, discriminator_loss

    def draw(self, count: int) -> np.ndarray:
        return self.generator(tf.random.normal([count, CODE]), training=False).numpy().reshape(count, 8, 8)


def judge(drawn: np.ndarray, pictures: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
    """The share of drawn pictures whose five nearest real ones show the same digit; how many digits there are among them."""
    nearest = KNeighborsClassifier(5).fit(pictures.reshape(-1, 64), labels)
    votes = nearest.predict_proba(drawn.reshape(-1, 64))
    agreed = votes.max(axis=1) == 1.0
    return float(agreed.mean()), len(set(votes[agreed].argmax(axis=1)))


def save(drawn: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    framed = np.pad(drawn[:96].reshape(8, 12, 8, 8), [(0, 0), (0, 0), (1, 1), (1, 1)])
    plt.imsave(path, np.kron(framed.swapaxes(1, 2).reshape(80, 120), np.ones((5, 5))), cmap="gray_r")
    print(f"what it draws: {path}")


def main(arguments: list[str] | None = None) -> tuple[float, int]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.keras.utils.set_random_seed(0)
    pictures, labels = load_digits(return_X_y=True)
    pictures = (pictures / 16.0).astype(np.float32).reshape(-1, 8, 8, 1)
    batches = tf.data.Dataset.from_tensor_slices(pictures).shuffle(len(pictures)).repeat().batch(BATCH).take(options.steps)
    game = Game()
    for step, real in enumerate(batches):
        generator_loss, discriminator_loss = game.step(real)
        if step % 400 == 0 or step == options.steps - 1:
            print(f"step {step:4d}  generator {float(generator_loss):.3f}  discriminator {float(discriminator_loss):.3f}")

    drawn = game.draw(500)
    share, different = judge(drawn, pictures, labels)
    print(f"{share:.1%} of what it draws is clearly a digit, and {different} of the 10 digits are among it")
    try:
        save(drawn, options.out / "dcgan.png")
    except ImportError:
        print("matplotlib is not installed: no picture")
    return share, different


if __name__ == "__main__":
    main()
