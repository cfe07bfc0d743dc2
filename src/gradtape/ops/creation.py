"""Ops that make arrays from attributes alone. Nothing flows through them."""

from __future__ import annotations

from gradtape.core.op import op


@op
def zeros(xp, *, shape, dtype):
    """Zeros of a shape."""
    return xp.zeros(shape=shape, dtype=dtype)


@op
def ones(xp, *, shape, dtype):
    """Ones of a shape."""
    return xp.ones(shape=shape, dtype=dtype)


@op
def full(xp, *, shape, value, dtype):
    """A shape filled with one value."""
    return xp.full(shape=shape, value=value, dtype=dtype)


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
