"""The rules on tensors of any storage: nothing in place, so that a step can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.context import suspended
from gradtape.core.op import RECORDED
from gradtape.errors import UnimplementedError, message
from gradtape.optimizers import gradients
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


class _Functional:
    """The functions that rules use, with NumPy's position for ``out``, which is ignored."""

    def __getattr__(self, name: str) -> Callable:
        function = getattr(RECORDED, name)
        arity = 1 if name in ("sqrt", "square", "abs", "sign", "negative") else 2
        return lambda *args, out=None: function(*args[:arity])


XP = _Functional()


def apply(optimizer: Any, pairs: list) -> None:
    """One step of the optimizer's rule, out of place."""
    if optimizer._has_options() or optimizer.use_ema:
        raise UnimplementedError(
            message(
                f"{type(optimizer).__name__} does not take clipping, weight decay, averages, loss scale or accumulation here.",
                received="variables or gradients that are not in NumPy memory",
                fix="clip the gradients before apply_gradients: tf.clip_by_global_norm",
            )
        )
    with suspended():
        lr = optimizer.learning_rate
        lr = convert_to_tensor(lr._operand() if isinstance(lr, Convertible) else lr)
        step = optimizer._iterations._operand() + 1
        present = [(convert_to_tensor(g), v) for g, v in gradients.present(pairs, optimizer, optimizer._entries)]
        for g, variable in present:
            gradients.check_shape(g._array.shape, variable)
        optimizer._begin(step)
        for g, variable in present:
            update(optimizer, g, variable, lr, step)


def update(optimizer: Any, g: Tensor, variable: Any, lr: Tensor, step: Tensor) -> None:
    """Update one variable and its slots by the rule, on tensors."""
    p = variable._operand()

    def cast(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return RECORDED.astype(value, dtype=p.dtype.name)
        return wrap(np.asarray(value, p.dtype.numpy))

    slots = optimizer._entries[variable._key][4]
    coefficients = optimizer.coefficients(XP, cast(lr), step, cast)
    values = optimizer.update(XP, coefficients, (None,) * optimizer.scratch, cast(g), p, *(slot._operand() for slot in slots))
    for target, value in zip((variable, *slots), values):
        target._put(value._array)
