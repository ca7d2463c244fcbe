"""What is run: the experiments, each with its sides in turn and its counts checked."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import stretto.engines.afa
from benchmarks.papers.ffp import oracle, queries, streams
from benchmarks.papers.ffp.progress import follow
from benchmarks.papers.ffp.sides import (
    Outcome,
    flow_of,
    links,
    resident,
    run_afa,
    run_flow,
    run_graph,
)
from benchmarks.papers.ffp.streams import Tick
from benchmarks.papers.measuring import CLOCKS, Experiments, Measured

__all__ = ["DEFINITIONS", "EXPERIMENTS", "MODES", "Plan", "Row", "Suite"]

DEFINITIONS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("definitions.toml").read_text(encoding="utf-8"))

MODES = ("hwm", "probing", "hybrid")


@dataclass(frozen=True)
class Plan:
    """How much to run."""

    events: int  #: of the native comparison
    repeat: int  #: timed runs of each side
    steps: int  #: events that are followed step by step
    pushes: int  #: with inactivity between them
    long: int  #: events of the memory experiment
    changes: int  #: of the graph
    peer: int  #: timed runs of Pathway; 0: without it
    only: tuple[str, ...] = ()  #: experiments
    clock: str = "cpu"  #: what this process uses of the processor, or wall time

    @classmethod
    def of(cls, name: str) -> Plan:
        return cls(**DEFINITIONS[name])


@dataclass
class Row(Measured):
    """What was measured of one side at one point of an experiment."""

    experiment: str
    side: str
    x: float | None  #: of the figure's axis; ``None``: there is none
    events: int
    seconds: list[float] = field(default_factory=list)
    rows: int = 0  #: of output
    extra: dict[str, Any] = field(default_factory=dict)
    wrong: str = ""

    def expect(self, found: int, wanted: int, why: str) -> None:
        """Note a wrong count."""
        if found != wanted and not self.wrong:
            self.wrong = f"{found:,} found, {why} {wanted:,}"


class Suite(Experiments):
    """The experiments of the FFP paper."""

    def __init__(self, plan: Plan, say: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(plan, say)
        raw = DEFINITIONS["stream"]
        self.seed: int = raw["seed"]
        self.window: int = raw["window"]

    def rows(self) -> Iterator[Row]:
        """All experiments."""
        yield from self.chosen(EXPERIMENTS)

    def in_turn(self, rows: list[Row], sides: list[Callable[[], Outcome]]) -> Iterator[Row]:
        """The sides take turns: one untimed run each, then the timed ones."""
        for _ in range(1 + self.plan.repeat):
            for row, side in zip(rows, sides, strict=True):
                self.say(f"{row.experiment}: {row.side}")
                outcome = side()
                row.seconds.append(outcome.seconds)
                row.rows = outcome.rows
                row.extra |= {
                    name: outcome.stats[name] for name in ("bytes", "loops", "steps") if name in outcome.stats
                }
        for row in rows:
            row.extra["first"] = row.seconds.pop(0)
        yield from rows

    # -- W ------------------------------------------------------------------------------------------------------------

    def native(self) -> Iterator[Row]:
        """W as a cyclic plan and on the AFA operator, in order (section 5.1)."""
        raw = DEFINITIONS["native"]
        count = self.plan.events
        ups = streams.tosses(count, self.seed)
        rows, sides = [], []
        for span in raw["spans"]:
            ticks = streams.ticks(ups, window=self.window, span=span, batch=span)
            for together in raw["together"]:
                rows.append(Row("native", f"cyclic plan, {span}", together, count))
                sides.append(self._cyclic(ticks, max(1, together // span)))
        table = streams.events(ups, np.arange(count), self.window)
        for every in (None, *raw["spans"]):
            rows.append(Row("native", "AFA, ordered" if every is None else f"AFA, {every}", None, count))
            sides.append(self._operator(table, every))
        found = list(self.in_turn(rows, sides))
        wanted = oracle.count_w(ups.tolist(), range(count), self.window)
        lines = {"plan": queries.lines(queries.w_plan) + len(queries.MACHINE), "afa": queries.lines(queries.w_afa)}
        lines["operator"] = queries.lines_of_package(stretto.engines.afa)
        for row in found:
            row.expect(row.rows, wanted, "the loops find")
            row.extra["lines"] = lines["plan" if row.side.startswith("cyclic") else "afa"]
            if row.side.startswith("AFA"):
                row.extra["operator"] = lines["operator"]
        yield from found

    def _cyclic(self, ticks: list[Tick], together: int) -> Callable[[], Outcome]:
        return lambda: run_flow(flow_of(self.window), ticks, together, self.plan.clock)

    def _operator(self, table: Any, every: int | None) -> Callable[[], Outcome]:
        return lambda: run_afa(queries.w_afa(self.window), table, 1 << 16, self.plan.clock, every=every)

    # -- progress -----------------------------------------------------------------------------------------------------

    def disorder(self) -> Iterator[Row]:
        """Every 100th event comes earlier by some punctuations (figures 6, 8, 10)."""
        raw, span = DEFINITIONS["disorder"], DEFINITIONS["progress"]["span"]
        ups = streams.tosses(self.plan.steps, self.seed)
        wanted = oracle.count_w(ups.tolist(), range(ups.size), self.window)
        for ahead in raw["ahead"]:
            places = streams.shifted(ups.size, raw["every"], ahead * span)
            ticks = streams.ticks(ups, window=self.window, span=span, batch=1, places=places)
            yield from self._followed("disorder", ahead, ticks, wanted)

    def inactivity(self) -> Iterator[Row]:
        """Steps between pushes of 100 events (figure 7)."""
        raw = DEFINITIONS["inactivity"]
        ups = streams.tosses(100 * self.plan.pushes, self.seed)
        wanted = oracle.count_w(ups.tolist(), range(ups.size), self.window)
        ticks = streams.ticks(ups, window=self.window, span=100, batch=100)
        for interval in raw["intervals"]:
            yield from self._followed("inactivity", interval, ticks, wanted, interval=interval, look=50)

    def lulls(self) -> Iterator[Row]:
        """All events between two punctuations are left out with some likelihood (figures 9, 11)."""
        raw, span = DEFINITIONS["lulls"], DEFINITIONS["progress"]["span"]
        ups = streams.tosses(self.plan.steps, self.seed)
        for likelihood in raw["likelihoods"]:
            left = streams.lulls(ups.size, span, likelihood, self.seed + 1)
            here = np.flatnonzero(left)
            wanted = oracle.count_w(ups[here].tolist(), here.tolist(), self.window)
            ticks = streams.ticks(ups, window=self.window, span=span, batch=1, left=left)
            yield from self._followed("lulls", likelihood, ticks, wanted)

    def _followed(
        self,
        name: str,
        x: float,
        ticks: list[Tick],
        wanted: int,
        *,
        interval: int | None = None,
        look: int | None = None,
    ) -> Iterator[Row]:
        raw = DEFINITIONS["progress"]
        events = sum(tick.table.num_rows for tick in ticks if tick.table is not None)
        for mode in MODES:
            self.say(f"{name}: {mode}, {x:g}")
            row = Row(name, mode, x, events)
            start = CLOCKS[self.plan.clock]()
            found = follow(ticks, self.window, mode, interval=interval or raw["interval"], look=look or raw["look"])
            row.seconds = [CLOCKS[self.plan.clock]() - start]
            row.rows = found.matches
            row.extra = found.record() | {
                "span": raw["span"],
                "given": sum(tick.punctuation is not None for tick in ticks),
            }
            row.expect(found.matches, wanted, "the loops find")
            if not found.idle:
                row.wrong = "something is under way in the end"
            yield row

    # -- graphs -------------------------------------------------------------------------------------------------------

    def reachability(self) -> Iterator[Row]:
        """Links that come and go, against Pathway."""
        raw = DEFINITIONS["reachability"]
        changes, size = self.plan.changes, raw["batch"]
        graph = streams.graph(changes, int(raw["nodes"] * changes), raw["removals"], self.seed)
        wanted = oracle.reachable(graph.links())
        row = Row("reachability", "stretto", None, changes)
        row.extra |= {"pairs": len(wanted), "removed": int(graph.removed.sum())}
        walls = []
        for _ in range(1 + self.plan.repeat):
            self.say("reachability: stretto")
            outcome = run_graph(graph, size, "cpu")
            row.seconds.append(outcome.seconds)
            walls.append(outcome.extra["wall"])
        row.extra["first"] = row.seconds.pop(0)
        row.rows = outcome.rows
        row.extra |= {"wall": walls[1:], "bytes": outcome.stats["bytes"]}
        if links(run_graph(graph, size, keep=True).extra["tables"]) != wanted:
            row.wrong = "the pairs in the end are not those that searches from each node find"
        yield row
        yield from self._pathway(graph, size, wanted)

    def _pathway(self, graph: streams.Graph, size: int, wanted: set[tuple[int, int]]) -> Iterator[Row]:
        from benchmarks.peers.launch import PeerUnavailableError
        from benchmarks.peers.pathway import launch
        from benchmarks.spark.streams import cache_folder

        if not self.plan.peer:
            self.skipped.append("Pathway: not asked for")
            return
        row = Row("reachability", "Pathway", None, graph.changes)
        self.say("reachability: Pathway")
        try:
            peer = launch.prepare(cache_folder())
            found = peer.run(graph.src, graph.dst, graph.removed, batch=size, repeat=self.plan.peer, keep=True)
        except PeerUnavailableError as error:
            self.skipped.append(f"Pathway: {error}")
            return
        row.seconds = [run["cpu"] for run in found["runs"]]
        row.extra = {
            "wall": [run["wall"] for run in found["runs"]],
            "start": found["start"],
            "pairs": len(found["pairs"]),
        }
        if found["pairs"] != wanted:
            row.wrong = "the pairs in the end are not those that searches from each node find"
        yield row

    def cost(self) -> Iterator[Row]:
        """The same changes of the result in graphs of growing size."""
        raw = DEFINITIONS["cost"]
        length, changes = raw["length"], raw["changes"]
        for number, chains in enumerate((raw["chains"][0], *raw["chains"])):
            graph = streams.components(chains, length, changes, self.seed)
            self.say(f"cost: {chains} chains")
            outcome = run_graph(graph, raw["batch"], self.plan.clock, skip=chains * length)
            if not number:
                continue  # a run that is not counted
            # The median: that arrays double now and then costs as much as all of them hold, which few changes do not make up for.
            seconds = median(outcome.extra["each"]) * len(outcome.extra["each"])
            row = Row("cost", "stretto", chains * length, changes, [seconds], outcome.rows)
            row.extra["all"] = outcome.seconds
            row.extra["pairs"] = chains * length * (length + 1) // 2
            row.extra["bytes"] = outcome.stats["bytes"]
            row.expect(outcome.rows, changes * length, "each change has its pairs:")
            yield row

    # -- memory -------------------------------------------------------------------------------------------------------

    def memory(self) -> Iterator[Row]:
        """W over a long stream with regular punctuation."""
        raw = DEFINITIONS["memory"]
        span, together = raw["span"], raw["together"]
        count = self.plan.long // together * together
        row = Row("memory", "cyclic plan", None, count)
        flow = flow_of(self.window)
        draw = np.random.default_rng(self.seed)
        seen: list[tuple[int, int, int]] = []
        seconds = 0.0
        pace = max(together, count // raw["looks"])
        tail = np.zeros(0, np.bool_)
        wanted = 0
        for begin in range(0, count, together):
            self.say(f"memory: {begin:,}")
            ups = draw.random(together) < 0.5
            whole = np.concatenate([tail, ups])
            # What is found here ends here: what the events of the window before give alone is taken off.
            wanted += oracle.count_w(whole.tolist(), range(whole.size), self.window)
            wanted -= oracle.count_w(tail.tolist(), range(tail.size), self.window)
            tail = whole[-self.window :]
            times = np.arange(begin, begin + together)
            table = streams.events(ups, times - begin, self.window)
            table = (
                table.set_column(0, "t", [times])
                .set_column(2, "vs", [times])
                .set_column(3, "ve", [times + self.window])
            )
            start = CLOCKS[self.plan.clock]()
            for at in range(0, together, span):
                flow.push("symbols", table.slice(at, span), punctuation=begin + min(at + span, together))
            flow.run_until_idle()
            row.rows += flow.output("w").num_rows
            seconds += CLOCKS[self.plan.clock]() - start
            passed = begin + together
            if passed // pace > begin // pace:
                seen.append((passed, flow.stats["bytes"], resident()))
        row.seconds, row.extra["bytes"] = [seconds], seen
        row.expect(row.rows, wanted, "the loops find")
        yield row


#: Experiments by name: what they show, and their code.
EXPERIMENTS: dict[str, tuple[str, Callable[[Suite], Iterator[Row]]]] = {
    "native": ("W as a cyclic plan and on the AFA operator (section 5.1)", Suite.native),
    "disorder": ("every 100th event early (figures 6, 8, 10)", Suite.disorder),
    "inactivity": ("steps between pushes (figure 7)", Suite.inactivity),
    "lulls": ("nothing between punctuations (figures 9, 11)", Suite.lulls),
    "reachability": ("a graph that changes, against Pathway", Suite.reachability),
    "cost": ("a change in graphs of growing size", Suite.cost),
    "memory": ("memory over a long stream", Suite.memory),
}
