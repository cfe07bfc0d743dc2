"""Records of gradtape/ops/arrays.py, in its order."""

import functools

import numpy as np

from gradtape.ops import arrays as ops
from gradtape.testing import OpRecord


def normal(rng):
    return [(rng.normal(size=(2, 3)),)]


RECORDS = [
    OpRecord("unstack", functools.partial(ops.unstack, axis=1), normal, lambda x: tuple(np.moveaxis(x, 1, 0)), complex=True),
    OpRecord("unstack", functools.partial(ops.unstack, axis=0), lambda rng: [(rng.normal(size=(1, 3)),)],
             lambda x: tuple(x), case="one", empties=list),
    OpRecord("split", functools.partial(ops.split, sizes=(1, 0, 2), axis=1), normal,
             lambda x: (x[:, :1], x[:, 1:1], x[:, 1:]), complex=True),
]  # fmt: skip
