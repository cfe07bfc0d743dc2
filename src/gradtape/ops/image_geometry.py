"""Moving pixels: crop, pad, flip, rotate, glimpses. Images are (height, width, channels) or a batch of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, random
from gradtape.ops import shape as shapes
from gradtape.ops.arguments import integer, integers
from gradtape.ops.image_resize import resize
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.tensor import Tensor, wrap


def image_tensor(image: Any, *, gap: str = " ") -> Tensor:
    """An image or a batch of images, none of whose axes but the batch is empty."""
    x = convert_to_tensor(image)
    shape = x._array.shape
    if len(shape) < 3:
        raise ValueError(message(f"'image' (shape {shape}) must be at least three-dimensional.", fix=_FIX))
    if not all(shape[-3:]):
        text = f"inner 3 dims of 'image.shape' must be > 0: {shape}"
        raise ValueError(message(text, received=f"shape {shape}", expected="lengths of 1 or more"))
    if len(shape) > 4:
        raise ValueError(message(f"'image' (shape {shape}){gap}must have either 3 or 4 dimensions.", fix=_FIX))
    return x


_FIX = "give (height, width, channels) or (batch, height, width, channels)"


def batch_tensor(image: Any) -> Tensor:
    """`image_tensor`, for the functions that put their complaint about the rank first."""
    x = convert_to_tensor(image)
    shape = x._array.shape
    if len(shape) not in (3, 4):
        raise ValueError(message(f"'image' (shape {shape}) must have either 3 or 4 dimensions.", fix=_FIX))
    if not all(shape[-3:]):
        text = f"inner 3 dims of 'image.shape' must be > 0: {(1, *shape)[-4:]}"
        raise ValueError(message(text, received=f"shape {shape}", expected="lengths of 1 or more"))
    return x


def _require(condition: bool, text: str, received: str, expected: str) -> None:
    if not condition:
        raise ValueError(message(text, received=received, expected=expected))


# Flips, turns and the transpose


def flip_left_right(image: Any) -> Tensor:
    """The columns in reverse order."""
    x = image_tensor(image, gap="")
    return shapes.flip(x, axis=(x._array.ndim - 2,))


def flip_up_down(image: Any) -> Tensor:
    """The rows in reverse order."""
    x = image_tensor(image, gap="")
    return shapes.flip(x, axis=(x._array.ndim - 3,))


def rot90(image: Any, k: Any = 1) -> Tensor:
    """k quarter turns counter-clockwise.

    >>> rot90([[[1], [2]], [[3], [4]]]).numpy()[..., 0]
    array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = image_tensor(image)
    turns = convert_to_tensor(k, dtypes.int32)._host()
    _require(not turns.ndim, f"Shape {turns.shape} must have rank 0", f"k of shape {turns.shape}", "one integer")
    rows, columns = x._array.ndim - 3, x._array.ndim - 2
    number = int(turns) % 4
    if number == 0:
        return elementwise.identity(x)
    if number == 2:
        return shapes.flip(x, axis=(rows, columns))
    if number == 1:
        return _exchanged(shapes.flip(x, axis=(columns,)))
    return shapes.flip(_exchanged(x), axis=(columns,))


def transpose(image: Any) -> Tensor:
    """Rows and columns exchanged."""
    return _exchanged(image_tensor(image))


def _exchanged(x: Tensor) -> Tensor:
    return shapes.transpose(x, axes=(1, 0, 2) if x._array.ndim == 3 else (0, 2, 1, 3))


# Crops and pads


def crop(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """The rectangle of the given corner and size."""
    x = batch_tensor(image)
    (top, left, height, width), (rows, columns) = (
        tuple(map(_size, (offset_height, offset_width, target_height, target_width))), x._array.shape[-3:-1]
    )  # fmt: skip
    received = f"a rectangle of {height} x {width} at ({top}, {left}) of an image of {rows} x {columns}"
    _require(left >= 0, "offset_width must be >= 0.", received, "0 or more")
    _require(top >= 0, "offset_height must be >= 0.", received, "0 or more")
    _require(width > 0, "target_width must be > 0.", received, "1 or more")
    _require(height > 0, "target_height must be > 0.", received, "1 or more")
    _require(columns >= width + left, "width must be >= target + offset.", received, f"at most {columns} in all")
    _require(rows >= height + top, "height must be >= target + offset.", received, f"at most {rows} in all")
    return _rectangle(x, top, left, height, width)


def _size(value: Any) -> int:
    """One integer; what is not one is refused in the words of the op that would take it."""
    if isinstance(value, (float, np.floating)):
        raise InvalidArgumentError(
            message(
                "Value for attr 'Index' of float is not in the list of allowed values: int32, int64 [Op:Slice]",
                received=f"{value!r}", fix="int(value)",
            )
        )  # fmt: skip
    return integer(value)


def _rectangle(x: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    return indexing.getitem(x, index=(Ellipsis, slice(top, top + height), slice(left, left + width), slice(None)))


def pad(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """The image on a black ground of the given size, at the given corner."""
    x = batch_tensor(image)
    (top, left, height, width), (rows, columns) = (
        tuple(map(integer, (offset_height, offset_width, target_height, target_width))), x._array.shape[-3:-1]
    )  # fmt: skip
    below, right = height - top - rows, width - left - columns
    received = f"an image of {rows} x {columns} at ({top}, {left}) of {height} x {width}"
    _require(top >= 0, "offset_height must be >= 0", received, "0 or more")
    _require(left >= 0, "offset_width must be >= 0", received, "0 or more")
    _require(right >= 0, "width must be <= target - offset", received, "room for the whole picture")
    _require(below >= 0, "height must be <= target - offset", received, "room for the whole picture")
    widths = ((0, 0),) * (x._array.ndim - 3) + ((top, below), (left, right), (0, 0))
    return shapes.pad(x, widths=widths)


def _scalar(value: Any) -> Any:
    return convert_to_tensor(value)._host()[()]


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle of the image: this fraction of its height and width."""
    x = convert_to_tensor(image)
    # As TensorFlow computes: a Python number in double precision, a tensor in its own.
    fraction = np.float64(central_fraction) if type(central_fraction) in (int, float) else _scalar(central_fraction)
    _require(bool(0 < fraction <= 1), "central_fraction must be within (0, 1]", f"{fraction}", "0.5 for half of each side")
    if fraction == 1:
        return x
    if x._array.ndim > 4:
        text = f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {x._array.ndim}."
        raise ValueError(
            message(text, received=f"shape {x._array.shape}", expected="(height, width, channels), or a batch of them")
        )
    rows, columns = image_tensor(x)._array.shape[-3:-1]
    top, left = (int((n - n * fraction) / 2) for n in np.array([rows, columns], fraction.dtype))
    return _rectangle(x, top, left, rows - 2 * top, columns - 2 * left)


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The image cut or padded around its centre to the given size."""
    x = batch_tensor(image)
    height, width = (integer(convert_to_tensor(n, dtypes.int32)) for n in (target_height, target_width))
    _require(width > 0, "target_width must be > 0.", f"{width}", "1 or more")
    _require(height > 0, "target_height must be > 0.", f"{height}", "1 or more")
    rows, columns = x._array.shape[-3:-1]
    top, left = max(0, (rows - height) // 2), max(0, (columns - width) // 2)
    x = _rectangle(x, top, left, min(rows, height), min(columns, width))
    rows, columns = x._array.shape[-3:-1]
    return pad(x, max(0, (height - rows) // 2), max(0, (width - columns) // 2), height, width)


def resize_with_pad(
    image: Any, target_height: Any, target_width: Any, method: str = "bilinear", antialias: bool = False
) -> Tensor:
    """The image resized, without changing its aspect ratio, to fit into the given size, and padded with black."""
    x = batch_tensor(image)
    height, width = integer(target_height), integer(target_width)
    _require(height > 0, "target_height must be > 0.", f"{height}", "1 or more")
    _require(width > 0, "target_width must be > 0.", f"{width}", "1 or more")
    # In float32, as in TensorFlow: (8, 12) fits into (15, 30) as (14, 22).
    lengths, targets = np.array(x._array.shape[-3:-1], np.float32), np.array([height, width], np.float32)
    fitted = lengths / (lengths / targets).max()
    rows, columns = (int(n) for n in np.floor(fitted))
    top, left = (max(0, int(n)) for n in np.floor((targets - fitted) / 2))
    return pad(resize(x, (rows, columns), method, antialias=antialias), top, left, height, width)


# Glimpses


def extract_glimpse(
    images: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True, noise: str = "uniform"
) -> Tensor:
    """A rectangle around each image's offset (y, x); what lies outside the image is noise or zeros.

    Offsets are fractions of the image if ``normalized``, else pixels; ``centered`` counts them from the image's centre.
    """
    x, places = convert_to_tensor(images, dtypes.float32), convert_to_tensor(offsets, dtypes.float32)
    height_width = integers(size)
    _check_glimpse(x._array.shape, height_width, places._array.shape, noise)
    lengths, wanted = np.array(x._array.shape[1:3], np.float32), np.array(height_width, np.float32)
    start = np.asarray(places._host())
    if normalized:
        start = start * lengths
        start = (start + lengths - wanted) / 2 if centered else start
    elif centered:  # TensorFlow's corner, not its centre, is then at the offset
        start = start + lengths / 2
    corner = np.trunc(start).astype(np.int64)
    rows = corner[:, 0, None, None] + np.arange(height_width[0])[:, None]
    columns = corner[:, 1, None, None] + np.arange(height_width[1])
    inside = (rows >= 0) & (rows < lengths[0]) & (columns >= 0) & (columns < lengths[1])
    number = np.arange(len(corner))[:, None, None]
    where = np.stack(np.broadcast_arrays(number, np.where(inside, rows, 0), np.where(inside, columns, 0)), -1)
    pixels = indexing.gather_nd(elementwise.identity(x), wrap(where))
    return elementwise.where(wrap(inside[..., None]), pixels, _noise(x, pixels._array.shape, noise))


def _noise(x: Tensor, shape: tuple[int, ...], noise: str) -> Tensor:
    """Numbers between the smallest and the largest pixel, uniform or bell-shaped; or zeros."""
    if noise == "zero" or not x._array.size:
        return wrap(np.zeros(shape, np.float32))
    pixels = np.asarray(x._host())
    if noise == "uniform":
        return random.uniform(shape, float(pixels.min()), float(pixels.max()))
    drawn = random.normal(shape, float(pixels.mean()), float(pixels.std()))
    return wrap(np.clip(drawn._host(), pixels.min(), pixels.max()))


def _check_glimpse(shape: tuple[int, ...], size: tuple[int, ...], offsets: tuple[int, ...], noise: str) -> None:
    wrong = None
    if noise not in ("uniform", "gaussian", "zero"):
        wrong = f"The noise could only be uniform, gaussian, or zero, got{noise}"
    elif len(shape) != 4:
        wrong = f"input must be 4-dimensional (batch_size, height, width, depth){dims(shape)}"
    elif len(size) != 2:
        wrong = f"input must be a vector of size 2 (height, width){dims((len(size),))}"
    elif len(offsets) != 2:
        wrong = f"input must be a matrix{dims(offsets)}"
    elif offsets[0] != shape[0]:
        wrong = f"first dimension should be batch{dims(offsets)}"
    elif offsets[1] != 2:
        wrong = f"second dimension should be of size 2 (y,x){dims(offsets)}"
    if wrong:
        text = f"{wrong} [Op:ExtractGlimpseV2]"
        raise InvalidArgumentError(
            message(text, expected="input (batch, height, width, channels), size (height, width), offsets (batch, 2)")
        )
