"""`vectorized_map`: one run on all elements gives what a loop gives, derivatives on both sides of it too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from test_random_programs import close, numbers, programs

import gradtape as tf
from gradtape import autodiff
from gradtape.ops import vectorized


def looped(f, *xs):
    return np.stack([tf.convert_to_tensor(f(*row)).numpy() for row in zip(*map(tf.constant, xs))])


ROWS = np.random.default_rng(0).normal(size=(4, 3))


@given(programs)
def test_a_program_mapped_equals_the_loop_with_tapes_inside_and_outside(program):
    """C7"""
    stacked = [tf.constant(np.stack([i, i * 0.9, i + 0.1])) for i in program.inputs]

    def gradients(xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = program(*xs)
        return [tf.convert_to_tensor(g) for g in tape.gradient(y, xs, unconnected_gradients="zero")]

    rows = [[s[k] for s in stacked] for k in range(3)]
    wanted = [np.stack(column) for column in zip(*(numbers(gradients(row)) for row in rows))]
    inside = tf.vectorized_map(gradients, stacked, fallback_to_while_loop=False)
    with tf.GradientTape() as tape:
        tape.watch(stacked)
        y = tf.vectorized_map(lambda xs: program(*xs), stacked, fallback_to_while_loop=False)
    outside = tape.gradient(y, stacked, unconnected_gradients="zero")
    np.testing.assert_allclose(y.numpy(), np.stack([program(*row).numpy() for row in rows]), 1e-12, 1e-12)
    close(numbers(inside), wanted)
    close(numbers(outside), wanted)


@given(programs)
def test_second_derivatives_with_one_tape_on_each_side(program):
    stacked = [tf.constant(np.stack([i, i * 0.9])) for i in program.inputs]

    def slope(xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = program(*xs)
        found = tape.gradient(y, xs, unconnected_gradients="zero")
        return tf.add_n([tf.reduce_sum(tf.convert_to_tensor(g) ** 2) for g in found])

    def outside(run):
        with tf.GradientTape() as tape:
            tape.watch(stacked)
            y = run()
        return numbers(tape.gradient(y, stacked, unconnected_gradients="zero"))

    loop = outside(lambda: tf.stack([slope([s[k] for s in stacked]) for k in range(2)]))
    close(outside(lambda: tf.vectorized_map(slope, stacked)), loop, rtol=1e-10)


def test_nested_maps():
    table = np.random.default_rng(1).normal(size=(2, 3, 4))
    received = tf.vectorized_map(lambda m: tf.vectorized_map(lambda r: tf.reduce_sum(r) * m[0], m), tf.constant(table))
    np.testing.assert_allclose(received, table.sum(-1, keepdims=True) * table[:, :1])
    x = tf.constant(table)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(lambda m: tf.vectorized_map(lambda r: tf.reduce_sum(tf.nn.elu(r)), m), x)
    np.testing.assert_allclose(tape.gradient(y, x), np.where(table > 0, 1, np.exp(table)))


def test_jacobians_and_hessians_inside():
    def f(x):
        return tf.sin(x) * tf.reduce_sum(x)

    x = tf.constant(ROWS)
    for inner in (
        lambda r: autodiff.jacobian(f, r),
        lambda r: autodiff.jacobian(f, r, mode="forward"),
        lambda r: autodiff.hessian(lambda x: tf.reduce_sum(f(x)), r),
        lambda r: autodiff.hvp(lambda x: tf.reduce_sum(f(x)), r, tf.ones_like(r)),
        lambda r: autodiff.jvp(f, r, tf.ones_like(r))[1],
        lambda r: autodiff.taylor(f, r, tf.ones_like(r), 2)[2],
    ):
        received = tf.vectorized_map(inner, x, fallback_to_while_loop=False)
        np.testing.assert_allclose(received, looped(inner, ROWS), 1e-12, 1e-12)


def outer_gradient(f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(f, x, fallback_to_while_loop=False)
    return tape.gradient(y, x).numpy().tolist()


def test_what_a_tape_outside_sees_is_the_op_s_own_rule():
    """Not the derivative of the kernel: at kinks, for straight-through gradients, for a user's own."""

    @tf.custom_gradient
    def tripled(x):
        return x * x, lambda g: 3.0 * g * x

    assert outer_gradient(tripled, [1.0, 2.0]) == [3, 6]
    assert outer_gradient(lambda x: x * tf.stop_gradient(x), [1.0, 2.0]) == [1, 2]
    assert outer_gradient(tf.grad_pass_through(tf.round), [1.2, 2.0]) == [1, 1]
    assert outer_gradient(tf.recompute_grad(lambda x: x * x), [1.0, 2.0]) == [2, 4]
    assert outer_gradient(tf.nn.elu, [0.0, 2.0]) == [1, 1]
    assert outer_gradient(tf.nn.relu, [0.0, 2.0]) == [0, 1]
    assert outer_gradient(tf.quantization.fake_quant_with_min_max_args, [0.3, 0.4]) == [1, 1]


def test_a_custom_gradient_with_variables_and_shared_tensors():
    w, shared, x = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    @tf.custom_gradient
    def f(x, s):
        def grad(g, variables=None):
            return (g * w * s, g * w * x), [10.0 * g * x * s]

        return x * w * s, grad

    with tf.GradientTape() as tape:
        tape.watch([x, shared])
        y = tf.vectorized_map(lambda r: f(r, shared), x)
    gx, gs, gw = tape.gradient(y, [x, shared, w])
    np.testing.assert_allclose(gx, np.broadcast_to([3, 8], (3, 2)))
    np.testing.assert_allclose(gs, x.numpy().sum(0) * [1, 2])
    np.testing.assert_allclose(gw, 10 * x.numpy().sum(0) * [3, 4])


def test_what_does_not_depend_on_the_element_is_repeated():
    x = tf.constant(ROWS)
    found = tf.vectorized_map(lambda r: {"a": tf.constant(2.0), "b": (r, 1.0)}, x)
    assert found["a"].numpy().tolist() == [2.0] * 4
    assert found["b"][0].shape == (4, 3)


def test_variables_and_tapes_outside():
    w = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
    x = tf.constant(ROWS)
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda r: tf.reduce_sum(w * r) ** 2, x)
    np.testing.assert_allclose(tape.gradient(y, w), 2 * (ROWS @ w.numpy()) @ ROWS)


def test_a_python_branch_on_a_value_makes_it_a_loop_which_is_said_once(caplog, monkeypatch):
    monkeypatch.setattr(vectorized, "_said", set())

    def f(x):
        return x * 2.0 if x > 0 else -x

    x = tf.constant([1.0, -3.0])
    with caplog.at_level("WARNING", "gradtape"):
        for _ in range(2):
            assert tf.vectorized_map(f, x).numpy().tolist() == [2, 3]
    assert caplog.text.count("in a loop") == 1
    with pytest.raises(ValueError, match="could not vectorise"):
        tf.vectorized_map(f, x, fallback_to_while_loop=False)
    assert tf.vectorized_map(lambda x: f(x), x, warn=False).numpy().tolist() == [2, 3]
    assert caplog.text.count("in a loop") == 1


@pytest.mark.parametrize(
    "draw",
    [
        lambda r: r + tf.random.normal([3], dtype=tf.float64),
        lambda r: tf.random.normal([2], seed=4),
        lambda r: tf.random.uniform([3], r, r + 1.0, tf.float64),
        lambda r: tf.random.uniform([2], 0, 1000, tf.int32),
        lambda r: tf.random.categorical(tf.zeros([1, 9]), 5),
        lambda r: tf.random.shuffle(tf.range(9)),
        lambda r: tf.random.gamma([2], 1.0),
        lambda r: tf.nn.dropout(r, 0.5),
        lambda r: tf.vectorized_map(lambda s: s + tf.random.normal([], dtype=tf.float64), r),
        lambda r: tf.random.stateless_normal([2], [1, 2]),
    ],
    ids="normal seeded uniform integers categorical shuffle gamma dropout nested stateless".split(),
)
def test_random_numbers_are_those_of_a_loop(draw):
    tf.random.set_seed(3)
    received = tf.vectorized_map(draw, tf.constant(ROWS), warn=False).numpy()
    tf.random.set_seed(3)
    np.testing.assert_array_equal(received, looped(draw, ROWS))


def test_a_generator_inside():
    received = (lambda g: tf.vectorized_map(lambda r: g.normal([2]), tf.constant(ROWS)))(tf.random.Generator.from_seed(1))
    generator = tf.random.Generator.from_seed(1)
    np.testing.assert_array_equal(received, np.stack([generator.normal([2]) for _ in range(4)]))


def test_printing_inside_does_not_need_the_values(capsys):
    tf.vectorized_map(lambda r: [print(r), repr(r), r][-1], tf.constant(ROWS), fallback_to_while_loop=False)
    assert "each element of a batch" in capsys.readouterr().out


def test_no_elements():
    assert tf.vectorized_map(lambda r: tf.reduce_sum(r) * tf.ones([2]), tf.zeros([0, 3])).shape == (0, 2)


def test_bad_elements():
    with pytest.raises(ValueError, match="the same number in each"):
        tf.vectorized_map(lambda xs: xs[0], (tf.zeros([2]), tf.zeros([3])))
    with pytest.raises(ValueError, match="elements along axis 0"):
        tf.vectorized_map(lambda x: x, tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.vectorized_map(lambda r: tf.matmul(r, r), tf.zeros([2, 3, 4]))


SCORES, IMAGES = np.random.RandomState(0).rand(4, 3, 5), np.random.RandomState(1).rand(4, 6, 6, 3)
WEIGHTS = np.random.RandomState(2).rand(9, 5)


@pytest.mark.parametrize(
    ("f", "elements"),
    [
        (lambda r: tf.random.categorical(r, 7), SCORES),
        (tf.random.shuffle, SCORES),
        (lambda r: tf.image.random_hue(r, 0.2), IMAGES),
        (lambda r: tf.image.random_crop(r, [3, 4, 3]), IMAGES),
        (lambda r: tf.nn.nce_loss(WEIGHTS, np.zeros(9), [[1], [2], [4]], r, 4, 9), SCORES),
    ],
    ids=["categorical", "shuffle", "random_hue", "random_crop", "nce_loss"],
)
def test_what_depends_on_a_draw_is_what_a_loop_gives(f, elements):
    tf.random.set_seed(3)
    mapped = tf.vectorized_map(f, tf.constant(elements), fallback_to_while_loop=False)
    tf.random.set_seed(3)
    looped = tf.stack([f(tf.constant(element)) for element in elements])
    np.testing.assert_array_equal(mapped.numpy(), looped.numpy())


def test_a_map_inside_a_compiled_function_with_a_tape_inside_and_a_variable():
    weight = tf.Variable([1.0, 2.0, 3.0])

    def gradient(row):
        with tf.GradientTape() as tape:
            tape.watch(row)
            y = tf.tanh(tf.tanh(row * weight + row) * weight)
        return tape.gradient(y, [row, weight])

    rows = tf.constant(np.linspace(-1.0, 1.0, 12).reshape(4, 3), tf.float32)
    compiled = tf.function(lambda rows: tf.vectorized_map(gradient, rows), jit_compile=True)(rows)
    for one, two in zip(compiled, tf.vectorized_map(gradient, rows)):
        np.testing.assert_allclose(one, two, 1e-5, 1e-6)
