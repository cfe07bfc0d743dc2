"""Records of gradtape/ops/scatter.py, in its order: composites, so their names are not in the table of ops."""

import numpy as np

import gradtape as tf
from gradtape.ops import scatter as ops
from gradtape.testing import OpRecord

WHERE = np.array([[2], [0], [2]])
PLACES = np.array([[0, 1], [2, 0]])


def distinct(*shapes):
    """Arrays whose elements are 0.1 apart, from each other and between arrays."""

    def samples(rng):
        sizes = [int(np.prod(shape)) for shape in shapes]
        values = np.split(rng.permutation(sum(sizes)) * 0.31 - 2, np.cumsum(sizes)[:-1])
        return [tuple(v.reshape(shape) for v, shape in zip(values, shapes))]

    return samples


def scattered(how, where):
    """Slice by slice, in order."""

    def reference(x, updates):
        out = x.copy()
        for at, update in zip(where, updates):
            old = out[tuple(at)]
            out[tuple(at)] = {"add": old + update, "sub": old - update, "update": update,
                              "max": np.maximum(old, update), "min": np.minimum(old, update)}[how]  # fmt: skip
        return out

    return reference


RECORDS = [
    OpRecord(f"tensor_scatter_{how}", lambda x, u, how=how, where=where: ops.tensor_scatter("TensorScatter", x, where, u, how),
             distinct((3, 2), shape), scattered(how, where), case=case, empties=list,
             bad=[(lambda where=where: (np.zeros((1, 1)), np.zeros(len(where))), tf.errors.InvalidArgumentError, "")])
    for how in ("add", "sub", "update", "max", "min")
    for case, where, shape in (("rows", WHERE, (3, 2)), ("elements", PLACES, (2,)))
]  # fmt: skip
