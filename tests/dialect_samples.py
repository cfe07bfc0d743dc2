"""Sample arguments for every function of the array dialect: one table for all namespaces."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dialect_samples_conv import add_convolutions
from dialect_samples_fourier import add_transforms
from dialect_samples_linalg import add_linear_algebra

from gradtape.xp import dialect


class Sample(NamedTuple):
    name: str
    arrays: tuple
    attributes: dict[str, Any]
    tolerance: float | None = None  # relative; None: 1e-12 in double precision, 2e-6 in single

    def __str__(self) -> str:
        return f"{self.name}-" + "-".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays).replace(" ", "")


_random = np.random.default_rng(20)


def floats(*shape, low=-3.0, high=3.0, dtype="float64"):
    return _random.uniform(low, high, shape).astype(dtype)


def complexes(*shape, dtype="complex128"):
    return (floats(*shape) + 1j * floats(*shape)).astype(dtype)


def integers(*shape, low=-5, high=6, dtype="int32"):
    return _random.integers(low, high, shape).astype(dtype)


def booleans(*shape):
    return _random.uniform(size=shape) < 0.5


SAMPLES: list[Sample] = []


def add(name, *arrays, tolerance=None, **attributes):
    SAMPLES.append(Sample(name, tuple(np.asarray(a) for a in arrays), attributes, tolerance))


# Elementwise, one argument: where it is defined, and which dtypes besides the floating ones

_INSIDE = dict.fromkeys("asin acos atanh erfinv".split(), (-0.9, 0.9)) | dict.fromkeys(("ndtri", "erfcinv"), (0.1, 0.9))
_POSITIVE = dict.fromkeys(
    ("log log1p sqrt rsqrt reciprocal lgamma digamma polygamma bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 "
     "expint spence").split(), (0.2, 4.0)
)  # fmt: skip
_RANGES = {**_INSIDE, **_POSITIVE, "acosh": (1.3, 4.0)}
_COMPLEX = (
    "negative abs sign exp expm1 log log1p sqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "sigmoid isnan isinf isfinite conj real imag angle zeros_like ones_like"
).split()
_INTEGER = "negative abs sign square bitwise_not conj zeros_like ones_like".split()
_BOOLEAN = "logical_not bitwise_not zeros_like ones_like".split()
_NO_FLOAT = "logical_not bitwise_not".split()
# XLA's approximations of these are not exact to the last digits.
_ROUGH = {"erfinv": 1e-7, "lgamma": 1e-10, "digamma": 1e-10, "erfc": 1e-10, "igamma": 1e-10, "igammac": 1e-10}

for _name in dialect.UNARY:
    _low, _high = _RANGES.get(_name, (-3.0, 3.0))
    if _name not in _NO_FLOAT:
        add(_name, floats(2, 3, low=_low, high=_high), tolerance=_ROUGH.get(_name))
        add(_name, floats(low=_low, high=_high), tolerance=_ROUGH.get(_name))
        add(_name, floats(4, low=_low, high=_high, dtype="float32"), tolerance=1e-5)
    if _name in _COMPLEX:
        add(_name, complexes(2, 2))
    if _name in _INTEGER:
        add(_name, integers(2, 3))
    if _name in _BOOLEAN:
        add(_name, booleans(2, 3))

# Elementwise, two arguments and more

_INTEGER_PAIRS = (
    "add subtract multiply floor_divide remainder maximum minimum equal not_equal less less_equal greater greater_equal "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd"
).split()
_COMPLEX_PAIRS = "add subtract multiply divide power equal not_equal".split()
_BOOLEAN_PAIRS = "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor equal not_equal".split()
_FLOAT_PAIRS = (
    "add subtract multiply divide floor_divide remainder power maximum minimum atan2 equal not_equal less less_equal "
    "greater greater_equal nextafter complex igamma igammac"
).split()

for _name in dialect.BINARY:
    _low = 0.5 if _name in ("divide", "floor_divide", "remainder", "power", "igamma", "igammac") else -3.0
    if _name in _FLOAT_PAIRS:
        add(_name, floats(2, 3, low=_low), floats(2, 3, low=_low), tolerance=_ROUGH.get(_name))
        add(_name, floats(3, low=_low), floats(2, 3, low=_low), tolerance=_ROUGH.get(_name))
        add(_name, floats(2, 3, low=_low), floats(low=_low), tolerance=_ROUGH.get(_name))
        add(_name, floats(2, 1, low=_low, dtype="float32"), floats(1, 3, low=_low, dtype="float32"))
    if _name in _COMPLEX_PAIRS:
        add(_name, complexes(2, 2), complexes(2), tolerance=1e-10)
    if _name in _INTEGER_PAIRS:
        _divisor = "shift" in _name or _name in ("floor_divide", "remainder")
        add(_name, integers(2, 3), integers(3, low=1 if _divisor else -5))
    if _name in _BOOLEAN_PAIRS:
        add(_name, booleans(2, 3), booleans(3))

add("where", booleans(2, 3), floats(2, 3), floats(2, 3))
add("where", booleans(3), floats(2, 1, dtype="float32"), floats(dtype="float32"))
add("where", booleans(), integers(2, 3), integers(3))
add("zeta", floats(2, 3, low=1.2), floats(3, low=0.5), tolerance=1e-10)
add("betainc", floats(2, 3, low=0.5), floats(3, low=0.5), floats(2, 1, low=0.1, high=0.9), tolerance=1e-10)
add("bitcast", floats(2, 3), dtype=np.dtype("int64"))
add("bitcast", floats(2, 3), dtype=np.dtype("uint8"))
add("bitcast", integers(3, 2), dtype=np.dtype("int64"))
add("polygamma", floats(2, 3, low=0.5, high=4), n=1, tolerance=1e-9)
add("polygamma", floats(3, low=0.5, high=4, dtype="float32"), n=2, tolerance=1e-4)  # XLA stays in float32
for _from in (floats(2, 3), floats(3, dtype="float32"), integers(2, 3), booleans(3), complexes(2, 2)):
    for _to in ("float64", "float32", "int32", "int64", "bool", "complex64"):
        add("astype", _from, dtype=np.dtype(_to))

# Reductions and everything else along an axis

for _name in ("sum", "prod", "max", "min"):
    add(_name, floats(2, 3, 4))
    add(_name, floats(2, 3, 4), axis=1)
    add(_name, floats(2, 3, 4), axis=(0, -1), keepdims=True)
    add(_name, floats(2, 3, dtype="float32"), axis=-1)
    add(_name, integers(2, 3), axis=0)
    add(_name, floats())
    add(_name, floats(0, 3), axis=0)
add("sum", complexes(2, 3), axis=0)
add("prod", complexes(2, 3), axis=0)
for _name in ("any", "all"):
    add(_name, booleans(2, 3, 4))
    add(_name, booleans(2, 3, 4), axis=(0, 2))
    add(_name, booleans(2, 3), axis=-1, keepdims=True)
for _name in ("argmax", "argmin"):
    add(_name, floats(2, 3, 4), axis=1)
    add(_name, integers(3, 4, low=0, high=2), axis=-1, keepdims=True)
for _name in ("cumsum", "cumprod"):
    add(_name, floats(2, 3, 4), axis=1)
    add(_name, floats(2, 3), axis=-1, exclusive=True)
    add(_name, floats(4), axis=0, reverse=True)
    add(_name, integers(2, 3), axis=0, exclusive=True, reverse=True)
    add(_name, floats(2, 0), axis=1, exclusive=True)
for _name in ("sort", "argsort"):
    add(_name, floats(2, 3, 4), axis=1)
    add(_name, integers(2, 6, low=0, high=3), axis=-1)
add("flip", floats(2, 3, 4), axis=(0, -1))
add("flip", floats(2, 3), axis=1)

# Shape

add("reshape", floats(2, 3, 4), shape=(4, 6))
add("reshape", floats(2, 3, 4), shape=(-1, 2))
add("reshape", floats(1), shape=())
add("reshape", floats(0, 3), shape=(0, 5))
add("transpose", floats(2, 3, 4), axes=(2, 0, 1))
add("transpose", floats(2, 3, 4), axes=(-1, 0, 1))
add("transpose", floats(2, 3, 4), axes=None)
for _name in ("matrix_transpose", "adjoint"):
    add(_name, floats(2, 3))
    add(_name, complexes(2, 3, 4))
add("expand_dims", floats(2, 3), axis=1)
add("expand_dims", floats(2, 3), axis=-1)
add("expand_dims", floats(2, 3), axis=(0, -1))
add("squeeze", floats(2, 1, 3, 1), axis=(1, -1))
add("squeeze", floats(1, 2), axis=(0,))
add("broadcast_to", floats(3), shape=(2, 3))
add("broadcast_to", floats(2, 1), shape=(4, 2, 3))
add("broadcast_to", floats(), shape=(2,))
add("broadcast_to", floats(1, 5), shape=(2000, 5))
add("concatenate", floats(2, 3), floats(2, 1), floats(2, 2), axis=1)
add("concatenate", integers(2), integers(3), axis=-1)
add("stack", floats(2, 3), floats(2, 3), axis=0)
add("stack", floats(2, 3), floats(2, 3), axis=-1)
add("stack", floats(), floats(), axis=0)
add("tile", floats(2, 3), repeats=(2, 1))
add("tile", integers(2), repeats=(3,))
add("pad", floats(2, 3), widths=((1, 0), (0, 2)))
add("pad", integers(2), widths=((2, 1),), value=7)
add("roll", floats(2, 3, 4), shift=2, axis=1)
add("roll", floats(2, 3), shift=(1, -1), axis=(0, -1))
add("repeat", floats(2, 3), repeats=2, axis=1)
add("repeat", floats(2, 3), repeats=(2, 0, 1), axis=-1)

# Indexing

_INDICES = [
    ((4, 3), (1,)), ((4, 3), (slice(1, None, 2),)), ((4, 3), (slice(None), -1)), ((4, 3), (slice(None, None, -1), None)),
    ((2, 4, 3), (Ellipsis, 0)), ((4,), (2,)), ((2, 4, 3), (1, Ellipsis, slice(0, 2))), ((4, 3), ()), ((4, 3), (slice(2, 2),)),
]  # fmt: skip
for _shape, _index in _INDICES:
    add("getitem", floats(*_shape), index=_index)
    add("put_slice", floats(*np.empty(_shape)[_index].shape), index=_index, shape=_shape)
add("getitem", booleans(3), index=(0,))
for _name, _extra in (("take", False), ("take_transpose", True)):
    for _shape, _positions, _axis, _batch in [
        ((4, 3), (2,), 0, 0), ((2, 4, 3), (2, 5), 1, 0), ((2, 4), (), 1, 0),
        ((2, 4, 3), (2, 5), 1, 1), ((2, 3, 4), (2, 2), 2, 1), ((2, 3, 4), (2, 3, 2, 2), 2, 2),
    ]:  # fmt: skip
        _n = _shape[_axis]
        _result = (*_shape[:_axis], *_positions[_batch:], *_shape[_axis + 1 :])
        _at = integers(*_positions, low=0, high=_n, dtype="int64")
        if _extra:
            add(_name, floats(*_result), _at, axis=_axis, batch_dims=_batch, shape=_shape)
        else:
            add(_name, floats(*_shape), _at, axis=_axis, batch_dims=_batch)
add("take", integers(4), integers(2, low=0, high=4), axis=0)
for _axis in (1, -1, 0):
    _at = integers(3, 4, low=0, high=3)
    add("take_along_axis", floats(3, 4), _at, axis=_axis)
    add("along_axis_transpose", floats(3, 4), _at, axis=_axis, shape=(3, 4))
add("take_along_axis", floats(3, 4), integers(1, 2, low=0, high=4), axis=1)
add("along_axis_transpose", floats(3, 2), integers(1, 2, low=0, high=4), axis=1, shape=(3, 4))
for _at, _shape in [((5, 2), (3, 4)), ((5, 1), (3, 4)), ((2, 2, 2), (3, 4, 2)), ((2,), (3, 4)), ((3, 0), (2,))]:
    _index = integers(*_at, low=0, high=3, dtype="int64")
    add("gather_nd", floats(*_shape), _index)
    add("scatter_nd", floats(*_at[:-1], *_shape[_at[-1] :]), _index, shape=_shape)
add("one_hot", integers(4, low=-1, high=4), depth=3, dtype=np.dtype("float32"))
add("one_hot", integers(low=0, high=3, dtype="uint8"), depth=300, dtype=np.dtype("float64"))

# Contractions

add("matmul", floats(2, 3), floats(3, 4))
add("matmul", floats(5, 2, 3), floats(3, 4))
add("matmul", floats(2, 3), floats(5, 3, 4))
add("matmul", floats(2, 1, 2, 3), floats(5, 3, 4))
add("matmul", floats(2, 3, dtype="float32"), floats(3, 4, dtype="float32"), tolerance=1e-5)
add("matmul", floats(2, 3, dtype="float16"), floats(3, 4, dtype="float16"), tolerance=2e-3)
add("matmul", complexes(2, 3), complexes(3, 2))
for _number in (floats, complexes):
    add("adjoint_matmul", _number(3, 2), _number(3, 4))
    add("adjoint_matmul", _number(3, 2), _number(3, 1))
    add("adjoint_matmul", _number(2, 1, 3, 2), _number(5, 3, 4))
    add("matmul_adjoint", _number(2, 3), _number(4, 3))
    add("matmul_adjoint", _number(5, 2, 3), _number(4, 3))
    add("matmul_adjoint", _number(2, 1, 2, 3), _number(5, 4, 3))
add("adjoint_matmul", floats(3, 2, dtype="float16"), floats(3, 4, dtype="float16"), tolerance=2e-3)
add("adjoint_matmul", integers(3, 2), integers(3, 4))
add("matmul_adjoint", floats(2, 3, dtype="float16"), floats(4, 3, dtype="float16"), tolerance=2e-3)
add("matmul_adjoint", integers(2, 3), integers(4, 3))
add("matmul", integers(2, 3, low=0, high=9000, dtype="int16"), integers(3, 2, low=0, high=9000, dtype="int16"))
add("einsum", floats(2, 3), floats(3, 4), equation="ij,jk->ki")
add("einsum", floats(3, 3), equation="ii->i")
add("einsum", floats(2, 3, 4), equation="ijk->k")
add("einsum", floats(2, 3), floats(3), floats(3, 2), equation="ij,j,jk->ik")
add("einsum", complexes(2), complexes(3), equation="i,j->ij")
add("einsum", floats(2, 3, dtype="float16"), floats(3, 4, dtype="float16"), equation="ij,jk->ki", tolerance=2e-3)

add_convolutions(add, floats, integers)

# Attention

for _causal, _masked, _dtype in (
    (False, False, "float64"), (True, False, "float64"), (True, True, "float64"), (False, True, "float32"),
):  # fmt: skip
    _arrays = [floats(2, n, 3, 4, dtype=_dtype) for n in (5, 6, 6)]
    _masks = [booleans(1, 3, 5, 6).astype(_dtype)] if _masked else []
    _options = {"scale": 0.5, "causal": _causal, "tolerance": 1e-12 if _dtype == "float64" else 1e-5}
    add("attention", *_arrays, *_masks, **_options)
    add("attention_gradient", floats(2, 5, 3, 4, dtype=_dtype), *_arrays, *_masks, **_options)

# Creation and inspection

add("zeros", shape=(2, 3), dtype=np.dtype("int64"))
add("ones", shape=(), dtype=np.dtype("float64"))
add("full", shape=(2,), value=1.5, dtype=np.dtype("float32"))
add("arange", start=1, stop=8, step=2, dtype=np.dtype("int32"))
add("arange", start=0.0, stop=1.0, step=0.1, dtype=np.dtype("float64"))
add("eye", rows=2, columns=3, dtype=np.dtype("complex64"))
add("shape", floats(2, 3))
add("dtype", floats(2, 3, dtype="float32"))


FIRST = list({sample.name: sample for sample in reversed(SAMPLES)}.values())[::-1]
"""One sample of each function, for what takes a compilation each."""


def assert_same(received: Any, expected: Any, tolerance: float | None = None) -> None:
    """Equal dtype and shape, and values to rounding; of several results each."""
    if isinstance(expected, tuple):
        assert isinstance(received, tuple)
        assert len(received) == len(expected)
        for one, other in zip(received, expected):
            assert_same(one, other, tolerance)
        return
    received, expected = np.asarray(received), np.asarray(expected)
    assert received.dtype == expected.dtype
    assert received.shape == expected.shape
    if expected.dtype.kind in "fc":
        single = expected.dtype in (np.float32, np.complex64)
        rtol = tolerance or (2e-6 if single else 1e-12)
        np.testing.assert_allclose(received, expected, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(received, expected)

add_transforms(add, floats, complexes)
add_linear_algebra(add, floats, complexes)
