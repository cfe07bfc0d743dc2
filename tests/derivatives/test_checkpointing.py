"""`checkpoint_sequential`: the same gradients within a budget of memory, and nothing run twice where all fits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import gradtape as tf
from gradtape.autodiff import ForwardAccumulator, checkpoint_sequential


class Chain:
    """Layers that count how often each of them runs."""

    def __init__(self, depth: int, width: int = 4, rows: int = 3) -> None:
        rng = np.random.default_rng(1)
        self.weights = [tf.Variable(rng.normal(size=(width, width)) / width**0.5) for _ in range(depth)]
        self.x = tf.Variable(rng.normal(size=(rows, width)))
        self.runs = [0] * depth
        self.layers = [self._layer(i) for i in range(depth)]

    def _layer(self, i: int):
        def layer(x):
            self.runs[i] += 1
            return tf.tanh(tf.matmul(x, self.weights[i])) + 0.1 * tf.sin(x)

        return layer

    def gradients(self, run) -> list[np.ndarray]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(run(self.x.read_value()) ** 2)
        return [g.numpy() for g in tape.gradient(loss, [self.x, *self.weights])]

    def plain(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def same(one, two):
    for a, b in zip(one, two):
        np.testing.assert_allclose(a, b, 1e-13, 1e-15)


@pytest.mark.parametrize("budget", [1, 500, 1000, 2000, 3000, 4000, 1e9])
def test_gradients_do_not_depend_on_the_budget(budget):
    chain = Chain(12)
    wanted = chain.gradients(chain.plain)
    same(chain.gradients(lambda x: checkpoint_sequential(chain.layers, x, budget)), wanted)


def test_nothing_runs_twice_where_all_fits():
    chain = Chain(10)
    chain.gradients(lambda x: checkpoint_sequential(chain.layers, x, 1e9))
    assert chain.runs == [1] * 10


def test_each_layer_runs_at_most_twice_and_the_last_ones_once():
    chain = Chain(40)
    chain.gradients(lambda x: checkpoint_sequential(chain.layers, x, 3000))
    assert set(chain.runs) == {1, 2}
    assert chain.runs == sorted(chain.runs, reverse=True)


def test_without_a_tape_it_is_the_chain():
    chain = Chain(5)
    received = checkpoint_sequential(chain.layers, chain.x, 1)
    np.testing.assert_array_equal(received.numpy(), chain.plain(chain.x).numpy())
    assert chain.runs == [2] * 5


def test_second_order_and_forward_mode():
    chain = Chain(6, width=2, rows=1)
    for budget in (1, 300, 1e9):

        def run(x, budget=budget):
            return checkpoint_sequential(chain.layers, x, budget)

        found = []
        for f in (chain.plain, run):
            x = tf.constant(chain.x.numpy())
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.reduce_sum(f(x) ** 2)
                slope = tape.gradient(y, [x, chain.weights[2]])
                size = tf.add_n([tf.reduce_sum(s * s) for s in slope])
            second = outer.gradient(size, [x, chain.weights[3]])
            with ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
                y = f(x)
            found.append([t.numpy() for t in (*slope, *second, accumulator.jvp(y))])
        same(*found)


def test_a_tensor_used_from_outside_keeps_its_gradient():
    """A layer that runs again would not reach it, so such a layer is recorded whatever the budget."""
    c = tf.constant([0.2, 0.3])
    x = tf.constant([1.0, 1.0])
    layers = [tf.sin, lambda h: h * c, tf.exp, lambda h: c + h * h, tf.tanh]
    found = []
    for run in (lambda: checkpoint_sequential(layers, x, 1), lambda: checkpoint_sequential(layers, x, 1e9)):
        with tf.GradientTape() as tape:
            tape.watch([c, x])
            y = run()
        found.append([g.numpy() for g in tape.gradient(y, [c, x])])
    same(*found)
    assert found[0][0].any()


def test_nests_pass_from_layer_to_layer():
    x = {"a": tf.constant([1.0, 2.0]), "b": tf.constant([3.0])}
    layers = [lambda h: {"a": tf.sin(h["a"]) * h["b"], "b": h["b"]}, lambda h: [h["a"], h["b"] * 2.0], lambda h: h[0] * h[1]]
    for budget in (1, 1e9):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = checkpoint_sequential(layers, x, budget)
        found = tape.gradient(y, x)
        np.testing.assert_allclose(found["a"], np.cos([1.0, 2.0]) * 18, rtol=1e-6)
        np.testing.assert_allclose(found["b"], [4 * 3 * np.sin([1.0, 2.0]).sum()], rtol=1e-6)


def test_a_budget_that_cannot_be_met_is_said(caplog):
    chain = Chain(9)
    with caplog.at_level("WARNING", "gradtape"):
        chain.gradients(lambda x: checkpoint_sequential(chain.layers, x, 1))
    assert "the budget is 1" in caplog.text


def test_bad_arguments():
    with pytest.raises(TypeError, match="sequence of functions"):
        checkpoint_sequential([1], tf.constant(1.0), 10)
    with pytest.raises(ValueError, match="above zero"):
        checkpoint_sequential([tf.sin], tf.constant(1.0), 0)


def peak(chain: Chain, run) -> int:
    tracemalloc.start()
    try:
        chain.gradients(run)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_two_hundred_layers_in_a_quarter_of_the_memory():
    chain = Chain(200, width=16, rows=128)
    plain = peak(chain, chain.plain)
    assert peak(chain, lambda x: checkpoint_sequential(chain.layers, x, plain / 6)) <= plain / 4
    assert chain.runs == sorted(chain.runs, reverse=True)


def test_nested_recomputation():
    """C2"""
    x = tf.constant(0.5)
    inner = tf.recompute_grad(lambda x: tf.sin(x) * x)
    outer = tf.recompute_grad(lambda x: inner(x) * inner(x * 2.0))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = outer(x)
    f = lambda x: np.sin(x) * x * np.sin(2 * x) * 2 * x
    np.testing.assert_allclose(tape.gradient(y, x), (f(0.5 + 1e-5) - f(0.5 - 1e-5)) / 2e-5, rtol=1e-4)
