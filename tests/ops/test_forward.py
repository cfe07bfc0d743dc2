"""Forward mode for every op: the transpose of reverse mode, vectorised, and in every mixture of orders."""

from __future__ import annotations

import numpy as np
import pytest
from test_records import close, complex_samples, every, floating_sources, samples, tensors

import gradtape as tf
from gradtape.autodiff import ForwardAccumulator
from gradtape.values import nest
from gradtape.values.tensor import wrap


def random_like(values: list, rng: np.random.Generator) -> list:
    found = []
    for t in values:
        numbers = rng.normal(size=t._array.shape)
        if t._array.dtype.kind == "c":
            numbers = numbers + 1j * rng.normal(size=t._array.shape)
        found.append(wrap(np.asarray(numbers).astype(t._array.dtype)))
    return found


def targets_of(record, inputs) -> list:
    return [t for t in nest.flatten(record.function(*inputs)) if t.dtype.is_trainable]


def inner(xs: list, ys: list) -> float:
    """The sum of all products, real part: the inner product of nests."""
    pairs = [(tf.convert_to_tensor(x).numpy(), tf.convert_to_tensor(y).numpy()) for x, y in zip(xs, ys)]
    return float(sum(np.sum(np.conj(x) * y).real for x, y in pairs))


@pytest.mark.tiny
@every(lambda r: r.differentiable)
@pytest.mark.parametrize("numbers", ["real", "complex"])
def test_forward_is_the_transpose_of_reverse(record, numbers):
    """⟨Jᵀu, v⟩ = ⟨u, Jv⟩"""
    if numbers == "complex" and not record.complex:
        pytest.skip("real only")
    for arrays in samples(record) if numbers == "real" else complex_samples(record):
        for seed in (1, 2):
            rng = np.random.default_rng(seed)
            inputs = tensors(arrays)
            sources = floating_sources(inputs)
            tangents = random_like(sources, rng)
            with tf.GradientTape() as tape, ForwardAccumulator(sources, tangents) as accumulator:
                tape.watch(sources)
                targets = targets_of(record, inputs)
            cotangents = random_like(targets, rng)
            pulled = tape.gradient(targets, sources, cotangents, unconnected_gradients="zero")
            pushed = accumulator.jvp(targets, unconnected_gradients="zero")
            for target, tangent in zip(targets, pushed):
                assert (tangent.shape, tangent.dtype) == (target.shape, target.dtype)
            left, right = inner(pulled, tangents), inner(cotangents, pushed)
            scale = sum(abs(np.asarray(t.numpy())).sum() for t in pushed) + abs(left)
            rounding = 1e-11 if all(t.dtype.size >= 8 for t in targets) else 0.01  # a cast to a half type rounds
            assert abs(left - right) <= rounding * max(scale, 1e-300), (record.id, left, right)


@every(lambda r: r.differentiable)
def test_batched_tangents_equal_single_ones(record):
    rng = np.random.default_rng(3)
    inputs = tensors(samples(record)[0])
    sources = floating_sources(inputs)
    rows = [random_like(sources, rng) for _ in range(3)]
    stacked = [tf.stack(column) for column in zip(*rows)]
    with ForwardAccumulator._batch_accumulator(sources, stacked) as batch:
        targets = targets_of(record, inputs)
    columns = [batch.jvp(t) for t in targets]
    for i, tangents in enumerate(rows):
        with ForwardAccumulator(sources, tangents) as single:
            targets = targets_of(record, inputs)
        for target, column in zip(targets, columns):
            expected = single.jvp(target)
            if expected is None:
                assert column is None
            elif column.shape == expected.shape:  # does not depend on the tangent
                close(column.numpy(), expected.numpy(), 1e-12, record.id)
            else:
                close(column[i].numpy(), expected.numpy(), 1e-12, record.id)


def product(record, inputs, sources, weights):
    """A random combination of the outputs, as one number."""
    targets = targets_of(record, inputs)
    return tf.add_n([tf.reduce_sum(t * w) for t, w in zip(targets, weights)]) if targets else tf.constant(0.0, tf.float64)


@every(lambda r: r.differentiable and r.order >= 2)
def test_the_mixtures_of_forward_and_reverse_agree_at_order_two(record):
    """H·v by reverse over reverse, forward over reverse and reverse over forward; vᵀHv by forward over forward."""
    rng = np.random.default_rng(4)
    inputs = tensors(samples(record)[0])
    sources = floating_sources(inputs)
    v = random_like(sources, rng)
    weights = random_like(targets_of(record, inputs), rng)
    if any(t._array.dtype.kind == "c" for t in (*sources, *weights)):
        pytest.skip("a real function of real numbers")
    zero = {"unconnected_gradients": "zero"}

    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = product(record, inputs, sources, weights)
        slopes = [tf.convert_to_tensor(g) for g in tape.gradient(y, sources, **zero)]
        total = tf.add_n([tf.reduce_sum(g * t) for g, t in zip(slopes, v)])
    reverse_reverse = outer.gradient(total, sources, **zero)

    with ForwardAccumulator(sources, v) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = product(record, inputs, sources, weights)
        slopes = [tf.convert_to_tensor(g) for g in tape.gradient(y, sources, **zero)]
    forward_reverse = accumulator.jvp(slopes, **zero)

    with tf.GradientTape() as tape:
        tape.watch(sources)
        with ForwardAccumulator(sources, v) as accumulator:
            y = product(record, inputs, sources, weights)
        slope = accumulator.jvp(y, **zero)
    reverse_forward = tape.gradient(slope, sources, **zero)

    with ForwardAccumulator(sources, v) as outer, ForwardAccumulator(sources, v) as accumulator:
        y = product(record, inputs, sources, weights)
        slope = accumulator.jvp(y, **zero)
    forward_forward = outer.jvp(slope, **zero)

    for a, b, c in zip(reverse_reverse, forward_reverse, reverse_forward):
        a, b, c = (tf.convert_to_tensor(t).numpy() for t in (a, b, c))
        close(b, a, 1e-10, f"forward over reverse of {record.id}")
        close(c, a, 1e-10, f"reverse over forward of {record.id}")
    curvature = inner(reverse_reverse, v)
    scale = sum(abs(tf.convert_to_tensor(g).numpy()).sum() for g in reverse_reverse)
    assert abs(float(forward_forward) - curvature) <= 1e-10 * max(scale, abs(curvature), 1e-300), record.id
