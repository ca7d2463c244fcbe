"""What commands do with rows that they have found: a file, JSON lines, or a table in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import typer
from rich.console import Console

from stretto.cli.files import as_json, write_matches
from stretto.views.table import grid


def give(
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    counted: Callable[[int], str],
    out: Path | None,
    *,
    json: bool,
    rows: int,
    time_unit: str | None = None,
) -> None:
    """Write rows to a file, print them as JSON lines, or show the first of them.

    Parameters
    ----------
    schema, tables
        The rows, piece by piece.
    counted
        How many there are, in words.
    out
        The file; ``None``: they are printed.
    json
        As JSON lines.
    rows
        How many a table in the terminal shows; 0: all.
    time_unit
        What integer times count, which such a table shows as dates.
    """
    if out is not None:
        typer.echo(f"{counted(write_matches(tables, schema, out))} written to {out}", err=True)
    elif json:
        for table in tables:
            for row in table.to_pylist():
                typer.echo(as_json(row))
    else:
        _print(schema, tables, counted, rows, time_unit)


def _print(
    schema: pa.Schema, tables: Iterable[pa.Table], counted: Callable[[int], str], most: int, unit: str | None
) -> None:
    """The first rows as a table, and how many there are."""
    shown: list[pa.Table] = []
    count = rows = 0
    for table in tables:
        part = table.slice(0, most - rows) if most else table
        shown += [part] * bool(part.num_rows)
        rows += part.num_rows
        count += table.num_rows
    console = Console()
    if shown:
        console.print(grid(pa.concat_tables(shown), time_unit=unit))
    more = f", {rows} shown" if rows < count else ""
    console.print(f"{counted(count)}{more}", markup=False, highlight=False)
