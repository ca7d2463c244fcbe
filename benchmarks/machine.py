"""What a result was measured on."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["describe"]

PACKAGES = ("stretto", "numba", "numpy", "pyarrow")


def describe(program: str = "python -m benchmarks", packages: Sequence[str] = ()) -> dict[str, Any]:
    """Processor, cores, memory, versions and date; nothing that names the machine or its folders.

    ``program`` is what was run, ``packages`` are packages whose versions matter beside the usual ones.
    """
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in (*PACKAGES, *packages)},
        "command": _command(program),
    }


def _command(program: str) -> str:
    """The command line, without where the results go."""
    words = sys.argv[1:]
    kept = [word for before, word in zip(["", *words], words, strict=False) if "--out" not in (before, word)]
    return " ".join([program, *kept])


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "source tree"
