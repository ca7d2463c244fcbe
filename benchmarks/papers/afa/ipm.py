"""IPM (section 6.2): the automaton as data, and a recursive query of two joins that follows it, as a dataflow.

The events join what was reached before them, and then the arcs; what is reached goes around to the first join again. It needs
sequence numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.papers.afa.sides import BATCH, Outcome
from benchmarks.papers.afa.streams import Stream
from benchmarks.papers.measuring import CLOCKS
from stretto.dataflow import Dataflow, fixpoint, stream
from stretto.dataflow import Stream as Relation

__all__ = ["Arc", "plan", "q1_arcs", "q3_arcs", "run"]

#: State before and behind, least and greatest r1, least and greatest r2, and what is added to each; then the change of the price
#: lies between two numbers, which do not belong to it.
Arc = tuple[int, int, int, int, int, int, int, int, float, float]

_FAR = 1 << 20
_NAMES = ("src", "dst", "least1", "most1", "least2", "most2", "plus1", "plus2", "above", "below")
_ANY = (-_FAR, _FAR)
_DOWN, _UP = (-np.inf, 0.0), (0.0, np.inf)


def q1_arcs(*, k: int, drop: float) -> tuple[list[Arc], int]:
    """Q1's arcs, and its final state."""
    arcs = [
        (0, 1, *_ANY, *_ANY, 0, 0, -np.inf, -drop),
        (1, 1, *_ANY, *_ANY, 1, 0, *_DOWN),
        (1, 2, *_ANY, *_ANY, 1, 0, *_DOWN),
        (2, 2, 2, _FAR, *_ANY, -1, 0, *_UP),
        (2, 1, 1, 1, -_FAR, k - 2, -1, 1, *_UP),
        (2, 3, 1, 1, k - 1, k - 1, -1, 1, *_UP),
    ]
    return arcs, 3


def q3_arcs(directions: Sequence[bool]) -> tuple[list[Arc], int]:
    """Q3's arcs, and its final state."""
    arcs = [(at, at + 1, *_ANY, *_ANY, 0, 0, *(_UP if up else _DOWN)) for at, up in enumerate(directions)]
    return arcs, len(arcs)


def plan(window: int, final: int) -> Relation:
    """What is reached in the final state."""
    events = stream("events", {"t": int, "change": float}, insert_only=True)
    arcs = stream("arcs", {name: float if name in ("above", "below") else int for name in _NAMES}, insert_only=True)
    now = events.project("change", now="t", before="t - 1")
    seeds = events.project(b="t", t="t - 1", q=0, r1=0, r2=0)
    reached = fixpoint(
        lambda reach: seeds.union(
            reach.join(now, on={"t": "before"})
            .join(
                arcs,
                on={"q": "src"},
                where="change > above AND change < below AND r1 BETWEEN least1 AND most1 AND r2 BETWEEN least2 AND most2",
            )
            .project(b="b", t="now", q="dst", r1="r1 + plus1", r2="r2 + plus2")
        ),
        schema=seeds,
        bound=window + 1,
        name="reach",
    )
    return reached.where(f"q = {final}")


def run(arcs: list[Arc], final: int, stream_: Stream, window: int, clock: str = "cpu") -> Outcome:
    """Events in order, with a punctuation every window; it runs whenever a batch has come in."""
    flow = Dataflow(matches=plan(window, final))
    columns = dict(zip(_NAMES, map(list, zip(*arcs, strict=True)), strict=True))
    flow.push("arcs", pa.table(columns | {"vs": [-1] * len(arcs)}), punctuation=2**63 - 1)
    flow.run_until_idle()
    parts = []
    together = max(1, BATCH // window)
    for number, begin in enumerate(range(0, stream_.events, window), 1):
        part = stream_.table.slice(begin, window)
        time = part["t"]
        made = {"t": time, "change": part["change"], "vs": time, "ve": pc.add(time, window)}
        parts.append((pa.table(made), begin + part.num_rows, number % together == 0))
    now = CLOCKS[clock]
    rows = 0
    start = now()
    for table, punctuation, runs in parts:
        flow.push("events", table, punctuation=punctuation)
        if runs or punctuation == stream_.events:
            flow.run_until_idle()
            rows += flow.output("matches").num_rows
    seconds = now() - start
    return Outcome(seconds, rows, rows, {"bytes": flow.stats["bytes"]})
