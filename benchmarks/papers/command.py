"""What the command lines of the papers' benchmarks share: a console, options, and a run that is printed and recorded."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.papers.measuring import CLOCKS, load_average, one_core

__all__ = ["asked", "console", "measure", "number", "parser", "print_queries", "words"]


def console(width: int = 160) -> Console:
    """The terminal, or ``width`` columns where there is none."""
    found = Console()
    return found if found.is_terminal else Console(width=width)


def words(text: str) -> tuple[str, ...]:
    """An option that is a list: ``8,9``."""
    return tuple(text.split(","))


def number(text: str) -> int:
    """An option that is a large number: ``1e6``."""
    return int(float(text))


def parser(
    program: str, about: str | None, *, small: str
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser, Any]:
    """A parser, that of its command ``run``, and its commands, to which others are added; ``small`` says what ``--quick`` runs."""
    found = argparse.ArgumentParser(prog=program, description=about)
    commands = found.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, and check counts")
    run.add_argument("--quick", action="store_true", help=small)
    run.add_argument("--repeat", type=int, help="timed runs of each side")
    run.add_argument("--clock", choices=list(CLOCKS), help="what this process uses of the processor, or wall time")
    run.add_argument("--out", type=Path, help="write the results as JSON")
    return found, run, commands


def asked(plan: Any, chosen: argparse.Namespace, names: Iterable[str]) -> Any:
    """A plan with what the command line says of it."""
    given = {name: getattr(chosen, name) for name in names}
    return replace(plan, **{name: value for name, value in given.items() if value is not None})


def measure(terminal: Console, suite_of: Any, plan: Any, report: Any, out: Path | None) -> int:
    """Run a suite, print it, and record it after every row; 1 when a count was wrong."""
    load = load_average()
    rows: list[Any] = []
    with one_core(), terminal.status("") as status:
        suite = suite_of(plan, status.update)
        for row in suite.rows():
            rows.append(row)
            if out:
                report.save(out, rows, plan, suite.skipped, load)
    if out:
        report.save(out, rows, plan, suite.skipped, load)
    report.print_all(terminal, rows)
    terminal.print(f"load of the machine: {load} before, {load_average()} after", highlight=False)
    for line in suite.skipped:
        terminal.print(f"[yellow]skipped[/yellow] {line}", highlight=False)
    wrong = [row for row in rows if row.wrong]
    for row in wrong:
        terminal.print(f"[red]wrong[/red] {report.name_of(row)}: {row.wrong}", highlight=False)
    return 1 if wrong else 0


def print_queries(terminal: Console, queries: Iterable[tuple[str, str]]) -> None:
    """Titles with the queries' texts."""
    for title, text in queries:
        terminal.print(f"[bold]{title}[/bold]", highlight=False)
        terminal.print(text, style="dim", markup=False, highlight=False)
