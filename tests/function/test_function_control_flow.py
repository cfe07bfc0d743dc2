"""Loops and branches that are part of a compiled program do what eager code does, and so do their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function as _function

pytest.importorskip("jax")
X = tf.constant([0.5, -1.0, 2.0], tf.float64)


def function(f):
    return _function(f, autograph=False, jit_compile=True)


def arrays(structure):
    return [None if t is None else tf.convert_to_tensor(t).numpy() for t in tf.nest.flatten(structure)]


def agree(make, *args, rtol=1e-9):
    """What ``make(wrap)`` gives with functions as they are and compiled; unconnected gradients may be zeros there."""
    eager, compiled = arrays(make(lambda f: f)(*args)), arrays(make(function)(*args))
    assert len(eager) == len(compiled)
    for a, b in zip(eager, compiled):
        if a is None:
            assert b is None or not b.any()
        else:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(b, a, rtol, 1e-12)


def traced(f):
    """The function, and a list that grows whenever Python runs it."""
    calls = []

    def body(*args):
        calls.append(1)
        return f(*args)

    return body, calls


def gradients(f, *others, unconnected="none"):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y, tape.gradient(y, [x, *others], unconnected_gradients=unconnected)

    return run


def second(f, *others):
    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            _, g = gradients(f, *others, unconnected="zero")(x)
        return g, outer.gradient(g, [x, *others])

    return run


W = tf.Variable([0.3, -0.2, 0.1], dtype=tf.float64)
C = tf.constant([1.5, 0.5, -0.7], tf.float64)


def step(h, row):
    return tf.tanh(h * W + row * C) + 0.1 * h


def rows(x, count=20):
    return tf.cast(tf.linspace(-1.0, 1.0, count), x.dtype)[:, None] * x


PROGRAMS = {
    "cond": lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: x**3.0 * W, lambda: tf.sin(x) * C),
    "cond that ignores": lambda x: tf.cond(x[0] > 0.0, lambda: x * W, lambda: tf.ones_like(x)),
    "cond nested": lambda x: tf.cond(
        x[0] > 0.0, lambda: tf.cond(x[1] > 0.0, lambda: x * W, lambda: x**2.0 * W), lambda: tf.exp(x)
    ),
    "case": lambda x: tf.case([(x[0] > 1.0, lambda: x * W), (x[2] > 1.0, lambda: x**2.0 * C * W)], default=lambda: tf.exp(x)),
    "switch_case": lambda x: tf.switch_case(
        tf.cast(x[2], tf.int32), [lambda: x * W, lambda: x**2.0, lambda: x**3.0 * W], default=lambda: -x
    ),
    "while": lambda x: tf.while_loop(lambda y: tf.reduce_sum(y * y) < 100.0, lambda y: (y * 1.2 + 0.1 * W * y**2.0,), (x,))[0],
    "while at most": lambda x: tf.while_loop(
        lambda n, y: tf.reduce_sum(y * y) < 100.0, lambda n, y: (n + 1, y * 1.2 + W * C), (0, x), maximum_iterations=5
    )[1],
    "while counted": lambda x: tf.while_loop(lambda n, y: n < 20, lambda n, y: (n + 1, step(y, x)), (0, x))[1],
    "while, no step": lambda x: tf.while_loop(lambda y: y[0] > 1e3, lambda y: (y * W,), (x,))[0],
    "scan": lambda x: tf.scan(step, rows(x), tf.zeros_like(x)),
    "scan from the first": lambda x: tf.scan(step, rows(x)),
    "scan backwards": lambda x: tf.scan(step, rows(x), reverse=True),
    "map_fn": lambda x: tf.map_fn(lambda row: tf.sin(row * W) * row, rows(x)),
    "foldl": lambda x: tf.foldl(step, rows(x)),
    "foldr": lambda x: tf.foldr(step, rows(x), x),
    "cond in a loop": lambda x: tf.foldl(
        lambda h, row: tf.cond(tf.reduce_sum(row) > 0.0, lambda: step(h, row), lambda: h * W + tf.sin(row)), rows(x), x
    ),
    "loop in a loop": lambda x: tf.foldl(
        lambda h, row: tf.while_loop(lambda y: tf.reduce_sum(y * y) < 3.0, lambda y: (y * 1.5 + W * row + 0.1,), (h,))[0] * 0.5,
        rows(x),
        x,
    ),
    "loop in a cond": lambda x: tf.cond(x[0] > 0.0, lambda: tf.foldl(step, rows(x)), lambda: x * W),
}


SOME = ["cond", "while", "scan", "cond in a loop"]
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS if name not in SOME]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_and_that_the_second_call_does_not_trace(name):
    eager = gradients(PROGRAMS[name], W)
    body, calls = traced(eager)
    f = function(body)
    agree(lambda wrap: eager if wrap is not function else f, X)
    count = len(calls)
    agree(lambda wrap: eager if wrap is not function else f, -X)
    assert (len(calls), count) == (1, 1)


@pytest.mark.parametrize("name", [*SOME, *OTHERS])
def test_gradients_from_outside(name):
    f = PROGRAMS[name]
    agree(lambda wrap: gradients(wrap(f), W), X)


@pytest.mark.parametrize("name", [*SOME, *OTHERS])
def test_second_order(name):
    agree(lambda wrap: wrap(second(PROGRAMS[name], W)), X, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_second_order_from_outside(name):
    agree(lambda wrap: second(wrap(PROGRAMS[name]), W), X, rtol=1e-7)


# State


def test_variables_assigned_in_branches():
    def make(wrap):
        v, w, n = tf.Variable(1.0), tf.Variable([1.0, 2.0]), tf.Variable(0)

        def body(x):
            def one():
                v.assign_add(x)
                return w * v

            def other():
                w.assign(w * 2.0)
                n.assign_add(1)
                return w - 1.0

            return tf.cond(x > 0.0, one, other) + v

        f = wrap(body)
        return lambda *xs: [(f(x), v.read_value(), w.read_value(), n.read_value()) for x in xs]

    agree(make, *(tf.constant(x) for x in (1.0, -1.0, 2.0, -3.0)))


@pytest.mark.parametrize("count", [3, 30])
def test_variables_assigned_in_loops(count):
    def make(wrap):
        total, power, seen = tf.Variable(0.0), tf.Variable([1.0, 1.0]), tf.Variable(0)

        def body(n, x):
            total.assign_add(tf.reduce_sum(x * power))
            power.assign(power * 0.9)
            seen.assign_add(1)
            return n + 1, x + total

        def run(limit, x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.while_loop(lambda n, x: n < limit, body, (0, x))[1]
            return y, tape.gradient(y, [x, total, power])

        f, g = wrap(run), wrap(lambda x: run(count, x))
        return lambda limit, x: [
            (f(limit, x), g(x), total.read_value(), power.read_value(), seen.read_value()) for _ in range(2)
        ]

    agree(make, tf.constant(count), tf.constant([0.1, 0.2]), rtol=1e-5)


def test_a_condition_may_read_what_the_body_assigns():
    def make(wrap):
        left = tf.Variable(5.0)

        def body(x):
            left.assign_sub(1.0)
            return (x * 1.5,)

        f = wrap(lambda x: tf.while_loop(lambda x: left > 0.0, body, (x,))[0])
        return lambda x: (f(x), left.read_value(), f(x))

    agree(make, X)


def test_a_call_that_fails_changes_nothing():
    v = tf.Variable(1.0)

    def body(x):
        v.assign(5.0)
        return tf.cond(x > 0.0, lambda: x, lambda: tf.constant(1))

    with pytest.raises(TypeError, match=r"true_fn and false_fn arguments to tf.cond must have the same number, type"):
        function(body)(tf.constant(1.0))
    assert float(v) == 1.0


def test_what_a_body_prints_is_printed_once(capfd):
    def body(h, row):
        tf.print("step", row[0])
        return h * 0.5 + row

    def run(x):
        return tf.cond(x[0] > 0.0, lambda: (tf.print("taken"), tf.foldl(body, rows(x), x))[1], lambda: x)

    f = function(gradients(run))
    capfd.readouterr()
    arrays(f(X))
    assert [line.split()[0] for line in capfd.readouterr().err.splitlines()] == ["taken"] + ["step"] * 20


# Arrays of tensors


ARRAYS = {
    "write": lambda x: tf.while_loop(
        lambda n, a: n < 20, lambda n, a: (n + 1, a.write(n, x * tf.cast(n, x.dtype) * W)), (0, tf.TensorArray(x.dtype, 20))
    )[1].stack(),
    "write, shape given": lambda x: tf.while_loop(
        lambda n, a: n < 20, lambda n, a: (n + 2, a.write(n, x * W)), (0, tf.TensorArray(x.dtype, 20, element_shape=(3,)))
    )[1].concat(),
    "read": lambda x: tf.while_loop(
        lambda n, h, a: n < tf.cast(x[2] * 10.0, tf.int32),
        lambda n, h, a: (n + 1, step(h, a.read(n)), a),
        (0, x, tf.TensorArray(x.dtype, 20, clear_after_read=False).unstack(rows(x))),
    )[1],
    "read and write": lambda x: tf.while_loop(
        lambda n, a: n < 20,
        lambda n, a: (n + 1, a.write(n, a.read(n - 1) * W + x)),
        (1, tf.TensorArray(x.dtype, 20, clear_after_read=False).write(0, x)),
    )[1].gather([3, 7, 1]),
    "branch": lambda x: tf.cond(
        x[0] > 0.0, lambda: tf.TensorArray(x.dtype, 2).write(0, x).write(1, x * W),
        lambda: tf.TensorArray(x.dtype, 2).unstack(tf.stack([x, x])),
    ).stack(),
    "at a traced index": lambda x: tf.TensorArray(x.dtype, 3).write(tf.cast(x[2], tf.int32), x * W).stack(),
    "scatter": lambda x: tf.TensorArray(x.dtype, 3).scatter(tf.cast(x[2:], tf.int32), [x * W]).stack(),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_tensors(name):
    f = ARRAYS[name]
    agree(lambda wrap: wrap(gradients(f, W)), X)


@pytest.mark.slow
@pytest.mark.parametrize("name", ARRAYS)
def test_second_order_with_arrays_of_tensors(name):
    agree(lambda wrap: wrap(second(ARRAYS[name], W)), X)


def test_the_size_of_an_array_in_a_loop():
    f = function(
        lambda n: tf.while_loop(
            lambda i, a: i < n, lambda i, a: (i + a.size(), a.write(i, 1.0)), (0, tf.TensorArray("float32", 4))
        )[0]
    )
    assert int(f(tf.constant(3))) == 4


# How often


def test_a_loop_that_takes_more_steps_than_ever_is_made_anew():
    v = tf.Variable(0.0)

    def run(limit, x):
        v.assign_add(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda n, y: n < limit, lambda n, y: (n + 1, tf.sin(y) * 1.1), (0, x))[1]
        return tape.gradient(y, x)

    body, calls = traced(run)
    f = function(body)
    for limit, count in ((5, 1), (30, 1), (33, 2), (64, 2), (20, 2), (300, 3), (512, 3)):
        np.testing.assert_allclose(f(tf.constant(limit), X).numpy(), run(limit, X).numpy(), 1e-9)
        assert (len(calls), f.experimental_get_tracing_count()) == (count, count)
    assert float(v) == 14.0


@pytest.mark.slow
def test_also_one_inside_another_loop_and_under_a_tape_outside():
    def body(limit, x):
        def inner(y, row):
            return tf.while_loop(lambda n, y: n < limit, lambda n, y: (n + 1, tf.sin(y + row) * 1.1), (0, y))[1]

        return tf.cond(x[0] > 0.0, lambda: tf.foldl(inner, rows(x), x), lambda: x)

    for limit in (3, 40, 70):
        agree(lambda wrap, limit=limit: gradients(lambda x: wrap(body)(tf.constant(limit), x)), X)
        agree(lambda wrap, limit=limit: second(lambda x: wrap(body)(tf.constant(limit), x)), X, rtol=1e-6)


# Random numbers

DRAWING = {
    "loop": lambda x: tf.foldl(lambda h, row: h * 0.5 + row * normal() + uniform(), rows(x), x) + normal(),
    "loop in a loop": lambda x: tf.foldl(
        lambda h, row: tf.foldl(lambda g, part: g + part * uniform(), rows(row, 18), h) * uniform(), rows(x), x
    ),
    "branch": lambda x: tf.cond(x[0] > 0.0, lambda: x * uniform(), lambda: x),
    "dropout": lambda x: tf.foldl(lambda h, row: h + tf.nn.dropout(row, 0.5), rows(x), x),
}


def normal():
    return tf.random.normal([3], dtype=tf.float64)


def uniform():
    return tf.random.uniform([], dtype=tf.float64)


@pytest.mark.parametrize("name", DRAWING)
def test_random_numbers_are_those_of_eager_code(name):
    def make(wrap):
        f = wrap(gradients(DRAWING[name]))
        f(X)

        def run(x):
            tf.random.set_seed(7)
            return [f(x) for _ in range(3)]

        return run

    agree(make, X)


# Derivatives of every kind


def jacobian(f):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x)

    return run


def tangent(f):
    def run(x):
        with tf.autodiff.ForwardAccumulator(x, x + 1.0) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    return run


KINDS = {
    "jacobian": jacobian,
    "forward": tangent,
    "forward over reverse": lambda f: tangent(lambda x: gradients(f)(x)[1][0]),
    "third order": lambda f: second(lambda x: gradients(f, unconnected="zero")(x)[1][0]),
    "persistent": lambda f: lambda x: persistent(f, x),
    "vectorized_map": lambda f: lambda x: tf.vectorized_map(f, rows(x, 4)),
    "recompute_grad": lambda f: gradients(tf.recompute_grad(f)),
}


def persistent(f, x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        z = y * y
    return [tape.gradient(target, source) for target in (y, z) for source in (x, y, W)]


@pytest.mark.parametrize("name", ["while", *(pytest.param(name, marks=pytest.mark.slow) for name in SOME if name != "while")])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_every_kind(kind, name, caplog):
    agree(lambda wrap: wrap(KINDS[kind](PROGRAMS[name])), X, rtol=1e-6)


def test_a_tape_inside_the_body():
    def body(h, row):
        (g,) = gradients(lambda h: tf.reduce_sum(tf.sin(h * W) * row))(h)[1]
        return h - 0.1 * g

    agree(lambda wrap: wrap(gradients(lambda x: tf.foldl(body, rows(x), x), W)), X)


@pytest.mark.parametrize("inside", [True, False], ids=["tape inside", "tape outside"])
def test_tensors_from_outside_get_their_gradients(inside):
    c = tf.constant([2.0, -1.0, 0.5], tf.float64)

    def f(x):
        d = c * x[0]
        return tf.foldl(lambda h, row: tf.cond(row[0] > 0.0, lambda: tf.sin(h * c + d), lambda: h * d), rows(x), x)

    def watching(f):
        def run(x):
            with tf.GradientTape() as tape:
                tape.watch([x, c])
                y = f(x)
            return tape.gradient(y, [x, c])

        return run

    if inside:
        agree(lambda wrap: wrap(watching(f)), X)
    else:  # a function that reads a watched tensor runs eagerly under a tape outside
        agree(lambda wrap: watching(wrap(f) if wrap is not function else _function(f, autograph=False)), X)


def test_custom_gradients_in_a_body():
    @tf.custom_gradient
    def steep(x):
        return x * x, lambda g: 5.0 * g * x

    agree(lambda wrap: wrap(gradients(lambda x: tf.foldl(lambda h, row: 0.1 * steep(h) + row, rows(x), x))), X)
    agree(lambda wrap: wrap(second(lambda x: tf.cond(x[0] > 0.0, lambda: steep(x), lambda: x))), X)


# Bad input


def test_branches_must_agree():
    structure = function(lambda x: tf.cond(x[0] > 0.0, lambda: (x, x), lambda: x))
    with pytest.raises((TypeError, ValueError), match="must have the same number, type, and overall structure"):
        structure(X)
    kinds = function(lambda x: tf.switch_case(tf.cast(x[2], tf.int32), [lambda: x, lambda: tf.constant(1)]))
    with pytest.raises(TypeError, match=r"branches\[0\] and branches\[1\] arguments to tf.switch_case must have the same"):
        kinds(X)


def test_branches_of_different_shapes_run_eagerly(caplog):
    f = _function(lambda x: tf.cond(x[0] > 0.0, lambda: x, lambda: x[:1]), autograph=False)
    assert [f(X).shape, f(-X).shape] == [(3,), (1,)]
    assert "cond with results of the shapes (3,) and (1,)" in caplog.text


def loop_until(x, body, value, **options):
    return tf.while_loop(lambda n, y: n < tf.cast(x[2] * 10.0, tf.int32), lambda n, y: (n + 1, body(y)), (0, value), **options)


def test_loop_variables_must_stay_what_they_are(caplog):
    def grow(y):
        return tf.concat([y, y], 0)

    with pytest.raises(ValueError, match=r"enters the loop with shape \(1,\), but has shape \(2,\) after one iteration"):
        function(lambda x: loop_until(x, grow, x[:1]))(X)
    with pytest.raises(TypeError, match=r"enters the loop with type tf.float64 but has type tf.int32 after 1 iteration"):
        function(lambda x: loop_until(x, lambda y: tf.cast(y, tf.int32), x))(X)
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        function(lambda x: loop_until(x, lambda y: (y, y), x))(X)
    small = X * 0.2
    f = _function(lambda x: loop_until(x, grow, x[:1], shape_invariants=(None, tf.TensorShape([None])))[1], autograph=False)
    assert f(small).shape == (16,)
    assert "shape_invariants" in caplog.text


def test_conditions_must_be_scalar_truth_values():
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected bool"):
        function(lambda x: tf.while_loop(lambda y: tf.cast(y[0], tf.int32), lambda y: (y,), (x,)))(X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a scalar"):
        function(lambda x: tf.while_loop(lambda y: y > 0.0, lambda y: (y,), (x,)))(X)


def test_random_numbers_in_a_loop_of_unknown_length_run_eagerly(caplog):
    f = _function(lambda x: tf.while_loop(lambda y: y[2] < 9.0, lambda y: (y * (2.0 + uniform()),), (x,))[0], autograph=False)
    assert float(f(X)[2]) > 9.0
    assert "random numbers in a loop of unknown length" in caplog.text


def test_a_count_that_python_needs_is_written_out():
    def f(x):
        return tf.while_loop(lambda n, y: n < 20, lambda n, y: (n + 1, y * [1.1, 0.9][int(n) % 2]), (0, x))[1]

    agree(lambda wrap: wrap(gradients(f)), X)


def test_known_conditions_run_plainly():
    f = function(lambda x: tf.reshape(x, [-1, int(tf.while_loop(lambda n: n < 3, lambda n: (n + 2,), (1,))[0])]))
    assert f(X).shape == (1, 3)
    assert function(lambda x: tf.cond(tf.constant(True), lambda: x, lambda: 1 / 0))(X).shape == (3,)


# Long loops


def recurrent(count, wrap, width=8):
    """A recurrent network over ``count`` steps, its training step and the inputs of that."""
    random = np.random.default_rng(0)
    shapes = (width, width), (3, width), (width, 1)
    u, v, w = variables = [tf.Variable(0.4 * random.standard_normal(shape), dtype=tf.float32) for shape in shapes]
    optimizer = tf.optimizers.Adam(0.01)

    def train(x, y):
        with tf.GradientTape() as tape:
            start = tf.zeros([x.shape[1], width])
            body = lambda t, h: (t + 1, tf.tanh(h @ u + tf.gather(x, t) @ v))
            _, h = tf.while_loop(lambda t, h: t < count, body, (0, start))
            loss = tf.reduce_mean((h @ w - y) ** 2.0)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    inputs = [tf.constant(random.standard_normal(shape), tf.float32) for shape in ((count, 4, 3), (4, 1))]
    return wrap(train), inputs


@pytest.mark.slow
def test_a_recurrent_network_learns_as_it_does_eagerly():
    curves = []
    for wrap in (lambda f: f, function):
        train, inputs = recurrent(500, wrap)
        curves.append([float(train(*inputs)) for _ in range(50)])
    np.testing.assert_allclose(curves[1], curves[0], 1e-4)
    assert curves[0][-1] < 0.5 * curves[0][0]


@pytest.mark.parametrize("name", ["while", "scan", "map_fn", "foldl"])
def test_a_body_runs_no_more_often_in_a_long_loop_than_in_a_short_one(name):
    """So the program is not longer either, and takes no longer to compile."""

    def runs(count):
        def h(value, row=0.0):
            calls.append(1)
            return tf.tanh(value) + row

        calls = []
        loops = {
            "while": lambda x: tf.while_loop(lambda n, y: n < count, lambda n, y: (n + 1, h(y)), (0, x))[1],
            "scan": lambda x: tf.scan(h, rows(x, count)),
            "map_fn": lambda x: tf.map_fn(h, rows(x, count)),
            "foldl": lambda x: tf.foldl(h, rows(x, count)),
        }
        function(gradients(loops[name]))(X)
        return len(calls)

    assert runs(50) == runs(500) <= 4


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("inside", [False, True], ids=["of something else", "of what the body reads"])
def test_a_tape_that_begins_after_the_loop(inside, name, caplog):
    factor = C if inside else tf.constant([0.5, 2.0, -1.0], tf.float64)

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = PROGRAMS[name](x)
        with tf.GradientTape(persistent=True) as other:
            other.watch(factor)
            z = tape.gradient(y, x) * factor
        return other.gradient(z, factor), other.gradient(z, x)

    agree(lambda wrap: _function(run, autograph=False) if wrap is function else run, X)
    assert ("for a tape that began after it" in caplog.text) == (inside and name != "while")


def test_gradients_flow_through_a_loop_that_changes_nothing():
    def array_of(x):
        return tf.TensorArray(tf.float32, 2).unstack(tf.stack([x, x]))

    @function
    def f(x, n):
        _, y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y), [0, x])
        _, array = tf.while_loop(lambda i, array: i < n, lambda i, array: (i + 1, array), [0, array_of(x)])
        chosen = tf.cond(n > 1, lambda: array_of(x), lambda: array_of(3.0 * x))
        return y + tf.reduce_sum(array.stack()) + tf.reduce_sum(chosen.stack())

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, tf.constant(4))
    assert (float(y), float(tape.gradient(y, x))) == (15.0, 5.0)


def in_a_loop(w, p, n):
    start = tf.constant(0), tf.constant(0.0)
    return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + tf.reduce_sum(w * w * w)), start)[1]


@pytest.mark.parametrize(
    "body",
    [
        lambda w, p, n: tf.cond(p, lambda: tf.reduce_sum(w * w), lambda: tf.reduce_sum(w)),
        lambda w, p, n: tf.cond(p, lambda: tf.reduce_sum(w * w), lambda: tf.reduce_sum(w)) + tf.reduce_sum(w),
        lambda w, p, n: tf.reduce_sum(tf.cond(p, lambda v=w * 3: v**3, lambda v=w * 3: v)),
        lambda w, p, n: tf.switch_case(n - 1, [lambda: tf.reduce_sum(w), lambda: tf.reduce_sum(tf.tanh(w) * w)]),
        in_a_loop,
    ],
    ids=["cond", "cond and more", "outside of cond", "switch", "loop"],
)
@pytest.mark.parametrize("outside", [False, True])
def test_a_watched_constant_is_differentiated_inside_branches_and_loops(body, outside):
    """The first op of a body reads nothing but a tensor whose numbers are known while the program is made."""
    constant = tf.constant([1.0, 2.0, 3.0])

    def slope(p, n):
        w = constant if outside else tf.identity(constant)
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = body(w, p, n)
        return tape.gradient(y, w)

    for p in (True, False):
        given = tf.constant(p), tf.constant(2)
        np.testing.assert_allclose(function(slope)(*given), slope(*given), rtol=1e-6)
