"""What the papers' benchmarks share: clocks, one core, rows of results, suites of experiments, and the record as JSON."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import machine

__all__ = ["CLOCKS", "Experiments", "Measured", "load_average", "mark", "one_core", "save"]

#: What a run is timed by: what this process uses of the processor, for a machine that does other work, or wall time.
CLOCKS: dict[str, Callable[[], float]] = {"cpu": time.process_time, "wall": time.perf_counter}


@contextmanager
def one_core() -> Iterator[None]:
    """Bind this process to one core, and keep libraries from threads of their own."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    if cores:
        os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        pa.set_cpu_count(threads)
        if cores:
            os.sched_setaffinity(0, cores)


def load_average() -> float:
    """Processes that ran or waited to run in the last minute; 0 where the system does not say."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


class Measured:
    """What was measured of one side at one point of an experiment: what the rows of the suites, which are dataclasses, can say."""

    events: int
    seconds: list[float]
    wrong: str

    @property
    def rate(self) -> float | None:
        """Events a second in the fastest run."""
        return self.events / min(self.seconds) if self.seconds and min(self.seconds) > 0 else None

    def record(self) -> dict[str, Any]:
        """For JSON."""
        rate = self.rate
        fields: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return fields | {"events_per_second": None if rate is None else round(rate)}


class Experiments:
    """Runs a plan: the base of the suites, which have an experiment a figure.

    Parameters
    ----------
    plan
        How much to run; ``only`` names the experiments, all if it is empty.
    say
        Told what is being run.
    """

    def __init__(self, plan: Any, say: Callable[[str], None] = lambda _: None) -> None:
        self.plan = plan
        self.say = say
        self.skipped: list[str] = []  #: what was left out, and why

    def chosen(self, experiments: Mapping[str, tuple[str, Callable[[Any], Iterator[Any]]]]) -> Iterator[Any]:
        """The rows of the experiments that the plan names."""
        for name, (_, experiment) in experiments.items():
            if not self.plan.only or name in self.plan.only:
                yield from experiment(self)


def mark(reached: bool, what: str) -> str:
    """A goal, and whether it was reached. A miss is said, never an error: times are not tests."""
    return f"{'[green]reached[/green]' if reached else '[yellow]missed[/yellow]'} {what}"


def save(path: Path, program: str, rows: Sequence[Any], load: float, more: dict[str, Any]) -> None:
    """Everything that was measured, as JSON. ``load`` was the machine's when the run began."""
    record = {
        "machine": machine.describe(program),
        "load": {"before": load, "after": load_average()},
        **more,
        "rows": [row.record() for row in rows],
    }
    if "goals" in record:
        record["goals"] = [re.sub(r"\[/?(green|yellow)\]", "", line) for line in record["goals"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
