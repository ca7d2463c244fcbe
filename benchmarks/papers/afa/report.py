"""The figures as tables, and the goals, for people; everything as JSON for the record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.papers import measuring
from benchmarks.papers.afa.suite import DEFINITIONS, EXPERIMENTS, Plan, Row

__all__ = ["goals", "name_of", "print_all", "save"]


def name_of(row: Row) -> str:
    """Which row it is, in words."""
    at = "" if row.x is None else f" at {row.x:g}"
    share = f" I = {row.extra['ignorable']} %" if "ignorable" in row.extra and "I =" not in row.side else ""
    return f"{row.experiment}: {row.query} ({row.data}), {row.side}{share}{at}"


def print_all(console: Console, rows: list[Row]) -> None:
    """A table for each experiment, then whether the goals were reached."""
    for name, (shows, _) in EXPERIMENTS.items():
        here = [row for row in rows if row.experiment == name]
        if here:
            console.print(_table(name, shows, here))
    for line in goals(rows):
        console.print(line, highlight=False)


def _table(name: str, shows: str, rows: list[Row]) -> Table:
    title = f"{name}: {shows}; {max(row.events for row in rows):,} events"
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in ("query", "data", "side", "x"):
        table.add_column(column)
    for column in ("events/s", "output", "net", "KiB at most, partial matches", "KiB, all arrays", "latency ms"):
        table.add_column(column, justify="right")
    for row in rows:
        latency = row.extra.get("latency")
        table.add_row(
            row.query,
            row.data,
            row.side,
            "" if row.x is None else f"{row.x:g}",
            "" if row.rate is None else f"{row.rate:,.0f}",
            f"{row.rows:,}",
            f"{row.net:,}",
            f"{row.held / 1024:,.0f}",
            f"{row.bytes / 1024:,.0f}",
            "" if latency is None else f"{latency['mean']:.1f}",
        )
    return table


def goals(rows: list[Row]) -> list[str]:
    """What should be reached, and what was. A miss is said, never an error: times are not tests."""
    return [
        measuring.mark(*goal) for goal in (*_in_order(rows), *_dynamic(rows), *_late(rows), *_flat(rows), *_flink(rows))
    ]


def _in_order(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    for query in ("Q1", "Q3"):
        least = DEFINITIONS["goals"][query.lower()]
        for row in rows:
            if row.experiment == "8" and row.query == query and row.side not in ("CAN", "IPM") and row.rate:
                where = f"{query} on {row.data} events, {row.side}"
                yield row.rate >= least, f"in order, {where}: {row.rate:,.0f} events/s, at least {least:,}"


def _dynamic(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    least = DEFINITIONS["goals"]["dynamic"]
    static = [row.rate for row in rows if row.experiment == "9" and row.side == "static" and row.rate]
    for row in rows:
        if row.experiment == "9" and row.side == "dynamic" and row.rate and static:
            share = row.rate / static[0]
            what = f"an arc replaced every {row.x:g} events: {share:.3f} of the static throughput, at least {least}"
            yield share >= least, what


def _late(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    found = {(row.query, row.side, row.x): row.rate for row in rows if row.experiment == "late" and row.rate}
    for (query, side, x), rate in found.items():
        base = found.get((query, side, 0.0))
        if x and base:
            least = DEFINITIONS["goals"]["late_numbered" if side == "AFA+O" else "late"]
            what = f"{x:g} % late by up to 5,000, {query}, {side}: {rate / base:.3f} of the throughput in order"
            yield rate / base >= least, f"{what}, at least {least:.3g}"


def _flat(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    most = DEFINITIONS["goals"]["flat"]
    for row in rows:
        if row.experiment == "memory" and row.extra.get("bytes"):
            seen = row.extra["bytes"]
            start = seen[len(seen) // 10][1]
            what = f"memory over {row.events:,} events, {row.query}: {seen[-1][1] / start:.3f} times what it was after a tenth"
            yield seen[-1][1] <= most * start, f"{what}, at most {most}"


def _flink(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    least = DEFINITIONS["goals"]["flink"]
    here = [row for row in rows if row.experiment == "flink" and row.rate and not row.wrong]
    for query in dict.fromkeys(row.query for row in here):
        ours = [row for row in here if row.query == query and row.side.startswith("stretto")]
        theirs = [row for row in here if row.query == query and row.side.startswith("Flink")]
        if not theirs:
            continue
        peer = max(row.rate or 0.0 for row in theirs)
        running = max(row.events / max(1e-9, min(row.seconds) - row.extra.get("start", 0.0)) for row in theirs)
        for row in ours:
            rate = row.rate or 0.0
            what = f"{query}, {row.side}: {rate / peer:.1f} times Flink's rows/s, at least {least}"
            yield rate / peer >= least, f"{what} ({rate / running:.1f} times without what a job costs without data)"


def save(path: Path, rows: list[Row], plan: Plan, skipped: list[str], load: float) -> None:
    """Everything that was measured, as JSON. ``load`` was the machine's when the run began."""
    what = {name: value for name, value in plan.__dict__.items() if name != "yahoo"}
    more = {"plan": what, "skipped": skipped, "goals": goals(rows)}
    measuring.save(path, "python -m benchmarks.papers.afa", rows, load, more)
