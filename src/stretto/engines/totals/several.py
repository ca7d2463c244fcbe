"""Several patterns that count and add up over matches of one automaton, in one run.

They differ in what its guards ask, and in the items. Each state has one vector for all of them, with columns of their own; patterns
whose guards ask the same share theirs. An event is of one class for all: which of all conditions hold. What a class is to a pattern
tells where its matches go, so that each transition of the automaton says for which patterns it is one. Those that an event does not
concern stay as they are, and cost it nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.automata.determinize import SKIP
from stretto.budget import Budget
from stretto.columns.classes import Classifier
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, Startable, Starting, Totals
from stretto.engines.programs import TotalsProgram
from stretto.engines.tecs.kernels import Machine
from stretto.engines.totals import structure as s
from stretto.engines.totals.plan import Asked, Columns, TotalsCompiled
from stretto.engines.totals.runner import TotalsRunner
from stretto.engines.totals.structure import I64, Bits, Plan, Rows
from stretto.engines.totals.telling import Telling
from stretto.frame import Section
from stretto.query import predicate as p

#: What a column is, whatever its number: of which conditions, of which kind and of which value.
Name = tuple[tuple[str, ...], int, str]


class Form(NamedTuple):
    """Patterns whose items have the same names and types, and are told in the same way."""

    asked: Asked
    patterns: I64
    columns: I64  #: [pattern of the form, column of ``asked``]: the column of the run


class SeveralAsked(Asked):
    """What several patterns ask of their matches, as columns of one run.

    Parameters
    ----------
    each
        What each of them asks.
    conditions
        What the guards of each ask, as text.
    """

    def __init__(self, each: Sequence[Asked], conditions: Sequence[tuple[str, ...]]) -> None:
        super().__init__(each[0].totals, prefix=each[0].prefix)
        self.each = each
        #: By pattern: its lane. Patterns with the same conditions have one.
        self.lane_of: list[int] = []
        #: By slot: the patterns that ask for it.
        self.askers: list[list[int]] = []
        #: By column: what it is, its lane, and the pattern that needs it exact, if any.
        self.names: list[Name] = []
        self.lanes: list[int] = []
        self.needs: list[int] = []
        self.columns = Columns()
        self._slots: dict[str, int] = {}
        forms: dict[str, list[tuple[int, list[int]]]] = {}
        known: dict[tuple[str, ...], int] = {}
        for number, (one, asks) in enumerate(zip(each, conditions, strict=True)):
            self.lane_of.append(known.setdefault(asks, len(known)))
            forms.setdefault(repr(one.totals.items), []).append((number, self._own_columns(number, one, asks)))
        self.forms = [
            Form(
                each[found[0][0]],
                np.array([number for number, _ in found], np.int64),
                np.array([columns for _, columns in found], np.int64),
            )
            for found in forms.values()
        ]
        place = {(lane, name[1:]): at for at, (lane, name) in enumerate(zip(self.lanes, self.names, strict=True))}
        #: By column: that which counts the matches of its lane, and that which does so in floating point.
        self.counts = np.array([place[lane, (s.COUNT, "")] for lane in self.lanes], np.int64)
        self.reals = np.array([place.get((lane, (s.REAL_COUNT, "")), 0) for lane in self.lanes], np.int64)

    def _own_columns(self, number: int, one: Asked, asks: tuple[str, ...]) -> list[int]:
        """The columns of a pattern, by its own numbers of them."""
        texts = [self._slot(number, one, slot) for slot in range(len(one.slots))]
        found = []
        for at, (kind, slot) in enumerate(zip(one.columns.kinds, one.columns.slots, strict=True)):
            text = "" if slot < 0 else texts[slot]
            name = (asks, kind, text)
            if name not in self.names:
                self.names.append(name)
                self.lanes.append(self.lane_of[number])
                self.needs.append(-1)
                self.columns.kinds.append(kind)
                self.columns.slots.append(-1 if slot < 0 else self._slots[text])
                self.columns.asked.append(False)
                self.columns.named.append(None)
            column = self.names.index(name)
            if one.columns.asked[at] and self.needs[column] < 0:
                self.needs[column] = number
                self.columns.asked[column], self.columns.named[column] = True, one.columns.named[at]
            found.append(column)
        return found

    def _slot(self, number: int, one: Asked, slot: int) -> str:
        """A slot of a pattern as text, by which it has a number here."""
        own = one.slots[slot]
        of = "" if own.lost < 0 else self._slot(number, one, own.lost)
        # By text: 1 and 1.0 are equal in Python.
        text = f"{own.variable}\n{own.value!r}\n{own.kind}\n{own.real}\n{of}"
        if text not in self._slots:
            self._slots[text] = len(self.columns.values)
            self.columns.values.append(replace(own, lost=self._slots[of]) if of else own)
            self.askers.append([])
        self.askers[self._slots[text]].append(number)
        return text


class SeveralProgram(TotalsCompiled, Startable["SeveralRunner"]):
    """The machine of several patterns whose automata are alike.

    Parameters
    ----------
    programs
        Their machines: over one schema, with one window and one scope, and no event is one of several variables.
    conditions
        What the guards of each ask of an event; ``None``: such a guard never holds.
    """

    asked: SeveralAsked
    abilities: ClassVar[frozenset[str]] = frozenset({"totals", "patterns"})

    def __init__(self, programs: Sequence[TotalsProgram], conditions: Sequence[Sequence[p.Predicate | None]]) -> None:
        first = programs[0]
        self.programs = programs
        super().__init__(first.query, first.totals, valuations=first.valuations, prefix=first.asked.prefix)
        texts = [tuple(map(repr, asks)) for asks in conditions]
        self.asked = SeveralAsked([one.asked for one in programs], texts)
        numbers: dict[str, int] = {}
        #: What all of them ask, each once.
        self.conditions: list[p.Predicate] = []
        for condition in (one for asks in conditions for one in asks if one is not None):
            if numbers.setdefault(repr(condition), len(self.conditions)) == len(self.conditions):
                self.conditions.append(condition)
        lanes = dict(zip(self.asked.lane_of, texts, strict=True))
        #: By lane and guard: the number of its condition; −1: it never holds.
        self.guards = [[numbers.get(text, -1) for text in lanes[lane]] for lane in range(len(lanes))]
        self._columns_of = [np.flatnonzero(np.array(self.asked.lanes) == lane) for lane in range(len(lanes))]
        #: By class: the guards that hold, as bits, with the lanes of which they do.
        self._held: dict[int, dict[int, list[int]]] = {}
        self._concerned: dict[int, Bits] = {}
        self._marks: dict[tuple[int, tuple[int, ...]], int] = {}
        self._empty = super().plan()
        self._plan = self._growing(self._empty.holds.shape[0])
        self._mark(SKIP, range(len(lanes)))

    @property
    def counted(self) -> frozenset[str]:
        """The variables of which it matters to any pattern which events they hold."""
        return frozenset[str]().union(*(one.counted for one in self.programs))

    @cached_property
    def classifier(self) -> Classifier:
        """What gives events their class, which says which conditions of all patterns hold."""
        return Classifier(self.conditions, self.query.schema)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows, keys, values and groups read."""
        used = {name for one in self.programs for name in one.columns}
        return tuple(name for name in self.query.schema.attributes if name in used)

    @cached_property
    def digest(self) -> str:
        """What the automata are and what is kept of matches, in short."""
        return hashlib.sha256(repr((self.asked.names, [one.digest for one in self.programs])).encode()).hexdigest()

    def started(self, how: Starting) -> SeveralRunner:
        """A run from the beginning of a stream."""
        return SeveralRunner(self, late=how.late, capacity=how.capacity, budget=how.budget)

    # -- what classes are to patterns ---------------------------------------------------------------------------------

    def concerned(self, cls: int) -> Bits:
        """Which patterns an event of a class concerns."""
        if cls not in self._concerned:
            lanes = np.zeros(len(self.guards), np.bool_)
            for vector, of in self._lanes(cls).items():
                lanes[of] = vector != 0
            self._concerned[cls] = lanes[self.asked.lane_of]
        return self._concerned[cls]

    def _lanes(self, cls: int) -> dict[int, list[int]]:
        """The guards that hold in a class, as bits, each with the lanes of which they do."""
        if cls not in self._held:
            vector, found = self.classifier.vectors[cls], dict[int, list[int]]()
            for lane, numbers in enumerate(self.guards):
                own = sum(1 << guard for guard, number in enumerate(numbers) if number >= 0 and vector >> number & 1)
                found.setdefault(own, []).append(lane)
            self._held[cls] = found
        return self._held[cls]

    def determinize(self, state: int, cls: int) -> None:
        """Add the transitions of a state on a class to the table."""
        with self._lock:
            steps: dict[tuple[int, int], list[int]] = {}
            for vector, lanes in self._lanes(cls).items():
                for step in self.determinizer.step(state, vector):
                    steps.setdefault(step, []).extend(lanes)
            self._make_room()
            marked = [(self._mark(mark, sorted(lanes)), target) for (mark, target), lanes in steps.items()]
            # What all do without an event comes last, as the kernel has it.
            self._table.set(state, cls, sorted(marked, key=lambda step: step[0] == SKIP))
            self.machine = self._table.machine

    # -- the plan -----------------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """What the kernel keeps and when it gives it, with the marks that there are by now."""
        return self._plan

    def _growing(self, marks: int) -> Plan:
        """The plan with room for so many marks, none of which is there yet."""
        asked = self.asked
        return self._empty._replace(
            kind=np.array(asked.columns.kinds, np.int64),
            slot=np.array(asked.columns.slots, np.int64),
            asked=np.array(asked.columns.asked, np.bool_),
            holds=np.zeros((marks, len(asked.slots)), np.bool_),
            names=np.zeros((marks, 0), np.bool_),
            counts=asked.counts,
            reals=asked.reals,
            begin=np.zeros(marks + 1, np.int64),
            column=np.zeros(marks * len(asked.lanes), np.int64),
        )

    def _mark(self, mark: int, lanes: Sequence[int]) -> int:
        """The number of a mark of the automaton for some lanes."""
        key = (mark, tuple(lanes))
        if key not in self._marks:
            number = len(self._marks)
            if number == self._plan.holds.shape[0]:
                old, self._plan = self._plan, self._growing(2 * number)
                self._plan.holds[:number], self._plan.begin[: number + 1] = old.holds, old.begin
                self._plan.column[: old.column.size] = old.column
            columns = np.concatenate([self._columns_of[lane] for lane in lanes])
            plan, begin = self._plan, int(self._plan.begin[number])
            labels = self.determinizer.marks[mark]
            plan.holds[number] = [self.asked.prefix + one.variable in labels for one in self.asked.slots]
            plan.column[begin : begin + columns.size] = columns
            plan.begin[number + 1] = begin + columns.size
            self._marks[key] = number
        return self._marks[key]


class SeveralTelling(Telling):
    """What a run of several patterns knows of values and groups."""

    asked: SeveralAsked
    #: The pattern of the last error.
    blamed = 0

    def _as_rows(self, rows: Rows, keys: Sequence[pa.Array] | None, *, known: bool = False) -> Iterator[Matches]:
        """The rows of each form, by window and pattern, with the number of the pattern as ``part``."""
        asked = self.asked
        ints = rows.ints.reshape(rows.end.size, self.state.columns)
        always = asked.extent == s.OF_TABLE and not asked.totals.scope.groups
        for form in asked.forms:
            which, row = np.nonzero((ints[:, form.columns[:, 0]] != 0).T | always)
            if not row.size:
                continue
            window = None
            if asked.extent == s.OF_WINDOW:
                order = np.argsort(rows.window[row], kind="stable")
                which, row = which[order], row[order]
                window = rows.window[row]
            own = ints[row[:, np.newaxis], form.columns[which]]
            groups = self._groups(rows._replace(base=rows.base[row], part=rows.part[row]), keys)
            found = Totals(window, groups, form.asked.items(own, own.view(np.float64)))
            nothing = np.zeros(row.size, np.int64)
            yield Matches.added_up(nothing, nothing, found)._replace(part=form.patterns[which])

    def overflow(self, row: int | None = None, keys: str = "") -> IntegerOverflow:
        """What 64 bits do not hold, at which event, of which key, and of which pattern (:attr:`blamed`)."""
        self.blamed = self.asked.needs[int(self.state.registers[s.BAD_COLUMN])]
        return super().overflow(row, keys)


class SeveralRunner(TotalsRunner):
    """A state of several patterns; rows say in ``part`` which of them they are of."""

    TELLING = SeveralTelling
    program: SeveralProgram
    asked: SeveralAsked
    telling: SeveralTelling

    def __init__(self, program: SeveralProgram, *, late: str, capacity: int, budget: Budget | None) -> None:
        super().__init__(program, late=late, capacity=capacity, budget=budget)
        #: By pattern: how many events concerned it.
        self.concerned = np.zeros(len(program.programs), np.int64)
        #: The classes of the next events, as whoever gives them has found.
        self.told = np.zeros(0, np.int32)

    def _guards_of_values(self) -> list[int]:
        program, asked = self.program, self.program.asked
        found = []
        for slot, patterns in zip(asked.slots, asked.askers, strict=True):
            guards = program.guards_of(slot.variable)
            lanes = {asked.lane_of[one] for one in patterns}
            numbers = {program.guards[lane][guard] for lane in lanes for guard in guards}
            found.append(sum(1 << number for number in numbers if number >= 0))
        return found

    def _classes(self, batch: pa.RecordBatch, member: Bits | None, ahead: int = 0) -> NDArray[np.int32]:
        counts = np.bincount(self.told)
        for one in np.flatnonzero(counts).tolist():
            self.concerned += counts[one] * self.program.concerned(one)
        return self.told

    def _machine(self) -> Machine:
        machine = self.program.machine
        self.state.plan = self.program.plan()
        return machine

    # -- fewer patterns -----------------------------------------------------------------------------------------------

    def narrow(self, section: Section, program: SeveralProgram) -> None:
        """Make what :meth:`save` wrote the state of some of the patterns, whose program is given."""
        columns = self.state.columns
        chosen = np.array([self.asked.names.index(name) for name in program.asked.names], np.int64)
        arrays = section.arrays
        arrays["records"] = _narrowed(arrays["records"], columns, chosen)
        arrays["sums"] = arrays["sums"].reshape(-1, columns)[:, chosen].ravel()
        panes = int(self.state.plan.scope[s.SIZE])
        arrays["panes"] = arrays["panes"].reshape(-1, columns, panes)[:, chosen].ravel()


def _narrowed(words: I64, columns: int, chosen: I64) -> I64:
    found = np.zeros(words.size, np.int64)
    return found[: narrow(words, columns, chosen, found)]


@jit
def narrow(words: I64, columns: int, chosen: I64, found: I64) -> int:
    """Write packed records with some of their columns; gives how many words these are. O(words)."""
    at = 0
    used = 0
    while at < words.size:
        entries, cells = words[at + 2], words[at + 3]
        for k in range(4 + cells):
            found[used + k] = words[at + k]
        at += 4 + cells
        used += 4 + cells
        for _ in range(entries):
            for k in range(3):
                found[used + k] = words[at + k]
            used += 3
            for column in chosen:
                for k in range(cells):
                    found[used + k] = words[at + 3 + column * cells + k]
                used += cells
            at += 3 + columns * cells
    return used
