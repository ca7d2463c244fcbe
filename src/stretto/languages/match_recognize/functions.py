"""SQL's functions and casts that are written as other expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lark import Token

from stretto.errors import Span, suggestion
from stretto.languages.expressions.tokens import Mistake
from stretto.languages.expressions.transformer import ExpressionPart, shallow, value_of
from stretto.query import predicate as p
from stretto.query.scalar_functions import TYPES
from stretto.times import PER_SECOND, SECONDS

#: What to write in place of aggregates that are not computed.
WRITTEN = {
    "approx_distinct": "count(DISTINCT x), which is exact",
    "approx_count_distinct": "count(DISTINCT x), which is exact",
    "mean": "avg(x)",
    "collect_list": "array_agg(x)",
}


@dataclass(frozen=True)
class Named:
    """A type as it is written."""

    name: str
    number: Token | None
    span: Span


#: Units of intervals that are counted in months.
MONTHS = {"month": 1, "quarter": 3, "year": 12}

#: Functions that are written as other expressions, with what they take.
REWRITTEN = {
    "nullif": ("x", "y"),
    "mod": ("x", "y"),
    "regexp_like": ("s", "'expression'"),
    "date_diff": ("'unit'", "t", "u"),
    "date_add": ("'unit'", "n", "t"),
}


def rewritten(name: str, values: list[p.Operand], parts: list[ExpressionPart], span: Span) -> p.Operand:
    """The expression that a function means."""
    first, second = values[:2]
    if name == "nullif":
        return p.Case((p.Comparison("=", first, second, span),), (p.NULL, first), span)
    if name == "mod":
        return p.Arithmetic("%", first, second, span)
    text = getattr(first if name.startswith("date") else second, "value", None)
    if not isinstance(text, str):
        raise Mistake(f"{name}({', '.join(REWRITTEN[name])}) takes a constant there", span)
    if name == "regexp_like":
        found = p.Rlike(first, text, span)
        unknown = p.Not(p.IsNull(first, span), span)
        return p.Case((found, unknown), (p.Constant(True), p.Constant(False), p.NULL), span)
    unit = text.lower()
    if unit in MONTHS:
        return _of_months(name, MONTHS[unit], values, span)
    if unit not in SECONDS:
        raise Mistake(
            f"{name} knows no '{text}'", parts[0].span, suggestion(unit, (*MONTHS, "day", "hour"), kind="unit")
        )
    length = Fraction(SECONDS[unit])
    per_second = next(one for one in PER_SECOND.values() if (length * one).denominator == 1)
    duration = p.Duration(int(length * per_second), span, per_second)
    if name == "date_diff":
        return p.Arithmetic("div", p.Arithmetic("-", values[2], second, span), duration, span)
    return p.Arithmetic("+", values[2], p.Arithmetic("*", second, duration, span), span)


def _of_months(name: str, months: int, values: list[p.Operand], span: Span) -> p.Operand:
    if name == "date_diff":
        found = p.Function("months_between", (values[1], values[2]), span)
        return found if months == 1 else p.Arithmetic("div", found, p.Constant(months), span)
    number = getattr(values[1], "value", None)
    if not isinstance(number, int):
        raise Mistake("date_add takes a constant number of months", span)
    return p.Function("add_months", (values[2], p.Constant(number * months)), span)


def cast_to(part: ExpressionPart, kind: Named, span: Span, *, tries: bool) -> ExpressionPart:
    name = TYPES.get(kind.name)
    if name is None or kind.number is not None:
        close = suggestion(kind.name, TYPES, kind="type")
        written = kind.name.upper() + ("(…)" if kind.number is not None else "")
        hint = close or f"types are {', '.join(sorted(set(TYPES.values())))}; compute others as columns before"
        raise Mistake(f"CAST to {written} is not computed here", kind.span, hint)
    return outer(p.Function(f"{'try_' * tries}cast_{name}", (value_of(part),), span), (part,))


def outer(expression: p.Operand, inside: Sequence[ExpressionPart]) -> ExpressionPart:
    """An operand over others, one level higher."""
    assert expression.span is not None
    height = 1 + max((part.height for part in inside), default=0)
    return shallow(
        ExpressionPart(expression, expression.span, height, max((part.parens for part in inside), default=0))
    )
