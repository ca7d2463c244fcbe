"""``stretto.why_not``: why a query has no match in some events.

What of a clause chooses among its matches, as the clause says it.

Events that come too late for a stream: which a table in the order of arrival has, and how late each is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.arguments import check_arguments
from stretto.array_types import I64
from stretto.asking.afa_events import AfaEvents, AfaTrial, AfaWitness
from stretto.asking.answering import answered
from stretto.asking.evidence import Witness
from stretto.asking.row_events import Rows, RowTrial, RowWitness
from stretto.asking.search import Search
from stretto.asking.trying import Events, Trial
from stretto.column_types import with_fields
from stretto.engines.rows.program import RowProgram
from stretto.engines.shared.moving import with_moving
from stretto.errors import OptionError
from stretto.events import Schema, as_table, require
from stretto.explaining.answer import Answer, NearMiss, Reason
from stretto.languages.afa.builder import AFA, is_afa
from stretto.languages.clauses import has_clause
from stretto.matching.compiled import Query, compile_query, roles
from stretto.matching.executors.row_pattern import read_clause
from stretto.matching.input.files import table_of
from stretto.matching.input.stream_union import are_tables, nothing, one_table, with_types_of_nulls
from stretto.matching.inspection.state_tables import as_in, has_key, named_keys
from stretto.matching.reorder import Cleanse
from stretto.matching.sql.compiled import SqlQuery
from stretto.query import row_pattern as r
from stretto.query.afa import Afa, shown
from stretto.query.constraints.afa import AfaChain
from stretto.query.constraints.of_query import chains_of
from stretto.query.constraints.row_pattern import RowsChain
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import RowQuery, RowsPerMatch
from stretto.query.sase import Selection


def choosing_rows(parsed: r.RowQuery) -> Iterator[tuple[str, r.RowQuery]]:
    """What chooses among the matches of a clause, in words, and the clause with all up to that.

    Of the alternatives of a pattern the first that matches a row is taken, also where it holds no row; then a match may skip others.
    """
    if isinstance(parsed.pattern, r.Alternation):
        yield f"PATTERN ({parsed.pattern})", replace(parsed, after=r.AfterMatch.NEXT, after_variable=None)
    if parsed.after is not r.AfterMatch.NEXT:
        variable = "" if parsed.after_variable is None else f" {r.identifier(parsed.after_variable)}"
        yield f"AFTER MATCH SKIP {parsed.after}{variable}", parsed


#: Late rows that an answer names.
NAMED = 5


@dataclass(frozen=True)
class Late:
    """The rows of a table that a stream with ``disorder=`` would leave out.

    >>> late = Late.of(pa.table({"t": [5, 9, 3, 8]}), "t", disorder=2, time_unit=None)
    >>> late.rows.tolist(), late.told([2])
    ([2], 'row 2 (t is 3) came behind row 1 (t is 9)')
    """

    table: pa.Table
    time: str
    disorder: Any
    rows: I64

    @classmethod
    def of(cls, table: pa.Table, time: str, disorder: Any, time_unit: str | None) -> Late:
        """Those of a table in the order in which its rows have arrived."""
        cleanse = Cleanse(time=time, disorder=disorder, late="drop", time_unit=time_unit)
        let = cleanse.let(table.select([time])).rows, cleanse.end().rows
        return cls(table, time, disorder, np.setdiff1d(np.arange(table.num_rows), np.concatenate(let)))

    @property
    def on_time(self) -> pa.ChunkedArray:
        """Which rows are not late, as booleans."""
        found = np.ones(self.table.num_rows, np.bool_)
        found[self.rows] = False
        return pa.chunked_array([found])

    def told(self, rows: list[int]) -> str:
        """Behind which row of a later time each of some rows came."""
        times = self.table[self.time]
        told = []
        for row in rows[:NAMED]:
            before = times.slice(0, row).to_numpy()
            at = int(before.argmax())
            told.append(
                f"row {row} ({self.time} is {times[row].as_py()}) came behind row {at} ({self.time} is {times[at].as_py()})"
            )
        more = len(rows) - NAMED
        return "; ".join(told) + (f"; and {more:,} more" if more > 0 else "")

    def answered(self, whole: Answer, on_time: Answer | None, most: int) -> Answer:
        """The answer over the events on time, and what those that are late would change.

        ``whole``: the answer over all events. ``on_time`` is ``None`` where the event that is asked about is late.
        """
        there = self.rows.tolist()
        if on_time is None:
            assert whole.event is not None
            reason = self._reason([whole.event])
            given = (NearMiss((), whole.match),) if whole.match is not None else whole.misses
            misses = tuple(replace(miss, reasons=(reason, *miss.reasons)) for miss in given)
            return replace(whole, match=None, misses=misses)
        misses = on_time.misses
        if whole.match is not None:
            held = {row for rows in whole.match.values() for row in rows}
            reason = self._reason([row for row in there if row in held] or there)
            misses = (NearMiss((reason,), whole.match), *misses)[:most]
        named = ", ".join(map(str, there[:NAMED])) + ", …" * (len(there) > NAMED)
        count = "1 event came" if len(there) == 1 else f"{len(there):,} events came"
        note = f"{count} too late for disorder={self.disorder!r}: row{'s' * (len(there) > 1)} {named}"
        return replace(on_time, misses=misses, notes=(*on_time.notes, note))

    def _reason(self, rows: list[int]) -> Reason:
        text = f"disorder={self.disorder!r}"
        values = tuple((self.time, self.table[self.time][row].as_py()) for row in rows[:NAMED])
        return Reason("late", text, self.told(rows), tuple(rows[:NAMED]), values)


@check_arguments
def why_not(  # noqa: PLR0913 - the options that users have
    query: str | Query | SqlQuery | AFA | Afa,
    events: Any,
    *,
    key: Any = None,
    between: tuple[Any, Any] | None = None,
    event: int | None = None,
    disorder: Any = None,
    most: int = 3,
    type: str | None = "type",
    time: str | None = None,
    sequence: str | None = None,
    stream: str | None = None,
    time_unit: str | None = None,
    language: str | None = None,
) -> Answer:
    """Say why a query has no match: the nearest misses, and what of the query is in the way of each.

    What an answer names is a smallest set of constraints: without all of them the query has a match, and without fewer it has none.
    Selections among matches (LIMIT, KEEP, CONSUME, NON_OVERLAP; MAX, NEXT and LAST of CEQL) are never in the way of all matches,
    and are left out; only of a given ``event`` they may be the reason.

    Parameters
    ----------
    query
        A query in CEQL, SASE+ or EQL: its text, or a compiled :class:`~stretto.Query`; or SQL that is one ``MATCH_RECOGNIZE`` clause
        over one table, whose rows are the events; or a :class:`stretto.AFA`.
    events
        As :func:`stretto.match` takes them; files are read into memory.
    key
        Look only at events of this key: the value of the query's partition attribute, or a dict of columns and their values.
    between
        Look only at events of these times, both included; ``None`` for one of them leaves that side open. Needs a ``time``.
    event
        A row of the input, counted from 0: is it in a match, and if not, what is in the way of those that would hold it?
    disorder
        The events are those of a stream, in the order in which they came, and what is later than so much is left out, as
        :class:`stretto.Matcher` does it. ``None``: they are in any order, and none is late.
    most
        How many near misses to give, the nearest first.
    type, time, sequence, stream, time_unit, language
        As :func:`stretto.match` has them.

    Returns
    -------
    Answer
        ``str()`` of it is the answer in words. ``matches`` says whether there is a match after all; ``reasons`` are those of the
        nearest miss; ``near_misses`` is a table of all that are given.

    Raises
    ------
    QueryError, DataError
        As of :func:`stretto.match`.
    OptionError
        The query is SQL around a clause; the key is not one of the query's; there is no time for ``between``, or no such row.

    Examples
    --------
    >>> import stretto
    >>> events = [{"type": "A", "x": 1}, {"type": "B", "x": 4}]
    >>> print(stretto.why_not("SELECT * FROM S WHERE A; B AS b FILTER b[x > 5]", events))
    No match in 2 events. The nearest miss:
    1. b[x > 5] does not hold: x is 4 in row 1
       A: row 0; b: row 1
    """
    if most < 1:
        raise OptionError(f"most={most}: one near miss at least")
    ask = partial(
        _answer,
        query,
        key=key,
        between=between,
        event=event,
        most=most,
        type=type,
        time=time,
        sequence=sequence,
        stream=stream,
        time_unit=time_unit,
        language=language,
    )
    if disorder is None:
        return ask(events, None)
    if are_tables(events):
        raise OptionError("disorder= is for events in the order in which they came: give one table of all streams")
    table = with_fields(as_table(table_of(events)), filter(None, [time]))
    late = Late.of(table, _time_of(query, table, time, language, time_unit), disorder, time_unit)
    on_time = None if event is not None and event in late.rows else ask(table, late)
    if on_time is not None and (on_time.matches or not late.rows.size):
        return on_time
    return late.answered(ask(table, None), on_time, most)


def _time_of(
    query: str | Query | SqlQuery | AFA | Afa,
    table: pa.Table,
    time: str | None,
    language: str | None,
    time_unit: str | None,
) -> str:
    """The column that orders the events."""
    if isinstance(query, SqlQuery) or (isinstance(query, str) and has_clause(query)):
        order = bind(clause_of(query, time_unit), table.schema).parsed.order_by
        time = order[0].column if order else None
    elif not is_afa(query):
        time = compile_query(query, language=language).roles(None, time, None, None)[1]
    if time is None:
        raise OptionError("disorder= is about the column of time: name it, time='…', or ORDER BY in a clause")
    require(table, time, "time")
    return time


def _answer(  # noqa: PLR0913 - the arguments of why_not
    query: str | Query | SqlQuery | AFA | Afa,
    events: Any,
    late: Late | None,
    *,
    key: Any,
    between: tuple[Any, Any] | None,
    event: int | None,
    most: int,
    type: str | None,
    time: str | None,
    sequence: str | None,
    stream: str | None,
    time_unit: str | None,
    language: str | None,
) -> Answer:
    """The answer over the events that are not late."""
    if is_afa(query):
        refuse_said("an automaton", {"stream": stream, "time_unit": time_unit, "language": language})
        found = afa_events_of(query.frozen, events, key, between, time, sequence, late)
        tried = AfaTrial(found, _position(event, found.table.num_rows, found.rows))
        tried.executor(found.afa)  # an automaton that does not fit is an error, and nothing that has no match
        asked = [Search(chain, tried) for chain in AfaChain.of(found.afa)]
        text = "\n".join(shown(arc, found.afa.register) for arc in found.afa.arcs)
        return answered(text, found.table.num_rows, asked, AfaWitness(found), most)
    if isinstance(query, SqlQuery) or (isinstance(query, str) and has_clause(query)):
        refuse_said(
            "MATCH_RECOGNIZE",
            {"time": time, "sequence": sequence, "stream": stream, "language": language},
        )
        parsed, rows = rows_of(query, events, key, between, time_unit, late)
        rowwise = RowTrial(rows, _position(event, rows.table.num_rows, rows.rows))
        searches = [Search(chain, rowwise) for chain in RowsChain.of(parsed)]
        chooses = [(words, RowProgram(bind(one, rows.bound.schema))) for words, one in choosing_rows(parsed)]
        return answered(str(query), rows.table.num_rows, searches, RowWitness(parsed, rows), most, "row", chooses)
    compiled, there = events_of(query, events, key, between, type, time, sequence, stream, time_unit, language, late)
    trial = Trial(there, _position(event, there.table.num_rows, there.rows))
    searches = [Search(chain, trial) for chain in chains_of(compiled.bound.parsed)]
    words = ", ".join(compiled.bound.parsed.choosers)
    chosen = [(words, compiled)] if words and compiled.parsed.asked is None else []
    return answered(
        compiled.text, there.table.num_rows, searches, Witness(compiled.bound, there), most, choosing=chosen
    )


def _position(event: int | None, size: int, rows: Any) -> int | None:
    """The position of a row of the input among the events that are asked about; ``rows`` are theirs (``None``: the same)."""
    if event is None:
        return None
    places = [event] if rows is None else np.flatnonzero(rows == event).tolist()
    if not places or not 0 <= places[0] < size:
        raise OptionError(f"event={event}: there is no such row among those that are asked about; rows count from 0")
    return int(places[0])


def events_of(  # noqa: PLR0913 - the arguments of why_not
    query: str | Query,
    events: Any,
    key: Any,
    between: tuple[Any, Any] | None,
    type: str | None,
    time: str | None,
    sequence: str | None,
    stream: str | None,
    time_unit: str | None,
    language: str | None,
    late: Late | None = None,
) -> tuple[Query, Events]:
    """The query bound to the events that are asked about, and these in their order; the arguments are those of :func:`why_not`."""
    compiled = compile_query(query, language=language)
    type, time, stream, time_unit = compiled.roles(type, time, stream, time_unit)
    given = {name: table_of(one) for name, one in events.items()} if are_tables(events) else table_of(events)
    table, stream = one_table(compiled, given, type, time, sequence, stream)
    if not table.num_rows and set(table.column_names) <= {stream}:
        table = nothing(compiled, type, time, stream)
    for name, role in ((time, "time"), (sequence, "sequence"), (stream, "stream"), (type, "type")):
        if name is not None:
            require(table, name, role)
    compiled = compiled.bind(Schema.of(table.schema, **roles(type, time, stream, None, time_unit)))
    compiled.program(split=True)  # a query that does not run is an error, and nothing that has no match
    schema = compiled.bound.schema
    table = with_moving(with_types_of_nulls(table, schema), compiled.bound)
    chosen = _chosen(table, keys_of(compiled, key, table.column_names), between, time, late)
    rows = None if chosen is None else np.flatnonzero(chosen)
    return compiled, Events.of(table if rows is None else table.take(pa.array(rows)), schema, sequence, rows)


def rows_of(
    query: str | SqlQuery,
    events: Any,
    key: Any,
    between: tuple[Any, Any] | None,
    time_unit: str | None = None,
    late: Late | None = None,
) -> tuple[RowQuery, Rows]:
    """A clause, and the rows that it is asked about; the arguments are those of :func:`why_not`."""
    parsed = clause_of(query, time_unit)
    table = as_table(table_of(events))
    bound = bind(parsed, table.schema)
    RowProgram(bound)  # a clause that does not run is an error, and nothing that has no match
    keys = named_keys(bound.parsed.partition_by, key, table.column_names)
    chosen = _chosen(table, keys, between, time_of_clause(bound.parsed, between), late)
    return parsed, Rows.of(bound, table, None if chosen is None else np.flatnonzero(chosen))


def clause_of(query: str | SqlQuery, time_unit: str | None = None) -> RowQuery:
    """A clause without what it shows."""
    if time_unit is None and isinstance(query, SqlQuery):
        time_unit = query.clauses[0].time_unit
    parsed = read_clause(str(query), time_unit)
    if parsed.frame is not None:
        raise OptionError(
            "why_not answers for MATCH_RECOGNIZE ( … ), and this is a WINDOW: ask with its pattern in a clause"
        )
    return replace(parsed, measures=(), rows=RowsPerMatch.ONE)


def time_of_clause(parsed: RowQuery, between: tuple[Any, Any] | None) -> str | None:
    """The column whose values ``between`` bounds."""
    time = parsed.order_by[0].column if parsed.order_by else None
    if between is not None and time is None:
        raise OptionError("between= needs ORDER BY in the clause")
    return time


def afa_events_of(
    afa: Afa,
    events: Any,
    key: Any,
    between: tuple[Any, Any] | None,
    time: str | None,
    sequence: str | None,
    late: Late | None = None,
) -> AfaEvents:
    """The events that an automaton is asked about; the arguments are those of :func:`why_not`."""
    if time is None:
        raise OptionError("an AFA needs the column that orders the stream: time='…'")
    if not afa.arcs:
        raise OptionError("the AFA has no arcs, so that nothing can match: afa.arc(source, target, when=…)")
    table = with_fields(as_table(table_of(events)), filter(None, (time, sequence, *afa.events)))
    for name, role in ((time, "time"), (sequence, "sequence"), *((name, "attribute") for name in afa.events)):
        if name is not None:
            require(table.column_names, name, role)
    chosen = _chosen(table, named_keys(afa.partition_by, key, table.column_names), between, time, late)
    rows = None if chosen is None else np.flatnonzero(chosen)
    return AfaEvents.of(afa, table if rows is None else table.take(pa.array(rows)), time, sequence, rows)


def refuse_said(what: str, options: Mapping[str, Any]) -> None:
    """Raise an :class:`OptionError` for what a query of some language says by itself, or does not know."""
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name}={value!r} says nothing about {what}; leave it out")


def keys_of(query: Query, key: Any, known: Collection[str]) -> dict[str, Any]:
    """The columns by which events are chosen, and their values; ``known`` are the columns that there are.

    Raises
    ------
    OptionError, DataError
        There is no such column, or none that is the query's key; or other events count as well.
    """
    if key is None:
        return {}
    if getattr(query.parsed, "selection", None) is Selection.STRICT:
        raise OptionError(
            "key=: strict_contiguity counts the events of all keys; leave it out, or ask with partition_contiguity in its place"
        )
    return named_keys(query.partition_by, key, known)


def _chosen(
    table: pa.Table, keys: Mapping[str, Any], between: tuple[Any, Any] | None, time: str | None, late: Late | None
) -> Any:
    """Which events are looked at, as booleans; ``None``: all."""
    masks = [] if late is None else [late.on_time]
    masks += [has_key(table.column(name), name, value) for name, value in keys.items()]
    if between is not None:
        if time is None:
            raise OptionError("between= needs the column of time: time='…'")
        column = table.column(time)
        for bound, compare in zip(between, (pc.greater_equal, pc.less_equal), strict=True):
            if bound is not None:
                masks.append(compare(column, as_in(bound, column.type, "between=")))
    if not masks:
        return None
    found = masks[0]
    for mask in masks[1:]:
        found = pc.and_(found, mask)
    return pc.fill_null(found, False).to_numpy()
