"""From the search to the answer: the near misses of each way to a match, and the nearest of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol

from stretto.asking.evidence import Evidence
from stretto.asking.search import Search, Way
from stretto.asking.trying import WHOLE, WHOLE_SECONDS, Found
from stretto.explaining.answer import Answer, NearMiss, Reason, nearest_first
from stretto.query.constraints.model import Chain, Constraint, Step, by_step

#: Ways to a match of which events are looked at, near misses of all of them that are looked at, and of each piece of the stream.
MOST_WAYS, LOOKED_AT, EACH = 8, 256, 8


_NOT_KNOWN = "Whether a match holds the row is not known: there are too many partial matches to look at them all."
_LEFT_OUT = (
    f"Not all queries without a constraint were looked at: they may take {WHOLE} times as long as the query and {WHOLE_SECONDS:g} "
    "seconds of the processor together. Fewer events take less: key=, between="
)


class Witness(Protocol):
    """Who looks at near matches of one query."""

    def row(self, at: int) -> int:
        """The row of the input at a position of the stream."""

    def read(self, matches: Sequence[Found]) -> None:
        """Read the events of some matches at once."""

    def kind(self, at: int) -> str | None:
        """The type of the event at a position of the stream; ``None``: nothing tells it."""

    def times(self, found: Found) -> tuple[Any, Any] | None:
        """When a match begins and ends; ``None``: no time is known."""

    def waiting(self, step: Step, earliest: Found | None) -> str:
        """Why no event comes for a step; ``earliest`` is the first match of the steps before."""

    def says(self, one: Constraint, found: Found) -> Evidence:
        """What of a near match breaks a constraint."""


def answered(
    text: str,
    size: int,
    searches: Sequence[Search],
    witness: Witness,
    most: int,
    noun: str = "event",
    choosing: Sequence[tuple[str, Any]] = (),
) -> Answer:
    """The answer for a query of some chains of steps over so many events.

    ``choosing``: what of the query chooses among its matches, one after the other, and the query with that; it matters to a given
    event.
    """
    event = None if not searches or searches[0].trial.event is None else witness.row(searches[0].trial.event)
    answer = partial(Answer, text, size, noun=noun, event=event)
    for search in searches:
        found = search.first(search.whole, ())
        if found is None:
            continue
        held, times = _held(search.chain, found, witness), witness.times(found)
        for words, query in choosing if event is not None else ():
            chosen = next(search.trial.some(query, 1, event=search.trial.event, relaxed=False), None)
            if chosen is None and search.trial.abandoned:
                return answer(notes=(_NOT_KNOWN,))
            if chosen is None:
                return answer(misses=(NearMiss((Reason("choice", words, "other matches are chosen"),), held, times),))
            found = chosen
        return answer(match=_held(search.chain, found, witness))
    misses = [miss for search in searches for miss in _misses(search, witness, most)]
    there = [miss for miss in misses if all(one.kind != "absent" for one in miss.reasons)]
    notes: tuple[str, ...] = ()
    if event is not None and any(search.doubtful for search in searches):
        notes = (_NOT_KNOWN,)
    elif any(search.trial.left_out for search in searches):
        notes = (_LEFT_OUT,)
    elif any(search.abandoned for search in searches):
        notes = ("Some queries without a constraint had too many partial matches, and were not tried to their end.",)
    return answer(misses=nearest_first(there or misses, most), notes=notes)


def _held(chain: Chain, found: Found, witness: Witness) -> dict[str, tuple[int, ...]]:
    """The rows of each variable, in the order of the steps; of several names of the same events the outermost one."""
    # A query that selects variables may name none that stands inside of the steps.
    held = by_step(chain.steps, found.held) or found.held
    return {name: tuple(map(witness.row, own)) for name, own in held.items()}


def _misses(search: Search, witness: Witness, most: int) -> Iterator[NearMiss]:
    """The near misses of one chain of steps."""
    if (reason := _of_no_type(search, witness)) is not None:
        yield NearMiss((reason,), {})
        return
    before = search.trial.left_out
    ways = search.ways()[:MOST_WAYS]
    known = search.trial.left_out == before  # else nothing is told of what was not looked at
    if not ways and known:
        yield NearMiss((_unfit(search, witness),), {})
    for way in ways:
        if way.reached < search.whole:
            if known:
                yield _waiting(search, way, witness)
            continue
        looked_at = list(islice(search.some(way.reached, search.nearest(way), EACH), LOOKED_AT // len(ways)))
        witness.read(looked_at)
        yield from nearest_first([_miss(search, way, one, witness) for one in looked_at], most)


def _miss(search: Search, way: Way, found: Found, witness: Witness, more: tuple[Reason, ...] = ()) -> NearMiss:
    reasons, excess = list[Reason](), 0.0
    for one in way.dropped:
        said = witness.says(one, found)
        excess += said.excess
        reasons.append(Reason(str(one.kind), one.text, said.text, said.rows, said.values, one.variables, one.span))
    return NearMiss((*reasons, *more), _held(search.chain, found, witness), witness.times(found), excess)


def _takes(search: Search, witness: Witness) -> list[int]:
    """The steps that may hold the event that is asked about, by its type."""
    kind = witness.kind(search.trial.event or 0)
    return [at for at, step in enumerate(search.chain.steps) if not step.types or kind in step.types]


def _of_no_type(search: Search, witness: Witness) -> Reason | None:
    """No step takes events of the type of that which is asked about."""
    event = search.trial.event
    if event is None or _takes(search, witness):
        return None
    row, kind = witness.row(event), witness.kind(event)
    return Reason("type", f"row {row}", f"no step takes an event of type {kind!r}", (row,))


def _unfit(search: Search, witness: Witness) -> Reason:
    """Why no step may hold the event that is asked about, whatever else is asked."""
    event, steps = search.trial.event, search.chain.steps
    assert event is not None
    row = witness.row(event)
    for reached in range(1, _takes(search, witness)[0] + 1):
        if not search.before(reached):
            step = steps[reached - 1]
            return Reason("absent", step.text, f"none comes before row {row}", variables=step.variables)
    return Reason("absent", steps[-1].text, f"none comes with row {row}", variables=steps[-1].variables)


def _waiting(search: Search, way: Way, witness: Witness) -> NearMiss:
    """A chain that ends before a step for which no event comes."""
    chain = search.chain
    step = chain.steps[search.following(way.reached) - 1]
    every = chain.asks(way.reached) if way.reached else ()
    earliest = search.first(way.reached, every) if way.reached else None
    reason = Reason("absent", step.text, witness.waiting(step, earliest), variables=step.variables)
    found = search.first(way.reached, search.nearest(way)) if way.reached else None
    if found is None:
        return NearMiss((reason,), {}, None, 1e9)
    miss = _miss(search, way, found, witness, (reason,))
    return NearMiss(miss.reasons, miss.events, miss.times, 1e9 - way.reached)
