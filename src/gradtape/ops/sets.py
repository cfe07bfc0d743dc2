"""Sets: the distinct elements along the last axis of a dense or sparse tensor, one set for each index of the other axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops.nondiff import host
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import wrap

Groups = dict[tuple[int, ...], set]

_SUPPORTED = ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")


def _is_sparse(x: Any) -> bool:
    return hasattr(x, "dense_shape") and hasattr(x, "indices")


def _supported(dtype: dtypes.DType, what: str) -> None:
    if dtype.name not in _SUPPORTED:
        known = ", ".join(f"tf.{name}" for name in _SUPPORTED)
        raise TypeError(message(f"{what} dtype `{dtype!r}` not in supported dtypes: `{known}`.", fix="tf.cast(x, tf.int64)"))


def _groups(x: Any, check_order: bool) -> tuple[tuple[int, ...], Groups]:
    """The shape of the leading axes, and the set at each of their indices that has one."""
    found: Groups = {}
    if _is_sparse(x):
        indices, values, shape = host(x.indices), host(x.values), tuple(host(x.dense_shape).tolist())
        if check_order:
            _check_order(indices)
        for (*where, _), value in zip(indices.tolist(), values.tolist()):
            found.setdefault(tuple(where), set()).add(value)
    else:
        array = host(x)
        shape = array.shape
        if array.ndim >= 2:
            for where in np.ndindex(shape[:-1]):
                found[where] = set(array[where].tolist())
    if len(shape) < 2:
        raise InvalidArgumentError(message(f"Shape {dims(shape)} has rank {len(shape)} < 2", fix="tf.expand_dims(x, 0)"))
    return tuple(shape[:-1]), found


def _check_order(indices: np.ndarray) -> None:
    rows = indices.tolist()
    for i, (before, after) in enumerate(itertools.pairwise(rows), 1):
        if after < before:
            text = (
                f"indices[{i}] = {dims(tuple(after))} is out of order. Many sparse ops require sorted indices.\n"
                "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n"
            )
            raise InvalidArgumentError(
                message(text, received=f"indices {dims(tuple(before))}, then {dims(tuple(after))}", fix="tf.sparse.reorder(x)")
            )


def combine(function: Callable[[set, set], set], a: Any, b: Any, check_order: bool) -> Any:
    """The sets of a and b, pair by pair, as a SparseTensor of sorted elements."""
    a, b = (x if _is_sparse(x) else convert_to_tensor(x) for x in (a, b))
    if a.dtype is not b.dtype:
        raise TypeError(message(f"Types don't match, {a.dtype!r} vs {b.dtype!r}.", fix=f"tf.cast(b, {a.dtype!r})"))
    _supported(a.dtype, "'a' has invalid")
    (lead, left), (other, right) = _groups(a, check_order), _groups(b, check_order)
    if lead != other:
        raise InvalidArgumentError(message(f"Mismatched shapes {dims(lead)} vs {dims(other)}", expected="equal leading axes"))
    nothing: set = set()
    indices: list[tuple[int, ...]] = []
    values: list = []
    widest = 0
    for where in sorted({*left, *right}):
        elements = sorted(function(left.get(where, nothing), right.get(where, nothing)))
        indices += [(*where, i) for i in range(len(elements))]
        values += elements
        widest = max(widest, len(elements))
    from gradtape.ops.sparse import SparseTensor

    return SparseTensor(
        np.array(indices, np.int64).reshape(-1, len(lead) + 1),
        convert_to_tensor(np.array(values, a.dtype.numpy)),
        np.array([*lead, widest], np.int64),
    )


def size(a: Any, check_order: bool) -> Any:
    """How many distinct elements each set of a SparseTensor has."""
    if not _is_sparse(a):
        raise TypeError(message(f"Expected `SparseTensor`, got {a}.", fix="tf.sparse.from_dense(x)"))
    _supported(a.dtype, "Invalid")
    lead, found = _groups(a, check_order)
    counts = np.zeros(lead, np.int32)
    for where, elements in found.items():
        counts[where] = len(elements)
    return wrap(counts)
