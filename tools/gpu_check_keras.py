"""Keras on an accelerator: ``PYTHONPATH=src python tools/gpu_check_keras.py``; one line per promise. Needs jax and keras."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as tf
from gradtape import keras

DEVICE = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
RANDOM = np.random.default_rng(0)
CHECKS: list[Callable] = []


def check(function: Callable) -> Callable:
    CHECKS.append(function)
    return function


def expect(condition: Any, *what: Any) -> None:
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def images(count: int) -> tuple[np.ndarray, np.ndarray]:
    labels = RANDOM.integers(0, 4, count)
    x = RANDOM.normal(size=(count, 16, 16, 3)).astype("float32")
    x[np.arange(count), :, :, :1] += labels[:, None, None, None]
    return x, labels.astype("int32")


def network() -> Any:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((16, 16, 3)), layers.Conv2D(16, 3, padding="same"), layers.BatchNormalization(momentum=0.8), layers.ReLU(),
        layers.MaxPooling2D(), layers.Dropout(0.1), layers.Flatten(), layers.Dense(4),
    ])  # fmt: skip


def logits_loss() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def step_of(model: Any, optimizer: Any, loss_of: Any) -> Callable:
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return step


@check
def a_compiled_loop_with_a_tape_trains_on_the_device() -> str:
    x, y = images(256)
    model, loss_of = network(), logits_loss()
    step = tf.function(step_of(model, keras.optimizers.Adam(1e-2), loss_of))
    losses = [float(step(tf.constant(x), tf.constant(y))) for _ in range(40)]
    where = model.trainable_variables[0].value.device
    expect(losses[-1] < 0.3 * losses[0], losses)
    expect(DEVICE in where, where)
    return f"loss {losses[0]:.2f} to {losses[-1]:.2f}, kernel on {where}"


@check
def an_exported_model_runs_here_and_on_the_host() -> str:
    folder = tempfile.mkdtemp()
    model, (x, _) = network(), images(8)
    model.export(folder, verbose=False)
    expected, result = model.predict(x, verbose=0), tf.saved_model.load(folder).serve(x)
    expect(DEVICE in result.device, result.device)
    np.savez(f"{folder}/numbers.npz", x=x, y=expected)
    code = (
        "import numpy as np, gradtape as tf; n = np.load('numbers.npz'); r = tf.saved_model.load('.').serve(n['x']); "
        "assert 'CPU' in r.device; print(abs(r.numpy() - n['y']).max())"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    there = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    expect(there.returncode == 0, there.stderr[-500:])
    errors = float(np.abs(result.numpy() - expected).max()), float(there.stdout)
    expect(max(errors) < 1e-2, errors)
    return f"largest differences {errors[0]:.1e} here and {errors[1]:.1e} on the host"


@check
def eager_and_compiled_steps_agree() -> str:
    x, y = (tf.constant(a) for a in images(64))
    curves = []
    for wrap in (lambda f: f, tf.function):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([
            keras.Input((16, 16, 3)), keras.layers.Reshape((16, 48)), keras.layers.LSTM(16, return_sequences=True),
            keras.layers.LayerNormalization(), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(4),
        ])  # fmt: skip
        step = wrap(step_of(model, keras.optimizers.SGD(0.1, momentum=0.9), logits_loss()))
        curves.append([float(step(x, y)) for _ in range(8)])
    np.testing.assert_allclose(*curves, rtol=5e-3)
    return f"loss {curves[0][0]:.3f} to {curves[0][-1]:.3f}"


@check
def fit_evaluate_and_predict() -> str:
    x, y = images(1024)
    model = network()
    model.compile(optimizer="adam", loss=logits_loss(), metrics=["accuracy"])
    model.fit(x, y, batch_size=64, epochs=4, validation_split=0.1, verbose=0)
    accuracy = model.evaluate(x, y, verbose=0)[1]
    expect(accuracy > 0.9, accuracy)
    expect(isinstance(model.predict(x[:10], verbose=0), np.ndarray), "predict gives arrays")
    return f"accuracy {accuracy:.3f}"


def trained_in(policy: str) -> str:
    keras.mixed_precision.set_global_policy(policy)
    try:
        x, y = images(512)
        model = network()
        model.compile(optimizer="adam", loss=logits_loss())
        history = model.fit(x, y, batch_size=64, epochs=5, verbose=0).history["loss"]
    finally:
        keras.mixed_precision.set_global_policy("float32")
    expect(all(v.dtype == "float32" for v in model.weights), "weights stay float32")
    expect(history[-1] < 0.5 * history[0], history)
    return f"loss {history[0]:.2f} to {history[-1]:.2f}, {type(model.optimizer).__name__}"


@check
def mixed_float16_trains() -> str:
    return trained_in("mixed_float16")


@check
def mixed_bfloat16_trains() -> str:
    return trained_in("mixed_bfloat16")


@check
def a_transformer_trains_and_its_step_is_timed() -> str:
    layers = keras.layers
    tokens = keras.Input((128,), dtype="int32")
    h = layers.Embedding(1000, 256)(tokens)
    for _ in range(2):
        a = layers.LayerNormalization()(h)
        h = h + layers.MultiHeadAttention(8, 32)(a, a, use_causal_mask=True)
        h = h + layers.Dense(256)(layers.Dense(1024, activation="gelu")(layers.LayerNormalization()(h)))
    model = keras.Model(tokens, layers.Dense(1000)(h))
    x = tf.constant(RANDOM.integers(0, 1000, (32, 128)).astype("int32"))
    step = tf.function(step_of(model, keras.optimizers.Adam(1e-3), logits_loss()))
    losses = [float(step(x, x)) for _ in range(20)]
    start = time.perf_counter()
    for _ in range(50):
        last = step(x, x)
    float(last)
    expect(losses[-1] < losses[0], losses)
    return f"{(time.perf_counter() - start) / 50 * 1e3:.2f} ms a step, loss {losses[0]:.2f} to {losses[-1]:.2f}"


def main() -> int:
    failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        try:
            print(f"ok    {name}: {function()}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} hold on {DEVICE}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
