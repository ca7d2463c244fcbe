"""Events of matches on a time axis, a lane for each variable, with what was skipped between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.arguments import check_arguments
from stretto.column_types import with_fields
from stretto.errors import OptionError, hinted
from stretto.events import as_table, require
from stretto.views.clock import Clock
from stretto.views.lanes import Block, Held, Lane, picture, text
from stretto.views.table import (
    Columns,
    Event,
    attribute_of,
    dated,
    events_of,
    is_time,
    leaves,
    one_array,
    values_of,
    worth_writing,
)
from stretto.views.text import cut, short
from stretto.views.view import View

#: Matches in a picture, events of a lane that are drawn one by one (more are a band), and characters of a label.
MOST_ROWS, MOST_EVENTS, LABEL = 50, 400, 24


@check_arguments
def timeline(
    matches: Any,
    events: Any = None,
    row: int | Iterable[int] = 0,
    *,
    time: str | None = None,
    key: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    time_unit: str | None = None,
) -> View:
    """Show the events of a match, or of several, on a time axis: a lane for each variable, and one for what was skipped between.

    Parameters
    ----------
    matches
        What :func:`stretto.match` gives.
    events
        The events that were matched. With them the lane of skipped events is drawn: those between the first and the last event of
        the match, of the same key, that it does not hold.
    row
        The match, by its row in the table, or several of them, of which at most 50 are drawn; they have one axis unless they are far
        apart.
    time
        The attribute that orders the events; ``None``: that which goes from ``start_time`` to ``end_time`` in the match. Without
        times, places in the input are the axis.
    key
        The partition attributes; ``None``: the columns between the times and the first variable.
    label
        Attributes that are written beside an event; ``None``: the first two that say something. All are shown where a pointer
        rests on the event.
    time_unit
        What integer times count since 1970: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; ``None``: they stay numbers.

    Returns
    -------
    View
        ``str()`` gives text, a notebook shows the picture, ``save()`` writes ``.svg``, ``.png``, ``.html`` or ``.txt``.

    Raises
    ------
    OptionError
        A row or a column is not there, or nothing says when the events were.

    Examples
    --------
    >>> import stretto
    >>> events = [{"type": one, "t": at} for at, one in enumerate("ACB")]
    >>> matches = stretto.match("SELECT * FROM S WHERE A; B", events, time="t")
    >>> print(stretto.timeline(matches, events))
    match 0: from 0 to 2
    A       │●                                                           │
    B       │                                                           ●│
    skipped │                             ·                              │
    """
    table = as_table(matches)
    known = Columns.of(table.schema)
    rows = [row] if isinstance(row, int) else list(row)
    if not rows:
        raise OptionError("timeline(row=…): no row is named")
    for one in rows:
        if not -table.num_rows <= one < table.num_rows:
            count = f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}"
            raise OptionError(f"timeline(row={one}): the table has {count}, counted from 0")
    source = None if events is None else with_fields(as_table(events), [] if time is None else [time])
    if time_unit is not None:
        time = time or attribute_of(table)
        table = dated(table, time_unit, time)
        source = source and dated(source, time_unit, time)
        known = Columns.of(table.schema)
    keys = None if key is None else (key,) if isinstance(key, str) else tuple(key)
    for name in keys or ():
        require(table, name, "key")
    drawing = _Drawing(table, known, source, time, keys, (label,) if isinstance(label, str) else label)
    blocks = [drawing.block(one % table.num_rows) for one in rows[:MOST_ROWS]]
    left_out = len(rows) - len(blocks)
    scene = picture(blocks, drawing.clock, left_out)
    return View("\n".join(text(blocks, left_out)), scene.svg, scene)


class _Drawing:
    """What is the same for all matches of a picture."""

    def __init__(
        self,
        table: pa.Table,
        known: Columns,
        source: pa.Table | None,
        time: str | None,
        keys: Sequence[str] | None,
        label: Sequence[str] | None,
    ) -> None:
        self.table, self.known, self.source, self.label = table, known, source, label
        self.keys = known.keys if keys is None else keys
        #: Columns of which the events of a match must tell whether they are keys.
        self.perhaps = known.scalars if keys is None and not known.keys else ()
        self.timed = bool(known.times)
        if not self.timed and "positions" not in known.places:
            raise OptionError(
                "timeline() needs the columns start_time and end_time, or positions: name the time with time='…' in the call of "
                "match, and leave positions=True"
            )
        self.clock = Clock(table.schema.field("start_time").type if self.timed else pa.int64())
        self.time = time
        if source is not None:
            self.source = with_fields(source, [*self.keys, *self.perhaps])
        if source is not None and time is not None:
            require(source, time, "time")
        for name in label or ():
            structs = [table.schema.field(variable).type.value_type for variable in known.variables]
            there = dict.fromkeys(one.name for struct in structs for one in struct)
            there |= {} if source is None else dict.fromkeys(source.column_names)
            if name not in there:
                raise OptionError(hinted(f"label='{name}': the events have no such attribute", name, there))

    def block(self, row: int) -> Block:
        """Read a match."""
        one = self.table.slice(row, 1)
        values = {name: one.column(name) for name in one.column_names}
        positions = values["positions"][0].as_py() or None if "positions" in self.known.places else None
        if self.timed:
            low, high = (self.clock.numbers(values[name])[0] for name in ("start_time", "end_time"))
        else:
            low, high = (positions[0], positions[-1]) if positions else (None, None)
        if low is None or high is None:
            raise OptionError(f"timeline(row={row}): the row does not say when its match begins and ends")
        time = self.time or (self._time_of(values, low, high) if self.timed else None)
        lanes = [self._lane(name, values[name], time, positions) for name in self.known.variables]
        if not lanes:
            lanes = [self._places(positions, low, high)]
        if self.source is not None:
            lanes.append(self._skipped(values, time, low, high, positions, lanes))
        digits = self.clock.digits([low, high])
        day = self.clock.moment(low)
        begin, end = self.clock.text(low, digits), self.clock.text(high, digits, day and day.date())
        span = f"from {begin} to {end}"
        named = ", ".join(f"{name} {short(values[name][0].as_py())}" for name in self._keys(values, positions))
        back = " (taken back)" if self.known.sign and values["sign"][0].as_py() < 0 else ""
        return Block(f"match {row}{back}: {named + ', ' if named else ''}{span}", low, high, lanes)

    def _time_of(self, values: dict[str, pa.ChunkedArray], low: Any, high: Any) -> str | None:
        """The attribute whose least and greatest values in the match are its times."""
        kind = self.table.schema.field("start_time").type
        found: dict[str, list[Any]] = {}
        for variable in self.known.variables:
            for name, own in leaves(one_array(values[variable]).flatten()):
                if own.type == kind:
                    found.setdefault(name, []).extend(self.clock.numbers(own))
        for name, numbers in found.items():
            there = [number for number in numbers if number is not None]
            if there and min(there) == low and max(there) == high:
                return name
        if len(found) == 1:  # variables that are not selected are not among them
            return next(iter(found))
        return next(
            (name for name, numbers in found.items() if all(n is not None and low <= n <= high for n in numbers)), None
        )

    def _lane(self, name: str, column: pa.ChunkedArray, time: str | None, positions: list[int] | None) -> Lane:
        structs = one_array(column).flatten()
        names = [one.name for one in structs.type]
        own = None if time is None else dict(leaves(structs)).get(time)
        if own is not None:
            at = self.clock.numbers(own)
        else:
            at = self._found(structs, positions)
        if len(structs) > MOST_EVENTS:
            times = [when for when in at if when is not None]
            return Lane(name, times=times, more=len(structs) - len(times))
        worth = [
            one
            for one in worth_writing(name, structs, self.keys)[0]
            if not is_time(structs.field(names.index(one)).type) and one != time
        ]
        chosen = worth[:2] if self.label is None else [one for one in self.label if one in names]
        marks = [
            Held(when, event, cut(event.text, LABEL))
            for when, event in zip(at, events_of(structs, chosen, [None] * len(structs)), strict=True)
            if when is not None
        ]
        return Lane(name, marks, more=len(structs) - len(marks))

    def _found(self, structs: pa.Array, positions: list[int] | None) -> list[Any]:
        """Where the events of a variable are, where they do not say it themselves: among those at the match's positions."""
        if self.source is None or positions is None:
            raise OptionError(
                "the events of the match do not say when they were: give timeline(matches, events), or time='…' with the attribute's "
                "name"
            )
        names = [one.name for one in structs.type]
        for name in names:
            require(self.source, name, "attribute of the matches")
        there = self.source.select(names).take(pa.array(self._inside(positions), pa.int64()))
        free: dict[tuple[Any, ...], list[Any]] = {}
        for own, at in reversed([*zip(values_of(_structs(there)), self._times(positions), strict=True)]):
            free.setdefault(own, []).append(at)
        return [free[own].pop() if free.get(own) else None for own in values_of(structs)]

    def _inside(self, positions: list[int]) -> list[int]:
        """Positions, which must be rows of the events."""
        assert self.source is not None
        if max(positions, default=0) >= self.source.num_rows:
            count = f"{self.source.num_rows:,} row{'' if self.source.num_rows == 1 else 's'}"
            raise OptionError(
                f"the match has an event in row {max(positions):,}, and the events have {count}: give those that were matched"
            )
        return positions

    def _times(self, positions: list[int]) -> list[Any]:
        """When the events at some positions were: a position is its own time where there is none."""
        if not self.timed or self.time is None:
            return positions
        assert self.source is not None
        return self.clock.numbers(self.source.column(self.time).take(pa.array(positions, pa.int64())))

    def _places(self, positions: list[int] | None, low: Any, high: Any) -> Lane:
        """One lane, where there are no variables: the positions, or the ends of the match."""
        inner = self.timed and (self.time is None or self.source is None)
        if positions is None or inner:
            ends = [("start_time", low), ("end_time", high)]
            return Lane("match", [Held(at, Event("", name, {})) for name, at in ends if at is not None])
        places = self._inside(positions) if self.source is not None else positions
        times = self._times(places)
        if len(places) > MOST_EVENTS:
            return Lane("match", times=times)
        return Lane("match", [Held(at, Event("", f"row {place}", {})) for at, place in zip(times, places, strict=True)])

    def _skipped(
        self,
        values: dict[str, pa.ChunkedArray],
        time: str | None,
        low: Any,
        high: Any,
        positions: list[int] | None,
        lanes: Sequence[Lane],
    ) -> Lane:
        """The events between the ends of a match, of its key, that it does not hold."""
        source = self.source
        assert source is not None
        rows = pa.array(np.arange(source.num_rows))
        between = pa.array(np.ones(source.num_rows, np.bool_))
        if self.timed:
            if time is None:
                raise OptionError("say which column of the events is the time: timeline(…, time='…')")
            source = with_fields(source, [time])
            require(source, time, "time")
            column = source.column(time)
            ends = [_as_in(column, values[name][0], time) for name in ("start_time", "end_time")]
            between = pc.and_(pc.greater_equal(column, ends[0]), pc.less_equal(column, ends[1]))
            if positions is not None:
                self._check(column, positions, {low, high} | {at for lane in lanes for at in lane.places})
        elif positions is not None:
            between = pc.and_(pc.greater_equal(rows, positions[0]), pc.less_equal(rows, positions[-1]))
        for name in self._keys(values, positions):
            if name in source.column_names:
                own = source.column(name)
                between = pc.and_(between, pc.equal(own, _as_in(own, values[name][0], name)))
        if positions is not None:
            between = pc.and_(between, pc.invert(pc.is_in(rows, pa.array(positions, pa.int64()))))
        found = rows.filter(one_array(between))
        held = [] if positions is not None else _held([values[name] for name in self.known.variables])
        return self._left(source.take(found), found, time, held)

    def _keys(self, values: dict[str, pa.ChunkedArray], positions: list[int] | None) -> list[str]:
        """The partition attributes; a column that RETURN computes may be named as one, so that the events are asked."""
        found = list(self.keys)
        if self.source is None or not positions:
            return found
        for name in self.perhaps:
            if name in self.source.column_names:
                there = self.source.column(name).take(pa.array(self._inside(positions), pa.int64()))
                if there.type == values[name].type and pc.all(pc.equal(there, values[name][0])).as_py():
                    found.append(name)
        return found

    def _check(self, column: pa.ChunkedArray, positions: list[int], times: set[Any]) -> None:
        """Refuse events whose rows are not those of the match."""
        there = self.clock.numbers(column.take(pa.array(self._inside(positions), pa.int64())))
        if not times <= set(there):
            raise OptionError(
                "the events are not those that were matched: in the rows of the match they have other times; give the same table, or "
                "matches without the column positions"
            )

    def _left(
        self,
        between: pa.Table,
        rows: pa.Array,
        time: str | None,
        held: list[tuple[list[str], Counter[tuple[Any, ...]]]],
    ) -> Lane:
        """The lane of events, but for those that the match holds, where positions do not tell them."""
        kept = np.ones(between.num_rows, np.bool_)
        for names, counts in held:
            if not {*names} <= {*between.column_names}:
                continue
            own = values_of(_structs(between.select(names)))
            for at in np.flatnonzero(kept).tolist():
                if counts[own[at]] > 0:
                    counts[own[at]] -= 1
                    kept[at] = False
        mask = pa.array(kept)
        left, rows = between.filter(mask), rows.filter(mask)
        times = self.clock.numbers(left.column(time)) if self.timed and time is not None else rows.to_pylist()
        if left.num_rows > MOST_EVENTS:
            known = [when for when in times if when is not None]
            return Lane("skipped", times=known, more=left.num_rows - len(known), skipped=True)
        chosen = list(self.label or (["type"] if "type" in left.column_names else []))
        chosen = [one for one in chosen if one in left.column_names]
        events = events_of(_structs(left), chosen, [None] * left.num_rows)
        marks = [
            Held(when, event, cut(event.text, LABEL))
            for when, event in zip(times, events, strict=True)
            if when is not None
        ]
        return Lane("skipped", marks, skipped=True)


def _structs(table: pa.Table) -> pa.Array:
    """The rows of a table as one array."""
    return one_array(table.combine_chunks().to_struct_array())


def _as_in(column: pa.ChunkedArray, value: pa.Scalar, name: str) -> pa.Scalar:
    """A value of a match, of the type that the column of the events has."""
    try:
        return value.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise OptionError(f"'{name}' is {column.type} in the events, and {value.type} in the matches") from error


def _held(columns: Iterable[pa.ChunkedArray]) -> list[tuple[list[str], Counter[tuple[Any, ...]]]]:
    """How often each event is in a match, by the attributes that variables show; one that several of them hold counts once."""
    found: dict[tuple[str, ...], Counter[tuple[Any, ...]]] = {}
    for column in columns:
        structs = one_array(column).flatten()
        names = tuple(one.name for one in structs.type)
        counts = Counter(values_of(structs))
        found[names] = found[names] | counts if names in found else counts
    return [([*names], counts) for names, counts in found.items()]
