"""Blocks of Python that become part of a program as a loop body or a branch: what they may not do, and what they ask for.

Such a block runs once, on behalf of all its steps. Were it to append to a list, the list would grow once only; so the calls
that change lists, sets and dictionaries are watched, and a change that outlives the block means that it cannot be staged.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import BuiltinMethodType
from typing import Any, Self

from gradtape.ops.execution import Unstageable

_CONTAINERS = (list, dict, set, deque)
_CHANGING = frozenset(
    "append appendleft extend extendleft insert pop popleft popitem remove clear sort reverse rotate update setdefault add "
    "discard".split()
)


class _Thread(threading.local):
    steps: tuple[Step, ...] = ()  # of the loops and branches that this thread is inside of


_thread = _Thread()


class Step:
    """Context manager: one step of a loop, which may set the loop's options."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def __enter__(self) -> Self:
        _thread.steps = (*_thread.steps, self)
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        _thread.steps = _thread.steps[:-1]


class Block(Step):
    """A step that runs once on behalf of all, or a branch."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: dict[int, tuple[Any, Any]] = {}  # containers by identity, with what they were before

    def __exit__(self, kind: Any, *_: object) -> None:
        super().__exit__(kind)
        if kind is not None:
            self._restore()

    def note(self, container: Any) -> None:
        """Remember what a container was, before it is changed for the first time."""
        if id(container) not in self._changed:
            self._changed[id(container)] = container, copy.copy(container)

    def check(self, results: Any) -> None:
        """Raise if a container changed that is neither gone nor among the results."""
        own = set(_containers(results))
        for key in self._changed:
            # Known to the pair in this dictionary alone, and to the call of getrefcount
            if key not in own and sys.getrefcount(self._changed[key][0]) > 2:
                kind = type(self._changed[key][0]).__name__
                raise ContainerChanged(f"a {kind} that changes inside a loop or branch over tensors")

    def _restore(self) -> None:
        for container, before in self._changed.values():
            container.clear()
            (container.extend if isinstance(container, (list, deque)) else container.update)(before)


def _containers(value: Any) -> Iterator[int]:
    """The identities of all containers in a nest."""
    if isinstance(value, (tuple, *_CONTAINERS)):
        yield id(value)
        for part in value.values() if isinstance(value, dict) else value:
            yield from _containers(part)


class ContainerChanged(Unstageable):
    """A list, set or dictionary from outside changes in a block that runs once for all its steps."""


def watch(function: Callable) -> None:
    """Before a call: if it changes a container, remember what that was."""
    if _thread.steps and type(function) is BuiltinMethodType and function.__name__ in _CHANGING:
        changes(function.__self__)


def changes(container: Any) -> None:
    """Remember what a container is, for it is about to change."""
    blocks = [step for step in _thread.steps if isinstance(step, Block)]
    if blocks and type(container) in _CONTAINERS:
        blocks[-1].note(container)


def set_loop_options(
    parallel_iterations: Any = None, swap_memory: Any = None, maximum_iterations: Any = None, shape_invariants: Any = None
) -> None:
    """Options of the loop over tensors around the call, in a compiled function; its first statement, as in TensorFlow.

    ``maximum_iterations`` limits the number of steps. With ``shape_invariants`` a variable may change its shape: then the
    function is not compiled. The rest is accepted.
    """
    if _thread.steps:
        given = {"maximum_iterations": maximum_iterations, "shape_invariants": shape_invariants}
        _thread.steps[-1].options.update((word, value) for word, value in given.items() if value is not None)
