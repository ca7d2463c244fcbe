"""Runs the definitions: this engine and the peer in turn, each job in a process of its own, on one core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks import data, oracle
from benchmarks.definitions import Case, Definition
from benchmarks.peers import launch
from benchmarks.queries import peer_text
from benchmarks.workers.core import SINGLE_THREAD

__all__ = ["Options", "Row", "Runner", "WorkerError", "run_worker"]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Options:
    """What a run was asked to do."""

    quick: bool = False
    peer: bool = True
    oracle: bool = False
    repeat: int = 40

    @property
    def budget(self) -> float:
        """Seconds for the timed runs of one query."""
        return 1.0 if self.quick else 3.0

    @property
    def peer_repeat(self) -> int:
        """Timed runs of one query in the peer."""
        return 2 if self.quick else 3

    @property
    def peer_budget(self) -> float:
        """Seconds after which the peer starts no further run."""
        return 5.0 if self.quick else 20.0


@dataclass
class Row:
    """What was measured for one case on one stream."""

    family: str
    case: str
    stream: str
    kind: str
    ours: dict[str, Any] = field(default_factory=dict)
    peer: dict[str, Any] = field(default_factory=dict)
    expected: int | None = None
    wrong: str = ""
    note: str = ""

    @property
    def rate(self) -> float:
        """Events a second in the fastest run: on a shared machine the others measure the neighbours."""
        return _rate(self.ours)

    @property
    def peer_rate(self) -> float:
        """The peer's events a second."""
        return _rate(self.peer)

    @property
    def ratio(self) -> float:
        """How many times faster than the peer."""
        return self.rate / self.peer_rate if self.peer_rate else 0.0

    def record(self) -> dict[str, Any]:
        """For JSON."""
        derived = {
            "events_per_second": self.rate,
            "peer_events_per_second": self.peer_rate,
            "ratio": self.ratio,
        }
        return {**self.__dict__, **{key: value or None for key, value in derived.items()}}


def _rate(result: dict[str, Any]) -> float:
    return result["events"] / min(result["seconds"]) if result.get("seconds") else 0.0


class WorkerError(Exception):
    """A worker process failed; the message ends with what it said."""


class Runner:
    """Measures cases, keeping the streams as files while it lives."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options = options
        self.say = say
        self._folder = tempfile.TemporaryDirectory(prefix="stretto-benchmarks-")
        self._tables: dict[str, pa.Table] = {}
        self._peer_python: Path | None = None
        self.peer_trouble = "" if options.peer else "not asked for"
        if options.peer:
            self._prepare_peer()

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def _prepare_peer(self) -> None:
        try:
            self._peer_python = launch.prepare()
        except launch.PeerUnavailableError as error:
            self.peer_trouble = str(error)
            self.say(f"peer not available: {error}")

    def run(self, definition: Definition) -> Iterator[Row]:
        """All cases of a family on all its streams, case after case so that what is compared runs close
        together.
        """
        measure = {"match": self._match, "stream": self._stream, "startup": self._startup, "spark": self._spark}[
            definition.kind
        ]
        for case in definition.chosen(self.options.quick):
            for stream in definition.streams(self.options.quick):
                row = Row(definition.name, case.name, stream, definition.kind, expected=case.expected.get(stream))
                try:
                    measure(definition, case, stream, row)
                except data.DataMissingError as error:
                    row.note = f"skipped: {error}"
                except WorkerError as error:
                    row.wrong = f"failed: {error}"
                yield row

    # --- kinds of measurement -------------------------------------------------------------------------------

    def _match(self, definition: Definition, case: Case, stream: str, row: Row) -> None:
        spec = definition.data[stream]
        table = self._table(spec)
        rows = self._peer_rows(definition, case, spec, len(table))
        job = {
            "events": str(self._arrow_file(spec)),
            "query": case.query.text,
            "repeat": self.options.repeat,
            "budget": self.options.budget,
            "compare_rows": rows or len(table),
        }
        row.ours = _worker("match", job)
        self._check(row, case, spec)
        if rows:
            self._run_peer(case, spec, rows, row)

    def _run_peer(self, case: Case, spec: data.DataSpec, rows: int, row: Row) -> None:
        table = self._table(spec).slice(0, rows)
        events = self._csv_file(spec, rows)
        query = case.query
        assert self._peer_python is not None
        try:
            text = peer_text(query.text)
            row.peer = launch.run(
                self._peer_python,
                text,
                events,
                table,
                time=query.attribute,
                repeat=self.options.peer_repeat,
                budget=self.options.peer_budget,
            )
        except launch.PeerUnavailableError as error:
            row.note = f"peer: {error}"
            return
        ours = row.ours["matches_compared"]
        if query.strategy not in ("", "ALL", "MAX") and ours:
            row.note = "the peer has no strategies"
        elif row.peer["matches"] != ours:
            found = row.peer["matches"]
            row.wrong = row.wrong or f"the peer finds {found:,} in {rows:,} events, we find {ours:,}"

    def _stream(self, definition: Definition, case: Case, stream: str, row: Row) -> None:
        spec = definition.data[stream]
        row.ours = _worker("stream", {"rows": spec.rows, "query": case.query.text})
        samples = row.ours["resident_samples"]
        settled, last = samples[len(samples) // 10 + 1], max(samples)
        row.ours["resident_growth"] = last / settled - 1 if settled else 0.0
        row.note = f"resident {settled / 2**20:,.0f} MiB early, at most {last / 2**20:,.0f} MiB"
        self._check(row, case, spec)

    def _startup(self, definition: Definition, case: Case, stream: str, row: Row) -> None:
        spec = definition.data[stream]
        job = {"events": str(self._arrow_file(spec)), "query": case.query.text}
        with tempfile.TemporaryDirectory(prefix="stretto-cold-") as empty:
            # Not compiled yet: the answer comes from interpreted kernels.
            cold = _worker("startup", job, {"STRETTO_CACHE_DIR": empty, "STRETTO_COMPILE": "background"})
            compiling = _worker("startup", job, {"STRETTO_CACHE_DIR": empty})
            warm = [_worker("startup", job, {"STRETTO_CACHE_DIR": empty}) for _ in range(3)]
        row.ours = {
            **warm[0],
            "seconds": [run["seconds"][0] for run in warm],
            "cold_seconds": cold["seconds"][0],
            "compiling_seconds": compiling["seconds"][0],
        }
        row.note = f"warm {min(row.ours['seconds']):.2f} s, cold {cold['seconds'][0]:.1f} s"
        self._check(row, case, spec)

    def _spark(self, definition: Definition, case: Case, stream: str, row: Row) -> None:
        spec, query = definition.data[stream], case.query
        columns = ["type", "name", query.attribute, *([query.partition] if query.partition else [])]
        job = {
            "events": str(self._parquet_file(spec)),
            "query": query.text,
            "columns": columns,
            "time": query.attribute,
            "partition": query.partition,
            "repeat": 2 if self.options.quick else 3,
        }
        row.ours = _worker("spark", job)
        passes = {name: min(row.ours[f"count_{name}_seconds"]) for name in ("all", "needed", "ordered")}
        rates = [f"{name} {row.ours['events'] / seconds:,.0f}" for name, seconds in passes.items()]
        row.ours["share_of_count"] = passes["all"] / min(row.ours["seconds"])
        row.note = f"counting rows/s: {', '.join(rates)}"
        self._check(row, case, spec)

    # --- checking -------------------------------------------------------------------------------------------

    def _check(self, row: Row, case: Case, spec: data.DataSpec) -> None:
        found = row.ours["matches"]
        if row.expected is None:
            row.note = f"{row.note}; no expected count" if row.note else "no expected count"
        elif found != row.expected:
            row.wrong = f"expected {row.expected:,} matches, found {found:,}"
        if self.options.oracle:
            counted = oracle.count(case.query, data.pieces(spec)).matches
            if counted != found:
                row.wrong = f"the oracle counts {counted:,} matches, found {found:,}"

    # --- streams as files -----------------------------------------------------------------------------------

    def _peer_rows(self, definition: Definition, case: Case, spec: data.DataSpec, rows: int) -> int:
        """How many events the peer reads: 0 for none."""
        if self._peer_python is None or not case.peer or spec.peer_rows < 0:
            return 0
        rows = min(rows, spec.peer_rows or rows)
        return min(rows, definition.peer_rows_quick) if self.options.quick else rows

    def _table(self, spec: data.DataSpec) -> pa.Table:
        if spec.slug not in self._tables:
            self._tables.clear()
            self._tables[spec.slug] = data.load(spec)
        return self._tables[spec.slug]

    def _arrow_file(self, spec: data.DataSpec) -> Path:
        path = Path(self._folder.name) / f"{spec.slug}.arrow"
        if not path.exists():
            table = self._table(spec)
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        return path

    def _parquet_file(self, spec: data.DataSpec) -> Path:
        path = Path(self._folder.name) / f"{spec.slug}.parquet"
        if not path.exists():
            parquet.write_table(self._table(spec), path)
        return path

    def _csv_file(self, spec: data.DataSpec, rows: int) -> Path:
        path = Path(self._folder.name) / f"{spec.slug}-{rows}.csv"
        if not path.exists():
            launch.write_events(self._table(spec).slice(0, rows), path)
        return path


def _worker(name: str, job: dict[str, Any], environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run ``benchmarks.workers.<name>`` in a process of its own."""
    return run_worker(f"benchmarks.workers.{name}", job, environment)


def run_worker(module: str, job: dict[str, Any], environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a module with a job in a process of its own; gives its last line."""
    env = {**os.environ, **SINGLE_THREAD, **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        command = [sys.executable, "-m", module, str(path)]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise WorkerError(lines[-1] if lines else f"worker ended with status {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
