"""Why random queries of CEQL, SASE+ and EQL have no match: what an answer names, judged by the definitions.

Without what it names the query has a match, and without fewer it has none; the rows that it names hold what it says.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from stretto.asking.answer import Answer
from stretto.asking.call import chains_of, why_not
from stretto.asking.constraints import Chain, Constraint
from stretto.asking.search import Search
from stretto.asking.trying import Events, Trial
from stretto.errors import QueryError
from stretto.matching.compiled import Query, bound_apart, compile_query
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.passes.bind_sase import BoundSase
from stretto.reference.ceql import evaluate
from stretto.reference.eql import evaluate_eql
from stretto.reference.sase import evaluate_sase
from tests.cases import ceql, eql, sase, variants
from tests.cases.sase.queries import text_of

__all__ = ["Case", "case", "check"]


@dataclass(frozen=True)
class Case:
    """A query's text, its language, events in their order, and the roles of columns."""

    query: str
    language: str
    events: pa.Table
    roles: dict[str, Any]

    def __repr__(self) -> str:
        rows = "\n  ".join(map(str, self.events.to_pylist()))
        return f"{self.query}\n  {self.language} {self.roles}\n  {rows}"


def case(seed: int) -> Case:
    """A case from a seed.

    >>> case(2).language
    'sase'
    """
    which, number = seed % 5, seed // 5
    if which in (0, 1):
        own = (ceql.timed_case if which else ceql.case)(number)
        return Case(own.query, "ceql", own.events, {"time": own.time, "stream": own.stream})
    if which in (2, 3):
        one = (variants.case if which == 3 else sase.case)(number)
        return Case(text_of(one.query), "sase", one.events, {"time": one.schema.time, "type": one.schema.type})
    found = eql.case(number)
    return Case(found.query, "eql", found.events.cast(eql.SCHEMA), {"time": "t", "time_unit": "s"})


def matches(query: Query, events: pa.Table) -> list[tuple[int, ...]]:
    """The positions of all matches, by the definition."""
    bound = query.bound
    if isinstance(bound, BoundEql):
        return [one.positions for one in evaluate_eql(bound, events)]
    if isinstance(bound, BoundSase):
        return [tuple(sorted(one.positions)) for one in evaluate_sase(bound, events)]
    assert isinstance(bound, BoundQuery)
    return [tuple(sorted(one.positions)) for one in evaluate(bound, events)]


def check(one: Case, seed: int = 0) -> int:
    """Raise an AssertionError unless the answer is right; how many reasons the nearest miss has."""
    query = compile_query(one.query, one.events.schema, language=one.language, **one.roles)
    try:
        query.program(split=True)
    except QueryError as error:
        with pytest.raises(QueryError, match=re.escape(error.message)):
            why_not(query, one.events)
        return 0
    answer = why_not(query, one.events)
    there = matches(query, one.events)
    assert answer.matches == bool(there), (one, str(answer), there)
    assert answer.near_misses.num_rows >= len(answer.misses)
    if there:
        return 0
    assert answer.misses, one
    trial = Trial(Events.of(one.events, query.bound.schema, None, None))
    chains = [Search(chain, trial) for chain in chains_of(query.bound.parsed)]
    for search in chains:
        for way in search.ways():
            _judge(search, way.reached, way.dropped, query, one)
    _check_rows(answer, one)
    return len(answer.reasons)


def _judge(search: Search, reached: int, dropped: tuple[Constraint, ...], query: Query, one: Case) -> None:
    """A smallest set of constraints without which there is a match, or a step for which no event comes."""
    chain = search.chain
    told = f"{one!r}\nreached {reached} of {len(chain.steps)}, dropped {[str(each.text) for each in dropped]}"
    if reached < len(chain.steps):
        step = search.following(reached)
        assert not _found(chain, step, {*chain.asks(step), *dropped}, query, one), told
        assert not reached or _found(chain, reached, dropped, query, one), told
        return
    assert dropped, told
    assert _found(chain, reached, dropped, query, one), told
    for each in dropped:
        assert not _found(chain, reached, [other for other in dropped if other is not each], query, one), (told, each)


def _found(chain: Chain, steps: int, dropped: Collection[Constraint], query: Query, one: Case) -> bool:
    parsed = chain.relaxed(steps, dropped)
    if parsed is None:
        return False
    relaxed = bound_apart(parsed, query.bound.schema)
    try:
        relaxed.program(split=True)
    except QueryError:  # no query of the language, so that nothing is found either
        return False
    return bool(matches(relaxed, one.events))


def _check_rows(answer: Answer, one: Case) -> None:
    """The rows that an answer names are there, and hold the values that it tells of conditions on one event."""
    rows = one.events.to_pylist()
    for miss in answer.misses:
        for held in miss.events.values():
            assert set(held) <= set(range(len(rows))), one
        for reason in miss.reasons:
            assert set(reason.rows) <= set(range(len(rows))), one
            if reason.kind == "condition" and one.language != "sase" and len(reason.rows) == 1:
                assert repr(dict(reason.values)) == repr(
                    {name: rows[reason.rows[0]].get(name) for name, _ in reason.values}
                ), one
