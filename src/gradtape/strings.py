"""`tf.strings`: TensorFlow's names and arguments for strings."""

from __future__ import annotations

from typing import Any

from gradtape.ops import hashing, text, unicode
from gradtape.ops.unicode import Decoder
from gradtape.scope import missing
from gradtape.values.dtypes import float32
from gradtape.values.tensor import Tensor

__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join", "regex_full_match",
    "regex_replace", "split", "strip", "substr", "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number", "unicode_decode",
    "unicode_decode_with_offsets", "unicode_encode", "unicode_split", "unicode_split_with_offsets", "unicode_transcode",
    "upper",
]  # fmt: skip


def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Lower case; letters beyond ASCII change only with ``encoding="utf-8"``.

    >>> tf.strings.lower("Ab").numpy()
    b'ab'
    """
    return text.changed_case(input, "lower", encoding)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Upper case; letters beyond ASCII change only with ``encoding="utf-8"``."""
    return text.changed_case(input, "upper", encoding)


def strip(input: Any, name: str | None = None) -> Any:
    """Without blanks at both ends."""
    return text.strip(input)


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """The number of bytes, or with ``unit="UTF8_CHAR"`` of characters, as int32."""
    return text.length(input, unit)


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """``len`` bytes or characters from ``pos`` on; arguments broadcast."""
    return text.substring(input, pos, len, unit)


def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None) -> Any:
    r"""Matches of a pattern replaced; ``\1`` in ``rewrite`` is the first group.

    >>> tf.strings.regex_replace("a1b22", r"(\d+)", r"<\1>").numpy()
    b'a<1>b<22>'
    """
    return text.replace(input, pattern, rewrite, replace_global)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Whether a pattern matches the whole string."""
    return text.matches(input, pattern)


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts between separators (default: runs of blanks): a ragged tensor, or a vector for a scalar.

    >>> tf.strings.split("a b  c").numpy().tolist()
    [b'a', b'b', b'c']
    """
    return text.split(input, sep, maxsplit)


def bytes_split(input: Any, name: str | None = None) -> Any:
    """The single bytes of each string."""
    return text.bytes_split(input)


def join(inputs: Any, separator: str = "", name: str | None = None) -> Any:
    """Corresponding strings of several tensors joined; scalars go with any shape."""
    return text.join(list(inputs), separator)


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Tensor:
    """Strings joined along axes; all of them by default."""
    return text.reduce_join(inputs, axis, keepdims, separator)


def to_number(input: Any, out_type: Any = float32, name: str | None = None) -> Any:
    """The numbers that strings spell.

    >>> tf.strings.to_number(["1.5", "-2"]).numpy()
    array([ 1.5, -2. ], dtype=float32)
    """
    return text.numbers(input, out_type)


def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False, width: int = -1, fill: str = "",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The texts of numbers and booleans, in the manner of C's printf.

    >>> tf.strings.as_string([1.5, 2.0], precision=2).numpy().tolist()
    [b'1.50', b'2.00']
    """
    return text.from_numbers(input, precision, scientific, shortest, width, fill)


def format(template: str, inputs: Any = (), placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Tensor:
    """The template with tensors in the place of its placeholders.

    >>> tf.strings.format("loss {} at {}", (0.5, tf.constant([1, 2]))).numpy()
    b'loss 0.5 at [1 2]'
    """
    values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    return text.formatted(template, values, placeholder, summarize)


def ngrams(
    data: Any, ngram_width: Any, separator: str = " ", pad_values: Any = None, padding_width: int | None = None,
    preserve_short_sequences: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Neighbouring strings of the last axis joined, ``ngram_width`` at a time."""
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    pad = (pad_values, pad_values) if isinstance(pad_values, str) else pad_values
    return text.ngrams(data, widths, separator, pad, padding_width, preserve_short_sequences)


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """A bucket number below ``num_buckets`` for each string: its FarmHash fingerprint modulo that number."""
    return hashing.buckets(input, num_buckets)


def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """A bucket number below ``num_buckets`` for each string, by SipHash under a key of two integers.

    >>> tf.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).numpy()
    array([2, 0])
    """
    return hashing.keyed_buckets(input, num_buckets, key)


def unicode_decode(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The code points of each string: a ragged tensor, or a vector for a scalar.

    >>> tf.strings.unicode_decode("aé", "UTF-8").numpy()
    array([ 97, 233], dtype=int32)
    """
    decoder = Decoder(input_encoding, errors, replacement_char, replace_control_characters, "UnicodeDecode")
    return unicode.decode(input, decoder)


def unicode_decode_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The code points of each string, and the positions of their first bytes."""
    decoder = Decoder(input_encoding, errors, replacement_char, replace_control_characters, "UnicodeDecodeWithOffsets")
    return unicode.decode(input, decoder), unicode.offsets(input, decoder)


def unicode_split(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """The characters of each string."""
    return unicode.characters(input, Decoder(input_encoding, errors, replacement_char, False, "UnicodeDecode"))


def unicode_split_with_offsets(
    input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> tuple[Any, Any]:
    """The characters of each string, and the positions of their first bytes."""
    decoder = Decoder(input_encoding, errors, replacement_char, False, "UnicodeDecodeWithOffsets")
    return unicode.characters(input, decoder), unicode.offsets(input, decoder)


def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """The strings that code points along the last axis spell."""
    return unicode.encode(input, output_encoding, errors, replacement_char)


def unicode_transcode(
    input: Any, input_encoding: str, output_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Strings in another encoding."""
    decoder = Decoder(input_encoding, errors, replacement_char, replace_control_characters, "UnicodeTranscode")
    return unicode.transcode(input, decoder, output_encoding)


__getattr__ = missing(__name__, __all__)
