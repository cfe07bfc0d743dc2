"""`tf.linalg`: products, norms, diagonals and bands of matrices, under TensorFlow's names.

Decompositions and solvers are in `gradtape.linalg_solvers`, which loads when one of them is touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradtape.errors import message
from gradtape.math import l2_normalize
from gradtape.ops import clip, creation, elementwise, matrix, shape
from gradtape.ops.arguments import integer, lengths
from gradtape.scope import missing
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

__all__ = [
    "LinearOperator", "LinearOperatorAdjoint", "LinearOperatorBlockDiag", "LinearOperatorBlockLowerTriangular",
    "LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D", "LinearOperatorComposition",
    "LinearOperatorDiag", "LinearOperatorFullMatrix", "LinearOperatorHouseholder", "LinearOperatorIdentity",
    "LinearOperatorInversion", "LinearOperatorKronecker", "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular", "LinearOperatorPermutation", "LinearOperatorScaledIdentity", "LinearOperatorToeplitz",
    "LinearOperatorTridiag", "LinearOperatorZeros", "adjoint", "band_part", "banded_triangular_solve", "cholesky",
    "cholesky_solve", "cross", "det", "diag", "diag_part", "eig", "eigh", "eigh_tridiagonal", "eigvals", "eigvalsh", "einsum",
    "experimental", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet", "logm", "lstsq", "lu", "lu_matrix_inverse",
    "lu_reconstruct", "lu_solve", "matmul", "matrix_rank", "matrix_transpose", "matvec", "norm", "normalize", "pinv", "qr",
    "set_diag", "slogdet", "solve", "sqrtm", "svd", "tensor_diag", "tensor_diag_part", "tensordot", "trace",
    "triangular_solve", "tridiagonal_matmul", "tridiagonal_solve",
]  # fmt: skip

if TYPE_CHECKING:
    from gradtape.linalg_solvers import (  # noqa: I001
        LinearOperator, LinearOperatorAdjoint, LinearOperatorBlockDiag, LinearOperatorBlockLowerTriangular,
        LinearOperatorCirculant, LinearOperatorCirculant2D, LinearOperatorCirculant3D, LinearOperatorComposition,
        LinearOperatorDiag, LinearOperatorFullMatrix, LinearOperatorHouseholder, LinearOperatorIdentity,
        LinearOperatorInversion, LinearOperatorKronecker, LinearOperatorLowRankUpdate,
        LinearOperatorLowerTriangular, LinearOperatorPermutation, LinearOperatorScaledIdentity, LinearOperatorToeplitz,
        LinearOperatorTridiag, LinearOperatorZeros, banded_triangular_solve, cholesky, cholesky_solve, det, eig, eigh,
        eigh_tridiagonal, eigvals, eigvalsh, experimental, expm, inv, logdet, logm, lstsq, lu, lu_matrix_inverse,
        lu_reconstruct, lu_solve, matrix_rank, pinv, qr, slogdet, solve, sqrtm, svd, triangular_solve, tridiagonal_matmul,
        tridiagonal_solve,
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the decompositions and solvers when one of them is touched."""
    if name not in __all__:
        return missing(__name__, __all__)(name)
    from gradtape import linalg_solvers

    return getattr(linalg_solvers, name)


def __dir__() -> list[str]:
    return __all__


def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False, adjoint_b: bool = False,
    a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: Any = None, grad_a: bool = False, grad_b: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The matrix product of the last two axes; leading axes broadcast."""
    if transpose_a or adjoint_a:
        a = matrix.oriented(a, transpose_a, adjoint_a, "a")
    if transpose_b or adjoint_b:
        b = matrix.oriented(b, transpose_b, adjoint_b, "b")
    out = matrix.matmul(a, b)
    return out if output_type is None else elementwise.cast(out, output_type)


def matvec(
    a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """A matrix times a vector, which stands on the last axis of b."""
    b = convert_to_tensor(b, None if hasattr(b, "dtype") else getattr(a, "dtype", None))
    out = matmul(a, shape.expand_dims(b, axis=-1), transpose_a=transpose_a, adjoint_a=adjoint_a)
    return shape.squeeze(out, axis=(-1,))


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sum of products by an equation such as ``"ij,jk->ik"``; ellipses and the implicit form are allowed."""
    unknown = set(kwargs) - {"name", "optimize"}
    if unknown:
        text = f"Invalid keyword arguments for einsum: {', '.join(sorted(unknown))}. Valid arguments: name, optimize."
        raise TypeError(message(text, expected="name and optimize"))
    return matrix.einsum(equation, inputs)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Sum of products over axes: the last n of a with the first n of b, or two lists of axes."""
    return matrix.tensordot(a, b, axes)


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None, name: str | None = None
) -> Tensor:
    """A vector norm over all elements or one axis, or a matrix norm over two axes."""
    return matrix.norm(tensor, ord, axis, bool(keepdims))


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The tensor divided by its norm, and that norm."""
    x = convert_to_tensor(tensor)
    size = norm(x, ord, axis, True)
    return elementwise.divide(x, elementwise.cast(size, x.dtype)), size


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """√ Σ ‖t‖² over all tensors of a list; None counts as nothing."""
    return clip.global_norm(t_list)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal."""
    return matrix.trace(convert_to_tensor(x))


def diag(
    diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:  # fmt: skip
    """A matrix with the given diagonal, or band of diagonals."""
    return matrix.diag(convert_to_tensor(diagonal), k, num_rows, num_cols, padding_value, align)


def diag_part(
    input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """A diagonal of a matrix, or the rows of a band of diagonals."""
    return matrix.diag_part(convert_to_tensor(input), k, padding_value, align)


def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """A matrix with other values on a diagonal."""
    return matrix.set_diag(convert_to_tensor(input), diagonal, k, align)


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """The tensor of twice the rank with the given values on its diagonal."""
    return matrix.tensor_diag(convert_to_tensor(diagonal))


def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a tensor whose first half of axes has the lengths of the second."""
    return matrix.tensor_diag_part(convert_to_tensor(input))


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """A matrix with zeros outside a band of diagonals."""
    return matrix.band_part(convert_to_tensor(input), num_lower, num_upper)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of 3-vectors."""
    return matrix.cross(a, b)


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The last two axes exchanged, and complex values conjugated."""
    return _transposed(matrix, True)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two axes exchanged."""
    return _transposed(a, conjugate)


_transposed = matrix.transposed


def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The identity matrix, or a batch of them."""
    if isinstance(num_rows, float) or isinstance(num_columns, float):
        text = (
            "Arguments `num_rows` and `num_columns` must be positive integer values. "
            f"Received: num_rows={num_rows}, num_columns={num_columns}"
        )
        raise TypeError(message(text, fix="tf.eye(int(num_rows))"))
    rows, columns = lengths((integer(num_rows), integer(num_rows if num_columns is None else num_columns)))
    out = creation.eye(rows=rows, columns=columns, dtype=dtypes.numpy_dtype(dtype))
    return out if batch_shape is None else shape.broadcast_to(out, shape=(*lengths(batch_shape), rows, columns))
