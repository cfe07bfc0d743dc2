"""Which module (a layer, say) each op of a traced tape belongs to.

Nothing is noted for it while the tape records: ops of one call of a function follow each other in the order of its code, and
the names of the variables that they read, ``dense_1/kernel``, begin with the module's. So the ops are cut into calls, and each
call belongs to the module that all its variables share.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from gradtape.core.trace import Trace
from gradtape.inspect.graph import OP, VARIABLE, Graph, Node


def assign_modules(graph: Graph, trace: Trace) -> None:
    """Fill in the module of every op for which it can be told."""
    module, last = "", None
    for code, nodes in _calls(graph, trace):
        sources = [graph.nodes[edge.source] for node in nodes for edge in node.inputs]
        scopes = [source.name.split("/")[:-1] for source in sources if source.kind == VARIABLE]
        if scopes:
            module = "/".join(parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*scopes)))
        elif code is not last:  # a call without variables says nothing, unless it goes on with a loop of the one before
            module = ""
        last = code
        for node in nodes:
            node.module = module


def _calls(graph: Graph, trace: Trace) -> Iterator[tuple[Any, list[Node]]]:
    """Runs of ops from one function, each as long as its code moves forward; a loop in it counts as calls, too."""
    sites = trace.sites()
    call: list[Node] = []
    last, position = None, -1
    keys = {number: key for key, (number, output) in reversed(graph.numbers_of.items())}  # of the first output
    for node in graph.nodes:
        if node.kind != OP or keys.get(node.number) not in sites:
            continue
        code, instruction = sites[keys[node.number]]
        if call and (code is not last or instruction < position):
            yield last, call
            call = []
        call.append(node)
        last, position = code, instruction
    if call:
        yield last, call
