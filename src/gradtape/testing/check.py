"""Compare the tape's gradients with numerical derivatives.

Every number is real here: a complex array counts as twice as many reals, which is exactly TensorFlow's convention (the
gradient of a real loss is ∂L/∂Re + i ∂L/∂Im). The numerical derivative of each entry comes from central differences at
steps from 10⁻¹ down to 10⁻⁷ (smaller beside 0, where poles live), extrapolated over every three neighbours; the
extrapolation that agrees best with its neighbours is taken, so poles, steep slopes and rounding are passed by, and the
estimate knows its own error. Where the first few steps agree to eight digits, the others are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.tape import GradientTape
from gradtape.errors import message
from gradtape.values import nest
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

_SHRINK = 4.0  # from one step to the next
_TRUST = 10.0  # how many times its own estimate of the numerical error a difference may be
_DOUBT = 1e-4  # but never more than this part of the largest derivative
_ROUNDING = 1e-13  # of the largest value: what is left where terms cancel
_HUGE = 1e100  # larger values stand for infinity, and say nothing about rounding
_FEW, _AGREED, _NOISE = 5, 1e-8, 2e-13  # so few steps are enough if the error is such a part of the derivative, or of the value
_ROWS = 64  # more outputs than this are checked by random combinations instead of one by one


class GradientMismatch(AssertionError):
    """A gradient of the tape differs from the numerical derivative."""


def check_gradients(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    rtol: float = 1e-6,
    seed: int = 0,
) -> None:
    """Raise `GradientMismatch` unless the gradients of ``f(*args)`` agree with numerical derivatives, up to ``order``.

    Floating arguments are converted to float64 (complex ones to complex128) and differentiated; others are passed as they
    are. Order 2 checks the gradient as a function of the arguments and of the cotangent. ``f`` may return a tensor or a
    nest of tensors, must be deterministic, and needs to be smooth around ``args``: a kink has no numerical derivative.

    >>> from gradtape.ops.elementwise import sin
    >>> check_gradients(sin, [0.5])
    """
    if not isinstance(args, (list, tuple)):
        raise TypeError(
            message("check_gradients takes a list of arguments.", received=type(args).__name__, fix="check_gradients(f, [x])")
        )
    arrays = [_double(x) for x in args]
    positions = [i for i, a in enumerate(arrays) if a.dtype.kind in "fc"]
    if not positions:
        text = "check_gradients received no floating argument."
        raise ValueError(message(text, expected="at least one argument of a floating type"))

    def function(*values: Tensor) -> list[Tensor]:
        full: list[Any] = list(arrays)
        for i, value in zip(positions, values):
            full[i] = value
        return _floating(f(*full))

    points = [arrays[i] for i in positions]
    names = [f"argument {i}" for i in positions]
    rng = np.random.default_rng(seed)
    size = 0.0
    for level in range(1, order + 1):
        size = _compare(function, points, names, level, size, rtol, rng)
        if level < order:
            outputs = [_host(y) for y in function(*map(convert_to_tensor, points))]
            seeds = [_random(y, rng) for y in outputs]
            function = _gradient_function(function, len(points))
            points += seeds
            names += [f"{'cotangent ' * level}of output {i}" for i in range(len(seeds))]


def numerical_jacobian(f: Callable[..., Any], arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The Jacobian of ``f`` at float64 or complex128 arrays by extrapolated differences, and the estimate of its error.

    Rows are the reals of all outputs, columns the reals of all arguments.
    """
    columns, errors = [], []
    for k, array in enumerate(arrays):
        for i in range(_reals(array).size):

            def moved(step: float, k: int = k, i: int = i) -> np.ndarray:
                copies = [a.copy() for a in arrays]
                _reals(copies[k])[i] += step
                return _flat(_floating(f(*map(convert_to_tensor, copies))))

            column, error = _derivative(moved, float(_reals(array)[i]))
            columns.append(column)
            errors.append(error)
    return np.stack(columns, 1), np.stack(errors, 1)


def tape_jacobian(f: Callable[..., Any], arrays: Sequence[np.ndarray], seeds: np.ndarray) -> np.ndarray:
    """One row of gradients per row of ``seeds``, each over the reals of all outputs."""
    tensors = [convert_to_tensor(a) for a in arrays]
    with GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        outputs = _floating(f(*tensors))
    rows = [_flat(_pull(tape, outputs, tensors, _split(seed, outputs))) for seed in seeds]
    return np.stack(rows) if rows else np.zeros((0, sum(_reals(a).size for a in arrays)))


def _compare(f: Callable, points: list, names: list, level: int, size: float, rtol: float, rng: Any) -> float:
    """Check one order; returns the size of the values seen so far, which is what rounding errors are relative to."""
    value = _flat(f(*map(convert_to_tensor, points)))
    count = sum(_reals(p).size for p in points)
    if not value.size or not count:  # nothing to compare, but the sweep must still run
        tape_jacobian(f, points, np.zeros((1, value.size)))
        return size
    size = max(size, float(np.abs(value[np.abs(value) < _HUGE]).max(initial=0)))
    units = np.eye(value.size) if value.size <= _ROWS else np.zeros((0, value.size))
    seeds = np.concatenate([units, rng.normal(size=(1 if len(units) else 8, value.size))])
    jacobian, error = numerical_jacobian(f, points)
    error = np.minimum(error, _HUGE)
    expected, received, error = seeds @ jacobian, tape_jacobian(f, points, seeds), np.abs(seeds) @ error
    widest = max(1.0, *(float(np.abs(_reals(p)).max(initial=0)) for p in points))
    doubt = np.minimum(_TRUST * error, _DOUBT * max(float(np.abs(jacobian).max()), size / widest))
    larger = np.maximum(np.abs(expected), np.abs(received))
    difference = np.abs(received - expected)
    wrong = ~(difference <= rtol * larger + doubt + _ROUNDING * size)  # nan is wrong
    if wrong.any():
        relative = np.nan_to_num(difference / np.where(larger > 0, larger, 1), nan=np.inf)
        worst = np.argmax(np.where(wrong, np.round(relative, 9), -1))
        row, column = np.unravel_index(worst, wrong.shape)
        raise GradientMismatch(
            message(
                f"The gradient of order {level} differs from the numerical derivative "
                f"in {wrong.sum()} of {wrong.size} entries.",
                received=f"{received[row, column]!s} from the tape, with respect to {_place(points, names, int(column))}",
                expected=f"{expected[row, column]!s} ± {error[row, column]:.1e} numerically, "
                f"for {f'output real {row}' if row < len(units) else 'a random combination of outputs'}",
                why=f"relative error {relative[row, column]:.3e}, allowed {rtol:.1e}",
                fix="correct the rule; if the function has a kink there, choose another point",
            )
        )
    return size


def _place(points: list, names: list, column: int) -> str:
    """The argument and index behind a column of the real Jacobian."""
    for point, name in zip(points, names):
        size = _reals(point).size
        if column < size:
            part = ""
            if point.dtype.kind == "c":
                part = " (imaginary part)" if column % 2 else " (real part)"
                column //= 2
            index = tuple(int(i) for i in np.unravel_index(column, point.shape)) if point.ndim else ()
            return f"{name}{list(index) if index else ''}{part}"
        column -= size
    return names[-1]


def _gradient_function(f: Callable, count: int) -> Callable:
    """(arguments, cotangents) → gradients of the ``count`` arguments."""

    def gradient(*values: Tensor) -> list[Tensor]:
        points, seeds = list(values[:count]), list(values[count:])
        with GradientTape() as tape:
            tape.watch(points)
            outputs = f(*points)
        return _pull(tape, outputs, points, seeds)

    return gradient


def _pull(tape: GradientTape, outputs: list, points: list, seeds: list) -> list[Tensor]:
    results = tape.gradient(outputs, points, output_gradients=seeds, unconnected_gradients="zero")
    return [convert_to_tensor(g) for g in results]  # rows of a gather come as IndexedSlices


def _derivative(moved: Callable[[float], np.ndarray], at: float) -> tuple[np.ndarray, np.ndarray]:
    """The derivative at step 0 of an array-valued function, and its error."""
    smallest = min(1e-7, abs(at) / 100) if abs(at) > 1e-10 else 1e-7
    count = 1 + math.ceil(math.log(0.1 / smallest, _SHRINK))
    steps = 0.1 * max(1.0, abs(at)) * _SHRINK ** -np.arange(count)
    steps = (at + steps) - at  # representable
    with np.errstate(all="ignore"):
        values = [(moved(h), moved(-h)) for h in steps[:_FEW]]
        derivative, error = _extrapolated(np.array(values), steps[:_FEW], at)
        small = _AGREED * np.abs(derivative) + _NOISE * np.abs(values).max((0, 1))
        if not np.all(np.isfinite(error) & (error <= small)):
            values += [(moved(h), moved(-h)) for h in steps[_FEW:]]
            derivative, error = _extrapolated(np.array(values), steps, at)
    return derivative, error


def _extrapolated(values: np.ndarray, steps: np.ndarray, at: float) -> tuple[np.ndarray, np.ndarray]:
    """The best derivative of each output from values at ± steps, and its error."""
    steps = steps[:, None]
    with np.errstate(all="ignore"):
        slopes = (values[:, 0] - values[:, 1]) / (2 * steps)
        noise = np.finfo(float).eps * np.abs(values).sum(1) / steps
        first = slopes[1:] + (slopes[1:] - slopes[:-1]) / (_SHRINK**2 - 1)  # without the h² term, then without h⁴
        second = first[1:] + (first[1:] - first[:-1]) / (_SHRINK**4 - 1)
        error = np.abs(second - first[1:]) + noise[2:]
        error[1:] = np.maximum(error[1:], np.abs(second[1:] - second[:-1]))
        # Relative to the derivative, or far from a pole small numbers would look best; relative to the value where it is 0.
        merit = error / (np.abs(second) + 1e-6 * np.abs(values[-1, 0]).max() / max(1.0, abs(at)) + np.finfo(float).tiny)
    merit[~np.isfinite(merit) | ~np.isfinite(second)] = np.inf
    best = np.argmin(merit, 0)[None]
    error[np.isinf(merit)] = np.inf
    return np.take_along_axis(second, best, 0)[0], np.take_along_axis(error, best, 0)[0]


# Arrays as reals


def _reals(array: np.ndarray) -> np.ndarray:
    """The entries as one row of reals, sharing memory with a contiguous array."""
    return array.reshape(-1).view(np.float64) if array.dtype.kind == "c" else array.reshape(-1)


def _flat(tensors: list) -> np.ndarray:
    return np.concatenate([_reals(_double(t)) for t in tensors]) if tensors else np.zeros(0)


def _split(reals: np.ndarray, like: list) -> list[Tensor]:
    """One row of reals as tensors of the shapes and dtypes of ``like``."""
    parts, start = [], 0
    for tensor in like:
        array = _host(tensor)
        is_complex = array.dtype.kind == "c"
        stop = start + array.size * (2 if is_complex else 1)
        part = reals[start:stop]
        part = part.view(np.complex128) if is_complex else part
        parts.append(convert_to_tensor(part.reshape(array.shape).astype(array.dtype)))
        start = stop
    return parts


def _double(value: Any) -> np.ndarray:
    """A contiguous copy in double precision; integers and booleans as they are."""
    array = _host(value) if isinstance(value, Tensor) or hasattr(value, "_operand") else np.asarray(value)
    if array.dtype.kind == "c":
        return np.array(array, np.complex128, order="C")
    if array.dtype.kind in "iub":
        return array
    return np.array(array, np.float64, order="C")  # bfloat16 and float8 too, whose kind is V or f


def _host(value: Any) -> np.ndarray:
    return np.asarray(value.numpy())


def _random(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    out = rng.normal(size=array.shape)
    return np.asarray(out + 1j * rng.normal(size=array.shape) if array.dtype.kind == "c" else out)


def _floating(structure: Any) -> list[Tensor]:
    """The outputs through which gradients flow."""
    tensors = [convert_to_tensor(leaf) for leaf in nest.flatten(structure)]
    return [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
