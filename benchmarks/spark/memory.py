"""Memory and processor time of a process and all processes below it (a JVM, Python workers), from /proc where there is one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

__all__ = ["Watch", "processor", "resident"]

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def resident() -> dict[str, int]:
    """Bytes resident now in this process's tree: of JVMs (``java``) and of Python processes (``python``)."""
    found = {"java": 0, "python": 0}
    for name, _, pages in _tree():
        found["java" if name.endswith("(java") else "python"] += pages * PAGE
    return found


def processor() -> float:
    """Seconds of processor time that this process's tree has taken, with what has ended in it."""
    return sum(sum(map(int, fields[11:15])) for _, fields, _ in _tree()) / TICKS


def _tree() -> Iterator[tuple[str, list[str], int]]:
    """The processes of this process's tree: the name, what /proc/…/stat says behind it, the pages that are resident."""
    parents: dict[int, int] = {}
    seen: dict[int, tuple[str, list[str], int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = (folder / "stat").read_text(encoding="utf-8").rsplit(")", 1)
            pages = int((folder / "statm").read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError):  # it has ended
            continue
        process = int(folder.name)
        parents[process] = int(fields.split()[1])
        seen[process] = (name, fields.split(), pages)
    return (found for process, found in seen.items() if _below(process, parents))


def _below(process: int, parents: dict[int, int]) -> bool:
    own = os.getpid()
    while process > 1:
        if process == own:
            return True
        process = parents.get(process, 0)
    return False


class Watch:
    """Looks at the memory once in a while; :attr:`peak` is the most that was seen, of everything together, and
    :attr:`processor` the processor time in the end, in seconds.

    Pages that forked Python workers share are counted in each of them.
    """

    def __init__(self, seconds: float = 0.5) -> None:
        self.peak = 0
        self.processor = 0.0
        self._seconds = seconds
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._end.wait(self._seconds):
            self.peak = max(self.peak, sum(resident().values()))

    def __enter__(self) -> Watch:
        self._began = processor()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()
        self.processor = processor() - self._began
