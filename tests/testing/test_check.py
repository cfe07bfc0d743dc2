"""The gradient checker must catch rules that are slightly wrong, and pass right ones where functions are steep."""

import numpy as np
import pytest

import gradtape as tf
from gradtape import test as tf_test
from gradtape.core.op import op
from gradtape.ops import contract, elementwise, indexing, reduce, shape
from gradtape.testing import GradientMismatch, check_gradients
from gradtape.xp import numpy as NUMPY  # the namespace in which first-order sweeps run

pytestmark = pytest.mark.tiny

X = np.array([[0.3, -1.2, 2.0], [1.1, 0.4, -0.7]])
Y = np.array([[1.3, 0.2, -2.0], [0.1, 1.4, 0.7]])
Z = X + 1j * Y


@op
def checked_sine(xp, x):
    """sin with a rule that the tests choose."""
    return xp.sin(x)


@op
def checked_product(xp, x, y):
    return xp.matmul(x, y)


@op
def checked_sum(xp, x, y):
    return x + y


@op
def checked_square(xp, x):
    return x * x


@op
def wrong_cosine(xp, x):
    """A cosine whose own derivative has the wrong sign: first-order rules that call it are right."""
    return xp.cos(x)


wrong_cosine.vjp(lambda xp, g, x: g * xp.sin(x))


def refused(f, *args, order=2):
    with pytest.raises(GradientMismatch) as caught:
        check_gradients(f, args, order)
    return str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        lambda xp, g, x: 1.001 * g * xp.cos(x),
        lambda xp, g, x: 0.999 * g * xp.cos(x),
        lambda xp, g, x: g * (xp.cos(x) + 1e-5),
        lambda xp, g, x: -g * xp.cos(x),
        lambda xp, g, x: g * xp.sin(x),
        lambda xp, g, x: xp.zeros_like(g),
        lambda xp, g, x: xp.cos(x),
        lambda xp, g, x: g * g * xp.cos(x),
        lambda xp, g, x: xp.flip(g, axis=0) * xp.cos(x),
        lambda xp, g, x: xp.where(xp.greater(x, 1.9 * xp.ones_like(x)), 1.001 * g * xp.cos(x), g * xp.cos(x)),
    ],
    ids=["0.1 % up", "0.1 % down", "an offset of 1e-5", "sign", "derivative", "zero", "no cotangent", "cotangent squared",
         "order", "one entry"],
)  # fmt: skip
def test_wrong_rules_are_caught_at_first_order(rule):
    checked_sine.vjp(rule)
    text = refused(checked_sine, X)
    assert "The gradient of order 1 differs" in text
    assert "argument 0[" in text
    assert "relative error" in text


def test_the_worst_entry_is_reported():
    checked_sine.vjp(lambda xp, g, x: xp.where(xp.greater(x, 1.9 * xp.ones_like(x)), 1.001 * g * xp.cos(x), g * xp.cos(x)))
    text = refused(checked_sine, X)
    assert "in 2 of 42 entries" in text
    assert "argument 0[0, 2]" in text
    assert "relative error 9.99" in text
    assert str(1.001 * np.cos(2.0))[:8] in text


def test_a_transposed_rule_is_caught():
    checked_product.vjp(lambda xp, g, y: xp.matmul(g, y), lambda xp, g, x: xp.matmul(xp.adjoint(x), g))
    assert "argument 0" in refused(checked_product, X[:, :2], Y[:, :2])
    checked_product.vjp(lambda xp, g, y: xp.matmul(g, xp.adjoint(y)), lambda xp, g, x: xp.matmul(x, g))
    assert "argument 1" in refused(checked_product, X[:, :2], Y[:, :2])


def test_a_missing_conjugate_is_caught_with_complex_arguments_only():
    checked_square.vjp(lambda xp, g, x: 2 * g * x)
    check_gradients(checked_square, [X])
    assert "(imaginary part)" in refused(checked_square, Z)
    checked_square.vjp(lambda xp, g, x: 2 * g * xp.conj(x))
    check_gradients(checked_square, [Z])


def test_a_missing_sum_over_broadcast_axes_is_caught():
    # A rule that sums by itself, but over the wrong axis (here both have length 2).
    checked_sum.vjp(lambda xp, g: g, lambda xp, g: xp.sum(g, axis=1))
    refused(checked_sum, X[:, :2], Y[0, :2])
    checked_sum.vjp(lambda xp, g: g, lambda xp, g: xp.getitem(g, index=(0,)))
    refused(checked_sum, X[:, :2], Y[0, :2])
    checked_sum.vjp(lambda xp, g: g, lambda xp, g: g)
    check_gradients(checked_sum, [X[:, :2], Y[0, :2]])


def test_a_rule_of_the_wrong_shape_is_an_error():
    checked_sine.vjp(lambda xp, g, x: xp.matrix_transpose(g * xp.cos(x)))
    with pytest.raises(tf.errors.InternalError, match="derivative rule of checked_sine returned a gradient of the wrong shape"):
        check_gradients(checked_sine, [X])


def test_a_rule_wrong_at_second_order_only_is_caught_there():
    checked_sine.vjp(lambda xp, g, x: g * wrong_cosine(x) if xp is not NUMPY else g * xp.cos(x))
    check_gradients(checked_sine, [X], order=1)
    assert "The gradient of order 2 differs" in refused(checked_sine, X)


def test_a_rule_that_cuts_the_second_derivative_is_caught():
    checked_sine.vjp(lambda xp, g, x: g * (xp.cos(x) if xp is NUMPY else elementwise.stop_gradient(xp.cos(x))))
    check_gradients(checked_sine, [X], order=1)
    assert "The gradient of order 2 differs" in refused(checked_sine, X)


def test_third_order():
    check_gradients(elementwise.sin, [X[0]], order=3)
    check_gradients(lambda x: elementwise.exp(x) * x, [0.3], order=4)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (elementwise.reciprocal, [1e-3, -1e-2, 30.0]),
        (elementwise.log, [1e-5, 0.1, 1e6]),
        (elementwise.sqrt, [1e-6, 1e6]),
        (elementwise.tan, [1.57, -1.5]),
        (elementwise.atanh, [0.9999, -0.99]),
        (elementwise.asin, [0.99999]),
        (lambda x: elementwise.exp(50 * x), [1.0, -3.0]),
        (lambda x: elementwise.tanh(100 * x), [0.01, 0.001]),
        (lambda x: 1e12 * elementwise.sin(x), [0.5]),
        (lambda x: 1e-12 * elementwise.sin(x), [0.5]),
        (elementwise.sin, [0.0, 1e-12, 1e-5, 100.0]),
        (lambda x: elementwise.sin(x) * elementwise.sin(x) + elementwise.cos(x) * elementwise.cos(x), [0.3, 2.0]),
        (elementwise.sign, [1.0, -2.0]),
        (lambda x: x + 1e6, [0.3]),
        (elementwise.lgamma, [1e-3, 50.0]),
    ],
)
def test_right_rules_pass_where_functions_are_steep_flat_or_near_a_pole(f, x):
    check_gradients(f, [np.array(x)])


def test_integer_arguments_are_passed_as_they_are():
    check_gradients(lambda x, i: indexing.take(x, i), [X, np.array([1, 1, 0])])
    with pytest.raises(ValueError, match="no floating argument"):
        check_gradients(elementwise.identity, [np.array([1, 2])])
    with pytest.raises(TypeError, match="takes a list of arguments"):
        check_gradients(elementwise.identity, X)


def test_nests_of_outputs_and_unconnected_arguments():
    check_gradients(lambda x, y: {"a": x * y, "b": [elementwise.sin(x)], "n": reduce.argmax(x, axis=0)}, [X, Y])
    check_gradients(lambda x, y: x * 2, [X, Y])


def test_many_outputs_are_checked_by_combinations():
    big = np.linspace(-1, 1, 80)
    check_gradients(elementwise.sin, [big], order=1)
    checked_sine.vjp(lambda xp, g, x: 1.001 * g * xp.cos(x))
    assert "a random combination of outputs" in refused(checked_sine, big, order=1)


def test_variables_lists_and_lower_precision_are_converted():
    check_gradients(elementwise.sin, [tf.Variable([0.5, 1.0])])
    check_gradients(elementwise.sin, [[0.5, 1.0]])
    check_gradients(elementwise.sin, [np.float32([0.5, 1.0])])
    check_gradients(lambda x: shape.reshape(x, shape=(0,)), [np.zeros((0, 2))])


# tf.test.compute_gradient


def test_compute_gradient_gives_one_matrix_per_argument():
    theoretical, numerical = tf_test.compute_gradient(contract.matmul, [X, Y.T.copy()])
    assert [m.shape for m in theoretical] == [m.shape for m in numerical] == [(4, 6), (4, 6)]
    assert tf_test.max_error(theoretical, numerical) < 1e-9
    assert isinstance(theoretical, tuple)
    assert isinstance(numerical, tuple)


def test_compute_gradient_counts_complex_numbers_as_two_reals():
    theoretical, numerical = tf_test.compute_gradient(elementwise.square, [tf.constant([1 + 2j, 3 - 1j])])
    np.testing.assert_allclose(theoretical[0], [[2, -4, 0, 0], [4, 2, 0, 0], [0, 0, 6, 2], [0, 0, -2, 6]])
    np.testing.assert_allclose(numerical[0], theoretical[0], atol=1e-9)
    theoretical, _ = tf_test.compute_gradient(elementwise.abs, [tf.constant([3 + 4j])])
    np.testing.assert_allclose(theoretical[0], [[0.6, 0.8]])


def test_compute_gradient_keeps_the_dtype_and_takes_a_step():
    theoretical, numerical = tf_test.compute_gradient(lambda a: a * a * a, [[1.0, 2.0]], delta=0.1)
    assert theoretical[0].dtype == numerical[0].dtype == np.float32
    np.testing.assert_allclose(np.diag(numerical[0]), [3.01, 12.01], rtol=1e-5)
    np.testing.assert_allclose(np.diag(theoretical[0]), [3, 12])


def test_compute_gradient_at_the_edges():
    empty, _ = tf_test.compute_gradient(elementwise.identity, [np.zeros((0, 2))])
    assert empty[0].shape == (0, 0)
    constant, numerical = tf_test.compute_gradient(lambda a: tf.constant(2.0), [[1.0, 2.0]])
    np.testing.assert_array_equal(constant[0], [[0.0, 0.0]])
    np.testing.assert_array_equal(numerical[0], [[0.0, 0.0]])
    gathered, _ = tf_test.compute_gradient(lambda a: indexing.take(a, np.array([0, 0])), [[1.0, 2.0]])
    np.testing.assert_array_equal(gathered[0], [[1, 0], [1, 0]])
    with pytest.raises(ValueError, match="`x` must be a list or tuple of values convertible to a Tensor"):
        tf_test.compute_gradient(elementwise.identity, tf.constant(1.0))
    with pytest.raises(ValueError, match="unsupported type int32 of argument 1"):
        tf_test.compute_gradient(indexing.take, [[1.0], tf.constant([0])])


def test_max_error_is_nan_if_anything_is():
    assert np.isnan(tf_test.max_error([np.array([np.nan, 1.0])], [np.array([0.0, 5.0])]))
    assert tf_test.max_error([np.zeros((0, 2))], [np.zeros((0, 2))]) == 0


def test_there_is_no_gpu_in_eager_mode():
    assert tf_test.is_gpu_available() is tf_test.is_built_with_cuda() is False
    assert tf_test.gpu_device_name() == ""
