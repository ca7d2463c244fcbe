"""Rules that are read: tested, explained, and matched together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.engines.shared.windows import values_of
from stretto.errors import OptionError, StrettoError
from stretto.events import as_table, require
from stretto.matching.call import match
from stretto.matching.compiled import Query
from stretto.matching.many.changes import Change
from stretto.matching.merging import ordered
from stretto.matching.patterns import PatternSet
from stretto.matching.reorder.spans import span
from stretto.pipelines.problems import Problem
from stretto.pipelines.rules import model
from stretto.pipelines.rules.repeats import first_of_each_span

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
        ("absent", pa.list_(pa.string())),
        ("error", pa.string()),
    ]
)


@dataclass(frozen=True)
class Rule:
    """A query with what people need to know of its matches."""

    given: model.Rule
    query: Query
    file: str
    line: int

    @property
    def id(self) -> str:
        """The name of the rule, which no other rule of its set has."""
        return self.given.id

    def __repr__(self) -> str:
        return f"<stretto rule '{self.id}' of {self.file}, line {self.line}>"


class Alerts(NamedTuple):
    """What rules say of events.

    Parameters
    ----------
    matches
        A row for each match that is not suppressed, in the order of :meth:`stretto.PatternSet.push`: ``rule``, ``severity``,
        ``title``, ``start_time``, ``end_time``, ``keys`` and ``events``, as in :attr:`stretto.PatternSet.output_schema`.
    report
        A row for each rule: ``rule``, ``severity``, ``alerts`` (rows of ``matches``), ``suppressed`` (matches that came too soon
        after one of the same keys), ``absent`` (types that it names and no event has), and ``error``, why it did not run, or not to
        the end (else NULL).
    """

    matches: pa.Table
    report: pa.Table


@dataclass(frozen=True)
class RuleSet:
    """Rules from files, made by :func:`stretto.read_rules`.

    Parameters
    ----------
    rules
        Those that can be read, in the order of the files.
    problems
        What is wrong in the files, each with its place. A rule that is wrong is not among ``rules``.
    events
        The roles of columns, as ``[events]`` says.
    columns
        The types of columns that ``[events.columns]`` says.
    """

    rules: tuple[Rule, ...]
    problems: tuple[Problem, ...] = ()
    events: model.Events | None = None
    columns: Mapping[str, pa.DataType] = field(default_factory=dict)

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
                raise OptionError(f"there is no rule '{name}' among {len(known):,}")
        return [known[name] for name in ids] if ids else list(self.rules)

    def _tested(self, rule: Rule) -> Iterator[dict[str, Any]]:
        for number, one in enumerate(rule.given.test):
            wanted = one.matches
            row: dict[str, Any] = {"rule": rule.id, "test": one.name or f"test {number + 1}", "passed": False}
            row["expected"] = {True: "some", False: "none"}[wanted] if isinstance(wanted, bool) else str(wanted)
            try:
                found = self._alerts(rule, self._table(one.events))
            except StrettoError as error:
                yield row | {"why": str(error)}
                continue
            passed = (found > 0) == wanted if isinstance(wanted, bool) else found == wanted
            yield row | {"found": found, "passed": passed}

    def _table(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """The events of a test, with the declared types, and with NULL in declared columns that they leave out."""
        table = as_table(list(rows)) if rows else pa.table({})
        for name, kind in self.columns.items():
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, kind))
            elif table.column(name).type != kind:
                at = table.column_names.index(name)
                table = table.set_column(at, name, table.column(name).cast(kind))
        return table

    def _alerts(self, rule: Rule, table: pa.Table) -> int:
        """How many alerts a rule gives."""
        roles = self._roles()
        found = match(rule.query, table, **roles, output="positions")
        rows: int = found.num_rows
        if rule.given.every is None or not rows:
            return rows
        keys = _codes([found.column(name) for name in rule.query.partition_by], rows)
        return len(np.flatnonzero(self._kept(rule, keys, found.column("end_time"))))

    def _roles(self, **others: Any) -> dict[str, Any]:
        """The roles of columns, as arguments of a call; ``others`` go before what the files say."""
        own = {} if self.events is None else self.events.model_dump(exclude={"columns"})
        found = own | {name: value for name, value in others.items() if value is not None}
        if found.get("time") is None:
            raise OptionError('no column is the time of events: time = "…" in [events], or time="…"')
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

        A rule that does not fit the events, or that a set of patterns does not take, is told in the report, and the others run.

        Parameters
        ----------
        events
            In any form that :func:`stretto.match` takes in memory.
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
        """
        roles = self._roles(type=type, time=time, sequence=sequence, stream=stream, time_unit=time_unit)
        table = as_table(events)
        sequence = roles.pop("sequence", None)
        for name in filter(None, (roles["time"], sequence)):
            require(table, name, "role")
        table, _ = ordered(table, roles["time"], sequence)
        patterns = PatternSet(table.schema, **roles, output=output, budget=budget, on_limit=on_limit)
        errors = self.added_to(patterns)
        found = pa.concat_tables([patterns.push(table), patterns.finish()])
        return self._given(found, table, roles, errors | patterns.disabled)

    def added_to(self, patterns: PatternSet) -> dict[str, str]:
        """Add the enabled rules to a set; of those that it does not take, by id: why."""
        errors: dict[str, str] = {}
        for rule in self.enabled:
            try:
                patterns.change(Change(rule.id, rule.query))
            except StrettoError as error:
                errors[rule.id] = str(error)
        return errors

    def _given(self, found: pa.Table, table: pa.Table, roles: Mapping[str, Any], errors: Mapping[str, str]) -> Alerts:
        """Alerts and report of what the patterns have found."""
        rules = {rule.id: rule for rule in self.enabled}
        names = pc.dictionary_encode(found.column("pattern").combine_chunks())
        which, ids = np.asarray(names.indices), names.dictionary.to_pylist()
        kept = np.ones(found.num_rows, np.bool_)
        for number, name in enumerate(ids):
            rule = rules[name]
            if rule.given.every is not None:
                mine = np.flatnonzero(which == number)
                rows = found.take(pa.array(mine))
                keys = _codes([pa.chunked_array([one]) for one in _values(rows)], mine.size)
                kept[mine] = self._kept(rule, keys, rows.column("end_time"), roles)
        counts = np.bincount(which, minlength=len(ids)), np.bincount(which[kept], minlength=len(ids))
        of_rule = {name: (int(counts[0][n]), int(counts[1][n])) for n, name in enumerate(ids)}
        column = roles["type"] or roles.get("stream")
        types = set(pc.unique(table.column(column)).to_pylist()) if column in table.column_names else None
        report = []
        for name, rule in rules.items():
            all_of, given = of_rule.get(name, (0, 0))
            absent = [] if types is None else [one for one in rule.query.parsed.wanted if one not in types]
            row = {"rule": name, "severity": rule.given.severity, "alerts": given, "suppressed": all_of - given}
            report.append(row | {"absent": absent, "error": errors.get(name)})
        matches = found.filter(pa.array(kept)).drop_columns(["pattern", "since"])
        for title, values in (
            ("title", [rules[name].given.title for name in ids]),
            ("severity", [rules[name].given.severity for name in ids]),
            ("rule", ids),
        ):
            matches = matches.add_column(0, title, pa.array(values, pa.string()).take(pa.array(which[kept])))
        return Alerts(matches, pa.Table.from_pylist(report, schema=REPORTED))

    def _kept(
        self, rule: Rule, keys: NDArray[np.int64], end: pa.ChunkedArray, roles: Mapping[str, Any] | None = None
    ) -> NDArray[np.bool_]:
        """Which matches of a rule are no repeats."""
        roles = self._roles() if roles is None else roles
        every = span(rule.given.every, f"rule '{rule.id}': every", end.type, roles["time"], roles.get("time_unit"))
        return first_of_each_span(keys, values_of(end, roles["time"], 0), every)


def _values(rows: pa.Table) -> list[pa.Array]:
    """The values of the keys of one rule's matches, a column each."""
    keys = rows.column("keys").combine_chunks()
    if not len(keys):
        return []
    count = len(keys[0].as_py())
    items = keys.items
    return [items.take(pa.array(np.arange(len(keys)) * count + number)) for number in range(count)]


def _codes(columns: Sequence[pa.ChunkedArray], rows: int) -> NDArray[np.int64]:
    """A number for each row, equal where all columns are."""
    found = np.zeros(rows, np.int64)
    for column in columns:
        codes = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
        own = np.asarray(codes.indices).astype(np.int64)
        found = np.unique(found * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    return found
