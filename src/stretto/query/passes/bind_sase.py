"""Binding a SASE+ query: references get types, conditions are typed, and what does not fit the schema is an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from stretto.errors import OptionError, QueryError, Span, placed, suggestion
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.passes import plan_sase
from stretto.query.passes.bind import (
    AnyBound,
    bind_window,
    bound_asked,
    check_keys,
    check_names,
    check_roles,
    is_key,
    whole_events,
    with_moving,
)
from stretto.query.plan import PatternPlan
from stretto.query.sase import DISTINCT, LIST, Aggregate, Element, Length, Reference, SaseQuery
from stretto.query.typing import Clock, kind_of, type_of_operand, typed, typed_operand


@dataclass(frozen=True)
class BoundReturn:
    """A computed column of the result."""

    name: str
    value: p.Operand
    type: pa.DataType


@dataclass(frozen=True)
class BoundSase(AnyBound):
    """A SASE+ query that fits its schema. ``types`` are the types of its references, by their names."""

    parsed: SaseQuery
    types: Mapping[str, pa.DataType]
    condition: p.Predicate | None

    @cached_property
    def plan(self) -> PatternPlan:
        """The query as all languages have it."""
        return plan_sase.plan_of(self.parsed, self.schema, self.condition, self.window)

    def typed(self, condition: p.Predicate) -> p.Predicate:
        return typed(condition, self.compared, clock=clock_of(self.parsed, self.schema))

    @property
    def conditions(self) -> tuple[p.Predicate, ...]:
        """What WHERE asks."""
        return () if self.condition is None else (self.condition,)

    @cached_property
    def compared(self) -> Mapping[str, pa.DataType]:
        """The types of references inside conditions (see :func:`_compared`)."""
        return _compared(self.parsed, self.types)

    @property
    def selected(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The variables to report, each with the attributes of its events."""
        return whole_events(self) if self.returns is None else ()

    @property
    def returned(self) -> set[str]:
        names = {name for one in self.returns or () for name in p.attributes(one.value)}
        found = {self.parsed.references[name].attribute for name in names}
        return {name for name in found if name is not None}

    @property
    def computes_matches(self) -> bool:
        """Whether something is computed over the events of a match."""
        return self.returns is not None or any(isinstance(one, Aggregate) for one in self.parsed.references.values())

    @property
    def reads(self) -> Iterable[str | None]:
        return (self.parsed.references[name].attribute for name in super().reads if name is not None)


def bind_sase(query: SaseQuery, schema: Schema) -> BoundSase:
    """Check ``query`` against ``schema``.

    Raises
    ------
    QueryError
        An unknown attribute or type; a comparison of different kinds; an aggregate over what is no number; a window without
        a time; a negation at an end without a window.
    OptionError
        A role of the schema names a column that is not there.
    """
    check_roles(schema)
    if schema.type is None and schema.stream is None:
        raise OptionError(
            "type=None: an event's type is the name of its stream, and no column names it, so that no component of the pattern can "
            "ever match; name the column of types with type='…', that of streams with stream='…', or give a dict of tables by "
            "stream (in the shell NAME=FILES)"
        )
    with placed(query.text):
        _check_types(query, schema)
        schema = with_moving(query, schema)
        check_names(query.partition_by, query.partition_spans, schema, "an equivalence test")
        check_keys(query.partition_by, query.partition_spans, schema)
        window = bind_window(query.window, schema)
        _check_negations(query)
        places = _places(query)
        types = {name: type_of(reference, schema, places.get(name)) for name, reference in query.references.items()}
        clock = clock_of(query, schema)
        condition = None
        if query.condition is not None:
            condition = typed(query.condition, _compared(query, types), clock=clock)
        returns = None
        if query.returns is not None:
            returns = tuple(_bound_return(item.name, item.value, types, clock) for item in query.returns)
        return BoundSase(
            parsed=query,
            schema=schema,
            types=types,
            condition=condition,
            window=window,
            returns=returns,
            time=schema.time or (window.attribute if window else None),
            asked=bound_asked(query, schema, window),
        )


def _compared(query: SaseQuery, types: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
    """The types of references inside conditions: there ``min`` and ``max`` of decimals of more than 18 digits are doubles."""
    wide = {
        name
        for name, reference in query.references.items()
        if isinstance(reference, Aggregate) and pa.types.is_decimal(types[name]) and types[name].precision > 18
    }
    return {name: pa.float64() if name in wide else kind for name, kind in types.items()}


def _places(query: SaseQuery) -> dict[str, Span | None]:
    """Where each reference is first written."""
    found: dict[str, Span | None] = {}
    trees: list[p.Expression] = [] if query.condition is None else [query.condition]
    trees += [item.value for item in query.returns or ()]
    for tree in trees:
        for name, span in p.attributes(tree).items():
            found.setdefault(name, span)
    return found


def type_of(reference: Reference, schema: Schema, span: Span | None) -> pa.DataType:
    """The Arrow type of a reference's values.

    Raises
    ------
    QueryError
        The attribute is unknown, or its type is none that the aggregate takes.
    """
    if isinstance(reference, Length):
        return pa.int64()
    attribute = reference.attribute
    if attribute is None:
        return pa.int64()
    if attribute not in schema.attributes:
        hint = suggestion(attribute, schema.attributes, kind="attribute")
        raise QueryError(f"unknown attribute '{attribute}'", span=span, hint=hint)
    own = schema.attributes[attribute]
    if isinstance(reference, Element):
        return own
    return _aggregated(reference, own, span)


def _aggregated(reference: Aggregate, own: pa.DataType, span: Span | None) -> pa.DataType:
    kind = kind_of(own)
    takes = {"sum": ("int", "float", "decimal"), "avg": ("int", "float", "decimal")}
    ordered = ("int", "float", "decimal", "time", "string")
    own = own.value_type if pa.types.is_dictionary(own) else own
    if reference.function == LIST:
        return pa.list_(own)
    if reference.function in ("count", DISTINCT):
        if reference.function == DISTINCT and not is_key(own):
            raise QueryError(f"values of {own} are not told apart: '{reference.attribute}'", span=span)
        return pa.int64()
    needed = "numbers" if reference.function in takes else "numbers, times or strings"
    if kind not in takes.get(reference.function, ordered):
        raise QueryError(
            f"{reference.function} needs {needed}, and '{reference.attribute}' is {own}",
            span=span,
            hint=f"count({reference.variable}{reference.range}) counts events of any kind",
        )
    if reference.function in ("min", "max"):
        return own
    return pa.int64() if kind == "int" and reference.function == "sum" else pa.float64()


def clock_of(query: SaseQuery, schema: Schema) -> Clock:
    """The clock of a stream, by the references that read it: events, the first and the last of a repetition."""
    found = Clock.of(schema)
    names = (
        name
        for name, reference in query.references.items()
        if reference.attribute in found.names
        and (not isinstance(reference, Aggregate) or reference.function in ("min", "max"))
    )
    return replace(found, names=frozenset(names))


def _bound_return(name: str, value: p.Operand, types: Mapping[str, pa.DataType], clock: Clock) -> BoundReturn:
    operand = typed_operand(value, types, clock=clock)
    return BoundReturn(name, operand, type_of_operand(operand, types))


def _check_types(query: SaseQuery, schema: Schema) -> None:
    if schema.types is None:
        return
    for component in (*query.components, *query.endings):
        spans = component.type_spans or (component.span,) * len(component.types)
        for name, span in zip(component.types, spans, strict=True):
            if name not in schema.types:
                raise QueryError(
                    f"no stream declares the event type '{name}'",
                    span=span,
                    hint=suggestion(name, sorted(schema.types), kind="type"),
                )


def _check_negations(query: SaseQuery) -> None:
    ends = (query.components[0], query.components[-1])
    chosen = "OUTPUT non_overlap" if query.non_overlap else None if query.limit is None else "LIMIT"
    if chosen and ends[1].negated:
        raise QueryError(
            f"{chosen} chooses among the matches that one event completes, and a negation at the end completes them by time",
            span=ends[1].span,
            hint=f"leave out {chosen}, or the negation at the end",
        )
    for component in ends:
        if component.negated and (query.window is None or query.window.events is not None):
            raise QueryError(
                f"{component} at an end of the pattern needs a time until which it holds",
                span=component.span,
                hint="add WITHIN with a duration",
            )
