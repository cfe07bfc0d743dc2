"""Steps that look into elements: user functions, batches, windows, datasets of datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.data import ragged, structure, threads
from gradtape.data.cursor import (
    UNKNOWN_CARDINALITY,
    Cursor,
    ElementCursor,
    Node,
    Pass,
    SequenceCursor,
    Unprobed,
    join,
)
from gradtape.data.ordering import Step
from gradtape.errors import message, shown
from gradtape.values import dtypes, nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.shape import TensorShape
from gradtape.values.spec import TensorSpec
from gradtape.values.tensor import Tensor, wrap

# Specs of what user functions return


def probed(source: Node, call: Callable[[Any], Any]) -> Any:
    """The specs of ``call(element)``: of the first element, or of zeros if there is none.

    Where lengths of the input are unknown, a second call on an element with other lengths shows which lengths of the
    result depend on them.
    """
    spec, element = source.spec(probe=True), example(source)
    result = structure.spec_of(call(element))
    other = nest.map_structure(_resized, element, spec) if nest.flatten(spec) else element
    if any(a is not b for a, b in zip(nest.flatten(element), nest.flatten(other))):
        try:
            return structure.common(result, structure.spec_of(call(other)))
        except Exception:  # the function does not take other lengths
            return result
    return result


def example(source: Node) -> Any:
    """The first element, or zeros if there is none."""
    found = source.cursor(Pass(probe=True)).elements(1)
    return found[0] if found else nest.map_structure(_zeros, source.spec(probe=True))


def _zeros(spec: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        return spec._example()
    shape = [1 if n is None else n for n in spec.shape] if spec.shape.rank is not None else []
    return wrap(np.full(shape, b"" if spec.dtype is dtypes.string else 0, spec.dtype.numpy))


def _resized(leaf: Any, spec: Any) -> Any:
    """The tensor with each axis of unknown length one longer, its last slice repeated."""
    if not isinstance(leaf, Tensor) or getattr(spec, "shape", TensorShape([])).is_fully_defined() or spec.shape.rank is None:
        return leaf
    array = leaf._host()
    for axis, length in enumerate(spec.shape):
        if length is None and array.shape[axis]:
            array = np.append(array, array.take([-1], axis=axis), axis=axis)
    return wrap(array.astype(leaf._host().dtype))


@dataclass(eq=False)
class Calling(Step):
    """A step with a user function."""

    function: Callable

    def call(self, element: Any) -> Any:
        return structure.returned(self.function(*structure.arguments(element)))


@dataclass(eq=False)
class Map(Calling):
    parallel: int | None = None
    ordered: bool = True

    def cursor(self, run: Pass) -> Cursor:
        source = self.source.cursor(run)
        if self.parallel is None:
            return _MapCursor(source, self.call)
        return threads.ParallelCalls(source, self.call, threads.workers(self.parallel), self.ordered)

    def spec(self, probe: bool) -> Any:
        if not probe:
            raise Unprobed
        return probed(self.source, self.call)


class _MapCursor(ElementCursor):
    def __init__(self, source: Cursor, call: Callable) -> None:
        self.source, self.call = source, call

    def element(self) -> Any:
        return self.call(self.source.element())

    def advance(self, count: int) -> int:
        return self.source.advance(count)


def _truth(value: Any, spelled: str = "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor") -> bool:
    tensor = convert_to_tensor(value)
    if tensor.dtype is not dtypes.bool_ or tensor.ndim:
        text = f"{spelled}, but its return type is {structure.spec_of(tensor)}."
        raise ValueError(
            message(text, received=shown(tensor), fix="return a comparison, reduced to one truth value: tf.reduce_all(x > 0)")
        )
    return bool(tensor)


@dataclass(eq=False)
class Filter(Calling):
    until: bool = False  # stop at the first element that is refused

    def cursor(self, run: Pass) -> Cursor:
        return _FilterCursor(self.source.cursor(run), self.function, self.until)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY


class _FilterCursor(Cursor):
    """Rows stay rows."""

    def __init__(self, source: Cursor, predicate: Callable, until: bool) -> None:
        self.source, self.predicate, self.until, self.columns = source, predicate, until, source.columns
        self.ended = False

    def pull(self, count: int) -> Any:
        kept: list[Any] = []
        while len(kept) < count and not self.ended:
            block = self.source.pull(1)
            if not len(block):
                break
            element = block[0] if self.columns is None else self.columns.element(block.tolist()[0])
            if _truth(self.predicate(*structure.arguments(element))):
                kept.append(block)
            else:
                self.ended = self.until
        return join(kept) if kept else self.source.pull(0)


@dataclass(eq=False)
class Scan(Calling):
    state: Any

    def cursor(self, run: Pass) -> Cursor:
        return _ScanCursor(self.source.cursor(run), self.step, self.state)

    def step(self, state: Any, element: Any) -> tuple[Any, Any]:
        result = self.function(state, element)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            text = (
                "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the output value "
                f"but its return type is {type(result).__name__}."
            )
            raise TypeError(message(text, received=shown(result), fix="return (new_state, output)"))
        return structure.normalize(result[0]), structure.returned(result[1])

    def spec(self, probe: bool) -> Any:
        if not probe:
            raise Unprobed
        return probed(self.source, lambda element: self.step(self.state, element)[1])


class _ScanCursor(ElementCursor):
    def __init__(self, source: Cursor, step: Callable, state: Any) -> None:
        self.source, self.step, self.state = source, step, state

    def element(self) -> Any:
        self.state, output = self.step(self.state, self.source.element())
        return output


# Batches


@dataclass(eq=False)
class Batch(Step):
    size: int
    drop: bool

    def cursor(self, run: Pass) -> Cursor:
        return _BatchCursor(self.source.cursor(run), self.size, self.drop, self.combine())

    def combine(self) -> Callable[[list], Any] | None:
        """How elements become a batch; None is a plain stack, for which rows can be gathered."""
        return None

    def cardinality(self) -> int:
        before = self.source.cardinality()
        return before if before < 0 else before // self.size if self.drop else -(-before // self.size)

    def spec(self, probe: bool) -> Any:
        return structure.stacked(self.source.spec(probe), self.size if self.drop else None)


class _BatchCursor(ElementCursor):
    def __init__(self, source: Cursor, size: int, drop: bool, combine: Callable[[list], Any] | None) -> None:
        self.source, self.size, self.drop, self.combine = source, size, drop, combine

    def element(self) -> Any:
        gather = self.combine is None and self.source.columns is not None
        block: Any = self.source.pull(self.size) if gather else self.source.elements(self.size)
        if len(block) < (self.size if self.drop else 1):
            raise StopIteration
        if gather:
            return self.source.columns.gather(block)  # type: ignore[union-attr]
        return structure.stack(block) if self.combine is None else self.combine(block)

    def advance(self, count: int) -> int:
        passed = self.source.advance(count * self.size)
        return passed // self.size if self.drop else -(-passed // self.size)


@dataclass(eq=False)
class PaddedBatch(Batch):
    shapes: Any
    padding: Any

    def combine(self) -> Callable[[list], Any]:
        inner = self._padded()
        shapes, padding = [leaf.shape for leaf in nest.flatten(inner)], structure.padding_leaves(inner, self.padding)
        return lambda elements: structure.pad_and_stack(elements, shapes, padding)

    def _padded(self) -> Any:
        before = self.source.spec(probe=True)
        if self.shapes is None and self._from_function():
            # What a function returns has the lengths of one example; only those that it shares with all are kept.
            before = nest.map_structure(lambda leaf: type(leaf)([None] * leaf.shape.rank, leaf.dtype), before)
        return structure.padded_spec(before, self.shapes)

    def _from_function(self) -> bool:
        try:
            self.source.spec(probe=False)
        except Unprobed:
            return True
        return False

    def spec(self, probe: bool) -> Any:
        if not probe:
            raise Unprobed
        return structure.stacked(self._padded(), self.size if self.drop else None)


@dataclass(eq=False)
class Unbatch(Step):
    def cursor(self, run: Pass) -> Cursor:
        return _UnbatchCursor(self.source.cursor(run))

    def cardinality(self) -> int:
        before = self.source.cardinality()
        try:
            lengths = {leaf.shape[0] for leaf in nest.flatten(self.source.spec(probe=False))}
        except Unprobed:
            return UNKNOWN_CARDINALITY
        if before < 0 or None in lengths or len(lengths) != 1:
            return UNKNOWN_CARDINALITY
        return before * lengths.pop()

    def spec(self, probe: bool) -> Any:
        return structure.sliced(self.source.spec(probe))


class _UnbatchCursor(ElementCursor):
    def __init__(self, source: Cursor) -> None:
        self.source = source
        self.current = SequenceCursor([])

    def element(self) -> Any:
        while True:
            try:
                return self.current.element()
            except StopIteration:
                self.current = as_rows(self.source.element())


def as_rows(element: Any) -> SequenceCursor:
    """The slices of an element along the first axis."""
    arrays = [structure.column(leaf) for leaf in nest.flatten(element)]
    if not all(array.ndim for array in arrays):
        raise ValueError(
            message(
                "Cannot unbatch an input with scalar components.",
                received=f"shapes {[array.shape for array in arrays]}",
                expected="at least one axis in every component",
            )
        )
    if len({len(array) for array in arrays}) > 1:
        text = (
            "`unbatch()` is only supported for datasets of elements whose components have a matching leading dimension. "
            f"Encountered both {len(arrays[0])} and {next(len(a) for a in arrays if len(a) != len(arrays[0]))}."
        )
        raise ValueError(
            message(text, received=f"shapes {[array.shape for array in arrays]}", expected="one length along axis 0")
        )
    return SequenceCursor(np.arange(len(arrays[0])), ragged.columns(element, arrays))


@dataclass(eq=False)
class Rebatch(Step):
    sizes: tuple[int, ...]  # taken in turn
    drop: bool

    def cursor(self, run: Pass) -> Cursor:
        return _RebatchCursor(_UnbatchCursor(self.source.cursor(run)), self.sizes, self.drop)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def spec(self, probe: bool) -> Any:
        same = self.sizes[0] if self.drop and len(set(self.sizes)) == 1 else None
        return structure.stacked(structure.sliced(self.source.spec(probe)), same)


class _RebatchCursor(ElementCursor):
    def __init__(self, source: Cursor, sizes: tuple[int, ...], drop: bool) -> None:
        self.source, self.sizes, self.drop = source, sizes, drop
        self.turn = 0

    def element(self) -> Any:
        size = self.sizes[self.turn % len(self.sizes)]
        self.turn += 1
        elements = self.source.elements(size)
        if len(elements) < (size if self.drop else 1):
            raise StopIteration
        return structure.stack(elements)
