"""Class labels and indices out of range are refused as TensorFlow refuses them on a CPU, and nothing has changed by then."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")

LABEL = r"label value of 3 which is outside the valid range of \[0, 3\)"
LOGITS = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def cross_entropy(labels):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.constant(LOGITS))


def update(rows):
    return tf.tensor_scatter_nd_update(tf.constant(TABLE), rows, tf.zeros([2, 3]))


# by name: a function, an argument that it takes, and those that it refuses
REFUSED = {
    "labels": (cross_entropy, [0, 1, 2, 0], [0, 1, 2, 3], [0, 1, 2, -1]),
    "labels of 64 bits": (lambda y: cross_entropy(tf.cast(y, tf.int64)), [0, 1, 2, 0], [0, 1, 2, 3]),
    "labels from 1": (lambda y: cross_entropy(y - 1), [1, 2, 3, 1], [0, 1, 2, 3], [1, 2, 3, 4]),
    "a column of labels": (
        lambda y: cross_entropy(y[:, 1]), [[7, 0], [7, 1], [7, 2], [7, 0]], [[0, 0], [0, 1], [0, 2], [0, 3]],
    ),
    "masked labels": (lambda y: cross_entropy(tf.where(y == -1, 0, y)), [0, -1, 2, 1], [0, -1, 2, 3], [0, -2, 2, 1]),
    "labels that a program computes": (
        lambda y: cross_entropy(tf.cast(tf.math.cumsum(y), tf.int32)), [0, 1, 0, 1], [0, 1, 1, 1], [0, -1, 0, 0],
    ),
    "labels in a branch": (
        lambda y: tf.cond(tf.reduce_sum(y) > -9, lambda: cross_entropy(y), lambda: tf.zeros([4])), [0, 1, 2, 0], [0, 1, 2, 3],
    ),
    "labels in a loop": (
        lambda y: tf.while_loop(lambda i, s: i < 20, lambda i, s: (i + 1, s + cross_entropy(y)), [0, tf.zeros([4])])[1],
        [0, 1, 2, 0], [0, 1, 2, 3],
    ),
    "labels of a vectorized_map": (
        lambda y: tf.vectorized_map(lambda v: tf.nn.sparse_softmax_cross_entropy_with_logits(v, tf.zeros([3])), y),
        [0, 1, 2, 0], [0, 1, 2, 3], [0, 1, 2, -1],
    ),
    "gather": (lambda i: tf.gather(tf.constant(TABLE), i), [0, 3], [0, 4], [0, -1]),
    "gather along the second axis": (lambda i: tf.gather(tf.constant(TABLE), i, axis=1), [0, 2], [0, 3], [0, -1]),
    "an index": (lambda i: tf.constant(TABLE)[i], -4, 4, -5),
    "embedding_lookup": (lambda i: tf.nn.embedding_lookup(tf.constant(TABLE), i), [[0], [3]], [[0], [4]]),
    "gather_nd": (lambda i: tf.gather_nd(tf.constant(TABLE), i), [[0, 0], [3, 2]], [[0, 0], [3, 3]], [[0, -1], [0, 0]]),
    "gather_nd beside a range": (
        lambda y: tf.gather_nd(tf.constant(TABLE), tf.stack([tf.range(tf.shape(y)[0]), y], 1)),
        [0, 2, 1, 0], [0, 3, 1, 0], [0, -1, 1, 0],
    ),
    "halves": (lambda i: tf.gather(tf.constant(TABLE), i // 2), [0, 7, 5], [0, 8, 5], [0, -1, 5]),
    "remainders": (lambda i: tf.gather(tf.constant(TABLE), i % 6), [0, 3, 8, -3], [0, 4, 7, 1], [0, -1, 0, 0]),
    "signs": (lambda i: tf.gather(tf.constant(TABLE), tf.sign(i)), [0, 3, 8], [0, -1, 7]),
    "clipped": (lambda i: tf.gather(tf.constant(TABLE), tf.clip_by_value(i, 0, 9) - 6), [6, 9, 99], [5, 9, 9], [-1, 9, 9]),
    "scatter_nd": (lambda i: tf.scatter_nd(i, tf.constant([1.0, 2.0]), [4]), [[0], [3]], [[0], [4]], [[0], [-1]]),
    "tensor_scatter_nd_update": (update, [[0], [3]], [[0], [4]], [[0], [-1]]),
    "tensor_scatter_nd_max": (
        lambda i: tf.tensor_scatter_nd_max(tf.constant(TABLE), i, tf.ones([2, 3])), [[0], [3]], [[0], [4]], [[0], [-1]],
    ),
    "unsorted_segment_max": (
        lambda i: tf.math.unsorted_segment_max(tf.constant(TABLE), i, 3), [0, 1, 2, -1], [0, 1, 2, 3],
    ),
    "unsorted_segment_sum": (
        lambda i: tf.math.unsorted_segment_sum(tf.constant(TABLE), i, 3), [0, 1, 2, -1], [0, 1, 2, 3],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_refuses_what_eager_code_refuses(name):
    f, good, *wrong = REFUSED[name]
    count = tf.Variable(0.0)

    @function(jit_compile=True)
    def counted(x):
        count.assign_add(1.0)
        return f(x)

    np.testing.assert_array_equal(counted(tf.constant(good)), f(tf.constant(good)))
    for bad in wrong:
        with pytest.raises(tf.errors.InvalidArgumentError) as expected:
            f(tf.constant(bad))
        with pytest.raises(tf.errors.InvalidArgumentError) as refused:
            counted(tf.constant(bad))
        assert str(refused.value) == str(expected.value)
        with tf.GradientTape(), pytest.raises(tf.errors.InvalidArgumentError):
            counted(tf.constant(bad))
    np.testing.assert_array_equal(counted(tf.constant(good)), f(tf.constant(good)))
    assert float(count) == 2.0
    assert counted.experimental_get_tracing_count() == 2


def test_the_gradient_of_a_call_with_wrong_labels_is_refused():
    w = tf.Variable(LOGITS)
    loss = function(lambda y: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, w)))
    with tf.GradientTape() as tape:
        value = loss(tf.constant([0, 1, 2, 0]))
    assert np.isfinite(tape.gradient(value, w)).all()
    with tf.GradientTape(), pytest.raises(tf.errors.InvalidArgumentError, match=LABEL):
        loss(tf.constant([0, 1, 2, 3]))


def test_a_refusal_does_not_wait_for_the_program():
    """Labels that are arguments are no condition that the program checks: the host has seen them."""
    f = function(cross_entropy)
    f(tf.constant([0, 1, 2, 0]))
    (program,) = f._programs.values()
    assert len(program.checks) == 1
    assert program.always_fits
    g = function(lambda y: cross_entropy(tf.cast(tf.math.cumsum(y), tf.int32)))
    g(tf.constant([0, 1, 1, 0]))
    (program,) = g._programs.values()
    assert not program.checks
    assert program._counted


def test_indices_of_no_elements_and_bool_arguments_are_taken():
    f = function(lambda i: tf.gather(tf.constant(TABLE), i))
    assert f(tf.constant([], tf.int32)).shape == (0, 3)
    g = function(lambda i: tf.gather(tf.constant(TABLE), tf.cast(i, tf.int32)))
    np.testing.assert_array_equal(g(tf.constant([True, False])), TABLE[[1, 0]])
    h = function(lambda i: tf.gather(tf.constant(TABLE), tf.cast(i, tf.int32)))
    np.testing.assert_array_equal(h(tf.constant([3.9, -0.9])), TABLE[[3, 0]])


@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [0, 1, 2, -1]])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_custom_loop_raises_and_leaves_everything_as_it_was(labels, compiled):
    weights = tf.Variable(np.eye(3, dtype=np.float32))
    optimizer = tf.optimizers.Adam(0.1)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ weights))
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    run = function(step) if compiled else step
    x = tf.constant(LOGITS)
    for _ in range(3):
        run(x, tf.constant([0, 1, 2, 0]))
    before = [np.array(v) for v in (weights, *optimizer.variables)]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"label value of (3|-1) which is outside the valid range of"):
        run(x, tf.constant(labels))
    for old, variable in zip(before, (weights, *optimizer.variables)):
        np.testing.assert_array_equal(old, variable)
    run(x, tf.constant([0, 1, 2, 0]))
    assert int(optimizer.iterations) == 4
    assert np.isfinite(weights).all()
