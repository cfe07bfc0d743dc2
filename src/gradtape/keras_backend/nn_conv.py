"""Convolution, with Keras's conventions: kernels are (*size, channels, outputs) whatever the data format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
    compute_conv_transpose_padding_args_for_jax,
)  # fmt: skip
from keras.src.backend.config import standardize_data_format

from gradtape.errors import message
from gradtape.keras_backend.numpy_promotion import in_dtype, tensor, together
from gradtape.ops import conv as ops
from gradtape.ops import elementwise
from gradtape.ops import shape as shapes
from gradtape.values.tensor import Tensor

__all__ = ["conv", "conv_transpose", "depthwise_conv", "separable_conv"]

Numbers = int | Sequence[int]


def per_axis(value: Numbers, n: int) -> tuple[int, ...]:
    """One number for each of ``n`` axes of space."""
    return (value,) * n if isinstance(value, int) else tuple(value)


def layout(data_format: str | None, n: int) -> str:
    """A data format of Keras, with ``n`` axes of space, as TensorFlow spells it."""
    space = "DHW"[-n:]
    return f"NC{space}" if standardize_data_format(data_format) == "channels_first" else f"N{space}C"


def padding_word(padding: str) -> str:
    """ "SAME" or "VALID", as our ops spell it."""
    word = padding.upper()
    if word not in ("SAME", "VALID"):
        text = f"Invalid padding '{padding}', must be 'same' or 'valid'."
        raise ValueError(message(text, received=f"padding={padding!r}"))
    return word


def conv(
    inputs: Any, kernel: Any, strides: Numbers = 1, padding: str = "valid", data_format: str | None = None,
    dilation_rate: Numbers = 1,
) -> Tensor:  # fmt: skip
    """Convolution in the dtype of the kernel; there are as many groups as the inputs' channels hold those of the kernel."""
    kernel = tensor(kernel)
    inputs = in_dtype(inputs, kernel.dtype.name)
    form = layout(data_format, inputs._array.ndim - 2)
    channels, depth = inputs._array.shape[form.index("C")], kernel._array.shape[-2]
    if channels % depth:
        text = (
            "The number of input channels must be evenly divisible by kernel's in_channels. Received input channels "
            f"{channels} and kernel in_channels {depth}."
        )
        raise ValueError(message(text, expected=f"a multiple of {depth} channels", fix="data_format= says where they are"))
    return _convolved(inputs, kernel, form, strides, padding, dilation_rate)


def depthwise_conv(
    inputs: Any, kernel: Any, strides: Numbers = 1, padding: str = "valid", data_format: str | None = None,
    dilation_rate: Numbers = 1,
) -> Tensor:  # fmt: skip
    """Each channel with its own filters: kernel (*size, channels, outputs per channel)."""
    inputs, kernel = together(inputs, kernel)
    check_conv_input_channels(inputs, kernel, standardize_data_format(data_format))
    form = layout(data_format, inputs._array.ndim - 2)
    return _convolved(inputs, kernel, form, strides, padding, dilation_rate, depthwise=True)


def separable_conv(
    inputs: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Numbers = 1, padding: str = "valid",
    data_format: str | None = None, dilation_rate: Numbers = 1,
) -> Tensor:  # fmt: skip
    """A depthwise convolution, then a mixture of its outputs pixel by pixel."""
    parts = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(parts, pointwise_kernel, 1, "valid", data_format)


def _convolved(
    inputs: Tensor, kernel: Tensor, form: str, strides: Numbers, padding: str, dilations: Numbers, depthwise: bool = False
) -> Tensor:
    n = len(form) - 2
    strides, dilations = per_axis(strides, n), per_axis(dilations, n)
    shape, size = inputs._array.shape, kernel._array.shape[:-2]
    lengths = shape[2:] if form[1] == "C" else shape[1:-1]
    padding = padding_word(padding)
    if padding == "VALID" and any(m < (k - 1) * d + 1 for m, k, d in zip(lengths, size, dilations)):
        raise ValueError(
            message(
                "The convolution operation resulted in an empty output.",
                received=f"inputs of shape {shape} for a kernel of size {size}, dilated by {dilations}",
                expected="inputs at least as long as the kernel",
                fix="padding='same', or larger inputs",
            )
        )
    kind = kernel.dtype
    other = kind.is_integer and kernel._array.dtype != np.int32
    if other:  # our ops convolve int32 only; float64 is exact for 53 bits of the 64
        wide = "float64" if kind.size == 8 else "int32"
        inputs, kernel = elementwise.cast(inputs, wide), elementwise.cast(kernel, wide)
    where = {"strides": strides, "padding": padding, "dilations": dilations}
    out = ops.convolution(inputs, kernel, n, data_format=form, depthwise=depthwise, **where)
    return elementwise.cast(out, kind) if other else out


def conv_transpose(
    inputs: Any, kernel: Any, strides: Numbers = 1, padding: str = "valid", output_padding: Numbers | None = None,
    data_format: str | None = None, dilation_rate: Numbers = 1,
) -> Tensor:  # fmt: skip
    """The transpose of a convolution: kernel (*size, outputs, channels).

    Whole, it has (length - 1) · stride + size elements along an axis. Padding takes some off before and after, and where that
    would be fewer than none after, it puts zeros there.
    """
    inputs, kernel = together(inputs, kernel)
    check_conv_transpose_input_channels(inputs, kernel, standardize_data_format(data_format))
    n = inputs._array.ndim - 2
    first = layout(data_format, n)[1] == "C"
    y = ops.to_channels_last(inputs, n, first)
    size, where = kernel._array.shape[:-2], {"strides": per_axis(strides, n), "dilations": per_axis(dilation_rate, n)}
    extents = [(k - 1) * d + 1 for k, d in zip(size, where["dilations"])]
    kept = compute_conv_transpose_padding_args_for_jax(
        inputs.shape, kernel.shape, strides, padding, output_padding, dilation_rate
    )  # what Keras adds to a convolution of the spread inputs: extent - 1 on both sides where nothing is taken off
    cuts = [(extent - 1 - before, extent - 1 - after) for extent, (before, after) in zip(extents, kept)]
    pads = tuple((before, max(after, 0)) for before, after in cuts)
    lengths = tuple(
        (m - 1) * s + extent - before - after
        for m, s, extent, (before, after) in zip(y._array.shape[1:-1], where["strides"], extents, pads)
    )
    if min(lengths) < 1:
        text = f"conv_transpose would have an empty output of lengths {lengths}"
        raise ValueError(message(text, received=f"inputs {tuple(inputs.shape)}, kernel {tuple(kernel.shape)}"))
    out = ops.conv_input(y, kernel, padding=pads, groups=1, lengths=lengths, **where)
    if any(after < 0 for _, after in cuts):
        out = shapes.pad(out, widths=((0, 0), *((0, max(-after, 0)) for _, after in cuts), (0, 0)))
    return ops.from_channels_last(out, n, first)
