"""Makes Pathway's environment (PyPI's pathway) and runs reachability in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

from benchmarks.peers.launch import PeerUnavailableError

__all__ = ["REQUIREMENT", "Pathway", "prepare"]

REQUIREMENT = "pathway==0.33.0"
SCRIPT = Path(__file__).with_name("pathway_peer.py")


@dataclass(frozen=True)
class Pathway:
    """An interpreter that has pathway."""

    python: Path

    def run(
        self,
        src: NDArray[np.int64],
        dst: NDArray[np.int64],
        removed: NDArray[np.bool_],
        *,
        batch: int,
        repeat: int,
        keep: bool,
    ) -> dict[str, Any]:
        """Reachability over changes of links, in batches of so many.

        Returns
        -------
        dict
            ``runs`` and ``start`` (the first batch alone): ``wall`` and ``cpu`` seconds, ``ends`` of batches. With ``keep`` also
            ``pairs``: what is left in the end.

        Raises
        ------
        PeerUnavailableError
            Pathway ended with an error; the message has what it said last.
        """
        with tempfile.TemporaryDirectory(prefix="stretto-pathway-") as folder:
            path, kept = Path(folder) / "job.json", Path(folder) / "pairs.csv"
            job = {
                "src": src.tolist(),
                "dst": dst.tolist(),
                "sign": np.where(removed, -1, 1).tolist(),
                "batch": (np.arange(src.size) // batch).tolist(),
                "repeat": repeat,
                "keep": str(kept) if keep else "",
            }
            path.write_text(json.dumps(job), encoding="utf-8")
            done = subprocess.run(
                [self.python, SCRIPT, path], cwd=folder, capture_output=True, text=True, check=False, env=_environment()
            )
            if done.returncode:
                said = done.stderr.strip().splitlines() or ["nothing was said"]
                raise PeerUnavailableError(f"Pathway ended with status {done.returncode}: {said[-1][-400:]}")
            result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
            if keep:
                table = csv.read_csv(kept)
                result["pairs"] = set(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
        return result


def prepare(cache: Path) -> Pathway:
    """Pathway, installed under ``cache`` when it is missing (about 600 MB).

    Raises
    ------
    PeerUnavailableError
        It cannot be installed for this interpreter (or that of ``STRETTO_PATHWAY_PYTHON``).
    """
    folder = cache / "pathway-venv"
    python = folder / "bin" / "python"
    if not _has_it(python):
        base = os.environ.get("STRETTO_PATHWAY_PYTHON", sys.executable)
        _call([base, "-m", "venv", "--clear", str(folder)], "no environment could be made")
        _call([str(python), "-m", "pip", "install", "--quiet", REQUIREMENT], f"{REQUIREMENT} could not be installed")
        if not _has_it(python):
            raise PeerUnavailableError(f"{REQUIREMENT} is installed but cannot be imported")
    return Pathway(python)


def _environment() -> dict[str, str]:
    """One worker, no reports to its maker, and none of this interpreter's packages."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {
        "PATHWAY_THREADS": "1",
        "PATHWAY_PROCESSES": "1",
        "PATHWAY_TELEMETRY_SERVER": "",
        "OMP_NUM_THREADS": "1",
    }


def _has_it(python: Path) -> bool:
    if not python.exists():
        return False
    found = subprocess.run([python, "-c", "import pathway"], capture_output=True, check=False, env=_environment())
    return found.returncode == 0


def _call(command: list[str], trouble: str) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        raise PeerUnavailableError(f"{trouble}: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout or "").strip().splitlines()
        raise PeerUnavailableError(f"{trouble}: {lines[-1] if lines else f'status {done.returncode}'}")
