"""How functions are found, converted and called: sources, closures, methods, failures, threads; and what errors point to."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import traceback

import numpy as np
import pytest

import gradtape as tf
from gradtape.function import autograph_convert, function
from gradtape.function.autograph_convert import converted, is_users, transformed

pytest.importorskip("jax")
pytest.importorskip("malt")
X = tf.constant(3.0)


def compiled(f, *args):
    """The result of a function that must be compiled."""
    return function(f, jit_compile=True)(*args)


# What is converted


@pytest.mark.parametrize(
    "f", [np.sum, np.linalg.norm, tf.reduce_sum, textwrap.dedent, functools.reduce, len, int, tf.Variable.assign, pytest.raises]
)
def test_libraries_are_not_converted(f):
    assert not is_users(f)


def test_generators_and_marked_functions_are_not_converted():
    def generator():
        yield 1

    async def coroutine():
        pass

    assert not any(map(is_users, (generator, coroutine, tf.autograph.experimental.do_not_convert(lambda: 1))))


def test_a_wrapper_is_converted_as_itself():
    calls = []

    def noted(f):
        @functools.wraps(f)
        def wrapper(*args):
            calls.append(1)
            return f(*args) * 2.0

        return wrapper

    @noted
    def f(x):
        if x > 0.0:
            return x
        return -x

    assert float(compiled(f, -X)) == 6.0
    assert len(calls) == 1


def test_lambdas_on_one_line_are_told_apart():
    pair = [lambda x: x if x > 1.0 else x * 2.0, lambda x: x * 3.0 if x > 1.0 else x]
    assert [float(compiled(f, X)) for f in pair] == [3.0, 9.0]
    nested = lambda x: (lambda y: y if y > 0.0 else -y)(x) if x < 5.0 else x
    assert float(compiled(nested, -X)) == 3.0


def test_closures_are_shared_with_what_surrounds_them():
    count, factor = 0, 2.0

    def f(x):
        nonlocal count
        count += 1
        if x > 0.0:
            return x * factor
        return x

    g = function(f, jit_compile=True)
    assert float(g(X)) == 6.0
    factor = 5.0
    assert float(g(tf.constant(3.0, tf.float64))) == 15.0
    assert count == 2


def recursive(x, depth):
    if depth == 0:
        return x
    return recursive(x * 2.0 if x > 0.0 else x, depth - 1)


def test_recursion():
    assert float(compiled(recursive, X, 3)) == 24.0


def inner(x):
    return x * 2.0


outer = cells = inner


def test_names_of_the_users_module_stay_theirs():
    assert float(compiled(lambda x: inner(outer(cells(x))), X)) == 8 * float(X)


def defaults(x, a=2.0, *rest, b=3.0, **more):
    if x > 0.0:
        return x * a * b * sum(rest) * more["c"]
    return x


def test_arguments_keep_their_defaults():
    assert float(compiled(lambda x: defaults(x, 4.0, 1.0, 2.0, c=0.5), X)) == 3.0 * 4.0 * 3.0 * 3.0 * 0.5


def frames(x):
    y = x * 2.0 if x > 0.0 else x
    scope = dict(locals())
    return scope["y"] + eval("x + y") + (1.0 if "frames" in globals() else 0.0)


def test_functions_that_look_at_frames():
    assert float(compiled(frames, X)) == 16.0


def test_results_are_cached_for_each_code():
    def make(k):
        def f(x):
            return x * k if x > 0.0 else x

        return f

    before = len(autograph_convert._templates)
    assert [float(compiled(make(k), X)) for k in (2.0, 3.0, 4.0)] == [6.0, 9.0, 12.0]
    assert len(autograph_convert._templates) <= before + 1


# What converted code is in plain Python


def tangled(n):
    found, kept = [], {}
    for i in range(n):
        try:
            if i % 7 == 6:
                raise KeyError(i)
            while True:
                n -= 1
                if n % 5 == 0:
                    break
                if n < -20:
                    return found, kept, "early"
            else:
                found.append("never")
        except KeyError as error:
            found.append(repr(error))
            continue
        finally:
            kept[i] = n
        found.append(i if (3 < i < 9 and i not in (5, 6)) or i == 0 else -i)
        with tempfile.SpooledTemporaryFile() as file:
            file.write(b"x")
            del file
    else:
        found.append("else")
    assert len(kept) <= i + 1, "unreachable"
    return found, kept, [j for j in found if isinstance(j, int) and j > 0]


@pytest.mark.parametrize("n", [1, 4, 9, 30])
def test_converted_code_is_pythons_on_pythons_values(n):
    assert converted(tangled)(n) == tangled(n)


def test_the_standard_library_can_be_converted():
    functions = [f for module in (textwrap, functools, inspect) for f in vars(module).values() if inspect.isfunction(f)]
    failed = []
    for f in functions[::4]:
        try:
            autograph_convert.Template(*transformed(f)[:2], f, set())
        except Exception as error:
            failed.append((f.__qualname__, error))
    assert len(failed) <= len(functions) // 20, failed


# What is not


def exec_defined(text: str, name: str):
    scope = {"tf": tf, "__name__": "typed_at_a_prompt"}
    exec(textwrap.dedent(text), scope)
    return scope[name]


def test_without_a_source_functions_run_as_they_are(caplog):
    plain = exec_defined("def f(x):\n    return x * 2.0\n", "f")
    assert float(compiled(plain, X)) == 6.0
    assert not caplog.text
    branching = exec_defined("def f(x):\n    return x * 2.0 if x > 0.0 else x\n", "f")
    g = function(branching)
    assert [float(g(x)) for x in (X, -X)] == [6.0, -3.0]
    assert len(caplog.records) == 1
    assert "define f in a file: without its source, control flow over tensors stays as it is written" in caplog.text


def walrus(x):
    if (y := x * 2.0) is not None:
        return y
    return x


def matching(x, mode):
    match mode:
        case "double":
            return x * 2.0
    return x


def test_what_cannot_be_converted_is_told_once(caplog):
    with caplog.at_level(logging.WARNING, "gradtape"):
        for _ in range(2):
            assert float(compiled(lambda x: walrus(x) + matching(x, "double"), X)) == 12.0
    assert caplog.text.count("AutoGraph could not transform") == 2
    assert "assignment expressions (:=) cannot be converted" in caplog.text
    assert "match statements cannot be converted" in caplog.text


def test_a_source_that_does_not_fit_is_not_used(tmp_path, caplog):
    file = tmp_path / "changed_module.py"
    file.write_text("def f(x):\n    return x * 2.0\n")
    scope = {"__name__": "changed_module"}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    file.write_text("def f(x, y):\n    return x * y\n")
    assert float(compiled(scope["f"], X)) == 6.0


def test_code_inside_a_document(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("It isn't Python:\n\n    def f(x):\n        return x * 2.0 if x > 0.0 else x\n\nThat's all.\n")
    scope = {"__name__": "a_page"}
    exec(compile("\n\ndef f(x):\n    return x * 2.0 if x > 0.0 else x\n", str(file), "exec"), scope)
    assert float(compiled(scope["f"], X)) == 6.0


def test_without_malt(monkeypatch, caplog):
    def plain(x):
        return x * 2.0

    def branching(x):
        return x * 2.0 if x > 0.0 else x

    monkeypatch.setattr(autograph_convert, "available", lambda: False)
    assert float(compiled(plain, X)) == 6.0
    assert not caplog.text
    assert float(function(branching)(X)) == 6.0
    assert 'pip install "gradtape[xla]"' in caplog.text
    with pytest.raises(ImportError, match=r'pip install "gradtape\[xla\]"'):
        tf.autograph.to_code(plain)


# Where errors point to


def failing(x):
    if x.shape.rank == 0:
        for _ in range(1):
            y = x
            raise RuntimeError("here")
    return y


def test_errors_point_to_the_users_lines():
    first = failing.__code__.co_firstlineno
    with pytest.raises(RuntimeError, match=r"^here$") as caught:
        function(lambda x: failing(x))(X)
    own = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
    assert own[-1].line == 'raise RuntimeError("here")'
    assert {f.lineno - first for f in own if f.name == "failing"} == {1, 2, 4}
    assert {f.name for f in own} == {"test_errors_point_to_the_users_lines", "<lambda>", "failing"}


def test_messages_name_the_statement(caplog):
    def f(x):
        y = "few"
        if x > 0.0:
            y = "many"
        return x + len(y)

    function(f)(X)
    assert f"{__file__}:{f.__code__.co_firstlineno + 2}" in caplog.text


# When, and by whom


def test_nothing_is_loaded_before_a_function_is_traced():
    program = """
        import sys
        import gradtape as tf
        f = tf.function(lambda x: x if x > 0.0 else -x)
        tf.config.run_functions_eagerly(True)
        f(tf.constant(1.0))
        assert "malt" not in sys.modules and "jax" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_no_files_are_left_behind():
    def f(x):
        return x * 7.0 if x > 0.0 else x

    before = set(os.listdir(tempfile.gettempdir()))
    assert float(compiled(f, X)) == 21.0
    new = set(os.listdir(tempfile.gettempdir())) - before
    assert not [name for name in new if "autograph" in name]
    assert not [name for name in sys.modules if "autograph_generated" in name]


def test_many_threads_convert_at_once():
    def helper(x):
        return x * 2.0 if x > 0.0 else -x

    functions = [function(lambda x, k=k: helper(x) + float(k), jit_compile=True) for k in range(4)]
    results: dict[int, float] = {}
    threads = [threading.Thread(target=lambda k=k: results.update({k: float(functions[k % 4](X))})) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: 6.0 + k % 4 for k in range(8)}
