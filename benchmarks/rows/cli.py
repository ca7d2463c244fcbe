"""The command line: ``python -m benchmarks.rows run``."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.rows.sides import PEER_FOLDER
from benchmarks.rows.suite import CASES, Row, run

__all__ = ["main"]

_SIDES = ("stretto", "peer", "ceql")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rows",
        description=__doc__,
        epilog=f"The peer: pip install --target FOLDER pandas-match-recognize, and {PEER_FOLDER}=FOLDER in the environment.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run", help="measure, and check counts")
    command.add_argument("cases", nargs="*", help=f"of {', '.join(CASES['cases'])} (default: all)")
    command.add_argument("--stream", choices=list(CASES["streams"]), action="append", help="default: toy, many and one")
    command.add_argument("--repeat", type=int, default=3, help="timed runs of each side")
    command.add_argument("--out", type=Path, help="write the results as JSON")
    chosen = parser.parse_args(arguments)
    console = Console(width=150)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="stretto-benchmarks-") as folder:
        for stream in chosen.stream or ["toy", "many", "one"]:
            for row in run(Path(folder), stream, chosen.cases, repeat=chosen.repeat):
                rows.append(row)
                console.print(f"{row.case} on {row.stream}", style="dim")
    _print(console, rows)
    if chosen.out:
        record = {
            "machine": machine.describe("python -m benchmarks.rows", ("pandas",)),
            "rows": [row.record() for row in rows],
        }
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row.wrong for row in rows) else 0


def _print(console: Console, rows: list[Row]) -> None:
    table = Table(title="Processor seconds from a DataFrame to a DataFrame, one core", title_justify="left")
    for name in ("case", "stream", "rows", "matches", *_SIDES, "peer/stretto", "ceql/stretto", "memory"):
        table.add_column(name, justify="left" if name in ("case", "stream") else "right")
    for row in rows:
        ratios = ("" if ratio is None else f"{ratio:.1f}" for ratio in (row.ratio("peer"), row.ratio("ceql")))
        memory = row.sides.get("stretto", {}).get("more_memory", 0)
        cells = (_cell(row, side) for side in _SIDES)
        matches = "" if row.expected is None else f"{row.expected:,}"
        table.add_row(row.case, row.stream, f"{row.rows:,}", matches, *cells, *ratios, f"{memory / 1e6:,.0f} MB")
    console.print(table)
    for row in rows:
        for trouble in row.wrong:
            console.print(f"[red]wrong[/red] {row.case} on {row.stream}: {trouble}")


def _cell(row: Row, side: str) -> str:
    if "missing" in row.sides.get(side, {}):
        return "missing"
    seconds = row.processor(side)
    return "" if seconds is None else f"{seconds:.3f}"
