"""Limiting values and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.op import op
from gradtape.errors import message
from gradtape.ops import elementwise, reduce
from gradtape.ops.arguments import axes as as_axes
from gradtape.ops.arguments import floating
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor


@op(label="ClipByValue", elementwise=True)
def clip(xp, x, low, high):
    """x limited to [low, high]; where low > high the result is low."""
    return xp.maximum(xp.minimum(x, high), low)


def _outside(xp, x, low, high):
    return xp.logical_or(xp.less(x, low), xp.greater(x, high))


clip.vjp(
    lambda xp, g, x, low, high: xp.where(_outside(xp, x, low, high), xp.zeros_like(g), g),  # 1 on the limits themselves
    lambda xp, g, x, low: xp.where(xp.less(x, low), g, xp.zeros_like(g)),
    lambda xp, g, x, high: xp.where(xp.greater(x, high), g, xp.zeros_like(g)),
)


def _on_values(function: Any, x: IndexedSlices, *args: Any) -> IndexedSlices:
    return IndexedSlices(function(x.values, *args), x.indices, x.dense_shape)


def clip_by_value(x: Any, low: Any, high: Any) -> Any:
    """`clip` whose result has the shape of x: limits may not broadcast it."""
    if isinstance(x, IndexedSlices):
        return _on_values(clip_by_value, x, low, high)
    x = convert_to_tensor(x)
    out = clip(x, low, high)
    if out._array.shape != x._array.shape:
        raise ValueError(
            message(
                f"Shapes {x._array.shape} and {out._array.shape} are incompatible",
                received="limits whose shape broadcasts the value",
                fix="broadcast the value first: tf.broadcast_to(t, shape)",
            )
        )
    return out


def clip_by_norm(x: Any, limit: Any, axes: Any = None) -> Any:
    """x · limit / max(‖x‖, limit), the norm taken over axes."""
    if isinstance(x, IndexedSlices):
        return _on_values(clip_by_norm, x, limit, axes)
    x = convert_to_tensor(x)
    floating("Sqrt", x)
    squares = reduce.sum(elementwise.square(x), axis=as_axes(axes), keepdims=True)
    some = elementwise.greater(squares, elementwise.zeros_like(squares))
    safe = elementwise.where(some, squares, elementwise.ones_like(squares))  # √0 has no finite derivative
    norm = elementwise.where(some, elementwise.sqrt(safe), squares)
    return elementwise.divide(elementwise.multiply(x, limit), elementwise.maximum(norm, limit))


def dense_parts(tensors: Any) -> list:
    """The tensors of a list of tensors, IndexedSlices (their values) and None."""
    if isinstance(tensors, (Tensor, str)) or not hasattr(tensors, "__iter__"):
        text = f"`t_list` should be a sequence of tensors. Received {type(tensors)}."
        raise TypeError(message(text, fix="tf.clip_by_global_norm([x], norm), or tf.clip_by_norm(x, norm) for one tensor"))
    parts: list = []
    for i, t in enumerate(tensors):
        if t is None:
            parts.append(None)
        elif isinstance(t, IndexedSlices):
            parts.append(t.values)
        else:
            parts.append(convert_to_tensor(t, name=f"t_{i}"))
    return parts


def global_norm(tensors: Any) -> Tensor:
    """√ Σ ‖t‖² over all tensors; None counts as nothing, equal indices of IndexedSlices as separate rows."""
    total = None
    for t in dense_parts(tensors):
        if t is not None:
            floating("L2Loss", t)
            part = reduce.sum(elementwise.square(t))
            total = part if total is None else elementwise.add(total, part)
    return convert_to_tensor(0.0) if total is None else elementwise.sqrt(total)


def clip_by_global_norm(tensors: Any, limit: Any, norm: Any = None) -> tuple[list, Tensor]:
    """Every tensor times limit / max(global norm, limit), and that norm; nan everywhere if the norm is not finite."""
    parts = dense_parts(tensors)
    tensors = list(tensors)
    if not tensors:
        return [], convert_to_tensor(0.0)
    norm = global_norm(parts) if norm is None else convert_to_tensor(norm)
    limit = convert_to_tensor(limit, norm.dtype) if not isinstance(limit, Tensor) else limit
    one = elementwise.ones_like(limit)
    scale = elementwise.multiply(limit, elementwise.minimum(elementwise.divide(one, norm), elementwise.divide(one, limit)))
    finite = elementwise.isfinite(norm)
    scale = elementwise.where(finite, scale, float("nan"))
    out: list = []
    for t, part in zip(tensors, parts):
        if part is None:
            out.append(None)
            continue
        scaled = elementwise.multiply(part, elementwise.cast(scale, part.dtype))
        out.append(IndexedSlices(scaled, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else scaled)
    return out, norm


def saturate_cast(value: Any, dtype: Any) -> Tensor:
    """A conversion that gives the nearest value of the new type where the old one does not fit."""
    x, wanted = convert_to_tensor(value), dtypes.as_dtype(dtype)
    if x.dtype.is_complex:
        if wanted.is_complex:
            return elementwise.cast(x, wanted)
        x = elementwise.real(x)
    if not (x.dtype.is_bool or wanted.is_bool or wanted.is_complex):
        x = clip(x, *_common_limits(x.dtype, wanted))
    return elementwise.cast(x, wanted)


def _common_limits(have: dtypes.DType, wanted: dtypes.DType) -> tuple[Tensor, Tensor]:
    """The range of ``wanted`` within that of ``have``, rounded inwards to values of ``have``."""
    limits = []
    for own, other, inward in ((have.min, wanted.min, np.inf), (have.max, wanted.max, -np.inf)):
        tighter = max(_whole(own), _whole(other)) if inward > 0 else min(_whole(own), _whole(other))
        limit = have.as_numpy_dtype(float(tighter) if have.is_floating else tighter)
        if have.is_floating and (_whole(limit) < tighter if inward > 0 else _whole(limit) > tighter):
            limit = np.nextafter(limit, have.as_numpy_dtype(inward))
        limits.append(convert_to_tensor(limit))
    return limits[0], limits[1]


def _whole(limit: Any) -> int:
    """A limit as a Python integer; NOTE: int() of a bfloat16 beyond int64 is wrong, of a float it is not."""
    return limit if isinstance(limit, int) else int(float(limit))
