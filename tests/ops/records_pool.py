"""Records of gradtape/ops/pool.py, in its order."""

import functools

import numpy as np

from gradtape import errors
from gradtape.ops import pool as ops
from gradtape.testing import OpRecord

Invalid = errors.InvalidArgumentError
ATTRIBUTES = {"size": (2, 3), "strides": (2, 1), "padding": ((1, 0), (1, 1)), "dilations": (1, 1)}
FLAT = {"size": (2,), "strides": (1,), "padding": ((0, 0),), "dilations": (2,)}


def distinct(*shape):
    """Elements at least 0.1 apart, so that the largest stays the largest."""
    return lambda rng: [(rng.permutation(int(np.prod(shape))).reshape(shape) / 10.0,)]


def arrays(*shapes):
    return lambda rng: [tuple(rng.normal(size=shape) for shape in shapes)]


def windows(x, outside, size, strides, padding, dilations):
    """(examples, *positions, channels, *size)"""
    x = np.pad(x, ((0, 0), *padding, (0, 0)), constant_values=outside)
    axes = tuple(range(1, len(size) + 1))
    wide = [(k - 1) * d + 1 for k, d in zip(size, dilations)]
    found = np.lib.stride_tricks.sliding_window_view(x, wide, axes)
    return found[(slice(None), *(slice(None, None, s) for s in strides), Ellipsis, *(slice(None, None, d) for d in dilations))]


def largest(x, **attributes):
    found = windows(x, -np.inf, **attributes)
    return found.max(axis=tuple(range(-len(attributes["size"]), 0)))


def mean(x, **attributes):
    found = windows(x, np.nan, **attributes)
    return np.nanmean(found, axis=tuple(range(-len(attributes["size"]), 0)))


def where(x):
    at = np.arange(x[0].size).reshape(1, *x.shape[1:]) + np.zeros((x.shape[0], 1, 1, 1), int)
    values, places = (windows(np.asarray(a, float), -np.inf, **ATTRIBUTES) for a in (x, at))
    values, places = (a.reshape(*a.shape[:4], -1) for a in (values, places))
    return np.take_along_axis(places, values.argmax(-1)[..., None], -1)[..., 0].astype(np.int64)


def grey(x, w):
    found = windows(x, -np.inf, size=(2, 2), strides=(1, 1), padding=((0, 0), (0, 0)), dilations=(1, 1))
    return (found + w.transpose(2, 0, 1)).max(axis=(-2, -1))


PLAIN = {"strides": 1, "padding": "VALID", "data_format": "NHWC", "dilations": 1}
RECORDS = [
    OpRecord("max_pool", functools.partial(ops.max_pool, **ATTRIBUTES), distinct(2, 4, 3, 2),
             functools.partial(largest, **ATTRIBUTES), half_tolerance=1),
    OpRecord("max_pool", functools.partial(ops.max_pool, **FLAT), distinct(2, 5, 2), functools.partial(largest, **FLAT),
             case="dilations"),
    OpRecord("avg_pool", functools.partial(ops.avg_pool, **ATTRIBUTES), arrays((2, 4, 3, 2)),
             functools.partial(mean, **ATTRIBUTES)),
    OpRecord("avg_pool", functools.partial(ops.avg_pool, **FLAT), arrays((2, 5, 2)), functools.partial(mean, **FLAT),
             case="dilations"),
    OpRecord("max_pool_argmax", functools.partial(ops.max_pool_argmax, include_batch=False, **ATTRIBUTES), distinct(2, 4, 3, 2),
             where, differentiable=False),
    OpRecord("pool", lambda x: ops.pool(x, "MAX", 2, size=2, strides=[1, 1, 2, 1], padding="SAME", data_format="NCHW"),
             distinct(1, 2, 4, 3), lambda x: largest(
                 x.transpose(0, 2, 3, 1), size=(2, 2), strides=(2, 1), padding=((0, 0), (0, 1)), dilations=(1, 1)
             ).transpose(0, 3, 1, 2),
             bad=[(lambda: (np.ones((3, 3, 1)),), Invalid, "input must be 4-dimensional"),
                  (lambda: (np.ones((1, 1, 3, 3), complex),), Invalid, "is not in the list of allowed values")]),
    OpRecord("dilation", functools.partial(ops.dilation, **PLAIN), lambda rng: [
        (*distinct(1, 3, 3, 2)(rng)[0], rng.uniform(-0.03, 0.03, (2, 2, 2)))], grey, empties=list,
        bad=[(lambda: (np.ones((1, 3, 3, 2)), np.ones((2, 2, 3))), Invalid, "must have the same depth")]),
    OpRecord("dilation", functools.partial(ops.erosion, **PLAIN), lambda rng: [
        (*distinct(1, 3, 3, 2)(rng)[0], rng.uniform(-0.03, 0.03, (2, 2, 2)))],
        lambda x, w: -grey(-x, w[::-1, ::-1]), case="erosion", empties=list),
]  # fmt: skip
