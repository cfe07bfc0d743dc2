"""Tensors from bytes and back: raw arrays, CSV, base64, and TensorFlow's serialized tensors."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.errors import DataLossError, InvalidArgumentError, message
from gradtape.ops import text
from gradtape.ops.text import string_array, string_tensor, texts
from gradtape.ops.wire import block, fields_of, unpacked, varint
from gradtape.values import dtypes
from gradtape.values.convert import convert_to_tensor
from gradtape.values.dtypes import DType
from gradtape.values.tensor import Tensor, wrap

# Raw


def raw(value: Any, dtype: Any, little_endian: bool, fixed_length: Any) -> Tensor:
    """The bytes of each string as elements along a new last axis."""
    array, kind = texts(value, "DecodeRaw"), dtypes.as_dtype(dtype)
    if kind is dtypes.string:
        text = "Value for attr 'out_type' of string is not in the list of allowed values [Op:DecodeRaw]"
        raise InvalidArgumentError(message(text, received="out_type=tf.string", expected="a number type: tf.uint8"))
    parts = array.ravel().tolist()
    if fixed_length is not None:
        size = int(fixed_length)
        if size <= 0 or size % kind.size:
            raise InvalidArgumentError(
                message(
                    f"fixed_length ({size}) must be a multiple of the size of out_type ({kind.size})",
                    received=f"fixed_length={size}",
                    expected=f"a multiple of {kind.size}, the bytes of one {kind.name}",
                )
            )
        parts = [part[:size].ljust(size, b"\0") for part in parts]
    lengths = [len(part) for part in parts]
    for n, length in enumerate(lengths):
        if length != lengths[0]:
            raise InvalidArgumentError(
                message(
                    f"DecodeRaw requires input strings to all be the same size, but element {n} has size {lengths[0]} "
                    f"!= {length}",
                    received=f"strings of {sorted(set(lengths))[:8]} bytes",
                    fix="fixed_length= cuts them, or fills them with zeros",
                )
            )
    width = lengths[0] if lengths else 0
    if width % kind.size:
        text = (
            f"Input to DecodeRaw has length {width} that is not a multiple of {kind.size}, the size of {kind.word} "
            "[Op:DecodeRaw]"
        )
        raise InvalidArgumentError(
            message(text, received=f"{width} bytes", expected=f"a multiple of {kind.size}, the bytes of one {kind.name}")
        )
    found = np.frombuffer(b"".join(parts), kind.numpy)
    if not little_endian:
        found = found.byteswap()
    return wrap(found.reshape(*array.shape, width // kind.size).copy())


# base64


def to_base64(value: Any, pad: bool) -> Any:
    """Web-safe base64 (- and _ for + and /), without = at the end unless ``pad``."""

    def encoded(part: bytes) -> bytes:
        whole = base64.urlsafe_b64encode(part)
        return whole if pad else whole.rstrip(b"=")

    return text.each(encoded, value, "EncodeBase64")


def from_base64(value: Any) -> Any:
    """What web-safe base64 stands for."""

    def decoded(part: bytes) -> bytes:
        bare = part.rstrip(b"=")
        if not re.fullmatch(rb"[A-Za-z0-9_-]*", bare):
            raise InvalidArgumentError(
                message("Invalid character found in base64. [Op:DecodeBase64]", expected="letters, digits, - and _")
            )
        try:
            return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
        except binascii.Error:
            summary = "Base64 string length cannot be 1 modulo 4. [Op:DecodeBase64]"
            raise InvalidArgumentError(
                message(summary, received=f"{len(part)} characters", expected="base64 as tf.io.encode_base64 writes it")
            ) from None

    return text.each(decoded, value, "DecodeBase64")


def decompressed(value: Any, kind: str) -> Any:
    """Without ZLIB or GZIP compression; "" leaves strings as they are."""
    import zlib

    if kind not in ("", "ZLIB", "GZIP"):
        summary = "Only ZLIB, GZIP or NONE are supported compressions"
        raise InvalidArgumentError(message(summary, received=repr(kind), expected="'', 'ZLIB' or 'GZIP'"))

    def whole(part: bytes) -> bytes:
        try:
            return zlib.decompress(part, wbits=47) if kind else part  # 47: zlib or gzip, as the header says
        except zlib.error as error:
            raise DataLossError(
                message(f"inflate() failed: {error}", received=f"{len(part)} bytes", expected=f"bytes that {kind} wrote, whole")
            ) from None

    return text.each(whole, value, "DecodeCompressed")


# CSV


def csv(
    records: Any, defaults: Sequence, delimiter: str, quotes: bool, missing: str, columns: Sequence[int] | None
) -> list[Tensor]:
    """One tensor per column; a column's default gives its dtype, and its value where a field is empty."""
    array = texts(records, "DecodeCSV")
    made = [_Column(default, n) for n, default in enumerate(defaults)]
    if len(delimiter) != 1:
        text = f"field_delim should be only 1 char [Op:DecodeCSV], got {delimiter!r}"
        raise InvalidArgumentError(message(text, received=f"field_delim={delimiter!r}", expected="one character"))
    chosen = None if columns is None else [int(column) for column in columns]
    if chosen is not None and chosen != sorted(set(chosen)):
        text = "select_cols is not strictly increasing."
        raise ValueError(message(text, received=f"select_cols={chosen}", fix=f"select_cols={sorted(set(chosen))}"))
    if chosen is not None and len(chosen) != len(made):
        text = "Length of select_cols and record_defaults do not match."
        raise ValueError(
            message(text, received=f"{len(chosen)} columns, {len(made)} defaults", expected="one default per selected column")
        )
    rows = []
    for number, record in enumerate(array.ravel()):
        fields = list(_fields(record.decode("utf-8", "surrogateescape"), delimiter, quotes))
        if chosen is not None:
            fields = [fields[column] for column in chosen if column < len(fields)]
        if len(fields) != len(made):
            raise InvalidArgumentError(
                message(
                    f"Expect {len(made)} fields but have {len(fields)} in record {number} [Op:DecodeCSV]",
                    received=f"{len(fields)} fields",
                    expected=f"{len(made)}: one per default",
                    fix="select_cols= picks columns",
                )
            )
        parts = enumerate(zip(made, fields))
        rows.append([column.value(field, field in ("", missing), n, number) for n, (column, field) in parts])
    values = zip(*rows) if rows else [()] * len(made)
    return [column.tensor(list(found), array.shape) for column, found in zip(made, values)]


class _Column:
    """A column's dtype and default."""

    def __init__(self, default: Any, number: int) -> None:
        tensor = convert_to_tensor(default)
        if tensor._array.size > 1:
            raise InvalidArgumentError(
                message(
                    f"There should only be 1 default per field but field {number} has {tensor._array.size} [Op:DecodeCSV]",
                    received=f"a default of {tensor._array.size} elements for field {number}",
                    expected="one value, or an empty list for a field that must be there",
                )
            )
        self.dtype: DType = tensor.dtype
        self.default = tensor._host().ravel().tolist()
        allowed = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)
        if self.dtype not in allowed:
            raise InvalidArgumentError(
                message(
                    f"Value for attr 'OUT_TYPE' of {self.dtype.word} is not in the list of allowed values: float, double, "
                    "int32, int64, string [Op:DecodeCSV]",
                    received=f"{self.dtype!r} for field {number}",
                    expected="defaults of tf.float32, tf.float64, tf.int32, tf.int64 or tf.string",
                )
            )

    def value(self, field: str, empty: bool, number: int, record: int) -> Any:
        if empty:
            if not self.default:
                raise InvalidArgumentError(
                    message(
                        f"Field {number} is required but missing in record {record}! [Op:DecodeCSV]",
                        received=f"an empty field {number}",
                        fix="a default for it in record_defaults: [0] instead of []",
                    )
                )
            return self.default[0]
        if self.dtype is dtypes.string:
            return field.encode("utf-8", "surrogateescape")
        try:
            return text.numbers(field.encode("utf-8", "surrogateescape"), self.dtype)._array[()]
        except InvalidArgumentError:
            raise InvalidArgumentError(
                message(
                    f"Field {number} in record {record} is not a valid {self.dtype.word}: {field} [Op:DecodeCSV]",
                    received=f"{field!r}",
                    expected=f"a number of type {self.dtype.name}",
                    fix="na_value= names a text that stands for a missing value",
                )
            ) from None

    def tensor(self, found: list, shape: tuple[int, ...]) -> Tensor:
        if self.dtype is dtypes.string:
            return string_tensor(found, shape)
        return wrap(np.array(found, self.dtype.numpy).reshape(shape))


def _fields(record: str, delimiter: str, quotes: bool) -> Iterator[str]:
    """The fields of one record; in a quoted one two quotes stand for one."""
    quoted = re.compile(rf'"((?:[^"]|"")*)"({re.escape(delimiter)}|\Z)')
    position = 0
    while record:
        if quotes and record[position : position + 1] == '"':
            match = quoted.match(record, position)
            if match is None:
                text = "Quote inside a string has to be escaped by another quote [Op:DecodeCSV]"
                raise InvalidArgumentError(message(text, received=f"{record!r}", expected='"" for a quote inside quotes'))
            field, end = match[1].replace('""', '"'), match.end(1) + 1
        else:
            end = record.find(delimiter, position)
            end = len(record) if end < 0 else end
            field = record[position:end]
            if quotes and any(character in field for character in '"\r\n'):
                text = "Unquoted fields cannot have quotes/CRLFs inside [Op:DecodeCSV]"
                raise InvalidArgumentError(
                    message(text, received=f"{field!r}", fix="put the field into quotes, or use_quote_delim=False")
                )
        yield field
        if end >= len(record):
            return
        position = end + 1


# Serialized tensors: TensorFlow's protocol buffer `TensorProto`, so that the bytes can be exchanged with it

_NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9,
    "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23, "float8_e5m2": 24,
    "float8_e4m3fn": 25,
}  # fmt: skip
NAMES = {number: name for name, number in _NUMBERS.items()}
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8
_PACKED = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}  # typed values; those in _VARINTS are written number by number
_VARINTS = (7, 10, 11, 13, 16, 17)


def serialized(value: Any) -> Tensor:
    """A tensor as the bytes of a ``TensorProto``."""
    tensor = convert_to_tensor(value)
    array = tensor._host()
    lengths = b"".join(block(2, varint(1 << 3) + varint(n) if n else b"") for n in array.shape)
    head = varint(_DTYPE << 3) + varint(_NUMBERS[tensor.dtype.name]) + block(_SHAPE, lengths)
    if tensor.dtype is dtypes.string:
        body = b"".join(block(_STRINGS, part) for part in array.ravel())
    else:
        body = block(_CONTENT, array.tobytes()) if array.size else b""
    return string_tensor([head + body], ())


def parsed(value: Any, dtype: Any) -> Tensor:
    """The tensor that `serialized` was given; ``dtype`` must be its own."""
    whole, kind = texts(value, "ParseTensor"), dtypes.as_dtype(dtype)
    if whole.ndim:
        text = f"Expected `serialized` to be a scalar, got shape: {list(whole.shape)} [Op:ParseTensor]"
        raise InvalidArgumentError(
            message(text, received=f"serialized of shape {whole.shape}", expected="one string, from tf.io.serialize_tensor")
        )
    data = whole[()]
    try:
        fields = list(fields_of(data))
        own = dtypes.as_dtype(NAMES[next(content for field, content in fields if field == _DTYPE)])
        shape = [dict(fields_of(d)).get(1, 0) for f, s in fields if f == _SHAPE for g, d in fields_of(s) if g == 2]
        array = _content(fields, own, shape)
    except (LookupError, StopIteration, ValueError, TypeError, ArithmeticError, MemoryError):
        code = base64.b64encode(data).decode()
        text = f"Could not parse `serialized` as TensorProto, base64: {code} [Op:ParseTensor]"
        raise InvalidArgumentError(
            message(text, received=f"{len(data)} bytes", expected="what tf.io.serialize_tensor wrote")
        ) from None
    if own is not kind:
        raise InvalidArgumentError(
            message(
                f"Type mismatch between parsed tensor ({own.word}) and dtype ({kind.word}) [Op:ParseTensor]",
                fix=f"out_type={own!r}",
            )
        )
    return wrap(array)


def _content(fields: list[tuple[int, Any]], dtype: DType, shape: list[int]) -> np.ndarray:
    if dtype is dtypes.string:
        return _filled(string_array(found := [c for f, c in fields if f == _STRINGS], (len(found),)), shape)
    dense = b"".join(content for field, content in fields if field == _CONTENT)
    if dense:
        return np.frombuffer(dense, dtype.numpy).reshape(shape).copy()
    values: list = []
    for field, content in fields:
        if field in _PACKED:
            values += np.frombuffer(content, _PACKED[field]).tolist()
        elif field in _VARINTS:
            values += [content] if isinstance(content, int) else unpacked(content)
    if 13 in dict(fields):  # half precision: the bits of each number
        return _filled(np.array(values, np.uint16).view(dtype.numpy), shape)
    signed = [number - 2**64 if number >= 2**63 else number for number in values] if dtype.is_integer else values
    return _filled(np.array(signed, dtype.numpy), shape)


def _filled(array: np.ndarray, shape: list[int]) -> np.ndarray:
    """All elements, of which the last may stand for all that follow."""
    missing = int(np.prod(shape, dtype=np.int64)) - array.size
    return np.concatenate([array, np.repeat(array[-1:], missing)]).reshape(shape)
