"""``stretto sql``: SQL with MATCH_RECOGNIZE over files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from stretto.cli.options import TimeUnitOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sql")(sql)


def sql(
    text: Annotated[str, typer.Argument(help="A file with the statement, or the statement itself.", metavar="SQL")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="A table of the statement, and its files, as often as needed.",
            metavar="NAME=FILES",
        ),
    ] = None,
    time_unit: TimeUnitOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the rows: .parquet, .arrow, .jsonl or .csv.", metavar="FILE")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    rows: Annotated[int, typer.Option(help="Print at most so many rows (0: all).", min=0, metavar="NUMBER")] = 20,
) -> None:
    """Run a SQL statement with MATCH_RECOGNIZE over files."""
    import stretto
    from stretto.cli.files import read_statement_text
    from stretto.cli.output import give

    found = stretto.sql(read_statement_text(text), time_unit=time_unit, **tables_of(table or ()))
    give(found.schema, [found], lambda count: f"{count:,} row{'' if count == 1 else 's'}", out, json=json, rows=rows)


def tables_of(given: Sequence[str]) -> dict[str, Any]:
    """What ``--table`` said."""
    from stretto.cli.files import named_files

    return dict(named_files(given, "table", "--table "))
