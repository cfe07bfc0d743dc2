"""Linear operators: matrices that know their structure, and use it where that saves work.

Every operator can become dense; what a class does not do better is done on the dense matrix. Arguments are read when they are
used, so gradients reach variables.
"""

from __future__ import annotations

from functools import reduce as fold
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message, shown
from gradtape.ops import contract, decompositions, elementwise, indexing, matrix, reduce, shape, solvers
from gradtape.ops.arguments import integer, lengths
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor, wrap


class LinearOperator:
    """A stack of matrices of shape (…, range, domain)."""

    def __init__(
        self, dtype: Any, graph_parents: Any = None, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
        parameters: Any = None,
    ) -> None:  # fmt: skip
        if is_positive_definite and is_self_adjoint is not False and is_non_singular is False:
            raise ValueError(message("A positive definite matrix is always non-singular.", fix="leave is_non_singular out"))
        self._dtype = dtypes.as_dtype(dtype)
        self.is_self_adjoint = is_self_adjoint
        self.is_positive_definite = is_positive_definite
        self.is_non_singular = True if is_positive_definite else is_non_singular
        self.is_square = True if is_square is None and (is_self_adjoint or is_positive_definite) else is_square
        self.name = name or type(self).__name__

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrix."""
        text = f"{type(self).__name__} does not say how it becomes dense."
        raise NotImplementedError(message(text, fix=f"a method to_dense in {type(self).__name__}"))

    def _shape(self) -> tuple[int, ...]:
        return self.to_dense()._array.shape

    # Inspection

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        return TensorShape(self._shape()[:-2])

    @property
    def tensor_rank(self) -> int:
        return len(self._shape())

    @property
    def range_dimension(self) -> int:
        return self._shape()[-2]

    @property
    def domain_dimension(self) -> int:
        return self._shape()[-1]

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        return wrap(np.array(self._shape(), np.int32))

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        return wrap(np.array(self._shape()[:-2], np.int32))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} shape={self._shape()} dtype={self._dtype.name}>"

    # Products and systems; a subclass overrides the underscored ones

    def _matmul(self, x: Tensor, adjoint: bool) -> Tensor:
        dense = self.to_dense()
        return matrix.matmul(shape.adjoint(dense) if adjoint else dense, x)

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        dense = self.to_dense()
        return solvers.solve(shape.adjoint(dense) if adjoint else dense, y)

    def _argument(self, x: Any, adjoint: bool, rows: int) -> Tensor:
        x = convert_to_tensor(x, None if hasattr(x, "dtype") else self._dtype)
        x = shape.adjoint(x) if adjoint else x
        if x._array.shape[-2] != rows:
            text = f"Dimensions are not compatible. Received: {rows} for the operator and shape {x._array.shape}."
            raise ValueError(message(text, received=f"{shown(x)}", expected=f"{rows} rows, the axis before the last"))
        return x

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with a matrix, or the composition with another operator."""
        if isinstance(x, LinearOperator):
            return LinearOperatorComposition([self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x])
        rows = self._shape()[-2 if adjoint else -1]
        return self._matmul(self._argument(x, adjoint_arg, rows), adjoint)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product with a vector."""
        x = shape.expand_dims(convert_to_tensor(x, None if hasattr(x, "dtype") else self._dtype), axis=-1)
        return shape.squeeze(self.matmul(x, adjoint), axis=(-1,))

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The x with A x = rhs."""
        self._refuse_unless_invertible()
        if isinstance(rhs, LinearOperator):
            return self.inverse().matmul(rhs, adjoint, adjoint_arg)
        return self._solve(self._argument(rhs, adjoint_arg, self._shape()[-1 if adjoint else -2]), adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """The vector x with A x = rhs."""
        rhs = shape.expand_dims(convert_to_tensor(rhs, None if hasattr(rhs, "dtype") else self._dtype), axis=-1)
        return shape.squeeze(self.solve(rhs, adjoint), axis=(-1,))

    def _refuse_unless_invertible(self) -> None:
        if self.is_non_singular is False:
            text = "Exact solve not implemented for an operator that is expected to be singular."
            raise NotImplementedError(
                message(text, received="is_non_singular=False", fix="leave is_non_singular out when making the operator")
            )
        self._refuse_unless_square("Exact solve")

    def _refuse_unless_square(self, what: str) -> None:
        rows, columns = self._shape()[-2:]
        if self.is_square is False or rows != columns:
            text = f"{what} not implemented for an operator that is expected to not be square."
            raise NotImplementedError(
                message(text, received=f"an operator of shape {(rows, columns)}", expected="as many rows as columns")
            )

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    # Numbers

    def determinant(self, name: str = "det") -> Tensor:
        """The determinant."""
        self._refuse_unless_square("Determinant")
        return decompositions.det(self.to_dense())

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """log |det|."""
        self._refuse_unless_square("Determinant")
        return decompositions.slogdet(self.to_dense())[1]

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The main diagonal."""
        return matrix.diag_part(self.to_dense(), 0, 0, "RIGHT_LEFT")

    def trace(self, name: str = "trace") -> Tensor:
        """The sum of the main diagonal."""
        return reduce.sum(self.diag_part(), axis=-1)

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues of a self-adjoint operator."""
        if not self.is_self_adjoint:
            raise NotImplementedError(
                message(
                    "Only self-adjoint matrices are supported.",
                    received=f"is_self_adjoint={self.is_self_adjoint}",
                    fix=(
                        "is_self_adjoint=True when making the operator, if it is; "
                        "tf.linalg.eigvals(operator.to_dense()) if not"
                    ),
                )
            )
        return decompositions.eigvalsh(self.to_dense())

    def cond(self, name: str = "cond") -> Tensor:
        """The largest singular value over the smallest."""
        values = decompositions.svdvals(self.to_dense())
        return elementwise.divide(reduce.max(values, axis=-1), reduce.min(values, axis=-1))

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """x + A."""
        return elementwise.add(self.to_dense(), convert_to_tensor(x, None if hasattr(x, "dtype") else self._dtype))

    # Other operators

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The conjugate transpose, as an operator."""
        return self if self.is_self_adjoint else LinearOperatorAdjoint(self)

    @property
    def H(self) -> LinearOperator:
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The inverse, as an operator."""
        self._refuse_unless_square("Cannot take the Inverse: this")
        return LinearOperatorInversion(self)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The Cholesky factor of a positive definite operator, as an operator."""
        if not (self.is_self_adjoint and self.is_positive_definite):
            raise ValueError(
                message(
                    "Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.",
                    received=f"is_self_adjoint={self.is_self_adjoint}, is_positive_definite={self.is_positive_definite}",
                    fix="say so when making the operator: is_self_adjoint=True, is_positive_definite=True",
                )
            )
        return LinearOperatorLowerTriangular(decompositions.cholesky(self.to_dense()), is_non_singular=True)


class LinearOperatorFullMatrix(LinearOperator):
    """Any matrix."""

    def __init__(self, matrix: Any, *flags: Any, **options: Any) -> None:
        self._matrix = matrix if hasattr(matrix, "dtype") else convert_to_tensor(matrix)
        super().__init__(self._matrix.dtype, None, *flags, **options)
        if len(self._matrix.shape) < 2:
            text = f"Argument `matrix` must have at least 2 dimensions. Received: {self._matrix}."
            raise ValueError(message(text, fix="tf.linalg.LinearOperatorDiag(x) for a diagonal"))

    @property
    def matrix(self) -> Tensor:
        return convert_to_tensor(self._matrix)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return self.matrix


class _Diagonal(LinearOperator):
    """An operator that multiplies each element: what follows from its diagonal."""

    def diag_part(self, name: str = "diag_part") -> Tensor:
        raise NotImplementedError

    def _shape(self) -> tuple[int, ...]:
        found = self.diag_part()._array.shape
        return (*found, found[-1])

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return matrix.diag(self.diag_part(), 0, -1, -1, 0, "RIGHT_LEFT")

    def _column(self, adjoint: bool) -> Tensor:
        column = shape.expand_dims(self.diag_part(), axis=-1)
        return elementwise.conj(column) if adjoint else column

    def _matmul(self, x: Tensor, adjoint: bool) -> Tensor:
        return elementwise.multiply(self._column(adjoint), x)

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        return elementwise.divide(y, self._column(adjoint))

    def determinant(self, name: str = "det") -> Tensor:
        return reduce.prod(self.diag_part(), axis=-1)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        out = reduce.sum(elementwise.log(elementwise.abs(self.diag_part())), axis=-1)
        return elementwise.cast(out, self._dtype)


class LinearOperatorDiag(_Diagonal):
    """A diagonal matrix."""

    def __init__(self, diag: Any, *flags: Any, **options: Any) -> None:
        self._diag = diag if hasattr(diag, "dtype") else convert_to_tensor(diag)
        super().__init__(self._diag.dtype, None, *flags, **options)
        if self.is_square is False:
            text = "Only square diagonal operators currently supported."
            raise ValueError(message(text, received="is_square=False", fix="leave is_square out"))
        if self.is_self_adjoint is None and not self._dtype.is_complex:
            self.is_self_adjoint = True
        self.is_square = True

    @property
    def diag(self) -> Tensor:
        return convert_to_tensor(self._diag)

    def diag_part(self, name: str = "diag_part") -> Tensor:
        return self.diag

    def inverse(self, name: str = "inverse") -> LinearOperator:
        self._refuse_unless_invertible()
        return LinearOperatorDiag(elementwise.reciprocal(self.diag), is_non_singular=True)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        return LinearOperatorDiag(elementwise.sqrt(self.diag))


class LinearOperatorIdentity(_Diagonal):
    """The identity."""

    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: Any = None, is_non_singular: bool = True,
        is_self_adjoint: bool = True, is_positive_definite: bool = True, is_square: bool = True,
        assert_proper_shapes: bool = False, name: str = "LinearOperatorIdentity",
    ) -> None:  # fmt: skip
        for flag, word in ((is_self_adjoint, "self adjoint"), (is_non_singular, "non-singular"),
                           (is_positive_definite, "positive-definite"), (is_square, "square")):  # fmt: skip
            if not flag:
                text = f"An identity operator is always {word}."
                raise ValueError(message(text, received=f"a flag that says it is not {word}", fix="leave the flag out"))
        super().__init__(dtypes.float32 if dtype is None else dtype, None, True, True, True, True, name)
        self._batch = () if batch_shape is None else lengths(batch_shape)
        self._rows = lengths((integer(num_rows),))[0]

    def diag_part(self, name: str = "diag_part") -> Tensor:
        return wrap(np.ones((*self._batch, self._rows), self._dtype.numpy))

    def inverse(self, name: str = "inverse") -> LinearOperator:
        return self


class LinearOperatorScaledIdentity(_Diagonal):
    """A number, or one for each matrix of the stack, times the identity."""

    def __init__(
        self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool = True, assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:  # fmt: skip
        self._multiplier = multiplier if hasattr(multiplier, "dtype") else convert_to_tensor(multiplier)
        if is_self_adjoint is None and not dtypes.as_dtype(self._multiplier.dtype).is_complex:
            is_self_adjoint = True
        super().__init__(
            self._multiplier.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )
        self._rows = lengths((integer(num_rows),))[0]

    @property
    def multiplier(self) -> Tensor:
        return convert_to_tensor(self._multiplier)

    def diag_part(self, name: str = "diag_part") -> Tensor:
        column = shape.expand_dims(self.multiplier, axis=-1)
        return shape.broadcast_to(column, shape=(*self.multiplier._array.shape, self._rows))


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix."""

    def __init__(self, tril: Any, *flags: Any, **options: Any) -> None:
        self._tril = tril if hasattr(tril, "dtype") else convert_to_tensor(tril)
        super().__init__(self._tril.dtype, None, *flags, **options)
        if self.is_square is False:
            text = "Only square lower triangular operators supported at this time."
            raise ValueError(message(text, received="is_square=False", fix="leave is_square out"))
        self.is_square = True

    def _shape(self) -> tuple[int, ...]:
        return tuple(self._tril.shape)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return matrix.band_part(convert_to_tensor(self._tril), -1, 0)

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        return solvers.matrix_triangular_solve(self._tril, y, True, adjoint)

    def determinant(self, name: str = "det") -> Tensor:
        return reduce.prod(self.diag_part(), axis=-1)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        out = reduce.sum(elementwise.log(elementwise.abs(self.diag_part())), axis=-1)
        return elementwise.cast(out, self._dtype)


class LinearOperatorZeros(LinearOperator):
    """The matrix of zeros."""

    def __init__(
        self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = None,
        is_non_singular: bool = False, is_self_adjoint: bool = True, is_positive_definite: bool = False,
        is_square: bool = True, assert_proper_shapes: bool = False, name: str = "LinearOperatorZeros",
    ) -> None:  # fmt: skip
        if is_non_singular:
            text = "A zero operator is always singular."
            raise ValueError(message(text, received="is_non_singular=True", fix="leave is_non_singular out"))
        super().__init__(dtype or dtypes.float32, None, False, is_self_adjoint, False, is_square, name)
        rows = integer(num_rows)
        columns = rows if num_columns is None else integer(num_columns)
        self._lengths = (*(() if batch_shape is None else lengths(batch_shape)), *lengths((rows, columns)))

    def _shape(self) -> tuple[int, ...]:
        return self._lengths

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return wrap(np.zeros(self._lengths, self._dtype.numpy))


class LinearOperatorPermutation(LinearOperator):
    """(A x)[i] = x[perm[i]]."""

    def __init__(self, perm: Any, dtype: Any = dtypes.float32, *flags: Any, **options: Any) -> None:
        super().__init__(dtype, None, *flags, **options)
        self._perm = convert_to_tensor(perm)
        if self._perm._array.dtype.kind not in "iu":
            text = f"Argument `perm` must be integer dtype. Received: {self._perm}."
            raise TypeError(message(text, fix="tf.cast(perm, tf.int32)"))
        n = self._perm._array.shape[-1]
        if not np.array_equal(np.sort(self._perm._host(), axis=-1), np.broadcast_to(np.arange(n), self._perm._array.shape)):
            text = f"Argument `perm` must be a vector of unique integers from 0 to {n - 1}."
            raise InvalidArgumentError(
                message(text, received=f"perm={shown(self._perm)}", expected=f"each of 0 to {n - 1} once in every row")
            )
        self.is_square = self.is_non_singular = True

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return indexing.one_hot(self._perm, depth=self._perm._array.shape[-1], dtype=self._dtype.numpy)

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        return self._matmul(y, not adjoint)


class LinearOperatorHouseholder(LinearOperator):
    """The reflection 1 - 2 v vᴴ / ‖v‖²."""

    def __init__(self, reflection_axis: Any, *flags: Any, **options: Any) -> None:
        self._axis = reflection_axis if hasattr(reflection_axis, "dtype") else convert_to_tensor(reflection_axis)
        super().__init__(self._axis.dtype, None, *flags, **options)
        self.is_square = self.is_non_singular = self.is_self_adjoint = True

    @property
    def reflection_axis(self) -> Tensor:
        return convert_to_tensor(self._axis)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        column = shape.expand_dims(self.reflection_axis, axis=-1)
        outer = contract.matmul(column, shape.adjoint(column))
        square = contract.matmul(shape.adjoint(column), column)
        return wrap(np.eye(column._array.shape[-2], dtype=self._dtype.numpy)) - outer * 2 / square

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        return self._matmul(y, adjoint)  # its own inverse


# Operators made of operators


class LinearOperatorAdjoint(LinearOperator):
    """The conjugate transpose of an operator."""

    def __init__(self, operator: LinearOperator, *flags: Any, **options: Any) -> None:
        super().__init__(operator.dtype, None, *flags, **options)
        self.operator = operator

    def _shape(self) -> tuple[int, ...]:
        *lead, rows, columns = self.operator._shape()
        return (*lead, columns, rows)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return shape.adjoint(self.operator.to_dense())

    def _matmul(self, x: Tensor, adjoint: bool) -> Tensor:
        return self.operator._matmul(x, not adjoint)

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        return self.operator._solve(y, not adjoint)

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        return self.operator


class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator."""

    def __init__(self, operator: LinearOperator, *flags: Any, **options: Any) -> None:
        super().__init__(operator.dtype, None, *flags, **options)
        self.operator = operator
        self.is_square = self.is_non_singular = True

    def _shape(self) -> tuple[int, ...]:
        return self.operator._shape()

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return self._matmul(wrap(np.eye(self._shape()[-1], dtype=self._dtype.numpy)), False)

    def _matmul(self, x: Tensor, adjoint: bool) -> Tensor:
        return self.operator._solve(x, adjoint)

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        return self.operator._matmul(y, adjoint)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        return self.operator


class _Several(LinearOperator):
    def __init__(self, operators: Any, *flags: Any, **options: Any) -> None:
        self.operators = list(operators)
        if not self.operators:
            text = f"Expected a non-empty list of operators. Found: {operators}."
            raise ValueError(message(text, fix="a list of operators: [operator1, operator2]"))
        kinds = {operator.dtype for operator in self.operators}
        if len(kinds) > 1:
            names = ", ".join(f"{operator.name}: {operator.dtype.name}" for operator in self.operators)
            text = f"Expected all operators to have the same dtype. Found {names}."
            raise TypeError(message(text, fix="make them with the same dtype: tf.cast the matrices first"))
        super().__init__(kinds.pop(), None, *flags, **options)
        if self.is_non_singular is None and all(operator.is_non_singular for operator in self.operators):
            self.is_non_singular = True


class LinearOperatorComposition(_Several):
    """The product of operators."""

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return fold(matrix.matmul, (operator.to_dense() for operator in self.operators))

    def _matmul(self, x: Tensor, adjoint: bool) -> Tensor:
        for operator in self.operators if adjoint else reversed(self.operators):
            x = operator._matmul(x, adjoint)
        return x

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        for operator in reversed(self.operators) if adjoint else self.operators:
            y = operator._solve(y, adjoint)
        return y


class LinearOperatorKronecker(_Several):
    """The Kronecker product of operators."""

    def to_dense(self, name: str = "to_dense") -> Tensor:
        return fold(_kronecker, (operator.to_dense() for operator in self.operators))


def _kronecker(x: Tensor, y: Tensor) -> Tensor:
    (*_, a, b), (*_, c, d) = x._array.shape, y._array.shape
    product = indexing.getitem(x, index=(..., None, slice(None), None)) * indexing.getitem(
        y, index=(..., None, slice(None), None, slice(None))
    )
    return shape.reshape(product, shape=(*product._array.shape[:-4], a * c, b * d))


class LinearOperatorBlockDiag(_Several):
    """Operators along the diagonal, and zeros elsewhere."""

    def to_dense(self, name: str = "to_dense") -> Tensor:
        blocks = [operator.to_dense() for operator in self.operators]
        width = sum(block._array.shape[-1] for block in blocks)
        rows, start = [], 0
        lead = np.broadcast_shapes(*(block._array.shape[:-2] for block in blocks))
        for block in blocks:
            stop = start + block._array.shape[-1]
            widths = (*[(0, 0)] * (block._array.ndim - 1), (start, width - stop))
            row = shape.pad(block, widths=widths)
            rows.append(shape.broadcast_to(row, shape=lead + row._array.shape[-2:]))
            start = stop
        return shape.concatenate(*rows, axis=-2)

    def determinant(self, name: str = "det") -> Tensor:
        return fold(elementwise.multiply, (operator.determinant() for operator in self.operators))


class LinearOperatorBlockLowerTriangular(LinearOperator):
    """Rows of operators, each one longer than the one above, and zeros to the right of them."""

    def __init__(self, operators: Any, *flags: Any, **options: Any) -> None:
        self.operators = [list(row) for row in operators]
        if [len(row) for row in self.operators] != [*range(1, len(self.operators) + 1)] or not self.operators:
            counts = [len(row) for row in self.operators]
            text = f"Argument `operators` must be rows of 1, 2, 3 … operators. Received rows of {counts}."
            raise ValueError(message(text, received=f"rows of {counts} operators", expected="[[a], [b, c], [d, e, f]]"))
        super().__init__(self.operators[0][0].dtype, None, *flags, **options)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        rows = [[operator.to_dense() for operator in row] for row in self.operators]
        lead = np.broadcast_shapes(*(block._array.shape[:-2] for row in rows for block in row))
        width = sum(row[-1]._array.shape[-1] for row in rows)
        return shape.concatenate(*(_row(row, lead, width) for row in rows), axis=-2)


def _row(blocks: list[Tensor], lead: tuple, width: int) -> Tensor:
    """Blocks beside each other, and zeros up to a width."""
    wide = [shape.broadcast_to(block, shape=lead + block._array.shape[-2:]) for block in blocks]
    joined = shape.concatenate(*wide, axis=-1)
    missing = width - joined._array.shape[-1]
    return shape.pad(joined, widths=(*[(0, 0)] * (joined._array.ndim - 1), (0, missing)))


class LinearOperatorLowRankUpdate(LinearOperator):
    """base + u diag(d) vᴴ; without v, u; without d, ones."""

    def __init__(
        self, base_operator: LinearOperator, u: Any, diag_update: Any = None, v: Any = None,
        is_diag_update_positive: bool | None = None, *flags: Any, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(base_operator.dtype, None, *flags, **options)
        self.base_operator = base_operator
        self._u, self._v, self._update = u, u if v is None else v, diag_update

    def to_dense(self, name: str = "to_dense") -> Tensor:
        u, v = convert_to_tensor(self._u, self._dtype), convert_to_tensor(self._v, self._dtype)
        if self._update is not None:
            u = u * shape.expand_dims(convert_to_tensor(self._update, self._dtype), axis=-2)
        return self.base_operator.to_dense() + contract.matmul(u, shape.adjoint(v))


class LinearOperatorTridiag(LinearOperator):
    """A tridiagonal matrix, from its diagonals."""

    def __init__(self, diagonals: Any, diagonals_format: str = "compact", *flags: Any, **options: Any) -> None:
        self._diagonals, self._form = diagonals, diagonals_format
        super().__init__(solvers._compact(diagonals, diagonals_format, "solve").dtype, None, *flags, **options)
        self.is_square = True

    def to_dense(self, name: str = "to_dense") -> Tensor:
        rows = solvers._compact(self._diagonals, self._form, "solve")
        n = rows._array.shape[-1]
        return matrix.diag(rows, (-1, 1), n, n, 0, "LEFT_RIGHT")


class LinearOperatorToeplitz(LinearOperator):
    """A matrix with equal elements along each diagonal, from its first column and row."""

    def __init__(self, col: Any, row: Any, *flags: Any, **options: Any) -> None:
        self.col, self.row = convert_to_tensor(col), convert_to_tensor(row)
        super().__init__(self.col.dtype, None, *flags, **options)
        if self.is_square is False:
            text = "Only square Toeplitz operators currently supported."
            raise ValueError(message(text, received="is_square=False", fix="leave is_square out"))
        self.is_square = True

    def to_dense(self, name: str = "to_dense") -> Tensor:
        n = self.col._array.shape[-1]
        above = shape.flip(indexing.getitem(self.row, index=(..., slice(1, None))), axis=(-1,))
        lead = np.broadcast_shapes(above._array.shape[:-1], self.col._array.shape[:-1])
        parts = [shape.broadcast_to(t, shape=(*lead, t._array.shape[-1])) for t in (above, self.col)]
        place = np.arange(n)[:, None] - np.arange(n) + n - 1
        return indexing.take(shape.concatenate(*parts, axis=-1), wrap(place), axis=len(lead))
