"""A user's program as type checkers see it: mypy reads this file with the sources, and pytest runs it."""

from __future__ import annotations

from typing import assert_type

import pytest

import gradtape as tf

pytestmark = pytest.mark.tiny


def test_operators_have_types() -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        x = assert_type(v * 2.0 - 1 / v, tf.Tensor)
        assert_type(2.0 * v + x**2, tf.Tensor)
        assert_type(-x[0], tf.Tensor)
        assert_type(v[0] > x[1], tf.Tensor)
        assert_type(abs(x) @ tf.ones((2, 1)) if x.ndim > 1 else x, tf.Tensor)
        loss = tf.reduce_sum(tf.nn.relu(x))
    (g,) = tape.gradient(loss, [v])
    v.assign_sub(0.1 * g)
    assert g.shape == v.shape


def test_array_methods_have_types() -> None:
    x = tf.constant([[1.0, 2.0]])
    assert_type(x.T.reshape(2).mean(), tf.Tensor)
    assert_type(x.size, int)
    for row in x:
        assert_type(row.astype("float64"), tf.Tensor)


def test_what_is_declared_is_installed() -> None:
    from gradtape.values.operators import ArrayMethods, Operators

    for declared, kind in ((Operators, tf.Tensor), (Operators, tf.Variable), (ArrayMethods, tf.Tensor)):
        names = [name for name, value in vars(declared).items() if callable(value) or isinstance(value, property)]
        assert [name for name in names if getattr(kind, name, None) is getattr(object, name, None)] == []
