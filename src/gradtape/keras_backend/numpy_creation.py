"""Keras's makers of arrays: constants, ranges and grids, matrices, windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common import standardize_dtype

from gradtape.errors import message
from gradtape.keras_backend.core import convert_to_numpy, convert_to_tensor
from gradtape.keras_backend.numpy_promotion import in_dtype, kind_of, result_type, tensor, together
from gradtape.ops import creation, elementwise, grids, shape
from gradtape.ops.arguments import lengths
from gradtape.values import dtypes
from gradtape.values.tensor import Tensor


def _numpy_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype that was asked for, or that of `config.floatx`."""
    return dtypes.numpy_dtype(config.floatx() if dtype is None else standardize_dtype(dtype))


def _host(x: Any) -> Any:
    """A number that says how large something is: it must be known."""
    return convert_to_numpy(x).item() if hasattr(x, "shape") else x


# Constants


def _constant(make: Callable) -> Callable:
    def call(shape: Any, dtype: Any = None) -> Tensor:
        return make(shape=lengths(shape), dtype=_numpy_dtype(dtype))

    call.__name__, call.__doc__ = make.__name__, make.__doc__
    return call


def _constant_like(make: Callable) -> Callable:
    def call(x: Any, dtype: Any = None) -> Tensor:
        x = tensor(x)
        return make(x if dtype is None else elementwise.cast(elementwise.stop_gradient(x), standardize_dtype(dtype)))

    call.__name__, call.__doc__ = make.__name__, make.__doc__
    return call


zeros = empty = _constant(creation.zeros)
ones = _constant(creation.ones)
zeros_like = empty_like = _constant_like(elementwise.zeros_like)
ones_like = _constant_like(elementwise.ones_like)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    fill = in_dtype(fill_value, config.floatx() if dtype is None else standardize_dtype(dtype))
    return _spread(fill, lengths(shape))


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    x = tensor(x)
    return _spread(in_dtype(fill_value, x.dtype.name if dtype is None else standardize_dtype(dtype)), x._array.shape)


def _spread(x: Tensor, target: tuple[int, ...]) -> Tensor:
    return shape.broadcast_to(x, shape=target)


def array(x: Any, dtype: Any = None) -> Tensor:
    return convert_to_tensor(x, dtype)


def copy(x: Any) -> Tensor:
    return elementwise.identity(tensor(x))


# Ranges


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """start, start + step, … below stop; the dtype is the common one of the three."""
    given = [x for x in (start, stop, step) if x is not None]
    kind = result_type(*map(kind_of, given)) if dtype is None else standardize_dtype(dtype)
    first, last = (0, start) if stop is None else (start, stop)
    numbers = np.arange(_host(first), _host(last), 1 if step is None else _host(step))
    return in_dtype(numbers, kind)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """num numbers from start to stop; with retstep, also how far apart they are."""
    first, last, kind = _ends(start, stop, dtype)
    out = _finished(_spaced(first, last, num, endpoint, axis, _evenly), kind)
    if not retstep:
        return out
    count = num - 1 if endpoint else num
    return out, _finished(elementwise.divide(last - first, float(count) if count else math.nan), result_type(kind, float))


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10, dtype: Any = None, axis: int = 0
) -> Tensor:
    """base to the power of num numbers from start to stop."""
    first, last, kind = _ends(start, stop, dtype)
    exponents = _spaced(first, last, num, endpoint, axis, _evenly)
    return _finished(elementwise.power(in_dtype(base, exponents.dtype.name), exponents), kind)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """num numbers from start to stop, each the same multiple of the one before."""
    first, last, kind = _ends(start, stop, dtype)
    return _finished(_spaced(first, last, num, endpoint, axis, _by_factors), kind)


def _evenly(first: Tensor, last: Tensor, numbers: np.ndarray, count: int) -> Tensor:
    return first + (last - first) / count * numbers


def _by_factors(first: Tensor, last: Tensor, numbers: np.ndarray, count: int) -> Tensor:
    return first * elementwise.power(last / first, numbers / count)


def _ends(start: Any, stop: Any, dtype: Any) -> tuple[Tensor, Tensor, str]:
    """Both ends in double precision, and the dtype of the result."""
    first, last = together(start, stop, also=("float64",))
    kind = result_type(kind_of(start), kind_of(stop), float) if dtype is None else standardize_dtype(dtype)
    return first, last, kind


def _spaced(first: Tensor, last: Tensor, num: Any, endpoint: bool, axis: int, between: Callable) -> Tensor:
    """num values along a new axis, which begin with the first; the last is met exactly, if it is an endpoint."""
    target = np.broadcast_shapes(first._array.shape, last._array.shape)
    at = axis + len(target) + 1 if axis < 0 else axis
    first, last = (shape.expand_dims(_spread(x, target), axis=at) for x in (first, last))
    num = int(_host(num))
    if num < 0:
        text = f"Number of samples, {num}, must be non-negative."
        raise ValueError(message(text, received=f"num={num}", expected="num of 0 or more"))
    numbers = np.arange(num, dtype=np.float64).reshape([-1 if i == at else 1 for i in range(len(target) + 1)])
    count = num - 1 if endpoint else num
    out = between(first, last, numbers, max(count, 1))
    return elementwise.where(numbers == count, last, out) if count else out


def _finished(x: Tensor, dtype: str) -> Tensor:
    """x in the dtype of the result; integers are those below."""
    return elementwise.cast(elementwise.floor(x) if "int" in dtype else x, dtype)


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid from those along its axes."""
    return grids.meshgrid([tensor(line) for line in x], indexing)


# Matrices


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Ones on the k-th diagonal."""
    return convert_to_tensor(np.eye(_host(N), None if M is None else _host(M), _host(k), _numpy_dtype(dtype)))


def identity(n: int, dtype: Any = None) -> Tensor:
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Ones on and below the k-th diagonal."""
    return convert_to_tensor(np.tri(_host(N), None if M is None else _host(M), _host(k), _numpy_dtype(dtype)))


def tril(x: Any, k: int = 0) -> Tensor:
    """x with zeros above the k-th diagonal."""
    x = tensor(x)
    return elementwise.where(_triangle(x, k), x, elementwise.zeros_like(x))


def triu(x: Any, k: int = 0) -> Tensor:
    """x with zeros below the k-th diagonal."""
    x = tensor(x)
    return elementwise.where(_triangle(x, k - 1), elementwise.zeros_like(x), x)


def _triangle(x: Tensor, k: int) -> np.ndarray:
    rows, columns = (*x._array.shape[-1:], *x._array.shape)[-2:]  # a vector stands for each row of a square
    return np.tri(rows, columns, k, dtype=bool)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector as columns, the highest first unless increasing."""
    x = tensor(x)
    if x.ndim != 1:
        text = f"`x` must be one-dimensional. Received: x.shape={x._array.shape}"
        raise ValueError(message(text, received=f"rank {x.ndim}", expected="rank 1"))
    count = x._array.shape[0] if N is None else N
    powers = [elementwise.ones_like(x)]
    while len(powers) < count:
        powers.append(elementwise.multiply(powers[-1], x))
    powers = powers[:count] if increasing else powers[:count][::-1]
    return shape.stack(*powers, axis=1) if powers else creation.zeros(shape=(x._array.shape[0], 0), dtype=x._array.dtype)


# Windows


def _window(make: Callable) -> Callable:
    def call(x: Any) -> Tensor:
        return in_dtype(make(int(_host(x))), config.floatx())

    call.__name__ = make.__name__
    call.__doc__ = f"The {make.__name__} window of x points."
    return call


bartlett = _window(np.bartlett)
blackman = _window(np.blackman)
hamming = _window(np.hamming)
hanning = _window(np.hanning)


def kaiser(x: Any, beta: Any) -> Tensor:
    """The Kaiser window of x points, the narrower the larger beta is."""
    return in_dtype(np.kaiser(int(_host(x)), float(_host(beta))), config.floatx())
