"""Gradients of functions from saved models: those of the functions that were saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gradtape as tf

pytest.importorskip("jax")

ROWS, INDICES = tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int32)


def rows(n, columns=3):
    return np.random.default_rng(n).normal(size=(n, columns)).astype("float32")


@tf.custom_gradient
def doubled_slope(x):
    return x, lambda upstream: 2.0 * upstream


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(rows(3, 4))
        self.table = tf.Variable(rows(9))
        self.fixed = tf.Variable(rows(1, 4), trainable=False)
        self.count = tf.Variable(3)

    @tf.function(input_signature=[ROWS, INDICES, tf.TensorSpec([])])
    def serve(self, x, indices, scale):
        inner = doubled_slope(x) + tf.gather(self.table, indices)
        out = tf.nn.relu(inner @ self.w + self.fixed) * scale
        return {"out": out, "none": None, "next": indices + self.count, "twice": tf.concat([inner, tf.stop_gradient(x)], 0)}


def loaded(module, folder):
    tf.saved_model.save(module, folder)
    return tf.saved_model.load(folder)


def gradients(net, n, compiled, sources=("w", "table", "fixed")):
    """Of a loss, by the arguments and the variables; all as arrays."""
    x, scale = tf.constant(rows(n)), tf.constant(0.5)
    indices = tf.constant(np.arange(n, dtype="int32") % 4)
    variables = [getattr(net, name) for name in sources]

    def run(x, indices, scale):
        with tf.GradientTape() as tape:
            tape.watch([x, scale, net.fixed])
            found = net.serve(x, indices, scale)
            loss = tf.reduce_sum(found["out"] ** 2) + tf.reduce_sum(tf.sin(found["twice"]))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, [x, scale, *variables])]

    return [g.numpy() for g in (tf.function(run) if compiled else run)(x, indices, scale)]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "in a function"])
def test_gradients_are_those_of_the_function(compiled, tmp_path):
    net = Net()
    again = loaded(net, tmp_path)
    for n in (1, 2, 6):
        for found, expected in zip(gradients(again, n, compiled), gradients(net, n, False)):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    once_more = loaded(again, tmp_path / "again")
    for found, expected in zip(gradients(once_more, 3, compiled), gradients(net, 3, False)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "in a function"])
def test_training_what_was_loaded(compiled, tmp_path):
    net = Net()
    nets = [net, loaded(net, tmp_path)]
    x, indices = tf.constant(rows(5)), tf.constant([1, 2, 3, 1, 8])
    losses = []
    for one in nets:
        optimizer, variables = tf.optimizers.Adam(0.05), [one.w, one.table]

        def step(one=one, optimizer=optimizer, variables=variables):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((one.serve(x, indices, 1.0)["out"] - 1.0) ** 2)
            optimizer.apply_gradients(zip(map(tf.convert_to_tensor, tape.gradient(loss, variables)), variables))
            return loss

        step = tf.function(step) if compiled else step
        losses.append([float(step()) for _ in range(20)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    assert losses[0][-1] < 0.8 * losses[0][0]


def test_variables_count_with_the_values_that_they_had(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(3.0)
    module.square = tf.function(lambda x: module.v**2 * x, input_signature=[tf.TensorSpec([])])
    again = loaded(module, tmp_path)
    with tf.GradientTape(persistent=True) as tape:
        y = again.square(2.0)
    again.v.assign(100.0)
    assert float(tape.gradient(y, again.v)) == 12.0


def test_jacobians_and_signatures(tmp_path):
    net = Net()
    tf.saved_model.save(net, tmp_path, signatures=net.serve)
    again = tf.saved_model.load(tmp_path)
    served = again.signatures["serving_default"]
    x, indices = tf.constant(rows(2)), tf.constant([1, 2])
    jacobians = []
    for one, call in ((net, net.serve), (again, again.serve), (again, lambda *a: served(x=a[0], indices=a[1], scale=a[2]))):
        with tf.GradientTape() as tape:
            out = call(x, indices, tf.constant(2.0))
            y = out["out"] if "out" in out else out["output_1"]
        jacobians.append(tape.jacobian(y, one.w).numpy())
    np.testing.assert_allclose(jacobians[1], jacobians[0], rtol=1e-5)
    np.testing.assert_allclose(jacobians[2], jacobians[0], rtol=1e-5)


def test_what_nothing_depends_on_is_none(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.cut = tf.function(lambda x: tf.stop_gradient(x) * tf.stop_gradient(module.v), input_signature=[tf.TensorSpec([])])
    module.half = tf.function(lambda x, y: x + tf.stop_gradient(y), input_signature=[tf.TensorSpec([])] * 2)
    again = loaded(module, tmp_path)
    x, y = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        cut, half = again.cut(x), again.half(x, y)
    assert tape.gradient(cut, [x, again.v]) == [None, None]
    by_x, by_y = tape.gradient(half, [x, y])
    assert (float(by_x), by_y) == (1.0, None)


def test_second_derivatives_are_refused(tmp_path):
    module = tf.Module()
    module.cube = tf.function(lambda x: x**3, input_signature=[tf.TensorSpec([])])
    again = loaded(module, tmp_path)
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = again.cube(x)
        slope = inner.gradient(y, x)
    assert float(slope) == 12.0
    with pytest.raises(LookupError, match="the gradient of its gradient was not saved"):
        outer.gradient(slope, x)


def test_a_function_whose_gradient_cannot_be_saved_says_why(tmp_path):
    module = tf.Module()

    def power(x, n):
        y, i = x, 0
        while i < n:
            y, i = y * x, i + 1
        return y

    module.power = tf.function(power, input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
    again = loaded(module, tmp_path)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = again.power(x, 3)
    assert float(y) == 16.0
    with pytest.raises(LookupError, match=r"(?s)No gradient defined for power.*number of steps is not known.*restore"):
        tape.gradient(y, x)


def test_a_loop_over_many_rows_stays_a_loop(tmp_path):
    sizes = []
    for steps in (20, 200):
        module = tf.Module()
        module.v = tf.Variable(0.5 * rows(3))
        fold = lambda x, module=module: tf.foldl(lambda state, row: tf.tanh(state @ module.v + row), x)
        module.fold = tf.function(fold, input_signature=[tf.TensorSpec([steps, None, 3])])
        again = loaded(module, tmp_path / str(steps))
        sizes.append(len(again.fold.programs[0].saved.gradient.blob))
        x, found = tf.constant(rows(steps * 4).reshape(steps, 4, 3)), []
        for one in (module, again):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(one.fold(x) ** 2)
            found.append(tape.gradient(y, [x, one.v]))
        for a, b in zip(*found):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
    assert sizes[1] < 1.1 * sizes[0]


def test_models_saved_before_there_were_gradients(tmp_path):
    module = tf.Module()
    module.cube = tf.function(lambda x: x**3, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, tmp_path)
    path = tmp_path / "saved_model.json"
    about = {**json.loads(path.read_text()), "format": 1}
    del about["crc32"]
    for program in about["functions"][0]["programs"]:
        del program["gradient"], program["no gradient"]
    path.write_text(json.dumps(about))
    again, x = tf.saved_model.load(tmp_path), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = again.cube(x)
    assert float(y) == 8.0
    with pytest.raises(LookupError, match="saved without one"):
        tape.gradient(y, x)


def test_a_damaged_gradient_is_noticed(tmp_path):
    module = tf.Module()
    module.cube = tf.function(lambda x: x**3, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, tmp_path)
    about = json.loads((tmp_path / "saved_model.json").read_text())
    path = tmp_path / "programs" / about["functions"][0]["programs"][0]["gradient"]["file"]
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(tf.errors.DataLossError, match=r"the gradient of .* is damaged"):
        tf.saved_model.load(tmp_path)


def test_a_gradient_that_reads_a_variable_of_nobody(tmp_path):
    hidden = tf.Variable(5.0, trainable=False)

    @tf.custom_gradient
    def steep(x):
        return x * 1.0, lambda upstream: upstream * hidden

    module = tf.Module()
    module.steep = tf.function(lambda x: steep(x), input_signature=[tf.TensorSpec([])])
    again, x = loaded(module, tmp_path), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = again.steep(x)
    assert float(y) == 2.0
    with pytest.raises(LookupError, match="untracked"):
        tape.gradient(y, x)
    module.hidden = hidden
    again = loaded(module, tmp_path)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = again.steep(x)
    again.hidden.assign(7.0)
    assert float(tape.gradient(y, x)) == 7.0  # as the user's own function would read it now
