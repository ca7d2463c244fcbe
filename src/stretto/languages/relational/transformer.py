"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read."""

from __future__ import annotations

from lark import Token, v_args

from stretto.languages.clauses import ClauseTransformer
from stretto.languages.parts import ExpressionPart, Mistake, at, shallow
from stretto.languages.predicates import PredicateTransformer, predicate_of, value_of
from stretto.query import predicate as p
from stretto.query.functions import TAKEN

__all__ = ["RESERVED", "RelationalTransformer"]

RESERVED = {"VARIABLE": p.WORDS}
"""The words that are no names without quotes, by the kind of place (a terminal of the grammar)."""


@v_args(inline=True)
class RelationalTransformer(PredicateTransformer, ClauseTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    def condition(self, part: ExpressionPart) -> p.Predicate:
        return predicate_of(part)

    def value(self, part: ExpressionPart) -> p.Operand:
        return value_of(part)

    def bare(self, word: Token) -> ExpressionPart:
        return ExpressionPart(p.Attribute(str(word), at(word)), at(word))

    def call(self, function: Token, _: Token, *rest: ExpressionPart | Token) -> ExpressionPart:
        parts = [part for part in rest if isinstance(part, ExpressionPart)]
        closing = rest[-1]
        assert isinstance(closing, Token)
        span = at(function) | at(closing)
        if function.lower() in TAKEN:
            raise Mistake(
                f"'{function}' goes over many rows, and a condition or a value sees one",
                span,
                f"use the operator: .aggregate(by, name='{function.lower()}(column)')",
            )
        called = p.Call(str(function), tuple(value_of(part) for part in parts), span)
        height = 1 + max(part.height for part in parts)
        return shallow(ExpressionPart(called, span, height, max(part.parens for part in parts)))

    def quoted(self, word: Token) -> ExpressionPart:
        if word.startswith('"'):
            # Inside conditions double quotes are those of strings, as in CEQL.
            return self.string(word)
        return ExpressionPart(p.Attribute(str(word)[1:-1].replace("``", "`"), at(word)), at(word))
