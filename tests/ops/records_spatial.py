"""Records of gradtape/ops/spatial.py, in its order."""

import functools

import numpy as np

from gradtape import errors
from gradtape.ops import spatial as ops
from gradtape.testing import OpRecord

Invalid = errors.InvalidArgumentError


def arrays(*shapes):
    return lambda rng: [(rng.normal(size=shape),) for shape in shapes]


def windows(x):
    return np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 2))[:, ::2].transpose(0, 1, 2, 4, 5, 3)


def added(x):
    out = np.zeros((x.shape[0], 4, 3, x.shape[-1]), x.dtype)
    for i, j, p, q in np.ndindex(2, 2, 2, 2):
        out[:, 2 * i + p, j + q] += x[:, i, j, p, q]
    return out


def to_depth(x):
    n, h, w, c = x.shape
    return np.concatenate([x[:, i::2, j::2] for i in range(2) for j in range(2)], axis=-1).reshape(n, h // 2, w // 2, 4 * c)


def to_batch(x):
    x = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return np.concatenate([x[:, i::2, j::1] for i in range(2) for j in range(1)])


RECORDS = [
    OpRecord("windows", functools.partial(ops.windows, size=(2, 2), strides=(2, 1), dilations=(1, 1)),
             arrays((2, 4, 3, 2)), windows, complex=True),
    OpRecord("windows_transpose", functools.partial(ops.windows_transpose, strides=(2, 1), dilations=(1, 1), lengths=(4, 3)),
             arrays((1, 2, 2, 2, 2, 2)), added, complex=True),
    OpRecord("extract_patches", functools.partial(ops.extract_patches, size=2, strides=[1, 2, 1, 1], rates=1, padding="VALID"),
             arrays((2, 4, 3, 2)), lambda x: windows(x).reshape(x.shape[0], 2, 2, 8),
             bad=[(lambda: (np.ones((2, 2, 2)),), Invalid, "input must be 4-dimensional: [2,2,2]")]),
    OpRecord("space_to_depth", functools.partial(ops.space_to_depth, block_size=2), arrays((2, 4, 2, 3)), to_depth,
             bad=[(lambda: (np.ones((1, 3, 2, 1)),), Invalid, "should be divisible by block_size: 2"),
                  (lambda: (np.ones((3, 2, 1)),), Invalid, "Input rank should be: 4 instead of: 3")]),
    OpRecord("depth_to_space", lambda x: ops.depth_to_space(ops.space_to_depth(x, 2), 2), arrays((2, 4, 2, 3)), np.copy,
             bad=[(lambda: (np.ones((1, 3, 2, 1)),), Invalid, "should be divisible by block_size: 2")]),
    OpRecord("space_to_batch", functools.partial(ops.space_to_batch, block_shape=[2, 1], paddings=[[1, 1], [0, 0]]),
             arrays((2, 2, 2, 1)), to_batch,
             bad=[(lambda: (np.ones((1, 3, 2, 1)),), Invalid, "padded_shape[0]=5 is not divisible by block_shape[0]=2")]),
    OpRecord("batch_to_space", functools.partial(ops.batch_to_space, block_shape=[2], crops=[[1, 0]]), arrays((4, 2, 2)),
             lambda x: x.reshape(2, -1, 2, 2).transpose(1, 2, 0, 3).reshape(-1, 4, 2)[:, 1:],
             bad=[(lambda: (np.ones((3, 2)),), Invalid, "is not divisible by product of block sizes (2)")]),
]  # fmt: skip
