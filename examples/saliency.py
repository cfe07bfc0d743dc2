"""Where does a network look? The gradient of its answer with respect to the pixels of the picture.

    python examples/saliency.py

A small convolutional network learns to read digits. The tape, watching the picture instead of the weights, then tells which
pixels speak for the answer; painting just those over is the test. Leaves a picture in ``out/``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import gradtape as tf
from gradtape.keras import layers

HIDDEN_PIXELS = 6


def digits() -> tuple[np.ndarray, np.ndarray]:
    pictures, labels = load_digits(return_X_y=True)
    return (pictures / 16.0).astype(np.float32).reshape(-1, 8, 8, 1), labels


def trained(pictures: np.ndarray, labels: np.ndarray, options: argparse.Namespace) -> tf.keras.Model:
    model = tf.keras.Sequential(
        [
            layers.Input([8, 8, 1]),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.GlobalMaxPooling2D(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(3e-3), loss, run_eagerly=options.eager)
    batches = tf.data.Dataset.from_tensor_slices((pictures, labels)).shuffle(len(pictures)).repeat().batch(64)
    model.fit(batches, steps_per_epoch=options.steps, epochs=1, verbose=2)
    return model


def saliency(model: tf.keras.Model, pictures: tf.Tensor) -> np.ndarray:
    """What each pixel contributes to the answer, to first order: gradient times value, [n, 8, 8]."""
    with tf.GradientTape() as tape:
        tape.watch(pictures)
        answers = tf.reduce_max(model(pictures), axis=1)
    return (tape.gradient(answers, pictures) * pictures).numpy()[..., 0]


def painted_over(pictures: np.ndarray, importance: np.ndarray) -> np.ndarray:
    """The pictures without their most important pixels."""
    flat = pictures.reshape(len(pictures), -1).copy()
    order = np.argsort(importance.reshape(len(pictures), -1), axis=1)
    np.put_along_axis(flat, order[:, -HIDDEN_PIXELS:], 0.0, axis=1)
    return flat.reshape(pictures.shape)


def save(pictures: np.ndarray, maps: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, rows = plt.subplots(2, 10, figsize=(10, 2.2))
    for axes, picture in zip(rows[0], pictures):
        axes.imshow(picture[..., 0], cmap="gray_r")
    for axes, importance in zip(rows[1], maps):
        largest = np.abs(importance).max()
        axes.imshow(importance, cmap="RdBu_r", vmin=-largest, vmax=largest)
    for axes in rows.flat:
        axes.axis("off")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
    print(f"what speaks for the answer (red) and against it (blue): {path}")


def main(arguments: list[str] | None = None) -> tuple[float, float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(arguments)

    tf.keras.utils.set_random_seed(0)
    pictures, labels = digits()
    model = trained(pictures[:-400], labels[:-400], options)
    unseen, answers = pictures[-400:], labels[-400:]
    maps = saliency(model, tf.constant(unseen))

    def read(pictures: np.ndarray) -> float:
        return float((model(tf.constant(pictures)).numpy().argmax(axis=1) == answers).mean())

    ink = np.random.default_rng(0).uniform(size=maps.shape) * (unseen[..., 0] > 0)
    shares = read(unseen), read(painted_over(unseen, ink)), read(painted_over(unseen, maps))
    print(f"{shares[0]:.1%} of the digits are read correctly; if {HIDDEN_PIXELS} of their pixels are painted over,", end=" ")
    print(f"{shares[1]:.1%}; if these are the ones that matter most, {shares[2]:.1%}")
    try:
        save(unseen[:10], maps, options.out / "saliency.png")
    except ImportError:
        print("matplotlib is not installed: no picture")
    return shares


if __name__ == "__main__":
    main()
