"""The dialect on jax arrays and tracers: what makes the same kernels and rules run on XLA.

The only eager importer of jax; loaded when the first jax array shows up. Everything but array data is static, so every
function traces under `jax.jit`. NumPy arrays are welcome among the arguments: rules make small constants with NumPy.

Where XLA cannot raise it differs from NumPy:

- An index out of range in `take`, `take_along_axis` and `gather_nd` reads nan (integers: the dtype's limit), and the
  transposes drop it. Negative indices count from the end, as in NumPy. Static indices (`getitem`) raise as in NumPy.
- Integer division by zero, a negative integer power and an unrepresentable float-to-integer conversion give some number.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from gradtape.xp import WHEN_JAX_LOADS
from gradtape.xp import numpy as _numpy
from gradtape.xp.jax_attention import attention, attention_gradient
from gradtape.xp.jax_conv import conv, conv_filter, conv_input, windows, windows_transpose
from gradtape.xp.jax_fourier import fft, ifft, irfft, rfft
from gradtape.xp.jax_linalg import (
    cholesky, eig, eigh, eigvals, eigvalsh, expm, inv, logm, lu, pinv, qr, slogdet, solve, sqrtm, svd, svdvals,
    triangular_solve, tridiagonal_solve,
)  # fmt: skip
from gradtape.xp.jax_random import gamma_sample, random_gamma_grad, truncated_sample
from gradtape.xp.jax_special import (
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0,
    bessel_y1, betainc, bitcast, dawsn, erfcinv, expint, fresnel_cos, fresnel_sin, igamma, igammac, ndtri, spence, zeta,
)  # fmt: skip


def scope() -> Any:
    """64-bit types enabled for this thread while inside (0.6 µs): float64 stays float64, the user's settings stay theirs."""
    return _preferred() if _preferences else _wide()


_preferences: dict[str, Any] = {}  # see `jax_devices.prefer`


class _Wide:
    """What ``jax.enable_x64(True)`` does, in a third of its steps: every compiled call begins with it."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _enable_x64.swap_local(True)

    def __exit__(self, *_: object) -> None:
        _enable_x64.set_local(self._before)


@contextlib.contextmanager
def _preferred() -> Iterator[None]:
    device, precision = _preferences.get("device"), _preferences.get("precision")
    with (
        _enable_x64(True),
        nullcontext() if device is None else jax.default_device(device),
        nullcontext() if precision is None else jax.default_matmul_precision(precision),
    ):
        yield


if hasattr(jax, "enable_x64"):
    _enable_x64 = jax.enable_x64
else:  # before jax 0.8
    from jax.experimental import enable_x64 as _enable_x64  # type: ignore[attr-defined,no-redef]

_known = hasattr(_enable_x64, "swap_local") and getattr(_enable_x64, "_update_thread_local_hook", True) is None
_wide = _Wide if _known else lambda: _enable_x64(True)


def _half(x):
    return x.dtype.itemsize == 2 and x.dtype.kind not in "iu"


# Elementwise, one argument

negative, abs, sign = jnp.negative, jnp.abs, jnp.sign
floor, ceil, rint = jnp.floor, jnp.ceil, jnp.rint
isnan, isinf, isfinite = jnp.isnan, jnp.isinf, jnp.isfinite
logical_not, bitwise_not = jnp.logical_not, jnp.invert
sin, cos, tan = jnp.sin, jnp.cos, jnp.tan
asin, acos, atan = jnp.arcsin, jnp.arccos, jnp.arctan
sinh, cosh, tanh = jnp.sinh, jnp.cosh, jnp.tanh
asinh, acosh, atanh = jnp.arcsinh, jnp.arccosh, jnp.arctanh
exp, expm1, log, log1p, sqrt = jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.sqrt
square, reciprocal, rsqrt = jnp.square, jnp.reciprocal, lax.rsqrt
erf, erfc, erfinv = special.erf, special.erfc, special.erfinv
lgamma = special.gammaln
sigmoid = special.expit
conj, real, imag, angle = jnp.conj, jnp.real, jnp.imag, jnp.angle


def digamma(x):
    """-inf at 0, and inf at -0."""
    return jnp.where(x == 0, jnp.copysign(jnp.array(np.inf, x.dtype), -x), special.digamma(x))


def softplus(x):
    return jnp.logaddexp(x, jnp.zeros((), x.dtype))


zeros_like, ones_like = jnp.zeros_like, jnp.ones_like  # on the device of their argument


def polygamma(x, *, n):
    return special.polygamma(n, x)


def astype(x, *, dtype):
    """Convert; complex to real drops the imaginary part, float to int truncates toward zero."""
    if x.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
        x = jnp.real(x)
    return jnp.asarray(x).astype(dtype)


# Elementwise, two arguments and more

add, subtract, multiply = jnp.add, jnp.subtract, jnp.multiply
remainder, power = jnp.remainder, jnp.power
maximum, minimum, atan2 = jnp.maximum, jnp.minimum, jnp.arctan2
equal, not_equal = jnp.equal, jnp.not_equal
less, less_equal, greater, greater_equal = map(_numpy._ordered, (jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal))
logical_and, logical_or, logical_xor = jnp.logical_and, jnp.logical_or, jnp.logical_xor
bitwise_and, bitwise_or, bitwise_xor = jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor
left_shift, right_shift = jnp.left_shift, jnp.right_shift
gcd, nextafter = jnp.gcd, jnp.nextafter
where = jnp.where


def divide(x, y):
    """Of integers in the dtype that NumPy has for it."""
    if x.dtype.kind in "iub":
        kind = np.true_divide(np.ones((), x.dtype), np.ones((), y.dtype)).dtype
        x, y = astype(x, dtype=kind), astype(y, dtype=kind)
    return jnp.true_divide(x, y)


def floor_divide(x, y):
    """For floats the floor of the rounded quotient, as TensorFlow: 1.0 // 0.1 is 10, Python says 9."""
    return jnp.floor_divide(x, y) if x.dtype.kind in "iu" else jnp.floor(jnp.true_divide(x, y))


def complex(x, y):
    x, y = jnp.broadcast_arrays(x, y)
    part = np.float64 if np.float64 in (x.dtype, y.dtype) else np.float32
    return lax.complex(x.astype(part), y.astype(part))


# Reductions; axis is None, an int or a tuple


def sum(x, *, axis=None, keepdims=False):
    return jnp.sum(x, axis, dtype=x.dtype, keepdims=keepdims)


def prod(x, *, axis=None, keepdims=False):
    return jnp.prod(x, axis, dtype=x.dtype, keepdims=keepdims)


def _extreme(reduce, lowest):
    """max or min; of nothing it is -inf or inf (integers: the dtype's limit), as in TensorFlow."""

    def call(x, *, axis=None, keepdims=False):
        if x.size:
            return reduce(x, axis, keepdims=keepdims)
        return reduce(x, axis, keepdims=keepdims, initial=_numpy._limit(x.dtype, lowest))

    return call


max, min = _extreme(jnp.max, True), _extreme(jnp.min, False)


def any(x, *, axis=None, keepdims=False):
    return jnp.any(x, axis, keepdims=keepdims)


def all(x, *, axis=None, keepdims=False):
    return jnp.all(x, axis, keepdims=keepdims)


def argmax(x, *, axis, keepdims=False):
    return jnp.argmax(x, axis, keepdims=keepdims)


def argmin(x, *, axis, keepdims=False):
    return jnp.argmin(x, axis, keepdims=keepdims)


def _cumulative(accumulate, start):
    def call(x, *, axis, exclusive=False, reverse=False):
        if reverse:
            x = jnp.flip(x, axis)
        if exclusive and x.shape[axis]:  # shifted by one: the first is the empty sum or product
            first = list(x.shape)
            first[axis] = 1
            x = lax.slice_in_dim(x, 0, x.shape[axis] - 1, axis=axis % x.ndim)
            x = jnp.concatenate([jnp.full(first, start, x.dtype), x], axis)
        out = accumulate(x, axis=axis, dtype=x.dtype)
        return jnp.flip(out, axis) if reverse else out

    return call


cumsum, cumprod = _cumulative(jnp.cumsum, 0), _cumulative(jnp.cumprod, 1)


def sort(x, *, axis):
    return jnp.sort(x, axis=axis)


def argsort(x, *, axis):
    return jnp.argsort(x, axis=axis, stable=True)


def flip(x, *, axis):
    return jnp.flip(x, axis)


# Shape


def reshape(x, *, shape):
    return jnp.reshape(x, shape)


def transpose(x, *, axes):
    return jnp.transpose(x, axes)


def matrix_transpose(x):
    return jnp.matrix_transpose(x)


def adjoint(x):
    return jnp.conj(jnp.matrix_transpose(x))


def expand_dims(x, *, axis):
    return jnp.expand_dims(x, axis)


def squeeze(x, *, axis):
    return jnp.squeeze(x, axis)


def broadcast_to(x, *, shape):
    return jnp.broadcast_to(x, shape)


def concatenate(*xs, axis):
    return jnp.concatenate(xs, axis)


def stack(*xs, axis):
    return jnp.stack(xs, axis)


def tile(x, *, repeats):
    return jnp.tile(x, repeats)


def pad(x, *, widths, value=0):
    """Constant padding; ``widths`` is one (before, after) pair per axis."""
    return jnp.pad(x, widths, constant_values=value)


def roll(x, *, shift, axis):
    return jnp.roll(x, shift, axis)


def repeat(x, *, repeats, axis):
    """``repeats`` is an int or a tuple with one count per index."""
    return jnp.repeat(x, repeats if isinstance(repeats, int) else np.asarray(repeats), axis)


# Indexing: each reader stands beside its transpose


def getitem(x, *, index):
    """``index`` is a tuple of ints, slices, None and Ellipsis."""
    _checked(x.shape, index)
    return jnp.asarray(x)[index]


def put_slice(x, *, index, shape):
    """Zeros of ``shape`` with ``x`` at ``index``: the transpose of getitem."""
    _checked(shape, index)
    return jnp.zeros(shape, x.dtype).at[index].set(x)


def _checked(shape, index):
    """Let NumPy refuse a wrong static index: jax would clamp it."""
    _hollow(shape)[tuple(slice(None) if type(part) is slice else part for part in index)]  # no slice is wrong by its bounds


def _hollow(shape):
    """A NumPy array without memory, to be refused in NumPy's words; an axis of open length has one index for sure."""
    return np.broadcast_to(np.False_, [n if isinstance(n, (int, np.integer)) else 1 for n in shape])


def _counted_from_0(indices, length):
    """The indices with negative ones behind the end, where NaN is read and nothing written; jax would count from the end."""
    if isinstance(indices, np.ndarray):  # they were checked
        return indices
    wide = indices.astype(np.int32) if indices.dtype.itemsize < 4 else indices
    return jnp.where(wide < 0, length, wide)


def take(x, indices, *, axis, batch_dims=0):
    if batch_dims == 0:
        return jnp.take(x, _counted_from_0(indices, x.shape[axis]), axis, mode="fill")
    inner = {"axis": axis % x.ndim - 1, "batch_dims": batch_dims - 1}
    return jax.vmap(lambda a, i: take(a, i, **inner))(x, indices)


def take_transpose(x, indices, *, axis, shape, batch_dims=0):
    """Add the rows of ``x`` into zeros of ``shape`` at ``indices``: the transpose of take."""
    if batch_dims == 0:
        return _scattered(x, (slice(None),) * (axis % len(shape)) + (_counted_from_0(indices, shape[axis]),), shape)
    inner = {"axis": axis % len(shape) - 1, "shape": shape[1:], "batch_dims": batch_dims - 1}
    return jax.vmap(lambda a, i: take_transpose(a, i, **inner))(x, indices)


def _scattered(x, index, shape):
    return jnp.zeros(shape, x.dtype).at[index].add(x, mode="drop")


def take_along_axis(x, indices, *, axis):
    return jnp.take_along_axis(x, indices, axis, mode="fill")


def along_axis_transpose(x, indices, *, axis, shape):
    """Add ``x`` into zeros of ``shape`` at ``indices`` along ``axis``: the transpose of take_along_axis."""
    index = [jnp.arange(n).reshape([-1 if i == place else 1 for i in range(len(shape))]) for place, n in enumerate(shape)]
    index[axis] = indices
    return _scattered(x, tuple(index), shape)


def gather_nd(x, indices):
    """The last axis of ``indices`` indexes the leading axes of ``x``."""
    index = tuple(map(_counted_from_0, jnp.moveaxis(indices, -1, 0), x.shape))
    if not index:
        return jnp.broadcast_to(x, indices.shape[:-1] + x.shape)
    return jnp.asarray(x).at[index].get(mode="fill")


def scatter_nd(x, indices, *, shape):
    """Add ``x`` into zeros of ``shape`` at ``indices``: the transpose of gather_nd."""
    index = tuple(map(_counted_from_0, jnp.moveaxis(indices, -1, 0), shape))
    if not index:
        return sum(x, axis=tuple(range(indices.ndim - 1)))
    return _scattered(x, index, shape)


def one_hot(indices, *, depth, dtype):
    """A new last axis of ``depth`` with 1 at the index; indices out of range give zeros."""
    return (jnp.expand_dims(indices, -1) == np.arange(depth)).astype(dtype)


# Contractions: the half types accumulate in float32


def matmul(x, y):
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-2]:
        _numpy.matmul(_hollow(x.shape), _hollow(y.shape))  # raises
    if _half(x) and jax.default_backend() == "cpu":  # other devices sum in float32 anyway
        return jnp.matmul(x, y, preferred_element_type=np.float32).astype(x.dtype)
    return jnp.matmul(x, y)


def adjoint_matmul(x, y):
    """xᴴ y. Of matrices as one product: XLA does not find back to it from a transposed x if y has one column."""
    if x.ndim == 2 == y.ndim and x.shape[0] == y.shape[0]:
        return matrix_transpose(_product(y, jnp.conj(x), 0, 0))
    return matmul(adjoint(x), y)


def matmul_adjoint(x, y):
    """x yᴴ."""
    if x.ndim == 2 == y.ndim and x.shape[1] == y.shape[1]:
        return _product(x, jnp.conj(y), 1, 1)
    return matmul(x, adjoint(y))


def _product(x, y, axis_x, axis_y):
    axes = ((axis_x,), (axis_y,)), ((), ())
    if _half(x) and jax.default_backend() == "cpu":
        return lax.dot_general(x, y, axes, preferred_element_type=np.float32).astype(x.dtype)
    return lax.dot_general(x, y, axes)


def einsum(*xs, equation):
    """Explicit equation, no ellipsis."""
    if _half(xs[0]) and jax.default_backend() == "cpu":
        return jnp.einsum(equation, *xs, preferred_element_type=np.float32).astype(xs[0].dtype)
    return jnp.einsum(equation, *xs)


# Creation


def zeros(*, shape, dtype):
    return jnp.zeros(shape, dtype)


def ones(*, shape, dtype):
    return jnp.ones(shape, dtype)


def full(*, shape, value, dtype):
    return jnp.full(shape, value, dtype)


def arange(*, start, stop, step, dtype):
    return jnp.arange(start, stop, step, dtype)


def eye(*, rows, columns, dtype):
    return jnp.eye(rows, columns, dtype=dtype)


# Inspection

shape = operator.attrgetter("shape")
dtype = operator.attrgetter("dtype")

for _loaded in WHEN_JAX_LOADS:
    _loaded(sys.modules[__name__])
