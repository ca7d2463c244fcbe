"""How much memory there is: of the container that the process runs in, or of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: A state of fewer bytes is never refused, nor is the system asked.
SMALL = 64 << 20


def available(root: Path = Path("/")) -> int | None:
    """Bytes that the process can still take without taking them from others; ``None`` where the system does not say.

    The least of what the control groups of the process leave (version 2 and 1, without the file cache that they can drop), of
    what the kernel calls available, and of what limits of the process leave (``ulimit -v`` and ``-d``). ``root`` is where ``proc``
    and ``sys`` are.
    """
    known = [left for left in (*_of_groups(root), *_of_process(root), _of_machine(root)) if left is not None]
    return max(0, min(known)) if known else None


def most_for_state(taken: int, most: int) -> int:
    """The bytes that partial matches may take when they take ``taken``: ``most``, and half of what would be free without them."""
    if taken <= SMALL:
        return most
    there = available()
    return most if there is None else min(most, (there + taken) // 2)


def _of_machine(root: Path) -> int | None:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if root == Path("/") else None
    except (AttributeError, ValueError, OSError):
        return None


def _of_process(root: Path) -> Iterator[int]:
    """What is left of the limits of the process on its addresses and on its data."""
    used: dict[str, int] = {}
    for line in _lines(root / "proc/self/status"):
        name, _, value = line.partition(":")
        if name in ("VmSize", "VmData"):
            used[name] = int(value.split()[0]) << 10
    for line in _lines(root / "proc/self/limits"):
        for told, name in (("Max address space", "VmSize"), ("Max data size", "VmData")):
            if line.startswith(told) and name in used:
                soft = line[len(told) :].split()[0]
                if soft.isdecimal():
                    yield int(soft) - used[name]


def _of_groups(root: Path) -> Iterator[int]:
    """What is left of the limit of each control group, from that of the process up to the root."""
    groups = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            names = "memory.max", "memory.current", "inactive_file"
            base = groups
        elif "memory" in controllers.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            base = groups / "memory"
        else:
            continue
        place = Path(path.lstrip("/"))
        for group in dict.fromkeys((place, *place.parents)):
            limit, used = (_number(base / group / name) for name in names[:2])
            if limit is not None and used is not None:
                yield limit - used + _cache(base / group / "memory.stat", names[2])


def _cache(path: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in _lines(path) if line.startswith(f"{name} ")), 0)


def _number(path: Path) -> int | None:
    """The number in a file; ``None`` where there is none: a group without a limit says ``max``."""
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
