"""Binding moving aggregates: what type they have, and of which events they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from stretto.errors import QueryError
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.moving import BoundMoving, MovingAggregate
from stretto.query.passes.bind import bind_window, is_key
from stretto.query.plan import Conjunct
from stretto.query.query import AnyQuery
from stretto.query.typing import Clock, kind_of, type_of_operand, typed_operand

if TYPE_CHECKING:
    from stretto.query.passes.bind import AnyBound


def with_moving(query: AnyQuery, schema: Schema) -> Schema:
    """The schema with an attribute for each moving aggregate of a query.

    Raises
    ------
    QueryError
        An aggregate goes over what it does not take, or its window does not measure the stream's time.
    """
    if not query.moving:
        return schema
    own = {one.name for one in query.moving}
    attributes = {name: kind for name, kind in schema.attributes.items() if name not in own}
    plain = replace(schema, attributes=attributes)
    return replace(schema, attributes=attributes | {one.name: _types(one, plain)[1] for one in query.moving})


def bound_moving(bound: AnyBound) -> tuple[BoundMoving, ...]:
    """The moving aggregates of a bound query, each with what its events are asked."""
    schema, made = bound.schema, []
    for one in bound.parsed.moving:
        places = [position for position in bound.plan.positions if one.variable in position.labels]
        alone = [replace(position, asked=tuple(filter(_stands_still, position.asked))) for position in places]
        guards = dict.fromkeys(guard for position in alone for guard in position.guards())
        argument = None
        if one.argument is not None:
            argument = typed_operand(one.argument, schema.attributes, clock=Clock.of(schema))
        window = bind_window(one.window, schema)
        assert window.attribute is not None
        kinds = _types(one, schema)
        made.append(BoundMoving(one.name, one, tuple(guards), argument, *kinds, window.attribute, window.size))
    return tuple(dict.fromkeys(made))


def _stands_still(conjunct: Conjunct) -> bool:
    return not p.moves(conjunct.condition)


def _types(one: MovingAggregate, schema: Schema) -> tuple[pa.DataType, pa.DataType]:
    """The types of what an aggregate goes over, and of its value."""
    window = bind_window(one.window, schema)
    if schema.time is not None and window.attribute != schema.time:
        raise QueryError(
            f"OVER measures the time that orders the stream, which is '{schema.time}', and not '{window.attribute}'",
            span=one.window.span,
            hint=f"leave [{window.attribute}] out, or pass time='{window.attribute}'",
        )
    if one.argument is None:
        return pa.int64(), pa.int64()
    operand = typed_operand(one.argument, schema.attributes, clock=Clock.of(schema))
    kind = type_of_operand(operand, schema.attributes)
    if one.function == "count":
        if one.distinct and not (is_key(kind) or pa.types.is_null(kind)):
            raise QueryError(f"values of {kind} are not told apart: {one.argument}", span=one.span)
        return kind, pa.int64()
    if kind_of(kind) not in ("int", "float") or pa.types.is_uint64(kind):
        raise QueryError(
            f"{one.function} … OVER goes over whole numbers of 64 bits and doubles, and {one.argument} is {kind}",
            span=one.span,
            hint="count goes over all kinds of values",
        )
    whole = kind_of(kind) == "int" and one.function != "avg"
    return kind, pa.int64() if whole else pa.float64()
