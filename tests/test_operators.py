"""Operators of Tensor and Variable: spec D5, E2, E3."""

import operator

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.ops import contract, elementwise

pytestmark = pytest.mark.tiny

InvalidArgument = tf.errors.InvalidArgumentError
FLOAT = np.array([1.0, -2.5, 3.0])
OTHER = np.array([2.0, 0.5, -1.5])

ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
COMPARISONS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def both(kind, values):
    return tf.constant(values) if kind == "tensor" else tf.Variable(values)


def test_operators_are_the_op_functions():
    """No Python layer between ``+`` and the op."""
    for kind in (tf.Tensor, tf.Variable):
        assert kind.__add__ is elementwise.add
        assert kind.__sub__ is elementwise.subtract
        assert kind.__mul__ is elementwise.multiply
        assert kind.__matmul__ is contract.matmul
        assert kind.__neg__ is elementwise.negative


@pytest.mark.parametrize("kind", ["tensor", "variable"])
@pytest.mark.parametrize("symbol", [*ARITHMETIC, *COMPARISONS])
def test_E2_1_D5_1_both_sides(kind, symbol):
    """E2.1, D5.1: every operator, from the left and from the right, gives a Tensor of NumPy's value."""
    function = (ARITHMETIC | COMPARISONS)[symbol]
    x, y = both(kind, FLOAT), tf.constant(OTHER)
    for left, right, a, b in (
        (x, y, FLOAT, OTHER),
        (y, x, OTHER, FLOAT),
        (x, 2, FLOAT, 2),
        (2, x, 2, FLOAT),
        (x, x, FLOAT, FLOAT),
    ):
        out = function(left, right)
        assert type(out) is tf.Tensor
        np.testing.assert_allclose(out.numpy(), function(np.asarray(a), b))


@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_E2_1_power_negative_abs(kind):
    x = both(kind, FLOAT)
    np.testing.assert_allclose((x**2).numpy(), FLOAT**2)
    np.testing.assert_allclose((2**x).numpy(), 2**FLOAT)
    np.testing.assert_array_equal((-x).numpy(), -FLOAT)
    np.testing.assert_array_equal(abs(x).numpy(), np.abs(FLOAT))
    with pytest.raises(TypeError):
        pow(x, 2, 3)


@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_E2_1_logic_on_booleans_and_bits_on_integers(kind):
    b, i = both(kind, [True, False]), both(kind, [6, 3])
    assert (b & [False, True]).numpy().tolist() == [False, False]
    assert (True | b).numpy().tolist() == [True, True]
    assert (b ^ b).numpy().tolist() == [False, False]
    assert (~b).numpy().tolist() == [False, True]
    assert (i & 2).numpy().tolist() == [2, 2]
    assert (1 | i).numpy().tolist() == [7, 3]
    assert (i ^ i).numpy().tolist() == [0, 0]
    assert (~i).numpy().tolist() == [-7, -4]


def test_E2_1_no_bits_on_floats():
    x = tf.constant([1.0])
    for call in (lambda: x & x, lambda: x | 1, lambda: 1 ^ x, lambda: ~x, lambda: ~tf.Variable(1.0)):
        with pytest.raises(InvalidArgument, match="Value for attr 'T' of float is not in the list of allowed values: int8"):
            call()
    with pytest.raises(InvalidArgument, match=r"cannot compute LogicalAnd as input #1\(zero-based\) was expected to be a bool"):
        tf.constant(True) & tf.constant(1)


@pytest.mark.parametrize("value", [tf.constant([2.0]), tf.Variable([2.0])])
def test_E2_1_absent_operators(value):
    """E2.1: unary +, shifts, divmod and round() do not exist."""
    for call in (lambda: +value, lambda: value << 1, lambda: value >> 1, lambda: divmod(value, value), lambda: round(value)):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("int32", "float64"), ("int64", "float64"), ("int8", "float32"), ("int16", "float32"), ("uint8", "float32")],
)
def test_E2_2_integers_divide_in_floats(dtype, result):
    x = tf.constant([7, 2], dtype)
    assert (x / x).dtype == result
    assert (1 / x).dtype == result
    np.testing.assert_allclose((x / 2).numpy(), [3.5, 1.0])


def test_E2_2_division_of_different_types():
    with pytest.raises(TypeError, match=r"`x` and `y` must have the same dtype, got tf.float32 != tf.int32\."):
        tf.constant(1.0) / tf.constant(1)
    with pytest.raises(TypeError, match=r"`x` and `y` must have the same dtype, got tf.int32 != tf.float32\."):
        tf.constant(1) / 2.5
    with pytest.raises(TypeError, match=r"Cannot convert 2\.5 to EagerTensor of dtype int32"):
        2.5 / tf.constant(1)
    with pytest.raises(TypeError, match=r"Invalid dtype tf\.bool in __truediv__"):
        tf.constant(True) / tf.constant(True)


def test_E2_2_floor_semantics():
    assert int(tf.constant(-7) // 2) == -4
    assert int(tf.constant(-7) % 3) == 2
    assert float(tf.constant(-7.0) // 2) == -4
    assert float(tf.constant(-7.0) % 3) == 2
    assert float(tf.constant(1.0) // 0.1) == 10  # the floor of the quotient; Python's 1.0 // 0.1 is 9


def test_E2_2_integer_poles():
    x = tf.constant([1, 2])
    for call in (lambda: x // 0, lambda: x % 0, lambda: x // tf.constant([1, 0]), lambda: elementwise.floor_divide(x, 0)):
        with pytest.raises(InvalidArgument, match="Integer division by zero"):
            call()
    for call in (lambda: x**-1, lambda: 2 ** tf.constant([1, -1]), lambda: elementwise.power(x, -1)):
        with pytest.raises(InvalidArgument, match="Integers to negative integer powers are not allowed"):
            call()
    assert (tf.constant([], tf.int32) // 0).shape == (0,)


def test_E2_2_float_poles():
    x = tf.constant([1.0, -1.0])
    np.testing.assert_array_equal((x / 0).numpy(), [np.inf, -np.inf])
    np.testing.assert_array_equal((x // 0.0).numpy(), [np.inf, -np.inf])
    assert np.isnan((x % 0.0).numpy()).all()


def test_E2_3_matmul_refuses_vectors_and_mismatches():
    matrix = tf.constant(np.ones((2, 3)))
    for call in (
        lambda: tf.constant([1.0]) @ tf.constant([1.0]),
        lambda: matrix @ tf.constant(np.ones(3)),
        lambda: np.ones(2) @ matrix,
    ):
        with pytest.raises(InvalidArgument, match=r"In\[0\] and In\[1\] ndims must be == 2: 1"):
            call()
    with pytest.raises(InvalidArgument, match=r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\]"):
        matrix @ matrix
    assert (matrix @ np.ones((3, 4))).shape == (2, 4)
    assert (np.ones((4, 2)) @ matrix).shape == (4, 3)


def test_E2_4_broadcasting():
    assert (tf.constant(np.ones((2, 1))) + tf.constant(np.ones(3))).shape == (2, 3)
    with pytest.raises(InvalidArgument, match=r"Incompatible shapes: \[3\] vs\. \[2\] \[Op:AddV2\]"):
        tf.constant([1.0, 2.0, 3.0]) + tf.constant([1.0, 2.0])


@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_E2_4_D5_4_equality_of_unbroadcastable_shapes(kind):
    x = both(kind, [1.0, 2.0, 3.0])
    for other in (tf.constant([1.0, 2.0]), [1.0, 2.0], np.ones(2)):
        for equal, unequal in ((x == other, x != other), (other == x, other != x)):
            assert equal.shape == ()
            assert not bool(equal)
            assert unequal.shape == ()
            assert bool(unequal)
    assert (x == tf.constant(np.zeros((0, 3), "f"))).shape == (0, 3)


def test_E2_4_D5_4_equality_with_none():
    x, v = tf.constant([1.0]), tf.Variable([1.0])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (None == x) is False  # noqa: E711, SIM300
    for call in (lambda: v == None, lambda: v != None, lambda: x < None):  # noqa: E711
        with pytest.raises(ValueError, match=r"Attempt to convert a value \(None\) with an unsupported type"):
            call()


def test_E2_5_tensors_are_immutable():
    x = before = tf.constant([1.0])
    x += 1
    x *= 3
    assert x.numpy() == [6.0]
    assert before.numpy() == [1.0]
    with pytest.raises(TypeError, match="object does not support item assignment"):
        before[0] = 2.0


@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_E2_6_D5_6_ndarray_on_the_left(kind):
    x = both(kind, np.array([1.0, 2.0], "f"))
    array = np.array([3.0, 4.0])
    for symbol, function in (ARITHMETIC | COMPARISONS).items():
        for left in (array, np.float64(3), np.array(3.0)):
            out = function(left, x)
            assert type(out) is tf.Tensor, symbol
            assert out.dtype == ("bool" if symbol in COMPARISONS else "float32")
            np.testing.assert_allclose(out.numpy(), function(np.asarray(left, "f"), np.array([1.0, 2.0], "f")))


DTYPES = {"half": tf.float16, "float": tf.float32, "double": tf.float64, "int32": tf.int32, "int64": tf.int64}


@pytest.mark.parametrize("word", DTYPES)
def test_E3_1_no_promotion(word):
    other = tf.int64 if word == "int32" else tf.int32
    x, y = tf.constant([1], DTYPES[word]), tf.constant([1], other)
    for symbol, label in {
        "+": "AddV2",
        "-": "Sub",
        "*": "Mul",
        "//": "FloorDiv",
        "%": "FloorMod",
        "==": "Equal",
        "<": "Less",
    }.items():
        with pytest.raises(InvalidArgument) as caught:
            (ARITHMETIC | COMPARISONS)[symbol](x, y)
        assert str(caught.value).startswith(
            f"cannot compute {label} as input #1(zero-based) was expected to be a {word} tensor "
            f"but is a {other.name} tensor [Op:{label}]"
        )


def test_E3_2_python_values_take_the_tensors_dtype():
    f, i = tf.constant([1.0]), tf.constant([1])
    assert (f + 1).dtype == "float32"
    assert (f + True).dtype == "float32"
    assert ([1] + f).dtype == "float32"  # noqa: RUF005
    assert (i + True).dtype == "int32"
    assert (2**f).dtype == "float32"
    with pytest.raises(InvalidArgument, match="cannot compute AddV2 as input #1"):
        i + 1.5
    with pytest.raises(InvalidArgument, match="cannot compute AddV2 as input #1"):
        i + 2.0
    with pytest.raises(InvalidArgument, match="was expected to be a float tensor but is a complex128 tensor"):
        f + 1j
    with pytest.raises(InvalidArgument, match="was expected to be a float tensor but is a string tensor"):
        f + "a"
    for call in (lambda: 1.5 + i, lambda: i - 1.5, lambda: i * 1.5, lambda: i // 1.5, lambda: i < 1.5, lambda: i == 1.5):
        with pytest.raises(TypeError, match=r"Cannot convert 1\.5 to EagerTensor of dtype int32"):
            call()


def test_E3_3_numpy_values_are_cast():
    f, i = tf.constant([1.0]), tf.constant([1])
    for out in (f + np.ones(1), np.ones(1) + f, f * np.float64(2), np.float64(2) * f, f + np.array([1])):
        assert out.dtype == "float32"
    for out in (i + np.ones(1, np.int64), np.ones(1, np.int64) + i, np.float64(2.5) * i, i * np.float64(2.5)):
        assert out.dtype == "int32"
    assert (np.float64(2.5) * i).numpy() == [2]


def test_unordered_types():
    for x in (tf.constant([1j]), tf.constant([True])):
        with pytest.raises(
            InvalidArgument, match=r"Value for attr 'T' of (complex128|bool) is not in the list of allowed values"
        ):
            x < x  # noqa: B015


def test_D5_1_max_returns_the_variable():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    assert max([v, w]) is w


def test_D5_2_in_place_operators():
    v = tf.Variable(2.0)
    with pytest.raises(RuntimeError, match=r"`variable \+= value` with `tf.Variable`s is not supported"):
        v += 1.0
    with pytest.raises(RuntimeError, match=r"`var \*= value`"):
        v *= 1.0
    v //= 1.5
    assert type(v) is tf.Tensor
    assert float(v) == 1.0


def test_D5_3_no_item_assignment():
    with pytest.raises(TypeError, match="'ResourceVariable' object does not support item assignment"):
        tf.Variable([1.0])[0] = 1.0


def test_D5_7_variable_and_tensor_of_other_dtype():
    with pytest.raises(InvalidArgument, match="cannot compute AddV2 as input #1"):
        tf.Variable(1.0) + tf.constant(1.0, tf.float64)


def test_E4_6_membership_uses_equality():
    x = tf.constant([1.0, 2.0])
    assert 1.0 in x
    assert 5.0 not in x
    with pytest.raises(ValueError, match="truth value of an array with more than one element is ambiguous"):
        x in [tf.constant([1.0, 2.0])]  # noqa: B015


# Properties: values are NumPy's, gradients are those of central differences

numbers = st.floats(0.5, 3.0, width=32)
shapes = npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)
SMOOTH = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
}  # fmt: skip


@given(shapes, st.data(), st.sampled_from(sorted(SMOOTH)))
def test_values_and_gradients(shapes, data, symbol):
    a, b = (data.draw(npst.arrays(np.float64, s, elements=numbers)) for s in shapes.input_shapes)
    function = SMOOTH[symbol]
    x, y = tf.constant(a), tf.constant(b)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = function(x, y)
    np.testing.assert_allclose(z.numpy(), function(a, b), rtol=1e-14)
    weights = np.cos(np.arange(z.numpy().size)).reshape(z.shape)
    got = tape.gradient(z, [x, y], output_gradients=tf.constant(weights))
    for i, g in enumerate(got):
        np.testing.assert_allclose(g.numpy(), slopes(function, [a, b], i, weights), rtol=1e-6, atol=1e-7)


def slopes(function, arrays, i, weights, step=1e-6):
    """Central differences of the weighted sum with respect to one argument."""
    out = np.zeros(arrays[i].shape)
    for place in np.ndindex(out.shape):
        values = []
        for sign in (step, -step):
            moved = [a.copy() for a in arrays]
            moved[i][place] += sign
            values.append(np.sum(weights * function(*moved)))
        out[place] = (values[0] - values[1]) / (2 * step)
    return out


@given(shapes, st.data(), st.sampled_from(sorted(COMPARISONS)))
def test_comparisons(shapes, data, symbol):
    a, b = (data.draw(npst.arrays(np.int32, s, elements=st.integers(-2, 2))) for s in shapes.input_shapes)
    np.testing.assert_array_equal(COMPARISONS[symbol](tf.constant(a), tf.constant(b)).numpy(), COMPARISONS[symbol](a, b))


@given(npst.arrays(np.int32, 4, elements=st.integers(-9, 9)), npst.arrays(np.int32, 4, elements=st.integers(1, 9)))
def test_integer_arithmetic(a, b):
    for function in (
        operator.add,
        operator.sub,
        operator.mul,
        operator.floordiv,
        operator.mod,
        operator.and_,
        operator.or_,
        operator.xor,
    ):
        out = function(tf.constant(a), tf.constant(b))
        assert out.dtype == "int32"
        np.testing.assert_array_equal(out.numpy(), function(a, b))
        np.testing.assert_array_equal(function(a, tf.constant(b)).numpy(), function(a, b))
