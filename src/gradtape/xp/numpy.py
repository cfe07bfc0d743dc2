"""The dialect on NumPy arrays.

Most names are NumPy's own functions. The others exist because NumPy warns (poles), upcasts (half precision), wraps
negative indices silently, or is slow: ``np.sum`` costs 2.2 µs on a 16×16 array, ``np.add.reduce`` 1.3 µs.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings

import numpy as np

from gradtape.xp import attention as _attention
from gradtape.xp.numpy_conv import conv, conv_filter, conv_input, windows, windows_transpose
from gradtape.xp.numpy_einsum import einsum_of_two as _einsum_of_two
from gradtape.xp.numpy_fourier import fft, ifft, irfft, rfft
from gradtape.xp.numpy_linalg import (
    cholesky, eig, eigh, eigvals, eigvalsh, expm, inv, logm, lu, pinv, qr, slogdet, solve, sqrtm, svd, svdvals,
    triangular_solve, tridiagonal_solve,
)  # fmt: skip
from gradtape.xp.numpy_random import gamma_sample, random_gamma_grad, truncated_sample
from gradtape.xp.numpy_special import (
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0,
    bessel_y1, betainc, bitcast, dawsn, erfcinv, expint, fresnel_cos, fresnel_sin, igamma, igammac, ndtri, spence, zeta,
)  # fmt: skip
from gradtape.xp.poles import noted as _noted
from gradtape.xp.poles import scope

# Overflow in the few functions that run without errstate for speed (add, multiply, sum …) is no news either.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradtape\.")

# For frequent functions: Python does not remember where a module with a `__getattr__` has its names; each look takes 20 ns.
_add_reduce, _empty, _matmul = np.add.reduce, np.empty, np.matmul


def _silent(function):
    """A function with poles or overflow, without NumPy's warning: inf and nan are its answers."""

    def call(*arrays):
        with scope():
            return function(*arrays)

    return call


@functools.cache
def _special(name: str):
    """A SciPy special function; SciPy is loaded when the first one runs."""
    import scipy.special

    return getattr(scipy.special, name)


def _from_scipy(name: str, poles: bool = False):
    def call(x):
        with scope():
            # SciPy has no loop for the half types: compute in float32.
            if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
                out = _special(name)(x.astype(np.float32)).astype(x.dtype)
            else:
                out = _special(name)(x)
            return _noted(out) if poles else out

    return call


# Elementwise, one argument

negative = np.negative
abs = np.absolute
sign = np.sign
floor, ceil, rint = np.floor, np.ceil, np.rint
isnan, isinf, isfinite = np.isnan, np.isinf, np.isfinite
logical_not, bitwise_not = np.logical_not, np.invert
sin, cos, tan = map(_silent, (np.sin, np.cos, np.tan))
asin, acos, atan = _silent(np.arcsin), _silent(np.arccos), np.arctan
sinh, cosh, tanh = _silent(np.sinh), _silent(np.cosh), np.tanh
asinh, acosh, atanh = np.arcsinh, _silent(np.arccosh), _silent(np.arctanh)
exp, expm1, log, log1p, sqrt = map(_silent, (np.exp, np.expm1, np.log, np.log1p, np.sqrt))
square = np.square
reciprocal = _silent(lambda x: np.true_divide(np.ones((), x.dtype), x))
rsqrt = _silent(lambda x: np.true_divide(np.ones((), x.dtype), np.sqrt(x)))
erf, erfc, erfinv = _from_scipy("erf"), _from_scipy("erfc"), _from_scipy("erfinv", poles=True)
lgamma, digamma = _from_scipy("gammaln", poles=True), _from_scipy("digamma", poles=True)


def sigmoid(x):
    if x.dtype.kind == "c":
        return reciprocal(1 + exp(-x))
    if x.dtype == np.float32 and x.size >= 2048:  # SciPy has no vector instructions for it: a third of its time
        out = np.minimum(x, np.float32(88.0))  # exp(88) is still finite, and beyond that the answer is 1
        np.exp(out, out=out)
        return np.divide(out, out + np.float32(1.0), out=out)
    return _sigmoid(x)


_sigmoid = _from_scipy("expit")


def softplus(x):
    if x.dtype.kind == "c":
        return log(1 + exp(x))
    with scope():
        return np.logaddexp(x, np.zeros((), x.dtype))


def conj(x):
    return np.conjugate(x) if x.dtype.kind == "c" else x


def real(x):
    return x.real


def imag(x):
    return x.imag


def angle(x):
    return np.angle(x)


def zeros_like(x):
    return np.zeros(x.shape, x.dtype)


def ones_like(x):
    return np.ones(x.shape, x.dtype)


def polygamma(x, *, n):
    with scope():
        return _noted(_special("polygamma")(n, x.astype(np.float64)).astype(x.dtype))


def astype(x, *, dtype):
    """Convert; complex to real drops the imaginary part, float to int truncates toward zero."""
    if x.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
        x = x.real
    with scope():
        return x.astype(dtype)


# Elementwise, two arguments and more

add, subtract, multiply = np.add, np.subtract, np.multiply
divide = _silent(np.true_divide)
power = _silent(np.power)


def _nonzero(x, y):
    """Refuse an integer divisor that is 0: NumPy would answer 0."""
    if not y.all() and x.size:
        raise ZeroDivisionError("Integer division by zero")


def floor_divide(x, y):
    if x.dtype.kind in "iu":
        _nonzero(x, y)
    elif x.dtype.kind in "fV":  # the floor of the rounded quotient, as TensorFlow: 1.0 // 0.1 is 10, Python says 9
        with scope():
            return np.floor(np.true_divide(x, y))
    with scope():
        return np.floor_divide(x, y)


def remainder(x, y):
    if x.dtype.kind in "iu":
        _nonzero(x, y)
    with scope():
        return np.remainder(x, y)


maximum, minimum, atan2 = np.maximum, np.minimum, np.arctan2
equal, not_equal = np.equal, np.not_equal


def _ordered(function):
    """Refuse what has no order: NumPy would compare complex numbers by their real parts first."""

    def call(x, y):
        if x.dtype.kind in "cbO":
            kind = "string" if x.dtype.kind == "O" else x.dtype.name
            raise TypeError(f"Value for attr 'T' of {kind} is not in the list of allowed values: integers and real floats")
        return function(x, y)

    return call


less, less_equal, greater, greater_equal = map(_ordered, (np.less, np.less_equal, np.greater, np.greater_equal))
logical_and, logical_or, logical_xor = np.logical_and, np.logical_or, np.logical_xor
bitwise_and, bitwise_or, bitwise_xor = np.bitwise_and, np.bitwise_or, np.bitwise_xor
left_shift, right_shift = np.left_shift, np.right_shift
gcd, nextafter = np.gcd, np.nextafter
where = np.where


def complex(x, y):
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
    out.real, out.imag = x, y
    return out


# Reductions; axis is None, an int or a tuple


@functools.lru_cache(128)
def _ones(length, char):
    return np.ones(length, char)


def sum(x, *, axis=None, keepdims=False):
    if x.dtype.char in "fd":
        if not keepdims:  # as products with ones, if there are not too many: three to eight times as fast
            if axis is None:
                if 0 < x.size <= 512:
                    return _ones(x.size, x.dtype.char).dot(x.ravel())
            elif axis == 0 and x.ndim == 2 and 0 < len(x) <= 4096:
                return _ones(len(x), x.dtype.char).dot(x)
        return _add_reduce(x, axis, None, None, keepdims)  # every keyword costs 40 ns
    if x.itemsize == 2 and x.dtype.kind not in "iu":  # in bfloat16 the sum of 1000 ones would be 256
        with scope():
            return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=np.float32).astype(x.dtype)
    return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def prod(x, *, axis=None, keepdims=False):
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _extreme(reduce, lowest):
    """max or min; of nothing it is -inf or inf (integers: the dtype's limit), as in TensorFlow."""

    def call(x, *, axis=None, keepdims=False):
        if x.size:
            return reduce(x, axis=axis, keepdims=keepdims)
        return reduce(x, axis=axis, keepdims=keepdims, initial=_limit(x.dtype, lowest))

    return call


def _limit(dtype, lowest):
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max
    return -np.inf if lowest else np.inf


max = _extreme(np.maximum.reduce, True)
min = _extreme(np.minimum.reduce, False)


def any(x, *, axis=None, keepdims=False):
    return np.logical_or.reduce(x, axis=axis, keepdims=keepdims)


def all(x, *, axis=None, keepdims=False):
    return np.logical_and.reduce(x, axis=axis, keepdims=keepdims)


def argmax(x, *, axis, keepdims=False):
    return np.argmax(x, axis=axis, keepdims=keepdims)


def argmin(x, *, axis, keepdims=False):
    return np.argmin(x, axis=axis, keepdims=keepdims)


def _cumulative(accumulate):
    def call(x, *, axis, exclusive=False, reverse=False, start):
        if reverse:
            x = np.flip(x, axis)
        out = accumulate(x, axis=axis, dtype=x.dtype)
        if exclusive and x.shape[axis]:
            first = list(x.shape)
            first[axis] = 1
            kept = [slice(None)] * x.ndim
            kept[axis] = slice(-1)
            out = np.concatenate([np.full(first, start, x.dtype), out[tuple(kept)]], axis)
        return np.flip(out, axis) if reverse else out

    return call


_cumsum, _cumprod = _cumulative(np.add.accumulate), _cumulative(np.multiply.accumulate)


def cumsum(x, *, axis, exclusive=False, reverse=False):
    return _cumsum(x, axis=axis, exclusive=exclusive, reverse=reverse, start=0)


def cumprod(x, *, axis, exclusive=False, reverse=False):
    return _cumprod(x, axis=axis, exclusive=exclusive, reverse=reverse, start=1)


def sort(x, *, axis):
    return np.sort(x, axis=axis)


def argsort(x, *, axis):
    return np.argsort(x, axis=axis, kind="stable")


def flip(x, *, axis):
    return np.flip(x, axis)


# Shape


def reshape(x, *, shape):
    return x.reshape(shape)


def transpose(x, *, axes):
    return x.transpose(axes)


def matrix_transpose(x):
    return x.mT


def adjoint(x):
    return x.mT if x.dtype.kind != "c" else x.mT.conj()


def expand_dims(x, *, axis):
    return np.expand_dims(x, axis)


def squeeze(x, *, axis):
    return np.squeeze(x, axis)


def broadcast_to(x, *, shape):
    if math.prod(shape) > 4096:
        return np.broadcast_to(x, shape)
    out = _empty(shape, x.dtype)  # 0.5 µs, where the view costs 5
    out[...] = x
    return out


def concatenate(*xs, axis):
    return np.concatenate(xs, axis)


def stack(*xs, axis):
    return np.stack(xs, axis)


def tile(x, *, repeats):
    return np.tile(x, repeats)


def pad(x, *, widths, value=0):
    """Constant padding; ``widths`` is one (before, after) pair per axis."""
    return np.pad(x, widths, constant_values=value)


def roll(x, *, shift, axis):
    return np.roll(x, shift, axis)


def repeat(x, *, repeats, axis):
    """``repeats`` is an int or a tuple with one count per index."""
    return np.repeat(x, repeats, axis)


# Indexing: each reader stands beside its transpose, which is its derivative rule and the other way round


def getitem(x, *, index):
    """``index`` is a tuple of ints, slices, None and Ellipsis."""
    return x[index]


def put_slice(x, *, index, shape):
    """Zeros of ``shape`` with ``x`` at ``index``: the transpose of getitem."""
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


def take(x, indices, *, axis, batch_dims=0):
    if batch_dims == 0:
        return np.take(x, indices, axis)
    return x[_batched_index(x.shape, indices, axis, batch_dims)]


def take_transpose(x, indices, *, axis, shape, batch_dims=0):
    """Add the rows of ``x`` into zeros of ``shape`` at ``indices``: the transpose of take."""
    out = np.zeros(shape, x.dtype)
    if batch_dims == 0:
        np.add.at(out, (slice(None),) * (axis % len(shape)) + (indices,), x)
    else:
        np.add.at(out, _batched_index(shape, indices, axis, batch_dims), x)
    return out


def _batched_index(shape, indices, axis, batch_dims):
    """Advanced index that pairs the leading ``batch_dims`` axes of array and indices."""
    rank = axis + indices.ndim - batch_dims + len(shape) - axis - 1
    index = []
    for position in range(len(shape)):
        if position == axis:
            where = [1] * rank
            where[:batch_dims] = indices.shape[:batch_dims]
            where[axis : axis + indices.ndim - batch_dims] = indices.shape[batch_dims:]
            index.append(indices.reshape(where))
        else:
            where = [1] * rank
            where[position if position < axis else position + indices.ndim - batch_dims - 1] = shape[position]
            index.append(np.arange(shape[position]).reshape(where))
    return tuple(index)


def take_along_axis(x, indices, *, axis):
    return np.take_along_axis(x, indices, axis)


def along_axis_transpose(x, indices, *, axis, shape):
    """Add ``x`` into zeros of ``shape`` at ``indices`` along ``axis``: the transpose of take_along_axis."""
    out = np.zeros(shape, x.dtype)
    index = list(np.ogrid[tuple(slice(n) for n in shape)])
    index[axis] = indices
    np.add.at(out, tuple(index), x)
    return out


def gather_nd(x, indices):
    """The last axis of ``indices`` indexes the leading axes of ``x``."""
    index = tuple(np.moveaxis(indices, -1, 0))
    return x[index] if index else np.broadcast_to(x, indices.shape[:-1] + x.shape)


def scatter_nd(x, indices, *, shape):
    """Add ``x`` into zeros of ``shape`` at ``indices``: the transpose of gather_nd."""
    index = tuple(np.moveaxis(indices, -1, 0))
    if not index:
        return sum(x, axis=tuple(range(indices.ndim - 1)))
    out = np.zeros(shape, x.dtype)
    np.add.at(out, index, x)
    return out


def one_hot(indices, *, depth, dtype):
    """A new last axis of ``depth`` with 1 at the index; indices out of range give zeros."""
    return (indices[..., None] == np.arange(depth)).astype(dtype)


# Contractions: NumPy's float16 matmul is 150 times slower than float32's, so the half types go through float32


def matmul(x, y):
    try:
        if x.ndim == 2 == y.ndim and x.itemsize > 2:
            return x.dot(y)  # of small matrices in 0.35 µs, where `np.matmul` takes 0.95
        if x.ndim > 1 and y.ndim > 1 and x.itemsize > 2:
            return _matmul(x, y)
    except ValueError:
        if x.shape[-1] == y.shape[-2]:
            raise
        shapes = [f"In[{i}]: [{','.join(map(str, a.shape))}]" for i, a in enumerate((x, y))]
        raise ValueError(f"Matrix size-incompatible: {', '.join(shapes)}") from None
    for i, array in enumerate((x, y)):
        if array.ndim < 2:
            text = f"In[0] and In[1] ndims must be == 2: {array.ndim} (In[{i}] ndims must be >= 2; use tensordot or dot)"
            raise ValueError(text)
    if x.dtype.kind in "iu":
        return np.matmul(x, y)
    return matmul(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)


def adjoint_matmul(x, y):
    """xᴴ y."""
    if x.ndim == 2 == y.ndim and x.dtype.char in "fd":
        return x.T.dot(y)
    return matmul(adjoint(x), y)


def matmul_adjoint(x, y):
    """x yᴴ."""
    if x.ndim == 2 == y.ndim and x.dtype.char in "fd":
        return x.dot(y.T)
    return matmul(x, adjoint(y))


def einsum(*xs, equation):
    """Explicit equation, no ellipsis. Three operands and more are ordered by opt_einsum."""
    if xs[0].dtype.itemsize == 2 and xs[0].dtype.kind not in "iu":
        return einsum(*(x.astype(np.float32) for x in xs), equation=equation).astype(xs[0].dtype)
    if len(xs) > 2:
        import opt_einsum

        return np.asarray(opt_einsum.contract(equation, *xs))
    return _einsum_of_two(*xs, equation) if len(xs) == 2 else np.einsum(equation, *xs)


# Creation


def zeros(*, shape, dtype):
    return np.zeros(shape, dtype)


def ones(*, shape, dtype):
    return np.ones(shape, dtype)


attention = functools.partial(_attention.attention, np)
attention_gradient = functools.partial(_attention.attention_gradient, np)


def full(*, shape, value, dtype):
    return np.full(shape, value, dtype)


def arange(*, start, stop, step, dtype):
    return np.arange(start, stop, step, dtype)


def eye(*, rows, columns, dtype):
    return np.eye(rows, columns, dtype=dtype)


# Inspection

shape = operator.attrgetter("shape")
dtype = operator.attrgetter("dtype")
