"""The experiments as tables, and the goals, for people; everything as JSON for the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.papers import measuring
from benchmarks.papers.ffp.suite import DEFINITIONS, EXPERIMENTS, Plan, Row

__all__ = ["goals", "name_of", "print_all", "save"]

FOLLOWED = ("disorder", "inactivity", "lulls")


def name_of(row: Row) -> str:
    """Which row it is, in words."""
    return f"{row.experiment}: {row.side}" + ("" if row.x is None else f" at {row.x:g}")


def print_all(console: Console, rows: list[Row]) -> None:
    """A table for each experiment, then whether the goals were reached."""
    for name, (shows, _) in EXPERIMENTS.items():
        here = [row for row in rows if row.experiment == name]
        if here:
            console.print(_table(f"{name}: {shows}", here))
    for line in goals(rows):
        console.print(line, highlight=False)


#: What is shown of the rows that were followed step by step.
_FOLLOWED: dict[str, Callable[[dict[str, Any]], str]] = {
    "lag": lambda extra: f"{extra['lag']:.1f}",
    "definite": lambda extra: f"{extra['definite']:,}",
    "speculative": lambda extra: f"{extra['speculative']:,}",
    "rows in joins": lambda extra: f"{extra['held']:,.0f}",
    "longest silence": lambda extra: f"{extra['longest']:,}",
    "steps used": lambda extra: f"{extra['used']:.0%}",
}


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(
        title=f"{title}; {max(row.events for row in rows):,} events", title_justify="left", header_style="bold"
    )
    followed = rows[0].experiment in FOLLOWED
    for column in ("side", "x"):
        table.add_column(column)
    for column in ("output", *_FOLLOWED) if followed else ("events/s", "output", "KiB, all arrays", "lines", "pairs"):
        table.add_column(column, justify="right")
    for row in rows:
        extra = row.extra
        if followed:
            cells = [f"{row.rows:,}", *(show(extra) for show in _FOLLOWED.values())]
        else:
            size = extra.get("bytes", 0)
            size = size[-1][1] if isinstance(size, list) else size
            cells = [
                "" if row.rate is None else f"{row.rate:,.0f}",
                f"{row.rows:,}",
                f"{size / 1024:,.0f}",
                *("" if extra.get(name) is None else f"{extra[name]:,}" for name in ("lines", "pairs")),
            ]
        table.add_row(row.side, "" if row.x is None else f"{row.x:g}", *cells)
    return table


def goals(rows: list[Row]) -> list[str]:
    """What should be reached, and what was. A miss is said, never an error: times are not tests."""
    return [
        measuring.mark(*goal)
        for goal in (*_native(rows), *_progress(rows), *_reachability(rows), *_cost(rows), *_flat(rows))
    ]


def _native(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    least = DEFINITIONS["goals"]["native"]
    here = [row for row in rows if row.experiment == "native" and row.rate]
    for side in dict.fromkeys(row.side for row in here if row.side.startswith("cyclic")):
        best = max((row for row in here if row.side == side), key=lambda row: row.rate or 0.0)
        what = f"W, {side} events between punctuations, {best.x:,.0f} together: {best.rate:,.0f} events/s"
        yield (best.rate or 0.0) >= least, f"{what}, at least {least:,}"


def _progress(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    raw = DEFINITIONS["goals"]
    for name in FOLLOWED:
        here = [row for row in rows if row.experiment == name and row.side == "hybrid"]
        if not here:
            continue
        if name == "disorder":
            worst = max(row.extra["lag"] / (row.extra["span"] / 2) for row in here)
            yield (
                worst <= raw["lag"],
                f"{name}, hybrid: an average lag of {worst:.2f} times d/2 at most, at most {raw['lag']}",
            )
        worst = max(row.extra["per_definite"] for row in here)
        what = f"{name}, hybrid: {worst:.2f} speculative punctuations for a definite one at most"
        yield worst <= raw["speculative"], f"{what}, at most {raw['speculative']:g}"
        yield all(row.extra["idle"] for row in here), f"{name}, hybrid: nothing is in flight when it is idle"


def _reachability(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    least = DEFINITIONS["goals"]["pathway"]
    here = {row.side: row for row in rows if row.experiment == "reachability" and row.rate and not row.wrong}
    if len(here) < 2:
        return
    ours, theirs = here["stretto"], here["Pathway"]
    cpu = min(theirs.seconds) / min(ours.seconds)
    wall = min(theirs.extra["wall"]) / min(ours.extra["wall"])
    start = theirs.extra["start"]["cpu"]
    rest = (min(theirs.seconds) - start) / min(ours.seconds)
    what = f"{ours.events:,} changes to {ours.extra['pairs']:,} pairs: {ours.rate:,.0f} changes/s"
    what = f"{what}, {cpu:.1f} times Pathway's by processor time ({rest:.1f} without its start), {wall:.1f} by the wall clock"
    yield cpu >= least, f"{what}, at least {least:g}"


def _cost(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    most = DEFINITIONS["goals"]["cost"]
    here = [row for row in rows if row.experiment == "cost" and row.rate]
    if len(here) > 1:
        first, last = here[0], here[-1]
        ratio = (first.rate or 0.0) / (last.rate or 1.0)
        what = f"a change takes {1e6 / (last.rate or 1.0):,.0f} µs in a graph of {last.x:,.0f} links"
        yield ratio <= most, f"{what}, {ratio:.2f} times that in one of {first.x:,.0f}, at most {most}"


def _flat(rows: list[Row]) -> Iterator[tuple[bool, str]]:
    most = DEFINITIONS["goals"]["flat"]
    for row in rows:
        if row.experiment == "memory" and len(row.extra.get("bytes", [])) > 1:
            seen = row.extra["bytes"]
            start, half = seen[len(seen) // 10], seen[len(seen) // 10 :]
            for place, what in ((1, "all arrays"), (2, "the process")):
                ratio = max(one[place] for one in half) / start[place]
                size = f"{max(one[place] for one in half) / 2**20:,.1f} MiB"
                said = f"memory over {row.events:,} events, {what}: {size} at most, {ratio:.3f} times what it was after a tenth"
                yield ratio <= most, f"{said}, at most {most}"


def save(path: Path, rows: list[Row], plan: Plan, skipped: list[str], load: float) -> None:
    """Everything that was measured, as JSON. ``load`` was the machine's when the run began."""
    what = dict(plan.__dict__)
    more = {"plan": what, "skipped": skipped, "goals": goals(rows)}
    measuring.save(path, "python -m benchmarks.papers.ffp", rows, load, more)
