"""From a folder of TOML files to a :class:`~stretto.pipelines.rules.ruleset.RuleSet`: what is wrong is told, and the rest runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from stretto.errors import OptionError, QueryError, StrettoError
from stretto.matching.compiled import compile_query
from stretto.pipelines.columns import column_type
from stretto.pipelines.documents import File, Form, read, text_at, validated
from stretto.pipelines.problems import PipelineError, Problem
from stretto.pipelines.rules import model
from stretto.pipelines.rules.ruleset import Rule, RuleSet

FORM = Form("a rule file", ("rule",), {"rule": model.Rule, "rule.test": model.Test, "events": model.Events})


def read_rules(path: str | Path) -> RuleSet:
    """Read rules from TOML files.

    A file, a table or a query that is wrong is one of :attr:`RuleSet.problems`; the others are there all the same. Of two rules with
    one id the first stays, in the order of the files' names.

    Parameters
    ----------
    path
        A folder, with all that is below it, or one file (``docs/rules.md``).

    Raises
    ------
    OptionError
        There is no such folder or file, or no TOML file in it.

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
    """
    problems: list[Problem] = []
    rules: dict[str, Rule] = {}
    unread: set[str] = set()
    events: tuple[File, model.Events] | None = None
    for file, document in _documents(Path(path), problems):
        given = validated(model.Document, document, (), file, problems)
        if given is None:
            continue
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
            rule = _rule(table, number, file, problems)
            if rule is None:
                unread.add(str(table.get("id")))
                continue
            if (first := rules.get(rule.id)) is not None:
                told = f"there is a rule '{rule.id}' already, in {first.file}, line {first.line}: that one stays"
                problems.append(file.problem(("rule", number, "id"), told))
                continue
            rules[rule.id] = rule
    columns = {} if events is None else _columns(*events, problems)
    roles = None if events is None else events[1]
    return RuleSet(tuple(rules.values()), tuple(problems), roles, columns, frozenset(unread))


def _documents(path: Path, problems: list[Problem]) -> Iterator[tuple[File, dict[str, Any]]]:
    """The files of a folder, in the order of their names, but for those that are no TOML."""
    if not path.is_dir():
        found = [path]
    elif not (found := sorted(path.rglob("*.toml"))):
        raise OptionError(f"{path} has no rules: a rule is a [[rule]] in a .toml file")
    for one in found:
        try:
            yield read(one, FORM)
        except PipelineError as error:
            problems += error.problems


def _rule(table: Mapping[str, Any], number: int, file: File, problems: list[Problem]) -> Rule | None:
    """A rule, or ``None`` with problems added."""
    found: model.Rule | None = validated(model.Rule, table, ("rule", number), file, problems)
    if found is None:
        return None
    text = text_at(file, ("rule", number, "query"), found.query)
    try:
        query = compile_query(found.query, language=found.language)
    except QueryError as error:
        told = f"rule '{found.id}': {error.message}"
        problems.append(Problem(text.file, told, text.whole, text.span(error.span), error.hint, True))
        return None
    except StrettoError as error:
        problems.append(file.problem(("rule", number, "query"), f"rule '{found.id}': {error}"))
        return None
    place = file.place(("rule", number, "id"))
    line = 1 if place is None or place.span is None else file.text.count("\n", 0, place.span.start) + 1
    return Rule(found, query, file.name, line)


def _columns(file: File, events: model.Events, problems: list[Problem]) -> dict[str, pa.DataType]:
    """The types of ``[events.columns]``."""
    found = {}
    for name, kind in (events.columns or {}).items():
        try:
            found[name] = column_type(kind)
        except OptionError as error:
            problems.append(file.problem(("events", "columns", name), str(error)))
    return found
