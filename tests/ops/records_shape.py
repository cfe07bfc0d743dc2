"""Records of gradtape/ops/shape.py, in its order."""

import functools

import numpy as np

import gradtape as tf
from gradtape.ops import shape as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError
part = functools.partial


def normal(*shape):
    return lambda rng: [(rng.normal(size=shape),)]


def several(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


def record(name, attributes, samples, reference, case="", **options):
    return OpRecord(name, part(getattr(ops, name), **attributes), samples, reference, case=case, **{"complex": True, **options})


RECORDS = [
    record("reshape", {"shape": (3, 2)}, normal(2, 3), lambda x: x.reshape(3, 2), bad=[
        (lambda: (np.zeros(4),), INVALID, "Input to reshape is a tensor with 4 values, but the requested shape has 6"),
    ], empties=list),
    record("reshape", {"shape": (-1,)}, normal(2, 3), lambda x: x.reshape(-1), "-1"),
    record("reshape", {"shape": ()}, normal(1, 1), lambda x: x.reshape(()), "to a scalar", empties=list),
    record("transpose", {"axes": (2, 0, 1)}, normal(2, 3, 2), lambda x: x.transpose(2, 0, 1)),
    record("transpose", {"axes": None}, normal(2, 3), np.transpose, "reverse"),
    record("transpose", {"axes": (0, -1, 1)}, normal(2, 3, 2), lambda x: x.transpose(0, -1, 1), "negative axis"),
    record("matrix_transpose", {}, normal(2, 3, 2), np.matrix_transpose),
    record("adjoint", {}, normal(2, 3), lambda x: np.conj(np.matrix_transpose(x))),
    record("expand_dims", {"axis": 1}, normal(2, 3), lambda x: np.expand_dims(x, 1)),
    record("expand_dims", {"axis": (0, -1)}, normal(2, 3), lambda x: np.expand_dims(x, (0, -1)), "two"),
    record("squeeze", {"axis": (0, 2)}, normal(1, 3, 1), lambda x: np.squeeze(x, (0, 2)),
           bad=[(lambda: (np.zeros((2, 3, 1)),), INVALID, "")], empties=lambda: [(np.zeros((1, 0, 1)),)]),
    record("broadcast_to", {"shape": (2, 3, 2)}, normal(3, 1), lambda x: np.broadcast_to(x, (2, 3, 2)), empties=list,
           bad=[(lambda: (np.zeros(3),), INVALID, "")]),
    record("broadcast_to", {"shape": (3,)}, normal(), lambda x: np.broadcast_to(x, (3,)), "scalar"),
    record("broadcast_to", {"shape": (0, 3)}, normal(3), lambda x: np.broadcast_to(x, (0, 3)), "to nothing", empties=list,
           batched=False),
    record("concatenate", {"axis": 1}, several((2, 3), (2, 1), (2, 2)), lambda *xs: np.concatenate(xs, 1)),
    record("concatenate", {"axis": -1}, several((2,), (0,)), lambda *xs: np.concatenate(xs, -1), "with an empty one"),
    record("stack", {"axis": 1}, several((2, 3), (2, 3)), lambda *xs: np.stack(xs, 1)),
    record("stack", {"axis": -1}, several((), ()), lambda *xs: np.stack(xs, -1), "scalars"),
    record("tile", {"repeats": (2, 1, 3)}, normal(1, 2, 2), lambda x: np.tile(x, (2, 1, 3))),
    record("tile", {"repeats": (0, 2)}, normal(1, 2), lambda x: np.tile(x, (0, 2)), "zero times", batched=False),
    record("pad", {"widths": ((1, 0), (0, 2))}, normal(2, 3), lambda x: np.pad(x, ((1, 0), (0, 2)))),
    record("pad", {"widths": ((0, 1),), "value": 4.0}, normal(2), lambda x: np.pad(x, ((0, 1),), constant_values=4), "value"),
    record("flip", {"axis": (0, 1)}, normal(2, 3), lambda x: np.flip(x, (0, 1))),
    record("flip", {"axis": -1}, normal(2, 3), lambda x: np.flip(x, -1), "axis=-1"),
    record("roll", {"shift": 2, "axis": 1}, normal(2, 3), lambda x: np.roll(x, 2, 1)),
    record("roll", {"shift": (1, -1), "axis": (0, 1)}, normal(2, 3), lambda x: np.roll(x, (1, -1), (0, 1)), "two axes"),
    record("repeat", {"repeats": 2, "axis": 1}, normal(2, 3), lambda x: np.repeat(x, 2, 1)),
    record("repeat", {"repeats": (2, 0, 1), "axis": -1}, normal(2, 3), lambda x: np.repeat(x, (2, 0, 1), -1), "counts"),
    record("repeat", {"repeats": 3, "axis": 0}, normal(), lambda x: np.repeat(x, 3), "a number"),
]  # fmt: skip
