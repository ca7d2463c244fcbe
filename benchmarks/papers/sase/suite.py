"""What is run: every side of every query, in turn, with its counts checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.papers.measuring import CLOCKS, Experiments
from benchmarks.papers.sase import engines, oracle
from benchmarks.papers.sase.queries import case
from benchmarks.papers.sase.stream import stocks

__all__ = ["DEFINITIONS", "Plan", "Row", "Suite"]

DEFINITIONS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("definitions.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Plan:
    """How much to run: windows in events of a partition, windows of each symbol in a stream, timed runs of a side."""

    windows: tuple[int, ...]
    length: int
    repeat: int
    known: int = 100_000  #: events of the streams whose counts are known
    queries: tuple[str, ...] = ()  #: only these
    clock: str = "wall"  #: or ``"cpu"``, which counts what this process uses: for a machine that does other work

    @classmethod
    def of(cls, name: str) -> Plan:
        raw = DEFINITIONS[name]
        return cls(tuple(raw["windows"]), raw["length"], raw["repeat"])


@dataclass
class Row:
    """What was measured for a query over a stream; sides are named as in :func:`engines.sides`."""

    query: str
    rises: float
    window: int
    events: int
    starts: int
    matches: int
    cells: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    wrong: str = ""

    def rate(self, side: str) -> float | None:
        """Events a second in the fastest run."""
        return self.events / min(self.seconds[side]) if self.seconds.get(side) else None

    def ratio(self, side: str, to: str) -> float | None:
        """A side's rate over another's."""
        a, b = self.rate(side), self.rate(to)
        return a / b if a and b else None

    def record(self) -> dict[str, Any]:
        """For JSON."""
        rates = {side: round(self.events / min(seconds)) for side, seconds in self.seconds.items()}
        return asdict(self) | {"events_per_second": rates}


class Suite(Experiments):
    """The queries of the SASE+ paper."""

    def rows(self) -> Iterator[Row]:
        """All queries over all streams; equal streams one after the other."""
        queries, rises = DEFINITIONS["queries"], DEFINITIONS["rises"]
        first = self.plan.windows[0]
        for window in self.plan.windows:
            names = [*queries["first"], *queries["apart"]] if window == first else queries["every"]
            yield from self._over(window, rises["usual"], names)
        yield from self._over(first, rises["flatter"], queries["flatter"])

    def known(self) -> Iterator[str]:
        """What is wrong with the counts that are known."""
        raw = DEFINITIONS["stream"]
        table = stocks(self.plan.known, seed=raw["seed"], symbols=raw["symbols"])
        for known in DEFINITIONS["known"]:
            within = known["within"]
            wanted = {name: tuple(value) for name, value in known.items() if name not in ("within", "starts")}
            if self.plan.known != 100_000:  # a part of the stream
                wanted = {name: oracle.count(case(name), table, within) for name in wanted}
            elif _starts(table) != known["starts"]:
                yield f"{_starts(table)} events begin a series, expected {known['starts']}"
            for name, counts in wanted.items():
                self.say(f"{name} within {within}, known counts")
                if counts != oracle.count(case(name), table, within):
                    yield f"{name} within {within}: the loops count {oracle.count(case(name), table, within)}"
                found = engines.sides(case(name).text(within), table)["stretto"]()
                if found != counts:
                    yield f"{name} within {within}: {found} matches and events, expected {counts}"

    def _over(self, window: int, rises: float, names: list[str]) -> Iterator[Row]:
        raw = DEFINITIONS["stream"]
        events = self.plan.length * window * raw["symbols"]
        table = stocks(events, rises=rises, seed=raw["seed"], symbols=raw["symbols"])
        within = raw["within"] * window
        for name in names:
            if self.plan.queries and name not in self.plan.queries:
                continue
            self.say(f"{name}, W = {window}, prices rise with {rises}")
            one = case(name)
            row = Row(name, rises, window, events, _starts(table), *oracle.count(one, table, within))
            self._measure(row, one.text(within), table)
            yield row

    def _measure(self, row: Row, text: str, table: pa.Table) -> None:
        """The sides take turns: one untimed run each, then the timed ones."""
        sides = engines.sides(text, table)
        for name, side in sides.items():
            found = side()
            if found is not None and found != (row.matches, row.cells):
                row.wrong = f"{name}: {found} matches and events, expected {(row.matches, row.cells)}"
        clock = CLOCKS[self.plan.clock]
        for _ in range(self.plan.repeat):
            for name, side in sides.items():
                start = clock()
                side()
                row.seconds.setdefault(name, []).append(clock() - start)
        row.profile = asdict(engines.profile(text, table))


def _starts(table: pa.Table) -> int:
    """The events that begin a series."""
    return int((table["price"].to_numpy() % 500 == 0).sum())
