"""Rules that are read: tested, explained, and matched together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import DataError, LimitError, OptionError, StrettoError, hinted, warn
from stretto.events import as_table, require
from stretto.matching.compiled import Query
from stretto.matching.derived import Derived
from stretto.matching.files import Source, are_files, open_files
from stretto.matching.inputs import lies_in_order
from stretto.matching.many.lacking import summary
from stretto.matching.merging import Streams, ordered
from stretto.matching.metering import Meter
from stretto.matching.noted import NotedPatterns
from stretto.matching.patterns import PatternSet
from stretto.matching.streams import STREAM_COLUMN, are_tables, files_by_stream
from stretto.pipelines.problems import Problem
from stretto.pipelines.rules import model
from stretto.pipelines.rules.texts import AutomatonText, ClauseText

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
        """The rule as a change of patterns with notes (:class:`stretto.matching.noted.NotedPatterns`)."""
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
        after one of the same keys), ``concerned`` and ``seconds`` (what it cost, :attr:`stretto.PatternSet.costs`; NULL of a rule
        that does not hold at the end), ``lacks`` (of one without matches: what no event has that it asks for, in words:
        :attr:`stretto.PatternSet.lacking`), and ``error``, why it did not run, or not to the end (else NULL).
    """

    matches: pa.Table
    report: pa.Table


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
                found = self._alerts(rule, self._table(one.events))
            except StrettoError as error:
                yield row | {"why": str(error)}
                continue
            passed = (found > 0) == wanted if isinstance(wanted, bool) else found == wanted
            yield row | {"found": found, "passed": passed}

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

    def _alerts(self, rule: Rule, table: pa.Table) -> int:
        """How many alerts a rule gives, whenever it holds."""
        always = rule.given.model_copy(update={"enabled": True, "since": None, "until": None})
        alone = replace(self, rules=(replace(rule, given=always),))
        (row,) = _matched(alone, table, self._roles(), "positions", None, "error").report.to_pylist()
        if row["error"] is not None:
            raise OptionError(row["error"])
        return int(row["alerts"])

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

    def match(
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
    ) -> Alerts:
        """Match all enabled rules in one pass (:class:`stretto.PatternSet`).

        A rule that does not fit the events, or that a set of patterns does not take, is told in the report and as a warning, and the
        others run. One warning tells of the rules that have no match because no event has what they ask for.

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

        Raises
        ------
        OptionError
            No column is the time.
        DataError
            The events are not what rules say they are.
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
        roles = self._roles(type=type, time=time, sequence=sequence, stream=stream, time_unit=time_unit)
        found = _matched(self, events, roles, output, budget, on_limit)
        for rule, row in zip(self.enabled, found.report.to_pylist(), strict=True):
            if row["error"] is not None and row["concerned"] is None:  # one that was switched off has been told
                warn(f"rule '{rule.id}' ({rule.file}, {rule.where}) does not run: {row['error']}")
        silent = [row for row in found.report.to_pylist() if not row["alerts"] and row["error"] is None]
        lacks = {row["rule"]: row["lacks"] for row in silent if row["lacks"]}
        if lacks:
            warn(summary(lacks, len(silent), len(self.enabled), "rule"))
        return found

    def added_to(self, patterns: NotedPatterns) -> dict[str, str]:
        """Add the enabled rules to a set; of those that it does not take, by id: why."""
        errors: dict[str, str] = {}
        for rule in self.enabled:
            try:
                patterns.change([rule.change])
            except StrettoError as error:
                errors[rule.id] = str(error).replace(f"pattern '{rule.id}': ", "", 1)
        return errors


def _matched(
    rules: RuleSet, events: Any, roles: dict[str, Any], output: str, budget: int | float | str | None, on_limit: str
) -> Alerts:
    sequence = roles.pop("sequence", None)
    if isinstance(events, Mapping) and are_tables(events):
        roles["stream"] = roles.get("stream") or STREAM_COLUMN
        read = {name for name in (roles["type"], roles["time"], sequence) if name is not None}
        events = files_by_stream(events, roles["stream"], read)
    paths = [name for name in (roles["type"], roles["time"], roles.get("stream"), sequence) if name is not None]
    schema, pieces = _in_pieces(events, roles["time"], sequence, Derived(paths))
    meter = Meter.of_call(budget)
    patterns = noted(
        PatternSet(schema, **roles, output=output, measures=True, budget=meter, on_limit=on_limit, warn_after=math.inf)
    )
    errors = rules.added_to(patterns)
    try:
        found = [patterns.push(piece) for piece in pieces]
        table = pa.concat_tables([*found, patterns.finish()])
    except LimitError as error:
        raise LimitError(
            f'{error}; on_limit="disable" (--on-limit disable) switches such a rule off, and the others go on'
        ) from error
    costs = {row["id"]: row for row in patterns.patterns.costs.to_pylist()}
    counts = dict(zip(*map(pa.Array.to_pylist, table.column("pattern").value_counts().flatten()), strict=True))
    errors |= patterns.disabled
    lacking = patterns.patterns.lacking
    report = [
        {
            "rule": rule.id,
            "severity": rule.given.severity,
            "alerts": counts.get(rule.id, 0),
            "suppressed": patterns.suppressed.get(rule.id, 0),
            "concerned": costs.get(rule.id, {}).get("concerned"),
            "seconds": costs.get(rule.id, {}).get("seconds"),
            "lacks": lacking.get(rule.id, []),
            "error": errors.get(rule.id),
        }
        for rule in rules.enabled
    ]
    matches = table.drop_columns(["since"])
    matches = matches.rename_columns(["rule", *matches.column_names[1:]])
    return Alerts(matches, pa.Table.from_pylist(report, schema=REPORTED))


def noted(patterns: PatternSet) -> NotedPatterns:
    """A set of patterns whose matches show what people know of rules."""
    return NotedPatterns(patterns, SHOWN)


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
