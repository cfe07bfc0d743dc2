"""`tape.on_gradient`: gradients are seen, and replaced, as the sweep passes."""

import numpy as np
import pytest

import gradtape as tf

X = np.array([1.0, 2.0, 3.0])


def squares(persistent: bool = False):
    v = tf.Variable(X)
    with tf.GradientTape(persistent=persistent) as tape:
        hidden = v * 2.0
        y = tf.reduce_sum(hidden**2)
    return tape, v, hidden, y


@pytest.mark.parametrize("place", ["source", "middle", "target"])
def test_looking_changes_nothing(place):
    tape, v, hidden, y = squares()
    seen = []
    tape.on_gradient({"source": v, "middle": hidden, "target": y}[place], seen.append)
    np.testing.assert_allclose(tape.gradient(y, v), 8 * X)
    (gradient,) = seen
    np.testing.assert_allclose(gradient, {"source": 8 * X, "middle": 4 * X, "target": 1.0}[place])


def test_the_whole_gradient_is_seen_once():
    v = tf.Variable(X)
    with tf.GradientTape() as tape:
        hidden = v * 2.0
        y = tf.reduce_sum(hidden * hidden + tf.sin(hidden) - hidden)
    seen = []
    tape.on_gradient(hidden, seen.append)
    tape.gradient(y, v)
    np.testing.assert_allclose(seen, [4 * X + np.cos(2 * X) - 1])


def test_what_is_returned_takes_its_place():
    tape, v, hidden, y = squares(persistent=True)
    hook = tape.on_gradient(hidden, lambda g: tf.clip_by_value(g, -5.0, 5.0))
    np.testing.assert_allclose(tape.gradient(y, v), 2 * np.minimum(4 * X, 5))
    np.testing.assert_allclose(tape.gradient(y, [hidden, v])[0], np.minimum(4 * X, 5))
    tape.on_gradient(v, lambda g: -g)
    np.testing.assert_allclose(tape.gradient(y, v), -2 * np.minimum(4 * X, 5))
    hook.remove()
    np.testing.assert_allclose(tape.gradient(y, v), -8 * X)


def test_hooks_on_one_value_run_in_order():
    tape, v, hidden, y = squares()
    tape.on_gradient(hidden, lambda g: g + 1.0)
    tape.on_gradient(hidden, lambda g: g * 10.0)
    np.testing.assert_allclose(tape.gradient(y, v), 20 * (4 * X + 1))


def test_one_of_several_outputs():
    v = tf.Variable(X)
    with tf.GradientTape() as tape:
        first, rest = tf.split(v, [1, 2])
        y = tf.reduce_sum(first) + tf.reduce_sum(rest * rest)
    tape.on_gradient(rest, lambda g: g * 100.0)
    np.testing.assert_allclose(tape.gradient(y, v), [1, 400, 600])


def test_it_is_recorded_for_higher_orders():
    v = tf.Variable(X)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            hidden = v * v
            y = tf.reduce_sum(hidden * hidden)
        inner.on_gradient(hidden, lambda g: g * v)
        slope = inner.gradient(y, v)  # 2 v² · v · 2 v
    np.testing.assert_allclose(slope, 4 * X**4)
    np.testing.assert_allclose(outer.gradient(slope, v), 16 * X**3)


def test_a_jacobian_shows_its_rows():
    v = tf.Variable(X)
    with tf.GradientTape(persistent=True) as tape:
        hidden = v * 2.0
        y = hidden * hidden
    rows = []
    tape.on_gradient(hidden, lambda g: rows.append(g.numpy()))
    np.testing.assert_allclose(tape.jacobian(y, v), np.diag(8 * X))
    np.testing.assert_allclose(rows, np.diag(4 * X))
    tape.on_gradient(v, lambda g: g * 2.0)
    np.testing.assert_allclose(tape.jacobian(y, v), np.diag(16 * X))


def test_a_sparse_gradient_is_shown_whole():
    table = tf.Variable(np.ones((4, 2)))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 1, 3]))
    seen = []
    hook = tape.on_gradient(table, lambda g: seen.append(g.numpy()))
    assert isinstance(tape.gradient(y, table), tf.IndexedSlices)
    np.testing.assert_allclose(seen[0], [[0, 0], [2, 2], [0, 0], [1, 1]])
    hook.remove()
    tape.on_gradient(table, lambda g: g * 3.0)
    np.testing.assert_allclose(tape.gradient(y, table), 3 * seen[0])


def test_inside_function():
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            hidden = x * 2.0
            y = tf.reduce_sum(hidden**2)
        tape.on_gradient(hidden, lambda g: tf.clip_by_value(g, -5.0, 5.0))
        return tape.gradient(y, x)

    for _ in range(2):
        np.testing.assert_allclose(step(tf.constant(X)), 2 * np.minimum(4 * X, 5))


def test_a_value_off_the_path_is_not_seen():
    v, other = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * 2.0
        other * 3.0
    tape.on_gradient(other, lambda g: pytest.fail("no gradient passes here"))
    assert tape.gradient(y, v).numpy() == 2.0


def test_bad_input():
    tape, v, hidden, y = squares()
    with pytest.raises(TypeError, match="a tensor or a variable"):
        tape.on_gradient(3.0, print)
    with pytest.raises(TypeError, match="needs a function"):
        tape.on_gradient(v, 3.0)
    with pytest.raises(ValueError, match="does not track"):
        tape.on_gradient(tf.constant(1.0), print)
    tape.on_gradient(hidden, lambda g: g[:2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)returned something else.*\(2,\).*\(3,\)"):
        tape.gradient(y, v)
    with pytest.raises(ValueError, match="used up"):
        tape.on_gradient(v, print)


def test_a_replacement_of_another_type_is_refused():
    tape, v, hidden, y = squares()
    tape.on_gradient(hidden, lambda g: tf.cast(g, tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32"):
        tape.gradient(y, v)
