"""Keras's linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend import config

from gradtape.errors import message
from gradtape.keras_backend.core import cast, convert_to_tensor
from gradtape.keras_backend.numpy_promotion import floating, result_type, together
from gradtape.ops import decompositions, elementwise, indexing, matrix, reduce, solvers
from gradtape.ops import shape as shapes
from gradtape.tangents.forward import ForwardAccumulator
from gradtape.values.tensor import BatchedTensor, Tensor, wrap

# Factors


def cholesky(a: Any, upper: bool = False) -> Tensor:
    """The triangular l with l lᴴ = a, or its adjoint."""
    factor = decompositions.cholesky(floating(a))
    if type(factor) is not BatchedTensor and not factor._is_traced() and np.isnan(np.asarray(factor)).any():
        text = "Cholesky decomposition failed. The input might not be a valid positive definite matrix."
        raise ValueError(message(text, fix="add a small multiple of the identity: a + 1e-6 * ops.eye(n)"))
    return shapes.adjoint(factor) if upper else factor


def cholesky_inverse(a: Any, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose triangular factor this is."""
    a = floating(a)
    identity = wrap(np.eye(a._array.shape[-1], dtype=a._array.dtype))
    inverse = solve_triangular(a, identity, lower=not upper)
    other = shapes.adjoint(inverse)
    return matrix.matmul(inverse, other) if upper else matrix.matmul(other, inverse)


def qr(x: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    if mode not in ("reduced", "complete"):
        text = (
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )  # fmt: skip
        raise ValueError(message(text, expected="'reduced' or 'complete'"))
    return tuple(decompositions.qr(floating(x), full=mode == "complete"))


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """(u, s, vᴴ) with x = u diag(s) vᴴ, or s alone."""
    x = floating(x)
    if not compute_uv:
        return decompositions.svdvals(x)
    s, u, v = decompositions.svd(x, full=full_matrices)
    return u, s, shapes.adjoint(v)


def lu_factor(x: Any) -> tuple[Tensor, Tensor]:
    """l below the diagonal and u in one matrix, and which row each row was exchanged with, one after the other."""
    x = floating(x)
    rows, columns = x._array.shape[-2:]
    if rows < columns:  # the rest of u follows from the square part
        packed, permutation = decompositions.lu(x[..., :rows])
        order = elementwise.cast(permutation, "int32")
        rest = indexing.take_along_axis(x[..., rows:], shapes.expand_dims(order, axis=-1), axis=-2)
        lower = matrix.set_diag(packed, elementwise.ones_like(packed[..., 0]), 0, "RIGHT_LEFT")
        packed = shapes.concatenate(packed, solvers.triangular_solve(lower, rest, lower=True), axis=-1)
    elif rows > columns:  # columns to the right do not change how those to the left are eliminated
        more = shapes.broadcast_to(
            wrap(np.eye(rows, dtype=x._array.dtype)[:, columns:]), shape=(*x._array.shape[:-1], rows - columns)
        )
        packed, permutation = decompositions.lu(shapes.concatenate(x, more, axis=-1))
        packed = packed[..., :columns]
    else:
        packed, permutation = decompositions.lu(x)
    return packed, _exchanges(permutation, min(rows, columns))


def _exchanges(permutation: Tensor, count: int) -> Tensor:
    """The exchanges of rows, as LAPACK lists them, that make up a permutation."""
    wanted = elementwise.cast(permutation, "int32")
    order: Any = shapes.broadcast_to(wrap(np.arange(wanted._array.shape[-1], dtype=np.int32)), shape=wanted._array.shape)
    found = []
    for i in range(count):
        here, row = order[..., i : i + 1], wanted[..., i : i + 1]
        place = elementwise.equal(order, row)
        found.append(elementwise.cast(reduce.argmax(elementwise.cast(place, "int32"), axis=-1), "int32"))
        order = elementwise.where(place, here, order)
        order = shapes.concatenate(order[..., :i], row, order[..., i + 1 :], axis=-1)
    return shapes.stack(*found, axis=-1)


# Eigenvalues, determinants


def eig(x: Any) -> tuple[Tensor, Tensor]:
    return tuple(decompositions.eig(floating(x)))


def eigh(x: Any) -> tuple[Tensor, Tensor]:
    return tuple(decompositions.eigh(floating(x)))


def det(a: Any) -> Tensor:
    return decompositions.det(floating(a))


def matrix_rank(x: Any, tol: Any = None) -> Tensor:
    """The number of singular values above ``tol``."""
    return decompositions.matrix_rank(_matrices(x), tol)


def _matrices(x: Any) -> Tensor:
    x = floating(x)
    if x._array.ndim < 2:
        text = f"Expected input to have rank >= 2. Received input with shape {tuple(x.shape)}."
        raise ValueError(message(text, expected="a matrix, or several with leading axes"))
    return x


# Equations


def inv(a: Any) -> Tensor:
    return solvers.inv(floating(a))


def pinv(x: Any, rcond: Any = None) -> Tensor:
    """The pseudo-inverse; singular values up to ``rcond`` times the largest count as 0."""
    return decompositions.pseudo_inverse(_matrices(x), rcond)


def solve(a: Any, b: Any) -> Tensor:
    """The z with a z = b."""
    return _of_columns(solvers.solve, a, b)


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Tensor:
    """The z with t z = b, where t is the upper (or lower) triangle of a."""
    return _of_columns(lambda a, b: solvers.matrix_triangular_solve(a, b, lower, False), a, b)


def _of_columns(equation: Callable, a: Any, b: Any) -> Tensor:
    """The solution for right sides that are vectors or matrices; leading axes broadcast."""
    a, b = together(a, b, also=(float,))
    if b._array.ndim == a._array.ndim - 1:
        return shapes.squeeze(_of_columns(equation, a, shapes.expand_dims(b, axis=-1)), axis=-1)
    outer = np.broadcast_shapes(a._array.shape[:-2], b._array.shape[:-2])
    return equation(*(shapes.broadcast_to(x, shape=(*outer, *x._array.shape[-2:])) for x in (a, b)))


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Tensor:
    """The z that makes ‖a z - b‖ least, and of all such the shortest."""
    a, b = together(a, b, also=(float,))
    if a._array.ndim != 2 or b._array.ndim not in (1, 2) or a._array.shape[0] != b._array.shape[0]:
        text = f"Expected a matrix and as many right sides. Received: a.shape={tuple(a.shape)}, b.shape={tuple(b.shape)}"
        raise ValueError(message(text, expected="a (M, N) and b (M,) or (M, K)"))
    if rcond is None:
        rcond = max(a._array.shape) * float(np.finfo(a._array.dtype).eps)
    inverse = decompositions.pseudo_inverse(a, rcond)
    if b._array.ndim == 2:
        return matrix.matmul(inverse, b)
    return shapes.squeeze(matrix.matmul(inverse, shapes.expand_dims(b, axis=-1)), axis=-1)


# Norms


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """A vector norm over one axis, a matrix norm over two; without ``ord``, the root of the sum of squares over any."""
    x = convert_to_tensor(x)
    x = cast(x, config.floatx() if x.dtype.name == "int64" else result_type(x.dtype, float))
    rank = x._array.ndim
    axes = tuple(range(rank)) if axis is None else tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    if not all(-rank <= a < rank for a in axes):
        text = f"Invalid `axis` argument for an input of rank {rank}. Received: axis={axis}"
        raise ValueError(message(text, expected=f"axes from {-rank} to {rank - 1}"))
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return matrix.euclidean_norm(x, axes, keepdims)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, tuple(a % rank for a in axes), keepdims)
    text = f"Invalid axis values for a norm of a given order. Received: axis={axis} for an input of rank {rank}"
    raise ValueError(message(text, expected="one axis for a vector norm, two for a matrix norm"))


def _vector_norm(x: Tensor, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if isinstance(ord, str):
        text = f"Invalid `ord` argument for vector norm. Received: ord={ord}"
        raise ValueError(message(text, expected="a number, np.inf or -np.inf"))
    if ord == 0:
        there = elementwise.not_equal(x, elementwise.zeros_like(x))
        return reduce.sum(elementwise.cast(there, elementwise.abs(x).dtype), axis=axes, keepdims=keepdims)
    size = elementwise.abs(x)
    if abs(ord) == np.inf:
        return (reduce.max if ord > 0 else reduce.min)(size, axis=axes, keepdims=keepdims)
    if ord == 1:
        return reduce.sum(size, axis=axes, keepdims=keepdims)
    total = reduce.sum(elementwise.power(size, float(ord)), axis=axes, keepdims=keepdims)
    return elementwise.power(total, 1.0 / ord)


def _matrix_norm(x: Tensor, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """±1: column sums of |x|; ±inf: row sums; ±2: singular values, 'nuc' their sum."""
    rows, columns = axes
    if ord in ("nuc", 2, -2):
        order = (*(i for i in range(x._array.ndim) if i not in axes), *axes)
        values = decompositions.svdvals(shapes.transpose(x, axes=order))
        found = {"nuc": reduce.sum, 2: reduce.max, -2: reduce.min}[ord](values, axis=-1)
        return shapes.expand_dims(found, axis=tuple(sorted(axes))) if keepdims else found
    if isinstance(ord, str) or abs(ord) not in (1, np.inf):
        text = f"Invalid `ord` argument for matrix norm. Received: ord={ord}"
        raise ValueError(message(text, expected="'fro', 'nuc', 1, -1, 2, -2, np.inf or -np.inf"))
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = reduce.sum(elementwise.abs(x), axis=summed, keepdims=True)
    found = (reduce.max if ord > 0 else reduce.min)(sums, axis=other, keepdims=True)
    return found if keepdims else shapes.squeeze(found, axis=axes)


# Derivatives


def jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> tuple:
    """``fun(*primals)`` and its derivative along ``tangents``; ``has_aux``: the second thing it returns comes along."""
    primals = tree.map_structure(lambda x: elementwise.identity(convert_to_tensor(x)), tuple(primals))
    directions = [convert_to_tensor(t, p.dtype) for p, t in zip(tree.flatten(primals), tree.flatten(tuple(tangents)))]
    with ForwardAccumulator(tree.flatten(primals), directions) as accumulator:
        result = fun(*primals)
    out, *rest = result if has_aux else (result,)
    out = tree.map_structure(convert_to_tensor, out)
    moved = tree.map_structure(lambda x: accumulator.jvp(x, unconnected_gradients="zero"), out)
    return (out, moved, *rest)
