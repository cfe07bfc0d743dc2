"""Random flips, crops and adjustments, from the process's streams (``seed`` may be None) or as functions of a seed.

``source(low, high, dtype)`` draws the one number that each of them needs; everything else is the deterministic function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, image_boxes, image_codec, image_color, indexing, random
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import integers
from gradtape.ops.arrays import basic_slice
from gradtape.ops.image_geometry import image_tensor
from gradtape.ops.stateless import stateless_uniform
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import BatchedTensor, Tensor, wrap

Source = Callable[..., Tensor]
"""``source(shape, low, high, dtype)``: uniform numbers."""


def stateful(seed: Any) -> Source:
    """Numbers from the process's streams, as `random.uniform`."""
    return lambda shape, low, high, dtype=dtypes.float32: random.uniform(shape, low, high, dtype, seed)


def stateless(seed: Any) -> Source:
    """Numbers that depend on the seed alone, as `stateless_uniform`."""
    return lambda shape, low, high, dtype=dtypes.float32: stateless_uniform(shape, seed, low, high, dtype)


def _require(condition: Any, text: str, received: str, expected: str) -> None:
    if not condition:
        raise ValueError(message(text, received=received, expected=expected))


def flip(source: Source, image: Any, axis: int) -> Tensor:
    """The image, or half of the images of a batch on average, reversed along an axis that counts from the end."""
    x = image_tensor(image)
    shape = x._array.shape
    drawn = source([] if len(shape) == 3 else [shape[0]], 0.0, 1.0)
    turned = shapes.reshape(elementwise.less(drawn, 0.5), shape=(-1, *[1] * 3) if len(shape) == 4 else ())
    return elementwise.where(turned, shapes.flip(x, axis=(len(shape) + axis,)), x)


def crop(source: Source, value: Any, size: Any) -> Tensor:
    """A slice of the given size, of which -1 takes a whole axis, at a random place."""
    x = convert_to_tensor(value)
    lengths, wanted = np.array(x._array.shape, np.int64), np.array(integers(size), np.int64)
    if len(wanted) != len(lengths):
        text = f"Incompatible shapes: {dims((len(lengths),))} vs. {dims((len(wanted),))} [Op:GreaterEqual]"
        raise InvalidArgumentError(
            message(
                text,
                received=f"size {wanted.tolist()} for an array of shape {x._array.shape}",
                expected=f"{len(lengths)} lengths, one per axis",
            )
        )
    if not (lengths >= wanted).all():
        raise InvalidArgumentError(
            message(
                "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: "
                f"b'Need value.shape >= size, got '\n{', '.join(map(str, lengths))}\n{', '.join(map(str, wanted))}",
                received=f"size {wanted.tolist()} for shape {x._array.shape}",
                expected="no length larger than the array's; -1 takes a whole axis",
            )
        )
    room = lengths - wanted + 1
    drawn = source([len(lengths)], 0, np.iinfo(np.int32).max, dtypes.int32)
    if type(drawn) is BatchedTensor and (wanted >= 0).all():  # another place for each element of a batch
        start = elementwise.remainder(drawn, wrap(room.astype(np.int32)))
        for axis, length in enumerate(wanted.tolist()):
            places = indexing.getitem(start, index=(axis,)) + wrap(np.arange(length, dtype=np.int32))
            x = indexing.take(x, places, axis=axis, batch_dims=0)
        return x
    return basic_slice(x, (drawn._host() % room).tolist(), wanted.tolist())


def brightness(source: Source, image: Any, max_delta: float) -> Tensor:
    """The brightness changed by up to ``max_delta`` either way."""
    _require(max_delta >= 0, "max_delta must be non-negative.", f"{max_delta}", "0 or more")
    return image_color.adjust_brightness(image, source([], -max_delta, max_delta))


def hue(source: Source, image: Any, max_delta: float) -> Tensor:
    """The hue turned by up to ``max_delta`` either way."""
    _require(max_delta <= 0.5, "max_delta must be <= 0.5.", f"{max_delta}", "a share of the colour circle, up to 0.5")
    _require(max_delta >= 0, "max_delta must be non-negative.", f"{max_delta}", "0 or more")
    return image_color.turn_hue(image, source([], -max_delta, max_delta))


def _factor(source: Source, lower: float, upper: float) -> Tensor:
    _require(upper > lower, "upper must be > lower.", f"lower {lower}, upper {upper}", "the smaller factor first")
    _require(lower >= 0, "lower must be non-negative.", f"{lower}", "0 or more")
    return source([], lower, upper)


def contrast(source: Source, image: Any, lower: float, upper: float) -> Tensor:
    """The contrast times a factor between the bounds."""
    return image_color.adjust_contrast(image, _factor(source, lower, upper))


def saturation(source: Source, image: Any, lower: float, upper: float) -> Tensor:
    """The saturation times a factor between the bounds."""
    return image_color.adjust_saturation(image, _factor(source, lower, upper))


def jpeg_quality(source: Source, image: Any, lowest: int, highest: int) -> Tensor:
    """The image as a JPEG of a quality between the bounds would show it."""
    received = f"{lowest} to {highest}"
    inside = 0 <= lowest <= 100 and 0 <= highest <= 100
    _require(inside, "jpeg encoding range must be between 0 and 100.", received, "qualities from 0 to 100")
    _require(lowest < highest, "`min_jpeg_quality` must be less than `max_jpeg_quality`.", received, "the lower first")
    return image_codec.adjust_jpeg_quality(image, source([], lowest, highest, dtypes.int32))


def distorted_box(source: Source, image_size: Any, bounding_boxes: Any, **options: Any) -> image_boxes.DistortedBox:
    """A random rectangle that covers enough of one of the boxes."""
    return image_boxes.distorted_box(_several(source), image_size, bounding_boxes, **options)


def _several(source: Source) -> Callable[[float, float], float]:
    """One uniform number after the other; a source that depends on its seed alone is asked for many at once."""
    waiting: list[float] = []

    def draw(low: float, high: float) -> float:
        if not waiting:
            waiting.extend(source([400], 0.0, 1.0)._host().tolist())
        return low + (high - low) * waiting.pop()

    return draw
