"""An image classifier with Keras: `Sequential`, `compile` and `fit`, on the handwritten digits that come with scikit-learn.

    python examples/digits.py

Each step is one compiled program; with `--eager` it runs operation by operation instead.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gradtape as tf
from gradtape.keras import layers

BATCH = 64


def digits() -> list[np.ndarray]:
    """Pictures [n, 8, 8, 1] with values from 0 to 1 and the digits they show: to learn from, to be tested on."""
    pictures, labels = load_digits(return_X_y=True)
    pictures = (pictures / 16.0).astype(np.float32).reshape(-1, 8, 8, 1)
    seen, unseen, seen_labels, unseen_labels = train_test_split(pictures, labels, test_size=360, random_state=0)
    return [seen, seen_labels, unseen, unseen_labels]


def network() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            layers.Input([8, 8, 1]),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(10),
        ]
    )


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(0)
    pictures, labels, unseen, unseen_labels = digits()
    model = network()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(2e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        run_eagerly=options.eager,
    )
    batches = tf.data.Dataset.from_tensor_slices((pictures, labels)).shuffle(len(pictures)).batch(BATCH).repeat()
    per_epoch = min(options.steps, len(pictures) // BATCH)
    model.fit(batches, steps_per_epoch=per_epoch, epochs=options.steps // per_epoch, verbose=2)

    _, accuracy = model.evaluate(unseen, unseen_labels, verbose=0)
    print(f"{accuracy:.1%} of {len(unseen)} unseen digits are read correctly")
    return accuracy


if __name__ == "__main__":
    main()
