"""Shared predicates: one classification of the events for all parts of a set.

Parts that run together are found by an :class:`~stretto.matching.many.index.Index`. What follows is about the others.

The distinct conditions of all parts make one :class:`~stretto.columns.classes.Classifier`, so that every column is read
once whatever the number of queries. It gives each event a *shared class*: which of all conditions hold. What a shared class
is to each part — the part's own event class, if any guard of the part holds — is worked out once, when the class first
occurs. An event is then handed only to the parts that it concerns: its cost is one look-up and one step for each of these,
not one for each query.

Conditions on many columns multiply: parts that tell apart more than :data:`CELLS` kinds of events together are put into
several groups, each with a classifier of its own.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.columns.classes import Classifier
from stretto.events import Schema
from stretto.matching.many.handing import Shares, count_shares, hand_out
from stretto.matching.many.index import Index
from stretto.matching.many.parts import DOUBLES, Latest, Part
from stretto.query import predicate as p

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Bits = NDArray[np.bool_]

#: Parts share a group while the codes of its columns make at most so many cells.
CELLS = 1 << 18


class Handed(NamedTuple):
    """What a part is handed of some events."""

    rows: I64  #: which events it visits, ascending
    cls: I32  #: their classes, as the part's own program numbers them
    member: Bits | None  #: which events belong to the streams of its query; ``None``: all


class Told(NamedTuple):
    """What conditions say of some events."""

    groups: list[I32]  #: by group of the parts that run on their own: the shared class of every event
    codes: I32  #: of the index: [column, event]
    doubtful: Bits | None  #: where integers of 64 bits do not tell of a condition of the index


class SharedConditions:
    """The conditions of the patterns that are in force at one time.

    Parameters
    ----------
    parts
        All of one schema, each once.
    schema
        The columns of the events.
    """

    def __init__(self, parts: Sequence[Part], schema: Schema) -> None:
        self.parts = tuple(parts)
        self.schema = schema
        #: The time, and the attributes that conditions, windows and keys of any part read, in the schema's order.
        used = {schema.time, *(name for part in self.parts for name in part.query.bound.tested)}
        self.tested = tuple(name for name in schema.attributes if name in used)
        #: The numbers of the parts that run together, and of those that do not.
        self.together = [number for number, part in enumerate(self.parts) if part.together]
        self.alone = [number for number, part in enumerate(self.parts) if not part.together]
        self.index = Index([self.parts[number] for number in self.together], schema)
        alone = [self.parts[number] for number in self.alone]
        self._groups = [_Group([self.alone[k] for k in group], self.parts, schema) for group in _grouped(alone)]

    @property
    def counts(self) -> tuple[int, int]:
        """How many conditions are evaluated, and how many the parts have."""
        asked = sum(len(part.conditions) for part in self.parts)
        return self.index.count + sum(group.count for group in self._groups), asked

    def classify(self, batch: pa.RecordBatch | pa.Table) -> Told:
        """What all conditions say of events.

        Raises
        ------
        DataError
            A column is missing or of another type.
        """
        return Told([group.classify(batch) for group in self._groups], *self.index.codes(batch))

    def doubtful(self, told: Told) -> bool:
        """Whether arithmetic overflows in some event, and the truth of a condition depends on it."""
        if told.doubtful is not None:
            return True
        return any(group.doubtful(cls) for group, cls in zip(self._groups, told.groups, strict=True))

    def hand_out(self, told: Told, low: int, high: int) -> Iterator[tuple[int, Handed]]:
        """Hand some events to the parts on their own that they concern: pairs of a part's number and what it gets."""
        for group, cls in zip(self._groups, told.groups, strict=True):
            yield from group.hand_out(cls[low:high])


class _Group:
    """Parts that share a classifier."""

    def __init__(self, members: Sequence[int], parts: Sequence[Part], schema: Schema) -> None:
        self.members = list(members)
        self.parts = [parts[m] for m in members]
        numbers: dict[str, int] = {}
        conditions: list[p.Predicate] = []

        def number(condition: p.Predicate | None) -> int:
            if condition is None:
                return -1
            # By text: 1 and 1.0 are equal in Python, and integer and float arithmetic are not.
            found = numbers.setdefault(repr(condition), len(conditions))
            if found == len(conditions):
                conditions.append(condition)
            return found

        guards = [[number(condition) for condition in part.conditions] for part in self.parts]
        self._sources = [number(part.source) for part in self.parts]
        self.count = len(conditions)
        #: By part: the numbers of its guards' conditions; one that never holds is the bit after the last.
        self._guards = [np.array([g if g >= 0 else self.count for g in of_part], np.int64) for of_part in guards]
        self._classifier = Classifier(conditions, schema)
        self._lock = threading.Lock()
        self._known = 0
        self._shares = Shares(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
        #: By part that visits every event of its streams: its class of each shared class.
        self._own: dict[int, I32] = {k: np.zeros(0, np.int32) for k, part in enumerate(self.parts) if not part.skips}
        #: By part with a source: which shared classes belong to it.
        self._member: dict[int, Bits] = {
            k: np.zeros(0, np.bool_) for k, source in enumerate(self._sources) if source >= 0
        }

    def classify(self, batch: pa.RecordBatch | pa.Table) -> I32:
        cls = self._classifier.look(batch)
        if self._known < len(self._classifier.vectors):
            with self._lock:
                self._learn()
        return cls

    def doubtful(self, cls: I32) -> bool:
        return self._classifier.doubtful(cls) is not None

    def _learn(self) -> None:
        """What the shared classes that are new mean to the parts."""
        vectors = self._classifier.vectors[self._known :]
        if not vectors:
            return
        size = self.count // 8 + 1
        data = np.frombuffer(b"".join(vector.to_bytes(size, "little") for vector in vectors), np.uint8)
        truth = np.unpackbits(data.reshape(len(vectors), size), axis=1, bitorder="little").view(np.bool_)
        found_class, found_part, found_own = [], [], []
        for k, part in enumerate(self.parts):
            own = part.classes(truth[:, self._guards[k]])
            inside = truth[:, self._sources[k]] if k in self._member else None
            if inside is not None:
                self._member[k] = np.concatenate((self._member[k], inside))
            if k in self._own:
                self._own[k] = np.concatenate((self._own[k], own))
                continue
            concerned = own != 0 if inside is None else (own != 0) & inside
            new = np.flatnonzero(concerned)
            found_class.append(new)
            found_part.append(np.full(new.size, k, np.int32))
            found_own.append(own[new])
        self._share(len(vectors), found_class, found_part, found_own)
        self._known += len(vectors)

    def _share(self, count: int, found_class: list[I64], found_part: list[I32], found_own: list[I32]) -> None:
        """Add the shares of so many new classes."""
        if not found_class:
            found_class, found_part, found_own = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], []
        cls = np.concatenate(found_class)
        order = np.argsort(cls, kind="stable")
        begin = self._shares.begin[-1] + np.cumsum(np.bincount(cls, minlength=count))
        self._shares = Shares(
            np.concatenate((self._shares.begin, begin)),
            np.concatenate((self._shares.part, np.concatenate(found_part)[order])),
            np.concatenate((self._shares.own, np.concatenate([*found_own, np.zeros(0, np.int32)])[order])),
        )

    def hand_out(self, cls: I32) -> Iterator[tuple[int, Handed]]:
        shares = self._shares
        counts = np.zeros(len(self.parts), np.int64)
        count_shares(cls, shares, counts)
        stop = np.cumsum(counts)
        place = stop - counts
        rows, own = np.empty(int(stop[-1]), np.int64), np.empty(int(stop[-1]), np.int32)
        hand_out(cls, shares, place, rows, own)
        for k, number in enumerate(self.members):
            member = self._member[k][cls] if k in self._member else None
            if k in self._own:
                mine = np.arange(cls.size) if member is None else np.flatnonzero(member)
                yield number, Handed(mine, self._own[k][cls[mine]], member)
            else:
                part = slice(stop[k] - counts[k], stop[k])
                yield number, Handed(rows[part], own[part], member)


# -- which parts share a classifier ---------------------------------------------------------------------------


def _grouped(parts: Sequence[Part]) -> list[list[int]]:
    """Parts with like conditions together, as long as their cells stay few."""
    order = sorted(range(len(parts)), key=lambda k: sorted((c, *sorted(t)) for c, t in parts[k].tests.items()))
    groups: list[list[int]] = []
    together: dict[str, dict[str, int]] = {}
    cells = 1
    for number in order:
        tests = parts[number].tests
        joined = {column: together.get(column, {}) | texts for column, texts in tests.items()}
        for column, texts in joined.items():
            cells = cells // _codes(together.get(column, {})) * _codes(texts)
        if not groups or cells > CELLS:
            groups.append([])
            together, joined = {}, tests
            cells = math.prod(_codes(texts) for texts in tests.values())
        groups[-1].append(number)
        together |= joined
    return groups


def _codes(texts: dict[str, int]) -> int:
    """At most how many codes the conditions on one column make."""
    doubling = sum(more == DOUBLES for more in texts.values())
    return min(2 + sum(more for more in texts.values() if more > 0), 1 << len(texts) - doubling) << doubling


_SHARED: Latest[tuple[Hashable, ...], SharedConditions] = Latest(32)


def conditions_of(parts: Sequence[Part], schema: Schema) -> SharedConditions:
    """The conditions of some parts, each named once or more; those that were there before keep what they have learnt."""
    distinct = tuple(dict.fromkeys(parts))
    return _SHARED.get((schema.key, *distinct), lambda: SharedConditions(distinct, schema))
