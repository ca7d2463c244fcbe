"""The memory of this process, from /proc where there is one."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["peak", "reset_peak", "resident"]


def resident() -> int:
    """Bytes resident now; 0 where the system does not tell."""
    return _status("VmRSS")


def peak() -> int:
    """The most bytes that were resident since :func:`reset_peak`."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Forget the peak so far."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _status(field: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    found = [line for line in lines if line.startswith(f"{field}:")]
    return int(found[0].split()[1]) * 1024 if found else 0
