"""Learning rates that change with the step.

A schedule is called with a step (a number, tensor or variable, of any shape) and gives a float32 tensor. Its formula is
array code over ``xp``, so that it also works inside a compiled step.
"""

from __future__ import annotations

import math
from abc import ABCMeta
from typing import Any

from gradtape.core.op import select
from gradtape.errors import message
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

__all__ = [
    "CosineDecay", "CosineDecayRestarts", "ExponentialDecay", "InverseTimeDecay", "LearningRateSchedule",
    "PiecewiseConstantDecay", "PolynomialDecay", "deserialize", "serialize",
]  # fmt: skip


class LearningRateSchedule(metaclass=ABCMeta):  # noqa: B024 - for `register`
    """Base of all schedules; your own may define ``__call__(step)``, and ``get_config`` if it should be saved.

    Keras's are registered with it when Keras is loaded, so that optimizers here take either kind.
    """

    arguments: tuple[str, ...] = ()

    def __call__(self, step: Any) -> Tensor:
        tensor = step._operand() if isinstance(step, Convertible) else convert_to_tensor(step)
        xp = select([tensor])
        with xp.scope():
            return wrap(xp.astype(self.value(xp, xp.astype(tensor._array, dtype="float32")), dtype="float32"))

    def value(self, xp: Any, step: Any) -> Any:
        """The rate at ``step``, a float32 array."""
        raise NotImplementedError(
            message(
                f"Learning rate schedule '{type(self).__name__}' must override `__call__(self, step)`.",
                received=f"a {type(self).__name__} without it",
                fix="def __call__(self, step): return 0.1 / (step + 1)",
            )
        )

    def get_config(self) -> dict[str, Any]:
        if not self.arguments:
            raise NotImplementedError(
                message(
                    f"Learning rate schedule '{type(self).__name__}' must override `get_config()` in order to be serializable.",
                    received=f"a {type(self).__name__} without it",
                    fix="def get_config(self): return {'initial_rate': self.initial_rate}",
                )
            )
        return {name: getattr(self, name) for name in self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        return cls(**config)


def _positive(name: str, value: Any) -> None:
    if value <= 0:
        text = f"Argument `{name}` must be > 0. Received: {name}={value}"
        raise ValueError(message(text, received=f"{name}={value}", expected="above 0"))


class ExponentialDecay(LearningRateSchedule):
    """``initial · decay_rate ^ (step / decay_steps)``; the quotient rounded down with ``staircase``.

    >>> float(ExponentialDecay(1.0, decay_steps=10, decay_rate=0.5)(20))
    0.25
    """

    arguments = ("initial_learning_rate", "decay_steps", "decay_rate", "staircase", "name")

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str = "ExponentialDecay",
    ) -> None:
        _positive("decay_steps", decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def _periods(self, xp: Any, step: Any) -> Any:
        periods = step / self.decay_steps
        return xp.floor(periods) if self.staircase else periods

    def value(self, xp: Any, step: Any) -> Any:
        rate = xp.ones_like(step) * self.decay_rate
        return self.initial_learning_rate * xp.power(rate, self._periods(xp, step))


class InverseTimeDecay(ExponentialDecay):
    """``initial / (1 + decay_rate · step / decay_steps)``; the quotient rounded down with ``staircase``."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str = "InverseTimeDecay",
    ) -> None:
        super().__init__(initial_learning_rate, decay_steps, decay_rate, staircase, name)

    def value(self, xp: Any, step: Any) -> Any:
        return self.initial_learning_rate / (1 + self.decay_rate * self._periods(xp, step))


class PiecewiseConstantDecay(LearningRateSchedule):
    """``values[i]`` up to and including step ``boundaries[i]``, the last value after that.

    >>> rate = PiecewiseConstantDecay([10, 20], [1.0, 0.5, 0.25])
    >>> [float(rate(step)) for step in (10, 11, 21)]
    [1.0, 0.5, 0.25]
    """

    arguments = ("boundaries", "values", "name")

    def __init__(self, boundaries: list, values: list, name: str = "PiecewiseConstant") -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                message(
                    "The length of boundaries should be 1 less than the length of values. Received: "
                    f"boundaries={boundaries} of length {len(boundaries)}, and values={values} of length {len(values)}.",
                    received=f"{len(boundaries)} boundaries, {len(values)} values",
                    fix="one value more than boundaries: for the steps after the last",
                )
            )
        self.boundaries = boundaries
        self.values = values
        self.name = name

    def value(self, xp: Any, step: Any) -> Any:
        result = xp.ones_like(step) * self.values[-1]
        for boundary, value in zip(reversed(self.boundaries), reversed(self.values[:-1])):
            result = xp.where(step <= boundary, xp.ones_like(step) * value, result)
        return result


class PolynomialDecay(LearningRateSchedule):
    """``(initial − end) · (1 − step/decay_steps) ^ power + end``, and ``end`` from there on.

    With ``cycle``, ``decay_steps`` grows to the next multiple of itself each time it is passed.
    """

    arguments = ("initial_learning_rate", "decay_steps", "end_learning_rate", "power", "cycle", "name")

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None:
        _positive("decay_steps", decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle
        self.name = name

    def value(self, xp: Any, step: Any) -> Any:
        one = xp.ones_like(step)
        length = one * self.decay_steps
        if self.cycle:
            length = length * xp.maximum(xp.ceil(step / self.decay_steps), one)
        left = 1 - xp.minimum(step, length) / length
        return (self.initial_learning_rate - self.end_learning_rate) * xp.power(left, one * self.power) + self.end_learning_rate


class CosineDecay(LearningRateSchedule):
    """Half a cosine from ``initial`` down to ``alpha · initial`` in ``decay_steps`` (Loshchilov and Hutter, 2017).

    With ``warmup_target`` the rate first climbs from ``initial`` to it, in a line over ``warmup_steps``, and decays from there.
    """

    arguments = ("initial_learning_rate", "decay_steps", "alpha", "name", "warmup_target", "warmup_steps")

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        alpha: float = 0.0,
        name: str = "CosineDecay",
        warmup_target: float | None = None,
        warmup_steps: int = 0,
    ) -> None:
        _positive("decay_steps", decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.alpha = alpha
        self.name = name
        self.warmup_target = warmup_target
        self.warmup_steps = warmup_steps

    def value(self, xp: Any, step: Any) -> Any:
        one = xp.ones_like(step)
        if self.warmup_target is None:
            return self.initial_learning_rate * self._decayed(xp, step, one)
        climb = self.warmup_target - self.initial_learning_rate
        rising = climb * step / max(self.warmup_steps, 1) + self.initial_learning_rate
        falling = self.warmup_target * self._decayed(xp, step - self.warmup_steps, one)
        return xp.where(step < self.warmup_steps, rising, falling)

    def _decayed(self, xp: Any, step: Any, one: Any) -> Any:
        done = xp.minimum(step / self.decay_steps, one)
        return (1 - self.alpha) * 0.5 * (1 + xp.cos(math.pi * done)) + self.alpha


class CosineDecayRestarts(LearningRateSchedule):
    """Cosine decays one after the other, each ``t_mul`` times as long and ``m_mul`` times as high as the one before."""

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: int,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "SGDRDecay",
    ) -> None:
        _positive("first_decay_steps", first_decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul = t_mul
        self.m_mul = m_mul
        self.alpha = alpha
        self.name = name

    arguments = ("initial_learning_rate", "first_decay_steps", "t_mul", "m_mul", "alpha", "name")

    def value(self, xp: Any, step: Any) -> Any:
        one = xp.ones_like(step)
        done = step / self.first_decay_steps
        if self.t_mul == 1:
            restarts = xp.floor(done)
            part = done - restarts
        else:  # the lengths are a geometric series: 1, t, t², …
            growth = one * self.t_mul
            restarts = xp.floor(xp.log(1 - done * (1 - growth)) / xp.log(growth))
            length = xp.power(growth, restarts)
            part = (done - (1 - length) / (1 - growth)) / length
        height = xp.power(one * self.m_mul, restarts)
        decayed = 0.5 * height * (1 + xp.cos(math.pi * part))
        return self.initial_learning_rate * ((1 - self.alpha) * decayed + self.alpha)


def serialize(learning_rate_schedule: LearningRateSchedule) -> dict[str, Any]:
    """A dictionary from which `deserialize` makes such a schedule again."""
    return {"class_name": type(learning_rate_schedule).__name__, "config": learning_rate_schedule.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> LearningRateSchedule:
    """The schedule that `serialize` (Keras's too) described."""
    name = config["class_name"]
    known = {n: value for n, value in globals().items() if n in __all__ and n[0].isupper()}
    found = {**known, **(custom_objects or {})}.get(name)
    if found is None:
        raise ValueError(
            message(
                f"Unknown decay: {name!r}.",
                expected=f"one of {', '.join(sorted(known))}",
                fix="pass your own class: custom_objects={name: class}",
            )
        )
    return found.from_config(config["config"])
