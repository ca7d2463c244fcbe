"""Patterns that run on their own share what their conditions say of events.

The distinct conditions of a group of parts make one :class:`~stretto.columns.classes.Classifier`, so that every column is read
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
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.columns.classes import Classifier
from stretto.events import Schema
from stretto.matching.pattern_set.compiled_pattern import DOUBLES, CompiledPattern
from stretto.query import predicate as p

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Bits = NDArray[np.bool_]

#: Parts share a group while the codes of its columns make at most so many cells.
CELLS = 1 << 18


class RoutedEvents(NamedTuple):
    """What a part is handed of some events."""

    rows: I64  #: which events it visits, ascending
    cls: I32  #: their classes, as the part's own program numbers them
    member: Bits | None  #: which events belong to the streams of its query; ``None``: all


class Shares(NamedTuple):
    """By shared class: the parts whose guards it satisfies, and its class there."""

    begin: I64  #: [shared class]: its first share; one entry more than classes
    part: I32
    own: I32


@jit
def count_shares(cls: I32, shares: Shares, counts: I64) -> None:
    """``counts[p]`` += the events that concern part p. O(events + shares of their classes); writes ``counts``."""
    for i in range(cls.size):
        for k in range(shares.begin[cls[i]], shares.begin[cls[i] + 1]):
            counts[shares.part[k]] += 1


@jit
def hand_out(cls: I32, shares: Shares, place: I64, rows: I64, own: I32) -> None:
    """Write each event's row and own class at ``place[p]`` for every part p that it concerns, and move ``place[p]`` on.

    Rows of a part ascend. O(events + shares of their classes); writes ``place``, ``rows`` and ``own``.
    """
    for i in range(cls.size):
        for k in range(shares.begin[cls[i]], shares.begin[cls[i] + 1]):
            part = shares.part[k]
            at = place[part]
            rows[at] = i
            own[at] = shares.own[k]
            place[part] = at + 1


class Group:
    """Parts that share a classifier."""

    def __init__(self, parts: Sequence[CompiledPattern], schema: Schema) -> None:
        self.parts = list(parts)
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

    def hand_out(self, cls: I32) -> Iterator[tuple[CompiledPattern, RoutedEvents]]:
        shares = self._shares
        counts = np.zeros(len(self.parts), np.int64)
        count_shares(cls, shares, counts)
        stop = np.cumsum(counts)
        place = stop - counts
        rows, own = np.empty(int(stop[-1]), np.int64), np.empty(int(stop[-1]), np.int32)
        hand_out(cls, shares, place, rows, own)
        for k, part in enumerate(self.parts):
            member = self._member[k][cls] if k in self._member else None
            if k in self._own:
                mine = np.arange(cls.size) if member is None else np.flatnonzero(member)
                yield part, RoutedEvents(mine, self._own[k][cls[mine]], member)
            else:
                piece = slice(stop[k] - counts[k], stop[k])
                yield part, RoutedEvents(rows[piece], own[piece], member)


# -- which parts share a classifier ---------------------------------------------------------------------------


def grouped(
    parts: Sequence[CompiledPattern], *, most_cells: int = CELLS, most: float = math.inf
) -> list[list[CompiledPattern]]:
    """Parts with like conditions together, as long as their cells stay few, at most so many of them."""
    order = sorted(parts, key=lambda part: sorted((c, *sorted(t)) for c, t in part.tests.items()))
    groups: list[list[CompiledPattern]] = []
    together: dict[str, dict[str, int]] = {}
    cells = 1
    for part in order:
        tests = part.tests
        joined = {column: together.get(column, {}) | texts for column, texts in tests.items()}
        for column, texts in joined.items():
            cells = cells // _codes(together.get(column, {})) * _codes(texts)
        if not groups or cells > most_cells or len(groups[-1]) == most:
            groups.append([])
            together, joined = {}, tests
            cells = math.prod(_codes(texts) for texts in tests.values())
        groups[-1].append(part)
        together |= joined
    return groups


def _codes(texts: dict[str, int]) -> int:
    """At most how many codes the conditions on one column make."""
    doubling = sum(more == DOUBLES for more in texts.values())
    return min(2 + sum(more for more in texts.values() if more > 0), 1 << len(texts) - doubling) << doubling
