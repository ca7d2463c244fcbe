"""A CEQL query as an AFA: what runs it on a disordered stream.

The complex event automaton (:mod:`stretto.automata.cea`) has the same states and arcs: a marked transition is an arc that selects its
event, a loop that reads anything an ignorable one. A complex event is the events that are selected, whatever way led to them, and an
AFA's output is a way of selecting. So the query must select the same events in one way only, which is told by its shape.

>>> import pyarrow as pa
>>> from stretto.matching.compiled import compile_query
>>> schema = {"type": pa.string(), "t": pa.int64(), "v": pa.int64()}
>>> query = compile_query("SELECT * FROM S WHERE A AS a ; B AS b FILTER b[v > 3] WITHIN 9 [t]", schema)
>>> afa, _ = ceql_afa(query.bound)
>>> for arc in afa.arcs:
...     print(arc.source, "->", arc.target, "ignore" if arc.kind == "ignore" else arc.when)
q0 -> q1 e.type = 'A'
q1 -> q2 e.type = 'B' AND e.v > 3
q1 -> q1 ignore
"""

from __future__ import annotations

from collections.abc import Iterable

from stretto.automata.cea import TRUE, build
from stretto.automata.sase_afa import window_of
from stretto.automata.sase_register import NEVER, all_of, of_event
from stretto.errors import QueryError, placed
from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, Emit, Field, Kind
from stretto.query.algebra import (
    As,
    Atom,
    Filter,
    Not,
    Pattern,
    Plus,
    Project,
    Repeat,
    Sequence,
    is_one_event,
    is_timed,
    unnamed,
    walk,
)  # fmt: skip
from stretto.query.guard import Guard
from stretto.query.moving import refuse_moving
from stretto.query.passes.bind import BoundQuery
from stretto.query.query import Consume, Strategy, refuse_joined


def ceql_afa(query: BoundQuery, *, attributes: Iterable[str] | None = None) -> tuple[Afa, tuple[frozenset[str], ...]]:
    """The AFA of a query, and the variables of each of its labels.

    Parameters
    ----------
    query
        The bound query.
    attributes
        The attributes that the automaton's events have; ``None``: those that the query reads.

    Raises
    ------
    QueryError
        The query chooses among matches, counts events, or may select the same events in several ways.
    """
    refuse_joined(query.parsed.joined, "as an automaton, as speculation= has it")
    with placed(query.parsed.text):
        window = window_of(query)
        refuse_moving(query.parsed.moving)
        _refuse_choices(query)
        cea = build(query.pattern)
        labels = list(dict.fromkeys(one.labels for one in cea.transitions if one.labels))
        arcs = []
        for at, one in enumerate(cea.transitions):
            loop = one.guard <= TRUE and not one.labels and one.source == one.target != 0
            unless = [_fence(cea.guards[each], query) for each in sorted(cea.unless(one.guard))]
            arcs.append(
                Arc(
                    f"a{at}",
                    f"q{one.source}",
                    f"q{one.target}",
                    _fence(cea.guards[one.guard], query) if one.guard >= 0 else _none_of(unless),
                    kind=Kind.IGNORE if loop else Kind.CONSUME,
                    label=labels.index(one.labels) if one.labels else -1,
                )
            )
        kinds = query.schema.attributes
        used = query.tested if attributes is None else attributes
        afa = Afa(
            events={name: kinds[name] for name in used},
            register={},
            initial=(),
            start="q0",
            arcs=tuple(arcs),
            finals={f"q{state}": Emit.ON_ENTER for state in sorted(cea.finals)},
            window=window,
            partition_by=query.partition_by,
        )
        return afa, tuple(labels)


def _fence(guard: Guard, query: BoundQuery) -> p.Predicate:
    schema = query.schema
    tests: list[p.Predicate] = []
    if schema.stream is not None:
        own = Field(f"e.{schema.stream}")
        streams = query.parsed.streams if guard.stream is None else (guard.stream,)
        tests.append(p.In(own, tuple(map(p.Constant, streams))))
    name = schema.type or schema.stream
    if name is not None:
        tests.append(p.Comparison("=", Field(f"e.{name}"), p.Constant(guard.type)))
    elif guard.type != query.parsed.streams[0]:
        tests.append(NEVER)
    return all_of([*tests, *map(of_event, guard.conditions)])


def _none_of(fences: list[p.Predicate]) -> p.Predicate | None:
    """What asks that none of these holds; ``None``: nothing is asked."""
    return all_of([p.Not(one) for one in fences]) if fences else None


def _refuse_choices(query: BoundQuery) -> None:
    """Raise a :class:`QueryError` for what no AFA does, or does otherwise."""
    parsed = query.parsed
    chosen = (
        f"SELECT {parsed.strategy}"
        if parsed.strategy is not Strategy.ALL
        else f"CONSUME BY {parsed.consume}"
        if parsed.consume is not Consume.NONE
        else "LIMIT"
        if parsed.limit is not None
        else "KEEP"
        if parsed.keep is not None
        else None
    )
    if chosen is not None:
        raise QueryError(
            f"{chosen} chooses among matches, which late events add and take back: not on a disordered stream",
            hint=f"leave out {chosen}, or bound the disorder",
        )
    if query.schema.stream is not None and any(any(one.contiguous) for one in _of(query.pattern, Sequence)):
        raise QueryError("':' is of the events of one stream, and these are of several: not on a disordered stream")
    if query.parsed.needs_times:
        what = "gaps and windows inside the formula" if is_timed(query.pattern) else "NOT at an end"
        raise QueryError(
            f"{what} are of events in order: not on a disordered stream", hint="bound the disorder with disorder="
        )
    body = query.pattern
    while isinstance(body, Project | As | Filter):
        body = body.body
    parts = [one for one in body.parts if not isinstance(one, Not)] if isinstance(body, Sequence) else [body]
    # With one part of any length, the number of selected events says how long it is.
    repeated = [one for one in parts if not _is_one_event(one)]
    if sum(map(_varies, repeated)) > 1 or any(not _is_one_event(_repeated(one)) for one in repeated):
        raise QueryError(
            "the pattern may select the same events in several ways, of which an automaton tells each: not on a disordered stream",
            hint="a sequence of single events, of which one may be repeated or missing, can answer ahead; else bound the disorder",
        )


def _of(pattern: Pattern, kind: type[Sequence]) -> Iterable[Sequence]:
    return (one for one in walk(pattern) if isinstance(one, kind))


def _repeated(pattern: Pattern) -> Pattern:
    """What is repeated."""
    whole = unnamed(pattern)
    return whole.body if isinstance(whole, Plus | Repeat) else whole


def _varies(pattern: Pattern) -> bool:
    """Whether a repetition may be of several lengths."""
    whole = unnamed(pattern)
    return not isinstance(whole, Repeat) or whole.least != whole.most


def _is_one_event(pattern: Pattern) -> bool:
    """Whether a pattern is one event, which tells by its type how it is selected."""
    types = [one.type for one in walk(pattern) if isinstance(one, Atom)]
    return is_one_event(pattern) and len(set(types)) == len(types)
