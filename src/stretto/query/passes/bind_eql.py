"""Binding an EQL query: the conditions of steps are typed, and keys that are joined get one type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import pyarrow as pa

from stretto.column_types import unified
from stretto.errors import OptionError, QueryError, placed, suggestion
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.eql import EqlQuery, Pipe, Step
from stretto.query.passes import plan_eql
from stretto.query.passes.bind import AnyBound, bind_window, check_roles, is_key, whole_events
from stretto.query.plan import PatternPlan
from stretto.query.typing import typed, with_integer_division
from stretto.query.windows import BoundWindow


@dataclass(frozen=True)
class BoundEql(AnyBound):
    """An EQL query that fits its schema: ``conditions`` has the typed conditions of its steps, that of ``until`` last.

    ``key_types`` are the types in which keys are compared, ``pipes`` have typed conditions.
    """

    parsed: EqlQuery
    conditions: tuple[p.Predicate, ...]
    key_types: tuple[pa.DataType, ...]
    pipes: tuple[Pipe, ...] = ()

    @cached_property
    def plan(self) -> PatternPlan:
        """The query as all languages have it."""
        return plan_eql.plan_of(self.parsed, self.conditions, self.window)

    def typed(self, condition: p.Predicate) -> p.Predicate:
        return typed_condition(condition, self.schema.attributes)

    @property
    def selected(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The variables to report, each with the attributes of its events."""
        return whole_events(self)

    @property
    def reads(self) -> Iterable[str | None]:
        return (*super().reads, *(key.name for step in self.parsed.whole for key in step.keys))


def bind_eql(query: EqlQuery, schema: Schema) -> BoundEql:
    """Check ``query`` against ``schema``.

    Raises
    ------
    QueryError
        An unknown field or category; a comparison of different kinds; keys that are not compared; ``maxspan`` without a time.
    OptionError
        A role of the schema names a column that is not there, or nothing tells the category of an event.
    """
    check_roles(schema)
    named = next((step for step in query.whole if step.category is not None), None)
    if named is not None and schema.type is None and schema.stream is None:
        raise OptionError(
            f"type=None: '{named.category} where …' asks for a category, and no column names it; name the column of categories with "
            "type='…', or write any where …"
        )
    query = query.fitted(schema.attributes)
    with placed(query.text):
        for step in query.whole:
            _check_category(step, schema)
        conditions = tuple(typed_condition(step.condition, schema.attributes) for step in query.whole)
        window = _maxspan(query, schema)
        return BoundEql(
            parsed=query,
            schema=schema,
            window=window,
            time=schema.time or (window.attribute if window else None),
            conditions=conditions,
            key_types=tuple(_key_types(query, schema)),
            pipes=tuple(_piped(one, schema) for one in query.pipes),
        )


def _piped(pipe: Pipe, schema: Schema) -> Pipe:
    """A pipe whose condition has its types; what it sorts or tells apart are values that have an order."""
    kinds = {}
    for shown, (_, field) in pipe.reads.items():
        if field.name not in schema.attributes:
            raise QueryError(
                f"unknown field '{field.name}'", span=field.span, hint=_or_lacking(field.name, schema.attributes)
            )
        kinds[shown] = schema.attributes[field.name]
        if pipe.condition is None and not is_key(kinds[shown]):
            raise QueryError(
                f"{pipe.name} takes numbers, strings and times, and '{shown}' is {kinds[shown]}", span=field.span
            )
    return pipe if pipe.condition is None else replace(pipe, condition=typed_condition(pipe.condition, kinds))


def _maxspan(query: EqlQuery, schema: Schema) -> BoundWindow | None:
    try:
        return bind_window(query.window, schema)
    except QueryError as error:
        hint = "time='…' names the column that maxspan measures, and time_unit='s' (or 'ms', 'us', 'ns') the unit of plain numbers"
        raise QueryError(error.message, span=error.span, hint=hint) from None


def typed_condition(condition: p.Predicate, attributes: Mapping[str, pa.DataType]) -> p.Predicate:
    """A condition of a step with its types.

    Raises
    ------
    QueryError
        A field is unknown, or values of different kinds are compared.
    """
    for name, span in p.attributes(condition).items():
        if name not in attributes:
            raise QueryError(f"unknown field '{name}'", span=span, hint=_or_lacking(name, attributes))
    divided = cast(p.Predicate, with_integer_division(condition, attributes)) if _divides(condition) else condition
    try:
        return typed(divided, attributes)
    except QueryError as error:  # which knows other languages' quotes
        hint = None if error.hint is None else error.hint.replace("single quotes", "double quotes")
        raise QueryError(error.message, span=error.span, hint=hint) from None


def _or_lacking(name: str, attributes: Mapping[str, pa.DataType]) -> str:
    """What to write in place of a field that is not known."""
    hint = suggestion(name, attributes, kind="field")
    more = f"write ?{name} where events may lack it"
    return f"{hint} Or {more}" if hint and hint.endswith("?") else f"{hint}; {more}" if hint else more


def _divides(condition: p.Predicate) -> bool:
    return any(isinstance(node, p.Arithmetic) and node.op == "/" for node in p.walk(condition))


def _check_category(step: Step, schema: Schema) -> None:
    if schema.types is not None and step.category is not None and step.category not in schema.types:
        hint = suggestion(step.category, sorted(schema.types), kind="category")
        raise QueryError(f"no event has the category '{step.category}'", span=step.place, hint=hint)


def _key_types(query: EqlQuery, schema: Schema) -> list[pa.DataType]:
    """The types of keys, each one type in all steps."""
    found = []
    for keys in zip(*(step.keys for step in query.whole), strict=True):
        kinds = []
        for key in keys:
            kind = schema.attributes.get(key.name)
            if kind is None and not key.optional:
                hint = _or_lacking(key.name, schema.attributes)
                raise QueryError(f"unknown field '{key.name}' in by", span=key.span, hint=hint)
            if kind is None or pa.types.is_null(kind):
                continue
            if not is_key(kind):
                raise QueryError(
                    f"cannot join by '{key.name}' ({kind})", span=key.span, hint="join by numbers, strings or times"
                )
            kinds.append(kind.value_type if pa.types.is_dictionary(kind) else kind)
        one = unified(kinds) if kinds else pa.string()
        if one is None:
            told = " and ".join(
                f"'{key.name}' is {schema.attributes[key.name]}" for key in keys if key.name in schema.attributes
            )
            raise QueryError(f"{told}: they make no key", span=keys[-1].span, hint="make them one type")
        found.append(one)
    return found
