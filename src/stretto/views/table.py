"""Matches as a table that people read.

What the columns of a table of matches are, and the events of its variables as short text.

Integers that count seconds, or parts of them, as times.
"""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from stretto.arguments import check_arguments
from stretto.errors import OptionError
from stretto.events import as_table
from stretto.views.clock import Clock
from stretto.views.html import Cell
from stretto.views.html import table as html_table
from stretto.views.text import clean, short
from stretto.views.view import View

UNITS = ("s", "ms", "us", "ns")
_ENDS = ("start_time", "end_time")
#: Columns of results that hold times, beside those of events.
_TIMES = (*_ENDS, "expired", "window_start", "window_end", "since")


def dated(table: pa.Table, time_unit: str | None, time: str | None = None) -> pa.Table:
    """Make times of the integers of a result that are times: where matches and windows begin and end, and ``time`` of events.

    ``time=None``: the attribute whose least and greatest values in a match are its times. Without a ``time_unit``, or where times
    are no integers, nothing changes.

    Raises
    ------
    OptionError
        There is no such unit.
    """
    if time_unit is None:
        return table
    if time_unit not in UNITS:
        raise OptionError(f"time_unit='{time_unit}': the units of integer times are {', '.join(UNITS)}")
    name = time if time is not None else attribute_of(table)
    for number, field in enumerate(table.schema):
        column = one_array(table.column(number))
        if field.name in (*_TIMES, time) and pa.types.is_integer(column.type):
            table = table.set_column(number, field.name, _times(column, time_unit))
        elif is_events(field.type) and name is not None:
            table = table.set_column(number, field.name, _inside(column, name, time_unit))
    return table


def _times(column: pa.Array, unit: str) -> pa.Array:
    return column.cast(pa.int64()).cast(pa.timestamp(unit))


def _inside(lists: pa.Array, name: str, unit: str) -> pa.Array:
    """Lists of events, of which one attribute becomes a time."""
    structs = lists.flatten()
    names = [one.name for one in structs.type]
    if name not in names or not pa.types.is_integer(structs.type.field(name).type):
        return lists
    parts = [_times(structs.field(at), unit) if one == name else structs.field(at) for at, one in enumerate(names)]
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    offsets = pa.array([0, *lengths.cumsum().tolist()], pa.int64())
    made = pa.LargeListArray.from_arrays(offsets, pa.StructArray.from_arrays(parts, names))
    if not lists.null_count:
        return made
    return pc.if_else(lists.is_valid(), made, pa.scalar(None, made.type))


def attribute_of(table: pa.Table) -> str | None:
    """The attribute of events that goes from where the first match begins to where it ends."""
    for row in range(table.num_rows if set(_ENDS) <= set(table.column_names) else 0):
        one = table.slice(row, 1)
        low, high = (one.column(name)[0].as_py() for name in _ENDS)
        values: dict[str, list[int]] = {}
        for field in one.schema:
            for event in one.column(field.name)[0].as_py() or () if is_events(field.type) else ():
                for name, value in event.items():
                    if isinstance(value, int):
                        values.setdefault(name, []).append(value)
        fitting = [name for name, own in values.items() if min(own) == low and max(own) == high]
        if fitting:
            return fitting[0]
    return None


#: Attributes of an event that are written; the others are counted.
WRITTEN = 4


def is_events(kind: pa.DataType) -> bool:
    """Tell whether a column holds lists of events."""
    return bool((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_struct(kind.value_type))


def is_time(kind: pa.DataType) -> bool:
    """Tell whether values are times that a clock shows."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_measure(kind: pa.DataType) -> bool:
    """Tell whether values can be places on an axis."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(number or is_time(kind))


def is_positions(kind: pa.DataType | None) -> bool:
    """Tell whether a column holds lists of rows."""
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    return bool(pa.types.is_integer(kind.value_type))


def python(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Read values of Python; what Python has no value for, such as a day in a far year, as a text of its type."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = []
        for one in column:
            try:
                found.append(one.as_py())
            except (OverflowError, ValueError):
                found.append(f"a {one.type}")
    return found


@dataclass(frozen=True)
class Columns:
    """The columns of a result by what they are for."""

    sign: tuple[str, ...]
    places: tuple[str, ...]  #: start, end and positions, those that there are
    times: tuple[str, ...]  #: start_time and end_time
    keys: tuple[str, ...]  #: scalars between those and the first variable
    variables: tuple[str, ...]
    others: tuple[str, ...]
    scalars: tuple[
        str, ...
    ]  #: those of the others that hold single values; where no variable is shown, they may be keys

    @classmethod
    def of(cls, schema: pa.Schema) -> Columns:
        """Tell them by names, types and order, as ``matching/output/match_table.py`` writes them."""
        names = list(schema.names)
        kinds = {field.name: field.type for field in schema}
        places = [one for one in ("start", "end") if one in kinds and pa.types.is_integer(kinds[one])]
        places += ["positions"] * is_positions(kinds.get("positions"))
        ends = ("start_time", "end_time")
        timed = set(ends) <= set(names) and kinds[ends[0]] == kinds[ends[1]] and is_measure(kinds[ends[0]])
        times = list(ends) if timed else []
        variables = [field.name for field in schema if is_events(field.type)]
        sign = [name for name in names[:1] if name == "sign" and schema.field(0).type == pa.int8()]
        keys = []
        if (places or times) and variables:
            known = {*sign, *places, *times}
            before = names[: names.index(variables[0])]
            keys = [one for one in before if one not in known and not pa.types.is_nested(schema.field(one).type)]
        used = {*sign, *places, *times, *keys, *variables}
        others = [name for name in names if name not in used]
        scalars = [] if variables else [other for other in others if not pa.types.is_nested(schema.field(other).type)]
        return cls(*map(tuple, (sign, places, times, keys, variables, others, scalars)))

    @property
    def shown(self) -> tuple[str, ...]:
        """What a table shows: where times and events tell which match it is, its places are left out."""
        left_out = self.places if self.times and self.variables else ()
        return tuple(one for one in self.all if one not in left_out)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns, keys and times first."""
        return (*self.sign, *self.keys, *self.times, *self.places, *self.variables, *self.others)


@dataclass(frozen=True)
class Event:
    """An event of a match."""

    text: str  #: in few words
    title: str  #: with all attributes and their names
    values: dict[str, Any]


def first_of(lists: pa.Array, most: int) -> tuple[list[int], pa.Array, list[int]]:
    """Give the lengths of lists, the first few elements of each as one array, and how many those are."""
    lengths = [one or 0 for one in pc.list_value_length(lists).to_pylist()]
    taken = [min(length, most) for length in lengths]
    begins = np.asarray(lists.offsets)[:-1]
    indices = [int(begin) + at for begin, count in zip(begins, taken, strict=True) for at in range(count)]
    return lengths, lists.values.take(pa.array(indices, pa.int64())), taken


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Join the pieces of a column."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column, pa.Array):
        return column
    joined = column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = pa.concat_arrays(joined.chunks) if joined.num_chunks else pa.array([], column.type)
    return joined


def events_of(structs: pa.Array, chosen: Sequence[str], days: Sequence[Any]) -> list[Event]:
    """Read events; ``chosen`` attributes are written, and of a time of its row's day (``days``) the date is not."""
    fields = {field.name: structs.field(number) for number, field in enumerate(structs.type)}
    texts = {name: texts_of(column, days) for name, column in fields.items()}
    whole = {name: texts_of(column, None) for name, column in fields.items() if is_time(column.type)}
    values = {name: python(column) if not is_time(column.type) else whole[name] for name, column in fields.items()}
    found = []
    for at in range(len(structs)):
        written = " ".join(part for part in (texts[name][at] for name in chosen) if part)
        told = [f"{name}: {whole[name][at] if name in whole else texts[name][at]}" for name in fields]
        found.append(Event(written, "\n".join(told), {name: column[at] for name, column in values.items()}))
    return found


def leaves(structs: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Give the attributes of events with their values; those inside of structs by their paths."""
    for field, values in zip(structs.type, structs.flatten(), strict=True):
        if pa.types.is_struct(field.type):
            yield from ((f"{field.name}.{path}", inner) for path, inner in leaves(values))
        else:
            yield field.name, values


def values_of(structs: pa.Array) -> list[tuple[Any, ...]]:
    """Read the values of events, by which equal ones are told: times as numbers, what is no number as one that equals itself."""
    columns = [structs.field(number) for number in range(structs.type.num_fields)]
    read = [Clock(column.type).numbers(column) if is_time(column.type) else python(column) for column in columns]
    return [tuple(map(repr, one)) for one in zip(*read, strict=True)] if read else [()] * len(structs)


def texts_of(column: pa.Array, days: Sequence[Any] | None) -> list[str]:
    """Write the values of a column; ``days``: for each its day, on which the date of a time is left out."""
    if not is_time(column.type):
        return [short(one) for one in python(column)]
    clock = Clock(column.type)
    numbers = clock.numbers(column)
    digits = clock.digits(numbers)
    at = [None] * len(numbers) if days is None else days
    return [clock.text(number, digits, day) for number, day in zip(numbers, at, strict=True)]


def worth_writing(variable: str, structs: pa.Array, keys: Sequence[str]) -> tuple[list[str], int]:
    """Choose the attributes of events that a reader of the table does not know yet, and count those that are too many.

    Keys stand in their own columns, and an attribute whose values all are the variable's name says nothing. Where they are too many,
    those stay that differ from event to event.
    """
    names = [field.name for field in structs.type]
    worth = [name for name in names if name not in keys and not _named(variable, structs.field(names.index(name)))]
    if len(worth) > WRITTEN:
        apart = {name for name in worth if len(set(map(repr, python(structs.field(names.index(name)))))) > 1}
        first = sorted(worth, key=lambda name: name not in apart)[:WRITTEN]
        return [name for name in worth if name in first], len(worth) - WRITTEN
    return worth, 0


def _named(variable: str, column: pa.Array) -> bool:
    """Tell whether a column says the variable's name everywhere, as the types of events often do."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)) or not len(column):
        return False
    return all(str(one).lower() == variable.lower() for one in column.to_pylist())


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
