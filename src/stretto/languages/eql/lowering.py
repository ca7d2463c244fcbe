"""From a draft to an :class:`~stretto.query.eql.EqlQuery`: steps are counted out and named, keys put together, pipes checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from stretto.errors import nearest
from stretto.languages.eql.transformer import Draft, Maxspan, Piped, Term
from stretto.languages.expressions.tokens import Mistake
from stretto.query.eql import EqlQuery, Key, Mode, Pipe, Step, shared_keys
from stretto.query.sase import Selection
from stretto.query.windows import Window
from stretto.times import SECONDS

_TIME = re.compile(r"([0-9.]+)\s*(\w+)")

#: Steps that a sequence may have, counted out.
MOST_STEPS = 256

#: Events of a sample, as Elasticsearch has it.
MOST_SAMPLED = 5

#: The pipes of the first EQL that Elasticsearch has not, and what does the same on a result.
_OLDER = {
    "count": "output='summary' counts matches",
    "filter": "put the condition into the event's where",
    "sort": "sort the result by the field: table.sort_by('…')",
    "unique": "take one row for each value from the result: table.group_by('…')",
    "unique_count": "group the result by the field: table.group_by('…').aggregate([([], 'count_all')])",
}


def lower(text: str, draft: Draft) -> EqlQuery:
    """Make the query a value; raise a :class:`Mistake` where its parts do not suit each other."""
    _check(draft)
    stages = tuple(_stages(draft))
    if len(stages) > MOST_STEPS:
        raise Mistake(f"the sequence has {len(stages)} steps, and {MOST_STEPS} at most", draft.terms[-1].span)
    until = None if draft.until is None else _step(draft.until, "until", draft.by)
    every = (*stages, *(() if until is None else (until,)))
    return EqlQuery(
        text=text,
        components=tuple(one.component for one in stages),
        selection=Selection.LATEST,
        references={},
        equal=shared_keys(every),
        window=None if draft.maxspan is None else _window(draft.maxspan),
        language="eql",
        mode=draft.mode,
        stages=stages,
        until=until,
        pipes=tuple(map(_pipe, draft.pipes)),
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
    if draft.mode is Mode.SAMPLE:
        _check_sample(draft, missing)
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


def _check_sample(draft: Draft, missing: Term | None) -> None:
    if len(draft.terms) > MOST_SAMPLED:
        raise Mistake(f"a sample has {MOST_SAMPLED} events at most", draft.terms[MOST_SAMPLED].span)
    if missing is not None:
        raise Mistake("a sample has no missing events", missing.span)
    odd = next((one for one in draft.terms if one.runs > 1), None)
    if odd is not None:
        raise Mistake("a sample has no runs", odd.span)
    if not draft.by and not draft.terms[0].keys:
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


def _pipe(pipe: Piped) -> Pipe:
    name = str(pipe.name)
    if name in _OLDER:
        raise Mistake(f"the pipe '{name}' is of an older EQL, and Elasticsearch has it not", pipe.span, _OLDER[name])
    if name not in ("head", "tail"):
        best = nearest(name, ("head", "tail"))
        hint = f"did you mean '{best}'?" if best else "the pipes are head and tail"
        raise Mistake(f"unknown pipe '{name}'", pipe.span, hint)
    values = [getattr(one.expression, "value", None) for one in pipe.arguments]
    if len(values) != 1 or isinstance(values[0], bool) or not isinstance(values[0], int) or values[0] < 1:
        raise Mistake(f"{name} takes one number", pipe.span, f"| {name} 10")
    return Pipe(name, values[0])
