"""What an automaton asks, and the automaton without some of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, Emit, UserFunction, leading
from stretto.query.afa import Kind as Sort
from stretto.query.constraints.model import Constraint, Kind, Step, span_of

#: Final states of which each is asked by itself.
MOST_FINALS = 8


@dataclass(frozen=True)
class AfaChain:
    """An automaton as the states on a shortest way to some final states, one for each event on it.

    A step is asked by the fences of all arcs that may lead to its state: also loops, and arcs that ignore events.
    """

    parsed: Afa

    @classmethod
    def of(cls, afa: Afa) -> Iterator[AfaChain]:
        """The automaton, or for each final state the automaton that ends there."""
        if len(afa.finals) > MOST_FINALS:
            yield cls(afa)
            return
        for state, emit in afa.finals.items():
            one = cls(replace(afa, finals={state: emit}))
            if one._way:
                yield one

    @cached_property
    def _way(self) -> tuple[Arc, ...]:
        """The arcs that take events on a shortest way to a final state."""
        begin = self.parsed.start, False
        before: dict[tuple[str, bool], tuple[tuple[str, bool], Arc]] = {}
        waiting = [begin]
        while waiting:
            at = waiting.pop(0)
            if at[1] and at[0] in self.parsed.finals:
                found = []
                while at in before:
                    at, arc = before[at]
                    found.append(arc)
                return tuple(arc for arc in reversed(found) if arc.kind is not Sort.EPSILON)
            for arc in self.parsed.arcs:
                after = arc.target, at[1] or arc.kind is not Sort.EPSILON
                if arc.source == at[0] and after not in before and after != begin:
                    before[after] = at, arc
                    waiting.append(after)
        return ()

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps that hold events, in order."""
        return tuple(Step(named(arc), (arc.target,), ()) for arc in self._way)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints: parts of fences by arc, then keys and the window."""
        afa, found = self.parsed, list[Constraint]()
        for arc in afa.arcs:
            parts = [arc.when] if isinstance(arc.when, UserFunction) else p.conjuncts(arc.when)
            for number, part in enumerate(parts):
                span = None if isinstance(part, UserFunction) else span_of(part)
                text = f"{part} of {named(arc)}"
                found.append(
                    Constraint(Kind.CONDITION, text, (arc.target,), span, (arc.id, part), ("arc", arc.id, number))
                )
        for name in afa.partition_by:
            found.append(Constraint(Kind.KEY, f"partition_by {name}", (), None, name, ("key", name)))
        if afa.window is not None:
            found.append(Constraint(Kind.WINDOW, f"window={afa.window}", (), None, afa.window, ("window",)))
        return tuple(found)

    def asks(self, steps: int) -> tuple[Constraint, ...]:
        """The constraints that the first so many steps ask."""
        ends = self.parsed.finals if steps == len(self.steps) else [self._way[steps - 1].target]
        there = leading(self.parsed, [*ends])
        arcs = {arc.id for arc in self.parsed.arcs if arc.target in there}
        return tuple(one for one in self.constraints if one.place[0] != "arc" or one.place[1] in arcs)

    def relaxed(self, steps: int, dropped: Collection[Constraint]) -> Afa:
        """The automaton of the first so many steps without some constraints."""
        places, afa = {one.place for one in dropped}, self.parsed
        finals = afa.finals if steps == len(self.steps) else {self._way[steps - 1].target: Emit.EVERY}
        return replace(
            afa,
            finals=finals,
            arcs=tuple(_without(arc, places) for arc in afa.arcs),
            window=None if ("window",) in places else afa.window,
            partition_by=tuple(name for name in afa.partition_by if ("key", name) not in places),
        )

    def alone(self, step: int) -> None:
        """There is no automaton of a step by itself: its register comes from those before."""

    def only(self, one: Constraint) -> None:
        """There is no automaton of a fence by itself."""


def named(arc: Arc) -> str:
    """An arc in a few words."""
    return f"the arc {arc.id} ({arc.source} -> {arc.target})"


def _without(arc: Arc, places: Collection[tuple[object, ...]]) -> Arc:
    if isinstance(arc.when, UserFunction):
        return replace(arc, when=None) if ("arc", arc.id, 0) in places else arc
    kept: list[p.Predicate] = [
        part for number, part in enumerate(p.conjuncts(arc.when)) if ("arc", arc.id, number) not in places
    ]
    return replace(arc, when=p.joined(kept))
