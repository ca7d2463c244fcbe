"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token, v_args

from stretto.errors import suggestion
from stretto.languages.datalog.tree import Aggregate, Atom, Goal, Head, Literal, Program, Rule, bare
from stretto.languages.expressions.tokens import Mistake, at, at_end
from stretto.languages.expressions.transformer import ExpressionPart, PredicateTransformer, value_of
from stretto.query import predicate as p

#: Words that are no names: NOT, TRUE and FALSE are told by the lexer.
RESERVED: dict[str, frozenset[str]] = {}

AGGREGATES = ("count", "sum", "avg", "min", "max")


@v_args(inline=True)
class DatalogTransformer(PredicateTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    #: A name before brackets may be that of a relation.
    has_functions = False

    def program(self, *rules: Rule) -> Program:
        return Program(rules)

    def fact(self, head: Head, dot: Token) -> Rule:
        assert head.span is not None
        return Rule(head, (), head.span | at(dot))

    def rule(self, head: Head, _: Token, body: tuple[Goal, ...], dot: Token) -> Rule:
        assert head.span is not None
        return Rule(head, body, head.span | at(dot))

    # ---- Heads

    def head(self, name: Token, *rest: Token | ExpressionPart | Aggregate) -> Head:
        arguments = [_head_value(one) if isinstance(one, ExpressionPart) else one for one in rest]
        kept = tuple(one for one in arguments if not isinstance(one, Token))
        return Head(str(name), kept, at(name) | at_end(rest), at(name))

    def aggregate(self, function: Token, _: Token, part: ExpressionPart, closing: Token) -> Aggregate:
        return Aggregate(_aggregate(function), value_of(part), at(function) | at(closing))

    def aggregate_rows(self, function: Token, _: Token, star: Token, closing: Token) -> Aggregate:
        name = _aggregate(function)
        if name != "count":
            raise Mistake(f"{name}<*> has nothing to compute with", at(star), f"name a variable of the body: {name}<C>")
        return Aggregate(name, None, at(function) | at(closing))

    # ---- Bodies

    def body(self, *goals: Goal | Token) -> tuple[Goal, ...]:
        return tuple(goal for goal in goals if not isinstance(goal, Token))

    def positive(self, part: ExpressionPart) -> Literal:
        return Literal(_atom(part), False, part.span)

    def negated(self, sign: Token, part: ExpressionPart) -> Literal:
        return Literal(_atom(part), True, at(sign) | part.span)

    def compare(self, left: ExpressionPart, sign: Token, right: ExpressionPart) -> p.Comparison:  # type: ignore[override]
        found = super().compare(left, sign, right).expression
        assert isinstance(found, p.Comparison)
        return found

    def refuse_constant(self, found: ExpressionPart, parts: Sequence[ExpressionPart]) -> None:
        """Refuse a comparison without a variable: it says nothing about any row."""
        if found.expression is None or p.attributes(found.expression):
            return
        words = [part.expression.value for part in parts if isinstance(part.expression, p.Constant)]
        word = next((word for word in words if isinstance(word, str) and word[:1].isalpha()), None)
        hint = "a variable begins with a capital letter: Cost > 3"
        if word is not None:
            hint = f"'{word}' is a string; a variable begins with a capital letter: {word[0].upper()}{word[1:]}"
        raise Mistake("this compares constants only, and no variable", found.span, hint)

    # ---- Values

    def word(self, word: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(str(word), at(word)), at(word))


def _head_value(part: ExpressionPart) -> p.Operand:
    value = value_of(part)
    if isinstance(value, p.Call) and value.name in AGGREGATES:
        inside = ", ".join(map(bare, value.arguments))
        raise Mistake("an aggregate has angle brackets", part.span, f"write {value.name}<{inside}>")
    return value


def _aggregate(function: Token) -> str:
    if function not in AGGREGATES:
        raise Mistake(
            f"unknown aggregate '{function}'", at(function), suggestion(function, AGGREGATES, kind="aggregate")
        )
    return str(function)


def _atom(part: ExpressionPart) -> Atom:
    value = value_of(part)
    if not isinstance(value, p.Call) or part.span != value.span:
        hint = "leave out the brackets around it" if isinstance(value, p.Call) else "write link(X, Y), or X < Y"
        raise Mistake("a relation or a comparison is needed here, not a value", part.span, hint)
    return Atom(value.name, value.arguments, value.span)


CALLBACKS = DatalogTransformer()
