"""Which states of an AFA computations can reach, and from which they can get to output: what its graph alone says."""

from __future__ import annotations

from collections.abc import Collection

from stretto.query.afa import Afa, Kind


def reached(afa: Afa) -> set[str]:
    """Find the states that a computation may be in after at least one event.

    >>> from stretto.query.afa import Arc
    >>> arcs = (Arc("a0", "q0", "q1"), Arc("a1", "q1", "q2", kind=Kind.EPSILON), Arc("a2", "q3", "q4"))
    >>> sorted(reached(Afa({}, {}, (), "q0", arcs)))
    ['q1', 'q2']
    """
    found = {(afa.start, False)}
    waiting = [*found]
    while waiting:
        state, consumed = waiting.pop()
        for arc in afa.arcs:
            after = arc.target, consumed or arc.kind is not Kind.EPSILON
            if arc.source == state and after not in found:
                found.add(after)
                waiting.append(after)
    return {state for state, consumed in found if consumed}


def beginning(afa: Afa, state: str | None = None) -> set[str]:
    """Find the states in which a computation may be before its first event, or before the next one, from a state.

    >>> from stretto.query.afa import Arc
    >>> arcs = (Arc("a0", "q0", "q1", kind=Kind.EPSILON), Arc("a1", "q1", "q2"))
    >>> sorted(beginning(Afa({}, {}, (), "q0", arcs)))
    ['q0', 'q1']
    """
    first = afa.start if state is None else state
    found, waiting = {first}, [first]
    while waiting:
        state = waiting.pop()
        after = {arc.target for arc in afa.arcs if arc.source == state and arc.kind is Kind.EPSILON} - found
        found |= after
        waiting += after
    return found


def leading(afa: Afa, to: Collection[str]) -> set[str]:
    """Find the states from which a path leads to one of some states, these included.

    >>> from stretto.query.afa import Arc
    >>> arcs = (Arc("a0", "q0", "q1"), Arc("a1", "q1", "q2"), Arc("a2", "q1", "q3"))
    >>> sorted(leading(Afa({}, {}, (), "q0", arcs), ["q2"]))
    ['q0', 'q1', 'q2']
    """
    found = set(to)
    waiting = [*found]
    while waiting:
        state = waiting.pop()
        before = {arc.source for arc in afa.arcs if arc.target == state} - found
        found |= before
        waiting += before
    return found


def steps_left(afa: Afa) -> dict[str, int]:
    """Find how many events, at least, lead from each state to a final one; states from which nothing does are left out.

    >>> from stretto.query.afa import Arc, Emit
    >>> arcs = (Arc("a0", "q0", "q1"), Arc("a1", "q1", "q2"), Arc("a2", "q1", "q3"))
    >>> sorted(steps_left(Afa({}, {}, (), "q0", arcs, {"q2": Emit.EVERY})).items())
    [('q0', 2), ('q1', 1), ('q2', 0)]
    """
    found = dict.fromkeys(afa.finals, 0)
    waiting = [*found]
    while waiting:
        state = waiting.pop(0)
        for arc in afa.arcs:
            steps = found[state] + (arc.kind is not Kind.EPSILON)
            if arc.target == state and steps < found.get(arc.source, steps + 1):
                found[arc.source] = steps
                waiting.append(arc.source)
    return found
