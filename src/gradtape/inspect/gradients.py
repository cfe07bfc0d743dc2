"""The gradients that flow back through a tape, seen at every value on their way."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from gradtape.core.asking import leaves, ones_of
from gradtape.core.backprop import PAIR
from gradtape.core.context import suspended
from gradtape.core.observed import Observer, outputs_of
from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.inspect.explain import explain
from gradtape.inspect.graph import CONSTANT, VARIABLE, WATCHED, Graph, fill, legible, read, records_of
from gradtape.inspect.modules import assign_modules
from gradtape.inspect.profile import forward_seconds
from gradtape.inspect.replay import steps_of
from gradtape.inspect.statistics import describe, is_tracer

_REPLAY_SECONDS = 5.0


def traversed(tape: GradientTape, target: Any = None, sources: Any = None) -> Graph:
    """The graph of a tape with the gradients of a target by the sources, and the reasons of those that are None.

    Without a target: of what `gradient` was last asked for, if the tape traces. Without sources: by all that is watched.
    """
    graph = read(tape)
    asked: tuple = ()
    if tape.trace is not None:
        assign_modules(graph, tape.trace)
        asked = tape.trace.asked
    if target is not None:
        flat = None if sources is None else leaves(sources, "source")
        annotate(tape, graph, leaves(target, "target"), None, flat)
    elif sources is not None:
        raise ValueError(
            message("Sources need a target.", received="sources, but no target", fix="give the target, too: the loss")
        )
    elif asked and is_concrete(tape):
        annotate(tape, graph, *asked)
    else:
        graph.sources = _watched(graph)
    return graph


def annotate(tape: GradientTape, graph: Graph, targets: list, seeds: list | None, sources: list | None) -> None:
    """Fill in targets and sources, the gradient of every value between them, and the time of every rule."""
    graph.targets = _met(graph, targets)
    if sources is None:
        graph.sources = _watched(graph)
        sources = _objects(tape, graph)
    else:
        graph.sources = sorted({graph.numbers_of[s._key][0] for s in sources if s._key in graph.numbers_of})
    if not seeds or not all(hasattr(seed, "_array") for seed in seeds):  # the rows of a Jacobian
        seeds = [ones_of(target) for target in targets]
    trace = tape.trace
    saved = tape.records, tape.observers, tape._remains, () if trace is None else trace.asked
    tape.records, tape.observers = records_of(tape), (_Noting(graph, [s._key for s in sources]),)
    try:
        with suspended():
            found = tape._pull_back(targets, seeds, sources, last=False, sparse=False)
    finally:
        tape.records, tape.observers, tape._remains = saved[:3]
        if trace is not None:
            trace.asked = saved[3]
    _give_reasons(tape, graph, targets, [s for s, g in zip(sources, found) if g is None and not isinstance(s, SimpleNamespace)])


def _objects(tape: GradientTape, graph: Graph) -> list:
    """All that is watched: variables, tensors that a trace has, and for other tensors something that has their key."""
    entries = {} if tape.trace is None else tape.trace.entries
    held = {key: entry.output_values[0] for key, entry in entries.items() if entry.output_values[0] is not None}
    known = {**held, **tape.variables}
    keys = {number: key for key, (number, _) in graph.numbers_of.items()}
    return [known.get(keys[number], SimpleNamespace(_key=keys[number])) for number in graph.sources]


def _give_reasons(tape: GradientTape, graph: Graph, targets: list, lost: list) -> None:
    """What `explain` says of the sources that no gradient reaches; there may be some that the tape has never met."""
    for finding in explain(tape, targets, lost) if lost else ():
        where = f" ({finding.place})" if finding.place is not None else ""
        detail = f", {finding.detail}" if finding.detail else ""
        text = f"{finding.cause.says}{detail}{where}. Fix: {finding.cause.fix}."
        text = text[0].upper() + text[1:]
        key = finding.source._key
        if key in graph.numbers_of:
            node = graph.nodes[graph.numbers_of[key][0]]
            graph.reasons[node.number] = text
            if node.kind == CONSTANT:  # now we know what it is called
                node.name = legible(finding.name)
        else:
            graph.absent.append((finding.name, text))


def replay(tape: GradientTape, graph: Graph) -> None:
    """Run the ops of a tape once more: for the time that each takes, and for values that the tape did not keep."""
    if not is_concrete(tape):
        return
    deadline = time.perf_counter() + _REPLAY_SECONDS
    for step in steps_of(tape):
        if time.perf_counter() > deadline:
            break
        node = graph.nodes[graph.numbers_of[step.key][0]]
        if step.is_known:
            with suspended():
                node.forward_seconds = forward_seconds(step, repeat=1)
        for i, result in enumerate(step.results):
            if result is not None:
                fill(node, i, result)


def is_concrete(tape: GradientTape) -> bool:
    """Whether there are numbers on the tape: not so if it recorded a function that was being compiled."""
    kept = (v for r in records_of(tape).values() if r[0] is not None for v in (r[6:] if r[0] is PAIR else r[5].values()))
    tensors = [tensor for value in kept for tensor in (value if type(value) is tuple else (value,)) if tensor is not None]
    if tape.trace is not None:
        tensors += [value for entry in tape.trace.entries.values() for value in entry.output_values]
    return not any(is_tracer(getattr(tensor, "_array", tensor)) for tensor in tensors)


def _watched(graph: Graph) -> list[int]:
    return [node.number for node in graph.nodes if node.kind in (VARIABLE, WATCHED)]


def _met(graph: Graph, targets: list) -> list[int]:
    """The nodes of the targets, all of which the tape must have met."""
    missing = [target for target in targets if target._key not in graph.numbers_of]
    if missing:
        raise ValueError(
            message(
                "The target is not on this tape.",
                received=f"{len(missing)} of {len(targets)} targets that no recorded op made or read",
                fix="compute the target inside `with tape:` from what it watches; tape.explain(target, sources) says more",
            )
        )
    return [graph.numbers_of[target._key][0] for target in targets]


class _Noting(Observer):
    """Notes the cotangents of each record's outputs just before they are used, and how long the rules take."""

    def __init__(self, graph: Graph, leaves: list) -> None:
        self._graph, self._leaves = graph, leaves
        self._began = 0.0

    def before(self, sweep: Any, key: Any, record: tuple) -> None:
        for output in outputs_of(key, record):
            self._note(sweep, output)
        self._active = any(output in sweep.cotangents for output in outputs_of(key, record))
        self._began = time.perf_counter()

    def after(self, sweep: Any, key: Any, record: tuple) -> None:
        elapsed = time.perf_counter() - self._began
        if self._active:
            self._graph.nodes[self._graph.numbers_of[key][0]].backward_seconds = elapsed

    def finish(self, sweep: Any) -> None:
        for key in self._leaves:
            self._note(sweep, key)

    def _note(self, sweep: Any, key: Any) -> None:
        if key in sweep.cotangents and key in self._graph.numbers_of:
            number, output = self._graph.numbers_of[key]
            self._graph.nodes[number].outputs[output].gradient = describe(sweep.cotangents[key])
