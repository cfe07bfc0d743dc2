"""Training with variables on a device: optimizers, compiled functions, checkpoints, data."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape.optimizers import on_device

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(8, 4)), RNG.normal(size=(4, 3))

OPTIMIZERS = {
    "sgd": lambda: tf.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: tf.optimizers.Adam(0.05, amsgrad=True),
    "adamw": lambda: tf.optimizers.AdamW(0.05, weight_decay=0.1, global_clipnorm=0.5),
    "rmsprop": lambda: tf.optimizers.RMSprop(0.05, centered=True, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3),
    "accumulated": lambda: tf.optimizers.Adam(0.05, gradient_accumulation_steps=2),
    "schedule": lambda: tf.optimizers.SGD(tf.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
    "function": lambda: tf.optimizers.SGD(lambda: 0.1),
}


def place(value) -> str:
    return value.device.removeprefix("/job:localhost/replica:0/task:0/device:")


def train(optimizer, name: str, steps: int = 6, changed=None) -> tuple[list, list]:
    with tf.device(name):
        variables = [tf.Variable(W), tf.Variable(np.zeros(3))]
        x = tf.constant(X)
    losses = []
    for i in range(steps):
        if changed is not None and i == steps // 2:
            changed(optimizer)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(x @ variables[0] + variables[1]))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        losses.append(float(loss))
    assert {place(v) for v in variables} == {name[1:]}
    assert int(optimizer.iterations) == steps // (optimizer.gradient_accumulation_steps or 1)
    return losses, [v.numpy() for v in variables]


def same(a, b) -> None:
    for part, other in zip(a, b):
        np.testing.assert_allclose(part, other, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_same_steps_as_on_the_host(make):
    (losses, values), (wanted, numbers) = train(make(), "/CPU:1"), train(make(), "/CPU:0")
    same(losses, wanted)
    same(values, numbers)


def test_a_step_is_one_program(monkeypatch):
    optimizer = tf.optimizers.Adam(0.05)
    monkeypatch.setattr(on_device.functional, "_update", _counted(calls := [], on_device.functional._update))
    train(optimizer, "/CPU:1", 6)
    assert len(calls) <= 2  # traced, not run


def _counted(calls, function):
    def call(*args):
        calls.append(args)
        return function(*args)

    return call


@pytest.mark.parametrize(
    "change",
    [lambda o: setattr(o, "learning_rate", 0.01), lambda o: setattr(o, "beta_1", 0.5), lambda o: setattr(o, "clipnorm", 0.01)],
    ids=["learning_rate", "beta_1", "clipnorm"],
)
def test_a_setting_that_changes_between_steps_counts(change):
    make = lambda: tf.optimizers.Adam(0.05)
    (losses, values), (wanted, numbers) = train(make(), "/CPU:1", 6, change), train(make(), "/CPU:0", 6, change)
    same(losses, wanted)
    same(values, numbers)


def test_a_constraint_and_a_rule_of_the_users_own():
    class Own(tf.optimizers.Optimizer):
        calls = 0

        def update_step(self, gradient, variable, learning_rate):
            self.calls += 1
            variable.assign_sub(tf.cast(learning_rate, gradient.dtype) * gradient)

    own = Own(0.1)
    train(own, "/CPU:1", 3)
    assert own.calls == 6
    with tf.device("/CPU:1"):
        v = tf.Variable([2.0], constraint=lambda value: tf.maximum(value, 1.5))
    tf.optimizers.SGD(1.0).apply_gradients([(tf.constant([1.0]), v)])
    assert (v.numpy().tolist(), place(v)) == ([1.5], "CPU:1")


def test_variables_here_and_there():
    with tf.device("/CPU:1"):
        far = tf.Variable(W)
    near = tf.Variable(np.zeros(3))
    optimizer = tf.optimizers.Adam(0.05)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(tf.constant(X) @ far + near))
        optimizer.apply_gradients(zip(tape.gradient(loss, [far, near]), [far, near]))
    assert (place(far), place(near)) == ("CPU:1", "CPU:0")


# Compiled functions


def test_a_function_runs_where_its_variables_are():
    with tf.device("/CPU:1"):
        v = tf.Variable(W)
    traces = []

    @tf.function
    def step(x):
        traces.append(x.shape)
        v.assign_sub(0.1 * tf.reduce_mean(x) * v)
        return tf.reduce_sum(v)

    results = [step(tf.constant(X)) for _ in range(3)]
    assert {place(r) for r in results} == {place(v)} == {"CPU:1"}
    assert len(traces) == 1
    np.testing.assert_allclose(v.numpy(), W * (1 - 0.1 * X.mean()) ** 3)
    with tf.device("/CPU:2"):
        far = tf.constant(X)
    assert np.isfinite(float(step(far)))  # operands on several devices
    assert np.isfinite(float(step(far) + tf.reduce_sum(far)))


@pytest.mark.parametrize("name", ["/CPU:0", "/CPU:2"])
def test_a_function_called_in_a_scope_runs_there(name):
    f = tf.function(lambda x: tf.tanh(x) * 2.0)
    with tf.device(name):
        assert place(f(tf.constant(X))) == name[1:]
        assert place(f(X)) == name[1:]
    assert place(f(tf.constant(X))) == "CPU:0"


def test_a_scope_inside_a_function_changes_nothing():
    @tf.function
    def f(x):
        with tf.device("/CPU:1"):
            y = x * tf.constant(2.0, tf.float64)
        with tf.device("/CPU:2"):
            return y + tf.ones_like(y)

    np.testing.assert_allclose(f(tf.constant(X)).numpy(), X * 2 + 1)
    with tf.device("/CPU:1"):
        np.testing.assert_allclose(f(tf.constant(X)).numpy(), X * 2 + 1)


def test_a_tape_around_a_function():
    with tf.device("/CPU:1"):
        x, v = tf.constant(X), tf.Variable(X + 1)
    f = tf.function(lambda a: tf.reduce_sum(tf.tanh(a) * v))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) * 2.0
    gx, gv = tape.gradient(y, [x, v])
    assert (place(gx), place(gv)) == ("CPU:1", "CPU:1")
    np.testing.assert_allclose(gv.numpy(), 2 * np.tanh(X))


def test_a_tape_inside_and_an_optimizer():
    results = []
    for name in ("/CPU:0", "/CPU:1"):
        with tf.device(name):
            v, x = tf.Variable(W), tf.constant(X)
        optimizer = tf.optimizers.Adam(0.1)

        @tf.function
        def step(x, v=v, optimizer=optimizer):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ v) ** 2.0)
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
            return loss

        results.append([float(step(x)) for _ in range(4)])
        assert place(v) == name[1:]
        v.assign(W)
        optimizer.apply_gradients([(tf.ones_like(v), v)])  # eager after compiled
        assert place(v) == name[1:]
    np.testing.assert_allclose(*results, rtol=1e-9)


# Around training


def test_checkpoints(tmp_path):
    with tf.device("/CPU:1"):
        v = tf.Variable(W)
    path = tf.train.Checkpoint(v=v).save(str(tmp_path / "c"))
    v.assign(np.zeros_like(W))
    tf.train.Checkpoint(v=v).restore(path)
    assert place(v) == "CPU:1"
    np.testing.assert_array_equal(v.numpy(), W)


def test_datasets_and_printing(capsys):
    with tf.device("/CPU:1"):
        x = tf.constant(X)
    batches = list(tf.data.Dataset.from_tensor_slices(x).batch(4))
    np.testing.assert_array_equal(np.concatenate([b.numpy() for b in batches]), X)
    print(x[0, 0])
    tf.print(x[0])
    assert "tf.Tensor(" in capsys.readouterr().out
