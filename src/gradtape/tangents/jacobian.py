"""Whole Jacobians of a tape: rows pulled back or columns pushed forward, many at once within a budget of bytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.backprop import PAIR, pull_several
from gradtape.core.context import level
from gradtape.core.op import REGISTRY
from gradtape.errors import message
from gradtape.tangents.forward import push
from gradtape.values.batched import Batched
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import BatchedTensor, Tensor, wrap

BUDGET = 256 * 2**20
"""Bytes that a Jacobian may take besides its result, unless the caller says otherwise."""
_LIVE = 4  # batched values of the widest shape that are alive at the same time: a cotangent, its successor, a product, a sum
MODES = ("auto", "reverse", "forward")


def check_options(chunk_size: int | None, max_bytes: float | None, mode: str) -> None:
    if mode not in MODES:
        raise ValueError(message("Unknown mode of jacobian.", received=repr(mode), expected=" or ".join(map(repr, MODES))))
    for name, value in (("chunk_size", chunk_size), ("max_bytes", max_bytes)):
        if value is not None and not value >= 1:
            raise ValueError(message(f"{name} must be at least 1.", received=repr(value), expected="1 or more, or None"))


def array_of(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value._tensor._array


class Chunks:
    """How many rows or columns to sweep at once."""

    def __init__(self, chunk_size: int | None, max_bytes: float | None) -> None:
        self._size = chunk_size
        self._bytes = max_bytes

    def step(self, count: int, records: dict, path: Any, ends: list, result: int) -> int:
        """At most ``count``. ``path``: the keys of values with a cotangent or tangent; ``result``: the bytes of the answer."""
        if self._size is not None:
            return max(1, min(count, int(self._size)))
        sizes = [array.size * array.dtype.itemsize for array in map(array_of, ends)]
        for record in records.values():
            if record[0] is PAIR:
                shapes: tuple = (record[3], record[4] or ())
                kinds: tuple = (record[5],) * 2
            elif record[0] is not None:
                shapes, kinds = record[3], record[4]
            else:
                continue
            sizes += [math.prod(s) * d.itemsize for k, s, d in zip(record[2], shapes, kinds) if k in path]
        # The answer exists twice for a moment: in pieces, and whole.
        budget = BUDGET if self._bytes is None else max(0.0, self._bytes - 2 * result)
        return max(1, min(count, int(budget // (_LIVE * max(1, *sizes, 1)))))


def rows(
    tape: Any, target: Any, seeds: Callable[[int, int], np.ndarray], count: int, sources: list, batched: bool, step: int
) -> list[Tensor | None]:
    """The cotangents of the sources for each of ``count`` seeds, stacked; ``step`` seeds a sweep, or one by one."""
    batched = batched or not count  # no row to loop over, but the shapes come from a sweep
    step = step if batched else 1
    raw = not tape._is_recorded_elsewhere([target])
    chunks: list[list] = [[] for _ in sources]
    for start in range(0, max(count, 1), step):
        units = seeds(start, min(start + step, count))
        seed = Batched(units if raw else wrap(units), level() + 1) if batched else wrap(units[0])
        found = tape._pull_back([target], [seed], sources, last=start + step >= count, sparse=False)
        for chunk, g, source in zip(chunks, found, sources):
            if g is not None:
                chunk.append(_unbatched(g, len(units), array_of(source).shape))
    return [_joined(chunk) for chunk in chunks]


def _unbatched(value: Any, count: int, shape: tuple) -> Tensor:
    """A batched value with its axis in front; one that does not depend on the row is repeated."""
    if type(value) is BatchedTensor and value._array.level > level():
        value = value._array
    if type(value) is Batched and value.level > level():
        return value.value if isinstance(value.value, Tensor) else wrap(value.value)
    value = value if isinstance(value, Tensor) else wrap(value)
    return RECORDED.broadcast_to(value, shape=(count, *shape))


def _joined(chunk: list) -> Tensor | None:
    return None if not chunk else chunk[0] if len(chunk) == 1 else RECORDED.concatenate(*chunk, axis=0)


def units(size: int, shape: tuple, dtype: Any) -> Callable[[int, int], np.ndarray]:
    """The unit vectors number ``start`` to ``stop`` of a space of ``size`` dimensions, each in ``shape``."""

    def rows(start: int, stop: int) -> np.ndarray:
        block = np.zeros((stop - start, size), dtype)
        block[np.arange(stop - start), np.arange(start, stop)] = 1
        return block.reshape(stop - start, *shape)

    return rows


def prefers_forward(tape: Any, target: Any, sources: list) -> bool:
    """Whether columns are fewer than rows, and pushing them forward gives the same numbers."""
    arrays = [array_of(x) for x in (target, *sources)]
    if sum(a.size for a in arrays[1:]) >= arrays[0].size or tape._recording or level():
        return False
    if any(a.dtype.kind == "c" or type(a) is Batched for a in arrays):  # reverse mode has the conjugate
        return False
    # A user's gradient function may leave for NumPy: it can be called, but not transposed.
    used = [record[1] for record in tape.records.values() if record[0] is not None]
    return all(op.rules and op.label not in REGISTRY for op in used)


def columns(tape: Any, target: Any, sources: list, chunks: Chunks) -> list[Tensor | None]:
    """The Jacobian with respect to each source, by pushing unit tangents through the records; None if none arrives."""
    records = dict(tape.records)
    path = _ancestors(target._key, records)
    result: list[Tensor | None] = []
    for source in sources:
        array, goal = array_of(source), array_of(target)
        if source._key not in path:
            result.append(None)
            continue
        size = array.size
        step = chunks.step(size, records, path, [target], size * goal.size * goal.dtype.itemsize)
        make = units(size, array.shape, array.dtype)
        parts = []
        for start in range(0, max(size, 1), step):
            block = make(start, min(start + step, size))
            with RECORDED.scope():
                tangent = _pushed(records, path, source._key, wrap(Batched(block, level() + 1)), target._key)
            parts += [] if tangent is None else [_unbatched(tangent, len(block), goal.shape)]
        whole = _joined(parts)
        if whole is not None:
            whole = RECORDED.transpose(whole, axes=(*range(1, goal.ndim + 1), 0))
            whole = RECORDED.reshape(whole, shape=goal.shape + array.shape)
            whole = whole if whole._array.dtype == array.dtype else RECORDED.astype(whole, dtype=array.dtype)
        result.append(whole)
    return result


def _ancestors(key: Any, records: dict) -> set:
    """The keys of the values that a value depends on, itself included."""
    found = {key}
    for k, record in reversed(records.items()):
        if record[0] is not None and not found.isdisjoint(record[7] if record[0] is pull_several else (k,)):
            found.update(record[2])
    found.discard(None)
    return found


def _pushed(records: dict, path: set, start: Any, tangent: Tensor, goal: Any) -> Tensor | None:
    """The tangent that arrives at ``goal``; those on the way are dropped after their last use."""
    tangents = {start: tangent}
    uses = Counter(k for record in records.values() if record[0] is not None for k in set(record[2]))
    for key, record in records.items():
        if record[0] is None:
            continue
        inputs = set(record[2])
        if not inputs.isdisjoint(tangents) and not path.isdisjoint(record[7] if record[0] is pull_several else (key,)):
            push(key, record, tangents)
        for k in inputs:
            uses[k] -= 1
            if not uses[k] and k != goal:
                tangents.pop(k, None)
    return tangents.get(goal)
