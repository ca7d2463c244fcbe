"""From rule files or a table to a :class:`~stretto.pipelines.rules.ruleset.RuleSet`: what is wrong is told, and the rest runs.

Rules as rows of a table: what its cells are as keys of a rule file, and where something is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import OptionError, QueryError, StrettoError, hinted, suggestion
from stretto.events import as_table
from stretto.languages.clauses import is_clause
from stretto.matching.compiled import Query, compile_query
from stretto.matching.input.files import kind_of, open_files
from stretto.pipelines.columns import column_type
from stretto.pipelines.documents import File, Form, PipelineError, Problem, Text, read, validated
from stretto.pipelines.places import Path as KeyPath
from stretto.pipelines.rules import model
from stretto.pipelines.rules.fitting import AutomatonText, ClauseText, refused
from stretto.pipelines.rules.ruleset import Rule, RuleSet

#: The keys of a rule that are columns; tests are in rule files only.
COLUMNS = tuple(name for name in model.Rule.model_fields if name != "test")


class Rows(File):
    """A table as a rule file: where something stands is a row and a column."""

    def __init__(self, name: str) -> None:
        super().__init__(name, Path(), "", Form("a table of rules"))

    def problem(self, path: KeyPath, message: str, hint: str | None = None, *, at_key: bool = False) -> Problem:
        """A mistake in a cell, or in a whole row."""
        return Problem(self.name, message, hint=hint, part=self.where(path))

    def label(self, path: KeyPath) -> str:
        """A column, or what a whole row is."""
        return ".".join(map(str, path[2:])) or "the rule"

    def where(self, path: KeyPath) -> str:
        """In which row."""
        return f"row {path[1]}"

    def text_at(self, path: KeyPath, value: str) -> Text:
        """The text of a cell."""
        return Text(value, self.name, value, range(len(value) + 1), f"{self.where(path)}, {path[-1]}")


def is_table(rules: Any) -> bool:
    """Whether rules are given as a table: one in memory, or files that hold one."""
    if not isinstance(rules, str | Path):
        return True
    path = Path(rules)
    if path.is_dir():
        return not any(path.rglob("*.toml")) and any(kind_of(one) is not None for one in path.rglob("*"))
    return kind_of(path) is not None


def rows_of(rules: Any, problems: list[Problem]) -> tuple[Rows, Iterator[dict[str, Any]]]:
    """The rows of a table of rules as tables of a rule file; cells without a value are left out.

    Raises
    ------
    OptionError
        There is no such file, or no column ``id`` or ``query``.
    DataError
        It is no table.
    """
    path = isinstance(rules, str | Path)
    table = open_files(rules).table() if path else as_table(rules)
    file = Rows(str(rules) if path else "the table of rules")
    for name in ("id", "query"):
        if name not in table.column_names:
            told = f"{file.name} has no column '{name}', which rules have"
            raise OptionError(hinted(told, name, table.column_names, kind="column"))
    for name in table.column_names:
        if name not in COLUMNS:
            problems.append(Problem(file.name, f"rules have no column '{name}'", hint=_instead(name)))
    known = table.select([name for name in table.column_names if name in COLUMNS])
    return file, _cells(known)


def _instead(name: str) -> str | None:
    if name in ("test", "tests"):
        return "tests are in rule files: [[rule.test]]"
    return suggestion(name, COLUMNS, kind="column")


def _cells(table: pa.Table) -> Iterator[dict[str, Any]]:
    for at, kind in enumerate(table.schema.types):
        if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
            table = table.set_column(at, table.column_names[at], table.column(at).cast(pa.string()))
    for row in table.to_pylist():
        given = {name: _cell(name, value) for name, value in row.items()}
        yield {name: value for name, value in given.items() if value is not None}


def _cell(name: str, value: Any) -> Any:
    """A cell as a rule file has it. Files of text guess types, and pandas makes whole numbers with gaps real ones."""
    if value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if name == "every" and isinstance(value, float) and value.is_integer():
        return int(value)
    if name == "tags" and isinstance(value, str):
        return [one.strip() for one in value.split(",") if one.strip()]
    if name in ("every", "enabled", "tags", "since", "until") or isinstance(value, bool):
        return value
    return str(value) if isinstance(value, int) else value


FORM = Form("a rule file", ("rule",), {"rule": model.Rule, "rule.test": model.Test, "events": model.Events})


@check_arguments
def read_rules(rules: str | Path | Any) -> RuleSet:
    """Read rules from TOML files, or from a table.

    A file, a rule or a query that is wrong is one of :attr:`RuleSet.problems`; the others are there all the same. Of two rules with
    one id the first stays, in the order of the files' names.

    Parameters
    ----------
    rules
        A folder, with all TOML files below it, or one such file. Or a table with a row for each rule: in memory, in any form that
        :func:`stretto.match` takes events in, or a file (``.parquet``, ``.csv``, ``.jsonl``, ``.arrow``), or a folder of
        such files. Its columns are ``id``, ``query`` and perhaps other keys of ``[[rule]]`` (``docs/rules.md``), but for tests.

    Raises
    ------
    OptionError
        There is no such folder or file, no rule file in it, or no column ``id`` or ``query``.
    DataError
        What was given is no table, or a file does not hold what its ending says.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "auth.toml").write_text('''
    ... [events]
    ... time = "t"
    ...
    ... [[rule]]
    ... id = "guessed"
    ... query = "SELECT * FROM S WHERE FAILED{3,} ; LOGIN WITHIN 60 [t]"
    ... severity = "high"
    ...
    ... [[rule.test]]
    ... matches = true
    ... events = [{type = "FAILED", t = 1}, {type = "FAILED", t = 2}, {type = "FAILED", t = 3}, {type = "LOGIN", t = 9}]
    ... ''')
    >>> rules = stretto.read_rules(folder)
    >>> rules, rules.test().select(["rule", "passed", "found"]).to_pylist()
    (<stretto.RuleSet: 1 rule>, [{'rule': 'guessed', 'passed': True, 'found': 1}])
    >>> print(stretto.read_rules([{"id": "left", "query": "LOGIN where true", "language": "elq"}]).problems[0])
    the table of rules, row 0: language = "elq": expected 'ceql', 'sase', 'eql', 'afa' or 'sql'
    hint: did you mean 'eql'?
    """
    found = _Read()
    if is_table(rules):
        rows, cells = rows_of(rules, found.problems)
        for number, row in enumerate(cells):
            found.add(row, number, rows)
        found.check(None, {})
        return found.ruleset(None, {}, {rows.name} if None in found.unread else ())
    events: tuple[File, model.Events] | None = None
    problems = found.problems
    for file, document in _documents(Path(rules), problems):
        given = validated(model.Document, document, (), file, problems)
        if given is None:
            continue
        if not given.rule and given.events is None:
            problems.append(Problem(file.name, "there is no [[rule]] in it"))
        if given.events is not None:
            if events is None:
                events = file, given.events
            else:
                problems.append(
                    file.problem(
                        ("events",), f"there is an [events] in {events[0].name} already, which holds", at_key=True
                    )
                )
        for number, table in enumerate(given.rule):
            found.add(table, number, file)
    roles = None if events is None else events[1]
    columns = {} if events is None else _columns(*events, problems)
    found.check(roles, columns)
    return found.ruleset(roles, columns, {problem.file for problem in problems})


@dataclass
class _Read:
    """The rules so far."""

    problems: list[Problem] = field(default_factory=list)
    rules: dict[str, Rule] = field(default_factory=dict)
    unread: set[str | None] = field(default_factory=set)
    _places: dict[str, tuple[File, int]] = field(default_factory=dict)

    def add(self, table: Mapping[str, Any], number: int, file: File) -> None:
        """One more rule, or a problem."""
        rule = _rule(table, number, file, self.problems)
        if rule is None:
            self.unread.add(table.get("id") and str(table["id"]))
        elif (first := self.rules.get(rule.id)) is not None:
            there = f"in {first.where}" if first.file == file.name else f"in {first.file}, {first.where}"
            told = f"there is a rule '{rule.id}' already, {there}: that one stays"
            self.problems.append(file.problem(("rule", number, "id"), told))
        else:
            self.rules[rule.id], self._places[rule.id] = rule, (file, number)

    def check(self, events: model.Events | None, columns: Mapping[str, pa.DataType]) -> None:
        """Leave out the rules that cannot run over events as they are described."""
        for rule in list(self.rules.values()):
            why = refused(rule.change, rule.query, events, columns)
            if why is not None:
                key, error = why
                self.problems.append(_problem(rule.given, *self._places[rule.id], key, error))
                self.unread.add(rule.id)
                del self.rules[rule.id]

    def ruleset(
        self, roles: model.Events | None, columns: Mapping[str, pa.DataType], doubtful: Iterable[str]
    ) -> RuleSet:
        """All of them; ``doubtful``: the files in which there may be more."""
        unread = frozenset(one for one in self.unread if one is not None)
        rules, problems = tuple(self.rules.values()), tuple(self.problems)
        return RuleSet(rules, problems, roles, columns, unread, frozenset(doubtful))


def _documents(path: Path, problems: list[Problem]) -> Iterator[tuple[File, dict[str, Any]]]:
    """The files of a folder, in the order of their names, but for those that are no TOML, or cannot be read (any more)."""
    if not path.is_dir():
        found = [path]
    elif not (found := sorted(one for one in path.rglob("*") if one.suffix.lower() == ".toml")):
        raise OptionError(f"{path} has no rules: a rule is a [[rule]] in a .toml file, or a row of a table")
    for one in found:
        try:
            yield read(one, FORM)
        except PipelineError as error:
            problems += error.problems
        except OptionError as error:
            if one == path:
                raise
            problems.append(Problem(str(one), str(error)))


def _rule(table: Mapping[str, Any], number: int, file: File, problems: list[Problem]) -> Rule | None:
    """A rule, or ``None`` with problems added."""
    found: model.Rule | None = validated(model.Rule, table, ("rule", number), file, problems)
    if found is None:
        return None
    try:
        query = _query(found)
    except StrettoError as error:
        problems.append(_problem(found, file, number, "query", error))
        return None
    return Rule(found, query, file.name, file.where(("rule", number, "id")))


def _problem(rule: model.Rule, file: File, number: int, key: str, error: StrettoError) -> Problem:
    """What is wrong with a key of a rule, at the place in its query where an error tells one."""
    own = f"pattern '{rule.id}': "
    if isinstance(error, QueryError) and key == "query":
        text = file.text_at(("rule", number, key), rule.query)
        told = f"rule '{rule.id}': {error.message.replace(own, '', 1)}"
        return Problem(text.file, told, text.whole, text.span(error.span), error.hint, True, text.part)
    return file.problem(("rule", number, key), f"rule '{rule.id}': {str(error).replace(own, '', 1)}")


def _query(rule: model.Rule) -> Query | AutomatonText | ClauseText:
    if rule.language == AutomatonText.language:
        return AutomatonText(rule.query)
    if is_clause(rule.query, rule.language):
        return ClauseText(rule.query)
    return compile_query(rule.query, language=rule.language)


def _columns(file: File, events: model.Events, problems: list[Problem]) -> dict[str, pa.DataType]:
    """The types of ``[events.columns]``."""
    found = {}
    for name, kind in (events.columns or {}).items():
        try:
            found[name] = column_type(kind)
        except OptionError as error:
            problems.append(file.problem(("events", "columns", name), str(error)))
    return found
