"""``stretto rules``: test rules, match them, and say what they mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from stretto.cli.options import FAILED, AtEnd, DataArgument, FormatOption, SequenceOption, TimeUnitOption, TypesOption

if TYPE_CHECKING:
    import pyarrow as pa

    from stretto.pipelines.rules import RuleSet

RULES_HELP = "A folder of .toml files with rules, one such file, or a table of rules: .parquet, .csv, .jsonl or .arrow."
Rules = Annotated[str, typer.Argument(help=RULES_HELP, metavar="RULES")]
Ids = Annotated[list[str] | None, typer.Argument(help="Rules by their ids; all if none is named.", metavar="ID")]


class OnLimit(StrEnum):
    """What becomes of a rule that lists too much."""

    error = "error"
    disable = "disable"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    rules = typer.Typer(help="Rules as files: test them, match them, explain them.", no_args_is_help=True)
    rules.command("test")(run_tests)
    rules.command("match")(match)
    rules.command("explain")(explain)
    app.add_typer(rules, name="rules")


def run_tests(rules: Rules, ids: Ids = None) -> None:
    """Run the tests of rules. The exit code is 1 where one fails, or where a file is wrong."""
    read = _read(rules)
    found = read.test(ids or ())
    failed = [row for row in found.to_pylist() if not row["passed"]]
    console = Console(highlight=False)
    for row in failed:
        why = row["why"] or f"expected {row['expected']}, found {row['found']}"
        console.print(f"{row['rule']}: {row['test']}: {why}", markup=False, soft_wrap=True)
    tested = set(found.column("rule").to_pylist())
    without = [rule.id for rule in read.chosen(ids or ()) if rule.id not in tested]
    if without:
        console.print(f"without a test: {', '.join(without[:8])}{', …' if len(without) > 8 else ''}", markup=False)
    wrong = len(read.problems)
    more = f"; {wrong:,} mistake{'' if wrong == 1 else 's'} in what was read" if wrong else ""
    rules_tested = f"{len(tested):,} rule{'' if len(tested) == 1 else 's'}"
    console.print(f"{found.num_rows - len(failed):,} of {found.num_rows:,} tests passed, of {rules_tested}{more}")
    if failed or read.problems:
        raise typer.Exit(FAILED)


def match(  # noqa: PLR0913 - the options of the command
    rules: Rules,
    data: DataArgument,
    out: Annotated[
        Path | None, typer.Option(help="Write the matches: .parquet, .arrow, .jsonl or .csv.", metavar="FILE")
    ] = None,
    type_: TypesOption = None,
    format: FormatOption = None,
    time: Annotated[
        str | None, typer.Option(help="Column that orders the events, where the files do not say.", metavar="COLUMN")
    ] = None,
    sequence: SequenceOption = None,
    time_unit: TimeUnitOption = None,
    budget: Annotated[
        str | None,
        typer.Option(help="How much all rules may list: rows, bytes such as '2 GiB', or 'inf'.", metavar="AMOUNT"),
    ] = None,
    on_limit: Annotated[
        OnLimit,
        typer.Option(help="A rule that lists too much ends the command, or is switched off, and the others go on."),
    ] = OnLimit.error,
    at_end: Annotated[
        AtEnd, typer.Option(help="Matches that are not decided when DATA ends: they are left out, or complete.")
    ] = AtEnd.drop,
    state: Annotated[
        Path | None,
        typer.Option(
            help="DATA comes in rounds: go on from this file, if it is there, and write to it what the next round needs.",
            metavar="FILE",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Show a row for each rule in place of the matches.")] = False,
    rows: Annotated[int, typer.Option(help="Print at most so many rows (0: all).", min=0, metavar="NUMBER")] = 20,
) -> None:
    """Match all rules over DATA in one pass. The exit code is 1 where one of them cannot run; the others do."""
    from stretto.cli.files import budget_of, read_events, typed_columns
    from stretto.cli.output import give
    from stretto.pipelines.rules.ruleset import named_state, read_state, undecided_words, write_state

    read = _read(rules)
    column, types = typed_columns(type_ or ())
    named = column if any("=" not in one for one in type_ or ()) else None
    events = read_events(data, None if format is None else format.value, types)
    with named_state(state):
        found = read.match(
            events,
            type=named,
            time=time,
            sequence=sequence,
            time_unit=time_unit,
            budget=budget_of(budget),
            on_limit=on_limit.value,
            at_end=at_end.value,
            state=None if state is None else read_state(state),
        )
    shown = _in_lines(found.report) if report else found.matches
    what = "rule" if report else "match"
    plural = "rules" if report else "matches"
    give(shown.schema, [shown], lambda count: f"{count:,} {what if count == 1 else plural}", out, json=json, rows=rows)
    if state is not None:  # once the alerts are given
        assert found.state is not None
        write_state(state, found.state)
        if told := undecided_words(found.report):
            typer.echo(f"{told}; {state} carries them on", err=True)
    if read.problems or any(row["error"] is not None and row["concerned"] is None for row in found.report.to_pylist()):
        raise typer.Exit(FAILED)


def explain(rules: Rules, ids: Ids = None) -> None:
    """List rules, or explain some. Of those that are named it says what their queries mean and how they run.

    The exit code of a list is 1 where a file is wrong.
    """
    read = _read(rules)
    console = Console(highlight=False)
    for rule in read.chosen(ids) if ids else ():
        title = rule.given.title or "no title"
        console.print(f"{rule.id}, {rule.given.severity}: {title}", markup=False, style="bold", soft_wrap=True)
        console.print(f"{rule.file}, {rule.where}\n", markup=False, soft_wrap=True)
        console.print(rule.query.explain(), markup=False, soft_wrap=True)
    if ids:
        return
    grid = RichTable("rule", "severity", "language", "tests", "title", header_style="bold")
    for rule in read.rules:
        off = "" if rule.given.enabled else " (off)"
        tests = str(len(rule.given.test))
        grid.add_row(rule.id + off, rule.given.severity, rule.query.language, tests, rule.given.title or "")
    console.print(grid, markup=False)
    if read.problems:
        raise typer.Exit(FAILED)


def _read(rules: str) -> RuleSet:
    """The rules of files or of a table; what is wrong with them is told."""
    import stretto

    found = stretto.read_rules(rules)
    error = Console(stderr=True, highlight=False)
    for problem in found.problems:
        error.print(f"{problem}\n", markup=False, soft_wrap=True)
    return found


def _in_lines(report: pa.Table) -> pa.Table:
    """The report with the first line of each error."""
    import pyarrow as pa

    first = [None if one is None else one.partition("\n")[0] for one in report.column("error").to_pylist()]
    return report.set_column(report.column_names.index("error"), "error", pa.array(first, pa.string()))
