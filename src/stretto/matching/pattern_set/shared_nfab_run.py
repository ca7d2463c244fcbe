"""Patterns with conditions between events that run in one call of the kernel, where they differ only in constants and in what they
ask of single events.

What the engine reads as an event is a *pair*: an event, and a pattern that it concerns. Pairs have the order of events and then of
patterns. A partition is a *slot* and a key, as each pattern has a slot, so that its partial matches are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I32, I64
from stretto.budget import Budget
from stretto.columns.arrays import roomy
from stretto.columns.keys import KeyTable
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.cleaning import empty
from stretto.engines.nfab.compiled import Compiled
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.nfab.structure import Events
from stretto.engines.programs import NfabProgram
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern, CompiledQuery
from stretto.matching.pattern_set.dedicated_run import PLACES, OtherRun
from stretto.matching.pattern_set.prefix_sharing import Lead
from stretto.matching.pattern_set.shared_predicates import HALF, renewed
from stretto.matching.pattern_set.snapshot import MOST_SLOTS

#: No pair has such a number.
MOST = np.iinfo(np.int64).max


class _Pairs(NamedTuple):
    """The pairs of a batch."""

    which: I64  #: the event, by its place among the visited ones
    slot: I64
    part: I64
    cls: I32
    times: NDArray[Any]
    begins: I64  #: by event: its first pair


class _Places:
    """Where in the stream the events of pairs are, by the numbers of these."""

    def __init__(self) -> None:
        #: By event: its first pair, and its position.
        self._begin, self._position = np.zeros((2, 0), np.int64)
        self._kept = 0

    def __getitem__(self, pairs: Any) -> Any:
        return self._position[np.searchsorted(self._begin, pairs, "right") - 1]

    def placed(self, piece: Matches) -> Matches:
        """Matches whose events are told by pairs, with positions."""
        told = piece.start, piece.end, piece.position
        least = min(int(pairs.min(initial=MOST)) for pairs in told)
        most = max(int(pairs.max(initial=-1)) for pairs in told)
        first, last = np.searchsorted(self._begin, (least, most), "right") - 1
        if (
            most - least < 16 * piece.position.size
        ):  # a table of what is between them is less work than a search for each
            begin = np.maximum(self._begin[first : last + 1], least)
            between = np.repeat(self._position[first : last + 1], np.diff(begin, append=most + 1))
            start, end, position = (between[pairs - least] for pairs in told)
        else:
            start, end, position = (self[pairs] for pairs in told)
        return piece._replace(start=start, end=end, position=position)

    def add(self, begins: I64, positions: I64) -> None:
        """The next events."""
        self._begin, self._position = np.append(self._begin, begins), np.append(self._position, positions)

    @property
    def many(self) -> bool:
        """Whether there are so many more than were kept last that it is worth to forget."""
        return self._begin.size > 2 * self._kept + PLACES

    def forget(self, oldest: int) -> None:
        """Drop the events before that of pair ``oldest``."""
        gone = max(int(np.searchsorted(self._begin, oldest, "right")) - 1, 0)
        self._begin, self._position = self._begin[gone:].copy(), self._position[gone:].copy()
        self._kept = self._begin.size

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self._begin.nbytes + self._position.nbytes

    def save(self, section: Section) -> None:
        """Write the events that are kept."""
        section.arrays |= {"begin": self._begin, "position": self._position}

    def load(self, section: Section, rows: int, oldest: int) -> None:
        """Take over what :meth:`save` wrote of a run that was handed so many pairs, and may name those from ``oldest`` on."""
        self._begin = section.numbers("begin", least=0, below=max(1, rows), rising=True)
        self._position = section.numbers("position", size=self._begin.size, least=0, rising=True)
        self._kept = self._begin.size
        if oldest < self._begin[:1].min(initial=rows):
            raise ValueError("an event that a match to come may hold has no place")


class _PairRunner(NfabRunner):
    """The runs of several patterns.

    Parameters
    ----------
    program
        One of theirs.
    labels, capacity
        As in :class:`~stretto.engines.nfab.runner.NfabRunner`.
    """

    def __init__(self, program: Compiled, *, labels: bool, capacity: int) -> None:
        super().__init__(program, labels=labels, capacity=capacity)
        #: The keys of events; ``keys`` are pairs of a slot and the number of one of these.
        self.numbers = self.keys
        self.keys = None if self.numbers is None else KeyTable([pa.int64()])
        #: By slot: its program (``None``: nobody has it), and where its constants are.
        self.programs: list[Compiled | None] = []
        self.constants: I64 = np.zeros(1, np.int64)
        #: By partition: its slot.
        self.slot_of: I64 = np.zeros(1, np.int64)
        #: Told of a slot whose partial matches take too much memory, and how; ``None``: that is an error.
        self.switch_off: Callable[[int, LimitError], object] | None = None
        self._pairs: _Pairs | None = None

    @property
    def partitions(self) -> int:
        return len(self.programs) if self.keys is None else len(self.keys)

    def take_slot(self, slot: int, program: Compiled) -> None:
        """A slot is a pattern's from now on."""
        self.fit_slots(slot + 1)
        self.programs[slot] = program
        self.constants[slot] = program.constants.ctypes.data

    def fit_slots(self, count: int) -> None:
        """Room for so many."""
        self.programs += [None] * (count - len(self.programs))
        self.constants = roomy(self.constants, count)
        if self.keys is None:
            self.slot_of = np.arange(len(self.programs))
            self.state.fit_partitions(len(self.programs))

    def follow(self, batch: pa.RecordBatch, pairs: _Pairs) -> Iterator[Matches]:
        """Read the events of some pairs."""
        self._pairs = pairs
        yield from self.advance(batch)
        self._pairs = None

    def prepare(self, batch: pa.RecordBatch) -> tuple[Events, int | None]:
        """The pairs as the kernel reads them."""
        assert self._pairs is not None
        which, slot, part, cls, times, begins = self._pairs
        self.broken = True  # from here on the stream has moved: what fails now leaves it half read
        first = self.rows
        self.rows += which.size
        self.last_time = times[-1].item()
        if self.measured is not None:
            self.last_measure = self.last_time
        if self.keys is not None:
            self.slot_of = roomy(self.slot_of, len(self.keys))
            self.slot_of[part] = slot
        self.state.fit_partitions(self.partitions)
        rows = np.arange(which.size)
        position = first + rows
        low = self._low(first + begins, None, times, begins, first)[which]  # of each event its first pair
        keys = None
        if self.tests is not None:
            keys = self.tests.ids(
                [batch.column(name) for name in self.program.query.partition_by], np.arange(batch.num_rows)
            )
        self._learn(batch)
        C = self._matrix(batch, keys, first + begins)[which]
        bits = self.program.bits(cls)
        return Events(bits, part, position, position, position, low, self.constants[slot], C), None

    def slot_at(self, pair: int | None) -> int:
        """The slot of one of the pairs at hand."""
        assert pair is not None
        return int(self._slots(np.array(pair)))

    def _slots(self, pairs: I64) -> I64:
        assert self._pairs is not None
        return self._pairs.slot[pairs - (self.rows - self._pairs.slot.size)]

    @property
    def heaviest(self) -> int:
        """The slot that has the most runs."""
        count = self.partitions
        return int(np.bincount(self.slot_of[:count], self.state.parts.size[:count]).argmax())

    @property
    def busy(self) -> I64:
        """The slots that hold something."""
        parts, count = self.state.parts, self.partitions
        held = (parts.head[:count] != s.NIL) | (parts.negated[:count] != s.NIL).any(axis=1)
        return np.unique(self.slot_of[:count][held])

    def held_by(self, slot: int) -> I64:
        """The pairs that the partial matches of a slot hold (sorted)."""
        state, parts = self.state, np.flatnonzero(self.slot_of[: self.partitions] == slot)
        todo = state.parts.negated[parts].ravel().tolist()
        runs = [int(head) for head in state.parts.head[parts]]
        while any(runs):
            todo += [int(state.runs.node[run]) for run in runs]
            runs = [int(state.runs.next[run]) for run in runs]
        nodes, known = state.nodes, {s.NIL}
        while todo:
            node = todo.pop()
            if node not in known:
                known.add(node)
                todo += [int(nodes.previous[node]), int(nodes.other[node])]
        found = np.array([*(known - {s.NIL})], np.int64)
        return np.unique(nodes.position[found[nodes.label[found] >= 0]])

    def release(self, slots: Sequence[int]) -> None:
        """Forget what some slots hold. O(partitions)."""
        empty(np.flatnonzero(np.isin(self.slot_of[: self.partitions], slots)), self.state.memory)

    def silence(self, slot: int) -> None:
        """While events are being read: the pairs of a slot that are left change nothing."""
        assert self._pairs is not None
        assert self._events is not None
        self._events.bits[self._pairs.slot == slot] = 0
        registers = self.state.registers
        if registers[s.BUSY] and self._pairs.slot[registers[s.CURSOR]] == slot:
            registers[s.TOP] = 0  # nothing is left to list of the event at hand
            registers[s.THRESHOLD] = registers[s.NEXT] = -1

    @property
    def _at_hand(self) -> Compiled:
        assert self._pairs is not None
        program = self.programs[int(self._pairs.slot[self.state.registers[s.CURSOR]])]
        assert program is not None
        return program

    def _act(self, status: int, events: Events | None = None) -> Iterator[Matches]:
        try:
            yield from super()._act(status, events)
        except LimitError as error:
            if self.switch_off is None:
                raise
            slot = self.heaviest
            self.switch_off(slot, error)
            # The kernel asks for room between two events.
            self.release([slot])
            self.state.give_back(self.partitions, self._low_bound)

    def _drain(self) -> Matches:
        found = self.state.drain()
        return found._replace(part=self._slots(found.end))

    def _keep(self, alive: NDArray[np.bool_]) -> tuple[I64, I64] | None:
        fresh = super()._keep(alive)
        if fresh is not None and self.keys is not None and self.numbers is not None:
            self.slot_of = roomy(self.slot_of[fresh[1]], 1)
            self.keys = renewed(self.keys, self.numbers)
        return fresh

    def _tables(self) -> dict[str, KeyTable]:
        return super()._tables() | ({} if self.numbers is None else {"numbers": self.numbers})

    def save(self, section: Section) -> None:
        super().save(section)
        section.values["slots"] = len(self.programs)
        section.arrays["slot"] = self.slot_of[: self.partitions].copy()

    def load(self, section: Section) -> None:
        if self.keys is not None:
            self.slot_of = roomy(section.numbers("slot", least=0, below=len(self.programs)), 1)
        super().load(section)


class AlikeRun(OtherRun):
    """The run of several patterns, as :class:`~stretto.matching.pattern_set.shared_tecs_run.JointRun` is one on the tECS engine.

    Parameters
    ----------
    part
        The first pattern.
    labels, capacity, budget
        As those of other runs.
    """

    run: _PairRunner

    def __init__(self, part: CompiledQuery, *, labels: bool, capacity: int, budget: Budget) -> None:
        super().__init__(part, labels=labels, capacity=capacity, budget=budget)
        #: By slot: that whose partitions it reads, which is its own.
        self.lead: I64 = np.zeros(0, np.int64)
        #: The slot that an error was about.
        self.blamed = 0
        self._free: list[int] = []
        self._silenced: list[int] = []

    def _started(self, part: Any, *, labels: bool, capacity: int, budget: Budget) -> _PairRunner:
        self._places = _Places()
        return _PairRunner(part.lister, labels=labels, capacity=capacity)

    # -- slots ------------------------------------------------------------------------------------------------------

    def enter(self, part: CompiledPattern, _: Lead | None) -> int:
        """A slot for a pattern."""
        slot = self._free.pop() if self._free else len(self.run.programs)
        self._take_slot(slot, part)
        return slot

    def _take_slot(self, slot: int, part: CompiledPattern) -> None:
        assert isinstance(part.machine, NfabProgram)
        self.run.take_slot(slot, part.machine)

    def leave(self, slots: Sequence[int]) -> None:
        """Forget what patterns have left, and give their slots to others. O(partitions)."""
        self.run.release(slots)
        for slot in slots:
            self.run.programs[slot] = None
        self._free += slots

    def silence(self, slot: int) -> None:
        """While events are being read: the pattern of a slot gives no more, and what it holds is forgotten when they are read."""
        self.run.silence(slot)
        self._silenced.append(slot)

    @property
    def busy(self) -> int:
        """How many patterns hold something."""
        return int(self.run.busy.size)

    def held_by(self, slot: int) -> I64:
        """The positions of the events that the partial matches of a slot hold (sorted)."""
        found: I64 = self._places[self.run.held_by(slot)]
        return found

    # -- events -----------------------------------------------------------------------------------------------------

    def follow(  # type: ignore[override]
        self, batch: pa.RecordBatch, first: int, rows: I64, slots: I64, cls: I32, measures: Mapping[str, NDArray[Any]]
    ) -> Iterator[Matches]:
        """Read the next events; yields their matches, with a slot in place of the partition. Must be read to its end.

        The parameters are those of :meth:`JointRun.follow <stretto.matching.pattern_set.shared_tecs_run.JointRun.follow>`.
        """
        run, part = self.run, slots
        if rows.size and run.numbers is not None and run.keys is not None:
            asked, which = np.unique(rows, return_inverse=True)
            key = run.numbers.ids([batch.column(name) for name in run.key_names], asked)[which]
            known = key >= 0
            if not known.all():
                rows, slots, cls, key = rows[known], slots[known], cls[known], key[known]
            part = run.keys.ids([pa.array(slots << HALF | key)])
        if not rows.size:
            return
        new = np.ones(rows.size, np.bool_)
        new[1:] = rows[1:] != rows[:-1]
        events = rows[new]
        mine = batch.select(self._columns)
        if events.size < batch.num_rows:
            mine = mine.take(pa.array(events))
        begins = np.flatnonzero(new)
        self._places.add(run.rows + begins, events + first)
        pairs = _Pairs(np.cumsum(new) - 1, slots, part, cls, measures[self._time][rows], begins)
        yield from self._placed(self._blaming(run.follow(mine, pairs)))
        if self._silenced:
            run.release(self._silenced)
            self._silenced = []
        if self._places.many:
            self._places.forget(self._oldest)

    def _blaming(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """What the run gives; an error notes which slot it is about."""
        try:
            yield from found
        except IntegerOverflow as error:
            self.blamed = self.run.slot_at(error.row)
            raise
        except LimitError:
            self.blamed = self.run.heaviest
            raise

    def reach(self, time: int | float) -> Iterator[Matches]:
        """No event before ``time`` will come: free what is out of its window. Nothing waits for that."""
        return iter([*super().reach(time)])

    # -- snapshots --------------------------------------------------------------------------------------------------

    @staticmethod
    def leads_of(section: Section) -> Sequence[int]:
        """By slot of a state that :meth:`save` wrote: the slot whose partitions it reads."""
        return range(section.sub("run").count("slots", most=MOST_SLOTS))

    def resume(self, section: Section, patterns: Mapping[int, tuple[CompiledPattern, Lead | None]]) -> dict[int, int]:
        """Take over a state that :meth:`save` wrote; ``patterns``: by slot who has it. Gives the slots that they have from now on."""
        for slot, (part, _) in patterns.items():
            self._take_slot(slot, part)
        self.run.fit_slots(len(self.leads_of(section)))
        self._free = [slot for slot, program in enumerate(self.run.programs) if program is None]
        self.load(section)
        return {slot: slot for slot in patterns}
