"""The events that are asked about, and what queries find among them: the first matches, within a bound.

The queries whose matches are those of a query that have a given event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, Run
from stretto.engines.limits import TooMany
from stretto.engines.match_ops.timeouts import TimeoutProgram
from stretto.errors import LimitError
from stretto.events import Schema
from stretto.matching.compiled import Query, bound_apart
from stretto.matching.input.ordered_input import ordered
from stretto.query import algebra as a
from stretto.query import predicate as p
from stretto.query.constraints.model import AnyParsed
from stretto.query.query import Consume, ParsedQuery
from stretto.query.sase import Component, Element, Index, Referred, SaseQuery, Selection, may_lack


def having(parsed: AnyParsed, numbers: str, at: int) -> Iterator[AnyParsed]:
    """Queries that have all matches of a query with the event at a position; some may have others, too.

    Where a variable holds one event, and may hold any, the condition ``numbers = at`` says that it is this one: such a query has few
    partial matches. What a repetition holds, or a strategy chooses, is looked for among all matches.

    Parameters
    ----------
    parsed
        A query without what chooses among matches.
    numbers
        The column with the position of each event.
    at
        The position of the event.
    """
    own = _HAVING.get(type(parsed))
    return iter([parsed]) if own is None else own(parsed, numbers, at)


def _of_ceql(parsed: ParsedQuery, numbers: str, at: int) -> Iterator[ParsedQuery]:
    is_it = p.Comparison("=", p.Attribute(numbers), p.Constant(at))
    count, repeated, absent = 0, set[int](), set[int]()

    def visit(node: a.Pattern) -> a.Pattern:
        """Number the leaves; the last ones are those of the node."""
        nonlocal count
        count += isinstance(node, a.Atom)
        if isinstance(node, a.Not | a.Plus | a.Repeat):
            inside = sum(isinstance(one, a.Atom) for one in a.walk(node.body))
            (absent if isinstance(node, a.Not) else repeated).update(range(count - inside, count))
        return node

    a.fold(parsed.pattern, visit, rebuild=False)
    if any(isinstance(node, a.Or) for node in a.walk(parsed.pattern)):
        parsed = replace(parsed, limit=None)  # a match that takes another alternative may not hold it
    for number in range(count):
        if number not in absent | repeated:
            yield replace(parsed, pattern=_with(parsed.pattern, number, is_it))
    if repeated - absent:
        yield replace(parsed, limit=None)


def _with(pattern: a.Pattern, number: int, is_it: p.Predicate) -> a.Pattern:
    """A formula with a condition on the leaf of a number."""
    count = -1

    def visit(node: a.Pattern) -> a.Pattern:
        nonlocal count
        if not isinstance(node, a.Atom):
            return node
        count += 1
        return a.Filter(node, next(iter(a.variables(node))), is_it) if count == number else node

    return a.fold(pattern, visit)


def _of_sase(parsed: SaseQuery, numbers: str, at: int) -> Iterator[SaseQuery]:
    modes = (parsed.selection, *parsed.steps.values(), *parsed.loops.values())
    rest = any(mode is not Selection.ANY for mode in modes)
    for part in () if rest else parsed.parts:
        if isinstance(part, Component) and part.negated:
            continue
        if not isinstance(part, Component) or part.kleene or may_lack(part):
            rest = True
        else:
            element = Element(part.variable, Index.ONLY, numbers)
            name = str(element)
            is_it = p.Comparison("=", Referred(name, reference=element), p.Constant(at))
            condition = p.joined((*p.conjuncts(parsed.condition), is_it))
            yield replace(parsed, condition=condition, references={**parsed.references, name: element})
    if rest:
        yield replace(parsed, limit=None)


_HAVING: Mapping[type, Callable[[Any, str, int], Iterator[AnyParsed]]] = {ParsedQuery: _of_ceql, SaseQuery: _of_sase}


#: Bytes that partial matches of a relaxed query may take, and seconds of the processor, or so many times what the first query took;
#: one that would take more is not tried to its end.
MOST_BYTES, SECONDS, TIMES = 1 << 28, 0.5, 3

#: So many times what the first query took, or ``SECONDS``, all queries may take together; each of those behind may take ``QUICK``
#: seconds, or as long as the first one.
TOGETHER, QUICK = 6, 0.05

#: So many times what the first query took, or so many seconds of the processor, all queries may take together at most: behind that no
#: query without a constraint is looked at.
WHOLE, WHOLE_SECONDS = 10, 10.0

#: Seconds of the processor in which matches of a query are searched for one that has a given event.
LONGEST = 5.0

#: Rows of the first piece, of the largest one, and the bytes from which on pieces stay small.
FIRST, LARGEST, HEAVY = 1 << 10, 1 << 18, 1 << 25


@dataclass(frozen=True)
class Events:
    """Events in the order of the stream; ``rows`` are their rows in the input as it was given (``None``: the same)."""

    table: pa.Table
    schema: Schema
    rows: I64 | None

    @classmethod
    def of(cls, table: pa.Table, schema: Schema, sequence: str | None, rows: I64 | None) -> Events:
        """Events in any order."""
        sorted_, order = ordered(table, schema.time, sequence)
        if order is not None:
            rows = order if rows is None else rows[order]
        kind = schema.type
        if kind is not None and not pa.types.is_dictionary(
            sorted_.schema.field(kind).type
        ):  # read once, not by every query
            column = sorted_.column(kind).combine_chunks().dictionary_encode()
            sorted_ = sorted_.set_column(sorted_.column_names.index(kind), kind, column)
            schema = replace(schema, attributes={**schema.attributes, kind: column.type})
        return cls(sorted_.combine_chunks(), schema, rows)

    def row(self, at: int) -> int:
        """The row of the input at a position of the stream."""
        return at if self.rows is None else int(self.rows[at])

    def numbered(self) -> tuple[Events, str]:
        """The same with one column more, which has the position of each event, and its name."""
        name = "#"
        while name in self.table.column_names:
            name += "#"
        table = self.table.append_column(name, pa.array(range(self.table.num_rows), pa.int64()))
        schema = replace(self.schema, attributes={**self.schema.attributes, name: pa.int64()})
        return Events(table, schema, self.rows), name

    def event(self, at: int) -> dict[str, Any]:
        """The event at a position of the stream."""
        found: dict[str, Any] = self.table.slice(at, 1).to_pylist()[0]
        return found

    @cached_property
    def kinds(self) -> pa.ChunkedArray | None:
        """The types of events; ``None``: nothing tells them."""
        name = self.schema.type or self.schema.stream
        return None if name is None else self.table.column(name)


@dataclass(frozen=True)
class Found:
    """A match: where it begins and ends, and the positions in the stream that each variable holds."""

    start: int
    end: int
    held: Mapping[str, tuple[int, ...]] = field(hash=False)

    @property
    def positions(self) -> tuple[int, ...]:
        """All its positions, ascending."""
        return tuple(sorted({at for own in self.held.values() for at in own}))


class Abandoned(Exception):
    """A query has too many partial matches to be tried to its end."""


#: What a query raises that is not tried to its end.
TOO_MUCH = (LimitError, TooMany, IntegerOverflow, Abandoned)


@dataclass(frozen=True)
class Number:
    """How many there are; where it is not ``exact``, at least so many."""

    value: int
    exact: bool = True


class Trying:
    """Runs queries over the same events, each for a bounded time."""

    def __init__(self, event: int | None = None) -> None:
        self.event = event  #: the position of the event that matches must have; ``None``: they need none
        self.abandoned = 0  #: how often a query had too many partial matches to be tried to its end
        self.left_out = (
            0  #: how many queries without a constraint were not looked at, as those before had taken too long
        )
        self._first: float | None = None  #: seconds that the first query took; ``None``: none has been run
        self._spent = 0.0  #: seconds that all took

    def compiled(self, parsed: Any) -> Any:
        """A query over these events, whose machine is there.

        Raises
        ------
        QueryError, OptionError, LimitError
            It is none that runs.
        """
        raise NotImplementedError

    def having(self, parsed: Any) -> Iterator[Any]:
        """Queries that have all matches of a query with the event, and perhaps others."""
        yield parsed

    def _few(self, query: Any, each: int, most: float, event: int | None) -> Iterator[Found]:
        """Matches of a query, at most so many of each piece of the events; it is given up when it takes more than so many seconds.

        ``event``: only those that have the event at this position.
        """
        raise NotImplementedError

    def some(
        self, query: Any, each: int, *, quick: bool = False, event: int | None = None, relaxed: bool = True
    ) -> Iterator[Found]:
        """Matches of a query in the order in which they come, at most so many of each piece of the events.

        ``quick``: it is given up earlier. ``event``: only those that have the event at this position. ``relaxed``: it is without a
        constraint, so that the answer may do without it.
        """
        if relaxed and self._left <= 0:
            self.abandoned += 1
            self.left_out += 1
            return
        began = process_time()
        most = self._seconds(quick=quick)
        try:
            yield from self._few(query, each, most if event is None else min(most, LONGEST), event)
        except TOO_MUCH:
            self.abandoned += 1
        finally:
            self._note(began)

    @property
    def _left(self) -> float:
        """Seconds that are left for all queries."""
        return math.inf if self._first is None else max(WHOLE_SECONDS, WHOLE * self._first) - self._spent

    def _seconds(self, *, quick: bool) -> float:
        """Seconds that a query may take."""
        if self._first is None:
            return math.inf
        least = max(QUICK, self._first)
        if not quick:
            left = max(SECONDS, TOGETHER * self._first) - self._spent
            least = max(least, min(left, max(SECONDS, TIMES * self._first)))
        return min(least, max(QUICK, self._left))

    def _note(self, began: float) -> None:
        """Note how long a query took."""
        took = process_time() - began
        if self._first is None:
            self._first = took
        self._spent += took


class Trial(Trying):
    """Runs queries of events over the same ones."""

    def __init__(self, events: Events, event: int | None = None) -> None:
        super().__init__(event)
        self.events, self._numbers = events, ""
        if event is not None:
            self.events, self._numbers = events.numbered()

    def having(self, parsed: Any) -> Iterator[Any]:
        return having(parsed, self._numbers, self.event or 0)

    def compiled(self, parsed: Any) -> Query:
        """A query over these events, whose machine is there.

        Raises
        ------
        QueryError, OptionError, LimitError
            It is none that runs.
        """
        query = bound_apart(parsed, self.events.schema)
        query.program(split=True)
        return query

    def _few(self, query: Query, each: int, most: float, event: int | None) -> Iterator[Found]:
        """Matches of a query in the order in which they come, at most so many of each piece of the stream."""
        marks, began = query.program(split=True).marks, process_time()
        for piece in self._pieces(query, most, silent=event):
            taken = 0
            for found in piece:
                if taken < each:
                    for one in _read(found, marks, each - taken, event):
                        taken += 1
                        yield one
                if event is not None and process_time() - began > most:
                    raise Abandoned

    def completing(self, query: Query) -> Number:
        """How many events complete a match of a query."""
        seen, exact, began = np.zeros(self.events.table.num_rows, np.bool_), True, process_time()
        try:
            most = math.inf if self._first is None else min(max(SECONDS, TIMES * self._first), self._left)
            if most <= 0:
                raise Abandoned
            for piece in self._pieces(query, most):
                for found in piece:
                    seen[found.end] = True
        except TOO_MUCH:
            exact = False
        self._note(began)
        return Number(int(np.count_nonzero(seen)), exact)

    def _pieces(self, query: Query, most: float, silent: int | None = None) -> Iterator[Iterator[Matches]]:
        """The matches of a query, piece by piece of the stream; each is read before the next is asked for.

        It is given up when it takes more than so many seconds. Of the first ``silent`` events, only those that begin matches matter.
        """
        quiet = 0 if silent is None or _remembers(query.parsed) else silent
        program = query.program(split=True)
        assert not isinstance(program, TimeoutProgram)
        run: Run = program.start(labels=True, budget=Budget(f"{MOST_BYTES} B"))
        table = query.implied.added_to(self.events.table).select(list(program.columns))
        begin, size, began = 0, FIRST, process_time()
        while begin < table.num_rows:
            # Without columns a slice would be as long as it is asked for.
            length = min(size, (quiet if begin < quiet else table.num_rows) - begin)
            part, unheard = table.slice(begin, length), begin < quiet
            yield (found for batch in part.to_batches() for found in run.advance(batch, silent=unheard))
            begin += length
            if begin >= table.num_rows:
                break  # all was read: what is left is what the end completes
            held, took = run.nbytes, process_time() - began
            if held > MOST_BYTES or took > most:
                raise Abandoned
            if held >= HEAVY:
                size = FIRST
            elif 4 * took < most:  # else the next piece would take too long if it cost more than those before
                size = min(2 * size, LARGEST)
        for found in run.finish():
            yield iter((found,))


def _remembers(parsed: Any) -> bool:
    """Whether which matches are given depends on those before."""
    consumes = parsed.consume is not Consume.NONE
    return consumes or parsed.non_overlap or parsed.keep is not None


def _read(found: Matches, marks: Any, most: int, event: int | None) -> Iterator[Found]:
    """The first few of some raw matches, or of those that have an event."""
    chosen = np.arange(found.start.size)
    if event is not None:
        there = np.searchsorted(found.offset, np.flatnonzero(found.position == event), side="right") - 1
        chosen = np.unique(there)
    for k in chosen[:most].tolist():
        part = slice(int(found.offset[k]), int(found.offset[k + 1]))
        held: dict[str, list[int]] = {}
        for at, mark in zip(found.position[part].tolist(), found.mark[part].tolist(), strict=True):
            for name in marks[mark]:
                held.setdefault(name, []).append(at)
        yield Found(int(found.start[k]), int(found.end[k]), {name: tuple(own) for name, own in held.items()})
