"""Keras's products of vectors, matrices and more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import linalg
from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import binary, floating, numeric, tensor, together
from gradtape.ops import contract, elementwise, numpy_products, shape
from gradtape.ops.numpy_functions import moveaxis
from gradtape.values.tensor import Tensor

_BOOL, _INT8 = np.dtype(bool), np.dtype(np.int8)


# Products over shared axes


def _of_booleans(product: Callable) -> Callable:
    """A sum of products of booleans: whether some pair of them is true."""
    return lambda x1, x2: elementwise.cast(product(elementwise.cast(x1, "int32"), elementwise.cast(x2, "int32")), "bool")


def _matmul(x: Tensor, y: Tensor) -> Tensor:
    if x._array.ndim > 1 and y._array.ndim > 1:
        return contract.matmul(x, y)
    if not x._array.ndim or not y._array.ndim:
        text = f"matmul needs at least one axis. Received shapes {x._array.shape} and {y._array.shape}"
        raise ValueError(message(text, fix="use keras.ops.multiply for numbers"))
    return numpy_products.matmul(x, y)


_promoted_matmul = binary(_matmul, booleans=_of_booleans(_matmul))


def matmul(x1: Any, x2: Any) -> Tensor:
    """The product of matrices, or of vectors, over the last axis of x1 and the last but one of x2."""
    x1, x2 = tensor(x1), tensor(x2)
    if x1._array.dtype == _INT8:
        x1, x2 = _wide(x1, x2)
    return _promoted_matmul(x1, x2)


def _wide(*tensors: Tensor) -> tuple[Tensor, ...]:
    """If all are int8, as int32: sums of their products need more bits."""
    if any(x._array.dtype != _INT8 for x in tensors):
        return tensors
    return tuple([elementwise.cast(x, "int32") for x in tensors])


dot = binary(numpy_products.dot, booleans=_of_booleans(numpy_products.dot))
vdot = binary(numpy_products.vdot, booleans=_of_booleans(numpy_products.vdot))
inner = binary(numpy_products.inner, booleans=_of_booleans(numpy_products.inner))
outer = binary(numpy_products.outer, booleans=_of_booleans(numpy_products.outer))
kron = binary(numpy_products.kron)


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Tensor:
    """Sums of products over the last axes of x1 and the first of x2, or over the axes that are named."""

    def product(x: Tensor, y: Tensor) -> Tensor:
        return numpy_products.tensordot(x, y, axes)

    return binary(product, booleans=_of_booleans(product))(x1, x2)


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Tensor:
    """Sums of products by an equation."""
    tensors = together(*_wide(*map(tensor, operands)))
    equation = numpy_products.explicit(subscripts, tuple([x._array.ndim for x in tensors]))
    if tensors[0]._array.dtype is not _BOOL:
        return contract.einsum(*tensors, equation=equation)
    return elementwise.cast(contract.einsum(*map(numeric, tensors), equation=equation), "bool")


# Products of vectors


def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """The cross product of vectors of two or three elements; of two and two, the third element alone."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = together(x1, x2)
    x, y = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    sizes = x._array.shape[-1], y._array.shape[-1]
    if not set(sizes) <= {2, 3}:
        text = "Both `x1` and `x2` must have dimension 2 or 3 along the axis of the vectors."
        raise ValueError(message(text, received=f"dimensions {sizes[0]} and {sizes[1]}"))
    if sizes == (2, 2):
        return _element(x, 0) * _element(y, 1) - _element(x, 1) * _element(y, 0)
    x, y = (v if v._array.shape[-1] == 3 else shape.pad(v, widths=((0, 0),) * (v.ndim - 1) + ((0, 1),)) for v in (x, y))
    parts = [_element(x, i) * _element(y, j) - _element(x, j) * _element(y, i) for i, j in ((1, 2), (2, 0), (0, 1))]
    return moveaxis(shape.stack(*parts, axis=parts[0].ndim), -1, axisc)


def _element(x: Tensor, i: int) -> Tensor:
    return x[..., i]


def slogdet(x: Any) -> tuple[Tensor, Tensor]:
    """The sign and the logarithm of the size of a determinant."""
    sign, size = linalg.slogdet(floating(x))
    return sign, size
