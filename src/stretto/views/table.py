"""Matches as a table that people read."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.events import as_table
from stretto.views.clock import Clock
from stretto.views.columns import Columns, dated, events_of, first_of, is_time, one_array, texts_of, worth_writing
from stretto.views.html import Cell
from stretto.views.html import table as html_table
from stretto.views.text import clean
from stretto.views.view import View

#: So many characters are as wide as a line of text may be asked for.
WIDEST = 10_000


@dataclass(frozen=True)
class _Column:
    name: str
    below: str  #: under the name: the attributes of events
    cells: list[Cell]


@check_arguments
def show(
    matches: Any, *, rows: int = 20, events: int = 5, width: int | None = None, time_unit: str | None = None
) -> View:
    """Show matches as a readable table: keys first, times as times, the events of variables in few words, long lists counted.

    Parameters
    ----------
    matches
        What :func:`stretto.match` gives, or any table that Arrow reads.
    rows
        How many rows are shown; 0: all.
    events
        How many events of a variable are shown.
    width
        Of the text, in characters; ``None``: as wide as the terminal.
    time_unit
        What integer times count since 1970: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; ``None``: they stay numbers.

    Returns
    -------
    View
        ``str()`` gives text, a notebook shows HTML, ``save()`` writes ``.html`` or ``.txt``.

    Examples
    --------
    >>> import stretto
    >>> matches = stretto.match("SELECT * FROM S WHERE A; B", [{"type": "A", "x": 5}, {"type": "B", "x": 7}])
    >>> print(stretto.show(matches, width=60))
    start  end  positions  A x  B x
        0    1  0, 1       5    7
    1 row
    """
    whole = as_table(matches)
    if rows < 0 or events < 1:
        raise OptionError(f"show(rows={rows}, events={events}): rows is 0 or more, and events at least 1")
    if width is not None and not 1 <= width <= WIDEST:
        raise OptionError(f"show(width={width}): the width is a number of characters, from 1 to {WIDEST:,}")
    count = whole.num_rows
    part = whole.slice(0, rows or count)
    more = f", {part.num_rows:,} shown" if part.num_rows < count else ""
    remark = f"{count:,} row{'' if count == 1 else 's'}{more}"
    columns = _columns(dated(part, time_unit), events)
    text = _text(columns, width)
    return View(f"{text}{remark}", lambda: _html(columns, remark))


def grid(table: pa.Table, events: int = 5, time_unit: str | None = None) -> RichTable:
    """Make a table for a terminal, of all rows."""
    return _grid(_columns(dated(table, time_unit), events))


def _columns(table: pa.Table, most: int) -> list[_Column]:
    known = Columns.of(table.schema)
    days = _days(table, known)
    made = {name: _column(name, one_array(table.column(name)), known, days, most) for name in known.shown}
    rows = [*zip(*(map(_written, one.cells) for one in made.values()), strict=True)]
    if len(set(rows)) < len(rows):  # what is shown of several matches is the same: their places tell them apart
        made |= {name: _column(name, one_array(table.column(name)), known, days, most) for name in known.places}
    return [made[name] for name in known.all if name in made]


def _written(cell: Cell) -> tuple[str, ...]:
    return tuple(cell.lines)


def _days(table: pa.Table, known: Columns) -> list[Any]:
    """The day on which each match begins."""
    if not known.times or not is_time(table.schema.field("start_time").type):
        return [None] * table.num_rows
    clock = Clock(table.schema.field("start_time").type)
    moments = [None if number is None else clock.moment(number) for number in clock.numbers(table.column("start_time"))]
    return [None if moment is None else moment.date() for moment in moments]


def _column(name: str, column: pa.Array, known: Columns, days: list[Any], most: int) -> _Column:
    if name in known.variables:
        lengths, structs, taken = first_of(column, most)
        chosen, over = worth_writing(name, structs, known.keys)
        below = [*chosen, f"… {over} more"] if over else chosen
        repeated = [day for day, count in zip(days, taken, strict=True) for _ in range(count)]
        found = iter(events_of(structs, chosen, repeated))
        cells = [_events([next(found) for _ in range(count)], of) for count, of in zip(taken, lengths, strict=True)]
        return _Column(name, " ".join(below), cells)
    texts = texts_of(column, days if name == "end_time" else None)
    number = bool(
        pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
    )
    if name in known.sign:
        texts = ["+" if text == "1" else "−" for text in texts]
    return _Column(name, "", [Cell([text], number=number) for text in texts])


def _events(events: list[Any], of: int) -> Cell:
    """The events of a variable, a line for each."""
    lines = [event.text or "·" for event in events]
    return Cell(lines + [f"… {of - len(events):,} more"] * (of > len(events)), [event.title for event in events])


def _text(columns: Sequence[_Column], width: int | None) -> str:
    if not columns or not columns[0].cells:
        return ""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, legacy_windows=False)
    console.print(_grid(columns))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _grid(columns: Sequence[_Column]) -> RichTable:
    made = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        number = bool(column.cells) and all(one.number for one in column.cells)
        head = Text(clean(column.name))
        if column.below:
            head.append(" " + clean(column.below), style="dim not bold")
        made.add_column(head, justify="right" if number else "left", overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*(Text("\n".join(map(clean, cell.lines))) for cell in row))
    return made


def _html(columns: Sequence[_Column], remark: str) -> ET.Element:
    heads = [(column.name, column.below) for column in columns]
    return html_table(heads, zip(*(column.cells for column in columns), strict=True), remark)
