"""Events that wait: sorted runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64, Bits

#: Times as ticks, or real numbers.
Times = NDArray[Any]

#: Pushes are read in pieces of this many rows.
CHUNK = 1 << 16


class Released(NamedTuple):
    """What an operation lets through."""

    table: pa.Table
    rows: I64  #: the row of each event, counted over all that were pushed; a revised event keeps its first
    #: After which operation each event goes, if asked for: 2i is a punctuation before row i of the push, 2i + 1 row i itself.
    places: I64


@dataclass(frozen=True, slots=True)
class Run:
    """Events in the order of (time, tie, row)."""

    time: Times
    tie: I64 | None
    row: I64
    batch: pa.RecordBatch
    alive: Bits | None = None  #: ``None``: all
    whole: int = 0  #: rows of the arrays that this is a part of

    @property
    def size(self) -> int:
        return int(self.time.size)

    @property
    def living(self) -> int:
        return self.size if self.alive is None else int(np.count_nonzero(self.alive))

    def part(self, begin: int, end: int) -> Run:
        return Run(
            self.time[begin:end],
            None if self.tie is None else self.tie[begin:end],
            self.row[begin:end],
            self.batch.slice(begin, end - begin),
            None if self.alive is None else self.alive[begin:end],
            max(self.whole, self.size),
        )

    def taken(self, at: I64) -> Run:
        """A copy of some events."""
        return Run(
            self.time[at],
            None if self.tie is None else self.tie[at],
            self.row[at],
            self.batch.take(pa.array(at)),
        )

    def plain(self) -> Run:
        """Without those that were retracted."""
        return self if self.alive is None else self.taken(np.flatnonzero(self.alive))

    def small(self) -> Run:
        """A copy, where this is a little part of something great, which would be held by it."""
        return self.taken(np.arange(self.size)) if 4 * self.size < self.whole and self.alive is None else self


def one_batch(table: pa.Table) -> pa.RecordBatch:
    whole = table.combine_chunks()
    batches = whole.to_batches()
    if len(batches) == 1:
        return batches[0]
    arrays = [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type) for column in whole.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=whole.schema)


def segments(
    rows: int, punctuations: Sequence[tuple[int, int | float]]
) -> Iterator[tuple[int, int, int | float | None]]:
    """Pieces of a push, with the punctuations (begin, begin, time) between them."""
    begin = 0
    for row, time in (*punctuations, (rows, None)):
        while begin < row:
            end = min(row, begin + CHUNK)
            yield begin, end, None
            begin = end
        if time is not None:
            yield row, row, time


def concatenated(parts: Sequence[Run]) -> tuple[Times, I64 | None, I64]:
    """Times, ties and rows."""
    if len(parts) == 1:
        return parts[0].time, parts[0].tie, parts[0].row
    ties = [part.tie for part in parts if part.tie is not None]
    return (
        np.concatenate([part.time for part in parts]),
        np.concatenate(ties) if ties else None,
        np.concatenate([part.row for part in parts]),
    )


def ascends(keys: Sequence[NDArray[Any]]) -> bool:
    """Whether rows are ordered by the first key, then the second, …"""
    tied: Bits | None = None
    for key in keys:
        falls = key[1:] < key[:-1]
        if (falls if tied is None else falls & tied).any():
            return False
        equal = key[1:] == key[:-1]
        tied = equal if tied is None else equal & tied
        if not tied.any():
            break
    return True


def expanded(run: Run, times: Times) -> I64:
    """Where a run has events of some times (sorted) that are not gone."""
    begin, end = np.searchsorted(run.time, times, side="left"), np.searchsorted(run.time, times, side="right")
    sizes = end - begin
    at = np.repeat(begin - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes) + np.arange(sizes.sum())
    return at if run.alive is None else at[run.alive[at]]
