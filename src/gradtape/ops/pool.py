"""Pooling: the largest or the mean element of each window, and morphological dilation."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import arguments, elementwise, indexing, reduce, spatial
from gradtape.ops import conv as convolutions
from gradtape.ops import shape as shapes
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor


def _least(dtype):
    """The least finite number: what TensorFlow's dilation of nothing gives."""
    return float(dtypes.of(dtype)._limits.min)


def _lowest(dtype):
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _counts(lengths, size, strides, dilations):
    return tuple((n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(lengths, size, strides, dilations))


def _padded(xp, x, padding, value):
    return xp.pad(x, widths=((0, 0), *padding, (0, 0)), value=value) if any(map(any, padding)) else x


def _cropped(xp, x, padding, lengths):
    if not any(map(any, padding)):
        return x
    return xp.getitem(x, index=(slice(None), *(slice(low, low + n) for (low, _), n in zip(padding, lengths))))


def _elements(xp, x, position, counts, strides, dilations):
    """The element at ``position`` of every window."""
    starts = [k * d for k, d in zip(position, dilations)]
    rows = (slice(start, start + (count - 1) * s + 1, s) for start, count, s in zip(starts, counts, strides))
    return xp.getitem(x, index=(slice(None), *rows))


def _combined(xp, x, combine, size, strides, dilations):
    """Windows combined along one axis after the other: k + k elements to visit instead of k · k."""
    n = len(size)
    for axis in range(n):
        one = [1] * n
        counts, steps, gaps = list(xp.shape(x)[1:-1]), one[:], one[:]
        counts[axis] = (counts[axis] - (size[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
        steps[axis], gaps[axis] = strides[axis], dilations[axis]
        at = ([k if i == axis else 0 for i in range(n)] for k in range(size[axis]))
        x = functools.reduce(combine, (_elements(xp, x, position, counts, steps, gaps) for position in at))
    return x


@op(label="MaxPool")
def max_pool(xp, x, *, size, strides, padding, dilations):
    """The largest element of each window of (examples, *space, channels); padding never wins."""
    padded = _padded(xp, x, padding, _lowest(xp.dtype(x)))
    return _combined(xp, padded, xp.maximum, size, strides, dilations)


def _max_pool_rule(xp, g, out, x, *, size, strides, padding, dilations):
    """The cotangent to the first of the largest elements, in the order of memory."""
    padded = _padded(xp, x, padding, _lowest(xp.dtype(x)))
    lengths, counts = xp.shape(padded)[1:-1], xp.shape(out)[1:-1]
    zero = xp.zeros(shape=(), dtype=xp.dtype(g))
    parts, free = [], None
    for position in itertools.product(*map(range, size)):
        hit = xp.equal(_elements(xp, padded, position, counts, strides, dilations), out)
        if free is not None:
            hit = xp.logical_and(hit, free)
        missed = xp.logical_not(hit)
        free = missed if free is None else xp.logical_and(free, missed)
        parts.append(xp.where(hit, g, zero))
    batch, channels = xp.shape(x)[0], xp.shape(x)[-1]
    routed = xp.reshape(xp.stack(*parts, axis=len(size) + 1), shape=(batch, *counts, *size, channels))
    back = xp.windows_transpose(routed, strides=strides, dilations=dilations, lengths=lengths)
    return _cropped(xp, back, padding, xp.shape(x)[1:-1])


max_pool.vjp(_max_pool_rule)


def _sizes(lengths, size, strides, padding, dilations, dtype):
    """How many elements of each window lie in the array, not in the padding: (*positions, 1)."""
    whole = np.ones((), dtype)
    for n, k, s, (low, high), d in zip(lengths, size, strides, padding, dilations):
        there = np.zeros(n + low + high, dtype)
        there[low : low + n] = 1
        (count,) = _counts([n + low + high], [k], [s], [d])
        whole = whole[..., None] * sum(there[i * d : i * d + (count - 1) * s + 1 : s] for i in range(k))
    return whole[..., None]


@op(label="AvgPool")
def avg_pool(xp, x, *, size, strides, padding, dilations):
    """The mean of each window of (examples, *space, channels), without the padding."""
    dtype = xp.dtype(x)
    wide = xp.astype(x, dtype=np.dtype(np.float32)) if dtype.itemsize == 2 else x
    total = _combined(xp, _padded(xp, wide, padding, 0), xp.add, size, strides, dilations)
    mean = xp.divide(total, _sizes(xp.shape(x)[1:-1], size, strides, padding, dilations, xp.dtype(wide)))
    return xp.astype(mean, dtype=dtype) if dtype.itemsize == 2 else mean


def _avg_pool_rule(xp, g, *, size, strides, padding, dilations, x_shape):
    lengths = x_shape[1:-1]
    share = xp.divide(g, _sizes(lengths, size, strides, padding, dilations, xp.dtype(g)))
    batch, *counts, channels = xp.shape(g)
    share = xp.reshape(share, shape=(batch, *counts, *[1] * len(size), channels))
    spread = xp.broadcast_to(share, shape=(batch, *counts, *size, channels))
    padded = tuple(n + low + high for n, (low, high) in zip(lengths, padding))
    back = xp.windows_transpose(spread, strides=strides, dilations=dilations, lengths=padded)
    return _cropped(xp, back, padding, lengths)


avg_pool.vjp(_avg_pool_rule)


@op(label="MaxPoolWithArgmax")
def max_pool_argmax(xp, x, *, size, strides, padding, dilations, include_batch):
    """Where the first of the largest elements of each window is, counting the elements of an example (or of all)."""
    shape = xp.shape(x)
    found = xp.windows(_padded(xp, x, padding, _lowest(xp.dtype(x))), size=size, strides=strides, dilations=dilations)
    n, counts = len(size), xp.shape(found)[1 : len(size) + 1]
    flat = xp.reshape(found, shape=(shape[0], *counts, int(np.prod(size)), shape[-1]))
    which = xp.astype(xp.argmax(flat, axis=n + 1), dtype=np.dtype(np.int64))
    steps = [int(np.prod(shape[axis + 1 :])) for axis in range(1, n + 1)]
    within = sum(np.indices(size)[i].reshape(-1) * dilations[i] * steps[i] for i in range(n))
    corner = np.arange(shape[-1])
    for i in reversed(range(n)):
        first = (np.arange(counts[i]) * strides[i] - padding[i][0]) * steps[i]
        corner = first.reshape(-1, *[1] * corner.ndim) + corner
    if include_batch:
        corner = np.arange(shape[0]).reshape(-1, *[1] * corner.ndim) * int(np.prod(shape[1:])) + corner
    return xp.add(xp.take(within.astype(np.int64), which, axis=0), corner.astype(np.int64))


max_pool_argmax.nondifferentiable()


# What users call

_REAL = "bfloat16, half, float, double, int32, int64, uint8, int16, int8, uint16"


def pool(
    x: Any, kind: str, n: int, *, size: Any, strides: Any = 1, padding: Any = "VALID", dilations: Any = 1,
    data_format: str | None = None, pick: Any = None,
) -> Any:  # fmt: skip
    """Pooling of one kind, "MAX" or "AVG", over ``n`` axes of space; ``pick`` is another op of windows to apply."""
    label = ("MaxPool" if kind == "MAX" else "AvgPool") + ("3D" if n == 3 else "")
    first = convolutions.channels_first(data_format, n)
    x = convert_to_tensor(x)
    kinds = "biucO" if kind == "AVG" else "bcO"
    if x._array.dtype.kind in kinds and x.dtype is not dtypes.bfloat16:
        raise arguments.not_allowed(label, x._array.dtype, "half, bfloat16, float, double" if kind == "AVG" else _REAL)
    convolutions.check_array(x, n, label)
    size = convolutions.per_axis(size, n, first, "ksize")
    strides = convolutions.per_axis(strides, n, first, "strides")
    dilations = convolutions.per_axis(dilations, n, first, "dilations")
    x, batch = convolutions.with_one_batch_axis(convolutions.to_channels_last(x, n, first), n)
    lengths = x._array.shape[1:-1]
    pairs = convolutions.pads(padding, first, lengths, size, strides, dilations)
    for pair, k, d, sides in zip(pairs, size, dilations, (("Top", "Bottom"), ("Left", "Right"), ("Front", "Back"))):
        for width, side in zip(pair, sides):
            if width > (k - 1) * d:
                text = f"{side} padding {width} needs to be smaller than the window size {(k - 1) * d + 1} [Op:{label}]"
                raise InvalidArgumentError(
                    message(text, received=f"padding {pairs} of windows {size}", expected="padding smaller than the window")
                )
    convolutions.positions(lengths, pairs, size, strides, dilations, label, empty=False)
    chosen = pick or (max_pool if kind == "MAX" else avg_pool)
    out = chosen(x, size=size, strides=strides, padding=pairs, dilations=dilations)
    return convolutions.from_channels_last(convolutions.with_batch_axes(out, batch), n, first)


def max_pool_with_argmax(
    x: Any, *, size: Any, strides: Any, padding: Any, data_format: str, dtype: Any, include_batch: bool
) -> tuple[Tensor, Tensor]:
    """The largest element of each window and where it is."""
    if data_format != "NHWC":
        text = f"`data_format` values other than 'NHWC' are not supported. Received: data_format={data_format}"
        raise ValueError(message(text, fix="tf.transpose(input, [0, 2, 3, 1]) puts the channels last"))
    where = {"size": size, "strides": strides, "padding": padding}
    at = pool(x, "MAX", 2, pick=functools.partial(max_pool_argmax, include_batch=include_batch), **where)
    return pool(x, "MAX", 2, **where), elementwise.cast(at, dtypes.as_dtype(dtype))


def dilation(x: Any, filters: Any, *, strides: Any, padding: str, data_format: str, dilations: Any) -> Tensor:
    """max over the window of x + filter, channel by channel: morphology in grey."""
    if data_format != "NHWC":
        text = f"`data_format` values other than 'NHWC' are not supported. Received: data_format={data_format}"
        raise ValueError(message(text, fix="tf.transpose(input, [0, 2, 3, 1]) puts the channels last"))
    x = convert_to_tensor(x)
    w = convert_to_tensor(filters, dtype_hint=x.dtype)
    arguments.real_floating("Dilation2D", x)
    convolutions.check_array(x, 2, "Dilation2D")
    if w._array.ndim != 3 or w._array.shape[-1] != x._array.shape[-1]:
        raise InvalidArgumentError(
            message(
                f"input and filter must have the same depth: {x._array.shape[-1]} vs {w._array.shape[-1:]} [Op:Dilation2D]",
                received=f"input {x._array.shape}, filters {w._array.shape}",
                expected=f"filters of shape (height, width, {x._array.shape[-1]})",
            )
        )
    size = w._array.shape[:-1]
    strides = convolutions.per_axis(strides, 2, False, "strides")
    dilations = convolutions.per_axis(dilations, 2, False, "dilations")
    lengths = x._array.shape[1:-1]
    pairs = convolutions.pads(padding, False, lengths, size, strides, dilations)
    counts = convolutions.positions(lengths, pairs, size, strides, dilations, "Dilation2D")
    if any(map(any, pairs)):
        x = shapes.pad(x, widths=((0, 0), *pairs, (0, 0)), value=_least(x._array.dtype))
    found = elementwise.add(spatial.windows(x, size=size, strides=strides, dilations=dilations), w)
    flat = shapes.reshape(found, shape=(x._array.shape[0], *counts, size[0] * size[1], x._array.shape[-1]))
    return reduce.max(flat, axis=3)


def erosion(x: Any, filters: Any, *, strides: Any, padding: str, data_format: str, dilations: Any) -> Tensor:
    """min over the window of x - filter: the dilation of -x by the mirrored filter, negated."""
    w = convert_to_tensor(filters)
    mirrored = indexing.getitem(w, index=(slice(None, None, -1), slice(None, None, -1)))
    where = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": dilations}
    return elementwise.negative(dilation(elementwise.negative(convert_to_tensor(x)), mirrored, **where))
