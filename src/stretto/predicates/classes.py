"""Event classes: which of an automaton's guards each event satisfies, as a small number.

CORE paper, section 4.4 (the bit vector of a tuple). Here no condition is evaluated per event: each column is coded once
(:mod:`~stretto.predicates.coding`), the codes of all columns make a *cell*, and a table says the class of each cell. The
truth of the guards is computed once for each cell that occurs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.errors import DataError, LimitError, suggestion
from stretto.events import Schema
from stretto.pattern import predicate as p
from stretto.pattern.guard import Guard
from stretto.predicates.coding import MOST_ATOMS, Coder, coder_for, single_column

__all__ = ["Classifier"]

I64 = NDArray[np.int64]

#: Cells up to this many are looked up in an array, more by search among those that occurred.
DENSE = 1 << 20

#: More cells than this cannot be numbered in 64 bits.
MOST_CELLS = 1 << 62

#: A query whose conditions tell apart more classes of events than this is refused.
MOST_CLASSES = 1 << 18

#: Rows are classified in pieces of this many, so that intermediate columns stay in the cache.
PIECE = 1 << 16


class Classifier:
    """Turns events into classes.

    Parameters
    ----------
    guards
        What transitions ask, with typed conditions.
    schema
        The columns, and which hold type and stream.
    default_type, default_stream
        Type and stream of all events where the schema has no column for them.

    >>> classifier = Classifier([Guard("A"), Guard("B")], Schema({"type": pa.string()}))
    >>> classes = classifier.classify(pa.table({"type": ["B", "x", "A", "B"]}))
    >>> [bin(classifier.vectors[c]) for c in classes]
    ['0b10', '0b0', '0b1', '0b10']
    """

    def __init__(
        self,
        guards: Sequence[Guard],
        schema: Schema,
        *,
        default_type: str | None = None,
        default_stream: str | None = None,
    ) -> None:
        self.schema = schema
        self.guards = tuple(_rewritten(g, schema, default_type, default_stream) for g in guards)
        self.atoms = list(dict.fromkeys(a for g in self.guards if g is not None for part in g for a in _atoms(part)))
        self.coders = self._make_coders()
        #: The guards that hold on each class, as a bit mask; class 0 satisfies none.
        self.vectors: list[int] = [0]
        self._ids: dict[int, int] = {0: 0}
        self._luts: list[I64] = []
        self._reduced: list[NDArray[np.bool_]] = []
        self._strides: list[int] = []
        self._reduce()
        self.cells = self._strides[-1] * self._reduced[-1].shape[0] if self.coders else 1
        if self.cells > MOST_CELLS:
            raise LimitError(
                f"the query has {len(self.atoms)} conditions that tell apart more than 2^62 kinds of events; simplify it"
            )
        self._lock = threading.Lock()
        self._table = np.full(self.cells if self.cells <= DENSE else 0, -1, np.int32)
        self._seen: I64 = np.empty(0, np.int64)
        self._seen_class: NDArray[np.int32] = np.empty(0, np.int32)

    def _make_coders(self) -> list[Coder]:
        by_column: dict[str, list[p.Predicate]] = {}
        others: list[p.Predicate] = []
        for atom in self.atoms:
            column = single_column(atom)
            if column is None:
                others.append(atom)
            else:
                by_column.setdefault(column, []).append(atom)
        coders = []
        for column, atoms in by_column.items():
            coder = coder_for(column, self.schema.attributes[column], atoms)
            if coder.truth.shape[0] == 1 << len(atoms) and len(atoms) > MOST_ATOMS:
                coders += [coder_for(column, self.schema.attributes[column], part) for part in _pieces(atoms)]
            else:
                coders.append(coder)
        coders += [coder_for(None, None, part) for part in _pieces(others)]
        return coders

    def _reduce(self) -> None:
        """Join the codes of a coder that no condition tells apart, and lay the coders out in a mixed radix."""
        stride = 1
        for coder in self.coders:
            rows, inverse = np.unique(coder.truth, axis=0, return_inverse=True)
            self._reduced.append(rows)
            self._strides.append(stride)
            # Beyond 2^62 the numbers mean nothing any more; __init__ refuses them.
            self._luts.append(inverse.reshape(-1).astype(np.int64) * min(stride, MOST_CELLS))
            stride *= rows.shape[0]

    def intern(self, vector: int) -> int:
        """The class of a vector."""
        number = self._ids.get(vector)
        if number is None:
            if len(self.vectors) >= MOST_CLASSES:
                raise LimitError(
                    f"the conditions tell apart more than {MOST_CLASSES:,} classes of events; simplify them"
                )
            number = self._ids[vector] = len(self.vectors)
            self.vectors.append(vector)
        return number

    def classify(self, table: pa.RecordBatch | pa.Table) -> NDArray[np.int32]:
        """The class of every row.

        Raises
        ------
        DataError
            A column is missing or of another type than the schema says, or arithmetic overflows.
        """
        for name in self._columns():
            self._check_column(table, name)
        found = (
            [self._piece(batch) for batch in table.to_batches(max_chunksize=PIECE)]
            if isinstance(table, pa.Table)
            else [self._piece(table.slice(at, PIECE)) for at in range(0, table.num_rows, PIECE)]
        )
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def _columns(self) -> list[str]:
        return list(dict.fromkeys(name for atom in self.atoms for name in p.attributes(atom)))

    def _check_column(self, table: pa.RecordBatch | pa.Table, name: str) -> None:
        if name not in table.schema.names:
            hint = suggestion(name, table.schema.names, kind="column")
            raise DataError(f"the events have no column '{name}'" + (f"; {hint}" if hint else ""))
        found, wanted = table.schema.field(name).type, self.schema.attributes[name]
        if found != wanted and _plain(found) != _plain(wanted):
            raise DataError(f"column '{name}' is {found}, and the query was compiled for {wanted}")

    def _piece(self, batch: pa.RecordBatch) -> NDArray[np.int32]:
        cell = np.zeros(batch.num_rows, np.int64)
        for coder, lut in zip(self.coders, self._luts, strict=True):
            coder.add(batch, lut, cell)
        if self._table.size:
            found = self._table[cell]
            if found.size and found.min() < 0:
                fresh = np.unique(cell[found < 0])
                self._table[fresh] = self._classes(fresh)
                found = self._table[cell]
            return found
        return self._searched(cell)

    def _searched(self, cell: I64) -> NDArray[np.int32]:
        """Classes of cells too many for an array: O(log) a row, after sorting the piece."""
        unique, inverse = np.unique(cell, return_inverse=True)
        at = np.searchsorted(self._seen, unique)
        known = np.zeros(unique.size, np.bool_)
        inside = at < self._seen.size
        known[inside] = self._seen[at[inside]] == unique[inside]
        fresh = unique[~known]
        if fresh.size:
            cells = np.concatenate((self._seen, fresh))
            classes = np.concatenate((self._seen_class, self._classes(fresh)))
            order = np.argsort(cells)
            self._seen, self._seen_class = cells[order], classes[order]
            at = np.searchsorted(self._seen, unique)
        return self._seen_class[at][inverse.reshape(-1)]

    def _classes(self, cells: I64) -> NDArray[np.int32]:
        """The classes of cells, by the truth of every guard on them."""
        with self._lock:  # several streams may share a program
            return self._new_classes(cells)

    def _new_classes(self, cells: I64) -> NDArray[np.int32]:
        truth: dict[p.Predicate, NDArray[np.bool_]] = {}
        for coder, rows, stride in zip(self.coders, self._reduced, self._strides, strict=True):
            code = cells // stride % rows.shape[0]
            for number, atom in enumerate(coder.atoms):
                truth[atom] = rows[code, number]
        bits = np.zeros((cells.size, max(1, len(self.guards))), np.bool_)
        for number, guard in enumerate(self.guards):
            if guard is not None:
                bits[:, number] = np.logical_and.reduce(
                    [np.ones(cells.size, np.bool_), *(_evaluate(part, truth) for part in guard)]
                )
        packed = np.packbits(bits, axis=1, bitorder="little")
        unique, inverse = np.unique(packed, axis=0, return_inverse=True)
        numbers = [self.intern(int.from_bytes(row.tobytes(), "little")) for row in unique]
        return np.array(numbers, np.int32)[inverse.reshape(-1)]

    def describe(self) -> list[str]:
        """For people: the conditions by column, and how many kinds of events they can tell apart."""
        lines = []
        for coder in self.coders:
            where = f"{coder.column}: " if coder.column else ""
            lines.append(where + ", ".join(str(atom) for atom in coder.atoms))
        if lines:
            lines.append(f"these tell apart {self.cells:,} kinds of events at most")
        return lines


Part = p.Predicate


def _rewritten(
    guard: Guard, schema: Schema, default_type: str | None, default_stream: str | None
) -> tuple[Part, ...] | None:
    """A guard as conditions on columns; ``None`` when it can never hold."""
    parts: list[Part] = []
    for name, wanted, default in (
        # Without a column for it, an event's type is the name of its stream.
        (schema.type or schema.stream, guard.type, default_type),
        (schema.stream, guard.stream, default_stream),
    ):
        if wanted is None:
            continue
        if name is not None:
            parts.append(p.Comparison("=", p.Attribute(name), p.Constant(wanted)))
        elif wanted != default:
            return None
    return (*parts, *guard.conditions)


def _atoms(part: Part) -> list[p.Predicate]:
    return [node for node in p.walk(part) if isinstance(node, p.Comparison | p.In | p.Between | p.Like | p.IsNull)]


def _evaluate(part: Part, truth: dict[p.Predicate, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    match part:
        case p.And(parts):
            return np.asarray(np.logical_and.reduce([_evaluate(inner, truth) for inner in parts]))
        case p.Or(parts):
            return np.asarray(np.logical_or.reduce([_evaluate(inner, truth) for inner in parts]))
        case p.Not(inner):
            return ~_evaluate(inner, truth)
        case _:
            return truth[part]


def _pieces(atoms: Sequence[p.Predicate]) -> list[Sequence[p.Predicate]]:
    return [atoms[at : at + MOST_ATOMS] for at in range(0, len(atoms), MOST_ATOMS)]


def _plain(kind: pa.DataType) -> str:
    """A type up to encodings that mean the same: dictionaries, and strings with wide offsets."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    return str(kind)
