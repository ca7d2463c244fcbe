"""Predicates over one event: the expressions inside ``X[…]``, as values.

Meaning (SEMANTICS: NULL). A comparison with NULL is false, and so are ``IN``, ``BETWEEN`` and ``LIKE`` of NULL; ``NOT`` is
plain negation (two values, not SQL's three). Arithmetic with NULL is NULL, and so is division by zero. ``a NOT IN (…)``
is ``NOT (a IN (…))``.

Numbers are written exactly: an integer literal is an ``int``, one with a point or exponent a ``Decimal``.
:func:`typed` turns literals into the type that they are compared with, once the schema is known.

A node is a class here: how it is written, which of its fields hold expressions (``inner``), and the method in which a backend says
what it means to it (``method`` of a :class:`Visitor`); or, where other nodes say the same, its ``meaning``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from math import prod
from typing import Any, ClassVar, TypeVar, cast, get_args

from stretto.errors import LimitError, Span
from stretto.query.scalar_functions import FUNCTIONS
from stretto.times import PER_SECOND

Value = int | float | Decimal | str | bool | bytes | dt.datetime | dt.date


#: Comparisons seen from the other side.
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

#: Words of the language inside conditions; an attribute of that name is written in backticks.
WORDS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"})


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | Decimal):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


class _Node:
    """The base of all nodes: the method that a backend has for it, and the fields that hold expressions."""

    method: ClassVar[str]
    inner: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Attribute(_Node):
    """An attribute of the event."""

    method: ClassVar = "attribute"
    moves: ClassVar[bool] = False  #: its value is one of the events before, too
    name: str
    span: Span | None = _span()

    def __str__(self) -> str:
        bare = self.name.isascii() and self.name.replace("_", "a").isalnum() and not self.name[:1].isdigit()
        if bare and self.name.upper() not in WORDS:
            return self.name
        return "`" + self.name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Constant(_Node):
    """A literal: a number, a string, TRUE, FALSE, or NULL."""

    method: ClassVar = "constant"
    value: Value
    span: Span | None = _span()

    def __str__(self) -> str:
        return "NULL" if is_null(self) else _literal(self.value)


#: What CASE may give besides values.
NULL = Constant(cast(Any, None))


def is_null(node: Expression) -> bool:
    """Tell whether an expression is the word NULL."""
    return isinstance(node, Constant) and node.value is cast(Any, None)


@dataclass(frozen=True)
class Duration(Constant):
    """A duration: ``value`` ticks, of which a second has ``per_second``."""

    value: int
    per_second: int = 1

    def __str__(self) -> str:
        unit = next(unit for unit, per_second in PER_SECOND.items() if per_second == self.per_second)
        return f"{self.value} {unit}"


@dataclass(frozen=True)
class Ticks(_Node):
    """A time as an integer, of which a second has ``per_second``: what typing makes of times that are computed with."""

    method: ClassVar = "ticks"
    inner: ClassVar = ("operand",)
    operand: Operand
    per_second: int
    span: Span | None = _span()

    def __str__(self) -> str:
        return str(self.operand)


@dataclass(frozen=True)
class Arithmetic(_Node):
    """``left op right`` with ``op`` one of ``+ - * / %``, where ``/`` is real division, or ``div``, of integers towards zero."""

    method: ClassVar = "arithmetic"
    inner: ClassVar = ("left", "right")
    op: str
    left: Operand
    right: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True)
class Negative(_Node):
    """``-operand``."""

    method: ClassVar = "negative"
    inner: ClassVar = ("operand",)
    operand: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"(- {self.operand})"


@dataclass(frozen=True)
class _Applied(_Node):
    """``name(arguments)``."""

    inner: ClassVar = ("arguments",)
    name: str
    arguments: tuple[Operand, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class Call(_Applied):
    """``name(arguments)``: a function that the user registered (:func:`stretto.function`)."""

    method: ClassVar = "call"


@dataclass(frozen=True)
class Function(_Applied):
    """``name(arguments)``: a function of the language (:mod:`stretto.query.scalar_functions`), by its name in small letters."""

    method: ClassVar = "function"


@dataclass(frozen=True)
class Case(_Node):
    """``CASE WHEN condition THEN value … ELSE value END``: the value of the first condition that holds, else the last one.

    In conditions typing writes what it means without it (:func:`without_cases`).
    """

    method: ClassVar = "case"
    inner: ClassVar = ("conditions", "values")
    name: ClassVar = "CASE"
    conditions: tuple[Predicate, ...]
    values: tuple[Operand, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        arms = zip(self.conditions, self.values, strict=False)
        return f"CASE {' '.join(f'WHEN {one} THEN {value}' for one, value in arms)} ELSE {self.values[-1]} END"


Operand = Attribute | Constant | Arithmetic | Negative | Call | Function | Case | Ticks


@dataclass(frozen=True)
class Comparison(_Node):
    """``left op right`` with ``op`` one of ``= != < <= > >=`` (``==`` and ``<>`` are read as ``=`` and ``!=``)."""

    method: ClassVar = "comparison"
    inner: ClassVar = ("left", "right")
    op: str
    left: Operand
    right: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class In(_Node):
    """``operand IN (values)``."""

    method: ClassVar = "among"
    inner: ClassVar = ("operand", "values")
    operand: Operand
    values: tuple[Constant, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} IN ({', '.join(map(str, self.values))})"

    @cached_property
    def meaning(self) -> Or:
        """The same in comparisons."""
        return Or(tuple(Comparison("=", self.operand, value, self.span) for value in self.values), self.span)


@dataclass(frozen=True)
class Between(_Node):
    """``operand BETWEEN low AND high``, both ends included."""

    method: ClassVar = "between"
    inner: ClassVar = ("operand", "low", "high")
    operand: Operand
    low: Operand
    high: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} BETWEEN {self.low} AND {self.high}"

    @cached_property
    def meaning(self) -> And:
        """The same in comparisons."""
        bounds = ((">=", self.low), ("<=", self.high))
        return And(tuple(Comparison(op, self.operand, bound, self.span) for op, bound in bounds), self.span)


@dataclass(frozen=True)
class Like(_Node):
    """``operand LIKE pattern``: ``%`` is any run of characters, ``_`` any one; the whole string must match."""

    method: ClassVar = "like"
    inner: ClassVar = ("operand",)
    operand: Operand
    pattern: str
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} LIKE {_literal(self.pattern)}"


@dataclass(frozen=True)
class Rlike(Like):
    """``operand RLIKE pattern``: a regular expression, as RE2 reads it, is found somewhere in the string."""

    method: ClassVar = "rlike"

    def __str__(self) -> str:
        return f"{self.operand} RLIKE {_literal(self.pattern)}"


@dataclass(frozen=True)
class Wildcard(_Node):
    """``operand LIKE ("a*", "b?")`` of EQL: ``*`` is any run of characters, ``?`` any one; one of the patterns is the whole string.

    With ``folds`` (``LIKE~``) letters are equal to those of the other case. ``plain``: the patterns are strings, in which ``*`` and
    ``?`` stand for themselves.

    >>> print(Wildcard(Attribute("name"), ("cmd*",), folds=True).meaning)
    name RLIKE '(?is)\\A(?:cmd.*)\\z'
    """

    method: ClassVar = "wildcard"
    inner: ClassVar = ("operand",)
    operand: Operand
    patterns: tuple[str, ...]
    folds: bool = False
    plain: bool = False
    span: Span | None = _span()

    def __str__(self) -> str:
        sign = f"{'IN' if self.plain else 'LIKE'}{'~' * self.folds}"
        quoted = ", ".join('"' + one.replace('"', '""') + '"' for one in self.patterns)
        return f"{self.operand} {sign} ({quoted})"

    @cached_property
    def meaning(self) -> Predicate:
        """The same in regular expressions, of which none has too many patterns for RE2."""
        flags = "is" if self.folds else "s"
        found = []
        for first in range(0, len(self.patterns), _MOST_PATTERNS):
            some = self.patterns[first : first + _MOST_PATTERNS]
            regex = "|".join(map(escaped if self.plain else _with_wildcards, some))
            found.append(Rlike(self.operand, rf"(?{flags})\A(?:{regex})\z", self.span))
        return found[0] if len(found) == 1 else Or(tuple(found), self.span)


#: Patterns that one regular expression holds.
_MOST_PATTERNS = 64


def escaped(text: str) -> str:
    """Write a text as a regular expression."""
    return "".join(f"\\{one}" if one in r"\.+*?()|[]{}^$" else one for one in text)


def _with_wildcards(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(one) or escaped(one) for one in pattern)


@dataclass(frozen=True)
class Member(_Node):
    """``operand IN values``: one of the values of a list, which is an attribute."""

    method: ClassVar = "member"
    inner: ClassVar = ("operand", "values")
    operand: Operand
    values: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} IN {self.values}"


@dataclass(frozen=True)
class IsNull(_Node):
    """``operand IS NULL``."""

    method: ClassVar = "is_null"
    inner: ClassVar = ("operand",)
    operand: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


@dataclass(frozen=True)
class And(_Node):
    """All of some conditions; of none, it always holds."""

    method: ClassVar = "all_of"
    inner: ClassVar = ("parts",)
    parts: tuple[Predicate, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Or(_Node):
    """One of some conditions; of none, it never holds."""

    method: ClassVar = "any_of"
    inner: ClassVar = ("parts",)
    parts: tuple[Predicate, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return " OR ".join(str(part) for part in self.parts)


@dataclass(frozen=True)
class Not(_Node):
    """The negation, with two values."""

    method: ClassVar = "negation"
    inner: ClassVar = ("part",)
    part: Predicate
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"NOT ({self.part})"


Predicate = Comparison | In | Member | Between | Like | Rlike | Wildcard | IsNull | And | Or | Not
Expression = Operand | Predicate


#: All kinds of nodes: what a backend gives a meaning.
NODES: tuple[type[_Node], ...] = (*get_args(Operand), *get_args(Predicate))

_E = TypeVar("_E", bound=Expression)


class Visitor:
    """What a backend makes of expressions: a method for each node, called as the node's ``method`` says.

    A node that has a ``meaning`` in other nodes needs none: that is visited instead. Subclasses say by ``takes`` if they are for
    some nodes only.
    """

    takes: ClassVar[tuple[type[_Node], ...]] = NODES

    def visit(self, node: Expression, *more: Any) -> Any:
        """Say what the backend makes of a node.

        Raises
        ------
        NotImplementedError
            It gives such nodes no meaning.
        """
        method = getattr(self, node.method, None)
        if method is not None:
            return method(node, *more)
        meaning = getattr(node, "meaning", None)
        if meaning is None:
            raise NotImplementedError(
                f"{type(self).__name__} has no method '{node.method}' for {type(node).__name__}: {node}"
            )
        return self.visit(meaning, *more)


# ---- What needs no backend


def children(expression: Expression) -> tuple[Expression, ...]:
    """Give the direct sub-expressions, left to right."""
    found: list[Expression] = []
    for name in expression.inner:
        part = getattr(expression, name)
        found.extend(part) if isinstance(part, tuple) else found.append(part)
    return tuple(found)


def rebuilt(expression: _E, change: Callable[[Any], Any]) -> _E:
    """Make the same node over changed sub-expressions."""
    fresh: dict[str, Any] = {}
    for name in expression.inner:
        part = getattr(expression, name)
        fresh[name] = tuple(map(change, part)) if isinstance(part, tuple) else change(part)
    return cast(_E, replace(cast(Any, expression), **fresh)) if fresh else expression


def against_constant(node: Expression) -> tuple[str, Operand, Constant] | None:
    """Take apart a comparison with a constant: operator, operand and constant, which comes last."""
    if isinstance(node, Comparison):
        if isinstance(node.right, Constant):
            return node.op, node.left, node.right
        if isinstance(node.left, Constant):
            return FLIPPED[node.op], node.right, node.left
    return None


def comparisons(atom: Predicate) -> tuple[Predicate, ...]:
    """Give the comparisons that an atomic condition means: all of them, or for ``IN`` one of them."""
    return atom.meaning.parts if isinstance(atom, In | Between) else (atom,)


def spelt_out(node: Predicate, holds: bool = True) -> Predicate:
    """Write a condition, or its negation, without ``IN`` and ``BETWEEN``, and with ``NOT`` before single comparisons only.

    >>> x = Attribute("x")
    >>> print(spelt_out(Not(Between(x, Constant(1), Constant(2)))))
    NOT (x >= 1) OR NOT (x <= 2)
    """
    if isinstance(node, Not):
        return spelt_out(node.part, not holds)
    if isinstance(node, In | Between):
        return spelt_out(node.meaning, holds)
    if isinstance(node, And | Or):
        parts = tuple(spelt_out(part, holds) for part in node.parts)
        return And(parts, node.span) if isinstance(node, And) is holds else Or(parts, node.span)
    return node if holds else Not(node, node.span)


def without_cases(node: Predicate, holds: bool = True) -> Predicate:
    """Write a condition, or its negation, without ``CASE``: for each value, it is another one, or the condition holds with this.

    >>> x = Attribute("x")
    >>> sign = Case((Comparison("<", x, Constant(0)),), (Constant(-1), NULL))
    >>> print(without_cases(Comparison("=", sign, Attribute("y"))))
    (NOT (x < 0) OR -1 = y) AND x < 0
    """
    if isinstance(node, Not):
        return without_cases(node.part, not holds)
    if isinstance(node, And | Or):
        parts = tuple(without_cases(part, holds) for part in node.parts)
        return And(parts, node.span) if isinstance(node, And) is holds else Or(parts, node.span)
    case = next((one for one in walk(node) if isinstance(one, Case)), None)
    if case is None:
        told = with_nulls(node, ("",))
        if told is None:
            return And(()) if isinstance(node, IsNull) is holds else Or(())
        return told if holds else Not(told, told.span)
    if isinstance(node, In | Between):
        return without_cases(node.meaning, holds)
    if (count := _outcomes(node)) > MOST_OUTCOMES:
        raise LimitError(f"a condition over CASE has {count:,} outcomes, and {MOST_OUTCOMES} at most: split it")
    found: list[Predicate] = []
    for number, value in enumerate(case.values):
        others = [without_cases(one) for one in case.conditions[:number]]
        others += [without_cases(one, False) for one in case.conditions[number : number + 1]]
        own = without_cases(_replaced(node, case, value), holds)
        if own != And(()):
            clause = (*others, *(own.parts if isinstance(own, Or) else (own,)))
            found.append(clause[0] if len(clause) == 1 else Or(clause, node.span))
    return found[0] if len(found) == 1 else And(tuple(found), node.span)


#: A condition over CASE is written for each value, and with several of them for each choice.
MOST_OUTCOMES = 64


def _outcomes(node: Expression) -> int:
    if isinstance(node, Case):
        return sum(map(_outcomes, node.values))
    return prod(map(_outcomes, children(node)))


def _replaced(node: _E, case: Case, value: Operand) -> _E:
    return rebuilt(node, lambda part: value if part is case else _replaced(part, case, value))


def substituted(expression: Expression, values: Mapping[str, Operand]) -> Any:
    """Put values in place of those attributes that have one."""
    if isinstance(expression, Attribute):
        return values.get(expression.name, expression)
    return rebuilt(expression, lambda part: substituted(part, values))


def renamed(expression: _E, names: Mapping[str, str]) -> _E:
    """Give the attributes of an expression other names."""
    spans = attributes(expression)
    found: _E = substituted(expression, {name: Attribute(names[name], span) for name, span in spans.items()})
    return found


def conjuncts(condition: Predicate | None) -> Iterator[Predicate]:
    """The conditions that one joins by AND.

    >>> x = Attribute("x")
    >>> low, high = Comparison(">", x, Constant(1)), Comparison("<", x, Constant(5))
    >>> [str(one) for one in conjuncts(And((low, high)))]
    ['x > 1', 'x < 5']
    """
    if isinstance(condition, And):
        for part in condition.parts:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def joined(parts: Iterable[Predicate]) -> Predicate | None:
    """Some conditions as one; ``None`` if there are none."""
    found = tuple(parts)
    return found[0] if len(found) == 1 else And(found) if found else None


def walk(expression: Expression) -> Iterator[Expression]:
    """Go through all nodes, parents first."""
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


#: Nodes whose value is computed.
COMPUTED = Arithmetic | Negative | Function | Case | Ticks


def computes(expression: Expression) -> bool:
    """Tell whether an expression has arithmetic, or functions of the language."""
    return any(isinstance(node, COMPUTED) for node in walk(expression))


def reads_strings(expression: Expression) -> bool:
    """Tell whether functions in an expression are computed of strings themselves, which kernels do not see."""
    return any(isinstance(node, Function) and FUNCTIONS[node.name].reads_strings for node in walk(expression))


def calls(expression: Expression) -> list[Call]:
    """Find the calls of registered functions in an expression."""
    return [node for node in walk(expression) if isinstance(node, Call)]


def needed(expression: Expression) -> frozenset[str]:
    """Find the attributes without which an expression is NULL, or false if it is a comparison; that of NULL is ``""``."""
    if isinstance(expression, Attribute):
        return frozenset((expression.name,))
    if is_null(expression):
        return frozenset(("",))
    if isinstance(expression, Case):
        return frozenset()
    inside = [needed(part) for part in children(expression)]
    if isinstance(expression, Function) and expression.name == "coalesce":
        return frozenset.intersection(*inside)
    return frozenset().union(*inside)


def with_nulls(expression: _E, missing: Collection[str]) -> _E | None:
    """Say what is left of an expression where some attributes are NULL; ``None``: it is NULL, or false if it is a comparison."""
    if not needed(expression).isdisjoint(missing):
        return None
    if isinstance(expression, Function) and expression.name == "coalesce":
        kept = tuple(one for part in expression.arguments if (one := with_nulls(part, missing)) is not None)
        return cast(_E, kept[0] if len(kept) == 1 else replace(expression, arguments=kept))
    return rebuilt(expression, lambda part: with_nulls(part, missing))


def attributes(expression: Expression) -> dict[str, Span | None]:
    """Find the attributes that an expression reads, in order of writing, each with its first place in the text."""
    found: dict[str, Span | None] = {}
    for node in walk(expression):
        if isinstance(node, Attribute):
            found.setdefault(node.name, node.span)
    return found


def moves(expression: Expression) -> bool:
    """Tell whether an expression depends on the events before, by a moving aggregate."""
    return any(node.moves for node in walk(expression) if isinstance(node, Attribute))


def weakened(predicate: Predicate, truth: bool = True) -> Predicate:
    """Put what may hold in place of what :func:`moves`; with ``truth`` false what may not.

    >>> x = Comparison(">", Attribute("x"), Constant(1))
    >>> str(weakened(And((x, Not(x)))))
    'x > 1 AND NOT (x > 1)'
    """
    match predicate:
        case And(parts) | Or(parts):
            return replace(predicate, parts=tuple(weakened(part, truth) for part in parts))
        case Not(part):
            return replace(predicate, part=weakened(part, not truth))
    if not moves(predicate):
        return predicate
    return And(()) if truth else Or(())


def counted(least: int, most: int | None) -> str:
    """Write how often something is repeated.

    >>> counted(3, 3), counted(2, 5), counted(2, None)
    ('{3}', '{2,5}', '{2,}')
    """
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"
