"""Attention: one op that keeps no weights, for as many query heads as share a key head."""

from __future__ import annotations

from typing import Any

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import in_dtype, tensor, together
from gradtape.ops import attention
from gradtape.ops import shape as shapes
from gradtape.values.tensor import Tensor

__all__ = ["dot_product_attention"]


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: float | None = None, is_causal: bool = False,
    flash_attention: bool | None = None, attn_logits_soft_cap: float | None = None,
) -> Tensor:  # fmt: skip
    """softmax(scale · query · key + bias) · value, of (batch, length, heads, depth).

    Without a bias the weights are never kept, whatever ``flash_attention`` says; where the device has a fused kernel for the
    shapes, it is used. ``attn_logits_soft_cap`` belongs to TPUs, and Keras refuses it elsewhere.
    """
    query, key, value = together(query, key, value, also=(float,))
    if any(x._array.ndim != 4 for x in (query, key, value)):
        shown = ", ".join(f"{name}.shape={tuple(x.shape)}" for name, x in zip(("query", "key", "value"), (query, key, value)))
        text = f"`dot_product_attention` only supports 4D inputs. Received: {shown}."
        raise ValueError(message(text, expected="(batch, length, heads, depth)"))
    heads, shared = query._array.shape[2], key._array.shape[2]
    if heads != shared and shared and heads % shared == 0:
        key, value = (shapes.repeat(x, repeats=heads // shared, axis=2) for x in (key, value))
    bias = None if bias is None else _four_axes(in_dtype(bias, query.dtype.name), heads)
    mask = None if mask is None else _four_axes(tensor(mask), heads)
    return attention.dot_product_attention(query, key, value, bias, mask, scale, is_causal)


def _four_axes(x: Tensor, heads: int) -> Tensor:
    """(batch, heads, queries, keys) of what has fewer axes: (batch, heads, keys), (batch, queries, keys), (queries, keys) …"""
    if x._array.ndim == 3:
        return shapes.expand_dims(x, axis=2 if x._array.shape[1] == heads else 1)
    return shapes.reshape(x, shape=(*[1] * (4 - x._array.ndim), *x._array.shape))
