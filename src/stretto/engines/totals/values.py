"""What events have to say to counts and sums: the values that are added up, and the groups that their matches belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.array_types import F64, I64, Bits
from stretto.columns.arrays import decoded, numbers_of, reals_of_decimals, valid_of
from stretto.columns.keys import KeyTable
from stretto.columns.measured import values_of
from stretto.columns.nullable import key_parts, key_types
from stretto.columns.vectorized import computed_where
from stretto.engines.totals.plan import Slot
from stretto.engines.totals.structure import HIGHEST
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.query import predicate as p
from stretto.query.passes.bind_totals import BoundGroup

T = TypeVar("T", bound=np.generic)


class Numbers(NamedTuple):
    """A slot's values in some rows."""

    ints: I64  #: decimals at their scale, times as ticks; 0 where there is none, or none that is whole
    reals: F64
    known: Bits  #: where there is a value, and it is not NULL
    lost: Bits | None  #: where 64 bits do not hold it; ``None``: nowhere


def numbers(slot: Slot, batch: pa.RecordBatch, rows: I64) -> Numbers:
    """A slot's values in some rows of a batch."""
    nothing, size = np.zeros(rows.size, np.int64), rows.size
    if slot.counted_only:
        return Numbers(nothing, np.zeros(size), np.ones(size, np.bool_), None)
    names = sorted(p.attributes(slot.value))
    chosen = batch.select(names)
    if size != batch.num_rows:
        chosen = chosen.take(pa.array(rows))
    column, lost = computed_where(slot.value, chosen, slot.kind)
    column = decoded(column)
    valid = valid_of(column)
    known = np.ones(size, np.bool_) if valid is None else np.asarray(valid, np.bool_)
    if lost is not None:
        known &= ~lost
    kind = column.type
    if not _has_numbers(kind):
        return Numbers(nothing, np.zeros(size), known, lost)
    if pa.types.is_decimal(kind):
        reals = numbers_of(reals_of_decimals(column)).astype(np.float64)
        ints = nothing if slot.real else values_of(column.fill_null(0), str(slot.value), 0).astype(np.int64)
        return Numbers(_filled(ints, known), _filled(reals, known), known, lost)
    data = numbers_of(column)
    if data.dtype == np.uint64 and not slot.real:
        beyond = known & (data > HIGHEST)
        lost = beyond if lost is None else lost | beyond
        known &= ~beyond
    ints = nothing if data.dtype.kind == "f" else data.astype(np.int64)
    return Numbers(_filled(ints, known), _filled(data.astype(np.float64), known), known, lost)


def _has_numbers(kind: pa.DataType) -> bool:
    types = pa.types
    found = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_temporal(kind)
    return bool(found and not types.is_interval(kind))


def _filled(data: NDArray[T], known: Bits) -> NDArray[T]:
    """Values with 0 where there are none."""
    found: NDArray[T] = np.where(known, data, data.dtype.type(0))
    return found


class Said:
    """The values of groups by their numbers.

    Parameters
    ----------
    schema
        The columns of the values.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = pa.schema([pa.field(one.name, _plain(one.type)) for one in schema])
        self._pieces: list[pa.Table] = []
        self._size = 0  # rows of values
        self._row = np.full(1, -1, np.int64)  # by number: where its values are

    def learn(self, numbers: I64, columns: Sequence[pa.Array], rows: I64) -> None:
        """Keep the values of numbers that are new; ``columns[rows[i]]`` are those of ``numbers[i]``."""
        if not numbers.size:
            return
        most = int(numbers.max())
        if most >= self._row.size:
            longer = np.full(max(most + 1, 2 * self._row.size), -1, np.int64)
            longer[: self._row.size] = self._row
            self._row = longer
        at = np.flatnonzero(self._row[numbers] < 0)
        if not at.size:
            return
        fresh, first = np.unique(numbers[at], return_index=True)
        chosen = pa.array(rows[at[first]])
        self._pieces.append(pa.Table.from_arrays([decoded(one.take(chosen)) for one in columns], schema=self.schema))
        self._row[fresh] = np.arange(self._size, self._size + fresh.size)
        self._size += fresh.size

    def take(self, numbers: I64) -> list[pa.Array]:
        """The columns of some numbers; NULL for those that have none, such as −1."""
        table = self._whole()
        known = (numbers >= 0) & (numbers < self._row.size)
        at = np.where(known, self._row[np.where(known, numbers, 0)], -1)
        found = table.take(pa.array(np.maximum(at, 0), mask=at < 0))
        return [column.combine_chunks() for column in found.columns]

    def keep(self, numbers: I64) -> None:
        """Forget all but some, which are numbered anew in this order."""
        rows = self._row[numbers]
        known = rows >= 0
        self._pieces = [self._whole().take(pa.array(rows[known]))]
        self._size = int(np.count_nonzero(known))
        self._row = np.append(np.where(known, np.cumsum(known) - 1, -1), -1)

    def _whole(self) -> pa.Table:
        if len(self._pieces) != 1 or any(column.num_chunks > 1 for column in self._pieces[0].columns):
            self._pieces = [pa.concat_tables([self.schema.empty_table(), *self._pieces]).combine_chunks()]
        return self._pieces[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self._row.nbytes) + sum(int(piece.nbytes) for piece in self._pieces)

    def save(self, section: Section) -> None:
        """Write the values by number."""
        section.arrays["row"] = self._row.copy()
        section.put_table("values", self._whole())

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        table = section.table("values")
        self._pieces, self._size = [table.cast(self.schema)], table.num_rows
        self._row = section.numbers("row", least=-1, below=self._size)


class Part:
    """What the one event of a variable says of a group: some attributes, NULL among them, as a number; 0 is that all are NULL.

    Parameters
    ----------
    groups
        The attributes.
    bits
        How many bits the number may have.
    """

    def __init__(self, groups: Sequence[BoundGroup], bits: int) -> None:
        self.groups, self.bits = groups, bits
        self.variable = str(groups[0].variable)
        self.names = [one.attribute for one in groups]
        self._table = KeyTable([kind for one in groups for kind in key_types(one.type)])
        self.said = Said(pa.schema([pa.field(one.name, one.type) for one in groups]))

    def numbers(self, batch: pa.RecordBatch, rows: I64) -> I64:
        """The number of each of some rows.

        Raises
        ------
        LimitError
            There are more values than there are numbers.
        """
        columns = [decoded(batch.column(name)) for name in self.names]
        some = [column.take(pa.array(rows)) for column in columns]
        found = self._table.ids([part for column in some for part in key_parts(column)])
        self.said.learn(found, some, np.arange(rows.size))
        if len(self._table) >> self.bits - 1:
            raise LimitError(
                f"GROUP BY {', '.join(f'{self.variable}[{name}]' for name in self.names)}: there are more than {len(self._table):,} "
                "groups\nhint: group by fewer attributes"
            )
        nothing = np.ones(rows.size, np.bool_)
        for column in some:
            nothing &= np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
        return np.where(nothing, 0, found + 1)

    def take(self, numbers: I64) -> list[pa.Array]:
        """The attributes of some numbers."""
        return self.said.take(numbers - 1)

    @property
    def nbytes(self) -> int:
        """Bytes of the table and the values."""
        return self._table.nbytes + self.said.nbytes

    def save(self, section: Section) -> None:
        """Write the numbers and what they stand for."""
        self._table.save(section.sub("keys"))
        self.said.save(section.sub("said"))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self._table.load(section.sub("keys"))
        self.said.load(section.sub("said"))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
