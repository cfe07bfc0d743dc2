"""`jacobian` in modes, chunks and budgets: the same numbers whatever is chosen, and memory as promised."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_random_programs import numbers, programs

import gradtape as tf
from gradtape.tangents import jacobian as engine
from gradtape.values import batched


@given(programs, st.integers(1, 5))
def test_every_mode_and_chunk_size_gives_the_same(program, chunk_size):
    inputs = [tf.constant(i) for i in program.inputs]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        y = program(*inputs)
    wanted = numbers(tape.jacobian(y, inputs, experimental_use_pfor=False))
    for options in (
        {"mode": "reverse"}, {"mode": "forward"}, {"mode": "auto"}, {"chunk_size": chunk_size},
        {"mode": "forward", "chunk_size": chunk_size}, {"max_bytes": 1}, {"mode": "forward", "max_bytes": 200},
    ):  # fmt: skip
        received = numbers(tape.jacobian(y, inputs, **options))
        assert [g is None for g in received] == [g is None for g in wanted], options
        for a, b in zip(received, wanted):
            if a is not None:
                np.testing.assert_allclose(a, b, 1e-11, 1e-11 * max(1, abs(b).max(initial=0)), err_msg=str(options))


def test_auto_takes_the_shorter_side(monkeypatch):
    taken = []
    monkeypatch.setattr(engine, "columns", lambda *a, f=engine.columns: taken.append("forward") or f(*a))
    monkeypatch.setattr(engine, "rows", lambda *a, f=engine.rows: taken.append("reverse") or f(*a))
    for size, weights in ((2, np.ones((2, 9))), (9, np.ones((9, 2)))):
        x = tf.constant(np.ones((1, size)))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.matmul(x, weights)
        np.testing.assert_array_equal(tape.jacobian(y, x).numpy().reshape(weights.T.shape), weights.T)
    assert taken == ["forward", "reverse"]


def test_a_one_shot_tape_is_used_up_in_every_mode():
    """A8.4"""
    for mode in ("forward", "reverse"):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        tape.jacobian(y, x, mode=mode, chunk_size=1)
        with pytest.raises(RuntimeError, match="persistent"):
            tape.gradient(y, x)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobians_of_jacobians(mode):
    """A8.7"""
    x = tf.constant([0.3, 0.7], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * tf.reduce_sum(x)
        first = tape.jacobian(y, x, mode=mode)
    second = outer.jacobian(first, x, mode=mode).numpy()
    s, c = np.sin(x.numpy()), np.cos(x.numpy())
    wanted = np.zeros((2, 2, 2))
    for i in range(2):
        wanted[i, i, i] -= s[i] * x.numpy().sum()
        wanted[i, i, :] += c[i]
        wanted[i, :, i] += c[i]
    np.testing.assert_allclose(second, wanted)


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_scalars_empties_integers_and_the_unconnected(mode):
    """A8.1, A8.2, A8.3"""
    x, empty, other = tf.constant([1.0, 2.0]), tf.zeros([0, 3]), tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, empty, other])
        scalar, nothing, integers, y = tf.reduce_sum(x * x), empty * 2.0, tf.argmax(x), x * 3.0
        number = other * other
    assert tape.jacobian(scalar, x, mode=mode).numpy().tolist() == [2, 4]
    assert tape.jacobian(number, other, mode=mode).numpy() == 2
    assert tape.jacobian(nothing, empty, mode=mode).shape == (0, 3, 0, 3)
    assert tape.jacobian(integers, x, mode=mode) is None
    assert tape.jacobian(y, other, mode=mode) is None
    assert tape.jacobian(y, other, "zero", mode=mode).numpy().tolist() == [0, 0]
    assert tape.jacobian(y, {"a": [other, x]}, mode=mode)["a"][0] is None


def test_options_that_mean_nothing_are_refused():
    x = tf.constant([1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    for options in ({"mode": "both"}, {"chunk_size": 0}, {"max_bytes": 0}):
        with pytest.raises(ValueError):
            tape.jacobian(y, x, **options)


def network(x, widths, seed=0):
    rng = np.random.default_rng(seed)
    for n, m in itertools.pairwise(widths):
        x = tf.tanh(tf.matmul(x, rng.normal(size=(n, m)) / n**0.5))
    return x


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_a_thousand_by_a_thousand_within_fifty_megabytes(mode):
    x = tf.constant(np.random.default_rng(1).normal(size=(1, 1000)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = network(x, [1000, 1000, 1000])
    tracemalloc.start()
    try:
        received = tape.jacobian(y, x, mode=mode, max_bytes=50e6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 50e6
    direction = np.random.default_rng(2).normal(size=(1, 1000))
    wanted = tape.gradient(y, x, output_gradients=tf.constant(direction)).numpy()
    np.testing.assert_allclose(direction.reshape(-1) @ received.numpy().reshape(1000, 1000), wanted[0], 1e-9, 1e-12)


def test_ten_thousand_blocks_in_one_sweep(monkeypatch):
    """A9.3"""
    count = 10_000
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(15, 2))
    x = tf.constant(rng.normal(size=(count, 15)))
    monkeypatch.setattr(batched.logger, "warning", lambda text, *a: pytest.fail(text % a))
    sweeps = []
    pull_back = tf.GradientTape._pull_back
    monkeypatch.setattr(tf.GradientTape, "_pull_back", lambda *a, **k: sweeps.append(1) or pull_back(*a, **k))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(tf.matmul(x, weights))
    received = tape.batch_jacobian(y, x).numpy()
    np.testing.assert_allclose(received, (1 - y.numpy() ** 2)[:, :, None] * weights.T, 1e-12, 1e-14)
    assert len(sweeps) == 1
