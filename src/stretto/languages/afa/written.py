"""Automata as text, in which they travel, and in which SQL and pipelines have them: TOML or JSON.

::

    partition_by = ["name"]
    window = "10 seconds"
    register = { low = "double" }
    final = ["q2"]                      # or { q2 = "on_enter" }
    arcs = [
        { source = "q0", target = "q1", then = "low = e.price" },
        { source = "q1", kind = "ignore", when = "e.price >= r.low" },
        { source = "q1", target = "q2", when = "e.price < r.low" },
    ]
"""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.errors import OptionError, QueryError, Span, StrettoError, hinted
from stretto.languages.afa.builder import AFA, checked, make_arc
from stretto.languages.afa.scope import clock_of
from stretto.query.afa import Afa, Arc, Emit, Field, UserFunction
from stretto.query.functions import Functions, named_in_text, path_of

_KEYS = ("events", "register", "initial", "start", "window", "partition_by", "final", "arcs")
_ARC = ("id", "source", "target", "when", "then", "kind", "since", "until")


@check_arguments
def read_afa(
    text: str, events: Any = None, *, functions: Mapping[str, Callable[..., Any]] | str | Iterable[str] = ()
) -> Afa:
    """An automaton from its text, TOML or JSON.

    The keys are those of :class:`stretto.AFA`, ``final`` (a list of states, or a table from state to ``emit``) and ``arcs``, a list
    of tables with ``source``, ``target``, ``when``, ``then``, ``id`` and ``kind``, as :meth:`stretto.Matcher.add_arc` takes them.

    Parameters
    ----------
    text
        The text.
    events
        The attributes of events, where the text does not say them under ``events``; a :class:`stretto.Schema` says what a duration is
        beside its time, too.
    functions
        Which Python functions the text may name, ``when = { function = "NAME" }``: a dict of functions by name; or names of modules,
        such as ``["package.fences"]``, whose own functions it may name as ``module:name``. For a text nothing else is imported.

    Raises
    ------
    OptionError
        It is no text of an automaton, or says what no automaton can be.
    QueryError
        A fence or a transfer is wrong.

    Examples
    --------
    >>> import stretto
    >>> text = 'final = ["q1"]\\narcs = [{ source = "q0", target = "q1", when = "e.price > 3" }]'
    >>> afa = stretto.read_afa(text, {"price": float})
    >>> stretto.match(afa, {"t": [1, 2], "price": [2.0, 5.0]}, time="t").column("start").to_pylist()
    [1]
    """
    given = read_keys(text)
    clock, events = clock_of(events), given.get("events", events)
    if events is None:
        raise OptionError("the automaton's text does not say the events' attributes: events = { price = \"double\" }")
    register = given.get("register")
    try:
        made = AFA(
            events,
            register,
            initial={name: _value(value) for name, value in given.get("initial", {}).items()},
            start=given.get("start", "q0"),
            window=given.get("window"),
            partition_by=given.get("partition_by", ()),
        )
        finals = given.get("final", [])
        named = finals if isinstance(finals, Mapping) else dict.fromkeys(finals, "every")
        empty = replace(made.frozen, finals={str(state): Emit(emit) for state, emit in named.items()}, clock=clock)
        arcs = tuple(_arc(empty, at, one, functions) for at, one in enumerate(given.get("arcs", [])))
    except QueryError as error:
        at = text.find(error.text) if error.text else -1
        if at < 0 or error.span is None:
            raise
        span = Span(at + error.span.start, at + error.span.end)
        raise QueryError(error.message, text=text, span=span, hint=error.hint) from None
    except StrettoError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(f"the automaton's text is wrong: {error}") from error
    return checked(replace(empty, arcs=arcs))


def read_keys(text: str) -> dict[str, Any]:
    """What a text says of an automaton, by key, before the types of events are known: arcs are not read yet.

    Raises
    ------
    OptionError
        It is neither TOML nor JSON, or has a key that there is not.
    """
    found = _table(text)
    for key in found:
        if key not in _KEYS:
            raise OptionError(hinted(f"the automaton's text has the key '{key}'", key, _KEYS, kind="key"))
    return found


@check_arguments
def write_afa(afa: AFA | Afa) -> str:
    """An automaton as text (JSON), which :func:`stretto.read_afa` reads.

    Python functions are named by module, ``module:name``; one that cannot be imported so does not travel.

    Raises
    ------
    OptionError
        An arc has a function that cannot be imported, or the automaton cannot be said as text.

    Examples
    --------
    >>> import stretto
    >>> afa = stretto.AFA({"price": float}).arc("q0", "q1", when="e.price > 3").final("q1")
    >>> stretto.write_afa(afa)[:59]
    '{"events": {"price": "double"}, "final": {"q1": "every"}, "'
    """
    text = as_text(afa.frozen)
    check_text(text, afa.frozen)
    return text


def as_text(frozen: Afa) -> str:
    """What :func:`write_afa` gives, which may have another meaning than the automaton."""
    kinds = {"events": frozen.events, "register": frozen.register}
    found: dict[str, Any] = {key: {name: _kind(one) for name, one in row.items()} for key, row in kinds.items() if row}
    found.setdefault("events", {})
    if frozen.register:
        found["initial"] = {name: _plain(value) for name, value in zip(frozen.register, frozen.initial, strict=True)}
    if frozen.start != "q0":
        found["start"] = frozen.start
    if isinstance(frozen.window, dt.timedelta):
        found["window"] = f"{frozen.window // dt.timedelta(microseconds=1)} microseconds"
    elif frozen.window is not None:
        found["window"] = frozen.window
    if frozen.partition_by:
        found["partition_by"] = list(frozen.partition_by)
    found["final"] = {state: str(emit) for state, emit in frozen.finals.items()}
    found["arcs"] = [dict(_written(arc, frozen)) for arc in frozen.arcs]
    return json.dumps(found, ensure_ascii=False)


def check_text(text: str, frozen: Afa) -> None:
    """Raise unless what was made of an automaton has its meaning.

    Raises
    ------
    OptionError
        It has not, or it is no text of an automaton.
    """
    if read_afa(text, functions=function_paths(frozen)).arcs != frozen.arcs:
        raise OptionError("the automaton does not travel: its arcs have another meaning as text")


def _table(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(f"the automaton's text is no JSON: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"the automaton's text is no TOML: {error}") from error
    assert isinstance(found, dict)
    return found


def _arc(afa: Afa, at: int, given: Any, functions: Functions) -> Arc:
    if not isinstance(given, Mapping):
        raise OptionError(f"arcs[{at}] is {given!r}; an arc is a table with source, target, when and then")
    for key in given:
        if key not in _ARC:
            raise OptionError(hinted(f"arcs[{at}] has the key '{key}'", key, _ARC, kind="key"))
    if "source" not in given:
        raise OptionError(f"arcs[{at}] has no source, the state that it leaves")
    own = {"id": f"a{at}", "target": given["source"], **given}
    for key in ("when", "then"):
        value = own.get(key)
        if isinstance(value, Mapping) and set(value) == {"function"}:
            own[key] = named_in_text(str(value["function"]), functions, f"arc '{own['id']}'")
    return make_arc(afa, own.pop("source"), own.pop("target"), **own)


def _written(arc: Arc, afa: Afa) -> Iterator[tuple[str, Any]]:
    """What is said of an arc."""
    yield from (("id", arc.id), ("source", arc.source), ("target", arc.target))
    if arc.kind != "consume":
        yield "kind", str(arc.kind)
    if isinstance(arc.when, UserFunction):
        yield "when", {"function": _path(arc.when, arc.id)}
    elif arc.when is not None:
        yield "when", str(arc.when)
    if isinstance(arc.then, UserFunction):
        yield "then", {"function": _path(arc.then, arc.id)}
    elif arc.then is not None:
        changed = zip(afa.register, arc.then, strict=True)
        yield "then", {name: str(value) for name, value in changed if value != Field(f"r.{name}")}
    yield from ((name, tick) for name, tick in (("since", arc.since), ("until", arc.until)) if tick is not None)


def function_paths(afa: Afa) -> list[str]:
    """Where the Python functions of an automaton are found, sorted."""
    named = [one for arc in afa.arcs for one in (arc.when, arc.then) if isinstance(one, UserFunction)]
    return sorted({_path(one, "of the automaton") for one in named})


def _path(function: UserFunction, arc: str) -> str:
    """Where a Python function is found, by module."""
    return path_of(function.python, f"arc '{arc}': the function {function.name}")


def _kind(kind: pa.DataType) -> str:
    return str(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _plain(value: Any) -> Any:
    return {"time": value.isoformat()} if isinstance(value, dt.datetime) else value


def _value(written: Any) -> Any:
    return dt.datetime.fromisoformat(written["time"]) if isinstance(written, Mapping) else written
