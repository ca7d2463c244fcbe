"""The command line: ``python -m benchmarks run``, ``list`` and ``count``; without a command, ``run --quick``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks import data, oracle, report
from benchmarks.definitions import Definition, load_all
from benchmarks.runner import Options, Row, Runner

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    given = sys.argv[1:] if arguments is None else arguments
    chosen = _parser().parse_args(given or ["run", "--quick"])
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    definitions = _select(load_all(), chosen.names)
    if chosen.command == "list":
        report.print_list(console, definitions, chosen.queries)
        return 0
    if chosen.command == "count":
        return _count(console, definitions)
    return _run(console, definitions, chosen)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, and check counts")
    run.add_argument("names", nargs="*", help="families (default: all); a part of a name is enough")
    run.add_argument("--quick", action="store_true", help="smaller streams and fewer queries, for a few minutes")
    run.add_argument("--peer", action=argparse.BooleanOptionalAction, default=True, help="measure the peer as well")
    run.add_argument("--oracle", action="store_true", help="count the matches in a second way as well")
    run.add_argument("--repeat", type=int, default=40, help="timed runs of a query, at most")
    run.add_argument("--out", type=Path, help="write the results as JSON")
    count = commands.add_parser("count", help="print the expected counts, from the oracle alone")
    count.add_argument("names", nargs="*")
    show = commands.add_parser("list", help="say what there is to run")
    show.add_argument("names", nargs="*")
    show.add_argument("--queries", action="store_true", help="print the queries' texts")
    return parser


def _select(definitions: list[Definition], names: list[str]) -> list[Definition]:
    if not names:
        return definitions
    chosen = [definition for definition in definitions if any(name in definition.name for name in names)]
    if not chosen:
        raise SystemExit(f"no family is named like {', '.join(names)}")
    return chosen


def _run(console: Console, definitions: list[Definition], chosen: argparse.Namespace) -> int:
    options = Options(quick=chosen.quick, peer=chosen.peer, oracle=chosen.oracle, repeat=chosen.repeat)
    runner = Runner(options, console.print)
    rows: list[Row] = []
    try:
        for definition in definitions:
            found = _run_family(console, runner, definition)
            rows += found
            report.print_family(console, definition, found)
    finally:
        runner.close()
        if chosen.out and rows:
            report.save(chosen.out, rows, runner.peer_trouble)
    wrong = [row for row in rows if row.wrong]
    for row in wrong:
        console.print(f"[red]wrong[/red] {row.family}, {row.case} on {row.stream}: {row.wrong}")
    return 1 if wrong else 0


def _count(console: Console, definitions: list[Definition]) -> int:
    for definition in definitions:
        for case in definition.cases:
            for stream in dict.fromkeys((*definition.quick, *definition.full)):
                found = oracle.count(case.query, data.pieces(definition.data[stream]))
                where = f"{definition.name}, {case.name} on {stream}"
                console.print(f"{where}: {found.matches} matches, {found.triggers} triggers", highlight=False)
    return 0


def _run_family(console: Console, runner: Runner, definition: Definition) -> list[Row]:
    rows = []
    with console.status(definition.title) as status:
        for row in runner.run(definition):
            status.update(f"{definition.title}: {row.case} on {row.stream}")
            rows.append(row)
    return rows
