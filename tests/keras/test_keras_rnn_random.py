"""Recurrent layers, random numbers and linear algebra of Keras on our backend: what Keras's own suite does not ask."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape import keras
from gradtape.testing import check_gradients

layers, ops, random = keras.layers, keras.ops, keras.random

from gradtape.keras_backend import linalg  # noqa: E402  (Keras has to be there)
from gradtape.keras_backend.rnn import gru, lstm, rnn  # noqa: E402

SHORT, LONG = 3, 20  # steps: written out in a compiled program, and a loop of it


def data(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def sequence(steps, dtype="float64"):
    return tf.constant(data(2, steps, 3, dtype=dtype))


def built(make, steps=SHORT):
    """A layer with weights of size 1/2, biases too."""
    layer = make()
    layer.build((2, steps, 3))
    for number, weight in enumerate(layer.weights):
        weight.assign(data(*weight.shape, seed=number + 1) / 2)
    return layer


# Gradients


def test_lstm_derivatives_are_numerical_ones():
    def f(x, h, c, kernel, recurrent, bias):
        tanh, sigmoid = keras.activations.tanh, keras.activations.sigmoid
        return lstm(x, h, c, None, kernel, recurrent, bias, tanh, sigmoid, return_sequences=True, go_backwards=True)[1]

    shapes = [(2, 3, 1), (2, 1), (2, 1), (1, 4), (1, 4), (4,)]
    check_gradients(f, [data(*shape, seed=number) for number, shape in enumerate(shapes)])


@pytest.mark.parametrize("reset_after", [False, True])
def test_gru_derivatives_are_numerical_ones(reset_after):
    def f(x, h, kernel, recurrent, bias):
        softsign, sigmoid = keras.activations.softsign, keras.activations.sigmoid
        return gru(x, h, None, kernel, recurrent, bias, softsign, sigmoid, True, reset_after=reset_after)[1]

    shapes = [(1, 3, 1), (1, 2), (1, 6), (2, 6), (2, 6) if reset_after else (6,)]
    check_gradients(f, [data(*shape, seed=number) for number, shape in enumerate(shapes)])


def test_a_masked_step_has_no_gradient():
    layer = built(lambda: layers.SimpleRNN(4, return_sequences=True, dtype="float64"))
    x = sequence(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, mask=tf.constant([[True, False, True], [False, True, True]]))
    g = tape.gradient(y, x).numpy()
    assert (np.abs(g).sum(axis=2) > 0).tolist() == [[True, False, True], [False, True, True]]
    np.testing.assert_array_equal(y[0, 0], y[0, 1])
    np.testing.assert_array_equal(y[1, 0], np.zeros(4))


# Eager and compiled


RECURRENT = {
    "lstm": lambda: layers.LSTM(4, dtype="float64"),
    "gru backwards": lambda: layers.GRU(4, return_sequences=True, go_backwards=True, dtype="float64"),
    "stacked cells": lambda: layers.RNN(layers.StackedRNNCells([
        layers.SimpleRNNCell(3, dtype="float64"), layers.GRUCell(4, dtype="float64"),
    ], dtype="float64"), return_state=True, dtype="float64"),
}  # fmt: skip


def loss_and_gradients(layer, x, mask):
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = layer(x, mask=mask)
        total = sum(ops.sum(ops.square(part)) for part in keras.tree.flatten(outputs))
    return [total, *tape.gradient(total, [x, *layer.trainable_variables])]


@pytest.mark.parametrize(("name", "masked"), [("lstm", False), ("gru backwards", True), ("stacked cells", True)])
def test_compiled_recurrent_layers_are_eager_ones(name, masked):
    pytest.importorskip("jax")
    layer, x = built(RECURRENT[name], LONG), sequence(LONG)
    mask = tf.constant(np.random.default_rng(3).random((2, LONG)) > 0.3) if masked else None
    for eager, compiled in zip(loss_and_gradients(layer, x, mask), tf.function(loss_and_gradients)(layer, x, mask)):
        np.testing.assert_allclose(compiled, eager, rtol=1e-9, atol=1e-12)


def test_the_program_of_a_long_sequence_is_as_small_as_that_of_a_short_one():
    pytest.importorskip("jax")
    calls = []

    def step(row, states):
        calls.append(row.shape)
        return row * states[0], [row * states[0]]

    def traced(x):
        calls.clear()
        tf.function(lambda x: rnn(step, x, [tf.ones((2, 3), "float64")])[0])(x)
        return len(calls)

    assert traced(sequence(LONG)) == traced(sequence(10 * LONG)) < LONG


@pytest.mark.parametrize("options", [
    {}, {"go_backwards": True}, {"use_bias": False, "recurrent_activation": "hard_sigmoid"}, {"unroll": True},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_the_layer_is_its_cell_step_by_step(kind, options):
    """LSTM and GRU have loops of their own; any other cell runs in `rnn`."""
    whole = built(lambda: getattr(layers, kind)(4, return_sequences=True, return_state=True, dtype="float64", **options))
    options = dict(options)
    turns = {key: options.pop(key) for key in ("go_backwards", "unroll") if key in options}
    cell = getattr(layers, f"{kind}Cell")(4, dtype="float64", **options)
    apart = built(lambda: layers.RNN(cell, return_sequences=True, return_state=True, dtype="float64", **turns))
    apart.set_weights(whole.get_weights())
    for one, other in zip(whole(sequence(SHORT)), apart(sequence(SHORT))):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_half_precision_stays_half_precision():
    layer = layers.LSTM(4, return_state=True, dtype="mixed_bfloat16")
    assert [part.dtype for part in layer(sequence(SHORT, "float32"))] == [tf.bfloat16] * 3


# The loop itself


def test_constants_follow_the_states():
    def step(row, states):
        state, factor = states
        return row * factor, [state + factor]

    last, outputs, (state,) = rnn(step, tf.ones((1, 3, 2)), [tf.zeros((1, 2))], constants=[tf.constant(5.0)])
    assert outputs.numpy().tolist() == [[[5.0, 5.0]] * 3]
    assert last.numpy().tolist() == [[5.0, 5.0]]
    assert state.numpy().tolist() == [[15.0, 15.0]]


def test_nested_inputs_and_time_first():
    step = lambda row, states: (row["a"] - row["b"], states)
    inputs = {"a": tf.constant(data(4, 2, 3)), "b": tf.constant(data(4, 2, 3, seed=1))}
    _, outputs, _ = rnn(step, inputs, [tf.zeros((2, 3))], time_major=True, go_backwards=True)
    np.testing.assert_array_equal(outputs, (inputs["a"] - inputs["b"]).numpy()[::-1])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("zero", [False, True])
def test_a_mask_for_a_cell_whose_output_is_no_state(zero, compiled):
    def walk(x, mask):
        step = lambda row, states: (row[:, :1], [states[0] + 1.0])
        return rnn(step, x, [tf.zeros((1, 2))], mask=mask, zero_output_for_mask=zero)

    if compiled:
        pytest.importorskip("jax")
        walk = tf.function(walk)
    x = tf.reshape(tf.range(LONG * 3.0), (1, LONG, 3))
    mask = tf.constant([[False, True, False] + [True] * (LONG - 3)])
    _, outputs, (state,) = walk(x, mask)
    assert outputs[0, :4, 0].numpy().tolist() == [0.0, 3.0, 0.0 if zero else 3.0, 9.0]
    assert state.numpy().tolist() == [[LONG - 2.0] * 2]


def test_no_steps_is_an_error():
    with pytest.raises(ValueError, match="at least one time step"):
        rnn(lambda row, states: (row, states), tf.zeros((2, 0, 3)), [tf.zeros((2, 3))])


# Random numbers


SAMPLES = {
    "normal": lambda seed: random.normal((5,), 1.0, 2.0, seed=seed),
    "half": lambda seed: random.normal((5,), dtype="bfloat16", seed=seed),
    "truncated": lambda seed: random.truncated_normal((50,), seed=seed),
    "uniform": lambda seed: random.uniform((5,), -1.0, 3.0, dtype="float64", seed=seed),
    "randint": lambda seed: random.randint((5,), -3, 1000, seed=seed),
    "narrow": lambda seed: random.randint((5,), 0, 200, dtype="uint8", seed=seed),
    "bounds": lambda seed: random.randint((2, 3), [0, 10, 20], [10, 20, 30], seed=seed),
    "categorical": lambda seed: random.categorical(np.array([[0.0, 1.0, 2.0]], "float32"), 20, seed=seed),
    "dropout": lambda seed: random.dropout(np.ones((4, 5), "float32"), 0.5, seed=seed),
    "noise shape": lambda seed: random.dropout(np.ones((30, 2), "float32"), 0.5, noise_shape=(None, 1), seed=seed),
    "shuffle": lambda seed: random.shuffle(np.arange(10), seed=seed),
    "gamma": lambda seed: random.gamma((2, 3), [[0.5], [3.0]], seed=seed),
    "binomial": lambda seed: random.binomial((5,), 10, 0.3, seed=seed),
    "beta": lambda seed: random.beta((5,), 0.5, 2.0, seed=seed),
}  # fmt: skip


COMPILED = ["normal", "truncated", "uniform", "randint", "categorical", "dropout", "shuffle", "gamma"]


def all_samples(generator, names=tuple(SAMPLES)):
    return {name: SAMPLES[name](generator) for name in names}


def assert_same(one, other):
    for name in one:
        np.testing.assert_allclose(*(np.asarray(s[name], "float64") for s in (one, other)), rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_seed_is_the_same_numbers_and_a_generator_new_ones():
    first, again = all_samples(7), all_samples(7)
    assert_same(first, again)
    generator = random.SeedGenerator(7)
    drawn, later = all_samples(generator), all_samples(generator)
    for name in SAMPLES:
        assert drawn[name].dtype == first[name].dtype
        assert not np.array_equal(drawn[name], later[name]), name
    np.testing.assert_array_equal(drawn["normal"], first["normal"])


def test_a_generator_moves_on_inside_a_compiled_function():
    pytest.importorskip("jax")
    eager, inside = random.SeedGenerator(7), random.SeedGenerator(7)
    compiled = tf.function(lambda: all_samples(inside, COMPILED), jit_compile=True)
    for _ in range(2):
        assert_same(all_samples(eager, COMPILED), compiled())
    np.testing.assert_array_equal(eager.state, inside.state)


@pytest.mark.parametrize(("call", "recorded"), [
    (lambda: random.normal((3,), seed=42), [0.015817076, -1.5900869, 0.10359446]),
    (lambda: random.truncated_normal((3,), seed=9), [-0.5550821, -0.49703377, -0.7479323]),
    (lambda: keras.initializers.GlorotUniform(seed=7)((2, 2)), [[0.605217, 0.42175364], [-1.0832145, 0.35324872]]),
    (lambda: random.beta((2,), 0.5, 2.0, seed=4), [0.050384782, 0.14673306]),
    (lambda: random.shuffle(np.arange(8), seed=2), [4, 7, 5, 2, 1, 6, 3, 0]),
], ids=["normal", "truncated", "glorot", "beta", "shuffle"])  # fmt: skip
def test_the_numbers_are_those_of_keras_on_tensorflow(call, recorded):
    """Recorded with Keras 3.15 on TensorFlow 2.21."""
    np.testing.assert_allclose(call(), recorded, rtol=2e-5)


def test_any_seed_of_32_bits():
    drawn = [random.normal((4,), seed=seed).numpy().tolist() for seed in (0, 1, 2**31, 2**32 - 1)]
    assert len({tuple(numbers) for numbers in drawn}) == 4


def test_dropout_trains_with_other_masks_at_every_call():
    pytest.importorskip("jax")
    layer, x = layers.Dropout(0.5, seed=3), tf.ones((40,))
    call = tf.function(lambda x: layer(x, training=True))
    first, second = call(x).numpy(), call(x).numpy()
    assert set(first) == {0.0, 2.0}
    assert not np.array_equal(first, second)
    again = layers.Dropout(0.5, seed=3)
    np.testing.assert_array_equal(again(x, training=True), first)


def test_samples_move_with_their_parameters():
    mean, alpha = tf.Variable(0.5), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = ops.sum(random.normal((3,), mean, 2.0, seed=1)) + ops.sum(random.gamma((3,), alpha, seed=1))
    by_mean, by_alpha = tape.gradient(y, [mean, alpha])
    assert by_mean.numpy() == 3.0
    assert by_alpha.numpy() > 0.0


# Linear algebra, spectra, segments


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (2, 3, 3)])
def test_lu_factor_lists_the_exchanges_of_lapack(shape):
    from scipy.linalg import lu_factor

    x = data(*shape)
    packed, exchanges = linalg.lu_factor(x)
    wanted = [lu_factor(part) for part in x.reshape(-1, *shape[-2:])]
    np.testing.assert_allclose(packed.numpy().reshape(-1, *shape[-2:]), [p for p, _ in wanted], atol=1e-12)
    assert exchanges.numpy().reshape(-1, min(shape[-2:])).tolist() == [e.tolist() for _, e in wanted]
    check_gradients(lambda x: linalg.lu_factor(x)[0], [x], order=1)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf], ids=str)
def test_matrix_norms_are_differentiable(order):
    x = data(3, 4, 2)
    value = linalg.norm(x, ord=order, axis=(2, 0), keepdims=True)
    np.testing.assert_allclose(value, np.linalg.norm(x, ord=order, axis=(2, 0), keepdims=True))
    check_gradients(lambda x: linalg.norm(x, ord=order, axis=(0, 2)), [x], order=1)


def test_forward_derivatives_of_nested_functions():
    f = lambda p, y: ({"product": p["x"] * y, "fixed": tf.constant(1.0)}, "aux")
    tangents = ({"x": tf.constant(1.0)}, tf.constant(10.0))
    out, moved, aux = ops.jvp(f, ({"x": tf.constant(2.0)}, tf.constant(3.0)), tangents, has_aux=True)
    assert (aux, out["product"].numpy()) == ("aux", 6.0)
    assert (moved["product"].numpy(), moved["fixed"].numpy()) == (23.0, 0.0)


def test_a_signal_comes_back_from_its_spectra():
    x = data(2, 64)
    round_trip = lambda x: ops.istft(ops.stft(x, 16, 4, 16), 16, 4, 16)
    np.testing.assert_allclose(round_trip(x)[:, 8:-8], x[:, 8:-8], atol=1e-12)  # at the ends, as in TensorFlow, it fades
    check_gradients(round_trip, [data(40)], order=1)


def test_distances_of_equal_points_have_a_gradient():
    x = tf.Variable(data(3, 2))
    with tf.GradientTape() as tape:
        y = ops.cdist(x, x)
    assert np.isfinite(tape.gradient(y, x).numpy()).all()
    np.testing.assert_array_equal(np.diag(y), np.zeros(3))


def test_labels_outside_are_in_no_top_k():
    predictions = np.array([[0.1, 0.9], [0.1, 0.9], [np.nan, 0.5], [0.3, 0.2], [0.3, 0.3]], "float32")
    assert ops.in_top_k(np.array([-1, 2, 0, 0, 1]), predictions, 1).numpy().tolist() == [False, False, False, True, True]


def test_empty_segments():
    call = lambda name, dtype: getattr(ops, f"segment_{name}")(np.array([1, 2], dtype), np.array([0, 2]), 3)[1].numpy()
    assert (call("max", "float32"), call("min", "float32")) == (-np.inf, np.inf)
    assert (call("max", "int32"), call("sum", "int32"), call("prod", "int32")) == (-(2**31), 0, 1)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: ops.cholesky(-np.eye(2, dtype="float32")), "positive definite"),
    (lambda: ops.stft(data(8), 4, 2, 4, window="flat"), "hann"),
    (lambda: ops.stft(data(8), 4, 2, 4, window=np.ones(3)), "sequence_length"),
    (lambda: ops.fft((data(3), data(4))), "same shape"),
    (lambda: ops.lstsq(data(3, 2), data(4)), "b.shape"),
    (lambda: ops.norm(data(2, 3, 4), ord=1), "one axis"),
])  # fmt: skip
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
