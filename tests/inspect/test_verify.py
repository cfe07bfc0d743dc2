"""`tape.verify`: right rules pass, and every rule of every op is caught when its result is scaled by 1.001."""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from pathlib import Path

import every_op  # noqa: F401
import numpy as np
import pytest

import gradtape as tf
from gradtape.core.op import OPS
from gradtape.values.tensor import Tensor, wrap

OPS_FOLDER = Path(__file__).parent.parent / "ops"


def _records():
    found = {}
    for path in sorted(OPS_FOLDER.glob("records_*.py")):
        spec = importlib.util.spec_from_file_location(f"verify_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for record in module.RECORDS:
            for name in (record.name, *record.also):
                found.setdefault(name, []).append(record)
    return found


RECORDS = _records()
BY_DEFINITION = {"gamma_sample", "truncated_sample", "fake_quantize"}  # their derivative is not that of the kernel
RULES = [
    (name, i) for name, call in sorted(OPS.items()) if call.op.rules and name not in BY_DEFINITION
    for i, rule in enumerate(call.op.rules) if rule is not None and (name, i) != ("nextafter", 1)  # 0, a thousandth more or not
]  # fmt: skip


@contextmanager
def mutated(spec, position, factor=1.001):
    """The rule of one argument gives a little more than it should."""

    def scaled(rule):
        def run(xp, g, *args, **kwargs):
            found = rule(xp, g, *args, **kwargs)
            if isinstance(found, (list, tuple)):
                return [None if h is None else h * factor for h in found]
            return None if found is None else found * factor

        return run

    saved = spec.rules, spec.rule_x, spec.rule_y
    rules = list(spec.rules)
    rules[position] = (scaled(rules[position][0]), *rules[position][1:])
    spec.rules = tuple(rules)
    if spec.paired:
        name = ("rule_x", "rule_y")[position]
        setattr(spec, name, scaled(getattr(spec, name)))
    try:
        yield
    finally:
        spec.rules, spec.rule_x, spec.rule_y = saved


def run(record, sample, made_complex=False):
    """A tape on which a record's op was run once."""
    values = [wrap(np.array(a)) for a in sample]
    if made_complex:
        values = [tf.complex(v, 0.3 + 0.5 * v) if v.dtype.is_floating else v for v in values]  # as sign needs it
    watched = [v for v in values if isinstance(v, Tensor) and v.dtype.is_trainable]
    with tf.GradientTape(trace="values", persistent=True) as tape:
        tape.watch(watched)
        record.function(*values)
    return tape


def recorded(name):
    """Tapes on which the op was recorded, the simplest first."""
    records = sorted(RECORDS[name], key=lambda record: not record.differentiable)
    for record, made_complex in [(r, False) for r in records] + [(r, True) for r in records if r.complex]:
        for sample in record.samples(np.random.default_rng(7)):
            tape = run(record, tuple(np.asarray(a) for a in sample), made_complex)
            if any(entry.name == name for entry in tape.trace.entries.values()):
                yield tape


@pytest.mark.parametrize(("name", "position"), RULES, ids=[f"{name}-{i}" for name, i in RULES])
def test_a_rule_that_is_off_by_a_thousandth_is_named(name, position):
    spec = OPS[name].op
    for tape in recorded(name):
        honest = tape.verify()
        assert not [wrong for wrong in honest.wrong if wrong.op == name], str(honest)
        with mutated(spec, position):
            found = {wrong.op for wrong in tape.verify().wrong}
        if found:
            assert found == {name}
            return
    raise AssertionError(f"no sample shows that rule {position} of {name} is wrong")


def test_what_was_right_passes_and_what_was_wrong_is_named_with_its_line():
    @tf.custom_gradient
    def cube(x):
        return x * x * x, lambda g: g * 3.003 * x * x

    x, w = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)), tf.Variable(np.ones((4, 2), np.float32))
    with tf.GradientTape(trace="values") as tape:
        y = tf.tanh(tf.nn.relu(x) @ w) + 2.0
        z = cube(y)
        tf.reduce_sum(z * tf.exp(x @ w))
    report = tape.verify()
    (wrong,) = report.wrong
    assert not report
    assert (wrong.op, wrong.place.text) == ("cube", "z = cube(y)")
    assert wrong.error == pytest.approx(1e-3, rel=0.1)
    assert "cube at test_verify.py" in str(report)
    assert report.checked > 10


def test_a_kink_is_checked_beside_it():
    x = tf.Variable([0.0, 1.0, -1.0])
    with tf.GradientTape() as tape:
        tf.nn.relu(x)
    assert tape.verify().checked == 1
    assert tape.verify()


def test_what_cannot_be_checked_is_said():
    x = tf.Variable([1.0, 2.0])

    @tf.function
    def double(x):
        return 2.0 * x

    with tf.GradientTape(trace="values") as tape:
        tf.math.log(x - 1.0)
        tf.sqrt(tf.math.log(x - 1.0))
        double(x)
    reasons = {op: reason for _, op, reason in tape.verify().skipped}
    assert "not finite" in reasons["sqrt"]
    assert "not known" in reasons["double"]


def test_a_custom_gradient_that_needs_float32_is_checked_in_it():
    weight = tf.constant([1.0, 2.0])

    @tf.custom_gradient
    def scaled(x):
        return x * weight, lambda g: g * weight * 1.5

    x = tf.Variable([3.0, 4.0])
    with tf.GradientTape(trace="values") as tape:
        scaled(x)
    assert [wrong.op for wrong in tape.verify().wrong] == ["scaled"]


def test_a_used_tape_that_traced_can_still_be_verified_and_another_says_so():
    x = tf.Variable(2.0)
    for trace in (True, False):
        with tf.GradientTape(trace=trace) as tape:
            y = x * x
        tape.gradient(y, x)
        if trace:
            assert tape.verify()
        else:
            with pytest.raises(RuntimeError, match="nothing left to show"):
                tape.verify()


def test_a_deadline_is_kept_and_a_tape_without_values_says_so():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(trace="values") as tape:
        y = x
        for _ in range(100):
            y = tf.sin(y)
    report = tape.verify(seconds=0.0)
    assert report.checked == 0
    assert "0 seconds were over" in str(report)


def test_a_tape_inside_a_program_that_is_being_made_says_that_it_knows_no_values():
    pytest.importorskip("jax")

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.exp(x)
        for question in (tape.verify, tape.profile, lambda: tape.find_nonfinite(y, x)):
            with pytest.raises(RuntimeError, match="not known yet"):
                question()
        return y

    f(tf.constant([1.0]))


@pytest.mark.parametrize("size", [1e6, 1e10, 1e30])
def test_right_rules_pass_beside_values_that_swallow_small_steps(size):
    x = tf.Variable([size, 1.0 / size])
    with tf.GradientTape(trace="values") as tape:
        tf.reduce_sum(tf.sqrt(x) + x * 3.0)
    verification = tape.verify()
    assert verification, str(verification)
    assert not verification.skipped
    with mutated(OPS["sqrt"].op, 0):
        (wrong,) = tape.verify().wrong
    assert wrong.op == "sqrt"
