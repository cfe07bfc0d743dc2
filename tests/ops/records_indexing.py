"""Records of gradtape/ops/indexing.py, in its order."""

import functools

import numpy as np

import gradtape as tf
from gradtape.ops import indexing as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError


def record(name, attributes, samples, reference, case="", **options):
    function = functools.partial(getattr(ops, name), **attributes)
    return OpRecord(name, function, samples, reference, case=case, **{"complex": True, **options})


def normal(*shape):
    return lambda rng: [(rng.normal(size=shape),)]


def indexed(shape, *indices, dtype=np.int32):
    return lambda rng: [(rng.normal(size=shape), np.array(i, dtype)) for i in indices]


def put(x, index, shape):
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


def added(index):
    """The reference of a transpose: add x into zeros at what ``index(indices)`` selects."""

    def reference(x, indices, shape):
        out = np.zeros(shape, x.dtype)
        np.add.at(out, index(indices), x)
        return out

    return reference


def pairs(x, indices):
    """take with one batch axis and axis 1."""
    return np.stack([row[i] for row, i in zip(x, indices)])


def pairs_transpose(x, indices, shape):
    out = np.zeros(shape, x.dtype)
    for row, i, value in zip(out, indices, x):
        np.add.at(row, i, value)
    return out


def along(indices):
    return np.arange(2)[:, None], indices


def vectors(indices):
    return tuple(np.moveaxis(indices, -1, 0))


INDICES = {
    "int": (1,),
    "slice": (slice(0, 2), slice(None, None, 2)),
    "negative step": (slice(None), slice(None, None, -1)),
    "newaxis, ellipsis": (None, Ellipsis, -1),
    "nothing": (slice(2, 1),),
    "everything": (),
}
REPEATED = [[2, 0], [0, 2]], [1, 1, 1], 2, []
BOTH = [[0, 2, 2, 1], [1, 1, 0, 0]]
NESTED = [[[0, 1], [2, 1]], [[0, 1], [1, 0]]]

RECORDS = [
    *(record("getitem", {"index": i}, normal(3, 4), lambda x, i=i: x[i], case, empties=list) for case, i in INDICES.items()),
    record("put_slice", {"index": (slice(0, 3, 2),), "shape": (3, 2)}, normal(2, 2),
           lambda x: put(x, (slice(0, 3, 2),), (3, 2)), empties=list),
    record("take", {"axis": 0}, indexed((3, 2), *REPEATED), lambda x, i: np.take(x, i, 0), empties=list, bad=[
        (lambda: (np.zeros((3, 2)), np.array([0, 3])), INVALID, "indices[1] = 3 is not in [0, 3)"),
        (lambda: (np.zeros((3, 2)), np.array([-1])), INVALID, "indices[0] = -1 is not in [0, 3)"),
        (lambda: (np.zeros((3, 2)), np.array(7)), INVALID, "indices = 7 is not in [0, 3)"),
    ]),
    record("take", {"axis": 1}, indexed((2, 3), *REPEATED, dtype=np.int64), lambda x, i: np.take(x, i, 1), "axis=1",
           empties=list),
    record("take", {"axis": 1, "batch_dims": 1}, indexed((2, 3), BOTH, [[0], [2]]), pairs, "batch_dims=1", empties=list),
    record("take_transpose", {"axis": 0, "shape": (3, 2)}, lambda rng: [(rng.normal(size=(3, 2)), np.array([2, 0, 2]))],
           functools.partial(added(lambda i: i), shape=(3, 2)), bad=[
               (lambda: (np.zeros((1, 2)), np.array([3])), INVALID, "indices[0] = 3 is not in [0, 3)"),
           ]),
    record("take_transpose", {"axis": 1, "shape": (2, 3), "batch_dims": 1},
           lambda rng: [(rng.normal(size=(2, 4)), np.array(BOTH))], functools.partial(pairs_transpose, shape=(2, 3)),
           "batch_dims=1", empties=list),
    record("take_along_axis", {"axis": 1}, indexed((2, 3), BOTH), lambda x, i: np.take_along_axis(x, i, 1), empties=list),
    record("take_along_axis", {"axis": -1}, indexed((2, 3), BOTH), lambda x, i: np.take_along_axis(x, i, -1), "axis=-1",
           empties=list),
    record("along_axis_transpose", {"axis": 1, "shape": (2, 3)}, lambda rng: [(rng.normal(size=(2, 4)), np.array(BOTH))],
           functools.partial(added(along), shape=(2, 3)), empties=list),
    record("gather_nd", {}, indexed((3, 2), NESTED, [[2], [2]], [1, 1]), lambda x, i: x[vectors(i)], empties=list, bad=[
        (lambda: (np.zeros((3, 2)), np.array([[0, 2]])), INVALID, "indices[0] = [0, 2] does not index into param shape [3,2]"),
        (lambda: (np.zeros(3), np.array([[0, 2]])), INVALID, "index innermost dimension length must be <= params rank"),
    ]),
    record("scatter_nd", {"shape": (3, 2)}, lambda rng: [(rng.normal(size=(2, 2)), np.array(NESTED))],
           functools.partial(added(vectors), shape=(3, 2)), bad=[
               (lambda: (np.zeros(1), np.array([[3, 0]])), INVALID, "does not index into"),
           ], empties=list),
    OpRecord("one_hot", functools.partial(ops.one_hot, depth=3, dtype=np.dtype(np.float32)),
             lambda rng: [(np.array([[0, 2, 3, -1]]),)], lambda i: (i[..., None] == np.arange(3)).astype(np.float32),
             floating=False, differentiable=False),
    record("sort", {"axis": -1}, lambda rng: [((rng.permutation(6) * 0.7 - 2).reshape(2, 3),)], np.sort, complex=False),
    record("sort", {"axis": 0}, lambda rng: [((rng.permutation(6) * 0.7 - 2).reshape(3, 2),)], lambda x: np.sort(x, 0),
           "axis=0", complex=False),
    OpRecord("argsort", functools.partial(ops.argsort, axis=-1), lambda rng: [(rng.integers(0, 3, (2, 6)).astype(float),)],
             lambda x: np.argsort(x, -1, kind="stable"), differentiable=False),
]  # fmt: skip
