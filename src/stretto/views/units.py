"""Integers that count seconds, or parts of them, as times."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import OptionError
from stretto.views.columns import is_events, one_array

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
