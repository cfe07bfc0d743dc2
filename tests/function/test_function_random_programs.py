"""Eager = compiled for 500 random programs: values, gradients, second derivatives, dtypes, Nones, structures and variables.

The tapes are inside the function, outside of it, or across two functions: one of the three for each of 100 programs, and all
of them for all 500 in the slow tests. Programs share functions, for compiling takes the time; a failure names its program:
``Program(seed)``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from program_generator import Program

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("compiled_quickly")
PROGRAMS, TOGETHER, QUICK = 500, 10, 10
OPTIONS: Any = {"jit_compile": True, "autograph": False}
TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float32": 5e-6, "complex64": 5e-6, "float16": 0.005, "bfloat16": 0.03}
"""Of the largest number of each array, and of 1. XLA keeps half-precision intermediates in float32; eager code rounds each."""


@functools.cache
def programs(group: int) -> list[Program]:
    return [Program(seed) for seed in range(group * TOGETHER, (group + 1) * TOGETHER)]


class Run:
    """Fresh inputs and variables for a group of programs, as nests that a function takes."""

    def __init__(self, group: int) -> None:
        self.programs = programs(group)
        self.inputs = [[tf.constant(a) for a in p.inputs] for p in self.programs]
        self.unused = [tf.constant(p.unused) for p in self.programs]
        self.rows = [tf.constant(p.rows) for p in self.programs]
        self.variables = [p.variables() for p in self.programs]

    def sources(self, inputs: list, unused: list) -> list:
        """Per program: what is differentiated with respect to."""
        return [[*a, b, *v] for a, b, v in zip(inputs, unused, self.variables)]

    def whole(self, inputs: list, unused: list, rows: list) -> list:
        return [p.run(*parts) for p, *parts in zip(self.programs, inputs, rows, self.variables)]

    def first(self, inputs: list, rows: list) -> list:
        return [p.first(*parts) for p, *parts in zip(self.programs, inputs, rows, self.variables)]

    def second(self, inputs: list, rows: list, made: list) -> list:
        return [p.second(*parts) for p, *parts in zip(self.programs, inputs, rows, self.variables, made)]

    def derivatives(self, forward: Any, inputs: list, unused: list, rows: list) -> list:
        """Per program: result, gradients, and the gradients of those."""
        sources = self.sources(inputs, unused)
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([inputs, unused])
            with tf.GradientTape(persistent=True) as inner:
                inner.watch([inputs, unused])
                results = forward(inputs, unused, rows)
            gradients = inner.gradient(floating(results), sources)
            slopes = [tf.convert_to_tensor(g) for g in floating(gradients)]
        return list(zip(results, gradients, outer.gradient(slopes, sources)))


def floating(nest: Any) -> list:
    return [t for t in tf.nest.flatten(nest) if t is not None and t.dtype.is_trainable]


def eager(group: int) -> tuple[list, list]:
    run = Run(group)
    return run.derivatives(run.whole, run.inputs, run.unused, run.rows), run.variables


def inside(group: int) -> tuple[list, list]:
    run = Run(group)
    staged = function(lambda *args: run.derivatives(run.whole, *args), **OPTIONS)
    return staged(run.inputs, run.unused, run.rows), run.variables


def outside(group: int) -> tuple[list, list]:
    run = Run(group)
    return run.derivatives(function(run.whole, **OPTIONS), run.inputs, run.unused, run.rows), run.variables


def across(group: int) -> tuple[list, list]:
    run = Run(group)
    first, second = function(run.first, **OPTIONS), function(run.second, **OPTIONS)

    def forward(inputs: list, unused: list, rows: list) -> list:
        return second(inputs, rows, first(inputs, rows))

    return run.derivatives(forward, run.inputs, run.unused, run.rows), run.variables


def same(received: Any, expected: Any, program: Program, what: str, way: Any = inside) -> None:
    """Structures, Nones, dtypes and shapes exactly, numbers up to rounding.

    Across two functions each call is one record. Where nothing uses one of its results, that contributes zeros, as in
    TensorFlow; eager code, which has a record for each operation, says None, or gives the rows of a sparse gradient alone.
    """
    what = f"{what} of {program}"
    tf.nest.assert_same_structure(received, expected)
    for a, b in zip(tf.nest.flatten(received), tf.nest.flatten(expected)):
        if b is None and a is not None and way is across:
            assert not np.any(tf.convert_to_tensor(a).numpy()), f"{what}: {a} instead of None"
            continue
        assert (a is None) == (b is None), f"{what}: {a} instead of {b}"
        if b is not None:
            assert way is across or type(a) is type(b), f"{what}: {type(a)} instead of {type(b)}"
            tolerance = max(TOLERANCE[name] for name in program.precisions())
            close(*(np.asarray(tf.convert_to_tensor(t).numpy()) for t in (a, b)), tolerance, what)


def close(x: np.ndarray, y: np.ndarray, tolerance: float, what: str) -> None:
    assert (x.dtype, x.shape) == (y.dtype, y.shape), what
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y, tolerance = x.astype(wide), y.astype(wide), tolerance if x.dtype.kind not in "biu" else 0
    np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1.0, np.abs(y).max(initial=0)), err_msg=what)


def check(group: int, way: Any) -> None:
    expected, after = eager(group)
    results, variables = way(group)
    for program, got, right, own, theirs in zip(programs(group), results, expected, variables, after):
        for a, b, what in zip(got, right, ("the result", "the gradients", "the second derivatives")):
            same(a, b, program, what, way)
        same([v.value() for v in own], [v.value() for v in theirs], program, "the variables")


WAYS = [{3: outside, 4: across}.get(group % 10, inside) for group in range(QUICK)]


@pytest.mark.parametrize(("group", "way"), [pytest.param(g, w, id=f"{g} {w.__name__}") for g, w in enumerate(WAYS)])
def test_compiled_equals_eager(group, way):
    check(group, way)


REST = [(g, w) for g in range(PROGRAMS // TOGETHER) for w in (inside, outside, across) if w is not dict(enumerate(WAYS)).get(g)]


@pytest.mark.slow
@pytest.mark.parametrize(("group", "way"), [pytest.param(g, w, id=f"{g} {w.__name__}") for g, w in REST])
def test_the_other_ways(group, way):
    check(group, way)
