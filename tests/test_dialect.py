"""Every namespace implements exactly the dialect, and all of them mean the same by it."""

from __future__ import annotations

import types

import every_op  # noqa: F401
import numpy as np
import pytest
from dialect_samples import FIRST, SAMPLES, Sample, assert_same

from gradtape.values.batched import BATCHED
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import dialect
from gradtape.xp import numpy as NUMPY

each = pytest.mark.parametrize("sample", SAMPLES, ids=str)
INSPECTION = set(dialect.INSPECTION)


@pytest.fixture(scope="module")
def JAX():
    pytest.importorskip("jax")
    from gradtape.xp import jax

    return jax


def public(namespace) -> set[str]:
    names = vars(namespace) if isinstance(namespace, types.ModuleType) else {**vars(type(namespace)), **vars(namespace)}
    kept = (staticmethod, types.FunctionType)
    return {
        name for name, value in names.items()
        if not name.startswith("_") and (callable(value) or isinstance(value, kept))
        and (name == "scope" or not isinstance(value, type))
    }  # fmt: skip


@pytest.mark.tiny
def test_the_list_has_no_duplicates():
    assert len(set(dialect.NAMES)) == len(dialect.NAMES)


@pytest.mark.tiny
@pytest.mark.parametrize("namespace", [NUMPY, RECORDED, BATCHED], ids=["NUMPY", "RECORDED", "BATCHED"])
def test_a_namespace_is_the_list_and_a_scope(namespace):
    assert public(namespace) == {*dialect.NAMES, "scope"}


def test_the_jax_namespace_is_the_list_and_a_scope(JAX):
    assert public(JAX) == {*dialect.NAMES, "scope"}


@pytest.mark.tiny
def test_every_function_has_samples():
    assert {sample.name for sample in SAMPLES} == set(dialect.NAMES)


def expected(sample: Sample):
    with NUMPY.scope():
        return getattr(NUMPY, sample.name)(*sample.arrays, **sample.attributes)


def parts(result) -> tuple:
    """The results of a function that may have several."""
    return result if type(result) is tuple else (result,)


@pytest.mark.tiny
@each
def test_recorded_is_numpy(sample):
    result = getattr(RECORDED, sample.name)(*map(wrap, sample.arrays), **sample.attributes)
    if sample.name in INSPECTION:
        assert result == expected(sample)
    else:
        assert all(type(part) is Tensor for part in parts(result))
        assert_same(tuple(t._array for t in result) if type(result) is tuple else result._array, expected(sample))


@pytest.mark.parametrize("sample", FIRST, ids=str)
def test_jax_is_numpy(sample, JAX):
    import jax

    function = getattr(JAX, sample.name)
    with JAX.scope():
        result = function(*map(jax.numpy.asarray, sample.arrays), **sample.attributes)
        if sample.name in INSPECTION:
            assert result == expected(sample)
            return
        assert all(isinstance(part, jax.Array) for part in parts(result))
        assert_same(result, expected(sample), sample.tolerance)
        # Rules make small constants with NumPy and hand them to whatever namespace they are given.
        assert_same(function(*sample.arrays, **sample.attributes), expected(sample), sample.tolerance)


@pytest.mark.parametrize("name", [name for name in dialect.NAMES if name not in INSPECTION])
def test_compiled_jax_is_numpy(name, JAX, compiled_quickly):
    """All samples of a function in one program: compiling takes the time."""
    import jax

    samples = [sample for sample in SAMPLES if sample.name == name]
    with JAX.scope():
        function = lambda inputs: [getattr(JAX, name)(*x, **s.attributes) for x, s in zip(inputs, samples)]
        compiled = jax.jit(function, compiler_options=compiled_quickly)
        for sample, result in zip(samples, compiled([sample.arrays for sample in samples]), strict=True):
            assert_same(result, expected(sample), sample.tolerance)


POLES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e300, -1e300, 1e-300, -2.5, 710.0]
WHOLE = ("logical", "bitwise", "shift", "gcd")
FLOATING = [name for name in (*dialect.UNARY, *dialect.BINARY) if not any(part in name for part in WHOLE)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FLOATING)
def test_poles_and_extremes(name, dtype, JAX, compiled_quickly):
    import jax

    with JAX.scope(), NUMPY.scope():
        x = np.array(POLES).astype(dtype)
        arguments = (x,) if name in dialect.UNARY else tuple(np.meshgrid(x, x))
        reference = np.asarray(getattr(NUMPY, name)(*arguments))
        result = np.asarray(jax.jit(getattr(JAX, name), compiler_options=compiled_quickly)(*arguments))
        same = np.isclose(result, reference, rtol=1e-4, atol=1e-6 if dtype == "float32" else 1e-14, equal_nan=True)
        if name == "lgamma":  # +inf at -inf, as TensorFlow; SciPy says -inf
            same |= x == -np.inf
        if name == "digamma":  # nan at 0, as TensorFlow; SciPy says ∓inf
            same |= x == 0
    assert same.all(), [tuple(a[~same][:5] for a in arguments), reference[~same][:5], result[~same][:5]]


def test_half_precision_stays(JAX):
    from gradtape import bfloat16

    for dtype in (np.dtype("float16"), bfloat16.numpy):
        x = np.array([[1.5, 2.0], [3.0, 0.25]], dtype)
        with JAX.scope():
            for name in ("tanh", "sigmoid", "lgamma", "rsqrt", "softplus", "sum", "max", "square", "conj"):
                result, reference = getattr(JAX, name)(jax_array(x)), getattr(NUMPY, name)(x)
                assert result.dtype == reference.dtype == dtype
                np.testing.assert_allclose(*(np.asarray(a, "float64") for a in (result, reference)), rtol=1e-2)
            assert_same(JAX.matmul(jax_array(x), jax_array(x)).astype("float32"), NUMPY.matmul(x, x).astype("float32"), 1e-2)


def jax_array(x):
    import jax

    return jax.numpy.asarray(x)


def test_indices_out_of_range_on_jax(JAX):
    """XLA cannot raise: nan is read, nothing is written. Negative indices are out of range, except along an axis."""
    x, ones = np.arange(4.0), np.ones(2)
    with JAX.scope():
        at = jax_array(np.array([-1, 7]))
        for read in (JAX.take(x, at, axis=0), JAX.gather_nd(x, at[:, None])):
            np.testing.assert_array_equal(read, [np.nan, np.nan])
        for written in (JAX.take_transpose(ones, at, axis=0, shape=(4,)), JAX.scatter_nd(ones, at[:, None], shape=(4,))):
            np.testing.assert_array_equal(written, [0, 0, 0, 0])
        np.testing.assert_array_equal(JAX.take_along_axis(x, at, axis=0), [3.0, np.nan])
        np.testing.assert_array_equal(JAX.along_axis_transpose(ones, at, axis=0, shape=(4,)), [0, 0, 0, 1])
        with pytest.raises(IndexError):
            JAX.getitem(x, index=(7,))
        with pytest.raises(IndexError):
            JAX.put_slice(np.ones(()), index=(7,), shape=(4,))


@pytest.mark.parametrize("name", ["NUMPY", "JAX"])
def test_what_is_refused(name, JAX):
    xp = {"NUMPY": NUMPY, "JAX": JAX}[name]
    with JAX.scope():
        with pytest.raises(ValueError, match="ndims must be >= 2"):
            xp.matmul(np.ones(2), np.ones((2, 2)))
        with pytest.raises(ValueError, match="Matrix size-incompatible"):
            xp.matmul(np.ones((2, 3)), np.ones((2, 3)))
        with pytest.raises(TypeError, match="complex128 is not in the list of allowed values"):
            xp.less(np.ones(2, complex), np.ones(2, complex))


@pytest.mark.filterwarnings("error")
def test_sigmoid_of_many_numbers_is_as_good_as_of_few():
    x = np.concatenate([np.linspace(-110, 110, 4096), [np.inf, -np.inf, np.nan, -0.0, 1e30, -1e30]]).astype(np.float32)
    few = np.concatenate([NUMPY.sigmoid(part) for part in np.array_split(x, 50)])
    np.testing.assert_allclose(NUMPY.sigmoid(x), few, rtol=5e-7, atol=1e-37)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (512, 1), (513, 2), (4097, 3)])
def test_sums_are_sums_whatever_their_layout(shape, axis, dtype):
    whole = np.random.default_rng(0).normal(size=(2 * shape[0], 3 * shape[1])).astype(dtype)
    views = [whole[: shape[0], : shape[1]], whole[::2, ::3], whole[::-2, ::-3], np.broadcast_to(whole[0, 0], shape)]
    for x in [*views, *(np.asfortranarray(v) for v in views)]:
        right = x.astype(np.longdouble).sum(axis=axis)
        count = x.size if axis is None else len(x)  # each addition may be off by half of the last bit
        tolerance = np.finfo(dtype).eps * np.abs(x).astype(np.longdouble).sum(axis=axis).max() * count / 2
        np.testing.assert_allclose(NUMPY.sum(x, axis=axis), right, rtol=0, atol=tolerance)
