"""Records of gradtape/ops/arrays.py, in its order: the ops, and the composites through which gradients flow."""

import functools

import numpy as np

import gradtape as tf
from gradtape.ops import arrays as ops
from gradtape.testing import OpRecord


def normal(*shape):
    return lambda rng: [(rng.normal(size=shape),)]


def record(name, args, samples, reference, case="", **options):
    function = lambda x: getattr(ops, name)(tf.convert_to_tensor(x), *args)
    options = {"complex": True, "empties": list, **options}
    return OpRecord(name, function, samples, reference, case=case, **options)


def sequences(x):
    out = x.copy()
    out[0, :2], out[1, :3] = x[0, :2][::-1], x[1, :3][::-1]
    return out


def stitched(x, y):
    out = np.zeros((4, 2), x.dtype)
    out[[0, 2]], out[[3, 0]] = x, y
    return out


MASK = np.array([[True, False, True], [False, False, True]])
PARTS = np.array([1, 0, 1])

RECORDS = [
    OpRecord("unstack", functools.partial(ops.unstack, axis=1), normal(2, 3), lambda x: tuple(np.moveaxis(x, 1, 0)),
             complex=True),
    OpRecord("unstack", functools.partial(ops.unstack, axis=0), normal(1, 3), tuple, case="one", empties=list),
    OpRecord("split", functools.partial(ops.split, sizes=(1, 0, 3), axis=1), normal(2, 4),
             lambda x: (x[:, :1], x[:, 1:1], x[:, 1:]), complex=True),
    record("pad", ([[1, 2]], "REFLECT"), normal(4), lambda x: np.pad(x, ((1, 2),), mode="reflect"), "reflect"),
    record("pad", ([[0, 1], [2, 0]], "SYMMETRIC"), normal(2, 3), lambda x: np.pad(x, ((0, 1), (2, 0)), mode="symmetric"),
           "symmetric"),
    record("reverse_sequence", ([2, 3], 1, 0), normal(2, 4), sequences),
    record("basic_slice", ([0, 1], [2, -1]), normal(3, 4), lambda x: x[:2, 1:]),
    record("boolean_mask", (MASK,), normal(2, 3), lambda x: x[MASK]),
    record("dynamic_partition", (PARTS, 2), normal(3, 2), lambda x: (x[PARTS == 0], x[PARTS == 1])),
    OpRecord("dynamic_stitch", lambda x, y: ops.dynamic_stitch([[0, 2], [3, 0]], [x, y]),
             lambda rng: [(rng.normal(size=(2, 2)), rng.normal(size=(2, 2)))], stitched, complex=True, empties=list),
]  # fmt: skip
