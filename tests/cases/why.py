"""Why random queries of CEQL, SASE+ and EQL have no match: what an answer names, judged by the definitions.

Without what it names the query has a match, and without fewer it has none; the rows that it names hold what it says.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from stretto.asking.call import why_not
from stretto.asking.search import Search
from stretto.asking.trying import Events, Trial
from stretto.errors import QueryError
from stretto.explaining.answer import Answer
from stretto.matching.compiled import Query, bound_apart, compile_query
from stretto.query.constraints.model import Chain, Constraint
from stretto.query.constraints.of_query import chains_of
from stretto.query.eql import EqlQuery
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.passes.bind_sase import BoundSase
from tests.cases import ceql, eql, sase, variants
from tests.cases.sase.queries import text_of
from tests.reference.ceql import evaluate
from tests.reference.eql import evaluate_eql
from tests.reference.sase import evaluate_sase

__all__ = ["Case", "case", "check", "check_event"]


#: The only reason of a near miss, where it names events that must not have come.
REMOVABLE = (["negation"], ["contiguity"], ["strategy"], ["until"])


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
    _check_removed(answer, query, one)
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


def _found(
    chain: Chain, steps: int, dropped: Collection[Constraint], query: Query, one: Case, event: int | None = None
) -> bool:
    parsed = chain.relaxed(steps, dropped)
    if parsed is None:
        return False
    if event is not None and not isinstance(parsed, EqlQuery):
        parsed = replace(parsed, limit=None)
    relaxed = bound_apart(parsed, query.bound.schema)
    try:
        relaxed.program(split=True)
    except QueryError:  # no query of the language, so that nothing is found either
        return False
    return any(event is None or event in own for own in matches(relaxed, one.events))


def check_event(one: Case, seed: int = 0) -> bool:
    """Raise an AssertionError unless the answer about an event is right; whether it is in a match."""
    query = compile_query(one.query, one.events.schema, language=one.language, **one.roles)
    size = one.events.num_rows
    try:
        query.program(split=True)
    except QueryError:
        return False
    if not size:
        return False
    event = seed * 7 % size
    answer = why_not(query, one.events, event=event)
    chains = list(chains_of(query.bound.parsed))
    held = any(_found(chain, len(chain.steps), (), query, one, event) for chain in chains)
    told = f"seed {seed}, event {event}: {one!r}\n{answer}"
    if not held:
        assert not answer.matches, told
        assert answer.misses, told
        trial = Trial(Events.of(one.events, query.bound.schema, None, None), event)
        for chain in chains:
            _judge_event(Search(chain, trial), event, query, one, told)
    elif query.bound.parsed.choosers:
        if getattr(query.parsed, "items", None) is None:  # else a match has the events of some variables only
            assert answer.matches == any(event in own for own in matches(query, one.events)), told
        if not answer.matches:
            assert [reason.kind for reason in answer.reasons] == ["choice"], told
    else:
        assert answer.matches, told
    if answer.match is not None:
        assert event in [row for rows in answer.match.values() for row in rows], told
    return answer.matches


def _judge_event(search: Search, event: int, query: Query, one: Case, told: str) -> None:
    """Without a smallest set of constraints there is a match that holds the event."""
    chain = search.chain
    for way in search.ways():
        if way.reached < len(chain.steps):
            following = search.following(way.reached)
            for dropped in (chain.asks(following), ()):
                assert not _found(chain, len(chain.steps), {*dropped, *way.dropped}, query, one, event), told
            continue
        assert _found(chain, way.reached, way.dropped, query, one, event), (told, way)
        for each in way.dropped:
            rest = [other for other in way.dropped if other is not each]
            assert not _found(chain, way.reached, rest, query, one, event), (told, each)


def _check_removed(answer: Answer, query: Query, one: Case) -> None:
    """Where events that came are the only reason of a near miss, the query has a match without them."""
    for miss in answer.misses:
        kinds, rows = [reason.kind for reason in miss.reasons], {*miss.reasons[0].rows}
        held = {row for own in miss.events.values() for row in own}
        needs_another = " ONLY" in one.query  # UNTIL … ONLY asks for an event that ends it, behind
        if kinds in REMOVABLE and rows and not rows & held and not needs_another:
            kept = [at for at in range(one.events.num_rows) if at not in rows]
            assert matches(query, one.events.take(pa.array(kept, pa.int64()))), f"{one!r}\n{answer}"


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
