"""Records of gradtape/ops/solvers.py, in its order."""

import numpy as np

import gradtape as tf
from gradtape.ops import solvers as ops
from gradtape.testing import OpRecord

HALVES = ("float64", "float32", "float16")  # bfloat16 is refused, as in TensorFlow
ROUGH = 8  # a solution multiplies rounding errors by the condition of the matrix


def systems(*shapes, shift=4.0):
    """Well-conditioned square matrices, and a right-hand side for each."""

    def samples(rng):
        found = []
        for x, y in shapes:
            matrix = rng.normal(size=x) + shift * np.eye(x[-1])
            found.append((matrix, rng.normal(size=y)) if y else (matrix,))
        return found

    return samples


def record(name, function, samples, reference, case="", **options):
    options = {"complex": True, "dtypes": HALVES, "half_tolerance": ROUGH, "empties": list, **options}
    return OpRecord(name, function, samples, reference, case=case, **options)


def tridiagonal(rng):
    diagonals = rng.normal(size=(2, 3, 4))
    diagonals[:, 1] += 6
    return [(diagonals, rng.normal(size=(2, 4, 2)))]


def dense(d):
    rows = [np.diag(a[0, :-1], 1) + np.diag(a[1]) + np.diag(a[2, 1:], -1) for a in d]
    return np.reshape(rows, (len(d), d.shape[-1], d.shape[-1]))


def bands(rng):
    rows = rng.normal(size=(2, 4))
    rows[0] += 4
    return [(rows, rng.normal(size=(4, 2)))]


def packed(rng):
    return [(rng.normal(size=(2, 3, 3)) + 4 * np.eye(3), rng.normal(size=(2, 3, 2)))]


ORDER = np.array([[2, 0, 1], [0, 2, 1]])


def factors(x):
    return np.tril(x, -1) + np.eye(3), np.triu(x)


def unpacked(x):
    lower, upper = factors(x)
    return np.stack([(low @ up)[np.argsort(order)] for low, up, order in zip(lower, upper, ORDER)])


class Product:
    """An operator for the method of conjugate gradients."""

    is_self_adjoint = is_positive_definite = True

    def __init__(self, x):
        self.x = tf.linalg.matmul(x, x, transpose_a=True)

    def matvec(self, v):
        return tf.linalg.matvec(self.x, v)


RECORDS = [
    record("solve", ops.solve, systems(((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 1))), np.linalg.solve,
           empties=lambda: [(np.zeros((0, 2, 2)), np.zeros((0, 2, 1))), (np.zeros((0, 0)), np.zeros((0, 2)))],
           bad=[(lambda: (np.zeros((2, 2)), np.ones((2, 1))), tf.errors.InvalidArgumentError, "not invertible")]),
    record("solve", ops.solve, systems(((3, 3), (2, 3, 2))), np.linalg.solve, "one matrix"),
    record("inv", ops.inv, systems(((3, 3), ()), ((2, 2, 2), ())), np.linalg.inv,
           empties=lambda: [(np.zeros((0, 2, 2)),)],
           bad=[(lambda: (np.zeros((2, 2)),), tf.errors.InvalidArgumentError, "Input is not invertible."),
                (lambda: (np.zeros((2, 3)),), tf.errors.InvalidArgumentError, "must be square"),
                (lambda: (np.eye(2, dtype=int),), tf.errors.InvalidArgumentError, "allowed values")]),
    record("triangular_solve", lambda x, y: ops.triangular_solve(x, y, lower=True), systems(((3, 3), (3, 2))),
           lambda x, y: np.linalg.solve(np.tril(x), y), empties=lambda: [(np.zeros((0, 2, 2)), np.zeros((0, 2, 1)))]),
    record("triangular_solve", lambda x, y: ops.triangular_solve(x, y, lower=False), systems(((2, 3, 3), (3, 2))),
           lambda x, y: np.linalg.solve(np.triu(x), y), "upper, one right-hand side"),
    record("cholesky_solve", ops.cholesky_solve, systems(((3, 3), (3, 2))),
           lambda x, y: np.linalg.solve(np.tril(x) @ np.tril(x).conj().T, y), half_tolerance=30),
    record("banded_triangular_solve", lambda x, y: ops.banded_triangular_solve(x, y, True, False), bands,
           lambda x, y: np.linalg.solve(np.diag(x[0]) + np.diag(x[1, 1:], -1), y)),
    record("banded_triangular_solve", lambda x, y: ops.banded_triangular_solve(x, y, False, True),
           lambda rng: [(a[::-1].copy(), b) for a, b in bands(rng)],
           lambda x, y: np.linalg.solve((np.diag(x[1]) + np.diag(x[0, :-1], 1)).conj().T, y), "upper, adjoint"),
    record("tridiagonal_solve", ops.tridiagonal_solve, tridiagonal, lambda d, y: np.linalg.solve(dense(d), y),
           empties=lambda: [(np.zeros((0, 3, 2)), np.zeros((0, 2, 1)))]),
    record("tridiagonal_solve", ops.tridiagonal_solve, lambda rng: [tuple(a[:1, :, :1] if i == 0 else a[:1, :1]
           for i, a in enumerate(tridiagonal(rng)[0]))], lambda d, y: y / d[:, 1:2], "one row"),
    record("tridiagonal_matmul", lambda d, y: ops.tridiagonal_matmul(d, y, "compact"), tridiagonal,
           lambda d, y: dense(d) @ y),
    record("lu_solve", lambda x, y: ops.lu_solve(x, ORDER, y, False), packed,
           lambda x, y: np.linalg.solve(unpacked(x), y), half_tolerance=30),
    record("lu_matrix_inverse", lambda x: ops.lu_matrix_inverse(x, ORDER, False), lambda rng: [packed(rng)[0][:1]],
           lambda x: np.linalg.inv(unpacked(x)), half_tolerance=30),
    record("lu_reconstruct", lambda x: ops.lu_reconstruct(x, ORDER, False), lambda rng: [packed(rng)[0][:1]], unpacked),
    # It stops when the values tell it to, so a batch cannot run at once.
    record("conjugate_gradient", lambda x, y: ops.conjugate_gradient(Product(x).matvec, y, None, None, 1e-14, 3)[1],
           lambda rng: [(np.eye(3) + rng.normal(size=(3, 3)) / 8, rng.normal(size=3))],
           lambda x, y: np.linalg.solve(x.T @ x, y), complex=False, dtypes=("float64",), batched=False),
]  # fmt: skip
