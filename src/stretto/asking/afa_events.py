"""The events that an automaton is asked about: what it finds among them, and what in them breaks a fence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import I64
from stretto.asking.evidence import NAMED, Evidence, distance, relative, shown
from stretto.asking.trying import FIRST, LARGEST, MOST_BYTES, TOO_MUCH, Abandoned, Found, Number, Trying
from stretto.errors import DataError
from stretto.matching.executors.retracting import RetractingExecutor
from stretto.matching.input.ordered_input import ordered
from stretto.query import predicate as p
from stretto.query.afa import Afa, UserFunction
from stretto.query.constraints.model import Constraint, Kind, Step
from stretto.query.evaluate_afa import Event, Taken, computation, fulfils, scope
from stretto.times import spoken

#: Events of a near match of which the way through the automaton is sought.
MOST_FOLLOWED = 2_000


@dataclass(frozen=True)
class Way(Found):
    """A near match, and the arcs on its way, each with its event and the register before it; none: it was not sought."""

    taken: tuple[Taken, ...] = ()


@dataclass(frozen=True)
class AfaEvents:
    """Events in the order of the stream; ``rows`` are their rows in the input (``None``: the same)."""

    afa: Afa
    table: pa.Table
    time: str
    rows: I64 | None

    @classmethod
    def of(cls, afa: Afa, table: pa.Table, time: str, sequence: str | None, rows: I64 | None) -> AfaEvents:
        """Events in any order."""
        sorted_, order = ordered(table, time, sequence)
        if order is not None:
            rows = order if rows is None else rows[order]
        return cls(afa, sorted_.combine_chunks(), time, rows)

    def row(self, at: int) -> int:
        """The row of the input at a position of the stream."""
        return at if self.rows is None else int(self.rows[at])


class AfaTrial(Trying):
    """Runs automata over the same events."""

    def __init__(self, events: AfaEvents, event: int | None = None) -> None:
        super().__init__(event)
        self.events = events

    def compiled(self, parsed: Afa) -> Afa:
        """An automaton as it is: it is compiled when it runs."""
        return parsed

    def executor(self, afa: Afa, budget: str | None = None) -> RetractingExecutor:
        """A run of an automaton over these events.

        Raises
        ------
        OptionError, DataError
            The events are not what it needs.
        """
        return RetractingExecutor(
            afa, self.events.table.schema, time=self.events.time, sequence=None, ordered=True, budget=budget
        )

    def _few(self, query: Afa, each: int, most: float, event: int | None) -> Iterator[Found]:
        for piece in self._outputs(query, most, None if event is None else f"{MOST_BYTES} B"):
            found = piece if event is None else self._around(query, piece, event)
            for first, last in zip(*(found[name][:each].to_pylist() for name in ("start", "end")), strict=True):
                yield self._followed(query, first, last)

    def completing(self, query: Afa) -> Number:
        """At how many events an automaton gives output."""
        seen, exact, began = np.zeros(self.events.table.num_rows, np.bool_), True, process_time()
        try:
            if self._left <= 0:
                raise Abandoned
            for found in self._outputs(query, self._seconds(quick=False), f"{MOST_BYTES} B"):
                seen[found["end"].to_numpy()] = True
        except TOO_MUCH:
            exact = False
        self._note(began)
        return Number(int(np.count_nonzero(seen)), exact)

    def _outputs(self, query: Afa, most: float, budget: str | None = None) -> Iterator[pa.Table]:
        """The output of an automaton, piece by piece of the stream; it is given up when it takes more than so many seconds."""
        executor, table, began = self.executor(query, budget), self.events.table, process_time()
        names, begin, size = executor.needed(), 0, FIRST
        while begin < table.num_rows:
            try:
                yield executor.take(pa.Table.from_batches(table.select(names).slice(begin, size).to_batches()), None)
            except DataError as error:
                if query.arcs == self.events.afa.arcs:
                    raise
                raise Abandoned from error  # a transfer of what a fence would have kept from it
            begin += size
            took = process_time() - began
            if begin < table.num_rows and (took > most or executor.run.nbytes > MOST_BYTES):
                raise Abandoned
            if 4 * took < most:
                size = min(2 * size, LARGEST)

    def _around(self, query: Afa, found: pa.Table, event: int) -> pa.Table:
        """The output from before an event of its partition to behind it."""
        chosen = pc.and_(pc.less_equal(found["start"], event), pc.greater_equal(found["end"], event))
        for name in query.partition_by:
            column = self.events.table[name]
            chosen = pc.and_(chosen, pc.fill_null(pc.equal(column.take(found["start"]), column[event]), False))
        return found.filter(chosen)

    def _followed(self, query: Afa, first: int, last: int) -> Found:
        """A match with the way that it takes through the automaton: the one that breaks the fewest fences of what is asked."""
        timed = any(arc.since is not None or arc.until is not None for arc in query.arcs)
        rows = self._substream(query, first, last)
        if timed or rows is None:
            return Found(first, last, {})
        payloads = self.events.table.take(pa.array(rows)).to_pylist()
        stream = [Event(int(at), (), int(at), payload) for at, payload in zip(rows, payloads, strict=True)]
        asked = {arc.id: arc for arc in self.events.afa.arcs}

        def breaks(one: Taken) -> int:
            payload = None if one.event is None else one.event.payload
            return 0 if fulfils(query, asked[one.arc.id], payload, one.register) else 1

        taken = computation(query, stream, breaks)
        held: dict[str, list[int]] = {}
        for one in taken:
            if one.event is not None:
                held.setdefault(one.arc.target, []).append(one.event.row)
        return Way(first, last, {state: tuple(own) for state, own in held.items()}, taken)

    def _substream(self, query: Afa, first: int, last: int) -> I64 | None:
        """The events of a partition between two; ``None``: there are too many."""
        part = self.events.table.slice(first, last + 1 - first)
        chosen = np.ones(part.num_rows, np.bool_)
        for name in query.partition_by:
            chosen &= pc.fill_null(pc.equal(part[name], part[name][0]), False).to_numpy()
        return first + np.flatnonzero(chosen) if np.count_nonzero(chosen) <= MOST_FOLLOWED else None


class AfaWitness:
    """Looks at near matches of one automaton."""

    def __init__(self, events: AfaEvents) -> None:
        self.events = events

    def row(self, at: int) -> int:
        """The row of the input at a position of the stream."""
        return self.events.row(at)

    def kind(self, at: int) -> None:
        """Nothing tells it."""

    def read(self, matches: Sequence[Found]) -> None:
        """Nothing: a match has its events."""

    def _value(self, name: str, at: int) -> Any:
        return self.events.table[name][at].as_py()

    def times(self, found: Found) -> tuple[Any, Any]:
        """When a match begins and ends."""
        return self._value(self.events.time, found.start), self._value(self.events.time, found.end)

    def waiting(self, step: Step, earliest: Found | None) -> str:
        """Why no event comes for a step."""
        last = self.events.table.num_rows - 1
        if last < 0:
            return "there are no events"
        behind = "" if earliest is None else f" behind row {self.row(earliest.end)}"
        return f"none comes{behind}; the events end with row {self.row(last)}"

    def says(self, one: Constraint, found: Found) -> Evidence:
        """What of a near match breaks a constraint."""
        match one.kind:
            case Kind.CONDITION:
                return self._fence(one, found)
            case Kind.WINDOW:
                return self._window(one, found)
            case _:
                return self._key(one, found)

    def _window(self, one: Constraint, found: Found) -> Evidence:
        begin, end = self.times(found)
        rows, lasts = (self.row(found.start), self.row(found.end)), end - begin
        timed = isinstance(lasts, dt.timedelta) and isinstance(one.what, dt.timedelta)
        size, most = (lasts.total_seconds(), one.what.total_seconds()) if timed else (lasts, one.what)
        text = f"it lasts {spoken(size) if timed else size} (rows {rows[0]} to {rows[1]}), and must last less than the window"
        near = isinstance(size, int | float) and isinstance(most, int | float)
        return Evidence(text, rows, (("lasts", lasts), ("most", one.what)), relative(size, most) if near else 1.0)

    def _key(self, one: Constraint, found: Found) -> Evidence:
        """The values that differ, each with the first of its rows."""
        seen: dict[str, tuple[int, Any]] = {}
        for at in found.positions or (found.start, found.end):
            value = self._value(one.what, at)
            seen.setdefault(shown(value), (self.row(at), value))
        text = f"{one.what} is {' and '.join(f'{value} in row {row}' for value, (row, _) in seen.items())}"
        rows, values = zip(*seen.values(), strict=True)
        return Evidence(text, rows, tuple((one.what, value) for value in values), float(len(values)))

    def _fence(self, one: Constraint, found: Found) -> Evidence:
        """The events that take an arc against a part of its fence, with what that reads."""
        id, part = one.what
        told, rows, values, excess = [], list[int](), list[tuple[str, Any]](), 0.0
        for taken in found.taken if isinstance(found, Way) else ():
            payload = None if taken.event is None else taken.event.payload
            asked = replace(taken.arc, when=part)
            if taken.arc.id != id or fulfils(self.events.afa, asked, payload, taken.register):
                continue
            known = scope(self.events.afa, payload, taken.register)
            own = {name: known[name] for name in self._read(part) if name in known}
            at = found.end if taken.event is None else taken.event.row
            read = ", ".join(f"{name} is {shown(value)}" for name, value in own.items())
            told.append(f"{read}{' ' * bool(read)}in row {self.row(at)}")
            rows.append(self.row(at))
            values += own.items()
            excess += 1.0 if isinstance(part, UserFunction) else distance(part, own)
        if not told:
            return Evidence("it does not hold")
        more = "" if len(told) <= NAMED else f"; and {len(told) - NAMED:,} more"
        return Evidence("; ".join(told[:NAMED]) + more, tuple(dict.fromkeys(rows)), tuple(values), excess)

    def _read(self, part: Any) -> list[str]:
        if isinstance(part, UserFunction):
            return [*(f"e.{name}" for name in part.uses), *(f"r.{name}" for name in self.events.afa.register)]
        return [*p.attributes(part)]
