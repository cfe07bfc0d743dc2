"""docs/coverage.md says what is true today."""

from __future__ import annotations

import csv
import importlib.util
from functools import reduce
from pathlib import Path

import pytest

import gradtape as tf
from gradtape.scope import OutOfScopeError, out_of_scope

ROOT = Path(__file__).resolve().parents[1]
SYMBOLS = [row["symbol"] for row in csv.DictReader((ROOT / "tests" / "goldens" / "api_usage.csv").read_text().splitlines())]


def test_the_page_is_true():
    pytest.importorskip("jax")
    spec = importlib.util.spec_from_file_location("coverage_tool", ROOT / "tools" / "coverage.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "coverage.md").read_text() == tool.page(), "run tools/coverage.py"


@pytest.mark.tiny
@pytest.mark.parametrize("symbol", [s for s in SYMBOLS if out_of_scope(s)])
def test_what_is_out_of_scope_says_why_and_what_to_use(symbol):
    with pytest.raises(OutOfScopeError, match=r"tf\.\S+ is out of scope: [\s\S]+Fix: "):
        reduce(getattr, symbol.split(".")[1:], tf)
