"""Part B: the forward accumulator, fact by fact."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape.autodiff import ForwardAccumulator

pytestmark = pytest.mark.tiny


def one(value, tangent, f):
    x = tf.constant(value)
    with ForwardAccumulator(x, tf.constant(tangent)) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


def test_structures_must_agree():
    """B1"""
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        ForwardAccumulator(x, [1.0, 2.0])
    with pytest.raises(TypeError, match="don't have the same sequence type"):
        ForwardAccumulator([x], (x,))


def test_tangents_are_converted_to_the_primal_s_dtype():
    """B2"""
    x = tf.constant([1.0, 2.0])
    assert ForwardAccumulator(x, np.array([1, 2])).jvp(x).dtype is tf.float32
    assert ForwardAccumulator(tf.constant(1.0), 3).jvp is not None
    with pytest.raises(ValueError, match="Tensor conversion requested dtype float32 for Tensor with dtype float64"):
        ForwardAccumulator(x, tf.constant([1.0, 2.0], tf.float64))


def test_a_tangent_of_another_shape_is_refused():
    """B3, where TensorFlow keeps it and broadcasts"""
    with pytest.raises(ValueError, match="incompatible"):
        ForwardAccumulator(tf.constant([1.0, 2.0]), tf.constant(1.0))


def test_a_primal_may_not_appear_twice():
    """B4"""
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="was specified as a primal multiple times"):
        ForwardAccumulator([x, x], [x, x])


def test_an_integer_primal_is_warned_about_and_has_no_results(caplog):
    """B5"""
    x = tf.constant(3)
    with ForwardAccumulator(x, tf.constant(1)) as accumulator:
        y = x * x
    assert accumulator.jvp(x).numpy() == 1
    assert accumulator.jvp(y) is None


@pytest.mark.parametrize("bad", [1.0, np.ones(2), None])
def test_other_primals_are_refused(bad):
    """B6"""
    with pytest.raises((AttributeError, ValueError, TypeError)):
        ForwardAccumulator(bad, bad)


def test_the_primal_has_its_tangent_before_and_after_the_block():
    """B7"""
    x, t = tf.constant(2.0), tf.constant(5.0)
    accumulator = ForwardAccumulator(x, t)
    assert accumulator.jvp(x).numpy() == 5
    with accumulator:
        pass
    assert accumulator.jvp(x).numpy() == 5
    assert accumulator.jvp(x * x) is None


def test_entering_again():
    """B8"""
    x = tf.constant(2.0)
    accumulator = ForwardAccumulator(x, tf.constant(1.0))
    with accumulator:
        y = x * x
        with pytest.raises(ValueError, match="Accumulator is already recording"):
            accumulator.__enter__()
    outside = x * y
    with accumulator:
        z = y * x
    assert accumulator.jvp(outside) is None
    assert accumulator.jvp(y).numpy() == 4
    assert accumulator.jvp(z).numpy() == 12
    with pytest.raises(ValueError, match="Accumulator is not recording"):
        accumulator.__exit__()


def test_other_threads_are_not_seen_and_an_exception_ends_it():
    """B9"""
    x = tf.constant(2.0)
    found = []
    accumulator = ForwardAccumulator(x, tf.constant(1.0))
    with accumulator:
        worker = threading.Thread(target=lambda: found.append(x * x))
        worker.start()
        worker.join()
    assert accumulator.jvp(found[0]) is None
    with pytest.raises(RuntimeError, match="stop"), accumulator:
        raise RuntimeError("stop")
    assert accumulator.jvp(x * x) is None


def test_jvp_of_a_nest_and_of_the_unconnected():
    """B10, B11, B12, B13"""
    x, other = tf.constant(2.0), tf.Variable([1.0, 2.0])
    with ForwardAccumulator(x, tf.constant(0.0)) as accumulator:
        y = x * x
    found = accumulator.jvp({"a": y, "b": [other, x]})
    assert found["a"].numpy() == 0
    assert found["b"][0] is None
    assert accumulator.jvp(other, unconnected_gradients="zero").numpy().tolist() == [0, 0]
    assert accumulator.jvp(other, tf.UnconnectedGradients.ZERO).numpy().tolist() == [0, 0]
    with pytest.raises(ValueError, match="'foo' is not a valid UnconnectedGradients"):
        accumulator.jvp(y, unconnected_gradients="foo")
    with pytest.raises(AttributeError, match="_id"):
        accumulator.jvp(1.0)


def test_tangents_are_computed_at_once_and_missing_ones_are_zero():
    """B14, B15"""
    x, y = tf.constant(2.0), tf.constant(5.0)
    with ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        product, other = x * y, y * y
        assert accumulator.jvp(product).numpy() == 5
        assert accumulator.jvp(other) is None
    assert one([1, 2], [1, 1], lambda x: x * x) is None


def test_infinite_slopes_are_answers():
    assert one(0.0, 1.0, tf.sqrt).numpy() == np.inf
    assert np.isnan(one([0.0], [1.0], lambda x: x ** tf.constant([0.0])).numpy())


@pytest.mark.parametrize(
    "f", [tf.stop_gradient, tf.floor, tf.argmax, lambda x: tf.cast(x, tf.int32), tf.zeros_like, tf.sign],
)
def test_what_has_no_tangent(f):
    """B16"""
    assert one([1.5, 2.5], [1.0, 1.0], f) is None


def test_tangents_are_dense():
    """B17"""
    assert one([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], lambda x: tf.gather(x, [2, 0])).numpy().tolist() == [4, 1]
    assert one([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], lambda x: x[1:]).numpy().tolist() == [2, 4]
    assert one([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], tf.reduce_max).numpy() == 4


def test_a_variable_s_tangent_survives_assignment():
    """B18"""
    v = tf.Variable(2.0)
    with ForwardAccumulator(v, tf.constant(1.0)) as accumulator:
        first = v * v
        v.assign(first * 5.0)
        second = v * v
        v.assign_sub(1.0)
    assert accumulator.jvp(first).numpy() == 4
    assert accumulator.jvp(second).numpy() == 40


def test_watching_again_sums():
    """B19"""
    x = tf.constant(2.0)
    accumulator = ForwardAccumulator(x, tf.constant(1.0))
    accumulator._watch(x, tf.constant(10.0))
    with accumulator:
        y = x * x
    assert accumulator.jvp(y).numpy() == 44


def test_a_custom_gradient_counts_in_forward_mode_too():
    """B20, where TensorFlow uses the body's own derivative"""

    @tf.custom_gradient
    def tripled(x):
        return x * x, lambda g: 3.0 * g

    @tf.custom_gradient
    def hidden(x):
        return tf.constant(x.numpy() ** 2), lambda g: 3.0 * g

    assert one(2.0, 1.0, tripled).numpy() == 3
    assert one(2.0, 1.0, hidden).numpy() == 3


def test_an_error_in_a_gradient_function_surfaces_at_once():
    """B21"""

    @tf.custom_gradient
    def broken(x):
        def grad(g):
            raise ZeroDivisionError("mine")

        return x, grad

    with pytest.raises(ZeroDivisionError, match="mine"):
        one(2.0, 1.0, broken)


def test_recomputed_functions_have_tangents():
    """B22, which TensorFlow refuses"""
    assert one(2.0, 1.0, tf.recompute_grad(lambda x: x * x * x)).numpy() == 12


def test_tangents_of_dead_tensors_are_dropped():
    """B23"""
    x = tf.constant(np.ones(10))
    with ForwardAccumulator(x, tf.constant(np.ones(10))) as accumulator:
        y = x
        for _ in range(5000):
            y = y * 1.0
    assert len(accumulator.records) < 2100
    assert accumulator.jvp(y).numpy().tolist() == [1] * 10


def test_higher_orders_are_asked_of_the_outer():
    """B24"""
    x = tf.constant(2.0)
    with ForwardAccumulator(x, tf.constant(1.0)) as outer, ForwardAccumulator(x, tf.constant(1.0)) as inner:
        y = x * x * x
        slope, other = inner.jvp(y), outer.jvp(y)
    assert outer.jvp(slope).numpy() == 12
    assert inner.jvp(other) is None


def test_a_tape_sees_the_tangents_only_from_outside():
    """B25"""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
            y = x * x * x
        slope = accumulator.jvp(y)
    assert tape.gradient(slope, x).numpy() == 12
    with ForwardAccumulator(x, tf.constant(1.0)) as accumulator, tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
        slope = accumulator.jvp(y)
    assert tape.gradient(slope, x) is None


def test_forward_over_reverse():
    """B26"""
    x = tf.constant([1.0, 2.0])
    with ForwardAccumulator(x, tf.constant([1.0, 0.0])) as accumulator:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x * x)
        inside = tape.gradient(y, x)
    outside = tape.gradient(y, x)
    assert accumulator.jvp(inside).numpy().tolist() == [6, 0]
    assert accumulator.jvp(outside) is None


def test_complex_numbers_are_pushed_forward_holomorphically():
    """B27"""
    assert one(1 + 2j, 1 + 0j, lambda z: z * z).numpy() == 2 + 4j


def test_a_batch_of_tangents():
    """B28"""
    x = tf.constant([1.0, 2.0, 3.0])
    accumulator = ForwardAccumulator._batch_accumulator(x, tf.constant(np.eye(3, dtype="float32")))
    with accumulator:
        y = x * tf.reduce_sum(x)
    expected = np.eye(3) * 6 + np.array([[1.0, 2.0, 3.0]] * 3)
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), expected)
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(None, 3\) are incompatible"):
        ForwardAccumulator._batch_accumulator(x, tf.constant([1.0, 2.0]))


def test_nothing_stays_active_when_a_rule_fails():
    x = tf.constant(2.0)

    @tf.custom_gradient
    def broken(x):
        return x, lambda g: 1 / 0

    accumulator = ForwardAccumulator(x, tf.constant(1.0))
    with pytest.raises(ZeroDivisionError), accumulator:
        broken(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 4
    assert accumulator.jvp(y) is None
