"""The clauses that the languages share: WITHIN and LIMIT, lists of attributes, and each clause at most once."""

from __future__ import annotations

import decimal
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol

from lark import Token, Transformer, v_args

from stretto.errors import Span, nearest, suggestion
from stretto.languages.expressions.tokens import LONGEST_NUMBER, Mistake, Name, at, find, name_of, number_of
from stretto.languages.expressions.transformer import Over
from stretto.query.query import Keep, Skip
from stretto.query.windows import Window
from stretto.times import SECONDS

EXACT = decimal.Context(prec=4 * LONGEST_NUMBER)
"""Arithmetic that rounds no number that a query may have."""

_COUNTS = ("events", "event")
_EXTENTS = ("LONGEST", "SHORTEST")
_EVENTS = ("EVENT", "ROW")
_UNITS_SHOWN = ("events", "seconds", "minutes", "hours", "days", "weeks", "ms", "us", "ns")


@dataclass(frozen=True, slots=True)
class Columns:
    """A list of attributes in brackets: ``[a, b]``."""

    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a WITHIN clause with its unit, if it has one."""

    number: int | Decimal
    written: str
    unit: Token | None
    span: Span


@dataclass(frozen=True, slots=True)
class Counts:
    """How often something is repeated; ``most`` is ``None`` for any number. ``span`` ends with the closing brace."""

    least: int
    most: int | None
    span: Span


class Seen(Protocol):
    """The clauses of a query, as far as they are read."""

    seen: dict[str, Span]


class Choosing(Seen, Protocol):
    """The clauses that choose among matches."""

    extent: bool | None
    skip: Keep | None


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause: its keyword, and the field of the language's clauses that it fills."""

    title: str
    keyword: Token
    field: str
    value: object
    hint: str | None = None  #: what to do instead of a second one

    def put(self, clauses: Seen) -> None:
        if self.title in clauses.seen:
            raise Mistake(f"a second {self.title} clause", at(self.keyword), self.hint)
        clauses.seen[self.title] = at(self.keyword)
        setattr(clauses, self.field, self.value)


@v_args(inline=True)
class ClauseTransformer(Transformer[Token, Any]):
    """The callbacks that read what clauses are made of."""

    #: Whether ``WITHIN 1000`` is a number in the unit of the stream's time.
    bare_windows = False
    #: What to do instead of a second WITHIN.
    second_window: str | None = None

    def columns(self, *parts: Token | Name) -> Columns:
        first, last = parts[0], parts[-1]
        assert isinstance(first, Token)
        assert isinstance(last, Token)
        return Columns(tuple(part for part in parts if isinstance(part, Name)), at(first) | at(last))

    def column(self, *words: Token) -> Name:
        """A column, or a field inside of one, by its path."""
        names = [name_of(word) for word in words if word.type != "INSIDE"]
        return replace(names[0], text=".".join(name.text for name in names), span=names[0].span | names[-1].span)

    def within_clause(self, keyword: Token, *parts: Measure | Columns) -> Clause:
        return Clause("WITHIN", keyword, "window", window_of(parts, bare=self.bare_windows), self.second_window)

    def measure(self, *tokens: Token) -> Measure:
        sign, number, unit = (find(tokens, kind) for kind in ("MINUS", "NUMBER", "UNIT"))
        assert number is not None
        span = at(tokens[0]) | at(tokens[-1])
        if sign is not None:
            raise Mistake("a window cannot be negative", at(sign) | at(number))
        return Measure(number_of(number), str(number), unit, span)

    def over(self, keyword: Token, *parts: Measure | Columns) -> Over:
        window = window_of(parts, bare=self.bare_windows)
        assert window.span is not None
        return Over(window, at(keyword) | window.span)

    def counts(self, *tokens: Token) -> Counts:
        numbers: list[int | None] = [None]
        for token in tokens[:-1]:
            if token.type == "COMMA":
                numbers.append(None)
            elif not token.isdecimal():
                raise Mistake(f"a repetition is counted in whole numbers, not {token}", at(token))
            else:
                numbers[-1] = _in_64_bits(int(number_of(token)), token)
        least, most = numbers[0] or 0, numbers[-1]
        span = at(tokens[0]) | at(tokens[-2])
        if most == 0:
            raise Mistake("a repetition of no time holds nothing", span, "{0,2} is none to two times")
        if most is not None and most < least:
            raise Mistake(f"a repetition of at least {least} and at most {most}", span, f"write {{{most},{least}}}")
        return Counts(least, most, span | at(tokens[-1]))

    def limit_clause(self, keyword: Token, *tokens: Token) -> Clause:
        number = number_of(tokens[-1])
        if len(tokens) > 1 or not isinstance(number, int) or number < 1:
            raise Mistake("LIMIT takes a positive integer", at(tokens[0]) | at(tokens[-1]))
        return Clause("LIMIT", keyword, "limit", _in_64_bits(number, tokens[-1]))

    def keep_clause(self, keyword: Token, word: Token) -> Clause:
        if word.upper() not in _EXTENTS:
            raise Mistake(f"KEEP takes LONGEST or SHORTEST, not '{word}'", at(word))
        return Clause("KEEP", keyword, "extent", word.upper() == "LONGEST")

    def after_clause(self, keyword: Token, *rest: Token) -> Clause:
        span = at(keyword) | at(rest[-1])
        words = " ".join(word.upper() if word.type == "CHOICE" else "" for word in rest[:3]).replace("ROW", "EVENT")
        if words == "SKIP PAST LAST" and len(rest) == 4 and rest[3].upper() in _EVENTS:
            return Clause("AFTER MATCH", keyword, "skip", Keep(skip=Skip.PAST, span=span))
        if words == "SKIP TO NEXT" and len(rest) == 4 and rest[3].upper() in _EVENTS:
            return Clause("AFTER MATCH", keyword, "skip", Keep(skip=Skip.NEXT, span=span))
        if words in ("SKIP TO FIRST", "SKIP TO LAST") and len(rest) == 4:
            variable = name_of(rest[3])
            return Clause(
                "AFTER MATCH",
                keyword,
                "skip",
                Keep(False, Skip(words.removeprefix("SKIP ")), variable.text, variable.span),
            )
        raise Mistake(
            "AFTER MATCH does not say where the next match may begin",
            span,
            "SKIP PAST LAST EVENT, SKIP TO NEXT EVENT, SKIP TO FIRST variable or SKIP TO LAST variable",
        )


def _in_64_bits(number: int, token: Token) -> int:
    """A number that engines count up to."""
    if number >= 1 << 63:
        raise Mistake(f"nothing is counted beyond {(1 << 63) - 1:,}", at(token))
    return number


# ---- KEEP and AFTER MATCH


def kept(clauses: Choosing, variables: Collection[str]) -> Keep | None:
    """What KEEP and AFTER MATCH say together; ``None``: there is neither. ``variables`` are those that a result reports.

    Raises
    ------
    Mistake
        No event of the variable is known, or another clause chooses among matches.
    """
    skip, extent = clauses.skip, clauses.extent
    if skip is None and extent is None:
        return None
    keep = replace(skip or Keep(), longest=bool(extent))
    if keep.variable is not None and keep.variable not in variables:
        raise Mistake(
            f"AFTER MATCH skips to an event of '{keep.variable}', which no result has",
            keep.span,
            suggestion(keep.variable, sorted(variables), kind="variable"),
        )
    for title in ("LIMIT", "CONSUME BY"):
        if title in clauses.seen:
            raise Mistake(
                f"{title} chooses among matches, and so {'does KEEP' if skip is None else 'does AFTER MATCH'}",
                clauses.seen[title],
                f"leave out {title}",
            )
    return keep


# ---- WITHIN


def window_of(parts: Sequence[Measure | Columns], *, bare: bool = False) -> Window:
    """WITHIN: events, or a duration, or a number in an attribute's own unit (CORE paper: figure 1, appendices D to G).

    With ``bare`` a number alone measures the stream's time in that one's own unit.
    """
    measures = [part for part in parts if isinstance(part, Measure)]
    columns = next((part for part in parts if isinstance(part, Columns)), None)
    span = measures[0].span | (columns.span if columns else measures[-1].span)
    attribute = _window_attribute(columns)
    number = next((measure for measure in measures if measure.unit is None), None)
    if number is not None:
        return _number_window(number, measures, attribute, span, bare)
    units = [measure.unit for measure in measures if measure.unit is not None]
    if any(unit.casefold() in _COUNTS for unit in units):
        return _count_window(measures, columns, span)
    total = Decimal(0)
    for measure, unit in zip(measures, units, strict=True):
        total = EXACT.add(total, EXACT.multiply(Decimal(measure.number), _seconds(unit)))
    if attribute is None:
        return Window(seconds=total, span=span)
    return Window(seconds=total, attribute=attribute.text, span=span, attribute_span=attribute.span)


def _window_attribute(columns: Columns | None) -> Name | None:
    if columns is None:
        return None
    if len(columns.names) > 1:
        raise Mistake("WITHIN takes one attribute", columns.names[1].span)
    return columns.names[0]


def _number_window(
    number: Measure, measures: Sequence[Measure], attribute: Name | None, span: Span, bare: bool
) -> Window:
    if len(measures) > 1 or (attribute is None and not bare):
        size = number.written
        raise Mistake(
            f"{size} of what?",
            number.span,
            f"write {size} EVENTS, {size} SECONDS (or another unit), or {size} [attribute]",
        )
    if attribute is None:
        return Window(number=number.number, span=span)
    return Window(number=number.number, attribute=attribute.text, span=span, attribute_span=attribute.span)


def _count_window(measures: Sequence[Measure], columns: Columns | None, span: Span) -> Window:
    if len(measures) > 1 or columns is not None:
        raise Mistake("a window of EVENTS has one number and no attribute", span)
    if not isinstance(measures[0].number, int):
        raise Mistake("a number of EVENTS is an integer", span)
    return Window(events=measures[0].number, span=span)


def _seconds(unit: Token) -> Decimal:
    size = SECONDS.get(unit.casefold())
    if size is None:
        close = nearest(str(unit), [*SECONDS, *_COUNTS])
        hint = f"did you mean '{close}'?" if close else f"known units: {', '.join(_UNITS_SHOWN)}"
        raise Mistake(f"unknown unit '{unit}'", at(unit), hint)
    return size
