"""Records of gradtape/ops/clip.py, in its order."""

import functools

import numpy as np

from gradtape.ops import clip as ops
from gradtape.testing import OpRecord


def limits(rng):
    """Below, inside and above; the limits broadcast in the second sample."""
    x = np.array([-2.0, -0.3, 0.2, 1.7])
    return [(x, np.full(4, -1.0), np.full(4, 1.1)), (np.stack([x, x + 0.1]), np.array(-1.0), np.array([[0.9], [1.2]]))]


def by_norm(x, limit, axis=None):
    norm = np.sqrt(np.sum(x * x, axis=axis, keepdims=True))
    return x * limit / np.maximum(norm, limit)


def vectors(rng):
    return [(np.array([[3.0, 4.0], [0.1, -0.2]]),)]


RECORDS = [
    OpRecord("clip", ops.clip, limits, lambda x, low, high: np.maximum(np.minimum(x, high), low)),
    OpRecord("clip_by_value", lambda x: ops.clip_by_value(x, -1.0, 1.1), lambda rng: [(np.array([-2.0, -0.3, 0.2, 1.7]),)],
             lambda x: np.clip(x, -1.0, 1.1)),
    OpRecord("clip_by_norm", lambda x: ops.clip_by_norm(x, 2.0), vectors, lambda x: by_norm(x, 2.0)),
    OpRecord("clip_by_norm", lambda x: ops.clip_by_norm(x, 2.0, axes=[1]), vectors,
             functools.partial(by_norm, limit=2.0, axis=1), case="axis=1"),
    OpRecord("global_norm", lambda *xs: ops.global_norm(xs), lambda rng: [(rng.normal(size=(2, 2)), rng.normal(size=3))],
             lambda x, y: np.sqrt(np.sum(x * x) + np.sum(y * y)), empties=list),
    OpRecord("clip_by_global_norm", lambda *xs: ops.clip_by_global_norm(xs, 1.0)[0],
             lambda rng: [(rng.uniform(1, 2, (2, 2)), rng.uniform(1, 2, 3))],
             lambda x, y: tuple(v / np.sqrt(np.sum(x * x) + np.sum(y * y)) for v in (x, y)), empties=list),
]  # fmt: skip
