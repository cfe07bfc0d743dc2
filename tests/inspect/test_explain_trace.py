"""`GradientTape(trace=True)` and `trace="values"`: what happened, in which line, with which values."""

import weakref

import numpy as np
import pytest

import gradtape as tf


@tf.custom_gradient
def double(x):
    return x * 2.0, lambda upstream: upstream * 2.0


BOTH = pytest.mark.parametrize("trace", [True, "values"])


def recorded(trace=True):
    v, x = tf.Variable([1.0, 2.0], name="v"), tf.constant([3.0, 4.0])
    with tf.GradientTape(trace=trace) as tape:
        tape.watch(x)
        y = v * x + tf.constant([1.0, 1.0])
        z = tf.reduce_sum(
            tf.sin(y),
        )
        first, _ = tf.split(y, 2)
        w = np.exp(double(first))
    return tape, v, x, z, w


@BOTH
def test_entries_are_in_order_with_their_lines(trace):
    tape, *_ = recorded(trace)
    entries = list(tape.trace.entries.values())
    assert [(e.kind, e.name) for e in entries] == [
        ("watched", ""), ("variable", "v:0"), ("op", "multiply"), ("op", "add"), ("op", "sin"), ("op", "sum"), ("op", "split"),
        ("op", "multiply"), ("custom", "double"), ("op", "exp"),
    ]  # fmt: skip
    texts = [e.place.text for e in entries]
    assert texts[0] == "tape.watch(x)"
    assert texts[2] == texts[3] == "y = v * x + tf.constant([1.0, 1.0])"
    assert texts[4] == "tf.sin(y),"
    assert texts[-1] == texts[-2] == "w = np.exp(double(first))"
    assert {e.place.file for e in entries} == {__file__}


def test_entries_have_their_values():
    tape, *_, w = recorded("values")
    by_name = {e.name: e for e in tape.trace.entries.values()}
    add = by_name["add"]
    np.testing.assert_array_equal(add.input_arrays[0], [3.0, 8.0])
    np.testing.assert_array_equal(add.input_arrays[1], [1.0, 1.0])
    np.testing.assert_array_equal(add.output_arrays[0], [4.0, 9.0])
    assert by_name["sum"].attributes["axis"] is None
    assert len(by_name["split"].outputs) == 2
    assert by_name["double"].attributes["grad_fn"] is not None
    assert by_name["exp"].output_values[0] is w


def test_lines_alone_keep_no_value():
    with tf.GradientTape(trace=True) as tape:
        v = tf.Variable(tf.ones([1000]))
        y = v + 1.0
        alive = weakref.ref(y)
        y = tf.reduce_sum(y)
    assert alive() is None
    assert all(value is None for entry in tape.trace.entries.values() for value in entry.output_values)


def test_an_unknown_word_is_refused():
    with pytest.raises(ValueError, match="Unknown value for trace: 'lines'"):
        tf.GradientTape(trace="lines")


@BOTH
def test_every_input_was_made_by_an_earlier_entry(trace):
    tape, *_ = recorded(trace)
    made: set = set()
    for entry in tape.trace.entries.values():
        tracked = [key for key in entry.inputs if key in tape.records]
        assert made.issuperset(tracked)
        made.update(entry.outputs)


@BOTH
def test_it_outlives_the_records_and_ends_with_the_next_recording(trace):
    tape, v, _, z, _ = recorded(trace)
    np.testing.assert_allclose(tape.gradient(z, v), np.cos([4.0, 9.0]) * [3.0, 4.0], rtol=1e-6)
    assert len(tape.trace.entries) == 10
    with pytest.raises(RuntimeError):
        tape.gradient(z, v)
    with tape:
        v * 2.0
    assert len(tape.trace.entries) == 2


@BOTH
def test_gradients_are_the_same(trace):
    def both(**options):
        v = tf.Variable([1.0, 2.0])
        with tf.GradientTape(persistent=True, **options) as tape:
            y = tf.reduce_sum(tf.tanh(v) ** 2)
        return tape.gradient(y, v).numpy(), tape.jacobian(y, v).numpy()

    np.testing.assert_array_equal(both(), both(trace=trace))


def test_without_trace_there_is_none():
    with tf.GradientTape() as tape:
        pass
    assert tape.trace is None


@BOTH
def test_several_tapes_and_general_ops(trace):
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(trace=trace) as outer, tf.GradientTape(trace=True) as inner:
        y = tf.reduce_sum(v @ v + v)
    assert [e.name for e in outer.trace.entries.values()] == [e.name for e in inner.trace.entries.values()]
    assert y.numpy() == 64.0


def test_under_function_the_lines_are_those_of_the_function():
    texts = []

    @tf.function
    def step(x):
        with tf.GradientTape(trace=True) as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x)
        texts.extend(e.place.text for e in tape.trace.entries.values())
        return tape.gradient(y, x)

    np.testing.assert_allclose(step(tf.constant([1.0, 2.0])), [2.0, 4.0])
    assert texts == ["tape.watch(x)", "y = tf.reduce_sum(x * x)", "y = tf.reduce_sum(x * x)"]
