"""NFAb: the automaton of a SASE+ query, built in the steps of section 3.2 of the SASE+ paper.

A state waits for the next event of a component: a singleton ``b``, the first event ``a[1]`` of a Kleene plus, or a further
one ``a[i]``. Its edges are *begin* (select the event, go on), *take* (select it, stay at ``a[i]``), *ignore* (leave it out,
stay) and *proceed* (go on without an event). Each conjunct of WHERE stands on an edge of the state at which its last
identifier is known.

What an edge asks comes apart into what one event answers alone (tested column-wise, before the automaton runs) and what
relates events (tested for each run, against its value vector V).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stretto.errors import QueryError, placed
from stretto.query import predicate as p
from stretto.query.guard import Guard
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.cnf import conjuncts
from stretto.query.passes.plain import plain
from stretto.query.sase import Component, Element, Index, Length, Range, Reference, Selection
from stretto.query.typing import may_overflow


class Kind(StrEnum):
    """Moves of a run."""

    BEGIN = "begin"
    TAKE = "take"
    PROCEED = "proceed"


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
class Negation:
    """``~(T n)``: between the positive components ``left`` and ``right`` (−1 and their number: before, after all)."""

    component: Component
    left: int
    right: int
    edge: Edge


@dataclass(frozen=True)
class Nfab:
    """The automaton: a pair of states for each positive component, in order, and the final state."""

    query: BoundSase
    pairs: tuple[Pair, ...]
    negations: tuple[Negation, ...]

    @property
    def selection(self) -> Selection:
        return self.query.parsed.selection

    @property
    def contiguous(self) -> bool:
        """Whether no event of the partition (or stream) may be left out."""
        return self.selection in (Selection.STRICT, Selection.PARTITION)

    @property
    def partitioned(self) -> bool:
        """Whether the equivalence tests split the stream; under strict contiguity they are conditions."""
        return bool(self.query.partition_by) and self.selection is not Selection.STRICT

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges that ask for something, in order of components; those of negations last."""
        found = [edge for pair in self.pairs for edge in (pair.begin, pair.take, pair.proceed) if edge is not None]
        return (*found, *(one.edge for one in self.negations))

    @property
    def guards(self) -> list[Guard]:
        """What edges ask of their own events, a guard for each type."""
        found = []
        selecting = [
            (pair.component, edge) for pair in self.pairs for edge in (pair.begin, pair.take) if edge is not None
        ]
        for component, edge in [*selecting, *((one.component, one.edge) for one in self.negations)]:
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
    found = _structure(query)
    with placed(query.parsed.text):
        for conjunct in () if query.condition is None else conjuncts(query.condition):
            found = _place(found, conjunct)
    left = (Edge(Kind.PROCEED), *(pair.proceed for pair in found.pairs))
    pairs = tuple(
        replace(pair, begin=_guarded(pair.begin, query, before), take=pair.take and _guarded(pair.take, query))
        for pair, before in zip(found.pairs, left, strict=False)
    )
    negations = tuple(replace(one, edge=_guarded(one.edge, query)) for one in found.negations)
    return replace(found, pairs=pairs, negations=negations)


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
    for component in query.parsed.components:
        if component.negated:
            negations.append(Negation(component, len(pairs) - 1, len(pairs), Edge(Kind.BEGIN)))
        else:
            pairs.append(Pair(component, Edge(Kind.BEGIN), Edge(Kind.TAKE) if component.kleene else None))
    return Nfab(query, tuple(pairs), tuple(negations))


def _place(nfab: Nfab, conjunct: p.Predicate) -> Nfab:
    """Step 2: a conjunct on the edge at which its last identifier is known."""
    references = {name: nfab.query.parsed.references[name] for name in p.attributes(conjunct)}
    negated = {one.component.variable: number for number, one in enumerate(nfab.negations)}
    mine = sorted({negated[one.variable] for one in references.values() if one.variable in negated})
    if len(mine) > 1:
        raise _mistake(conjunct, "the condition relates two negated events", "say them in two negations")
    if mine:
        return _place_in_negation(nfab, mine[0], conjunct, references)
    order = {pair.component.variable: number for number, pair in enumerate(nfab.pairs)}
    number, rank = max(((order[one.variable], _rank(one)) for one in references.values()), default=(0, 0))
    pair = nfab.pairs[number]
    if rank == 0:
        placed = replace(pair, begin=_with(nfab, pair.begin, conjunct, references, pair.component.variable))
    elif rank == 1:
        assert pair.take is not None
        placed = replace(pair, take=_with(nfab, pair.take, conjunct, references, pair.component.variable))
    else:
        placed = replace(pair, proceed=_with(nfab, pair.proceed, conjunct, references, pair.component.variable))
    return replace(nfab, pairs=(*nfab.pairs[:number], placed, *nfab.pairs[number + 1 :]))


def _place_in_negation(nfab: Nfab, number: int, conjunct: p.Predicate, references: dict[str, Reference]) -> Nfab:
    negation = nfab.negations[number]
    edge = _with(nfab, negation.edge, conjunct, references, negation.component.variable)
    placed = replace(negation, edge=edge)
    return replace(nfab, negations=(*nfab.negations[:number], placed, *nfab.negations[number + 1 :]))


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
    return Index.FIRST if component.kleene else Index.ONLY


def _with(nfab: Nfab, edge: Edge, conjunct: p.Predicate, references: dict[str, Reference], variable: str) -> Edge:
    """An edge with one more conjunct; ``variable`` is that of its own event."""
    component = next(one for one in nfab.query.parsed.components if one.variable == variable)
    own = own_index(edge.kind, component)
    others = [one for one in references.values() if not _is_own(one, variable, own, edge.kind)]
    # Registered functions are called in the kernel only.
    if edge.kind is not Kind.PROCEED and not others and references and not p.calls(conjunct):
        return replace(edge, alone=(*edge.alone, conjunct))
    taking = edge.kind is Kind.TAKE
    open_ones = [one for one in others if _rank(one) == 1 and not (taking and one.variable == variable)]
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
