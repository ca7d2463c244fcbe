"""Compiled code travels with a session: what the driver has compiled, workers on other machines do not compile again.

It lies in archives that Spark unpacks beside a worker's tasks: one of all kernels, and one of the conditions of each call that has
others than those before, which the driver compiles for it. A worker takes over what it does not have; code for another processor
than its own is not found there, and is compiled as ever.
"""

from __future__ import annotations

import tempfile
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from stretto import _jit
from stretto.folders import replaced
from stretto.spark.compat import send_archive, worker_files

#: What archives are called where Spark unpacks them, with a number behind it.
NAME = "stretto-kernels"


class _Shipped:
    """What the workers of a session have been sent."""

    def __init__(self) -> None:
        #: Where the archives lie, from which Spark reads them whenever a worker starts.
        self._folder = tempfile.TemporaryDirectory(prefix="stretto-")
        self._sent: set[Path] = set()
        #: The marks of the groups of kernels that were compiled when kernels were sent last.
        self.compiled: frozenset[Path] = frozenset()
        self._archives = 0

    def send(self, session: Any, files: Iterable[Path]) -> None:
        """Send those of some files of the cache that were not sent yet."""
        fresh = [file for file in dict.fromkeys(files) if file not in self._sent]
        if not fresh:
            return
        cache = Path(_jit.CACHE_DIRECTORY)
        name = f"{NAME}-{self._archives}"
        archive = Path(self._folder.name) / f"{name}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
            for file in fresh:
                made.write(file, file.relative_to(cache.parent))
        send_archive(session, f"{archive}#{name}")
        self._archives += 1
        self._sent.update(fresh)


#: ``None``: the session runs on this machine, where workers read the same folder.
_shipped: weakref.WeakKeyDictionary[Any, _Shipped | None] = weakref.WeakKeyDictionary()


def ship(session: Any, start: Callable[[], object] | None = None) -> None:
    """Hand compiled code to the workers of a session on other machines: the kernels that are here, and a call's conditions.

    Parameters
    ----------
    session
        The SparkSession.
    start
        Starts what a worker will run; ``None``: it has no conditions that are compiled.
    """
    if not _jit.CACHE_DIRECTORY:
        return
    if session not in _shipped:
        is_here = session.conf.get("spark.master", "local").split("[")[0] == "local"
        _shipped[session] = None if is_here else _Shipped()
    shipped = _shipped[session]
    if shipped is None:
        return
    cache = Path(_jit.CACHE_DIRECTORY)
    compiled = frozenset(cache.glob("*.compiled"))
    if compiled != shipped.compiled:  # else there is nothing new in a thousand files
        shipped.send(session, _kernels(cache))
        shipped.compiled = compiled
    if start is not None:
        with _jit.recorded() as conditions:
            start()
        for condition in conditions:
            condition.compiled  # noqa: B018 - which keeps its code on disk
        shipped.send(session, (file for condition in conditions for file in condition.files))


def _kernels(cache: Path) -> Iterator[Path]:
    """The files of kernels."""
    for file in sorted(cache.rglob("*")):
        is_draft = file.name.startswith(".") or file.suffix == ".lock"
        if file.is_file() and not is_draft and file.relative_to(cache).parts[0] != _jit.CONDITIONS:
            yield file


#: The archives that this worker has taken over.
_received: set[Path] = set()


def receive() -> None:
    """In a worker: take over the code that has come with the session."""
    folder = worker_files()
    if folder is None or not _jit.CACHE_DIRECTORY:
        return
    own = Path(_jit.CACHE_DIRECTORY)
    for archive in sorted(set(folder.glob(f"{NAME}-*")) - _received):
        sent = archive / own.name
        # Files that tell that all kernels of an engine are there come last.
        for path in sorted(sent.rglob("*"), key=lambda one: one.suffix == ".compiled"):
            mine = own / path.relative_to(sent)
            if path.is_file() and not mine.exists():
                mine.parent.mkdir(parents=True, exist_ok=True)
                with replaced(mine) as draft:
                    draft.write_bytes(path.read_bytes())
        _received.add(archive)
