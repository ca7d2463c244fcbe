"""What the columns of a table of matches are, and the events of its variables as short text.

Integers that count seconds, or parts of them, as times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import OptionError
from stretto.views.clock import Clock
from stretto.views.text import short

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
