"""Keys that streams call differently, as columns of their events."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from stretto.column_types import unified, with_fields
from stretto.errors import DataError, hinted
from stretto.events import require
from stretto.query.query import JoinedKey


def with_keys(table: pa.Table, keys: Sequence[JoinedKey], stream: str | None, *, bound: bool = False) -> pa.Table:
    """A table with a column for each key, where the column ``stream`` tells streams apart.

    A key of which columns are not there, or have no common type, is left out: binding says so, and where.

    Raises
    ------
    DataError
        The query is bound, and a column is not there.
    """
    for key in keys:
        found = with_fields(table, (attribute for _, attribute in key.parts))
        for _, attribute in key.parts if bound else ():
            require(found, attribute, "key")
        known = {stream, *(attribute for _, attribute in key.parts)} <= set(found.column_names)
        if key.name in table.column_names or not known:
            continue
        columns = [found.column(attribute) for _, attribute in key.parts]
        kind = unified(column.type for column in columns)
        if kind is not None:
            where = [pc.equal(table.column(stream), name) for name, _ in key.parts]
            chosen = pc.case_when(pc.make_struct(*where), *(column.cast(kind) for column in columns))
            table = table.append_column(key.name, chosen)
    return table


def with_keys_of(table: pa.Table, keys: Sequence[JoinedKey], stream: str) -> pa.Table:
    """The events of one stream with a column for each key.

    Raises
    ------
    DataError
        The stream has no such column.
    """
    for key in keys:
        attribute = dict(key.parts).get(stream)
        if attribute is None or key.name in table.column_names:
            continue
        found = with_fields(table, [attribute])
        if attribute not in found.column_names:
            told = f"the events of stream '{stream}' have no column '{attribute}' (key)"
            raise DataError(hinted(told, attribute, table.column_names, kind="column"))
        table = table.append_column(key.name, found.column(attribute))
    return table
