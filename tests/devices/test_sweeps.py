"""The backward sweep of work on a device: one compiled program for each structure, and the same numbers as step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape.core.backprop import Sweep
from gradtape.core.op import OPS
from gradtape.ops import compiled
from gradtape.values.tensor import JaxTensor

X = np.linspace(-1.2, 1.5, 6).reshape(2, 3)


def there(value) -> JaxTensor:
    with tf.device("/CPU:1"):
        return tf.constant(value)


@pytest.fixture
def made(monkeypatch):
    """How many programs were made for sweeps, and how many records were pulled outside of any."""
    compiled.BACKWARD.clear()
    compiled.BACKWARD._misses = 0
    before, single = compiled.BACKWARD.made, []
    step_by_step = compiled._step_by_step

    def counted(backward, stretch, keep):
        single.extend(stretch)
        step_by_step(backward, stretch, keep)

    monkeypatch.setattr(compiled, "_step_by_step", counted)
    return lambda: (compiled.BACKWARD.made - before, len(single))


def gradient(function, *arrays):
    sources = [there(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
    return [None if g is None else tf.convert_to_tensor(g).numpy() for g in tape.gradient(y, sources)]


def test_one_program_serves_every_tape_of_the_same_structure(made):
    for factor in (1.0, 2.0, 3.0):
        (g,) = gradient(lambda x, f=factor: tf.reduce_sum(tf.nn.softmax(x * f) * x), X * factor)
    assert made() == (1, 0)
    x = tf.constant(X * 3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.nn.softmax(x * 3.0) * x)
    np.testing.assert_allclose(g, tape.gradient(y, x).numpy(), rtol=1e-10)


DIFFERENT = {
    "another op": (lambda x: tf.sin(x) * 2.0, lambda x: tf.cos(x) * 2.0),
    "another attribute": (lambda x: tf.reduce_sum(x * x, 0), lambda x: tf.reduce_sum(x * x, 1)),
    "which operand": (lambda x: tf.tanh(x) / x, lambda x: x / tf.tanh(x)),
    "minus zero": (lambda x: tf.pad(x, [[1, 1], [0, 0]], constant_values=0.0) * x[0, 0],
                   lambda x: tf.pad(x, [[1, 1], [0, 0]], constant_values=-0.0) * x[0, 0]),
    "used twice": (lambda x: x * tf.identity(x), lambda x: x * x),
    "another slice": (lambda x: x[0] * x[1], lambda x: x[1] * x[1]),
}  # fmt: skip


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_another_structure_is_another_program(pair, made):
    for function in pair:
        (g,) = gradient(function, X)
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        np.testing.assert_allclose(g, tape.gradient(y, x).numpy(), rtol=1e-10, atol=1e-14)
    assert made() == (2, 0)


def test_another_shape_and_another_dtype_are_other_programs(made):
    function = lambda x: tf.reduce_mean(x * x * 2.0)
    for array in (X, X[:1], X.astype(np.float32), X.astype(np.complex128)):
        (g,) = gradient(function, array)
        assert (g.dtype, g.shape) == (array.dtype, array.shape)
        np.testing.assert_allclose(g, 4 * array.conj() / array.size, rtol=1e-5)
    assert made() == (4, 0)


def test_other_sources_of_the_same_work(made):
    function = lambda x, y: tf.reduce_sum(tf.tanh(x) * y)
    gradient(function, X, X)
    x, y = there(X), there(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = function(x, y)
    assert tape.gradient(z, x).numpy().shape == X.shape
    assert made() == (2, 0)
    np.testing.assert_allclose(tape.gradient(z, y).numpy(), np.tanh(X))
    assert tape.gradient(tf.constant(1.0), x) is None
    assert made() == (3, 0)


def test_a_python_rule_divides_the_sweep(made):
    @tf.custom_gradient
    def halve(x):
        return x * 0.5, lambda g: g * float(np.float64(0.5))

    (g,) = gradient(lambda x: tf.reduce_sum(tf.sin(halve(tf.tanh(x) * 2.0)) * 3.0), X)
    np.testing.assert_allclose(g, 3 * np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2), rtol=1e-10)
    assert made() == (2, 1)


def test_an_attribute_that_is_no_key_goes_step_by_step(made, monkeypatch):
    monkeypatch.setattr(compiled, "frozen", _refusing(compiled.frozen))
    (g,) = gradient(lambda x: tf.reduce_sum(x * x, 0) * 2.0, X)
    np.testing.assert_allclose(g, 4 * X)
    assert made() == (0, 3)


def _refusing(frozen):
    def call(value):
        if isinstance(value, dict):
            raise compiled.Unfit
        return frozen(value)

    return call


def test_a_rule_that_does_not_trace_goes_step_by_step(made, monkeypatch):
    sine = OPS["sin"].op
    rule, *rest = sine.rules[0]

    def on_the_host(xp, g, *read):
        for part in read:
            np.asarray(part)
        return rule(xp, g, *read)

    monkeypatch.setattr(sine, "rules", ((on_the_host, *rest),))
    for _ in range(2):
        (g,) = gradient(lambda x: tf.sin(x) * 2.0, X)
        np.testing.assert_allclose(g, 2 * np.cos(X))
    assert made() == (1, 4)


def test_sparse_gradients_come_out_of_the_program(made):
    with tf.device("/CPU:1"):
        table = tf.Variable(np.arange(12.0).reshape(4, 3))
    for rows in ([1, 1, 3], [0, 2, 2]):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, rows) ** 2.0) + tf.reduce_sum(tf.gather(table, [0]))
        g = tape.gradient(y, table)
        assert isinstance(g, tf.IndexedSlices)
        assert "CPU:1" in g.values.device
        dense = np.zeros((4, 3))
        np.add.at(dense, rows, 2 * table.numpy()[rows])
        dense[0] += 1
        np.testing.assert_allclose(tf.convert_to_tensor(g).numpy(), dense)
    assert made() == (1, 0)


def test_jacobians_are_programs_too(made):
    x = there(X)
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.softmax(x * 2.0)
        found = tape.jacobian(y, x, mode="reverse")
    assert made() == (1, 0)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax(x * 2.0)
    np.testing.assert_allclose(found.numpy(), tape.jacobian(y, x).numpy(), rtol=1e-10, atol=1e-14)


def test_an_error_of_a_rule_is_the_rules_own(made):
    x = there(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.custom_gradient(lambda a: (a, lambda g: (g, g)))(x) * 2.0
    with pytest.raises(ValueError, match="expected to return 1 gradients, but returned 2"):
        tape.gradient(y, x)


def test_where_nothing_comes_twice_nothing_is_compiled():
    programs = compiled.Programs(size=4, patience=3)
    compiled_for = [key for key in range(10) if programs.get(key, lambda: "program") is not None]
    assert compiled_for == [0, 1, 2]
    assert programs.get(9, lambda: "program") == "program"  # the second time
    assert len(programs._programs) == 4


STEPS = {
    "tanh": tf.tanh, "exp": lambda x: tf.exp(-x * x), "double": lambda x: x + x, "scale": lambda x: 3.0 * x,
    "softmax": tf.nn.softmax, "flip": lambda x: tf.reverse(x, [1]), "mean": lambda x: x - tf.reduce_mean(x, 1, keepdims=True),
    "matmul": lambda x: x @ tf.transpose(x) @ x, "rows": lambda x: tf.gather(x, [1, 0]),
    "pick": lambda x: tf.where(x > 0, x, 2 * x),
    "stack": lambda x: tf.stack([x, x * x])[1], "split": lambda x: tf.concat(tf.split(x, 3, 1)[::-1], 1),
    "sort": lambda x: tf.sort(x, 1), "cumsum": lambda x: tf.cumsum(x, 1), "norm": lambda x: x / tf.norm(x),
}  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=5), st.integers(0, 5))
def test_random_programs(names, seed):
    def value_and_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for name in names:
                y = STEPS[name](y) + x * 0.1
            y = tf.reduce_sum(y * y)
        return y, tape.gradient(y, x)

    array = np.random.default_rng(seed).normal(size=(2, 3))
    wanted, received = value_and_gradient(tf.constant(array)), value_and_gradient(there(array))
    for w, r in zip(wanted, received):
        assert "CPU:1" in r.device
        np.testing.assert_allclose(r.numpy(), w.numpy(), rtol=1e-8, atol=1e-10)


def test_a_program_holds_no_array():
    import gc
    import weakref

    def used() -> list:
        x = there(X * 1.5)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * tf.cos(x)
        tape.gradient(y, x)
        return [weakref.ref(x), weakref.ref(y._array), weakref.ref(x._array)]

    used()  # what compiling leaves in jax's own caches
    references = used()
    gc.collect()
    assert [reference() is None for reference in references] == [True] * 3


def test_the_plain_sweep_is_not_touched():
    assert tf.GradientTape().accelerated is None
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.accelerated is None
    assert tape.gradient(y, x).numpy().shape == X.shape
    assert Sweep.run is not compiled.sweep
