"""How datasets run: a `Node` describes a step of a pipeline, a `Cursor` is one pass over it.

A cursor hands out *items* in blocks. Where the data lies in arrays, an item is a row number and a block an index array:
shuffling, repeating, taking and filtering then move integers about, and the batch at the end is one gather per array.
Elsewhere an item is the element itself and a block is a list. The steps between need not know which.

The position of a pass is the number of items it has handed out, and the seeds of its random steps (`Pass`). A pass is
restored by starting a new one with those seeds and advancing it; steps that can skip without computing do.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradtape.ops import random
from gradtape.values import dtypes, nest
from gradtape.values.tensor import Tensor, wrap

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
AUTOTUNE = -1

_WORD = 2**64
_BLOCK = 4096  # rows that are skipped at a time


# What a block of items refers to


def packer(structure: Any) -> Callable[[list], Any]:
    """A function that arranges a list of leaves like ``structure``; the two frequent shapes are fast."""
    if not nest.is_nested(structure):
        return lambda leaves: leaves[0]
    if type(structure) is tuple and not any(map(nest.is_nested, structure)):
        return tuple
    return lambda leaves: nest.pack_sequence_as(structure, leaves)


def _rows(array: np.ndarray, index: np.ndarray) -> np.ndarray:
    """``array[index]``, as a view where the rows lie together: nobody can write to either."""
    first, last = index[0], index[-1]
    if last - first == len(index) - 1 and (np.diff(index) == 1).all():
        return array[first : last + 1]
    return array.take(index, axis=0)


class Columns:
    """A structure of arrays of equal length: row i is one element. A block is an array of row numbers."""

    width = 1

    def __init__(self, structure: Any, arrays: list[np.ndarray]) -> None:
        self.structure, self.arrays = structure, arrays
        self._pack = packer(structure)

    def element(self, row: Any) -> Any:
        return self._pack([wrap(array[row, ...]) for array in self.arrays])

    def gather(self, block: np.ndarray) -> Any:
        """The elements of a block, stacked."""
        return self._pack([wrap(_rows(array, block)) for array in self.arrays])

    def parts(self) -> list[Columns]:
        """One set of columns per leaf of the structure."""
        return [Columns(None, [array]) for array in self.arrays]


class RangeColumns(Columns):
    """The numbers start, start + step, …, which need no memory."""

    def __init__(self, start: int, step: int, dtype: np.dtype) -> None:
        super().__init__(None, [])
        self.start, self.step, self.dtype = start, step, dtype

    def element(self, row: Any) -> Tensor:
        return wrap(np.asarray(self.start + self.step * row).astype(self.dtype))

    def gather(self, block: np.ndarray) -> Tensor:
        return wrap((self.start + self.step * block).astype(self.dtype))

    def parts(self) -> list[Columns]:
        return [self]


class ZippedColumns(Columns):
    """Several sets of columns side by side. A block has one column of row numbers for each."""

    def __init__(self, structure: Any, sets: list[Columns]) -> None:
        super().__init__(structure, [])
        self.sets = sets
        self.width = sum(columns.width for columns in sets)
        ends = np.cumsum([columns.width for columns in sets]).tolist()
        self._spans = [e - 1 if c.width == 1 else slice(e - c.width, e) for c, e in zip(sets, ends)]

    def element(self, row: Any) -> Any:
        return self._pack([columns.element(row[span]) for columns, span in zip(self.sets, self._spans)])

    def gather(self, block: np.ndarray) -> Any:
        return self._pack([columns.gather(block[:, span]) for columns, span in zip(self.sets, self._spans)])

    def parts(self) -> list[Columns]:
        return [_Spanned(part, span) for c, span in zip(self.sets, self._spans) for part in c.parts()]


class _Spanned(Columns):
    """Columns that read a part of a wider block."""

    def __init__(self, columns: Columns, span: Any) -> None:
        super().__init__(columns.structure, [])
        self.columns, self.span = columns, span

    def element(self, row: Any) -> Any:
        return self.columns.element(row[self.span])

    def gather(self, block: np.ndarray) -> Any:
        return self.columns.gather(block[:, self.span])

    def parts(self) -> list[Columns]:
        return [self]


def join(blocks: list) -> Any:
    """Blocks one after the other, as one block."""
    if len(blocks) == 1:
        return blocks[0]
    if blocks and isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    return [item for block in blocks for item in block]


# One pass


class Cursor(ABC):
    """One pass over a step of a pipeline."""

    columns: Columns | None = None
    """What the items refer to; None where they are the elements themselves."""

    @abstractmethod
    def pull(self, count: int) -> Any:
        """The next ``count`` items as a block; fewer only at the end."""

    def advance(self, count: int) -> int:
        """Pass over items; how many there were, which is less than ``count`` only at the end."""
        step = 1 if self.columns is None else _BLOCK
        done = 0
        while done < count:
            wanted = min(step, count - done)
            passed = len(self.pull(wanted))
            done += passed
            if passed < wanted:
                break
        return done

    def elements(self, count: int) -> list:
        """The next ``count`` items as elements; fewer only at the end."""
        block = self.pull(count)
        return block if self.columns is None else [self.columns.element(row) for row in block.tolist()]

    def element(self) -> Any:
        """The next element; StopIteration at the end."""
        found = self.elements(1)
        if not found:
            raise StopIteration
        return found[0]


class ElementCursor(Cursor):
    """A cursor that makes one element at a time."""

    @abstractmethod
    def element(self) -> Any:
        """The next element; StopIteration at the end."""

    def pull(self, count: int) -> list:
        items: list = []
        try:
            while len(items) < count:
                items.append(self.element())
        except StopIteration:
            pass
        return items


class SequenceCursor(Cursor):
    """A pass over a block that is there already."""

    def __init__(self, block: Any, columns: Columns | None = None) -> None:
        self.block, self.columns = block, columns
        self.position = 0

    def pull(self, count: int) -> Any:
        start, self.position = self.position, min(self.position + count, len(self.block))
        return self.block[start : self.position]

    def advance(self, count: int) -> int:
        return len(self.pull(count))


class RowCursor(Cursor):
    """A pass over the first ``count`` rows of columns."""

    def __init__(self, columns: Columns, count: int) -> None:
        self.columns, self.count = columns, count
        self.position = 0

    def pull(self, count: int) -> np.ndarray:
        start = self.position
        return np.arange(start, start + self.advance(count))

    def advance(self, count: int) -> int:
        start, self.position = self.position, min(self.position + count, self.count)
        return self.position - start


class Node(ABC):
    """A step of a pipeline: what it gives, and how to begin a pass."""

    @abstractmethod
    def cursor(self, run: Pass) -> Cursor:
        """Begin a pass."""

    @abstractmethod
    def cardinality(self) -> int:
        """How many elements, or one of the two constants."""

    @abstractmethod
    def spec(self, probe: bool) -> Any:
        """The specs of the elements. With ``probe`` user functions may be called to find out; else `Unprobed` is raised."""


class Unprobed(Exception):
    """The spec depends on a function of the user's, which was not to be called."""


# Randomness


def stream(*words: int) -> Any:
    """A NumPy generator whose numbers are a function of the words."""
    from numpy.random import Generator, Philox, SeedSequence  # loaded at the first draw

    entropy = np.array([word % _WORD for word in words], np.uint64).view(np.uint32)
    return Generator(Philox(SeedSequence(entropy)))


class Seeds:
    """Where a random step gets the seed of each pass from; made together with the step, by `shuffle` and the like.

    With a seed of its own or a global one, the n-th pass is the same in every run of the program.
    """

    def __init__(self, seed: Any, reseed: bool) -> None:
        self.reseed = reseed
        self.passes = 0
        streams = random._streams
        if seed is None:  # of the shared stream, which `set_seed` makes reproducible
            key, counter = streams.source("dataset", dtypes.int64, None)(lambda key, counter: (key, counter), 1)
            self.base: tuple[int, ...] = (key, counter % _WORD, counter // _WORD)
        else:
            self.base = (random._DEFAULT_SEED if streams.seed is None else streams.seed, random.index(seed, "seed"))

    def draw(self) -> int:
        """The seed of the next pass."""
        number = self.passes if self.reseed else 0
        self.passes += 1
        return int(stream(*self.base, number).integers(2**63))


class Pass:
    """What the cursors of one iterator share: the seeds of its random steps, in the order in which they were asked for."""

    def __init__(self, seeds: Iterable[int] = (), probe: bool = False) -> None:
        self.seeds: list[int] = []
        self._given = [int(seed) for seed in seeds]
        self._probe = probe
        self._known: weakref.WeakKeyDictionary[Seeds, list[int]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def words(self, seeds: Seeds) -> tuple[int, int]:
        """What a new cursor of a random step makes its streams from: under `repeat` it gets others, if reseeding."""
        with self._lock:
            entry = self._known.setdefault(seeds, [])
            if not entry:
                entry += [self._seed(seeds), 0]
            elif seeds.reseed:
                entry[1] += 1
            return entry[0], entry[1]

    def _seed(self, seeds: Seeds) -> int:
        if self._probe:  # a look ahead does not count as a pass
            return 0
        position = len(self.seeds)
        self.seeds.append(self._given[position] if position < len(self._given) else seeds.draw())
        return self.seeds[-1]
