"""What a bucket runs: one query, a clause of SQL, many patterns that change, or what revises its answers.

Each makes its matcher, and says what a state belongs to.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from stretto.frame import arrow_table
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query
from stretto.matching.executors.row_pattern import RowPatternExecutor
from stretto.matching.output.match_table import Layout
from stretto.matching.output.memory_budget import meter_of_task
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.matching.pattern_set.with_metadata import EVERY, UNTIL, AnnotatedPatternSet
from stretto.query.functions import Paths
from stretto.spark.batch.worker import Roles, bound_query, matcher_of
from stretto.spark.revised import Plain, Revised
from stretto.spark.streaming.state import line_of


class Run(Protocol):
    """One query, one clause, or many patterns."""

    @property
    def text(self) -> str:
        """What runs, for people."""

    @property
    def identity(self) -> dict[str, Any]:
        """What a state depends on, beside the columns."""

    @property
    def attributes(self) -> Mapping[str, pa.DataType]:
        """The columns of events."""

    @property
    def reached(self) -> str | None:
        """The column of results that is NULL in matches, and not in rows of what timed out; ``None``: all are matches."""

    def start(self) -> Matcher | PatternSet | AnnotatedPatternSet | RowPatternExecutor:
        """A matcher at the beginning of the stream."""


@dataclass(frozen=True)
class OneQuery:
    """A bound query."""

    query: Query
    output: str = "events"
    valuations: bool = False
    budget: int | float | str | None = None
    functions: Paths = ()
    timeouts: bool = False

    @property
    def text(self) -> str:
        return self.query.text

    @property
    def identity(self) -> dict[str, Any]:
        own = {"language": self.query.language, "output": self.output, "valuations": self.valuations}
        own |= {"timeouts": True} if self.timeouts else {}
        return own | ({"functions": [list(one) for one in self.functions]} if self.functions else {})

    @property
    def attributes(self) -> Mapping[str, pa.DataType]:
        return self.query.bound.schema.attributes

    @cached_property
    def reached(self) -> str | None:
        return Layout(self.query.bound, output=self.output, timeouts=True).timeout_names[0] if self.timeouts else None

    def start(self) -> Matcher:
        return matcher_of(self.query, self.output, self.valuations, self.budget, timeouts=self.timeouts)


@dataclass(frozen=True)
class ManyPatterns(Plain):
    """Patterns that hold from the start of the stream or from a time, and that a stream of changes may change.

    Parameters
    ----------
    schema
        The events' columns, as a serialized Arrow schema.
    roles
        The columns for type, time and stream, and the unit of time.
    changes
        The patterns that are known when the query starts: a table ``id``, ``query``, ``since``, ``language`` as Arrow bytes, with the
        columns of notes (:class:`stretto.matching.pattern_set.with_metadata.AnnotatedPatternSet`).
    shown
        The columns of changes that matches show.
    on_limit, totals, measures
        As in :class:`stretto.PatternSet`.
    counts
        Whether results tell how many matches are not decided where the events end.
    """

    schema: bytes
    roles: Roles
    output: str
    valuations: bool
    by: tuple[str, ...]
    language: str | None
    changes: bytes
    budget: int | float | str | None = None
    shown: tuple[str, ...] = ()
    on_limit: str = "error"
    totals: bool | str = False
    measures: bool = False
    counts: bool = False

    @property
    def text(self) -> str:
        return "\n".join(line_of(*row) for row in self.rows)

    @property
    def rows(self) -> list[list[Any]]:
        """For each pattern its id, its text, its language, since when it holds, and what else is known of it."""
        known = arrow_table(self.changes).to_pylist()
        return [
            [
                row.pop("id"),
                row.pop("query"),
                row.pop("language", None) or self.language,
                _said(row.pop("since")),
                *map(_said, row.values()),
            ]
            for row in known
        ]

    @property
    def identity(self) -> dict[str, Any]:
        own = {
            "language": self.language,
            "output": self.output,
            "valuations": self.valuations,
            "by": list(self.by),
            "patterns": hashlib.sha256(self.changes).hexdigest(),
        }
        own |= {"shown": list(self.shown)} if self.shown else {}
        own |= {"totals": True} if self.totals else {}
        own |= {"measures": True} if self.measures else {}
        # Who is switched off is part of the state, and the budget says who.
        return own | ({"on_limit": "disable", "budget": str(self.budget)} if self.on_limit == "disable" else {})

    @property
    def noted(self) -> bool:
        """Whether there is more to know of patterns than their queries."""
        known = arrow_table(self.changes).column_names
        return bool(self.shown) or EVERY in known or UNTIL in known or self.on_limit == "disable" or self.counts

    def start(self) -> PatternSet | AnnotatedPatternSet:
        type, time, stream, time_unit = self.roles
        patterns = PatternSet(
            self.attributes,
            type=type,
            time=time,
            stream=stream,
            time_unit=time_unit,
            output=self.output,
            valuations=self.valuations,
            totals=self.totals,
            measures=self.measures,
            by=self.by,
            language=self.language,
            budget=meter_of_task(self.budget),
            on_limit=self.on_limit,
            warn_after=None,
        )
        started: PatternSet | AnnotatedPatternSet = patterns
        if self.noted:
            disables = self.on_limit == "disable"
            started = AnnotatedPatternSet(
                patterns, self.shown, valuations=self.valuations, disables=disables, counts=self.counts
            )
        started.change(arrow_table(self.changes))
        return started


@dataclass(frozen=True)
class OneClause:
    """A clause of MATCH_RECOGNIZE, bound to a serialized schema."""

    clause: str
    schema: bytes
    budget: float | None = None
    reached: str | None = None

    @property
    def text(self) -> str:
        return self.clause

    @property
    def identity(self) -> dict[str, Any]:
        return {"language": "match_recognize"}

    @property
    def attributes(self) -> Mapping[str, pa.DataType]:
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        return dict(zip(schema.names, schema.types, strict=True))

    def start(self) -> RowPatternExecutor:
        return RowPatternExecutor(self.clause, self.attributes, sorts=True, budget=math.inf)


def _said(value: Any) -> str | None:
    """A value as the header of a state has it."""
    return None if value is None else str(value)


def rehearse(run: Run) -> None:
    """Start what a run starts, and of patterns each by itself: what they need is then known before the first event."""
    started = run.start()
    if isinstance(started, PatternSet | AnnotatedPatternSet):
        for machine in started.machines:
            machine.start()


def run_of(task: dict[str, Any]) -> Run:
    """What a task runs, from plain data."""
    if "ahead" in task:
        return Revised(**task)
    if "clause" in task:
        return OneClause(**task)
    if "changes" in task:
        return ManyPatterns(**task)
    query = bound_query(task["text"], task["schema"], task["roles"], task["language"], task.get("functions", ()))
    functions, timeouts = task.get("functions", ()), task.get("timeouts", False)
    return OneQuery(query, task["output"], task["valuations"], task["budget"], functions, timeouts)
