"""Events as a stream, while patterns change: the sample once more in the order of its times, or what comes into a file that grows.

Nothing runs by itself. Whoever looks asks for the next events, as far as the clock has come; what nobody asks for, nobody computes.
"""

from __future__ import annotations

import time as clock
import warnings
from collections import Counter, deque
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import LimitError, OptionError, StrettoWarning
from stretto.matching.pattern_set.changes import Change
from stretto.matching.pattern_set.pattern_set import PatternSet
from stretto.studio.values import as_value
from stretto.studio.workbench import LONGEST, MOST_MATCHES, Workbench

#: Patterns that are in a replay at once.
MOST_PATTERNS = 100
#: The last matches, which are kept; the others are counted.
MOST_KEPT = 100
#: Characters of a pattern's name.
LONGEST_NAME = 100
#: Events that are read in one piece, and the seconds after which a call reads no more of them.
PIECE = 256
_SECONDS = 0.5


class Stream(Protocol):
    """Events in the order of time, of which each has its number."""

    #: How many events have been read.
    read: int

    def next(self, up_to: float, more: int) -> pa.Table | None:
        """The next piece of the events up to a place on the axis of time, or of so many more.

        It may be empty. ``None``: there is none.
        """

    @property
    def ended(self) -> bool:
        """Whether no event comes any more."""

    def next_time(self) -> Any:
        """A time that is later than that of the last event that was read, and no later than that of an event to come.

        Raises
        ------
        OptionError
            No event comes any more.
        """

    def events_of(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        """The events of matches, as :meth:`Workbench.events_of` gives them."""

    def state(self) -> dict[str, Any]:
        """``at``, the place of the last event; ``span``, those of the first and the last; ``live``, what a live stream has to say."""


class Sample:
    """The events of a workbench."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._places = np.array(bench.places(bench.events) or (), np.float64)
        self.read = 0

    @property
    def ended(self) -> bool:
        """Whether all were read."""
        return self.read == len(self._places)

    def next(self, up_to: float, more: int) -> pa.Table | None:
        """The next piece."""
        wanted = max(int(np.searchsorted(self._places, up_to, side="right")), self.read + more)
        piece = self._bench.numbered.slice(self.read, min(PIECE, max(0, wanted - self.read)))
        self.read += piece.num_rows
        return piece if piece.num_rows else None

    def next_time(self) -> Any:
        """The time of the first event that is later than all that were read."""
        following = int(np.searchsorted(self._places, self._places[self.read - 1], side="right")) if self.read else 0
        if following == len(self._places):
            raise OptionError("no event comes any more, for which the pattern would hold: begin the replay again")
        return self._bench.events.column(self._bench.roles.time)[following]  # an Arrow value, which has nanoseconds

    def events_of(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        """As the workbench gives them."""
        return self._bench.events_of(found)

    def state(self) -> dict[str, Any]:
        """Where it is."""
        places = self._places
        return {
            "at": float(places[self.read - 1]) if self.read else None,
            "span": [float(places[0]), float(places[-1])] if len(places) else None,
            "live": None,
        }


class Replay:
    """A stream of events, with patterns that are put in and taken out on the way. ``stream``: ``None`` is the sample once more.

    >>> from stretto.studio.workbench import Roles
    >>> replay = Replay(Workbench(pa.table({"type": ["A", "B"], "t": [1, 2]}), Roles(time="t")))
    >>> _ = replay.put("pairs", "SELECT * FROM S WHERE A AS a; B AS b")
    >>> found = replay.read(up_to=2.0, more=0)
    >>> found["read"], found["count"], found["matches"][0]["variables"]
    (2, 1, {'a': [0], 'b': [1]})

    Raises
    ------
    OptionError
        The events have no column of time.
    """

    def __init__(self, bench: Workbench, stream: Stream | None = None) -> None:
        if bench.roles.time is None:
            raise OptionError("a replay needs a column of time: choose it")
        self._bench = bench
        self._stream: Stream = stream or Sample(bench)
        self._patterns = PatternSet(
            bench.numbered.schema,
            **bench.roles.of_columns(),
            positions=True,
            language=bench.roles.language,
            budget=4 * MOST_MATCHES,
            on_limit="disable",
            warn_after=None,
        )
        self._texts: dict[str, str] = {}
        self._ended = False
        self._count: Counter[str] = Counter()
        self._kept: deque[dict[str, Any]] = deque(maxlen=MOST_KEPT)
        self._events: dict[str, Any] = {}  # those of the matches that are kept

    def put(self, name: str, text: str) -> dict[str, Any]:
        """Let a pattern hold from the next time on that is later than that of the last event; an empty text takes it out.

        Raises
        ------
        QueryError
            The query is wrong, or none that patterns may be.
        LimitError
            There are :data:`MOST_PATTERNS` already.
        OptionError
            The name is empty or too long, or no event comes any more.
        """
        if not name.strip() or len(name) > LONGEST_NAME:
            raise OptionError(f"a pattern needs a name of at most {LONGEST_NAME} characters")
        if len(text) > LONGEST:
            raise LimitError(f"the query has {len(text):,} characters; {LONGEST:,} are taken at most")
        if text.strip():
            if name not in self._texts and len(self._texts) >= MOST_PATTERNS:
                raise LimitError(f"{MOST_PATTERNS} patterns are in this replay, which are the most: take one out")
            self._bench.compiled(text)  # so that a mistake has its place in the text alone
        since = self._stream.next_time() if self._stream.read or self._ended else None
        self._patterns.change(Change(name, text if text.strip() else None, since=since))
        if text.strip():
            self._texts[name] = text
        else:
            self._texts.pop(name, None)
        return self.state()

    def read(self, up_to: float, more: int) -> dict[str, Any]:
        """Read the events up to a place on the axis of time, and so many more than were read; at most for half a second.

        The state then has ``late``: whether there was no time for all of them. Behind the last event the matches come that waited for
        time to pass.
        """
        stream = self._stream
        wanted = stream.read + max(0, more)
        until = clock.monotonic() + _SECONDS
        late = True
        while clock.monotonic() < until:
            piece = stream.next(up_to, wanted - stream.read)
            if piece is None:
                late = False
                break
            with warnings.catch_warnings():  # the state says which patterns were stopped
                warnings.simplefilter("ignore", StrettoWarning)
                for found in self._patterns.iter_push(piece):
                    self._keep(found)
        if stream.ended and not self._ended:
            self._ended = True
            self._keep(self._patterns.finish())
        return self.state() | {"late": late}

    def _keep(self, found: pa.Table) -> None:
        """Count matches, and keep the last ones."""
        for one in pc.value_counts(found.column("pattern")).to_pylist():
            self._count[one["values"]] += one["counts"]
        number = self._bench.number
        made = []
        for row in found.slice(max(0, found.num_rows - MOST_KEPT)).to_pylist():
            variables: dict[str, list[int]] = {}
            for one in row["events"]:
                if one["event"][number] is not None:  # only some of its attributes are selected
                    variables.setdefault(one["variable"], []).append(one["event"][number])
            made.append(
                {
                    "rows": row["positions"],
                    "variables": variables,
                    "values": {"pattern": row["pattern"], "since": as_value(row["since"])},
                }
            )
        self._kept.extend(made)
        needed = {str(row) for one in self._kept for row in one["rows"]}
        self._events = {
            row: event for row, event in (self._events | self._stream.events_of(made)).items() if row in needed
        }

    def state(self) -> dict[str, Any]:
        """How far it is, the patterns with what each has found, and the last matches, the newest first."""
        disabled = self._patterns.disabled
        return {
            "read": self._stream.read,
            **self._stream.state(),
            "ended": self._ended,
            "patterns": [
                {
                    "name": name,
                    "text": self._texts.get(name, ""),
                    "count": self._count[name],
                    "stopped": disabled.get(name),
                }
                for name in sorted({*self._texts, *self._count})
            ],
            "count": self._count.total(),
            "matches": list(reversed(self._kept)),
            "events": self._events,
        }
