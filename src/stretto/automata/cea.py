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
from dataclasses import dataclass

from stretto.errors import LimitError
from stretto.query import algebra as a
from stretto.query.guard import Guard

#: The guard of a transition that reads any event.
TRUE = -1

#: More arcs than this are refused: nothing sensible needs them, and determinizing them would not end.
MOST_TRANSITIONS = 500_000


@dataclass(frozen=True)
class Transition:
    """``source --guard/labels--> target``; ``guard`` indexes :attr:`CEA.guards`, or is :data:`TRUE`."""

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

    @property
    def waits(self) -> bool:
        """Whether every run can sit out any event: each state that goes on has a loop that reads anything, unmarked.

        Then an event that satisfies no guard changes nothing and need not be visited.
        """
        busy = {t.source for t in self.transitions if t.source}
        loops = {t.source for t in self.transitions if t.guard == TRUE and not t.labels and t.source == t.target}
        return busy <= loops

    def __str__(self) -> str:
        lines = [f"states 0..{self.states - 1}, initial 0, final {{{', '.join(map(str, sorted(self.finals)))}}}"]
        for t in self.transitions:
            guard = "TRUE" if t.guard == TRUE else str(self.guards[t.guard])
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
    start, end = builder.of(pattern)
    return _without_epsilon(builder, start, end)


@dataclass
class _Edge:
    source: int
    guard: Guard | None
    labels: frozenset[str]
    target: int


class _Builder:
    """Builds the automaton bottom-up. The edges of a sub-formula are a contiguous range, because they are made in order."""

    def __init__(self) -> None:
        self.states = 0
        self.edges: list[_Edge] = []
        self.epsilon: dict[int, list[int]] = {}

    def state(self) -> int:
        self.states += 1
        return self.states - 1

    def glue(self, source: int, target: int) -> None:
        self.epsilon.setdefault(source, []).append(target)

    def joint(self, source: int, target: int, contiguous: bool) -> None:
        """From one part to the next, with a loop that skips events unless the joint is contiguous."""
        self.glue(source, target)
        if not contiguous:
            wait = self.state()
            self.edges.append(_Edge(wait, None, frozenset(), wait))
            self.glue(source, wait)
            self.glue(wait, target)

    def of(self, pattern: a.Pattern) -> tuple[int, int]:
        """The start and end state of a formula's part; without recursion."""
        done: list[tuple[int, int]] = []
        todo: list[tuple[a.Pattern, int]] = [(pattern, -1)]
        while todo:
            node, first = todo.pop()
            below = a.children(node)
            if first < 0 and below:
                todo.append((node, len(self.edges)))
                todo.extend((child, -1) for child in reversed(below))
                continue
            parts = done[len(done) - len(below) :]
            del done[len(done) - len(below) :]
            done.append(self._combine(node, parts, first))
            if len(self.edges) > MOST_TRANSITIONS:
                raise LimitError(f"the automaton has more than {MOST_TRANSITIONS:,} transitions; simplify the pattern")
        return done[0]

    def _combine(self, node: a.Pattern, parts: list[tuple[int, int]], first: int) -> tuple[int, int]:
        match node:
            case a.Atom():
                start, end = self.state(), self.state()
                self.edges.append(_Edge(start, Guard(node.type, node.stream), node.labels, end))
                return start, end
            case a.As(_, variable):
                for edge in self.edges[first:]:
                    if edge.labels:
                        edge.labels |= {variable}
                return parts[0]
            case a.Filter(_, variable, predicate):
                for edge in self.edges[first:]:
                    if variable in edge.labels and edge.guard is not None:
                        edge.guard = edge.guard.and_also(predicate)
                return parts[0]
            case a.Project(_, kept):
                for edge in self.edges[first:]:
                    edge.labels &= kept
                return parts[0]
            case a.Or():
                start, end = self.state(), self.state()
                for part_start, part_end in parts:
                    self.glue(start, part_start)
                    self.glue(part_end, end)
                return start, end
            case a.Sequence(_, contiguous):
                for number, joint in enumerate(contiguous):
                    self.joint(parts[number][1], parts[number + 1][0], joint)
                return parts[0][0], parts[-1][1]
            case a.Plus(_, joint):
                start, end = self.state(), self.state()
                self.glue(start, parts[0][0])
                self.glue(parts[0][1], end)
                self.joint(parts[0][1], parts[0][0], joint)
                return start, end


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
    own: dict[int, list[Arc]] = {}
    for edge in builder.edges:
        guard = TRUE if edge.guard is None else guards.setdefault(edge.guard, len(guards))
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
    return _numbered(_join_equal(arcs, {end}, start), {end}, start, tuple(guards))


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
                same = frozenset((g, v, itself if g == TRUE and t == state else t) for g, v, t in arcs[state])
                instead[state] = chosen.setdefault((state in final, same), state)
        if all(state == other for state, other in instead.items()):
            return arcs
        arcs = {
            state: frozenset((guard, labels, instead[target]) for guard, labels, target in own)
            for state, own in arcs.items()
            if instead.get(state, state) == state
        }


def _numbered(arcs: dict[int, frozenset[Arc]], final: set[int], start: int, guards: tuple[Guard, ...]) -> CEA:
    """Number the reachable states breadth-first, with arcs in a fixed order, and drop guards that are gone."""
    order = {start: 0}
    queue = [start]
    transitions: list[Transition] = []
    for state in queue:
        own = sorted(arcs[state], key=lambda arc: (arc[0] == TRUE, arc[0], sorted(arc[1]), arc[2]))
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
    )
