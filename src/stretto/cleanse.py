"""The Cleanse operator of the AFA paper (section 5.3): events in any order in, and out when they are as certain as asked for."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.engines.afa.times import as_times, ticks
from stretto.engines.windows import values_of
from stretto.errors import DataError, OptionError, QueryError, SnapshotError, suggestion
from stretto.events import Schema, as_table, conform
from stretto.languages.afa import read_window

__all__ = ["Cleanse", "Released", "span"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: Times as ticks, or real numbers.
Times = NDArray[Any]
Arrays = dict[str, NDArray[Any]]

#: Pushes are read in pieces of this many rows.
CHUNK = 1 << 16

#: A time before all times, and one after them.
BEFORE_ALL = -((1 << 63) - 1)
AFTER_ALL = (1 << 63) - 1

#: Spans beyond this cannot be added to times in 64 bits.
LONGEST = (1 << 62) - 1

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Released(NamedTuple):
    """What an operation lets through."""

    table: pa.Table
    rows: I64  #: the row of each event, counted over all that were pushed; a revised event keeps its first
    #: After which operation each event goes, if asked for: 2i is a punctuation before row i of the push, 2i + 1 row i itself.
    places: I64


@dataclass(frozen=True, slots=True)
class _Run:
    """Events in the order of (time, tie, row)."""

    time: Times
    tie: I64 | None
    row: I64
    batch: pa.RecordBatch
    alive: Bools | None = None  #: ``None``: all
    whole: int = 0  #: rows of the arrays that this is a part of

    @property
    def size(self) -> int:
        return int(self.time.size)

    @property
    def living(self) -> int:
        return self.size if self.alive is None else int(np.count_nonzero(self.alive))

    def part(self, begin: int, end: int) -> _Run:
        return _Run(
            self.time[begin:end],
            None if self.tie is None else self.tie[begin:end],
            self.row[begin:end],
            self.batch.slice(begin, end - begin),
            None if self.alive is None else self.alive[begin:end],
            max(self.whole, self.size),
        )

    def taken(self, at: I64) -> _Run:
        """A copy of some events."""
        return _Run(
            self.time[at],
            None if self.tie is None else self.tie[at],
            self.row[at],
            self.batch.take(pa.array(at)),
        )

    def plain(self) -> _Run:
        """Without those that were retracted."""
        return self if self.alive is None else self.taken(np.flatnonzero(self.alive))

    def small(self) -> _Run:
        """A copy, where this is a little part of something great, which would be held by it."""
        return self.taken(np.arange(self.size)) if 4 * self.size < self.whole and self.alive is None else self


class Cleanse:
    """Puts a disordered stream in order, as far as is wished (AFA paper, section 5.3).

    With the latest punctuation at t, only events with a time below t + ``speculation`` are let through; others wait, in order, until
    a punctuation lets them go. With ``speculation=0`` what comes out is in order; with ``math.inf`` everything passes at once.

    What one operation lets through comes in the order of time, sequence and arrival; an event that need not wait comes out as
    soon as it comes in. Any split of the stream into pushes gives the same rows.

    Parameters
    ----------
    schema
        Names and types of the columns; ``None``: as in the first push.
    time
        The column that orders the stream: integers, floats, dates or timestamps.
    sequence
        A column of integers that orders events of the same time; ``None``: they are ordered as they arrive.
    sign
        The column that says +1 (insertion) or −1 (retraction). A retraction whose event still waits annihilates with it: neither is
        ever seen; otherwise it passes. An insertion right behind the retraction of an event with the same partition, time and
        sequence is its revision, and takes its place.
    partition_by
        Columns that, with time and sequence, tell which event is retracted. An event with a NULL in one of them is in no
        partition: it is left out.
    payload
        The columns that tell it where there is no sequence; ``None``: all.
    speculation
        How far beyond the punctuation events pass: ticks of the time column, ``'5 seconds'``, a timedelta, or ``math.inf``.
    bound
        The stream is disordered by at most so much (as ``speculation``): the punctuation follows the data, as the greatest time seen
        minus the bound (k-slack). ``None``: punctuations come by :meth:`advance` only.
    late
        What comes before the punctuation, or retracts an event that should wait and does not: ``"error"``, ``"drop"`` (counted in
        :attr:`late`) or ``"side"`` (handed over by :meth:`late_events`).
    time_unit
        What one unit of an integer time is (``s``, ``ms``, ``us``, ``ns``), for durations.

    Examples
    --------
    >>> import stretto
    >>> cleanse = stretto.Cleanse(time="t")
    >>> cleanse.push([{"t": 3}, {"t": 1}]).num_rows
    0
    >>> cleanse.advance(3).to_pylist()
    [{'t': 1}]
    >>> cleanse.finish().to_pylist()
    [{'t': 3}]
    >>> cleanse = stretto.Cleanse(time="t", bound=2)
    >>> cleanse.push([{"t": 1}, {"t": 3}, {"t": 2}, {"t": 5}]).to_pylist(), cleanse.punctuation
    ([{'t': 1}, {'t': 2}], 3)
    """

    def __init__(
        self,
        schema: Any = None,
        *,
        time: str,
        sequence: str | None = None,
        sign: str | None = None,
        partition_by: Sequence[str] = (),
        payload: Sequence[str] | None = None,
        speculation: Any = 0,
        bound: Any = None,
        late: str = "error",
        time_unit: str | None = None,
    ) -> None:
        if late not in ("error", "drop", "side"):
            raise OptionError(f"late={late!r}: expected 'error' or 'drop' or 'side'")
        self._time, self._sequence, self._sign = time, sequence, sign
        self._partition_by, self._payload = tuple(partition_by), None if payload is None else tuple(payload)
        self._speculation, self._bound = speculation, bound
        self._late_policy = late
        self._unit = time_unit
        check_span(speculation, "speculation")
        if bound is not None:
            check_span(bound, "bound")
            if bound == math.inf:
                raise OptionError(
                    "bound=inf: nothing would ever be certain; leave out bound=, and punctuate with advance()"
                )
        self._schema: pa.Schema | None = None
        self._ahead: int | float | None = None  # ticks; None: without end
        self._slack: int | float | None = None
        self._before: Any = BEFORE_ALL
        self._after: Any = AFTER_ALL
        self._punctuation: Any = BEFORE_ALL
        self._greatest: Any = BEFORE_ALL  # time seen
        self._limit: Any = BEFORE_ALL  # what is below has passed
        self._dtype: Any = np.dtype(np.int64)
        self._told: Any = None  # a punctuation before the type of the time is known
        self._finished = False
        self._rows = self._late = self._released = self._annihilated = self._peak = 0
        self._side: list[pa.RecordBatch] = []
        self._runs: list[_Run] = []
        self._revised = False  # whether a buffered event has the row of another
        if schema is not None:
            self.bind(pa.schema(list(Schema.of(schema).attributes.items())))

    # -- operations ---------------------------------------------------------------------------------------------------

    def push(self, events: Any) -> pa.Table:
        """Take the next events; those that go through.

        Raises
        ------
        DataError
            The events do not fit the schema, a time is NULL, or an event is late (with ``late="error"``). Nothing of them was taken.
        """
        return self.let(events).table

    def advance(self, time: Any) -> pa.Table:
        """A punctuation: no event before ``time`` will come. The events that it lets through; the punctuation itself follows them.

        An event at ``time`` is on time. With ``bound=`` a punctuation below the derived one says nothing new.

        Raises
        ------
        DataError
            The punctuation goes back.
        """
        if self._schema is None:
            if self._told is not None and time < self._told:
                raise DataError(f"the punctuation goes back from {self._told} to {time}")
            self._told = time
            return pa.table({})
        return self._advance(self.tick(time), 0).table

    def finish(self) -> pa.Table:
        """The stream has ended: all events that still wait."""
        return self.end().table

    @property
    def punctuation(self) -> Any:
        """No event before this time will come out any more; ``None``: none is known."""
        if self._schema is None:
            return self._told
        return None if self._punctuation == self._before else self._shown(self._punctuation)

    @property
    def late(self) -> int:
        """How many events were late, or retracted the unknown."""
        return self._late

    def late_events(self) -> pa.Table:
        """With ``late="side"``: the events that were late or retracted the unknown, since the last call."""
        if self._schema is None:
            return pa.table({})
        side, self._side = self._side, []
        return pa.Table.from_batches(side, schema=self._schema)

    @property
    def buffered(self) -> int:
        """How many events wait."""
        return sum(run.living for run in self._runs)

    @property
    def stats(self) -> dict[str, int]:
        """Counts: rows pushed, late, released, annihilated (with their retractions); rows that wait, at most, and bytes."""
        return {
            "rows": self._rows,
            "late": self._late,
            "released": self._released,
            "annihilated": self._annihilated,
            "buffered": self.buffered,
            "peak": self._peak,
            "bytes": sum(run.batch.nbytes + 16 * run.size for run in self._runs),
        }

    # -- what operators in front and behind use -----------------------------------------------------------------------

    def let(self, events: Any, punctuations: Sequence[tuple[int, Any]] = (), *, places: bool = False) -> Released:
        """As :meth:`push`, with the rows of the events.

        Parameters
        ----------
        punctuations
            Pairs of a row of the push, ascending, and the time before it.
        places
            Whether to tell after which operation each event goes.
        """
        if self._finished:
            raise OptionError("the stream is finished; start a new Cleanse, or restore a snapshot")
        table = as_table(events)
        if not table.num_columns:
            return self._nothing()
        self.bind(table.schema)
        assert self._schema is not None
        table = conform(table, self._schema.names, dict(zip(self._schema.names, self._schema.types, strict=True)))
        batch = _one_batch(table)
        before = self.saved()
        try:
            found = []
            for begin, end, time in _segments(batch.num_rows, [(row, self.tick(time)) for row, time in punctuations]):
                if time is not None:
                    found.append(self._advance(time, 2 * begin))
                elif end > begin:
                    found.append(self._take(batch.slice(begin, end - begin), begin, places))
        except DataError:
            self.load(before)
            raise
        return self._joined(found)

    def pass_on(self, time: int | float) -> Released:
        """As :meth:`advance`, of a time as the operator counts, with the rows."""
        return self._advance(time, 0)

    def end(self) -> Released:
        """As :meth:`finish`, with the rows."""
        self._finished = True
        if self._schema is None:
            return self._nothing()
        self._limit = self._after
        return self._flush(0)

    def tick(self, time: Any) -> int | float:
        """One time as the operator counts."""
        assert self._schema is not None
        kind = self._schema.field(self._time).type
        try:
            found: int | float = self._ticks(pa.array([time], kind), 0)[0].item()
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            raise OptionError(f"{time!r} is no time of '{self._time}', which is {kind}") from error
        return found

    @property
    def last_punctuation(self) -> int | float | None:
        """The punctuation as the operator counts; ``None``: none is known."""
        found: int | float = self._punctuation
        return None if found == self._before else found

    @property
    def last_time(self) -> pa.Array | None:
        """The punctuation as a column of one time; ``None``: none is known."""
        found = self.last_punctuation
        if found is None or self._schema is None:
            return None
        kind = self._schema.field(self._time).type
        return pa.array([found], kind) if pa.types.is_floating(kind) else as_times(np.array([found]), kind)

    @property
    def position(self) -> int:
        """How many rows were pushed."""
        return self._rows

    @property
    def schema(self) -> pa.Schema | None:
        """Of the events, once it is known."""
        return self._schema

    # -- one operation ------------------------------------------------------------------------------------------------

    def _take(self, batch: pa.RecordBatch, first: int, placed: bool) -> Released:
        """Rows of a push, from its row ``first`` on."""
        count = batch.num_rows
        time = self._ticks(batch.column(self._time), self._rows)
        tie = None if self._sequence is None else self._integers(batch, self._sequence, "sequence")
        sign = None if self._sign is None else self._signs(batch)
        row = np.arange(self._rows, self._rows + count)
        # The punctuation before each row and behind the last, and what each row lets through.
        nowhere = self._nowhere(batch)
        punctuation = self._punctuations(time, sign, nowhere)
        limits = self._beyond(punctuation[1:]) if self._slack is not None else np.full(1, self._limit, time.dtype)
        late = time < punctuation[:-1]
        if nowhere is not None:
            late &= ~nowhere
        if self._late_policy == "error" and late.any():
            at = int(late.argmax())
            raise DataError(
                f"row {row[at]} is late: its time is {self._shown(time[at])}, and the punctuation stands at "
                f"{self._shown(punctuation[at])}"
            )
        passes = ~late if nowhere is None else ~(late | nowhere)
        here = _Run(time, tie, row, batch)
        if sign is not None:
            waits = passes & (time >= limits)
            if (sign[waits] < 0).any():
                here = self._annihilate(here, sign, waits, passes, late)
        self._rows += count
        self._set_aside(batch, late)
        if self._slack is not None:
            self._punctuation, self._limit = punctuation[-1].item(), limits[-1].item()
            self._greatest = max(self._greatest, self._seen(time, sign, nowhere).max(initial=self._before).item())
        return self._split(here, passes, limits, first, placed)

    def _nowhere(self, batch: pa.RecordBatch) -> Bools | None:
        """Which rows are in no partition; ``None``: none."""
        found: Bools | None = None
        for name in self._partition_by:
            column = batch.column(name)
            if column.null_count:
                missing = np.asarray(column.is_null())
                found = missing if found is None else found | missing
        return found

    def _seen(self, time: Times, sign: I64 | None, nowhere: Bools | None) -> Times:
        """The times of events that come; of all else, a time before all."""
        if sign is not None:
            time = np.where(sign > 0, time, self._before)
        return time if nowhere is None else np.where(nowhere, self._before, time)

    def _punctuations(self, time: Times, sign: I64 | None, nowhere: Bools | None) -> Times:
        """The punctuation before each row, and behind the last."""
        if self._slack is None:
            return np.full(time.size + 1, self._punctuation, time.dtype)
        seen = np.empty(time.size + 1, time.dtype)
        seen[0] = self._greatest
        seen[1:] = self._seen(time, sign, nowhere)
        np.maximum.accumulate(seen, out=seen)
        if self._greatest == self._before:
            known = seen != self._before
            seen = np.where(known, np.where(known, seen, 0) - self._slack, self._before)
        else:
            seen -= self._slack
        told: Times = np.maximum(seen, self._punctuation)
        return told

    def _beyond(self, punctuation: Times) -> Times:
        """Times below this pass."""
        if self._ahead is None:
            return np.full_like(punctuation, self._after)
        if not self._ahead:
            return punctuation
        known = punctuation != self._before
        return np.where(known, np.where(known, punctuation, 0) + self._ahead, self._before)

    def _split(self, here: _Run, passes: Bools, limits: Times, first: int, placed: bool) -> Released:
        """Let through what is certain enough; the rest waits."""
        place = np.arange(2 * first + 1, 2 * (first + here.size), 2)
        if not passes.all():
            at = np.flatnonzero(passes)
            here, place = here.taken(at), place[at]
        if self._ahead is None:
            return self._released_now(here, place)
        if self._slack is None:
            # Nothing that waits goes by a row.
            through = here.time < self._limit
            if through.all():
                return self._released_now(here, place)
            at = np.flatnonzero(through)
            found = self._released_now(here.taken(at), place[at]) if at.size else self._nothing()
            self._wait(here.taken(np.flatnonzero(~through)) if at.size else here)
            return found
        order = self._order(here, stable=True)
        if order is not None:
            here, place = here.taken(order), place[order]
        cut = int(np.searchsorted(here.time, self._limit, side="left"))
        parts = self._prefixes()
        waited = sum(part.size for part in parts)
        if cut:
            parts.append(here if cut == here.size else here.part(0, cut))
        if cut < here.size:
            self._wait(here.part(cut, here.size).small() if cut else here)
        if not parts:
            return self._nothing()
        if not (self._ahead or placed):
            return self._out(parts, np.zeros(0, np.int64))
        # Row i lets go what is below its limit.
        time = np.concatenate([part.time for part in parts])
        lets = 2 * (first + np.searchsorted(limits, time, side="right")) + 1
        own = np.concatenate((np.full(waited, -1), place[:cut]))
        return self._out(parts, np.maximum(lets, own))

    def _released_now(self, here: _Run, place: I64) -> Released:
        """As they came."""
        self._released += here.size
        return Released(pa.Table.from_batches([here.batch]), here.row, place)

    def _advance(self, time: int | float, place: int) -> Released:
        if time < self._punctuation:
            if self._slack is not None:
                return self._nothing()
            raise DataError(f"the punctuation goes back from {self._shown(self._punctuation)} to {self._shown(time)}")
        self._punctuation = time
        self._limit = self._beyond(np.array([time], self._dtype))[0].item()
        return self._flush(place)

    def _flush(self, place: int) -> Released:
        """What waited and need not any more."""
        parts = self._prefixes()
        if not parts:
            return self._nothing()
        return self._out(parts, np.full(sum(part.size for part in parts), place))

    def _prefixes(self) -> list[_Run]:
        """What is below the limit, taken out of the buffer."""
        found, kept = [], []
        for run in self._runs:
            cut = int(np.searchsorted(run.time, self._limit, side="left"))
            if cut:
                part = (run if cut == run.size else run.part(0, cut)).plain()
                if part.size:
                    found.append(part)
            if cut < run.size:
                kept.append(run.part(cut, run.size).small() if cut else run)
        self._runs = kept
        return found

    def _out(self, parts: list[_Run], place: I64) -> Released:
        """Parts in order; ``place`` comes before time where it is given."""
        run = _Run(*_concatenated(parts), parts[0].batch)
        table = pa.Table.from_batches([part.batch for part in parts])
        order = self._order(run, stable=not self._revised, place=place if place.size and self._ahead else None)
        rows = run.row
        if order is not None:
            table = table.combine_chunks().take(pa.array(order))
            rows = rows[order]
            place = place[order] if place.size else place
        self._released += rows.size
        if not self._runs:
            self._revised = False
        return Released(table, rows, place)

    def _order(self, run: _Run, *, stable: bool, place: I64 | None = None) -> I64 | None:
        """The order by (place, time, tie, row); ``None``: that is it already. ``stable``: equal ones are in order of rows."""
        stable &= not self._revised
        keys = [] if place is None else [place]
        keys.append(run.time)
        keys += [] if run.tie is None else [run.tie]
        keys += [] if stable else [run.row]
        if _ascends(keys):
            return None
        if len(keys) == 1:
            return np.argsort(run.time, kind="stable")
        if place is None:
            order = np.argsort(run.time, kind="stable")
            found = run.time[order]
            if not (found[1:] == found[:-1]).any():
                return order
        return np.lexsort(keys[::-1])

    def _wait(self, here: _Run) -> None:
        """Events to the buffer: runs of about twice the size of the next, so that each event is merged O(log n) times."""
        order = self._order(here, stable=True)
        runs = self._runs
        runs.append(here if order is None else here.taken(order))
        while len(runs) > 1 and runs[-2].size < 2 * runs[-1].size:
            parts = [run for run in (runs[-2].plain(), runs[-1].plain()) if run.size]
            del runs[-2:]
            if not parts:
                break
            batch = _one_batch(pa.Table.from_batches([part.batch for part in parts]))
            merged = _Run(*_concatenated(parts), batch)
            order = self._order(merged, stable=True)
            runs.append(merged if order is None else merged.taken(order))
        self._peak = max(self._peak, self.buffered)

    def _set_aside(self, batch: pa.RecordBatch, late: Bools) -> None:
        count = int(np.count_nonzero(late))
        self._late += count
        if count and self._late_policy == "side":
            self._side.append(batch.filter(pa.array(late)))

    # -- retractions --------------------------------------------------------------------------------------------------

    def _annihilate(self, here: _Run, sign: I64, waits: Bools, passes: Bools, late: Bools) -> _Run:
        """Retractions of events that wait take these away. Marks both in ``passes``, and retractions of the unknown in ``late``."""
        times = np.unique(here.time[waits & (sign < 0)])
        inside = np.flatnonzero(waits & np.isin(here.time, times))
        found = [_expanded(run, times) for run in self._runs]
        older = _one_batch(
            pa.Table.from_batches(
                [run.batch.take(pa.array(where)) for run, where in zip(self._runs, found, strict=True)],
                schema=self._schema,
            )
        )
        waited = np.concatenate(
            [run.row[where] for run, where in zip(self._runs, found, strict=True)] or [here.row[:0]]
        )
        old = waited.size
        # The latest arrived of equals is meant, so that those that waited come in the order of their rows.
        by_row = np.argsort(waited, kind="stable")
        both = pa.Table.from_batches([older.take(pa.array(by_row)), here.batch.take(pa.array(inside))])
        signs = np.concatenate((np.ones(old, np.int64), sign[inside]))
        group = _codes(both.select(self._telling))
        match = _matched(group, signs)
        rows = np.concatenate((waited[by_row], here.row[inside]))
        revises = self._revisions(here, sign, inside) + old
        if _is_unclear(group, signs, match, revises):
            match, rows = _one_by_one(group, signs, rows, revises)
        else:
            rows = _first_rows(rows, match, revises)
        unknown = (signs < 0) & (match < 0)
        if self._late_policy == "error" and unknown.any():
            at = int(inside[int(unknown.argmax()) - old])
            told = "time and payload" if self._sequence is None else "time and sequence"
            raise DataError(
                f"row {here.row[at]} retracts an event that is not there: none that waits has its {told} "
                f"({self._shown(here.time[at])})"
            )
        dead = np.zeros(signs.size, np.bool_)
        dead[match[match >= 0]] = True
        late[inside[unknown[old:]]] = True
        passes[inside[(signs < 0)[old:] | dead[old:]]] = False
        self._annihilated += 2 * int(np.count_nonzero(dead))
        row = here.row.copy()
        row[inside] = rows[old:]
        self._revised |= bool((row != here.row).any())
        lost = np.zeros(old, np.bool_)
        lost[by_row] = dead[:old]
        begin = 0
        for number, places in enumerate(found):
            gone = places[lost[begin : (begin := begin + places.size)]]
            if gone.size:
                run = self._runs[number]
                alive = np.ones(run.size, np.bool_) if run.alive is None else run.alive.copy()
                alive[gone] = False
                self._runs[number] = replace(run, alive=alive)
        self._runs = [run.plain() if 2 * run.living < run.size else run for run in self._runs if run.living]
        return replace(here, row=row)

    @property
    def _telling(self) -> list[str]:
        """The columns that tell which event is retracted."""
        assert self._schema is not None
        if self._sequence is not None:
            return [*self._partition_by, self._time, self._sequence]
        payload = self._schema.names if self._payload is None else self._payload
        return list(dict.fromkeys([*self._partition_by, self._time, *(name for name in payload if name != self._sign)]))

    def _revisions(self, here: _Run, sign: I64, inside: I64) -> I64:
        """The retractions among rows that have the insertion of the same place right behind them."""
        pair = (np.diff(inside) == 1) & (sign[inside[:-1]] < 0) & (sign[inside[1:]] > 0)
        first = np.flatnonzero(pair)
        names = [*self._partition_by, self._time, *([] if self._sequence is None else [self._sequence])]
        same = np.ones(first.size, np.bool_)
        for name in names:
            column = here.batch.column(name)
            one, two = column.take(pa.array(inside[first])), column.take(pa.array(inside[first + 1]))
            same &= np.asarray(pc.equal(one, two).fill_null(False))
        return first[same]

    # -- types --------------------------------------------------------------------------------------------------------

    def bind(self, schema: pa.Schema) -> None:
        """Take the names and types of the columns, unless they are known."""
        if self._schema is not None:
            return
        roles = {"time": self._time, "sequence": self._sequence, "sign": self._sign}
        named = [(name, role) for role, name in roles.items() if name is not None]
        named += [(name, "partition_by") for name in self._partition_by]
        named += [(name, "payload") for name in self._payload or ()]
        for name, role in named:
            if name not in schema.names:
                hint = suggestion(name, schema.names, kind="column")
                raise DataError(f"the events have no column '{name}' ({role})" + (f"; {hint}" if hint else ""))
        kind = schema.field(self._time).type
        ahead = span(self._speculation, "speculation", kind, self._time, self._unit)
        slack = None if self._bound is None else span(self._bound, "bound", kind, self._time, self._unit)
        real = pa.types.is_floating(kind)
        self._schema = schema
        self._ahead, self._slack = ahead, slack
        self._dtype = np.dtype(np.float64 if real else np.int64)
        self._before = -math.inf if real else BEFORE_ALL
        self._after = math.inf if real else AFTER_ALL
        self._punctuation = self._greatest = self._before
        self._limit = self._after if ahead is None else self._before
        if self._told is not None:
            self._advance(self.tick(self._told), 0)

    def _ticks(self, column: pa.Array, first: int) -> Times:
        return (
            values_of(column, self._time, first)
            if pa.types.is_floating(column.type)
            else ticks(column, self._time, first)
        )

    def _integers(self, batch: pa.RecordBatch, name: str, role: str) -> I64:
        column = batch.column(name)
        if column.null_count:
            at = self._rows + pc.index(pc.is_null(column), True).as_py()
            raise DataError(f"'{name}' ({role}) is NULL at row {at}")
        if not pa.types.is_integer(column.type):
            raise DataError(f"'{name}' ({role}) is {column.type}, not an integer")
        return np.asarray(column.cast(pa.int64()))

    def _signs(self, batch: pa.RecordBatch) -> I64:
        assert self._sign is not None
        found = self._integers(batch, self._sign, "sign")
        wrong = (found != 1) & (found != -1)
        if wrong.any():
            at = int(wrong.argmax())
            raise DataError(f"'{self._sign}' (sign) is {found[at]} at row {self._rows + at}; it is +1 or −1")
        return found

    def _shown(self, tick: int | float) -> Any:
        """A time as users write it."""
        assert self._schema is not None
        kind = self._schema.field(self._time).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return tick.item() if isinstance(tick, np.generic) else tick
        found = as_times(np.array([tick]), kind)[0]
        try:
            return found.as_py()
        except ValueError:  # nanoseconds, which Python's times do not have
            return found

    def _nothing(self) -> Released:
        none = np.zeros(0, np.int64)
        return Released(pa.table({}) if self._schema is None else self._schema.empty_table(), none, none)

    def _joined(self, found: list[Released]) -> Released:
        found = [one for one in found if one.rows.size]
        if not found:
            return self._nothing()
        if len(found) == 1:
            return found[0]
        return Released(
            pa.concat_tables([one.table for one in found]),
            np.concatenate([one.rows for one in found]),
            np.concatenate([one.places for one in found]),
        )

    # -- state --------------------------------------------------------------------------------------------------------

    _STATE = ("_told", "_finished", "_rows", "_late", "_released", "_annihilated", "_peak", "_revised")
    _TIMES = ("_punctuation", "_greatest", "_limit")

    def saved(self) -> dict[str, Any]:
        """The state; runs never change."""
        names = (*self._STATE, *self._TIMES)
        return {name: getattr(self, name) for name in names} | {"_runs": list(self._runs), "_side": list(self._side)}

    def load(self, saved: dict[str, Any]) -> None:
        """Go back to what :meth:`saved` gave."""
        for name, value in saved.items():
            setattr(self, name, value)

    def snapshot(self) -> bytes:
        """The whole state, in a versioned format (``docs/snapshots.md``)."""
        from stretto.snapshots import save_cleanse

        return save_cleanse(self)

    def restore(self, snapshot: bytes) -> Cleanse:
        """Take over the state of a snapshot with the same options.

        Raises
        ------
        SnapshotError
            The bytes are damaged, or of another version or option.
        """
        from stretto.snapshots import load_cleanse

        load_cleanse(self, snapshot)
        return self

    def to_arrays(self) -> tuple[dict[str, Any], Arrays]:
        """The state as a header and arrays, for snapshots."""
        header: dict[str, Any] = {"options": self._identity()}
        header["state"] = {name: getattr(self, name) for name in self._STATE if name != "_told"}
        header["bound"] = self._schema is not None
        if self._schema is None:
            kind = None if self._told is None else pa.scalar(self._told).type
            header["told"] = None if kind is None else _written(pa.table({"time": pa.array([self._told], kind)}))
            return header, {}
        header["schema"] = base64.b64encode(self._schema.serialize().to_pybytes()).decode()
        arrays = {"times": np.array([getattr(self, name) for name in self._TIMES], self._dtype)}
        runs = [run.plain() for run in self._runs]
        arrays["sizes"] = np.array([run.size for run in runs], np.int64)
        arrays["row"] = np.concatenate([run.row for run in runs] or [np.zeros(0, np.int64)])
        header["table"] = _written(pa.Table.from_batches([run.batch for run in runs], schema=self._schema))
        header["side"] = _written(pa.Table.from_batches(self._side, schema=self._schema))
        return header, arrays

    def from_arrays(self, header: dict[str, Any], arrays: Arrays) -> None:
        """Take over what :meth:`to_arrays` gave.

        Raises
        ------
        SnapshotError
            It is of other options.
        """
        for name, value in self._identity().items():
            there = header["options"].get(name)
            if there != value:
                raise SnapshotError(
                    f"the snapshot is of a Cleanse with other options: {name} is {there} there, {value} here"
                )
        self.load(header["state"])
        self._told, self._runs, self._side = None, [], []
        if not header["bound"]:
            self._schema = None
            self._told = None if header["told"] is None else _read(header["told"])["time"][0].as_py()
            return
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(header["schema"])))
        if self._schema is not None and self._schema != schema:
            raise SnapshotError(
                f"the snapshot is of events with other columns: {schema.names}, not {self._schema.names}"
            )
        self.bind(schema)
        for name, value in zip(self._TIMES, arrays["times"].tolist(), strict=True):
            setattr(self, name, value)
        table = _read(header["table"])
        begin = 0
        for size in arrays["sizes"].tolist():
            batch = _one_batch(table.slice(begin, size))
            time = self._ticks(batch.column(self._time), 0)
            tie = None if self._sequence is None else self._integers(batch, self._sequence, "sequence")
            row = arrays["row"][begin : begin + size].astype(np.int64)
            self._runs.append(_Run(time, tie, row, batch))
            begin += size
        self._side = _read(header["side"]).to_batches()

    def _identity(self) -> dict[str, Any]:
        """What a state depends on."""
        names = ("time", "sequence", "sign", "partition_by", "payload", "speculation", "bound", "late_policy", "unit")
        return {name: _plain(getattr(self, f"_{name}")) for name in names}


def check_span(value: Any, what: str) -> int | float | dt.timedelta:
    """A span of time that a user gives, apart from the type of the time.

    Raises
    ------
    OptionError
        It is none, or below zero.

    Examples
    --------
    >>> check_span("5 seconds", "bound"), check_span(3, "bound")
    (datetime.timedelta(seconds=5), 3)
    """
    found = value
    if isinstance(value, str):
        try:
            found = read_window(value)
        except QueryError as error:
            raise _no_span(value, what) from error
    if isinstance(found, bool | np.bool_) or not isinstance(found, int | float | dt.timedelta) or found != found:
        raise _no_span(value, what)
    if found < dt.timedelta() if isinstance(found, dt.timedelta) else found < 0:
        raise OptionError(f"{what}={value!r}: a span of time is not negative")
    return found


def _no_span(value: Any, what: str) -> OptionError:
    return OptionError(
        f"{what}={value!r}: expected ticks of the time column, a text such as '5 seconds', or a timedelta"
    )


def span(value: Any, what: str, kind: pa.DataType, name: str, unit: str | None = None) -> int | float | None:
    """A span of time in ticks of a time column; ``None``: without end.

    Raises
    ------
    OptionError
        A duration for times without a unit, or less than a tick.

    Examples
    --------
    >>> span("5 seconds", "bound", pa.timestamp("ms"), "t"), span(7, "bound", pa.int64(), "t")
    (5000, 7)
    """
    found = check_span(value, what)
    if found == math.inf:
        return None
    if not isinstance(found, dt.timedelta):
        if isinstance(found, float) and not pa.types.is_floating(kind):
            if not found.is_integer():
                raise OptionError(f"{what}={value!r}: '{name}' is {kind} and has whole ticks")
            found = int(found)
        return min(found, LONGEST)
    if pa.types.is_date32(kind):
        days, odd = divmod(found, dt.timedelta(days=1))
        if odd:
            raise OptionError(f"{what}={value!r}: '{name}' counts days")
        return days
    own = kind.unit if pa.types.is_timestamp(kind) else "ms" if pa.types.is_date64(kind) else unit
    if own is None:
        raise OptionError(
            f"{what}={value!r}: '{name}' is {kind}, whose unit is not known: give the span in ticks, or time_unit='s'"
        )
    if pa.types.is_floating(kind):
        return found.total_seconds() * _UNITS[own]
    micros = found // dt.timedelta(microseconds=1)
    whole, rest = divmod(micros * _UNITS[own], 10**6)
    if rest:
        raise OptionError(f"{what}={value!r} is no whole number of '{name}' ticks ({own})")
    return min(whole, LONGEST)


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return list(value) if isinstance(value, tuple) else value if isinstance(value, int | None) else str(value)


def _written(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return base64.b64encode(sink.getvalue()).decode()


def _read(text: str) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(base64.b64decode(text))).read_all()


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    whole = table.combine_chunks()
    batches = whole.to_batches()
    if len(batches) == 1:
        return batches[0]
    arrays = [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type) for column in whole.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=whole.schema)


def _segments(
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


def _concatenated(parts: Sequence[_Run]) -> tuple[Times, I64 | None, I64]:
    """Times, ties and rows."""
    if len(parts) == 1:
        return parts[0].time, parts[0].tie, parts[0].row
    ties = [part.tie for part in parts if part.tie is not None]
    return (
        np.concatenate([part.time for part in parts]),
        np.concatenate(ties) if ties else None,
        np.concatenate([part.row for part in parts]),
    )


def _ascends(keys: Sequence[NDArray[Any]]) -> bool:
    """Whether rows are ordered by the first key, then the second, …"""
    tied: Bools | None = None
    for key in keys:
        falls = key[1:] < key[:-1]
        if (falls if tied is None else falls & tied).any():
            return False
        equal = key[1:] == key[:-1]
        tied = equal if tied is None else equal & tied
        if not tied.any():
            break
    return True


def _expanded(run: _Run, times: Times) -> I64:
    """Where a run has events of some times (sorted) that are not gone."""
    begin, end = np.searchsorted(run.time, times, side="left"), np.searchsorted(run.time, times, side="right")
    sizes = end - begin
    at = np.repeat(begin - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes) + np.arange(sizes.sum())
    return at if run.alive is None else at[run.alive[at]]


def _codes(table: pa.Table) -> I64:
    """Equal numbers for equal rows; NULL equals NULL."""
    found = np.zeros(table.num_rows, np.int64)
    for array in _flat(table):
        codes = array.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        _, found = np.unique(found * (codes.max(initial=0) + 2) + codes + 1, return_inverse=True)
    return found


def _flat(table: pa.Table) -> Iterator[pa.Array]:
    """Columns of plain values."""
    for column in table.combine_chunks().columns:
        array = (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks)
            if column.num_chunks
            else None
        )
        if array is None:
            continue
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if pa.types.is_struct(array.type):
            yield array.is_null()
            if array.type.num_fields:
                yield from _flat(pa.table(array.flatten(), names=[str(i) for i in range(array.type.num_fields)]))
        elif pa.types.is_nested(array.type):
            yield pa.array([repr(one) for one in array.to_pylist()])
        else:
            yield array


def _matched(group: I64, sign: I64) -> I64:
    """Of each retraction, the last insertion of its group that is still there; −1: none.

    In each group insertions are pushed on a stack that retractions pop: both of a pair have the same depth, and pairs follow one
    another there.
    """
    count = group.size
    order = np.argsort(group, kind="stable")
    g, s = group[order], sign[order]
    opens = np.flatnonzero(np.concatenate(([True], g[1:] != g[:-1])))
    number = np.repeat(np.arange(opens.size), np.diff(np.concatenate((opens, [count]))))
    total = np.cumsum(s)
    level = total - np.repeat(np.concatenate(([0], total))[opens], np.diff(np.concatenate((opens, [count]))))
    # The lowest level so far of each group: groups lie below one another, so that one running minimum serves all.
    shift = -3 * (count + 1) * number
    lowest = np.minimum(np.minimum.accumulate(level + shift), shift) - shift
    before = np.concatenate(([0], lowest[:-1]))
    before[opens] = 0
    lost = lowest < before
    depth = level - lowest + (s < 0)
    place = np.lexsort((np.arange(count), depth, g))
    place = place[~lost[place]]
    pops = np.flatnonzero(s[place] < 0)
    match = np.full(count, -1)
    match[order[place[pops]]] = order[place[pops - 1]]
    return match


def _first_rows(rows: I64, match: I64, revises: I64) -> I64:
    """The rows of events: a revised one, behind the retraction at ``revises``, has that of what it revises."""
    origin = np.arange(rows.size)
    known = revises[match[revises] >= 0]
    origin[known + 1] = match[known]
    while True:
        further = origin[origin]
        if (further == origin).all():
            return rows[origin]
        origin = further


def _is_unclear(group: I64, sign: I64, match: I64, revises: I64) -> bool:
    """Whether a revised event may be one of several equal ones: the latest arrived is meant, not the last one on the stack."""
    revised = np.unique(group[revises[match[revises] >= 0] + 1])
    if not revised.size:
        return False
    inside = np.isin(group, revised)
    order = np.argsort(group[inside], kind="stable")
    g, s = group[inside][order], sign[inside][order]
    total = np.cumsum(s)
    opens = np.concatenate(([True], g[1:] != g[:-1]))
    base = np.maximum.accumulate(np.where(opens, np.arange(g.size), 0))
    return bool((total - total[base] + s[base] > 1).any())


def _one_by_one(group: I64, sign: I64, rows: I64, revises: I64) -> tuple[I64, I64]:
    """As :func:`_matched` and :func:`_first_rows`, where equal events make the order matter."""
    match, rows = np.full(group.size, -1), rows.copy()
    there: dict[int, list[tuple[int, int]]] = {}
    pairs = set(revises.tolist())
    for at, (code, one) in enumerate(zip(group.tolist(), sign.tolist(), strict=True)):
        events = there.setdefault(code, [])
        if one > 0:
            if at - 1 in pairs and match[at - 1] >= 0:
                rows[at] = rows[match[at - 1]]
            events.append((int(rows[at]), at))
        elif events:
            latest = max(events)
            events.remove(latest)
            match[at] = latest[1]
    return match, rows
