"""Windows over space, and blocks of space moved to the batch or to the channels and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.core.op import op
from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import arguments, indexing
from gradtape.ops import conv as convolutions
from gradtape.ops import shape as shapes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor

# Windows


@op(label="ExtractImagePatches")
def windows(xp, x, *, size, strides, dilations):
    """(examples, *positions, *size, channels): every window of (examples, *space, channels)."""
    return xp.windows(x, size=size, strides=strides, dilations=dilations)


@op(label="ExtractImagePatchesGrad")
def windows_transpose(xp, x, *, strides, dilations, lengths):
    """The transpose of `windows`: windows added up where they lie in space of the given lengths."""
    return xp.windows_transpose(x, strides=strides, dilations=dilations, lengths=lengths)


windows.vjp(
    lambda xp, g, *, strides, dilations, x_shape: xp.windows_transpose(
        g, strides=strides, dilations=dilations, lengths=x_shape[1:-1]
    )
)
windows_transpose.vjp(
    lambda xp, g, *, strides, dilations, x_shape, lengths: xp.windows(
        g, size=x_shape[len(lengths) + 1 : -1], strides=strides, dilations=dilations
    )
)


def extract_patches(x: Any, size: Any, strides: Any, rates: Any, padding: str, n: int = 2) -> Tensor:
    """(batch, *positions, window elements · channels): windows of ``x``, zeros outside of it."""
    label = "ExtractImagePatches" if n == 2 else "ExtractVolumePatches"
    x = convert_to_tensor(x)
    if x._array.ndim != n + 2:
        raise InvalidArgumentError(
            message(
                f"input must be {n + 2}-dimensional: {dims(x._array.shape)} [Op:{label}]",
                received=f"shape {x._array.shape}",
                expected=f"(batch, {n} lengths, channels)",
                fix="add a batch axis: x[tf.newaxis]",
            )
        )
    size = convolutions.per_axis(size, n, False, "ksizes")
    strides = convolutions.per_axis(strides, n, False, "strides")
    dilations = convolutions.per_axis(rates, n, False, "rates")
    batch, *lengths, channels = x._array.shape
    pairs = convolutions.pads(padding, False, lengths, size, strides, dilations)
    counts = convolutions.positions(lengths, pairs, size, strides, dilations, label)
    if any(map(any, pairs)):
        x = shapes.pad(x, widths=((0, 0), *pairs, (0, 0)))
    found = windows(x, size=size, strides=strides, dilations=dilations)
    return shapes.reshape(found, shape=(batch, *counts, math.prod(size) * channels))


# Blocks


def _block_size(block_size: Any, label: str) -> int:
    block = arguments.integer(block_size)
    if block < 2:
        raise InvalidArgumentError(
            message(f"Value for attr 'block_size' of {block} must be at least minimum 2 [Op:{label}]", expected="2 or more")
        )
    return block


def _image(x: Any, data_format: str, label: str) -> tuple[Tensor, bool]:
    x = convert_to_tensor(x)
    first = convolutions.channels_first(data_format, 2)
    if x._array.ndim != 4:
        raise InvalidArgumentError(
            message(
                f"Input rank should be: 4 instead of: {x._array.ndim} [Op:{label}]",
                received=f"shape {x._array.shape}",
                expected="(batch, height, width, channels)",
                fix="add a batch axis: x[tf.newaxis]",
            )
        )
    return convolutions.to_channels_last(x, 2, first), first


def space_to_depth(x: Any, block_size: Any, data_format: str = "NHWC") -> Tensor:
    """Each block of block × block pixels as the channels of one pixel, row by row."""
    label = "SpaceToDepth"
    block = _block_size(block_size, label)
    x, first = _image(x, data_format, label)
    batch, height, width, channels = x._array.shape
    if height % block or width % block:
        raise InvalidArgumentError(
            message(
                f"Image width {width} and height {height} should be divisible by block_size: {block} [Op:{label}]",
                received=f"height {height}, width {width}, block_size {block}",
                fix=f"tf.pad up to multiples of {block}",
            )
        )
    x = shapes.reshape(x, shape=(batch, height // block, block, width // block, block, channels))
    x = shapes.transpose(x, axes=(0, 1, 3, 2, 4, 5))
    x = shapes.reshape(x, shape=(batch, height // block, width // block, block * block * channels))
    return convolutions.from_channels_last(x, 2, first)


def depth_to_space(x: Any, block_size: Any, data_format: str = "NHWC") -> Tensor:
    """The inverse of `space_to_depth`."""
    label = "DepthToSpace"
    block = _block_size(block_size, label)
    x, first = _image(x, data_format, label)
    batch, height, width, channels = x._array.shape
    if channels % (block * block):
        raise InvalidArgumentError(
            message(
                f"Input depth dimension {channels} should be divisible by: {block * block} [Op:{label}]",
                received=f"{channels} channels, block_size {block}",
                expected=f"a multiple of {block * block} channels",
            )
        )
    depth = channels // (block * block)
    x = shapes.reshape(x, shape=(batch, height, width, block, block, depth))
    x = shapes.transpose(x, axes=(0, 1, 3, 2, 4, 5))
    x = shapes.reshape(x, shape=(batch, height * block, width * block, depth))
    return convolutions.from_channels_last(x, 2, first)


def _blocks_and_pairs(x: Any, block_shape: Any, pairs: Any, name: str, label: str) -> tuple:
    """A tensor, the block lengths, and a pair for each, checked."""
    x = convert_to_tensor(x)
    blocks = arguments.integers(block_shape)
    table = np.asarray(convert_to_tensor(pairs)).astype(np.int64)
    if table.shape != (len(blocks), 2):
        raise InvalidArgumentError(
            message(
                f"{name} should have shape [{len(blocks)}, 2] instead of {dims(table.shape)} [Op:{label}]",
                received=f"{name} of shape {table.shape}",
                expected=f"[before, after] for each of the {len(blocks)} block lengths",
            )
        )
    if x._array.ndim < 1 + len(blocks):
        raise InvalidArgumentError(
            message(
                f"input rank should be >= {1 + len(blocks)} instead of {x._array.ndim} [Op:{label}]",
                received=f"shape {x._array.shape} for block_shape {blocks}",
                expected=f"a batch axis, and {len(blocks)} more",
            )
        )
    for i, n in enumerate(blocks):
        if n < 1:
            text = f"All values in block_shape must be positive, got value, {n} at index {i}. [Op:{label}]"
            raise InvalidArgumentError(message(text, received=f"block_shape {blocks}", expected="1 or more"))
    if (table < 0).any():
        text = f"{name.capitalize()} must be non-negative [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"{table.tolist()}", expected="0 or more"))
    return x, blocks, tuple((int(a), int(b)) for a, b in table)


def space_to_batch(x: Any, block_shape: Any, paddings: Any) -> Tensor:
    """Zero padding, then the pixels of each block to different examples: (block elements · batch, …)."""
    label = "SpaceToBatchND"
    x, blocks, pairs = _blocks_and_pairs(x, block_shape, paddings, "paddings", label)
    m = len(blocks)
    rest = x._array.shape[1 + m :]
    x = shapes.pad(x, widths=((0, 0), *pairs, *[(0, 0)] * len(rest)))
    batch, *lengths = x._array.shape[: 1 + m]
    for axis, (n, block) in enumerate(zip(lengths, blocks)):
        if n % block:
            raise InvalidArgumentError(
                message(
                    f"padded_shape[{axis}]={n} is not divisible by block_shape[{axis}]={block} [Op:{label}]",
                    received=f"block_shape {blocks} for padded lengths that include {n}",
                    fix=f"pad axis {axis} up to a multiple of {block}",
                )
            )
    split = [part for n, block in zip(lengths, blocks) for part in (n // block, block)]
    x = shapes.reshape(x, shape=(batch, *split, *rest))
    inner, outer = range(2, 2 * m + 1, 2), range(1, 2 * m + 1, 2)
    x = shapes.transpose(x, axes=(*inner, 0, *outer, *range(2 * m + 1, 2 * m + 1 + len(rest))))
    shape = (math.prod(blocks) * batch, *(n // block for n, block in zip(lengths, blocks)), *rest)
    return shapes.reshape(x, shape=shape)


def batch_to_space(x: Any, block_shape: Any, crops: Any) -> Tensor:
    """The inverse of `space_to_batch`."""
    label = "BatchToSpaceND"
    x, blocks, pairs = _blocks_and_pairs(x, block_shape, crops, "crops", label)
    m = len(blocks)
    batch, *lengths = x._array.shape[: 1 + m]
    rest = x._array.shape[1 + m :]
    count = math.prod(blocks)
    if batch % count:
        text = f"Input batch dimension ({batch}) is not divisible by product of block sizes ({count}) [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"a batch of {batch} for block_shape {blocks}", expected=f"a multiple of {count}")
        )
    for axis, (n, block, pair) in enumerate(zip(lengths, blocks, pairs)):
        if sum(pair) > n * block:
            text = f"cropped_shape[{axis}]={n * block - sum(pair)} must be non-negative [Op:{label}]"
            raise InvalidArgumentError(
                message(text, received=f"crops {pair} of a length of {n * block}", expected=f"at most {n * block} in all")
            )
    x = shapes.reshape(x, shape=(*blocks, batch // count, *lengths, *rest))
    order = [m, *(axis for i in range(m) for axis in (m + 1 + i, i))]
    x = shapes.transpose(x, axes=(*order, *range(2 * m + 1, 2 * m + 1 + len(rest))))
    whole = tuple(n * block for n, block in zip(lengths, blocks))
    x = shapes.reshape(x, shape=(batch // count, *whole, *rest))
    return indexing.getitem(x, index=(slice(None), *(slice(a, n - b) for (a, b), n in zip(pairs, whole))))


def required_paddings(input_shape: Any, block_shape: Any, base_paddings: Any = None) -> tuple[Tensor, Tensor]:
    """The least paddings, not less than the base ones, that make lengths multiples of the block, and the crops to match."""
    lengths, block = (np.asarray(arguments.integers(value), np.int32) for value in (input_shape, block_shape))
    base = np.zeros((block.size, 2), np.int32) if base_paddings is None else np.asarray(convert_to_tensor(base_paddings))
    extra = -(lengths + base.sum(1)) % block
    paddings = np.stack([base[:, 0], base[:, 1] + extra], 1).astype(np.int32)
    return convert_to_tensor(paddings), convert_to_tensor(np.stack([np.zeros_like(extra), extra], 1).astype(np.int32))
