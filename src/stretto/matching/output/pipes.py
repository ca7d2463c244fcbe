"""The pipes of EQL: what becomes of a result, row by row or as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.columns.vectorized import mask
from stretto.errors import OptionError
from stretto.matching.compiled import Query
from stretto.matching.output.match_table import Layout
from stretto.query.eql import Pipe


def piped(query: Query, layout: Layout, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The tables of a result after the query's pipes; ``sort``, ``tail`` and ``unique`` hold theirs until the end.

    Parameters
    ----------
    layout
        The tables' columns; with those of the events, where a pipe reads events (:func:`reads_events`).
    """
    return reduce(lambda found, pipe: _through(found, pipe, layout), query.bound.pipes, tables)


def reads_events(query: Query) -> bool:
    """Whether a pipe asks for values of events."""
    return any(pipe.reads for pipe in query.parsed.pipes)


def refuse_pipes(query: Query, where: str, instead: str) -> None:
    """Raise an :class:`OptionError` for a query whose pipes cannot be followed."""
    for pipe in query.parsed.pipes:
        raise OptionError(f"the pipe '| {pipe}' is of a whole result, and {where}: leave it out, and {instead}")


def _through(tables: Iterator[pa.Table], pipe: Pipe, layout: Layout) -> Iterator[pa.Table]:
    match pipe.name:
        case "head":
            return _head(tables, pipe.most)
        case "tail":
            return _tail(tables, pipe.most)
        case "filter":
            return _filter(tables, pipe, layout)
        case _:
            return _whole(tables, pipe, layout)


def _filter(tables: Iterator[pa.Table], pipe: Pipe, layout: Layout) -> Iterator[pa.Table]:
    assert pipe.condition is not None
    for table in tables:
        yield table.filter(pa.array(mask(pipe.condition, _values(table, pipe, layout))))


def _whole(tables: Iterator[pa.Table], pipe: Pipe, layout: Layout) -> Iterator[pa.Table]:
    """All rows: one for each of the values, or in the order of these."""
    found = list(tables)
    if not found:
        return
    table = pa.concat_tables(found)
    values = _values(table, pipe, layout)
    if pipe.name == "sort":
        yield table.take(_order(values))
        return
    rows = pa.array(np.arange(table.num_rows))
    groups = pa.table([*values.columns, rows], [*map(str, range(values.num_columns)), "row"])
    groups = groups.group_by(groups.column_names[:-1], use_threads=False).aggregate([("row", "min")])
    yield table.take(groups.column("row_min").sort())


def _order(values: pa.Table) -> pa.Array:
    """The rows in the order of values, NULL first and NaN last; equal ones stay in theirs."""
    keys: dict[str, Any] = {}
    for at, column in enumerate(values.columns):
        keys |= {f"{at} is there": column.is_valid(), f"{at}": column}
    return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


def _values(table: pa.Table, pipe: Pipe, layout: Layout) -> pa.Table:
    """What a pipe reads of the events of each match, by what it calls it."""
    found = {}
    for shown, (number, field) in pipe.reads.items():
        events = table.column(layout.names[number]).combine_chunks()
        found[shown] = _field(pc.list_flatten(events), field.name)
    return pa.table(found or {"": pa.nulls(table.num_rows)})


def _field(events: pa.StructArray, name: str) -> pa.Array:
    """A field of events: a column, or one inside of a struct."""
    names = [own.name for own in events.type]
    if name in names:
        column = pc.struct_field(events, names.index(name))
    else:
        column = pc.struct_field(events, name.split("."))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # There is one zero, as in keys.
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def _head(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    """The first rows; nothing is read behind them."""
    for table in tables:
        yield table.slice(0, most)
        most -= table.num_rows
        if most <= 0:
            return


def _tail(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    kept: list[pa.Table] = []
    rows = 0
    for table in tables:
        kept.append(table)
        rows += table.num_rows
        while rows - kept[0].num_rows >= most and len(kept) > 1:
            rows -= kept.pop(0).num_rows
    if kept:
        whole = pa.concat_tables(kept)
        yield whole.slice(max(0, rows - most))
