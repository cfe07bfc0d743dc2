"""`find_nonfinite`, on tapes and functions, and tapes that check numbers as they go."""

from __future__ import annotations

import numpy as np
import pytest
from planting import Program, plant_rule

import gradtape as tf

BAD = (np.nan, np.inf, -np.inf)


def forward_hits(program, trace):
    """Of the ops in whose results NaN was planted, those that were named."""
    for i, (name, _) in enumerate(program.steps):
        tape, target, numbers = program.run(trace, at=i, value=BAD[i % 3])
        report = tape.find_nonfinite(target, program.variables)
        yield (report.direction, report.op, report.number) == ("forward", name, numbers[i])


def backward_hits(program, trace):
    """Of the ops in whose gradients NaN was planted, those that were named."""
    for i, (name, _) in enumerate(program.steps):
        tape, target, numbers = program.run(trace)
        plant_rule(tape, numbers[i], BAD[i % 3])
        report = tape.find_nonfinite(target, program.variables)
        yield (report.direction, report.op, report.number) == ("backward", name, numbers[i])


def test_nan_planted_at_every_op_of_200_random_programs_is_found(capsys):
    programs = [Program(seed) for seed in range(200)]
    named = [hit for program in programs for hits in (forward_hits, backward_hits) for hit in hits(program, "values")]
    with capsys.disabled():
        print(f"\nfind_nonfinite named {sum(named)} of {len(named)} planted ops: {np.mean(named):.2%}")
    assert len(named) >= 3000
    assert np.mean(named) >= 0.99


def test_a_tape_that_does_not_trace_finds_rules(capsys):
    named = [hit for seed in range(0, 200, 8) for hit in backward_hits(Program(seed), False)]
    with capsys.disabled():
        print(f"\nwithout trace: {sum(named)} of {len(named)}: {np.mean(named):.2%}")
    assert np.mean(named) >= 0.99


@pytest.fixture
def x():
    return tf.Variable([1.0, 0.0, 4.0], name="x")


def test_a_forward_op_is_named_with_line_numbers_and_path(x):
    with tf.GradientTape(trace="values") as tape:
        doubled = 2.0 * x
        y = tf.math.log(doubled)
        z = tf.reduce_sum(y * tf.tanh(x))
    found = tape.find_nonfinite(z, x)
    assert (found.direction, found.op, found.indices, found.reached) == ("forward", "log", ((1,),), True)
    assert found.place.text == "y = tf.math.log(doubled)"
    assert found.inputs[0].statistics.low == 0.0
    assert found.outputs[0].statistics.infinities == 1
    assert [step.split(" ")[0] for step in found.path] == ["x:0", "multiply", "log"]
    text = str(found)
    assert "log made the first NaN or infinity" in text
    assert "1 Inf of 3" in text


def test_a_rule_is_named_where_all_values_are_finite(x):
    with tf.GradientTape(trace="values") as tape:
        y = tf.sqrt(x)
        z = tf.reduce_sum(y)
    found = tape.find_nonfinite(z, x)
    assert (found.direction, found.op, found.place.text) == ("backward", "sqrt", "y = tf.sqrt(x)")
    assert [v.name for v in found.inputs] == ["x", "cotangent"]
    assert "the derivative rule of sqrt" in str(found)
    assert np.isinf(tape.gradient(z, x).numpy()[1])  # nothing was used up


def test_what_was_masked_is_said_to_have_no_effect(x):
    with tf.GradientTape(trace="values") as tape:
        z = tf.reduce_sum(tf.where(x > 0, tf.math.log(x), 0.0))
    found = tape.find_nonfinite(z, x)
    assert (found.op, found.reached) == ("log", False)
    assert "Effect" in str(found)


def test_a_rule_that_meets_a_forward_infinity_leads_to_the_op_that_made_it(x):
    w = tf.Variable([1.0, 1.0, 1.0])
    with tf.GradientTape(trace="values", safe=False) as tape:
        z = tf.reduce_sum(tf.where(x > 0, w * tf.math.log(x), 0.0))
    found = tape.find_nonfinite(z, w)  # 0 · -inf in the rule of multiply
    assert (found.direction, found.op) == ("forward", "log")


def test_what_came_from_outside_is_said_to(x):
    for values in ([1.0, np.nan, 1.0], [1.0, np.inf, 1.0]):
        with tf.GradientTape(trace="values") as tape:
            z = tf.reduce_sum(x * tf.constant(values))
        found = tape.find_nonfinite(z, x)
        assert (found.direction, found.op, found.indices) == ("input", "multiply", ((1,),))
    x.assign([np.nan, 1.0, 1.0])
    with tf.GradientTape(trace="values") as tape:
        z = tf.reduce_sum(tf.exp(x))
    assert tape.find_nonfinite(z, x).direction == "input"


def test_nothing_found_is_false(x):
    with tf.GradientTape() as tape:
        z = tf.reduce_sum(x * x)
    found = tape.find_nonfinite(z, x)
    assert not found
    assert str(found) == "All values and gradients are finite."


def test_without_trace_kernels_are_replayed_from_what_is_known(x):
    with tf.GradientTape() as tape:
        z = tf.reduce_sum(tf.math.log(2.0 * x + 0.0))
    found = tape.find_nonfinite(z, x)
    assert (found.op, found.place) == ("log", None)
    assert "trace='values'" in str(found)


def test_a_custom_gradient_is_named(x):
    @tf.custom_gradient
    def broken(x):
        return x + 1.0, lambda g: g / 0.0

    with tf.GradientTape(trace="values") as tape:
        z = tf.reduce_sum(broken(x))
    found = tape.find_nonfinite(z, x)
    assert (found.direction, found.op) == ("backward", "broken")


def test_a_target_of_another_tape_and_a_used_tape(x):
    with tf.GradientTape() as tape:
        z = tf.reduce_sum(x)
    tape.gradient(z, x)
    with pytest.raises(RuntimeError, match="nothing left to show"):
        tape.find_nonfinite(z, x)
    with tf.GradientTape(trace="values") as tape:
        tf.exp(x)
    assert not tape.find_nonfinite(tf.constant(1.0), x)


# Compiled calls


def test_a_compiled_step_is_replayed_eagerly_and_changes_nothing(x):
    pytest.importorskip("jax")

    @tf.function
    def step(scale):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sqrt(x * scale))
        x.assign_sub(tape.gradient(loss, x))
        return loss

    before = x.numpy().copy()
    found = step.find_nonfinite(tf.constant([1.0, 1.0, 1.0]))
    assert (found.direction, found.op) == ("backward", "sqrt")
    assert found.place.text == "loss = tf.reduce_sum(tf.sqrt(x * scale))"
    np.testing.assert_array_equal(x.numpy(), before)
    assert not step.find_nonfinite(tf.constant([1.0, 0.0, 1.0])) or found.indices == ((1,),)


def test_a_forward_op_of_a_compiled_function_is_named():
    pytest.importorskip("jax")

    @tf.function
    def inner(x):
        return tf.math.log(x)

    @tf.function
    def outer(x):
        return inner(x - 1.0) * 2.0

    found = outer.find_nonfinite(np.array([1.0, 2.0], np.float32))
    assert (found.direction, found.op, found.indices) == ("forward", "log", ((0,),))
    assert found.place.text == "return tf.math.log(x)"
    assert not outer.find_nonfinite(np.array([2.0], np.float32))


# check_numerics


def test_a_tape_that_checks_raises_at_the_op(x):
    expected = pytest.raises(tf.errors.InvalidArgumentError, match='output 0 of eagerly-executing op "Log"')
    with expected as caught, tf.GradientTape(check_numerics=True):
        tf.math.log(x)
    assert "Tensor had Inf values" in str(caught.value)
    assert "test_nonfinite.py" in str(caught.value)


def test_a_tape_that_checks_raises_at_the_rule(x):
    with tf.GradientTape(check_numerics=True) as tape:
        y = tf.sqrt(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match='gradient 0 of eagerly-executing op "Sqrt"'):
        tape.gradient(y, x)


def test_a_tape_that_checks_leaves_finite_work_alone(x):
    with tf.GradientTape(check_numerics=True) as tape:
        y = tf.reduce_sum(tf.exp(x) * x)
    assert np.isfinite(tape.gradient(y, x).numpy()).all()
