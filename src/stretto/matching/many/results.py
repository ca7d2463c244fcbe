"""Matches of many patterns as rows of one generic table.

Columns: ``pattern``, ``since``, with positions ``start``, ``end`` and ``positions``, then ``start_time``, ``end_time``, the
attributes that every pattern is partitioned by, ``keys`` (the other partition attributes by name, as text) and ``events``:
which variable holds which event, in the order of events. Attributes that a pattern's SELECT leaves out are NULL there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.engines.api import Matches
from stretto.events import Schema
from stretto.matching.many.parts import Part
from stretto.matching.results import History

I64 = NDArray[np.int64]


class Source(NamedTuple):
    """A pattern in force, whose matches become rows."""

    id: str
    since: pa.Scalar | None
    part: Part


def in_order(streams: Sequence[Iterator[Matches]]) -> Iterator[list[Matches]]:
    """Merge matches by the events at which they are known, and by the numbers of their sources (``part``), as each stream has them.

    What is yielded is one block after the other in that order; inside a block the pieces are not merged yet. At most two
    pieces of each stream are held.
    """
    heads: dict[int, Matches] = {}
    following: dict[int, Matches] = {}

    def pull(number: int) -> None:
        if number in following:
            heads[number] = following.pop(number)
        elif (piece := _next(streams[number])) is not None:
            heads[number] = piece
        if number in heads and (after := _next(streams[number])) is not None:
            following[number] = after

    for number in range(len(streams)):
        pull(number)
    while heads:
        if not following:
            yield list(heads.values())
            return
        # All is known up to the last match of the piece that ends first, among those that others follow.
        last = min(_last(heads[number]) for number in following)
        block = []
        for number, piece in sorted(heads.items()):
            known = _until(piece, last)
            if known:
                block.append(sliced(piece, 0, known))
            if known == piece.end.size:
                del heads[number]
            elif known:
                heads[number] = sliced(piece, known, piece.end.size)
        yield block
        for number in list(following):
            if number not in heads:
                pull(number)


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


def chosen(piece: Matches, rows: I64) -> Matches:
    """Some of the matches of a piece."""
    size = np.diff(piece.offset)[rows]
    offset = _offsets(size)
    cells = np.repeat(piece.offset[rows] - offset[:-1], size) + np.arange(offset[-1])
    part, known = (None if one is None else one[rows] for one in (piece.part, piece.known))
    return Matches(
        piece.start[rows], piece.end[rows], offset, piece.position[cells], piece.mark[cells], part=part, known=known
    )


def sliced(piece: Matches, low: int, high: int) -> Matches:
    begin, stop = piece.offset[low], piece.offset[high]
    return Matches(
        piece.start[low:high],
        piece.end[low:high],
        piece.offset[low : high + 1] - begin,
        piece.position[begin:stop],
        piece.mark[begin:stop],
        part=None if piece.part is None else piece.part[low:high],
        known=None if piece.known is None else piece.known[low:high],
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
    """

    def __init__(self, schema: Schema, *, by: Sequence[str], events: bool, positions: bool) -> None:
        assert schema.time is not None
        self.attributes = schema.attributes
        self.time = schema.time
        self.by = tuple(by)
        self.events = events
        self.positions = positions
        self.event_type = pa.struct(list(schema.attributes.items()))
        self.schema = self._schema()

    def _schema(self) -> pa.Schema:
        when = self.attributes[self.time]
        fields = [pa.field("pattern", pa.string()), pa.field("since", when)]
        if self.positions:
            fields += [pa.field("start", pa.int64()), pa.field("end", pa.int64())]
            fields.append(pa.field("positions", pa.list_(pa.int64())))
        fields += [pa.field("start_time", when), pa.field("end_time", when)]
        taken = {"start", "end", "positions", "keys", "events", *(field.name for field in fields)}
        for attribute in self.by:
            name = attribute
            while name in taken:
                name += "_"
            taken.add(name)
            fields.append(pa.field(name, self.attributes[attribute]))
        fields.append(pa.field("keys", pa.map_(pa.string(), pa.string())))
        if self.events:
            entry = pa.struct([("variable", pa.string()), ("event", self.event_type)])
            fields.append(pa.field("events", pa.list_(entry)))
        return pa.schema(fields)

    def columns(self, shown: Collection[str], keys: Collection[str]) -> tuple[str, ...]:
        """The attributes of events that rows show, in the schema's order; ``shown``: those of variables."""
        used = {self.time, *self.by, *keys, *(shown if self.events else ())}
        return tuple(name for name in self.attributes if name in used)

    def table(self, block: Sequence[Matches], sources: Sequence[Source], history: History) -> pa.Table:
        """Rows of the matches of a block, in order."""
        rows = _joined(block)
        numbers, which = np.unique(rows.source, return_inverse=True)
        sources = [sources[number] for number in numbers]
        rows = rows._replace(source=which.reshape(-1))
        ids = pa.array([source.id for source in sources], pa.string())
        sinces = pa.array([source.since for source in sources], self.attributes[self.time])
        shown = [ids.take(pa.array(rows.source)), sinces.take(pa.array(rows.source))]
        if self.positions:
            shown += [pa.array(rows.start), pa.array(rows.end), _lists(rows.offset, pa.array(rows.position))]
        ends, starts = _Look(history, rows.end), _Look(history, rows.start)
        when = self.attributes[self.time]
        shown += [starts.column(self.time, when), ends.column(self.time, when)]
        shown += [ends.column(name, self.attributes[name]) for name in self.by]
        shown.append(self._keys(rows, sources, history))
        if self.events:
            shown.append(self._events(rows, sources, history))
        return pa.Table.from_arrays(shown, schema=self.schema)

    def _keys(self, rows: _Rows, sources: Sequence[Source], history: History) -> pa.Array:
        """The partition attributes that are not in ``by``, as text."""
        extra = [[name for name in source.part.query.partition_by if name not in self.by] for source in sources]
        names = list(dict.fromkeys(chain.from_iterable(extra)))
        counts = np.array([len(one) for one in extra], np.int64)[rows.source]
        offset = _offsets(counts)
        name_of, value_of = np.zeros(int(offset[-1]), np.int64), np.zeros(int(offset[-1]), np.int64)
        texts: list[pa.Array] = [pa.array([], pa.string())]
        done = 0
        for number, name in enumerate(names):
            place = np.array([one.index(name) if name in one else -1 for one in extra], np.int64)[rows.source]
            mine = np.flatnonzero(place >= 0)
            texts.append(_text(_Look(history, rows.end[mine]).column(name, self.attributes[name])))
            at = offset[mine] + place[mine]
            name_of[at] = number
            value_of[at] = np.arange(done, done + mine.size)
            done += mine.size
        keys = pa.array(names, pa.string()).take(pa.array(name_of))
        return pa.MapArray.from_arrays(_narrow(offset), keys, pa.concat_arrays(texts).take(pa.array(value_of)))

    def _events(self, rows: _Rows, sources: Sequence[Source], history: History) -> pa.Array:
        """Which variable holds which event: first by event, then in the order of SELECT."""
        variables: list[tuple[str, tuple[str, ...]]] = []
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
        mark = rows.mark + np.repeat(base[rows.source], np.diff(rows.offset))
        entries = _offsets(first[mark + 1] - first[mark])
        inside = np.arange(entries[-1]) - np.repeat(entries[:-1], np.diff(entries))
        holder = np.array(holders, np.int64)[np.repeat(first[mark], np.diff(entries)) + inside]
        look = _Look(history, np.repeat(rows.position, np.diff(entries)))
        columns = []
        for name, kind in self.attributes.items():
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
    mark: I64


def _joined(block: Sequence[Matches]) -> _Rows:
    source = np.concatenate([piece.part for piece in block if piece.part is not None])
    start = np.concatenate([piece.start for piece in block])
    end = np.concatenate([piece.end for piece in block])
    size = np.concatenate([np.diff(piece.offset) for piece in block])
    position = np.concatenate([piece.position for piece in block])
    mark = np.concatenate([piece.mark for piece in block]).astype(np.int64)
    offset = _offsets(size)
    if len(block) > 1:
        order = np.lexsort((source, np.concatenate([_known(piece) for piece in block])))
        source, start, end, size = source[order], start[order], end[order], size[order]
        moved = _offsets(size)
        flat = np.repeat(offset[:-1][order] - moved[:-1], size) + np.arange(moved[-1])
        offset, position, mark = moved, position[flat], mark[flat]
    return _Rows(source, start, end, offset, position, mark)


class _Look:
    """Columns of the events at some positions."""

    def __init__(self, history: History, positions: I64) -> None:
        known, self._table = history.joined()
        whole = known.size and known[-1] - known[0] == known.size - 1
        self._rows = positions - known[0] if whole else np.searchsorted(known, positions)

    def column(self, name: str, kind: pa.DataType, chosen: NDArray[np.bool_] | None = None) -> pa.Array:
        """One column; NULL where an event is not ``chosen``."""
        if not self._rows.size or (chosen is not None and not chosen.any()):
            return pa.nulls(self._rows.size, kind)
        rows = pa.array(self._rows, mask=None if chosen is None or chosen.all() else ~chosen)
        found = self._table.column(name).take(rows).combine_chunks()
        if isinstance(found, pa.ChunkedArray):
            found = found.chunk(0) if found.num_chunks == 1 else pa.concat_arrays(found.chunks)
        return found if found.type == kind else found.cast(kind)


def _offsets(counts: I64) -> I64:
    offset = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offset[1:])
    return offset


def _narrow(offset: I64) -> pa.Array:
    return pa.array(offset.astype(np.int32))


def _lists(offset: I64, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(_narrow(offset), values)


def _text(column: pa.Array) -> pa.Array:
    """Write keys as text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are no text, durations
        distinct = column.dictionary_encode()
        texts = [value.hex() if isinstance(value, bytes) else str(value) for value in distinct.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(distinct.indices)
