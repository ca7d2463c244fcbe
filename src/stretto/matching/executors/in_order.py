"""A query over a stream whose engine reads events in order: what sorts them, if they come out of order, the run, and the result.

Where the punctuation decides matches, or lets events go, they come with the call that brings it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stretto.column_types import wider
from stretto.columns.measured import as_measured, measured_type, values_of
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, Program, Run
from stretto.engines.latest.runner import LatestRunner
from stretto.engines.match_ops.timeouts import TimeoutRun
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.shared.intake import Intake
from stretto.errors import DataError, OptionError, SnapshotError, StrettoError, warn
from stretto.events import BEFORE, Schema, as_table, conform, require
from stretto.explaining.answer import Answer
from stretto.frame import Section, reading
from stretto.matching.compiled import Query, layout_of, read
from stretto.matching.empty_result.streams import WARN_AFTER, Lacking, check_warn_after
from stretto.matching.executors.base import AS_USUAL, Reading
from stretto.matching.executors.ordered import OrderedExecutor
from stretto.matching.input.derived_columns import Derived
from stretto.matching.input.stream_union import are_streams, merged
from stretto.matching.inspection.partial_matches import (
    LOOKED_AT,
    Partial,
    answered,
    late_words,
    near_misses,
    refused,
    unsorted,
)
from stretto.matching.inspection.state_tables import (
    check_columns,
    check_most,
    counted,
    has_key,
    named_keys,
    plain,
    summary,
)
from stretto.matching.lifecycle import Life, Retries
from stretto.matching.meaning import check_same, options_differ
from stretto.matching.output.match_sets import MatchSet, program_of_sets, refuse_unlisted
from stretto.matching.output.match_table import CHUNK, Arrivals, History, Layout
from stretto.matching.output.memory_budget import Listing, Meter
from stretto.matching.output.pipes import refuse_pipes
from stretto.matching.reorder import Cleanse, Released, span
from stretto.query.constraints.of_query import chains_of
from stretto.query.query import Consume

#: Rows that an error names at most.
NAMED = 9

#: Why events cannot be sorted.
_NO_TIME = "disorder= sorts events by time: name the column that orders the stream with time='…'"


class _State(NamedTuple):
    """What reading changes."""

    run: Run
    history: History
    arrivals: Arrivals


class InOrderExecutor(OrderedExecutor):
    """What runs a CEQL or SASE+ query on tECS or NFAb; the parameters are those of :class:`~stretto.Matcher`."""

    COUNTED = ("events", "visited", "late", "triggers", "partitions", "nodes", "bytes")
    run: Run | None

    def __init__(
        self,
        query: Query,
        schema: Any = None,
        reading: Reading = AS_USUAL,
        *,
        valuations: bool = False,
        late: str = "error",
        sets: bool = False,
        disorder: Any = None,
        budget: int | float | str | Meter | None = None,
        capacity: int = 1 << 12,
        warn_after: int | None = WARN_AFTER,
    ) -> None:
        check_warn_after(warn_after)
        super().__init__(disorder, late, budget, capacity)
        if disorder is None and reading.sequence is not None:
            raise OptionError("sequence= orders events of one time where a matcher sorts: give disorder= as well")
        self._query, self.reading, self.completes = query, reading, reading.completes
        self.valuations, self.sets = valuations, sets
        self.sequence = reading.sequence
        self.warn_after = warn_after
        self.lacking: Lacking | None = None  #: what looks at the first events; ``None``: nothing is looked for
        self.arrivals: Arrivals | None = None
        self._held: list[pa.Table] = []  # what a call that failed would have given
        if disorder is not None:
            if sets:
                raise OptionError("sets of matches are of events in order: leave out disorder=, or list the matches")
            if reading.time is None and not isinstance(schema, Schema) and query.schema is None:
                raise OptionError(_NO_TIME)
        #: Whether batches tell the types, and the columns that had nothing but NULL so far.
        self.inferred = schema is None and query.schema is None
        #: Whether equalities of conditions split the stream (:attr:`Query.split`).
        self.split = not reading.timeouts
        #: The streams of which there were tables.
        self.streams: tuple[str, ...] = ()
        self.unknown: frozenset[str] = frozenset()
        Layout.check(reading.output)
        if schema is not None:
            self.bind(reading.schema(schema))
        elif query.schema is not None:
            self.start()

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def query(self) -> Query:
        return self._query

    def explain(self) -> str:
        return self.query.explain(timeouts=self.reading.timeouts)

    def draw(self) -> Any:
        return self.query.draw()

    @property
    def stats(self) -> dict[str, int]:
        found = super().stats
        if self.run is not None:
            found["bytes"] += self.history.nbytes + (0 if self.arrivals is None else self.arrivals.nbytes)
        return found

    @property
    def expires(self) -> int | float | None:
        last, run = super().expires, self.run
        open_windows = None if run is None else run.open_windows
        if run is None or open_windows is None:
            return last
        if last is None:
            return None if run.live().size else open_windows
        return max(last, open_windows)

    def partial_matches(self, most: int, by: Sequence[str]) -> pa.Table:
        if self.query.parsed.no_partial_matches:
            raise OptionError(self.query.parsed.no_partial_matches)
        if not self.reading.timeouts:
            raise OptionError(
                "partial_matches() needs a matcher that follows each first event: make it with timeouts=True, which a query with "
                "WITHIN may have; matcher.stats counts what is held"
            )
        check_most("partial_matches", most)
        run = self.run
        if run is None:
            return pa.table({})
        assert isinstance(run, TimeoutRun)
        self.life.refuse_inside()
        self.meter = Meter.of_call(self.budget)
        check_columns("partial_matches", by, [*self.layout.keys, self.layout.timeout_names[0]])
        found = list(self._tables(run.in_flight(max(self.position, 1) if by else most) for _ in range(1)))
        table = pa.concat_tables(found) if found else self.layout.schema().empty_table()
        if not by:
            return table
        names = {"start_time": "oldest", self.layout.timeout_names[1]: "expires"}
        least = {name: shown for name, shown in names.items() if name in table.schema.names}
        return counted(table, by, "partial_matches", least).slice(0, most)

    def why_not(self, key: Any, most: int) -> Answer:
        parsed = self.query.parsed
        if not self.reading.timeouts and not parsed.followed:
            raise OptionError(refused(parsed.not_followed, "query, events"))
        check_most("why_not", most)
        run = self.run
        if run is None:
            return answered(self.query.text, 0, "event", 0, [], ())
        assert isinstance(run, TimeoutRun | LatestRunner)
        self.life.refuse_inside()
        starts, chosen = run.starts, None
        keys = named_keys(self.query.partition_by, key, self.layout.columns)
        if keys and starts.size:
            table = self.history.take(starts, list(keys))
            chosen = np.ones(starts.size, np.bool_)
            for name, value in keys.items():
                chosen &= np.asarray(has_key(table.column(name), name, value))
        found = run.in_flight(LOOKED_AT, chosen)
        misses = near_misses(
            list(chains_of(self.query.bound.parsed)), list(self._partial(found, run.program.marks)), most
        )
        sorter = self.sorter
        kept = pa.table({}) if sorter is None else sorter.set_aside
        notes = unsorted(0 if sorter is None else sorter.buffered)
        notes += late_words(self.late, self.disorder, self.query.bound.schema.time, kept)
        count = starts.size if chosen is None else int(np.count_nonzero(chosen))
        return answered(self.query.text, self.position, "event", count, misses, notes)

    def _partial(self, found: Matches, marks: Sequence[frozenset[str]]) -> Iterator[Partial]:
        """Partial matches with their events as rows of the input."""
        bound, told, count = self.query.bound, found.timed_out, found.start.size
        assert told is not None
        window, time = bound.window, self.layout.time
        ends = [f"WITHIN {bound.parsed.window} is not over" if window is not None else "no window ends it"] * count
        expires: list[Any] = [None] * count
        if window is not None and window.attribute is not None:
            kind = measured_type(bound.schema.attributes[window.attribute])
            expires = as_measured(told.expired, np.zeros(count, np.bool_), kind).to_pylist()
            ends = [f"its window is open until {one}" for one in expires]
        times: list[Any] = [None] * count
        if time is not None and count:
            both = (self.history.take(one, [time]).column(0).to_pylist() for one in (found.start, found.end))
            times = list(zip(*both, strict=True))
        rows = found.position if self.arrivals is None else self.arrivals[found.position]
        for k in range(count):
            held: dict[str, list[int]] = {}
            for at in range(int(found.offset[k]), int(found.offset[k + 1])):
                for name in marks[found.mark[at]]:
                    held.setdefault(name, []).append(int(rows[at]))
            reached = next(iter(marks[told.reached[k]]))
            yield Partial(held, reached, times[k], ends[k], expires[k], certain=not self.reading.timeouts)

    def held(self, most: int, by: Sequence[str]) -> pa.Table:
        check_most("held", most)
        run = self.run
        if run is None:
            return pa.table({})
        self.life.refuse_inside()
        check_columns("held", by, self.layout.columns)
        schema, live = self.query.bound.schema, run.live()
        time = schema.time if schema.time in self.layout.columns else None
        columns = list(dict.fromkeys([*by, *([] if time is None else [time])]))
        if live.size and columns:
            table = self.history.take(live, columns)
        else:
            table = pa.schema([(name, schema.attributes[name]) for name in columns]).empty_table()
        table = plain(table)
        if by:
            return counted(table, by, "events", {} if time is None else {time: "oldest"}).slice(0, most)
        return summary(self.stats, live.size, self.punctuation, None if time is None else table.column(time))

    # -- types --------------------------------------------------------------------------------------------------------

    def bind(self, schema: Schema) -> None:
        """Take the types of the columns."""
        self._query = self.query.bind(schema)
        self.start()

    def start(self) -> None:
        """Begin a stream, of which the types are known."""
        streams = self.query.streams
        if len(streams) > 1 and self.query.bound.schema.stream is None:
            raise OptionError(
                f"the query reads {len(streams)} streams ({', '.join(streams)}): name the column that tells them apart "
                "with stream='…'"
            )
        self.layout = layout_of(self.query, **self.reading.shown)
        if self.sets:
            program: Program = program_of_sets(self.query, timeouts=self.reading.timeouts)
        else:
            refuse_unlisted(self.query)
            refuse_pipes(self.query, "a stream has no end", "take the rows that you want from what push() gives")
            program = self.query.program(valuations=self.valuations, split=self.split, timeouts=self.reading.timeouts)
        self.program = program
        self.run = self._started(program)
        self.history = History(self.layout.columns)
        self.life = Life()
        self.lacking = None if self.warn_after is None else Lacking(self.query, self.warn_after)
        self._retries = Retries(self._copied, self._put_back)
        if self.disorder is not None:
            self.sorter, self.arrivals = self._new_sorter(), Arrivals()

    def _started(self, program: Program) -> Run:
        """A run at the beginning of the stream."""
        return program.start(
            labels=self.layout.labels,
            counts=self.layout.summary,
            late=self.late_policy if self.disorder is None else "error",
            capacity=self.capacity,
            budget=Meter.of_call(self.budget).budget.held,
        )

    @property
    def _implied(self) -> Derived:
        """The columns of keys that conditions say."""
        return self.query.implied if self.split else Derived()

    @property
    def _is_split(self) -> bool:
        """Whether keys that conditions say split the stream."""
        return self.split and self.query.split is not self.query.bound

    def _new_sorter(self) -> Cleanse:
        """What puts events in order before they are read."""
        bound = self.query.bound
        schema = bound.schema
        if schema.time is None:
            raise OptionError(_NO_TIME)
        span(self.disorder, "disorder", schema.attributes[schema.time], schema.time, schema.time_unit)
        names = dict.fromkeys((*bound.tested, *self.layout.columns, schema.time))
        if self.sequence is not None:
            require(schema.attributes, self.sequence, "sequence")
            names[self.sequence] = None
        return Cleanse(
            pa.schema([(name, schema.attributes[name]) for name in names]),
            time=schema.time,
            sequence=self.sequence,
            disorder=self.disorder,
            late=self.late_policy,
            time_unit=schema.time_unit,
        )

    def _learn_types(self, table: pa.Table) -> None:
        """Take the types of columns from the first batch; wider ones where a later batch contradicts it.

        Raises
        ------
        DataError
            What is kept of earlier batches depends on the types that they had.
        """
        if self.run is None:
            if table.num_columns:
                self.bind(self.reading.schema(table.schema))
                nulls = {one.name for one in table.schema if pa.types.is_null(one.type)}
                self.unknown = frozenset(nulls if self.inferred else ())
            return
        if not self.inferred:
            return
        bound = self.query.bound
        window = () if bound.window is None else (bound.window.attribute,)
        keys = (self.query.split if self.split else bound).partition_by
        made = [name for key in self._implied.keys for _, name in key.parts]
        fixed = {bound.schema.time, self.sequence, *window, *keys, *made}
        read = dict.fromkeys((*bound.tested, *self.layout.columns))
        found = wider(table, {name: bound.schema.attributes[name] for name in read}, self.unknown, fixed)
        if found:
            self.life.refuse_inside()
            self._widen(found)
        if self.unknown:
            told = {one.name for one in table.schema if not pa.types.is_null(one.type)}
            self.unknown -= told

    def _widen(self, found: Mapping[str, pa.DataType]) -> None:
        """Go on with other types of columns; where that cannot be, nothing has changed."""
        schema = self.query.bound.schema
        made = copy.copy(self)
        made.split = self._is_split
        made.bind(replace(schema, attributes={**schema.attributes, **found}))
        try:
            self._carry_over(made)
        except DataError as error:
            name = min(found, key=lambda one: one in self.unknown)
            raise DataError(
                f"column '{name}' is {found[name]}, and batches before had {schema.attributes[name]}: {error}{BEFORE[1]}"
            ) from error
        self._query, self.layout, self.split = made.query, made.layout, made.split
        self.program, self.run, self.history = made.program, made.run, made.history
        self.lacking = None  # it has looked at values of other types
        self._retries = Retries(self._copied, self._put_back)

    def _carry_over(self, made: InOrderExecutor) -> None:
        """Give one of wider types the state.

        Raises
        ------
        DataError
            The state depends on the types that the columns had.
        """
        before, after = self._running(), made.run
        assert after is not None
        after.take_over(before, self.unknown)
        positions, table = self.history.joined()
        if positions.size:
            attributes = made.query.bound.schema.attributes
            for name in self.unknown & set(table.column_names):
                nothing = pa.nulls(table.num_rows, attributes[name])
                table = table.set_column(table.column_names.index(name), name, nothing)
            made.history.append(positions, conform(table, table.column_names, attributes, "it becomes"))
            made.history.kept = self.history.kept
        if self.sorter is not None and made.sorter is not None:
            assert made.sorter.schema is not None
            self.sorter.retype(made.sorter.schema)

    # -- events -------------------------------------------------------------------------------------------------------

    def prime(self, events: Any) -> None:
        if self.disorder is not None:
            raise OptionError("prime() does not fit disorder=: what waits would be listed when it is read")
        if self.query.consume is not Consume.NONE:
            raise OptionError(f"prime() does not fit CONSUME BY {self.query.consume}: push the events instead")
        if self.query.parsed.keep is not None:
            raise OptionError(
                "prime() does not fit KEEP and AFTER MATCH, where matches depend on those before: push the events"
            )
        if self.reading.timeouts:
            raise OptionError(
                "prime() does not fit timeouts=: what times out depends on the matches before; push the events"
            )
        _drained(self._read(events, [], silent=True))

    def push_sets(self, events: Any) -> Iterator[MatchSet]:
        if not self.sets:
            raise OptionError("push_sets() needs Matcher(…, sets=True)")
        return self._set_by_set(self._table(events))

    @property
    def shown(self) -> pa.Schema:
        return self.layout.schema()

    def _clock(self, time: Any) -> tuple[str, pa.DataType]:
        schema = self.query.bound.schema
        if schema.time is None:
            raise OptionError("advance(time) needs a time column: pass time='…'")
        return schema.time, schema.attributes[schema.time]

    def _moment(self, time: pa.Array, name: str) -> Any:
        return values_of(time, name, self._running().rows)[0].item()

    def _reached(self, time: Any) -> Iterator[pa.Table]:
        run = self._running()
        if isinstance(run, Intake):
            run.advanced = time
        yield from self._tables(run.reach(time))
        self._forget()

    def _told(self) -> Iterator[pa.Table]:
        assert self.sorter is not None
        yield from self._wait_for(self.sorter.last_time)
        self._forget()

    def _ended(self) -> Iterator[pa.Table]:
        self.life.finished = True
        yield from self._completed()

    def _completed(self) -> Iterator[pa.Table]:
        """What the end completes of what was read."""
        if self.run is not None and (self.completes or self.layout.at_end):
            yield from self._tables(self.run.finish())

    def foreseen(self, ahead: Any) -> pa.Table:
        """What would come beside what was given, if the stream ended with the events that wait. Nothing changes.

        A row for which a computation overflows is left out; the error comes when it is read.

        Parameters
        ----------
        ahead
            Of these, those with a time below the punctuation plus so much: ticks of the time, a span, or ``math.inf``.
        """
        if self.sorter is None or self.run is None:
            return pa.table({})
        self.life.refuse_inside()
        there = copy.copy(self)
        there.meter = Meter.of_call(self.budget)
        return there.end_with(self.sorter.waiting(ahead))

    def end_with(self, waited: Released) -> pa.Table:
        """Go on with a copy of the state, to the end of the stream, which these events are."""
        self._put_back(self._copied())
        self.life, self.lacking, self._held = Life(), None, []
        self._retries = Retries(self._copied, self._put_back)
        if self._may_overflow():
            self._leave_out(waited)
        elif waited.rows.size:
            assert self.arrivals is not None
            self.arrivals.append(waited.rows)
            self._held += self._advance(waited.table, silent=False)
        return self._gathered([*self._held, *self._completed()])

    def _read(self, events: Any, punctuations: list[tuple[int, Any]], *, silent: bool = False) -> Iterator[pa.Table]:
        self.life.refuse_finished()
        table = self._table(events)
        if self.run is None and (not table.num_columns or table.column_names == [self.reading.stream]):
            return iter(())
        self._learn_types(table)
        sorter = self.sorter
        if sorter is not None:
            return self._through(lambda: sorter.let(table, punctuations))
        self._refuse_punctuations(punctuations)
        return self._advance(table, silent)

    def _table(self, events: Any) -> pa.Table:
        """The next events as a table; those of several streams merged by time."""
        own = self.reading
        type, time, stream, _ = self.query.roles(own.type, own.time, own.stream, own.time_unit)
        if are_streams(events, self.query, self.streams):
            needed = None if self.run is None else (*self.query.bound.tested, *self.layout.columns)
            table, column = merged(self.query, events, type, time, own.sequence, stream, needed, self.streams)
            if stream is None and column is not None:
                if self.run is not None:
                    raise OptionError(
                        "the events come by stream, and no column of the matcher's names the stream: stream='…', also in its schema"
                    )
                self.reading = own._replace(stream=column)
            self.streams = tuple(dict.fromkeys([*self.streams, *events]))
            return table
        table = as_table(events)
        if (keys := self.query.parsed.joined) and table.num_columns:
            table = Derived((), keys, stream).added_to(table, bound=self.run is not None)
        return table

    def _tables(self, found: Iterable[Matches]) -> Iterator[pa.Table]:
        """What the run finds as tables, within the budget of the call."""
        return Listing(self.meter, self._running(), self.layout, self.history, self.arrivals).tables(found)

    def _batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The next events, checked, in pieces; what results may show of each is kept before it is given."""
        run = self._running()
        self.life.refuse_inside()
        if not table.num_rows and not table.num_columns:
            return
        bound = self.query.bound
        told = BEFORE if self.inferred else ()
        table = conform(table, (*bound.tested, *self.layout.columns), bound.schema.attributes, *told)
        kept = table.select(list(self.layout.columns))
        whole = self._implied.added_to(table)
        tested = whole.select(list(run.program.columns)).combine_chunks()
        try:
            run.check(tested)
        except IntegerOverflow as error:
            raise error.renumbered(self.arrivals) from None
        if self.lacking is not None:
            lacks = self.lacking.read(whole)
            self.lacking = None if self.lacking.done else self.lacking
            for said in lacks:
                warn(said)
        with self.life.reading():
            for batch in tested.to_batches(max_chunksize=CHUNK):
                first = run.rows
                if self.layout.columns:
                    positions = np.arange(first, first + batch.num_rows)
                    self.history.append(positions, kept.slice(0, batch.num_rows))
                    kept = kept.slice(batch.num_rows)
                yield batch
                self._forget()

    def _advance(self, table: pa.Table, silent: bool) -> Iterator[pa.Table]:
        run = self._running()
        if self.sets and not silent:
            raise OptionError("this matcher was made with sets=True: push_sets() takes events")
        for batch in self._batches(table):
            yield from self._tables(run.advance(batch, silent=silent))

    def _set_by_set(self, table: pa.Table) -> Iterator[MatchSet]:
        self._learn_types(table)
        run = self._running()
        assert isinstance(run, NfabRunner)
        for batch in self._batches(table):
            for found in run.sets(batch):
                yield MatchSet(found, self.layout, self.history.frozen(), run.program.marks)

    def _forget(self) -> None:
        run, arrivals = self._running(), self.arrivals
        if not self.layout.columns:
            return  # nor are there times, without which no stream is sorted
        oldest = self.history.let_go(run)
        if oldest is not None and arrivals is not None:
            arrivals.forget(oldest)

    # -- events that are sorted -----------------------------------------------------------------------------------------

    def _through(self, operation: Callable[[], Released]) -> Iterator[pa.Table]:
        """What the sorter lets through goes to the run; rows for which a computation overflows are left out."""
        sorter, arrivals = self.sorter, self.arrivals
        assert sorter is not None
        assert arrivals is not None
        self.life.refuse_inside()
        before, count = sorter.saved(), len(arrivals)
        released = operation()
        if not self._may_overflow():
            arrivals.append(released.rows)
            try:
                if released.rows.size:
                    yield from self._advance(released.table, silent=False)
            except StrettoError:
                if not self.life.inside:
                    sorter.go_back(before)
                    arrivals.cut(count)
                raise
            yield from self._decided()
            return
        refused = self._leave_out(released)
        self._held += self._decided()
        if refused is not None:
            raise refused
        held, self._held = self._held, []
        yield from held

    def _decided(self) -> Iterator[pa.Table]:
        """The matches that the punctuation decides."""
        assert self.sorter is not None
        parsed = self.query.parsed
        closes = self.reading.timeouts or self.layout.by_windows
        if parsed.last_negation is not None or parsed.keep is not None or closes:
            yield from self._wait_for(self.sorter.last_time)

    def _wait_for(self, time: pa.Array | None) -> Iterator[pa.Table]:
        """The matches that wait for a time."""
        run, name = self._running(), self.query.bound.schema.time
        if time is None or name is None:
            return
        value = values_of(time, name, run.rows)[0].item()
        if not self._deep:
            yield from self._tables(run.reach(value))
            return
        self._retries.before()
        try:
            yield from self._tables(run.reach(value))
        finally:
            self._retries.after(lambda: _drained(self._running().reach(value)))

    def _may_overflow(self) -> bool:
        """Whether a row may fail that the run reads."""
        return self.query.bound.computes or self.query.bound.computes_matches

    @property
    def _deep(self) -> bool:
        """Whether a row may fail when a match is listed that it completes, so that it has been read by then."""
        return self._may_overflow() and self.query.language == "sase"

    def _leave_out(self, released: Released) -> IntegerOverflow | None:
        """Read events, but for those that make an integer overflow; the error that names these. Output is held."""
        table, rows = released.table, released.rows
        refused: list[IntegerOverflow] = []
        # Conditions on single events are computed before any is read; computations over the events of a match when it is listed.
        deep = self._deep
        if deep and rows.size:
            self._retries.before()
        while rows.size:
            assert self.arrivals is not None
            count = len(self.arrivals)
            self.arrivals.append(rows)
            try:
                self._held += list(self._advance(table, silent=False))
                break
            except IntegerOverflow as error:
                at = np.flatnonzero(rows == error.row)
                if deep:
                    self._retries.back()
                else:
                    self.arrivals.cut(count)
                if not at.size or self.life.inside:  # a total leaves 64 bits, of which the row is no more than a part
                    raise
                refused.append(error)
                table, rows = table.take(pa.array(np.delete(np.arange(rows.size), at))), np.delete(rows, at)
        if deep and rows.size:
            self._retries.after(lambda: self._again(table, rows))
        if not refused:
            return None
        others = [str(one.row) for one in refused[1:NAMED]] + ["…"] * (len(refused) > NAMED)
        more = f" (and so with {'row' if len(others) == 1 else 'rows'} {', '.join(others)})" if others else ""
        done = "these rows were" if others else "the row was"
        why = f"{refused[0].why}{more}\n{done} left out; all others were taken, and the next call gives their matches"
        return IntegerOverflow(refused[0].what, why, refused[0].row)

    def _again(self, table: pa.Table, rows: Any) -> None:
        """Read events whose matches were given; not silently, since matches may wait for what comes."""
        assert self.arrivals is not None
        self.arrivals.append(rows)
        for batch in self._batches(table):
            _drained(self._running().advance(batch))

    def _copied(self) -> _State:
        """The state, of which each goes on by itself."""
        run, arrivals = self._running(), self.arrivals
        assert arrivals is not None
        saved, other = Section(), self._started(self.program)
        run.save(saved)
        other.load(copy.deepcopy(saved))
        return _State(other, self.history.copy(), arrivals.copy())

    def _put_back(self, state: _State) -> None:
        self.run, self.history, self.arrivals = state
        self.life.inside = False

    # -- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        if self._held:
            raise SnapshotError("the last call failed, and its matches were not given yet: push([]) gives them")
        run = self.run
        section = Section({"query": self.query.text, "language": self.query.language, "started": run is not None})
        if run is None:
            return section.to_bytes()
        self.life.inside |= run.broken
        self.life.refuse_snapshot()
        section.values |= self._identity(run) | {"finished": self.life.finished, "kept": self.history.kept}
        if self.unknown:
            section.values["unknown"] = sorted(self.unknown)
        if self._is_split:
            section.values["split"] = True
        if self.streams:
            section.values["streams"] = list(self.streams)
        section.put_schema("schema", pa.schema(list(self.query.bound.schema.attributes.items())))
        run.save(section)
        self._forget()
        self.history.save(section.sub("history"))
        if self.sorter is not None and self.arrivals is not None:
            self.sorter.save(section.sub("sorter"))
            self.arrivals.save(section)
        return section.to_bytes()

    @reading()
    def restore(self, snapshot: bytes) -> None:
        section = Section.of_bytes(snapshot)
        header = section.values
        if "afa" in header:
            raise SnapshotError("the snapshot is of an AFA, not of a query")
        if "speculation" in header:
            raise SnapshotError("the snapshot is of a matcher with speculation=, and this one has none")
        language = header.get("language", self.query.language)
        check_same(header.get("query"), self.query.parsed, partial(read, language=language))
        self._held = []
        self.split = header.get(
            "split", not header["started"] and not self.reading.timeouts
        )  # states of before are not
        if not header["started"]:
            if self.position:
                self.start()
            return
        self.streams = tuple(header.get("streams", ()))
        if self.streams and self.reading.stream is None and self.query.schema is None:
            self.reading = self.reading._replace(stream=header["roles"]["stream"])
        if self.query.schema is None:
            there = {name: header["roles"][name] for name in ("type", "time", "stream", "time_unit")}
            own = {name: self.reading.roles[name] for name in there}
            if there != own:
                raise SnapshotError(f"the snapshot's columns have other roles: {there}, not {own}")
            self.bind(Schema.of(section.schema("schema"), **there))
        self.start()
        self.lacking = None  # nobody knows what came before
        run = self._running()
        for key, value in self._identity(run).items():
            before = header.get(key)
            if before != value:
                if key == "options" and isinstance(before, dict):
                    raise SnapshotError(f"the snapshot does not fit: {options_differ(before, value)}")
                raise SnapshotError(
                    f"the snapshot does not fit: {_PARTS[key]} differ (snapshot: {before}, here: {value})"
                )
        with reading():
            run.load(section)
            self.history.load(section.sub("history"), run.rows, self.layout.kinds)
            if self.sorter is not None:
                self.sorter.load(section.sub("sorter"))
                self.arrivals = Arrivals.of(section, run.rows)
        self.life.finished = section.flag("finished")
        # It was written before the last events were let go of.
        self.history.kept = min(section.count("kept"), self.history.rows)
        self.unknown = frozenset(header.get("unknown", ()))

    def _identity(self, run: Run) -> dict[str, Any]:
        """What a state depends on. Two matchers with the same identity can take over each other's states."""
        schema = self.query.bound.schema
        used = sorted({*self.query.bound.tested, *self.layout.columns})
        sorts = {} if self.disorder is None else {"disorder": str(self.disorder), "sequence": self.sequence}
        return {
            "options": {
                "output": self.reading.output,
                "valuations": self.valuations,
                **({"timeouts": True} if self.reading.timeouts else {}),
                "late": run.late_policy if self.disorder is None else self.late_policy,
            }
            | sorts,
            "attributes": {name: str(schema.attributes[name]) for name in used},
            "roles": {"type": schema.type, "time": schema.time, "stream": schema.stream, "time_unit": schema.time_unit},
            "automaton": run.program.digest,
        }


#: What a state depends on, in words.
_PARTS = {
    "attributes": "the attributes that the query uses",
    "roles": "the roles of columns",
    "options": "the matcher's options",
    "automaton": "the automaton, as this version of stretto builds it",
}


def _drained(found: Iterable[Any]) -> None:
    """Read what a run finds, and keep nothing of it."""
    for _ in found:
        pass
