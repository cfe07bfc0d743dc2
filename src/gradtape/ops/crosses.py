"""Features crossed: in each row, every combination of one value from each input, as a text or as a hash."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message, shown
from gradtape.ops.arguments import integer
from gradtape.ops.execution import on_the_host
from gradtape.ops.hashing import MASK, fingerprint
from gradtape.ops.ragged import RaggedTensor
from gradtape.ops.sparse import SparseTensor
from gradtape.ops.text import string_tensor
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_KEY = 0xDECAFCAFFE  # TensorFlow's
_MULTIPLIER = 0xC6A4A7935BD1E995
_MIXED = "Dense inputs should be a matrix but received shape {} at position {} [Op:{}]"

Combine = Callable[[tuple], Any]


def joined(separator: Any) -> Combine:
    """The texts of values with a separator between them."""
    between: Any = convert_to_tensor(separator, dtypes.string)._host()[()]
    return lambda values: between.join(value if isinstance(value, bytes) else b"%d" % value for value in values)


def hashed(num_buckets: Any, hash_key: Any, label: str) -> Combine:
    """The fingerprints of values, mixed one after the other, modulo the number of buckets."""
    count = integer(num_buckets)
    if count < 0:
        words = f"Value for attr 'num_buckets' of {count} must be at least minimum 0 [Op:{label}]"
        raise InvalidArgumentError(message(words, received=f"num_buckets={count}", expected="1 or more, or 0 for all of int64"))
    key = _KEY if hash_key is None else integer(hash_key) & MASK
    modulus = count or np.iinfo(np.int64).max

    def combine(values: tuple) -> int:
        mixed = key
        for value in values:
            mixed = _mixed(mixed, fingerprint(value) if isinstance(value, bytes) else value & MASK)
        return mixed % modulus

    return combine


def _mixed(first: int, second: int) -> int:
    """Two fingerprints as one; the order counts."""
    mixed = first ^ _MULTIPLIER ^ (_folded(second * _MULTIPLIER & MASK) * _MULTIPLIER & MASK)
    return _folded(_folded(mixed * _MULTIPLIER & MASK) * _MULTIPLIER & MASK)


def _folded(bits: int) -> int:
    return bits ^ (bits >> 47)


def ragged(inputs: Any, combine: Combine, kind: dtypes.DType) -> RaggedTensor:
    """One row for each row of the inputs, which may be ragged, sparse or dense."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(message("Inputs must be a list", received=shown(inputs), fix="[a, b]"))
    on_the_host("tf.ragged.cross")
    parts = [value if isinstance(value, (RaggedTensor, SparseTensor)) else convert_to_tensor(value) for value in inputs]
    for i, part in enumerate(parts):
        if not (part.dtype.is_integer or part.dtype is dtypes.string):
            words = f"Unexpected dtype for inputs[{i}]: {part.dtype}"
            raise ValueError(message(words, received=shown(part), expected="integers or strings"))
        if part.shape.rank != 2:
            words, error = "tf.ragged.cross only supports inputs with rank=2", InvalidArgumentError
            error = ValueError if isinstance(part, RaggedTensor) else error  # type: ignore[assignment]
            raise error(message(words, received=shown(part), expected="(rows, values of each row)"))
    rows = [_rows(part) for part in parts]
    if len(set(map(len, rows))) > 1:
        words = "inputs must all have the same batch dimension size."
        raise InvalidArgumentError(
            message(words, received=f"{[len(part) for part in rows]} rows", expected="as many rows in all")
        )
    values, lengths = _crossed(rows, combine, kind)
    return RaggedTensor.from_row_splits(values, wrap(np.cumsum([0, *lengths], dtype=np.int64)), validate=False)


def sparse(inputs: Any, combine: Combine, kind: dtypes.DType, label: str) -> SparseTensor:
    """The same of sparse and dense matrices, as a sparse one."""
    if not all(isinstance(value, (Tensor, SparseTensor)) for value in inputs):
        words = "All inputs must be Tensor or SparseTensor."
        raise TypeError(message(words, received=shown(inputs), fix="tf.constant(values), or x.to_sparse() of a ragged tensor"))
    on_the_host("tf.sparse.cross")
    for i, part in enumerate(inputs):
        if part.shape.rank != 2:
            words = _MIXED.format(dims(tuple(part.shape)), i, label)
            raise InvalidArgumentError(message(words, received=shown(part), expected="(rows, values of each row)"))
    rows = [_rows(part) for part in inputs]
    for i, part in enumerate(rows):
        if len(part) != len(rows[0]):
            words = f"Expected batch size {len(rows[0])} got {len(part)} at dense tensor {i} [Op:{label}]"
            received = f"{[len(part) for part in rows]} rows"
            raise InvalidArgumentError(message(words, received=received, expected="as many rows in all"))
    values, lengths = _crossed(rows, combine, kind)
    places = np.array([(row, k) for row, length in enumerate(lengths) for k in range(length)], np.int64).reshape(-1, 2)
    return SparseTensor(wrap(places), values, np.array([len(lengths), max(lengths, default=0)], np.int64))


def _crossed(rows: list[list[list]], combine: Combine, kind: dtypes.DType) -> tuple[Tensor, list[int]]:
    """The combinations of all rows after one another, and how many each row has."""
    crossed = [[combine(values) for values in itertools.product(*row)] for row in zip(*rows)]
    flat = list(itertools.chain.from_iterable(crossed))
    values = string_tensor(flat, (len(flat),)) if kind is dtypes.string else wrap(np.array(flat, np.int64))
    return values, [len(row) for row in crossed]


def _rows(part: Any) -> list[list]:
    """The values of each row: strings as bytes, anything else as integers."""
    if isinstance(part, SparseTensor):
        rows: list[list] = [[] for _ in range(part._lengths[0])]
        for row, value in zip(part._places[:, 0], _plain(part.values)):
            rows[row].append(value)
        return rows
    if isinstance(part, RaggedTensor):
        flat, splits = _plain(part.flat_values), np.asarray(part.row_splits._host())
        return [flat[a:b] for a, b in itertools.pairwise(splits)]
    width = part._array.shape[1]
    flat = _plain(part)
    return [flat[row * width : (row + 1) * width] for row in range(part._array.shape[0])]


def _plain(tensor: Tensor) -> list:
    array = np.asarray(tensor._host())
    return array.ravel().tolist() if array.dtype.kind == "O" else array.astype(np.int64).ravel().tolist()
