"""Why a query can have no match in some events, as far as single events and columns tell: warnings where a result has no rows.

It reads the columns that the query asks about, piece by piece, until for everything that is asked an event has been found: whole
columns only where something is in the way. :func:`stretto.why_not` tells of the rest, by running queries.

Why an automaton can have no output over some events: arcs on the way to it whose fences no event fulfils.

Types that a query names and no event has: the commonest reason for a result without rows, and so worth a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.columns.measured import values_of
from stretto.errors import QueryError, StrettoWarning, nearest, warn
from stretto.matching.compiled import Query
from stretto.matching.empty_result.unsatisfied import Looked, at, counted, of_types, pieces, read, smallest, those
from stretto.matching.input.files import Source
from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, reached
from stretto.query.passes.bind import AnyBound, in_words, measure
from stretto.query.plan import Conjunct, Requirement
from stretto.query.typing import typed


def unmet_arcs(afa: Afa, events: pa.Table | Source) -> list[str]:
    """Which fences no event fulfils, in words; nothing where a way around those arcs leads to a final state.

    Only what a fence asks of the event alone is looked at: no function of the user, nothing of the register.
    """
    kinds = {own.name: own.type for own in events.schema}
    looked = {arc.id: found for arc in afa.arcs if (found := _looked(arc, kinds)) is not None}
    if not looked:
        return []
    columns = sorted({name for one in looked.values() for name in one.columns})
    read(list(looked.values()), pieces(events, columns))
    unmet = [name for name, one in looked.items() if not one.met and one.events]

    def dry(without: Collection[str]) -> bool:
        return not reached(replace(afa, arcs=tuple(arc for arc in afa.arcs if arc.id not in without))) & {*afa.finals}

    return [said for name in smallest(unmet, dry) for said in looked[name].says()]


def _looked(arc: Arc, kinds: dict[str, pa.DataType]) -> Looked | None:
    if not isinstance(arc.when, p.Predicate):
        return None
    asked = []
    for part in p.conjuncts(arc.when):
        names = {name: name.removeprefix("e.") for name in p.attributes(part) if name.startswith("e.")}
        if not names or len(names) < len(p.attributes(part)) or p.calls(part):
            continue
        try:
            condition = typed(p.renamed(part, names), kinds)
        except QueryError:  # a column of another type, which the automaton converts
            continue
        asked.append(Conjunct(f"{part} of the arc {arc.id} ({arc.source} -> {arc.target})", condition))
    return Looked(tuple(asked)) if asked else None


#: How a message about types begins.
ABSENT = "no event has the type "

#: Types that a message lists at most.
LISTED = 8

#: Events of a table in which all types are looked for first.
FIRST = 1 << 16


def absent_types(query: Query, events: pa.Table | Source) -> str | None:
    """Which of the types that a bound query names no event of a table or of files has, in words; ``None``: all of them occur.

    Reads the column of types until all have occurred.
    """
    schema = query.bound.schema
    column = schema.type or schema.stream
    name = column or next(iter(schema.attributes), None)
    if name is None:
        return None
    pieces = events.read([name]) if isinstance(events, Source) else [events.slice(0, FIRST), events.slice(FIRST)]
    named = query.parsed.wanted
    rows = 0
    found: dict[str | None, None] = {}
    for piece in pieces:
        if not isinstance(piece, int):
            rows += piece.num_rows
            found |= distinct(piece.column(name)) if column is not None else {query.streams[0]: None}
            if found.keys() >= set(named):
                return None
    if not rows:
        return None
    occur = [text for text in found if text is not None]
    absent = [name for name in named if name not in occur]
    told = " or ".join(with_nearest(name, occur) for name in absent[:LISTED]) + (
        " or …" if len(absent) > LISTED else ""
    )
    known = ", ".join(map(repr, occur[:LISTED])) + (", …" if len(occur) > LISTED else "")
    why = f"'{column}' has {known or 'NULL only'}"
    if schema.type is None:
        why = f"with type=None it is the name of the event's stream ({known}); type='…' names the column that holds it"
    return f"{ABSENT}{told}, which the query names: {why}"


def distinct(column: pa.ChunkedArray | pa.Array, most: int | None = None) -> dict[str | None, None]:
    """The different texts of a column, in the order in which they first occur; ``most``: so many at the most."""
    found = pc.unique(column).slice(0, most)
    plain = found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found
    return dict.fromkeys(plain.to_pylist())


def with_nearest(name: str, known: list[str]) -> str:
    """A name in quotes, and the one of those known that is most like it."""
    best = nearest(name, known)
    return f"'{name}'" + (f" (did you mean '{best}'?)" if best is not None else "")


Piece = TypeVar("Piece")

#: Findings that are told at most, and things asked of single events that are looked at.
TOLD, MOST_SINGLES = 8, 256

#: Events beyond which nobody looks how far apart they are.
MOST_APART = 1 << 20


def warn_of(found: Iterable[str]) -> None:
    """Warn of what keeps a result empty; to be called for one without rows only."""
    for one in found:
        warn(one if one.startswith(ABSENT) else f"no match: {one}", StrettoWarning)


def with_warnings(pieces: Iterator[Piece], findings: Callable[[], Iterable[str]]) -> Iterator[Piece]:
    """The pieces of a result; behind them, where they have no rows, warnings of what was found to keep these away."""
    empty = True
    for piece in pieces:
        empty = empty and isinstance(piece, pa.Table) and not piece.num_rows
        yield piece
    if empty:
        warn_of(findings())


def findings(query: Query, events: pa.Table | Source) -> list[str]:
    """What keeps a bound query from a match in events, in words: types, conditions and keys that no event has, and short windows."""
    absent = absent_types(query, events)
    found = [] if absent is None else [absent]
    names = list(events.schema.names)
    looked = looked_of(query)
    known = [one for one in looked if one.columns <= set(names)]
    columns = sorted({name for one in known for name in one.columns})
    if known and columns:
        read(known, pieces(events, columns))
    found += dict.fromkeys(said for one in known for said in one.says())
    found += without_keys(known)
    apart = too_far_apart(query, events)
    found += [] if apart is None else [apart]
    return found[:TOLD]


def says(looked: Sequence[Looked], types: Iterable[str | None]) -> list[str]:
    """What was found of nothing that was looked at: types, of which these occur, conditions and keys."""
    known = [one for one in types if one is not None]
    absent = [one.types for one in looked if not one.events and one.types]
    told = [f"{ABSENT}{' or '.join(with_nearest(name, known) for name in names)}" for names in absent]
    return [*dict.fromkeys([*told, *(said for one in looked for said in one.says())]), *without_keys(looked)]


def looked_of(query: Query) -> list[Looked]:
    """What every match of a bound query has an event of, to be looked for."""
    bound = query.bound
    return [
        Looked(one.asked, one.keys, _choice(one, bound), one.types, source=query.text)
        for one in bound.plan.requirements[:MOST_SINGLES]
    ]


def without_keys(looked: Sequence[Looked]) -> Iterator[str]:
    """Which keys no event of some types has."""
    lacking = [(key.text, at(one.source, key.span), one) for one in looked for key in one.without]
    for name, place in dict.fromkeys(key[:2] for key in lacking):
        own = {one.types: one.events for *key, one in lacking if key == [name, place]}
        types = tuple(dict.fromkeys(name for types in own for name in types))
        whose = f"of {counted(sum(own.values()))}{of_types(types)} none"
        yield f"{whose} has the key '{name}'{place}: it is NULL, and events without a key are in no match"


def _choice(single: Requirement, bound: AnyBound) -> p.Predicate:
    """Which events are of its types and streams."""
    schema, parts = bound.schema, list[p.Predicate]()
    streams = [single.stream] if single.stream is not None else [] if bound.parsed.any_stream else bound.parsed.streams
    for column, wanted in ((schema.type or schema.stream, single.types), (schema.stream, streams)):
        if column is not None and wanted and pa.types.is_null(schema.attributes[column]):
            parts.append(p.Or(()))  # none has one
        elif column is not None and wanted:
            values = tuple(map(p.Constant, wanted))
            parts.append(typed(p.In(p.Attribute(column), values), schema.attributes))
    if schema.type is None and schema.stream is None and single.types and not bound.parsed.any_stream:
        parts += [] if set(single.types) & set(bound.parsed.streams) else [p.Or(())]
    return p.And(tuple(parts))


# ---- Windows and keys


def too_far_apart(query: Query, events: pa.Table | Source) -> str | None:
    """Whether as many events as a match needs are never so near as the window asks, or never of one key."""
    bound = query.bound
    window, least = bound.window, bound.plan.least
    keys = [name for name in bound.partition_by if name in bound.schema.attributes]
    asked = ""
    if window is not None:
        written = bound.parsed.window
        place = "" if written is None else at(query.text, written.span)
        asked = f"{bound.parsed.within} {written}{place}"
    if window is not None and window.attribute is None and least - 1 > window.size:
        return f"a match has at least {least:,} events, and {asked} holds {counted(int(window.size) + 1)}"
    clock = None if window is None else window.attribute
    if clock is not None:
        how = measure(bound.schema.attributes[clock])
        clock = None if how is None or how.scale else clock
    if least < 2 or (clock is None and not keys):
        return None
    of_type = _of_types(query)
    apart = _Apart(clock, keys, least)
    columns = sorted({*apart.columns, *p.attributes(of_type)})
    if not set(columns) <= set(events.schema.names):
        return None
    most = math.inf if window is None or clock is None else window.size
    for piece in pieces(events, columns):
        distance = apart.read(those(of_type, piece))
        if apart.rows > MOST_APART or (distance is not None and distance <= most):
            return None
    distance = apart.least()
    if apart.rows < least or (distance is not None and distance <= most):
        return None
    of = " of the types that the query names" if p.attributes(of_type) else ""
    every, same = counted(apart.rows), f"the same {' and '.join(map(repr, keys))}"
    if distance is None:
        return f"of {every}{of} no {least:,} have {same}, as the query asks" if keys else None
    assert clock is not None
    words = in_words(distance, clock, bound.schema)
    return f"of {every}{of} no {least:,}{f' with {same}' * bool(keys)} are as near as {asked} asks: they last {words} at least"


def _of_types(query: Query) -> p.Predicate:
    """Which events have a type that the query names."""
    schema, wanted = query.bound.schema, query.parsed.wanted
    name = schema.type or schema.stream
    if (
        name is None
        or not wanted
        or pa.types.is_null(schema.attributes[name])
        or any(not one.types for one in query.bound.plan.requirements)
    ):
        return p.And(())
    return typed(p.In(p.Attribute(str(name)), tuple(map(p.Constant, wanted))), schema.attributes)


class _Apart:
    """How far apart so many events in a row of one key are."""

    def __init__(self, clock: str | None, keys: Sequence[str], events: int) -> None:
        self.clock, self.keys, self.events = clock, keys, events
        self.columns = dict.fromkeys([*([] if clock is None else [clock]), *keys])
        self.rows = 0
        self._held: list[pa.Table] = []

    def read(self, piece: pa.Table) -> int | float | None:
        """The least that events of this piece are apart; ``None``: there are not so many of a key."""
        piece = piece.select([*self.columns]).drop_null()
        self.rows += piece.num_rows
        self._held.append(piece)
        return self._of(piece)

    def least(self) -> int | float | None:
        """The least that events of all pieces are apart."""
        return self._of(pa.concat_tables(self._held)) if self._held else None

    def _of(self, table: pa.Table) -> int | float | None:
        if table.num_rows < self.events:
            return None
        clock = (
            np.zeros(table.num_rows, np.int64)
            if self.clock is None
            else values_of(table.column(self.clock), self.clock, 0)
        )
        group = np.zeros(table.num_rows, np.int64)
        for name in self.keys:
            own = table.column(name)
            plain = own.cast(own.type.value_type) if pa.types.is_dictionary(own.type) else own
            codes = plain.combine_chunks().dictionary_encode().indices
            # Dense again after each key, so that products stay within 64 bits.
            both = group * (int(pc.max(codes).as_py()) + 1) + codes.to_numpy(zero_copy_only=False).astype(np.int64)
            group = np.unique(both, return_inverse=True)[1]
        order = np.lexsort((clock, group))
        times: Any = clock[order]
        group = group[order]
        ahead = self.events - 1
        same = group[ahead:] == group[:-ahead]
        apart = (times[ahead:] - times[:-ahead])[same]
        if not apart.size:
            return None
        found: int | float = apart.min().item()
        return found
