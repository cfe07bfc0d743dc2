"""Ragged tensors against nested Python lists: reading, joining, reductions, broadcasting, derivatives, composites."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.ops import contract
from gradtape.testing import check_gradients

numbers = st.integers(-9, 9).map(float)
rows = st.lists(st.lists(numbers, max_size=4), min_size=1, max_size=5)
deep = st.lists(st.lists(st.lists(numbers, max_size=3), max_size=3), min_size=1, max_size=4)
ends = st.none() | st.integers(-6, 6)
slices = st.builds(slice, ends, ends, st.sampled_from([None, 1, 2, 3, -1, -2]))

OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "<": lambda a, b: a < b,
    "==": lambda a, b: a == b, "max": lambda a, b: tf.maximum(a, b), "where": lambda a, b: tf.where(a > b, a, b),
}  # fmt: skip


def ragged(pylist, depth=2):
    return tf.ragged.constant(pylist, dtype=tf.float64, ragged_rank=depth - 1)


def dense(pylist, filler):
    """The lists as an array, with a filler where rows are too short."""
    shape = [len(pylist)]
    level = pylist
    while any(isinstance(part, list) for part in level):
        shape.append(max((len(part) for part in level), default=0))
        level = list(itertools.chain(*level))
    out = np.full(shape, filler, float)
    for where in np.ndindex(*shape):
        part = pylist
        for i in where:
            part = part[i] if isinstance(part, list) and i < len(part) else None
        if part is not None and not isinstance(part, list):
            out[where] = part
    return out


# Structure


@given(rows)
def test_every_factory_makes_the_same(pylist):
    x = ragged(pylist)
    parts = x.values, x.row_splits
    assert x.to_list() == pylist
    for other in [
        tf.RaggedTensor.from_row_splits(*parts),
        tf.RaggedTensor.from_row_lengths(x.values, x.row_lengths()),
        tf.RaggedTensor.from_value_rowids(x.values, x.value_rowids(), x.nrows()),
        tf.RaggedTensor.from_row_starts(x.values, x.row_starts()),
        tf.RaggedTensor.from_row_limits(x.values, x.row_limits()),
        tf.RaggedTensor.from_tensor(x.to_tensor(), lengths=x.row_lengths()),
        tf.RaggedTensor.from_sparse(x.to_sparse()),
    ]:
        assert other.to_list() == pylist


@given(deep)
def test_nested_factories_and_dense_form(pylist):
    x = ragged(pylist, 3)
    assert x.to_list() == pylist
    flat = x.flat_values
    assert tf.RaggedTensor.from_nested_row_splits(flat, x.nested_row_splits).to_list() == pylist
    assert tf.RaggedTensor.from_nested_row_lengths(flat, x.nested_row_lengths()).to_list() == pylist
    array = x.to_tensor(default_value=-99.0).numpy()
    assert array.shape == tuple(x.bounding_shape().numpy())
    expected = dense(pylist, -99.0)
    np.testing.assert_array_equal(array[tuple(map(slice, expected.shape))].reshape(expected.shape), expected)
    np.testing.assert_array_equal(tf.sparse.to_dense(x.to_sparse(), -99.0), array)


@given(rows, slices, slices)
def test_slices_are_those_of_lists(pylist, outer, inner):
    x = ragged(pylist)
    assert x[outer].to_list() == pylist[outer]
    assert x[outer, inner].to_list() == [row[inner] for row in pylist[outer]]
    assert [row.numpy().tolist() for row in x] == pylist


@given(deep, slices, slices, slices)
def test_slices_of_deeper_lists(pylist, first, second, third):
    x = ragged(pylist, 3)
    assert x[first, second, third].to_list() == [[cell[third] for cell in row[second]] for row in pylist[first]]
    assert x[..., third].to_list() == [[cell[third] for cell in row] for row in pylist]
    assert x[0].to_list() == pylist[0]


@given(deep)
def test_merged_axes(pylist):
    x = ragged(pylist, 3)
    assert x.merge_dims(0, 1).to_list() == list(itertools.chain(*pylist))
    assert x.merge_dims(1, 2).to_list() == [list(itertools.chain(*row)) for row in pylist]


@given(rows, rows)
def test_joining_is_that_of_lists(first, second):
    x, y = ragged(first), ragged(second)
    assert tf.concat([x, y], 0).to_list() == first + second
    assert tf.stack([x, y]).to_list() == [first, second]
    n = min(len(first), len(second))
    beside = tf.concat([x[:n], y[:n]], 1)
    assert beside.to_list() == [a + b for a, b in zip(first, second)]
    assert tf.stack([x[:n], y[:n]], 1).to_list() == [[a, b] for a, b in zip(first, second)]
    assert tf.tile(x, [2, 3]).to_list() == [row * 3 for row in first * 2]
    assert tf.reverse(x, [0, 1]).to_list() == [row[::-1] for row in first[::-1]]


@given(rows, st.data())
def test_picking_rows_and_elements(pylist, data):
    x = ragged(pylist)
    which = data.draw(st.lists(st.integers(0, len(pylist) - 1), max_size=6))
    assert tf.gather(x, np.array(which, np.int64)).to_list() == [pylist[i] for i in which]
    mask = data.draw(st.tuples(*[st.lists(st.booleans(), min_size=len(row), max_size=len(row)) for row in pylist]))
    kept = tf.ragged.boolean_mask(x, tf.ragged.constant(list(mask), dtype=tf.bool, ragged_rank=1))
    assert kept.to_list() == [[value for value, keep in zip(row, m) if keep] for row, m in zip(pylist, mask)]


# Elementwise and reductions


@pytest.mark.parametrize("name", OPERATORS)
@given(rows, numbers)
def test_elementwise(name, pylist, number):
    function, x = OPERATORS[name], ragged(pylist)
    assert function(x, x * 2).to_list() == [[function(v, 2 * v) for v in row] for row in pylist]
    assert function(x, number).to_list() == [[function(v, number) for v in row] for row in pylist]


@given(rows, st.data())
def test_a_column_is_broadcast_over_the_rows(pylist, data):
    column = data.draw(st.lists(numbers, min_size=len(pylist), max_size=len(pylist)))
    expected = [[c - v for v in row] for row, c in zip(pylist, column)]
    assert (tf.constant(column, tf.float64)[:, None] - ragged(pylist)).to_list() == expected
    assert (np.array(column)[:, None] - ragged(pylist)).to_list() == expected


@given(deep, st.sampled_from(["sum", "max", "min", "prod"]), st.integers(0, 2))
def test_reductions_are_those_of_the_padded_array(pylist, name, axis):
    x = ragged(pylist, 3)
    assume(x.flat_values.shape[0])
    filler = {"sum": 0.0, "prod": 1.0, "max": np.finfo(float).min, "min": np.finfo(float).max}[name]
    ours = getattr(tf, f"reduce_{name}")(x, axis)
    padded = x.to_tensor(default_value=filler).numpy()
    theirs = getattr(padded, name)(axis)
    ours = ours.to_tensor(default_value=filler).numpy() if isinstance(ours, tf.RaggedTensor) else ours.numpy()
    np.testing.assert_allclose(ours, theirs)


@given(rows)
def test_means_and_variances(pylist):
    x = ragged([row or [0.0] for row in pylist])
    lists = x.to_list()
    np.testing.assert_allclose(tf.reduce_mean(x, 1), [np.mean(row) for row in lists])
    np.testing.assert_allclose(tf.math.reduce_variance(x, 1), [np.var(row) for row in lists], atol=1e-12)
    np.testing.assert_allclose(tf.reduce_logsumexp(x, 1), [np.log(np.exp(row).sum()) for row in lists])
    np.testing.assert_allclose(tf.reduce_sum(tf.nn.softmax(x), 1), np.ones(len(lists)))


def test_a_variance_keeps_its_digits_far_from_zero():
    x = tf.ragged.constant([[1e8, 1e8 + 1], [1e8 + 2.0]], dtype=tf.float64)
    np.testing.assert_allclose(tf.math.reduce_variance(x, 1), [0.25, 0.0])


def test_functions_of_tensors_take_ragged_ones_in_any_place():
    x = tf.ragged.constant([[0.5, 1.5], []])
    assert tf.where(True, x, -x).to_list() == x.to_list()
    assert tf.clip_by_value(t=x, clip_value_min=0.0, clip_value_max=1.0).to_list() == [[0.5, 1.0], []]
    assert tf.gather(tf.constant([3, 4]), tf.ragged.constant([[1], [0, 1]])).to_list() == [[4], [3, 4]]
    assert tf.divide(tf.constant(3.0), x).to_list() == [[6.0, 2.0], []]
    assert tf.reduce_sum(input_tensor=x, axis=1).numpy().tolist() == [2.0, 0.0]
    with pytest.raises(ValueError, match="does not take"):
        tf.argmax(x, 1)
    with pytest.raises(ValueError, match="does not take"):
        tf.linalg.cholesky(x)


# Derivatives

LENGTHS = [2, 0, 3, 1]


def rows_of(values):
    return tf.RaggedTensor.from_row_lengths(values, LENGTHS)


SMOOTH = {
    "to_tensor": lambda v: rows_of(v).to_tensor() ** 2,
    "cut": lambda v: rows_of(v).to_tensor(shape=[None, 2]) ** 2,
    "from_tensor": lambda v: tf.RaggedTensor.from_tensor(tf.reshape(v, [2, 3]), lengths=[1, 3]).flat_values ** 2,
    "sums": lambda v: tf.reduce_sum(rows_of(v) ** 2, 1),
    "columns": lambda v: tf.reduce_sum(rows_of(v) ** 2, 0),
    "everything": lambda v: tf.reduce_sum(rows_of(v) ** 2, keepdims=True),
    "products": lambda v: tf.reduce_prod(rows_of(v), 1),
    "softmax": lambda v: tf.nn.softmax(rows_of(v)).flat_values,
    "logsumexp": lambda v: tf.reduce_logsumexp(rows_of(v)[2:], 1),
    "variance": lambda v: tf.math.reduce_variance(rows_of(v)[2:], 1),
    "broadcast": lambda v: (rows_of(v) * tf.reshape(v[:4], [4, 1])).flat_values,
    "concat": lambda v: tf.concat([rows_of(v), rows_of(v * v)], 1).to_tensor(),
    "slices": lambda v: rows_of(v)[::-1, 1:].flat_values ** 2,
    "gather": lambda v: tf.gather(rows_of(v), [2, 0, 2]).flat_values ** 2,
    "cumsum": lambda v: tf.cumsum(rows_of(v) ** 2, 1).flat_values,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    check_gradients(SMOOTH[name], [np.linspace(0.5, 1.5, 6)])


@pytest.mark.parametrize("name", SMOOTH)
def test_jacobians_are_batched(name):
    x = tf.constant(np.linspace(0.5, 1.5, 6))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = SMOOTH[name](x)
    batched, looped = tape.jacobian(y, x), tape.jacobian(y, x, experimental_use_pfor=False)
    np.testing.assert_allclose(batched, looped, atol=1e-12)


# As a composite: facts A3.1 and A7.19


def test_the_gradient_of_a_ragged_source_is_ragged():
    x, other = tf.ragged.constant([[1.0, 2.0], [], [3.0]]), tf.ragged.constant([[1.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch({"x": x, "other": other})
        y = x.to_tensor() ** 2
        z = x * x
    found = tape.gradient(y, {"x": x, "other": other})
    assert found["x"].to_list() == [[2.0, 4.0], [], [6.0]]
    assert found["other"] is None
    assert tape.gradient(y, other, unconnected_gradients="zero").to_list() == [[0.0]]
    assert tape.gradient(z, [x])[0].to_list() == [[2.0, 4.0], [], [6.0]]
    assert tape.gradient(z, x, output_gradients=x).to_list() == [[2.0, 8.0], [], [18.0]]


def test_nest_expands_composites():
    x = tf.ragged.constant([[1, 2], [3]])
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 2])
    flat = tf.nest.flatten([x, {"a": sparse}, 5], expand_composites=True)
    assert len(flat) == 6
    packed = tf.nest.pack_sequence_as([x, {"a": sparse}, 5], flat, expand_composites=True)
    assert packed[0].to_list() == [[1, 2], [3]]
    assert packed[1]["a"].shape == [2, 2]
    assert packed[2] == 5
    doubled = tf.nest.map_structure(lambda t: t * 2 if t.dtype is tf.float32 else t, sparse, expand_composites=True)
    assert doubled.values.numpy().tolist() == [2.0]


def test_specs():
    x = tf.ragged.constant([[1.0], []])
    spec = tf.RaggedTensorSpec([None, None], tf.float32)
    assert spec.is_compatible_with(x)
    assert not spec.is_compatible_with(tf.ragged.constant([[1]]))
    assert tf.type_spec_from_value(x).is_subtype_of(spec)
    assert spec.ragged_rank == 1
    with pytest.raises(ValueError, match="ragged_rank"):
        tf.RaggedTensorSpec(None)
    with pytest.raises(ValueError, match="less than rank"):
        tf.RaggedTensorSpec([2, None], ragged_rank=2)
    assert tf.SparseTensorSpec([2, None], tf.float32).is_compatible_with(tf.SparseTensor([[0, 1]], [1.0], [2, 2]))


def test_printing(capsys):
    for value, text in [
        (tf.ragged.constant([[1.5, 2.0], []]), "[[1.500000, 2.000000], []]"),
        (tf.ragged.range([20, 3]), "[[0, 1, 2, ..., 17, 18, 19], [0, 1, 2]]"),
        (tf.ragged.constant([["a"], []]), "[['a'], []]"),
        (tf.ragged.constant([[True], []]), "[[true], []]"),
        (tf.SparseTensor([[0, 1]], [2.0], [3, 4]), "'SparseTensor(indices=[[0 1]], values=[2], shape=[3 4])'"),
    ]:
        tf.print(value)
        assert capsys.readouterr().err == text + "\n"


def test_inside_a_compiled_function():
    pytest.importorskip("jax")
    from gradtape.function import function

    def sums(values):
        x = tf.RaggedTensor.from_row_lengths(values, [2, 0, 1])
        return tf.reduce_sum(tf.nn.softmax(x) * x, 1), x.to_tensor(), tf.concat([x, x], 1).to_tensor()

    values = tf.constant([1.0, 2.0, 3.0])
    for compiled, eager in zip(function(sums)(values), sums(values)):
        np.testing.assert_allclose(compiled, eager, rtol=1e-6)


def test_rows_work_on_jax_arrays():
    jax = pytest.importorskip("jax")
    values = tf.convert_to_tensor(jax.numpy.arange(3.0))
    x = tf.RaggedTensor.from_row_lengths(values, [2, 1])
    assert tf.reduce_sum(x * 2, 1).numpy().tolist() == [2.0, 4.0]
    assert "shape=(2, None)" in repr(x)


@pytest.mark.parametrize("product", [tf.matmul, contract.adjoint_matmul, contract.matmul_adjoint])
def test_matrix_products_are_not_elementwise(product):
    x = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    with pytest.raises(ValueError, match="unsupported type"):
        product(x, x)
