"""The sample as a stream: events come in the order of their times, and patterns change while they do.

Nothing runs by itself. Whoever looks asks for the next events, as far as the clock has come; what nobody asks for, nobody computes.
"""

from __future__ import annotations

import time as clock
import warnings
from collections import Counter, deque
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import LimitError, OptionError, StrettoWarning
from stretto.matching.many.changes import Change
from stretto.matching.patterns import PatternSet
from stretto.studio.values import as_value
from stretto.studio.workbench import LONGEST, MOST_MATCHES, Workbench

#: Patterns that are in a replay at once.
MOST_PATTERNS = 100
#: The last matches, which are kept; the others are counted.
MOST_KEPT = 100
#: Characters of a pattern's name.
LONGEST_NAME = 100
#: Events that are read in one piece, and the seconds after which a call reads no more of them.
_PIECE = 256
_SECONDS = 0.5


class Replay:
    """The events of a workbench once more, from the first on, with patterns that are put in and taken out on the way.

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

    def __init__(self, bench: Workbench) -> None:
        if bench.roles.time is None:
            raise OptionError("a replay needs a column of time: choose it")
        self._bench = bench
        self._places = np.array(bench.places(bench.events) or (), np.float64)
        self._patterns = PatternSet(
            bench.numbered.schema,
            **bench.roles.of_columns(),
            positions=True,
            language=bench.roles.language,
            budget=4 * MOST_MATCHES,
            on_limit="disable",
        )
        self._texts: dict[str, str] = {}
        self._read = 0
        self._ended = False
        self._count: Counter[str] = Counter()
        self._kept: deque[dict[str, Any]] = deque(maxlen=MOST_KEPT)

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
        since = self._next_time()
        self._patterns.change(Change(name, text if text.strip() else None, since=since))
        if text.strip():
            self._texts[name] = text
        else:
            self._texts.pop(name, None)
        return self.state()

    def _next_time(self) -> Any:
        """The first time of an event that is later than all that were read; ``None``: the beginning."""
        if not self._read and not self._ended:
            return None
        following = int(np.searchsorted(self._places, self._places[self._read - 1], side="right")) if self._read else 0
        if following == len(self._places):
            raise OptionError("no event comes any more, for which the pattern would hold: begin the replay again")
        return self._bench.events.column(self._bench.roles.time)[following]  # an Arrow value, which has nanoseconds

    def read(self, up_to: float, more: int) -> dict[str, Any]:
        """Read the events up to a place on the axis of time, and so many more than were read; at most for half a second.

        The state then has ``late``: whether there was no time for all of them. Behind the last event the matches come that waited for
        time to pass.
        """
        wanted = max(int(np.searchsorted(self._places, up_to, side="right")), self._read + max(0, more))
        wanted = min(wanted, len(self._places))
        until = clock.monotonic() + _SECONDS
        while self._read < wanted and clock.monotonic() < until:
            piece = self._bench.numbered.slice(self._read, min(_PIECE, wanted - self._read))
            with warnings.catch_warnings():  # the state says which patterns were stopped
                warnings.simplefilter("ignore", StrettoWarning)
                for found in self._patterns.iter_push(piece):
                    self._keep(found)
            self._read += piece.num_rows
        if self._read == len(self._places) and not self._ended:
            self._ended = True
            self._keep(self._patterns.finish())
        return self.state() | {"late": self._read < wanted}

    def _keep(self, found: pa.Table) -> None:
        """Count matches, and keep the last ones."""
        for one in pc.value_counts(found.column("pattern")).to_pylist():
            self._count[one["values"]] += one["counts"]
        number = self._bench.number
        for row in found.slice(max(0, found.num_rows - MOST_KEPT)).to_pylist():
            variables: dict[str, list[int]] = {}
            for one in row["events"]:
                variables.setdefault(one["variable"], []).append(one["event"][number])
            self._kept.append(
                {
                    "rows": row["positions"],
                    "variables": variables,
                    "values": {"pattern": row["pattern"], "since": as_value(row["since"])},
                }
            )

    def state(self) -> dict[str, Any]:
        """How far it is, the patterns with what each has found, and the last matches, the newest first."""
        kept = list(reversed(self._kept))
        disabled = self._patterns.disabled
        names = sorted({*self._texts, *self._count})
        read = self._read
        return {
            "read": read,
            "at": float(self._places[read - 1]) if read else None,
            "span": [float(self._places[0]), float(self._places[-1])] if len(self._places) else None,
            "ended": self._ended,
            "patterns": [
                {
                    "name": name,
                    "text": self._texts.get(name, ""),
                    "count": self._count[name],
                    "stopped": disabled.get(name),
                }
                for name in names
            ],
            "count": self._count.total(),
            "matches": kept,
            "events": self._bench.events_of(kept),
        }
