"""The arrays of one stream's run in the greedy engine, and how they grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines import store
from stretto.engines.api import Matches
from stretto.engines.greedy import structure as s
from stretto.engines.greedy.kernels import mark
from stretto.engines.greedy.structure import Nodes, Output, Parts, Starts, Timers
from stretto.engines.limits import TooMany
from stretto.engines.timed.compiled import Compiled
from stretto.frame import Section

#: What a start has beside its steps, in a snapshot.
SAVED = ("position", "key", "part", "best", "closed", "measure")


class State:
    """Open starts, nodes, partitions, timers, and the matches to give; kernels write into them in place.

    ``capacity`` is the size that the growing arrays start with: tests start with 1, so that every growth point fires.
    """

    def __init__(self, program: Compiled, *, timed: int, capacity: int, budget: Budget) -> None:
        self.budget = budget
        self.clock, self.measure = program.types
        self.steps, self.groups = len(program.steps.steps), len(program.groups)
        self.due = self.clock if timed & 1 else self.measure
        small = max(1, capacity)
        self.nodes, self.starts, self.parts = self._nodes(small + 1), self._starts(small + 1), self._parts(1)
        self.timers = self._timers(small)
        self.out = self._output(min(small * 16, 1 << 16), min(small * 64, 1 << 18))
        self.registers = np.zeros(s.REGISTERS, np.int64)
        self.registers[[s.NODES, s.STARTS]] = 1

    def _nodes(self, count: int) -> Nodes:
        return store.zeros(Nodes, count, clock=self.clock)

    def _starts(self, count: int) -> Starts:
        head = np.zeros(count * self.steps, np.int64)
        return store.zeros(Starts, count, closed=np.bool_, used=np.bool_, measure=self.measure, head=head)

    def _parts(self, count: int) -> Parts:
        rank, seen = np.full(count, -1, np.int64), np.full(count * self.groups, -1, np.int64)
        return store.zeros(Parts, count, rank=rank, seen=seen, timed=np.bool_, due=self.due)

    def _timers(self, count: int) -> Timers:
        return store.zeros(Timers, count + 2, time=self.due)

    def _output(self, rows: int, cells: int) -> Output:
        position, mark = np.zeros(cells, np.int64), np.zeros(cells, np.int32)
        return store.zeros(Output, rows, position=position, mark=mark, due=self.due)

    @property
    def nbytes(self) -> int:
        return store.bytes_of(self.nodes, self.starts, self.parts, self.timers, self.out)

    # -- room ---------------------------------------------------------------------------------------------------------

    def fit_partitions(self, count: int) -> None:
        """Room for so many partitions."""
        if self.parts.first.size < count:
            self.parts = store.over(self.parts, self._parts(max(count, 2 * self.parts.first.size)))

    def grow_starts(self, event: int) -> None:
        """Twice the room for starts and timers."""
        self._afford(self.starts, event)
        self.starts = store.over(self.starts, self._starts(2 * self.starts.part.size))
        if self.registers[s.TIMERS] + 2 > self.timers.part.size:
            self.timers = store.over(self.timers, self._timers(2 * self.timers.part.size))

    def grow_output(self) -> None:
        """Room for a match, however long."""
        cells = max(2 * self.out.position.size, int(self.registers[s.NEED]))
        self.out = store.over(self.out, self._output(2 * self.out.start.size, cells))

    def collect(self, event: int, need: int) -> None:
        """Keep the nodes that open starts lead to, in arrays that are at least half empty and have room for ``need`` more."""
        old = self.nodes
        keep = np.zeros(old.step.size, np.int64)
        live = int(mark(self.starts, old, self.steps, keep, self.registers))
        size = old.step.size
        while 2 * (live + need + 1) > size:
            size *= 2
        if size > old.step.size:
            self._afford(old, event)
        kept = np.flatnonzero(keep)
        fresh = self._nodes(size)
        for name, array in old._asdict().items():
            getattr(fresh, name)[1 : live + 1] = keep[array[kept]] if name in ("before", "older") else array[kept]
        self.nodes = fresh
        self.starts.best[:] = keep[self.starts.best] * self.starts.used
        head = self.starts.head.reshape(-1, self.steps)
        head[:] = keep[head] * (self.starts.used & ~self.starts.closed)[:, None]
        self.registers[s.NODES] = live + 1

    def _afford(self, arrays: tuple[NDArray[Any], ...], event: int) -> None:
        """Raise before arrays grow over the budget."""
        if not self.budget.holds(0, 2 * store.bytes_of(arrays)):
            opened = int(self.starts.used.sum())
            what = f"meets {opened:,} open starts of matches, of which some may be kept"
            raise TooMany(
                event, what, "WITHIN, or a narrower one, has fewer that wait; so has SKIP PAST LAST EVENT", self.budget
            )

    def drain(self) -> Matches:
        """Take the matches out of the output buffers."""
        rows, cells = int(self.registers[s.ROWS]), int(self.registers[s.CELLS])
        self.registers[[s.ROWS, s.CELLS]] = 0
        known, due = self.out.known[:rows].copy(), self.out.due[:rows].copy()
        return Matches.copied(self.out, rows, cells)._replace(known=known, due=due)

    # -- starts and partitions ----------------------------------------------------------------------------------------

    def opened(self) -> I64:
        """The open starts, in the order of the stream."""
        used = np.flatnonzero(self.starts.used)
        return used[np.argsort(self.starts.position[used])]

    def busy(self, count: int) -> NDArray[np.bool_]:
        """Which partitions have open starts."""
        return self.parts.first[:count] > 0

    def rename(self, renamed: I64, survivors: I64) -> None:
        """Keep some partitions, under other numbers."""
        fresh = self._parts(max(1, survivors.size))
        self.parts = store.over(store.of_partitions(self.parts, survivors, self.parts.first.size), fresh)
        used = self.starts.used
        self.starts.part[used] = renamed[self.starts.part[used]]
        self.wind()

    def wind(self) -> None:
        """Set the timers anew: each partition that has one keeps its time."""
        timed = np.flatnonzero(self.parts.timed)
        order = timed[np.argsort(self.parts.due[timed], kind="stable")]
        self.timers = self._timers(2 * order.size)
        self.timers.time[: order.size], self.timers.part[: order.size] = self.parts.due[order], order
        self.registers[s.TIMERS] = order.size

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the open starts, their nodes, and the partitions."""
        opened, count = self.opened(), int(self.registers[s.NODES])
        section.arrays |= {f"starts.{name}": getattr(self.starts, name)[opened] for name in SAVED}
        section.arrays["starts.head"] = self.starts.head.reshape(-1, self.steps)[opened].ravel()
        section.arrays |= store.named(self.nodes, "nodes", slice(count))
        section.arrays |= {
            f"parts.{name}": getattr(self.parts, name).copy() for name in ("rank", "seen", "timed", "due")
        }
        section.arrays["registers"] = self.registers.copy()

    def load(self, section: Section, partitions: int, rows: int) -> None:
        """Take over what :meth:`save` wrote of a stream of so many rows."""
        arrays, registers = section.arrays, section.numbers("registers", size=s.REGISTERS)
        nodes = arrays["nodes.step"].size
        self._check_nodes(section, nodes, rows)
        self.nodes = store.over(Nodes(*(arrays[f"nodes.{name}"] for name in Nodes._fields)), self._nodes(2 * nodes))
        count = arrays["parts.rank"].size
        if count < partitions:
            raise ValueError(f"there are {count} partitions, not {partitions}")
        section.numbers("parts.rank", size=count)
        section.numbers("parts.seen", size=count * self.groups)
        self.parts = self._parts(count)
        for name in ("rank", "seen", "timed", "due"):
            array = getattr(self.parts, name)
            if arrays[f"parts.{name}"].size != array.size:
                raise ValueError("partitions have other lengths")
            array[:] = arrays[f"parts.{name}"]
        opened = section.numbers("starts.position", least=0, below=max(1, rows), rising=True).size
        section.numbers("starts.part", size=opened, least=0, below=count)
        section.numbers("starts.best", size=opened, least=s.NIL, below=nodes)
        section.numbers("starts.key", size=opened)
        head = section.numbers("starts.head", size=opened * self.steps, least=s.NIL, below=nodes)
        self.starts = self._starts(2 * opened + 2)
        for name in SAVED:
            if arrays[f"starts.{name}"].size != opened:
                raise ValueError("starts have other lengths")
            getattr(self.starts, name)[1 : opened + 1] = arrays[f"starts.{name}"]
        self.starts.head[self.steps : (opened + 1) * self.steps] = head
        self.starts.used[1 : opened + 1] = True
        for start in range(1, opened + 1):
            self._queue(start, int(self.starts.part[start]))
        self.registers[: s.SETTINGS] = 0
        self.registers[[s.NODES, s.STARTS]] = nodes, opened + 1
        self.registers[[s.VISITED, s.TRIGGERS]] = registers[[s.VISITED, s.TRIGGERS]]
        self.wind()

    def _queue(self, start: int, part: int) -> None:
        """A start becomes the last one of its partition."""
        if self.parts.last[part]:
            self.starts.next[self.parts.last[part]] = start
        else:
            self.parts.first[part] = start
        self.parts.last[part] = start
        self.parts.open[part] += 1

    def _check_nodes(self, section: Section, nodes: int, rows: int) -> None:
        """Raise unless each number is that of something there is; what a node leads to is older than the node."""
        own = np.arange(nodes)
        if not nodes:
            raise ValueError("there are no nodes")
        section.numbers("nodes.step", size=nodes, least=0, below=self.steps)
        section.numbers("nodes.position", size=nodes, least=0, below=max(1, rows))
        section.numbers("nodes.rank", size=nodes)
        for name in ("before", "older"):
            section.numbers(f"nodes.{name}", size=nodes, least=s.NIL, below=np.maximum(own, 1))
        before, length = section.arrays["nodes.before"], section.numbers("nodes.length", size=nodes)
        if section.arrays["nodes.clock"].size != nodes or (length[1:] != length[before[1:]] + 1).any() or length[0]:
            raise ValueError("ways have other lengths")
