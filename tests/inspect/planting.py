"""Random programs over the registry of ops, and NaN planted in one op of them: in what it gives, or in what its rule gives."""

from __future__ import annotations

import copy
from contextlib import contextmanager, nullcontext

import every_op  # noqa: F401
import numpy as np

import gradtape as tf
from gradtape.core.op import OPS

# How ops that need more than arrays of any shape are called; ops of one or two arrays need no entry.
CALLS = {
    "sum": {"axis": 0}, "mean": {"axis": -1, "keepdims": True}, "prod": {"axis": 0}, "max": {"axis": 1}, "min": {},
    "logsumexp": {"axis": 0}, "cumsum": {"axis": 0}, "cumprod": {"axis": 0}, "reshape": {"shape": (-1,)},
    "transpose": {"axes": None}, "matrix_transpose": {}, "expand_dims": {"axis": 0}, "broadcast_to": {"shape": (2, 3, 4)},
    "tile": {"repeats": (2, 1)}, "pad": {"widths": ((1, 0), (0, 1))}, "flip": {"axis": 0}, "roll": {"shift": 1, "axis": 0},
    "repeat": {"repeats": 2, "axis": 0}, "getitem": {"index": (slice(1, None),)}, "sort": {"axis": -1}, "identity": {},
    "softmax": {}, "log_softmax": {}, "leaky_relu": {}, "l2_loss": {}, "polygamma": {"n": 1},
    "divide_no_nan": {}, "multiply_no_nan": {}, "xlogy": {}, "xlog1py": {}, "xdivy": {}, "sigmoid_cross_entropy": {},
    "silu": {}, "concatenate": {"axis": 0}, "stack": {"axis": 0}, "add_n": {}, "einsum": {"equation": "ij,ij->j"},
    "cholesky": {}, "det": {}, "inv": {}, "expm": {},
}  # fmt: skip
NAMES = sorted(
    {name for name, call in OPS.items() if call.op.paired and call.op.rules and call.op.closed and name != "complex"} | {*CALLS}
)


def _is_tame(array: np.ndarray) -> bool:
    return bool(array.size and np.isfinite(array).all() and np.abs(array).max() < 1e3)


class Program:
    """A straight line of ops on two variables; the target is the sum of everything that no later op reads."""

    def __init__(self, seed: int, length: int = 8) -> None:
        rng = np.random.default_rng(seed)
        self.variables = [tf.Variable(rng.uniform(0.3, 0.9, size=(3, 4))), tf.Variable(rng.uniform(0.3, 0.9, size=(4, 4)))]
        self.steps: list[tuple[str, tuple[int, ...]]] = []
        pool = [v.value() for v in self.variables]
        while len(self.steps) < length:
            name = NAMES[rng.integers(len(NAMES))]
            operands = tuple(int(i) for i in rng.integers(len(pool), size=self._arity(name)))
            values = [pool[i] for i in operands]
            try:
                with tf.GradientTape() as tape:
                    tape.watch(values)
                    found = OPS[name](*values, **CALLS.get(name, {}))
                gradients = tape.gradient(found, values, unconnected_gradients="zero")
            except (tf.errors.OpError, ValueError, TypeError, ArithmeticError, IndexError):  # shapes that do not go together
                continue
            if found.dtype == tf.float64 and all(_is_tame(x.numpy()) for x in (found, *gradients)):
                pool.append(found)
                self.steps.append((name, operands))

    @staticmethod
    def _arity(name: str) -> int:
        op = OPS[name].op
        return 2 if op.variadic else len(op.inputs)

    def run(self, trace: bool | str = "values", at: int | None = None, value: float = np.nan):
        """The tape, the target, and the numbers of the records of the steps; ``value`` is planted in what step ``at`` gives."""
        with tf.GradientTape(persistent=True, trace=trace) as tape:
            pool = list(self.variables)
            numbers = []
            for i, (name, operands) in enumerate(self.steps):
                numbers.append(sum(record[0] is not None for record in tape.records.values()))
                with planted_kernel(OPS[name], value) if i == at else nullcontext():
                    pool.append(OPS[name](*(pool[k] for k in operands), **CALLS.get(name, {})))
            read = {k for _, operands in self.steps for k in operands}
            target = tf.add_n([tf.reduce_sum(x) for k, x in enumerate(pool) if k not in read])
        return tape, target, numbers


def spoilt(array, value):
    """A copy with ``value`` in one place."""
    array = np.array(array, order="C")
    array.reshape(-1)[array.size // 2] = value
    return array


@contextmanager
def planted_kernel(call, value):
    """Whoever calls the op meanwhile gets ``value`` in one place."""
    cells = dict(zip(call.__code__.co_freevars, call.__closure__ or ()))
    owners = [(cells[name], "cell_contents") for name in ("function", "kernel") if name in cells] + [(call.op, "kernel")]
    saved = [getattr(owner, name) for owner, name in owners]
    for (owner, name), kernel in zip(owners, saved):
        setattr(owner, name, lambda *args, kernel=kernel, **attributes: spoilt(kernel(*args, **attributes), value))
    try:
        yield
    finally:
        for (owner, name), kernel in zip(owners, saved):
            setattr(owner, name, kernel)


def plant_rule(tape, number, value):
    """The tape with ``value`` in one place of what the rule of its record ``number`` gives."""
    key, record = [(k, r) for k, r in tape.records.items() if r[0] is not None][number]
    op = copy.copy(record[1])

    def planted(rule):
        def run(xp, g, *args, **kwargs):
            found = rule(xp, g, *args, **kwargs)
            if isinstance(found, (list, tuple)):
                return [spoilt(found[0], value), *found[1:]]
            return spoilt(found, value)

        return run

    position = next(i for i, k in enumerate(record[2]) if k and (op.joint or op.rules[i] is not None))
    position = 0 if op.joint else position
    rules = list(op.rules)
    rules[position] = (planted(rules[position][0]), *rules[position][1:])
    op.rules = tuple(rules)
    if op.paired:
        name = ("rule_x", "rule_y")[position]
        setattr(op, name, planted(getattr(op, name)))
    tape.records[key] = (record[0], op, *record[2:])
