"""What the names in functions given to datasets mean: what they mean when they are given, as if the function were traced."""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import threading
import traceback
import types

import dataset_bindings
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.data.bindings import bound

pytestmark = pytest.mark.tiny
Dataset = tf.data.Dataset


def values(dataset):
    return [np.asarray(element).tolist() for element in dataset]


@pytest.mark.parametrize("name", dataset_bindings.PROGRAMS)
def test_as_tensorflow(name):
    function, answer = dataset_bindings.PROGRAMS[name]
    assert function(tf) == answer


def test_every_function_that_a_dataset_takes_is_bound_called_at_once_or_called_late():
    takes = {
        (name, parameter.name)
        for name, method in inspect.getmembers(Dataset, callable)
        if not name.startswith("_")
        for parameter in inspect.signature(method).parameters.values()
        if re.search(r"Callable|_func$", f"{parameter.annotation} {parameter.name}")
    }
    late, at_once = {("from_generator", "generator")}, {("apply", "transformation_func")}
    ignored = {("save", "shard_func"), ("load", "reader_func")}
    bound_now = {
        ("map", "map_func"), ("flat_map", "map_func"), ("interleave", "map_func"), ("filter", "predicate"),
        ("take_while", "predicate"), ("scan", "scan_func"), ("reduce", "reduce_func"), ("group_by_window", "key_func"),
        ("group_by_window", "reduce_func"), ("group_by_window", "window_size_func"),
        ("bucket_by_sequence_length", "element_length_func"),
    }  # fmt: skip
    assert takes == late | at_once | ignored | bound_now


# Whatever the place of the name

PLACES = {
    "global": "lambda x: x + G",
    "attribute of a global": "lambda x: x + A.value",
    "closure": "lambda x: x + C",
    "default": "lambda x, k=C: x + k",
    "lambda inside": "lambda x: (lambda: x + C + G)()",
    "comprehension": "lambda x: x + sum([G for _ in range(1)]) + max(C for _ in range(1))",
    "builtin that is shadowed later": "lambda x: x + abs(-1)",
    "class inside": "make_class",
    "function inside a function inside": "make_nested",
}
_SOURCE = """
def make(C):
    def make_class(x):
        class Inner:
            value = G
            def more(self): return C
        return x + Inner.value + Inner().more()
    def make_nested(x):
        def outer():
            def inner(y):
                own = y
                def store():
                    nonlocal own
                    own += G
                store()
                return own
            return inner(x) + C
        return outer()
    def rebind(value):
        nonlocal C
        C = value
    return {expression}, rebind
"""


@given(st.sampled_from(sorted(PLACES)), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4))
def test_names_mean_what_they_meant(place, bindings):
    """Bindings, one after another; for each a dataset. The answers are those of a function that is called at once."""
    scope = {"A": types.SimpleNamespace(value=3)}
    exec(_SOURCE.format(expression=PLACES[place]), scope)
    function, rebind = scope["make"](0)
    expected, datasets = [], []
    for g, c in bindings:
        scope["G"] = g
        rebind(c)
        expected.append([int(function(n)) for n in range(3)])
        datasets.append(Dataset.range(3).map(function, num_parallel_calls=2 if g % 2 else None))
    scope.update(G=100, A=None, abs=lambda n: 100, sum=None)
    rebind(100)
    assert [values(dataset) for dataset in datasets] == expected


# What stays visible, and what stays as it is


def test_what_happens_to_an_object_is_seen():
    offsets, weights = [1], {"k": 1}
    settings = types.SimpleNamespace(k=1)
    dataset = Dataset.range(1).map(lambda x: x + offsets[0] + weights["k"] + settings.k)
    offsets[0], weights["k"], settings.k = 10, 20, 30
    assert values(dataset) == [60]
    offsets, weights, settings = [0], {"k": 0}, types.SimpleNamespace(k=0)
    assert values(dataset) == [60]


def test_functions_that_are_called_read_their_own_names():
    k = 1

    def helper(x):
        return x + k

    dataset = Dataset.range(2).map(lambda x: helper(x))
    k = 5
    assert values(dataset) == [5, 6]


counted = 0


def test_functions_that_store_outside_are_left_as_they_are():
    count, k = 0, 1

    def closure(x):
        nonlocal count
        count += 1
        return x + count * k

    def inside(x):
        def store():
            nonlocal count
            count += 1

        store()
        return x + count * k

    def in_globals(x):
        global counted
        counted += 1
        return x + counted * k

    for function in (closure, inside, in_globals):
        assert bound(function) is function
    dataset = Dataset.range(2).map(closure).map(inside)
    k = 10
    assert values(dataset) == [30, 71]
    assert count == 4
    assert values(Dataset.range(2).map(in_globals)) == [10, 21]
    assert counted == 2


def test_names_by_their_text_are_looked_up_late():
    scope = {"k": 1}
    exec("by_eval = lambda x: x + eval('k')\nby_globals = lambda x: x + globals()['k']", scope)
    dataset = Dataset.range(1).map(scope["by_eval"]).map(scope["by_globals"])
    scope["k"] = 5
    assert values(dataset) == [10]


def test_names_that_mean_nothing_yet_are_looked_up_late():
    scope = {"k": 1}
    exec(
        "def f(x):\n  return x + k + later + (lambda: later)()\n"
        "def g(x):\n  class Inner:\n    value = soon + k\n  return x + Inner.value\n",
        scope,
    )
    first, second = Dataset.range(1).map(scope["f"]), Dataset.range(1).map(scope["g"])
    with pytest.raises(NameError, match="later"):
        values(first)
    scope.update(later=10, soon=100, k=2)
    assert values(first) == [21]
    assert values(second) == [102]
    scope["later"] = 20
    assert values(first) == [41]


def test_a_variable_around_a_function_without_a_value_yet():
    def shift(x):
        return x + k + later

    k = 1
    dataset = Dataset.range(1).map(shift)
    k, later = 5, 10
    assert values(dataset) == [11]


def test_a_class_that_is_not_finished():
    class Shifts:
        k = 3

        def by(self, x):
            return x + __class__.k

        bound = bound(by)

    assert values(Dataset.range(2).map(functools.partial(Shifts.bound, Shifts()))) == [3, 4]


# What a bound function is


def test_it_looks_like_the_function():
    def outer(k):
        def shift(x: int, /, by: float = 1.0, *, more: int = 2) -> int:
            """Adds."""
            return x + k + by + more

        shift.note = []
        return shift

    function = outer(1)
    found = bound(function)
    assert found is not function
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__defaults__", "__kwdefaults__"):
        assert getattr(found, name) == getattr(function, name), name
    assert inspect.signature(found) == inspect.signature(function)
    assert inspect.getsource(found) == inspect.getsource(function)
    assert inspect.getmodule(found) is inspect.getmodule(function)
    assert found.note is function.note
    found.calls = 1
    assert function.calls == 1
    assert found(1) == function(1)


def test_errors_show_the_line():
    def fails(x):
        return x + missing_name  # noqa: F821

    with pytest.raises(NameError) as error:
        values(Dataset.range(1).map(fails))
    frame = traceback.extract_tb(error.tb)[-1]
    assert (frame.name, frame.filename, frame.line) == ("fails", __file__, "return x + missing_name  # noqa: F821")
    assert linecache.getline(frame.filename, frame.lineno).strip() == frame.line


def test_what_functions_do_besides():
    def imports(x):
        import math

        from gradtape import nn

        assert nn is tf.nn
        return x + math.floor(2.5)

    def makes_a_class(x):
        class Inner:
            pass

        assert Inner.__module__ == __name__
        return x

    assert values(Dataset.range(1).map(imports).map(makes_a_class)) == [2]


def test_callables_that_are_no_functions():
    class Static:
        @staticmethod
        def __call__(x):
            return x + 1

    class Class:
        @classmethod
        def __call__(cls, x):
            return x + 2

    class Op:
        __call__ = np.negative

    made = [Static(), Class(), Op(), np.negative, abs, tf.abs, functools.partial(tf.add, 1), int]
    assert [values(Dataset.range(1, 2).map(function)) for function in made] == [[2], [3], [-1], [-1], [1], [1], [2], [1]]
    with pytest.raises(ValueError, match="must be a callable"):
        Dataset.range(1).map(types.SimpleNamespace())


def test_a_method_bound_to_a_callable_object():
    method = types.MethodType(functools.partial(lambda k, self, x: x + k + self, 1), 10)
    assert values(Dataset.range(2).map(method)) == [11, 12]


def test_decorators_in_a_row():
    k = 1

    def plus(n):
        def decorator(function):
            @functools.wraps(function)
            def wrapper(x):
                return function(x) + n

            return wrapper

        return decorator

    @plus(10)
    @plus(100)
    def shift(x):
        return x + k

    dataset = Dataset.range(1).map(shift)
    k = 5
    assert values(dataset) == [111]


def test_values_are_not_kept_but_those_that_are_read():
    import gc
    import weakref

    class Big:
        pass

    scope = {"big": Big(), "k": 1}
    exec("f = lambda x: x + k", scope)
    seen = weakref.ref(scope["big"])
    dataset = Dataset.range(1).map(scope["f"])
    del scope["big"]
    gc.collect()
    assert seen() is None
    assert values(dataset) == [0 + 1]


def test_threads_that_bind_at_the_same_time():
    found = []

    def pipeline(k):
        dataset = Dataset.range(2)
        for n in (k, 10 * k):
            dataset = dataset.map(lambda x: x + n, num_parallel_calls=2)  # noqa: B023
        found.append((k, values(dataset)))

    threads = [threading.Thread(target=pipeline, args=[k]) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(k, [11 * k, 11 * k + 1]) for k in range(8)]


def test_functions_of_this_library_are_left_as_they_are():
    from gradtape import keras

    for function in (tf.abs, tf.strings.length, tf.nn.relu, Dataset.range(1).map, keras.ops.relu):
        assert bound(function) == function
    k = 1

    @tf.custom_gradient
    def scale(x):
        return x * k, lambda g: g

    class Module(tf.Module):
        @tf.Module.with_name_scope
        def scale(self, x):
            return x * k

        @tf.autograph.experimental.do_not_convert
        def more(self, x):
            return x * k

    module, source = Module(), Dataset.range(1, 3)
    datasets = [source.map(f) for f in (scale, module.scale, module.more, keras.layers.Lambda(lambda x: x * 2))]
    k = 5
    assert [values(dataset) for dataset in datasets] == [[1, 2], [1, 2], [1, 2], [2, 4]]


# Compiled functions


def test_a_compiled_function_keeps_its_programs():
    pytest.importorskip("jax")
    k = 1

    @tf.function
    def shift(x):
        return x + k if x > 0 else x - k

    first = Dataset.range(-1, 2).map(shift)
    k = 5
    assert values(first) == [-2, -1, 2]
    assert values(first.map(lambda x: x).map(shift)) == [-3, -2, 3]  # traced before, with k = 1
    assert shift.experimental_get_tracing_count() == 1
    assert shift(1.0) == 6.0  # another signature: traced now
    assert shift.experimental_get_tracing_count() == 2


def test_a_compiled_method_keeps_its_programs():
    pytest.importorskip("jax")
    k = 1

    class Shift(tf.Module):
        def __init__(self):
            self.v = tf.Variable(100, dtype=tf.int64)

        @tf.function
        def by(self, x):
            return x + k + self.v

    module = Shift()
    dataset = Dataset.range(2).map(module.by)
    k = 5
    module.v.assign(200)
    assert values(dataset) == [201, 202]
    assert module.by.experimental_get_tracing_count() == 1


def test_a_pipeline_inside_a_compiled_function():
    pytest.importorskip("jax")
    k = 1

    @tf.function
    def total():
        nonlocal k
        found, dataset = tf.constant(0, tf.int64), Dataset.range(3).map(lambda x: x * k)
        k = 5
        for x in dataset:
            found += x
        return found

    assert int(total()) == 3
