"""`LossScale`: train in float16 without losing small gradients to zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradtape.core.indexed_slices import IndexedSlices
from gradtape.core.tape import GradientTape
from gradtape.core.variable import Variable
from gradtape.errors import message
from gradtape.ops import elementwise, reduce, shape
from gradtape.ops.control_flow import cond
from gradtape.ops.execution import staging
from gradtape.optimizers import gradients
from gradtape.optimizers.base import Optimizer
from gradtape.values.convert import Convertible
from gradtape.values.tensor import Tensor, wrap
from gradtape.xp import numpy as NUMPY

_FLOAT32_MAX = 2.0**127


class LossScale:
    """Wraps an optimizer: scale the loss up, the gradients down, and skip steps that overflowed.

    Where a gradient is not finite, nothing is applied and the scale is halved; after ``growth_steps`` good steps in a
    row it is doubled.

    >>> opt = LossScale(SGD(0.1))
    >>> v = Variable(1.0, dtype="float16")
    >>> with GradientTape() as tape:
    ...     loss = opt.scale_loss(v * v)
    >>> _ = opt.apply_gradients([(tape.gradient(loss, v), v)])
    >>> float(v), opt.skipped  # 2**15 · 2 is too large for float16
    (1.0, 1)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        growth_steps: int = 2000,
        name: str | None = None,
        dynamic_growth_steps: int | None = None,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                message("LossScale wraps an optimizer.", received=type(optimizer).__name__, fix="LossScale(Adam(0.001))")
            )
        if not initial_scale > 0 or growth_steps < 1:
            raise ValueError(
                message(
                    "LossScale needs a positive scale and at least one growth step.",
                    received=f"initial_scale={initial_scale}, growth_steps={growth_steps}",
                    expected="initial_scale above 0, growth_steps of 1 or more",
                )
            )
        self.inner_optimizer = optimizer
        self.initial_scale = float(initial_scale)
        self.growth_steps = dynamic_growth_steps or growth_steps
        self.name = name or f"loss_scale_{optimizer.name}"
        self._scale = Variable(self.initial_scale, trainable=False, dtype="float32", name=f"{self.name}/dynamic_scale")
        self._good = Variable(0, trainable=False, dtype="int64", name=f"{self.name}/step_counter")
        self._skipped = Variable(0, trainable=False, dtype="int64", name=f"{self.name}/skipped")
        self._unscaled = Variable(False, trainable=False, name=f"{self.name}/unscaled")
        self.inner_optimizer.loss_scale_factor = None  # or gradients would be scaled twice

    @property
    def scale(self) -> float:
        """The factor by which the loss is multiplied now."""
        return float(self._scale._tensor)

    @property
    def skipped(self) -> int:
        """How many steps were skipped."""
        return int(self._skipped._tensor)

    @property
    def good_steps(self) -> int:
        """How many steps went well since the scale last changed."""
        return int(self._good._tensor)

    @property
    def variables(self) -> list[Variable]:
        return [self._good, self._scale, self._skipped, *self.inner_optimizer.variables]

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale, in the loss's dtype; for a function, a function."""
        if callable(loss):
            return lambda: self.scale_loss(loss())
        self._unscaled.assign(False)
        return self.get_scaled_loss(loss)

    def get_scaled_loss(self, loss: Any) -> Any:
        """The same for gradients that go through `get_unscaled_gradients`."""
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        with NUMPY.scope():  # too large for float16: inf, and the step will be skipped
            if isinstance(loss, (Tensor, Convertible)):
                return loss * wrap(self._scale._tensor._array.astype(loss.dtype.numpy))  # type: ignore[operator,union-attr]
            return loss * self.scale

    def get_unscaled_gradients(self, grads: Iterable[Any]) -> list:
        """The gradients over the scale; until the next `scale_loss`, `apply_gradients` takes gradients as they are."""
        self._unscaled.assign(True)
        scale = self._scale._tensor._array
        return [divided(g, scale) for g in grads]

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> Any:
        """Take gradients of the scaled loss: unscale and apply them, or skip the step. Returns ``iterations``."""
        pairs = gradients.with_variables(list(grads_and_vars))
        whole = all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs)
        if whole and staging.inside:  # variables of the optimizer are made outside of the branch
            self.inner_optimizer.build([v for _, v in pairs])
        finite = [_finite(pair[0]) for pair in pairs if isinstance(pair, (tuple, list)) and pair]
        all_finite = reduce.all(shape.stack(*finite, axis=0)) if finite else True
        cond(all_finite, lambda: self._apply(pairs, whole), self._skip)
        return self.inner_optimizer.iterations

    def _skip(self) -> None:
        self._skipped.assign_add(1)
        self._good.assign(0)
        self._scale.assign(self._scale._tensor / 2)

    def _apply(self, pairs: list, whole: bool) -> None:
        """Apply the gradients, after division by the scale if they have it, and perhaps let it grow."""
        scale, good = self._scale._tensor, self._good._tensor + 1
        if whole:  # if not, the wrapped optimizer says what is wrong with the pairs
            divisor = elementwise.where(self._unscaled._tensor, elementwise.ones_like(scale), scale)._array
            pairs = [(_unscaled(g, v, divisor), v) for g, v in pairs]
        self.inner_optimizer.apply_gradients(pairs)
        grown = good >= self.growth_steps
        self._good.assign(elementwise.where(grown, elementwise.zeros_like(good), good))
        self._scale.assign(elementwise.where(grown, elementwise.minimum(scale * 2, _FLOAT32_MAX), scale))

    def apply(self, grads: Iterable[Any], trainable_variables: Iterable[Variable] | None = None) -> None:
        variables = self.inner_optimizer._trainable if trainable_variables is None else list(trainable_variables)
        self.apply_gradients(zip(grads, variables))

    def minimize(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> Any:
        """Scale, differentiate, `apply_gradients`; arguments as in `Optimizer.minimize`."""
        self._unscaled.assign(False)
        tape = GradientTape() if tape is None and callable(loss) else tape  # as in `Optimizer.minimize`
        return self.apply_gradients(gradients.of_loss(loss, var_list, tape, self._scale._tensor))

    def _checkpoint_children(self) -> dict[str, Any]:
        """What a checkpoint saves: whether the gradients at hand are unscaled is over when it is restored."""
        return {name: value for name, value in vars(self).items() if name != "_unscaled"}

    def get_config(self) -> dict[str, Any]:
        inner = self.inner_optimizer
        return {
            "name": self.name,
            "inner_optimizer": {"class_name": type(inner).__name__, "config": inner.get_config()},
            "initial_scale": self.initial_scale,
            "growth_steps": self.growth_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> LossScale:
        from gradtape.optimizers import deserialize

        config = dict(config)
        inner = deserialize(config.pop("inner_optimizer"), custom_objects)
        return cls(inner, **config)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the wrapped optimizer's: learning_rate, iterations, build, …"""
        if name == "inner_optimizer":
            raise AttributeError(name)
        return getattr(self.inner_optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("learning_rate", "lr"):
            setattr(self.inner_optimizer, name, value)
        else:
            object.__setattr__(self, name, value)


def _array(gradient: Any) -> Any:
    if isinstance(gradient, IndexedSlices):
        gradient = gradient.values
    if isinstance(gradient, Convertible):
        gradient = gradient._operand()
    return gradient._array if isinstance(gradient, Tensor) else np.asarray(gradient)


def _finite(gradient: Any) -> Tensor:
    array = np.zeros(()) if gradient is None else _array(gradient)
    if array.dtype.kind in "iubOUS":
        return wrap(np.asarray(True))
    return reduce.all(elementwise.isfinite(wrap(array)))


def divided(gradient: Any, scale: Any, dtype: Any = None) -> Any:
    """The gradient over a raw array, in its own dtype or the one given; None stays None."""
    if gradient is None:
        return None
    array = _array(gradient)
    kind = array.dtype if dtype is None else dtype
    with NUMPY.scope():
        quotient = wrap(array.astype(kind) / scale.astype(kind))
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices._of(quotient, gradient.indices, gradient.dense_shape)
    return quotient


def _unscaled(gradient: Any, variable: Any, scale: Any) -> Any:
    """Divided in the wider dtype of gradient and variable: a float16 gradient of a float32 variable keeps its small values."""
    if gradient is None or not isinstance(variable, Variable):
        return gradient
    kind, given = variable._tensor._array.dtype, _array(gradient).dtype.kind
    if given not in "fciuV" or (given == "c" and kind.kind != "c"):
        return gradient  # the wrapped optimizer says what is wrong with it
    return divided(gradient, scale, kind if kind.itemsize > 2 else np.dtype(np.float32))
