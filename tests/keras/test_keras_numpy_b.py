"""Keras's array functions beyond Keras's own tests: moving, picking, reducing, statistics.

Derivatives against numerical ones, compiled = eager, NumPy's answers over drawn arguments, half precision, bad input.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape import keras
from gradtape.testing import check_gradients

ops = keras.ops


def spread(*shape: int) -> np.ndarray:
    """Values that differ by enough for a numerical derivative, whatever order they are put in."""
    count = int(np.prod(shape))
    return (np.random.default_rng(count).permutation(count) - 0.4 * count).reshape(shape) / count + 0.03


X = spread(3, 4)
HOLES = np.zeros((3, 4), bool)
HOLES[[0, 1, 1], [1, 3, 0]] = True
ROW, SHORT = spread(6), spread(3)
MASK = X > 0
COLUMNS = np.array([[0, -1], [2, 2], [1, -4]])


def gaps(x):
    """x with NaN in its holes, whatever is differentiated."""
    return ops.where(HOLES, np.nan, x)


# Name: function, arguments that it is differentiated by
SMOOTH = {
    "view": (lambda x: ops.reshape(ops.expand_dims(ops.squeeze(x[None], 0), (0, -1)), (2, -1)), [X]),
    "order": (lambda x: ops.swapaxes(ops.moveaxis(ops.transpose(x, (-1, 0)), 0, 1), 0, 1), [X]),
    "flip": (lambda x: ops.flip(x, axis=1) + ops.flipud(x) * ops.fliplr(x), [X]),
    "rot90": (lambda x: ops.rot90(x, 3), [X]),
    "roll": (lambda x: ops.roll(x, 5) + ops.roll(x, (1, 2), axis=(0, 1)), [X]),
    "join": (lambda x, y: ops.concatenate([ops.hstack([x, y]), ops.stack([x, y], -1)[..., 0]], axis=-1), [X, X * 2]),
    "append": (lambda x, y: ops.append(x, y) * ops.reshape(ops.dstack([x, y]), -1), [X, X * 2]),
    "split": (lambda x: [p * p for p in ops.split(x, 2, axis=-1) + ops.split(x, [1, 3], axis=1)], [X]),
    "array_split": (lambda x: [p * p for p in ops.array_split(x, 3, axis=1)], [X]),
    "split at indices that go back": (lambda x: [p * p for p in ops.split(x, [3, 1], axis=1)], [X]),
    "tile": (lambda x: ops.tile(x, (2, 1, 2)), [X]),
    "repeat": (lambda x: ops.repeat(x, [2, 0, 1], axis=0), [X]),
    "pad": (lambda x, c: ops.pad(x, ((1, 2), (0, 1)), constant_values=c), [X, np.array(0.3)]),
    "pad reflect": (lambda x: ops.pad(x, ((2, 1), (3, 0)), "reflect"), [X]),
    "take": (lambda x: ops.take(x, [[0, -1], [2, 2]], axis=1), [X]),
    "take_along_axis": (lambda x: ops.take_along_axis(x, COLUMNS, axis=1), [X]),
    "select": (lambda x, y: ops.select([MASK, X < -0.2], [x, y * x], default=3), [X, X * 2]),
    "diagonals": (lambda x: [ops.diagonal(x, 1), ops.diag(x), ops.diagflat(x, -1), ops.trace(x, 1)], [X]),
    "sort": (lambda x: ops.sort(x, axis=0) * X, [X]),
    "bincount": (lambda w: ops.bincount(np.array([1, 4, 1]), weights=w), [SHORT]),
    "unique": (lambda x: ops.unique(x, size=15, fill_value=2.0), [X]),
    "sum": (lambda x: ops.sum(x * x, axis=[0]) + ops.mean(x * x, axis=-2), [X]),
    "prod": (lambda x: [ops.prod(x, axis=1), ops.cumprod(x, axis=0), ops.cumsum(x)], [X]),
    "extremes": (lambda x: [ops.max(x, axis=0, initial=0.1), ops.amin(x), ops.max(x, axis=1) - ops.min(x, axis=1)], [X]),
    "average": (lambda x, w: ops.average(x, axis=1, weights=w), [X, np.array([0.3, 0.4, 1.1, 0.2])]),
    "nansum": (lambda x: [f(gaps(x), axis=1) for f in (ops.nansum, ops.nanprod, ops.nancumsum)], [X]),
    "nanmean": (lambda x: [f(gaps(x), axis=1) for f in (ops.nanmean, ops.nanmax, ops.nanmin)], [X]),
    "var": (lambda x: [ops.var(x, axis=0), ops.std(x, axis=-1, keepdims=True)], [X]),
    "nanvar": (lambda x: [ops.nanvar(gaps(x)), ops.nanstd(gaps(x), axis=1)], [X]),
    "quantile": (lambda x, q: ops.quantile(x, q, axis=1), [X, np.array([0.1, 0.77])]),
    "nanquantile": (lambda x, q: ops.nanquantile(gaps(x), q, axis=0), [X, np.array([0.1, 0.77])]),
    "median": (lambda x: [ops.median(x, axis=0), ops.nanmedian(x, axis=1, keepdims=True)], [X]),
    "corrcoef": (ops.corrcoef, [X]),
    "correlate": (lambda x, y: [ops.correlate(x, y, "full"), ops.correlate(y, x, "same")], [ROW, SHORT]),
    "diff": (lambda x: ops.diff(x * x, n=2, axis=0), [X]),
    "trapezoid": (lambda y, x: ops.trapezoid(y, x, axis=1) + ops.trapezoid(y, dx=0.5), [X, X[0]]),
    "vectorize": (lambda x, y: ops.vectorize(ops.dot, signature="(n),(n)->()")(x, y), [X, X[0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    function, arguments = SMOOTH[name]
    check_gradients(function, arguments, order=1)


@pytest.mark.parametrize("name", ["prod", "nanvar", "quantile", "corrcoef"])
def test_second_derivatives(name):
    function, arguments = SMOOTH[name]
    check_gradients(function, arguments, order=2)


# Functions of values, which a compiled program meets before it has them
TRACED = {
    "take": (lambda x, i: ops.take(x, i, axis=1), [X, np.array([0, -1, 3], np.int8)]),
    "take_along_axis": (lambda x, i: ops.take_along_axis(x, i, axis=1), [X, COLUMNS]),
    "unravel_index": (lambda i: ops.unravel_index(i, (3, 4)), [np.array([0, 11, -1])]),
    **{f"searchsorted {side}": (
        lambda x, v, side=side: ops.searchsorted(x, v, side),
        [np.array([-0.2, 0.0, 0.0, 0.3, np.nan]), np.array([0.0, 1.0, np.nan])],
    ) for side in ("left", "right")},
    "digitize": (ops.digitize, [X, np.sort(ROW)]),
    "isin": (ops.isin, [X, X[0]]),
    "argsort": (ops.argsort, [X]),
    **{f"unique of {size}, {fill}": (
        lambda x, size=size, fill=fill: ops.unique(x, False, True, True, True, size=size, fill_value=fill), [COLUMNS],
    ) for size, fill in ((3, None), (8, None), (8, 9))},
    "nanargmax": (lambda x: ops.nanargmax(x, axis=0), [np.where(X[0] > 0, X, np.nan)]),
    "histogram": (lambda x: ops.histogram(x, bins=4), [ROW]),
    "histogram of one number": (lambda x: ops.histogram(x, bins=3), [np.ones(5)]),
    "count": (lambda x: [ops.count_nonzero(x > 0, axis=1), ops.any(x), ops.all(x, axis=0)], [X]),
    "pad": SMOOTH["pad"],
    "select": SMOOTH["select"],
    "nanquantile": SMOOTH["nanquantile"],
    "quantile": SMOOTH["quantile"],
    "vectorize": SMOOTH["vectorize"],
    "correlate": SMOOTH["correlate"],
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_compiled_is_eager(name):
    pytest.importorskip("jax")
    function, arguments = TRACED[name]
    arguments = [tf.convert_to_tensor(a) for a in arguments]
    for eager, compiled in zip(tf.nest.flatten(function(*arguments)), tf.nest.flatten(tf.function(function)(*arguments))):
        assert eager.dtype == compiled.dtype
        np.testing.assert_allclose(eager, compiled, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name, (_, arguments) in SMOOTH.items() if arguments[0] is X and name != "unique"])
def test_vectorized_is_looped(name):
    function, (first, *others) = SMOOTH[name]
    rows = np.stack([first, np.flip(first), first[::-1] * 2])
    whole = tf.vectorized_map(lambda x: function(x, *others), tf.constant(rows), fallback_to_while_loop=False)
    for i, row in enumerate(rows):
        for one, all_of_them in zip(tf.nest.flatten(function(tf.constant(row), *others)), tf.nest.flatten(whole), strict=True):
            np.testing.assert_allclose(all_of_them[i], one, rtol=1e-12)


# NumPy's answers

numbers = st.sampled_from([-2.0, -0.5, 0.0, 1.0, 1.5, 3.0, np.nan])
matrices = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=1, max_size=4).map(np.array)
)
METHODS = ["linear", "lower", "higher", "midpoint"]


@given(matrices, st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.6, 1.0]), min_size=1, max_size=3), st.sampled_from(METHODS),
       st.sampled_from([None, 0, 1, (0, 1)]), st.booleans())  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of rows that are all NaN
def test_quantiles_are_numpys(x, q, method, axis, keepdims):
    for ours, theirs in ((ops.quantile, np.quantile), (ops.nanquantile, np.nanquantile)):
        found, wanted = (f(x, q, axis=axis, method=method, keepdims=keepdims) for f in (ours, theirs))
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@given(matrices, st.sampled_from([None, 0, -1]), st.booleans())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_without_nan_are_numpys(x, axis, keepdims):
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "median"):
        found = getattr(ops, f"nan{name}")(x, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(found, getattr(np, f"nan{name}")(x, axis=axis, keepdims=keepdims), rtol=1e-12, atol=1e-15)


@given(st.integers(1, 7), st.integers(1, 7), st.sampled_from(["valid", "same", "full"]))
def test_correlate_is_numpys(n, m, mode):
    x, y = spread(n), spread(m) * (1 + 1j)
    np.testing.assert_allclose(ops.correlate(x, y, mode), np.correlate(x, y, mode), rtol=1e-12, atol=1e-14)


pairs = st.tuples(st.integers(0, 6), st.integers(0, 6))
widths = st.one_of(st.lists(pairs, min_size=2, max_size=2), st.lists(pairs, min_size=1, max_size=1), pairs, st.integers(0, 6))


@given(widths, st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean"]))
def test_pad_is_numpys(width, mode):
    np.testing.assert_allclose(ops.pad(X, width, mode), np.pad(X, width, mode), rtol=1e-12)


@given(st.integers(1, 6), st.lists(st.integers(-6, 6), min_size=1, max_size=3), st.sampled_from([0, 1, -1]))
def test_splits_are_numpys(parts, cuts, axis):
    found = ops.array_split(X, parts, axis=axis) + ops.split(X, cuts, axis=axis)
    wanted = np.array_split(X, parts, axis=axis) + np.split(X, cuts, axis=axis)
    assert [p.shape for p in found] == [p.shape for p in wanted]
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(a, b)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(1, 6), st.sampled_from([None, 9]))
def test_unique_has_the_size_asked_for(row, size, fill):
    values, first, inverse, counts = ops.unique(
        np.array(row), return_index=True, return_inverse=True, return_counts=True, size=size, fill_value=fill
    )
    distinct, number = np.unique(row, return_counts=True)
    filling = distinct[0] if fill is None else fill
    padded = [*distinct, *[filling] * size][:size]
    assert values.numpy().tolist() == padded
    assert counts.numpy().tolist() == [*number, *[0] * size][:size]
    assert np.array(row)[first.numpy()][: distinct.size].tolist() == padded[: distinct.size]
    assert distinct[inverse.numpy()].tolist() == row


@settings(max_examples=20)
@given(st.sampled_from(["int8", "int64", "float32", "float64", "bool"]), st.sampled_from(["uint8", "int32", "float32"]))
def test_isin_is_numpys(one, other):
    x, y = (np.array([[-1, 0, 1], [2, 3, 200]]).astype(one), np.array([1, 200, 0]).astype(other))
    np.testing.assert_array_equal(ops.isin(x, y), np.isin(x, y))
    np.testing.assert_array_equal(ops.isin(x, y[:0], invert=True), np.isin(x, y[:0], invert=True))


# Half precision


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_single(dtype):
    x = ops.cast(np.tile([300.0, -300.0], 4000), dtype)  # neither the squares nor the count fit
    assert float(ops.std(x)) == float(ops.nanstd(x)) == 300
    assert float(ops.mean(ops.abs(x))) == float(ops.nanmean(ops.abs(x))) == 300
    assert float(ops.quantile(x, 0.75)) == float(ops.median(ops.abs(x))) == 300
    results = ops.var(x / 300), ops.nanvar(x / 300), ops.quantile(x, [0.5]), ops.cumsum(x), ops.average(x)
    assert {r.dtype.name for r in results} == {dtype}


def test_wide_types_stay_wide():
    x = tf.constant([[3, 1], [2, 5]], tf.int64)
    assert [f(x).dtype.name for f in (ops.sum, ops.prod, ops.cumsum, ops.max, ops.sort)] == ["int64"] * 5
    assert int(ops.sum(x * 2**40)) == 11 * 2**40
    assert ops.argmax(x).dtype.name == ops.argsort(x).dtype.name == "int32"
    assert ops.var(ops.cast(x, "float64")).dtype.name == "float64"


# Bad input

BAD = {
    "axis of a sum": (ValueError, lambda: ops.sum(X, axis=2)),
    "axis of argmax": (ValueError, lambda: ops.argmax(X, axis=-3)),
    "order of axes": (ValueError, lambda: ops.transpose(tf.constant(X), (0, 0))),
    "length that is not 1": (ValueError, lambda: ops.squeeze(tf.constant(X), 1)),
    "broadcast": (ValueError, lambda: ops.broadcast_to(tf.constant(X), (3, 5))),
    "parts": (ValueError, lambda: ops.split(tf.constant(X), 3, axis=1)),
    "no parts": (ValueError, lambda: ops.array_split(tf.constant(X), 0)),
    "nothing to join": (ValueError, lambda: ops.concatenate([])),
    "stack of different shapes": (ValueError, lambda: ops.stack([tf.constant(X), tf.constant(X[0])])),
    "index outside": (tf.errors.InvalidArgumentError, lambda: ops.take(X, [0, 3], axis=0)),
    "index outside, from the end": (tf.errors.InvalidArgumentError, lambda: ops.take_along_axis(X, [[-5]], axis=1)),
    "place outside": (tf.errors.InvalidArgumentError, lambda: ops.unravel_index(tf.constant([12]), (3, 4))),
    "index of floats": (TypeError, lambda: ops.take(X, [0.5], axis=0)),
    "border of two values": (ValueError, lambda: ops.pad(tf.constant(X), 1, constant_values=tf.constant([1.0, 2.0]))),
    "mode of padding": (ValueError, lambda: ops.pad(tf.constant(X), ((1, 1),), "linear")),
    "method of quantiles": (ValueError, lambda: ops.quantile(tf.constant(X), 0.5, method="best")),
    "quantile beyond 1": (ValueError, lambda: ops.quantile(X, 1.5)),
    "percentile below 0": (ValueError, lambda: ops.nanpercentile(X, [-1.0, 50.0])),
    "median of nothing": (ValueError, lambda: ops.median(np.zeros((0, 3)))),
    "negative counts": (ValueError, lambda: ops.bincount(np.array([-1, 2]))),
    "weights": (ValueError, lambda: ops.average(tf.constant(X), weights=tf.constant(X[0]))),
    "signature": (ValueError, lambda: ops.vectorize(abs, signature="n->n")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    kind, call = BAD[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "ptp", "nanmax"])
@pytest.mark.parametrize(("lengths", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), (0, 1)), ((0, 0), -1)])
def test_there_is_no_extreme_of_nothing(name, lengths, axis):
    for dtype in ("float32", "int32") if name == "nanmax" or name == "ptp" else ("float32", "int32", "bool"):
        with pytest.raises(ValueError, match="zero-size array to reduction operation"):
            getattr(ops, name)(np.ones(lengths, dtype), axis=axis)


def test_extremes_of_empty_arrays_that_exist():
    empty = np.ones((0, 3), "float32")
    assert ops.max(empty, axis=1).shape == ops.min(empty, axis=-1).shape == (0,)
    assert np.array(ops.max(empty, axis=0, initial=-1.0)).tolist() == [-1.0] * 3
