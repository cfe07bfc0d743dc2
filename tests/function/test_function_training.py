"""Whole training steps: the same curve eager and compiled over 50 steps, and no second trace."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")
STEPS = 50
optimizers = tf.optimizers


def curves_agree(make, caplog, traces_expected=(1, 2)):
    """Run a step eagerly and compiled; ``make()`` returns it, with its batches."""
    curves = []
    for wrap in (lambda f: f, function):
        tf.random.set_seed(7)
        step, batches = make()
        calls = []

        def counted(*args, step=step, calls=calls):
            calls.append(1)
            return step(*args)

        run = wrap(counted)
        with caplog.at_level(logging.WARNING, "gradtape"):
            curves.append([[float(t) for t in tf.nest.flatten(run(*batches[i % len(batches)]))] for i in range(STEPS)])
    assert len(calls) in traces_expected  # 2 if variables were created on the first call
    assert "runs eagerly" not in caplog.text
    np.testing.assert_allclose(curves[1], curves[0], 1e-4, 1e-7)
    tf.random.set_seed(None)


def dense(rng, *sizes):
    shapes = [s for pair in itertools.pairwise(sizes) for s in (pair, pair[1:])]
    return [tf.Variable(rng.normal(size=s).astype(np.float32) * 0.4) for s in shapes]


def network(weights, x):
    for kernel, bias in zip(weights[:-2:2], weights[1:-2:2]):
        x = tf.tanh(x @ kernel + bias)
    return x @ weights[-2] + weights[-1]


def batches_of(rng, *shapes, count=5):
    return [tuple(tf.constant(rng.normal(size=s).astype(np.float32)) for s in shapes) for _ in range(count)]


def regression(optimizer):
    rng = np.random.default_rng(0)
    weights, opt = dense(rng, 4, 16, 16, 1), optimizer()

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((network(weights, x) - y) ** 2.0)
        opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    return step, batches_of(rng, (8, 4), (8, 1))


RATE = optimizers.schedules.ExponentialDecay(0.02, 10, 0.9)
OPTIMIZERS = {
    "SGD": lambda: optimizers.SGD(0.05),
    "Nesterov": lambda: optimizers.SGD(0.02, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda: optimizers.Adam(0.01),
    "Adam clipped globally": lambda: optimizers.Adam(0.01, global_clipnorm=0.1),
    "Adam with a schedule": lambda: optimizers.Adam(RATE, clipnorm=0.2),
    "AdamW": lambda: optimizers.AdamW(0.01, clipvalue=0.05),
    "averaged": lambda: optimizers.Adam(0.01, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=7),
    "accumulated": lambda: optimizers.Nadam(0.01, gradient_accumulation_steps=3, use_ema=True),
    "scaled": lambda: optimizers.RMSprop(0.005, centered=True, momentum=0.5),
    "Adagrad": lambda: optimizers.Adagrad(0.05),
    "Adadelta": lambda: optimizers.Adadelta(1.0),
    "Adamax": lambda: optimizers.Adamax(0.01),
    "Ftrl": lambda: optimizers.Ftrl(0.05),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_regression(name, caplog):
    curves_agree(lambda: regression(OPTIMIZERS[name]), caplog)


def test_minimize(caplog):
    def make():
        rng = np.random.default_rng(0)
        weights, opt = dense(rng, 3, 1), optimizers.Adam(0.05)

        def step(x):
            def loss():
                return tf.reduce_mean(network(weights, x) ** 2.0)

            opt.minimize(loss, weights)
            return loss()

        return step, batches_of(rng, (6, 3))

    curves_agree(make, caplog)


def test_gan_with_two_tapes(caplog):
    def make():
        rng = np.random.default_rng(0)
        generator, critic = dense(rng, 2, 16, 2), dense(rng, 2, 16, 1)
        first, second = optimizers.Adam(0.01), optimizers.Adam(0.01)

        def step(real):
            noise = tf.random.normal([8, 2])
            with tf.GradientTape() as tape, tf.GradientTape() as other:
                fake = network(generator, noise)
                on_real, on_fake = network(critic, real), network(critic, fake)
                fooled = tf.reduce_mean(tf.nn.softplus(-on_fake))
                told = tf.reduce_mean(tf.nn.softplus(-on_real)) + tf.reduce_mean(tf.nn.softplus(on_fake))
            first.apply_gradients(zip(tape.gradient(fooled, generator), generator))
            second.apply_gradients(zip(other.gradient(told, critic), critic))
            return fooled, told

        return step, batches_of(rng, (8, 2))

    curves_agree(make, caplog)


def test_gradient_penalty(caplog):
    def make():
        rng = np.random.default_rng(0)
        critic, opt = dense(rng, 2, 16, 1), optimizers.Adam(0.005)

        def step(real, fake):
            mix = tf.random.uniform([8, 1])
            with tf.GradientTape() as tape:
                with tf.GradientTape() as inner:
                    between = mix * real + (1.0 - mix) * fake
                    inner.watch(between)
                    score = network(critic, between)
                slope = tf.sqrt(tf.reduce_sum(inner.gradient(score, between) ** 2.0, 1))
                penalty = tf.reduce_mean((slope - 1.0) ** 2.0)
                loss = tf.reduce_mean(network(critic, fake)) - tf.reduce_mean(network(critic, real)) + 10.0 * penalty
            opt.apply_gradients(zip(tape.gradient(loss, critic), critic))
            return loss

        return step, batches_of(rng, (8, 2), (8, 2))

    curves_agree(make, caplog)


def test_meta_learning(caplog):
    def make():
        rng = np.random.default_rng(0)
        weights, opt = dense(rng, 1, 8, 1), optimizers.Adam(0.01)

        def error(weights, x, y):
            return tf.reduce_mean((network(weights, x) - y) ** 2.0)

        def step(x, y):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    loss = error(weights, x, y)
                adapted = [w - 0.1 * g for w, g in zip(weights, inner.gradient(loss, weights))]
                after = error(adapted, x, y)
            opt.apply_gradients(zip(outer.gradient(after, weights), weights))
            return loss, after

        return step, batches_of(rng, (5, 1), (5, 1))

    curves_agree(make, caplog)


def test_second_derivatives_in_the_loss(caplog):
    def make():
        rng = np.random.default_rng(0)
        weights, opt = dense(rng, 1, 12, 1), optimizers.Adam(0.01)

        def step(x):
            with tf.GradientTape() as tape:
                with tf.GradientTape() as outer:
                    outer.watch(x)
                    with tf.GradientTape() as inner:
                        inner.watch(x)
                        u = network(weights, x)
                    slope = inner.gradient(u, x)
                residual = outer.gradient(slope, x) + u  # u'' = -u
                loss = tf.reduce_mean(residual**2.0)
            opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return loss

        return step, batches_of(rng, (6, 1))

    curves_agree(make, caplog)


def test_the_tape_outside_and_the_update_eager(caplog):
    def make(wrap):
        rng = np.random.default_rng(0)
        weights, opt = dense(rng, 4, 8, 1), optimizers.Adam(0.01)
        forward = wrap(lambda x, y: tf.reduce_mean((network(weights, x) - y) ** 2.0))

        def step(x, y):
            with tf.GradientTape() as tape:
                loss = forward(x, y)
            opt.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return float(loss)

        return [step(*batch) for batch in batches_of(rng, (8, 4), (8, 1), count=STEPS)]

    np.testing.assert_allclose(make(function), make(lambda f: f), 1e-4)
    assert "runs eagerly" not in caplog.text
