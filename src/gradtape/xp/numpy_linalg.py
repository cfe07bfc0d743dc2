"""Linear algebra of the dialect on NumPy arrays: stacks of matrices in the last two axes.

NumPy where it works on stacks, LAPACK through SciPy (loaded at first use) where it does not. Where NumPy refuses a whole
stack because one matrix of it has no answer, TensorFlow and XLA answer nan for that one, and so do these. The half types
are computed in float32.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np

from gradtape.errors import InvalidArgumentError, message


def _widened(function):
    """LAPACK has no half precision."""

    @functools.wraps(function)
    def call(*arrays, **attributes):
        half = arrays[0].dtype
        if half.itemsize > 2:
            return function(*arrays, **attributes)
        out = function(*(a.astype(np.float32) for a in arrays), **attributes)
        return tuple(_narrowed(a, half) for a in out) if type(out) is tuple else _narrowed(out, half)

    return call


def _narrowed(x, half):
    if x.dtype.kind in "ic":  # a permutation; the eigenvalues of a real matrix
        return x
    with np.errstate(all="ignore"):
        return x.astype(half)


def _nan_on_failure(function):
    """nan for the matrices that have no answer, where NumPy refuses all."""

    @functools.wraps(function)
    def call(x, **attributes):
        try:
            with np.errstate(all="ignore"):
                return function(x, **attributes)
        except (np.linalg.LinAlgError, ValueError):
            if x.ndim > 2:
                rows = [call(a, **attributes) for a in x]
                return tuple(map(np.stack, zip(*rows))) if type(rows[0]) is tuple else np.stack(rows)
        like = function(np.eye(*x.shape, dtype=x.dtype), **attributes)
        return tuple(np.full_like(a, np.nan) for a in like) if type(like) is tuple else np.full_like(like, np.nan)

    return _widened(call)


def _each(function, *arrays):
    """The results of a function of matrices for every index of the leading axes, which broadcast."""
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    flat = [np.broadcast_to(a, lead + a.shape[-2:]).reshape(-1, *a.shape[-2:]) for a in arrays]
    return lead, [function(*row) for row in zip(*flat)]


# Solving


@_widened
def solve(x, y):
    """The z with x z = y; a singular x is refused."""
    try:
        return np.linalg.solve(x, y)
    except np.linalg.LinAlgError:
        text = "Input matrix is not invertible."
        raise InvalidArgumentError(
            message(text, fix="tf.linalg.lstsq(matrix, rhs, l2_regularizer=1e-6), or add a small multiple of tf.eye(n)")
        ) from None


@_widened
def inv(x):
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(
            message("Input is not invertible.", fix="tf.linalg.pinv(matrix), or add a small multiple of tf.eye(n)")
        ) from None


@_widened
def triangular_solve(x, y, *, lower):
    """The z with t z = y, where t is a triangle of x; a 0 on the diagonal gives inf or nan."""
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), (x, y))
    if not x.size or not y.size:
        return np.zeros(np.broadcast_shapes(x.shape[:-2], y.shape[:-2]) + y.shape[-2:], y.dtype)
    if x.ndim > 2 and x.shape[-1] <= 32 and np.diagonal(x, axis1=-2, axis2=-1).all():
        return np.linalg.solve(np.tril(x) if lower else np.triu(x), y)  # 0.2 µs a small matrix; BLAS one by one takes 7
    lead, rows = _each(lambda a, b: trsm(1.0, a, b, lower=lower), x, y)
    return np.reshape(rows, lead + y.shape[-2:])


@_widened
def tridiagonal_solve(diagonals, y):
    """Rows of ``diagonals``: above (its last element unread), on, and below (its first) the main diagonal; nan if singular."""
    from scipy.linalg import get_lapack_funcs

    (gtsv,) = get_lapack_funcs(("gtsv",), (diagonals, y))

    def one(d, b):
        if d.shape[-1] == 1:
            with np.errstate(all="ignore"):
                return b / d[1]
        *_, out, failed = gtsv(d[2, 1:], d[1], d[0, :-1], b)
        return np.full_like(b, np.nan) if failed else out

    lead = np.broadcast_shapes(diagonals.shape[:-2], y.shape[:-2])
    if not y.size or not diagonals.size:
        return np.zeros(lead + y.shape[-2:], y.dtype)
    lead, rows = _each(one, diagonals, y)
    return np.reshape(rows, lead + y.shape[-2:])


# Decompositions


@_nan_on_failure
def _cholesky(x):
    return np.linalg.cholesky(x)


def cholesky(x):
    """The lower triangular factor, from the lower triangle of x; nan if x is not positive definite."""
    return np.tril(_cholesky(x))


@_widened
def lu(x):
    """(L below the diagonal and U, permutation) with x[permutation] = L U."""
    from scipy.linalg import get_lapack_funcs

    (getrf,) = get_lapack_funcs(("getrf",), (x,))
    n = x.shape[-1]
    if not x.size:
        return x.copy(), np.zeros(x.shape[:-1], np.int32)
    lead, rows = _each(getrf, x)
    if any(failed for _, _, failed in rows):
        raise InvalidArgumentError(message("Input is not invertible.", fix="add a small multiple of tf.eye(n)"))
    permutations = np.tile(np.arange(n, dtype=np.int32), (len(rows), 1))
    for permutation, (_, pivots, _) in zip(permutations, rows):
        for i, p in enumerate(pivots):
            permutation[[i, p]] = permutation[[p, i]]
    return np.reshape([packed for packed, _, _ in rows], x.shape), permutations.reshape(*lead, n)


@_nan_on_failure
def qr(x, *, full=False):
    """(q, r), with all columns of q if ``full``, otherwise as many as r has rows at least."""
    return tuple(np.linalg.qr(x, "complete" if full else "reduced"))


@_nan_on_failure
def svd(x, *, full=False):
    """(s, u, v) with x = u diag(s) vᴴ, the largest first."""
    u, s, v = np.linalg.svd(x, full_matrices=full)
    return s, u, v.mT.conj()


@_nan_on_failure
def svdvals(x):
    return np.linalg.svdvals(x)


@_widened
def pinv(x, cutoff):
    """The pseudo-inverse; singular values up to ``cutoff`` (one for each matrix) times the largest count as 0."""
    s, u, v = svd(x)
    kept = s > cutoff[..., None] * s.max(axis=-1, keepdims=True, initial=0)
    return (v * np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)[..., None, :]) @ u.mT.conj()


@_nan_on_failure
def eigh(x):
    """(w, v) with v diag(w) vᴴ the Hermitian matrix that the lower triangle of x describes, the smallest first."""
    return tuple(np.linalg.eigh(x))


@_nan_on_failure
def eigvalsh(x):
    return np.linalg.eigvalsh(x)


def _complex(x):
    return x.astype(np.complex128 if x.dtype.itemsize > 4 else np.complex64) if x.dtype.kind == "f" else x


@_nan_on_failure
def eig(x):
    """(w, v) with x v = v diag(w); complex, also for a real x."""
    w, v = np.linalg.eig(x)
    return _complex(w), _complex(v)


@_nan_on_failure
def eigvals(x):
    return _complex(np.linalg.eigvals(x))


@_widened
def slogdet(x):
    """(sign, log |det|), both in the dtype of x."""
    with np.errstate(all="ignore"):
        sign, log = np.linalg.slogdet(x)
    return np.asarray(sign), np.asarray(log).astype(x.dtype)


# Functions of a matrix


def _from_scipy(name):
    """A function of square matrices; nan where the result of a real matrix is not real, or there is none."""

    def call(x):
        if not x.size:
            return x.copy()
        import scipy.linalg

        with warnings.catch_warnings():  # SciPy announces singular matrices; here inf and nan are answers
            warnings.simplefilter("ignore")
            out = np.asarray(getattr(scipy.linalg, name)(x))
        if x.dtype.kind == "f" and out.dtype.kind == "c":
            unreal = np.any(out.imag != 0, axis=(-2, -1), keepdims=True)
            out = np.where(unreal, np.nan, out.real)
        known = np.isfinite(x).all(axis=(-2, -1), keepdims=True)
        return np.where(known, out, np.nan).astype(x.dtype)

    call.__name__ = name
    return _nan_on_failure(call)


expm, sqrtm, logm = map(_from_scipy, ("expm", "sqrtm", "logm"))
