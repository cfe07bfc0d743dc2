"""Watch the Jacobian of a Keras model's output with respect to its weights, every few epochs of `fit`, by a callback.

    python examples/jacobian_monitor.py

The Jacobian J [n, weights] says what a change of the weights would do to the outputs for n pictures. The kernel J Jᵀ says which
pictures learn from each other; while features are learned, it turns towards the labels. With the tape that is one call.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits

import gradtape as tf
from gradtape.keras import layers


class JacobianMonitor(tf.keras.callbacks.Callback):
    """Prints, every few epochs, how much the outputs depend on each weight array, and how well the kernel fits the labels."""

    def __init__(self, pictures: np.ndarray, labels: np.ndarray, every: int) -> None:
        super().__init__()
        self.pictures, self.labels, self.every = tf.constant(pictures), labels, every
        self.alignments: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        if epoch % self.every == 0:
            self.look(f"after {epoch:2d} epochs")

    def on_train_end(self, logs: dict | None = None) -> None:
        self.look("at the end     ")

    def look(self, when: str) -> None:
        weights = self.model.trainable_weights
        with tf.GradientTape() as tape:
            outputs = self.model(self.pictures, training=False)[:, 0]
        parts = [part.numpy().reshape(len(self.labels), -1) for part in tape.jacobian(outputs, weights)]
        jacobian = np.concatenate(parts, axis=1)
        jacobian -= jacobian.mean(axis=0)  # what all pictures have in common tells nothing about their labels
        kernel = jacobian @ jacobian.T
        self.alignments.append(float(self.labels @ kernel @ self.labels / np.linalg.norm(kernel) / len(self.labels)))
        sizes = ", ".join(f"{weight.path.split('/', 1)[-1]} {np.linalg.norm(part):.1f}" for weight, part in zip(weights, parts))
        print(f"{when}  kernel along the labels {self.alignments[-1]:.2f}  |∂outputs/∂weights|: {sizes}")


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=640)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(0)
    pictures, digits = load_digits(return_X_y=True)
    pictures = (pictures / 16.0).astype(np.float32)
    labels = np.where(digits % 2 == 0, 1.0, -1.0).astype(np.float32)  # even or odd
    dense = [layers.Dense(32, "tanh", name="first"), layers.Dense(16, "tanh", name="second"), layers.Dense(1, name="last")]
    model = tf.keras.Sequential([layers.Input([64]), *dense])
    model.compile(tf.keras.optimizers.Adam(2e-2), "mse", run_eagerly=options.eager)
    monitor = JacobianMonitor(pictures[-100:], labels[-100:], every=8)
    per_epoch = min(options.steps, 20)
    batches = tf.data.Dataset.from_tensor_slices((pictures[:-100], labels[:-100, None])).shuffle(2000).repeat().batch(64)
    epochs = options.steps // per_epoch
    model.fit(batches, steps_per_epoch=per_epoch, epochs=epochs, callbacks=[monitor], verbose=0)
    return monitor.alignments[0], monitor.alignments[-1]


if __name__ == "__main__":
    main()
