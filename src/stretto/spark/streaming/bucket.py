"""A bucket of keys in a continuous query: held events, one matcher, and their state as bytes. It knows nothing of Spark.

The watermark is the punctuation. An event before it is late; one at or after it is held, and goes to the matcher, in the
order of time and sequence, once the watermark has passed it. What a bucket puts out depends on its events and on which of
them were late, not on how micro-batches cut the stream.

The state is bytes (:mod:`stretto.spark.streaming.state`) whose parts are the matcher's snapshot, held events and known event ids
(Arrow IPC).

Rows that insert events, and rows that take them back, as a micro-batch has them: in any order.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import time as clock
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.errors import DataError, EngineError, LimitError, OptionError, QueryError
from stretto.frame import Section, check_kinds, kept_table
from stretto.matching.api.matcher import Matcher
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.matching.pattern_set.with_metadata import AnnotatedPatternSet
from stretto.matching.reorder.annihilating import codes
from stretto.spark.streaming.keeping import UNKNOWN, WAIT, AnyBucket, Settings
from stretto.spark.streaming.packing import arrived, write_table
from stretto.spark.streaming.runs import ManyPatterns, Run
from stretto.spark.streaming.state import Owner
from stretto.times import shown_time, ticks_per_second


def netted(events: pa.Table, sign: str) -> pa.Table:
    """The rows that do not cancel out; equal rows that stay are alike in all columns, and the first ones of them.

    An event that is inserted and taken back in one micro-batch never was, whatever order its rows come in. What is left is an
    insertion, or the retraction of an event from before, and then its place comes first what is taken back.

    Raises
    ------
    DataError
        A sign is neither 1 nor −1.

    Examples
    --------
    >>> netted(pa.table({"t": [1, 2, 1, 3], "op": [1, 1, -1, -1]}), "op").to_pylist()
    [{'t': 2, 'op': 1}, {'t': 3, 'op': -1}]
    """
    signs = events.column(sign)
    if not pa.types.is_integer(signs.type) or not pc.all(pc.equal(pc.abs(pc.fill_null(signs, 0)), 1)).as_py():
        raise DataError(
            f"column '{sign}' (sign) says 1 of an event that comes, and -1 of one that is taken back, and nothing else"
        )
    signs = np.asarray(signs.cast(pa.int8()))
    events = events.set_column(events.column_names.index(sign), sign, pa.array(signs))
    if (signs > 0).all():
        return events
    numbers = codes(events.drop_columns([sign]))
    first = np.unique(numbers, return_index=True)[1]
    total = np.bincount(numbers, signs).astype(np.int64)
    order = np.argsort(first)
    total, first = total[order], first[order]
    kept = events.take(pa.array(np.repeat(first, np.abs(total))))
    left = np.repeat(np.sign(total), np.abs(total)).astype(np.int8)
    return kept.set_column(kept.column_names.index(sign), sign, pa.array(left))


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Bucket(AnyBucket):
    """The keys of one bucket of a query, or of patterns.

    Parameters
    ----------
    run
        The query or the patterns.
    settings
        How events are treated.
    """

    #: What changes are of, as messages name it, and whether results have signs.
    changing, signs = "pattern", False

    def __init__(self, run: Run, settings: Settings) -> None:
        super().__init__(settings, run.attributes[settings.time])
        self.run = run
        self.matcher = run.start()
        #: Events that the watermark has not passed, in order of arrival.
        self.held: pa.Table | None = None
        #: Ids of events that are known, with their times.
        self.seen: pa.Table | None = None
        self._latest: int | None = None  #: the greatest time that arrived in this call
        self.passed: int | None = (
            None  #: the watermark up to which the bucket has worked; kept where it decides what is late
        )
        #: Whether patterns have changed since the query started: then there is something to keep.
        self.changed = False
        off = self.matcher.off if isinstance(self.matcher, AnnotatedPatternSet) else None
        #: The columns that are NULL in matches, and what rows are counted as in which they are not.
        self._apart = {"timeouts": run.reached, "disabled": off}

    def receive(self, rows: Sequence[tuple[int, int, bytes]], watermark: int | None) -> None:
        new = arrived(rows)
        if new.changes is not None:
            self.change(new.changes, watermark)
        if new.events is not None:
            self.take(new.events, watermark)

    def change(self, changes: pa.Table, watermark: int | None) -> None:
        """Change what runs from the changes' times on; a time that the watermark has passed is late, as an event is.

        Parameters
        ----------
        changes
            The columns ``id``, ``query`` and ``since``, which has the type of the events' time; of arcs those of
            :meth:`stretto.Matcher.push`.
        watermark
            As for :meth:`take`.

        Raises
        ------
        DataError
            With ``late="error"``: a change is late, or wrong.
        """
        since = self.since(changes)
        times = microseconds(since, self.settings.time_unit)
        # NULL is the beginning of the stream, and the least number.
        late = np.zeros(times.size, np.bool_) if watermark is None else times < watermark
        now = None
        if self.settings.changes_now and watermark is not None:
            now = pa.scalar(self._time(watermark, later=True), since.type)
            at = changes.column_names.index("since")
            changes = changes.set_column(at, "since", pc.if_else(pa.array(late), now, since))
            late[:] = False
        for row in np.flatnonzero(late):
            self.counts.late_changes += 1
            if self.settings.late == "error":
                raise DataError(
                    f"{self.changing} '{changes.column('id')[row]}': the change holds from {since[row]} on, and the watermark "
                    f"has passed {_instant(watermark)}; give it earlier, or choose late='drop' or late='side'"
                )
        self._carry_out(changes.filter(pa.array(~late)), now)

    def _carry_out(self, changes: pa.Table, now: pa.Scalar | None) -> None:
        """Carry out changes that are in time: all at once, or where one of them is wrong, one by one."""
        if isinstance(self.matcher, PatternSet) and changes.num_rows > 1:
            with contextlib.suppress(QueryError, OptionError, LimitError, DataError):  # and none of them holds
                self.apply(changes, now)
                self.changed = True
                return
        for row in range(changes.num_rows):
            try:
                self.apply(changes.slice(row, 1), now)
            except (QueryError, OptionError, LimitError, DataError) as error:
                self.counts.bad_changes += 1
                if self.settings.late == "error":
                    raise DataError(f"a change of {self.changing}s is wrong: {error}") from error
                continue
            self.changed = True

    def since(self, changes: pa.Table) -> pa.ChunkedArray:
        """From when on changes concern events."""
        return changes.column("since")

    def apply(self, changes: pa.Table, now: pa.Scalar | None) -> None:
        """Carry out changes, of which none holds before ``now``; those before a wrong one may hold then."""
        if isinstance(self.matcher, AnnotatedPatternSet):
            self.matcher.change(changes, renew=not self.settings.changes_now, now=now)
            return
        if not isinstance(self.matcher, PatternSet):
            raise EngineError("a query that is one text has no patterns to change")
        self.matcher.change(changes)

    def take(self, events: pa.Table, watermark: int | None) -> None:
        """Hold the next events to arrive, less those that are late, known, or without a time.

        Parameters
        ----------
        events
            The columns of the query.
        watermark
            In microseconds since 1970; ``None``: there is none yet.

        Raises
        ------
        DataError
            With ``late="error"``: an event is late or has no time.
        """
        times = microseconds(events.column(self.settings.time), self.settings.time_unit)
        untimed = events.column(self.settings.time).null_count
        if self.settings.follows:
            watermark = self.passed
        late = np.zeros(times.size, np.bool_) if watermark is None else times < watermark
        if untimed:
            missing = np.asarray(events.column(self.settings.time).is_null())
            late |= missing
        if late.any():
            self._refuse(events, times, late, untimed, watermark)
            events, times = events.filter(pa.array(~late)), times[~late]
        if self.settings.event_id is not None and events.num_rows:
            events = self._without_known(events, times)
        if events.num_rows:
            self._latest = int(times.max())
            self.held = (
                events if self.held is None else pa.concat_tables([self.held, events], promote_options="permissive")
            )

    def _refuse(
        self, events: pa.Table, times: NDArray[np.int64], late: NDArray[np.bool_], untimed: int, watermark: int | None
    ) -> None:
        number = int(np.count_nonzero(late))
        name = self.settings.time
        if self.settings.late == "error":
            if untimed:
                raise DataError(f"column '{name}' (time) is NULL in {untimed} events: drop them, or give them a time")
            at = shown_time(pc.min(events.column(name).filter(pa.array(late))))
            raise DataError(
                f"{number} late events: '{name}' is {at}, and the watermark has passed {_instant(watermark)}; {WAIT}"
            )
        self.counts.late += number - untimed
        self.counts.no_time += untimed
        if self.settings.late == "side":
            self.set_aside.append(events.filter(pa.array(late)))

    def _without_known(self, events: pa.Table, times: NDArray[np.int64]) -> pa.Table:
        """The events whose id is new; an event without an id (NULL) always is."""
        assert self.settings.event_id is not None
        ids = events.column(self.settings.event_id).combine_chunks()
        fresh = np.zeros(len(ids), np.bool_)
        encoded = ids.dictionary_encode()
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        fresh[np.unique(codes, return_index=True)[1]] = True
        fresh[codes < 0] = True
        if self.seen is not None and self.seen.num_rows:
            known = pc.is_in(ids, value_set=self.seen.column(0).combine_chunks())
            fresh &= ~(known.to_numpy(zero_copy_only=False) & (codes >= 0))
        self.counts.duplicates += int(fresh.size - np.count_nonzero(fresh))
        kept = events.filter(pa.array(fresh))
        named = fresh & (codes >= 0)
        new = pa.table({"id": ids.filter(pa.array(named)), "time": pa.array(times[named])})
        self.seen = new if self.seen is None else pa.concat_tables([self.seen, new])
        return kept

    def advance(self, watermark: int | None) -> Iterator[pa.Table]:
        if watermark is None:
            return
        yield from self.counted(self._found(self._release(watermark), watermark), watermark)
        self.leave(watermark)

    def _found(self, events: pa.Table | None, watermark: int) -> Iterator[pa.Table]:
        if events is not None:
            self.counts.released += events.num_rows
            yield from self.matcher.iter_push(events)
        # Changes are to come until the set is told that their time is there.
        if self.matcher.position or self.changed:
            yield self.matcher.advance(self._time(watermark))

    def counted(self, results: Iterator[pa.Table], watermark: int | None) -> Iterator[pa.Table]:
        """Results as they come; they are counted, and how long each took."""
        began = clock.perf_counter()
        for found in results:
            self.count(found, watermark)
            self.counts.kernel_ms += 1000 * (clock.perf_counter() - began)
            yield found
            began = clock.perf_counter()
        self.counts.kernel_ms += 1000 * (clock.perf_counter() - began)

    def count(self, found: pa.Table, watermark: int | None) -> None:
        """Count what comes out, and how long it waited: how far the stream had come by then."""
        for what, column in self._apart.items():
            if column is not None:
                matches = pc.is_null(found.column(column))
                number = found.num_rows - (pc.sum(matches).as_py() or 0)
                setattr(self.counts, what, getattr(self.counts, what) + number)
                found = found.filter(matches)
        self.counts.matches += found.num_rows
        if self.signs:
            given = pc.greater(found.column("sign"), 0)
            self.counts.revisions += found.num_rows - (pc.sum(given).as_py() or 0)
            found = found.filter(given)
        latest = max(
            -1 if watermark is None else watermark + self.settings.delay, -1 if self._latest is None else self._latest
        )
        at = found.schema.get_field_index("end_time")  # less than 0: a partition attribute has this name as well
        if at >= 0:
            found = found.filter(pc.is_valid(found.column(at)))  # counts of windows have none
        if found.num_rows and latest >= 0 <= at:
            ends = microseconds(found.column(at), self.settings.time_unit)
            self.counts.waited_ms += float(np.maximum(latest - ends, 0).sum()) / 1000

    def leave(self, watermark: int) -> None:
        """Note up to where the bucket has worked; forget the ids of events that the watermark has passed by its delay."""
        self.passed = watermark
        if self.seen is not None:
            recent = self.seen.column("time").to_numpy() + self.settings.delay >= watermark
            self.seen = self.seen.filter(pa.array(recent)) if recent.any() else None

    def _release(self, watermark: int) -> pa.Table | None:
        """The held events before the watermark, in order; they are held no longer."""
        if self.held is None:
            return None
        times = microseconds(self.held.column(self.settings.time), self.settings.time_unit)
        passed = times < watermark
        if not passed.any():
            return None
        everything = bool(passed.all())
        events = self.held if everything else self.held.filter(pa.array(passed))
        self.held = None if everything else self.held.filter(pa.array(~passed))
        return self._without_signs(in_order(events, self.settings))

    def _without_signs(self, events: pa.Table) -> pa.Table:
        """Events that stay; a retraction of what never was is late: what it takes back was, or never came."""
        sign = self.settings.sign
        if sign is None:
            return events
        back = np.asarray(events.column(sign)) < 0
        if back.any():
            self.refuse_unknown(events.filter(pa.array(back)), int(np.count_nonzero(back)))
            events = events.filter(pa.array(~back))
        return events.drop_columns([sign])

    def refuse_unknown(self, events: pa.Table, number: int) -> None:
        """Count retractions of what is not there.

        Raises
        ------
        DataError
            With ``late="error"``.
        """
        if self.settings.late == "error":
            at = events.column(self.settings.time)[0].as_py()
            raise DataError(
                f"{number} retractions of events that are not there: the first has '{self.settings.time}' = {at}; {UNKNOWN}"
            )
        self.counts.late += number
        if self.settings.late == "side":
            self.set_aside.append(events)

    @property
    def idle(self) -> bool:
        return self.held is None and self.seen is None and not self.changed and self.matcher.idle

    @property
    def expiry(self) -> int | None:
        """When what the matcher holds can matter no more, in microseconds; ``None``: it holds nothing, or nobody knows."""
        last = self.matcher.expires
        return None if last is None else int(last * self.unit) + 1

    def wakes_at(self) -> int | None:
        wanted = []
        if self.held is not None:
            times = microseconds(self.held.column(self.settings.time), self.settings.time_unit)
            wanted.append(int(times.min()))
        elif (expiry := self.expiry) is not None:
            wanted.append(expiry)
        if self.held is None and self.seen is not None:
            wanted.append(int(pc.max(self.seen.column("time")).as_py()) + self.settings.delay)
        return max(0, max(wanted) // 1000 + 1) if wanted else None

    def _time(self, watermark: int, *, later: bool = False) -> int | dt.datetime | dt.date:
        """A watermark as a value of the time column: the last that is not after it; ``later``: the first that is not before it."""
        kind = self.run.attributes[self.settings.time]
        if pa.types.is_integer(kind):
            return int(-(-watermark // self.unit)) if later else int(watermark // self.unit)
        instant = EPOCH + dt.timedelta(microseconds=watermark)
        if pa.types.is_date(kind):
            return (instant + dt.timedelta(days=1, microseconds=-1) * later).date()
        return instant if kind.tz else instant.replace(tzinfo=None)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def owner(self) -> Owner:
        return query_owner(self.run, self.settings)

    def saved(self) -> tuple[dict[str, Any], list[bytes]]:
        empty = self.matcher.idle and not self.changed
        parts = [b"" if empty else self.matcher.snapshot(), *map(_ipc, (self.held, self.seen))]
        self.counts.held = 0 if self.held is None else self.held.num_rows
        if isinstance(self.matcher, AnnotatedPatternSet):
            self.counts.suppressed = sum(self.matcher.suppressed.values())
        stats = self.matcher.stats
        self.counts.keys = stats.get("partitions", 0)
        self.counts.partial_matches = stats["nodes"] if "nodes" in stats else stats["partial_matches"]
        self.oldest = self._oldest()
        passed = {"passed": self.passed} if self.settings.follows else {}
        return {"changed": self.changed} | passed, parts

    def _oldest(self) -> int | None:
        """When the oldest event was that is held, here or by the matcher of a query."""
        columns = [] if self.held is None else [self.held.column(self.settings.time)]
        if isinstance(self.matcher, Matcher) and not self.matcher.idle:
            told = self.matcher.held()
            columns += [told.column("oldest")] if "oldest" in told.column_names else []
        times = [microseconds(column.drop_null(), self.settings.time_unit) for column in columns]
        return min((int(own.min()) for own in times if own.size), default=None)

    def restore(self, header: dict[str, Any], parts: list[bytes]) -> None:
        snapshot, held, seen = parts
        if snapshot:
            self.matcher.restore(snapshot)
        self.held, self.seen = _table(held), _table(seen)
        if self.held is not None:  # as they came: keys that are made of several columns are not among them
            there = {self.settings.time, *self.held.column_names}
            check_kinds(self.held, {name: kind for name, kind in self.run.attributes.items() if name in there})
        values = Section({"passed": None} | header)
        passed = values.measure("passed", whole=True)
        self.changed, self.passed = values.flag("changed"), None if passed is None else int(passed)


def query_owner(run: Run, settings: Settings) -> Owner:
    """What the states of a query or of patterns belong to."""
    columns = {name: str(kind) for name, kind in run.attributes.items()}
    named = ["buckets", "time", "sequence", "time_unit", "event_id"]
    if settings.sign is not None:
        named.append("sign")
    query = run.rows if isinstance(run, ManyPatterns) else run.text
    return Owner(query, columns, {name: getattr(settings, name) for name in named} | run.identity, settings.late)


def in_order(events: pa.Table, settings: Settings) -> pa.Table:
    """Events in the order of time, sequence and arrival; of a place first what is taken back, and nothing that cancels out."""
    keys = [(settings.time, "ascending")]
    if settings.sequence is not None and settings.sequence != settings.time:
        keys.append((settings.sequence, "ascending"))
    if settings.sign is not None:
        events = netted(events, settings.sign)
        keys.append((settings.sign, "ascending"))
    return events.take(pc.sort_indices(events, sort_keys=keys))


def microseconds(column: pa.ChunkedArray, unit: str | None) -> NDArray[np.int64]:
    """A time column in whole microseconds since 1970: a finer time is rounded down, NULL is the least number.

    Raises
    ------
    OptionError
        The column is no timestamp, date or integer, or it is an integer without a unit.
    """
    kind = column.type
    per_second = ticks_per_second(kind, unit if pa.types.is_integer(kind) else None)
    if per_second is None or pa.types.is_date64(kind):
        raise OptionError(f"a continuous query needs a time of type timestamp, date or integer with a unit, not {kind}")
    values = (column.cast(pa.int32()) if pa.types.is_date32(kind) else column).cast(pa.int64())
    ratio = 10**6 / per_second
    micros = np.array(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), np.int64)
    micros = micros * ratio.numerator // ratio.denominator
    if column.null_count:
        micros[np.asarray(column.is_null())] = np.iinfo(np.int64).min
    return micros


def _instant(micros: int | None) -> str:
    if micros is None:
        return "nothing"
    return str(shown_time(pa.scalar(micros, pa.timestamp("us"))))


def _ipc(table: pa.Table | None) -> bytes:
    return write_table(table) if table is not None and table.num_rows else b""


def _table(part: bytes) -> pa.Table | None:
    return kept_table(part) if part else None
