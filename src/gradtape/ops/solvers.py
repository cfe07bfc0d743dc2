"""Linear systems: general, triangular, tridiagonal and banded, and those already decomposed.

The ops broadcast leading axes, which derivative rules and batching need; what TensorFlow refuses is refused above them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.op import op, pair
from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops import contract, elementwise, indexing, matrix, reduce, shape
from gradtape.ops.arguments import not_allowed
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

FIELDS = "double, float, half, complex64, complex128"


def check_dtype(xp: Any, label: str, x: Any, allowed: str = FIELDS) -> None:
    """Refuse what is not a real or complex floating type (bfloat16 has too few digits to be one of them)."""
    if xp.dtype(x).kind not in ("c" if allowed.startswith("complex") else "fc"):
        raise not_allowed(label, xp.dtype(x), allowed)


def check_matrix(xp: Any, label: str, x: Any, allowed: str = FIELDS) -> None:
    """Refuse what is not a stack of matrices of a floating type."""
    check_dtype(xp, label, x, allowed)
    if len(xp.shape(x)) < 2:
        which = "" if label == "Lu" else " 0"
        text = f"Input tensor{which} must have rank >= 2, got {len(xp.shape(x))} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"shape {xp.shape(x)}", fix="give a vector an axis: x[:, tf.newaxis]")
        )


def check_square(xp: Any, label: str, x: Any, allowed: str = FIELDS) -> None:
    """Refuse what is not a stack of square matrices of a floating type."""
    check_matrix(xp, label, x, allowed)
    rows, columns = xp.shape(x)[-2:]
    if rows != columns:
        raise InvalidArgumentError(
            message(
                f"Input matrix must be square. [Op:{label}]",
                received=f"shape {xp.shape(x)}",
                expected="as many rows as columns in the last two axes",
                fix="tf.linalg.pinv and tf.linalg.lstsq take others",
            )
        )


# General systems


@op(label="MatrixSolve")
def solve(xp, x, y):
    """The z with x z = y."""
    return xp.solve(x, y)


solve.vjp(
    lambda xp, g, out, x: -xp.matmul(xp.solve(xp.adjoint(x), g), xp.adjoint(out)),
    lambda xp, g, x: xp.solve(xp.adjoint(x), g),
)


@op(label="MatrixInverse")
def inv(xp, x):
    """The inverse of a square matrix."""
    check_square(xp, "MatrixInverse", x)
    return xp.inv(x)


inv.vjp(lambda xp, g, out: -xp.matmul(xp.matmul(xp.adjoint(out), g), xp.adjoint(out)))


def matrix_solve(x: Any, y: Any, adjoint: bool) -> Tensor:
    """The z with x z = y, or with xᴴ z = y; the leading axes of both must agree."""
    x, y = pair(solve.op, x, y)
    _check_system("MatrixSolve", x, y)
    rows, columns = x._array.shape[-2:]
    if rows != columns:
        raise InvalidArgumentError(
            message(
                "First input (lhs) must be a square matrix. [Op:MatrixSolve]",
                received=f"shape {x._array.shape}",
                fix="tf.linalg.lstsq(matrix, rhs) takes matrices that are not square",
            )
        )
    return solve(shape.adjoint(x) if adjoint else x, y)


def _check_system(label: str, x: Tensor, y: Tensor) -> None:
    """Refuse two stacks of matrices that do not make a stack of systems."""
    for t in (x, y):
        check_dtype(_Inspection, label, t)
    a, b = x._array.shape, y._array.shape
    if len(a) < 2:
        text = f"Input tensor 0 must have rank >= 2, got {len(a)} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"shapes {a} and {b}", expected="a matrix, or several with leading axes")
        )
    text = ""
    if len(a) != len(b):
        text = "All input tensors must have the same rank."
    elif a[:-2] != b[:-2]:
        text = "All input tensors must have the same outer dimensions."
    elif a[-2] != b[-2]:
        text = "Input matrix and rhs are incompatible."
    if text:
        text = f"{text} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"shapes {a} and {b}", expected=f"a right side with {a[-2]} rows, and the same leading axes")
        )


class _Inspection:
    """What the checks ask of a namespace, answered for tensors."""

    shape = staticmethod(lambda x: x._array.shape)
    dtype = staticmethod(lambda x: x._array.dtype)


# Triangular systems


def triangle(xp, x, lower, k=0):
    """x with zeros above (or below) its main diagonal, or the k-th."""
    rows, columns = xp.shape(x)[-2:]
    return xp.where(np.tri(rows, columns, k, bool) if lower else ~np.tri(rows, columns, k - 1, bool), x, xp.zeros_like(x))


@op(label="MatrixTriangularSolve")
def triangular_solve(xp, x, y, *, lower):
    """The z with t z = y, where t is the lower (or upper) triangle of x."""
    return xp.triangular_solve(x, y, lower=lower)


triangular_solve.vjp(
    lambda xp, g, out, x, *, lower: triangle(
        xp, -xp.matmul(xp.triangular_solve(xp.adjoint(x), g, lower=not lower), xp.adjoint(out)), lower
    ),
    lambda xp, g, x, *, lower: xp.triangular_solve(xp.adjoint(x), g, lower=not lower),
)


def matrix_triangular_solve(x: Any, y: Any, lower: bool, adjoint: bool) -> Tensor:
    """The z with t z = y, or with tᴴ z = y; leading axes broadcast."""
    label = "MatrixTriangularSolve"
    x, y = pair(triangular_solve.op, x, y)
    check_dtype(_Inspection, label, x, f"bfloat16, {FIELDS}")
    rows, columns = _check_rank(label, x, y)
    if rows != columns:
        text = f"In[0] matrices in the last dimensions must be square ({columns} =/= {rows}) [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"shape {x._array.shape}", expected="as many rows as columns in the last two axes")
        )
    _check_product(label, x, y, lower, adjoint)
    return triangular_solve(shape.adjoint(x) if adjoint else x, y, lower=lower != adjoint)


def _check_rank(label: str, x: Tensor, y: Tensor) -> tuple[int, int]:
    """Refuse vectors; gives the lengths of the last two axes of x."""
    for i, t in enumerate((x, y)):
        if t._array.ndim < 2:
            raise InvalidArgumentError(
                message(
                    f"In[{i}] ndims must be >= 2: {t._array.ndim} [Op:{label}]",
                    received=f"shapes {x._array.shape} and {y._array.shape}",
                    fix="give a vector an axis: rhs[:, tf.newaxis]",
                )
            )
    return x._array.shape[-2:]


def _check_product(label: str, x: Tensor, y: Tensor, lower: bool, adjoint: bool) -> None:
    """Refuse a right-hand side of another length, and leading axes that do not broadcast."""
    a, b = x._array.shape, y._array.shape
    if a[-1] != b[-2]:
        flags = f"{lower:d} {adjoint:d}"  # as TensorFlow prints them
        text = f"In[0] mismatch In[1] shape: {a[-1]} vs. {b[-2]}: {dims(a)} {dims(b)} {flags} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"shapes {a} and {b}", expected=f"a right side with {a[-1]} rows"))
    try:
        np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        text = f"In[0] and In[1] must have compatible batch dimensions: {dims(a)} vs. {dims(b)} [Op:{label}]"
        raise InvalidArgumentError(message(text, expected="leading axes that are equal, or 1")) from None


def cholesky_solve(factor: Any, y: Any) -> Tensor:
    """The z with l lᴴ z = y, where l is the lower triangle of ``factor``."""
    half = matrix_triangular_solve(factor, y, True, False)
    return matrix_triangular_solve(factor, half, True, True)


def banded_triangular_solve(bands: Any, y: Any, lower: bool, adjoint: bool) -> Tensor:
    """A triangular system whose diagonals are the rows of ``bands``, the highest first."""
    label = "BandedTriangularSolve"
    bands, y = pair(triangular_solve.op, bands, y)
    check_dtype(_Inspection, label, bands)
    count, n = _check_rank(label, bands, y)
    _check_product(label, bands, y, lower, adjoint)
    main = indexing.getitem(bands, index=(..., 0 if lower else count - 1, slice(None)))
    if type(main) is Tensor and not main._array.all():  # compiled or batched code cannot ask
        text = f"Input matrix is not invertible. [Op:{label}]"
        raise InvalidArgumentError(message(text, received="a 0 on the diagonal", expected="a diagonal without zeros"))
    kept = min(count, n)  # more diagonals than the matrix has are not read
    bands = indexing.getitem(bands, index=(..., slice(kept) if lower else slice(count - kept, None), slice(None)))
    k = (1 - kept, 0) if lower else (0, kept - 1)
    if kept == 1:
        bands, k = indexing.getitem(bands, index=(..., 0, slice(None))), (0, 0)
    return matrix_triangular_solve(matrix.diag(bands, k, n, n, 0, "LEFT_RIGHT"), y, lower, adjoint)


# Tridiagonal systems


@op(label="TridiagonalSolve")
def tridiagonal_solve(xp, diagonals, y):
    """The z with t z = y; rows of ``diagonals``: above (its last element unread), on, below (its first) the main diagonal."""
    return xp.tridiagonal_solve(diagonals, y)


def _moved(xp, x, by):
    """The elements of the second to last axis moved by one place, a 0 entering."""
    zero = xp.zeros_like(xp.getitem(x, index=(..., slice(0, 1), slice(None))))
    if by > 0:
        return xp.concatenate(zero, xp.getitem(x, index=(..., slice(None, -1), slice(None))), axis=-2)
    return xp.concatenate(xp.getitem(x, index=(..., slice(1, None), slice(None))), zero, axis=-2)


def _adjoint_diagonals(xp, diagonals):
    column = xp.conj(xp.matrix_transpose(diagonals))
    above, on, below = (xp.getitem(column, index=(..., slice(i, i + 1))) for i in range(3))
    return xp.matrix_transpose(xp.concatenate(_moved(xp, below, -1), on, _moved(xp, above, 1), axis=-1))


def _tridiagonal_rule(xp, g, out, diagonals):
    back = xp.tridiagonal_solve(_adjoint_diagonals(xp, diagonals), g)
    z = xp.conj(out)
    parts = [xp.sum(back * other, axis=-1) for other in (_moved(xp, z, -1), z, _moved(xp, z, 1))]
    return -xp.stack(*parts, axis=-2)


tridiagonal_solve.vjp(
    _tridiagonal_rule,
    lambda xp, g, diagonals: xp.tridiagonal_solve(_adjoint_diagonals(xp, diagonals), g),
)


def solve_tridiagonal(diagonals: Any, y: Any, form: str, transpose: bool, conjugate: bool) -> Tensor:
    """A tridiagonal system; its diagonals come as rows, as three vectors, or as the matrix itself."""
    diagonals = _compact(diagonals, form, "solve")
    check_dtype(_Inspection, "TridiagonalSolve", diagonals, "double, float, complex64, complex128")
    y = convert_to_tensor(y, None if hasattr(y, "dtype") else diagonals.dtype)
    a, b = diagonals._array.shape, y._array.shape
    if len(a) < 2:
        text = f"Expected diagonals to have rank at least 2, got {len(a)}"
        raise ValueError(message(text, received=f"diagonals of shape {a}", expected="(…, 3, n) for diagonals_format='compact'"))
    if a[-2] != 3:
        text = f"Expected 3 diagonals got {a[-2]}"
        raise ValueError(
            message(text, received=f"diagonals of shape {a}", expected="(…, 3, n): the upper diagonal, the main one, the lower")
        )
    vector = len(b) == len(a) - 1
    if not vector and len(b) != len(a):
        raise ValueError(
            message(
                f"Expected the rank of rhs to be {len(a) - 1} or {len(a)}, got {len(b)}",
                received=f"diagonals {a}, rhs {b}",
                expected=f"rhs of shape {(*a[:-2], a[-1])} or {(*a[:-2], a[-1], 'columns')}",
            )
        )
    lead = b[:-1] if vector else b[:-2]
    if a[:-2] != lead:
        text = f"Batch shapes {a[:-2]} and {lead} are incompatible"
        raise ValueError(message(text, received=f"diagonals {a}, rhs {b}", expected="the same leading axes"))
    if vector:
        y = shape.expand_dims(y, axis=-1)
    elif transpose:
        y = shape.matrix_transpose(y)
    if y._array.shape[-2] != a[-1]:
        text = f"Expected number of left-hand sided and right-hand sides to be equal, got {a[-1]} and {y._array.shape[-2]}"
        raise ValueError(message(text, received=f"diagonals {a}, rhs {b}", expected=f"{a[-1]} rows in rhs"))
    out = tridiagonal_solve(diagonals, elementwise.conj(y) if conjugate else y)
    return shape.squeeze(out, axis=(-1,)) if vector else out


def tridiagonal_matmul(diagonals: Any, y: Any, form: str) -> Tensor:
    """The product of a tridiagonal matrix with a matrix."""
    label = "TridiagonalMatMul"
    diagonals = _compact(diagonals, form, "matmul")
    check_dtype(_Inspection, label, diagonals, "double, float, complex64, complex128")
    y = convert_to_tensor(y, None if hasattr(y, "dtype") else diagonals.dtype)
    a, b = diagonals._array.shape, y._array.shape
    if len(a) != len(b):
        text = f"All input tensors must have the same rank. [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"{a}, {b}", expected="the same leading axes in diagonals and matrix")
        )
    if a[-2] != 3:
        text = f"slice index {min(a[-2], 2)} of dimension {len(a) - 2} out of bounds. [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"diagonals of shape {a}", expected="(…, 3, n): the upper diagonal, the main one, the lower")
        )
    if a[-1] != b[-2]:
        text = f"Invalid superdiagonal shape. [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"{a} for a matrix {b}", expected=f"{b[-2]} elements in each diagonal")
        )
    above, on, below = (indexing.getitem(diagonals, index=(..., i, slice(None), None)) for i in range(3))
    widths = [(0, 0)] * (len(b) - 2)
    up = shape.pad(indexing.getitem(y, index=(..., slice(1, None), slice(None))), widths=(*widths, (0, 1), (0, 0)))
    down = shape.pad(indexing.getitem(y, index=(..., slice(None, -1), slice(None))), widths=(*widths, (1, 0), (0, 0)))
    return above * up + on * y + below * down


def _compact(diagonals: Any, form: str, purpose: str) -> Tensor:
    """The three diagonals as rows of the length of the main one."""
    if form == "compact":
        return convert_to_tensor(diagonals)
    if form == "matrix":
        return matrix.diag_part(convert_to_tensor(diagonals), (-1, 1), 0, "LEFT_RIGHT")
    if form != "sequence":
        raise ValueError(message(f"Unrecognized diagonals_format: {form}", expected="'compact', 'sequence' or 'matrix'"))
    above, on, below = (convert_to_tensor(d) for d in diagonals)
    n = on._array.shape[-1]
    rows = []
    for name, d, shorter in (("super", above, (0, 1)), ("", on, (0, 0)), ("sub", below, (1, 0))):
        have = d._array.shape[-1]
        if have == n - 1 and name and purpose == "solve":
            d = shape.pad(d, widths=(*[(0, 0)] * (d._array.ndim - 1), shorter))
        elif have != n:
            if purpose == "solve":
                text = f"Expected {name}diagonal to be have length {n} or {n - 1}, got {have}."
                raise ValueError(message(text, received=f"a {name}diagonal of length {have}", expected=f"{n} or {n - 1}"))
            text = f"Invalid {name}diagonal shape. [Op:TridiagonalMatMul]"
            raise InvalidArgumentError(message(text, received=f"a {name}diagonal of length {have}", expected=f"{n}"))
        rows.append(d)
    return shape.stack(*rows, axis=-2)


# Systems decomposed by lu


def _check_lu(packed: Tensor, permutation: Tensor, validate: bool, y: Tensor | None = None) -> None:
    rank = packed._array.ndim
    if rank < 2:
        text = f"Input `lower_upper` must have at least 2 dimensions. Received shape {packed._array.shape}."
        raise ValueError(message(text, fix="lower_upper, perm = tf.linalg.lu(matrix)"))
    if packed._array.shape[-1] != packed._array.shape[-2]:
        text = f"`lower_upper` must be square. Received shape {packed._array.shape}."
        raise ValueError(message(text, fix="lower_upper, perm = tf.linalg.lu(matrix)"))
    if permutation._array.ndim + 1 != rank and (validate or y is None):
        raise ValueError(
            message(
                "`rank(lower_upper)` must equal `rank(perm) + 1`.",
                received=f"lower_upper {packed._array.shape}, perm {permutation._array.shape}",
                fix="lower_upper, perm = tf.linalg.lu(matrix)",
            )
        )
    if y is None:
        return
    if y._array.ndim < 2:
        text = f"Input `rhs` must have at least 2 dimensions. Received shape {y._array.shape}."
        raise ValueError(message(text, fix="give a vector an axis: rhs[:, tf.newaxis]"))
    if packed._array.shape[-1] != y._array.shape[-2]:
        raise ValueError(
            message(
                "`lower_upper.shape[-1]` must equal `rhs.shape[-1]`.",
                received=f"lower_upper {packed._array.shape}, rhs {y._array.shape}",
                expected=f"{packed._array.shape[-1]} rows in rhs",
            )
        )


def _unit_lower(packed: Tensor) -> Tensor:
    """The lower triangle with ones on the diagonal."""
    n = packed._array.shape[-1]
    below = elementwise.where(wrap(np.tri(n, k=-1, dtype=bool)), packed, elementwise.zeros_like(packed))
    return below + wrap(np.eye(n, dtype=packed._array.dtype))


def lu_solve(packed: Any, permutation: Any, y: Any, validate: bool) -> Tensor:
    """The z with x z = y, from ``lu(x)``."""
    packed, permutation = convert_to_tensor(packed), convert_to_tensor(permutation)
    y = convert_to_tensor(y, None if hasattr(y, "dtype") else packed.dtype)
    _check_lu(packed, permutation, validate, y)
    n = packed._array.shape[-1]
    moved = contract.matmul(indexing.one_hot(permutation, depth=n, dtype=y._array.dtype), y)
    half = triangular_solve(_unit_lower(packed), moved, lower=True)
    return triangular_solve(packed, half, lower=False)


def lu_matrix_inverse(packed: Any, permutation: Any, validate: bool) -> Tensor:
    """The inverse of x, from ``lu(x)``."""
    packed = convert_to_tensor(packed)
    _check_lu(packed, convert_to_tensor(permutation), validate)
    *lead, n, _ = packed._array.shape
    eye = wrap(np.broadcast_to(np.eye(n, dtype=packed._array.dtype), (*lead, n, n)))
    return lu_solve(packed, permutation, eye, validate)


def lu_reconstruct(packed: Any, permutation: Any, validate: bool) -> Tensor:
    """x, from ``lu(x)``."""
    packed, permutation = convert_to_tensor(packed), convert_to_tensor(permutation)
    _check_lu(packed, permutation, validate)
    _check_permutation(permutation, packed._array.shape[-1])
    upper = matrix.band_part(packed, 0, -1)
    product = contract.matmul(_unit_lower(packed), upper)
    back = indexing.one_hot(permutation, depth=packed._array.shape[-1], dtype=packed._array.dtype)
    return contract.matmul(shape.matrix_transpose(back), product)


def _check_permutation(permutation: Tensor, n: int) -> None:
    if type(permutation) is not Tensor:  # compiled or batched code cannot ask
        return
    for row in permutation._array.reshape(-1, permutation._array.shape[-1]):
        if len(row) != n:
            text = f"Tensor's shape ({len(row)}, {n}) is not compatible with supplied shape ({n}, {n})."
            raise ValueError(
                message(text, received=f"perm of shape {permutation._array.shape}", expected=f"{n} numbers in each row of perm")
            )
        values, counts = np.unique(row, return_counts=True)
        if (counts > 1).any():
            text = f"{values[counts > 1][0]} is duplicated in the input. [Op:InvertPermutation]"
            raise InvalidArgumentError(
                message(text, received=f"perm {shown(permutation)}", expected=f"each of 0 to {n - 1} once")
            )


# Iteration


def conjugate_gradient(multiply: Any, y: Any, precondition: Any, start: Any, tolerance: Any, max_iterations: int) -> tuple:
    """(steps, z, residual, direction, ⟨residual, preconditioned residual⟩) for a positive definite system, by matvecs."""
    y = convert_to_tensor(y)
    x = elementwise.zeros_like(y) if start is None else convert_to_tensor(start, y.dtype)
    residual = y if start is None else y - multiply(x)
    z = residual if precondition is None else precondition(residual)
    direction, gamma = z, _inner(residual, z)
    limit = tolerance * np.linalg.norm(y._host(), axis=-1)
    steps = 0
    while steps < max_iterations and np.any(np.linalg.norm(residual._host(), axis=-1) > limit):
        moved = multiply(direction)
        alpha = gamma / _inner(direction, moved)
        x = x + shape.expand_dims(alpha, axis=-1) * direction
        residual = residual - shape.expand_dims(alpha, axis=-1) * moved
        z = residual if precondition is None else precondition(residual)
        before, gamma = gamma, _inner(residual, z)
        direction = z + shape.expand_dims(gamma / before, axis=-1) * direction
        steps += 1
    return wrap(np.asarray(steps, np.int32)), x, residual, direction, gamma


def _inner(x: Tensor, y: Tensor) -> Tensor:
    return reduce.sum(elementwise.conj(x) * y, axis=-1)
