"""The folder of compiled code: one that nobody else can write, since Numba unpickles what lies there."""

from __future__ import annotations

import atexit
import hashlib
import importlib.resources
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

import numba
import platformdirs
from numba.core import config

from stretto.folders import danger_of, made

log = logging.getLogger("stretto")

#: The environment variable that moves the folder.
VARIABLE = "STRETTO_CACHE_DIR"


def cache_directory() -> str:
    """Make, if need be, and name the folder of compiled code of these sources, this Numba and this mode.

    It lies under ``STRETTO_CACHE_DIR`` or the user's cache directory; else, where that cannot be written or others can write it,
    in the folder for temporary files, under the user's number; else in a folder of this process and its children alone, which
    ends with it. It is empty if there is none.
    """
    leaf = Path("kernels") / edition()
    chosen = os.environ.get(VARIABLE)
    root = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("stretto"))
    temporary = Path(tempfile.gettempdir()) / f"stretto-{os.geteuid() if hasattr(os, 'geteuid') else 0}"
    refused = False
    for candidate in (root, temporary):
        folder = candidate.absolute() / leaf
        danger = danger_of(folder)
        if not danger and made(folder):
            return str(folder)
        if danger:
            refused = True
            log.warning("compiled code is neither read from nor kept in %s: %s", folder, danger)
    return _private(leaf) if refused else ""


@cache
def edition() -> str:
    """What compiled code depends on beside the processor, as a name: the sources of kernels, Numba's version, and the mode."""
    mode = "checked" if config.BOUNDSCHECK else "plain"
    return f"{_sources_digest()}-numba{numba.__version__}-{mode}"


def _private(leaf: Path) -> str:
    """A folder of this process, which its children find by the environment."""
    root = Path(tempfile.mkdtemp(prefix="stretto-"))
    folder = root / leaf
    if not made(folder):
        shutil.rmtree(root, ignore_errors=True)
        return ""
    os.environ[VARIABLE] = str(root)
    atexit.register(_remove, root, os.getpid())
    return str(folder)


def _remove(root: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


def _sources_digest() -> str:
    """A digest of every module that may hold kernels, so that a changed helper gets a new cache directory."""
    digest = hashlib.sha256()
    for path, text in sorted(_sources(importlib.resources.files("stretto"))):
        # Compiled code also holds the constants that say where a field lies.
        if b"@jit" in text or b"@inlined" in text or path.endswith("/structure.py") or path.startswith("_jit/"):
            digest.update(path.encode())
            digest.update(text)
    return digest.hexdigest()[:12]


def _sources(folder: Traversable, at: str = "") -> Iterator[tuple[str, bytes]]:
    """The modules of a package that may lie in an archive (Spark's ``--py-files``), by their paths in it."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry, f"{at}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield at + entry.name, entry.read_bytes()
