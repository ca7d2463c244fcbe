"""Random cases of every language: a text, a table, options and a call, of which only results and errors of stretto may come."""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

import stretto
from stretto.dataflow import Dataflow, datalog
from tests.fuzz.tables import table_of
from tests.fuzz.texts import KINDS, NAMES, Text, automaton

__all__ = ["CALLS", "LANGUAGES", "Case", "case", "run"]

LANGUAGES = ("ceql", "sase", "eql", "rows", "afa", "mixed", "datalog")


@dataclass(frozen=True)
class Case:
    """What is called, with what."""

    language: str
    call: str
    texts: tuple[str, ...]
    table: pa.Table
    options: Mapping[str, Any]
    seed: str

    def shown(self) -> str:
        """The case in words."""
        told = "\n".join([*self.texts, f"{self.call} {dict(self.options)}", str(self.table.schema)])
        return f"{told}\n{self.table.to_pylist()}"


#: So many pieces of matches are read: without a budget, those of ``A+`` over 40 events have no end.
PIECES = 100

#: So many draws are looked at for one that compiles, in most cases: few do.
MOST_DRAWS = 20


def case(language: str, number: int) -> Case:
    """The case of a number."""
    seed = f"{language} {number}"
    rng = random.Random(seed)
    for _ in range(1 if rng.random() < 0.15 else MOST_DRAWS):
        given = _drawn(language, rng, seed)
        if _compiles(given):
            break
    return given


def _drawn(language: str, rng: random.Random, seed: str) -> Case:
    call = rng.choice(CALLS[language])
    written = [_text(language, rng) for _ in range(rng.choice((2, 3)) if language == "mixed" else 1)]
    named: dict[str, str] = dict.fromkeys(rng.sample(NAMES, 3), "")
    for _, text in written:
        named |= text.columns
    types = [name for _, text in written for name in text.types if name not in ("S", "any")] or ["A", "B", "C"]
    texts = [one for _, text in written for one in text.texts]
    table = table_of(rng, types, dict(list(named.items())[-14:]), texts)
    options = _OPTIONS[language](rng, table) if language in _OPTIONS else {}
    return Case(language, call, tuple(one for one, _ in written), table, options, seed)


def _compiles(given: Case) -> bool:
    """Whether the case fails later than at its text, or fails with what it must not."""
    try:
        if given.language == "datalog":
            datalog(given.texts[0], _sources(given)[0])
        elif given.language == "mixed":
            return True
        else:
            _compiled(given)
    except stretto.StrettoError:
        return False
    except Exception:
        return True
    return True


def run(given: Case) -> str:
    """Do what the case says: how it ended, as the name of the class of stretto's error, or ``result`` or ``empty``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = _RUN[given.call](given, random.Random(f"call {given.seed}"))
        except stretto.StrettoError as error:
            str(error)
            return next(one.__name__ for one in type(error).__mro__ if one.__module__ == "stretto.errors")
    return "result" if found is None or found else "empty"


def _text(language: str, rng: random.Random) -> tuple[str, Text]:
    if language == "mixed":
        text = KINDS[rng.choice(("ceql", "ceql", "sase", "eql", "rows"))].text(rng, known=0.5)
        return automaton(rng) if rng.random() < 0.15 else (text.text, text)
    if language == "afa":
        return automaton(rng)
    text = KINDS[language].text(rng)
    return text.text, text


# -- options ----------------------------------------------------------------------------------------------------------


def _roles(rng: random.Random, table: pa.Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rng.random() < 0.7:
        found["time"] = "t" if rng.random() < 0.95 else rng.choice((*table.column_names, "missing"))
    if rng.random() < 0.05:
        found["type"] = rng.choice((None, *table.column_names, "missing"))
    if rng.random() < 0.05:
        found["sequence"] = rng.choice(table.column_names)
    if rng.random() < 0.05:
        found["stream"] = rng.choice(table.column_names)
    if rng.random() < 0.4:
        found["time_unit"] = rng.choice(("s", "ms", "us", "ns"))
    return found


def _of_queries(rng: random.Random, table: pa.Table) -> dict[str, Any]:
    found = _roles(rng, table)
    for name, values in (
        ("output", ("events", "positions", "summary")),
        ("valuations", (True,)),
        ("timeouts", (True,)),
        ("at_end", ("drop", "complete")),
        ("budget", (10, 1000, "1 MB", math.inf)),
    ):
        if rng.random() < 0.12:
            found[name] = rng.choice(values)
    return found


def _of_automata(rng: random.Random, table: pa.Table) -> dict[str, Any]:
    found: dict[str, Any] = {"time": "t"} if rng.random() < 0.97 else {}
    for name, values in (
        ("sequence", table.column_names),
        ("until", table.column_names),
        ("bag", (True,)),
        ("provenance", (True,)),
        ("ignore", (False,)),
        ("budget", (10, 1000)),
    ):
        if rng.random() < 0.08:
            found[name] = rng.choice(values)
    return found


_OPTIONS: dict[str, Callable[[random.Random, pa.Table], dict[str, Any]]] = {
    "ceql": _of_queries,
    "sase": _of_queries,
    "eql": lambda rng, table: {"time": "t"} | _of_queries(rng, table),
    "afa": _of_automata,
    "mixed": lambda rng, table: _roles(rng, table) | {"time": "t"},
}


def _of_matcher(given: Case, rng: random.Random) -> dict[str, Any]:
    """Options of a matcher beside those of the call."""
    found = dict(given.options)
    for name, values in (
        ("disorder", (0, 1, 5, math.inf, "5 seconds", -1)),
        ("speculation", (0, 3, math.inf, "1 hour")),
        ("late", ("drop", "side", "error")),
        ("sets", (True,)),
        ("positions", (False,)),
        ("hold", ("events", "results")),
        ("capacity", (1, 7)),
    ):
        if rng.random() < (0.3 if name in ("disorder", "late") else 0.07):
            found[name] = rng.choice(values)
    if given.language == "rows":
        return {name: value for name, value in found.items() if name in ("disorder", "late", "budget", "capacity")}
    return found


# -- calls ------------------------------------------------------------------------------------------------------------


def _query(given: Case) -> Any:
    if given.language == "afa":
        schema = pa.schema([field for field in given.table.schema if field.name != "t"])
        return stretto.read_afa(given.texts[0], schema)
    return given.texts[0]


def _told(given: Case, *names: str) -> dict[str, Any]:
    """Options of some names, with the language where the text does not tell."""
    found = {name: value for name, value in given.options.items() if not names or name in names}
    return found | ({"language": "eql"} if given.language == "eql" else {})


_ROLES = ("type", "time", "sequence", "stream", "time_unit")


def _match(given: Case, rng: random.Random) -> int:
    found = stretto.match(_query(given), given.table, **_told(given))
    if rng.random() < 0.3:
        _shown(found, given, rng)
    return found.num_rows


def _shown(found: pa.Table, given: Case, rng: random.Random) -> None:
    """Views of what was found."""
    str(stretto.show(found, rows=rng.choice((0, 3)), width=rng.choice((None, 1, 20, 80))))
    str(stretto.density(found))
    if found.num_rows:
        str(stretto.timeline(found, given.table, time=given.options.get("time")))


def _iter_match(given: Case, _: random.Random) -> int:
    pieces = stretto.iter_matches(_query(given), given.table, **_told(given))
    return sum(piece.num_rows for piece in islice(pieces, PIECES))


def _sets(given: Case, _: random.Random) -> int:
    found = 0
    for one in stretto.match_sets(given.texts[0], given.table, **_told(given, *_ROLES)):
        found += len(one)
        one.first(3)
    return found


def _matcher(given: Case, rng: random.Random) -> int:
    """Push in pieces, with snapshots, questions and times between them."""
    options = _of_matcher(given, rng)
    options |= {"language": "eql"} if given.language == "eql" else {}

    def made() -> stretto.Matcher:
        return stretto.Matcher(_query(given), given.table.schema, **options)

    matcher, at, found = made(), 0, 0
    table = given.table
    while at < table.num_rows:
        more = rng.choice((1, 2, 5, 40))
        piece = table.slice(at, more)
        if options.get("sets"):
            found += sum(len(one) for one in matcher.push_sets(piece))
        else:
            found += matcher.push(piece).num_rows
        at += more
        match rng.randrange(12):
            case 0 | 1 | 2:
                state = matcher.snapshot()
                matcher = made().restore(state)
            case 3:
                _asked(matcher, rng)
            case 4 if "time" in options and options["time"] in table.column_names:
                time = table[options["time"]][min(at, table.num_rows) - 1].as_py()
                if time is not None:
                    found += matcher.advance(time).num_rows
    return found + matcher.finish().num_rows


def _asked(matcher: stretto.Matcher, rng: random.Random) -> None:
    """What may be asked of a running matcher; what this one cannot answer is an error of stretto."""
    ask = rng.choice(
        (
            lambda: matcher.partial_matches(rng.choice((0, 3, 1000))),
            lambda: matcher.held(rng.choice((0, 3, 1000))),
            matcher.why_not,
            matcher.explain,
            lambda: matcher.stats,
            matcher.late_events,
            lambda: matcher.expires,
        )
    )
    try:
        str(ask())
    except stretto.StrettoError:
        return


def _compiled(given: Case) -> Any:
    if given.language == "rows":
        return stretto.compile_sql(_statement(given), t=given.table)
    if given.language == "afa":
        return _query(given)
    return stretto.compile(given.texts[0], given.table.schema, **_told(given, "type", "time", "stream", "time_unit"))


def _explain(given: Case, rng: random.Random) -> None:
    query = _compiled(given)
    if given.language == "afa":
        str(stretto.explain(query, given.table, **_told(given, "time", "sequence")))
        return
    query.explain()
    query.draw()
    if given.language != "rows":
        str(stretto.explain(given.texts[0], given.table, **_told(given, *_ROLES)))


def _why_not(given: Case, rng: random.Random) -> None:
    more: dict[str, Any] = {}
    if rng.random() < 0.3 and given.table.num_rows:
        more["event"] = rng.randrange(given.table.num_rows)
    if given.language == "rows":
        answer = stretto.why_not(stretto.compile_sql(_statement(given), t=given.table), given.table, **more)
    elif given.language == "afa":
        answer = stretto.why_not(_query(given), given.table, **more, **_told(given, "time", "sequence"))
    else:
        answer = stretto.why_not(given.texts[0], given.table, **more, **_told(given, *_ROLES))
    str(answer)


def _statement(given: Case) -> str:
    return f"SELECT * FROM t {given.texts[0]}"


def _sql(given: Case, rng: random.Random) -> int:
    tail = rng.choice(("", "", " AS m", " AS m WHERE true", " LIMIT 3"))
    return stretto.sql(_statement(given) + tail, t=given.table).num_rows


def _patterns(given: Case, rng: random.Random) -> int:
    """A set of all texts, in which they are changed on the way."""
    roles = {name: value for name, value in given.options.items() if name != "sequence"}
    options: dict[str, Any] = {
        "output": rng.choice(("events", "positions")),
        "totals": rng.choice((False, True)),
        "measures": rng.choice((False, True)),
        "late": rng.choice(("error", "drop")),
        "on_limit": rng.choice(("error", "disable")),
        "budget": rng.choice((None, 100)),
    }

    def made() -> stretto.PatternSet:
        return stretto.PatternSet(given.table.schema, **roles, **options)

    patterns, added = made(), 0
    for number, text in enumerate(given.texts):
        since = None if rng.random() < 0.7 else rng.choice((1, 5, "2020-01-01"))
        try:
            patterns.change([stretto.Change(f"p{number}", text, since=since, language=_language(text))])
            added += 1
        except stretto.StrettoError as error:
            failed = error
    if not added:
        raise failed
    at, found = 0, 0
    while at < given.table.num_rows:
        more = rng.choice((1, 5, 40))
        found += patterns.push(given.table.slice(at, more)).num_rows
        at += more
        match rng.randrange(8):
            case 0 | 1:
                state = patterns.snapshot()
                patterns = made().restore(state)
            case 2:
                str(patterns.held(3))
                str(patterns.costs)
                str(patterns.lacking)
                patterns.undecided()
            case 3:
                patterns.change([stretto.Change("p0", None if rng.random() < 0.5 else given.texts[-1])])
    return found + patterns.finish().num_rows


def _language(text: str) -> str | None:
    if text.startswith("{"):
        return "afa"
    first = text.strip()[:7].upper()
    return None if first in ("SELECT ", "PATTERN", "MATCH_R") else "eql"


def _rules(given: Case, rng: random.Random) -> int:
    rules: list[dict[str, Any]] = [
        {"id": f"r{number}", "query": text}
        | ({"language": language} if (language := _language(text)) else {})
        | ({"every": rng.choice((1, 10, "1 minute"))} if rng.random() < 0.3 else {})
        for number, text in enumerate(given.texts)
    ]
    made = stretto.read_rules(rules)
    for problem in made.problems:
        str(problem)
    state: bytes | None = b"" if rng.random() < 0.5 else None
    cut = rng.randrange(given.table.num_rows + 1) if state is not None else given.table.num_rows
    found = 0
    for piece in (given.table.slice(0, cut), given.table.slice(cut))[: 1 if state is None else 2]:
        alerts = made.match(piece, state=state, **given.options)
        found, state = found + alerts.matches.num_rows, alerts.state
    return found


def _sources(given: Case) -> tuple[dict[str, dict[str, type]], random.Random]:
    """The relations that a program may read, and what decides about their rows."""
    rng = random.Random(f"sources {given.seed}")
    names: dict[str, type] = {"src": int, "dst": int, "cost": rng.choice((int, float)), "tag": str}
    columns = rng.sample(sorted(names), rng.choice((2, 2, 3)))
    read = dict.fromkeys(re.findall(r"([a-z]\w*)\s*\(", given.texts[0])).keys() - set(
        re.findall(r"(?:^|\.)\s*([a-z]\w*)\s*\(", given.texts[0])
    )
    return {name: {column: names[column] for column in columns} for name in sorted(read)}, rng


def _datalog(given: Case, _: random.Random) -> None:
    sources, rng = _sources(given)
    relations = datalog(given.texts[0], sources)
    flow = Dataflow(**relations)
    values = {int: (0, 1, 2, (1 << 63) - 1), float: (0.5, 1.0, float("nan")), str: ("a", "b", "")}
    for source, columns in sources.items():
        rows = [
            {column: rng.choice(values[kind]) for column, kind in columns.items()}
            | {"vs": start, "ve": rng.choice((None, start + 3))}
            for start in sorted(rng.randrange(9) for _ in range(rng.randrange(6)))
        ]
        flow.push(source, rows)
    flow.run_until_idle()
    for name in relations:
        flow.output(name)


_RUN: dict[str, Callable[[Case, random.Random], int | None]] = {
    "match": _match,
    "iter_matches": _iter_match,
    "match_sets": _sets,
    "Matcher": _matcher,
    "explain": _explain,
    "why_not": _why_not,
    "sql": _sql,
    "PatternSet": _patterns,
    "rules": _rules,
    "datalog": _datalog,
}

_OF_QUERIES = ("match", "match", "match", "iter_matches", "Matcher", "Matcher", "Matcher", "explain", "why_not")
CALLS = {
    "ceql": _OF_QUERIES,
    "sase": (*_OF_QUERIES, "match_sets"),
    "eql": _OF_QUERIES,
    "rows": ("sql", "sql", "Matcher", "Matcher", "explain", "why_not"),
    "afa": ("match", "Matcher", "Matcher", "explain", "why_not", "iter_matches"),
    "mixed": ("PatternSet", "PatternSet", "rules"),
    "datalog": ("datalog",),
}
