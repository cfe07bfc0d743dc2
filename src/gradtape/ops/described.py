"""Descriptions of our own classes that are not plain tensors: variables and sparse gradients."""

from __future__ import annotations

from typing import Any

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.variable import Variable
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


describe(Variable, VariableSpec.from_value)
describe(IndexedSlices, IndexedSlicesSpec.from_value)


__all__ = ["IndexedSlicesSpec", "VariableSpec", "type_spec_from_value"]
