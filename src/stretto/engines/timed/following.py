"""One stream of CEQL whose partial matches are followed: the events of open windows, and what :mod:`stretto.engines.timed.partial`
finds among them when one closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64, Bits
from stretto.budget import Budget
from stretto.columns.arrays import roomy
from stretto.engines.limits import Patience, TooMany
from stretto.engines.match_ops import timeout_tracker as following
from stretto.engines.match_ops.timeout_tracker import SWEEP_AT_LEAST, Following, Places
from stretto.engines.store import bytes_of, named, over, zeros
from stretto.engines.timed import partial as f
from stretto.engines.timed.compiled import Compiled
from stretto.engines.timed.intake import TimedIntake
from stretto.engines.timed.partial import Traits
from stretto.engines.timed.reaching import PAUSE_AFTER
from stretto.engines.timed.structure import NIL, Events
from stretto.frame import Section
from stretto.query.algebra import places
from stretto.query.passes.bind import BoundQuery

#: What has fewer partial matches, or shorter ones.
FEWER = "a narrower WITHIN, or narrower windows inside, leave fewer"


class Followed(Compiled):
    """A query whose partial matches are followed.

    Parameters
    ----------
    query
        The bound query.
    """

    def __init__(self, query: BoundQuery) -> None:
        super().__init__(query)
        found, steps = places(query.pattern), self.steps.steps
        names = [found[step.atom].name for step in steps]
        self.marks = [*self.marks, *(frozenset({name}) for name in dict.fromkeys(names))]
        first = len(self.marks) - len(set(names))
        #: By step: the mark of the variable that a row says was reached.
        self.names: I64 = np.array([self.marks.index(frozenset({name}), first) for name in names], np.int64)
        self.traits = Traits(
            place=np.array([found[step.atom].number for step in steps], np.int64),
            atom=np.array([step.atom for step in steps], np.int64),
            keeps=self._keeps(),
        )

    def _keeps(self) -> I64:
        """By step: which other way to it makes one needless, by what the edges that leave it ask."""
        found = np.full(len(self.steps.steps), f.ANY, np.int64)
        for edge in self.steps.edges:
            asks = edge.contiguous or edge.most is not None or edge.unless
            kept = f.SAME if edge.least else f.LATER if asks else f.ANY
            found[edge.source] = max(found[edge.source], kept)
        return found

    def truth(self, classes: I64) -> Bits:
        """Which guards hold of some classes: [class, guard]."""
        vectors, guards = self.classifier.vectors, range(len(self.guards))
        held = [[bool(vectors[one] >> guard & 1) for guard in guards] for one in classes]
        return np.array(held, np.bool_)

    def classes_of(self, truth: Bits) -> I64:
        """The classes of which guards hold as some rows say, one after the other."""
        found = self.classifier.interned(truth.reshape(-1, len(self.guards))).astype(np.int64)
        self.refresh()
        return found

    def refresh(self) -> None:
        """Take in the classes that are known by now."""
        super().refresh()
        # What must not come before or behind a match is not asked of partial ones.
        self.relevant = (np.diff(self.machine.begin) > 0) | self.machine.hits.any(axis=1)


class Starts(NamedTuple):
    """First events in the order of the stream, as long as they are needed."""

    position: I64
    part: I64  #: partition
    key: I64  #: what windows bound
    slot: I64  #: in the log


class FollowingState(following.FollowingState):
    """The log of one stream, and its first events.

    Parameters
    ----------
    clock
        The type of what gaps measure.
    capacity
        The size that the growing arrays start with.
    """

    firsts: Starts

    def __init__(self, clock: np.dtype[Any], *, capacity: int) -> None:
        super().__init__()
        self.registers = np.zeros(f.REGISTERS, np.int64)
        self.clock = clock
        self.log = f.room_for_events(max(1, capacity), clock)
        self.used = 1  #: the next free slot
        self.logged = 1  #: … after the last sweep
        self.tail: I64 = np.zeros(1, np.int64)  #: by partition: its last event
        self.firsts = zeros(Starts, 0)

    @property
    def count(self) -> int:
        return self.firsts.position.size

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return bytes_of(self.log, self.firsts, (self.tail, self.measure, self.open))

    def append(self, events: dict[str, NDArray[Any]], begins: Bits, partitions: int) -> None:
        """More events, of which some may begin a match."""
        count = begins.size
        end = self.used + count
        if end > self.log.cls.size:
            self.log = over(self.log, f.room_for_events(2 * end, self.clock))
        if partitions > self.tail.size:
            self.tail = roomy(self.tail, partitions)
        for name, values in events.items():
            getattr(self.log, name)[self.used : end] = values
        f.link(self.log, self.tail, self.used, end)
        slots = np.flatnonzero(begins) + self.used
        self.used = end
        more = Starts(self.log.position[slots], self.log.part[slots], self.log.key[slots], slots)
        self.firsts = Starts(*(np.concatenate(both) for both in zip(self.firsts, more, strict=True)))

    def sweep(self) -> None:
        """Leave out the first events that are gone, and the events that none is before. O(events)."""
        kept = np.flatnonzero(self.open[: self.count])
        self.firsts = Starts(*(array[kept] for array in self.firsts))
        self.keep_firsts(kept)
        parts = self.tail.size
        least = np.full(parts, self.used, np.int64)
        np.minimum.at(least, self.firsts.part, self.firsts.slot)
        slots = np.arange(1, self.used)
        stay = slots[slots >= least[self.log.part[1 : self.used]]]
        for array in self.log:
            array[1 : stay.size + 1] = array[stay]
        self.firsts.slot[:] = np.searchsorted(stay, self.firsts.slot) + 1
        self.used = self.logged = stay.size + 1
        self._link()

    def _link(self) -> None:
        self.tail[:] = NIL
        f.link(self.log, self.tail, 1, self.used)

    def renumber(self, renamed: I64) -> None:
        """Partitions have new numbers; all that are left in the log have one."""
        super().renumber(renamed)
        parts = self.log.part[1 : self.used]
        parts[:] = renamed[parts]
        self._link()

    def save(self, section: Section, truth: Callable[[I64], Bits]) -> None:
        """Write log and first events; ``truth`` says which guards hold of classes, whose numbers are of this process."""
        known, cls = np.unique(self.log.cls[1 : self.used], return_inverse=True)
        section.arrays["log.guards"] = truth(known).ravel()
        section.arrays |= named(self.log, "log", slice(1, self.used), ("next",))
        section.arrays["log.cls"] = cls.astype(np.int64)
        section.arrays |= named(self.firsts, "firsts", slice(None))
        self.save_firsts(section)

    def load(self, section: Section, classes: Callable[[Bits], I64], partitions: int, rows: int) -> None:
        """Take over what :meth:`save` wrote of so many rows; ``classes`` says of which class an event is of which guards hold so."""
        held, count = section.arrays, section.arrays["log.cls"].size
        section.numbers("log.part", size=count, least=0, below=max(1, partitions))
        section.numbers("log.position", size=count, least=0, below=rows, ordered=True)
        self.log = f.room_for_events(2 * max(1, count), self.clock)
        for name, array in self.log._asdict().items():
            if name != "next":
                array[1 : count + 1] = held[f"log.{name}"]
        self.log.cls[1 : count + 1] = classes(held["log.guards"].astype(np.bool_))[section.numbers("log.cls", least=0)]
        self.used = self.logged = count + 1
        self.tail = np.zeros(max(1, partitions), np.int64)
        self._link()
        firsts = held["firsts.slot"].size
        self.firsts = Starts(*(section.numbers(f"firsts.{name}", size=firsts) for name in Starts._fields))
        section.numbers("firsts.position", least=0, below=rows)
        section.numbers("firsts.part", least=0, below=max(1, partitions))
        section.numbers("firsts.slot", least=1, below=self.used)
        self.load_firsts(section)


class FollowingRun(Following, TimedIntake):
    """A stream of CEQL whose partial matches are followed.

    Parameters
    ----------
    program
        The query.
    by_rank
        Whether its window counts the events of a partition, as that of the run does which finds the matches.
    late
        What to do with an event before the last one in time: ``"error"``, or ``"drop"``.
    capacity
        Initial size of the growing arrays (tests use 1).
    budget
        How many bytes of partial matches it may hold before it gives them.
    """

    state: FollowingState
    program: Followed

    def __init__(self, program: Followed, *, by_rank: bool, late: str, capacity: int, budget: Budget | None) -> None:
        super().__init__(program, late=late)
        self.by_rank = by_rank
        self.counted = program.query.window is not None and program.query.window.attribute is None
        self.capacity, self.budget = max(1, capacity), budget or Budget()
        self.state = FollowingState(program.types[0], capacity=capacity)
        self._ways = f.room_for_ways(self.capacity, program.machine)

    @property
    def nodes(self) -> int:
        """Events in the log."""
        return self.state.used - 1

    @property
    def nbytes(self) -> int:
        """Bytes that the run holds."""
        return int(self.state.nbytes + self.intake_nbytes + sum(array.nbytes for array in self._ways))

    # -- events -------------------------------------------------------------------------------------------------------

    def _read(self, batch: pa.RecordBatch) -> None:
        events, classed = self.prepare(batch)
        self._passed(classed)
        begins = self.program.begins(events.cls) if events.cls.size else np.zeros(0, np.bool_)
        rows = np.flatnonzero(self._matters(events, begins))
        chosen = {name: getattr(events, name)[rows] for name in ("cls", "part", "position", "rank", "low", "clock")}
        chosen["key"] = chosen["rank" if self.by_rank else "position"]
        self.state.append(chosen, begins[rows], self.partitions)

    def _matters(self, events: Events, begins: Bits) -> Bits:
        """Which events a partial match may hold or look at: those behind a first event of their partition."""
        parts, own = np.unique(events.part, return_inverse=True)
        first = np.full(parts.size, events.part.size)
        np.minimum.at(first, own[begins], np.flatnonzero(begins))
        first[np.isin(parts, self.state.firsts.part[self.state.open])] = 0
        matters: Bits = np.arange(events.part.size) >= first[own]
        return matters

    def settle(self) -> None:
        """All that the batch closed has been taken: free what is not needed."""
        if self.state.used > max(SWEEP_AT_LEAST, 2 * self.state.logged):
            self._sweep_firsts()
        super().settle()

    def pass_by(self, value: int | float) -> None:
        """Nothing before ``value`` will come; the windows that this closes are those of :meth:`closed`."""
        self.has_passed(value)
        super().pass_by(value)

    # -- partial matches ------------------------------------------------------------------------------------------------

    def _places(self, slots: I64) -> Places:
        firsts = self.state.firsts.slot[slots]
        registers = self.state.registers
        registers[:] = 0
        found = f.room_for_rows(firsts.size, self.capacity)
        machine, traits = self.program.machine, self.program.traits
        patience = Patience(PAUSE_AFTER, "begins partial matches, of which the furthest was not found", FEWER)
        while True:
            match f.furthest(firsts, machine, traits, self.state.log, self._ways, found, registers):
                case _jit.DONE:
                    break
                case _jit.PAUSED:
                    patience.go_on(int(self.state.firsts.position[slots[registers[f.AT]]]), 0)
                case _jit.GROW_STACK:
                    self._grow_ways(int(self.state.firsts.position[slots[registers[f.AT]]]))
                case _jit.GROW_OUTPUT:
                    size = 2 * found.position.size + int(registers[f.NEED])
                    if not self.budget.holds(0, 16 * size):
                        event = int(self.state.firsts.position[slots[registers[f.AT]]])
                        what = (
                            f"times out with others, whose partial matches have more than {registers[f.CELLS]:,} events"
                        )
                        raise TooMany(event, what, FEWER, self.budget)
                    longer = f.room_for_rows(0, size)
                    for name in ("position", "step"):
                        getattr(longer, name)[: found.position.size] = getattr(found, name)
                    found = longer._replace(stop=found.stop)
        cells = int(registers[f.CELLS])
        return self._shown(found.stop, found.position[:cells], found.step[:cells])

    def _grow_ways(self, event: int) -> None:
        """Room for twice as many partial matches of one first event, which is at a position."""
        old = self._ways
        size = 2 * old.event.size
        ways = f.room_for_ways(size, self.program.machine)
        if not self.budget.holds(0, sum(array.nbytes for array in ways)):
            what = f"begins more than {old.event.size:,} partial matches, of which the furthest is sought"
            raise TooMany(event, what, FEWER, self.budget)
        self._ways = over(old, ways)

    def _shown(self, stop: I64, position: I64, step: I64) -> Places:
        """Partial matches with the events that SELECT shows."""
        mark = self.program.machine.mark[step]
        shown = np.concatenate(([0], np.cumsum(mark != 0)))
        begin = np.concatenate(([0], stop[:-1])) if stop.size else stop
        offset = shown[np.concatenate(([0], stop))]
        kept = mark != 0
        return Places(
            position[begin], position[stop - 1], offset, position[kept], mark[kept], self.program.names[step[stop - 1]]
        )

    # -- what is kept of the past -----------------------------------------------------------------------------------

    def _sweep_firsts(self) -> None:
        self.state.sweep()

    def _sweep(self) -> None:
        """Leave out what is gone, and forget the keys of idle partitions when most of them are idle."""
        self._sweep_firsts()
        self._keep(np.zeros(self.partitions, np.bool_))

    def live(self) -> I64:
        """The rows that partial matches may hold (sorted)."""
        self._sweep_firsts()
        return self.state.log.position[1 : self.state.used].copy()

    # -- state --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the log, without what is gone."""
        self._sweep()
        self.state.save(section, self.program.truth)
        self._save_intake(section)

    def load(self, section: Section) -> None:
        """Take over a state that :meth:`save` wrote."""
        partitions = self._load_intake(section)
        self.state.load(section, self.program.classes_of, partitions, self.rows)
