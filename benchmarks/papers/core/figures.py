"""Redraws figures 7, 8, 9 and 11 of the CORE paper from recorded results, with our lines and the peer's.

``python -m benchmarks.papers.core.figures [results.json]`` writes an SVG and a PNG of each next to this file;
without an argument it takes the newest file of ``benchmarks/recorded``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

FOLDER = Path(__file__).parent
RECORDED = FOLDER.parents[1] / "recorded"

LENGTHS = (3, 6, 9, 12, 24)
WINDOWS = (1, 2, 3, 4)
STRATEGIES = ("ALL", "NEXT", "LAST", "MAX", "STRICT")
STREAMS = (("stocks", "S", "Stock market"), ("homes", "H", "Smart homes"), ("taxi", "T", "Taxi trips"))

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "stretto",
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Line:
    """One line of a plot: whose, on which stream, and how it looks."""

    label: str
    side: str
    stream: str
    color: str
    style: str = "-"
    marker: str = "o"


OURS = Line("stretto, the trace repeated to 4 million events", "ours", "long", "#1b5e9e")
OURS_TRACE = Line("stretto, the trace as it is", "ours", "trace", "#6ba3d6", "--", "s")
PEER = Line("pycer (CORE in C++)", "peer", "long", "#c4562b", "-", "^")
PEER_TRACE = Line("pycer, the trace as it is", "peer", "trace", "#e0a184", "--", "v")
SAME_INPUT = (OURS_TRACE, PEER_TRACE)
ALL_LINES = (OURS, OURS_TRACE, PEER, PEER_TRACE)


class Results:
    """Recorded rows by (family, case, stream)."""

    def __init__(self, path: Path) -> None:
        self.raw = json.loads(path.read_text(encoding="utf-8"))
        self._rows = {(row["family"], row["case"], row["stream"]): row for row in self.raw["rows"]}

    def rate(self, family: str, case: str, line: Line) -> float | None:
        """Events a second."""
        row = self._row(family, case, line)
        return row["events_per_second" if line.side == "ours" else "peer_events_per_second"] if row else None

    def memory(self, family: str, case: str, line: Line) -> float | None:
        """MiB resident at most."""
        row = self._row(family, case, line)
        size = row[line.side].get("resident_peak") if row and row[line.side] else None
        return size / 2**20 if size else None

    def _row(self, family: str, case: str, line: Line) -> dict[str, Any] | None:
        row = self._rows.get((family, case, line.stream))
        return row if row and row[line.side] else None


Measure = Callable[[str, str, Line], float | None]


def plot(axes: Axes, xs: Iterable[Any], line: Line, values: Iterable[float | None]) -> None:
    """One line, without the points that were not measured."""
    points = [(x, value) for x, value in zip(xs, values, strict=True) if value]
    if points:
        axes.plot(*zip(*points, strict=True), line.style, color=line.color, marker=line.marker, ms=4, label=line.label)


def draw_lengths(results: Results) -> Figure:
    """Figure 7: throughput and memory over the length of the sequence, with output and without."""
    figure, grid = plt.subplots(4, 3, figsize=(9.5, 10), sharex=True, sharey="row")
    rows: list[tuple[str, str, Measure, tuple[Line, ...]]] = [
        ("events/s, with output", "", results.rate, ALL_LINES),
        ("events/s, without output", "'", results.rate, ALL_LINES),
        ("MiB, with output", "", results.memory, SAME_INPUT),
        ("MiB, without output", "'", results.memory, SAME_INPUT),
    ]
    for axes_row, (label, prime, measure, lines) in zip(grid, rows, strict=True):
        for axes, (data, letter, _) in zip(axes_row, STREAMS, strict=True):
            for line in lines:
                cases = [f"{letter}{length}{prime}" for length in LENGTHS]
                plot(axes, LENGTHS, line, [measure(f"{data}_sequences", case, line) for case in cases])
            axes.set_xticks(LENGTHS)
        if measure == results.rate:
            set_rates(axes_row[0])
        else:
            axes_row[0].set_ylim(bottom=0)
        axes_row[0].set_ylabel(label)
    for axes, (_, _, title) in zip(grid[0], STREAMS, strict=True):
        axes.set_title(title)
    for axes in grid[-1]:
        axes.set_xlabel("steps of the sequence")
    return finish(figure, "Figure 7. Sequences of 3 to 24 steps")


def draw_windows(results: Results) -> Figure:
    """Figure 8: throughput over the window."""
    figure, row = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True)
    for axes, (data, letter, title) in zip(row, STREAMS, strict=True):
        for line in ALL_LINES:
            cases = [f"{letter}3'x{factor}" for factor in WINDOWS]
            plot(axes, WINDOWS, line, [results.rate(f"{data}_windows", case, line) for case in cases])
        set_windows(axes)
        axes.set_title(title)
    set_rates(row[0])
    row[0].set_ylabel("events/s")
    return finish(figure, "Figure 8. Windows of T to 4T, no output")


def draw_operators(results: Results) -> Figure:
    """Figure 9: throughput of Q1 to Q7."""
    figure, axes = plt.subplots(figsize=(8, 3.6))
    queries = [f"Q{number}" for number in range(1, 8)]
    for index, line in enumerate(ALL_LINES):
        values = [results.rate("stocks_operators", query, line) or 0.0 for query in queries]
        places = [place + (index - 1.5) * 0.21 for place in range(len(queries))]
        axes.bar(places, values, 0.2, color=line.color, label=line.label)
    set_rates(axes)
    axes.set_xticks(range(len(queries)), queries)
    axes.set_ylabel("events/s")
    return finish(figure, "Figure 9. Disjunction, filters, partitions, iteration")


def draw_strategies(results: Results) -> Figure:
    """Figure 11: throughput over the window under each selection strategy."""
    figure, axes = plt.subplots(figsize=(6.5, 4.2))
    colors = ("#1b5e9e", "#3a8f6b", "#7a4fa3", "#b58a1c", "#5a6472")
    for strategy, color, marker in zip(STRATEGIES, colors, "osDvX", strict=True):
        line = Line(f"stretto, {strategy}", "ours", "long", color, "-", marker)
        plot(axes, WINDOWS, line, [results.rate(*strategy_case(strategy, factor), line) for factor in WINDOWS])
    line = Line("pycer (no strategy)", "peer", "long", PEER.color, "-", "^")
    plot(axes, WINDOWS, line, [results.rate(*strategy_case("ALL", factor), line) for factor in WINDOWS])
    set_windows(axes)
    set_rates(axes)
    axes.set_ylabel("events/s")
    return finish(figure, "Figure 11. Selection strategies over windows of T to 4T, S3′")


def strategy_case(strategy: str, factor: int) -> tuple[str, str]:
    """Family and case of S3' under a strategy."""
    return "stocks_strategies", f"S3' {strategy}" + ("" if factor == 1 else f" x{factor}")


def set_rates(axes: Axes) -> None:
    """The y axis of throughput, the same in all figures."""
    axes.set_yscale("log")
    axes.set_ylim(3e4, 1e8)
    axes.set_yticks([1e5, 1e6, 1e7, 1e8], ["100,000", "1 million", "10 million", "100 million"])


def set_windows(axes: Axes) -> None:
    """The x axis of windows."""
    axes.set_xticks(WINDOWS, ["T", "2T", "3T", "4T"])
    axes.set_xlabel("window")


def finish(figure: Figure, title: str) -> Figure:
    """Title above the plots and one legend below them."""
    pairs = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes]
    lines = {label: handle for pair in pairs for handle, label in pair}
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    figure.legend(lines.values(), lines.keys(), loc="outside lower left", ncols=2, frameon=False)
    return figure


FIGURES = {7: draw_lengths, 8: draw_windows, 9: draw_operators, 11: draw_strategies}


def main(arguments: list[str]) -> None:
    """Draw all figures."""
    path = Path(arguments[0]) if arguments else max(RECORDED.glob("*.json"))
    results = Results(path)
    plt.rcParams.update(STYLE)
    for number, draw in FIGURES.items():
        figure = draw(results)
        figure.savefig(FOLDER / f"figure{number}.svg", metadata={"Date": None})
        figure.savefig(FOLDER / f"figure{number}.png", dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
