"""Optimizers and schedules against what Keras computed (tools/record_optimizer_goldens.py)."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape import optimizers

GOLDENS = json.loads((Path(__file__).parent.parent / "goldens" / "optimizers.json").read_text())
SHAPES = {"kernel": (3, 4), "bias": (4,), "gain": ()}
# After 100 steps. Half precision: every operation rounds to 11 (8) bits, and the order of two of them may differ.
TOLERANCES = {"float64": 1e-10, "float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}


def start(shape, number):
    size = int(np.prod(shape))
    return (((np.arange(size) * 7 + 3 * number) % 17 - 8) / 8).reshape(shape)


def gradient(shape, number, step):
    size = int(np.prod(shape))
    return (((np.arange(size) * 37 + step * 101 + number * 13) % 129 - 64) / 32).reshape(shape)


def missing(number, step):
    return number == 1 and step % 7 == 3


def make(name, options):
    options = dict(options)
    exclude = options.pop("exclude", None)
    options.pop("constraint", None)
    optimizer = getattr(optimizers, name).from_config(options)
    if exclude:
        optimizer.exclude_from_weight_decay(var_names=exclude)
    return optimizer


def close(actual, expected, tolerance):
    np.testing.assert_allclose(np.asarray(actual).astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def allowed(case):
    if isinstance(case["options"].get("learning_rate"), dict):
        return max(TOLERANCES[case["dtype"]], 1e-6)  # schedules give float32
    if case["name"] == "Ftrl" and case["dtype"] == "float32":
        return 5e-6  # differences of close powers
    return TOLERANCES[case["dtype"]]


def label(case):
    return f"{case['name']}-{case['dtype']}-" + "-".join(k for k in case["options"] if k != "learning_rate")


@pytest.mark.parametrize("case", GOLDENS["cases"], ids=label)
def test_hundred_steps(case, caplog):
    caplog.set_level(logging.CRITICAL)
    dtype, bound, tolerance = case["dtype"], case["options"].get("constraint"), allowed(case)
    constraint = None if bound is None else lambda x: tf.constant(np.clip(x.numpy(), -bound, bound).astype(x.dtype.numpy))
    variables = [
        tf.Variable(start(shape, i), dtype=dtype, name=n, constraint=constraint) for i, (n, shape) in enumerate(SHAPES.items())
    ]
    optimizer = make(case["name"], case["options"])
    for step in range(1, 101):
        grads = [
            None if missing(i, step) else tf.constant(gradient(shape, i, step), dtype)
            for i, shape in enumerate(SHAPES.values())
        ]
        optimizer.apply_gradients(zip(grads, variables))
        if str(step) in case["values"]:
            for variable, expected in zip(variables, case["values"][str(step)]):
                close(variable.numpy(), expected, tolerance)
    assert int(optimizer.iterations) == case["iterations"]
    state = optimizer.variables
    assert len(state) == len(case["state"])
    for variable, (name, expected) in zip(state, case["state"]):
        if not name.startswith("variable"):  # Keras leaves Nadam's product without a name
            assert variable.name == f"{optimizer.name}/{name}:0"
        close(variable.numpy(), expected, tolerance)
    optimizer.finalize_variable_values(variables)
    for variable, expected in zip(variables, case["final"]):
        close(variable.numpy(), expected, tolerance)


@pytest.mark.parametrize("name", GOLDENS["sparse"])
def test_sparse(name):
    variable = tf.Variable(start((5, 2), 0), dtype="float64")
    optimizer = getattr(optimizers, name)(learning_rate=0.1)
    for step in range(1, 11):
        rows = [step % 5, (step + 2) % 5]
        values = tf.constant(gradient((2, 2), 0, step), "float64")
        optimizer.apply_gradients([(tf.IndexedSlices(values, rows, [5, 2]), variable)])
    close(variable.numpy(), GOLDENS["sparse"][name], 1e-12)


def repeated_gradients(variables, step):
    rows = [(step * k) % 5 for k in (1, 2, 1, 3, 0, 1)]
    values = [tf.constant(gradient((6, v.shape[1]), i, step), "float64") for i, v in enumerate(variables)]
    return [tf.IndexedSlices(g, rows, v.shape.as_list()) for g, v in zip(values, variables)]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", GOLDENS["repeated"], ids=lambda c: f"{c['name']}-" + "-".join(c["options"]))
def test_rows_that_come_several_times(case, compiled):
    """Keras squares, clips and takes the size of each slice before it adds them up."""
    variables = [tf.Variable(start(shape, i), dtype="float64") for i, shape in enumerate(((5, 2), (300, 8)))]
    optimizer = getattr(optimizers, case["name"]).from_config({"learning_rate": 0.1, **case["options"]})
    run = lambda grads: optimizer.apply_gradients(zip(grads, variables))
    if compiled:
        pytest.importorskip("jax")
        run = tf.function(run, jit_compile=True)
    for step in range(1, 13):
        run(repeated_gradients(variables, step))
    for variable, expected in zip(variables, case["values"]):
        close(variable.numpy()[:5], expected, 1e-11)
    np.testing.assert_array_equal(np.isfinite(variables[1]), True)


@pytest.mark.parametrize("case", GOLDENS["schedules"], ids=lambda c: f"{c['name']}-{len(c['config'])}")
def test_schedule(case):
    schedule = getattr(optimizers.schedules, case["name"])(**case["config"])
    values = [schedule(step) for step in GOLDENS["steps"]]
    assert all(v.dtype == tf.float32 and v.shape == () for v in values)
    np.testing.assert_allclose([float(v) for v in values], case["values"], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(schedule(tf.constant(GOLDENS["steps"])).numpy(), case["values"], rtol=1e-6, atol=1e-8)
    again = type(schedule).from_config(schedule.get_config())
    assert float(again(tf.Variable(12))) == float(schedule(12))


@pytest.mark.parametrize("name", GOLDENS["defaults"])
def test_defaults(name):
    config = getattr(optimizers, name)().get_config()
    del config["name"]
    assert config == GOLDENS["defaults"][name]
