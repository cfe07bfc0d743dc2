"""One percent of Keras's own tests, the same every time, on our backend; ``make keras-suite`` runs them all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = 4


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_sample_of_kerass_own_tests(part: int) -> None:
    pytest.importorskip("keras")
    command = [sys.executable, str(ROOT / "tools" / "keras_suite.py"), "--sample", "0.01", "--part", f"{part}/{PARTS}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
