"""Plain descent, with momentum, and its sign."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from numpy import asarray, multiply, subtract

from gradtape.errors import message
from gradtape.optimizers.base import Optimizer, single, writable
from gradtape.values.sharing import WRITING, alone
from gradtape.values.tensor import Tensor


class SGD(Optimizer):
    """Gradient descent, with momentum if asked for.

    ``p ← p − lr·g``; with momentum ``m ← momentum·m − lr·g`` and ``p ← p + m``, or with Nesterov's
    ``p ← p + momentum·m − lr·g``.

    >>> v = Variable([1.0, 2.0])
    >>> _ = SGD(learning_rate=0.5).apply_gradients([(constant([1.0, 1.0]), v)])
    >>> v.numpy()
    array([0.5, 1.5], dtype=float32)
    """

    scratch = 2

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        if isinstance(momentum, bool) or not isinstance(momentum, (int, float)) or not 0 <= momentum <= 1:
            text = f"`momentum` must be a float between [0, 1]. Received: momentum={momentum}"
            raise ValueError(message(text, received=f"momentum={momentum!r}", expected="0 to 1: 0.9 is usual"))
        self.momentum = momentum
        self.nesterov = nesterov

    @property
    def row_wise(self) -> bool:  # type: ignore[override]
        return not self.momentum

    def slots(self) -> list[dict[str, float]]:
        return [{"momentum": 0.0}] if self.momentum else []

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        return (lr, cast(single(self.momentum))) if self.momentum else (lr, lr)

    def _update(self, work: list, lr: Any) -> None:
        if self.momentum or len(self._dtypes) > 1 or self.weight_decay is not None or not self._is_ours:
            super()._update(work, lr)
            return
        with WRITING:
            in_place = alone()
            if in_place:
                self._descend(work, asarray(lr, self._dtypes[0]))
        if not in_place:
            super()._update(work, lr)

    def _descend(self, work: list, lr: Any) -> None:
        # Plain descent is two ufunc calls, 0.6 µs: anything around them shows. So `update` and `Variable.exclusive` stand
        # here without their calls. Held by: the variable, the local name and the call; the tensor, the name and the call.
        for g, variable, (_, _, _, scratch, _) in work:
            if scratch is None:
                self._update_large(g, (lr, lr), writable(variable))
                continue
            tensor = variable._tensor
            p = tensor._array
            if (
                type(tensor) is not Tensor
                or getrefcount(tensor) != 3
                or getrefcount(p) != 3
                or p.base is not None
            ):
                p = writable(variable)
            s = multiply(g, lr, scratch[0])
            try:
                subtract(p, s, p)
            except ValueError:  # frozen, because somebody was handed a view of it
                subtract(p, s, writable(variable))

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, m: Any = None) -> tuple:
        lr, momentum = k
        s, t = scratch
        s = xp.multiply(g, lr, s)
        if m is None:
            return (xp.subtract(p, s, p),)
        m = xp.subtract(xp.multiply(m, momentum, m), s, m)
        if not self.nesterov:
            return xp.add(p, m, p), m
        t = xp.subtract(xp.multiply(m, momentum, t), s, t)
        return xp.add(p, t, p), m

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum, "nesterov": self.nesterov}


class Lion(Optimizer):
    """The sign of an average (Chen et al., 2023).

    ``p ← p − lr·sign(β₁·m + (1−β₁)·g)``, then ``m ← β₂·m + (1−β₂)·g``.
    """

    scratch = 2

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(learning_rate, *args, **kwargs)
        if not 0 < beta_1 <= 1:
            text = f"Argument `beta_1` must be in the [0, 1] range, and not 0. Received: beta_1={beta_1}."
            raise ValueError(message(text, received=f"beta_1={beta_1}", expected="above 0, up to 1"))
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def slots(self) -> list[dict[str, float]]:
        return [{"momentum": 0.0}]

    def coefficients(self, xp: Any, lr: Any, step: Any, cast: Any) -> tuple:
        beta_1, beta_2, one = cast(single(self.beta_1)), cast(single(self.beta_2)), cast(1)
        return lr, beta_1, one - beta_1, beta_2, one - beta_2

    def update(self, xp: Any, k: tuple, scratch: tuple, g: Any, p: Any, m: Any) -> tuple:
        lr, beta_1, rest_1, beta_2, rest_2 = k
        s, t = scratch
        s = xp.add(xp.multiply(m, beta_1, s), xp.multiply(g, rest_1, t), s)
        p = xp.subtract(p, xp.multiply(xp.sign(s, s), lr, s), p)
        return p, xp.add(xp.multiply(m, beta_2, m), xp.multiply(g, rest_2, t), m)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2}
