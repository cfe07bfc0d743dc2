"""`GradientMonitor`: what it sees of loops with and without an optimizer, and what it makes of that."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

import gradtape as tf
from gradtape.inspect import GradientMonitor
from gradtape.inspect.monitor_table import Live, sparkline, table

original = tf.GradientTape.gradient, tf.optimizers.Optimizer.apply_gradients


def losses(w):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w**2)
    return tape, loss


def train(optimizer, variables, steps):
    """A loop that knows nothing of a monitor; the gradients that were applied."""
    seen = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(v**2) for v in variables])
        gradients = tape.gradient(loss, variables)
        seen.append([g.numpy().copy() for g in gradients])
        optimizer.apply_gradients(zip(gradients, variables))
    return seen


@pytest.mark.tiny
def test_a_loop_with_an_optimizer_is_seen_as_it_is():
    variables = [tf.Variable([1.0, -2.0], name="a"), tf.Variable([[3.0]], name="b")]
    before = [v.numpy() for v in variables]
    with GradientMonitor(live=False) as monitor:
        seen = train(tf.optimizers.SGD(0.1), variables, 3)
    assert [(row.step, row.name, row.shape) for row in monitor.rows[:2]] == [(0, "a", (2,)), (0, "b", (1, 1))]
    assert len(monitor.rows) == 6
    for row, gradient in zip(monitor.rows, [g for step in seen for g in step]):
        norm = np.linalg.norm(gradient)
        assert row.norm == pytest.approx(norm)
        assert row.update_norm == pytest.approx(0.1 * norm, rel=1e-5)
        assert sum(row.gradient.counts) == gradient.size
    assert monitor.rows[0].value_norm == pytest.approx(0.8 * np.linalg.norm(before[0]), rel=1e-5)
    assert (tf.GradientTape.gradient, tf.optimizers.Optimizer.apply_gradients) == original


@pytest.mark.tiny
def test_watching_changes_no_number():
    def run(monitored):
        v = tf.Variable(np.linspace(-1, 1, 7).astype("f"))
        optimizer = tf.optimizers.Adam(0.1)
        if monitored:
            with GradientMonitor(every=2, live=False):
                train(optimizer, [v], 5)
        else:
            train(optimizer, [v], 5)
        return v.numpy()

    assert (run(True) == run(False)).all()


@pytest.mark.tiny
@pytest.mark.parametrize("every", [1, 2, 5])
def test_interval(every):
    v = tf.Variable([1.0])
    with GradientMonitor(every=every, live=False) as monitor:
        train(tf.optimizers.SGD(0.01), [v], 11)
    assert [row.step for row in monitor.rows] == [*range(0, 11, every)]
    assert all(row.update_norm is not None for row in monitor.rows)


@pytest.mark.tiny
def test_a_loop_that_assigns_by_hand():
    w = tf.Variable([1.0, 2.0], name="w")
    with GradientMonitor(live=False) as monitor:
        for _ in range(3):
            tape, loss = losses(w)
            w.assign_sub(0.1 * tape.gradient(loss, w))
    assert [row.norm for row in monitor.rows] == pytest.approx([2 * 0.8**i * 5**0.5 for i in range(3)], rel=1e-5)
    assert [row.update_norm for row in monitor.rows] == pytest.approx([0.2 * 0.8**i * 5**0.5 for i in range(3)], rel=1e-5)


@pytest.mark.tiny
def test_gradients_that_are_summed_before_a_step_are_one_step():
    w = tf.Variable([1.0], name="w")
    optimizer = tf.optimizers.SGD(0.1)
    with GradientMonitor(live=False) as monitor:
        for _ in range(2):
            total = 0.0
            for _ in range(3):
                tape, loss = losses(w)
                total = total + tape.gradient(loss, w)
            optimizer.apply_gradients([(total, w)])
    assert [row.norm for row in monitor.rows] == pytest.approx([6.0, 2.4], rel=1e-5)


@pytest.mark.tiny
def test_two_models_and_minimize():
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    with GradientMonitor([a], live=False) as only, GradientMonitor(live=False) as both:
        for _ in range(2):
            tf.optimizers.SGD(0.1).minimize(lambda: a * a, [a])
            tf.optimizers.SGD(0.1).minimize(lambda: b * b, [b])
    assert [row.name for row in only.rows] == ["a", "a"]
    assert [row.name for row in both.rows] == ["a", "b", "a", "b"]


@pytest.mark.tiny
def test_what_is_watched_may_be_a_module_or_an_optimizer():
    class Linear(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([1.0], name="w")

    model, other = Linear(), tf.Variable([1.0], name="other")
    optimizer = tf.optimizers.SGD(0.1)
    optimizer.build([model.w])
    for watched in (model, optimizer):
        with GradientMonitor(watched, live=False) as monitor:
            train(tf.optimizers.SGD(0.1), [model.w, other], 1)
        assert [row.name for row in monitor.rows] == ["w"]


@pytest.mark.tiny
def test_a_recomputed_part_is_not_a_step_of_its_own():
    w = tf.Variable([1.0, 2.0], name="w")
    f = tf.recompute_grad(lambda x: tf.tanh(x * w))
    with GradientMonitor(live=False) as monitor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(f(tf.ones(2)))
        tape.gradient(loss, w)
    assert len(monitor.rows) == 1


@pytest.mark.tiny
def test_names_are_made_unique_and_zeros_and_nans_are_counted():
    a, b = tf.Variable([1.0, 0.0]), tf.Variable([np.nan, 1.0])
    with GradientMonitor(live=False) as monitor:
        train(tf.optimizers.SGD(0.1), [a, b], 1)
    first, second = monitor.rows
    assert (first.name, second.name) == ("Variable", "Variable_1")
    assert first.gradient.zeros == 0.5
    assert second.gradient.nonfinite == 1


def test_a_compiled_step_gives_its_gradients():
    pytest.importorskip("jax")
    w = tf.Variable([1.0, 2.0], name="w")
    optimizer = tf.optimizers.SGD(0.1)

    @tf.function
    def step():
        tape, loss = losses(w)
        gradients = tape.gradient(loss, [w])
        optimizer.apply_gradients(zip(gradients, [w]))
        return gradients

    with GradientMonitor(every=2, live=False) as monitor:
        monitor.begin([w])
        for _ in range(4):
            monitor.step(step(), [w])
    assert [row.step for row in monitor.rows] == [0, 2]
    assert [row.norm for row in monitor.rows] == pytest.approx([2 * 5**0.5, 2 * 0.64 * 5**0.5], rel=1e-5)
    assert [row.update_norm for row in monitor.rows] == pytest.approx([0.1 * row.norm for row in monitor.rows], rel=1e-5)


@pytest.mark.tiny
def test_bad_input():
    with pytest.raises(ValueError, match="every n-th step"):
        GradientMonitor(every=0)
    with pytest.raises(ValueError, match="pairs of gradient and variable"):
        GradientMonitor(live=False).step([tf.ones(2)])
    with pytest.raises(ZeroDivisionError), GradientMonitor(live=False):
        raise ZeroDivisionError
    assert (tf.GradientTape.gradient, tf.optimizers.Optimizer.apply_gradients) == original


@pytest.mark.tiny
def test_jacobian_norms():
    w = tf.Variable([[1.0, 2.0], [0.0, 1.0]], name="w")
    x = tf.constant([[1.0, 1.0], [2.0, 0.5]])
    monitor = GradientMonitor(live=False, every=2, jacobian_of=(lambda x: x @ w, x))
    row = GradientMonitor(live=False).jacobian(lambda x: x @ w, x)
    assert row.norm == pytest.approx(6**0.5)
    assert row.shape == (2, 2, 2)
    with monitor:
        train(tf.optimizers.SGD(0.1), [w], 3)
    assert [(r.step, r.kind) for r in monitor.rows] == [(0, "gradient"), (0, "jacobian"), (2, "gradient"), (2, "jacobian")]


# What it shows and saves


def trained(**options):
    with GradientMonitor(live=False, **options) as monitor:
        train(tf.optimizers.SGD(0.1), [tf.Variable([1.0, 0.0], name="a"), tf.Variable(2.0, name="$b_")], 4)
    return monitor


@pytest.mark.tiny
def test_table():
    lines = str(trained()).splitlines()
    assert lines[0] == "step 3"
    assert lines[1].split()[:3] == ["variable", "gradient", "update"]
    assert re.match(r"a +1\.02 +0\.102 +0\.25 +50% +– +█▅▃▁", lines[2])
    assert len({len(line) for line in lines[2:]}) == 1
    assert table(trained()._recent, 2).endswith("… 2 more")


@pytest.mark.tiny
def test_sparkline():
    assert sparkline([1.0, 2.0, 3.0]) == "▁▅█"
    assert sparkline([1.0, 10.0, 100.0, 0.0]) == "▁▅█▁"
    assert sparkline([2.0, 2.0]) == "▄▄"
    assert sparkline([None]) == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.tiny
@pytest.mark.parametrize(("stream", "wanted", "moves"), [(Terminal, None, True), (io.StringIO, True, False)])
def test_the_table_is_drawn_in_place_on_a_terminal(monkeypatch, stream, wanted, moves):
    output = stream()
    monkeypatch.setattr("sys.stderr", output)
    live = Live(wanted)
    live.show(trained()._recent)
    live.close()
    assert output.getvalue().count("step 3") == 2
    assert ("\x1b[4A" in output.getvalue()) == moves


@pytest.mark.tiny
def test_nothing_is_drawn_where_nobody_looks(monkeypatch):
    output = io.StringIO()
    monkeypatch.setattr("sys.stderr", output)
    live = Live(None)
    live.show(trained()._recent)
    live.close()
    assert not output.getvalue()


@pytest.mark.tiny
def test_csv(tmp_path):
    monitor = trained()
    monitor.to_csv(tmp_path / "gradients.csv")
    with open(tmp_path / "gradients.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert float(rows[0]["norm"]) == monitor.rows[0].norm
    assert sum(map(int, rows[0]["histogram"].split())) == 2
    assert rows[0]["shape"] == "2"


def test_png(tmp_path):
    trained().to_png(tmp_path / "gradients.png")
    assert (tmp_path / "gradients.png").read_bytes().startswith(b"\x89PNG")
    GradientMonitor(live=False).to_png(tmp_path / "empty.png")


def test_events_for_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX")
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monitor = trained(log_dir=tmp_path)
    read = events.EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    read.Reload()
    tags = read.Tags()
    names = [*tags["scalars"], *tags["tensors"], *tags["histograms"]]
    assert {"gradient/norm/a", "gradient/update_norm/a", "gradient/zeros/a", "gradient/values/a"} <= set(names)
    assert len(monitor.rows) == 8


# Keras, by what it calls


class FakeOptimizer:
    def apply(self, grads, trainable_variables=None):
        for g, v in zip(grads, trainable_variables):
            v.assign_sub(0.1 * g)


class FakeModel:
    def __init__(self):
        self.trainable_variables = [tf.Variable([1.0, 2.0], name="w")]
        self.optimizer = FakeOptimizer()


@pytest.mark.tiny
@pytest.mark.parametrize("hidden", [False, True])
def test_a_callback_sees_the_batches_of_fit(hidden):
    model, monitor = FakeModel(), GradientMonitor(every=2, live=False)
    callback = monitor.callback()
    callback.set_model(model)
    callback.set_params({})
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    (w,) = model.trainable_variables
    for batch in range(3):
        tape, loss = losses(w)
        gradient = tape.gradient(loss, w)
        if hidden:  # as in a compiled step
            w.assign_sub(0.1 * gradient)
        else:
            model.optimizer.apply([gradient], [w])
        callback.on_train_batch_end(batch, {})
    callback.on_train_end()
    assert [row.step for row in monitor.rows] == [0, 2]
    norms = [2 * 5**0.5, 2 * 0.64 * 5**0.5]
    assert [row.update_norm for row in monitor.rows] == pytest.approx([0.1 * n for n in norms], rel=1e-5)
    assert [row.norm for row in monitor.rows] == ([None, None] if hidden else pytest.approx(norms, rel=1e-5))
    assert "apply" not in vars(model.optimizer)


def test_large_and_complex_variables_and_those_of_unknown_shape():
    large, turned = tf.Variable([3e30, 4e30]), tf.Variable([3.0 + 4.0j])
    loose = tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    with GradientMonitor(live=False) as monitor:
        for variable, gradient in ((large, tf.constant([3e29, 4e29])), (turned, turned * (1.0 - 1.0j)), (loose, loose * 1.0)):
            tf.optimizers.SGD(1.0).apply_gradients([(gradient, variable)])
    rows = monitor.rows
    assert [row.shape for row in rows] == [(2,), (1,), (2,)]
    np.testing.assert_allclose([row.value_norm for row in rows], [4.5e30, 5.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose([row.update_norm for row in rows], [5e29, 50**0.5, 5**0.5], rtol=1e-6)
