"""`tape.memory`: every buffer once, and in total what the allocator sees."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import gradtape as tf


def chain(depth, size, trace):
    """A tape that outlives everything that was computed under it."""
    tape = tf.GradientTape(persistent=True, trace=trace)
    with tape:
        x = tf.constant(np.full(size, 0.5))
        tape.watch(x)
        for _ in range(depth):
            x = tf.tanh(x * 1.5) * tf.exp(-x)
        tf.reduce_sum(x)
    return tape


def network(depth, size, trace):
    weights = tf.constant(np.eye(size) * 0.5)
    tape = tf.GradientTape(persistent=True, trace=trace)
    with tape:
        tape.watch(weights)
        x = tf.constant(np.ones((4, size)))
        for _ in range(depth):
            x = tf.reshape(tf.nn.relu(x @ weights + 0.1), (2, 2 * size))
            x = tf.reshape(tf.gather(x, [0, 1]), (4, size))
        tf.reduce_mean(x)
    return tape


@pytest.mark.parametrize("trace", [False, True], ids=["plain", "traced"])
@pytest.mark.parametrize(
    ("make", "depth", "size"),
    [(chain, 50, 20_000), (chain, 400, 4), (network, 40, 64), (network, 200, 2)],
    ids=["large chain", "small chain", "large network", "small network"],
)
def test_the_total_is_what_the_allocator_sees(make, depth, size, trace):
    make(3, size, trace).memory()  # caches are filled
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tape = make(depth, size, trace)
        gc.collect()
        seen = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert tape.memory().total == pytest.approx(seen, rel=0.05)


def test_shared_buffers_and_views_count_once():
    x = tf.constant(np.ones((100, 100)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        row = tf.reshape(x, (-1,))
        y = tf.exp(row)
        z = y * y * row
    found = tape.memory()
    assert found.arrays == 3 * 80_000  # x itself (a view of it is kept), y, y²
    assert sum(held.bytes for held in found.tensors) == found.arrays == sum(found.by_op.values())
    assert max(held.holders for held in found.tensors) > 1
    del z


def test_buffers_of_variables_are_told_apart():
    w = tf.Variable(np.ones((100, 100)))
    with tf.GradientTape() as tape:
        tf.matmul(w, w)
    found = tape.memory()
    assert (found.arrays, found.variables) == (0, 80_000)


def test_lines_are_known_if_the_tape_traces():
    x = tf.Variable(np.ones(1000))
    with tf.GradientTape(trace="values") as tape:
        y = tf.exp(x)
        y = y * y
    found = tape.memory()
    assert {line.split(": ", 1)[1] for line in found.by_line} == {"y = tf.exp(x)", "y = y * y"}
    assert "16.0 KiB" not in str(tf.GradientTape().memory())
    assert "y = tf.exp(x)" in str(found)
    assert sum(found.by_line.values()) == found.arrays


def test_what_a_custom_gradient_closed_over_counts():
    x = tf.Variable(np.ones(10_000))

    @tf.custom_gradient
    def scaled(x):
        factors = tf.constant(np.full(10_000, 2.0))
        return x * factors, lambda g: g * factors

    with tf.GradientTape() as tape:
        with tape.stop_recording():
            pass
        y = scaled(x)
    assert tape.memory().arrays >= 80_000
    del y


def test_a_used_tape_holds_nothing():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    assert tape.memory().total == 0
