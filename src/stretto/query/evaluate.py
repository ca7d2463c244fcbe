"""Predicates on one event as a Python mapping: straight from the definitions, the judge of other forms.

Values are what ``pyarrow`` gives as Python objects. Beyond what :mod:`stretto.query.predicate` says:

- Comparisons are exact: an integer and a float are compared as the numbers they are, also beyond 2⁵³;
  a decimal beside a float is first rounded to the nearest float.
- NaN is unequal to everything, itself included, and neither less nor greater.
- Integers do not wrap: what :func:`holds` and :func:`value` say is exact. :func:`truth` says where 64 bits are too few to tell.
- ``/`` divides floats, and ``div`` integers, towards zero. ``%`` takes the sign of the dividend, as in SQL and C.
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
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import INT64
from stretto.query import functions
from stretto.query import predicate as p
from stretto.query.scalar_functions import FUNCTIONS

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

#: Wide enough that sums, products and remainders of decimals are exact.
_EXACT = Context(prec=4000)


def holds(predicate: p.Predicate, event: Mapping[str, Any]) -> bool:
    """Tell whether an event satisfies a typed predicate.

    >>> from stretto.query.predicate import Attribute, Comparison, Constant
    >>> holds(Comparison(">", Attribute("x"), Constant(3)), {"x": 4})
    True
    >>> holds(Comparison("!=", Attribute("x"), Constant(3)), {"x": None})
    False
    """
    return bool(_Exact(event).visit(predicate))


def value(operand: p.Operand, event: Mapping[str, Any]) -> Any:
    """Compute an operand on an event; ``None`` is NULL.

    >>> from stretto.query.predicate import Arithmetic, Attribute, Constant
    >>> value(Arithmetic("%", Attribute("x"), Constant(3)), {"x": -7})
    -1
    """
    return _Exact(event).visit(operand)


class _Exact(p.Visitor):
    """The values and truths of one event."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.event = event

    def attribute(self, node: p.Attribute) -> Any:
        return self.event[node.name]

    def constant(self, node: p.Constant) -> Any:
        return node.value

    def negative(self, node: p.Negative) -> Any:
        return self.computed(node, (self.visit(node.operand),), "-{}", _negative)

    def call(self, node: p.Call) -> Any:
        given = tuple(map(self.visit, node.arguments))
        return self.computed(node, given, node.name, functions.known()[node.name].python)

    def ticks(self, node: p.Ticks) -> Any:
        return self.computed(node, (self.visit(node.operand),), "{}", partial(_ticks, node.per_second))

    def function(self, node: p.Function) -> Any:
        given = tuple(map(self.visit, node.arguments))
        python = FUNCTIONS[node.name].python
        if node.name == "coalesce":
            return self.chosen(node, python(*given))
        return self.computed(node, given, f"{node.name}({', '.join('{}' for _ in given)})", python)

    def case(self, node: p.Case) -> Any:
        for condition, chosen in zip(node.conditions, node.values, strict=False):
            held = self.visit(condition)
            if held:
                return held if isinstance(held, Beyond) else self.chosen(node, self.visit(chosen))
        return self.chosen(node, self.visit(node.values[-1]))

    def chosen(self, node: p.Operand, found: Any) -> Any:
        """What was chosen of some values."""
        return found

    def arithmetic(self, node: p.Arithmetic) -> Any:
        given = (self.visit(node.left), self.visit(node.right))
        return self.computed(node, given, f"{{}} {node.op} {{}}", partial(_arithmetic, node.op))

    def computed(self, node: p.Operand, given: tuple[Any, ...], shown: str, compute: Callable[..., Any]) -> Any:
        """What is computed of some values; ``shown`` is how it is written."""
        return None if None in given else compute(*given)

    def comparison(self, node: p.Comparison) -> bool | Beyond:
        return compare(node.op, self.visit(node.left), self.visit(node.right))

    def like(self, node: p.Like) -> bool:
        text = self.visit(node.operand)
        return text is not None and like(text, node.pattern)

    def rlike(self, node: p.Rlike) -> bool:
        text = self.visit(node.operand)
        return text is not None and bool(pc.match_substring_regex(pa.scalar(text), node.pattern).as_py())

    def member(self, node: p.Member) -> bool | Beyond:
        own, values = self.visit(node.operand), self.visit(node.values)
        if own is None or values is None:
            return False
        return any(compare("=", own, one) for one in values)

    def is_null(self, node: p.IsNull) -> bool | Beyond:
        return self.visit(node.operand) is None

    def all_of(self, node: p.And) -> bool | Beyond:
        return all(map(self.visit, node.parts))

    def any_of(self, node: p.Or) -> bool | Beyond:
        return any(map(self.visit, node.parts))

    def negation(self, node: p.Not) -> bool | Beyond:
        return not self.visit(node.part)


@dataclass(frozen=True)
class Beyond:
    """What is in the place of a value that was computed of an integer beyond 64 bits: where, and what was computed there."""

    expression: p.Operand
    shown: str


def truth(predicate: p.Predicate, event: Mapping[str, Any]) -> bool | Beyond:
    """Tell whether an event satisfies a typed predicate, as far as integers of 64 bits tell.

    What they do not tell is neither true nor false: ``AND`` is false all the same where another part is, and ``OR`` true
    (Kleene's logic). So an overflow that the other side of an ``AND`` guards is none.

    >>> from stretto.query.predicate import And, Arithmetic, Attribute, Comparison, Constant
    >>> x = Attribute("x")
    >>> square = Comparison(">", Arithmetic("*", x, x), Constant(9))
    >>> guarded = And((square, Comparison("<", x, Constant(100))))
    >>> truth(square, {"x": 2**40}).shown, truth(guarded, {"x": 2**40}), truth(guarded, {"x": 4})
    ('1099511627776 * 1099511627776', False, True)
    """
    found: bool | Beyond = _Bounded(event).visit(predicate)
    return found


def bounded(operand: p.Operand, event: Mapping[str, Any]) -> Any:
    """Compute an operand in integers of 64 bits: :class:`Beyond` where these do not suffice."""
    return _Bounded(event).visit(operand)


class _Bounded(_Exact):
    """The same, where an integer beyond 64 bits is :class:`Beyond`, and so is all that depends on it."""

    def computed(self, node: p.Operand, given: tuple[Any, ...], shown: str, compute: Callable[..., Any]) -> Any:
        beyond = _first_beyond(given)
        if None in given or beyond is not None:
            return None if None in given else beyond
        found = compute(*given)
        if not isinstance(found, int) or isinstance(node, p.Call) or not p.attributes(node):
            return found  # constants are computed before a kernel is made
        whole = (one for one in (*given, found) if isinstance(one, int) and not isinstance(one, bool))
        return found if all(one in INT64 for one in whole) else Beyond(node, shown.format(*given))

    def chosen(self, node: p.Operand, found: Any) -> Any:
        whole = isinstance(found, int) and not isinstance(found, bool)
        return Beyond(node, str(found)) if whole and found not in INT64 else found

    def comparison(self, node: p.Comparison) -> bool | Beyond:
        sides = (self.visit(node.left), self.visit(node.right))
        return False if None in sides else _first_beyond(sides) or compare(node.op, *sides)

    def member(self, node: p.Member) -> bool | Beyond:
        own = self.visit(node.operand)
        if isinstance(own, Beyond):
            known = [one for one in self.visit(node.values) or () if one is not None]
            return own if known else False
        return super().member(node)

    def is_null(self, node: p.IsNull) -> Any:
        found = self.visit(node.operand)
        return found if isinstance(found, Beyond) else found is None

    def all_of(self, node: p.And) -> bool | Beyond:
        return self._joined(node.parts, decisive=False)

    def any_of(self, node: p.Or) -> bool | Beyond:
        return self._joined(node.parts, decisive=True)

    def _joined(self, parts: Iterable[p.Predicate], *, decisive: bool) -> bool | Beyond:
        """AND, where false decides, or OR, where true does."""
        unknown: Beyond | None = None
        for part in parts:
            one: bool | Beyond = self.visit(part)
            if isinstance(one, Beyond):
                unknown = unknown or one
            elif one is decisive:
                return decisive
        return unknown or not decisive

    def negation(self, node: p.Not) -> Any:
        found = self.visit(node.part)
        return found if isinstance(found, Beyond) else not found


def _first_beyond(values: Iterable[Any]) -> Beyond | None:
    return next((one for one in values if isinstance(one, Beyond)), None)


def _negative(number: Any) -> Any:
    return number.copy_negate() if isinstance(number, Decimal) else -number


def compare(op: str, left: Any, right: Any) -> bool:
    """Compare two values of one kind, ``left op right``; false when one of them is ``None``.

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


def _ticks(per_second: int, time: Any) -> int:
    """A time as an integer; a finer one than that is none."""
    nanoseconds = getattr(time, "nanosecond", 0)
    moment = _moment(time)
    zero = dt.datetime(1970, 1, 1, tzinfo=moment.tzinfo and dt.UTC)
    whole = (moment - zero) // dt.timedelta(microseconds=1) * 1000 + nanoseconds
    return whole * per_second // 10**9


def _arithmetic(op: str, left: Any, right: Any) -> Any:
    if op in _DIVIDES and right == 0:
        return None
    if op == "/" or isinstance(left, float) or isinstance(right, float):
        return _REAL[op](_real(left), _real(right))
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return _DECIMAL[op](Decimal(left), Decimal(right))
    return _WHOLE[op](left, right)


def _quotient(left: int, right: int) -> int:
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int:
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _remainder_real(left: float, right: float) -> float:
    return math.fmod(left, right) if math.isfinite(left) else math.nan


_PLAIN: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_DIVIDES = ("/", "div", "%")
_WHOLE = _PLAIN | {"%": _remainder, "div": _quotient}
_REAL = _PLAIN | {"/": operator.truediv, "%": _remainder_real}
_DECIMAL = {"+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply, "%": _EXACT.remainder}


def _real(number: float | Decimal) -> float:
    """The nearest float; infinity beyond the greatest."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def like(text: str, pattern: str) -> bool:
    """Tell whether all of ``text`` matches a LIKE pattern: ``%`` any run of characters, ``_`` any one character.

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


def like_search(pattern: str) -> tuple[str, str]:
    """Find the cheapest search that says what a LIKE pattern says, and the text that it looks for.

    It is ``equal``, ``starts``, ``ends`` or ``contains``; or ``like``, where no search for one text does.

    >>> like_search("a%"), like_search("%a%"), like_search("a_")
    (('starts', 'a'), ('contains', 'a'), ('like', 'a_'))
    """
    inner = pattern.strip("%")
    if "_" in pattern or "%" in inner:
        return "like", pattern
    return _SEARCHES[pattern.startswith("%"), pattern.endswith("%")], inner


_SEARCHES = {(False, False): "equal", (False, True): "starts", (True, False): "ends", (True, True): "contains"}


@lru_cache(maxsize=1024)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """Write a LIKE pattern as a regular expression, for those who need one (RE2 reads it as well).

    >>> bool(like_pattern("a%_").fullmatch("abc"))
    True
    """
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)
