"""Columns that are NULL throughout have no type of their own: they get one that fits how a query uses them.

A list of dicts, a pandas column of objects, a first batch: nobody has said what the values would be. Any type will do, as a
comparison with NULL is false whatever it is compared with; the one that is chosen only must not make the query an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.query import AnyQuery
from stretto.query.sase import DISTINCT, LIST, Aggregate, SaseQuery
from stretto.query.scalar_functions import FUNCTIONS
from stretto.query.totals import Function, attributes, totals

_NUMBER = pa.int64()
_TEXT = pa.string()


def with_types_of_nulls(query: AnyQuery, schema: Schema) -> Schema:
    """Give the schema a type for each attribute that is NULL throughout and that a condition, a partition or a total reads."""
    missing = {name for name, kind in schema.attributes.items() if pa.types.is_null(kind)}
    if not missing:
        return schema
    uses = _Uses(missing, schema)
    read: set[str] = {*query.partition_by, *attributes(query.asked)}
    for total in totals(query.asked):
        if isinstance(total.value, p.Attribute) and total.function is not Function.COUNT:
            uses.like_numbers(total.value.name, always=total.function in (Function.SUM, Function.AVG))
        elif total.value is not None:
            uses.look(total.value)
    if isinstance(query, SaseQuery) and query.references:
        uses.names = {name: one.attribute for name, one in query.references.items()}
        for one in query.references.values():
            if (
                isinstance(one, Aggregate)
                and one.attribute is not None
                and one.function not in ("count", LIST, DISTINCT)
            ):
                uses.like_numbers(one.attribute, always=one.function in ("sum", "avg"))
    for tree in query.conditions:
        read.update(filter(None, (uses.attribute_of(name) for name in p.attributes(tree))))
        uses.look(tree)
    found = uses.types()
    chosen = {name: found.get(name, _TEXT) for name in missing & read}
    return replace(schema, attributes={**schema.attributes, **chosen})


class _Uses:
    """What attributes without a type are compared with."""

    def __init__(self, missing: set[str], schema: Schema) -> None:
        attributes, self.time = schema.attributes, schema.time
        self.missing = missing
        self.attributes = attributes
        #: The attribute of each name in conditions, where they are not attributes' own.
        self.names: Mapping[str, str | None] | None = None
        self._wanted: dict[str, pa.DataType] = {}
        self._instead: dict[str, pa.DataType] = {}
        self._alike: list[tuple[str, str]] = []

    def attribute_of(self, name: str) -> str | None:
        return name if self.names is None else self.names.get(name)

    def types(self) -> dict[str, pa.DataType]:
        """What is known of each attribute's type; attributes that are compared with each other have one."""
        found = dict(self._wanted)
        for _ in self._alike:
            for one, other in self._alike:
                for known, fresh in ((one, other), (other, one)):
                    if known in found:
                        found.setdefault(fresh, found[known])
        return self._instead | found

    def like_numbers(self, attribute: str, *, always: bool) -> None:
        """A column is used as a number; or, where nothing else is known, may be one."""
        (self._wanted if always else self._instead).setdefault(attribute, _NUMBER)

    def look(self, tree: p.Expression) -> None:
        """Take note of all uses in an expression."""
        for node in p.walk(tree):
            if isinstance(node, p.Comparison | p.Between):
                self._times(node)
            match node:
                case p.Comparison(op, left, right):
                    self._same([left, right])
                    if op not in ("=", "!="):
                        self._ordered(left, right)
                case p.In(operand, values):
                    self._same([operand, *values])
                case p.Between(operand, low, high):
                    self._same([operand, low, high])
                case p.Member(operand, values):
                    self._want(values, pa.list_(self._kind(operand) or _TEXT))
                case p.Like(operand):
                    self._want(operand, _TEXT)
                case p.Arithmetic() | p.Negative() | p.Call():
                    self._want_all(node, _NUMBER)
                case p.Function("coalesce", arguments) | p.Case(_, arguments):
                    self._same(arguments)
                case p.Function(name):
                    self._want_all(node, _TEXT if "string" in FUNCTIONS[name].takes[0] else _NUMBER)
                case _ if (meaning := getattr(node, "meaning", None)) is not None:
                    self.look(meaning)

    def _times(self, node: p.Comparison | p.Between) -> None:
        """What is compared with a duration, or computed with one, are times, of the type of those that are known.

        The stream's own time may be a number of units.
        """
        if any(isinstance(one, p.Duration) for one in p.walk(node)):
            read = [p.Attribute(name) for name in p.attributes(node)]
            known = [(one, kind) for one in read if (kind := self._kind(one)) is not None]
            times = (kind for one, kind in known if pa.types.is_timestamp(kind) or self._counts(one, kind))
            kind = next(times, pa.timestamp("us"))
            for one in read:
                self._want(one, kind)

    def _counts(self, one: p.Attribute, kind: pa.DataType) -> bool:
        """Whether an attribute is the stream's time, and a number."""
        own = self.attribute_of(one.name)
        return own is not None and own == self.time and not pa.types.is_temporal(kind)

    def _want_all(self, node: p.Expression, kind: pa.DataType) -> None:
        for one in p.children(node):
            if isinstance(one, p.Attribute):
                self._want(one, kind)

    def _ordered(self, *sides: p.Operand) -> None:
        """Columns of which nothing else is known are numbers where their order counts, which every engine can compare."""
        for one in sides:
            if (
                isinstance(one, p.Attribute)
                and (name := self.attribute_of(one.name)) in self.missing
                and name is not None
            ):
                self.like_numbers(name, always=False)

    def _same(self, sides: Iterable[p.Operand]) -> None:
        """Operands that are compared have types that fit each other."""
        sides = list(sides)
        for one in sides:
            for other in sides:
                if one is other:
                    continue
                kind = self._kind(other)
                if kind is not None:
                    self._want(one, kind)
                elif isinstance(one, p.Attribute) and isinstance(other, p.Attribute):
                    first, second = self.attribute_of(one.name), self.attribute_of(other.name)
                    if first in self.missing and second in self.missing and first is not None and second is not None:
                        self._alike.append((first, second))

    def _want(self, operand: p.Operand, kind: pa.DataType) -> None:
        if isinstance(operand, p.Attribute):
            name = self.attribute_of(operand.name)
            if name in self.missing and name is not None:
                before = self._wanted.setdefault(name, kind)
                if before == _NUMBER and pa.types.is_floating(kind):
                    self._wanted[name] = kind

    def _kind(self, operand: p.Operand) -> pa.DataType | None:
        """A type of what an operand gives; ``None``: an attribute whose type is not known."""
        match operand:
            case p.Attribute(name):
                attribute = self.attribute_of(name)
                if attribute is None:
                    return _NUMBER
                kind = self.attributes.get(attribute)
                return None if kind is None or pa.types.is_null(kind) else kind
            case p.Constant(value):
                if isinstance(value, Decimal):
                    return pa.float64()
                return pa.scalar(value).type
            case p.Constant() if p.is_null(operand):
                return None
            case p.Function("coalesce", arguments) | p.Case(_, arguments):
                return next(filter(None, map(self._kind, arguments)), None)
            case p.Function(name) if FUNCTIONS[name].gives == "string":
                return _TEXT
        return _NUMBER
