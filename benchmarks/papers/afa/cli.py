"""The command line: ``python -m benchmarks.papers.afa run``, ``figures`` and ``list``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.papers import command
from benchmarks.papers.afa import flink, queries, report
from benchmarks.papers.afa.suite import EXPERIMENTS, Plan, Suite

__all__ = ["main"]

FOLDER = Path(__file__).parent

#: What the command line says of a plan.
OPTIONS = ("events", "repeat", "long", "flink", "only", "clock", "yahoo")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    chosen = _parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    terminal = command.console()
    if chosen.command == "list":
        return _list(terminal)
    if chosen.command == "figures":
        return _figures(chosen.results, chosen.folder)
    plan: Plan = command.asked(Plan.of("quick" if chosen.quick else "full"), chosen, OPTIONS)
    unknown = set(plan.only) - EXPERIMENTS.keys()
    if unknown:
        terminal.print(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
        return 2
    return command.measure(terminal, Suite, plan, report, chosen.out)


def _parser() -> argparse.ArgumentParser:
    parser, run, commands = command.parser(
        "python -m benchmarks.papers.afa", __doc__, small="short streams, few repetitions"
    )
    run.add_argument("--events", type=command.number, help="events of a stream (the paper: 100,000)")
    run.add_argument("--long", type=command.number, help="events of the memory experiment")
    run.add_argument("--flink", type=command.number, help="events for Flink; 0: without it")
    run.add_argument("--only", type=command.words, help=f"experiments, such as 8,9; there are {', '.join(EXPERIMENTS)}")
    run.add_argument("--yahoo", type=Path, help="Yahoo's daily prices as CSV (default: in the folder STRETTO_DATA)")
    figures = commands.add_parser("figures", help="draw the figures from results")
    figures.add_argument("results", type=Path, nargs="?", help="default: the newest file of recorded/")
    figures.add_argument("--folder", type=Path, default=FOLDER, help="where to")
    commands.add_parser("list", help="print experiments and queries")
    return parser


def _list(console: Console) -> int:
    for name, (shows, _) in EXPERIMENTS.items():
        console.print(f"[bold]{name}[/bold] {shows}", highlight=False)
    automata = {
        "Q1, k = 2": queries.q1(2000),
        "Q1, k = 2, AFA+ignore": queries.q1(2000, ignores=True),
        "Q1, k = 2, CAN": queries.embedded(2000),
        "Q2": queries.q2(500),
        "Q3": queries.q3(2000),
        "V": queries.v(2000),
    }
    command.print_queries(console, ((title, str(afa)) for title, afa in automata.items()))
    command.print_queries(console, ((f"{title}, Flink SQL", text) for title, text in flink.statements(2).items()))
    return 0


def _figures(results: Path | None, folder: Path) -> int:
    from benchmarks.papers.afa.figures import draw

    path = results or max((FOLDER / "recorded").glob("????-??-??.json"))
    draw(json.loads(path.read_text(encoding="utf-8"))["rows"], folder)
    return 0
