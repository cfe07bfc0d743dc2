"""Philox 4x32-10, the counter-based bit generator of Salmon et al. (2011), and the standard distributions made of its bits.

A stream is a 64-bit key and a 128-bit counter; each value of the counter gives a block of four 32-bit words, all blocks at
once. Seeds become keys and counters, and bits become numbers, as they do in TensorFlow on a CPU: the same seed gives the same
numbers there and here (normal values up to the last digits of sine and logarithm).

In a compiled program the seed of a stateless stream may be a value that only the running program knows. Such a stream is a
`Traced`, in the place of the integer key; the same functions give the same numbers of it, as arrays of the program.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.xp import numpy as NUMPY

LIMIT = 2**31 - 1  # seeds of stateful functions are taken modulo this
RESERVED = 256  # blocks set aside per number, so that functions which draw again never meet the next call's numbers
_WORD = 2**64
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_WEYL = np.array([[0x9E3779B9], [0xBB67AE85]], np.uint32)
_SCRAMBLE = 0x02461E29_3EC8F720  # the key under which a stateless seed is encrypted into a stream
_CHUNK = 2**14  # blocks computed together: their words stay in the cache


def blocks(key: int, counter: int, offsets: np.ndarray) -> np.ndarray:
    """The blocks at ``counter + offsets`` (uint64), as uint32 words along a new last axis of 4."""
    flat = offsets.reshape(-1)
    out = np.empty((flat.size, 4), np.uint32)
    for start in range(0, flat.size, _CHUNK):
        _encrypt(key, counter, flat[start : start + _CHUNK], out[start : start + _CHUNK])
    return out.reshape(*offsets.shape, 4)


def _encrypt(key: int, counter: int, offsets: np.ndarray, out: np.ndarray) -> None:
    """Ten rounds; ``even`` and ``odd`` hold words 0 and 2, 1 and 3 of every block, ``product`` both halves of 64 bits."""
    low, high = (np.uint64(part) for part in (counter % _WORD, (counter >> 64) % _WORD))
    words = np.empty((2, len(offsets)), np.uint64)
    np.add(offsets, low, out=words[0])
    np.add(words[0] < low, high, out=words[1])
    halves = words.view("<u4").reshape(2, -1, 2)
    even, odd = halves[..., 0], halves[..., 1]
    keys = np.array([[key % 2**32], [(key >> 32) % 2**32]], np.uint32)
    for _ in range(10):
        product = np.multiply(even, _MULTIPLIERS, dtype=np.uint64).view("<u4").reshape(2, -1, 2)[::-1]
        even = product[..., 1] ^ odd
        even ^= keys
        odd = product[..., 0]
        keys = keys + _WEYL  # modulo 2³²
    out[:, 0::2], out[:, 1::2] = even.T, odd.T


class Traced:
    """The stream of a stateless seed that only the running program knows: an array of two integers."""

    def __init__(self, seed: Any) -> None:
        self.seed = seed

    def blocks(self, count: int, apart: int = 1, length: int = 1) -> Any:
        """``count`` stretches of ``length`` blocks, each ``apart`` blocks after the one before: words (count, length, 4)."""
        from gradtape.xp.jax_random import philox

        return philox(self.seed, _SCRAMBLE, count, apart, length)


def namespace(array: Any) -> Any:
    """The dialect's functions for a raw array: NumPy's, or those of a compiled program."""
    if isinstance(array, np.ndarray):
        return NUMPY
    from gradtape.xp import jax as JAX

    return JAX


def words(key: Any, counter: int, count: int) -> Any:
    """``count`` 32-bit words of the stream."""
    number = -(-count // 4)
    found = key.blocks(number) if isinstance(key, Traced) else blocks(key, counter, np.arange(number, dtype=np.uint64))
    return found.reshape(-1)[:count]


def scrambled(first: int, second: int) -> tuple[int, int]:
    """The stream (key, counter) of a stateless seed, whose words may be as weak as 0 and 1."""
    a, b = _SCRAMBLE % 2**32, _SCRAMBLE >> 32
    x, y, z, w = (n >> shift & 0xFFFFFFFF for n in (first, second) for shift in (0, 32))
    for _ in range(10):  # of one block Python's integers are faster than arrays
        left, right = x * 0xD2511F53, z * 0xCD9E8D57
        x, y, z, w = right >> 32 ^ y ^ a, right & 0xFFFFFFFF, left >> 32 ^ w ^ b, left & 0xFFFFFFFF
        a, b = a + 0x9E3779B9 & 0xFFFFFFFF, b + 0xBB67AE85 & 0xFFFFFFFF
    return x | y << 32, (z | w << 32) << 64


def numpy_generator(key: int, counter: int) -> Any:
    """NumPy's generator on this stream, for the distributions whose TensorFlow numbers are not reproduced."""
    from numpy.random import Generator, Philox  # loaded at the first draw

    return Generator(Philox(key=key % _WORD, counter=counter))


# Bits to numbers


def integers(key: Any, counter: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Every bit pattern of a 32-bit or 64-bit integer dtype, equally likely."""
    return words(key, counter, math.prod(shape) * dtype.itemsize // 4).view(dtype).reshape(shape)


def uniform(key: Any, counter: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uniform in [0, 1): as many random bits as the dtype's mantissa holds."""
    count = math.prod(shape)
    bits = words(key, counter, count * max(dtype.itemsize // 4, 1))
    return fraction(bits, dtype).reshape(shape)


def fraction(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype == np.float64:
        high, low = bits[0::2].astype(np.uint64), bits[1::2]
        return ((high & np.uint64(2**20 - 1)) << np.uint64(32) | low) * 2.0**-52
    digits = {"float32": 23, "float16": 10}.get(dtype.name, 7)  # 7: bfloat16
    return ((bits & np.uint32(2**digits - 1)) * np.float32(2.0**-digits)).astype(dtype, copy=False)


def normal(key: Any, counter: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Standard normal values; the half types are rounded from float32."""
    count = math.prod(shape)
    wide = _wide(dtype)
    bits = words(key, counter, (count + count % 2) * wide.itemsize // 4)
    return bell(bits, wide)[:count].reshape(shape).astype(dtype, copy=False)


def _wide(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.itemsize > 2 else np.dtype(np.float32)


def bell(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Box and Muller: two uniform numbers make two normal ones, r sin v and r cos v."""
    xp, pairs = namespace(bits), fraction(bits, dtype).reshape(-1, 2)
    radius = xp.sqrt(dtype.type(-2) * xp.log(xp.maximum(pairs[:, 0], dtype.type(1e-7))))
    angle = (2 * np.pi * pairs[:, 1].astype(np.float64)).astype(dtype)  # rounded once
    return xp.stack(xp.sin(angle) * radius, xp.cos(angle) * radius, axis=1).reshape(-1)


def truncated_normal(key: Any, counter: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Standard normal values, drawn again where they are 2 or more away from 0 (4.6 % of the draws).

    The numbers that one block makes form a group, and each group draws from a stretch of the stream of its own.
    """
    wide, count = _wide(dtype), math.prod(shape)
    group = 16 // wide.itemsize
    every = np.arange(-(-count // group), dtype=np.uint64)
    if isinstance(key, Traced):
        out = _inner(key, counter, every, group, wide, 16 // group)[0]  # of 16 draws; one group in 10¹⁴ needs more
    else:
        out, open_groups, tried = np.empty((len(every), group), wide), every, 2
        while open_groups.size:
            chosen, done = _inner(key, counter, open_groups, group, wide, tried)
            out[open_groups[done]] = chosen[done]
            open_groups, tried = open_groups[~done], 2 * tried
    return out.reshape(-1)[:count].reshape(shape).astype(dtype, copy=False)


def _inner(key: Any, counter: int, groups: np.ndarray, group: int, dtype: np.dtype, tried: int) -> tuple[Any, Any]:
    """The first values of each group that are near enough to 0, out of ``tried`` blocks; and whether all of them are."""
    apart = RESERVED * group // 4
    if isinstance(key, Traced):
        found = key.blocks(len(groups), apart, tried)
    else:
        found = blocks(key, counter, groups[:, None] * np.uint64(apart) + np.arange(tried, dtype=np.uint64))
    drawn = bell(found.reshape(-1), dtype).reshape(len(groups), -1)
    xp = namespace(drawn)
    outside = abs(drawn) >= 2
    first = xp.argsort(outside, axis=1)[:, :group]
    return xp.take_along_axis(drawn, first, axis=1), ~xp.take_along_axis(outside, first, axis=1).any(axis=1)


def permutation(key: int, counter: int, length: int) -> list[int]:
    """Fisher and Yates: each place in turn takes one of those that are left."""
    left = np.arange(length, 1, -1, dtype=np.uint32)
    chosen = words(key, counter, len(left)) % left
    order = list(range(length))
    for place, step in enumerate(chosen.tolist()):
        other = place + step
        order[place], order[other] = order[other], order[place]
    return order
