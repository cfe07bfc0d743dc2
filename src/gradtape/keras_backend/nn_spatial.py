"""Blocks of images as columns, and as channels, and back."""

from __future__ import annotations

from typing import Any

from gradtape.errors import message
from gradtape.keras_backend.nn_conv import Numbers, layout, per_axis
from gradtape.keras_backend.numpy_promotion import tensor
from gradtape.ops import indexing, spatial
from gradtape.ops import shape as shapes
from gradtape.values.tensor import Tensor

__all__ = ["depth_to_space", "fold", "space_to_depth", "unfold"]


def unfold(input: Any, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1) -> Tensor:
    """The windows of (batch, channels, height, width) as columns: (batch, channels · window elements, windows)."""
    x = tensor(input)
    size, (high, wide) = per_axis(kernel_size, 2), per_axis(padding, 2)
    if high or wide:
        x = shapes.pad(x, widths=((0, 0), (0, 0), (high, high), (wide, wide)))
    x = shapes.transpose(x, axes=(0, 2, 3, 1))
    found = spatial.windows(x, size=size, strides=per_axis(stride, 2), dilations=per_axis(dilation, 2))
    batch, rows, columns, *_, channels = found._array.shape
    found = shapes.transpose(found, axes=(0, 5, 3, 4, 1, 2))
    return shapes.reshape(found, shape=(batch, channels * size[0] * size[1], rows * columns))


def fold(
    x: Any, output_size: Numbers, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1
) -> Tensor:
    """The transpose of `unfold`: columns added up where their windows lie."""
    x = tensor(x)
    sizes, size, edges = per_axis(output_size, 2), per_axis(kernel_size, 2), per_axis(padding, 2)
    strides, dilations = per_axis(stride, 2), per_axis(dilation, 2)
    lengths = tuple(n + 2 * edge for n, edge in zip(sizes, edges))
    counts = tuple((n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(lengths, size, dilations, strides))
    batch, depth, windows = x._array.shape
    if windows != counts[0] * counts[1] or depth % (size[0] * size[1]):
        raise ValueError(
            message(
                "fold: the columns do not fit the windows.",
                received=f"shape {x._array.shape} for output_size={sizes}, kernel_size={size}",
                expected=f"(batch, channels · {size[0] * size[1]}, {counts[0] * counts[1]})",
            )
        )
    x = shapes.reshape(x, shape=(batch, depth // (size[0] * size[1]), *size, *counts))
    x = shapes.transpose(x, axes=(0, 4, 5, 2, 3, 1))
    x = shapes.transpose(spatial.windows_transpose(x, strides=strides, dilations=dilations, lengths=lengths), axes=(0, 3, 1, 2))
    return indexing.getitem(x, index=(slice(None), slice(None), *(slice(edge, edge + n) for edge, n in zip(edges, sizes))))


def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Channels as blocks of pixels; with channels first, the blocks lie within the channels, not around them."""
    x, block = tensor(x), block_size
    if layout(data_format, 2) == "NHWC":
        batch, height, width, channels = x._array.shape
        depth = channels // block**2
        x = shapes.reshape(x, shape=(batch, height, width, block, block, depth))
        return shapes.reshape(shapes.transpose(x, axes=(0, 1, 3, 2, 4, 5)), shape=(batch, height * block, width * block, depth))
    batch, channels, height, width = x._array.shape
    depth = channels // block**2
    x = shapes.reshape(x, shape=(batch, depth, block, block, height, width))
    return shapes.reshape(shapes.transpose(x, axes=(0, 1, 4, 2, 5, 3)), shape=(batch, depth, height * block, width * block))


def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """The inverse of `depth_to_space`."""
    x, block = tensor(x), block_size
    if layout(data_format, 2) == "NHWC":
        batch, height, width, channels = x._array.shape
        rows, columns = height // block, width // block
        x = shapes.reshape(x, shape=(batch, rows, block, columns, block, channels))
        return shapes.reshape(shapes.transpose(x, axes=(0, 1, 3, 2, 4, 5)), shape=(batch, rows, columns, channels * block**2))
    batch, channels, height, width = x._array.shape
    rows, columns = height // block, width // block
    x = shapes.reshape(x, shape=(batch, channels, rows, block, columns, block))
    return shapes.reshape(shapes.transpose(x, axes=(0, 1, 3, 5, 2, 4)), shape=(batch, channels * block**2, rows, columns))
