"""Mixed precision with Keras: layers compute in float16, their weights are float32, and the loss is scaled by itself.

    python examples/mixed_precision_keras.py

`LossScaleOptimizer` multiplies the loss so that small gradients survive in float16. Here the scale starts far too high: steps
whose gradients overflow are left out, and each halves the scale, until it fits.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gradtape as tf
from gradtape.keras import layers

TOO_HIGH = 2.0**24


def network() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            layers.Input([8, 8, 1]),
            layers.Conv2D(32, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, dtype="float32"),  # the softmax deserves the digits
        ]
    )


def train(options: argparse.Namespace, pictures: np.ndarray, labels: np.ndarray) -> tuple[tf.keras.Model, float]:
    """The model after training, and what became of the scale."""
    model = network()
    optimizer = tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.Adam(2e-3), initial_scale=TOO_HIGH)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    print("layers compute in", {layer.compute_dtype for layer in model.layers}, end="; ")
    print("weights are", {weight.dtype for weight in model.trainable_weights})

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True))
            scaled = optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    batches = tf.data.Dataset.from_tensor_slices((pictures, labels)).shuffle(len(pictures)).repeat().batch(64)
    for number, (x, y) in enumerate(batches.take(options.steps)):
        loss = step(x, y)
        if number % 50 == 0 or number == options.steps - 1:
            scale = float(optimizer.dynamic_scale)
            print(f"step {number:3d}  loss {float(loss):.3f}  scale 2^{np.log2(scale):.0f}")
    return model, scale


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--eager", action="store_true", help="no compiled program")
    options = parser.parse_args(arguments)

    tf.config.run_functions_eagerly(options.eager)
    tf.keras.utils.set_random_seed(0)
    pictures, labels = load_digits(return_X_y=True)
    pictures = (pictures / 16.0).astype(np.float32).reshape(-1, 8, 8, 1)
    seen, unseen, seen_labels, unseen_labels = train_test_split(pictures, labels, test_size=360, random_state=0)
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model, scale = train(options, seen, seen_labels)
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    accuracy = float((model(tf.constant(unseen)).numpy().argmax(axis=1) == unseen_labels).mean())
    print(f"{accuracy:.1%} of 360 unseen digits are read correctly")
    return accuracy, scale


if __name__ == "__main__":
    main()
