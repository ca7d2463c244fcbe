"""Taking rows of a table that lies in chunks, at the cost of what is taken.

``pyarrow``'s ``take`` on a table of several chunks first joins all of them, so that a call costs the whole table. The rows of a
piece of matches lie near each other: here only the chunks that they are in are touched. From one chunk Arrow takes all columns in
one call; of several, columns of fixed width (numbers, times, the codes of dictionaries) are written straight to where they go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto.array_types import I64

#: Tables whose chunks are smaller than this on average are joined first: each chunk that is touched costs some calls.
SMALL = 1 << 12


class _Place(NamedTuple):
    """Where rows are: those of chunk ``chunks[i]`` are ``local[bounds[i] : bounds[i + 1]]``, in the order of chunks."""

    chunks: list[int]
    bounds: list[int]
    local: I64
    order: I64 | None  #: which row of the result each of them is; ``None``: the same


class Gatherer:
    """Takes rows of a table.

    Parameters
    ----------
    table
        Of any columns, in any chunks.

    >>> table = pa.concat_tables([pa.table({"x": ["a", "b"]}), pa.table({"x": ["c"]})])
    >>> Gatherer(table).take(np.array([2, 0, 2]), ["x"])["x"].to_pylist()
    ['c', 'a', 'c']
    """

    def __init__(self, table: pa.Table) -> None:
        batches = _batches(table)
        if len(batches) > 1 and len(batches) * SMALL > table.num_rows:
            batches = _batches(table.combine_chunks())
        self._starts = np.zeros(len(batches) + 1, np.int64)
        np.cumsum([batch.num_rows for batch in batches], out=self._starts[1:])
        self.schema = table.schema
        self._batches = batches
        self._columns = {name: [batch.column(i) for batch in batches] for i, name in enumerate(table.column_names)}

    def take(self, rows: I64, names: Sequence[str]) -> pa.Table:
        """The named columns of some rows (in any order), one chunk a column. O(rows), and some calls for each chunk touched."""
        schema = pa.schema(list(map(self.schema.field, names)))
        if not rows.size:
            return schema.empty_table()
        place = self._place(rows)
        if len(place.chunks) > 1:
            return pa.Table.from_arrays([self._column(name, place) for name in names], schema=schema)
        batch = self._batches[place.chunks[0]].select(list(names))
        return pa.Table.from_batches([pc.take(batch, pa.array(place.local), boundscheck=False)], schema=schema)

    def _place(self, rows: I64) -> _Place:
        least, most = int(rows.min()), int(rows.max())
        if least < 0 or most >= self._starts[-1]:
            raise IndexError(f"rows {least} to {most} of {self._starts[-1]}")
        first, last = np.searchsorted(self._starts, (least, most), side="right") - 1
        if first == last:
            return _Place([int(first)], [0, rows.size], rows - self._starts[first], None)
        # As small numbers, which NumPy sorts by counting.
        within = self._starts[first + 1 : last + 1]
        chunk: NDArray[Any] = np.searchsorted(within, rows, side="right")
        chunk = chunk.astype(np.int16 if within.size < 1 << 15 else np.int64)
        order = None
        if (chunk[1:] < chunk[:-1]).any():
            order = np.argsort(chunk, kind="stable")
            chunk, rows = chunk[order], rows[order]
        begins = np.flatnonzero(np.concatenate(([True], chunk[1:] != chunk[:-1])))
        touched = chunk[begins].astype(np.int64) + first
        local = rows - np.repeat(self._starts[touched], np.diff(begins, append=rows.size))
        return _Place(touched.tolist(), [*begins.tolist(), rows.size], local, order)

    def _column(self, name: str, place: _Place) -> pa.Array:
        chunks = self._columns[name]
        kind = self.schema.field(name).type
        touched = [chunks[number] for number in place.chunks]
        if pa.types.is_dictionary(kind):
            if not _one_dictionary(touched) and self._unify(name):
                touched = [self._columns[name][number] for number in place.chunks]
            if _one_dictionary(touched):
                codes = _fixed([chunk.indices for chunk in touched], kind.index_type, place)
                return pa.DictionaryArray.from_arrays(codes, touched[0].dictionary, ordered=kind.ordered, safe=False)
        if _has_fixed_width(kind):
            return _fixed(touched, kind, place)
        return _any(touched, place)

    def _unify(self, name: str) -> bool:
        """Give all chunks of a column one dictionary; whether that can be."""
        try:
            one = pa.chunked_array(self._columns[name]).unify_dictionaries()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False
        self._columns[name] = one.chunks
        return True


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return [batch for batch in table.to_batches() if batch.num_rows]


def _has_fixed_width(kind: pa.DataType) -> bool:
    """Whether values are one, two, four or eight whole bytes."""
    types = pa.types
    number = types.is_integer(kind) or types.is_floating(kind)
    return bool(number or (types.is_temporal(kind) and not types.is_interval(kind)))


def _one_dictionary(arrays: Sequence[pa.DictionaryArray]) -> bool:
    """Whether arrays share the memory of their dictionaries."""
    first = _memory(arrays[0].dictionary)
    return all(_memory(array.dictionary) == first for array in arrays[1:])


def _memory(array: pa.Array) -> tuple[int, ...]:
    buffers = [0 if buffer is None else buffer.address for buffer in array.buffers()]
    return (len(array), array.offset, *buffers)


def _fixed(arrays: Sequence[pa.Array], kind: pa.DataType, place: _Place) -> pa.Array:
    """Rows of arrays of fixed width. O(rows)."""
    dtype = np.dtype(f"u{kind.bit_width // 8}")
    # A chunk of NULLs alone may have no buffer of values.
    values = [
        np.zeros(len(array), dtype)
        if array.buffers()[1] is None
        else np.frombuffer(array.buffers()[1], dtype, array.offset + len(array))[array.offset :]
        for array in arrays
    ]
    found = _gathered(values, dtype, place)
    valid = None
    if any(array.null_count for array in arrays):
        known = _gathered([np.asarray(array.is_valid()) for array in arrays], np.dtype(np.bool_), place)
        valid = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, found.size, [valid, pa.py_buffer(found)])


def _gathered(values: Sequence[NDArray[Any]], dtype: np.dtype[Any], place: _Place) -> NDArray[Any]:
    found = np.empty(place.local.size, dtype)
    for number, of_chunk in enumerate(values):
        piece = slice(place.bounds[number], place.bounds[number + 1])
        found[piece] = of_chunk[place.local[piece]]
    if place.order is None:
        return found
    placed = np.empty_like(found)
    placed[place.order] = found
    return placed


def _any(arrays: Sequence[pa.Array], place: _Place) -> pa.Array:
    """Rows of arrays of any type: from each chunk, and then in order."""
    parts = [
        array.take(pa.array(place.local[place.bounds[number] : place.bounds[number + 1]]))
        for number, array in enumerate(arrays)
    ]
    found = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    if place.order is None:
        return found
    back = np.empty(place.order.size, np.int64)
    back[place.order] = np.arange(place.order.size)
    return found.take(pa.array(back))
