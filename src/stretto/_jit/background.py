"""Who compiles the kernels of a machine: one process for each group of them, which others wait for or go on without.

A group is what one engine needs beside what all need. ``ORDER BY`` and ``SAMPLE``, and totals over SASE+, take as much again and have
groups of their own. When a group's kernels lie in the cache, a file says so; a lock on another file, which ends with its process,
says that somebody is at it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, where several processes may compile the same
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("stretto")

#: The groups, by the modules whose kernels they hold; ``"tecs"`` holds those of all other modules.
GROUPS = {
    "timeouts": ("stretto.engines.nfab.partial", "stretto.engines.timed.partial"),
    "nfab-choosing": ("stretto.engines.nfab.picking",),
    "nfab-totals": ("stretto.engines.nfab.adding",),
    "nfab": ("stretto.engines.nfab", "stretto.matching.output.return_clause"),
    "afa": ("stretto.engines.afa",),
    "timed": ("stretto.engines.timed",),
    "greedy": ("stretto.engines.greedy",),
    "moving": ("stretto.engines.shared.moving",),
    "dataflow": ("stretto.dataflow",),
    "rows": ("stretto.engines.rows",),
    "latest": ("stretto.engines.latest",),
    "totals": ("stretto.engines.totals",),
    "tecs-choosing": ("stretto.engines.tecs.picking", "stretto.engines.match_ops.top_k_held"),
    "tecs": ("stretto",),
}

#: Seconds between two looks for what another process has compiled.
PAUSE = 0.05

_known: set[str] = set()  #: groups whose kernels are there, as far as was looked
_looked: dict[str, float] = {}  #: when a group was last looked for
_children: dict[str, subprocess.Popen[bytes]] = {}


def compiled(directory: str, module: str) -> bool:
    """Whether all kernels of a module's group lie in the cache; if not, somebody is compiling them from now on.

    It is also true where the process that should have compiled them has failed, so that this one does it.
    """
    group = next(group for group, modules in GROUPS.items() if module.startswith(modules))
    if group in _known:
        return True
    now = time.monotonic()
    if now - _looked.get(group, -PAUSE) < PAUSE:
        return False
    _looked[group] = now
    child = _children.get(group)
    if _mark(directory, group).exists() or (child is not None and child.poll() is not None):
        _known.add(group)
        return True
    if child is None and not any(_busy(directory, any_group) for any_group in GROUPS):  # one at a time
        log.warning(
            "stretto compiles the kernels of %s in the background, once for this machine: until then, queries run as Python, "
            "slowly (STRETTO_COMPILE=now waits instead; `stretto compile` does it beforehand)",
            group,
        )
        _children[group] = _start(group)
    return False


def kept(directory: str) -> dict[str, bool]:
    """Tell of each group whether its kernels lie in the cache; nothing is compiled for the question."""
    return {group: _mark(directory, group).exists() for group in GROUPS}


@contextlib.contextmanager
def compiling(directory: str, group: str) -> Iterator[bool]:
    """Inside, this process compiles a group, and no other does; whether that is left to do."""
    with _locked(directory, group) as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        mark = _mark(directory, group)
        yield not mark.exists()
        mark.touch()


def _mark(directory: str, group: str) -> Path:
    return Path(directory) / f"{group}.compiled"


@contextlib.contextmanager
def _locked(directory: str, group: str) -> Iterator[IO[bytes]]:
    with (Path(directory) / f"{group}.lock").open("ab") as file:
        yield file


def _busy(directory: str, group: str) -> bool:
    """Whether a process is compiling a group."""
    if fcntl is None:
        return False
    with _locked(directory, group) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def command(engine: str) -> dict[str, Any]:
    """What :class:`subprocess.Popen` needs for a process that compiles the kernels of an engine."""
    paths = [path for path in sys.path if path]
    code = "import sys; from stretto.cli import main; main(sys.argv[1:])"
    return {
        "args": [sys.executable, "-c", code, "compile", engine],
        "env": os.environ | {"STRETTO_COMPILE": "now", "PYTHONPATH": os.pathsep.join(paths)},
        "stdin": subprocess.DEVNULL,
    }


def _start(group: str) -> subprocess.Popen[bytes]:
    """A process that compiles a group, and lives on when this one ends."""
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(**command(group), stdout=nowhere, stderr=nowhere, start_new_session=True)
