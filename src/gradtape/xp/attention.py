"""Attention, in words that NumPy and jax.numpy share; every function takes the module as ``np``.

Layouts are (examples, length, heads, depth). A mask is 1 where a query may look at a key and 0 where it may not, of shape
(examples or 1, heads or 1, queries, keys). A query that may look nowhere gets the mean of all values.
"""

from __future__ import annotations

import math


def attention(np, q, k, v, *mask, scale, causal):
    """softmax(scale · q kᵀ) v, for each head."""
    weights, _ = _weights(np, *map(_heads_first, map(_wide(np), (q, k))), mask, scale, causal)
    return _heads_first(weights @ _heads_first(_wide(np)(v))).astype(q.dtype)


def attention_gradient(np, g, q, k, v, *mask, scale, causal):
    """The cotangents of q, k and v, given that of the result."""
    dtypes = [x.dtype for x in (q, k, v)]
    g, q, k, v = (_heads_first(_wide(np)(x)) for x in (g, q, k, v))
    weights, allowed = _weights(np, q, k, mask, scale, causal)
    by_weights = g @ _turned(v)
    by_scores = weights * (by_weights - (by_weights * weights).sum(-1, keepdims=True)) * scale
    if mask:  # where a query may look nowhere, weights are the same whatever the scores are
        by_scores = by_scores * allowed
    parts = by_scores @ k, _turned(by_scores) @ q, _turned(weights) @ g
    return tuple(_heads_first(part).astype(dtype) for part, dtype in zip(parts, dtypes))


def _weights(np, q, k, mask, scale, causal):
    """The weights, and where a query may look (None: everywhere)."""
    scores = (q @ _turned(k)) * scale
    allowed = mask[0] > 0 if mask else None
    if causal:
        triangle = np.tri(*scores.shape[-2:], dtype=bool)
        allowed = triangle if allowed is None else allowed & triangle
    if allowed is not None:
        scores = np.where(allowed, scores, np.asarray(-0.7 * float(np.finfo(scores.dtype).max), scores.dtype))
    if math.prod(scores.shape) == 0:
        return scores, allowed
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True), allowed


def _wide(np):
    return lambda x: x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _heads_first(x):
    return x.swapaxes(1, 2)


def _turned(x):
    return x.swapaxes(-1, -2)
