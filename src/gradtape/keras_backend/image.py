"""Images, as Keras's `keras.ops.image` and its augmenting layers reach them through the backend."""

from __future__ import annotations

from typing import Any

from keras.src.backend import config
from keras.src.backend.common import dtypes as keras_dtypes

from gradtape.errors import message
from gradtape.keras_backend import random
from gradtape.keras_backend.core import cast, convert_to_tensor
from gradtape.ops import arrays, elementwise, image_color, image_resize, image_sampling
from gradtape.ops import shape as shapes
from gradtape.ops.taps import weigh_taps
from gradtape.values.tensor import Tensor

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")
AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}  # to the order of `map_coordinates`
AFFINE_TRANSFORM_FILL_MODES = MAP_COORDINATES_FILL_MODES = frozenset(image_sampling.FILL_MODES)

# Keras's names of methods, to the kernels of `image_resize`
_KERNELS = {
    "nearest": "nearest", "linear": "triangle", "bilinear": "triangle", "trilinear": "triangle", "cubic": "keyscubic",
    "bicubic": "keyscubic", "tricubic": "keyscubic", "lanczos3": "lanczos3", "lanczos5": "lanczos5",
}  # fmt: skip
SCALE_AND_TRANSLATE_METHODS = frozenset(_KERNELS) - {"nearest"}


# Arguments


def _require_one_of(value: Any, allowed: Any, argument: str) -> None:
    if value not in allowed:
        names = ", ".join(map(repr, sorted(allowed)))
        text = f"Invalid value for argument `{argument}`. Expected of one {{{names}}}. Received: {argument}={value}"
        raise ValueError(message(text))


def _images(images: Any) -> Tensor:
    """The argument as a tensor; an image or a batch of them."""
    x = convert_to_tensor(images)
    if x._array.ndim not in (3, 4):
        raise ValueError(
            message(
                "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). Received input with "
                f"shape: images.shape={x._array.shape}",
                fix="image[..., None] gives a grey picture its channel",
            )
        )
    return x


def _colours(images: Any) -> Tensor:
    x = _images(images)
    if not x.dtype.is_floating:
        text = f"Invalid images dtype: expected float dtype. Received: images.dtype={x.dtype.name}"
        raise ValueError(message(text, fix="keras.ops.cast(images, 'float32') / 255"))
    return x


def _is_last(data_format: str | None) -> bool:
    return config.standardize_data_format(data_format) == "channels_last"


def _moved(x: Tensor, source: int, target: int) -> Tensor:
    """x with one of its axes elsewhere; both are counted from the end."""
    if source == target:
        return x
    axes = list(range(x._array.ndim))
    axis = axes.pop(source)
    axes.insert(target + x._array.ndim, axis)
    return shapes.transpose(x, axes=tuple(axes))


def _channels_last(x: Tensor, last: bool) -> Tensor:
    return _moved(x, -1 if last else -3, -1)


def _channels_back(x: Tensor, last: bool) -> Tensor:
    return _moved(x, -1, -1 if last else -3)


def _batch(x: Tensor, rank: int) -> Tensor:
    """x with a leading axis, if it lacks it."""
    return x if x._array.ndim == rank else shapes.expand_dims(x, axis=0)


def _floating(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating else cast(x, keras_dtypes.result_type(x.dtype.name, float))


# Colours


def rgb_to_grayscale(images, data_format=None):
    """The luma of each pixel, as one channel; images of one channel stay as they are."""
    x, last = _images(images), _is_last(data_format)
    channels = x._array.shape[-1 if last else -3]
    if channels == 1:
        return x
    if channels != 3:
        text = "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). Received input with shape: images.shape="
        raise ValueError(message(f"{text}{x._array.shape}", fix=None if last else "data_format='channels_last'"))
    grey = image_color.luma(_floating(_channels_last(x, last)))
    return cast(_channels_back(grey, last), x.dtype)


def rgb_to_hsv(images, data_format=None):
    """Hue, saturation and value of each pixel."""
    x, last = _colours(images), _is_last(data_format)
    return _channels_back(image_color.rgb_to_hsv(_channels_last(x, last)), last)


def hsv_to_rgb(images, data_format=None):
    """Red, green and blue of each pixel; a hue outside [0, 1) goes round the colour circle."""
    x, last = _colours(images), _is_last(data_format)
    hue, *others = arrays.unstack(x, axis=x._array.ndim - (1 if last else 3))
    turned = shapes.stack(hue - elementwise.floor(hue), *others, axis=-1)
    return _channels_back(image_color.hsv_to_rgb(turned), last)


# Sizes


def resize(
    images,
    size,
    interpolation="bilinear",
    antialias=False,
    crop_to_aspect_ratio=False,
    pad_to_aspect_ratio=False,
    fill_mode="constant",
    fill_value=0.0,
    data_format=None,
):
    """Images of another height and width. Integers become floating, except for ``nearest``."""
    _check_resize(size, interpolation, crop_to_aspect_ratio, pad_to_aspect_ratio, fill_mode)
    x, (height, width) = _images(images), map(int, size)
    axis = x._array.ndim - (3 if _is_last(data_format) else 2)
    if crop_to_aspect_ratio:
        x = _cropped(x, axis, height, width)
    elif pad_to_aspect_ratio:
        x = _padded(x, axis, height, width, fill_value)
    if interpolation != "nearest":
        x = _floating(x)
    for at, new in ((axis, height), (axis + 1, width)):
        taps = image_resize.resize_taps(x._array.shape[at], new, _KERNELS.get(interpolation, interpolation), bool(antialias))
        x = x if taps.is_identity else weigh_taps(x, taps=taps, axis=at)
    return x


def _check_resize(size: Any, interpolation: str, crop: bool, pad: bool, fill_mode: str) -> None:
    _require_one_of(interpolation, RESIZE_INTERPOLATIONS, "interpolation")
    if fill_mode != "constant":
        text = "Invalid value for argument `fill_mode`. Only `'constant'` is supported."
        raise ValueError(message(f"{text} Received: fill_mode={fill_mode}"))
    if pad and crop:
        raise ValueError(message("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`."))
    if len(size) != 2:
        text = "Argument `size` must be a tuple of two elements (height, width)."
        raise ValueError(message(f"{text} Received: size={size}"))


def _cropped(x: Tensor, axis: int, height: int, width: int) -> Tensor:
    """The largest window in the middle that has the ratio of height and width; ``axis`` is that of the rows."""
    rows, columns = x._array.shape[axis : axis + 2]
    high = max(min(rows, int(columns * height / width)), 1)
    wide = max(min(columns, int(rows * width / height)), 1)
    top, left = (rows - high) // 2, (columns - wide) // 2
    return x[(slice(None),) * axis + (slice(top, top + high), slice(left, left + wide))]


def _padded(x: Tensor, axis: int, height: int, width: int, fill_value: Any) -> Tensor:
    """x between margins that give it the ratio of height and width; ``axis`` is that of the rows."""
    rows, columns = x._array.shape[axis : axis + 2]
    above = (max(rows, int(columns * height / width)) - rows) // 2
    beside = (max(columns, int(rows * width / height)) - columns) // 2
    margins = (above, 0) if above else (0, beside)
    paddings = [(0, 0)] * x._array.ndim
    paddings[axis : axis + 2] = [(n, n) for n in margins]
    return arrays.pad(x, paddings, "CONSTANT", cast(convert_to_tensor(fill_value), x.dtype)) if any(margins) else x


def scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias=True):
    """Images of ``output_shape`` whose axes ``spatial_dims`` were scaled, then moved."""
    _require_one_of(method, SCALE_AND_TRANSLATE_METHODS, "method")
    x = convert_to_tensor(images)
    floats = _floating(x)
    scale, translation = convert_to_tensor(scale), convert_to_tensor(translation)
    work = image_sampling.working_dtype(floats, scale, translation)
    scale, translation = elementwise.cast(scale, work), elementwise.cast(translation, work)
    out = elementwise.cast(floats, work)
    for i, axis in enumerate(spatial_dims):
        axis %= x._array.ndim
        out = image_sampling.stretch(
            out, axis, int(output_shape[axis]), scale[i], translation[i], _KERNELS[method], bool(antialias)
        )
    return elementwise.cast(out, floats.dtype)


# Values at other places


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    """The values of an array at ``coordinates``, whose first axis has one entry for each axis of the array."""
    x = convert_to_tensor(inputs)
    places = convert_to_tensor(coordinates)
    shape = places._array.shape
    if shape[:1] != (x._array.ndim,):
        raise ValueError(
            message(
                "First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs with shape: "
                f"{x._array.shape} and coordinate leading dim of {shape[0] if shape else None}"
            )
        )
    if len(shape) < 2:
        raise ValueError(message(f"Invalid coordinates rank: expected at least rank 2. Received input with shape: {shape}"))
    _require_one_of(fill_mode, MAP_COORDINATES_FILL_MODES, "fill_mode")
    _require_one_of(order, (0, 1), "order")
    rows = elementwise.identity(shapes.reshape(x, shape=(-1,)))
    return image_sampling.interpolate(
        rows, x._array.shape, arrays.unstack(places, axis=0), order=order, fill_mode=fill_mode, fill_value=fill_value
    )


def _sampled(x: Tensor, places: Any, last: bool, interpolation: str, fill_mode: str, fill_value: Any) -> Tensor:
    """Images at places (batch, height, width) in them."""
    order = AFFINE_TRANSFORM_INTERPOLATIONS[interpolation]
    batch = _batch(_channels_last(x, last), 4)
    out = image_sampling.sample_images(batch, places, order=order, fill_mode=fill_mode, fill_value=fill_value)
    out = _channels_back(out, last)
    return out if x._array.ndim == 4 else shapes.squeeze(out, axis=0)


def _size(x: Tensor, last: bool) -> tuple[int, int]:
    height, width = x._array.shape[-3:-1] if last else x._array.shape[-2:]
    return height, width


def _check_count(x: Tensor, count: int, name: str) -> None:
    batch = x._array.shape[0] if x._array.ndim == 4 else 1
    if count not in (1, batch):
        text = f"Incompatible batch sizes: {count} {name} for {batch} images."
        raise ValueError(message(text, expected=f"one for all, or {batch}"))


def affine_transform(
    images,
    transform,
    interpolation="bilinear",
    fill_mode="constant",
    fill_value=0,
    data_format=None,
):
    """Each pixel (x, y) is read at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1."""
    _require_one_of(interpolation, AFFINE_TRANSFORM_INTERPOLATIONS, "interpolation")
    _require_one_of(fill_mode, AFFINE_TRANSFORM_FILL_MODES, "fill_mode")
    x, transform, last = _images(images), convert_to_tensor(transform), _is_last(data_format)
    if transform._array.ndim not in (1, 2):
        raise ValueError(
            message(
                "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). Received "
                f"input with shape: transform.shape={transform._array.shape}"
            )
        )
    transform = _batch(transform, 2)
    _check_count(x, transform._array.shape[0], "transforms")
    places = image_sampling.projective_places(transform, *_size(x, last))
    return _sampled(x, places, last, interpolation, fill_mode, fill_value)


def perspective_transform(
    images,
    start_points,
    end_points,
    interpolation="bilinear",
    fill_value=0,
    data_format=None,
):
    """Images in which what was at four ``start_points`` (x, y) is at ``end_points``."""
    _require_one_of(interpolation, AFFINE_TRANSFORM_INTERPOLATIONS, "interpolation")
    x, last = _images(images), _is_last(data_format)
    start, end = _points(start_points, "start_points"), _points(end_points, "end_points")
    if start._array.shape != end._array.shape:
        raise ValueError(
            message(
                "start_points and end_points must have the same shape. Received "
                f"start_points.shape={start._array.shape}, end_points.shape={end._array.shape}"
            )
        )
    coefficients = compute_homography_matrix(_batch(start, 3), _batch(end, 3))
    _check_count(x, coefficients._array.shape[0], "quadrangles")
    places = image_sampling.projective_places(coefficients, *_size(x, last))
    return _sampled(x, places, last, interpolation, "constant", fill_value)


def _points(points: Any, name: str) -> Tensor:
    x = convert_to_tensor(points)
    shape = x._array.shape
    if len(shape) not in (2, 3) or shape[-2:] != (4, 2):
        text = f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch."
        raise ValueError(message(f"{text} Received shape: {shape}"))
    return x


def compute_homography_matrix(start_points, end_points):
    """The coefficients (batch, 8) of the projective maps from ``end_points`` (batch, 4, 2) to ``start_points``."""
    start, end = convert_to_tensor(start_points), convert_to_tensor(end_points)
    work = image_sampling.working_dtype(start, end)
    return image_sampling.homography(elementwise.cast(start, work), elementwise.cast(end, work))


# Neighbourhoods


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    """Each pixel the mean of those around it, weighed by a Gaussian; the first size and sigma are those across."""
    x, last = _images(images), _is_last(data_format)
    floats = _floating(x)
    sigma = convert_to_tensor(sigma)
    sigma = elementwise.cast(sigma, image_sampling.working_dtype(floats, sigma))
    axis = x._array.ndim - (3 if last else 2)
    for at, i in ((axis, 1), (axis + 1, 0)):
        weights = image_sampling.bell(int(kernel_size[i]), sigma[i])
        floats = image_sampling.filter_axis(floats, elementwise.cast(weights, floats.dtype), at)
    return floats


def sobel_edges(images, data_format=None):
    """(dy, dx) on a new last axis: differences across two pixels, smoothed by (1, 2, 1); zeros beyond the edges."""
    x = _floating(_images(images))
    axis = x._array.ndim - (3 if _is_last(data_format) else 2)
    across, smooth = (convert_to_tensor(weights, x.dtype) for weights in ([-1.0, 0.0, 1.0], [1.0, 2.0, 1.0]))
    filtered = image_sampling.filter_axis
    down = filtered(filtered(x, across, axis), smooth, axis + 1)
    right = filtered(filtered(x, smooth, axis), across, axis + 1)
    return shapes.stack(down, right, axis=-1)


def elastic_transform(
    images,
    alpha=20.0,
    sigma=5.0,
    interpolation="bilinear",
    fill_mode="reflect",
    fill_value=0.0,
    seed=None,
    data_format=None,
):
    """Images whose pixels are read at random places near them: noise of ``sigma``, smoothed by it, times ``alpha``."""
    _require_one_of(interpolation, AFFINE_TRANSFORM_INTERPOLATIONS, "interpolation")
    _require_one_of(fill_mode, AFFINE_TRANSFORM_FILL_MODES, "fill_mode")
    x, last = _images(images), _is_last(data_format)
    work = image_sampling.working_dtype(x)
    alpha, sigma = (elementwise.cast(convert_to_tensor(value), work) for value in (alpha, sigma))
    height, width = _size(x, last)
    batch = x._array.shape[0] if x._array.ndim == 4 else 1
    noise = random.normal((2, batch, height, width), dtype=work.name, seed=seed) * sigma
    size = int(6 * sigma) | 1
    # The batch takes the place of the channels: each field of displacements is blurred alone.
    moves = alpha * gaussian_blur(noise, (size, size), shapes.stack(sigma, sigma, axis=0), "channels_first")
    down, right = arrays.unstack(moves, axis=0)
    rows = shapes.expand_dims(image_sampling.counting(height, work), axis=1)
    places = (down + rows, right + image_sampling.counting(width, work))
    return _sampled(x, places, last, interpolation, fill_mode, fill_value)
