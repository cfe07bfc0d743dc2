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
pytestmark = pytest.mark.usefixtures("compiled_quickly")
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
        assert a.dtype is b.dtype, record.id
        records.close(a.numpy(), b.numpy(), 1e-9, record.id)


VALUES_DECIDE = ("sorted segment", "conjugate_gradient")
"""Records whose loops or shapes depend on values: they run eagerly."""

TOGETHER = 8
"""Records that share a function: compiling takes the time, and begins anew with each."""


def runs_eagerly(record) -> bool:
    return record.id.startswith(VALUES_DECIDE)


def in_groups(chosen: list) -> list:
    """The records, those together that follow each other and are compiled."""
    groups = [[record] for record in chosen if runs_eagerly(record)]
    chosen = [record for record in chosen if not runs_eagerly(record)]
    groups += [chosen[i : i + TOGETHER] for i in range(0, len(chosen), TOGETHER)]
    return [pytest.param(group, id=f"{group[0].id} to {group[-1].id}") for group in groups]


def compare(group: list, caplog, staged, compute, order: int) -> None:
    arrays = [sample(record) for record in group]
    wanted = [derivatives(r, records.tensors(a), min(order, r.order)) for r, a in zip(group, arrays)]
    with caplog.at_level(logging.WARNING, "gradtape"):
        received = compute([records.tensors(a) for a in arrays])
    for record, found, right in zip(group, received, wanted, strict=True):
        assert len(found) == len(right), record.id
        for a, b in zip(found, right):
            same(a, b, record)
    assert ("runs eagerly" in caplog.text) == runs_eagerly(group[0]), caplog.text
    assert staged.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("group", in_groups([r for r in records.RECORDS if r.jax]))
def test_tape_inside(group, caplog):
    def all_derivatives(inputs: list) -> list:
        return [derivatives(r, x, min(2, r.order)) for r, x in zip(group, inputs)]

    staged = function(all_derivatives, autograph=False)
    compare(group, caplog, staged, staged, 2)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
@records.every(lambda r: r.jax and r.differentiable)
def test_tape_outside(record, order, caplog):
    staged = function(record.function, autograph=False)

    class Compiled:
        differentiable = True
        function = staged

    compare([record], caplog, staged, lambda inputs: [derivatives(Compiled, inputs[0], min(order, record.order))], order)
