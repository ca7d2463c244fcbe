"""What commands do with rows that they have found: a file, JSON lines, or a table in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table as RichTable

from stretto.cli.files import as_json, write_matches


def give(
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    counted: Callable[[int], str],
    out: Path | None,
    *,
    json: bool,
    rows: int,
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
    """
    if out is not None:
        typer.echo(f"{counted(write_matches(tables, schema, out))} written to {out}", err=True)
    elif json:
        for table in tables:
            for row in table.to_pylist():
                typer.echo(as_json(row))
    else:
        _print(schema, tables, counted, rows)


def _print(schema: pa.Schema, tables: Iterable[pa.Table], counted: Callable[[int], str], most: int) -> None:
    """The first rows as a table, and how many there are."""
    shown: list[dict[str, Any]] = []
    count = 0
    for table in tables:
        if not most or len(shown) < most:
            shown += table.slice(0, (most or table.num_rows + len(shown)) - len(shown)).to_pylist()
        count += table.num_rows
    console = Console()
    if shown:
        grid = RichTable(header_style="bold")
        for name in schema.names:
            grid.add_column(name, overflow="fold")
        for row in shown:
            grid.add_row(*(_cell(row[name]) for name in schema.names))
        console.print(grid, markup=False)
    more = f", {len(shown)} shown" if len(shown) < count else ""
    console.print(f"{counted(count)}{more}", markup=False, highlight=False)


def _cell(value: Any) -> str:
    """A value in few characters: an event as its values, a long list cut."""
    if isinstance(value, dict):
        return " ".join(_cell(part) for part in value.values() if part is not None)
    if isinstance(value, tuple):  # of a map
        return "=".join(map(_cell, value))
    if isinstance(value, list):
        parts = [_cell(part) for part in value[:5]]
        return (
            "\n".join([*parts, f"… {len(value) - 5} more"] if len(value) > 5 else parts)
            if value and isinstance(value[0], dict)
            else ", ".join([*parts, f"… {len(value) - 5} more"] if len(value) > 5 else parts)
        )
    return "" if value is None else str(value)
