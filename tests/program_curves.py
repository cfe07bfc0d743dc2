"""Whole programs, written as users of TensorFlow write them (programs/*.py), and the numbers that they print.

The same code runs on TensorFlow (tools/record_program_goldens.py) and on gradtape (tests/test_programs.py).
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "programs"
GOLDENS = Path(__file__).parent / "goldens" / "programs.json"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))


def curves(tf: Any, name: str) -> dict[str, Any]:
    """What ``program(tf)`` returns, as nested lists of numbers and words."""
    found = runpy.run_path(str(FOLDER / f"{name}.py"))["program"](tf)
    return {key: plain(value) for key, value in found.items()}


def plain(value: Any) -> Any:
    """Eight digits are enough for float32."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    return plain(array.tolist()) if array.ndim else float(f"{array:.8g}")


def flat(value: Any) -> list:
    """The leaves of nested lists, in order."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, list) else [value]


def shape(value: Any) -> Any:
    """How lists are nested."""
    return [shape(part) for part in value] if isinstance(value, list) else None
