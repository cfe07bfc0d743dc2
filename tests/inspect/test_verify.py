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
    for i, rule in enumerate(call.op.rules) if rule is not None
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
        values = [tf.complex(v, 0.3 + 0.5 * v) if v.dtype.is_floating else v for v in values]
    watched = [v for v in values if isinstance(v, Tensor) and v.dtype.is_trainable]
    with tf.GradientTape(trace=True, persistent=True) as tape:
        tape.watch(watched)
        record.function(*values)
    return tape


def recorded(name):
    """Tapes on which the op was recorded, the simplest first."""
    for record in sorted(RECORDS[name], key=lambda record: not record.differentiable):
        for sample in record.samples(np.random.default_rng(7)):
            tape = run(record, tuple(np.asarray(a) for a in sample))
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
