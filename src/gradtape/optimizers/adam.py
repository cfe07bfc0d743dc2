"""Adam and its family: averages of the gradient and of its size."""

from __future__ import annotations

from typing import Any

from gradtape.core.context import suspended
from gradtape.errors import message
from gradtape.optimizers.base import Optimizer, single, squared
from gradtape.values.convert import convert_to_tensor
from gradtape.values.recorded import RECORDED


class Adam(Optimizer):
    """Adaptive moments (Kingma and Ba, 2015; ``amsgrad``: Reddi et al., 2018).

    ``m ← m + (1−β₁)(g − m)``, ``v ← v + (1−β₂)(g² − v)``, ``p ← p − α·m / (√v + ε)`` with
    ``α = lr·√(1−β₂ᵗ) / (1−β₁ᵗ)`` at step t; with ``amsgrad`` the largest v so far takes the place of v.

    >>> v = Variable([1.0, 2.0])
    >>> opt = Adam(learning_rate=0.1)
    >>> _ = opt.apply_gradients([(constant([1.0, -5.0]), v)])
    >>> v.numpy().round(3)
    array([0.9, 2.1], dtype=float32)
    """

    of_each = "square"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.amsgrad = amsgrad

    def slots(self) -> list[dict[str, float]]:
        return [{"momentum": 0.0, "velocity": 0.0}, *[{"velocity_hat": 0.0}] * self.amsgrad]

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        one, step = cast(1), cast(step)
        power_1, power_2 = (xp.power(cast(single(beta)), step) for beta in (self.beta_1, self.beta_2))
        alpha = lr * xp.sqrt(one - power_2) / (one - power_1)
        return alpha, cast(1 - self.beta_1), cast(1 - self.beta_2), cast(self.epsilon)

    def update(
        self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, m: Any, v: Any, v_hat: Any = None, each: Any = None
    ) -> tuple:
        alpha, rate_1, rate_2, epsilon = k
        (s,) = scratch
        m = xp.add(m, xp.multiply(xp.subtract(g, m, s), rate_1, s), m)
        v = xp.add(v, xp.multiply(xp.subtract(squared(xp, g, s, each), v, s), rate_2, s), v)
        size = v if v_hat is None else xp.maximum(v_hat, v, out=v_hat)
        s = xp.divide(m, xp.add(xp.sqrt(size, s), epsilon, s), s)
        p = xp.subtract(p, xp.multiply(s, alpha, s), p)
        return (p, m, v) if v_hat is None else (p, m, v, size)

    def get_config(self) -> dict[str, Any]:
        own = {n: getattr(self, n) for n in ("beta_1", "beta_2", "epsilon", "amsgrad")}
        return {**super().get_config(), **own}


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019): first ``p ← p − lr·weight_decay·p``."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if weight_decay is None:
            raise ValueError(
                message(
                    "Argument `weight_decay` must be a float. Received: weight_decay=None",
                    received="weight_decay=None",
                    fix="tf.keras.optimizers.Adam has none; weight_decay=0.0 switches it off",
                )
            )
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay, *args, **kwargs)


class Adamax(Optimizer):
    """Adam with the maximum norm (Kingma and Ba, 2015, section 7).

    ``m ← m + (1−β₁)(g − m)``, ``u ← max(β₂·u, |g|)``, ``p ← p − lr·m / ((1−β₁ᵗ)(u + ε))``.
    """

    of_each = "abs"

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def slots(self) -> list[dict[str, float]]:
        return [{"momentum": 0.0, "norm": 0.0}]

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        alpha = lr / (cast(1) - xp.power(cast(single(self.beta_1)), cast(step)))
        return alpha, cast(1 - self.beta_1), cast(self.beta_2), cast(self.epsilon)

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, m: Any, u: Any, each: Any = None) -> tuple:
        alpha, rate_1, beta_2, epsilon = k
        (s,) = scratch
        m = xp.add(m, xp.multiply(xp.subtract(g, m, s), rate_1, s), m)
        u = xp.maximum(xp.multiply(u, beta_2, u), xp.abs(g, s) if each is None else each, out=u)
        s = xp.divide(m, xp.add(u, epsilon, s), s)
        return xp.subtract(p, xp.multiply(s, alpha, s), p), m, u

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{n: getattr(self, n) for n in ("beta_1", "beta_2", "epsilon")}}


class Nadam(Adamax):
    """Adam with Nesterov momentum (Dozat, 2016).

    ``m`` and ``v`` as in Adam; with ``μₜ = β₁(1 − 0.96ᵗ/2)`` and ``Πₜ = μ₁·…·μₜ``:
    ``m̂ = μₜ₊₁·m / (1−Πₜ₊₁) + (1−μₜ)·g / (1−Πₜ)``, ``p ← p − lr·m̂ / (√(v / (1−β₂ᵗ)) + ε)``.
    """

    scratch = 2
    of_each = "square"

    def slots(self) -> list[dict[str, float]]:
        return [{"momentum": 0.0, "velocity": 0.0}]

    def _build(self, variables: list) -> None:
        super()._build(variables)
        dtype = variables[0].dtype if variables else "float32"
        self._product: Any = self.add_variable((), 1.0, dtype, "product")

    def _begin(self, step: Any) -> None:
        with suspended():
            step = RECORDED.astype(convert_to_tensor(step), dtype=self._product.dtype.name)
            self._product.assign(self._product * self.beta_1 * (1.0 - 0.5 * 0.96**step))

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        one, half, beta_1, beta_2, decay = map(cast, map(single, (1, 0.5, self.beta_1, self.beta_2, 0.96)))
        step = cast(step)
        now = beta_1 * (one - half * xp.power(decay, step))
        after = beta_1 * (one - half * xp.power(decay, step + one))
        product = cast(self._product._operand())
        share_m = after / (one - product * after)
        share_g = (one - now) / (one - product)
        return lr, one - beta_1, one - beta_2, share_m, share_g, one - xp.power(beta_2, step), cast(self.epsilon)

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, m: Any, v: Any, each: Any = None) -> tuple:
        lr, rate_1, rate_2, share_m, share_g, correction, epsilon = k
        s, t = scratch
        m = xp.add(m, xp.multiply(xp.subtract(g, m, s), rate_1, s), m)
        v = xp.add(v, xp.multiply(xp.subtract(squared(xp, g, s, each), v, s), rate_2, s), v)
        s = xp.add(xp.multiply(m, share_m, s), xp.multiply(g, share_g, t), s)
        t = xp.add(xp.sqrt(xp.divide(v, correction, t), t), epsilon, t)
        return xp.subtract(p, xp.divide(xp.multiply(s, lr, s), t, s), p), m, v
