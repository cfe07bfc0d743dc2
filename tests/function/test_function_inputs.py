"""What a program remembers of its last call: arguments on the device, which must never be those of another value."""

import gc
import weakref

import numpy as np
import pytest

import gradtape as tf
from gradtape.function.staging import Program

pytest.importorskip("jax")
SIZE = 64


@tf.function
def total(x):
    return tf.reduce_sum(x)


def program_of(function):
    (program,) = (p for p in function._programs.values() if isinstance(p, Program))
    return program


def test_an_argument_that_comes_again_is_transferred_once():
    add = tf.function(lambda x, y: x + y)
    x, y = tf.ones([SIZE]), tf.ones([2, SIZE])
    for _ in range(4):
        np.testing.assert_array_equal(add(x, y), np.full([2, SIZE], 2.0))
    on_device = [array for _, array in program_of(add)._inputs._known]
    assert len(on_device) == 2
    assert None not in on_device


def test_an_argument_that_a_tape_has_seen_is_transferred_once_too():
    square = tf.function(lambda x, y: x * y)
    x, y, v = tf.ones([SIZE]), tf.ones([SIZE]), tf.Variable(tf.ones([SIZE]))
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = x * y * v
    assert tape.gradient(z, x) is not None
    for _ in range(3):
        square(x, y)
    assert None not in [array for _, array in program_of(square)._inputs._known]


@pytest.mark.parametrize(
    "read", [tf.Variable.value, tf.stop_gradient, tf.identity, lambda v: v[:], lambda v: tf.reshape(v, [SIZE])]
)
def test_a_value_of_a_variable_that_is_updated_in_place_is_read_anew(read):
    v = tf.Variable(tf.zeros([SIZE]))
    optimizer = tf.optimizers.SGD(1.0)
    for i in range(6):
        for _ in range(3):
            assert float(total(read(v))) == -i * SIZE
        held = read(v)
        for _ in range(3):
            assert float(total(held)) == -i * SIZE
        del held
        optimizer.apply_gradients([(tf.ones([SIZE]), v)])


def test_the_copy_on_the_device_goes_with_the_tensor():
    def body(x):
        return tf.reduce_sum(x)

    function = tf.function(body)
    x = tf.ones([SIZE])
    for _ in range(3):
        function(x)
    alive, (copy,) = weakref.ref(x), [array for _, array in program_of(function)._inputs._known]
    assert copy is not None
    copy = weakref.ref(copy)
    del x
    gc.collect()
    assert alive() is None
    assert copy() is None


def test_tensors_that_take_turns_are_not_mixed_up():
    generator = np.random.default_rng(0)
    tensors = [tf.constant(generator.normal(size=SIZE)) for _ in range(3)]
    for i in generator.integers(0, 3, 60):
        np.testing.assert_allclose(total(tensors[i]), tensors[i].numpy().sum())
        if generator.random() < 0.2:
            tensors[i] = tf.constant(generator.normal(size=SIZE))


def test_a_plain_call_obeys_what_surrounds_it():
    double = tf.function(lambda x: 2.0 * x)
    x = tf.ones([3])
    for _ in range(2):
        double(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = double(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(tf.vectorized_map(double, tf.ones([2, 3])), np.full([2, 3], 2.0))
    outer = tf.function(lambda x: double(x) + double(x))
    np.testing.assert_array_equal(outer(x), [4.0, 4.0, 4.0])
    tf.config.run_functions_eagerly(True)
    try:
        np.testing.assert_array_equal(double(x), [2.0, 2.0, 2.0])
    finally:
        tf.config.run_functions_eagerly(False)
    assert double.experimental_get_tracing_count() == 2  # plain, and under a tape


def test_a_prepared_function_ends_its_first_call_too():
    made = []

    @tf.function
    def step(x):
        if x.shape[0] == 2 and not made:
            made.append(tf.Variable(1.0))
        return x + 1.0

    step.get_concrete_function(tf.TensorSpec([1]))
    step(tf.ones([1]))
    with pytest.raises(ValueError, match=r"singleton tf\.Variables created on the first call"):
        step(tf.ones([2]))
