"""Resizing of images (…, height, width, channels): along each axis a linear map of a few taps per output.

Every method differs only in its taps. Pixel i covers [i, i + 1], so that its centre is at i + 1/2. The positions of
samples are computed in float32, as in TensorFlow, because their rounding decides which pixels are read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, OutOfRangeError, dims, message
from gradtape.ops import elementwise, indexing
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import integers
from gradtape.ops.taps import Taps, weigh_taps
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_ALLOWED = "int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16"
_REFUSED = (dtypes.uint32, dtypes.uint64, dtypes.bool_, dtypes.string, dtypes.complex64, dtypes.complex128)


class ResizeMethod:
    """The names of the methods of `resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


# Kernels: the weight of a pixel at distance x ≥ 0 from the sample, and the distance from which on it is 0


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - x, 0)


def _keys(x: np.ndarray) -> np.ndarray:
    """The cubic convolution kernel with slope -1/2 at 1."""
    inner = (1.5 * x - 2.5) * x * x + 1
    outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, inner, np.where(x < 2, outer, 0))


def _mitchell(x: np.ndarray) -> np.ndarray:
    """The cubic of Mitchell and Netravali with B = C = 1/3."""
    inner = (7 / 6 * x - 2) * x * x + 8 / 9
    outer = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, inner, np.where(x < 2, outer, 0))


def _gaussian(x: np.ndarray) -> np.ndarray:
    return np.where(x < 1.5, np.exp(-2 * x * x), 0)


def _lanczos(radius: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)


KERNELS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "triangle": (_triangle, 1.0),
    "keyscubic": (_keys, 2.0),
    "mitchellcubic": (_mitchell, 2.0),
    "gaussian": (_gaussian, 1.5),
    "lanczos3": (_lanczos(3), 3.0),
    "lanczos5": (_lanczos(5), 5.0),
}


# Taps of the methods


def _centres(old: int, new: int) -> np.ndarray:
    """Where the centre of each new pixel lies among the centres of the old ones, which are 0, 1, 2 …"""
    scale = np.float32(old) / np.float32(new)
    return (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(0.5)


def _nearest_taps(old: int, new: int) -> Taps:
    scale = np.float32(old) / np.float32(new)
    place = np.floor((np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale).astype(np.int64)
    return Taps(np.minimum(place, old - 1)[:, None], np.ones((new, 1), np.float32), old)


def _bilinear_taps(old: int, new: int) -> Taps:
    centre = _centres(old, new)
    below = np.floor(centre)
    part = (centre - below)[:, None]
    indices = np.stack([np.maximum(below, 0), np.minimum(np.ceil(centre), old - 1)], 1)
    return Taps(indices, np.concatenate([1 - part, part], 1), old)


_STEPS = 1024  # TensorFlow tabulates the cubic kernel at this many places between two pixels


def _bicubic_taps(old: int, new: int) -> Taps:
    centre = _centres(old, new)
    below = np.floor(centre)
    part = np.rint((centre - below) * _STEPS) / _STEPS
    place = below[:, None] + np.arange(-1, 3)
    weights = _keys(np.abs(part[:, None].astype(np.float64) - np.arange(-1, 3)))
    return _normalized(place, np.where((place >= 0) & (place < old), weights, 0), old)


def _normalized(place: np.ndarray, weights: np.ndarray, old: int) -> Taps:
    """Weights that sum to 1, where they sum to anything; places beyond the edge have weight 0."""
    total = weights.sum(1, keepdims=True)
    weights = weights / np.where(np.abs(total) < 1e-30, 1, total)
    return Taps(np.clip(place, 0, old - 1), weights.astype(np.float32), old)


def _area_taps(old: int, new: int) -> Taps:
    """Each new pixel is the mean of the old ones that it covers, in part or whole."""
    edges = np.arange(new + 1) * (old / new)
    low, high = edges[:-1, None], edges[1:, None]
    place = np.floor(low) + np.arange(math.ceil(old / new) + 1)
    covered = np.minimum(place + 1, high) - np.maximum(place, low)
    return _normalized(place, np.maximum(covered, 0), old)


def _kernel_taps(old: int, new: int, kernel: str, antialias: bool) -> Taps:
    """Weights of a kernel around each centre; with antialias it is stretched over the old pixels that a new one covers."""
    function, radius = KERNELS[kernel]
    scale = np.float32(1) / (np.float32(new) / np.float32(old))
    stretch = max(scale, np.float32(1)) if antialias else np.float32(1)
    sample = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale
    reach = np.float32(radius) * stretch
    first = np.clip(np.ceil(sample - reach - np.float32(0.5)), 0, old - 1)
    last = np.clip(np.floor(sample + reach - np.float32(0.5)), 0, old - 1)
    place = first[:, None] + np.arange(int((last - first).max()) + 1, dtype=np.float32)
    distance = np.abs(place + np.float32(0.5) - sample[:, None]) / stretch
    weights = np.where(place <= last[:, None], function(distance.astype(np.float64)), 0)
    return _normalized(place, weights, old)


@functools.lru_cache(256)
def resize_taps(old: int, new: int, method: str, antialias: bool = False) -> Taps:
    """The taps that take an axis from length ``old`` to ``new``."""
    if method == "nearest":
        return _nearest_taps(old, new)
    if method == "area":
        return _area_taps(old, new)
    if method == "bilinear":
        return _kernel_taps(old, new, "triangle", True) if antialias else _bilinear_taps(old, new)
    if method == "bicubic":
        return _kernel_taps(old, new, "keyscubic", True) if antialias else _bicubic_taps(old, new)
    return _kernel_taps(old, new, method, antialias)


# Resizing

_LABELS = {"nearest": "ResizeNearestNeighbor", "area": "ResizeArea", "bilinear": "ResizeBilinear", "bicubic": "ResizeBicubic"}


def resize(
    images: Any, size: Any, method: str = "bilinear", preserve_aspect_ratio: bool = False, antialias: bool = False
) -> Tensor:
    """Images of another height and width, in float32 except for the method ``nearest``, which keeps the dtype.

    >>> resize([[[0.0], [1.0]]], [1, 4]).numpy().ravel()
    array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
    """
    x = convert_to_tensor(images)
    if x._array.ndim not in (3, 4):
        raise ValueError(
            message(
                "'images' must have either 3 or 4 dimensions.",
                received=f"shape {x._array.shape}",
                expected="(height, width, channels), or a batch of them",
                fix="image[..., tf.newaxis] gives a grey picture its channel",
            )
        )
    height, width = _new_size(x._array.shape[-3:-1], size, preserve_aspect_ratio)
    if method not in (value for name, value in vars(ResizeMethod).items() if name.isupper()):
        raise ValueError(message(f"Resize method is not implemented: {method}", expected="a name in tf.image.ResizeMethod"))
    label = _LABELS.get(method, "ScaleAndTranslate")
    if x.dtype in _REFUSED:
        text = f"Value for attr 'T' of {x.dtype.word} is not in the list of allowed values: {_ALLOWED}"
        raise InvalidArgumentError(message(text, fix="tf.image.convert_image_dtype(images, tf.float32)"))
    if height <= 0 or width <= 0:
        text = f"output dimensions must be positive [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"{height, width}", expected="a height and a width of 1 or more"))
    if not all(x._array.shape[-3:-1]):
        text = f"input image must be of non-zero size [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"shape {x._array.shape}", expected="a height and a width of 1 or more")
        )
    if method != "nearest":
        x = elementwise.cast(x, dtypes.float32)
    axes = [(x._array.ndim - 3, height), (x._array.ndim - 2, width)]
    if height > x._array.shape[-3]:  # whole rows are faster to read than pixels, so the smaller array is read by pixels
        axes.reverse()
    for axis, new in axes:
        taps = resize_taps(x._array.shape[axis], new, method, antialias)
        x = x if taps.is_identity else weigh_taps(x, taps=taps, axis=axis)
    return elementwise.identity(x) if x is images else x


def _new_size(old: tuple[int, int], size: Any, preserve_aspect_ratio: bool) -> tuple[int, int]:
    try:
        found = convert_to_tensor(size, dtypes.int32)._host()
    except (TypeError, ValueError):
        text = "'size' must be a 1-D int32 Tensor"
        raise ValueError(message(text, received=f"{size!r}", expected="[new_height, new_width], two integers")) from None
    if found.shape != (2,):
        text = "'size' must be a 1-D Tensor of 2 elements: new_height, new_width"
        raise ValueError(message(text, received=f"shape {found.shape}", expected="[new_height, new_width]"))
    if preserve_aspect_ratio:
        lengths = np.array(old, np.float32)
        with np.errstate(all="ignore"):
            found = np.rint(lengths * (found.astype(np.float32) / lengths).min())
    return int(found[0]), int(found[1])


# Crops of boxes: composed of recorded ops, so that gradients flow to the images and to the boxes


def crop_and_resize(
    image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: str = "bilinear", extrapolation_value: float = 0.0
) -> Tensor:
    """One crop of ``crop_size`` per box (y1, x1, y2, x2), in units of height - 1 and width - 1, in float32."""
    image, boxes = convert_to_tensor(image), convert_to_tensor(boxes, dtypes.float32)
    numbers = convert_to_tensor(box_indices, dtypes.int32)
    size = integers(crop_size)
    _check_boxes(image, boxes, numbers, size, method)
    image = elementwise.cast(image, dtypes.float32)
    _, height, width, _ = image._array.shape
    number = shapes.reshape(numbers, shape=(-1, 1, 1))
    y1, x1, y2, x2 = (indexing.getitem(boxes, index=(slice(None), i)) for i in range(4))
    y, y_inside = _samples(y1, y2, height, size[0])
    x, x_inside = _samples(x1, x2, width, size[1])
    y, y_inside = (shapes.expand_dims(v, axis=2) for v in (y, y_inside))
    x, x_inside = (shapes.expand_dims(v, axis=1) for v in (x, x_inside))
    if method == "nearest":
        crops = _pixels(image, number, _rounded(y), _rounded(x))
    else:
        crops = _interpolated(image, number, y, x)
    inside = shapes.expand_dims(elementwise.logical_and(y_inside, x_inside), axis=3)
    return elementwise.where(inside, crops, float(extrapolation_value))


def _samples(low: Tensor, high: Tensor, length: int, count: int) -> tuple[Tensor, Tensor]:
    """Positions (boxes, count) from ``low`` to ``high`` on an axis, and whether they lie on it; 0 where they do not."""
    last = float(length - 1)
    if count > 1:
        steps = elementwise.cast(wrap(np.arange(count)[None]), low.dtype)
        stride = (high - low) * last / float(count - 1)
        place = shapes.expand_dims(low * last, axis=1) + steps * shapes.expand_dims(stride, axis=1)
    else:
        place = shapes.expand_dims(0.5 * (low + high) * last, axis=1)
    inside = elementwise.logical_and(elementwise.greater_equal(place, 0.0), elementwise.less_equal(place, last))
    return elementwise.where(inside, place, elementwise.zeros_like(place)), inside


def _rounded(x: Tensor) -> Tensor:
    """The nearest whole numbers, upwards from halves; ``floor(x + 0.5)`` would round twice."""
    below = elementwise.floor(x)
    return elementwise.where(elementwise.greater_equal(x - below, 0.5), below + 1.0, below)


def _interpolated(image: Tensor, number: Tensor, y: Tensor, x: Tensor) -> Tensor:
    top, left = elementwise.floor(y), elementwise.floor(x)
    bottom, right = elementwise.ceil(y), elementwise.ceil(x)
    down, across = (shapes.expand_dims(v, axis=3) for v in (y - top, x - left))

    def row(at: Tensor) -> Tensor:
        first = _pixels(image, number, at, left)
        return first + (_pixels(image, number, at, right) - first) * across

    upper = row(top)
    return upper + (row(bottom) - upper) * down


def _pixels(image: Tensor, number: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The pixels at whole positions: (boxes, height, width, channels)."""
    shape = (*y._array.shape[:2], x._array.shape[2])
    parts = (elementwise.cast(part, dtypes.int32) for part in (number, y, x))
    where = shapes.stack(*(shapes.broadcast_to(part, shape=shape) for part in parts), axis=3)
    return indexing.gather_nd(elementwise.identity(image), where)


def _check_boxes(image: Tensor, boxes: Tensor, numbers: Tensor, size: tuple[int, ...], method: str) -> None:
    shape, given = image._array.shape, boxes._array.shape
    wrong = None
    if method not in ("bilinear", "nearest"):
        wrong = f'Value for attr \'method\' of "{method}" is not in the list of allowed values: "bilinear", "nearest"'
    elif image.dtype in _REFUSED:
        wrong = f"Value for attr 'T' of {image.dtype.word} is not in the list of allowed values: {_ALLOWED}"
    elif len(shape) != 4:
        wrong = f"input image must be 4-D{dims(shape)}"
    elif not (shape[1] and shape[2]):
        wrong = "image dimensions must be positive"
    elif len(given) != 2:
        wrong = f"boxes must be 2-D, got: {dims(given)}"
    elif given[1] != 4:
        wrong = "boxes must have 4 columns"
    elif numbers._array.shape != given[:1]:
        wrong = "box_index has incompatible shape"
    elif len(size) != 2:
        wrong = f"crop_size must have two elements{dims((len(size),))}"
    elif min(size) <= 0:
        wrong = "crop dimensions must be positive"
    if wrong:
        received = f"image {shape}, boxes {given}, box_indices {numbers._array.shape}, crop_size {size}"
        raise InvalidArgumentError(
            message(
                f"{wrong} [Op:CropAndResize]",
                received=received,
                expected=(
                    "image (batch, height, width, channels), boxes (count, 4), box_indices (count,), crop_size "
                    "(height, width)"
                ),
            )
        )
    known = numbers._array
    indexing.look_at(known, shape[0])
    if isinstance(known, np.ndarray) and known.size and not (known.min() >= 0 and known.max() < shape[0]):
        text = "box_index has values outside [0, batch_size) [Op:CropAndResize]"
        raise OutOfRangeError(
            message(text, received=f"{known}, batch {shape[0]}", expected=f"numbers of pictures, from 0 to {shape[0] - 1}")
        )
