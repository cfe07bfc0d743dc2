"""Random samples as functions of their parameters, on jax arrays."""

from __future__ import annotations

from functools import partial

import jax
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


# Philox (see ops.philox, whose words these are)


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def philox(seed, scramble, count, apart, length):
    """Blocks of the stateless stream of a seed, two integers, encrypted under the key ``scramble``: words (count, length, 4).

    The first two scrambled words are the key of the stream, the others the upper half of its counter.
    """
    low, high = _halves(seed)
    key = [jnp.full((), part, np.uint32) for part in (scramble % 2**32, scramble >> 32)]
    first, second, *upper = _encrypted(key, [low[0], high[0], low[1], high[1]])
    starts = lax.iota(np.uint64, count)[:, None] * np.uint64(apart)
    low, high = _halves(starts + lax.iota(np.uint64, length))
    return jnp.stack(_encrypted([first, second], [low, high, *(jnp.broadcast_to(w, low.shape) for w in upper)]), axis=-1)


def _halves(integers):
    """The lower and upper 32 bits, with the sign carried up."""
    wide = integers.astype(np.int64)
    return wide.astype(np.uint32), (wide >> 32).astype(np.uint32)


def _encrypted(key, block):
    """Ten rounds, as a loop: written out, they take seconds to compile."""

    def round(_, state):
        a, b, x, y, z, w = state
        left, right = x.astype(np.uint64) * np.uint64(0xD2511F53), z.astype(np.uint64) * np.uint64(0xCD9E8D57)
        x, y = (right >> 32).astype(np.uint32) ^ y ^ a, right.astype(np.uint32)
        z, w = (left >> 32).astype(np.uint32) ^ w ^ b, left.astype(np.uint32)
        return a + np.uint32(0x9E3779B9), b + np.uint32(0xBB67AE85), x, y, z, w

    return lax.fori_loop(0, 10, round, (*key, *block))[2:]
