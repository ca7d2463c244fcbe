"""From the search to the answer: the near misses of each way to a match, and the nearest of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from stretto.asking.answer import Answer, NearMiss, Reason, nearest_first
from stretto.asking.constraints import Chain, Constraint, Step
from stretto.asking.evidence import Evidence
from stretto.asking.search import Search, Way
from stretto.asking.trying import Found

#: Ways to a match of which events are looked at, near misses of all of them that are looked at, and of each piece of the stream.
MOST_WAYS, LOOKED_AT, EACH = 8, 256, 8


class Witness(Protocol):
    """Who looks at near matches of one query."""

    def row(self, at: int) -> int:
        """The row of the input at a position of the stream."""

    def read(self, matches: Sequence[Found]) -> None:
        """Read the events of some matches at once."""

    def times(self, found: Found) -> tuple[Any, Any] | None:
        """When a match begins and ends; ``None``: no time is known."""

    def waiting(self, step: Step, earliest: Found | None) -> str:
        """Why no event comes for a step; ``earliest`` is the first match of the steps before."""

    def says(self, one: Constraint, found: Found) -> Evidence:
        """What of a near match breaks a constraint."""


def answered(
    text: str, size: int, searches: Sequence[Search], witness: Witness, most: int, noun: str = "event"
) -> Answer:
    """The answer for a query of some chains of steps over so many events."""
    for search in searches:
        found = search.first(search.whole, ())
        if found is not None:
            return Answer(text, size, match=_held(search.chain, found, witness), noun=noun)
    misses = [miss for search in searches for miss in _misses(search, witness, most)]
    there = [miss for miss in misses if all(one.kind != "absent" for one in miss.reasons)]
    notes: tuple[str, ...] = ()
    if any(search.abandoned for search in searches):
        notes = ("Some queries without a constraint had too many partial matches, and were not tried to their end.",)
    return Answer(text, size, nearest_first(there or misses, most), notes=notes, noun=noun)


def _held(chain: Chain, found: Found, witness: Witness) -> dict[str, tuple[int, ...]]:
    """The rows of each variable, in the order of the steps; of several names of the same events the outermost one."""
    held: dict[str, tuple[int, ...]] = {}
    for step in chain.steps:
        seen: dict[tuple[int, ...], str] = {}
        for name in step.variables:
            if found.held.get(name):
                seen.setdefault(found.held[name], name)
        held |= {name: tuple(map(witness.row, own)) for own, name in seen.items()}
    return held


def _misses(search: Search, witness: Witness, most: int) -> Iterator[NearMiss]:
    """The near misses of one chain of steps."""
    ways = search.ways()[:MOST_WAYS]
    for way in ways:
        if way.reached < search.whole:
            yield _waiting(search, way, witness)
            continue
        query = search.query(way.reached, way.dropped)
        assert query is not None
        looked_at = list(islice(search.trial.some(query, EACH), LOOKED_AT // len(ways)))
        witness.read(looked_at)
        yield from nearest_first([_miss(search, way, one, witness) for one in looked_at], most)


def _miss(search: Search, way: Way, found: Found, witness: Witness, more: tuple[Reason, ...] = ()) -> NearMiss:
    reasons, excess = list[Reason](), 0.0
    for one in way.dropped:
        said = witness.says(one, found)
        excess += said.excess
        reasons.append(Reason(str(one.kind), one.text, said.text, said.rows, said.values, one.variables, one.span))
    return NearMiss((*reasons, *more), _held(search.chain, found, witness), witness.times(found), excess)


def _waiting(search: Search, way: Way, witness: Witness) -> NearMiss:
    """A chain that ends before a step for which no event comes."""
    chain = search.chain
    step = chain.steps[search.following(way.reached) - 1]
    every = chain.asks(way.reached) if way.reached else ()
    earliest = search.first(way.reached, every) if way.reached else None
    reason = Reason("absent", step.text, witness.waiting(step, earliest), variables=step.variables)
    found = search.first(way.reached, way.dropped) if way.reached else None
    if found is None:
        return NearMiss((reason,), {}, None, 1e9)
    miss = _miss(search, way, found, witness, (reason,))
    return NearMiss(miss.reasons, miss.events, miss.times, 1e9 - way.reached)
