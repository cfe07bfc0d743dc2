"""Records of gradtape/ops/reduce.py, in its order."""

import functools

import numpy as np

from gradtape.ops import reduce as ops
from gradtape.testing import OpRecord

AXES = {
    "": {},
    "axis=1": {"axis": 1},
    "axis=-1": {"axis": -1},
    "axes 0, 2 kept": {"axis": (0, 2), "keepdims": True},
    "no axis": {"axis": ()},
}


def normal(rng):
    return [(rng.normal(size=(2, 3, 2)),)]


def distinct(rng):
    """Elements at least 0.1 apart, so that no step of a difference changes their order."""
    return [((rng.permutation(12) * 0.31 - 1.7).reshape(2, 3, 2),)]


def each(name, reference, samples=normal, scalars=True, **options):
    """The op over several axes, and of a scalar."""
    function = getattr(ops, name)
    records = [
        OpRecord(name, functools.partial(function, **attributes), samples, functools.partial(reference, **attributes),
                 case=case, **options)
        for case, attributes in AXES.items()
    ]  # fmt: skip
    scalar = OpRecord(name, function, lambda rng: [(np.array(0.7),)], reference, case="scalar", **options)
    return [*records, *([scalar] if scalars else [])]


def floor_mean(x, **attributes):
    return np.floor_divide(np.sum(x, **attributes, dtype=x.dtype), x.size // np.sum(x, **attributes).size)


def no_rows():
    return [(np.zeros((0, 2, 2)),), (np.zeros((2, 0, 2)),)]


def lowest(x, axis=None, keepdims=False):
    return np.max(x, axis=axis, keepdims=keepdims, initial=-np.inf)


def highest(x, axis=None, keepdims=False):
    return np.min(x, axis=axis, keepdims=keepdims, initial=np.inf)


def logsumexp(x, **attributes):
    return np.log(np.sum(np.exp(x), **attributes))


def cumulative(function, start):
    def reference(x, axis=0, exclusive=False, reverse=False):
        x = np.flip(x, axis) if reverse else x
        if exclusive:
            first = np.full_like(np.take(x, [0], axis), start)
            x = np.concatenate([first, np.delete(x, -1, axis)], axis)
        out = function(x, axis)
        return np.flip(out, axis) if reverse else out

    return reference


def each_cumulative(name, reference):
    function = getattr(ops, name)
    return [
        OpRecord(
            name,
            functools.partial(function, axis=axis, exclusive=exclusive, reverse=reverse),
            lambda rng: [(rng.normal(size=(2, 4)),)],
            functools.partial(reference, axis=axis, exclusive=exclusive, reverse=reverse),
            case=f"axis={axis}{', exclusive' * exclusive}{', reverse' * reverse}",
            complex=True,
        )
        for axis in (0, 1, -1)
        for exclusive in (False, True)
        for reverse in (False, True)
    ]


def with_zeros(rng):
    return [(np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.5]]),), (np.array([[2.0, 0.0, 3.0], [1.0, 4.0, 1.5]]),)]


def argument(name, reference):
    function = getattr(ops, name)
    return [
        OpRecord(name, functools.partial(function, axis=axis, keepdims=keepdims), distinct,
                 functools.partial(reference, axis=axis, keepdims=keepdims), differentiable=False,
                 case=f"axis={axis}{', kept' * keepdims}")
        for axis, keepdims in ((0, False), (-1, True))
    ]  # fmt: skip


def logical(name, reference):
    sample = lambda rng: [(rng.integers(0, 2, (2, 3, 2)).astype(bool),)]
    return each(name, reference, sample, scalars=False, floating=False, differentiable=False)


RECORDS = [
    *each("sum", np.sum, complex=True, empties=no_rows),
    OpRecord("sum", ops.sum, lambda rng: [(rng.integers(0, 9, (2, 3)),)], np.sum, case="integers", floating=False,
             differentiable=False),
    *each("mean", np.mean, complex=True),
    OpRecord("mean", functools.partial(ops.mean, axis=1), lambda rng: [(rng.integers(-9, 9, (2, 4)),)],
             functools.partial(floor_mean, axis=1), case="integers floor", floating=False, differentiable=False),
    *each("prod", np.prod, lambda rng: [(rng.uniform(0.5, 1.5, (2, 3, 2)),)], complex=True, empties=no_rows),
    OpRecord("prod", functools.partial(ops.prod, axis=1), with_zeros, functools.partial(np.prod, axis=1), case="with zeros"),
    *each("max", lowest, distinct, empties=no_rows),
    *each("min", highest, distinct, empties=no_rows),
    *logical("any", np.any),
    *logical("all", np.all),
    *argument("argmax", np.argmax),
    *argument("argmin", np.argmin),
    *each("logsumexp", logsumexp, empties=no_rows),
    *each_cumulative("cumsum", cumulative(np.cumsum, 0)),
    *each_cumulative("cumprod", cumulative(np.cumprod, 1)),
    OpRecord("cumprod", functools.partial(ops.cumprod, axis=1), with_zeros, functools.partial(np.cumprod, axis=1),
             case="with zeros"),
]  # fmt: skip
