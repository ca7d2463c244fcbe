"""Watching what is listed, and an error in words where a query gives more than its budget.

A query with ``+`` can have 2ⁿ matches of n events. A listing is therefore watched, piece by piece, before the pieces become
tables: when an event's matches do not fit into one piece they are counted on the structure that holds them, which costs no more
than what was listed already, and what cannot fit is refused before memory is taken.

What a run finds as tables: raw matches, counted by a meter and laid out as a result shows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.budget import Budget
from stretto.columns.overflow import IntegerOverflow, Order
from stretto.engines.api import AT_LEAST, BEYOND, Matches, Run, Unlisted
from stretto.engines.limits import TooMany
from stretto.errors import LimitError
from stretto.matching.output.match_table import Layout, build_tables
from stretto.matching.output.return_clause import Rows

#: From so many bytes on the width of columns of text is measured on a few events, and guessed before.
MEASURED = 1 << 20
GUESS = 32
SAMPLE = 64


class Lister(Protocol):
    """An engine that lists matches."""

    @property
    def program(self) -> Any:
        """The query's program, whose marks say which variables hold an event."""

    def unlisted(self) -> Unlisted | None:
        """How many matches of the last event are still to come."""


class Columns(Protocol):
    """What is known of the columns of a result, and of the query or automaton that it is of."""

    @property
    def language(self) -> str:
        """In which it is written."""

    @property
    def time(self) -> str | None:
        """The attribute that orders events."""

    @property
    def partition_by(self) -> Sequence[str]:
        """The partition attributes."""

    @property
    def keys(self) -> Sequence[str]:
        """What results call these."""

    @property
    def kinds(self) -> Mapping[str, pa.DataType]:
        """The types of events' attributes."""

    @property
    def variables(self) -> Sequence[tuple[str, tuple[str, ...]]]:
        """The variables that are shown, each with the attributes of its events."""

    @property
    def returns(self) -> Sequence[Any]:
        """The computed columns."""

    @property
    def positions(self) -> bool:
        """Whether places are shown."""

    @property
    def summary(self) -> bool:
        """Whether matches are counted."""


class Meter:
    """Counts what one call lists, perhaps of several queries.

    Parameters
    ----------
    budget
        How much that may be.
    each
        The matches of each event are bounded by themselves, not those of the whole call: what was listed is not kept.
    """

    def __init__(self, budget: Budget, *, each: bool = False) -> None:
        self.budget = budget
        self.each = each
        self.rows, self.bytes = 0, 0.0

    @classmethod
    def of_call(cls, given: Meter | int | float | str | None, *, pieces: bool = False) -> Meter:
        """The meter of a call that was given a budget; ``pieces``: its result is not kept, so that nothing said means no bound."""
        if isinstance(given, Meter):
            return given
        return cls(Budget.of_pieces(given) if pieces else Budget(given))


def meter_of_task(budget: int | float | str | None) -> Meter:
    """What a task of Spark may list: as its matches leave it in pieces, those of one event where nothing is said."""
    return Meter(Budget(budget), each=budget is None)


class Watch:
    """The pieces of one query, and the event of the last one.

    Parameters
    ----------
    meter
        What counts them.
    lister
        The engine that they come from.
    layout
        The columns of the result.
    rows
        Where events are looked up.
    order
        Where the stream was sorted: the row of the input at each position of the stream.
    whose
        What the query is called, for the message.
    """

    def __init__(
        self, meter: Meter, lister: Lister, layout: Columns, rows: Rows, order: Order | None, whose: str = ""
    ) -> None:
        self._meter, self._budget = meter, meter.budget
        self.lister, self._layout, self._rows, self._order = lister, layout, rows, order
        self._whose = whose
        self._each = meter.each or layout.summary
        self._width = Width(layout, rows)
        self._event = -1
        self._before = self._of_event = 0
        self._bytes_of_event = 0.0
        self._counted = False

    def pieces(self, found: Iterable[Matches]) -> Iterator[Matches]:
        """The same pieces, as long as they are within the budget. Each has all matches of its last event.

        Raises
        ------
        LimitError
            They are more; nothing of the piece was handed over.
        IntegerOverflow
            A computation of the engine leaves 64 bits, in a row of the input as it was given.
        """
        try:
            for piece in found:
                listed = piece.counts is None and piece.totals is None
                if listed and piece.start.size and not self._budget.open:
                    self.take(piece)
                yield piece
        except TooMany as error:
            event = described(error.event, self._layout, self._rows, self._order)
            raise LimitError(f"{self._whose}{event} {error.what}") from None
        except IntegerOverflow as error:
            raise error.renumbered(self._order) from None

    def take(self, piece: Matches, meter: Meter | None = None) -> None:
        """Count the matches of a piece, or refuse it; ``meter``: the one that counts from here on."""
        if meter is not None:
            self._meter, self._budget = meter, meter.budget
        meter, count = self._meter, piece.start.size
        last = int(piece.end[-1])
        of_last = int(np.count_nonzero(piece.end == last))
        size = self._width.of(piece, self.lister.program.marks)
        if last != self._event:
            self._event, self._counted = last, False
            self._before, self._of_event, self._bytes_of_event = meter.rows + count - of_last, 0, 0.0
        listed, taken = meter.rows + count, meter.bytes + size
        if self._each:
            listed, taken = self._of_event + of_last, self._bytes_of_event + size * of_last / count
        # Counted once for each event, when its first piece is there.
        rest = None if self._counted else self.lister.unlisted()
        more = 0.0 if rest is None else (math.inf if rest.matches == BEYOND else rest.matches)
        if not self._budget.holds(listed + more, taken + more * size / count):
            raise LimitError(self._said(piece, self._first_over(piece, size), self.lister.unlisted()))
        self._counted = self._counted or rest is not None
        self._of_event += of_last
        self._bytes_of_event += size * of_last / count
        meter.rows += count
        meter.bytes += size

    def _first_over(self, piece: Matches, size: float) -> int:
        """The event of the first match of a piece that is too many, or that of the last one, which has too many to come."""
        last = piece.start.size - 1
        if self._each:
            return int(piece.end[last])
        by_rows = self._budget.rows - self._meter.rows
        by_bytes = (self._budget.bytes - self._meter.bytes) / size * piece.start.size
        return int(piece.end[max(0, int(min(by_rows, by_bytes, last)))])

    def _said(self, piece: Matches, event: int, rest: Unlisted | None) -> str:
        """The error in words, of an event of a piece."""
        mine = np.flatnonzero(piece.end == event)
        known, before = mine.size, self._meter.rows + int(mine[0])
        if event == self._event:
            known, before = known + self._of_event, self._before
        count, how = f"{known:,}", " (counted, not listed)"
        if rest is not None and event == int(piece.end[-1]):
            count = _in_words(known, rest)
            how = "" if rest.told == AT_LEAST else how
        earlier = f", after {before:,} of earlier events" if before and not self._each else ""
        who = f"{self._whose}{described(event, self._layout, self._rows, self._order)}"
        what = f"completes {count} matches{how}{earlier}"
        ways = _ways_out(self._layout, alone=not self._whose)
        return f"{who} {what}: a list of them goes over the budget of {self._budget}\n{ways}"


def _in_words(known: int, rest: Unlisted) -> str:
    if rest.matches == BEYOND:
        return f"{rest.told}about 2^{rest.bits:,.0f}"
    return f"{rest.told}{known + rest.matches:,}"


def described(event: int, layout: Columns, rows: Rows, order: Order | None) -> str:
    """An event by its row in the input, its time and its key."""
    time = [layout.time] if layout.time else []
    names, called = [*time, *layout.partition_by], [*time, *layout.keys]
    shown = ""
    if names:
        row = rows.take(np.array([event]), names).to_pylist()[0]
        shown = " (" + ", ".join(f"{own} = {_shown(row[name])}" for own, name in zip(called, names, strict=True)) + ")"
    place = f" in row {event if order is None else int(order[event])}" if layout.positions else ""
    return f"the event{place}{shown}"


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _ways_out(layout: Columns, *, alone: bool) -> str:
    """What gives fewer matches, or needs no list of them; ``alone``: the query runs by itself."""
    if layout.language == "afa":
        ways = (
            "stricter fences or a narrower window has fewer; output='positions' without positions=True lists no events"
        )
        return f"hint: {ways}; iter_push() gives them in pieces; budget= allows more"
    if layout.language == "sase":
        ways = "skip_till_next_match, LIMIT n or a narrower WITHIN has fewer; stretto.match_sets() hands them over unlisted"
    else:
        ways = "LIMIT n, SELECT NEXT, LAST or MAX, a narrower WITHIN or CONSUME BY has fewer"
    counts = "output='summary' counts them; " if alone else "stretto.match(…, output='summary') counts them; "
    counts = "" if layout.summary else counts
    return f"hint: {counts}{ways}; iter_matches() and iter_push() give them in pieces; budget= allows more"


class Width:
    """How many bytes matches take in a result, about."""

    def __init__(self, layout: Columns, rows: Rows) -> None:
        self._layout, self._rows = layout, rows
        self._bytes = 0.0
        kinds, time = layout.kinds, layout.time
        shared = [kinds[name] for name in (*([time] * 2 if time else []), *layout.partition_by)]
        returned = [one.type for one in layout.returns]
        self._row = 16 + 4 * (1 + len(layout.variables)) + sum(map(_guessed, [*shared, *returned]))
        self._of: dict[str, float] = {name: _guessed(kinds[name]) for _, names in layout.variables for name in names}
        self._measured = all(map(_fixed, map(kinds.__getitem__, self._of)))
        self._cell: NDArray[np.float64] = np.zeros(0)

    def of(self, piece: Matches, marks: Sequence[frozenset[str]]) -> float:
        """Bytes of some matches. O(their positions), and once a look at a few events."""
        count, cells = piece.start.size, piece.position.size
        size = float(count * self._row + cells * (8 if self._layout.positions or self._layout.summary else 0))
        if not self._layout.variables:
            return size
        self._bytes += cells * GUESS
        if not self._measured and self._bytes > MEASURED:
            self._measure(piece)
        if self._cell.size != len(marks):
            of = self._of_variables()
            self._cell = np.array([sum(map(of.__getitem__, labels & of.keys())) for labels in marks], np.float64)
        return size + float(np.dot(np.bincount(piece.mark, minlength=len(marks)), self._cell))

    @property
    def rates(self) -> tuple[float, float]:
        """Bytes of a row, and at most of each event that a variable holds, as far as they are known."""
        places = 8.0 if self._layout.positions or self._layout.summary else 0.0
        return float(self._row), places + sum(self._of_variables().values())

    def _of_variables(self) -> dict[str, float]:
        """Bytes of an event as each variable shows it."""
        return {variable: sum(map(self._of.__getitem__, names)) for variable, names in self._layout.variables}

    def _measure(self, piece: Matches) -> None:
        self._measured = True
        step = max(1, piece.position.size // SAMPLE)
        names = [name for name in self._of if not _fixed(self._layout.kinds[name])]
        sample = self._rows.take(piece.position[::step], names)
        for name in names:
            self._of[name] = max(1.0, sample.column(name).nbytes / sample.num_rows)
        self._cell = np.zeros(0)


@lru_cache(maxsize=256)
def _fixed(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) or _bits(kind) is not None


def _bits(kind: pa.DataType) -> int | None:
    try:
        return int(kind.bit_width)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _guessed(kind: pa.DataType) -> float:
    """Bytes of a value, where the type alone says it; else a guess."""
    if pa.types.is_dictionary(kind):
        return int(kind.index_type.bit_width) / 8
    bits = _bits(kind)
    return GUESS if bits is None else bits / 8


class Listing:
    """What a run lists in one call.

    Parameters
    ----------
    meter
        What the call may list.
    run
        What finds matches.
    layout
        The columns of the result.
    rows
        Where events are looked up.
    order
        Where the stream was sorted: the row of the input at each position of the stream.
    """

    def __init__(self, meter: Meter, run: Run, layout: Layout, rows: Rows, order: Order | None) -> None:
        self._watch = Watch(meter, run, layout, rows, order)
        self._layout, self._rows, self._marks, self._order = layout, rows, run.program.marks, order

    def tables(self, found: Iterable[Matches]) -> Iterator[pa.Table]:
        """The matches of some events, of whose last one all are there.

        Raises
        ------
        LimitError
            They go over the budget.
        IntegerOverflow
            A computation leaves 64 bits, in a row of the input as it was given.
        """
        return build_tables(self._watch.pieces(found), self._layout, self._rows, self._marks, self._order)
