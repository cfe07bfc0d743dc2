"""Calls of TensorFlow's functions, one expression per line of goldens/functions.txt, and what came of each as plain data.

The same code runs on TensorFlow (tools/record_function_goldens.py) and on gradtape (tests/test_toplevel.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "goldens"
CALLS = FOLDER.joinpath("functions.txt").read_text().splitlines()


def outcome(tf: Any, call: str) -> dict:
    """``{"value": …}`` or ``{"error": class name, "text": message}``."""

    def gradient(function: Any, *values: Any) -> Any:
        sources = [tf.constant(value) for value in values]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            target = function(*sources)
        return tape.gradient(target, sources)

    x, v, i = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([3.0, 1.0, 2.0]), tf.constant([1, 2, 3])
    names = {"tf": tf, "np": np, "gradient": gradient, "x": x, "v": v, "i": i}
    try:
        return {"value": plain(eval(call, names))}
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error)}


def plain(value: Any) -> Any:
    """A result as lists, numbers and strings."""
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "values") and hasattr(value, "indices"):
        return {"values": plain(value.values), "indices": plain(value.indices)}
    if not hasattr(value, "numpy"):
        return str(value)
    array = np.asarray(value.numpy())
    if array.dtype.kind in "OSU":
        flat = [part.decode() if isinstance(part, bytes) else str(part) for part in array.ravel()]
    elif array.dtype.kind == "c":
        flat = [[float(part.real), float(part.imag)] for part in array.ravel()]
    elif array.dtype.kind in "iub":
        flat = [int(part) for part in array.ravel()]
    else:
        flat = [float(part) for part in array.ravel()]
    return {"dtype": value.dtype.name, "shape": list(array.shape), "flat": flat}
