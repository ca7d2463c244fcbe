"""NFAb: the automaton of a SASE+ query, built in the steps of section 3.2 of the SASE+ paper.

A state waits for the next event of a component: a singleton ``b``, the first event ``a[1]`` of a Kleene plus, or a further
one ``a[i]``. Its edges are *begin* (select the event, go on), *take* (select it, stay at ``a[i]``), *ignore* (leave it out,
stay) and *proceed* (go on without an event). Each conjunct of WHERE stands on an edge of the state at which its last
identifier is known.

What an edge asks comes apart into what one event answers alone (tested column-wise, before the automaton runs) and what
relates events (tested for each run, against its value vector V).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stretto.automata.positions import Places, Step, places
from stretto.errors import QueryError, placed
from stretto.query import predicate as p
from stretto.query.guard import Guard
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.cnf import conjuncts
from stretto.query.passes.plain import plain
from stretto.query.sase import (
    Component,
    Element,
    Index,
    Length,
    Part,
    Range,
    Reference,
    Selection,
    are_paired,
    components_of,
    optional,
)
from stretto.query.typing import may_overflow


class Kind(StrEnum):
    """Moves of a run."""

    BEGIN = "begin"
    TAKE = "take"
    PROCEED = "proceed"


#: Strategies of steps that are the same inside one partition or stream.
MODES = {Selection.STRICT: 0, Selection.PARTITION: 0, Selection.NEXT: 1, Selection.ANY: 2}


@dataclass(frozen=True)
class Edge:
    """What a move asks: ``alone`` of its own event, ``related`` of its event and the run, ``each`` of every ``a[i]`` as well.

    ``each`` pairs a conjunct with the variable of its ``a[i]``.
    """

    kind: Kind
    alone: tuple[p.Predicate, ...] = ()
    related: tuple[p.Predicate, ...] = ()
    each: tuple[tuple[str, p.Predicate], ...] = ()

    def __str__(self) -> str:
        parts = [*map(str, self.alone), *map(str, self.related), *(f"for every i: {one}" for _, one in self.each)]
        return " AND ".join(parts) if parts else "true"


@dataclass(frozen=True)
class Pair:
    """The states of one component: a singleton has a begin edge only, a Kleene plus all three."""

    component: Component
    begin: Edge
    take: Edge | None = None
    proceed: Edge = field(default_factory=lambda: Edge(Kind.PROCEED))


@dataclass(frozen=True)
class Ending:
    """``UNTIL (U u)``: what ends the Kleene plus of a component, by its number."""

    component: Component
    of: int
    edge: Edge


@dataclass(frozen=True)
class Negation:
    """``~(T n)``: between the positive components ``left`` and ``right`` (−1 and their number: before, after all).

    In a pattern with parts that may be missing these are its neighbours in the text, and ``between`` are all pairs between which it
    is tested.
    """

    component: Component
    left: int
    right: int
    edge: Edge
    between: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Nfab:
    """The automaton: a pair of states for each positive component, in order, and the final state.

    ``places`` says which component may follow which. A group that repeats has a number, which ``round_of`` gives for each component
    (−1: it is in none), and an edge in ``leaves`` with what is asked of the whole of its variables.
    """

    query: BoundSase
    pairs: tuple[Pair, ...]
    negations: tuple[Negation, ...]
    places: Places
    round_of: tuple[int, ...]
    leaves: tuple[Edge, ...] = ()
    endings: tuple[Ending, ...] = ()

    @property
    def selection(self) -> Selection:
        return self.query.parsed.selection

    @property
    def contiguous(self) -> bool:
        """Whether somewhere no event of the partition (or stream) may be left out."""
        return any(one in (Selection.STRICT, Selection.PARTITION) for one in self.selections)

    @property
    def selections(self) -> frozenset[Selection]:
        """The strategies that its steps and loops have."""
        at = range(len(self.pairs))
        loops = (self.loop(one) for one in at if self.pairs[one].component.kleene)
        return frozenset([*(self.step(one) for one in at), *loops])

    def waits_apart(self, component: int, after: int) -> bool:
        """Whether a run at a component waits for the next one by itself: a Kleene plus has another strategy than the step behind."""
        modes = [MODES[one] for one in (self.loop(component), self.step(after))]
        return not self.pairs[component].component.kleene or modes[0] != modes[1]

    def left_with(self, component: int, after: int | None) -> Edge | None:
        """What is asked when a group that repeats is left: by the step from a component to another (``None``: at the end)."""
        group = self.round_of[component]
        leaves = group >= 0 and (after is None or self.round_of[after] != group)
        return self.leaves[group] if leaves else None

    def step(self, component: int) -> Selection:
        """The strategy of the steps to a component."""
        return self.query.parsed.steps.get(self.pairs[component].component.variable, self.selection)

    def loop(self, component: int) -> Selection:
        """The strategy inside a Kleene plus."""
        return self.query.parsed.loops.get(self.pairs[component].component.variable, self.selection)

    @property
    def partitioned(self) -> bool:
        """Whether the equivalence tests split the stream; under strict contiguity they are conditions."""
        return bool(self.query.partition_by) and self.selection is not Selection.STRICT

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges that ask for something, in order of components; those of negations last."""
        found = [edge for pair in self.pairs for edge in (pair.begin, pair.take, pair.proceed) if edge is not None]
        return (*found, *(one.edge for one in self.negations), *self.leaves, *(one.edge for one in self.endings))

    @property
    def guards(self) -> list[Guard]:
        """What edges ask of their own events, a guard for each type."""
        found = []
        selecting = [
            (pair.component, edge) for pair in self.pairs for edge in (pair.begin, pair.take) if edge is not None
        ]
        negated = [(one.component, one.edge) for one in self.negations]
        for component, edge in [*selecting, *negated, *((one.component, one.edge) for one in self.endings)]:
            own = own_index(edge.kind, component)
            conditions = tuple(plain(one, self.query.parsed, own) for one in edge.alone)
            found += [Guard(kind, None, conditions) for kind in component.types]
        return found


def build(query: BoundSase) -> Nfab:
    """Build the automaton of a bound query: steps 1 (structure) and 2 (predicates).

    Steps 3 to 6 are the same for all queries, and the engine does them: ignore edges follow from the strategy
    (:attr:`Nfab.selection`), the window is tested on every edge, and a run proceeds only with an event that begins the next
    component.

    Raises
    ------
    QueryError
        A condition mixes references whose moment is not the same.
    LimitError
        The conditions are too many in conjunctive normal form.
    """
    with placed(query.parsed.text):
        found = _structure(query)
        for conjunct in () if query.condition is None else conjuncts(query.condition):
            found = _place(found, conjunct)
    left = [Edge(Kind.PROCEED)] * len(found.pairs)  # what is asked before each component in the same move
    for at, steps in enumerate(found.places.follow):
        own = found.places.component[at]
        for step in steps:
            after = found.places.component[step.place]
            for edge in (found.pairs[own].proceed, found.left_with(own, after)):
                if edge is not None and edge != Edge(Kind.PROCEED):
                    left[after] = edge
    pairs = tuple(
        replace(
            pair,
            begin=_guarded(pair.begin, query, before),
            take=pair.take and _guarded(pair.take, query, before if pair.component.again else None),
        )
        for pair, before in zip(found.pairs, left, strict=True)
    )
    negations = tuple(replace(one, edge=_guarded(one.edge, query)) for one in found.negations)
    endings = tuple(replace(one, edge=_guarded(one.edge, query)) for one in found.endings)
    return replace(found, pairs=pairs, negations=negations, endings=endings)


def _guarded(edge: Edge, query: BoundSase, before: Edge | None = None) -> Edge:
    """An edge whose conditions guard each other: what may overflow on an event alone is tested together with the others.

    ``before``: the edge that is tested in the same move.
    """
    if not any(one.related or one.each for one in (edge, before) if one is not None):
        return edge
    moved = tuple(one for one in edge.alone if may_overflow(one, query.compared))
    if not moved:
        return edge
    return replace(edge, alone=tuple(one for one in edge.alone if one not in moved), related=(*edge.related, *moved))


def _structure(query: BoundSase) -> Nfab:
    """Step 1: states and edges from PATTERN alone."""
    pairs: list[Pair] = []
    negations: list[Negation] = []
    endings: list[Ending] = []
    for component in query.parsed.components:
        if component.negated:
            negations.append(Negation(component, len(pairs) - 1, len(pairs), Edge(Kind.BEGIN)))
            continue
        if component.until is not None:
            endings.append(Ending(component.until, len(pairs), Edge(Kind.BEGIN)))
        pairs.append(Pair(component, Edge(Kind.BEGIN), Edge(Kind.TAKE) if component.many else None))
    found = places(query.parsed.parts)
    rounds = _rounds(query.parsed.parts)
    groups = (Edge(Kind.PROCEED),) * (max(rounds) + 1)
    nfab = Nfab(query, tuple(pairs), (), found, rounds, groups, tuple(endings))
    _check_again(nfab)
    _check_endings(nfab)
    return replace(nfab, negations=tuple(_between(nfab, number, one) for number, one in enumerate(negations)))


def _check_endings(nfab: Nfab) -> None:
    """What ends a repetition ends it once, and what needs the end has one strategy until then."""
    for number in (one.of for one in nfab.endings):
        component = nfab.pairs[number].component
        if component.again:
            raise QueryError(
                "UNTIL in a group that repeats: which round does it end?", span=component.span, hint="ask for one round"
            )
        behind = nfab.places.follow[nfab.places.component.index(number)]
        if component.only and any(nfab.waits_apart(number, nfab.places.component[step.place]) for step in behind):
            raise QueryError(
                f"UNTIL … ONLY where the step behind {component.variable}[] has another strategy than its repetition",
                span=component.span,
                hint="say one strategy for both, or leave out ONLY",
            )


def _rounds(parts: Iterable[Part]) -> tuple[int, ...]:
    """For each positive component the number of the outermost group that repeats it, or −1."""
    found: list[int] = []

    def look(part: Part) -> None:
        if isinstance(part, Component):
            found.extend([] if part.negated else [-1])
        elif part.most == 1:
            for one in part.parts:
                look(one)
        else:
            inside = sum(not one.negated for one in components_of(part.parts))
            found.extend([max(found, default=-1) + 1] * inside)

    for part in parts:
        look(part)
    return tuple(found)


def _check_again(nfab: Nfab) -> None:
    """A Kleene plus that a further round of it may follow at once: where the one ends and the other begins, nobody can tell."""
    for at, steps in enumerate(nfab.places.follow):
        number = nfab.places.component[at]
        own = nfab.pairs[number].component
        for step in steps if own.kleene else ():
            if nfab.places.component[step.place] != number:
                continue
            if (
                step == Step(at)
                and (own.least, own.most) in ((1, None), (0, None))
                and nfab.step(number) is nfab.loop(number)
            ):
                steps.remove(step)  # what a further round would take, the Kleene plus takes
                break
            raise QueryError(
                f"where one round of {own.variable}[] ends and the next begins cannot be told",
                span=own.span,
                hint=f"count one of them: the group around {own}, or {own.types[0]} itself",
            )


def _between(nfab: Nfab, number: int, negation: Negation) -> Negation:
    """Where a negation is tested: between which components, or at one of the ends."""
    places, end = nfab.places, len(nfab.pairs)
    found: dict[tuple[int, int], set[bool]] = {}
    for before, steps in [(-1, places.first), *zip(places.component, places.follow, strict=True)]:
        for step in steps:
            found.setdefault((before, places.component[step.place]), set()).add(number in step.passed)
    for before, ends in zip(places.component, places.ends, strict=True):
        if ends is not None:
            found.setdefault((before, end), set()).add(number in ends)
    pairs = {pair for pair, passed in found.items() if True in passed}
    at_start, at_end = (one for one in pairs if one[0] < 0), (one for one in pairs if one[1] == end)
    starts, ends_ = set(at_start), set(at_end)
    own = negation.component
    if any(len(found[pair]) > 1 for pair in pairs):
        raise QueryError(
            f"{own} is tested in some rounds of a group and not in others", span=own.span, hint="ask two queries"
        )
    if starts | ends_ and (
        starts | ends_ != pairs
        or (starts and starts != {one for one in found if one[0] < 0})
        or (ends_ and ends_ != {one for one in found if one[1] == end})
    ):
        where = "begins" if starts else "ends"
        raise QueryError(
            f"where a part is missing, {own} {where} the pattern, and else it does not",
            span=own.span,
            hint="ask two queries, with and without that part",
        )
    if starts or ends_:
        return replace(negation, left=-1 if starts else negation.left, right=end if ends_ else negation.right)
    return replace(negation, between=frozenset(pairs))


def _place(nfab: Nfab, conjunct: p.Predicate) -> Nfab:
    """Step 2: a conjunct on the edge at which its last identifier is known."""
    references = {name: nfab.query.parsed.references[name] for name in p.attributes(conjunct)}
    negated = {one.component.variable: number for number, one in enumerate(nfab.negations)}
    mine = sorted({negated[one.variable] for one in references.values() if one.variable in negated})
    ending = {one.component.variable: number for number, one in enumerate(nfab.endings)}
    ends = sorted({ending[one.variable] for one in references.values() if one.variable in ending})
    if len(mine) > 1:
        raise _mistake(conjunct, "the condition relates two negated events", "say them in two negations")
    if len(ends) > 1 or (mine and ends):
        raise _mistake(conjunct, "the condition relates the end of a repetition to an event that is in no match", None)
    if mine:
        return _place_in_negation(nfab, mine[0], conjunct, references)
    if ends:
        return _place_in_ending(nfab, ends[0], conjunct, references)
    order = {pair.component.variable: number for number, pair in enumerate(nfab.pairs)}
    paired = are_paired([one for one in references.values() if _rank(one) == 1], nfab.query.parsed.parts)
    known_at = {
        name: (*_moment(nfab, order[one.variable], one), order[one.variable])
        for name, one in references.items()
        if not (paired and _is_of_earlier_round(nfab, order, one, references))
    }
    latest = max(known_at, key=known_at.__getitem__, default=None)
    _, rank, number = (0, 0, 0) if latest is None else known_at[latest]
    pair = nfab.pairs[number]
    variable = pair.component.variable
    group = nfab.round_of[number]
    if paired and rank != 1:
        raise _mistake(
            conjunct,
            f"{latest} is not known yet when the events of a round are related",
            "ask for it in a condition of its own",
        )
    if rank == 3:
        leave = _with(nfab, nfab.leaves[group], conjunct, references, variable)
        return replace(nfab, leaves=(*nfab.leaves[:group], leave, *nfab.leaves[group + 1 :]))
    if group >= 0:
        _check_round(nfab, number, conjunct, references, paired=paired)
    if rank == 0:
        placed = replace(pair, begin=_with(nfab, pair.begin, conjunct, references, variable))
    elif rank == 1:
        assert pair.take is not None
        placed = replace(pair, take=_with(nfab, pair.take, conjunct, references, variable))
        if paired and not any(_is_before(one) for one in references.values()):
            placed = replace(placed, begin=_with(nfab, pair.begin, conjunct, references, variable))
    else:
        placed = replace(pair, proceed=_with(nfab, pair.proceed, conjunct, references, variable))
    return replace(nfab, pairs=(*nfab.pairs[:number], placed, *nfab.pairs[number + 1 :]))


def _moment(nfab: Nfab, number: int, reference: Reference) -> tuple[int, int]:
    """When a reference to a component is known: after which component, and at which edge; 3 is the one that leaves its group."""
    rank, group = _rank(reference), nfab.round_of[number]
    if rank == 2 and group >= 0:
        return max(at for at, one in enumerate(nfab.round_of) if one == group), 3
    return number, rank


def _is_of_earlier_round(
    nfab: Nfab, order: dict[str, int], reference: Reference, references: dict[str, Reference]
) -> bool:
    """Whether a condition that relates the events of a round to those before, from the second round on, knows this one by then."""
    if _is_before(reference):
        return True
    groups = {nfab.round_of[order[one.variable]] for one in references.values() if _is_before(one)}
    return _rank(reference) == 0 and nfab.round_of[order[reference.variable]] in groups


def _is_before(reference: Reference) -> bool:
    return isinstance(reference, Element) and reference.index is Index.BEFORE


def _check_round(
    nfab: Nfab, number: int, conjunct: p.Predicate, references: dict[str, Reference], *, paired: bool
) -> None:
    """In a group that repeats, what a condition names besides its last variable must be there before, in whatever round."""
    order = {pair.component.variable: at for at, pair in enumerate(nfab.pairs)}
    own = nfab.pairs[number].component.variable
    lacking = set(optional(_group_of(nfab.query.parsed.parts, own)))
    for name, one in references.items():
        at = order[one.variable]
        if at == number or nfab.round_of[at] != nfab.round_of[number] or (paired and _rank(one) == 1):
            continue
        if _rank(one) == 1 or one.variable in lacking:
            raise _mistake(
                conjunct,
                f"{name} and {own} stand in one group that repeats: which comes first?",
                f"compare {one.variable}[i] with {own}[i] where each round has one of each, or the whole of both, such as "
                f"{one.variable}.LEN",
            )


def _group_of(parts: Iterable[Part], variable: str) -> tuple[Part, ...]:
    """What the outermost group that repeats a variable holds."""
    for part in parts:
        if isinstance(part, Component) or variable not in {one.variable for one in components_of([part])}:
            continue
        if part.most != 1:
            return part.parts if not part.choice else (replace(part, least=1, most=1),)
        return _group_of(part.parts, variable)
    return ()


def _place_in_negation(nfab: Nfab, number: int, conjunct: p.Predicate, references: dict[str, Reference]) -> Nfab:
    negation = nfab.negations[number]
    edge = _with(nfab, negation.edge, conjunct, references, negation.component.variable)
    placed = replace(negation, edge=edge)
    return replace(nfab, negations=(*nfab.negations[:number], placed, *nfab.negations[number + 1 :]))


def _place_in_ending(nfab: Nfab, number: int, conjunct: p.Predicate, references: dict[str, Reference]) -> Nfab:
    ending = nfab.endings[number]
    order = {pair.component.variable: at for at, pair in enumerate(nfab.pairs)}
    late = [name for name, one in references.items() if order.get(one.variable, -1) > ending.of]
    if late:
        raise _mistake(conjunct, f"{late[0]} is not known when {ending.component.variable} ends a repetition", None)
    placed = replace(ending, edge=_with(nfab, ending.edge, conjunct, references, ending.component.variable))
    return replace(nfab, endings=(*nfab.endings[:number], placed, *nfab.endings[number + 1 :]))


def _rank(reference: Reference) -> int:
    """At which state of its component a reference is known: 0 the first, 1 a further one, 2 when it is left."""
    if isinstance(reference, Element):
        return {Index.ONLY: 0, Index.FIRST: 0, Index.EACH: 1, Index.BEFORE: 1, Index.LAST: 2}[reference.index]
    if isinstance(reference, Length):
        return 2
    return 2 if reference.range is Range.ALL else 1


def own_index(edge: Kind, component: Component) -> Index:
    """Tell how a condition names the event that a move of a component selects."""
    if edge is Kind.TAKE:
        return Index.EACH
    return Index.FIRST if component.many else Index.ONLY


def _with(nfab: Nfab, edge: Edge, conjunct: p.Predicate, references: dict[str, Reference], variable: str) -> Edge:
    """An edge with one more conjunct; ``variable`` is that of its own event."""
    parsed = nfab.query.parsed
    component = next(one for one in (*parsed.components, *parsed.endings) if one.variable == variable)
    own = own_index(edge.kind, component)
    others = [one for one in references.values() if not _is_own(one, variable, own, edge.kind)]
    # Registered functions are called in the kernel only.
    if edge.kind is not Kind.PROCEED and not others and references and not p.calls(conjunct):
        return replace(edge, alone=(*edge.alone, conjunct))
    taking = edge.kind is Kind.TAKE
    paired = edge.kind is not Kind.PROCEED and are_paired(
        [one for one in references.values() if _rank(one) == 1], parsed.parts
    )
    open_ones = [one for one in others if _rank(one) == 1 and not paired and not (taking and one.variable == variable)]
    if any(not (isinstance(one, Element) and one.index is Index.EACH) for one in open_ones):
        name = next(str(one) for one in open_ones if not (isinstance(one, Element) and one.index is Index.EACH))
        hint = "for the whole of a Kleene plus say a[1], a[a.LEN], a.LEN or an aggregate such as avg(a[].x)"
        raise _mistake(conjunct, f"{name} is not one value when the condition is tested", hint)
    universal = sorted({one.variable for one in open_ones})
    if len(universal) > 1:
        raise _mistake(conjunct, f"which {universal[0]}[i] belongs to which {universal[1]}[i]?", None)
    if universal:
        return replace(edge, each=(*edge.each, (universal[0], conjunct)))
    return replace(edge, related=(*edge.related, conjunct))


def _is_own(reference: Reference, variable: str, own: Index, kind: Kind) -> bool:
    """Whether a reference reads the event that the move selects, and only that."""
    return (
        kind is not Kind.PROCEED
        and isinstance(reference, Element)
        and reference.variable == variable
        and reference.index is own
    )


def _mistake(conjunct: p.Predicate, message: str, hint: str | None) -> QueryError:
    spans: Sequence[object] = [span for span in p.attributes(conjunct).values() if span is not None]
    return QueryError(message, span=spans[-1] if spans else None, hint=hint)  # type: ignore[arg-type]
