"""Redraws figures 6 to 11 of the FFP paper from results; and what a change costs, and memory over a long stream.

``python -m benchmarks.papers.ffp figures [results.json]`` writes an SVG and a PNG of each next to this file; without an argument
it takes the files of the newest day in ``recorded``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.papers.core.figures import STYLE

__all__ = ["draw"]

COLORS = {"hwm": "#9aa5b1", "probing": "#c4562b", "hybrid": "#1b5e9e"}
LABELS = {"hwm": "high-water mark", "probing": "probing", "hybrid": "hybrid"}
#: Where lines lie on each other, each can be seen.
STYLES = {"hwm": ("-", "s", 5), "probing": ("--", "o", 5), "hybrid": ("-", "o", 3)}

Rows = list[dict[str, Any]]

DISORDER = "punctuations that every 100th event is early by"
LULL = "likelihood of a lull"

#: What figures of the three kinds of speculation show: experiment, title, value, axes, whether the values' axis is logarithmic.
FIGURES: dict[str, tuple[str, str, str, str, str, bool]] = {
    "figure6": ("disorder", "Figure 6. Disorder and state", "held", DISORDER, "rows in the loop's joins", False),
    "figure7": (
        "inactivity",
        "Figure 7. Inactivity and speculative punctuations",
        "speculative",
        "steps between pushes of 100 events",
        "speculative punctuations",
        True,
    ),
    "figure8": ("disorder", "Figure 8. Disorder and output", "definite", DISORDER, "definite punctuations", False),
    "figure9": (
        "lulls",
        "Figure 9. Lulls and speculative punctuations",
        "speculative",
        LULL,
        "speculative punctuations",
        True,
    ),
    "figure10": ("disorder", "Figure 10. Disorder and lag", "lag", DISORDER, "average lag, events", False),
    "figure11": ("lulls", "Figure 11. Lulls and unresponsiveness", "longest", LULL, "longest silence, steps", False),
}


def draw(rows: Rows, folder: Path) -> None:
    """All figures that there are rows for into a folder, as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        for name, (experiment, title, value, along, label, log) in FIGURES.items():
            here = [row for row in rows if row["experiment"] == experiment]
            if here:
                _save(
                    folder / name,
                    title,
                    lambda axes, v=value, a=along, w=label, g=log, h=here: _modes(axes, h, v, a, w, g),
                )
        for name, title, make in (
            ("cost", "A change in graphs of growing size", _cost),
            ("memory", "Memory over a long stream, a punctuation every 1,000 events", _memory),
        ):
            here = [row for row in rows if row["experiment"] == name]
            if here:
                _save(folder / name, title, lambda axes, m=make, h=here: m(axes, h))


def _save(path: Path, title: str, make: Callable[[Axes], None]) -> None:
    figure, axes = plt.subplots(figsize=(5.4, 3.6))
    make(axes)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7)
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=120)
    plt.close(figure)


def _modes(axes: Axes, rows: Rows, value: str, along: str, label: str, log: bool) -> None:
    """A line for each kind of speculation."""
    for side, color in COLORS.items():
        points = [(row["x"], row["extra"][value]) for row in rows if row["side"] == side]
        if points:
            line, marker, size = STYLES[side]
            xs, ys = zip(*points, strict=True)
            axes.plot(xs, ys, line, marker=marker, ms=size, color=color, label=LABELS[side])
    if value == "lag":
        bound = rows[0]["extra"]["span"] / 2
        axes.axhline(bound, color="#3a8f6b", ls=":", label="d/2, the least that can be")
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(along)
    axes.set_ylabel(label)
    axes.set_title("W, window of 30 events")


def _cost(axes: Axes, rows: Rows) -> None:
    points = [(row["x"], 1e6 * min(row["seconds"]) / row["events"]) for row in rows]
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, marker="o", ms=4, color=COLORS["hybrid"])
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("links of the graph")
    axes.set_ylabel("µs for a change")
    axes.set_title("reachability, ten pairs come or go with each change")


def _memory(axes: Axes, rows: Rows) -> None:
    for row in rows:
        seen = row["extra"]["bytes"]
        axes.plot([one[0] / 1e6 for one in seen], [one[1] / 2**20 for one in seen], color="#1b5e9e")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("million events")
    axes.set_ylabel("MiB, all arrays")
    axes.set_title("W, window of 30 events")
