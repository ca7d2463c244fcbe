"""The command line: ``python -m benchmarks.rows run``."""

from __future__ import annotations

import argparse

from rich.table import Table

from benchmarks.compared import Row, command, recorded
from benchmarks.rows.sides import PEER_FOLDER
from benchmarks.rows.suite import CASES, run

__all__ = ["main"]

_SIDES = ("stretto", "peer", "ceql")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rows",
        description=__doc__,
        epilog=f"The peer: pip install --target FOLDER pandas-match-recognize, and {PEER_FOLDER}=FOLDER in the environment.",
    )
    parser.add_argument("command", choices=["run"], help="measure, and check counts")
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES['cases'])} (default: all)")
    parser.add_argument("--stream", choices=list(CASES["streams"]), action="append", help="default: toy, many and one")
    parser.add_argument("--repeat", type=int, default=3, help="timed runs of each side")
    return command(
        parser,
        arguments,
        lambda folder, to: (
            row
            for stream in to.stream or ["toy", "many", "one"]
            for row in run(folder, stream, to.cases, repeat=to.repeat)
        ),
        _table,
        ("pandas",),
        lambda row: recorded(row, ratio_to_the_peer=row.ratio("peer"), ratio_to_ceql=row.ratio("ceql")),
    )


def _table(rows: list[Row]) -> Table:
    table = Table(title="Processor seconds from a DataFrame to a DataFrame, one core", title_justify="left")
    for name in ("case", "stream", "rows", "matches", *_SIDES, "peer/stretto", "ceql/stretto", "memory"):
        table.add_column(name, justify="left" if name in ("case", "stream") else "right")
    for row in rows:
        ratios = ("" if ratio is None else f"{ratio:.1f}" for ratio in (row.ratio("peer"), row.ratio("ceql")))
        memory = row.sides.get("stretto", {}).get("more_memory", 0)
        cells = (row.cell(side, 3) for side in _SIDES)
        matches = "" if row.expected is None else f"{row.expected:,}"
        table.add_row(row.case, row.stream, f"{row.events:,}", matches, *cells, *ratios, f"{memory / 1e6:,.0f} MB")
    return table
