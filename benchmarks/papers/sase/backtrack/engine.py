"""The backtrack algorithm over a table: the runs of a partition one after the other, in place of all at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.papers.sase.backtrack.kernels import BACKTRACKS, CELLS, NEED, READ, REGISTERS, ROWS, Search, explore
from stretto import _jit
from stretto.engines.api import Matches
from stretto.engines.nfab.runner import NfabRunner
from stretto.engines.nfab.state import new_nodes, new_output, new_runs
from stretto.engines.nfab.structure import Events, Memory, Nodes, Parts, Runs, Scratch
from stretto.engines.programs import NfabProgram
from stretto.engines.tecs.enumerate import Output
from stretto.errors import DataError, OptionError

__all__ = ["Backtrack"]

I64 = NDArray[np.int64]


class Backtrack:
    """A program of the NFAb engine, run depth first (SASE+ paper, section 5.2.3).

    It gives the matches of :class:`~stretto.engines.nfab.runner.NfabRunner`, non-overlapping ones included. For these it goes on
    from a postponed run only as far as the best match found so far: another match may end before it.

    Nothing but benchmarks and tests uses it. It reads a whole table, and knows neither negation nor ``LIMIT``.

    Parameters
    ----------
    program
        The compiled query; merging is left out.
    labels
        Tell which variables hold which event (else marks mean nothing).
    capacity
        Initial size of the growing arrays (tests use 1).

    Raises
    ------
    OptionError
        The query has a negation or ``LIMIT``.
    """

    def __init__(self, program: NfabProgram, *, labels: bool = True, capacity: int = 1 << 12) -> None:
        why = self.why_not(program)
        if why:
            raise OptionError(f"{why}: use the NFAb engine")
        self.program = program
        self.labels = labels
        self.capacity = capacity
        #: How many events the last call read, those that it read again included, and to how many runs it went back.
        self.read = 0
        self.backtracks = 0

    @staticmethod
    def why_not(program: NfabProgram) -> str:
        """What of a query backtrack does not do; empty when it does all."""
        if program.nfab.negations:
            return "backtrack does not look for negated events"
        if not program.query.parsed.plain:
            return "backtrack reads components one after the other, each of them there, under one strategy"
        if program.query.parsed.limit is not None:
            return "backtrack finds the matches of an event one here, one there, so LIMIT cannot choose among them"
        return ""

    def match(self, table: pa.Table) -> Matches:
        """All matches, by end."""
        found = list(self.pieces(table))
        sizes = np.concatenate([np.diff(one.offset) for one in found] or [np.empty(0, np.int64)])
        start, end, position, mark = (
            np.concatenate([getattr(one, name) for one in found] or [np.empty(0, np.int64)])
            for name in ("start", "end", "position", "mark")
        )
        order = np.argsort(end, kind="stable")
        first = np.concatenate(([0], np.cumsum(sizes)))[:-1][order]
        offset = np.concatenate(([0], np.cumsum(sizes[order])))
        # Cell k of the result: so many places into its match, which began at first.
        cells = np.arange(offset[-1]) + np.repeat(first - offset[:-1], sizes[order])
        return Matches(start[order], end[order], offset, position[cells], mark[cells].astype(np.int32))

    def pieces(self, table: pa.Table) -> Iterator[Matches]:
        """The matches as they are found: partition by partition, by start."""
        events = self._events(table)
        values = self.program.conditions.values
        machine = self.program.machine._replace(marks=self.labels)
        size = max(4, self.capacity)
        runs = new_runs(size, len(values.slots))
        nodes = new_nodes(size, len(values.columns) if machine.keeps else 0)
        found = _search(np.searchsorted(events.part, events.part, side="right"), size)
        out = new_output(min(16 * size, 1 << 16), min(64 * size, 1 << 20))
        registers = np.zeros(REGISTERS, np.int64)
        nothing = np.zeros(1, np.int64)
        unused = Parts(nothing, nothing, np.zeros((1, 0), np.int64)), Scratch(*(nothing for _ in Scratch._fields))
        while True:
            memory = Memory(runs, nodes, *unused, registers)
            status = explore(self.program.theta, events, machine, memory, found, out)
            self.read, self.backtracks = int(registers[READ]), int(registers[BACKTRACKS])
            if registers[ROWS] and status in (_jit.OUTPUT_FULL, _jit.DONE):
                yield _drained(out, registers)
            match status:
                case _jit.DONE:
                    return
                case _jit.OVERFLOW:
                    raise DataError("a sum or product of the conditions leaves 64 bits: compute with floats")
                case _jit.GROW_TABLE:
                    runs = Runs(*map(_doubled, runs))
                    found = found._replace(at=_doubled(found.at), move=_doubled(found.move))
                case _jit.GROW_NODES:
                    P = _doubled(nodes.P) if machine.keeps else nodes.P
                    longer = {name: _doubled(array) for name, array in nodes._asdict().items() if name != "P"}
                    nodes = Nodes(**longer, P=P)
                    found = found._replace(position=_doubled(found.position), label=_doubled(found.label))
                case _jit.GROW_OUTPUT:
                    out = new_output(2 * out.start.size, max(2 * out.position.size, int(registers[NEED])))

    def _events(self, table: pa.Table) -> Events:
        """The events to visit, those of a partition side by side: the buffer that singletons read again."""
        runner = NfabRunner(self.program, capacity=1)
        chosen = table.select(list(self.program.query.tested)).combine_chunks()
        batch = chosen.to_batches()[0] if chosen.num_rows else pa.RecordBatch.from_pylist([], chosen.schema)
        events = runner.prepare(batch)[0]
        order = np.argsort(events.part, kind="stable")
        return Events(*(np.ascontiguousarray(array[order]) for array in events))


def _drained(out: Output, registers: I64) -> Matches:
    """The matches in the output buffers, which are empty after."""
    rows, cells = int(registers[ROWS]), int(registers[CELLS])
    registers[ROWS] = registers[CELLS] = 0
    offset = np.concatenate(([0], out.stop[:rows]))
    return Matches(
        out.start[:rows].copy(), out.end[:rows].copy(), offset, out.position[:cells].copy(), out.mark[:cells].copy()
    )


def _search(stop: I64, size: int) -> Search:
    at, move, position, label = (np.zeros(size, np.int64) for _ in range(4))
    return Search(stop, at, move, position, label)


def _doubled(array: I64) -> I64:
    """A copy with twice the rows, zero behind the old content."""
    return np.concatenate((array, np.zeros_like(array)))
