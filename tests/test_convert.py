"""How Python and NumPy values become tensors and operands, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gradtape as tf

pytestmark = pytest.mark.tiny

# Strings join


@pytest.mark.parametrize(
    ("x", "y", "joined"),
    [
        ("a", "b", b"ab"),
        (b"a\0", "b\0", b"a\0b\0"),
        (["a", "x"], ["b"], [b"ab", b"xb"]),
        (["a", "x"], "b", [b"ab", b"xb"]),
    ],
)
def test_strings_join(x, y, joined):
    out = tf.add(x, y)
    assert out.dtype is tf.string
    assert out.numpy() == joined if isinstance(joined, bytes) else out.numpy().tolist() == joined
    both = tf.constant(x) + tf.constant(y)
    assert both.dtype is tf.string
    assert repr(both) == repr(out)


def test_strings_join_from_the_left():
    assert ("b" + tf.constant("a")).numpy() == b"ba"
    assert (tf.Variable("a") + "b").numpy() == b"ab"


@pytest.mark.parametrize("function", [tf.subtract, tf.multiply, tf.pow, tf.divide], ids=lambda f: f.__name__)
def test_strings_do_nothing_else(function):
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError)):
        function("a", "b")


# Two lists


@pytest.mark.parametrize(("x", "y"), [([1], [2.0]), (1, 2.0), ([1], 2.0), (1, "a"), ("a", 1), (["a"], [1])])
def test_add_names_the_operand_that_does_not_fit(x, y):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"cannot compute Add\w* as input #1\(zero-based\) was expected"):
        tf.add(x, y)
    with pytest.raises(tf.errors.InvalidArgumentError, match="was expected to be"):
        tf.constant(x) + y


def test_matmul_names_the_operand_that_does_not_fit():
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute MatMul as input #1"):
        tf.matmul([[1]], [[2.0]])


@pytest.mark.parametrize(
    "function", [tf.subtract, tf.multiply, tf.maximum, tf.pow, tf.equal, tf.less], ids=lambda f: f.__name__
)
def test_other_ops_refuse_the_conversion(function):
    with pytest.raises(TypeError, match=r"Cannot convert 2\.0 to EagerTensor of dtype int32"):
        function([1], [2.0])


def test_tensors_in_a_list_are_cast_if_the_first_has_another_dtype_than_asked_for():
    one, two = tf.constant(1), tf.constant(2, tf.int64)
    assert tf.convert_to_tensor([one, two], tf.int64).numpy().tolist() == [1, 2]
    assert tf.convert_to_tensor([[one], [2]], tf.float32).numpy().tolist() == [[1.0], [2.0]]
    assert tf.add(tf.constant(0.5), [one, one]).numpy().tolist() == [1.5, 1.5]
    x = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = tf.convert_to_tensor([x, 2 * x], tf.float64)
    assert (y.dtype, float(tape.gradient(y, x))) == (tf.float64, 3.0)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf.convert_to_tensor([two, one], tf.int64)


def test_the_right_list_takes_the_dtype_of_the_left():
    assert tf.add([1.0], [2]).dtype is tf.float32


# Numbers that do not fit


@pytest.mark.parametrize("number", [65536.0, 65536, 1e300, -1e300])
def test_a_number_beyond_the_dtype_is_inf(number):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf((tf.constant(2.0, tf.float16) * number).numpy())
        assert np.isinf((number * tf.constant(2.0, tf.float16)).numpy())


def test_an_integer_beyond_every_float_is_refused():
    with pytest.raises(ValueError, match="out-of-range integer"):
        tf.constant(2.0) * 10**400


# Dtypes that an op does not take


@pytest.mark.parametrize("dtype", [tf.int32, tf.uint8, tf.bool, tf.complex64])
def test_polygamma_is_for_floats(dtype):
    from gradtape.ops import elementwise

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Value for attr 'T' of {dtype.name} is not in the list"):
        elementwise.polygamma(tf.cast([2, 3], dtype), n=1)


@pytest.mark.parametrize("function", [tf.reduce_max, tf.reduce_min], ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [[1j], [True], ["a"]], ids=["complex", "bool", "string"])
def test_an_extreme_is_for_what_has_an_order(function, values):
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the list of allowed values"):
        function(tf.constant(values))


@pytest.mark.parametrize("function", [tf.floor, tf.math.ceil, tf.math.rint, tf.math.is_nan], ids=lambda f: f.__name__)
@pytest.mark.parametrize("value", [1, True, 1j, "a"])
def test_rounding_is_for_real_floats(function, value):
    with pytest.raises(tf.errors.InvalidArgumentError, match="allowed values: bfloat16, half, float, double "):
        function(tf.constant(value))


@pytest.mark.parametrize("values", [[1j], ["a"]], ids=["complex", "string"])
def test_argmax_is_for_what_has_an_order(values):
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the list of allowed values"):
        tf.argmax(tf.constant(values))
