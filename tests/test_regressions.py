"""Bugs that were found by trying to break the engine, one test each."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import warnings
import weakref

import numpy as np
import pytest

import gradtape as tf
from gradtape.core.context import thread
from gradtape.ops import elementwise
from gradtape.values import nest

Tape = tf.GradientTape


def second_order(function, *values):
    """The gradients of each argument's gradient (summed) with respect to all arguments."""
    xs = [tf.constant(v, tf.float64) for v in values]
    with Tape(persistent=True) as outer:
        outer.watch(xs)
        with Tape() as inner:
            inner.watch(xs)
            y = function(*xs)
        gradients = inner.gradient(y, xs)
    return [outer.gradient(g, xs) for g in gradients]


# Sources and seeds


def test_a_constant_that_was_merely_used_is_no_source_even_if_not_all_watched_values_are_asked_for():
    a, b, k = tf.constant(2.0), tf.constant(3.0), tf.constant(5.0)
    with Tape() as tape:
        tape.watch([a, b])
        y = a * k + b
    found = tape.gradient(y, [a, k])
    assert float(found[0]) == 5.0
    assert found[1] is None


def test_gradients_that_are_the_seed_itself_are_different_tensors():
    x, z = tf.constant(2.0), tf.constant(4.0)
    with Tape(persistent=True) as outer:
        outer.watch([x, z])
        found = []
        for source in (x, z):
            with Tape() as inner:
                inner.watch(source)
                y = source + 1.0
            found.append(inner.gradient(y, source))
        outer.watch(found[0])
        r = found[0] * 3.0
    assert found[0] is not found[1]
    assert outer.gradient(r, found[1]) is None


def test_a_variable_as_target_needs_no_jax():
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import gradtape as tf\n"
        "v = tf.Variable(2.0)\n"
        "with tf.GradientTape() as tape: y = v * v\n"
        "print(float(tape.gradient([v, y], v)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "5.0", done.stderr


def test_a_cast_to_bfloat16_is_recorded_when_the_type_is_met_for_the_first_time():
    code = (
        "import gradtape as tf, ml_dtypes, numpy as np\n"
        "from gradtape.ops.elementwise import astype\n"
        "x = tf.Variable([1.0, 2.0])\n"
        "with tf.GradientTape() as tape: y = astype(x, dtype=np.dtype(ml_dtypes.bfloat16))\n"
        "print(tape.gradient(y, x).numpy())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[1. 1.]", done.stderr


# Second derivatives where the cotangent is exactly 0


def test_second_derivative_of_sqrt_at_a_minimum():
    ((h,),) = second_order(lambda x: (tf.sqrt(x) - tf.constant([2.0, 3.0], tf.float64)) ** 2, [4.0, 9.0])
    np.testing.assert_allclose(h, [1 / 8, 1 / 18])


def test_second_derivative_of_rsqrt_at_a_minimum():
    ((h,),) = second_order(lambda x: (tf.math.rsqrt(x) - tf.constant([0.5, 2.0], tf.float64)) ** 2, [4.0, 0.25])
    np.testing.assert_allclose(h, [1 / 128, 32.0])


def test_forward_derivative_by_two_reverse_ones_through_sqrt():
    x, u = tf.constant([4.0, 9.0]), tf.zeros([2])
    with Tape() as outer:
        outer.watch(u)
        with Tape() as inner:
            inner.watch(x)
            y = tf.sqrt(x) * x
        g = inner.gradient(y, x, output_gradients=u)
    np.testing.assert_allclose(outer.gradient(g, u), [3.0, 4.5])


def test_the_pole_of_sqrt_in_a_branch_that_is_not_taken_does_not_leak():
    x = tf.constant([0.0, 4.0])
    with Tape() as tape:
        tape.watch(x)
        y = tf.where(x > 1.0, tf.sqrt(x) + tf.math.rsqrt(x), x)
    np.testing.assert_allclose(tape.gradient(y, x), [1.0, 0.25 - 0.0625])


def test_mixed_second_derivative_of_multiply_no_nan_at_0():
    (hx, hy) = second_order(tf.math.multiply_no_nan, [2.0, np.inf, 3.0], [0.0, 0.0, 4.0])
    np.testing.assert_array_equal(hx[1], [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(hy[0], [1.0, 1.0, 1.0])


# Gradient functions of the user


def reads(w):
    @tf.custom_gradient
    def function(x):
        return x * 1.0, lambda upstream: upstream * w

    return function


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_what_a_gradient_function_reads_from_outside_is_differentiated(make):
    x, w = tf.constant(2.0), make(3.0)
    function = reads(w)
    with Tape() as outer:
        if isinstance(w, tf.Tensor):
            outer.watch(w)
        with Tape() as inner:
            inner.watch(x)
            y = function(x)
        g = inner.gradient(y, x)
    assert float(outer.gradient(g, w)) == 1.0


def test_a_gradient_function_is_freed_without_the_garbage_collector():
    class Witness:
        pass

    def run():
        witness = Witness()

        @tf.custom_gradient
        def function(x):
            return x * 1.0, lambda upstream: upstream * (2.0 if witness else 1.0)

        x = tf.constant(2.0)
        with Tape() as tape:
            tape.watch(x)
            y = function(x)
        tape.gradient(y, x)
        return weakref.ref(witness)

    gc.collect()
    gc.disable()
    try:
        assert run()() is None
    finally:
        gc.enable()


def test_jacobian_of_an_empty_target_through_a_gradient_function():
    x = tf.zeros([0])
    with Tape() as tape:
        tape.watch(x)
        y = reads(2.0)(x)
    assert tape.jacobian(y, x).shape == (0, 0)


def test_an_op_that_is_declared_nondifferentiable_takes_no_second_registration():
    with pytest.raises(KeyError, match="Floor"):
        tf.RegisterGradient("Floor")(lambda op, upstream: upstream)


def test_a_gradient_function_that_answers_none_for_some_rows_of_a_jacobian():
    calls = []

    @tf.custom_gradient
    def function(x):
        def pull(upstream):
            calls.append(upstream)
            return None if len(calls) == 1 else upstream * 2.0

        return x * 1.0, pull

    x = tf.constant([1.0, 2.0])
    with Tape() as tape:
        tape.watch(x)
        y = function(x)
    np.testing.assert_array_equal(tape.jacobian(y, x), [[0.0, 0.0], [0.0, 2.0]])


def test_a_rule_registered_for_an_op_of_one_or_two_arrays_is_used():
    from gradtape import extend

    one = extend.unary("regression_one", "2x", kernel=lambda xp, x: x + x)
    w = tf.Variable(3.0)
    try:
        tf.RegisterGradient("RegressionOne")(lambda op, upstream: upstream * op.outputs[0] * w)
        x = tf.constant([1.0, 2.0])
        with Tape() as outer:
            with Tape(persistent=True) as inner:
                inner.watch(x)
                y = one(x)
            g = inner.gradient(y, x)
            np.testing.assert_array_equal(g, [6.0, 12.0])
            np.testing.assert_array_equal(inner.jacobian(y, x), [[6.0, 0.0], [0.0, 12.0]])
        assert float(outer.gradient(g, w)) == 6.0  # what the rule reads from outside counts
    finally:
        del extend.OPS["regression_one"]
        from gradtape.core.op import REGISTRY

        del REGISTRY["RegressionOne"]


# Half precision


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_sums_of_half_types_do_not_saturate(dtype):
    x = tf.ones([6144, 2], dtype)
    np.testing.assert_array_equal(tf.cast(tf.reduce_sum(x, axis=0), tf.float32), [6144, 6144])
    np.testing.assert_array_equal(tf.cast(tf.reduce_mean(x, axis=0), tf.float32), [1, 1])
    bias = tf.Variable(tf.zeros([2], dtype))
    with Tape() as tape:
        y = tf.reduce_sum(tf.cast(x + bias, tf.float32))
    np.testing.assert_array_equal(tf.cast(tape.gradient(y, bias), tf.float32), [6144, 6144])


def test_mean_of_more_float16_than_float16_can_count():
    x = tf.ones([100_000], tf.float16)
    with Tape() as tape:
        tape.watch(x)
        y = tf.reduce_mean(x)
    assert y.dtype is tf.float16
    assert float(y) == 1.0
    np.testing.assert_allclose(tf.cast(tape.gradient(y, x)[0], tf.float32), 1e-5, rtol=0.01)  # a subnormal number


# Values


def test_a_tensor_from_a_pickled_array_has_the_one_dtype_object():
    """Fast paths compare dtypes by identity, and NumPy hands a foreign dtype object on from operand to result."""
    array = pickle.loads(pickle.dumps(np.array([True])))
    for x in (tf.constant(array), pickle.loads(pickle.dumps(tf.constant([True]))), tf.Variable(array).value()):
        assert x._array.dtype is np.dtype(bool)
        with pytest.raises(tf.errors.InvalidArgumentError):
            x + x
    variable = pickle.loads(pickle.dumps(tf.Variable([1.0])))
    assert variable.value()._array.dtype is np.dtype(np.float32)


@pytest.mark.parametrize("update", ["assign_add", "assign_sub"])
def test_an_update_never_changes_the_buffer_that_another_thread_may_be_reading(update):
    v = tf.Variable(np.zeros(1000, np.float32))
    before = v._tensor._array.ctypes.data
    getattr(v, update)(tf.ones([1000]))
    assert v._tensor._array.ctypes.data != before


def test_overflow_is_an_answer_whatever_the_users_error_settings():
    x, v = tf.constant([3e38]), tf.Variable([3e38])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for setting in ("warn", "raise"):
            with np.errstate(all=setting):
                assert np.isinf((x * tf.constant([10.0])).numpy())
                v.assign([3e38])
                assert np.isinf(v.assign_add([3e38]).numpy())
                v.assign([3e38])
                assert np.isinf(v.scatter_mul(tf.IndexedSlices([10.0], [0])).numpy())


def test_an_error_that_a_kernel_raises_itself_is_not_its_own_cause():
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        elementwise.logaddexp(tf.constant([1]), tf.constant([2]))
    assert caught.value.__cause__ is None


# Memory


def test_dead_records_are_dropped_under_two_tapes():
    x = tf.constant([1.0, 2.0])
    with Tape() as outer, Tape() as inner:
        outer.watch(x)
        inner.watch(x)
        for _ in range(5000):
            y = tf.reduce_sum(x * 2.0)
            parts = tf.unstack(x)
    assert len(inner.records) < 3000
    assert len(outer.records) < 3000
    assert not thread.recorders
    for tape in (outer, inner):
        np.testing.assert_array_equal(tape.gradient([y, *parts], x), [3.0, 3.0])


def test_the_cache_of_nested_types_is_bounded():
    for _ in range(2000):
        nest.flatten([type("Made", (), {})()])
    assert len(nest._NESTED) <= 1001
    assert nest.flatten([1, (2, {"a": 3})]) == [1, 2, 3]
