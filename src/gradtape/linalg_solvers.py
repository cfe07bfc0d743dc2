"""The part of `tf.linalg` that decomposes matrices and solves systems; `gradtape.linalg` loads it at first use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import decompositions, elementwise, shape, solvers
from gradtape.ops.circulant import LinearOperatorCirculant, LinearOperatorCirculant2D, LinearOperatorCirculant3D
from gradtape.ops.linear_operators import (
    LinearOperator, LinearOperatorAdjoint, LinearOperatorBlockDiag, LinearOperatorBlockLowerTriangular,
    LinearOperatorComposition, LinearOperatorDiag, LinearOperatorFullMatrix, LinearOperatorHouseholder,
    LinearOperatorIdentity, LinearOperatorInversion, LinearOperatorKronecker, LinearOperatorLowRankUpdate,
    LinearOperatorLowerTriangular, LinearOperatorPermutation, LinearOperatorScaledIdentity, LinearOperatorToeplitz,
    LinearOperatorTridiag, LinearOperatorZeros,
)  # fmt: skip
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

__all__ = [
    "LinearOperator", "LinearOperatorAdjoint", "LinearOperatorBlockDiag", "LinearOperatorBlockLowerTriangular",
    "LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D", "LinearOperatorComposition",
    "LinearOperatorDiag", "LinearOperatorFullMatrix", "LinearOperatorHouseholder", "LinearOperatorIdentity",
    "LinearOperatorInversion", "LinearOperatorKronecker", "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular", "LinearOperatorPermutation", "LinearOperatorScaledIdentity", "LinearOperatorToeplitz",
    "LinearOperatorTridiag", "LinearOperatorZeros", "banded_triangular_solve", "cholesky", "cholesky_solve", "det", "eig",
    "eigh", "eigh_tridiagonal", "eigvals", "eigvalsh", "experimental", "expm", "inv", "logdet", "logm", "lstsq", "lu",
    "lu_matrix_inverse", "lu_reconstruct", "lu_solve", "matrix_rank", "pinv", "qr", "slogdet", "solve", "sqrtm", "svd",
    "triangular_solve", "tridiagonal_matmul", "tridiagonal_solve",
]  # fmt: skip


# Systems


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The x with matrix x = rhs."""
    return solvers.matrix_solve(matrix, rhs, adjoint)


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of a square matrix, or its adjoint."""
    out = solvers.inv(input)
    return shape.adjoint(out) if adjoint else out


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The x with t x = rhs, where t is a triangle of the matrix."""
    return solvers.matrix_triangular_solve(matrix, rhs, lower, adjoint)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The x with a x = rhs, from the Cholesky factor of a."""
    return solvers.cholesky_solve(chol, rhs)


def banded_triangular_solve(bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None) -> Tensor:
    """A triangular system whose matrix is given by its diagonals."""
    return solvers.banded_triangular_solve(bands, rhs, lower, adjoint)


def tridiagonal_solve(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", transpose_rhs: bool = False, conjugate_rhs: bool = False,
    name: str | None = None, partial_pivoting: bool = True, perturb_singular: bool = False,
) -> Tensor:  # fmt: skip
    """The x with t x = rhs for a tridiagonal t; always pivoted, and nan where t is singular."""
    return solvers.solve_tridiagonal(diagonals, rhs, diagonals_format, transpose_rhs, conjugate_rhs)


def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None) -> Tensor:
    """The product of a tridiagonal matrix with a matrix."""
    return solvers.tridiagonal_matmul(diagonals, rhs, diagonals_format)


def lstsq(matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None) -> Tensor:
    """Least squares; ``fast`` by the normal equations, otherwise for any rank and without regularization."""
    return decompositions.lstsq(matrix, rhs, l2_regularizer, fast)


class CGState(NamedTuple):
    """Where the method of conjugate gradients stands: steps, solution, residual, direction, squared residual."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


def conjugate_gradient(
    operator: Any, rhs: Any, preconditioner: Any = None, x: Any = None, tol: float = 1e-5, max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> CGState:  # fmt: skip
    """Solve ``operator.matvec(x) = rhs`` for a positive definite operator."""
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError(
            message(
                "Expected a self-adjoint, positive definite operator.",
                received=f"is_self_adjoint={operator.is_self_adjoint}, is_positive_definite={operator.is_positive_definite}",
                fix="say so when making the operator: is_self_adjoint=True, is_positive_definite=True",
            )
        )
    precondition = None if preconditioner is None else preconditioner.matvec
    return CGState(*solvers.conjugate_gradient(operator.matvec, rhs, precondition, x, tol, max_iter))


experimental = SimpleNamespace(conjugate_gradient=conjugate_gradient)


# Triangular and orthogonal factors


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular factor of a positive definite matrix; nan where there is none."""
    return decompositions.cholesky(input)


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Both triangles in one matrix, and the permutation of the rows."""
    kind = dtypes.as_dtype(output_idx_type)
    if kind not in (dtypes.int32, dtypes.int64):
        text = f"Value for attr 'output_idx_type' of {kind.word} is not in the list of allowed values: int32, int64 [Op:Lu]"
        raise InvalidArgumentError(message(text, expected="tf.int32 or tf.int64"))
    packed, permutation = decompositions.lu(input)
    return packed, elementwise.cast(permutation, kind)


def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The x with a x = rhs, from ``lu(a)``."""
    return solvers.lu_solve(lower_upper, perm, rhs, validate_args)


def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The inverse of a, from ``lu(a)``."""
    return solvers.lu_matrix_inverse(lower_upper, perm, validate_args)


def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """a, from ``lu(a)``."""
    return solvers.lu_reconstruct(lower_upper, perm, validate_args)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Orthonormal columns and an upper triangle whose product is the input."""
    return decompositions.qr(input, full=full_matrices)


# Singular values


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """(s, u, v) with tensor = u diag(s) vᴴ; without ``compute_uv`` s alone."""
    return decompositions.svd(tensor, full=full_matrices) if compute_uv else decompositions.svdvals(tensor)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The pseudo-inverse."""
    return decompositions.pseudo_inverse(a, rcond)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The number of singular values above a tolerance."""
    return decompositions.matrix_rank(a, tol)


# Eigenvalues


def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a Hermitian matrix, whose lower triangle is read."""
    w, v = decompositions.eigh(tensor)
    return elementwise.cast(w, v.dtype), v


def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues of a Hermitian matrix, whose lower triangle is read."""
    x = convert_to_tensor(tensor)
    return elementwise.cast(decompositions.eigvalsh(x), x.dtype)


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Complex eigenvalues and eigenvectors of a square matrix."""
    return decompositions.eig(tensor)


def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Complex eigenvalues of a square matrix."""
    return decompositions.eigvals(tensor)


def eigh_tridiagonal(
    alpha: Any, beta: Any, eigvals_only: bool = True, select: str = "a", select_range: Any = None, tol: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Eigenvalues, and vectors if asked, of the Hermitian matrix with alpha on and beta below its diagonal."""
    return decompositions.eigh_tridiagonal(alpha, beta, eigvals_only, select, select_range)


# Determinants and functions of a matrix


def det(input: Any, name: str | None = None) -> Tensor:
    """The determinant."""
    return decompositions.det(input)


def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The sign of the determinant and the logarithm of its size."""
    return decompositions.slogdet(input)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """log det of a Hermitian positive definite matrix."""
    return decompositions.logdet(matrix)


def expm(input: Any, name: str | None = None) -> Tensor:
    """The matrix exponential."""
    return decompositions.matrix_exponential(input)


def sqrtm(input: Any, name: str | None = None) -> Tensor:
    """The principal square root of a matrix."""
    return decompositions.sqrtm(input)


def logm(input: Any, name: str | None = None) -> Tensor:
    """The principal logarithm of a complex matrix."""
    return decompositions.logm(input)
