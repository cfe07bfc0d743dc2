"""Circulant operators: each row is the one before moved on by one, so Fourier's transform makes them diagonal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import message, shown
from gradtape.ops import elementwise, fourier, reduce, shape
from gradtape.ops.linear_operators import LinearOperator
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor, wrap


class LinearOperatorCirculant(LinearOperator):
    """A circulant matrix, given by its eigenvalues: the transform of its first column.

    >>> LinearOperatorCirculant([6.0, 4.0, 4.0], dtypes.float64).trace()
    <tf.Tensor: shape=(), dtype=float64, numpy=14.0>
    """

    block_depth = 1

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._spectrum = spectrum if hasattr(spectrum, "dtype") else convert_to_tensor(spectrum)
        if is_square is False:
            words = "A [[nested] block] circulant operator is always square. Expected argument `is_square` to be True."
            raise ValueError(message(f"{words} Received: False.", received="is_square=False", fix="leave is_square out"))
        if not self._spectrum.dtype.is_complex:
            if is_self_adjoint is False:
                words = "A real spectrum always corresponds to a self-adjoint operator."
                raise ValueError(message(words, received="is_self_adjoint=False", fix="leave is_self_adjoint out"))
            is_self_adjoint = True
        super().__init__(
            input_output_dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name or type(self).__name__
        )
        if len(self._spectrum.shape) < self.block_depth:
            words = f"Argument `spectrum` must have at least {self.block_depth} dimensions. Received: {self._spectrum}."
            raise ValueError(message(words, received=shown(spectrum), expected="one eigenvalue per row of the matrix"))

    @property
    def spectrum(self) -> Tensor:
        """The eigenvalues, in the order of the transform."""
        return convert_to_tensor(self._spectrum)

    @property
    def block_shape(self) -> TensorShape:
        return TensorShape(self._block())

    def _block(self) -> tuple[int, ...]:
        return tuple(self._spectrum.shape)[-self.block_depth :]

    def _shape(self) -> tuple[int, ...]:
        n = math.prod(self._block())
        return (*tuple(self._spectrum.shape)[: -self.block_depth], n, n)

    def _complex(self, x: Tensor) -> Tensor:
        wide = self._dtype in (dtypes.float64, dtypes.complex128)
        return elementwise.cast(x, dtypes.complex128 if wide else dtypes.complex64)

    def _cast(self, x: Tensor) -> Tensor:
        """As the operator's type; if that is real, the imaginary part is left out."""
        dropped = x.dtype.is_complex and not self._dtype.is_complex
        return elementwise.cast(elementwise.real(x) if dropped else x, self._dtype)

    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-self.block_depth, 0))

    def _argument(self, x: Any, adjoint: bool, rows: int) -> Tensor:
        x = super()._argument(x, adjoint, rows)
        if x.dtype is not self._dtype:
            words = f"Expected argument to have dtype {self._dtype}.  Found: {x.dtype} in tensor {x}"
            raise TypeError(message(words, received=shown(x), fix=f"tf.cast(x, {self._dtype!r})"))
        return x

    def _filtered(self, x: Tensor, factors: Tensor) -> Tensor:
        """Columns (…, n, k) with their transforms multiplied by (…, block)."""
        depth, block = self.block_depth, self._block()
        lead, columns = x._array.shape[:-2], x._array.shape[-1]
        waves = shape.reshape(shape.matrix_transpose(self._complex(x)), shape=(*lead, columns, *block))
        waves = elementwise.multiply(fourier.last_axes("fft", waves, depth), shape.expand_dims(factors, axis=-depth - 1))
        out = fourier.last_axes("ifft", waves, depth)
        out = shape.reshape(out, shape=(*out._array.shape[:-depth], math.prod(block)))
        return self._cast(shape.matrix_transpose(out))

    def _matmul(self, x: Tensor, adjoint: bool) -> Tensor:
        factors = self._complex(self.spectrum)
        return self._filtered(x, elementwise.conj(factors) if adjoint else factors)

    def _solve(self, y: Tensor, adjoint: bool) -> Tensor:
        factors = self._complex(self.spectrum)
        return self._filtered(y, elementwise.reciprocal(elementwise.conj(factors) if adjoint else factors))

    def to_dense(self, name: str = "to_dense") -> Tensor:
        n = math.prod(self._block())
        return self._matmul(wrap(np.eye(n, dtype=self._dtype.numpy)), False)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """What the operator convolves with: its first column, in the shape of a block."""
        return self._cast(fourier.last_axes("ifft", self._complex(self.spectrum), self.block_depth))

    def determinant(self, name: str = "det") -> Tensor:
        return self._cast(reduce.prod(self.spectrum, axis=self._axes()))

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        return self._cast(reduce.sum(elementwise.log(elementwise.abs(self.spectrum)), axis=self._axes()))

    def trace(self, name: str = "trace") -> Tensor:
        return self._cast(reduce.sum(self.spectrum, axis=self._axes()))

    def diag_part(self, name: str = "diag_part") -> Tensor:
        n = self._shape()[-1]
        each = shape.expand_dims(elementwise.divide(self.trace(), n), axis=-1)
        return shape.broadcast_to(each, shape=(*each._array.shape[:-1], n))

    def cond(self, name: str = "cond") -> Tensor:
        sizes = elementwise.abs(self.spectrum)
        ratio = elementwise.divide(reduce.max(sizes, axis=self._axes()), reduce.min(sizes, axis=self._axes()))
        return elementwise.cast(ratio, self._dtype.real_dtype)

    def eigvals(self, name: str = "eigvals") -> Tensor:
        if not self.is_self_adjoint:
            return super().eigvals()
        return shape.reshape(self.spectrum, shape=self._shape()[:-1])

    def _with(self, spectrum: Tensor, **flags: Any) -> LinearOperatorCirculant:
        return type(self)(spectrum, self._dtype, **flags)

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        if self.is_self_adjoint:
            return self
        return self._with(elementwise.conj(self.spectrum), is_non_singular=self.is_non_singular)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        self._refuse_unless_invertible()
        return self._with(elementwise.reciprocal(self.spectrum), is_non_singular=True)

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with a matrix; with another circulant operator it is one again."""
        if type(x) is not type(self):
            return super().matmul(x, adjoint, adjoint_arg)
        left, right = self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x
        return self._with(elementwise.multiply(left.spectrum, right.spectrum))  # type: ignore[attr-defined]


class LinearOperatorCirculant2D(LinearOperatorCirculant):
    """A block circulant matrix of circulant blocks: convolution of pictures, their rows after one another."""

    block_depth = 2


class LinearOperatorCirculant3D(LinearOperatorCirculant):
    """A nested block circulant matrix, for volumes."""

    block_depth = 3
