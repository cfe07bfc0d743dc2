"""Attention as one op: its record keeps the queries, keys and values, and not the weights, which are far larger."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import elementwise, nn, shape
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

__all__ = ["attention", "attention_gradient", "dot_product_attention"]


@op
def attention(xp, *arrays, scale, causal):
    """softmax(scale · q kᵀ) v of (q, k, v), or of (q, k, v, mask) where the mask is 1; heads are the last axis but one."""
    return xp.attention(*arrays, scale=scale, causal=causal)


@op
def attention_gradient(xp, *arrays, scale, causal):
    """The cotangents of q, k and v, from (cotangent of the result, q, k, v) and the mask."""
    return xp.attention_gradient(*arrays, scale=scale, causal=causal)


attention.vjp(
    lambda xp, g, arrays, *, scale, causal: (
        *xp.attention_gradient(g, *arrays, scale=scale, causal=causal),
        *[None] * (len(arrays) - 3),
    )
)


def _second_rule(xp, g, arrays, *, scale, causal):
    """With W = softmax(S), the gradient is linear in the upstream u, and its matrices are S' = W ∘ (u vᵀ - Σ) and W.

    Read with the three given cotangents in the place of what was computed, S' takes the part of u vᵀ in its own transpose.
    """
    u, q, k, v, *mask = (_heads_first(xp, x) if i < 4 else x for i, x in enumerate(arrays))
    by_q, by_k, by_v = (_heads_first(xp, part) for part in g)
    weights, allowed = _weights(xp, q, k, mask, scale, causal)
    # Where a query may look nowhere, weights are the same whatever the scores are.
    visible = (lambda x: x * xp.astype(allowed, dtype=xp.dtype(x))) if mask else (lambda x: x)
    upstream = xp.matmul(u, _turned(xp, v))
    scores = visible(_through_softmax(xp, weights, upstream) * scale)
    given = visible((xp.matmul(by_q, _turned(xp, k)) + xp.matmul(q, _turned(xp, by_k))) * scale)
    passed = _through_softmax(xp, weights, given)
    mixed = given * (upstream - _row_sum(xp, weights * upstream)) - upstream * _row_sum(xp, weights * given)
    by_weights = mixed + xp.matmul(u, _turned(xp, by_v))
    by_scores = visible(_through_softmax(xp, weights, by_weights) * scale)
    parts = (
        xp.matmul(passed, v) + xp.matmul(weights, by_v),
        xp.matmul(by_scores, k) + xp.matmul(scores, by_k),
        xp.matmul(_turned(xp, by_scores), q) + xp.matmul(_turned(xp, scores), by_q),
        xp.matmul(_turned(xp, passed), u),
    )
    return [*(_heads_first(xp, part) for part in parts), *[None] * len(mask)]


attention_gradient.vjp(_second_rule)


def _heads_first(xp, x):
    return xp.transpose(x, axes=(0, 2, 1, 3))


def _turned(xp, x):
    return xp.matrix_transpose(x)


def _row_sum(xp, x):
    return xp.sum(x, axis=-1, keepdims=True)


def _through_softmax(xp, weights, x):
    return weights * (x - _row_sum(xp, weights * x))


def _weights(xp, q, k, mask, scale, causal):
    """The weights, and where a query may look (None: everywhere)."""
    scores = xp.matmul(q, _turned(xp, k)) * scale
    dtype = xp.dtype(scores)
    allowed = mask[0] > 0 if mask else None
    if causal:
        queries, keys = xp.shape(scores)[-2:]
        row = xp.arange(start=0, stop=queries, step=1, dtype=np.dtype(np.int32))
        column = xp.arange(start=0, stop=keys, step=1, dtype=np.dtype(np.int32))
        triangle = xp.expand_dims(row, axis=1) >= column
        allowed = triangle if allowed is None else xp.logical_and(allowed, triangle)
    if allowed is not None:
        scores = xp.where(allowed, scores, xp.full(shape=(), value=_lowest(dtype), dtype=dtype))
    powers = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return powers / _row_sum(xp, powers), allowed


def _lowest(dtype: Any) -> float:
    return -0.7 * float(np.finfo(dtype if dtype.itemsize > 2 else np.float32).max)


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: float | None = None, is_causal: bool = False
) -> Tensor:
    """For each query the mean of the values, weighted by softmax(scale · query · key + bias).

    query, key and value have the shapes (examples, length, heads, depth), or (length, heads, depth). ``mask`` is true where a
    query may look at a key, of a shape that broadcasts to (examples, heads, queries, keys); ``is_causal`` hides the keys after
    the query's own place; ``scale`` is 1/√depth by default. Without a ``bias`` the weights are never kept; on a GPU, in half
    precision, not even computed all at once.
    """
    query, key, value = _same_kind(query, key, value)
    if query.ndim == 3:
        query, key, value = (shape.expand_dims(x, axis=0) for x in (query, key, value))
        whole = dot_product_attention(query, key, value, bias, mask, scale, is_causal)
        return shape.squeeze(whole, axis=(0,))
    scale = 1 / math.sqrt(query._array.shape[-1]) if scale is None else float(scale)
    sizes = (*query._array.shape[:3:2], query._array.shape[1], key._array.shape[1])
    allowed = () if mask is None else (_mask(mask, sizes, query),)
    if bias is None:
        return attention(query, key, value, *allowed, scale=scale, causal=bool(is_causal))
    return _with_bias(query, key, value, convert_to_tensor(bias, query.dtype), allowed, sizes, scale, is_causal)


def _with_bias(query, key, value, bias, allowed, sizes, scale, causal):
    """Written out, because a bias has a gradient of its own; half precision in float32 up to the weights."""
    q, k, v = (shape.transpose(x, axes=(0, 2, 1, 3)) for x in (query, key, value))
    if query.dtype.size == 2:
        q, k, bias = (elementwise.cast(x, "float32") for x in (q, k, bias))
    scores = (q @ shape.matrix_transpose(k)) * scale + bias
    visible = [allowed[0] > 0] if allowed else []
    visible += [convert_to_tensor(np.tri(*sizes[2:], dtype=bool))] if causal else []
    for part in visible:
        scores = elementwise.where(part, scores, convert_to_tensor(_lowest(scores._array.dtype), scores.dtype))
    weights = elementwise.cast(nn.softmax(scores, axis=-1), v.dtype)
    return shape.transpose(weights @ v, axes=(0, 2, 1, 3))


def _same_kind(*given: Any) -> list[Tensor]:
    tensors = [convert_to_tensor(x) for x in given]
    shapes = [t._array.shape for t in tensors]
    q, k, v = shapes
    fits = len(q) in (3, 4) and len({len(s) for s in shapes}) == 1 and k[:-1] == v[:-1] and q[-1] == k[-1]
    if not (fits and q[-2] == k[-2] and q[:-3] == k[:-3] and len({t.dtype for t in tensors}) == 1):
        raise InvalidArgumentError(
            message(
                "dot_product_attention: query, key and value do not fit together.",
                received=", ".join(f"{t.dtype.name} {s}" for t, s in zip(tensors, shapes)),
                expected="one dtype, and (examples, queries, heads, depth), (examples, keys, heads, depth), "
                "(examples, keys, heads, any)",
            )
        )
    return tensors


def _mask(mask: Any, sizes: tuple[int, ...], like: Tensor) -> Tensor:
    """A mask as numbers, of four axes."""
    mask = elementwise.cast(convert_to_tensor(mask), like.dtype)
    own = mask._array.shape
    missing = 4 - len(own)
    full = (*(1,) * missing, *own)
    if missing < 0 or any(n not in (1, size) for n, size in zip(full, sizes)):
        raise InvalidArgumentError(
            message(
                "dot_product_attention: the mask does not fit.",
                received=f"a mask of shape {own}",
                expected=f"a shape that broadcasts to (examples, heads, queries, keys) = {sizes}",
            )
        )
    return shape.broadcast_to(shape.reshape(mask, shape=full), shape=(*full[:2], *sizes[2:]))
