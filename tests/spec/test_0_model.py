"""Part 0: the mental model, seen from outside where possible and in the tape's own data where not."""

from __future__ import annotations

import pytest

import gradtape as tf
from gradtape.core.context import thread
from spec.private import op

pytestmark = pytest.mark.tiny


def test_0_1_a_tape_knows_watched_values_and_results_of_records():
    """0.1"""
    x, c = tf.constant(3.0), tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * c
    assert x._key in tape.records
    assert y._key in tape.records
    assert c._key not in tape.records
    assert tape.watched_variables() == ()


def test_0_2_every_active_tape_is_offered_every_operation():
    """0.2"""
    x = tf.constant(3.0)
    tapes = [tf.GradientTape() for _ in range(4)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x)
    assert thread.recorders == tuple(tapes)
    y = x * x
    for tape in tapes:
        tape.__exit__(None, None, None)
    assert [float(tape.gradient(y, x)) for tape in tapes] == [6.0] * 4


def test_0_3_an_operation_of_constants_is_not_recorded():
    """0.3"""
    x, c = tf.constant(3.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        before = len(tape.records)
        c * c + 1.0
        tf.cast(tf.cast(x, tf.int32), tf.float32) * 2.0
        assert len(tape.records) == before


calls = []


@op
def counting(xp, x, y):
    """An op of the tests that notes which of its rules run."""
    return x * y


def _x_rule(xp, g, y):
    calls.append("x")
    return g * y


def _y_rule(xp, g, x):
    calls.append("y")
    return g * x


counting.vjp(_x_rule, _y_rule)


@pytest.mark.parametrize(("wanted", "ran"), [("x", ["x"]), ("y", ["y"]), ("xy", ["x", "y"])])
def test_0_10_gradients_that_nobody_asked_for_are_not_computed(wanted, ran):
    """0.10"""
    values = {"x": tf.constant(3.0), "y": tf.constant(4.0)}
    calls.clear()
    with tf.GradientTape() as tape:
        tape.watch(values)
        z = counting(values["x"], values["y"])
    tape.gradient(z, [values[name] for name in wanted])
    assert calls == ran


def test_0_10_constants_are_never_differentiated():
    """0.10"""
    x, c = tf.constant(3.0), tf.constant(4.0)
    calls.clear()
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = counting(x, c)
    assert float(tape.gradient(z, x)) == 4.0
    assert calls == ["x"]


def test_0_7_an_operation_off_the_path_is_skipped():
    """0.7"""
    x = tf.constant(3.0)
    calls.clear()
    with tf.GradientTape() as tape:
        tape.watch(x)
        counting(x, x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0
    assert calls == []


def test_0_9_a_persistent_tape_that_records_sees_its_own_backward():
    """0.9"""
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        g = tape.gradient(y, x)
    outside = tape.gradient(y, x)
    assert float(tape.gradient(g, x)) == 12.0
    assert tape.gradient(outside, x) is None


def test_0_8_the_loss_of_a_cross_entropy_is_enough():
    """0.8: only the loss has a gradient; nothing is asked of the rule's by-products"""
    x = tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax_cross_entropy_with_logits(tf.constant([[0.0, 0.0, 1.0]]), x)
    expected = tf.nn.softmax(x).numpy() - [[0.0, 0.0, 1.0]]
    assert abs(tape.gradient(y, x).numpy() - expected).max() < 1e-6
