"""From a draft to an :class:`~stretto.query.eql.EqlQuery`: steps are counted out and named, keys put together, pipes checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from stretto.errors import Span, nearest
from stretto.languages.eql.transformer import Draft, Maxspan, Piped, Term, decided
from stretto.languages.expressions.tokens import Mistake
from stretto.query import predicate as p
from stretto.query.eql import EqlQuery, Mode, OfEvent, Pipe, Step, shared_keys
from stretto.query.plan import Key
from stretto.query.windows import Window
from stretto.times import SECONDS

_TIME = re.compile(r"([0-9.]+)\s*(\w+)")

#: Steps that a sequence may have, counted out.
MOST_STEPS = 256

#: Events of what has no order: of a sample as Elasticsearch has it, of a join as many as its engine tells apart.
MOST_UNORDERED = {Mode.SAMPLE: 5, Mode.JOIN: 8}

#: Pipes, each of which goes through what the one before gives.
MOST_PIPES = 64

#: The greatest number of rows that a pipe is asked for.
MOST_ROWS = (1 << 63) - 1

PIPES = ("filter", "head", "sort", "tail", "unique")

#: The pipes of the first EQL that are not here, and what does the same on a result.
_OLDER = {
    "count": "count the rows of the result: table.num_rows, or table.group_by('…').aggregate([([], 'count_all')])",
    "unique_count": "group the result by the field: table.group_by('…').aggregate([([], 'count_all')])",
}


def lower(text: str, draft: Draft) -> EqlQuery:
    """Make the query a value; raise a :class:`Mistake` where its parts do not suit each other."""
    _check(draft)
    stages = tuple(_stages(draft))
    if len(stages) > MOST_STEPS:
        raise Mistake(f"the sequence has {len(stages)} steps, and {MOST_STEPS} at most", draft.terms[-1].span)
    if len(draft.pipes) > MOST_PIPES:
        raise Mistake(f"a query has {MOST_PIPES} pipes at most", draft.pipes[MOST_PIPES].span)
    until = None if draft.until is None else _step(draft.until, "until", draft.by)
    every = (*stages, *(() if until is None else (until,)))
    return EqlQuery(
        text=text,
        partition_by=shared_keys(every),
        window=None if draft.maxspan is None else _window(draft.maxspan),
        mode=draft.mode,
        stages=stages,
        until=until,
        pipes=tuple(_pipe(one, sum(not step.missing for step in stages)) for one in draft.pipes),
    )


def _check(draft: Draft) -> None:
    terms = draft.terms
    positive = [one for one in terms if not one.missing]
    missing = next((one for one in terms if one.missing), None)
    if draft.mode is Mode.EVENT:
        return
    if not positive:
        raise Mistake(f"a {draft.mode} has one event at least that must come", terms[0].span)
    if len(terms) == 1 and terms[0].runs == 1:
        raise Mistake(
            f"a {draft.mode} has two events at least", terms[0].span, "an event alone stands without brackets"
        )
    if draft.mode in MOST_UNORDERED:
        _check_unordered(draft, missing)
    elif missing is not None and draft.maxspan is None:
        raise Mistake(
            "a missing event needs a time within which it does not come",
            missing.span,
            "add with maxspan=… behind sequence",
        )
    counts = {len(one.keys) for one in (*terms, *(() if draft.until is None else (draft.until,)))}
    if len(counts) > 1:
        odd = next(
            one
            for one in (*terms, *(() if draft.until is None else (draft.until,)))
            if len(one.keys) != len(terms[0].keys)
        )
        raise Mistake(
            f"this event has {len(odd.keys)} keys, and the first one {len(terms[0].keys)}",
            odd.span,
            "each event says by which field it is joined: [ … ] by a [ … ] by b",
        )


def _check_unordered(draft: Draft, missing: Term | None) -> None:
    most = MOST_UNORDERED[draft.mode]
    if len(draft.terms) > most:
        raise Mistake(f"a {draft.mode} has {most} events at most", draft.terms[most].span)
    if missing is not None:
        raise Mistake(f"a {draft.mode} has no missing events", missing.span)
    odd = next((one for one in draft.terms if one.runs > 1), None)
    if odd is not None:
        raise Mistake(f"a {draft.mode} has no runs", odd.span)
    if draft.mode is Mode.SAMPLE and not draft.by and not draft.terms[0].keys:
        raise Mistake("a sample needs keys", draft.terms[0].span, "sample by host.id [ … ] [ … ]")


def _stages(draft: Draft) -> Iterator[Step]:
    """The steps, each event of ``with runs`` by itself."""
    number = 0
    for at, term in enumerate(draft.terms):
        for _ in range(1 if term.missing else term.runs):
            number += not term.missing
            yield _step(term, f"not{at + 1}" if term.missing else f"e{number}", draft.by)


def _step(term: Term, variable: str, by: tuple[Key, ...]) -> Step:
    event = term.event
    for node in p.walk(event.condition):
        if isinstance(node, OfEvent):
            raise Mistake(f"'{node}' is of a whole match", _span(node), f"| filter {node} … behind the query")
    return Step(variable, event.category, event.condition, (*by, *term.keys), term.missing, event.span, event.place)


def _window(maxspan: Maxspan) -> Window:
    found = _TIME.fullmatch(maxspan.text)
    assert found is not None
    unit = SECONDS.get(found[2].casefold())
    if unit is None:
        best = nearest(found[2], SECONDS)
        hint = f"did you mean '{best}'?" if best else "units are ms, s, m, h, d"
        raise Mistake(f"unknown unit '{found[2]}'", maxspan.span, hint)
    seconds = Decimal(found[1]) * Decimal(str(unit))
    if not seconds:
        raise Mistake("maxspan is more than nothing", maxspan.span)
    return Window(seconds=seconds, span=maxspan.span)


def _pipe(pipe: Piped, events: int) -> Pipe:
    """A pipe behind a query whose matches have so many events."""
    name = str(pipe.name)
    if name in _OLDER:
        raise Mistake(f"the pipe '{name}' is of an older EQL, and is not here", pipe.span, _OLDER[name])
    if name not in PIPES:
        best = nearest(name, PIPES)
        hint = f"did you mean '{best}'?" if best else f"the pipes are {', '.join(PIPES)}"
        raise Mistake(f"unknown pipe '{name}'", pipe.span, hint)
    if name in ("filter", "sort", "unique"):
        return _of_fields(name, pipe, events)
    values = [getattr(one.expression, "value", None) for one in pipe.arguments]
    if len(values) != 1 or isinstance(values[0], bool) or not isinstance(values[0], int) or values[0] < 1:
        raise Mistake(f"{name} takes one number", pipe.span, f"| {name} 10")
    if values[0] > MOST_ROWS:
        raise Mistake(f"{name} takes {MOST_ROWS:,} at most", pipe.span)
    return Pipe(name, values[0])


def _of_fields(name: str, pipe: Piped, events: int) -> Pipe:
    """A pipe that reads events."""
    if name == "filter":
        if len(pipe.arguments) != 1:
            raise Mistake("filter takes one condition", pipe.span, "| filter x > 5")
        found = Pipe(name, condition=decided(pipe.arguments[0]))
    else:
        fields = tuple(one.expression for one in pipe.arguments if isinstance(one.expression, p.Attribute))
        if not fields or len(fields) != len(pipe.arguments):
            raise Mistake(f"{name} takes fields", pipe.span, f"| {name} x, y")
        found = Pipe(name, fields=fields)
    for shown, (number, field) in found.reads.items():
        if number >= events:
            told = "one event" if events == 1 else f"{events} events"
            raise Mistake(f"'{shown}': a match has {told}, counted from 0", _span(field))
    return found


def _span(node: p.Attribute) -> Span:
    assert node.span is not None
    return node.span
