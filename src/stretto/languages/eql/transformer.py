"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lark import Token, v_args

from stretto.errors import Span, suggestion
from stretto.languages.eql.functions import FUNCTIONS, call
from stretto.languages.expressions.tokens import Mistake, at, at_end, find, name_of, number_of, unquoted
from stretto.languages.expressions.transformer import (
    ExpressionPart,
    PredicateTransformer,
    predicate_of,
    shallow,
    value_of,
)
from stretto.query import predicate as p
from stretto.query.eql import MaybeMissing, Mode, OfEvent
from stretto.query.plan import Key

RESERVED: Mapping[str, frozenset[str]] = {}
"""No word is reserved by the kind of its place: keywords are told by their own terminals."""

#: Words that are no fields without backquotes.
_WORDS = "and any by false in join like maxspan not null of or regex sample sequence true until where with"
KEYWORDS = frozenset(_WORDS.split())

_PARTS = re.compile(r"`(?P<quoted>[^`]*(?:``[^`]*)*)`|(?P<bare>[^.`]+)")

_OF_EVENT = re.compile(r"events\s*\[\s*(\d+)\s*\]\s*\.\s*(.+)", re.DOTALL)

_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE = re.compile(r"\\(?:u\{(?P<code>[0-9a-fA-F]{2,8})\}|(?P<sign>.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Event:
    """``category where condition``."""

    category: str | None
    condition: p.Predicate
    span: Span
    place: Span


@dataclass(frozen=True, slots=True)
class Term:
    """``[event] by keys with runs=n``."""

    event: Event
    keys: tuple[Key, ...]
    runs: int
    missing: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Until:
    """``until [event] by keys``."""

    term: Term


@dataclass(frozen=True, slots=True)
class Maxspan:
    """``with maxspan=time``."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Runs:
    """``with runs=n``."""

    number: int
    span: Span


@dataclass(frozen=True, slots=True)
class Piped:
    """``| name arguments``."""

    name: Token
    arguments: tuple[ExpressionPart, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Draft:
    """A query as it is written."""

    mode: Mode
    by: tuple[Key, ...]
    terms: tuple[Term, ...]
    maxspan: Maxspan | None = None
    until: Term | None = None
    pipes: tuple[Piped, ...] = ()


@v_args(inline=True)
class EqlTransformer(PredicateTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    # ---- Queries

    def query(self, draft: Draft, *pipes: Piped) -> Draft:
        return replace(draft, pipes=pipes)

    def one_event(self, event: Event) -> Draft:
        return Draft(Mode.EVENT, (), (Term(event, (), 1, False, event.span),))

    def sequence(self, _: Token, *parts: Any) -> Draft:
        return _several(Mode.SEQUENCE, parts)

    def sample(self, _: Token, *parts: Any) -> Draft:
        return _several(Mode.SAMPLE, parts)

    def join(self, _: Token, *parts: Any) -> Draft:
        return _several(Mode.JOIN, parts)

    def event(self, *parts: Token | ExpressionPart) -> Event:
        category, _, condition = parts
        assert isinstance(category, Token)
        assert isinstance(condition, ExpressionPart)
        place = at(category)
        name = (
            None if category.type == "ANY" else _text(category) if category.type == "STRING" else name_of(category).text
        )
        return Event(name, decided(condition), place | condition.span, place)

    def term(self, opening: Token, event: Event, closing: Token, *rest: tuple[Key, ...] | Runs) -> Term:
        keys = [one for one in rest if not isinstance(one, Runs)]
        runs = [one for one in rest if isinstance(one, Runs)]
        if len(keys) > 1:
            raise Mistake("'by' stands once behind an event", keys[1][0].span, "by a, b lists several keys")
        if len(runs) > 1:
            raise Mistake("'with runs' stands once behind an event", runs[1].span)
        missing = opening.type == "MISSING"
        span = at(opening) | at(closing)
        return Term(event, keys[0] if keys else (), runs[0].number if runs else 1, missing, span)

    def until(self, _: Token, term: Term) -> Until:
        if term.missing:
            raise Mistake("until takes an event, not a missing one", term.span)
        if term.runs > 1:
            raise Mistake("until takes one event, without runs", term.span)
        return Until(term)

    def by(self, _: Token, *keys: Key | Token) -> tuple[Key, ...]:
        return tuple(one for one in keys if isinstance(one, Key))

    def key(self, token: Token) -> Key:
        name, optional = _path(token)
        return Key(name, optional, at(token))

    def maxspan(self, *parts: Token) -> Maxspan:
        if parts[-1].type == "NUMBER":
            raise Mistake("maxspan needs a unit", at(parts[-1]), f"maxspan={parts[-1]}s counts seconds")
        return Maxspan(str(parts[-1]), at(parts[-1]))

    def runs(self, *parts: Token) -> Runs:
        number = number_of(parts[-1])
        if not isinstance(number, int) or not 1 <= number <= MOST_RUNS:
            raise Mistake(f"runs is a number from 1 to {MOST_RUNS}", at(parts[-1]))
        return Runs(number, at(parts[-1]))

    def pipe(self, _: Token, name: Token, arguments: tuple[ExpressionPart, ...] = ()) -> Piped:
        return Piped(name, arguments, at(name) if not arguments else at(name) | arguments[-1].span)

    def arguments(self, *parts: ExpressionPart | Token) -> tuple[ExpressionPart, ...]:
        return tuple(one for one in parts if isinstance(one, ExpressionPart))

    # ---- Conditions

    def refuse_constant(self, found: ExpressionPart, parts: Sequence[ExpressionPart]) -> None:
        """Take conditions that no field takes part in, such as ``true``."""

    def compare(self, left: ExpressionPart, sign: Token, right: ExpressionPart) -> ExpressionPart:
        span = left.span | right.span
        equal = sign in ("==", "!=")
        found: p.Predicate
        if left.is_null or right.is_null:
            if not equal:
                hint = "a field is there where it is != null"
                raise Mistake(f"null has no order, and '{sign}' asks for one", span, hint)
            both_null = left.is_null and right.is_null
            found = p.And(()) if both_null else p.IsNull(_value(right if left.is_null else left), span)
        elif _is_condition(left) or _is_condition(right):
            condition, other = (left, right) if _is_condition(left) else (right, left)
            truth = getattr(other.expression, "value", None)
            if not equal or not isinstance(truth, bool):
                raise Mistake("a condition is compared with true or false only", span, "join conditions with and, or")
            found = predicate_of(condition) if truth else p.Not(predicate_of(condition), span)
        else:
            op = {"==": "=", "!=": "="}.get(str(sign), str(sign))
            found = p.Comparison(op, value_of(left), value_of(right), span)
        return _part(p.Not(found, span) if sign == "!=" else found, (left, right), span)

    def search(self, left: ExpressionPart, sign: Token, *rest: ExpressionPart | Token) -> ExpressionPart:
        """``:``, ``like`` and ``regex``, of one constant or of several in parentheses."""
        values = [one for one in rest if isinstance(one, ExpressionPart)]
        span = left.span | (values[-1].span if isinstance(rest[-1], ExpressionPart) else at_end(rest))
        operand, folds = value_of(left), sign.type == "SEARCH" or sign.endswith("~")
        texts = [_constant(one) for one in values if isinstance(_constant(one), str)]
        others = [value for value in values if not isinstance(_constant(value), str)]
        if others and sign.type != "SEARCH":
            raise Mistake(f"{sign} takes strings", others[0].span)
        parts: list[p.Predicate] = [
            p.IsNull(operand, span) if one.is_null else p.Comparison("=", operand, value_of(one), span)
            for one in others
        ]
        if texts and sign.type == "REGEX":
            whole = "|".join(f"(?:{one})" if len(texts) > 1 else str(one) for one in texts)
            parts.append(p.Rlike(operand, rf"(?{'is' if folds else 's'})\A(?:{whole})\z", span))
        elif texts:
            parts.append(p.Wildcard(operand, tuple(map(str, texts)), folds, span=span))
        return _part(parts[0] if len(parts) == 1 else p.Or(tuple(parts), span), (left, *values), span)

    def among(self, part: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        sign = find(rest, "IN")
        assert sign is not None
        values = [value for value in rest if not isinstance(value, Token)]
        span, operand = part.span | at_end(rest), value_of(part)
        texts = tuple(text for value in values if isinstance(text := _constant(value), str))
        found: p.Predicate
        if sign == "in~" and texts:
            others = [value for value in values if not isinstance(_constant(value), str)]
            found = p.Wildcard(operand, texts, folds=True, plain=True, span=span)
            if others:
                found = p.Or((found, p.In(operand, tuple(map(_constant_of, others)), span)), span)
        else:
            found = p.In(operand, tuple(map(_constant_of, values)), span)
        return _part(p.Not(found, span) if find(rest, "NOT") else found, (part, *values), span)

    # ---- Values

    def positive(self, _: Token, part: ExpressionPart) -> ExpressionPart:
        value_of(part)
        return part

    def field(self, token: Token) -> ExpressionPart:
        name, optional = _path(token)
        found = MaybeMissing(name, at(token)) if optional else p.Attribute(name, at(token))
        return ExpressionPart(found, at(token))

    def of_event(self, token: Token) -> ExpressionPart:
        parts = _OF_EVENT.fullmatch(token)
        assert parts is not None
        number, name = parts.groups()
        field, _ = _path(Token("FIELD", name, start_pos=token.start_pos, end_pos=token.end_pos))
        place = number_of(Token("NUMBER", number, start_pos=token.start_pos, end_pos=token.end_pos))
        found = OfEvent(f"events[{place}].{field}", at(token), int(place), field)
        return ExpressionPart(found, at(token))

    def string(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(_text(token), at(token)), at(token))

    def call(self, function: Token, _: Token, *rest: ExpressionPart | Token) -> ExpressionPart:
        parts = [part for part in rest if isinstance(part, ExpressionPart)]
        span = at(function) | at_end(rest)
        plain = function.removesuffix("~").lower()
        if plain not in FUNCTIONS:
            hint = suggestion(str(function), [one.name for one in FUNCTIONS.values()], kind="function")
            hint = OF_SEVERAL if plain in AGGREGATES else hint
            raise Mistake(f"unknown function '{function}'", at(function), hint)
        return _part(call(function, parts, span), parts, span)


#: Functions of several events, and what to do in their place.
AGGREGATES = ("count", "sum", "avg", "min", "max", "cardinality", "count_distinct", "unique_count")
OF_SEVERAL = (
    "EQL asks each event by itself; with runs=3 asks for several of one kind. SASE+ adds up over a repetition: count(a[]) > 1, "
    "and MATCH_RECOGNIZE also counts distinct values: COUNT(DISTINCT A.x)"
)

#: As Elasticsearch has it.
MOST_RUNS = 100


def _several(mode: Mode, parts: Sequence[Any]) -> Draft:
    by = next((one for one in parts if isinstance(one, tuple)), ())
    terms = tuple(one for one in parts if isinstance(one, Term))
    maxspan = next((one for one in parts if isinstance(one, Maxspan)), None)
    until = next((one.term for one in parts if isinstance(one, Until)), None)
    return Draft(mode, by, terms, maxspan, until)


def _part(expression: p.Expression, parts: Sequence[ExpressionPart], span: Span) -> ExpressionPart:
    height = 1 + max((one.height for one in parts), default=0)
    return shallow(ExpressionPart(expression, span, height, max((one.parens for one in parts), default=0)))


def decided(part: ExpressionPart) -> p.Predicate:
    """A condition; ``true`` and ``false`` ask for nothing and for too much."""
    value = getattr(part.expression, "value", None)
    return (p.And(()) if value else p.Or(())) if isinstance(value, bool) else predicate_of(part)


def _is_condition(part: ExpressionPart) -> bool:
    return part.expression is not None and not isinstance(part.expression, p.Operand)


def _value(part: ExpressionPart) -> p.Operand:
    if _is_condition(part):
        raise Mistake("a condition is never null", part.span)
    return value_of(part)


def _constant(part: ExpressionPart) -> object:
    """The value of a constant; ``None`` of null."""
    return getattr(part.expression, "value", None)


def _constant_of(part: ExpressionPart) -> p.Constant:
    value = None if part.is_null else value_of(part)
    if not isinstance(value, p.Constant):
        raise Mistake("in lists constants only", part.span, "write x == a or x == b for fields, x == null for null")
    return value


def _path(token: Token) -> tuple[str, bool]:
    """The name of a field, and whether it may be missing."""
    optional = token.startswith("?")
    whole = token[optional:]
    parts = [
        one["bare"] if one["quoted"] is None else one["quoted"].replace("``", "`") for one in _PARTS.finditer(whole)
    ]
    if "" in parts:
        raise Mistake("a name cannot be empty", at(token))
    if whole in KEYWORDS:
        raise Mistake(f"'{whole}' is a keyword and no field", at(token), f"a field of that name is written `{whole}`")
    return ".".join(parts), optional


def _text(token: Token) -> str:
    """The text of a string of any kind."""
    if token.type == "SINGLE":
        whole = token.removeprefix("?")
        raise Mistake("strings stand in double quotes", at(token), f'write "{unquoted(Token("STRING", whole))}"')
    if token.type == "TRIPLE":
        return token[3:-3]
    if token.type == "RAW":
        return token[2:-1].replace('\\"', '"')
    return _ESCAPE.sub(lambda found: _unescaped(found, token), token[1:-1])


def _unescaped(found: re.Match[str], token: Token) -> str:
    start = at(token).start + 1 + found.start()
    place = Span(start, start + len(found[0]))
    if found["code"] is not None:
        number = int(found["code"], 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise Mistake(f"{found[0]} is no character", place)
        return chr(number)
    if found["sign"] not in _ESCAPES:
        hint = r'a backslash is written \\; in """…""" it stands for itself'
        raise Mistake(f"'{found[0]}' is no escape", place, hint)
    return _ESCAPES[found["sign"]]


CALLBACKS = EqlTransformer()
