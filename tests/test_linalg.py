"""`tf.linalg`: products, norms, diagonals, bands, decompositions and systems against NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape import errors, linalg
from gradtape.testing import check_gradients

pytestmark = pytest.mark.tiny

RNG = np.random.default_rng(0)
A, B, V = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 3)), RNG.normal(size=4)
C = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))


@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ({}, lambda a, b: a @ b),
        ({"transpose_a": True}, lambda a, b: a.T @ b),
        ({"transpose_b": True}, lambda a, b: a @ b.T),
        ({"adjoint_a": True}, lambda a, b: a.conj().T @ b),
        ({"adjoint_b": True, "transpose_a": True}, lambda a, b: a.T @ b.conj().T),
    ],
)
def test_matmul_turns_its_arguments(options, reference):
    np.testing.assert_allclose(linalg.matmul(C, C + 1, **options).numpy(), reference(C, C + 1))


def test_matmul_broadcasts_leading_axes():
    x, y = RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(5, 4, 2))
    np.testing.assert_allclose(linalg.matmul(x, y).numpy(), x @ y)


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (A, V, r"In\[1\] ndims must be >= 2"),
        (V, A, r"In\[0\] ndims must be >= 2"),
        (A, A, r"Matrix size-incompatible: In\[0\]: \[3,4\], In\[1\]: \[3,4\]"),
        (np.ones((2, 2, 2)), np.ones((3, 2, 2)), "must have compatible batch dimensions"),
    ],
)
def test_matmul_refuses(x, y, text):
    with pytest.raises(errors.InvalidArgumentError, match=text):
        linalg.matmul(x, y)


def test_matmul_takes_transpose_or_adjoint():
    with pytest.raises(ValueError, match="Only one of `transpose_a` and `adjoint_a` can be True"):
        linalg.matmul(A, A, transpose_a=True, adjoint_a=True)


def test_matvec():
    np.testing.assert_allclose(linalg.matvec(A, V).numpy(), A @ V)
    np.testing.assert_allclose(linalg.matvec(B, V, transpose_a=True).numpy(), B.T @ V)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("...ij,...jk", [(5, 1, 2, 3), (6, 3, 4)]),
        ("i...,i...->...", [(2, 3, 1), (2, 3, 4)]),
        ("...,...", [(2, 3), (2, 3)]),
        ("ij,kj,kl->il", [(2, 3), (4, 3), (4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("i j , j k -> i k", [(2, 3), (3, 4)]),
        ("ij->", [(2, 3)]),
    ],
)
def test_einsum(equation, shapes):
    arrays = [RNG.normal(size=shape) for shape in shapes]
    np.testing.assert_allclose(linalg.einsum(equation, *arrays).numpy(), np.einsum(equation, *arrays), atol=1e-14)


@pytest.mark.parametrize(
    ("equation", "error", "text"),
    [
        ("ij,jk->il", ValueError, "contain the label l not present"),
        ("ij,jk,kl->il", ValueError, "Got 2 inputs for equation"),
        ("i1,jk->i", ValueError, "incorrect format"),
        ("ij,jk->ikk", ValueError, "appearing more than once"),
        ("ijk,jk->i", errors.InvalidArgumentError, "Expected input 0 to have rank 3 but got: 2"),
        ("ij,ij->ij", errors.InvalidArgumentError, "Expected dimension 3 at axis 0"),
        ("...j,...k->jk", errors.InvalidArgumentError, "no ellipsis"),
    ],
)
def test_einsum_refuses(equation, error, text):
    with pytest.raises(error, match=text):
        linalg.einsum(equation, A, B)


@pytest.mark.parametrize("axes", [0, 1, 2, [[0], [1]], [[-1, 0], [0, 1]], [1, 0], np.array([[1], [0]])])
def test_tensordot(axes):
    x, y = (A, A) if isinstance(axes, int) and axes == 2 else (A, B)
    expected = np.tensordot(x, y, axes if isinstance(axes, int) else [*axes])
    np.testing.assert_allclose(linalg.tensordot(x, y, axes).numpy(), expected)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("order", ["euclidean", 1, 2, 3, 0.5, np.inf])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_vector_norms(order, axis, keepdims):
    flat = A.reshape(-1) if axis is None else A
    expected = np.linalg.norm(flat, 2 if order == "euclidean" else order, axis if axis is not None else 0)
    out = linalg.norm(A, order, axis, keepdims)
    np.testing.assert_allclose(out.numpy().ravel(), np.ravel(expected))
    assert out.shape.rank == (2 if keepdims else np.ndim(expected))


@pytest.mark.parametrize("order", ["euclidean", "fro", 1, np.inf])
def test_matrix_norms(order):
    x = RNG.normal(size=(2, 3, 4))
    expected = np.linalg.norm(x, "fro" if order == "euclidean" else order, axis=(-2, -1))
    np.testing.assert_allclose(linalg.norm(x, order, axis=[-2, -1]).numpy(), expected)


def test_global_norm_skips_none_and_counts_rows_of_indexed_slices():
    rows = tf.IndexedSlices(tf.constant([3.0, 4.0]), tf.constant([0, 0]))
    assert float(linalg.global_norm([rows, None, tf.constant([12.0])])) == 13.0


@pytest.mark.parametrize("k", [0, 1, -2])
def test_diag_and_its_part(k):
    matrix = linalg.diag(V, k=k)
    np.testing.assert_array_equal(matrix.numpy(), np.diag(V, k))
    np.testing.assert_array_equal(linalg.diag_part(matrix, k=k).numpy(), V)


def test_a_band_goes_out_and_in_again():
    x = RNG.normal(size=(2, 4, 5))
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        rows = linalg.diag_part(x, k=(-1, 2), align=align)
        band = linalg.diag(rows, k=(-1, 2), num_rows=4, num_cols=5, align=align)
        np.testing.assert_array_equal(band.numpy(), linalg.band_part(x, 1, 2).numpy())
        np.testing.assert_array_equal(linalg.set_diag(x, rows, k=(-1, 2), align=align).numpy(), x)


@pytest.mark.parametrize(("lower", "upper"), [(0, -1), (-1, 0), (1, 1), (0, 0), (-1, -1)])
def test_band_part(lower, upper):
    expected = np.tril(np.triu(A, -3 if lower < 0 else -lower), 4 if upper < 0 else upper)
    np.testing.assert_array_equal(linalg.band_part(A, lower, upper).numpy(), expected)


def test_small_ones():
    x, y = A[:, :3], B[:3]
    np.testing.assert_allclose(linalg.cross(x, y).numpy(), np.cross(x, y))
    np.testing.assert_allclose(linalg.trace(x).numpy(), np.trace(x))
    np.testing.assert_array_equal(linalg.adjoint(C).numpy(), C.conj().T)
    np.testing.assert_array_equal(linalg.matrix_transpose(C).numpy(), C.T)
    np.testing.assert_array_equal(linalg.eye(2, 3, batch_shape=[2]).numpy(), np.broadcast_to(np.eye(2, 3), (2, 2, 3)))
    np.testing.assert_array_equal(linalg.tensor_diag_part(linalg.tensor_diag(A)).numpy(), A)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x, y: linalg.tensordot(x, y, [[0], [1]]), [A, B]),
        (lambda x, y: linalg.einsum("...j,j...->...", x, y), [A, B[:, :1]]),
        (lambda x, y: linalg.matmul(x, y, transpose_a=True, transpose_b=True), [A, B]),
        (lambda x: linalg.norm(x, ord=3, axis=1), [A]),
        (lambda x: linalg.norm(x, ord=np.inf, axis=[0, 1]), [A]),
        (lambda x: linalg.diag(x * x, k=1), [V]),
        (lambda x: linalg.diag_part(x * x, k=(-1, 1)), [A]),
        (lambda x, y: linalg.set_diag(x * x, y * y), [A, V[:3]]),
        (lambda x, y: linalg.cross(x, y), [A[:, :3], B[:3]]),
        (lambda x: linalg.trace(x * x), [A]),
        (lambda x: linalg.global_norm([x, x * x]), [A]),
    ],
)
def test_gradients(function, arguments):
    check_gradients(function, arguments)


# Decompositions: what must hold for any matrix

sizes = st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 4))
kinds = st.sampled_from(["float64", "complex128"])


def some(seed, *shape, dtype):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return x if dtype == "float64" else x + 1j * rng.normal(size=shape)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@given(sizes, kinds, st.booleans(), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_factors_multiply_to_the_matrix(shape, dtype, full, seed):
    x = some(seed, *shape, dtype=dtype)
    q, r = (t.numpy() for t in linalg.qr(x, full_matrices=full))
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    np.testing.assert_allclose(adjoint(q) @ q - np.eye(q.shape[-1]), 0, atol=1e-12)
    s, u, v = (t.numpy() for t in linalg.svd(x, full_matrices=full))
    k = s.shape[-1]
    np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ adjoint(v[..., :k]), x, atol=1e-12)
    np.testing.assert_allclose(linalg.svd(x, compute_uv=False).numpy(), s, atol=1e-12)
    p = linalg.pinv(x).numpy()
    np.testing.assert_allclose(x @ p @ x, x, atol=1e-9)


@given(st.integers(0, 2), st.integers(1, 4), kinds, st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_square_factors_multiply_to_the_matrix(count, n, dtype, seed):
    x = some(seed, count, n, n, dtype=dtype) + 4 * np.eye(n)
    h = x @ adjoint(x)
    factor = linalg.cholesky(h).numpy()
    np.testing.assert_allclose(factor @ adjoint(factor), h, atol=1e-10)
    np.testing.assert_allclose(linalg.lu_reconstruct(*linalg.lu(x)).numpy(), x, atol=1e-12)
    np.testing.assert_allclose(linalg.lu_matrix_inverse(*linalg.lu(x)).numpy(), linalg.inv(x).numpy(), atol=1e-10)
    w, v = (t.numpy() for t in linalg.eigh(h))
    np.testing.assert_allclose((v * w[..., None, :]) @ adjoint(v), h, atol=1e-10)
    w, v = (t.numpy() for t in linalg.eig(x))
    np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=1e-10)
    root = linalg.sqrtm(h).numpy()
    np.testing.assert_allclose(root @ root, h, atol=1e-9)
    z = x.astype(complex)
    np.testing.assert_allclose(linalg.expm(linalg.logm(z)).numpy(), z, atol=1e-8)
    np.testing.assert_allclose(linalg.matmul(x, linalg.solve(x, h)).numpy(), h, atol=1e-9)


@pytest.mark.parametrize(
    "function", [linalg.cholesky, linalg.eigvalsh, lambda x: linalg.svd(x, compute_uv=False), linalg.sqrtm, linalg.expm]
)
def test_one_matrix_without_an_answer_does_not_spoil_the_others(function):
    good = 2 * np.eye(2)
    out = function(np.stack([good, np.full((2, 2), np.nan), good])).numpy()
    np.testing.assert_allclose(out[[0, 2]], [function(good).numpy()] * 2)
    assert np.isnan(np.tril(out[1]) if out[1].ndim == 2 else out[1]).any()


@pytest.mark.parametrize("x", [np.eye(3), np.zeros((3, 3)), np.diag([1.0, 1.0, 2.0]), np.full((3, 3), 1.0)], ids=str)
def test_gradients_stay_finite_where_values_repeat(x):
    rotation = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    x = tf.constant(rotation @ x @ rotation.T)
    functions = [
        lambda a: tf.reduce_sum(linalg.eigvalsh(a) ** 2),
        lambda a: tf.reduce_sum(linalg.eigh(a)[1] ** 2),
        lambda a: tf.reduce_sum(linalg.svd(a)[0] ** 2),
        lambda a: tf.reduce_sum(linalg.svd(a)[1] ** 2),
        lambda a: tf.reduce_sum(tf.abs(linalg.eig(a)[0]) ** 2),
    ]
    for function in functions:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            first = tape.gradient(y, x)
        second = outer.gradient(first, x, unconnected_gradients="zero")
        assert np.isfinite(first.numpy()).all()
        assert np.isfinite(second.numpy()).all()


def test_the_polar_factor_is_differentiable_where_singular_values_repeat():
    def polar(x):
        _, u, v = linalg.svd(x)
        return linalg.matmul(u, v, adjoint_b=True)

    check_gradients(polar, [2 * np.linalg.qr(RNG.normal(size=(3, 3)))[0]], order=1)


def test_a_large_cotangent_costs_no_digits():
    x = tf.constant(RNG.normal(size=(3, 3)))
    g = tf.constant(RNG.normal(size=(3, 3)))
    gradients = []
    for scale in (1.0, 2.0**60):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = linalg.expm(x)
        gradients.append(tape.gradient(y, x, output_gradients=g * scale).numpy() / scale)
    np.testing.assert_allclose(*gradients, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: linalg.inv(np.zeros((2, 2))), "Input is not invertible."),
        (lambda: linalg.lu(np.zeros((2, 2))), "Input is not invertible."),
        (lambda: linalg.solve(np.zeros((2, 2)), np.ones((2, 1))), "Input matrix is not invertible."),
    ],
)
def test_singular_matrices_are_refused(call, text):
    with pytest.raises(errors.InvalidArgumentError, match=text):
        call()


class Operator:
    """A positive definite matrix, as what the method of conjugate gradients asks for."""

    is_self_adjoint = is_positive_definite = True

    def __init__(self, x):
        self.x = tf.constant(x)

    def matvec(self, v):
        return linalg.matvec(self.x, v)


def test_conjugate_gradients_solve_a_system():
    x = A @ A.T + np.eye(3)
    y = RNG.normal(size=(2, 3))
    state = linalg.experimental.conjugate_gradient(Operator(x), y, tol=1e-13)
    np.testing.assert_allclose(state.x.numpy(), np.linalg.solve(x, y.T).T)
    assert int(state.i) == 3
    better = linalg.experimental.conjugate_gradient(Operator(x), y, preconditioner=Operator(np.linalg.inv(x)), tol=1e-12)
    assert int(better.i) <= 2
    Operator.is_self_adjoint = False
    with pytest.raises(ValueError, match="self-adjoint, positive definite"):
        linalg.experimental.conjugate_gradient(Operator(x), y)
    Operator.is_self_adjoint = True


def test_decompositions_are_loaded_when_touched():
    code = "import gradtape, sys; assert 'gradtape.ops.decompositions' not in sys.modules; gradtape.linalg.qr"
    subprocess.run([sys.executable, "-c", code], check=True)


# Operators: each does what its dense matrix does

S = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
Z = S + 0.3j * RNG.normal(size=S.shape)
OPERATORS = {
    "full": lambda: linalg.LinearOperatorFullMatrix(Z),
    "diagonal": lambda: linalg.LinearOperatorDiag(Z[:, 0]),
    "lower": lambda: linalg.LinearOperatorLowerTriangular(Z),
    "identity": lambda: linalg.LinearOperatorIdentity(3, batch_shape=[2], dtype=tf.complex128),
    "scaled": lambda: linalg.LinearOperatorScaledIdentity(3, Z[:, 0, 0]),
    "permutation": lambda: linalg.LinearOperatorPermutation([2, 0, 1], dtype=tf.complex128),
    "householder": lambda: linalg.LinearOperatorHouseholder(Z[:, 0]),
    "adjoint": lambda: linalg.LinearOperatorFullMatrix(Z).H,
    "inverse": lambda: linalg.LinearOperatorLowerTriangular(Z).inverse(),
    "composition": lambda: linalg.LinearOperatorFullMatrix(Z) @ linalg.LinearOperatorDiag(Z[:, 0]),
    "kronecker": lambda: linalg.LinearOperatorKronecker(
        [linalg.LinearOperatorDiag(Z[:, 0]), linalg.LinearOperatorFullMatrix(Z)]
    ),
    "block diagonal": lambda: linalg.LinearOperatorBlockDiag(
        [linalg.LinearOperatorFullMatrix(Z), linalg.LinearOperatorFullMatrix(Z[0])]
    ),
    "block lower": lambda: linalg.LinearOperatorBlockLowerTriangular(
        [[linalg.LinearOperatorFullMatrix(Z)], [linalg.LinearOperatorFullMatrix(Z[0]), linalg.LinearOperatorDiag(Z[0, 0])]]
    ),
    "low rank": lambda: linalg.LinearOperatorLowRankUpdate(linalg.LinearOperatorFullMatrix(Z), Z[..., :1], Z[:, 0, :1]),
    "tridiagonal": lambda: linalg.LinearOperatorTridiag(Z + np.array([[0.0], [5.0], [0.0]])),
    "toeplitz": lambda: linalg.LinearOperatorToeplitz(Z[:, 0] + [5, 0, 0], Z[0, 0] + [5, 0, 0]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_does_what_its_matrix_does(name):
    operator = OPERATORS[name]()
    dense = operator.to_dense().numpy()
    n = dense.shape[-1]
    assert operator.shape == dense.shape
    x = RNG.normal(size=(2, n, 2)) + 1j * RNG.normal(size=(2, n, 2))
    for turned, matrix in ((False, dense), (True, adjoint(dense))):
        np.testing.assert_allclose(operator.matmul(x, adjoint=turned).numpy(), matrix @ x, atol=1e-10)
        np.testing.assert_allclose(operator.matmul(adjoint(x), turned, adjoint_arg=True).numpy(), matrix @ x, atol=1e-10)
        np.testing.assert_allclose(operator.solve(x, adjoint=turned).numpy(), np.linalg.solve(matrix, x), atol=1e-10)
        vector = operator.solvevec(operator.matvec(x[..., 0], turned), turned).numpy()
        np.testing.assert_allclose(vector, np.broadcast_to(x[..., 0], vector.shape), atol=1e-10)
    np.testing.assert_allclose(operator.determinant().numpy(), np.linalg.det(dense), rtol=1e-9)
    np.testing.assert_allclose(operator.log_abs_determinant().numpy().real, np.linalg.slogdet(dense)[1], atol=1e-10)
    np.testing.assert_allclose(operator.trace().numpy(), np.trace(dense, axis1=-2, axis2=-1))
    np.testing.assert_allclose(operator.inverse().to_dense().numpy(), np.linalg.inv(dense), atol=1e-10)
    np.testing.assert_allclose(operator.H.to_dense().numpy(), adjoint(dense))


def test_gradients_reach_the_variables_of_an_operator():
    scale = tf.Variable([2.0, 4.0])
    operator = linalg.LinearOperatorDiag(scale)
    with tf.GradientTape() as tape:
        y = operator.solvevec([1.0, 1.0])
    np.testing.assert_allclose(tape.gradient(y, scale).numpy(), [-0.25, -0.0625])
