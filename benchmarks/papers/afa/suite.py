"""What is run: the experiments of the figures, each with its sides in turn and its counts checked."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import stretto
from benchmarks.papers.afa import ipm, oracle, queries, speculation, streams
from benchmarks.papers.afa.sides import BATCH, Outcome, batches_with, restarts, run, size
from benchmarks.papers.afa.streams import Stream
from benchmarks.papers.measuring import CLOCKS, Experiments, Measured

__all__ = ["DEFINITIONS", "EXPERIMENTS", "Plan", "Row", "Suite"]

DEFINITIONS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("definitions.toml").read_text(encoding="utf-8"))

F64 = NDArray[np.float64]

#: A side: runs once.
Side = Callable[[], Outcome]


@dataclass(frozen=True)
class Plan:
    """How much to run."""

    events: int
    repeat: int  #: timed runs of each side
    long: int  #: events of the memory experiment
    restarts: int  #: measured for each interval between changes
    prefix: int  #: events that plain loops go over
    flink: int  #: events that Flink reads; 0: without Flink
    only: tuple[str, ...] = ()  #: experiments
    clock: str = "cpu"  #: what this process uses of the processor, or wall time
    yahoo: Path | None = None

    @classmethod
    def of(cls, name: str) -> Plan:
        return cls(**DEFINITIONS[name], yahoo=streams.yahoo_path())


@dataclass
class Row(Measured):
    """What was measured of one side at one point of an experiment."""

    experiment: str
    query: str
    side: str
    x: float | None  #: of the figure's axis; ``None``: there is none, or without a bound
    events: int
    data: str = "synthetic"
    seconds: list[float] = field(default_factory=list)
    rows: int = 0  #: of output, those that take back included
    net: int = 0
    bytes: int = 0  #: of all arrays, at the end
    held: int = 0  #: of the most partial matches at once
    extra: dict[str, Any] = field(default_factory=dict)
    wrong: str = ""


class Suite(Experiments):
    """The experiments of the AFA paper."""

    def rows(self) -> Iterator[Row]:
        """All experiments."""
        yield from self.chosen(EXPERIMENTS)

    # -- what all have in common --------------------------------------------------------------------------------------

    def raw(self, name: str) -> dict[str, Any]:
        """A section of the definitions."""
        found: dict[str, Any] = DEFINITIONS[name]
        return found

    def row(self, experiment: str, query: str, side: str, events: int) -> Row:
        """A row without a place on an axis."""
        return Row(experiment, query, side, None, events)

    def changes(self, up: float, events: int | None = None) -> F64:
        """Ticks of the paper's generator."""
        raw = DEFINITIONS["stream"]
        count = self.plan.events if events is None else events
        return streams.ticks(count, up=up, mean=raw["mean"], deviation=raw["deviation"], seed=raw["seed"])

    def run(self, afa: stretto.AFA, stream: Stream, **options: Any) -> Side:
        """A side that pushes a stream into a matcher."""
        batches = batches_with(stream)
        return lambda: run(afa, batches, self.plan.clock, **options)

    def in_turn(self, rows: list[Row], sides: list[Side]) -> Iterator[Row]:
        """The sides take turns: one untimed run each, then the timed ones."""
        for _ in range(1 + self.plan.repeat):
            for row, side in zip(rows, sides, strict=True):
                self.say(f"{row.experiment}: {row.query}, {row.side}" + ("" if row.x is None else f", {row.x:g}"))
                outcome = side()
                row.seconds.append(outcome.seconds)
                row.rows, row.net, row.held = outcome.rows, outcome.net, outcome.held
                row.bytes = outcome.stats.get("bytes", 0)
        for row in rows:
            row.extra["first"] = row.seconds.pop(0)
        yield from rows

    def same(self, rows: list[Row], expected: int, why: str) -> None:
        """Note rows whose outputs, when all is said, are not as many as expected."""
        for row in rows:
            if row.net != expected and not row.wrong:
                row.wrong = f"{row.net:,} outputs, {why} {expected:,}"

    def check_prefix(self, row: Row, afa: stretto.AFA, stream: Stream, found: list[oracle.Found]) -> None:
        """Compare what an automaton finds in the beginning of a stream with what the loops find, output by output."""
        prefix = stream.table.slice(0, self.plan.prefix)
        table = stretto.Matcher(afa, prefix.schema, time="t", ordered=True).push(prefix)
        registers = [tuple(value.values()) for value in table["register"].to_pylist()]
        here = sorted(zip(table["start"].to_pylist(), table["end"].to_pylist(), registers, strict=True))
        if here != sorted(found):
            row.wrong = f"{len(here):,} outputs in the first {self.plan.prefix:,} events, the loops find {len(found):,}"

    # -- figures ------------------------------------------------------------------------------------------------------

    def figure8(self) -> Iterator[Row]:
        """Throughput of the approaches, in order; and of Q3, for its goal."""
        raw = DEFINITIONS["figure8"]
        window, k = raw["window"], raw["k"]
        for data, drop in raw["drops"].items():
            changes = self._changes_of(data, raw["up"])
            if changes is None:
                continue
            stream = streams.quotes(changes)
            plain = queries.q1(window, k=k, drop=drop)
            sides = self._approaches(plain, stream, window) | {
                "AFA+ignore": self.run(queries.q1(window, k=k, drop=drop, ignores=True), stream.punctuated(window)),
                "CAN": self.run(queries.embedded(window, k=k, drop=drop), stream.punctuated(window)),
                "IPM": self._joins(*ipm.q1_arcs(k=k, drop=drop), stream, window),
            }
            rows = [Row("8", "Q1", name, None, stream.events, data) for name in sides]
            yield from self._counted(rows, sides, plain, stream, window, k, drop)
        changes = self.changes(raw["up"])
        stream = streams.quotes(changes)
        sides = self._approaches(queries.q3(window), stream, window)
        sides["IPM"] = self._joins(*ipm.q3_arcs(queries.shape()), stream, window)
        rows = [Row("8", "Q3", name, None, changes.size) for name in sides]
        found = list(self.in_turn(rows, list(sides.values())))
        self.same(found, oracle.q3(changes, queries.shape()), "the loops find")
        yield from found

    def _joins(self, arcs: list[ipm.Arc], final: int, stream: Stream, window: int) -> Side:
        """The automaton as a recursive query."""
        return lambda: ipm.run(arcs, final, stream, window, self.plan.clock)

    def _counted(
        self,
        rows: list[Row],
        sides: dict[str, Side],
        afa: stretto.AFA,
        stream: Stream,
        window: int,
        k: int,
        drop: float,
    ) -> Iterator[Row]:
        """Q1 on all sides; they give the same, and in the beginning what the loops give."""
        found = list(self.in_turn(rows, list(sides.values())))
        self.same(found, found[0].net, f"{found[0].side} gives")
        start = stream.table["change"].slice(0, self.plan.prefix).to_pylist()
        self.check_prefix(found[0], afa, stream, oracle.q1(start, window, k=k, drop=drop))
        yield from found

    def _changes_of(self, data: str, up: float) -> F64 | None:
        if data == "synthetic":
            return self.changes(up)
        if self.plan.yahoo is None or not self.plan.yahoo.exists():
            self.skipped.append(
                "figure 8 on Yahoo's prices: no file yhoo_daily….csv.gz in the data folder (STRETTO_DATA, --yahoo)"
            )
            return None
        return streams.yahoo(self.plan.events, self.plan.yahoo)

    def _approaches(self, afa: stretto.AFA, stream: Stream, window: int) -> dict[str, Side]:
        """An automaton on the operator's basic flavours."""
        punctuated = stream.punctuated(window)
        return {
            "ordered": self.run(afa, stream, ordered=True),
            "AFA": self.run(afa, punctuated),
            "AFA+O": self.run(afa, punctuated, numbered="number"),
        }

    def figure9(self) -> Iterator[Row]:
        """Arcs that are replaced while the query runs."""
        raw = DEFINITIONS["figure9"]
        window = raw["window"]
        # Each arc's text is read when it comes for the first time; a long stream makes up for that.
        changes = self.changes(raw["up"], raw["times"] * self.plan.events)
        stream = streams.quotes(changes)
        punctuated = stream.punctuated(window)
        afa = queries.q3(window)
        rows, sides, expected = [Row("9", "Q3", "static", None, stream.events)], [self.run(afa, punctuated)], []
        expected.append(oracle.q3(changes, queries.shape()))
        again = []
        for every in raw["intervals"]:
            plan = Replacements.of(stream.events, every)
            rows.append(Row("9", "Q3", "dynamic", every, stream.events))
            sides.append(self._replacing(afa, punctuated, plan))
            expected.append(oracle.changing(changes, plan.directions(stream.events)))
            again.append(self._restarting(stream, plan, every, window))
        found = list(self.in_turn(rows, sides))
        for row, count in zip(found, expected, strict=True):
            self.same([row], count, "the loops find")
        yield from found
        for row, side in again:
            yield from self.in_turn([row], [side])

    def _replacing(self, afa: stretto.AFA, stream: Stream, plan: Replacements) -> Side:
        batches = []
        begin = 0
        for table, pairs in stream.batches(BATCH):
            batches.append((table, pairs, plan.arcs(begin, begin + table.num_rows)))
            begin += table.num_rows
        return lambda: run(afa, batches, self.plan.clock)

    def _restarting(self, stream: Stream, plan: Replacements, every: int, window: int) -> tuple[Row, Side]:
        count = max(1, min(self.plan.restarts, (stream.events - window) // every))
        afas = [queries.q3(window, shape) for shape in plan.shapes(count)]
        row = Row("9", "Q3", "restart", every, count * every)
        return row, lambda: restarts(afas, stream, every, window, self.plan.clock)

    def figure10(self) -> Iterator[Row]:
        """Output and latency against the speculation factor (figures 10 and 11)."""
        raw = DEFINITIONS["figure10"]
        window, k, drop = raw["window"], raw["k"], DEFINITIONS["stream"]["drop"]
        afa = queries.q1(window, k=k, drop=drop, ignores=True)
        for share in raw["ignorable"]:
            ordered = streams.quotes(self.changes(raw["up"]), ignorable=share)
            stream = streams.late(ordered, raw["late"], raw["most"]).punctuated(window)
            expected = run(afa, batches_with(ordered), ordered=True).net
            numbered = [Row("10", "Q1", "AFA+O", None, stream.events, extra={"ignorable": share})]
            yield from self.in_turn(numbered, [self.run(afa, stream, numbered="number")])
            self.same(numbered, expected, "in order there are")
            for factor in [*raw["speculation"], None]:
                row = Row("10", "Q1", f"I = {share} %", factor, stream.events, extra={"ignorable": share})
                self.say(f"10: Q1, I = {share} %, speculation {factor}")
                outcome, latency = speculation.run(afa, stream, factor, self.plan.clock)
                row.seconds, row.rows, row.net, row.held = [outcome.seconds], outcome.rows, outcome.net, outcome.held
                row.bytes = outcome.stats["bytes"]
                row.extra["latency"] = latency
                self.same([row], expected, "in order there are")
                yield row

    def figure12(self) -> Iterator[Row]:
        """Throughput and memory against disorder (figures 12 and 13)."""
        raw = DEFINITIONS["figure12"]
        window, drop = raw["window"], DEFINITIONS["stream"]["drop"]
        ordered = streams.quotes(self.changes(raw["up"]))
        afa = queries.q2(window, drop=drop)
        expected = run(afa, batches_with(ordered), ordered=True).net
        for share in raw["late"]:
            stream = streams.late(ordered, share, raw["most"]).punctuated(window)
            sides = {"AFA": self.run(afa, stream), "AFA+O": self.run(afa, stream, numbered="number")}
            rows = [Row("12", "Q2", name, share, stream.events) for name in sides]
            found = list(self.in_turn(rows, list(sides.values())))
            self.same(found, expected, "in order there are")
            if not share:
                start = ordered.table.slice(0, self.plan.prefix)
                loops = oracle.q2(start["change"].to_pylist(), start["price"].to_pylist(), window, drop=drop)
                self.check_prefix(found[0], afa, ordered, loops)
            yield from found

    def figure16(self) -> Iterator[Row]:
        """Throughput and memory against ignorable events (figures 16 and 17)."""
        raw = DEFINITIONS["figure16"]
        window, k, drop = raw["window"], raw["k"], raw["drop"]
        afa = queries.q1(window, k=k, drop=drop, ignores=True)
        for share in raw["ignorable"]:
            stream = streams.quotes(self.changes(raw["up"]), ignorable=share)
            punctuated = stream.punctuated(window)
            sides = {"AFA+ignore": self.run(afa, punctuated), "AFA": self.run(afa, punctuated, ignore=False)}
            rows = [Row("16", "Q1", name, share, stream.events) for name in sides]
            yield from self._counted(rows, sides, afa, stream, window, k, drop)

    def late(self) -> Iterator[Row]:
        """What events that come late by up to 5,000 cost each query, beside the same in order."""
        raw = DEFINITIONS["late"]
        window, drop = raw["window"], DEFINITIONS["stream"]["drop"]
        for query, afa, up in (
            ("Q1", queries.q1(window, k=1, drop=drop), 0.5),
            ("Q2", queries.q2(window, drop=drop), 0.7),
            ("Q3", queries.q3(window), 0.5),
        ):
            ordered = streams.quotes(self.changes(up))
            delayed = streams.late(ordered, raw["late"], raw["most"]).punctuated(window)
            sides, rows = [], []
            for name, options in (("AFA", {}), ("AFA+O", {"numbered": "number"})):
                for share, stream in ((0.0, ordered.punctuated(window)), (raw["late"], delayed)):
                    rows.append(Row("late", query, name, share, stream.events))
                    sides.append(self.run(afa, stream, **options))
            found = list(self.in_turn(rows, sides))
            self.same(found, found[0].net, "in order there are")
            yield from found

    def memory(self) -> Iterator[Row]:
        """Bytes over a long stream with a punctuation every window."""
        raw = DEFINITIONS["memory"]
        window = raw["window"]
        piece = streams.quotes(self.changes(raw["up"], min(self.plan.long, 1_000_000))).table
        drop = DEFINITIONS["stream"]["drop"]
        for query, afa in (("Q1", queries.q1(window, drop=drop)), ("Q3", queries.q3(window))):
            self.say(f"memory: {query}")
            yield self._long(Row("memory", query, "AFA", None, 0), afa, piece, window, raw["looks"])

    def _long(self, row: Row, afa: stretto.AFA, piece: pa.Table, window: int, looks: int) -> Row:
        """The piece again and again, until there are enough events; a look at the memory now and then."""
        now = CLOCKS[self.plan.clock]
        matcher = stretto.Matcher(afa, piece.schema, time="t")
        pace = max(1, self.plan.long // looks)
        seen, seconds = [], 0.0
        while row.events < self.plan.long:
            count = min(BATCH, self.plan.long - row.events)
            batch = piece.slice(row.events % piece.num_rows, count)
            batch = batch.set_column(0, "t", pa.array(np.arange(row.events, row.events + batch.num_rows)))
            first = -row.events % window or window
            pairs = [(at, row.events + at) for at in range(first, batch.num_rows + 1, window)]
            start = now()
            found = matcher.push(batch, punctuations=pairs)
            seconds += now() - start
            rows, net = size([found])
            row.rows, row.net = row.rows + rows, row.net + net
            if row.events // pace < (row.events + batch.num_rows) // pace:
                seen.append((row.events + batch.num_rows, matcher.stats["bytes"]))
            row.events += batch.num_rows
        row.seconds, row.bytes = [seconds], matcher.stats["bytes"]
        row.extra["bytes"] = seen
        return row

    def flink(self) -> Iterator[Row]:
        """Flink SQL's MATCH_RECOGNIZE on the V-pattern."""
        from benchmarks.papers.afa.flink import rows

        if not self.plan.flink:
            self.skipped.append("flink: not asked for")
            return
        yield from rows(self)


@dataclass(frozen=True)
class Replacements:
    """Changes of Q3: every so many events a random arc is replaced by one in the other direction."""

    at: NDArray[np.int64]  #: events before the change
    arc: NDArray[np.int64]
    up: NDArray[np.bool_]  #: the direction that the arc gets

    @classmethod
    def of(cls, events: int, every: int, seed: int = 5) -> Replacements:
        at = np.arange(every, events, every)
        arc = np.random.default_rng(seed).integers(8, size=at.size)
        up = np.zeros(at.size, np.bool_)
        for number, first in enumerate(queries.shape()):
            own = np.flatnonzero(arc == number)
            up[own] = (np.arange(own.size) % 2 == 1) == first
        return cls(at, arc, up)

    def arcs(self, begin: int, end: int) -> pa.Table:
        """The changes behind row ``begin`` up to row ``end``, as a second stream for ``push``."""
        here = slice(np.searchsorted(self.at, begin, side="right"), np.searchsorted(self.at, end, side="right"))
        arc, count = np.repeat(self.arc[here], 2), 2 * self.at[here].size
        adds = np.arange(count) % 2 == 1
        names = np.array([f"a{number}" for number in range(8)])
        states = np.array([f"q{number}" for number in range(9)])
        fences = np.array([queries.DIRECTIONS[False], queries.DIRECTIONS[True]])

        def text(words: NDArray[np.str_], which: NDArray[np.int64]) -> pa.Array:
            return pa.DictionaryArray.from_arrays(pa.array(which), pa.array(words.tolist()))

        return pa.table(
            {
                "row": np.repeat(self.at[here], 2) - begin,
                "action": text(np.array(["retire", "add"]), adds.astype(np.int64)),
                "id": text(names, arc),
                "source": text(states, arc),
                "target": text(states, arc + 1),
                "when": text(fences, np.repeat(self.up[here], 2).astype(np.int64)),
            }
        )

    def directions(self, events: int) -> NDArray[np.bool_]:
        """[arc, event]: whether the arc is an uptick when the event comes."""
        found = np.zeros((8, events), np.bool_)
        for number, first in enumerate(queries.shape()):
            flips = np.zeros(events, np.int64)
            flips[self.at[self.arc == number]] = 1
            found[number] = (np.cumsum(flips) % 2 == 1) ^ first
        return found

    def shapes(self, count: int) -> list[tuple[bool, ...]]:
        """Q3 after each of the first ``count`` changes."""
        now, found = list(queries.shape()), []
        for number in range(count):
            now[int(self.arc[number])] = bool(self.up[number])
            found.append(tuple(now))
        return found


#: Experiments by name: what they show, and their code.
EXPERIMENTS: dict[str, tuple[str, Callable[[Suite], Iterator[Row]]]] = {
    "8": ("throughput across approaches", Suite.figure8),
    "9": ("dynamic patterns", Suite.figure9),
    "10": ("output size (10) and latency (11) against the speculation factor", Suite.figure10),
    "12": ("throughput (12) and memory (13) against disorder", Suite.figure12),
    "16": ("throughput (16) and memory (17) against ignorable events", Suite.figure16),
    "late": ("events late by up to 5,000", Suite.late),
    "memory": ("memory over a long stream", Suite.memory),
    "flink": ("Flink SQL's MATCH_RECOGNIZE", Suite.flink),
}
