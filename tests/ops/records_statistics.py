"""Records of gradtape/ops/statistics.py, in its order."""

import functools

import numpy as np

import gradtape as tf
from gradtape.ops import statistics as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError


def of_tensor(function, **attributes):
    """The function on tensors, attributes bound."""
    return lambda x: function(tf.convert_to_tensor(x), **attributes)


def normal(*shape):
    return lambda rng: [(rng.normal(size=shape),)]


def distinct(rng):
    return [((rng.permutation(8) * 0.31 - 1).reshape(2, 4),)]


def both(name, reference, **options):
    function, samples = getattr(ops, name), normal(2, 4)
    return [
        OpRecord(name, of_tensor(function), samples, reference, empties=list, **options),
        OpRecord(name, of_tensor(function, axis=1, keepdims=True), samples,
                 functools.partial(reference, axis=1, keepdims=True), case="axis=1 kept", empties=list, **options),
    ]  # fmt: skip


def norm(x, **attributes):
    return np.sqrt(np.sum(np.abs(x) ** 2, **attributes)).astype(x.dtype)


def normalized(x, axis):
    return x / np.sqrt(np.sum(np.abs(x) ** 2, axis=axis, keepdims=True))


def running(x, axis, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    if exclusive:
        x = np.concatenate([np.full_like(np.take(x, [0], axis), -np.inf), np.delete(x, -1, axis)], axis)
    out = np.logaddexp.accumulate(x, axis)
    return np.flip(out, axis) if reverse else out


def largest(x, k):
    order = np.argsort(-x, -1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


RECORDS = [
    *both("variance", np.var, complex=True),
    *both("std", np.std, complex=True),
    *both("euclidean_norm", norm, complex=True),
    OpRecord("l2_normalize", of_tensor(ops.l2_normalize, axis=1), normal(2, 3), functools.partial(normalized, axis=1),
             case="statistics", complex=True),
    OpRecord("add_n", ops.add_n, lambda rng: [tuple(rng.normal(size=(3, 2, 3))), (rng.normal(size=2),)], lambda *xs: sum(xs),
             complex=True, bad=[(lambda: (np.zeros(2), np.zeros(3)), INVALID, "must have the same size and shape")]),
    *(
        OpRecord("cumulative_logsumexp", of_tensor(ops.cumulative_logsumexp, axis=1, exclusive=False, reverse=reverse),
                 normal(2, 4), functools.partial(running, axis=1, exclusive=False, reverse=reverse),
                 case=f"reverse={reverse}", empties=list)
        for reverse in (False, True)
    ),
    OpRecord("cumulative_logsumexp", of_tensor(ops.cumulative_logsumexp, axis=0, exclusive=True), normal(3, 2),
             functools.partial(running, axis=0, exclusive=True, reverse=False), case="exclusive", empties=list, order=0,
             batched=False),  # the first row is -inf, which has no numerical derivative
    OpRecord("argsort_descending", of_tensor(ops.argsort_descending, axis=1), lambda rng: [(np.array([[1.0, 3, 1, 2, 3]]),)],
             lambda x: np.argsort(-x, 1, kind="stable"), differentiable=False),
    OpRecord("top_k", of_tensor(ops.top_k, k=2, index_type="int32"), distinct, functools.partial(largest, k=2)),
]  # fmt: skip
