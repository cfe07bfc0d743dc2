"""Bridges: our functions under jax's transformations, and jax's functions on our tape."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape.experimental import from_jax, to_jax

jax = pytest.importorskip("jax")
jnp = jax.numpy
X = np.array([0.5, -1.0, 2.0], np.float32)


def ours(x):
    return tf.reduce_sum(tf.sin(x) * x**2)


def theirs(x):
    return jnp.sum(jnp.sin(x) * x**2)


TRANSFORMED = {
    "itself": lambda f: f,
    "jit": jax.jit,
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "value_and_grad": jax.value_and_grad,
    "second order": lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2)),
    "third order": lambda f: jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2))(x))),
    "hessian": lambda f: jax.jacrev(jax.grad(f)),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: jax.jit(jax.vmap(jax.grad(f)))(jnp.stack([x, 2 * x])),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_to_jax_under_transformations(name):
    for f in (ours, tf.function(ours)):
        received, wanted = TRANSFORMED[name](to_jax(f))(X), TRANSFORMED[name](theirs)(X)
        assert jax.tree.structure(received) == jax.tree.structure(wanted)
        for a, b in zip(jax.tree.leaves(received), jax.tree.leaves(wanted)):
            assert isinstance(a, jax.Array)
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, 2e-5, 1e-5)


def test_to_jax_uses_our_rules():
    @tf.custom_gradient
    def steep(x):
        return x, lambda g: 10.0 * g

    f = to_jax(lambda x: tf.reduce_sum(steep(x)))
    assert jax.grad(f)(X).tolist() == [10.0] * 3
    assert jax.jit(jax.grad(f))(X).tolist() == [10.0] * 3
    assert jax.grad(to_jax(lambda x: tf.sqrt(x) * tf.stop_gradient(x)))(4.0) == 1.0


def test_to_jax_takes_pytrees_and_keeps_what_is_not_an_array():
    f = to_jax(lambda p, n, scale=1.0: {"sum": tf.reduce_sum(p["w"] ** n) * scale, "rows": (p["i"], None)})
    p = {"w": jnp.array([1.0, 2.0]), "i": jnp.arange(2)}
    result = f(p, 2, scale=3.0)
    assert float(result["sum"]) == 15.0
    assert result["rows"][0].dtype == jnp.int32
    gradients = jax.grad(lambda p: f(p, 2)["sum"], allow_int=True)(p)
    assert gradients["w"].tolist() == [2.0, 4.0]
    assert gradients["i"].dtype == jax.dtypes.float0


def test_to_jax_obeys_the_users_precision():
    f = to_jax(lambda x: tf.cast(x, tf.float64) * 2.0)
    assert f(X).dtype == jax.jit(f)(X).dtype == np.float32
    assert jax.grad(lambda x: f(x).sum())(X).tolist() == [2.0] * 3
    with jax.enable_x64(True):
        assert f(X).dtype == jax.jit(f)(X).dtype == np.float64


def test_to_jax_reads_variables_and_does_not_assign_them():
    v = tf.Variable(3.0)
    f = to_jax(lambda x: x * v)
    assert float(jax.grad(f)(2.0)) == 3.0
    with pytest.raises(ValueError, match="may not assign variables"):
        to_jax(lambda x: v.assign(x))(X[0])
    assert float(v) == 3.0


def test_our_tapes_do_not_see_what_jax_computes():
    f = to_jax(ours)
    v = tf.Variable(X)
    with tf.GradientTape() as tape:
        f(jnp.asarray(X))
        y = tf.reduce_sum(v * 2.0)
    assert tape.gradient(y, v).numpy().tolist() == [2.0] * 3


# jax on the tape


def derivatives(f, *sources):
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            y = f(*sources)
        g = inner.gradient(y, sources)
    return [y, *g, *outer.gradient(g, sources)]


WAYS = {
    "eager": lambda f: lambda *xs: derivatives(f, *xs),
    "inside": lambda f: tf.function(lambda *xs: derivatives(f, *xs), jit_compile=True),
    "outside": lambda f: lambda *xs: derivatives(tf.function(f, jit_compile=True), *xs),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "jit"])
def test_from_jax_is_one_differentiable_step(way, compiled):
    f = from_jax(jax.jit(theirs) if compiled else theirs)
    x = tf.constant(X)
    received = WAYS[way](lambda x, y: f(x) * f(tf.sin(y)) + tf.reduce_sum(x * y))(x, x * 0.5)
    wanted = derivatives(lambda x, y: ours(x) * ours(tf.sin(y)) + tf.reduce_sum(x * y), x, x * 0.5)
    for a, b in zip(received, wanted):
        assert a.dtype is b.dtype
        assert type(a) is tf.Tensor
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-5, 1e-5)


def test_from_jax_takes_pytrees_variables_and_python_values():
    def network(params, x, activation, times):
        for _ in range(times):
            x = activation(x @ params["kernel"] + params["bias"])
        return {"out": x, "size": x.size, "last": (x[-1], None)}

    params = {"kernel": tf.Variable(np.eye(2, dtype=np.float32) * 0.5), "bias": tf.Variable([0.1, -0.1])}
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        result = from_jax(network)(params, x, jnp.tanh, times=2)
        loss = tf.reduce_sum(result["out"] ** 2)
    assert int(result["size"]) == 2
    assert result["last"][1] is None
    gradients = tape.gradient(loss, params)
    with tf.GradientTape() as tape:
        y = x
        for _ in range(2):
            y = tf.tanh(y @ params["kernel"] + params["bias"])
        loss = tf.reduce_sum(y**2)
    for name, g in tape.gradient(loss, params).items():
        np.testing.assert_allclose(gradients[name].numpy(), g.numpy(), 1e-5)


def test_from_jax_runs_under_the_users_precision():
    seen = []
    f = from_jax(lambda x: seen.append((x.dtype, jax.config.jax_enable_x64)) or x * 2)
    x = tf.constant(X, tf.float64)
    for call in (f, tf.function(f)):
        y, g, _ = derivatives(call, x)
        assert (y.dtype, g.dtype) == (tf.float32, tf.float64)
    assert {tuple(map(str, s)) for s in seen} == {("float32", "False")}
    with jax.enable_x64(True):
        assert f(x).dtype is tf.float64
    assert jnp.asarray(1.0).dtype == np.float32


def test_from_jax_conjugates_as_tensorflow_does():
    z = tf.constant([1.0 + 2.0j, -0.5 + 1.0j], tf.complex64)
    for way in WAYS.values():
        received = way(from_jax(lambda z: jnp.sum(jnp.abs(z * z * (1 + 3j)))))(z)
        wanted = derivatives(lambda z: tf.reduce_sum(tf.abs(z * z * (1 + 3j))), z)
        for a, b in zip(received, wanted):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-4, 1e-4)
    back = jax.grad(to_jax(lambda z: tf.reduce_sum(tf.abs(z * z))))(z.numpy())
    np.testing.assert_allclose(back, jax.grad(lambda z: jnp.sum(jnp.abs(z * z)))(z.numpy()), 1e-5)


def test_there_and_back():
    x = tf.constant(X)
    for a, b in zip(derivatives(from_jax(to_jax(ours)), x), derivatives(ours, x)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-5, 1e-5)


def test_random_keys_whole_numbers_and_no_arrays():
    draw = from_jax(lambda key, x: x + jax.random.normal(key, x.shape, x.dtype))
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = draw(jax.random.key(1), x)
    np.testing.assert_allclose(y.numpy(), X + jax.random.normal(jax.random.key(1), (3,)), 1e-6)
    assert tape.gradient(y, x).numpy().tolist() == [1.0] * 3
    rows = tf.constant([0, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = from_jax(lambda x, i: (x[i], i + 1))(x, rows)
    assert tape.gradient(y[0], [x, rows])[0].numpy().tolist() == [1.0, 0.0, 1.0]
    assert y[1].numpy().tolist() == [1, 3]
    assert from_jax(lambda: jnp.ones(2))().numpy().tolist() == [1.0, 1.0]


def test_jacobians_and_forward_mode_of_a_jax_function():
    x = tf.constant(X)
    f, same = from_jax(lambda x: jnp.tanh(x) * x.sum()), lambda x: tf.tanh(x) * tf.reduce_sum(x)
    for function in (f, same):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        jacobian = tape.jacobian(y, x).numpy()
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = function(x)
        if function is f:
            received = jacobian, accumulator.jvp(y).numpy()
    np.testing.assert_allclose(received[0], jacobian, 1e-5)
    np.testing.assert_allclose(received[1], accumulator.jvp(y).numpy(), 1e-5)
    rows = tf.stack([x, x * 2.0])
    np.testing.assert_allclose(tf.vectorized_map(f, rows).numpy(), tf.vectorized_map(same, rows).numpy(), 1e-5)
