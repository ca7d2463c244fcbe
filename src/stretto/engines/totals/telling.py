"""What numbers of matches are to the outside: values of events as numbers, numbers as rows of a result, and errors in words.

The numbers of a run over columns without values so far, as a run over the types that the values have keeps them.

A column of which nothing but NULL has come may turn out to be of doubles, whose sums are other columns of numbers than those of
integers. This is done once in a stream, when the first value comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import pyarrow as pa

from stretto import _jit
from stretto.array_types import I64, Bits
from stretto.columns.keys import KeyTable
from stretto.columns.overflow import IntegerOverflow
from stretto.engines.api import Matches, Totals
from stretto.engines.totals import structure as s
from stretto.engines.totals.adding import Values
from stretto.engines.totals.giving import close_all, close_until
from stretto.engines.totals.plan import Asked, Columns
from stretto.engines.totals.state import State
from stretto.engines.totals.structure import Rows
from stretto.engines.totals.values import Part, Said, numbers
from stretto.errors import DataError
from stretto.frame import Section
from stretto.query import predicate as p
from stretto.query.passes.bind_totals import BoundTotal
from stretto.query.totals import Function
from stretto.times import shown_time

#: Sources of columns that were not there: of values of which none has come, and of matches in floating point.
NOTHING, COUNTED = -1, -2

#: The words of columns without values that are not 0.
_EMPTY = {
    s.LEAST: s.HIGHEST,
    s.MOST: s.LOST,
    s.REAL_LEAST: int(np.float64(np.inf).view(np.int64)),
    s.REAL_MOST: int(np.float64(-np.inf).view(np.int64)),
}


def sources(mine: Asked, theirs: Asked, unknown: AbstractSet[str]) -> list[int]:
    """By column of numbers of ``mine``, the column of ``theirs`` that has them, or one of the sources above.

    Parameters
    ----------
    mine, theirs
        What one query asks over columns of wider types, and over those that they had.
    unknown
        The columns of events of which nothing but NULL has come.

    Raises
    ------
    DataError
        A number depends on values that have come.
    """
    old = [_meaning(theirs.columns, at) for at in range(len(theirs.columns.kinds))]
    found = []
    for at, (kind, slot) in enumerate(zip(mine.columns.kinds, mine.columns.slots, strict=True)):
        meaning = _meaning(mine.columns, at)
        if meaning in old:
            found.append(old.index(meaning))
        elif (kind, slot) == (s.REAL_COUNT, -1):
            found.append(COUNTED)
        elif slot >= 0 and isinstance(value := mine.slots[slot].value, p.Attribute) and value.name in unknown:
            found.append(NOTHING)
        else:
            raise DataError("what is kept of them depends on it")
    return found


def _meaning(columns: Columns, at: int) -> tuple[object, ...]:
    """What a column counts or adds up, whatever the numbers of slots are."""
    slot = columns.slots[at]
    if slot < 0:
        return (columns.kinds[at],)
    value = columns.values[slot]
    return columns.kinds[at], value.variable, value.value, value.lost >= 0


def retyped(section: Section, columns: int, found: Sequence[int], kinds: Sequence[int]) -> None:
    """Give what a state has saved the columns of another one.

    Parameters
    ----------
    section
        As :meth:`State.save <stretto.engines.totals.state.State.save>` leaves it.
    columns
        How many columns it has.
    found, kinds
        The :func:`sources` and the kinds of the columns that it shall have.

    Raises
    ------
    DataError
        There are more matches than 64 bits count, so that floating point does not know how many.
    """
    arrays = section.arrays
    arrays["sums"] = _columns(arrays["sums"].reshape(-1, columns).T, found, kinds).T.ravel()
    live = arrays["live"].size
    if live:
        blocks = arrays["panes"].reshape(live, columns, -1).transpose(1, 0, 2)
        panes = _columns(blocks.reshape(columns, -1), found, kinds).reshape(len(found), live, -1)
        arrays["panes"] = panes.transpose(1, 0, 2).ravel()
    words = arrays["records"]
    pieces = []
    at = 0
    while at < words.size:  # as ``pack`` of the kernels writes them
        entries, cells = int(words[at + 2]), int(words[at + 3])
        pieces.append(words[at : at + 4 + cells])
        at += 4 + cells
        for _ in range(entries):
            end = at + 3 + columns * cells
            pieces += [words[at : at + 3], _columns(words[at + 3 : end].reshape(columns, cells), found, kinds).ravel()]
            at = end
    arrays["records"] = np.concatenate(pieces) if pieces else words


def _columns(old: I64, found: Sequence[int], kinds: Sequence[int]) -> I64:
    """Numbers of other columns: [column, cell]."""
    made = np.empty((len(found), old.shape[1]), np.int64)
    for row, source, kind in zip(made, found, kinds, strict=True):
        if source >= 0:
            row[:] = old[source]
        elif source == NOTHING:
            row[:] = _EMPTY.get(kind, 0)
        elif (old[0] == s.BEYOND).any():  # the first column counts the matches
            raise DataError("what is kept of them depends on it")
        else:
            row[:] = old[0].astype(np.float64).view(np.int64)
    return made


class Telling:
    """What a run knows of values and groups, beside the numbers of its state.

    Parameters
    ----------
    asked
        What is asked of all matches.
    state
        The numbers.
    attributes
        The types of the events' columns.
    by_partition
        Groups by keys are the partitions.
    """

    def __init__(
        self, asked: Asked, state: State, attributes: Mapping[str, pa.DataType], *, by_partition: bool
    ) -> None:
        self.asked, self.state = asked, state
        self.parts = [Part(groups, asked.bits) for groups in asked.parts]
        names = [one.attribute for one in asked.keys]
        #: The numbers of groups by keys, where these are not the partitions.
        self.bases = KeyTable([attributes[name] for name in names]) if names and not by_partition else None
        self.said = Said(pa.schema([(one.name, attributes[one.attribute]) for one in asked.keys]))

    def retype(self, section: Section, old: Telling, unknown: frozenset[str]) -> None:
        """Make what the state of a run of the same query over columns of narrower types has saved fit the types here.

        ``unknown``: the columns of which nothing but NULL has come.

        Raises
        ------
        DataError
            The numbers mean others here.
        """
        mine, theirs = self.asked, old.asked
        alike = all(_alike(a.item, b.item, unknown) for a, b in zip(mine.told, theirs.told, strict=True))
        alike &= self.said.schema == old.said.schema
        alike &= all(a.said.schema == b.said.schema for a, b in zip(self.parts, old.parts, strict=True))
        if not alike:
            raise DataError("what is kept of them depends on it")
        if (mine.columns.kinds, mine.columns.slots) != (theirs.columns.kinds, theirs.columns.slots):
            retyped(section, old.state.columns, sources(mine, theirs, unknown), mine.columns.kinds)

    @property
    def variables(self) -> list[str]:
        """Of which variables events are read: those of slots, then those of parts of groups."""
        return [one.variable for one in self.asked.slots] + [one.variable for one in self.parts]

    # -- events -------------------------------------------------------------------------------------------------------

    def values(self, batch: pa.RecordBatch, rows: I64, mine: Sequence[Bits]) -> Values:
        """What some rows have to say; ``mine``: by variable of :attr:`variables`, which of them it may hold."""
        slots = self.asked.slots
        ints = np.zeros((len(slots), rows.size), np.int64)
        reals = np.zeros((len(slots), rows.size), np.float64)
        known = np.zeros((len(slots), rows.size), np.bool_)
        says = np.zeros((len(self.parts), rows.size), np.int64)
        for at, held in enumerate(mine):
            chosen = np.flatnonzero(held)
            if not chosen.size:
                continue
            if at < len(slots):
                if slots[at].lost >= 0:  # told with the values
                    continue
                found = numbers(slots[at], batch, rows[chosen])
                ints[at, chosen], reals[at, chosen], known[at, chosen] = found.ints, found.reals, found.known
                watch = next((number for number, one in enumerate(slots) if one.lost == at), -1)
                if found.lost is not None and watch >= 0:
                    known[watch, chosen] = found.lost
            else:
                part = at - len(slots)
                says[part, chosen] = self.parts[part].numbers(batch, rows[chosen])
        return Values(ints, reals, known, says)

    def learn(self, batch: pa.RecordBatch, rows: I64, part: I64) -> I64:
        """The group by keys of each row, whose values are kept; ``part``: the partition of each."""
        if not self.asked.keys:
            return np.zeros(rows.size, np.int64)
        columns = [batch.column(one.attribute) for one in self.asked.keys]
        if self.bases is None:
            self.said.learn(part, columns, rows)
            return part
        base = self.bases.ids(columns, rows)
        known = base >= 0  # under strict contiguity there are events without a key, which no match holds
        self.said.learn(base[known], columns, rows[known])
        return base

    # -- rows ---------------------------------------------------------------------------------------------------------

    def drained(self, keys: Sequence[pa.Array] | None = None) -> Iterator[Matches]:
        """Take the rows out of the output buffers; ``keys``: their groups by keys, where those are not of :meth:`learn`."""
        return self._as_rows(self.state.drain(), keys, known=self.state.own)

    def _as_rows(self, rows: Rows, keys: Sequence[pa.Array] | None, *, known: bool = False) -> Iterator[Matches]:
        state, extent, first = self.state, self.state.extent, self.asked.first
        count = rows.end.size
        ints = rows.ints.reshape(count, state.columns)
        reals = rows.reals.reshape(count, state.columns)
        start, end = (rows.start, rows.end) if extent == s.OF_EVENT else np.zeros((2, count), np.int64)
        if extent == s.OF_EVENT and first >= 0:
            start = ints[:, first].copy()
        window = rows.window if extent == s.OF_WINDOW else None
        yield Matches.added_up(
            start, end, Totals(window, self._groups(rows, keys), self.asked.items(ints, reals), known)
        )

    def _groups(self, rows: Rows, keys: Sequence[pa.Array] | None) -> list[pa.Array]:
        """The columns of groups, in the order in which they are asked for."""
        found: dict[int, pa.Array] = {}
        if keys is None:
            keys = self.said.take(rows.base) if self.asked.keys else []
        for one, column in zip(self.asked.keys, keys, strict=True):
            found[id(one)] = column
        bits = self.asked.bits
        for number, part in enumerate(self.parts):
            codes = rows.part >> number * bits & (1 << bits) - 1
            for group, column in zip(part.groups, part.take(codes), strict=True):
                found[id(group)] = column
        return [found[id(one)] for one in self.asked.totals.scope.groups]

    def closed(self, pane: int) -> Iterator[Matches]:
        """Give the windows that are over when a pane begins.

        Raises
        ------
        IntegerOverflow
            64 bits do not hold a number of one.
        """
        state = self.state
        while True:
            status = close_until(pane, state.plan, state.store, state.sums, state.rows, state.registers)
            if status == _jit.DONE:
                break
            if status == _jit.OVERFLOW:
                raise self.overflow()
            if status == _jit.OUTPUT_FULL:
                yield from self.drained()
                state.widen()
            else:
                state.grow(status)
        if state.registers[s.ROWS]:
            yield from self.drained()

    def finish(self) -> Iterator[Matches]:
        """The stream has ended: give the rows of the whole table, and those of windows that are open."""
        state = self.state
        if state.own:
            yield from self._closed_all()
        elif state.extent == s.OF_WINDOW:
            size, slide = int(state.plan.scope[s.SIZE]), int(state.plan.scope[s.SLIDE])
            while state.registers[s.LIVE]:
                yield from self.closed(int(state.registers[s.NEXT]) * slide + size)
        elif state.extent == s.OF_TABLE:
            groups = state.groups
            if not self.asked.totals.scope.groups:
                groups = np.zeros(1, np.int64)
            ints, _ = state.numbers(groups)
            base, part = state.names(groups)
            nothing = np.zeros(groups.size, np.int64)
            flat = ints.ravel()
            yield from self._as_rows(Rows(nothing, nothing, base, part, nothing, flat, flat.view(np.float64)), None)

    def _closed_all(self) -> Iterator[Matches]:
        """The windows of all keys' own events, in one piece, whose order is that of windows and keys."""
        state = self.state
        while (status := close_all(state.plan, state.store, state.sums, state.rows, state.registers)) != _jit.DONE:
            if status == _jit.OVERFLOW:
                raise self.overflow()
            state.registers[s.NEED] = 0
            state.grow(_jit.GROW_OUTPUT)
        if state.registers[s.ROWS]:
            yield from self._as_rows(state.drain(), None)

    def overflow(self, row: int | None = None, keys: str = "") -> IntegerOverflow:
        """What 64 bits do not hold, at which event, and of which key."""
        bad = int(self.state.registers[s.BAD_COLUMN])
        item = self.asked.columns.named[bad]
        assert item is not None
        of = f" of {keys}" if keys else ""
        if self.asked.columns.kinds[bad] == s.LOST_VALUES and not isinstance(item.value, p.Attribute):
            return IntegerOverflow(f"{item.value} leaves 64 bits in a match{of}", "compute with floats", row)
        inside = "*" if item.variable is None else item.variable
        if item.value is not None and not isinstance(item.value, p.Constant):
            inside = f"{inside}[{item.value}]"
        name = f"{item.function}({inside})"
        why = f"write CAST({item.function}(…) AS DOUBLE), which counts in floating point, or a narrower WITHIN"
        if item.function in (Function.MIN, Function.MAX):
            why = (
                "MIN and MAX of integers take those that 64 bits with a sign hold; a column of doubles has greater ones"
            )
        return IntegerOverflow(f"{name} of all matches{of} leaves 64 bits", why, row)

    @property
    def nbytes(self) -> int:
        """Bytes of the values of groups."""
        bases = 0 if self.bases is None else self.bases.nbytes
        return int(self.said.nbytes + bases + sum(one.nbytes for one in self.parts))

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def save(self, section: Section) -> None:
        """Write the values of groups by their numbers."""
        self.said.save(section.sub("said"))
        if self.bases is not None:
            self.bases.save(section.sub("bases"))
        for number, part in enumerate(self.parts):
            part.save(section.sub(f"part{number}"))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.said.load(section.sub("said"))
        if self.bases is not None:
            self.bases.load(section.sub("bases"))
        for number, part in enumerate(self.parts):
            part.load(section.sub(f"part{number}"))


def shown_keys(names: Sequence[str], batch: pa.RecordBatch, row: int) -> str:
    """The keys of a row of a batch, in words; empty where there are none."""
    return ", ".join(f"{name} = {shown_time(batch.column(name)[row])!r}" for name in names)


def _alike(item: BoundTotal, other: BoundTotal, unknown: frozenset[str]) -> bool:
    """Whether the numbers of one item over columns of two types are the same: integers are, doubles, and what has no value yet."""
    if item.function in (Function.COUNT, Function.AVG) or item.kind == other.kind:
        return True
    assert item.value is not None
    if unknown.issuperset(p.attributes(item.value)):
        return True
    return None not in (item.kind, other.kind) and all(map(pa.types.is_integer, (item.kind, other.kind)))
