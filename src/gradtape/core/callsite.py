"""Where in the user's code we were called from: for warnings that are given once per place."""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter

logger = logging.getLogger("gradtape")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_counts: Counter = Counter()


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
