"""Ops that move elements without computing: reshape, transpose, concatenate, pad, repeat …"""

from __future__ import annotations

import math

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, message
from gradtape.values.convert import pack_with


@op
def reshape(xp, x, *, shape):
    """The same elements in another shape; one length may be -1."""
    old = xp.shape(x)
    size = math.prod(old)
    known = math.prod([n for n in shape if n != -1])
    if shape.count(-1) > 1 or (known != size if -1 not in shape else (size % known if known else size)):
        needed = f"has {known}" if -1 not in shape else f"requires a multiple of {known}"
        raise InvalidArgumentError(
            message(
                f"Input to reshape is a tensor with {size} values, but the requested shape {needed} [Op:Reshape]",
                received=f"shape {old} to {shape}",
                expected=f"lengths whose product is {size}; one of them may be -1",
            )
        )
    if -1 in shape and known == 0:
        shape = tuple(0 if n == -1 else n for n in shape)
    return xp.reshape(x, shape=shape)


reshape.vjp(lambda xp, g, *, x_shape: xp.reshape(g, shape=x_shape))


@op
def transpose(xp, x, *, axes):
    """Axes in another order; ``axes`` is a tuple, or None for the reverse order."""
    return xp.transpose(x, axes=axes)


def _inverse(axes):
    """The order of axes that undoes ``axes``."""
    return None if axes is None else tuple(int(i) for i in np.argsort([a % len(axes) for a in axes]))


transpose.vjp(lambda xp, g, *, axes: xp.transpose(g, axes=_inverse(axes)))


@op
def matrix_transpose(xp, x):
    """The last two axes exchanged."""
    return xp.matrix_transpose(x)


matrix_transpose.vjp(lambda xp, g: xp.matrix_transpose(g))


@op
def adjoint(xp, x):
    """The last two axes exchanged, and complex values conjugated."""
    return xp.adjoint(x)


adjoint.vjp(lambda xp, g: xp.adjoint(g))


@op
def expand_dims(xp, x, *, axis):
    """A new axis of length 1."""
    return xp.expand_dims(x, axis=axis)


@op
def squeeze(xp, x, *, axis):
    """Without the given axes (a tuple), which must have length 1."""
    return xp.squeeze(x, axis=axis)


for _op in (expand_dims, squeeze):
    _op.vjp(lambda xp, g, *, x_shape: xp.reshape(g, shape=x_shape))


@op
def broadcast_to(xp, x, *, shape):
    """x repeated along axes of length 1 to fill a shape."""
    return xp.broadcast_to(x, shape=shape)


broadcast_to.vjp(lambda xp, g: g)  # the sweep sums over broadcast axes


@op(label="ConcatV2")
def concatenate(xp, *xs, axis):
    """Arrays joined along an existing axis."""
    return xp.concatenate(*xs, axis=axis)


def _concatenate_rule(xp, g, *, xs_shape, axis):
    axis %= len(xs_shape[0])
    parts, start = [], 0
    for shape in xs_shape:
        stop = start + shape[axis]
        parts.append(xp.getitem(g, index=(slice(None),) * axis + (slice(start, stop),)))
        start = stop
    return parts


concatenate.vjp(_concatenate_rule)


@op(label="Pack")
def stack(xp, *xs, axis):
    """Arrays of one shape joined along a new axis."""
    return xp.stack(*xs, axis=axis)


def _stack_rule(xp, g, *, xs_shape, axis):
    axis %= len(xs_shape[0]) + 1
    return [xp.getitem(g, index=(slice(None),) * axis + (i,)) for i in range(len(xs_shape))]


stack.vjp(_stack_rule)
pack_with(stack=stack)


@op
def tile(xp, x, *, repeats):
    """x repeated along each axis; ``repeats`` is a tuple with one count per axis."""
    return xp.tile(x, repeats=repeats)


def _tile_rule(xp, g, *, x_shape, repeats):
    pairs = [n for pair in zip(repeats, x_shape) for n in pair]
    return xp.sum(xp.reshape(g, shape=tuple(pairs)), axis=tuple(range(0, 2 * len(x_shape), 2)))


tile.vjp(_tile_rule)


@op
def pad(xp, x, *, widths, value=0):
    """x surrounded by a constant; ``widths`` is one (before, after) pair per axis."""
    return xp.pad(x, widths=widths, value=value)


pad.vjp(
    lambda xp, g, *, x_shape, widths: xp.getitem(
        g, index=tuple(slice(before, before + n) for n, (before, _) in zip(x_shape, widths))
    ),
    affine="value",
)


@op(label="ReverseV2")
def flip(xp, x, *, axis):
    """Elements in reverse order along axes (a tuple)."""
    return xp.flip(x, axis=axis)


flip.vjp(lambda xp, g, *, axis: xp.flip(g, axis=axis))


@op
def roll(xp, x, *, shift, axis):
    """Elements moved along axes, those pushed out entering at the other end."""
    return xp.roll(x, shift=shift, axis=axis)


roll.vjp(
    lambda xp, g, *, shift, axis: xp.roll(
        g, shift=tuple(-s for s in shift) if isinstance(shift, tuple) else -shift, axis=axis
    )
)


@op
def repeat(xp, x, *, repeats, axis):
    """Each element repeated; ``repeats`` is an int or a tuple with one count per index. A number is a vector of one."""
    return xp.repeat(x if xp.shape(x) else xp.reshape(x, shape=(1,)), repeats=repeats, axis=axis)


def _repeat_rule(xp, g, *, x_shape, repeats, axis):
    rows = x_shape or (1,)
    axis %= len(rows)
    if isinstance(repeats, int):
        apart = (*rows[: axis + 1], repeats, *rows[axis + 1 :])
        return xp.reshape(xp.sum(xp.reshape(g, shape=apart), axis=axis + 1), shape=x_shape)
    index = np.repeat(np.arange(rows[axis]), repeats)
    return xp.reshape(xp.take_transpose(g, index, axis=axis, shape=rows), shape=x_shape)


repeat.vjp(_repeat_rule)
