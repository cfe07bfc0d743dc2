"""A gradient check of what was actually run: every recorded op's rule, at the recorded values, against numerical derivatives.

Each op is run again in float64. For a random combination of its outputs, the slope along a direction of one input is what the
rule says, and what extrapolated differences of the kernel say. One direction follows the signs of the gradient, so that nothing
cancels and a rule that is off by a factor shows; another is random, so that a gradient which is missing somewhere shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.core.callsite import Place
from gradtape.core.context import suspended
from gradtape.core.op import apply
from gradtape.core.tape import GradientTape
from gradtape.inspect.replay import Step, steps_of
from gradtape.testing.check import _derivative, _double, _flat, _floating, _reals, _split
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED
from gradtape.values.tensor import wrap

_DOUBT = 1e-4  # a numerical derivative that is less certain than this says nothing
_SINGLE = 1e-2  # the same, and the tolerance, for a function that does not run in float64
_HERMITIAN = frozenset({"cholesky", "eigh", "eigvalsh"})  # ops of matrices that stay so
_BY_DEFINITION = {
    "gamma_sample": "a sample keeps its quantile when the parameter moves",
    "truncated_sample": "a sample keeps its quantile when the parameters move",
    "fake_quantize": "the gradient passes rounding as if it were not there",
}


@dataclass(frozen=True, slots=True)
class Wrong:
    """A rule that differs from the numerical derivative."""

    number: int
    op: str
    place: Place | None
    input: str
    received: float  # the slope by the rule
    expected: float  # and by differences

    @property
    def error(self) -> float:
        """Relative to the larger of the two."""
        return abs(self.received - self.expected) / max(abs(self.received), abs(self.expected), np.finfo(float).tiny)

    def __str__(self) -> str:
        where = "" if self.place is None else f" at {self.place}"
        return (
            f"#{self.number} {self.op}{where}: the gradient of {self.input} is off by {self.error:.1e}: "
            f"{self.received:.9g} by its rule, {self.expected:.9g} numerically"
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer of `verify`. It is true if no rule is off."""

    checked: int  # gradients: one per input of an op
    wrong: tuple[Wrong, ...]
    skipped: tuple[tuple[int, str, str], ...]  # number and name of an op, and why it was not checked

    def __bool__(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        head = f"{self.checked} gradients checked, {len(self.wrong)} wrong, {len(self.skipped)} ops not checked."
        rows = [f"  {wrong}" for wrong in self.wrong]
        rows += [f"  not checked: #{number} {op}: {reason}" for number, op, reason in self.skipped]
        return "\n".join([head, *rows])

    __repr__ = __str__


class _Unchecked(Exception):
    """Why an op cannot be checked."""


def verify(tape: GradientTape, rtol: float = 1e-5, seed: int = 0, seconds: float = 60.0) -> Verification:
    """Check the rule of every recorded op, custom gradients included, at the recorded values. Nothing is used up.

    Where the values are at a kink or a pole, the rule is checked beside it. A function with a custom gradient that does not run
    in float64 is checked in its own precision, to 1 %. What comes after ``seconds`` is left out, and said to be.
    """
    rng = np.random.default_rng(seed)
    checked, wrong, skipped = 0, [], []
    deadline = time.monotonic() + seconds
    with suspended():
        for step in steps_of(tape):
            try:
                if time.monotonic() > deadline:
                    raise _Unchecked(f"{seconds:g} seconds were over")
                count, found = _verified(step, rtol, rng)
            except _Unchecked as reason:
                skipped.append((step.number, step.op.name, str(reason)))
            else:
                checked += count
                wrong += found
    return Verification(checked, tuple(wrong), tuple(skipped))


def _verified(step: Step, rtol: float, rng: np.random.Generator) -> tuple[int, list[Wrong]]:
    """How many gradients of a step were checked, and those that are off."""
    if step.op.name in _BY_DEFINITION:
        raise _Unchecked(_BY_DEFINITION[step.op.name])
    if step.op.rules is None:
        raise _Unchecked("it has no derivative rule")
    if step.is_custom and step.attributes["again"] is None:
        raise _Unchecked("what it computes is not known, only its gradient")
    values = step.arguments
    if step.function is None if step.is_custom else not step.is_known:
        raise _Unchecked("its inputs are not known; GradientTape(trace='values') keeps them")
    if any(not np.isfinite(v).all() for v in map(_numbers, values) if v is not None):
        raise _Unchecked("its inputs are not finite")
    try:
        check = _Check(step, _function(step), [_double(v) if _numbers(v) is not None else v for v in values], rtol)
        return check.run(rng)
    except _Unchecked:
        raise
    except Exception as error:
        if not step.is_custom:
            raise _Unchecked(f"it cannot be run again in float64: {error}") from error
        return _Check(step, _function(step), list(values), _SINGLE).run(rng)


def _numbers(value: Any) -> np.ndarray | None:
    """A value that gradients may be taken of."""
    array = None if value is None else np.asarray(value)
    return None if array is None or array.dtype.kind in "biuOSU" else array


def _function(step: Step) -> Callable:
    """What the step computes, of tensors and in any precision."""
    if step.function is not None:
        return step.function
    attributes = {name: _doubled(value) for name, value in step.attributes.items()}
    return lambda *args: apply(step.op, args, attributes)


def _doubled(attribute: Any) -> Any:
    if isinstance(attribute, np.dtype) and attribute.kind in "fcV":
        return np.dtype(np.complex128 if attribute.kind == "c" else np.float64)
    return attribute


class _Check:
    """One step, as a function of the inputs that gradients flow to."""

    def __init__(self, step: Step, function: Callable, values: list, rtol: float) -> None:
        self.step, self.function, self.values, self.rtol = step, function, values, rtol
        self.doubt = _SINGLE if rtol >= _SINGLE else _DOUBT
        rules = () if step.is_custom or step.op.joint else step.op.rules
        self.positions = [
            i for i, value in enumerate(values)
            if step.inputs[i] and _numbers(value) is not None and np.size(value) and not (rules and rules[i] is None)
        ]  # fmt: skip

    def run(self, rng: np.random.Generator) -> tuple[int, list[Wrong]]:
        points = [np.array(self.values[i]) for i in self.positions]
        uncertain: list[int] = []
        wrong = self._compared(points, range(len(points)), rng, uncertain)
        if uncertain:
            beside = [p + 0.01 * (1 + np.abs(p)) * rng.normal(size=p.shape).astype(p.real.dtype) for p in points]
            left: list[int] = []
            wrong += self._compared(beside, uncertain, rng, left)
            if len(left) == len(points):
                raise _Unchecked("it has no certain numerical derivative here")
        return len(points), wrong

    def _outputs(self, points: list) -> list:
        values: list[Any] = list(self.values)
        for i, point in zip(self.positions, points):
            values[i] = point
        return _floating(self.function(*[v if v is None or not hasattr(v, "dtype") else _tensor(v) for v in values]))

    def _compared(self, points: list, which: Any, rng: np.random.Generator, uncertain: list[int]) -> list[Wrong]:
        tensors = [wrap(point) for point in points]
        with GradientTape(persistent=True) as tape:
            tape.watch(tensors)
            outputs = self._outputs([RECORDED.reshape(t, shape=t._array.shape) for t in tensors])  # leaves may get sparse ones
        reals = _flat(outputs)
        if not reals.size:
            return []
        weights = rng.normal(size=reals.shape)
        found = tape.gradient(outputs, tensors, _split(weights, outputs), unconnected_gradients="zero")
        gradients = [_double(convert_to_tensor(g)) for g in found]
        wrong = []
        for i in which:
            sizes = np.abs(rng.normal(size=_reals(gradients[i]).shape)) + 0.1
            along = np.where(_reals(gradients[i]) < 0, -sizes, sizes)
            for direction in (self._fit(along, points[i]), self._fit(rng.normal(size=sizes.shape), points[i])):
                far = direction * np.maximum(1.0, np.abs(_reals(points[i])))  # steps that do not vanish beside large values
                found = (self._slopes(points, i, way, gradients[i], weights) for way in (direction, far))
                slopes = next((pair for pair in found if pair is not None), None)
                if slopes is None:
                    uncertain.append(i)
                    break
                if slopes[0] != slopes[1]:
                    step = self.step
                    wrong.append(Wrong(step.number, step.op.name, step.place, step.named(self.positions[i]), *slopes))
                    break
        return wrong

    def _slopes(
        self, points: list, i: int, direction: np.ndarray, gradient: np.ndarray, weights: np.ndarray
    ) -> tuple[float, float] | None:
        """The slope by the rule and by differences, equal if they agree; None if differences do not say it."""
        known = self._slope(points, i, direction, weights)
        if known is None:
            return None
        expected, error = known
        received = float(_reals(gradient) @ direction)
        largest = float(np.abs(_reals(gradient)) @ np.abs(direction))
        if abs(received - expected) <= self.rtol * max(largest, abs(expected)):  # nan is wrong
            return expected, expected
        return None if abs(received - expected) <= 4 * error else (received, expected)

    def _fit(self, direction: np.ndarray, point: np.ndarray) -> np.ndarray:
        """A direction in which the op's argument may move."""
        if self.step.op.name not in _HERMITIAN:
            return direction
        matrix = direction.view(np.complex128) if point.dtype.kind == "c" else direction
        matrix = matrix.reshape(point.shape)
        return _reals(np.ascontiguousarray((matrix + np.conj(np.swapaxes(matrix, -1, -2))) / 2))

    def _slope(self, points: list, i: int, direction: np.ndarray, weights: np.ndarray) -> tuple[float, float] | None:
        """The derivative of the weighted outputs along a direction, and its error; None if differences do not say it."""

        def outputs(h: float) -> np.ndarray:
            point = _double(points[i])
            _reals(point)[:] += h * direction
            return _flat(self._outputs([wrap(p if k != i else point.astype(p.dtype)) for k, p in enumerate(points)]))

        def moved(h: float) -> np.ndarray:
            return np.array([weights @ outputs(h)])

        slope, error = (float(v[0]) for v in _derivative(moved, 0.0))
        step = 1e-6 if self.rtol < _SINGLE else 1e-2
        terms = weights * outputs(0.0)
        middle, eps = terms.sum(), np.finfo(points[i].real.dtype).eps
        right, left = (moved(step)[0] - middle) / step, (middle - moved(-step)[0]) / step
        size = max(abs(slope), abs(right), abs(left))
        is_kink = abs(right - left) > 1e-2 * size + eps * 100 * (abs(middle) + size) / step
        if is_kink or not np.isfinite(slope) or error > self.doubt * size + 1e-9 * abs(middle):
            return None
        return slope, error + eps * float(np.abs(terms).sum()) / 0.1  # 0.1: the largest step


def _tensor(value: Any) -> Any:
    return wrap(value) if isinstance(value, np.ndarray) else value
