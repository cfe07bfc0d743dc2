"""Learning rates, minimize, configuration, state, own rules, and the loss scale."""

import copy
import json
import pickle

import numpy as np
import pytest

import gradtape as tf
from gradtape import errors, optimizers
from gradtape.optimizers import schedules

pytestmark = pytest.mark.tiny

# Learning rate


def test_learning_rate_is_a_variable():
    v, opt = tf.Variable(1.0), optimizers.SGD(0.5)
    assert isinstance(opt.learning_rate, tf.Variable)
    assert float(opt.learning_rate) == float(opt.lr) == 0.5
    opt.learning_rate = 0.25
    assert float(opt.lr) == 0.25
    opt.learning_rate.assign(0.125)
    opt.lr = tf.constant(0.125)
    opt.apply_gradients([(1.0, v)])
    assert float(v) == 0.875
    opt.learning_rate.assign_add(0.125)
    opt.apply_gradients([(1.0, v)])
    assert float(v) == 0.625


@pytest.mark.parametrize("rate", [1, np.float64(1.0), np.float32(1.0), tf.constant(1.0), lambda: 1.0, lambda: tf.constant(1.0)])
def test_forms_of_learning_rates(rate):
    v = tf.Variable(3.0)
    optimizers.SGD(rate).apply_gradients([(1.0, v)])
    assert float(v) == 2.0


def test_shared_learning_rate():
    rate = tf.Variable(1.0)
    v, opts = tf.Variable(3.0), [optimizers.SGD(rate), optimizers.SGD(rate)]
    rate.assign(0.5)
    for opt in opts:
        opt.apply_gradients([(1.0, v)])
    assert float(v) == 2.0


@pytest.mark.parametrize("bad", ["a", None, [0.1, 0.2], True, 1j])
def test_bad_learning_rate(bad):
    with pytest.raises(ValueError, match="Argument `learning_rate` should be float"):
        optimizers.SGD(bad)


def test_schedule_as_learning_rate():
    v, opt = tf.Variable(0.0), optimizers.SGD(schedules.PiecewiseConstantDecay([1], [1.0, 0.25]))
    seen = []
    for _ in range(4):
        seen.append(float(opt.learning_rate))
        opt.apply_gradients([(-1.0, v)])
    assert seen == [1.0, 1.0, 0.25, 0.25]
    assert float(v) == 2.5
    with pytest.raises(TypeError, match="its learning rate is not settable"):
        opt.learning_rate = 0.1
    opt.learning_rate = lambda: 0.5
    opt.learning_rate = 2.0
    assert float(opt.learning_rate) == 2.0


def test_own_schedule():
    class Warm(schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.5 / (tf.cast(step, tf.float32) + 1.0)

    v, opt = tf.Variable(0.0), optimizers.SGD(Warm())
    opt.apply_gradients([(-1.0, v)])
    opt.apply_gradients([(-1.0, v)])
    assert float(v) == 0.75
    with pytest.raises(NotImplementedError, match="get_config"):
        opt.get_config()
    with pytest.raises(NotImplementedError, match="must override `__call__"):
        schedules.LearningRateSchedule()(1)


@pytest.mark.parametrize("make", [
    lambda: schedules.ExponentialDecay(0.1, 0, 0.5),
    lambda: schedules.PolynomialDecay(0.1, -1),
    lambda: schedules.CosineDecay(0.1, 0),
    lambda: schedules.CosineDecayRestarts(0.1, 0),
    lambda: schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2]),
    lambda: schedules.deserialize({"class_name": "Nothing", "config": {}}),
])  # fmt: skip
def test_bad_schedules(make):
    with pytest.raises(ValueError, match=r"must be > 0|should be 1 less|Unknown decay"):
        make()


# Differentiating by itself


def _recorded(opt, x):
    with tf.GradientTape() as tape:
        loss = x * x
    return opt.minimize(loss, [x], tape=tape)


@pytest.mark.parametrize("form", [
    _recorded,
    lambda opt, x: opt.minimize(lambda: x * x, [x]),
    lambda opt, x: opt.minimize(lambda: x * x, lambda: [x], tf.GradientTape()),
    lambda opt, x: opt.minimize(lambda: x * x, x),
])  # fmt: skip
def test_minimize_forms(form):
    x, opt = tf.Variable(3.0), optimizers.SGD(0.1)
    assert form(opt, x) is opt.iterations
    assert float(x) == pytest.approx(2.4)


def test_minimize_needs_a_tape():
    x = tf.Variable(3.0)
    with pytest.raises(ValueError, match="`tape` is required when a `Tensor` loss is passed"):
        optimizers.SGD(0.1).minimize(x * x, [x])


def test_minimize_watches_and_scales():
    x = tf.Variable(3.0, trainable=False)
    opt = optimizers.SGD(0.1, loss_scale_factor=16.0)
    ((g, variable),) = opt.compute_gradients(lambda: x * x, [x])
    assert variable is x
    assert float(g) == 96.0
    opt.minimize(lambda: x * x, [x])
    assert float(x) == pytest.approx(2.4)
    assert float(opt.scale_loss(tf.constant(2.0))) == 32.0


def test_training_converges():
    rng = np.random.default_rng(0)
    data = tf.constant(rng.normal(size=(64, 3)).astype("float32"))
    target = tf.constant(data.numpy() @ np.float32([[1.0], [-2.0], [0.5]]))
    makes = [
        lambda: optimizers.SGD(0.1), lambda: optimizers.SGD(0.05, momentum=0.9, nesterov=True), lambda: optimizers.Adam(0.1),
        lambda: optimizers.AdamW(0.1, weight_decay=1e-4), lambda: optimizers.RMSprop(0.02), lambda: optimizers.Adagrad(0.5),
        lambda: optimizers.Nadam(0.1), lambda: optimizers.Adamax(0.1), lambda: optimizers.Ftrl(0.5),
        lambda: optimizers.Adam(schedules.CosineDecay(0.2, 300)),
    ]  # fmt: skip
    for make in makes:
        w, opt = tf.Variable(np.zeros((3, 1), "float32")), make()
        for _ in range(300):
            with tf.GradientTape() as tape:
                error = data @ w - target
                loss = error * error / 64.0
            opt.apply_gradients([(tape.gradient(loss, w), w)])
        np.testing.assert_allclose(w.numpy().ravel(), [1.0, -2.0, 0.5], atol=0.05)


# Arguments, configuration and state


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"clipnorm": 1.0, "clipvalue": 1.0}, "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set."),
        ({"foo": 1}, "Argument\\(s\\) not recognized: {'foo': 1}"),
        ({"decay": 1e-4}, "InverseTimeDecay"),
        ({"momentum": 2.0}, "`momentum` must be a float between"),
        ({"use_ema": True, "ema_momentum": 1.5}, "`ema_momentum` must be in the range"),
        ({"use_ema": True, "ema_overwrite_frequency": 0.5}, "`ema_overwrite_frequency` must be an integer"),
        ({"gradient_accumulation_steps": 1}, "`gradient_accumulation_steps` must be an integer >= 2"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError, match=text):
        optimizers.SGD(0.1, **options)


def test_bad_options_of_others():
    with pytest.raises(ValueError, match="`weight_decay` must be a float"):
        optimizers.AdamW(weight_decay=None)
    with pytest.raises(ValueError, match="`beta_1`"):
        optimizers.Lion(beta_1=0.0)
    with pytest.raises(ValueError, match="`learning_rate_power`"):
        optimizers.Ftrl(learning_rate_power=0.5)
    with pytest.raises(ValueError, match="`l1_regularization_strength`"):
        optimizers.Ftrl(l1_regularization_strength=-1.0)


def test_options_by_position():
    opt = optimizers.Adam(0.1, 0.8, 0.9, 1e-3, True, 0.01, 1.0)
    assert (opt.beta_2, opt.amsgrad, opt.weight_decay, opt.clipnorm) == (0.9, True, 0.01, 1.0)
    opt = optimizers.AdamW(0.1, 0.02, 0.8, 0.9, 1e-3, True, None, 0.5)
    assert (opt.weight_decay, opt.beta_1, opt.clipvalue) == (0.02, 0.8, 0.5)


@pytest.mark.parametrize("name", [n for n in optimizers.__all__ if n[0].isupper() and n not in ("Optimizer", "LossScale")])
def test_config_round_trip(name):
    kind = getattr(optimizers, name)
    opt = kind(schedules.CosineDecay(0.1, 10), clipnorm=2.0, use_ema=True)
    config = json.loads(json.dumps(opt.get_config()))
    again = kind.from_config(config)
    assert again.get_config() == opt.get_config()
    assert optimizers.deserialize(optimizers.serialize(opt)).get_config() == opt.get_config()
    assert type(optimizers.get(name.lower())) is kind
    assert optimizers.get(opt) is opt


def test_get_unknown():
    with pytest.raises(ValueError, match="Unknown optimizer: 'nothing'"):
        optimizers.get("nothing")
    with pytest.raises(ValueError, match="Could not interpret"):
        optimizers.get(3)


def test_state_can_be_saved_and_restored():
    def train(opt, v, first, last):
        for step in range(first, last):
            opt.apply_gradients([(tf.constant([1.0, -0.5]) * float(step % 3), v)])

    a, opt = tf.Variable([1.0, 2.0]), optimizers.Adam(0.1)
    train(opt, a, 0, 5)
    b, other = tf.Variable(a.numpy()), optimizers.Adam(0.9)
    with pytest.raises(ValueError, match=r"build\(variables\) first"):
        other.set_weights(opt.get_weights())
    other.build([b])
    other.set_weights(opt.variables)
    again = pickle.loads(pickle.dumps(opt.get_weights()))
    np.testing.assert_array_equal(again[2], other.variables[2].numpy())
    train(opt, a, 5, 10)
    train(other, b, 5, 10)
    np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_copies_are_independent():
    options = {"use_ema": True, "gradient_accumulation_steps": 2, "weight_decay": 0.1}
    a, opt = tf.Variable([1.0, 2.0]), optimizers.Adam(0.1, **options)
    opt.exclude_from_weight_decay([a])
    opt.apply_gradients([([1.0, 2.0], a)])
    for b, other in (copy.deepcopy((a, opt)), pickle.loads(pickle.dumps((a, opt)))):
        before = a.numpy()
        for _ in range(3):
            other.apply_gradients([([1.0, -2.0], b)])
        np.testing.assert_array_equal(a.numpy(), before)
        assert int(other.iterations) == 2
        assert int(opt.iterations) == 0
        results = [v.numpy() for v in (b, *other.variables)]
    for _ in range(3):
        opt.apply_gradients([([1.0, -2.0], a)])
    for x, y in zip(results, (a, *opt.variables)):
        np.testing.assert_array_equal(x, y.numpy())


def test_names():
    v, opt = tf.Variable([1.0], name="layer/kernel"), optimizers.Adam(name="mine", use_ema=True)
    opt.build([v])
    assert [x.name for x in opt.variables] == [
        "mine/iteration:0", "mine/learning_rate:0", "mine/layer_kernel_0_average:0", "mine/layer_kernel_0_momentum:0",
        "mine/layer_kernel_0_velocity:0",
    ]  # fmt: skip
    assert optimizers.RMSprop().name.startswith("rm_sprop")
    assert "1 variables, 0 iterations" in repr(opt)


def test_excluded_from_weight_decay():
    a, b, c = (tf.Variable(1.0, name=n) for n in ("a", "bias", "c"))
    opt = optimizers.SGD(0.1, weight_decay=0.5)
    opt.exclude_from_weight_decay(var_list=[a], var_names=["bias"])
    opt.apply_gradients([(0.0, v) for v in (a, b, c)])
    assert [float(v) for v in (a, b)] == [1.0, 1.0]
    assert float(c) == pytest.approx(0.95)
    with pytest.raises(ValueError, match="before the optimizer is built"):
        opt.exclude_from_weight_decay(var_list=[b])


def test_finalize_without_average_does_nothing():
    v, opt = tf.Variable(1.0), optimizers.SGD(0.1)
    opt.finalize_variable_values([v])
    assert float(v) == 1.0


# A rule of one's own


def test_rule_in_the_manner_of_keras():
    class Heavy(optimizers.Optimizer):
        def build(self, variables):
            super().build(variables)
            self.momentums = self.add_optimizer_variables(variables, "momentum")

        def update_step(self, gradient, variable, learning_rate):
            m = self.momentums[self._get_variable_index(variable)]
            self.assign(m, m * 0.9 - gradient * tf.cast(learning_rate, variable.dtype))
            self.assign_add(variable, m)

    a, b = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    heavy, sgd = Heavy(learning_rate=0.1, clipvalue=0.5), optimizers.SGD(0.1, momentum=0.9, clipvalue=0.5)
    for _ in range(5):
        heavy.apply_gradients([(tf.constant([1.0, 0.25]), a)])
        sgd.apply_gradients([(tf.constant([1.0, 0.25]), b)])
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    assert len(heavy.variables) == 3


def test_rule_in_our_manner():
    class SignDescent(optimizers.Optimizer):
        def update(self, xp, k, scratch, g, p):
            (lr,), (s,) = k, scratch
            return (xp.subtract(p, xp.multiply(xp.sign(g, s), lr, s), p),)

    v = tf.Variable([1.0, 2.0])
    SignDescent(0.5).apply_gradients([(tf.constant([3.0, -0.1]), v)])
    np.testing.assert_array_equal(v.numpy(), [0.5, 2.5])
    with pytest.raises(NotImplementedError, match="must define `update`"):
        optimizers.Optimizer(0.1).apply_gradients([(1.0, tf.Variable(1.0))])


# Loss scale


def test_loss_scale_changes():
    v, opt = tf.Variable(1.0), optimizers.LossScale(optimizers.SGD(0.5), initial_scale=8.0, growth_steps=2)
    assert (opt.scale, opt.skipped, opt.good_steps) == (8.0, 0, 0)
    opt.apply_gradients([(tf.constant(np.inf), v)])
    assert (opt.scale, opt.skipped, float(v), int(opt.iterations)) == (4.0, 1, 1.0, 0)
    opt.apply_gradients([(tf.constant(np.nan), v)])
    assert (opt.scale, opt.skipped) == (2.0, 2)
    opt.apply_gradients([(tf.constant(2.0), v)])
    assert (float(v), opt.good_steps, opt.scale) == (0.5, 1, 2.0)
    opt.apply_gradients([(tf.constant(2.0), v)])
    assert (float(v), opt.good_steps, opt.scale, int(opt.iterations)) == (0.0, 0, 4.0, 2)
    assert float(opt.get_scaled_loss(tf.constant(3.0))) == float(opt.scale_loss(np.float32(3.0))) == 12.0
    assert float(opt.scale_loss(lambda: tf.constant(3.0))()) == 12.0
    assert [None if g is None else float(g) for g in opt.get_unscaled_gradients([tf.constant(8.0), None])] == [2.0, None]


def test_gradients_unscaled_by_hand_are_applied_as_they_are():
    v, opt = tf.Variable(3.0), optimizers.LossScale(optimizers.SGD(0.5), initial_scale=8.0)
    for expected in (2.0, 1.0):
        with tf.GradientTape() as tape:
            loss = opt.get_scaled_loss(2.0 * v)
        (unscaled,) = opt.get_unscaled_gradients([tape.gradient(loss, v)])
        opt.apply_gradients([(tf.clip_by_value(unscaled, -5.0, 5.0), v)])
        assert float(v) == expected
    opt.apply_gradients([(opt.scale_loss(tf.constant(1.0)), v)])  # of the scaled loss again
    assert float(v) == 0.5


@pytest.mark.parametrize("compiled", ["gradients", "application", "both"])
def test_gradients_unscaled_in_one_function_are_applied_in_another(compiled):
    pytest.importorskip("jax")
    v, opt = tf.Variable(3.0), optimizers.LossScale(optimizers.SGD(0.5), initial_scale=8.0)

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

    if compiled != "application":
        unscaled, scaled = tf.function(unscaled), tf.function(scaled)
    if compiled != "gradients":
        apply = tf.function(apply)
    values = []
    for gradients in (scaled, unscaled, unscaled, scaled, unscaled, scaled):
        apply(*gradients())
        values.append(float(v))
    assert values == [2.0, 1.0, 0.0, -1.0, -2.0, -3.0]
    unscaled()  # an error keeps these from being applied
    apply(*scaled())
    assert float(v) == -4.0
    (g,) = unscaled()
    apply(g)
    apply(g)  # in two parts, for instance
    assert float(v) == -6.0


def test_whether_gradients_are_unscaled_is_not_saved(tmp_path):
    opt = optimizers.LossScale(optimizers.SGD(0.5))
    opt.get_unscaled_gradients([tf.constant(1.0)])
    path = tf.train.Checkpoint(opt=opt).save(str(tmp_path / "c"))
    assert not any("unscaled" in name for name, _ in tf.train.list_variables(path))


@pytest.mark.parametrize("wrap", [lambda opt: opt, optimizers.LossScale], ids=["plain", "scaled"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_complex_gradient_of_a_real_variable_is_refused(wrap, compiled):
    if compiled:
        pytest.importorskip("jax")
    v, opt = tf.Variable([1.0, 2.0]), wrap(optimizers.SGD(0.1))
    opt.build([v])
    step = (tf.function if compiled else lambda f: f)(lambda g: opt.apply_gradients([(g, v)]))
    with pytest.raises(errors.InvalidArgumentError, match="gradient of dtype complex128 cannot update"):
        step(tf.constant([1j, 1.0]))
    assert v.numpy().tolist() == [1.0, 2.0]


class Holder:
    """What Keras's variables are to an optimizer: an object that holds a variable."""

    def __init__(self, value):
        self.__gradtape_variable__ = tf.Variable(value)


@pytest.mark.parametrize("wrap", [lambda opt: opt, optimizers.LossScale], ids=["plain", "scaled"])
def test_objects_that_hold_a_variable(wrap):
    held, plain = Holder([1.0, 2.0]), tf.Variable([1.0, 2.0])
    ours = wrap(optimizers.Adam(0.1, weight_decay=0.1, use_ema=True))
    theirs = wrap(optimizers.Adam(0.1, weight_decay=0.1, use_ema=True))
    ours.build([held])
    for g in ([1.0, -1.0], [0.5, 3.0]):
        ours.apply_gradients([(tf.constant(g), held)])
        theirs.apply_gradients([(tf.constant(g), plain)])
    ours.minimize(lambda: tf.reduce_sum(held.__gradtape_variable__**2), [held])
    theirs.minimize(lambda: tf.reduce_sum(plain**2), plain)
    ours.finalize_variable_values([held])
    theirs.finalize_variable_values([plain])
    np.testing.assert_array_equal(held.__gradtape_variable__.numpy(), plain.numpy())


def test_loss_scale_keeps_small_gradients():
    v, opt = tf.Variable(0.0, dtype="float32"), optimizers.LossScale(optimizers.SGD(1.0), initial_scale=2.0**15)
    opt.apply_gradients([(tf.constant(2.0**-14, tf.float16), v)])  # unscaled in float32: 2**-29 is 0 in float16
    assert float(v) == -(2.0**-29)


def test_loss_scale_sparse_none_and_errors():
    v = tf.Variable(np.zeros((3, 2), "float32"))
    opt = optimizers.LossScale(optimizers.SGD(1.0), 4.0)
    opt.apply_gradients([(tf.IndexedSlices(np.ones((1, 2), "float32"), [1], [3, 2]), v)])
    np.testing.assert_array_equal(v.numpy()[1], [-0.25, -0.25])
    opt.apply_gradients([(tf.IndexedSlices(np.full((1, 2), np.nan, "float32"), [1], [3, 2]), v)])
    assert opt.skipped == 1
    with pytest.raises(errors.NoGradientsError):
        opt.apply_gradients([(None, v)])
    with pytest.raises(ValueError, match="takes pairs"):
        opt.apply_gradients([tf.constant(1.0)])
    with pytest.raises(TypeError, match="LossScale wraps an optimizer"):
        optimizers.LossScale(0.1)
    with pytest.raises(ValueError, match="positive scale"):
        optimizers.LossScale(optimizers.SGD(), initial_scale=0.0)


def test_loss_scale_wraps():
    opt = optimizers.LossScale(optimizers.Adam(0.5), 4.0, 7)
    assert float(opt.learning_rate) == 0.5
    opt.learning_rate = 0.25
    assert float(opt.inner_optimizer.learning_rate) == 0.25
    assert len(opt.variables) == 5
    again = optimizers.deserialize(optimizers.serialize(opt))
    assert again.get_config() == opt.get_config()
    x = tf.Variable(3.0)
    sgd = optimizers.LossScale(optimizers.SGD(0.1))
    sgd.minimize(lambda: x * x, [x])
    assert float(x) == pytest.approx(2.4)
    sgd.apply([tf.constant(np.inf)], [x])
    assert sgd.skipped == 1


def test_float16_loop_overflows_recovers_and_trains():
    rng = np.random.default_rng(1)
    data = tf.constant(rng.normal(size=(32, 3)), tf.float16)
    target = tf.constant(data.numpy().astype("float32") @ [[1.0], [-2.0], [0.5]], tf.float16)
    w = tf.Variable(np.zeros((3, 1)), dtype="float16")
    opt = optimizers.LossScale(optimizers.SGD(0.1), growth_steps=20)
    scales = []
    for _ in range(200):
        with tf.GradientTape() as tape:
            error = data @ w - target
            loss = opt.scale_loss(error * error / 32.0)
        opt.apply_gradients([(tape.gradient(loss, w), w)])
        scales.append(opt.scale)
    assert opt.skipped > 0
    assert max(scales[50:]) > min(scales)  # grew again
    assert np.isfinite(w.numpy()).all()
    np.testing.assert_allclose(w.numpy().ravel().astype("float32"), [1.0, -2.0, 0.5], atol=0.02)
