"""What XLA cannot express runs as it is written, with the same result, and says so; tensors that escape say it too."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")
X = tf.constant([3.0, -1.0, 3.0, 2.0])

SHAPES_OF_VALUES = {
    "boolean_mask": lambda x: tf.boolean_mask(x, x > 0.0),
    "unique": lambda x: tf.unique(x)[0],
    "where": lambda x: tf.where(x > 0.0),
    "numpy": lambda x: x.numpy() * 2.0,
    "__float__": lambda x: x * float(x[0]),
    "__int__": lambda x: x * int(x[0]),
    "__bool__": lambda x: x if x[0] > 0.0 else -x,
    "range": lambda x: tf.range(tf.cast(x[0] ** 2.0, "int32")),
}


@pytest.mark.parametrize("name", SHAPES_OF_VALUES)
def test_it_runs_eagerly_and_says_so_once(name, caplog):
    body = SHAPES_OF_VALUES[name]
    f = function(body, autograph=False)
    with caplog.at_level(logging.WARNING, "gradtape"):
        for x in (X, -X + 1.0, X):
            np.testing.assert_array_equal(f(x).numpy(), tf.convert_to_tensor(body(x)).numpy())
    texts = [r.getMessage() for r in caplog.records]
    assert len(texts) == 1
    assert f"because {name} (" in texts[0]
    assert f"{__file__}:{body.__code__.co_firstlineno}" in texts[0]


@pytest.mark.parametrize("name", SHAPES_OF_VALUES)
def test_with_jit_compile_it_is_an_error(name):
    kind = tf.errors.OperatorNotAllowedInGraphError if name == "__bool__" else tf.errors.InvalidArgumentError
    with pytest.raises(kind, match="Detected unsupported operations when trying to compile"):
        function(SHAPES_OF_VALUES[name], jit_compile=True, autograph=False)(X)


def test_gradients_flow_where_it_runs_eagerly(caplog):
    v = tf.Variable(2.0)
    f = function(lambda x: tf.reduce_sum(tf.boolean_mask(x, x > 0.0)) * v)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    g, h = tape.gradient(y, [X, v])
    assert (g.numpy().tolist(), float(h)) == ([2.0, 0.0, 2.0, 2.0], 8.0)


def test_each_signature_is_judged_by_itself(caplog):
    f = function(lambda x, mask: tf.boolean_mask(x, x > 0.0) if mask else x * 2.0)
    f(X, True)
    assert f(X, False).numpy().tolist() == [6.0, -2.0, 6.0, 4.0]
    assert caplog.text.count("runs eagerly") == 1


def test_updates_of_rows_run_eagerly():
    v = tf.Variable([1.0, 2.0, 3.0])

    @function
    def f(x):
        v.scatter_add(tf.IndexedSlices(x, tf.constant([0, 2])))
        v.scatter_nd_update([[1]], x[:1])
        v[2:].assign(x[:1])
        return v * 2.0

    assert [f(tf.constant([10.0, 20.0])).numpy().tolist() for _ in range(2)] == [[22.0, 20.0, 20.0], [42.0, 20.0, 20.0]]


def test_what_fails_only_when_traced_runs_eagerly(caplog):
    calls = []

    def body(x):
        calls.append(1)
        return x * np.add.accumulate(np.ones(len(x._array.tobytes()) // 4, np.float32))  # tracers have no bytes

    f = function(body)
    for _ in range(3):
        assert f(tf.constant([1.0, 1.0])).numpy().tolist() == [1.0, 2.0]
    assert caplog.text.count("runs eagerly") == 1
    assert len(calls) == 4


def test_strings_run_eagerly():
    f = function(lambda s: tf.strings.length(s))
    assert f(tf.constant(["a", "bcd"])).numpy().tolist() == [1, 3]


def test_host_functions_run_at_every_call(capsys):
    f = function(lambda x: tf.print("value", x) if hasattr(tf, "print") else None)
    calls = []

    @function
    def g(x):
        from gradtape.ops.host import py_function

        return py_function(lambda t: calls.append(1) or t, [1.0], tf.float32) * x

    for _ in range(3):
        f(X)
        g(X)
    assert len(calls) == 3


def test_a_tensor_that_escapes_says_so_at_first_use():
    kept = []
    f = function(lambda x: kept.append(x * 2.0))
    f(X)
    for use in (lambda t: t + 1.0, lambda t: t.numpy(), lambda t: tf.reduce_sum(t), lambda t: float(t[0])):
        with pytest.raises(TypeError, match="is out of scope and cannot be used here"):
            use(kept[0])
    assert "traced" in repr(kept[0])


def test_an_error_of_the_users_is_an_error():
    f = function(lambda x: x + tf.constant([1.0, 2.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        f(X)
    assert f(tf.constant([1.0, 1.0])).numpy().tolist() == [2.0, 3.0]
