"""The events of a file that grows, or of a topic, as a stream in the order of time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.columns.measured import values_of
from stretto.errors import DataError, OptionError
from stretto.matching.pattern_set.changes import Instant
from stretto.matching.reorder import Cleanse
from stretto.studio.following import Source
from stretto.studio.replay import PIECE
from stretto.studio.workbench import ROWS, Workbench

#: The last events, which are kept to be shown, are so many at least; and the pieces after which they are joined.
_KEPT = ROWS
_PIECES = 64
#: Events that wait for earlier ones.
MOST_HELD = 1_000_000


class Live:
    """What a source gives, as far as somebody asks for it. Nothing of it is read before.

    Without ``disorder`` events pass as they come, and one that is earlier than one before it is late. With ``disorder`` an event
    waits until none that is earlier may come. Events that are late, or have no time, are counted, and passed over.

    Parameters
    ----------
    bench
        It has the columns, and the roles that they play.
    source
        Where the events come from.
    disorder
        How late events may be, as ``disorder=`` says it elsewhere, as text; an empty one: they come in order.

    Raises
    ------
    OptionError
        There is no column of time, its times are decimals, or the disorder is no span of it.
    """

    def __init__(self, bench: Workbench, source: Source, disorder: str = "") -> None:
        self._bench, self._source = bench, source
        roles = bench.roles
        if roles.time is None:
            raise OptionError("a live stream needs a column of time: choose it")
        self._time = roles.time
        if pa.types.is_decimal(bench.events.schema.field(roles.time).type):
            raise OptionError(
                f"'{roles.time}' has decimals, which a live stream does not put in order: choose another time"
            )
        self._cleanse = Cleanse(
            bench.events.schema,
            time=roles.time,
            disorder=_span(disorder) if disorder.strip() else 0,
            speculation=0 if disorder.strip() else math.inf,
            late="drop",
            time_unit=roles.time_unit,
        )
        self._ready = bench.events.schema.empty_table()
        self._places = np.empty(0)
        self._recent = self._ready
        self._first: float | None = None
        self._at: float | None = None
        self._last: int | float | None = None  # the time of the last event, as the engine has it
        self._untimed = 0
        self._broken: str | None = None
        self._closed = False
        self.read = 0

    @property
    def ended(self) -> bool:
        """Whether it was closed, and what had come was read."""
        return self._closed and not self._ready.num_rows

    def close(self) -> None:
        """End it: what waits comes, and nothing else."""
        if not self._closed:
            self._closed = True
            self._source.close()
            self._take(self._cleanse.finish())

    def next(self, up_to: float, more: int) -> pa.Table | None:
        """The next piece."""
        if more <= 0 and self._at is not None and up_to < self._at:
            return None
        if not self._ready.num_rows:
            return self._more()
        size = min(PIECE, max(more, int(np.searchsorted(self._places, up_to, side="right"))))
        if size <= 0:
            return None
        piece, self._ready = self._ready.slice(0, size), self._ready.slice(size)
        places, self._places = self._places[:size], self._places[size:]
        if self._first is None:
            self._first = float(places[0])
        self._at = float(places[-1])
        self._last = values_of(piece.column(self._time).slice(piece.num_rows - 1), self._time, 0)[0].item()
        numbers = pa.array(range(self.read, self.read + piece.num_rows), pa.int64())
        self.read += piece.num_rows
        self._recent = pa.concat_tables([self._recent.slice(max(0, self._recent.num_rows - _KEPT)), piece])
        if self._recent.column(0).num_chunks > _PIECES:
            self._recent = self._recent.combine_chunks()
        return piece.append_column(self._bench.number, numbers)

    def _more(self) -> pa.Table | None:
        """Ask the source; an empty piece, if something has come."""
        if self._closed or self._broken is not None:
            return None
        try:
            found = self._source.more()
            if found is None:
                return None
            placed = timed(found, self._time)
            self._untimed += found.num_rows - placed.num_rows
            self._take(self._cleanse.push(placed))
            if self._cleanse.buffered > MOST_HELD:
                raise DataError(f"more than {MOST_HELD:,} events wait for earlier ones: say a smaller disorder")
        except DataError as error:
            self._broken = str(error)
            self._source.close()
            return None
        return self._bench.numbered.slice(0, 0)

    def _take(self, passed: pa.Table) -> None:
        if passed.num_rows:
            self._ready = pa.concat_tables([self._ready, passed])
            self._places = np.append(self._places, np.array(self._bench.places(passed), np.float64))

    def next_time(self) -> Any:
        """The next time behind that of the last event."""
        if self.ended:
            raise OptionError("the stream has ended: begin it again")
        assert self._last is not None
        kind = self._bench.events.schema.field(self._time).type
        last = self._last
        if pa.types.is_floating(kind):
            following: int | float = np.nextafter(kind.to_pandas_dtype()(last), kind.to_pandas_dtype()(math.inf)).item()
        else:
            day = {pa.date32(): 86_400, pa.date64(): 86_400_000}
            following = int(last) + day.get(kind, 1)
        return Instant.numbered(following, kind).shown

    def events_of(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        """The events of matches, as far as they are kept."""
        return self._bench.events_of(found, self._recent, self.read - self._recent.num_rows)

    def state(self) -> dict[str, Any]:
        """Where it is, and what became of the events that were not read."""
        source = self._source
        return {
            "at": self._at,
            "span": None if self._first is None else [self._first, self._at],
            "live": {
                "held": self._cleanse.buffered,
                "late": self._cleanse.late,
                "untimed": self._untimed,
                "bad": source.bad,
                "why": source.why,
                "waiting": source.waiting,
                "broken": self._broken,
            },
        }


def timed(events: pa.Table, time: str) -> pa.Table:
    """The events that have a place in time."""
    column = events.column(time)
    return events.filter(pc.is_finite(column) if pa.types.is_floating(column.type) else pc.is_valid(column))


def _span(text: str) -> Any:
    """A disorder that is typed: a number of ticks, or a span of time."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
