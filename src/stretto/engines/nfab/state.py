"""What a stream leaves behind in the NFAb engine, and how its arrays grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stretto.columns.arrays import longer
from stretto.engines.api import Matches
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.cleaning import collect, list_runs
from stretto.engines.nfab.structure import Memory, Nodes, Parts, Runs, Scratch
from stretto.engines.shared.counting import counts_for
from stretto.engines.shared.values import Op, Slot
from stretto.engines.store import bytes_of, grown, named, zeros
from stretto.engines.tecs.enumerate import Output
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.memory import most_for_state

#: Partial matches that take more bytes than this are refused, or than the machine can give:
#: their number grows with a power of the window, or faster.
MOST_BYTES = 4 << 30

#: Keys are positions or ranks from 0 on; ranks minus a window's size may be below.
NEVER = -(1 << 62)


class NfabState:
    """The arrays of one stream's runs, and the scratch space beside them.

    Parameters
    ----------
    words
        How many values V has.
    columns
        How many words a node keeps of its event; 0: none.
    negations
        Of the pattern.
    span
        The size of the window where it counts events.
    capacity
        The size that the growing arrays start with: tests start with 1, so that every growth point fires.
    """

    def __init__(self, *, words: int, columns: int, negations: int, span: int, capacity: int) -> None:
        small = max(2, capacity)
        self.span = span
        self.negations = negations
        #: Whether a set of matches looks at the nodes: then they may be added to, and not moved.
        self.shared = False
        self.columns = columns
        self.registers = np.zeros(s.REGISTERS, np.int64)
        self.registers[s.HEAD] = 1
        self.runs = new_runs(1, words)
        self._free(small)
        self.nodes = new_nodes(small, columns)
        self.parts = zeros(Parts, 1, negated=negations)
        self.scratch = zeros(Scratch, 16)
        self.out = new_output(min(16 * small, 1 << 16), min(64 * small, 1 << 20))
        self.counts = counts_for(0)

    @property
    def memory(self) -> Memory:
        """What kernels write, as it lies now."""
        return Memory(self.runs, self.nodes, self.parts, self.scratch, self.registers)

    def _free(self, more: int) -> None:
        """Add ``more`` free runs."""
        size = self.runs.state.size
        fresh = grown(self.runs, size + more)
        fresh.next[size : size + more] = np.arange(size + 1, size + more + 1)
        fresh.next[size + more - 1] = self.registers[s.FREE]
        self.registers[s.FREE] = size
        self.registers[s.FREE_RUNS] += more
        self.runs = fresh

    def fit_partitions(self, partitions: int) -> None:
        """Room for ``partitions``."""
        if self.parts.head.size < partitions:
            self.parts = grown(self.parts, max(partitions, 2 * self.parts.head.size))

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def save(self, section: Section, partitions: int) -> None:
        """Write what is reachable. Runs are written partition by partition, in the order of their lists."""
        arrays, used = section.arrays, slice(1, int(self.registers[s.HEAD]))
        arrays |= named(self.nodes, "nodes", used, () if self.columns else ("P",))
        numbers = self.listed(partitions)
        arrays |= named(self.runs, "runs", numbers, ("next",))
        arrays["parts.size"] = self.parts.size[:partitions].copy()
        arrays["parts.negated"] = self.parts.negated[:partitions].ravel()
        timers = int(self.registers[s.TIMERS])
        place = np.zeros(self.runs.state.size, np.int64)
        place[numbers] = np.arange(1, numbers.size + 1)
        waiting = place[self.scratch.timer[:timers]]
        arrays["timers.run"] = waiting[waiting != s.NIL]
        arrays["timers.serial"] = self.scratch.serial[:timers][waiting != s.NIL]
        arrays["registers"] = self.registers.copy()

    def load(self, section: Section, partitions: int, slots: list[Slot], components: int) -> None:
        """Take over what :meth:`save` wrote, of a program of so many components, whose value vector has these slots."""
        arrays = section.arrays
        registers = section.numbers("registers", size=s.REGISTERS)
        nodes, count = arrays["nodes.previous"].size, arrays["runs.state"].size
        for name in ("previous", "other"):
            section.numbers(f"nodes.{name}", size=nodes, least=s.NIL, below=np.arange(1, nodes + 1))
        section.numbers("nodes.label", size=nodes, least=s.UNION)
        section.numbers("runs.node", size=count, least=s.NIL, below=nodes + 1)
        section.numbers("runs.state", size=count, least=s.DEAD)
        if section.numbers("parts.size", size=partitions, least=0, below=count + 1).sum() != count:
            raise ValueError(f"the partitions have not {count} runs")
        section.numbers("parts.negated", size=partitions * self.negations, least=s.NIL, below=nodes + 1)
        _check_paths(section, components, self.negations)
        waiting = section.numbers("timers.run", least=1, below=count + 1)
        if np.unique(waiting).size != waiting.size:
            raise ValueError("a run waits twice")
        section.numbers("timers.serial", size=waiting.size)
        for name, array in self.nodes._asdict().items():
            if name != "P" or self.columns:
                wider = np.zeros((max(array.shape[0], 2 * nodes + 2), *array.shape[1:]), np.int64)
                wider[0] = array[0]
                wider[1 : nodes + 1] = arrays[f"nodes.{name}"].reshape((nodes, *array.shape[1:]))
                self.nodes = self.nodes._replace(**{name: wider})
        runs = {name: arrays[f"runs.{name}"].astype(np.int64) for name in self.runs._fields if name != "next"}
        runs["V"] = _with_carries(runs["V"], runs["state"].size, slots)
        self._load_runs(runs)
        negated = arrays["parts.negated"].astype(np.int64).reshape(partitions, self.negations)
        self.parts = zeros(Parts, max(1, partitions), negated=self.negations)
        self.parts.negated[:partitions] = negated
        self._link(arrays["parts.size"].astype(np.int64))
        self._load_timers(arrays["timers.run"].astype(np.int64), arrays["timers.serial"].astype(np.int64))
        self._load_registers(registers, nodes + 1)

    def _load_runs(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        """Runs 1, 2, … from their fields; the others are free."""
        count = arrays["state"].size
        words = self.runs.V.shape[1] - 1
        self.registers[s.FREE] = self.registers[s.FREE_RUNS] = 0
        self.counts = counts_for(0)
        self.runs = new_runs(count + 1, words)
        for name, array in arrays.items():
            kept = getattr(self.runs, name)
            kept[1:] = array.reshape((count, *kept.shape[1:]))
        self._free(max(16, count))

    def _link(self, sizes: NDArray[np.int64]) -> None:
        """Put runs 1, 2, … into the lists of partitions, in order."""
        self.parts.size[: sizes.size] = sizes
        first = 1
        for part, size in enumerate(sizes.tolist()):
            self.parts.head[part] = first if size else s.NIL
            self.runs.next[first : first + size - 1] = np.arange(first + 1, first + size)
            if size:
                self.runs.next[first + size - 1] = s.NIL
            first += size

    def _load_timers(self, runs: NDArray[np.int64], serials: NDArray[np.int64]) -> None:
        """The heap of pending runs: sorted, which is a heap."""
        order = np.lexsort((serials, self.runs.start[runs]))
        self.registers[s.NEED] = 2 * runs.size + 16
        self.grow_queue()
        self.scratch.timer[: runs.size] = runs[order]
        self.scratch.serial[: runs.size] = serials[order]

    def _load_registers(self, registers: NDArray[np.int64], head: int) -> None:
        """Counters and bounds; what depends on places in arrays stays as it is here."""
        for number in (s.LOW, s.TRIGGERS, s.VISITED, s.MADE, s.MERGED, s.SERIAL):
            self.registers[number] = registers[number]
        self.registers[s.HEAD] = head
        self.registers[s.LIVE] = int(self.parts.size.sum())
        self.registers[s.TIMERS] = int(np.count_nonzero(self.scratch.timer))

    def give_back(self, partitions: int, low: int) -> None:
        """Between two events, while no match waits: let go of what runs have taken that are gone."""
        used = self.collect(low)
        self.nodes = Nodes(*(array[: 2 * used + 2].copy() for array in self.nodes))
        numbers = self.listed(partitions)
        self._load_runs({name: array[numbers] for name, array in self.runs._asdict().items() if name != "next"})
        self._link(self.parts.size[:partitions].copy())
        self.scratch = zeros(Scratch, 16)

    def grow_runs(self) -> None:
        self._free(max(self.runs.state.size, int(self.registers[s.NEED])))

    def grow_nodes(self, low: int) -> None:
        """Collect; double the store if more than half of it is in use even so."""
        need = int(self.registers[s.NEED])
        used = self.collect(low)
        size = self.nodes.previous.size
        while 2 * (used + need) > size:
            size *= 2
        if size > self.nodes.previous.size:
            P = self.nodes.P if self.nodes.P.shape[0] == 1 else longer(self.nodes.P, size)
            others = {name: longer(array, size) for name, array in self.nodes._asdict().items() if name != "P"}
            self.nodes = Nodes(**others, P=P)

    def collect(self, low: int) -> int:
        """Keep what is reachable; how many slots are in use."""
        if self.shared:  # sets that were handed over keep the old arrays
            self.nodes = Nodes(*(array.copy() for array in self.nodes))
            self.shared = False
        self.counts = counts_for(0)  # the nodes get new numbers
        place = np.zeros(self.nodes.previous.size, np.int64)
        place[self._needed()] = 1
        count = self.parts.head.size
        used = int(collect(count, low, self.span, self.memory, place))
        self._moved(place)
        return used

    def _needed(self) -> NDArray[np.int64]:
        """The nodes that stay though no run may be behind them."""
        return np.zeros(0, np.int64)

    def _moved(self, place: NDArray[np.int64]) -> None:
        """Nodes have new numbers."""

    def listed(self, partitions: int) -> NDArray[np.int64]:
        """The numbers of all runs that are in lists, partition by partition, in the order of these."""
        numbers = np.zeros(int(self.parts.size[:partitions].sum()), np.int64)
        list_runs(partitions, self.runs, self.parts, numbers)
        return numbers

    def check_room(self) -> None:
        """Raise a :class:`LimitError` when partial matches take too much memory to let them grow."""
        taken = self.nbytes
        most = most_for_state(taken, MOST_BYTES)
        if taken > most:
            raise LimitError(
                f"partial matches take more than {most >> 20:,} MiB ({self.registers[s.LIVE]:,} runs): a narrower WITHIN, more "
                "conditions, or another strategy than skip_till_any_match keeps fewer"
            )

    def grow_queue(self) -> None:
        need = int(self.registers[s.NEED])
        size = 1 << (need - 1).bit_length()
        old = self.scratch
        kept = {
            name: longer(getattr(old, name), max(size, getattr(old, name).size))
            for name in ("stack", "depth", "owner", "path", "spot", "mark", "timer", "serial")
        }
        self.scratch = zeros(Scratch, size)._replace(**kept)

    def grow_stack(self) -> None:
        need = int(self.registers[s.NEED])
        old = self.scratch
        grown = {name: longer(getattr(old, name), need) for name in ("stack", "depth", "owner", "path", "spot", "mark")}
        self.scratch = old._replace(**grown)

    def fit_counts(self) -> None:
        """Room to count matches; what is known of nodes is kept."""
        if self.counts.node.size <= self.nodes.previous.size:
            self.counts = counts_for(self.nodes.previous.size)

    def grow_output(self) -> None:
        cells = max(2 * self.out.position.size, int(self.registers[s.NEED]))
        self.out = new_output(2 * self.out.start.size, cells)

    def drain(self) -> Matches:
        """Take the matches out of the output buffers."""
        rows, cells = int(self.registers[s.ROWS]), int(self.registers[s.CELLS])
        self.registers[s.ROWS] = self.registers[s.CELLS] = 0
        offset = np.zeros(rows + 1, np.int64)
        offset[1:] = self.out.stop[:rows]
        out = self.out
        found = Matches(out.start[:rows], out.end[:rows], offset, out.position[:cells], out.mark[:cells])
        if 2 * cells > out.position.size:
            self.out = new_output(out.start.size, out.position.size)  # these are given away: cheaper than to copy them
            return found
        return found._replace(**{name: getattr(found, name).copy() for name in found._fields[:5]})

    def drain_counts(self) -> Matches:
        """Take the counted events out of the output buffers."""
        rows = int(self.registers[s.ROWS])
        self.registers[s.ROWS] = 0
        return Matches.copied_counts(self.out, rows)

    def live(self) -> NDArray[np.int64]:
        """The positions of all events that nodes hold, after :meth:`collect`; sorted."""
        used = slice(1, int(self.registers[s.HEAD]))
        mine = self.nodes.label[used] >= 0
        return np.unique(self.nodes.position[used][mine])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return bytes_of(self.runs, self.nodes, self.parts, self.scratch, self.out, self.counts)


def new_runs(size: int, words: int) -> Runs:
    return zeros(Runs, size, V=words + 1)


def new_nodes(size: int, columns: int) -> Nodes:
    nodes = zeros(Nodes, size, P=np.zeros((size if columns else 1, columns + 1), np.int64))
    nodes.start[s.NIL] = NEVER  # nothing lies behind it
    return nodes


def new_output(rows: int, cells: int) -> Output:
    places = {"position": np.empty(cells, np.int64), "mark": np.empty(cells, np.int32)}
    return zeros(Output, rows, **places, visit=np.empty(0, np.int64))


def _with_carries(V: NDArray[np.int64], count: int, slots: list[Slot]) -> NDArray[np.int64]:
    """The value vectors of ``count`` runs; where they come from a version whose averages had no carries, with carries of 0."""
    had = [number for number, slot in enumerate(slots, 1) if slot.op is not Op.CARRY]
    if not count or V.size != count * (len(had) + 1):
        return V
    old = V.reshape(count, len(had) + 1)
    found = np.zeros((count, len(slots) + 1), np.int64)
    found[:, had] = old[:, 1:]
    for before, number in enumerate(had, 1):
        known = (old[:, 0] >> before) & 1
        found[:, 0] |= known << number
        if slots[number - 1].op is Op.WIDE_SUM:
            found[:, 0] |= known << (number + 1)
    return found


def _check_paths(section: Section, components: int, negations: int) -> None:
    """Raise a ValueError where events that a run holds and those that a negation keeps are on one path."""
    #: By node, 0: a run holds it, or k + 1: negation k keeps it.
    kept_by = np.maximum(section.numbers("nodes.label") - components + 1, 0)
    links = [(section.numbers(f"nodes.{name}"), kept_by) for name in ("previous", "other")]
    heads, ends = section.numbers("parts.negated"), section.numbers("runs.node")
    links.append((heads, np.tile(np.arange(1, negations + 1), heads.size // max(1, negations))))
    links.append((ends, np.zeros_like(ends)))
    for nodes, expected in links:
        if ((nodes != s.NIL) & (np.concatenate(([0], kept_by))[nodes] != expected)).any():
            raise ValueError("a path has events of a negation and of none")
