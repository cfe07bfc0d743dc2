"""Eager = compiled for every op's test record: values, dtypes, gradients and second derivatives, tapes inside and outside."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function
from gradtape.values import nest

pytest.importorskip("jax")
_path = Path(__file__).parent.parent / "ops" / "test_records.py"
_spec = importlib.util.spec_from_file_location("op_records", _path)
records: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(records)


def sample(record) -> list:
    return records.cast(records.samples(record)[0], "float64")


def derivatives(record, inputs: list, order: int) -> list[list]:
    """The results, the gradients of a fixed combination of them, and the gradients of a combination of those."""
    sources = records.floating_sources(inputs)
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            result = nest.flatten(record.function(*inputs))
            targets = [t for t in result if t.dtype.is_trainable]
        if not record.differentiable or not targets:
            return [result]
        gradients = inner.gradient(targets, sources, weights(targets, 3), "zero")
        gradients = [tf.convert_to_tensor(g) for g in gradients]
    if order == 1:
        return [result, gradients]
    second = outer.gradient(gradients, sources, weights(gradients, 5), "zero")
    return [result, gradients, [tf.convert_to_tensor(g) for g in second]]


def weights(targets: list, seed: int) -> list:
    rng = np.random.default_rng(seed)
    return [tf.cast(tf.constant(np.asarray(rng.normal(size=tuple(t.shape)))), t.dtype) for t in targets]


def same(received: list, wanted: list, record) -> None:
    assert len(received) == len(wanted)
    for a, b in zip(received, wanted):
        a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        assert type(a) is tf.Tensor, "a result that is not in NumPy memory"
        assert a.dtype is b.dtype
        records.close(a.numpy(), b.numpy(), 1e-9, record.id)


VALUES_DECIDE = ("sorted segment", "conjugate_gradient")
"""Records whose loops or shapes depend on values: they run eagerly."""


def compiled_cleanly(record, caplog, staged) -> None:
    assert ("runs eagerly" in caplog.text) == record.id.startswith(VALUES_DECIDE), caplog.text
    assert staged.experimental_get_tracing_count() == 1


@pytest.fixture(autouse=True)
def _compile_quickly(monkeypatch):
    """Without LLVM's optimisations, which take half of the time; XLA's own passes are those of any other program."""
    from gradtape.xp import jax_devices

    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    monkeypatch.setattr(jax_devices, "compiler_options", lambda: options)


def compare(record, caplog, staged, compute, order: int) -> None:
    arrays = sample(record)
    wanted = derivatives(record, records.tensors(arrays), order)
    with caplog.at_level(logging.WARNING, "gradtape"):
        received = compute(records.tensors(arrays))
    assert len(received) == len(wanted)
    for a, b in zip(received, wanted):
        same(a, b, record)
    compiled_cleanly(record, caplog, staged)


@records.every(lambda r: r.jax)
def test_tape_inside(record, caplog):
    order = min(2, record.order)
    staged = function(lambda inputs: derivatives(record, inputs, order), autograph=False)
    compare(record, caplog, staged, staged, order)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
@records.every(lambda r: r.jax and r.differentiable)
def test_tape_outside(record, order, caplog):
    staged, order = function(record.function, autograph=False), min(order, record.order)

    class Compiled:
        differentiable = True
        function = staged

    compare(record, caplog, staged, lambda inputs: derivatives(Compiled, inputs, order), order)
