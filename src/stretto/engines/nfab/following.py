"""One stream through :mod:`stretto.engines.nfab.partial`: partial matches that are followed, to be shown when their windows close."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64, Bits
from stretto.engines.match_ops import timeout_tracker as following
from stretto.engines.match_ops.timeout_tracker import Following, Places
from stretto.engines.nfab import structure as s
from stretto.engines.nfab.compiled import Compiled
from stretto.engines.nfab.partial import NONE, WORDS, Firsts, follow
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.nfab.state import NEVER, NfabState
from stretto.engines.store import grown, zeros
from stretto.frame import Section
from stretto.query.sase import places


class FollowingState(following.FollowingState, NfabState):
    """The arrays of runs that are followed, and of their first events."""

    firsts: Firsts

    def __init__(self, *, words: int, capacity: int, **others: Any) -> None:
        super().__init__(words=words + WORDS, capacity=capacity, **others)
        self.firsts = _room_for(capacity)

    @property
    def count(self) -> int:
        """How many first events there are, those that are gone included."""
        return int(self.firsts.used[0])

    def grow_firsts(self) -> None:
        """Room for twice as many."""
        self.firsts = grown(self.firsts, 2 * max(1, self.count))._replace(used=self.firsts.used)

    def waits(self, slots: I64) -> Bits:
        waits: Bits = super().waits(slots) & (self.firsts.node[slots] != s.NIL)
        return waits

    def _needed(self) -> I64:
        nodes = self.firsts.node[: self.count]
        nodes[: self.open.size][~self.open] = s.NIL  # those of the batch at hand are behind
        return nodes

    def _moved(self, place: I64) -> None:
        nodes = self.firsts.node[: self.count]
        nodes[:] = place[nodes]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        own = (*self.firsts, self.measure, self.open)
        return super().nbytes + sum(array.nbytes for array in own)

    def sweep_firsts(self, partitions: int) -> None:
        """Leave out the first events that are gone; runs that begin there are no longer followed. O(runs + first events)."""
        count = self.count
        kept = np.flatnonzero(self.open[:count])
        renamed = np.full(count + 1, NONE, np.int64)  # the last for those that had none
        renamed[kept] = np.arange(kept.size)
        runs, word = self.listed(partitions), self.runs.V.shape[1] - 2
        self.runs.V[runs, word] = renamed[self.runs.V[runs, word]]
        self.runs.start[runs[self.runs.V[runs, word] == NONE]] = NEVER
        for name, array in self.firsts._asdict().items():
            if name != "used":
                array[: kept.size] = array[kept]
        self.firsts.used[0] = kept.size
        self.keep_firsts(kept)

    def save(self, section: Section, partitions: int) -> None:
        """Do what all runs do, for the first events as well."""
        super().save(section, partitions)
        for name, array in self.firsts._asdict().items():
            section.arrays[f"firsts.{name}"] = array[: self.count].copy() if name != "used" else array.copy()
        self.save_firsts(section)

    def load(self, section: Section, *others: Any) -> None:
        """Do what all runs do, for the first events as well."""
        super().load(section, *others)
        count = int(section.numbers("firsts.used", size=1, least=0)[0])
        section.numbers("firsts.part", size=count, least=0, below=max(1, self.parts.size.size))
        section.numbers("firsts.node", size=count, least=s.NIL, below=int(self.registers[s.HEAD]))
        self._check_lengths(section.numbers("firsts.node"), section.numbers("firsts.length", size=count))
        followed = self.runs.V[1 : 1 + section.arrays["runs.state"].size, -2]
        if ((followed < NONE) | (followed >= count)).any():
            raise ValueError("a run follows a first event that is not there")
        self.firsts = _room_for(2 * max(1, count))
        for name, array in self.firsts._asdict().items():
            known = section.numbers(f"firsts.{name}", size=1 if name == "used" else count)
            array[: known.size] = known
        self.load_firsts(section)

    def _check_lengths(self, node: NDArray[np.int64], length: NDArray[np.int64]) -> None:
        """Raise unless so many events lead to some nodes. O(their events)."""
        nodes, found, own = self.nodes, np.zeros_like(length), np.arange(node.size)
        while node.size:
            own, node = own[node != s.NIL], node[node != s.NIL]
            found[own] += 1
            if (nodes.label[node] < 0).any():
                raise ValueError("a first event leads to a node without one")
            node = nodes.previous[node]
        if (found != length).any():
            raise ValueError("the partial matches of first events have other lengths")


def _room_for(size: int) -> Firsts:
    return zeros(Firsts, max(1, size), used=np.zeros(1, np.int64))


class FollowingRun(Following, NfabRunner):
    """A stream of an NFAb program whose partial matches are followed.

    The parameters are those of :class:`NfabRunner`.
    """

    state_type: ClassVar[type[NfabState]] = FollowingState
    state: FollowingState

    def __init__(self, program: Compiled, *, late: str, capacity: int) -> None:
        super().__init__(program, late=late, capacity=capacity)
        self.by_rank = self.counted
        machine = program.machine
        components = machine.kleene.size
        ends = (machine.left < 0) | (machine.right == components)
        named = np.array([program.named(one) for one in program.nfab.negations], np.int64)
        #: What must not be before or behind a match is asked of whole matches; else a negation, when all is there that it names.
        right = np.where(ends, components, named)
        self.machine = machine._replace(right=right, merges=not program.why_single)
        parsed = program.query.parsed
        found = places(parsed.parts)
        self.place: I64 = np.array([found[one.variable] for one in parsed.positive], np.int64)

    def _read(self, batch: pa.RecordBatch) -> None:
        events, _ = self.prepare(batch)
        state = self.state
        state.registers[s.CURSOR] = state.registers[s.BUSY] = 0
        while True:
            status = follow(self.theta, events, self.machine, self.place, state.memory, state.firsts)
            if status == _jit.DONE:
                return
            if status == _jit.GROW_OUTPUT:
                state.grow_firsts()
                state.check_room()
                continue
            for _ in self._act(status, events):
                raise AssertionError("nothing is written")

    def _sweep_firsts(self) -> None:
        self.state.sweep_firsts(self.partitions)

    def _places(self, slots: I64) -> Places:
        state = self.state
        offset = np.zeros(slots.size + 1, np.int64)
        np.cumsum(state.firsts.length[slots], out=offset[1:])
        position, mark = np.zeros(offset[-1], np.int64), np.zeros(offset[-1], np.int32)
        node, at = state.firsts.node[slots], offset[1:] - 1
        while node.size:  # the last events of all, then those before them
            position[at], mark[at] = state.nodes.position[node], state.nodes.label[node]
            node, at = state.nodes.previous[node], at - 1
            node, at = node[node != s.NIL], at[node != s.NIL]
        first, last = offset[:-1], offset[1:] - 1
        return Places(position[first], position[last], offset, position, mark, mark[last].astype(np.int64))

    def live(self) -> I64:
        """The rows that partial matches hold (sorted)."""
        self._sweep_firsts()
        return super().live()

    def forget(self) -> None:
        """Do what all runs do, and forget the first events that are gone."""
        self._sweep_firsts()
        super().forget()
