"""Writing by index vectors: new tensors with slices added, replaced, or compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, reduce, shape
from gradtape.ops.arguments import indices as as_indices
from gradtape.ops.arguments import lengths
from gradtape.ops.segments import extreme_rows
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def scatter_nd(indices: Any, updates: Any, target: Any) -> Tensor:
    """Zeros of a shape to which slices are added at index vectors."""
    where, x, full = as_indices(indices, "ScatterNd"), convert_to_tensor(updates), lengths(target, "ScatterNd")
    _check_updates(where, x, full, "ScatterNd")
    return indexing.scatter_nd(x, where, shape=full)


def _check_updates(where: Tensor, updates: Tensor, full: tuple[int, ...], label: str) -> None:
    *lead, depth = where._array.shape or (None,)
    if depth is None or depth > len(full):
        raise InvalidArgumentError(
            message(
                f"Index innermost dimension length must be <= shape rank; saw: {depth} vs. {len(full)} [Op:{label}]",
                received=f"indices of shape {where._array.shape} into shape {full}",
                expected=f"at most {len(full)} numbers per index, in the last axis",
            )
        )
    if updates._array.shape != (*lead, *full[depth:]):
        raise InvalidArgumentError(
            message(
                f"Outer dimensions of indices and update must match. Indices shape: {dims(where._array.shape)}, "
                f"updates shape:{dims(updates._array.shape)} [Op:{label}]"
                if updates._array.shape[: len(lead)] != tuple(lead) and label != "ScatterNd"
                else f"Dimensions [0,{len(lead)}) of indices[shape={dims(where._array.shape)}] must match dimensions "
                f"[0,{len(lead)}) of updates[shape={dims(updates._array.shape)}] [Op:{label}]",
                expected=f"updates of shape {(*lead, *full[depth:])}",
            )
        )
    _check_places(where, full, label)


def _check_places(where: Tensor, full: tuple[int, ...], label: str) -> None:
    """Refuse index vectors outside a shape, where they are known."""
    indexing.look_at(where._array, full[: where._array.shape[-1]])
    if type(where) is not Tensor or not where._array.size:
        return
    array = where._array
    bad = ((array < 0) | (array >= np.array(full[: array.shape[-1]], np.int64))).any(-1)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        text = f"indices{list(at)} = {array[at].tolist()} does not index into shape {dims(full)} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"indices of shape {array.shape}", expected=f"places inside {full}, counted from 0")
        )


def tensor_scatter(label: str, x: Any, indices: Any, updates: Any, how: str) -> Tensor:
    """x with slices at index vectors added to, replaced or compared; ``how`` is add, sub, update, max or min."""
    x, where = convert_to_tensor(x), as_indices(indices, label)
    updates = convert_to_tensor(updates, None if isinstance(updates, (Tensor, Convertible)) else x.dtype)
    full = x._array.shape
    _check_updates(where, updates, full, label)
    if how in ("add", "sub"):
        placed = indexing.scatter_nd(updates, where, shape=full)
        return (elementwise.add if how == "add" else elementwise.subtract)(x, placed)
    depth = where._array.shape[-1]
    rows, rest = int(np.prod(full[:depth], dtype=np.int64)), full[depth:]
    index = _row_numbers(where, full[:depth], rows)
    updates = shape.reshape(updates, shape=(index._array.shape[0], *rest))
    flat = shape.reshape(x, shape=(rows, *rest))
    if how == "update":
        out = _replaced(flat, index, updates)
    else:
        out = extreme_rows(flat, index, updates, how == "max")
    return shape.reshape(out, shape=full)


def _row_numbers(where: Tensor, lead: tuple[int, ...], rows: int) -> Tensor:
    """Index vectors as numbers of rows of the flattened leading axes; traced ones that are out of range stand behind them."""
    strides = np.array([int(np.prod(lead[i + 1 :], dtype=np.int64)) for i in range(len(lead))], np.int64)
    total = reduce.sum(elementwise.multiply(elementwise.cast(where, "int64"), strides), axis=where._array.ndim - 1)
    if type(where) is not Tensor:
        inside = elementwise.logical_and(elementwise.greater_equal(where, 0), elementwise.less(where, np.array(lead, np.int64)))
        total = elementwise.where(reduce.all(inside, axis=where._array.ndim - 1), total, rows)
    return shape.reshape(total, shape=(-1,))


def _replaced(flat: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """Rows replaced; of several updates to one row the last counts, and only it has a gradient."""
    size, rows = index._array.shape[0], flat._array.shape[0]
    if not size:
        return elementwise.identity(flat)
    order = indexing.argsort(index, axis=0)
    ranked = indexing.take(index, order, axis=0)
    differs = elementwise.not_equal(
        indexing.getitem(ranked, index=(slice(1, None),)), indexing.getitem(ranked, index=(slice(0, size - 1),))
    )
    last = shape.concatenate(elementwise.cast(differs, "int64"), wrap(np.ones(1, np.int64)), axis=0)
    last = indexing.take_transpose(last, order, axis=0, shape=(size,))
    column = (-1, *[1] * (updates._array.ndim - 1))
    kept = elementwise.greater(shape.reshape(last, shape=column), 0)
    chosen = elementwise.where(kept, updates, elementwise.zeros_like(updates))
    placed = indexing.take_transpose(chosen, index, axis=0, shape=flat._array.shape)
    hit = indexing.take_transpose(last, index, axis=0, shape=(rows,))
    return elementwise.where(elementwise.greater(shape.reshape(hit, shape=column), 0), placed, flat)
