"""What a stream leaves behind in the timed engine, and how its arrays grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64
from stretto.budget import Budget
from stretto.engines.api import Matches
from stretto.engines.limits import TooMany
from stretto.engines.shared.counting import Unlisted, counted, counts_for
from stretto.engines.store import bytes_of, named, of_partitions, over, zeros
from stretto.engines.timed import structure as s
from stretto.engines.timed.collect import copy, mark
from stretto.engines.timed.compiled import Compiled
from stretto.engines.timed.counting import Tally, count_paths_of
from stretto.engines.timed.structure import Events, Links, Machine, Nodes, Output, Parts, Walk
from stretto.frame import Section

#: What has fewer matches.
FEWER = "a narrower WITHIN, AFTER … WITHIN or GAP has fewer"


class State:
    """The arrays of one stream's run, and the scratch space beside them; kernels write into them in place.

    ``capacity`` is the size that the growing arrays start with: tests start with 1, so that every growth point fires.
    """

    def __init__(self, program: Compiled, *, capacity: int, budget: Budget) -> None:
        self.budget = budget
        self.clock, self.measure = program.types
        self.steps, self.groups = len(program.steps.steps), len(program.groups)
        self.edges = int(program.machine.source.size)
        self.lates = int(np.count_nonzero(program.machine.late >= 0))
        self.windows, self.window = len(program.steps.windows), program.machine.window[0]
        small = max(1, capacity)
        self.nodes = self._nodes(small + 1)
        self.links = zeros(Links, small)
        self.parts = self._parts(1)
        self.walk = self._walk(small + 1)
        self.out = self._output(min(small * 16, 1 << 16), min(small * 64, 1 << 18), 1 << (small - 1).bit_length())
        self.tally = self.tally_for(0)
        self._tallied = self.nodes  # what the tally is of
        self.registers = np.zeros(s.REGISTERS, np.int64)
        self.registers[s.NODES] = 1
        self.registers[s.CONSUMED] = -1

    # -- arrays -------------------------------------------------------------------------------------------------------

    def _nodes(self, count: int) -> Nodes:
        return zeros(Nodes, count, measure=self.measure, bad=self.measure, clock=self.clock, spoilt=np.bool_)

    def _parts(self, count: int) -> Parts:
        return zeros(
            Parts,
            count,
            head=np.zeros(count * self.steps, np.int64),
            tail=np.zeros(count * self.steps, np.int64),
            reached=np.zeros(count * self.lates, np.int64),
            seen=np.full(count * self.groups, -1, np.int64),
            consumed=np.full(count, -1, np.int64),
            latest=self.measure,
        )

    def _walk(self, depth: int) -> Walk:
        root, start = (np.zeros(self.steps, np.int64) for _ in range(2))
        until, dead = (np.zeros(size * self.windows, self.clock) for size in (depth, self.nodes.step.size))
        return zeros(Walk, depth, until=until, root=root, start=start, dead=dead)

    def _output(self, rows: int, cells: int, slots: int) -> Output:
        table = {name: np.zeros(slots, np.int64) for name in ("slot", "stamp")}
        places = {"position": np.zeros(cells, np.int64), "mark": np.zeros(cells, np.int32)}
        return zeros(Output, rows, begun=self.measure, ended=self.measure, **table, **places)

    @property
    def nbytes(self) -> int:
        return bytes_of(self.nodes, self.links, self.parts, self.walk, self.out, self.tally.counts, self.tally[1:])

    # -- room ---------------------------------------------------------------------------------------------------------

    def fit_partitions(self, count: int) -> None:
        """Room for so many partitions."""
        have = self.parts.rank.size
        if have < count:
            self.parts = over(self.parts, self._parts(max(count, 2 * have)))

    def tally_for(self, nodes: int) -> Tally:
        """Nothing is known of so many nodes."""
        return Tally(counts_for(2 * nodes), np.zeros(2 * nodes + 1, np.bool_), np.zeros(2 * nodes + 1, self.measure))

    def fit_tally(self) -> None:
        """Room to count matches; nothing is known yet of nodes that were numbered anew."""
        if self._tallied is not self.nodes or self.tally.left_out.size <= 1:
            self._tallied, self.tally = self.nodes, self.tally_for(self.nodes.step.size)

    def count(self, at: int, events: Events, machine: Machine) -> Unlisted:
        """How many matches the event at hand has, counted beside a listing of them, which goes on as if nothing was."""
        walk, registers = self._walk(64), self.registers.copy()
        walk.root[:] = self.walk.root
        registers[[s.TOP, s.ROOT, s.START]] = 0, 0, -1
        tally = self.tally_for(self.nodes.step.size)
        arrays = (self.nodes, self.links, self.parts)
        while (status := count_paths_of(at, events, machine, *arrays, walk, tally, registers)) != _jit.DONE:
            if status == _jit.GROW_STACK:
                walk = over(walk, self._walk(2 * walk.node.size))
        return counted(int(tally.counts.matches[-1]), float(tally.counts.bits[-1]))

    def grow_walk(self) -> None:
        self.walk = over(self.walk, self._walk(2 * self.walk.node.size))

    def grow_table(self) -> None:
        size = 2 * self.out.slot.size
        self.out = self.out._replace(slot=np.zeros(size, np.int64), stamp=np.zeros(size, np.int64))

    def grow_output(self, event: int) -> None:
        """Twice the room; more than the budget, where the matches of one event must be there together, is refused."""
        rows, cells = self.out.start.size, self.out.position.size
        if not self.budget.holds(0, 2 * sum(one.nbytes for one in self.out)):
            what = f"completes more than {self.registers[s.ROWS]:,} matches, which must be compared"
            raise TooMany(event, what, FEWER, self.budget)
        larger = self._output(2 * rows, 2 * cells, self.out.slot.size)
        slot, stamp = self.out.slot, self.out.stamp
        self.out = over(self.out, larger)._replace(slot=slot, stamp=stamp)

    def collect(self, machine: Machine, now: int | float | None, span: int, need: int) -> None:
        """Keep what is reachable, in stores that are at least half empty and have room for ``need`` more.

        ``now``: the clock of the last event, which is no event before; ``None`` where gaps count the events of a partition.
        """
        old, links = self.nodes, self.links
        keep, clock = np.zeros(old.step.size, np.int64), np.zeros(old.step.size, self.clock)
        clocks = self.clock.type(0 if now is None else now), now is None, span
        live = int(mark(machine, old, links, self.parts, *clocks, keep, clock, self.registers))
        linked = int(self.registers[s.LINKS])
        self.nodes = self._nodes(_room(live + need + 1, old.step.size))
        self.walk = self._walk(self.walk.node.size)
        into = zeros(Links, max(linked, 1))
        copy(old, links, self.nodes, into, self.parts, keep, self.registers)
        held = int(self.registers[s.LINKS])
        self.links = over(Links(*(one[:held] for one in into)), zeros(Links, _room(held + need, links.edge.size)))

    def drain(self) -> tuple[Matches, I64, NDArray[Any], NDArray[Any]]:
        """Take the matches out of the output buffers, with the partition and the measures of first and last event of each."""
        rows, cells = int(self.registers[s.ROWS]), int(self.registers[s.CELLS])
        self.registers[[s.ROWS, s.CELLS, s.FIRST_ROW]] = 0
        out = self.out
        return (
            Matches.copied(out, rows, cells),
            out.part[:rows].copy(),
            out.begun[:rows].copy(),
            out.ended[:rows].copy(),
        )

    def drain_counts(self) -> Matches:
        """Take the counted events out of the output buffers."""
        rows = int(self.registers[s.ROWS])
        self.registers[s.ROWS] = 0
        return Matches.copied_counts(self.out, rows)

    # -- partitions ---------------------------------------------------------------------------------------------------

    def busy(self, count: int, now: int | float | None) -> NDArray[np.bool_]:
        """Which partitions have nodes, or something that must not come before a match that may begin."""
        parts = self.parts
        found = np.asarray(parts.head.reshape(-1, self.steps)[:count].any(axis=1))
        known = parts.known[:count] > 0
        waits = known if now is None else known & (now - parts.latest[:count] <= self.window)
        return np.logical_or(found, waits)

    def rename(self, renamed: I64, survivors: I64) -> None:
        """Keep some partitions, under other numbers."""
        fresh = self._parts(max(1, survivors.size))
        self.parts = over(of_partitions(self.parts, survivors, self.parts.rank.size), fresh)
        count = int(self.registers[s.NODES])
        self.nodes.part[1:count] = renamed[self.nodes.part[1:count]]

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write nodes, links, partitions and registers."""
        nodes, links = int(self.registers[s.NODES]), int(self.registers[s.LINKS])
        for prefix, arrays, count in (("nodes", self.nodes, nodes), ("links", self.links, links)):
            section.arrays |= named(arrays, prefix, slice(count))
        section.arrays |= named(self.parts, "parts", slice(None))
        section.arrays["registers"] = self.registers.copy()

    def load(self, section: Section, partitions: int, rows: int) -> None:
        """Take over what :meth:`save` wrote of a stream of so many rows."""
        held = section.arrays
        registers = section.numbers("registers")
        self._check(section, partitions, rows)
        parts = Parts(*(held[f"parts.{name}"] for name in Parts._fields))
        self.parts = over(parts, self._parts(max(1, partitions, parts.rank.size)))
        nodes = Nodes(*(held[f"nodes.{name}"] for name in Nodes._fields))
        self.nodes = over(nodes, self._nodes(max(self.nodes.step.size, nodes.step.size)))
        links = Links(*(held[f"links.{name}"] for name in Links._fields))
        self.links = over(links, zeros(Links, max(self.links.edge.size, links.edge.size)))
        self.walk = self._walk(self.walk.node.size)
        self.registers[: s.SETTINGS] = 0
        for number in (s.SERIAL, s.VISITED, s.TRIGGERS, s.LOW, s.CONSUMED):
            self.registers[number] = registers[number]
        self.registers[[s.NODES, s.LINKS]] = nodes.step.size, links.edge.size

    def _check(self, section: Section, partitions: int, rows: int) -> None:
        """Raise unless each number is that of something there is; what a node leads to is older than the node."""
        nodes, links = section.arrays["nodes.step"].size, section.arrays["links.edge"].size
        count = section.arrays["parts.rank"].size
        if not nodes or count < partitions:
            raise ValueError(f"there are {nodes} nodes and {count} partitions")
        own = np.arange(nodes)
        section.numbers("nodes.step", size=nodes, least=0, below=self.steps)
        section.numbers("nodes.position", size=nodes, least=0, below=max(1, rows))
        section.numbers("nodes.part", size=nodes, least=0, below=max(1, count))
        section.numbers("nodes.older", size=nodes, least=s.NIL, below=np.maximum(own, 1))
        newer = section.numbers("nodes.newer", size=nodes, least=s.NIL, below=nodes)
        if ((newer <= own) & (newer != s.NIL)).any():
            raise ValueError("a newer node is older")
        section.numbers("nodes.after", size=nodes, least=s.NIL, below=nodes)
        begin = section.numbers("nodes.begin", size=nodes, least=0, below=links + 1)
        held = section.numbers("nodes.links", size=nodes, least=0, below=links - begin + 1)
        reached = section.numbers("links.node", size=links, least=s.NIL, below=nodes)
        section.numbers("links.edge", size=links, least=0, below=self.edges)
        section.numbers("links.stop", size=links)
        if held.sum() > links:
            raise ValueError("nodes share links")
        ends = np.cumsum(held)
        place = np.arange(int(held.sum())) - np.repeat(ends - held, held) + np.repeat(begin, held)
        if (reached[place] >= np.repeat(own, held)).any():
            raise ValueError("a link leads to a newer node")
        for name, width in (("head", self.steps), ("tail", self.steps), ("reached", self.lates)):
            section.numbers(f"parts.{name}", size=count * width, least=s.NIL, below=nodes)
        section.numbers("parts.seen", size=count * self.groups)
        section.numbers("parts.known", size=count, least=0, below=3)
        for prefix, fields, size in (
            ("nodes", Nodes._fields, nodes),
            ("parts", ("rank", "consumed", "latest"), count),
        ):
            for name in fields:
                if section.arrays[f"{prefix}.{name}"].size != size:
                    raise ValueError(f"there are not {size} of {prefix}.{name}")


def _room(needed: int, have: int) -> int:
    """A size that is at least half empty."""
    while 2 * needed > have:
        have *= 2
    return have
