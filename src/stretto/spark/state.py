"""The bytes of a bucket's state, and what a state belongs to (``docs/snapshots.md``); never pickle::

    magic "STRBUCK\\0" · version (u16) · header length (u32) · header (JSON) · parts · CRC-32 of all before it (u32)

The header has the lengths of the parts under ``parts``, and ``query``, ``columns`` and ``settings``. Integers are little-endian.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from stretto.errors import SnapshotError

__all__ = ["VERSION", "check_header", "framed", "unframed"]

MAGIC = b"STRBUCK\0"
VERSION = 1

_HEAD = struct.Struct("<8sHI")


def framed(header: Mapping[str, Any], parts: Sequence[bytes]) -> bytes:
    """A state of a header and parts."""
    written = json.dumps({**header, "parts": [len(part) for part in parts]}).encode()
    body = b"".join([_HEAD.pack(MAGIC, VERSION, len(written)), written, *parts])
    return body + struct.pack("<I", zlib.crc32(body))


def unframed(state: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Header and parts of a state.

    Raises
    ------
    SnapshotError
        The bytes are damaged, or of a newer version.
    """
    if len(state) < _HEAD.size + 4 or not state.startswith(MAGIC):
        raise SnapshotError("the state is damaged: it does not start as a state of stretto does")
    _, version, length = _HEAD.unpack_from(state)
    if version > VERSION:
        raise SnapshotError(
            f"the state was written by a newer stretto (version {version}; this one reads {VERSION}): upgrade stretto"
        )
    body, check = state[:-4], struct.unpack("<I", state[-4:])[0]
    if zlib.crc32(body) != check:
        raise SnapshotError("the state is damaged: its checksum is wrong")
    at = _HEAD.size + length
    header = json.loads(state[_HEAD.size : at])
    parts = []
    for size in header["parts"]:
        parts.append(body[at : at + size])
        at += size
    return header, parts


def check_header(
    header: Mapping[str, Any], query: str, columns: Mapping[str, str], settings: Mapping[str, Any]
) -> None:
    """Raise a :class:`SnapshotError` unless a state belongs to this query, with these columns and settings."""
    if header["query"] != query:
        raise SnapshotError(
            "the checkpoint holds the state of another query; start this one with a checkpoint of its own\n"
            f"  checkpoint: {header['query']}\n  query:      {query}"
        )
    for name, value in settings.items():
        if header["settings"][name] != value:
            raise SnapshotError(
                f"the checkpoint was written with {name}={header['settings'][name]!r}, and the query now has "
                f"{name}={value!r}; start it as before, or with a new checkpoint"
            )
    if header["columns"] != columns:
        before = header["columns"]
        wrong = sorted(name for name in {*before, *columns} if before.get(name) != columns.get(name))
        raise SnapshotError(
            "the checkpoint holds events with other columns: "
            + ", ".join(
                f"'{name}' was {before.get(name, 'missing')}, is {columns.get(name, 'missing')}" for name in wrong
            )
        )
