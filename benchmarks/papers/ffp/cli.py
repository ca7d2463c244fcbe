"""The command line: ``python -m benchmarks.papers.ffp run``, ``figures`` and ``list``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.papers import command
from benchmarks.papers.ffp import queries, report
from benchmarks.papers.ffp.suite import DEFINITIONS, EXPERIMENTS, Plan, Suite
from stretto.dataflow import Dataflow

__all__ = ["main"]

FOLDER = Path(__file__).parent

#: What the command line says of a plan.
OPTIONS = ("events", "repeat", "steps", "pushes", "long", "changes", "peer", "only", "clock")


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
        "python -m benchmarks.papers.ffp", __doc__, small="short streams, few repetitions"
    )
    run.add_argument("--events", type=command.number, help="events of the native comparison")
    run.add_argument("--steps", type=command.number, help="events that are followed step by step")
    run.add_argument("--pushes", type=command.number, help="pushes of 100 events with inactivity between them")
    run.add_argument("--long", type=command.number, help="events of the memory experiment")
    run.add_argument("--changes", type=command.number, help="changes of the graph")
    run.add_argument("--peer", type=int, help="timed runs of Pathway; 0: without it")
    run.add_argument(
        "--only", type=command.words, help=f"experiments, such as native,cost; there are {', '.join(EXPERIMENTS)}"
    )
    figures = commands.add_parser("figures", help="draw the figures from results")
    figures.add_argument("results", type=Path, nargs="?", help="default: those of the newest day in recorded/")
    figures.add_argument("--folder", type=Path, default=FOLDER, help="where to")
    commands.add_parser("list", help="print experiments and queries")
    return parser


def _list(console: Console) -> int:
    for name, (shows, _) in EXPERIMENTS.items():
        console.print(f"[bold]{name}[/bold] {shows}", highlight=False)
    window = DEFINITIONS["stream"]["window"]
    plans = {
        "W, cyclic plan": Dataflow(w=queries.w_plan(window).where("q = 'F'")).explain(),
        "W, automaton": str(queries.w_afa(window)),
        "reachability": Dataflow(reach=queries.reachability()).explain(),
    }
    command.print_queries(console, plans.items())
    return 0


def _figures(results: Path | None, folder: Path) -> int:
    from benchmarks.papers.ffp.figures import draw

    files = [results] if results else list((FOLDER / "recorded").glob("????-??-??*.json"))
    newest = max(path.name[:10] for path in files)
    texts = [path.read_text(encoding="utf-8") for path in sorted(files) if path.name.startswith(newest)]
    draw([row for text in texts for row in json.loads(text)["rows"]], folder)
    return 0
