"""What a monitor saw, as CSV, as a picture, and as events for TensorBoard."""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING, Any

from gradtape.errors import message

if TYPE_CHECKING:
    from gradtape.inspect.monitor import Row

_COLUMNS = "step kind name shape norm update_norm value_norm mean deviation low high zeros nans infinities histogram".split()
_LEGEND = 40  # names that there is room for


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
    figure = Figure(figsize=(11, 8), dpi=100, layout="constrained")
    axes: Any = figure.subplot_mosaic("AD;BD;CD", width_ratios=[1.25, 1])
    for i, found in enumerate(history.values()):
        style = {"color": colormaps["viridis"](i / max(1, len(history) - 1) * 0.9), "lw": 1.4}
        style["marker"] = "o" if len(found) == 1 else None
        steps = [row.step for row in found]
        axes["A"].plot(steps, [row.norm or None for row in found], **style)
        axes["B"].plot(steps, [_relative(row) for row in found], **style)
        axes["C"].plot(steps, [row.gradient.zeros if row.gradient else None for row in found], **style)
        bad = [row.step for row in found if row.gradient is not None and row.gradient.nonfinite]
        axes["C"].plot(bad, [1.04] * len(bad), "x", color="#d13438")
        _ridge(axes["D"], found[-1], i, style["color"])
    _finish(axes, list(history))
    FigureCanvasAgg(figure).print_png(os.fspath(path))


_TITLES = {
    "A": "norm of the gradient",
    "B": "update ÷ value",
    "C": "fraction of zeros (×: not finite)",
    "D": "latest gradient, from low to high",
}


def _finish(axes: dict[str, Any], names: list[str]) -> None:
    for name, ax in axes.items():
        ax.set_title(_TITLES[name], loc="left", fontsize=10)
        ax.tick_params(labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    for name in "ABC":
        axes[name].grid(alpha=0.25)
    for name in "AB":
        if any(y for line in axes[name].lines for y in line.get_ydata()):
            axes[name].set_yscale("log")
    axes["C"].set_ylim(-0.03, 1.1)
    axes["C"].set_xlabel("step", fontsize=9)
    ridge = axes["D"]
    ridge.set_xticks([])
    step = max(1, len(names) // _LEGEND)
    ridge.set_yticks([-i for i in range(0, len(names), step)])
    ridge.set_yticklabels([name[-28:] for name in names[::step]], fontsize=7, va="bottom", parse_math=False)
    ridge.tick_params(length=0)
    ridge.spines["left"].set_visible(False)


def _relative(row: Row) -> float | None:
    return row.update_norm / row.value_norm if row.update_norm and row.value_norm else None


def _ridge(ax: Any, row: Row, i: int, colour: Any) -> None:
    """A histogram, above those before."""
    counts = row.gradient.counts if row.gradient is not None else ()
    if len(counts) > 1:
        places = [k / len(counts) for k in range(len(counts))]
        heights = [0.9 * n / max(counts) for n in counts]
        ax.bar(places, heights, 1 / len(counts), bottom=-i, align="edge", color=colour, alpha=0.75, lw=0)
    ax.plot([0, 1], [-i, -i], color=colour, lw=0.8)


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
