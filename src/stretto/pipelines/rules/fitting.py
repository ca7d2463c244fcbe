"""Whether a rule can run, before its events are known: it is bound alone, as the set of all rules would bind it.

Columns whose types nobody has said get such as fit what the rule asks of them. So what stops a rule whatever its events look like
is told where it is read, and what depends on their columns where it meets them.

Rules that are automata and clauses of SQL: texts, which are read in full once the types of events are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import pyarrow as pa

from stretto.errors import QueryError, StrettoError
from stretto.events import Schema
from stretto.explaining.rows import explain_clause
from stretto.languages.afa.written import read_keys
from stretto.matching.compiled import Query
from stretto.matching.executors.row_pattern import read_clause
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.matching.pattern_set.with_metadata import EVERY, UNTIL, AnnotatedPatternSet
from stretto.pipelines.rules import model
from stretto.query import predicate as p
from stretto.query.row_pattern import Aggregated, Navigation


@dataclass(frozen=True)
class AutomatonText:
    """The text of an automaton, in the place of a query.

    Parameters
    ----------
    text
        TOML or JSON (:func:`stretto.read_afa`).

    Raises
    ------
    OptionError
        It is neither, or has a key that automata have not. What is wrong with its arcs shows when it meets events.
    """

    text: str
    language: ClassVar = "afa"

    def __post_init__(self) -> None:
        read_keys(self.text)

    def explain(self) -> str:
        """What it says."""
        return f"{self.text.strip()}\n"


@dataclass(frozen=True)
class ClauseText:
    """The text of a ``MATCH_RECOGNIZE`` clause, in the place of a query.

    Parameters
    ----------
    text
        The clause, or ``SELECT * FROM`` a table with it.

    Raises
    ------
    QueryError
        It is none. What is wrong with its columns shows when it meets events.
    """

    text: str
    language: ClassVar = "sql"

    def __post_init__(self) -> None:
        read_clause(self.text)

    def explain(self) -> str:
        """What it says."""
        return explain_clause(read_clause(self.text), None)


#: A time and a stream where nobody has named the columns; users have other names.
TIME, STREAM = "\0time", "\0stream"

#: Types that a time may have, with the unit of integers.
TIMES = (
    (pa.int64(), "s"),
    (pa.timestamp("us"), None),
    (pa.timestamp("us", "UTC"), None),
    (pa.timestamp("ns"), None),
    (pa.timestamp("ns", "UTC"), None),
    (pa.float64(), None),
    (pa.date32(), None),
    (pa.decimal128(18, 6), None),
)

#: Types that other columns may have. Those of queries fit what is mostly asked of them where they are NULL throughout.
KINDS = (pa.null(), pa.string(), pa.float64(), pa.timestamp("us"))

#: Times of so many types that give one error are enough.
ENOUGH = 3

#: Of so many of them all choices are tried; of more those of one type.
MOST = 3

#: Keys of a rule that change how it is taken, in the order in which they are tried.
KEYS = (EVERY, "since", UNTIL)


def refused(
    change: Mapping[str, Any],
    query: Query | AutomatonText | ClauseText,
    events: model.Events | None,
    columns: Mapping[str, pa.DataType],
) -> tuple[str, StrettoError] | None:
    """Why no set takes a rule, with the key of the rule that is the reason; ``None``: over some events one does.

    Parameters
    ----------
    change
        The rule as a change of patterns.
    query
        Its query.
    events, columns
        What ``[events]`` says.
    """
    given = {name: value for name, value in change.items() if name not in KEYS}
    schemas = list(_schemas(query, events, columns))
    for key in ("query", *(key for key in KEYS if change.get(key) is not None)):
        if key != "query":
            given[key] = change[key]
        found = _taken(given, schemas)
        if isinstance(found, StrettoError):
            return key, found
        if found is None:
            break
        schemas = [schemas[found]]
    return None


def _taken(change: Mapping[str, Any], schemas: Sequence[Sequence[Schema]]) -> int | StrettoError | None:
    """Which schemas a change is taken over; why none of them, whatever the types of columns; ``None``: that depends on these.

    Those of one list differ in the type of the time.
    """
    reasons: list[StrettoError] = []
    for number, alike in enumerate(schemas):
        if number == len(KINDS) and _same(reasons):
            break
        errors: list[StrettoError] = []
        for schema in alike:
            try:
                AnnotatedPatternSet(PatternSet(schema, measures=True, warn_after=None)).change([change])
            except StrettoError as error:
                errors.append(error)
            else:
                return number
            if len(errors) == ENOUGH and _same(errors):
                break
        texts = [str(error) for error in errors]
        reasons.append(max(errors, key=lambda error: texts.count(str(error))))
    # Where the types of columns do not fit, it is an error in the query; what a set refuses is none.
    refusals = [error for error in reasons if not isinstance(error, QueryError)]
    return next((errors[0] for errors in (reasons, refusals) if _same(errors)), None)


def _same(errors: Sequence[StrettoError]) -> bool:
    """Whether errors say the same, which then is of no type."""
    return len({str(error) for error in errors}) == 1


def _schemas(
    query: Query | AutomatonText | ClauseText, events: model.Events | None, columns: Mapping[str, pa.DataType]
) -> Iterator[list[Schema]]:
    """The events that a rule may meet: a list for each choice of types of what nobody has said, by all types of the time."""
    time, names, own = _read(query)
    measured = query.parsed.measured if isinstance(query, Query) else ()
    time = time if events is None else events.time
    kind_of_type = "type" if events is None else events.type or None
    unit = None if events is None else events.time_unit
    stream = STREAM if events is None or events.stream is None else events.stream
    # Who matches may say the unit.
    times = [(kind, unit or other) for kind, other in TIMES if time not in columns] or [(columns[time], unit)]
    if time in columns and unit is None:
        times.append((columns[time], "s"))
    roles = dict.fromkeys([stream, *([] if kind_of_type is None else [kind_of_type])], pa.string())
    known = own | roles | dict(columns)
    folded = {name.lower() if isinstance(query, ClauseText) else name for name in (*known, time)}
    unknown = [name for name in names if (name.lower() if isinstance(query, ClauseText) else name) not in folded]
    choices = [(kind,) * len(unknown) for kind in KINDS]
    if len(unknown) <= MOST:
        choices += product(KINDS, repeat=len(unknown))
    for choice in dict.fromkeys(choices):
        yield [
            Schema(
                dict(zip(unknown, choice, strict=True)) | dict.fromkeys(measured, of_time) | known | {time: of_time},
                kind_of_type,
                time,
                stream,
                None,
                other if pa.types.is_integer(of_time) else None,
            )
            for of_time, other in times
        ]


def _read(query: Query | AutomatonText | ClauseText) -> tuple[str, list[str], dict[str, pa.DataType]]:
    """The column that a rule takes for the time, where it names one, all those that it may read, and types that it says itself."""
    if isinstance(query, Query):
        window = query.window
        return TIME if window is None or window.attribute is None else window.attribute, list(query.parsed.read), {}
    if isinstance(query, ClauseText):
        clause = read_clause(query.text)
        order = [item.column for item in clause.order_by]
        references = clause.references.values()
        read = [
            reference.attribute
            for reference in references
            if isinstance(reference, Navigation) and reference.attribute is not None
        ]
        parts = [part for reference in references if isinstance(reference, Aggregated) for part in reference.arguments]
        read += [name for part in parts for name in p.attributes(part)]
        return order[0] if order else TIME, list(dict.fromkeys([*clause.partition_by, *order, *read])), {}
    given = read_keys(query.text)
    read = [*given.get("partition_by", ()), *re.findall(r"\be\.(\w+)", query.text)]
    return TIME, list(dict.fromkeys(read)), dict(Schema.of(given["events"]).attributes) if given.get("events") else {}
