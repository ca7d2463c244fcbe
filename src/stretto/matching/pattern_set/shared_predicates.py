"""The conditions of all patterns in force, evaluated once for all of them, and what they say of events.

Patterns that run together are found by an :class:`~stretto.matching.pattern_set.predicate_index.Index`, others are handed
their events by a :class:`~stretto.matching.pattern_set.event_routing.Group`. Both are made for a *segment* of patterns and
never change. Where patterns change, the segments stay: those that come make a segment, which is joined with others that are not
much larger, and those that go stay in theirs, where they concern nobody, until they are the most. So a pattern is indexed a few
times while the set doubles, and not with each change.

Keys of events, numbered once for all patterns that are partitioned alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from stretto.array_types import I32, I64, Bits
from stretto.columns.keys import KeyTable
from stretto.events import Schema
from stretto.frame import Section
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, Latest
from stretto.matching.pattern_set.event_routing import Group, RoutedEvents, grouped
from stretto.matching.pattern_set.predicate_index import Classes, Index, Visits
from stretto.matching.pattern_set.predicate_index_kernel import Found, Marks, Owners, find, joined
from stretto.matching.pattern_set.prefix_sharing import Prefix

#: While there are at most so many keys, each pattern remembers its own number of each; more are numbered pattern by pattern.
MOST = 1 << 14

UNKNOWN = -2

#: Where patterns run together, a slot and the number of a key are one word.
HALF = 32


class SharedKeys:
    """Numbers keys for a set of patterns.

    Parameters
    ----------
    names
        The partition attributes.
    schema
        The events' columns.
    """

    def __init__(self, names: Sequence[str], schema: Schema) -> None:
        self._names = list(names)
        self._table = KeyTable([schema.attributes[name] for name in names])
        self.columns: list[pa.Array] = []
        #: By event: the number of its key; −1: it has none.
        self.numbers: I64 = np.zeros(0, np.int64)

    def read(self, batch: pa.RecordBatch) -> bool:
        """Number the keys of some events; false when there are too many keys."""
        if len(self._table) > MOST:
            return False
        self.columns = [batch.column(name) for name in self._names]
        self.numbers = self._table.ids(self.columns)
        return len(self._table) <= MOST

    def __len__(self) -> int:
        return len(self._table)


class OwnNumbers:
    """What one pattern's key table says of shared numbers, as far as it was asked."""

    def __init__(self) -> None:
        self._shared: SharedKeys | None = None
        self._own: I32 = np.zeros(0, np.int32)

    def forget(self) -> None:
        """The pattern's key table was renumbered."""
        self._shared = None

    def of(self, keys: KeyTable, shared: SharedKeys, rows: I64) -> I64:
        """The numbers of the keys of some events in the pattern's key table; −1 for none."""
        if self._shared is not shared:
            self._shared, self._own = shared, np.zeros(0, np.int32)
        if self._own.size <= len(shared):
            wider = np.full(2 * len(shared) + 1, UNKNOWN, np.int32)
            if self._own.size:
                wider[: self._own.size - 1] = self._own[:-1]
            wider[-1] = -1  # what −1 looks up
            self._own = wider
        asked = shared.numbers[rows]
        found = self._own[asked].astype(np.int64)
        new = np.flatnonzero(found == UNKNOWN)
        if new.size:
            found[new] = keys.ids(shared.columns, rows[new])
            self._own[asked[new]] = found[new]
        return found


def renewed(pairs: KeyTable, numbers: KeyTable) -> KeyTable:
    """Forget the keys that no pair of a slot and a key names, where these are the most; gives the table of the pairs."""
    saved = Section()
    pairs.save(saved)
    words = saved.arrays["words"].view(np.int64)
    asked = np.zeros(len(numbers), np.bool_)
    key = words & ((1 << HALF) - 1)
    asked[key] = True
    if 2 * np.count_nonzero(asked) >= asked.size:
        return pairs
    renamed = numbers.keep(asked)
    fresh = KeyTable([pa.int64()])
    fresh.ids([pa.array((words >> HALF) << HALF | renamed[key])])
    return fresh


#: Pairs of event and pattern that are held at a time, about.
PAIRS = 1 << 20

#: A segment is joined with a new one that has at least this part of its patterns, one in so many.
GROWTH = 4


class Told(NamedTuple):
    """What conditions say of some events."""

    groups: list[I32]  #: by group of the parts that run on their own: the shared class of every event
    codes: I32  #: of the indexes: [column, event]
    doubtful: Bits | None  #: where integers of 64 bits do not tell of a condition of an index


class Segment:
    """The conditions of some parts.

    Parameters
    ----------
    parts
        All of one schema, each once.
    schema
        The columns of the events.
    """

    def __init__(self, parts: Sequence[CompiledPattern], schema: Schema) -> None:
        self.index = Index([part for part in parts if part.together], schema)
        self.groups = [Group(group, schema) for group in grouped([part for part in parts if not part.together])]
        #: Those that run together, and then the others.
        self.parts = [*self.index.parts, *(part for group in self.groups for part in group.parts)]
        self.tested = frozenset(name for part in parts for name in part.tested)

    @property
    def count(self) -> int:
        """How many conditions are evaluated."""
        return self.index.count + sum(group.count for group in self.groups)


class Used(NamedTuple):
    """How many parts use each attribute."""

    tested: Counter[str]  #: in conditions, windows and keys
    shown: Counter[str]  #: in the events of their variables
    keys: Counter[str]
    returned: Counter[str]  #: in RETURN

    def changed(self, new: Iterable[CompiledPattern], gone: Iterable[CompiledPattern]) -> Used:
        """The same with some parts more, and without others."""
        found = Used(*map(Counter, self))
        for parts, change in ((new, Counter.update), (gone, Counter.subtract)):
            for part in parts:
                change(found.tested, part.tested)
                change(found.shown, {name for _, names in part.selected for name in names})
                change(found.keys, part.keys)
                change(found.returned, () if part.returned is None else part.returned.returned)
        return Used(*(+counts for counts in found))


class SharedConditions:
    """The conditions of the patterns that are in force at one time.

    Parameters
    ----------
    parts
        All of one schema, each once.
    schema
        The columns of the events.
    before
        The conditions of other patterns of the schema, of which much may stay.
    """

    def __init__(
        self, parts: Sequence[CompiledPattern], schema: Schema, before: SharedConditions | None = None
    ) -> None:
        self.parts = dict.fromkeys(parts)
        self.schema = schema
        old = {} if before is None else before.parts
        new = [part for part in parts if part not in old]
        gone = [part for part in old if part not in self.parts]
        nothing = Used(Counter(), Counter(), Counter(), Counter())
        #: What the parts use.
        self.used: Used = (nothing if before is None else before.used).changed(new, gone)
        #: The time, and the attributes that conditions, windows and keys of any part read, in the schema's order.
        self.tested = tuple(name for name in schema.attributes if name in self.used.tested or name == schema.time)
        self.segments: list[Segment] = self._segments([] if before is None else before.segments)
        self.classes: Classes = Classes() if before is None or before.classes.many else before.classes
        indexes = [segment.index for segment in self.segments]
        self._groups = [group for segment in self.segments for group in segment.groups]
        self._clauses = joined(
            [index.clauses for index in indexes],
            [index.columns for index in indexes],
            [len(index.members) for index in indexes],
        )
        self._models = np.concatenate([self.classes.numbers(index) for index in indexes])
        members, alone = [index.members for index in indexes], [group.parts for group in self._groups]
        # A prefix in several segments has one number, with which it concerns somebody.
        self._number: dict[CompiledPattern | Prefix, int] = {
            one: number for number, one in enumerate(chain(*members, *alone))
        }
        before_index = np.cumsum([0, *map(len, members)])
        prefixes = [
            np.where(one.prefix < 0, -1, one.prefix + low) for one, low in zip(indexes, before_index, strict=False)
        ]
        self._prefix = np.concatenate([*prefixes, np.full(sum(map(len, alone)), -1)])
        self._read = 0

    def _segments(self, before: Sequence[Segment]) -> list[Segment]:
        """Segments that have all parts, larger ones first: those of before, as far as that is worth while, and a new one."""
        kept: list[Segment] = []
        there: set[CompiledPattern] = set()
        for segment in before:
            living = self.parts.keys() & segment.parts
            # What no pattern reads, events need not have.
            if 2 * len(living) > len(segment.parts) and all(name in self.tested for name in segment.tested):
                kept.append(segment)
                there |= living
        new = [part for part in self.parts if part not in there]
        while new and kept and len(kept[-1].parts) <= GROWTH * len(new):
            new += [part for part in kept.pop().parts if part in self.parts]
        if new or not kept:
            kept.append(_SEGMENTS.get((self.schema.key, *new), lambda: Segment(new, self.schema)))
        return kept

    @property
    def counts(self) -> tuple[int, int]:
        """How many conditions are evaluated, and how many the parts have."""
        return sum(segment.count for segment in self.segments), sum(part.asking for part in self.parts)

    def settled(self) -> SharedConditions:
        """The same in one segment, once so much was read in several that this pays; before that, itself."""
        if self._read <= EVENTS * len(self.parts):
            return self
        return _SHARED.get((self.schema.key, None, *self.parts), lambda: SharedConditions([*self.parts], self.schema))

    # -- what they say of events ------------------------------------------------------------------------------------

    def classify(self, batch: pa.RecordBatch | pa.Table) -> Told:
        """What all conditions say of events.

        Raises
        ------
        DataError
            A column is missing or of another type.
        """
        indexes = [segment.index for segment in self.segments]
        codes = np.zeros((sum(index.columns for index in indexes), batch.num_rows), np.int32)
        doubtful: Bits | None = None
        low = 0
        for index in indexes:
            found = index.fill(batch, codes[low : low + index.columns])
            doubtful = found if doubtful is None else doubtful if found is None else doubtful | found
            low += index.columns
        self._read += batch.num_rows * (len(indexes) - 1)
        return Told([group.classify(batch) for group in self._groups], codes, doubtful)

    def doubtful(self, told: Told) -> bool:
        """Whether arithmetic overflows in some event, and the truth of a condition depends on it."""
        if told.doubtful is not None:
            return True
        return any(group.doubtful(cls) for group, cls in zip(self._groups, told.groups, strict=True))

    def hand_out(self, told: Told, low: int, high: int) -> Iterator[tuple[CompiledPattern, RoutedEvents]]:
        """Hand some events to the parts on their own that they concern."""
        for group, cls in zip(self._groups, told.groups, strict=True):
            yield from group.hand_out(cls[low:high])

    def owners(self, parts: Sequence[CompiledPattern | Prefix]) -> Owners:
        """Who has each part; ``parts``: by place."""
        number = np.array([self._number[part] for part in parts], np.int64)
        begin = np.zeros(self._prefix.size + 1, np.int64)
        np.cumsum(np.bincount(number, minlength=self._prefix.size), out=begin[1:])
        return Owners(begin, np.argsort(number, kind="stable"), self._models, self._prefix)

    def places(self, part: CompiledPattern, owners: Owners) -> list[int]:
        """Who has a part, ascending."""
        number = self._number[part]
        found: list[int] = owners.place[owners.begin[number] : owners.begin[number + 1]].tolist()
        return found

    def visits(self, codes: I32, first: int, stop: int, owners: Owners) -> tuple[int, Visits]:
        """The pairs of some events: up to which event they were found, as many as are held at a time, and what they are."""
        parts, places = owners.begin.size - 1, owners.place.size
        room = PAIRS + places + 1
        marks = Marks(
            np.zeros(parts, np.uint64),
            np.empty(parts, np.int64),
            np.empty(places, np.int64),
            np.empty(places, np.uint64),
        )
        row, place = np.empty((2, room), np.int64)
        found = Found(row, place, np.empty(room, np.uint64), np.zeros(places, np.int64))
        reached, used = find(codes, first, stop, self._clauses, owners, marks, found, PAIRS)
        return int(reached), Visits(row[:used], place[:used], self.classes.of(found.key[:used]), found.concerned)


_SEGMENTS: Latest[tuple[Hashable, ...], Segment] = Latest(64)


_SHARED: Latest[tuple[Hashable, ...], SharedConditions] = Latest(32)


#: A part is indexed anew in as much time as it takes to read so many events in one more segment, about.
EVENTS = 1 << 11


def conditions_of(
    parts: Sequence[CompiledPattern], schema: Schema, before: SharedConditions | None
) -> SharedConditions:
    """The conditions of some parts, each named once or more; those that were there before keep what they have learnt."""
    distinct = tuple(dict.fromkeys(parts))
    return _SHARED.get((schema.key, *distinct), lambda: SharedConditions(distinct, schema, before))


def known_conditions(schema: Schema) -> SharedConditions | None:
    """The conditions of some patterns of a schema that were used last in this process, by any set.

    A set that is restored has most of its patterns in common with the set that was there before it: that of another bucket of keys
    on Spark, or the same some micro-batches ago.
    """
    return _SHARED.last(lambda key: key[0] == schema.key and len(key) > 1)
