"""CRC32C, the checksum in TensorFlow's files, at the speed of memory: most of the work is a few XORs of long arrays.

A message is a polynomial over bits, its first bit the highest power, and its CRC the remainder of a division by a polynomial P.
What is added to it may be any multiple of P: with y = x^64, P divides y^290 + y^136 + y^113 + y^107 + y^32 + 1 (found by search
among sums of six powers). So a word of 64 bits is removed by adding it to five words that come 154 to 290 words later. The
square of a multiple is one too, with all exponents doubled: the same at longer distances, for many words in each XOR.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78  # with the lowest power in the highest bit, as all bits are ordered here
_DEGREE = 290
_LATER = tuple(_DEGREE - power for power in (136, 113, 107, 32, 0))  # where a word is added, counted from its own place
_BLOCK = 1 << 16  # words that fit the cache of a processor


def _divided(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_divided, range(256)))


def crc32c(data: Any) -> int:
    """The checksum of bytes, or of the bytes of an array."""
    data, crc = np.frombuffer(data, np.uint8), 0xFFFFFFFF
    whole = len(data) // 8
    if whole > _DEGREE:
        last = _remainder(data[: whole * 8].view("<u8"), crc)
        data, crc = np.concatenate([last.view(np.uint8), data[whole * 8 :]]), 0
    for byte in data.tobytes():
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _remainder(words: np.ndarray, first: int) -> np.ndarray:
    """At most 290 words with the CRC of all of them, if ``first`` is added to the first."""
    last = np.empty(0, "<u8")
    for start in range(0, len(words), _BLOCK):
        block = np.concatenate([last, words[start : start + _BLOCK]])
        block[0] ^= np.uint64(first if start == 0 else 0)
        last = _folded(block)
    return last


def _folded(words: np.ndarray) -> np.ndarray:
    """The same in the last words alone; the others are changed."""
    while len(words) > _DEGREE:
        scale = 1 << ((len(words) - 1) // _DEGREE).bit_length() - 1
        count = min(len(words) - scale * _DEGREE, scale * _LATER[0])  # words that are not added to one another
        for later in _LATER:
            part = words[scale * later : scale * later + count]
            np.bitwise_xor(part, words[:count], out=part)
        words = words[count:]
    return words


def mask(crc: int) -> int:
    """As TensorFlow stores it: rotated, plus a constant, so that the CRC of data with CRCs in it says something."""
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF
