"""The events of one call in order, in pieces: a table in memory, or files, of which only what is needed is there.

Files of several streams as one: merged by time where each lies in its order, in as much memory as a piece of each takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import I64
from stretto.column_types import family
from stretto.columns.gathering import Gatherer
from stretto.columns.overflow import Order
from stretto.engines.api import Run
from stretto.errors import DataError, OptionError
from stretto.matching.input.derived_columns import Derived
from stretto.matching.input.files import PIECE, Source
from stretto.matching.output.match_table import Arrivals, History
from stretto.matching.output.return_clause import Rows

#: The row of the input at each row that is sorted. Columns of users have other names.
ROW = "\0row"


class Streams(Source):
    """Events in files by stream; their rows are numbered one stream after the other.

    Parameters
    ----------
    sources
        The files of each stream.
    schema
        The columns of all of them.
    column
        Which of these names the stream.
    derived
        The columns that are made of those of all streams; others are made by the sources.
    """

    def __init__(
        self, sources: Mapping[str, Source], schema: pa.Schema, column: str, derived: Derived = Source.derived
    ) -> None:
        self._sources, self._column = dict(sources), column
        self.derived = derived
        self.schema = derived.added_to(schema.empty_table()).schema

    @property
    def rows(self) -> int | None:
        counts = [source.rows for source in self._sources.values()]
        return None if None in counts else sum(filter(None, counts))

    def read(
        self, names: Sequence[str], asked: pc.Expression | None = None, *, coded: bool = True
    ) -> Iterator[pa.RecordBatch | int]:
        """Do what :meth:`Source.read` does, stream by stream; nothing is asked, and nothing comes in codes, which differ by file."""
        for pieces in self.apart(names):
            yield from pieces

    def apart(self, names: Sequence[str]) -> list[Iterator[pa.RecordBatch]]:
        """The named columns of each stream."""
        return [self._read(stream, names) for stream in self._sources]

    def _read(self, stream: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        source = self._sources[stream]
        read = list(dict.fromkeys(own for name in names for own in self.derived.made_of(name)))
        made = [name for name in names if name not in read]
        known = [name for name in read if name in source.schema.names and name != self._column]
        for piece in source.read(known, coded=False):
            assert isinstance(piece, pa.RecordBatch)
            found = pa.RecordBatch.from_arrays([self._of(stream, piece, name) for name in read], read)
            if made:
                table = self.derived.among(made).added_to(pa.Table.from_batches([found]))
                found = table.select(list(names)).combine_chunks().to_batches()[0]
            yield found.select(list(names))

    def _of(self, stream: str, piece: pa.RecordBatch, name: str) -> pa.Array:
        kind = self.schema.field(name).type
        if name == self._column:
            return pa.repeat(pa.scalar(stream, kind), piece.num_rows)
        if name not in piece.schema.names:
            return pa.nulls(piece.num_rows, kind)
        try:
            return piece.column(name).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"column '{name}' of stream '{stream}' is no {kind}, as in the others: {error}") from error

    def merged(self, names: Sequence[str], by: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The named columns of all events in the order of some, and the number of each event's row (:data:`ROW`).

        Each stream lies in that order. What waits of each: the rest of a piece, and events of one time.
        """
        time, sequence = by[0], by[-1]
        pieces = [*map(_numbered, self.apart(list(dict.fromkeys([*names, *by]))), self._begins())]
        held: dict[int, pa.Table] = {}
        ends: dict[int, pa.Scalar] = dict.fromkeys(range(len(pieces)))
        until: pa.Scalar | None = None
        while ends:
            for at in [at for at, end in ends.items() if end is None or end == until]:
                piece = next(pieces[at], None)
                if piece is None:
                    del ends[at]
                    continue
                held[at] = pa.concat_tables([held[at], piece]) if at in held else piece
                ends[at] = piece.column(time)[-1]
            until = pc.min(pa.array(list(ends.values()))) if ends else None
            ready = []
            for at in sorted(held):
                table = held[at]
                count = table.num_rows if until is None else pc.sum(pc.less(table.column(time), until)).as_py() or 0
                ready.append(table.slice(0, count))
                held[at] = table.slice(count)
            if ready:
                table, _ = ordered(pa.concat_tables(ready), time, sequence)
                yield from table.combine_chunks().to_batches()

    def _begins(self) -> Iterator[int]:
        """The number of the first row of each stream."""
        begin = 0
        for source in self._sources.values():
            yield begin
            rows = source.rows
            if rows is None:
                rows = sum(piece if isinstance(piece, int) else piece.num_rows for piece in source.read([]))
            begin += rows


def numbered(piece: pa.RecordBatch, first: int) -> pa.Table:
    """A piece with the numbers of its rows."""
    rows = pa.array(np.arange(first, first + piece.num_rows))
    return pa.Table.from_batches([piece.append_column(ROW, rows)])


def _numbered(pieces: Iterator[pa.RecordBatch], first: int) -> Iterator[pa.Table]:
    for piece in pieces:
        yield numbered(piece, first)
        first += piece.num_rows


def ordered(table: pa.Table, time: str | None, sequence: str | None) -> tuple[pa.Table, I64 | None]:
    """The table in stream order, and the original row of each of its rows (``None``: as it was).

    Raises
    ------
    OptionError
        Values of the columns that are to order it cannot be compared.
    """
    if time is None:
        if sequence is None:
            return table, None
        time = sequence
    if table.column(time).null_count:
        return table, None  # the runner names the row
    if ascends(table, time, sequence):
        return table, None
    keys = {name: _comparable(table, name) for name in (time, sequence) if name is not None}
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return table.take(order), np.asarray(order).astype(np.int64)


def ascends(table: pa.Table, time: str, sequence: str | None) -> bool:
    """Whether rows lie in the order of time, those of one time in the order of ``sequence``."""
    if table.num_rows < 2:
        return True
    column = _comparable(table, time)
    earlier, later = column.slice(0, len(column) - 1), column.slice(1)
    if pc.any(pc.less(later, earlier)).as_py():
        return False
    if sequence is None or sequence == time:
        return True
    column = _comparable(table, sequence)
    tied = pc.equal(later, earlier)
    falls = pc.less(column.slice(1), column.slice(0, len(column) - 1))
    return not pc.any(pc.and_(tied, falls)).as_py()


def _comparable(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column that is to order events, in a type that Arrow compares and sorts by."""
    column = table.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind) or pa.types.is_float16(kind):
        kind = pa.float32()
    elif family(kind) == "string":
        kind = pa.large_string()
    elif pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_run_end_encoded(kind):
        raise OptionError(f"events are in no order of '{name}': {kind} has none")
    return column if kind == column.type else column.cast(kind)


#: Bytes of events of a file that are kept before the engine is asked which of them still matter: it goes through all that it holds.
SPARE = 1 << 27


class Input(Protocol):
    """The events of a call."""

    rows: Rows  #: where the events of matches are looked up
    order: Order | None  #: where they were sorted: the row of the input at each position
    total: int  #: how many there are, as far as that is known

    def batches(self, tested: Sequence[str], reader: Run) -> Iterator[pa.RecordBatch]:
        """The columns that the engine reads, piece by piece; each must be read before the next is asked for."""

    def kept(self) -> tuple[Rows, Order | None]:
        """``rows`` and ``order`` as they are now, for whoever looks up matches when the next piece is read."""


class InMemory:
    """A table in the order of the stream, or one that is sorted here.

    Parameters
    ----------
    table
        All events.
    shown
        The columns that results show.
    time, sequence
        What orders the events; ``None``: they are in order.
    numbers
        The row of the input of each row of the table; ``None``: the same.
    """

    def __init__(
        self, table: pa.Table, shown: Sequence[str], time: str | None, sequence: str | None, numbers: I64 | None = None
    ) -> None:
        self._table, order = ordered(table, time, sequence)
        self.order: Order | None = order if numbers is None else numbers if order is None else numbers[order]
        self.rows: Rows = Gatherer(self._table.select(list(shown)))
        self.total = table.num_rows

    def batches(self, tested: Sequence[str], reader: Run) -> Iterator[pa.RecordBatch]:
        """Give the columns that the engine reads, piece by piece."""
        yield from self._table.select(list(tested)).to_batches(max_chunksize=PIECE)

    def kept(self) -> tuple[Rows, Order | None]:
        """Give ``rows`` and ``order`` as they are now."""
        return self.rows, self.order


class InFiles:
    """Events in files that lie in the order of the stream; in memory is what matches may still show.

    Parameters
    ----------
    source
        The files.
    shown
        The columns that results show.
    by
        The columns of time and sequence, by which streams are merged.
    asked
        What every event fulfils that can matter; ``None``: all may.
    """

    def __init__(self, source: Source, shown: Sequence[str], by: Sequence[str], asked: pc.Expression | None) -> None:
        self._source, self._shown, self._by, self._asked = source, list(shown), by, asked
        self._history = History(shown)
        self._arrivals = Arrivals() if isinstance(source, Streams) else None
        self._kept: tuple[Rows, Order | None] | None = None
        self.rows: Rows = self._history
        self.order: Order | None = self._arrivals
        self.total = source.rows or 0

    def _pieces(self, names: list[str]) -> Iterator[pa.RecordBatch | int]:
        if isinstance(self._source, Streams):
            return self._source.merged(names, self._by)
        return self._source.read(names, self._asked)

    def batches(self, tested: Sequence[str], reader: Run) -> Iterator[pa.RecordBatch]:
        """Give ``rows`` and ``order`` as they are now."""
        for piece in self._pieces(list(dict.fromkeys([*tested, *self._shown]))):
            if isinstance(piece, int):  # nothing that is read; positions count it
                reader.rows += piece
                continue
            for begin in range(0, piece.num_rows, PIECE):
                batch = piece.slice(begin, PIECE)
                self._keep(batch, reader.rows)
                yield batch.select(list(tested))
                self._let_go(reader)

    def _keep(self, batch: pa.RecordBatch, first: int) -> None:
        self._kept = None
        if self._arrivals is not None:
            self._arrivals.append(batch.column(ROW).to_numpy())
        if self._shown:
            positions = np.arange(first, first + batch.num_rows)
            self._history.append(positions, pa.Table.from_batches([batch.select(self._shown)]))

    def _let_go(self, reader: Run) -> None:
        if self._shown:  # as a time is, without which streams are not merged
            oldest = self._history.let_go(reader, SPARE)
            if oldest is not None and self._arrivals is not None:
                self._arrivals.forget(oldest)

    def kept(self) -> tuple[Rows, Order | None]:
        """Give ``rows`` and ``order`` as they are now."""
        if self._kept is None:
            self._kept = self._history.frozen(), None if self._arrivals is None else self._arrivals.copy()
        return self._kept


def input_of(
    events: pa.Table | Source,
    tested: Sequence[str],
    shown: Sequence[str],
    time: str | None,
    sequence: str | None,
    asked: pc.Expression | None,
) -> Input:
    """The events of a call; files that do not lie in the order of their time are read into memory, without what cannot matter."""
    if isinstance(events, pa.Table):
        return InMemory(events, shown, time, sequence)
    by = [name for name in dict.fromkeys([time, sequence]) if name is not None]
    if not by or lies_in_order(events, by, asked):
        return InFiles(events, shown, by, asked)
    names = list(dict.fromkeys([*tested, *shown, *by]))
    parts, rows = [], 0
    for piece in events.read(names, asked):
        if isinstance(piece, int):
            rows += piece
            continue
        part = numbered(piece, rows)
        rows += piece.num_rows
        parts.append(part if asked is None else part.filter(asked))
    table = pa.concat_tables(parts).unify_dictionaries()
    numbers = np.asarray(table.column(ROW).to_numpy())
    return InMemory(table.drop_columns([ROW]), shown, time, sequence, numbers)


def lies_in_order(events: Source, by: list[str], asked: pc.Expression | None) -> bool:
    """Whether the events that can matter lie in the order of some columns, those of several streams each by itself."""
    if isinstance(events, Streams):
        return all(_in_order(pieces, by) for pieces in events.apart(by))
    return _in_order(events.read(by, asked), by, nulls=True)  # the engine names the row


def _in_order(pieces: Iterable[pa.RecordBatch | int], by: list[str], *, nulls: bool = False) -> bool:
    """Whether pieces, seen one by one, lie in the order of some columns; ``nulls``: what is said where one is NULL."""
    last: pa.Table | None = None
    for piece in pieces:
        if isinstance(piece, int):
            continue
        table = pa.Table.from_batches([piece])
        if any(table.column(name).null_count for name in by):
            return nulls
        joined = table if last is None else pa.concat_tables([last, table])
        if not ascends(joined, by[0], by[-1]):
            return False
        last = table.slice(table.num_rows - 1)
    return True
