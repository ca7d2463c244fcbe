"""Predicates on one event as a Python mapping: straight from the definitions, the judge of other forms.

Values are what ``pyarrow`` gives as Python objects. Beyond what :mod:`stretto.query.predicate` says:

- Comparisons are exact: an integer and a float are compared as the numbers they are, also beyond 2⁵³;
  a decimal beside a float is first rounded to the nearest float.
- NaN is unequal to everything, itself included, and neither less nor greater.
- Integers do not wrap: what :func:`holds` and :func:`value` say is exact. :func:`truth` says where 64 bits are too few to tell.
- ``/`` divides floats. ``%`` takes the sign of the dividend, as in SQL and C.
- Times with a zone are compared as moments; a date beside a timestamp is its midnight.
- Strings are ordered by code points.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

from stretto.query import functions
from stretto.query import predicate as p

__all__ = ["COMPARE", "Beyond", "bounded", "compare", "holds", "like", "like_pattern", "truth", "value"]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_INT64 = range(-(1 << 63), 1 << 63)

#: Wide enough that sums, products and remainders of decimals are exact.
_EXACT = Context(prec=4000)


def holds(predicate: p.Predicate, event: Mapping[str, Any]) -> bool:
    """Whether an event satisfies a typed predicate.

    >>> from stretto.query.predicate import Attribute, Comparison, Constant
    >>> holds(Comparison(">", Attribute("x"), Constant(3)), {"x": 4})
    True
    >>> holds(Comparison("!=", Attribute("x"), Constant(3)), {"x": None})
    False
    """
    match predicate:
        case p.Comparison(op, left, right):
            return compare(op, value(left, event), value(right, event))
        case p.In(operand, values):
            found = value(operand, event)
            return any(compare("=", found, constant.value) for constant in values)
        case p.Between(operand, low, high):
            found = value(operand, event)
            return compare(">=", found, value(low, event)) and compare("<=", found, value(high, event))
        case p.Like(operand, pattern):
            found = value(operand, event)
            return found is not None and like(found, pattern)
        case p.IsNull(operand):
            return value(operand, event) is None
        case p.And(parts):
            return all(holds(part, event) for part in parts)
        case p.Or(parts):
            return any(holds(part, event) for part in parts)
        case p.Not(part):
            return not holds(part, event)


@dataclass(frozen=True)
class Beyond:
    """What is in the place of a value that was computed of an integer beyond 64 bits: where, and what was computed there."""

    expression: p.Operand
    shown: str


def truth(predicate: p.Predicate, event: Mapping[str, Any]) -> bool | Beyond:
    """Whether an event satisfies a typed predicate, as far as integers of 64 bits tell.

    What they do not tell is neither true nor false: ``AND`` is false all the same where another part is, and ``OR`` true
    (Kleene's logic). So an overflow that the other side of an ``AND`` guards is none.

    >>> from stretto.query.predicate import And, Arithmetic, Attribute, Comparison, Constant
    >>> x = Attribute("x")
    >>> square = Comparison(">", Arithmetic("*", x, x), Constant(9))
    >>> guarded = And((square, Comparison("<", x, Constant(100))))
    >>> truth(square, {"x": 2**40}).shown, truth(guarded, {"x": 2**40}), truth(guarded, {"x": 4})
    ('1099511627776 * 1099511627776', False, True)
    """
    match predicate:
        case p.And(parts):
            return _joined((truth(part, event) for part in parts), decisive=False)
        case p.Or(parts):
            return _joined((truth(part, event) for part in parts), decisive=True)
        case p.Not(part):
            found = truth(part, event)
            return found if isinstance(found, Beyond) else not found
        case p.Between(operand, low, high):
            bounds = (p.Comparison(">=", operand, low), p.Comparison("<=", operand, high))
            return _joined((truth(bound, event) for bound in bounds), decisive=False)
    values = [bounded(operand, event) for operand in p.children(predicate) if isinstance(operand, p.Operand)]
    beyond = next((one for one in values if isinstance(one, Beyond)), None)
    if beyond is None or (None in values and not isinstance(predicate, p.IsNull)):
        return holds(predicate, event)
    return beyond


def _joined(truths: Iterable[bool | Beyond], *, decisive: bool) -> bool | Beyond:
    """AND, where false decides, or OR, where true does."""
    unknown: Beyond | None = None
    for one in truths:
        if isinstance(one, Beyond):
            unknown = unknown or one
        elif one is decisive:
            return one
    return unknown or not decisive


def bounded(operand: p.Operand, event: Mapping[str, Any]) -> Any:
    """The value of an operand, computed in integers of 64 bits: :class:`Beyond` where these do not suffice."""
    if not p.attributes(operand):
        return value(operand, event)
    match operand:
        case p.Negative(inner):
            return _bounded_result(operand, (bounded(inner, event),), "-{}", lambda own: -own)
        case p.Call(name, arguments):
            given = tuple(bounded(argument, event) for argument in arguments)
            return _bounded_result(operand, given, name, functions.known()[name].python)
        case p.Arithmetic(op, first, second):
            sides = (bounded(first, event), bounded(second, event))
            return _bounded_result(operand, sides, f"{{}} {op} {{}}", lambda left, right: _arithmetic(op, left, right))
    return value(operand, event)


def _bounded_result(operand: p.Operand, given: tuple[Any, ...], shown: str, compute: Callable[..., Any]) -> Any:
    if None in given:
        return None
    beyond = next((one for one in given if isinstance(one, Beyond)), None)
    if beyond is not None:
        return beyond
    if isinstance(operand, p.Negative) and isinstance(given[0], Decimal):
        return given[0].copy_negate()
    found = compute(*given)
    whole = [one for one in (*given, found) if isinstance(one, int) and not isinstance(one, bool)]
    if isinstance(found, int) and not isinstance(operand, p.Call) and any(one not in _INT64 for one in whole):
        return Beyond(operand, shown.format(*given))
    return found


def value(operand: p.Operand, event: Mapping[str, Any]) -> Any:
    """The value of an operand on an event; ``None`` is NULL.

    >>> from stretto.query.predicate import Arithmetic, Attribute, Constant
    >>> value(Arithmetic("%", Attribute("x"), Constant(3)), {"x": -7})
    -1
    """
    match operand:
        case p.Attribute(name):
            return event[name]
        case p.Constant(constant):
            return constant
        case p.Negative(inner):
            found = value(inner, event)
            if isinstance(found, Decimal):
                return found.copy_negate()
            return None if found is None else -found
        case p.Call(name, arguments):
            given = [value(argument, event) for argument in arguments]
            return None if None in given else functions.known()[name].python(*given)
        case p.Arithmetic(op, first, second):
            left, right = value(first, event), value(second, event)
            return None if left is None or right is None else _arithmetic(op, left, right)


def compare(op: str, left: Any, right: Any) -> bool:
    """``left op right`` for two values of one kind; false when one of them is ``None``.

    >>> compare("<", 2**53, 2.0**53 + 2), compare("=", 2**53 + 1, 2.0**53)
    (True, False)
    """
    if left is None or right is None:
        return False
    if isinstance(left, dt.date):
        left, right = _moment(left), _moment(right)
    elif isinstance(left, Decimal) and isinstance(right, float):
        left = _real(left)
    elif isinstance(right, Decimal) and isinstance(left, float):
        right = _real(right)
    return COMPARE[op](left, right)


def _moment(time: dt.date) -> dt.datetime:
    """A date as its midnight; a time with a zone in UTC (else Python compares what the zone's clocks show)."""
    if not isinstance(time, dt.datetime):
        return dt.datetime(time.year, time.month, time.day)
    return time if time.tzinfo is None else time.astimezone(dt.UTC)


def _arithmetic(op: str, left: Any, right: Any) -> Any:
    if op in "/%" and right == 0:
        return None
    if op == "/" or isinstance(left, float) or isinstance(right, float):
        return _real_arithmetic(op, _real(left), _real(right))
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return _decimal_arithmetic(op, Decimal(left), Decimal(right))
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _real_arithmetic(op: str, left: float, right: float) -> float:
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    if op == "/":
        return left / right
    return math.fmod(left, right) if math.isfinite(left) else math.nan


def _decimal_arithmetic(op: str, left: Decimal, right: Decimal) -> Decimal:
    if op == "+":
        return _EXACT.add(left, right)
    if op == "-":
        return _EXACT.subtract(left, right)
    if op == "*":
        return _EXACT.multiply(left, right)
    return _EXACT.remainder(left, right)


def _real(number: float | Decimal) -> float:
    """The nearest float; infinity beyond the greatest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def like(text: str, pattern: str) -> bool:
    """Whether all of ``text`` matches a LIKE pattern: ``%`` any run of characters, ``_`` any one character.

    >>> like("abc", "a%_"), like("a", "a%_")
    (True, False)
    """
    at = begin = 0
    retry, star = -1, -1  # where the last % began to match, and where it is in the pattern
    while at < len(text):
        if begin < len(pattern) and pattern[begin] == "%":
            star, retry = begin, at
            begin += 1
        elif begin < len(pattern) and pattern[begin] in ("_", text[at]):
            at += 1
            begin += 1
        elif star >= 0:
            retry += 1
            at, begin = retry, star + 1
        else:
            return False
    return pattern[begin:].strip("%") == ""


@lru_cache(maxsize=1024)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression, for those who need one (RE2 reads it as well).

    >>> bool(like_pattern("a%_").fullmatch("abc"))
    True
    """
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)
