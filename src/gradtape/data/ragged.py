"""Ragged tensors as elements: columns of rows whose lengths differ, batches of them, and their specs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.data.cursor import Columns
from gradtape.ops import ragged_shape
from gradtape.ops.described import RaggedTensorSpec
from gradtape.ops.ragged import RaggedTensor
from gradtape.values.shape import TensorShape
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import wrap


class RaggedColumn:
    """A ragged tensor as an array of rows: it has what `Columns` asks of an array."""

    def __init__(self, tensor: RaggedTensor) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape.as_list())
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return int(self.tensor.nrows())


class MixedColumns(Columns):
    """Columns of which some are ragged."""

    def element(self, row: Any) -> Any:
        return self._pack([_row(array, row) for array in self.arrays])

    def gather(self, block: np.ndarray) -> Any:
        return self._pack([_rows(array, block) for array in self.arrays])

    def parts(self) -> list[Columns]:
        return [columns(None, [array]) for array in self.arrays]


def columns(structure: Any, arrays: list) -> Columns:
    """Arrays of equal length, some of them perhaps ragged, as the rows of a dataset."""
    mixed = any(isinstance(array, RaggedColumn) for array in arrays)
    return MixedColumns(structure, arrays) if mixed else Columns(structure, arrays)


def _row(array: Any, row: Any) -> Any:
    return array.tensor[int(row)] if isinstance(array, RaggedColumn) else wrap(array[row, ...])


def _rows(array: Any, block: np.ndarray) -> Any:
    return (
        ragged_shape.gather(array.tensor, wrap(block)) if isinstance(array, RaggedColumn) else wrap(array.take(block, axis=0))
    )


def alone(tensor: RaggedTensor) -> RaggedColumn:
    """The column of which a ragged tensor is the only row."""
    return RaggedColumn(ragged_shape.expand_dims(tensor, 0))


def stack(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    """Ragged elements as one, with a new first axis."""
    return ragged_shape.stack(parts).with_row_splits_dtype(parts[0].row_splits.dtype)


# Specs


def sliced_spec(leaf: Any) -> Any:
    """The spec of the slices along the first axis."""
    if isinstance(leaf, RaggedTensorSpec):
        return RaggedTensorSpec(leaf.shape[1:], leaf.dtype, leaf.ragged_rank - 1, leaf.row_splits_dtype)
    return TensorSpec(leaf.shape[1:], leaf.dtype)


def stacked_spec(leaf: Any, count: int | None) -> Any:
    """The spec of ``count`` elements stacked."""
    shape = TensorShape([count]).concatenate(leaf.shape)
    if isinstance(leaf, RaggedTensorSpec):
        return RaggedTensorSpec(shape, leaf.dtype, leaf.ragged_rank + 1, leaf.row_splits_dtype)
    return TensorSpec(shape, leaf.dtype)
