"""Part C: custom gradients, the registry, and what is beside the goldens."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape.core.context import thread
from spec.private import op

pytestmark = pytest.mark.tiny


@pytest.fixture(autouse=True)
def _no_stale_tape():
    yield
    assert thread.recorders == ()


def one(f, x, **options):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, **options)


def test_c1_1_on_methods():
    """C1.1"""

    class Owner:
        factor = 5.0

        @tf.custom_gradient
        def scaled(self, x):
            return x * 1.0, lambda dy: (None, dy * self.factor)

    assert float(one(Owner().scaled, 2.0)) == 5.0


def test_c1_2_something_else_than_a_pair():
    """C1.2"""
    for result in (3.0, None, (1.0,), (1.0, 2.0, 3.0)):
        with pytest.raises((TypeError, ValueError)):
            tf.custom_gradient(lambda x, result=result: result)(tf.constant(1.0))
    assert thread.recorders == ()


def test_c1_4_a_jacobian_calls_the_gradient_function_with_rows():
    """C1.4, A8.7"""

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            assert dy.shape == (2,)
            return dy * 10.0 * x

        return x * x, grad

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.jacobian(y, x).numpy().tolist() == [[10.0, 0.0], [0.0, 20.0]]


def test_c1_7_raised_at_the_call_without_any_tape():
    """C1.7"""
    v = tf.Variable(1.0)
    with pytest.raises(TypeError, match="must accept keyword argument 'variables'"):
        tf.custom_gradient(lambda x: (x * v, lambda dy: dy))(1.0)
    assert thread.recorders == ()


def test_c1_7_any_keywords_will_do():
    """C1.7"""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda dy, **named: (dy, [dy * 4.0 for _ in named["variables"]])

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [float(g) for g in tape.gradient(y, [x, v])] == [1.0, 4.0]


def test_c1_11_an_error_in_the_function_itself_leaves_nothing_behind():
    """C1.11, A2.2"""

    @tf.custom_gradient
    def f(x):
        raise KeyError("in the body")

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError, match="in the body"):
            f(x)
        assert thread.recorders == (tape,)
        y = x * 2.0
    assert float(tape.gradient(y, x)) == 2.0


def test_c2_1_nothing_of_the_inside_is_kept():
    """C2.1: only arguments and results live between forward and backward"""
    import weakref

    inside = []

    @tf.recompute_grad
    def f(x):
        middle = tf.exp(x)
        inside.append(weakref.ref(middle._array))
        return middle * middle

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert inside[0]() is None
    np.testing.assert_allclose(tape.gradient(y, x), 2.0 * np.exp([2.0, 4.0]), rtol=1e-6)
    assert len(inside) == 2


def test_c2_1_an_error_inside_leaves_the_tape_recording():
    """C2.1"""

    @tf.recompute_grad
    def f(x):
        raise KeyError

    with tf.GradientTape() as tape:
        with pytest.raises(KeyError):
            f(tf.constant(1.0))
        assert thread.recorders == (tape,)


def test_c2_2_second_order_with_variables():
    """C2.2: TensorFlow refuses it"""
    v, x = tf.Variable(3.0), tf.constant(0.5)
    f = tf.recompute_grad(lambda x: tf.exp(x * v))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    second = outer.gradient(g, [x, v])
    e = np.exp(1.5)
    np.testing.assert_allclose([float(s) for s in second], [9.0 * e, e * (1.0 + 1.5)], rtol=1e-5)


def test_c3_a_backward_that_would_fail_is_never_called():
    """C3"""

    @tf.custom_gradient
    def fails(x):
        def grad(dy):
            raise KeyError

        return x * 1.0, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fails(tf.stop_gradient(x)) * x
    assert float(tape.gradient(y, x)) == 2.0


def test_c5_register_gradient():
    """C5"""

    @tf.RegisterGradient("CubedForTheTest")
    def rule(op, dy):
        return 3.0 * dy * op.inputs[0] ** 2

    @op(label="CubedForTheTest")
    def cubed(xp, x):
        """An op of the tests whose rule is registered by name."""
        return x * x * x

    assert float(one(cubed, 2.0)) == 12.0
    with pytest.raises(KeyError, match="Registering two gradient with name 'CubedForTheTest'!"):
        tf.RegisterGradient("CubedForTheTest")(rule)


def test_c5_no_gradient():
    """C5"""
    tf.no_gradient("CutForTheTest")

    @op(label="CutForTheTest")
    def cut(xp, x):
        """An op of the tests that is declared to have no gradient by name."""
        return x * 2

    assert one(cut, 2.0) is None


@pytest.mark.parametrize("wrong", [3, None, b"Add"])
def test_c5_names_are_text(wrong):
    """C5"""
    with pytest.raises(TypeError):
        tf.RegisterGradient(wrong)
    with pytest.raises(TypeError):
        tf.no_gradient(wrong)


def test_c8_a_wrong_rule_is_found():
    """C8"""

    @tf.custom_gradient
    def wrong(x):
        return x * x, lambda dy: dy * 2.002 * x

    theoretical, numerical = tf.test.compute_gradient(wrong, [tf.constant([1.0, 2.0], tf.float64)])
    assert theoretical[0].shape == numerical[0].shape == (2, 2)
    assert np.abs(theoretical[0] - numerical[0]).max() > 1e-3


def test_c10_33_cumprod_is_exact():
    """C10.33: TensorFlow's formula divides by the input and loses the terms beyond a zero"""
    g = one(tf.math.cumprod, [2.0, 0.0, 3.0])
    assert g.numpy().tolist() == [1.0, 2.0 + 6.0, 0.0]


def test_c10_22_second_derivative_of_a_product_with_zeros():
    """C10.22: TensorFlow's is [0, 3, 2]"""
    x = tf.constant([0.0, 2.0, 3.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_prod(x)
        g = inner.gradient(y, x)
    assert g.numpy().tolist() == [6.0, 0.0, 0.0]
    assert outer.gradient(g, x).numpy().tolist() == [5.0, 3.0, 2.0]


def test_c10_30_second_derivative_of_moments():
    """C10.30: the Hessian of a variance is 2/n (I − 1/n)"""
    x = tf.constant([1.0, 2.0, 4.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.nn.moments(x, [0])[1]
        g = inner.gradient(y, x)
    np.testing.assert_allclose(outer.jacobian(g, x), 2.0 / 3.0 * (np.eye(3) - 1.0 / 3.0), rtol=1e-5, atol=1e-6)


def test_c7_a_tape_inside_vectorized_map():
    """C7: each element has its own gradient, and the results can be differentiated again"""
    x = tf.constant([1.0, 2.0, 3.0])

    def slope(element):
        with tf.GradientTape() as tape:
            tape.watch(element)
            y = element**3
        return tape.gradient(y, element)

    with tf.GradientTape() as outer:
        outer.watch(x)
        slopes = tf.vectorized_map(slope, x)
    assert slopes.numpy().tolist() == [3.0, 12.0, 27.0]
    assert outer.gradient(slopes, x).numpy().tolist() == [6.0, 12.0, 18.0]
