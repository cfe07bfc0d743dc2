"""Tensors that a function reads without getting them as arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradtape.core.context import thread
from gradtape.values import nest
from gradtape.values.tensor import Tensor


def reads_tracked(function: Callable, instance: Any = None) -> bool:
    """Whether a recorder of this thread tracks a tensor that the function can reach by name, or through its instance."""
    known = [recorder.records for recorder in thread.recorders]
    return any(t._key is not None and any(t._key in records for records in known) for t in _reachable(function, instance))


def _reachable(function: Callable, instance: Any) -> Iterator[Tensor]:
    function = getattr(function, "func", function)  # functools.partial
    code = getattr(function, "__code__", None)
    if code is None:
        return
    values = [function.__globals__.get(name) for name in code.co_names]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not bound yet
            continue
    values += vars(instance).values() if hasattr(instance, "__dict__") else ()
    for value in values:
        yield from (leaf for leaf in _leaves(value) if isinstance(leaf, Tensor))


def _leaves(value: Any) -> Iterator[Any]:
    """All that a nest holds; keys of dicts may be anything, for their order does not matter here."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield from nest.flatten(value)
