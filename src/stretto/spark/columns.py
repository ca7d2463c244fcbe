"""Which events can matter for a query, as a Spark condition: a filter before the shuffle, down to the file format.

The condition is *necessary*: an event that it drops satisfies no transition of the query's automaton, so the matches stay
the same. It need not be sufficient. Where Spark may judge otherwise than :mod:`stretto.query.evaluate`, it is wider:

- Spark has three truth values, stretto two: here ``NOT (x > 5)`` holds on NULL. So the translation asks of every part
  where it *may be true* or *may be false*, and never negates what it has.
- NaN equals nothing here; in Spark it equals itself and is greatest, and Parquet's statistics leave it out.
- Parquet's dictionaries tell −0.0 from 0.0, and Spark skips row groups by them.
- Strings compare by code points here; a column of Spark may have a collation, or is padded (``CHAR``).
- Integers that overflow are an error here: such rows stay, for the engine to say so. In Spark nothing raises (``try_…``).

A comparison of a column with a constant stays one, with a constant of the column's own type, for file formats to use.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import pyarrow as pa

from stretto.array_types import INT64
from stretto.columns.grid import on_grid, snapped
from stretto.events import Schema
from stretto.matching.compiled import Query
from stretto.matching.input.predicate_pushdown import COMPARE, Translator, Untranslatable, all_of, any_of, guards_of
from stretto.query import predicate as p
from stretto.query.evaluate import like_search, value
from stretto.query.guard import Guard
from stretto.query.scalar_functions import FUNCTIONS
from stretto.query.typing import kind_of
from stretto.spark.frames import column

if TYPE_CHECKING:
    from pyspark.sql import Column

#: A Spark condition, or one that is known to be true (nothing is asked) or false of all rows.
Condition = Union["Column", bool]

#: Spark's optimizer takes seconds over more conditions than this; beyond, only the types of events are asked.
MOST_PARTS = 400

#: The collation of a Spark column that was given no other.
_BINARY = "SYSTEM.BUILTIN.UTF8_BINARY"

#: Regular expressions that RE2 and Java read alike: plain characters, ranges of them and how often, groups, alternatives.
_ALIKE = re.compile(r"\^?(?:(?:[A-Za-z0-9 _\-/,:;@#%=<>\"'~!]|\[(?:[A-Za-z0-9_]|a-z|A-Z|0-9)+\])[*+?]?|\((?!\?)|[)|])+")

_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_EPOCH = dt.datetime(1970, 1, 1)
_WIDE = Context(prec=80)


def relevant(query: Query) -> Column | None:
    """A condition that every event fulfils that can matter for a bound query.

    An event matters when it satisfies a transition of the query's automaton: type, stream, and the conditions on the one
    event. Where positions count (``:``, ``:+``, ``STRICT``, ``WITHIN n EVENTS``), every event of the query's streams does.
    What does not matter is not looked at for errors either (a NULL time, a number that overflows).

    Parameters
    ----------
    query
        Bound to columns of the DataFrame that is to be filtered.

    Returns
    -------
    pyspark.sql.Column or None
        ``None``: every event can matter. The condition never raises; on an event that does not matter it may be NULL.

    Raises
    ------
    OptionError
        The query has no schema.
    LimitError
        The query's automaton is too large.
    """
    from pyspark.sql import functions as F

    found = all_of([in_streams(query), any_of(test.condition for test in _tests(query))])
    if found is True:
        return None
    return F.lit(False) if found is False else found


def relevant_text(query: Query) -> str | None:
    """What :func:`relevant` asks, for people: ``A[x > 3] OR B``; ``None`` when it asks nothing.

    Conditions that Spark is not asked, because it might judge them in another way, are not shown.
    """
    tests = _tests(query)
    matters = " OR ".join(str(guard) for test in tests for guard in test.guards)
    matters = "" if any(test.condition is True for test in tests) else matters or "nothing"
    member = in_streams(query) is not True and f"{query.bound.schema.stream} IN ({', '.join(query.streams)})"
    if member and matters:
        return f"{member} AND ({matters})"
    return member or matters or None


def may_be(truth: bool, predicate: p.Predicate, schema: Schema) -> Condition:
    """Where a typed predicate may be true, or may be false: a condition that holds wherever it is.

    Parameters
    ----------
    truth
        Which of the two is asked for.
    predicate
        As :func:`stretto.query.typing.typed` gives it.
    schema
        The columns and their types.
    """
    return _Translator(schema).may_be(truth, predicate)


# -- queries -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Test:
    """Guards, with the conditions that Spark is asked, and together as one condition."""

    guards: tuple[Guard, ...]
    condition: Condition


def _tests(query: Query) -> list[_Test]:
    """Where an event may satisfy one of the automaton's guards. One test that is always true where positions count."""
    asked_of_events = guards_of(query.bound)
    if asked_of_events is None:
        return [_Test((), True)]
    translator = _Translator(query.bound.schema)
    bare: dict[str | None, list[str]] = {}
    tests: list[_Test] = []
    parts = 0
    for guards in _by_type(asked_of_events):
        first = guards[0]
        parts += sum(1 for guard in guards for one in guard.conditions for _ in p.walk(one))
        asked = [translator.guard(guard) for guard in guards] if parts <= MOST_PARTS else []
        if all(guard.conditions for guard, _ in asked) and asked:
            is_type = _is_type(query, first.stream, [first.type])
            tests += [_Test((guard,), all_of([is_type, condition])) for guard, condition in asked]
        else:
            bare.setdefault(first.stream, []).append(first.type)
    for stream, types in bare.items():
        tests.append(_Test(tuple(Guard(name, stream) for name in types), _is_type(query, stream, types)))
    return [test for test in tests if test.condition is not False]


def _by_type(guards: Iterable[Guard]) -> list[list[Guard]]:
    found: dict[tuple[str | None, str], list[Guard]] = {}
    for guard in guards:
        found.setdefault((guard.stream, guard.type), []).append(guard)
    return list(found.values())


def in_streams(query: Query) -> Condition:
    """Events of streams that FROM does not name take no part; not even positions count them."""
    name = query.bound.schema.stream
    if query.parsed.any_stream:
        return True
    return True if name is None else _is_one_of(name, query.streams, query.bound.schema)


def _is_type(query: Query, stream: str | None, types: Sequence[str]) -> Condition:
    """An event of one of some types, of a stream where that is given: as :class:`~stretto.columns.classes.Classifier` says."""
    schema = query.bound.schema
    only = query.streams[0]
    name = schema.type or schema.stream
    tests = [only in types if name is None else _is_one_of(name, types, schema)]
    if stream is not None:
        tests.append(stream == only if schema.stream is None else _is_one_of(schema.stream, [stream], schema))
    return all_of(tests)


def _is_one_of(name: str, values: Sequence[str], schema: Schema) -> Condition:
    if pa.types.is_null(schema.attributes[name]):
        return False
    return _Translator(schema).may_be(True, p.In(p.Attribute(name), tuple(p.Constant(one) for one in values)))


# -- predicates --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    """An operand as a Spark column; ``type`` is that of the attribute that it is, and ``None`` when it is computed."""

    kind: str
    column: Column
    type: pa.DataType | None

    def where_unknown(self, truth: bool) -> list[Condition]:
        """Where the operand is NULL and a comparison therefore false; or where it overflowed, which the engine shall find."""
        return [self.column.isNull()] if not truth or (self.type is None and self.kind == "int") else []

    def where_nan(self, op: str, truth: bool) -> list[Condition]:
        """Where the operand is NaN, if a comparison with that is what is asked for; ``op`` is what the others shall fulfil."""
        from pyspark.sql import functions as F

        asked = (op == "!=") if truth else (op != "=")
        return [F.isnan(self.column)] if self.kind == "float" and asked else []

    def where_collated(self) -> list[Condition]:
        """Everywhere if the column has a collation of its own (Spark knows when it plans), nowhere else."""
        from pyspark.sql import functions as F

        return [F.collation(self.column) != F.lit(_BINARY)]


class _Translator(Translator):
    def __init__(self, schema: Schema) -> None:
        self.attributes = schema.attributes

    def guard(self, guard: Guard) -> tuple[Guard, Condition]:
        """A guard with those of its conditions that Spark is asked, and these as one condition."""
        parts: list[p.Predicate] = []
        for condition in guard.conditions:
            parts += p.conjuncts(condition)
        found = [(part, self.may_be(True, part)) for part in parts]
        kept = tuple(part for part, condition in found if condition is not True)
        return Guard(guard.type, guard.stream, kept), all_of(condition for _, condition in found)

    def is_null(self, node: p.IsNull, truth: bool) -> Condition:
        if not isinstance(node.operand, p.Attribute):
            return True
        own = column(node.operand.name)
        return own.isNull() if truth else own.isNotNull()

    def comparison(self, node: p.Comparison, truth: bool) -> Condition:
        op, first, second = node.op, self.operand(node.left), self.operand(node.right)
        if not isinstance(first, _Side):
            first, second, op = second, first, p.FLIPPED[op]
        assert isinstance(first, _Side)
        op = op if truth else _NEGATED[op]
        if isinstance(second, _Side):
            return self._two_columns(truth, op, first, second)
        if second is None:
            return not truth
        parts = [*first.where_unknown(truth), *first.where_nan(op, truth), _with_constant(op, first, second)]
        if first.kind == "string" and op != "=":
            parts += first.where_collated()
        return any_of(parts)

    def _two_columns(self, truth: bool, op: str, left: _Side, right: _Side) -> Condition:
        from pyspark.sql import functions as F

        kinds = {left.kind, right.kind}
        if len(kinds) > 1 or (kinds & {"time", "decimal"} and left.type != right.type):
            return True
        first, second = left.column, right.column
        if kinds == {"string"}:
            first, second = (F.collate(side, "UTF8_BINARY") for side in (first, second))
        unknown = left.where_unknown(truth) + right.where_unknown(truth)
        nan = left.where_nan(op, truth) + right.where_nan(op, truth)
        return any_of([*unknown, *nan, COMPARE[op](first, second)])

    def among(self, node: p.In, truth: bool) -> Condition:
        """IN: constants that the column's type does not have are equal to nothing."""
        own = self.operand(node.operand)
        if not isinstance(own, _Side) or own.kind in ("float", "bool") or own.type is None:
            equal = [self.visit(one, truth) for one in node.meaning.parts]
            return any_of(equal) if truth else all_of(equal)
        there = [one for one in (_equal_to(own, constant.value) for constant in node.values) if one is not None]
        if truth:
            return own.column.isin(*there) if there else False
        if not there:
            return True
        parts: list[Condition] = [*own.where_unknown(truth), ~own.column.isin(*there)]
        return any_of(parts + own.where_collated() if own.kind == "string" else parts)

    def like(self, node: p.Like, truth: bool) -> Condition:
        from pyspark.sql import functions as F

        own = self.operand(node.operand)
        if not isinstance(own, _Side):
            return True
        search, text = like_search(node.pattern)
        sought = _text(text)
        if search == "equal":
            return self.comparison(p.Comparison("=", node.operand, p.Constant(text)), truth)
        if search == "like":
            # A LIKE of a collated column is an error for some collations.
            found = F.collate(own.column, "UTF8_BINARY").like(sought.replace("\\", "\\\\"))
            return any_of([*own.where_unknown(truth), found if truth else ~found])
        searches = {"starts": own.column.startswith, "ends": own.column.endswith, "contains": own.column.contains}
        found = searches[search](sought)
        return found if truth else any_of([own.column.isNull(), ~found, *own.where_collated()])

    def rlike(self, node: p.Rlike, truth: bool) -> Condition:
        """Only expressions that mean the same in Java."""
        from pyspark.sql import functions as F

        own = self.operand(node.operand)
        if not isinstance(own, _Side) or not _ALIKE.fullmatch(node.pattern):
            return True
        found = F.collate(own.column, "UTF8_BINARY").rlike(node.pattern)
        return any_of([*own.where_unknown(truth), found if truth else ~found])

    # -- operands ------------------------------------------------------------------------------------------------------

    def operand(self, node: p.Operand) -> Any:
        """A :class:`_Side`, or the value of an operand without attributes."""
        if not p.attributes(node):
            found = value(node, {})
            if isinstance(found, float) and not math.isfinite(found):
                raise Untranslatable
            return found
        if isinstance(node, p.Attribute):
            return self._attribute(node.name)
        return self._computed(node)

    def _attribute(self, name: str) -> _Side:
        from pyspark.sql import functions as F

        kind = self.attributes[name]
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        family = kind_of(kind)
        if family == "other" or (family == "time" and not _is_time(kind)) or kind == pa.uint64():
            raise Untranslatable
        # Spark pads constants beside a CHAR column, but not beside coalesce(column), which its optimizer takes away.
        return _Side(family, F.coalesce(column(name)) if family == "string" else column(name), kind)

    def _computed(self, node: p.Operand) -> _Side:
        """Arithmetic in 64 bits or doubles, NULL where it overflows; decimals grow beyond Spark's, and are not asked."""
        from pyspark.sql import functions as F

        if isinstance(node, p.Function):
            return self._function(node)
        if isinstance(node, p.Ticks):
            raise Untranslatable
        if isinstance(node, p.Negative):
            node = p.Arithmetic("-", p.Constant(0), node.operand)
        assert isinstance(node, p.Arithmetic)
        sides = [self.operand(side) for side in (node.left, node.right)]
        kinds = [side.kind if isinstance(side, _Side) else _KINDS.get(side.__class__) for side in sides]
        if any(kind not in ("int", "float") for kind in kinds):
            raise Untranslatable
        kind = "float" if node.op == "/" or "float" in kinds else "int"
        wide = "double" if kind == "float" else "bigint"
        first, second = (side.column.cast(wide) if isinstance(side, _Side) else _number(wide, side) for side in sides)
        compute = {
            "+": F.try_add,
            "-": F.try_subtract,
            "*": F.try_multiply,
            "/": F.try_divide,
            "%": F.try_mod,
        }[node.op]
        return _Side(kind, compute(first, second), None)

    def _function(self, node: p.Function) -> _Side:
        """What Spark computes alike: it has its own tables of letters in the other case, and rounds to what is no double."""
        from pyspark.sql import functions as F

        first, *more = [self.operand(argument) for argument in node.arguments]
        kind = first.kind if isinstance(first, _Side) else "string"
        wide = {"int": "bigint", "float": "double", "string": "string"}.get(kind)
        if wide is None or node.name not in ("abs", "coalesce", "length", "concat"):
            raise Untranslatable

        def own(side: Any) -> Column:
            if isinstance(side, _Side):
                return side.column if wide == "string" else side.column.cast(wide)
            return F.lit(_text(side)) if wide == "string" else _number(wide, side)

        columns = [own(one) for one in (first, *more)]
        if node.name == "abs" and kind == "int":
            found = F.when(columns[0] < 0, F.try_subtract(F.lit(0), columns[0])).otherwise(columns[0])
        else:
            found = getattr(F, node.name)(*columns)
        return _Side(FUNCTIONS[node.name].gives or kind, found, None)


def _is_time(kind: pa.DataType) -> bool:
    """Whether Spark has times of this type."""
    return bool(pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us"))


_KINDS: dict[type, str] = {int: "int", float: "float"}


# -- constants ---------------------------------------------------------------------------------------------------------


def _with_constant(op: str, own: _Side, constant: Any) -> Condition:
    """``own op constant`` where the column is neither NULL nor NaN."""
    compare = COMPARE[op]
    found: Condition
    match own.kind:
        case "string":
            found = compare(own.column, _text(constant))
        case "bool":
            found = compare(own.column, constant)
        case "float":
            found = _real_with_constant(op, own, constant)
        case _:
            at = _on_grid(op, own, constant)
            found = at if isinstance(at, bool) else COMPARE[at[0]](own.column, _on_grid_literal(own, at[1]))
    return found


def _equal_to(own: _Side, constant: Any) -> Any:
    """A literal of the column's type that equals the constant; ``None`` if there is none."""
    if own.kind == "string":
        return _text(constant)
    at = _on_grid("=", own, constant)
    return None if isinstance(at, bool) else _on_grid_literal(own, at[1])


def _text(constant: str) -> str:
    if not constant.isascii():
        try:
            constant.encode()
        except UnicodeEncodeError as error:  # half a surrogate pair, which no column holds
            raise Untranslatable from error
    return constant


def _on_grid(op: str, own: _Side, constant: Any) -> tuple[str, int] | bool:
    """A comparison with a number or time as one with a value that the column can have, in its smallest unit."""
    kind = own.type or pa.int64()
    if pa.types.is_decimal(kind):
        if isinstance(constant, float):  # compared as floats
            raise Untranslatable
        most = 10**kind.precision - 1
        bounds = (-most, most)
    else:
        half = 1 << (kind.bit_width - 1)
        bounds = (-half, half - 1)
    return snapped(op, on_grid(constant, kind), *bounds)


def _on_grid_literal(own: _Side, units: int) -> Column:
    """A value of a column's type as a Spark literal, free of session settings."""
    from pyspark.sql import functions as F

    kind = own.type or pa.int64()
    if pa.types.is_decimal(kind):
        exact = Decimal(units).scaleb(-kind.scale, _WIDE)
        return F.lit(f"{exact:f}").cast(f"decimal({kind.precision},{kind.scale})")
    if pa.types.is_date(kind):
        return F.date_from_unix_date(F.lit(units))
    if pa.types.is_timestamp(kind):
        if kind.tz:
            return F.timestamp_micros(F.lit(units))
        return F.lit((_EPOCH + dt.timedelta(microseconds=units)).isoformat()).cast("timestamp_ntz")
    return _number(_INTEGERS[kind.bit_width], units)


_INTEGERS = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}


def _number(kind: str, number: int | float) -> Column:
    from pyspark.sql import functions as F

    if kind == "bigint" and not INT64[0] <= number <= INT64[-1]:  # an error, which is for the engine to raise
        raise Untranslatable
    return F.lit(number if kind in _INTEGERS.values() else float(number)).cast(kind)


def _real_with_constant(op: str, own: _Side, constant: int | float | Decimal) -> Condition:
    """A float compared with a constant, which is rounded to a neighbour if the column's type does not have it."""
    name, kind = ("float", np.float32) if own.type == pa.float32() else ("double", np.float64)
    number = Fraction(float(constant) if isinstance(constant, Decimal) else constant)
    with np.errstate(over="ignore"):
        near = kind(float(number))
    if math.isinf(near) or Fraction(float(near)) != number:
        if op in ("=", "!="):
            return op == "!="
        below = near if near < number else np.nextafter(near, kind(-np.inf))
        op, near = ("<=", below) if op[0] == "<" else (">", below)
    if near == 0 and op in ("=", ">=", "<="):
        # Between the two zeros, wherever they are told apart.
        above, below = own.column >= _number(name, -0.0), own.column <= _number(name, 0.0)
        return {"=": above & below, ">=": above, "<=": below}[op]
    found: Condition = COMPARE[op](own.column, _number(name, float(near)))
    return found
