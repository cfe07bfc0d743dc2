"""Records of gradtape/ops/taps.py: every kind of taps that images use."""

import functools

import numpy as np

from gradtape.ops import taps as ops
from gradtape.ops.image_quality import _pairs, _window
from gradtape.ops.image_resize import resize_taps
from gradtape.ops.taps import Taps
from gradtape.testing import OpRecord


def matrix(taps):
    """The dense matrix of the map."""
    out = np.zeros((len(taps.indices), taps.length))
    np.add.at(out, (np.arange(len(taps.indices))[:, None], taps.indices), taps.weights)
    return out


def record(case, taps, axis=0):
    shape = [2, 3]
    shape.insert(axis, taps.length)
    return OpRecord(
        "weigh_taps",
        functools.partial(ops.weigh_taps, taps=taps, axis=axis),
        lambda rng: [(rng.normal(size=shape),)],
        lambda x: np.moveaxis(np.tensordot(matrix(taps).astype(x.dtype), x, (1, axis)), 0, axis),
        case=case,
        empties=lambda: [(np.zeros([0 if i == (axis + 1) % 3 else n for i, n in enumerate(shape)]),)],
    )


RECORDS = [
    *(record(method, resize_taps(4, 6, method), axis=1) for method in ("nearest", "bilinear", "bicubic", "area")),
    record("antialias", resize_taps(7, 3, "lanczos3", True), axis=2),
    record("one input", resize_taps(1, 3, "bilinear")),
    record("unused inputs", resize_taps(7, 2, "nearest")),
    record("window", _window(5, (0.25, 0.0, 0.75))),
    record("pairs", _pairs(5), axis=1),
    record("repeated", Taps([[0, 0], [1, 0]], [[1.0, 2.0], [-1.0, 0.5]], 2)),
    record("no outputs", Taps(np.zeros((0, 2), int), np.zeros((0, 2)), 3)),
]
