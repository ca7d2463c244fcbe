"""One core for the process, and for the libraries that would start threads."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["SINGLE_THREAD", "main"]

#: Environment of the workers: no library starts threads of its own.
SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "ARROW_NUM_THREADS": "1",
}


def main(work: Callable[[dict[str, Any]], dict[str, Any]], *, one_core: bool = True) -> None:
    """Read the job that the command line names, do it, print the result as the last line."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if one_core and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print("\n" + json.dumps(work(job)), flush=True)
