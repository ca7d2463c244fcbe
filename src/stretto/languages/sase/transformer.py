"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lark import Token, v_args

from stretto.errors import Span, nearest
from stretto.languages.expressions.clauses import EXACT, Clause, ClauseTransformer, Columns, Counts
from stretto.languages.expressions.tokens import Mistake, Name, at, find, name_of, number_of
from stretto.languages.expressions.totals import AskingTransformer, Called, count_all, function_of
from stretto.languages.expressions.totals import Item as Total
from stretto.languages.expressions.transformer import (
    ExpressionPart,
    Over,
    PredicateTransformer,
    moving_of,
    predicate_of,
    shallow,
    value_of,
)
from stretto.languages.sase import references as r
from stretto.languages.sase.draft import Argument, Clauses, Draft, Item, Output, Strategy, Where
from stretto.query import predicate as p
from stretto.query.sase import WRITTEN, Component, Group, Part, Referred, Selection, components_of

RESERVED = {"VARIABLE": p.WORDS}
"""The words that are no names without quotes, by the kind of place (a terminal of the grammar)."""

_STRATEGIES = tuple(str(one) for one in WRITTEN)

#: The choices of OUTPUT: the field of :class:`Output` and its value.
_OUTPUTS = {
    "all": ("non_overlap", False),
    "non_overlap": ("non_overlap", True),
    "verbose": ("compressed", False),
    "compressed": ("compressed", True),
}


#: Signs behind a type or a group: how often at least and at most.
_SIGNS: dict[str, tuple[int, int | None]] = {"PLUS": (1, None), "STAR": (0, None), "QUESTION": (0, 1)}


@v_args(inline=True)
class SaseTransformer(PredicateTransformer, ClauseTransformer, AskingTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    bare_windows = True

    def query(self, parts: tuple[Part, ...], *rest: Where | Clause | Token) -> Draft:
        clauses = Clauses()
        where = Where()
        for clause in rest:
            if isinstance(clause, Clause):
                clause.put(clauses)
            elif isinstance(clause, Where):
                where = clause
        return Draft(parts, where, clauses)

    # ---- PATTERN

    def pattern(self, *parts: Token | Part) -> tuple[Part, ...]:
        return tuple(part for part in parts if not isinstance(part, Token))

    def negated(self, sign: Token, *parts: Token | Component) -> Component:
        (component,) = (part for part in parts if not isinstance(part, Token))
        last = parts[-1]
        assert component.span is not None
        span = at(sign) | (at(last) if isinstance(last, Token) else component.span)
        if component.kleene or not component.least:
            often = component.sign if component.kleene else "?"
            written = "count" if "{" in often else f"'{often}'"
            raise Mistake(
                f"a negated component takes no {written}",
                component.span,
                f"{replace(component, kleene=False, negated=True, until=None)} already means: not one such event",
            )
        return replace(component, negated=True, span=span)

    def positive(self, types: tuple[Name, ...], *parts: Token | Counts | Component) -> Component:
        tokens = [part for part in parts if isinstance(part, Token)]
        counts = next((part for part in parts if isinstance(part, Counts)), None)
        end = next((part for part in parts if isinstance(part, Component)), None)
        variable, bracket = (find(tokens, kind) for kind in ("VARIABLE", "LSQB"))
        assert variable is not None
        least, most = _times(parts)
        component = Component(
            types=tuple(name.text for name in types),
            variable=str(variable),
            kleene=counts is not None or most is None,
            least=least,
            most=most if counts is not None or most is None else None,
            span=types[0].span | at(tokens[-1]),
            place=at(variable),
            type_spans=tuple(name.span for name in types),
        )
        if bracket is not None and not component.kleene:
            raise Mistake(
                f"{variable}[] holds several events, so its type needs a '+'",
                at(variable) | at(tokens[-1]),
                f"write {replace(component, kleene=True, least=1)}, or {replace(component, least=1)} for one event",
            )
        if end is None:
            return component
        assert end.span is not None
        if not component.kleene:
            raise Mistake(
                f"'{variable}' is one event, and UNTIL ends a repetition", end.span, "write A+ a[] UNTIL (B b)"
            )
        return replace(component, until=replace(end, only=False), only=end.only)

    def until(self, keyword: Token, *parts: Token | Component) -> Component:
        (end,) = (part for part in parts if not isinstance(part, Token))
        assert end.span is not None
        if end.many or not end.least or end.until is not None:
            raise Mistake("one event ends a repetition", end.span, "write A+ a[] UNTIL (B b)")
        only = any(isinstance(part, Token) and part.type == "ONLY" for part in parts)
        return replace(end, span=at(keyword) | end.span, only=only)

    def often(self, sign: Token) -> Token:
        return sign

    def group(self, *parts: Token | Part | Counts) -> Part:
        return self._grouped(parts, choice=False)

    def choice(self, *parts: Token | Part | Counts) -> Part:
        return self._grouped(parts, choice=True)

    def _grouped(self, parts: Sequence[Token | Part | Counts], *, choice: bool) -> Part:
        inside = tuple(part for part in parts if isinstance(part, Component | Group))
        first, last = parts[0], parts[-1]
        assert isinstance(first, Token)
        least, most = _times(parts)
        span = at(first) | (last.span if isinstance(last, Counts) else at(last))  # type: ignore[arg-type]
        if all(one.negated for one in components_of(inside)):
            raise Mistake("a group needs a component that is not negated", span)
        return Group(inside, least, most, choice, span)

    def types(self, *parts: Token | Name) -> tuple[Name, ...]:
        return tuple(part for part in parts if isinstance(part, Name))

    def type(self, word: Token) -> Name:
        return name_of(word)

    # ---- WHERE

    def where(self, _: Token, *parts: Token | Strategy | ExpressionPart) -> Where:
        strategies = tuple(part for part in parts if isinstance(part, Strategy))
        body = next((part for part in parts if isinstance(part, ExpressionPart)), None)
        if not strategies:
            brace = parts[0]
            assert isinstance(brace, Token)
            raise Mistake("WHERE names no strategy", at(brace), f"one of {', '.join(_STRATEGIES)}")
        return Where(strategies, body)

    def strategy(self, word: Token, *parts: Token | Argument) -> Strategy:
        if word.lower() not in _STRATEGIES:
            raise Mistake(f"unknown strategy '{word}'", at(word), _one_of(word, _STRATEGIES))
        arguments = tuple(part for part in parts if isinstance(part, Argument))
        return Strategy(Selection(word.lower()), arguments, at(word))

    def argument(self, word: Token, *brackets: Token) -> Argument:
        return Argument(Name(str(word), at(word)), at(word) | at(brackets[-1] if brackets else word), bool(brackets))

    def all_of(self, *parts: ExpressionPart | Token) -> ExpressionPart:
        """AND gathers equivalence tests beside the rest."""
        operands = [part for part in parts if not isinstance(part, Token)]
        equal = tuple(name for part in operands for name in part.equal)
        if not equal:
            return super().all_of(*parts)
        others = [replace(part, equal=()) for part in operands if part.expression is not None or part.is_null]
        expression = None
        if others:
            expression = super().all_of(*others).expression if len(others) > 1 else predicate_of(others[0])
        return shallow(
            ExpressionPart(
                expression,
                operands[0].span | operands[-1].span,
                1 + max(part.height for part in operands),
                max(part.parens for part in operands),
                equal,
            )
        )

    # ---- Operands

    quoted_attribute = "a.`{}`"

    def bare(self, word: Token) -> ExpressionPart:
        return _part(r.bare(word))

    def member(self, variable: Token, _: Token, attribute: Name) -> ExpressionPart:
        return _part(r.member(variable, attribute))

    def element(self, variable: Token, place: r.Place, _: Token, attribute: Name) -> ExpressionPart:
        return _part(r.element(variable, place, attribute))

    def aggregate(self, function: Token, _: Token, *rest: Token | Name | r.Place) -> ExpressionPart:
        distinct, variable = find(rest, "DISTINCT"), find(rest, "VARIABLE")
        assert variable is not None
        place = next((part for part in rest if isinstance(part, r.Place)), None)
        attribute = next((part for part in rest if isinstance(part, Name)), None)
        closing = rest[-1]
        assert isinstance(closing, Token)
        return _part(r.aggregate(function, variable, place, attribute, closing, distinct))

    def moving(self, function: Token, _: Token, *rest: Any) -> ExpressionPart:
        variable, over = find(rest, "VARIABLE"), rest[-1]
        assert variable is not None
        assert isinstance(over, Over)
        place = next((part for part in rest if isinstance(part, r.Place)), None)
        if place is not None:
            raise Mistake(
                "a moving aggregate is of a component that holds one event",
                place.span,
                f"write {function}({variable}…) OVER …, of a '{variable}' without Kleene plus",
            )
        attribute = next((part for part in rest if isinstance(part, Name)), None)
        argument = None if attribute is None else p.Attribute(attribute.text, attribute.span)
        made = moving_of(function, str(variable), argument, find(rest, "DISTINCT"), over)
        assert made.aggregate is not None
        return _part(r.moving(made.aggregate, at(function) | over.span, variable))

    def refuse_call(self, function: Token, span: Span, parts: Sequence[ExpressionPart]) -> None:
        if any(r.is_several(part.expression) for part in parts):
            raise r.unknown_aggregate(function)

    def place(self, *parts: Token | tuple[Token, ...]) -> r.Place:
        tokens: list[Token] = []
        for part in parts:
            tokens += [part] if isinstance(part, Token) else part
        return r.place(tokens)

    def index(self, *tokens: Token) -> tuple[Token, ...]:
        return tokens

    def backticked(self, word: Token) -> ExpressionPart:
        raise Mistake(f"{word} names no event", at(word), f"an attribute follows its variable: a.{word}")

    def percentage(self, token: Token) -> ExpressionPart:
        number = Decimal(number_of(Token.new_borrow_pos("NUMBER", token[:-1], token)))
        part = EXACT.normalize(EXACT.scaleb(number, -2))
        return ExpressionPart(p.Constant(Decimal(f"{part:f}"), at(token)), at(token))

    def equivalence(self, columns: Columns) -> ExpressionPart:
        return ExpressionPart(None, columns.span, equal=columns.names)

    # ---- Clauses

    def return_clause(self, keyword: Token, *items: Item | Token) -> Clause:
        chosen = tuple(item for item in items if isinstance(item, Item))
        return Clause("RETURN", keyword, "items", chosen, "separate the items with commas")

    def item(self, value: ExpressionPart, *rest: Token | Name) -> Item:
        name = rest[-1] if rest else None
        assert not isinstance(name, Token)
        return Item(value, name, value.span | name.span if name else value.span)

    def total_clause(self, keyword: Token, _: Token, *items: Total | Token) -> Clause:
        chosen = tuple(item for item in items if isinstance(item, Total))
        return Clause("RETURN", keyword, "totals", chosen, "separate the items with commas")

    def called(self, function: Token, _: Token, *rest: Token | ExpressionPart | r.Place) -> Called:
        closing, distinct = rest[-1], find(rest, "DISTINCT")
        assert isinstance(closing, Token)
        if find(rest, "STAR") is not None:
            return count_all(function, closing)
        if distinct is not None:
            raise Mistake(
                "DISTINCT over all matches is CEQL's: here each match is counted once",
                at(distinct),
                "count(*) counts the matches, and count(DISTINCT a[].x) without TOTAL the values of each",
            )
        span = at(function) | at(closing)
        known = function_of(function)
        if isinstance(rest[0], ExpressionPart):
            return Called(known, span, value=value_of(rest[0]))
        variable, place = rest[0], rest[1]
        assert isinstance(variable, Token)
        assert isinstance(place, r.Place)
        return Called(known, span, value=r.events(variable, place))

    def group_key(self, *parts: Token | Name | Columns | r.Place) -> tuple[tuple[Name | None, Name], ...]:
        first, last = parts[0], parts[-1]
        if isinstance(first, Columns):
            return tuple((None, name) for name in first.names)
        assert isinstance(first, Token)
        assert isinstance(last, Name)
        return ((Name(str(first), at(first), bare=True), last),)

    def output_clause(self, keyword: Token, *modes: Token) -> Clause:
        chosen: dict[str, bool] = {}
        for mode in modes:
            if mode.type != "MODE":
                continue
            if mode.lower() not in _OUTPUTS:
                raise Mistake(f"unknown form of output '{mode}'", at(mode), _one_of(mode, tuple(_OUTPUTS)))
            field, value = _OUTPUTS[mode.lower()]
            if field in chosen:
                raise Mistake(
                    f"OUTPUT has '{mode.lower()}' beside another choice",
                    at(mode),
                    "choose all or non_overlap, and verbose or compressed",
                )
            chosen[field] = value
        return Clause("OUTPUT", keyword, "output", Output(**chosen))


def _times(parts: Iterable[object]) -> tuple[int, int | None]:
    """How often something comes: what its sign or its counts say."""
    for part in parts:
        if isinstance(part, Counts):
            return part.least, part.most
        if isinstance(part, Token) and part.type in _SIGNS:
            return _SIGNS[part.type]
    return 1, 1


def _one_of(word: Token, known: Sequence[str]) -> str:
    close = nearest(str(word), known)
    return f"did you mean '{close}'?" if close else f"one of {', '.join(known)}"


def _part(reference: Referred) -> ExpressionPart:
    assert reference.span is not None
    return ExpressionPart(reference, reference.span)


CALLBACKS = SaseTransformer()
