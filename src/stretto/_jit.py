"""The only Numba decorator of the package, and the status codes that kernels return.

Kernels never raise and never grow arrays: they return ``(status, …)``, Python acts on it and calls again.

Compiled code is cached on disk in one directory for each version of stretto and mode (bounds-checked or not), because
Numba's own index notices neither: a helper that changed in another module, nor ``NUMBA_BOUNDSCHECK``. ``STRETTO_CACHE_DIR``
moves it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import platformdirs
from numba.core import config

__all__ = [
    "DONE",
    "GROW_ACTIVE",
    "GROW_ARENA",
    "GROW_NODES",
    "GROW_OUTPUT",
    "GROW_STACK",
    "GROW_TABLE",
    "OUTPUT_FULL",
    "TRANSITION_MISSING",
    "inlined",
    "is_cold",
    "jit",
]

DONE = 0  #: all events of the call are processed
OUTPUT_FULL = 1  #: drain the output buffers, then call again
TRANSITION_MISSING = 2  #: determinize (state, class) = the two words returned, then call again
GROW_NODES = 3  #: the node store is full: collect or double, then call again
GROW_ARENA = 4  #: the store of partition records is full
GROW_ACTIVE = 5  #: the scratch for active states or union-lists is too small
GROW_STACK = 6  #: the enumeration stack or path is too small
GROW_OUTPUT = 7  #: one match does not fit into the empty output buffers
GROW_TABLE = 8  #: a hash table is too full

F = TypeVar("F", bound=Callable[..., Any])


def _sources_digest() -> str:
    """A digest of every module that may hold kernels, so that a changed helper gets a new cache directory."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        text = path.read_bytes()
        if b"@jit" in text or b"@inlined" in text or path.name == "_jit.py":
            digest.update(path.name.encode())
            digest.update(text)
    return digest.hexdigest()[:12]


def _cache_directory() -> str:
    mode = "checked" if config.BOUNDSCHECK else "plain"
    leaf = Path("kernels") / f"{_sources_digest()}-numba{numba.__version__}-{mode}"
    chosen = os.environ.get("STRETTO_CACHE_DIR")
    root = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("stretto"))
    for candidate in (root, Path(tempfile.gettempdir()) / f"stretto-{os.getuid() if hasattr(os, 'getuid') else 0}"):
        try:
            (candidate / leaf).mkdir(parents=True, exist_ok=True)
            if os.access(candidate / leaf, os.W_OK):
                return str(candidate / leaf)
        except OSError:
            continue
    return ""


CACHE_DIRECTORY = _cache_directory()  #: where compiled kernels are kept; empty when nowhere is writable


def jit(function: F) -> F:
    """Compile a kernel: no Python objects, cached on disk, wrap-around integers, IEEE division."""
    return _compiled(function, forceinline=False)


def inlined(function: F) -> F:
    """As :func:`jit`, for a kernel's helper: it becomes part of its caller.

    A call that is not inlined counts references of every array that it hands over, which costs more than most helpers.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool) -> F:
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_DIRECTORY
    try:
        options = {
            "cache": bool(CACHE_DIRECTORY),
            "error_model": "numpy",
            "nogil": True,
            "forceinline": forceinline,
            "_nrt": False,
        }
        compiled: F = numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before
    return compiled


def is_cold() -> bool:
    """Whether no compiled kernel is on disk yet, so that the first call has to compile."""
    if config.DISABLE_JIT:
        return False
    return not CACHE_DIRECTORY or not any(Path(CACHE_DIRECTORY).rglob("*.nbi"))
