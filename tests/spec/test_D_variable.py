"""Part D: what is beside the goldens: failures keep the value, aliases never leak, names are there."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf

pytestmark = pytest.mark.tiny

PUBLIC = [
    "aggregation",
    "assign",
    "assign_add",
    "assign_sub",
    "batch_scatter_update",
    "constraint",
    "count_up_to",
    "device",
    "dtype",
    "eval",
    "experimental_ref",
    "gather_nd",
    "get_shape",
    "handle",
    "initialized_value",
    "initializer",
    "is_initialized",
    "load",
    "name",
    "numpy",
    "read_value",
    "read_value_no_copy",
    "ref",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd_add",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
    "set_shape",
    "shape",
    "sparse_read",
    "synchronization",
    "trainable",
    "value",
]


@pytest.mark.parametrize("name", PUBLIC)
def test_d2_public_names(name):
    """D2"""
    assert hasattr(tf.Variable, name) or hasattr(tf.Variable(1), name)


def test_d1_1_initial_value_is_required():
    """D1.1"""
    with pytest.raises(ValueError, match="`initial_value`"):
        tf.Variable(None)


@pytest.mark.parametrize(
    "bad", [[[1.0], [1.0, 2.0]], object(), {"a": 1.0}, [1.0, None], [1.0, "a"], np.array([object()]), 1 << 80, lambda: None]
)
def test_d1_2_bad_initial_values(bad):
    """D1.2, E1.3, E1.4"""
    with pytest.raises((TypeError, ValueError)):
        tf.Variable(bad)


def test_d1_2_the_callers_array_is_copied():
    """D1.2, D2.2"""
    array = np.ones(3, np.float32)
    v = tf.Variable(array)
    array[0] = 7.0
    v.assign(array)
    array[1] = 9.0
    assert v.numpy().tolist() == [7.0, 1.0, 1.0]


def test_d2_2_a_variable_made_of_another_is_independent():
    """D1.2, D2.2"""
    a = tf.Variable([1.0, 2.0])
    b = tf.Variable(a)
    c = tf.Variable(a.value())
    a.assign_add([1.0, 1.0])
    b.assign_sub([5.0, 5.0])
    assert (a.numpy().tolist(), b.numpy().tolist(), c.numpy().tolist()) == ([2.0, 3.0], [-4.0, -3.0], [1.0, 2.0])


def test_d2_2_assigning_a_tensor_or_variable_never_shares_memory():
    """D2.2"""
    t, a, b = tf.constant([1.0, 2.0]), tf.Variable([0.0, 0.0]), tf.Variable([0.0, 0.0])
    a.assign(t)
    b.assign(a)
    a.assign_add([1.0, 1.0])
    b.assign_add([10.0, 10.0])
    assert (t.numpy().tolist(), a.numpy().tolist(), b.numpy().tolist()) == ([1.0, 2.0], [2.0, 3.0], [11.0, 12.0])


def test_d2_2_views_taken_before_in_place_updates_stay():
    """D2.2: reshapes, slices and transposes of a variable's value are snapshots too"""
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    taken = [tf.reshape(v, (4,)), tf.transpose(v), v[0], v[:, 1], np.asarray(v), tf.reshape(v, (4,))[1:], tf.stop_gradient(v)]
    before = [np.array(t) for t in taken]
    v.assign_add(tf.ones((2, 2)))
    v.assign_sub(tf.ones((2, 2)) * 3.0)
    v[0].assign([9.0, 9.0])
    v.scatter_add(tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1])))
    for t, b in zip(taken, before):
        assert np.array_equal(t, b)


def test_a12_1_in_place_updates_never_reach_the_tape():
    """A12.1, D2.2"""
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.square(v)
        v.assign_add([10.0, 10.0])
        v.scatter_update(tf.IndexedSlices(tf.constant([5.0]), tf.constant([0])))
    assert tape.gradient(y, v).numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "act",
    [
        lambda v: v.assign([1.0, 2.0, 3.0]),
        lambda v: v.assign_add(1.0),
        lambda v: v.assign("a"),
        lambda v: v.assign(None),
        lambda v: v.assign(tf.constant([1, 2])),
        lambda v: v.assign_add(tf.constant([1.0, 2.0], tf.float64)),
        lambda v: v.scatter_add(tf.IndexedSlices(tf.constant([1.0]), tf.constant([2]))),
        lambda v: v.scatter_add(tf.IndexedSlices(tf.constant([1.0]), tf.constant([-1]))),
        lambda v: v.scatter_add(tf.IndexedSlices(tf.constant([1]), tf.constant([0]))),
        lambda v: v.scatter_nd_add([[5]], [1.0]),
        lambda v: v.scatter_nd_update([[-1]], [1.0]),
        lambda v: v[0].assign([1.0, 2.0]),
        lambda v: v[7].assign(1.0),
        lambda v: v[0, 0].assign(1.0),
        lambda v: v.sparse_read([9]),
        lambda v: v.gather_nd([[9]]),
        lambda v: v.assign([[1.0], [2.0, 3.0]]),
    ],
)
def test_d3_d4_a_refused_update_changes_nothing(act):
    """D3.1, D3.2, D3.3, D4.1, D4.2, D4.3, D4.4"""
    v = tf.Variable([1.0, 2.0])
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)) as caught:
        act(v)
    assert str(caught.value)
    assert v.numpy().tolist() == [1.0, 2.0]


def test_d3_4_assign_returns_the_variable():
    """D3.4: TensorFlow returns a live view that is called 'UnreadVariable'"""
    v = tf.Variable(1.0, trainable=False)
    assert v.assign(2.0) is v
    assert v.assign_add(1.0).trainable is False


def test_d5_2_operators_that_rebind_in_tensorflow():
    """D5.2"""
    for symbol in ("//", "%"):
        scope = {"v": tf.Variable(7.0)}
        exec(f"v {symbol}= 2.0", scope)
        assert isinstance(scope["v"], tf.Tensor)


def test_d5_3_item_assignment_says_what_to_do():
    """D5.3"""
    v = tf.Variable([1.0])
    with pytest.raises(TypeError, match=r"variable\[index\].assign"):
        v[0] = 2.0


def test_d5_5_no_index_protocol():
    """D5.5"""
    with pytest.raises(TypeError):
        [1, 2, 3][tf.Variable(1)]


def test_d6_a_module_shares_and_nests():
    """D6"""

    class Block(tf.Module):
        def __init__(self, shared):
            super().__init__()
            self.own = tf.Variable(1.0, name="own")
            self.shared = shared

    shared = tf.Variable(2.0, name="shared")

    class Model(tf.Module):
        def __init__(self):
            super().__init__(name="my_model")
            self.b = [Block(shared), (Block(shared),)]
            self.a = tf.Variable(0.0, name="a")
            self.me = self

    model = Model()
    assert [v.name for v in model.variables] == ["a:0", "own:0", "shared:0", "own:0"]
    assert isinstance(model.trainable_variables, tuple)
    assert len(model.submodules) == 2
    assert model.name == "my_model"
    with model.name_scope:
        assert tf.Variable(1.0, name="v").name == "my_model/v:0"
    with pytest.raises(ValueError, match="not a valid module name"):
        tf.Module(name="not valid")
