"""A stream through Cleanse before the operator (section 5.3): events wait until they are below punctuation + speculation factor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import stretto
from benchmarks.papers.afa.sides import BATCH, Outcome, batches_with
from benchmarks.papers.afa.sides import run as run_batches
from benchmarks.papers.afa.streams import Stream
from benchmarks.papers.measuring import CLOCKS

__all__ = ["Cleansed", "cleansed", "run"]

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Cleansed:
    """What Cleanse hands on."""

    stream: Stream
    step: I64  #: for each row: twice the rows before the operation that let it through, and one more if that was an arrival

    @property
    def waited(self) -> int:
        """How many events had to wait."""
        return int(np.count_nonzero(self.step % 2 == 0))


def cleansed(stream: Stream, factor: int | None) -> Cleansed:
    """What Cleanse hands on of a stream; ``None``: as it comes."""
    cleanse = stretto.Cleanse(stream.table.schema, time="t", speculation=math.inf if factor is None else factor)
    tables, steps, begin = [], [], 0
    for table, pairs in stream.batches(BATCH):
        # A punctuation behind the last row is one before the first row of the next batch.
        found = cleanse.let(table, pairs, places=True)
        tables.append(found.table)
        steps.append(found.places + 2 * begin)
        begin += table.num_rows
    rest = cleanse.end()
    steps.append(np.full(rest.table.num_rows, 2 * begin))
    step = np.concatenate(steps)
    at = np.array([row for row, _ in stream.punctuations], np.int64)
    before = np.searchsorted(step, 2 * at, side="right")
    pairs = zip(before.tolist(), [time for _, time in stream.punctuations], strict=True)
    return Cleansed(Stream(pa.concat_tables([*tables, rest.table]).combine_chunks(), tuple(pairs)), step)


def run(
    afa: stretto.AFA, stream: Stream, factor: int | None, clock: str = "cpu", **options: Any
) -> tuple[Outcome, dict[str, float]]:
    """A run through Cleanse and the operator, and how long output waits: the mean and the most, in milliseconds of the stream.

    An event arrives each millisecond, so rows are milliseconds. An output waits from the arrival of the latest of its events until it
    is given; what the operator itself needs for an event is added by whoever shows it.
    """
    now = CLOCKS[clock]
    start = now()
    handed = cleansed(stream, factor)
    seconds = now() - start
    outcome = run_batches(afa, batches_with(handed.stream), clock, **options)
    outcome.seconds += seconds
    return outcome, _latency(afa, stream, handed, options) | {"waited": float(handed.waited)}


def _latency(afa: stretto.AFA, stream: Stream, handed: Cleansed, options: dict[str, Any]) -> dict[str, float]:
    """Of the insertions of a run in which all that is let through at one punctuation is pushed in one call."""
    table, step = handed.stream.table, handed.step
    latest = _Latest(np.argsort(stream.table["t"].to_numpy(), kind="stable"))
    matcher = stretto.Matcher(afa, table.schema, time="t", **options)
    waits, given = 0, 0
    most = 0
    pairs = list(handed.stream.punctuations)
    begin = 0
    for end, time in [*pairs, (table.num_rows, None)]:
        # Rows of even steps are at the end of what lies between two punctuations: they have waited for the second one.
        split = begin + int(np.searchsorted(step[begin:end] % 2 == 0, True)) if end > begin else end
        if split > begin:
            given += _insertions(matcher.push(table.slice(begin, split - begin))).num_rows
        if end > split:
            found = _insertions(matcher.push(table.slice(split, end - split)))
            if found.num_rows:
                came = latest.between(found["start_time"].to_numpy(), found["end_time"].to_numpy())
                wait = int(step[split]) // 2 - 1 - came
                given, waits, most = given + wait.size, waits + int(wait.sum()), max(most, int(wait.max()))
        if time is not None:
            matcher.advance(time)
        begin = end
    return {"mean": waits / max(1, given), "most": float(most)}


def _insertions(table: pa.Table) -> pa.Table:
    return table.filter(pa.array(table["sign"].to_numpy() > 0))


class _Latest:
    """The greatest of a range, in O(1): greatest values of all ranges whose length is a power of two."""

    def __init__(self, values: I64) -> None:
        self.levels = [values]
        while 2 ** len(self.levels) <= min(values.size, 1 << 12):
            before, half = self.levels[-1], 2 ** (len(self.levels) - 1)
            self.levels.append(np.maximum(before[:-half], before[half:]))

    def between(self, first: I64, last: I64) -> I64:
        """Greatest values from first to last, both included."""
        level = np.frexp(last - first + 1)[1] - 1
        found = np.empty(first.size, np.int64)
        for one in np.unique(level).tolist():
            here = level == one
            values = self.levels[one]
            found[here] = np.maximum(values[first[here]], values[last[here] + 1 - 2**one])
        return found
