"""What the programs of conditions read of single rows: columns of words of 64 bits.

Integers, truths, times and doubles are their own words. Other values are ranks, among all that they may be compared with.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from stretto.array_types import I64, Bits
from stretto.columns.arrays import decoded, numbers_of, one_array, valid_of
from stretto.columns.ordering import ordered_words
from stretto.columns.vectorized import computed, mask
from stretto.engines.rows.columns import Shifted, overflow_shown
from stretto.engines.rows.interpreter import Values
from stretto.errors import LimitError, Span
from stretto.query import predicate as p
from stretto.query.row_pattern import Frame

#: Columns that an expression may be, where it depends on how many rows of a frame are on both sides.
MOST_VARIANTS = 256

#: Of the random words by which sets of values are told apart: nobody can look for two that have the same.
_SEED = secrets.randbits(64)


@dataclass(frozen=True)
class Column:
    """What a program reads of a row: an expression over :func:`~stretto.engines.rows.columns.plain_name` columns.

    ``rank``: the number of the group of columns that are compared with each other as ranks; −1: integers, truths or doubles.
    ``before``, ``behind``: how many rows of the frame there are on both sides of the row, as far as the column depends on that.
    ``mark``: random words in place of the ranks, several sets of them.
    """

    expression: p.Expression
    type: pa.DataType
    rank: int = -1
    mark: int = 0
    before: int | None = None
    behind: int | None = None


@dataclass
class Columns:
    """The columns of a clause, and the groups of those that are ranked together."""

    columns: list[Column] = field(default_factory=list)
    groups: dict[str, int] = field(default_factory=dict)
    equal: set[int] = field(default_factory=set)  #: the groups of which it is only asked whether two values are equal
    spans: dict[int, Span | None] = field(default_factory=dict)  #: by group: where the comparison stands
    frame: Frame | None = None

    def group(self, name: str) -> int:
        """The number of the group of columns whose values are ranked together; of a name always the same."""
        return self.groups.setdefault(name, len(self.groups))

    def number(self, expression: p.Expression, kind: pa.DataType, rank: int = -1, mark: int = 0) -> int:
        """The number of a column, a new one where there is none."""
        back, ahead = self.reach(expression)
        if (back or ahead) and mark == 0:
            return self._framed(expression, kind, rank, back, ahead)
        wanted = Column(expression, kind, rank, mark)
        if wanted not in self.columns:
            self.columns.append(wanted)
        return self.columns.index(wanted)

    def numbers(self) -> set[int]:
        """The columns whose words are numbers, whatever other rows there are, and known when their row has come."""
        return {
            number
            for number, one in enumerate(self.columns)
            if one.rank < 0 and all(int(name.split(" ", 1)[0]) <= 0 for name in p.attributes(one.expression))
        }

    def values(self, seen: Shifted, latest: I64) -> Values:
        """What programs read of the rows of a table."""
        words = np.zeros((len(self.columns), seen.rows + 1), np.int64)
        known = np.zeros((len(self.columns), seen.rows + 1), np.bool_)
        arrays = [self.array(column, seen) for column in self.columns]
        for group in range(len(self.groups)):
            members = [at for at, column in enumerate(self.columns) if column.rank == group]
            if not members:
                continue
            kind = common([arrays[at].type for at in members])
            cast = pa.concat_arrays([arrays[at].cast(kind) for at in members])
            ordered, ranks = np.unique(ordered_words(cast), return_inverse=True)
            for number, at in enumerate(members):
                part = ranks[number * (seen.rows + 1) : (number + 1) * (seen.rows + 1)]
                if self.columns[at].mark:
                    part = self._random(group, self.columns[at].mark, ordered.size)[part]
                arrays[at] = pa.array(part, pa.int64(), mask=~np.asarray(arrays[at].is_valid()))
        for at, array in enumerate(arrays):
            words[at], known[at] = as_words(array)
        return Values(words, known, latest)

    @staticmethod
    def _random(group: int, mark: int, size: int) -> I64:
        """Random words for the values of a group: two sets of values have the same exclusive or about once in 2^62 pairs."""
        return np.random.default_rng([_SEED, group, mark]).integers(1, 1 << 62, size)

    def reach(self, expression: p.Expression) -> tuple[int, int]:
        """How many rows of a frame an expression may read before its row, and behind it."""
        if self.frame is None:
            return 0, 0
        shifts = [int(name.split(" ", 1)[0]) for name in p.attributes(expression)]
        ahead = max([0, *shifts]) if self.frame.following is not None else 0
        return -min([0, *shifts]), ahead

    def _framed(self, expression: p.Expression, kind: pa.DataType, rank: int, back: int, ahead: int) -> int:
        """The first of the columns for each number of rows of the frame before and behind a row."""
        if (back + 1) * (ahead + 1) > MOST_VARIANTS:
            raise LimitError(
                f"a condition of a window reads rows at distances of up to {max(back, ahead):,}: at most {MOST_VARIANTS}"
            )
        several = range(ahead + 1) if self.frame is not None and self.frame.following is not None else (None,)
        wanted = [Column(expression, kind, rank, 0, one, other) for one in range(back + 1) for other in several]
        if wanted[0] not in self.columns:
            self.columns += wanted
        return self.columns.index(wanted[0])

    def array(self, column: Column, seen: Shifted) -> pa.Array:
        table = _inside(seen.table_of(p.attributes(column.expression), beyond=True), column)
        if isinstance(column.expression, p.Constant):
            return pa.array([column.expression.value] * (seen.rows + 1), column.type)
        with overflow_shown(column.expression, seen):
            if isinstance(column.expression, p.Predicate):
                return pa.array(mask(column.expression, table))
            return one_array(decoded(computed(column.expression, table, column.type)))


def as_words(array: pa.Array) -> tuple[I64, Bits]:
    """Integers, truths, times and doubles as words, and which are known."""
    valid = valid_of(array)
    data = numbers_of(array)
    words = data.astype(np.float64).view(np.int64) if data.dtype.kind == "f" else data.astype(np.int64)
    return words, np.ones(words.size, np.bool_) if valid is None else valid


def _inside(table: pa.RecordBatch, column: Column) -> pa.RecordBatch:
    """Columns, of which those of rows outside of the frame are NULL."""
    if column.before is None:
        return table
    found = {}
    for name, one in zip(table.schema.names, table.columns, strict=True):
        shift = int(name.split(" ", 1)[0]) if name else 0
        outside = shift < -column.before or (column.behind is not None and shift > column.behind)
        found[name] = pa.nulls(len(one), one.type) if outside else one
    return pa.RecordBatch.from_pydict(found)


def common(types: list[pa.DataType]) -> pa.DataType:
    """A type that has the values of all."""
    if len(set(types)) == 1:
        return types[0]
    types = [pa.decimal128(20, 0) if pa.types.is_integer(one) else one for one in types]
    if all(pa.types.is_decimal(one) for one in types):
        scale = max(one.scale for one in types)
        return pa.decimal256(min(76, max(one.precision - one.scale for one in types) + scale), scale)
    if all(pa.types.is_temporal(one) for one in types):
        units = ["s", "ms", "us", "ns"]
        finest = max(units.index(one.unit) if pa.types.is_timestamp(one) else 0 for one in types)
        zone = next((one.tz for one in types if pa.types.is_timestamp(one) and one.tz), None)
        return pa.timestamp(units[finest], zone)
    return pa.large_string()
