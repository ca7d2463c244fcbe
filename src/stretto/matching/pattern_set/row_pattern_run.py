"""A ``MATCH_RECOGNIZE`` clause among patterns: what a set knows of it, and its run over the events in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.column_types import time_hint
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, offsets
from stretto.engines.rows.columns import plain_name
from stretto.engines.rows.measures import Points, measures
from stretto.engines.rows.program import RowProgram
from stretto.engines.rows.runner import Given, RowRun
from stretto.errors import OptionError, QueryError
from stretto.events import Schema
from stretto.frame import Section
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, WholeEvents
from stretto.matching.pattern_set.event_routing import RoutedEvents
from stretto.matching.pattern_set.result_table import as_map
from stretto.matching.pattern_set.shared_predicates import SharedKeys
from stretto.matching.pattern_set.throttle import WHENEVER
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import AfterMatch, BoundRows, OrderItem, RowQuery, RowsPerMatch
from stretto.query.typing import Clock
from stretto.times import DAY

#: The column with the places of events in the stream. Users have other names.
PLACE = "\0place"

#: Arrays of a run begin no larger than this: there may be many runs.
ROOM = 1 << 4


class CompiledRowPattern(CompiledPattern):
    """A clause. What its conditions say of a row may depend on the rows around it, so that it reads all events.

    Parameters
    ----------
    clause
        The clause.
    schema
        The columns of the events.
    text
        How it is written.

    Raises
    ------
    QueryError
        It does not fit the columns or a stream, or gives what rows of a set cannot show.
    OptionError
        The time is of no type by which a clause orders rows.
    """

    language = RowQuery.language
    wait = WHENEVER  #: a match comes when rows behind it say that it is the one

    def __init__(self, clause: RowQuery, schema: Schema, text: str) -> None:
        assert schema.time is not None
        self.text, self.schema, self.time = text, schema, schema.time
        _check_time(schema, self.time)
        self.bound = _bound(clause, schema, self.time)
        query = self.bound.parsed
        self.partition_by = query.partition_by
        self.columns_read = list(self.bound.read)
        self.tested = frozenset(self.columns_read)
        self.machine = self.lister = RowProgram(self.bound)
        names = self.machine.automaton.variables
        self.shown = tuple((name, tuple(schema.attributes)) for name in names)
        self.selected = self.shown
        #: By position of the automaton: the number of its variable.
        self.variable = np.array(self.machine.automaton.variable, np.int32)
        self.overlaps = query.after is not AfterMatch.PAST
        self.run(capacity=1)  # what a stream refuses shows now

    @property
    def ends(self) -> bool:
        """Its end gives rows: what is greedy has no further row then, and ``$`` holds."""
        return True

    @property
    def meaning(self) -> RowQuery:
        """The clause, with the names of its columns."""
        return self.bound.parsed

    @property
    def digest(self) -> str:
        """What a saved state belongs to; the run says more of it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def run(self, *, capacity: int) -> RowRun:
        """A run from the beginning of a stream."""
        assert isinstance(self.machine, RowProgram)
        return RowRun(self.machine, [*self.columns_read, PLACE], capacity=capacity, steady=True)

    def columns(self, *, output: str, positions: bool) -> WholeEvents:
        """The columns of its matches."""
        attributes = self.schema.whole.attributes
        variables = self.shown if output == "events" else ()
        return WholeEvents(self.language, self.time, self.partition_by, attributes, variables, positions)

    def look(self, events: pa.Table) -> None:
        """Nothing is wrong with events of the right types before conditions are computed."""


def _check_time(schema: Schema, time: str) -> None:
    kind = schema.attributes[time]
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)):
        raise OptionError(
            f"'{time}' is {kind}: clauses beside other patterns order events by integers, doubles, dates or timestamps"
            f"{time_hint(time, kind)}"
        )


def _bound(clause: RowQuery, schema: Schema, time: str) -> BoundRows:
    """A clause bound to the columns of events, and to that of their places; refused where a set cannot give what it asks for."""
    if clause.rows is not RowsPerMatch.ONE:
        raise QueryError(
            f"a set of patterns gives one row for each match, and the clause has {clause.rows.value}",
            text=clause.text,
            hint="ONE ROW PER MATCH: 'events' has all rows of the match with their variables; stretto.Matcher runs it as it is",
        )
    clause = replace(clause, order_by=clause.order_by or (OrderItem(time),))
    columns = pa.schema(list(schema.attributes.items()))
    _check_order(clause.text, [(one.column.lower(), one) for one in clause.order_by], time.lower(), time)
    clock = Clock.of(schema)
    bound = bind(clause, columns, clock)
    _check_order(clause.text, [(one.column, one) for one in bound.parsed.order_by], time, time)
    return bind(clause, columns.append(pa.field(PLACE, pa.int64())), clock)


def _check_order(text: str, order: Sequence[tuple[str, OrderItem]], name: str, time: str) -> None:
    """Raise an error unless the order, by the names of its columns, is that of the time, which is called ``name``."""
    for number, (column, one) in enumerate(order):
        if number or column != name or one.descending:
            raise QueryError(
                f"a set of patterns reads events in the order of '{time}', and those of one time as they come",
                text=text,
                span=one.span,
                hint=f"ORDER BY {time}; stretto.Matcher runs the clause as it is",
            )


class ClauseRun:
    """The run of a clause over a stream in order, of whose events it reads all.

    Parameters
    ----------
    part
        The pattern.
    by
        The attributes that every pattern is partitioned by: events without one of them are of no key.
    measured
        Whether rows show measures.
    capacity
        Initial size of the growing arrays.
    """

    waits = (
        False  #: a match comes with the row of its partition that makes it final, or when time or the pattern ends it
    )
    ranked = False

    def __init__(self, part: CompiledRowPattern, *, by: Sequence[str], measured: bool, capacity: int) -> None:
        self.run = part.run(capacity=min(capacity, ROOM))
        self._part, self._by = part, tuple(by)
        self._measured = measured
        #: In what a set measures of a time, one tick of the clause.
        kind = part.schema.attributes[part.time]
        self._tick = DAY if pa.types.is_date32(kind) else 1000 * DAY if pa.types.is_date64(kind) else 1
        self._visited = self._triggers = 0
        self.rows = 0

    def follow(
        self,
        batch: pa.RecordBatch,
        first: int,
        handed: RoutedEvents,
        measures: Mapping[str, NDArray[Any]],
        shared: SharedKeys | None,
    ) -> Iterator[Matches]:
        """All events come here, as in :class:`~stretto.matching.pattern_set.dedicated_run.TecsRun`; it yields final matches."""
        self._visited += batch.num_rows
        table = pa.Table.from_batches([batch.select(self._part.columns_read)])
        table = table.append_column(PLACE, pa.array(np.arange(first, first + batch.num_rows)))
        for name in self._by:
            if table.column(name).null_count:
                table = table.filter(pc.is_valid(table.column(name)))
        if not table.num_rows:
            return
        groups, table = self.run.accepted(table)
        for given in _placeless(self.run.advance(groups, table)):
            if not given.found.start.size:
                continue
            known = _numbers(self.run.take(given.newest, [PLACE]).column(PLACE))
            self._triggers += np.unique(known).size
            yield self._matches(given)._replace(known=known)

    def reach(self, time: int | float) -> Iterator[Matches]:
        """No event before ``time`` will come: give what waited for that, and free what it frees."""
        return map(self._by_start, _placeless(self.run.reach(time // self._tick if self._tick > 1 else time)))

    def finish(self) -> Iterator[Matches]:
        """No event will come: give what the end completes."""
        return map(self._by_start, _placeless(self.run.finish()))

    def _by_start(self, given: Given) -> Matches:
        """What time, or the end, completes, in the order of first events: partitions are numbered as rows are cut."""
        found = self._matches(given)
        found = found.taken(np.argsort(found.start))
        return found._replace(known=found.start)

    def _matches(self, given: Given) -> Matches:
        """The same, with the places of rows in the stream, and their variables as marks."""
        seen, found = given.seen, given.found
        place = _numbers(seen.column(plain_name(PLACE)))
        offset = offsets(found.length)
        rows = np.repeat(found.start - offset[:-1], found.length) + np.arange(offset[-1])
        # An empty match is at the row at which it was found.
        end = found.start + np.maximum(found.length, 1) - 1
        mark = self._part.variable[found.path]
        told = self._told(given) if self._measured else None
        return Matches(place[found.start], place[end], offset, place[rows], mark, measures=told)

    def _told(self, given: Given) -> pa.Array:
        """What the clause measures of each match."""
        bound, automaton, found = self._part.bound, self.run.program.automaton, given.found
        count = found.start.size
        values = measures(bound, automaton, given.seen, found, Points(np.arange(count), found.length))
        return as_map([one.name for one in bound.measures], values, count)

    # -- what is kept of the past ---------------------------------------------------------------------------------------

    def live(self) -> I64:
        """The positions of the events that a match to come may hold (sorted); lets go of all others."""
        run = self.run
        run.settle(whole=True)
        return np.sort(_numbers(run.take(run.live()[0], [PLACE]).column(PLACE)))

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come."""
        return self.run.idle

    @property
    def expires(self) -> int | float | None:
        """The last time at which an event of the past still contributes; ``None``: none does, or time does not tell."""
        last = self.run.expires
        return None if last is None else (last + 1) * self._tick - 1

    def unlisted(self) -> None:
        """All matches of an event are listed with it."""

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what was read and what is held."""
        found = self.run.stats
        return {
            "visited": self._visited,
            "triggers": self._triggers,
            "nodes": found["held"],
            "partitions": found["partitions"],
            "bytes": found["bytes"],
        }

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self.run.nbytes

    def save(self, section: Section) -> None:
        """Write the run's state."""
        section.values |= {"visited": self._visited, "triggers": self._triggers}
        self.run.save(section.sub("run"))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self._visited, self._triggers = section.count("visited"), section.count("triggers")
        self.run.load(section.sub("run"))


def _placeless(found: Iterator[Given]) -> Iterator[Given]:
    """The same; an integer that leaves 64 bits does so in a row of a partition, whose place there says nothing of the stream."""
    try:
        yield from found
    except IntegerOverflow as error:
        raise IntegerOverflow(error.what, error.why) from None


def _numbers(column: pa.Array | pa.ChunkedArray) -> I64:
    return np.asarray(column, np.int64)
