"""Partition keys as dense numbers: hash tables over whole columns, exact, with no Python code per row or key.

A key of one fixed-width column of at most 8 bytes is looked up as an integer; every other key as a string of bytes (several
columns: each value with its length before it), compared in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_TABLE, jit
from stretto.predicates.coding import frozen, string_buffers

__all__ = ["KeyTable"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]


class _Table(NamedTuple):
    """Open addressing with linear probing. ``slot`` holds numbers from 1; 0 is empty."""

    slot: I64
    integer: I64  #: by number: the key, when keys are integers
    bound: I64  #: by number: where the key's bytes end (bound[0] = 0), when keys are bytes
    data: U8  #: the bytes of all keys
    used: I64  #: [keys, where the call stopped]


@jit
def _hash(key: int) -> int:
    """Shifts and exclusive-or only: the same compiled or not, where a product would overflow."""
    h = key ^ ((key >> 32) & 0xFFFFFFFF)
    h ^= (h << 13) & 0x7FFFFFFFFFFFE000
    h ^= (h >> 7) & 0x1FFFFFFFFFFFFFF
    h ^= (h << 17) & 0x7FFFFFFFFFFE0000
    return h ^ ((h >> 29) & 0x7FFFFFFFF)


@jit
def _hash_bytes(data: U8, begin: int, length: int) -> int:
    h = np.int64(length)
    for i in range(length):
        h ^= np.int64(data[begin + i])
        h ^= (h << 13) & 0x7FFFFFFFFFFFE000
        h ^= (h >> 7) & 0x1FFFFFFFFFFFFFF
        h ^= (h << 17) & 0x7FFFFFFFFFFE0000
    return h ^ ((h >> 29) & 0x7FFFFFFFF)


@jit
def _look_up_integers(keys: I64, valid: NDArray[np.bool_], rows: I64, first: int, table: _Table, ids: I64) -> int:
    """ids[i] = number of the key at rows[i] minus 1; −1 where it is NULL. New keys get the next number. O(1) a row."""
    wrap = table.slot.size - 1
    for i in range(first, rows.size):
        row = rows[i]
        if valid.size and not valid[row]:
            ids[i] = -1
            continue
        key = keys[row]
        at = _hash(key) & wrap
        while table.slot[at] and table.integer[table.slot[at]] != key:
            at = (at + 1) & wrap
        if table.slot[at] == 0:
            number = table.used[0] + 1
            if 2 * number > table.slot.size or number >= table.integer.size:
                table.used[1] = i
                return GROW_TABLE
            table.used[0] = number
            table.integer[number] = key
            table.slot[at] = number
        ids[i] = table.slot[at] - 1
    return DONE


@jit
def _look_up_bytes(
    offsets: NDArray[Any], data: U8, valid: NDArray[np.bool_], rows: I64, first: int, table: _Table, ids: I64
) -> int:
    """As :func:`_look_up_integers`, for the bytes data[offsets[row]:offsets[row + 1]]. O(their length) a row."""
    wrap = table.slot.size - 1
    for i in range(first, rows.size):
        row = rows[i]
        if valid.size and not valid[row]:
            ids[i] = -1
            continue
        begin = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - begin
        at = _hash_bytes(data, begin, length) & wrap
        while True:
            number = table.slot[at]
            if number == 0:
                break
            start = table.bound[number - 1]
            if table.bound[number] - start == length:
                k = 0
                while k < length and table.data[start + k] == data[begin + k]:
                    k += 1
                if k == length:
                    break
            at = (at + 1) & wrap
        if number == 0:
            number = table.used[0] + 1
            end = table.bound[number - 1] + length
            if 2 * number > table.slot.size or number >= table.bound.size or end > table.data.size:
                table.used[1] = i
                return GROW_TABLE
            table.used[0] = number
            for k in range(length):
                table.data[table.bound[number - 1] + k] = data[begin + k]
            table.bound[number] = end
            table.slot[at] = number
        ids[i] = number - 1
    return DONE


@jit
def _place_integers(table: _Table) -> None:
    """Fill empty slots with all keys."""
    wrap = table.slot.size - 1
    for number in range(1, table.used[0] + 1):
        at = _hash(table.integer[number]) & wrap
        while table.slot[at]:
            at = (at + 1) & wrap
        table.slot[at] = number


@jit
def _place_bytes(table: _Table) -> None:
    """Fill empty slots with all keys."""
    wrap = table.slot.size - 1
    for number in range(1, table.used[0] + 1):
        start = table.bound[number - 1]
        at = _hash_bytes(table.data, start, table.bound[number] - start) & wrap
        while table.slot[at]:
            at = (at + 1) & wrap
        table.slot[at] = number


@jit
def _copy_rows(offsets: NDArray[Any], data: U8, rows: I64, place: I64, out: U8) -> None:
    """Append each row's length (8 bytes) and bytes at place[i], and move place[i] behind them."""
    for i in range(rows.size):
        begin = np.int64(offsets[rows[i]])
        length = np.int64(offsets[rows[i] + 1]) - begin
        at = place[i]
        for k in range(8):
            out[at + k] = (length >> (8 * k)) & 255
        for k in range(length):
            out[at + 8 + k] = data[begin + k]
        place[i] = at + 8 + length


@jit
def _keep_bytes(bound: I64, data: U8, alive: NDArray[np.bool_], new_bound: I64, new_data: U8) -> None:
    """Copy the bytes of the keys that stay."""
    number = 0
    at = 0
    for old in range(alive.size):
        if alive[old]:
            for k in range(bound[old], bound[old + 1]):
                new_data[at] = data[k]
                at += 1
            number += 1
            new_bound[number] = at


class KeyTable:
    """Numbers the keys of partitions, in order of appearance, from 0.

    Parameters
    ----------
    types
        The Arrow types of the key columns.

    >>> table = KeyTable([pa.string()])
    >>> table.ids([pa.array(["a", "b", None, "a"])]).tolist()
    [0, 1, -1, 0]
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self.integers = len(self.types) == 1 and _is_narrow(self.types[0])
        self._table = self._empty(16, 64)

    def _empty(self, keys: int, size: int) -> _Table:
        slots = 1 << (2 * keys + 1).bit_length()
        integer = np.zeros(keys + 1 if self.integers else 1, np.int64)
        bound = np.zeros(1 if self.integers else keys + 1, np.int64)
        return _Table(
            np.zeros(slots, np.int64),
            integer,
            bound,
            np.zeros(1 if self.integers else size, np.uint8),
            np.zeros(2, np.int64),
        )

    def __len__(self) -> int:
        """How many numbers were given out."""
        return int(self._table.used[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return sum(array.nbytes for array in self._table)

    def ids(self, columns: Sequence[pa.Array | pa.ChunkedArray], rows: I64 | None = None) -> I64:
        """The number of each row's key, −1 where a column is NULL.

        Parameters
        ----------
        columns
            One column per key attribute, of equal length.
        rows
            Only these rows (ascending indices); ``None``: all.

        Returns
        -------
        numpy.ndarray
            int64, one number for each row that was asked for.
        """
        if not columns:
            raise ValueError("a key has at least one column")
        arrays = [_one(column) for column in columns]
        chosen = np.arange(len(arrays[0])) if rows is None else np.asarray(rows, np.int64)
        ids = np.empty(chosen.size, np.int64)
        if self.integers:
            values, valid = _integers(arrays[0])
            self._run(lambda first: _look_up_integers(values, valid, chosen, first, self._table, ids))
        elif len(arrays) == 1:
            offsets, data, valid = _as_bytes(arrays[0])
            self._run(lambda first: _look_up_bytes(offsets, data, valid, chosen, first, self._table, ids))
        else:
            offsets, data, valid = _joined(arrays, chosen)
            every = np.arange(chosen.size)
            self._run(lambda first: _look_up_bytes(offsets, data, valid, every, first, self._table, ids))
        return ids

    def _run(self, kernel: Any) -> None:
        first = 0
        while kernel(first) == GROW_TABLE:
            first = int(self._table.used[1])
            self._grow()

    def _grow(self) -> None:
        old = self._table
        keys = 2 * max(old.integer.size, old.bound.size)
        fresh = self._empty(keys, 2 * old.data.size + 64)
        for name in ("integer", "bound", "data"):
            source, target = getattr(old, name), getattr(fresh, name)
            target[: source.size] = source[: target.size]
        fresh.used[:] = old.used
        self._replace(fresh)

    def _replace(self, table: _Table) -> None:
        self._table = table
        (_place_integers if self.integers else _place_bytes)(table)

    def keep(self, alive: NDArray[np.bool_]) -> I64:
        """Forget the keys that are not ``alive`` (by number) and renumber the others in order.

        Returns
        -------
        numpy.ndarray
            int64 by old number: the new one, −1 where forgotten.
        """
        old = self._table
        alive = np.asarray(alive, np.bool_)
        count = int(np.count_nonzero(alive))
        numbers = np.flatnonzero(alive) + 1
        renamed = np.full(alive.size, -1, np.int64)
        renamed[alive] = np.arange(count)
        if self.integers:
            fresh = self._empty(max(16, count), 0)
            fresh.integer[1 : count + 1] = old.integer[numbers]
        else:
            size = int(np.sum(old.bound[numbers] - old.bound[numbers - 1]))
            fresh = self._empty(max(16, count), max(64, size))
            _keep_bytes(old.bound, old.data, alive, fresh.bound, fresh.data)
        fresh.used[0] = count
        self._replace(fresh)
        return renamed

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The keys in order of their numbers, for a snapshot."""
        count = len(self)
        if self.integers:
            return {"integer": self._table.integer[1 : count + 1].copy()}
        bound = self._table.bound[: count + 1].copy()
        return {"bound": bound, "data": self._table.data[: int(bound[-1])].copy()}

    @classmethod
    def from_arrays(cls, types: Sequence[pa.DataType], arrays: dict[str, NDArray[Any]]) -> KeyTable:
        """The table that :meth:`arrays` came from."""
        table = cls(types)
        if table.integers:
            count = arrays["integer"].size
            fresh = table._empty(max(16, count), 0)
            fresh.integer[1 : count + 1] = arrays["integer"]
        else:
            count = arrays["bound"].size - 1
            fresh = table._empty(max(16, count), max(64, arrays["data"].size))
            fresh.bound[: count + 1] = arrays["bound"]
            fresh.data[: arrays["data"].size] = arrays["data"]
        fresh.used[0] = count
        table._replace(fresh)
        return table


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_narrow(kind: pa.DataType) -> bool:
    kind = _value_type(kind)
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_temporal(kind))


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
        )
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


def _integers(array: pa.Array) -> tuple[I64, NDArray[np.bool_]]:
    """A narrow column as 64-bit integers that are equal when the values are."""
    valid = np.zeros(0, np.bool_)
    kind = array.type
    if array.null_count:
        valid = np.array(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    if pa.types.is_floating(kind):
        real = np.array(array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)) + 0.0  # −0.0 is 0.0
        real[np.isnan(real)] = np.nan
        return frozen(real.view(np.int64)), valid
    if kind == pa.uint64():
        return frozen(np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False)).view(np.int64)), valid
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_temporal(kind) and kind.bit_width == 32:
        array = array.cast(pa.int32())
    return frozen(np.asarray(array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))), valid


def _as_bytes(array: pa.Array) -> tuple[NDArray[Any], U8, NDArray[np.bool_]]:
    """A column as offsets, bytes and validity."""
    if _is_narrow(array.type):
        values, valid = _integers(array)
        return np.arange(values.size + 1) * 8, frozen(np.ascontiguousarray(values).view(np.uint8)), valid
    if pa.types.is_decimal(array.type):
        wide = array.cast(pa.decimal128(38, array.type.scale)) if array.type.bit_width <= 128 else array
        width = wide.type.bit_width // 8
        data = np.frombuffer(wide.buffers()[1], np.uint8)
        valid = np.array(wide.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        return (np.arange(len(wide) + 1) + wide.offset) * width, frozen(data), valid
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return string_buffers(array)


def _joined(arrays: Sequence[pa.Array], rows: I64) -> tuple[NDArray[Any], U8, NDArray[np.bool_]]:
    """Several columns as one: the values of a row one after the other, each behind its length."""
    parts = [_as_bytes(array) for array in arrays]
    valid = np.ones(rows.size, np.bool_)
    size = np.zeros(rows.size, np.int64)
    for offsets, _, known in parts:
        if known.size:
            valid &= known[rows]
        size += 8 + (offsets[rows + 1].astype(np.int64) - offsets[rows])
    bound = np.zeros(rows.size + 1, np.int64)
    np.cumsum(size, out=bound[1:])
    out = np.empty(max(1, int(bound[-1])), np.uint8)
    place = bound[:-1].copy()
    for offsets, data, _ in parts:
        _copy_rows(offsets, data, rows, place, out)
    return bound, frozen(out), valid
