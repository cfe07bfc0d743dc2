"""Functions under ``tf``: values, gradients and errors as TensorFlow gives them, and what goldens cannot hold."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from function_calls import CALLS, FOLDER, outcome

import gradtape
from gradtape import dtypes, linalg, math, toplevel
from gradtape.testing import check_gradients

pytestmark = pytest.mark.tiny

GOLDENS = json.loads((FOLDER / "functions.json").read_text())["calls"]

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

# Where we differ on purpose: the call and what we do instead.
BETTER = {
    "gradient(lambda a,b: tf.tensor_scatter_nd_update(a,[[0],[0]],b),[3.,1.],[3.,3.])": "only the last update counts",
    "gradient(lambda a,b: tf.dynamic_stitch([[0,2],[1,0]],[a,b]),[1.,2.],[3.,4.])": "only the last slice counts",
    "tf.saturate_cast(tf.constant([1e20,-1e20],tf.float64),tf.int64)": "saturates at the top too",
    "tf.sort([3.,float('nan'),1.],direction='DESCENDING')": "nan has one place",
    "tf.math.reduce_euclidean_norm(tf.constant([100,100],tf.int8))": "141 does not fit int8; neither answer is right",
    "tf.gather(x,[[0],[1]],axis=0,batch_dims=1)": "batch_dims beyond axis is refused",
    "tf.meshgrid([1,2],[3.,4,5])": "each result keeps its dtype",
    "tf.clip_by_global_norm([v],1.,use_norm=2.)": "a Python number is a norm",
    "tf.broadcast_static_shape([2,1],[3])": "lists are shapes",
    "tf.matmul(i[None],i[:,None],output_type=tf.int64)": "TensorFlow has no kernel",
    "tf.matmul(x,x,output_type=tf.float64)": "TensorFlow has no kernel",
    "tf.realdiv(1,2)": "TensorFlow has no kernel",
    "tf.math.reciprocal([1,2])": "TensorFlow has no kernel",
    "tf.einsum('ij,j',x,[1.,2.])": "lists are operands",
    "tf.gather(v,tf.constant([0,1],tf.uint8))": "indices of any integer dtype",
    "tf.tile(v,2)": "a number stands for a list of one",
}
LATER = {"tf.norm(x,ord=2,axis=[0,1])": NotImplementedError}
# The class is another one, and the text says what is wrong.
OTHER_CLASS = {"tf.fill([2.],1.)": TypeError}


def close(ours: object, theirs: object) -> bool:
    """Equal up to rounding, nan equal to nan."""
    if isinstance(theirs, dict) and "flat" in theirs:
        if not isinstance(ours, dict) or (ours.get("dtype"), ours.get("shape")) != (theirs["dtype"], theirs["shape"]):
            return False
        if theirs["dtype"] == "string":
            return ours["flat"] == theirs["flat"]
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(theirs["dtype"], 2e-6)
        return np.allclose(ours["flat"], theirs["flat"], rtol=tolerance, atol=tolerance, equal_nan=True)
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and all(close(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(close, ours, theirs))
    return ours == theirs


@pytest.mark.parametrize("call", [c for c in CALLS if c not in {*BETTER, *LATER, *OTHER_CLASS}])
def test_as_tensorflow(call):
    ours, theirs = outcome(tf, call), GOLDENS[call]
    assert ours.get("error") == theirs.get("error"), (ours, theirs)
    if "value" in theirs:
        assert close(ours["value"], theirs["value"]), (ours, theirs)


@pytest.mark.parametrize("call", BETTER)
def test_where_we_differ_we_still_differ(call):
    ours, theirs = outcome(tf, call), GOLDENS[call]
    assert ours.get("error") != theirs.get("error") or not close(ours.get("value"), theirs.get("value"))


@pytest.mark.parametrize(("call", "error"), {**LATER, **OTHER_CLASS}.items())
def test_refused_in_our_way(call, error):
    assert outcome(tf, call)["error"] == error.__name__


WORDINGS = [call for call in CALLS if "text" in GOLDENS[call] and GOLDENS[call]["error"] == "InvalidArgumentError"]
OWN_WORDS = {
    "tf.reshape(x,[2.,2.])", "tf.concat([],0)", "tf.gather_nd(tf.ones([2,3]),[[1]],batch_dims=1)", "tf.repeat(x,-1)",
    "tf.matmul(tf.ones([2,3,2]),tf.ones([2]))",
    "tf.expand_dims(x,[0,1])", "tf.linspace(0.,1.,-1)", "tf.einsum('ij,jk',x,i)", "tf.matmul(x,i)", "tf.subtract('a','b')",
    "tf.negative([True])", "tf.linalg.global_norm([tf.constant([3.,4.]),tf.constant([3.,4.],tf.float64)])",
    "tf.clip_by_global_norm([tf.constant([3.,4.]),tf.constant([3.,4.],tf.float64)],1.)",
}  # fmt: skip


@pytest.mark.parametrize("call", [c for c in WORDINGS if c not in {*BETTER, *LATER, *OTHER_CLASS, *OWN_WORDS}])
def test_tensorflow_s_words(call):
    words = GOLDENS[call]["text"].splitlines()[0].split(" allowed values")[0].strip(" .")
    assert words[:60] in outcome(tf, call)["text"]


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
