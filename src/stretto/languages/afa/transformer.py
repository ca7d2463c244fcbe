"""The parser's callbacks: each makes the value of one rule of ``grammar.lark`` as soon as the rule is read."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token, v_args

from stretto.errors import Span
from stretto.languages.afa.scope import Assignments, Row
from stretto.languages.expressions.clauses import ClauseTransformer, Measure, window_of
from stretto.languages.expressions.tokens import Mistake, Name, at, at_end, name_of
from stretto.languages.expressions.transformer import (
    ExpressionPart,
    PredicateTransformer,
    predicate_of,
    value_of,
)
from stretto.query import predicate as p
from stretto.query.afa import Field
from stretto.query.functions import TAKEN
from stretto.query.windows import Window

RESERVED = {"VARIABLE": p.WORDS}
"""The words that are no names without quotes, by the kind of place (a terminal of the grammar)."""


@v_args(inline=True)
class AfaTransformer(PredicateTransformer, ClauseTransformer):
    """One method for each rule and alias of ``grammar.lark``; without state, so that threads may share it."""

    bare_windows = True

    # ---- What a text is

    def fence(self, part: ExpressionPart) -> p.Predicate:
        return predicate_of(part)

    def value(self, part: ExpressionPart) -> p.Operand:
        return value_of(part)

    def transfer(self, *parts: Token | Row | tuple[Name, ExpressionPart]) -> Assignments | Row:
        if isinstance(parts[0], Row):
            return parts[0]
        return Assignments(tuple(part for part in parts if isinstance(part, tuple)))

    def window(self, *measures: Measure) -> Window:
        return window_of(measures, bare=True)

    # ---- Transfers

    def assignment(self, target: Name, sign: Token, part: ExpressionPart) -> tuple[Name, ExpressionPart]:
        if sign not in ("=", "==", ":="):
            raise Mistake(f"a transfer sets fields, '{sign}' compares", at(sign), f"write {target.text} = …")
        return target, part

    def target(self, word: Token, *rest: Token | Name) -> Name:
        if not rest:
            return name_of(word)
        field = rest[-1]
        assert isinstance(field, Name)
        if word == "e":
            raise Mistake(
                "an event's attributes cannot be set",
                at(word) | field.span,
                f"a field of the register stands here: {field.text} = …",
            )
        if word != "r":
            raise _no_side(word, field)
        return Name(field.text, at(word) | field.span)

    def row(self, opening: Token, *rest: Token | ExpressionPart) -> Row:
        return Row(tuple(part for part in rest if isinstance(part, ExpressionPart)), at(opening) | at_end(rest))

    # ---- Operands: which names one that stands alone may mean is known where the schemas are

    quoted_attribute = "e.`{}`"

    def member(self, side: Token, _: Token, own: Name) -> ExpressionPart:
        if side not in ("e", "r"):
            raise _no_side(side, own)
        span = at(side) | own.span
        return ExpressionPart(Field(f"{side}.{own.text}", span), span)

    def refuse_call(self, function: Token, span: Span, parts: Sequence[ExpressionPart]) -> None:
        if function.lower() in TAKEN:
            raise Mistake(
                f"'{function}' goes over several events, and an arc sees one",
                span,
                "keep it in the register: then='total = r.total + e.price'",
            )

    def backticked(self, word: Token) -> ExpressionPart:
        raise Mistake(f"{word} stands alone", at(word), f"e.{word} is the event's, r.{word} the register's")


def _no_side(word: Token, own: Name) -> Mistake:
    """A name before the dot that is neither ``e`` nor ``r``."""
    meant = word.lower() if word.lower() in ("e", "r") else None
    hint = f"did you mean '{meant}'?" if meant else f"e.{own.text} is the event's, r.{own.text} the register's"
    return Mistake(f"unknown name '{word}'", at(word), hint)


CALLBACKS = AfaTransformer()
