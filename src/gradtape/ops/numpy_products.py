"""NumPy's products, norms and polynomials over our ops; the second half of the table in `numpy_functions`."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from gradtape.errors import message
from gradtape.ops import contract, elementwise, reduce, shape
from gradtape.ops.numpy_functions import (
    FUNCTIONS,
    Leaves,
    all_axes,
    as_numpy,
    clip,
    common,
    one,
    ravel,
    reshape,
    roll,
    squeeze,
    stands_for,
    take,
    unstacked,
)  # fmt: skip
from gradtape.values.convert import Convertible
from gradtape.values.tensor import Tensor


def matmul(x: Any, y: Any) -> Tensor:
    """np.matmul: vectors are allowed."""
    x, y = common((x, y))
    if x.ndim == 1 and y.ndim == 1:
        return contract.einsum(x, y, equation="i,i->")
    if x.ndim == 1:
        return shape.squeeze(contract.matmul(shape.expand_dims(x, axis=0), y), axis=(y.ndim - 2,))
    if y.ndim == 1:
        return shape.squeeze(contract.matmul(x, shape.expand_dims(y, axis=1)), axis=(x.ndim - 1,))
    return contract.matmul(x, y)


@stands_for(np.dot)
def dot(a: Any, b: Any) -> Tensor:
    a, b = common((a, b))
    if not a.ndim or not b.ndim:
        return elementwise.multiply(a, b)
    return tensordot(a, b, axes=(a.ndim - 1, max(b.ndim - 2, 0)))


@stands_for(np.vdot)
def vdot(a: Any, b: Any) -> Tensor:
    a, b = common((a, b))
    return contract.einsum(elementwise.conj(ravel(a)), ravel(b), equation="i,i->")


@stands_for(np.inner)
def inner(a: Any, b: Any) -> Tensor:
    a, b = common((a, b))
    return elementwise.multiply(a, b) if not a.ndim or not b.ndim else tensordot(a, b, axes=(a.ndim - 1, b.ndim - 1))


@stands_for(np.outer, np.linalg.outer)
def outer(a: Any, b: Any) -> Tensor:
    a, b = common((a, b))
    return contract.einsum(ravel(a), ravel(b), equation="i,j->ij")


@stands_for(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    a, b = common((a, b))
    if np.iterable(axes):
        left, right = axes
        left, right = all_axes(left, a.ndim), all_axes(right, b.ndim)
    else:
        left, right = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    if [a._array.shape[i] for i in left] != [b._array.shape[i] for i in right]:
        text = f"shape-mismatch for sum: {a._array.shape} over {left} and {b._array.shape} over {right}"
        raise ValueError(
            message(text, received=f"axes={axes}", expected="the same lengths along the axes that are summed over")
        )
    rows = tuple(i for i in range(a.ndim) if i not in left)
    columns = tuple(i for i in range(b.ndim) if i not in right)
    size = math.prod([a._array.shape[i] for i in left])
    free = [a._array.shape[i] for i in rows], [b._array.shape[i] for i in columns]
    x = reshape(shape.transpose(a, axes=rows + left), (math.prod(free[0]), size))
    y = reshape(shape.transpose(b, axes=right + columns), (size, math.prod(free[1])))
    return reshape(contract.matmul(x, y), (*free[0], *free[1]))


@stands_for(np.einsum)
def einsum(*operands: Any) -> Tensor:
    subscripts, *arrays = operands
    if not isinstance(subscripts, str):
        raise Leaves
    arrays = common(arrays)
    return contract.einsum(*arrays, equation=explicit(subscripts, tuple([x.ndim for x in arrays])))


@lru_cache(1024)
def explicit(subscripts: str, ranks: tuple[int, ...]) -> str:
    """The equation with its output written out and letters for every ellipsis."""
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        text = f"einsum: {len(terms)} terms in {subscripts!r}, but {len(ranks)} operands."
        raise ValueError(message(text, received=f"{len(ranks)} operands", expected=f"{len(terms)}"))
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts]
    widths = [rank - len(term.replace("...", "")) if "..." in term else 0 for term, rank in zip(terms, ranks)]
    if any(w < 0 for w in widths) or any("..." not in t and len(t) != r for t, r in zip(terms, ranks)):
        text = f"einsum: the terms of {subscripts!r} do not fit operands of ranks {ranks}."
        raise ValueError(message(text, received=f"operands of ranks {ranks}", expected="one letter per axis"))
    dots = "".join(free[: max(widths, default=0)])
    if not arrow:
        letters = sorted(c for c in set(left) - set(",.") if left.count(c) == 1)
        output = "..." + "".join(letters) if "..." in left else "".join(letters)
    terms = [term.replace("...", dots[len(dots) - w :]) for term, w in zip(terms, widths)]
    return f"{','.join(terms)}->{output.replace('...', dots)}"


@stands_for(np.kron)
def kron(a: Any, b: Any) -> Tensor:
    a, b = common((a, b))
    rank = max(a.ndim, b.ndim)
    m, n = ((1,) * (rank - x.ndim) + x._array.shape for x in (a, b))
    spread = reshape(a, [k for i in m for k in (i, 1)]) * reshape(b, [k for j in n for k in (1, j)])
    return reshape(spread, [i * j for i, j in zip(m, n)])


@stands_for(np.cross, np.linalg.cross)
def cross(a: Any, b: Any, *, axis: int = -1) -> Tensor:
    a, b = common((a, b))
    if a._array.shape[axis] != 3 or b._array.shape[axis] != 3:
        raise Leaves
    return roll(a, -1, axis) * roll(b, -2, axis) - roll(a, -2, axis) * roll(b, -1, axis)


@stands_for(np.linalg.multi_dot)
def multi_dot(arrays: Any) -> Tensor:
    out, *rest = common(arrays)
    for array in rest:
        out = matmul(out, array)
    return out


@stands_for(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Tensor:
    a = one(a)
    if n < 1:
        raise Leaves
    half = a if n == 1 else matrix_power(a, n // 2)
    square = half if n == 1 else contract.matmul(half, half)
    return contract.matmul(square, a) if n > 1 and n % 2 else elementwise.identity(square)


@stands_for(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    x = one(x)
    if ord is None:
        return _power_norm(x, 2, all_axes(axis, x.ndim), keepdims)
    axes = all_axes(axis, x.ndim)
    if len(axes) == 1:
        return _power_norm(x, ord, axes, keepdims)
    if len(axes) != 2 or ord not in ("fro", 1, -1, np.inf, -np.inf):
        raise Leaves  # singular values
    if ord == "fro":
        return _power_norm(x, 2, axes, keepdims)
    rows, columns = axes if abs(ord) == 1 else axes[::-1]
    lines = reduce.sum(elementwise.abs(x), axis=(rows,), keepdims=True)
    out = (reduce.max if ord > 0 else reduce.min)(lines, axis=(columns,), keepdims=True)
    return out if keepdims else shape.squeeze(out, axis=axes)


def _power_norm(x: Tensor, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """(Σ |x|ᵖ)^(1/p)"""
    size = elementwise.abs(x) if x.dtype.is_complex or ord != 2 else x
    if ord == 2:
        return elementwise.sqrt(reduce.sum(elementwise.square(size), axis=axes, keepdims=keepdims))
    if ord == 1:
        return reduce.sum(size, axis=axes, keepdims=keepdims)
    if ord in (np.inf, -np.inf):
        return (reduce.max if ord > 0 else reduce.min)(size, axis=axes, keepdims=keepdims)
    if isinstance(ord, str) or ord == 0:
        raise Leaves
    return elementwise.power(reduce.sum(elementwise.power(size, float(ord)), axis=axes, keepdims=keepdims), 1 / ord)


@stands_for(np.linalg.vector_norm)
def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    x = one(x)
    return _power_norm(x, ord, all_axes(axis, x.ndim), keepdims)


FUNCTIONS[np.linalg.matmul] = lambda x1, x2: matmul(x1, x2)


# Polynomials and interpolation


@stands_for(np.polyval)
def polyval(p: Any, x: Any) -> Tensor:
    p = list(unstacked(one(p), 0)) if isinstance(p, (Tensor, Convertible)) else list(p)
    *coefficients, x = common((*p, x))
    out = elementwise.zeros_like(x)
    for c in coefficients:
        out = out * x + c
    return out


@stands_for(np.interp)
def interp(x: Any, xp: Any, fp: Any) -> Tensor:
    """Piecewise linear: constant outside, differentiable in x and fp, and in the knots."""
    x, xp, fp = common((x, xp, fp))
    knots = as_numpy(xp)
    low = np.clip(np.searchsorted(knots, as_numpy(x), "right") - 1, 0, max(knots.size - 2, 0))
    high = np.minimum(low + 1, knots.size - 1)
    x = clip(x, knots[0], knots[-1]) if knots.size else x
    x0, x1, y0, y1 = take(xp, low, 0), take(xp, high, 0), take(fp, low, 0), take(fp, high, 0)
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


@stands_for(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, *, bias: bool = False, ddof: int | None = None) -> Tensor:
    if y is not None or one(m).ndim > 2:
        raise Leaves
    x = reshape(m, (1, -1)) if one(m).ndim < 2 else one(m)
    x = x if rowvar or one(m).ndim < 2 else shape.matrix_transpose(x)
    x = x - reduce.mean(x, axis=(1,), keepdims=True)
    number = x._array.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    return squeeze(contract.matmul(x, shape.adjoint(x)) / number)
