"""Places in the user's code: the innermost line outside the library that led here."""

from __future__ import annotations

import importlib.util
import linecache
import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


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
