"""``python -m gradtape view``: scripts that work, fail, leave, say nothing and never end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from page_data import data_of

from gradtape.core.tape import GradientTape
from gradtape.inspect import view

TRAIN = """
import sys
import gradtape as tf

w = tf.Variable([1.0, 2.0], name="w")

def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(w) ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))

for _ in range(5):
    step()
"""


@pytest.fixture
def script(tmp_path):
    def write(tail="", head=TRAIN):
        (tmp_path / "train.py").write_text(head + tail)
        return str(tmp_path / "train.py")

    return write


def run(tmp_path, *arguments):
    """Run in this process, to a page in the temporary folder."""
    return view.main(["view", "--no-open", "--output", str(tmp_path / "out.html"), *arguments])


def names(tmp_path):
    return [tape["name"] for tape in data_of((tmp_path / "out.html").read_text())["tapes"]]


def test_a_script_gives_a_page_on_its_first_and_last_tape(script, tmp_path, capsys):
    original = GradientTape.__init__
    assert run(tmp_path, script("print(sys.argv[1:], __name__)"), "a", "--rate", "0.1", "--", "--output") == 0
    assert names(tmp_path) == ["train.py:8, first of 5", "train.py:8, last of 5"]
    data = data_of((tmp_path / "out.html").read_text())
    assert data["rest"] == [{"name": "train.py:8", "text": "3 more"}]
    assert data["tapes"][0]["nodes"][0][3][0][3] is not None  # the gradient of w, though the tape is used up
    captured = capsys.readouterr()
    assert captured.out == "['a', '--rate', '0.1', '--output'] __main__\n"
    assert "train.py: 2 tapes in" in captured.err
    assert GradientTape.__init__ is original


def test_a_script_that_fails_gives_its_traceback_and_a_page(script, tmp_path, capsys):
    assert run(tmp_path, script("raise ValueError('oops')")) == 1
    error = capsys.readouterr().err
    assert "ValueError: oops" in error
    assert "runpy" not in error
    assert "the script failed" in error
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize(
    ("tail", "code"), [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('no')", 1), ("raise KeyboardInterrupt", 130)]
)
def test_exit_codes(script, tmp_path, capsys, tail, code):
    assert run(tmp_path, script(tail)) == code
    assert len(names(tmp_path)) == 2


def test_a_script_without_tapes_and_one_that_does_not_parse(script, tmp_path, capsys):
    assert run(tmp_path, script("x = 1", head="")) == 3
    assert "no tape recorded anything" in capsys.readouterr().err
    assert run(tmp_path, script("def", head="")) == 1
    assert "SyntaxError" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


def test_more_tapes_than_are_shown(script, tmp_path, capsys):
    many = "\n".join(f"with tf.GradientTape() as tape_{i}:\n    w * {i}.0" for i in range(4))
    assert run(tmp_path, script(many), "--tapes", "3") == 0
    assert len(names(tmp_path)) == 3
    assert [row["text"] for row in data_of((tmp_path / "out.html").read_text())["rest"]] == ["3 more"] + 3 * ["1, none shown"]


def test_tapes_of_threads_and_compiled_functions(script, tmp_path, capsys):
    pytest.importorskip("jax")
    tail = """
import threading
threading.Thread(target=step).start()

@tf.function
def compiled():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    return tape.gradient(loss, w)

compiled()
"""
    assert run(tmp_path, script(tail)) == 0
    assert names(tmp_path) == ["train.py:8, first of 6", "train.py:8, last of 6", "train.py:20"]


def test_an_enormous_tape_is_listed_only(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(view.page, "MANY", 3)
    assert run(tmp_path, script("with tf.GradientTape() as small:\n    w * 2.0")) == 0
    assert names(tmp_path) == ["train.py:14"]
    assert data_of((tmp_path / "out.html").read_text())["rest"] == [{"name": "train.py:8", "text": "5, none shown"}]


@pytest.mark.parametrize("display", [True, False])
def test_the_page_is_opened_where_there_is_a_screen(script, tmp_path, monkeypatch, display):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":1" if display else "")
    assert view.main(["view", script(), "--output", str(tmp_path / "out.html")]) == 0
    assert opened == [(tmp_path / "out.html").as_uri()] * display


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["missing.py"], "there is no script 'missing.py'"),
        (["train.py", "--output", "page.txt"], "must end in .html"),
        (["train.py", "--output", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["train.py", "--timeout", "0"], "above zero"),
        (["train.py", "--tapes", "0"], "at least 1"),
    ],
)
def test_wrong_use(script, tmp_path, monkeypatch, capsys, arguments, text):
    script()
    monkeypatch.chdir(tmp_path)
    assert view.main(["view", *arguments]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["view"], ["view", "--timeout", "soon", "x.py"], ["look", "x.py"]])
def test_what_the_parser_refuses(capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        view.main(arguments)
    assert "usage" in capsys.readouterr().err


ENDLESS = {
    "a loop": "while True: step()",
    "a loop that a thread runs too": (
        "import threading\nthreading.Thread(target=lambda: [step() for _ in iter(int, 1)]).start()\nwhile True: pass"
    ),
    "one that cannot be interrupted": "while True:\n    try:\n        step()\n    except BaseException:\n        pass",
}


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k != "a loop")) for k in ENDLESS])
def test_a_script_that_never_ends_is_stopped(script, tmp_path, kind):
    command = [sys.executable, "-m", "gradtape", "view", script(ENDLESS[kind]), "--timeout", "1", "--output", "out.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 124
    assert "did not end within 1 s (--timeout)" in done.stderr
    assert names(tmp_path)
    assert Path(tmp_path / "out.html").stat().st_size > 10_000
