"""Counts and sums over all matches, the best of them and a sample, as CEQL and SASE+ write them: from clauses to a value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol

from lark import Token, Transformer, v_args

from stretto.errors import Span, nearest, suggestion
from stretto.languages.expressions.clauses import Clause, Columns, Measure, Seen, window_of
from stretto.languages.expressions.tokens import Mistake, Name, at, number_of
from stretto.query import predicate as p
from stretto.query.totals import Asked, Best, Extent, Function, GroupKey, Sample, Scope, Total, Totals
from stretto.query.windows import Window

_OTHER_NAMES = {"AVERAGE": Function.AVG, "MEAN": Function.AVG}

#: The type that totals are cast to, and what else it is called.
_DOUBLES = ("DOUBLE", "FLOAT8", "FLOAT64")


@dataclass(frozen=True, slots=True)
class Called:
    """``SUM(b[volume])``; ``value`` is ``None`` for ``COUNT(*)``, and ``distinct`` the variables of ``COUNT(DISTINCT a, b)``."""

    function: Function
    span: Span
    variable: Name | None = None
    value: p.Operand | None = None
    distinct: tuple[Name, ...] | None = None
    floating: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An item of SELECT or RETURN TOTAL; ``name`` is that after AS."""

    called: Called
    name: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Order:
    """``ORDER BY``: what is added up, each with its factor."""

    terms: tuple[tuple[Called, int | Decimal], ...]
    descending: bool


class Asking(Seen, Protocol):
    """The clauses that say over which matches one asks, and which of them are given."""

    window: Window | None
    limit: int | None
    group_by: tuple[tuple[Name | None, Name], ...] | None
    every: Window | None
    order: Order | None
    sample: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Variables:
    """What a pattern binds: all variables, those that may hold several events, and those of events that must not come.

    ``keyed`` is how the language says that an attribute is a key.
    """

    known: Collection[str]
    several: Collection[str]
    absent: Collection[str] = ()
    keyed: str = "PARTITION BY [{}]"

    def check(self, name: Name) -> None:
        """Refuse a variable that no match has."""
        if name.text in self.absent:
            raise Mistake(f"'{name.text}' must not come: a match has no such event", name.span)
        if name.text not in self.known:
            raise Mistake(
                f"unknown variable '{name.text}'", name.span, suggestion(name.text, sorted(self.known), kind="variable")
            )


def function_of(word: Token) -> Function:
    """Read the name of a function over all matches."""
    known = word.upper()
    if known in _OTHER_NAMES:
        return _OTHER_NAMES[known]
    names = [str(one) for one in Function]
    if known not in names:
        close, listed = nearest(known, names), ", ".join(names)
        raise Mistake(
            f"unknown function '{word}'",
            at(word),
            f"did you mean '{close}'?" if close else f"known functions: {listed}",
        )
    return Function(known)


def count_all(function: Token, closing: Token) -> Called:
    """``COUNT(*)``."""
    span = at(function) | at(closing)
    if function_of(function) is not Function.COUNT:
        raise Mistake(f"{function.upper()} needs a value", span, "COUNT(*) counts matches")
    return Called(Function.COUNT, span)


@v_args(inline=True)
class AskingTransformer(Transformer[Token, Any]):
    """The callbacks of ``totals.lark``."""

    def total(self, called: Called, *rest: Token | Name) -> Item:
        name = rest[-1] if rest else None
        assert not isinstance(name, Token)
        return Item(called, name, called.span | name.span if name else called.span)

    def floating(self, keyword: Token, _: Token, called: Called, __: Token, word: Token, closing: Token) -> Called:
        if word.upper() not in _DOUBLES:
            raise Mistake(f"totals are cast to DOUBLE only, not to {word}", at(word), "CAST(… AS DOUBLE)")
        span = at(keyword) | at(closing)
        if called.function not in (Function.COUNT, Function.SUM):
            raise Mistake(f"{called.function} does not overflow, and needs no CAST", span)
        return replace(called, floating=True, span=span)

    def weighted(self, *parts: Token | Called) -> tuple[Called, int | Decimal]:
        (called,) = (part for part in parts if isinstance(part, Called))
        numbers = [number_of(part) for part in parts if isinstance(part, Token) and part.type == "NUMBER"]
        return called, numbers[0] if numbers else 1

    def score(self, *parts: Token | tuple[Called, int | Decimal]) -> tuple[tuple[Called, int | Decimal], ...]:
        terms, sign = [], 1
        for part in parts:
            if isinstance(part, Token):
                sign = -1 if part.type == "MINUS" else 1
            else:
                terms.append((part[0], sign * part[1]))
        return tuple(terms)

    # ---- Clauses

    def group_clause(self, keyword: Token, _: Token, *parts: Token | tuple[tuple[Name | None, Name], ...]) -> Clause:
        keys = tuple(key for part in parts if not isinstance(part, Token) for key in part)
        return Clause("GROUP BY", keyword, "group_by", keys, "separate the groups with commas")

    def every_clause(self, keyword: Token, *parts: Token | Measure | Columns) -> Clause:
        measures = [part for part in parts if not isinstance(part, Token)]
        slide = window_of(measures, bare=True) if measures else None
        return Clause("EVERY", keyword, "every", slide)

    def order_clause(self, keyword: Token, _: Token, terms: Any, *rest: Token) -> Clause:
        descending = bool(rest) and rest[0].type == "DESC"
        return Clause(
            "ORDER BY", keyword, "order", Order(terms, descending), "add the scores up: SUM(a[x]) + SUM(b[x])"
        )

    def sample_clause(self, keyword: Token, *tokens: Token) -> Clause:
        numbers = [number_of(one) for one in tokens if one.type == "NUMBER"]
        most, seed = numbers[0], numbers[-1] if len(numbers) > 1 else 0
        if any(one.type == "MINUS" for one in tokens) or not isinstance(most, int) or not 0 < most < 1 << 31:
            raise Mistake("SAMPLE takes a positive integer", at(tokens[0]))
        if not isinstance(seed, int) or seed >= 1 << 63:
            raise Mistake("SEED takes an integer of 64 bits", at(tokens[-1]))
        return Clause("SAMPLE", keyword, "sample", (most, seed))


# ---- Lowering


def asked(
    items: Sequence[Item] | None,
    clauses: Asking,
    variables: Variables,
    shown: Collection[str] | None,
    keys: dict[str, str],
) -> Asked | None:
    """Make what is asked of all matches a value; ``None``: nothing is, and matches are listed.

    Parameters
    ----------
    items
        The counts and sums, where there are some.
    clauses, variables
        The rest of the query.
    shown
        The variables that a result shows, which tell one match from another; ``None``: all.
    keys
        The attributes of the partition, by what results call them.
    """
    if items is not None:
        distinct = _distinct(items)
        shown = shown if distinct is None else {name.text for name in distinct}
        totals = _named(items, variables, shown)
        for title, hint in _NOT_WITH_TOTALS.items():
            if title in clauses.seen:
                raise Mistake(
                    f"{title} is of matches, and this query gives counts and sums of them", clauses.seen[title], hint
                )
        scope = _scope(clauses, variables, shown, keys, [one.name for one in totals])
        return Totals(totals, scope, None if distinct is None else tuple(name.text for name in distinct))
    if clauses.order is None and clauses.sample is None:
        for title in ("GROUP BY", "EVERY"):
            if title in clauses.seen:
                raise Mistake(
                    f"{title} says over which matches one counts, and this query lists each of them",
                    clauses.seen[title],
                    "count them: COUNT(*), SUM(b[x]); or take some: ORDER BY SUM(b[x]) DESC LIMIT 3, SAMPLE 100",
                )
        return None
    _check_choosing(clauses)
    scope = _scope(clauses, variables, shown, keys, [])
    if clauses.sample is not None:
        return Sample(*clauses.sample, scope)
    assert clauses.order is not None
    assert clauses.limit is not None
    score = tuple(_scored(called, variables, shown) for called, _ in clauses.order.terms)
    factors = tuple(factor for _, factor in clauses.order.terms)
    return Best(score, factors, clauses.order.descending, clauses.limit, scope)


#: What does not go with counts and sums, and what to do instead.
_NOT_WITH_TOTALS = {
    "LIMIT": "leave out LIMIT, which is the most matches that an event gives",
    "ORDER BY": "leave it out, or list the best matches: SELECT * … ORDER BY SUM(b[x]) DESC LIMIT 3",
    "SAMPLE": "leave it out, or list the sample: SELECT * … SAMPLE 100",
    "KEEP": "count the rows of the query with KEEP",
    "AFTER MATCH": "count the rows of the query with AFTER MATCH",
    "OUTPUT": "leave out OUTPUT",
}


def _check_choosing(clauses: Asking) -> None:
    """What chooses matches does so alone."""
    own = "SAMPLE" if clauses.order is None else "ORDER BY"
    others = ["KEEP", "AFTER MATCH", "OUTPUT", *(("LIMIT",) if own == "SAMPLE" else ("SAMPLE",))]
    for title in others:
        if title in clauses.seen:
            raise Mistake(
                f"{title} chooses among matches, and so does {own}", clauses.seen[title], f"leave out {title}"
            )
    if clauses.order is not None and clauses.limit is None:
        raise Mistake("ORDER BY takes the best matches; how many?", clauses.seen["ORDER BY"], "add LIMIT 10")


def _distinct(items: Sequence[Item]) -> tuple[Name, ...] | None:
    """What COUNT(DISTINCT …) says tells one match from another, for all items of the query."""
    found: tuple[Name, ...] | None = None
    for item in items:
        own = item.called.distinct
        if own is None:
            continue
        if found is not None and {name.text for name in own} != {name.text for name in found}:
            raise Mistake(
                "two different DISTINCT in one query: what tells its matches apart is the same for all items",
                item.span,
                "make two queries of it",
            )
        found = own
    return found


def _named(items: Sequence[Item], variables: Variables, shown: Collection[str] | None) -> tuple[Total, ...]:
    found: dict[str, Total] = {}
    for item in items:
        total = _total(item.called, variables, shown)
        name = item.name.text if item.name else _name(total)
        if name is None:
            raise Mistake("a computed item needs a name", item.span, "write … AS name")
        if name in found:
            span = item.name.span if item.name else item.span
            raise Mistake(f"two items have the name '{name}'", span, "give one of them another name with AS")
        found[name] = replace(total, name=name)
    return tuple(found.values())


def _total(called: Called, variables: Variables, shown: Collection[str] | None) -> Total:
    for name in called.distinct or ():
        variables.check(name)
    if called.variable is not None:
        variables.check(called.variable)
        _check_shown(called.variable, shown)
    variable = None if called.variable is None else called.variable.text
    return Total(called.function, variable, called.value, "", called.floating, called.span)


def _check_shown(variable: Name, shown: Collection[str] | None) -> None:
    """Matches that are one may have other events of a variable that they do not show."""
    if shown is not None and variable.text not in shown:
        raise Mistake(
            f"the matches are told apart by {', '.join(sorted(shown)) or 'their ends'} only, and may differ in '{variable.text}'",
            variable.span,
            f"name '{variable.text}' there, too",
        )


def _scored(called: Called, variables: Variables, shown: Collection[str] | None) -> Total:
    if called.function not in (Function.COUNT, Function.SUM) or called.distinct is not None:
        raise Mistake(
            f"a score adds up over the events of a match, which {called.function} does not",
            called.span,
            "scores are made of SUM and COUNT",
        )
    if called.variable is None:
        raise Mistake("COUNT(*) counts matches, and a score is of one match", called.span, "COUNT(b) counts its events")
    return replace(_total(called, variables, shown), name="score")


def _name(total: Total) -> str | None:
    """The name of an item without AS."""
    function = total.function.lower()
    if total.variable is None:
        return function
    variable = total.variable.replace(">", "_")
    if isinstance(total.value, p.Constant):
        return f"{function}_{variable}"
    if isinstance(total.value, p.Attribute):
        return f"{function}_{variable}_{total.value.name.replace('.', '_')}"
    return None


def _scope(
    clauses: Asking,
    variables: Variables,
    shown: Collection[str] | None,
    keys: dict[str, str],
    taken: Sequence[str],
) -> Scope:
    """Over which matches a row, or a choice of matches, is."""
    groups = None
    if clauses.group_by is not None:
        groups = tuple(_group(variable, column, variables, shown, keys) for variable, column in clauses.group_by)
        names = [one.name for one in groups]
        for number, one in enumerate(groups):
            if one.name in (*names[:number], *taken):
                raise Mistake(f"two columns have the name '{one.name}'", one.span, "name the item with AS")
    if "EVERY" not in clauses.seen:
        return Scope(Extent.TABLE, None, groups)
    span, slide = clauses.seen["EVERY"], clauses.every
    if slide is None:
        return Scope(Extent.EVENT, None, groups, span)
    return Scope(Extent.WINDOW, _slide(slide, clauses), groups, span)


def _group(
    variable: Name | None, column: Name, variables: Variables, shown: Collection[str] | None, keys: dict[str, str]
) -> GroupKey:
    if variable is None:
        if column.text not in keys:
            raise Mistake(
                f"[{column.text}] is no key of the partition",
                column.span,
                f"{variables.keyed.format(column.text)}, or an attribute of a variable that has one event",
            )
        return GroupKey(None, keys[column.text], column.text, column.span)
    variables.check(variable)
    span = variable.span | column.span
    if variable.text in variables.several:
        raise Mistake(
            f"'{variable.text}' may hold several events, and a group has one value",
            span,
            "group by an attribute of a variable that has one event",
        )
    _check_shown(variable, shown)
    name = f"{variable.text.replace('>', '_')}_{column.text.replace('.', '_')}"
    return GroupKey(variable.text, column.text, name, span)


def _slide(slide: Window, clauses: Asking) -> Window:
    """How far apart windows begin, in what WITHIN measures."""
    size, span = clauses.window, slide.span
    if size is None:
        raise Mistake("EVERY says how often a window begins, and nothing how long it is", span, "add WITHIN 10 minutes")
    if not (slide.events or slide.seconds or slide.number):
        raise Mistake("windows begin one after the other, not EVERY 0", span)
    if (slide.events is None) is not (size.events is None):
        raise Mistake(
            "WITHIN and EVERY measure two different things",
            span,
            "WITHIN 100 EVENTS EVERY 10 EVENTS, or WITHIN 10 minutes EVERY 1 minute",
        )
    if slide.attribute is not None and slide.attribute != size.attribute:
        raise Mistake(f"WITHIN does not measure '{slide.attribute}'", slide.attribute_span, "windows have one measure")
    if slide.number is not None and slide.attribute is None and size.number is None:
        raise Mistake(f"{slide.number} of what?", span, "write a unit, as in EVERY 1 minute")
    return replace(slide, attribute=size.attribute)
