"""`tf.quantization`: rounding to the grid that a few bits can hold, for training what will run in integers."""

from __future__ import annotations

from typing import Any

from gradtape.ops import quantize
from gradtape.scope import missing
from gradtape.values.tensor import Tensor

__all__ = [
    "fake_quant_with_min_max_args", "fake_quant_with_min_max_args_gradient", "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient", "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
]  # fmt: skip


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """Rounded to the grid between two numbers; the gradient passes inside the range."""
    label = "FakeQuantWithMinMaxArgs"
    return quantize.checked(label, inputs, *quantize.constant_limits(label, min, max), num_bits, narrow_range)


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """Rounded to the grid between two scalars, which get the gradients of what they cut off."""
    return quantize.checked("FakeQuantWithMinMaxVars", inputs, min, max, num_bits, narrow_range)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_vars` with limits for every index of the last axis."""
    return quantize.checked("FakeQuantWithMinMaxVarsPerChannel", inputs, min, max, num_bits, narrow_range, True)


def fake_quant_with_min_max_args_gradient(
    gradients: Any, inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of fake_quant_with_min_max_args."""
    limits = quantize.constant_limits("FakeQuantWithMinMaxArgsGradient", min, max)
    return quantize.gradients(gradients, inputs, *limits, num_bits, narrow_range)[0]


def fake_quant_with_min_max_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> list[Tensor]:
    """The gradients of fake_quant_with_min_max_vars for the inputs and both limits."""
    return quantize.gradients(gradients, inputs, min, max, num_bits, narrow_range)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> list[Tensor]:
    """The gradients of fake_quant_with_min_max_vars_per_channel for the inputs and both limits."""
    return quantize.gradients(gradients, inputs, min, max, num_bits, narrow_range)

__getattr__ = missing(__name__, __all__)
