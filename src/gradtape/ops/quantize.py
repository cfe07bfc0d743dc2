"""Fake quantization: numbers rounded to the grid that a few bits can hold, with straight-through gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor


def _steps(bits: int, narrow: bool) -> int:
    return 2**bits - 1 - narrow


def _limits(xp: Any, low: Any, high: Any, steps: int) -> tuple:
    """The grid's step, lowest and highest point: the range moved a little so that 0 is a point of the grid."""
    step = (high - low) / steps
    empty = xp.equal(step, xp.zeros_like(step))
    before = -low / xp.where(empty, xp.ones_like(step), step)  # how many steps 0 is above the lowest point
    inside = xp.minimum(xp.maximum(before, xp.zeros_like(before)), xp.full(shape=(), value=steps, dtype=xp.dtype(before)))
    origin = xp.floor(inside + 0.5)
    return step, -origin * step, (steps - origin) * step


@op
def fake_quantize(xp, x, low, high, *, bits, narrow):
    """x limited to [low, high] and rounded to one of 2ᵇ points between them (2ᵇ - 1 if narrow)."""
    step, lowest, highest = _limits(xp, low, high, _steps(bits, narrow))
    limited = xp.minimum(xp.maximum(x, lowest), highest)
    empty = xp.equal(step, xp.zeros_like(step))
    per_unit = xp.reciprocal(xp.where(empty, xp.ones_like(step), step))  # as TensorFlow, so that ties fall as there
    count = xp.floor((limited - lowest) * per_unit + 0.5)
    return count * step + lowest


def _limited_rule(choose):
    """The cotangent where ``choose`` holds of x and the grid's ends, as if rounding were the identity."""

    def rule(xp, g, x, low, high, *, bits, narrow):
        _, lowest, highest = _limits(xp, low, high, _steps(bits, narrow))
        return xp.where(choose(xp, x, lowest, highest), g, xp.zeros_like(g))

    return rule


fake_quantize.vjp(
    _limited_rule(lambda xp, x, low, high: xp.logical_and(xp.greater_equal(x, low), xp.less_equal(x, high))),
    _limited_rule(lambda xp, x, low, high: xp.less(x, low)),
    _limited_rule(lambda xp, x, low, high: xp.greater(x, high)),
)


def checked(label: str, x: Any, low: Any, high: Any, bits: int, narrow: bool, per_channel: bool = False) -> Tensor:
    """fake_quantize in float32, with limits that are scalars or one number per channel (the last axis)."""
    x, low, high = (convert_to_tensor(value, dtypes.float32) for value in (x, low, high))
    if not 2 <= bits <= 16:
        text = f"num_bits must be between 2 and 16, inclusive [Op:{label}]"
        raise InvalidArgumentError(message(text, received=str(bits), expected="2 to 16"))
    for name, limit in (("min", low), ("max", high)):
        shape = limit._array.shape
        if not per_channel and shape:
            raise InvalidArgumentError(
                message(
                    f"`{name}` must be rank 0 but is rank {len(shape)} [Op:{label}]",
                    received=f"{name} of shape {shape}",
                    expected="one number",
                    fix="fake_quant_with_min_max_vars_per_channel takes one per channel",
                )
            )
        if per_channel and shape != x._array.shape[-1:]:
            if len(shape) != 1:
                text = f"`{name}` must be rank 1 but is rank {len(shape)} [Op:{label}]"
                raise InvalidArgumentError(
                    message(text, received=f"{name} of shape {shape}", expected="one number per channel")
                )
            expected = x._array.shape[-1] if x._array.ndim else dims(())
            raise InvalidArgumentError(
                message(
                    f"{name} has incorrect size, expected {expected} was {shape[0]} [Op:{label}]",
                    received=f"{name} of shape {shape} for inputs of shape {x._array.shape}",
                    expected="one number per channel, the last axis",
                )
            )
    return fake_quantize(x, low, high, bits=bits, narrow=narrow)


def constant_limits(label: str, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Limits that are Python numbers, the lower one smaller."""
    if not low < high:
        text = f"min has to be smaller than max, was: {low:g} >= {high:g} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"min={low:g}, max={high:g}", fix="min below max"))
    return np.float32(low), np.float32(high)  # type: ignore[return-value]


def gradients(g: Any, x: Any, low: Any, high: Any, bits: int, narrow: bool) -> list[Tensor]:
    """The cotangents of x and the limits for the cotangent ``g`` of the result."""
    from gradtape.core.tape import GradientTape

    sources = [convert_to_tensor(value, dtypes.float32) for value in (x, low, high)]
    with GradientTape() as tape:
        tape.watch(sources)
        out = fake_quantize(*sources, bits=bits, narrow=narrow)
    return tape.gradient(out, sources, output_gradients=convert_to_tensor(g, dtypes.float32))
