"""Part A: facts about the tape that goldens cannot hold: warnings, threads, failures, and where we do better."""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import logging
import threading

import numpy as np
import pytest

import gradtape as tf
from gradtape.core.context import thread
from spec.private import op

pytestmark = pytest.mark.tiny


def squared(value=3.0, **options):
    x = tf.constant(value)
    with tf.GradientTape(**options) as tape:
        tape.watch(x)
        y = x * x
    return tape, x, y


@pytest.fixture(autouse=True)
def _no_stale_tape():
    """Whatever a test does, it leaves no recorder behind in this thread."""
    assert thread.recorders == ()
    yield
    assert thread.recorders == ()


@op
def halting(xp, x):
    """An op of the tests whose derivative rule fails."""
    return x * 1


@op
def orphan(xp, x):
    """An op of the tests that has no derivative rule."""
    return x * 1


def _fail(xp, g):
    raise ArithmeticError("the rule itself failed")


halting.vjp(_fail)


# A1, A2


@pytest.mark.parametrize("yes", [1, "yes", np.bool_(True)])
def test_a1_3_flags_are_ordinary_truth_values(yes):
    """A1.3"""
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=yes, watch_accessed_variables=yes) as tape:
        y = v * v
    assert float(tape.gradient(y, v)) == float(tape.gradient(y, v)) == 6.0


def test_a2_2_an_exception_leaves_outer_tapes_alone():
    """A2.2"""
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        try:
            with tf.GradientTape() as inner:
                inner.watch(x)
                raise KeyError
        except KeyError:
            assert thread.recorders == (outer,)
        y = x * x
    assert float(outer.gradient(y, x)) == 6.0


def test_a2_3_after_a_refused_reentry_the_outer_with_exits_cleanly():
    """A2.3"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(ValueError, match="Tape is still recording"):
            tape.__enter__()
        y = x * x
    assert thread.recorders == ()
    assert float(tape.gradient(y, x)) == 6.0


# A3


class Messages(logging.Handler):
    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@pytest.fixture
def messages():
    handler = Messages()
    logger = logging.getLogger("gradtape")
    logger.addHandler(handler)
    yield handler.texts
    logger.removeHandler(handler)


def test_a3_4_integers_are_watched_with_at_most_five_warnings_per_place(messages):
    """A3.4: through logging, not warnings (which are errors in this suite)"""
    for _ in range(8):
        with tf.GradientTape() as tape:
            tape.watch(tf.constant(1))
    assert len(messages) == 5
    assert "The dtype of the watched tensor must be floating (e.g. tf.float32), got tf.int32" in messages[0]
    with tf.GradientTape() as tape:
        tape.watch(tf.constant(1))
    assert len(messages) == 6


def test_a3_2_leaf_check_comes_before_the_state_check():
    """A3.2, A3.8"""
    tape = tf.GradientTape()
    with pytest.raises(ValueError, match="ndarray"):
        tape.watch([np.ones(1)])
    with pytest.raises(RuntimeError, match="never entered"):
        tape.watch(tf.constant(1.0))
    used, x, y = squared()
    used.gradient(y, x)
    with pytest.raises(RuntimeError, match="used up"):
        used.watch(x)


@pytest.mark.parametrize("leaf", [object(), (i for i in ()), tf, "a", 1, np.float32(1.0)])
def test_a3_2_other_leaves(leaf):
    """A3.2"""
    with tf.GradientTape() as tape, pytest.raises(ValueError, match="or ExtensionType"):
        tape.watch([leaf])


def test_a3_6_watching_is_local_to_the_tape():
    """A3.6"""
    x = tf.constant(3.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        a.watch(x)
        y = x * x
    assert b.gradient(y, x) is None
    assert float(a.gradient(y, x)) == 6.0


def test_a3_9_watch_on_an_exited_tape_always_takes_effect():
    """A3.9: TensorFlow's depends on whether another tape is active"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        pass
    tape.watch(x)
    with tape:
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_a3_9_watch_inside_stop_recording_takes_effect():
    """A3.9"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_a3_10_watching_a_variable_tells_custom_gradient():
    """A3.10"""
    v = tf.Variable(3.0)
    seen = []

    @tf.custom_gradient
    def f(x):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(v)

        def grad(dy, variables):
            seen.extend(variables)
            return dy, [None]

        return x * 2.0, grad

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    tape.gradient(y, x)
    assert len(seen) == 1
    assert seen[0] is v


def test_a4_5_the_tape_keeps_watched_variables_alive():
    """A4.5"""
    with tf.GradientTape() as tape:
        tf.Variable(3.0, name="temporary") * 2.0
    assert [v.name for v in tape.watched_variables()] == ["temporary:0"]


def test_a5_6_all_recorders_can_be_silenced():
    """A5.6: private, and re-entrant"""
    from gradtape.core.context import suspended

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with suspended():
            with suspended():
                pass
            z = x * x
        y = x * x
    assert tape.gradient([y, z], x).numpy() == 6.0


# A7: state


def test_a7_2_gradient_inside_pops_a_one_shot_tape():
    """A7.2"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.gradient(y, x)
        assert thread.recorders == ()
        with pytest.raises(RuntimeError):
            tape.watch(x)


def test_a7_3_one_warning_per_place(messages):
    """A7.3"""
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        for _ in range(3):
            tape.gradient(y, x)
    assert len(messages) == 1
    assert messages[0].startswith(
        "Calling GradientTape.gradient on a persistent tape inside its context is significantly less "
        "efficient than calling it outside the context"
    )


def test_a7_5_a_failing_rule_consumes_a_one_shot_tape():
    """A7.5, A7.41: the error is the rule's own; afterwards the tape says that it is used"""
    x = tf.constant(3.0)
    with tf.GradientTape() as other:
        other.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = halting(x) * x
        with pytest.raises(ArithmeticError, match="the rule itself failed"):
            tape.gradient(y, x)
        assert thread.recorders == (other,)
        z = x * x
    with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used"):
        tape.gradient(y, x)
    assert float(other.gradient(z, x)) == 6.0


def test_a7_5_a_failing_rule_leaves_a_persistent_tape_whole():
    """A7.5"""
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        good = x * x
        bad = halting(x) * good
    for _ in range(2):
        with pytest.raises(ArithmeticError):
            tape.gradient(bad, x)
        assert float(tape.gradient(good, x)) == 6.0


def test_a7_5_bad_types_do_not_consume():
    """A7.5, A7.11, A7.17"""
    tape, x, y = squared()
    for target, source in ((1.0, x), (np.ones(2), x), ([None], x), ("y", x), (y, 2.0), (y, np.ones(1)), (y, [None]), (y, None)):
        with pytest.raises(TypeError, match="Cannot use"):
            tape.gradient(target, source)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tape.gradient(y, x, output_gradients=np.ones(5, np.float32))
    assert float(tape.gradient(y, x)) == 6.0


def test_a7_12_indexed_slices_as_source():
    """A7.12"""
    tape, _, y = squared()
    with pytest.raises(AttributeError, match="_id"):
        tape.gradient(y, tf.IndexedSlices([1.0], [0], [2]))


def test_a7_14_subclasses_and_defaultdict_keep_their_type():
    """A7.14"""
    tape, x, y = squared(persistent=True)
    sources = collections.defaultdict(list, {"k": x})
    found = tape.gradient(y, sources)
    assert type(found) is collections.defaultdict
    assert float(found["k"]) == 6.0
    module = tf.Module()
    module.v = tf.Variable(1.0)
    assert tape.gradient(y, module.trainable_variables) == (None,)


def test_a7_19_a_number_from_a_custom_gradient_becomes_a_tensor():
    """A7.19, C1.5: TensorFlow hands the raw float out"""

    @tf.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: 5.0

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    g = tape.gradient(y, x)
    assert isinstance(g, tf.Tensor)
    assert g.numpy().tolist() == [5.0, 5.0]


def test_c1_5_a_gradient_of_the_wrong_shape_is_refused():
    """C1.5: TensorFlow does not look"""

    @tf.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: tf.constant([1.0, 2.0, 3.0])

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(tf.errors.InternalError, match="wrong shape"):
        tape.gradient(y, x)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(2, [4.0, 8.0, 12.0]), ([1.0, 10.0, 100.0], [2.0, 40.0, 600.0]), ((1, 10, 100), [2.0, 40.0, 600.0])],
)
def test_a7_21_a_list_of_numbers_is_the_gradient_of_one_target(given, expected):
    """A7.20, A7.21: TensorFlow takes the first number for all elements"""
    tape, x, y = squared([1.0, 2.0, 3.0])
    if isinstance(given, (int, tuple)):  # ints become int32 tensors, which do not fit a float target
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"output gradient of tf\.int32"):
            tape.gradient(y, x, output_gradients=given)
        return
    assert tape.gradient(y, x, output_gradients=given).numpy().tolist() == expected


def test_a7_21_too_many_numbers_for_several_targets():
    """A7.21"""
    tape, x, y = squared([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="too many"):
        tape.gradient([y, x], x, output_gradients=[1.0, 2.0, 3.0])


def test_a7_23_too_few_output_gradients():
    """A7.23: TensorFlow reads out of bounds"""
    tape, x, y = squared()
    with pytest.raises(ValueError, match="too few"):
        tape.gradient([y, y, y], x, output_gradients=[tf.constant(1.0)])
    assert float(tape.gradient(y, x)) == 6.0


def test_a7_24_none_stands_for_ones():
    """A7.24: TensorFlow fails, or aborts the process"""
    tape, x, y = squared()
    assert float(tape.gradient([y, y], x, output_gradients=[None, tf.constant(10.0)])) == 66.0


def test_a7_24_all_none():
    """A7.24"""
    tape, x, y = squared()
    assert float(tape.gradient(y, x, output_gradients=[None])) == 6.0


def test_a7_36_text_and_attributes():
    """A7.36"""
    s = tf.IndexedSlices(tf.constant([1.0]), tf.constant([1]), tf.constant([3]))
    assert str(s).startswith("IndexedSlices(indices=tf.Tensor([1]")
    assert "CPU" in s.device
    for name in ("name", "op", "graph"):
        with pytest.raises(AttributeError, match="undefined when eager execution is enabled"):
            getattr(s, name)
    for f in (lambda: s + 1.0, lambda: s - s, lambda: s / 2.0):
        with pytest.raises(TypeError, match="unsupported operand"):
            f()


# A7: rules


def test_a7_39_an_op_without_a_rule():
    """A7.39: a LookupError from gradient, with the op's name"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = orphan(x) * 2.0
    with pytest.raises(LookupError, match="gradient registry has no entry for: Orphan"):
        tape.gradient(y, x)


def test_a7_39_an_op_without_a_rule_off_the_path_is_no_error():
    """A7.39"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        orphan(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


@op
def joined(xp, *xs):
    """An op of the tests whose rule returns the wrong number of gradients."""
    return xs[0] + xs[1]


@op
def single(xp, *xs):
    """An op of the tests whose rule does not return a sequence."""
    return xs[0] + xs[1]


joined.vjp(lambda xp, g: [g])
single.vjp(lambda xp, g: None)


def test_a7_40_wrong_count_of_gradients():
    """A7.40"""
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = joined(x, x), single(x, x)
    with pytest.raises(tf.errors.InternalError, match="Recorded operation 'Joined' returned too few gradients"):
        tape.gradient(y, x)
    with pytest.raises(TypeError, match="expected a sequence of gradients"):
        tape.gradient(z, x)


# A8, A9


def test_a8_6_jacobian_of_any_python_gradient():
    """A8.6: nothing needs a conversion; a user's own gradient function is called row by row"""

    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: tf.constant(np.asarray(dy) * 2.0 * np.asarray(x))

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.jacobian(y, x).numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("options", [{"parallel_iterations": 1}, {"parallel_iterations": 7}, {"experimental_use_pfor": False}])
def test_a8_9_options_do_not_change_values(options):
    """A8.8, A8.9"""
    tape, x, y = squared([1.0, 2.0, 3.0], persistent=True)
    assert np.array_equal(tape.jacobian(y, x, **options), tape.jacobian(y, x))


def test_a8_8_empty_targets():
    """A8.2, A8.8"""
    x = tf.ones((2, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = (x @ tf.ones((3, 4)))[:0]
    for batched in (True, False):
        assert tape.jacobian(y, x, experimental_use_pfor=batched).shape == (0, 4, 2, 3)


def test_a8_10_jacobian_adds_nothing_to_the_tape():
    """A8.10"""
    tape, x, y = squared([1.0, 2.0], persistent=True)
    before = len(tape.records)
    tape.jacobian(y, x)
    assert len(tape.records) == before
    with pytest.raises(TypeError):
        tape.jacobian(y, x, output_gradients=y)


def test_a9_8_an_empty_batch():
    """A9.8: TensorFlow divides by zero"""
    x = tf.constant(np.zeros((0, 2), np.float32))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.batch_jacobian(y, x).shape == (0, 2, 2)


# A11 Threads


def test_a11_1_recorders_are_per_thread():
    """A11.1, 0.2"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        elsewhere = []
        worker = threading.Thread(target=lambda: elsewhere.append(x * x))
        worker.start()
        worker.join()
        y = x * x
    assert float(tape.gradient([y, *elsewhere], x)) == 6.0


def test_a11_1_gradient_of_an_exited_tape_in_another_thread():
    """A11.1"""
    tape, x, y = squared()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert float(pool.submit(tape.gradient, y, x).result()) == 6.0


def test_a11_1_many_threads_share_variables():
    """A11.1"""
    v = tf.Variable([1.0, 2.0])

    def work(factor):
        for _ in range(50):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    y = v * v * v * float(factor)
                g = inner.gradient(y, v)
            h = outer.gradient(g, v)
        assert thread.recorders == ()
        return g.numpy().tolist(), h.numpy().tolist()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for factor, found in enumerate(pool.map(work, range(16))):
            assert found == ([3.0 * factor, 12.0 * factor], [6.0 * factor, 12.0 * factor])


def test_a11_1_an_error_in_one_thread_leaves_the_others():
    """A11.1, A2.2"""
    started, failed = threading.Event(), threading.Event()

    def fails():
        started.wait(60)
        try:
            with tf.GradientTape():
                raise KeyError
        except KeyError:
            failed.set()
        return thread.recorders

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(fails)
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            started.set()
            assert failed.wait(60)
            y = x * x
        assert future.result() == ()
    assert float(tape.gradient(y, x)) == 6.0


def test_a11_2_gradient_of_an_active_tape_from_another_thread():
    """A11.2: TensorFlow corrupts memory; here the call is refused, and the tape's own thread goes on"""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="recording in another thread"):
            pool.submit(tape.gradient, y, x).result()
        z = y * x
    assert float(tape.gradient(z, x)) == 27.0


CONTROL_FLOW = {
    "cond": (lambda x: tf.cond(x[0] > 0.0, lambda: x * x, lambda: x), [4.0, 6.0]),
    "while_loop": (lambda x: tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))[1], [12.0, 27.0]),
    "map_fn": (lambda x: tf.map_fn(lambda e: e * e, x), [4.0, 6.0]),
    "foldl": (lambda x: tf.foldl(lambda a, e: a * e, x), [3.0, 2.0]),
    "scan": (lambda x: tf.scan(lambda a, e: a * e, x), [4.0, 2.0]),
    "vectorized_map": (lambda x: tf.vectorized_map(lambda e: e * e, x), [4.0, 6.0]),
}


@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_a13_4_control_flow_is_differentiable(name):
    """A13.4"""
    function, expected = CONTROL_FLOW[name]
    x = tf.constant([2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert tape.gradient(y, x).numpy().tolist() == expected


def test_a13_1_a_function_called_under_a_tape():
    """A13.1: it is differentiable, and its trainable variables are watched by the caller's tape"""
    v, x = tf.Variable(2.0), tf.constant(3.0)

    @tf.function
    def f(x):
        return v * x * x

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.watched_variables() == (v,)
    assert [float(g) for g in tape.gradient(y, [x, v])] == [12.0, 9.0]


def test_a13_2_a_tape_inside_a_function():
    """A13.2"""

    @tf.function
    def gradients(x, other):
        with tf.GradientTape() as tape:
            tape.watch([x, other])
            y = x * x
        return tape.gradient(y, [x, other])

    by_x, by_other = gradients(tf.constant(3.0), tf.constant(1.0))
    assert float(by_x) == 6.0
    assert by_other is None


def test_a13_5_how_the_decorator_is_used():
    """A13.5: bare, with arguments, on methods and partials; concrete functions; switched off"""

    class Counter:
        calls = 0

        @tf.function
        def twice(self, x):
            self.calls += 1
            return x * 2.0

    counter, x = Counter(), tf.constant(3.0)
    tripled = tf.function(functools.partial(tf.multiply, 3.0), reduce_retracing=True)
    shifted = tf.function(input_signature=[tf.TensorSpec([], tf.float32)], autograph=False)(lambda x: x + 1.0)
    assert [float(f(x)) for f in (counter.twice, tripled, shifted)] == [6.0, 9.0, 4.0]
    assert float(counter.twice.get_concrete_function(tf.TensorSpec([], tf.float32))(x)) == 6.0
    traced = counter.calls
    tf.config.run_functions_eagerly(True)
    try:
        assert float(counter.twice(x)) == 6.0
    finally:
        tf.config.run_functions_eagerly(False)
    assert counter.calls == traced + 1
