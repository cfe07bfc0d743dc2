"""Images to and from bytes, by Pillow: PNG, JPEG, GIF, BMP, WebP. Every decoder takes every format, as in TensorFlow."""

from __future__ import annotations

import contextlib
import io
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradtape.errors import InternalError, InvalidArgumentError, OpError, dims, message
from gradtape.ops.arguments import integer, integers
from gradtape.ops.image_color import convert_image_dtype
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor, string_scalar
from gradtape.values.tensor import Tensor, wrap

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_MAGIC = {
    b"\xff\xd8\xff": "JPEG", b"\x89PNG\r\n\x1a\n": "PNG", b"GIF8": "GIF", b"BM": "BMP", b"RIFF": "WEBP",
}  # fmt: skip
_UNKNOWN = "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required."


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            message("Images are read and written by Pillow, which is not installed.", fix='pip install "gradtape[image]"')
        ) from error
    return Image


# Decoding


def _contents(contents: Any, label: str) -> bytes:
    tensor = convert_to_tensor(contents, dtypes.string)
    if tensor._array.ndim:
        raise InvalidArgumentError(
            message(
                f"`contents` must be scalar but got shape{dims(tensor._array.shape)} [Op:{label}]",
                fix="decode one image at a time: tf.map_fn, or dataset.map before batch",
            )
        )
    data = tensor._array[()]
    if not data:
        text = f"Input is empty. [Op:{label}]"
        raise InvalidArgumentError(message(text, received="0 bytes", fix="tf.io.read_file(path) gives the bytes of a file"))
    return data


def _format(data: bytes) -> str | None:
    return next((name for start, name in _MAGIC.items() if data.startswith(start)), None)


def _opened(data: bytes, label: str) -> Any:
    """The image, not yet decoded; anything that Pillow cannot make sense of is refused."""
    found = _format(data)
    if found is None:
        text = f"{_UNKNOWN} [Op:{label}]"
        raise InvalidArgumentError(
            message(text, received=f"{len(data)} bytes: {data[:12]!r}", expected="the bytes of a PNG, JPEG, GIF or BMP file")
        )
    pillow = _pillow()
    with _reading(data, label):
        if found == "PNG":
            _check_png(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = pillow.open(io.BytesIO(data), formats=[found])
        if found == "BMP":
            _check_bmp(image, data)
        return image


@contextlib.contextmanager
def _reading(data: bytes, label: str) -> Iterator[None]:
    """Refuse a file that Pillow cannot make sense of. There is hardly a kind of exception that one has not made it raise."""
    try:
        yield
    except (OpError, MemoryError):
        raise
    except Exception as error:
        raise _damaged(_format(data) or "image", data, label, error) from error


def _check_png(data: bytes) -> None:
    """Compare the checksums of the chunks: Pillow does not read those of the pixels."""
    at, kind = 8, b""
    while at + 12 <= len(data) and kind != b"IEND":
        end, kind = at + 8 + int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if len(data) >= end + 4 and zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            raise ValueError(f"the checksum of {kind!r} does not match")
        at = end + 4


def _check_bmp(image: Any, data: bytes) -> None:
    """Compare the pixels that are promised with those that are there, before there is memory for them."""
    for codec, (_, top, _, bottom), start, layout in image.tile:
        if codec == "raw" and start + (bottom - top - 1) * layout[1] > len(data):
            raise ValueError(f"{image.height} rows in {len(data)} bytes")


def _damaged(found: str, data: bytes, label: str, reason: Any = None) -> InvalidArgumentError:
    if found == "JPEG":
        text = "jpeg::Uncompress failed. Invalid JPEG data or crop window."
    else:
        text = f"Invalid {found} data, size {len(data)}"
    return InvalidArgumentError(
        message(
            f"{text} [Op:{label}]",
            why="the file is cut off or damaged" if reason is None else f"it is cut off or damaged: {reason}",
            fix="write the file again; PIL.Image.open(path).verify() tells whether it is whole",
        )
    )


def _loaded(image: Any, data: bytes, label: str) -> None:
    with _reading(data, label):
        image.load()


def _channel_count(channels: Any, label: str) -> int:
    number = 0 if channels is None else integer(channels)
    if number not in (0, 1, 3, 4):
        text = f"`channels` must be 0, 1, 3 or 4 but got {number} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"channels={number}", expected="0 for what the file has, 1, 3 or 4"))
    return number


def _pixels(image: Any, channels: int) -> np.ndarray:
    """The decoded image as (height, width, channels) of uint8, or of uint16 where it is one grey channel of 16 bits."""
    if image.mode.startswith("I;16"):
        wide = np.asarray(image).astype(np.uint16)[..., None]
        return wide if channels in (0, 1) else _with_channels(wide, channels)
    if image.mode in ("1", "P", "CMYK", "YCbCr", "I", "F", "PA"):
        clear = image.mode == "PA" or (image.mode == "P" and "transparency" in image.info)
        image = image.convert("L" if image.mode == "1" else "RGBA" if clear else "RGB")
    if channels > 1 and channels != len(image.getbands()):
        image = image.convert(_MODES[channels])
    array = np.asarray(image)
    array = array[..., None] if array.ndim == 2 else array
    return _grey(array) if channels == 1 else array


def _grey(pixels: np.ndarray) -> np.ndarray:
    """The luma of colours, cut to an integer as libpng does; alpha is dropped, not blended."""
    if pixels.shape[-1] < 3:
        return pixels[..., :1]
    r, g, b = (pixels[..., i : i + 1].astype(np.uint32) for i in range(3))
    return ((9798 * r + 19235 * g + 3735 * b) >> 15).astype(np.uint8)


def _with_channels(grey: np.ndarray, channels: int) -> np.ndarray:
    parts = [grey] * 3 + [np.full_like(grey, np.iinfo(grey.dtype).max)] * (channels == 4)
    return np.concatenate(parts, -1)


def _in_dtype(pixels: np.ndarray, dtype: Any) -> np.ndarray:
    """8 bits from 16 by dropping the low ones, 16 from 8 by repeating them: 255 becomes 65535."""
    if pixels.dtype == dtype:
        return pixels
    return (pixels >> 8).astype(np.uint8) if dtype == np.uint8 else pixels.astype(np.uint16) * np.uint16(257)


def _deep_channels(image: Any) -> str:
    """The channels of a PNG that has 16 bits in each of several; of those Pillow reads only the upper 8."""
    stored = str(image.tile[0][3]) if image.format == "PNG" and image.tile else ""
    channels, _, depth = stored.partition(";")
    return channels if depth.startswith("16") and len(channels) > 1 else ""


def _deep_pixels(data: bytes, deep: str, label: str) -> np.ndarray:
    """All 16 bits of several channels. Pillow gives one byte of each: asked again in the other byte order, the other one."""

    def read(layout: str) -> np.ndarray:
        image = _opened(data, label)
        image.tile = [(*image.tile[0][:3], layout)]
        _loaded(image, data, label)
        return np.asarray(image)

    if deep == "LA":  # two channels of two bytes are read as four of one
        return read("RGBA").view(">u2").astype(np.uint16)
    return (read(f"{deep};16B").astype(np.uint16) << 8) | read(f"{deep};16L")


def _in_channels(pixels: np.ndarray, wanted: int) -> np.ndarray:
    """Deep pixels as grey (to the nearest; libpng's tables differ by up to 2), grey and alpha, colours, colours and alpha."""
    colours, alpha = (pixels[..., :-1], pixels[..., -1:]) if pixels.shape[-1] % 2 == 0 else (pixels, None)
    if wanted < 3:
        r, g, b = (colours[..., i : i + 1].astype(np.uint64) for i in ((0, 1, 2) if colours.shape[-1] == 3 else (0, 0, 0)))
        colours = ((9798 * r + 19235 * g + 3735 * b + 16384) >> 15).astype(np.uint16)
    elif colours.shape[-1] == 1:
        colours = np.repeat(colours, 3, axis=-1)
    if wanted % 2:
        return colours
    return np.concatenate([colours, np.full_like(colours[..., :1], 65535) if alpha is None else alpha], axis=-1)


def _decoded(data: bytes, channels: int, dtype: Any, label: str) -> np.ndarray:
    """The first frame of an image of any format."""
    image = _opened(data, label)
    if image.format == "JPEG" and channels == 4:
        raise InvalidArgumentError(message(f"JPEG does not support 4 channels [Op:{label}]", fix="channels=3"))
    deep = _deep_channels(image)
    if deep and dtype != np.uint8:
        return _in_channels(_deep_pixels(data, deep, label), channels or len(deep))
    _loaded(image, data, label)
    if deep == "LA":  # which Pillow spreads over four channels
        image = image.convert("LA")
    return _in_dtype(_pixels(image, channels), dtype)


def decode_png(contents: Any, channels: Any = 0, dtype: Any = dtypes.uint8, label: str = "DecodePng") -> Tensor:
    """An image (height, width, channels) from the bytes of a file; ``channels`` 0 means those of the file."""
    kind = dtypes.as_dtype(dtype)
    if kind not in (dtypes.uint8, dtypes.uint16):
        text = f"Value for attr 'dtype' of {kind.word} is not in the list of allowed values: uint8, uint16"
        raise InvalidArgumentError(
            message(text, received=f"dtype={kind!r}", fix="dtype=tf.uint8, then tf.image.convert_image_dtype(image, dtype)")
        )
    number = _channel_count(channels, label)
    return wrap(_decoded(_contents(contents, label), number, kind.numpy, label))


_RATIOS = (1, 2, 4, 8)


def decode_jpeg(
    contents: Any, channels: Any = 0, ratio: Any = 1, try_recover_truncated: bool = False, crop_window: Any = None
) -> Tensor:
    """An image of uint8 from the bytes of a file; a JPEG may be reduced by ``ratio`` while it is decoded."""
    label = "DecodeJpeg" if crop_window is None else "DecodeAndCropJpeg"
    number, reduction = _channel_count(channels, label), integer(ratio)
    if reduction not in _RATIOS:
        text = f"ratio must be 1, 2, 4, or 8, got {reduction} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"ratio={reduction}", expected="1, 2, 4 or 8"))
    data = _contents(contents, label)
    image = _opened(data, label)
    if image.format != "JPEG" and crop_window is None:
        return wrap(_decoded(data, number, np.uint8, label))
    if number == 4:
        raise InvalidArgumentError(message(f"JPEG does not support 4 channels [Op:{label}]", fix="channels=3"))
    size = tuple(-(-n // reduction) for n in image.size)
    if number == 1 or reduction > 1:
        image.draft("L" if number == 1 else image.mode, tuple(max(1, n // reduction) for n in image.size))
    if try_recover_truncated:
        _load_truncated(image, data, label)
    _loaded(image, data, label)
    if image.size != size:  # the decoder halves no further than to the size asked for
        image = image.reduce(next(k for k in _RATIOS if tuple(-(-n // k) for n in image.size) == size))
    pixels = _pixels(image, number)
    return wrap(pixels if crop_window is None else _cropped(pixels, crop_window, data, label))


def _load_truncated(image: Any, data: bytes, label: str) -> None:
    """Decode what is there of a file that was cut off; the rest is grey."""
    from PIL import ImageFile

    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        _loaded(image, data, label)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def _cropped(pixels: np.ndarray, window: Any, data: bytes, label: str) -> np.ndarray:
    top, left, height, width = integers(window)
    rows, columns = pixels.shape[:2]
    if min(top, left) < 0 or min(height, width) <= 0 or top + height > rows or left + width > columns:
        raise _damaged("JPEG", data, label)
    return pixels[top : top + height, left : left + width]


def decode_bmp(contents: Any, channels: Any = 0) -> Tensor:
    """An image of uint8 from the bytes of a BMP file."""
    label = "DecodeBmp"
    data = _contents(contents, label)
    if data.startswith(b"BM") and len(data) < 32:
        text = (
            "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and bpp, "
            f"got {len(data)} bytes [Op:{label}]"
        )
        raise InvalidArgumentError(message(text, received=f"{len(data)} bytes", expected="a whole BMP file"))
    return wrap(_decoded(data, _channel_count(channels, label), np.uint8, label))


def decode_gif(contents: Any) -> Tensor:
    """The frames (number, height, width, 3) of an animation, each as it is shown; of another file one frame."""
    label = "DecodeGif"
    return wrap(_frames(_contents(contents, label), label))


def _frames(data: bytes, label: str) -> np.ndarray:
    image = _opened(data, label)
    frames = []
    with _reading(data, label):
        for i in range(getattr(image, "n_frames", 1)):
            image.seek(i)
            frames.append(np.asarray(image.convert("RGB")))
        return np.stack(frames)


def decode_image(
    contents: Any, channels: Any = None, dtype: Any = dtypes.uint8, expand_animations: bool = True
) -> Tensor:
    """An image of any format, in any element type; an animation has a leading axis of frames (``expand_animations``)."""
    label = "DecodeImage"
    number, kind = _channel_count(channels, label), dtypes.as_dtype(dtype)
    data = _contents(contents, label)
    if _format(data) == "GIF":
        pixels = _frames(data, label)
        pixels = pixels if expand_animations else pixels[0]
    else:
        deep = _format(data) == "PNG" and kind is not dtypes.uint8  # a PNG of 16 bits keeps them
        pixels = _decoded(data, number, np.uint16 if deep else np.uint8, label)
    return convert_image_dtype(wrap(pixels), kind) if kind.numpy != pixels.dtype else wrap(pixels)


def is_jpeg(contents: Any) -> Tensor:
    """Whether the bytes begin as a JPEG file does."""
    data = convert_to_tensor(contents, dtypes.string)._array[()]
    return wrap(np.asarray(data.startswith(b"\xff\xd8\xff")))


def extract_jpeg_shape(contents: Any, output_type: Any = dtypes.int32) -> Tensor:
    """(height, width, channels) of a JPEG file, without decoding it."""
    label = "ExtractJpegShape"
    data = _contents(contents, label)
    if _format(data) != "JPEG":
        text = f"Invalid JPEG data, size {len(data)} [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"{len(data)} bytes: {data[:12]!r}", expected="a JPEG file"))
    image = _opened(data, label)
    return wrap(np.array([image.height, image.width, len(image.getbands())], dtypes.as_dtype(output_type).numpy))


# Encoding


def _image(pixels: np.ndarray) -> Any:
    """Pillow's image of 8-bit pixels; it knows the mode from the number of channels."""
    return _pillow().fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def _png(pixels: np.ndarray, compression: int) -> bytes:
    """The bytes of a PNG file; 16 bits are written here, for Pillow writes them for grey images only."""
    if pixels.dtype == np.uint16:
        return _deep_png(pixels, compression)
    file = io.BytesIO()
    options = {} if compression < 0 else {"compress_level": compression}
    _image(pixels).save(file, "PNG", **options)
    return file.getvalue()


def _deep_png(pixels: np.ndarray, compression: int) -> bytes:
    """A PNG of 16 bits per channel, its rows unfiltered."""
    import struct

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    body = zlib.compress(np.insert(rows, 0, 0, axis=1).tobytes(), compression)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def encode_png(image: Any, compression: Any = -1) -> Tensor:
    """The bytes of a PNG file for an image of uint8 or uint16, or for each of a batch.

    >>> import numpy as np
    >>> image = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    >>> bool((decode_png(encode_png(image)).numpy() == image).all())
    True
    """
    x = convert_to_tensor(image)
    level, shape = integer(compression), x._array.shape
    if x.dtype not in (dtypes.uint8, dtypes.uint16):
        raise InvalidArgumentError(
            message(
                f"Value for attr 'T' of {x.dtype.word} is not in the list of allowed values: uint8, uint16",
                fix="tf.image.convert_image_dtype(image, tf.uint8, saturate=True) first",
            )
        )
    if not -1 <= level <= 9:
        text = f"compression should be in [-1,9], got {level} [Op:EncodePng]"
        raise InvalidArgumentError(message(text, received=f"compression={level}", expected="-1 for the usual, or 0 to 9"))
    if len(shape) < 3:
        text = f"images must be at least rank 3{dims(shape)} [Op:EncodePng]"
        raise InvalidArgumentError(
            message(text, received=f"shape {shape}", expected="(height, width, channels), or several with leading axes")
        )
    if shape[-1] not in _MODES:
        text = f"image must have 1, 2, 3, or 4 channels, got {shape[-1]} [Op:EncodePng]"
        raise InvalidArgumentError(message(text, received=f"shape {shape}", expected="1, 2, 3 or 4 channels in the last axis"))
    images = np.ascontiguousarray(x._host()).reshape(-1, *shape[-3:]) if x._array.size else ()
    if not len(images):
        text = "PNG encoding failed at the following flattened batch indices: 0 [Op:EncodePng]"
        raise InternalError(message(text, received=f"shape {shape}", expected="at least one image"))
    files = [_png(pixels, level) for pixels in images]
    out = np.empty(len(files), object)
    out[:] = files
    return wrap(out.reshape(shape[:-3])) if len(shape) > 3 else wrap(string_scalar(files[0]))


def encode_jpeg(
    image: Any, format: str = "", quality: Any = 95, progressive: bool = False, optimize_size: bool = False,
    chroma_downsampling: bool = True, density_unit: str = "in", x_density: Any = 300, y_density: Any = 300,
    xmp_metadata: str | bytes = "", label: str = "EncodeJpeg",
) -> Tensor:  # fmt: skip
    """The bytes of a JPEG file for an image (height, width, 1 or 3) of uint8."""
    x = convert_to_tensor(image, None if isinstance(image, Tensor) else dtypes.uint8)
    level = integer(quality)
    _check_jpeg(x, format, level, density_unit, label)
    pixels = np.ascontiguousarray(x._host())
    file = io.BytesIO()
    scale = 1.0 if density_unit == "in" else 2.54
    _image(pixels).save(
        file, "JPEG", quality=level, progressive=progressive, optimize=optimize_size,
        subsampling=2 if chroma_downsampling else 0, dpi=(integer(x_density) * scale, integer(y_density) * scale),
        xmp=xmp_metadata.encode() if isinstance(xmp_metadata, str) else xmp_metadata,
    )  # fmt: skip
    return wrap(string_scalar(file.getvalue()))


def _check_jpeg(x: Tensor, format: str, quality: int, density_unit: str, label: str) -> None:
    shape, wrong = x._array.shape, None
    wanted = {"grayscale": 1, "rgb": 3}.get(format)
    if x.dtype is not dtypes.uint8:
        text = "as input #0(zero-based) was expected to be a uint8 tensor but is a"
        wrong = f"cannot compute {label} {text} {x.dtype.word} tensor"
    elif format not in ("", "grayscale", "rgb"):
        wrong = f'Value for attr \'format\' of "{format}" is not in the list of allowed values: "", "grayscale", "rgb"'
    elif density_unit not in ("in", "cm"):
        wrong = f'Value for attr \'density_unit\' of "{density_unit}" is not in the list of allowed values: "in", "cm"'
    elif not 0 <= quality <= 100:
        wrong = f"quality must be in [0,100], got {quality}"
    elif len(shape) != 3:
        wrong = f"image must be 3-dimensional{dims(shape)}"
    elif shape[2] not in (1, 3):
        wrong = f"image must have 1 or 3 channels, got {dims(shape)}"
    elif wanted and shape[2] != wanted:
        wrong = f"format {format} expects {wanted} channels, got {dims(shape)}"
    elif not x._array.size:
        wrong = f"image must not be empty, got {dims(shape)}"
    if wrong:
        expected = "uint8 (height, width, 1 or 3), format '', 'grayscale' or 'rgb', quality 0 to 100, density_unit 'in' or 'cm'"
        raise InvalidArgumentError(message(f"{wrong} [Op:{label}]", expected=expected))


def adjust_jpeg_quality(image: Any, jpeg_quality: Any) -> Tensor:
    """The image encoded as JPEG of a quality from 0 to 100, and decoded; no gradient flows."""
    x = convert_to_tensor(image)
    encoded = encode_jpeg(
        convert_image_dtype(x, dtypes.uint8, saturate=True), quality=jpeg_quality, label="EncodeJpegVariableQuality"
    )
    return convert_image_dtype(decode_jpeg(encoded, channels=x._array.shape[-1]), x.dtype, saturate=True)
