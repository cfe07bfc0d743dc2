"""Pictures of tapes: the layout, SVG and PNG, notebooks."""

from __future__ import annotations

import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape.inspect import draw
from gradtape.inspect.gradients import traversed
from gradtape.inspect.layout import GAP, layered

HOSTILE = "</svg><script>alert(1)</script>\"'&\u0000\n" + "x" * 10_000
LAYOUTS = ["layered", pytest.param("graphviz", marks=pytest.mark.skipif(not shutil.which("dot"), reason="no Graphviz"))]


def small_tape(name="w", **options):
    w = tf.Variable([1.0, 2.0], name=name)
    with tf.GradientTape(**options) as tape:
        y = tf.reduce_sum(tf.tanh(w) * w)
    return tape, y, w


@st.composite
def graphs(draw):
    """Sizes of boxes, and edges that lead to higher numbers."""
    count = draw(st.integers(1, 24))
    sizes = draw(st.lists(st.tuples(st.floats(20, 200), st.floats(20, 60)), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    return sizes, draw(st.lists(pairs, max_size=40, unique=True)) if count > 1 else []


@pytest.mark.tiny
@settings(max_examples=60, deadline=None)
@given(graphs())
def test_boxes_do_not_overlap_and_edges_lead_down(graph):
    sizes, edges = graph
    found = layered(sizes, edges)
    for (a, b), curve in zip(edges, found.curves):
        assert found.centres[a][1] < found.centres[b][1]
        assert curve[0] == pytest.approx((found.centres[a][0], found.centres[a][1] + sizes[a][1] / 2))
        assert curve[-1] == pytest.approx((found.centres[b][0], found.centres[b][1] - sizes[b][1] / 2))
        assert len(curve) % 3 == 1
    for i, (x, y) in enumerate(found.centres):
        assert x - sizes[i][0] / 2 >= -1e-6
        assert x + sizes[i][0] / 2 <= found.width + 1e-6
        assert y + sizes[i][1] / 2 <= found.height + 1e-6
        for k, (u, v) in enumerate(found.centres[:i]):
            if y == v:
                assert abs(x - u) >= (sizes[i][0] + sizes[k][0]) / 2 + GAP - 1e-6


@pytest.mark.tiny
def test_a_chain_is_straight_and_nothing_is_nothing():
    chain = layered([(100.0, 40.0)] * 5, [(i, i + 1) for i in range(4)])
    assert {x for x, _ in chain.centres} == {50.0}
    assert layered([], []).centres == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_svg_is_well_formed_and_shows_every_op(layout, tmp_path):
    tape, y, _ = small_tape()
    path = tmp_path / "graph.svg"
    tape.draw(path, y, layout=layout)
    root = ElementTree.parse(path).getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"w", "tanh", "multiply", "sum", "2 float32"} <= set(texts)
    assert sum(element.get("class") == "gt-edge" for element in root.iter()) == 4


def test_names_are_never_markup(tmp_path):
    tape, y, _ = small_tape(HOSTILE)
    tape.draw(tmp_path / "graph.svg", y)
    text = (tmp_path / "graph.svg").read_text()
    ElementTree.fromstring(text)
    assert "<script" not in text
    assert len(text) < 20_000


@pytest.mark.parametrize("layout", LAYOUTS)
def test_png(layout, tmp_path):
    tape, y, _ = small_tape("a $name$ of mathematics")
    tape.draw(tmp_path / "graph.png", y, layout=layout)
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


def test_norms_are_on_the_edges_after_a_persistent_gradient():
    tape, y, w = small_tape(persistent=True, trace=True)
    assert not any(tape.draw().labels)
    norm = np.linalg.norm(tape.gradient(y, w).numpy())
    assert tape.draw().labels.count(f"{norm:.3g}") == 2
    assert "gt-norm" in tape.draw().svg


def test_a_gradient_that_is_not_finite_is_marked():
    w = tf.Variable([0.0, 1.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sqrt(w))
    picture = tape.draw(None, y)
    assert "not finite" in picture.labels
    assert picture.boxes[0].style == "bad"


def test_a_notebook_shows_a_tape():
    tape, y, w = small_tape()
    assert "<svg" in tape._repr_html_()
    assert tape.draw()._repr_svg_() == tape.draw().svg
    tape.gradient(y, w)
    assert tape._repr_html_() is None  # its text is shown then


def test_an_enormous_tape_is_not_drawn(monkeypatch):
    w = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = w
        for _ in range(500):
            y = y * 1.01
    with pytest.raises(ValueError, match=r"too large for a picture.*\n.*501 ops"):
        tape.draw()
    assert "tape.page" in tape._repr_html_()
    assert len(tape.draw(max_nodes=1000, layout="layered").boxes) == 501


@pytest.mark.tiny
def test_bad_input(tmp_path, monkeypatch):
    tape, _, _ = small_tape()
    with pytest.raises(ValueError, match=r"ends in \.svg or \.png"):
        tape.draw(tmp_path / "graph.bmp")
    with pytest.raises(ValueError, match="Unknown layout"):
        tape.draw(layout="spring")
    monkeypatch.setattr(draw.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="Graphviz is not installed"):
        tape.draw(layout="graphviz")
    assert tape.draw().boxes  # our layout takes over


def test_a_tape_inside_a_compiled_function_shows_shapes():
    pytest.importorskip("jax")
    seen = []
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        with tf.GradientTape(trace=True) as tape:
            loss = tf.reduce_sum(tf.tanh(w * x))
        seen.append((tape, traversed(tape, loss)))
        return tape.gradient(loss, w)

    step(tf.ones(2))
    tape, inside = seen[0]
    assert [node.name for node in inside.ops] == ["multiply", "tanh", "sum"]
    assert all(output.value is None for node in inside.ops for output in node.outputs)
    assert [node.name for node in traversed(tape).ops] == ["multiply", "tanh", "sum"]  # after the compilation, too
