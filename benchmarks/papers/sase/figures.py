"""Redraws figure 8 of the SASE+ paper from results.

``python -m benchmarks.papers.sase.figures [results.json]`` writes ``figure8.svg`` and ``figure8.png`` next to this file; without
an argument it takes the newest full run of ``recorded``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.papers.core.figures import STYLE
from benchmarks.papers.sase.engines import SILENT
from benchmarks.papers.sase.suite import DEFINITIONS

__all__ = ["draw"]

FOLDER = Path(__file__).parent

FIRST = ("p1s2", "p1s3", "p2s2", "p2s3", "p3s2", "p3s3")
EVERY = ("p1s3", "p2s2", "p2s3", "p3s2", "p3s3")
MERGED = ("p1s3", "p2s3", "p3s3")
APART = ("p3s2n", "p3s3n", "p3*s2n", "p3*s3n")

COLORS = {"basic": "#1b5e9e", "merged": "#3a8f6b", "backtrack": "#c4562b", "stretto": "#9aa5b1"}
LABELS = {"stretto": "stretto, Arrow to Arrow"}
LINES = dict(zip(EVERY, ("#1b5e9e", "#c4562b", "#3a8f6b", "#b58a1c", "#7a4fa3"), strict=True))


class Results:
    """Rows by (query, window), of prices that rise as usual."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        usual = [row for row in rows if row["rises"] == DEFINITIONS["rises"]["usual"]]
        self.rows = {(row["query"], row["window"]): row for row in usual}
        self.windows = sorted({window for _, window in self.rows})

    def rate(self, query: str, window: int, side: str) -> float | None:
        """Events a second."""
        row = self.rows.get((query, window))
        return row["events_per_second"].get(side) if row else None


def draw(rows: list[dict[str, Any]], folder: Path) -> None:
    """All panels of the figure into a folder, as SVG and PNG."""
    results = Results(rows)
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(4, 2, figsize=(9.5, 12.5))
        panels = grid.flatten()
        _bars(panels[0], results, FIRST, ("stretto", "basic"), "(a) predicates and strategies")
        _windows(panels[1], results)
        _complexity(panels[2], results)
        _bars(panels[3], results, FIRST, ("basic", "backtrack"), "(d) all results")
        _bars(panels[4], results, APART, ("basic", "backtrack"), "(e) non-overlapping results")
        _bars(panels[5], results, FIRST, ("basic", "merged"), "(f) merging runs")
        _gain(panels[6], results)
        panels[7].axis("off")
        _finish(figure)
        figure.savefig(folder / "figure8.svg", metadata={"Date": None})
        figure.savefig(folder / "figure8.png", dpi=120)
        plt.close(figure)


def _bars(axes: Axes, results: Results, queries: tuple[str, ...], sides: tuple[str, ...], title: str) -> None:
    """Rates at the first window."""
    window = results.windows[0]
    wide = 0.8 / len(sides)
    for index, side in enumerate(sides):
        places = [place + (index - (len(sides) - 1) / 2) * wide for place in range(len(queries))]
        heights = [(results.rate(query, window, side) or 0.0) / 1e6 for query in queries]
        axes.bar(places, heights, wide * 0.95, color=COLORS[side], label=LABELS.get(side, side))
    axes.set_xticks(range(len(queries)), [query.removesuffix("n") for query in queries])
    axes.set_ylim(0, 13)  # room for the legend; the same for all bars
    axes.set_ylabel("million events/s")
    axes.set_title(f"{title}, W = {window}")


def _windows(axes: Axes, results: Results) -> None:
    for query, color in LINES.items():
        _line(axes, query, color, [(w, results.rate(query, w, "basic")) for w in results.windows])
    axes.set_xticks(results.windows)
    axes.set_xlabel("W: events of a partition")
    axes.set_yscale("log")
    axes.set_ylim(1e5, 2e7)
    axes.set_yticks([1e5, 1e6, 1e7], ["100,000", "1 million", "10 million"])
    axes.set_ylabel("events/s")
    axes.set_title("(b) windows, basic")


def _complexity(axes: Axes, results: Results) -> None:
    """Time for an event over the events of matches for an event: a line through the origin is linear cost."""
    for query, color in LINES.items():
        points = []
        for window in results.windows:
            row, rate = results.rows.get((query, window)), results.rate(query, window, "basic")
            if row and rate:
                points.append((row["cells"] / row["events"], 1e6 / rate))
        _line(axes, query, color, points)
    axes.set_xlabel("output complexity: events of matches, for an event")
    axes.set_ylabel("µs for an event")
    axes.set_ylim(bottom=0)
    axes.set_title("(c) cost over output complexity, basic")


def _gain(axes: Axes, results: Results) -> None:
    for query in MERGED:
        points = []
        for window in results.windows:
            basic = results.rate(query, window, "basic" + SILENT)
            merged = results.rate(query, window, "merged" + SILENT)
            points.append((window, merged / basic if basic and merged else None))
        _line(axes, query, LINES[query], points)
    axes.axhline(1.0, color="#888888", lw=0.8)
    axes.set_xticks(results.windows)
    axes.set_xlabel("W: events of a partition")
    axes.set_ylabel("merged over basic")
    axes.set_ylim(bottom=0)
    axes.set_title("(g) gain by merging, without construction")


def _line(axes: Axes, query: str, color: str, points: list[tuple[float, float | None]]) -> None:
    known = [point for point in points if point[1]]
    if known:
        axes.plot(*zip(*known, strict=True), marker="o", ms=4, color=color, label=query)


def _finish(figure: Figure) -> None:
    for axes in figure.axes:
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=7, ncols=2)
    figure.suptitle("Figure 8. Runs with registers on stock events", x=0.01, ha="left", fontweight="bold")


def main(arguments: list[str]) -> None:
    """Draw the figure."""
    path = Path(arguments[0]) if arguments else max((FOLDER / "recorded").glob("*-full.json"))
    draw(json.loads(path.read_text(encoding="utf-8"))["rows"], FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])
