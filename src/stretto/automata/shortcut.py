"""SASE+ queries that need no registers: the same query for the automata of CORE, which take constant time for an event.

Where each condition touches one event alone, and events are related by the equivalence tests only, a match is what CEQL calls a
valuation: which variable holds which event. Neither paper has this; it makes ``skip_till_any_match`` cheap, whose runs are
exponentially many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import NamedTuple, overload

from stretto.automata.nfab import MODES, Edge, Nfab, build, own_index
from stretto.query.algebra import As, Atom, Filter, Not, Or, Pattern, Plus, Project, Repeat, Sequence
from stretto.query.eql import Mode
from stretto.query.passes import rewrite
from stretto.query.passes.bind import AnyBound, BoundQuery
from stretto.query.passes.bind_eql import BoundEql
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.plain import plain
from stretto.query.query import ParsedQuery, Strategy
from stretto.query.sase import (
    Component,
    Group,
    Part,
    Selection,
    counting,
    may_lack,
    optional,
)

#: Before each variable: in CEQL's formulas a type is a variable, too, and SASE+ may give a variable the name of a type.
OWN = "\0"

#: Why EQL does not run on the engines of other languages.
NO_EQL = "it selects events as its own language does, where each partial match goes on by itself"

#: A pattern that has more events when it is counted out keeps its runs, which count.
MOST_EVENTS = 500


def why_not(nfab: Nfab) -> str:
    """Why a query needs runs with registers, in words; empty when it does not."""
    parsed = nfab.query.parsed
    related = [one for edge in nfab.edges for one in (*edge.related, *(each for _, each in edge.each))]
    counts = counting(parsed.positive, 1)
    related = [one for one in related if one not in counts]
    if related:
        return f"a condition relates events: {related[0]}"
    if nfab.query.partition_by and not nfab.partitioned:
        return f"under {parsed.selection} the equivalence test relates neighbours in the whole stream"
    if Selection.NEXT in _asked(nfab):
        return f"{Selection.NEXT} selects the next event that fits, whatever comes later"
    at_ends = [one.component for one in nfab.negations if one.left < 0 or one.right == len(nfab.pairs)]
    if at_ends:
        return f"{at_ends[0]} looks for events before the first one of a match, or behind the last"
    if parsed.non_overlap:
        return "OUTPUT non_overlap forgets runs after a match"
    if nfab.endings:
        return f"UNTIL ({nfab.endings[0].component}) looks for events that are in no match"
    if nfab.query.schema.stream is not None:
        return "events of several streams are told apart by types only"
    return _Formula(nfab).why_not()


def as_core(nfab: Nfab) -> BoundQuery:
    """Write the same query for the tECS engine, where :func:`why_not` has no objection: its valuations are the matches."""
    query = nfab.query
    variables = frozenset(OWN + pair.component.variable for pair in nfab.pairs)
    rewritten = rewrite(Project(_Formula(nfab).whole(), variables))
    parsed = ParsedQuery(
        text=query.parsed.text,
        strategy=Strategy.ALL,
        items=None,
        streams=query.parsed.streams,
        pattern=rewritten,
        partition_by=query.partition_by,
        implied=query.parsed.implied,
        window=query.parsed.window,
        limit=query.parsed.limit,
        language="sase",
        moving=tuple(
            replace(one, variable=OWN + one.variable, shown=one.shown or one.variable) for one in query.parsed.moving
        ),
    )
    return BoundQuery(parsed, query.schema, query.window, query.time, rewritten, query.selected)


def of_one_event(query: BoundEql) -> BoundQuery:
    """Write an EQL query of single events of a category for the tECS engine, on events of one stream."""
    (step,) = query.parsed.stages
    assert step.category is not None
    name = OWN + step.variable
    rewritten = rewrite(Project(Filter(As(Atom(step.category), name), name, query.conditions[0]), frozenset({name})))
    parsed = ParsedQuery(query.parsed.text, Strategy.ALL, None, query.parsed.streams, rewritten, language="sase")
    return BoundQuery(parsed, query.schema, None, query.time, rewritten, query.selected)


def why_not_event(query: BoundEql) -> str:
    """Why an EQL query is not one of single events that tECS finds, in words; empty when it is."""
    if query.parsed.mode is not Mode.EVENT:
        return NO_EQL
    if query.parsed.stages[0].category is None:
        return "it tells events by their types, and this query takes every category"
    return "" if query.schema.stream is None else "events of several streams are told apart by types only"


class Core(NamedTuple):
    """A query as the automata of CORE run it, ``None`` with the reason where they do not."""

    query: BoundQuery | None
    why_not: str = ""


def core_of(query: AnyBound) -> Core:
    """Write a query without gaps for the automata of CORE."""
    match query:
        case BoundSase():
            nfab = build(query)
            why = why_not(nfab)
            return Core(None, why) if why else Core(as_core(nfab))
        case BoundEql():
            why = why_not_event(query)
            return Core(None, why) if why else Core(of_one_event(query))
        case BoundQuery():
            return Core(query)
    raise AssertionError(query)


def _asked(nfab: Nfab) -> set[Selection]:
    """The strategies under which events are selected that are not the first of a match."""
    if nfab.query.parsed.plain:
        return {nfab.selection}
    places = nfab.places
    steps = {nfab.step(places.component[step.place]) for steps in places.follow for step in steps}
    return steps | {nfab.loop(at) for at, pair in enumerate(nfab.pairs) if pair.component.kleene}


class _Formula:
    """A pattern as a formula of CEQL.

    The first event of a variable asks for what its begin edge asks, later ones for what its take edge does. Where these differ in a
    group that repeats, the first round is a formula of its own, in which the variable must be.
    """

    def __init__(self, nfab: Nfab) -> None:
        self.nfab = nfab
        self.parts = nfab.query.parsed.parts
        self.number = {pair.component.variable: at for at, pair in enumerate(nfab.pairs)}

    def why_not(self) -> str:
        """Why there is none, in words."""
        if self._size(self.parts) > MOST_EVENTS:
            return f"counted out, the pattern has more than {MOST_EVENTS} events"
        beside = next(self._beside_nothing(self.parts), None)
        if beside is not None:
            return f"{beside} stands at an end of a group, and looks at what is outside"
        for heads in self._heads(self.parts):
            if len({self._joint(one) for one in heads}) > 1:
                names = " and ".join(sorted(one.variable for one in heads))
                return f"the steps to {names}, of which either may come next, have different strategies"
        lacking = next(self._lacking(self.parts), None)
        if lacking is not None:
            return f"conditions on {lacking}[1] are not those on later {lacking}[i], and a round may lack it"
        return ""

    def _beside_nothing(self, parts: Seq[Part], *, whole: bool = True) -> Iterator[Component]:
        """The negations that begin or end a group, where what lies before it or behind it says between which events they look."""
        for at, part in enumerate(parts):
            if isinstance(part, Group):
                negated = [one for one in part.parts if part.choice and isinstance(one, Component) and one.negated]
                yield from negated
                for inside in [[one] for one in part.parts] if part.choice else [part.parts]:
                    yield from self._beside_nothing(inside, whole=False)
            elif part.negated and not whole and (all(map(may_lack, parts[:at])) or all(map(may_lack, parts[at:]))):
                yield part

    def whole(self) -> Pattern:
        return self._sequence(self.parts, first=True)

    def _sequence(self, parts: Seq[Part], *, first: bool) -> Pattern:
        found = tuple(self._part(one, first=first) for one in parts)
        if len(found) == 1:
            return found[0]
        return Sequence(found, tuple(self._joints(_first([part])) for part in parts[1:]))

    def _part(self, part: Part, *, first: bool) -> Pattern:
        if isinstance(part, Component):
            return self._negation(part) if part.negated else self._component(part, first=first)
        contiguous = self._joint(_first(part.parts)[0])
        further = self._body(part, first=False)
        return _repeated(self._body(part, first=True) if first else further, further, part, contiguous)

    def _body(self, group: Group, *, first: bool) -> Pattern:
        if not group.choice:
            return self._sequence(group.parts, first=first)
        return Or(tuple(self._part(one, first=first) for one in group.parts))

    def _component(self, component: Component, *, first: bool) -> Pattern:
        pair = self.nfab.pairs[self.number[component.variable]]
        begin = self._event(pair.component, pair.begin)
        if pair.take is None:
            return begin if component.least else Repeat(begin, 0, 1)
        further = self._event(pair.component, pair.take)
        if not component.kleene:
            return _repeated(begin if first else further, further, replace(component, most=1), False)
        contiguous = MODES[self.nfab.loop(self.number[component.variable])] == 0
        return _repeated(begin if first else further, further, component, contiguous)

    def _negation(self, component: Component) -> Pattern:
        edge = next(one.edge for one in self.nfab.negations if one.component is component)
        return Not(self._event(component, edge))

    def _event(self, component: Component, edge: Edge) -> Pattern:
        atoms: list[Pattern] = [Atom(kind) for kind in component.types]
        found: Pattern = As(atoms[0] if len(atoms) == 1 else Or(tuple(atoms)), OWN + component.variable)
        for condition in edge.alone:
            alone = plain(condition, self.nfab.query.parsed, own_index(edge.kind, component))
            found = Filter(found, OWN + component.variable, alone)
        return found

    def _joints(self, heads: Seq[Component]) -> bool:
        """Whether no event may be left out before one of these, which all say the same; before a negation there are none."""
        return bool(heads) and self._joint(heads[0])

    def _joint(self, component: Component) -> bool:
        """Whether no event may be left out before a component."""
        return MODES[self.nfab.step(self.number[component.variable])] == 0

    def _size(self, parts: Iterable[Part]) -> int:
        """How many events of the pattern there are when it is counted out."""
        return sum(
            max(one.least, one.most or 1, 1) * (1 if isinstance(one, Component) else self._size(one.parts))
            for one in parts
        )

    def _heads(self, parts: Seq[Part]) -> Iterator[list[Component]]:
        """For each joint the components before which it may stand."""
        for at, part in enumerate(parts):
            if at and _first([part]):
                yield _first([part])
            if isinstance(part, Group):
                if part.most != 1:
                    yield _first(part.parts)
                for inside in [[one] for one in part.parts] if part.choice else [part.parts]:
                    yield from self._heads(inside)

    def _lacking(self, parts: Iterable[Part]) -> Iterator[str]:
        """The variables of which a first round may have none, and of which the first event is asked for something else."""
        for part in parts:
            if isinstance(part, Component):
                continue
            if part.most != 1:
                body = part.parts if not part.choice else (replace(part, least=1, most=1),)
                for name in optional(body):
                    pair = self.nfab.pairs[self.number[name]]
                    if pair.take is not None and self._event(pair.component, pair.begin) != self._event(
                        pair.component, pair.take
                    ):
                        yield name
            else:
                yield from self._lacking(part.parts)


def _first(parts: Seq[Part]) -> list[Component]:
    """The components with which parts may begin, of which none is negated."""
    found: list[Component] = []
    for part in parts:
        if isinstance(part, Component):
            found += [] if part.negated else [part]
        else:
            found += [one for inner in part.parts for one in _first([inner])] if part.choice else _first(part.parts)
        if not may_lack(part):
            break
    return found


def _repeated(first: Pattern, further: Pattern, count: Component | Group, contiguous: bool) -> Pattern:
    """A formula, and another for all times but the first, as often as a part of the pattern says."""
    least, most = count.least, count.most
    if first == further:
        if (least, most) == (1, None):
            return Plus(first, contiguous)
        return first if (least, most) == (1, 1) else Repeat(first, least, most, contiguous)
    if most is None and least <= 1:
        found: Pattern = Or((first, Sequence((first, Plus(further, contiguous)), (contiguous,))))
    elif most == 1:
        found = first
    else:
        rest = Repeat(further, max(least, 1) - 1, None if most is None else most - 1, contiguous)
        found = Sequence((first, rest), (contiguous,))
    return found if least else Repeat(found, 0, 1)


class Unmarked(Seq[frozenset[str]]):
    """The variables of each mark of such a query's automaton; marks may be added while one looks."""

    def __init__(self, marks: Seq[frozenset[str]]) -> None:
        self.marks = marks

    def __len__(self) -> int:
        return len(self.marks)

    @overload
    def __getitem__(self, at: int) -> frozenset[str]: ...

    @overload
    def __getitem__(self, at: slice) -> list[frozenset[str]]: ...

    def __getitem__(self, at: int | slice) -> frozenset[str] | list[frozenset[str]]:
        if isinstance(at, slice):
            return [self[number] for number in range(len(self))[at]]
        return frozenset(label.removeprefix(OWN) for label in self.marks[at] if label.startswith(OWN))
