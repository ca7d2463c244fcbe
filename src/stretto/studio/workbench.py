"""What the page asks of the events: a sample that is held, and queries over it. It knows neither the server nor the browser.

Every answer is a value of JSON, and every answer has a bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.asking.call import why_not
from stretto.errors import DataError, LimitError, OptionError, QueryError, StrettoError, StrettoWarning
from stretto.events import Schema, require
from stretto.languages.clauses import has_clause
from stretto.matching.api.match import iter_matches
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import Query, compile_query
from stretto.matching.input.files import open_files
from stretto.studio.values import as_numbers, as_value

#: Events of the sample, where nothing else is said.
ROWS = 100_000
#: Matches that a run keeps; it stops when there are more.
MOST_MATCHES = 10_000
#: Rows of a page, of events or of matches.
MOST_ROWS = 500
#: Matches and partial matches that a step shows.
MOST_OF_A_STEP = 100
#: Events that are pushed at once, where their matches are not wanted.
_AT_ONCE = 256
#: Different texts of a column that are told, to complete constants.
MOST_TEXTS = 50
#: Characters of a query.
LONGEST = 100_000
#: Characters of an explanation, or of a picture of an automaton.
LONGEST_ANSWER = 200_000


@dataclass(frozen=True)
class Roles:
    """What the columns of the events are, and the language of the query; as in :func:`stretto.match`."""

    type: str | None = "type"
    time: str | None = None
    stream: str | None = None
    time_unit: str | None = None
    language: str | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Roles:
        """Roles from an object of JSON; an empty text is none.

        Raises
        ------
        OptionError
            A role is unknown or no text.
        """
        for name, value in given.items():
            if name not in cls.__dataclass_fields__ or not isinstance(value, str | None):
                raise OptionError(
                    f"'{name}' is no role with a text: the roles are {', '.join(cls.__dataclass_fields__)}"
                )
        return cls(**{name: value or None for name, value in given.items()})

    def of_columns(self) -> dict[str, Any]:
        """The roles of columns alone."""
        return {"type": self.type, "time": self.time, "stream": self.stream, "time_unit": self.time_unit}


class Workbench:
    """A sample of events in memory, in the order of time, and the matches of the query that ran last.

    >>> bench = Workbench(pa.table({"type": ["A", "B"]}), Roles())
    >>> found = bench.run("SELECT * FROM S WHERE A AS a; B AS b")
    >>> found["count"], found["matches"][0]["variables"]
    (1, {'a': [0], 'b': [1]})
    """

    def __init__(self, events: pa.Table, roles: Roles, *, more: bool = False) -> None:
        if roles.type == "type" and "type" not in events.schema.names:  # nobody has said that there is one
            roles = replace(roles, type=None)
        for role in ("type", "time", "stream"):
            name = getattr(roles, role)
            if name is not None:
                require(events.schema.names, name, role)
        if roles.time is not None:
            _refuse_unordered(events, roles.time)
            order = pc.sort_indices(events, sort_keys=[(roles.time, "ascending")])
            events = events.take(order)
        self.events, self.roles, self.more = events, roles, more
        # With the column `number`, which those of `numbered` have, each event in a match says which one it is.
        number = "#"
        while number in events.schema.names:
            number += "#"
        self.number = number
        self.numbered = events.append_column(number, pa.array(range(events.num_rows), pa.int64()))
        self._found: list[dict[str, Any]] = []

    @classmethod
    def of_files(
        cls, path: str | list[str], roles: Roles, rows: int = ROWS, types: Mapping[str, pa.DataType] | None = None
    ) -> Workbench:
        """A workbench over the first ``rows`` events of a file, or of several. ``types``: those of columns, not to be guessed."""
        source = open_files(path, types=types)
        pieces: list[pa.RecordBatch] = []
        count = 0
        for piece in source.read(source.schema.names, coded=False):
            if isinstance(piece, pa.RecordBatch):
                pieces.append(piece.slice(0, rows - count + 1))
                count += pieces[-1].num_rows
            if count > rows:
                break
        table = pa.Table.from_batches(pieces, schema=source.schema).slice(0, rows).combine_chunks()
        return cls(table, roles, more=count > rows)

    # -- the events -----------------------------------------------------------------------------------------------------

    def columns(self) -> dict[str, Any]:
        """The columns with their types, and of texts their few values; how many events there are, and the roles of columns."""
        found = [{"name": one.name, "type": str(one.type), "values": self._texts(one)} for one in self.events.schema]
        roles = {name: getattr(self.roles, name) or "" for name in Roles.__dataclass_fields__}
        return {"columns": found, "rows": self.events.num_rows, "more": self.more, "roles": roles}

    def _texts(self, field: pa.Field) -> list[str]:
        if not pa.types.is_string(field.type) and not pa.types.is_large_string(field.type):
            return []
        counted = pc.value_counts(self.events.column(field.name))
        if len(counted) > 20 * MOST_TEXTS:  # names of everything: nobody would choose from them
            return []
        texts = sorted(one for one in counted.field("values").to_pylist() if one is not None)
        return [text[:100] for text in texts[:MOST_TEXTS]]

    def page_of_events(self, offset: int, count: int) -> dict[str, Any]:
        """Events from number ``offset`` on, as rows of values, and their places on the axis of time."""
        begin, size = _page(offset, count)
        part = self.events.slice(begin, size)
        return {
            "offset": begin,
            "rows": [list(as_value(row).values()) for row in part.to_pylist()],
            "at": self.places(part),
        }

    def places(self, part: pa.Table) -> list[float | int | None] | None:
        """Where events are on the axis of time; ``None``: only their order is known."""
        return None if self.roles.time is None else as_numbers(part.column(self.roles.time))

    # -- the query ------------------------------------------------------------------------------------------------------

    def check(self, text: str) -> dict[str, Any]:
        """Whether the query is one and fits the columns: its language, variables and keys, or the mistake, its place and a hint."""
        try:
            query = self.compiled(text)
        except (StrettoError, RecursionError) as error:
            return {"error": as_error(error)}
        told = {"language": query.language, "variables": list(query.variables), "keys": list(query.partition_by)}
        return {"error": None, **told}

    def explain(self, text: str) -> dict[str, Any]:
        """What the query means and how it runs."""
        return {"text": _cut(self.compiled(text).explain())}

    def draw(self, text: str) -> dict[str, Any]:
        """The automaton in the dot language. A LimitError where nobody could look at it."""
        source = self.compiled(text).draw().source
        if len(source) > LONGEST_ANSWER:
            raise LimitError(f"the picture would take {len(source):,} characters; {LONGEST_ANSWER:,} are drawn at most")
        return {"dot": source}

    def run(self, text: str) -> dict[str, Any]:
        """Run the query over the sample: the count, and the first page.

        ``more``: there are more than :data:`MOST_MATCHES`, and the run has stopped.
        """
        query = self.compiled(text, self.numbered.schema)
        self._found = []
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", StrettoWarning)
            for piece in iter_matches(query, self.numbered, **self._reading(), progress=False):
                room = MOST_MATCHES + 1 - len(self._found)
                self._found += map(self._match, piece.slice(0, room).to_pylist())
                if len(self._found) > MOST_MATCHES:
                    break
        more = len(self._found) > MOST_MATCHES
        del self._found[MOST_MATCHES:]
        return {
            **self.page(0, 100),
            "count": len(self._found),
            "more": more,
            "variables": list(query.variables),
            "warnings": [str(one.message) for one in told if issubclass(one.category, StrettoWarning)],
        }

    def why_not(self, text: str) -> dict[str, Any]:
        """What is in the way of a match in the sample, as :func:`stretto.why_not` says it."""
        query = self.compiled(text)
        return {"text": _cut(str(why_not(query, self.events, **self._reading())))}

    def why_event(self, text: str, event: int) -> dict[str, Any]:
        """Whether an event is in a match, and if not, what is in the way of one, as :func:`stretto.why_not` says it."""
        return {"text": _cut(str(why_not(self.compiled(text), self.events, **self._reading(), event=event)))}

    def page(self, offset: int, count: int) -> dict[str, Any]:
        """Matches of the last run from number ``offset`` on, with their events."""
        begin, size = _page(offset, count)
        found = self._found[begin : begin + size]
        return {"offset": begin, "matches": found, "events": self.events_of(found)}

    def step(self, text: str, count: int) -> dict[str, Any]:
        """What is known when the first ``count`` events have come.

        ``matches`` are those that the last of them completes; ``partial`` the furthest partial match of each first event whose window
        is open and with which no match begins yet; where these are not followed, ``refused`` says why.
        """
        count = max(0, min(int(count), self.events.num_rows))
        query = self.compiled(text, self.numbered.schema)
        so_far = self.numbered.slice(0, count)
        matcher = Matcher(query, self.numbered.schema, **self._reading(), budget=MOST_MATCHES, warn_after=None)
        before = so_far.slice(0, max(0, count - 1))
        try:
            matcher.prime(before)
        except OptionError:  # what an event forgets depends on the matches before
            _read_over(matcher, before)
        completed = [self._match(one) for one in matcher.push(so_far.slice(max(0, count - 1))).to_pylist()]
        partial, waiting, refused = self._partial(query, so_far)
        shown = [*completed[:MOST_OF_A_STEP], *partial]
        return {
            "count": count,
            "event": self.page_of_events(count - 1, 1)["rows"][0] if count else None,
            "matches": completed[:MOST_OF_A_STEP],
            "completed": len(completed),
            "partial": partial,
            "waiting": waiting,
            "refused": refused,
            "events": self.events_of(shown),
        }

    def _partial(self, query: Query, so_far: pa.Table) -> tuple[list[dict[str, Any]], int, str | None]:
        """The first partial matches whose windows are open, how many there are, and why they are not followed."""
        time, window = self.roles.time, query.window
        if time is None or window is None or window.events is not None:
            told = "partial matches are followed in queries WITHIN a span of time, over events with a column of time"
            return [], 0, told
        try:
            matcher = Matcher(
                query, self.numbered.schema, **self._reading(), timeouts=True, budget=MOST_MATCHES, warn_after=None
            )
            _read_over(matcher, so_far)
            rows = matcher.partial_matches(MOST_OF_A_STEP).to_pylist()
            waiting = len(rows)
            if waiting == MOST_OF_A_STEP:
                waiting = pc.sum(matcher.partial_matches(by="reached").column("partial_matches")).as_py()
        except (OptionError, LimitError) as error:
            return [], 0, str(error).partition("\nhint:")[0]  # the hints are of calls from Python
        return [self._match(row) for row in rows], waiting, None

    def compiled(self, text: str, schema: pa.Schema | None = None) -> Query:
        """The query over these events, or over those of another schema that has their columns."""
        if len(text) > LONGEST:
            raise LimitError(f"the query has {len(text):,} characters; {LONGEST:,} are taken at most")
        language = self.roles.language
        if language is None and has_clause(text):
            hint = "write it in CEQL, SASE+ or EQL here; 'stretto sql' runs statements over files"
            raise QueryError("the studio does not run MATCH_RECOGNIZE", text=text, hint=hint)
        known = Schema.of(self.events.schema if schema is None else schema, **self.roles.of_columns())
        if schema is not None:
            compile_query(text, Schema.of(self.events.schema, **self.roles.of_columns()), language=language)
        return compile_query(text, known, language=language)

    def _reading(self) -> dict[str, Any]:
        return self.roles.of_columns()

    def _match(self, row: dict[str, Any]) -> dict[str, Any]:
        """A match as a value of JSON: its rows, which of them each variable holds where that is known, and its other values.

        What a query counts or adds up over all matches has values alone.
        """
        made: dict[str, Any] = {"start": row.get("start"), "end": row.get("end"), "rows": row.get("positions", [])}
        variables: dict[str, list[int]] = {}
        values: dict[str, Any] = {}
        for name, value in row.items():
            if name in ("start", "end", "positions"):
                continue
            if _are_events(value):
                if all(self.number in one for one in value):
                    variables[name] = [one[self.number] for one in value]
                else:  # only some of their attributes are selected
                    values[name] = as_value(value)
            elif value != []:
                values[name] = as_value(value)
        return made | {"variables": variables, "values": values}

    def events_of(
        self, found: Sequence[dict[str, Any]], events: pa.Table | None = None, first: int = 0
    ) -> dict[str, Any]:
        """The events of matches by number: their values and places on the axis of time.

        ``events``: where they are taken from, in the place of the sample, with the number ``first`` of the first one there.
        """
        events = self.events if events is None else events
        numbers = sorted({row for one in found for row in one["rows"] if row >= first})[: 20 * MOST_ROWS]
        part = events.take(pa.array([number - first for number in numbers], pa.int64()))
        places = self.places(part) or numbers
        rows = [list(as_value(row).values()) for row in part.to_pylist()]
        return {str(number): [at, row] for number, at, row in zip(numbers, places, rows, strict=True)}


def as_error(error: BaseException) -> dict[str, Any]:
    """A mistake as a value of JSON: what it is, where (offsets of characters), and a hint."""
    if isinstance(error, RecursionError):
        return as_error(LimitError("the query is nested too deeply"))
    made: dict[str, Any] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, QueryError):
        made |= {"message": error.message, "hint": error.hint, "line": error.line, "column": error.column}
        if error.span is not None:
            made |= {"start": error.span.start, "end": error.span.end}
    return made


def _are_events(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _page(offset: int, count: int) -> tuple[int, int]:
    return max(0, int(offset)), max(0, min(int(count), MOST_ROWS))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_ANSWER else f"{text[:LONGEST_ANSWER]}\n…"


def _refuse_unordered(events: pa.Table, time: str) -> None:
    """Raise a :class:`DataError` where events have no place in time."""
    if events.column(time).null_count:
        raise DataError(
            f"column '{time}' has NULLs, and orders the events: choose another column for the time, or none"
        )


def _read_over(matcher: Matcher, events: pa.Table) -> None:
    """Push events whose matches are not wanted. The budget holds for a few of them at a time."""
    for begin in range(0, events.num_rows, _AT_ONCE):
        matcher.push(events.slice(begin, _AT_ONCE))
