"""Complex event automata (CEA): the machine of a CEL formula, with variables on the marks.

CORE paper, section 3 and appendix A.1 (theorem 2). A transition reads one event that satisfies its guard and marks it
with a set of variables (the VCEA of the appendix): a non-empty set is the paper's •, the empty set its ∘. A run's complex
event is the set of marked positions, its valuation is which variables marked which.

Two departures from the appendix, both in the construction only:

- It glues sub-automata with ε-arcs that are removed at the end, so that nested iterations do not copy arcs again and
  again: at most |atoms|² arcs instead of 2^depth.
- The appendix omits the skipping loop on the fresh state of ``φ+``; the formula's meaning (``φ+ = φ ∪ φ;φ+``) needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from stretto.errors import LimitError
from stretto.query import algebra as a
from stretto.query.guard import Guard

#: The guard of a transition that reads any event. A lesser one reads any event but some: see :meth:`CEA.unless`.
TRUE = -1

#: More arcs than this are refused: nothing sensible needs them, and determinizing them would not end.
MOST_TRANSITIONS = 500_000

#: Of an automaton with more states, it is not asked which two of them runs over the same events reach.
MOST_PAIRED = 64


@dataclass(frozen=True)
class Transition:
    """``source --guard/labels--> target``; ``guard`` indexes :attr:`CEA.guards`, or is :data:`TRUE` or less."""

    source: int
    guard: int
    labels: frozenset[str]
    target: int


@dataclass(frozen=True)
class CEA:
    """States are 0 … ``states``−1; 0 is the initial one, and no transition enters it (section 3)."""

    states: int
    transitions: tuple[Transition, ...]
    finals: frozenset[int]
    guards: tuple[Guard, ...]
    #: The guards of events that some transitions let nobody skip, by :data:`TRUE` − 1 − the transition's guard.
    forbidden: tuple[frozenset[int], ...] = ()

    def unless(self, guard: int) -> frozenset[int]:
        """Which guards an event must not satisfy for a transition whose guard is :data:`TRUE` or less to read it."""
        return self.forbidden[TRUE - 1 - guard] if guard < TRUE else frozenset()

    def shown(self, guard: int) -> str:
        """A transition's guard in words."""
        if guard >= 0:
            return str(self.guards[guard])
        return " AND ".join(f"NOT {self.guards[one]}" for one in sorted(self.unless(guard))) or "TRUE"

    @property
    def waits(self) -> bool:
        """Whether every run can sit out an event that satisfies no guard: each state that goes on has a loop that reads it, unmarked.

        Then such an event changes nothing and need not be visited.
        """
        busy = {t.source for t in self.transitions if t.source}
        loops = {t.source for t in self.transitions if t.guard <= TRUE and not t.labels and t.source == t.target}
        return busy <= loops

    @cached_property
    def closing(self) -> frozenset[int]:
        """The guards of the events that end matches, if they do nothing else and no other event ends one; else none.

        Runs that are under way do not depend on which events satisfy these.
        """
        into = {t for t in self.transitions if t.target in self.finals}
        guards = frozenset(t.guard for t in into)
        elsewhere = {t.guard for t in self.transitions if t not in into}.union(*self.forbidden)
        begun = all(t.source and t.labels and t.guard > TRUE for t in into)
        ended = not any(t.source in self.finals for t in self.transitions)
        return guards if begun and ended and not guards & elsewhere else frozenset()

    @cached_property
    def splitting(self) -> frozenset[tuple[int, int]]:
        """Pairs of a closing guard and another one: of runs over the same events, one event may end some and lead others on.

        In a large automaton, all pairs.
        """
        if self.states > MOST_PAIRED:
            others = {t.guard for t in self.transitions if t.labels} - self.closing
            return frozenset((one, other) for one in self.closing for other in others)
        out: dict[int, list[Transition]] = {}
        for t in self.transitions:
            out.setdefault(t.source, []).append(t)
        found: set[tuple[int, int]] = set()
        seen, todo = {(0, 0)}, [(0, 0)]
        while todo:
            first, second = todo.pop()
            for one, two in product(out.get(first, ()), out.get(second, ())):
                if bool(one.labels) != bool(two.labels):
                    continue
                if one.guard in self.closing and two.guard not in self.closing:
                    found.add((one.guard, two.guard))
                if (one.target, two.target) not in seen:
                    seen.add((one.target, two.target))
                    todo.append((one.target, two.target))
        return frozenset(found)

    def __str__(self) -> str:
        lines = [f"states 0..{self.states - 1}, initial 0, final {{{', '.join(map(str, sorted(self.finals)))}}}"]
        for t in self.transitions:
            guard = self.shown(t.guard)
            mark = "• {" + ", ".join(sorted(t.labels)) + "}" if t.labels else "∘"
            lines.append(f"  {t.source} → {t.target}  {guard} / {mark}")
        return "\n".join(lines)


def build(pattern: a.Pattern) -> CEA:
    """Build the CEA of a formula (theorem 2).

    Raises
    ------
    LimitError
        The automaton would have more than :data:`MOST_TRANSITIONS` transitions.
    """
    builder = _Builder()
    whole = builder.of(pattern)
    return _without_epsilon(builder, whole.start, whole.end)


_NOTHING: frozenset[Guard] = frozenset()


@dataclass
class _Edge:
    source: int
    guard: Guard | None
    labels: frozenset[str]
    target: int
    unless: frozenset[Guard] = _NOTHING


@dataclass(frozen=True)
class _Part:
    """What reads a sub-formula, from a start to an end; ``empty`` says that it may also be missing.

    ``absent``: nothing is read, and events of these guards must not come before the next part.
    """

    start: int
    end: int
    empty: bool = False
    absent: frozenset[Guard] | None = None


class _Builder:
    """Builds the automaton bottom-up. Edges and states of a sub-formula are contiguous ranges, because they are made in order."""

    def __init__(self) -> None:
        self.states = 0
        self.edges: list[_Edge] = []
        self.epsilon: dict[int, list[int]] = {}

    def state(self) -> int:
        self.states += 1
        return self.states - 1

    def part(self, *, empty: bool = False) -> _Part:
        return _Part(self.state(), self.state(), empty)

    def glue(self, source: int, target: int) -> None:
        self.epsilon.setdefault(source, []).append(target)

    def joint(self, source: int, target: int, contiguous: bool, unless: frozenset[Guard] = _NOTHING) -> None:
        """From one part to the next, with a loop that skips events, ``unless`` one of these, unless the joint is contiguous."""
        self.glue(source, target)
        if not contiguous:
            wait = self.state()
            self.edges.append(_Edge(wait, None, frozenset(), wait, unless))
            self.glue(source, wait)
            self.glue(wait, target)

    def of(self, pattern: a.Pattern) -> _Part:
        """The part of the automaton that is a formula's; without recursion."""
        done: list[_Part] = []
        todo: list[tuple[a.Pattern, tuple[int, int] | None]] = [(pattern, None)]
        while todo:
            node, first = todo.pop()
            below = a.children(node)
            if first is None and below:
                todo.append((node, (len(self.edges), self.states)))
                todo.extend((child, None) for child in reversed(below))
                continue
            parts = done[len(done) - len(below) :]
            del done[len(done) - len(below) :]
            done.append(self._combine(node, parts, first or (0, 0)))
            self._bounded(len(self.edges))
        return done[0]

    def _bounded(self, edges: int) -> None:
        if edges > MOST_TRANSITIONS:
            raise LimitError(f"the automaton has more than {MOST_TRANSITIONS:,} transitions; simplify the pattern")

    def _combine(self, node: a.Pattern, parts: list[_Part], first: tuple[int, int]) -> _Part:
        match node:
            case a.Atom():
                part = self.part()
                self.edges.append(_Edge(part.start, Guard(node.type, node.stream), node.labels, part.end))
                return part
            case a.As() | a.Filter() | a.Project():
                _relabel(node, self.edges[first[0] :])
                return parts[0]
            case a.Or():
                part = self.part(empty=any(one.empty for one in parts))
                for one in parts:
                    self.glue(part.start, one.start)
                    self.glue(one.end, part.end)
                return part
            case a.Not():
                # Single events only: the guards say all, and what would read the events goes.
                absent = frozenset(edge.guard for edge in self.edges[first[0] :] if edge.guard is not None)
                del self.edges[first[0] :]
                return _Part(-1, -1, absent=absent)
            case a.Sequence(_, contiguous):
                return self._sequence(parts, contiguous)
            case a.Plus(_, joint):
                return self._repeated([parts[0]], 1, joint, endless=True)
            case a.Repeat(_, least, most, joint):
                copies = max(least, 1) if most is None else most
                self._bounded(copies * (len(self.edges) - first[0]))
                chain = [parts[0], *self._copies(parts[0], first, copies - 1)]
                return self._repeated(chain, least, joint, endless=most is None)
        raise AssertionError(node)

    def _sequence(self, parts: list[_Part], contiguous: tuple[bool, ...]) -> _Part:
        """One part after the other; a part that may be missing is passed by, and the joint before the next one counts."""
        start, missing = parts[0].start, parts[0].empty  # missing: whether all parts so far may be
        if missing:
            start = self.state()
            self.glue(start, parts[0].start)
        #: Where the next part may go on, by what must not come until then.
        tails = {_NOTHING: parts[0].end}
        for joint, part in zip(contiguous, parts[1:], strict=True):
            if part.absent is not None:
                tails = self._met([(unless | part.absent, state) for unless, state in tails.items()])
                continue
            for unless, state in tails.items():
                self.joint(state, part.start, joint, unless)
            if missing:
                self.glue(start, part.start)
            tails = self._met([*(tails.items() if part.empty else ()), (_NOTHING, part.end)])
            missing &= part.empty
        end = self._met([(_NOTHING, state) for state in tails.values()])[_NOTHING]
        return _Part(start, end, missing)

    def _met(self, tails: Iterable[tuple[frozenset[Guard], int]]) -> dict[frozenset[Guard], int]:
        """One state for each of the keys."""
        found: dict[frozenset[Guard], int] = {}
        for unless, state in tails:
            if unless not in found:
                found[unless] = state
                continue
            both = self.state()
            self.glue(found[unless], both)
            self.glue(state, both)
            found[unless] = both
        return found

    def _repeated(self, chain: list[_Part], least: int, contiguous: bool, *, endless: bool) -> _Part:
        """Copies of one part, one after the other, of which ``least`` are needed; ``endless`` repeats the last one."""
        if chain[0].empty:
            least = 0
        whole = self.part(empty=least == 0)
        self.glue(whole.start, chain[0].start)
        for number, one in enumerate(chain, 1):
            if number >= least:
                self.glue(one.end, whole.end)
            if number < len(chain):
                self.joint(one.end, chain[number].start, contiguous)
        if endless:
            self.joint(chain[-1].end, chain[-1].start, contiguous)
        return whole

    def _copies(self, part: _Part, first: tuple[int, int], count: int) -> list[_Part]:
        """More of a part, which was built last, of the edges and states from ``first`` on."""
        edges, states = self.edges[first[0] :], range(first[1], self.states)
        glued = [(state, list(self.epsilon[state])) for state in states if state in self.epsilon]
        copies = []
        for number in range(1, count + 1):
            apart = number * len(states)
            self.states += len(states)
            self.edges += [replace(one, source=one.source + apart, target=one.target + apart) for one in edges]
            for state, targets in glued:
                self.epsilon[state + apart] = [target + apart for target in targets]
            copies.append(_Part(part.start + apart, part.end + apart, part.empty))
        return copies


def _relabel(node: a.As | a.Filter | a.Project, edges: list[_Edge]) -> None:
    """What a node says of the events that its body marks."""
    for edge in edges:
        if isinstance(node, a.Project):
            edge.labels &= node.variables
        elif isinstance(node, a.As):
            edge.labels |= {node.variable} if edge.labels else frozenset()
        elif node.variable in edge.labels and edge.guard is not None:
            edge.guard = edge.guard.and_also(node.predicate)


def _closures(builder: _Builder) -> list[frozenset[int]]:
    closures = []
    for state in range(builder.states):
        seen = {state}
        todo = [state]
        while todo:
            for target in builder.epsilon.get(todo.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        closures.append(frozenset(seen))
    return closures


Arc = tuple[int, frozenset[str], int]


def _without_epsilon(builder: _Builder, start: int, end: int) -> CEA:
    """Let every arc enter the states that its target's ε-closure leads to, and number what is left from the start.

    Of a closure only states with arcs of their own count, and of those only the ones that can do what no other can: a state
    that waits can do all that the state behind it can.
    """
    guards: dict[Guard, int] = {}
    forbidden: dict[frozenset[int], int] = {}
    own: dict[int, list[Arc]] = {}
    for edge in builder.edges:
        guard = TRUE
        if edge.guard is not None:
            guard = guards.setdefault(edge.guard, len(guards))
        elif edge.unless:
            them = frozenset(guards.setdefault(one, len(guards)) for one in sorted(edge.unless, key=str))
            guard = TRUE - 1 - forbidden.setdefault(them, len(forbidden))
        own.setdefault(edge.source, []).append((guard, edge.labels, edge.target))
    closures = _closures(builder)
    out = {
        state: frozenset(arc for member in closures[state] for arc in own.get(member, ())) for state in {start, *own}
    }
    entered: dict[int, list[int]] = {}
    arcs: dict[int, frozenset[Arc]] = {end: frozenset()}
    todo = [start]
    total = 0
    while todo:
        state = todo.pop()
        expanded: set[Arc] = set()
        for guard, labels, target in out[state]:
            if target not in entered:
                entered[target] = _capable([s for s in closures[target] if s in own], out)
                entered[target] += [end] if end in closures[target] else []
            expanded.update((guard, labels, chosen) for chosen in entered[target])
        arcs[state] = frozenset(expanded)
        total += len(expanded)
        if total > MOST_TRANSITIONS:
            raise LimitError(f"the automaton has more than {MOST_TRANSITIONS:,} transitions; simplify the pattern")
        todo += sorted({target for _, _, target in expanded if target not in arcs and target not in todo})
    return _numbered(_join_equal(arcs, {end}, start), {end}, start, tuple(guards), tuple(forbidden))


def _capable(states: list[int], out: dict[int, frozenset[Arc]]) -> list[int]:
    """The states whose arcs no other's arcs include."""
    chosen: list[int] = []
    for state in sorted(states, key=lambda s: (-len(out[s]), s)):
        if not any(out[state] <= out[other] for other in chosen):
            chosen.append(state)
    return chosen


def _join_equal(arcs: dict[int, frozenset[Arc]], final: Iterable[int], start: int) -> dict[int, frozenset[Arc]]:
    """Join states that are final alike and have the same arcs (waiting each where it is), until none are left."""
    final = set(final)
    itself = -1
    while True:
        chosen: dict[tuple[bool, frozenset[Arc]], int] = {}
        instead: dict[int, int] = {}
        for state in sorted(arcs):
            if state != start:
                same = frozenset((g, v, itself if g <= TRUE and t == state else t) for g, v, t in arcs[state])
                instead[state] = chosen.setdefault((state in final, same), state)
        if all(state == other for state, other in instead.items()):
            return arcs
        arcs = {
            state: frozenset((guard, labels, instead[target]) for guard, labels, target in own)
            for state, own in arcs.items()
            if instead.get(state, state) == state
        }


def _numbered(
    arcs: dict[int, frozenset[Arc]],
    final: set[int],
    start: int,
    guards: tuple[Guard, ...],
    forbidden: tuple[frozenset[int], ...],
) -> CEA:
    """Number the reachable states breadth-first, with arcs in a fixed order, and drop guards that are gone."""
    order = {start: 0}
    queue = [start]
    transitions: list[Transition] = []
    for state in queue:
        own = sorted(arcs[state], key=lambda arc: (arc[0] <= TRUE, arc[0], sorted(arc[1]), arc[2]))
        for guard, labels, target in own:
            if target not in order:
                order[target] = len(order)
                queue.append(target)
            transitions.append(Transition(order[state], guard, labels, order[target]))
    return CEA(
        states=len(order),
        transitions=tuple(transitions),
        finals=frozenset(order[state] for state in final if state in order and state != start),
        guards=guards,
        forbidden=forbidden,
    )
