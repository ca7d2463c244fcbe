"""References as they are written: ``b.x``, ``a[i-1].x``, ``a[a.LEN].x``, ``a.LEN``, ``avg(a[..i-1].x)``.

What a reference means is known from its own form, but not whether it suits its variable; that is for the lowering, which knows
the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lark import Token

from stretto.errors import Span
from stretto.languages.expressions.tokens import Mistake, Name, at
from stretto.query.moving import MovingAggregate
from stretto.query.sase import (
    DISTINCT,
    FUNCTIONS,
    Aggregate,
    Element,
    Index,
    Length,
    MovingElement,
    Range,
    Reference,
    Referred,
)

_LENGTH = "LEN"

_PLACES: dict[str, Index | Range] = {
    "1": Index.FIRST,
    "i": Index.EACH,
    "i-1": Index.BEFORE,
    "": Range.ALL,
    "..i": Range.UP_TO,
    "..i-1": Range.BEFORE,
}


@dataclass(frozen=True, slots=True)
class Place:
    """The brackets after a variable; ``meaning`` is ``None`` for what the language has no meaning for.

    ``owner`` is the variable whose length is the index.
    """

    meaning: Index | Range | None
    written: str
    span: Span
    owner: str | None = None


def place(tokens: Sequence[Token]) -> Place:
    """``[1]``, ``[i-1]``, ``[a.LEN]``, ``[..i]``, ``[]`` or any other brackets."""
    span = at(tokens[0]) | at(tokens[-1])
    written = "".join(tokens)
    inside = tokens[1:-1]
    if len(inside) == 3 and inside[1].type == "DOT" and inside[2].upper() == _LENGTH:
        return Place(Index.LAST, written, span, str(inside[0]))
    return Place(_PLACES.get(written[1:-1].casefold()), written, span)


def bare(word: Token) -> Referred:
    """A name by itself, which is a mistake; which one depends on the pattern."""
    return Referred(str(word), at(word), None, at(word))


def member(variable: Token, attribute: Name) -> Referred:
    """``b.x`` or ``a.LEN``; an attribute of that name is written in quotes."""
    name = str(variable)
    reference: Reference = Element(name, Index.ONLY, attribute.text)
    if attribute.bare and attribute.text.upper() == _LENGTH:
        reference = Length(name)
    return _referred(reference, at(variable) | attribute.span, variable)


def element(variable: Token, where: Place, attribute: Name) -> Referred:
    """``a[i].x``."""
    name = str(variable)
    if where.meaning is None:
        raise _no_such_index(name, where)
    if where.owner is not None and where.owner != name:
        raise Mistake(
            f"the last event of '{name}' is {name}[{name}.LEN], not {name}{where.written}",
            where.span,
            f"write {name}[{name}.LEN].{attribute.text}",
        )
    if isinstance(where.meaning, Range):
        # Several events by themselves are a mistake; which one depends on what stands around them.
        several = Aggregate("", name, where.meaning, attribute.text)
        return Referred(f"{name}{where.written}.{attribute.text}", where.span, several, at(variable))
    return _referred(Element(name, where.meaning, attribute.text), at(variable) | attribute.span, variable)


def _no_such_index(name: str, where: Place) -> Mistake:
    forms = {"[len]": f"{name}[{name}.LEN]", "[0]": f"{name}[1]"}
    meant = forms.get(where.written.casefold())
    return Mistake(
        f"{name}{where.written} has no meaning",
        where.span,
        f"did you mean {meant}?"
        if meant
        else f"an index is one of {name}[1], {name}[i], {name}[i-1], {name}[{name}.LEN]",
    )


def events(variable: Token, where: Place) -> Referred:
    """``a[]``: all events of a repetition."""
    name = str(variable)
    if where.meaning is not Range.ALL:
        raise Mistake(
            f"{name}{where.written} is no value", at(variable) | where.span, f"count({name}[]) counts its events"
        )
    return Referred(f"{name}[]", at(variable) | where.span, Aggregate("", name, Range.ALL, None), at(variable))


#: ``avg(a[i-1].x)`` is short for ``avg(a[..i-1].x)`` (SASE+ paper, figure 1 and section 2).
_AGGREGATED: dict[Index | Range | None, Range] = {one: one for one in Range} | {Index.BEFORE: Range.BEFORE}


def aggregate(
    function: Token,
    variable: Token,
    where: Place | None,
    attribute: Name | None,
    closing: Token,
    distinct: Token | None = None,
) -> Referred:
    """``avg(a[..i-1].x)``, ``count(a[])``, ``count(DISTINCT a[].x)``; ``first(a[].x)`` is ``a[1].x``."""
    known = function.lower()
    ends = {"first": Index.FIRST, "last": Index.LAST}
    if known in ends and attribute is not None:
        return _referred(Element(str(variable), ends[known], attribute.text), at(function) | at(closing), variable)
    if distinct is not None:
        over = where.meaning if where else None
        if known != "count" or attribute is None or over is not Range.ALL:
            raise Mistake(
                "DISTINCT is for count over all events",
                at(distinct),
                "RETURN has count(DISTINCT a[].x); a condition has that of the latest events: count(DISTINCT b.x) OVER 1 minute",
            )
        reference = Aggregate(DISTINCT, str(variable), over, attribute.text)
        return _referred(reference, at(function) | at(closing), variable)
    name = str(variable)
    if known not in FUNCTIONS:
        raise unknown_aggregate(function)
    over = _AGGREGATED.get(where.meaning if where else None)
    shown = "" if attribute is None else f".{attribute.text}"
    if over is None:
        alone = f", or {name}{shown} if '{name}' is one event" if where is None and shown else ""
        raise Mistake(
            f"{known} goes over several events of a Kleene plus",
            at(variable) | (where.span if where else at(variable)),
            f"write {known}({name}[]{shown}), {known}({name}[..i-1]{shown}) or {known}({name}[..i]{shown}){alone}",
        )
    if attribute is None and known != "count":
        assert where is not None
        raise Mistake(
            f"{known} needs an attribute",
            at(variable) | where.span,
            f"write {known}({name}{where.written}.price)",
        )
    reference = Aggregate(known, name, over, None if attribute is None else attribute.text)
    return _referred(reference, at(function) | at(closing), variable)


def unknown_aggregate(function: Token) -> Mistake:
    """A function over several events that the language does not have."""
    close = function.lower() in ("average", "mean")
    hint = "did you mean 'avg'?" if close else f"known functions: {', '.join(FUNCTIONS)}"
    return Mistake(f"unknown function '{function}'", at(function), hint)


def is_several(expression: object) -> bool:
    """Tell whether an expression is ``a[].x``, without an aggregate around it."""
    reference = expression.reference if isinstance(expression, Referred) else None
    return isinstance(reference, Aggregate) and not reference.function


def moving(aggregate: MovingAggregate, span: Span, variable: Token) -> Referred:
    """``count(b.x) OVER 1 minute``."""
    reference = MovingElement(aggregate.variable, Index.ONLY, aggregate.name, aggregate=aggregate)
    return _referred(reference, span, variable)


def _referred(reference: Reference, span: Span, variable: Token) -> Referred:
    return Referred(str(reference), span, reference, at(variable))
