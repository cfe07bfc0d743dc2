"""Where in the user's code we were called from: for warnings that are given once per place, and for tapes that tell."""

from __future__ import annotations

import importlib.util
import linecache
import logging
import os
import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any, NamedTuple

logger = logging.getLogger("gradtape")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_counts: Counter = Counter()


class Place(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The source of the line, without its indentation; empty where there is none to read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


USER: set[str] = set()
"""The files met so far that are the user's: not ours, Keras's or NumPy's, nor those that run threads and decorators."""

_LIBRARY: list[str] = []


def _is_library(file: str) -> bool:
    if not _LIBRARY:
        found = [importlib.util.find_spec(name) for name in ("keras", "numpy", "contextlib", "functools", "threading")]
        origins = [spec.origin for spec in found if spec is not None and spec.origin]
        _LIBRARY.append(_PACKAGE)
        _LIBRARY.extend(os.path.dirname(o) + os.sep if o.endswith("__init__.py") else o for o in origins)
    if not file.startswith(tuple(_LIBRARY)):
        USER.add(file)
    return file not in USER


def user_frame(frame: FrameType) -> FrameType:
    """The innermost frame, from this one outwards, that is the user's."""
    while frame.f_back is not None and frame.f_code.co_filename not in USER and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def site(depth: int = 1) -> tuple[CodeType, int]:
    """The innermost place outside our code, as code and instruction: to find the line from them can wait. See `place_of`."""
    frame = user_frame(sys._getframe(depth))
    return frame.f_code, frame.f_lasti


def place_of(code: CodeType, instruction: int) -> Place:
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end and line is not None)
    return Place(code.co_filename, next(lines, code.co_firstlineno), code.co_qualname)


class Listening:
    """A recorder that is told when it has more records than its ``limit``, and where the user's code then was."""

    code: CodeType | None = None  # the user's code that was met last: mostly it is met again

    def moved(self, frame: FrameType) -> tuple[FrameType, CodeType]:
        """The frame of the user's code, from a frame that need not be."""
        frame = user_frame(frame)
        self.code = frame.f_code
        return frame, frame.f_code

    def grown(self, note: tuple) -> None:
        """Called beyond the limit with ``(out, first input, second input, code, instruction)``."""


def report_growth(recorder: Any, out: Any, inputs: Any) -> None:
    """Tell a recorder that it has one record more than its limit. The most frequent kind of op does this in place."""
    recorder.grown((out, inputs, MANY, *site(2)))


MANY = object()
"""Stands in a note for the second input, where the first is the sequence of them all."""


def user_site() -> tuple[str, int]:
    """File and line of the nearest frame that is not ours."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def warn_at_site(text: str, times: int = 1) -> None:
    """Log a warning, at most ``times`` times for each place in the user's code."""
    site = (*user_site(), text[:40])
    _counts[site] += 1
    if _counts[site] <= times:
        logger.warning("%s (at %s:%d)", text, site[0], site[1])
