"""The value vector V and the columns beside it: what conditions between events read.

Section 5.2.1 of the SASE+ paper. A condition reads words: of the event at hand from the matrix of *columns*, of the run from
its *slots*. A column is an attribute as a number, or an *atom*: the truth of a condition on that event alone, which is found
column-wise. A slot holds what the run must remember of the events it has selected: the word of a column at the first or the last
event of a component, their number, or a running sum, count, minimum or maximum.

Word 0 of a row says which words are known (bit k for word k; others are NULL).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.errors import LimitError
from stretto.pattern import predicate as p
from stretto.pattern.passes.bind import measure
from stretto.pattern.typing import kind_of
from stretto.predicates.keys import KeyTable
from stretto.predicates.vectorized import mask, valid_of

__all__ = ["MOST_WORDS", "Column", "Op", "Slot", "Values", "Vocabulary", "column_for", "matrix"]

I64 = NDArray[np.int64]
T = TypeVar("T")

MOST_WORDS = 62  #: known bits of a row fit into one word


class Op(IntEnum):
    """What a slot keeps."""

    FIRST = 0  #: the word at a component's first event
    LAST = 1  #: … at its last event so far
    LENGTH = 2  #: how many events it has
    COUNT = 3  #: how many of them know the word
    SUM = 4
    SUM_REAL = 5
    MIN = 6
    MIN_REAL = 7
    MAX = 8
    MAX_REAL = 9


@dataclass(frozen=True)
class Column:
    """A word of each event: an attribute, an atom (over plain attribute names), or the number of its key."""

    attribute: str | None = None
    atom: p.Predicate | None = None
    kind: str = "int"  #: int, float, string, bool, time, key
    per_second: int = 0  #: of a time

    @property
    def real(self) -> bool:
        return self.kind == "float"

    def __str__(self) -> str:
        return self.attribute or (str(self.atom) if self.atom is not None else "key")


@dataclass(frozen=True)
class Slot:
    """One value of V: an operation over a column of a component's events."""

    component: int
    op: Op
    column: int

    def describe(self, variable: str, column: str) -> str:
        """As text for ``explain``."""
        if self.op is Op.LENGTH:
            return f"{variable}.LEN"
        return f"{self.op.name.lower().replace('_real', '')}({variable}.{column})"


@dataclass
class Values:
    """Columns and slots of a program, numbered from 1 in the order in which conditions ask for them."""

    columns: list[Column] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)

    def column(self, column: Column) -> int:
        return _number(self.columns, column)

    def slot(self, component: int, op: Op, column: int) -> int:
        return _number(self.slots, Slot(component, op, column))


def _number(known: list[T], wanted: T) -> int:
    if wanted not in known:
        if len(known) == MOST_WORDS:
            raise LimitError(f"the query's conditions remember more than {MOST_WORDS} values; say less in one query")
        known.append(wanted)
    return known.index(wanted) + 1


class Vocabulary:
    """Numbers for strings, the same in all columns and batches; those of a query's constants come first."""

    def __init__(self, constants: list[str]) -> None:
        self.table = KeyTable([pa.string()])
        if constants:
            self.ids(pa.array(constants, pa.string()))

    def ids(self, column: pa.Array) -> I64:
        """The number of each string; −1 for NULL."""
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if column.type != pa.string():
            column = column.cast(pa.string())
        return self.table.ids([column], np.arange(len(column)))


def column_for(name: str, kind: pa.DataType) -> Column:
    """How an attribute becomes a word."""
    family = kind_of(kind)
    if family == "time":
        how = measure(kind)
        assert how is not None
        return Column(name, kind="time", per_second=how.unit or 1)
    return Column(name, kind="float" if family == "decimal" else family)


def matrix(columns: list[Column], table: pa.RecordBatch, words: Vocabulary | None, keys: I64 | None) -> I64:
    """The columns of some events: [event, 0] known bits, [event, k] the word of column k."""
    rows = table.num_rows
    found = np.zeros((rows, len(columns) + 1), np.int64)
    known = found[:, 0]
    for number, column in enumerate(columns, 1):
        if column.kind == "key":
            assert keys is not None
            found[:, number] = keys
            known |= (keys >= 0).astype(np.int64) << number
        elif column.atom is not None:
            found[:, number] = mask(column.atom, table)
            known |= np.int64(1) << number
        else:
            assert column.attribute is not None
            words_of, valid = _words(column, table.column(column.attribute), words)
            found[:, number] = words_of
            known |= np.int64(1) << number if valid is None else valid.astype(np.int64) << number
    return found


def _words(column: Column, array: pa.Array, words: Vocabulary | None) -> tuple[I64, NDArray[np.bool_] | None]:
    if column.kind == "string":
        assert words is not None
        ids = words.ids(array)
        return ids, ids >= 0
    valid = valid_of(array)
    if column.kind == "float":
        return np.ascontiguousarray(_filled(array, pa.float64(), 0.0)).view(np.int64), valid
    if column.kind == "bool":
        return _filled(array, pa.bool_(), False).astype(np.int64), valid
    if column.kind == "time" and pa.types.is_date32(array.type):
        return _filled(array.cast(pa.int32()), pa.int64(), 0) * 86_400, valid
    if pa.types.is_uint64(array.type):
        return _filled(pc.cast(array, pa.int64()), pa.int64(), 0), valid
    return _filled(array, pa.int64(), 0), valid


def _filled(array: pa.Array, kind: pa.DataType, instead: object) -> NDArray[Any]:
    """Values with something in place of NULL."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if array.type != kind:
        array = array.cast(kind)
    if array.null_count:
        array = pc.fill_null(array, instead)
    return np.asarray(array.to_numpy(zero_copy_only=False))
