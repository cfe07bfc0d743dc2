"""Products over shared axes: matmul, the two that its rules are made of, and einsum."""

from __future__ import annotations

import math

from gradtape.core.op import binary, op


def _right_rule(xp, g, _out, x, _y):
    """xᴴ g. For one matrix and many x all rows are one sum: a product for each x would have to be added up afterwards."""
    if x.ndim > 2 and len(_y if type(_y) is tuple else xp.shape(_y)) == 2:
        x, g = _rows(xp, x), _rows(xp, g)
    return xp.adjoint_matmul(x, g)


def _rows(xp, x):
    *leading, columns = xp.shape(x)
    return xp.reshape(x, shape=(math.prod(leading), columns))


matmul = binary(
    "matmul", "matrix product over the last two axes; leading axes broadcast",
    lambda xp, g, _out, _x, y: xp.matmul_adjoint(g, y),
    _right_rule,
    label="MatMul",
)  # fmt: skip

matmul_adjoint = binary(
    "matmul_adjoint", "matrix product x yᴴ over the last two axes; leading axes broadcast",
    lambda xp, g, _out, _x, y: xp.matmul(g, y),
    lambda xp, g, _out, x, _y: _right_rule(xp, x, None, g, _y),  # gᴴ x
    label="MatMulAdjoint",
)  # fmt: skip

adjoint_matmul = binary(
    "adjoint_matmul", "matrix product xᴴ y over the last two axes; leading axes broadcast",
    lambda xp, g, _out, _x, y: xp.matmul_adjoint(y, g),
    lambda xp, g, _out, x, _y: xp.matmul(x, g),
    label="AdjointMatMul",
)  # fmt: skip


@op
def einsum(xp, *xs, equation):
    """Sum of products by an explicit equation without ellipsis, such as ``ij,jk->ik``."""
    return xp.einsum(*xs, equation=equation)


def _einsum_rule(xp, g, xs, *, xs_shape, equation):
    """Exchange the output with one operand; an axis summed out of that operand alone is broadcast back."""
    inputs, output = equation.split("->")
    terms = inputs.split(",")
    sizes = {c: n for term, shape in zip(terms, xs_shape) for c, n in zip(term, shape)}
    parts = []
    for i, term in enumerate(terms):
        others = [xp.conj(x) for j, x in enumerate(xs) if j != i]
        names = [output, *(t for j, t in enumerate(terms) if j != i)]
        reachable = "".join(c for c in dict.fromkeys(term) if any(c in n for n in names))
        part = xp.einsum(g, *others, equation=f"{','.join(names)}->{reachable}")
        parts.append(_spread(xp, part, reachable, term, sizes))
    return parts


def _spread(xp, part, have, term, sizes):
    """From the distinct reachable axes of an operand to all of its axes; a repeated axis is a diagonal."""
    distinct = "".join(dict.fromkeys(term))
    shape = tuple(sizes[c] if c in have else 1 for c in distinct)
    part = xp.broadcast_to(xp.reshape(part, shape=shape), shape=tuple(sizes[c] for c in distinct))
    for c in distinct:
        while term.count(c) > distinct.count(c):
            # multiply by the identity over (c, new axis)
            axis = distinct.index(c)
            eye = xp.eye(rows=sizes[c], columns=sizes[c], dtype=xp.dtype(part))
            fresh = next(k for k in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if k not in distinct and k not in term)
            part = xp.einsum(part, eye, equation=f"{distinct},{c}{fresh}->{distinct[:axis]}{c}{fresh}{distinct[axis + 1:]}")
            distinct = distinct[: axis + 1] + c + distinct[axis + 1 :]
    if distinct != term:
        part = _reorder(xp, part, distinct, term)
    return part


def _reorder(xp, part, have, term):
    """Axes from the order ``have`` to the order ``term``; equal letters are interchangeable."""
    positions, axes = list(have), []
    for c in term:
        i = positions.index(c)
        positions[i] = ""
        axes.append(i)
    return xp.transpose(part, axes=tuple(axes))


einsum.vjp(_einsum_rule)
