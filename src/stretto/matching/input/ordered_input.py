"""The events of one call in order, in pieces: a table in memory, or files, of which only what is needed is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import I64
from stretto.columns.gathering import Gatherer
from stretto.columns.overflow import Order
from stretto.engines.api import Run
from stretto.matching.input.files import PIECE, Source
from stretto.matching.input.k_way_merge import ROW, Streams, ascends, numbered, ordered
from stretto.matching.output.match_table import Arrivals, History
from stretto.matching.output.return_clause import Rows

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
