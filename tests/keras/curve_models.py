"""Four small networks with known weights and data: what `tools/record_keras_curves.py` trains on TensorFlow, and
`test_keras_curves.py` here. Neither dropout nor shuffling: nothing is left to chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

STEPS = 50
CLASSES = 4


def cnn(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((8, 8, 2)), layers.Conv2D(6, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
        layers.SeparableConv2D(8, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(CLASSES),
    ])  # fmt: skip


def lstm(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((12,), dtype="int32"), layers.Embedding(10, 6, mask_zero=True), layers.LSTM(8, return_sequences=True),
        layers.Bidirectional(layers.GRU(5)), layers.Dense(CLASSES),
    ])  # fmt: skip


def transformer(keras: Any) -> Any:
    layers = keras.layers
    tokens = keras.Input((12,), dtype="int32")
    x = layers.Embedding(10, 8)(tokens)
    y = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(num_heads=2, key_dim=4)(y, y, use_causal_mask=True)
    y = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x))
    x = x + layers.Dense(8)(y)
    return keras.Model(tokens, layers.Dense(CLASSES)(layers.GlobalAveragePooling1D()(x)))


def normalised(keras: Any) -> Any:
    layers = keras.layers
    image = keras.Input((8, 8, 2))
    x = layers.Conv2D(6, 3, use_bias=False)(image)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
    x = layers.Conv2D(6, 3, padding="same", use_bias=False)(x) + x
    x = layers.Flatten()(layers.AveragePooling2D(2)(layers.BatchNormalization()(x)))
    return keras.Model(image, layers.Dense(CLASSES, kernel_regularizer="l2")(x))


MODELS: dict[str, Callable] = {"cnn": cnn, "lstm": lstm, "transformer": transformer, "normalised": normalised}


def built(keras: Any, name: str) -> Any:
    """A model whose weights do not depend on anybody's random numbers."""
    keras.backend.clear_session()
    model = MODELS[name](keras)
    random = np.random.default_rng(3)
    for weight in model.trainable_weights:
        size = 1.0 / np.sqrt(max(1, int(np.prod(weight.shape[:-1]))))
        scale = weight.numpy() if len(weight.shape) == 1 else 0.0  # gains are ones and biases what Keras begins with
        weight.assign(scale + random.normal(0.0, size, weight.shape).astype("float32") * (len(weight.shape) > 1))
    return model


def optimizer(keras: Any, name: str) -> Any:
    if name == "cnn":
        return keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)
    return keras.optimizers.Adam(0.01, clipnorm=1.0) if name == "lstm" else keras.optimizers.Adam(0.01)


def loss(keras: Any) -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def batches(name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(7)
    for _ in range(STEPS):
        if name in ("cnn", "normalised"):
            x = random.normal(size=(16, 8, 8, 2)).astype("float32")
            y = (x.mean((1, 2)) > 0) @ [1, 2]
        else:
            x = random.integers(1, 10, (16, 12)).astype("int32")
            x[:, 9:] *= random.integers(0, 2, (16, 1)).astype("int32")
            y = x[:, :6].sum(1) % CLASSES
        yield x, y.astype("int32")
