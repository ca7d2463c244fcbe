"""Types that a query names and no event has: the commonest reason for a result without rows, and so worth a warning."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import nearest
from stretto.matching.compiled import Query
from stretto.matching.input.files import Source

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
