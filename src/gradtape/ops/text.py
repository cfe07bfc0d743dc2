"""Strings: tensors of bytes, worked on element by element in Python. Nothing here is differentiable."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.errors import InvalidArgumentError, OutOfRangeError, dims, message
from gradtape.ops import printing
from gradtape.ops.arguments import axes
from gradtape.ops.cutting import cutting
from gradtape.ops.patterns import compiled, rewriter
from gradtape.values import dtypes
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

_OBJECT = np.dtype(object)


def texts(value: Any, label: str) -> Any:
    """A string tensor's array of bytes objects."""
    tensor = convert_to_tensor(value, None if isinstance(value, (Tensor, Convertible)) else dtypes.string)
    array = tensor._host()
    if array.dtype != _OBJECT:
        raise InvalidArgumentError(
            message(
                f"cannot compute {label} as input #0(zero-based) was expected to be a string tensor but is a "
                f"{tensor.dtype.word} tensor [Op:{label}]",
                fix="tf.strings.as_string makes strings of numbers",
            )
        )
    return array


def string_array(parts: Sequence[bytes], shape: tuple[int, ...]) -> np.ndarray:
    """An array of bytes objects; NumPy's own conversion would cut zeros off their ends."""
    array = np.empty(len(parts), object)
    array[:] = parts
    return array.reshape(shape)


def string_tensor(parts: Sequence[bytes], shape: tuple[int, ...]) -> Tensor:
    return wrap(string_array(parts, shape))


def is_ragged(value: Any) -> bool:
    return hasattr(value, "with_flat_values")


def each(function: Callable[[bytes], Any], value: Any, label: str, dtype: Any = None) -> Any:
    """The function of every string: strings again, or numbers of a dtype."""
    if is_ragged(value):
        return value.with_flat_values(each(function, value.flat_values, label, dtype))
    array = texts(value, label)
    results = [function(text) for text in array.ravel()]
    if dtype is None:
        return string_tensor(results, array.shape)
    return wrap(np.array(results, dtype).reshape(array.shape))


def ragged_rows(values: Tensor, lengths: Sequence[int], shape: tuple[int, ...]) -> Any:
    """One row of ``values`` for each element of an array of this shape; a plain tensor for a scalar."""
    if not shape:
        return values
    from gradtape.ops.ragged import RaggedTensor

    rows = RaggedTensor.from_row_lengths(values, np.asarray(lengths, np.int64))
    for axis in range(len(shape) - 1, 0, -1):
        count = int(np.prod(shape[:axis], dtype=np.int64))
        rows = RaggedTensor.from_row_lengths(rows, np.full(count, shape[axis], np.int64))
    return rows


def ragged_each(function: Callable[[bytes], Sequence], value: Any, label: str, dtype: Any = None) -> Any:
    """The function gives several strings, or numbers of a dtype, for every string."""
    if is_ragged(value):
        return value.with_flat_values(ragged_each(function, value.flat_values, label, dtype))
    array = texts(value, label)
    rows = [function(text) for text in array.ravel()]
    flat = [part for row in rows for part in row]
    values = string_tensor(flat, (len(flat),)) if dtype is None else wrap(np.array(flat, dtype))
    return ragged_rows(values, [len(row) for row in rows], array.shape)


# Case, blanks, length, parts


def changed_case(value: Any, method: str, encoding: str) -> Any:
    """``method`` is "lower" or "upper"; without an encoding only ASCII letters change."""
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(
            message(f"only utf-8 or '' (no encoding) is supported, received {encoding}", fix="encoding='utf-8'")
        )
    label = "String" + method.capitalize()
    if not encoding:
        return each(lambda text: getattr(text, method)(), value, label)
    return each(lambda text: getattr(text.decode("utf-8", "replace"), method)().encode(), value, label)


def strip(value: Any) -> Any:
    """Without ASCII blanks at both ends."""
    return each(lambda text: text.strip(b" \t\n\r\v\f"), value, "StringStrip")


def length(value: Any, unit: str) -> Any:
    """Bytes, or characters of UTF-8."""
    _check_unit(unit, "StringLength")
    count = len if unit == "BYTE" else lambda text: sum(byte & 0xC0 != 0x80 for byte in text)
    return each(count, value, "StringLength", np.int32)


def _check_unit(unit: str, label: str) -> None:
    if unit not in ("BYTE", "UTF8_CHAR"):
        text = f"Value for attr 'unit' of \"{unit}\" is not in the list of allowed values: \"BYTE\", \"UTF8_CHAR\" [Op:{label}]"
        raise InvalidArgumentError(message(text, received=f"unit={unit!r}", expected="'BYTE' or 'UTF8_CHAR'"))


def substring(value: Any, position: Any, size: Any, unit: str) -> Tensor:
    """``size`` bytes or characters from ``position``, which counts from the end where it is negative; all three broadcast."""
    _check_unit(unit, "Substr")
    array = texts(value, "Substr")
    starts, sizes = (np.asarray(convert_to_tensor(n)._host()) for n in (position, size))
    if starts.shape != sizes.shape:
        text = f"pos and len should have the same shape, got: {dims(starts.shape)} vs. {dims(sizes.shape)}"
        raise InvalidArgumentError(
            message(text, received=f"pos {starts.shape}, len {sizes.shape}", expected="one shape for both")
        )
    try:
        every = np.broadcast_arrays(array, starts, sizes)
    except ValueError:
        raise InvalidArgumentError(
            message(
                f"Incompatible shapes: {dims(array.shape)} vs. {dims(starts.shape)} [Op:Substr]",
                received=f"input {array.shape}, pos {starts.shape}",
                expected="shapes that broadcast: equal, or 1, from the last axis backwards",
            )
        ) from None
    parts = [_substring(part, start, count, unit) for part, start, count in zip(*(a.ravel().tolist() for a in every))]
    return string_tensor(parts, every[0].shape)


def _substring(text: bytes, start: int, size: int, unit: str) -> bytes:
    whole: Any = text if unit == "BYTE" else text.decode("utf-8", "surrogateescape")
    if not -len(whole) <= start <= len(whole):
        raise InvalidArgumentError(
            message(f"pos {start} out of range for string {text!r} at index 0", expected="a position inside the string")
        )
    start += len(whole) * (start < 0)
    part = whole[start : start + max(size, 0)]
    return part if unit == "BYTE" else part.encode("utf-8", "surrogateescape")


# Patterns


def replace(value: Any, pattern: Any, rewrite: Any, everywhere: bool) -> Any:
    """Matches of a regular expression replaced; ``\\1`` in ``rewrite`` stands for the first group."""
    expression, new = compiled(pattern), rewriter(rewrite)

    def replaced(text: bytes) -> bytes:
        last = -1

        def one(match: re.Match) -> str:
            nonlocal last
            if match.end() == match.start() == last:
                return ""  # RE2 finds no empty match right after another match
            last = match.end()
            return new(match)

        whole = text.decode("utf-8", "surrogateescape")
        return expression.sub(one, whole, count=0 if everywhere else 1).encode("utf-8", "surrogateescape")

    return each(replaced, value, "RegexReplace")


def matches(value: Any, pattern: Any) -> Any:
    """Whether a regular expression matches the whole string."""
    expression = compiled(pattern)
    return each(lambda text: bool(expression.fullmatch(text.decode("utf-8", "surrogateescape"))), value, "RegexFullMatch", bool)


def split(value: Any, separator: Any, most: int) -> Any:
    """The parts between separators, at most ``most`` + 1 of them; without a separator those between runs of blanks."""
    between = b"" if separator is None else texts(separator, "StringSplitV2")[()]

    def parts(text: bytes) -> list[bytes]:
        if between:
            return text.split(between, most)
        found = re.split(rb"[ \t\n\v\f\r]+", text.lstrip(b" \t\n\v\f\r"), maxsplit=max(most, 0))
        if most == 0:
            return [text.lstrip(b" \t\n\v\f\r")] if text.strip(b" \t\n\v\f\r") else []
        return found if found[-1] else found[:-1]

    return ragged_each(parts, value, "StringSplitV2")


def bytes_split(value: Any) -> Any:
    """The single bytes of every string."""
    return ragged_each(lambda text: [text[n : n + 1] for n in range(len(text))], value, "StringBytesSplit")


# Joining


def join(values: Sequence, separator: str) -> Any:
    """Corresponding strings, one after the other; scalars go with any shape."""
    between = separator.encode() if isinstance(separator, str) else separator
    if any(map(is_ragged, values)):
        template = next(v for v in values if is_ragged(v))
        return template.with_flat_values(join([v.flat_values if is_ragged(v) else v for v in values], separator))
    arrays = [texts(value, "StringJoin") for value in values]
    shapes = {array.shape: None for array in arrays if array.ndim}
    if len(shapes) > 1:
        first, second = [dims(shape) for shape in shapes][:2]
        raise InvalidArgumentError(
            message(f"Input shapes do not match: {first} vs. {second} [Op:StringJoin]", expected="equal shapes, or scalars")
        )
    every = np.broadcast_arrays(*arrays) if arrays else [string_array([b""], ())]
    parts = [between.join(row) for row in zip(*(array.ravel().tolist() for array in every))]
    return string_tensor(parts, every[0].shape)


def reduce_join(value: Any, axis: Any, keepdims: bool, separator: str) -> Tensor:
    """Strings joined along axes, first along the first axis given; all of them in reading order for None."""
    array = texts(value, "ReduceJoin")
    wanted = axes(axis)
    given = range(array.ndim)[::-1] if wanted is None else (wanted,) if isinstance(wanted, int) else wanted
    for a in given:
        if not -array.ndim <= a < array.ndim:
            raise OutOfRangeError(
                message(
                    f"Invalid reduction dimension {a} for input with {array.ndim} dimension(s) [Op:ReduceJoin]",
                    received=f"axis={axis} for shape {array.shape}",
                    expected=f"axes from {-array.ndim} to {array.ndim - 1}",
                )
            )
    order = [a % array.ndim for a in given][::-1]
    kept = [a for a in range(array.ndim) if a not in order]
    count, width = (math.prod(array.shape[a] for a in part) for part in (kept, order))
    rows = array.transpose(kept + order).reshape(count, width)
    shape = [1 if a in order else n for a, n in enumerate(array.shape) if keepdims or a in kept]
    return string_tensor([separator.encode().join(row) for row in rows], tuple(shape))


# Numbers

_FLOAT = re.compile(rb"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)\s*", re.IGNORECASE)
_INTEGER = re.compile(rb"\s*[+-]?\d+\s*")


def numbers(value: Any, dtype: Any) -> Any:
    """The numbers that strings spell."""
    kind = dtypes.as_dtype(dtype)
    if kind not in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64):
        summary = (
            f"Value for attr 'out_type' of {kind.word} is not in the list of allowed values: float, double, int32, int64 "
            "[Op:StringToNumber]"
        )
        raise InvalidArgumentError(message(summary, received=f"out_type={kind!r}", fix="out_type=tf.float32, then tf.cast"))
    form, python = (_FLOAT, float) if kind.is_floating else (_INTEGER, int)

    def number(text: bytes) -> Any:
        if form.fullmatch(text):
            found = python(text)
            if kind.is_floating or kind.min <= found <= kind.max:
                return found
        raise InvalidArgumentError(
            message(
                f"StringToNumberOp could not correctly convert string: {text.decode('utf-8', 'replace')} [Op:StringToNumber]",
                expected=f"a decimal number that fits {kind.name}",
            )
        )

    with np.errstate(over="ignore"):  # 1e99 is inf in float32
        return each(number, value, "StringToNumber", kind.numpy)


@cutting(name="as_string")
def from_numbers(value: Any, precision: int, scientific: bool, shortest: bool, width: int, fill: str) -> Any:
    """The texts of numbers, in the manner of C's printf."""
    if is_ragged(value):
        return value.with_flat_values(from_numbers(value.flat_values, precision, scientific, shortest, width, fill))
    tensor = convert_to_tensor(value)
    array = tensor._host()
    if array.dtype == _OBJECT:
        return tensor
    exact = array.dtype.kind in "iub"
    _check_form(tensor, exact, precision, scientific, shortest, fill)
    form = "d" if exact else "e" if scientific else "g" if shortest else "f"
    pattern = "%" + fill + (str(width) if width > -1 else "") + (f".{precision}" if precision > -1 else "") + form
    if array.dtype.kind == "b":
        parts = ["true" if flag else "false" for flag in array.ravel()]
    elif array.dtype.kind == "c":
        parts = [f"({pattern % z.real},{pattern % z.imag})" for z in array.ravel().tolist()]
    else:
        parts = [pattern % number for number in array.astype(object if exact else np.float64).ravel().tolist()]
    return string_tensor([part.encode() for part in parts], array.shape)


def _check_form(tensor: Tensor, exact: bool, precision: int, scientific: bool, shortest: bool, fill: str) -> None:
    name = tensor.dtype.word
    wrong = None
    if scientific and shortest:
        wrong = "Cannot select both scientific and shortest notation"
    elif len(fill) > 1:
        wrong = "Fill string must be one or fewer characters"
    elif fill not in ("", " ", "0", "+", "-"):
        wrong = f"Fill argument not supported: \"{fill}\""
    elif exact and (scientific or shortest):
        wrong = f"scientific and shortest format not supported for datatype {name}"
    elif exact and precision > -1:
        wrong = f"precision not supported for datatype {name}"
    if wrong:
        raise InvalidArgumentError(
            message(f"{wrong} [Op:AsString]", expected="scientific or shortest for floats, fill one of '', ' ', '0', '+', '-'")
        )


# Templates


def formatted(template: str, values: Sequence, placeholder: str, summarize: int) -> Tensor:
    """The template with its placeholders replaced by the tensors' values, of which a few are shown at each end."""
    pieces = template.split(placeholder)
    if len(pieces) - 1 != len(values):
        raise ValueError(
            message(
                f"The template expects {len(pieces) - 1} tensors, but the inputs only has {len(values)}. Please ensure the "
                f"number of placeholders in template matches inputs length. [Op:StringFormat]",
                received=f"{len(values)} inputs",
                expected=f"{len(pieces) - 1}, one per {placeholder!r} in the template",
            )
        )
    shown = [printing._rows(convert_to_tensor(value)._host(), summarize, 1) for value in values]
    whole = "".join(piece + text for piece, text in zip(pieces, [*shown, ""]))
    return string_tensor([whole.encode()], ())


# n-grams


def ngrams(value: Any, widths: Sequence[int], separator: str, pad: tuple[str, str] | None, padding: Any, short: bool) -> Any:
    """Neighbouring strings of each row joined, for each width in turn."""
    if is_ragged(value):
        flat = value.flat_values._host().tolist()
        splits = np.asarray(value.row_splits)
        rows, shape = [flat[a:b] for a, b in itertools.pairwise(splits)], (len(splits) - 1,)
    else:
        array = texts(value, "StringNGrams")
        rows, shape = array.reshape(-1, array.shape[-1]).tolist(), array.shape[:-1]
    made = [_row_ngrams(row, widths, separator.encode(), pad, padding, short) for row in rows]
    flat_made = [text for row in made for text in row]
    if not is_ragged(value):
        count = len(made[0]) if made else 0
        return string_tensor(flat_made, (*shape, count))
    return ragged_rows(string_tensor(flat_made, (len(flat_made),)), [len(row) for row in made], shape)


def _row_ngrams(row: list[bytes], widths: Sequence[int], between: bytes, pad: Any, padding: Any, short: bool) -> list[bytes]:
    left, right = (text.encode() for text in pad or ("", ""))

    def padded(margin: int) -> list[bytes]:
        return [left] * margin + row + [right] * margin

    made = []
    for width in widths:
        whole = padded(0 if pad is None else width - 1 if padding is None else min(padding, width - 1))
        made += [between.join(whole[n : n + width]) for n in range(len(whole) - width + 1)]
    if not made and short and row:
        made = [between.join(padded(padding or 0))]
    return made
