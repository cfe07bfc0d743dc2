"""Ops that make arrays from attributes alone. Nothing flows through them."""

from __future__ import annotations

from gradtape.core.op import op
from gradtape.values.shape import has_open
from gradtape.values.tensor import wrap


def _space(xp, shape):
    """The namespace that makes an array of a shape: jax's, if the program that is being made leaves a length open."""
    if not has_open(shape):
        return xp
    from gradtape.xp import jax as JAX

    return JAX


def open_lengths(lengths, dtype):
    """Lengths, some of them open, as a tensor: the program computes it."""
    from gradtape.xp import jax as JAX
    from gradtape.xp.jax_devices import symbols

    with JAX.scope():
        return wrap(symbols(lengths, dtype))


@op
def zeros(xp, *, shape, dtype):
    """Zeros of a shape."""
    return _space(xp, shape).zeros(shape=shape, dtype=dtype)


@op
def ones(xp, *, shape, dtype):
    """Ones of a shape."""
    return _space(xp, shape).ones(shape=shape, dtype=dtype)


@op
def full(xp, *, shape, value, dtype):
    """A shape filled with one value."""
    return _space(xp, shape).full(shape=shape, value=value, dtype=dtype)


@op
def arange(xp, *, start, stop, step, dtype):
    """Evenly spaced values from start up to, not including, stop."""
    return xp.arange(start=start, stop=stop, step=step, dtype=dtype)


@op
def eye(xp, *, rows, columns, dtype):
    """Ones on the main diagonal, zeros elsewhere."""
    return xp.eye(rows=rows, columns=columns, dtype=dtype)


for _op in (zeros, ones, full, arange, eye):
    _op.nondifferentiable()
