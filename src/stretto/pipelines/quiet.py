"""What Spark's JVM writes on standard error while a pipeline runs, without lines in which PySpark's workers tell of themselves."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: What a worker tells that prepares the state of a stream, whatever the level of the log.
_TOLD = re.compile(rb"(Starting )?Streaming \w+ Python worker\b")


@contextmanager
def quiet_workers() -> Iterator[None]:
    """A JVM that is started inside writes through a pipe, of which a thread hands on all lines but those."""
    try:
        own = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)
    threading.Thread(target=_hand_on, args=(read, own), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(own, 2)  # the thread goes on as long as the JVM has its end


def _hand_on(read: int, to: int) -> None:
    with os.fdopen(read, "rb") as lines, os.fdopen(to, "wb", buffering=0) as out:
        blank = False  # behind each of those lines is an empty one
        for line in lines:
            told = _TOLD.match(line) is not None
            if not told and not (blank and not line.strip()):
                out.write(line)
            blank = told
