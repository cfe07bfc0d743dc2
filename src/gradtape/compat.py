"""`tf.compat`: strings and bytes, dimensions, and abstract number types. ``compat.v1`` is out of scope."""

from __future__ import annotations

import numbers as _numbers
import os as _os
from typing import Any

import numpy as _np

from gradtape.errors import message, shown
from gradtape.scope import missing

__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types", "dimension_at_index",
    "dimension_value", "forward_compatible", "integral_types", "path_to_str", "real_types",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)

bytes_or_text_types = (bytes, str)
integral_types = (_numbers.Integral, _np.integer)
real_types = (_numbers.Real, _np.integer, _np.floating)
complex_types = (_numbers.Complex, _np.number)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text as bytes; bytes as they are."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    text = f"Expected binary or unicode string, got {bytes_or_text!r}"
    raise TypeError(message(text, received=shown(bytes_or_text), expected="str or bytes"))


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes as text; text as it is."""
    return bytes_or_text if isinstance(bytes_or_text, str) else as_bytes(bytes_or_text).decode(encoding)


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Anything as text, bytes decoded."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as text; anything else as it is."""
    return as_str_any(_os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_value(dimension: Any) -> int | None:
    """A length as an int, or None."""
    return getattr(dimension, "value", dimension)


def dimension_at_index(shape: Any, index: int) -> int | None:
    """One length of a shape, None if it is not known."""
    return None if shape.rank is None else shape[index]


def forward_compatible(year: int, month: int, day: int) -> bool:
    """True: there is one version of everything."""
    return True
