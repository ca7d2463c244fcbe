"""What goes out: raw matches of an engine become an Arrow table, one row a match.

Columns, in this order: ``start``, ``end`` (int64) and ``positions`` (list<int64>, ascending), ``start_time`` and
``end_time`` where a time is known, the partition attributes, and for each selected variable the list of its events
(list<struct>). A variable whose name is taken gets a trailing underscore.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.engines.tecs.state import Matches
from stretto.errors import OptionError
from stretto.pattern.passes.bind import BoundQuery

__all__ = ["History", "Layout", "Rows", "TableRows", "build_table"]

I64 = NDArray[np.int64]

OUTPUTS = ("events", "positions")


class Rows(Protocol):
    """Where the events of a match are looked up by position."""

    def take(self, positions: I64, columns: Sequence[str]) -> pa.Table:
        """The named columns of the events at ``positions``, in that order."""


class TableRows:
    """All events in one table; a position is a row number."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def take(self, positions: I64, columns: Sequence[str]) -> pa.Table:
        return self.table.select(list(columns)).take(pa.array(positions))


class History:
    """The events of a stream that a match may still hold: pieces of the batches that went by."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.pieces: list[tuple[I64, pa.Table]] = []
        self.rows = 0
        self._joined: tuple[I64, pa.Table] | None = None

    def append(self, positions: I64, table: pa.Table) -> None:
        """Keep the next events; ``positions`` ascend."""
        if positions.size:
            self.pieces.append((positions, table))
            self.rows += positions.size
            self._joined = None

    def forget(self, oldest: int) -> None:
        """Drop the events before position ``oldest``."""
        kept = []
        for positions, table in self.pieces:
            gone = int(np.searchsorted(positions, oldest))
            if gone < positions.size:
                kept.append((positions[gone:], table.slice(gone)) if gone else (positions, table))
        self._replace(kept)

    def retain(self, live: I64) -> None:
        """Keep only the events at the positions ``live`` (sorted)."""
        kept = []
        for positions, table in self.pieces:
            at = np.searchsorted(live, positions)
            found = np.zeros(positions.size, np.bool_)
            inside = at < live.size
            found[inside] = live[at[inside]] == positions[inside]
            if found.any():
                kept.append((positions[found], table.filter(pa.array(found))))
        self._replace(kept)

    def _replace(self, pieces: list[tuple[I64, pa.Table]]) -> None:
        self.pieces = pieces
        self.rows = sum(positions.size for positions, _ in pieces)
        self._joined = None

    def joined(self) -> tuple[I64, pa.Table]:
        """All kept events: their positions and one table."""
        if self._joined is None:
            if len(self.pieces) > 16:
                positions = np.concatenate([p for p, _ in self.pieces])
                whole = pa.concat_tables([t for _, t in self.pieces], promote_options="permissive").combine_chunks()
                self.pieces = [(positions, whole)]
            if not self.pieces:
                return np.empty(0, np.int64), pa.table({})
            self._joined = (
                np.concatenate([p for p, _ in self.pieces]),
                pa.concat_tables([t for _, t in self.pieces], promote_options="permissive"),
            )
        return self._joined

    def take(self, positions: I64, columns: Sequence[str]) -> pa.Table:
        known, table = self.joined()
        return table.select(list(columns)).take(pa.array(np.searchsorted(known, positions)))

    @property
    def nbytes(self) -> int:
        """Bytes of the kept columns."""
        return sum(table.nbytes + positions.nbytes for positions, table in self.pieces)


class Layout:
    """Which columns a result has, and what of the events it needs.

    Parameters
    ----------
    query
        The bound query.
    output
        ``"events"`` or ``"positions"`` (the same without the variables' events).
    positions
        Whether ``start``, ``end`` and ``positions`` are part of it.
    """

    def __init__(self, query: BoundQuery, *, output: str = "events", positions: bool = True) -> None:
        self.check(output)
        self.query = query
        self.positions = positions
        self.variables = query.selected if output == "events" else ()
        taken = {"start", "end", "positions", "start_time", "end_time", *query.partition_by}
        self.names: list[str] = []
        for variable, _ in self.variables:
            name = variable
            while name in taken:
                name += "_"
            taken.add(name)
            self.names.append(name)

    @staticmethod
    def check(output: str) -> None:
        """Raise an :class:`OptionError` unless ``output`` is one."""
        if output not in OUTPUTS:
            raise OptionError(f"output={output!r}: expected 'events' or 'positions'")

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes of events that the result shows, in the schema's order."""
        used = set(self.query.partition_by)
        if self.query.time:
            used.add(self.query.time)
        for _, attributes in self.variables:
            used.update(attributes)
        return tuple(name for name in self.query.schema.attributes if name in used)

    def schema(self) -> pa.Schema:
        """The result's Arrow schema."""
        attributes = self.query.schema.attributes
        fields = []
        if self.positions:
            fields += [pa.field("start", pa.int64()), pa.field("end", pa.int64())]
            fields.append(pa.field("positions", pa.list_(pa.int64())))
        if self.query.time:
            kind = attributes[self.query.time]
            fields += [pa.field("start_time", kind), pa.field("end_time", kind)]
        fields += [pa.field(name, attributes[name]) for name in self.query.partition_by]
        for name, (_, chosen) in zip(self.names, self.variables, strict=True):
            struct = pa.struct([pa.field(a, attributes[a]) for a in chosen])
            fields.append(pa.field(name, pa.list_(struct)))
        return pa.schema(fields)


def build_table(
    found: Iterable[Matches], layout: Layout, rows: Rows, marks: Sequence[frozenset[str]], order: I64 | None = None
) -> pa.Table:
    """Raw matches as a table.

    Parameters
    ----------
    found
        Raw matches, in order.
    layout
        The columns to make.
    rows
        Where events are looked up.
    marks
        The label sets of the engine's marks.
    order
        Where the stream was sorted: the row of the input at each position of the stream.
    """
    parts = [_build(matches, layout, rows, marks, order) for matches in found if matches.start.size]
    schema = layout.schema()
    if not parts:
        return schema.empty_table()
    return pa.Table.from_batches(parts, schema=schema)


def _build(
    found: Matches, layout: Layout, rows: Rows, marks: Sequence[frozenset[str]], order: I64 | None
) -> pa.RecordBatch:
    schema = layout.schema()
    columns: list[pa.Array] = []
    query = layout.query
    if layout.positions:
        columns += _position_columns(found, order)
    if query.time:
        for ends in (found.start, found.end):
            columns.append(_one(rows.take(ends, [query.time]).column(0)))
    if query.partition_by:
        keys = rows.take(found.end, query.partition_by)
        columns += [_one(keys.column(name)) for name in query.partition_by]
    for variable, attributes in layout.variables:
        columns.append(_variable_column(found, variable, attributes, rows, marks))
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * found.start.size, pa.struct([])))
    return pa.RecordBatch.from_arrays(
        [c.cast(f.type) if c.type != f.type else c for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def _position_columns(found: Matches, order: I64 | None) -> list[pa.Array]:
    start, end, positions = found.start, found.end, found.position
    if order is not None:
        start, end, positions = order[start], order[end], order[positions]
        row = np.repeat(np.arange(found.start.size), np.diff(found.offset))
        positions = positions[np.lexsort((positions, row))]
    return [pa.array(start), pa.array(end), _lists(found.offset, pa.array(positions))]


def _lists(offset: I64, values: pa.Array) -> pa.Array:
    if offset[-1] > np.iinfo(np.int32).max:
        raise OptionError("one batch of matches holds more than 2^31 positions; read it in smaller pieces")
    return pa.ListArray.from_arrays(pa.array(offset.astype(np.int32)), values)


def _variable_column(
    found: Matches, variable: str, attributes: Sequence[str], rows: Rows, marks: Sequence[frozenset[str]]
) -> pa.Array:
    holds = np.array([variable in labels for labels in marks], np.bool_)
    mine = holds[found.mark]
    counts = np.zeros(found.position.size + 1, np.int64)
    np.cumsum(mine, out=counts[1:])
    events = rows.take(found.position[mine], attributes)
    fields = [pa.field(a, events.schema.field(a).type) for a in attributes]
    struct = pa.StructArray.from_arrays([_one(events.column(a)) for a in attributes], fields=fields)
    return _lists(counts[found.offset], struct)


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks == 1 else pa.concat_arrays(combined.chunks)
    return combined
