"""One percent of Keras's own tests, the same every time, on our backend; ``make keras-suite`` runs them all."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "keras_suite.py"
PARTS = 2


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_sample_of_kerass_own_tests(part: int) -> None:
    command = [sys.executable, str(TOOL), "--sample", "0.01", "--part", f"{part}/{PARTS}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_outcomes_are_compared_with_those_on_jax() -> None:
    tool = runpy.run_path(str(TOOL))
    outcome, known = tool["Outcome"], {"a::test_known*": tool["re"].compile("a::test_known.*")}
    outcomes = [
        outcome("passed", "0.1", "a::test_passes"),
        outcome("failed", "0.1", "a::test_known_failure", "ValueError"),
        outcome("failed", "0.1", "a::test_new_failure", "ValueError"),
        outcome("skipped", "0.0", "a::test_of_sparse", "Backend does not support sparse tensors"),
        outcome("skipped", "0.0", "a::test_skipped", "for jax only"),
        outcome("absent", "0.0", "a::test_of_tensorflow", "tensorflow"),
        outcome("absent", "0.0", "a::test_of_torch", "torch"),
    ]
    compared = tool["Comparison"](outcomes, [each.test for each in outcomes] + ["a::test_that_vanished"], known)
    assert [each.test for each in compared.unexpected] == ["a::test_new_failure", "a::test_that_vanished"]
    assert compared.share == 1 / 6  # without those of sparse tensors and of TensorFlow
    assert compared.mended == []
    assert tool["Comparison"]([outcome("passed", "0.1", "a::test_known_1")], [], known).mended == ["a::test_known*"]


def test_every_known_failure_has_a_reason() -> None:
    lines = (ROOT / "tests" / "keras_suite" / "known_failures.txt").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#") and "  " not in line.strip()] == []
