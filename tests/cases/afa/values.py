"""AFAs for tests, written as values in a short way, without the builder that users call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, Emit, Fence, Kind, Transfer, UserFunction
from stretto.query.typing import typed, typed_operand
from tests.cases.sase.queries import condition, operand

__all__ = ["ArcText", "automaton", "fence", "transfer"]

#: Id, source, target, fence, transfers by field, kind.
ArcText = tuple[str, str, str, str | UserFunction | None, Mapping[str, str] | UserFunction | None, Kind]


def fence(text: str | UserFunction | None, scope: Mapping[str, pa.DataType]) -> Fence:
    """A fence over ``e.`` and ``r.`` names.

    >>> print(fence("e.v > r.n + 1", {"e.v": pa.int64(), "r.n": pa.int64()}))
    `e.v` > (`r.n` + 1)
    """
    return typed(condition(text), scope) if isinstance(text, str) else text


def transfer(
    texts: Mapping[str, str] | UserFunction | None, register: Iterable[str], scope: Mapping[str, pa.DataType]
) -> Transfer:
    """A transfer; fields that are not named keep their value."""
    if not isinstance(texts, Mapping):
        return texts
    return tuple(
        typed_operand(operand(texts[name]), scope) if name in texts else p.Attribute(f"r.{name}") for name in register
    )


def automaton(
    events: Mapping[str, pa.DataType],
    register: Mapping[str, tuple[pa.DataType, Any]],
    arcs: Iterable[tuple[Any, ...]],
    finals: Mapping[str, Emit] | Iterable[str],
    *,
    start: str = "q0",
    window: int | None = None,
    partition_by: tuple[str, ...] = (),
) -> Afa:
    """An AFA; an arc is its source, target, fence, transfers and kind (the last three may be left out), its id a0, a1, …

    >>> one = automaton({"v": pa.int64()}, {"n": (pa.int64(), 0)}, [("q0", "q1", "e.v > 1", {"n": "r.n + e.v"})], ["q1"])
    >>> print(one.arcs[0].id, one.arcs[0].when, one.arcs[0].then[0])
    a0 `e.v` > 1 (`r.n` + `e.v`)
    """
    if not isinstance(finals, Mapping):
        finals = dict.fromkeys(finals, Emit.EVERY)
    types = {name: kind for name, (kind, _) in register.items()}
    made = Afa(
        events=dict(events),
        register=types,
        initial=tuple(first for _, first in register.values()),
        start=start,
        finals=dict(finals),
        window=window,
        partition_by=partition_by,
    )
    for i, (source, target, *rest) in enumerate(arcs):
        when, then, kind = [*rest, *[None, None, Kind.CONSUME][len(rest) :]]
        made = made.with_arc(
            Arc(
                f"a{i}",
                source,
                target,
                fence(when, made.scope),
                transfer(then, types, made.scope),
                kind or Kind.CONSUME,
            )
        )
    return made
