"""What every benchmark knows: the options of a run, and the streams' sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.spark.outcome import Comparison

__all__ = ["KEYS", "START_ROWS", "WARM_ROWS", "Benchmark", "Options"]

#: Rows of the streams that warm a session up, and of those that show what a job costs without data.
WARM_ROWS = 1_000_000
START_ROWS = 1_000
#: Accounts of the batch streams.
KEYS = 1_000


@dataclass(frozen=True)
class Options:
    """What a run was asked to do; ``rows`` is ``None`` for each benchmark's own."""

    rows: int | None = None
    peer_rows: int = 1_000_000
    keys: tuple[int, ...] = (1, 1_000, 100_000, 1_000_000)
    cases: tuple[str, ...] = ()
    repeat: int = 2
    cores: int = 2
    driver_memory: str = "4g"
    batch_rows: int = 500_000
    buckets: int | None = None
    minutes: float = 60.0
    peer: bool = True

    def wants(self, case: str) -> bool:
        """Whether a case was asked for: a part of its name is enough."""
        return not self.cases or any(part in case for part in self.cases)


@dataclass(frozen=True)
class Benchmark:
    """A named benchmark: what it shows, and its cases."""

    name: str
    shows: str
    rows: int
    run: Callable[[Options], Iterator[Comparison]]
