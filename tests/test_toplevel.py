"""Functions under ``tf``: what goldens cannot hold."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape
from gradtape import bitwise, dtypes, linalg, math, toplevel
from gradtape.testing import check_gradients

pytestmark = pytest.mark.tiny

tf = SimpleNamespace(**{name: getattr(gradtape, name) for name in dir(gradtape) if not name.startswith("_")})
for _module, _names in (
    (toplevel, toplevel.__all__),
    (math, toplevel.TOPLEVEL_FROM_MATH),
    (linalg, toplevel.TOPLEVEL_FROM_LINALG),
    (dtypes, toplevel.TOPLEVEL_FROM_DTYPES),
):
    for _name in _names:
        setattr(tf, _name, getattr(_module, _name))
tf.math, tf.linalg, tf.dtypes = math, linalg, dtypes

# Names


def test_every_name_in_all_is_there():
    for module in (toplevel, math, linalg, dtypes):
        assert sorted(module.__all__) == sorted(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


def test_names_that_stand_under_tf_as_well_exist_in_their_modules():
    assert set(toplevel.TOPLEVEL_FROM_MATH) <= set(math.__all__)
    assert set(toplevel.TOPLEVEL_FROM_LINALG) <= set(linalg.__all__)
    assert set(toplevel.TOPLEVEL_FROM_DTYPES) <= set(dtypes.__all__)


# Against NumPy


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda x: tf.reshape(x, [4, -1]), lambda x: x.reshape(4, -1)),
        (lambda x: tf.transpose(x, [2, 0, 1]), lambda x: x.transpose(2, 0, 1)),
        (lambda x: tf.expand_dims(x, -2), lambda x: np.expand_dims(x, -2)),
        (lambda x: tf.concat([x, x], -1), lambda x: np.concatenate([x, x], -1)),
        (lambda x: tf.stack([x, x], -1), lambda x: np.stack([x, x], -1)),
        (lambda x: tf.tile(x, [2, 1, 2]), lambda x: np.tile(x, [2, 1, 2])),
        (lambda x: tf.pad(x, [[1, 0], [0, 2], [0, 0]]), lambda x: np.pad(x, [[1, 0], [0, 2], [0, 0]])),
        (lambda x: tf.pad(x, [[1, 1], [2, 0], [0, 3]], "REFLECT"), lambda x: np.pad(x, [[1, 1], [2, 0], [0, 3]], "reflect")),
        (lambda x: tf.pad(x, [[2, 1], [0, 0], [0, 3]], "SYMMETRIC"),
         lambda x: np.pad(x, ((2, 1), (0, 0), (0, 3)), "symmetric")),
        (lambda x: tf.reverse(x, [0, -1]), lambda x: np.flip(x, (0, 2))),
        (lambda x: tf.roll(x, [1, -2], [0, 2]), lambda x: np.roll(x, [1, -2], [0, 2])),
        (lambda x: tf.repeat(x, [0, 2, 1], axis=1), lambda x: np.repeat(x, [0, 2, 1], axis=1)),
        (lambda x: tf.gather(x, [[2, 0], [1, 1]], axis=1), lambda x: np.take(x, [[2, 0], [1, 1]], axis=1)),
        (lambda x: tf.slice(x, [0, 1, 0], [-1, 2, 1]), lambda x: x[:, 1:3, :1]),
        (lambda x: tf.boolean_mask(x, [True, False, True], axis=1), lambda x: x[:, [True, False, True]]),
        (lambda x: tf.gather_nd(x, [[0, 1], [1, 2]]), lambda x: x[[0, 1], [1, 2]]),
        (lambda x: tf.where(tf.equal(x, x), x, -x), lambda x: x),
    ],
)
def test_moving_elements(ours, theirs, dtype):
    values = np.random.default_rng(0).integers(-9, 9, (2, 3, 4)).astype(dtype)
    out = ours(tf.constant(values))
    assert out.dtype.name == dtype
    np.testing.assert_array_equal(out.numpy(), theirs(values))


def test_a_split_is_undone_by_concat_and_an_unstack_by_stack():
    x = tf.constant(np.arange(24.0).reshape(2, 3, 4))
    np.testing.assert_array_equal(tf.concat(tf.split(x, [1, -1, 2], axis=-1), -1).numpy(), x.numpy())
    np.testing.assert_array_equal(tf.stack(tf.unstack(x, axis=-2), -2).numpy(), x.numpy())


def test_shapes_and_axes_may_be_tensors():
    x = tf.constant(np.arange(6.0).reshape(2, 3))
    assert tf.reshape(x, tf.constant([3, 2])).shape == (3, 2)
    assert tf.reshape(x, [tf.shape(x)[0], -1]).shape == (2, 3)
    assert tf.zeros(tf.shape(x)).shape == (2, 3)
    assert tf.transpose(x, tf.constant([1, 0])).shape == (3, 2)
    assert tf.concat([x, x], tf.constant(1)).shape == (2, 6)
    assert tf.range(tf.size(x)).shape == (6,)


def test_variables_are_read():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert tf.reshape(v, [-1]).shape == (4,)
    assert tf.shape(v).numpy().tolist() == [2, 2]
    assert tf.stack([v, v]).shape == (2, 2, 2)
    assert tf.zeros_like(v).shape == (2, 2)


def test_gather_of_a_variable_has_sparse_gradients():
    """A7.32"""
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        rows = tf.gather(v, [1, 1])
    grad = tape.gradient(rows, v)
    assert isinstance(grad, tf.IndexedSlices)
    assert grad.indices.numpy().tolist() == [1, 1]


def test_unused_parts_of_a_split_have_zero_gradients():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, middle, _ = tf.split(x * x, 3)
    assert tape.gradient(middle, x).numpy().tolist() == [0.0, 4.0, 0.0]


def test_of_several_updates_to_one_place_the_last_counts():
    base = tf.constant([0.0, 0.0])
    updates = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(updates)
        out = tf.tensor_scatter_nd_update(base, [[1], [0], [1]], updates)
    assert out.numpy().tolist() == [2.0, 3.0]
    assert tape.gradient(out, updates).numpy().tolist() == [0.0, 1.0, 1.0]


def test_clip_by_global_norm_keeps_indexed_slices_and_none():
    rows = tf.IndexedSlices(tf.constant([[3.0], [4.0]]), tf.constant([0, 2]), tf.constant([3, 1]))
    (first, second, third), norm = tf.clip_by_global_norm([rows, None, tf.constant([12.0])], 1.3)
    assert isinstance(first, tf.IndexedSlices)
    assert second is None
    assert float(norm) == 13.0
    np.testing.assert_allclose(first.values.numpy(), [[0.3], [0.4]], rtol=1e-6)
    np.testing.assert_allclose(third.numpy(), [1.2], rtol=1e-6)


def test_one_hot_of_indices_out_of_range_is_all_off():
    assert tf.one_hot([-1, 0, 2], 2).numpy().tolist() == [[0, 0], [1, 0], [0, 0]]


def test_is_tensor():
    assert tf.is_tensor(tf.constant(1))
    assert tf.is_tensor(tf.Variable(1.0))
    assert not tf.is_tensor(np.ones(2))


X, Y = np.random.default_rng(1).normal(size=(3, 4)), np.random.default_rng(2).normal(size=(2, 4))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x: tf.unstack(x * x, axis=1), [X]),
        (lambda x: tf.split(x * x, [1, 3], axis=1), [X]),
        (lambda x: tf.pad(x * x, [[1, 2], [3, 0]], "REFLECT"), [X]),
        (lambda x: tf.pad(x * x, [[1, 2], [3, 0]], "SYMMETRIC"), [X]),
        (lambda x: tf.clip_by_value(x * x, 0.2, 0.9), [X]),
        (lambda x: tf.clip_by_norm(x, 0.2, 1), [X]),
        (lambda x, y: tf.clip_by_global_norm([x, y], 0.2)[0], [X, Y]),
        (lambda x, y: tf.tensor_scatter_nd_update(x * x, [[0], [2]], y * y), [X, Y]),
        (lambda x, y: tf.tensor_scatter_nd_max(x, [[0], [2]], y * y), [X, Y]),
        (lambda x: tf.sort(x, direction="DESCENDING"), [X]),
        (lambda x: tf.linspace(x[0], x[1], 5, axis=-1), [X]),
        (lambda x: tf.meshgrid(x[0], x[1]), [X]),
        (lambda x: tf.gather_nd(x, [[1], [2], [3]], batch_dims=1), [X]),
        (lambda x: tf.boolean_mask(x, X > 0), [X]),
        (lambda x, y: tf.dynamic_stitch([[0, 2, 4], [1, 3]], [x, y]), [X, Y]),
        (lambda x: tf.reverse_sequence(x, [1, 2, 4], 1, 0), [X]),
        (lambda x: tf.fill([2, 3], x[0, 0]), [X]),
    ],
)
def test_gradients(function, arguments):
    check_gradients(function, arguments)


KINDS = st.sampled_from(["float16", "float32", "float64", "int16", "uint8", "int64", "complex64"])


@settings(max_examples=50, deadline=None)
@given(KINDS, KINDS, st.integers(0, 3))
def test_bitcast_is_undone_by_bitcast(first, second, rows):
    x = np.arange(rows * 8).reshape(rows, 8).astype(first)
    wider = np.dtype(second).itemsize // np.dtype(first).itemsize
    x = x[:, :wider] if wider > 1 else x
    there = toplevel.bitcast(x, second)
    assert there.numpy().tobytes() == x.tobytes()
    back = toplevel.bitcast(there, first)
    assert back.dtype.name == first
    np.testing.assert_array_equal(back.numpy(), x)
    assert not np.shares_memory(there._array, x)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-2**31, 2**31 - 1), min_size=1, max_size=5), st.integers(-5, 40))
def test_shifts_are_those_of_whole_numbers_within_the_width(values, count):
    count_within = min(max(count, 0), 31)
    x = tf.constant(values, tf.int32)
    assert bitwise.right_shift(x, count).numpy().tolist() == [v >> count_within for v in values]
    kept = [((v << count_within) + 2**31) % 2**32 - 2**31 for v in values]
    assert bitwise.left_shift(x, count).numpy().tolist() == kept


def test_paddings_for_blocks_are_the_least():
    paddings, crops = toplevel.required_space_to_batch_paddings([5, 7, 6], [2, 3, 6], [[1, 0], [0, 0], [0, 0]])
    assert paddings.numpy().tolist() == [[1, 0], [0, 2], [0, 0]]
    assert crops.numpy().tolist() == [[0, 0], [0, 2], [0, 0]]


@pytest.mark.parametrize(
    ("indices", "at"), [([[0, 1], [-3]], 0), ([[0, -1], [1]], 1), ([[[0], [-2]], [[1], [2]]], 1)], ids=str
)
def test_dynamic_stitch_counts_positions_from_0(indices, at):
    data = [tf.ones_like(tf.constant(part), tf.float32) for part in indices]
    for stitch in (tf.dynamic_stitch, tf.function(tf.dynamic_stitch)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"indices\[{at}\] is out of range"):
            stitch(indices, data)


def test_reverse_sequence_takes_no_negative_lengths():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"seq_lens\(1\) < 0"):
        tf.reverse_sequence(tf.ones([2, 3]), [1, -2], seq_axis=1)
