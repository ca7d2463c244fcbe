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
    if _runs(python, "import pycer"):
        return python
    base = _find_interpreter()
    if _runs(base, "import pycer"):
        return base
    _call([str(base), "-m", "venv", "--clear", str(ENVIRONMENT)], "no environment could be made")
    _call([str(python), "-m", "pip", "install", "--quiet", REQUIREMENT], f"{REQUIREMENT} could not be installed")
    if not _runs(python, "import pycer"):
        raise PeerUnavailableError(f"{REQUIREMENT} is installed but cannot be imported")
    return python


def _find_interpreter() -> Path:
    """The interpreter that the user named, or the first CPython 3.13 of ``PATH`` or pyenv that runs."""
    if named := os.environ.get("STRETTO_PEER_PYTHON"):
        if not _runs(Path(named), "import venv"):
            raise PeerUnavailableError(f"STRETTO_PEER_PYTHON={named} is not a Python that makes environments")
        return Path(named)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(INTERPRETER), *sorted(pyenv.glob(f"versions/3.13*/bin/{INTERPRETER}"))]
    for candidate in [Path(path) for path in found if path]:
        if _runs(candidate, "import venv"):
            return candidate
    raise PeerUnavailableError(
        f"there is no {INTERPRETER} (pycer has a wheel for CPython 3.13 only); put one on PATH or name it in STRETTO_PEER_PYTHON"
    )


def _runs(python: Path, code: str) -> bool:
    if not python.exists():
        return False
    return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0


def _call(command: list[str], trouble: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout or "").strip().splitlines()
        raise PeerUnavailableError(f"{trouble}: {lines[0] if lines else f'status {done.returncode}'}")


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
