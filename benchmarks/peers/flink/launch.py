"""Makes Flink's environment (PyPI's apache-flink and the Parquet format from the user's Maven repository) and runs jobs in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.launch import PeerUnavailableError
from examples.kafka.broker import repository
from stretto.errors import OptionError

__all__ = ["REQUIREMENT", "Flink", "prepare"]

REQUIREMENT = "apache-flink==2.3.0"
#: apache-flink 2.3.0 has wheels for these.
INTERPRETERS = ("python3.12", "python3.11", "python3.10", "python3.9")
SCRIPT = Path(__file__).with_name("flink_peer.py")

#: What Flink needs to read Parquet, with SHA-256.
JARS = {
    "org/apache/flink/flink-sql-parquet/2.3.0/flink-sql-parquet-2.3.0.jar": (
        "f30617f4a5a6d437750f155ff72178ab34439aec91df64d96621c260559ba5fd"
    ),
    "org/apache/hadoop/hadoop-client-api/3.4.1/hadoop-client-api-3.4.1.jar": (
        "a964d4daa054c9615bbafb4553efbb140fa7fb9ac6f358a24393f183a5703438"
    ),
    "org/apache/hadoop/hadoop-client-runtime/3.4.1/hadoop-client-runtime-3.4.1.jar": (
        "f6a800a159f918670db533606d33560d6c13b7e13f14eda493280ae33b9eeb2f"
    ),
}


@dataclass(frozen=True)
class Flink:
    """An interpreter that has apache-flink, and the jars of the Parquet format."""

    python: Path
    jars: tuple[Path, ...]

    def run(
        self, statement: str, folders: dict[str, Path], mode: str, runs: Sequence[str], table: str | None = None
    ) -> dict[str, Any]:
        """Run a statement over the folders that ``runs`` names, one after the other, in one process.

        Parameters
        ----------
        statement
            A query over the table ``events`` that gives one number.
        folders
            The events of each name.
        mode
            ``"batch"`` or ``"streaming"``.
        runs
            Names of folders, in the order in which they are read.
        table
            ``CREATE TABLE`` with ``{name}`` and ``{path}``; ``None``: the stock events of the Spark benchmarks.

        Returns
        -------
        dict
            ``runs`` (name, seconds and count of each), ``setup`` (seconds until the first job could start) and ``resident_peak``.

        Raises
        ------
        PeerUnavailableError
            Flink ended with an error; the message has what it said last.
        """
        job = {
            "statement": statement,
            "table": table,
            "folders": {name: str(folder) for name, folder in folders.items()},
            "mode": mode,
            "runs": list(runs),
            "jars": [str(jar) for jar in self.jars],
        }
        with tempfile.TemporaryDirectory(prefix="stretto-flink-") as folder:
            path = Path(folder) / "job.json"
            path.write_text(json.dumps(job), encoding="utf-8")
            done = subprocess.run(
                [self.python, SCRIPT, path], cwd=folder, capture_output=True, text=True, check=False, env=_environment()
            )
        if done.returncode:
            raise PeerUnavailableError(f"Flink ended with status {done.returncode}: {_reason(done.stderr)}")
        result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return result


def prepare(cache: Path) -> Flink:
    """Flink, installed under ``cache`` when it is missing (about 1 GB).

    Raises
    ------
    PeerUnavailableError
        There is no Java or no fitting interpreter, or something could not be installed.
    """
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise PeerUnavailableError("Flink needs Java (11 or newer): put java on PATH, or set JAVA_HOME")
    python = cache / "flink-venv" / "bin" / "python"
    if not _has_flink(python):
        base = _find_interpreter()
        _call([str(base), "-m", "venv", "--clear", str(cache / "flink-venv")], "no environment could be made")
        _call([str(python), "-m", "pip", "install", "--quiet", REQUIREMENT], f"{REQUIREMENT} could not be installed")
        if not _has_flink(python):
            raise PeerUnavailableError(f"{REQUIREMENT} is installed but cannot be imported")
    return Flink(python, tuple(_fetch(place, check, cache / "jars") for place, check in JARS.items()))


def _environment() -> dict[str, str]:
    """Without the variables that would give Flink this interpreter's packages."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def _reason(said: str) -> str:
    """The last cause of a Java stack trace, or the end of what was said."""
    lines = said.strip().splitlines()
    causes = [line.strip() for line in lines if "Caused by:" in line]
    return (causes or lines or ["nothing was said"])[-1][-400:]


def _has_flink(python: Path) -> bool:
    # Importing starts no JVM.
    return python.exists() and _succeeds([str(python), "-c", "import pyflink.table"])


def _find_interpreter() -> Path:
    """The interpreter that the user named, or the first fitting CPython of ``PATH`` or pyenv that makes environments."""
    if named := os.environ.get("STRETTO_FLINK_PYTHON"):
        if not _succeeds([named, "-c", "import ensurepip"]):
            raise PeerUnavailableError(f"STRETTO_FLINK_PYTHON={named} is not a Python that makes environments")
        return Path(named)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for name in INTERPRETERS:
        version = name.removeprefix("python")
        for found in [shutil.which(name), *sorted(pyenv.glob(f"versions/{version}*/bin/{name}"))]:
            if found and _succeeds([str(found), "-c", "import ensurepip"]):
                return Path(found)
    raise PeerUnavailableError(
        f"there is none of {', '.join(INTERPRETERS)} ({REQUIREMENT} has wheels for these only); "
        "put one on PATH or name it in STRETTO_FLINK_PYTHON"
    )


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _call(command: list[str], trouble: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout or "").strip().splitlines()
        raise PeerUnavailableError(f"{trouble}: {lines[-1] if lines else f'status {done.returncode}'}")


def _fetch(place: str, check: str, folder: Path) -> Path:
    """A jar of the user's Maven repository, downloaded once and checked."""
    path = folder / place.rsplit("/", 1)[1]
    if not path.exists():
        try:
            with urllib.request.urlopen(repository() + place) as answer:
                data = answer.read()
        except (OptionError, urllib.error.URLError, OSError) as error:
            raise PeerUnavailableError(f"{path.name} could not be fetched: {error}") from error
        if hashlib.sha256(data).hexdigest() != check:
            raise PeerUnavailableError(f"{path.name} is not the file that was expected (SHA-256)")
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(path)
    return path
