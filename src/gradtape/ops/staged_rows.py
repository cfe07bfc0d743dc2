"""`scan`, `map_fn`, `foldl` and `foldr` in a compiled program: loops over rows that stay loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.ops import arrays
from gradtape.ops.execution import staging
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor


def loop(
    name: str, step: Callable, elems: Any, leaves: list[Tensor], values: tuple, reverse: bool = False
) -> tuple[Any, Any] | None:
    """The last values and the stacked results of ``values, result = step(row, *values)``; None: to be run row by row."""
    if not staging.inside:
        return None
    return staging.control.scan(name, step, nest.pack_sequence_as(elems, leaves), values, reverse=reverse)


def map_fn(fn: Callable, elems: Any, leaves: list[Tensor]) -> Any:
    """The results for all rows, stacked."""
    found = loop("map_fn", lambda row: ((), fn(row)), elems, leaves, ())
    return None if found is None else found[1]


def fold(fn: Callable, elems: Any, leaves: list[Tensor], initializer: Any, reverse: bool) -> Any:
    """The last result."""
    rows, first = _first_apart(elems, leaves, initializer, reverse)
    if rows is None:
        return None
    found = loop("foldr" if reverse else "foldl", lambda row, value: ((fn(value, row),), ()), elems, rows, (first,), reverse)
    return None if found is None else found[0][0]


def scan(fn: Callable, elems: Any, leaves: list[Tensor], initializer: Any, reverse: bool) -> Any:
    """All results, stacked."""
    rows, first = _first_apart(elems, leaves, initializer, reverse)
    if rows is None:
        return None

    def step(row: Any, value: Any) -> tuple:
        after = fn(value, row)
        return (after,), after

    found = loop("scan", step, elems, rows, (first,), reverse)
    if found is None or initializer is not None:
        return None if found is None else found[1]

    def joined(one: Tensor, others: Tensor) -> Tensor:
        both = [others, one[None]] if reverse else [one[None], others]
        return arrays.concatenate(both, 0)

    return nest.map_structure(joined, first, found[1])


def _first_apart(elems: Any, leaves: list[Tensor], initializer: Any, reverse: bool) -> tuple[Any, Any]:
    """The rows to walk, and what to begin with: the first row, if nothing else is given. None: there are none."""
    if not staging.inside:
        return None, None
    if initializer is not None:
        return leaves, nest.map_structure(convert_to_tensor, initializer)
    if leaves[0]._array.shape[0] < 2:
        return None, None
    first, rest = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
    return [t[rest] for t in leaves], nest.pack_sequence_as(elems, [t[first] for t in leaves])
