"""Printing, assertions, and the search for the first nan."""

from __future__ import annotations

import io
import logging

import numpy as np
import pytest

import gradtape as tf
from gradtape import debugging
from gradtape.core.op import OPS
from gradtape.ops.printing import print as tf_print

pytestmark = pytest.mark.tiny

# Printing: the texts are TensorFlow's

V, X = tf.constant([3.0, 1.0, 2.0]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
PRINTED = [
    ((V,), {}, "[3 1 2]\n"),
    (("a", 3, V, 1.5, None), {}, "a 3 [3 1 2] 1.5 None\n"),
    ((tf.constant("abc"), tf.constant(["a", "b"])), {}, 'abc ["a" "b"]\n'),
    ((tf.range(6), tf.range(7)), {}, "[0 1 2 3 4 5] [0 1 2 ... 4 5 6]\n"),
    ((tf.range(10),), {"summarize": 2}, "[0 1 ... 8 9]\n"),
    ((tf.range(10),), {"summarize": -1}, "[0 1 2 3 4 5 6 7 8 9]\n"),
    ((tf.reshape(tf.range(100), [10, 10]),), {"summarize": 1}, "[[0 ... 9]\n ...\n [90 ... 99]]\n"),
    (
        (tf.reshape(tf.range(512), [8, 8, 8]),),
        {"summarize": 1},
        "[[[0 ... 7]\n  ...\n  [56 ... 63]]\n\n ...\n\n [[448 ... 455]\n  ...\n  [504 ... 511]]]\n",
    ),
    ((X, V), {"sep": ","}, "[[1 2]\n [3 4]],[3 1 2]\n"),
    (("a", "b"), {"sep": "-", "end": ""}, "a-b"),
    (([V, 1, "a"],), {}, "[[3 1 2], 1, 'a']\n"),
    (({"b": {"c": V}, "a": 1},), {}, "{'a': 1, 'b': {'c': [3 1 2]}}\n"),
    ((tf.constant(True), tf.constant([True, False])), {}, "1 [1 0]\n"),
    ((tf.constant(0.1), tf.constant(1 / 3), tf.constant(1 / 3, tf.float64)), {}, "0.1 0.333333343 0.33333333333333331\n"),
    (
        (tf.constant([1e-8, 1e8, 1e20, 123456.789, 1234567.89]),),
        {"summarize": -1},
        "[1e-08 1e+08 1e+20 123456.789 1234567.88]\n",
    ),
    ((tf.constant([1e8, 1e16, 1234567.89], tf.float64),), {}, "[100000000 1e+16 1234567.89]\n"),
    ((tf.constant([np.nan, np.inf, -np.inf, -0.0]),), {}, "[nan inf -inf -0]\n"),
    ((tf.constant([0.1], tf.float16), tf.constant([0.1], tf.bfloat16)), {}, "[0.0999755859] [0.100097656]\n"),
    ((np.array([1, 2]),), {}, "array([1, 2])\n"),
    ((tf.Variable([1.0, 2.0]), [tf.Variable(1.0)]), {}, "[1 2] [1]\n"),
    ((tf.zeros([0]),), {}, "[]\n"),
    (("{}", V, "%s"), {}, "{} [3 1 2] %s\n"),
    ((tf.constant([['a"b', "it's", "new\nline"]]), tf.constant("a\nb")), {}, '[["a\\"b" "it\\\'s" "new\\nline"]] "a\\nb"\n'),
    ((), {}, "\n"),
]


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_prints_as_tensorflow_does(number):
    values, options, expected = PRINTED[number]
    stream = io.StringIO()
    tf_print(*values, output_stream=stream, **options)
    assert stream.getvalue() == expected


def test_where_it_prints(capsys, tmp_path, caplog):
    tf_print(V)
    assert capsys.readouterr().err == "[3 1 2]\n"
    path = tmp_path / "log.txt"
    tf_print(1, output_stream=f"file://{path}")
    tf_print(2, output_stream=f"file://{path}")
    assert path.read_text() == "1\n2\n"
    with caplog.at_level(logging.INFO):
        tf_print("logged", output_stream=logging.info)
    assert caplog.messages == ["logged"]


def test_what_print_refuses():
    with pytest.raises(ValueError, match="Unrecognized keyword arguments"):
        tf_print(V, color="red")
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf_print(V, output_stream=3)
    with pytest.raises(TypeError, match="summarize"):
        tf_print(V, summarize="a")


# Assertions


def test_an_assertion_shows_where_values_differ():
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        debugging.assert_equal(X, [[1.0, 2.0], [3.0, 5.0]], message="weights")
    assert str(caught.value).splitlines()[:8] == [
        "weights", "Condition x == y did not hold.", "Indices of first 1 different values:", "[[1 1]]",
        "Corresponding x values:", "[4.]", "Corresponding y values:", "[5.]",
    ]  # fmt: skip


def test_assertions_are_not_recorded_and_cut_no_path():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = debugging.check_numerics(x * x, "y")
        debugging.assert_positive(y)
        debugging.assert_near(y, x * x)
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0])


def test_shapes_with_symbols():
    debugging.assert_shapes([(tf.ones([2, 3]), ("n", "m")), (tf.ones([3, 2]), "mn"), (tf.ones([4, 2]), ("...", "n"))])
    with pytest.raises(ValueError, match=r"must have rank at least 2"):
        debugging.assert_shapes([(tf.ones([2]), ("*", 1, 2))])
    with pytest.raises(ValueError, match=r"Specified by tensor shape=\(2, 3\) dtype=float32 dimension 0"):
        debugging.assert_shapes([(tf.ones([2, 3]), ("n", "m")), (tf.ones([3]), ("n",))])


# The first nan


@pytest.fixture
def checked():
    debugging.enable_check_numerics()
    yield
    debugging.disable_check_numerics()


def test_the_first_op_that_makes_a_nan_is_named(checked):
    x = tf.Variable([1.0, -1.0])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.reduce_sum(tf.math.log(x) * 0.0)
    text = str(caught.value)
    assert 'output 0 of eagerly-executing op "Log"' in text
    assert "# of NaN elements: 1" in text
    assert f"At: {__file__}:" in text


@pytest.mark.parametrize(
    ("function", "label"),
    [(lambda x: x / 0.0, "RealDiv"), (lambda x: tf.reduce_sum(x * 3e38), "Mul"), (tf.reduce_logsumexp, None)],
    ids=["divide", "multiply", "none"],
)
def test_every_kind_of_op_is_looked_at(checked, function, label):
    if label is None:
        assert float(function(tf.constant([1.0, 2.0]))) > 2
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match=label):
        function(tf.constant([1.0, 2.0]))


def test_gradients_are_looked_at(checked):
    x = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.sqrt(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r'gradient 0 of eagerly-executing op "Sqrt"'):
        tape.gradient(y, x)


def test_switching_it_off_leaves_every_op_as_it_was():
    def state():
        cells = {n: [c.cell_contents for c in call.__closure__] for n, call in OPS.items()}
        rules = {n: (c.op.kernel, c.op.rules, c.op.rule_x, c.op.rule_y) for n, c in OPS.items()}
        return cells, rules

    before = state()
    debugging.enable_check_numerics()
    debugging.enable_check_numerics()  # twice is once
    assert state() != before
    debugging.disable_check_numerics()
    assert state() == before
    assert np.isnan(tf.math.log(tf.constant(-1.0)))
