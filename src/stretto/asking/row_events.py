"""The rows that a ``MATCH_RECOGNIZE`` clause is asked about: what it finds among them, and what in them breaks a condition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any, cast

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.asking.evidence import NAMED, Evidence, counted, distance, relative, shown
from stretto.asking.trying import FIRST, LARGEST, Abandoned, Found, Trying
from stretto.column_types import with_fields
from stretto.engines.rows.columns import Shifted
from stretto.engines.rows.program import RowProgram
from stretto.matching.sql.row_pattern_table import columns_of, sorted_partitions
from stretto.query.constraints.model import Constraint, Kind, Step
from stretto.query.constraints.row_pattern import as_written, short
from stretto.query.evaluate_rows import unfulfilled
from stretto.query.passes.bind_rows import bind
from stretto.query.row_pattern import Anchor, BoundRows, Navigation, RowQuery, parts_of
from stretto.query.windows import Window
from stretto.times import spoken

#: Rows of matches for which a piece of a partition has room at first.
ROOM = 64

#: A clause with other constraints is given up where so many configurations of one match fail; the clause itself is run to its end.
FEW_FAILED = 1 << 18


@dataclass(frozen=True)
class Rows:
    """The rows that are asked about, partition after partition, each in its order; ``rows`` are their places in the input."""

    bound: BoundRows
    table: pa.Table
    bounds: I64
    rows: I64

    @classmethod
    def of(cls, bound: BoundRows, table: pa.Table, chosen: I64 | None) -> Rows:
        """Rows in any order, of which some are chosen."""
        rows = np.arange(table.num_rows) if chosen is None else chosen
        columns = columns_of(bound)
        known = with_fields(table if chosen is None else table.take(pa.array(chosen)), columns)
        order, bounds = sorted_partitions(bound, known)
        known = known.select(columns)
        if order is not None:
            known, rows = known.take(pa.array(order)), rows[order]
        return cls(bound, known.combine_chunks(), bounds, rows)

    def row(self, at: int) -> int:
        """The row of the input at a place in the order."""
        return int(self.rows[at])

    def partition(self, at: int) -> tuple[int, int]:
        """Where the partition of a row begins and ends."""
        number = int(np.searchsorted(self.bounds, at, "right")) - 1
        return int(self.bounds[number]), int(self.bounds[number + 1])


class RowTrial(Trying):
    """Runs clauses over the same rows."""

    def __init__(self, rows: Rows, event: int | None = None) -> None:
        super().__init__(event)
        self.rows = rows
        self._failing: int | None = (
            None  #: how many configurations of one match may fail; ``None``: as many as anywhere
        )

    def compiled(self, parsed: RowQuery) -> RowProgram:
        """A clause over these rows, whose machine is there.

        Raises
        ------
        QueryError, LimitError
            It is none that runs.
        """
        return RowProgram(bind(parsed, self.rows.bound.schema))

    def having(self, parsed: RowQuery) -> Iterator[RowQuery]:
        """With as few rows as do, and as the clause says it: only a longer repetition may have the event."""
        yield parsed
        written = as_written(parsed, self.rows.bound.parsed)
        if written != parsed:
            yield written

    def _few(self, query: RowProgram, each: int, most: float, event: int | None) -> Iterator[Found]:
        """Matches of a clause, at most so many of each piece of the rows: whole partitions."""
        bounds, began, first, size = self.rows.bounds, process_time(), 0, FIRST
        self._failing = None if most == math.inf else FEW_FAILED
        if event is not None:
            low, high = self.rows.partition(event)
            for found in self._found(query, low, np.array([0, high - low]), high - low):
                if process_time() - began > most:
                    raise Abandoned
                if found.start <= event < found.start + len(found.positions):
                    yield found
                    each -= 1
                    if not each:
                        return
            return
        while first < bounds.size - 1:
            if process_time() - began > most:
                raise Abandoned
            last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + size, "right")) - 1)
            low, high = int(bounds[first]), int(bounds[last])
            if each == 1 and high - low > 2 * FIRST and not _looks_ahead(query.bound.parsed):
                # What lies in the beginning of a partition is a match whatever comes behind.
                yield from self._found(query, low, np.array([0, FIRST]), each)
            yield from self._found(
                query, low, bounds[first : last + 1] - low, max(each, each * (high - low) // LARGEST)
            )
            first, size = last, min(2 * size, LARGEST)

    def _found(self, query: RowProgram, low: int, bounds: I64, most: int) -> Iterator[Found]:
        """The first matches in some rows."""
        automaton, taken = query.automaton, 0
        rows = Shifted(self.rows.table.slice(low, int(bounds[-1])), bounds)
        for found in query.matches(rows, capacity=ROOM, failing=self._failing):
            begin = np.cumsum(found.length) - found.length
            for k in range(found.start.size):
                if taken == most:
                    return
                taken += 1
                start, length = low + int(found.start[k]), int(found.length[k])
                held: dict[str, list[int]] = {}
                for at, position in enumerate(found.path[begin[k] : begin[k] + length].tolist(), start):
                    held.setdefault(automaton.variables[automaton.variable[position]], []).append(at)
                yield Found(start, max(start + length - 1, start), {name: tuple(own) for name, own in held.items()})


def _looks_ahead(query: RowQuery) -> bool:
    """Whether rows behind a match may matter to it."""
    ends = any(isinstance(one, Anchor) and not one.start for one in parts_of(query.pattern))
    return ends or any(isinstance(one, Navigation) and one.shift > 0 for one in query.references.values())


class RowWitness:
    """Looks at near matches of one clause."""

    def __init__(self, parsed: RowQuery, rows: Rows) -> None:
        self.parsed, self.rows = parsed, rows
        self._seen: dict[int, dict[str, Any]] = {}
        self._bound: dict[Constraint, BoundRows] = {}

    def row(self, at: int) -> int:
        """The row of the input at a place in the order."""
        return self.rows.row(at)

    def event(self, at: int) -> dict[str, Any]:
        """The row at a place, read once."""
        if at not in self._seen:
            self._seen |= self._at([at])
        return self._seen[at]

    def kind(self, at: int) -> None:
        """Nothing tells it."""

    def read(self, matches: Sequence[Found]) -> None:
        """Read the rows of some matches at once."""
        more = sorted({at for one in matches for at in one.positions}.difference(self._seen))[:FIRST]
        self._seen |= self._at(more)

    def _at(self, places: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows with their places; a clause may read no column."""
        read = self.rows.table.take(pa.array(places, pa.int64()))
        return zip(places, read.to_pylist() if read.num_columns else [{}] * len(places), strict=True)

    def times(self, found: Found) -> tuple[Any, Any] | None:
        """What the first column of ORDER BY has in the first and the last row."""
        order = self.rows.bound.parsed.order_by
        if not order or not found.positions:
            return None
        return self.event(found.start)[order[0].column], self.event(found.end)[order[0].column]

    def waiting(self, step: Step, earliest: Found | None) -> str:
        """Why no row comes for a step."""
        size = self.rows.table.num_rows
        if not size:
            return "there are no rows"
        longest = int(np.diff(self.rows.bounds).max())
        if not self.parsed.partition_by:
            return f"none comes; there {'is 1 row' if size == 1 else f'are {size:,} rows'}"
        return f"none comes; no partition has more than {longest:,} row{'s' * (longest > 1)}"

    def says(self, one: Constraint, found: Found) -> Evidence:
        """What of a near match breaks a constraint."""
        match one.kind:
            case Kind.CONDITION:
                return self._condition(one, found)
            case Kind.WINDOW:
                return self._window(one, found)
            case Kind.ANCHOR:
                return self._anchor(one, found)
            case _:
                held = sorted({at for name in one.variables for at in found.held.get(name, ())})
                return counted(one, tuple(map(self.row, held)), "row")

    def _condition(self, one: Constraint, found: Found) -> Evidence:
        name = one.variables[0]
        if one not in self._bound:
            self._bound[one] = bind(replace(self.parsed, define={name: one.what}, measures=()), self.rows.bound.schema)
        bound = self._bound[one]
        told, rows, values, excess = [], list[int](), list[tuple[str, Any]](), 0.0
        begin, end = self.rows.partition(found.start)
        word = tuple(
            variable for _, variable in sorted((at, variable) for variable, own in found.held.items() for at in own)
        )
        for at, own in unfulfilled(bound, _Window(self, begin, end), found.start - begin, word, name):
            row = self.row(begin + at)
            named = [(short(bound.parsed.references[key]), cell) for key, cell in own.items()]
            told.append(f"{', '.join(f'{key} is {shown(cell)}' for key, cell in named)} in row {row}")
            rows.append(row)
            values += named
            excess += distance(bound.conditions[name], own)
        if not told:
            return Evidence("it does not hold")
        more = "" if len(told) <= NAMED else f"; and {len(told) - NAMED:,} more"
        return Evidence("; ".join(told[:NAMED]) + more, tuple(rows), tuple(values), excess)

    def _window(self, one: Constraint, found: Found) -> Evidence:
        seconds = cast(Window, one.what).seconds
        times, rows = self.times(found), (self.row(found.start), self.row(found.end))
        if times is None or seconds is None or None in times:
            return Evidence("the time of a row is NULL", rows)
        lasts = (times[1] - times[0]).total_seconds()
        over = lasts - float(seconds)
        far = f"{spoken(over)} too long" if over > 0 else "and must last less than that"
        text = f"it lasts {spoken(lasts)} (rows {rows[0]} to {rows[1]}), {far}"
        return Evidence(text, rows, (("lasts", lasts), ("most", float(seconds))), relative(lasts, float(seconds)))

    def _anchor(self, one: Constraint, found: Found) -> Evidence:
        begin, end = self.rows.partition(found.start)
        if found.start == begin if one.what.start else found.end == end - 1:  # it stands in the middle of the pattern
            where = "before" if one.what.start else "behind"
            rows = (self.row(found.start), self.row(found.end))
            return Evidence(f"rows of the pattern come {where} it", rows, (), float(found.end - found.start))
        if one.what.start:
            return Evidence(
                f"row {self.row(found.start)} is not the first row of its partition, which is row {self.row(begin)}",
                (self.row(found.start),),
                (("before", found.start - begin),),
                float(found.start - begin),
            )
        return Evidence(
            f"row {self.row(found.end)} is not the last row of its partition, which is row {self.row(end - 1)}",
            (self.row(found.end),),
            (("behind", end - 1 - found.end),),
            float(end - 1 - found.end),
        )


class _Window(Sequence[Mapping[str, Any]]):
    """The rows of a partition, which are read when they are asked for."""

    def __init__(self, witness: RowWitness, begin: int, end: int) -> None:
        self._witness, self._begin, self._end = witness, begin, end

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, at: Any) -> Any:
        return self._witness.event(self._begin + at)
