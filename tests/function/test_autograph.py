"""Python's control flow over tensors: eager = compiled, with gradients, for each construct; and what it says otherwise."""

from __future__ import annotations

import functools
import logging
from typing import Any

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import function

pytest.importorskip("jax")
pytest.importorskip("malt")

HALF = 0.5


# Constructs: functions of a float tensor x and an int tensor n


def if_else(x, n):
    if x > 1.0:
        y = x * x
    else:
        y = -3.0 * x
    return y


def elif_chain(x, n):
    if x > 2.0:
        x = x * 2.0
    elif x > 0.0:
        x = x * 3.0
    elif n > 3:
        x = x * 4.0
    return x


def early_return(x, n):
    if x < 0.0:
        return -x
    y = x * 2.0
    if n > 2:
        return y + 1.0
    return y * y


def while_loop(x, n):
    while n > 0:
        x = x * 1.5
        n -= 1
    return x


def while_with_python_counter(x, n):
    i, total = 0, 0.0
    while i < n and total < 100.0:
        total += x * x
        i += 1
    return total + tf.cast(i, tf.float32)


def while_true_with_break(x, n):
    while True:
        x = x * 0.75
        if abs(x) < 0.25:
            break
    return x


def for_tensor_range(x, n):
    for i in tf.range(n):
        if i == 1:
            continue
        x = x + tf.cast(i, tf.float32) * x
    return x


def for_python_range(x, n):
    for i in range(1, n, 2):
        x = x * tf.cast(i, tf.float32) + 1.0
        if x > 50.0:
            break
    return x


def for_rows(x, n):
    total = tf.zeros([3])
    for row in tf.reshape(x + tf.range(60.0), [20, 3]):
        total = total + row * x
    return total


def for_few_rows(x, n):
    kept = []
    for row in tf.stack([x, x * x, x - 1.0]):
        kept.append(row * 2.0)
    return tf.stack(kept)


def for_rows_with_index(x, n):
    total = 0.0
    for i, row in enumerate(tf.ones([20]) * x):
        total += row * tf.cast(i, tf.float32)
    for a, b in zip(tf.ones([18]) * x, tf.range(18.0)):
        total += a * b
    return total


def return_inside_loop(x, n):
    for _ in tf.range(n):
        x = x * 1.25
        if x > 3.0:
            return x - 1.0
    return x


def python_loop_that_a_tensor_ends(x, n):
    for factor in [1.5, 2.0, 2.5]:
        if x > 2.0:
            break
        x = x * factor
    for _ in range(40):
        x = x * 0.9
        if x < 1.0:
            break
    return x


def loop_with_else(x, n):
    for _ in tf.range(n):
        if x > 100.0:
            break
        x = x * 2.0
    else:
        x = x + 1.0
    while n > 0:
        n -= 1
    else:
        x = x * 2.0
    return x


def nested_loops(x, n):
    for i in tf.range(n):
        j = i
        while j > 0:
            if x > 30.0:
                break
            x = x + 0.5 * tf.cast(j, tf.float32) * x
            j -= 1
        else:
            x = x + 0.125
    return x


def conditional_expression(x, n):
    return (x * 2.0 if x > 1.0 else -x) + (1.0 if n > 3 else 2.0)


def logic(x, n):
    if (x > 0.0 and n > 2) or not x < 5.0:
        x = x * 7.0
    if 0.0 < x < 10.0:
        x = x + 1.0
    return x


def truth_of_numbers(x, n):
    while n:
        n -= 1
        x = x * 2.0
    return x if x else x + 1.0


def python_functions(x, n):
    y = max(x, 1.0) + min(x * 2.0, x, 3.0) + float(n) + abs(x)
    if any([x > 3.0, n > 3]) and all([x > -50.0, n > 0]) and bool(n):
        y = y * float(int(x))
    return y


def first_value_inside(x, n):
    for i in tf.range(n + 1):
        last = x * tf.cast(i, tf.float32)
    return last


def structures(x, n):
    state = {"a": x, "b": (x, [x * 2.0])}
    while n > 0:
        state = {"a": state["b"][0], "b": (state["a"] * 0.5, [state["b"][1][0] + 1.0])}
        n -= 1
    if x > 0.0:
        state["a"] = state["a"] * 2.0
    return state["a"] + state["b"][0] + state["b"][1][0]


def array_of_tensors(x, n):
    written = tf.TensorArray(tf.float32, size=20)
    for i in tf.range(20):
        written = written.write(i, x * tf.cast(i, tf.float32))
    return tf.reduce_sum(written.stack() * tf.range(20.0))


def assertions(x, n):
    assert n < 100, f"{n} steps"
    while n > 0:
        assert x < 1e6
        x, n = x * 1.5, n - 1
    return x


def scaled(x, by=2.0):
    if x > 1.0:
        return x * by
    return x / by


def calls(x, n):
    half = functools.partial(scaled, by=HALF)
    curved = lambda t: t * t if t > 0.0 else t

    def shifted(t):
        if n > 2:
            return t + x
        return t - x

    return half(scaled(x)) + shifted(curved(x)) + Layer(x)(x) + Layer(3.0).twice(x) + Wide(2.0)(x)


class Layer:
    def __init__(self, weight: Any) -> None:
        self.__weight = weight
        self.seen = 0.0

    def __call__(self, x):
        if x > 0.0:
            self.seen = x
        else:
            self.seen = -x
        return self.__weight * self.seen

    def twice(self, x):
        for _ in tf.range(2):
            x = self(x)
        return x


class Wide(Layer):
    def __call__(self, x):
        if x > 1.0:
            return super().__call__(x) * 2.0
        return super().__call__(x)


def errors_handled(x, n):
    try:
        if n > 2:
            x = x * 2.0
        raise ValueError("expected")
    except ValueError as error:
        if str(error) == "expected" and x > 0.0:
            x = x + 1.0
    return x


def functions_of_functions(x, n):
    rows = tf.map_fn(scaled, tf.ones([20]) * x)
    return tf.reduce_sum(rows) + tf.cond(n > 2, lambda: scaled(x), lambda: x)


CONSTRUCTS = [
    if_else, elif_chain, early_return, while_loop, while_with_python_counter, while_true_with_break, for_tensor_range,
    for_python_range, for_rows, for_few_rows, for_rows_with_index, return_inside_loop, python_loop_that_a_tensor_ends,
    loop_with_else, nested_loops, conditional_expression, logic, truth_of_numbers, python_functions, first_value_inside,
    structures, array_of_tensors, assertions, calls, errors_handled, functions_of_functions,
]  # fmt: skip
INPUTS = [(1.75, 4), (0.5, 1), (-2.25, 3)]


def outcome(f: Any, x: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient; where no path leads to x this time, the gradient is zero: a program has all paths."""
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        y = f(tensor, tf.constant(n))
    return y.numpy(), tape.gradient(y, tensor, unconnected_gradients="zero").numpy()


@pytest.mark.parametrize("f", CONSTRUCTS, ids=lambda f: f.__name__)
def test_eager_is_compiled(f):
    traces = []

    def flagged(x, n):
        traces.append(1)
        return f(x, n)

    def with_tape_inside(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, n)
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    compiled, inside = function(flagged, jit_compile=True), function(with_tape_inside, jit_compile=True)
    for x, n in INPUTS:
        expected = outcome(f, x, n)
        found = outcome(compiled, x, n), [t.numpy() for t in inside(tf.constant(x), tf.constant(n))]
        for value, gradient in found:
            np.testing.assert_allclose(value, expected[0], rtol=2e-5)
            np.testing.assert_allclose(gradient, expected[1], rtol=2e-5, atol=1e-6)
            assert value.dtype == expected[0].dtype
    assert compiled.experimental_get_tracing_count() == len(traces) == 1


def test_state_changes_only_where_the_program_goes():
    counter, total = tf.Variable(0), tf.Variable(0.0)

    @function(jit_compile=True)
    def f(x, n):
        for i in tf.range(n):
            if i % 2 == 0:
                counter.assign_add(1)
                continue
            total.assign_add(x)
            if total > 3.0:
                break
        return total.value()

    values = [float(f(tf.constant(1.5), tf.constant(n))) for n in (3, 8, 8)]
    assert (values, int(counter)) == ([1.5, 4.5, 6.0], 5)


def test_known_values_are_plain_python():
    seen = []

    @function(jit_compile=True)
    def f(x, flag, count):
        for i in range(count):
            seen.append(i)
            if flag:
                x = x + i
            elif not flag and i:
                return x
        return x if count > 1 else -x

    assert [float(f(tf.constant(1.0), *args)) for args in ((True, 3), (False, 3), (True, 1))] == [4.0, 1.0, -1.0]
    assert seen == [0, 1, 2, 0, 1, 0]


# Datasets


def epochs(decorate, dataset, count: int = 2) -> tuple[list, int]:
    weight, traces = tf.Variable(1.0), []

    def epoch():
        traces.append(1)
        steps, total = 0, 0.0
        for x, y in dataset:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((weight * x - y) ** 2.0)
            weight.assign_sub(1e-3 * tape.gradient(loss, weight))
            steps, total = steps + 1, total + loss
            if steps > 25 or loss > 1e6:
                break
        return total, steps

    run = decorate(epoch)
    return [[*map(float, run()), float(weight)] for _ in range(count)], len(traces)


def pairs(count: int):
    x = np.arange(count, dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices((x * 0.25, x * 0.5))


DATASETS = {
    "long": lambda: pairs(40).batch(2, drop_remainder=True),
    "short": lambda: pairs(6).batch(2),
    "with a shorter last batch": lambda: pairs(41).batch(2),
    "shuffled": lambda: pairs(20).shuffle(20, seed=1),
    "empty": lambda: pairs(3).skip(3),
}


@pytest.mark.parametrize("name", DATASETS)
def test_datasets(name):
    compiled, traces = epochs(lambda f: function(f, jit_compile=True), DATASETS[name]())
    expected, _ = epochs(lambda f: f, DATASETS[name]())
    assert traces == 1
    np.testing.assert_allclose(compiled, expected, rtol=1e-4)


def test_datasets_without_end_run_eagerly(caplog):
    compiled, _ = epochs(function, pairs(40).repeat())
    np.testing.assert_allclose(compiled, epochs(lambda f: f, pairs(40).repeat())[0], rtol=1e-5)
    assert "because a dataset whose length is not known" in caplog.text


# What cannot be staged


def messages_of(f: Any, *args: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        function(f)(*args)
    return str(caught.value)


X, N = tf.constant(3.0), tf.constant(4)


def test_undefined_variables_name_the_branch():
    def one(x):
        if x > 0.0:
            y = x
        return y

    def other(x):
        if x > 0.0:
            x = -x
        else:
            y = x
        return y

    def missing_return(x):
        if x > 0.0:
            return x

    def none(x):
        y = None
        if x > 0.0:
            y = x
        return y

    assert messages_of(one, X).startswith("'y' must also be initialized in the else branch")
    assert messages_of(other, X).startswith("'y' must also be initialized in the main branch")
    assert messages_of(missing_return, X).startswith("the else branch must also have a return statement.")
    assert messages_of(none, X).startswith("'y' is None at the end of the else branch.")


def test_branches_agree():
    def dtypes(x):
        if x > 0.0:
            y = 1
        else:
            y = 1.0
        return y

    def nests(x):
        if x > 0.0:
            y = [x]
        else:
            y = [x, x]
        return y

    text = "'y' has dtype int32 in the main branch, but dtype float32 in the else branch"
    assert messages_of(dtypes, X).startswith(text)
    assert messages_of(nests, X).startswith("'y' must have the same nested structure in the main and else branches:")


def test_loop_variables_keep_their_kind():
    def shape(n):
        s = tf.zeros([1])
        while n > 0:
            n, s = n - 1, tf.concat([s, s], 0)
        return s

    def dtype(n):
        s = n
        while n > 0:
            n, s = n - 1, tf.cast(n, tf.float32)
        return s

    def nests(n):
        s = [n]
        while n > 0:
            n, s = n - 1, [n, n]
        return s

    def none(n):
        s = n
        while n > 0:
            n, s = n - 1, None
        return s

    text = "'s' has shape (1,) before the loop, but shape (2,) after one iteration. Use "
    assert messages_of(shape, N).startswith(text + "tf.autograph.experimental.set_loop_options to set shape invariants.")
    assert messages_of(dtype, N).startswith("'s' has dtype int32 before the loop, but dtype float32 after one iteration")
    assert messages_of(nests, N).startswith("'s' does not have the same nested structure after one iteration.")
    assert messages_of(none, N).startswith("'s' is None at the end of the iteration.")


def test_conditions_are_scalars():
    def branch(x):
        return x if tf.stack([x, x]) > 0.0 else -x

    def loop(x):
        while tf.stack([x, x]) > 0.0:
            x = x - 1.0
        return x

    text = "expected to be `tf.bool` scalar, got <tf.Tensor: shape=(2,), dtype=bool, traced>"
    assert messages_of(branch, X).startswith("condition of if statement " + text)
    assert messages_of(loop, X).startswith("condition of while loop " + text)


def appended(n):
    kept = []
    for i in tf.range(n):
        kept.append(i)
    return len(kept) + tf.stack(kept)


def objects(n):
    kept = "few"
    while n > 2:
        kept, n = "many", n - 1
    return n + len(kept)


def written(n):
    kept = {"a": 0, "b": 0}
    if n > 3:
        name = "a"
        kept[name] = 1
    else:
        name = "b"
        kept[name] += 2
    return n + kept["a"] * 10 + kept["b"] * 100


def growing(n):
    s = tf.constant([1])
    for _ in tf.range(n):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(s, tf.TensorShape([None]))])
        s = tf.concat([s, s], 0)
    return tf.size(s) + n


def raising(n):
    if n < 0:
        raise ValueError("negative")
    return n + 1


def perhaps_nothing(n):
    last = None
    while n > 0:
        if last is not None:
            n = n - last
        last = tf.constant(1)
        n = n - 1
    return n


@pytest.mark.parametrize("f", [appended, objects, written, growing, raising, perhaps_nothing], ids=lambda f: f.__name__)
def test_what_python_alone_can_do_runs_eagerly(f, caplog):
    g = function(f)
    for n in (4, 3):
        np.testing.assert_array_equal(g(tf.constant(n)).numpy(), f(tf.constant(n)).numpy())
    assert caplog.text.count("runs eagerly for this signature") == 1
    assert f"{__file__}:" in caplog.text


def test_an_error_in_a_branch_is_raised_where_python_raises_it():
    with pytest.raises(ValueError, match="negative"):
        function(raising)(tf.constant(-1))


def test_lists_grow_in_loops_of_known_length():
    @function(jit_compile=True)
    def f(x):
        kept = []
        for i in tf.range(40):
            kept.append(x * tf.cast(i, tf.float32))
        return tf.stack(kept), len(kept)

    values, count = f(X)
    np.testing.assert_allclose(values.numpy(), 3.0 * np.arange(40))
    assert int(count) == 40


def test_a_step_that_is_written_out_happens_once():
    steps = []

    @function(jit_compile=True)
    def f(x):
        total = 0.0
        for row in tf.ones([40, 2]) * x:
            steps.append(1)
            total = total + row
        return total, len(steps)

    total, count = f(X)
    assert (total.numpy().tolist(), int(count)) == ([120.0, 120.0], 40)


def test_lists_inside_a_step_are_its_own():
    @function(jit_compile=True)
    def f(x):
        for _ in tf.range(30):
            parts = []
            for j in range(2):
                parts.append(x * float(j + 1))
            x = tf.add_n(parts) * 0.25
        return x

    np.testing.assert_allclose(float(f(X)), 3.0 * 0.75**30, rtol=1e-5)


def test_a_violated_assertion_is_pythons_and_changes_nothing():
    v = tf.Variable(1.0)

    @function(jit_compile=True)
    def f(x):
        v.assign_add(1.0)
        for _ in tf.range(5):
            assert x < 100.0, f"too large: {x}"
            x = x * x
        return x

    with pytest.raises(AssertionError, match=r"too large: 6561\.0"):
        f(tf.constant(3.0))
    assert float(v) == 1.0
    assert float(f(tf.constant(1.0))) == 1.0
    assert (float(v), f.experimental_get_tracing_count()) == (2.0, 1)


# Options


def test_autograph_false_leaves_code_alone(caplog):
    f = function(if_else, autograph=False)
    assert float(f(X, N)) == 9.0
    assert "because __bool__" in caplog.text
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        function(if_else, autograph=False, jit_compile=True)(X, N)


def test_do_not_convert(caplog):
    marked = tf.autograph.experimental.do_not_convert(lambda x: x if x > 0.0 else -x)
    assert float(function(lambda x: marked(x) * 2.0)(X)) == 6.0
    assert "because __bool__" in caplog.text


def test_maximum_iterations():
    options = tf.autograph.experimental.set_loop_options

    @function(jit_compile=True)
    def f(n):
        a, b, c = 0, 0, 0
        for _ in tf.range(n):
            options(maximum_iterations=3)
            a += 1
        for _ in tf.range(10):
            options(maximum_iterations=4)
            b += 1
        while c < n:
            options(maximum_iterations=5)
            c += 1
        return a, b, c

    assert [int(t) for t in f(tf.constant(20))] == [3, 4, 5]
    assert [int(t) for t in f(tf.constant(2))] == [2, 4, 2]


def test_print_runs_while_tracing(capsys):
    f = function(lambda x: print("traced with", x) or x + 1.0)
    f(X), f(X)
    assert capsys.readouterr().out.count("traced with") == 1


def test_to_code_and_to_graph():
    assert "ag__.if_stmt(" in tf.autograph.to_code(if_else)
    assert "ag__.if_stmt(" in tf.autograph.to_code(function(if_else))
    assert float(tf.autograph.to_graph(if_else)(X, N)) == 9.0
    with pytest.raises(TypeError, match="to_code expects a function"):
        tf.autograph.to_code(3)


def test_verbosity_tells_what_is_converted(caplog, capsys):
    def told(x):
        return x if x > 0.0 else -x

    tf.autograph.set_verbosity(2, alsologtostdout=True)
    try:
        with caplog.at_level(logging.INFO, "gradtape"):
            function(told)(X)
    finally:
        tf.autograph.set_verbosity(0)
    assert "ag__.if_exp(" in caplog.text
    assert "ag__.if_exp(" in capsys.readouterr().out


# Methods and nesting


class Model:
    def __init__(self) -> None:
        self.weight = tf.Variable(2.0)

    @function(jit_compile=True)
    def __call__(self, x):
        return self._layer(x) if x > 0.0 else x

    def _layer(self, x):
        for _ in tf.range(3):
            x = x * self.weight
        return x


def test_methods():
    model = Model()
    with tf.GradientTape() as tape:
        y = model(X)
    assert (float(y), float(tape.gradient(y, model.weight))) == (24.0, 36.0)
    assert float(model(-X)) == -3.0


def test_functions_inside_functions():
    inner = function(lambda x: x * 2.0 if x > 1.0 else x)
    outer = function(lambda x: inner(x) + inner(-x), jit_compile=True)
    assert float(outer(X)) == 3.0


def test_second_derivatives_through_converted_code():
    f = function(lambda x, n: nested_loops(x, n), jit_compile=True)
    found = []
    for g in (f, nested_loops):
        x = tf.constant(1.25)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = g(x * x, tf.constant(3))
            slope = inner.gradient(y, x)
        found.append((float(slope), float(outer.gradient(slope, x))))
    np.testing.assert_allclose(*found, rtol=1e-5)
