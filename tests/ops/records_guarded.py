"""Records of gradtape/ops/guarded.py, in its order."""

import numpy as np

import gradtape as tf
from gradtape.ops import elementwise
from gradtape.ops import guarded as ops
from gradtape.testing import OpRecord

INVALID = tf.errors.InvalidArgumentError
INTEGERS = [(lambda: (tf.constant([1]), tf.constant([2])), INVALID, "is not in the list of allowed values")]


def positive(rng):
    return [(rng.uniform(0.5, 2, (2, 3)), rng.uniform(0.5, 2, (2, 3)))]


def guarded(function, where):
    """function(x, y), but 0 where the argument chosen by ``where`` is 0."""

    def reference(x, y):
        with np.errstate(all="ignore"):
            return np.where(np.broadcast_arrays(x, y)[where] == 0, 0, function(x, y))

    return reference


def record(name, function, where, **options):
    options = {"broadcasting": True, "extremes": True, "complex": True, **options}
    return OpRecord(name, getattr(ops, name), positive, guarded(function, where), **options)


def at_zero(name, where):
    """Only one argument is differentiated, at a point where the other is 0."""

    def function(x):
        zero = elementwise.zeros_like(x)
        return getattr(ops, name)(*((zero, x) if where == 0 else (x, zero)))

    return OpRecord(name, function, lambda rng: [(np.array([0.5, 2.0]),)], np.zeros_like, case="at 0")


RECORDS = [
    record("divide_no_nan", np.divide, 1),
    at_zero("divide_no_nan", 1),
    record("multiply_no_nan", np.multiply, 1, bad=INTEGERS),
    at_zero("multiply_no_nan", 1),
    record("xlogy", lambda x, y: x * np.log(y), 0, bad=INTEGERS),
    at_zero("xlogy", 0),
    record("xlog1py", lambda x, y: x * np.log1p(y), 0, bad=INTEGERS),
    at_zero("xlog1py", 0),
    record("xdivy", lambda x, y: x / y, 0, bad=INTEGERS),
    at_zero("xdivy", 0),
]
