"""Records of gradtape/ops/normalization.py, in its order."""

import functools

import numpy as np

from gradtape import errors
from gradtape.ops import normalization as ops
from gradtape.testing import OpRecord

Invalid = errors.InvalidArgumentError


def vectors(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


def moments(x, axis, keepdims=False):
    return np.mean(x, axis=axis, keepdims=keepdims), np.var(x, axis=axis, keepdims=keepdims)


def weighted_moments(x, w):
    mean = np.average(x, axis=0, weights=np.broadcast_to(w, x.shape))
    return mean, np.average((x - mean) ** 2, axis=0, weights=np.broadcast_to(w, x.shape))


def normalized(x, mean, variance, offset, scale):
    return (x - mean) / np.sqrt(variance + 0.1) * scale + offset


def response(x):
    near = np.abs(np.arange(x.shape[-1])[:, None] - np.arange(x.shape[-1])) <= 1
    return x / (2 + 0.5 * (x * x) @ near.astype(float)) ** 0.75


RECORDS = [
    OpRecord("moments", lambda x: ops.moments(x, [0]), vectors((4, 3)), functools.partial(moments, axis=0),
             empties=lambda: [(np.zeros((2, 0)),)]),
    OpRecord("moments", lambda x: ops.moments(x, [0, -1], keepdims=True), vectors((4, 3, 2)),
             functools.partial(moments, axis=(0, 2), keepdims=True), case="axes 0, -1 kept", empties=list),
    OpRecord("weighted_moments", lambda x, w: ops.weighted_moments(x, [0], w),
             lambda rng: [(rng.normal(size=(3, 2)), rng.uniform(1, 2, (3, 1)))], weighted_moments, empties=list),
    OpRecord("batch_normalization", lambda *args: ops.batch_normalization(*args, epsilon=0.1),
             lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=3), rng.uniform(1, 2, 3), *rng.normal(size=(2, 3)))],
             normalized),
    OpRecord("l2_normalize", lambda x: ops.l2_normalize(x, axis=1), vectors((2, 3)),
             lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)),
    OpRecord("local_response_normalization", functools.partial(ops.local_response_normalization, radius=1, bias=2.0, alpha=0.5,
                                                              beta=0.75), vectors((1, 2, 2, 4)), response,
             bad=[(lambda: (np.ones((2, 3)),), Invalid, "in must be 4-dimensional"),
                  (lambda: (np.ones((1, 1, 1, 3), int),), Invalid, "is not in the list of allowed values")]),
    OpRecord("bias_add", ops.bias_add,
             lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=3)), (rng.normal(size=(2, 2, 3)), rng.normal(size=3))],
             np.add, empties=lambda: [(np.zeros((0, 3)), np.zeros(3)), (np.zeros((2, 0)), np.zeros(0))],
             bad=[(lambda: (np.ones((2, 3)), np.ones(2)), Invalid,
                   "Must provide as many biases as the last dimension of the input tensor: [2] vs. [2,3]"),
                  (lambda: (np.ones((2, 3)), np.ones((1, 3))), Invalid, "Biases must be 1D: [1,3]"),
                  (lambda: (np.ones(3), np.ones(3)), Invalid, "Input tensor must be at least 2D: [3]")]),
    OpRecord("bias_add", functools.partial(ops.bias_add, channels_first=True), vectors((2, 3, 2, 2), (3,)),
             lambda x, b: x + b[:, None, None], case="channels first"),
]  # fmt: skip
