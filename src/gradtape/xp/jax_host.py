"""Python, called by a running program.

jax calls from threads of its own, where nobody has told it about 64-bit types: it would round numbers to 32 bits on the way
there, and refuse what comes back. So they travel as pairs of 32-bit words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))
_WORD = np.dtype(np.uint32)


def ask(function: Callable, shape: tuple[int, ...], dtype: Any, *arrays: Any) -> Any:
    """What a function of NumPy arrays answers whenever the program runs: an array of this shape and dtype.

    For a batch it is asked once, with leading axes.
    """
    dtype = np.dtype(dtype)
    kinds = [a.dtype for a in arrays]
    tail = (dtype.itemsize // 4,) if dtype in _WIDE else ()

    def call(*sent: Any) -> np.ndarray:
        answer = np.asarray(function(*map(_unpacked, sent, kinds)))
        return np.ascontiguousarray(answer[..., None]).view(_WORD) if tail else answer

    result = jax.ShapeDtypeStruct((*shape, *tail), _WORD if tail else dtype)
    words = jax.pure_callback(call, result, *map(_packed, arrays), vmap_method="expand_dims")
    return _numbers(words, dtype) if tail else words


def tell(function: Callable, arrays: list) -> None:
    """Call a function with these arrays whenever the program runs, in the order of the program."""
    kinds = [a.dtype for a in arrays]
    io_callback(lambda *sent: function(*map(_unpacked, sent, kinds)), None, *map(_packed, arrays), ordered=True)


def _packed(x: Any) -> Any:
    """As words along a new last axis, if it is wide."""
    if x.dtype not in _WIDE:
        return x
    if x.dtype.kind == "c":
        both = lax.bitcast_convert_type(jnp.stack([x.real, x.imag], axis=-1), _WORD)
        return both.reshape(*x.shape, 4)
    return lax.bitcast_convert_type(x, _WORD)


def _unpacked(sent: Any, dtype: np.dtype) -> np.ndarray:
    array = np.asarray(sent)
    return np.ascontiguousarray(array).view(dtype)[..., 0] if dtype in _WIDE else array


def _numbers(words: Any, dtype: np.dtype) -> Any:
    if dtype.kind != "c":
        return lax.bitcast_convert_type(words, dtype)
    parts = lax.bitcast_convert_type(words.reshape(*words.shape[:-1], 2, 2), np.float64)
    return lax.complex(parts[..., 0], parts[..., 1])
