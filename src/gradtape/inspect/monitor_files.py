"""What a monitor saw, as CSV, as a picture, and as events for TensorBoard."""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING, Any

from gradtape.errors import message

if TYPE_CHECKING:
    from gradtape.inspect.monitor import Row

_COLUMNS = "step kind name shape norm update_norm value_norm mean deviation low high zeros nans infinities histogram".split()
_LEGEND = 10  # names that a legend has room for


def to_csv(rows: list[Row], path: Any) -> None:
    """One line per row; shape and histogram are numbers with spaces between."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for row in rows:
            s = row.gradient
            seen = ("",) * 8 if s is None else (
                s.mean, s.deviation, s.low, s.high, s.zeros, s.nans, s.infinities, " ".join(map(str, s.counts)),
            )  # fmt: skip
            shape = " ".join(map(str, row.shape))
            writer.writerow((row.step, row.kind, row.name, shape, row.norm, row.update_norm, row.value_norm, *seen))


def to_png(rows: list[Row], path: Any) -> None:
    """Norms and relative updates over the steps, zeros and non-finite values, and the latest histograms."""
    try:
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(message("Pictures need matplotlib.", received=repr(path), fix="pip install matplotlib")) from None
    history: dict[str, list[Row]] = {}
    for row in rows:
        history.setdefault(row.name, []).append(row)
    figure = Figure(figsize=(11, 7), dpi=110, layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for i, (name, found) in enumerate(history.items()):
        colour = colormaps["viridis"](i / max(1, len(history) - 1) * 0.9)
        label = None if i >= _LEGEND else name[:40].replace("$", r"\$").lstrip("_")
        steps = [row.step for row in found]
        style = {"color": colour, "lw": 1.4, "marker": "o" if len(found) == 1 else None}
        axes[0].plot(steps, [row.norm if row.norm else None for row in found], label=label, **style)
        axes[1].plot(steps, [_relative(row) for row in found], **style)
        axes[2].plot(steps, [row.gradient.zeros if row.gradient else None for row in found], **style)
        bad = [row.step for row in found if row.gradient is not None and row.gradient.nonfinite]
        axes[2].plot(bad, [1.02] * len(bad), "x", color="#d13438")
        _ridge(axes[3], found[-1], i, colour)
    titles = (
        "norm of the gradient",
        "update ÷ value",
        "fraction of zeros (×: not finite)",
        "latest gradient, between low and high",
    )
    for ax, title in zip(axes, titles):
        ax.set_title(title, loc="left", fontsize=10)
        ax.grid(alpha=0.25)
    for ax in axes[:2]:
        if any(len(line.get_ydata()) and any(y for y in line.get_ydata()) for line in ax.lines):
            ax.set_yscale("log")
    axes[2].set_ylim(-0.02, 1.06)
    axes[3].set_yticks([])
    if history:
        axes[0].legend(fontsize=7, loc="best", frameon=False)
    FigureCanvasAgg(figure).print_png(os.fspath(path))


def _relative(row: Row) -> float | None:
    return row.update_norm / row.value_norm if row.update_norm and row.value_norm else None


def _ridge(ax: Any, row: Row, i: int, colour: Any) -> None:
    """A histogram, above those before."""
    counts = row.gradient.counts if row.gradient is not None else ()
    if len(counts) > 1:
        places = [k / (len(counts) - 1) for k in range(len(counts))]
        heights = [-i + 0.9 * n / max(counts) for n in counts]
        ax.fill_between(places, -i, heights, color=colour, alpha=0.6, lw=0, step="mid")


class Events:
    """A writer of event files, through `gradtape.summary`."""

    def __init__(self, folder: Any) -> None:
        from gradtape import summary

        self._summary = summary
        self._writer = summary.create_file_writer(os.fspath(folder))

    def write(self, row: Row, gradient: Any) -> None:
        """The numbers of a row, and the histogram of the values behind it."""
        from gradtape.inspect.statistics import numbers

        with self._writer.as_default():
            for name, value in (("norm", row.norm), ("update_norm", row.update_norm), ("value_norm", row.value_norm)):
                if value is not None:
                    self._summary.scalar(f"{row.kind}/{name}/{row.name}", value, step=row.step)
            if row.gradient is not None:
                self._summary.scalar(f"{row.kind}/zeros/{row.name}", row.gradient.zeros, step=row.step)
                self._summary.scalar(f"{row.kind}/nonfinite/{row.name}", row.gradient.nonfinite, step=row.step)
                self._summary.histogram(f"{row.kind}/values/{row.name}", numbers(gradient), step=row.step)

    def flush(self) -> None:
        self._writer.flush()
