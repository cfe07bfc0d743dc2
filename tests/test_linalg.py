"""`tf.linalg`: products, norms, diagonals and bands against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

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
