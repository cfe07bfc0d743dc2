"""Calls of TensorFlow's functions, one expression per line of goldens/functions/*.txt, and what came of each as plain data.

The same code runs on TensorFlow (tools/record_function_goldens.py) and on gradtape (tests/test_function_goldens.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "goldens" / "functions"
FAMILIES = sorted(path.stem for path in FOLDER.glob("*.txt") if not path.stem.endswith(".differs"))


def calls(family: str) -> list[str]:
    """The expressions of a family; blank lines and comments are for the reader."""
    lines = (FOLDER / f"{family}.txt").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def outcome(tf: Any, call: str) -> dict:
    """``{"value": …}`` or ``{"error": class name, "text": message}``."""

    def gradient(function: Any, *values: Any) -> Any:
        sources = [tf.constant(value) for value in values]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            target = function(*sources)
        return tape.gradient(target, sources)

    def floats(*shape: int, seed: int = 0, dtype: Any = "float32") -> Any:
        """The same numbers, between -1 and 1, everywhere."""
        return tf.constant(np.random.RandomState(seed).uniform(-1, 1, shape).astype(dtype))

    def nth(iterable: Any, count: int = 1000) -> list:
        """The first elements of something that can be iterated."""
        return [element for _, element in zip(range(count), iterable)]

    x, v, i = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([3.0, 1.0, 2.0]), tf.constant([1, 2, 3])
    names = {"tf": tf, "np": np, "gradient": gradient, "floats": floats, "nth": nth, "x": x, "v": v, "i": i}
    try:
        return {"value": plain(eval(call, names))}
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error)}


def plain(value: Any) -> Any:
    """A result as lists, numbers and strings."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "row_splits"):
        return {"flat_values": plain(value.flat_values), "splits": [plain(part) for part in value.nested_row_splits]}
    if hasattr(value, "values") and hasattr(value, "indices"):
        parts = {"values": plain(value.values), "indices": plain(value.indices)}
        return {**parts, "dense_shape": plain(value.dense_shape)} if type(value).__name__ == "SparseTensor" else parts
    if not hasattr(value, "numpy"):
        return str(value)
    array = np.asarray(value.numpy())
    if array.dtype.kind in "OSU":
        flat = [part.decode("latin-1") if isinstance(part, bytes) else str(part) for part in array.ravel()]
    elif array.dtype.kind == "c":
        flat = [[float(part.real), float(part.imag)] for part in array.ravel()]
    elif array.dtype.kind in "iub":
        flat = [int(part) for part in array.ravel()]
    else:
        flat = [float(part) for part in array.ravel()]
    return {"dtype": value.dtype.name, "shape": list(array.shape), "flat": flat}


def close(ours: object, theirs: object) -> bool:
    """Equal up to rounding, nan equal to nan."""
    if isinstance(theirs, dict) and "flat" in theirs:
        if not isinstance(ours, dict) or (ours.get("dtype"), ours.get("shape")) != (theirs["dtype"], theirs["shape"]):
            return False
        if theirs["dtype"] == "string":
            return ours["flat"] == theirs["flat"]
        expected = np.asarray(theirs["flat"])
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(theirs["dtype"], 2e-6)
        # Absolute against the largest element: an element near zero in a sum of large ones keeps the sum's rounding.
        finite = np.abs(expected[np.isfinite(expected)]) if expected.size else expected
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        return np.allclose(ours["flat"], expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and all(close(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(close, ours, theirs))
    return ours == theirs
