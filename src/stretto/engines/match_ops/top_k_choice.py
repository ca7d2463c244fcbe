"""The choice of a run: what its events add to scores, what it asks of the kernel, and the matches that are held for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto import _jit
from stretto.array_types import I64, Bits
from stretto.budget import Budget, described_bytes
from stretto.columns.arrays import numbers_of, reals_of_decimals, roomy, valid_of
from stretto.columns.keys import KeyTable
from stretto.columns.measured import values_of
from stretto.columns.overflow import IntegerOverflow, located
from stretto.columns.vectorized import computed
from stretto.engines.api import Matches, Operator, Reached
from stretto.engines.limits import TooMany
from stretto.engines.match_ops import top_k_arrays as k
from stretto.engines.match_ops.top_k_arrays import Bounds, Lists, Memo, Picked, Picker, Scratch, Seen, Values
from stretto.engines.match_ops.top_k_held import Held, Rows
from stretto.engines.shared.counting import Counts
from stretto.engines.store import bytes_of, with_room, zeros
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.query.passes.bind_totals import BoundBest, BoundSample, BoundTotal
from stretto.query.totals import Extent, Function

#: Matches that were chosen are held, and bounds rise, when so many wait.
ROWS = 1 << 12
CELLS = 1 << 14

#: Values of events are forgotten when there are so many, and twice as many as were left last time.
FORGET_AT_LEAST = 1 << 14

#: So many matches are no choice.
MOST = 1 << 20

#: What is known of a node in one window takes about so much.
NODE_BYTES = 40

#: What is known of nodes, and what is made while choosing, takes so many bytes at most.
MOST_BYTES = 1 << 30

#: Events whose value leaves 64 bits are set aside, so long as they are few: only in a match do they matter.
FEW = 64


class Choice(Operator):
    """What a run chooses among its matches.

    Parameters
    ----------
    asked
        What is asked of all matches together.
    marks
        The variables of each mark.
    capacity
        The size that the growing arrays start with.
    budget
        How many bytes of matches it may hold.

    Raises
    ------
    LimitError
        So many matches are no choice.
    """

    inside = "choosing"

    def __init__(
        self, asked: BoundBest | BoundSample, marks: Sequence[frozenset[str]], *, capacity: int, budget: Budget
    ) -> None:
        scope, panes = asked.scope, asked.scope.panes
        if asked.most > MOST:
            raise LimitError(
                f"{asked.most:,} matches of all are no choice, of which at most {MOST:,} are held\nhint: list all of them"
            )
        self.asked, self.budget = asked, budget
        self.small = max(2, capacity)
        self.scores = np.dtype(np.int64 if isinstance(asked, BoundBest) and asked.exact else np.float64)
        self.items = asked.score if isinstance(asked, BoundBest) else ()
        self.panes = panes
        #: Whether it matters how many events came before: samples are drawn by their numbers, and windows may count them.
        self.numbers = isinstance(asked, BoundSample) or (panes is not None and panes.attribute is None)
        self.bounded = scope.extent is not Extent.EVENT
        self.keys = [one for one in scope.groups if one.variable is None]
        self.groups = KeyTable([one.type for one in self.keys]) if self.keys and self.bounded else None
        #: Whether anything of an event is asked for when a match that holds it is complete.
        self.remembers = bool(self.items) or panes is not None
        self.held = Held(asked.most, self.scores)
        self.seen = Seen(np.zeros(0, np.int64), np.zeros(0, np.int64))
        registers = np.zeros(k.REGISTERS, np.int64)
        registers[k.MOST], registers[k.BOUNDED] = asked.most, self.bounded
        registers[k.EXACT] = self.scores == np.int64
        registers[k.SAMPLING] = isinstance(asked, BoundSample)
        registers[k.SEED] = asked.seed if isinstance(asked, BoundSample) else 0
        registers[k.SETS] = 1
        if panes is not None:
            registers[k.SIZE], registers[k.SLIDE] = panes.size, panes.slide
            registers[k.SETS] = -(-panes.size // panes.slide)
        self.sets = int(registers[k.SETS])
        holds = [[item.variable in labels for item in self.items] for labels in marks]
        self.picker = Picker(
            _values(self.small, len(self.items), self.scores, np.array(holds, np.bool_).reshape(len(marks), -1)),
            _memo(self.sets, 1, self.scores),
            _lists(1, self.small, self.scores),
            _counts(self.sets, 1),
            Bounds(np.zeros((1, self.sets), np.int64), np.zeros((1, self.sets), self.scores)),
            _scratch(self.small, asked.most if isinstance(asked, BoundSample) else 0),
            _picked(min(ROWS, self.small), min(CELLS, 4 * self.small), self.scores),
            registers,
        )
        self._of: Any = None  # what the memo is of …
        self._slots = 0  # … and how many nodes that has room for
        self._kept = 0  # events of which the values were left when they were last forgotten

    # -- events ---------------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether the kernel has stopped in the midst of choosing."""
        return bool(self.picker.registers[k.OPEN])

    def see(self, batch: pa.RecordBatch, rows: I64, position: I64, mine: Sequence[Bits]) -> None:
        """The events that are visited next, of which it remembers what they add to scores."""
        count = rows.size
        table = batch.take(pa.array(rows)) if count < batch.num_rows else batch
        time = group = np.zeros(count, np.int64)
        if self.panes is not None and self.panes.attribute is None:
            time = position
        elif self.panes is not None:
            assert self.panes.attribute is not None
            time = values_of(table.column(self.panes.attribute), self.panes.attribute, 0).astype(np.int64)
        if self.groups is not None:
            names = [one.attribute for one in self.keys]
            group = self.groups.ids([table.column(name) for name in names], np.arange(count))
            self._fit_groups()
        self.seen = Seen(time, group)
        if not self.remembers:
            return
        values, known = self.picker.values, int(self.picker.registers[k.EVENTS])
        if known + count > values.position.size:
            values = _with_room(values, known + count)
            self.picker = self.picker._replace(values=values)
        values.position[known : known + count] = position
        values.time[known : known + count] = time
        for at, item in enumerate(self.items):
            values.value[known : known + count, at] = self._worth(at, item, table, position)
        self.picker.registers[k.EVENTS] = known + count

    def _worth(self, at: int, item: BoundTotal, table: pa.RecordBatch, position: I64) -> NDArray[Any]:
        """What each event adds to a score where it counts, the greater the better."""
        assert isinstance(self.asked, BoundBest)
        factor = self.asked.factors[at] if self.asked.descending else -self.asked.factors[at]
        lost: list[int] = []
        array = self._computed(item, table, position, lost)
        valid = valid_of(array)
        known = np.ones(len(array), np.bool_) if valid is None else valid
        if item.function is Function.COUNT:
            worth = np.where(known, factor, 0).astype(self.scores)
        elif self.scores == np.float64:
            real = reals_of_decimals(array) if pa.types.is_decimal(array.type) else array
            with np.errstate(all="ignore"):
                worth = numbers_of(real).astype(np.float64) * factor
            # A match with a value that is no finite number comes behind all others.
            worth = np.where(known, np.where(np.isfinite(worth), worth, -np.inf), 0.0)
        else:
            worth = _exactly(array, known, int(factor))
        worth[lost] = np.nan if self.scores == np.float64 else k.LOST
        return worth

    def _computed(self, item: BoundTotal, table: pa.RecordBatch, position: I64, lost: list[int]) -> pa.Array:
        """The values of an item; NULL, and ``lost``, where they leave 64 bits."""
        assert item.value is not None
        assert item.kind is not None
        value, kind = item.value, item.kind
        try:
            found = computed(value, table, kind)
        except IntegerOverflow:
            found = self._piecewise(lambda part: computed(value, part, kind), kind, table, position, lost)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found

    def _piecewise(
        self,
        compute: Callable[[pa.RecordBatch], pa.Array],
        kind: pa.DataType,
        table: pa.RecordBatch,
        position: I64,
        lost: list[int],
    ) -> pa.Array:
        """Compute what can be; only an event of a match need have a value."""
        pieces, begin = [], 0
        while True:
            try:
                pieces.append(located(compute, table.slice(begin)))
                return pa.concat_arrays(pieces)
            except IntegerOverflow as error:
                row = begin + (error.row or 0)
                if len(lost) == FEW:
                    raise IntegerOverflow(error.what, error.why, int(position[row])) from None
            pieces += [compute(table.slice(begin, row - begin)), pa.nulls(1, kind)]
            lost.append(row)
            begin = row + 1

    def forget(self, oldest: int | None, live: Callable[[], I64]) -> None:
        """Drop the values of events that no match holds any more; ``oldest``: ``None`` when ``live`` must be asked."""
        registers, values = self.picker.registers, self.picker.values
        count = int(registers[k.EVENTS])
        if count <= 2 * self._kept + FORGET_AT_LEAST:
            return
        if oldest is None:
            positions = live()
            oldest = int(positions[0]) if positions.size else np.iinfo(np.int64).max
        self._drop(int(np.searchsorted(values.position[:count], oldest)), count)

    def _drop(self, gone: int, count: int) -> None:
        """Drop the first so many of so many events."""
        for array in self.picker.values[:3]:
            array[: count - gone] = array[gone:count].copy()
        self.picker.registers[k.EVENTS] = self._kept = count - gone

    # -- the kernel -----------------------------------------------------------------------------------------------------

    def fit(self, slots: int, of: Any) -> None:
        """Room for the nodes of a structure, of which nothing is known yet where it is another one than before."""
        if not self.inside or (self._of is of and self._slots == slots):
            return
        self._of, self._slots = of, slots
        if self.sets * slots * NODE_BYTES > MOST_BYTES:
            raise LimitError(
                f"{self.sets:,} windows are open at once, and what is known of {slots:,} nodes for each takes more than "
                f"{MOST_BYTES >> 20:,} MiB\nhint: begin windows less often, or a narrower WITHIN"
            )
        if isinstance(self.asked, BoundSample):
            self.picker = self.picker._replace(counts=_counts(self.sets, slots))
        else:
            entries = self.picker.lists.node.size
            memo, lists = _memo(self.sets, slots, self.scores), _lists(slots, entries, self.scores)
            self.picker = self.picker._replace(memo=memo, lists=lists)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernel reads and writes."""
        return (self.seen, self.picker) if self.inside else ()

    def act(self, status: int, position: int, told: Callable[[Matches], None]) -> Iterator[Matches]:
        """Do what the kernel asks for, at the event in a position; ``told`` completes the marks of matches."""
        match status:
            case _jit.OUTPUT_FULL:
                yield from self.drain(told)
            case _jit.GROW_OUTPUT:
                out = self.picker.out
                self.picker = self.picker._replace(out=_picked(2 * out.start.size, 2 * out.position.size, self.scores))
            case _jit.GROW_STACK:
                self._grow()
            case _jit.OVERFLOW:
                raise self.overflow(position)

    def overflow(self, position: int) -> IntegerOverflow:
        """What 64 bits do not hold, in a match that ends at a position."""
        why = "compute with floats, and add up with CAST(SUM(…) AS DOUBLE)"
        return IntegerOverflow("a score leaves 64 bits in the match that ends", why, position)

    def _grow(self) -> None:
        """Twice the room for all that is made while choosing."""
        picker = self.picker
        if sum(array.nbytes for array in (*picker.lists, *picker.scratch)) > MOST_BYTES:
            raise LimitError(
                f"{self.asked.most:,} matches of the event take more than {MOST_BYTES >> 20:,} MiB to choose\n"
                "hint: a smaller number, or a narrower WITHIN"
            )
        lists = {
            name: roomy(getattr(picker.lists, name), 2 * picker.lists.node.size)
            for name in ("score", "start", "node", "below", "next")
        }
        room = 2 * picker.scratch.waiting.size
        scratch = {name: roomy(getattr(picker.scratch, name), room) for name in ("waiting", "cursor", "spot", "mark")}
        self.picker = picker._replace(lists=picker.lists._replace(**lists), scratch=picker.scratch._replace(**scratch))

    def drain(self, told: Callable[[Matches], None]) -> Iterator[Matches]:
        """Take the chosen matches out of the output: they are given, or held and compared."""
        registers, out = self.picker.registers, self.picker.out
        rows, cells = int(registers[k.ROWS]), int(registers[k.CELLS])
        registers[k.ROWS] = registers[k.CELLS] = 0
        if not rows:
            return
        offset = np.zeros(rows + 1, np.int64)
        offset[1:] = out.stop[:rows]
        start, end = out.start[:rows].copy(), out.end[:rows].copy()
        found = Matches(start, end, offset, out.position[:cells].copy(), out.mark[:cells].copy())
        told(found)
        if not self.bounded:
            yield found
            return
        scores, group, window = (array[:rows].copy() for array in (out.score, out.group, out.window))
        self.hold(Rows(start, end, offset, found.position, found.mark, scores, group, window))

    def hold(self, rows: Rows) -> None:
        """Hold those of some rows that are among the foremost.

        Raises
        ------
        TooMany
            What is held goes over the budget.
        """
        if self.held.add(rows):
            self._raise_bounds()
        if not self.budget.holds(len(self.held), self.held.nbytes):
            self.held.settle()
            self._raise_bounds()
        if not self.budget.holds(len(self.held), self.held.nbytes):
            what = f"has a match to hold, which take {described_bytes(self.held.nbytes)} with those of all groups and windows"
            raise TooMany(int(rows.end[-1]), what, "a smaller number, or fewer groups or windows", self.budget)

    def _fit_groups(self) -> None:
        assert self.groups is not None
        bounds, count = self.picker.bounds, len(self.groups)
        if count > bounds.window.shape[0]:
            self.picker = self.picker._replace(bounds=with_room(bounds, 2 * count))

    def _raise_bounds(self) -> None:
        """A match must be as good as the last one that its group has, where that has as many as are asked for."""
        window, group, score = self.held.full()
        bounds = self.picker.bounds
        bounds.window[group, window % self.sets] = 2 * window + 1
        bounds.score[group, window % self.sets] = score

    def made(self, found: Iterator[Matches]) -> Iterator[Matches]:
        """What a run gives whose kernel has chosen already."""
        return found

    # -- what is given ----------------------------------------------------------------------------------------------------

    def closed(self, value: int | float) -> Iterator[Matches]:
        """The matches of windows that have closed when what they measure has come so far."""
        if self.panes is not None:
            yield from self._given((int(value) - self.panes.size) // self.panes.slide + 1)

    def finish(self) -> Iterator[Matches]:
        """The matches that are held."""
        yield from self._given(None)

    def _given(self, until: int | None) -> Iterator[Matches]:
        if not len(self.held) or (until is not None and self.held.rows.window[0] >= until):
            return
        found, window = self.held.take(until)
        yield found if self.panes is None else found._replace(window=window)

    @property
    def holds(self) -> bool:
        """Whether there are matches that may be given."""
        return len(self.held) > 0

    @property
    def closes(self) -> int | None:
        """When the last window that is held closes; ``None``: none is."""
        if self.panes is None or not self.holds:
            return None
        return int(self.held.rows.window[-1]) * self.panes.slide + self.panes.size

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        own = self.held.nbytes + (0 if self.groups is None else self.groups.nbytes)
        return own + bytes_of(*self.picker[:-1])

    # -- state ------------------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the values of events, and what is held."""
        count = int(self.picker.registers[k.EVENTS])
        values = self.picker.values
        section.arrays |= {"position": values.position[:count].copy(), "time": values.time[:count].copy()}
        section.arrays["value"] = values.value[:count].ravel()
        self.held.save(section.sub("held"))
        if self.groups is not None:
            self.groups.save(section.sub("groups"))

    def load(self, section: Section, run: Reached) -> None:
        """Take over, from the beginning, what :meth:`save` wrote of a run."""
        position = section.numbers("position", least=0, below=run.rows, rising=True)
        values, count = self.picker.values, position.size
        values = _with_room(values, count)
        time = section.numbers("time", size=count, ordered=True)
        if count and run.last_measure is not None and time[-1] > run.last_measure:
            raise ValueError("an event is later than the last one")
        values.position[:count], values.time[:count] = position, time
        values.value[:count] = section.arrays["value"].astype(self.scores).reshape(count, values.value.shape[1])
        self.picker = self.picker._replace(values=values)
        self.picker.registers[k.EVENTS] = count
        if self.groups is not None:
            self.groups.load(section.sub("groups"))
            self._fit_groups()
        self.held.load(section.sub("held"), run.rows, values.holds.shape[0])
        self._raise_bounds()

    def take_over(self, old: Choice, unknown: frozenset[str], run: Reached) -> None:
        """Go on where the choice of the same query over columns of narrower types stands."""
        there = Section()
        old.save(there)
        self.load(there, run)


def _exactly(array: pa.Array, known: NDArray[np.bool_], factor: int) -> I64:
    """Integers by a factor; LOST where 64 bits do not hold them."""
    if pa.types.is_decimal(array.type):
        whole = values_of(array.fill_null(0), "", 0) if len(array) else np.zeros(0, np.int64)
    else:
        whole = numbers_of(array)
    most = np.iinfo(np.int64).max
    wraps = whole > np.uint64(most) if whole.dtype == np.uint64 else np.zeros(whole.size, np.bool_)
    whole = whole.astype(np.int64)
    most //= max(1, abs(factor))
    beyond = wraps | (whole > most) | (whole < -most)
    with np.errstate(all="ignore"):
        worth = np.where(known, whole * np.int64(factor), 0)
    worth[beyond & known] = k.LOST
    return worth


def _values(events: int, items: int, scores: np.dtype[Any], holds: NDArray[np.bool_]) -> Values:
    holds = holds if items else np.zeros((holds.shape[0], 1), np.bool_)
    return zeros(Values, events, value=np.zeros((events, max(1, items)), scores), holds=holds)


def _with_room(values: Values, events: int) -> Values:
    """The same with room for so many events."""
    position, time, value, holds = values
    return Values(roomy(position, events), roomy(time, events), roomy(value, events), holds)


def _memo(sets: int, slots: int, scores: np.dtype[Any]) -> Memo:
    tables = {name: np.zeros((sets, slots), np.int64) for name in ("node", "start", "choice")}
    return zeros(Memo, slots, **tables, score=np.zeros((sets, slots), scores), weight=scores)


def _lists(slots: int, entries: int, scores: np.dtype[Any]) -> Lists:
    own = {name: np.zeros(entries, np.int64) for name in ("start", "node", "below", "next")}
    return zeros(Lists, slots, **own, over=np.bool_, score=np.zeros(entries, scores))


def _counts(sets: int, slots: int) -> Counts:
    node, matches, least, first = (np.zeros((sets, slots + 1), np.int64) for _ in range(4))
    return Counts(node, matches, np.zeros((sets, slots + 1), np.float64), least, first)


def _scratch(size: int, drawn: int) -> Scratch:
    table = 1 << (4 * drawn).bit_length()
    tables = {name: np.zeros(table, np.int64) for name in ("taken", "round")}
    return zeros(Scratch, size, **tables, key=np.zeros(1, np.float64))


def _picked(rows: int, cells: int, scores: np.dtype[Any]) -> Picked:
    places = {"position": np.zeros(cells, np.int64), "mark": np.zeros(cells, np.int32)}
    return zeros(Picked, rows, **places, score=scores)
