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


conv = _wide(_conv)


@_wide
def conv_input(g, w, *, lengths, **attributes):
    """The transpose of `conv` in its first argument, of the spatial ``lengths``."""
    shape = (g.shape[0], *lengths, attributes["groups"] * w.shape[-2])
    transpose = jax.linear_transpose(lambda x: _conv(x, w, **attributes), jax.ShapeDtypeStruct(shape, g.dtype))
    return transpose(jnp.asarray(g))[0]


@_wide
def conv_filter(x, g, *, size, **attributes):
    """The transpose of `conv` in its second argument, of the spatial ``size``."""
    shape = (*size, x.shape[-1] // attributes["groups"], g.shape[-1])
    transpose = jax.linear_transpose(lambda w: _conv(x, w, **attributes), jax.ShapeDtypeStruct(shape, g.dtype))
    return transpose(jnp.asarray(g))[0]


def windows(x, *, size, strides, dilations):
    """(examples, *positions, *size, channels): every window of ``x``."""
    n = len(size)
    counts = [max(0, (m - (k - 1) * d - 1) // s + 1) for m, k, s, d in zip(x.shape[1:], size, strides, dilations)]
    shape = (x.shape[0], *counts, *size, x.shape[-1])
    if 0 in shape:
        return jnp.zeros(shape, x.dtype)
    parts = []
    for position in itertools.product(*(range(k) for k in size)):
        starts = [k * d for k, d in zip(position, dilations)]
        limits = [start + (count - 1) * s + 1 for start, count, s in zip(starts, counts, strides)]
        parts.append(lax.slice(x, (0, *starts, 0), (x.shape[0], *limits, x.shape[-1]), (1, *strides, 1)))
    return jnp.stack(parts, n + 1).reshape(shape)


def windows_transpose(x, *, strides, dilations, lengths):
    """Add windows back where `windows` read them, in zeros of the spatial ``lengths``."""
    n = len(lengths)
    size = x.shape[n + 1 : -1]
    shape = jax.ShapeDtypeStruct((x.shape[0], *lengths, x.shape[-1]), x.dtype)
    read = jax.linear_transpose(lambda a: windows(a, size=size, strides=strides, dilations=dilations), shape)
    return read(jnp.asarray(x))[0]
