"""The documentation runs: code blocks in order, one namespace per page; what is printed is what the page says.

A ``python`` block is executed. A ``text`` block right after it is its output. ``expression  # -> value`` is checked on the
spot: against what the statement prints, or else against ``str`` or ``repr`` of its value.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import doctest
import importlib
import io
import operator
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradtape
from gradtape import optimizers

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples" / "README.md"])
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ARROW = re.compile(r"#\s*->\s*(.*?)\s*$")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def squeezed(text: str) -> str:
    return " ".join(text.split())


def run_statement(node: ast.stmt, page: Path, namespace: dict[str, Any]) -> tuple[str, Any]:
    """What the statement printed, and its value if it is an expression."""
    value = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), str(page), "eval"), namespace)
        else:
            exec(compile(ast.Module([node], []), str(page), "exec"), namespace)
    return printed.getvalue(), value


def run_block(code: str, line: int, page: Path, namespace: dict[str, Any]) -> str:
    """Run a code block that starts on ``line`` of the page; returns all that it printed."""
    lines = code.splitlines()
    output = ""
    for node in ast.parse(code).body:
        last = node.end_lineno
        ast.increment_lineno(node, line - 1)
        printed, value = run_statement(node, page, namespace)
        output += printed
        arrow = ARROW.search(lines[last - 1])
        if arrow:
            received = [squeezed(printed)] if printed else [squeezed(str(value)), squeezed(repr(value))]
            assert squeezed(arrow[1]) in received, f"{name_of(page)}:{line + last - 1} says {arrow[1]!r}, received {received}"
    return output


def blocks(text: str) -> list[tuple[str, str, int]]:
    """(language, content, line of its first line) of every fenced block."""
    return [(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    output: str | None = None
    for language, content, line in blocks(page.read_text()):
        if language == "python":
            output = run_block(content, line, page, namespace)
        elif language == "text" and output is not None:
            assert squeezed(content) == squeezed(output), f"{name_of(page)}:{line}\n{output}"
            output = None
        else:
            output = None


@pytest.mark.tiny
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text())
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose) + re.findall(r'src="([^"]+)"', prose)
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.tiny
@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "guide.md", ROOT / "docs" / "api.md"], ids=name_of)
def test_names_exist(page: Path) -> None:
    """Every `tf.name` that a page speaks of is there."""
    code = " ".join(re.findall(r"`([^`\n]+)`", BLOCK.sub("", page.read_text())))
    missing = []
    for name in sorted(set(re.findall(r"\b(?:tf|gradtape)(?:\.\w+)+", code))):
        try:
            operator.attrgetter(name.partition(".")[2])(gradtape)
        except AttributeError:
            missing.append(name)
    assert not missing


@pytest.mark.tiny
def test_the_readme_promises_as_many_names_as_there_are() -> None:
    promised = re.search(r"all (\d+) `tf\.\*` names in scope", (ROOT / "README.md").read_text())
    scope, present = re.search(r"Of the (\d+) in scope (\d+) are present", (ROOT / "docs" / "coverage.md").read_text()).groups()
    assert promised[1] == scope == present


# Doctests


def modules() -> list[str]:
    return ["gradtape", *(m.name for m in pkgutil.walk_packages(gradtape.__path__, "gradtape."))]


def run_doctest(test: doctest.DocTest) -> None:
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.write)
    assert not runner.failures, report.getvalue()


def globals_for(module: ModuleType) -> dict[str, Any]:
    """What an example may name: the module's own names, and public names without their prefix (`Variable`, `SGD`)."""
    public = {**vars(gradtape), **vars(optimizers)}
    plain = {name: value for name, value in public.items() if not hasattr(builtins, name)}
    return {**plain, "tf": gradtape, "np": np, **vars(module)}


@pytest.mark.tiny
@pytest.mark.parametrize("name", modules())
def test_doctests(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"needs an optional package: {error}")
    for test in doctest.DocTestFinder().find(module, extraglobs=globals_for(module)):
        run_doctest(test)


@pytest.mark.tiny
def test_doctests_of_ops() -> None:
    """Ops are made by factories, so that the finder does not see them in their modules."""
    from gradtape.core.op import OPS

    for name, op in OPS.items():
        test = doctest.DocTestParser().get_doctest(op.__doc__ or "", globals_for(gradtape), name, None, None)
        if test.examples:
            run_doctest(test)


# The tests above can fail


@pytest.mark.tiny
def test_wrong_value_is_noticed(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    assert run_block("print(1 + 1)  # -> 2", 1, page, {}) == "2\n"
    run_block("1 + 1  # -> 2", 1, page, {})
    with pytest.raises(AssertionError, match=r"README.md:8 says '3', received \['2', '2'\]"):
        run_block("x = 1\n1 + x  # -> 3", 7, page, {})
