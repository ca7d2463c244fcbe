"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token, v_args

from stretto.errors import Span
from stretto.languages.expressions.clauses import ClauseTransformer
from stretto.languages.expressions.tokens import Mistake
from stretto.languages.expressions.transformer import (
    ExpressionPart,
    PredicateTransformer,
    predicate_of,
    value_of,
)
from stretto.query import predicate as p
from stretto.query.functions import TAKEN

RESERVED = {"VARIABLE": p.WORDS}
"""The words that are no names without quotes, by the kind of place (a terminal of the grammar)."""


@v_args(inline=True)
class RelationalTransformer(PredicateTransformer, ClauseTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    def condition(self, part: ExpressionPart) -> p.Predicate:
        return predicate_of(part)

    def value(self, part: ExpressionPart) -> p.Operand:
        return value_of(part)

    def refuse_call(self, function: Token, span: Span, parts: Sequence[ExpressionPart]) -> None:
        if function.lower() in TAKEN:
            raise Mistake(
                f"'{function}' goes over many rows, and a condition or a value sees one",
                span,
                f"use the operator: .aggregate(by, name='{function.lower()}(column)')",
            )


CALLBACKS = RelationalTransformer()
