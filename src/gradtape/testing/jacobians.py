"""Theoretical and numerical Jacobians side by side, for tests that compare them themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

_DELTA = 1.0 / 1024  # exact in binary, so that x ± delta rounds little


def compute_gradient(
    f: Callable[..., Any], x: Sequence[Any], delta: float | None = None
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The Jacobians of ``f(*x)`` by the tape and by central differences of step ``delta``: one matrix per argument each.

    Rows are output entries, columns entries of the argument; complex entries count as two reals.

    >>> theoretical, numerical = compute_gradient(lambda a: a * 3.0, [[1.0, 2.0]])
    >>> theoretical[0].tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    if not isinstance(x, (list, tuple)):
        text = f"`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not a {type(x)}"
        raise ValueError(message(text, fix="a list of the arguments: [x]"))
    arguments = [convert_to_tensor(value) for value in x]
    for i, argument in enumerate(arguments):
        if not argument.dtype.is_trainable:
            text = f"Cannot compute gradient for unsupported type {argument.dtype.name} of argument {i}"
            raise ValueError(message(text, fix="tf.cast it to tf.float32 inside the function, or leave it out of x"))
    step = _DELTA if delta is None else delta
    theoretical = tuple(_theoretical(f, arguments, i) for i in range(len(arguments)))
    numerical = tuple(_numerical(f, arguments, i, step) for i in range(len(arguments)))
    return theoretical, numerical


def max_error(grad1: Sequence[np.ndarray], grad2: Sequence[np.ndarray]) -> float:
    """The largest absolute difference between two results of `compute_gradient`, such as theoretical and numerical."""
    error = 0.0
    for one, two in zip(grad1, grad2, strict=True):
        if one.size or two.size:
            error = np.maximum(error, np.fabs(one - two).max())  # keeps nan
    return float(error)


def _theoretical(f: Callable, arguments: list[Tensor], position: int) -> np.ndarray:
    source = arguments[position]
    with GradientTape(persistent=True) as tape:
        tape.watch(source)
        target = convert_to_tensor(f(*arguments))
    value = np.asarray(target.numpy())
    rows = []
    for seed in _units(value):
        g = tape.gradient(target, source, output_gradients=convert_to_tensor(seed), unconnected_gradients="zero")
        rows.append(_reals(np.asarray(convert_to_tensor(g).numpy())))
    width = _reals(np.asarray(source.numpy())).size
    return np.stack(rows) if rows else np.zeros((0, width), _reals(np.asarray(source.numpy())).dtype)


def _units(value: np.ndarray) -> list[np.ndarray]:
    """The cotangents that pick out each real of a value."""
    seeds = []
    for i in range(_reals(value).size):
        seed = np.zeros(value.shape, value.dtype)
        _reals(seed)[i] = 1
        seeds.append(seed)
    return seeds


def _numerical(f: Callable, arguments: list[Tensor], position: int, delta: float) -> np.ndarray:
    source = np.asarray(arguments[position].numpy())

    def moved(i: int, step: float) -> np.ndarray:
        copy = source.copy(order="C")
        _reals(copy)[i] += step
        values = [*arguments[:position], convert_to_tensor(copy), *arguments[position + 1 :]]
        return _reals(np.asarray(convert_to_tensor(f(*values)).numpy())).copy()

    columns = [(moved(i, delta) - moved(i, -delta)) / (2 * delta) for i in range(_reals(source).size)]
    value = _reals(np.asarray(convert_to_tensor(f(*arguments)).numpy()))
    return np.stack(columns, 1).astype(value.dtype) if columns else np.zeros((value.size, 0), value.dtype)


def _reals(array: np.ndarray) -> np.ndarray:
    """The entries as one row of reals, sharing memory with a contiguous array."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if array.dtype.kind == "c" else flat
