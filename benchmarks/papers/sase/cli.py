"""The command line: ``python -m benchmarks.papers.sase run``, ``list`` and ``count``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.papers.sase import oracle, report
from benchmarks.papers.sase.queries import case
from benchmarks.papers.sase.stream import stocks
from benchmarks.papers.sase.suite import CLOCKS, DEFINITIONS, Plan, Row, Suite, one_core

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    chosen = _parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    if chosen.command == "list":
        return _list(console)
    if chosen.command == "count":
        return _count(console)
    plan = Plan.of("quick" if chosen.quick else "full")
    given = {name: getattr(chosen, name) for name in ("windows", "length", "repeat", "known", "queries", "clock")}
    plan = replace(plan, **{name: value for name, value in given.items() if value is not None})
    return _run(console, plan, chosen.out, chosen.figures)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.sase", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, and check counts")
    run.add_argument("--quick", action="store_true", help="short streams and two windows")
    run.add_argument("--windows", type=_numbers, help="windows in events of a partition, such as 500,2000")
    run.add_argument("--length", type=int, help="windows of each symbol in a stream (the paper: 200)")
    run.add_argument("--repeat", type=int, help="timed runs of each side")
    run.add_argument("--known", type=int, help="events of the streams whose counts are known (100000)")
    run.add_argument("--queries", type=_words, help="only these, such as p1s3,p2s3")
    run.add_argument("--clock", choices=list(CLOCKS), help="wall time, or what this process uses of the processor")
    run.add_argument("--out", type=Path, help="write the results as JSON")
    run.add_argument("--figures", type=Path, help="a folder to draw figure 8 into")
    commands.add_parser("list", help="print the queries")
    commands.add_parser("count", help="print the known counts, from plain loops")
    return parser


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _run(console: Console, plan: Plan, out: Path | None, figures: Path | None) -> int:
    load = report.load_average()
    rows: list[Row] = []
    with one_core(), console.status("") as status:
        suite = Suite(plan, status.update)
        wrong = list(suite.known())
        rows += suite.rows()
    wrong += [f"{row.query}, W = {row.window}: {row.wrong}" for row in rows if row.wrong]
    report.print_all(console, rows)
    console.print(f"load of the machine: {load} before, {report.load_average()} after", highlight=False)
    for line in wrong:
        console.print(f"[red]wrong[/red] {line}", highlight=False)
    if out:
        report.save(out, rows, plan, wrong, load)
    if figures:
        from benchmarks.papers.sase.figures import draw

        draw([row.record() for row in rows], figures)
    return 1 if wrong else 0


def _list(console: Console) -> int:
    for kind, names in DEFINITIONS["queries"].items():
        for name in names:
            console.print(f"[bold]{name}[/bold] ({kind})")
            console.print(case(name).text(1000), style="dim", markup=False, highlight=False)
    return 0


def _count(console: Console) -> int:
    table = stocks(100_000)
    for known in DEFINITIONS["known"]:
        for name in known:
            if name not in ("within", "starts"):
                found = oracle.count(case(name), table, known["within"])
                console.print(
                    f"within {known['within']}, {name}: {found[0]} matches, {found[1]} events", highlight=False
                )
    return 0
