"""Whatever goes wrong in a call, variables are as they were before it, and the next call works."""

from __future__ import annotations

import ctypes
import functools
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import gradtape as tf
from gradtape.core.context import thread
from gradtape.experimental import from_jax
from gradtape.function import function
from gradtape.function.holding import Holder
from gradtape.function.inputs import Inputs
from gradtape.function.state import State, Tracing, current
from gradtape.ops.execution import staging

jax = pytest.importorskip("jax")
from jax.experimental import io_callback  # noqa: E402

from gradtape.function.regions import Region  # noqa: E402
from gradtape.function.staging import Program  # noqa: E402

ONE = tf.constant(1.0)
MINE = "mine, on purpose"


class Mine(Exception):
    pass


def pair():
    """Two variables that every whole call keeps equal."""
    return tf.Variable(0.0, name="one"), tf.Variable(0.0, name="two")


WHERE = {
    "in the body, while it is traced": lambda fail: lambda x: _raise_if(fail, x),
    "in the body, run as it is written": lambda fail: lambda x: _raise_if(fail, x * x.numpy()),
    "in a host callback": lambda fail: host_call(jax.pure_callback, fail),
    "in a host callback, in order": lambda fail: host_call(functools.partial(io_callback, ordered=True), fail),
    "in a host callback of a loop": lambda fail: (
        lambda x: tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, host_call(jax.pure_callback, fail)(y)), (tf.constant(0), x)
        )[1]
    ),
    "in a py_function": lambda fail: lambda x: tf.py_function(lambda a: _raise_if(fail, a), [x], tf.float32),
}


def host_call(callback, fail):
    """A step that runs Python on the host, without a gradient."""

    def step(x):
        return callback(lambda a: _raise_if(fail, np.asarray(a)), jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    return lambda x: from_jax(step)(tf.stop_gradient(x))


def _raise_if(fail, x):
    if fail:
        raise Mine(MINE)
    return x


@pytest.mark.parametrize("taped", [False, True], ids=["alone", "under a tape"])
@pytest.mark.parametrize("where", WHERE)
def test_raising(where, taped, capfd):
    one, two = pair()
    fail: list = []
    suspect = WHERE[where](fail)

    @function
    def step(x):
        one.assign_add(x)
        y = suspect(x)
        two.assign_add(y)
        return y

    def call():
        if not taped:
            return step(ONE)
        with tf.GradientTape() as tape:
            tape.watch(ONE)
            result = step(ONE)
        del tape
        return result

    for expected in (1.0, 2.0):
        fail.append(1)
        if expected == 1.0 or "traced" not in where:  # a second trace there is none
            with pytest.raises(Exception, match=MINE):  # in jax's words, where jax calls it
                call()
        assert (float(one), float(two)) == (expected - 1.0, expected - 1.0)
        fail.clear()
        call()
        assert (float(one), float(two)) == (expected, expected)
    assert not thread.recorders


def test_failing_while_compiling(monkeypatch):
    one, two = pair()

    @function
    def step(x):
        one.assign_add(x)
        two.assign_add(x)
        return one * 2.0

    def refuse(*args, **kwargs):
        raise Mine(MINE)

    with monkeypatch.context() as patched:
        patched.setattr(jax.stages.Lowered, "compile", refuse)
        for _ in range(2):
            with pytest.raises(Mine):
                step(ONE)
            assert (float(one), float(two)) == (0.0, 0.0)
    assert float(step(ONE)) == 2.0
    assert (float(one), float(two)) == (1.0, 1.0)


def interrupt(ident: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(KeyboardInterrupt))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from the one that Python drops
@pytest.mark.parametrize("kind", ["compiled", "traced anew", "eager"])
def test_interrupting(kind):
    """An exception from outside may come at any time; a call has then happened or has not."""
    one, two = pair()
    noticed: list = []
    done: list = []
    begun: list = []

    @function
    def step(x, number):
        x = x * x.numpy() if kind == "eager" else x
        one.assign_add(x)
        two.assign_add(x)
        return one + two

    step(ONE, 0)
    assert bool(step._refusals) == (kind == "eager")
    numbers = itertools.count(1) if kind == "traced anew" else itertools.repeat(0)

    def work():
        while not done:
            try:
                while not done:
                    begun.append(1)
                    step(ONE, next(numbers))
            except KeyboardInterrupt:
                noticed.append(1)

    worker = threading.Thread(target=work)
    worker.start()
    rng, times = random.Random(1), 10 if kind == "traced anew" else 30
    for _ in range(times):
        so_far = len(begun)
        while len(begun) == so_far and worker.is_alive():  # not before it would catch one
            time.sleep(0.0005)
        time.sleep(rng.random() * 0.01)
        before, again = len(noticed), 0.0
        while len(noticed) == before and worker.is_alive():  # one at a time
            if time.monotonic() > again:  # Python drops one that comes while a destructor runs
                again = time.monotonic() + 15.0
                interrupt(worker.ident)
            time.sleep(0.001)
    done.append(1)
    worker.join()
    assert len(noticed) >= times
    assert float(one) == float(two)
    assert float(step(ONE, 0)) == 2.0 * float(one) == 2.0 * float(two)
    assert not thread.recorders


def test_64_threads_and_some_that_fail():
    one, two = pair()

    @function
    def step(x, fail):
        one.assign_add(x)
        if fail:
            raise Mine(MINE)
        two.assign_add(x)
        return one + two

    seen: list = []

    def work(number):
        for i in range(8):
            if number % 8 == 0 and i % 2:
                with pytest.raises(Mine):
                    step(ONE, True)
            else:
                seen.append(float(step(ONE, False)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(64)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(seen) == [2.0 * n for n in range(1, len(seen) + 1)]
    assert float(one) == float(two) == len(seen) == 64 * 8 - 8 * 4


def interrupted_at_the_beginning_of(entered: Callable, call: Callable) -> None:
    """Call, and raise KeyboardInterrupt where Python notices one: as this function is entered for the first time."""

    def notice(frame, event, argument):
        if frame.f_code is entered.__code__:
            sys.settrace(before)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(notice)
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("entered", [State.__enter__, State.__exit__, Tracing.__enter__, Tracing.__exit__, Region.__exit__])
def test_an_interruption_as_a_run_begins_or_ends_leaves_nothing_behind(entered):
    one, two = pair()

    @function
    def step(x):
        one.assign_add(x)
        return tf.cond(x > 0.0, lambda: one + two, lambda: x)

    interrupted_at_the_beginning_of(entered, lambda: step(ONE))
    assert current() is None
    assert (staging.inside, staging.draw, thread.recorders) == (False, None, ())
    assert (float(step(ONE)), float(one)) == (1.0, 1.0)


@pytest.mark.parametrize("entered", [Holder.begin, Holder._current, Holder._take, Inputs.now, Program._wrapped])
def test_an_interruption_while_variables_are_held_loses_no_value(entered):
    one, two = pair()

    @function
    def step(x):
        one.assign_add(x)
        two.assign(one * 1.0)
        return x

    interrupted_at_the_beginning_of(entered, lambda: step(ONE))
    assert float(one) == float(two)
    step(ONE)
    assert float(one) == float(two)


@pytest.mark.parametrize("calls", [0, 1], ids=["first call", "an argument comes again, and is on the device now"])
def test_an_interruption_in_python_code_of_jax_loses_no_value(calls):
    """What jax calls in a new way, it calls through Python: variables are written over by then, and nothing is returned yet."""
    one, two = pair()

    @function
    def step(x):
        one.assign_add(x)
        two.assign_add(x)
        return x

    def after_the_program(frame, event, argument):
        arrays = [a for p in step._programs.values() for a in p.holder.arrays if a is not None]
        if any(a.is_deleted() for a in arrays):
            sys.settrace(before)
            raise KeyboardInterrupt
        return after_the_program

    for _ in range(calls):
        step(ONE)
    before = sys.gettrace()
    sys.settrace(after_the_program)
    try:
        with pytest.raises(KeyboardInterrupt):
            step(ONE)
    finally:
        sys.settrace(before)
    assert float(one) == float(two) == calls
    for expected in range(calls + 1, calls + 4):
        step(ONE)
        assert float(one) == float(two) == expected


@pytest.mark.parametrize("thread_ends", [False, True], ids=["this thread goes on", "the thread ends"])
@pytest.mark.parametrize("kind", ["traced", "eager"])
def test_an_interruption_at_any_place_of_a_run_leaves_no_slow_reads_behind(kind, thread_ends):
    """Variables are read through their run while one lasts: by the end of the next call the plain cell is back."""
    one, _ = pair()

    def step(x):
        one.assign_add(x)
        return x * x.numpy() if kind == "eager" else x

    def interrupted_at(number: int) -> bool:
        places, fresh = itertools.count(), function(step)  # a new one, so that it is traced, and then run

        def notice(frame, event, argument):  # as Python does: where a function is entered, or one in C has returned
            if event in ("call", "c_return") and frame.f_code.co_filename == file and next(places) == number:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(notice)
        try:
            fresh(ONE)
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    def attempt(number: int) -> bool:
        if not thread_ends:
            return interrupted_at(number)
        found: list = []
        worker = threading.Thread(target=lambda: found.append(interrupted_at(number)))
        worker.start()
        worker.join()
        return found[0]

    file = State.__enter__.__code__.co_filename
    number = 0
    while attempt(number):
        assert current() is None
        function(lambda x: x * x.numpy())(ONE)
        assert type(tf.Variable.__dict__["_tensor"]).__name__ == "member_descriptor", number
        number += 1
    assert number > 20
