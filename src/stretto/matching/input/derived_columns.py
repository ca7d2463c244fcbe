"""Columns that are made of those of events: fields inside of structs, and keys that streams, or types, call differently."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from stretto.column_types import as_key, unified, with_fields
from stretto.errors import DataError, hinted
from stretto.events import require
from stretto.query.query import JoinedKey


@dataclass(frozen=True)
class Derived:
    """What columns are made of a table's.

    Parameters
    ----------
    paths
        Attributes, of which those that lead to fields inside of structs are made columns.
    keys
        Keys that streams, or types, call differently.
    told_by
        The column that tells these apart.
    only
        The stream that all events are of, in place of such a column.
    """

    paths: Sequence[str] = ()
    keys: Sequence[JoinedKey] = ()
    told_by: str | None = None
    only: str | None = None

    def of_stream(self, name: str) -> Derived:
        """What is made of the events of one stream."""
        return replace(self, told_by=None, only=name)

    def made_of(self, name: str) -> list[str]:
        """The columns that one is read from."""
        for key in self.keys:
            if key.name == name:
                own = [attribute for named, attribute in key.parts if self.only in (None, named)]
                return [*own, *filter(None, [self.told_by])]
        return [name]

    def among(self, names: Sequence[str]) -> Derived:
        """What of these columns is made."""
        return replace(self, paths=names, keys=[key for key in self.keys if key.name in names])

    def added_to(self, table: pa.Table, *, bound: bool = False) -> pa.Table:
        """The table with these columns.

        A key of which columns are not there, or have no common type, is left out: binding says so, and where.

        Raises
        ------
        DataError
            A column has the name of a key; or all events are of one stream, or the query is ``bound``, and a column is not there.
        """
        table = with_fields(table, self.paths)
        for key in self.keys:
            refuse_name_of(key, table.column_names)
            made = self._column(table, key, bound)
            table = table if made is None else table.append_column(key.name, made)
        return table

    def _column(self, table: pa.Table, key: JoinedKey, bound: bool) -> pa.ChunkedArray | None:
        found = with_fields(table, (attribute for _, attribute in key.parts))
        if self.only is not None:
            return self._of_one_stream(found, key)
        for _, attribute in key.parts if bound else ():
            require(found, attribute, "key")
        if not {self.told_by, *(attribute for _, attribute in key.parts)} <= set(found.column_names):
            return None
        columns = [found.column(attribute) for _, attribute in key.parts]
        kind = unified(column.type for column in columns)
        if kind is None:
            return None
        told = found.column(self.told_by).cast(pa.string())
        where = [pc.equal(told, name) for name, _ in key.parts]
        return pc.case_when(pc.make_struct(*where), *(as_key(column, kind, key.name) for column in columns))

    def _of_one_stream(self, table: pa.Table, key: JoinedKey) -> pa.ChunkedArray | None:
        attribute = dict(key.parts).get(str(self.only))
        if attribute is None or attribute in table.column_names:
            return None if attribute is None else table.column(attribute)
        told = f"the events of stream '{self.only}' have no column '{attribute}' (key)"
        raise DataError(hinted(told, attribute, table.column_names, kind="column"))


def refuse_name_of(key: JoinedKey, names: Collection[str]) -> None:
    """Raise a :class:`DataError` where a column has the name of a key, and could be taken for it."""
    if key.name in names:
        raise DataError(f"a column is called '{key.name}', as the key of the query is: rename it")
