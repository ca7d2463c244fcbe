"""Rules that are read: tested, explained, and matched together."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.arguments import check_arguments
from stretto.errors import DataError, LimitError, OptionError, SnapshotError, StrettoError, hinted, warn
from stretto.events import as_table, require
from stretto.folders import replaced
from stretto.frame import Section, reading
from stretto.matching.compiled import Query
from stretto.matching.input.derived_columns import Derived
from stretto.matching.input.files import Source, are_files, open_files
from stretto.matching.input.ordered_input import Streams, lies_in_order, ordered
from stretto.matching.input.stream_union import STREAM_COLUMN, are_tables, files_by_stream
from stretto.matching.output.memory_budget import Meter
from stretto.matching.pattern_set.changes import instant_of
from stretto.matching.pattern_set.empty_result import summary
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.matching.pattern_set.with_metadata import AnnotatedPatternSet
from stretto.pipelines.documents import Problem
from stretto.pipelines.rules import model
from stretto.pipelines.rules.fitting import AutomatonText, ClauseText

#: What matches show of their rules.
SHOWN = ("severity", "title")

#: Columns of :meth:`RuleSet.test` and of :attr:`Alerts.report`.
TESTED = pa.schema(
    [
        ("rule", pa.string()),
        ("test", pa.string()),
        ("passed", pa.bool_()),
        ("expected", pa.string()),
        ("found", pa.int64()),
        ("why", pa.string()),
    ]
)
REPORTED = pa.schema(
    [
        ("rule", pa.string()),
        ("severity", pa.string()),
        ("alerts", pa.int64()),
        ("suppressed", pa.int64()),
        ("undecided", pa.int64()),
        ("concerned", pa.int64()),
        ("seconds", pa.float64()),
        ("lacks", pa.list_(pa.string())),
        ("error", pa.string()),
    ]
)


@dataclass(frozen=True)
class Rule:
    """A query with what people need to know of its matches."""

    given: model.Rule
    query: Query | AutomatonText | ClauseText
    file: str
    #: Where it stands there: a line, or the row of a table.
    where: str

    @property
    def id(self) -> str:
        """The name of the rule, which no other rule of its set has."""
        return self.given.id

    @property
    def change(self) -> dict[str, Any]:
        """The rule as a change of patterns with notes (:class:`stretto.matching.pattern_set.with_metadata.AnnotatedPatternSet`)."""
        query = {"id": self.id, "query": self.query.text, "language": self.query.language}
        return query | {name: getattr(self.given, name) for name in ("every", "since", "until", *SHOWN)}

    def __repr__(self) -> str:
        return f"<stretto rule '{self.id}' of {self.file}, {self.where}>"


class Alerts(NamedTuple):
    """What rules say of events.

    Parameters
    ----------
    matches
        A row for each match that is not suppressed, in the order of :meth:`stretto.PatternSet.push`: ``rule``, ``severity``,
        ``title``, ``start_time``, ``end_time``, ``keys``, ``events`` and ``measures``, as in
        :attr:`stretto.PatternSet.output_schema`.
    report
        A row for each rule: ``rule``, ``severity``, ``alerts`` (rows of ``matches``), ``suppressed`` (matches that came too soon
        after one of the same keys), ``undecided`` (matches that the events to come decide, which are left out; NULL: too many to be
        counted), ``concerned`` and ``seconds`` (what it cost, :attr:`stretto.PatternSet.costs`; NULL of a rule
        that does not hold at the end), ``lacks`` (of one without matches: what no event has that it asks for, in words:
        :attr:`stretto.PatternSet.lacking`), and ``error``, why it did not run, or not to the end (else NULL).
    state
        With ``state=`` what the next round goes on from; else ``None``.
    """

    matches: pa.Table
    report: pa.Table
    state: bytes | None = None


@check_arguments
@dataclass(frozen=True)
class RuleSet:
    """Rules from files or a table, made by :func:`stretto.read_rules`.

    Parameters
    ----------
    rules
        Those that can be read, in the order of the files, or of the rows.
    problems
        What is wrong in them, each with its place. A rule that is wrong is not among ``rules``.
    events
        The roles of columns, as ``[events]`` says.
    columns
        The types of columns that ``[events.columns]`` says.
    unread
        The ids of rules that are there, and cannot be read.
    doubtful
        The files in which there may be other rules, which nobody can read.
    """

    rules: tuple[Rule, ...]
    problems: tuple[Problem, ...] = ()
    events: model.Events | None = None
    columns: Mapping[str, pa.DataType] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        count = f"{len(self.rules):,} rule{'' if len(self.rules) == 1 else 's'}"
        wrong = f", {len(self.problems)} problem{'' if len(self.problems) == 1 else 's'}" if self.problems else ""
        return f"<stretto.RuleSet: {count}{wrong}>"

    @property
    def enabled(self) -> list[Rule]:
        """The rules that are matched: all but those with ``enabled = false``."""
        return [rule for rule in self.rules if rule.given.enabled]

    # -- tests ----------------------------------------------------------------------------------------------------------

    def test(self, ids: Sequence[str] = ()) -> pa.Table:
        """Run the tests of rules.

        Parameters
        ----------
        ids
            The rules whose tests run; empty: all.

        Returns
        -------
        pyarrow.Table
            A row for each test: ``rule``, ``test`` (its name or number), ``passed``, ``expected``, ``found`` (alerts; NULL where it
            could not run), and ``why`` it could not.
        """
        rows = [row for rule in self.chosen(ids) for row in self._tested(rule)]
        return pa.Table.from_pylist(rows, schema=TESTED)

    def chosen(self, ids: Sequence[str]) -> list[Rule]:
        """The rules with these ids; all where there are none.

        Raises
        ------
        OptionError
            There is no such rule.
        """
        known = {rule.id: rule for rule in self.rules}
        for name in ids:
            if name not in known:
                raise OptionError(hinted(f"there is no rule '{name}'", name, known, kind="rule"))
        return [known[name] for name in ids] if ids else list(self.rules)

    def _tested(self, rule: Rule) -> Iterator[dict[str, Any]]:
        for number, one in enumerate(rule.given.test):
            wanted = one.matches
            row: dict[str, Any] = {"rule": rule.id, "test": one.name or f"test {number + 1}", "passed": False}
            row["expected"] = {True: "some", False: "none"}[wanted] if isinstance(wanted, bool) else str(wanted)
            if not one.events:
                yield row | {"why": "it has no events"}
                continue
            try:
                found, told = self._alerts(rule, self._table(one.events))
            except StrettoError as error:
                yield row | {"why": str(error)}
                continue
            passed = (found > 0) == wanted if isinstance(wanted, bool) else found == wanted
            yield row | {"found": found, "passed": passed, "why": None if passed else told}

    def _table(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """The events of a test, with the declared types, and with NULL in declared columns that they leave out."""
        table = as_table(list(rows))
        for name, kind in self.columns.items():
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, kind))
            elif table.column(name).type != kind:
                at = table.column_names.index(name)
                try:
                    table = table.set_column(at, name, table.column(name).cast(kind))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise DataError(f"'{name}' of its events is not {kind}, as [events] says: {error}") from error
        return table

    def _alerts(self, rule: Rule, table: pa.Table) -> tuple[int, str | None]:
        """How many alerts a rule gives, whenever it holds, and what is not decided, in words."""
        always = rule.given.model_copy(update={"enabled": True, "since": None, "until": None})
        alone = replace(self, rules=(replace(rule, given=always),))
        report = _matched(alone, table, self._roles(), "positions", None, "error").report
        (row,) = report.to_pylist()
        if row["error"] is not None:
            raise OptionError(row["error"])
        told = undecided_words(report)
        hint = "an event of any type behind their windows and gaps decides them"
        return int(row["alerts"]), None if told is None else f"found {row['alerts']}; {told}: {hint}"

    def _roles(self, **others: Any) -> dict[str, Any]:
        """The roles of columns, as arguments of a call; ``others`` go before what the files say."""
        own = {} if self.events is None else self.events.model_dump(exclude={"columns"})
        found = own | {name: value for name, value in others.items() if value is not None}
        if found.get("time") is None:
            raise OptionError(
                'no column is the time of events: name it with time = "…" in [events], or with time="…" (--time)'
            )
        return found | {"type": found.get("type", "type") or None}

    # -- matches --------------------------------------------------------------------------------------------------------

    def match(  # noqa: PLR0913 - the options that users have
        self,
        events: Any,
        *,
        type: str | None = None,
        time: str | None = None,
        sequence: str | None = None,
        stream: str | None = None,
        time_unit: str | None = None,
        output: str = "events",
        budget: int | float | str | None = None,
        on_limit: str = "error",
        at_end: str = "drop",
        state: str | Path | bytes | None = None,
    ) -> Alerts:
        """Match all enabled rules in one pass (:class:`stretto.PatternSet`).

        A rule that does not fit the events is told in the report and as a warning, and the others run. One warning tells of the rules
        that have no match because no event has what they ask for.

        What is not decided where the events end is left out and counted: a match that waits for its window to pass, as something must
        not come in it, or of a clause that a further row may change. ``state=`` carries it on, with all partial matches.

        Parameters
        ----------
        events
            In any form that :func:`stretto.match` takes, also by stream; or an iterator of tables or batches in the order of time.
            Files that lie in the order of time are read piece by piece.
        type, time, sequence, stream, time_unit
            The roles of columns; ``None``: as ``[events]`` says.
        output
            ``"events"``: with the events that variables hold. ``"positions"``: without.
        budget
            As in :func:`stretto.match`, of all rules together.
        on_limit
            As in :class:`stretto.PatternSet`: with ``"disable"`` a rule that goes over its limit is switched off and told in the
            report, and the others run.
        at_end
            ``"complete"``: the events are all that there are, so that what is not decided where they end is a match.
        state
            For events that come in rounds, each later than those before: a file from which this round goes on, if it is there, and to
            which it writes what the next one needs, as its last act. Or bytes: :attr:`Alerts.state` of the round before, ``b""`` in
            the first one. Between rounds rules may change, as in a stream (``docs/rules.md``); columns stay.

        Raises
        ------
        OptionError
            No column is the time, or ``at_end="complete"`` with ``state=``.
        DataError
            The events are not what rules say they are, or come before those of the round before.
        SnapshotError
            ``state`` is damaged, or of other columns.
        LimitError
            With ``on_limit="error"``: a rule lists too much.

        Examples
        --------
        >>> import stretto
        >>> rules = stretto.read_rules([{"id": "aa", "query": "SELECT * FROM S WHERE A ; A"}])
        >>> found = rules.match([{"type": "A", "t": 1}, {"type": "A", "t": 2}], time="t")
        >>> found.matches.select(["rule", "end_time"]).to_pylist(), found.report.column("alerts").to_pylist()
        ([{'rule': 'aa', 'end_time': 2}], [1])
        """
        if at_end not in ("complete", "drop"):
            raise OptionError(f"at_end={at_end!r}: expected 'complete' or 'drop'")
        if at_end == "complete" and state is not None:
            raise OptionError(
                "at_end='complete' says that no events will come, and state= is for those that will: leave one out"
            )
        roles = self._roles(type=type, time=time, sequence=sequence, stream=stream, time_unit=time_unit)
        kept = state if isinstance(state, bytes | None) else read_state(Path(state))
        with named_state(state):
            found = _matched(self, events, roles, output, budget, on_limit, at_end, kept)
        rows = {row["rule"]: row for row in found.report.to_pylist()}
        for rule in self.enabled:
            row = rows[rule.id]
            if row["error"] is not None and row["concerned"] is None:  # one that was switched off has been told
                warn(f"rule '{rule.id}' ({rule.file}, {rule.where}) does not run: {row['error']}")
        silent = [row for row in rows.values() if not row["alerts"] and row["error"] is None]
        lacks = {row["rule"]: row["lacks"] for row in silent if row["lacks"]}
        if lacks:
            warn(summary(lacks, len(silent), len(self.enabled), "rule"))
        if state is None and (told := undecided_words(found.report)) is not None:
            warn(f'{told}, and left out; state= (--state) carries them on, at_end="complete" (--at-end) gives them')
        if isinstance(state, str | Path):
            assert found.state is not None
            write_state(Path(state), found.state)
        return found

    def added_to(self, patterns: AnnotatedPatternSet) -> dict[str, str]:
        """Add the enabled rules to a set, in place of those that it has; of those that it does not take, by id: why."""
        errors: dict[str, str] = {}
        for rule in self.enabled:
            try:
                patterns.follow(rule.change)
            except StrettoError as error:
                errors[rule.id] = str(error).replace(f"pattern '{rule.id}': ", "", 1)
        if not self.doubtful:  # else nobody can tell which rules are gone
            for name in {*patterns.ids} - {rule.id for rule in self.enabled} - self.unread:
                patterns.follow({"id": name, "query": None})
        return errors


def undecided_words(report: pa.Table) -> str | None:
    """How many matches of which rules are not decided, of a report; ``None``: all are."""
    rows = [row for row in report.to_pylist() if row["undecided"] != 0]
    if not rows:
        return None
    count = sum(row["undecided"] or 0 for row in rows)
    many = any(row["undecided"] is None for row in rows)
    each = [
        f"'{row['rule']}' {'too many to be counted' if row['undecided'] is None else row['undecided']}" for row in rows
    ]
    matches = f"{'more than ' * many}{count:,} match{'' if count == 1 else 'es'}"
    rules = f"{len(rows):,} rule{'' if len(rows) == 1 else 's'}"
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    return f"not decided where the events end: {matches} of {rules} ({', '.join(each[:NAMED])}{more})"


#: So many rules are named in one message.
NAMED = 8

#: The frame of a state begins so.
MAGIC = b"STRRULE\0"


@contextmanager
def named_state(state: str | Path | bytes | None) -> Iterator[None]:
    """Within it, what is wrong with a state is told with its file."""
    try:
        yield
    except SnapshotError as error:
        if isinstance(state, bytes):
            raise
        raise SnapshotError(f"state '{state}': {error}") from error


def read_state(path: Path) -> bytes:
    """What a round has left in a file; nothing, if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise OptionError(f"state='{path}' cannot be read: {error.strerror}") from error


def write_state(path: Path, state: bytes) -> None:
    """Write what a round leaves, all of it or nothing."""
    try:
        with replaced(path) as draft, draft.open("wb") as file:
            file.write(state)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OptionError(f"state='{path}' cannot be written: {error.strerror}") from error


def _matched(
    rules: RuleSet,
    events: Any,
    roles: dict[str, Any],
    output: str,
    budget: int | float | str | None,
    on_limit: str,
    at_end: str = "drop",
    state: bytes | None = None,
) -> Alerts:
    before = Section.of_bytes(state, MAGIC) if state else None
    with reading():
        columns = None if before is None else before.schema("columns")
    sequence = roles.pop("sequence", None)
    if isinstance(events, Mapping) and are_tables(events):
        roles["stream"] = roles.get("stream") or STREAM_COLUMN
        read = {name for name in (roles["type"], roles["time"], sequence) if name is not None}
        events = files_by_stream(events, roles["stream"], read)
    paths = [name for name in (roles["type"], roles["time"], roles.get("stream"), sequence) if name is not None]
    schema, pieces = _in_pieces(events, roles["time"], sequence, Derived(paths))
    schema = schema if columns is None else columns
    meter = Meter.of_call(budget)
    patterns = noted(
        PatternSet(schema, **roles, output=output, measures=True, budget=meter, on_limit=on_limit, warn_after=math.inf)
    )
    patterns.patterns.late_hint = "events come in the order of time"
    if before is not None:
        with reading():
            patterns.restore(before.arrays["patterns"].tobytes())
        pieces = _later(pieces, patterns, roles["time"])
    errors = rules.added_to(patterns)
    try:
        found = [patterns.push(piece) for piece in pieces]
        table = pa.concat_tables([*found, patterns.finish() if at_end == "complete" else patterns.settle()])
    except LimitError as error:
        raise LimitError(
            f'{error}; on_limit="disable" (--on-limit disable) switches such a rule off, and the others go on'
        ) from error
    costs = {row["id"]: row for row in patterns.patterns.costs.to_pylist()}
    counts = dict(zip(*map(pa.Array.to_pylist, table.column("pattern").value_counts().flatten()), strict=True))
    errors |= patterns.disabled
    lacking = patterns.patterns.lacking
    severities: dict[str, str | None] = {rule.id: rule.given.severity for rule in rules.enabled}
    severities |= {name: None for name in patterns.ids if name in rules.unread or rules.doubtful} | severities
    after, undecided = None, dict[str, int | None]()
    if at_end == "drop":
        after = None if state is None else _state_of(patterns, schema)
        undecided = patterns.undecided()
    report = [
        {
            "rule": name,
            "severity": severity,
            "alerts": counts.get(name, 0),
            "suppressed": patterns.suppressed.get(name, 0),
            "undecided": undecided.get(name, 0),
            "concerned": costs.get(name, {}).get("concerned"),
            "seconds": costs.get(name, {}).get("seconds"),
            "lacks": lacking.get(name, []),
            "error": errors.get(name),
        }
        for name, severity in severities.items()
    ]
    matches = table.drop_columns(["since"])
    matches = matches.rename_columns(["rule", *matches.column_names[1:]])
    return Alerts(matches, pa.Table.from_pylist(report, schema=REPORTED), after)


def _later(pieces: Iterator[pa.Table], patterns: AnnotatedPatternSet, time: str) -> Iterator[pa.Table]:
    """The events of a round that goes on; a :class:`DataError` where they begin before those of the one before have ended."""
    before = patterns.reached
    for piece in pieces:
        if before is not None and piece.num_rows:
            first = pc.min(piece.column(time))
            if (
                first.is_valid
                and instant_of(first, time, before.shown.type, "the first time of this round").number < before.number
            ):
                raise DataError(
                    f"the events of this round begin at {first}, and those before have come to {before}: each round is later "
                    "than the ones before, and nothing is read twice"
                )
            before = None
        yield piece


def _state_of(patterns: AnnotatedPatternSet, columns: pa.Schema) -> bytes:
    """What the next round goes on from."""
    section = Section()
    section.put_schema("columns", columns)
    section.arrays["patterns"] = np.frombuffer(patterns.snapshot(), np.uint8)
    return section.to_bytes(MAGIC)


def noted(patterns: PatternSet) -> AnnotatedPatternSet:
    """A set of patterns whose matches show what people know of rules."""
    return AnnotatedPatternSet(patterns, SHOWN)


def _in_pieces(events: Any, time: str, sequence: str | None, made: Derived) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The columns of events, and the events in the order of time, those of files that lie so piece by piece."""
    if are_files(events):
        events = open_files(events)
    if isinstance(events, Source):
        events = events if isinstance(events, Streams) else events.deriving(made)
        _check_columns(events.schema.names, time, sequence)
        by = [name for name in dict.fromkeys([time, sequence]) if name is not None]
        if lies_in_order(events, by, None):
            names = events.schema.names
            if isinstance(events, Streams):
                merged = events.merged(names, by)
                return events.schema, (_as_table(piece.select(names)) for piece in merged)
            return events.schema, (_as_table(piece) for piece in events.read(names, coded=False))
        events = events.table()
    if isinstance(events, pa.RecordBatchReader) or hasattr(events, "__next__"):
        pieces = (made.added_to(as_table(piece)) for piece in events)
        first = next(pieces, None)
        if first is None:
            raise OptionError("no events: an iterator gives one table at least, so that their columns are known")
        _check_columns(first.column_names, time, sequence)
        return first.schema, chain([first], pieces)
    table = made.added_to(as_table(events))
    _check_columns(table.column_names, time, sequence)
    return table.schema, iter([ordered(table, time, sequence)[0]])


def _check_columns(names: Sequence[str], time: str, sequence: str | None) -> None:
    for name, role in ((time, "time"), (sequence, "sequence")):
        if name is not None:
            require(names, name, role)


def _as_table(piece: pa.RecordBatch | int) -> pa.Table:
    assert isinstance(piece, pa.RecordBatch)  # nothing was asked, so that nothing is only counted
    return pa.Table.from_batches([piece])
