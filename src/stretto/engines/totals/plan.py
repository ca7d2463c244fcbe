"""Which numbers are kept of matches so that what is asked of them can be told, and how that is told from them.

A *slot* is a value of the events of a variable, such as ``b[volume]``: each is computed once for an event, whatever is asked of it.
Each number that is kept is a column of :class:`~stretto.engines.totals.structure.Plan`, and is there once.

A query whose matches are counted and added up: its automaton, and what is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import F64, I64
from stretto.automata.cea import CEA, build
from stretto.engines.tecs.compiled import Compiled
from stretto.engines.totals import structure as s
from stretto.engines.totals.structure import Plan
from stretto.query import predicate as p
from stretto.query.passes.bind import BoundQuery
from stretto.query.passes.bind_totals import BoundTotal, BoundTotals
from stretto.query.query import Consume
from stretto.query.totals import Extent, Function

EXTENTS = {Extent.TABLE: s.OF_TABLE, Extent.EVENT: s.OF_EVENT, Extent.WINDOW: s.OF_WINDOW}
CONSUMES = {Consume.NONE: 0, Consume.PARTITION: 1, Consume.ANY: 2}

#: A group's parts share the bits of one integer.
BITS = 62


@dataclass(frozen=True)
class Slot:
    """A value of the events of a variable; ``real``: nothing is kept of it but floating point numbers."""

    variable: str
    value: p.Operand
    kind: pa.DataType
    real: bool
    lost: int = -1  #: instead of the values of this slot, where 64 bits do not hold them

    @property
    def counted_only(self) -> bool:
        """Whether each event has it, whatever its attributes are."""
        return isinstance(self.value, p.Constant)


@dataclass
class Columns:
    """The columns that a query's items need, and of which slots they are."""

    kinds: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)
    values: list[Slot] = field(default_factory=list)
    #: By column, the item that needs it exact.
    named: list[BoundTotal | None] = field(default_factory=list)

    def of(self, kind: int, slot: int, item: BoundTotal | None = None) -> int:
        """The number of a column, which is made where it is missing; ``item`` needs it to be exact."""
        there = list(zip(self.kinds, self.slots, strict=True))
        at = there.index((kind, slot)) if (kind, slot) in there else len(there)
        if at == len(there):
            self.kinds.append(kind)
            self.slots.append(slot)
            self.asked.append(False)
            self.named.append(None)
        if item is not None and self.named[at] is None:
            self.asked[at], self.named[at] = True, item
        return at

    def slot(self, item: BoundTotal, real: bool) -> int:
        """The number of an item's slot."""
        assert item.variable is not None
        assert item.value is not None
        assert item.kind is not None
        for at, one in enumerate(self.values):
            if (one.variable, one.value, one.lost) == (item.variable, item.value, -1):
                if one.real and not real:
                    self.values[at] = replace(one, real=False)
                return at
        self.values.append(Slot(item.variable, item.value, item.kind, real))
        return len(self.values) - 1

    def lost(self, slot: int, item: BoundTotal) -> None:
        """Watch for values of a slot that 64 bits do not hold."""
        own = replace(self.values[slot], lost=slot)
        if own not in self.values:
            self.values.append(own)
        self.of(s.LOST_VALUES, self.values.index(own), item)


@dataclass(frozen=True)
class Told:
    """How an item is told: from a column, by the number of values (a column, −1: it is never NULL)."""

    item: BoundTotal
    column: int
    count: int


class Asked:
    """What is asked of all matches, as columns.

    Parameters
    ----------
    totals
        The items and their scope.
    prefix
        What stands before the names of variables in an automaton's labels.
    starts
        Whether the first event of matches must be kept, since nothing else tells it.
    """

    def __init__(self, totals: BoundTotals, *, prefix: str = "", starts: bool = False) -> None:
        self.totals = totals
        self.prefix = prefix
        self.extent = EXTENTS[totals.scope.extent]
        self.columns = Columns()
        self._computed: list[tuple[int, BoundTotal]] = []  # slots whose values 64 bits may not hold
        self.columns.of(s.COUNT, -1)
        self.told = [self._told(item) for item in totals.items]
        for slot, item in self._computed:
            self.columns.lost(slot, item)
        kinds = self.columns.kinds
        if s.REAL_SUM in kinds or (s.REAL_COUNT in kinds):
            self.columns.of(s.REAL_COUNT, -1)
        self.first = self.columns.of(s.FIRST, -1) if starts and self.extent == s.OF_EVENT else -1
        own = dict.fromkeys(one.variable for one in totals.scope.groups if one.variable is not None)
        #: What events say of groups: by variable, the columns of groups.
        self.parts = [[one for one in totals.scope.groups if one.variable == name] for name in own]
        self.keys = [one for one in totals.scope.groups if one.variable is None]

    @property
    def slots(self) -> list[Slot]:
        """The values of events that are asked for."""
        return self.columns.values

    @property
    def variables(self) -> frozenset[str]:
        """The variables, as labels, of which it matters which events they hold."""
        names = [one.variable for one in self.slots] + [str(part[0].variable) for part in self.parts]
        return frozenset(self.prefix + name for name in names)

    @property
    def bits(self) -> int:
        """How many bits each of a group's parts has."""
        return BITS // max(1, len(self.parts))

    def _told(self, item: BoundTotal) -> Told:
        columns = self.columns
        if item.variable is None:
            if item.floating:
                return Told(item, columns.of(s.REAL_COUNT, -1), -1)
            return Told(item, columns.of(s.COUNT, -1, item), -1)
        assert item.kind is not None
        assert item.value is not None
        floats = pa.types.is_floating(item.kind)
        floating = item.floating and not pa.types.is_duration(item.kind)
        real = floats or floating or item.function in (Function.AVG, Function.COUNT)
        slot = columns.slot(item, real)
        if p.computes(item.value) or (pa.types.is_uint64(item.kind) and not real):
            self._computed.append((slot, item))
        match item.function:
            case Function.COUNT:
                kind = s.REAL_COUNT if floating else s.COUNT
                return Told(item, columns.of(kind, slot, None if floating else item), -1)
            case Function.AVG:
                return Told(item, columns.of(s.REAL_SUM, slot), columns.of(s.REAL_COUNT, slot))
            case Function.SUM if real:
                return Told(item, columns.of(s.REAL_SUM, slot), columns.of(s.COUNT, slot))
            case Function.SUM:
                return Told(item, columns.of(s.SUM, slot, item), columns.of(s.COUNT, slot))
            case Function.MIN:
                return Told(item, columns.of(s.REAL_LEAST if floats else s.LEAST, slot), columns.of(s.COUNT, slot))
            case Function.MAX:
                return Told(item, columns.of(s.REAL_MOST if floats else s.MOST, slot), columns.of(s.COUNT, slot))

    @property
    def real(self) -> int:
        """The column that counts the matches in floating point; 0 where none does."""
        there = list(zip(self.columns.kinds, self.columns.slots, strict=True))
        return there.index((s.REAL_COUNT, -1)) if (s.REAL_COUNT, -1) in there else 0

    def plan(self, marks: Sequence[frozenset[str]], *, apart: bool, consume: Consume, own: bool = False) -> Plan:
        """The plan for an automaton with these marks.

        ``apart``: a window tells starts apart; ``own``: windows are of the events of each key.
        """
        columns = self.columns
        holds = [[self.prefix + one.variable in labels for one in self.slots] for labels in marks]
        names = [[f"{self.prefix}{part[0].variable}" in labels for part in self.parts] for labels in marks]
        panes = self.totals.scope.panes
        size = len(columns.kinds)
        scope = [self.extent, 1, 1, self.bits, int(apart), CONSUMES[consume], int(own)]
        if panes is not None:
            scope[s.SIZE], scope[s.SLIDE] = panes.count, panes.slide // panes.width
        return Plan(
            np.array(columns.kinds, np.int64),
            np.array(columns.slots, np.int64),
            np.array(columns.asked, np.bool_),
            np.array(holds, np.bool_).reshape(len(marks), len(self.slots)),
            np.array(names, np.bool_).reshape(len(marks), len(self.parts)),
            np.zeros(size, np.int64),
            np.full(size, self.real, np.int64),
            np.arange(len(marks) + 1) * size,
            np.tile(np.arange(size), len(marks)),
            np.array(scope, np.int64),
        )

    def items(self, ints: I64, reals: F64) -> list[pa.Array]:
        """The columns of items from rows of numbers: [row, column]."""
        return [self._item(one, ints, reals) for one in self.told]

    def _item(self, told: Told, ints: I64, reals: F64) -> pa.Array:
        item, kinds = told.item, self.columns.kinds
        column, kind = told.column, kinds[told.column]
        values: NDArray[np.generic] = ints[:, column] if kind in WHOLE else reals[:, column]
        if told.count < 0:
            return pa.array(values)
        counts = ints[:, told.count] if kinds[told.count] in WHOLE else reals[:, told.count]
        missing = counts == 0
        if item.function is Function.AVG:
            with np.errstate(invalid="ignore", over="ignore"):
                means = reals[:, column] / np.where(missing, 1.0, counts)
            assert item.kind is not None
            return pa.array(means, mask=missing)
        if kind not in WHOLE:
            return pa.array(values, mask=missing).cast(item.type)
        return as_type(np.where(missing, 0, ints[:, column]), missing, item.type)


#: The kinds of columns whose numbers are integers.
WHOLE = frozenset({s.COUNT, s.SUM, s.LEAST, s.MOST, s.FIRST, s.LOST_VALUES})


def as_type(values: I64, missing: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Integers as values of a type: decimals at their scale, times as ticks; NULL where ``missing``."""
    if pa.types.is_decimal(kind):
        wide = np.empty((values.size, 2), np.int64)
        wide[:, 0], wide[:, 1] = values, values >> 63
        bits = pa.array(~missing).buffers()[1]
        whole = pa.Array.from_buffers(pa.decimal128(38, kind.scale), values.size, [bits, pa.py_buffer(wide)])
        return whole.cast(kind)
    narrow = pa.int32() if pa.types.is_temporal(kind) and kind.bit_width == 32 else pa.int64()
    if pa.types.is_date64(kind):  # read as days
        return pa.array(values.astype(np.int32), pa.int32(), mask=missing).cast(pa.date32()).cast(kind)
    return pa.array(values, pa.int64(), mask=missing).cast(narrow).cast(kind)


class TotalsCompiled(Compiled):
    """The machine of a query whose rows are counts and sums.

    Parameters
    ----------
    query
        The matches.
    totals
        What is asked of them.
    valuations
        Count every valuation, in place of every complex event.
    prefix
        What stands before the names of variables in labels.
    """

    def __init__(self, query: BoundQuery, totals: BoundTotals, *, valuations: bool = False, prefix: str = "") -> None:
        self.totals = totals
        window = query.window
        counted = window is not None and window.attribute is None
        ranked = counted and bool(query.partition_by or query.schema.stream is not None)
        #: Whether starts are told apart, because they leave the window one by one.
        self.apart = window is not None
        #: Whether windows are of the events of each key.
        self.own = ranked and totals.scope.panes is not None
        self.asked = Asked(totals, prefix=prefix, starts=ranked or window is None)
        super().__init__(query, valuations=valuations, told=self.asked.variables)

    def _built(self) -> CEA:
        """The automaton, whose labels tell apart what is counted; in valuations, all variables."""
        cea = self.whole
        if self.valuations:
            return cea
        kept = self.counted
        other = frozenset({""})
        return replace(
            cea,
            transitions=tuple(
                replace(one, labels=(one.labels & kept) or other if one.labels else one.labels)
                for one in cea.transitions
            ),
        )

    @cached_property
    def whole(self) -> CEA:
        """The automaton whose labels tell all variables apart."""
        return build(self.query.pattern)

    @property
    def counted(self) -> frozenset[str]:
        """The variables of which it matters which events they hold."""
        return self.asked.variables

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that conditions, windows, keys, values and groups read."""
        used = {*self.query.tested, *(one.attribute for one in self.totals.scope.groups)}
        used.update(name for one in self.asked.slots for name in p.attributes(one.value))
        return tuple(name for name in self.query.schema.attributes if name in used)

    @cached_property
    def digest(self) -> str:
        """What the automaton is and what is kept of matches, in short."""
        kept = self.asked.columns
        slots = [(one.variable, str(one.value)) for one in kept.values]
        groups = [(one.variable, one.attribute) for one in self.totals.scope.groups]
        what = (str(self.cea), kept.kinds, kept.slots, slots, groups, str(self.totals.scope.panes), self.asked.extent)
        return hashlib.sha256(repr(what).encode()).hexdigest()

    def plan(self) -> Plan:
        """What the kernel keeps and when it gives it."""
        return self.asked.plan(
            self.determinizer.marks, apart=self.apart, consume=self.query.parsed.consume, own=self.own
        )

    def guards_of(self, variable: str) -> frozenset[int]:
        """The guards under which an event may be one of a variable."""
        label = self.asked.prefix + variable
        return frozenset(one.guard for one in self.cea.transitions if label in one.labels)

    @property
    def consumes(self) -> bool:
        """Whether what an event completes ends partial matches."""
        return self.query.parsed.consume is not Consume.NONE
