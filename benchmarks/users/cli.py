"""The command line: ``python -m benchmarks.users run``."""

from __future__ import annotations

import argparse

from rich.table import Table

from benchmarks.compared import Row, command, recorded
from benchmarks.users.suite import CASES, PEERS, run

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.users", description=__doc__)
    parser.add_argument("command", choices=["run"], help="measure, and check counts")
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES['cases'])} (default: all)")
    parser.add_argument("--stream", choices=list(CASES["streams"]), default="full")
    parser.add_argument("--output", choices=["events", "positions", "summary"], default="events")
    parser.add_argument("--repeat", type=int, default=2, help="timed runs of each side")
    return command(
        parser,
        arguments,
        lambda folder, to: run(folder, to.stream, to.cases, output=to.output, repeat=to.repeat),
        _table,
        PEERS,
        lambda row: recorded(row, ratio_to_the_fastest_peer=row.ratio(*PEERS)),
    )


def _table(rows: list[Row]) -> Table:
    table = Table(title="Processor seconds from Parquet to the result, one core", title_justify="left")
    sides = ("stretto", *PEERS)
    for name in ("case", "events", "expected", *sides, "ratio to the fastest peer"):
        table.add_column(name, justify="left" if name == "case" else "right")
    for row in rows:
        ratio = row.ratio(*PEERS)
        expected = "" if row.expected is None else f"{row.expected:,}"
        cells = (row.cell(side, 2) for side in sides)
        table.add_row(row.case, f"{row.events:,}", expected, *cells, "" if ratio is None else f"{ratio:.2f}")
    return table
