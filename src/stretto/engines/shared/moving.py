"""Moving aggregates as columns: of each event that counts, what those of its key in the window that it ends add up to.

Events that count are numbered along the stream, and leave in the same order, whatever their key: time is one for all. So one queue
holds the window of all keys, and what leaves knows its key. Counts, numbers of distinct values and sums of integers go down as they
went up; sums of doubles, least and greatest values are folded from two lists for each key, the older one from behind, so that nothing
that has left can be felt (a queue of two stacks; Tangwongsan et al., *General incremental sliding-window aggregation*, 2015).
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import inlined, jit
from stretto.array_types import I64, Bits
from stretto.columns.arrays import one_array, roomy
from stretto.columns.classes import condition_of
from stretto.columns.keys import KeyTable
from stretto.columns.measured import values_of
from stretto.columns.overflow import IntegerOverflow
from stretto.columns.segments import known_of
from stretto.columns.vectorized import computed, mask
from stretto.engines import store
from stretto.engines.shared.windows import Measured
from stretto.errors import DataError
from stretto.frame import Section
from stretto.query import predicate as p
from stretto.query.moving import BoundMoving
from stretto.query.passes.bind import AnyBound

NONE = -1

#: Keys are looked through after at least so many events that count.
SWEEP_AT_LEAST = 1 << 14

#: What is folded.
SUM, MIN, MAX = range(3)
_FOLDS = {"sum": SUM, "avg": SUM, "min": MIN, "max": MAX}


class Queued(NamedTuple):
    """By event that counts, from the first one that is in a window on."""

    key: I64
    pair: I64  #: the number of its key and value, or 0; −1: it has no value
    high: I64  #: its value: the upper 32 bits …
    low: I64  #: … and the others


class Tallies(NamedTuple):
    """By key; of what comes of an event, by event."""

    events: I64  #: how many are in the window, with a value or not
    counted: I64
    high: I64
    low: I64


class Folded(NamedTuple):
    """By event that counts; numbers of events are those of the queue."""

    value: NDArray[Any]
    fold: NDArray[Any]  #: of it and those behind it up to the end of the older list
    before: I64  #: the event before with a value of its key
    behind: I64


class Lists(NamedTuple):
    """By key: the older list of events, and of the newer one what it adds up to."""

    first: I64  #: of the older list; −1: it is empty
    last: I64
    newest: I64  #: the newest event with a value; −1: there is none
    newer: I64  #: how many are in the newer list
    sum: NDArray[Any]  #: what these add up to


@jit
def tally(floor: I64, first: int, gone: int, queue: Queued, tallies: Tallies, several: I64, out: Tallies) -> None:
    """Let events come one by one, each behind those that leave with it; ``out`` is what there is then of its key.

    ``several``: by pair, how many events of the window have it; empty where equal values count as often as they come.

    Event i comes as number ``first + i`` of the queue, whose number ``floor[i]`` is the first that stays, ``gone`` the first that is
    there. Invariant: ``tallies`` is of the events from ``gone`` to the last one that came. O(1) an event, amortized.
    """
    distinct = several.size > 0
    for i in range(floor.size):
        while gone < floor[i]:
            key, pair = queue.key[gone], queue.pair[gone]
            tallies.events[key] -= 1
            if pair >= 0:
                last = True
                if distinct:
                    several[pair] -= 1
                    last = several[pair] == 0
                if last:
                    tallies.counted[key] -= 1
                tallies.high[key] -= queue.high[gone]
                tallies.low[key] -= queue.low[gone]
            gone += 1
        key, pair = queue.key[first + i], queue.pair[first + i]
        tallies.events[key] += 1
        if pair >= 0:
            new = True
            if distinct:
                new = several[pair] == 0
                several[pair] += 1
            if new:
                tallies.counted[key] += 1
            tallies.high[key] += queue.high[first + i]
            tallies.low[key] += queue.low[first + i]
        out.counted[i], out.high[i], out.low[i] = tallies.counted[key], tallies.high[key], tallies.low[key]


@inlined
def _both(how: int, left: Any, right: Any) -> Any:
    """Two values as one; NaN is greater and less than all."""
    if how == SUM:
        return left + right
    if left != left:
        return left
    if right != right:
        return right
    if how == MIN:
        return min(left, right)
    return max(left, right)


@inlined
def _link(event: int, key: int, folded: Folded, lists: Lists) -> None:
    """An event becomes the newest with a value of its key."""
    newest = lists.newest[key]
    folded.before[event] = newest
    if newest >= 0:
        folded.behind[newest] = event
    lists.newest[key] = event


@inlined
def _add(how: int, value: Any, key: int, lists: Lists) -> None:
    """The newer list of a key gets a value."""
    lists.sum[key] = value if lists.newer[key] == 0 else _both(how, lists.sum[key], value)
    lists.newer[key] += 1


@jit
def fold(floor: I64, first: int, gone: int, how: int, queue: Queued, folded: Folded, lists: Lists, out: Any) -> None:
    """As :func:`tally`; ``out`` is what the values of the key are then, where it has any.

    Invariant: of each key the newer list is what came since the older one was made; ``fold`` of the first of the older one is the
    whole of that. When that is empty and the oldest event leaves, all of the newer one becomes the older: each event is folded twice.
    """
    for i in range(floor.size):
        while gone < floor[i]:
            if queue.pair[gone] >= 0:
                key = queue.key[gone]
                if lists.first[key] < 0:
                    at = lists.newest[key]
                    folded.fold[at] = folded.value[at]
                    lists.last[key] = at
                    while at != gone:
                        before = folded.before[at]
                        folded.fold[before] = _both(how, folded.value[before], folded.fold[at])
                        at = before
                    lists.newer[key] = 0
                lists.first[key] = NONE if lists.last[key] == gone else folded.behind[gone]
                if lists.newest[key] == gone:
                    lists.newest[key] = NONE
            gone += 1
        event = first + i
        key = queue.key[event]
        if queue.pair[event] >= 0:
            _link(event, key, folded, lists)
            _add(how, folded.value[event], key, lists)
        older = lists.first[key]
        if older >= 0 and lists.newer[key] > 0:
            out[i] = _both(how, folded.fold[older], lists.sum[key])
        elif older >= 0:
            out[i] = folded.fold[older]
        else:
            out[i] = lists.sum[key]


@jit
def refold(how: int, older: Bits, queue: Queued, folded: Folded, lists: Lists) -> None:
    """Make the lists of the events that are there, ``older`` being those of older lists, as :func:`fold` made them. O(events)."""
    for event in range(older.size):
        if queue.pair[event] >= 0:
            key = queue.key[event]
            _link(event, key, folded, lists)
            if older[event]:
                lists.last[key] = event
                if lists.first[key] < 0:
                    lists.first[key] = event
            else:
                _add(how, folded.value[event], key, lists)
    for event in range(older.size - 1, -1, -1):
        if older[event] and queue.pair[event] >= 0:
            value = folded.value[event]
            last = lists.last[queue.key[event]] == event
            folded.fold[event] = value if last else _both(how, value, folded.fold[folded.behind[event]])


class MovingColumn:
    """A moving aggregate along a stream.

    Parameters
    ----------
    bound
        The aggregate.
    query
        The query that it is of, with the keys by which its events are apart.
    """

    def __init__(self, bound: BoundMoving, query: AnyBound) -> None:
        schema, only = query.schema, query.parsed.streams[0]
        asked = [condition_of(guard, schema, only, only) for guard in bound.guards]
        self.bound = bound
        self.population = p.Or(tuple(one for one in asked if one is not None))
        self.key_names, self.ordered = query.partition_by, schema.time is not None
        own = [schema.attributes[name] for name in self.key_names]
        aggregate = bound.aggregate
        self.distinct = aggregate.distinct
        #: How values are folded; ``None``: they are tallied.
        self.how = _FOLDS.get(aggregate.function)
        if self.how == SUM and pa.types.is_integer(bound.kind):
            self.how = None
        self.adds = aggregate.function in ("sum", "avg") and self.how is None
        self.keys = KeyTable(own)
        self.pairs = KeyTable([*own, bound.kind]) if self.distinct else None
        self.measured = Measured(bound.size)
        self.kind = np.int64 if pa.types.is_integer(bound.type) else np.float64
        #: Numbers of the queue: of the first event that is there, of the next one, and of the first place of the arrays.
        self.gone = self.come = self.base = 0
        self._looked_at, self._kept = 0, 0  #: what had come when keys were last looked through, and how many were kept
        self.queue, self.tallies = store.zeros(Queued, 1), store.zeros(Tallies, 1)
        self.several = np.zeros(int(self.distinct), np.int64)
        self.folded = store.zeros(Folded, 1, value=self.kind, fold=self.kind)
        self.lists = self._lists(1)

    def _lists(self, keys: int) -> Lists:
        first, newest = np.full(keys, NONE, np.int64), np.full(keys, NONE, np.int64)
        return store.zeros(Lists, keys, first=first, newest=newest, sum=self.kind)

    @property
    def expires(self) -> int | float | None:
        """The last time at which an event of the queue is in the window; ``None``: there is none."""
        measured = self.measured
        if measured.begin == measured.end:
            return None
        found: int | float = measured.values[measured.end - 1].item() + measured.size
        return found

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        tables = self.keys.nbytes + (0 if self.pairs is None else self.pairs.nbytes)
        measured = self.measured.values.nbytes + self.measured.positions.nbytes
        return tables + measured + store.bytes_of(self.queue, self.tallies, [self.several], self.folded, self.lists)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """What the events of the window are kept by."""
        return (*self.keys.types, self.bound.kind)

    def trial(self) -> MovingColumn:
        """One that goes on from here, and leaves this one as it is."""
        other = copy.copy(self)
        for name in ("keys", "pairs", "measured", "queue", "tallies", "several", "folded", "lists"):
            setattr(other, name, copy.deepcopy(getattr(self, name)))
        return other

    def column(self, batch: pa.RecordBatch, member: Bits | None, first: int) -> pa.Array:
        """The value at each row of a batch that begins at position ``first``, NULL where there is none; ``member``: rows to take."""
        counts = mask(self.population, batch)
        rows = np.flatnonzero(counts if member is None else counts & member)
        key = self.keys.ids([batch.column(name) for name in self.key_names], rows)
        rows, key = rows[key >= 0], key[key >= 0]
        found = np.zeros(batch.num_rows, self.kind)
        known = np.zeros(batch.num_rows, np.bool_)
        if rows.size:
            taken = batch.take(pa.array(rows))
            times = values_of(taken.column(self.bound.time), self.bound.time, first)
            if not self.ordered:
                self._check_order(times, first + rows)
            found[rows], known[rows] = self._values(taken, key, times, first + rows)
        return pa.array(found, self.bound.type, mask=~known)

    def _values(self, taken: pa.RecordBatch, key: I64, times: NDArray[Any], positions: I64) -> tuple[Any, Bits]:
        """The values at events that count, and which of them there are."""
        count = key.size
        pair, values = np.zeros(count, np.int64), pa.nulls(0)
        if self.bound.argument is not None:
            values = self._arguments(taken, positions)
            pair = np.where(known_of(values), 0, NONE)
        if self.pairs is not None:
            pair = self.pairs.ids([*(taken.column(name) for name in self.key_names), values])
        self._make_room(count)
        now = self.come - self.base
        floor = self.measured.bounds(times, np.arange(count), self.come) - self.base
        there = slice(now, now + count)
        self.queue.key[there], self.queue.pair[there] = key, pair
        if self.adds:
            whole = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            self.queue.high[there], self.queue.low[there] = whole >> 32, whole & 0xFFFFFFFF
        out, folds = store.zeros(Tallies, count), np.zeros(count, self.kind)
        tally(floor, now, self.gone - self.base, self.queue, self.tallies, self.several, out)
        if self.how is not None:
            known = values.cast(pa.from_numpy_dtype(self.kind)).fill_null(0)
            self.folded.value[there] = known.to_numpy(zero_copy_only=False)
            fold(floor, now, self.gone - self.base, self.how, self.queue, self.folded, self.lists, folds)
        self.come += count
        self.gone = int(floor[-1]) + self.base
        self._forget_now_and_then()
        return self._shown(out, folds, positions)

    def _check_order(self, times: NDArray[Any], positions: I64) -> None:
        """Raise a :class:`DataError` where time decreases, of which nobody else looks."""
        measured = self.measured
        known = measured.begin < measured.end
        before = np.concatenate((measured.values[measured.end - 1 : measured.end] if known else times[:1], times[:-1]))
        falls = times < before
        if falls.any():
            at = int(falls.argmax())
            raise DataError(
                f"'{self.bound.time}' decreases from {before[at]} to {times[at]} at row {positions[at]}; OVER needs an attribute "
                "that does not: sort the events by it before"
            )

    def _arguments(self, taken: pa.RecordBatch, positions: I64) -> pa.Array:
        assert self.bound.argument is not None
        try:
            return one_array(computed(self.bound.argument, taken, self.bound.kind))
        except IntegerOverflow as error:
            raise error.renumbered(positions) from None

    def _shown(self, out: Tallies, folds: NDArray[Any], positions: I64) -> tuple[Any, Bits]:
        """What is asked of what there is, and where there is something."""
        average, some = self.bound.aggregate.function == "avg", np.greater(out.counted, 0)
        if self.how is not None:
            return (folds / np.maximum(out.counted, 1) if average else folds), some
        if not self.adds:
            return out.counted, np.ones(some.size, np.bool_)
        if average:
            return (out.high * 2.0**32 + out.low) / np.maximum(out.counted, 1), some
        high = out.high + (out.low >> 32)
        beyond = (high >= 1 << 31) | (high < -(1 << 31))
        if beyond.any():
            raise DataError(f"row {positions[beyond.argmax()]}: {self.bound.aggregate} leaves 64 bits")
        return (high << 32) + (out.low & 0xFFFFFFFF), some

    def _make_room(self, count: int) -> None:
        """Room for so many more events, behind those that are there, and for all keys and pairs."""
        if self.come - self.base + count > self.queue.key.size and 2 * (self.gone - self.base) > self.queue.key.size:
            self._move_up()
        size = self.come - self.base + count
        self.queue = store.with_room(self.queue, size)
        self.tallies = store.with_room(self.tallies, len(self.keys))
        if self.pairs is not None:
            self.several = roomy(self.several, len(self.pairs))
        if self.how is not None:
            self.folded = store.with_room(self.folded, size)
            if self.lists.first.size < len(self.keys):
                self.lists = store.over(self.lists, self._lists(self.tallies.events.size))

    def _move_up(self) -> None:
        """The first event that is there gets the first place; half of the arrays is free, so that this costs O(1) an event."""
        gone, there = self.gone - self.base, slice(self.gone - self.base, self.come - self.base)
        self.base = self.gone
        for array in (*self.queue, *(() if self.how is None else self.folded)):
            array[: there.stop - there.start] = array[there].copy()
        if self.how is not None:
            self.folded.before[:] -= gone
            self.folded.behind[:] -= gone
            for array in (self.lists.first, self.lists.last, self.lists.newest):
                array[array >= 0] -= gone

    # -- keys ---------------------------------------------------------------------------------------------------------

    def _forget_now_and_then(self) -> None:
        """Forget keys without events in the window, where these are the most, and enough has come since the last time."""
        if self.come - self._looked_at <= max(SWEEP_AT_LEAST, 2 * self._kept):
            return
        self._looked_at = self.come
        there = slice(self.gone - self.base, self.come - self.base)
        alive = self.tallies.events[: len(self.keys)] > 0
        if self.key_names and 2 * np.count_nonzero(alive) < alive.size:
            renamed, rows = self.keys.keep(alive), np.flatnonzero(alive)
            self.queue.key[there] = renamed[self.queue.key[there]]
            self.tallies = Tallies(*(_some(array, rows) for array in self.tallies))
            if self.how is not None:
                kept = Lists(*(array[rows] for array in self.lists))
                self.lists = store.over(kept, self._lists(self.tallies.events.size))
        if self.pairs is not None:
            alive = self.several[: len(self.pairs)] > 0
            if 2 * np.count_nonzero(alive) < alive.size:
                renamed, known = self.pairs.keep(alive), self.queue.pair[there] >= 0
                self.queue.pair[there] = np.where(known, renamed[self.queue.pair[there]], NONE)
                self.several = _some(self.several, np.flatnonzero(alive))
        self._kept = len(self.keys) + (0 if self.pairs is None else len(self.pairs))

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the events of the window; what they add up to follows."""
        there = slice(self.gone - self.base, self.come - self.base)
        self.keys.save(section.sub("keys"))
        if self.pairs is not None:
            self.pairs.save(section.sub("pairs"))
        self.measured.save(section.sub("measured"))
        names = ("key", "pair", *(("high", "low") if self.adds else ()))
        section.arrays |= {name: getattr(self.queue, name)[there].copy() for name in names}
        if self.how is not None:
            last = np.where(self.lists.first >= 0, self.lists.last, NONE)[self.queue.key[there]]
            section.arrays["value"] = self.folded.value[there].copy()
            section.arrays["older"] = np.arange(there.start, there.stop) <= last

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.keys.load(section.sub("keys"))
        key = section.numbers("key", least=0, below=max(1, len(self.keys)))
        pairs = 1
        if self.pairs is not None:
            self.pairs.load(section.sub("pairs"))
            pairs = len(self.pairs)
        pair = section.numbers("pair", size=key.size, least=NONE, below=max(1, pairs))
        self.measured.load(section.sub("measured"))
        if self.measured.positions.size != key.size or (np.diff(self.measured.values) < 0).any():
            raise ValueError("the events of a moving aggregate have other times")
        self.measured.positions[:] = np.arange(key.size)
        self.gone = self.base = self._looked_at = self._kept = 0
        self.come = key.size
        self._make_room(0)
        there, known = slice(0, key.size), pair >= 0
        self.queue.key[there], self.queue.pair[there] = key, pair
        counted = key[known]
        if self.distinct:
            self.several = np.bincount(pair[known], minlength=max(1, pairs))
            counted = counted[np.unique(pair[known], return_index=True)[1]]
        room = max(1, len(self.keys))
        high, low = np.zeros(room, np.int64), np.zeros(room, np.int64)
        if self.adds:
            for name, added in (("high", high), ("low", low)):
                getattr(self.queue, name)[there] = section.numbers(name, size=key.size)
                np.add.at(added, counted, section.arrays[name][known])
        events, held = np.bincount(key, minlength=room), np.bincount(counted, minlength=room)
        self.tallies = Tallies(events, held, high, low)
        if self.how is not None:
            value, older = section.arrays["value"].astype(self.kind), section.arrays["older"].astype(np.bool_)
            if not value.size == older.size == key.size:
                raise ValueError("the values of a moving aggregate are not as many as its events")
            self.folded.value[there] = value
            self.lists = self._lists(room)
            refold(self.how, older, self.queue, self.folded, self.lists)


def with_moving(table: pa.Table, query: AnyBound) -> pa.Table:
    """A table with the values of the moving aggregates of a query, whatever the order of its rows; NULL where there is none."""
    if not query.moving:
        return table
    time = query.moving[0].time
    column = one_array(table.column(time))
    known = np.flatnonzero(known_of(column))
    order = known[np.argsort(values_of(column.take(pa.array(known)), time, 0), kind="stable")]
    back = np.full(table.num_rows, NONE)
    back[order] = np.arange(order.size)
    batches = table.take(pa.array(order)).combine_chunks().to_batches()
    for moving in query.moving:
        values = [MovingColumn(moving, query).column(batch, None, 0) for batch in batches]
        places = pa.array(back, mask=back < 0)
        shown = values[0].take(places) if values else pa.nulls(table.num_rows, moving.type)
        table = table.append_column(moving.name, shown)
    return table


def _some(array: I64, rows: I64) -> I64:
    """Some rows of an array, and room for one at least."""
    return roomy(array[rows], 1)
