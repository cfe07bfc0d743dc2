"""Sparse tensors against the dense ones they stand for: order, shape, sums, products, derivatives, composites."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.testing import check_gradients


@st.composite
def sparse_tensors(draw, shape=None, kind="float64"):
    """A SparseTensor with distinct places in any order, and its dense array."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)) if shape is None else list(shape)
    size = int(np.prod(shape))
    at = np.array(draw(st.lists(st.integers(0, size - 1), unique=True, max_size=6)), np.int64)
    values = np.array([draw(st.integers(-9, 9)) for _ in at], kind)
    array = np.zeros(size, kind)
    array[at] = values
    places = np.stack(np.unravel_index(at, shape), 1).reshape(-1, len(shape))
    return tf.SparseTensor(places, values, shape), array.reshape(shape)


def dense(x):
    return tf.sparse.to_dense(tf.sparse.reorder(x)).numpy()


def in_order(x):
    places = x.indices.numpy().tolist()
    return places == sorted(places)


# Order and shape


@given(sparse_tensors(), st.randoms(use_true_random=False))
def test_dense_and_back(pair, random):
    x, array = pair
    np.testing.assert_array_equal(dense(x), array)
    np.testing.assert_array_equal(dense(tf.sparse.from_dense(array)), array)
    np.testing.assert_array_equal(tf.sparse.to_dense(x, validate_indices=False), array)
    perm = list(range(array.ndim))
    random.shuffle(perm)
    turned = tf.sparse.transpose(x, perm)
    np.testing.assert_array_equal(dense(turned), array.transpose(perm))
    assert in_order(turned)
    np.testing.assert_array_equal(dense(tf.sparse.reshape(x, [-1, array.shape[0]])), array.reshape(-1, array.shape[0]))
    for axis in range(-array.ndim - 1, array.ndim + 1):
        np.testing.assert_array_equal(dense(tf.sparse.expand_dims(x, axis)), np.expand_dims(array, axis))


@given(sparse_tensors(), st.data())
def test_parts(pair, data):
    x, array = pair
    start = [data.draw(st.integers(0, n)) for n in array.shape]
    size = [data.draw(st.integers(0, n)) for n in array.shape]
    window = tuple(slice(s, s + n) for s, n in zip(start, size))
    np.testing.assert_array_equal(dense(tf.sparse.slice(x, start, size)), array[window])
    axis = data.draw(st.integers(0, array.ndim - 1))
    count = data.draw(st.integers(1, array.shape[axis]))
    parts = tf.sparse.split(x, count, axis)
    for ours, theirs in zip(parts, np.array_split(array, count, axis)):
        np.testing.assert_array_equal(dense(ours), theirs)
    np.testing.assert_array_equal(dense(tf.sparse.concat(axis, parts)), array)


@given(sparse_tensors([3, 4]), sparse_tensors([3, 4]))
def test_two_of_one_shape(first, second):
    (x, a), (y, b) = first, second
    np.testing.assert_array_equal(dense(tf.sparse.add(x, y)), a + b)
    np.testing.assert_array_equal(tf.sparse.add(x, b), a + b)
    np.testing.assert_array_equal(dense(tf.sparse.maximum(x, y)), np.maximum(a, b))
    np.testing.assert_array_equal(dense(tf.sparse.minimum(x, y)), np.minimum(a, b))
    np.testing.assert_array_equal(dense(x * b), a * b)
    np.testing.assert_array_equal(dense(x * b[0]), a * b[0])


@given(sparse_tensors(), st.data(), st.booleans())
def test_sums(pair, data, keepdims):
    x, array = pair
    axis = data.draw(st.none() | st.lists(st.integers(0, array.ndim - 1), min_size=1, unique=True))
    theirs = array.sum(None if axis is None else tuple(axis), keepdims=keepdims)
    np.testing.assert_array_equal(tf.sparse.reduce_sum(x, axis, keepdims), theirs)
    np.testing.assert_array_equal(dense(tf.sparse.reduce_sum(x, axis, keepdims, output_is_sparse=True)), theirs)


@given(sparse_tensors([3, 4]))
def test_rows_that_are_empty(pair):
    x, array = pair
    filled, empty = tf.sparse.fill_empty_rows(x, 100.0)
    present = {int(row) for row, _ in x.indices.numpy()}
    assert empty.numpy().tolist() == [row not in present for row in range(3)]
    expected = array.copy()
    expected[empty.numpy(), 0] = 100.0
    np.testing.assert_array_equal(dense(filled), expected)


@given(sparse_tensors([3, 4]))
def test_softmax_is_over_the_elements_that_are_there(pair):
    x, _ = pair
    out = tf.sparse.softmax(x)
    for row in set(x.indices.numpy()[:, 0].tolist()):
        own = x.indices.numpy()[:, 0] == row
        weights = np.exp(x.values.numpy()[own])
        np.testing.assert_allclose(out.values.numpy()[own], weights / weights.sum())


# Products


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
@given(data=st.data())
def test_products(adjoint_a, adjoint_b, data):
    x, a = data.draw(sparse_tensors([3, 4]))
    left = a.T if adjoint_a else a
    b = np.random.default_rng(0).normal(size=(left.shape[1], 2))
    theirs = left @ b
    ours = tf.sparse.sparse_dense_matmul(x, b.T.copy() if adjoint_b else b, adjoint_a, adjoint_b)
    np.testing.assert_allclose(ours, theirs)
    swapped = tf.sparse.sparse_dense_matmul(b if adjoint_b else b.T.copy(), x, adjoint_b, not adjoint_a)
    np.testing.assert_allclose(swapped, theirs.T)


def test_the_complex_product_is_conjugate():
    values = np.array([1 + 2j, 3 - 1j])
    x = tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2])
    a, b = np.array([[0, values[0]], [values[1], 0]]), np.array([[1j, 2.0], [3.0, 1 - 1j]])
    np.testing.assert_allclose(tf.sparse.sparse_dense_matmul(x, b, adjoint_a=True), a.conj().T @ b)
    np.testing.assert_allclose(tf.sparse.sparse_dense_matmul(x, b, adjoint_b=True), a @ b.conj().T)
    np.testing.assert_allclose(tf.sparse.sparse_dense_matmul(b, x), b @ a)


# Derivatives

PLACES = [[2, 0], [0, 1], [0, 3], [2, 2]]


def matrix(values):
    return tf.SparseTensor(PLACES, values, [3, 4])


SMOOTH = {
    "matmul": lambda v, b: tf.sparse.sparse_dense_matmul(matrix(v), b),
    "adjoint": lambda v, b: tf.sparse.sparse_dense_matmul(matrix(v), b[:3], adjoint_a=True),
    "dense first": lambda v, b: tf.sparse.sparse_dense_matmul(b, matrix(v), adjoint_a=True, adjoint_b=True),
    "to_dense": lambda v, b: tf.sparse.to_dense(tf.sparse.reorder(matrix(v))) ** 2,
    "sums": lambda v, b: tf.sparse.reduce_sum(matrix(v), 1) ** 2,
    "add": lambda v, b: tf.sparse.add(matrix(v), tf.SparseTensor([[0, 1]], v[:1] ** 2, [3, 4])).values ** 2,
    "softmax": lambda v, b: tf.sparse.softmax(matrix(v)).values,
    "times dense": lambda v, b: (matrix(v) * b[:, 0]).values,
    "segments": lambda v, b: tf.sparse.segment_mean(b, [0, 2, 3], [0, 0, 1]) ** 2,
    "lookup": lambda v, b: tf.nn.embedding_lookup_sparse(
        b, tf.SparseTensor(PLACES, [0, 1, 3, 3], [3, 4]), matrix(v), combiner="mean"
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    check_gradients(SMOOTH[name], [np.linspace(0.5, 1.5, 4), np.random.default_rng(0).normal(size=(4, 2))])


def test_the_jacobian_of_a_product_is_batched():
    values, b = tf.constant(np.linspace(0.5, 1.5, 4)), np.random.default_rng(0).normal(size=(4, 2))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(values)
        y = tf.sparse.sparse_dense_matmul(matrix(values), b)
    batched, looped = tape.jacobian(y, values), tape.jacobian(y, values, experimental_use_pfor=False)
    np.testing.assert_allclose(batched, looped)


# As a composite


def test_a_sparse_source_has_a_sparse_gradient():
    x = matrix(tf.constant([1.0, 2.0, 3.0, 4.0]))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sparse.reduce_sum(x, 1) ** 2
    found = tape.gradient(y, x)
    assert found.values.numpy().tolist() == [10.0, 10.0, 10.0, 10.0]
    assert found.indices.numpy().tolist() == PLACES


def test_functions_that_keep_zero_take_sparse_tensors():
    x = matrix([-1.0, 4.0, 9.0, 16.0])
    assert tf.abs(x).values.numpy().tolist() == [1.0, 4.0, 9.0, 16.0]
    assert tf.cast(x, tf.int32).dtype is tf.int32
    assert tf.nn.relu(x).values.numpy().tolist() == [0.0, 4.0, 9.0, 16.0]
    assert tf.concat([x, x], 0).shape == [6, 4]
    for refused in (tf.exp, tf.reduce_sum, tf.transpose):
        with pytest.raises(ValueError, match="to_dense"):
            refused(x)


def test_places_outside_the_shape_are_refused():
    x = tf.SparseTensor([[0, 9]], [1.0], [3, 4])
    for function in (tf.sparse.to_dense, lambda t: tf.sparse.sparse_dense_matmul(t, tf.ones([4, 1]))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            function(x)


def test_inside_a_compiled_function():
    pytest.importorskip("jax")
    from gradtape.function import function

    def product(values, b):
        x = matrix(values)
        return tf.sparse.sparse_dense_matmul(x, b), tf.sparse.reduce_sum(x, 1), tf.sparse.to_dense(tf.sparse.reorder(x))

    values, b = tf.constant([1.0, 2.0, 3.0, 4.0]), tf.ones([4, 2])
    for compiled, eager in zip(function(product)(values, b), product(values, b)):
        np.testing.assert_allclose(compiled, eager)
