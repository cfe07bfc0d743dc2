"""`SparseTensor`: the elements of a tensor that are not zero, with their index vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops.nondiff import host
from gradtape.values import dtypes
from gradtape.values.composite import Structured
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.tensor import Tensor, wrap


class SparseTensor(Structured):
    """``values[i]`` stands at ``indices[i]`` of a tensor of shape ``dense_shape``; everything else is zero.

    >>> SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], [3, 2]).shape
    TensorShape([3, 2])
    """

    __slots__ = ("__weakref__", "_dense_shape", "_indices", "_values")
    _indices: Tensor
    _values: Tensor
    _dense_shape: Tensor

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = convert_to_tensor(indices, _INT64 if not isinstance(indices, Tensor) else None)
        self._values = convert_to_tensor(values)
        self._dense_shape = convert_to_tensor(dense_shape, _INT64 if not isinstance(dense_shape, Tensor) else None)
        _check(self._indices, self._values, self._dense_shape)

    @classmethod
    def _of(cls, indices: Tensor, values: Tensor, dense_shape: Tensor) -> SparseTensor:
        """Without checks."""
        self = object.__new__(cls)
        self._indices, self._values, self._dense_shape = indices, values, dense_shape
        return self

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """From anything with indices, values and dense_shape."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not all(hasattr(sparse_tensor_value, part) for part in ("indices", "values", "dense_shape")):
            text = f"Argument sparse_tensor_value={sparse_tensor_value} is neither a SparseTensor nor SparseTensorValue."
            raise TypeError(message(text, fix="tf.sparse.from_dense(x)"))
        return cls(sparse_tensor_value.indices, sparse_tensor_value.values, sparse_tensor_value.dense_shape)

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._lengths)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(host(self._dense_shape).tolist())

    @property
    def _places(self) -> np.ndarray:
        """The index vectors, as an array on the host."""
        return host(self._indices)

    @property
    def dtype(self) -> dtypes.DType:
        return self._values.dtype

    @property
    def op(self) -> Any:
        return self._values.op

    @property
    def graph(self) -> Any:
        return self._values.graph

    def consumers(self) -> list:
        return []  # eager values are computed already

    def set_shape(self, shape: Any) -> None:
        if not self.shape.is_compatible_with(shape):
            text = f"Shapes {self.shape} and {TensorShape(shape)} are not compatible"
            raise ValueError(
                message(text, received=f"{TensorShape(shape)}", expected=f"{self.shape}, or None where a length is not known")
            )

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same places with other values."""
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def __mul__(self, other: Any) -> SparseTensor:
        from gradtape.ops import sparse_functions

        return sparse_functions.with_dense("multiply", self, other)

    def __truediv__(self, other: Any) -> SparseTensor:
        from gradtape.ops import sparse_functions

        return sparse_functions.with_dense("true_divide", self, other)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self._indices!s}, values={self._values!s}, dense_shape={self._dense_shape!s})"

    # As a composite

    @classmethod
    def _call(cls, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        from gradtape.ops import sparse_functions

        return sparse_functions.call(function, args, kwargs)

    def _components(self) -> list[Tensor]:
        return [self._indices, self._values, self._dense_shape]

    def _from_components(self, components: list[Any]) -> SparseTensor:
        return SparseTensor(*components)

    def _differentiable_part(self) -> Tensor:
        return self._values

    def _with_differentiable_part(self, part: Any) -> SparseTensor:
        return SparseTensor._of(self._indices, part, self._dense_shape)


_INT64 = dtypes.int64


def _check(indices: Tensor, values: Tensor, dense_shape: Tensor) -> None:
    for what, tensor, rank in (("indices", indices, 2), ("values", values, 1), ("dense_shape", dense_shape, 1)):
        if tensor._array.ndim != rank:
            raise ValueError(
                message(
                    f"Shape {tensor.shape} must have rank {rank}",
                    received=f"indices {indices.shape}, values {values.shape}, dense_shape {dense_shape.shape}",
                    expected="(n, rank), (n,) and (rank,)",
                )
            )
        if what != "values" and tensor.dtype is not _INT64:
            raise ValueError(
                message(
                    f"{what}: Tensor conversion requested dtype int64 for Tensor with dtype {tensor.dtype.name}: {tensor!r}",
                    received=f"`{what}` of {tensor.dtype!r}",
                    fix="tf.cast(it, tf.int64)",
                )
            )
    if indices._array.shape[0] != values._array.shape[0]:
        text = f"Dimensions {indices._array.shape[0]} and {values._array.shape[0]} are not compatible"
        raise ValueError(
            message(text, received=f"indices {indices.shape}, values {values.shape}", expected="one row of indices per value")
        )
    if indices._array.shape[1] != dense_shape._array.shape[0]:
        raise ValueError(
            message(
                f"Dimensions {indices._array.shape[1]} and {dense_shape._array.shape[0]} are not compatible",
                received=f"indices {indices.shape}, dense_shape {dense_shape._host().tolist()}",
                expected="one index per axis of dense_shape",
            )
        )


def sparse(value: Any, what: str = "sp_input") -> SparseTensor:
    """A SparseTensor argument."""
    if isinstance(value, SparseTensor):
        return value
    if all(hasattr(value, part) for part in ("indices", "values", "dense_shape")):
        return SparseTensor.from_value(value)
    raise TypeError(message(f"Input must be a SparseTensor. Received: {value!r}", expected=f"a SparseTensor as {what}"))


def of(places: np.ndarray, values: Any, lengths: Any) -> SparseTensor:
    """From index vectors and a shape on the host."""
    indices = wrap(np.asarray(places, np.int64).reshape(len(places), len(lengths)))
    return SparseTensor._of(indices, values, wrap(np.array(lengths, np.int64)))


def numbers(places: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    """Index vectors as positions in the flattened tensor."""
    strides = np.array([int(np.prod(lengths[i + 1 :], dtype=np.int64)) for i in range(len(lengths))], np.int64)
    return places @ strides


def check_places(x: SparseTensor, label: str) -> None:
    """Refuse index vectors outside the shape."""
    places, lengths = x._places, np.array(x._lengths, np.int64)
    bad = ((places < 0) | (places >= lengths)).any(1)
    if bad.any():
        at = int(np.argmax(bad))
        text = (
            f"indices[{at}] = [{','.join(map(str, places[at]))}] is out of bounds: need 0 <= index < {dims(x._lengths)} "
            f"[Op:{label}]"
        )
        raise InvalidArgumentError(
            message(text, received=f"a SparseTensor of shape {x._lengths}", expected="indices inside the dense shape")
        )


def order(x: SparseTensor) -> np.ndarray:
    """The positions of the values in row-major order of their places."""
    return np.argsort(numbers(x._places, x._lengths), kind="stable")
