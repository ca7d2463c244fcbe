"""How a stream is run through an operator, and what is noted of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import stretto
from benchmarks.papers.afa.streams import Stream
from benchmarks.papers.measuring import CLOCKS

__all__ = ["Outcome", "batches_with", "restarts", "run"]

#: Rows of a batch that is pushed.
BATCH = 1 << 16

#: Batches with their punctuations and changes of arcs.
Batches = list[tuple[pa.Table, list[tuple[int, int]], pa.Table | None]]


@dataclass
class Outcome:
    """A run over a stream."""

    seconds: float
    rows: int  #: of output, those that take back included
    net: int  #: insertions minus retractions
    stats: dict[str, int] = field(default_factory=dict)
    tables: list[pa.Table] = field(default_factory=list)

    @property
    def held(self) -> int:
        """Bytes of the most partial matches, with their registers, that were held at once."""
        return self.stats.get("peak_bytes", 0)


def batches_with(stream: Stream, size: int = BATCH) -> Batches:
    """A stream's batches, without changes of arcs."""
    return [(table, pairs, None) for table, pairs in stream.batches(size)]


def run(afa: stretto.AFA, batches: Batches, clock: str = "cpu", *, keep: bool = False, **options: Any) -> Outcome:
    """Push batches into a new matcher, which is made before the clock runs; the output is an Arrow table a batch."""
    matcher = stretto.Matcher(afa, batches[0][0].schema, time="t", **options)
    matcher.push(batches[0][0].slice(0, 0))  # compiles Python functions
    now = CLOCKS[clock]
    tables = []
    start = now()
    for table, pairs, arcs in batches:
        tables.append(matcher.push(table, arcs=arcs, punctuations=pairs))
    seconds = now() - start
    stats = dict(matcher.stats)
    stats["peak_bytes"] = stats["peak"] * matcher._line.run.state.P.shape[0] * 8
    return Outcome(seconds, *size(tables), stats, tables if keep else [])


def size(tables: Iterable[pa.Table]) -> tuple[int, int]:
    """Rows of output, and insertions minus retractions."""
    rows = net = 0
    for table in tables:
        rows += table.num_rows
        net += int(pc.sum(table["sign"].cast(pa.int64())).as_py() or 0)
    return rows, net


def restarts(afas: list[stretto.AFA], stream: Stream, every: int, window: int, clock: str = "cpu") -> Outcome:
    """A new matcher at each change, fed with the active events: the last window's, whose output is passed over.

    The first automaton reads a window first, untimed; then each of the others takes over for ``every`` events.
    """
    now = CLOCKS[clock]
    tables = []
    schema = stream.table.schema
    seconds = 0.0
    for number, afa in enumerate(afas):
        begin = window + number * every
        active, fresh = stream.table.slice(begin - window, window), stream.table.slice(begin, every)
        frozen = afa.frozen  # what the user wrote is read before
        start = now()
        matcher = stretto.Matcher(frozen, schema, time="t")
        matcher.push(active)
        tables.append(matcher.push(fresh))
        seconds += now() - start
    return Outcome(seconds, *size(tables))
