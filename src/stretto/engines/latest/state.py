"""What a stream leaves behind in the engine of EQL, and how its arrays grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.array_types import I64
from stretto.engines.api import Matches
from stretto.engines.latest import structure as s
from stretto.engines.latest.kernels import listed
from stretto.engines.latest.structure import NIL, Joined, Nodes, Out, Parts, Samples
from stretto.engines.store import bytes_of, grown, over, zeros
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.memory import most_for_state

#: Partial matches that take more bytes than this are refused, or than the machine can give.
MOST_BYTES = 4 << 30

#: What is kept of a chain beside its positions.
_KEPT = ("spoilt", "before", "key")


class LatestState:
    """The arrays of one stream: ``steps`` events that must come, ``seen`` that are looked for besides."""

    by_key: Any  #: arrays with a row for each key

    def __init__(self, steps: int, seen: int, capacity: int) -> None:
        self.steps, self.seen = steps, seen
        self.registers = np.zeros(s.REGISTERS, np.int64)
        self._begin(max(2, capacity))
        self.out = self._output(max(1, capacity))

    def _begin(self, size: int) -> None:
        """No chain, and room for so many nodes."""
        self.registers[s.HEAD] = 1
        self.registers[[s.FREE, s.LIVE, s.TIMERS]] = 0
        self.nodes = zeros(Nodes, size)
        self.by_key = self._fresh(1)

    def _fresh(self, keys: int) -> Any:
        """Keys of which nothing is known."""
        return Parts(np.zeros((keys, max(0, self.steps - 1)), np.int64), np.full((keys, self.seen), -1, np.int64))

    def _output(self, rows: int) -> Out:
        cells = rows * self.steps
        return zeros(Out, rows, position=np.empty(cells, np.int64), mark=np.empty(cells, np.int32))

    def fit(self, keys: int) -> None:
        """Room for ``keys``."""
        have = len(self.by_key[0])
        if have < keys:
            self.by_key = over(self.by_key, self._fresh(max(keys, 2 * have)))
            self._check_room()

    def grow_nodes(self) -> None:
        """Room for twice as many nodes."""
        self.nodes = grown(self.nodes, 2 * self.nodes.position.size + self.steps)
        self._check_room()

    def _check_room(self) -> None:
        taken = self.nbytes
        most = most_for_state(taken, MOST_BYTES)
        if taken > most:
            raise LimitError(
                f"partial matches take more than {most >> 20:,} MiB ({self.registers[s.LIVE]:,} events of "
                f"{len(self.by_key[0]):,} keys): a narrower maxspan keeps fewer"
            )

    def renumber(self, renamed: I64, rows: I64) -> None:
        """Keys have new numbers; ``rows`` are those that stay, in their order."""
        self.by_key = over([array[rows] for array in self.by_key], self._fresh(max(1, rows.size)))
        live = slice(1, int(self.registers[s.HEAD]))
        keys = self.nodes.key[live]
        keys[:] = np.where(keys < renamed.size, renamed[np.minimum(keys, renamed.size - 1)], 0)

    def drain(self) -> Matches:
        """Take the matches out of the output buffers."""
        rows, cells = int(self.registers[s.ROWS]), int(self.registers[s.CELLS])
        self.registers[[s.ROWS, s.CELLS]] = 0
        found = Matches.copied(self.out, rows, cells)
        if rows == self.out.start.size and rows < 1 << 14:  # it was full: a larger one is filled less often
            self.out = self._output(4 * rows)
        return found

    def chains(self, keys: int) -> tuple[I64, I64]:
        """All chains: of each its last node and its step (−1: it waits); and the positions of each, from its last event on."""
        most = int(self.registers[s.LIVE])
        chain, position = np.zeros(2 * most + 2, np.int64), np.zeros(most + 1, np.int64)
        count = int(listed(keys, self.nodes, self.by_key, self.registers, chain, position))
        return chain[: 2 * count].reshape(count, 2), position[:most]

    def live(self, keys: int) -> I64:
        """The positions of all events that partial matches hold; sorted."""
        return np.unique(self.chains(keys)[1])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return bytes_of(self.nodes, self.by_key, self.out)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def save(self, section: Section, keys: int) -> None:
        """Write the chains, and what was seen by key."""
        chain, position = self.chains(keys)
        arrays = section.arrays
        arrays["chains.step"] = chain[:, 1].copy()
        arrays |= {f"chains.{name}": getattr(self.nodes, name)[chain[:, 0]] for name in _KEPT}
        arrays["chains.length"] = self._lengths(chain)
        arrays["positions"] = position.copy()
        arrays["seen"] = self.by_key.seen[:keys].ravel()
        arrays["counts"] = self.registers[[s.VISITED, s.TRIGGERS, s.LOW]]

    def _lengths(self, chain: NDArray[Any]) -> I64:
        return np.where(chain[:, 1] < 0, self.steps, chain[:, 1] + 1)

    def load(self, section: Section, keys: int, rows: int) -> None:
        """Take over what :meth:`save` wrote of a stream of so many rows."""
        arrays = {name: array.astype(np.int64) for name, array in section.arrays.items() if name != "words"}
        position = section.numbers("positions", least=0, below=rows)
        steps = section.numbers("chains.step", least=-1, below=self.steps)
        lengths = section.numbers("chains.length", size=steps.size)
        if (lengths != np.where(steps < 0, self.steps, steps + 1)).any() or int(lengths.sum()) != position.size:
            raise ValueError("chains have other lengths")
        section.numbers("chains.key", size=steps.size, least=0, below=max(1, keys))
        self._begin(2 * position.size + 2)
        self.fit(max(1, keys))
        self.by_key.seen[:keys] = arrays["seen"].reshape(keys, self.seen)
        nodes, registers = self.nodes, self.registers
        last = np.cumsum(lengths) - lengths + 1  # node k+1 holds position k
        every = np.arange(1, position.size + 1)
        nodes.position[every] = position
        nodes.previous[every] = every + 1
        first = last + lengths - 1
        nodes.previous[first] = NIL
        nodes.start[every] = np.repeat(position[first - 1], lengths)
        for name in _KEPT:
            getattr(nodes, name)[every] = np.repeat(arrays[f"chains.{name}"], lengths)
        registers[s.HEAD], registers[s.LIVE] = position.size + 1, position.size
        step, key = arrays["chains.step"], arrays["chains.key"]
        goes = step >= 0
        self.by_key.head[key[goes], step[goes]] = last[goes]
        waits = last[~goes][np.argsort(nodes.start[last[~goes]], kind="stable")]  # sorted, which is a heap
        nodes.timer[: waits.size] = waits
        registers[s.TIMERS] = waits.size
        registers[[s.VISITED, s.TRIGGERS, s.LOW]] = arrays["counts"]


class SampleState(LatestState):
    """The arrays of one stream of which samples are taken; no key is forgotten, as it would be sampled again."""

    def __init__(self, steps: int, seen: int, capacity: int) -> None:
        super().__init__(steps, seen, capacity)
        self.out = self._output(max(steps, capacity))
        self.chosen = np.zeros(steps, np.int64)

    def _fresh(self, keys: int) -> Samples:
        return Samples(np.zeros((keys, self.steps, self.steps), np.int64), np.zeros((keys, self.steps + 1), np.int64))

    def live(self, keys: int) -> I64:
        """The positions of the events of keys that have no sample yet; sorted."""
        position, count = (one[:keys] for one in self.by_key)
        some = np.arange(self.steps) < count[:, : self.steps, None]
        return np.unique(position[some & (count[:, self.steps] == 0)[:, None, None]])

    def save(self, section: Section, keys: int) -> None:
        """Write the first events of each step by key."""
        section.arrays["samples.position"] = self.by_key.position[:keys].ravel()
        section.arrays["samples.number"] = self.by_key.number[:keys].ravel()
        section.arrays["counts"] = self.registers[[s.VISITED, s.TRIGGERS, s.LOW]]

    def load(self, section: Section, keys: int, rows: int) -> None:
        """Take over what :meth:`save` wrote of a stream of so many rows."""
        self.fit(keys)
        section.numbers("samples.position", least=0, below=max(1, rows))
        section.numbers("samples.number", size=keys * (self.steps + 1), least=0, below=self.steps + 1)
        for name, array in self.by_key._asdict().items():
            array[:keys] = section.arrays[f"samples.{name}"].reshape((keys, *array.shape[1:]))
        self.registers[[s.VISITED, s.TRIGGERS, s.LOW]] = section.arrays["counts"]


class JoinState(LatestState):
    """The arrays of one stream whose events are joined."""

    def __init__(self, steps: int, seen: int, capacity: int) -> None:
        super().__init__(steps, seen, capacity)
        self.out = self._output(max(steps, capacity))

    def _fresh(self, keys: int) -> Joined:
        return Joined(np.full((keys, self.steps), -1, np.int64), np.zeros(keys, np.int64))

    def live(self, keys: int) -> I64:
        """The positions of all events that keys hold; sorted."""
        position = self.by_key.position[:keys]
        return np.unique(position[position >= 0])

    def save(self, section: Section, keys: int) -> None:
        """Write the event of each step by key."""
        section.arrays["joined.position"] = self.by_key.position[:keys].ravel()
        section.arrays["counts"] = self.registers[[s.VISITED, s.TRIGGERS, s.LOW]]

    def load(self, section: Section, keys: int, rows: int) -> None:
        """Take over what :meth:`save` wrote of a stream of so many rows."""
        self.fit(keys)
        position, number = self.by_key
        position[:keys] = section.numbers("joined.position", least=-1, below=rows).reshape(keys, self.steps)
        number[:] = (position >= 0).sum(axis=1)
        self.registers[s.LIVE] = number.sum()
        self.registers[[s.VISITED, s.TRIGGERS, s.LOW]] = section.arrays["counts"]
