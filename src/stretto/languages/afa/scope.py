"""Fences and transfers against the schemas of events and register."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stretto.array_types import INT64
from stretto.errors import OptionError, QueryError, Span, hinted, suggestion
from stretto.events import Schema
from stretto.languages.expressions.tokens import Name
from stretto.languages.expressions.transformer import ExpressionPart
from stretto.query import predicate as p
from stretto.query.afa import Field
from stretto.query.passes.bind import measure
from stretto.query.scalar_functions import NUMBERS
from stretto.query.typing import NO_CLOCK, Clock, kind_of, kind_of_operand, typed, typed_operand

_SHOWN = {
    "int": "an integer",
    "float": "a float",
    "decimal": "a decimal",
    "string": "a string",
    "bool": "a truth value",
    "time": "a time",
    "instant": "a computed time",
    "duration": "a duration",
    "other": "neither a number nor a string",
}


@dataclass(frozen=True)
class Scope:
    """Name and Arrow type of the event's attributes and of the register's fields, and which attribute counts the time."""

    events: Mapping[str, pa.DataType]
    register: Mapping[str, pa.DataType]
    clock: Clock = NO_CLOCK

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Name all attributes and fields with their sides."""
        sides = (("e", self.events), ("r", self.register))
        return {f"{side}.{name}": kind for side, names in sides for name, kind in names.items()}


def clock_of(events: Any) -> Clock:
    """Which attribute counts the time, where the events are a schema whose roles say it."""
    if not isinstance(events, Schema) or events.time is None:
        return NO_CLOCK
    clock = Clock.of(events)
    return replace(clock, names=frozenset(f"e.{name}" for name in clock.names))


# ---- Fences


def fence(predicate: p.Predicate, scope: Scope, *, epsilon: bool) -> p.Predicate:
    """Check a fence against the schemas, and type it."""
    _check_names(predicate, scope, epsilon)
    found = typed(predicate, scope.types, clock=scope.clock)
    for node in p.walk(found):
        if isinstance(node, p.Comparison | p.Between | p.Like):
            _check_strings(node, scope)
    return found


def _check_names(node: p.Expression, scope: Scope, epsilon: bool) -> None:
    """Every name has a side, and that of an ε-arc is the register's."""
    for one in p.walk(node):
        if not isinstance(one, p.Attribute):
            continue
        if not isinstance(one, Field):
            raise QueryError(f"'{one.name}' stands alone", span=one.span, hint=_sides(one.name, scope))
        side, _, own = one.name.partition(".")
        if epsilon and side == "e":
            raise QueryError(
                "an ε-arc consumes no event, so it cannot read one",
                span=one.span,
                hint="it reads the register: r.name",
            )
        known = scope.events if side == "e" else scope.register
        if own not in known:
            raise _unknown(side, own, scope, one.span)


def _sides(name: str, scope: Scope) -> str:
    if name in ("e", "r"):
        return f"a name follows it: {name}.{next(iter(scope.events if name == 'e' else scope.register), 'name')}"
    found = [side for side, names in (("e", scope.events), ("r", scope.register)) if name in names]
    if len(found) == 1:
        return f"did you mean '{Field(f'{found[0]}.{name}')}'?"
    return f"e.{name} is the event's, r.{name} the register's"


def _unknown(side: str, own: str, scope: Scope, span: Span | None) -> QueryError:
    """A name that this side does not have, the other one perhaps."""
    known, other = (scope.events, scope.register) if side == "e" else (scope.register, scope.events)
    if own in other:
        meant = Field(f"{'r' if side == 'e' else 'e'}.{own}")
        hint: str | None = f"did you mean '{meant}'?"
    else:
        hint = suggestion(own, known, kind="attribute" if side == "e" else "field")
    what = "the event has no attribute" if side == "e" else "the register has no field"
    return QueryError(f"{what} '{own}'", span=span, hint=hint)


def _check_strings(node: p.Comparison | p.Between | p.Like, scope: Scope) -> None:
    """Strings of a register are numbers to a kernel, which tell only whether two are equal."""
    names = p.attributes(node)
    field = next((name for name in names if name.startswith("r.")), None)
    if field is None or not any(kind_of(scope.types[name]) == "string" for name in names):
        return
    if isinstance(node, p.Comparison) and node.op in ("=", "!="):
        return
    raise QueryError(
        "strings of the register are compared with = and != only",
        span=node.span or names[field],
        hint="keep what is needed of them as a number, or a truth value",
    )


# ---- Transfers


@dataclass(frozen=True, slots=True)
class Assignments:
    """A transfer that names its fields: ``n = r.n + 1, low = e.price``."""

    pairs: tuple[tuple[Name, ExpressionPart], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A transfer with a value for each field: ``(r.n + 1, e.price)``."""

    values: tuple[ExpressionPart, ...]
    span: Span


def transfer(given: Assignments | Row, scope: Scope, *, epsilon: bool) -> tuple[p.Operand, ...]:
    """Check a transfer: the value of each field, in its type."""
    if isinstance(given, Row):
        if len(given.values) != len(scope.register):
            fields = ", ".join(scope.register)
            raise QueryError(
                f"the row has {_count(len(given.values), 'value')}, and the register {_count(len(scope.register), 'field')}",
                span=given.span,
                hint=f"in this order: ({fields})" if fields else None,
            )
        pairs: Sequence[tuple[str, Any]] = list(zip(scope.register, given.values, strict=True))
    else:
        seen: set[str] = set()
        for name, _ in given.pairs:
            if name.text not in scope.register:
                raise _unknown("r", name.text, scope, name.span)
            if name.text in seen:
                raise QueryError(f"'{name.text}' is assigned twice", span=name.span)
            seen.add(name.text)
        pairs = [(name.text, part) for name, part in given.pairs]
    values = {}
    for field, part in pairs:
        operand = _operand(part.expression, part.span)
        values[field] = fitting(operand, field, scope.register[field], scope, epsilon=epsilon)
    return row(values, scope)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _operand(expression: p.Expression | None, span: Span) -> p.Operand:
    if expression is None:
        hint = "a field of a register always has a value"
        raise QueryError("NULL is no value to keep", span=span, hint=hint)
    if not isinstance(expression, p.Operand):
        raise QueryError("a value is needed here, not a condition", span=span)
    return expression


def row(values: Mapping[str, p.Operand], scope: Scope) -> tuple[p.Operand, ...]:
    """Put values of all fields in order: those that are not given stay as they are."""
    return tuple(values.get(field, Field(f"r.{field}")) for field in scope.register)


def kind_of_field(field: str, scope: Scope) -> pa.DataType:
    """Look up the type of a field.

    Raises
    ------
    OptionError
        The register has no such field.
    """
    if field not in scope.register:
        raise OptionError(hinted(f"the register has no field '{field}'", field, scope.register, kind="field"))
    return scope.register[field]


def constant(value: Any, field: str) -> p.Constant:
    """Take a plain value that a transfer sets.

    Raises
    ------
    OptionError
        It is none that a register can hold.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(f"the field '{field}' cannot be set to {value}: a number is needed")
    if isinstance(value, bool | int | float | Decimal | dt.date):
        return p.Constant(value)
    shown = type(value).__name__
    raise OptionError(f"the field '{field}' is set by an expression or a number, not by {shown}")


def fitting(operand: p.Operand, field: str, kind: pa.DataType, scope: Scope, *, epsilon: bool) -> p.Operand:
    """Check a value that a field of this type takes.

    Raises
    ------
    QueryError
        The value is wrong by itself, or does not fit.
    """
    want = kind_of(kind)
    if isinstance(operand, p.Attribute) and not isinstance(operand, Field) and want == "string":
        own = operand.name
        if own not in ("e", "r", *scope.events, *scope.register):
            quotes = f"in single quotes it is a string: '{own}'"
            raise QueryError(f"'{own}' stands alone", span=operand.span, hint=quotes)
    _check_names(operand, scope, epsilon)
    if isinstance(operand, p.Constant):
        return _literal(operand, field, kind)
    found = typed_operand(operand, scope.types, exact=False, clock=scope.clock)
    have = kind_of_operand(found, scope.types, scope.clock)
    if want == "time" == have:
        if not isinstance(found, p.Attribute):
            raise _misfit(operand, "a computed time", field, kind, "keep the time, and compute in the conditions")
        _check_clock(found, field, kind, scope)
    elif have != want and not (want == "float" and have in NUMBERS):
        hint = f"declare '{field}' as float" if want == "int" and have in NUMBERS else None
        if have == "time" and want in NUMBERS and isinstance(found, p.Attribute):
            hint = f"declare '{field}' as {scope.types[found.name]}"
        raise _misfit(operand, _SHOWN[have], field, kind, hint)
    return found


def _misfit(operand: p.Operand, shown: str, field: str, kind: pa.DataType, hint: str | None) -> QueryError:
    span = operand.span
    return QueryError(f"the field '{field}' ({kind}) cannot take {shown}", span=span, hint=hint)


def _literal(operand: p.Constant, field: str, kind: pa.DataType) -> p.Constant:
    """A constant in its field's type."""
    want, value = kind_of(kind), operand.value
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    fresh: Any = None
    hint: str | None = None
    if want == "int" and number:
        assert isinstance(value, int | float | Decimal)
        fresh = int(value) if value == int(value) else None
        hint = f"declare '{field}' as float"
        if fresh is not None and not INT64[0] <= fresh <= INT64[-1]:
            fresh, hint = None, "integers reach from −2^63 to 2^63 − 1"
    elif want == "float" and number:
        assert isinstance(value, int | float | Decimal)
        fresh = _float(value)
        hint = "no double is as great"
    elif (want == "bool" and isinstance(value, bool)) or (want == "string" and isinstance(value, str)):
        fresh = value
    elif want == "time" and isinstance(value, str | dt.date):
        fresh, hint = _moment(operand, kind)
    elif want in ("int", "float") and isinstance(value, str):
        hint = "write numbers without quotes"
    elif want == "bool":
        hint = "write TRUE or FALSE"
    elif want == "string":
        hint = "write strings in single quotes"
    if fresh is None:
        raise _misfit(operand, str(operand), field, kind, hint)
    return p.Constant(fresh, operand.span)


def _float(value: float | Decimal) -> float | None:
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _moment(operand: p.Constant, kind: pa.DataType) -> tuple[Any, str | None]:
    """A time as a datetime, if the field's unit holds it; else why not."""
    value = operand.value
    if isinstance(value, str):
        same = typed(p.Comparison("=", Field("r.it"), operand, operand.span), {"r.it": kind})
        assert isinstance(same, p.Comparison)
        assert isinstance(same.right, p.Constant)
        value = same.right.value
    assert isinstance(value, dt.date)
    moment = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    if (moment.tzinfo is not None) != bool(kind.tz):
        return None, "one of them has a time zone, the other has none"
    try:
        pa.scalar(moment, pa.timestamp("us", tz=kind.tz)).cast(kind)
    except pa.ArrowInvalid:
        return None, f"its unit is {kind.unit}"
    return moment, None


def _check_clock(found: p.Attribute, field: str, kind: pa.DataType, scope: Scope) -> None:
    """A time goes into a field of the same unit."""
    other = scope.types[found.name]
    ours, theirs = measure(kind), measure(other)
    assert ours is not None
    assert theirs is not None
    if ours.unit != theirs.unit or bool(kind.tz) != bool(getattr(other, "tz", None)):
        hint = f"declare '{field}' as {other}" if pa.types.is_timestamp(other) else None
        raise _misfit(found, f"{found} ({other})", field, kind, hint)
