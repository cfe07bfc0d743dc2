"""Record what Keras's optimizers and schedules compute, for tests/optimizers/test_optimizer_goldens.py.

Needs tensorflow (with keras 3); the tests do not::

    python tools/record_optimizer_goldens.py tests/goldens/optimizers.json
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import tensorflow as tf

CHECKPOINTS = (1, 2, 10, 100)
SHAPES = {"kernel": (3, 4), "bias": (4,), "gain": ()}
SGD, ADAM, RMS = {"learning_rate": 0.05}, {"learning_rate": 0.02}, {"learning_rate": 0.01}
SCHEDULE = {"class_name": "CosineDecay", "config": {"initial_learning_rate": 0.1, "decay_steps": 60, "alpha": 0.1}}

CASES = [
    ("SGD", {}),
    ("SGD", {**SGD, "momentum": 0.9}),
    ("SGD", {**SGD, "momentum": 0.9, "nesterov": True}),
    ("SGD", {**SGD, "weight_decay": 0.01}),
    ("SGD", {**SGD, "clipnorm": 0.7}),
    ("SGD", {**SGD, "clipvalue": 0.3}),
    ("SGD", {**SGD, "global_clipnorm": 1.5}),
    ("SGD", {**SGD, "global_clipnorm": 1e3}),
    ("SGD", {**SGD, "use_ema": True, "ema_momentum": 0.9}),
    ("SGD", {**SGD, "use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 7}),
    ("SGD", {**SGD, "loss_scale_factor": 8.0}),
    ("SGD", {**SGD, "gradient_accumulation_steps": 3}),
    ("SGD", {"learning_rate": SCHEDULE, "momentum": 0.5}),
    ("SGD", {**SGD, "constraint": 0.4}),
    ("Adam", {}),
    ("Adam", {**ADAM, "amsgrad": True}),
    ("Adam", {**ADAM, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}),
    ("Adam", {**ADAM, "weight_decay": 0.02, "clipnorm": 1.0}),
    ("Adam", {**ADAM, "gradient_accumulation_steps": 4, "global_clipnorm": 0.5}),
    ("Adam", {**ADAM, "use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 5, "gradient_accumulation_steps": 2}),
    ("Adam", {"learning_rate": SCHEDULE}),
    ("AdamW", {}),
    ("AdamW", {**ADAM, "weight_decay": 0.1, "amsgrad": True, "clipvalue": 0.5}),
    ("AdamW", {**ADAM, "weight_decay": 0.1, "exclude": ["bias"]}),
    ("RMSprop", {}),
    ("RMSprop", {**RMS, "momentum": 0.7}),
    ("RMSprop", {**RMS, "centered": True}),
    ("RMSprop", {**RMS, "centered": True, "momentum": 0.7, "rho": 0.8, "epsilon": 1e-4}),
    ("Adagrad", {}),
    ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.5, "epsilon": 1e-3}),
    ("Adadelta", {}),
    ("Adadelta", {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-4}),
    ("Adamax", {}),
    ("Adamax", {**ADAM, "beta_1": 0.8, "beta_2": 0.9}),
    ("Nadam", {}),
    ("Nadam", {**ADAM, "beta_1": 0.8, "weight_decay": 0.01}),
    ("Lion", {}),
    ("Lion", {**ADAM, "beta_1": 0.8, "weight_decay": 0.1}),
    ("Ftrl", {}),
    ("Ftrl", {"learning_rate": 0.1, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02, "beta": 0.1,
              "l2_shrinkage_regularization_strength": 0.03, "learning_rate_power": -0.6}),
]  # fmt: skip

SPARSE = ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Lion", "Ftrl"]

SCHEDULES = [
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 17, "decay_rate": 0.7}),
    ("ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 17, "decay_rate": 0.7, "staircase": True}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 17, "decay_rate": 0.7}),
    ("InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 17, "decay_rate": 0.7, "staircase": True}),
    ("PiecewiseConstantDecay", {"boundaries": [5, 50], "values": [1.0, 0.3, 0.1]}),
    ("PiecewiseConstantDecay", {"boundaries": [5], "values": [1.0, 0.3]}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 40}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 40, "end_learning_rate": 0.01, "power": 0.5}),
    ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 40, "power": 2.0, "cycle": True}),
    ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 50}),
    ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 50, "alpha": 0.2}),
    ("CosineDecay", {"initial_learning_rate": 0.01, "decay_steps": 50, "warmup_target": 0.2, "warmup_steps": 11}),
    ("CosineDecay", {"initial_learning_rate": 0.01, "decay_steps": 50, "warmup_target": 0.2, "warmup_steps": 0}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 13}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 13, "t_mul": 1.0, "m_mul": 0.8}),
    ("CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 13, "t_mul": 1.5, "m_mul": 0.8, "alpha": 0.1}),
]
STEPS = [0, 1, 2, 5, 6, 11, 12, 14, 25, 39, 40, 41, 50, 51, 70, 99, 150]


def start(shape: tuple, number: int) -> np.ndarray:
    """Initial values, exact in every dtype."""
    size = int(np.prod(shape))
    return (((np.arange(size) * 7 + 3 * number) % 17 - 8) / 8).reshape(shape)


def gradient(shape: tuple, number: int, step: int) -> np.ndarray:
    """The gradient at a step: arbitrary, sometimes zero, exact in every dtype."""
    size = int(np.prod(shape))
    return (((np.arange(size) * 37 + step * 101 + number * 13) % 129 - 64) / 32).reshape(shape)


def missing(number: int, step: int) -> bool:
    """The second variable is without a gradient at some steps."""
    return number == 1 and step % 7 == 3


def plain(array: object) -> list:
    return np.asarray(array).astype(np.float64).tolist()


def run(name: str, options: dict, dtype: str) -> dict:
    options = dict(options)
    bound, exclude = options.pop("constraint", None), options.pop("exclude", None)
    if isinstance(options.get("learning_rate"), dict):
        options["learning_rate"] = tf.keras.optimizers.schedules.deserialize(options["learning_rate"])
    constraint = None if bound is None else lambda x: tf.clip_by_value(x, -bound, bound)
    variables = [
        tf.Variable(start(shape, i), dtype=dtype, name=n, constraint=constraint) for i, (n, shape) in enumerate(SHAPES.items())
    ]
    optimizer = getattr(tf.keras.optimizers, name)(**options)
    if exclude:
        optimizer.exclude_from_weight_decay(var_names=exclude)
    values = {}
    for step in range(1, 101):
        grads = [
            None if missing(i, step) else tf.constant(gradient(shape, i, step), dtype)
            for i, shape in enumerate(SHAPES.values())
        ]
        optimizer.apply_gradients(zip(grads, variables))
        if step in CHECKPOINTS:
            values[step] = [plain(v) for v in variables]
    state = [[v.name, plain(v)] for v in optimizer.variables]
    optimizer.finalize_variable_values(variables)
    return {"values": values, "state": state, "final": [plain(v) for v in variables], "iterations": int(optimizer.iterations)}


def run_sparse(name: str) -> list:
    variable = tf.Variable(start((5, 2), 0), dtype="float64", name="table")
    optimizer = getattr(tf.keras.optimizers, name)(learning_rate=0.1)
    for step in range(1, 11):
        rows = [step % 5, (step + 2) % 5]
        slices = tf.IndexedSlices(tf.constant(gradient((2, 2), 0, step), "float64"), tf.constant(rows), tf.constant([5, 2]))
        optimizer.apply_gradients([(slices, variable)])
    return plain(variable)


REPEATED: list = [
    *((name, {}) for name in ("SGD", "Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl", "Lion")),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"clipnorm": 1.0}),
    ("SGD", {"clipvalue": 0.5}),
    ("SGD", {"momentum": 0.9, "global_clipnorm": 1.5}),
    ("Adam", {"amsgrad": True}),
    ("Adam", {"clipnorm": 1.0}),
    ("Adam", {"clipvalue": 0.5}),
    ("Adam", {"global_clipnorm": 1.5, "weight_decay": 0.01}),
    ("Adam", {"use_ema": True, "ema_overwrite_frequency": 3}),
    ("Adam", {"gradient_accumulation_steps": 2, "clipnorm": 1.0}),
    ("Adagrad", {"clipvalue": 0.5}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
    ("Ftrl", {"l1_regularization_strength": 0.01, "l2_shrinkage_regularization_strength": 0.1, "beta": 0.1}),
]


def run_repeated(name: str, options: dict) -> dict:
    """Rows of a large and a small table, some of them several times."""
    variables = [tf.Variable(start(shape, i), dtype="float64", name=f"table{i}") for i, shape in enumerate(((5, 2), (300, 8)))]
    optimizer = getattr(tf.keras.optimizers, name).from_config({"learning_rate": 0.1, **options})
    for step in range(1, 13):
        grads = []
        for i, v in enumerate(variables):
            rows = [(step * k) % 5 for k in (1, 2, 1, 3, 0, 1)]
            values = tf.constant(gradient((6, v.shape[1]), i, step), "float64")
            grads.append(tf.IndexedSlices(values, tf.constant(rows), tf.constant(v.shape.as_list())))
        optimizer.apply_gradients(zip(grads, variables))
    return {"name": name, "options": options, "values": [plain(v[:5]) for v in variables]}


def main(path: str) -> None:
    warnings.simplefilter("ignore")
    cases = []
    for name, options in CASES:
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            if dtype in ("float16", "bfloat16") and options and name != "SGD":
                continue
            cases.append({"name": name, "options": options, "dtype": dtype, **run(name, options, dtype)})
    schedules = []
    for name, config in SCHEDULES:
        schedule = getattr(tf.keras.optimizers.schedules, name)(**config)
        schedules.append({"name": name, "config": config, "values": [float(schedule(s)) for s in STEPS]})
    defaults = {}
    for name in dict.fromkeys(name for name, _ in CASES):
        defaults[name] = {k: v for k, v in getattr(tf.keras.optimizers, name)().get_config().items() if k != "name"}
    goldens = {
        "keras": tf.keras.version(),
        "cases": cases,
        "sparse": {name: run_sparse(name) for name in SPARSE},
        "repeated": [run_repeated(name, options) for name, options in REPEATED],
        "steps": STEPS,
        "schedules": schedules,
        "defaults": defaults,
    }
    with open(path, "w") as file:
        json.dump(goldens, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
