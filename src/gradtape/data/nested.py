"""Steps that make datasets of elements, or elements of datasets: windows, groups, interleaving, choosing between datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.data import structure, threads
from gradtape.data.cursor import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Columns,
    Cursor,
    ElementCursor,
    Node,
    Pass,
    Seeds,
    SequenceCursor,
    Unprobed,
    packer,
    stream,
)
from gradtape.data.functional import Calling, example
from gradtape.data.ordering import Step
from gradtape.errors import FailedPreconditionError, InvalidArgumentError, message, shown
from gradtape.values import dtypes, nest

Wrap = Callable[[Node], Any]
"""Makes the user's `Dataset` of a node."""


@dataclass(eq=False)
class Sequence(Node):
    """Items that are there already."""

    block: Any
    columns: Columns | None
    described: Any  # the specs, or a function that finds them

    def cursor(self, run: Pass) -> Cursor:
        return SequenceCursor(self.block, self.columns)

    def cardinality(self) -> int:
        return len(self.block)

    def spec(self, probe: bool) -> Any:
        return self.described() if callable(self.described) else self.described


def node_of(result: Any, function: str) -> Node:
    """The node of the dataset that a user function returned."""
    node = getattr(result, "_node", None)
    if not isinstance(node, Node):
        text = f"`{function}` must return a `tf.data.Dataset` object. Got {type(result)}."
        raise TypeError(message(text, received=shown(result), fix=f"return tf.data.Dataset.from_tensors(x) from {function}"))
    return node


# Interleaving


@dataclass(eq=False)
class Interleave(Calling):
    """``cycle`` inner datasets are open at a time; ``block`` elements of each in turn. flat_map is a cycle of one."""

    cycle: int = 1
    block: int = 1
    parallel: bool = False

    def open(self, element: Any) -> Node:
        return node_of(self.function(*structure.arguments(element)), "map_func")

    def cursor(self, run: Pass) -> Cursor:
        return _InterleaveCursor(self.source.cursor(run), self, run)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def spec(self, probe: bool) -> Any:
        if not probe:
            raise Unprobed
        return self.open(example(self.source)).spec(probe=True)


class _InterleaveCursor(ElementCursor):
    def __init__(self, source: Cursor, node: Interleave, run: Pass) -> None:
        self.source, self.node, self.run = source, node, run
        self.slots: list[Cursor | None] = [None] * node.cycle
        self.slot = self.given = 0  # whose turn it is, and how much of it is over
        self.ended = False

    def element(self) -> Any:
        while not self.ended or any(self.slots):
            inner = self.slots[self.slot]
            if inner is None:
                self._refill()
                continue
            try:
                element = inner.element()
            except StopIteration:
                self.slots[self.slot] = None
                self._next_slot()
                continue
            self.given += 1
            if self.given == self.node.block:
                self._next_slot()
            return element
        raise StopIteration

    def _refill(self) -> None:
        """Open the next dataset in this slot; when there is none, the turn goes on."""
        if not self.ended:
            try:
                inner = self.node.open(self.source.element()).cursor(self.run)
            except StopIteration:
                self.ended = True
            else:
                background = self.node.parallel and inner.columns is None
                self.slots[self.slot] = threads.Background(inner, self.node.block) if background else inner
                return
        self._next_slot()

    def _next_slot(self) -> None:
        self.slot, self.given = (self.slot + 1) % len(self.slots), 0


# Choosing between datasets


@dataclass(eq=False)
class Choose(Node):
    """Each time an element of the dataset whose number the chooser gives."""

    nodes: list[Node]
    chooser: Node
    stop: bool  # at the first dataset that is empty

    def cursor(self, run: Pass) -> Cursor:
        return _ChooseCursor([node.cursor(run) for node in self.nodes], self.chooser.cursor(run), self.stop)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def spec(self, probe: bool) -> Any:
        first, *others = (node.spec(probe) for node in self.nodes)
        for other in others:
            first = structure.common(first, other)
        return first


class _ChooseCursor(ElementCursor):
    def __init__(self, sources: list[Cursor], chooser: Cursor, stop: bool) -> None:
        self.sources: list[Cursor | None] = [*sources]
        self.chooser, self.stop = chooser, stop

    def element(self) -> Any:
        while any(self.sources):
            choice = int(self.chooser.element())
            if not 0 <= choice < len(self.sources):
                raise InvalidArgumentError(
                    message(
                        f"Selector index out of range: {choice} >= {len(self.sources)}",
                        received=f"a choice of {choice} among {len(self.sources)} datasets",
                        expected=f"0 to {len(self.sources) - 1}",
                    )
                )
            source = self.sources[choice]
            if source is None:
                continue
            try:
                return source.element()
            except StopIteration:
                self.sources[choice] = None
                if self.stop:
                    self.sources = []
        raise StopIteration


@dataclass(eq=False)
class RandomNumbers(Node):
    """Numbers without end: 0 ≤ n < 2³², or n with probability weights[n]."""

    seeds: Seeds
    weights: np.ndarray | None = None

    def cursor(self, run: Pass) -> Cursor:
        return _RandomCursor(stream(*run.words(self.seeds)), self.weights)

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY

    def spec(self, probe: bool) -> Any:
        return structure.TensorSpec([], dtypes.int64)


class _RandomCursor(ElementCursor):
    def __init__(self, numbers: Any, weights: np.ndarray | None) -> None:
        self.numbers, self.weights = numbers, weights

    def element(self) -> Any:
        if self.weights is None:
            return structure.wrap(np.asarray(self.numbers.integers(2**32), np.int64))
        choice = np.searchsorted(np.cumsum(self.weights), self.numbers.random(), side="right")
        return structure.wrap(np.asarray(min(choice, len(self.weights) - 1), np.int64))


# Windows and groups


@dataclass(eq=False)
class Window(Step):
    size: int
    shift: int
    stride: int
    drop: bool
    wrap: Wrap

    def cursor(self, run: Pass) -> Cursor:
        return _WindowCursor(self.source.cursor(run), self)

    def cardinality(self) -> int:
        before = self.source.cardinality()
        if before < 0:
            return before
        needed = (self.size - 1) * self.stride + 1 if self.drop else 1
        return max(before - needed, -self.shift) // self.shift + 1

    def spec(self, probe: bool) -> Any:
        return nest.map_structure(lambda leaf: self.wrap(Sequence([], None, leaf))._type_spec, self.source.spec(probe))

    def datasets(self, items: Any, columns: Columns | None) -> Any:
        """One dataset for each leaf of the elements."""
        if columns is not None:
            parts = columns.parts()
            blocks = [items] * len(parts)
            template = columns.element(items[:1].tolist()[0])
        else:
            template = items[0]
            blocks, parts = [list(leaves) for leaves in zip(*map(nest.flatten, items))], [None] * len(nest.flatten(template))  # type: ignore[list-item]
        specs = nest.flatten(structure.spec_of(template))
        return packer(template)([self.wrap(Sequence(*of)) for of in zip(blocks, parts, specs)])


class _WindowCursor(ElementCursor):
    def __init__(self, source: Cursor, node: Window) -> None:
        self.source, self.node = source, node
        self.buffer = source.pull(0)

    def element(self) -> Any:
        node = self.node
        span = (node.size - 1) * node.stride + 1
        missing = max(span - len(self.buffer), 0)
        if missing:
            incoming = self.source.pull(missing)
            self.buffer = np.concatenate([self.buffer, incoming]) if self.source.columns else [*self.buffer, *incoming]
        if len(self.buffer) < (span if node.drop else 1):
            raise StopIteration
        items = self.buffer[:span : node.stride]
        skipped = node.shift - len(self.buffer)
        self.buffer = self.buffer[node.shift :]
        if skipped > 0:
            self.source.advance(skipped)
        return node.datasets(items, self.source.columns)


@dataclass(eq=False)
class GroupByWindow(Step):
    key: Callable
    reduce: Callable
    size: Callable[[Any], int]
    wrap: Wrap

    def cursor(self, run: Pass) -> Cursor:
        return _GroupCursor(self.source.cursor(run), self, run)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def reduced(self, key: int, elements: list) -> Node:
        wrapped = self.wrap(Sequence(elements, None, lambda: self.source.spec(probe=True)))
        return node_of(self.reduce(structure.wrap(np.asarray(key, np.int64)), wrapped), "reduce_func")

    def key_of(self, element: Any) -> int:
        return int(structure.normalize(self.key(*structure.arguments(element))))

    def spec(self, probe: bool) -> Any:
        if not probe:
            raise Unprobed
        element = example(self.source)
        return self.reduced(self.key_of(element), [element]).spec(probe=True)


class _GroupCursor(ElementCursor):
    def __init__(self, source: Cursor, node: GroupByWindow, run: Pass) -> None:
        self.source, self.node, self.run = source, node, run
        self.groups: dict[int, tuple[int, list]] = {}  # key → (full size, elements)
        self.current: Cursor = SequenceCursor([])

    def element(self) -> Any:
        while True:
            try:
                return self.current.element()
            except StopIteration:
                key = self._full()
                _, elements = self.groups.pop(key)
                self.current = self.node.reduced(key, elements).cursor(self.run)

    def _full(self) -> int:
        """The key of the next group that is full, or at the end of any that is left, in order of their keys."""
        while True:
            try:
                element = self.source.element()
            except StopIteration:
                if not self.groups:
                    raise
                return min(self.groups)
            key = self.node.key_of(element)
            if key not in self.groups:
                self.groups[key] = self.node.size(structure.wrap(np.asarray(key, np.int64))), []
            size, elements = self.groups[key]
            if size <= 0:
                text = f"Window size must be greater than zero, but got {size}."
                raise InvalidArgumentError(message(text, received=f"{size}", expected="1 or more"))
            elements.append(element)
            if len(elements) == size:
                return key


# Guards


@dataclass(eq=False)
class Unique(Step):
    def cursor(self, run: Pass) -> Cursor:
        return _UniqueCursor(self.source.cursor(run))

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY


class _UniqueCursor(ElementCursor):
    def __init__(self, source: Cursor) -> None:
        self.source = source
        self.seen: set = set()

    def element(self) -> Any:
        while True:
            element = self.source.element()
            if nest.is_nested(element):
                text = "UniqueDataset only supports inputs with a single component."
                raise InvalidArgumentError(
                    message(text, received=shown(element), fix="dataset.map(lambda *parts: parts[0]).unique()")
                )
            if element.dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
                raise TypeError(
                    message(
                        f"`tf.data.Dataset.unique` does not support type {element.dtype} -- only `tf.int32`, `tf.int64`, and "
                        "`tf.string` are supported.",
                        received=f"elements of {element.dtype!r}",
                        fix="dataset.map(lambda x: tf.cast(x, tf.int64)).unique()",
                    )
                )
            array = element._host()
            key = (array.shape, tuple(array.ravel().tolist()))
            if key not in self.seen:
                self.seen.add(key)
                return element


@dataclass(eq=False)
class IgnoreErrors(Step):
    warn: bool

    def cursor(self, run: Pass) -> Cursor:
        return _IgnoringCursor(self.source.cursor(run), self.warn)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY


class _IgnoringCursor(ElementCursor):
    def __init__(self, source: Cursor, warn: bool) -> None:
        self.source, self.warn = source, warn

    def element(self) -> Any:
        while True:
            try:
                return self.source.element()
            except StopIteration:
                raise
            except Exception as error:
                if self.warn:
                    import warnings

                    warnings.warn(f"ignore_errors dropped an element: {error}", stacklevel=2)


@dataclass(eq=False)
class AssertCardinality(Step):
    expected: int

    def cursor(self, run: Pass) -> Cursor:
        return _CountingCursor(self.source.cursor(run), self.expected)

    def cardinality(self) -> int:
        return self.expected


class _CountingCursor(ElementCursor):
    def __init__(self, source: Cursor, expected: int) -> None:
        self.source, self.expected = source, expected
        self.count = 0

    def element(self) -> Any:
        text = f"Input dataset was expected to contain {self.expected} elements but contained"
        try:
            element = self.source.element()
        except StopIteration:
            if self.count != self.expected and self.expected != UNKNOWN_CARDINALITY:
                text = f"{text} only {self.count} elements."
                raise FailedPreconditionError(
                    message(text, received=f"{self.count} elements", expected=f"{self.expected}, as assert_cardinality says")
                ) from None
            raise
        self.count += 1
        if 0 <= self.expected < self.count:
            raise FailedPreconditionError(
                message(
                    f"{text} at least {self.count} elements.",
                    received=f"{self.count} elements or more",
                    expected=f"{self.expected}, as assert_cardinality says",
                )
            )
        return element
