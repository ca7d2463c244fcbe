"""What conditions on the match so far read of the rows of a stream, as words that mean the same in every batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stretto.array_types import I64, Bits
from stretto.columns.keys import KeyTable
from stretto.columns.ordering import ordered_words
from stretto.engines.rows.columns import Shifted
from stretto.engines.rows.history import History
from stretto.engines.rows.interpreter import AT_LABEL, SEEN
from stretto.engines.rows.words import as_words, common
from stretto.errors import QueryError
from stretto.frame import Section

#: Digits of decimals that are integers of 64 bits.
DIGITS = 18


class Encoder:
    """Columns of a clause's programs as words.

    Times and decimals that are compared stand as integers, and strings that are compared for equality by numbers of their own.

    Raises
    ------
    QueryError
        A condition asks which of two strings, or long decimals, of different rows is greater.
    """

    def __init__(self, history: History) -> None:
        self.columns, self.groups = history.columns.columns, history.columns
        self.types: dict[int, pa.DataType] = {}  #: by group of columns that are compared
        for name, group in self.groups.groups.items():
            types = [one.type for one in self.columns if one.rank == group]
            if not types:
                continue
            self.types[group] = common(types)
            if not _is_number(self.types[group]) and group not in self.groups.equal:
                raise QueryError(
                    f"{name.removeprefix('of ')}: which of two rows has the greater value, or whether it came before, is known over "
                    "a stream for numbers and times only",
                    text=history.query.text,
                    span=self.groups.spans.get(group),
                    hint="compare numbers, or ask it of the row before (PREV)",
                )
        for kind, shift in ((one.kind, one.shift) for one in history.registers):
            if kind == SEEN or (kind == AT_LABEL and shift):
                what = "DISTINCT values" if kind == SEEN else "classifiers of rows elsewhere in the match"
                raise QueryError(
                    f"over a stream conditions do not read {what}", text=history.query.text, hint="ask it in MEASURES"
                )
        self.restart()

    def restart(self) -> None:
        """Forget all values."""
        #: By group: the numbers of values.
        self.tables = {group: KeyTable([kind]) for group, kind in self.types.items() if not _is_number(kind)}

    def encoded(self, seen: Shifted) -> tuple[I64, Bits]:
        """The words of rows and of one more, in which all is NULL, (columns, rows + 1), and which are known."""
        columns = self.columns
        words = np.zeros((len(columns), seen.rows + 1), np.int64)
        known = np.zeros((len(columns), seen.rows + 1), np.bool_)
        for at, column in enumerate(columns):
            array = self.groups.array(column, seen)
            if column.rank < 0:
                words[at], known[at] = as_words(array)
                continue
            kind = self.types[column.rank]
            array = array.cast(kind)
            known[at] = np.asarray(array.is_valid())
            if column.rank in self.tables:
                words[at] = self.tables[column.rank].ids([array])
            elif pa.types.is_decimal(kind):
                pairs = array.cast(pa.decimal128(38, kind.scale))
                data = pairs.buffers()[1]
                words[at] = np.frombuffer(data, np.int64)[2 * pairs.offset :][: 2 * len(pairs) : 2]
            else:
                words[at] = ordered_words(array)
        return words, known

    def forget(self, words: I64, known: Bits) -> None:
        """Forget the values that no row has any more; ``words`` of the rows that are held are changed."""
        for group, table in self.tables.items():
            own = [at for at, one in enumerate(self.columns) if one.rank == group]
            alive = np.zeros(len(table), np.bool_)
            for at in own:
                alive[words[at][known[at]]] = True
            renamed = table.keep(alive)
            for at in own:
                words[at][known[at]] = renamed[words[at][known[at]]]

    def save(self, section: Section) -> None:
        """Write the values."""
        for group, table in self.tables.items():
            table.save(section.sub(str(group)))

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        for group, table in self.tables.items():
            table.load(section.sub(str(group)))

    def check(self, words: I64, known: Bits) -> None:
        """Raise unless the words of rows are those of values that there are."""
        for at, one in enumerate(self.columns):
            if (
                one.rank in self.tables
                and not ((words[at] >= 0) & (words[at] < len(self.tables[one.rank])))[known[at]].all()
            ):
                raise ValueError("rows have values that there are not")


def _is_number(kind: pa.DataType) -> bool:
    """Whether values are integers of 64 bits in the same order."""
    types = pa.types
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_temporal(kind)
    return bool(number or (types.is_decimal(kind) and kind.precision <= DIGITS))
