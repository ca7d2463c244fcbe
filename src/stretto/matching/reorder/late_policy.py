"""One vocabulary of time: ``disorder=``, ``speculation=``, ``late=`` and ``advance()``.

``disorder`` says how late events may be, ``speculation`` how far answers go ahead of what is certain, ``late`` what becomes of events
that are later still, and ``advance(t)`` that none before t will come. They mean the same everywhere (``docs/disorder.md``).
"""

from __future__ import annotations

from stretto.errors import OptionError

#: What may become of late events.
LATE = ("error", "drop", "side")


def check_late(late: str, allowed: tuple[str, ...] = LATE) -> None:
    """Raise an :class:`OptionError` unless ``late`` says what becomes of late events."""
    if late not in allowed:
        raise OptionError(f"late={late!r}: expected {' or '.join(map(repr, allowed))}")
