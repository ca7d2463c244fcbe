"""RETURN: computed columns of matches, from the events that their variables hold (SASE+ paper, section 2).

Whole columns at a time: the events of a variable in all matches lie one after the other, so that first, last, number and
aggregates are those of segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto._jit import jit
from stretto.engines.tecs.state import Matches
from stretto.errors import DataError
from stretto.pattern import predicate as p
from stretto.pattern.passes.bind_sase import BoundSase
from stretto.pattern.sase import Aggregate, Element, Index, Length, Reference
from stretto.predicates.vectorized import computed, numbers_of, reals_of_decimals, valid_of

__all__ = ["Rows", "computed_columns"]

I64 = NDArray[np.int64]

_INT64 = np.iinfo(np.int64)


class Rows(Protocol):
    """Where the events of a match are looked up by position."""

    def take(self, positions: I64, columns: Sequence[str]) -> pa.Table:
        """The named columns of the events at ``positions``, in that order."""


def computed_columns(found: Matches, query: BoundSase, rows: Rows, marks: Sequence[frozenset[str]]) -> list[pa.Array]:
    """The columns of RETURN, one value a match.

    Raises
    ------
    DataError
        A sum or a product of integers leaves 64 bits.
    """
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
    return [computed(item.value, batch, item.type) for item in query.returns or ()]


class _Segments:
    """The events of one variable: those of match k are ``positions[bounds[k] : bounds[k + 1]]``; none is empty."""

    def __init__(self, found: Matches, variable: str, rows: Rows, marks: Sequence[frozenset[str]]) -> None:
        holds = np.array([variable in labels for labels in marks], np.bool_)
        mine = holds[found.mark]
        counts = np.zeros(found.position.size + 1, np.int64)
        np.cumsum(mine, out=counts[1:])
        self.bounds = counts[found.offset]
        self.positions = found.position[mine]
        self.rows = rows

    def value(self, reference: Reference, kind: pa.DataType) -> pa.Array:
        """What a reference means, in each match."""
        lengths = pa.array(np.diff(self.bounds))
        if isinstance(reference, Length):
            return lengths
        if isinstance(reference, Element):
            at = self.bounds[1:] - 1 if reference.index is Index.LAST else self.bounds[:-1]
            return self._take(self.positions[at], reference.attribute)
        if reference.attribute is None:
            return lengths
        return self._aggregate(reference, self._take(self.positions, reference.attribute), kind)

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
        if pa.types.is_decimal(values.type) and reference.function in ("min", "max"):
            return self._extreme_of_decimals(reference, values, kind)
        if pa.types.is_decimal(values.type):
            values = reals_of_decimals(values)
        data = numbers_of(values)
        if reference.function in ("min", "max"):
            found = _extremes(reference.function, data, known, begins)
            return pa.array(found, mask=counts == 0).cast(_storage(kind)).view(kind)
        total = _sums(np.where(known, data, data.dtype.type(0)), begins, str(reference))
        if reference.function == "avg":
            return pa.array(total / np.maximum(counts, 1), pa.float64(), mask=counts == 0)
        return pa.array(total, kind, mask=counts == 0)

    def _extreme_of_decimals(self, reference: Aggregate, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Decimals have no NumPy form: sorted within their matches, the first or the last."""
        match = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))
        table = pa.table({"match": match, "value": values})
        chosen = table.group_by("match").aggregate([("value", reference.function)]).sort_by("match")
        return pc.cast(chosen.column(1).combine_chunks(), kind)


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


def _sums(data: NDArray[Any], begins: I64, what: str) -> NDArray[Any]:
    if data.dtype.kind == "f":
        total = np.empty(begins.size, np.float64)
        added_in_order(data.astype(np.float64), begins, total)
        return total
    whole = data.astype(np.int64)
    if not begins.size:
        return whole
    near = np.add.reduceat(whole.astype(np.float64), begins)
    if (np.abs(near) > float(_INT64.max) * (1 - 1e-9)).any():
        raise DataError(f"{what} leaves 64 bits: sum floats instead")
    return np.asarray(np.add.reduceat(whole, begins))


@jit
def added_in_order(values: NDArray[np.float64], begins: I64, total: NDArray[np.float64]) -> None:
    """Sums of segments from left to right, as running sums add; NumPy adds in another order. O(values)."""
    for k in range(begins.size):
        end = begins[k + 1] if k + 1 < begins.size else values.size
        found = 0.0
        for at in range(begins[k], end):
            found += values[at]
        total[k] = found
