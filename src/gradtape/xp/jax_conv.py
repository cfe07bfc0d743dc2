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


# XLA's convolutions on the CPU are made for many channels and many examples. Where there are few of one kind, matrix products
# are several times faster, as long as what is multiplied fits the caches (design/0010).

_FEW_PRODUCTS = 27
"""Of so few products a result is made by windows side by side and one matrix product: three channels of 3 × 3 included."""
_FEW_SHARES = 36
"""What has a share in so few results is multiplied first, and the products are added: four channels of 3 × 3 included."""
_FEW_CHANNELS, _SOME_PRODUCTS = 8, 200
"""The gradient of so few channels is that of windows, with filters of so many products at most."""
_FEW_EXAMPLES, _SOME_PLACES = 4, 49
"""The filter's gradient over so few examples is a product for each of its places, if there are so many at most."""
_SOME_EXAMPLES = 32
"""That many, where a program leaves the number open."""
_LARGE = 1 << 24
"""Bytes of windows, or of products, that are too many."""


def _places(shape, size, strides, dilations):
    """For each place of a filter: which it is, and from where to where it reads an array of this shape, with which steps."""
    counts = _counts(shape[1:], size, strides, dilations)
    for place in itertools.product(*(range(k) for k in size)):
        starts = [k * d for k, d in zip(place, dilations)]
        limits = [start + (count - 1) * s + 1 for start, count, s in zip(starts, counts, strides)]
        yield place, (0, *starts, 0), (shape[0], *limits, shape[-1]), (1, *strides, 1)


def _counts(lengths, size, strides, dilations):
    """How many positions a filter has along each axis, of these padded lengths."""
    return [max(0, (m - (k - 1) * d - 1) // s + 1) for m, k, s, d in zip(lengths, size, strides, dilations)]


def _padded(x, padding):
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((low, high, 0) for low, high in padding), (0, 0, 0)])


def _depthwise(x, w, *, strides, padding, dilations, groups):
    """Each channel by itself: a sum over the places of the filter, which becomes one loop."""
    x = _padded(x, padding)
    places = _places(x.shape, w.shape[:-2], strides, dilations)
    return sum(lax.slice(x, *cut) * w[place][0] for place, *cut in places)


def _side_by_side(x, size, *, strides, padding, dilations, groups):
    """(examples, *positions, places of the filter and channels): the windows of ``x``, collected axis by axis."""
    x = _padded(x, padding)
    for axis in reversed(range(1, x.ndim - 1)):
        k, s, d = size[axis - 1], strides[axis - 1], dilations[axis - 1]
        length = ((x.shape[axis] - (k - 1) * d - 1) // s) * s + 1
        x = jnp.concatenate([lax.slice_in_dim(x, i * d, i * d + length, s, axis) for i in range(k)], -1)
    return x


def _product(x, w):
    """Of the last axis of ``x`` with the rows of ``w``."""
    flat = jnp.matmul(x.reshape(-1, x.shape[-1]), w, precision=lax.Precision.HIGHEST)
    return flat.reshape(*x.shape[:-1], w.shape[-1])


def _sums(x, g):
    """The transpose of `_product` in its second argument."""
    along = ((0,), (0,)), ((), ())
    return lax.dot_general(x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1]), along, precision=lax.Precision.HIGHEST)


def _of_windows(x, w, **attributes):
    """All windows side by side, and one matrix product."""
    return _product(_side_by_side(x, w.shape[:-2], **attributes), w.reshape(-1, w.shape[-1]))


def _filter_of_windows(x, g, size, **attributes):
    """The transpose of `_of_windows` in the filter: the program has the windows already, if it has computed a result."""
    return _sums(_side_by_side(x, size, **attributes), g).reshape(*size, x.shape[-1], g.shape[-1])


def _of_shares(x, w, *, strides, padding, dilations, groups):
    """One matrix product of all elements with all places of the filter, whose parts are added where they belong."""
    (*size, inner, outer), x = w.shape, _padded(x, padding)
    products = _product(x, jnp.moveaxis(w.reshape(-1, inner, outer), 0, 1).reshape(inner, -1))
    parts = jnp.split(products, math.prod(size), -1)
    return sum(lax.slice(part, *cut) for part, (_, *cut) in zip(parts, _places(parts[0].shape, size, strides, dilations)))


def _filter_by_place(x, g, size, *, strides, padding, dilations, groups):
    """The gradient of a filter, a matrix product for each of its places."""
    x = _padded(x, padding)
    products = [_sums(lax.slice(x, *cut), g) for _, *cut in _places(x.shape, size, strides, dilations)]
    return jnp.stack(products).reshape(*size, x.shape[-1], g.shape[-1])


def _form(x, w, of=None, *, strides, padding, dilations, groups):
    """The fastest form of a convolution of arrays with these shapes, or of its gradient: ``of`` "input" or "filter"."""
    *size, inner, outer = w.shape
    lengths = [m + low + high for m, (low, high) in zip(x.shape[1:], padding)]
    counts, places = _counts(lengths, size, strides, dilations), math.prod(size)
    if jax.default_backend() != "cpu" or 0 in (*x.shape, *w.shape, *counts) or not all(type(n) is int for n in counts):
        return _conv
    if groups > 1:
        return _depthwise if inner == 1 and outer == groups else _conv
    products, shares = places * inner, places * outer
    examples = x.shape[0] if type(x.shape[0]) is int else _SOME_EXAMPLES
    fits = lambda positions, width: examples * math.prod(positions) * width * x.dtype.itemsize <= _LARGE
    few = products <= _FEW_PRODUCTS or len(size) > 2  # in three dimensions XLA has only loops
    if places == 1 or (few and fits(counts, products)):
        return _of_windows
    if shares <= _FEW_SHARES and set(strides) == {1} and fits(lengths, shares):
        return _of_shares
    if of == "input" and inner <= _FEW_CHANNELS and products <= _SOME_PRODUCTS and fits(counts, products):
        return _of_windows
    if of == "filter" and examples <= _FEW_EXAMPLES and places <= _SOME_PLACES:
        return _filter_by_place
    return _conv


@_wide
def conv(x, w, **attributes):
    return _form(x, w, **attributes)(x, w, **attributes)


@_wide
def conv_input(g, w, *, lengths, **attributes):
    """The transpose of `conv` in its first argument, of the spatial ``lengths``."""
    x = jax.ShapeDtypeStruct((g.shape[0], *lengths, attributes["groups"] * w.shape[-2]), g.dtype)
    direct = _form(x, w, "input", **attributes)
    return jax.linear_transpose(lambda x: direct(x, w, **attributes), x)(jnp.asarray(g))[0]


@_wide
def conv_filter(x, g, *, size, **attributes):
    """The transpose of `conv` in its second argument, of the spatial ``size``."""
    x, g = jnp.asarray(x), jnp.asarray(g)
    w = jax.ShapeDtypeStruct((*size, x.shape[-1] // attributes["groups"], g.shape[-1]), g.dtype)
    direct = _form(x, w, "filter", **attributes)
    if direct in (_of_windows, _filter_by_place):
        transposed = _filter_of_windows if direct is _of_windows else _filter_by_place
        return transposed(x, g, size, **attributes)
    return jax.linear_transpose(lambda w: direct(x, w, **attributes), w)(g)[0]


def windows(x, *, size, strides, dilations):
    """(examples, *positions, *size, channels): every window of ``x``."""
    n = len(size)
    shape = (x.shape[0], *_counts(x.shape[1:], size, strides, dilations), *size, x.shape[-1])
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
