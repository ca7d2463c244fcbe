"""What a query asks of single events: their types, the conditions that read no other event, and the keys that they must have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stretto.errors import QueryError, Span
from stretto.query import predicate as p
from stretto.query.algebra import Atom, Filter, Not, Or, Pattern, Project, Repeat, Sequence, children, fold
from stretto.query.eql import Mode
from stretto.query.passes.bind import BoundQuery, typed_filter
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.push_filters import push_filters
from stretto.query.sase import Component, Element, Group, Index, Part, SaseQuery, Selection
from stretto.query.windows import Window


@dataclass(frozen=True)
class LocalPredicate:
    """A part of a query: as it is written, where, and as a typed condition on one event."""

    text: str
    place: str  #: such as ``line 1, column 40``; empty where it is not known
    condition: p.Predicate


@dataclass(frozen=True)
class EventRequirement:
    """What every match has an event of: one of some types (none: any) that fulfils all conditions and has all keys.

    ``stream`` is ``None`` where the event may come from any of the query's streams.
    """

    types: tuple[str, ...]
    stream: str | None
    asked: tuple[LocalPredicate, ...]
    keys: tuple[LocalPredicate, ...]


def event_requirements(bound: BoundQuery | BoundSase) -> list[EventRequirement]:
    """What a bound query asks of single events; nothing of what may be missing, nor of what must not come.

    >>> import pyarrow as pa
    >>> from stretto.events import Schema
    >>> from stretto.languages.ceql import parse
    >>> from stretto.query.passes.bind import bind
    >>> query = parse("SELECT * FROM S WHERE A ; B AS b ; NOT C ; D FILTER b[x > 5 AND x < 7]")
    >>> found = event_requirements(bind(query, Schema({"type": pa.string(), "x": pa.int64()})))
    >>> [(one.types, [(part.text, part.place) for part in one.asked]) for one in found]
    [(('A',), []), (('B',), [('b[x > 5]', 'line 1, column 55'), ('b[x < 7]', 'line 1, column 65')]), (('D',), [])]
    """
    if isinstance(bound, BoundEql):
        return list(_of_eql(bound))
    if isinstance(bound, BoundSase):
        return list(_of_sase(bound))
    return _of_ceql(bound)


def least_events(bound: BoundQuery | BoundSase) -> int:
    """How many events each match has at least."""
    if isinstance(bound, BoundEql):
        return 1 if bound.eql.mode in (Mode.SAMPLE, Mode.JOIN) else sum(not one.missing for one in bound.eql.stages)
    return _least_of(bound.parsed.parts) if isinstance(bound, BoundSase) else _least(bound.parsed.pattern)


def place_of(text: str, span: Span | None) -> str:
    """Where something stands in a query's text; empty where it is not known.

    >>> place_of("SELECT *\\nFROM S", Span(9, 13))
    'line 2, column 1'
    """
    where = QueryError("", text=text, span=span)
    return "" if where.line is None else f"line {where.line}, column {where.column}"


def window_place(bound: BoundQuery | BoundSase) -> str:
    """Where the window of a query stands."""
    window: Window | None = bound.parsed.window
    return "" if window is None else place_of(bound.parsed.text, window.span)


def _asked(text: str, before: str, condition: p.Predicate, after: str = "") -> Iterator[LocalPredicate]:
    """A condition, one for each part of an AND."""
    parts = condition.parts if isinstance(condition, p.And) else (condition,)
    for part in parts:
        if not p.calls(part):  # functions of the user are called in kernels only
            yield LocalPredicate(f"{before}{part}{after}", place_of(text, getattr(part, "span", None)), part)


def _keys(bound: BoundQuery | BoundSase) -> tuple[LocalPredicate, ...]:
    """The keys of all events of a match."""
    parsed = bound.parsed
    spans = bound.parsed.partition_spans if isinstance(bound, BoundQuery) else bound.parsed.equal_spans
    names = [name for name in parsed.partition_by if name in bound.schema.attributes]
    if not isinstance(bound, BoundQuery) and bound.parsed.selection is Selection.STRICT and least_events(bound) < 2:
        return ()  # there is nothing that its key could differ from
    written = dict(zip(parsed.partition_by, spans, strict=False))
    return tuple(
        LocalPredicate(name, place_of(parsed.text, written.get(name)), p.Not(p.IsNull(p.Attribute(name))))
        for name in names
    )


# ---- CEQL


def _of_ceql(bound: BoundQuery) -> list[EventRequirement]:
    parsed, keys = bound.parsed, _keys(bound)

    # Alternatives of which one will do, with the same conditions, stand together.
    types: dict[tuple[int, str | None, tuple[LocalPredicate, ...]], list[str]] = {}
    todo: list[tuple[Pattern, tuple[LocalPredicate, ...], int | None]] = [
        (push_filters(fold(parsed.pattern, lambda node: typed_filter(node, bound.schema))), (), None)
    ]
    while todo:
        node, above, choice = todo.pop()
        match node:
            case Atom(type, stream):
                own = len(types) if choice is None else -choice
                types.setdefault((own, stream, above), []).append(type)
            case Filter(body, variable, predicate):
                todo.append((body, (*_asked(parsed.text, f"{variable}[", predicate, "]"), *above), choice))
            case Not() | Repeat(least=0):
                pass
            case Project(body):  # what is dropped is asked nothing
                todo.append((body, (), choice))
            case _:
                if isinstance(node, Or) and choice is None:
                    choice = len(types) + 1
                todo += [(child, above, choice) for child in reversed(children(node))]
    return [
        EventRequirement(tuple(dict.fromkeys(own)), stream, asked, keys) for (_, stream, asked), own in types.items()
    ]


def _least(pattern: Pattern) -> int:
    """How many events each match of a pattern has at least."""
    least: dict[int, int] = {}

    def visit(node: Pattern) -> Pattern:
        below = [least[id(child)] for child in children(node)]
        match node:
            case Atom():
                found = 1
            case Not():
                found = 0
            case Or():
                found = min(below)
            case Sequence():
                found = sum(below)
            case Repeat(_, times):
                found = times * below[0]
            case _:
                found = below[0]
        least[id(node)] = found
        return node

    fold(pattern, visit, rebuild=False)
    return least[id(pattern)]


# ---- SASE+ and EQL


def _of_sase(bound: BoundSase) -> Iterator[EventRequirement]:
    parsed, keys = bound.parsed, _keys(bound)
    condition = bound.condition
    parts = () if condition is None else condition.parts if isinstance(condition, p.And) else (condition,)
    for one in parsed.positive:
        if one.variable not in parsed.optional:
            own = tuple(found for part in parts for found in _of_event(part, one, parsed))
            yield EventRequirement(one.types, None, own, keys)


def _of_event(condition: p.Predicate, component: Component, parsed: SaseQuery) -> Iterator[LocalPredicate]:
    """A condition on an event that a component always has, with the names of its attributes."""
    references = [parsed.references[name] for name in p.attributes(condition)]
    sure = {Index.ONLY, Index.FIRST, *([Index.EACH] if component.least > 1 else [])}
    names = {}
    for name, one in zip(p.attributes(condition), references, strict=True):
        if not isinstance(one, Element) or one.variable != component.variable or one.index not in sure:
            return
        names[name] = one.attribute
    if names and not p.calls(condition):
        text, span = str(condition), getattr(condition, "span", None)
        yield LocalPredicate(text, place_of(parsed.text, span), p.renamed(condition, names))


def _least_of(parts: Iterable[Part], choice: bool = False) -> int:
    """How many events each match of some parts has at least; of a ``choice``, of one of them."""
    found = []
    for part in parts:
        if isinstance(part, Group):
            found.append(part.least * _least_of(part.parts, part.choice))
        elif not part.negated:
            found.append(part.least)
    return min(found, default=0) if choice else sum(found)


def _of_eql(bound: BoundEql) -> Iterator[EventRequirement]:
    text = bound.eql.text
    for stage, condition in zip(bound.eql.stages, bound.step_conditions, strict=False):
        if stage.missing:
            continue
        keys = tuple(
            LocalPredicate(key.name, place_of(text, key.span), p.Not(p.IsNull(p.Attribute(key.name))))
            for key in stage.keys
            if not key.optional
        )
        asked = () if condition == p.And(()) else tuple(_asked(text, f"{stage.variable}[", condition, "]"))
        yield EventRequirement(() if stage.category is None else (stage.category,), None, asked, keys)
