"""What a function says: what a call would do, slow compilations, folders of compiled programs, leaked tensors."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import cache, function

jax = pytest.importorskip("jax")
X = tf.ones([8, 4])


@pytest.fixture
def step():
    w = tf.Variable(np.ones((4, 4), np.float32), name="w")
    scale = tf.Variable(2.0, name="scale", trainable=False)

    @function
    def step(x, options, power=2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w + tf.random.normal([4])) ** power) * scale
        w.assign_sub(tape.gradient(loss, w))
        return loss

    step.state = w, scale
    return step


def test_the_first_call_traces(step):
    report = step.explain(X, {"a": 1})
    assert report.traces
    assert str(report) == "step traces a new program: it is the first call."
    assert step.experimental_get_tracing_count() == 0


def test_a_hit_shows_state_and_cost(step):
    step(X, {"a": 1})
    report = step.explain(X, {"a": 1})
    assert not report.traces
    w, scale = step.state
    assert [v is w or v is scale for v in report.variables] == [True, True]
    assert report.assigned[0] is w is report.donated[0]
    assert report.draws == 1
    assert report.cost["forward"]["flops"] > 100
    text = str(report)
    assert "w:0 float32 (4, 4) (assigned, donated)" in text
    assert "scale:0 float32 ()" in text
    assert "Random:   1 array drawn per call" in text
    assert " operations, " in text
    assert step.experimental_get_tracing_count() == 1
    assert repr(report) == text


WAS = "argument 'x' changed from a float32 tensor of shape (8, 4) to"
CHANGES = {
    f"{WAS} a float32 tensor of shape (2, 4)": lambda: (X[:2], {"a": 1}),
    f"{WAS} a float64 tensor of shape (8, 4)": lambda: (tf.cast(X, tf.float64), {"a": 1}),
    "argument 'options'['a'] changed from int 1 to int 2": lambda: (X, {"a": 2}),
    "the structure of the arguments changed": lambda: (X, {"b": 1}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_miss_names_what_differs_from_the_nearest_program(step, change):
    step(X, {"a": 1})
    step(X, {"a": 5, "c": 7})
    assert str(step.explain(*CHANGES[change]())) == f"step traces a new program: {change}."


def test_tapes_have_programs_of_their_own():
    f = function(lambda x: x * x)
    x = tf.constant(2.0)
    f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        assert "first call under such a tape" in str(f.explain(x))
        y = f(x)
    tape.gradient(y, x)
    with tf.GradientTape():
        assert set(f.explain(x).cost) == {"forward", "backward"}


def test_other_reasons():
    v, w = tf.Variable(1.0), tf.Variable([1.0], shape=[None])
    f = function(lambda v: v * 2.0)
    f(v)
    assert "argument 'v' is another variable" in str(f.explain(tf.Variable(1.0)))
    g = function(lambda: tf.reduce_sum(w))
    g()
    w.assign([1.0, 2.0])
    assert "another shape" in str(g.explain())
    h = function(lambda x: tf.boolean_mask(x, x > 0.0))
    h(X)
    assert "boolean_mask (" in str(h.explain(X))
    assert "runs as it is written" in str(h.explain(X))
    assert "not a tensor of numbers" in str(function(lambda s: s).explain(tf.constant("text")))
    tf.config.run_functions_eagerly(True)
    try:
        assert "run_functions_eagerly" in str(f.explain(v))
    finally:
        tf.config.run_functions_eagerly(False)


def test_methods_explain_themselves():
    class Doubler:
        @function
        def double(self, x, rest=None):
            return x + x

    doubler = Doubler()
    doubler.double(X)
    assert "argument 'x' changed from" in str(doubler.double.explain(1.0))


# Compiling


def test_a_slow_compilation_says_what_it_does(caplog, monkeypatch):
    monkeypatch.setattr(cache, "SLOW", 0.05)
    original = jax.stages.Lowered.compile

    def compile_slowly(self, *args, **kwargs):
        end = time.monotonic() + 60.0
        while not caplog.records and time.monotonic() < end:
            time.sleep(0.01)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", compile_slowly)

    @function
    def slow(x):
        return tf.sin(x) * 2.0

    with caplog.at_level(logging.WARNING, "gradtape"):
        slow(X)
        slow(X)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("tf.function: compiling slow takes more than 0.05 s: ")
    assert " operations on float32 (8, 4)" in first
    assert second.startswith("tf.function: slow was compiled in ")


def test_a_program_is_compiled_once(monkeypatch):
    compiled = []
    from jax._src import compiler

    original = compiler.backend_compile_and_load
    monkeypatch.setattr(
        compiler, "backend_compile_and_load", lambda *args, **kwargs: compiled.append(1) or original(*args, **kwargs)
    )
    f = function(lambda x: tf.cos(x) * 3.0)
    f(X)
    f(X)
    f.explain(X)
    assert len(compiled) == 1


PROGRAM = """
import sys
import jax
import numpy as np
import gradtape as tf

hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
tf.config.set_compile_cache(sys.argv[1])
w = tf.Variable(np.eye(3, dtype=np.float32))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(x @ w))
    w.assign_sub(tape.gradient(loss, w))
    return loss

loss = float(step(tf.ones([2, 3])))
assert before == (jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs)
jax.jit(lambda x: x + 1)(1.0)
print(len(hits), loss)
"""


def test_another_process_finds_what_this_one_compiled(tmp_path):
    def run():
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
        hits, loss = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return int(hits), loss, sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith("-atime"))

    first, second = run(), run()
    assert (first[0], second[0]) == (0, 1)
    assert first[1:] == second[1:]
    assert len(second[2]) == 1  # the step, and nothing that jax compiled outside of it


# Traced values


def test_a_tensor_that_escapes_says_where_it_was_made():
    kept = []

    @function
    def leak(x):
        y = x * 2.0  # here
        kept.append(y)
        return y

    leak(X)
    line = leak.python_function.__code__.co_firstlineno + 2
    for use in (lambda t: t + 1.0, lambda t: t.numpy(), lambda t: tf.reduce_sum(t), bool, float):
        with pytest.raises(TypeError, match=rf"made inside a tf.function \(at .*test_function_explain.py:{line}\)"):
            use(kept[0])


ASKED = {
    "numpy": (lambda x: x.numpy(), r"\.numpy\(\) needs the number"),
    "__float__": (lambda x: float(x), r"tf.cast\(x, tf.float32\) instead of float"),
    "__int__": (lambda x: int(x), r"tf.cast\(x, tf.int32\) instead of int"),
    "__bool__": (lambda x: bool(x > 0.0), r"tf.cond or tf.where"),
    "__index__": (lambda x: [1, 2][tf.cast(x, tf.int32)], r"take tensors"),
    "__array__": (lambda x: np.asarray(x), r"tf functions instead of np functions"),
}


@pytest.mark.parametrize("name", ASKED)
def test_asking_a_traced_value_for_its_number_says_what_to_do_instead(name):
    body, fix = ASKED[name]
    kind = tf.errors.OperatorNotAllowedInGraphError if name == "__bool__" else tf.errors.InvalidArgumentError
    with pytest.raises(kind) as info:
        function(body, jit_compile=True, autograph=False)(tf.constant(1.0))
    assert f": {name} (" in str(info.value)
    assert "a number was asked for that exists only when the program runs" in str(info.value)
    info.match(fix)
