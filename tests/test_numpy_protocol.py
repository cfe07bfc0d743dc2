"""NumPy functions on tensors: recorded when a tape tracks an operand, NumPy's answer otherwise (spec E2.6, D5.6)."""

import logging
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape.ops import elementwise, reduce
from gradtape.ops.execution import settings
from gradtape.ops.numpy_functions import FUNCTIONS
from gradtape.ops.numpy_protocol import UFUNCS
from gradtape.testing import check_gradients

pytestmark = pytest.mark.tiny

A = np.array([[0.6, -0.45, 0.3], [0.25, 0.75, -0.85]])
POSITIVE = np.array([[1.2, 1.5, 2.25], [3.5, 1.75, 1.1]])
VECTOR = np.array([0.3, -0.7, 1.4])
SQUARE = np.array([[0.3, -0.7], [1.4, 0.9]])
INDEX = np.array([[0, 2], [-1, 1]])

# One or more calls for every function of the tables: (function, calls of one array, the array)
CASES = {
    np.sum: (
        [
            np.sum,
            lambda x: np.sum(x, 0),
            lambda x: np.sum(x, axis=(0, 1), keepdims=True),
            lambda x: np.sum(x, dtype=np.float64),
        ],
        A,
    ),
    np.prod: ([np.prod, lambda x: np.prod(x, axis=-1)], A),
    np.max: ([np.max, lambda x: np.max(x, axis=1)], A),
    np.min: ([np.min, lambda x: np.min(x, axis=0, keepdims=True)], A),
    np.mean: ([np.mean, lambda x: np.mean(x, axis=0), lambda x: np.mean(x, axis=(-1,), keepdims=True)], A),
    np.nansum: ([np.nansum], A),
    np.nanmean: ([np.nanmean, lambda x: np.nanmean(x, axis=1)], A),
    np.ptp: ([np.ptp, lambda x: np.ptp(x, axis=0)], A),
    np.var: ([np.var, lambda x: np.var(x, axis=0, ddof=1), lambda x: np.var(x, axis=1, keepdims=True)], A),
    np.std: ([np.std, lambda x: np.std(x, axis=0, ddof=1)], A),
    np.average: ([np.average, lambda x: np.average(x, axis=0), lambda x: np.average(x, axis=1, weights=[1.0, 2.0, 3.0])], A),
    np.median: ([np.median, lambda x: np.median(x, axis=0), lambda x: np.median(x, axis=1, keepdims=True)], A),
    np.cumsum: ([np.cumsum, lambda x: np.cumsum(x, axis=1)], A),
    np.cumprod: ([np.cumprod, lambda x: np.cumprod(x, axis=0)], A),
    np.diff: ([np.diff, lambda x: np.diff(x, axis=0), lambda x: np.diff(x, 2)], A),
    np.trapezoid: ([np.trapezoid, lambda x: np.trapezoid(x, VECTOR), lambda x: np.trapezoid(x, dx=0.5, axis=0)], A),
    np.where: ([lambda x: np.where(x > 0, x, 2 * x), lambda x: np.where(A > 0, x, 0), lambda x: np.where(A > 0, 1.0, x)], A),
    np.clip: ([lambda x: np.clip(x, -0.2, 0.5), lambda x: np.clip(x, None, 0.1), lambda x: np.clip(x, min=0.1)], A),
    np.nan_to_num: ([np.nan_to_num], A),
    np.sinc: ([np.sinc, lambda x: np.sinc(x * 0.0 + x)], A),
    np.real: ([np.real], A),
    np.imag: ([lambda x: np.imag(x * (1 + 2j)) if isinstance(x, np.ndarray) else np.imag(np.multiply(x, 1 + 2j))], A),
    np.angle: ([lambda x: np.angle(np.add(x, 2j))], A),
    np.copy: ([np.copy], A),
    np.astype: ([lambda x: np.astype(x, np.float64)], A),
    np.reshape: ([lambda x: np.reshape(x, (3, 2)), lambda x: np.reshape(x, -1), lambda x: np.reshape(x, shape=(6,))], A),
    np.ravel: ([np.ravel], A),
    np.transpose: ([np.transpose, lambda x: np.transpose(x, (1, 0)), lambda x: np.transpose(x, [-1, 0])], A),
    np.matrix_transpose: ([np.matrix_transpose], A),
    np.linalg.matrix_transpose: ([np.linalg.matrix_transpose], A),
    np.moveaxis: ([lambda x: np.moveaxis(np.reshape(x, (1, 2, 3)), 0, -1)], A),
    np.swapaxes: ([lambda x: np.swapaxes(x, 0, 1)], A),
    np.rollaxis: ([lambda x: np.rollaxis(np.reshape(x, (1, 2, 3)), 2)], A),
    np.expand_dims: ([lambda x: np.expand_dims(x, 1), lambda x: np.expand_dims(x, (0, -1))], A),
    np.squeeze: ([lambda x: np.squeeze(np.reshape(x, (1, 6, 1))), lambda x: np.squeeze(np.reshape(x, (1, 6, 1)), axis=2)], A),
    np.broadcast_to: ([lambda x: np.broadcast_to(x, (2, 2, 3))], A),
    np.atleast_1d: ([lambda x: np.atleast_1d(np.sum(x))], A),
    np.atleast_2d: ([np.atleast_2d], VECTOR),
    np.atleast_3d: ([np.atleast_3d], A),
    np.concatenate: (
        [
            lambda x: np.concatenate([x, A, 2 * x]),
            lambda x: np.concatenate((x, x), axis=1),
            lambda x: np.concatenate([x, x], None),
        ],
        A,
    ),
    np.stack: ([lambda x: np.stack([x, A]), lambda x: np.stack((x, x), axis=-1)], A),
    np.vstack: ([lambda x: np.vstack([x, VECTOR])], VECTOR),
    np.hstack: ([lambda x: np.hstack([x, VECTOR]), lambda x: np.hstack([np.atleast_2d(x), np.atleast_2d(x)])], VECTOR),
    np.dstack: ([lambda x: np.dstack([x, A])], A),
    np.column_stack: ([lambda x: np.column_stack([x, VECTOR])], VECTOR),
    np.append: ([lambda x: np.append(x, [1.0]), lambda x: np.append(x, x, axis=0)], A),
    np.split: ([lambda x: np.split(x, 3, axis=1)[1], lambda x: np.split(x, [1, 2], axis=1)[2]], A),
    np.array_split: ([lambda x: np.array_split(x, 2, axis=1)[0]], A),
    np.vsplit: ([lambda x: np.vsplit(x, 2)[1]], A),
    np.hsplit: ([lambda x: np.hsplit(x, 3)[1]], A),
    np.unstack: ([lambda x: np.unstack(x, axis=1)[2]], A),
    np.tile: ([lambda x: np.tile(x, 2), lambda x: np.tile(x, (2, 1, 2))], A),
    np.repeat: ([lambda x: np.repeat(x, 2), lambda x: np.repeat(x, [1, 2, 0], axis=1)], A),
    np.roll: ([lambda x: np.roll(x, 1), lambda x: np.roll(x, -1, axis=1), lambda x: np.roll(x, (1, 2), axis=(0, 1))], A),
    np.flip: ([np.flip, lambda x: np.flip(x, 1)], A),
    np.flipud: ([np.flipud], A),
    np.fliplr: ([np.fliplr], A),
    np.rot90: ([np.rot90, lambda x: np.rot90(x, 2), lambda x: np.rot90(x, 3), lambda x: np.rot90(x, 4)], A),
    np.pad: (
        [
            lambda x: np.pad(x, 1),
            lambda x: np.pad(x, ((0, 1), (2, 0)), constant_values=3.0),
            lambda x: np.pad(x, 1, "edge"),
            lambda x: np.pad(x, 1, mode="reflect"),
        ],
        A,
    ),
    np.take: ([lambda x: np.take(x, INDEX), lambda x: np.take(x, [0, -1, 0], axis=1)], A),
    np.take_along_axis: (
        [lambda x: np.take_along_axis(x, np.argsort(A, axis=1), axis=1), lambda x: np.take_along_axis(x, INDEX, 1)],
        A,
    ),
    np.sort: ([np.sort, lambda x: np.sort(x, axis=0), lambda x: np.sort(x, axis=None)], A),
    np.tril: ([np.tril, lambda x: np.tril(x, 1)], A),
    np.triu: ([np.triu, lambda x: np.triu(x, -1)], A),
    np.diagonal: ([np.diagonal, lambda x: np.diagonal(x, 1)], A),
    np.diag: ([np.diag, lambda x: np.diag(np.ravel(x), -1)], A),
    np.trace: ([np.trace], A),
    np.dot: (
        [
            lambda x: np.dot(x, VECTOR),
            lambda x: np.dot(SQUARE, x),
            lambda x: np.dot(x, 2.0),
            lambda x: np.dot(np.reshape(x, -1), np.ones(6)),
        ],
        A,
    ),
    np.vdot: ([lambda x: np.vdot(x, A)], A),
    np.inner: ([lambda x: np.inner(x, A)], A),
    np.outer: ([lambda x: np.outer(x, VECTOR), lambda x: np.outer(x, x)], A),
    np.tensordot: (
        [
            lambda x: np.tensordot(x, A),
            lambda x: np.tensordot(x, VECTOR, 1),
            lambda x: np.tensordot(x, A, axes=([1], [1])),
            lambda x: np.tensordot(x, VECTOR, 0),
        ],
        A,
    ),
    np.einsum: (
        [
            lambda x: np.einsum("ij,kj->ik", x, A),
            lambda x: np.einsum("ij", x),
            lambda x: np.einsum("ij,ij", x, x),
            lambda x: np.einsum("...j,j", x, VECTOR),
            lambda x: np.einsum("i...->...", x),
            lambda x: np.einsum("ij,j,i->", x, VECTOR, [1.0, 2.0]),
        ],
        A,
    ),
    np.kron: ([lambda x: np.kron(x, SQUARE), lambda x: np.kron(VECTOR, x)], A),
    np.cross: ([lambda x: np.cross(x, VECTOR)], A),
    np.linalg.multi_dot: ([lambda x: np.linalg.multi_dot([SQUARE, x, VECTOR])], A),
    np.linalg.matrix_power: ([lambda x: np.linalg.matrix_power(x, 1), lambda x: np.linalg.matrix_power(x, 5)], SQUARE),
    np.linalg.norm: (
        [
            np.linalg.norm,
            lambda x: np.linalg.norm(x, axis=1),
            lambda x: np.linalg.norm(x, 1, axis=0, keepdims=True),
            lambda x: np.linalg.norm(x, 3, axis=1),
            lambda x: np.linalg.norm(x, np.inf),
            lambda x: np.linalg.norm(x, 1),
            lambda x: np.linalg.norm(x, "fro"),
            lambda x: np.linalg.norm(x, -np.inf, axis=1),
        ],
        A,
    ),
    np.linalg.vector_norm: ([np.linalg.vector_norm, lambda x: np.linalg.vector_norm(x, axis=1, ord=3)], A),
    np.linalg.matmul: ([lambda x: np.linalg.matmul(x, VECTOR)], A),
    np.linalg.outer: ([lambda x: np.linalg.outer(x, VECTOR)], VECTOR),
    np.linalg.tensordot: ([lambda x: np.linalg.tensordot(x, A)], A),
    np.linalg.cross: ([lambda x: np.linalg.cross(x, VECTOR)], A),
    np.linalg.diagonal: ([np.linalg.diagonal], SQUARE),
    np.polyval: ([lambda x: np.polyval([1.0, -2.0, 3.0], x), lambda x: np.polyval(x, 1.5)], VECTOR),
    np.interp: (
        [
            lambda x: np.interp(x, [-1.0, 0.0, 0.5, 2.0], [1.0, 3.0, 2.0, 5.0]),
            lambda x: np.interp([0.2, 0.9], [0.0, 0.5, 1.0], x),
        ],
        VECTOR,
    ),
    np.cov: ([np.cov, lambda x: np.cov(x, rowvar=False), lambda x: np.cov(x, bias=True)], A),
}
CASES |= {np.permute_dims: ([np.permute_dims], A), np.amax: ([np.amax], A), np.amin: ([np.amin], A)}

UNARY = "negative sign exp exp2 expm1 sqrt square reciprocal sin cos tan sinh cosh tanh absolute fabs conjugate positive"
UNARY += " arcsin arccos arctan arcsinh arctanh deg2rad radians rad2deg degrees cbrt"
UFUNC_CASES = {getattr(np, name): ([getattr(np, name)], np.abs(A) if name == "sqrt" else A) for name in UNARY.split()}
UFUNC_CASES |= {f: ([f], POSITIVE) for f in (np.log, np.log2, np.log10, np.log1p, np.arccosh)}
BINARY = "add subtract multiply divide remainder maximum minimum arctan2 power float_power fmax fmin logaddexp logaddexp2 hypot"
BINARY += " fmod copysign"
for _name in BINARY.split():
    _function = getattr(np, _name)
    UFUNC_CASES[_function] = (
        [
            lambda x, f=_function: f(x, POSITIVE[0] - 0.05),
            lambda x, f=_function: f(x, 2.0),
            lambda x, f=_function: f(x, x[0] + 0.3),
        ],
        POSITIVE,
    )
UFUNC_CASES[np.matmul] = (
    [
        lambda x: np.matmul(x, VECTOR),
        lambda x: np.matmul(x, A.T),
        lambda x: np.matmul(x[0], x[1]),
        lambda x: np.matmul(x[:, 0], x),
    ],
    A,
)
METHOD_CASES = [
    lambda x: np.add.reduce(x),
    lambda x: np.multiply.reduce(x, axis=1),
    lambda x: np.maximum.reduce(x),
    lambda x: np.minimum.reduce(x, axis=None),
    lambda x: np.add.accumulate(x),
    lambda x: np.multiply.accumulate(x, axis=1),
    lambda x: np.multiply.outer(x, VECTOR),
    lambda x: np.subtract.outer(x, x),
]


def differentiate(call, array):
    """Value, type and gradient of a call on a watched tensor, weighted."""
    x = tf.constant(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = call(x)
    value = np.asarray(y)
    weights = np.cos(np.arange(value.size)).reshape(value.shape)
    assert type(y) is tf.Tensor, "not recorded"
    return value, tape.gradient(y, x, output_gradients=tf.constant(weights.astype(value.dtype))), weights


def slopes(call, array, weights, step=1e-6):
    out = np.zeros(array.shape)
    for place in np.ndindex(array.shape):
        high, low = array.copy(), array.copy()
        high[place] += step
        low[place] -= step
        out[place] = np.sum(weights * (np.asarray(call(high)) - np.asarray(call(low)))) / (2 * step)
    return out


def check(call, array):
    value, gradient, weights = differentiate(call, array)
    np.testing.assert_allclose(value, call(array), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradient.numpy(), slopes(call, array, weights), rtol=1e-6, atol=2e-8)


def test_every_function_of_the_tables_has_a_case():
    assert FUNCTIONS.keys() == CASES.keys()
    assert UFUNCS.keys() == UFUNC_CASES.keys()


@pytest.mark.parametrize("function", [*CASES, *UFUNC_CASES], ids=lambda f: f"{getattr(f, '__module__', '')}.{f.__name__}")
def test_recorded_like_numpy(function):
    calls, array = (CASES | UFUNC_CASES)[function]
    for call in calls:
        check(call, array)


@pytest.mark.parametrize("case", range(len(METHOD_CASES)))
def test_methods_of_ufuncs(case):
    check(METHOD_CASES[case], A)


@pytest.mark.parametrize("function", [*CASES, *UFUNC_CASES], ids=lambda f: f.__name__)
def test_E2_6_untracked_is_numpys_own_answer(function):
    """E2.6: without a tape, NumPy answers as if it had been given arrays."""
    calls, array = (CASES | UFUNC_CASES)[function]
    for kind in (tf.constant, tf.Variable):
        for call in calls:
            if kind is tf.Variable and function in (np.hsplit,):
                continue
            out, expected = call(kind(array)), call(array)
            np.testing.assert_array_equal(np.asarray(out), expected)


def test_E2_6_the_result_is_an_array_without_a_tape():
    x, v = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])
    for value in (x, v):
        for out in (
            np.sin(value),
            np.mean(value, axis=0, keepdims=True),
            np.multiply(value, 2),
            np.stack([value, value]),
            np.dot(value, value),
        ):
            assert isinstance(out, (np.ndarray, np.generic))
    with tf.GradientTape():  # nothing is watched
        assert isinstance(np.sin(x), np.ndarray)
        assert isinstance(np.sin(v), tf.Tensor)
    with tf.GradientTape(watch_accessed_variables=False):
        assert isinstance(np.sin(v), np.ndarray)


def test_variables_are_recorded():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = np.sum(np.sin(v) * np.concatenate([v, v])[:2])
    a = np.array([1.0, 2.0], "f")
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), np.cos(a) * a + np.sin(a), rtol=1e-6)


def test_the_same_computation_by_ops():
    x = tf.constant([[0.5, 1.5], [2.5, 3.5]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        ours = reduce.mean(elementwise.exp(elementwise.sin(x)) * x, axis=0)
        numpys = np.mean(np.multiply(np.exp(np.sin(x)), x), axis=0)
    np.testing.assert_array_equal(ours.numpy(), numpys.numpy())
    np.testing.assert_array_equal(tape.gradient(ours, x).numpy(), tape.gradient(numpys, x).numpy())


def test_second_order():
    x = tf.constant(0.7, tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = np.sin(x) ** 2
        dy = inner.gradient(y, x)
    np.testing.assert_allclose(float(outer.gradient(dy, x)), 2 * np.cos(1.4))


def test_jacobian():
    x = tf.constant(VECTOR)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = np.cumsum(np.square(x))
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), np.tril(np.broadcast_to(2 * VECTOR, (3, 3))))


def test_E2_6_operators_with_arrays_on_the_left_are_recorded():
    x = tf.constant([1.0, 2.0])
    array = np.array([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        targets = [array * x, array + x, array - x, array / x, np.float64(2) * x, array**x]
    expected = [array, [1, 1], [-1, -1], -array / np.array([1, 4]), [2, 2], np.log(array) * array ** np.array([1, 2])]
    for y, gradient in zip(targets, expected, strict=True):
        assert type(y) is tf.Tensor and y.dtype == "float32"  # noqa: PT018
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), gradient, rtol=1e-6)


def test_dtypes_of_named_functions():
    """Arrays take the tracked tensor's dtype, tensors of different dtypes are promoted, complex numbers are not cut."""
    x, wide = tf.constant([1.0]), tf.constant([1.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([x, wide])
        assert np.add(x, np.ones(1)).dtype == "float32"
        assert np.add(x, wide).dtype == "float64"
        assert np.concatenate([x, np.ones(1), [2]]).dtype == "float32"
        assert np.multiply(x, tf.constant([2])).dtype == "float32"
        assert np.multiply(x, 1j).dtype == "complex64"
        assert np.sum(x, dtype=np.float64).dtype == "float64"
        assert np.sin(x, dtype=np.float64).dtype == "float64"
        y = np.add(x, wide)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1.0])


def test_in_place_on_an_array(caplog):
    x = tf.constant([1.0, 2.0])
    array = np.zeros(2)
    array += x
    array *= tf.Variable([3.0, 3.0])
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(array, [3.0, 6.0])
    np.sin(x, out=array)
    np.testing.assert_allclose(array, np.sin([1.0, 2.0]), rtol=1e-6)
    np.add.at(array, [0], tf.constant([1.0]))
    assert not caplog.records


def test_tensors_cannot_be_written_to():
    x = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="immutable"):
        np.add(x, 1.0, out=x)
    with pytest.raises(TypeError, match="immutable"):
        np.add.at(x, [0], 1.0)
    view = np.reshape(x, (2, 1))
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5.0
    assert x.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.convolve(x, x),
        lambda x: np.sum(x, initial=3.0),
        lambda x: np.sum(x, where=[True, False]),
        lambda x: np.sum(x, 0, np.float64),
        lambda x: np.quantile(x, 0.5),
        lambda x: np.sin(x, out=np.zeros(2)),
        lambda x: np.sin(x, where=[True, False], out=np.zeros(2)),
        lambda x: np.ldexp(x, 2),
        lambda x: np.linalg.norm(np.diag([2.0, 3.0]) * x, 2),
        lambda x: np.einsum(x, [0], [0]),
    ],
)
def test_what_leaves_the_tape_warns_once_per_place(call, caplog):
    x = tf.constant([1.0, 2.0])
    expected = np.asarray(call(np.array([1.0, 2.0], "f")))
    with caplog.at_level(logging.WARNING, "gradtape"), tf.GradientTape() as tape:
        tape.watch(x)
        for _ in range(3):
            out = call(x)
    assert isinstance(out, (np.ndarray, np.generic))
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert len(caplog.records) == 1
    assert "leaves the tape" in caplog.text


@pytest.mark.parametrize(
    "call",
    [
        np.argmax,
        np.floor,
        np.round,
        np.shape,
        np.ones_like,
        lambda x: np.allclose(x, x),
        lambda x: np.greater(x, 1),
        np.isnan,
        np.array_repr,
        lambda x: np.searchsorted(x, 1.0),
    ],
)
def test_functions_without_a_derivative_do_not_warn(call, caplog):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = call(x)
    assert not isinstance(out, tf.Tensor)
    assert not caplog.records


def test_tapes_of_other_threads_do_not_count():
    x = tf.constant([1.0])
    kinds = []
    with tf.GradientTape() as tape:
        tape.watch(x)
        thread = threading.Thread(target=lambda: kinds.append(type(np.sin(x))))
        thread.start()
        thread.join()
        assert type(np.sin(x)) is tf.Tensor
    assert kinds == [np.ndarray]


def test_stop_recording():
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            assert type(np.sin(x)) is np.ndarray


def test_errors_are_numpys_or_ours():
    x = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(np.exceptions.AxisError):
            np.sum(x, axis=5)
        with pytest.raises(tf.errors.InvalidArgumentError):
            np.reshape(x, (4, 4))
        with pytest.raises(ValueError, match="shape-mismatch"):
            np.tensordot(x, np.ones(5), 1)
        with pytest.raises(tf.errors.InvalidArgumentError):
            np.take(x, [9], axis=0)
        with pytest.raises(ValueError, match="operands"):
            np.einsum("ij,jk", x)


def test_the_variance_has_its_second_derivative_where_an_element_is_the_mean():
    check_gradients(np.var, [np.array([1.0, 2.0, 3.0])])


def test_in_the_place_of_tensorflow_functions_give_arrays(monkeypatch, caplog):
    monkeypatch.setattr(settings, "records_numpy", False)
    x = tf.Variable([[0.5, 1.5]])
    with tf.GradientTape() as tape:
        found = [np.exp(x), np.squeeze(x * 2.0), np.clip(x, 0, 1), np.add.reduce(x * 1.0), np.mean(x)]
        y = np.ones((1, 2), "float32") * x
    assert [type(each) for each in found] == [np.ndarray] * 4 + [np.float32]
    assert not caplog.text
    np.testing.assert_array_equal(tape.gradient(y, x), [[1.0, 1.0]])  # an operator is the tensor's
    compiled = tf.function(lambda: np.exp(x))
    np.testing.assert_array_equal(compiled(), found[0])
