"""Tensors that hold jax arrays: the same ops, tape and rules, computed by XLA, and traceable by `jax.jit`."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from dialect_samples import assert_same

import gradtape as tf
from gradtape.core.op import OPS, select
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import JaxTensor, Tensor, wrap
from gradtape.xp import numpy as NUMPY

jax = pytest.importorskip("jax")
jnp = jax.numpy
from gradtape.xp import jax as JAX  # noqa: E402

xp = RECORDED


def on_jax(array) -> JaxTensor:
    with JAX.scope():
        return wrap(jnp.asarray(array))


def on_numpy(array) -> Tensor:
    return wrap(np.asarray(array))


BOTH = [on_numpy, on_jax]
X = np.linspace(-1.2, 1.5, 6).reshape(2, 3)
W = np.cos(np.arange(12.0)).reshape(3, 4)


# Storage and selection


def test_a_jax_array_makes_a_jax_tensor():
    x = on_jax(X)
    assert type(x) is JaxTensor
    assert (x.shape, x.dtype, x.ndim) == ((2, 3), tf.float64, 2)
    assert_same(x.numpy(), X)
    assert_same(np.asarray(x), X)
    assert float(on_jax(2.5)) == 2.5
    assert "dtype=float64" in repr(x)


def test_namespace_selection():
    assert select([on_numpy(X)]) is NUMPY
    assert select([on_jax(X)]) is JAX
    assert select([on_numpy(X), on_jax(X)]) is JAX


def test_results_are_jax_tensors():
    x, w = on_jax(X), on_jax(W)
    c = on_numpy(X)
    for y in (xp.tanh(x), x + x, x * 2.0, 2.0 * x, c + x, x + c, X * x, xp.matmul(x, w), xp.sum(x, axis=0), -x, x / 3):
        assert type(y) is JaxTensor
        assert y.dtype == tf.float64
    assert type(xp.concatenate(c, x, axis=0)) is JaxTensor


def test_errors_are_ours():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        on_jax(X) + on_jax(W)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a double tensor but is a float tensor"):
        on_jax(X) + on_jax(X.astype(np.float32))
    with pytest.raises(tf.errors.InvalidArgumentError):
        xp.getitem(on_jax(X), index=(7,))


# 64-bit types in our calls, and only there


def user_dtype():
    return jnp.asarray(1.0).dtype


def test_the_users_jax_configuration_is_untouched():
    before = jax.config.jax_enable_x64
    assert user_dtype() == np.float32
    x = on_jax(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = xp.sum(x * x)
        assert user_dtype() == np.float32
    for result in (y, tape.gradient(y, x), tape.jacobian(y, x)):
        assert result.dtype == tf.float64
        assert user_dtype() == np.float32
    assert jax.config.jax_enable_x64 == before


def test_the_scope_is_per_thread_and_ends_on_errors():
    seen = []
    with JAX.scope():
        thread = threading.Thread(target=lambda: seen.append(user_dtype()))
        thread.start()
        thread.join()
        assert user_dtype() == np.float64
    assert seen == [np.float32]
    with pytest.raises(ZeroDivisionError), JAX.scope():
        1 / 0  # noqa: B018
    assert user_dtype() == np.float32


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128", "int32", "int64", "uint8"])
def test_dtypes_stay(dtype):
    x = on_jax(np.array([1, 2, 3], dtype))
    assert (x + x).dtype == (x * x).dtype == xp.sum(x).dtype == dtype
    assert (x + 2).dtype == dtype


# Derivatives agree with NumPy's


def polynomial(x):
    return xp.sum(x * x * x - 2.0 * x)


def network(x):
    hidden = xp.tanh(xp.matmul(x, wrap(W)))
    return xp.sum(xp.softplus(hidden) * hidden, axis=1)


def indexing(x):
    rows = xp.take(x, np.array([1, 0, 1]), axis=0)
    parts = xp.concatenate(rows, xp.sort(x, axis=1), axis=0)
    return xp.getitem(parts, index=(slice(1, None), slice(None, None, 2))) * xp.max(parts, axis=(0, 1))


def reductions(x):
    return xp.prod(x, axis=1) + OPS["mean"](xp.cumsum(x, axis=1), axis=1) + OPS["logsumexp"](x, axis=1)


def selection(x):
    return xp.where(xp.greater(x, xp.zeros_like(x)), xp.sqrt(xp.abs(x)), xp.maximum(x, x * x)) ** 2.0


FUNCTIONS = [polynomial, network, indexing, reductions, selection]
functions = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


def same_on_both(compute, array=X):
    expected, received = compute(on_numpy(array)), compute(on_jax(array))
    assert type(expected) is Tensor
    assert type(received) is JaxTensor
    assert_same(received.numpy(), expected.numpy(), 1e-10)


def gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def second(function, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        g = gradient(function, x)
    return outer.gradient(g, x)


def jacobian(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x)


def hessian(function, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        g = gradient(function, x)
    return outer.jacobian(g, x)


def batch_jacobian(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = xp.tanh(x) * x
    return tape.batch_jacobian(y, x)


@functions
@pytest.mark.parametrize("derivative", [gradient, second, jacobian, hessian], ids=lambda f: f.__name__)
def test_derivatives(function, derivative):
    same_on_both(lambda x: derivative(function, x))


def test_batch_jacobian():
    same_on_both(lambda x: batch_jacobian(None, x))


@pytest.mark.parametrize("derivative", [gradient, second, jacobian], ids=lambda f: f.__name__)
def test_single_precision(derivative):
    x = X.astype(np.float32)
    expected, received = (derivative(lambda t: xp.sum(xp.tanh(t) ** 2.0), make(x)) for make in BOTH)
    assert received.dtype == tf.float32
    np.testing.assert_allclose(received.numpy(), expected.numpy(), rtol=2e-5, atol=1e-6)


def test_gradients_that_do_not_look_at_values_are_jax_tensors_too():
    x = on_jax(X)
    assert type(gradient(lambda t: t + 1.0, x)) is JaxTensor
    assert type(gradient(lambda t: xp.sum(t), x)) is JaxTensor


def test_targets_that_are_sources_and_several_targets():
    def compute(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient([y, y, x], x)

    same_on_both(compute)


def test_output_gradients_and_unconnected():
    def compute(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x, output_gradients=x)

    same_on_both(compute)
    x, other = on_jax(X), on_jax(W)
    with tf.GradientTape() as tape:
        tape.watch([x, other])
        y = x * 2.0
    g, none = tape.gradient(y, [x, other], unconnected_gradients="zero")
    assert_same(g.numpy(), np.full((2, 3), 2.0))
    assert_same(none.numpy(), np.zeros((3, 4)))


def test_sparse_gradient():
    def compute(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = xp.sum(xp.take(x, np.array([1, 0, 1]), axis=0) ** 2.0)
        return tf.convert_to_tensor(tape.gradient(y, x))

    same_on_both(compute)


def test_a_numpy_source_through_jax_values():
    x, w = on_numpy(X), on_jax(W)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = xp.sum(xp.matmul(x * 2.0, w))
    assert_same(tape.gradient(y, x).numpy(), 2 * np.ones((2, 4)) @ W.T)


def test_variables_meet_jax_values():
    v, x = tf.Variable(W), on_jax(X)
    with tf.GradientTape() as tape:
        y = xp.sum(xp.matmul(x, v) ** 2.0)
    expected = 2 * X.T @ (X @ W)
    assert_same(tape.gradient(y, v).numpy(), expected)


# Traced by jax.jit


def step(x, w, rate):
    """A whole training step on raw arrays: forward, tape, gradient, update."""
    x, w = wrap(x), wrap(w)
    with tf.GradientTape() as tape:
        tape.watch(w)
        loss = OPS["mean"](xp.tanh(xp.matmul(x, w)) ** 2.0)
    g = tape.gradient(loss, w)
    return loss._array, (w - rate * g)._array


def test_a_whole_step_under_jit():
    traces = []

    def counted(x, w):
        traces.append(type(wrap(x)))
        return step(x, w, 0.1)

    loss, new = step(X, W, 0.1)
    with JAX.scope():
        compiled = jax.jit(counted)
        for _ in range(2):
            loss_jit, new_jit = compiled(X, W)
        assert_same(loss_jit, loss)
        assert_same(new_jit, new)
    assert traces == [JaxTensor]  # the second call ran no Python


def test_a_step_under_jit_outside_our_scope_is_single_precision():
    loss, new = step(X.astype(np.float32), W.astype(np.float32), 0.1)
    loss_jit, new_jit = jax.jit(lambda x, w: step(x, w, 0.1))(X.astype(np.float32), W.astype(np.float32))
    assert_same(loss_jit, loss, 1e-5)
    assert_same(new_jit, new, 1e-5)


@functions
@pytest.mark.parametrize("derivative", [gradient, second, jacobian, hessian], ids=lambda f: f.__name__)
def test_derivatives_under_jit(function, derivative):
    with JAX.scope():
        received = jax.jit(lambda x: derivative(function, wrap(x))._array)(X)
        assert_same(received, derivative(function, on_numpy(X)).numpy(), 1e-10)


def test_our_gradient_agrees_with_jax():
    with JAX.scope():
        ours = jax.jit(lambda x: gradient(network, wrap(x))._array)(X)
        theirs = jax.grad(lambda x: jnp.sum(network(wrap(x))._array))(X)
        assert_same(ours, theirs, 1e-10)


def test_our_op_inside_vmap():
    with JAX.scope():
        rows = jax.vmap(lambda x: gradient(polynomial, wrap(x))._array)(jnp.asarray(X))
        assert_same(rows, gradient(polynomial, on_numpy(X)).numpy())


# Conversion of raw arrays


def test_a_jax_array_is_wrapped_not_copied():
    array = jnp.arange(3.0)
    tensor = tf.convert_to_tensor(array)
    assert type(tensor) is JaxTensor
    assert tensor._array is array
    assert type(tf.constant(array)) is JaxTensor
    assert type(tf.convert_to_tensor(array, tf.float32)) is JaxTensor


def test_a_jax_array_is_cast_on_request():
    tensor = tf.convert_to_tensor(jnp.arange(3), tf.float64)
    assert type(tensor) is JaxTensor
    assert tensor.dtype is tf.float64
    assert (tf.constant([1.0, 2.0, 3.0]) + jnp.arange(3)).numpy().tolist() == [1.0, 3.0, 5.0]


def test_jax_arrays_in_a_list_are_stacked():
    tensor = tf.convert_to_tensor([jnp.arange(2.0), [3.0, 4.0]])
    assert type(tensor) is JaxTensor
    assert tensor.numpy().tolist() == [[0.0, 1.0], [3.0, 4.0]]


def test_a_tracer_is_wrapped():
    def f(x):
        tensor = tf.convert_to_tensor(x)
        return (tensor * 2.0 + x)._array

    assert jax.jit(f)(jnp.arange(3.0)).tolist() == [0.0, 3.0, 6.0]
    assert jax.grad(lambda x: f(x).sum())(jnp.arange(3.0)).tolist() == [3.0, 3.0, 3.0]
