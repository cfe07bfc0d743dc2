"""Decompositions of matrices, and what is computed from them: determinants, pseudo-inverses, functions of a matrix.

Singular and eigenvectors are differentiable where their values differ: the rules divide by the differences. Values that
agree to rounding count as equal, and the quotient as 0. That is right whenever what is computed on top does not tell the
vectors of one value apart and depends on the values alone or on such vectors alone (Σ w, ‖s‖, u vᴴ, a projector); a function
v f(w) vᴴ at equal values needs f', which no rule can know. `sqrtm`, `logm`, `expm` and `pinv` have rules of their own, which
divide by no difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.op import op, pair
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import contract, elementwise, indexing, matrix, reduce, shape, solvers
from gradtape.ops.arguments import floating
from gradtape.ops.solvers import check_matrix, check_square, triangle
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_EITHER = "half, float, double, complex64, complex128"

# Steps that the rules share


def _columns(xp, x, scale):
    """The columns of x, each times an element of ``scale``, which may be real where x is complex."""
    return x * xp.expand_dims(_typed(xp, scale, x), axis=-2)


def _typed(xp, x, like):
    return x if xp.dtype(x) == xp.dtype(like) else xp.astype(x, dtype=xp.dtype(like))


def _halved(xp, x):
    """The lower triangle of x with half its diagonal."""
    n = xp.shape(x)[-1]
    return triangle(xp, x, True) * (1 - np.eye(n) / 2).astype(xp.dtype(x))


def _on_diagonal(xp, x, like):
    """The matrices with x on their diagonals."""
    return _columns(xp, np.eye(xp.shape(x)[-1], dtype=xp.dtype(like)), x)


def _reciprocal(xp, x, scale):
    """1/x, but 0 where x is no more than the rounding error of values as large as ``scale``."""
    real = xp.dtype(scale)
    rounding = np.asarray(np.finfo(real).eps * xp.shape(scale)[-1], real)
    nothing = xp.less_equal(xp.abs(x), xp.max(scale, axis=-1, keepdims=True) * rounding)
    return xp.where(nothing, xp.zeros_like(x), xp.reciprocal(xp.where(nothing, xp.ones_like(x), x)))


def _inverse_gaps(xp, w):
    """f[i, j] = 1 / (w[j] - w[i]), and 0 where they are equal."""
    gaps = xp.expand_dims(w, axis=-2) - xp.expand_dims(w, axis=-1)
    return _reciprocal(xp, gaps, xp.expand_dims(xp.abs(w), axis=-2))


# Triangular factors


@op
def cholesky(xp, x):
    """The lower triangular l with l lᴴ = x, reading the lower triangle of x; nan where x is not positive definite."""
    check_square(xp, "Cholesky", x)
    return xp.cholesky(x)


def _cholesky_rule(xp, g, out):
    inner = _halved(xp, xp.matmul(xp.adjoint(out), g))
    left = xp.triangular_solve(xp.adjoint(out), inner, lower=False)
    whole = xp.adjoint(xp.triangular_solve(xp.adjoint(out), xp.adjoint(left), lower=False))
    return (whole + xp.adjoint(whole)) / 2


cholesky.vjp(_cholesky_rule)


@op
def lu(xp, x):
    """(l below the diagonal and u, permutation) with x[permutation] = l u and ones on the diagonal of l."""
    check_square(xp, "Lu", x)
    return xp.lu(x)


def _lu_rule(xp, g, out):
    packed, permutation = out
    n = xp.shape(packed)[-1]
    lower = triangle(xp, packed, True, -1) + np.eye(n, dtype=xp.dtype(packed))
    below = triangle(xp, xp.matmul(xp.adjoint(lower), triangle(xp, g[0], True, -1)), True, -1)
    above = triangle(xp, xp.matmul(triangle(xp, g[0], False), xp.adjoint(triangle(xp, packed, False))), False)
    left = xp.triangular_solve(xp.adjoint(lower), below + above, lower=False)
    whole = xp.adjoint(xp.triangular_solve(packed, xp.adjoint(left), lower=False))
    back = xp.matrix_transpose(xp.one_hot(permutation, depth=n, dtype=xp.dtype(packed)))
    return xp.matmul(back, whole)


lu.vjp(_lu_rule)


@op
def qr(xp, x, *, full=False):
    """(q, r) with q r = x, orthonormal columns in q and r upper triangular; ``full``: q is square."""
    check_matrix(xp, "Qr", x)
    return xp.qr(x, full=full)


def _qr_rule(xp, g, out, x, *, x_shape):
    """Columns of x beyond the square follow from r = qᴴ x; columns of q beyond those of x from being orthogonal to them."""
    (gq, gr), (q, r) = g, out
    rows, columns = x_shape[-2:]
    wide = None
    if columns > rows:
        rest = lambda a: xp.getitem(a, index=(..., slice(rows, None)))
        first = lambda a: xp.getitem(a, index=(..., slice(rows)))
        gq = gq + xp.matmul(rest(x), xp.adjoint(rest(gr)))
        wide, r, gr = xp.matmul(q, rest(gr)), first(r), first(gr)
    elif xp.shape(q)[-1] > columns:
        q, gq = _thin(xp, q, gq, columns)
        r, gr = (xp.getitem(a, index=(..., slice(columns), slice(None))) for a in (r, gr))
    inner = xp.matmul(gr, xp.adjoint(r)) - xp.matmul(xp.adjoint(q), gq)
    above = triangle(xp, inner, False, 1)
    inner = above + xp.adjoint(above) + _hermitian_diagonal(xp, inner)
    out = xp.adjoint(xp.triangular_solve(r, xp.adjoint(gq + xp.matmul(q, inner)), lower=False))
    return out if wide is None else xp.concatenate(out, wide, axis=-1)


def _hermitian_diagonal(xp, x):
    """The real part of the diagonal."""
    return triangle(xp, triangle(xp, (x + xp.adjoint(x)) / 2, True), False)


def _thin(xp, q, gq, count):
    """The first columns and their cotangent: the others are any basis of the rest, and move only as the first ones do."""
    first, rest, g_first, g_rest = (
        xp.getitem(a, index=(..., part)) for a in (q, gq) for part in (slice(count), slice(count, None))
    )
    return first, g_first - xp.matmul(rest, xp.matmul(xp.adjoint(g_rest), first))


qr.vjp(_qr_rule)


# Singular values


@op
def svd(xp, x, *, full=False):
    """(s, u, v) with x = u diag(s) vᴴ, s falling; ``full``: u and v are square."""
    check_matrix(xp, "Svd", x)
    return xp.svd(x, full=full)


def _svd_rule(xp, g, out):
    """With a and b the skew parts of uᴴ gu and vᴴ gv: ((a + b) / (s[j] - s[i]) + (a - b) / (s[j] + s[i])) / 2 between them."""
    (gs, gu, gv), (s, u, v) = g, out
    count = xp.shape(s)[-1]
    if xp.shape(u)[-1] > count:
        u, gu = _thin(xp, u, gu, count)
    if xp.shape(v)[-1] > count:
        v, gv = _thin(xp, v, gv, count)
    a, b = (xp.matmul(xp.adjoint(vectors), gradient) for vectors, gradient in ((u, gu), (v, gv)))
    sums = _reciprocal(xp, xp.expand_dims(s, axis=-2) + xp.expand_dims(s, axis=-1), xp.expand_dims(s, axis=-2))
    inner = _skew(xp, a + b) * _typed(xp, _inverse_gaps(xp, s), u) + _skew(xp, a - b) * _typed(xp, sums, u)
    whole = xp.matmul(xp.matmul(u, inner / 2 + _on_diagonal(xp, gs, u)), xp.adjoint(v))
    inverse = _reciprocal(xp, s, s)
    if xp.shape(u)[-2] > count:
        whole = whole + xp.matmul(_columns(xp, gu - xp.matmul(u, a), inverse), xp.adjoint(v))
    if xp.shape(v)[-2] > count:
        whole = whole + xp.matmul(u, xp.adjoint(_columns(xp, gv - xp.matmul(v, b), inverse)))
    return whole


def _skew(xp, x):
    return x - xp.adjoint(x)


svd.vjp(_svd_rule)


@op(label="Svd")
def svdvals(xp, x):
    """The singular values, falling."""
    check_matrix(xp, "Svd", x)
    return xp.svdvals(x)


def _svdvals_rule(xp, g, x):
    _, u, v = xp.svd(x, full=False)
    return xp.matmul(_columns(xp, u, g), xp.adjoint(v))


svdvals.vjp(_svdvals_rule)


def spectral_norm(x: Tensor, axes: tuple[int, int], keepdims: bool) -> Tensor:
    """The largest singular value of the matrices in two axes."""
    rank = x._array.ndim
    rows, columns = (a % rank for a in axes)
    order = (*(i for i in range(rank) if i not in (rows, columns)), rows, columns)
    out = reduce.max(svdvals(shape.transpose(x, axes=order)), axis=-1)
    return shape.expand_dims(out, axis=tuple(sorted((rows, columns)))) if keepdims else out


def matrix_rank(x: Any, tolerance: Any) -> Tensor:
    """The number of singular values above a tolerance."""
    x = _checked(x if hasattr(x, "dtype") else convert_to_tensor(x, "float32"))
    values = svdvals(x)
    largest = reduce.max(values, axis=-1, keepdims=True)
    if tolerance is None:
        limit = elementwise.multiply(largest, max(x._array.shape[-2:]) * np.finfo(values._array.dtype).eps)
    else:
        limit = shape.expand_dims(convert_to_tensor(tolerance, values.dtype), axis=-1)
    return reduce.sum(elementwise.cast(elementwise.greater(values, limit), "int32"), axis=-1)


def _checked(x: Any) -> Tensor:
    x = convert_to_tensor(x)
    if x._array.dtype.kind not in "fc":
        text = f"Input `a` must have `float`-like `dtype` (saw {x.dtype.name})."
        raise TypeError(message(text, fix="tf.cast(a, tf.float32)"))
    if x._array.ndim < 2:
        text = f"Input `a` must have at least 2 dimensions (saw: {x._array.ndim})."
        raise ValueError(message(text, expected="a matrix, or several with leading axes"))
    return x


@op(same=(0,))
def pinv(xp, x, cutoff):
    """The pseudo-inverse; singular values up to ``cutoff``, one for each matrix, times the largest count as 0."""
    return xp.pinv(x, cutoff)


def _pinv_rule(xp, g, out, x):
    """d p = -p dx p + p pᴴ dxᴴ (1 - x p) + (1 - p x) dxᴴ pᴴ p: exact while the rank stays."""
    p, back = xp.adjoint(out), xp.adjoint(g)
    left = xp.matmul(xp.matmul(back, out), p)
    right = xp.matmul(p, xp.matmul(out, back))
    inside = xp.matmul(xp.matmul(p, g), p)
    return left - xp.matmul(x, xp.matmul(out, left)) + right - xp.matmul(xp.matmul(right, out), x) - inside


pinv.vjp(_pinv_rule, None)


def pseudo_inverse(x: Any, cutoff: Any) -> Tensor:
    """The pseudo-inverse; by default 10 · max(rows, columns) · epsilon of the largest singular value counts as 0."""
    x = _checked(x)
    real = np.finfo(x._array.dtype).dtype
    if cutoff is None:
        cutoff = 10 * max(x._array.shape[-2:]) * np.finfo(real).eps
    limit = convert_to_tensor(cutoff, real)
    try:
        limit = shape.broadcast_to(limit, shape=x._array.shape[:-2])
    except InvalidArgumentError as error:
        raise ValueError(
            message(
                f"Tensor's shape {x._array.shape} is not compatible with a cutoff for each matrix.",
                received=f"rcond of shape {limit._array.shape}",
                expected=f"a number, or shape {x._array.shape[:-2]}",
            )
        ) from error
    return pinv(x, limit)


def lstsq(x: Any, y: Any, regularizer: Any, fast: bool) -> Tensor:
    """The z that makes ‖x z - y‖² + λ ‖z‖² least, and of all such the shortest."""
    x, y = pair(solvers.solve.op, x, y)
    floating("Cholesky", x)
    if not fast:  # by the pseudo-inverse: any rank, λ = 0
        solvers._check_system("MatrixSolveLs", x, y)
        return contract.matmul(pseudo_inverse(x, None), y)
    rows, columns = x._array.shape[-2:]
    tall = rows >= columns
    gram = matrix.matmul(shape.adjoint(x), x) if tall else matrix.matmul(x, shape.adjoint(x))
    penalty = convert_to_tensor(regularizer, x.dtype)
    eye = np.eye(min(rows, columns), dtype=x._array.dtype)
    factor = cholesky(gram + penalty * wrap(eye))
    if tall:
        return solvers.cholesky_solve(factor, matrix.matmul(shape.adjoint(x), y))
    return matrix.matmul(shape.adjoint(x), solvers.cholesky_solve(factor, y))


# Eigenvalues


@op(label="SelfAdjointEigV2")
def eigh(xp, x):
    """(w, v) with v diag(w) vᴴ the Hermitian matrix whose lower triangle x has; w rising."""
    check_square(xp, "SelfAdjointEigV2", x)
    return xp.eigh(x)


def _eigh_rule(xp, g, out):
    (gw, gv), (w, v) = g, out
    inner = xp.matmul(xp.adjoint(v), gv) * _typed(xp, _inverse_gaps(xp, w), v) + _on_diagonal(xp, gw, v)
    return _lower(xp, xp.matmul(xp.matmul(v, inner), xp.adjoint(v)))


def _lower(xp, x):
    """The cotangent of a Hermitian matrix as that of its lower triangle, which alone is read."""
    return _halved(xp, x + xp.adjoint(x))


eigh.vjp(_eigh_rule)


@op(label="SelfAdjointEigV2")
def eigvalsh(xp, x):
    """The eigenvalues of the Hermitian matrix whose lower triangle x has, rising."""
    check_square(xp, "SelfAdjointEigV2", x)
    return xp.eigvalsh(x)


def _eigvalsh_rule(xp, g, x):
    _, v = xp.eigh(x)
    return _lower(xp, xp.matmul(_columns(xp, v, g), xp.adjoint(v)))


eigvalsh.vjp(_eigvalsh_rule)


@op
def eig(xp, x):
    """(w, v) with x v = v diag(w), columns of v of length 1; complex, also for a real x."""
    check_square(xp, "Eig", x)
    return xp.eig(x)


def _eig_rule(xp, g, out):
    (gw, gv), (w, v) = g, out
    n = xp.shape(w)[-1]
    product = xp.matmul(xp.adjoint(v), gv)
    along = xp.real(xp.sum(product * np.eye(n, dtype=xp.dtype(v)), axis=-1))  # a column keeps its length
    across = product - _columns(xp, xp.matmul(xp.adjoint(v), v), along)
    inner = across * xp.conj(_inverse_gaps(xp, w)) + _on_diagonal(xp, gw, v)
    return xp.solve(xp.adjoint(v), xp.matmul(inner, xp.adjoint(v)))


eig.vjp(_eig_rule)


@op(label="Eig")
def eigvals(xp, x):
    """The eigenvalues; complex, also for a real x."""
    check_square(xp, "Eig", x)
    return xp.eigvals(x)


def _eigvals_rule(xp, g, x):
    _, v = xp.eig(x)
    return xp.solve(xp.adjoint(v), xp.matmul(_on_diagonal(xp, g, v), xp.adjoint(v)))


eigvals.vjp(_eigvals_rule)


def eigh_tridiagonal(on: Any, below: Any, values_only: bool, select: str, within: Any) -> Any:
    """The eigenvalues (and vectors) of a Hermitian tridiagonal matrix: all, those of some positions, or of an interval."""
    on = convert_to_tensor(on)
    below = convert_to_tensor(below, None if hasattr(below, "dtype") else on.dtype)
    if select not in ("a", "i", "v"):
        raise ValueError(
            message(
                "'select must have a value in {'a', 'i', 'v'}.",
                received=f"select={select!r}",
                expected="'a' for all, 'i' for a range of numbers, 'v' for a range of values",
            )
        )
    if on._array.dtype.kind not in "fc":
        raise ValueError(message(f"data type {on.dtype.name} not inexact", fix="tf.cast(alpha, tf.float32)"))
    n = on._array.shape[-1]
    if below._array.shape[-1] != n - 1 or on._array.ndim != 1:
        raise InvalidArgumentError(
            message(
                f"Incompatible shapes: [{n}] vs. [{below._array.shape[-1] + 1}] [Op:AddV2]",
                received=f"diagonals of shapes {on._array.shape} and {below._array.shape}",
                expected=f"({n},) and ({n - 1},): the diagonal, and the one beside it",
            )
        )
    x = matrix.diag(on, 0, -1, -1, 0, "RIGHT_LEFT")
    if n > 1:
        x = x + matrix.diag(below, -1, -1, -1, 0, "RIGHT_LEFT")
    if values_only:
        w, v = eigvalsh(x), None
    else:
        w, v = eigh(x)
    part = _selected(w, select, within)
    w = indexing.getitem(w, index=(part,))
    return w if v is None else (w, indexing.getitem(v, index=(slice(None), part)))


def _selected(w: Tensor, select: str, within: Any) -> slice:
    """The positions of the eigenvalues that were asked for."""
    if select == "a":
        return slice(None)
    if within is None:
        text = f"select_range must be given for select={select!r}"
        raise TypeError(message(text, received="select_range=None", fix="select_range=(first, last)"))
    low, high = (convert_to_tensor(limit)._host().item() for limit in within)
    if select == "i":
        if low > high:
            text = "Got empty index range in select_range.\nCondition x <= y did not hold."
            raise InvalidArgumentError(
                message(text, received=f"select_range={shown(within)}", expected="the first number, then the last")
            )
        return slice(int(low), int(high) + 1)
    if not low < high:
        text = "Got empty interval in select_range.\nCondition x < y did not hold."
        raise InvalidArgumentError(
            message(text, received=f"select_range={shown(within)}", expected="the lower limit, then the upper")
        )
    first, last = np.searchsorted(w._host(), [low, high], side="right")
    return slice(int(first), int(last))


# Determinants


@op(label="LogMatrixDeterminant")
def slogdet(xp, x):
    """(sign, log |det|)."""
    check_square(xp, "LogMatrixDeterminant", x, _EITHER)
    return xp.slogdet(x)


def _slogdet_rule(xp, g, out, x):
    g_sign, g_log = g
    scale = g_log
    if xp.dtype(x).kind == "c":  # the sign turns as det does; of a real matrix it is constant
        scale = xp.complex(xp.real(g_log), xp.imag(g_sign * xp.conj(out[0])))
    return xp.expand_dims(scale, axis=(-2, -1)) * xp.adjoint(xp.inv(x))


slogdet.vjp(_slogdet_rule)


@op(label="MatrixDeterminant")
def det(xp, x):
    """The determinant."""
    check_square(xp, "MatrixDeterminant", x, _EITHER)
    sign, log = xp.slogdet(x)
    return sign * xp.exp(log)


det.vjp(lambda xp, g, out, x: xp.expand_dims(g * xp.conj(out), axis=(-2, -1)) * xp.adjoint(xp.inv(x)))


def logdet(x: Any) -> Tensor:
    """log det of a Hermitian positive definite matrix, real."""
    diagonal = matrix.diag_part(cholesky(x), 0, 0, "RIGHT_LEFT")
    return reduce.sum(elementwise.log(elementwise.real(diagonal)), axis=-1) * 2


# Functions of a matrix: f of the blocks [x e; 0 x] has the derivative of f along e in its corner


def _along(name: str) -> Any:
    """The rule of a function that commutes with the adjoint: the derivative at xᴴ along g, with g kept at size 1 or less."""

    def rule(xp, g, x):
        n = xp.shape(x)[-1]
        if not n:
            return g
        size = xp.max(xp.abs(g), axis=(-2, -1), keepdims=True)
        size = _typed(xp, xp.maximum(size, xp.ones_like(size)), g)
        at = xp.adjoint(x)
        above = xp.concatenate(at, g / size, axis=-1)
        below = xp.concatenate(xp.zeros_like(at), at, axis=-1)
        out = getattr(xp, name)(xp.concatenate(above, below, axis=-2))
        return xp.getitem(out, index=(..., slice(n), slice(n, None))) * size

    return rule


@op
def expm(xp, x):
    """The matrix exponential Σ xᵏ / k!."""
    return xp.expm(x)


expm.vjp(_along("expm"))


@op(label="MatrixSquareRoot")
def sqrtm(xp, x):
    """The z with z z = x and eigenvalues of positive real part; nan where a real x has no real one."""
    check_square(xp, "MatrixSquareRoot", x)
    return xp.sqrtm(x)


sqrtm.vjp(_along("sqrtm"))


@op(label="MatrixLogarithm")
def logm(xp, x):
    """The z with expm(z) = x and eigenvalues of imaginary part in (-π, π]."""
    check_square(xp, "MatrixLogarithm", x, "complex64, complex128")
    return xp.logm(x)


logm.vjp(_along("logm"))


def matrix_exponential(x: Any) -> Tensor:
    """The matrix exponential, for square matrices of a floating type."""
    x = convert_to_tensor(x)
    if x._array.dtype.kind not in "fc":
        text = f"tf.linalg.expm does not support matrices of type {x.dtype!r}"
        raise ValueError(message(text, fix="tf.cast(input, tf.float32)"))
    if x._array.ndim < 2 or x._array.shape[-1] != x._array.shape[-2]:
        size = dims((1, *x._array.shape))
        flags = " 0 0" if x._array.ndim > 1 else ""  # as TensorFlow prints them
        raise InvalidArgumentError(
            message(f"Matrix size-incompatible: In[0]: {size}, In[1]: {size}{flags}", expected="square matrices")
        )
    return expm(x)
