"""Records of gradtape/ops/quantize.py, in its order."""

import functools

import numpy as np

from gradtape.ops import quantize as ops
from gradtape.testing import OpRecord


def samples(rng):
    """Inside and outside of the limits, away from the middles between grid points."""
    return [(np.array([[-3.0, -0.55, 0.61], [1.02, 2.2, 9.0]]), np.array(-1.0), np.array(2.5))]


def reference(x, low, high):
    """Eight points from low to high, of which 0 happens to be one."""
    step = (high - low) / 7
    return np.round((np.clip(x, low, high) - low) / step) * step + low


RECORDS = [
    OpRecord("fake_quantize", functools.partial(ops.fake_quantize, bits=3, narrow=False), samples, reference,
             dtypes=("float64", "float32"),  # in half precision, points of the grid would be rounded away
             order=0),  # straight through: the numerical derivative of a staircase is 0
]  # fmt: skip
