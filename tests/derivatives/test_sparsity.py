"""Sparse Jacobians and Hessians: patterns that miss nothing, colourings, and values equal to the dense ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_random_programs import programs

import gradtape as tf
from gradtape import autodiff
from gradtape.derivatives.sparsity import propagate

sparse = pytest.importorskip("scipy.sparse")


# Random programs


def _scattered(x):
    index = np.stack([np.arange(x.shape[0]) * 3 % x.shape[0]], 1)
    return tf.scatter_nd(tf.constant(index), x, [int(x.shape[0])])


STEPS = {
    "slice": lambda x, k: x[k % 3 :],
    "stride": lambda x, k: x[:: 1 + k % 3],
    "reverse": lambda x, k: tf.reverse(x, [0]),
    "roll": lambda x, k: tf.roll(x, k, 0),
    "gather": lambda x, k: tf.gather(x, np.array([k, 0, 2 * k]) % x.shape[0]),
    "scatter": lambda x, k: _scattered(x),
    "segments": lambda x, k: tf.math.segment_sum(x, np.arange(x.shape[0]) // (1 + k % 3)),
    "concat": lambda x, k: tf.concat([x[: k % 3], x * x, [1.0, 2.0]], 0),
    "stack": lambda x, k: tf.reshape(tf.stack([x, tf.sin(x)], k % 2), [-1]),
    "pad": lambda x, k: tf.pad(x, [[k % 3, 1]], constant_values=3.0),
    "tile": lambda x, k: tf.tile(x, [2]),
    "neighbours": lambda x, k: x[1:] * x[:-1] if x.shape[0] > 1 else x,
    "elementwise": lambda x, k: tf.exp(-x * x) + tf.abs(x),
    "pick": lambda x, k: tf.where(np.arange(x.shape[0]) % 2 == k % 2, x, tf.reverse(x, [0])),
    "data pick": lambda x, k: tf.where(x > 0, x, tf.roll(x, 1, 0)),
    "times zero": lambda x, k: x * np.r_[0.0, np.ones(x.shape[0] - 1)],
    "sum": lambda x, k: tf.reduce_sum(x, keepdims=True),
    "max": lambda x, k: tf.reduce_max(x, keepdims=True) * x,
    "cumsum": lambda x, k: tf.cumsum(x),
    "sort": lambda x, k: tf.sort(x),
    "top": lambda x, k: tf.math.top_k(x, 1 + k % x.shape[0]).values,
    "matmul": lambda x, k: tf.linalg.matvec(np.tri(k + 1, x.shape[0]), x),
    "einsum": lambda x, k: tf.reshape(tf.einsum("i,j->ij", x[:2], x), [-1]),
    "block": lambda x, k: tf.reshape(tf.nn.softmax(tf.reshape(x[: x.shape[0] // 2 * 2], [-1, 2])), [-1]),
    "norm": lambda x, k: x / (1.0 + tf.norm(x + 0.1)),
    "custom": lambda x, k: tf.recompute_grad(lambda y: y * tf.reduce_mean(y))(x),
    "relu": lambda x, k: tf.nn.elu(x) + tf.nn.relu(x),
    "ceil": lambda x, k: tf.math.ceil(x) * x,
}
steps = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 6)), min_size=1, max_size=6)


def run(x, recipe):
    for name, k in recipe:
        assume(x.shape[0] > 0)
        x = STEPS[name](x, k)
        assume(x.shape[0] <= 60)
    assume(x.shape[0] > 0)
    return x


@given(steps, st.integers(1, 9), st.integers(0, 99))
def test_the_pattern_covers_and_the_values_are_those_of_the_dense_jacobian(recipe, size, seed):
    numbers = np.random.default_rng(seed).normal(size=size)
    x = tf.constant(numbers)
    pattern = autodiff.jacobian_sparsity(lambda x: run(x, recipe), x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = run(x, recipe)
    dense = tape.jacobian(y, x, unconnected_gradients="zero").numpy()
    assert pattern.shape == dense.shape
    assert not ((dense != 0) & ~pattern.toarray()).any()
    tolerance = {"rtol": 1e-11, "atol": 1e-11 * max(1, abs(dense).max(initial=0))}
    np.testing.assert_allclose(tape.sparse_jacobian(y, x).toarray(), dense, **tolerance)
    for mode in ("forward", "reverse"):
        coloring = autodiff.coloring(pattern, mode)
        np.testing.assert_allclose(tape.sparse_jacobian(y, x, coloring).toarray(), dense, **tolerance)


@given(programs)
def test_the_pattern_covers_the_jacobian_of_any_program(program):
    inputs = [tf.constant(i) for i in program.inputs]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        y = program(*inputs)
    for x in inputs:
        pattern = propagate(tape.records, x, y).toarray()
        dense = tape.jacobian(y, x, unconnected_gradients="zero").numpy().reshape(pattern.shape)
        assert not ((dense != 0) & ~pattern).any()


@given(steps, st.integers(1, 9), st.integers(0, 99))
def test_the_sparse_hessian_is_the_dense_one(recipe, size, seed):
    x = tf.constant(np.random.default_rng(seed).normal(size=size))

    def f(x):
        return tf.reduce_sum(tf.sin(run(x, recipe)))

    dense = autodiff.hessian(f, x).numpy()
    received = autodiff.sparse_hessian(f, x).toarray()
    np.testing.assert_allclose(received, dense, 1e-10, 1e-10 * max(1, abs(dense).max()))


# Patterns that are known


def pattern_of(f, size):
    return autodiff.jacobian_sparsity(f, tf.constant(np.linspace(0.5, 1.5, size))).toarray()


def test_patterns_are_tight_where_the_structure_is_plain():
    np.testing.assert_array_equal(pattern_of(lambda x: x * x, 4), np.eye(4))
    np.testing.assert_array_equal(pattern_of(lambda x: tf.reverse(x, [0]), 3), np.eye(3)[::-1])
    np.testing.assert_array_equal(pattern_of(lambda x: tf.reshape(tf.reduce_sum(tf.reshape(x, [2, 2]), 0), [-1]), 4),
                                  [[1, 0, 1, 0], [0, 1, 0, 1]])  # fmt: skip
    np.testing.assert_array_equal(pattern_of(lambda x: tf.gather(x, [2, 2, 0]), 3), [[0, 0, 1], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(pattern_of(lambda x: tf.concat([x[1:], [1.0]], 0), 3), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(pattern_of(tf.stop_gradient, 3), np.zeros((3, 3)))


def test_a_zero_at_this_point_is_not_missed():
    x = tf.constant([0.0, 0.0, 1.0])
    pattern = autodiff.jacobian_sparsity(lambda x: x[:2] * x[1:], x)
    np.testing.assert_array_equal(pattern.toarray(), [[1, 1, 0], [0, 1, 1]])


def test_an_order_that_depends_on_the_values_may_reach_everything():
    assert pattern_of(tf.sort, 3).all()
    assert pattern_of(tf.reduce_max, 3).all()


def test_a_custom_gradient_may_reach_everything():
    @tf.custom_gradient
    def f(x):
        return x * 1.0, lambda g: tf.ones_like(x) * tf.reduce_sum(g)

    assert pattern_of(f, 3).all()


def test_a_straight_through_rule_is_in_the_pattern():
    f = tf.quantization.fake_quant_with_min_max_args
    x = tf.constant([0.1, 0.2])
    np.testing.assert_array_equal(autodiff.jacobian_sparsity(f, x).toarray(), np.eye(2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.sparse_jacobian(y, x).toarray(), np.eye(2))


# Colouring


@given(st.integers(1, 12), st.integers(1, 12), st.floats(0, 1), st.integers(0, 99))
def test_columns_or_rows_of_one_colour_do_not_meet(rows, columns, density, seed):
    pattern = np.random.default_rng(seed).random((rows, columns)) < density
    for mode in ("forward", "reverse", None):
        coloring = autodiff.coloring(sparse.csr_array(pattern), mode)
        table = pattern if coloring.forward else pattern.T
        for color in range(coloring.count):
            assert table[:, coloring.colors == color].sum(axis=1).max(initial=0) <= 1
        values = np.where(pattern, np.arange(1.0, rows * columns + 1).reshape(rows, columns), 0.0)
        seeds = coloring.seeds(np.float64)
        products = seeds @ values.T if coloring.forward else seeds @ values
        np.testing.assert_array_equal(coloring.filled(products).toarray(), values)


def test_an_arrow_is_cheap_in_neither_mode_alone_but_right_in_both():
    def f(x):
        return tf.concat([tf.reduce_sum(x * x, keepdims=True), x[1:] * x[0]], 0)

    x = tf.constant(np.linspace(1, 2, 9))
    dense = autodiff.jacobian(f, x).numpy()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.sparse_jacobian(y, x).toarray(), dense)


# Large problems


def reaction_diffusion(u):
    """u'' + u - u³ with a wall of 0 at both ends."""
    padded = tf.pad(u, [[1, 1]])
    return (padded[2:] - 2.0 * u + padded[:-2]) * 0.3 + u - u * u * u


def test_reaction_diffusion_is_exact():
    u = tf.constant(np.sin(np.arange(200)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(u)
        y = reaction_diffusion(u)
    received = tape.sparse_jacobian(y, u)
    np.testing.assert_allclose(received.toarray(), tape.jacobian(y, u).numpy(), 1e-13, 1e-15)
    assert received.nnz == 3 * 200 - 2


def test_reaction_diffusion_of_a_hundred_thousand():
    n = 100_000
    u = tf.constant(np.sin(np.arange(n)))
    coloring = autodiff.coloring(autodiff.jacobian_sparsity(reaction_diffusion, u))
    assert coloring.count == 3
    assert coloring.pattern.nnz == 3 * n - 2
    with tf.GradientTape() as tape:
        tape.watch(u)
        y = reaction_diffusion(u)
    received = tape.sparse_jacobian(y, u, coloring)
    direction = np.cos(np.arange(n))
    wanted = autodiff.jvp(reaction_diffusion, u, direction)[1].numpy()
    np.testing.assert_allclose(received @ direction, wanted, 1e-10, 1e-12)


# Hessians by four routes


def network(x):
    rng = np.random.default_rng(3)
    w1, w2 = rng.normal(size=(10, 32)) / 3, rng.normal(size=(32, 1)) / 5
    return tf.reduce_sum(tf.matmul(tf.tanh(tf.matmul(x[None], w1)), w2))


def rosenbrock(x):
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.mark.parametrize(("f", "size"), [(network, 10), (rosenbrock, 100)], ids=["10-32-1 network", "Rosenbrock of 100"])
def test_four_routes_to_a_hessian(f, size):
    x = tf.constant(np.random.default_rng(1).normal(size=size))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        gradient = inner.gradient(y, x)
    nested = outer.jacobian(gradient, x, experimental_use_pfor=True).numpy()
    columns = [autodiff.hvp(f, x, row).numpy() for row in np.eye(size)]
    for received in (np.stack(columns, 1), autodiff.hessian(f, x).numpy(), autodiff.sparse_hessian(f, x).toarray()):
        np.testing.assert_allclose(received, nested, 1e-10, 1e-10 * abs(nested).max())


def test_rosenbrock_needs_three_products():
    x = tf.constant(np.ones(100))

    def gradient(x):
        return autodiff.value_and_gradient(rosenbrock, x)[1]

    assert autodiff.coloring(autodiff.jacobian_sparsity(gradient, x)).count == 3


# What comes in


def test_shapes_variables_and_dtypes():
    v = tf.Variable(np.arange(6.0, dtype="float32").reshape(2, 3))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.transpose(v * v)
    found = tape.sparse_jacobian(y, v)
    assert found.shape == (6, 6)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), tape.jacobian(y, v).numpy().reshape(6, 6))


def test_a_scalar_target_an_empty_one_and_an_unconnected_one():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        scalar, empty, other = tf.reduce_sum(x * x), x[:0] * 2.0, tf.constant([3.0])
    np.testing.assert_allclose(tape.sparse_jacobian(scalar, x).toarray(), [[2, 4]])
    assert tape.sparse_jacobian(empty, x).shape == (0, 2)
    assert tape.sparse_jacobian(other, x).nnz == 0


def test_a_used_tape_wrong_types_and_wrong_shapes():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="one tensor or variable as its source"):
        tape.sparse_jacobian(y, [x])
    with pytest.raises(ValueError, match="another shape"):
        tape.sparse_jacobian(y, x, autodiff.coloring(np.ones((3, 2), bool)))
    tape.sparse_jacobian(y, x)
    with pytest.raises(RuntimeError, match="persistent"):
        tape.gradient(y, x)
    with pytest.raises(ValueError, match="Unknown mode of coloring"):
        autodiff.coloring(np.eye(2, dtype=bool), "sideways")
    with pytest.raises(TypeError, match="int32"):
        autodiff.jacobian_sparsity(lambda x: x, tf.constant([1, 2]))
    with pytest.raises(ValueError, match="one number"):
        autodiff.sparse_hessian(lambda x: x * x, x)
