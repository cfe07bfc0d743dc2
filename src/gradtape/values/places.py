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


_USER: set[str] = set()  # the files met so far that are the user's
_OURS: set[str] = set()  # and those that are ours, Keras's or NumPy's, or that run threads and decorators
_LIBRARIES: list[str] = []


def is_ours(file: str) -> bool:
    """Whether the lines of a file say nothing to the user."""
    if not _LIBRARIES:
        found = [importlib.util.find_spec(name) for name in ("keras", "numpy", "contextlib", "functools", "threading")]
        origins = [spec.origin for spec in found if spec is not None and spec.origin]
        _LIBRARIES.append(_PACKAGE)
        _LIBRARIES.extend(os.path.dirname(o) + os.sep if o.endswith("__init__.py") else o for o in origins)
    (_OURS if file.startswith(tuple(_LIBRARIES)) else _USER).add(file)
    return file in _OURS


def user_frame(frame: FrameType) -> FrameType:
    """The innermost frame, from this one outwards, that is the user's."""
    while (file := frame.f_code.co_filename) not in _USER and (file in _OURS or is_ours(file)):
        outer = frame.f_back
        if outer is None:
            break
        frame = outer
    return frame


def site(depth: int = 1) -> tuple[CodeType, int]:
    """The innermost place outside our code, as code and instruction: to find the line from them can wait. See `place_of`."""
    frame = user_frame(sys._getframe(depth))
    return frame.f_code, frame.f_lasti


def place_of(code: CodeType, instruction: int) -> Place:
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end and line is not None)
    return Place(code.co_filename, next(lines, code.co_firstlineno), code.co_qualname)
