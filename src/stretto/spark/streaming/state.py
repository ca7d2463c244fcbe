"""The bytes of a bucket's state, and what a state belongs to (``docs/snapshots.md``): a frame (:mod:`stretto.frame`) with parts.

The header has the lengths of the parts under ``parts``, and ``query``, ``columns`` and ``settings``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from stretto import frame
from stretto.column_types import type_named
from stretto.errors import SnapshotError, StrettoError
from stretto.languages.afa.written import read_afa
from stretto.languages.clauses import is_clause
from stretto.matching.compiled import read
from stretto.matching.executors.row_pattern import read_clause
from stretto.matching.meaning import changes
from stretto.query.afa import Afa

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
    with frame.reading():
        for size in header["parts"]:
            if not 0 <= size <= len(state) - at:
                raise ValueError(f"it has no part of {size} bytes")
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

    #: A query's text, or a plan; of patterns for each its id, its text, its language, and what else is known of it.
    query: str | list[list[Any]]
    #: The columns with their types.
    columns: Mapping[str, str]
    #: What else a state depends on.
    settings: Mapping[str, Any]
    #: What becomes of late events, which says which columns there are; ``None``: nobody knows.
    late: str | None = None

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
        query = header["query"]
        listed = isinstance(query, list)  # an earlier version had patterns line by line, and a digest of them
        told = self._changes(query, header["settings"].get("language"))
        if told != []:
            own, other = _lines(self.query), _lines(query)
            raise SnapshotError(
                "the checkpoint holds the state of another query, and nothing has been consumed\n"
                f"  checkpoint: {_near(other, own)}\n"
                f"  query:      {_near(own, other)}\n"
                + "".join(f"  changed:    {one}\n" for one in (told or ())[:_MOST])
                + "hint: give this query a checkpoint of its own, or start the other one again; patterns that change while a query "
                "runs go through stretto.spark.match_patterns, as a stream of changes"
            )
        for name, value in self.settings.items():
            before = header["settings"].get(name)
            if listed and name == "patterns":
                continue
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
            if header.get("late", self.late) != self.late and "side" in (header["late"], self.late):
                raise SnapshotError(
                    f"the checkpoint was written with late={header['late']!r}, and the query now has late={self.late!r}, with which "
                    "late events come whole, with columns that the query does not read; nothing has been consumed\n"
                    "hint: start it as before, or with a new checkpoint"
                )
            raise SnapshotError(
                "the checkpoint holds events with other columns: "
                + ", ".join(
                    f"'{name}' was {before.get(name, 'missing')}, is {self.columns.get(name, 'missing')}"
                    for name in wrong
                )
                + "; nothing has been consumed\nhint: cast the columns to what they were, or give a new checkpoint"
            )

    def _changes(self, before: str | list[list[Any]], language: str | None) -> list[str] | None:
        """What the query asks otherwise, in words; empty: nothing; ``None``: it is another one."""
        if isinstance(self.query, str) or isinstance(before, str):
            there, here = _lines(before), _lines(self.query)
            return [] if there == here else self._texts_differ(there, here, language) if self.query == here else None
        known, own = ({row[0]: row for row in rows} for rows in (before, self.query))
        told = [f"pattern '{name}' is gone" for name in known if name not in own]
        told += [f"pattern '{name}' is new" for name in own if name not in known]
        if told or [row[0] for row in before] != [row[0] for row in self.query]:
            return told or None
        for row, other in zip(before, self.query, strict=True):
            said = row[2:] == other[2:]
            differ = self._texts_differ(row[1], other[1], row[2]) if said else ["what is said of it differs"]
            told += [f"pattern '{row[0]}': {one}" for one in (["what it asks"] if differ is None else differ)]
        return told

    def _texts_differ(self, before: str | None, now: str | None, language: str | None) -> list[str] | None:
        """What differs in the meaning of two texts of a language, as :func:`changes` tells it."""
        if before == now:
            return []
        if before is None or now is None:
            return None
        readers: Mapping[str | None, Callable[[str], Any]] = {"match_recognize": read_clause, "afa": self._read_afa}
        parsed = readers.get(language) or partial(_read, language=language)
        try:
            return changes(before, parsed(now), parsed)
        except StrettoError:
            return None

    def _read_afa(self, text: str) -> Afa:
        """An automaton, whose text may leave the events' attributes to the columns."""
        return read_afa(text, {name: kind for name, said in self.columns.items() if (kind := _type(said)) is not None})


#: How many changes of patterns an error names.
_MOST = 4

#: How much of a long text an error shows, before and after the place where it differs.
_SHOWN = 120


def _lines(query: str | list[list[Any]]) -> str:
    """A query as text; patterns are lines."""
    return query if isinstance(query, str) else "\n".join(line_of(*row) for row in query)


def _type(said: str) -> pa.DataType | None:
    """A column's type; ``None``: one that no automaton reads."""
    try:
        return type_named(said)
    except ValueError:
        return None


def _read(text: str, language: str | None) -> Any:
    return read_clause(text) if is_clause(text, language) else read(text, language)


def line_of(name: str, text: str | None, language: str | None, since: str | None, *_: Any) -> str:
    """A pattern as a line for people."""
    return f"{name} from {since or 'the beginning'}: {text}"


def _near(text: str, other: str) -> str:
    """A text, or of a long one the part around the first difference to another."""
    if len(text) <= 4 * _SHOWN:
        return text.replace("\n", "\n              ")
    at = next(
        (i for i, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), min(len(text), len(other))
    )
    start, end = max(0, at - _SHOWN), min(len(text), at + _SHOWN)
    return ("… " if start else "") + text[start:end].replace("\n", " ") + (" …" if end < len(text) else "")
