"""A query that answers ahead of what is certain, which runs as an automaton: it is lowered when its events' types are known."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from stretto.errors import OptionError
from stretto.events import BEFORE, Schema, conform
from stretto.matching.compiled import Query, layout_of
from stretto.matching.executors.base import AS_USUAL, Reading
from stretto.matching.output.changelog import MatchLayout
from stretto.matching.output.match_table import Layout
from stretto.query.afa import Afa
from stretto.query.typing import kind_of


class Lowering:
    """A query that is to run as an automaton."""

    def __init__(self, query: Query, schema: Any = None, reading: Reading = AS_USUAL) -> None:
        Layout.check(reading.output)
        if reading.output == "summary":
            raise OptionError("output='summary' counts the matches of an event, which late events change: list them")
        self.query, self.reading = query, reading
        self._inferred = schema is None and query.schema is None
        self.given: Schema | None = query.schema
        if schema is not None:
            self.given = reading.schema(schema)

    def lowered(self, schema: Schema) -> tuple[Afa, MatchLayout, str]:
        """The automaton, the layout of its matches, and the column that orders the stream."""
        self.query = self.query.bind(schema)
        bound = self.query.bound
        read = list(bound.tested)
        if self.reading.sign is not None and self.reading.sequence is None:
            # A retraction names the event by all that it says.
            read = [name for name, kind in bound.schema.attributes.items() if kind_of(kind) != "other"]
        afa, marks = self.query.automaton(tuple(read))
        assert bound.time is not None
        return afa, MatchLayout(layout_of(self.query, **self.reading.shown), marks), bound.time

    def schema_of(self, table: pa.Table) -> Schema:
        """Make the schema of what a first batch has."""
        return self.reading.schema(self._events(table).schema)

    def kept(self, table: pa.Table, layout: MatchLayout) -> pa.Table:
        """The events of a batch with all that matches read and show."""
        bound = self.query.bound
        told = BEFORE if self._inferred else ()
        names = (*bound.tested, *layout.layout.columns)
        return conform(self._events(table), names, bound.schema.attributes, *told)

    def _events(self, table: pa.Table) -> pa.Table:
        """The columns that are attributes of events."""
        sign = self.reading.sign
        return table.drop_columns([sign]) if sign in table.column_names else table

    def identity(self, layout: MatchLayout) -> dict[str, Any]:
        """What a state depends on, beside the automaton."""
        kinds = self.query.bound.schema.attributes
        columns = {name: str(kinds[name]) for name in layout.layout.columns}
        return {"query": self.query.text, "shown": self.reading.shown, "columns": columns}
