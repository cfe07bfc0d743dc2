"""Small models, trained a little, for files that pass between backends: `tools/record_keras_files.py` writes and reads them on
Keras's jax backend, and `test_keras_saving.py` here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def custom_layer(keras: Any) -> Any:
    """A layer of the user's own, made anew for each Keras it is loaded with."""

    @keras.saving.register_keras_serializable("tests", "Scaled")
    class Scaled(keras.layers.Layer):
        def __init__(self, factor: float = 1.0, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.factor = factor

        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight(shape=input_shape[-1:], initializer="ones", name="scale")

        def call(self, x: Any) -> Any:
            return self.factor * self.scale * x

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "factor": self.factor}

    return Scaled


def dense(keras: Any) -> Any:
    layers = keras.layers
    x = keras.Input((4,))
    y = layers.Dropout(0.5)(layers.BatchNormalization()(layers.Dense(6, "gelu")(x)))
    y = custom_layer(keras)(2.0)(layers.Concatenate()([x, y]))
    return keras.Model(x, layers.Dense(3, "softmax")(y))


def image(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((6, 6, 2)), layers.Rescaling(0.5), layers.Conv2D(3, 3, padding="same"), layers.PReLU(shared_axes=[1, 2]),
        layers.MaxPooling2D(), layers.DepthwiseConv2D(2), layers.LayerNormalization(), layers.Flatten(), layers.Dense(3),
    ])  # fmt: skip


def sequence(keras: Any) -> Any:
    layers = keras.layers
    x = keras.Input((7,), dtype="int32")
    y = layers.Embedding(9, 4, mask_zero=True)(x)
    y = layers.LSTM(4, return_sequences=True)(y)
    y = layers.MultiHeadAttention(2, 3)(y, y)
    return keras.Model(x, layers.Dense(3)(layers.Bidirectional(layers.GRU(3))(y)))


def mixed(keras: Any) -> Any:
    layers = keras.layers
    hidden = layers.Dense(5, "relu", dtype="mixed_bfloat16")
    return keras.Sequential([keras.Input((4,)), hidden, layers.Dense(3, dtype="float32")])


MODELS: dict[str, Callable] = {"dense": dense, "image": image, "sequence": sequence, "mixed": mixed}
OPTIMIZERS = {"dense": "Adam", "image": "SGD", "sequence": "RMSprop", "mixed": "LossScaleOptimizer"}
TOLERANCE = {"dense": 1e-5, "image": 1e-5, "sequence": 1e-5, "mixed": 2e-2}  # half precision is rounded in other places


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    shape = {"image": (8, 6, 6, 2), "sequence": (8, 7)}.get(name, (8, 4))
    x = random.integers(0, 9, shape).astype("int32") if name == "sequence" else random.normal(size=shape).astype("float32")
    return x, random.normal(size=(8, 3)).astype("float32")


def optimizer(keras: Any, name: str) -> Any:
    rate = keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.9)
    kind = OPTIMIZERS[name]
    if kind == "LossScaleOptimizer":
        return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), initial_scale=16.0)
    return getattr(keras.optimizers, kind)(rate, **({"momentum": 0.9} if kind == "SGD" else {}))


def trained(keras: Any, name: str) -> Any:
    """A compiled model after three steps."""
    keras.backend.clear_session(free_memory=False)
    keras.utils.set_random_seed(7)
    model = MODELS[name](keras)
    model.compile(optimizer=optimizer(keras, name), loss="mse", run_eagerly=keras.backend.backend() == "gradtape")
    for _ in range(3):
        model.train_on_batch(*data(name))
    return model


def described(model: Any, name: str) -> dict[str, Any]:
    """What a loaded model must do alike: predictions, the state of the optimizer, and one more step from it."""
    x, y = data(name)
    before = np.asarray(model.predict(x, verbose=0), "float32")
    state = [np.asarray(v, "float32").ravel()[:4] for v in model.optimizer.variables]
    found = {"predictions": before.tolist(), "state": [part.tolist() for part in state]}
    if name != "dense":  # where no random numbers take part
        model.train_on_batch(x, y)
        found["next"] = np.asarray(model.predict(x, verbose=0), "float32").tolist()
    return found
