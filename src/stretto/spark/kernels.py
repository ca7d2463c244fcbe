"""Compiled kernels travel with a session: what the driver has compiled, workers on other machines do not compile again.

They lie in an archive that Spark unpacks beside a worker's tasks. A worker takes over what it does not have; code for another
processor than its own is not found there, and is compiled as ever.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from stretto import _jit
from stretto.folders import replaced
from stretto.spark.compat import send_archive, worker_files

#: What the archive is called where Spark unpacks it.
NAME = "stretto-kernels"

#: By session the folder of its archive, from which Spark reads it whenever a worker starts; ``None``: it runs on this machine.
_shipped: weakref.WeakKeyDictionary[Any, tempfile.TemporaryDirectory[str] | None] = weakref.WeakKeyDictionary()


def ship(session: Any) -> None:
    """Hand the kernels that are compiled here to the workers of a session, once; on this machine they read the same folder."""
    folder = Path(_jit.CACHE_DIRECTORY)
    if session in _shipped or not any(folder.glob("*.compiled")):
        return
    if session.conf.get("spark.master", "local").split("[")[0] == "local":
        _shipped[session] = None
        return
    _shipped[session] = made = tempfile.TemporaryDirectory(prefix="stretto-")
    archive = shutil.make_archive(str(Path(made.name) / NAME), "zip", folder.parent, folder.name)
    send_archive(session, f"{archive}#{NAME}")


def receive() -> None:
    """In a worker: take over the kernels that came with the session."""
    folder = worker_files()
    if folder is None or not _jit.CACHE_DIRECTORY:
        return
    own = Path(_jit.CACHE_DIRECTORY)
    sent = folder / NAME / own.name
    # Files that tell that all kernels of an engine are there come last.
    for path in sorted(sent.rglob("*"), key=lambda one: one.suffix == ".compiled"):
        mine = own / path.relative_to(sent)
        if path.is_file() and path.suffix != ".lock" and not mine.exists():
            mine.parent.mkdir(parents=True, exist_ok=True)
            with replaced(mine) as draft:
                shutil.copyfile(path, draft)
