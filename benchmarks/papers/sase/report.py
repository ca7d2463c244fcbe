"""Tables 2 and 3, throughput and goals for people; everything as JSON for the record."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.papers import measuring
from benchmarks.papers.sase.engines import SILENT
from benchmarks.papers.sase.suite import DEFINITIONS, Plan, Row

__all__ = ["print_all", "save"]

SIDES = ("stretto", "basic", "merged", "backtrack", "basic" + SILENT, "merged" + SILENT)
USUAL: float = DEFINITIONS["rises"]["usual"]


def print_all(console: Console, rows: list[Row]) -> None:
    """All tables, then whether the goals were reached."""
    for rises, window in dict.fromkeys((row.rises, row.window) for row in rows):
        _print_rates(console, [row for row in rows if (row.rises, row.window) == (rises, window)])
    first = min((row.window for row in rows), default=0)
    usual = [row for row in rows if row.rises == USUAL]
    _print_table2(console, [row for row in usual if row.window == first and not row.query.endswith("n")])
    _print_table3(console, [row for row in usual if row.query in ("p1s3", "p2s3", "p3s3")])
    for line in goals(rows):
        console.print(line, highlight=False)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column(columns[0])
    for name in columns[1:]:
        table.add_column(name, justify="right")
    return table


def _print_rates(console: Console, rows: list[Row]) -> None:
    title = f"events/s, W = {rows[0].window}, prices rise with {rows[0].rises}, {rows[0].events:,} events"
    table = _table(
        title, "query", "matches", "events of matches", *SIDES, "basic / backtrack", "merged / basic, silent"
    )
    for row in rows:
        rates = [row.rate(side) for side in SIDES]
        table.add_row(
            row.query,
            f"{row.matches:,}",
            f"{row.cells:,}",
            *("" if rate is None else f"{rate:,.0f}" for rate in rates),
            _times(row.ratio("basic", "backtrack")),
            _times(row.ratio("merged" + SILENT, "basic" + SILENT)),
        )
    console.print(table)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _print_table2(console: Console, rows: list[Row]) -> None:
    table = _table("Table 2: profile of the basic algorithm", "", *(row.query for row in rows))
    shares = [(row.ratio("basic", "basic" + SILENT) or 0.0) for row in rows]
    table.add_row("match length", *(f"{row.cells / max(1, row.matches):.1f}" for row in rows))
    table.add_row("runs / time step", *(f"{row.profile['engines']['basic']['live']:.2g}" for row in rows))
    table.add_row("matching cost", *(f"{min(share, 1.0):.0%}" for share in shares))
    table.add_row("construction cost", *(f"{max(0.0, 1.0 - share):.0%}" for share in shares))
    table.add_row("backtrack reads an event", *(f"{row.profile['read']:.2f}" for row in rows))
    console.print(table)


def _print_table3(console: Console, rows: list[Row]) -> None:
    names = list(dict.fromkeys(row.query for row in rows))
    columns = [f"{what} {name}" for what in ("runs saved", "joined", "nodes/event") for name in names]
    table = _table("Table 3: profile of merging", "W", *columns, *(f"gain {name}" for name in names))
    for window in dict.fromkeys(row.window for row in rows):
        here = [row for row in rows if row.window == window]
        engines = [row.profile["engines"] for row in here]
        table.add_row(
            str(window),
            *(f"{saved(row):.1%}" for row in here),
            *(f"{one['merged']['merged'] / max(1, row.starts):.1%}" for row, one in zip(here, engines, strict=True)),
            *(f"{one['basic']['nodes']:.2f} → {one['merged']['nodes']:.2f}" for one in engines),
            *(_times(row.ratio("merged" + SILENT, "basic" + SILENT)) for row in here),
        )
    console.print(table)


def saved(row: Row) -> float:
    """The share of active runs that merging saves."""
    live = {name: one["live"] for name, one in row.profile["engines"].items()}
    return 1 - live["merged"] / live["basic"] if live.get("basic") else 0.0


def goals(rows: list[Row]) -> list[str]:
    """What should be reached, and what was. A miss is said, never an error: times are not tests."""
    usual = [row for row in rows if row.rises == USUAL]
    lines = []
    for goal in DEFINITIONS["goals"]["rates"]:
        for row in usual:
            rate = row.rate("stretto")
            if row.window == goal["window"] and row.query in goal["queries"] and rate:
                what = f"{row.query} at W = {row.window}: {rate:,.0f} events/s"
                lines.append(measuring.mark(rate >= goal["least"], f"{what}, at least {goal['least']:,}"))
    least = DEFINITIONS["goals"]["merged_over_basic"]
    for row in usual:
        gain = row.ratio("merged" + SILENT, "basic" + SILENT)
        if gain and row.query in ("p1s3", "p2s3", "p3s3"):
            what = f"{row.query} at W = {row.window}: merged {gain:.2f} times basic without construction"
            lines.append(measuring.mark(gain >= least, f"{what}, at least {least}"))
    return lines


def save(path: Path, rows: list[Row], plan: Plan, wrong: list[str], load: float) -> None:
    """Everything that was measured, as JSON. ``load`` was the machine's when the run began."""
    measuring.save(path, "python -m benchmarks.papers.sase", rows, load, {"plan": plan.__dict__, "wrong": wrong})
