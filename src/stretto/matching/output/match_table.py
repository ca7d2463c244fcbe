"""What goes out: raw matches of an engine become an Arrow table, one row a match.

Columns, in this order: ``start``, ``end`` (int64) and ``positions`` (list<int64>, ascending), ``start_time`` and
``end_time`` where a time is known, the partition attributes, and for each selected variable the list of its events
(list<struct>). A variable whose name is taken gets a trailing underscore.

With timeouts, rows of partial matches stand among those of matches. They have ``reached``, the variable of their last event, and
``expired``, the last time of their window; both are NULL for matches, as the values of RETURN are for partial matches.

A summary has one row for each event that completes matches: ``start``, ``end``, ``start_time``, ``end_time``, the partition
attributes, and ``matches`` (int64), how many there are; ``start`` and ``start_time`` are those of the earliest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.columns.arrays import one_array
from stretto.columns.gathering import Gatherer
from stretto.columns.measured import as_measured, measured_type
from stretto.columns.overflow import Order
from stretto.engines.api import BEYOND, Matches, Run
from stretto.errors import OptionError, SnapshotError
from stretto.frame import Section, check_kinds
from stretto.matching.output.aggregates import TotalsLayout, window_columns, window_type
from stretto.matching.output.return_clause import Rows, computed_columns
from stretto.query.passes.bind import AnyBound
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.totals import Extent

log = logging.getLogger("stretto")

#: Events are read in pieces of this many rows: small enough for the caches, and for ^C to act soon.
CHUNK = 1 << 16

OUTPUTS = ("events", "positions", "summary")


@contextmanager
def _held(restored: bool) -> Iterator[None]:
    """Within it, events of a match are looked up, which one that was restored may not have."""
    try:
        yield
    except IndexError as error:
        if not restored:
            raise
        raise SnapshotError("the snapshot was damaged: a match holds an event that it does not have") from error


class History:
    """The events of a stream that a match may still hold: pieces of the batches that went by."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.pieces: list[tuple[I64, pa.Table]] = []
        self.rows = 0
        self.kept = 0  #: how many rows were left when last those were kept that partial matches hold
        self._joined: tuple[I64, pa.Table] | None = None
        self._rows: Gatherer | None = None  # over what is joined
        self._restored = False

    def append(self, positions: I64, table: pa.Table) -> None:
        """Keep the next events; ``positions`` ascend."""
        if positions.size:
            self.pieces.append((positions, table))
            self.rows += positions.size
            self._joined = self._rows = None

    def copy(self) -> History:
        """The same events, of which each goes on by itself."""
        made = History(self.columns)
        made.pieces, made.rows, made.kept = list(self.pieces), self.rows, self.kept
        made._restored = self._restored
        return made

    def frozen(self) -> History:
        """The events of now, whatever goes on."""
        made = History(self.columns)
        made.append(*self.joined())
        made._restored = self._restored
        return made

    def forget(self, oldest: int) -> None:
        """Drop the events before position ``oldest``."""
        kept = []
        for positions, table in self.pieces:
            gone = int(np.searchsorted(positions, oldest))
            if gone < positions.size:
                kept.append((positions[gone:], table.slice(gone)) if gone else (positions, table))
        self._replace(kept)

    def retain(self, live: I64) -> None:
        """Keep only the events at the positions ``live`` (sorted)."""
        kept = []
        for positions, table in self.pieces:
            # Few of them are live.
            within = live[np.searchsorted(live, positions[0]) : np.searchsorted(live, positions[-1], side="right")]
            at = np.searchsorted(positions, within)
            at = at[positions[at] == within]
            if at.size:
                kept.append((positions[at], table.take(pa.array(at))))
        self._replace(kept)

    def let_go(self, reader: Run, spare: int = 0) -> int | None:
        """Drop what no match can hold any more; gives the oldest position that one may hold, where that was looked for.

        Where the engine must go through all that it holds to tell, it is asked once there are more than ``spare`` bytes.
        """
        oldest = reader.oldest
        if oldest is not None:
            self.forget(oldest)
            return oldest
        if self.rows <= 4 * self.kept + CHUNK or self.nbytes <= spare:
            return None
        live = reader.live()
        self.retain(live)
        self.kept = self.rows
        return int(live[0]) if live.size else reader.rows

    def save(self, section: Section) -> None:
        """Write the kept events."""
        positions, table = self.joined()
        section.arrays["positions"] = positions
        if positions.size:
            section.put_table("table", table)

    def load(self, section: Section, rows: int, kinds: Mapping[str, pa.DataType]) -> None:
        """Take over, from the beginning, what :meth:`save` wrote of a stream of so many rows with columns of some types."""
        self._restored = True
        if "table" in section.arrays:
            table = section.table("table")
            self.append(section.numbers("positions", size=table.num_rows, least=0, below=rows, rising=True), table)
            check_kinds(table, {name: kinds[name] for name in self.columns or table.column_names})

    def _replace(self, pieces: list[tuple[I64, pa.Table]]) -> None:
        self.pieces = pieces
        self.rows = sum(positions.size for positions, _ in pieces)
        self._joined = self._rows = None

    def joined(self) -> tuple[I64, pa.Table]:
        """All kept events: their positions and one table."""
        if self._joined is None:
            table = self._table()
            self._joined = np.concatenate([np.empty(0, np.int64), *(p for p, _ in self.pieces)]), table
        return self._joined

    def _table(self) -> pa.Table:
        """All kept events in one table."""
        if len(self.pieces) > 16:
            positions = np.concatenate([p for p, _ in self.pieces])
            whole = pa.concat_tables([t for _, t in self.pieces], promote_options="permissive").combine_chunks()
            self.pieces = [(positions, whole)]
        if not self.pieces:
            return pa.table({})
        return pa.concat_tables([t for _, t in self.pieces], promote_options="permissive")

    def take(self, positions: I64, columns: Sequence[str]) -> pa.Table:
        if self._rows is None:
            self._rows = Gatherer(self._table())
        with _held(self._restored):
            return self._rows.take(self._places(positions), columns)

    def _places(self, positions: I64) -> I64:
        """Where the events at some positions are among those that are kept."""
        # What came since only live events were kept has no gaps, unless the input has.
        older = min(self.kept, self.rows)
        if self.rows == older or self._at(self.rows - 1) - self._at(older) != self.rows - older - 1:
            older = self.rows
        first = self._at(older) if older < self.rows else np.iinfo(np.int64).max
        at = positions - first + older
        asked = np.flatnonzero(positions < first)
        if asked.size:
            known = np.concatenate([known for known, _ in self.pieces])[:older]
            # In order, so that one is found near the one before.
            asked = asked[np.argsort(positions[asked])]
            at[asked] = np.searchsorted(known, positions[asked])
        return at

    def _at(self, row: int) -> int:
        """The position of one of the events that are kept."""
        for positions, _ in self.pieces:
            if row < positions.size:
                return int(positions[row])
            row -= positions.size
        raise IndexError(row)

    @property
    def nbytes(self) -> int:
        """Bytes of the kept columns."""
        return sum(table.nbytes + positions.nbytes for positions, table in self.pieces)


class Arrivals:
    """The input's row of each event of a stream that was sorted, by the event's position, in a sliding buffer."""

    def __init__(self, first: int = 0, rows: I64 | None = None) -> None:
        self._first = first  # position of the oldest
        self._rows = np.zeros(0, np.int64) if rows is None else rows
        self._begin, self._end = 0, self._rows.size
        self._restored = False

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, positions: Any) -> Any:
        with _held(self._restored):
            return self._rows[positions + (self._begin - self._first)]

    def append(self, rows: I64) -> None:
        """The next events."""
        if self._end + rows.size > self._rows.size:
            live = self._rows[self._begin : self._end]
            # At least half of the new buffer is free, so that moving costs O(1) an event on average.
            fresh = np.empty(2 * (live.size + rows.size), np.int64)
            fresh[: live.size] = live
            self._rows, self._begin, self._end = fresh, 0, live.size
        self._rows[self._end : self._end + rows.size] = rows
        self._end += rows.size

    def cut(self, count: int) -> None:
        """Take back all events but the oldest ``count``."""
        self._end = self._begin + count

    def forget(self, oldest: int) -> None:
        """Drop the events before position ``oldest``."""
        gone = min(max(0, oldest - self._first), len(self))
        self._first += gone
        self._begin += gone

    def copy(self) -> Arrivals:
        """The same rows, of which each goes on by itself."""
        made = Arrivals(*self.kept())
        made._restored = self._restored
        return made

    def kept(self) -> tuple[int, I64]:
        """The position of the oldest event, and the rows from there on."""
        return self._first, self._rows[self._begin : self._end].copy()

    def save(self, section: Section) -> None:
        """Write the position of the oldest event, and the rows from there on."""
        section.values["arrivals"], section.arrays["arrivals"] = self.kept()

    @classmethod
    def of(cls, section: Section, rows: int) -> Arrivals:
        """What :meth:`save` wrote of so many events."""
        found = cls(section.count("arrivals", most=rows), section.numbers("arrivals", least=0))
        if found._first + len(found) != rows:
            raise ValueError(f"there are arrivals of {found._first + len(found)} events, not of {rows}")
        found._restored = True
        return found

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes


class Layout:
    """Which columns a result has, and what of the events it needs.

    Parameters
    ----------
    query
        The bound query.
    output
        ``"events"``, ``"positions"`` (the same without the variables' events) or ``"summary"``.
    positions
        Whether ``start``, ``end`` and ``positions`` are part of it.
    timeouts
        Whether there are rows of partial matches that have timed out.
    """

    def __init__(
        self,
        query: AnyBound,
        *,
        output: str = "events",
        positions: bool = True,
        timeouts: bool = False,
    ) -> None:
        self.check(output)
        self.query = query
        self.positions = positions
        self.timeouts = timeouts
        self._told = False
        self.summary = output == "summary"
        if self.summary and query.parsed.last_negation is not None:
            raise OptionError(
                f"output='summary' counts the matches of the event that completes them, and {query.parsed.last_negation} at the "
                "end completes them by time: list them, or count what is listed"
            )
        if self.summary and query.parsed.keep is not None:
            raise OptionError(
                "output='summary' counts what each event completes, and KEEP and AFTER MATCH leave one match for each start: count "
                "the rows"
            )
        if timeouts:
            from stretto.engines.match_ops.timeouts import refuse_timeouts

            refuse_timeouts(query.parsed)
            if self.summary:
                raise OptionError(
                    "output='summary' counts matches, and timeouts= has rows of partial ones: list them, or count what is listed"
                )
        if isinstance(query.asked, BoundTotals):
            _check_totals(summary=self.summary, timeouts=timeouts)
        elif query.asked is not None and self.summary:
            raise OptionError(
                "output='summary' counts the matches of each event, and this query takes some of them: leave out ORDER BY and SAMPLE"
            )
        self.variables = query.selected if output == "events" else ()
        #: Of which windows rows are, where they are of windows that begin every so often.
        self.panes = None if query.asked is None else query.asked.scope.panes
        #: Computed columns (SASE+: RETURN).
        self.returns = query.returns or () if output == "events" else ()
        #: What results call the partition attributes.
        shown = {key.name: key.shown for key in query.parsed.joined}
        self.keys = [shown.get(name, name) for name in query.partition_by]
        taken = {"start", "end", "positions", "start_time", "end_time"}
        #: The columns of counts and sums over all matches; ``None``: matches are listed.
        self.totals: TotalsLayout | None = None
        if isinstance(query.asked, BoundTotals):
            self.totals = TotalsLayout(query.asked, query.schema.attributes, lambda name: _free_name(name, taken))
        taken.update(self.keys)
        ends = () if self.panes is None or self.totals is not None else ("window_start", "window_end")
        self.window_names = [_free_name(name, taken) for name in ends]
        self.names = [_free_name(variable, taken) for variable, _ in self.variables]
        self.return_names = [_free_name(one.name, taken) for one in self.returns]
        self.count_name = _free_name("matches", taken)
        self.timeout_names = [_free_name(name, taken) for name in ("reached", "expired")]

    @staticmethod
    def check(output: str) -> None:
        """Raise an :class:`OptionError` unless ``output`` is one."""
        if output not in OUTPUTS:
            raise OptionError(f"output={output!r}: expected 'events', 'positions' or 'summary'")

    def tell_of_beyond(self, events: int) -> None:
        """Say once that some events complete more matches than the column can say."""
        if events and not self._told:
            self._told = True
            log.warning(
                "some events complete more than 2^63 - 1 matches: '%s' is NULL for them, which sums and comparisons leave out",
                self.count_name,
            )

    @property
    def language(self) -> str:
        """The language of the query."""
        return self.query.parsed.language

    @property
    def time(self) -> str | None:
        """The attribute that orders events."""
        return self.query.time

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The partition attributes."""
        return self.query.partition_by

    @property
    def kinds(self) -> Mapping[str, pa.DataType]:
        """The types of events' attributes."""
        return self.query.schema.attributes

    @property
    def labels(self) -> bool:
        """Whether it must be known which variable holds which event."""
        return bool(self.variables or self.returns)

    @property
    def expiring(self) -> pa.DataType | None:
        """The type of the last time of a window; ``None``: it counts events."""
        window = self.query.window
        if not self.timeouts or window is None or window.attribute is None:
            return None
        return measured_type(self.query.schema.attributes[window.attribute])

    @property
    def at_end(self) -> bool:
        """Whether the end of the stream alone gives rows, which are then never left out."""
        return self.query.asked is not None and self.query.asked.scope.extent is Extent.TABLE

    @property
    def by_windows(self) -> bool:
        """Whether time gives rows, when windows are over."""
        return self.panes is not None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The attributes of events that the result shows, in the schema's order."""
        if self.totals is not None and not self.totals.of_events:
            return ()
        used = set(self.query.partition_by if self.totals is None else ())
        if self.query.time:
            used.add(self.query.time)
        for _, attributes in self.variables:
            used.update(attributes)
        if self.returns:
            used.update(self.query.returned)
        return tuple(name for name in self.query.schema.attributes if name in used)

    def fix(self) -> None:
        """Find what depends on the query alone, for all copies."""
        _ = self._schema, self.columns, self.partition_by

    def schema(self) -> pa.Schema:
        """The result's Arrow schema."""
        return self._schema

    @cached_property
    def _schema(self) -> pa.Schema:
        attributes = self.query.schema.attributes
        if self.totals is not None and not self.totals.of_events:
            return pa.schema(self.totals.fields)
        fields = [pa.field(name, window_type(self.panes, attributes)) for name in self.window_names]
        if self.positions:
            fields += [pa.field("start", pa.int64()), pa.field("end", pa.int64())]
            if not self.summary and self.totals is None:
                fields.append(pa.field("positions", pa.list_(pa.int64())))
        if self.query.time:
            kind = attributes[self.query.time]
            fields += [pa.field("start_time", kind), pa.field("end_time", kind)]
        if self.totals is not None:
            return pa.schema([*fields, *self.totals.fields])
        fields += [
            pa.field(shown, attributes[name]) for shown, name in zip(self.keys, self.query.partition_by, strict=True)
        ]
        for name, (_, chosen) in zip(self.names, self.variables, strict=True):
            struct = pa.struct([pa.field(a, attributes[a]) for a in chosen])
            fields.append(pa.field(name, pa.list_(struct)))
        fields += [pa.field(name, one.type) for name, one in zip(self.return_names, self.returns, strict=True)]
        if self.summary:
            fields.append(pa.field(self.count_name, pa.int64()))
        if self.timeouts:
            fields.append(pa.field(self.timeout_names[0], pa.string()))
            if self.expiring is not None:
                fields.append(pa.field(self.timeout_names[1], self.expiring))
        return pa.schema(fields)


def _free_name(wanted: str, taken: set[str]) -> str:
    """A name that no other column has, which is then taken."""
    while wanted in taken:
        wanted += "_"
    taken.add(wanted)
    return wanted


def build_tables(
    found: Iterable[Matches],
    layout: Layout,
    rows: Rows,
    marks: Sequence[frozenset[str]],
    order: Order | None = None,
) -> Iterator[pa.Table]:
    """Raw matches as tables, piece by piece.

    Parameters
    ----------
    found
        Raw matches in order, those of one event in one or more pieces; all pieces of its last event are there. Or counts of them.
    layout
        The columns to make.
    rows
        Where events are looked up.
    marks
        The label sets of the engine's marks.
    order
        Where the stream was sorted: the row of the input at each position of the stream.
    """
    if layout.totals is not None:
        for one in found:
            yield _totals_table(one, layout, rows, order)
        return
    if layout.summary:
        for summary in summaries(found):
            columns = [_place(ends, order) for ends in summary[:2]] if layout.positions else []
            columns += _shared_columns(summary, layout, rows)
            assert summary.counts is not None
            counts = pa.array(summary.counts, mask=summary.counts == BEYOND)
            layout.tell_of_beyond(counts.null_count)
            yield _as_table([*columns, counts], layout, summary.end.size)
        return
    for matches in found:
        if matches.start.size:
            columns = _window_columns(matches, layout)
            columns += _position_columns(matches, order) if layout.positions else []
            columns += _shared_columns(matches, layout, rows)
            holding: dict[str, list[int]] = {variable: [] for variable, _ in layout.variables}
            for mark, labels in enumerate(marks) if holding else ():
                for variable in labels & holding.keys():
                    holding[variable].append(mark)
            for variable, attributes in layout.variables:
                columns.append(_variable_column(matches, attributes, rows, len(marks), holding[variable]))
            if layout.returns:
                columns += _returned(matches, cast(BoundSase, layout.query), rows, marks, order)
            if layout.timeouts:
                columns += _timeout_columns(matches, layout, marks)
            yield _as_table(columns, layout, matches.start.size)


def _totals_table(found: Matches, layout: Layout, rows: Rows, order: Order | None) -> pa.Table:
    """Counts and sums over all matches."""
    assert layout.totals is not None
    assert found.totals is not None
    columns: list[pa.Array] = []
    if layout.totals.of_events:
        columns += [_place(ends, order) for ends in found[:2]] if layout.positions else []
        columns += _shared_columns(found, layout, rows, keys=())
    table = _as_table([*columns, *layout.totals.columns(found.totals)], layout, found.start.size)
    chosen = None if found.totals.known else layout.totals.order(layout.totals.columns(found.totals))
    return table if chosen is None else table.take(chosen)


def _check_totals(*, summary: bool, timeouts: bool) -> None:
    """Raise an :class:`OptionError` where an option is about matches that are listed."""
    if summary:
        raise OptionError(
            "output='summary' counts the matches of each event, as COUNT(*) with EVERY EVENT does, and this query says itself what "
            "it counts: leave it out"
        )
    if timeouts:
        raise OptionError(
            "timeouts= has rows of partial matches, and this query counts complete ones: leave one of them out"
        )


def _returned(
    found: Matches, query: BoundSase, rows: Rows, marks: Sequence[frozenset[str]], order: Order | None
) -> list[pa.Array]:
    """The columns of RETURN, which partial matches have no values of."""
    if found.timed_out is None:
        return computed_columns(found, query, rows, marks, order)
    whole = found.timed_out.reached < 0
    sizes = np.diff(found.offset)
    cells = np.repeat(whole, sizes)
    offset = np.zeros(np.count_nonzero(whole) + 1, np.int64)
    np.cumsum(sizes[whole], out=offset[1:])
    matches = Matches(found.start[whole], found.end[whole], offset, found.position[cells], found.mark[cells])
    place = pa.array(np.cumsum(whole) - 1, mask=~whole)
    return [column.take(place) for column in computed_columns(matches, query, rows, marks, order)]


def _timeout_columns(found: Matches, layout: Layout, marks: Sequence[frozenset[str]]) -> list[pa.Array]:
    """How far partial matches got, and the last times of their windows."""
    count, told, kind = found.start.size, found.timed_out, layout.expiring
    if told is None:
        return [pa.nulls(count, pa.string()), *([] if kind is None else [pa.nulls(count, kind)])]
    names = [None if at < 0 else next(iter(marks[at])) for at in told.reached.tolist()]
    expired = [] if kind is None else [as_measured(told.expired, told.reached < 0, kind)]
    return [pa.array(names, pa.string()), *expired]


def summaries(found: Iterable[Matches]) -> Iterator[Matches]:
    """One row for each event that completes matches; an event whose matches lie in several pieces has one row as well."""
    waiting: tuple[I64, I64, I64] | None = None  # the last event so far, which may go on in the next piece
    for matches in found:
        if not matches.start.size:
            continue
        if matches.counts is not None:
            yield matches
            continue
        begins = np.flatnonzero(np.diff(matches.end, prepend=matches.end[0] - 1))
        start, end = np.minimum.reduceat(matches.start, begins), matches.end[begins]
        count = np.diff(begins, append=matches.end.size)
        if waiting is not None and waiting[1] == end[0]:
            start[0] = min(start[0], waiting[0][0])
            count[0] += waiting[2][0]
        elif waiting is not None:
            yield Matches.counted(*waiting)
        if end.size > 1:
            yield Matches.counted(start[:-1], end[:-1], count[:-1])
        waiting = start[-1:], end[-1:], count[-1:]
    if waiting is not None:
        yield Matches.counted(*waiting)


def _window_columns(found: Matches, layout: Layout) -> list[pa.Array]:
    """Where the windows begin and end that matches are of, where they are chosen by window."""
    if found.window is None:
        return []
    return window_columns(found.window, layout.panes, window_type(layout.panes, layout.query.schema.attributes))


def _shared_columns(found: Matches, layout: Layout, rows: Rows, keys: Sequence[str] | None = None) -> list[pa.Array]:
    """Times and partition attributes; ``keys``: others than these."""
    query = layout.query
    keys = query.partition_by if keys is None else keys
    time = (query.time,) if query.time else ()
    names = list(dict.fromkeys((*time, *keys)))
    at_end = rows.take(found.end, names) if names else None
    columns = [one_array(rows.take(found.start, time).column(0))] if time else []
    if at_end is not None:
        columns += map(one_array, map(at_end.column, (*time, *keys)))
    return columns


def _as_table(columns: Sequence[pa.Array], layout: Layout, count: int) -> pa.Table:
    schema = layout.schema()
    if not columns:
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    else:
        fitted = [c.cast(f.type) if c.type != f.type else c for c, f in zip(columns, schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(fitted, schema=schema)
    return pa.Table.from_batches([batch], schema=schema)


def _place(positions: I64, order: Order | None) -> pa.Array:
    """Positions of the stream as rows of the input."""
    return pa.array(positions if order is None else order[positions])


def _position_columns(found: Matches, order: Order | None) -> list[pa.Array]:
    start, end, positions = found.start, found.end, found.position
    if order is not None:
        start, end, positions = order[start], order[end], order[positions]
        row = np.repeat(np.arange(found.start.size), np.diff(found.offset))
        positions = positions[np.lexsort((positions, row))]
    return [pa.array(start), pa.array(end), _lists(found.offset, pa.array(positions))]


def _lists(offset: I64, values: pa.Array) -> pa.Array:
    if offset[-1] > np.iinfo(np.int32).max:
        raise OptionError("one batch of matches holds more than 2^31 positions; read it in smaller pieces")
    return pa.ListArray.from_arrays(pa.array(offset.astype(np.int32)), values)


def _variable_column(found: Matches, attributes: Sequence[str], rows: Rows, marks: int, holding: list[int]) -> pa.Array:
    """The events of a variable, which those of some of the ``marks`` hold."""
    holds = np.zeros(marks, np.bool_)
    holds[holding] = True
    mine = holds[found.mark]
    counts = np.zeros(found.position.size + 1, np.int64)
    np.cumsum(mine, out=counts[1:])
    events = rows.take(found.position[mine], attributes)
    struct = pa.StructArray.from_arrays(list(map(one_array, events.columns)), names=list(attributes))
    return _lists(counts[found.offset], struct)
