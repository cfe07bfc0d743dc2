"""`tf.bitwise`: the bits of integers."""

from __future__ import annotations

from typing import Any

from gradtape.ops import bits
from gradtape.scope import missing
from gradtape.values.tensor import Tensor

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]


def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Bits that both have."""
    return bits.combine("bitwise_and", x, y)


def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Bits that either has."""
    return bits.combine("bitwise_or", x, y)


def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Bits that one of both has."""
    return bits.combine("bitwise_xor", x, y)


def invert(x: Any, name: str | None = None) -> Tensor:
    """Every bit turned over."""
    return bits.invert(x)


def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x · 2ʸ in the bits that there are."""
    return bits.shift("left_shift", x, y)


def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """⌊x / 2ʸ⌋"""
    return bits.shift("right_shift", x, y)

__getattr__ = missing(__name__, __all__)
