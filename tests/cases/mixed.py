"""All that patterns can say, mixed: CEQL and SASE+ with quantifiers, groups, alternatives, strategies of steps, UNTIL, absence, gaps,
windows inside, functions, RETURN, KEEP and AFTER MATCH.

A matcher, cut and saved anywhere, is held against the reference, besides what the case's own module checks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stretto.events import Schema
from stretto.matching.api.matcher import Matcher
from stretto.matching.compiled import compile_query
from stretto.query.passes.bind_sase import BoundSase
from tests.cases import ceql, keeping, variants
from tests.cases.choices import Seeded
from tests.cases.sase.queries import SaseCase
from tests.reference.ceql import evaluate
from tests.reference.sase import evaluate_sase, returned

__all__ = ["Mixed", "case", "check"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Mixed:
    """A case of another module."""

    own: ceql.Case | keeping.Case | SaseCase

    @property
    def query(self) -> str:
        """The text."""
        return self.own.query.text if isinstance(self.own, SaseCase) else self.own.query

    @property
    def events(self) -> pa.Table:
        """The events, in order."""
        return self.own.events

    @property
    def schema(self) -> Schema:
        """The events' columns and their roles."""
        if isinstance(self.own, ceql.Case):
            return Schema.of(self.own.events, time=self.own.time, stream=self.own.stream)
        return self.own.schema

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.events.to_pylist()))
        return f"{self.query}\n  time={self.schema.time} stream={self.schema.stream}\n  {rows}"


def case(seed: int) -> Mixed:
    """A case from a seed: three of five are SASE+.

    >>> print(case(7).query)  # doctest: +ELLIPSIS
    PATTERN SEQ(...
    """
    draw: Any = Seeded(seed).one_of(
        [variants.case, variants.case, variants.case, ceql.timed_case, keeping.case_of_ceql]
    )
    return Mixed(draw(seed))


def check(one: Mixed, seed: int = 0) -> int:
    """Assert that engines, matcher and reference agree on a case; how many matches it has."""
    own: Any = {ceql.Case: ceql, keeping.Case: keeping, SaseCase: variants}[type(one.own)]
    own.check(one.own, seed)
    choose = random.Random(seed)
    query = compile_query(one.query, one.schema)
    if query.limit is not None:
        return 0  # ties are broken freely, which the case's own module knows
    right = _expected(query.bound, one)
    whole, waited = _fed(query, one, choose, "complete")
    shown = sorted(map(repr, map(_shown, whole + waited, [query.bound] * len(whole + waited))))
    assert shown == sorted(map(repr, right)), f"\n{one!r}\nexpected {right}\nfound    {shown}"
    told, dropped = _fed(query, one, choose, "drop")
    assert not dropped
    assert repr(told) == repr(whole), f"\n{one!r}\ndropped, but at the end\n{told}\n{whole}"
    return len(right)


def _expected(bound: Any, one: Mixed) -> list[Any]:
    """What the definition says of each match: its ends, its positions and what RETURN computes of it."""
    if not isinstance(bound, BoundSase):
        return [(match.start, match.end, sorted(match.positions), []) for match in evaluate(bound, one.events)]
    rows = one.events.to_pylist()
    return [
        (match.start, match.end, sorted(match.positions), list(returned(bound, match, rows).values()))
        for match in evaluate_sase(bound, one.events)
    ]


def _shown(row: Row, bound: Any) -> Any:
    items = (bound.parsed.returns or ()) if isinstance(bound, BoundSase) else ()
    return row["start"], row["end"], row["positions"], [row[item.name] for item in items]


def _fed(query: Any, one: Mixed, choose: random.Random, at_end: str) -> tuple[list[Row], list[Row]]:
    """What a matcher gives of random pieces, and what at the end; it is saved and restored behind some pieces."""
    matcher = Matcher(query, capacity=choose.choice([1, 64]), at_end=at_end)
    rows: list[Row] = []
    low = 0
    while low < one.events.num_rows:
        size = choose.choice([1, 1, 2, 5, 9])
        rows += matcher.push(one.events.slice(low, size)).to_pylist()
        low += size
        if choose.random() < 0.3:
            matcher = Matcher(query, capacity=choose.choice([1, 64]), at_end=at_end).restore(matcher.snapshot())
    return rows, matcher.finish().to_pylist()
