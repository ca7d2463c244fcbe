"""Matches of many patterns, and what others count and add up, as rows of one generic table.

Columns: ``pattern``, ``since``, with positions ``start``, ``end`` and ``positions``, then ``start_time``, ``end_time``, the
attributes that every pattern is partitioned by, ``keys`` (the other attributes that tell the key, by name, as text) and ``events``:
which variable holds which event, in the order of events. Attributes that a pattern's SELECT leaves out are NULL there. Where that is
asked for, ``measures`` has what clauses measure and what RETURN computes, by name as text. Where patterns may add up over all of
their matches come
``window_start``, ``window_end`` and ``totals``, the items by name as text.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.column_types import fields_among
from stretto.columns.arrays import one_array
from stretto.columns.gathering import Gatherer
from stretto.columns.keys import one_zero
from stretto.columns.measured import measured_type
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, Totals, lists_taken, offsets
from stretto.errors import DataError
from stretto.events import Schema
from stretto.matching.output.aggregates import window_columns
from stretto.matching.output.match_table import History
from stretto.matching.output.return_clause import computed_columns
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern
from stretto.matching.pattern_set.shared_predicates import Used
from stretto.query.totals import Extent

#: The type of values by name, as text.
NAMED = pa.map_(pa.string(), pa.string())

#: Where the window begins and ends of which a row speaks.
WINDOW = ("window_start", "window_end")


class Source(NamedTuple):
    """A pattern in force, whose matches become rows."""

    id: str
    since: pa.Scalar | None
    part: CompiledPattern


#: Blocks of the result have about so many matches, and events of matches: each costs some calls for each of its patterns.
BLOCK = 1 << 16


def in_order(streams: Sequence[Iterator[Matches]], most: int) -> Iterator[list[Matches]]:
    """Merge matches by the events at which they are known, and by the numbers of their sources (``part``), as each stream has them.

    What is yielded is one block after the other in that order; inside a block the pieces are not merged yet. Of each stream one piece
    is held, and further ones until all have ``most`` matches and events of matches: so the number of blocks goes with that of the
    matches, and not with that of the pieces of all streams.
    """
    held: dict[int, list[Matches]] = {}
    ends: list[tuple[int, int, int]] = []  # of each stream that goes on: up to where it is known
    size = 0

    def pull(number: int) -> None:
        nonlocal size
        if (piece := _next(streams[number])) is not None:
            held.setdefault(number, []).append(piece)
            heapq.heappush(ends, (*_last(piece), number))
            size += piece.end.size + piece.position.size

    for number in range(len(streams)):
        pull(number)
    while held:
        while ends and size < most:
            pull(heapq.heappop(ends)[2])
        if not ends:
            yield list(chain.from_iterable(held.values()))
            return
        last = ends[0][:2]
        block = []
        for number, pieces in sorted(held.items()):
            while pieces and (known := _until(pieces[0], last)):
                whole = known == pieces[0].end.size
                block.append(pieces[0] if whole else sliced(pieces[0], 0, known))
                if not whole:
                    pieces[0] = sliced(pieces[0], known, pieces[0].end.size)
                    break
                del pieces[0]
            if not pieces:
                del held[number]
        yield block
        size = sum(piece.end.size + piece.position.size for piece in chain.from_iterable(held.values()))
        pull(heapq.heappop(ends)[2])


def _known(piece: Matches) -> I64:
    """The event at which each match is known: the one that completes it, unless it waits."""
    return piece.end if piece.known is None else piece.known


def _last(piece: Matches) -> tuple[int, int]:
    """The event at which the last match is known, and the number of its source."""
    assert piece.part is not None
    return int(_known(piece)[-1]), int(piece.part[-1])


def _until(piece: Matches, last: tuple[int, int]) -> int:
    """How many matches do not come after ``last``."""
    assert piece.part is not None
    known = _known(piece)
    low, high = np.searchsorted(known, last[0], "left"), np.searchsorted(known, last[0], "right")
    return int(low + np.searchsorted(piece.part[low:high], last[1], "right"))


def _next(pieces: Iterator[Matches]) -> Matches | None:
    return next((piece for piece in pieces if piece.end.size), None)


def joined(pieces: Sequence[Matches]) -> Matches:
    """Pieces of counts and sums with the same columns, one behind the other."""
    totals = [one.totals for one in pieces if one.totals is not None]
    windows = [one.window for one in totals if one.window is not None]
    whole = Totals(
        np.concatenate(windows) if windows else None,
        [pa.concat_arrays(columns) for columns in zip(*(one.groups for one in totals), strict=True)],
        [pa.concat_arrays(columns) for columns in zip(*(one.items for one in totals), strict=True)],
    )
    start, end, part = (np.concatenate([getattr(one, name) for one in pieces]) for name in ("start", "end", "part"))
    known = None if pieces[0].known is None else np.concatenate([one.known for one in pieces if one.known is not None])
    return Matches.added_up(start, end, whole)._replace(part=part, known=known)


def by_event(found: Iterator[Matches], ordered: Callable[[Sequence[Matches]], Matches]) -> Iterator[Matches]:
    """Rows in the order of the events at which they are known, those of one event in one piece: ``ordered`` makes it of several."""
    held: list[Matches] = []  # what is known at the last event
    for piece in found:
        known = piece.known
        if known is None:
            yield piece
            continue
        same = 0
        if held:
            assert held[0].known is not None
            same = int(np.searchsorted(known, held[0].known[0], "right"))
            held.append(sliced(piece, 0, same))
        if same < known.size:
            if held:
                yield ordered(held)
            last = int(np.searchsorted(known, known[-1]))
            if same < last:
                yield ordered([sliced(piece, same, last)])
            held = [sliced(piece, max(same, last), known.size)]
    if held:
        yield ordered(held)


def sliced(piece: Matches, low: int, high: int) -> Matches:
    begin, stop = piece.offset[low], piece.offset[high]
    return Matches(
        piece.start[low:high],
        piece.end[low:high],
        piece.offset[low : high + 1] - begin,
        piece.position[begin:stop],
        piece.mark[begin:stop],
        part=None if piece.part is None else piece.part[low:high],
        measures=None if piece.measures is None else piece.measures.slice(low, high - low),
        known=None if piece.known is None else piece.known[low:high],
        totals=None if piece.totals is None else piece.totals.sliced(low, high),
    )


class Results:
    """How rows are made.

    Parameters
    ----------
    schema
        The events' columns.
    by
        The attributes that every pattern is partitioned by.
    events
        Whether rows show the events of the variables.
    positions
        Whether they have ``start``, ``end`` and ``positions``.
    totals
        Whether some of them may be counts and sums.
    measures
        Whether they show what clauses measure, and what RETURN computes.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        by: Sequence[str],
        events: bool,
        positions: bool,
        totals: bool = False,
        measures: bool = False,
    ) -> None:
        assert schema.time is not None
        self.attributes = schema.whole.attributes
        self.time = schema.time
        self.by = tuple(by)
        self.events = events
        self.positions = positions
        self.totals = totals
        self.measures = measures
        fields = fields_among(schema.attributes)
        self.event_type = pa.struct([(name, kind) for name, kind in schema.attributes.items() if name not in fields])
        self.by_names: list[str] = []  #: what results call the attributes of ``by``
        self.schema = self._schema()

    def _schema(self) -> pa.Schema:
        when = self.attributes[self.time]
        fields = [pa.field("pattern", pa.string()), pa.field("since", when)]
        if self.positions:
            fields += [pa.field("start", pa.int64()), pa.field("end", pa.int64())]
            fields.append(pa.field("positions", pa.list_(pa.int64())))
        fields += [pa.field("start_time", when), pa.field("end_time", when)]
        taken = {"start", "end", "positions", "keys", "events", *(field.name for field in fields)}
        taken.update((*WINDOW, "totals") if self.totals else ())
        taken.update(("measures",) if self.measures else ())
        for attribute in self.by:
            name = attribute
            while name in taken:
                name += "_"
            taken.add(name)
            self.by_names.append(name)
            fields.append(pa.field(name, self.attributes[attribute]))
        fields.append(pa.field("keys", NAMED))
        if self.events:
            entry = pa.struct([("variable", pa.string()), ("event", self.event_type)])
            fields.append(pa.field("events", pa.list_(entry)))
        if self.measures:
            fields.append(pa.field("measures", NAMED))
        if self.totals:
            fields += [pa.field(name, measured_type(when)) for name in WINDOW]
            fields.append(pa.field("totals", NAMED))
        return pa.schema(fields)

    def columns(self, used: Used) -> tuple[str, ...]:
        """The attributes of events that rows show or are computed of, in the schema's order."""
        read = {self.time, *self.by, *used.keys}
        read.update(used.shown if self.events else (), used.returned if self.measures else ())
        return tuple(name for name in self.attributes if name in read)

    def table(self, block: Sequence[Matches], sources: Sequence[Source], history: History) -> pa.Table:
        """Rows of the matches of a block, and of what was added up, in order."""
        added = [piece for piece in block if piece.totals is not None and piece.end.size]
        listed = [piece for piece in block if piece.totals is None]
        if not added:
            return self._listed(listed, sources, history) if listed else self.schema.empty_table()
        alike: dict[Hashable, list[Matches]] = {}
        for piece in added:
            alike.setdefault(_form(piece, sources), []).append(piece)
        whole = [_sorted_rows(pieces) for pieces in alike.values()]
        tables = [self._added_up(piece, sources, history) for piece in whole]
        if listed:
            tables.append(self._listed(listed, sources, history))
        if len(tables) == 1:
            return tables[0]
        known, source = map(
            np.concatenate, zip(*map(_place, whole), *([_in_place(listed)] if listed else []), strict=True)
        )
        rows, order = pa.concat_tables(tables), _order(known, source)
        return rows if order is None else rows.take(pa.array(order))

    def _added_up(self, piece: Matches, sources: Sequence[Source], history: History) -> pa.Table:
        """Rows of what one pattern has added up, or several whose items and groups have the same names and types."""
        found, rows = piece.totals, piece.end.size
        assert found is not None
        assert piece.part is not None
        source = sources[piece.part[0]]
        totals = source.part.totals
        assert totals is not None
        own = dict[str, pa.Array](
            pattern=_chosen([one.id for one in sources], piece.part),
            totals=as_map([one.name for one in totals.items], found.items, rows),
        )
        if source.since is not None:
            own["since"] = pa.repeat(source.since, rows)
        if totals.scope.extent is Extent.EVENT:
            when = self.attributes[self.time]
            own |= {"start": pa.array(piece.start), "end": pa.array(piece.end)}
            own["start_time"] = _Look(history, piece.start).column(self.time, when)
            own["end_time"] = _Look(history, piece.end).column(self.time, when)
        if found.window is not None:
            ends = window_columns(found.window, totals.scope.panes, measured_type(self.attributes[self.time]))
            own |= zip(WINDOW, ends, strict=True)
        groups = list(zip(totals.scope.groups, found.groups, strict=True))
        shown = [
            (one.name, column) for one, column in groups if one.variable is not None or one.attribute not in self.by
        ]
        own["keys"] = as_map([name for name, _ in shown], [column for _, column in shown], rows)
        own |= {
            name: column
            for attribute, name in zip(self.by, self.by_names, strict=True)
            for one, column in groups
            if one.variable is None and one.attribute == attribute
        }
        columns = [own[field.name] if field.name in own else pa.nulls(rows, field.type) for field in self.schema]
        fitted = [
            one if one.type == field.type else one.cast(field.type)
            for one, field in zip(columns, self.schema, strict=True)
        ]
        return pa.Table.from_arrays(fitted, schema=self.schema)

    def _listed(self, block: Sequence[Matches], sources: Sequence[Source], history: History) -> pa.Table:
        """Rows of the matches of a block, in order."""
        rows = _joined(block, marks=self.events)
        measures = _measures(block, rows.order, sources, history) if self.measures else None
        numbers, which = _numbered(rows.source, len(sources))
        sources = [sources[number] for number in numbers]
        rows = rows._replace(source=which)
        when = self.attributes[self.time]
        shown = [_chosen([source.id for source in sources], rows.source)]
        sinces = pa.array([source.since for source in sources], when)
        shown.append(
            sinces.take(pa.array(rows.source)) if sinces.null_count < len(sinces) else pa.nulls(rows.end.size, when)
        )
        if self.positions:
            shown += [pa.array(rows.start), pa.array(rows.end), _lists(rows.offset, pa.array(rows.position))]
        ends, starts = _Look(history, rows.end), _Look(history, rows.start)
        shown += [starts.column(self.time, when), ends.column(self.time, when)]
        shown += [ends.column(name, self.attributes[name]) for name in self.by]
        shown.append(self._keys(rows, sources, history))
        if self.events:
            shown.append(self._events(rows, sources, history))
        if measures is not None:
            shown.append(measures)
        shown += [pa.nulls(rows.end.size, field.type) for field in list(self.schema)[len(shown) :]]
        return pa.Table.from_arrays(shown, schema=self.schema)

    def _keys(self, rows: _Rows, sources: Sequence[Source], history: History) -> pa.Array:
        """The attributes that tell keys and are not in ``by``, as text."""
        extra = [[name for name in source.part.keys if name not in self.by] for source in sources]
        names = list(dict.fromkeys(chain.from_iterable(extra)))
        if all(one == names for one in extra):
            told = [self._told(name, rows.end, history) for name in names]
            return as_map(names, [texts.take(pa.array(which)) for texts, which in told], rows.end.size)
        counts = np.array([len(one) for one in extra], np.int64)[rows.source]
        offset = offsets(counts)
        name_of, value_of = np.zeros(int(offset[-1]), np.int64), np.zeros(int(offset[-1]), np.int64)
        texts: list[pa.Array] = []
        done = 0
        for number, name in enumerate(names):
            place = np.array([one.index(name) if name in one else -1 for one in extra], np.int64)[rows.source]
            mine = np.flatnonzero(place >= 0)
            found, which = self._told(name, rows.end[mine], history)
            at = offset[mine] + place[mine]
            name_of[at] = number
            value_of[at] = done + which
            texts.append(found)
            done += len(found)
        keys = pa.array(names, pa.string()).take(pa.array(name_of))
        return pa.MapArray.from_arrays(_narrow(offset), keys, pa.concat_arrays(texts).take(pa.array(value_of)))

    def _told(self, name: str, ends: I64, history: History) -> tuple[pa.Array, I64]:
        """Texts of an attribute of some events, and of each event which one is its own; equal events come one after the other."""
        fresh = np.ones(ends.size, np.bool_)
        fresh[1:] = ends[1:] != ends[:-1]
        texts = _text(one_zero(_Look(history, ends[fresh]).column(name, self.attributes[name])))
        return texts, np.cumsum(fresh) - 1

    def _events(self, rows: _Rows, sources: Sequence[Source], history: History) -> pa.Array:
        """Which variable holds which event: first by event, then in the order of SELECT."""
        variables: list[tuple[str | None, tuple[str, ...]]] = []
        begin: list[int] = [0]
        holders: list[int] = []
        base = np.zeros(len(sources), np.int64)
        for number, source in enumerate(sources):
            base[number] = len(begin) - 1
            for held in source.part.holders:
                holders += [len(variables) + k for k in held]
                begin.append(len(holders))
            variables += source.part.selected
        first = np.array(begin, np.int64)
        assert rows.mark is not None
        mark = rows.mark + np.repeat(base[rows.source], np.diff(rows.offset))
        entries = offsets(first[mark + 1] - first[mark])
        inside = np.arange(entries[-1]) - np.repeat(entries[:-1], np.diff(entries))
        holder = np.array(holders, np.int64)[np.repeat(first[mark], np.diff(entries)) + inside]
        look = _Look(history, np.repeat(rows.position, np.diff(entries)))
        columns = []
        for name, kind in ((field.name, field.type) for field in self.event_type):
            chosen = np.array([name in attributes for _, attributes in variables], np.bool_)[holder]
            columns.append(look.column(name, kind, chosen))
        event = pa.StructArray.from_arrays(columns, fields=list(self.event_type))
        names = pa.array([name for name, _ in variables], pa.string()).take(pa.array(holder))
        entry = pa.struct([("variable", pa.string()), ("event", self.event_type)])
        held = pa.StructArray.from_arrays([names, event], fields=list(entry))
        return _lists(entries[rows.offset], held)


class _Rows(NamedTuple):
    """Matches of several sources in the order of the result."""

    source: I64
    start: I64
    end: I64
    offset: I64
    position: I64
    mark: NDArray[np.int32] | None  #: ``None``: nobody asks which variables hold an event
    order: I64 | None  #: the number of each in the block; ``None``: they are as there


def _form(piece: Matches, sources: Sequence[Source]) -> Hashable:
    """What rows of counts and sums have in common that are made in one go."""
    assert piece.part is not None
    assert piece.totals is not None
    source = sources[piece.part[0]]
    totals = source.part.totals
    assert totals is not None
    names = tuple(one.name for one in totals.items)
    types = tuple(column.type for column in (*piece.totals.groups, *piece.totals.items))
    return totals.scope, names, types, source.since, piece.totals.window is None, piece.known is None


def _sorted_rows(pieces: Sequence[Matches]) -> Matches:
    """Counts and sums of one form as one piece, in the order of events and patterns."""
    whole = pieces[0] if len(pieces) == 1 else joined(pieces)
    known, source = _place(whole)
    order = _order(known, source)
    return whole if order is None else whole.taken(order)


def _place(piece: Matches) -> tuple[I64, I64]:
    """The event at which each row is known, and the number of its source."""
    assert piece.part is not None
    return _known(piece), piece.part


def _in_place(block: Sequence[Matches]) -> tuple[I64, I64]:
    """The same of the rows of a block, in their order."""
    known, source = map(np.concatenate, zip(*map(_place, block), strict=True))
    order = _order(known, source)
    return (known, source) if order is None else (known[order], source[order])


def _joined(block: Sequence[Matches], *, marks: bool) -> _Rows:
    if len(block) == 1:
        piece = block[0]
        assert piece.part is not None
        mark = piece.mark if marks else None
        return _Rows(piece.part, piece.start, piece.end, piece.offset, piece.position, mark, None)
    source = np.concatenate([piece.part for piece in block if piece.part is not None])
    known = np.concatenate([_known(piece) for piece in block])
    start = np.concatenate([piece.start for piece in block])
    end = np.concatenate([piece.end for piece in block])
    offset = offsets(np.concatenate([np.diff(piece.offset) for piece in block]))
    cells = [np.concatenate([piece.position for piece in block])]
    if marks:
        cells.append(np.concatenate([piece.mark for piece in block]))
    order = _order(known, source)
    if order is not None:
        source, start, end = source[order], start[order], end[order]
        offset, cells = lists_taken(offset, order, cells)
    return _Rows(source, start, end, offset, cells[0], cells[1] if marks else None, order)


def _order(known: I64, source: I64) -> I64 | None:
    """The numbers of rows in the order in which they are known, and then of their sources; ``None``: they are in it already."""
    later, equal = known[1:] > known[:-1], known[1:] == known[:-1]
    if (later | (equal & (source[1:] >= source[:-1]))).all():
        return None
    return np.lexsort((_narrowest(source), _narrowest(known)))


def _narrowest(numbers: I64) -> NDArray[Any]:
    """Numbers in the same order, as small as can be: NumPy sorts those of 16 bits by counting."""
    least = numbers.min()
    return (numbers - least).astype(np.min_scalar_type(numbers.max() - least))  # type: ignore[no-any-return]


def _measures(block: Sequence[Matches], order: I64 | None, sources: Sequence[Source], history: History) -> pa.Array:
    """What the matches of a block measure, in an order; NULL of those that measure nothing."""
    computes = np.array([source.part.returned is not None for source in sources], np.bool_)
    found = pa.concat_arrays(
        [_returned(piece, sources, computes, history) if piece.measures is None else piece.measures for piece in block]
    )
    return found if order is None or found.null_count == len(found) else found.take(pa.array(order))


def _returned(piece: Matches, sources: Sequence[Source], computes: NDArray[np.bool_], history: History) -> pa.Array:
    """What RETURN computes of the matches of a piece; NULL of those whose patterns do not (``computes``).

    Raises
    ------
    DataError
        A sum or a product of integers leaves 64 bits; the message names the pattern.
    """
    assert piece.part is not None
    asked = computes[piece.part]
    if not asked.any():
        return pa.nulls(piece.end.size, NAMED)
    place, maps, used = np.full(piece.end.size, -1), list[pa.Array](), 0
    for number in np.unique(piece.part[asked]).tolist():
        source = sources[number]
        query = source.part.returned
        assert query is not None
        rows = np.flatnonzero(piece.part == number)
        try:
            values = computed_columns(piece.taken(rows), query, history, source.part.lister.marks)
        except IntegerOverflow as error:
            raise DataError(f"pattern '{source.id}': {error}") from error
        maps.append(as_map([one.name for one in query.returns or ()], values, rows.size))
        place[rows] = np.arange(used, used + rows.size)
        used += rows.size
    return pa.concat_arrays(maps).take(pa.array(place, mask=place < 0))


class _Look:
    """Columns of the events at some positions."""

    def __init__(self, history: History, positions: I64) -> None:
        known, self._table = history.joined()
        whole = known.size and known[-1] - known[0] == known.size - 1
        self._rows = positions - known[0] if whole else _places(known, positions)

    def column(self, name: str, kind: pa.DataType, chosen: NDArray[np.bool_] | None = None) -> pa.Array:
        """One column; NULL where an event is not ``chosen``."""
        if not self._rows.size or (chosen is not None and not chosen.any()):
            return pa.nulls(self._rows.size, kind)
        if chosen is None or chosen.all():
            column = Gatherer(self._table.select([name])).take(self._rows, [name]).column(name)
        else:
            column = self._table.column(name).take(pa.array(self._rows, mask=~chosen))
        found = one_array(column)
        return found if found.type == kind else found.cast(kind)


def _places(known: I64, positions: I64) -> I64:
    """Where positions are among the known ones, which are sorted."""
    if not positions.size:
        return np.zeros(0, np.int64)
    least, most = int(positions.min()), int(positions.max())
    first, last = np.searchsorted(known, (least, most)).tolist()
    if most - least >= 16 * positions.size:
        return np.searchsorted(known, positions)
    place = np.empty(most - least + 1, np.int64)  # a table is less work than a search for each
    place[known[first : last + 1] - least] = np.arange(first, last + 1)
    return place[positions - least]


def _numbered(source: I64, count: int) -> tuple[I64, I64]:
    """Which of so many sources rows have (sorted), and of each row which of these."""
    if source.size < count:
        numbers, which = np.unique(source, return_inverse=True)
        return numbers, which.reshape(-1)
    present = np.zeros(count, np.bool_)
    present[source] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[source]


def _narrow(offset: I64) -> pa.Array:
    return pa.array(offset.astype(np.int32))


def _chosen(texts: Sequence[str], which: I64) -> pa.Array:
    """Some of a few texts, by their numbers."""
    return pa.array(texts, pa.string()).take(pa.array(which))


def _lists(offset: I64, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(_narrow(offset), values)


def as_map(names: Sequence[str], columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """Columns by name, as text; durations as numbers of their unit."""
    if not names or not rows:
        return pa.MapArray.from_arrays(
            _narrow(np.zeros(rows + 1, np.int64)), pa.array([], pa.string()), pa.array([], pa.string())
        )
    plain = [one.cast(pa.int64()) if pa.types.is_duration(one.type) else one for one in columns]
    values = pa.concat_arrays([_text(one) for one in plain])
    if len(names) > 1:
        values = values.take(pa.array(np.arange(rows * len(names)).reshape(len(names), rows).T.ravel()))
    keys = _chosen(names, np.tile(np.arange(len(names)), rows))
    return pa.MapArray.from_arrays(_narrow(np.arange(rows + 1) * len(names)), keys, values).cast(NAMED)


def _text(column: pa.Array) -> pa.Array:
    """Write values as text, lists and structs as JSON."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_list(column.type) and pa.types.is_temporal(column.type.value_type):
        column = column.cast(pa.list_(pa.string()))
    if pa.types.is_nested(column.type):
        made = (None if one is None else json.dumps(one, ensure_ascii=False, default=str) for one in column.to_pylist())
        return pa.array(made, pa.string())
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are no text, durations
        distinct = column.dictionary_encode()
        texts = [value.hex() if isinstance(value, bytes) else str(value) for value in distinct.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(distinct.indices)
