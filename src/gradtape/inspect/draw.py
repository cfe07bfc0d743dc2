"""`tape.draw`: the tape as a picture, in SVG or PNG.

Graphviz places the nodes if its program ``dot`` is there, and `layout` otherwise; what is drawn is the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from html import escape
from typing import Any

from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.inspect.gradients import traversed
from gradtape.inspect.graph import CONSTANT, OP, VARIABLE, WATCHED, Graph, Node, Output, records_of
from gradtape.inspect.layout import Layout, layered

MANY = 400  # nodes: more than this is no picture any more
_MARGIN, _CHARACTERS = 24.0, 30
_DOT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Box:
    """A node as it is drawn: its lines of text, of which the first is the title, and the style."""

    lines: tuple[str, ...]
    style: str
    tip: str

    @property
    def size(self) -> tuple[float, float]:
        title, *rest = self.lines
        width = max([7.6 * len(title), *(6.3 * len(line) for line in rest)])
        return max(width + 26.0, 64.0), 17.0 * len(self.lines) + 13.0


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn tape: notebooks show it, `save` writes it."""

    boxes: list[Box]
    labels: list[str]  # on the edges
    layout: Layout

    @property
    def svg(self) -> str:
        return _svg(self)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Any) -> None:
        """Write the picture; the ending says whether as SVG or as PNG."""
        path = os.fspath(path)
        if path.lower().endswith(".svg"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.svg)
        elif path.lower().endswith(".png"):
            _save_png(self, path)
        else:
            raise ValueError(
                message(
                    "The name of a picture says what it is.",
                    received=repr(path[-60:]),
                    expected="a name that ends in .svg or .png",
                )
            )


def draw(
    tape: GradientTape, path: Any = None, target: Any = None, sources: Any = None, *,
    layout: str = "auto", max_nodes: int = MANY,
) -> Picture:  # fmt: skip
    """Draw the tape as a graph, and save it if a path is given (``.svg`` or ``.png``); a notebook shows the result.

    The numbers on the edges are the norms of the gradients that flow back along them: those of ``target`` by the ``sources``
    (default: all that is watched), or, if the tape traces, of what `gradient` was last asked for.
    """
    _check_size(len(records_of(tape)), max_nodes)  # before anything is computed
    picture = picture_of(traversed(tape, target, sources), layout, max_nodes)
    if path is not None:
        picture.save(path)
    return picture


def notebook(tape: GradientTape) -> str | None:
    """The tape as HTML: its picture, or a word on why there is none. None, if it holds nothing: then its text is shown."""
    if tape.records is None and (tape.trace is None or not tape.trace.records):
        return None
    try:
        picture = draw(tape)
    except ValueError as error:
        return f"<pre>{escape(str(error))}</pre>"
    return f'<div style="overflow:auto;max-height:640px">{picture.svg}</div>'


def picture_of(graph: Graph, layout: str = "auto", max_nodes: int = MANY) -> Picture:
    """A graph as a picture: Graphviz's layout, ours (``'layered'``), or whichever is there (``'auto'``)."""
    if layout not in ("auto", "graphviz", "layered"):
        raise ValueError(message("Unknown layout.", received=repr(layout), expected="'auto', 'graphviz' or 'layered'"))
    _check_size(len(graph.nodes), max_nodes)
    boxes = [_box(node, graph) for node in graph.nodes]
    ends = {(a.number, b.number): value for a, b, value in graph.edges()}
    return Picture(boxes, [_label(value) for value in ends.values()], _placed([b.size for b in boxes], list(ends), layout))


def _check_size(count: int, most: int) -> None:
    if count > most:
        raise ValueError(
            message(
                "The tape is too large for a picture.",
                received=f"{count} ops and values",
                expected=f"at most max_nodes={most}",
                fix="tape.page('tape.html') shows larger tapes; tape.draw(path, max_nodes=…) draws this one all the same",
            )
        )


def _box(node: Node, graph: Graph) -> Box:
    lines = [_short(node.name), " ".join(_described(node.outputs[0])) + (" …" if len(node.outputs) > 1 else "")]
    if node.place is not None:
        lines.append(_short(f"{os.path.basename(node.place.file)}:{node.place.line}"))
    broken = any(s is not None and s.nonfinite for o in node.outputs for s in (o.value, o.gradient))
    style = "bad" if broken else "target" if node.number in graph.targets else node.kind
    tip = "\n".join(filter(None, [node.name, node.attributes, *(" ".join(_described(o)) for o in node.outputs)]))
    return Box(tuple(lines), style, tip)


def _described(output: Output) -> tuple[str, str]:
    return "×".join(map(str, output.shape)) or "scalar", output.dtype


def _short(text: str) -> str:
    text = " ".join(text.split()) or "?"
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def _label(value: Output) -> str:
    gradient = value.gradient
    if gradient is None:
        return ""
    return "not finite" if gradient.nonfinite else f"{gradient.norm:.3g}"


# Placing


def _placed(sizes: list[tuple[float, float]], edges: list[tuple[int, int]], layout: str) -> Layout:
    program = shutil.which("dot") if layout != "layered" else None
    if program is None and layout == "graphviz":
        raise FileNotFoundError(
            message(
                "Graphviz is not installed.",
                received="layout='graphviz', and no program `dot` on the path",
                fix="install Graphviz, or leave layout='auto'",
            )
        )
    if program is not None and sizes:
        try:
            return _graphviz(program, sizes, edges)
        except (OSError, subprocess.SubprocessError):
            if layout == "graphviz":
                raise
    return layered(sizes, edges)


def _graphviz(program: str, sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> Layout:
    """The layout by ``dot``, which speaks inches and puts the origin at the lower left corner."""
    nodes = [f"n{i} [width={w / 72:.4f} height={h / 72:.4f}]" for i, (w, h) in enumerate(sizes)]
    text = "\n".join([
        'digraph { graph [nodesep=0.36 ranksep=0.62] node [shape=box fixedsize=true label=""] edge [arrowhead=none]',
        *nodes, *(f"n{a} -> n{b}" for a, b in edges), "}",
    ])  # fmt: skip
    done = subprocess.run([program, "-Tplain"], input=text, capture_output=True, text=True, check=True, timeout=_DOT_SECONDS)
    lines = [line.split() for line in done.stdout.splitlines()]
    width, height = (72 * float(v) for v in lines[0][2:4])
    centres = [(0.0, 0.0)] * len(sizes)
    found: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for kind, *words in lines[1:]:
        if kind == "node":
            centres[int(words[0][1:])] = 72 * float(words[1]), height - 72 * float(words[2])
        elif kind == "edge":
            numbers = [72 * float(v) for v in words[3 : 3 + 2 * int(words[2])]]
            points = [(x, height - y) for x, y in zip(numbers[::2], numbers[1::2])]
            found[int(words[0][1:]), int(words[1][1:])] = points
    return Layout(width, height, centres, [found[edge] for edge in edges])


# Writing

_LIGHT: dict[str, Any] = {
    "paper": "#fcfcfd", "ink": "#1d2433", "faint": "#697386", "edge": "#a9b1c1", "gradient": "#b4540a",
    OP: ("#ffffff", "#cfd5e1"), VARIABLE: ("#e5f5f1", "#2f9e8a"), WATCHED: ("#e8effe", "#5a82ee"),
    CONSTANT: ("#f2f3f6", "#c6ccd8"), "target": ("#fff1e6", "#e07a3f"), "bad": ("#fdeaea", "#d64545"),
}  # fmt: skip
_DARK: dict[str, Any] = {
    "paper": "#14171d", "ink": "#e8ebf2", "faint": "#98a2b5", "edge": "#5a6478", "gradient": "#f0a26b",
    OP: ("#1f242d", "#3b4454"), VARIABLE: ("#12332e", "#3fb8a3"), WATCHED: ("#1a2747", "#6d92f5"),
    CONSTANT: ("#1a1e26", "#343c4a"), "target": ("#3a2617", "#ef8f57"), "bad": ("#401d1f", "#ea6a6a"),
}  # fmt: skip


def _style(colours: dict[str, Any]) -> str:
    rules = [
        f".gt-paper{{fill:{colours['paper']}}}.gt-title{{fill:{colours['ink']}}}.gt-line{{fill:{colours['faint']}}}"
        f".gt-edge{{stroke:{colours['edge']}}}.gt-tip{{fill:{colours['edge']}}}"
        f".gt-norm{{fill:{colours['gradient']};stroke:{colours['paper']}}}"
    ]
    for name, pair in colours.items():
        if type(pair) is tuple:
            rules.append(f".gt-{name}{{fill:{pair[0]};stroke:{pair[1]}}}")
    return "".join(rules)


_ARROW = (
    '<defs><marker id="gt-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="gt-tip" d="M0 1 9 5 0 9z"/></marker></defs>'
)
_DASHED = ".gt-constant{stroke-dasharray:4 3}"


def _svg(picture: Picture) -> str:
    layout = picture.layout
    width, height = round(layout.width + 2 * _MARGIN), round(layout.height + 2 * _MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="Inter, system-ui, Helvetica, Arial, sans-serif" text-anchor="middle">',
        f"<style>{_style(_LIGHT)}@media(prefers-color-scheme:dark){{{_style(_DARK)}}}{_DASHED}</style>{_ARROW}",
        f'<rect class="gt-paper" width="{width}" height="{height}" rx="10"/>',
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">',
    ]
    for (x, y), *rest in layout.curves:
        path = f"M{x:.1f} {y:.1f}C" + " ".join(f"{px:.1f} {py:.1f}" for px, py in rest)
        parts.append(f'<path class="gt-edge" d="{path}" fill="none" stroke-width="1.4" marker-end="url(#gt-arrow)"/>')
    parts += [_svg_box(box, x, y) for box, (x, y) in zip(picture.boxes, layout.centres)]
    halo = 'stroke-width="6" stroke-linejoin="round" paint-order="stroke"'
    for label, curve in zip(picture.labels, layout.curves):
        if label:
            x, y = _middle(curve)
            parts.append(f'<text class="gt-norm" x="{x:.1f}" y="{y + 4:.1f}" font-size="11" {halo}>{escape(label)}</text>')
    return "\n".join([*parts, "</g></svg>", ""])


def _svg_box(box: Box, x: float, y: float) -> str:
    width, height = box.size
    radius = height / 2 if box.style in (VARIABLE, WATCHED, CONSTANT) else 8
    top = y - height / 2
    texts = [
        f'<text class="gt-{"line" if i else "title"}" x="{x:.1f}" y="{top + 20 + 17 * i:.1f}" font-size="{11 if i else 13}"'
        f' font-weight="{400 if i else 600}">{escape(line)}</text>'
        for i, line in enumerate(box.lines)
    ]
    return (
        f'<g><title>{escape(box.tip)}</title><rect class="gt-{box.style}" x="{x - width / 2:.1f}" y="{top:.1f}"'
        f' width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}" stroke-width="1.4"/>{"".join(texts)}</g>'
    )


def _middle(curve: list[tuple[float, float]]) -> tuple[float, float]:
    """The point half way through the middle piece of a chain of cubic curves."""
    start = 3 * ((len(curve) - 1) // 3 // 2)
    piece = curve[start : start + 4] if start + 4 <= len(curve) else curve[-4:]
    x, y = (sum(w * p[k] for w, p in zip((1, 3, 3, 1), piece)) / 8 for k in (0, 1))
    return x, y


def _save_png(picture: Picture, path: str) -> None:
    """The same with matplotlib, which is asked for nothing but shapes."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
        from matplotlib.path import Path
    except ImportError:
        raise ImportError(
            message("PNG pictures need matplotlib.", received=repr(path[-60:]), fix="pip install matplotlib, or draw an .svg")
        ) from None
    layout = picture.layout
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    figure = Figure(figsize=(width / 72, height / 72), facecolor=_LIGHT["paper"])
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-_MARGIN, width - _MARGIN), ylim=(height - _MARGIN, -_MARGIN))
    axes.set_axis_off()
    for curve in layout.curves:
        curved = Path(curve, [Path.MOVETO, *[Path.CURVE4] * (len(curve) - 1)])
        axes.add_patch(FancyArrowPatch(path=curved, arrowstyle="-|>", mutation_scale=9, color=_LIGHT["edge"], lw=1.2))
    for box, (x, y) in zip(picture.boxes, layout.centres):
        (w, h), (fill, rim) = box.size, _LIGHT[box.style]
        radius = h / 2 if box.style in (VARIABLE, WATCHED, CONSTANT) else 8
        shape = f"round,pad=0,rounding_size={radius}"
        axes.add_patch(FancyBboxPatch((x - w / 2, y - h / 2), w, h, boxstyle=shape, facecolor=fill, edgecolor=rim, lw=1.2))
        for i, line in enumerate(box.lines):
            colour, size, weight = (_LIGHT["faint"], 9, "normal") if i else (_LIGHT["ink"], 10.5, "bold")
            axes.text(
                x, y - h / 2 + 16 + 17 * i, line, color=colour, fontsize=size, weight=weight, ha="center", va="center",
                parse_math=False,
            )  # fmt: skip
    for label, curve in zip(picture.labels, layout.curves):
        x, y = _middle(curve)
        ground = {"facecolor": _LIGHT["paper"], "edgecolor": "none", "pad": 1}
        axes.text(x, y, label, color=_LIGHT["gradient"], fontsize=9, ha="center", va="center", bbox=ground if label else None)
    FigureCanvasAgg(figure).print_png(path)
