"""`tf.io`: files, and tensors from bytes. The functions that read and write images are those of `tf.image`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gradtape.image import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from gradtape.ops import decoding, files
from gradtape.ops.text import string_tensor
from gradtape.scope import missing
from gradtape.values.dtypes import string
from gradtape.values.tensor import Tensor

__all__ = [
    "decode_and_crop_jpeg", "decode_base64", "decode_bmp", "decode_compressed", "decode_csv", "decode_gif", "decode_image",
    "decode_jpeg", "decode_png", "decode_raw", "decode_webp", "encode_base64", "encode_jpeg", "encode_png",
    "extract_jpeg_shape", "gfile", "is_jpeg", "match_filenames_once", "matching_files", "parse_tensor", "read_file",
    "serialize_sparse", "serialize_tensor", "write_file",
]  # fmt: skip

gfile = SimpleNamespace(
    GFile=files.GFile, Open=files.GFile, copy=files.copy, exists=files.exists,
    get_registered_schemes=files.get_registered_schemes, glob=files.glob, isdir=files.isdir, join=files.join,
    listdir=files.listdir, makedirs=files.makedirs, mkdir=files.mkdir, remove=files.remove, rename=files.rename,
    rmtree=files.rmtree, stat=files.stat, walk=files.walk,
)  # fmt: skip


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The bytes of a file as a scalar string."""
    return files.read_file(filename)


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a scalar string to a file; folders are made as needed."""
    files.write_file(filename, contents)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The sorted paths that match one pattern or several."""
    return files.matching_files(pattern)


def match_filenames_once(pattern: Any, name: str | None = None) -> Tensor:
    """The same as `matching_files`: without graphs nothing runs twice."""
    return files.matching_files(pattern)


def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: Any = None, name: str | None = None
) -> Tensor:
    """The bytes of strings as numbers, along a new last axis.

    >>> tf.io.decode_raw(b"\\x01\\x00\\x02\\x00", tf.int16).numpy()
    array([1, 2], dtype=int16)
    """
    return decoding.raw(input_bytes, out_type, little_endian, fixed_length)


def decode_csv(
    records: Any, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
    select_cols: Any = None, name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """One tensor per column of comma-separated records; defaults give dtypes, and values for empty fields.

    >>> [column.numpy().tolist() for column in tf.io.decode_csv(["1,a", ",b"], [[7], [""]])]
    [[1, 7], [b'a', b'b']]
    """
    return decoding.csv(records, record_defaults, field_delim, use_quote_delim, na_value, select_cols)


def decode_base64(input: Any, name: str | None = None) -> Any:
    """What web-safe base64 strings stand for."""
    return decoding.from_base64(input)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Strings in web-safe base64."""
    return decoding.to_base64(input, pad)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """Strings without their ZLIB or GZIP compression."""
    return decoding.decompressed(bytes, compression_type)


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as bytes that TensorFlow reads too: `parse_tensor` is the way back."""
    return decoding.serialized(tensor)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor that `serialize_tensor` was given.

    >>> tf.io.parse_tensor(tf.io.serialize_tensor([1.5, 2.0]), tf.float32).numpy()
    array([1.5, 2. ], dtype=float32)
    """
    return decoding.parsed(serialized, out_type)


def serialize_sparse(sp_input: Any, out_type: Any = string, name: str | None = None) -> Tensor:
    """Indices, values and shape of a sparse tensor, each serialized."""
    parts = [decoding.serialized(part)._array[()] for part in (sp_input.indices, sp_input.values, sp_input.dense_shape)]
    return string_tensor(parts, (3,))


__getattr__ = missing(__name__, __all__)
