"""Random cases in a process of their own, with bounded memory, which is started again where it dies or takes too long.

The child prints a line of JSON before each case, ``[number, null, place]``, and one with what came of it:
``[number, outcome, place]``.
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

__all__ = ["MOST_SECONDS", "Outcome", "run", "serve", "told"]

#: Seconds of processor time that a case may take.
MOST_SECONDS = 20

#: … and of the clock, for a case that waits.
MOST_WAITING = 300

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Outcome:
    """How often what came of the cases, and the faults: number, what, and where."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str, str]] = field(default_factory=list)
    #: The slowest case, and its seconds.
    slowest: tuple[int, float] = (-1, 0.0)
    #: The first case that was not tried.
    next: int = 0


def told(when: str, error: BaseException) -> str:
    """An error that must not be, with the last places of the package that it went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/stretto/" in frame.filename]
    where = "; ".join(f"{frame.filename.rpartition('/stretto/')[2]}:{frame.lineno}" for frame in frames[-2:])
    return f"{when}: {type(error).__name__}: {str(error)[:100]} ({where})"


def serve(numbers: range, bound: int, place_of: Callable[[int], str], tried: Callable[[int], tuple[str, str]]) -> None:
    """The child: try cases in so many bytes of memory, and print what comes of each."""
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    out = sys.stdout
    for number in numbers:
        print(json.dumps([number, None, place_of(number)]), file=out, flush=True)
        print(json.dumps([number, *tried(number)]), file=out, flush=True)


def run(
    arguments: Sequence[str], first: int, count: int, fine: Collection[str], *, until: float | None = None
) -> Outcome:
    """Try cases in a child that is started again where it dies.

    Parameters
    ----------
    arguments
        Of Python, for the child: a module and what it is told; ``--first`` and ``--count`` follow.
    first, count
        Which cases.
    fine
        What may come of a case; everything else is a fault.
    until
        A time of :func:`time.monotonic` at which no more case begins.
    """
    outcome, last = Outcome(next=first), first + count
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    while outcome.next < last:
        command = [sys.executable, "-X", "faulthandler", "-m", *arguments]
        command += ["--first", str(outcome.next), "--count", str(last - outcome.next)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as child:
            number, place, fault = _listen(child, outcome, fine, until)
            child.kill()
            said = child.stderr.read().decode(errors="replace") if child.stderr else ""
            code = child.wait()
        if number is None:
            raise RuntimeError(f"no case was tried: {said[-2000:]}")
        outcome.next = number + 1
        if place is None:  # all that were asked for, or the time is over
            break
        lines = [line.strip() for line in said.splitlines() if "/stretto/" in line]
        what = fault or f"died with {code}: {' | '.join(line.rpartition('/stretto/')[2] for line in lines[:3])}"
        outcome.counts[what.split(":")[0]] += 1
        outcome.faults.append((number, what, place))
    return outcome


def _seconds(pid: int) -> float:
    """The processor time of a process."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            user, system = stat.read().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / _TICKS


def _listen(
    child: subprocess.Popen[bytes], outcome: Outcome, fine: Collection[str], until: float | None
) -> tuple[int | None, str | None, str | None]:
    """The last case, its place if nothing came of it, and what was wrong if not that the process died."""
    assert child.stdout is not None
    number, place, began, clock, rest = None, None, 0.0, time.monotonic(), b""
    while True:
        ready, _, _ = select.select([child.stdout], [], [], 1.0)
        if not ready:
            if place is not None and _seconds(child.pid) - began > MOST_SECONDS:
                return number, place, f"more than {MOST_SECONDS} s"
            if place is not None and time.monotonic() - clock > MOST_WAITING:
                return number, place, f"waits for more than {MOST_WAITING} s"
            continue
        read = os.read(child.stdout.fileno(), 1 << 16)
        if not read:
            return number, place, None
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            number, what, place = json.loads(line)
            clock, now = time.monotonic(), _seconds(child.pid)
            if what is None:
                began = now
                continue
            outcome.slowest = max(outcome.slowest, (number, now - began), key=lambda one: one[1])
            if what in fine:
                outcome.counts[what] += 1
            else:
                outcome.counts["error"] += 1
                outcome.faults.append((number, what, str(place)))
            place = None
            if until is not None and clock > until:
                return number, None, None
