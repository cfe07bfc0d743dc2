"""Steps that choose and order items without looking into them: take, skip, shard, repeat, shuffle, zip, concatenate, cache.

They work on row numbers and on elements alike (`cursor`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gradtape.data import storage, structure
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
    ZippedColumns,
    join,
    packer,
    stream,
)
from gradtape.values import nest


@dataclass(eq=False)
class Step(Node):
    """A step after one other; unless it says otherwise, as many elements as before and like them."""

    source: Node

    def cardinality(self) -> int:
        return self.source.cardinality()

    def spec(self, probe: bool) -> Any:
        return self.source.spec(probe)


@dataclass(eq=False)
class Take(Step):
    count: int

    def cursor(self, run: Pass) -> Cursor:
        source = self.source.cursor(run)
        return source if self.count < 0 else _TakeCursor(source, self.count)

    def cardinality(self) -> int:
        before = self.source.cardinality()
        if self.count < 0 or before == UNKNOWN_CARDINALITY:
            return before
        return self.count if before == INFINITE_CARDINALITY else min(before, self.count)


class _TakeCursor(Cursor):
    def __init__(self, source: Cursor, count: int) -> None:
        self.source, self.left, self.columns = source, count, source.columns

    def pull(self, count: int) -> Any:
        block = self.source.pull(min(count, self.left))
        self.left -= len(block)
        return block

    def advance(self, count: int) -> int:
        passed = self.source.advance(min(count, self.left))
        self.left -= passed
        return passed


@dataclass(eq=False)
class Skip(Step):
    count: int

    def cursor(self, run: Pass) -> Cursor:
        source = self.source.cursor(run)
        if self.count < 0:
            return SequenceCursor(source.pull(0), source.columns)
        return _SkipCursor(source, self.count)

    def cardinality(self) -> int:
        before = self.source.cardinality()
        if self.count < 0:
            return 0
        return before if before < 0 else max(before - self.count, 0)


class _SkipCursor(Cursor):
    def __init__(self, source: Cursor, count: int) -> None:
        self.source, self.count, self.columns = source, count, source.columns

    def pull(self, count: int) -> Any:
        self._skip()
        return self.source.pull(count)

    def advance(self, count: int) -> int:
        self._skip()
        return self.source.advance(count)

    def _skip(self) -> None:
        count, self.count = self.count, 0
        if count:
            self.source.advance(count)


@dataclass(eq=False)
class Shard(Step):
    count: int
    index: int

    def cursor(self, run: Pass) -> Cursor:
        source = self.source.cursor(run)
        source.advance(self.index)
        return _ShardCursor(source, self.count)

    def cardinality(self) -> int:
        before = self.source.cardinality()
        return before if before < 0 else max(-(-(before - self.index) // self.count), 0)


class _ShardCursor(Cursor):
    """Every ``step``-th item, beginning with the first."""

    def __init__(self, source: Cursor, step: int) -> None:
        self.source, self.step, self.columns = source, step, source.columns

    def pull(self, count: int) -> Any:
        if self.columns is not None:
            return self.source.pull(count * self.step)[:: self.step]
        blocks = []
        for _ in range(count):
            blocks.append(self.source.pull(1))
            if not blocks[-1] or self.source.advance(self.step - 1) < self.step - 1:
                break
        return join(blocks) if blocks else []

    def advance(self, count: int) -> int:
        return -(-self.source.advance(count * self.step) // self.step)


@dataclass(eq=False)
class Repeat(Step):
    count: int  # negative: for ever

    def cursor(self, run: Pass) -> Cursor:
        return _RepeatCursor(lambda: self.source.cursor(run), self.count)

    def cardinality(self) -> int:
        before = self.source.cardinality()
        if self.count == 0 or before == 0:
            return 0
        if self.count < 0:
            return INFINITE_CARDINALITY
        return before if before < 0 else before * self.count


class _RepeatCursor(Cursor):
    def __init__(self, begin: Callable[[], Cursor], count: int) -> None:
        self.begin, self.left = begin, count
        self.source, self.seen = begin(), False
        self.columns = self.source.columns

    def pull(self, count: int) -> Any:
        blocks: list[Any] = []
        self._over_passes(count, lambda source, wanted: blocks.append(source.pull(wanted)) or len(blocks[-1]))  # type: ignore[func-returns-value]
        return join(blocks) if blocks else self.source.pull(0)

    def advance(self, count: int) -> int:
        return self._over_passes(count, lambda source, wanted: source.advance(wanted))

    def _over_passes(self, count: int, move: Callable[[Cursor, int], int]) -> int:
        """Move on by ``count`` items, beginning a new pass wherever one ends; an empty pass is the last."""
        done = 0
        while done < count and self.left:
            wanted = count - done
            moved = move(self.source, wanted)
            done += moved
            self.seen = self.seen or moved > 0
            if moved < wanted:
                self.left = self.left - 1 if self.seen else 0
                if self.left:
                    self.source, self.seen = self.begin(), False
        return done


@dataclass(eq=False)
class Concatenate(Node):
    nodes: tuple[Node, ...]

    def cursor(self, run: Pass) -> Cursor:
        return _ConcatenateCursor([node.cursor(run) for node in self.nodes])

    def cardinality(self) -> int:
        counts = [node.cardinality() for node in self.nodes]
        if min(counts) >= 0:
            return sum(counts)
        return INFINITE_CARDINALITY if INFINITE_CARDINALITY in counts else UNKNOWN_CARDINALITY

    def spec(self, probe: bool) -> Any:
        first, *others = (node.spec(probe) for node in self.nodes)
        for other in others:
            first = structure.common(first, other)
        return first


class _ConcatenateCursor(ElementCursor):
    def __init__(self, sources: list[Cursor]) -> None:
        self.sources = sources

    def element(self) -> Any:
        while self.sources:
            try:
                return self.sources[0].element()
            except StopIteration:
                self.sources.pop(0)
        raise StopIteration

    def advance(self, count: int) -> int:
        done = 0
        while self.sources and done < count:
            done += self.sources[0].advance(count - done)
            if done < count:
                self.sources.pop(0)
        return done


@dataclass(eq=False)
class Zip(Node):
    structure: Any  # with a node at each leaf

    def _nodes(self) -> list[Node]:
        return nest.flatten(self.structure)

    def cursor(self, run: Pass) -> Cursor:
        return _ZipCursor(self.structure, [node.cursor(run) for node in self._nodes()])

    def cardinality(self) -> int:
        counts = [node.cardinality() for node in self._nodes()]
        if UNKNOWN_CARDINALITY in counts:
            return UNKNOWN_CARDINALITY
        return min((n for n in counts if n >= 0), default=INFINITE_CARDINALITY)

    def spec(self, probe: bool) -> Any:
        return packer(self.structure)([node.spec(probe) for node in self._nodes()])


class _ZipCursor(Cursor):
    def __init__(self, structure: Any, sources: list[Cursor]) -> None:
        self.sources, self.pack = sources, packer(structure)
        sets = [source.columns for source in sources]
        if all(columns is not None for columns in sets):
            self.columns = ZippedColumns(structure, sets)  # type: ignore[arg-type]

    def pull(self, count: int) -> Any:
        if self.columns is None:
            return self._elements(count)
        blocks = [source.pull(count) for source in self.sources]
        shortest = min(map(len, blocks))
        return np.column_stack([block[:shortest] for block in blocks])

    def _elements(self, count: int) -> list:
        """One at a time: nothing is drawn from a dataset when one before it has ended."""
        found: list = []
        try:
            while len(found) < count:
                found.append(self.pack([source.element() for source in self.sources]))
        except StopIteration:
            pass
        return found

    def advance(self, count: int) -> int:
        return min(source.advance(count) for source in self.sources)


# Shuffling

_DRAWS = 1024  # random slots that are drawn at a time; part of what a seed means


@dataclass(eq=False)
class Shuffle(Step):
    """A buffer of ``size`` items: each time one of them, at random, makes room for the next item."""

    size: int
    seeds: Seeds

    def cursor(self, run: Pass) -> Cursor:
        source = self.source.cursor(run)
        kind = _ShuffleElements if source.columns is None else _ShuffleRows
        return kind(source, self.size, self.source.cardinality(), run.words(self.seeds))


class _ShuffleCursor(Cursor):
    """The slots come from one stream, the order in which the last buffer empties from another, so that it does not matter
    whether items are moved one by one or many at once."""

    def __init__(self, source: Cursor, size: int, count: int, words: tuple[int, int]) -> None:
        self.source, self.size, self.count, self.columns = source, size, count, source.columns
        self.slots, self.order = stream(*words, 0), stream(*words, 1)
        self.buffer: Any = None
        self.ended = False

    def draw(self) -> np.ndarray:
        return self.slots.integers(self.size, size=_DRAWS)

    def fill(self) -> None:
        self.buffer = copy.copy(self.source.pull(self.size))  # a cache may hold the block, and this one is written to
        self.ended = len(self.buffer) < self.size

    def advance(self, count: int) -> int:
        if self.buffer is None and 0 <= self.count <= count:  # the whole pass: the order does not matter
            self.buffer, self.ended = self.source.pull(0), True
            return self.source.advance(count)
        return super().advance(count)


class _ShuffleRows(_ShuffleCursor):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ready = self.source.pull(0)

    def pull(self, count: int) -> np.ndarray:
        blocks, missing = [], count
        while missing:
            if not len(self.ready):
                self.refill()
                if not len(self.ready):
                    break
            blocks.append(self.ready[:missing])
            self.ready = self.ready[missing:]
            missing -= len(blocks[-1])
        return join(blocks) if blocks else self.ready[:0]

    def refill(self) -> None:
        if self.buffer is None:
            self.fill()
        if not self.ended:
            incoming = self.source.pull(_DRAWS)
            self.ended = len(incoming) < _DRAWS
            self.ready = self.exchange(self.draw()[: len(incoming)], incoming)
        if not len(self.ready):
            self.ready = self.buffer[self.order.permutation(len(self.buffer))]
            self.buffer = self.buffer[:0]

    def exchange(self, slots: np.ndarray, incoming: np.ndarray) -> np.ndarray:
        """What leaves the buffer when the incoming rows enter it, one after the other, at these slots.

        A slot that is drawn again gives what entered it the time before: with the draws sorted by slot, its neighbour.
        """
        order = np.argsort(slots, kind="stable")
        ranked = slots[order]
        again = np.zeros(len(slots), bool)
        again[1:] = ranked[1:] == ranked[:-1]
        leaving = np.empty_like(incoming)
        leaving[order] = np.roll(incoming[order], 1, axis=0)
        leaving[order[~again]] = self.buffer[ranked[~again]]
        last = np.append(~again[1:], True)[: len(slots)]
        self.buffer[ranked[last]] = incoming[order[last]]
        return leaving


class _ShuffleElements(_ShuffleCursor, ElementCursor):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.drawn: list[int] = []
        self.emptying: list[int] | None = None

    def element(self) -> Any:
        if self.buffer is None:
            self.fill()
        incoming = [] if self.ended else self.source.pull(1)
        if not incoming:
            self.ended = True
            return self.last()
        self.drawn = self.drawn or self.draw().tolist()[::-1]
        slot = self.drawn.pop()
        leaving, self.buffer[slot] = self.buffer[slot], incoming[0]
        return leaving

    def last(self) -> Any:
        if self.emptying is None:
            self.emptying = self.order.permutation(len(self.buffer)).tolist()[::-1]
        if not self.emptying:
            raise StopIteration
        slot = self.emptying.pop()
        leaving, self.buffer[slot] = self.buffer[slot], None
        return leaving


# Keeping


@dataclass(eq=False)
class Cache(Step):
    """The items of the first complete pass, in memory or in a file, serve all later ones."""

    file: Path | None = None
    kept: tuple[Any, Columns | None] | None = field(default=None, init=False)

    def cursor(self, run: Pass) -> Cursor:
        if self.kept is None and self.file is not None and self.file.exists():
            self.kept = storage.load(self.file, self.spec(probe=True)), None
        if self.kept is not None:
            return SequenceCursor(*self.kept)
        return _CacheCursor(self.source.cursor(run), self)

    def keep(self, items: Any, columns: Columns | None) -> None:
        if self.file is not None:
            storage.save(self.file, items if columns is None else [columns.element(row) for row in items.tolist()])
        self.kept = items, columns


class _CacheCursor(Cursor):
    def __init__(self, source: Cursor, cache: Cache) -> None:
        self.source, self.cache, self.columns = source, cache, source.columns
        self.seen: list | None = []

    def pull(self, count: int) -> Any:
        seen, self.seen = self.seen, None  # a pass with an error in it is not kept
        block = self.source.pull(count)
        if seen is not None:
            seen.append(block)
            if len(block) < count:
                self.cache.keep(join(seen), self.columns)
            else:
                self.seen = seen
        return block
