"""Unicode: code points from encoded strings and back. Wrong input is replaced, dropped or refused, as ``errors`` says."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, message
from gradtape.ops.text import each, is_ragged, ragged_each, string_tensor
from gradtape.values.convert import convert_to_tensor

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_ERRORS = ("replace", "strict", "ignore")

Character = tuple[int, int]
"""A code point and the position of its first byte."""


def _python_name(encoding: str, label: str) -> str:
    try:
        return _ENCODINGS.get(encoding) or codecs.lookup(encoding).name
    except LookupError:
        raise InvalidArgumentError(
            message(
                f"Could not create converter for input encoding: {encoding} [Op:{label}]",
                expected="UTF-8, UTF-16-BE, UTF-32-BE, or a name that Python's codecs know",
            )
        ) from None


def _check_errors(errors: str, label: str) -> None:
    if errors not in _ERRORS:
        text = (
            f"Value for attr 'errors' of \"{errors}\" is not in the list of allowed values: \"strict\", \"replace\", "
            f'"ignore" [Op:{label}]'
        )
        raise InvalidArgumentError(message(text, received=f"errors={errors!r}", expected="'strict', 'replace' or 'ignore'"))


class Decoder:
    """Characters of encoded strings."""

    def __init__(self, encoding: str, errors: str, replacement: int, control: bool, label: str) -> None:
        _check_errors(errors, label)
        self.encoding = _python_name(encoding, label)
        self.errors = errors
        self.replacement = replacement
        self.control = control
        self.label = label

    def __call__(self, text: bytes) -> list[Character]:
        found: list[Character] = []
        position = 0
        while position < len(text):
            good, wrong = self._run(text, position)
            for character in good:
                found.append((self._shown(ord(character)), position))
                position += len(character.encode(self.encoding))
            if wrong:
                found += self._wrong(text, position)
                position += wrong
        return found

    def _run(self, text: bytes, position: int) -> tuple[str, int]:
        """The correct characters from here on, and how many wrong bytes follow them."""
        try:
            return text[position:].decode(self.encoding), 0
        except UnicodeDecodeError as error:
            return text[position : position + error.start].decode(self.encoding), error.end - error.start

    def _shown(self, code: int) -> int:
        return self.replacement if self.control and code < 32 else code

    def _wrong(self, text: bytes, position: int) -> list[Character]:
        if self.errors == "strict":
            raise InvalidArgumentError(
                message(
                    f"Invalid formatting on input string [Op:{self.label}]",
                    received=f"{text!r}, wrong at byte {position}",
                    fix="errors='replace' or errors='ignore'",
                )
            )
        return [(self.replacement, position)] if self.errors == "replace" else []


def decode(value: Any, decoder: Decoder) -> Any:
    """The code points of every string."""
    return ragged_each(lambda text: [code for code, _ in decoder(text)], value, decoder.label, np.int32)


def offsets(value: Any, decoder: Decoder) -> Any:
    """Where each character of every string begins, in bytes."""
    return ragged_each(lambda text: [start for _, start in decoder(text)], value, decoder.label, np.int64)


def characters(value: Any, decoder: Decoder) -> Any:
    """The characters of every string, as strings of the same encoding."""
    return ragged_each(lambda text: [chr(code).encode(decoder.encoding) for code, _ in decoder(text)], value, decoder.label)


def transcode(value: Any, decoder: Decoder, encoding: str) -> Any:
    """Strings in another encoding."""
    target = _target(encoding, decoder.label)
    return each(lambda text: _encoded([code for code, _ in decoder(text)], target), value, decoder.label)


def _target(encoding: str, label: str) -> str:
    if encoding not in _ENCODINGS:
        text = (
            f"Value for attr 'output_encoding' of \"{encoding}\" is not in the list of allowed values: \"UTF-8\", "
            f'"UTF-16-BE", "UTF-32-BE" [Op:{label}]'
        )
        raise InvalidArgumentError(
            message(text, received=f"output_encoding={encoding!r}", expected="'UTF-8', 'UTF-16-BE' or 'UTF-32-BE'")
        )
    return _ENCODINGS[encoding]


def _encoded(codes: Sequence[int], encoding: str) -> bytes:
    return "".join(map(chr, codes)).encode(encoding)


def encode(value: Any, encoding: str, errors: str, replacement: int) -> Any:
    """The strings that the code points of the last axis spell."""
    label = "UnicodeEncode"
    _check_errors(errors, label)
    target = _target(encoding, label)

    def text(codes: Sequence[int]) -> bytes:
        good = [code if 0 <= code < 0xD800 or 0xDFFF < code <= 0x10FFFF else None for code in codes]
        if None in good and errors == "strict":
            summary = f"Code point is out of range for Unicode, or is a surrogate. [Op:{label}]"
            raise InvalidArgumentError(
                message(summary, received=f"code points {list(codes)[:8]}", fix="errors='replace' or errors='ignore'")
            )
        shown = [replacement if code is None else code for code in good if code is not None or errors == "replace"]
        return _encoded(shown, target)

    if is_ragged(value):
        if is_ragged(value.values):
            return value.with_values(encode(value.values, encoding, errors, replacement))
        flat, splits = np.asarray(value.flat_values).tolist(), np.asarray(value.row_splits)
        rows = [flat[a:b] for a, b in itertools.pairwise(splits)]
        return string_tensor([text(row) for row in rows], (len(rows),))
    array = convert_to_tensor(value)._host()
    if not array.ndim:
        summary = "input_tensor must have a rank of at least 1."
        raise ValueError(message(summary, received="shape ()", expected="code points of shape (…, characters)"))
    rows = array.reshape(int(np.prod(array.shape[:-1], dtype=np.int64)), array.shape[-1]).tolist()
    return string_tensor([text(row) for row in rows], array.shape[:-1])
