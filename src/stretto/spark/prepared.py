"""A call of :func:`stretto.spark.match` as what runs it finds it, over batches, streams and in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.events import Schema
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query
from stretto.matching.compiled import roles as roles_of
from stretto.matching.input.derived_columns import Derived
from stretto.matching.output.match_table import Layout
from stretto.query.functions import Paths
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.query import Consume
from stretto.query.sase import Selection
from stretto.query.totals import Extent
from stretto.spark.batch.worker import Roles, matcher_of
from stretto.spark.frames import column, key_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Prepared:
    """A call, checked: the events, the query bound to the columns that matter, the result's columns."""

    events: DataFrame
    #: Bound to the columns that the query and its result need.
    query: Query
    #: Those columns, with their Arrow types, in the order of the DataFrame.
    columns: Mapping[str, pa.DataType]
    roles: Roles
    #: The column that orders events of the same time.
    sequence: str | None
    output: str
    valuations: bool
    #: What a task may list.
    budget: int | float | str | None = None
    #: The registered functions that the query calls, by their paths.
    functions: Paths = ()
    #: Whether keys that conditions say tell events apart, too.
    split: bool = True
    #: Whether the end of a batch completes what waits for time to pass.
    completes: bool = True
    #: Whether partial matches that time out have rows.
    timeouts: bool = False

    @property
    def schema(self) -> bytes:
        """The columns as a serialized Arrow schema."""
        found: bytes = pa.schema(list(self.columns.items())).serialize().to_pybytes()
        return found

    @property
    def order(self) -> tuple[str, ...]:
        """The columns that order the stream."""
        time = self.roles[1]
        return (time,) if self.sequence is None or self.sequence == time else (time, self.sequence)

    @property
    def times_out(self) -> bool:
        """Whether the latest time closes windows, of which rows tell."""
        window = self.query.bound.window
        return self.timeouts and window is not None and window.attribute is not None

    @property
    def drops(self) -> bool:
        """Whether something waits for time to pass, and is left out where the events end before."""
        return self.query.waits and not self.completes

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes by which events can be matched apart; none: every event counts, whatever its key."""
        return () if self.is_one_stream or self.query.consume is Consume.ANY else self.partition_by

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The attributes without which an event is in no match."""
        return (self.query.split.partition_by if self.split else self.query.partition_by) * (not self.is_one_stream)

    @property
    def asked_keys(self) -> tuple[str, ...]:
        """Those of PARTITION BY and of equivalence tests, and not of other conditions."""
        return tuple(name for name in self.partition_by if name in self.query.partition_by)

    def key_column(self, name: str) -> Column:
        """One of these attributes, which may be made of others."""
        joined = {key.name: key for key in self._derived.keys}
        if name not in joined:
            return column(name)
        return key_column(joined[name], str(self._derived.told_by), self.columns)

    @property
    def made_keys(self) -> tuple[str, ...]:
        """The attributes that are no columns of the events."""
        return tuple(key.name for key in self._derived.keys if key.name in self.partition_by)

    @property
    def _derived(self) -> Derived:
        """The keys that are made: those that conditions say by types, those of PARTITION BY by streams."""
        implied, joined = self.query.implied, self.query.parsed.joined
        return Derived((), joined, self.roles[2]) if joined else implied

    @property
    def totals(self) -> BoundTotals | None:
        """What is counted and added up over all matches; ``None``: matches are listed."""
        asked = self.query.bound.asked
        return asked if isinstance(asked, BoundTotals) else None

    @property
    def adds_up(self) -> bool:
        """Whether a row of counts and sums is about keys that may go to several tasks."""
        if self.totals is None or self.totals.scope.extent is Extent.EVENT:
            return False
        return not set(self.keys) <= {one.attribute for one in self.totals.scope.groups if one.variable is None}

    @property
    def is_one_stream(self) -> bool:
        """Whether every event of the stream counts, with a key or without: SASE+'s strict contiguity."""
        return self.query.strategy is Selection.STRICT

    @property
    def result(self) -> pa.Schema:
        return self.layout.schema()

    @property
    def layout(self) -> Layout:
        return Layout(self.query.bound, output=self.output, positions=False, timeouts=self.timeouts)

    def widened(self, columns: Mapping[str, pa.DataType]) -> Prepared:
        """The same call with more columns."""
        type, time, stream, time_unit = self.roles
        schema = Schema(columns, **roles_of(type, time, stream, None, time_unit))
        return replace(self, columns=columns, query=self.query.bind(schema))

    def start(self) -> Matcher:
        """What a worker starts."""
        return matcher_of(self.query, self.output, self.valuations, self.budget, timeouts=self.timeouts)

    @property
    def task(self) -> dict[str, Any]:
        """What a worker must know, as plain data."""
        return {
            "text": self.query.text,
            "schema": self.schema,
            "roles": self.roles,
            "output": self.output,
            "valuations": self.valuations,
            "language": self.query.language,
            "budget": self.budget,
            "functions": self.functions,
            "timeouts": self.timeouts,
        }
