"""The events of one call in order, in pieces: a table in memory, or files, of which only what is needed is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.engines.api import Run
from stretto.matching.files import PIECE, Source
from stretto.matching.results import History, TableRows
from stretto.matching.returns import Rows

I64 = NDArray[np.int64]

#: The row of the input at each row that is sorted. Columns of users have other names.
ROW = "\0row"


class Input(Protocol):
    """The events of a call."""

    rows: Rows  #: where the events of matches are looked up
    order: I64 | None  #: where they were sorted: the row of the input at each position
    total: int  #: how many there are, as far as that is known

    def batches(self, tested: Sequence[str], reader: Run) -> Iterator[pa.RecordBatch]:
        """The columns that the engine reads, piece by piece; each must be read before the next is asked for."""


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
        self._table, order = _ordered(table, time, sequence)
        self.order = order if numbers is None else numbers if order is None else numbers[order]
        self.rows: Rows = TableRows(self._table.select(list(shown)))
        self.total = table.num_rows

    def batches(self, tested: Sequence[str], reader: Run) -> Iterator[pa.RecordBatch]:
        """As :class:`Input`."""
        yield from self._table.select(list(tested)).to_batches(max_chunksize=PIECE)


class InFiles:
    """Events in files that lie in the order of the stream; in memory is what matches may still show.

    Parameters
    ----------
    source
        The files.
    shown
        The columns that results show.
    asked
        What every event fulfils that can matter; ``None``: all may.
    """

    order: I64 | None = None

    def __init__(self, source: Source, shown: Sequence[str], asked: pc.Expression | None) -> None:
        self._source, self._shown, self._asked = source, list(shown), asked
        self._history = History(shown)
        self.rows: Rows = self._history
        self.total = source.rows or 0

    def batches(self, tested: Sequence[str], reader: Run) -> Iterator[pa.RecordBatch]:
        """As :class:`Input`."""
        for piece in self._source.read(list(dict.fromkeys([*tested, *self._shown])), self._asked):
            if isinstance(piece, int):  # nothing that is read; positions count it
                reader.rows += piece
                continue
            for begin in range(0, piece.num_rows, PIECE):
                batch = piece.slice(begin, PIECE)
                if self._shown:
                    positions = np.arange(reader.rows, reader.rows + batch.num_rows)
                    self._history.append(positions, pa.Table.from_batches([batch.select(self._shown)]))
                yield batch.select(list(tested))
                self._history.let_go(reader)


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
    if not by or _in_order(events, by, asked):
        return InFiles(events, shown, asked)
    names = list(dict.fromkeys([*tested, *shown, *by]))
    parts, rows = [], 0
    for piece in events.read(names, asked):
        if isinstance(piece, int):
            rows += piece
            continue
        numbers = pa.array(np.arange(rows, rows + piece.num_rows))
        rows += piece.num_rows
        numbered = pa.Table.from_batches([piece.append_column(ROW, numbers)])
        parts.append(numbered if asked is None else numbered.filter(asked))
    table = pa.concat_tables(parts).unify_dictionaries()
    numbers = np.asarray(table.column(ROW).to_numpy())
    return InMemory(table.drop_columns([ROW]), shown, time, sequence, numbers)


def _in_order(source: Source, by: list[str], asked: pc.Expression | None) -> bool:
    """Whether the events that can matter lie in the order of some columns, seen in these alone."""
    last: pa.Table | None = None
    for piece in source.read(by, asked):
        if isinstance(piece, int):
            continue
        table = pa.Table.from_batches([piece])
        if any(table.column(name).null_count for name in by):
            return True  # the engine names the row
        joined = table if last is None else pa.concat_tables([last, table])
        if not _ascends(joined, by[0], by[-1]):
            return False
        last = table.slice(table.num_rows - 1)
    return True


def _ordered(table: pa.Table, time: str | None, sequence: str | None) -> tuple[pa.Table, I64 | None]:
    """The table in stream order, and the original row of each of its rows (``None``: as it was)."""
    if time is None:
        if sequence is None:
            return table, None
        time = sequence
    if table.column(time).null_count:
        return table, None  # the runner names the row
    if _ascends(table, time, sequence):
        return table, None
    keys = [(time, "ascending")] + ([(sequence, "ascending")] if sequence and sequence != time else [])
    order = pc.sort_indices(table, sort_keys=keys)
    return table.take(order), np.asarray(order).astype(np.int64)


def _ascends(table: pa.Table, time: str, sequence: str | None) -> bool:
    if table.num_rows < 2:
        return True
    column = table.column(time)
    earlier, later = column.slice(0, len(column) - 1), column.slice(1)
    if pc.any(pc.less(later, earlier)).as_py():
        return False
    if sequence is None or sequence == time:
        return True
    column = table.column(sequence)
    tied = pc.equal(later, earlier)
    falls = pc.less(column.slice(1), column.slice(0, len(column) - 1))
    return not pc.any(pc.and_(tied, falls)).as_py()
