"""Mixed precision: policies, and a loss scale that changes without losing a step's variables; eager and compiled."""

import importlib.util

import numpy as np
import pytest

import gradtape as tf
from gradtape import keras

MODES = ["eager", pytest.param("compiled", marks=pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="needs jax"))]
DATA = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
TARGET = DATA.sum(1, keepdims=True)


@pytest.fixture
def policy(request):
    """The global policy by its name, for one test."""
    keras.mixed_precision.set_global_policy(request.param)
    yield request.param
    keras.mixed_precision.set_global_policy("float32")


def network():
    keras.utils.set_random_seed(3)
    hidden = keras.layers.Dense(8, activation="relu")
    return keras.Sequential([keras.Input((4,)), hidden, keras.layers.Dense(1, dtype="float32")])


def scaled(**settings):
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.05), **settings)


def loop(model, optimizer, mode, by_hand=False):
    """A training step of one's own."""

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            whole = optimizer.get_scaled_loss(loss) if by_hand else optimizer.scale_loss(loss)
        gradients = tape.gradient(whole, model.trainable_variables)
        if by_hand:
            gradients, _ = tf.clip_by_global_norm(optimizer.get_unscaled_gradients(gradients), 1e9)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return tf.function(step) if mode == "compiled" else step


@pytest.mark.parametrize(
    ("policy", "mode"),
    [("mixed_float16", "eager"), ("mixed_bfloat16", "eager"), ("mixed_bfloat16", "compiled")],
    indirect=["policy"],
)
def test_fit(policy, mode):
    if mode == "compiled":
        pytest.importorskip("jax")
    model = network()
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse", run_eagerly=mode == "eager")
    half = policy.removeprefix("mixed_")
    hidden = model.layers[0]
    assert (hidden.compute_dtype, hidden.kernel.dtype, hidden(DATA).dtype.name, model(DATA).dtype.name) == (
        half, "float32", half, "float32",
    )  # fmt: skip
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer) == (policy == "mixed_float16")
    losses = model.fit(DATA, TARGET, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=True)
def test_a_step_that_overflows_changes_only_the_scale(policy, mode):
    model, optimizer = network(), scaled(initial_scale=64.0, dynamic_growth_steps=3)
    step = loop(model, optimizer, mode)
    scales = []
    for number in range(8):
        overflows = number in (0, 4)  # the first one too, which makes the variables of the optimizer
        before = [v.numpy() for v in model.weights]
        step(tf.constant(DATA * (1e30 if overflows else 1.0)), tf.constant(TARGET))
        unchanged = [np.array_equal(x, v.numpy()) for x, v in zip(before, model.weights, strict=True)]
        assert all(unchanged) if overflows else not any(unchanged)
        assert all(np.isfinite(v.numpy()).all() for v in optimizer.variables)
        scales.append(float(optimizer.dynamic_scale.numpy()))
    assert scales == [32.0, 32.0, 32.0, 64.0, 32.0, 32.0, 32.0, 64.0]
    assert int(optimizer.iterations.numpy()) == 6
    assert len(optimizer.variables) == 4 + 2 + 2 * len(model.trainable_variables)


@pytest.mark.parametrize("mode", MODES)
def test_scaling_by_hand_equals_scaling_inside(mode):
    found = []
    for by_hand, how in ((False, "eager"), (True, mode)):
        model, optimizer = network(), scaled(initial_scale=1024.0)
        step = loop(model, optimizer, how, by_hand)
        found.append([float(step(tf.constant(DATA), tf.constant(TARGET))) for _ in range(4)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    assert found[0][-1] < found[0][0]


@pytest.mark.parametrize("compiled", ["nothing", "gradients", "application", "both"])
def test_gradients_unscaled_in_one_function_are_applied_in_another(compiled):
    if compiled != "nothing":
        pytest.importorskip("jax")
    v, opt = keras.Variable(3.0), keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=8.0)
    opt.build([v])
    names = [x.path for x in opt.variables]

    def unscaled():
        with tf.GradientTape() as tape:
            loss = opt.get_scaled_loss(2.0 * v)
        return opt.get_unscaled_gradients([tape.gradient(loss, v)])

    def scaled():
        with tf.GradientTape() as tape:
            loss = opt.scale_loss(2.0 * v)
        return [tape.gradient(loss, v)]

    def apply(g):
        opt.apply_gradients([(g, v)])

    if compiled in ("gradients", "both"):
        unscaled, scaled = tf.function(unscaled), tf.function(scaled)
    if compiled in ("application", "both"):
        apply = tf.function(apply)
    values = []
    for gradients in (scaled, unscaled, unscaled, scaled, unscaled, scaled):
        apply(*gradients())
        values.append(float(v.numpy()))
    assert values == [2.0, 1.0, 0.0, -1.0, -2.0, -3.0]
    unscaled()  # an error keeps these from being applied
    apply(*scaled())
    assert float(v.numpy()) == -4.0
    (g,) = unscaled()
    apply(g)
    apply(g)  # in two parts, for instance
    assert float(v.numpy()) == -6.0
    assert [x.path for x in opt.variables] == names  # which Keras saves
    with pytest.raises(ValueError, match="3 gradients for 1 variables"):
        opt.apply([g] * 3, [v])


def test_whether_gradients_are_unscaled_is_not_saved(tmp_path):
    opt = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5))
    opt.get_unscaled_gradients([tf.constant(1.0)])
    path = tf.train.Checkpoint(opt=opt).save(str(tmp_path / "c"))
    assert not any("unscaled" in name for name, _ in tf.train.list_variables(path))


def test_minimize_scales():
    v = keras.Variable(3.0)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0)
    optimizer.minimize(lambda: v * v, [v])
    assert float(v.numpy()) == pytest.approx(2.4)
    optimizer.minimize(lambda: v * np.float32(np.inf), [v])
    assert (float(v.numpy()), float(optimizer.dynamic_scale.numpy())) == (pytest.approx(2.4), 4.0)


def test_small_gradients_are_kept():
    """A gradient of 2⁻²⁸ is zero in float16; times 2¹⁵ it is not."""
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", dtype="mixed_float16")
    layer.build((None, 1))
    found = []
    for scale in (1.0, 2.0**15):
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0), initial_scale=scale)
        layer.kernel.assign([[0.0]])
        with tf.GradientTape() as tape:
            y = layer(tf.constant([[2.0**-14]], tf.float16)) * tf.constant(2.0**-14, tf.float16)
            loss = optimizer.scale_loss(tf.reduce_sum(y))
        optimizer.apply_gradients([(tape.gradient(loss, layer.kernel), layer.kernel)])
        found.append(float(layer.kernel.numpy()[0, 0]))
    assert found == [0.0, -(2.0**-28)]


def test_policy_of_a_layer():
    layer = keras.layers.Dense(3, dtype=keras.mixed_precision.Policy("mixed_bfloat16"))
    wide = keras.layers.Dense(3, dtype="float64")
    with tf.GradientTape() as tape:
        y = layer(DATA)
        loss = tf.reduce_sum(tf.cast(wide(y), tf.float32))
    assert (y.dtype.name, layer.kernel.dtype, wide.kernel.dtype) == ("bfloat16", "float32", "float64")
    variables = [*layer.trainable_variables, *wide.trainable_variables]
    gradients = tape.gradient(loss, variables)
    assert [g.dtype.name for g in gradients] == ["float32", "float32", "float64", "float64"]
    keras.optimizers.Adam(0.1).apply_gradients(zip(gradients, variables))
