"""`tf.dtypes`: the element types and conversions between them."""

from __future__ import annotations

from typing import Any

from gradtape.errors import message
from gradtape.ops import clip, elementwise
from gradtape.ops.elementwise import cast
from gradtape.scope import missing
from gradtape.values.convert import convert_to_tensor
from gradtape.values.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    double,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gradtape.values.dtypes import bool_ as bool
from gradtape.values.tensor import Tensor

__all__ = [
    "DType", "as_dtype", "bfloat16", "bool", "cast", "complex", "complex64", "complex128", "double", "float8_e4m3fn",
    "float8_e5m2", "float16", "float32", "float64", "half", "int8", "int16", "int32", "int64", "saturate_cast", "string",
    "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """real + i · imag"""
    x, y = convert_to_tensor(real), convert_to_tensor(imag)
    if x.dtype is not y.dtype or x.dtype not in (float32, float64):
        text = (
            f"The `real` and `imag` components have incorrect types: {x.dtype.name} {y.dtype.name}. "
            "They must be consistent, and one of [tf.float32, tf.float64]"
        )
        raise TypeError(message(text, fix="tf.cast(real, tf.float32), and imag alike"))
    return elementwise.complex(x, y)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """A conversion that gives the nearest value of the new type where the old one does not fit."""
    return clip.saturate_cast(value, dtype)

__getattr__ = missing(__name__, __all__)
