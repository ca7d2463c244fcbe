"""A query with counts and sums over all matches: the run of another engine, whose matches are counted and added up.

Where the engine holds them as paths through nodes, that is done there, without listing one (:mod:`stretto.engines.totals.paths`).
Where it decides match by match, each is added up as it is found, and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64, Bits
from stretto.budget import Budget, described_bytes
from stretto.columns.measured import values_of
from stretto.engines.api import Matches, Operator, Reached, Starting
from stretto.engines.match_ops.wrapper import AroundProgram, HoldingRun
from stretto.engines.programs import NfabProgram, TimedProgram
from stretto.engines.totals import paths as t
from stretto.engines.totals import structure as s
from stretto.engines.totals.adding import Values
from stretto.engines.totals.listed import Listed, add_listed
from stretto.engines.totals.paths import Adding, Memo, Seen
from stretto.engines.totals.plan import Asked
from stretto.engines.totals.state import State
from stretto.engines.totals.structure import Store
from stretto.engines.totals.telling import Telling, shown_keys
from stretto.errors import DataError, LimitError
from stretto.frame import Section
from stretto.query.passes.bind_totals import BoundTotals
from stretto.query.query import Consume

#: Events are forgotten when there are so many, and twice as many as were left last time.
FORGET_AT_LEAST = 1 << 14

#: What a kernel does that adds up matches.
INSIDE = "adding"


class Adder(Operator):
    """What a run counts and adds up of its matches.

    Parameters
    ----------
    totals
        What is asked of all matches.
    marks
        The variables of each mark.
    attributes
        The types of the events' columns.
    capacity
        The size that the growing arrays start with.
    budget
        How many bytes the numbers may take; ``None``: a quarter of the memory there is.
    inside
        Whether the run's kernel adds up matches, in place of listing them.
    """

    def __init__(
        self,
        totals: BoundTotals,
        marks: Sequence[frozenset[str]],
        attributes: Mapping[str, pa.DataType],
        *,
        capacity: int,
        budget: Budget | None,
        inside: bool,
    ) -> None:
        self.inside = INSIDE if inside else ""
        self.asked = Asked(totals, starts=True)
        self.panes = totals.scope.panes
        #: Whether it matters how many events came before: windows count them.
        self.numbers = self.panes is not None and self.panes.attribute is None
        plan = self.asked.plan([frozenset(), *marks], apart=False, consume=Consume.NONE)
        self.state = State(plan, vary=bool(self.asked.parts), capacity=capacity, budget=budget)
        self.telling = Telling(self.asked, self.state, attributes, by_partition=False)
        self.variables = self.telling.variables
        self._seen = _seen(max(1, capacity), len(self.asked.slots), len(self.asked.parts))
        self._cells = int(plan.scope[s.SIZE]) if self.state.extent == s.OF_WINDOW else 1
        self._memo = self._memo_for(1)
        self._waiting = np.zeros(max(2, capacity), np.int64)
        self._of: Any = None  # what the memo is of
        self._kept = 0  # events that were left when others were last forgotten
        self._keys: list[str] = [one.attribute for one in self.asked.keys]

    # -- events ---------------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether the kernel has stopped in the midst of an event's matches."""
        return bool(self.state.registers[t.OPEN])

    def see(self, batch: pa.RecordBatch, rows: I64, position: I64, mine: Sequence[Bits]) -> None:
        """The events that are visited next: their rows in a batch and their positions, and by variable which of them it may hold."""
        registers = self.state.registers
        base = self.telling.learn(batch, rows, rows)
        bases = self.telling.bases
        if bases is not None and not self.asked.parts and self.state.extent != s.OF_EVENT:
            self.state.fit_groups(len(bases))
        values = self.telling.values(batch, rows, mine)
        known = int(registers[t.EVENTS])
        until = known + rows.size
        if until > self._seen.position.size:
            self._seen = _with_room(self._seen, max(until, 2 * self._seen.position.size))
        seen = self._seen
        seen.position[known:until], seen.base[known:until] = position, base
        seen.pane[known:until] = self._panes(batch, rows, position)
        for held, own in zip(seen.values, values, strict=True):
            held[:, known:until] = own
        registers[t.EVENTS] = until

    def _panes(self, batch: pa.RecordBatch, rows: I64, position: I64) -> I64:
        if self.panes is None:
            return np.zeros(rows.size, np.int64)
        if self.panes.attribute is None:
            return position // self.panes.width
        column = batch.column(self.panes.attribute).take(pa.array(rows))
        return np.asarray(values_of(column, self.panes.attribute, 0), np.int64) // self.panes.width

    def forget(self, oldest: int | None, live: Callable[[], I64]) -> None:
        """Drop the events that no match holds any more; ``oldest``: ``None`` when ``live`` must be asked."""
        registers, seen = self.state.registers, self._seen
        count = int(registers[t.EVENTS])
        if count <= 2 * self._kept + FORGET_AT_LEAST:
            return
        if oldest is None:
            positions = live()
            oldest = int(positions[0]) if positions.size else np.iinfo(np.int64).max
        gone = int(np.searchsorted(seen.position[:count], oldest))
        for array in (*seen[:3], *seen.values):
            array[..., : count - gone] = array[..., gone:count].copy()
        registers[t.EVENTS] = self._kept = count - gone

    # -- the kernel -----------------------------------------------------------------------------------------------------

    def fit(self, nodes: int, of: Any) -> None:
        """Room for the nodes of a structure, of which nothing is known yet where it is another one than before.

        Raises
        ------
        LimitError
            What is known of them goes over the budget.
        """
        if not self.inside or (self._of is of and self._memo.known.size == nodes):
            return
        self._of, self._memo = of, self._memo_for(nodes)

    def _memo_for(self, nodes: int) -> Memo:
        words = nodes * self.state.columns * self._cells
        if not self.state.budget.holds(0, 8 * words):
            raise LimitError(
                f"the counts of partial matches go over the budget of {self.state.budget}, at {described_bytes(8 * words)}: each of "
                f"{nodes:,} nodes has one for each pane of a window\nhint: a narrower WITHIN has fewer; budget= allows more"
            )
        known, least, latest, part = (np.zeros(nodes, np.int64) for _ in range(4))
        ints = np.zeros(words, np.int64)
        return Memo(known, least, latest, part, Store(ints, ints.view(np.float64)))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernel reads and writes."""
        return (self.adding,) if self.inside else ()

    @property
    def adding(self) -> Adding:
        """The arrays that matches are added up in, as they lie now."""
        state = self.state
        return Adding(
            self._seen, self._memo, self._waiting, state.plan, state.store, state.sums, state.rows, state.registers
        )

    def act(self, status: int, position: int, told: Callable[[Matches], None]) -> Iterator[Matches]:
        """Do what the kernel asks for, at the event in a position.

        Raises
        ------
        IntegerOverflow
            64 bits do not hold a number.
        """
        match status:
            case _jit.OUTPUT_FULL:
                yield from self.telling.drained()
            case _jit.GROW_STACK:
                self._waiting = np.zeros(2 * self._waiting.size, np.int64)
            case _jit.OVERFLOW:
                raise self.telling.overflow(position, self._shown(position))
            case _:
                self.state.grow(status)

    def _shown(self, position: int) -> str:
        """The keys of the event in a position, in words."""
        if not self._keys:
            return ""
        count = int(self.state.registers[t.EVENTS])
        base = self._seen.base[np.searchsorted(self._seen.position[:count], position)]
        columns = self.telling.said.take(np.array([base]))
        return shown_keys(self._keys, pa.RecordBatch.from_arrays(columns, self._keys), 0)

    def made(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """Rows of totals as they are, and what listed matches come to, in the order of their ends. O(their positions)."""
        for one in found:
            if one.totals is not None:
                yield one
                continue
            listed = Listed(one.start, one.end, one.offset, one.position, one.mark)
            self.state.registers[s.CURSOR] = 0
            while (status := add_listed(listed, self.adding)) != _jit.DONE:
                yield from self.act(status, int(one.end[self.state.registers[s.CURSOR]]), _as_it_is)
        if self.state.registers[s.ROWS]:
            yield from self.telling.drained()

    def closed(self, value: int | float) -> Iterator[Matches]:
        """Give the windows that are over when what they measure has come so far."""
        if self.panes is not None:
            yield from self.telling.closed(int(value) // self.panes.width)

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give the rows of the whole table, and those of windows that are open."""
        yield from self.telling.finish()

    # -- what is held -----------------------------------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Whether there are matches of which no row was given yet."""
        return self.state.extent != s.OF_EVENT and bool(self.state.groups.size)

    @property
    def closes(self) -> int | None:
        """When the next window ends that has matches; ``None``: none has."""
        if self.panes is None or not self.state.registers[s.LIVE]:
            return None
        return int(self.state.registers[s.NEXT]) * self.panes.slide + self.panes.size

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        seen = sum(array.nbytes for array in (*self._seen[:3], *self._seen.values))
        memo = sum(array.nbytes for array in self._memo[:4]) + self._memo.store.ints.nbytes
        return int(self.state.nbytes + self.telling.nbytes + seen + memo + self._waiting.nbytes)

    # -- snapshots --------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the events, the numbers, and the values of groups."""
        self.state.save(section.sub("numbers"))
        self.telling.save(section)
        count = int(self.state.registers[t.EVENTS])
        own = section.sub("seen")
        own.arrays |= {name: getattr(self._seen, name)[:count].copy() for name in ("position", "pane", "base")}
        for name, array in self._seen.values._asdict().items():
            own.arrays[name] = np.ascontiguousarray(array[:, :count]).ravel()

    def load(self, section: Section, run: Reached) -> None:
        """Take over, from the beginning, what :meth:`save` wrote of a run."""
        self.telling.load(section)
        bases = 1 if self.telling.bases is None else len(self.telling.bases)
        self.state.load(section.sub("numbers"), 0, np.zeros(0, np.int64), bases, 0)
        own = section.sub("seen")
        count = own.numbers("position", least=0, below=run.rows, rising=True).size
        # Under strict contiguity there are events without a key, of group −1, which no match holds.
        own.arrays["base"] = np.maximum(own.numbers("base", size=count, least=-1, below=max(1, bases)), 0)
        own.numbers("pane", size=count, ordered=True)
        self.state.registers[t.EVENTS] = count
        self._seen = _with_room(self._seen, count)
        for name in ("position", "pane", "base"):
            getattr(self._seen, name)[:count] = own.arrays[name]
        for name, array in self._seen.values._asdict().items():
            array[:, :count] = own.arrays[name].reshape(array.shape[0], count)
        self._of = None

    def take_over(self, old: Adder, unknown: frozenset[str], run: Reached) -> None:
        """Go on where the adder of the same query over columns of narrower types stands.

        Raises
        ------
        DataError
            What it holds depends on the types that the columns had.
        """
        if len(self.telling.asked.slots) != len(old.telling.asked.slots):
            raise DataError("what is kept of them depends on it")
        there = Section()
        old.save(there)
        self.telling.retype(there.sub("numbers"), old.telling, unknown)
        self.load(there, run)


def _seen(events: int, slots: int, parts: int) -> Seen:
    ints, reals = np.zeros((slots, events), np.int64), np.zeros((slots, events), np.float64)
    known, says = np.zeros((slots, events), np.bool_), np.zeros((parts, events), np.int64)
    position, pane, base = np.zeros((3, events), np.int64)
    return Seen(position, pane, base, Values(ints, reals, known, says))


def _with_room(seen: Seen, events: int) -> Seen:
    """The same with room for so many events at least."""
    have = seen.position.size
    if events <= have:
        return seen
    position, pane, base = (_longer(array, events) for array in seen[:3])
    return Seen(position, pane, base, Values(*[_longer(array, events) for array in seen.values]))


def _longer(array: NDArray[Any], events: int) -> NDArray[Any]:
    longer = np.zeros((*array.shape[:-1], events), array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


class AddedProgram(AroundProgram["AddedRun"]):
    """A :class:`~stretto.engines.api.Program` whose rows are counts and sums.

    Parameters
    ----------
    machine
        What finds the matches.
    totals
        What is asked of them.
    """

    machine: NfabProgram | TimedProgram

    def __init__(self, machine: NfabProgram | TimedProgram, totals: BoundTotals) -> None:
        super().__init__(machine, totals)
        self.totals = totals

    def started(self, how: Starting) -> AddedRun:
        """A run from the beginning of a stream."""
        adder = Adder(
            self.totals,
            self.marks,
            self.machine.query.schema.attributes,
            capacity=how.capacity,
            budget=how.budget,
            inside=INSIDE in self.machine.inside,
        )
        return AddedRun(self, self.machine.started(how._replace(counts=False, labels=True, operator=adder)), adder)


class AddedRun(HoldingRun):
    """A :class:`~stretto.engines.api.Run`."""

    BESIDE = "totals"
    beside: Adder

    @property
    def expires(self) -> int | float | None:
        """When the next window ends that has matches; where none has, as the machine's run."""
        closes, panes = self.beside.closes, self.beside.panes
        if closes is None or panes is None or panes.attribute != self.run.schema.time:
            return self.run.expires
        return closes

    @property
    def oldest(self) -> int | None:
        """Rows before this one can be named by no row to come; ``None`` when :meth:`live` must be asked."""
        return self.run.oldest if self.beside.state.extent == s.OF_EVENT else self.run.rows

    def live(self) -> I64:
        """The rows that a row to come may name."""
        return self.run.live() if self.beside.state.extent == s.OF_EVENT else np.zeros(0, np.int64)


def _as_it_is(_: Matches) -> None:
    """Marks of listed matches say which variable holds each event."""
