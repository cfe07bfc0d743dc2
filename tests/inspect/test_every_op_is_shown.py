"""Every op, recorded on a tape: its graph can be read, and the gradients in it are those of the tape."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape.inspect import draw, page
from gradtape.inspect.gradients import replay, traversed
from gradtape.inspect.statistics import describe
from gradtape.values import nest

FILES = sorted((Path(__file__).parents[1] / "ops").glob("records_*.py"))


@pytest.mark.parametrize("trace", [False, True, "values"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.removeprefix("records_"))
def test_every_op_is_shown(path, trace):
    for record in runpy.run_path(str(path))["RECORDS"]:
        arrays = record.samples(np.random.default_rng(7))[0]
        tensors = [tf.constant(array) for array in arrays]
        sources = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
        with tf.GradientTape(persistent=True, trace=trace) as tape:
            tape.watch(sources)
            results = [t for t in nest.flatten(record.function(*tensors)) if t.dtype.is_floating or t.dtype.is_complex]
        if not any(node for node in tape.records.values() if node[0] is not None):
            continue  # not differentiable: nothing is recorded
        compare(tape, results, sources, record.id)


def compare(tape, results, sources, name):
    targets = [t for t in results if t._key in tape.records]
    graph = traversed(tape, targets, sources)
    replay(tape, graph)
    assert json.loads(page._embedded(page._tape(graph)))["nodes"], name
    assert draw.picture_of(graph, "layered", max_nodes=10_000).svg, name
    for source, gradient in zip(sources, tape.gradient(targets, sources)):
        if source._key not in graph.numbers_of:
            continue
        number, output = graph.numbers_of[source._key]
        shown = graph.nodes[number].outputs[output].gradient
        expected = describe(None if gradient is None else tf.convert_to_tensor(gradient))
        assert (shown is None) == (expected is None), name
        if shown is not None:
            assert shown.norm == pytest.approx(expected.norm, nan_ok=True), name
