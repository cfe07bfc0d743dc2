"""Every numbered fact has a test, or a line that says how we differ, or a line that says when it will come."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.tiny

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FACTS = (HERE / "facts.txt").read_text().split()


def cited(paths) -> set[str]:
    """Every fact number in the files; a whole section as ``A13`` stands for the facts in it."""
    found: set[str] = set()
    for path in paths:
        found |= set(re.findall(r"(?<![\w.])(?:0|[ACDE]\d+)\.\d+(?!\d)|(?<![\w.])[A-E]\d+(?![\w.]*\d)", path.read_text()))
    return found


def test_every_fact_is_cited():
    tests = [p for p in HERE.glob("*.py") if p.name != Path(__file__).name]
    tests += (HERE.parent / "derivatives").glob("*.py")
    known = cited([*tests, ROOT / "docs" / "differences.md", ROOT / "docs" / "pending.md"])
    assert [fact for fact in FACTS if fact not in known] == []


def test_what_is_pending_exists():
    """A citation of a fact that is not in the list is a slip."""
    known = cited([ROOT / "docs" / "differences.md", ROOT / "docs" / "pending.md"])
    sections = {fact.split(".")[0] for fact in FACTS}
    assert known - set(FACTS) - sections == set()


def test_the_list_has_no_duplicates():
    assert len(FACTS) == len(set(FACTS))
