"""The numbered cases on gradtape against what TensorFlow did (tools/record_spec_goldens.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from spec import all_cases  # noqa: F401  # registers the cases
from spec.cases import CASES, difference, outcome

pytestmark = pytest.mark.tiny

GOLDENS = json.loads((Path(__file__).parent.parent / "goldens" / "spec.json").read_text())["cases"]
COMPARED = [name for name, case in CASES.items() if not case.differs]
TOLERANCE = 1e-6


def test_every_case_is_recorded():
    assert list(GOLDENS) == list(CASES)


@pytest.mark.parametrize("name", COMPARED)
def test_as_tensorflow(name):
    """Values to 1e-6, dtypes, shapes, None, container types, error classes and wordings."""
    case, expected = CASES[name], GOLDENS[name]
    with np.errstate(all="ignore"):
        received = outcome(case.run, tf)
    if "error" in expected:
        assert "error" in received, f"expected {expected}, received {received}"
        assert expected["error"][0] in received["error"], f"expected {expected}, received {received}"
        assert case.says in received["text"]
    else:
        assert "value" in received, received
        assert not difference(expected["value"], received["value"], TOLERANCE)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.differs])
def test_differences_are_real(name):
    """Where we say that we differ, we do; what we do instead is tested in the file of its part."""
    with np.errstate(all="ignore"):
        received = outcome(CASES[name].run, tf)
    expected = GOLDENS[name]
    assert expected.keys() != received.keys() or difference(expected, received, TOLERANCE)
