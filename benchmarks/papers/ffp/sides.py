"""How streams are run through a dataflow and through the AFA operator, and what is noted."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import stretto
from benchmarks.papers.ffp import queries
from benchmarks.papers.ffp.streams import Graph, Tick
from benchmarks.papers.measuring import CLOCKS
from stretto.dataflow import Dataflow

__all__ = ["Outcome", "final", "flow_of", "links", "resident", "run_afa", "run_flow", "run_graph"]

#: The greatest time.
NEVER_ENDS = 2**63 - 1


@dataclass
class Outcome:
    """A run over a stream."""

    seconds: float
    rows: int  #: of output
    stats: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


def flow_of(window: int, *, speculation: str = "hybrid", partial: bool = False) -> Dataflow:
    """W with its automaton loaded; the output is what ends in state F (``w``), or all that is reached (``reach``)."""
    plan = queries.w_plan(window)
    flow = Dataflow(speculation=speculation, **({"reach": plan} if partial else {"w": plan.where("q = 'F'")}))
    flow.push("transitions", queries.transitions())
    flow.advance(NEVER_ENDS, "transitions")
    flow.run_until_idle()
    return flow


def final(table: pa.Table) -> int:
    """Of the states that were reached, those that are final."""
    return int(pc.sum(pc.equal(table["q"], "F")).as_py() or 0)


def run_flow(flow: Dataflow, ticks: Sequence[Tick], together: int, clock: str = "cpu") -> Outcome:
    """Push, and run until idle after every so many ticks; output is counted and dropped."""
    now = CLOCKS[clock]
    rows = 0
    start = now()
    for begin in range(0, len(ticks), together):
        for tick in ticks[begin : begin + together]:
            flow.push("symbols", tick.table, punctuation=tick.punctuation)
        flow.run_until_idle()
        rows += flow.output("w").num_rows
    return Outcome(now() - start, rows, flow.stats)


def run_afa(afa: stretto.AFA, table: pa.Table, size: int, clock: str = "cpu", *, every: int | None = None) -> Outcome:
    """The same on the operator, in batches of ``size`` rows: in order, or with a punctuation every so many events."""
    now = CLOCKS[clock]
    table = table.select(["t", "sym"])
    matcher = stretto.Matcher(afa, table.schema, time="t", ordered=every is None)
    batches = []
    for begin in range(0, table.num_rows, size):
        part = table.slice(begin, size)
        rows = range(every, part.num_rows + 1, every) if every else ()
        batches.append((part, [(row, begin + row) for row in rows]))
    rows_out = 0
    start = now()
    for part, pairs in batches:
        rows_out += matcher.push(part, **({"punctuations": pairs} if every else {})).num_rows
    return Outcome(now() - start, rows_out, dict(matcher.stats))


def run_graph(graph: Graph, size: int, clock: str = "cpu", *, keep: bool = False, skip: int = 0) -> Outcome:
    """A graph's changes, with a punctuation and a look at the output behind each batch; the first ``skip`` are not timed."""
    now = CLOCKS[clock]
    flow = Dataflow(reach=queries.reachability())
    batches = graph.batches(size, first=skip)
    tables = []
    rows = 0
    walls = 0.0
    each = []
    for tick in batches:
        start, wall = now(), time.perf_counter()
        flow.push("links", tick.table, punctuation=tick.punctuation)
        flow.run_until_idle()
        table = flow.output("reach")
        passed, wall = now() - start, time.perf_counter() - wall
        if (tick.punctuation or 0) > skip:
            each.append(passed)
            walls += wall
            rows += table.num_rows
        if keep:
            tables.append(table)
    return Outcome(sum(each), rows, flow.stats, {"tables": tables, "wall": walls, "each": each})


def links(tables: Sequence[pa.Table]) -> set[tuple[int, int]]:
    """The pairs that live without end after all changes of an output."""
    found: dict[tuple[int, int, int], int] = {}
    for table in tables:
        for src, dst, begin, end, ends in _rows(table):
            if end is None:
                one = (src, dst, begin)
                found[one] = found.get(one, 0) + (1 if ends is None else -1)
    return {(src, dst) for (src, dst, _), count in found.items() if count}


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in ("src", "dst", "vs", "ve", "ve_new")), strict=True)


def resident() -> int:
    """Bytes of this process in memory; where the system does not say, the most that there were."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
