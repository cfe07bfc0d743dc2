"""Random programs with types: each step is drawn from those that fit the values made so far.

A program has floating inputs of one dtype (others come in by casts), row numbers, variables that it may assign, an input that
nothing reads, and a nested result. Steps that jump (``round``, ``maximum``, ``sort`` …) are drawn only where the numbers are
clear of the jump, so that rounding cannot decide which side they fall on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as tf

LARGEST = 24
"""The most elements of a value: what is tested does not depend on sizes."""
DTYPES = ["float64"] * 5 + ["float32"] * 2 + ["float16", "bfloat16", "complex128", "complex64"]
SHAPES = [(), (2,), (3,), (4,), (2, 2), (2, 3), (1, 3), (3, 1, 2)]


def clear(x: Any, distance: float = 0.05) -> bool:
    """Whether no number is near zero."""
    return bool((np.abs(x.astype(np.float64)) > distance).all())


def apart(x: np.ndarray) -> bool:
    """Whether all numbers differ clearly."""
    return clear(np.diff(np.sort(x.astype(np.float64).reshape(-1))))


# What a value is


def real(x: np.ndarray) -> bool:
    return tf.as_dtype(x.dtype).is_floating


def full(x: np.ndarray) -> bool:
    """Real numbers in a dtype that linear algebra takes."""
    return x.dtype in (np.float32, np.float64)


def is_complex(x: np.ndarray) -> bool:
    return x.dtype.kind == "c"


def numeric(x: np.ndarray) -> bool:
    return real(x) or is_complex(x)


def whole(x: np.ndarray) -> bool:
    return x.dtype.kind == "i"


def rank(low: int, high: int = 9, kind: Any = numeric) -> Any:
    return lambda x: kind(x) and low <= x.ndim <= high


def also(kind: Any, *conditions: Any) -> Any:
    return lambda *values: kind(values[0]) and all(condition(*values) for condition in conditions)


def matching(x: np.ndarray, y: np.ndarray) -> bool:
    try:
        return x.dtype == y.dtype and np.broadcast_shapes(x.shape, y.shape) is not None
    except ValueError:
        return False


def both(kind: Any, *conditions: Any) -> Any:
    return lambda x, y: kind(x) and kind(y) and matching(x, y) and all(condition(x, y) for condition in conditions)


def differ(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether no two numbers are near each other."""
    return clear(x.astype(np.float64) - y.astype(np.float64))


# Steps

sign_is_known = also(real, clear)


@tf.custom_gradient
def clipped_slope(x):
    return x * tf.sigmoid(x), lambda g: g * tf.tanh(x)


@tf.custom_gradient
def two_results(x):
    return (x + 1, x * x), lambda g, h: g + 2 * h * tf.stop_gradient(x)


def flat(x):
    return tf.reshape(x, [-1])


def square_matrix(x):
    """A well-conditioned symmetric matrix."""
    x = flat(x)[:3]
    return x[:, None] * x[None, :] + 2 * tf.eye(x.shape[0], dtype=x.dtype)


def chosen(x, y):
    rows = tf.range(tf.size(x + y)) % 2 == 0
    return tf.where(tf.reshape(rows, (x + y).shape), x, y)


def image(x):
    return tf.reshape(tf.tile(flat(x), [8])[:8], [1, 2, 4, 1])


def complex_parts(x, y):
    return tf.complex(*(tf.broadcast_to(part, (x + y).shape) for part in (x, y)))


UNARY: list[tuple[str, Any, Any]] = [
    ("sin", numeric, tf.sin),
    ("tanh", numeric, tf.tanh),
    ("sigmoid", numeric, tf.sigmoid),
    ("softplus", real, tf.nn.softplus),
    ("square", numeric, lambda x: tf.square(x) / 2),
    ("exp", numeric, lambda x: tf.exp(-x * x / 4)),
    ("sqrt", real, lambda x: tf.sqrt(1 + x * x)),
    ("log1p", real, lambda x: tf.math.log1p(x * x)),
    ("reciprocal", real, lambda x: 1 / (1.5 + x * x)),
    ("power", real, lambda x: (1.5 + x * x) ** 1.5 / 4),
    ("erf", full, tf.math.erf),
    ("atan", real, tf.atan),
    ("negative", numeric, lambda x: -x / 3),
    ("abs", sign_is_known, tf.abs),
    ("relu", sign_is_known, tf.nn.relu),
    ("leaky_relu", sign_is_known, tf.nn.leaky_relu),
    ("elu", sign_is_known, tf.nn.elu),
    ("gelu", real, tf.nn.gelu),
    ("sign", sign_is_known, tf.sign),
    ("floor", lambda x: full(x) and clear(x - np.round(x)), lambda x: x * tf.floor(x)),
    ("clip", lambda x: real(x) and clear(np.abs(x) - np.ones((), x.dtype)), lambda x: tf.clip_by_value(x, -1, 1)),
    ("stop_gradient", numeric, lambda x: x + tf.stop_gradient(x)),
    ("custom", real, clipped_slope),
    ("custom pair", real, lambda x: two_results(x)[1] / 2),
    ("recomputed", real, tf.recompute_grad(lambda x: tf.sin(x) * x)),
    ("passed through", lambda x: full(x) and clear(x - np.round(x) - 0.5), tf.grad_pass_through(tf.round)),
    ("to float32", real, lambda x: tf.cast(x, "float32")),
    ("to float64", real, lambda x: tf.cast(x, "float64")),
    ("to int", lambda x: full(x) and clear(x - np.round(x)), lambda x: tf.cast(x, "int32")),
    ("int arithmetic", whole, lambda x: (x * 3 + 1) // 2 % 5),
    ("int to float", whole, lambda x: tf.cast(x, "float64") / 7),
    ("is positive", sign_is_known, lambda x: tf.cast(x > 0, "int32")),
    ("sum", rank(1), lambda x: tf.reduce_sum(x, 0)),
    ("mean", rank(1), lambda x: tf.reduce_mean(x, -1, keepdims=True)),
    ("variance", rank(1, kind=real), lambda x: tf.math.reduce_variance(x, -1)),
    ("norm", real, lambda x: tf.norm(flat(x)[:, None] + [[1, 2]], axis=1)),
    ("max", also(rank(1, kind=real), apart), lambda x: tf.reduce_max(x, 0)),
    ("min", also(rank(1, kind=real), apart), lambda x: tf.reduce_min(x)),
    ("argmax", also(rank(1, kind=real), apart), lambda x: tf.argmax(x, -1, "int32")),
    ("sort", also(rank(1, kind=real), apart), lambda x: tf.sort(x, -1)),
    ("top_k", also(rank(1, kind=real), apart), lambda x: tf.math.top_k(flat(x), 1)[0]),
    ("prod", rank(1), lambda x: tf.reduce_prod(x, -1)),
    ("logsumexp", real, tf.reduce_logsumexp),
    ("cumsum", rank(1), lambda x: tf.cumsum(x, -1, exclusive=True)),
    ("cumprod", rank(1, kind=real), lambda x: tf.math.cumprod(x, 0, reverse=True)),
    ("softmax", rank(1, kind=real), tf.nn.softmax),
    ("log_softmax", rank(1, kind=real), tf.nn.log_softmax),
    ("transpose", numeric, tf.transpose),
    ("flat", numeric, flat),
    ("expand", numeric, lambda x: tf.expand_dims(x, 0)),
    ("squeeze", numeric, tf.squeeze),
    ("tile", rank(1), lambda x: tf.tile(flat(x), [2])),
    ("pad", rank(1), lambda x: tf.pad(flat(x), [[1, 0]])),
    ("reverse", rank(1), lambda x: tf.reverse(x, [-1])),
    ("roll", rank(1), lambda x: tf.roll(x, 1, 0)),
    ("slice", rank(1), lambda x: x[..., ::2]),
    ("part", rank(1), lambda x: x[0]),
    ("split", rank(1), lambda x: tf.stack(tf.split(tf.tile(flat(x), [2]), 2))[1]),
    ("unstack", rank(1), lambda x: tf.unstack(x)[-1]),
    ("broadcast", rank(0, 1), lambda x: tf.broadcast_to(x, [2, *x.shape])),
    ("repeat", rank(1), lambda x: tf.repeat(x, 2, 0)),
    ("fixed rows", rank(1), lambda x: tf.gather(flat(x), [0, 0, int(np.prod(x.shape)) - 1])),
    ("segments", rank(1), lambda x: tf.math.unsorted_segment_sum(flat(x), tf.range(tf.size(x)) % 2, 2)),
    ("scattered", rank(1), lambda x: tf.scatter_nd([[2], [0]], tf.stack([flat(x)[0], flat(x)[-1]]), [3])),
    ("inverse", rank(1, kind=full), lambda x: tf.linalg.inv(square_matrix(x))),
    ("cholesky", rank(1, kind=full), lambda x: tf.linalg.cholesky(square_matrix(x))),
    ("logdet", rank(1, kind=full), lambda x: tf.linalg.logdet(square_matrix(x))),
    ("trace", rank(1, kind=full), lambda x: tf.linalg.trace(square_matrix(x))),
    ("eigenvalue", rank(1, kind=full), lambda x: tf.linalg.eigvalsh(square_matrix(x))[-1]),
    ("avg_pool", rank(1, kind=full), lambda x: tf.nn.avg_pool2d(image(x), 2, 2, "SAME")),
    ("max_pool", also(rank(1, kind=full), apart), lambda x: tf.nn.max_pool1d(tf.reshape(x, [1, -1, 1]), 2, 1, "SAME")),
    ("conj", is_complex, tf.math.conj),
    ("real", is_complex, tf.math.real),
    ("imag", is_complex, tf.math.imag),
    ("modulus", also(is_complex, lambda x: clear(np.abs(x))), tf.abs),
    ("fft", rank(1, kind=is_complex), lambda x: tf.signal.fft(x) / 2),
    ("rfft", rank(1, kind=full), lambda x: tf.abs(tf.signal.rfft(tf.concat([flat(x), [5]], 0)))[:1]),
    ("jacobian", rank(1, 1, full), lambda x: row_sums_of_jacobian(x)),
    ("mapped", rank(1, kind=real), lambda x: tf.vectorized_map(lambda row: tf.sin(row) * tf.reduce_sum(row), x)),
]  # fmt: skip
BINARY: list[tuple[str, Any, Any]] = [
    ("add", both(numeric), tf.add),
    ("subtract", both(numeric), tf.subtract),
    ("multiply", both(numeric), tf.multiply),
    ("divide", both(real), lambda x, y: x / (2 + y * y)),
    ("atan2", both(full, lambda x, y: clear(x) and clear(y)), tf.atan2),
    ("maximum", both(real, differ), tf.maximum),
    ("minimum", both(real, differ), tf.minimum),
    ("where", both(numeric), chosen),
    ("where greater", both(real, differ), lambda x, y: tf.where(x > y, x * y, y)),
    ("squared_difference", both(real), tf.math.squared_difference),
    ("stack", lambda x, y: numeric(x) and x.dtype == y.dtype and x.shape == y.shape, lambda x, y: tf.stack([x, y], -1)),
    ("concat", lambda x, y: numeric(x) and x.dtype == y.dtype, lambda x, y: tf.concat([flat(x), flat(y)], 0)),
    ("outer", lambda x, y: numeric(x) and x.dtype == y.dtype, lambda x, y: tf.tensordot(flat(x), flat(y), 0)),
    ("matmul", lambda x, y: numeric(x) and x.dtype == y.dtype and min(x.ndim, y.ndim) > 1 and x.shape[-1] == y.shape[-1],
     lambda x, y: tf.matmul(x, y, transpose_b=True)),
    ("einsum", both(numeric, lambda x, y: x.shape == y.shape and x.ndim == 2), lambda x, y: tf.einsum("ij,kj->ki", x, y)),
    ("dot", both(numeric, lambda x, y: x.shape == y.shape), lambda x, y: tf.einsum("i,i->", flat(x), flat(y))),
    ("solve", lambda x, y: full(x) and x.dtype == y.dtype and y.ndim and len(x.reshape(-1)[:3]) == len(y),
     lambda x, y: tf.linalg.solve(square_matrix(x), tf.reshape(y, [y.shape[0], -1]))),
    ("conv", lambda x, y: full(x) and x.dtype == y.dtype,
     lambda x, y: tf.nn.conv2d(image(x), tf.reshape(tf.tile(flat(y), [4])[:4], [2, 2, 1, 1]), 1, "SAME")),
    ("complex", both(full), complex_parts),
    ("cross entropy", both(real, lambda x, y: x.shape == y.shape),
     lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(y), logits=x)),
]  # fmt: skip
ROWS: list[tuple[str, Any, Any]] = [  # of a value and of row numbers that are not known while the program is made
    ("gather", rank(1), lambda x, rows: tf.gather(x, rows % x.shape[0])),
    ("gather last", rank(2, 2), lambda x, rows: tf.gather(x, rows % x.shape[1], axis=1)),
    ("gather_nd", rank(1), lambda x, rows: tf.gather_nd(x, rows[:, None] % x.shape[0])),
    ("element", rank(1), lambda x, rows: x[rows[0] % x.shape[0]]),
    ("one_hot", rank(0, 1), lambda x, rows: tf.one_hot(rows, 3, dtype=x.dtype) * tf.reduce_mean(x)),
    ("scatter add", rank(1, 1), lambda x, rows: tf.tensor_scatter_nd_add(x, rows[:1, None] % x.shape[0], x[:1] * 2)),
    ("sparse entropy", rank(1, kind=real), lambda x, rows: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=rows[:1] % (x.shape[-1]), logits=tf.reshape(x, [-1, x.shape[-1]])[:1])),
]  # fmt: skip


def row_sums_of_jacobian(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(x) * tf.reduce_sum(x)
    return tf.reduce_sum(tape.jacobian(y, x), 1)


UPDATES: dict[str, Any] = {"read": tf.identity, "assigned": tf.sin, "added to": lambda x: x + tf.stop_gradient(x) / 2}
"""What a variable becomes before the first step."""


class Refused(Exception):
    """The program became too large, or left the numbers that can be compared."""


class Program:
    """A list of steps, of which each makes one more value: ``run(inputs, rows, variables)``."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        for _ in range(200):
            try:
                self._draw()
            except Refused:
                continue
            return
        raise AssertionError(f"no program for seed {seed}")

    def __repr__(self) -> str:
        inputs = ", ".join(f"{a.dtype.name}{list(a.shape)}" for a in self.inputs)
        steps = "; ".join(f"{n + len(self.inputs)}: {name} {args}" for n, (name, _, args) in enumerate(self.steps))
        return f"Program({self.seed}): inputs {inputs}; variables {self.updates}; {steps}; results {self.results}"

    def _draw(self) -> None:
        rng, dtype = self.rng, tf.as_dtype(self.rng.choice(DTYPES))
        self.inputs = [self._numbers(dtype) for _ in range(rng.integers(1, 4))]
        self.unused = self._numbers(dtype)
        self.rows = rng.integers(0, 9, rng.integers(1, 4)).astype(rng.choice(["int32", "int64"]))
        self.initial = [self._numbers(dtype) for _ in range(rng.integers(0, 3))]
        self.updates = [str(rng.choice(list(UPDATES))) for _ in self.initial]
        self.steps: list[tuple[str, Any, tuple[int, ...]]] = []
        values = [*self.inputs, *(UPDATES[update](tf.constant(a)).numpy() for a, update in zip(self.initial, self.updates))]
        values = [np.asarray(value) for value in values]
        for _ in range(rng.integers(2, 6)):
            values.append(self._step(values))
        count = len(values)
        self.results = sorted({count - 1, *rng.integers(0, count, 2).tolist()})
        self.cut = int(rng.integers(0, len(self.steps) + 1))

    def _numbers(self, dtype: tf.DType) -> np.ndarray:
        shape = SHAPES[self.rng.integers(len(SHAPES))]
        numbers = self.rng.uniform(-1.5, 1.5, shape) + (1j * self.rng.uniform(-1, 1, shape) if dtype.is_complex else 0)
        return np.asarray(numbers).astype(dtype.as_numpy_dtype)

    def _step(self, values: list) -> np.ndarray:
        """Draw a step, and see what it makes of the numbers at hand."""
        for _ in range(100):
            table = (UNARY, BINARY, ROWS)[self.rng.choice(3, p=[0.6, 0.3, 0.1])]
            name, fits, function = table[self.rng.integers(len(table))]
            # the newest values are the likeliest, so that programs become deep
            args = tuple(int(max(0, len(values) - 1 - self.rng.geometric(0.4) + 1)) for _ in range(1 + (table is BINARY)))
            if fits(*(values[i] for i in args)):
                more = (tf.constant(self.rows),) if table is ROWS else ()
                value = function(*(tf.constant(values[i]) for i in args), *more).numpy()
                value = np.asarray(value)
                if value.size == 0 or value.size > LARGEST or not np.isfinite(value).all() or np.abs(value).max() > 30:
                    continue
                self.steps.append((name, function, (*args, -1) if more else args))
                return value
        raise Refused

    def precisions(self) -> set[str]:
        """The dtypes that it computes in."""
        casts = {name.removeprefix("to ") for name, _, _ in self.steps if name.startswith("to float")}
        return casts | {self.unused.dtype.name}

    def variables(self) -> list[tf.Variable]:
        return [tf.Variable(a) for a in self.initial]

    def first(self, inputs: list, rows: Any, variables: list) -> list:
        """What the steps up to the cut make; variables change here."""
        for variable, update in zip(variables, self.updates):
            if update != "read":
                variable.assign(UPDATES[update](variable))
        return self._made(self.steps[: self.cut], [*inputs, *variables], rows)

    def second(self, inputs: list, rows: Any, variables: list, made: list) -> Any:
        """The result, from what the first steps made."""
        values = [*inputs, *variables, *made]
        values += self._made(self.steps[self.cut :], values, rows)
        picked = [tf.identity(values[i]) for i in self.results]
        return {"last": picked[-1], "others": (picked[:-1], None)}

    def run(self, inputs: list, rows: Any, variables: list) -> Any:
        return self.second(inputs, rows, variables, self.first(inputs, rows, variables))

    def _made(self, steps: list, values: list, rows: Any) -> list:
        values, known = list(values), len(values)
        for _, function, args in steps:
            values.append(function(*(rows if i == -1 else values[i] for i in args)))
        return values[known:]
