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

from stretto.array_types import I64
from stretto.columns.arrays import reals_of_decimals, valid_of
from stretto.columns.keys import KeyTable
from stretto.columns.overflow import IntegerOverflow
from stretto.columns.vectorized import computed, judged
from stretto.errors import LimitError
from stretto.frame import Section
from stretto.query import predicate as p
from stretto.query.passes.bind import measure
from stretto.query.sase import Kept
from stretto.query.scalar_functions import FUNCTIONS
from stretto.query.typing import kind_of
from stretto.times import DAY

T = TypeVar("T")

MOST_WORDS = 62  #: known bits of a row fit into one word


class Op(IntEnum):
    """What a slot keeps: of what :class:`~stretto.query.sase.Kept` names, by the kind of the words."""

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
    WIDE_SUM = 10  #: a sum modulo 2^64, and in the slot behind it …
    CARRY = 11  #: … how often it left 64 bits: upwards less downwards
    HELD = 12  #: whether there is one
    ROUND = 13  #: how many events a Kleene plus has in this round of its group
    ENDED = 14  #: whether it takes no more


def op_of(what: Kept, real: bool = False) -> Op:
    """The operation that keeps something, over floats if ``real``."""
    return Op[f"{what.name}_REAL" if real and what in (Kept.SUM, Kept.MIN, Kept.MAX) else what.name]


_STATES = {Op.HELD: "whether {} is there", Op.ROUND: "{}.LEN in its round", Op.ENDED: "whether {}[] has ended"}
_SHOWN = {Op.WIDE_SUM: "sum", Op.CARRY: "carry of sum"}


@dataclass(frozen=True)
class Column:
    """A word of each event: an attribute, an atom or a value (over plain attribute names), or the number of its key.

    The word of an atom is 1 where it holds, 0 where not, and 2 where integers of 64 bits do not tell.
    """

    attribute: str | None = None
    atom: p.Predicate | None = None
    kind: str = "int"  #: int, float, string, bool, time, key, decimal
    per_second: int = 0  #: of a time
    part: int = 0  #: of a decimal: which of its words, the lowest first
    value: p.Operand | None = None  #: what is computed of columns

    @property
    def real(self) -> bool:
        return self.kind == "float"

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"{self.attribute}:{self.part}"
        return self.attribute or next((str(one) for one in (self.atom, self.value) if one is not None), "key")

    def read(self, table: pa.RecordBatch) -> pa.Array:
        """Its values in some events: of an attribute, or computed."""
        if self.value is None:
            assert self.attribute is not None
            return table.column(self.attribute)
        return computed(self.value, table, pa.string() if self.kind == "string" else pa.int64())


@dataclass(frozen=True)
class Slot:
    """One value of V: an operation over a column of a component's events."""

    component: int
    op: Op
    column: int

    def describe(self, variable: str, column: str) -> str:
        """Show the value vector as ``explain`` prints it."""
        if self.op is Op.LENGTH:
            return f"{variable}.LEN"
        if self.op in _STATES:
            return _STATES[self.op].format(variable)
        name = _SHOWN.get(self.op, self.op.name.lower().removesuffix("_real"))
        return f"{name}({variable}.{column})"


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
    """Words for strings, the same in all columns and batches.

    Parameters
    ----------
    ordered
        Whether words are ordered as their strings are (by code points). New strings then may move the words of others:
        :meth:`learn` says from which to which.
    """

    def __init__(self, *, ordered: bool) -> None:
        self.table = KeyTable([pa.string()])
        self.ordered = ordered
        self.strings = pa.array([], pa.string())
        #: The word of each number of the table.
        self.words = np.empty(0, np.int64)

    def learn(self, columns: list[pa.Array]) -> tuple[I64, I64] | None:
        """Take in the strings of some columns; the words that change, ascending, and what they become."""
        if not self.ordered:
            return None
        for column in columns:
            plain = strings_of(column)
            numbers = self._numbers(plain)
            fresh = numbers >= len(self.strings)
            if fresh.any():
                at, first = np.unique(numbers[fresh], return_index=True)
                assert at[0] == len(self.strings)
                more = plain.take(pa.array(np.flatnonzero(fresh)[first]))
                self.strings = pa.concat_arrays([self.strings, more])
        if len(self.strings) == self.words.size:
            return None
        before = self.words
        place = np.empty(len(self.strings), np.int64)
        place[np.asarray(pc.sort_indices(self.strings))] = np.arange(len(self.strings))
        self.words = place
        order = np.argsort(before)
        return before[order], place[: before.size][order]

    def __len__(self) -> int:
        """How many strings have a word."""
        return len(self.table)

    @property
    def nbytes(self) -> int:
        """Bytes of the strings and their words."""
        return int(self.table.nbytes + self.strings.nbytes + self.words.nbytes)

    def keep(self, alive: NDArray[np.bool_]) -> I64:
        """Forget the strings whose words are not alive; by old word the new one, −1 where forgotten."""
        if not self.ordered:
            return self.table.keep(alive)
        kept = alive[self.words]
        self.table.keep(kept)
        self.strings = self.strings.filter(pa.array(kept))
        renamed = np.where(alive, np.cumsum(alive) - 1, -1)
        self.words = renamed[self.words[kept]]
        return renamed

    def save(self, section: Section) -> None:
        """Write the numbers of strings, and their order where there is one."""
        self.table.save(section.sub("words"))
        if self.ordered:
            section.values["strings"] = self.strings.to_pylist()
            section.sub("words").arrays["order"] = self.words.copy()

    def load(self, section: Section) -> None:
        """Take over what :meth:`save` wrote."""
        self.table.load(section.sub("words"))
        if "strings" in section.values:
            self.strings = pa.array(section.values["strings"], pa.string())
            self.words = section.sub("words").numbers("order", size=len(self.strings))
            if len(self.table) != len(self.strings):
                raise ValueError(f"there are {len(self.strings)} strings, and numbers of {len(self.table)}")

    def _numbers(self, strings: pa.Array) -> I64:
        return self.table.ids([strings], np.arange(len(strings)))

    def of(self, column: pa.Array) -> tuple[I64, NDArray[np.bool_]]:
        """The word of each string, and which are not NULL."""
        numbers = self._numbers(strings_of(column))
        known = numbers >= 0
        return (np.where(known, self.words[numbers], 0) if self.words.size else numbers, known)


def strings_of(column: pa.Array) -> pa.Array:
    """A column of strings in their plain form."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if column.type == pa.string() else column.cast(pa.string())


def column_for(name: str, kind: pa.DataType) -> Column:
    """How an attribute becomes a word."""
    family = kind_of(kind)
    if family == "time":
        how = measure(kind)
        assert how is not None
        return Column(name, kind="time", per_second=how.unit or 1)
    return Column(name, kind="float" if family == "decimal" else family)


def computed_column(node: p.Function) -> Column:
    """What a function gives that is computed of strings, as a word; over plain attribute names."""
    return Column(kind=FUNCTIONS[node.name].gives or "string", value=node)


def decimal_columns(name: str, kind: pa.DataType) -> list[Column]:
    """A decimal attribute as the words of its integer at its scale."""
    words = 1 if kind.precision <= 18 else 2 if kind.bit_width <= 128 else 4
    return [Column(name, kind="decimal", part=part) for part in range(words)]


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
            held, unknown = judged(column.atom, table)
            found[:, number] = held if unknown is None else held + 2 * unknown
            known |= np.int64(1) << number
        else:
            words_of, valid = _words(column, column.read(table), words)
            found[:, number] = words_of
            known |= np.int64(1) << number if valid is None else valid.astype(np.int64) << number
    return found


def _words(column: Column, array: pa.Array, words: Vocabulary | None) -> tuple[I64, NDArray[np.bool_] | None]:
    if column.kind == "string":
        assert words is not None
        return words.of(array)
    valid = valid_of(array)
    if column.kind == "decimal":
        return _unscaled(array, column.part), valid
    if pa.types.is_decimal(array.type):
        array = reals_of_decimals(array)
    if column.kind == "float":
        return np.ascontiguousarray(_filled(array, pa.float64(), 0.0)).view(np.int64), valid
    if column.kind == "bool":
        return _filled(array, pa.bool_(), False).astype(np.int64), valid
    if column.kind == "time" and pa.types.is_date32(array.type):
        return _filled(array.cast(pa.int32()), pa.int64(), 0) * DAY, valid
    if pa.types.is_uint64(array.type):
        return _signed(array, column.attribute or ""), valid
    return _filled(array, pa.int64(), 0), valid


def _unscaled(array: pa.Array, part: int) -> I64:
    """A word of the integers that decimals are at their scale; anything under NULL."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    width = array.type.bit_width // 64
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), np.int64)
    words = np.frombuffer(buffer, np.int64)[width * array.offset : width * (array.offset + len(array))]
    found: I64 = words[part::width]
    return found


def _signed(array: pa.Array, name: str) -> NDArray[Any]:
    """Unsigned integers as signed ones.

    Raises
    ------
    IntegerOverflow
        One is beyond 2^63 − 1: conditions between events compute in signed 64 bits.
    """
    try:
        return _filled(array, pa.int64(), 0)
    except pa.ArrowInvalid as error:
        beyond = pc.max(array).as_py()
        most = (1 << 63) - 1
        raise IntegerOverflow(
            f"'{name}' is {beyond}", f"conditions between events compute in signed 64 bits, up to {most}"
        ) from error


def _filled(array: pa.Array, kind: pa.DataType, instead: object) -> NDArray[Any]:
    """Values with something in place of NULL."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if array.type != kind:
        array = array.cast(kind)
    if array.null_count:
        array = pc.fill_null(array, instead)
    return np.asarray(array.to_numpy(zero_copy_only=False))
