"""Which variable holds which event of a match, where the runs of a complex event disagree.

A complex event is a set of positions; several valuations may stand for it (``A+ AS a; A+ AS b`` splits three events in two
ways). One of them is shown: at each event from the left, the first transition in the automaton's order that some accepting
run takes. As in regular expressions, that makes iterations greedy and alternatives go by order of writing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_TABLE, inlined, jit
from stretto.automata.cea import CEA, TRUE
from stretto.automata.determinize import AMBIGUOUS, Determinizer
from stretto.engines.api import Matches

I64 = NDArray[np.int64]


class Arcs(NamedTuple):
    """A CEA's transitions in flat arrays, by source and in order. int64."""

    begin: I64  #: [state]: its first transition; one entry more than states
    guard: I64  #: column of the truth table; −1: TRUE
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
        np.array([t.guard if t.guard >= TRUE else len(cea.guards) + TRUE - 1 - t.guard for t in ordered], np.int64),
        np.array([marks[t.labels] for t in ordered], np.int64),
        np.array([t.target for t in ordered], np.int64),
        final,
    )


class Span(NamedTuple):
    """One match: the visited events between its ends, its partition, the class of its last event, and where its positions lie."""

    first: int
    last: int  #: where its last event is in the trace, or would be
    part: int
    cls: int
    marks: bool  #: whether its last event is marked
    low: int
    high: int


@jit
def resolve(
    found: Matches,
    last_class: NDArray[np.int32],
    trace: Trace,
    arcs: Arcs,
    truth: NDArray[np.bool_],
    scratch: NDArray[np.bool_],
) -> tuple[int, int]:
    """Replace the ambiguous marks of every match by those of its first valuation.

    Reads the visited events of the match's partition from its first on, up to its last, of which only the class is asked for
    (``last_class``, by match); ``truth[class, guard]`` says which guards hold.
    Cost: O(those events · transitions) for a match with an ambiguous mark, O(its size) for another. Writes ``mark``. Gives
    (DONE, 0), or (GROW_TABLE, n) when ``scratch`` needs n cells.
    """
    states = arcs.final.size
    for row in range(found.start.size):
        low, high = found.offset[row], found.offset[row + 1]
        ambiguous = False
        for i in range(low, high):
            ambiguous = ambiguous or found.mark[i] == AMBIGUOUS
        if not ambiguous:
            continue
        first = np.searchsorted(trace.position, found.start[row])
        last = np.searchsorted(trace.position, found.end[row])
        if (last - first + 2) * states > scratch.size:
            return GROW_TABLE, (last - first + 2) * states
        marks = found.position[high - 1] == found.end[row]
        span = Span(first, last, trace.part[first], last_class[row], marks, low, high)
        _backward(span, found.position, trace, arcs, truth, scratch)
        _forward(span, found.position, found.mark, trace, arcs, truth, scratch)
    return DONE, 0


def resolved(found: Matches, last_class: NDArray[np.int32], trace: Trace, arcs: Arcs, truth: NDArray[np.bool_]) -> None:
    """:func:`resolve`, with as much scratch space as it takes."""
    scratch = np.empty(1 << 12, np.bool_)
    while True:
        status, need = resolve(found, last_class, trace, arcs, truth, scratch)
        if status == DONE:
            return
        scratch = np.empty(2 * int(need), np.bool_)


@inlined
def _reads(arc: int, marked: bool, cls: int, arcs: Arcs, truth: NDArray[np.bool_]) -> bool:
    """Whether a transition reads an event of a class, marking it or not."""
    guard = arcs.guard[arc]
    return (arcs.mark[arc] != 0) == marked and (guard == TRUE or truth[cls, guard])


@inlined
def _backward(
    span: Span, position: I64, trace: Trace, arcs: Arcs, truth: NDArray[np.bool_], scratch: NDArray[np.bool_]
) -> None:
    """scratch[(k − first) · states + q]: from q, before event k, the rest of the match can be read."""
    states = arcs.final.size
    base = (span.last + 1 - span.first) * states
    for q in range(states):
        scratch[base + q] = arcs.final[q] == 1
    at = span.high - 1
    for k in range(span.last, span.first - 1, -1):
        here = (k - span.first) * states
        marked, cls = span.marks, span.cls
        if k < span.last:
            if trace.part[k] != span.part:
                for q in range(states):
                    scratch[here + q] = scratch[here + states + q]
                continue
            marked, cls = at >= span.low and position[at] == trace.position[k], trace.cls[k]
        if marked:
            at -= 1
        for q in range(states):
            scratch[here + q] = False
            for arc in range(arcs.begin[q], arcs.begin[q + 1]):
                if scratch[here + states + arcs.target[arc]] and _reads(arc, marked, cls, arcs, truth):
                    scratch[here + q] = True
                    break


@inlined
def _forward(
    span: Span,
    position: I64,
    mark: NDArray[np.int32],
    trace: Trace,
    arcs: Arcs,
    truth: NDArray[np.bool_],
    scratch: NDArray[np.bool_],
) -> None:
    """Walk from the start state by the first transition that keeps the end in reach."""
    states = arcs.final.size
    at = span.low
    q = 0
    for k in range(span.first, span.last + 1):
        marked, cls = span.marks, span.cls
        if k < span.last:
            if trace.part[k] != span.part:
                continue
            marked, cls = at < span.high and position[at] == trace.position[k], trace.cls[k]
        after = (k + 1 - span.first) * states
        for arc in range(arcs.begin[q], arcs.begin[q + 1]):
            if scratch[after + arcs.target[arc]] and _reads(arc, marked, cls, arcs, truth):
                if marked:
                    mark[at] = arcs.mark[arc]
                    at += 1
                q = arcs.target[arc]
                break
