"""A10: memory is freed by reference counting alone; a record keeps only what its rule reads."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradtape as tf
from gradtape.core.context import thread

pytestmark = pytest.mark.tiny


@pytest.fixture(autouse=True)
def _without_the_collector():
    gc.disable()
    yield
    gc.enable()
    assert thread.recorders == ()


class Life:
    """Which of the tensors, and of their arrays, are still alive."""

    def __init__(self):
        self.references = []

    def __call__(self, tensor):
        self.references += [weakref.ref(tensor), weakref.ref(tensor._array)]
        return tensor

    @property
    def alive(self):
        return sum(r() is not None for r in self.references)


def chain(x, life, steps=10):
    y = x
    for _ in range(steps):
        y = life(life(y * y) * 0.5 + x)
    return y


@pytest.mark.parametrize("call", ["gradient", "jacobian"])
def test_a10_1_a_one_shot_tape_frees_when_it_answers(call):
    """A10.1"""
    life, x = Life(), tf.constant([0.5, 0.25])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = chain(x, life)
    last = weakref.ref(y._array)
    assert life.alive > 10
    g = getattr(tape, call)(y, x)
    del y
    assert g is not None
    assert life.alive == 0
    assert last() is None


def test_a10_1_after_a_failing_rule():
    """A10.1, A7.5"""

    @tf.custom_gradient
    def fails(x):
        def grad(dy):
            raise KeyError

        return x * 1.0, grad

    life, x = Life(), tf.constant([0.5, 0.25])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fails(chain(x, life)) * 2.0
    with pytest.raises(KeyError) as caught:
        tape.gradient(y, x)
    del y, caught
    assert life.alive == 0


def test_a10_2_a_persistent_tape_keeps_until_it_dies():
    """A10.2"""
    life, x = Life(), tf.constant([0.5, 0.25])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = chain(x, life)
    tape.gradient(y, x)
    tape.gradient(y, x)
    del y
    assert life.alive > 10
    of_tape = weakref.ref(tape)
    del tape
    assert of_tape() is None
    assert life.alive == 0


def test_a10_2_tapes_that_recorded_their_own_backward_are_not_in_cycles():
    """A10.2"""
    life, x = Life(), tf.constant([0.5, 0.25])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = chain(x, life)
        g = life(tape.gradient(y, x))
        life(tape.gradient(g, x))
    del tape, y, g
    assert life.alive == 0


def test_a10_2_nested_tapes():
    """A10.1, A10.2"""
    life, x = Life(), tf.Variable([0.5, 0.25])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = chain(x * 1.0, life)
        g = life(inner.gradient(y, x))
    h = outer.gradient(g, x)
    del y, g
    assert h is not None
    assert life.alive == 0


def test_a10_2_a_body_that_fails():
    """A2.2, A10.2"""
    life, x = Life(), tf.constant([0.5, 0.25])
    try:
        with tf.GradientTape() as tape:
            tape.watch(x)
            chain(x, life)
            raise KeyError
    except KeyError:
        del tape
    assert life.alive == 0


@pytest.mark.parametrize("persistent", [False, True])
def test_a10_3_records_of_dead_results_are_dropped_while_recording(persistent):
    """A10.3: a long loop whose results are thrown away does not grow"""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=persistent) as tape:
        y = x * x
        for _ in range(20_000):
            x * 2.0 + 1.0
        assert len(tape.records) < 5_000
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


def test_a10_3_pruning_keeps_every_path_that_is_still_needed():
    """A10.3"""
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        kept = []
        y = x * 1.0
        for i in range(3_000):
            y = y + x  # alive only through its successors
            if i % 1000 == 0:
                kept.append(y * 2.0)
            tf.exp(y * 0.0)
        total = y
        for k in kept:
            total = total + k
    assert float(tape.gradient(total, x)) == 3001.0 + 2.0 * (2.0 + 1002.0 + 2002.0)


def test_a10_3_outputs_of_one_record_live_together():
    """A10.3"""
    x = tf.Variable(np.arange(4.0, dtype=np.float32))
    with tf.GradientTape() as tape:
        _, second = tf.split(x * 3.0, 2)
        for _ in range(3_000):
            tf.split(x, 2)
        assert len(tape.records) < 3_000
        y = tf.reduce_sum(second * second)
    assert tape.gradient(y, x).numpy().tolist() == [0.0, 0.0, 36.0, 54.0]


def test_a10_3_results_of_custom_gradients():
    """A10.3"""
    x = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        return (x * 1.0, x * 2.0), lambda a, b: a * 10.0 + b * 100.0

    with tf.GradientTape() as tape:
        first, second = f(x)[0], f(x)[1]
        for _ in range(3_000):
            f(x)
        assert len(tape.records) < 5_000
    assert float(tape.gradient([first, second], x)) == 110.0


def test_a10_2_a_very_long_chain():
    """A10.2: no recursion, neither in the sweep nor when it is freed"""
    x = tf.Variable(1.0)
    for persistent in (False, True):
        with tf.GradientTape(persistent=persistent) as tape:
            y = x * 1.0
            for _ in range(50_000):
                y = y * 1.0
        assert float(tape.gradient(y, x)) == 1.0
        del tape, y


def alive_after(make):
    """Whether the input and the result of an op survive only through the tape's record."""
    x = tf.constant(np.full((4,), 0.5, np.float32))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        middle = x + 1.0
        out = make(middle)
        end = out + 1.0
    references = weakref.ref(middle._array), weakref.ref(out._array)
    del middle, out
    found = tuple(r() is not None for r in references)
    assert end is not None
    return found


@pytest.mark.parametrize(
    ("make", "input_kept", "output_kept"),
    [
        (lambda x: x + 2.0, False, False),
        (lambda x: x - x, False, False),
        (lambda x: -x, False, False),
        (lambda x: tf.reshape(x * 1.0, (2, 2)), False, False),
        (lambda x: tf.exp(x), False, True),
        (lambda x: tf.tanh(x), False, True),
        (lambda x: tf.sin(x), True, False),
        (lambda x: tf.square(x), True, False),
        (lambda x: tf.concat([x, x], 0), False, False),
        (lambda x: tf.cast(x, tf.float64), False, False),
        (lambda x: tf.nn.relu(x), False, True),
        (lambda x: x[1:3], False, False),
    ],
    ids=["add", "subtract", "negate", "reshape", "exp", "tanh", "sin", "square", "concat", "cast", "relu", "slice"],
)
def test_a10_4_a_record_keeps_only_what_its_rule_reads(make, input_kept, output_kept):
    """A10.4"""
    kept = alive_after(make)
    assert kept[1] == output_kept
    if make(tf.zeros((4,)))._array.base is None:  # a view shares the buffer of its input
        assert kept[0] == input_kept


def test_a10_1_variables_updated_in_a_loop_do_not_accumulate():
    """A10.1: a training loop holds one step at a time"""
    v, life = tf.Variable([1.0, 2.0]), Life()
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = life(v * v)
        v.assign_sub(0.1 * tape.gradient(loss, v))
        del loss
        assert life.alive == 0
