"""Part E: what is beside the goldens: bad input gives a clear error, and tensors cannot be changed from outside."""

from __future__ import annotations

import operator
import weakref

import numpy as np
import pytest

import gradtape as tf

pytestmark = pytest.mark.tiny

ERRORS = (TypeError, ValueError, tf.errors.InvalidArgumentError)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        object(),
        {"a": 1.0},
        {1.0},
        (i for i in range(3)),
        [1.0, None],
        [1.0, "a"],
        [True, 1.0],
        [[1.0], [1.0, 2.0]],
        [[1.0], 2.0],
        [[[1.0]], [[1.0, 2.0]]],
        1 << 80,
        [1 << 80],
        np.array([object()]),
        np.array("2020-01-01", "M8[D]"),
        print,
        [np.ones(2), np.ones(3)],
        [np.ones(2), 1.0],
    ],
    ids=lambda value: type(value).__name__,
)
def test_e1_3_e1_4_bad_values(bad):
    """E1.3, E1.4"""
    with pytest.raises(ERRORS) as caught:
        tf.convert_to_tensor(bad)
    assert str(caught.value)


@pytest.mark.parametrize(("value", "dtype"), [(300, "int8"), (-1, "uint8"), (1 << 40, "int32"), ([0, 1 << 40], "int32")])
def test_e1_2_integers_that_do_not_fit(value, dtype):
    """E1.2"""
    with pytest.raises(ERRORS):
        tf.constant(value, dtype)


@pytest.mark.parametrize("value", [1.5, [1, 2.5], "a", True, 1j, None])
def test_e1_2_python_values_of_the_wrong_kind(value):
    """E1.2"""
    if value is True:
        assert tf.constant(value, tf.int32).numpy() == 1
        return
    with pytest.raises(ERRORS):
        tf.constant(value, tf.int32)


def test_e1_5_lists_of_tensors_of_different_shapes_or_dtypes():
    """E1.5"""
    for bad in ([tf.constant(1.0), tf.constant([1.0])], [tf.constant(1.0), tf.constant(1)], [tf.constant(1.0), "a"]):
        with pytest.raises(ERRORS):
            tf.convert_to_tensor(bad)
    with pytest.raises(ValueError, match="stack"):
        tf.constant([tf.constant(1.0)])


def test_e1_6_tensors_are_made_by_functions():
    """E1.6"""
    with pytest.raises(TypeError, match=r"tf\.constant"):
        tf.Tensor(1.0)


def test_e1_7_complex_to_float_keeps_the_real_part():
    """E1.7"""
    assert tf.cast(tf.constant(1 + 2j), tf.float32).numpy() == 1.0


def test_e2_1_operators_on_wrong_dtypes():
    """E2.1"""
    x, b = tf.constant([1.0]), tf.constant([True])
    for f in (operator.and_, operator.or_, operator.xor):
        with pytest.raises(ERRORS):
            f(x, x)
    for f in (lambda: ~x, lambda: b + b, lambda: b / b, lambda: b - b, lambda: b**b, lambda: b < b):
        with pytest.raises(ERRORS):
            f()
    with pytest.raises(TypeError):
        divmod(x, x)


@pytest.mark.parametrize(
    "other", [None, "a", object(), {}, [1.0, 2.0, 3.0], np.ones(3), tf.constant([1.0, 2.0, 3.0]), [[1.0], [1.0, 2.0]]]
)
@pytest.mark.parametrize("f", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt])
def test_e2_4_e3_2_bad_operands(f, other):
    """E2.4, E3.2: either side"""
    x = tf.constant([1.0, 2.0])
    for a, b in ((x, other), (other, x)):
        with pytest.raises(ERRORS) as caught:
            f(a, b)
        assert str(caught.value)


def test_e2_2_integer_remainder_by_zero():
    """E2.2"""
    for f in (operator.floordiv, operator.mod):
        with pytest.raises(tf.errors.InvalidArgumentError, match="by zero"):
            f(tf.constant([1, 2]), tf.constant([1, 0]))


def test_e2_6_numpy_functions_are_recorded():
    """E2.6: in TensorFlow they leave the tape"""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = np.mean(np.sin(x) * np.multiply(x, 2))
    assert isinstance(y, tf.Tensor)
    expected = np.cos([1.0, 2.0]) * [1.0, 2.0] + np.sin([1.0, 2.0])
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)


def test_e3_4_no_promotion():
    """E3.4"""
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant(1.0) + tf.constant(1.0, tf.float64)


def test_e4_1_a_tensor_cannot_be_changed_through_numpy():
    """E4.1"""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 9.0
    with pytest.raises(ValueError, match=r"(?i)writeable"):
        view[0].flags.writeable = True
    np.array(x)[0, 0] = 9.0
    x.numpy()[0, 0] = 9.0
    assert x.numpy()[0, 0] == 1.0


def test_e4_1_the_callers_array_is_copied():
    """E1.1, E4.1"""
    array = np.ones(3, np.float32)
    tensors = [tf.constant(array), tf.convert_to_tensor(array), tf.constant(array[1:]), tf.constant(memoryview(array))]
    array[:] = 5.0
    assert [t.numpy().max() for t in tensors] == [1.0] * 4


def test_e4_4_e4_5_e4_8_protocol():
    """E4.4, E4.5, E4.8"""
    x = tf.constant(2.5)
    with pytest.raises((TypeError, AttributeError)):
        [1, 2, 3][x]
    with pytest.raises(TypeError):
        float(tf.constant([1.0, 2.0]))
    with pytest.raises(TypeError, match="unhashable"):
        dict.fromkeys([x])
    assert weakref.ref(x)() is x


def test_e4_9_names_of_other_libraries():
    """E4.9: a name that is not there says so"""
    x = tf.constant(1.0)
    for name in ("nonsense", "backward", "grad", "detach"):
        with pytest.raises(AttributeError, match=name):
            getattr(x, name)


@pytest.mark.parametrize(
    "index",
    [
        5,
        -4,
        1 << 40,
        (0, 0),
        1.5,
        "a",
        [0, 1],
        np.array([0, 1]),
        (None, 9),
        {},
        tf.constant(9),
        tf.constant(1.0),
        slice("a", None),
    ],
)
def test_e5_2_e5_3_bad_indices(index):
    """E5.2, E5.3"""
    with pytest.raises(ERRORS) as caught:
        tf.constant([1.0, 2.0, 3.0])[index]
    assert str(caught.value)


def test_e5_1_gather_refuses_indices_out_of_range():
    """E5.1, A7.32: NumPy would wrap negative ones"""
    x = tf.constant([1.0, 2.0, 3.0])
    for bad in ([3], [-1], 1 << 30, [[0, 7]]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.gather(x, bad)
    for bad in ([[3]], [[-1]], [[0, 0]]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.gather_nd(x, bad)


@pytest.mark.parametrize(
    "f",
    [
        lambda: tf.reshape(tf.zeros(6), (4,)),
        lambda: tf.reshape(tf.zeros(6), (-1, -1)),
        lambda: tf.matmul(tf.zeros(3), tf.zeros(3)),
        lambda: tf.matmul(tf.zeros((2, 3)), tf.zeros((2, 3))),
        lambda: tf.concat([tf.zeros((1, 2)), tf.zeros((1, 3))], 0),
        lambda: tf.concat([], 0),
        lambda: tf.stack([tf.zeros(2), tf.zeros(3)]),
        lambda: tf.transpose(tf.zeros((2, 3)), [0, 0]),
        lambda: tf.transpose(tf.zeros((2, 3)), [0]),
        lambda: tf.reduce_sum(tf.zeros((2, 3)), axis=2),
        lambda: tf.reduce_sum("a"),
        lambda: tf.expand_dims(tf.zeros(2), 5),
        lambda: tf.squeeze(tf.zeros((2, 3)), axis=0),
        lambda: tf.split(tf.zeros(5), 2),
        lambda: tf.split(tf.zeros(5), [2, 2]),
        lambda: tf.tile(tf.zeros((2, 3)), [2]),
        lambda: tf.where(tf.constant([True, False]), tf.zeros(3), tf.zeros(3)),
        lambda: tf.sin(tf.constant(1)),
        lambda: tf.exp("a"),
        lambda: tf.one_hot([0.5], 3),
        lambda: tf.broadcast_to(tf.zeros(3), (2,)),
        lambda: tf.ones((2, -1)),
        lambda: tf.zeros("a"),
        lambda: tf.einsum("ij,jk->ik", tf.zeros((2, 3)), tf.zeros((2, 3))),
        lambda: tf.pad(tf.zeros((2, 2)), [[1, 1]]),
    ],
)
def test_e3_5_bad_shapes_ranks_and_types(f):
    """E3.5: never a wrong number, always one of these classes and a text"""
    with pytest.raises(ERRORS) as caught:
        f()
    assert str(caught.value)


def test_e3_1_nan_flows_and_does_not_raise():
    """E3.1: NaN is a value"""
    x = tf.constant([np.nan, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    assert np.isnan(y.numpy())
    assert np.isnan(tape.gradient(y, x).numpy()).tolist() == [True, False]
