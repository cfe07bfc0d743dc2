"""Records of gradtape/ops/guarded.py, in its order."""

import numpy as np
import scipy.special

from gradtape.errors import InvalidArgumentError
from gradtape.ops import guarded as ops
from gradtape.testing import OpRecord

INTEGERS = [(lambda: (np.array([1]), np.array([2])), InvalidArgumentError, "not in the list of allowed values")]


def pair(rng):
    return [(rng.normal(size=(2, 3)), rng.uniform(0.5, 2.0, (2, 3)))]


def record(name, reference, **options):
    return OpRecord(name, getattr(ops, name), pair, reference, broadcasting=True, **options)


def divide_no_nan(x, y):
    return np.where(y == 0, 0, x / np.where(y == 0, 1, y))


RECORDS = [
    record("divide_no_nan", divide_no_nan, complex=True),
    record("multiply_no_nan", lambda x, y: np.where(y == 0, 0, x * np.where(y == 0, 1, y)), complex=True, bad=INTEGERS),
    record("xlogy", scipy.special.xlogy, bad=INTEGERS),
    record("xlog1py", scipy.special.xlog1py, bad=INTEGERS),
    record("xdivy", lambda x, y: np.where(x == 0, 0, x / np.where(x == 0, 1, y)), bad=INTEGERS),
]
