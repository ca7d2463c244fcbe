"""Event classes: which of an automaton's guards each event satisfies, as a small number.

CORE paper, section 4.4 (the bit vector of a tuple), without evaluating a condition per event:

1. Each *column* is read once, whatever the number of conditions on it. A row gets a *code*: for a string which of the
   known constants it is, for a number its place among the constants that it is compared with. Codes that no condition
   tells apart are one code.
2. The codes of all columns in a mixed radix make the row's *cell*.
3. A table says the class of each cell. A cell that is new is looked at once: its codes say which conditions hold, those
   which guards hold, and the vector of the guards is the class.

Conditions that relate attributes or compute are columns of their own, computed by
:func:`~stretto.columns.vectorized.mask`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stretto.array_types import I32, I64, U64, Bits
from stretto.columns import cells
from stretto.columns.cells import Stage, stages_for
from stretto.columns.coding import Unknown
from stretto.columns.conditions import Conditions
from stretto.columns.overflow import IntegerOverflow
from stretto.columns.vectorized import overflow_at, pieces
from stretto.errors import LimitError, OptionError
from stretto.events import Schema
from stretto.query import predicate as p
from stretto.query.evaluate import Beyond, truth
from stretto.query.guard import Guard
from stretto.query.typing import kind_of

#: Fills the cells of rows [start, stop): ``fill(start, stop, cell)`` adds the digit of one column.
Fill = Callable[[int, int, I64], None]

MOST_CLASSES = 1 << 20  #: a query that tells apart more classes of events than this is refused
PIECE = 1 << 14  #: rows are classified in pieces of this many, so that cells stay in the cache


class Classifier(Conditions):
    """Turns events into classes.

    A guard holds on an event whose type equals ``guard.type``, whose stream equals ``guard.stream`` where that is set,
    and that satisfies all conditions; where the type is NULL none does. Class ids are valid for this classifier;
    what they mean is in ``vectors``. Threads may share a classifier.

    Parameters
    ----------
    guards
        What transitions ask, with typed conditions (:func:`stretto.query.typing.typed`); or typed conditions alone
        (:func:`condition_of`).
    schema
        The columns, and which hold type and stream. With a stream column and no type column, the type of an event is
        its stream.
    default_type, default_stream
        Type and stream of all events where the schema has no column for them.

    Attributes
    ----------
    vectors
        By class: the guards that hold, bit g for ``guards[g]``. Class 0 satisfies none.
    untold
        By class: whether integers of 64 bits do not tell of some guard. (In ``vectors`` such a guard does not hold.)

    Raises
    ------
    OptionError
        The type or stream column is missing in the schema or does not hold strings.

    Examples
    --------
    >>> classifier = Classifier([Guard("A"), Guard("B")], Schema({"type": pa.string()}))
    >>> classes = classifier.classify(pa.table({"type": ["B", "x", "A", "B"]}))
    >>> [bin(classifier.vectors[c]) for c in classes]
    ['0b10', '0b0', '0b1', '0b10']
    """

    def __init__(
        self,
        guards: Sequence[Guard | p.Predicate],
        schema: Schema,
        *,
        default_type: str | None = None,
        default_stream: str | None = None,
    ) -> None:
        self.guards = tuple(guards)
        self.vectors: list[int] = [0]
        self.untold: list[bool] = [False]
        self._ids: dict[int, int] = {0: 0}
        self._lock = threading.Lock()
        for role, name in (("type", schema.type), ("stream", schema.stream)):
            found = pa.string() if name is None else schema.attributes.get(name)
            # A column of NULL only has no type of its own; no event of it has a type.
            if found is None or (kind_of(found) != "string" and not pa.types.is_null(found)):
                raise OptionError(f"{role}='{name}' is {found or 'no column'}, not a column of strings")
        asked = [
            condition_of(guard, schema, default_type, default_stream) if isinstance(guard, Guard) else guard
            for guard in self.guards
        ]
        super().__init__(asked, schema)
        self._stages = stages_for(self._coders)

    def intern(self, vector: int, *, untold: bool = False) -> int:
        """The class of a vector of guards (as in ``vectors``); a new one if there is none yet.

        Raises
        ------
        LimitError
            There are too many classes.
        """
        key = vector | untold << len(self.guards)
        number = self._ids.get(key)
        if number is None:
            if len(self.vectors) >= MOST_CLASSES:
                raise LimitError(
                    f"the query's {len(self._atoms)} conditions tell apart more than {MOST_CLASSES:,} classes of "
                    f"events; use fewer conditions in one query"
                )
            number = self._ids[key] = len(self.vectors)
            self.vectors.append(vector)
            self.untold.append(untold)
        return number

    def interned(self, truth: Bits) -> I32:
        """The classes of events, from the truth of every guard: [event, guard]. Safe beside other threads."""
        with self._lock:
            return self._interned(truth)

    def classify(self, table: pa.RecordBatch | pa.Table, among: Callable[[], Bits | None] | None = None) -> I32:
        """The class of every row: int32, an index of ``vectors``.

        Parameters
        ----------
        table
            The events.
        among
            Says which rows matter (``None``: all); asked only where arithmetic overflows.

        Raises
        ------
        DataError
            A column is missing or of another type than the schema says (another encoding of the same strings will do),
            or arithmetic overflows in a row that matters, and a guard depends on it.
        LimitError
            There are too many classes.
        """
        out = self.look(table)
        wrong = self.doubtful(out)
        if wrong is not None:
            chosen = None if among is None else among()
            rows = np.flatnonzero(wrong if chosen is None else wrong & chosen)
            if rows.size:
                raise self.overflow(table, int(rows[0]))
        return out

    def doubtful(self, classes: I32) -> Bits | None:
        """In which rows integers of 64 bits do not tell of some guard; ``None``: in none."""
        if not any(self.untold):
            return None
        found: Bits = np.array(self.untold, np.bool_)[classes]
        return found if found.any() else None

    def overflow(self, table: pa.RecordBatch | pa.Table, row: int) -> IntegerOverflow:
        """The error about a row that is doubtful."""
        event = table.select(self._columns).slice(row, 1).to_pylist()[0]
        asked = next(one for one in self._conditions if one is not None and isinstance(truth(one, event), Beyond))
        return overflow_at(asked, table, row)

    def look(self, table: pa.RecordBatch | pa.Table) -> I32:
        """Do what :meth:`classify` does, for whoever asks afterwards which rows are doubtful."""
        out = np.empty(table.num_rows, np.int32)
        if not self._columns:
            with self._lock:
                out[:] = self._vector_classes(np.zeros(1, np.uint64))[0]
            return out
        done = 0
        for batch in pieces(table, self._columns):
            self._check(batch)
            fills = [
                [coder.fill(batch, stride) for coder, stride in zip(stage.coders, stage.strides, strict=True)]
                for stage in self._stages
            ]
            for start in range(0, batch.num_rows, PIECE):
                stop = min(start + PIECE, batch.num_rows)
                self._piece(fills, start, stop, out[done + start : done + stop])
            done += batch.num_rows
        return out

    def _piece(self, fills: Sequence[Sequence[Fill]], start: int, stop: int, out: I32) -> None:
        """Classes of some rows of a batch."""
        cell = np.zeros(stop - start, np.int64)
        last = self._stages[-1]
        for stage, columns in zip(self._stages, fills, strict=True):
            for fill in columns:
                fill(start, stop, cell)
            if stage.look_up(cell, out):
                with self._lock:
                    stage.look_up(cell, out)
                    self._learn(stage, np.unique(cell[out < 0]).view(np.uint64))
                    stage.look_up(cell, out)
            if stage is not last:
                cell = out.astype(np.int64)
        if any(stage.count > cells.MOST_SEEN for stage in self._stages):
            with self._lock:
                for stage in self._stages:
                    stage.clear()

    def _learn(self, stage: Stage, cells: U64) -> None:
        stage.learn(cells, stage.number(cells) if stage is not self._stages[-1] else self._vector_classes(cells))

    def _vector_classes(self, cells: U64) -> I32:
        """The classes of cells of the last stage, from the truth of every guard on them."""
        truth = self._truth(cells)
        bits = np.zeros((len(self.guards) + 1, cells.size), np.bool_)
        for number, formula in enumerate(self._formulas):
            if formula is not None:
                bits[number], untold = formula(truth)
                if untold is not None:
                    bits[-1] |= untold
        return self._interned(bits.T)

    def _interned(self, truth: Bits) -> I32:
        """Do what :meth:`interned` does; the column after the last guard, if there is one, says where some guard is not told."""
        if not truth.shape[1]:
            return np.zeros(truth.shape[0], np.int32)
        packed = np.packbits(truth, axis=1, bitorder="little")
        unique, inverse = np.unique(packed, axis=0, return_inverse=True)
        vectors = [int.from_bytes(row.tobytes(), "little") for row in unique]
        last = 1 << len(self.guards)
        classes = np.array([self.intern(one & (last - 1), untold=one >= last) for one in vectors], np.int32)
        return classes[inverse.reshape(-1)]

    def _truth(self, cells: U64) -> list[Bits]:
        """The truth of every atom on cells of the last stage: by atom, [cell]."""
        codes: list[I64] = []
        for stage in reversed(self._stages):
            codes = stage.codes(cells) + codes
            before = self._stages.index(stage) - 1
            if before >= 0:
                cells = self._stages[before].seen[cells % np.uint64(stage.first)]
        truth: list[Any] = [None] * len(self._numbers)
        order = iter(self._order)
        for coder, code in zip(self._coders, codes, strict=True):
            for column in range(len(coder.atoms)):
                truth[next(order)] = coder.truth[code, column]
        return truth

    def describe(self) -> list[str]:
        """Tell people the distinct conditions, one line a column that is read, and how many kinds of events they tell apart.

        >>> print(*Classifier([Guard("A"), Guard("B")], Schema({"type": pa.string()})).describe(), sep="\\n")
        type: type = 'A', type = 'B'
        these tell apart 3 kinds of events at most
        """
        lines: dict[str, list[str]] = {}
        for coder in self._coders:
            for atom in coder.atoms:
                if not isinstance(atom, Unknown):
                    lines.setdefault(", ".join(p.attributes(atom)), []).append(str(atom))
        if not lines:
            return []
        cells = 1
        for coder in self._coders:
            cells *= coder.radix
        kinds = f"{cells:,}" if cells < 10**9 else "more than a billion"
        summary = f"these tell apart {kinds} kinds of events at most"
        return [*(f"{columns}: {', '.join(atoms)}" for columns, atoms in lines.items()), summary]


def condition_of(
    guard: Guard, schema: Schema, default_type: str | None, default_stream: str | None
) -> p.Predicate | None:
    """What a guard asks as one condition on columns; ``None`` when it can never hold (see :class:`Classifier`).

    >>> str(condition_of(Guard("A", "S"), Schema({"type": pa.string()}), None, "S"))
    "type = 'A'"
    """
    parts: list[p.Predicate] = []
    tests = [(schema.type or schema.stream, guard.type, default_type)]
    if guard.stream is not None:
        tests.append((schema.stream, guard.stream, default_stream))
    for name, wanted, default in tests:
        if name is not None and pa.types.is_null(schema.attributes[name]):
            return None
        if name is not None:
            parts.append(p.Comparison("=", p.Attribute(name), p.Constant(wanted)))
        elif wanted != default:
            return None
    return p.And((*parts, *guard.conditions))
