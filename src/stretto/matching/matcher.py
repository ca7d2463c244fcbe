"""A query over a stream of batches: ``stretto.Matcher``."""

from __future__ import annotations

import copy
import datetime as dt
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from stretto.column_types import wider
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, Program, Run
from stretto.engines.nfab.runner import NfabRunner
from stretto.errors import DataError, EngineError, OptionError, SnapshotError, StrettoError, suggestion
from stretto.events import BEFORE, Schema, as_table, conform
from stretto.languages.afa.builder import AFA
from stretto.matching.automaton import AfaMatcher
from stretto.matching.cleansed import CleansedMatcher
from stretto.matching.compiled import Query, compile_query, roles
from stretto.matching.metering import Meter
from stretto.matching.reorder import Cleanse, Released, check_span, span
from stretto.matching.results import CHUNK, Arrivals, History, Layout, build_tables
from stretto.matching.sets import MatchSet, program_of_sets, refuse_unlisted
from stretto.matching.speculating import SpeculatingMatcher
from stretto.query.afa import Afa
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.query import Consume
from stretto.query.sase import Aggregate, SaseQuery
from stretto.times import check_clock

__all__ = ["Matcher"]

#: Rows that an error names at most.
NAMED = 9

T = TypeVar("T")


class Matcher:
    """A query over a stream that comes in batches.

    Any split of the stream into batches gives the same rows in the same order.

    Parameters
    ----------
    query
        A query's text, or a compiled :class:`~stretto.Query`.
    schema
        What the events look like (see :func:`stretto.compile`); ``None``: as in the first batch.
    type, time, stream, time_unit, output, valuations, language
        As in :func:`match`.
    budget
        As in :func:`match`, for what one call of :meth:`push`, :meth:`advance` or :meth:`finish` lists; for :meth:`iter_push`, which
        gives pieces, only if it is said. After a LimitError the matcher has stopped inside the batch, and takes no more: a snapshot
        goes on, or a new matcher.
    positions
        Whether rows have ``start``, ``end`` and ``positions``, which count the events pushed so far.
    sets
        Matches are taken as sets (:meth:`push_sets`), not listed.
    late
        An event whose time is before the last one: ``"error"``, or ``"drop"``, which counts it in :attr:`late`. With ``disorder``
        also ``"side"``: :meth:`late_events` hands them over.
    disorder
        By how much events may come late: ticks of the time column, ``'5 seconds'``, a timedelta, or ``math.inf``. They are sorted
        before they are read, and wait until the greatest time seen is so much later, or until :meth:`advance` or :meth:`finish` say
        that nothing before them will come; only what is later than that is late. ``start``, ``end`` and ``positions`` still count the
        events as they were pushed. ``None``: events come in order. ``"speculate"``, for SASE+: matches come at once, and are taken
        back where a late event says so; then this is a :class:`~stretto.matching.speculating.SpeculatingMatcher`.
    sequence
        With ``disorder``: a column of integers that orders events of the same time; ``None``: they are ordered as they come.

    Examples
    --------
    >>> import stretto
    >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A AS x; B AS y", output="positions")
    >>> matcher.push([{"type": "A"}]).num_rows
    0
    >>> matcher.push([{"type": "B"}]).to_pylist()
    [{'start': 0, 'end': 1, 'positions': [0, 1]}]
    >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A AS x; B AS y", output="positions", time="t", disorder=5)
    >>> matcher.push([{"type": "B", "t": 4}, {"type": "A", "t": 3}]).num_rows
    0
    >>> matcher.finish().to_pylist()
    [{'start': 1, 'end': 0, 'positions': [0, 1], 'start_time': 3, 'end_time': 4}]
    """

    def __new__(
        cls,
        query: Any,
        schema: Any = None,
        *,
        type: str | None = "type",
        time: str | None = None,
        sequence: str | None = None,
        stream: str | None = None,
        time_unit: str | None = None,
        output: str = "events",
        positions: bool = True,
        valuations: bool = False,
        late: str = "error",
        language: str | None = None,
        sets: bool = False,
        disorder: Any = None,
        sign: str | None = None,
        until: str | None = None,
        numbered: str | None = None,
        bag: bool = False,
        provenance: bool = False,
        ordered: bool = False,
        dynamic: str = "default",
        timer: str | None = None,
        ignore: bool = True,
        speculation: Any = None,
        bound: Any = None,
        cleanse: str | None = None,
        budget: int | float | str | Meter | None = None,
        capacity: int | None = None,
    ) -> Any:
        """For an AFA, an :class:`~stretto.matching.automaton.AfaMatcher`, or a :class:`~stretto.matching.cleansed.CleansedMatcher`.

        With ``disorder="speculate"``, a ``SpeculatingMatcher``. The parameters are those of all of them.
        """
        given = {name: value for name, value in locals().items() if name in _DEFAULTS and value != _DEFAULTS[name]}
        if isinstance(query, AFA | Afa):
            _refuse(given, _OF_MATCHES, "queries in CEQL or SASE+, and this is an AFA")
            cleansed = any(name in given for name in ("speculation", "bound", "cleanse"))
            return CleansedMatcher(query, schema, **given) if cleansed else AfaMatcher(query, schema, **given)
        _refuse(given, _OF_AUTOMATA, "AFAs, and this is a query")
        if isinstance(disorder, str) and disorder == "speculate":
            del given["disorder"]
            return SpeculatingMatcher(query, schema, **given)
        _refuse(given, _OF_RETRACTIONS, "streams with retractions")
        return super().__new__(cls)

    def __init__(
        self,
        query: str | Query,
        schema: Any = None,
        *,
        type: str | None = "type",
        time: str | None = None,
        stream: str | None = None,
        time_unit: str | None = None,
        output: str = "events",
        positions: bool = True,
        valuations: bool = False,
        late: str = "error",
        language: str | None = None,
        sets: bool = False,
        disorder: Any = None,
        sequence: str | None = None,
        budget: int | float | str | Meter | None = None,
        capacity: int = 1 << 12,
    ) -> None:
        policies = ("error", "drop") if disorder is None else ("error", "drop", "side")
        if late not in policies:
            raise OptionError(f"late={late!r}: expected {' or '.join(map(repr, policies))}")
        if disorder is None and sequence is not None:
            raise OptionError("sequence= orders events of one time where a matcher sorts: give disorder= as well")
        self._roles = roles(type, time, stream, None, time_unit)
        self._query = compile_query(query, language=language)
        self._options = {"output": output, "positions": positions}
        self._valuations = valuations
        self._sets = sets
        self._late_policy = late
        self._capacity = capacity
        self._budget = budget
        self._disorder, self._sequence = disorder, sequence
        self._sorter: Cleanse | None = None
        self._arrivals: Arrivals | None = None
        self._held: list[pa.Table] = []  # what a call that failed would have given
        if disorder is not None:
            refuse_disorder(disorder, sets=sets)
            if time is None and not isinstance(schema, Schema) and self._query.schema is None:
                raise OptionError(_NO_TIME)
        self._runner: Run | None = None
        self._meter = Meter.of_call(budget)  # of the call at hand
        self._finished = False
        #: Whether batches tell the types, and the columns that had nothing but NULL so far.
        self._inferred = schema is None and self._query.schema is None
        self._unknown: frozenset[str] = frozenset()
        Layout.check(output)
        if schema is not None:
            self._bind(Schema.of(schema, **self._roles) if not isinstance(schema, Schema) else schema)
        elif self._query.schema is not None:
            self._start()

    @property
    def query(self) -> Query:
        """The query; bound once the schema is known."""
        return self._query

    @property
    def late(self) -> int:
        """How many late events were dropped."""
        if self._sorter is not None:
            return self._sorter.late
        return self._runner.late if self._runner else 0

    def late_events(self) -> pa.Table:
        """With ``disorder`` and ``late="side"``: the late events since the last call, with the columns that the query reads."""
        return pa.table({}) if self._sorter is None else self._sorter.late_events()

    @property
    def punctuation(self) -> Any:
        """With ``disorder``: no event before this time waits or will be read any more; ``None``: none is known."""
        return None if self._sorter is None else self._sorter.punctuation

    @property
    def position(self) -> int:
        """How many events were pushed."""
        if self._sorter is not None:
            return self._sorter.position
        return self._runner.rows if self._runner else 0

    @property
    def stats(self) -> dict[str, int]:
        """Counts: events pushed, visited by the kernel, late, with output; partitions; nodes that hold partial matches; bytes.

        With ``disorder`` also ``waiting``: events that are not certain yet.
        """
        runner = self._runner
        if runner is None:
            return dict.fromkeys(("events", "visited", "late", "triggers", "partitions", "nodes", "bytes"), 0)
        found = runner.stats
        found["bytes"] += self._history.nbytes
        sorter, arrivals = self._sorter, self._arrivals
        if sorter is not None and arrivals is not None:
            there = sorter.stats
            found |= {"events": there["rows"], "late": there["late"], "waiting": there["buffered"]}
            found["bytes"] += there["bytes"] + arrivals.nbytes
        return found

    @property
    def idle(self) -> bool:
        """Whether no event so far can take part in a later match: a new matcher would give the same from here on."""
        waits = self._sorter is not None and self._sorter.buffered > 0
        return self._runner is None or not (waits or not self._runner.idle)

    @property
    def expires(self) -> int | float | None:
        """The last time at which the window of a pushed event is still open (integer or float, as the engine measures times).

        ``None`` when nothing is pending, or when it is not time that closes windows.
        """
        return self._runner.expires if self._runner else None

    def _bind(self, schema: Schema) -> None:
        self._query = self._query.bind(schema)
        self._start()

    def _learn_types(self, table: pa.Table) -> None:
        """Take the types of columns from the first batch; wider ones where a later batch contradicts it.

        Raises
        ------
        DataError
            What is kept of earlier batches depends on the types that they had.
        """
        if self._runner is None:
            if table.num_columns:
                self._bind(Schema.of(table.schema, **self._roles))
                nulls = {one.name for one in table.schema if pa.types.is_null(one.type)}
                self._unknown = frozenset(nulls if self._inferred else ())
            return
        if not self._inferred:
            return
        bound = self._query.bound
        window = () if bound.window is None else (bound.window.attribute,)
        fixed = {bound.schema.time, self._sequence, *window, *bound.partition_by}
        read = dict.fromkeys((*bound.tested, *self._layout.columns))
        found = wider(table, {name: bound.schema.attributes[name] for name in read}, self._unknown, fixed)
        if found:
            self._refuse_inside()
            self._widen(found)
        if self._unknown:
            told = {one.name for one in table.schema if not pa.types.is_null(one.type)}
            self._unknown -= told

    def _widen(self, found: Mapping[str, pa.DataType]) -> None:
        """Go on with other types of columns; where that cannot be, nothing has changed."""
        from stretto.matching.snapshots import carry_over

        schema = self._query.bound.schema
        made = object.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        made._query = self._query.bind(replace(schema, attributes={**schema.attributes, **found}))
        made._start()
        try:
            carry_over(self, made, self._unknown)
        except DataError as error:
            name = min(found, key=lambda one: one in self._unknown)
            raise DataError(
                f"column '{name}' is {found[name]}, and batches before had {schema.attributes[name]}: {error}{BEFORE[1]}"
            ) from error
        self.__dict__.update(made.__dict__)

    def _start(self) -> None:
        streams = self._query.streams
        if len(streams) > 1 and self._query.bound.schema.stream is None:
            raise OptionError(
                f"the query reads {len(streams)} streams ({', '.join(streams)}): name the column that tells them apart "
                "with stream='…'"
            )
        self._layout = Layout(self._query.bound, **self._options)  # type: ignore[arg-type]
        if self._sets:
            program: Program = program_of_sets(self._query)
        else:
            refuse_unlisted(self._query)
            program = self._query.program(valuations=self._valuations)
        late = self._late_policy if self._disorder is None else "error"
        self._runner = program.start(
            labels=self._layout.labels, counts=self._layout.summary, late=late, capacity=self._capacity
        )
        self._history = History(self._layout.columns)
        if self._disorder is not None:
            self._sorter, self._arrivals = self._new_sorter(), Arrivals()
        self._inside = False  # a batch is being read, or was left half read

    def _new_sorter(self) -> Cleanse:
        """What puts events in order before they are read."""
        bound = self._query.bound
        schema = bound.schema
        if schema.time is None:
            raise OptionError(_NO_TIME)
        span(self._disorder, "disorder", schema.attributes[schema.time], schema.time, schema.time_unit)
        names = dict.fromkeys((*bound.tested, *self._layout.columns, schema.time))
        if self._sequence is not None:
            if self._sequence not in schema.attributes:
                hint = suggestion(self._sequence, schema.attributes, kind="column")
                raise DataError(
                    f"the events have no column '{self._sequence}' (sequence)" + (f"; {hint}" if hint else "")
                )
            names[self._sequence] = None
        return Cleanse(
            pa.schema([(name, schema.attributes[name]) for name in names]),
            time=schema.time,
            sequence=self._sequence,
            disorder=self._disorder,
            late=self._late_policy,
            time_unit=schema.time_unit,
        )

    def push(self, events: Any) -> pa.Table:
        """Read the next events, and give the matches that they complete.

        Raises
        ------
        DataError
            The events do not fit the schema, or come before the last ones in time: nothing of the batch was read then. Or a sum
            or product between events leaves 64 bits: then the matcher has stopped inside the batch, and a snapshot goes on. With
            ``disorder``, the event for which a computation leaves 64 bits may have come before; it is left out, all others are
            taken, and the next call gives their matches.
        """
        tables = self._read(events, silent=False)
        self._meter = Meter.of_call(self._budget)
        return self._gather(tables)

    def iter_push(self, events: Any) -> Iterator[pa.Table]:
        """As :meth:`push`, in pieces of bounded size. Must be read to the end before the next call."""
        tables = self._read(events, silent=False)
        self._meter = Meter.of_call(self._budget, pieces=True)
        return tables

    def _tables(self, found: Iterable[Matches]) -> Iterator[pa.Table]:
        """What an engine finds as tables, within the budget of the call."""
        runner = self._running()
        rows, order = self._history, self._arrivals
        found = self._meter.watch(found, runner, self._layout, rows, order)
        return build_tables(found, self._layout, rows, runner.program.marks, order)

    def _read(self, events: Any, silent: bool) -> Iterator[pa.Table]:
        if self._finished:
            raise OptionError("the matcher is finished; start a new one, or restore a snapshot")
        table = as_table(events)
        if self._runner is None and not table.num_columns:
            return iter(())
        self._learn_types(table)
        sorter = self._sorter
        if sorter is not None:
            return self._through(lambda: sorter.let(table))
        return self._advance(table, silent)

    def _through(self, operation: Callable[[], Released]) -> Iterator[pa.Table]:
        """What the sorter lets through goes to the engine; rows for which a computation overflows are left out."""
        sorter, arrivals = self._sorter, self._arrivals
        assert sorter is not None
        assert arrivals is not None
        self._refuse_inside()
        before, count = sorter.saved(), len(arrivals)
        released = operation()
        if not self._may_overflow():
            arrivals.append(released.rows)
            try:
                if released.rows.size:
                    yield from self._advance(released.table, silent=False)
            except StrettoError:
                if not self._inside:
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
        parsed = self._query.parsed
        assert self._sorter is not None
        if isinstance(parsed, SaseQuery) and parsed.components[-1].negated:
            yield from self._wait_for(self._sorter.last_time)

    def _may_overflow(self) -> bool:
        """Whether a row may fail that the engine reads."""
        bound = self._query.bound
        if bound.computes or not isinstance(bound, BoundSase):
            return bound.computes
        return bound.returns is not None or any(isinstance(one, Aggregate) for one in bound.parsed.references.values())

    def _leave_out(self, released: Released) -> IntegerOverflow | None:
        """Read events, but for those that make an integer overflow; the error that names these. Output is held."""
        table, rows = released.table, released.rows
        refused: list[IntegerOverflow] = []
        while rows.size:
            runner, arrivals = self._running(), self._arrivals
            assert arrivals is not None
            # What fails is told before anything is read, but for computations over the events of a match.
            deep = isinstance(self._query.bound, BoundSase)
            state = copy.deepcopy(runner, {id(runner.program): runner.program}) if deep else runner
            history, known = self._history, arrivals.kept()
            pieces = (list(history.pieces), history.rows, history.kept)
            arrivals.append(rows)
            try:
                self._held += list(self._advance(table, silent=False))
                break
            except IntegerOverflow as error:
                at = np.flatnonzero(rows == error.row)
                self._runner, self._arrivals, self._inside = state, Arrivals(*known), False
                self._history = History(self._layout.columns)
                self._history.pieces, self._history.rows, self._history.kept = pieces
                if not at.size:
                    raise
                refused.append(error)
                table, rows = table.take(pa.array(np.delete(np.arange(rows.size), at))), np.delete(rows, at)
        if not refused:
            return None
        others = [str(one.row) for one in refused[1:NAMED]] + ["…"] * (len(refused) > NAMED)
        more = f" (and so with {'row' if len(others) == 1 else 'rows'} {', '.join(others)})" if others else ""
        done = "these rows were" if others else "the row was"
        why = f"{refused[0].why}{more}\n{done} left out; all others were taken, and the next call gives their matches"
        return IntegerOverflow(refused[0].what, why, refused[0].row)

    def _wait_for(self, time: pa.Array | None) -> Iterator[pa.Table]:
        """The matches that wait for a time."""
        from stretto.engines.shared.windows import values_of

        runner, name = self._running(), self._query.bound.schema.time
        if time is not None and name is not None:
            value = values_of(time, name, runner.rows)[0].item()
            found = runner.reach(value)
            yield from self._tables(found)

    def push_sets(self, events: Any) -> Iterator[MatchSet]:
        """As :meth:`push`, with the matches of each event that completes some as a set (see :func:`match_sets`).

        The matcher must have been made with ``sets=True``. Must be read to the end before the next call.
        """
        if not self._sets:
            raise OptionError("push_sets() needs Matcher(…, sets=True)")
        return self._set_by_set(as_table(events))

    def _set_by_set(self, table: pa.Table) -> Iterator[MatchSet]:
        self._learn_types(table)
        runner = self._running()
        assert isinstance(runner, NfabRunner)
        for batch in self._batches(table):
            for found in runner.sets(batch):
                rows = History(self._layout.columns)
                rows.append(*self._history.joined())
                yield MatchSet(found, self._layout, rows, runner.program.marks)
            self._forget()
        self._inside = False

    def prime(self, events: Any) -> None:
        """Read the next events without what they complete: they only may begin or prolong matches that later events complete.

        For the events before the part of a stream whose matches are wanted. Costs less than :meth:`push`, which lists matches.

        Raises
        ------
        DataError
            As :meth:`push`.
        OptionError
            The query has ``CONSUME BY``: what an event forgets depends on the matches that it completes.

        Examples
        --------
        >>> import stretto
        >>> matcher = stretto.Matcher("SELECT * FROM S WHERE A; B", output="positions")
        >>> matcher.prime([{"type": "A"}, {"type": "B"}])
        >>> matcher.push([{"type": "B"}]).to_pylist()
        [{'start': 0, 'end': 2, 'positions': [0, 2]}]
        """
        if self._disorder is not None:
            raise OptionError("prime() does not fit disorder=: what waits would be listed when it is read")
        if self._query.consume is not Consume.NONE:
            raise OptionError(f"prime() does not fit CONSUME BY {self._query.consume}: push the events instead")
        for _ in self._read(events, silent=True):
            pass

    def _refuse_inside(self) -> None:
        if self._inside:
            raise EngineError(
                "this matcher was stopped in the middle of a batch; restore a snapshot or start a new one"
            )

    def _numbered(self, found: Iterator[T]) -> Iterator[T]:
        """What an engine finds; an error names the row as it was pushed, also where events were sorted."""
        try:
            yield from found
        except IntegerOverflow as error:
            raise error.renumbered(self._arrivals) from None

    def _batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The next events, checked, in pieces; what results may show of each is kept before it is given."""
        runner = self._running()
        self._refuse_inside()
        if not table.num_rows and not table.num_columns:
            return
        bound = self._query.bound
        told = BEFORE if self._inferred else ()
        table = conform(table, (*bound.tested, *self._layout.columns), bound.schema.attributes, *told)
        kept = table.select(list(self._layout.columns))
        tested = table.select(list(bound.tested)).combine_chunks()
        batches = tested.to_batches(max_chunksize=CHUNK)
        try:
            runner.check(tested)
        except IntegerOverflow as error:
            raise error.renumbered(self._arrivals) from None
        self._inside = True
        for batch in batches:
            first = runner.rows
            if self._layout.columns:
                positions = np.arange(first, first + batch.num_rows)
                self._history.append(positions, kept.slice(0, batch.num_rows))
                kept = kept.slice(batch.num_rows)
            yield batch

    def _advance(self, table: pa.Table, silent: bool) -> Iterator[pa.Table]:
        runner = self._running()
        if self._sets and not silent:
            raise OptionError("this matcher was made with sets=True: push_sets() takes events")
        for batch in self._batches(table):
            yield from self._tables(self._numbered(runner.advance(batch, silent=silent)))
            self._forget()
        self._inside = False

    def _forget(self) -> None:
        runner, arrivals = self._running(), self._arrivals
        if not self._layout.columns:
            return  # nor are there times, without which no stream is sorted
        oldest = self._history.let_go(runner)
        if oldest is not None and arrivals is not None:
            arrivals.forget(oldest)

    def advance(self, time: int | float | dt.datetime | dt.date) -> pa.Table:
        """No event before ``time`` will come: what no window reaches any more is freed. Earlier events are late from now on.

        Gives the matches that waited for that time: those of a SASE+ query with a negation at its end.
        """
        runner = self._running()
        self._meter = Meter.of_call(self._budget)
        name = self._query.bound.schema.time
        if name is None:
            raise OptionError("advance(time) needs a time column: pass time='…'")
        from stretto.engines.shared.windows import values_of

        kind = self._query.bound.schema.attributes[name]
        sorter = self._sorter
        if sorter is not None:
            tick = sorter.tick(time)
            tables = [*self._through(lambda: sorter.pass_on(tick)), *self._wait_for(sorter.last_time)]
            self._forget()
            return self._gather(tables)
        try:
            check_clock(time, kind)
        except ValueError as error:
            raise OptionError(f"advance({time!r}): '{name}' is {kind}; {error}") from error
        try:
            value = values_of(pa.array([time], kind), name, runner.rows)[0].item()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise OptionError(f"advance({time!r}): '{name}' is {kind}") from error
        found = self._gather(self._tables(runner.reach(value)))
        self._forget()
        return found

    def finish(self) -> pa.Table:
        """The stream has ended: gives the matches that only its end completes (for CEQL, none)."""
        sorter = self._sorter
        self._meter = Meter.of_call(self._budget)
        tables = [] if sorter is None or self._finished else list(self._through(sorter.end))
        self._finished = True
        runner = self._runner
        if runner is None:
            return pa.table({})
        return self._gather([*tables, *self._tables(runner.finish())])

    def snapshot(self) -> bytes:
        """The matcher's whole state, in a versioned format (see ``docs/snapshots.md``); small for a small state."""
        from stretto.matching.snapshots import save

        if self._held:
            raise SnapshotError("the last call failed, and its matches were not given yet: push([]) gives them")
        return save(self)

    def restore(self, snapshot: bytes) -> Matcher:
        """Take over the state of a snapshot of the same query, schema and options.

        Raises
        ------
        SnapshotError
            The bytes are damaged, of another version, or of another query, schema or option.
        """
        from stretto.matching.snapshots import load

        load(self, snapshot)
        self._held = []
        return self

    def _running(self) -> Run:
        if self._runner is None:
            raise OptionError("the matcher has no schema yet: pass schema=…, or push events first")
        return self._runner

    def _gather(self, tables: Iterable[pa.Table]) -> pa.Table:
        parts = list(tables)
        if self._runner is None:
            return pa.table({})
        schema = self._layout.schema()
        return pa.Table.from_batches([b for table in parts for b in table.to_batches()], schema=schema)


#: The options of every sort of matcher, with the values that they have where nothing is said.
_DEFAULTS = {
    name: one.default
    for name, one in inspect.signature(Matcher.__new__).parameters.items()
    if one.kind is inspect.Parameter.KEYWORD_ONLY
}

#: Options of queries alone, and what there is for an AFA.
_OF_MATCHES = {
    **dict.fromkeys(("stream", "time_unit", "output", "valuations", "language", "type", "positions", "sets"), ""),
    "disorder": "an AFA takes events in any order; bound= says how late they may be, and speculation= how far it goes "
    "ahead of what is certain",
}

#: Options of automata alone, and what there is for a query.
_OF_AUTOMATA = {
    **dict.fromkeys(("until", "numbered", "bag", "provenance", "ordered", "dynamic", "timer", "ignore", "cleanse"), ""),
    "bound": "disorder= says how late events of a query may be",
    "speculation": "disorder='speculate' answers at once (SASE+)",
}
_OF_RETRACTIONS = {"sign": "disorder='speculate' takes them (SASE+)"}


def _refuse(given: Mapping[str, Any], others: Mapping[str, str], whose: str) -> None:
    """Raise an :class:`OptionError` for an option of another sort of matcher."""
    for name in given:
        if name in others:
            hint = f": {others[name]}" if others[name] else ""
            raise OptionError(f"{name}={given[name]!r} is for {whose}{hint}")


#: Why a matcher cannot sort.
_NO_TIME = "disorder= sorts events by time: name the column that orders the stream with time='…'"


def refuse_disorder(disorder: Any, *, sets: bool) -> None:
    """Whether a matcher can put events in order as it is asked to.

    Raises
    ------
    OptionError
        It cannot; the reason.
    """
    check_span(disorder, "disorder")
    if sets:
        raise OptionError("sets of matches are of events in order: leave out disorder=, or list the matches")
