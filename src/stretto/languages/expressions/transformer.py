"""The callbacks of ``predicates.lark`` and ``values.lark``: conditions and values, which are the same in every language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from lark import Token, Transformer, v_args

from stretto.errors import Span
from stretto.languages.expressions.tokens import Mistake, Name, at, at_end, find, name_of, number_of, unquoted
from stretto.query import predicate as p
from stretto.query.functions import known
from stretto.query.moving import FUNCTIONS, Moving, MovingAggregate, made_moving
from stretto.query.scalar_functions import COMMON
from stretto.query.windows import Window
from stretto.times import PER_SECOND, SECONDS

#: How deep a formula, a FILTER or an expression may be nested: later passes may recurse that far.
DEEPEST = 200

#: The numbers of a duration, each with its unit.
_DURATIONS = re.compile(r"([0-9.]+)\s*([^\W\d]+)")

_EQUAL = {"==": "=", "<>": "!="}


@dataclass(frozen=True, slots=True)
class ExpressionPart:
    """A predicate or a value inside a condition; ``expression`` is ``None`` for the word NULL.

    ``height`` is that of the tree, ``parens`` counts brackets around brackets. ``equal`` are the attributes of equivalence
    tests (SASE+) that are joined to the expression by AND; without one beside them ``expression`` is ``None`` too.
    ``quoted`` says that it is a string in double quotes, which may have been meant as a name.
    """

    expression: p.Expression | None
    span: Span
    height: int = 0
    parens: int = 0
    equal: tuple[Name, ...] = ()
    quoted: bool = False

    @property
    def is_null(self) -> bool:
        return self.expression is None and not self.equal


@dataclass(frozen=True, slots=True)
class Arm:
    """``WHEN condition THEN value``; the condition is a value where CASE has one beside it."""

    condition: ExpressionPart
    value: ExpressionPart


@dataclass(frozen=True, slots=True)
class Over:
    """``OVER 1 minute``: the window of a moving aggregate."""

    window: Window
    span: Span


def moving_of(function: Token, variable: str, argument: p.Operand | None, distinct: Token | None, over: Over) -> Moving:
    """The moving aggregate that is written so, or a :class:`Mistake` about it."""
    known = function.lower()
    if known not in FUNCTIONS:
        raise Mistake(
            f"{function}(…) OVER … is no moving aggregate", at(function), f"it is one of {', '.join(FUNCTIONS)}"
        )
    if distinct is not None and known != "count":
        raise Mistake(f"DISTINCT is for count, not for {known}", at(distinct))
    if argument is None and known != "count":
        raise Mistake(f"{known}(*) has nothing to go over", at(function), f"write {known}(x), or count(*)")
    if argument is not None and not p.attributes(argument):
        raise Mistake(f"{known} of a constant", at(function), "name an attribute, or write count(*)")
    if over.window.events is not None or over.window.number == 0 or over.window.seconds == 0:
        raise Mistake(
            "OVER goes back in time, by more than none",
            over.span,
            "write OVER 1 minute, or OVER 60 [attribute of time]",
        )
    if argument is not None and any(isinstance(node, Moving) for node in p.walk(argument)):
        raise Mistake("a moving aggregate goes over attributes, not over another one", at(function))
    return made_moving(MovingAggregate(variable, known, distinct is not None, argument, over.window, "", over.span))


class Nested(Protocol):
    """A part that knows how deep it is nested."""

    @property
    def span(self) -> Span: ...
    @property
    def height(self) -> int: ...
    @property
    def parens(self) -> int: ...


_Part = TypeVar("_Part", bound=Nested)


def shallow(part: _Part) -> _Part:
    """Refuse a part that is nested too deep; else it stays the same."""
    if part.height > DEEPEST or part.parens > DEEPEST:
        raise Mistake(f"nested more than {DEEPEST} levels deep", part.span)
    return part


@v_args(inline=True)
class PredicateTransformer(Transformer[Token, Any]):
    """One method for each alias of the ladder; a language adds those of its own operands."""

    def any_of(self, *parts: ExpressionPart | Token) -> ExpressionPart:
        return _connected(p.Or, parts)

    def all_of(self, *parts: ExpressionPart | Token) -> ExpressionPart:
        return _connected(p.And, parts)

    def negation(self, sign: Token, part: ExpressionPart) -> ExpressionPart:
        span = at(sign) | part.span
        return _expression(p.Not(predicate_of(part), span), (part,), span)

    def compare(self, left: ExpressionPart, sign: Token, right: ExpressionPart) -> ExpressionPart:
        for part in (left, right):
            if part.is_null:
                raise Mistake("no value compares with NULL", part.span, _NULL_HINTS.get(str(sign), _NULL_HINT))
        operator = _EQUAL.get(str(sign), str(sign))
        both = (left, right)
        found = _expression(p.Comparison(operator, value_of(left), value_of(right), _span(both)), both)
        self.refuse_constant(found, both)
        return found

    def among(self, part: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        values = [value for value in rest if not isinstance(value, Token)]
        span = part.span | at_end(rest)
        inside = p.In(value_of(part), tuple(_constant(value) for value in values), span)
        return self._one_of(rest, inside, span, [part, *values])

    def between(self, part: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        low, high = (bound for bound in rest if not isinstance(bound, Token))
        span = part.span | high.span
        inside = p.Between(value_of(part), value_of(low), value_of(high), span)
        return self._one_of(rest, inside, span, [part, low, high])

    def like(self, part: ExpressionPart, *rest: Token) -> ExpressionPart:
        span = part.span | at(rest[-1])
        return self._one_of(rest, p.Like(value_of(part), unquoted(rest[-1]), span), span, [part])

    def rlike(self, part: ExpressionPart, *rest: Token) -> ExpressionPart:
        span = part.span | at(rest[-1])
        return self._one_of(rest, p.Rlike(value_of(part), unquoted(rest[-1]), span), span, [part])

    def contained(self, part: ExpressionPart, *rest: ExpressionPart | Token) -> ExpressionPart:
        values = rest[-1]
        assert isinstance(values, ExpressionPart)
        span = part.span | values.span
        return self._one_of(rest, p.Member(value_of(part), value_of(values), span), span, [part, values])

    def is_null(self, part: ExpressionPart, *rest: Token) -> ExpressionPart:
        span = part.span | at(rest[-1])
        return self._one_of(rest, p.IsNull(value_of(part), span), span, [part])

    def _one_of(
        self,
        rest: Sequence[object],
        predicate: p.In | p.Member | p.Between | p.Like | p.IsNull,
        span: Span,
        parts: Sequence[ExpressionPart],
    ) -> ExpressionPart:
        """``x NOT IN …`` and its like are ``NOT (x IN …)``."""
        negated = find(rest, "NOT") is not None
        found = _expression(p.Not(predicate, span) if negated else predicate, parts, span)
        self.refuse_constant(found, parts)
        return found

    #: How the language writes an attribute whose name needs quotes.
    quoted_attribute = "`{}`"

    def refuse_constant(self, found: ExpressionPart, parts: Sequence[ExpressionPart]) -> None:
        """Refuse a condition that no attribute takes part in: it says nothing about any event."""
        expression = found.expression
        if expression is None or p.attributes(expression) or _stands_alone(expression):
            return
        name = next((part for part in parts if part.quoted), None)
        hint = "name an attribute, as in price > 3"
        if name is not None:
            assert isinstance(name.expression, p.Constant)
            text = str(name.expression.value)
            own = self.quoted_attribute.format(text.replace("`", "``"))
            hint = f'double quotes make a string, "{text}"; the attribute of that name is written {own}'
        raise Mistake("this compares constants only, and no attribute", found.span, hint)

    def arithmetic(self, left: ExpressionPart, sign: Token, right: ExpressionPart) -> ExpressionPart:
        both = (left, right)
        return _expression(p.Arithmetic(str(sign), value_of(left), value_of(right), _span(both)), both)

    def negative(self, sign: Token, part: ExpressionPart) -> ExpressionPart:
        span = at(sign) | part.span
        operand = value_of(part)
        if isinstance(operand, p.Duration):
            return _expression(replace(operand, value=-operand.value, span=span), (part,), span)
        if isinstance(operand, p.Constant):
            negated = _negated(operand.value)
            if negated is None:
                raise Mistake(f"{operand} has no negative", span)
            return _expression(p.Constant(negated, span), (part,), span)
        return _expression(p.Negative(operand, span), (part,), span)

    def concat(self, left: ExpressionPart, _: Token, right: ExpressionPart) -> ExpressionPart:
        both = (left, right)
        texts = [one for part in map(value_of, both) for one in _concatenated(part)]
        return _expression(p.Function("concat", tuple(texts), _span(both)), both)

    def arm(self, _: Token, condition: ExpressionPart, __: Token, value: ExpressionPart) -> Arm:
        return Arm(condition, value)

    def case(self, keyword: Token, *rest: ExpressionPart | Arm | Token) -> ExpressionPart:
        """``CASE x WHEN a THEN …`` is ``CASE WHEN x = a THEN …``."""
        arms = [one for one in rest if isinstance(one, Arm)]
        values = [one for one in rest if isinstance(one, ExpressionPart)]
        subject = values.pop(0) if isinstance(rest[0], ExpressionPart) else None
        asked = [one.condition if subject is None else self._is(subject, one.condition) for one in arms]
        given = [*(one.value for one in arms), *values]
        chosen = [_value_or_null(one) for one in given] + [p.NULL] * (not values)
        span = at(keyword) | at_end(rest)
        return _expression(p.Case(tuple(map(predicate_of, asked)), tuple(chosen), span), [*asked, *given], span)

    def _is(self, subject: ExpressionPart, value: ExpressionPart) -> ExpressionPart:
        both = (subject, value)
        return _expression(p.Comparison("=", value_of(subject), value_of(value), value.span), both)

    #: Whether the functions of the language are known here.
    has_functions = True

    def call(self, function: Token, _: Token, *rest: ExpressionPart | Token) -> ExpressionPart:
        """Make a call of a registered function, or of one of the language."""
        if self.has_functions and function.upper() in _OPERATORS:
            hint = _OPERATORS[function.upper()]
            raise Mistake(f"a value is needed before {function.upper()}", at(function), hint)
        parts = [part for part in rest if isinstance(part, ExpressionPart)]
        span = at(function) | at_end(rest)
        values = tuple(map(value_of, parts))
        if self.has_functions and function.lower() in COMMON and str(function) not in known():
            return _expression(p.Function(function.lower(), values, span), parts, span)
        if self.has_functions and function.lower() == "array_contains" and len(parts) == 2:
            return _expression(p.Member(values[1], values[0], span), parts, span)
        self.refuse_call(function, span, parts)
        return _expression(p.Call(str(function), values, span), parts, span)

    def moving(self, function: Token, _: Token, *rest: ExpressionPart | Token | Over) -> ExpressionPart:
        """Make the value of ``count(DISTINCT x) OVER 1 minute``; whose events these are is known where the condition is."""
        over, distinct = rest[-1], find(rest, "DISTINCT")
        assert isinstance(over, Over)
        part = next((one for one in rest if isinstance(one, ExpressionPart)), None)
        argument = None if part is None else value_of(part)
        span = at(function) | over.span
        return ExpressionPart(moving_of(function, "", argument, distinct, over), span, 1 + (part.height if part else 0))

    def refuse_call(self, function: Token, span: Span, parts: Sequence[ExpressionPart]) -> None:
        """Refuse a function that the language has no place for."""

    def quoted(self, word: Token) -> ExpressionPart:
        """Inside conditions double quotes are those of strings, as in the CORE paper's figure 1: name="MSFT"."""
        return self.string(word) if word.startswith('"') else self.backticked(word)

    def bare(self, word: Token) -> ExpressionPart:
        """Make an attribute of a word without quotes."""
        return attribute_of(name_of(word))

    def backticked(self, word: Token) -> ExpressionPart:
        """Make an attribute of a name in backticks."""
        return attribute_of(name_of(word))

    def duration(self, token: Token) -> ExpressionPart:
        pairs = _DURATIONS.findall(token)
        seconds = sum((Fraction(number) * Fraction(SECONDS[unit.casefold()]) for number, unit in pairs), Fraction(0))
        per_second = next((one for one in PER_SECOND.values() if (seconds * one).denominator == 1), None)
        if per_second is None:
            raise Mistake("a duration finer than a nanosecond", at(token))
        return ExpressionPart(p.Duration(int(seconds * per_second), at(token), per_second), at(token))

    def number(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(number_of(token), at(token)), at(token))

    def string(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(unquoted(token), at(token)), at(token), quoted=token.startswith('"'))

    def true(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(True, at(token)), at(token))

    def false(self, token: Token) -> ExpressionPart:
        return ExpressionPart(p.Constant(False, at(token)), at(token))

    def null(self, token: Token) -> ExpressionPart:
        return ExpressionPart(None, at(token))

    def expression_group(self, opening: Token, part: ExpressionPart, closing: Token) -> ExpressionPart:
        return shallow(replace(part, span=at(opening) | at(closing), parens=part.parens + 1))


def _concatenated(value: p.Operand) -> tuple[p.Operand, ...]:
    """What ``||`` joins, flat."""
    return value.arguments if isinstance(value, p.Function) and value.name == "concat" else (value,)


def _connected(connective: type[p.And] | type[p.Or], parts: Sequence[ExpressionPart | Token]) -> ExpressionPart:
    """AND or OR of conditions, flat."""
    operands = [part for part in parts if not isinstance(part, Token)]
    predicates: list[p.Predicate] = []
    for predicate in map(predicate_of, operands):
        predicates += predicate.parts if isinstance(predicate, connective) else (predicate,)
    return _expression(connective(tuple(predicates), _span(operands)), operands)


#: Words that look like a function where the value before them is missing, and how they are written.
_OPERATORS = {
    "IN": "write x IN (1, 2)",
    "LIKE": "write x LIKE 'a%'",
    "RLIKE": "write x RLIKE 'a.*'",
    "BETWEEN": "write x BETWEEN 1 AND 2",
    "AND": "write x > 1 AND y > 1",
    "OR": "write x > 1 OR y > 1",
    "IS": "write x IS NULL",
}

_NULL_HINT = "NULL stands only in IS NULL and IS NOT NULL"
_NULL_HINTS = {
    "=": "write IS NULL",
    "==": "write IS NULL",
    "!=": "write IS NOT NULL",
    "<>": "write IS NOT NULL",
}


def _span(parts: Sequence[ExpressionPart]) -> Span:
    return parts[0].span | parts[-1].span


def _negated(value: object) -> int | Decimal | None:
    if isinstance(value, Decimal):
        return value.copy_negate()
    return -value if isinstance(value, int) and not isinstance(value, bool) else None


def _expression(expression: p.Expression, parts: Sequence[ExpressionPart], span: Span | None = None) -> ExpressionPart:
    return shallow(
        ExpressionPart(
            expression,
            span or _span(parts),
            1 + max(part.height for part in parts),
            max(part.parens for part in parts),
        )
    )


def _stands_alone(expression: p.Expression) -> bool:
    """Whether a condition is what TRUE, FALSE or a function by itself means: see :func:`predicate_of`."""
    if not isinstance(expression, p.Comparison) or expression.op != "=" or not _is_bool(expression.right):
        return False
    return _is_bool(expression.left) or isinstance(expression.left, p.Call | p.Function | p.Case)


def _is_bool(value: p.Expression) -> bool:
    return isinstance(value, p.Constant) and isinstance(value.value, bool)


def attribute_of(name: Name) -> ExpressionPart:
    """Make an attribute of a name."""
    return ExpressionPart(p.Attribute(name.text, name.span), name.span)


def value_of(part: ExpressionPart) -> p.Operand:
    """Take what has a value: no condition, and not NULL."""
    _no_equivalence(part)
    expression = part.expression
    if expression is None:
        raise Mistake("NULL is no value to compute with", part.span, _NULL_HINT)
    if not isinstance(expression, p.Operand):
        raise Mistake("a value is needed here, not a condition", part.span)
    return expression


def _value_or_null(part: ExpressionPart) -> p.Operand:
    return replace(p.NULL, span=part.span) if part.is_null else value_of(part)


def _constant(part: ExpressionPart) -> p.Constant:
    value = value_of(part)
    if not isinstance(value, p.Constant):
        raise Mistake("IN lists constants only", part.span, "write x = a OR x = b for attributes")
    return value


def predicate_of(part: ExpressionPart) -> p.Predicate:
    """Take a condition; a boolean attribute or constant by itself means that it is TRUE."""
    _no_equivalence(part)
    expression = part.expression
    if isinstance(expression, p.Attribute | p.Call | p.Function | p.Case) or (
        isinstance(expression, p.Constant) and isinstance(expression.value, bool)
    ):
        return p.Comparison("=", expression, p.Constant(True), part.span)
    if expression is None or isinstance(expression, p.Operand):
        raise Mistake("a condition is needed here, not a value", part.span, "compare it: price > 3")
    return expression


def _no_equivalence(part: ExpressionPart) -> None:
    """Refuse an equivalence test (SASE+) inside an expression: it is about all events, so it holds for the whole query."""
    if part.equal:
        test = f"[{', '.join(name.text for name in part.equal)}]"
        raise Mistake(
            f"the equivalence test {test} is about all events of a match; it stands by itself, joined by AND",
            part.equal[0].span if len(part.equal) == 1 else part.equal[0].span | part.equal[-1].span,
            "to compare two events, name them: a.x = b.x",
        )
