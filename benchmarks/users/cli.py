"""The command line: ``python -m benchmarks.users run``."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.users.suite import CASES, PEERS, Row, run

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.users", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run", help="measure, and check counts")
    command.add_argument("cases", nargs="*", help=f"of {', '.join(CASES['cases'])} (default: all)")
    command.add_argument("--stream", choices=list(CASES["streams"]), default="full")
    command.add_argument("--output", choices=["events", "positions", "summary"], default="events")
    command.add_argument("--repeat", type=int, default=2, help="timed runs of each side")
    command.add_argument("--out", type=Path, help="write the results as JSON")
    chosen = parser.parse_args(arguments)
    console = Console(width=140)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="stretto-benchmarks-") as folder:
        for row in run(Path(folder), chosen.stream, chosen.cases, output=chosen.output, repeat=chosen.repeat):
            rows.append(row)
            console.print(f"{row.case} on {row.stream}", style="dim")
    _print(console, rows)
    if chosen.out:
        record = {
            "machine": machine.describe("python -m benchmarks.users", ("chdb", "duckdb", "polars")),
            "output": chosen.output,
            "rows": [row.record() for row in rows],
        }
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row.wrong for row in rows) else 0


def _print(console: Console, rows: list[Row]) -> None:
    table = Table(title="Processor seconds from Parquet to the result, one core", title_justify="left")
    for name in ("case", "events", "expected", "stretto", *PEERS, "ratio to the fastest peer"):
        table.add_column(name, justify="left" if name == "case" else "right")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        expected = "" if row.expected is None else f"{row.expected:,}"
        table.add_row(row.case, f"{row.events:,}", expected, *(_cell(row, side) for side in ("stretto", *PEERS)), ratio)
    console.print(table)
    for row in rows:
        for trouble in row.wrong:
            console.print(f"[red]wrong[/red] {row.case} on {row.stream}: {trouble}")


def _cell(row: Row, side: str) -> str:
    if "missing" in row.sides.get(side, {}):
        return "missing"
    seconds = row.processor(side)
    return "" if seconds is None else f"{seconds:.2f}"
