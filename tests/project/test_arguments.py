"""Each argument of each public call takes what it is for, or raises an error of stretto that names it: never one of Python's own."""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import stretto
from stretto.dataflow import Dataflow, datalog, stream

WRONG: dict[str, Any] = {
    "None": None,
    "5": 5,
    "-1": -1,
    "2.5": 2.5,
    "True": True,
    "no text": "",
    "text": "x",
    "bytes": b"x",
    "[]": [],
    "[1]": [1],
    "{}": {},
    "{1: 2}": {1: 2},
    "object": object(),
    "function": lambda *given: given,
    "column": pd.DataFrame({"t": [1, 2]})["t"],
    "NaN": float("nan"),
    "tuple": (1, 2),
    "date": dt.date(2024, 5, 1),
    "huge": 10**30,
}

QUERY = "SELECT a, b FROM S WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 10 [t]"
EVENTS = [{"type": "A", "t": 1, "k": 1, "x": 1}, {"type": "B", "t": 2, "k": 1, "x": 2}]
SCHEMA = {"type": "string", "t": "int64", "k": "int64", "x": "int64"}
SETS = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match { }"
SQL = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS n PATTERN (A B) DEFINE B AS x > 1)"
RULE = """\
[[rule]]
id = "pairs"
query = "SELECT * FROM S WHERE A ; B WITHIN 10 [t]"
[events]
type = "type"
time = "t"
"""


def _afa() -> stretto.AFA:
    return stretto.AFA({"x": int}, window=10).arc("q0", "q1", when="e.x = 1", id="first").final("q1")


def _matcher(**options: Any) -> stretto.Matcher:
    return stretto.Matcher(QUERY, SCHEMA, time="t", **options)


def _revising() -> stretto.Matcher:
    return stretto.Matcher(_afa(), time="t", dynamic="explicit")


def _patterns() -> stretto.PatternSet:
    found = stretto.PatternSet(SCHEMA, time="t")
    found.change([stretto.Change("ab", QUERY)])
    return found


def _match_set() -> stretto.MatchSet:
    return next(stretto.match_sets(SETS, EVENTS))


def _rules() -> stretto.RuleSet:
    return stretto.read_rules([{"id": "pairs", "query": QUERY}])


def _links() -> Any:
    return stream("links", {"src": int, "dst": int})


def _flow() -> Dataflow:
    return Dataflow(reach=_links().distinct())


def _cleanse() -> stretto.Cleanse:
    return stretto.Cleanse(SCHEMA, time="t", disorder=3)


#: How each public call is made so that it works: what it is called on (``None``: the module), and its arguments.
CALLS: dict[str, tuple[Callable[[], Any] | None, dict[str, Any]]] = {
    "stretto.AFA": (None, {"events": {"x": int}}),
    "stretto.AFA.arc": (_afa, {"source": "q1", "target": "q2", "when": "e.x = 1"}),
    "stretto.AFA.epsilon": (_afa, {"source": "q1", "target": "q2"}),
    "stretto.AFA.final": (_afa, {"state": "q1"}),
    "stretto.AFA.ignore": (_afa, {"state": "q1"}),
    "stretto.AFA.pattern": (lambda: stretto.AFA({"x": int}), {"pattern": stretto.element("e.x = 1")}),
    "stretto.Change": (None, {"id": "a", "query": QUERY}),
    "stretto.Cleanse": (None, {"schema": SCHEMA, "time": "t", "disorder": 3}),
    "stretto.Cleanse.advance": (_cleanse, {"time": 3}),
    "stretto.Cleanse.push": (_cleanse, {"events": EVENTS}),
    "stretto.Cleanse.restore": (_cleanse, {"snapshot": _cleanse().snapshot()}),
    "stretto.MatchSet.first": (_match_set, {"n": 1}),
    "stretto.MatchSet.sample": (_match_set, {"n": 1}),
    "stretto.Matcher": (None, {"query": QUERY, "schema": SCHEMA, "time": "t"}),
    "stretto.Matcher.add_arc": (_revising, {"source": "q0", "target": "q2"}),
    "stretto.Matcher.advance": (_matcher, {"time": 3}),
    "stretto.Matcher.advance_arcs": (_revising, {"time": 3}),
    "stretto.Matcher.arcs": (_revising, {}),
    "stretto.Matcher.held": (_matcher, {}),
    "stretto.Matcher.iter_push": (_matcher, {"events": EVENTS}),
    "stretto.Matcher.partial_matches": (lambda: _matcher(timeouts=True), {}),
    "stretto.Matcher.prime": (_matcher, {"events": EVENTS}),
    "stretto.Matcher.push": (_matcher, {"events": EVENTS}),
    "stretto.Matcher.push_sets": (lambda: stretto.Matcher(SETS, sets=True), {"events": EVENTS}),
    "stretto.Matcher.restore": (_matcher, {"snapshot": b"x"}),
    "stretto.Matcher.retire_arc": (_revising, {"id": "first"}),
    "stretto.Matcher.why_not": (lambda: _matcher(timeouts=True), {}),
    "stretto.PatternSet": (None, {"schema": SCHEMA, "time": "t"}),
    "stretto.PatternSet.advance": (_patterns, {"time": 3}),
    "stretto.PatternSet.change": (_patterns, {"changes": [stretto.Change("b", None)]}),
    "stretto.PatternSet.held": (_patterns, {}),
    "stretto.PatternSet.iter_push": (_patterns, {"events": EVENTS}),
    "stretto.PatternSet.push": (_patterns, {"events": EVENTS}),
    "stretto.PatternSet.restore": (_patterns, {"snapshot": _patterns().snapshot()}),
    "stretto.PatternSet.withdraw": (_patterns, {"name": "ab", "after": None}),
    "stretto.Query.bind": (lambda: stretto.compile(QUERY), {"schema": SCHEMA}),
    "stretto.Query.explain": (lambda: stretto.compile(QUERY), {}),
    "stretto.Query.output_schema": (lambda: stretto.compile(QUERY, SCHEMA, time="t"), {}),
    "stretto.RuleSet.chosen": (_rules, {"ids": ["pairs"]}),
    "stretto.RuleSet.match": (_rules, {"events": EVENTS, "type": "type", "time": "t"}),
    "stretto.RuleSet.test": (_rules, {}),
    "stretto.Schema": (None, {"attributes": stretto.Schema.of(SCHEMA).attributes}),
    "stretto.Schema.of": (None, {"source": SCHEMA}),
    "stretto.View.png": (lambda: stretto.timeline(stretto.match(QUERY, EVENTS, time="t"), EVENTS, time="t"), {}),
    "stretto.View.save": (lambda: stretto.show([{"start": 1}]), {"path": "/nowhere/at/all.svg"}),
    "stretto.compile": (None, {"text": QUERY}),
    "stretto.compile_sql": (None, {"text": SQL}),
    "stretto.density": (None, {"matches": stretto.match(QUERY, EVENTS, time="t")}),
    "stretto.element": (None, {"when": "e.x = 1"}),
    "stretto.explain": (None, {"query": QUERY, "events": EVENTS, "time": "t"}),
    "stretto.function": (None, {"name": "never_called"}),
    "stretto.iter_matches": (None, {"query": QUERY, "events": EVENTS, "time": "t"}),
    "stretto.match": (None, {"query": QUERY, "events": EVENTS, "time": "t"}),
    "stretto.match_sets": (None, {"query": SETS, "events": EVENTS, "time": "t"}),
    "stretto.read_afa": (None, {"text": stretto.write_afa(_afa())}),
    "stretto.read_rules": (None, {"rules": [{"id": "pairs", "query": QUERY}]}),
    "stretto.show": (None, {"matches": stretto.match(QUERY, EVENTS, time="t")}),
    "stretto.sql": (None, {"text": SQL, "e": EVENTS}),
    "stretto.timeline": (
        None,
        {"matches": stretto.match(QUERY, EVENTS, time="t"), "events": EVENTS, "time": "t"},
    ),
    "stretto.why_not": (None, {"query": QUERY, "events": EVENTS[:1], "time": "t"}),
    "stretto.write_afa": (None, {"afa": _afa()}),
    "stretto.dataflow.Dataflow": (None, {"reach": _links()}),
    "stretto.dataflow.Dataflow.advance": (_flow, {"time": 3}),
    "stretto.dataflow.Dataflow.history": (_flow, {"name": "reach"}),
    "stretto.dataflow.Dataflow.output": (_flow, {"name": "reach"}),
    "stretto.dataflow.Dataflow.punctuation": (_flow, {"name": "reach"}),
    "stretto.dataflow.Dataflow.push": (_flow, {"name": "links", "batch": [{"src": 1, "dst": 2, "vs": 1}]}),
    "stretto.dataflow.Dataflow.push_known": (_flow, {"name": "links", "batch": [{"src": 1, "dst": 2, "vs": 1}]}),
    "stretto.dataflow.Dataflow.restore": (_flow, {"snapshot": _flow().snapshot()}),
    "stretto.dataflow.Dataflow.run": (_flow, {"steps": 1}),
    "stretto.dataflow.Stream.aggregate": (_links, {"by": "src", "n": "count(*)"}),
    "stretto.dataflow.Stream.difference": (_links, {"other": _links(), "on": "src"}),
    "stretto.dataflow.Stream.join": (_links, {"other": _links(), "on": {"dst": "src"}}),
    "stretto.dataflow.Stream.project": (_links, {"kept": ("src",), "y": "src"}),
    "stretto.dataflow.Stream.recognize": (_links, {"pattern": stretto.AFA({"src": int}).arc("q0", "q1").final("q1")}),
    "stretto.dataflow.Stream.rename": (_links, {"src": "s"}),
    "stretto.dataflow.Stream.union": (_links, {"others": (_links(),)}),
    "stretto.dataflow.Stream.where": (_links, {"condition": "src > 1"}),
    "stretto.dataflow.Stream.window": (_links, {"duration": 3}),
    "stretto.dataflow.constant": (None, {"rows": [{"x": 1}]}),
    "stretto.dataflow.datalog": (
        None,
        {"text": "reach(X, Y) :- links(X, Y).", "sources": {"links": {"src": int, "dst": int}}},
    ),
    "stretto.dataflow.fixpoint": (None, {"query": lambda it: it, "schema": {"x": int}}),
    "stretto.dataflow.fixpoints": (None, {"query": lambda it: [it], "schemas": {"r": {"x": int}}}),
    "stretto.dataflow.stream": (None, {"name": "links", "schema": {"src": int}}),
}

#: What users get and do not make: values of answers, and what classes share with the package's own modules.
NOT_CALLED = {
    *("stretto.Answer", "stretto.Explanation", "stretto.MatchSet", "stretto.Query", "stretto.SqlQuery", "stretto.View"),
    *("stretto.RuleSet", "stretto.dataflow.Stream", "stretto.QueryError", "stretto.DataError", "stretto.OptionError"),
    *("stretto.LimitError", "stretto.EngineError", "stretto.SnapshotError", "stretto.StrettoError"),
    *("stretto.StrettoWarning", "stretto.Query.automaton", "stretto.Query.program", "stretto.Query.roles"),
    *("stretto.RuleSet.added_to", "stretto.PatternSet.has", "stretto.dataflow.Stream.of"),
    *(f"stretto.Cleanse.{name}" for name in ("bind", "go_back", "let", "load", "pass_on", "retype", "save", "tick")),
    "stretto.Cleanse.waiting",
}


def public_calls(module_name: str) -> Iterator[str]:
    """The paths of the public calls of a module that take arguments."""
    module = importlib.import_module(module_name)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            continue
        path = f"{module_name}.{name}"
        yield path
        if inspect.isclass(value) and not issubclass(value, Exception):
            for member in dir(value):
                if not member.startswith("_") and callable(getattr(value, member)):
                    signature = inspect.signature(getattr(value, member))
                    if len(signature.parameters) > (1 if inspect.isfunction(getattr(value, member)) else 0):
                        yield f"{path}.{member}"


def _target(path: str) -> Any:
    """The object that a path names."""
    module, found = path, []
    while True:
        module, _, name = module.rpartition(".")
        found.insert(0, name)
        try:
            value: Any = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        for one in found:
            value = getattr(value, one)
        return value


def _called(function: Callable[..., Any], given: dict[str, Any]) -> None:
    """Call a function by the names of its parameters, and read what it gives to the end."""
    positional, named = [], dict(given)
    for name, parameter in inspect.signature(function).parameters.items():
        if name in named and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            value = named.pop(name)
            positional += value if parameter.kind is parameter.VAR_POSITIONAL and isinstance(value, tuple) else [value]
    result = function(*positional, **named)
    if isinstance(result, Iterator):
        for _ in result:
            pass


def raw_errors(make: Callable[[], Callable[..., Any]], given: dict[str, Any], values: dict[str, Any]) -> Iterator[str]:
    """Which argument of a call with which value gives an error that is none of stretto's, beside those of files."""
    parameters = inspect.signature(make()).parameters
    names = [name for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    for name in dict.fromkeys([*names, *given]):
        for told, value in values.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _called(make(), given | {name: value})
            except (stretto.StrettoError, FileNotFoundError) as error:
                if not str(error):
                    yield f"{name}={told}: an error without a text"
            except Exception as error:
                yield f"{name}={told}: {type(error).__name__}: {str(error).splitlines()[:1]}"


@pytest.mark.parametrize("path", CALLS)
def test_wrong_arguments(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a text may be a file that is written
    make, given = CALLS[path]
    if "fixpoint" in path:  # what the user's function raises is the user's
        values = {told: value for told, value in WRONG.items() if told != "function"}
    else:
        values = WRONG
    found = raw_errors(
        lambda: _target(path) if make is None else getattr(make(), path.rpartition(".")[2]), given, values
    )
    assert list(found) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: stretto.match(QUERY, EVENTS, time=5),
            "match(time=5): expected a string (the name of a column) or None, and got an int",
        ),
        (
            lambda: stretto.match(QUERY, EVENTS, time=pd.Series([1], name="t")),
            "expected a string (the name of a column) or None, and got a Series; give the column by its name, time='t'",
        ),
        (
            lambda: stretto.iter_matches(QUERY, EVENTS, language=5),
            "iter_matches(language=5): expected a string or None, and got an int",
        ),
        (lambda: stretto.sql(None), "sql(text=None): expected a string, and got None"),
        (lambda: stretto.sql(SQL, con=5), "sql(con=5): expected a DuckDB connection or None, and got an int"),
        (
            lambda: _matcher().restore(None),
            "Matcher.restore(snapshot=None): expected bytes, and got None",
        ),
        (lambda: stretto.show(EVENTS, rows=None), "show(rows=None): expected an integer, and got None"),
        (
            lambda: stretto.show(EVENTS, rows=10**30),
            "expected an integer, and got an int; it does not fit into 64 bits",
        ),
        (
            lambda: stretto.match(QUERY, EVENTS, budget=float("nan")),
            "budget=nan: expected a number of rows",
        ),
        (
            lambda: stretto.PatternSet(SCHEMA, time="t", by=[1]),  # type: ignore[list-item]
            "PatternSet(by=[1]): expected a string (the name of a column) or a list of strings, and got a list",
        ),
        (
            lambda: stretto.match(5, EVENTS),
            "match(query=5): expected a string, a compiled query or an AFA, and got an int",
        ),
        (
            lambda: stretto.Matcher.restore(b"x"),  # type: ignore[arg-type,call-arg]
            "Matcher.restore() is a method: call it of what Matcher(…) gives, and not of the class",
        ),
        (
            lambda: stretto.PatternSet.push([]),  # type: ignore[arg-type,call-arg]
            "PatternSet.push() is a method: call it of what PatternSet(…) gives",
        ),
        (
            lambda: stretto.Schema({"t": 5}),  # type: ignore[dict-item]
            "Schema(attributes={'t': 5}): expected a dict of Arrow types by name, and got a dict",
        ),
        (
            lambda: datalog("r(X) :- e(X).", {1: {"x": int}}),  # type: ignore[dict-item]
            "datalog(sources={1: {'x': <class 'int'>}}): expected a dict of values by name, and got a dict",
        ),
    ],
)
def test_what_is_said_of_a_wrong_argument(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(stretto.OptionError) as caught:
        call()
    assert message in str(caught.value)


def test_names_that_there_are_not_are_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'tiem'"):
        stretto.match(QUERY, EVENTS, tiem="t")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'events'"):
        stretto.match(QUERY)
    for call, told in (
        (
            lambda: stretto.Matcher(QUERY, tiem="t"),
            r"Matcher\(\) got an unexpected keyword argument 'tiem'; did you mean 'time'\?",
        ),
        (lambda: stretto.Matcher(QUERY, cleanse="after"), r"Matcher\(\) got an unexpected keyword argument 'cleanse'$"),
        (lambda: stretto.Cleanse(time="t", disordr=2), r"Cleanse\(\) got an .* 'disordr'; did you mean 'disorder'\?"),
        (
            lambda: stretto.Matcher(QUERY).advance(5, to=3),
            r"Matcher\.advance\(\) got an unexpected keyword argument 'to'",
        ),
        (
            lambda: stretto.show([], rowz=3),
            r"show\(\) got an unexpected keyword argument 'rowz'; did you mean 'rows'\?",
        ),
    ):
        with pytest.raises(TypeError, match=told):
            call()


def test_signatures_are_as_they_are_written() -> None:
    assert list(inspect.signature(stretto.show).parameters) == ["matches", "rows", "events", "width", "time_unit"]
    assert list(inspect.signature(stretto.Matcher).parameters)[:3] == ["query", "schema", "type"]
    assert list(inspect.signature(stretto.Matcher.push).parameters) == ["self", "events", "arcs", "punctuations"]
    assert stretto.match.__module__ == "stretto.matching.api.match"
    assert str(stretto.match.__doc__).startswith("Find the complex events")


def test_every_public_call_is_in_the_table() -> None:
    public = {path for module in ("stretto", "stretto.dataflow") for path in public_calls(module)}
    assert public - NOT_CALLED == set(CALLS)
