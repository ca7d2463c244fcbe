"""Finds an interpreter for pycer, makes its environment, and runs jobs in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

__all__ = ["REQUIREMENT", "PeerUnavailableError", "prepare", "run"]

REQUIREMENT = "pycer==0.1.6"
#: The only wheel is for this interpreter.
INTERPRETER = "python3.13"
ENVIRONMENT = Path(__file__).resolve().parents[1] / ".peer-venv"
SCRIPT = Path(__file__).with_name("pycer_peer.py")


class PeerUnavailableError(Exception):
    """The peer cannot run here; the message says why."""


def prepare() -> Path:
    """The interpreter that has pycer, made when it is missing."""
    python = ENVIRONMENT / "bin" / "python"
    if _has_pycer(python):
        return python
    base = os.environ.get("STRETTO_PEER_PYTHON") or shutil.which(INTERPRETER)
    if not base:
        raise PeerUnavailableError(
            f"no {INTERPRETER} on PATH (pycer has a wheel for CPython 3.13 only); set STRETTO_PEER_PYTHON"
        )
    if _has_pycer(Path(base)):
        return Path(base)
    _call([base, "-m", "venv", "--clear", str(ENVIRONMENT)], "no environment could be made")
    _call([str(python), "-m", "pip", "install", "--quiet", REQUIREMENT], f"{REQUIREMENT} could not be installed")
    if not _has_pycer(python):
        raise PeerUnavailableError(f"{REQUIREMENT} is installed but cannot be imported")
    return python


def _has_pycer(python: Path) -> bool:
    if not python.exists():
        return False
    return subprocess.run([python, "-c", "import pycer"], capture_output=True, check=False).returncode == 0


def _call(command: list[str], trouble: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise PeerUnavailableError(f"{trouble}: {error}") from error
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout or "").strip().splitlines()
        raise PeerUnavailableError(f"{trouble}: {lines[-1] if lines else error}") from error


def write_events(table: pa.Table, path: Path) -> None:
    """The events as the peer's script reads them."""
    csv.write_csv(table, path)


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return "double"
    return "int" if pa.types.is_integer(kind) else "string"


def run(
    python: Path, query: str, events: Path, table: pa.Table, *, time: str, repeat: int, budget: float
) -> dict[str, Any]:
    """Run one query over the events of ``events`` (which ``table`` describes) in a process of its own."""
    job = {
        "query": query,
        "events": str(events),
        "types": sorted(map(str, set(table["type"].to_pylist()))),
        "attributes": [(field.name, _kind(field.type)) for field in table.schema if field.name != "type"],
        "time": time,
        "repeat": repeat,
        "budget": budget,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        done = subprocess.run([python, SCRIPT, path], cwd=folder, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise PeerUnavailableError(f"pycer ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result
