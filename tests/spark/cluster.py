"""A cluster on this machine (``local-cluster``): executors are processes of their own, and have only what Spark sends them.

``STRETTO_SPARK_MASTER`` names it for the tests. Executors run this interpreter, for the packages that stretto needs. Stretto itself
they must not find there: a ``sitecustomize`` takes it off their path, and it travels as an archive (``addPyFile``). Each has a cache
of kernels of its own, in the folder that Spark gives it.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import stretto
from tests.conftest import COMPILED

__all__ = ["ARCHIVE", "COMPILED", "MASTER", "kill_executor", "send", "settings"]

MASTER = os.environ.get("STRETTO_SPARK_MASTER", "")

#: What stretto is sent as.
ARCHIVE = "stretto.zip"

_OF_EXECUTORS = """
import os, sys
if "SPARK_EXECUTOR_DIRS" in os.environ:  # the driver has a Python worker, too, which starts streams
    sys.path[:] = [path for path in sys.path if path.endswith(".zip") or not os.path.exists(os.path.join(path, "stretto"))]
    os.environ["STRETTO_CACHE_DIR"] = os.path.abspath("kernels")
"""

#: What is sent from here, where there is a cluster.
_folder = tempfile.TemporaryDirectory(prefix="stretto-cluster-") if MASTER else None


def settings() -> dict[str, Any]:
    """The session's settings."""
    if _folder is None:
        return {}
    (Path(_folder.name) / "sitecustomize.py").write_text(_OF_EXECUTORS)
    return {
        "spark.master": MASTER,
        "spark.executorEnv.PYTHONPATH": _folder.name,
        "spark.executor.memory": "1g",
    }


def send(spark: Any) -> None:
    """Send stretto to the executors, if there are any."""
    if _folder is not None:
        archive = Path(_folder.name) / ARCHIVE
        root = Path(stretto.__file__).parents[1]
        with ZipFile(archive, "w") as file:
            for path in sorted((root / "stretto").rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    file.write(path, path.relative_to(root))
        spark.sparkContext.addPyFile(str(archive))


def executors(spark: Any) -> list[int]:
    """The processes of the executors: the driver's JVM has started them."""
    parent = str(spark.sparkContext._gateway.proc.pid)
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            stat, command = (process / "stat").read_text(), (process / "cmdline").read_text()
        except OSError:
            continue
        if stat.rsplit(")", 1)[1].split()[1] == parent and "CoarseGrainedExecutorBackend" in command:
            found.append(int(process.name))
    return sorted(found)


def kill_executor(spark: Any, number: int) -> None:
    """Kill one executor (``kill -9``) and wait until Spark has started another."""
    there = executors(spark)
    victim = there[number % len(there)]
    os.kill(victim, signal.SIGKILL)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        now = executors(spark)
        if victim not in now and len(now) >= len(there):
            return
        time.sleep(0.1)
    raise AssertionError("Spark has started no other executor")
