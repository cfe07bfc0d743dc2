"""`tape.page`: a self-contained HTML page that shows tapes; what happens in it is in the ``page*.js`` files beside this one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import asdict
from html import escape
from importlib import resources
from typing import Any

from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.inspect.findings import findings
from gradtape.inspect.gradients import replay, traversed
from gradtape.inspect.graph import Graph, Node, records_of
from gradtape.inspect.statistics import Statistics

_SCRIPTS = ("page_layout.js", "page_model.js", "page_view.js", "page_panels.js", "page.js")
_CODE = 160  # characters of a source line


MANY = 100_000
"""Ops: a browser shows more of them with difficulty."""


def page(tape: GradientTape, path: Any, target: Any = None, sources: Any = None, *, max_ops: int = MANY) -> None:
    """Write a self-contained HTML page on the tape: its graph, what each op read and made, and what stands out.

    Gradients are those of ``target`` by the ``sources`` (default: all that is watched), or, if the tape traces, of what
    `gradient` was last asked for. A tape with ``trace=True`` has more to tell, above all lines of code; with ``trace="values"``
    it has all values.
    """
    count = len(records_of(tape))
    if count > max_ops:
        raise ValueError(
            message(
                "The tape is too large for a page.",
                received=f"{count} ops",
                expected=f"at most max_ops={max_ops}",
                fix="tape.memory(), tape.profile() and tape.summary(40) sum it up; tape.page(path, max_ops=…) insists",
            )
        )
    graph = traversed(tape, target, sources)
    replay(tape, graph)
    write([graph], path)


def write(graphs: list[Graph], path: Any, *, subtitle: str = "", rest: Any = ()) -> None:
    """Write a page on these graphs; ``rest`` are rows (name, text) on tapes that are not shown."""
    path = os.fspath(path)
    if not path.lower().endswith((".html", ".htm")):
        raise ValueError(message("A page is an HTML file.", received=repr(path[-60:]), expected="a name that ends in .html"))
    text = html(graphs, subtitle, rest)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def html(graphs: list[Graph], subtitle: str = "", rest: Any = ()) -> str:
    """The page as text. Its policy allows no other script than its own, and no request at all."""
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, _SCRIPTS)) + "\n})();"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    others = [{"name": name, "text": text} for name, text in rest]
    data = {"tapes": [_tape(graph) for graph in graphs], "subtitle": subtitle, "rest": others}
    parts = {
        "title": escape(f"{graphs[0].name} · gradtape" if graphs else "gradtape"),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "style": _asset("page.css"),
        "data": _embedded(data),
        "script": script,
    }
    pieces = _asset("page.html").split("{{")
    return pieces[0] + "".join(parts[name] + tail for name, _, tail in (piece.partition("}}") for piece in pieces[1:]))


def _asset(name: str) -> str:
    return resources.files("gradtape.inspect").joinpath(name).read_text("utf-8")


def _embedded(data: Any) -> str:
    """JSON that no HTML parser takes for markup, whatever is in the strings."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode()  # lone surrogates


def _tape(graph: Graph) -> dict[str, Any]:
    paths, functions, modules = _Numbers(), _Numbers(), _Numbers()
    lines: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        place = node.place
        where = [-1, -1, -1, modules[node.module] if node.module else -1]
        if place is not None:
            where[:3] = paths[place.file], place.line, functions[place.function]
            if f"{where[0]}:{place.line}" not in lines:
                lines[f"{where[0]}:{place.line}"] = place.text[:_CODE]
        nodes.append([*_node(node), *where])
    found = findings(graph)
    return {
        "name": graph.name,
        "nodes": nodes,
        "targets": graph.targets,
        "sources": graph.sources,
        "paths": [_shown_path(path) for path in paths],
        "files": [os.path.basename(path) for path in paths],
        "functions": list(functions),
        "modules": list(modules),
        "lines": lines,
        "findings": [asdict(finding) for finding in found],
        "broken": [{"source": f.path[0], "target": f.path[1], "text": f.text} for f in found if f.path is not None],
    }


class _Numbers(dict):
    """Numbers texts in the order in which they are first met."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def _shown_path(path: str) -> str:
    """Short, if the file is below the current folder."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def _node(node: Node) -> list[Any]:
    outputs = [
        [o.shape, o.dtype, _statistics(o.value), _statistics(o.gradient), None if o.dead is None else _rounded(o.dead)]
        for o in node.outputs
    ]
    return [
        node.kind, node.name, [[edge.source, edge.output] for edge in node.inputs], outputs, node.attributes, node.bytes,
        _rounded(node.forward_seconds), _rounded(node.backward_seconds),
    ]  # fmt: skip


def _statistics(s: Statistics | None) -> list[Any] | None:
    if s is None:
        return None
    numbers = [_rounded(x) for x in (s.low, s.high, s.mean, s.deviation, s.norm, s.zeros)]
    return [s.size, *numbers, s.nans, s.infinities, s.counts]


def _rounded(x: float | None) -> float | None:
    """Five digits are enough to look at, and half the size of the page."""
    if x is None or abs(x) > 1e308:  # rounding up from here would leave the range of numbers
        return x
    return float(f"{x:.5g}")
