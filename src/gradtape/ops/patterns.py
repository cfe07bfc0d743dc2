"""Regular expressions in RE2's syntax, which TensorFlow uses, on Python's engine.

Classes such as ``\\d`` and ``\\w`` mean ASCII, ``$`` is the end of the text alone, ``[[:alpha:]]``, ``\\p{L}`` and ``\\Q…\\E``
are understood. Python's engine takes some patterns that RE2 refuses (look-ahead, back-references); they work here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gradtape.errors import InvalidArgumentError, message
from gradtape.values.convert import convert_to_tensor

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z",
    "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\(?P<property>[pP])(?:\{(?P<category>\^?\w+)\}|(?P<letter>\w))|\\(?P<escaped>.)"
    r"|\[:(?P<not>\^?)(?P<posix>\w+):\]|(?P<open>\[\^?\]?)|(?P<close>\])|(?P<end>\$)|(?P<multiline>\(\?[a-z]*m[a-z]*[:)])",
    re.DOTALL,
)


@lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> re.Pattern:
    text = pattern.decode("utf-8", "surrogateescape")
    try:
        return re.compile(_translated(text), re.ASCII)
    except (re.error, KeyError) as error:
        raise InvalidArgumentError(
            message(f"Invalid pattern: {text}, error: {error}", fix="RE2's syntax: https://github.com/google/re2/wiki/Syntax")
        ) from None


def compiled(pattern: Any) -> re.Pattern:
    """A pattern for Python's engine from a string, bytes or a scalar string tensor in RE2's syntax."""
    array: Any = convert_to_tensor(pattern)._host()
    if array.ndim:
        text = f"Pattern must be scalar, but received {list(array.shape)}"
        raise InvalidArgumentError(message(text, received=f"a pattern of shape {array.shape}", expected="one string"))
    return _compiled(array[()])


def _translated(text: str) -> str:
    inside = multiline = False
    parts, position = [], 0
    for token in _TOKEN.finditer(text):
        parts.append(text[position : token.start()])
        position = token.end()
        whole = token[0]
        if token["quoted"] is not None:
            whole = re.escape(token["quoted"])
        elif token["property"]:
            whole = _property(token["category"] or token["letter"], token["property"] == "P", inside)
        elif token["escaped"] == "z":
            whole = r"\Z"
        elif token["posix"] and inside:
            whole = _negated(_POSIX[token["posix"]]) if token["not"] else _POSIX[token["posix"]]
        elif token["open"]:
            whole = token["open"] if not inside else token["open"].replace("[", r"\[", 1)
            inside = True
        elif token["close"]:
            inside = False
        elif token["multiline"]:
            multiline = True
        elif token["end"] and not inside and not multiline:
            whole = r"\Z"  # Python's $ matches before a final line break too
        parts.append(whole)
    return "".join(parts) + text[position:]


def _negated(ranges: str) -> str:
    """The complement of a class of ASCII characters, as ranges for the inside of a class."""
    member = re.compile(f"[{ranges}]")
    return _ranges([code for code in range(128) if not member.match(chr(code))]) + rf"\x80-{chr(sys.maxunicode)}"


def _property(category: str, negative: bool, inside: bool) -> str:
    ranges = _category(category.lstrip("^"), negative != category.startswith("^"))
    return ranges if inside else f"[{ranges}]"


@lru_cache(maxsize=32)
def _category(name: str, negative: bool) -> str:
    """Characters of a general category (L, Lu, P, …) as ranges."""
    import unicodedata

    if not re.fullmatch("[LMNPSZC][a-z]?", name):
        raise re.error(f"invalid character class range: \\p{{{name}}} is not a general category; scripts are not known here")
    codes = range(sys.maxunicode + 1)
    return _ranges([code for code in codes if unicodedata.category(chr(code)).startswith(name) != negative])


def _ranges(codes: list[int]) -> str:
    """Sorted code points as the inside of a character class."""
    parts, start = [], 0
    for n in range(1, len(codes) + 1):
        if n == len(codes) or codes[n] != codes[n - 1] + 1:
            parts.append(f"{re.escape(chr(codes[start]))}-{re.escape(chr(codes[n - 1]))}")
            start = n
    return "".join(parts)


def rewriter(rewrite: Any) -> Callable[[re.Match], str]:
    """The replacement for a match: ``\\0`` to ``\\9`` are groups, ``\\\\`` is a backslash."""
    array: Any = convert_to_tensor(rewrite)._host()
    if array.ndim:
        summary = f"Rewrite must be scalar, but received {list(array.shape)}"
        raise InvalidArgumentError(message(summary, received=f"a rewrite of shape {array.shape}", expected="one string"))
    text = array[()].decode("utf-8", "surrogateescape")

    def new(match: re.Match) -> str:
        return re.sub(r"\\(\d|\\)", lambda token: "\\" if token[1] == "\\" else match[int(token[1])] or "", text)

    groups = [int(n) for n in re.findall(r"\\(\d)", text.replace("\\\\", ""))]
    if re.search(r"\\(?!\d)", text.replace("\\\\", "")):
        raise InvalidArgumentError(
            message(f"Invalid rewrite pattern: {text}", expected="a digit or a backslash after a backslash", fix=r"\\ for one")
        )

    def checked(match: re.Match) -> str:
        if groups and max(groups) > match.re.groups:
            raise InvalidArgumentError(
                message(
                    f"Invalid rewrite pattern: {text}: it names group {max(groups)} of {match.re.groups}",
                    received=f"{text!r} for a pattern of {match.re.groups} groups",
                    fix="put the parts to keep into parentheses in the pattern",
                )
            )
        return new(match)

    return checked
