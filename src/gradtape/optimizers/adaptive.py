"""A rate of its own for every element: RMSprop, Adagrad, Adadelta, Ftrl."""

from __future__ import annotations

from typing import Any

from gradtape.errors import message
from gradtape.optimizers.base import Optimizer, single, squared


class RMSprop(Optimizer):
    """The gradient over a running root mean square of it (Hinton, 2012).

    ``v ← ρ·v + (1−ρ)·g²``, ``d = lr·g / √(v + ε)``; ``centered``: ``a ← ρ·a + (1−ρ)·g`` and ``v − a²`` in place of v.
    ``p ← p − d``, or with momentum ``m ← momentum·m + d`` and ``p ← p − m``.
    """

    scratch = 2
    of_each = "square"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def slots(self) -> list[dict[str, float]]:
        names = ["velocity", *["momentum"] * (self.momentum > 0), *["average_gradient"] * self.centered]
        return [{name: 0.0} for name in names]

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        return lr, cast(self.rho), cast(1 - self.rho), cast(self.momentum), cast(self.epsilon)

    def update(  # type: ignore[override]  # takes what others take by position by name
        self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, v: Any, *others: Any, each: Any = None
    ) -> tuple:
        lr, rho, rest, momentum, epsilon = k
        s, t = scratch
        v = xp.add(xp.multiply(v, rho, v), xp.multiply(squared(xp, g, s, each), rest, s), v)
        size = v
        slots: tuple = (v,)
        if self.centered:
            a = others[-1]
            a = xp.add(xp.multiply(a, rho, a), xp.multiply(g, rest, s), a)
            size = xp.subtract(v, xp.multiply(a, a, s), s)
            slots = v, a
        s = xp.sqrt(xp.add(size, epsilon, s), s)
        change = xp.divide(xp.multiply(g, lr, t), s, t)
        if self.momentum > 0:
            change = xp.add(xp.multiply(others[0], momentum, others[0]), change, others[0])
            slots = v, change, *slots[1:]
        return xp.subtract(p, change, p), *slots

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{n: getattr(self, n) for n in ("rho", "momentum", "epsilon", "centered")}}


class Adagrad(Optimizer):
    """The gradient over the root of the sum of all its squares (Duchi et al., 2011).

    ``a ← a + g²``, ``p ← p − lr·g / √(a + ε)``.
    """

    row_wise = True
    scratch = 2
    of_each = "square"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def slots(self) -> list[dict[str, float]]:
        return [{"accumulator": float(single(self.initial_accumulator_value))}]

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        return lr, cast(self.epsilon)

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, a: Any, each: Any = None) -> tuple:
        lr, epsilon = k
        s, t = scratch
        a = xp.add(a, squared(xp, g, s, each), a)
        s = xp.sqrt(xp.add(a, epsilon, s), s)
        return xp.subtract(p, xp.divide(xp.multiply(g, lr, t), s, t), p), a

    def get_config(self) -> dict[str, Any]:
        own = {n: getattr(self, n) for n in ("initial_accumulator_value", "epsilon")}
        return {**super().get_config(), **own}


class Adadelta(Optimizer):
    """Steps in the size of earlier steps (Zeiler, 2012).

    ``a ← ρ·a + (1−ρ)·g²``, ``d = g·√(b + ε) / √(a + ε)``, ``b ← ρ·b + (1−ρ)·d²``, ``p ← p − lr·d``.
    """

    scratch = 2
    of_each = "square"

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, *args: Any, **kwargs: Any) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def slots(self) -> list[dict[str, float]]:
        return [{"accumulated_grad": 0.0, "accumulated_delta_var": 0.0}]

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        return lr, cast(self.rho), cast(1 - self.rho), cast(self.epsilon)

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, a: Any, b: Any, each: Any = None) -> tuple:
        lr, rho, rest, epsilon = k
        s, t = scratch
        a = xp.add(xp.multiply(a, rho, a), xp.multiply(squared(xp, g, s, each), rest, s), a)
        if each is not None:  # d² of each slice
            each = xp.multiply(xp.divide(xp.add(b, epsilon), xp.add(a, epsilon)), each)
        s = xp.multiply(xp.sqrt(xp.add(b, epsilon, s), s), g, s)
        s = xp.divide(s, xp.sqrt(xp.add(a, epsilon, t), t), s)
        b = xp.add(xp.multiply(b, rho, b), xp.multiply(squared(xp, s, t, each), rest, t), b)
        return xp.subtract(p, xp.multiply(s, lr, s), p), a, b

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rho": self.rho, "epsilon": self.epsilon}


class Ftrl(Optimizer):
    """Follow the regularised leader (McMahan et al., 2013), for sparse linear models.

    With ``r = −learning_rate_power`` and ``λ₂ = l2 + beta/(2·lr)``: ``z ← z + g + 2·shrinkage·p − ((n+g²)ʳ − nʳ)/lr · p``,
    ``n ← n + g²``, ``p ← (clip(z, −l1, l1) − z) / (nʳ/lr + 2·λ₂)``.
    """

    scratch = 3
    of_each = "square"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta
        if learning_rate_power > 0:
            text = f"`learning_rate_power` needs to be negative or zero. Received: learning_rate_power={learning_rate_power}."
            raise ValueError(
                message(text, received=f"learning_rate_power={learning_rate_power}", expected="0 or less: -0.5 is usual")
            )
        for name, value in self._own().items():
            if name not in ("learning_rate_power", "beta") and value < 0:
                text = f"`{name}` needs to be positive or zero. Received: {name}={value}."
                raise ValueError(message(text, received=f"{name}={value}", expected="0 or more"))

    def _own(self) -> dict[str, float]:
        names = (
            "learning_rate_power initial_accumulator_value l1_regularization_strength l2_regularization_strength "
            "l2_shrinkage_regularization_strength beta"
        )
        return {name: getattr(self, name) for name in names.split()}

    def slots(self) -> list[dict[str, float]]:
        return [{"accumulator": float(single(self.initial_accumulator_value)), "linear": 0.0}]

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        two, l1 = cast(2), cast(self.l1_regularization_strength)
        ridge = two * (cast(self.l2_regularization_strength) + cast(self.beta) / (two * lr))
        shrinkage = two * cast(self.l2_shrinkage_regularization_strength)
        return lr, cast(-self.learning_rate_power), l1, cast(0) - l1, ridge, shrinkage

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, n: Any, z: Any, each: Any = None) -> tuple:
        lr, r, l1, minus_l1, ridge, shrinkage = k
        s, t, u = scratch
        s = xp.power(n, r, s)
        n = xp.add(n, squared(xp, g, t, each), n)
        t = xp.power(n, r, t)
        s = xp.multiply(xp.divide(xp.subtract(t, s, s), lr, s), p, s)
        u = xp.add(xp.multiply(p, shrinkage, u), g, u)
        z = xp.add(z, xp.subtract(u, s, u), z)
        s = xp.subtract(xp.minimum(xp.maximum(z, minus_l1, out=s), l1, out=s), z, s)
        t = xp.add(xp.divide(t, lr, t), ridge, t)
        return xp.divide(s, t, p), n, z

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._own()}
