"""Random samples as functions of their parameters, on jax arrays."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax


def random_gamma_grad(alpha, sample):
    """dx/dalpha of a sample x of Gamma(alpha, 1) at a fixed quantile."""
    alpha, sample = jnp.broadcast_arrays(alpha, sample)
    wide = np.float32 if sample.dtype.itemsize == 2 else sample.dtype
    return lax.random_gamma_grad(alpha.astype(wide), sample.astype(wide)).astype(sample.dtype)


def gamma_sample(alpha, sample):
    return jnp.broadcast_to(sample, np.broadcast_shapes(alpha.shape, sample.shape))


def truncated_sample(mean, stddev, low, high, quantile, sample):
    return jnp.broadcast_to(sample, np.broadcast_shapes(*(a.shape for a in (mean, stddev, low, high, quantile, sample))))
