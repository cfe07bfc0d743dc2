"""What stands out in a graph: broken paths, non-finite values, gradients too small or too large, dead units, memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gradtape.inspect.graph import Graph, Node
from gradtape.inspect.tables import size

VANISHING = 1e-7
"""A gradient vanishes if the root mean square of its elements is below this part of the largest on the way."""

EXPLODING = 1e4
"""A gradient explodes if the root mean square of its elements is above this, or grows by this factor on its way."""

DEAD = 0.1
"""The part of dead units from which a rectifier is worth a word."""

_SHOWN = 6  # findings of one kind
ERROR, WARNING, INFORMATION = "error", "warning", "information"


@dataclass(slots=True)
class Finding:
    """Something worth a look: how bad, of which kind, in words, and the nodes concerned."""

    severity: str
    kind: str
    title: str
    text: str
    nodes: list[int] = field(default_factory=list)
    path: tuple[int, int] | None = None  # source and target, of a broken path


def findings(graph: Graph) -> list[Finding]:
    """All findings, the worst first."""
    found = [*_broken(graph), *_nonfinite(graph), *_zero(graph), *_sizes(graph), *_dead(graph), *_memory(graph)]
    rank = {ERROR: 0, WARNING: 1, INFORMATION: 2}
    return sorted(found, key=lambda finding: rank[finding.severity])


def _broken(graph: Graph) -> Iterator[Finding]:
    """Sources from which no gradient flows to the target; what is known of the reason goes along."""
    for name, reason in graph.absent[:_SHOWN]:
        yield Finding(ERROR, "broken", f"No gradient for {name[:60]}", reason)
    for target in graph.targets:
        reached = graph.reached([target], forward=False)
        lost = [source for source in graph.sources if source not in reached or source in graph.reasons]
        for source in lost[:_SHOWN]:
            node = graph.nodes[source]
            text = graph.reasons.get(source) or _dead_end(graph, source)
            yield Finding(ERROR, "broken", f"No gradient for {_short(node)}", text, [source], (source, target))
        if len(lost) > _SHOWN:
            more = f"{len(lost) - _SHOWN} more sources without a path"
            yield Finding(ERROR, "broken", more, "Choose them under “Path”.", lost[_SHOWN:])


def _dead_end(graph: Graph, source: int) -> str:
    """Where what depends on a source ends."""
    reached = graph.reached([source], forward=True)
    read = {edge.source for number in reached for edge in graph.nodes[number].inputs}
    ends = [graph.nodes[n] for n in sorted(reached - read) if n != source]
    if not ends:
        return "No recorded op reads it."
    return f"What is computed from it ends at {', '.join(_where(end) for end in ends[:3])}."


def _nonfinite(graph: Graph) -> Iterator[Finding]:
    """Ops that made NaN or infinity of finite inputs; without any, the leaves that brought it in."""
    for what, attribute in (("value", "value"), ("gradient", "gradient")):
        bad = [node for node in graph.nodes if _count_nonfinite(node, attribute)]
        if not bad:
            continue
        if attribute == "value":
            first = [n for n in bad if not any(_count_nonfinite(graph.nodes[e.source], attribute) for e in n.inputs)]
        else:  # gradients come from the readers
            readers = graph.readers()
            first = [n for n in bad if not any(_count_nonfinite(graph.nodes[r], attribute) for r in readers[n.number])]
        for node in first[:_SHOWN]:
            text = f"{_count_nonfinite(node, attribute)} of its elements; {len(bad)} {what}s in all are not finite."
            yield Finding(ERROR, "nonfinite", f"The {what} of {_where(node)} is not finite", text, [node.number])


def _count_nonfinite(node: Node, attribute: str) -> int:
    return sum(s.nonfinite for output in node.outputs if (s := getattr(output, attribute)) is not None)


def _zero(graph: Graph) -> Iterator[Finding]:
    """Sources that are connected, but get zeros only."""
    zero = [n for n in graph.sources if (g := graph.nodes[n].outputs[0].gradient) is not None and g.zeros == 1]
    if zero:
        names = ", ".join(_short(graph.nodes[n]) for n in zero[:4]) + (" and others" if len(zero) > 4 else "")
        text = f"{names}: connected, but the derivative is zero. A saturated or unselected branch, or a product with zero."
        yield Finding(WARNING, "zero", f"Gradient exactly zero for {_counted(len(zero), 'source')}", text, zero)


def _sizes(graph: Graph) -> Iterator[Finding]:
    """Gradients of sources and ops whose elements are far smaller, or larger, than those at the target."""
    sized = {
        node.number: max(s.root_mean_square for s in found)
        for node in graph.nodes
        if (found := [o.gradient for o in node.outputs if o.gradient is not None and not o.gradient.nonfinite])
    }
    if not sized:
        return
    top = max(sized.values())
    small = [n for n, size in sized.items() if 0 < size < VANISHING * top]
    start = max((sized.get(target, 0.0) for target in graph.targets), default=1.0) or 1.0
    large = [n for n, size in sized.items() if size > EXPLODING * max(1.0, start)]
    for kind, numbers, extreme, text in (
        ("vanishing", small, min, f"against {top:.2g} at most: almost nothing arrives there"),
        ("exploding", large, max, f"from {start:.2g} at the target: steps along it will be far too long"),
    ):
        if numbers:
            at = extreme(numbers, key=sized.__getitem__)
            title = f"{kind.capitalize()} gradient at {_counted(len(numbers), 'value')}"
            text = f"{sized[at]:.2g} per element at {_where(graph.nodes[at])}, {text}."
            yield Finding(WARNING, kind, title, text, [at, *(n for n in numbers if n != at)])


def _dead(graph: Graph) -> Iterator[Finding]:
    dead = [(o.dead, node) for node in graph.nodes for o in node.outputs if o.dead is not None and o.dead >= DEAD]
    for part, node in sorted(dead, key=lambda pair: -pair[0])[:_SHOWN]:
        units = node.outputs[0].shape[-1]
        text = f"{round(part * units)} of {units} units are zero for every example: no gradient passes them."
        yield Finding(WARNING, "dead", f"{part:.0%} dead units in {_where(node)}", text, [node.number])


def _memory(graph: Graph) -> Iterator[Finding]:
    held: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if node.bytes:
            held.setdefault(_where(node), []).append(node)
    sums = sorted(((sum(n.bytes for n in nodes), where) for where, nodes in held.items()), reverse=True)
    total = sum(count for count, _ in sums)
    if total:
        text = ", ".join(f"{where} {size(count)} ({count / total:.0%})" for count, where in sums[:3])
        first = [held[where][0].number for _, where in sums[:3]]
        yield Finding(INFORMATION, "memory", f"{size(total)} are kept for the gradient", f"Most of it by {text}.", first)


def _counted(n: int, word: str) -> str:
    return f"{n} {word}{'s' * (n != 1)}"


def _short(node: Node) -> str:
    return node.name if len(node.name) <= 60 else node.name[:59] + "…"


def _where(node: Node) -> str:
    return f"{_short(node)} ({node.place})" if node.place is not None else _short(node)
