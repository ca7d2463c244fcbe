"""Redraws figures 8 to 13, 16 and 17 of the AFA paper from results, and memory over a long stream.

``python -m benchmarks.papers.afa figures [results.json]`` writes an SVG and a PNG of each next to this file; without an argument
it takes the newest file of ``recorded``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.papers.core.figures import STYLE

__all__ = ["draw"]

COLORS = {
    "ordered": "#9aa5b1",
    "AFA": "#1b5e9e",
    "AFA+O": "#3a8f6b",
    "AFA+ignore": "#b58a1c",
    "CAN": "#c4562b",
    "IPM": "#5b4b8a",
    "static": "#9aa5b1",
    "dynamic": "#1b5e9e",
    "restart": "#c4562b",
    "I = 70 %": "#1b5e9e",
    "I = 90 %": "#b58a1c",
}
LABELS = {"restart": "operator restart", "ordered": "AFA, ordered=True", "dynamic": "arc replaced"}

Rows = list[dict[str, Any]]


def draw(rows: Rows, folder: Path) -> None:
    """All figures that there are rows for into a folder, as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        for name, experiment, title, panels, make in (
            ("figure8", "8", "Figure 8. Throughput across approaches", 1, _figure8),
            ("figure9", "9", "Figure 9. Throughput with dynamic patterns", 1, _figure9),
            ("figure10_11", "10", "Figures 10, 11. Output size and latency against speculation", 2, _figure10),
            ("figure12_13", "12", "Figures 12, 13. Throughput and memory against disorder", 2, _figure12),
            ("figure16_17", "16", "Figures 16, 17. Throughput and memory against ignorable events", 2, _figure16),
            ("memory", "memory", "Memory over a long stream, a punctuation every window", 1, _memory),
        ):
            here = [row for row in rows if row["experiment"] == experiment]
            if here:
                _save(folder / name, title, panels, here, make)


def _save(path: Path, title: str, panels: int, rows: Rows, make: Callable[[list[Axes], Rows], None]) -> None:
    figure, grid = plt.subplots(1, panels, figsize=(5.4 * panels, 3.6), squeeze=False)
    axes = list(grid.flatten())
    make(axes, rows)
    for one in axes:
        if one.get_legend_handles_labels()[0]:
            one.legend(frameon=False, fontsize=7)
    _finish(figure, title)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=120)
    plt.close(figure)


def _finish(figure: Figure, title: str) -> None:
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")


def _line(axes: Axes, rows: Rows, side: str, value: Callable[[dict[str, Any]], float | None]) -> None:
    """One side's values over the axis."""
    points = [(row["x"], value(row)) for row in rows if row["side"] == side and row["x"] is not None]
    known = [point for point in points if point[1] is not None]
    if known:
        axes.plot(*zip(*known, strict=True), marker="o", ms=4, color=COLORS[side], label=LABELS.get(side, side))


def _rate(row: dict[str, Any]) -> float | None:
    rate: float | None = row["events_per_second"]
    return None if rate is None else rate / 1e6


def _kib(row: dict[str, Any]) -> float:
    return float(row["held"]) / 1024


def _figure8(panels: list[Axes], rows: Rows) -> None:
    """Bars of each approach: Q1 on both data sets, and Q3."""
    axes = panels[0]
    groups = list(dict.fromkeys((row["query"], row["data"]) for row in rows))
    sides = list(dict.fromkeys(row["side"] for row in rows))
    wide = 0.8 / len(sides)
    for index, side in enumerate(sides):
        points = [
            (groups.index((row["query"], row["data"])) + (index - (len(sides) - 1) / 2) * wide, _rate(row))
            for row in rows
            if row["side"] == side
        ]
        places, heights = zip(*points, strict=True)
        axes.bar(places, heights, wide * 0.95, color=COLORS[side], label=LABELS.get(side, side))
    axes.set_xticks(range(len(groups)), [f"{query}, {data}" for query, data in groups])
    axes.set_ylabel("million events/s")
    axes.set_title("in order, W = 2000")


def _figure9(panels: list[Axes], rows: Rows) -> None:
    axes = panels[0]
    for row in rows:
        if row["side"] == "static":
            axes.axhline(_rate(row), color=COLORS["static"], label="static")
    for side in ("dynamic", "restart"):
        _line(axes, rows, side, _rate)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted({row["x"] for row in rows if row["x"]})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks([0.001, 0.01, 0.1, 1, 10], ["1,000", "10,000", "100,000", "1 million", "10 million"])
    axes.set_xlabel("d: events between replacements")
    axes.set_ylabel("events/s")
    axes.set_title("Q3, W = 500")


def _figure10(panels: list[Axes], rows: Rows) -> None:
    """Output over that without speculation, and how long it waits."""
    least = {row["side"]: row["rows"] for row in rows if row["x"] == 0}
    for side, base in least.items():
        _line(panels[0], rows, side, lambda row: row["rows"] / least[row["side"]])
        _line(panels[1], rows, side, lambda row: row["extra"]["latency"]["mean"])
        most = [row for row in rows if row["side"] == side and row["x"] is None]
        for row in most:
            label = f"{side}, without a bound"
            panels[0].axhline(row["rows"] / base, color=COLORS[side], ls=":", label=label)
    panels[0].set_ylim(bottom=1)
    panels[1].set_ylim(bottom=0)
    panels[0].set_ylabel("output rows over those at 0")
    panels[1].set_ylabel("ms that output waits, on average")
    for axes, title in zip(panels, ("output size", "latency"), strict=True):
        axes.set_xlabel("speculation factor, ms")
        axes.set_title(f"{title}: Q1, k = 1, W = 500, 5 % late by up to 5,000", fontsize=9)


def _figure12(panels: list[Axes], rows: Rows) -> None:
    _pair(panels, rows, ("AFA", "AFA+O"), "ω: % of events late by up to 1,000", "Q2, p = 0.7, W = 500")


def _figure16(panels: list[Axes], rows: Rows) -> None:
    _pair(panels, rows, ("AFA+ignore", "AFA"), "I: % of events that are ignorable", "Q1, k = 1, W = 500")


def _pair(panels: list[Axes], rows: Rows, sides: tuple[str, ...], along: str, title: str) -> None:
    """Throughput and memory side by side."""
    for axes, value, label in zip(panels, (_rate, _kib), ("million events/s", "KiB of partial matches"), strict=True):
        for side in sides:
            _line(axes, rows, side, value)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(along)
        axes.set_ylabel(label)
        axes.set_title(title)


def _memory(panels: list[Axes], rows: Rows) -> None:
    axes = panels[0]
    for row, color in zip(rows, ("#1b5e9e", "#3a8f6b", "#b58a1c"), strict=False):
        seen = row["extra"]["bytes"]
        axes.plot([at / 1e6 for at, _ in seen], [size / 1024 for _, size in seen], color=color, label=row["query"])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("million events")
    axes.set_ylabel("KiB, all arrays")
    axes.set_title("W = 2000")
