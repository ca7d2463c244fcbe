"""The bytes of a bucket's state, and what a state belongs to (``docs/snapshots.md``): a frame (:mod:`stretto.frame`) with parts.

The header has the lengths of the parts under ``parts``, and ``query``, ``columns`` and ``settings``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stretto import frame
from stretto.errors import SnapshotError

MAGIC = b"STRBUCK\0"

#: The versions that are read; the last one is written. States of the first have no journal beside them.
VERSIONS = (1, 2)


def framed(header: Mapping[str, Any], parts: Sequence[bytes]) -> bytes:
    """A state of a header and parts."""
    return frame.framed({**header, "parts": [len(part) for part in parts]}, parts, MAGIC, VERSIONS[-1])


def unframed(state: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Header and parts of a state.

    Raises
    ------
    SnapshotError
        The bytes are damaged, or of a newer version.
    """
    header, at = frame.unframed(state, MAGIC, *VERSIONS)
    parts = []
    for size in header["parts"]:
        parts.append(state[at : at + size])
        at += size
    return header, parts


def header_size(start: bytes) -> int:
    """How many bytes of a state its header takes, with what stands before it."""
    return frame.header_size(start, MAGIC, *VERSIONS)


def header_of(start: bytes) -> dict[str, Any]:
    """The header alone, of the first :func:`header_size` bytes of a state or more."""
    return frame.header_of(start, header_size(start))


class Owner(NamedTuple):
    """What a checkpoint belongs to."""

    #: A query's text, patterns line by line, or a plan.
    query: str
    #: The columns with their types.
    columns: Mapping[str, str]
    #: What else a state depends on.
    settings: Mapping[str, Any]

    @property
    def header(self) -> dict[str, Any]:
        """What a state says of its owner."""
        return self._asdict()

    @property
    def digest(self) -> str:
        """A short hash of all that a checkpoint depends on."""
        written = json.dumps(self.header, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(written.encode()).hexdigest()[:16]

    def check(self, header: Mapping[str, Any]) -> None:
        """Raise a :class:`SnapshotError` unless a state with this header is the owner's."""
        if header["query"] != self.query:
            raise SnapshotError(
                "the checkpoint holds the state of another query, and nothing has been consumed\n"
                f"  checkpoint: {_near(header['query'], self.query)}\n"
                f"  query:      {_near(self.query, header['query'])}\n"
                "hint: give this query a checkpoint of its own, or start the other one again; patterns that change while a query "
                "runs go through stretto.spark.match_patterns, as a stream of changes"
            )
        for name, value in self.settings.items():
            before = header["settings"].get(name)
            if before != value and name == "patterns":
                raise SnapshotError(
                    "the checkpoint was written with other patterns (of the same texts), and nothing has been consumed\n"
                    "hint: give the patterns as they were, or a new checkpoint; patterns that change while a query runs are a stream"
                )
            if before != value:
                raise SnapshotError(
                    f"the checkpoint was written with {name}={before!r}, and the query now has {name}={value!r}; "
                    "nothing has been consumed\nhint: start it as before, or with a new checkpoint"
                )
        if header["columns"] != self.columns:
            before = header["columns"]
            wrong = sorted(name for name in {*before, *self.columns} if before.get(name) != self.columns.get(name))
            raise SnapshotError(
                "the checkpoint holds events with other columns: "
                + ", ".join(
                    f"'{name}' was {before.get(name, 'missing')}, is {self.columns.get(name, 'missing')}"
                    for name in wrong
                )
                + "; nothing has been consumed\nhint: cast the columns to what they were, or give a new checkpoint"
            )


#: How much of a long text an error shows, before and after the place where it differs.
_SHOWN = 120


def _near(text: str, other: str) -> str:
    """A text, or of a long one the part around the first difference to another."""
    if len(text) <= 4 * _SHOWN:
        return text.replace("\n", "\n              ")
    at = next(
        (i for i, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), min(len(text), len(other))
    )
    start, end = max(0, at - _SHOWN), min(len(text), at + _SHOWN)
    return ("… " if start else "") + text[start:end].replace("\n", " ") + (" …" if end < len(text) else "")
