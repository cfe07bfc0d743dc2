"""The form of a golden case, and how an outcome is written down so that two libraries can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One numbered fact as a function of ``tf``; ``says`` is the wording that both libraries must use in their error."""

    fact: str
    run: Callable
    says: str = ""
    differs: str = ""  # why gradtape's outcome is another one: then only TensorFlow's is recorded

    @property
    def name(self) -> str:
        return f"{self.fact} {self.run.__name__}"


CASES: dict[str, Case] = {}


def case(fact: str, says: str = "", differs: str = "") -> Callable:
    """Decorator: register a function of ``tf`` as a case of a fact."""

    def register(function: Callable) -> Callable:
        made = Case(fact, function, says, differs)
        if made.name in CASES:
            raise ValueError(f"Two cases are called {made.name!r}.")
        CASES[made.name] = made
        return function

    return register


def outcome(run: Callable, tf: Any) -> dict:
    """What a case gives: its value in plain data, or its error."""
    try:
        return {"value": plain(run(tf), tf)}
    except Exception as error:
        return {
            "error": [k.__name__ for k in type(error).__mro__ if k.__name__ not in ("object", "BaseException")],
            "text": str(error),
        }


def plain(value: Any, tf: Any) -> Any:
    """A result as JSON data that keeps kinds, dtypes, shapes and container types apart."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return {"kind": type(value).__name__, "value": value}
    if isinstance(value, tf.IndexedSlices):
        parts = (value.values, value.indices, value.dense_shape)
        return {"kind": "IndexedSlices", "parts": [plain(p, tf) for p in parts]}
    if isinstance(value, tf.Tensor):
        return _array("Tensor", np.array(value.numpy()), value.dtype.name)
    if isinstance(value, tf.Variable):
        return _array("Variable", np.array(value.numpy()), value.dtype.name)
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(type(value).__name__, np.array(value), value.dtype.name)
    if isinstance(value, Mapping):
        return {"kind": type(value).__name__, "items": [[str(k), plain(v, tf)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"kind": type(value).__name__, "parts": [plain(v, tf) for v in value]}
    if isinstance(value, (complex, bytes)):
        return {"kind": type(value).__name__, "text": repr(value)}
    return {"kind": "other", "text": str(value)}


def _array(kind: str, array: np.ndarray, dtype: str) -> dict:
    if array.dtype.kind == "c":
        values = [[float(z.real), float(z.imag)] for z in array.ravel()]
    elif array.dtype.kind in "SOU":
        values = [s.decode() if isinstance(s, bytes) else str(s) for s in array.ravel().tolist()]
    elif array.dtype.kind in "biu":
        values = array.ravel().tolist()
    else:
        values = [float(x) for x in array.ravel()]
    return {"kind": kind, "dtype": dtype, "shape": list(array.shape), "values": values}


def difference(expected: Any, received: Any, tolerance: float, at: str = "") -> str:
    """Where two plain outcomes differ, or the empty text."""
    if isinstance(expected, dict) and isinstance(received, dict):
        if expected.keys() != received.keys():
            return f"{at}: expected {expected}, received {received}"
        for key in expected:
            found = difference(expected[key], received[key], tolerance, f"{at}.{key}")
            if found:
                return found
        return ""
    if isinstance(expected, list) and isinstance(received, list):
        if len(expected) != len(received):
            return f"{at}: expected {expected}, received {received}"
        for i, (x, y) in enumerate(zip(expected, received)):
            found = difference(x, y, tolerance, f"{at}[{i}]")
            if found:
                return found
        return ""
    if isinstance(expected, float) and isinstance(received, (int, float)) and not isinstance(received, bool):
        same = np.isclose(received, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = type(expected) is type(received) and expected == received
    return "" if same else f"{at}: expected {expected!r}, received {received!r}"


# What many cases start with


USED = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"


def square_of(tf, value=3.0, **options):
    x = tf.constant(value)
    with tf.GradientTape(**options) as tape:
        tape.watch(x)
        y = x * x
    return tape, x, y


def vector_tape(tf, persistent=False):
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = x * x
    return tape, x, y


def slices(tf, values, indices, shape=None):
    """TensorFlow's own constructor does not convert its arguments."""
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), None if shape is None else tf.constant(shape))


def failing(*functions):
    """The error classes of several calls, in order; 'none' for one that did not fail."""
    found = []
    for f in functions:
        try:
            f()
            found.append("none")
        except Exception as error:
            found.append(type(error).__name__)
    return found
