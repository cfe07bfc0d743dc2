"""Random samples as functions of their parameters, on NumPy arrays."""

from __future__ import annotations

import numpy as np

from gradtape.xp.poles import noted

# Sixth-order central difference: the weights at 1, 2 and 3 steps.
_WEIGHTS = (45 / 60, -9 / 60, 1 / 60)


def random_gamma_grad(alpha, sample):
    """dx/dalpha of a sample x of Gamma(alpha, 1) at a fixed quantile, to about 1e-10.

    The distribution function on the sample's side of the mode keeps its relative accuracy in the tail; it is differenced
    over steps of 1/50 of the length on which it changes: √alpha, alpha when small, 1 / |log x|.
    """
    from scipy.special import gammainc, gammaincc, gammaln

    a, x = np.broadcast_arrays(alpha.astype(np.float64), sample.astype(np.float64))
    with np.errstate(all="ignore"):
        step = 0.02 * np.minimum(np.minimum(np.sqrt(a), a), 1 / (1 + np.abs(np.log(x / a))))
        below = x < a
        change = np.zeros(a.shape)
        for k, weight in enumerate(_WEIGHTS, 1):
            lower = gammainc(a + k * step, x) - gammainc(a - k * step, x)
            upper = gammaincc(a - k * step, x) - gammaincc(a + k * step, x)
            change += weight * np.where(below, lower, upper)
        density = np.exp((a - 1) * np.log(x) - x - gammaln(a))
        return noted((-change / step / density).astype(sample.dtype))


def gamma_sample(alpha, sample):
    """The sample; its derivative with respect to alpha is `random_gamma_grad`."""
    return np.broadcast_to(sample, np.broadcast_shapes(alpha.shape, sample.shape))


def truncated_sample(mean, stddev, low, high, quantile, sample):
    """The sample, which keeps its quantile when the parameters move."""
    return np.broadcast_to(sample, np.broadcast_shapes(*(a.shape for a in (mean, stddev, low, high, quantile, sample))))
