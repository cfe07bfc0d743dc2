"""Where in the user's code we were called from: for warnings that are given once per place, and for tapes that tell."""

from __future__ import annotations

import logging
from collections import Counter
from types import CodeType, FrameType
from typing import Any

from gradtape.values.places import Place, place_of, site, user_frame

__all__ = [
    "MANY", "Listening", "Place", "logger", "place_of", "report_growth", "site", "user_frame", "warn_at_site",
]  # fmt: skip

logger = logging.getLogger("gradtape")
_counts: Counter = Counter()


class Listening:
    """A recorder that is told when it has more records than its ``limit``, and where the user's code then was."""

    code: CodeType | None = None  # the user's code that was met last: mostly it is met again
    line: Any = None  # what to call instead of ``grown``, with the key of what was made, if that is enough

    def moved(self, frame: FrameType) -> tuple[FrameType, CodeType]:
        """The frame of the user's code, from a frame that need not be."""
        frame = user_frame(frame)
        self.code = frame.f_code
        return frame, frame.f_code

    def grown(self, note: tuple) -> None:
        """Called beyond the limit with ``(out, first input, second input, code, instruction)``, or with its key alone."""


def report_growth(recorder: Any, out: Any, inputs: Any) -> None:
    """Tell a recorder that it has one record more than its limit. The most frequent kind of op does this in place."""
    where = site(2)
    if recorder.line is not None:
        recorder.line((tuple(o._key for o in out) if type(out) is tuple else out._key, *where))
    else:
        recorder.grown((out, inputs, MANY, *where))


MANY = object()
"""Stands in a note for the second input, where the first is the sequence of them all."""


def warn_at_site(text: str, times: int = 1) -> None:
    """Log a warning, at most ``times`` times for each place in the user's code."""
    place = place_of(*site())
    told = place.file, place.line, text[:40]
    _counts[told] += 1
    if _counts[told] <= times:
        logger.warning("%s (at %s:%d)", text, place.file, place.line)
