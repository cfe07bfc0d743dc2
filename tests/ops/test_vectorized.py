"""`vectorized_map` over every op: one run equals the loop, gradients inside and outside too, and nothing falls back."""

from __future__ import annotations

import numpy as np
import pytest
from test_records import close, every, floating_sources, samples, tensors

import gradtape as tf
from gradtape.ops.vectorized import vectorized_map
from gradtape.values import batched, nest


def three(record) -> list:
    """Three elements of the first sample's kind, stacked: floating arrays differ, indices and the like are the same."""
    rng = np.random.default_rng(6)
    factors = (1.0, *rng.uniform(0.98, 1.02, 2))
    found = []
    for a in samples(record)[0]:
        rows = [a * f if a.dtype.kind in "fc" else a for f in factors]
        found.append(np.stack(rows).astype(a.dtype))
    return found


@pytest.fixture
def no_loop(monkeypatch):
    """A batching rule that is missing is an error, not a loop."""
    monkeypatch.setattr(batched, "_said", set())

    def refuse(text, *arguments):
        raise AssertionError(text % arguments)

    monkeypatch.setattr(batched.logger, "warning", refuse)


def by_values(record) -> bool:
    """The shape of the result depends on the values of an argument: only a loop can do that."""
    return record.name.startswith("sorted segment")


def mapped(record, stacked: list):
    return nest.flatten(vectorized_map(lambda xs: record.function(*xs), stacked, by_values(record), warn=False))


def weights(targets: list) -> list:
    rng = np.random.default_rng(8)
    return [tf.constant(rng.normal(size=t._array.shape), t.dtype) for t in targets]


def looped(record, stacked: list) -> list:
    rows = [nest.flatten(record.function(*tensors([a[i] for a in stacked]))) for i in range(3)]
    return [np.stack([t.numpy() for t in column]) for column in zip(*rows)]


@pytest.mark.tiny
@every(lambda r: r.batched and samples(r)[0])
@pytest.mark.usefixtures("no_loop")
def test_vectorized_equals_looped(record):
    stacked = three(record)
    for received, wanted in zip(mapped(record, tensors(stacked)), looped(record, stacked)):
        close(received.numpy(), wanted, 1e-12, record.id)


@every(lambda r: r.differentiable and r.batched)
@pytest.mark.usefixtures("no_loop")
def test_gradients_inside_and_outside_equal_looped(record):
    stacked = three(record)

    def gradient(xs):
        sources = floating_sources(xs)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            targets = [t for t in nest.flatten(record.function(*xs)) if t.dtype.is_trainable]
        found = tape.gradient(targets, sources, weights(targets), unconnected_gradients="zero")
        return [tf.convert_to_tensor(g) for g in found]

    inside = vectorized_map(gradient, tensors(stacked), by_values(record), warn=False)
    rows = [gradient(tensors([a[i] for a in stacked])) for i in range(3)]
    wanted = [np.stack([g.numpy() for g in column]) for column in zip(*rows)]
    inputs = tensors(stacked)
    sources = floating_sources(inputs)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = [t for t in mapped(record, inputs) if t.dtype.is_trainable]
    single = [t for t in nest.flatten(record.function(*tensors([a[0] for a in stacked]))) if t.dtype.is_trainable]
    repeated = [tf.stack([w] * 3) for w in weights(single)]
    outside = tape.gradient(targets, sources, repeated, unconnected_gradients="zero")
    for a, b, right in zip(inside, outside, wanted):
        close(a.numpy(), right, 1e-12, f"inside, {record.id}")
        close(tf.convert_to_tensor(b).numpy(), right, 1e-12, f"outside, {record.id}")
