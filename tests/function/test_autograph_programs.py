"""Eager = compiled for random Python functions with nested control flow over tensors, and for an RNN over 500 steps."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import numpy as np
import pytest
from control_flow_programs import module

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")
pytest.importorskip("malt")
TOGETHER = 5
INPUTS = [(0.3, -0.7, 3), (-0.5, 0.2, 0), (1.1, 0.9, 5)]


def programs(group: int, folder, size: int) -> ModuleType:
    """A module on disk with some programs: conversion reads its source."""
    file = folder / f"programs_{group}_{size}.py"
    file.write_text(module(range(group * TOGETHER, (group + 1) * TOGETHER), size))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def arguments(a: float, b: float, n: int) -> list[tf.Tensor]:
    return [tf.constant(a, tf.float64), tf.constant(b, tf.float64), tf.constant(n), tf.constant([0.5, -0.25, 0.75], tf.float64)]


def gradients(f, arguments: list[tf.Tensor]) -> list[np.ndarray]:
    a, b, _, rows = arguments
    with tf.GradientTape() as tape:
        tape.watch([a, b, rows])
        results = tf.nest.flatten(f(*arguments))
        total = tf.add_n([result * (i + 1.0) for i, result in enumerate(results)])
    return [np.asarray(g) for g in tape.gradient(total, [a, b, rows], unconnected_gradients="zero")]


def compare(found: list, expected: list) -> None:
    for x, y in zip(found, expected):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("group", range(20))
@pytest.mark.usefixtures("compiled_quickly")
def test_values(group, tmp_path):
    found = programs(group, tmp_path, 4)
    compiled = function(found.run, jit_compile=True)
    for given in INPUTS:
        compare(tf.nest.flatten(compiled(*arguments(*given))), tf.nest.flatten(found.run(*arguments(*given))))
    assert compiled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("group", range(1))
def test_gradients(group, tmp_path):
    check_gradients(programs(group, tmp_path, 5))


@pytest.mark.slow
@pytest.mark.parametrize("group", range(20, 40))
def test_gradients_of_longer_programs(group, tmp_path):
    check_gradients(programs(group, tmp_path, 10))


def check_gradients(found: ModuleType) -> None:
    compiled = function(found.run, jit_compile=True)
    for given in INPUTS:
        compare(gradients(compiled, arguments(*given)), gradients(found.run, arguments(*given)))
    assert compiled.experimental_get_tracing_count() == 1


# An RNN whose steps are those of a Python loop


class RNN(tf.Module):
    """Adds up a sequence, and ends where the sequence does."""

    def __init__(self, units: int = 4) -> None:
        super().__init__()
        init = np.random.default_rng(0)
        self.recurrent = tf.Variable(init.normal(size=(units, units)) * 0.3)
        self.inputs = tf.Variable(init.normal(size=(1, units)))
        self.output = tf.Variable(init.normal(size=(units, 1)))

    def __call__(self, sequence: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        state = tf.zeros([1, self.output.shape[0]], tf.float64)
        t = tf.constant(0)
        while t < length:
            state = tf.tanh(state @ self.recurrent + sequence[t] * self.inputs)
            t += 1
        return state @ self.output


def losses(decorate, steps: int, length: int) -> list[float]:
    model, traces = RNN(), []
    optimizer = tf.optimizers.SGD(0.05)
    sequence = tf.constant(np.random.default_rng(1).normal(size=(length, 1, 1)))

    def step(sequence, length):
        traces.append(1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(sequence, length) - 0.5) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    step = decorate(step)
    found = [float(step(sequence, tf.constant(length))) for _ in range(2)]
    traced = len(traces)
    found += [float(step(sequence, tf.constant(length))) for _ in range(steps - 2)]
    assert decorate is not function or len(traces) == traced  # no retrace
    return found


def test_rnn_with_a_while_loop():
    steps, length = 50, 500
    compiled = losses(function, steps, length)
    np.testing.assert_allclose(compiled, losses(lambda f: f, steps, length), rtol=1e-4)
    assert compiled[-1] < compiled[0]
