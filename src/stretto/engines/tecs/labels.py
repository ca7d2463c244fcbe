"""Which variable holds which event of a match, where the runs of a complex event disagree.

A complex event is a set of positions; several valuations may stand for it (``A+ AS a; A+ AS b`` splits three events in two
ways). One of them is shown: at each event from the left, the first transition in the automaton's order that some accepting
run takes. As in regular expressions, that makes iterations greedy and alternatives go by order of writing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_TABLE, jit
from stretto.automata.cea import CEA, TRUE
from stretto.automata.determinize import AMBIGUOUS, Determinizer

__all__ = ["Arcs", "Trace", "arcs_of", "resolve"]

I64 = NDArray[np.int64]


class Arcs(NamedTuple):
    """A CEA's transitions in flat arrays, by source and in order. int64."""

    begin: I64  #: [state]: its first transition; one entry more than states
    guard: I64  #: −1: TRUE
    mark: I64  #: 0: ∘
    target: I64
    final: I64  #: [state]: 1 if final


class Trace(NamedTuple):
    """The visited events of the window, oldest first."""

    position: I64
    part: I64
    cls: NDArray[np.int32]


def arcs_of(cea: CEA, determinizer: Determinizer) -> Arcs:
    """The transitions as arrays, with the determinizer's marks."""
    marks = {labels: mark for mark, labels in enumerate(determinizer.marks) if mark != AMBIGUOUS}
    ordered = sorted(cea.transitions, key=lambda t: t.source)
    begin = np.searchsorted([t.source for t in ordered], np.arange(cea.states + 1)).astype(np.int64)
    final = np.zeros(cea.states, np.int64)
    final[list(cea.finals)] = 1
    return Arcs(
        begin,
        np.array([t.guard for t in ordered], np.int64),
        np.array([marks[t.labels] for t in ordered], np.int64),
        np.array([t.target for t in ordered], np.int64),
        final,
    )


@jit
def resolve(
    start: I64,
    end: I64,
    offset: I64,
    position: I64,
    mark: NDArray[np.int32],
    trace: Trace,
    arcs: Arcs,
    truth: NDArray[np.bool_],
    scratch: NDArray[np.bool_],
) -> tuple[int, int]:
    """Replace the ambiguous marks of every match by those of its first valuation.

    Reads the visited events of the match's partition between its ends; ``truth[class, guard]`` says which guards hold.
    Cost: O(those events · transitions) for a match with an ambiguous mark, O(its size) for another. Writes ``mark``. Gives
    (DONE, 0), or (GROW_TABLE, n) when ``scratch`` needs n cells.
    """
    states = arcs.final.size
    for row in range(start.size):
        ambiguous = False
        for i in range(offset[row], offset[row + 1]):
            ambiguous = ambiguous or mark[i] == AMBIGUOUS
        if not ambiguous:
            continue
        first = np.searchsorted(trace.position, start[row])
        last = np.searchsorted(trace.position, end[row])
        part = trace.part[last]
        if (last - first + 2) * states > scratch.size:
            return GROW_TABLE, (last - first + 2) * states
        _backward(first, last, part, offset[row], offset[row + 1], position, trace, arcs, truth, scratch)
        _forward(first, last, part, offset[row], offset[row + 1], position, mark, trace, arcs, truth, scratch)
    return DONE, 0


@jit
def _holds(guard: int, cls: int, truth: NDArray[np.bool_]) -> bool:
    return guard == TRUE or truth[cls, guard]


@jit
def _backward(
    first: int,
    last: int,
    part: int,
    low: int,
    high: int,
    position: I64,
    trace: Trace,
    arcs: Arcs,
    truth: NDArray[np.bool_],
    scratch: NDArray[np.bool_],
) -> None:
    """scratch[(k − first) · states + q]: from q, before event k, the rest of the match can be read."""
    states = arcs.final.size
    base = (last + 1 - first) * states
    for q in range(states):
        scratch[base + q] = arcs.final[q] == 1
    at = high - 1
    for k in range(last, first - 1, -1):
        here = (k - first) * states
        if trace.part[k] != part:
            for q in range(states):
                scratch[here + q] = scratch[here + states + q]
            continue
        marked = at >= low and position[at] == trace.position[k]
        if marked:
            at -= 1
        for q in range(states):
            scratch[here + q] = False
            for arc in range(arcs.begin[q], arcs.begin[q + 1]):
                if (
                    (arcs.mark[arc] != 0) == marked
                    and scratch[here + states + arcs.target[arc]]
                    and _holds(arcs.guard[arc], trace.cls[k], truth)
                ):
                    scratch[here + q] = True
                    break


@jit
def _forward(
    first: int,
    last: int,
    part: int,
    low: int,
    high: int,
    position: I64,
    mark: NDArray[np.int32],
    trace: Trace,
    arcs: Arcs,
    truth: NDArray[np.bool_],
    scratch: NDArray[np.bool_],
) -> None:
    """Walk from the start state by the first transition that keeps the end in reach."""
    states = arcs.final.size
    at = low
    q = 0
    for k in range(first, last + 1):
        if trace.part[k] != part:
            continue
        marked = at < high and position[at] == trace.position[k]
        for arc in range(arcs.begin[q], arcs.begin[q + 1]):
            if (
                (arcs.mark[arc] != 0) == marked
                and scratch[(k + 1 - first) * states + arcs.target[arc]]
                and _holds(arcs.guard[arc], trace.cls[k], truth)
            ):
                if marked:
                    mark[at] = arcs.mark[arc]
                    at += 1
                q = arcs.target[arc]
                break
