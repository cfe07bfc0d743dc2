"""Linear algebra of the dialect on jax arrays. XLA cannot raise: what NumPy refuses (singular matrices) gives nan or inf."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import lax

from gradtape.xp import numpy_linalg as _numpy
from gradtape.xp.jax_host import ask


def _widened(function):
    """XLA's decompositions have no half precision."""

    @functools.wraps(function)
    def call(*arrays, **attributes):
        half = arrays[0].dtype
        if half.itemsize > 2:
            return function(*map(jnp.asarray, arrays), **attributes)
        out = function(*(jnp.asarray(a).astype(np.float32) for a in arrays), **attributes)
        return tuple(_narrowed(a, half) for a in out) if type(out) is tuple else _narrowed(out, half)

    return call


def _narrowed(x, half):
    return x if x.dtype.kind in "ic" else x.astype(half)


def _same_lead(x, y):
    lead = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return (jnp.broadcast_to(a, lead + a.shape[-2:]) for a in (x, y))


@_widened
def solve(x, y):
    return jnp.linalg.solve(*_same_lead(x, y))


@_widened
def inv(x):
    return jnp.linalg.inv(x)


@_widened
def triangular_solve(x, y, *, lower):
    x, y = _same_lead(x, y)
    return lax.linalg.triangular_solve(x, y, left_side=True, lower=lower)


@_widened
def tridiagonal_solve(diagonals, y):
    """Rows of ``diagonals``: above, on and below the main diagonal."""
    diagonals, y = _same_lead(diagonals, y)
    n = y.shape[-2]
    if not y.size:
        return y
    above, on, below = (diagonals[..., i, :] for i in range(3))
    above, below = above.at[..., n - 1].set(0), below.at[..., 0].set(0)
    if y.dtype.kind == "c" or n < 3:  # XLA has neither; the dense matrix has
        dense = jnp.zeros((*on.shape, n), on.dtype)
        rows = np.arange(n)
        dense = dense.at[..., rows, rows].set(on).at[..., rows[1:], rows[:-1]].set(below[..., 1:])
        return jnp.linalg.solve(dense.at[..., rows[:-1], rows[1:]].set(above[..., :-1]), y)
    return lax.linalg.tridiagonal_solve(below, on, above, y)


@_widened
def cholesky(x):
    return jnp.linalg.cholesky(x, symmetrize_input=False)


@_widened
def lu(x):
    packed, _, permutation = lax.linalg.lu(x)
    return packed, permutation


@_widened
def qr(x, *, full=False):
    q, r = jnp.linalg.qr(x, "complete" if full else "reduced")
    return q, r


@_widened
def svd(x, *, full=False):
    u, s, v = jnp.linalg.svd(x, full_matrices=full)
    return s, u, jnp.conj(jnp.matrix_transpose(v))


@_widened
def svdvals(x):
    return jnp.linalg.svd(x, compute_uv=False)


@_widened
def pinv(x, cutoff):
    s, u, v = svd(x)
    kept = s > cutoff[..., None] * jnp.max(s, axis=-1, keepdims=True, initial=0)
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0).astype(s.dtype)
    return (v * inverse[..., None, :]) @ jnp.conj(jnp.matrix_transpose(u))


@_widened
def eigh(x):
    w, v = jnp.linalg.eigh(x, symmetrize_input=False)
    return w, v


@_widened
def eigvalsh(x):
    return jnp.linalg.eigvalsh(x, symmetrize_input=False)


@_widened
def eig(x):
    w, v = jnp.linalg.eig(x)
    return w, v


@_widened
def eigvals(x):
    return jnp.linalg.eigvals(x)


@_widened
def slogdet(x):
    sign, log = jnp.linalg.slogdet(x)
    return sign, log.astype(x.dtype)


@_widened
def expm(x):
    if not x.size:
        return x
    return jax.scipy.linalg.expm(x, max_squarings=32)  # with 16, a norm above 3e5 would give nan


def _on_the_host(function):
    """XLA has no Schur decomposition on accelerators: the matrix travels to the host and back."""

    @functools.wraps(function)
    def call(x):
        x = jnp.asarray(x)
        return ask(function, x.shape, x.dtype, x)

    return call


sqrtm, logm = map(_on_the_host, (_numpy.sqrtm, _numpy.logm))
