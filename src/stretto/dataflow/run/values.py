"""Payloads as words of int64, and back: strings are numbers in a dictionary of the dataflow.

I64 of a snapshot of a dataflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stretto.array_types import I64
from stretto.columns.arrays import numbers_of
from stretto.dataflow.run.rows import LEVEL, NEVER, PAYLOAD, VE, VS, WEIGHT
from stretto.errors import DataError, SnapshotError
from stretto.frame import Section
from stretto.query.typing import kind_of
from stretto.times import DAY

_MOST = 1 << 31  #: weights stay below


def checked_time(time: Any) -> int:
    """A time of a snapshot.

    Raises
    ------
    ValueError
        It is none.
    """
    if type(time) is not int or not NEVER <= time < 1 << 63:
        raise ValueError(f"{time!r} is no time")
    return time


def rows_of(section: Section, name: str, width: int) -> I64:
    """I64 of a snapshot, as a copy: what the snapshot has cannot be written to.

    Raises
    ------
    ValueError
        They have another width, or one of them ends before it begins or has a weight or a level that none may have.
    """
    if type(width) is not int or width < PAYLOAD:
        raise ValueError(f"'{name}' has rows of {width!r} words")
    rows = section.numbers(name).reshape(-1, width)
    if ((rows[:, WEIGHT] <= -_MOST) | (rows[:, WEIGHT] >= _MOST) | (rows[:, VS] > rows[:, VE])).any():
        raise ValueError(f"'{name}' has a row that is no interval with a weight")
    if (rows[:, LEVEL] < 0).any():
        raise ValueError(f"'{name}' has a row with a level below 0")
    return np.array(rows)


NAN = int(np.float64(np.nan).view(np.int64))  #: the word of every NaN


class Strings:
    """The strings of a dataflow, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.texts: list[str] = []

    def __len__(self) -> int:
        return len(self.texts)

    def number(self, text: str) -> int:
        """The number of a string, which is kept."""
        found = self._numbers.setdefault(text, len(self.texts))
        if found == len(self.texts):
            self.texts.append(text)
        return found

    def encode(self, column: pa.Array) -> I64:
        """The numbers of a column's strings. Work in Python for each distinct one only."""
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        known = np.array([self.number(text) for text in coded.dictionary.to_pylist()], np.int64)
        return known[coded.indices.to_numpy(zero_copy_only=False)] if len(known) else np.zeros(0, np.int64)

    def decode(self, numbers: I64) -> pa.Array:
        """The strings of numbers. Work in Python for each distinct one only, however many there are in all."""
        found, at = np.unique(numbers, return_inverse=True)
        if found.size and not 0 <= found[0] <= found[-1] < len(self.texts):
            raise SnapshotError("the dataflow goes on from a damaged snapshot: it names a string that is not there")
        return pa.array([self.texts[number] for number in found.tolist()], pa.string()).take(pa.array(at))

    def load(self, texts: Iterable[str]) -> None:
        """Know these, in this order, and no others.

        Raises
        ------
        ValueError
            One is no text, or is there twice.
        """
        self.texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self.texts)}
        if len(self._numbers) < len(self.texts) or not all(isinstance(text, str) for text in self.texts):
            raise ValueError("'strings' are not texts, each of which is there once")


def word_of_float(values: np.ndarray) -> I64:
    """Floats as words that are equal where the floats are: one zero, one NaN."""
    real = np.asarray(values, np.float64) + 0.0
    bits = real.view(np.int64)
    return np.where(np.isnan(real), np.int64(NAN), bits)


def words(column: pa.Array, kind: pa.DataType, strings: Strings) -> I64:
    """A column without NULL as words.

    Raises
    ------
    DataError
        A value does not fit.
    """
    family = kind_of(kind)
    if family == "string":
        return strings.encode(column)
    try:
        cast = column if column.type == kind else column.cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(str(error)) from error
    values = numbers_of(cast)
    if pa.types.is_date(kind):  # in seconds, as code compares it with other times
        values = values.astype(np.int64) * DAY
    return word_of_float(values) if family == "float" else np.asarray(values, np.int64)


def arrays(rows: I64, schema: Mapping[str, pa.DataType], offset: int, strings: Strings) -> list[pa.Array]:
    """The columns of payloads that begin at word ``offset``."""
    made = []
    for at, kind in enumerate(schema.values()):
        column = np.ascontiguousarray(rows[:, offset + at])
        family = kind_of(kind)
        if family == "string":
            made.append(strings.decode(column))
        elif family == "float":
            made.append(pa.array(column.view(np.float64)))
        elif family == "bool":
            made.append(pa.array(column.astype(np.bool_)))
        elif pa.types.is_date(kind):
            made.append(pa.array((column // DAY).astype(np.int32)).cast(pa.date32()).cast(kind))
        else:
            made.append(pa.array(column).cast(kind))
    return made
