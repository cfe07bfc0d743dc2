"""Elementwise functions of ragged tensors: the flat values meet where the rows agree, after broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import partition, shape
from gradtape.ops.ragged import RaggedTensor
from gradtape.ops.ragged_dense import broadcast_rows, expand_first, leading_rows, uniform_rows
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor


def elementwise(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function of the flat values; arguments that are not arrays are passed on."""
    named = list(kwargs)
    arguments = [*args, *kwargs.values()]
    where = [i for i, value in enumerate(arguments) if isinstance(value, RaggedTensor) or _has_axes(value)]
    template, flat = aligned([arguments[i] for i in where])
    for i, value in zip(where, flat):
        arguments[i] = value
    plain, rest = arguments[: len(args)], arguments[len(args) :]
    return template.with_flat_values(function(*plain, **dict(zip(named, rest))))


def _has_axes(value: Any) -> bool:
    """Whether an argument is an operand that takes part in broadcasting; numbers, dtypes and texts are passed on."""
    if isinstance(value, (Tensor, Convertible)):
        return convert_to_tensor(value)._array.ndim > 0
    return isinstance(value, (np.ndarray, list, tuple)) and np.ndim(value) > 0


def aligned(values: list) -> tuple[RaggedTensor, list]:
    """The rows of the result, and the flat values of each operand as they stand in them."""
    ragged = [value for value in values if isinstance(value, RaggedTensor)]
    if len(ragged) == len(values) and all(_same_rows(ragged[0], other) for other in ragged[1:]):
        return ragged[0], [value.flat_values for value in ragged]
    values = [value if isinstance(value, RaggedTensor) else _operand(value, ragged[0]) for value in values]
    rank = max(value._rank if isinstance(value, RaggedTensor) else value._array.ndim for value in values)
    levels = max(rank - value._rank + value.ragged_rank for value in ragged)
    parts = [_deepened(value, rank, levels) for value in values]
    meeting = [part for part in parts if isinstance(part, RaggedTensor)]
    nested, uniform, rows = _meet(meeting)
    found = iter(rows)
    flat = [broadcast_rows(p.flat_values, next(found)) if isinstance(p, RaggedTensor) else p for p in parts]
    template: Any = next(values for values, part in zip(flat, parts) if isinstance(part, RaggedTensor))
    for splits, length in zip(reversed(nested), reversed(uniform)):
        template = RaggedTensor._of(template, splits, length)
    return template, flat


def _operand(value: Any, beside: RaggedTensor) -> Tensor:
    if isinstance(value, (Tensor, Convertible)):
        return convert_to_tensor(value)
    return convert_to_tensor(value, beside.dtype)


def _same_rows(x: RaggedTensor, y: RaggedTensor) -> bool:
    mine, theirs = x._nested(), y._nested()
    same = x._rank == y._rank and len(mine) == len(theirs)
    return same and all(a is b or np.array_equal(a, b) for a, b in zip(mine, theirs))


def _deepened(value: Any, rank: int, levels: int) -> Any:
    """With leading axes of length 1 up to ``rank`` axes, and so many levels; an operand that only meets inner axes stays."""
    if isinstance(value, RaggedTensor):
        for _ in range(rank - value._rank):
            value = expand_first(value)
        missing = levels - value.ragged_rank
        if missing <= 0:
            return value
        flat = value.flat_values
        inner = uniform_rows(leading_rows(flat, missing), flat._array.shape[: missing + 1], value._splits.dtype)
        return value.with_flat_values(inner)
    lead = rank - value._array.ndim
    if lead > levels:
        return value
    lengths = (1,) * lead + value._array.shape
    value = shape.reshape(value, shape=lengths)
    return uniform_rows(leading_rows(value, levels), lengths[: levels + 1], np.dtype(np.int64))


def _meet(parts: list[RaggedTensor]) -> tuple[list, list, list]:
    """The splits of every level after broadcasting, the lengths of uniform ones, and each operand's elements in order."""
    counts = [len(part._splits) - 1 for part in parts]
    size = max(counts) if 0 not in counts else 0
    if any(count not in (1, size) for count in counts):
        raise _incompatible(parts)
    places = [np.arange(size) if count == size else np.zeros(size, np.int64) for count in counts]
    nested: list[np.ndarray] = []
    uniform: list[int | None] = []
    rest: list[Any] = list(parts)
    while isinstance(rest[0], RaggedTensor):
        own = [np.diff(part._splits)[place] for part, place in zip(rest, places)]
        fixed = [lengths for part, lengths in zip(rest, own) if part._uniform != 1]
        lengths = fixed[0] if fixed else own[0]
        if any((other != lengths).any() for other in fixed[1:]):
            raise _incompatible(parts)
        starts = [part._splits[:-1][place] for part, place in zip(rest, places)]
        places = [
            partition.runs(start, lengths) if part._uniform != 1 else np.repeat(start, lengths)
            for part, start in zip(rest, starts)
        ]
        nested.append(partition.starting_at_zero(lengths.astype(parts[0]._splits.dtype)))
        known = [part._uniform for part in rest if part._uniform != 1] or [1]
        uniform.append(known[0] if all(n is not None for n in known) else None)
        rest = [part._values for part in rest]
    return nested, uniform, places


def _incompatible(parts: list[RaggedTensor]) -> InvalidArgumentError:
    return InvalidArgumentError(
        message(
            "Condition x == y did not hold: the rows of the operands have different lengths.",
            received=" and ".join(str(part.shape) for part in parts)
            + f"; outermost row lengths {' and '.join(str(np.diff(p._splits).tolist()[:8]) for p in parts)}",
            expected="equal row lengths; an axis of length 1 is repeated",
        )
    )
