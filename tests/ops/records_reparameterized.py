"""Records of gradtape/ops/reparameterized.py, in its order.

The samples are functions of their parameters only through a rule, so records give the inverse distribution function by name:
a numerical derivative of the kernel, which returns what was drawn, would be 0.
"""

import numpy as np
import scipy.special

from gradtape.ops import reparameterized as ops
from gradtape.testing import OpRecord


def pairs(rng):
    return [(rng.uniform(0.5, 4, (2, 3)), rng.uniform(0.3, 4, (2, 3)))]


def moved(alpha, x):
    """A difference of the inverse distribution function at the quantile of x."""
    quantile, step = scipy.special.gammainc(alpha, x), 1e-3 * alpha
    at = [scipy.special.gammaincinv(alpha + k * step, quantile) for k in (-2, -1, 1, 2)]
    return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step)


RECORDS = [
    OpRecord("gamma_sample", ops.gamma_sample, pairs, lambda alpha, sample: sample, order=0),
    # float16 rounds the sample itself; order 2 is the derivative of a difference quotient.
    OpRecord("random_gamma_grad", ops.random_gamma_grad, pairs, moved, order=1, half_tolerance=4),
    OpRecord("truncated_sample", ops.truncated_sample,
             lambda rng: [(np.zeros(3), np.ones(3), np.full(3, -2.0), np.full(3, 2.0), np.full(3, 0.5), np.zeros(3))],
             lambda mean, stddev, low, high, quantile, sample: sample, order=0),
]  # fmt: skip
