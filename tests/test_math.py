"""`tf.math`: values and dtypes against NumPy and SciPy, gradients, and the edge values of table C10."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as tf
from gradtape import errors, math, toplevel
from gradtape.testing import check_gradients

pytestmark = pytest.mark.tiny

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4))
POSITIVE = np.abs(REAL) + 0.5
UNIT = RNG.uniform(-0.9, 0.9, (3, 4))


def gradients(function, *values):
    sources = [tf.constant(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        target = function(*sources)
    return [None if g is None else g.numpy().tolist() for g in tape.gradient(target, sources)]


UNARY = {
    "abs": (np.abs, REAL), "acos": (np.arccos, UNIT), "acosh": (np.arccosh, POSITIVE + 1), "asin": (np.arcsin, UNIT),
    "asinh": (np.arcsinh, REAL), "atan": (np.arctan, REAL), "atanh": (np.arctanh, UNIT), "ceil": (np.ceil, REAL),
    "cos": (np.cos, REAL), "cosh": (np.cosh, REAL), "digamma": (scipy.special.digamma, POSITIVE),
    "erf": (scipy.special.erf, REAL), "erfc": (scipy.special.erfc, REAL), "erfcinv": (scipy.special.erfcinv, UNIT + 1),
    "ndtri": (scipy.special.ndtri, (UNIT + 1) / 2), "bessel_i0": (scipy.special.i0, REAL),
    "bessel_i1e": (scipy.special.i1e, REAL),
    "erfinv": (scipy.special.erfinv, UNIT), "exp": (np.exp, REAL),
    "expm1": (np.expm1, REAL), "floor": (np.floor, REAL), "lgamma": (scipy.special.gammaln, POSITIVE),
    "log": (np.log, POSITIVE), "log1p": (np.log1p, POSITIVE),
    "log_sigmoid": (scipy.special.log_expit, REAL), "negative": (np.negative, REAL),
    "reciprocal": (np.reciprocal, POSITIVE), "reciprocal_no_nan": (np.reciprocal, POSITIVE), "rint": (np.rint, REAL),
    "round": (np.round, REAL), "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE), "sigmoid": (scipy.special.expit, REAL),
    "sign": (np.sign, REAL), "sin": (np.sin, REAL), "sinh": (np.sinh, REAL), "softplus": (lambda x: np.logaddexp(x, 0), REAL),
    "sqrt": (np.sqrt, POSITIVE), "square": (np.square, REAL), "tan": (np.tan, UNIT), "tanh": (np.tanh, REAL),
    "is_finite": (np.isfinite, REAL), "is_inf": (np.isinf, REAL), "is_nan": (np.isnan, REAL),
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "truediv": np.divide,
    "floordiv": np.floor_divide, "floormod": np.mod, "mod": np.mod, "pow": np.power, "maximum": np.maximum,
    "minimum": np.minimum, "atan2": np.arctan2, "squared_difference": lambda x, y: (x - y) ** 2,
    "divide_no_nan": np.divide, "multiply_no_nan": np.multiply, "xlogy": scipy.special.xlogy,
    "xlog1py": scipy.special.xlog1py, "xdivy": np.divide, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
REDUCTIONS = {
    "reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_prod": np.prod, "reduce_max": np.max, "reduce_min": np.min,
    "reduce_std": np.std, "reduce_variance": np.var, "reduce_logsumexp": scipy.special.logsumexp,
    "reduce_euclidean_norm": lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_one_argument(name, dtype):
    reference, x = UNARY[name]
    x = x.astype(dtype)
    out = getattr(math, name)(x, name="any")
    assert out.dtype.name == reference(x).dtype.name
    np.testing.assert_allclose(out.numpy(), reference(x), rtol=2e-6 if dtype == "float32" else 1e-13, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(name, dtype):
    x, y = POSITIVE.astype(dtype), POSITIVE[::-1, :1].astype(dtype)
    out = getattr(math, name)(tf.constant(x), y, name="any")
    expected = BINARY[name](x, y)
    assert out.dtype.name == expected.dtype.name
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-6)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1,), ()])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, axis, keepdims):
    x = RNG.normal(size=(2, 3, 2))
    expected = REDUCTIONS[name](x, axis=axis, keepdims=keepdims)
    for form in (axis, list(axis) if isinstance(axis, tuple) else axis, None if axis is None else np.array(axis, np.int32)):
        out = getattr(math, name)(tf.constant(x), form, keepdims)
        assert out.shape == expected.shape
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", [*REDUCTIONS, "reduce_any", "reduce_all", "count_nonzero"])
@pytest.mark.parametrize("axis", [2, -3, [0, 5]])
def test_a_reduction_axis_out_of_range(name, axis):
    x = np.ones((2, 2), bool) if name in ("reduce_any", "reduce_all") else np.ones((2, 2))
    with pytest.raises(errors.InvalidArgumentError, match=r"Invalid reduction dimension \("):
        getattr(math, name)(x, axis=axis)


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "cumsum", "cumprod"])
def test_booleans_are_not_summed(name):
    with pytest.raises(errors.InvalidArgumentError, match="Value for attr 'T' of bool is not in the list of allowed values"):
        getattr(math, name)(tf.constant([True, False]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_the_mean_of_integers_is_its_whole_part_and_does_not_overflow(dtype):
    values = np.array([100, 100, 101], dtype)
    out = math.reduce_mean(values)
    assert out.dtype.name == dtype
    assert int(out) == 100
    assert int(math.reduce_mean(tf.constant([-1, -2]))) == -1


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_functions(exclusive, reverse):
    x = REAL
    order = slice(None, None, -1) if reverse else slice(None)

    def running(accumulate, start):
        flipped = x[:, order]
        out = accumulate(flipped, axis=1)
        if exclusive:
            out = np.concatenate([np.full((3, 1), start), out[:, :-1]], 1)
        return out[:, order]

    options = {"axis": -1, "exclusive": exclusive, "reverse": reverse}
    np.testing.assert_allclose(math.cumsum(x, **options).numpy(), running(np.cumsum, 0.0), atol=1e-15)
    np.testing.assert_allclose(math.cumprod(x, **options).numpy(), running(np.cumprod, 1.0))
    np.testing.assert_allclose(math.cumulative_logsumexp(x, **options).numpy(), running(np.logaddexp.accumulate, -np.inf))


def test_cumulative_logsumexp_neither_overflows_nor_makes_nan():
    x = tf.constant([-np.inf, -np.inf, 800.0, 801.0])
    assert math.cumulative_logsumexp(x).numpy()[:3].tolist() == [-np.inf, -np.inf, 800.0]
    assert not np.isnan(gradients(math.cumulative_logsumexp, [-np.inf, -np.inf, 800.0, 801.0])[0]).any()


# C10: edge values of backward rules


C10 = [
    ("maximum tie", lambda x, y: math.maximum(x, y), (1.0, 1.0), [1.0, 0.0]),
    ("minimum tie", lambda x, y: math.minimum(x, y), (1.0, 1.0), [1.0, 0.0]),
    ("reduce_max tie", lambda x: math.reduce_max(x), ([2.0, 2.0, 1.0],), [[0.5, 0.5, 0.0]]),
    ("reduce_min tie", lambda x: math.reduce_min(x), ([2.0, 2.0],), [[0.5, 0.5]]),
    ("abs(0)", lambda x: math.abs(x), (0.0,), [0.0]),
    ("sign", lambda x: math.sign(x), (2.0,), [0.0]),
    ("sqrt(0)", lambda x: math.sqrt(x), (0.0,), [np.inf]),
    ("sqrt(0), upstream 0", lambda x: math.sqrt(x) * 0.0, (0.0,), [0.0]),
    ("rsqrt(0), upstream 0", lambda x: math.rsqrt(x) * 0.0, (0.0,), [0.0]),
    ("log(0)", lambda x: math.log(x), (0.0,), [np.inf]),
    ("log(0), upstream 0", lambda x: math.log(x) * 0.0, (0.0,), [0.0]),
    ("where of log", lambda x: toplevel.where(math.greater(x, 0), math.log(x), 0.0), (0.0,), [0.0]),
    ("where of 1/x", lambda x: toplevel.where(math.greater(x, 0), 1 / x, 0.0), (0.0,), [0.0]),
    ("where of a power", lambda x: toplevel.where(math.greater(x, 0), x**0.5, 0.0), (0.0,), [0.0]),
    ("where of sqrt", lambda x: toplevel.where(math.greater(x, 0), math.sqrt(x), 0.0), (0.0,), [0.0]),
    ("clip inclusive", lambda x: toplevel.clip_by_value(x, 1.0, 2.0), ([0.0, 1.0, 2.0, 3.0],), [[0.0, 1.0, 1.0, 0.0]]),
    ("clip limits", lambda a, b: toplevel.clip_by_value([0.0, 1.0, 2.0, 3.0, 4.0], a, b), (1.0, 2.0), [1.0, 2.0]),
    ("pow(0, 2)", math.pow, (0.0, 2.0), [0.0, 0.0]),
    ("pow(0, 0)", math.pow, (0.0, 0.0), [np.nan, 0.0]),
    ("pow(-1, 2)", math.pow, (-1.0, 2.0), [-2.0, 0.0]),
    ("pow(0, .5)", math.pow, (0.0, 0.5), [np.inf, 0.0]),
    ("reduce_prod", lambda x: math.reduce_prod(x), ([0.0, 2.0, 3.0],), [[6.0, 0.0, 0.0]]),
    ("divide_no_nan(1, 0)", math.divide_no_nan, (1.0, 0.0), [0.0, 0.0]),
    ("multiply_no_nan(2, 0)", math.multiply_no_nan, (2.0, 0.0), [0.0, 2.0]),
    ("xlogy(0, 0)", math.xlogy, (0.0, 0.0), [0.0, 0.0]),
    ("xlog1py(0, -1)", math.xlog1py, (0.0, -1.0), [0.0, 0.0]),
    ("xdivy(0, 0)", math.xdivy, (0.0, 0.0), [0.0, 0.0]),
    ("atan2(0, 0)", math.atan2, (0.0, 0.0), [np.nan, np.nan]),
    ("floormod", math.floormod, (7.0, 2.0), [1.0, -3.0]),
    ("floordiv", math.floordiv, (7.0, 2.0), [None, None]),
    ("acos(1)", lambda x: math.acos(x), (1.0,), [-np.inf]),
    ("asin(1)", lambda x: math.asin(x), (1.0,), [np.inf]),
    ("reduce_std of equal values", lambda x: math.reduce_std(x), ([2.0, 2.0],), [[np.nan, np.nan]]),
    ("norm of zeros", lambda x: math.reduce_euclidean_norm(x), ([0.0, 0.0],), [[np.nan, np.nan]]),
    ("logsumexp of -inf", lambda x: math.reduce_logsumexp(x), ([-np.inf, 0.0],), [[0.0, 1.0]]),
    ("top_k tie", lambda x: math.top_k(x, 1).values, ([3.0, 3.0],), [[1.0, 0.0]]),
    ("cumprod, the right one", lambda x: math.cumprod(x), ([2.0, 0.0, 3.0],), [[1.0, 8.0, 0.0]]),
    ("unsorted_segment_max tie", lambda x: math.unsorted_segment_max(x, [0, 0], 1), ([3.0, 3.0],), [[0.5, 0.5]]),
    ("l2_normalize(0)", lambda x: math.l2_normalize(x), ([0.0, 0.0],), [[1e6, 1e6]]),
    ("reduce_mean of nothing", lambda x: math.reduce_mean(x), (np.zeros(0, np.float32),), [[]]),
]


@pytest.mark.parametrize(("function", "values", "expected"), [c[1:] for c in C10], ids=[c[0] for c in C10])
def test_edge_values_of_gradients_c10(function, values, expected):
    for ours, theirs in zip(gradients(function, *values), expected, strict=True):
        if theirs is None:
            assert ours is None
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_x_to_the_constant_power_0_has_gradient_0_c10():
    assert gradients(lambda x: x**0, 2.0) == [0.0]


# Sums, counts, order, segments


def test_add_n_adds_tensors_and_indexed_slices():
    rows = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([0, 0]), tf.constant([2]))
    assert math.add_n([rows, tf.constant([10.0, 20.0])]).numpy().tolist() == [13.0, 20.0]
    assert gradients(lambda x, y: math.add_n([x, y, x]), [1.0], [2.0]) == [[2.0], [1.0]]


def test_top_k_takes_the_first_of_equal_elements():
    values, indices = math.top_k([[1, 3, 3, 2], [0, 0, 0, 0]], 3)
    assert values.numpy().tolist() == [[3, 3, 2], [0, 0, 0]]
    assert indices.numpy().tolist() == [[1, 2, 3], [0, 1, 2]]
    assert indices.dtype is tf.int32


def test_argmax_defaults_to_axis_0_and_int64():
    out = math.argmax([[1, 5], [3, 2]])
    assert out.numpy().tolist() == [1, 0]
    assert out.dtype is tf.int64
    assert math.argmin([[1, 5], [3, 2]], axis=-1, output_type=tf.int32).dtype is tf.int32


@pytest.mark.parametrize(
    ("how", "reference"), {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}.items()
)
def test_segments(how, reference):
    x = RNG.normal(size=(7, 2))
    ids = np.array([0, 0, 1, 1, 1, 3, 3])
    expected = [reference(x[ids == i], axis=0) if i != 2 else np.full(2, float(how == "prod")) for i in range(4)]
    np.testing.assert_allclose(getattr(math, f"segment_{how}")(x, ids).numpy(), expected)
    order = RNG.permutation(7)
    shuffled = getattr(math, f"unsorted_segment_{how}")(x[order], ids[order], 4).numpy()
    np.testing.assert_allclose(np.delete(shuffled, 2, 0), np.delete(expected, 2, 0))


def test_rows_with_negative_ids_are_left_out():
    out = math.unsorted_segment_sum(np.arange(6.0).reshape(3, 2), [1, -1, 1], 2)
    assert out.numpy().tolist() == [[0, 0], [4, 6]]
    assert gradients(lambda x: math.unsorted_segment_max(x, [0, -1, 0], 1), [1.0, 9.0, 2.0]) == [[0.0, 0.0, 1.0]]


def test_counts():
    assert math.bincount([1, 1, 3]).numpy().tolist() == [0, 2, 0, 1]
    assert math.confusion_matrix([0, 1, 2], [0, 2, 2]).numpy().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert math.in_top_k([1, 0], [[0.1, 0.9], [0.2, 0.8]], 1).numpy().tolist() == [True, False]
    assert math.count_nonzero([[0, 1], [2, 3]], axis=0).numpy().tolist() == [1, 2]


def test_numbers_are_no_truth_values():
    with pytest.raises(errors.InvalidArgumentError, match="expected to be a bool tensor but is a int32 tensor"):
        math.logical_and(tf.constant([1]), tf.constant([1]))
    with pytest.raises(TypeError, match="to EagerTensor of dtype bool"):
        math.logical_not([1])


def test_atan2_by_keyword():
    np.testing.assert_allclose(float(math.atan2(y=1.0, x=2.0)), np.arctan2(1.0, 2.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x: math.cumulative_logsumexp(x, axis=1, reverse=True), [REAL]),
        (lambda x: math.reduce_std(x, axis=1), [REAL]),
        (lambda x: math.reduce_variance(x, axis=0), [REAL]),
        (lambda x: math.reduce_euclidean_norm(x, axis=1), [REAL]),
        (lambda x: math.l2_normalize(x, axis=1), [REAL]),
        (lambda x: math.segment_max(x, [0, 0, 2]), [REAL]),
        (lambda x: math.segment_prod(x, [0, 0, 0]), [np.array([0.0, 2.0, 3.0])]),
        (lambda x: math.unsorted_segment_prod(x, [1, 0, 1], 2), [REAL]),
        (lambda x: math.unsorted_segment_sqrt_n(x, [1, 0, 1], 2), [REAL]),
        (lambda x: math.top_k(x, 2).values, [REAL]),
        (lambda x: math.squared_difference(x, 0.3), [REAL]),
        (lambda x: math.log_sigmoid(x), [REAL]),
        (lambda x: math.polygamma(1.0, x), [POSITIVE]),
        (lambda x: math.lbeta(x), [POSITIVE]),
        (lambda x: math.polyval([1.0, 2.0, 3.0], x), [REAL]),
    ],
)
def test_gradients(function, arguments):
    check_gradients(function, arguments)


ORDERS = {"equal": lambda shape: np.ones(shape), "mixed": lambda shape: np.arange(float(np.prod(shape))).reshape(shape) % 3}
PAIRS = [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), ()), ((0, 3), (1, 3)), ((2, 1, 3), (4, 1))]


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("make", ORDERS)
def test_polygamma_broadcasts_order_and_number(make, shapes):
    n, x = ORDERS[make](shapes[0]), RNG.uniform(0.5, 4.0, shapes[1])
    found = math.polygamma(tf.constant(n), tf.constant(x))
    expected = scipy.special.polygamma(n.astype(int), x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    check_gradients(lambda x: math.polygamma(n, x), [x])


def test_polygamma_refuses_what_does_not_fit():
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs. \[2\] \[Op:Polygamma\]"):
        math.polygamma(tf.ones([2, 3]), tf.ones([2]))
    with pytest.raises(errors.InvalidArgumentError, match="expected to be a double tensor but is a float tensor"):
        math.polygamma(tf.ones([3], tf.float64), tf.ones([3]))


def test_complex_parts_of_real_numbers():
    x = tf.constant([-1.0, 2.0])
    assert math.real(x).numpy().tolist() == [-1.0, 2.0]
    assert math.imag(x).numpy().tolist() == [0.0, 0.0]
    np.testing.assert_allclose(math.angle(x).numpy(), [np.pi, 0.0], rtol=1e-6)


def test_functions_of_nn_are_here_too():
    from gradtape import nn

    assert math.softmax is nn.softmax
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        math.nothing  # noqa: B018


# Special functions: relations between them, and derivatives that no formula gives


@settings(max_examples=50, deadline=None)
@given(st.floats(0.05, 60.0))
def test_bessel_functions_keep_their_wronskians(x):
    special = math.special
    j = special.bessel_j1(x) * special.bessel_y0(x) - special.bessel_j0(x) * special.bessel_y1(x)
    k = special.bessel_i0e(x) * special.bessel_k1e(x) + special.bessel_i1e(x) * special.bessel_k0e(x)
    np.testing.assert_allclose([float(j), float(k)], [2 / np.pi / x, 1 / x], rtol=2e-4)  # float32, with cancellation


@settings(max_examples=50, deadline=None)
@given(st.floats(-2.0, 2.5), st.floats(-3.0, 1.5))
def test_the_incomplete_gamma_function_is_differentiable_in_its_shape(log_shape, log_ratio):
    """Over five decades of the shape, on both sides of the middle; the reference is Richardson's extrapolation."""
    a = 10.0**log_shape
    x = a * 10.0**log_ratio
    step = 1e-3 * a
    slopes = [(scipy.special.gammainc(a + h, x) - scipy.special.gammainc(a - h, x)) / (2 * h) for h in (step, step / 2)]
    expected = (4 * slopes[1] - slopes[0]) / 3
    received = gradients(math.igamma, np.float64(a), np.float64(x))[0]
    np.testing.assert_allclose(received, expected, rtol=1e-6, atol=1e-11 / a)
    assert gradients(math.igammac, np.float64(a), np.float64(x))[0] == -received


def test_the_second_derivatives_of_the_incomplete_gamma_function_are_symmetric():
    a, x = tf.constant([0.3, 2.0, 40.0], tf.float64), tf.constant([1.5, 0.4, 38.0], tf.float64)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([a, x])
        with tf.GradientTape() as inner:
            inner.watch([a, x])
            y = math.igamma(a, x)
        by_shape, by_point = inner.gradient(y, [a, x])
    np.testing.assert_allclose(outer.gradient(by_shape, x), outer.gradient(by_point, a), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_rules_of_the_incomplete_gamma_function_keep_their_digits(dtype):
    """At a = 300 the exponent of the density is 1400: in float32 arithmetic four digits would be left."""
    a, x = (np.array([300.0, 20.0]), np.array([310.0, 19.0]))
    exact = gradients(math.igamma, a, x)
    received = gradients(math.igamma, tf.cast(a, dtype), tf.cast(x, dtype))
    rounding = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6}[dtype]
    if dtype != "bfloat16":  # 310 is not a bfloat16
        np.testing.assert_allclose(received, exact, rtol=rounding)
    assert all(g.dtype.name == dtype for g in _gradient_tensors(math.igamma, tf.cast(a, dtype), tf.cast(x, dtype)))


def _gradient_tensors(function, *sources):
    with tf.GradientTape() as tape:
        tape.watch(sources)
        target = function(*sources)
    return tape.gradient(target, list(sources))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 50))
def test_the_sobol_sequence_fills_the_cube_and_can_be_entered_anywhere(dim, count, skip):
    whole = math.sobol_sample(dim, count + skip, dtype=tf.float64).numpy()
    np.testing.assert_array_equal(math.sobol_sample(dim, count, skip, tf.float64).numpy(), whole[skip:])
    assert ((whole > 0) & (whole < 1)).all()
    full = math.sobol_sample(dim, 63, dtype=tf.float64).numpy()  # with 0, every 64th of each axis holds one point
    assert all(sorted(np.floor(column * 64)) == list(range(1, 64)) for column in full.T)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=9), st.integers(0, 9), st.booleans())
def test_approximate_extremes_are_exact_here(values, k, largest):
    k = min(k, len(values))
    function = math.approx_max_k if largest else math.approx_min_k
    found, indices = function(tf.constant(values), k)
    assert found.numpy().tolist() == sorted(values, reverse=largest)[:k]
    assert [values[i] for i in indices.numpy()] == found.numpy().tolist()
