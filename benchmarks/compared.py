"""What benchmarks that compare sides have in common: a side is a process on one core, all are timed alike, and a wrong count fails.

A benchmark has ``cases.toml`` (streams, cases, expected counts), ``sides.py`` (a side takes a job and gives what is timed),
``suite.py`` (what is measured) and ``cli.py`` (how it is shown).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.runner import WorkerError, run_worker
from benchmarks.workers import resident

__all__ = ["Row", "command", "compare", "recorded", "show", "timed"]

Job = dict[str, Any]


@dataclass
class Row:
    """What was measured for one case on one stream."""

    case: str
    stream: str
    events: int
    expected: int | None
    sides: dict[str, dict[str, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def processor(self, side: str) -> float | None:
        """Seconds of the processor in the fastest run of a side; ``None``: it was not run."""
        return min(self.sides[side]["processor"]) if "processor" in self.sides.get(side, {}) else None

    def ratio(self, *others: str) -> float | None:
        """How many times as long as the library the fastest of some sides takes."""
        own, theirs = self.processor("stretto"), [self.processor(side) for side in others]
        best = min((one for one in theirs if one is not None), default=None)
        return None if own is None or best is None else best / own

    def cell(self, side: str, digits: int) -> str:
        """The seconds of a side, for a table."""
        if "missing" in self.sides.get(side, {}):
            return "missing"
        seconds = self.processor(side)
        return "" if seconds is None else f"{seconds:.{digits}f}"

    def check(self, counted: str) -> None:
        """Note which sides do not give the expected number of what is counted."""
        for side, found in self.sides.items():
            if "count" in found and found["count"] != self.expected:
                expected = "nothing is" if self.expected is None else f"{self.expected:,}"
                self.wrong.append(f"{side} finds {found['count']:,} {counted}, expected {expected}")


def timed(job: Job, sides: Mapping[str, Callable[[Job], Callable[[], int]]]) -> dict[str, Any]:
    """One untimed run of a job's side, then the timed ones: seconds on the clock and of the processor, and memory."""
    try:
        run = sides[job["side"]](job)
    except ModuleNotFoundError as error:
        return {"missing": str(error.name)}
    count = run()
    before = resident.resident()
    resident.reset_peak()
    seconds, processor = [], []
    for _ in range(job["repeat"]):
        wall, used = time.perf_counter(), time.process_time()
        count = run()
        seconds.append(time.perf_counter() - wall)
        processor.append(time.process_time() - used)
    peak = resident.peak()
    return {
        "count": count,
        "seconds": seconds,
        "processor": processor,
        "resident_peak": peak,
        "more_memory": peak - before,
    }


def compare(row: Row, module: str, jobs: Iterable[Job], counted: str) -> Row:
    """Run the jobs of a case in turn, one a side, in workers of a module."""
    for job in jobs:
        try:
            row.sides[job["side"]] = run_worker(module, job)
        except WorkerError as error:
            row.wrong.append(f"{job['side']} failed: {error}")
    row.check(counted)
    return row


R = TypeVar("R", bound=Row)


def command(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    rows: Callable[[Path, argparse.Namespace], Iterator[R]],
    table: Callable[[list[R]], Table],
    peers: tuple[str, ...],
    record: Callable[[R], dict[str, Any]],
) -> int:
    """Measure what is asked for, print it, and write it with ``--out``; 1 when a count was wrong."""
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    chosen = parser.parse_args(arguments)
    console = Console(width=150)
    found: list[R] = []
    with tempfile.TemporaryDirectory(prefix="stretto-benchmarks-") as folder:
        for row in rows(Path(folder), chosen):
            found.append(row)
            console.print(f"{row.case} on {row.stream}", style="dim")
    show(console, table(found), found)
    if chosen.out:
        own = {name: value for name, value in vars(chosen).items() if name in ("output", "repeat")}
        result = {"machine": machine.describe(parser.prog, peers), **own, "rows": [record(row) for row in found]}
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row.wrong for row in found) else 0


def show(console: Console, table: Table, rows: Iterable[Row]) -> None:
    """Print a table, and under it what was wrong."""
    console.print(table)
    for row in rows:
        for trouble in row.wrong:
            console.print(f"[red]wrong[/red] {row.case} on {row.stream}: {trouble}")


def recorded(row: Row, **more: Any) -> dict[str, Any]:
    """A row for JSON."""
    return {**asdict(row), **more}
