"""The two hashes by which TensorFlow puts strings into buckets.

FarmHash's 64-bit fingerprint (Geoff Pike, 2014), and SipHash-2-4 (Aumasson and Bernstein, 2012), which has a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops.arguments import integer
from gradtape.ops.text import each

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
MASK = 2**64 - 1


def buckets(value: Any, count: int) -> Any:
    """The fingerprint of each string modulo ``count``, as int64."""
    return _bucketed(fingerprint, value, count, "StringToHashBucketFast")


def keyed_buckets(value: Any, count: int, key: Sequence[int]) -> Any:
    """The keyed hash of each string modulo ``count``, as int64."""
    label = "StringToHashBucketStrong"
    if len(key) != 2:
        text = f"Key must have 2 elements [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"key={list(key)}", expected="two integers"))
    low, high = (integer(part) & MASK for part in key)
    return _bucketed(lambda text: siphash(text, low, high), value, count, label)


def _bucketed(hashed: Callable[[bytes], int], value: Any, count: int, label: str) -> Any:
    if count < 1:
        summary = f"Value for attr 'num_buckets' of {count} must be at least minimum 1 [Op:{label}]"
        raise InvalidArgumentError(message(summary, received=f"num_buckets={count}", expected="1 or more"))
    return each(lambda text: hashed(text) % count, value, label, np.int64)


# SipHash: four words of state, stirred twice for each word of the text and four times at the end

_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def siphash(text: bytes, low: int, high: int) -> int:
    """The 64-bit hash of a string under a key of two 64-bit words.

    >>> hex(siphash(bytes(range(15)), 0x0706050403020100, 0x0F0E0D0C0B0A0908))
    '0xa129ca6149be45e5'
    """
    state = [word ^ part for word, part in zip(_START, (low, high, low, high))]
    whole = len(text) // 8 * 8
    words = [_fetch(text, start) for start in range(0, whole, 8)]
    words.append(int.from_bytes(text[whole:], "little") | (len(text) & 0xFF) << 56)
    for word in words:
        state[3] ^= word
        _stir(state, 2)
        state[0] ^= word
    state[2] ^= 0xFF
    _stir(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _stir(state: list[int], rounds: int) -> None:
    a, b, c, d = state
    for _ in range(rounds):
        a, c = a + b & MASK, c + d & MASK
        b, d = _left(b, 13) ^ a, _left(d, 16) ^ c
        a, c = _left(a, 32) + d & MASK, c + b & MASK
        b, d = _left(b, 17) ^ c, _left(d, 21) ^ a
        c = _left(c, 32)
    state[:] = a, b, c, d


def _left(value: int, shift: int) -> int:
    return _rotate(value, 64 - shift)


# FarmHash


def fingerprint(text: bytes) -> int:
    """The 64-bit fingerprint of a string."""
    size = len(text)
    if size <= 16:
        return _up_to_16(text)
    if size <= 32:
        return _up_to_32(text)
    return _up_to_64(text) if size <= 64 else _long(text)


def _fetch(text: bytes, position: int, size: int = 8) -> int:
    start = position if position >= 0 else len(text) + position
    return int.from_bytes(text[start : start + size], "little")


def _rotate(value: int, shift: int) -> int:
    value &= MASK
    return (value >> shift | value << (64 - shift)) & MASK


def _mix(value: int) -> int:
    value &= MASK
    return value ^ value >> 47


def _hash_16(u: int, v: int, multiplier: int) -> int:
    u, v = u & MASK, v & MASK
    a = _mix((u ^ v) * multiplier)
    b = _mix((v ^ a) * multiplier)
    return b * multiplier & MASK


def _up_to_16(text: bytes) -> int:
    size = len(text)
    multiplier = _K2 + size * 2
    if size >= 8:
        a, b = _fetch(text, 0) + _K2, _fetch(text, -8)
        c, d = _rotate(b, 37) * multiplier + a, (_rotate(a, 25) + b) * multiplier
        return _hash_16(c, d, multiplier)
    if size >= 4:
        return _hash_16(size + (_fetch(text, 0, 4) << 3), _fetch(text, -4, 4), multiplier)
    if size > 0:
        a, b, c = text[0], text[size >> 1], text[size - 1]
        return _mix((a + (b << 8)) * _K2 ^ (size + (c << 2)) * _K0) * _K2 & MASK
    return _K2


def _up_to_32(text: bytes) -> int:
    multiplier = _K2 + len(text) * 2
    a, b = _fetch(text, 0) * _K1, _fetch(text, 8)
    c, d = _fetch(text, -8) * multiplier, _fetch(text, -16) * _K2
    return _hash_16(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, multiplier)


def _up_to_64(text: bytes) -> int:
    multiplier = _K2 + len(text) * 2
    a, b = _fetch(text, 0) * _K2, _fetch(text, 8)
    c, d = _fetch(text, -8) * multiplier, _fetch(text, -16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _hash_16(y, a + _rotate(b + _K2, 18) + c, multiplier)
    e, f = _fetch(text, 16) * multiplier, _fetch(text, 24)
    g, h = (y + _fetch(text, -32)) * multiplier, (z + _fetch(text, -24)) * multiplier
    return _hash_16(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


def _weak_32(text: bytes, position: int, a: int, b: int) -> tuple[int, int]:
    """A weak hash of 32 bytes with two seeds."""
    w, x, y, z = (_fetch(text, position + offset) for offset in (0, 8, 16, 24))
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return (a + z) & MASK, (b + c) & MASK


def _long(text: bytes) -> int:
    size = len(text)
    x, y = 81, (81 * _K1 + 113) & MASK
    z = _mix(y * _K2 + 113) * _K2 & MASK
    v, w = (0, 0), (0, 0)
    x = (x * _K2 + _fetch(text, 0)) & MASK
    end = (size - 1) // 64 * 64
    for at in range(0, end, 64):
        x = _rotate(x + y + v[0] + _fetch(text, at + 8), 37) * _K1 & MASK
        y = _rotate(y + v[1] + _fetch(text, at + 48), 42) * _K1 & MASK
        x ^= w[1]
        y = (y + v[0] + _fetch(text, at + 40)) & MASK
        z = _rotate(z + w[0], 33) * _K1 & MASK
        v = _weak_32(text, at, v[1] * _K1, x + w[0])
        w = _weak_32(text, at + 32, z + w[1], y + _fetch(text, at + 16))
        z, x = x, z
    at = size - 64
    multiplier = _K1 + ((z & 0xFF) << 1)
    w = (w[0] + ((size - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _rotate(x + y + v[0] + _fetch(text, at + 8), 37) * multiplier & MASK
    y = _rotate(y + v[1] + _fetch(text, at + 48), 42) * multiplier & MASK
    x ^= w[1] * 9 & MASK
    y = (y + v[0] * 9 + _fetch(text, at + 40)) & MASK
    z = _rotate(z + w[0], 33) * multiplier & MASK
    v = _weak_32(text, at, v[1] * multiplier, x + w[0])
    w = _weak_32(text, at + 32, z + w[1], y + _fetch(text, at + 16))
    z, x = x, z
    return _hash_16(
        _hash_16(v[0], w[0], multiplier) + _mix(y) * _K0 + z, _hash_16(v[1], w[1], multiplier) + x, multiplier
    )
