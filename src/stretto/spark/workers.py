"""What a Python worker of Spark keeps between tasks.

After each task PySpark's daemon has the garbage collector go through all objects of a worker that is reused. Modules and
compiled kernels are some 150,000 objects, which takes 0.07 to 0.1 s, as often as there are tasks: more than a small task itself
takes. None of them is garbage.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: How many modules were loaded when last objects were put aside.
_loaded = 0


def keep_loaded() -> None:
    """Put what has been loaded aside, where the collector does not look, if there are modules that were not there before."""
    global _loaded
    if len(sys.modules) != _loaded:
        _loaded = len(sys.modules)
        gc.collect()
        gc.freeze()


def worker_task(function: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Make a function that takes a task's batches one that keeps, when it is done, what it has loaded."""

    @wraps(function)
    def run(*given: P.args, **named: P.kwargs) -> Iterator[T]:
        from stretto.spark.kernels import receive

        receive()
        try:
            yield from function(*given, **named)
        finally:
            keep_loaded()

    return run
