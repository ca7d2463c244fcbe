"""The search for what is in the way of a match: relax the query, step by step, until it has one.

What is dropped is a smallest set: without any of it there is no match. That holds by trying, so that whoever drops what an answer
names from the query gets a match.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from stretto.asking.trying import Found, Trying
from stretto.errors import LimitError, OptionError, QueryError
from stretto.query.constraints.model import AnyParsed, Bounds, Chain, Constraint, Kind
from stretto.query.sase import Selection

#: Constraints that are looked for one by one, after which those of a step are dropped together.
MOST_SINGLES = 64

#: Rounds of a repetition above its bounds that are looked for.
MOST_ROUNDS = 1 << 20

#: Sorts of constraints in the order in which they are tried, where several would do.
_ORDER = {kind: at for at, kind in enumerate(Kind)}


@dataclass(frozen=True)
class Way:
    """What must be dropped for a match to appear.

    ``reached`` is how many steps there are matches of when only this is dropped: all, unless no event comes for the next one.
    """

    dropped: tuple[Constraint, ...]
    reached: int


class Search:
    """The search over one chain of steps."""

    def __init__(self, chain: Chain, trial: Trying) -> None:
        self.chain, self.trial = chain, trial
        self.whole = len(chain.steps)
        self._known: dict[tuple[int, frozenset[Constraint]], Found | None] = {}
        self._unknown: set[tuple[int, frozenset[Constraint]]] = set()
        self._never: dict[Constraint, bool] = {}

    @property
    def abandoned(self) -> bool:
        """Whether a query was not tried to its end."""
        return bool(self._unknown)

    @property
    def doubtful(self) -> bool:
        """Whether the query as it is was not tried to its end."""
        return (self.whole, frozenset[Constraint]()) in self._unknown

    def first(self, steps: int, dropped: Collection[Constraint], *, quick: bool = False) -> Found | None:
        """The first match of some steps without some constraints; ``quick``: it may be given up early, and tried again later."""
        key = steps, frozenset(dropped)
        if key not in self._known or (key in self._unknown and not quick):
            self._unknown.discard(key)
            found, before = None, self.trial.abandoned
            if not dropped or not self._denied(steps, key[1]):
                found = next(self.some(steps, dropped, 1, quick=quick), None)
            if self.trial.abandoned > before:
                self._unknown.add(key)
            self._known[key] = found
        return self._known[key]

    def some(self, steps: int, dropped: Collection[Constraint], each: int, *, quick: bool = False) -> Iterator[Found]:
        """Matches of some steps without some constraints, at most so many of each piece of the events; those with the event, if one
        is asked about."""
        parsed, event = self.chain.relaxed(steps, dropped), self.trial.event
        if parsed is None:
            return
        for one in (parsed,) if event is None else self.trial.having(parsed):
            query = self.compiled(one)
            if query is not None:
                relaxed = steps < self.whole or bool(dropped)
                yield from self.trial.some(query, each, quick=quick, event=event, relaxed=relaxed)

    def before(self, steps: int) -> bool:
        """Whether events that could be some first steps, if nothing else is asked, come before the event that is asked about."""
        query, event = self.query(steps, self.chain.asks(steps)), self.trial.event
        found = None if query is None else next(self.trial.some(query, 1, quick=True), None)
        return found is not None and event is not None and found.end < event

    def _has_match(self, steps: int, dropped: Collection[Constraint]) -> bool:
        """Whether some steps without some constraints have a match; what was given up early is tried again, with more time."""
        if self.first(steps, dropped, quick=True) is None and (steps, frozenset(dropped)) in self._unknown:
            return self.first(steps, dropped) is not None
        return self.first(steps, dropped, quick=True) is not None

    def _denied(self, steps: int, dropped: frozenset[Constraint]) -> bool:
        """Whether some steps ask a condition, beside those that are dropped, that no event fulfils."""
        return any(one not in dropped and self._is_never(one) for one in self.chain.asks(steps))

    def _is_never(self, one: Constraint) -> bool:
        """Whether no event fulfils a condition, whatever else is asked: it is in the way by itself."""
        if one not in self._never:
            query, before = self.compiled(self.chain.only(one)), self.trial.abandoned
            found = query is None or next(self.trial.some(query, 1, quick=True), None) is not None
            self._never[one] = not found and self.trial.abandoned == before
        return self._never[one]

    def query(self, steps: int, dropped: Collection[Constraint]) -> Any:
        """The query of the first so many steps without some constraints; ``None``: that is no query."""
        return self.compiled(self.chain.relaxed(steps, dropped))

    def compiled(self, parsed: AnyParsed | None) -> Any:
        """A query over the events; ``None``: it is none that runs."""
        try:
            return None if parsed is None else self.trial.compiled(parsed)
        except (QueryError, OptionError, LimitError):
            return None

    def matches(self) -> bool:
        """Whether the query has a match as it is."""
        return self.first(self.whole, ()) is not None

    def ways(self) -> list[Way]:
        """The smallest sets that are found: several of one constraint each, or one of more.

        None: no step may hold the event that is asked about.
        """
        dropped: list[Constraint] = []
        reached = self._begin()
        if reached == self.whole:
            return []
        stopped: Way | None = None
        while True:
            reached = self._furthest(reached, dropped)
            if reached == self.whole:
                return [Way(self._smallest(dropped), reached)]
            step = self.following(reached)
            if self.trial.event is None:
                weakest = [*dropped, *self._candidates(step, reached, dropped)]
                if self.first(step, weakest, quick=True) is None and (step, frozenset(weakest)) not in self._unknown:
                    return [Way(tuple(dropped), reached)]
            singles = self._singles(step, reached, dropped)
            if singles:
                whole = [one for one in singles if step == self.whole or self.first(self.whole, [*dropped, one])]
                if whole and not dropped:
                    return [Way((one,), self.whole) for one in whole]
                dropped.append((whole or singles)[0])
                continue
            together = self._together(step, reached, dropped)
            if together is None:
                stopped = stopped or Way(tuple(dropped), reached)
                if self.trial.event is None or step == self.whole:
                    return [stopped]
                reached = step  # a later step may hold the event as well
            else:
                dropped = together

    def _begin(self) -> int:
        """How many steps come before that which may hold the event that is asked about: none, where any events will do.

        All steps: none may hold it.
        """
        if self.trial.event is None or self.matches():
            return 0
        reached = 0
        while reached < self.whole:
            following = self.following(reached)
            every = self.chain.asks(following)
            # Where a strategy takes the next event that will do, more may do for less: what is asked may lead to the event.
            for dropped in (every, (), self._around(following, every), *([one] for one in every[:MOST_SINGLES])):
                if self.first(following, dropped, quick=True) or (following, frozenset(dropped)) in self._unknown:
                    return reached
            reached = following
        return self.whole

    def following(self, reached: int) -> int:
        """The next number of steps that is a query by itself."""
        for steps in range(reached + 1, self.whole):
            if self.query(steps, ()) is not None:
                return steps
        return self.whole

    def _furthest(self, reached: int, dropped: list[Constraint]) -> int:
        """How many steps have a match."""
        if self.first(self.whole, dropped) is not None:
            return self.whole
        while (following := self.following(reached)) < self.whole:
            if self.first(following, dropped) is None:
                break
            reached = following
        return reached

    def _candidates(self, step: int, reached: int, dropped: Collection[Constraint]) -> Iterator[Constraint]:
        """What the steps up to one ask, that which its own step adds first."""
        before = set(self.chain.asks(reached)) if reached else set()
        there = [one for one in self.chain.asks(step) if one not in dropped]
        yield from sorted(there, key=lambda one: (one in before, _ORDER[one.kind]))

    def _singles(self, step: int, reached: int, dropped: list[Constraint]) -> list[Constraint]:
        """The constraints each of which alone is in the way of the next step."""
        every = list(self._candidates(step, reached, dropped))[:MOST_SINGLES]
        # Strategies that skip are in the way last: without them a query may have many more partial matches.
        skipping = [one for one in every if one.what is Selection.NEXT]
        for tried in ([one for one in every if one not in skipping], skipping):
            for quick in (True, False):
                found = [one for one in tried if self.first(step, [*dropped, one], quick=quick) is not None]
                if found:
                    return found
        return []

    def _together(self, step: int, reached: int, dropped: list[Constraint]) -> list[Constraint] | None:
        """Constraints that are in the way together, as few as are needed; ``None``: none are, the events are not there."""
        every = list(self._candidates(step, reached, dropped))
        before = set(self.chain.asks(reached)) if reached else set()
        own = [one for one in every if one not in before]
        rest = self._around(step, every) if self.trial.event is not None else []
        for tried in (own, every, rest):
            if tried and self.first(step, [*dropped, *tried]) is not None:
                return [*dropped, *self._needed(step, dropped, tried)]
        return None

    def _around(self, step: int, every: Collection[Constraint]) -> list[Constraint]:
        """Of some constraints those that are not about the events of a step: without what these are asked, EQL and
        ``skip_till_next_match`` may take another event before, and so never the one that is asked about."""
        own = self.chain.steps[step - 1].variables
        return [one for one in every if one.kind is not Kind.CONDITION or set(own).isdisjoint(one.variables)]

    def nearest(self, way: Way) -> tuple[Constraint, ...]:
        """What a way drops, with what is left of its counts: so much that there still are matches, which miss them by least."""
        dropped = list(way.dropped)
        for at, one in enumerate(dropped):
            if one.bounds is None:
                continue

            def matches(left: Bounds, at: int = at, one: Constraint = one) -> bool:
                tried = [*dropped[:at], replace(one, left=left), *dropped[at + 1 :]]
                return self._has_match(way.reached, tried)

            dropped[at] = replace(one, left=_nearest(one.bounds, matches))
        return tuple(dropped)

    def _needed(self, step: int, dropped: list[Constraint], tried: list[Constraint]) -> list[Constraint]:
        """Those of some constraints that cannot be taken back; what could stand for several is taken back last."""
        kept = list(tried)
        for one in reversed(tried):
            rest = [other for other in kept if other is not one]
            if self.first(step, [*dropped, *rest]) is not None:
                kept = rest
        return kept

    def _smallest(self, dropped: list[Constraint]) -> tuple[Constraint, ...]:
        """A set of which nothing can be taken back. EQL takes other events where more are there, so that it is tried again."""
        kept = self._needed(self.whole, [], dropped)
        while kept != dropped:
            dropped, kept = kept, self._needed(self.whole, [], kept)
        return tuple(kept)


def _nearest(bounds: Bounds, matches: Callable[[Bounds], bool]) -> Bounds:
    """The bounds nearest to given ones that have matches, where these have none, and ``(1, None)`` has some.

    >>> _nearest((5, None), lambda bounds: bounds[0] <= 3)
    (3, None)
    """
    least, most = bounds
    if most is None or not matches((least, None)):  # there are too few
        return _last(1, least, lambda fewer: matches((fewer, None))), None
    fewer, far = _last(0, least, lambda fewer: matches((fewer, least - 1))), 1
    nearest = least - fewer if fewer else MOST_ROUNDS
    while far < nearest and not matches((least, most + far)):
        far *= 2
    if fewer and nearest <= far // 2:
        return fewer, least - 1
    more = far - _last(0, far - far // 2, lambda less: matches((least, most + far - less)))
    return (fewer, least - 1) if nearest <= more else (least, most + more)


def _last(first: int, end: int, holds: Callable[[int], bool]) -> int:
    """The last number from ``first`` to before ``end`` of which something holds, which holds of none behind one that it does not.

    >>> _last(1, 100, lambda number: number < 8)
    7
    """
    while end - first > 1:
        middle = (first + end) // 2
        first, end = (middle, end) if holds(middle) else (first, middle)
    return first
