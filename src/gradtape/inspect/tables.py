"""Text tables and sizes, as reports print them."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] = ()) -> str:
    """Columns under their heads; those in ``left`` begin at the left, the others end at the right."""
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(head)]

    def line(cells: Sequence[str]) -> str:
        parts = [c.ljust(w) if name in left else c.rjust(w) for c, w, name in zip(cells, widths, head)]
        return "  ".join(parts).rstrip()

    return "\n".join([line(head), line(["-" * w for w in widths]), *map(line, rows)])


def size(count: float) -> str:
    """A number of bytes for people."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024 or unit == "GiB":
            break
    return f"{count:.1f} {unit}"


def duration(seconds: float | None) -> str:
    """A time for people."""
    if seconds is None:
        return ""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            break
    return f"{seconds * factor:.3g} {unit}"
