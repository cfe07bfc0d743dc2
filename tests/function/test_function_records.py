"""Eager = compiled for every op's test record: values, dtypes and gradients, with the tape inside and outside."""

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


def value_and_gradient(record, inputs: list) -> tuple[list, list]:
    """The results, and the gradients of a fixed combination of them."""
    sources = records.floating_sources(inputs)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        result = nest.flatten(record.function(*inputs))
        targets = [t for t in result if t.dtype.is_trainable]
    rng = np.random.default_rng(3)
    seeds = [tf.constant(np.asarray(rng.normal(size=tuple(t.shape)))) for t in targets]
    seeds = [tf.cast(s, t.dtype) for s, t in zip(seeds, targets)]
    if not record.differentiable or not targets:
        return result, []
    return result, tape.gradient(targets, sources, seeds, "zero")


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


@records.every(lambda r: r.jax)
def test_tape_inside(record, caplog):
    arrays = sample(record)
    wanted = value_and_gradient(record, records.tensors(arrays))
    staged = function(lambda inputs: value_and_gradient(record, inputs))
    with caplog.at_level(logging.WARNING, "gradtape"):
        received = staged(records.tensors(arrays))
    same(received[0], wanted[0], record)
    same(received[1], wanted[1], record)
    compiled_cleanly(record, caplog, staged)


@pytest.mark.slow
@records.every(lambda r: r.jax and r.differentiable)
def test_tape_outside(record, caplog):
    arrays = sample(record)
    wanted = value_and_gradient(record, records.tensors(arrays))
    staged = function(record.function)

    class Compiled:
        differentiable = True
        function = staged

    with caplog.at_level(logging.WARNING, "gradtape"):
        received = value_and_gradient(Compiled, records.tensors(arrays))
    same(received[0], wanted[0], record)
    same(received[1], wanted[1], record)
    compiled_cleanly(record, caplog, staged)
