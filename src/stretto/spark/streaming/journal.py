"""A bucket's state in Spark's store: a whole, and a journal of what has arrived since; beside it a copy on the executor's disk.

Most micro-batches add to the journal what arrived, and write as much. Once the journal would be half as large as the state, the
state is written whole, and the journal begins anew; so what is written in the long run is proportional to what arrives.

The store hands out values as slowly as it takes them, and who reads a journal works through it again. So each call leaves the state
in a file of the executor (:class:`Copies`) as well, which the next call takes, if it is there. Both the store and the copy bear a
stamp, which no two calls have in common. A copy counts if its stamp is the store's: then it was left by the very call whose writes
the store has. Where a task failed, was killed or runs elsewhere, the stamps differ, or there is no copy, and the store is read.

A journal is read with the settings that it was written with; a query that starts with others writes its states whole first.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stretto.folders import replaced
from stretto.spark.streaming.keeping import AnyBucket, Settings
from stretto.spark.streaming.state import framed, unframed

#: A row of what arrived: where it comes from, its number there, and a table.
Packed = tuple[int, int, bytes]

#: The journal has at most this part of the size of the state.
_SHARE = 1 / 2

#: Copies are left as long as this part of the disk stays free, and deleted after so many seconds if nobody takes them.
_FREE = 1 / 20
_STALE = 3600


@dataclass(frozen=True)
class _Head:
    """What the journal says of itself: its entry 0."""

    name: str  #: of the copy
    stamp: str  #: of the call that has written last
    timer: int | None  #: the bucket's, after that call
    late: str  #: as in the settings, and so the delay
    delay: int
    entries: int = 0
    size: int = 0  #: of the entries in bytes


class Journal:
    """The state of the bucket whose turn it is.

    Parameters
    ----------
    whole
        A value state of Spark's.
    entries
        A map state of Spark's from numbers to bytes.
    copies
        Where copies are; ``None``: nowhere.
    make
        A new bucket of some settings, and with the budget that the query has or with none.
    settings
        How rows are treated now.
    """

    def __init__(
        self,
        whole: Any,
        entries: Any,
        copies: Copies | None,
        make: Callable[[Settings, bool], AnyBucket],
        settings: Settings,
    ) -> None:
        self._whole, self._entries, self._copies, self._make = whole, entries, copies, make
        self._settings = settings
        self._head: _Head | None = None
        self.known = False  #: whether there was a state

    def read(self) -> AnyBucket:
        """The bucket as the last call left it."""
        bucket = self._make(self._settings, False)
        head = self._entries.getValue((0,))
        if head is not None:
            self.known, self._head = True, _Head(**json.loads(head[0]))
            copy = self._copies.take(self._head.name, self._head.stamp) if self._copies is not None else None
            if copy is not None:
                bucket.take_over(*copy)
                return bucket
        whole = self._whole.get()
        if whole is not None:
            self.known = True
            bucket.load(bytes(whole[0]))
            if self._head is not None and self._head.entries:
                bucket.take_over(*self._worked_through(bytes(whole[0]), self._head))
        return bucket

    def _worked_through(self, whole: bytes, head: _Head) -> tuple[dict[str, Any], list[bytes]]:
        # What was listed once may be listed again.
        bucket = self._make(replace(self._settings, late=head.late, delay=head.delay), True)
        bucket.load(whole)
        for number in range(1, head.entries + 1):
            header, parts = unframed(bytes(self._entries.getValue((number,))[0]))
            bucket.receive([(*of, data) for of, data in zip(header["rows"], parts, strict=True)], header["watermark"])
            for _ in bucket.advance(header["watermark"]):
                pass
        bucket.timer = head.timer
        return bucket.state()

    def write(self, bucket: AnyBucket, arrived: Sequence[Packed], watermark: int | None) -> None:
        """Keep the bucket as it is after a call, and what the call brought."""
        header, parts = bucket.state()
        now = self._settings
        head = self._head or _Head(os.urandom(8).hex(), "", None, now.late, now.delay)
        entry = framed({"watermark": watermark, "rows": [row[:2] for row in arrived]}, [row[2] for row in arrived])
        fits = head.size + len(entry) <= _SHARE * bucket.counts.state_bytes
        if self.known and fits and (head.late, head.delay) == (now.late, now.delay):
            head = replace(head, entries=head.entries + 1, size=head.size + len(entry))
            self._entries.updateValue((head.entries,), (entry,))
            bucket.counts.state_written = len(entry)
        else:
            if head.entries:
                self._entries.clear()
            head = replace(head, entries=0, size=0, late=now.late, delay=now.delay)
            whole = framed(header, parts)
            self._whole.update((whole,))
            bucket.counts.state_written = len(whole)
        head = replace(head, stamp=os.urandom(8).hex(), timer=bucket.timer)
        self._entries.updateValue((0,), (json.dumps(vars(head)).encode(),))
        if self._copies is not None:
            self._copies.leave(head.name, head.stamp, header, parts)

    def clear(self) -> None:
        """Forget what was kept."""
        if self.known:
            self._whole.clear()
        if self._head is not None:
            self._entries.clear()


class Copies:
    """Files with states in a folder that belongs to the executor, and goes with it. A copy is taken once.

    A file is a line of JSON (stamp, header, sizes of the parts) and the parts.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def here(cls) -> Copies | None:
        """The copies of this executor; ``None``: Spark names no folder."""
        folders = os.environ.get("SPARK_LOCAL_DIRS")
        if not folders:
            return None
        found = cls(Path(folders.split(",")[0]) / "stretto")
        try:
            found._folder.mkdir(mode=0o700, exist_ok=True)
            found._delete_stale()
        except OSError:
            return None
        return found

    def _delete_stale(self) -> None:
        """Delete what was left by queries that have ended, and of buckets that are elsewhere by now."""
        oldest = clock.time() - _STALE
        for file in os.scandir(self._folder):
            with contextlib.suppress(FileNotFoundError):  # another worker has taken it, or deleted it as well
                if file.stat().st_mtime < oldest:
                    os.unlink(file)

    def take(self, name: str, stamp: str) -> tuple[dict[str, Any], list[bytes]] | None:
        """Header and parts of the copy with this stamp, which then is no more; ``None``: there is none."""
        path = self._folder / name
        try:
            with path.open("rb") as file:
                path.unlink()
                about = json.loads(file.readline())
                parts = [file.read(size) for size in about["parts"]]
        except (OSError, ValueError, LookupError):
            return None
        fits = about["stamp"] == stamp and [len(part) for part in parts] == about["parts"]
        return (about["header"], parts) if fits else None

    def leave(self, name: str, stamp: str, header: dict[str, Any], parts: Sequence[bytes]) -> None:
        """Leave a copy for the next call, if there is room."""
        path = self._folder / name
        about = {"stamp": stamp, "header": header, "parts": [len(part) for part in parts]}
        with contextlib.suppress(OSError):
            disk = shutil.disk_usage(self._folder)
            if disk.free < _FREE * disk.total:
                return
            with replaced(path) as draft, draft.open("wb") as file:
                file.writelines([json.dumps(about).encode(), b"\n", *parts])
