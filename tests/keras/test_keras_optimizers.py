"""Keras's optimizers here: they agree with ours, run on the same arrays, and each kind takes what belongs to the other."""

import numpy as np
import pytest

import gradtape as tf
from gradtape import errors, keras

SETTINGS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}],
    "Adam": [{}, {"amsgrad": True}, {"beta_1": 0.8, "beta_2": 0.99, "epsilon": 1e-5}],
    "AdamW": [{"weight_decay": 0.02}],
    "Adamax": [{}],
    "Nadam": [{}],
    "RMSprop": [{}, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.5, "centered": True}],
    "Adagrad": [{"initial_accumulator_value": 0.2}],
    "Adadelta": [{"learning_rate": 1.0}],
    "Ftrl": [{}, {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.1, "beta": 0.1}],
    "Lion": [{}],
}
OPTIONS = [
    {}, {"clipnorm": 0.5}, {"clipvalue": 0.2}, {"global_clipnorm": 0.7}, {"weight_decay": 0.05}, {"loss_scale_factor": 8.0},
    {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 7}, {"gradient_accumulation_steps": 3},
    {"gradient_accumulation_steps": 2, "use_ema": True, "clipnorm": 0.3, "weight_decay": 0.01},
]  # fmt: skip
EVERY = [(name, settings) for name, several in SETTINGS.items() for settings in several]


def steps(optimizer, make, count=100, compiled=False):
    """What three variables come to, and what they were on the way."""
    random = np.random.default_rng(3)
    variables = [make(random.normal(size=shape).astype("float32")) for shape in ((3, 2), (4,), ())]
    found = []

    def apply(*gradients):
        optimizer.apply_gradients(zip(gradients, variables))

    if compiled:
        optimizer.build(variables)
        apply = tf.function(apply)
    for step in range(count):
        apply(*(tf.constant(random.normal(size=tuple(v.shape)).astype("float32")) for v in variables))
        if step % 9 == 0 or step == count - 1:
            found += [np.array(v) for v in variables]
    return found


def agree(xs, ys, tolerance):
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def in_keras_python(name):
    """The optimizer of Keras as a class of the user's own, for which Keras's Python runs."""
    return type("Own", (getattr(keras.optimizers, name),), {})


@pytest.mark.parametrize(("name", "settings"), EVERY)
def test_hundred_steps_agree(name, settings):
    native = steps(getattr(tf.optimizers, name)(**settings), tf.Variable)
    agree(native, steps(getattr(keras.optimizers, name)(**settings), keras.Variable), 0)
    agree(native, steps(in_keras_python(name)(**settings), keras.Variable), 1e-6)


@pytest.mark.parametrize("name", SETTINGS)
def test_options_agree(name):
    settings = SETTINGS[name][-1]
    for options in OPTIONS if name == "Adam" else OPTIONS[-1:]:
        native = steps(getattr(tf.optimizers, name)(**settings | options), tf.Variable)
        agree(native, steps(getattr(keras.optimizers, name)(**settings | options), keras.Variable), 0)
        agree(native, steps(in_keras_python(name)(**settings | options), keras.Variable), 1e-6)


@pytest.mark.parametrize("make", [keras.optimizers.Adam, in_keras_python("Nadam")], ids=["ours", "keras"])
def test_compiled_equals_eager(make):
    pytest.importorskip("jax")
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 4, 0.7)
    eager, compiled = (steps(make(rate, **OPTIONS[-1]), keras.Variable, 12, compiled) for compiled in (False, True))
    agree(eager, compiled, 2e-6)


class Returning(keras.optimizers.Optimizer):
    """Goes half the way back to where the variable began."""

    def build(self, variables):
        super().build(variables)
        self.starts = self.add_optimizer_variables(variables, "start")
        for start, variable in zip(self.starts, variables):
            self.assign(start, variable)

    def update_step(self, gradient, variable, learning_rate):
        start = self.starts[self._get_variable_index(variable)]
        self.assign(variable, (variable + start) / 2.0 + gradient)


@pytest.mark.parametrize("wrap", [lambda optimizer: optimizer, keras.optimizers.LossScaleOptimizer], ids=["plain", "scaled"])
def test_what_build_assigns_is_assigned_once(wrap):
    pytest.importorskip("jax")
    v, optimizer = keras.Variable(4.0), wrap(Returning(0.1))
    step = tf.function(lambda g: optimizer.apply([optimizer.scale_loss(g)], [v]) or v.value)
    assert [float(step(tf.constant(2.0))) for _ in range(3)] == [6.0, 7.0, 7.5]


def test_a_step_runs_no_python_of_keras_per_variable(monkeypatch):
    variables = [keras.Variable(np.ones(3, "float32")) for _ in range(3)]
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(variables)
    monkeypatch.delattr(keras.optimizers.Adam, "update_step")
    optimizer.apply_gradients([(tf.ones(3), v) for v in variables])
    np.testing.assert_allclose(variables[2].numpy(), 0.9, rtol=1e-5)


def test_the_state_is_in_the_variables_of_keras():
    v = keras.Variable(np.ones(2, "float32"))
    optimizer = keras.optimizers.Adam(0.1)
    for count in (1, 2):
        assert optimizer.apply_gradients([(tf.constant([1.0, -2.0]), v)]) is optimizer._iterations
        assert int(optimizer.iterations.numpy()) == count
    momentum = optimizer.variables[2]
    np.testing.assert_allclose(momentum.numpy(), [0.19, -0.38], rtol=1e-5)
    again = keras.optimizers.Adam(0.1)
    w = keras.Variable(v.numpy())
    again.build([w])
    again.set_weights([x.numpy() for x in optimizer.variables])
    for each, variable in ((optimizer, v), (again, w)):
        each.apply([tf.constant([0.5, 0.5])], [variable])
    np.testing.assert_array_equal(v.numpy(), w.numpy())


def test_settings_may_change_between_steps():
    v, optimizer = keras.Variable(0.0), keras.optimizers.SGD(1.0)
    moves = []
    for change in ({}, {"learning_rate": 0.5}, {"clipvalue": 1.0}, {"learning_rate": lambda: 0.25}, {"weight_decay": 2.0}):
        for name, value in change.items():
            setattr(optimizer, name, value)
        before = float(v.numpy())
        optimizer.apply_gradients([(tf.constant(4.0), v)])
        moves.append(float(v.numpy()) - before)
    assert moves == [-4.0, -2.0, -0.5, -0.25, pytest.approx(-0.25 + 0.5 * 6.75)]
    momentum = keras.optimizers.SGD(1.0)
    momentum.build([v])
    momentum.momentum = 0.5  # too late for a slot
    with pytest.raises(IndexError):
        momentum.apply_gradients([(tf.constant(4.0), v)])


def test_settings_may_change_between_traces():
    pytest.importorskip("jax")
    v, optimizer = keras.Variable(np.zeros(2, "float32")), keras.optimizers.SGD(1.0)
    step = tf.function(lambda g: optimizer.apply([g[:2]], [v]) or v.value)
    assert step(tf.ones(2)).numpy().tolist() == [-1.0, -1.0]
    optimizer.learning_rate = 0.25
    optimizer.clipvalue = 0.5
    assert step(tf.ones(3)).numpy().tolist() == [-1.125, -1.125]


def test_constraint_and_missing_gradients():
    v, other = keras.Variable([3.0, -1.0]), keras.Variable(1.0, name="other")
    v.constraint = keras.constraints.NonNeg()
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build([v, other])
    with pytest.warns(UserWarning, match="Gradients do not exist for variables .*other"):
        optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v), (None, other)])
    assert v.numpy().tolist() == [2.0, 0.0]
    with tf.GradientTape() as tape:
        loss = tf.cast(tf.argmax(v), tf.float32)
    with pytest.raises(errors.NoGradientsError, match=r"(?s)No gradients provided.*argmax"):
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    with pytest.raises(ValueError, match="Unknown variable"):
        optimizer.apply_gradients([(tf.constant(1.0), keras.Variable(1.0))])
    with pytest.raises(errors.InvalidArgumentError, match="Cannot update variable with shape"):
        optimizer.apply_gradients([(tf.constant([1.0]), v)])
    for bad in ([], [(v, tf.constant([1.0, 1.0]))]):
        with pytest.raises((ValueError, TypeError), match="apply_gradients"):
            keras.optimizers.SGD(1.0).apply_gradients(bad)
    assert v.numpy().tolist() == [2.0, 0.0]


BAD = {
    "shape": ([[1.0, 1.0], [1.0, 2.0, 3.0]], "Cannot update variable with shape"),
    "broadcast": ([1.0, [[1.0]]], "Cannot update variable with shape"),
    "count": ([[1.0, 1.0]] * 3, "3 gradients for 2 variables"),
    "complex": ([[1.0, 1.0], [[1j]]], "A gradient of dtype complex128 cannot update variable"),
    "bool": ([[1.0, 1.0], [[True]]], "A gradient of dtype bool cannot update variable"),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("make", [keras.optimizers.Adam, keras.optimizers.Adafactor, in_keras_python("SGD")])
@pytest.mark.parametrize(("given", "text"), BAD.values(), ids=BAD)
def test_gradients_that_do_not_fit_change_nothing(make, given, text, compiled):
    if compiled:
        pytest.importorskip("jax")
    variables, optimizer = [keras.Variable([1.0, 2.0]), keras.Variable([[1.0]])], make(0.1)
    optimizer.build(variables)
    before = [np.array(v) for v in (*variables, *optimizer.variables)]
    step = (tf.function if compiled else lambda f: f)(lambda grads: optimizer.apply(grads, variables))
    with pytest.raises((errors.InvalidArgumentError, ValueError), match=text):
        step([tf.constant(g) for g in given])
    for value, variable in zip(before, (*variables, *optimizer.variables), strict=True):
        np.testing.assert_array_equal(value, np.array(variable))


def test_gradients_that_keras_python_takes():
    """Missing, sparse, integer and double ones, and plain arrays."""
    variables, optimizer = [keras.Variable(np.ones((3, 2), "float32")) for _ in range(5)], in_keras_python("SGD")(1.0)
    sparse = tf.IndexedSlices(tf.ones((1, 2)), [1], [3, 2])
    given = [None, sparse, tf.ones((3, 2), tf.int32), tf.ones((3, 2), tf.float64), np.ones((3, 2), "float32")]
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        optimizer.apply(given, variables)
    assert [float(np.sum(v.numpy())) for v in variables] == [6.0, 4.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("make", [lambda name: getattr(keras.optimizers, name), in_keras_python], ids=["ours", "keras"])
def test_gradients_of_embeddings(name, make):
    table = np.random.default_rng(1).normal(size=(6, 2)).astype("float32")
    sparse, dense = (tf.keras.Variable(table) for _ in range(2))
    optimizers = make(name)(0.1), make(name)(0.1)
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [1, 4, 0], [6, 2])
    for optimizer, variable, g in zip(optimizers, (sparse, dense), (slices, tf.convert_to_tensor(slices))):
        for _ in range(3):
            optimizer.apply_gradients([(g, variable)])
    np.testing.assert_allclose(sparse.numpy(), dense.numpy(), rtol=1e-6)


@pytest.mark.parametrize("make", [keras.optimizers.SGD, tf.optimizers.SGD], ids=["keras", "native"])
@pytest.mark.parametrize("factor", [None, 16.0])
def test_minimize(make, factor):
    v = keras.Variable(3.0)
    optimizer = make(0.1, loss_scale_factor=factor)
    optimizer.minimize(lambda: v * v, [v])
    assert float(v.numpy()) == pytest.approx(2.4)
    with tf.GradientTape() as tape:
        loss = v * v
    optimizer.minimize(loss, [v], tape=tape)
    assert float(v.numpy()) == pytest.approx(1.92)
    with pytest.raises(ValueError, match="`tape` is required"):
        optimizer.minimize(loss, [v])


def test_variables_that_a_tape_names():
    layer, optimizer = keras.layers.Dense(1, kernel_initializer="ones"), keras.optimizers.SGD(0.5)
    layer.build((None, 2))
    optimizer.build(layer.trainable_variables)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.ones((1, 2))))
    watched = tape.watched_variables()
    optimizer.apply_gradients(zip(tape.gradient(loss, watched), watched))
    np.testing.assert_allclose(layer.kernel.numpy(), [[0.5], [0.5]])


# Native ones in Keras, Keras's schedules in native ones


@pytest.mark.parametrize(("name", "settings"), EVERY)
def test_native_optimizer_becomes_keras(name, settings):
    native = getattr(tf.optimizers, name)(**settings | {"clipnorm": 0.5, "use_ema": True, "name": "mine"})
    made = keras.optimizers.get(native)
    assert type(made) is getattr(keras.optimizers, name)
    assert made.get_config() == native.get_config()


class Halving(tf.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return 0.5 ** tf.cast(step, tf.float32)


def test_learning_rates_of_native_optimizers():
    schedule = tf.optimizers.schedules.CosineDecay(0.1, 10, warmup_target=0.3, warmup_steps=2)
    made = keras.optimizers.get(tf.optimizers.SGD(schedule))
    assert type(made._learning_rate) is keras.optimizers.schedules.CosineDecay
    shared = tf.Variable(0.25)
    for rate, expected in ((Halving(), [1.0, 0.5]), (shared, [0.25, 0.25]), (lambda: 0.125, [0.125, 0.125])):
        made, v = keras.optimizers.get(tf.optimizers.SGD(rate)), keras.Variable(0.0)
        for move in expected:
            before = float(v.numpy())
            made.apply_gradients([(tf.constant(-1.0), v)])
            assert float(v.numpy()) - before == move
    shared.assign(0.75)
    assert float(keras.optimizers.get(tf.optimizers.SGD(shared)).learning_rate) == 0.75


def test_schedules_of_either_kind():
    ours, theirs = (m.schedules.PiecewiseConstantDecay([1, 2], [1.0, 0.5, 0.25]) for m in (tf.optimizers, keras.optimizers))
    found = []
    for module in (tf.optimizers, keras.optimizers):
        for rate in (ours, theirs):
            v, optimizer = keras.Variable(0.0), module.SGD(rate)
            for _ in range(4):
                optimizer.apply_gradients([(tf.constant(-1.0), v)])
            found.append(float(v.numpy()))
            assert float(optimizer.learning_rate) == 0.25
            assert optimizer.get_config()["learning_rate"]["config"]["values"] == [1.0, 0.5, 0.25]
    assert found == [2.75] * 4
    with pytest.raises(TypeError, match="not settable"):
        optimizer.learning_rate = 0.1


def test_compile_takes_native_optimizers():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer=tf.optimizers.LossScale(tf.optimizers.Adam(0.5), 64.0, 7), loss="mse", run_eagerly=True)
    scaled = model.optimizer
    assert type(scaled) is keras.optimizers.LossScaleOptimizer
    assert type(scaled.inner_optimizer) is keras.optimizers.Adam
    assert (scaled.initial_scale, scaled.dynamic_growth_steps, float(scaled.learning_rate.numpy())) == (64.0, 7, 0.5)
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert int(scaled.iterations.numpy()) == 1

    class Own(tf.optimizers.Adam):
        pass

    with pytest.raises(ValueError, match=r"(?s)Could not interpret optimizer.*Own is a class of your own"):
        model.compile(optimizer=Own(0.1))


def test_weight_decay_is_left_out_where_the_native_one_leaves_it_out():
    native = tf.optimizers.SGD(1.0, weight_decay=0.5)
    v, bias = keras.Variable(2.0), keras.Variable(2.0, name="bias")
    native.exclude_from_weight_decay(var_list=[v], var_names=["bias"])
    made, w = keras.optimizers.get(native), keras.Variable(2.0)
    made.apply_gradients([(tf.constant(0.0), x) for x in (v, bias, w)])
    assert [float(x.numpy()) for x in (v, bias, w)] == [2.0, 2.0, 1.0]


def test_a_nan_stops_the_step_where_numbers_are_checked():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse", run_eagerly=True)
    before = [v.numpy() for v in model.weights]
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(errors.InvalidArgumentError, match=r"(?s)Infinity or NaN.*Tensor had NaN values"):
            model.train_on_batch(np.full((2, 2), np.nan), np.ones((2, 1)))
    finally:
        tf.debugging.disable_check_numerics()
    for value, variable in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(value, variable.numpy())


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("eagerly", [False, True])
def test_loss_scaling_by_a_power_of_two_changes_nothing_for_repeated_rows(name, eagerly):
    rng = np.random.default_rng(0)
    table, weights = rng.normal(size=(9, 4)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)
    x, y = rng.integers(0, 9, (8, 6)), rng.integers(0, 3, 8)
    x[:, 3:] = 2

    def trained(wrap):
        layers = [keras.layers.Embedding(9, 4), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(3, use_bias=False)]
        model = keras.Sequential([keras.Input((6,), dtype="int32"), *layers])
        model.set_weights([table, weights])
        optimizer = wrap(getattr(keras.optimizers, name)(learning_rate=0.05))
        model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=eagerly)
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        return model.get_weights()

    scaled = trained(lambda inner: keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=16.0))
    for a, b in zip(scaled, trained(lambda inner: inner), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
