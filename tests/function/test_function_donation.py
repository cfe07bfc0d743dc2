"""Variables between compiled calls: their memory is written over, and nobody who looked at it can tell."""

import _thread
import copy
import gc
import pickle
import signal
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape.function.holding import is_held

pytest.importorskip("jax")


def _counter(*variables):
    @tf.function
    def step(x):
        for v in variables:
            v.assign(v + x)
        return variables[0] * 2.0

    return step


def _program(function):
    (program,) = function._programs.values()
    return program


def test_the_memory_of_a_variable_that_nobody_read_is_written_over():
    v = tf.Variable(np.zeros(1000, np.float32))
    step = _counter(v)
    step(1.0)
    before = _program(step).holder.arrays[0]
    step(1.0)
    assert before.is_deleted()
    np.testing.assert_array_equal(v.numpy(), np.full(1000, 2.0))


def test_what_was_read_before_a_call_stays_what_it_was():
    v = tf.Variable(np.zeros(1000, np.float32))
    step = _counter(v)
    seen = [(v.value(), v.numpy(), v + 0.0)]
    for _ in range(3):
        step(1.0)
        seen.append((v.value(), v.numpy(), v + 0.0))
    for i, values in enumerate(seen):
        for value in values:
            np.testing.assert_array_equal(value, np.full(1000, float(i)))


def test_reading_a_dtype_or_shape_leaves_the_value_where_it_is():
    v = tf.Variable([1.0, 2.0], dtype=tf.float64)
    step = _counter(v)
    step(tf.constant([1.0, 1.0], tf.float64))
    assert v.dtype is tf.float64
    assert v.shape == (2,)
    assert v.trainable
    assert is_held(v)
    assert isinstance(v, tf.Variable)
    assert type(v).__name__ == "Variable"
    assert "numpy=array([2., 3.])" in repr(v)
    assert type(v) is tf.Variable


def test_two_variables_that_share_a_buffer():
    a = tf.Variable(np.arange(100.0))
    b = tf.Variable(a)
    b.assign(a)
    step = _counter(a, b)
    for _ in range(3):
        step(tf.constant(np.ones(100)))
        b.assign(a)
    np.testing.assert_array_equal(a.numpy(), np.arange(100.0) + 3)
    np.testing.assert_array_equal(b.numpy(), np.arange(100.0) + 3)


def test_a_result_that_is_a_variable_is_a_buffer_of_its_own():
    v = tf.Variable(np.zeros(100, np.float32))

    @tf.function
    def step():
        v.assign(v + 1.0)
        return v.value(), v

    found = [step() for _ in range(4)]
    for i, (value, read) in enumerate(found):
        np.testing.assert_array_equal(value, np.full(100, i + 1.0))
        np.testing.assert_array_equal(read, np.full(100, i + 1.0))


def test_variables_that_change_places():
    a, b = tf.Variable(np.zeros(50)), tf.Variable(np.ones(50))

    @tf.function
    def swap():
        x, y = a.value(), b.value()
        a.assign(y)
        b.assign(x)

    for i in range(1, 4):
        swap()
        if i == 2:
            a.numpy()
    np.testing.assert_array_equal(a.numpy(), np.ones(50))
    np.testing.assert_array_equal(b.numpy(), np.zeros(50))


def test_two_functions_take_turns_and_eager_code_interferes():
    v, w = tf.Variable(np.zeros(3, np.float32)), tf.Variable(np.zeros((), np.float32))
    one, both = _counter(v), _counter(v, w)
    expected_v, expected_w = np.zeros(3), 0.0
    generator = np.random.default_rng(0)
    for _ in range(60):
        match generator.integers(6):
            case 0:
                one(1.0)
                expected_v = expected_v + 1
            case 1:
                both(2.0)
                expected_v, expected_w = expected_v + 2, expected_w + 2
            case 2:
                v.assign([5.0, 6.0, 7.0])
                expected_v = np.array([5.0, 6.0, 7.0])
            case 3:
                w.assign_add(1.0)
                expected_w += 1
            case 4:
                np.testing.assert_array_equal(v.numpy(), expected_v)
            case 5:
                with tf.GradientTape() as tape:
                    y = tf.reduce_sum(v * w)
                np.testing.assert_array_equal(tape.gradient(y, v), np.full(3, expected_w))
    np.testing.assert_array_equal(v.numpy(), expected_v)
    assert float(w) == expected_w


def test_a_variable_that_is_only_written():
    v = tf.Variable(0.0)

    @tf.function
    def write(x):
        v.assign(x * 2.0)

    for x in (1.0, 2.0, 3.0):
        write(tf.constant(x))
        before = v.value()
        write(tf.constant(x + 10.0))
        assert float(before) == x * 2
        assert float(v) == x * 2 + 20


def test_copies_pickles_and_subclasses_of_held_variables():
    class Counted(tf.Variable):
        reads = 0

    v, w = tf.Variable([1.0], name="weight"), Counted([1.0])
    w.note = "kept"
    step = _counter(v, w)
    step(1.0)
    assert is_held(v)
    assert is_held(w)
    assert isinstance(w, Counted)
    assert w.note == "kept"
    for other in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert type(other) is tf.Variable
        assert other.name == "weight:0"
        step(1.0)
        np.testing.assert_array_equal(other.numpy(), [2.0] if other.numpy()[0] == 2.0 else [3.0])
    assert type(w.assign([0.0])) is Counted


def test_a_step_that_fails_leaves_held_variables_as_they_were():
    v = tf.Variable([1.0])

    @tf.function
    def step(x, fail=False):
        v.assign_add(x)
        if fail:
            raise OSError("no")
        return v + 0.0

    step(tf.constant([1.0]))
    with pytest.raises(OSError, match="no"):
        step(tf.constant([1.0]), fail=True)
    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(v.numpy(), [2.0])
    step(tf.constant([1.0]))
    np.testing.assert_array_equal(v.numpy(), [3.0])


@pytest.fixture
def interruptible():
    """Interruptions arrive, even if the process was started to ignore them; in a callback of the collector nobody sees them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_calls_lose_nothing_and_tear_nothing():
    a, b = tf.Variable(np.zeros(2000, np.float32)), tf.Variable(np.zeros(2000, np.float32))
    step = _counter(a, b)
    step(1.0)
    interrupted = 0
    for i in range(60):
        timer = threading.Timer(0.0005 * (1 + i % 7), _thread.interrupt_main)
        try:
            timer.start()
            for _ in range(100_000):
                step(1.0)
        except KeyboardInterrupt:
            interrupted += 1
        first, second = a.numpy(), b.numpy()
        assert first[0] == second[0]
        assert (first == first[0]).all()
        assert (second == second[0]).all()
    assert interrupted == 60


def test_readers_in_other_threads_see_whole_steps():
    v = tf.Variable(np.zeros(4000, np.float32))
    step = _counter(v)
    stop, torn = threading.Event(), []

    def read():
        while not stop.is_set():
            value = v.numpy()
            if not (value == value[0]).all():
                torn.append(value)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(300):
        step(1.0)
    stop.set()
    for reader in readers:
        reader.join()
    assert not torn
    assert v.numpy()[0] == 300
