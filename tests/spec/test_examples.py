"""Programs as people write them, with one import line changed."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf

pytestmark = pytest.mark.tiny


def test_two_variables_in_a_list():
    w, b = tf.Variable([[1.0], [2.0]], name="w"), tf.Variable([0.5], name="b")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = x @ w + b
        loss = tf.reduce_mean(y**2)
    dw, db = tape.gradient(loss, [w, b])
    assert dw.shape == w.shape
    np.testing.assert_allclose(dw, [[5.5 + 34.5], [11.0 + 46.0]])
    np.testing.assert_allclose(db, [5.5 + 11.5])


def test_a_dictionary_of_variables():
    parts = {"w": tf.Variable(2.0), "b": tf.Variable(3.0)}
    with tf.GradientTape() as tape:
        y = parts["w"] ** 2 + parts["b"]
    grads = tape.gradient(y, parts)
    assert {k: float(g) for k, g in grads.items()} == {"w": 4.0, "b": 1.0}


def test_a_persistent_tape_asked_twice():
    x = tf.constant([1, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy().tolist() == [4.0, 108.0]
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 6.0]
    del tape


def test_watch_on_a_constant():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2
    assert tape.gradient(y, x).numpy() == 6.0


def test_nested_tapes_for_the_second_order():
    x = tf.Variable(1.0)
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            y = x * x * x
        dy_dx = t1.gradient(y, x)
    d2y_dx2 = t2.gradient(dy_dx, x)
    assert (float(dy_dx), float(d2y_dx2)) == (3.0, 6.0)


def test_gradient_penalty():
    x = tf.random.normal([7, 5], seed=1) if hasattr(tf, "random") else tf.ones([7, 5])
    w = tf.Variable(tf.ones([5, 3]) * 0.5)
    with tf.GradientTape() as t2:
        with tf.GradientTape(watch_accessed_variables=False) as t1:
            t1.watch(x)
            out = tf.nn.softmax(x @ w)[:, 0]
        g1 = t1.gradient(out, x)
        g1_mag = tf.norm(g1 + 1e-3)
    dg1_mag = t2.gradient(g1_mag, w)
    assert dg1_mag.shape == w.shape
    assert np.isfinite(dg1_mag).all()


def test_jacobian_of_a_layers_output_by_its_kernel():
    class Dense(tf.Module):
        def __init__(self, inputs, units):
            super().__init__()
            self.kernel = tf.Variable(np.linspace(-1.0, 1.0, inputs * units).reshape(inputs, units).astype(np.float32))

        def __call__(self, x):
            return tf.nn.relu(x @ self.kernel)

    layer = Dense(5, 10)
    x = tf.constant(np.linspace(0.1, 1.0, 35).reshape(7, 5).astype(np.float32))
    with tf.GradientTape(persistent=True) as tape:
        y = layer(x)
    j = tape.jacobian(y, layer.kernel)
    assert j.shape == (7, 10, 5, 10)
    g = tape.gradient(y, layer.kernel)
    np.testing.assert_allclose(tf.reduce_sum(j, axis=[0, 1]), g, rtol=1e-5)


def test_hessian_by_newtons_method():
    x = tf.Variable([1.5, -0.5], dtype=tf.float64)
    for _ in range(12):
        with tf.GradientTape() as t2:
            with tf.GradientTape() as t1:
                y = tf.reduce_sum(x**4) + x[0] * x[1] + tf.reduce_sum(x**2)
            g = t1.gradient(y, x)
        h = t2.jacobian(g, x)
        x.assign_sub(np.linalg.solve(h.numpy(), g.numpy()))
    np.testing.assert_allclose(g, [0.0, 0.0], atol=1e-6)


def regression():
    x = np.linspace(-2.0, 2.0, 201).astype(np.float32)
    return tf.constant(x), tf.constant(3.0 * x + 2.0)


def test_linear_regression_by_hand():
    x, y = regression()
    w, b = tf.Variable(0.0), tf.Variable(0.0)
    for _ in range(100):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(w * x + b - y))
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(0.1 * dw)
        b.assign_sub(0.1 * db)
    assert float(loss) < 1e-6


def test_linear_regression_with_adam():
    x, y = regression()
    w, b = tf.Variable(0.0), tf.Variable(0.0)
    optimizer = tf.optimizers.Adam(learning_rate=0.1)
    for _ in range(400):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(w * x + b - y))
        grads = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(grads, [w, b]))
    assert abs(float(w) - 3.0) < 1e-2
    assert abs(float(b) - 2.0) < 1e-2
    assert int(optimizer.iterations) == 400


@pytest.mark.parametrize("name", ["norm", "global_norm", "value"])
def test_clipping_between_gradient_and_apply(name):
    clip = {
        "norm": lambda grads: [tf.clip_by_norm(g, 1.0) for g in grads],
        "global_norm": lambda grads: tf.clip_by_global_norm(grads, 1.0)[0],
        "value": lambda grads: [tf.clip_by_value(g, -0.5, 0.5) for g in grads],
    }[name]
    variables = [tf.Variable([100.0, -100.0]), tf.Variable(50.0)]
    optimizer = tf.optimizers.SGD(learning_rate=1.0)
    before = [v.numpy() for v in variables]
    with tf.GradientTape() as tape:
        loss = tf.add_n([tf.reduce_sum(v**2) for v in variables])
    grads = clip(tape.gradient(loss, variables))
    optimizer.apply_gradients(zip(grads, variables))
    for g, v, b in zip(grads, variables, before):
        np.testing.assert_allclose(v.numpy(), b - g.numpy(), rtol=1e-6)
    assert float(tf.linalg.global_norm(grads)) <= 2.0


def two_models():
    class Affine(tf.Module):
        def __init__(self, value, name=None):
            super().__init__(name)
            self.w = tf.Variable(value, name="w")
            self.b = tf.Variable(0.0, name="b")

        def __call__(self, x):
            return self.w * x + self.b

    return Affine(2.0, "generator"), Affine(3.0, "critic")


def test_the_variables_of_two_models_in_one_call():
    generator, critic = two_models()
    with tf.GradientTape() as tape:
        loss = critic(generator(tf.constant(1.5))) ** 2
    grads = tape.gradient(loss, generator.trainable_variables + critic.trainable_variables)
    assert isinstance(grads, tuple)
    assert [v.name for v in generator.trainable_variables] == ["b:0", "w:0"]
    np.testing.assert_allclose([float(g) for g in grads], [54.0, 81.0, 18.0, 54.0])


def test_two_tapes_for_two_models():
    generator, critic = two_models()
    with tf.GradientTape() as gen_tape, tf.GradientTape() as critic_tape:
        score = critic(generator(tf.constant(1.5)))
        gen_loss, critic_loss = -score, score**2
    gen = gen_tape.gradient(gen_loss, generator.trainable_variables)
    cri = critic_tape.gradient(critic_loss, critic.trainable_variables)
    np.testing.assert_allclose([float(g) for g in gen + cri], [-3.0, -4.5, 18.0, 54.0])


def test_monitoring_gradients_while_training():
    x, y = regression()
    w = tf.Variable(0.0, name="w")
    norms, missing = [], []
    unused = tf.Variable(1.0, name="unused")
    optimizer = tf.optimizers.SGD(0.1)
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(w * x + 2.0 - y))
        variables = [w, unused]
        grads = tape.gradient(loss, variables)
        missing += [v.name for g, v in zip(grads, variables) if g is None]
        norms.append(float(tf.norm(grads[0])))
        optimizer.apply_gradients([(g, v) for g, v in zip(grads, variables) if g is not None])
    assert norms[0] > norms[-1]
    assert set(missing) == {"unused:0"}


def test_no_gradients_at_all_is_an_error():
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match=r"[Nn]o gradient"):
        tf.optimizers.SGD(0.1).apply_gradients([(None, v)])


def test_minimize():
    v = tf.Variable([4.0, -3.0])
    optimizer = tf.optimizers.SGD(0.1)
    for _ in range(100):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((v - [1.0, 2.0]) ** 2)
        optimizer.minimize(loss, [v], tape=tape)
    np.testing.assert_allclose(v, [1.0, 2.0], atol=1e-4)


def test_embedding_gradients_are_sparse_and_applied():
    table = tf.Variable(np.ones((4, 2), np.float32))
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup(table, [1, 3, 1])
        loss = tf.reduce_sum(rows * rows)
    g = tape.gradient(loss, table)
    assert isinstance(g, tf.IndexedSlices)
    tf.optimizers.SGD(0.25).apply_gradients([(g, table)])
    assert table.numpy().tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0.5, 0.5]]


def test_stop_gradient_and_stop_recording():
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x * x + tf.stop_gradient(y * y)
        with tape.stop_recording():
            z_outside = y * x
        total = z + z_outside
    assert [None if g is None else float(g) for g in tape.gradient(total, [x, y])] == [4.0, None]


def test_the_guides_none_cases():
    """The well-known ways to get None"""
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_mean(x.numpy() ** 2)
    assert tape.gradient(y, x) is None
    i = tf.constant(10)
    with tf.GradientTape() as tape:
        tape.watch(i)
        z = i * i
    assert tape.gradient(z, i) is None
    x0, x1 = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        x1.assign_add(x0)
        y = x1**2
    assert tape.gradient(y, x0) is None
