"""The command line: ``python -m benchmarks.papers.ffp run``, ``figures`` and ``list``."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.papers.ffp import queries, report
from benchmarks.papers.ffp.sides import CLOCKS
from benchmarks.papers.ffp.suite import DEFINITIONS, EXPERIMENTS, Plan, Row, Suite
from benchmarks.papers.sase.suite import one_core
from stretto.dataflow import Dataflow

__all__ = ["main"]

FOLDER = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 when a count was wrong."""
    chosen = _parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    if chosen.command == "list":
        return _list(console)
    if chosen.command == "figures":
        return _figures(chosen.results, chosen.folder)
    plan = Plan.of("quick" if chosen.quick else "full")
    names = ("events", "repeat", "steps", "pushes", "long", "changes", "peer", "only", "clock")
    given = {name: getattr(chosen, name) for name in names}
    plan = replace(plan, **{name: value for name, value in given.items() if value is not None})
    unknown = set(plan.only) - EXPERIMENTS.keys()
    if unknown:
        console.print(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
        return 2
    return _run(console, plan, chosen.out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.ffp", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, and check counts")
    run.add_argument("--quick", action="store_true", help="short streams, few repetitions")
    run.add_argument("--events", type=_number, help="events of the native comparison")
    run.add_argument("--repeat", type=int, help="timed runs of each side")
    run.add_argument("--steps", type=_number, help="events that are followed step by step")
    run.add_argument("--pushes", type=_number, help="pushes of 100 events with inactivity between them")
    run.add_argument("--long", type=_number, help="events of the memory experiment")
    run.add_argument("--changes", type=_number, help="changes of the graph")
    run.add_argument("--peer", type=int, help="timed runs of Pathway; 0: without it")
    run.add_argument(
        "--only", type=_words, help=f"experiments, such as native,cost; there are {', '.join(EXPERIMENTS)}"
    )
    run.add_argument("--clock", choices=list(CLOCKS), help="what this process uses of the processor, or wall time")
    run.add_argument("--out", type=Path, help="write the results as JSON")
    figures = commands.add_parser("figures", help="draw the figures from results")
    figures.add_argument("results", type=Path, nargs="?", help="default: those of the newest day in recorded/")
    figures.add_argument("--folder", type=Path, default=FOLDER, help="where to")
    commands.add_parser("list", help="print experiments and queries")
    return parser


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _number(text: str) -> int:
    return int(float(text))


def _run(console: Console, plan: Plan, out: Path | None) -> int:
    load = report.load_average()
    rows: list[Row] = []
    with one_core(), console.status("") as status:
        suite = Suite(plan, status.update)
        for row in suite.rows():
            rows.append(row)
            if out:
                report.save(out, rows, plan, suite.skipped, load)
    if out:
        report.save(out, rows, plan, suite.skipped, load)
    report.print_all(console, rows)
    console.print(f"load of the machine: {load} before, {report.load_average()} after", highlight=False)
    for line in suite.skipped:
        console.print(f"[yellow]skipped[/yellow] {line}", highlight=False)
    wrong = [row for row in rows if row.wrong]
    for row in wrong:
        console.print(f"[red]wrong[/red] {report.name_of(row)}: {row.wrong}", highlight=False)
    return 1 if wrong else 0


def _list(console: Console) -> int:
    for name, (shows, _) in EXPERIMENTS.items():
        console.print(f"[bold]{name}[/bold] {shows}", highlight=False)
    window = DEFINITIONS["stream"]["window"]
    for title, text in (
        ("W, cyclic plan", Dataflow(w=queries.w_plan(window).where("q = 'F'")).explain()),
        ("W, automaton", str(queries.w_afa(window))),
        ("reachability", Dataflow(reach=queries.reachability()).explain()),
    ):
        console.print(f"[bold]{title}[/bold]", highlight=False)
        console.print(text, style="dim", markup=False, highlight=False)
    return 0


def _figures(results: Path | None, folder: Path) -> int:
    from benchmarks.papers.ffp.figures import draw

    files = [results] if results else list((FOLDER / "recorded").glob("????-??-??*.json"))
    newest = max(path.name[:10] for path in files)
    texts = [path.read_text(encoding="utf-8") for path in sorted(files) if path.name.startswith(newest)]
    draw([row for text in texts for row in json.loads(text)["rows"]], folder)
    return 0
