"""Measures of images and of how two of them differ: total variation, PSNR, SSIM, edges, gradients, standardization.

Composed of recorded ops and of `weigh_taps` for the filters, which are all separable.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops import arrays, elementwise, indexing, reduce
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import not_allowed
from gradtape.ops.image_color import convert_image_dtype
from gradtape.ops.nn import relu
from gradtape.ops.taps import Taps, weigh_taps
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor


def _difference(x: Tensor, axis: int) -> Tensor:
    """Each pixel's successor along an axis, counted from the end, minus itself."""
    tail = (slice(None),) * (-axis - 1)
    return elementwise.subtract(
        indexing.getitem(x, index=(Ellipsis, slice(1, None), *tail)),
        indexing.getitem(x, index=(Ellipsis, slice(None, -1), *tail)),
    )


def total_variation(images: Any) -> Tensor:
    """Σ |differences of neighbouring pixels|, for each image.

    >>> float(total_variation([[[0.0], [1.0]], [[0.0], [3.0]]]))
    6.0
    """
    x = convert_to_tensor(images)
    if x._array.ndim not in (3, 4):
        text = "'images' must be either 3 or 4-dimensional."
        raise ValueError(
            message(text, received=f"shape {x._array.shape}", expected="(height, width, channels), or a batch of them")
        )
    if x.dtype.is_unsigned or not x.dtype.is_numeric:
        raise not_allowed("Abs", x._array.dtype, "bfloat16, half, float, double, int8, int16, int32, int64")
    rows, columns = (reduce.sum(elementwise.abs(_difference(x, axis)), axis=(-3, -2, -1)) for axis in (-3, -2))
    return elementwise.add(rows, columns)


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """(dy, dx): the next pixel minus this one downwards and to the right; 0 in the last row or column."""
    x = convert_to_tensor(image)
    if x._array.ndim != 4:
        text = f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x._array.shape}."
        raise ValueError(message(text, fix="image[None] adds a batch axis"))
    batch, rows, columns, channels = x._array.shape
    if not (rows and columns):
        number = batch * max(rows, 1) * max(columns, 1) * channels
        text = f"Input to reshape is a tensor with {number} values, but the requested shape has 0 [Op:Reshape]"
        raise InvalidArgumentError(message(text, received=f"shape {x._array.shape}", expected="rows and columns"))
    down = shapes.pad(_difference(x, -3), widths=((0, 0), (0, 1), (0, 0), (0, 0)))
    right = shapes.pad(_difference(x, -2), widths=((0, 0), (0, 0), (0, 1), (0, 0)))
    return down, right


def sobel_edges(image: Any) -> Tensor:
    """(dy, dx) on a new last axis: differences across two pixels, smoothed by (1, 2, 1), with mirrored edges."""
    x = convert_to_tensor(image)
    padded = arrays.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    if not x.dtype.is_floating:
        raise not_allowed("DepthwiseConv2dNative", x._array.dtype, "half, bfloat16, float, double")
    rows, columns = padded._array.shape[1:3]
    across, smooth = ((-1.0, 0.0, 1.0), (1.0, 2.0, 1.0))
    down = _filtered(padded, _window(rows, across), _window(columns, smooth))
    right = _filtered(padded, _window(rows, smooth), _window(columns, across))
    return shapes.stack(down, right, axis=4)


def _filtered(x: Tensor, down: Taps, across: Taps) -> Tensor:
    return weigh_taps(weigh_taps(x, taps=down, axis=x._array.ndim - 3), taps=across, axis=x._array.ndim - 2)


@functools.lru_cache(64)
def _window(length: int, weights: tuple[float, ...]) -> Taps:
    """A filter of these weights at every place where it fits; taps of weight 0 are left out."""
    kept = [k for k, weight in enumerate(weights) if weight]
    count = length - len(weights) + 1
    row = np.array([weights[k] for k in kept], np.float64)
    return Taps(np.arange(count)[:, None] + kept, np.repeat(row[None], count, 0), length)


def per_image_standardization(image: Any) -> Tensor:
    """(x - mean) / max(σ, 1 / √N) over the N pixels and channels of each image, in float32."""
    x = convert_to_tensor(image)
    shape = x._array.shape
    if len(shape) < 3:
        text = f"'image' (shape {shape}) must be at least three-dimensional."
        raise ValueError(
            message(text, received=f"shape {shape}", expected="(height, width, channels), or several with leading axes")
        )
    if not all(shape[-3:]):
        text = f"inner 3 dims of 'image.shape' must be > 0: {shape}"
        raise ValueError(message(text, received=f"shape {shape}", expected="lengths of 1 or more"))
    x = elementwise.cast(x, dtypes.float32)
    centred = x - reduce.mean(x, axis=(-3, -2, -1), keepdims=True)
    deviation = elementwise.sqrt(reduce.mean(elementwise.square(centred), axis=(-3, -2, -1), keepdims=True))
    return centred / elementwise.maximum(deviation, 1 / math.sqrt(math.prod(shape[-3:])))


# Comparison of two images


def _pair(x: Any, y: Any, max_val: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Two images, or batches of them, and the largest value that a pixel can have, all in float32."""
    x = convert_to_tensor(x)
    y = convert_to_tensor(y, None if isinstance(y, Tensor) else x.dtype)
    limit = convert_image_dtype(elementwise.cast(convert_to_tensor(max_val), x.dtype), dtypes.float32)
    for image in (x, y):
        if image._array.ndim < 3:
            raise ValueError(
                message(
                    f"Shape {image._array.shape} must have rank at least 3",
                    received=f"shape {image._array.shape}",
                    expected="(height, width, channels), or several with leading axes",
                )
            )
    if x._array.shape[-3:] != y._array.shape[-3:]:
        raise ValueError(
            message(
                f"Shapes {x._array.shape} and {y._array.shape} are incompatible",
                expected="the same height, width and channels",
            )
        )
    return convert_image_dtype(x, dtypes.float32), convert_image_dtype(y, dtypes.float32), limit


def psnr(x: Any, y: Any, max_val: Any) -> Tensor:
    """Peak signal-to-noise ratio 10 · log₁₀(max² / mean squared error), for each pair of images; inf for equal ones."""
    if convert_to_tensor(x)._array.ndim < 3:
        rank = convert_to_tensor(x)._array.ndim
        raise InvalidArgumentError(
            message(f"Invalid reduction dimension (-3 for input with {rank} dimension(s) [Op:Mean]", expected="3 axes or more")
        )
    a, b, limit = _pair(x, y, max_val)
    error = reduce.mean(elementwise.square(a - b), axis=(-3, -2, -1))
    return (elementwise.log(limit) * 2 - elementwise.log(error)) * (10 / math.log(10))


def _similarity(x: Tensor, y: Tensor, limit: Tensor, filter_size: int, filter_sigma: float, k1: float, k2: float) -> Any:
    """SSIM and its contrast-structure part, at every place where the Gaussian window fits."""
    rows, columns = x._array.shape[-3:-1]
    if filter_size < 1:
        text = "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        raise InvalidArgumentError(message(text, received=f"{filter_size}", expected="filter_size of 1 or more"))
    if min(rows, columns) < filter_size:
        raise InvalidArgumentError(
            message(
                "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: "
                f"{', '.join(map(str, x._array.shape[-3:]))}\n{filter_size}",
                received=f"images of {rows} x {columns}", expected=f"at least {filter_size} x {filter_size}, the filter's size",
            )
        )  # fmt: skip
    window = _bell(filter_size, filter_sigma)

    def smooth(image: Tensor) -> Tensor:
        return _filtered(image, _window(rows, window), _window(columns, window))

    mean_x, mean_y = smooth(x), smooth(y)
    product, squares = mean_x * mean_y * 2, elementwise.square(mean_x) + elementwise.square(mean_y)
    c1, c2 = (elementwise.square(limit * k) for k in (k1, k2))
    luminance = (product + c1) / (squares + c1)
    structure = (smooth(x * y) * 2 - product + c2) / (smooth(elementwise.square(x) + elementwise.square(y)) - squares + c2)
    return luminance * structure, structure


@functools.lru_cache(16)
def _bell(size: int, sigma: float) -> tuple[float, ...]:
    """Gaussian weights that sum to 1."""
    places = np.arange(size) - (size - 1) / 2
    weights = np.exp(-0.5 * np.square(places / sigma))
    return tuple(weights / weights.sum())


def ssim(
    x: Any, y: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:  # fmt: skip
    """Structural similarity, the mean over places and channels, or over channels alone (``return_index_map``)."""
    a, b, limit = _pair(x, y, max_val)
    value, _ = _similarity(a, b, limit, int(filter_size), float(filter_sigma), k1, k2)
    return reduce.mean(value, axis=(-1,) if return_index_map else (-3, -2, -1))


POWER_FACTORS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    x: Any, y: Any, max_val: Any, power_factors: Sequence[float] = POWER_FACTORS, filter_size: int = 11,
    filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """Π structureₖ ** powerₖ over ever halved images, times luminance at the smallest; the mean over channels."""
    a, b, limit = _pair(x, y, max_val)
    out: Any = None
    for k, power in enumerate(power_factors):
        if k:
            a, b = _halved(a), _halved(b)
        value, structure = _similarity(a, b, limit, int(filter_size), float(filter_sigma), k1, k2)
        kept = value if k == len(power_factors) - 1 else structure
        factor = elementwise.power(relu(reduce.mean(kept, axis=(-3, -2))), float(power))
        out = factor if out is None else out * factor
    return reduce.mean(out, axis=(-1,))


def _halved(x: Tensor) -> Tensor:
    """Means of 2 × 2 pixels; an odd edge counts twice."""
    rows, columns = x._array.shape[-3:-1]
    return _filtered(x, _pairs(rows), _pairs(columns))


@functools.lru_cache(64)
def _pairs(length: int) -> Taps:
    places = np.minimum(np.arange(length + length % 2), length - 1).reshape(-1, 2)
    return Taps(places, np.full(places.shape, 0.5), length)
