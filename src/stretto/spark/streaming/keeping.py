"""What buckets of any kind do alike: how what arrives is treated, what is counted, and their state as bytes. It knows no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from stretto.frame import Section, reading
from stretto.spark.streaming.state import Owner, framed, unframed
from stretto.times import ticks_per_second

#: What to do about what is late.
WAIT = "wait longer with disorder='…', or choose late='drop' or late='side'"

#: What to do about a retraction that finds nothing.
UNKNOWN = "a retraction shows the event as it was, and comes with it or in a later micro-batch; choose late='drop' or late='side'"


@dataclass(frozen=True)
class Settings:
    """How a continuous query treats its events; part of what a state belongs to.

    Parameters
    ----------
    time, sequence
        The columns that order the events.
    time_unit
        What one unit of an integer time is.
    late
        ``"drop"``, ``"error"`` or ``"side"``.
    event_id
        The column that tells duplicates; ``None``: none are looked for.
    delay
        The watermark's delay in microseconds: for so long ids are known.
    buckets
        Into how many buckets keys are hashed; a state of another number cannot be read.
    sign
        The column that says +1 of a row, or −1: it takes an event back. ``None``: all are insertions.
    changes_now
        Whether a change of patterns whose time the watermark has passed, or that says none, holds from the watermark on.
    behind
        How far the bucket's watermark is behind Spark's, in whole milliseconds; less than 0: ahead of it.
    follows
        Whether events are results of another query in the same plan. They come with the micro-batch whose watermark has passed them:
        late is then what the bucket has passed, not what Spark has.
    """

    time: str
    sequence: str | None
    time_unit: str | None
    late: str
    event_id: str | None
    delay: int
    buckets: int
    sign: str | None = None
    changes_now: bool = False
    behind: int = 0
    follows: bool = False


@dataclass
class Counts:
    """What happened in one call. The last four are levels after it, the rest are of this call alone."""

    late: int = 0
    duplicates: int = 0
    no_time: int = 0
    late_changes: int = 0
    bad_changes: int = 0
    released: int = 0
    matches: int = 0
    timeouts: int = 0
    revisions: int = 0
    suppressed: int = 0
    disabled: int = 0
    waited_ms: float = 0.0
    kernel_ms: float = 0.0
    state_written: int = 0
    held: int = 0
    keys: int = 0
    partial_matches: int = 0
    state_bytes: int = 0


#: Levels of which the greatest of all buckets is told as well, and how that is called.
FULLEST = {name: f"fullest_{name}" for name in ("held", "keys", "partial_matches", "state_bytes")}


#: What is told of each bucket after a call, and the name of it in Spark's progress: it is no count.
LEVELS, BY_BUCKET = ("bucket", *FULLEST, "oldest"), "buckets"


class AnyBucket:
    """The keys of one bucket.

    Parameters
    ----------
    settings
        How what arrives is treated.
    kind
        The type of times.
    """

    def __init__(self, settings: Settings, kind: pa.DataType) -> None:
        self.settings = settings
        self.counts = Counts()
        #: After the call, when the oldest event was that it holds or that partial matches may hold (µs); ``None``: that is not known.
        self.oldest: int | None = None
        #: What was late in the calls so far, for the side output.
        self.set_aside: list[pa.Table] = []
        #: When the bucket wants to be called although nothing arrives (ms), and for which time it is registered.
        self.timer: int | None = None
        # Of dates the engine measures seconds.
        per_second = Fraction(1) if pa.types.is_date(kind) else ticks_per_second(kind, settings.time_unit or "us")
        assert per_second is not None
        self.unit = 10**6 / per_second  #: microseconds in one unit of time

    def receive(self, rows: Sequence[tuple[int, int, bytes]], watermark: int | None) -> None:
        """Take what arrived, less what is late.

        Parameters
        ----------
        rows
            Packed rows: where they come from, their numbers there, and tables.
        watermark
            In microseconds since 1970; ``None``: there is none yet.

        Raises
        ------
        DataError
            A row is wrong; with ``late="error"``, also if it is late.
        """
        raise NotImplementedError

    def advance(self, watermark: int | None) -> Iterator[pa.Table]:
        """Work up to the watermark; yields results in pieces of bounded size."""
        raise NotImplementedError

    @property
    def idle(self) -> bool:
        """Whether the bucket holds nothing that could matter to what still comes."""
        raise NotImplementedError

    def wakes_at(self) -> int | None:
        """When the bucket next has something to do although nothing arrives: a watermark in milliseconds."""
        raise NotImplementedError

    # -- state --------------------------------------------------------------------------------------------------------

    @property
    def owner(self) -> Owner:
        """What its states belong to."""
        raise NotImplementedError

    def saved(self) -> tuple[dict[str, Any], list[bytes]]:
        """What a state has beside owner and timer: values in its header, and its parts."""
        raise NotImplementedError

    def restore(self, header: dict[str, Any], parts: list[bytes]) -> None:
        """Take what :meth:`saved` gave."""
        raise NotImplementedError

    def state(self) -> tuple[dict[str, Any], list[bytes]]:
        """The bucket's state: a header and parts."""
        values, parts = self.saved()
        self.counts.state_bytes = sum(map(len, parts))
        return self.owner.header | {"timer": self.timer} | values, parts

    @reading()
    def take_over(self, header: dict[str, Any], parts: list[bytes]) -> None:
        """Go on from a state.

        Raises
        ------
        SnapshotError
            It is damaged, or of another query or plan, or other settings.
        """
        self.owner.check(header)
        self.timer = None if header["timer"] is None else Section(header).count("timer")
        self.restore(header, parts)

    def dump(self) -> bytes:
        """The bucket's state as bytes."""
        return framed(*self.state())

    def load(self, state: bytes) -> None:
        """Do what :meth:`take_over` does, of bytes, which may also be of a newer version."""
        self.take_over(*unframed(state))
