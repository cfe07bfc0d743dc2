"""A tape as a table of the ops that it recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradtape.core.tape import GradientTape
from gradtape.inspect.graph import OP, Graph, Node, read
from gradtape.inspect.tables import size, table

_ROWS = 40
_HEAD = ("#", "op", "output", "dtype", "inputs", "keeps", "line")
_LEFT = ("op", "output", "inputs", "line")


@dataclass(frozen=True, slots=True)
class Summary:
    """The answer of `summary`: rows as data; printed, a table."""

    title: str
    rows: tuple[tuple[str, ...], ...]  # number, op, shape of the output, dtype, inputs, bytes kept, line
    limit: int | None = None  # how many rows are printed

    def __str__(self) -> str:
        rows = self.rows
        if self.limit is not None and len(rows) > self.limit:
            half = self.limit // 2
            left_out = ("…", f"{len(rows) - 2 * half} more", "", "", "", "", "")
            rows = (*rows[:half], left_out, *rows[-half:])
        return f"{self.title}\n{table(_HEAD, rows, left=_LEFT)}" if rows else self.title

    __repr__ = __str__


def summary(tape: GradientTape, limit: int | None = None) -> Summary:
    """The recorded ops, in order: what they gave, of what, what the tape keeps of it, and (if it traces) on which line.

    ``limit`` is the number of rows to print; the rest is left out in the middle.
    """
    if tape.records is None and tape.trace is None:
        return Summary(short(tape), (), limit)
    graph = read(tape, values=False)
    numbers = {node.number: i for i, node in enumerate(graph.ops)}
    return Summary(short(tape), tuple(_row(graph, node, numbers) for node in graph.ops), limit)


def _row(graph: Graph, node: Node, numbers: dict[int, int]) -> tuple[str, ...]:
    shapes = ", ".join(str(output.shape) for output in node.outputs)
    read_from = [graph.nodes[edge.source] for edge in node.inputs]
    inputs = ", ".join(f"#{numbers[n.number]}" if n.kind == OP else n.name for n in read_from)
    if node.attributes:
        inputs = f"{inputs}; {node.attributes}" if inputs else node.attributes
    kept = size(node.bytes) if node.bytes else ""
    return str(numbers[node.number]), node.name, shapes, node.outputs[0].dtype, inputs, kept, str(node.place or "")


def text(tape: GradientTape) -> str:
    """What ``print(tape)`` shows."""
    return str(summary(tape, _ROWS))


def short(tape: GradientTape) -> str:
    """What the interpreter shows of a tape."""
    records: Any = tape.records
    if records is None:
        state = "used up" if tape._used is not None else "empty"
        return f"<GradientTape: {state}>"
    ops, variables = sum(record[0] is not None for record in records.values()), len(tape.variables)
    counts = f"{ops} op{'s' * (ops != 1)}, {variables} variable{'s' * (variables != 1)}"
    return f"<GradientTape: {counts}{', persistent' * bool(tape._persistent)}{', recording' * tape._recording}>"
