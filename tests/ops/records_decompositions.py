"""Records of gradtape/ops/decompositions.py, in its order.

Vectors are unique up to a factor of size 1, so records of eigenvectors and singular vectors look at what does not depend on it.
"""

import numpy as np
import scipy.linalg

import gradtape as tf
from gradtape.ops import decompositions as ops
from gradtape.testing import OpRecord

HALVES = ("float64", "float32", "float16")  # bfloat16 is refused, as in TensorFlow
ROUGH = 40  # what divides by differences, or squares the condition, loses digits
REFUSED = tf.errors.InvalidArgumentError

SQUARE = [
    (lambda: (np.zeros((2, 3)),), REFUSED, "must be square"),
    (lambda: (np.zeros(2),), REFUSED, "must have rank >= 2, got 1"),
    (lambda: (np.eye(2, dtype=int),), REFUSED, "not in the list of allowed values"),
]


def some(*shapes, shift=3.0):
    """Well-conditioned matrices with distinct eigenvalues and singular values."""

    def samples(rng):
        return [(rng.normal(size=shape) + shift * np.diag(np.arange(1, max(shape) + 1))[: shape[-2], : shape[-1]],)
                for shape in shapes]  # fmt: skip

    return samples


def record(name, function, samples, reference, case="", **options):
    given = {"complex": True, "dtypes": HALVES, "half_tolerance": ROUGH, "empties": lambda: [(np.zeros((0, 3, 3)),)]}
    return OpRecord(name, function, samples, reference, case=case, **{**given, **options})


def hermitian(x):
    """A positive definite matrix of x, for tensors and arrays."""
    if isinstance(x, np.ndarray):
        return x @ x.conj().swapaxes(-1, -2) + np.eye(x.shape[-2])
    return tf.linalg.matmul(x, x, adjoint_b=True) + tf.eye(x.shape[-2], dtype=x.dtype)


def on(function):
    return lambda x: function(hermitian(tf.convert_to_tensor(x)))


def qr(full):
    """q up to the basis of what x does not span, and r."""

    def invariant(x):
        q, r = ops.qr(x, full=full)
        count = min(x.shape[-2:])
        thin, rest = q[..., :count], q[..., count:]
        return thin, r, tf.linalg.matmul(rest, rest, adjoint_b=True)

    def reference(x):
        q, r = np.linalg.qr(x, "complete" if full else "reduced")
        count = min(x.shape[-2:])
        rest = q[..., count:]
        return q[..., :count], r, rest @ rest.conj().swapaxes(-1, -2)

    return invariant, reference


def svd(full):
    """What does not depend on the factors of u and v."""

    def invariant(x):
        s, u, v = ops.svd(x, full=full)
        count = s.shape[-1]
        thin, other = u[..., :count], v[..., :count]
        rest = u[..., count:]
        return s, tf.abs(thin), tf.abs(other), tf.linalg.matmul(thin, other, adjoint_b=True), \
            tf.linalg.matmul(rest, rest, adjoint_b=True)  # fmt: skip

    def reference(x):
        u, s, v = np.linalg.svd(x, full_matrices=full)
        count = s.shape[-1]
        rest = u[..., count:]
        thin, other = u[..., :count], v[..., :count, :]
        return s, np.abs(thin), np.abs(other).swapaxes(-1, -2), thin @ other, rest @ rest.conj().swapaxes(-1, -2)

    return invariant, reference


def sizes(function):
    """The squares of values (their sum is linear in the matrix), and the sizes of vectors."""

    def ordered(x):
        w, v = function(x)
        return w * w, (tf.abs if isinstance(v, tf.Tensor) else np.abs)(v)

    return ordered


def squares(function):
    """The sum of eigenvalues is linear in the matrix: its second derivative would be rounding errors alone."""
    return lambda *xs: function(*xs) ** 2


def triangle(rng):
    """Its eigenvalues stand on the diagonal, and come in that order."""
    above, below = np.triu(rng.normal(size=(2, 3, 3)) / 2, 1), np.tril(rng.normal(size=(3, 3)) / 50, -1)
    return [(above + np.diag([1.0, 2.5, 4.0]) + below,)]


def repeated(*shapes):
    """Matrices whose eigenvalues and singular values are equal."""
    return lambda rng: [(2 * np.eye(*shape),) for shape in shapes]


def power_sum(function, power):
    return lambda x: tf.reduce_sum(function(x) ** power)


def slogdet(x):
    sign, log = np.linalg.slogdet(x)
    return sign, log.astype(x.dtype)


def on_each(function):
    """A function of one matrix for a stack of them."""
    return lambda x: np.reshape([function(a) for a in x.reshape(-1, *x.shape[-2:])], x.shape)


NO_GAUGE = {"same_dtype": False}
RECORDS = [
    record("cholesky", on(ops.cholesky), some((3, 3), (2, 2, 2), shift=0.3), lambda x: np.linalg.cholesky(hermitian(x)),
           bad=SQUARE[2:]),
    record("lu", lambda x: ops.lu(x)[0], some((3, 3), (2, 2, 2)), on_each(lambda x: _packed(x)), bad=SQUARE[2:]),
    record("qr", qr(False)[0], some((3, 3), (2, 3, 2)), qr(False)[1], bad=SQUARE[1:],
           empties=lambda: [(np.zeros((0, 3, 2)),)]),
    record("qr", qr(False)[0], some((2, 3)), qr(False)[1], "wide", empties=list),
    record("qr", qr(True)[0], some((4, 2), (3, 2)), qr(True)[1], "full", empties=list),
    record("svd", svd(False)[0], some((3, 3), (2, 3, 2)), svd(False)[1], bad=SQUARE[1:], **NO_GAUGE),
    record("svd", svd(False)[0], some((2, 3)), svd(False)[1], "wide", **NO_GAUGE),
    record("svd", svd(True)[0], some((4, 2)), svd(True)[1], "full", **NO_GAUGE),
    record("svdvals", ops.svdvals, some((3, 3), (2, 3, 2)), np.linalg.svdvals, bad=SQUARE[1:], **NO_GAUGE),
    record("svdvals", power_sum(ops.svdvals, 1), repeated((3, 3), (3, 2)), lambda x: np.linalg.svdvals(x).sum(),
           "nuclear norm of equal values", complex=False, order=1, empties=list),
    record("svdvals", lambda x: tf.linalg.norm(x, 2, [-2, -1]), some((2, 3, 2)), lambda x: np.linalg.norm(x, 2, (-2, -1)),
           "norm", **NO_GAUGE),
    record("matrix_rank", lambda x: ops.matrix_rank(x, None), some((3, 2), (2, 2, 2)),
           lambda x: np.linalg.matrix_rank(x).astype(np.int32), differentiable=False, complex=False, empties=list),
    record("pinv", lambda x: ops.pseudo_inverse(x, None), some((3, 3), (2, 3, 2), (2, 3)), np.linalg.pinv,
           empties=lambda: [(np.zeros((0, 3, 2)),)]),
    record("pinv", lambda x: ops.pseudo_inverse(x, None), repeated((3, 3), (3, 2)), np.linalg.pinv, "equal values",
           complex=False, empties=list),
    record("lstsq", lambda x, y: ops.lstsq(x, y, 0.5, True), lambda rng: [(rng.normal(size=(3, 2)), rng.normal(size=(3, 1)))],
           lambda x, y: np.linalg.solve(x.conj().T @ x + np.eye(2) / 2, x.conj().T @ y), empties=list),
    record("lstsq", lambda x, y: ops.lstsq(x, y, 0.5, True), lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=(2, 1)))],
           lambda x, y: np.linalg.solve(x.conj().T @ x + np.eye(3) / 2, x.conj().T @ y), "wide", empties=list),
    record("lstsq", lambda x, y: ops.lstsq(x, y, 0.0, False), lambda rng: [(rng.normal(size=(3, 2)), rng.normal(size=(3, 1)))],
           lambda x, y: np.linalg.lstsq(x, y)[0], "not fast", empties=list),
    record("eigh", sizes(ops.eigh), some((3, 3), (2, 2, 2)), sizes(np.linalg.eigh), bad=SQUARE, **NO_GAUGE),
    record("eigvalsh", squares(ops.eigvalsh), some((3, 3), (2, 2, 2)), squares(np.linalg.eigvalsh), bad=SQUARE, **NO_GAUGE),
    record("eigvalsh", power_sum(ops.eigvalsh, 1), repeated((3, 3)), lambda x: np.linalg.eigvalsh(x).sum(), "equal values",
           complex=False, empties=list),
    record("eigvalsh", power_sum(ops.eigvalsh, 3), repeated((3, 3)), lambda x: (np.linalg.eigvalsh(x) ** 3).sum(),
           "cubes of equal values", complex=False, order=1, empties=list),
    record("eig", sizes(ops.eig), triangle, sizes(np.linalg.eig), bad=SQUARE, complex=False, dtypes=("float64", "float32"),
           **NO_GAUGE),
    record("eigvals", squares(lambda x: tf.math.real(ops.eigvals(x))), triangle,
           squares(lambda x: np.linalg.eigvals(x).real), bad=SQUARE, complex=False, dtypes=("float64", "float32")),
    record("eigh_tridiagonal", squares(lambda a, b: ops.eigh_tridiagonal(a, b, True, "a", None)),
           lambda rng: [(np.arange(4.0), rng.normal(size=3))], squares(scipy.linalg.eigvalsh_tridiagonal),
           complex=False, empties=list),
    record("slogdet", ops.slogdet, some((3, 3), (2, 2, 2)), slogdet, bad=SQUARE, complex=False),
    record("slogdet", lambda x: ops.slogdet(x)[0], some((2, 2)), lambda x: np.linalg.slogdet(x)[0], "sign", empties=list),
    record("det", ops.det, some((3, 3), (2, 2, 2)), np.linalg.det, bad=SQUARE),
    record("logdet", on(ops.logdet), some((2, 2, 2), shift=0.3), lambda x: np.linalg.slogdet(hermitian(x))[1],
           empties=list, **NO_GAUGE),
    record("expm", ops.expm, some((2, 2), (1, 2, 2), shift=0.3), scipy.linalg.expm),
    record("expm", ops.expm, repeated((2, 2)), scipy.linalg.expm, "equal values", complex=False, empties=list),
    record("sqrtm", ops.sqrtm, some((3, 3), (2, 2, 2)), scipy.linalg.sqrtm, bad=SQUARE),
    record("sqrtm", ops.sqrtm, repeated((2, 2)), scipy.linalg.sqrtm, "equal values", complex=False, empties=list),
    record("logm", lambda x: tf.math.real(ops.logm(tf.cast(x, tf.complex128))), some((2, 2)),
           lambda x: on_each(scipy.linalg.logm)(x).real, dtypes=("float64",), complex=False),
]  # fmt: skip


def _packed(x):
    _, lower, upper = scipy.linalg.lu(x)
    return np.tril(lower, -1) + upper
