"""The command line: ``python -m benchmarks.papers.sase run``, ``list`` and ``count``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.papers import command
from benchmarks.papers.measuring import load_average, one_core
from benchmarks.papers.sase import oracle, report
from benchmarks.papers.sase.queries import case
from benchmarks.papers.sase.stream import stocks
from benchmarks.papers.sase.suite import DEFINITIONS, Plan, Row, Suite

__all__ = ["main"]

#: What the command line says of a plan.
OPTIONS = ("windows", "length", "repeat", "known", "queries", "clock")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    chosen = _parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    terminal = command.console(200)
    if chosen.command == "list":
        return _list(terminal)
    if chosen.command == "count":
        return _count(terminal)
    plan: Plan = command.asked(Plan.of("quick" if chosen.quick else "full"), chosen, OPTIONS)
    return _run(terminal, plan, chosen.out, chosen.figures)


def _parser() -> argparse.ArgumentParser:
    parser, run, commands = command.parser(
        "python -m benchmarks.papers.sase", __doc__, small="short streams and two windows"
    )
    run.add_argument("--windows", type=_numbers, help="windows in events of a partition, such as 500,2000")
    run.add_argument("--length", type=int, help="windows of each symbol in a stream (the paper: 200)")
    run.add_argument("--known", type=int, help="events of the streams whose counts are known (100000)")
    run.add_argument("--queries", type=command.words, help="only these, such as p1s3,p2s3")
    run.add_argument("--figures", type=Path, help="a folder to draw figure 8 into")
    commands.add_parser("list", help="print the queries")
    commands.add_parser("count", help="print the known counts, from plain loops")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _run(console: Console, plan: Plan, out: Path | None, figures: Path | None) -> int:
    load = load_average()
    rows: list[Row] = []
    with one_core(), console.status("") as status:
        suite = Suite(plan, status.update)
        wrong = list(suite.known())
        rows += suite.rows()
    wrong += [f"{row.query}, W = {row.window}: {row.wrong}" for row in rows if row.wrong]
    report.print_all(console, rows)
    console.print(f"load of the machine: {load} before, {load_average()} after", highlight=False)
    for line in wrong:
        console.print(f"[red]wrong[/red] {line}", highlight=False)
    if out:
        report.save(out, rows, plan, wrong, load)
    if figures:
        from benchmarks.papers.sase.figures import draw

        draw([row.record() for row in rows], figures)
    return 1 if wrong else 0


def _list(console: Console) -> int:
    kinds = DEFINITIONS["queries"].items()
    command.print_queries(
        console, ((f"{name} ({kind})", case(name).text(1000)) for kind, names in kinds for name in names)
    )
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
