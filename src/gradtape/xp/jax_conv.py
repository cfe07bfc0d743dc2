"""Convolution on jax arrays: XLA's, and its transposes. Layouts as in `numpy_conv`."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _wide(function):
    """Half types compute in float32; devices other than the CPU do that by themselves, from half types."""

    def call(x, y, **attributes):
        if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" and jax.default_backend() == "cpu":
            return function(x.astype(np.float32), y.astype(np.float32), **attributes).astype(x.dtype)
        return function(x, y, **attributes)

    return call


def _conv(x, w, *, strides, padding, dilations, groups):
    n = x.ndim - 2
    array = (0, n + 1, *range(1, n + 1))
    layout = lax.ConvDimensionNumbers(array, (n + 1, n, *range(n)), array)
    return lax.conv_general_dilated(
        x, w, strides, padding, rhs_dilation=dilations, dimension_numbers=layout, feature_group_count=groups,
        precision=lax.Precision.HIGHEST,
    )  # fmt: skip


# XLA's convolutions on the CPU are made for many channels. With few of them, a sum over the places of the filter is many times
# faster: it becomes one loop.

_FEW_PRODUCTS = 27
"""At most this many per result: a sum over places is then faster than a convolution, three channels of 3 × 3 included."""
_SMALL = 2**21
"""Elements that stay in the cache."""


def _places(shape, size, strides, dilations):
    """For each place of a filter: which it is, and from where to where it reads an array of this shape, with which steps."""
    counts = [(m - (k - 1) * d - 1) // s + 1 for m, k, s, d in zip(shape[1:], size, strides, dilations)]
    for place in itertools.product(*(range(k) for k in size)):
        starts = [k * d for k, d in zip(place, dilations)]
        limits = [start + (count - 1) * s + 1 for start, count, s in zip(starts, counts, strides)]
        yield place, (0, *starts, 0), (shape[0], *limits, shape[-1]), (1, *strides, 1)


def _is_depthwise(w, groups):
    return groups > 1 and w.shape[-2] == 1 and w.shape[-1] == groups


def _sum_over_places(x, w, *, strides, padding, dilations, groups):
    """A convolution of one channel at a time; with one group, of all its channels one after the other."""
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((low, high, 0) for low, high in padding), (0, 0, 0)])
    total = 0
    for place, starts, limits, steps in _places(x.shape, w.shape[:-2], strides, dilations):
        part = lax.slice(x, starts, limits, steps)
        if groups > 1:
            total = total + part * w[place][0]
        else:
            for channel in range(w.shape[-2]):
                total = total + part[..., channel : channel + 1] * w[place][channel]
    return total


def _on_cpu(*arrays):
    return jax.default_backend() == "cpu" and all(0 not in array.shape for array in arrays)


@_wide
def conv(x, w, **attributes):
    groups = attributes["groups"]
    few = groups == 1 and np.prod(w.shape[:-1]) <= _FEW_PRODUCTS
    if (few or _is_depthwise(w, groups)) and _on_cpu(x, w):
        return _sum_over_places(x, w, **attributes)
    return _conv(x, w, **attributes)


@_wide
def conv_input(g, w, *, lengths, **attributes):
    """The transpose of `conv` in its first argument, of the spatial ``lengths``."""
    groups = attributes["groups"]
    if groups == 1 and np.prod(g.shape[:-1]) * np.prod(w.shape[:-1]) <= _SMALL and _on_cpu(g, w):
        return _one_product(g, w, lengths=lengths, **attributes)
    shape = jax.ShapeDtypeStruct((g.shape[0], *lengths, groups * w.shape[-2]), g.dtype)
    direct = _sum_over_places if _is_depthwise(w, groups) and _on_cpu(g, w) else _conv
    return jax.linear_transpose(lambda x: direct(x, w, **attributes), shape)(jnp.asarray(g))[0]


def _one_product(g, w, *, lengths, strides, padding, dilations, groups):
    """`conv_input` as one matrix product, whose parts are added where the places of the filter read."""
    product = jnp.tensordot(g, w, [[-1], [-1]], precision=lax.Precision.HIGHEST)  # examples, positions, places, channels
    n = len(lengths)
    padded = (g.shape[0], *(low + m + high for m, (low, high) in zip(lengths, padding)), w.shape[-2])
    total = 0
    for place, starts, limits, steps in _places(padded, w.shape[:-2], strides, dilations):
        part = product[(slice(None),) * (n + 1) + place]
        around = [
            (start - low, m - limit - high, step - 1)
            for start, limit, step, m, (low, high) in zip(starts[1:-1], limits[1:-1], steps[1:-1], padded[1:-1], padding)
        ]
        total = total + lax.pad(part, jnp.zeros((), part.dtype), [(0, 0, 0), *around, (0, 0, 0)])
    return total


@_wide
def conv_filter(x, g, *, size, **attributes):
    """The transpose of `conv` in its second argument, of the spatial ``size``."""
    groups = attributes["groups"]
    shape = jax.ShapeDtypeStruct((*size, x.shape[-1] // groups, g.shape[-1]), g.dtype)
    direct = _sum_over_places if _is_depthwise(shape, groups) and _on_cpu(x, g) else _conv
    return jax.linear_transpose(lambda w: direct(x, w, **attributes), shape)(jnp.asarray(g))[0]


def windows(x, *, size, strides, dilations):
    """(examples, *positions, *size, channels): every window of ``x``."""
    n = len(size)
    counts = [max(0, (m - (k - 1) * d - 1) // s + 1) for m, k, s, d in zip(x.shape[1:], size, strides, dilations)]
    shape = (x.shape[0], *counts, *size, x.shape[-1])
    if 0 in shape:
        return jnp.zeros(shape, x.dtype)
    parts = [lax.slice(x, *cut) for _, *cut in _places(x.shape, size, strides, dilations)]
    return jnp.stack(parts, n + 1).reshape(shape)


def windows_transpose(x, *, strides, dilations, lengths):
    """Add windows back where `windows` read them, in zeros of the spatial ``lengths``."""
    n = len(lengths)
    size = x.shape[n + 1 : -1]
    shape = jax.ShapeDtypeStruct((x.shape[0], *lengths, x.shape[-1]), x.dtype)
    read = jax.linear_transpose(lambda a: windows(a, size=size, strides=strides, dilations=dilations), shape)
    return read(jnp.asarray(x))[0]
