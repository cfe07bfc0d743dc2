"""`tape.explain`: each cause by itself, what the report is made of, bad input, and that nothing else changes because of it."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradtape as tf
from gradtape.core.context import NOBODY, thread
from gradtape.core.cuts import PREDICT, Cut, during
from gradtape.inspect import Cause, Report


def causes(report: Report) -> list[Cause]:
    return [finding.cause for finding in report]


# One program per cause: the source, and the target as computed under the tape


def through(function, source=None, **options):
    """The report on one source and what ``function(tape, source)`` makes of it, before the tape is used and after."""
    source = tf.Variable([1.0, 2.0]) if source is None else source
    with tf.GradientTape(persistent=True, **options) as tape:
        target = function(tape, source)
    live = tape.explain(target, source)
    with tf.GradientTape(**options) as tape:
        target = function(tape, source)
    assert tape.gradient(target, source) is None
    return live, tape.explain(target, source)


def assigned(tape, v):
    other = tf.Variable([0.0, 0.0])
    other.assign(v * 2.0)
    return other * 1.0


def decided(tape, v):
    return tf.constant([1.0]) * (2.0 if v[0] > 0.0 else 3.0)


def predicted(tape, v):
    with during(PREDICT):
        values = (v * 2.0).numpy()
    return tf.constant(values)


@tf.custom_gradient
def silent(x):
    return tf.identity(x), lambda upstream: None


def paused(tape, v):
    with tape.stop_recording():
        return v * 2.0


def forgotten(tape, v):
    out = v * 2.0
    tape.reset()
    return out


@pytest.mark.parametrize(
    ("cause", "function"),
    {
        Cause.NONDIFFERENTIABLE: lambda tape, v: tf.cast(tf.argmax(v), tf.float32) * 2.0,
        Cause.DTYPE: lambda tape, v: tf.cast(tf.cast(v, tf.int32), tf.float32),
        Cause.LEFT: lambda tape, v: tf.constant((v * 2.0).numpy()) + 1.0,
        Cause.STOP_GRADIENT: lambda tape, v: tf.stop_gradient(v * 2.0) + 1.0,
        Cause.CUSTOM_GRADIENT: lambda tape, v: silent(v * 2.0) + 1.0,
        Cause.ASSIGNED: assigned,
        Cause.CONDITION: decided,
        Cause.PREDICT: predicted,
        Cause.STOP_RECORDING: paused,
        Cause.RESET: forgotten,
    }.items(),
    ids=lambda value: getattr(value, "value", ""),
)
def test_a_path_that_is_cut(cause, function):
    for report in through(function):
        assert causes(report) == [cause], str(report)
        (finding,) = report
        assert finding.place is not None
        assert finding.place.file == __file__


def test_sources_that_are_not_followed():
    x, frozen, integer = tf.constant(1.0), tf.Variable(1.0, trainable=False), tf.Variable(1)
    with tf.GradientTape(persistent=True) as tape:
        y = x * frozen + tf.cast(integer, tf.float32)
    assert causes(tape.explain(y, [x, frozen, integer])) == [Cause.NOT_WATCHED, Cause.NOT_TRAINABLE, Cause.DTYPE]
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        y = v * 2.0
    assert causes(tape.explain(y, v)) == [Cause.WATCH_ACCESSED_OFF]


def test_the_nearest_points_of_an_unconnected_pair():
    v, x = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="x")
    with tf.GradientTape(persistent=True, trace=True) as tape:
        side = tf.exp(v)
        y = tf.sin(x)
        y = y * 2.0
    (finding,) = tape.explain(y, v)
    assert side is not None
    assert finding.cause is Cause.UNCONNECTED
    assert "exp" in finding.detail
    assert "sin" in finding.detail
    assert finding.place.text == "y = tf.sin(x)"


def test_used():
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, v) is not None
    assert causes(tape.explain(y, v)) == [Cause.USED]


def test_a_traced_tape_can_be_asked_after_it_was_used():
    v = tf.Variable([-1.0, -2.0])
    with tf.GradientTape(trace=True) as tape:
        y = tf.reduce_sum(tf.nn.relu(v))
    assert not tape.gradient(y, v).numpy().any()
    (finding,) = tape.explain(y, v)
    assert finding.cause is Cause.ZERO
    assert "relu" in finding.detail


def test_zero_is_found_without_trace_too():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.gather(v * tf.zeros([2]), [0]))
    (finding,) = tape.explain(y, v)
    assert (finding.cause, finding.gradient) == (Cause.ZERO, "zero")
    assert "multiply" in finding.detail


def test_no_finding_where_there_is_a_gradient():
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
    report = tape.explain(y, v)
    assert not len(report)
    assert str(report) == "The source has a gradient."
    assert tape.gradient(y, v).numpy() == 4.0


# The report


def test_a_report_is_data_and_text():
    frozen = [tf.Variable(1.0, trainable=False, name=f"<b>{i}") for i in range(6)]
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * tf.add_n(frozen)
    report = tape.explain(y, {"all": frozen, "one": [v]})
    assert len(report) == 6
    assert report[0].source is frozen[0]
    assert str(report).startswith("6 of 7 gradients are None.")
    assert str(report).count("Cause:") == 1, "the same cause at the same place is told once"
    assert "and 2 more" in str(report)
    assert repr(report) == str(report)
    assert "<b>" not in report._repr_html_()


def test_it_does_not_use_the_tape_up():
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.stop_gradient(v) * v
        inside = tape.explain(y, v)
    assert not len(inside)
    assert not len(tape.explain(y, v))
    assert tape.gradient(y, v).numpy() == 3.0


def test_several_targets():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        a, b = v * 2.0, tf.stop_gradient(w) * v
    assert causes(tape.explain([a, b], [v, w])) == [Cause.STOP_GRADIENT]


def test_an_outer_tape_is_told_apart_from_an_inner_one():
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = tf.stop_gradient(v) * v
        slope = inner.gradient(y, v)
    assert outer.gradient(slope, v) is None
    assert causes(outer.explain(slope, v)) == [Cause.STOP_GRADIENT]


def test_under_function():
    v = tf.Variable([1.0, 2.0])
    found = []

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.stop_gradient(v * x)) + tf.reduce_sum(x)
        found.append(tape.explain(y, [v, x]))
        return y

    step(tf.constant([1.0, 1.0]))
    assert causes(found[0]) == [Cause.STOP_GRADIENT, Cause.NOT_WATCHED]


# The optimizer's error


def test_the_optimizers_error_carries_the_report():
    v = tf.Variable([1.0, 2.0], name="v")
    with tf.GradientTape() as tape:
        y = tf.cast(tf.argmax(v), tf.float32)
    with pytest.raises(tf.errors.NoGradientsError, match="argmax") as info:
        tf.optimizers.SGD(0.1).apply_gradients([(tape.gradient(y, v), v)])
    assert causes(info.value.report) == [Cause.NONDIFFERENTIABLE]
    assert "test_explain.py" in str(info.value)


def test_the_optimizers_error_without_a_tape():
    v = tf.Variable(1.0)
    with pytest.raises(tf.errors.NoGradientsError, match="no differentiable path") as info:
        tf.optimizers.SGD(0.1).apply_gradients([(None, v)])
    assert info.value.report is None


# Bad input


def test_a_tape_that_was_never_entered():
    with pytest.raises(RuntimeError, match="recorded nothing"):
        tf.GradientTape().explain(tf.constant(1.0), tf.constant(1.0))


def test_what_is_no_tensor():
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * 2.0
    with pytest.raises(TypeError, match="needs a target"):
        tape.explain(None, v)
    for target, source in ((3.0, v), (y, "v"), (y, [v, 2.0])):
        with pytest.raises(TypeError, match="Cannot use"):
            tape.explain(target, source)


def test_tensors_of_another_tape():
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as one:
        y = v * v
    with tf.GradientTape(persistent=True) as two:
        z = v * 3.0
    assert causes(one.explain(z, v)) == [Cause.OUTSIDE]
    assert causes(two.explain(z, y)) == [Cause.NOT_WATCHED]


def test_code_without_source():
    space = {"tf": tf, "v": tf.Variable(2.0)}
    exec("with tf.GradientTape(persistent=True) as tape:\n    y = tf.stop_gradient(v)\nloss = y * 2.0", space)
    (finding,) = space["tape"].explain(space["loss"], space["v"])
    assert finding.cause is Cause.STOP_GRADIENT
    assert finding.place.line == 2
    assert finding.place.text == ""


def recorded_elsewhere(x):
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
        x = x + 1.0
    return tape, y


def test_names_of_a_function_that_is_over_say_nothing():
    x = tf.constant(1.0)
    tape, y = recorded_elsewhere(x)
    assert causes(tape.explain(y, x)) == [Cause.NOT_WATCHED], "not rebound: that was another x"


CELLS = (
    """x = tf.constant(2.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = x * x
    x = x + 1.0
""",
    "report = tape.explain(y, x)",
)


def test_two_cells_of_a_notebook(tmp_path):
    space = {"tf": tf}
    for i, cell in enumerate(CELLS):
        file = tmp_path / f"cell{i}.py"
        file.write_text(cell)
        exec(compile(cell, str(file), "exec"), space)
    (finding,) = space["report"]
    assert (finding.cause, finding.place.line) == (Cause.REBOUND, 5)


def test_an_output_without_gradient_is_no_source():
    x = tf.constant([1.0, 3.0, 2.0])
    v = tf.Variable([1.0, 1.0, 1.0])
    with tf.GradientTape() as tape:
        values, _ = tf.math.top_k(v * 2.0, 2)
        y = tf.reduce_sum(x) * 2.0
    assert tape.gradient(y, [x, v]) == [None, None]
    assert values is not None
    assert causes(tape.explain(y, x)) == [Cause.NOT_WATCHED]


def test_what_is_left_of_a_used_tape_names_the_last_op():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        side = tf.exp(v)
        y = w * 2.0
    assert side is not None
    assert tape.gradient(y, [v, w])[0] is None
    (finding,) = tape.explain(y, [v, w])
    assert finding.cause is Cause.UNCONNECTED
    assert "exp" in finding.detail


# Nothing else changes


CUTS = {
    "stop_gradient": (Cause.STOP_GRADIENT, tf.stop_gradient),
    "argmax": (Cause.NONDIFFERENTIABLE, lambda x: tf.cast(tf.argmax(tf.stack([x, 2.0 * x])), tf.float32)),
    "sign of comparison": (Cause.NONDIFFERENTIABLE, lambda x: tf.cast(x > 0.5, tf.float32)),
    "integers": (Cause.DTYPE, lambda x: tf.cast(tf.cast(x * 10.0, tf.int32), tf.float32)),
    "numpy": (Cause.LEFT, lambda x: tf.constant(x.numpy())),
    "float": (Cause.LEFT, lambda x: tf.constant(float(x))),
    "custom": (Cause.CUSTOM_GRADIENT, silent),
}
STEPS = {
    "sin": tf.sin,
    "scale": lambda x: 2.0 * x,
    "add": lambda x: x + tf.constant(0.25),
    "square": lambda x: x * x,
    "reshape": lambda x: tf.reshape(x, []),
    "where": lambda x: tf.where(x > 100.0, 0.0, x),
}
SIDES = {
    "nothing": lambda x: None,
    "printed": lambda x: f"{x:.3f} {x}",
    "shape": lambda x: tf.cast(tf.size(x), tf.float32) * 2.0,
    "metric": lambda x: tf.reduce_sum(tf.cast(tf.greater(x, 0.0), tf.float32)),
    "branch": lambda x: tf.exp(x) + 1.0,
}
words = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(sorted(SIDES))), max_size=5)


@given(words, st.sampled_from(sorted(CUTS)), words, st.booleans(), st.booleans())
def test_a_planted_cut_is_named(before, cut, after, is_used, is_traced):
    """A chain of steps with one cut in it, whatever else the values on its way are used for."""
    cause, function = CUTS[cut]
    x, w = tf.Variable(0.7), tf.Variable(1.0)
    sides = []
    with tf.GradientTape(persistent=not is_used, trace=is_traced) as tape:
        value = x * 1.0
        for step, side in before:
            value = STEPS[step](value)
            sides.append(SIDES[side](value))
        value = function(value)
        for step, side in after:
            value = STEPS[step](value)
            sides.append(SIDES[side](value))
        value = value * w
    if is_used:
        gradients = tape.gradient(value, [x, w])
        assert gradients[0] is None
        assert gradients[1] is not None
    named = causes(tape.explain(value, [x, w]))
    metric = is_used and not is_traced and cause not in (Cause.CUSTOM_GRADIENT, Cause.LEFT)
    assert named[0] is cause or (metric and named[0] is Cause.NONDIFFERENTIABLE)


def test_a_cut_value_can_be_watched():
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        a = tf.stop_gradient(v * 2.0)
        b = a * 2.0
        tape.watch(b)
        y = a * b * b
    assert type(a._key) is Cut
    assert tape.gradient(y, b).numpy() == 2 * 6.0 * 12.0, "the use of a does not count as a use of b"
    assert tape.gradient(y, a) is None


def test_a_cut_number_is_a_constant_of_the_record():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v) / tf.cast(tf.size(v), tf.float32)
    np.testing.assert_allclose(tape.gradient(y, v), [1.0, 2.0])


def test_exits_are_bounded():
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        for _ in range(100):
            y = v * 2.0
            y.numpy()
            tf.stop_gradient(y)
    assert len(tape.exits) == 2
    assert all(len(exit.keys) <= 8 for exit in tape.exits.values())


def test_results_that_nobody_needs_are_still_dropped():
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        for _ in range(5000):
            float(tf.stop_gradient(v * 2.0))
    assert len(tape.records) < 3000


def test_everything_is_freed_without_the_garbage_collector():
    gc.disable()
    try:
        for options in ({}, {"trace": True}, {"persistent": True}):
            v = tf.Variable([1.0, 2.0])
            with tf.GradientTape(**options) as tape:
                y = tf.stop_gradient(v * 2.0)
                y.numpy()
                z = y * 3.0
            tape.on_gradient(v, lambda g: None)
            assert tape.gradient(z, v) is None
            assert len(tape.explain(z, v)) == 1
            alive = [weakref.ref(tape), weakref.ref(v), weakref.ref(y)]
            del tape, v, y, z
            assert [reference() for reference in alive] == [None, None, None]
    finally:
        gc.enable()


def test_the_witness_goes_home():
    v = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * 2.0
    for _ in range(100):
        y + 1.0
    assert type(NOBODY.records) is dict, "after a while nobody asks any more"
    assert thread.recorders == ()
    del tape
    with tf.GradientTape():
        pass
    y + 1.0
    assert type(NOBODY.records) is dict, "the tape is gone"


def test_an_error_of_an_optimizer_does_not_keep_the_tape_alive():
    gc.disable()
    try:
        v = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = tf.stop_gradient(v * 2.0)
        with pytest.raises(tf.errors.NoGradientsError) as caught:
            tf.optimizers.SGD(0.1).apply_gradients([(tape.gradient(y, v), v)])
        assert caught.value.report[0].cause is Cause.STOP_GRADIENT
        alive = [weakref.ref(tape), weakref.ref(v), weakref.ref(y)]
        del tape, v, y, caught
        assert [reference() for reference in alive] == [None] * 3
    finally:
        gc.enable()
