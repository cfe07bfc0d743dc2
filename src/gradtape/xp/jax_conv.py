"""Convolution on jax arrays: XLA's, and its transposes. Layouts as in `numpy_conv`."""

from __future__ import annotations

import itertools
import math

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


# XLA's convolutions on the CPU are made for many channels. With few of them, other forms are many times faster.

_FEW_PRODUCTS = 27
"""At most this many per result: windows and one matrix product are then faster, three channels of 3 × 3 included."""


def _places(shape, size, strides, dilations):
    """For each place of a filter: which it is, and from where to where it reads an array of this shape, with which steps."""
    counts = [(m - (k - 1) * d - 1) // s + 1 for m, k, s, d in zip(shape[1:], size, strides, dilations)]
    for place in itertools.product(*(range(k) for k in size)):
        starts = [k * d for k, d in zip(place, dilations)]
        limits = [start + (count - 1) * s + 1 for start, count, s in zip(starts, counts, strides)]
        yield place, (0, *starts, 0), (shape[0], *limits, shape[-1]), (1, *strides, 1)


def _padded(x, padding):
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((low, high, 0) for low, high in padding), (0, 0, 0)])


def _is_depthwise(w, groups):
    return groups > 1 and w.shape[-2] == 1 and w.shape[-1] == groups


def _depthwise(x, w, *, strides, padding, dilations, groups):
    """Each channel by itself: a sum over the places of the filter, which becomes one loop."""
    x = _padded(x, padding)
    places = _places(x.shape, w.shape[:-2], strides, dilations)
    return sum(lax.slice(x, *cut) * w[place][0] for place, *cut in places)


def _is_product(w, groups):
    """Whether windows and one matrix product are faster. Without a window, it is one product anyway."""
    return _is_pointwise(w, groups) or (groups == 1 and math.prod(w.shape[:-1]) <= _FEW_PRODUCTS)


def _is_pointwise(w, groups):
    return groups == 1 and set(w.shape[:-2]) == {1}


def _side_by_side(x, size, *, strides, padding, dilations, groups):
    """(examples, *positions, places of the filter and channels): the windows of ``x``, collected axis by axis."""
    x = _padded(x, padding)
    for axis in reversed(range(1, x.ndim - 1)):
        k, s, d = size[axis - 1], strides[axis - 1], dilations[axis - 1]
        length = ((x.shape[axis] - (k - 1) * d - 1) // s) * s + 1
        x = jnp.concatenate([lax.slice_in_dim(x, i * d, i * d + length, s, axis) for i in range(k)], -1)
    return x


def _of_windows(x, w, **attributes):
    """All windows side by side, and one matrix product."""
    x = _side_by_side(x, w.shape[:-2], **attributes)
    flat = jnp.matmul(x.reshape(-1, x.shape[-1]), w.reshape(-1, w.shape[-1]), precision=lax.Precision.HIGHEST)
    return flat.reshape(*x.shape[:-1], w.shape[-1])


def _filter_of_windows(x, g, size, **attributes):
    """The transpose of `_of_windows` in the filter: the program has the windows already, if it has computed a result."""
    channels, x = x.shape[-1], _side_by_side(x, size, **attributes)
    sums = ((0,), (0,)), ((), ())
    flat = lax.dot_general(x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1]), sums, precision=lax.Precision.HIGHEST)
    return flat.reshape(*size, channels, g.shape[-1])


def _on_cpu(*arrays):
    return jax.default_backend() == "cpu" and all(0 not in array.shape for array in arrays)


def _fits(x, size, *, strides, padding, dilations, groups):
    """Whether the filter has at least one place in ``x``."""
    return all(n + sum(p) > (k - 1) * d for n, p, k, d in zip(x.shape[1:], padding, size, dilations))


@_wide
def conv(x, w, **attributes):
    groups = attributes["groups"]
    if _on_cpu(x, w) and _fits(x, w.shape[:-2], **attributes):
        if _is_depthwise(w, groups):
            return _depthwise(x, w, **attributes)
        if _is_product(w, groups):
            return _of_windows(x, w, **attributes)
    return _conv(x, w, **attributes)


@_wide
def conv_input(g, w, *, lengths, **attributes):
    """The transpose of `conv` in its first argument, of the spatial ``lengths``."""
    groups = attributes["groups"]
    shape = jax.ShapeDtypeStruct((g.shape[0], *lengths, groups * w.shape[-2]), g.dtype)
    direct = _conv
    if _on_cpu(g, w):
        direct = _depthwise if _is_depthwise(w, groups) else _of_windows if _is_pointwise(w, groups) else _conv
    return jax.linear_transpose(lambda x: direct(x, w, **attributes), shape)(jnp.asarray(g))[0]


@_wide
def conv_filter(x, g, *, size, **attributes):
    """The transpose of `conv` in its second argument, of the spatial ``size``."""
    groups = attributes["groups"]
    shape = jax.ShapeDtypeStruct((*size, x.shape[-1] // groups, g.shape[-1]), g.dtype)
    if _is_product(shape, groups) and _on_cpu(x, g):
        return _filter_of_windows(jnp.asarray(x), jnp.asarray(g), size, **attributes)
    direct = _depthwise if _is_depthwise(shape, groups) and _on_cpu(x, g) else _conv
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
    if tuple(strides) == size and set(dilations) == {1}:  # windows that lie side by side
        order = [axis for i in range(1, n + 1) for axis in (i, n + i)]
        beside = jnp.asarray(x).transpose(0, *order, 2 * n + 1)
        covered = [count * k for count, k in zip(x.shape[1:], size)]
        around = [(0, m - length) for m, length in zip(lengths, covered)]
        return _padded(beside.reshape(x.shape[0], *covered, x.shape[-1]), around)
    shape = jax.ShapeDtypeStruct((x.shape[0], *lengths, x.shape[-1]), x.dtype)
    read = jax.linear_transpose(lambda a: windows(a, size=size, strides=strides, dilations=dilations), shape)
    return read(jnp.asarray(x))[0]
