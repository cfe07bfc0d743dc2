"""The decorator: what may be decorated, what may be passed and returned, and when a call traces."""

from __future__ import annotations

import functools
import gc
import inspect
import logging
import weakref

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import Function, function
from gradtape.values.spec import TensorSpec

pytest.importorskip("jax")


def test_bare_and_with_arguments():
    assert float(function(lambda x: x + 1.0)(tf.constant(1.0))) == 2.0
    assert float(function(jit_compile=True, autograph=False, reduce_retracing=True)(lambda x: x + 1.0)(tf.constant(1.0))) == 2.0
    with pytest.raises(TypeError, match="not a callable"):
        function(3)


def test_the_module_is_the_decorator():
    import gradtape.function as module

    @module
    def double(x):
        return x + x

    assert isinstance(double, Function)
    assert float(double(2.0)) == 4.0


def test_docstring_name_and_signature_are_kept():
    @function
    def scaled(x, factor: float = 2.0):
        """Scale."""
        return x * factor

    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale.")
    assert str(inspect.signature(scaled)) == "(x, factor: 'float' = 2.0)"
    assert scaled.python_function(3.0) == 6.0


def test_a_second_call_runs_no_python():
    traces = []

    @function
    def f(x):
        traces.append(x.shape)
        return x * 2.0

    for _ in range(3):
        assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert traces == [(2,)]
    f(tf.constant([1.0]))
    f(tf.constant([1.0], tf.float64))
    assert len(traces) == f.experimental_get_tracing_count() == 3


def test_python_values_are_part_of_the_signature():
    traces = []

    @function
    def power(x, n):
        traces.append(n)
        return x**n

    x = tf.constant(3.0)
    assert [float(power(x, n)) for n in (2, 3, 2, 2.0, True)] == [9, 27, 9, 9, 3]
    assert traces == [2, 3, 2.0, True]
    assert float(power(x, n=3)) == 27
    assert len(traces) == 4


def test_a_nan_is_a_value_like_any_other():
    f = function(lambda x, n: x + n)
    for _ in range(3):
        assert np.isnan(float(f(tf.constant(1.0), float("nan"))))
    assert f.experimental_get_tracing_count() == 1


def test_numpy_arrays_count_as_tensors():
    traces = []

    @function
    def f(x):
        traces.append(type(x))
        return x + 1

    for value in (np.zeros(2, np.float32), np.ones(2, np.float32), tf.constant([5.0, 6.0])):
        assert isinstance(f(value), tf.Tensor)
    assert len(traces) == 1


def test_nests_of_arguments_and_results():
    @function
    def f(pair, options):
        x, y = pair
        return {"sum": x + y, "parts": [x, (y, None, 3)]}

    result = f((tf.constant(1.0), tf.constant(2.0)), {"unused": tf.constant(0.0)})
    assert float(result["sum"]) == 3.0
    assert result["parts"][1][1] is None
    assert [type(part) for part in result["parts"]] == [tf.Tensor, tuple]
    assert int(result["parts"][1][2]) == 3
    assert isinstance(result["parts"][1][2], tf.Tensor)


def test_what_may_not_be_returned():
    with pytest.raises(TypeError, match=r"To be compatible with tf.function, Python functions must return"):
        function(lambda x: object())(tf.constant(1.0))


def test_results_are_numpy_tensors_that_do_not_change():
    f = function(lambda x: x + 1.0)
    first = f(tf.constant([1.0]))
    assert type(first) is tf.Tensor
    second = f(first)
    assert (first.numpy().tolist(), second.numpy().tolist()) == ([2.0], [3.0])


@pytest.mark.parametrize("dtype", "float16 bfloat16 float32 float64 complex64 complex128 int8 int32 int64 uint8 bool".split())
def test_dtypes_stay(dtype):
    x = tf.cast(tf.constant([0, 1, 2]), dtype)
    result = function(lambda x: (x, tf.reverse(x, [0]), tf.where(tf.cast(x, "bool"), x, x)))(x)
    for part, expected in zip(result, (x, tf.reverse(x, [0]), x)):
        assert part.dtype is x.dtype
        np.testing.assert_array_equal(part.numpy(), expected.numpy())


def test_the_users_jax_settings_are_untouched():
    import jax.numpy as jnp

    assert function(lambda x: x * 2.0)(tf.constant(1.0, tf.float64)).dtype is tf.float64
    assert jnp.asarray(1.0).dtype == np.float32


class Counter:
    def __init__(self, start):
        self.total = tf.Variable(start)
        self.traces = []

    @function
    def add(self, x, times=1):
        """Add."""
        self.traces.append(times)
        return self.total.assign_add(x * times)


def test_methods_have_their_own_programs_per_instance():
    one, two = Counter(0.0), Counter(10.0)
    for _ in range(2):
        one.add(tf.constant(1.0))
        two.add(tf.constant(1.0), times=2.0)
    assert (float(one.total), float(two.total)) == (2.0, 14.0)
    assert (one.traces, two.traces) == ([1], [2.0])
    assert one.add.__doc__ == "Add."
    assert list(inspect.signature(one.add).parameters) == ["x", "times"]
    assert float(Counter(1.0).add(tf.constant(1.0))) == 2.0  # nothing but the method holds the instance


def test_a_concrete_function_keeps_its_instance_alive():
    concrete = Counter(5.0).add.get_concrete_function(TensorSpec([], tf.float32))
    gc.collect()
    assert float(concrete(tf.constant(1.0))) == 6.0
    assert "first call" in str(Counter(1.0).add.explain(tf.constant(1.0)))


def test_programs_die_with_the_instance():
    counter = Counter(0.0)
    counter.add(tf.constant(1.0))
    reference = weakref.ref(counter)
    del counter
    gc.collect()
    assert reference() is None


def test_partial_and_callable_objects():
    assert float(function(functools.partial(lambda a, x: a * x, 3.0))(tf.constant(2.0))) == 6.0

    class Doubler:
        def __call__(self, x):
            return x + x

    assert float(function(Doubler())(tf.constant(2.0))) == 4.0


def test_variables_count_by_identity():
    traces = []

    @function
    def f(v):
        traces.append(v.name)
        return v * 2.0

    one, two = tf.Variable(1.0), tf.Variable(5.0)
    assert [float(f(v)) for v in (one, two, one)] == [2.0, 10.0, 2.0]
    assert len(traces) == 2
    one.assign(4.0)
    assert float(f(one)) == 8.0


def test_functions_inside_functions_are_part_of_the_outer_program():
    inner = function(lambda x: x * 2.0)
    outer = function(lambda x: inner(x) + inner(x + 1.0))
    assert float(outer(tf.constant(1.0))) == 6.0
    assert outer.experimental_get_tracing_count() == 1
    assert inner.experimental_get_tracing_count() == 0


def test_input_signature():
    traces = []

    @function(input_signature=[TensorSpec([None], tf.float32)])
    def f(x):
        traces.append(x.shape)
        return x * 2.0

    assert f([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
    assert f(np.array([1.0])).numpy().tolist() == [2.0]
    for wrong in (tf.constant([[1.0]]), tf.constant([1])):
        with pytest.raises(TypeError, match="can not cast"):
            f(wrong)
    with pytest.raises(TypeError, match="input_signature"):
        f([1.0], [2.0])


def test_concrete_function():
    f = function(lambda x, n: x**n)
    concrete = f.get_concrete_function(TensorSpec([2], tf.float32), 3)
    assert f.experimental_get_tracing_count() == 1
    assert concrete(tf.constant([1.0, 2.0])).numpy().tolist() == [1.0, 8.0]
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        concrete(tf.constant([1.0, 2.0, 3.0]))


def test_retraces_are_explained_once_per_cause(caplog):
    f = function(lambda x, scale: x * scale)
    with caplog.at_level(logging.WARNING, "gradtape"):
        for n in range(12):
            f(tf.ones([n + 1]), 1.0)
        for n in range(12):
            f(tf.ones([1]), float(n))
    texts = [r.getMessage() for r in caplog.records]
    assert len(texts) == 2
    assert "argument 'x' changed from a float32 tensor of shape (5,) to a float32 tensor of shape (6,)" in texts[0]
    assert "argument 'scale' changed from float" in texts[1]


def test_run_functions_eagerly():
    calls = []

    @function
    def f(x):
        calls.append(tf.config.functions_run_eagerly())
        return x.numpy() + 1.0

    tf.config.run_functions_eagerly(True)
    try:
        assert [float(f(tf.constant(1.0))) for _ in range(2)] == [2.0, 2.0]
        assert isinstance(f(tf.constant(1.0)), tf.Tensor)
    finally:
        tf.config.run_functions_eagerly(False)
    assert calls == [True] * 3


def test_without_jax_it_runs_eagerly(monkeypatch):
    monkeypatch.setattr("gradtape.function.decorator.can_compile", lambda: False)
    calls = []
    v = tf.Variable(1.0)

    @function
    def f(x):
        calls.append(type(x))
        return v.assign_add(x)

    assert [float(f(tf.constant(1.0))) for _ in range(2)] == [2.0, 3.0]
    assert calls == [tf.Tensor] * 2


def test_traced_values_print_and_say_what_they_are(capsys):
    v = tf.Variable(1.0, name="v")

    @function
    def f(x):
        print(x, v, tf.executing_eagerly() if hasattr(tf, "executing_eagerly") else "")
        return x + v

    assert float(f(tf.constant(1.0))) == 2.0
    out = capsys.readouterr().out
    assert "shape=(), dtype=float32, traced" in out
    assert "<tf.Variable 'v:0' shape=() dtype=float32>" in out


# Axes of length 1 in large results


WIDE = [(1, 200, 1, 100), (200, 100, 1), (20_000, 1), (1, 1, 20_000), (100, 1, 1, 200), (200, 100)]


@pytest.mark.parametrize("shape", WIDE, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_large_results_keep_axes_of_length_1(shape, dtype):
    x = tf.constant(np.arange(20_000).reshape(200, 100), dtype)
    one = tf.function(lambda x: tf.reshape(tf.transpose(x), shape))
    several = tf.function(lambda x: {"a": one(x), "b": [tf.reshape(x, shape), x[0, 0]], "c": None})
    expected = np.transpose(x).reshape(shape)
    for _ in range(2):
        found = several(x)
        np.testing.assert_array_equal(one(x), expected, strict=True)
        np.testing.assert_array_equal(found["a"], expected, strict=True)
        np.testing.assert_array_equal(found["b"][0], x.numpy().reshape(shape), strict=True)
        assert found["b"][1].shape == ()


@pytest.mark.parametrize("shape", WIDE, ids=str)
def test_gradients_through_large_results_with_axes_of_length_1(shape):
    x = tf.Variable(np.arange(20_000.0).reshape(200, 100))
    square = tf.function(lambda: tf.reshape(x * x, shape))
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = square()
        assert y.shape == shape
        np.testing.assert_array_equal(tape.gradient(y, x, np.full(shape, 3.0)), 6 * x.numpy())
