"""Many patterns that run in one call of the kernel.

A partition of the kernel is a *slot* and a key: each pattern has a slot, so that its partial matches are its own. Patterns that
differ in constants only share their automaton and what was determinized of it; others have theirs beside it in one table.

Patterns that have a prefix in common, and hold from one time on, share their partial matches: these are in a slot of their own, which
the prefix's events move. An event that ends matches of one of the patterns looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import I32, I64
from stretto.automata.determinize import AMBIGUOUS
from stretto.columns.arrays import roomy
from stretto.columns.keys import KeyTable
from stretto.engines.api import Matches
from stretto.engines.tecs import structure as s
from stretto.engines.tecs.collect import release_all, states_of
from stretto.engines.tecs.compiled import Compiled
from stretto.engines.tecs.driver import NO_KEYS, Driver
from stretto.engines.tecs.joint import Joint
from stretto.engines.tecs.kernels import CONSUME_PARTITION, Events
from stretto.engines.tecs.labels import Trace, resolved
from stretto.engines.tecs.runner import renumbered
from stretto.frame import Section
from stretto.matching.pattern_set.compiled_pattern import CompiledPattern
from stretto.matching.pattern_set.prefix_sharing import Lead
from stretto.matching.pattern_set.shared_predicates import HALF, renewed
from stretto.query.query import Consume


@dataclass(eq=False)
class _Shared:
    """Partial matches that patterns share: their slot, and those of the patterns."""

    slot: int
    lookers: set[int]


class JointRun(Driver):
    """The state of all patterns of one window, with one set of keys (:attr:`CompiledPattern.terms`).

    It is told which events to visit, and their classes; order and NULLs of times and windows are checked by whoever tells.

    Parameters
    ----------
    part
        The first pattern.
    labels, capacity
        As in :class:`~stretto.engines.tecs.driver.Driver`.
    """

    program: Joint

    def __init__(self, part: CompiledPattern, *, labels: bool, capacity: int) -> None:
        query = part.program.query
        joint = Joint(query, valuations=part.program.valuations)
        super().__init__(joint, labels=labels, capacity=capacity, tells_visits=True)
        if query.parsed.consume is Consume.ANY:  # of a pattern without keys, which has one partition
            self.state.registers[s.CONSUME] = CONSUME_PARTITION
        #: The keys of events; ``keys`` are pairs of a slot and the number of one of these.
        self._numbers = self.keys
        self.keys = None if self._numbers is None else KeyTable([pa.int64()])
        #: By slot: the number of its automaton, and where that begins.
        self._model: I64 = np.zeros(1, np.int64)
        self._initial: I64 = np.zeros(1, np.int64)
        #: By slot: the position from which on it is the pattern's; what was before is somebody else's.
        self._since: I64 = np.zeros(1, np.int64)
        #: By slot: that whose partitions it reads: its own, or that of a shared state, at which it looks.
        self.lead: I64 = np.zeros(1, np.int64)
        self._shared: dict[Lead, _Shared] = {}
        #: By slot that looks at a shared state: which.
        self._led: dict[int, Lead] = {}
        self._slots = 0
        self._free: list[int] = []
        #: The visits at hand, and their slots.
        self._visits: Events | None = None
        self._visitors: I64 = np.zeros(0, np.int64)
        #: The slots of patterns that were switched off, and what is to be forgotten.
        self._off: set[int] = set()
        self._silenced: list[int] = []
        #: By partition: its slot.
        self._slot: I64 = np.zeros(1, np.int64)

    # -- slots ------------------------------------------------------------------------------------------------------

    def enter(self, part: CompiledPattern, lead: Lead | None) -> int:
        """A slot for a pattern; ``lead``: the state that it looks at."""
        slot = self._new_slot(part)
        if lead is not None:
            self._look(slot, lead, self._shared[lead].slot if lead in self._shared else self._new_slot(part))
        return slot

    def _new_slot(self, part: CompiledPattern) -> int:
        if not self._free:
            self._free.append(self._slots)
            self._slots += 1
        slot = self._free.pop()
        self._take_slot(slot, part)
        self._since[slot] = self.rows
        return slot

    def _take_slot(self, slot: int, part: CompiledPattern) -> None:
        arrays = self._model, self._initial, self._since, self.lead
        self._model, self._initial, self._since, self.lead = (roomy(array, self._slots) for array in arrays)
        self.lead[slot] = slot
        self._model[slot] = self.program.number(part.model)
        self._initial[slot] = self.program.initial(int(self._model[slot]))
        if self.keys is None:
            self._slot = np.arange(self._slots)
            self.state.fit_partitions(self._slots)

    def _look(self, slot: int, lead: Lead, at: int) -> None:
        """A slot looks at the state that another one has."""
        self._shared.setdefault(lead, _Shared(at, set())).lookers.add(slot)
        self._led[slot] = lead
        self.lead[slot] = at

    def leave(self, slots: Sequence[int]) -> None:
        """Forget what patterns have left, and give their slots to others. O(partitions)."""
        gone = [*slots]
        for slot in slots:
            lead = self._led.pop(slot, None)
            if lead is not None:
                self._shared[lead].lookers.remove(slot)
                if not self._shared[lead].lookers:
                    gone.append(self._shared.pop(lead).slot)
        self._off.difference_update(slots)
        self._release(gone)
        self._free += gone

    def _release(self, slots: Sequence[int]) -> None:
        parts = np.flatnonzero(np.isin(self._slot[: self.partitions], slots))
        release_all(self.state.records, self.state.registers, parts)

    def silence(self, slot: int) -> None:
        """While events are being read: the pattern of a slot gives no more, and what it holds is forgotten when they are read."""
        assert self._visits is not None
        self._off.add(slot)
        silenced = [slot]
        if slot in self._led and self._shared[self._led[slot]].lookers <= self._off:
            silenced.append(int(self.lead[slot]))
        self._visits.cls[np.isin(self._visitors, silenced)] = 0  # which concerns nobody
        registers = self.state.registers
        if registers[s.BUSY] and self._visitors[registers[s.CURSOR]] == slot:
            registers[s.TOP] = 0  # nothing is left to list of the event at hand
        self._silenced += silenced

    def _forget_silenced(self) -> None:
        if self._silenced:
            self._release(self._silenced)
            self._silenced = []

    @property
    def partitions(self) -> int:
        return self._slots if self.keys is None else len(self.keys)

    @property
    def busy(self) -> int:
        """How many patterns hold something."""
        patterns = np.ones(self._slots, np.int64)
        for state in self._shared.values():
            patterns[state.slot] = len(state.lookers)
        held = self.state.records.head[: self.partitions] != 0
        return int(patterns[np.unique(self._slot[: self.partitions][held])].sum())

    def held_by(self, slot: int) -> I64:
        """The positions of the events that the partial matches of a slot hold (sorted), after :meth:`live`.

        Those of the state that it looks at are among them.
        """
        chosen = np.isin(self._slot[: self.partitions], (slot, self.lead[slot]))
        chosen &= self.state.records.head[: self.partitions] != 0
        return self.state.live(chosen) if chosen.any() else np.zeros(0, np.int64)

    # -- events -----------------------------------------------------------------------------------------------------

    def follow(
        self, batch: pa.RecordBatch, first: int, rows: I64, slots: I64, cls: I32, measures: Mapping[str, NDArray[Any]]
    ) -> Iterator[Matches]:
        """Read the next events; yields their matches, with a slot in place of the partition. Must be read to its end.

        Parameters
        ----------
        batch
            The events.
        first
            The position of the first of them.
        rows, slots, cls
            The visits: which event, by whom, and its class there; rows ascend.
        measures
            By attribute: what windows measure of every event.
        """
        self.rows = first + batch.num_rows
        if not rows.size:
            return
        new = np.ones(rows.size, np.bool_)
        new[1:] = rows[1:] != rows[:-1]
        events = rows[new]
        which = np.cumsum(new) - 1
        low = self._low(events + first, None, self._measured_of(measures), events, first)[which]
        part = self.lead[slots]
        if self._numbers is not None and self.keys is not None:
            key = self._numbers.ids([batch.column(name) for name in self.key_names], events)[which]
            known = key >= 0
            if not known.all():
                rows, slots, cls, low, key = rows[known], slots[known], cls[known], low[known], key[known]
            lead = self.lead[slots]
            part = self.keys.ids([pa.array(lead << HALF | key)])
            self._slot = roomy(self._slot, len(self.keys))
            self._slot[part] = lead
            self.state.fit_partitions(len(self.keys))
        self.program.widen(cls)
        position = rows + first
        self._visits = Events(cls, part, position, position, low, NO_KEYS, self._initial[slots])
        self._visitors = slots
        yield from self._carried_out(self._visits)
        self._visits = None
        self._forget_silenced()

    def _drain(self) -> Matches:
        found = self.state.drain()
        assert found.part is not None
        if self.labels and not self.program.valuations and (found.mark == AMBIGUOUS).any():
            self._resolve(found)
        return found._replace(part=self._visitors[found.part])

    def _follow(self, events: Events) -> None:
        """Keep the classes of visited events; those that only look at a state have no part in what it holds."""
        looks = self.lead[self._visitors] != self._visitors
        super()._follow(events._replace(part=np.where(looks, -1, events.part)))

    def _resolve(self, found: Matches) -> None:
        """Tell variables apart, automaton by automaton, in a trace in which each partition's events stand together."""
        assert found.part is not None
        assert self._visits is not None
        part, last_class = self._visits.part[found.part], self._visits.cls[found.part]
        base = self.trace.position[0]
        word = self.trace.part << HALF | (self.trace.position - base)
        order = np.argsort(word, kind="stable")
        trace = Trace(word[order], self.trace.part[order], self.trace.cls[order])
        whose = self._model[self._slot[part]]
        size = np.diff(found.offset)
        begin = part << HALF
        place = np.repeat(begin, size) | (found.position - base)
        ambiguous = np.zeros(found.end.size, np.bool_)
        ambiguous[np.repeat(np.arange(found.end.size), size)[found.mark == AMBIGUOUS]] = True
        for model in np.unique(whose[ambiguous]):
            program = self.program.programs[model]
            rows = np.flatnonzero(ambiguous & (whose == model))
            cells = np.repeat(ambiguous & (whose == model), size)
            start, end = begin | (found.start - base), begin | (found.end - base)
            mine = Matches(start, end, found.offset, place, found.mark).taken(rows)
            resolved(mine, last_class[rows], trace, program.arcs(), program.truth())
            found.mark[cells] = mine.mark

    # -- what is kept of the past -----------------------------------------------------------------------------------

    def _keep(self, alive: NDArray[np.bool_]) -> tuple[I64, I64] | None:
        fresh = super()._keep(alive)
        if fresh is not None and self.keys is not None:
            self._slot = roomy(self._slot[fresh[1]], 1)
            assert self._numbers is not None
            self.keys = renewed(self.keys, self._numbers)
        return fresh

    def _tables(self) -> dict[str, KeyTable]:
        return super()._tables() | ({} if self._numbers is None else {"numbers": self._numbers})

    def reach(self, value: int | float) -> Iterator[Matches]:
        found = super().reach(value)
        self._sweep()
        return found

    def save(self, section: Section) -> None:
        """Write what the patterns have left; of the trace, that of partitions that hold something."""
        trace = self.trace
        held = (trace.part >= 0) & (self.state.records.head[trace.part] != 0)
        held &= trace.position >= self._since[self._slot[trace.part]]
        self._traces = [Trace(*(array[held] for array in trace))]
        super().save(section)

    def _save_names(self, section: Section) -> None:
        programs, trace = self.program.programs, self.trace
        states = states_of(section.arrays["records"], len(self.program.states))
        named = {}
        for number in states:
            model, local = self.program.states[number]
            named[int(number)] = [model, *map(hex, programs[model].determinizer.states[local])]
        models = self._model[self._slot[trace.part]]
        classes = {}
        for model in np.unique(models):
            vectors = programs[model].classifier.vectors
            classes[int(model)] = {int(c): hex(vectors[c]) for c in np.unique(trace.cls[models == model])}
        section.values |= {"states": named, "classes": classes, "models": self._model[: self._slots].tolist()}
        section.values["leads"] = self.lead[: self._slots].tolist()
        section.arrays["slot"] = self._slot[: self.partitions].copy()

    @staticmethod
    def leads_of(section: Section) -> Sequence[int]:
        """By slot of a state that :meth:`save` wrote: the slot whose partitions it reads."""
        leads: Sequence[int] = section.values.get("leads", range(len(section.values["models"])))
        return leads

    def resume(self, section: Section, patterns: Mapping[int, tuple[CompiledPattern, Lead | None]]) -> dict[int, int]:
        """Take over a state that :meth:`save` wrote.

        Parameters
        ----------
        section
            The state.
        patterns
            By slot: who has it, and at which state it looks.

        Returns
        -------
        dict
            The slots that they have from now on.
        """
        slots = {slot: slot for slot in patterns}
        self._slots = len(section.values["models"])
        for slot, (part, lead) in patterns.items():
            at = self.leads_of(section)[slot]
            self._take_slot(at, part)
            if (
                lead is not None and at == slot
            ):  # as it was before states were shared: what is there becomes the prefix's
                slots[slot] = self._slots
                self._slots += 1
            self._take_slot(slots[slot], part)
            if lead is not None:
                self._look(slots[slot], lead, at)
        taken = {*slots.values(), *(state.slot for state in self._shared.values())}
        self._free = [slot for slot in range(self._slots) if slot not in taken]
        self.load(section)
        return slots

    def load(self, section: Section) -> None:
        if self.keys is not None:
            self._slot = roomy(section.numbers("slot", least=0, below=self._slots), 1)
        super().load(section)

    @property
    def _marks(self) -> int:
        return max(len(program.determinizer.marks) for program in self.program.programs)

    def _load_states(self, section: Section) -> I64:
        here = self._models_here(section)

        def number(named: Sequence[Any]) -> int:
            return self.program.intern(here[named[0]], tuple(int(mask, 16) for mask in named[1:]))

        return renumbered(section.values["states"], number)

    def _models_here(self, section: Section) -> dict[int, int]:
        """By number of an automaton in a snapshot: its number here."""
        there = section.values["models"]
        free = set(self._free)
        return {model: int(self._model[slot]) for slot, model in enumerate(there) if slot not in free}

    def _load_classes(self, section: Section, part: I64, cls: NDArray[Any]) -> I32:
        found = np.zeros(cls.size, np.int32)
        models = self._model[self._slot[part]]
        here = self._models_here(section)
        for there, named in section.values["classes"].items():
            classes = renumbered(named, partial(_class_of, self.program.programs[here[int(there)]]))
            mine = models == here[int(there)]
            found[mine] = classes[cls[mine]]
        return found


def _class_of(program: Compiled, vector: str) -> int:
    return program.classifier.intern(int(vector, 16))
