"""Predicates over one event: the expressions inside ``X[…]``, as values.

Meaning (SEMANTICS: NULL). A comparison with NULL is false, and so are ``IN``, ``BETWEEN`` and ``LIKE`` of NULL; ``NOT`` is
plain negation (two values, not SQL's three). Arithmetic with NULL is NULL, and so is division by zero. ``a NOT IN (…)``
is ``NOT (a IN (…))``.

Numbers are written exactly: an integer literal is an ``int``, one with a point or exponent a ``Decimal``.
:func:`typed` turns literals into the type that they are compared with, once the schema is known.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from stretto.errors import Span

__all__ = [
    "And",
    "Arithmetic",
    "Attribute",
    "Between",
    "Call",
    "Comparison",
    "Constant",
    "Expression",
    "In",
    "IsNull",
    "Like",
    "Negative",
    "Not",
    "Operand",
    "Or",
    "Predicate",
    "attributes",
    "calls",
    "computes",
    "walk",
]

Value = int | float | Decimal | str | bool | bytes | dt.datetime | dt.date


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


@dataclass(frozen=True)
class Attribute:
    """An attribute of the event."""

    name: str
    span: Span | None = _span()

    def __str__(self) -> str:
        bare = self.name.isascii() and self.name.replace("_", "a").isalnum() and not self.name[:1].isdigit()
        if bare and self.name.upper() not in WORDS:
            return self.name
        return "`" + self.name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Constant:
    """A literal."""

    value: Value
    span: Span | None = _span()

    def __str__(self) -> str:
        return _literal(self.value)


@dataclass(frozen=True)
class Arithmetic:
    """``left op right`` with ``op`` one of ``+ - * / %``; ``/`` is real division."""

    op: str
    left: Operand
    right: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True)
class Negative:
    """``-operand``."""

    operand: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"(- {self.operand})"


@dataclass(frozen=True)
class Call:
    """``name(arguments)``: a function that the user registered (:func:`stretto.function`)."""

    name: str
    arguments: tuple[Operand, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


Operand = Attribute | Constant | Arithmetic | Negative | Call


@dataclass(frozen=True)
class Comparison:
    """``left op right`` with ``op`` one of ``= != < <= > >=`` (``==`` and ``<>`` are read as ``=`` and ``!=``)."""

    op: str
    left: Operand
    right: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class In:
    """``operand IN (values)``."""

    operand: Operand
    values: tuple[Constant, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} IN ({', '.join(map(str, self.values))})"


@dataclass(frozen=True)
class Between:
    """``operand BETWEEN low AND high``, both ends included."""

    operand: Operand
    low: Operand
    high: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} BETWEEN {self.low} AND {self.high}"


@dataclass(frozen=True)
class Like:
    """``operand LIKE pattern``: ``%`` is any run of characters, ``_`` any one; the whole string must match."""

    operand: Operand
    pattern: str
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} LIKE {_literal(self.pattern)}"


@dataclass(frozen=True)
class IsNull:
    """``operand IS NULL``."""

    operand: Operand
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return " AND ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]
    span: Span | None = _span()

    def __str__(self) -> str:
        return " OR ".join(str(part) for part in self.parts)


@dataclass(frozen=True)
class Not:
    part: Predicate
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"NOT ({self.part})"


Predicate = Comparison | In | Between | Like | IsNull | And | Or | Not
Expression = Operand | Predicate


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions, left to right."""
    match expression:
        case Attribute() | Constant():
            return ()
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return (left, right)
        case In(operand, values):
            return (operand, *values)
        case Between(operand, low, high):
            return (operand, low, high)
        case And(parts) | Or(parts):
            return parts
        case Not(part):
            return (part,)
        case Call(_, arguments):
            return arguments
        case Negative(operand) | Like(operand) | IsNull(operand):
            return (operand,)


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node, parents first."""
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def computes(expression: Expression) -> bool:
    """Whether an expression has arithmetic."""
    return any(isinstance(node, Arithmetic | Negative) for node in walk(expression))


def calls(expression: Expression) -> list[Call]:
    """The calls of registered functions in an expression."""
    return [node for node in walk(expression) if isinstance(node, Call)]


def attributes(expression: Expression) -> dict[str, Span | None]:
    """The attributes that an expression reads, in order of writing, each with its first place in the text."""
    found: dict[str, Span | None] = {}
    for node in walk(expression):
        if isinstance(node, Attribute):
            found.setdefault(node.name, node.span)
    return found
