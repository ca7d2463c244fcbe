"""Runs a worker in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.workers.core import SINGLE_THREAD

__all__ = ["WorkerError", "run"]

ROOT = Path(__file__).resolve().parents[2]


class WorkerError(Exception):
    """A worker process failed; the message ends with what it said."""


def run(name: str, job: dict[str, Any]) -> Any:
    """The result of ``benchmarks.spark.workers.<name>`` for ``job``.

    Raises
    ------
    WorkerError
        The process ended with an error.
    """
    # Spark's Python workers import the benchmarks' functions as well.
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, **SINGLE_THREAD, "PYTHONPATH": os.pathsep.join(places)}
    with tempfile.TemporaryDirectory(prefix="stretto-benchmarks-") as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        command = [sys.executable, "-m", f"benchmarks.spark.workers.{name}", str(path)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WorkerError(_reason(done.stderr) or f"the worker ended with status {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _reason(said: str) -> str:
    """The last line that names an error: Spark's own stack traces come after Python's."""
    lines = [line.strip() for line in said.strip().splitlines()]
    named = [line for line in lines if "Error" in line.split(":")[0] or "Exception" in line.split(":")[0]]
    return (named or lines or [""])[-1][-600:]
