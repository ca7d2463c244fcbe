"""Predicates on one event as a Python mapping: straight from the definitions, the judge of the vectorized forms."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from stretto.pattern import predicate as p

__all__ = ["holds", "like_pattern", "value"]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(predicate: p.Predicate, event: Mapping[str, Any]) -> bool:
    """Whether an event satisfies a typed predicate (see :mod:`stretto.pattern.predicate` for NULL).

    >>> from stretto.pattern.predicate import Attribute, Comparison, Constant
    >>> holds(Comparison(">", Attribute("x"), Constant(3)), {"x": 4})
    True
    >>> holds(Comparison("!=", Attribute("x"), Constant(3)), {"x": None})
    False
    """
    match predicate:
        case p.Comparison(op, left, right):
            return _compare(op, value(left, event), value(right, event))
        case p.In(operand, values):
            found = value(operand, event)
            return any(_compare("=", found, constant.value) for constant in values)
        case p.Between(operand, low, high):
            found = value(operand, event)
            return _compare(">=", found, value(low, event)) and _compare("<=", found, value(high, event))
        case p.Like(operand, pattern):
            found = value(operand, event)
            return found is not None and like_pattern(pattern).fullmatch(found) is not None
        case p.IsNull(operand):
            return value(operand, event) is None
        case p.And(parts):
            return all(holds(part, event) for part in parts)
        case p.Or(parts):
            return any(holds(part, event) for part in parts)
        case p.Not(part):
            return not holds(part, event)


def value(operand: p.Operand, event: Mapping[str, Any]) -> Any:
    """The value of an operand on an event; ``None`` is NULL."""
    match operand:
        case p.Attribute(name):
            return event[name]
        case p.Constant(constant):
            return constant
        case p.Negative(inner):
            found = value(inner, event)
            return None if found is None else -found
        case p.Arithmetic(op, first, second):
            left, right = value(first, event), value(second, event)
            return None if left is None or right is None else _arithmetic(op, left, right)


def _compare(op: str, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    return COMPARE[op](*_alike(left, right))


def _arithmetic(op: str, left: Any, right: Any) -> Any:
    left, right = _alike(left, right)
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    if right == 0:
        return None
    if op == "/":
        return float(left) / float(right)
    if isinstance(left, float):
        return math.fmod(left, right) if math.isfinite(left) else math.nan
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """A float beside anything makes a float."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    return left, right


@lru_cache(maxsize=1024)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression: ``%`` any run of characters, ``_`` any one character.

    >>> bool(like_pattern("a%_").fullmatch("abc"))
    True
    """
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)
