"""Predicates against a schema: every comparison relates values of one kind, and literals take the type beside them.

Kinds are numbers (integers, floats, decimals), strings (plain or dictionary-encoded), booleans and times (timestamps,
dates). Whatever else a column holds (binary, lists, structs, …) can only be asked for NULL.

Literals take the type beside them:

- beside a float, a number is the nearest double; beside a decimal it stays exact; beside an integer it is compared exactly, whatever
  its size. In arithmetic a literal without a fraction is an integer of 64 bits, and one with a fraction a double, but for *exact*
  comparisons: those that read a decimal and nothing that is a double (a float, a quotient, what a function gives). There it is a
  decimal, and all arithmetic is exact. In other comparisons arithmetic takes a decimal as the nearest double.
- in a comparison that reads a number which counts the stream's time (:class:`Clock`), a duration beside numbers is a number of its
  units.
- beside a time that is computed, a time is an integer (:class:`~stretto.query.predicate.Ticks`), in ticks of the finest of the
  comparison.
- beside a time, a string is read in ISO form, to the microsecond, with a zone where the time has one and without where it has
  none. A date beside a timestamp without zone is its midnight.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import QueryError, Span, placed, suggestion
from stretto.events import Schema
from stretto.query import functions
from stretto.query import predicate as p
from stretto.query.evaluate import holds, value
from stretto.query.scalar_functions import COMMON, DIGITS, FUNCTIONS, NUMBERS, ScalarFunction
from stretto.query.scalar_functions import UNITS as CALENDAR
from stretto.times import PER_SECOND


def kind_of(data_type: pa.DataType) -> str:
    """Name the kind of a type: ``int``, ``float``, ``decimal``, ``string``, ``bool``, ``time`` or ``other``."""
    types = pa.types
    if types.is_dictionary(data_type):
        return kind_of(data_type.value_type)
    if types.is_integer(data_type):
        return "int"
    if types.is_floating(data_type):
        return "float"
    if types.is_decimal(data_type):
        return "decimal"
    if types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type):
        return "string"
    if types.is_boolean(data_type):
        return "bool"
    if types.is_timestamp(data_type) or types.is_date(data_type):
        return "time"
    return "other"


def is_list(data_type: pa.DataType) -> bool:
    """Tell whether a column of a type holds lists."""
    types = pa.types
    return bool(types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type))


#: Kinds of what is computed of times, in ticks: a time, and a difference of two.
_TICKS = ("instant", "duration")

#: The units of timestamps by the ticks of a second.
UNITS = {per_second: unit for unit, per_second in PER_SECOND.items()}

#: A fraction of a second with something beyond microseconds, which Python would drop silently.
_FINER = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")

#: A literal that may be a time with a fraction of a second.
_FRACTION = re.compile(r":[0-9]{2}[.,][0-9]")

_DIGITS = 400  #: more digits before or after the point than any type holds


_COMPUTED = {"string": "string", "bool": "truth value", "time": "time", "instant": "time", "duration": "duration"}


#: Functions of several events, which no condition on one of them has.
_AGGREGATES = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True)
class Clock:
    """Which numbers count the stream's time, so that a duration beside them is a number of their units.

    Parameters
    ----------
    column
        The column of times, in errors.
    names
        What conditions call it: attributes, or references to events.
    per_second
        How many of its units are a second; ``None``: nobody has said.
    hint
        What to do where a duration stands beside a number without a unit.
    """

    column: str = ""
    names: frozenset[str] = frozenset()
    per_second: int | None = None
    hint: str = "differences of times are durations; a number has its own unit"

    @classmethod
    def of(cls, schema: Schema) -> Clock:
        """The clock of a stream whose roles are checked.

        >>> Clock.of(Schema({"t": pa.int64()}, type=None, time="t", time_unit="ms")).per_second
        1000
        """
        name, unit = schema.time, schema.time_unit
        if name is None:
            return cls(
                hint="a number has its own unit; time='…' and time_unit='s' (or 'ms', 'us', 'ns') say which one is a time"
            )
        if kind_of(schema.attributes[name]) not in NUMBERS:
            return cls()
        if unit is None:
            hint = f"time_unit='s' (or 'ms', 'us', 'ns') says what one unit of '{name}' is, and then a duration counts them"
            return cls(name, frozenset((name,)), None, hint)
        return cls(
            name, frozenset((name,)), PER_SECOND[unit], f"a number has its own unit, and only '{name}' is a time"
        )


#: Nothing counts the stream's time.
NO_CLOCK = Clock()


@dataclass(frozen=True)
class _Typed:
    """An operand with its kind; ``source`` is the type of the attribute that it is, or of the times that it gives."""

    operand: p.Operand
    kind: str
    source: pa.DataType | None
    span: Span | None

    @property
    def has_zone(self) -> bool:
        """Whether a time is a moment and not what some clock shows."""
        if self.source is None:
            value = getattr(self.operand, "value", None)
            return isinstance(value, dt.datetime) and value.tzinfo is not None
        return pa.types.is_timestamp(self.source) and bool(self.source.tz)

    @property
    def described(self) -> str:
        if isinstance(self.operand, p.Attribute):
            return f"{self.operand.name} ({self.source})"
        if isinstance(self.operand, p.Duration):
            return "a duration"
        if isinstance(self.operand, p.Constant):
            names = {"string": "a string", "bool": "a truth value", "time": "a time", "other": "bytes"}
            return names.get(self.kind, "a number")
        return f"a computed {_COMPUTED.get(self.kind, 'number')}"


def typed(
    predicate: p.Predicate,
    attributes: Mapping[str, pa.DataType],
    text: str | None = None,
    clock: Clock = NO_CLOCK,
) -> p.Predicate:
    """Check a predicate against the attributes' types.

    Parameters
    ----------
    predicate
        As the parser gave it.
    attributes
        Name and Arrow type of each attribute.
    text
        The query, for errors.
    clock
        Which attributes count the stream's time.

    Returns
    -------
    Predicate
        The same with literals of the type that they are compared with.

    Raises
    ------
    QueryError
        An unknown attribute, or values of different kinds in one comparison or computation.
    """
    with placed(text):
        if not any(isinstance(node, p.Case) for node in p.walk(predicate)):
            return _Checker(attributes, clock).predicate(predicate)
        return _decided(_Checker(attributes, clock).predicate(p.without_cases(predicate)))


def _decided(node: p.Predicate) -> p.Predicate:
    """A condition without parts that are about constants only, which CASE may leave."""
    if isinstance(node, p.And | p.Or):
        every = isinstance(node, p.And)
        parts = [_decided(part) for part in node.parts]
        if any(part == (p.Or(()) if every else p.And(())) for part in parts):
            return p.Or(()) if every else p.And(())
        kept = tuple(part for part in parts if part not in (p.And(()), p.Or(())))
        return kept[0] if len(kept) == 1 else replace(node, parts=kept)
    if p.attributes(node) or p.calls(node):
        return node
    return p.And(()) if holds(node, {}) else p.Or(())


def typed_operand(
    operand: p.Operand,
    attributes: Mapping[str, pa.DataType],
    text: str | None = None,
    *,
    exact: bool = True,
    clock: Clock = NO_CLOCK,
) -> p.Operand:
    """Check something that has a value as :func:`typed` does; without ``exact`` decimals are computed as doubles."""
    checker = _Checker(attributes, clock)
    with placed(text):
        return (checker.value(operand) if exact else checker.as_doubles(operand)).operand


def type_of_operand(operand: p.Operand, attributes: Mapping[str, pa.DataType]) -> pa.DataType:
    """Find the Arrow type of a typed operand's values; computed decimals are doubles."""
    if isinstance(operand, p.Attribute):
        return attributes[operand.name]
    if isinstance(operand, p.Constant) and not isinstance(operand, p.Duration):
        return pa.scalar(float(operand.value) if isinstance(operand.value, Decimal) else operand.value).type
    checker = _Checker(attributes)
    found = checker.value(operand)
    if found.source is not None or found.kind == "duration":
        return found.source or pa.duration(UNITS[checker.per_second])
    return {"int": pa.int64(), "bool": pa.bool_(), "string": pa.string()}.get(found.kind, pa.float64())


def is_exact(expression: p.Expression, attributes: Mapping[str, pa.DataType]) -> bool:
    """Tell whether a comparison, or a value, is one of decimals: it reads one, and nothing that is a double."""
    kinds = {kind_of(kind) for name in p.attributes(expression) if (kind := attributes.get(name)) is not None}
    if "decimal" not in kinds or "float" in kinds:
        return False
    for node in p.walk(expression):
        if isinstance(node, p.Call | p.Function | p.Case) or (isinstance(node, p.Arithmetic) and node.op == "/"):
            return False
        if isinstance(node, p.Constant) and isinstance(node.value, float):
            return False
    return True


def may_overflow(expression: p.Expression, attributes: Mapping[str, pa.DataType]) -> bool:
    """Tell whether a typed expression computes integers, which may leave 64 bits."""
    checker = _Checker(attributes)
    computed = (node for node in p.walk(expression) if isinstance(node, p.COMPUTED))
    return any(checker.value(node).kind in ("int", *_TICKS) for node in computed)


def kind_of_operand(operand: p.Operand, attributes: Mapping[str, pa.DataType], clock: Clock = NO_CLOCK) -> str:
    """Name the kind of an operand's values, as :func:`kind_of` does; ``clock`` as of :func:`typed`, where it is not typed yet."""
    return _Checker(attributes, clock).value(operand).kind


def with_integer_division(expression: p.Expression, attributes: Mapping[str, pa.DataType]) -> p.Expression:
    """Let integers have quotients that are integers, as in languages that divide so."""
    found = p.rebuilt(expression, lambda part: with_integer_division(part, attributes))
    if not (isinstance(found, p.Arithmetic) and found.op == "/"):
        return found
    kinds = {kind_of_operand(one, attributes) for one in (found.left, found.right)}
    return replace(found, op="div") if kinds == {"int"} else found


class _Checker(p.Visitor):
    """Predicates become typed ones, operands :class:`_Typed`."""

    def __init__(self, attributes: Mapping[str, pa.DataType], clock: Clock = NO_CLOCK) -> None:
        self.attributes, self.clock = attributes, clock
        #: Whether the comparison at hand is one of decimals, so that its literals with a point are decimals.
        self.exact = False
        #: Ticks of a second in what the comparison at hand computes of times: those of the finest.
        self.per_second = 1
        #: How many units of the clock are a second, where the comparison at hand reads it; 0: it does not.
        self.units = 0

    def error(self, message: str, span: Span | None, hint: str | None = None) -> QueryError:
        return QueryError(message, span=span, hint=hint)

    def predicate(self, node: p.Predicate) -> p.Predicate:
        self._begin(node)
        found: p.Predicate = self.visit(node)
        return found

    def _begin(self, node: p.Expression) -> None:
        self.exact = is_exact(node, self.attributes)
        self.per_second = max((_per_second(one, self.attributes) for one in p.walk(node)), default=1)
        self._count(node)

    def _count(self, node: p.Expression) -> None:
        reads = self.clock.names and not self.clock.names.isdisjoint(p.attributes(node))
        self.units = (reads and self.clock.per_second) or 0

    def comparison(self, node: p.Comparison) -> p.Comparison:
        first, second = self._pair(self.operand(node.left), self.operand(node.right), node.span)
        if node.op not in ("=", "!="):
            self._check_ordered(first, node)
        return replace(node, left=first.operand, right=second.operand)

    def _check_ordered(self, own: _Typed, node: p.Predicate) -> None:
        if own.kind == "bool":
            raise self.error("truth values are not ordered", node.span, "compare them with = or !=")

    def among(self, node: p.In) -> p.In:
        own = self.operand(node.operand)
        if own.kind == "instant":
            raise self.error("IN lists no computed times", own.span or node.span, "compare with = and OR")
        pairs = [self._pair(own, self.operand(value), value.span or node.span) for value in node.values]
        chosen = tuple(pair[1].operand for pair in pairs if isinstance(pair[1].operand, p.Constant))
        return replace(node, operand=own.operand, values=chosen)

    def between(self, node: p.Between) -> p.Between:
        sides = self._counted([self.operand(side) for side in (node.operand, node.low, node.high)])
        own, low, high = self._one_kind(sides)
        _, low = self._pair(own, low, node.span)
        _, high = self._pair(own, high, node.span)
        self._check_ordered(own, node)
        return replace(node, operand=own.operand, low=low.operand, high=high.operand)

    def like(self, node: p.Like) -> p.Like:
        own = self.operand(node.operand)
        if own.kind != "string":
            raise self.error(f"LIKE needs a string, not {own.described}", own.span or node.span)
        return replace(node, operand=own.operand)

    def rlike(self, node: p.Rlike) -> p.Rlike:
        own = self.operand(node.operand)
        if own.kind != "string":
            raise self.error(f"RLIKE needs a string, not {own.described}", own.span or node.span)
        try:
            pc.match_substring_regex(pa.scalar(""), node.pattern)
        except pa.ArrowInvalid as error:
            why = str(error).removeprefix("Invalid regular expression: ")
            hint = "expressions are those of RE2: no look-around, no references to groups"
            raise self.error(f"'{node.pattern}' is no regular expression: {why}", node.span, hint) from error
        return replace(node, operand=own.operand)

    def wildcard(self, node: p.Wildcard) -> p.Predicate:
        own = self.operand(node.operand)
        if own.kind != "string":
            raise self.error(f"patterns are of strings, not of {own.described}", own.span or node.span)
        found: p.Predicate = self.visit(node.meaning)
        return found

    def member(self, node: p.Member) -> p.Member:
        own, lists = self.operand(node.operand), self.operand(node.values)
        kind = lists.source
        if kind is None or not is_list(kind):
            hint = "constants stand in parentheses: x IN (1, 2); an attribute beside another one is compared with ="
            raise self.error(f"IN needs a list, not {lists.described}", lists.span or node.span, hint)
        if own.kind == "instant":
            raise self.error("IN lists no computed times", own.span or node.span, "compare with = and OR")
        if pa.types.is_null(kind.value_type):
            return replace(node, operand=own.operand)
        element = replace(lists, kind=kind_of(kind.value_type), source=kind.value_type)
        return replace(node, operand=self._pair(own, element, node.span)[0].operand)

    def is_null(self, node: p.IsNull) -> p.IsNull:
        return replace(node, operand=self.operand(node.operand).operand)

    def all_of(self, node: p.And | p.Or | p.Not) -> p.Predicate:
        return p.rebuilt(node, self.predicate)

    any_of = negation = all_of

    def value(self, node: p.Operand) -> _Typed:
        """An operand by itself; what is computed of times is shown in microseconds at least, which Spark has as well."""
        self._begin(node)
        self.per_second = max(self.per_second, 10**6)
        found = self.operand(node)
        whole = isinstance(found.operand, p.Constant) and type(found.operand.value) is int
        return self._as_number(found, "int") if whole and found.kind == "int" else found

    def as_doubles(self, node: p.Operand) -> _Typed:
        """An operand by itself, whose decimals are computed as doubles."""
        self._count(node)
        return self.operand(node)

    def operand(self, node: p.Operand) -> _Typed:
        found: _Typed = self.visit(node)
        return found

    def attribute(self, node: p.Attribute) -> _Typed:
        if node.name not in self.attributes:
            hint = suggestion(node.name, self.attributes, kind="attribute")
            raise self.error(f"unknown attribute '{node.name}'", node.span, hint)
        source = self.attributes[node.name]
        return _Typed(node, kind_of(source), source, node.span)

    def constant(self, node: p.Constant) -> _Typed:
        if isinstance(node, p.Duration):
            ticks = node.value * self.per_second // node.per_second
            if not -(2**63) <= ticks < 2**63:
                raise self.error(f"{node} does not fit into 64 bits", node.span)
            return _Typed(replace(node, value=ticks, per_second=self.per_second), "duration", None, node.span)
        return _Typed(node, "null" if p.is_null(node) else _kind_of_value(node.value), None, node.span)

    def negative(self, node: p.Negative) -> _Typed:
        inner = self.operand(node.operand)
        if inner.kind == "duration":
            return _Typed(replace(node, operand=inner.operand), "duration", None, node.span)
        own = self._computable(self._number(inner, "-"))
        return _Typed(replace(node, operand=own.operand), own.kind, None, node.span)

    def arithmetic(self, node: p.Arithmetic) -> _Typed:
        op = node.op
        first, second = self.operand(node.left), self.operand(node.right)
        if op != "*":  # twice a minute is a duration still
            first, second = self._counted([first, second], whole=True)
        if {first.kind, second.kind} & {"time", *_TICKS}:
            return self._of_times(node, first, second)
        first, second = self._number(first, op), self._number(second, op)
        kinds = (first.kind, second.kind)
        kind = next((kind for kind in ("float", "decimal") if kind in kinds), "int") if op != "/" else "float"
        if op == "div" and kind != "int":
            raise self.error("'div' divides integers", node.span)
        if op == "%" and kind == "decimal":
            hint = "'%' is the remainder of integers and floats"
            raise self.error("'%' does not take decimals", node.span, hint)
        first, second = (self._as_number(side, kind) for side in (first, second))
        if not (op == "/" and isinstance(second.operand, p.Constant) and second.operand.value == 1):
            # By one is how a decimal becomes a double, also in a text that is read again.
            first, second = self._computable(first), self._computable(second)
        kind = "float" if kind == "decimal" and not self.exact else kind
        return _Typed(replace(node, left=first.operand, right=second.operand), kind, None, node.span)

    def ticks(self, node: p.Ticks) -> _Typed:
        return self._ticked(self.operand(node.operand))

    def _ticked(self, own: _Typed) -> _Typed:
        """A time as an integer; anything else as it is."""
        if own.kind != "time":
            return own
        zone = None
        if own.has_zone:
            zone = "UTC" if own.source is None else own.source.tz
        source = pa.timestamp(UNITS[self.per_second], zone)
        return _Typed(p.Ticks(own.operand, self.per_second, own.span), "instant", source, own.span)

    def _counted(self, sides: list[_Typed], *, whole: bool = False) -> list[_Typed]:
        """Durations beside numbers as numbers of the clock's units, where it is read; ``whole``: integers are computed with them."""
        numbers = {side.kind for side in sides} & set(NUMBERS)
        if not (self.units and numbers):
            return sides
        whole = whole and numbers == {"int"}
        return [self._as_count(side, whole) if side.kind == "duration" else side for side in sides]

    def _as_count(self, own: _Typed, whole: bool) -> _Typed:
        """A duration as a number of units of the stream's clock; differences of other times stay what they are.

        A fraction of a unit stands by itself in a comparison, where it is exact, or beside numbers that have fractions.
        """
        if any(isinstance(node, p.Ticks) for node in p.walk(own.operand)):
            return own

        operand = own.operand
        if not p.attributes(operand):
            operand = p.Duration(value(operand, {}), own.span, self.per_second)

        def counted(node: p.Operand) -> p.Operand:
            if not isinstance(node, p.Duration):
                return p.rebuilt(node, counted)
            units = Fraction(node.value * self.units, node.per_second)
            if units.denominator == 1:
                return p.Constant(int(units), node.span)
            if whole or node is not operand:
                unit = UNITS[self.units]
                hint = (
                    f"compare it with a difference, b.{self.clock.column} - a.{self.clock.column}, or write whole units"
                )
                raise self.error(
                    f"'{self.clock.column}' is in {unit}, and {node} is no whole number of them", node.span, hint
                )
            return p.Constant(Decimal(units.numerator) / units.denominator, node.span)

        return replace(self.operand(counted(operand)), span=own.span)

    def _of_times(self, node: p.Arithmetic, left: _Typed, right: _Typed) -> _Typed:
        """Sums and differences of times and durations, in ticks."""
        first, second, source = self._ticked(left), self._ticked(right), None
        match first.kind, node.op, second.kind:
            case "instant", "-", "instant":
                self._same_clock(left, right, node.span, f"compute {left.described} - {right.described}")
                kind = "duration"
            case ("instant", "+" | "-", "duration") | ("duration", "+", "instant"):
                kind, source = "instant", first.source or second.source
            case "duration", "div", "duration":
                kind = "int"
            case ("duration", "+" | "-", "duration") | ("duration", "*", "int") | ("int", "*", "duration"):
                kind = "duration"
            case "duration", "/", "duration":
                kind = "float"
            case _:
                shown = f"{left.described} {node.op} {right.described}"
                numbers = {left.kind, right.kind} & set(NUMBERS) and "duration" in (left.kind, right.kind)
                hint = "times have differences, and take durations: b.t - a.t, t + 5 minutes"
                hint = self.clock.hint if numbers else hint
                raise self.error(f"cannot compute {shown}", node.span, hint)
        return _Typed(replace(node, left=first.operand, right=second.operand), kind, source, node.span)

    def call(self, node: p.Call) -> _Typed:
        known = functions.known()
        if node.name not in known:
            names = [*known, *COMMON]
            hint = suggestion(node.name, names, kind="function") or "register one with @stretto.function"
            if node.name in _AGGREGATES:
                hint = (
                    "this condition asks one event by itself; of the latest events: count(x) OVER 1 minute > 3; SASE+ adds up over a "
                    "repetition: count(a[]) > 1, sum(a[].x) > 9"
                )
            raise self.error(f"unknown function '{node.name}'", node.span, hint)
        function = known[node.name]
        if len(node.arguments) != function.parameters:
            raise self.error(
                f"'{node.name}' takes {function.parameters} arguments, not {len(node.arguments)}", node.span
            )
        sides = [self.operand(argument) for argument in node.arguments]
        for side in sides:
            if side.kind not in (*NUMBERS, "bool"):
                raise self.error(
                    f"'{node.name}' takes numbers and truth values, not {side.described}", side.span or node.span
                )
        sides = [self._as_number(side, "float") if side.kind == "decimal" else side for side in sides]
        kinds = tuple("float" if side.kind == "decimal" else side.kind for side in sides)
        try:
            kind = function.result(kinds)
        except TypeError as error:
            raise self.error(f"'{node.name}' does not compile for ({', '.join(kinds)}): {error}", node.span) from error
        return _Typed(replace(node, arguments=tuple(side.operand for side in sides)), kind, None, node.span)

    def function(self, node: p.Function) -> _Typed:
        known = FUNCTIONS[node.name]
        count = len(node.arguments)
        if not known.takes_count(count):
            shown = "one argument" if count == 1 else f"{count} arguments"
            raise self.error(f"{node.name}({known.shown}) does not take {shown}", node.span)
        sides = self._counted([self.operand(argument) for argument in node.arguments])
        if node.name == "round" and count == 2:
            self._check_digits(sides.pop(), node)
        clock = next((side for side in sides if side.kind == "time"), None)
        if clock is not None and known.takes[-1] == ("time",) and known.gives == "int":
            sides = [self._time(side, clock) if side.kind == "string" else side for side in sides]
        for place, side in enumerate(sides):
            sides[place] = self._argument(known, place, side, node)
        self._check_calendar(node, sides)
        if known.alike:
            sides = self._of_one_kind(sides, node)
        elif known.real:
            sides = [self._real(side) for side in sides]
        given = sides[0] if known.alike else clock or sides[0]
        if known.whole and given.kind == "int":
            return replace(given, span=node.span)
        kind = known.gives if isinstance(known.gives, str) else given.kind if known.gives is None else "time"
        source = known.gives if isinstance(known.gives, pa.DataType) else given.source if kind == "time" else None
        arguments = tuple(side.operand for side in sides)
        if node.name == "coalesce":  # what stands behind a constant is never asked
            end = next((at for at, one in enumerate(arguments, 1) if isinstance(one, p.Constant)), len(arguments))
            arguments = arguments[:end]
        found: p.Operand = replace(node, arguments=(*arguments, *node.arguments[len(sides) :]))
        if not p.attributes(found) or (node.name == "coalesce" and len(arguments) == 1):
            found = p.Constant(value(found, {}), node.span)
        return _Typed(found, kind, source, node.span)

    def _check_digits(self, own: _Typed, node: p.Function) -> None:
        digits = getattr(own.operand, "value", None)
        if isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= DIGITS:
            raise self.error(f"round takes digits from 0 to {DIGITS}, as a number", node.arguments[1].span or node.span)

    def _argument(self, known: ScalarFunction, place: int, own: _Typed, node: p.Function) -> _Typed:
        """An argument of a function, of a kind that this takes there."""
        allowed = known.takes[min(place, len(known.takes) - 1)]
        if own.kind not in allowed:
            takes = f"takes {_kinds_shown(allowed)}, not" if node.name in COMMON else "does not take"
            raise self.error(f"'{node.name}' {takes} {own.described}", own.span or node.span)
        if place not in known.constant:
            return own
        if not isinstance(own.operand, p.Constant):
            raise self.error(f"{node.name}({known.shown}) takes a constant there", own.span or node.span)
        return self._as_number(own, "int") if allowed == ("int",) else own

    def _check_calendar(self, node: p.Function, sides: list[_Typed]) -> None:
        """Units have names, and months are counted where it is clear what is shown by the clock."""
        unit = getattr(sides[0].operand, "value", None)
        if node.name == "date_trunc" and unit not in CALENDAR:
            hint = suggestion(str(unit), CALENDAR, kind="unit")
            raise self.error(f"date_trunc knows no '{unit}'", sides[0].span or node.span, hint)
        if node.name in ("add_months", "months_between"):
            for side in sides:
                zone = side.source.tz if side.source is not None and pa.types.is_timestamp(side.source) else None
                if zone not in (None, "UTC", "Etc/UTC", "+00:00"):
                    raise self.error(f"months are counted without a zone, or in UTC, not in {zone}", node.span)

    def case(self, node: p.Case) -> _Typed:
        conditions = []
        for one in node.conditions:
            inside = _Checker(self.attributes, self.clock)
            conditions.append(_decided(inside.predicate(p.without_cases(one))))
        sides = self._counted([self.operand(one) for one in node.values])
        given = [side for side in sides if side.kind != "null"]
        if not given:
            raise self.error("this CASE gives nothing but NULL", node.span)
        for side in given:
            if side.kind == "other":
                raise self.error(f"CASE gives no {side.source}", side.span or node.span)
        unified = iter(self._of_one_kind([self._ticked(one) if self._ticks(given) else one for one in given], node))
        sides = [side if side.kind == "null" else next(unified) for side in sides]
        chosen = next(side for side in sides if side.kind != "null")
        source = chosen.source if chosen.kind in ("time", "instant") else None
        found = replace(node, conditions=tuple(conditions), values=tuple(side.operand for side in sides))
        return _Typed(found, chosen.kind, source, node.span)

    def _ticks(self, sides: list[_Typed]) -> bool:
        """Whether some value is a computed time, beside which others are in ticks, too."""
        return any(side.kind == "instant" for side in sides)

    def _of_one_kind(self, sides: list[_Typed], node: p.Function | p.Case) -> list[_Typed]:
        """The arguments of a function: numbers are doubles where one is a decimal or a double, times of one type."""
        kinds = {side.kind for side in sides}
        if kinds == {"int"}:
            return [self._as_number(side, "int") for side in sides]
        if kinds <= set(NUMBERS):
            return [self._real(side) for side in sides]
        if len(kinds) > 1 or (kinds == {"time"} and len({side.source for side in sides}) > 1):
            one, other = next(
                (sides[0], side) for side in sides[1:] if (side.kind, side.source) != (sides[0].kind, sides[0].source)
            )
            raise self.error(
                f"'{node.name}' takes values of one type, not {one.described} and {other.described}", node.span
            )
        return sides

    def _real(self, own: _Typed) -> _Typed:
        """A number as a double."""
        if own.kind == "float" or isinstance(own.operand, p.Constant):
            return self._as_number(own, "float")
        return _Typed(p.Arithmetic("/", own.operand, p.Constant(1.0), own.span), "float", None, own.span)

    def _number(self, own: _Typed, op: str) -> _Typed:
        if own.kind not in NUMBERS:
            raise self.error(f"cannot compute {own.described} with '{op}': it needs numbers", own.span)
        if isinstance(own.operand, p.Constant) and isinstance(own.operand.value, Decimal):
            return self._as_number(own, "decimal" if self.exact else "float")
        return own

    def _computable(self, own: _Typed) -> _Typed:
        """A decimal as the double that it stands for where the comparison is not exact: divided by one."""
        if own.kind != "decimal" or self.exact:
            return own
        return self._real(own)

    def _as_number(self, own: _Typed, kind: str) -> _Typed:
        """A literal in the kind beside it; attributes stay as they are."""
        if not isinstance(own.operand, p.Constant):
            return own
        number = own.operand.value
        assert isinstance(number, int | float | Decimal)
        if isinstance(number, Decimal) and number and abs(number.adjusted()) > _DIGITS:
            size = "great" if number.adjusted() > 0 else "small"
            raise self.error(f"the number is too {size}", own.span, f"at most {_DIGITS} digits")
        if kind == "int" and not isinstance(number, int):
            kind = "int" if -(2**63) <= number < 2**63 and number == int(number) else "float"
        try:
            fresh = {"int": int, "float": float, "decimal": Decimal}[kind](number)
        except OverflowError as error:
            raise self.error("the number is too great", own.span, "no double is as great") from error
        if kind == "int" and not -(2**63) <= fresh < 2**63:
            hint = "integers reach from −2^63 to 2^63 − 1"
            raise self.error(f"the number {fresh} does not fit into 64 bits", own.span, hint)
        return replace(own, operand=replace(own.operand, value=fresh), kind=kind)

    def _pair(self, left: _Typed, right: _Typed, span: Span | None) -> tuple[_Typed, _Typed]:
        """Two operands of one comparison, with literals converted."""
        left, right = self._counted([left, right])
        for one in (left, right):
            if one.kind == "other":
                raise self.error(
                    f"cannot compare {one.described}", one.span, "such an attribute only takes IS [NOT] NULL"
                )
        if left.kind in NUMBERS and right.kind in NUMBERS:
            return self._numbers(left, right)
        if "instant" in (left.kind, right.kind):
            left, right = self._one_kind([left, right])
        if left.kind == "time" and right.kind == "string":
            return left, self._time(right, left)
        if right.kind == "time" and left.kind == "string":
            return self._time(left, right), right
        if left.kind == right.kind and left.kind in ("time", "instant"):
            self._same_clock(left, right, span)
            return left, right
        if left.kind != right.kind:
            constant = next((one.kind for one in (left, right) if isinstance(one.operand, p.Constant)), None)
            hint = None
            if {left.kind, right.kind} & {"string"} and {left.kind, right.kind} & set(NUMBERS) and constant:
                hint = f"write {'numbers without' if constant == 'string' else 'strings in single'} quotes"
            if "duration" in (left.kind, right.kind):
                hint = self._beside_duration(right if left.kind == "duration" else left)
            raise self.error(f"cannot compare {left.described} with {right.described}", span or right.span, hint)
        return left, right

    def _beside_duration(self, other: _Typed) -> str | None:
        """What to write in place of a duration beside something else."""
        if other.kind in ("time", "instant"):
            return "a difference of two times is a duration: b.t - a.t > 5 minutes"
        return self.clock.hint if other.kind in NUMBERS else None

    def _one_kind(self, sides: list[_Typed]) -> list[_Typed]:
        """String literals among times as times; where one of them is computed, all are in ticks."""
        clocks = sorted((side for side in sides if side.kind in ("time", "instant")), key=lambda side: side.kind)
        if not clocks:
            return sides
        clock, *_ = clocks
        sides = [self._time(side, clock) if side.kind == "string" else side for side in sides]
        return [self._ticked(side) for side in sides] if any(side.kind == "instant" for side in sides) else sides

    def _numbers(self, left: _Typed, right: _Typed) -> tuple[_Typed, _Typed]:
        """Two numbers of one comparison: literals become the kind of the other side."""
        constant = [isinstance(one.operand, p.Constant) for one in (left, right)]
        if all(constant):
            return left, right
        if constant[0]:
            return self._beside(left, right), right
        if constant[1]:
            return left, self._beside(right, left)
        return left, right

    def _beside(self, own: _Typed, other: _Typed) -> _Typed:
        """A literal beside a number: exact beside an integer, also where 64 bits or a double do not hold it."""
        assert isinstance(own.operand, p.Constant)
        number = own.operand.value
        if (
            other.kind == "int"
            and isinstance(number, int | Decimal)
            and 2**53 < abs(Decimal(number)) < Decimal(10) ** _DIGITS
        ):
            exact = int(number) if number == int(number) else number
            return replace(own, operand=replace(own.operand, value=exact), kind="int")
        return self._as_number(own, other.kind)

    def _same_clock(self, left: _Typed, right: _Typed, span: Span | None, what: str | None = None) -> None:
        if left.has_zone != right.has_zone:
            what = what or f"compare {left.described} with {right.described}"
            message = f"cannot {what}: only one has a time zone"
            raise self.error(message, span)

    def _time(self, literal: _Typed, other: _Typed) -> _Typed:
        """A string literal as the time that it stands for."""
        if not isinstance(literal.operand, p.Constant) or other.source is None:
            raise self.error(f"cannot compare {literal.described} with {other.described}", literal.span)
        text = str(literal.operand.value)
        hint = "write it like '2013-01-31' or '2013-01-31 12:00:00'"
        try:
            moment = dt.datetime.fromisoformat(text)
        except ValueError as error:
            raise self.error(f"'{text}' is no time", literal.span, hint) from error
        if _FINER.search(text):
            raise self.error(f"'{text}' is finer than a microsecond", literal.span, "write at most six decimals")
        if pa.types.is_date(other.source):
            if moment.time() != dt.time() or moment.tzinfo is not None:
                raise self.error(f"'{text}' is no date", literal.span, "write it like '2013-01-31'")
            return replace(literal, operand=replace(literal.operand, value=moment.date()), kind="time")
        if other.source.tz:
            if moment.tzinfo is None:
                zoned = moment.isoformat(" ")
                raise self.error(
                    f"'{text}' has no time zone, and {other.described} has one",
                    literal.span,
                    f"say which: '{zoned}Z' is in UTC, '{zoned}+02:00' two hours east of it",
                )
            try:
                moment = moment.astimezone(dt.UTC)
            except OverflowError as error:
                raise self.error(f"'{text}' is out of range", literal.span, "years are 1 to 9999") from error
        elif moment.tzinfo is not None:
            raise self.error(
                f"'{text}' has a time zone, and {other.described} has none",
                literal.span,
                f"write what its clock shows: '{moment.replace(tzinfo=None).isoformat(' ')}'",
            )
        return replace(literal, operand=replace(literal.operand, value=moment), kind="time")


def _per_second(node: p.Expression, attributes: Mapping[str, pa.DataType]) -> int:
    """Ticks of a second in which a node is an integer, if it is a time or a duration."""
    match node:
        case p.Duration():
            return node.per_second
        case p.Attribute(name) if name in attributes and kind_of(attributes[name]) == "time":
            kind = attributes[name]
            return PER_SECOND[kind.unit] if pa.types.is_timestamp(kind) else 1000 if pa.types.is_date64(kind) else 1
        case p.Constant(str() as text) if _FRACTION.search(text):
            return 10**6
        case p.Constant(dt.datetime() as moment) if moment.microsecond:
            return 10**6
    return 1


def _kinds_shown(kinds: tuple[str, ...]) -> str:
    if "string" not in kinds:
        return "numbers"
    return "values" if "int" in kinds else "strings"


def _kind_of_value(value: p.Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "int"
    if isinstance(value, bytes):
        return "other"
    return "decimal" if isinstance(value, Decimal) else "float" if isinstance(value, float) else "time"
