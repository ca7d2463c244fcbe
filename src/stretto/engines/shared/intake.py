"""What comes before a kernel, whatever the engine: which events take part, in which partition, order and window.

All steps are over whole columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64, Bits
from stretto.columns.classes import Classifier
from stretto.columns.keys import KeyTable
from stretto.columns.measured import values_of
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import LISTED, Operator
from stretto.engines.shared.moving import MovingColumn
from stretto.engines.shared.values import Vocabulary
from stretto.engines.shared.windows import Measured, ranks
from stretto.errors import DataError, EngineError
from stretto.frame import Section
from stretto.query import predicate as p
from stretto.query.passes.bind import AnyBound

#: Events are read in pieces of this many rows: small enough for the caches, and for ^C to act soon.
CHUNK = 1 << 16

#: Partitions are looked through after at least as many events.
SWEEP_AT_LEAST = 1 << 16

#: What is wrong with a window attribute that decreases.
FALLS = "a window needs an attribute that does not: sort the events by it before"


class Classifying(Protocol):
    """What an intake asks of a program."""

    @property
    def query(self) -> AnyBound:
        """The bound query."""

    @property
    def classifier(self) -> Classifier:
        """What gives events their class."""

    def shape(self, unknown: frozenset[str]) -> Any:
        """What a state depends on, apart from the literals of conditions and from the types of ``unknown`` columns."""


class Counting(Protocol):
    """The arrays of an engine."""

    @property
    def registers(self) -> I64:
        """Scalars that outlive a call of the kernel."""


class Classed(NamedTuple):
    """What a batch says that is in order, before anything changes."""

    batch: pa.RecordBatch  #: its rows, with the values of moving aggregates
    member: Bits | None  #: the rows that are in the stream, and not late; ``None``: all
    measures: NDArray[np.generic] | None  #: what the window measures of every row
    timed: Bits | None  #: the rows of which it is known, in the stream or not: all these move time on; ``None``: all
    cls: NDArray[np.int32]  #: their event classes
    last_measure: int | float | None
    last_time: int | float | None
    late: int  #: how many rows are late


class Intake:
    """The part of an engine's run that reads columns.

    Parameters
    ----------
    program
        The query, and what gives events their class.
    streams
        The streams that it reads; none: all there are.
    keys
        The attributes that split the stream into partitions.
    ranked
        Whether events are numbered in their partition, in place of by their position in the stream.
    late
        What to do with an event before the last one in time: ``"error"``, or ``"drop"`` and count it.
    equal
        The attributes that an event cannot lack in any match, where these are others than ``keys``.
    operator
        What is done with the matches.
    """

    #: The registers in which the kernel counts events.
    CURSOR: ClassVar[int]
    VISITED: ClassVar[int]
    TRIGGERS: ClassVar[int]
    #: What a snapshot says of the stream so far, beside arrays, and how each is read.
    SCALARS: ClassVar[dict[str, Callable[[Section, str], Any]]] = {
        "rows": Section.count,
        "late": Section.count,
        "last_time": Section.measure,
        "last_measure": Section.measure,
        "swept_at": Section.count,
    }
    state: Counting

    def __init__(
        self,
        program: Classifying,
        streams: tuple[str, ...],
        keys: tuple[str, ...],
        *,
        ranked: bool,
        late: str,
        equal: tuple[str, ...] | None = None,
        operator: Operator = LISTED,
    ) -> None:
        query = program.query
        schema, window = query.schema, query.window
        self.classifying = program
        self.schema = schema
        self.streams = streams
        self.window = window
        self.key_names = keys
        #: Those without which an event is not in the stream; without one that only conditions say it is in no match.
        self._asked_keys = tuple(name for name in keys if name not in query.parsed.implied)
        #: The attributes that an event cannot lack in any match.
        self.equal = keys if equal is None else equal
        self.late_policy = late
        #: Of strings and keys that conditions between events compare.
        self.words: Vocabulary | None = None
        self.tests: KeyTable | None = None
        self.keys = KeyTable([schema.attributes[name] for name in keys]) if keys else None
        counted = window is not None and window.attribute is None
        self.ranked = ranked
        self.span = int(window.size) if counted and window is not None else -1
        operator.begin(by_part=counted and ranked)
        #: The moving aggregates of conditions, and whether what is computed of a batch may fail.
        self.moving = [MovingColumn(one, query) for one in query.moving]
        self._moved = self.moving
        arguments = (one.argument for one in query.moving if one.argument is not None)
        self._may_fail = query.computes or any(map(p.computes, arguments))
        self.measured = Measured(window.size) if window is not None and window.attribute is not None else None
        self.counter = np.zeros(1, np.int64)
        self.rows = 0
        self.late = 0
        self.last_time: int | float | None = None
        #: How far a punctuation has moved time, which an error about a late event says; ``None``: none has.
        self.advanced: int | float | None = None
        self.last_measure: int | float | None = None
        self.broken = False
        self.swept_at = 0  #: the rows at the last sweep now and then
        self._kept = 0  # partitions after it
        self._patience = 2  # as many times as many events pass before the next: more where the last one forgot no key
        self.operator = operator
        #: After a batch: the least position whose window is open; ``None``: time does not tell, or nobody asked.
        self.until: int | None = None

    @property
    def expires(self) -> int | float | None:
        """The last time from which a partial match may still be completed; ``None`` when time alone ends none, or there is none.

        In the unit of :func:`~stretto.columns.measured.values_of`.
        """
        window, measured = self.window, self.measured
        if window is None or measured is None or window.attribute != self.schema.time:
            return None
        if measured.begin == measured.end:
            return None
        last: int | float = measured.values[measured.end - 1].item()
        return last + window.size

    def open_until(self, position: int) -> int | float:
        """The time at which the window of a visited event closes, whose window is open and measured."""
        found: int | float = self.ends_of(np.array([position]))[0].item()
        return found

    def ends_of(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """The last time of the window of each of some visited events, whose windows are open and measured."""
        measured, window = self.measured, self.window
        assert measured is not None
        assert window is not None
        known = measured.positions[measured.begin : measured.end]
        ends: NDArray[Any] = measured.values[measured.begin + np.searchsorted(known, positions)] + window.size
        return ends

    def open_from(self, time: int | float) -> int:
        """The position of the first visited event whose window is still open at a time."""
        measured = self.measured
        assert measured is not None
        measured.forget(time)
        open_ones = measured.begin < measured.end
        return int(measured.positions[measured.begin]) if open_ones else self.rows

    def _open_after(self, measures: NDArray[np.generic] | None, timed: Bits | None) -> int | None:
        """The least position in the window of the latest time of a batch; ``None``: it tells none."""
        now = latest(measures, timed)
        return None if now is None else self.open_from(now)

    @property
    def cursor(self) -> int:
        """How many of the visited events of the batch at hand have been read to their end."""
        return int(self.state.registers[self.CURSOR])

    @property
    def idle(self) -> bool:
        """Whether no event so far can take part in a later match, or decide one."""
        return self.open_windows is None and not self.live().size

    def live(self) -> I64:
        """The rows that partial matches hold (sorted), after collecting what is unreachable."""
        raise NotImplementedError

    @property
    def stats(self) -> dict[str, int]:
        """Counts: events given, visited by the kernel, late, with output; partitions; nodes that hold partial matches; bytes."""
        return {
            "events": self.rows,
            "visited": self.visited,
            "late": self.late,
            "triggers": self.triggers,
            "partitions": self.partitions,
            "nodes": self.nodes,
            "bytes": self.nbytes,
        }

    @property
    def visited(self) -> int:
        """Events that reached the kernel so far."""
        return int(self.state.registers[self.VISITED])

    @property
    def triggers(self) -> int:
        """Events that have output so far."""
        return int(self.state.registers[self.TRIGGERS])

    @property
    def nodes(self) -> int:
        """Nodes of the structure that holds the partial matches, those of forgotten ones included until they are collected."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        raise NotImplementedError

    @property
    def intake_nbytes(self) -> int:
        """Bytes of what is kept here: counters, keys, and the times of the window's events."""
        keys = self.keys.nbytes if self.keys is not None else 0
        times = 0 if self.measured is None else self.measured.values.nbytes + self.measured.positions.nbytes
        return int(self.counter.nbytes + keys + times + sum(one.nbytes for one in self.moving))

    def _with_moving(self, batch: pa.RecordBatch, member: Bits | None) -> pa.RecordBatch:
        """The next rows, of which ``member`` are taken, with the values of moving aggregates, whose windows move with :meth:`_move`.

        Raises
        ------
        DataError
            Something that is computed leaves 64 bits.
        """
        if not self.moving:
            return batch
        self._moved = [one.trial() for one in self.moving] if self._may_fail else self.moving
        broken, self.broken = self.broken, not self._may_fail  # a sum that leaves 64 bits has moved the windows
        for one in self._moved:
            batch = batch.append_column(one.bound.name, one.column(batch, member, self.rows))
        self.broken = broken
        return batch

    @property
    def open_windows(self) -> int | float | None:
        """The last time at which an event is in the window of a moving aggregate; ``None``: there is none."""
        ends = [end for end in (one.expires for one in self.moving) if end is not None]
        last = max(ends, default=None)
        return None if last is None or (self.last_time is not None and self.last_time > last) else last

    def _classed(self, batch: pa.RecordBatch) -> Classed:
        """Check the next rows, and class them; nothing changes.

        Raises
        ------
        DataError
            The events are not what the query needs.
        """
        member = self._members(batch)
        measures, timed, last_measure = self._measure(batch, member)
        member, last_time, late = self._in_time(batch, member, last_measure)
        batch = self._with_moving(batch, member)
        return Classed(batch, member, measures, timed, self._classes(batch, member), last_measure, last_time, late)

    def _move(self, batch: pa.RecordBatch, classed: Classed) -> int:
        """The rows are taken, and what fails from here on leaves them half read; gives the position of the first of them."""
        first = self.rows
        self.rows += batch.num_rows
        self.last_measure, self.last_time, self.moving = classed.last_measure, classed.last_time, self._moved
        self.late += classed.late
        return first

    def refuse_if_broken(self) -> None:
        """Raise an :class:`EngineError` when the run was stopped in the middle of a batch."""
        if self.broken:
            raise EngineError(
                "this matcher was stopped in the middle of a batch; restore a snapshot or start a new one"
            )

    @property
    def partitions(self) -> int:
        """Partitions with a number."""
        return 1 if self.keys is None else len(self.keys)

    def check(self, table: pa.Table) -> None:
        """Raise what :meth:`advance` would raise for these events, and change nothing.

        Raises
        ------
        DataError
            A missing column, a NULL or a decreasing time, or an integer that leaves 64 bits.
        """
        member = self._members(table)
        last_measure = self._measure(table, member)[2]
        member = self._in_time(table, member, last_measure)[0]
        ahead, moving = 0, [one.trial() for one in self.moving] if self._may_fail else []
        for batch in table.to_batches(max_chunksize=CHUNK) if self._may_fail else ():
            for one in moving:
                taken = None if member is None else member[ahead : ahead + batch.num_rows]
                batch = batch.append_column(one.bound.name, one.column(batch, taken, self.rows + ahead))  # noqa: PLW2901
            self._classes(batch, None if member is None else member[ahead : ahead + batch.num_rows], ahead)
            ahead += batch.num_rows

    def _classes(self, batch: pa.RecordBatch, member: Bits | None, ahead: int = 0) -> NDArray[np.int32]:
        """The class of each event of a batch, of which ``member`` are in the stream, and which begins ``ahead`` rows from here.

        Raises
        ------
        DataError
            As :meth:`Classifier.classify`; where an integer leaves 64 bits in an event that has a key, the error names the row.
        """
        try:
            return self.classifying.classifier.classify(batch, lambda: both(member, keyed(batch, self.equal)))
        except IntegerOverflow as error:
            first = self.rows + ahead
            raise error.renumbered(range(first, first + batch.num_rows)) from None

    def _members(self, batch: pa.RecordBatch | pa.Table) -> NDArray[np.bool_] | None:
        """Which rows belong to a stream of FROM and to a partition; ``None``: all."""
        return both(self._streamed(batch), keyed(batch, self._asked_keys))

    def _streamed(self, batch: pa.RecordBatch | pa.Table) -> Bits | None:
        """Which rows belong to a stream of FROM; ``None``: all."""
        stream = self.schema.stream
        if stream is None or not self.streams:
            return None
        if stream not in batch.schema.names:
            raise DataError(f"the events have no column '{stream}' (stream)")
        names = pa.array(self.streams)
        column = batch.column(stream)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        inside = pc.is_in(column.cast(pa.string()), value_set=names)
        return np.asarray(inside.to_numpy(zero_copy_only=False))

    def _measure(
        self, batch: pa.RecordBatch | pa.Table, member: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.generic] | None, Bits | None, int | float | None]:
        """The window attribute of every row, checked not to decrease, which rows have one, and its last value."""
        window = self.window
        if window is None or window.attribute is None:
            return None, None, None
        name = window.attribute
        if name == self.schema.time and self.late_policy == "drop":
            return *self._values(batch, name, "window", member), None
        return self._ordered(batch, name, self.last_measure, member, FALLS)

    def _values(
        self, batch: pa.RecordBatch | pa.Table, name: str, role: str, member: Bits | None
    ) -> tuple[NDArray[np.generic], Bits | None]:
        """A column that orders the stream as numbers, and which rows have one (``None``: all).

        Every event has one that may be in a match; of those without a key the ones that the column gives one, as they move time on
        like all others. The rest has any number.
        """
        column = column_of(batch, name, role)
        if member is None or member.all():
            return values_of(column, name, self.rows), None
        said = pc.is_finite(column) if pa.types.is_floating(column.type) else column.is_valid()
        known = np.asarray(pc.fill_null(said, False).to_numpy(zero_copy_only=False), np.bool_)
        timed = member | (known if (own := self._streamed(batch)) is None else known & own)
        if not timed.any():
            return np.zeros(len(column), np.float64 if pa.types.is_floating(column.type) else np.int64), timed
        if not timed.all():
            column = pc.if_else(pa.array(timed), column, column[int(timed.argmax())])
        return values_of(column, name, self.rows), timed

    def _ordered(
        self,
        batch: pa.RecordBatch | pa.Table,
        name: str,
        last: int | float | None,
        member: NDArray[np.bool_] | None,
        why: str,
    ) -> tuple[NDArray[np.generic], Bits | None, int | float | None]:
        """The values of a column that must not decrease along the stream, from ``last`` on, which rows have one, the new last one."""
        values, timed = self._values(batch, name, "window or time", member)
        chosen = values if timed is None else values[timed]
        if not chosen.size:
            return values, timed, last
        falls = np.less(chosen[1:], chosen[:-1])
        if falls.any() or (last is not None and chosen[0] < last):
            at = 0 if last is not None and chosen[0] < last else int(falls.argmax()) + 1
            row = self.rows + (at if timed is None else int(np.flatnonzero(timed)[at]))
            if self.advanced is not None and name == self.schema.time and not at and chosen[0] < self.advanced:
                raise DataError(
                    f"row {row} is late: '{name}' is {chosen[at]}, and advance() has said that nothing before {self.advanced} comes; "
                    "advance no further than what may still come, or pass late='drop'"
                )
            raise DataError(
                f"'{name}' decreases from {chosen[at - 1] if at else last} to {chosen[at]} at row {row}; {why}"
            )
        return values, timed, chosen[-1].item()

    def _in_time(
        self, batch: pa.RecordBatch | pa.Table, member: NDArray[np.bool_] | None, last_measure: int | float | None
    ) -> tuple[NDArray[np.bool_] | None, int | float | None, int]:
        """Check the order of time, or leave out what is late: the rows that stay, the last time, how many were late.

        ``last_measure``: as :meth:`_measure` gave it, which has checked the order of a window's time.
        """
        name = self.schema.time
        if name is None:
            return member, None, 0
        if self.late_policy == "error":
            if self.window is not None and self.window.attribute == name:
                return member, last_measure, 0
            why = "events must come in the order of their time (or pass late='drop')"
            return member, self._ordered(batch, name, self.last_time, member, why)[2], 0
        values, timed = self._values(batch, name, "time", member)
        rows = np.arange(values.size) if timed is None else np.flatnonzero(timed)
        chosen = values[rows]
        if not chosen.size:
            return member, self.last_time, 0
        start = chosen[0] if self.last_time is None else self.last_time
        reached = np.maximum.accumulate(np.maximum(chosen, start))
        on_time = chosen == reached
        kept = np.zeros(values.size, np.bool_)
        kept[rows[on_time]] = True
        return both(member, kept), reached[-1].item(), int(rows.size - np.count_nonzero(on_time))

    def _substreams(
        self, batch: pa.RecordBatch, rows: I64, member: NDArray[np.bool_] | None, *, skips: bool
    ) -> tuple[I64, I64, I64 | None]:
        """The rows to visit that are in a substream, with its number and, where events are ranked, their ranks in it.

        ``skips``: ``rows`` are not all that are in a stream.
        """
        asked = rows
        if self.ranked and skips:
            # Ranks count every event of the substream, also those that are not visited.
            asked = np.arange(batch.num_rows) if member is None else np.flatnonzero(member)
        part = np.zeros(asked.size, np.int64)
        if self.keys is not None:
            part = self.keys.ids([batch.column(name) for name in self.key_names], asked)
        key = None
        if self.ranked:
            key = self._rank(part)
            chosen = np.searchsorted(asked, rows)
            part, key = part[chosen], key[chosen]
        known = part >= 0
        if not known.all():
            rows, part, key = rows[known], part[known], None if key is None else key[known]
        return rows, part, key

    def _rank(self, part: I64) -> I64:
        """The rank of every event in its substream."""
        if self.counter.size < self.partitions:
            longer = np.zeros(max(self.partitions, 2 * self.counter.size), np.int64)
            longer[: self.counter.size] = self.counter
            self.counter = longer
        rank = np.zeros(part.size, np.int64)
        ranks(part, self.counter, rank)
        return rank

    def _low(self, position: I64, key: I64 | None, measures: NDArray[np.generic] | None, rows: I64, first: int) -> I64:
        """The least key in the window of each event of a batch that begins at position ``first``."""
        if self.measured is not None and measures is not None:
            return self.measured.bounds(measures, rows, first)
        if self.span >= 0:
            return (position if key is None else key) - self.span
        return np.zeros(position.size, np.int64)

    # -- what is kept of the past -------------------------------------------------------------------------------------

    def _clean_now_and_then(self) -> None:
        """Free what no match can need, when enough has come since the last time."""
        self._sweep_now_and_then()

    def _sweep_now_and_then(self) -> None:
        # Not by how many partitions there are now: where each event has a new key, that grows as fast as the events.
        if self.rows - self.swept_at > max(SWEEP_AT_LEAST, self._patience * self._kept):
            before = self.partitions
            self.swept_at = self.rows
            self._sweep()
            self._kept = self.partitions
            self._patience = 2 if self._kept < before else min(2 * self._patience, 8)

    def _sweep(self) -> None:
        """Release what no match can need, and forget the keys of idle partitions when most of them are idle."""
        raise NotImplementedError

    def _keep(self, alive: Bits) -> tuple[I64, I64] | None:
        """Forget the keys of all other partitions, where these are the most; what starts are waited for stays.

        Gives the new number of each partition, and those that stay, in the order of their new numbers.
        """
        if self.keys is None:
            return None
        alive = alive | self.operator.partitions(len(self.keys))
        if 2 * np.count_nonzero(alive) >= len(self.keys):
            return None
        renamed, rows = self.keys.keep(alive), np.flatnonzero(alive)
        self.operator.renumber(renamed)
        if self.ranked:
            self.counter = kept(self.counter, rows)
        return renamed, rows

    # -- state --------------------------------------------------------------------------------------------------------

    def _save_intake(self, section: Section) -> None:
        """Write the partitions, the ranks in them, the events of the window, and what else is said of the stream so far."""
        section.values["scalars"] = {name: getattr(self, name) for name in self.SCALARS}
        section.values["partitions"] = self.partitions
        section.arrays["counter"] = self.counter[: self.partitions].copy()
        for name, table in self._tables().items():
            table.save(section.sub(name))
        if self.words is not None:
            self.words.save(section)
        if self.measured is not None:
            self.measured.save(section.sub("measured"))
        for number, one in enumerate(self.moving):
            one.save(section.sub(f"moving{number}"))

    def _load_intake(self, section: Section) -> int:
        """Take over what :meth:`_save_intake` wrote; how many partitions there are."""
        scalars = Section(section.values["scalars"])
        for name, read in self.SCALARS.items():
            setattr(self, name, read(scalars, name))
        partitions = section.count("partitions")
        self.counter = np.resize(section.numbers("counter", least=0)[:partitions], max(1, partitions))
        for name, table in self._tables().items():
            table.load(section.sub(name))
        if self.words is not None:
            self.words.load(section)
        if self.measured is not None:
            self.measured.load(section.sub("measured"))
            if (self.measured.values[1:] < self.measured.values[:-1]).any():
                raise ValueError("what the window measures falls")
        for number, one in enumerate(self.moving):
            one.load(section.sub(f"moving{number}"))
        if partitions < self.partitions:
            raise ValueError(f"there are {self.partitions} partitions, not {partitions}")
        return partitions

    def _tables(self) -> dict[str, KeyTable]:
        """The tables of keys, by name."""
        return {name: one for name, one in (("keys", self.keys), ("tests", self.tests)) if one is not None}

    def save(self, section: Section) -> None:
        """Write the state, after forgetting what no match can need."""
        raise NotImplementedError

    def load(self, section: Section) -> None:
        """Take over a state that a run of the same program has saved."""
        raise NotImplementedError

    def retype(self, section: Section, old: Intake, unknown: frozenset[str]) -> None:
        """Make what a run over columns of narrower types has saved fit the types here; ``unknown`` as for :meth:`take_over`.

        Raises
        ------
        DataError
            It depends on the types that the columns had.
        """

    def take_over(self, old: Intake, unknown: frozenset[str]) -> None:
        """As :class:`~stretto.engines.api.Run` says: what is kept must be read in the same way."""
        tables = [(name, table) for name, table in old._tables().items() if len(table)]
        mine = self._tables()
        fits = all(name in mine and mine[name].types == table.types for name, table in tables)
        if old.words is not None and len(old.words):
            fits &= self.words is not None and self.words.ordered == old.words.ordered
        fits &= all(one.types == mine.types for one, mine in zip(old.moving, self.moving, strict=True) if one.come)
        if not fits or old.classifying.shape(unknown) != self.classifying.shape(unknown):
            raise DataError("what is kept of them depends on it")
        there, blank = Section(), Section()
        old.save(there)
        self.retype(there, old, unknown)
        self.save(blank)
        for name in mine.keys() - dict(tables).keys():  # an empty table has the words of its types
            there.drop(name)
        values, arrays = there.flat()
        own_values, own_arrays = blank.flat()
        self.load(Section(own_values | values, own_arrays | arrays))


def keyed(batch: pa.RecordBatch | pa.Table, names: tuple[str, ...]) -> Bits | None:
    """Which rows have all of some attributes; ``None``: all rows."""
    found = None
    for name in names:
        column = batch.column(name)
        if column.null_count:
            found = both(found, np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_))
    return found


def kept(array: I64, rows: I64) -> I64:
    """Some rows of an array, and room for one at least."""
    fresh = np.zeros((max(1, rows.size), *array.shape[1:]), np.int64)
    fresh[: rows.size] = array[rows]
    return fresh


def latest(values: NDArray[np.generic] | None, timed: Bits | None) -> int | float | None:
    """The greatest of the values of a batch, of the rows that have one; ``None``: there is none."""
    chosen = values if values is None or timed is None else values[timed]
    return None if chosen is None or not chosen.size else chosen.max().item()


def both(left: Bits | None, right: Bits | None) -> Bits | None:
    """Rows that two choices agree on; ``None`` stands for all rows."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def column_of(batch: pa.RecordBatch | pa.Table, name: str, role: str) -> pa.Array | pa.ChunkedArray:
    """A column, or a :class:`DataError` that names its role."""
    if name not in batch.schema.names:
        raise DataError(f"the events have no column '{name}' ({role})")
    return batch.column(name)
