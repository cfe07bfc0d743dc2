"""Indexing by Python syntax, and the ndarray methods of Tensor: spec D4.3, D5.5, E4.3, E5."""

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf

pytestmark = pytest.mark.tiny

InvalidArgument = tf.errors.InvalidArgumentError
ARRAY = np.arange(24.0).reshape(2, 3, 4)


@pytest.fixture(params=["tensor", "variable"])
def x(request):
    return tf.constant(ARRAY) if request.param == "tensor" else tf.Variable(ARRAY)


INDICES = [
    0, -1, (1, 2, 3), (0, -1), slice(None), slice(0, 1), (slice(None), slice(1, None)), slice(None, None, -1),
    (slice(None), slice(2, 0, -1)), (Ellipsis, 0), (0, Ellipsis, 1), Ellipsis, None, (slice(None), None, 0),
    (None, Ellipsis, None), (), (slice(-100, 100), slice(5, None)), (0, slice(None, None, 2), slice(3, None, -2)),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_E5_1_basic_indexing(x, index):
    out = x[index]
    assert type(out) is tf.Tensor
    assert out.dtype == "float64"
    np.testing.assert_array_equal(out.numpy(), ARRAY[index])


def test_E5_1_every_kind_of_integer(x):
    for one in (1, np.int64(1), np.uint8(1), np.array(1), tf.constant(1), tf.constant(1, tf.int64), tf.Variable(1)):
        np.testing.assert_array_equal(x[one].numpy(), ARRAY[1])
        np.testing.assert_array_equal(x[0, one:].numpy(), ARRAY[0, 1:])
        np.testing.assert_array_equal(x[:, one:3:one].numpy(), ARRAY[:, 1:3])
    np.testing.assert_array_equal(x[-tf.constant(1)].numpy(), ARRAY[-1])


def test_E5_1_boolean_mask(x):
    rows = tf.constant([False, True])
    np.testing.assert_array_equal(x[rows].numpy(), ARRAY[[False, True]])
    np.testing.assert_array_equal(x[np.array([False, True])].numpy(), ARRAY[[False, True]])
    blocks = np.array([[True, False, True], [False, False, True]])
    np.testing.assert_array_equal(x[tf.constant(blocks)].numpy(), ARRAY[blocks])
    np.testing.assert_array_equal(x[x > 5].numpy(), ARRAY[ARRAY > 5])
    assert x[tf.constant([False, False])].shape == (0, 3, 4)
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(3,\) are incompatible"):
        x[tf.constant([True, False, True])]
    for scalar in (True, tf.constant(True), np.array(True)):
        with pytest.raises(ValueError, match="mask cannot be scalar"):
            x[scalar]


@pytest.mark.parametrize(
    "index", [1.0, "a", np.array([0, 1]), np.float32(1), slice(1.5, None), slice("a", None), (slice(None), [0, 1]), object(),
              np.True_],
    ids=lambda index: type(index).__name__,
)  # fmt: skip
def test_E5_2_not_an_index(x, index):
    with pytest.raises(TypeError, match=r"Only integers, slices \(`:`\), ellipsis \(`...`\), tf.newaxis \(`None`\) and scalar"):
        x[index]


def test_E5_2_not_an_index_tensors(x):
    for index in (tf.constant([0, 1]), tf.constant(1.0), tf.constant(1, tf.int8), tf.Variable([1])):
        with pytest.raises(TypeError, match="Only integers, slices"):
            x[index]
        with pytest.raises(TypeError, match="Only integers, slices"):
            x[index:]


def test_E5_1_strings():
    words = tf.constant([["a", "b"], ["c", "d"]])
    assert words[1, 0].numpy() == b"c"
    assert words[1, 0].dtype == "string"
    assert words[:, 1].numpy().tolist() == [b"b", b"d"]


def test_E5_2_a_list_is_a_tuple(x):
    np.testing.assert_array_equal(x[[0, 1]].numpy(), ARRAY[0, 1])
    with pytest.raises(InvalidArgument, match="Index out of range using input dim 1; input has only 1 dims"):
        tf.constant([1.0, 2.0])[[0, 1]]


def test_E5_3_out_of_range(x):
    for index, text in {
        5: "slice index 5 of dimension 0",
        (0, 3): "slice index 3 of dimension 1",
        (Ellipsis, -5): "slice index -5 of dimension 2",
    }.items():
        with pytest.raises(InvalidArgument, match=f"{text} out of bounds"):
            x[index]
    with pytest.raises(InvalidArgument, match="Index out of range using input dim 3; input has only 3 dims"):
        x[0, 0, 0, 0]
    with pytest.raises(InvalidArgument, match=r"strides\[0\] must be non-zero"):
        x[::0]
    with pytest.raises(InvalidArgument, match="Multiple ellipses"):
        x[..., ...]
    with pytest.raises(InvalidArgument, match="Attempting to slice scalar input"):
        tf.constant(1.0)[0]
    assert x[7:].shape == (0, 3, 4)
    assert tf.constant(1.0)[None].shape == (1,)
    assert tf.constant(1.0)[...].shape == ()


def test_A7_34_slices_have_dense_gradients():
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        a, b, c = v[1] ** 2, v[1:] * 2, v[tf.constant([True, False, True])] * 3
    for target, expected in ((a, [0, 4, 0]), (b, [0, 2, 2]), (c, [3, 0, 3])):
        gradient = tape.gradient(target, v)
        assert isinstance(gradient, tf.Tensor)
        np.testing.assert_array_equal(gradient.numpy(), expected)


def test_E4_3_D5_5_iteration(x):
    rows = list(x)
    assert [type(r) for r in rows] == [tf.Tensor] * 2
    np.testing.assert_array_equal(rows[1].numpy(), ARRAY[1])
    for scalar in (tf.constant(1.0), tf.Variable(1.0)):
        with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
            list(scalar)


def test_iteration_is_recorded():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        a, b = v
        y = a * b
    np.testing.assert_array_equal(tape.gradient(y, v).numpy(), [2, 1])


# Slice assignment


@pytest.mark.parametrize(
    ("index", "value"),
    [(0, 1.0), (0, [1.0, 2.0, 3.0]), ((slice(None), 1), 9.0), ((1, 0), 5.0), (Ellipsis, 0.0),
     (slice(None, None, -1), np.ones((2, 3))),
     (0, [[1.0, 2.0, 3.0]]), (slice(0, 0), 1.0), (None, 2.0), ((slice(None), slice(None, None, 2)), [[1.0, 2.0]])],
)  # fmt: skip
def test_D4_3_slice_assignment(index, value):
    start = np.arange(6.0).reshape(2, 3)
    v = tf.Variable(start)
    before = v.value()
    out = v[index].assign(value)
    expected = start.copy()
    expected[index] = np.asarray(value)
    np.testing.assert_array_equal(v.numpy(), expected)
    np.testing.assert_array_equal(out.numpy(), expected)
    assert isinstance(out, tf.Variable)
    np.testing.assert_array_equal(before.numpy(), start)


def test_D4_3_slice_assignment_refuses():
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(InvalidArgument, match=r"Cannot broadcast input shape \[3\] into final shape \[2\]"):
        v[:].assign([1.0, 2.0, 3.0])
    with pytest.raises(InvalidArgument, match="slice index 5 of dimension 0 out of bounds"):
        v[5].assign(1.0)
    with pytest.raises(ValueError, match="Tensor conversion requested dtype float32 for Tensor with dtype float64"):
        v[0].assign(tf.constant(1.0, tf.float64))
    with pytest.raises(AttributeError):
        v[0].assign_add(1.0)
    with pytest.raises(AttributeError, match="no attribute 'assign'"):
        v[tf.constant([True, False])].assign(1.0)
    assert not hasattr(tf.constant(1.0), "assign")
    assert v.numpy().tolist() == [1.0, 2.0]


# Properties

arrays = npst.arrays(np.float64, npst.array_shapes(min_dims=0, max_dims=4, max_side=3, min_side=0), elements=st.floats(-3, 3))


@given(arrays, st.data())
def test_indexing_is_numpys(array, data):
    index = data.draw(npst.basic_indices(array.shape, allow_newaxis=True, max_dims=6))
    for value in (tf.constant(array), tf.Variable(array)):
        np.testing.assert_array_equal(value[index].numpy(), array[index])


@given(arrays, st.data())
def test_gradient_of_indexing(array, data):
    """The gradient of Σ wᵢ x[index]ᵢ is w at the index and 0 elsewhere."""
    index = data.draw(npst.basic_indices(array.shape, allow_newaxis=True, max_dims=6))
    x = tf.constant(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x[index]
    weights = np.cos(np.arange(y.numpy().size)).reshape(y.shape)
    expected = np.zeros_like(array)
    expected[index] = weights
    np.testing.assert_array_equal(tape.gradient(y, x, output_gradients=tf.constant(weights)).numpy(), expected)


@given(arrays, st.data())
def test_masks_are_numpys(array, data):
    if not array.ndim:
        return
    mask = data.draw(npst.arrays(bool, array.shape[: data.draw(st.integers(1, array.ndim))]))
    x = tf.constant(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x[tf.constant(mask)]
    np.testing.assert_array_equal(y.numpy(), array[mask])
    expected = np.zeros_like(array)
    expected[mask] = 1
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), expected)


# Methods of ndarray


METHODS = {
    "sum": [(), (0,), (), {"axis": 1, "keepdims": True}], "mean": [(), (1,), {"axis": (0, 1)}], "prod": [(), (0,)],
    "max": [(), (1,)], "min": [(), {"axis": 0, "keepdims": True}], "std": [(), {"axis": 0, "ddof": 1}], "var": [(), (1,)],
    "cumsum": [(), (1,)], "cumprod": [(0,)], "clip": [(-1.0, 1.0), (None, 0.5)], "reshape": [(3, 2), ((6,),), (-1,)],
    "ravel": [()], "flatten": [()], "transpose": [(), (1, 0), ((1, 0),)], "squeeze": [()], "swapaxes": [(0, 1)],
    "take": [([0, -1, 0],), ([1], 1)], "repeat": [(2,), (2, 0)], "dot": [(np.ones((3, 2)),), (np.ones(3),)], "trace": [()],
    "diagonal": [()], "copy": [()], "conj": [()],
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_ndarray_are_recorded(name):
    array = np.array([[0.5, -1.5, 2.0], [1.25, 0.75, -0.25]])
    for arguments in METHODS[name]:
        args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, {})
        x = tf.constant(array)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(x, name)(*args, **kwargs)
        assert type(y) is tf.Tensor
        np.testing.assert_allclose(y.numpy(), getattr(array, name)(*args, **kwargs))
        gradient = tape.gradient(y, x, unconnected_gradients="none")
        assert isinstance(gradient, tf.Tensor)
        assert gradient.shape == x.shape


def test_methods_that_are_not_differentiable():
    array = np.array([[0.5, -1.5, 2.0], [1.25, 0.75, -0.25]])
    x = tf.constant(array)
    for name in ("any", "all", "argmax", "argmin", "argsort", "round"):
        np.testing.assert_array_equal(getattr(x, name)().numpy(), getattr(array, name)())
    assert x.argmax(axis=1).numpy().tolist() == [2, 0]


def test_methods_on_integers_are_numpys():
    array = np.array([[1, 2], [3, 4]], np.int32)
    x = tf.constant(array)
    for name in ("sum", "mean", "std", "cumsum", "max", "prod"):
        out, expected = getattr(x, name)(), getattr(array, name)()
        np.testing.assert_array_equal(out.numpy(), expected)
        assert out.dtype == expected.dtype


def test_properties_of_ndarray():
    x = tf.constant(ARRAY)
    assert (x.size, x.itemsize, x.nbytes, x.ndim) == (24, 8, 192, 3)
    np.testing.assert_array_equal(x.T.numpy(), ARRAY.T)
    np.testing.assert_array_equal(x.mT.numpy(), ARRAY.mT)
    assert x.tolist() == ARRAY.tolist()
    assert tf.constant(2.5).item() == 2.5
    assert x.item(5) == 5.0
    assert x.astype(np.float32).dtype == "float32"
    assert x.astype(float).dtype == "float64"
    assert x.astype(tf.int32).dtype == "int32"
    z = tf.constant([1 + 2j])
    assert z.real.numpy() == [1]
    assert z.imag.numpy() == [2]
    assert z.conj().numpy() == [1 - 2j]
    assert x.real is x
    assert not x.imag.numpy().any()
    with pytest.raises(TypeError, match="immutable"):
        x.sort()


def test_D2_3_variables_have_no_array_methods():
    v = tf.Variable([1.0])
    for name in ("T", "size", "astype", "reshape", "sum", "item"):
        assert not hasattr(v, name)
