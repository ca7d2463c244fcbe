"""From events to the patterns that they concern: an index of the patterns' conditions.

Each column is coded once for all conditions. A condition is looked at only for the events with a code of its most selective
column under which it can hold (:mod:`~stretto.matching.pattern_set.predicate_index_kernel`), so that an event costs what it
may concern, whatever the number of patterns. What has too many clauses, or computes integers, is evaluated over whole columns,
and is a column of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain, product
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from stretto.array_types import I32, I64, U64, Bits
from stretto.columns.cells import Hashed
from stretto.columns.classes import Classifier
from stretto.columns.conditions import Conditions
from stretto.columns.vectorized import pieces
from stretto.events import Schema
from stretto.matching.pattern_set.compiled_pattern import GUARDS, CompiledPattern
from stretto.matching.pattern_set.predicate_index_kernel import INSIDE, LISTED, OUTSIDE, Clauses
from stretto.matching.pattern_set.prefix_sharing import Prefix
from stretto.query import predicate as p

#: A condition with more clauses than this is evaluated over whole columns.
CLAUSES = 32

#: So many conditions on one column are told by one code; more make a further pass over it.
ATOMS = 1 << 11

#: So many automata are known at a time.
MODELS = 1 << 14

#: A literal is selective if it holds under at most so many codes.
FEW = 1 << 6

#: A literal: an atom by its text, and whether it holds.
Literal = tuple[str, bool]


class Visits(NamedTuple):
    """Pairs of event and pattern, by event and then by place."""

    row: I64
    place: I64
    cls: I32  #: as the part's automaton numbers it
    concerned: I64  #: by place: how many events, without those that concern the prefix as well

    def of(self, chosen: I64) -> Visits:
        """Some of them."""
        return Visits(self.row[chosen], self.place[chosen], self.cls[chosen], self.concerned)


class _Literal(NamedTuple):
    """How the codes of a column tell a literal."""

    column: int
    how: int
    low: int
    high: int
    holds: I64  #: the codes under which it holds
    share: float  #: of all codes


class Index(Conditions):
    """The conditions of some parts, and which events each may concern.

    Parameters
    ----------
    parts
        Those that run beside others.
    schema
        The events' columns.
    """

    def __init__(self, parts: Sequence[CompiledPattern], schema: Schema) -> None:
        self.parts = list(parts)
        #: The parts and, behind them, their prefixes.
        self.members: list[CompiledPattern | Prefix] = [
            *parts,
            *dict.fromkeys(part.prefix for part in parts if part.prefix),
        ]
        place = {member: number for number, member in enumerate(self.members)}
        #: By member: the number of its prefix here; −1: it has none.
        self.prefix = np.full(len(self.members), -1)
        self.prefix[: len(parts)] = [place[part.prefix] if part.prefix else -1 for part in parts]
        asked: dict[str, int] = {}
        conditions: list[p.Predicate] = []
        owners: list[list[tuple[int, int]]] = []
        for number, member in enumerate(self.members):
            for guard, text, condition in member.asked:
                found = asked.setdefault(text, len(conditions))
                if found == len(conditions):
                    conditions.append(condition)
                    owners.append([])
                owners[found].append((number, guard))
        super().__init__(conditions, schema, most=ATOMS)
        self.count = len(conditions)
        #: Conditions that are evaluated over whole columns.
        self._whole: list[int] = []
        #: How many columns of codes there are.
        self.columns = 0
        self.clauses = self._indexed(owners)

    # -- the index --------------------------------------------------------------------------------------------------

    def _indexed(self, owners: Sequence[Sequence[tuple[int, int]]]) -> Clauses:
        place = {
            name: (number, k)
            for number, coder in enumerate(self._coders)
            for k, name in enumerate(map(repr, coder.atoms))
        }
        told: dict[Literal, _Literal] = {}
        tables: list[Bits] = []
        used = 0

        def literal(one: Literal) -> _Literal:
            nonlocal used
            if one not in told:
                column, k = place[one[0]]
                told[one] = _told(column, self._coders[column].truth[:, k] == one[1], used)
                if told[one].how == LISTED:
                    tables.append(self._coders[column].truth[:, k] == one[1])
                    used += tables[-1].size
            return told[one]

        clauses: list[tuple[int, list[_Literal]]] = []
        for number, condition in enumerate(self._conditions):
            assert condition is not None
            found = None if p.computes(condition) else self._clauses_of(condition, True)
            if found is None:
                column = len(self._coders) + len(self._whole)
                self._whole.append(number)
                clauses.append((number, [_Literal(column, INSIDE, 1, 2, np.ones(1, np.int64), 0.5)]))
            else:
                clauses += [(number, [literal(one) for one in clause]) for clause in found]
        return self._laid_out(clauses, owners, tables)

    def _clauses_of(self, node: p.Predicate, wanted: bool) -> list[list[Literal]] | None:
        """A condition (or that it does not hold) as a disjunction of conjunctions; ``None``: there are too many."""
        match node:
            case p.Not(part):
                return self._clauses_of(part, not wanted)
            case p.And(parts) | p.Or(parts):
                inner = []
                for part in parts:
                    found = self._clauses_of(part, wanted)
                    if found is None:
                        return None
                    inner.append(found)
                if isinstance(node, p.Or) == wanted:
                    joined = [clause for found in inner for clause in found]
                else:
                    size = 1
                    for found in inner:
                        size *= len(found)
                        if size > CLAUSES:
                            return None
                    joined = [[*chain.from_iterable(chosen)] for chosen in product(*inner)]
                return None if len(joined) > CLAUSES else joined
        if repr(node) not in self._atoms:  # without a column, or with one of NULL only
            holds = bool(self._formula(node)([]).true)
            return [[]] if holds == wanted else []
        return [[(repr(node), wanted)]]

    def _laid_out(
        self,
        clauses: Sequence[tuple[int, list[_Literal]]],
        owners: Sequence[Sequence[tuple[int, int]]],
        tables: Sequence[Bits],
    ) -> Clauses:
        #: The column that has the same code for every event.
        always = len(self._coders) + len(self._whole)
        self.columns = always + 1
        entries: dict[int, list[tuple[int, int]]] = {}  # by column: code and clause
        tests: list[tuple[int, int, int]] = []
        begin = [0]
        pairs: list[tuple[int, int]] = []
        pair_begin = [0]
        for number, (condition, literals) in enumerate(clauses):
            ordered = sorted(literals, key=lambda one: one.share)
            rest = ordered
            if ordered and ordered[0].holds.size <= FEW:
                anchor, rest = ordered[0], ordered[1:]
                entries.setdefault(anchor.column, []).extend((code, number) for code in anchor.holds.tolist())
            else:
                entries.setdefault(always, []).append((0, number))
            tests += [(one.column << 2 | one.how, one.low, one.high) for one in rest]
            begin.append(len(tests))
            pairs += owners[condition]
            pair_begin.append(len(pairs))
        columns = sorted(entries)
        base: list[int] = []
        codes, found = [0], list[int]()
        for column in columns:
            base.append(len(codes) - 1)
            radix = self._coders[column].radix if column < len(self._coders) else 2
            of_column = np.array(sorted(entries[column]), np.int64).reshape(-1, 2)
            stops = np.cumsum(np.bincount(of_column[:, 0], minlength=radix)) + len(found)
            codes += stops.tolist()
            found += of_column[:, 1].tolist()
        test = np.array(tests, np.int64).reshape(-1, 3)
        pair = np.array(pairs, np.int64).reshape(-1, 2)
        listed = np.concatenate([np.zeros(1, np.bool_), *tables])[1:].view(np.uint8)
        return Clauses(
            np.array(columns, np.int64),
            np.array(base, np.int64),
            np.array(codes, np.int64),
            np.array(found, np.int32),
            np.array(begin, np.int64),
            np.ascontiguousarray(test[:, 0]),
            np.ascontiguousarray(test[:, 1]),
            np.ascontiguousarray(test[:, 2]),
            listed,
            np.array(pair_begin, np.int64),
            pair[:, 0].astype(np.int32),
            np.uint64(1) << pair[:, 1].astype(np.uint64),
        )

    # -- events -----------------------------------------------------------------------------------------------------

    def fill(self, table: pa.RecordBatch | pa.Table, codes: I32) -> Bits | None:
        """Write the code of every column in every event: [column, row]. Gives where integers of 64 bits do not tell of a condition.

        Raises
        ------
        DataError
            A column is missing or of another type.
        """
        if self._columns:
            done = 0
            for batch in pieces(table, self._columns):
                self._check(batch)
                for number, coder in enumerate(self._coders):
                    cell = np.zeros(batch.num_rows, np.int64)
                    coder.fill(batch, 1)(0, batch.num_rows, cell)
                    codes[number, done : done + batch.num_rows] = cell
                done += batch.num_rows
        return self._evaluated(codes)

    def _evaluated(self, codes: I32) -> Bits | None:
        """Fill the columns of the conditions that are evaluated over whole columns; where one of them is not told."""
        if not self._whole:
            return None
        doubtful = None
        truth: list[Bits] = [np.zeros(0, np.bool_)] * len(self._numbers)
        order = iter(self._order)
        for number, coder in enumerate(self._coders):
            for k in range(len(coder.atoms)):
                truth[next(order)] = coder.truth[codes[number], k]
        for at, number in enumerate(self._whole, len(self._coders)):
            formula = self._formulas[number]
            assert formula is not None
            true, unknown = formula(truth)
            codes[at] = true
            if unknown is not None and unknown.any():
                doubtful = unknown if doubtful is None else doubtful | unknown
        return doubtful


class Classes:
    """What guards that hold together are as a class of an automaton, for some automata."""

    def __init__(self) -> None:
        self._models: list[Classifier] = []
        self._number: dict[Classifier, int] = {}
        self._numbers: WeakKeyDictionary[Index, U64] = WeakKeyDictionary()
        self._known = Hashed()
        self._lock = threading.Lock()

    @property
    def many(self) -> bool:
        """Whether there are so many that it is time to begin anew."""
        return len(self._models) > MODELS

    def numbers(self, index: Index) -> U64:
        """By member of an index: the number of its automaton, where a key has it."""
        with self._lock:
            if index not in self._numbers:
                for member in index.members:
                    if self._number.setdefault(member.classifier, len(self._models)) == len(self._models):
                        self._models.append(member.classifier)
                numbers = np.array([self._number[member.classifier] for member in index.members], np.uint64)
                self._numbers[index] = numbers << np.uint64(GUARDS)
            return self._numbers[index]

    def of(self, keys: U64) -> I32:
        """The classes of keys: an automaton and the guards that hold."""
        cls = np.empty(keys.size, np.int32)
        if self._known.look_up(keys, cls):
            with self._lock:
                self._known.look_up(keys, cls)
                new = np.unique(keys[cls < 0])
                guards, held = np.uint64(GUARDS), (1 << GUARDS) - 1
                found = [self._models[int(key >> guards)].intern(int(key) & held) for key in new]
                self._known.learn(new, np.array(found, np.int32))
                self._known.look_up(keys, cls)
        return cls


def _told(column: int, holds: Bits, at: int) -> _Literal:
    """How codes tell a literal that holds on some of them; ``at``: where a table of them would begin."""
    inside = np.flatnonzero(holds)
    share = inside.size / holds.size
    if not inside.size:
        return _Literal(column, INSIDE, 0, 0, inside, share)
    low, high = int(inside[0]), int(inside[-1]) + 1
    if high - low == inside.size:
        return _Literal(column, INSIDE, low, high, inside, share)
    outside = np.flatnonzero(~holds)
    low, high = int(outside[0]), int(outside[-1]) + 1
    if high - low == outside.size:
        return _Literal(column, OUTSIDE, low, high, inside, share)
    return _Literal(column, LISTED, at, 0, inside, share)
