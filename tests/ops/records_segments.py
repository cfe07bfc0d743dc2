"""Records of gradtape/ops/segments.py, in its order."""

import functools

import numpy as np

from gradtape.ops import segments as ops
from gradtape.testing import OpRecord

IDS = np.array([2, 0, 2, 0, 0])


def rows(rng):
    return [(rng.normal(size=(5, 2)), IDS)]


def reference(function):
    return lambda x, ids: np.stack([function(x[ids == i], axis=0) if (ids == i).any() else np.zeros(2) for i in range(3)]).astype(x.dtype)


RECORDS = [
    OpRecord(name, functools.partial(getattr(ops, name), count=3, empty=0), rows, reference(function),
             empties=lambda: [(np.zeros((0, 2)), np.zeros(0, int))])
    for name, function in (("segment_max", np.max), ("segment_min", np.min))
]  # fmt: skip
