"""The page as a file: what is in it, and that nothing in it is markup or a request. `test_browser` opens it."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from page_data import data_of

import gradtape as tf
from gradtape.inspect import page
from gradtape.inspect.gradients import traversed

pytestmark = pytest.mark.tiny

HOSTILE = "</script><script>alert(1)</script><!--\"'\\&\u2028\ud800" + "x" * 10_000


def recorded(name="w", trace=True):
    w = tf.Variable([1.0, 2.0], name=name)
    with tf.GradientTape(trace=trace) as tape:
        y = tf.reduce_sum(tf.tanh(w) * w)
    return tape, y, w


def test_the_page_holds_the_graph(tmp_path):
    tape, y, _ = recorded()
    tape.page(tmp_path / "tape.html", y)
    (shown,) = data_of((tmp_path / "tape.html").read_text())["tapes"]
    assert [node[1] for node in shown["nodes"]] == ["w", "tanh", "multiply", "sum"]
    assert shown["files"] == ["test_page.py"]
    assert "y = tf.reduce_sum(tf.tanh(w) * w)" in shown["lines"].values()
    assert shown["targets"] == [3]
    assert shown["sources"] == [0]
    assert shown["nodes"][1][6] > 0  # forward seconds


def test_gradient_was_asked_before(tmp_path):
    tape, y, w = recorded()
    tape.gradient(y, w)
    tape.page(tmp_path / "tape.html")
    (shown,) = data_of((tmp_path / "tape.html").read_text())["tapes"]
    assert shown["nodes"][0][3][0][3][5] == pytest.approx(1.617, abs=1e-2)  # the norm of w's gradient


@pytest.mark.parametrize("trace", [True, False])
def test_names_are_never_markup(trace):
    tape, y, _ = recorded(HOSTILE, trace)
    text = page.html([traversed(tape, y)])
    assert text.count("<script") == 2
    assert text.count("</script") == 2
    assert "<!--" not in text
    shown = data_of(text)["tapes"][0]["nodes"][0][1]
    assert shown.startswith("</script><script>alert(1)")
    assert len(shown) == 200


def test_only_its_own_script_may_run_and_nothing_is_requested():
    tape, y, _ = recorded()
    text = page.html([traversed(tape, y)])
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text
    addresses = set(re.findall(r"\bhttps?://[^\s\"')]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"\b(src|href)=|@import|url\(|innerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_bad_input(tmp_path):
    tape, y, w = recorded(trace=False)
    with pytest.raises(ValueError, match=r"ends in \.html"):
        tape.page(tmp_path / "tape.txt", y)
    with pytest.raises(ValueError, match="not on this tape"):
        tape.page(tmp_path / "tape.html", tf.constant(1.0))
    with pytest.raises(ValueError, match=r"too large for a page.*\n.*4 ops"):
        tape.page(tmp_path / "tape.html", y, max_ops=3)
    with pytest.raises(FileNotFoundError):
        tape.page(tmp_path / "missing" / "tape.html", y)
    tape.gradient(y, w)
    with pytest.raises(RuntimeError, match="nothing left to show"):
        tape.page(tmp_path / "tape.html")
