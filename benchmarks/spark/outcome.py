"""What was measured: sides that did the same job, their ratio, and whether it reaches the goal."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import machine

__all__ = ["Comparison", "Side", "print_comparison", "save"]

#: Beside those that every benchmark names.
PACKAGES = ("pyspark", "pandas")


@dataclass
class Side:
    """One way to do a job. ``seconds`` are of whole runs, warm; ``start`` is a run over a thousand events.

    ``processor`` is the processor time of the same runs, in seconds: what others do on the machine hardly moves it.
    """

    name: str
    events: int
    seconds: list[float]
    matches: int | None = None
    start: float | None = None
    resident_peak: int = 0
    note: str = ""
    raw: dict[str, Any] = field(default_factory=dict)
    processor: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Events a second in the fastest run: on a shared machine the others measure the neighbours."""
        return self.events / min(self.seconds) if self.seconds else 0.0

    @property
    def work(self) -> float:
        """Events a second of processor time, in the run that took least."""
        return self.events / min(self.processor) if self.processor else 0.0


@dataclass
class Comparison:
    """One case of a benchmark.

    ``ratio`` is the rate of the side that ``of`` names over that of the best of ``to``; ``goal`` what it should be at least
    (``at_most``: at most).
    """

    benchmark: str
    case: str
    sides: list[Side] = field(default_factory=list)
    of: str = ""
    to: tuple[str, ...] = ()
    goal: float | None = None
    at_most: bool = False
    #: Where the ratio is not one of rates.
    value: float | None = None
    wrong: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        if self.value is not None:
            return self.value
        return next((self.ratio_of(side) for side in self.sides if side.name == self.of), None)

    def ratio_of(self, side: Side, what: str = "rate") -> float | None:
        """A side's rate (or ``"work"``) over the best of those that it is compared with; ``None``: it is one of them, or one was
        not measured.
        """
        best = max((getattr(other, what) for other in self.sides if other.name in self.to), default=0.0)
        own = getattr(side, what)
        return own / best if own and best and side.name not in self.to else None

    @property
    def reached(self) -> bool | None:
        """Whether the goal was reached; ``None``: there is none, or nothing to compare with."""
        if self.ratio is None or self.goal is None:
            return None
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def same_matches(self, *names: str) -> None:
        """Note as wrong when the sides of these names (default: all that have a count) differ in their matches."""
        counts = {
            side.name: side.matches
            for side in self.sides
            if side.matches is not None and (not names or side.name in names)
        }
        if len(set(counts.values())) > 1:
            self.wrong = self.wrong or "matches differ: " + ", ".join(f"{name} {n:,}" for name, n in counts.items())

    def record(self) -> dict[str, Any]:
        """For JSON."""
        sides = [
            asdict(side)
            | {
                "events_per_second": side.rate,
                "ratio": self.ratio_of(side),
                "ratio_of_processor_time": self.ratio_of(side, "work"),
            }
            for side in self.sides
        ]
        return asdict(self) | {"sides": sides, "ratio": self.ratio, "reached": self.reached}


def print_comparison(console: Console, found: Comparison) -> None:
    """A table of the sides, then the ratio and the goal."""
    if found.sides:
        console.print(_table(found))
    else:
        console.print(f"{found.benchmark}: {found.case}", style="italic", highlight=False)
    if found.ratio is not None:
        console.print(f"  {_verdict(found)}")
    if found.note:
        console.print(f"  {found.note}", highlight=False)
    if found.wrong:
        console.print(f"  [red]wrong[/red]: {found.wrong}", highlight=False)
    console.print()


def _table(found: Comparison) -> Table:
    table = Table(title=f"{found.benchmark}: {found.case}", title_justify="left", header_style="bold")
    table.add_column("")
    for name in ("events", "matches", "s", "start s", "events/s", "ratio", "CPU s", "ratio", "MiB"):
        table.add_column(name, justify="right")
    table.add_column("")
    for side in found.sides:
        table.add_row(
            side.name,
            f"{side.events:,}",
            "" if side.matches is None else f"{side.matches:,}",
            f"{min(side.seconds):,.2f}" if side.seconds else "",
            "" if side.start is None else f"{side.start:,.2f}",
            f"{side.rate:,.0f}",
            "" if (ratio := found.ratio_of(side)) is None else f"{ratio:,.2f}",
            f"{min(side.processor):,.2f}" if side.processor else "",
            "" if (ratio := found.ratio_of(side, "work")) is None else f"{ratio:,.2f}",
            f"{side.resident_peak / 2**20:,.0f}" if side.resident_peak else "",
            side.note,
        )
    return table


def _verdict(found: Comparison) -> str:
    what = f"{found.of} to {' or '.join(found.to)}: " if found.to else f"{found.of}: " if found.of else ""
    text = f"{what}{found.ratio:,.2f}"
    if found.goal is None:
        return text
    mark = "[green]reached[/green]" if found.reached else "[yellow]missed[/yellow]"
    return f"{mark} {text}, {'at most' if found.at_most else 'at least'} {found.goal:,.2f}"


def save(path: Path, found: list[Comparison], options: dict[str, Any]) -> None:
    """Everything that was measured, the options and the machine, as JSON."""
    described = machine.describe("python -m benchmarks.spark", PACKAGES)
    record = {"machine": described, "options": options, "comparisons": [one.record() for one in found]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
