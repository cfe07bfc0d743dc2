"""`tf.image`: TensorFlow's names and arguments for images (height, width, channels) and batches of them."""

from __future__ import annotations

from typing import Any

from gradtape.ops import image_boxes, image_codec, image_color, image_geometry, image_quality, image_random, image_resize
from gradtape.ops.image_random import stateful, stateless
from gradtape.ops.image_resize import ResizeMethod
from gradtape.ops.spatial import extract_patches as _extract_patches
from gradtape.scope import missing
from gradtape.values.dtypes import int32, uint8
from gradtape.values.tensor import Tensor

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_jpeg_quality",
    "adjust_saturation", "central_crop", "combined_non_max_suppression", "convert_image_dtype", "crop_and_resize",
    "crop_to_bounding_box", "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image", "decode_jpeg", "decode_png",
    "decode_webp", "draw_bounding_boxes", "encode_jpeg", "encode_png", "extract_glimpse", "extract_jpeg_shape",
    "extract_patches", "flip_left_right", "flip_up_down", "grayscale_to_rgb", "hsv_to_rgb", "image_gradients", "is_jpeg",
    "non_max_suppression", "non_max_suppression_overlaps", "non_max_suppression_padded", "non_max_suppression_with_scores",
    "pad_to_bounding_box", "per_image_standardization", "psnr", "random_brightness", "random_contrast", "random_crop",
    "random_flip_left_right", "random_flip_up_down", "random_hue", "random_jpeg_quality", "random_saturation", "resize",
    "resize_with_crop_or_pad", "resize_with_pad", "rgb_to_grayscale", "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "rot90",
    "sample_distorted_bounding_box", "sobel_edges", "ssim", "ssim_multiscale", "stateless_random_brightness",
    "stateless_random_contrast", "stateless_random_crop", "stateless_random_flip_left_right",
    "stateless_random_flip_up_down", "stateless_random_hue", "stateless_random_jpeg_quality",
    "stateless_random_saturation", "stateless_sample_distorted_bounding_box", "total_variation", "transpose", "yiq_to_rgb",
    "yuv_to_rgb",
]  # fmt: skip

_LOWEST = float("-inf")

# Size and place


def resize(
    images: Any, size: Any, method: str = "bilinear", preserve_aspect_ratio: bool = False, antialias: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Images of another height and width; gradients of every order flow."""
    return image_resize.resize(images, size, method, preserve_aspect_ratio, antialias)


def resize_with_pad(
    image: Any, target_height: Any, target_width: Any, method: str = "bilinear", antialias: bool = False
) -> Tensor:
    """Resized to fit into the target without changing the aspect ratio, and padded with zeros."""
    return image_geometry.resize_with_pad(image, target_height, target_width, method, antialias)


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Cut or padded around the centre."""
    return image_geometry.resize_with_crop_or_pad(image, target_height, target_width)


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The rectangle of the given corner and size."""
    return image_geometry.crop(image, offset_height, offset_width, target_height, target_width)


def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> Tensor:
    """Zeros of the given size with the image at the given corner."""
    return image_geometry.pad(image, offset_height, offset_width, target_height, target_width)


def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """The middle of the image."""
    return image_geometry.central_crop(image, central_fraction)


def crop_and_resize(
    image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: str = "bilinear", extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """One crop per box (y1, x1, y2, x2); gradients flow to the image and to the boxes."""
    return image_resize.crop_and_resize(image, boxes, box_indices, crop_size, method, extrapolation_value)


def extract_glimpse(
    input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True, noise: str = "uniform",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """A rectangle of each image at its offset (y, x); outside the image it is noise."""
    return image_geometry.extract_glimpse(input, size, offsets, centered, normalized, noise)


def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """Windows of the images, each flattened into channels."""
    return _extract_patches(images, sizes, strides, rates, padding)


def flip_left_right(image: Any) -> Tensor:
    """The columns in reverse order."""
    return image_geometry.flip_left_right(image)


def flip_up_down(image: Any) -> Tensor:
    """The rows in reverse order."""
    return image_geometry.flip_up_down(image)


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """k quarter turns counter-clockwise."""
    return image_geometry.rot90(image, k)


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Rows and columns exchanged."""
    return image_geometry.transpose(image)


# Colour


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """The image in another element type, scaled to its range."""
    return image_color.convert_image_dtype(image, dtype, saturate)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """The luma, as one channel."""
    return image_color.rgb_to_grayscale(images)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """The one channel three times."""
    return image_color.grayscale_to_rgb(images)


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value."""
    return image_color.rgb_to_hsv(images)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Red, green and blue from hue, saturation and value."""
    return image_color.hsv_to_rgb(images)


rgb_to_yiq = image_color.rgb_to_yiq
rgb_to_yuv = image_color.rgb_to_yuv
yiq_to_rgb = image_color.yiq_to_rgb
yuv_to_rgb = image_color.yuv_to_rgb
adjust_brightness = image_color.adjust_brightness
adjust_contrast = image_color.adjust_contrast
adjust_gamma = image_color.adjust_gamma


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """The hue turned by ``delta``, of which 1 is the whole circle."""
    return image_color.adjust_hue(image, delta)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """The saturation times a factor."""
    return image_color.adjust_saturation(image, saturation_factor)


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Tensor:
    """The image as a JPEG of this quality would show it."""
    return image_codec.adjust_jpeg_quality(image, jpeg_quality)


# Measures

image_gradients = image_quality.image_gradients
sobel_edges = image_quality.sobel_edges
per_image_standardization = image_quality.per_image_standardization


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """Σ |differences of neighbouring pixels|, for each image."""
    return image_quality.total_variation(images)


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Peak signal-to-noise ratio in decibels, for each pair of images."""
    return image_quality.psnr(a, b, max_val)


def ssim(
    img1: Any, img2: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:  # fmt: skip
    """Structural similarity of each pair of images; differentiable, so that it serves as a loss."""
    return image_quality.ssim(img1, img2, max_val, filter_size, filter_sigma, k1, k2, return_index_map)


def ssim_multiscale(
    img1: Any, img2: Any, max_val: Any, power_factors: Any = image_quality.POWER_FACTORS, filter_size: int = 11,
    filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """Structural similarity over several scales, each half the size of the one before."""
    return image_quality.ssim_multiscale(img1, img2, max_val, power_factors, filter_size, filter_sigma, k1, k2)


# Boxes


def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Indices of the best boxes that do not overlap a better one too much."""
    return image_boxes.non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)


def non_max_suppression_with_scores(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = _LOWEST,
    soft_nms_sigma: Any = 0.0, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression` with the scores, which overlaps lower if a sigma is given."""
    options = (max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
    return image_boxes.non_max_suppression_with_scores(boxes, scores, *options)


def non_max_suppression_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any = 0.5, score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`non_max_suppression` with the overlaps given."""
    return image_boxes.non_max_suppression_overlaps(overlaps, scores, max_output_size, overlap_threshold, score_threshold)


def non_max_suppression_padded(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = _LOWEST,
    pad_to_max_output_size: bool = False, name: str | None = None, sorted_input: bool = False,
    canonicalized_coordinates: bool = False, tile_size: int = 512,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Indices and how many are valid; the last three arguments are hints for another algorithm and change nothing."""
    options = (max_output_size, iou_threshold, score_threshold, pad_to_max_output_size)
    return image_boxes.non_max_suppression_padded(boxes, scores, *options)


def combined_non_max_suppression(
    boxes: Any, scores: Any, max_output_size_per_class: Any, max_total_size: Any, iou_threshold: float = 0.5,
    score_threshold: float = _LOWEST, pad_per_class: bool = False, clip_boxes: bool = True, name: str | None = None,
) -> image_boxes.CombinedNonMaxSuppression:  # fmt: skip
    """Suppression class by class, and the best boxes of all classes."""
    sizes = (max_output_size_per_class, max_total_size)
    return image_boxes.combined_non_max_suppression(
        boxes, scores, *sizes, iou_threshold, score_threshold, pad_per_class, clip_boxes
    )


def draw_bounding_boxes(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Tensor:
    """Images with the outlines of boxes (y1, x1, y2, x2), in fractions of height and width."""
    return image_boxes.draw_bounding_boxes(images, boxes, colors)


def sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: int | None = 0, min_object_covered: Any = 0.1, aspect_ratio_range: Any = None,
    area_range: Any = None, max_attempts: int | None = None, use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> image_boxes.DistortedBox:  # fmt: skip
    """A random rectangle that covers enough of one of the boxes; a seed of 0 is none."""
    return image_random.distorted_box(
        stateful(seed or None), image_size, bounding_boxes, min_object_covered=min_object_covered,
        aspect_ratio_range=aspect_ratio_range, area_range=area_range, max_attempts=max_attempts,
        use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
    )  # fmt: skip


def stateless_sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: Any, min_object_covered: Any = 0.1, aspect_ratio_range: Any = None,
    area_range: Any = None, max_attempts: int | None = None, use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> image_boxes.DistortedBox:  # fmt: skip
    """`sample_distorted_bounding_box` as a function of a seed of two integers."""
    return image_random.distorted_box(
        stateless(seed), image_size, bounding_boxes, min_object_covered=min_object_covered,
        aspect_ratio_range=aspect_ratio_range, area_range=area_range, max_attempts=max_attempts,
        use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
    )  # fmt: skip


# Chance; the stateless functions take a seed of two integers


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Flipped with probability 1/2."""
    return image_random.flip(stateful(seed), image, -2)


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Flipped with probability 1/2."""
    return image_random.flip(stateful(seed), image, -3)


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """Flipped with probability 1/2."""
    return image_random.flip(stateless(seed), image, -2)


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """Flipped with probability 1/2."""
    return image_random.flip(stateless(seed), image, -3)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A slice of the given size at a random place."""
    return image_random.crop(stateful(seed), value, size)


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """A slice of the given size at a random place."""
    return image_random.crop(stateless(seed), value, size)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """The brightness changed by up to ``max_delta`` either way."""
    return image_random.brightness(stateful(seed), image, max_delta)


def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> Tensor:
    """The brightness changed by up to ``max_delta`` either way."""
    return image_random.brightness(stateless(seed), image, max_delta)


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """The contrast times a random factor."""
    return image_random.contrast(stateful(seed), image, lower, upper)


def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> Tensor:
    """The contrast times a random factor."""
    return image_random.contrast(stateless(seed), image, lower, upper)


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """The hue turned by up to ``max_delta`` either way."""
    return image_random.hue(stateful(seed), image, max_delta)


def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> Tensor:
    """The hue turned by up to ``max_delta`` either way."""
    return image_random.hue(stateless(seed), image, max_delta)


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """The saturation times a random factor."""
    return image_random.saturation(stateful(seed), image, lower, upper)


def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any = None) -> Tensor:
    """The saturation times a random factor."""
    return image_random.saturation(stateless(seed), image, lower, upper)


def random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None) -> Tensor:
    """The image as a JPEG of a random quality would show it."""
    return image_random.jpeg_quality(stateful(seed), image, min_jpeg_quality, max_jpeg_quality)


def stateless_random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any) -> Tensor:
    """The image as a JPEG of a random quality would show it."""
    return image_random.jpeg_quality(stateless(seed), image, min_jpeg_quality, max_jpeg_quality)


# Files


def decode_image(
    contents: Any, channels: Any = None, dtype: Any = uint8, name: str | None = None, expand_animations: bool = True
) -> Tensor:
    """An image from the bytes of a PNG, JPEG, GIF, BMP or WebP file."""
    return image_codec.decode_image(contents, channels, dtype, expand_animations)


def decode_png(contents: Any, channels: Any = 0, dtype: Any = uint8, name: str | None = None) -> Tensor:
    """An image of uint8 or uint16 from the bytes of a PNG file."""
    return image_codec.decode_png(contents, channels, dtype)


def decode_jpeg(
    contents: Any, channels: Any = 0, ratio: Any = 1, fancy_upscaling: bool = True, try_recover_truncated: bool = False,
    acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """An image of uint8 from the bytes of a JPEG file."""
    return image_codec.decode_jpeg(contents, channels, ratio, try_recover_truncated)


def decode_and_crop_jpeg(
    contents: Any, crop_window: Any, channels: Any = 0, ratio: Any = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """The part (y, x, height, width) of a JPEG image."""
    return image_codec.decode_jpeg(contents, channels, ratio, try_recover_truncated, crop_window)


def decode_bmp(contents: Any, channels: Any = 0, name: str | None = None) -> Tensor:
    """An image of uint8 from the bytes of a BMP file."""
    return image_codec.decode_bmp(contents, channels)


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The frames of a GIF file."""
    return image_codec.decode_gif(contents)


def decode_webp(contents: Any, channels: Any = 0, dtype: Any = uint8, name: str | None = None) -> Tensor:
    """An image of uint8 from the bytes of a WebP file."""
    return image_codec.decode_png(contents, channels, dtype, label="DecodeWebP")


def encode_png(image: Any, compression: Any = -1, name: str | None = None) -> Tensor:
    """The bytes of a PNG file, or of one for each image of a batch."""
    return image_codec.encode_png(image, compression)


def encode_jpeg(
    image: Any, format: str = "", quality: Any = 95, progressive: bool = False, optimize_size: bool = False,
    chroma_downsampling: bool = True, density_unit: str = "in", x_density: Any = 300, y_density: Any = 300,
    xmp_metadata: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """The bytes of a JPEG file."""
    layout = (progressive, optimize_size, chroma_downsampling, density_unit, x_density, y_density)
    return image_codec.encode_jpeg(image, format, quality, *layout, xmp_metadata=xmp_metadata)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether the bytes begin as a JPEG file does."""
    return image_codec.is_jpeg(contents)


def extract_jpeg_shape(contents: Any, output_type: Any = int32, name: str | None = None) -> Tensor:
    """(height, width, channels) of a JPEG file, without decoding it."""
    return image_codec.extract_jpeg_shape(contents, output_type)

__getattr__ = missing(__name__, __all__)
