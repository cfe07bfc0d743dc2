"""Colours: element types of images, colour spaces, brightness, contrast, hue, saturation, gamma.

Everything is composed of recorded ops, so that gradients of every order flow. Integer images are computed on in float32,
half precision too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.variable import Variable
from gradtape.errors import FailedPreconditionError, InvalidArgumentError, dims, message
from gradtape.ops import elementwise, indexing, reduce
from gradtape.ops import shape as shapes
from gradtape.ops.clip import clip, saturate_cast
from gradtape.ops.contract import matmul
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.dtypes import DType
from gradtape.values.tensor import Tensor

# Element types


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False) -> Tensor:
    """An image in another element type, scaled from the range of one to the other: [0, 1], or up to an integer's maximum.

    >>> convert_image_dtype([0.0, 0.5, 1.0], "uint8").numpy()
    array([  0, 127, 255], dtype=uint8)
    """
    x, wanted = convert_to_tensor(image), dtypes.as_dtype(dtype)
    for kind, name in ((wanted, "dtype"), (x.dtype, "image dtype")):
        if not (kind.is_floating or kind.is_integer):
            text = f"{name} must be either floating point or integer"
            raise AttributeError(
                message(text, received=f"{kind!r}", expected="tf.uint8, tf.uint16, tf.float32 or another number type")
            )
    if x.dtype is wanted:
        return elementwise.identity(x)
    convert = saturate_cast if saturate else elementwise.cast
    if x.dtype.is_floating:
        return elementwise.cast(x, wanted) if wanted.is_floating else convert(_scaled_up(x, wanted), wanted)
    if wanted.is_floating:
        return elementwise.multiply(elementwise.cast(x, wanted), 1 / int(x.dtype.max))
    have, want = int(x.dtype.max) + 1, int(wanted.max) + 1
    if have > want:
        return convert(elementwise.floor_divide(x, have // want), wanted)
    return elementwise.multiply(convert(x, wanted), want // have)


def _scaled_up(x: Tensor, wanted: DType) -> Tensor:
    return elementwise.multiply(x, int(wanted.max) + 0.5)  # 1/2 more, so that a cast reaches the maximum


def _on_floats(image: Any, function: Any) -> Tensor:
    """``function`` of the image as floats; what comes out gets the image's element type again."""
    x = convert_to_tensor(image)
    wide = x if x.dtype in (dtypes.float32, dtypes.float64) else convert_image_dtype(x, dtypes.float32)
    return convert_image_dtype(function(wide), x.dtype, saturate=True)


def _factor(value: Any, like: Tensor) -> Tensor:
    """A number, or a tensor of another floating dtype, as a factor that gradients flow to."""
    tensor = convert_to_tensor(value) if isinstance(value, (Tensor, Variable)) else convert_to_tensor(value, like.dtype)
    return elementwise.cast(tensor, like.dtype)


# Channels


def _channels(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r, g, b = (indexing.getitem(x, index=(Ellipsis, i)) for i in range(3))
    return r, g, b


def _check_channels(x: Tensor, label: str) -> None:
    shape = x._array.shape
    if not x.dtype.is_floating:
        text = f"Value for attr 'T' of {x.dtype.word} is not in the list of allowed values: half, bfloat16, float, double"
        raise InvalidArgumentError(message(text, fix="tf.image.convert_image_dtype(images, tf.float32)"))
    if not shape:
        raise InvalidArgumentError(message(f"input must be at least 1D{dims(shape)} [Op:{label}]", expected="(…, 3)"))
    if shape[-1] != 3:
        raise FailedPreconditionError(
            message(
                f"input must have 3 channels but input only has {shape[-1]} channels. [Op:{label}]",
                received=f"shape {shape}", expected="red, green and blue, or hue, saturation and value, on the last axis",
            )
        )  # fmt: skip


def _check_image(x: Tensor, label: str) -> None:
    shape = x._array.shape
    if len(shape) < 3:
        text = f"input must be at least 3-D, got shape{dims(shape)} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"shape {shape}", expected="(height, width, channels), or several with leading axes")
        )
    if label != "AdjustContrastv2" and shape[-1] != 3:
        text = f"input must have 3 channels but instead has {shape[-1]} channels. [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"shape {shape}", fix="tf.image.grayscale_to_rgb(image)"))


def _mixed(images: Any, matrix: np.ndarray) -> Tensor:
    """The channels times a matrix."""
    x = convert_to_tensor(images)
    shape = x._array.shape
    flat = shapes.reshape(x, shape=(-1, shape[-1]) if x._array.size else (0, shape[-1]))
    out = matmul(flat, convert_to_tensor(matrix.tolist(), x.dtype))
    return shapes.reshape(out, shape=(*shape[:-1], matrix.shape[1]))


_GRAY = np.array([[0.2989], [0.5870], [0.1140]])
_YUV = np.array(
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
)
_FROM_YUV = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])
_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])
_FROM_YIQ = np.array(
    [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
)


def luma(images: Any) -> Tensor:
    """0.2989 r + 0.587 g + 0.114 b of floating channels, as one channel."""
    return _mixed(images, _GRAY)


def rgb_to_grayscale(images: Any) -> Tensor:
    """The luma as one channel, in the element type of the image."""
    return _on_floats(images, luma)


def grayscale_to_rgb(images: Any) -> Tensor:
    """The one channel three times."""
    x = convert_to_tensor(images)
    if not x._array.ndim:
        text = f"A grayscale image (shape {x._array.shape}) must be at least two-dimensional."
        raise ValueError(message(text, received=f"shape {x._array.shape}", expected="(…, 1)"))
    if x._array.shape[-1] != 1:
        text = "Last dimension of a grayscale image should be size 1."
        raise ValueError(message(text, received=f"shape {x._array.shape}", expected="(…, 1)", fix="image[..., tf.newaxis]"))
    return shapes.tile(x, repeats=(*[1] * (x._array.ndim - 1), 3))


def rgb_to_yuv(images: Any) -> Tensor:
    """Luma and the differences of blue and red from it."""
    return _mixed(images, _YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yuv`."""
    return _mixed(images, _FROM_YUV)


def rgb_to_yiq(images: Any) -> Tensor:
    """Luma and two chroma channels, as in NTSC."""
    return _mixed(images, _YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yiq`."""
    return _mixed(images, _FROM_YIQ)


# Hue: the position on the colour circle, 0 and 1 at red


def _hue(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, and the largest and the smallest channel. Of equal ones the largest is the first, the smallest the last."""
    r, g, b = _channels(x)
    high, low = _largest(r, g, b), elementwise.negative(_largest(*(elementwise.negative(c) for c in (b, g, r))))
    red = elementwise.equal(high, r)
    green = elementwise.equal(high, g)
    reach = elementwise.subtract(high, low)
    gray = elementwise.equal(reach, 0)
    safe = elementwise.where(gray, elementwise.ones_like(reach), reach)
    part = elementwise.where(red, g - b, elementwise.where(green, b - r, r - g)) / (safe * 6)
    start = elementwise.where(red, elementwise.cast(elementwise.less(part, 0), x.dtype), _thirds(green, x))
    return elementwise.where(gray, elementwise.zeros_like(part), part + start), high, low


def _largest(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The gradient goes to the first of equal ones."""
    return elementwise.maximum(elementwise.maximum(x, y), z)


def _thirds(green: Tensor, x: Tensor) -> Tensor:
    one, two = (convert_to_tensor(n / 3, x.dtype) for n in (1, 2))
    return elementwise.where(green, one, two)


def _saturation(high: Tensor, low: Tensor) -> Tensor:
    """The part of the largest channel that is colour; 0 for black."""
    lit = elementwise.greater(high, 0)
    safe = elementwise.where(lit, high, elementwise.ones_like(high))
    return elementwise.where(lit, (high - low) / safe, elementwise.zeros_like(high))


def _weights(hue: Tensor) -> list[Tensor]:
    """How far each channel is from the smallest to the largest, for a hue."""
    six = hue * 6
    peaks = (elementwise.abs(six - 3) - 1, 2 - elementwise.abs(six - 2), 2 - elementwise.abs(six - 4))
    return [clip(peak, 0, 1) for peak in peaks]


def rgb_to_hsv(images: Any) -> Tensor:
    """Hue, saturation and value, each between 0 and 1 for channels between 0 and 1.

    >>> rgb_to_hsv([1.0, 0.5, 0.5]).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    x = _floats(images)
    _check_channels(x, "RGBToHSV")
    hue, high, low = _hue(x)
    return shapes.stack(hue, _saturation(high, low), high, axis=-1)


def hsv_to_rgb(images: Any) -> Tensor:
    """Red, green and blue from hue, saturation and value."""
    x = _floats(images)
    _check_channels(x, "HSVToRGB")
    hue, saturation, value = _channels(x)
    return shapes.stack(*(value * (1 - saturation + saturation * weight) for weight in _weights(hue)), axis=-1)


def _floats(images: Any) -> Tensor:
    """Python numbers become floats; a tensor stays what it is."""
    return convert_to_tensor(images, dtype_hint=dtypes.float32) if not isinstance(images, Tensor) else images


# Adjustments


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """image + delta, in units of [0, 1]"""
    return _on_floats(image, lambda x: elementwise.add(x, _factor(delta, x)))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """(image - mean) · factor + mean, with the mean of each channel of each image."""

    def adjusted(x: Tensor) -> Tensor:
        _check_image(x, "AdjustContrastv2")
        mean = reduce.mean(x, axis=(-3, -2), keepdims=True)
        return (x - mean) * _factor(contrast_factor, x) + mean

    return _on_floats(images, adjusted)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain · image ** gamma"""
    if isinstance(gamma, (Tensor, Variable)):
        if not (np.asarray(convert_to_tensor(gamma)._host()) >= 0).all():
            text = (
                "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: "
                "b'Gamma should be a non-negative real number.'"
            )
            raise InvalidArgumentError(message(text, received=f"gamma {gamma.numpy()}", expected="0 or more"))  # fmt: skip
    elif not gamma >= 0:
        raise ValueError(message("Gamma should be a non-negative real number.", received=f"{gamma}", expected="0 or more"))
    return _on_floats(image, lambda x: elementwise.power(x, _factor(gamma, x)) * _factor(gain, x))


def adjust_hue(image: Any, delta: Any) -> Tensor:
    """The hue turned by ``delta``, of which 1 is the whole circle; the largest and the smallest channel stay."""
    turn = np.asarray(convert_to_tensor(delta)._host())
    if not ((turn >= -1) & (turn <= 1)).all():
        text = "delta must be in the interval [-1, 1]"
        raise ValueError(message(text, received=f"{turn}", expected="a share of the colour circle, from -1 to 1"))
    return turn_hue(image, delta)


def turn_hue(image: Any, delta: Any) -> Tensor:
    """`adjust_hue` by an angle that needs no check."""

    def adjusted(x: Tensor) -> Tensor:
        _check_image(x, "AdjustHue")
        hue, high, low = _hue(x)
        turned = elementwise.remainder(hue + _factor(delta, x), 1)
        return shapes.stack(*(low + (high - low) * weight for weight in _weights(turned)), axis=-1)

    return _on_floats(image, adjusted)


def adjust_saturation(image: Any, saturation_factor: Any) -> Tensor:
    """The saturation times a factor, kept between 0 and 1; hue and value stay."""

    def adjusted(x: Tensor) -> Tensor:
        _check_image(x, "AdjustSaturation")
        hue, high, low = _hue(x)
        saturation = clip(_saturation(high, low) * _factor(saturation_factor, x), 0, 1)
        return shapes.stack(*(high * (1 - saturation + saturation * weight) for weight in _weights(hue)), axis=-1)

    return _on_floats(image, adjusted)
