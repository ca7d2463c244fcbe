"""RETURN: computed columns of matches, from the events that their variables hold (SASE+ paper, section 2).

Whole columns at a time: the events of a variable in all matches lie one after the other, so that first, last, number and
aggregates are those of segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.columns.arrays import numbers_of, reals_of_decimals, valid_of
from stretto.columns.keys import KeyTable
from stretto.columns.overflow import IntegerOverflow, Order, located
from stretto.columns.vectorized import computed
from stretto.engines.api import Matches
from stretto.query import predicate as p
from stretto.query.passes.bind_sase import BoundReturn, BoundSase
from stretto.query.sase import DISTINCT, LIST, Aggregate, Element, Index, Length, Reference
from stretto.query.typing import kind_of

I64 = NDArray[np.int64]

_LOW = (1 << 32) - 1


class Rows(Protocol):
    """Where the events of a match are looked up by position."""

    def take(self, positions: I64, columns: Sequence[str]) -> pa.Table:
        """The named columns of the events at ``positions``, in that order."""


def computed_columns(
    found: Matches, query: BoundSase, rows: Rows, marks: Sequence[frozenset[str]], order: Order | None = None
) -> list[pa.Array]:
    """The columns of RETURN, one value a match.

    Parameters
    ----------
    found, query, rows, marks
        The matches, and where and how their events are looked up.
    order
        Where the stream was sorted: the row of the input at each position of the stream.

    Raises
    ------
    IntegerOverflow
        A sum or a product of integers leaves 64 bits; the error names the row of the first such match's last event.
    """
    try:
        return _columns(found, query, rows, marks)
    except IntegerOverflow as error:
        raise error.renumbered(found.end).renumbered(order) from None


def _columns(found: Matches, query: BoundSase, rows: Rows, marks: Sequence[frozenset[str]]) -> list[pa.Array]:
    """Do what :func:`computed_columns` does, with errors that name the match by its number."""
    segments: dict[str, _Segments] = {}
    columns: dict[str, pa.Array] = {}
    for item in query.returns or ():
        for name in p.attributes(item.value):
            if name not in columns:
                reference = query.parsed.references[name]
                variable = reference.variable
                if variable not in segments:
                    segments[variable] = _Segments(found, variable, rows, marks)
                columns[name] = segments[variable].value(reference, query.types[name])
    count = found.start.size
    # A column of its own keeps the number of rows where nothing is referred to.
    batch = pa.RecordBatch.from_pydict(columns | {"": pa.nulls(count)})
    return [located(partial(_computed, item), batch, of=" in the match that ends") for item in query.returns or ()]


def _computed(item: BoundReturn, batch: pa.RecordBatch) -> pa.Array:
    return computed(item.value, batch, item.type)


class _Segments:
    """The events of one variable: those of match k are ``positions[bounds[k] : bounds[k + 1]]``.

    Only those that are not empty are read; where a match lacks the variable, its value is NULL, its number 0, its list empty.
    """

    def __init__(self, found: Matches, variable: str, rows: Rows, marks: Sequence[frozenset[str]]) -> None:
        holds = np.array([variable in labels for labels in marks], np.bool_)
        mine = holds[found.mark]
        counts = np.zeros(found.position.size + 1, np.int64)
        np.cumsum(mine, out=counts[1:])
        bounds = counts[found.offset]
        self.lengths = np.diff(bounds)
        self.there = self.lengths > 0
        self.bounds = np.append(bounds[:-1][self.there], bounds[-1:])
        self.positions = found.position[mine]
        self.rows = rows

    def value(self, reference: Reference, kind: pa.DataType) -> pa.Array:
        """What a reference means, in each match."""
        if isinstance(reference, Length) or reference.attribute is None:
            return pa.array(self.lengths)
        function = reference.function if isinstance(reference, Aggregate) else None
        if self.there.all() or function == LIST:
            return self._known(reference, kind)
        try:
            found = self._known(reference, kind)
        except IntegerOverflow as error:
            raise error.renumbered(np.flatnonzero(self.there)) from None
        at = pa.array(np.cumsum(self.there) - 1, mask=~self.there)
        return found.take(at).fill_null(0) if function in ("count", DISTINCT) else found.take(at)

    def _known(self, reference: Element | Aggregate, kind: pa.DataType) -> pa.Array:
        """… in those that have the variable."""
        if isinstance(reference, Element):
            at = self.bounds[1:] - 1 if reference.index is Index.LAST else self.bounds[:-1]
            return self._take(self.positions[at], reference.attribute)
        assert reference.attribute is not None
        values = self._take(self.positions, reference.attribute)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if reference.function == LIST:
            return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(self.lengths)), pa.int32()), values, kind)
        return self._distinct(values) if reference.function == DISTINCT else self._aggregate(reference, values, kind)

    def _take(self, positions: I64, attribute: str) -> pa.Array:
        column = self.rows.take(positions, [attribute]).column(0).combine_chunks()
        return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column

    def _aggregate(self, reference: Aggregate, values: pa.Array, kind: pa.DataType) -> pa.Array:
        begins = self.bounds[:-1]
        valid = valid_of(values)
        known = np.ones(len(values), np.bool_) if valid is None else valid
        counts = np.add.reduceat(known.astype(np.int64), begins) if len(begins) else np.zeros(0, np.int64)
        if reference.function == "count":
            return pa.array(counts)
        if reference.function in ("min", "max") and kind_of(values.type) in ("decimal", "string"):
            return self._sorted_extreme(reference, values, counts).cast(kind)
        if pa.types.is_decimal(values.type):
            values = reals_of_decimals(values)
        data = numbers_of(values)
        if reference.function in ("min", "max"):
            found = _extremes(reference.function, data, known, begins)
            return pa.array(found, mask=counts == 0).cast(_storage(kind)).view(kind)
        data = np.where(known, data, data.dtype.type(0))
        if data.dtype.kind == "f":
            total: NDArray[Any] = np.empty(begins.size, np.float64)
            added_in_order(data.astype(np.float64), begins, total)
            if reference.function == "avg":
                total /= np.maximum(counts, 1)
        else:
            high, low = _exact_sums(data, begins)
            total = _means(high, low, counts) if reference.function == "avg" else _whole(high, low, str(reference))
        return pa.array(total, kind, mask=counts == 0)

    def _sorted_extreme(self, reference: Aggregate, values: pa.Array, counts: I64) -> pa.Array:
        """Decimals and strings have no NumPy form: sorted within their matches, the first or the last that is not NULL."""
        match = np.repeat(np.arange(counts.size), np.diff(self.bounds))
        order = pc.sort_indices(
            pa.table({"match": match, "value": values}), [("match", "ascending"), ("value", "ascending")]
        )
        at = self.bounds[:-1] + (0 if reference.function == "min" else np.maximum(counts, 1) - 1)
        return values.take(order.take(pa.array(at)))

    def _distinct(self, values: pa.Array) -> pa.Array:
        """How many different values there are in each match, NULL left out."""
        numbers = KeyTable([values.type]).ids([values])
        match = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))[numbers >= 0]
        pairs = np.unique(match * (len(values) + 1) + numbers[numbers >= 0])
        return pa.array(np.bincount(pairs // (len(values) + 1), minlength=len(self.bounds) - 1))


def _storage(kind: pa.DataType) -> pa.DataType:
    """The integer or real type with the bits of another one."""
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _extremes(function: str, data: NDArray[Any], known: NDArray[np.bool_], begins: I64) -> NDArray[Any]:
    if not begins.size:
        return data[:0]
    least, most = (-np.inf, np.inf) if data.dtype.kind == "f" else (np.iinfo(data.dtype).min, np.iinfo(data.dtype).max)
    neutral = most if function == "min" else least
    ufunc = np.minimum if function == "min" else np.maximum
    found: NDArray[Any] = ufunc.reduceat(np.where(known, data, data.dtype.type(neutral)), begins)
    return found


def _exact_sums(data: NDArray[Any], begins: I64) -> tuple[I64, I64]:
    """Sums of segments of integers, as ``high · 2^32 + low`` with ``low`` in [0, 2^32): exact up to 2^31 events each."""
    if not begins.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    data = data if data.dtype == np.uint64 else data.astype(np.int64)
    low = np.add.reduceat((data & data.dtype.type(_LOW)).astype(np.int64), begins)
    high = np.add.reduceat((data >> data.dtype.type(32)).astype(np.int64), begins)
    return high + (low >> 32), low & _LOW


def _whole(high: I64, low: I64, what: str) -> I64:
    """Sums in 64 bits."""
    beyond = (high < -(1 << 31)) | (high >= 1 << 31)
    if beyond.any():
        raise IntegerOverflow(
            f"{what} leaves 64 bits in the match that ends", "compute with floats", int(beyond.argmax())
        )
    return (high << 32) + low


def _means(high: I64, low: I64, counts: I64) -> NDArray[np.float64]:
    """Sums by counts, rounded once: floats hold small sums exactly, and Python divides the others exactly."""
    found: NDArray[np.float64] = ((high << 32) + low) / np.maximum(counts, 1)
    for k in np.flatnonzero((high < -(1 << 21)) | (high >= 1 << 21)):
        found[k] = ((int(high[k]) << 32) + int(low[k])) / int(counts[k])
    return found


@jit
def added_in_order(values: NDArray[np.float64], begins: I64, total: NDArray[np.float64]) -> None:
    """Sums of segments from left to right, as running sums add; NumPy adds in another order. O(values)."""
    for k in range(begins.size):
        end = begins[k + 1] if k + 1 < begins.size else values.size
        found = 0.0
        for at in range(begins[k], end):
            found += values[at]
        total[k] = found
