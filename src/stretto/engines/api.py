"""What an engine is to the rest of the house: a :class:`Program` is a query compiled, a :class:`Run` one stream that goes through it.

A program is immutable to its caller and serves any number of runs. A run takes batches, and gives what they complete as
:class:`Matches`, the only kind of result there is. Whoever adds an engine writes these two, and names it in ``select.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I64, Bits
from stretto.budget import Budget
from stretto.engines.shared import counting
from stretto.frame import Section

#: Matches of the event at hand that were not listed yet, and what their number says.
Unlisted = counting.Unlisted
BEYOND, AT_LEAST = counting.BEYOND, counting.AT_LEAST


def offsets(counts: I64) -> I64:
    """Where each of some runs of so many begins, and where the last one ends."""
    offset = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offset[1:])
    return offset


#: So many lists are gathered at a time: where their elements lie then fits into the caches.
LISTS = 1 << 12


def lists_taken(offset: I64, chosen: I64, arrays: Sequence[NDArray[Any]]) -> tuple[I64, list[NDArray[Any]]]:
    """Take some lists, whose elements lie in arrays, list k in ``offset[k]:offset[k+1]`` of each: their own offsets, and arrays.

    >>> lists_taken(np.array([0, 1, 3]), np.array([1, 0]), [np.array([5, 6, 7])])
    (array([0, 2, 3]), [array([6, 7, 5])])
    """
    size = (offset[1:] - offset[:-1])[chosen]
    moved = offsets(size)
    shift = offset[chosen] - moved[:-1]
    made = [np.empty(moved[-1], one.dtype) for one in arrays]
    for low in range(0, chosen.size, LISTS):
        high = min(low + LISTS, chosen.size)
        cells = np.repeat(shift[low:high], size[low:high])
        cells += np.arange(moved[low], moved[high])
        for one, into in zip(arrays, made, strict=True):
            into[moved[low] : moved[high]] = one[cells]
    return moved, made


class Matches(NamedTuple):
    """Matches in the order of their ends: row k holds ``position[offset[k]:offset[k+1]]``, ascending.

    Positions count the rows that a run was given, from 0.
    """

    start: I64
    end: I64
    offset: I64
    position: I64
    mark: NDArray[np.int32]  #: by position: which variables hold the event (an index of ``Program.marks``)
    sign: NDArray[np.int8] | None = None  #: +1, or −1: taken back; ``None``: the engine takes nothing back
    #: Where a run counts: one row for each event that completes matches, with their number (or ``BEYOND``) in place of positions.
    counts: I64 | None = None
    outputs: Outputs | None = None  #: of an automaton with a register: what each row says beside its place
    part: I64 | None = None  #: the partition of each row, where a run tells it
    #: The event at which each row is known, where rows come later than the events that complete them; they are in its order then.
    #: Of a row that time decides alone −1, with ``due``, or ``~start``: the window of that start has passed.
    known: I64 | None = None
    due: NDArray[Any] | None = None  #: the time that has to pass, where ``known`` is −1
    window: I64 | None = None  #: where rows are of windows that begin every so often: the number of each row's window
    timed_out: TimedOut | None = None  #: which rows are partial matches that have timed out; ``None``: none is
    #: Where matches are counted and added up: what each row says of those of an event (``start`` is the first of theirs), or of a
    #: window or table (``start`` and ``end`` are nothing).
    totals: Totals | None = None
    measures: pa.Array | None = None  #: of a clause of SQL: what it measures of each match, a map of text to text

    @classmethod
    def none(cls) -> Matches:
        """No matches."""
        none = np.zeros(0, np.int64)
        return cls(none, none, np.zeros(1, np.int64), none, np.zeros(0, np.int32))

    def keep(self, section: Section) -> None:
        """Write the places of matches, for :meth:`kept`."""
        section.arrays |= dict(zip(self._fields[:5], self[:5], strict=True))

    @classmethod
    def kept(cls, section: Section, rows: int, marks: int) -> Matches:
        """Matches that a section has in arrays of these names, of a stream of so many rows, with so many marks.

        Where nobody asks for marks they are any numbers, which become 0.
        """
        mark = section.numbers("mark")
        mark = np.where((mark >= 0) & (mark < marks), mark, 0)
        position = section.numbers("position", size=mark.size, least=0, below=rows)
        start = section.numbers("start", least=0, below=rows)
        offset = section.numbers("offset", size=start.size + 1, least=0, below=mark.size + 1)
        if offset[0] or offset[-1] != mark.size or (np.diff(offset) < 0).any():
            raise ValueError("matches have other lengths")
        return cls(
            start, section.numbers("end", size=start.size, least=0, below=rows), offset, position, mark.astype(np.int32)
        )

    @classmethod
    def added_up(cls, start: I64, end: I64, totals: Totals) -> Matches:
        """Counts and sums of matches."""
        return cls.counted(start, end, np.zeros(0, np.int64))._replace(counts=None, totals=totals)

    @classmethod
    def copied(cls, out: Any, rows: int, cells: int) -> Matches:
        """The first rows of an output buffer with ``start``, ``end``, ``stop``, ``position`` and ``mark``."""
        offset = np.zeros(rows + 1, np.int64)
        offset[1:] = out.stop[:rows]
        places = out.position[:cells].copy(), out.mark[:cells].copy()
        return cls(out.start[:rows].copy(), out.end[:rows].copy(), offset, *places)

    @classmethod
    def copied_counts(cls, out: Any, rows: int) -> Matches:
        """The first rows of an output buffer whose ``stop`` is their number."""
        return cls.counted(out.start[:rows].copy(), out.end[:rows].copy(), out.stop[:rows].copy())

    @classmethod
    def counted(cls, start: I64, end: I64, counts: I64) -> Matches:
        """Counts of matches: ``start`` is that of the one that begins first."""
        nothing = np.zeros(0, np.int64)
        return cls(start, end, np.zeros(start.size + 1, np.int64), nothing, np.zeros(0, np.int32), counts=counts)

    @classmethod
    def joined(cls, pieces: Sequence[Matches]) -> Matches:
        """The places of some matches, and behind them those of others."""
        sizes = [np.diff(one.offset) for one in pieces]
        start, end, position, mark = (
            np.concatenate([getattr(one, name) for one in pieces]) for name in ("start", "end", "position", "mark")
        )
        return cls(start, end, offsets(np.concatenate(sizes)), position, mark)

    def taken(self, rows: I64) -> Matches:
        """Some of the matches, by their numbers."""
        offset, (position, mark) = lists_taken(self.offset, rows, [self.position, self.mark])
        part, known = (None if one is None else one[rows] for one in (self.part, self.known))
        return Matches(
            self.start[rows],
            self.end[rows],
            offset,
            position,
            mark,
            part=part,
            known=known,
            measures=None if self.measures is None else self.measures.take(pa.array(rows)),
            totals=None if self.totals is None else self.totals.taken(rows),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the places of matches."""
        return sum(one.nbytes for one in (self.start, self.end, self.offset, self.position, self.mark))


class Totals(NamedTuple):
    """What rows say of all matches of an event, a window or a table."""

    #: The number k of the window, which begins at k times what is between windows; ``None``: there are none.
    window: I64 | None
    groups: list[pa.Array]
    items: list[pa.Array]
    known: bool = False  #: rows are in the order in which they are known: windows are over one key at a time

    def taken(self, rows: I64) -> Totals:
        """Some of the rows, by their numbers."""
        window, chosen = None if self.window is None else self.window[rows], pa.array(rows)
        return Totals(window, [one.take(chosen) for one in self.groups], [one.take(chosen) for one in self.items])

    def sliced(self, low: int, high: int) -> Totals:
        """Some of the rows."""
        window = None if self.window is None else self.window[low:high]
        groups, items = ([one.slice(low, high - low) for one in columns] for columns in (self.groups, self.items))
        return Totals(window, groups, items, self.known)


class TimedOut(NamedTuple):
    """What rows say of partial matches that have timed out."""

    reached: I64  #: the mark of the last event; −1: the row is a match
    expired: NDArray[Any]  #: the last value of the attribute that the window measures; anything where there is none


class Outputs(NamedTuple):
    """What the rows of an automaton's output say beside their place, as columns."""

    start_time: pa.Array
    end_time: pa.Array
    until: pa.Array  #: right end of the lifetime; NULL: for ever
    keys: pa.RecordBatch | None  #: the partition attributes
    register: list[pa.Array]


class Compiled(Protocol):
    """A query as an engine reads it."""

    @property
    def digest(self) -> str:
        """What its machine is, in short: runs of programs with the same digest can take over each other's state."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    def marks(self) -> Sequence[frozenset[str]]:
        """The variables of each mark."""

    @property
    def revises(self) -> bool:
        """Whether its runs take back what they gave, so that rows may come in any order and be retracted."""


class Reached(Protocol):
    """How far a run has come, which what is kept beside it is checked against."""

    @property
    def rows(self) -> int:
        """How many rows it was given."""

    @property
    def partitions(self) -> int:
        """Partitions with a number."""

    @property
    def last_measure(self) -> int | float | None:
        """What its window measures of the last row; ``None``: nothing yet."""


class Run(Protocol):
    """A stream that goes through a program.

    ``advance``, ``reach`` and ``finish`` are read to their end before the next call. When one of them fails after it has begun to
    change something, the run refuses to go on, unless it says otherwise.
    """

    @property
    def rows(self) -> int:
        """How many rows it was given; rows that it need not read are added here."""

    @rows.setter
    def rows(self, rows: int) -> None: ...

    @property
    def counts(self) -> bool:
        """Whether it gives counts in place of lists."""

    @property
    def broken(self) -> bool:
        """Whether it was stopped in the middle of a batch, so that it takes no more."""

    @property
    def late_policy(self) -> str:
        """What happens to a row that comes too late."""

    @property
    def program(self) -> Compiled:
        """What it runs."""

    def check(self, table: pa.Table) -> None:
        """Raise what :meth:`advance` can know to be wrong with these rows before it takes the first, and change nothing."""

    def advance(self, batch: pa.RecordBatch, *, silent: bool = False) -> Iterator[Matches]:
        """Take the next rows, and give what they complete, in pieces of bounded size; ``silent``: give nothing."""

    def reach(self, time: Any) -> Iterator[Matches]:
        """No row before ``time`` will come (in the engine's unit): give what waited for that, and free what it frees."""

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give what its end completes."""

    def save(self, section: Section) -> None:
        """Write the state, which is small for few live matches."""

    def load(self, section: Section) -> None:
        """Take over, from the beginning, a state that a run of a program with the same digest has written.

        Raises
        ------
        LookupError, ValueError
            The section is damaged.
        """

    def take_over(self, old: Any, unknown: frozenset[str]) -> None:
        """Go on, from the beginning, where a run of the same query over columns of narrower types stands.

        ``unknown``: the columns that had nothing but NULL so far.

        Raises
        ------
        DataError
            The state depends on the types that the columns had.
        """

    def unlisted(self) -> Unlisted | None:
        """While :meth:`advance` is being read: how many matches of the last event are still to come; ``None``: none."""

    @property
    def late(self) -> int:
        """How many rows came too late and were left out."""

    @property
    def idle(self) -> bool:
        """Whether nothing so far matters to what is to come: a new run would go on in the same way."""

    @property
    def expires(self) -> int | float | None:
        """The last time at which something that was given may still matter; ``None``: nothing does, or time does not tell."""

    @property
    def open_windows(self) -> int | float | None:
        """The last time at which an event is in the window of a moving aggregate; ``None``: there is none."""

    @property
    def oldest(self) -> int | None:
        """Rows before this one can take part in no match any more; ``None``: :meth:`live` must be asked."""

    def live(self) -> I64:
        """The rows that a match to come, or to be taken back, may hold (sorted)."""

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what was read and what is held, by name."""

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""


class Program(Compiled, Protocol):
    """A query that can be started, as often as one likes."""

    def start(
        self,
        *,
        labels: bool = True,
        counts: bool = False,
        late: str = "error",
        capacity: int | None = None,
        budget: Budget | None = None,
    ) -> Run:
        """A run from the beginning of a stream (:class:`Starting`)."""


class Visits(NamedTuple):
    """The events that a run visits next."""

    position: I64
    part: I64  #: partition
    key: I64  #: what starts are compared by: the position, or the rank in the partition
    low: I64  #: least key in the window of the event
    begins: Bits  #: whether it may begin a match


_NOTHING = np.zeros(0, np.int64)

NO_VISITS = Visits(_NOTHING, _NOTHING, _NOTHING, _NOTHING, np.zeros(0, np.bool_))


class Operator:
    """What is done with the matches of a run, as far as the run has a part in it: this one takes them as they are listed."""

    #: What the kernel does with the graph that holds the matches of an event, in place of listing them; empty: nothing.
    inside: str = ""
    #: Whether it asks for visits: which events may begin matches, and which windows are open after a batch.
    visited: bool = False
    #: The variables of which it asks which events may be theirs.
    variables: Sequence[str] = ()

    def begin(self, *, by_part: bool) -> None:
        """A run begins; ``by_part``: its windows count the events of each partition."""

    def see(self, batch: pa.RecordBatch, rows: I64, position: I64, mine: Sequence[Bits]) -> None:
        """The events that are visited next: their rows in a batch and their positions, and by variable which of them it may hold."""

    def visit(self, visits: Visits, partitions: int) -> I64:
        """The events that the run visits next. Gives where the matches to list begin at least, which later calls may raise."""
        raise NotImplementedError

    def partitions(self, count: int) -> Bits:
        """Which of so many partitions it needs, though the run may not."""
        return np.zeros(count, np.bool_)

    def renumber(self, fresh: I64) -> None:
        """Partitions get other numbers; those that it does not need may get none."""

    # -- inside a kernel ----------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether the kernel has stopped in the midst of an event's matches: then a status is about :attr:`arrays`."""
        return False

    def fit(self, nodes: int, of: Any) -> None:
        """Room for the nodes of a graph, of which nothing is known yet where it is another one than before."""

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernel reads and writes beside the arrays of the engine, as it lies now."""
        return ()

    def act(self, status: int, position: int, told: Callable[[Matches], None]) -> Iterator[Matches]:
        """Do what the kernel asks for, at the event in a position; ``told`` completes the marks of matches."""
        raise NotImplementedError

    def drain(self, told: Callable[[Matches], None]) -> Iterator[Matches]:
        """Give what the kernel has written."""
        return iter(())


#: All matches are given as they are listed.
LISTED = Operator()


class Starting(NamedTuple):
    """How a run starts."""

    labels: bool  #: it tells which variables hold which event (else marks mean nothing)
    counts: bool  #: it counts the matches of an event where that needs no listing
    #: What happens to a row that comes too late: ``"error"``, ``"drop"`` (it is counted), or where the engine keeps them ``"side"``.
    late: str
    capacity: int  #: initial size of the growing arrays (tests use 1)
    #: How many bytes of matches it may hold before it gives them; ``None``: a quarter of the memory there is.
    budget: Budget | None
    operator: Operator = LISTED  #: what is done with its matches


R_co = TypeVar("R_co", covariant=True)


class Startable(Generic[R_co]):
    """The ``start`` of a program, which says in :meth:`started` what it makes of it."""

    room: ClassVar[int] = 1 << 12  #: the capacity where none is said

    def start(
        self,
        *,
        labels: bool = True,
        counts: bool = False,
        late: str = "error",
        capacity: int | None = None,
        budget: Budget | None = None,
    ) -> R_co:
        """A run from the beginning of a stream (:class:`Starting`)."""
        return self.started(Starting(labels, counts, late, self.room if capacity is None else capacity, budget))

    def started(self, how: Starting) -> R_co:
        """A run from the beginning of a stream."""
        raise NotImplementedError
