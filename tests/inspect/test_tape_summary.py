"""`tape.summary`, ``print(tape)`` and `tape.profile`."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf


@pytest.fixture
def weights():
    return tf.Variable(np.ones((4, 2), np.float32), name="weights")


def run(weights, **options):
    with tf.GradientTape(**options) as tape:
        hidden = tf.tanh(tf.ones((3, 4)) @ weights)
        tf.reduce_sum(hidden * 2.0, axis=0)
    return tape


def test_the_table_has_one_row_per_op(weights):
    tape = run(weights, trace=True)
    rows = tape.summary().rows
    assert [row[1] for row in rows] == ["matmul", "tanh", "multiply", "sum"]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    assert rows[0][4] == "constant, weights"
    assert rows[2][4] == "#1; y=2"
    assert rows[3][4] == "#2; axis=0"
    assert rows[3][2] == "(2,)"
    assert all(row[6].startswith("test_tape_summary.py:") for row in rows)


def test_printing_a_tape_shows_the_table_and_its_repr_one_line(weights):
    tape = run(weights)
    text = str(tape)
    assert "matmul" in text
    assert repr(tape) == text.splitlines()[0] == "<GradientTape: 4 ops, 1 variable>"


def test_a_long_tape_is_cut_in_the_middle():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(500):
            y = y * 1.01
    assert len(str(tape).splitlines()) == 44
    assert "460 more" in str(tape)
    assert len(str(tape.summary()).splitlines()) == 503


def test_a_tape_in_any_state_can_be_printed(weights):
    tape = tf.GradientTape()
    assert str(tape) == repr(tape) == "<GradientTape: empty>"
    with tape:
        assert "recording" in repr(tape)
        y = tf.reduce_sum(weights)
    tape.gradient(y, weights)
    assert str(tape) == "<GradientTape: used up>"
    with tf.GradientTape(trace=True) as tape:
        y = tf.reduce_sum(weights)
    tape.gradient(y, weights)
    assert "sum" in str(tape)


def test_hostile_names_do_not_break_the_table():
    v = tf.Variable(1.0, name="a" * 1000)
    with tf.GradientTape() as tape:
        tf.square(v)
    assert max(map(len, str(tape).splitlines())) < 700


# profile


def test_each_op_is_timed_forward_and_backward(weights):
    tape = run(weights, trace=True)
    found = tape.profile()
    assert [entry.op for entry in found.entries] == ["matmul", "tanh", "multiply", "sum"]
    assert all(entry.forward > 0 and entry.backward > 0 for entry in found.entries)
    assert found.forward == pytest.approx(sum(entry.forward for entry in found.entries))
    text = str(found)
    assert "4 ops" in text
    assert "hidden = tf.tanh(" in text


def test_the_slow_op_is_first():
    x = tf.Variable(np.ones((300, 300)))
    with tf.GradientTape(trace=True) as tape:
        y = x @ x
        for _ in range(5):
            y = y[:1]
    assert next(iter(tape.profile().by(lambda entry: entry.op))) == "matmul"


def test_what_is_not_known_is_said_and_nothing_is_used_up(weights):
    x = tf.ones((3, 4))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.stack([x, x @ tf.ones((4, 4)) + weights[:1, :1]]))
    assert "could not be run again" in str(tape.profile())
    assert tape.gradient(y, weights) is not None


def test_a_custom_gradient_is_timed_too():
    @tf.custom_gradient
    def square(x):
        return x * x, lambda g: 2.0 * g * x

    x = tf.Variable(np.ones(1000))
    with tf.GradientTape(trace=True) as tape:
        square(x)
    entry = tape.profile().entries[-1]
    assert entry.op == "square"
    assert entry.forward > 0
    assert entry.backward > 0
