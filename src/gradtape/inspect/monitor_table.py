"""The monitor's table, and how it stays in place on a terminal."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradtape.inspect.monitor import Row

_BARS = "▁▂▃▄▅▆▇█"
_HEAD = ("variable", "gradient", "update", "÷ value", "zeros", "not finite", "gradient over time")
_SECONDS = 0.1  # between two drawings


History = dict[str, deque["Row"]]
"""The latest rows of every variable."""

WIDTH = 24
"""Of those so many are shown as bars."""


def table(history: History, height: int | None = None) -> str:
    """The latest state of every variable, and the course of its gradient's norm."""
    lines = [_HEAD, *(_line(found) for found in history.values())]
    if height is not None and len(lines) > height:
        lines = [*lines[: height - 1], (f"… {len(lines) - height + 1} more", *[""] * 6)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    step = max((found[-1].step for found in history.values()), default=0)
    body = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
    return "\n".join([f"step {step}", *body])


def _aligned(line: tuple, widths: list[int]) -> list[str]:
    last = len(widths) - 1
    return [text.ljust(width) if i in (0, last) else text.rjust(width) for i, (text, width) in enumerate(zip(line, widths))]


def _line(found: deque[Row]) -> tuple[str, ...]:
    row = found[-1]
    name = row.name if len(row.name) <= 36 else row.name[:35] + "…"
    relative = row.update_norm / row.value_norm if row.update_norm is not None and row.value_norm else None
    zeros = f"{row.gradient.zeros:.0%}" if row.gradient is not None else "–"
    bad = str(row.gradient.nonfinite or "–") if row.gradient is not None else "–"
    return name, _number(row.norm), _number(row.update_norm), _number(relative), zeros, bad, sparkline([r.norm for r in found])


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:.3g}"


def sparkline(values: list[float | None]) -> str:
    """Values as bars of eight heights, on a logarithmic scale if they span more than a decade."""
    known = [v for v in values if v is not None]
    if not known:
        return ""
    positive = [v for v in known if v > 0]
    if positive and max(positive) > 10 * min(positive):
        known = [math.log(v) if v > 0 else math.log(min(positive)) for v in known]
    low, high = min(known), max(known)
    return "".join(_BARS[round(7 * (v - low) / (high - low))] if high > low else _BARS[3] for v in known)


class Live:
    """Draws the table over the one before, on a terminal; elsewhere, if asked to, it prints one after the other."""

    def __init__(self, wanted: bool | None) -> None:
        self._stream: Any = sys.stderr
        self._in_place = bool(getattr(self._stream, "isatty", bool)())
        self._on = self._in_place if wanted is None else wanted
        self._height = 0
        self._drawn = 0.0
        self._latest: History = {}

    def show(self, history: History) -> None:
        self._latest = history
        if self._on and time.monotonic() - self._drawn >= _SECONDS:
            self._draw()

    def _draw(self) -> None:
        text = table(self._latest, max(4, shutil.get_terminal_size().lines - 3) if self._in_place else None)
        if self._in_place:
            columns = shutil.get_terminal_size().columns
            text = "\n".join(line[: columns - 1] + "\x1b[K" for line in text.split("\n"))
            if self._height:
                text = f"\x1b[{self._height}A\r{text}"
            self._height = text.count("\n") + 1
        self._stream.write(text + "\n")
        self._stream.flush()
        self._drawn = time.monotonic()

    def close(self) -> None:
        """Bring the table up to date."""
        if self._on and self._latest:
            self._draw()
        self._height = 0
