"""Moving aggregates by their definition: of each event that counts, all those before it are looked at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from stretto.query.evaluate import truth, value
from stretto.query.moving import BoundMoving
from stretto.query.passes.bind import AnyBound

__all__ = ["aggregate", "with_moving"]


def aggregate(function: str, distinct: bool, values: list[Any]) -> Any:
    """What some values are together; NULLs are left out."""
    known = [value for value in values if value is not None]
    if function == "count":
        return len(set(known)) if distinct else len(known)
    if not known:
        return None
    return {"sum": sum, "min": min, "max": max, "avg": lambda some: sum(some) / len(some)}[function](known)


def with_moving(bound: AnyBound, events: pa.Table) -> pa.Table:
    """The events, in the order of the stream, with the values of the moving aggregates of a query."""
    for moving in bound.moving:
        values = [_value(moving, bound, events.to_pylist()[: place + 1]) for place in range(events.num_rows)]
        events = events.append_column(moving.name, pa.array(values, moving.type))
    return events


def _value(moving: BoundMoving, bound: AnyBound, before: list[dict[str, Any]]) -> Any:
    """The value at the last of some events."""
    last = before[-1]
    if not _counts(moving, bound, last):
        return None
    own = [
        event
        for event in before
        if _counts(moving, bound, event)
        and last[moving.time] - event[moving.time] <= moving.size
        and all(event[name] == last[name] for name in bound.partition_by)
    ]
    argument = moving.argument
    values = [1 if argument is None else value(argument, event) for event in own]
    return aggregate(moving.aggregate.function, moving.aggregate.distinct, values)


def _counts(moving: BoundMoving, bound: AnyBound, event: dict[str, Any]) -> bool:
    kind = bound.schema.type or bound.schema.stream
    assert kind is not None
    return all(event[name] is not None for name in bound.partition_by) and any(
        event[kind] == guard.type and all(truth(one, event) is True for one in guard.conditions)
        for guard in moving.guards
    )
