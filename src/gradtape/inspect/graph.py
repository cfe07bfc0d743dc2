"""A tape as a graph: nodes for ops, variables and constants, edges for the values between them.

`read` makes it from any tape that still has its records. Shapes, dtypes and kept bytes are there always; places in the user's
code, values and times for a tape that traces; gradients when a target is given, or was asked for on a tape that traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from gradtape.core.backprop import PAIR
from gradtape.core.callsite import Place, place_of
from gradtape.core.tape import GradientTape
from gradtape.core.trace import Entry
from gradtape.errors import message
from gradtape.inspect.statistics import Statistics, dead_units, describe, numbers
from gradtape.tangents.forward import as_general
from gradtape.values.tensor import Tensor

OP, VARIABLE, WATCHED, CONSTANT = "op", "variable", "watched", "constant"
_SHOWN = 200  # characters of a name or an attribute


@dataclass(frozen=True, slots=True)
class Edge:
    """A value on its way into an op: from which node, and which of that node's outputs."""

    source: int
    output: int


@dataclass(slots=True)
class Output:
    """One result of an op, or the value of a leaf."""

    shape: tuple[int, ...]
    dtype: str
    value: Statistics | None = None
    gradient: Statistics | None = None
    dead: float | None = None  # of a rectifier: the fraction of units that are zero for every example


@dataclass(slots=True)
class Node:
    """An op that was recorded, or a value that it began with."""

    number: int
    kind: str
    name: str
    outputs: list[Output]
    inputs: list[Edge] = field(default_factory=list)
    attributes: str = ""
    bytes: int = 0  # that the record alone keeps alive
    place: Place | None = None
    module: str = ""  # that it belongs to, as far as names of variables tell: see `modules`
    forward_seconds: float | None = None
    backward_seconds: float | None = None


@dataclass(slots=True)
class Graph:
    """What a tape recorded, in the order in which it happened, leaves before their first use."""

    nodes: list[Node]
    name: str = "tape"
    targets: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    traced: bool = False
    absent: list[tuple[str, str]] = field(default_factory=list)  # sources that the tape never met, and why
    reasons: dict[int, str] = field(default_factory=dict)  # by source: why no gradient arrives there
    numbers_of: dict[Any, tuple[int, int]] = field(default_factory=dict, repr=False)  # by key: the node, and which output

    @property
    def ops(self) -> list[Node]:
        return [node for node in self.nodes if node.kind == OP]

    def edges(self) -> Iterator[tuple[Node, Node, Output]]:
        """From each node to each that reads it, and the value that passes."""
        for node in self.nodes:
            for edge in node.inputs:
                source = self.nodes[edge.source]
                yield source, node, source.outputs[edge.output]

    def readers(self) -> list[list[int]]:
        """For each node the ops that read it."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for source, node, _ in self.edges():
            found[source.number].append(node.number)
        return found

    def between(self, targets: list[int], sources: list[int]) -> set[int]:
        """The nodes on a path from one of the sources to one of the targets."""
        return self.reached(sources, forward=True) & self.reached(targets, forward=False)

    def reached(self, starts: list[int], forward: bool) -> set[int]:
        """What depends on these nodes (forward), or what they depend on; themselves included."""
        found = set(starts)
        for node in self.nodes if forward else reversed(self.nodes):
            inputs = {edge.source for edge in node.inputs}
            if forward and not found.isdisjoint(inputs):
                found.add(node.number)
            elif not forward and node.number in found:
                found |= inputs
        return found


def read(tape: GradientTape, values: bool = True) -> Graph:
    """The graph of a tape, without gradients: `gradients.annotate` adds them. Describing all values takes longest."""
    graph = _Reader(tape, values).read()
    graph.traced = tape.trace is not None
    if tape._entered is not None:
        graph.name = f"tape at {place_of(*tape._entered)}"
    return graph


def records_of(tape: GradientTape) -> dict:
    """The records of a tape; one that traces has them even after a gradient call has used it up."""
    records = tape.records
    if records is None and tape.trace is not None:
        records = tape.trace.records
    if records is None or (not records and tape.records is None):
        raise RuntimeError(
            message(
                "This tape has nothing left to show.",
                received="a tape that was never entered, or whose records a gradient call has used up",
                fix="ask before calling gradient, or make the tape with persistent=True or trace=True",
            )
        )
    return records


_RECTIFIERS = {"relu", "relu6", "maximum"}


def fill(node: Node, i: int, value: Any) -> None:
    """What the value of an output tells, if that is not known yet."""
    output = node.outputs[i]
    if output.value is None:
        output.value = describe(value)
        if node.name in _RECTIFIERS and len(output.shape) > 1:
            output.dead = dead_units(value)


class _Reader:
    """Walks the records of a tape once."""

    def __init__(self, tape: GradientTape, values: bool) -> None:
        self._values = values
        self._variables = tape.variables
        self._records = records_of(tape)
        self._entries = {} if tape.trace is None else tape.trace.entries
        self._nodes: list[Node] = []
        self._numbers: dict[Any, tuple[int, int]] = {}
        self._seen: set[int] = set()  # buffers that are counted already

    def read(self) -> Graph:
        for key, record in self._records.items():
            if record[0] is not None:
                self._op(self._entries.get(key), as_general(record, key) if record[0] is PAIR else record)
        for key, record in self._records.items():  # watched, and never used
            if record[0] is None and key not in self._numbers:
                self._leaf(key, None, None)
        return Graph(self._nodes, numbers_of=self._numbers)

    def _op(self, entry: Entry | None, record: tuple) -> None:
        _, op, keys, shapes, dtypes, kept, attributes, outputs, described = record
        inputs = []
        for i, input_key in enumerate(keys):
            if not input_key and not shapes[i]:  # a number, or something that is no tensor
                continue
            value = None if entry is None else entry.input_values[i]
            value = _kept_input(op, kept, i) if value is None else value
            place = self._numbers.get(input_key) if input_key else None
            if place is None:
                place = self._leaf(input_key, shapes[i], dtypes[i], value)
            elif value is not None:
                self._fill(*place, value)
            inputs.append(Edge(*place))
        node = self._add(OP, op.name, [Output(tuple(shape), _dtype(dtype)) for shape, dtype in described])
        node.inputs = inputs
        node.attributes = _attributes(op, kept, attributes, keys)
        node.bytes = self._bytes(kept)
        for i, output_key in enumerate(outputs):
            if output_key is not None:
                self._numbers[output_key] = node.number, i
        out = kept.get("out")
        values = out if type(out) is tuple else (out,)
        if entry is not None:
            node.place = entry.place
            values = tuple(value if own is None else own for own, value in zip_longest(entry.output_values, values))
        for i, value in enumerate(values):
            self._fill(node.number, i, value)

    def _leaf(self, key: Any, shape: Any, dtype: Any, value: Any = None) -> tuple[int, int]:
        variable, entry = self._variables.get(key), self._entries.get(key)
        if value is None and entry is not None:
            value = entry.output_values[0]
        if value is None:
            value = variable
        if variable is not None:
            kind, name = VARIABLE, variable.name.removesuffix(":0")
        else:
            kind, name = (WATCHED, "watched") if key in self._records else (CONSTANT, "constant")
        array = getattr(getattr(value, "_tensor", value), "_array", None)
        if array is not None:
            shape, dtype = array.shape, array.dtype
        node = self._add(kind, name, [Output(tuple(shape or ()), _dtype(dtype))])
        node.place = None if entry is None else entry.place
        place = node.number, 0
        self._fill(*place, value)
        if key:
            self._numbers[key] = place
        return place

    def _fill(self, number: int, i: int, value: Any) -> None:
        if self._values and value is not None:
            fill(self._nodes[number], i, value)

    def _add(self, kind: str, name: str, outputs: list[Output]) -> Node:
        node = Node(len(self._nodes), kind, legible(name), outputs)
        self._nodes.append(node)
        return node

    def _bytes(self, kept: dict) -> int:
        """What this record keeps alive: buffers that neither an earlier record nor a variable holds anyway."""
        total = 0
        for value in kept.values():
            for tensor in value if type(value) is tuple else (value,):
                array = tensor._array
                while isinstance(getattr(array, "base", None), np.ndarray):
                    array = array.base
                if tensor._key not in self._variables and id(array) not in self._seen:
                    self._seen.add(id(array))
                    total += int(getattr(array, "nbytes", 0))
        return total


def _kept_input(op: Any, kept: dict, i: int) -> Tensor | None:
    """The tensor that a record keeps of its i-th input."""
    if not op.inputs:
        return None
    value = kept.get(op.inputs[0 if op.variadic else i])
    return value[i] if type(value) is tuple else value


def _attributes(op: Any, kept: dict, attributes: dict, keys: tuple) -> str:
    """What distinguishes this call of the op: its keywords, and operands that are plain numbers."""
    if "grad_fn" in attributes:
        return "custom gradient"
    parts = [f"{name}={value!r}" for name, value in attributes.items() if value is not None and value is not False]
    for i, name in enumerate(op.inputs if not op.variadic else ()):
        value = numbers(kept.get(name)) if i < len(keys) and not keys[i] else None
        if value is not None and not value.shape:
            parts.insert(0, f"{name}={value.item():.6g}")
    return legible(", ".join(parts))


def _dtype(dtype: Any) -> str:
    return "unknown" if dtype is None else str(getattr(dtype, "name", dtype)).replace("object", "string")


def legible(text: str) -> str:
    """Not too long, and without characters that are not for reading."""
    text = "".join(c if c.isprintable() else " " for c in text[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
