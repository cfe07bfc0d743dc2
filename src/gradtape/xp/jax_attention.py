"""Attention on jax arrays: cuDNN's fused kernels where there are some, else as in `attention`.

The fused kernels never write the weights to memory: on a GPU that is most of the time of attention.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from gradtape.xp import attention as written

_DEEPEST = 128
"""The fused kernels take no more features per head, on every chip that has them."""


def attention(q, k, v, *mask, scale, causal):
    if not _can_fuse(q, k, v):
        return written.attention(jnp, q, k, v, *mask, scale=scale, causal=causal)
    # The forward pass of a derivative, even where none is wanted: the gradient makes the same call, and XLA runs it once.
    return jax.vjp(_fused(mask, scale, causal), q, k, v)[0]


def attention_gradient(g, q, k, v, *mask, scale, causal):
    if not _can_fuse(q, k, v):
        return written.attention_gradient(jnp, g, q, k, v, *mask, scale=scale, causal=causal)
    return jax.vjp(_fused(mask, scale, causal), q, k, v)[1](g)


def _fused(mask, scale, causal):
    allowed = mask[0] > 0 if mask else None
    return partial(_call, mask=allowed, scale=scale, is_causal=causal)


def _call(q, k, v, **options):
    return jax.nn.dot_product_attention(q, k, v, implementation="cudnn", **options)


def _can_fuse(q, k, v) -> bool:
    half = all(x.dtype in (jnp.bfloat16, jnp.float16) and x.dtype == q.dtype for x in (k, v))
    fits = q.ndim == 4 and q.shape[-1] == v.shape[-1] <= _DEEPEST and q.shape[-1] % 8 == 0
    long = q.shape[1] > 1 and q.shape[1] % 2 == k.shape[1] % 2 == 0
    return half and fits and long and jax.default_backend() == "gpu" and 0 not in q.shape + k.shape
