"""Records of gradtape/ops/segments.py, in its order: the ops, and the reductions composed of them."""

import functools

import numpy as np

import gradtape as tf
from gradtape.ops import segments as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError
SORTED = np.array([0, 0, 2, 2, 2])
MIXED = np.array([2, 0, 2, 0, 0])
DROPPING = np.array([2, 0, -1, 2, 0])
LIMITS = np.finfo(np.float64)


def rows(ids):
    """Five rows whose elements differ by 0.1 at least."""
    return lambda rng: [((rng.permutation(10) * 0.31 + 0.5).reshape(5, 2), ids)]


def grouped(function, empty, count=3):
    def reference(x, ids):
        parts = [x[ids == i] for i in range(count)]
        return np.stack([function(part) if len(part) else np.full(x.shape[1:], empty, x.dtype) for part in parts])

    return reference


def no_rows():
    return [(np.zeros((0, 2)), np.zeros(0, int))]


# What is reduced, and what a segment without rows is: sorted, unsorted
FUNCTIONS = {
    "sum": (lambda x: x.sum(0), 0, 0),
    "mean": (lambda x: x.mean(0), 0, 0),
    "sqrt_n": (lambda x: x.sum(0) / np.sqrt(len(x)), None, 0),
    "max": (lambda x: x.max(0), 0, LIMITS.min),
    "min": (lambda x: x.min(0), 0, LIMITS.max),
    "prod": (lambda x: x.prod(0), 1, 1),
}
EXACT = {"dtypes": ("float64",)}  # an empty segment is the lowest (highest) number of each dtype
FALLING = [(lambda: (np.zeros((2, 1)), np.array([1, 0])), INVALID, "segment ids are not increasing")]
OUTSIDE = [(lambda: (np.zeros((1, 1)), np.array([3])), INVALID, "segment_ids[0] = 3 is out of range [0, 3)")]

RECORDS = [
    OpRecord("segment_max", functools.partial(ops.segment_max, count=3, empty=-1.0), rows(MIXED),
             grouped(lambda x: x.max(0), -1.0), empties=no_rows),
    OpRecord("segment_min", functools.partial(ops.segment_min, count=3, empty=7.0), rows(MIXED),
             grouped(lambda x: x.min(0), 7.0), empties=no_rows),
    *(
        OpRecord(f"sorted segment {name}", ops.SORTED[name], rows(SORTED), grouped(function, empty), empties=list, bad=FALLING)
        for name, (function, empty, _) in FUNCTIONS.items()
        if empty is not None
    ),
    *(
        OpRecord(f"unsorted segment {name}", functools.partial(ops.UNSORTED[name], num_segments=3), rows(DROPPING),
                 grouped(function, empty), empties=no_rows, bad=OUTSIDE, **(EXACT if name in ("max", "min") else {}))
        for name, (function, _, empty) in FUNCTIONS.items()
    ),
]  # fmt: skip
