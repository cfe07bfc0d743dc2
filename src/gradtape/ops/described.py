"""Descriptions of our own classes that are not plain tensors: variables, sparse gradients, sparse and ragged tensors."""

from __future__ import annotations

from typing import Any

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.ops.ragged import RaggedTensor
from gradtape.ops.sparse import SparseTensor
from gradtape.values import dtypes
from gradtape.values.shape import TensorShape
from gradtape.values.spec import TypeSpec, describe, type_spec_from_value


class VariableSpec(TypeSpec):
    """The shape and element type of a variable, and whether it is trainable."""

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, trainable: bool = True, alias_id: int | None = None) -> None:
        self.shape, self.dtype = TensorShape(shape), dtypes.as_dtype(dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @classmethod
    def from_value(cls, value: Variable) -> VariableSpec:
        """The description of this variable."""
        return cls(value.shape, value.dtype, value.trainable)

    @property
    def value_type(self) -> type:
        return Variable

    def _serialize(self) -> tuple:
        return self.shape, self.dtype, self.trainable, self.alias_id

    def __repr__(self) -> str:
        return (
            f"VariableSpec(shape={self.shape}, dtype={self.dtype!r}, trainable={self.trainable!r}, alias_id={self.alias_id!r})"
        )


class IndexedSlicesSpec(TypeSpec):
    """The shapes and element types of the parts of an `IndexedSlices`."""

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None, indices_shape: Any = None,
    ) -> None:  # fmt: skip
        self._shape, self._indices_shape = TensorShape(shape), TensorShape(indices_shape).with_rank(1)
        self._dtype, self._indices_dtype = dtypes.as_dtype(dtype), dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)

    @classmethod
    def from_value(cls, value: IndexedSlices) -> IndexedSlicesSpec:
        """The description of these slices."""
        known = value.dense_shape is not None
        shape = value.shape if known else TensorShape([None]).concatenate(value.values.shape[1:])
        dense = value.dense_shape.dtype if value.dense_shape is not None else None
        return cls(shape, value.dtype, value.indices.dtype, dense, value.indices.shape)

    @property
    def value_type(self) -> type:
        return IndexedSlices

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape


class SparseTensorSpec(TypeSpec):
    """The shape and element type of a `SparseTensor`."""

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """The description of this tensor."""
        return cls(value.shape, value.dtype)

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        return self._dtype

    @property
    def rank(self) -> int | None:
        return self._shape.rank

    @property
    def value_type(self) -> type:
        return SparseTensor

    def _serialize(self) -> tuple:
        return self._shape, self._dtype


class RaggedTensorSpec(TypeSpec):
    """The shape and element types of a `RaggedTensor`, and how many levels of rows it has."""

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:  # fmt: skip
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                text = "Must specify ragged_rank or a shape with a known rank."
                raise ValueError(message(text, fix="ragged_rank=1, or shape=[None, None]"))
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            text = f"Argument `ragged_rank` must be an int. Received {ragged_rank}."
            raise TypeError(message(text, expected="an int, or None"))
        if rank is not None and ragged_rank >= rank:
            text = f"Argument `ragged_rank` ({ragged_rank}) must be less than rank ({rank})."
            raise ValueError(message(text, expected=f"a ragged_rank from 0 to {rank - 1}"))
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """The description of this tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> dtypes.DType:
        return self._row_splits_dtype

    @property
    def value_type(self) -> type:
        return RaggedTensor

    def _serialize(self) -> tuple:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype


describe(Variable, VariableSpec.from_value)
describe(IndexedSlices, IndexedSlicesSpec.from_value)


__all__ = ["IndexedSlicesSpec", "VariableSpec", "type_spec_from_value"]
describe(SparseTensor, SparseTensorSpec.from_value)
describe(RaggedTensor, RaggedTensorSpec.from_value)
