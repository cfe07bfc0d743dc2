"""Branches, loops, tensor arrays and host calls: what goldens cannot hold."""

from __future__ import annotations

import collections
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.ops import host
from gradtape.ops.control_flow import case, cond, foldl, foldr, map_fn, scan, switch_case, while_loop
from gradtape.ops.described import IndexedSlicesSpec, VariableSpec
from gradtape.ops.tensor_array import TensorArray, TensorArraySpec
from gradtape.testing import check_gradients
from gradtape.values.spec import TensorSpec, type_spec_from_value

pytestmark = pytest.mark.tiny

ROWS = st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=6)

# Branches


def test_only_the_chosen_branch_runs():
    ran = []
    cond(tf.constant(False), lambda: ran.append("true"), lambda: ran.append("false"))
    switch_case(tf.constant(1), [lambda: ran.append(0), lambda: ran.append(1)], default=lambda: ran.append("default"))
    case([(tf.constant(True), lambda: ran.append("first")), (tf.constant(True), lambda: ran.append("second"))])
    assert ran == ["false", 1, "first"]


def test_a_branch_that_did_not_run_gets_no_gradient():
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = cond(x > 0, lambda: x * x, lambda: y * y)
    assert [g if g is None else float(g) for g in tape.gradient(z, [x, y])] == [4.0, None]


# Loops


@given(ROWS)
def test_folds_are_python_loops(rows):
    def step(a, x):
        return a * 0.5 + x * x

    elems = tf.constant(rows, tf.float64)
    for fold, order in ((foldl, rows), (foldr, rows[::-1])):
        value = 1.5
        for x in order:
            value = step(value, x)
        assert float(fold(step, elems, initializer=tf.constant(1.5, tf.float64))) == pytest.approx(value)


@given(ROWS, st.booleans(), st.booleans())
def test_scan_ends_where_the_fold_ends(rows, reverse, with_initializer):
    def step(a, x):
        return tf.tanh(a) + x

    elems = tf.constant(rows)
    initializer = tf.constant(0.3) if with_initializer else None
    found = scan(step, elems, initializer=initializer, reverse=reverse)
    fold = foldr if reverse else foldl
    assert found.shape == (len(rows),)
    np.testing.assert_array_equal(found[0 if reverse else -1], fold(step, elems, initializer=initializer))


@given(st.integers(0, 5), st.integers(1, 3))
def test_map_fn_is_a_comprehension(rows, columns):
    x = np.arange(1.0, rows * columns + 1).reshape(rows, columns).astype(np.float32)
    found = map_fn(lambda row: {"sum": tf.reduce_sum(row), "twice": [row * 2]}, tf.constant(x),
                   fn_output_signature={"sum": tf.float32, "twice": [TensorSpec([columns])]})  # fmt: skip
    np.testing.assert_allclose(found["sum"], x.sum(1))
    np.testing.assert_array_equal(found["twice"][0], x * 2)


LOOPS = {
    "while_loop": lambda x: while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, tf.sin(y) * x), (0, x))[1],
    "maximum_iterations": lambda x: while_loop(lambda y: True, lambda y: [y * x], [x], maximum_iterations=2)[0],
    "map_fn": lambda x: map_fn(lambda t: tf.sin(t) * t, x),
    "map_fn of two": lambda x: map_fn(lambda t: t[0] * tf.exp(t[1]), (x, x * x), fn_output_signature=x.dtype),
    "scan": lambda x: scan(lambda a, t: a * t + tf.sin(t), x),
    "scan in reverse": lambda x: scan(lambda a, t: a * t + tf.sin(t), x, initializer=x[0], reverse=True),
    "foldl": lambda x: foldl(lambda a, t: tf.sin(a * t), x),
    "foldr": lambda x: foldr(lambda a, t: tf.sin(a * t), x),
    "cond": lambda x: cond(tf.reduce_sum(x) > 0, lambda: x**3, lambda: x),
    "TensorArray": lambda x: TensorArray(x.dtype, 2).write(0, x).write(1, x * x).stack(),
    "unstack, gather": lambda x: TensorArray(x.dtype, 3).unstack(tf.sin(x)).gather([2, 0, 2]),
    "split, concat": lambda x: TensorArray(x.dtype, 2).split(x * x, [1, 2]).concat(),
    "scatter": lambda x: TensorArray(x.dtype, 5).scatter([4, 0, 2], x * x).stack(),
    "py_function": lambda x: host.py_function(lambda t: tf.sin(t) * t, [x], x.dtype),
}


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_of_first_and_second_order(name):
    check_gradients(LOOPS[name], [np.array([0.7, 1.1, 0.4])], order=2)


@pytest.mark.parametrize("name", LOOPS)
def test_jacobians_in_one_batched_sweep(name):
    x = tf.Variable([0.7, 1.1, 0.4], dtype=tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        y = LOOPS[name](x + 0.0)
    batched, looped = (tape.jacobian(y, x, experimental_use_pfor=pfor) for pfor in (True, False))
    np.testing.assert_allclose(batched, looped, rtol=1e-12)


def test_walking_the_rows_is_one_record():
    """The gradient of the rows is put together once, not added into a whole array at each step."""
    x = tf.Variable(np.full(300, 1e-3, np.float32))
    with tf.GradientTape() as tape:
        total = scan(lambda a, t: a + t * t, x, initializer=0.0)[-1]
        names = [record[1].name for record in tape.records.values() if record is not None and len(record) > 1]
    assert names.count("unstack") == 1
    assert len(names) < 3 * 300
    np.testing.assert_allclose(tape.gradient(total, x), 2e-3, rtol=1e-5)


def test_loop_variables_may_be_tensor_arrays():
    squares = TensorArray(tf.float32, size=0, dynamic_size=True)

    def step(n, array):
        return n + 1, array.write(n, tf.cast(n * n, tf.float32))

    _, filled = while_loop(lambda n, array: n < 4, step, (tf.constant(0), squares))
    np.testing.assert_array_equal(filled.stack(), [0.0, 1.0, 4.0, 9.0])


def test_structures_keep_their_types():
    Pair = collections.namedtuple("Pair", "a b")
    x = tf.constant([1.0, 2.0])
    found = map_fn(lambda p: Pair(p.b, p.a), Pair(x, x * 2))
    assert type(found) is Pair
    np.testing.assert_array_equal(found.a, [2.0, 4.0])
    ends = scan(lambda a, p: Pair(a.a + p.a, a.b), Pair(x, x), initializer=Pair(0.0, 1.0))
    assert type(ends) is Pair


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: while_loop(lambda i, j: i < 1, lambda i, j: i + 1, (0, 1)), TypeError, "must return a list or tuple of 2"),
        (lambda: map_fn(lambda t: t, [1, 2]), ValueError, "Fix:      a list is a structure of tensors"),
        (lambda: foldl(operator.add, tf.zeros([0])), tf.errors.OutOfRangeError, "give an initializer"),
        (lambda: case([(True, lambda: 1)]), TypeError, "pred must be a Tensor, got: True"),
        (lambda: cond(True, lambda: 1), TypeError, "'false_fn' argument required"),
    ],
    ids=["while_loop", "map_fn", "foldl", "case", "cond"],
)
def test_refusals_say_what_to_do(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


# Tensor arrays, against a Python dict that does the same


WRITES = st.lists(st.tuples(st.integers(0, 5), st.floats(-9, 9, width=32)), max_size=12)


@given(WRITES)
def test_a_tensor_array_is_a_list_of_its_last_writes(writes):
    array, model = TensorArray(tf.float32, size=2, dynamic_size=True, element_shape=[]), {}
    for index, value in writes:
        array = array.write(index, value)
        model[index] = value
    size = max([2, *(index + 1 for index in model)])
    assert int(array.size()) == size
    expected = np.array([model.get(i, 0.0) for i in range(size)], np.float32)
    np.testing.assert_array_equal(array.stack(), expected)
    np.testing.assert_array_equal(array.gather(range(size)[::-1]), expected[::-1])
    np.testing.assert_array_equal([array.read(i) for i in range(size)], expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cleared after a previous read"):
        array.stack()


def test_elements_are_described_and_printed():
    array = TensorArray(tf.int32, 3, element_shape=[None])
    assert repr(array) == "<tf.TensorArray: size=3, dtype=int32, element_shape=(None,)>"
    assert type_spec_from_value(array) == TensorArraySpec([None], tf.int32)
    assert TensorArraySpec([None], tf.int32).is_compatible_with(array)
    assert not TensorArraySpec([2, 2], tf.int32).is_compatible_with(array)


# Host calls


def test_py_function_lets_gradients_flow_to_variables_it_reads():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = host.py_function(lambda x: x * v, [tf.constant(2.0)], tf.float32)
    assert float(tape.gradient(y, v)) == 2.0


def test_the_cause_of_an_error_is_kept():
    with pytest.raises(tf.errors.UnknownError, match="KeyError: 'q'") as caught:
        host.py_function(lambda x: {}["q"], [1.0], tf.float32)
    assert isinstance(caught.value.__cause__, KeyError)


def test_numpy_functions_get_copies():
    x = tf.constant([1.0, 2.0])

    def spoil(array):
        array[:] = 0
        return array

    np.testing.assert_array_equal(host.numpy_function(spoil, [x], tf.float32), [0.0, 0.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_host_calls_as_decorators():
    @host.py_function(Tout=tf.float32)
    def double(x):
        """Twice."""
        return x * 2

    @host.numpy_function(Tout=[tf.float32, tf.float32])
    def parts(x):
        return np.floor(x), x - np.floor(x)

    assert double.__doc__ == "Twice."
    assert float(double(1.5)) == 3.0
    assert [float(p) for p in parts(1.5)] == [1.0, 0.5]


# Descriptions


SHAPES = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=3))


@given(SHAPES, SHAPES)
def test_the_common_supertype_holds_both(first, second):
    a, b = TensorSpec(first), TensorSpec(second)
    both = a.most_specific_common_supertype([b])
    assert a.is_subtype_of(both)
    assert b.is_subtype_of(both)
    assert both == b.most_specific_common_supertype([a])
    assert not a.is_subtype_of(b) or both == b


def test_variables_and_slices_are_described():
    assert type_spec_from_value(tf.Variable([1.0], trainable=False)) == VariableSpec([1], tf.float32, False)
    slices = tf.IndexedSlices([[1.0, 2.0]], [3], [9, 2])
    assert IndexedSlicesSpec([9, 2], tf.float32, tf.int32, tf.int32).is_compatible_with(slices)
