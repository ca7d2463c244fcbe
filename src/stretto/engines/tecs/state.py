"""What a stream leaves behind in the tECS engine, and how its arrays grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.columns.arrays import roomy
from stretto.engines.api import Matches
from stretto.engines.shared.counting import counts_for
from stretto.engines.store import bytes_of, with_room, zeros
from stretto.engines.tecs import structure as s
from stretto.engines.tecs.collect import copy, live_positions, mark, pack, unpack
from stretto.engines.tecs.enumerate import Output, Stack
from stretto.engines.tecs.fitting import misfit
from stretto.engines.tecs.kernels import CONSUME_ANY, CONSUME_PARTITION, Records, Work
from stretto.engines.tecs.structure import Cells, Nodes
from stretto.frame import Section
from stretto.query.query import Consume, ParsedQuery

#: Names of arrays of nodes in a snapshot, where they are others.
SAVED = {"mark": "marks"}

#: The registers that a snapshot keeps. The others belong to one call, to the query, or are made anew.
SAVED_REGISTERS = [s.NOW, s.LOW, s.CONSUMED, s.VISITED, s.TRIGGERS]


class State:
    """The arrays of one stream's run, and the scratch space beside them.

    All of it is owned by the state; kernels write into it in place. ``capacity`` is the size that the growing arrays start
    with: tests start with 1, so that every growth point fires. ``tells_visits``: matches say which
    of the events of a call completes them.
    """

    def __init__(self, query: ParsedQuery, *, ring: bool, span: int, capacity: int, tells_visits: bool = False) -> None:
        small = max(1, capacity)
        self._tells_visits = tells_visits
        self.nodes = _nodes(_power(max(small, 2)))
        self.records = Records(np.zeros(1, np.int64), np.zeros(max(small, 8), np.int64))
        self.work, self.cells = zeros(Work, small), zeros(Cells, small)
        self.stack = zeros(Stack, small, mark=np.int32)
        self.out = _output(min(small * 16, 1 << 16), min(small * 64, 1 << 18), tells_visits)
        self.counts = counts_for(0)
        self._counted = self.nodes  # what the counts are of
        self.registers = np.zeros(s.REGISTERS, np.int64)
        self.registers[s.HEAD] = s.FIRST
        self.registers[s.TAIL] = s.FIRST - 1
        self.registers[s.ARENA] = 8  # offset 0 stands for "no record"
        self.registers[s.CONSUMED] = -1
        self.registers[s.RING] = ring
        self.registers[s.SPAN] = span
        self.registers[s.LIMIT] = query.limit or 0
        self.registers[s.CONSUME] = {Consume.PARTITION: CONSUME_PARTITION, Consume.ANY: CONSUME_ANY}.get(
            query.consume, 0
        )

    def grow_nodes(self) -> None:
        """Collect; double the store if more than half of it is in use even so."""
        self.collect(self._need())

    def _need(self) -> int:
        need = int(self.registers[s.NEED])
        self.registers[s.NEED] = 0
        return need

    def collect(self, need: int = 0) -> None:
        """Keep what is reachable, in a store that is at least half empty and has room for ``need`` more.

        With LIMIT 1 little of what is made stays, so that an emptier store is still a small one, and collecting is rare.
        """
        most = 4 if self.registers[s.LIMIT] == 1 else 2
        old = self.nodes
        bound = np.empty(old.left.size, np.int64)
        live = int(mark(old, self.records, bound, self.registers))
        capacity = old.left.size
        while most * (live + need) > capacity:
            capacity *= 2
        self.nodes = _nodes(capacity)
        copy(old, self.nodes, self.records, bound, np.empty(old.left.size, np.int64), self.registers)

    def live(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The positions that partial matches hold, ascending; ``chosen``: those of some partitions, after a call for all of them."""
        bound, positions = np.empty((2, self.nodes.left.size), np.int64)
        records = self.records
        if chosen is not None:
            head = np.zeros_like(records.head)
            head[: chosen.size][chosen] = records.head[: chosen.size][chosen]
            records = records._replace(head=head)
        mark(self.nodes, records, bound, self.registers)
        return positions[: live_positions(self.nodes, bound, self.registers, positions)].copy()

    def grow_arena(self) -> None:
        arena = self.records.arena
        self.records = Records(self.records.head, roomy(arena, arena.size + self._need()))

    def grow_active(self) -> None:
        need = self._need()
        self.cells = with_room(self.cells, need)
        by_state, by_entry = self.work[:2], self.work[2:]
        self.work = Work(*by_state, *(roomy(array, need) for array in by_entry))

    def fit_states(self, states: int) -> None:
        """Room for ``states`` automaton states in the scratch space."""
        work = self.work
        if work.slot.size < states:
            self.work = work._replace(slot=roomy(work.slot, states), epoch=roomy(work.epoch, states))

    def fit_partitions(self, partitions: int) -> None:
        """Room for ``partitions`` records."""
        if self.records.head.size < partitions:
            self.records = Records(roomy(self.records.head, partitions), self.records.arena)

    def grow_stack(self) -> None:
        self.stack = with_room(self.stack, max(self._need(), 2 * self.stack.node.size))

    def fit_counts(self) -> None:
        """Room to count matches; nothing is known yet of nodes that were numbered anew."""
        if self._counted is not self.nodes or self.counts.node.size <= 1:
            self._counted = self.nodes
            self.counts = counts_for(self.nodes.left.size)

    def grow_output(self) -> None:
        rows, cells = 2 * self.out.start.size, 2 * self.out.position.size
        self.out = _output(rows, cells, self._tells_visits)

    def drain(self) -> Matches:
        """Take the matches out of the output buffers."""
        rows, cells = int(self.registers[s.ROWS]), int(self.registers[s.CELLS])
        self.registers[s.ROWS] = self.registers[s.CELLS] = 0
        found = Matches.copied(self.out, rows, cells)
        return found._replace(part=self.out.visit[:rows].copy()) if self._tells_visits else found

    def drain_counts(self) -> Matches:
        """Take the counted events out of the output buffers."""
        rows = int(self.registers[s.ROWS])
        self.registers[s.ROWS] = 0
        return Matches.copied_counts(self.out, rows)

    def save(self, section: Section) -> None:
        """Write what is reachable: the nodes, the records partition by partition, the registers."""
        self.collect()
        arrays, count = section.arrays, int(self.registers[s.HEAD])
        for name, array in self.nodes._asdict().items():
            arrays[f"nodes.{SAVED.get(name, name)}"] = np.take(array, np.arange(s.FIRST, count) & (array.size - 1))
        words = np.zeros(max(1, pack(self.records, np.zeros(0, np.int64))), np.int64)
        arrays["records"] = words[: pack(self.records, words)]
        arrays["registers"] = np.zeros_like(self.registers)  # what is left of a call depends on calls of others, too
        arrays["registers"][SAVED_REGISTERS] = self.registers[SAVED_REGISTERS]

    def load(self, section: Section, partitions: int, states: NDArray[np.int64], *, rows: int, marks: int) -> None:
        """Take over what :meth:`save` wrote of a stream of so many rows; ``states``: the number here of each state."""
        arrays = section.arrays
        registers = section.numbers("registers", size=s.REGISTERS)
        count = arrays["nodes.left"].size
        older = np.arange(s.FIRST, s.FIRST + count)  # children are older than their parents
        for name in ("left", "right"):
            section.numbers(f"nodes.{name}", size=count, least=s.NIL, below=older)
        # A store that is small for the events to come is collected again and again, although it is half empty each time.
        nodes = _nodes(_power(max(self.nodes.left.size, 2 * (count + s.FIRST))))
        if "nodes.mark" in arrays:  # from before bottoms had marks
            arrays["nodes.marks"] = np.where(arrays["nodes.left"] == s.NIL, 0, arrays["nodes.mark"])
        section.numbers("nodes.marks", size=count, least=0, below=marks)
        self._check_nodes(section, rows)
        for name in nodes._fields:
            getattr(nodes, name)[s.FIRST : s.FIRST + count] = arrays[f"nodes.{SAVED.get(name, name)}"]
        self.nodes = nodes
        words = section.numbers("records")
        if (place := misfit(words, partitions, states.size, count)) >= 0:
            raise ValueError(f"'records' holds {words[place]} at place {place}")
        self.fit_partitions(max(1, partitions))
        self.records = self.records._replace(arena=np.zeros(2 * words.size + 16, np.int64))
        self.registers[SAVED_REGISTERS] = registers[SAVED_REGISTERS]
        self.registers[s.FREE :] = 0
        self.registers[s.ARENA] = unpack(words, np.arange(partitions), states, nodes, self.records, 8)
        self.registers[[s.TAIL, s.HEAD]] = s.FIRST - 1, count + s.FIRST

    def _check_nodes(self, section: Section, rows: int) -> None:
        """Raise unless nodes stand in the order of their making, and starts are those of children, with later ones on the left."""
        left, right = (section.arrays[f"nodes.{name}"].astype(np.int64) for name in ("left", "right"))
        section.numbers("nodes.position", size=left.size, least=0, below=rows, ordered=True)
        start = section.numbers("nodes.start", size=left.size, least=0, below=rows)
        later = section.numbers("nodes.right_start", size=left.size)
        above, both = left >= s.FIRST, right >= s.FIRST  # what has left the window is on the right
        fits = (left == s.NIL) | above
        fits &= (right == s.NIL) | ((left != s.NIL) & (later <= start))
        fits[above] &= start[above] == start[left[above] - s.FIRST]
        fits[both] &= later[both] == start[right[both] - s.FIRST]
        if not fits.all():
            raise ValueError("the nodes are not in order")

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return bytes_of(self.nodes, self.records, self.work, self.cells, self.stack, self.out, self.counts)


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _nodes(capacity: int) -> Nodes:
    """Nodes lie one beside the other, not field by field: what is read of an old one is one miss of the caches."""
    words = np.zeros((capacity, 6), np.int64)
    left, right, start, right_start, position, _ = words.T
    return Nodes(left, right, start, right_start, position, words.view(np.int32)[:, 10])


def _output(rows: int, cells: int, tells_visits: bool) -> Output:
    places = {"position": np.empty(cells, np.int64), "mark": np.empty(cells, np.int32)}
    return zeros(Output, rows, **places, visit=np.empty(rows if tells_visits else 0, np.int64))
