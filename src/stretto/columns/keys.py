"""Partition keys as dense numbers: a hash table over whole columns, with no Python code per row or key.

A key is a row of 64-bit words: one for a number, a truth value or a time, two for a decimal, and for strings their length
and their bytes padded to words. Where all rows have as many words, key ``n`` stands at ``n × words`` of the *arena*; else
its start is kept. A slot of the table holds half of the hash beside the number, so that a look-up reads the arena for the
right key and hardly any other, and growing reads the slots only. Keys are compared in full: nothing relies on hashes.

Keys of one word that lie near each other, as the numbers of users do, are looked up in an array by their value: what was found
once in the table is found there, in a fraction of the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_ARENA, GROW_TABLE, inlined, jit
from stretto.columns.arrays import frozen, numbers_of, valid_of
from stretto.errors import DataError, LimitError
from stretto.frame import Section

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]
Bits = NDArray[np.bool_]

PIECE = 1 << 15  #: rows are encoded in pieces of this many, so that their words stay in the cache
BLOCK = 1 << 8  #: rows whose slots are loaded at once
MOST_KEYS = (1 << 32) - 2  #: numbers take half a slot
NEAR = 8  #: keys are near each other if there are at most so many values for each
MOST_NEAR = 1 << 30  #: … and no more than this, so that numbers fit into 32 bits

_LOW32 = np.uint64(0xFFFFFFFF)
_SHIFT32 = np.uint64(32)
_SHIFT29 = np.uint64(29)
_MIX = np.uint64(0x9E3779B1)  # below 2^32: a product of 32 bits never wraps, compiled or not
_MIX2 = np.uint64(0x85EBCA77)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_FOUND = np.uint64(1 << 63)  #: no hash: it has 32 bits

# Registers of a table.
COUNT = 0  #: keys
USED = 1  #: words of the arena
STOPPED = 2  #: the row at which a call stopped for want of room
LOADED = 3  #: nothing; it keeps the compiler from dropping loads that only warm the cache
REGISTERS = 4


class _Table(NamedTuple):
    """Open addressing with linear probing."""

    slot: U64  #: hash << 32 | number + 1, 0 empty; a power of two long
    arena: U64  #: the words of all keys, by number
    start: I64  #: by number: where its words start (start[0] = 0); empty when all have ``words``
    registers: I64  #: see above
    hashes: U64  #: scratch for a block of rows
    near: I32  #: by word − ``base[0]``: number + 1, 0 not known; empty where keys do not lie near each other
    base: U64


@inlined
def _mix(hash_: np.uint64, word: np.uint64) -> np.uint64:
    """One round: both halves times an odd constant, crosswise."""
    h = hash_ ^ word
    high = (h >> _SHIFT32) * _MIX2
    return ((h & _LOW32) * _MIX) ^ ((high << _SHIFT32) | (high >> _SHIFT32))


@inlined
def _hash(words: U64, begin: int, end: int) -> np.uint64:
    """32 bits of hash of some words."""
    h = np.uint64(end - begin)
    for at in range(begin, end):
        h = _mix(h, words[at])
    h = _mix(h ^ (h >> _SHIFT29), _ZERO)
    return (h ^ (h >> _SHIFT32)) & _LOW32


@inlined
def _is_near(word: np.uint64, table: _Table) -> bool:
    return bool(word >= table.base[0] and word - table.base[0] < np.uint64(table.near.size))


@inlined
def _look_ahead(rows: U64, bounds: I64, width: int, low: int, high: int, table: _Table, ids: I64) -> np.uint64:
    """Write the numbers that ``near`` has, and the hashes of the other keys of a block; load their slots, so that misses overlap."""
    wrap = table.slot.size - 1
    loaded = _ZERO
    for i in range(low, high):
        if width == 1 and _is_near(rows[i], table):
            number = np.int64(table.near[rows[i] - table.base[0]]) - 1
            if number >= 0:
                if ids[i] >= 0:
                    ids[i] = number
                table.hashes[i - low] = _FOUND
                continue
        begin = i * width if width else bounds[i]
        end = begin + width if width else bounds[i + 1]
        hash_ = _hash(rows, begin, end)
        table.hashes[i - low] = hash_
        loaded ^= table.slot[np.int64(hash_) & wrap]
    return loaded


@jit
def _intern(rows: U64, bounds: I64, width: int, first: int, table: _Table, ids: I64) -> int:
    """``ids[i]`` = the number of key i, a new one where there is none; rows whose id is −1 are left out.

    Key i is ``rows[bounds[i]:bounds[i + 1]]``, or ``rows[i * width:(i + 1) * width]`` where ``width`` is not 0. Loop
    invariant: the table holds exactly the keys before i. Cost per row: one load if ``near`` has its number, else its words,
    one probe, one comparison. Reads rows and bounds; writes ids and, for new keys, all of the table. Stops with GROW_TABLE or
    GROW_ARENA before the row that needs it.
    """
    wrap = table.slot.size - 1
    count = table.registers[COUNT]
    used = table.registers[USED]
    block = table.hashes.size
    loaded = _ZERO
    low = first
    while low < ids.size:
        high = min(low + block, ids.size)
        loaded ^= _look_ahead(rows, bounds, width, low, high, table, ids)
        for i in range(low, high):
            if ids[i] < 0 or table.hashes[i - low] == _FOUND:
                continue
            begin = i * width if width else bounds[i]
            size = width if width else bounds[i + 1] - begin
            hash_ = table.hashes[i - low]
            at = np.int64(hash_) & wrap
            number = np.int64(-1)
            while table.slot[at]:
                entry = table.slot[at]
                if entry >> _SHIFT32 == hash_:
                    known = np.int64(entry & _LOW32) - 1
                    start = known * width if width else table.start[known]
                    if width or table.start[known + 1] - start == size:
                        k = 0
                        while k < size and table.arena[start + k] == rows[begin + k]:
                            k += 1
                        if k == size:
                            number = known
                            break
                at = (at + 1) & wrap
            if number < 0:
                if 2 * (count + 1) > table.slot.size:
                    table.registers[STOPPED] = i
                    return GROW_TABLE
                if used + size > table.arena.size or (width == 0 and count + 2 > table.start.size):
                    table.registers[STOPPED] = i
                    return GROW_ARENA
                for k in range(size):
                    table.arena[used + k] = rows[begin + k]
                number = count
                count += 1
                used += size
                if width == 0:
                    table.start[count] = used
                table.slot[at] = (hash_ << _SHIFT32) | np.uint64(count)
                table.registers[COUNT] = count
                table.registers[USED] = used
            ids[i] = number
            if width == 1 and _is_near(rows[i], table):
                table.near[rows[i] - table.base[0]] = number + 1
        low = high
    table.registers[LOADED] = np.int64(loaded >> _SHIFT32)
    return DONE


@jit
def _move(old: U64, slot: U64) -> None:
    """Put the entries of one array of slots into a larger one. O(old slots)."""
    wrap = slot.size - 1
    for k in range(old.size):
        if old[k]:
            at = np.int64(old[k] >> _SHIFT32) & wrap
            while slot[at]:
                at = (at + 1) & wrap
            slot[at] = old[k]


@jit
def _place(width: int, table: _Table) -> None:
    """Fill the empty slots with all keys of the arena. O(words)."""
    wrap = table.slot.size - 1
    for number in range(table.registers[COUNT]):
        begin = number * width if width else table.start[number]
        end = begin + width if width else table.start[number + 1]
        hash_ = _hash(table.arena, begin, end)
        at = np.int64(hash_) & wrap
        while table.slot[at]:
            at = (at + 1) & wrap
        table.slot[at] = (hash_ << _SHIFT32) | np.uint64(number + 1)


@jit
def _put_words(values: U64, rows: I64, place: I64, out: U64) -> None:
    """``out[place[i]] = values[rows[i]]``, and moves ``place[i]`` on. O(1) a row."""
    for i in range(rows.size):
        out[place[i]] = values[rows[i]]
        place[i] += 1


@jit
def _put_bytes(starts: I64, stops: I64, data: U8, place: I64, out: U64) -> None:
    """Each row's length and its bytes ``data[starts[i]:stops[i]]`` as words at ``place[i]``, which moves on.

    The last word is padded with zeros. Cost: one load a word. Writes out and place.
    """
    for i in range(starts.size):
        at = starts[i]
        stop = stops[i]
        to = place[i]
        out[to] = np.uint64(stop - at)
        to += 1
        while at < stop:
            word = _ZERO
            if at + 8 <= data.size:
                word = data[at : at + 8].view(np.uint64)[0]
                if stop - at < 8:
                    word &= (_ONE << np.uint64(8 * (stop - at))) - _ONE
            else:
                for k in range(min(stop - at, 8)):
                    word |= np.uint64(data[at + k]) << np.uint64(8 * k)
            out[to] = word
            to += 1
            at += 8
        place[i] = to


@jit
def _keep_words(start: I64, arena: U64, alive: Bits, new_start: I64, new_arena: U64) -> None:
    """Copy the words of the keys that stay, in order. O(their words)."""
    number = 0
    to = 0
    for old in range(alive.size):
        if alive[old]:
            for at in range(start[old], start[old + 1]):
                new_arena[to] = arena[at]
                to += 1
            number += 1
            new_start[number] = to


class KeyTable:
    """Numbers keys in order of appearance, from 0; a key keeps its number from batch to batch.

    Two keys are one if all their values are equal. A NaN equals a NaN, and −0.0 equals 0.0. Plain and dictionary-encoded
    columns and all layouts of strings give the same keys.

    Parameters
    ----------
    types
        The Arrow types of the key columns: numbers, booleans, times, decimals, strings or binary. Without any there is one
        key, the empty one.

    >>> table = KeyTable([pa.string()])
    >>> table.ids([pa.array(["a", "b", None, "a"])]).tolist()
    [0, 1, -1, 0]
    """

    def __init__(self, types: Sequence[pa.DataType], *, capacity: int = 1 << 8) -> None:
        self.types = tuple(types)
        widths = [_width(kind) for kind in self.types]
        #: Words of every key; 0 when keys differ in length.
        self._words = 0 if 0 in widths else sum(widths)
        self._table = self._empty(capacity, 4 * capacity)

    def _empty(self, keys: int, words: int) -> _Table:
        """A table with room for so many keys and (where they differ) words."""
        fixed = self._words or not self.types
        return _Table(
            slot=np.zeros(1 << max(1, (2 * keys - 1).bit_length()), np.uint64),
            arena=np.zeros(max(1, keys * self._words if fixed else words), np.uint64),
            start=np.zeros(0 if fixed else keys + 1, np.int64),
            registers=np.zeros(REGISTERS, np.int64),
            hashes=np.zeros(BLOCK, np.uint64),
            near=np.zeros(0, np.int32),
            base=np.zeros(1, np.uint64),
        )

    def __len__(self) -> int:
        """How many numbers were given so far; those forgotten count until :meth:`keep` renumbers."""
        return int(self._table.registers[COUNT])

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return int(sum(array.nbytes for array in self._table))

    def ids(self, columns: Sequence[pa.Array | pa.ChunkedArray], rows: NDArray[Any] | None = None) -> I64:
        """The number of each row's key.

        Parameters
        ----------
        columns
            One column for each type, of equal length.
        rows
            Only these rows (indices, in any order); ``None``: all. A key without columns needs it.

        Returns
        -------
        numpy.ndarray
            int64, for each row (that was asked for) the number of its key, −1 where a column is NULL.

        Raises
        ------
        DataError
            A column of another type than declared (its encoding does not matter).
        """
        if len(columns) != len(self.types):
            raise DataError(f"a key has {len(self.types)} columns, not {len(columns)}")
        if not columns:
            return self._nothing(rows)
        columns = [
            pa.nulls(len(column), kind) if pa.types.is_null(column.type) else column
            for column, kind in zip(columns, self.types, strict=True)
        ]
        for column, kind in zip(columns, self.types, strict=True):
            if _plain(column.type) != _plain(kind):
                raise DataError(f"a key column is {column.type}, expected {kind}")
        wanted = None if rows is None else np.ascontiguousarray(rows, np.int64)
        out = np.empty(len(columns[0]) if wanted is None else wanted.size, np.int64)
        for arrays, chosen, at in _aligned(columns, wanted):
            self._chunk([_Part(array) for array in arrays], chosen, out[at : at + chosen.size])
        return out

    def _nothing(self, rows: NDArray[Any] | None) -> I64:
        """Keys without columns are all one."""
        if rows is None:
            raise DataError("a key without columns does not say how many rows there are: pass rows=…")
        self._table.registers[COUNT] = max(len(self), min(1, np.size(rows)))
        return np.zeros(np.size(rows), np.int64)

    def _chunk(self, parts: Sequence[_Part], rows: I64, out: I64) -> None:
        """Numbers of some rows of arrays."""
        for begin in range(0, rows.size, PIECE):
            piece = rows[begin : begin + PIECE]
            ids = out[begin : begin + PIECE]
            ids[:] = 0
            for part in parts:
                if part.valid is not None:
                    ids[~part.valid[piece]] = -1
            self._intern(*self._encoded(parts, piece), ids)

    def _encoded(self, parts: Sequence[_Part], rows: I64) -> tuple[U64, I64]:
        """The rows as words, and where each begins (and one more)."""
        if len(parts) == 1 and self._words == 1:
            return frozen(parts[0].words[0][rows]), _NO_BOUNDS
        spans = [part.spans(rows) for part in parts]
        size = np.full(rows.size, sum(len(part.words) for part in parts))
        for span in spans:
            if span is not None:
                size += (span[1] - span[0] + 15) >> 3
        bounds = np.zeros(rows.size + 1, np.int64)
        np.cumsum(size, out=bounds[1:])
        words = np.empty(int(bounds[-1]), np.uint64)
        place = bounds[:-1].copy()
        for part, span in zip(parts, spans, strict=True):
            for values in part.words:
                _put_words(values, rows, place, words)
            if span is not None:
                _put_bytes(*span, part.data, place, words)
        return frozen(words), bounds

    def _intern(self, words: U64, bounds: I64, ids: I64) -> None:
        first = 0
        while True:
            status = _intern(words, bounds, self._words, first, self._table, ids)
            if status == DONE:
                return
            first = int(self._table.registers[STOPPED])
            if status == GROW_TABLE:
                self._grow_slots()
            else:
                longest = int(np.diff(bounds).max()) if bounds.size > 1 else self._words
                self._grow_arena(longest)

    def _grow_slots(self) -> None:
        old = self._table
        if len(self) >= MOST_KEYS:
            raise LimitError(f"more than {MOST_KEYS:,} keys")
        self._table = old._replace(slot=np.zeros(4 * old.slot.size, np.uint64))
        _move(old.slot, self._table.slot)
        self._look_near()

    def _look_near(self) -> None:
        """Look keys up by their value if most lie near each other. There is room for half as many values on both sides."""
        count = len(self)
        least = size = 0
        if self._words == 1 and count:
            words = self._table.arena[:count]
            few = count >> 4
            ordered = np.partition(words, (few, count - 1 - few))
            span = int(ordered[-1 - few]) - int(ordered[few]) + 1
            least = max(int(words.min()), int(ordered[few]) - span // 2)
            size = 2 * span if span <= min(NEAR * count, MOST_NEAR) else 0
        self._table = self._table._replace(near=np.zeros(size, np.int32), base=np.array([least], np.uint64))

    def _grow_arena(self, longest: int) -> None:
        """Room for at least one more key, of at most so many words."""
        old = self._table
        arena, start = old.arena, old.start
        if old.registers[USED] + longest > arena.size:
            arena = np.empty(2 * old.arena.size + longest, np.uint64)
            arena[: old.arena.size] = old.arena
        if start.size and start.size < len(self) + 2:
            start = np.zeros(2 * old.start.size + 1, np.int64)
            start[: old.start.size] = old.start
        self._table = old._replace(arena=arena, start=start)

    def keep(self, alive: NDArray[Any]) -> I64:
        """Forget the keys that are not alive and renumber the others in order; memory shrinks to what they need.

        Parameters
        ----------
        alive
            bool, by number.

        Returns
        -------
        numpy.ndarray
            int64 by old number: the new one, −1 where forgotten.
        """
        old = self._table
        alive = np.ascontiguousarray(alive, np.bool_)
        if alive.size != len(self):
            raise ValueError(f"{alive.size} truth values for {len(self)} keys")
        count = int(np.count_nonzero(alive))
        renamed = np.where(alive, np.cumsum(alive) - 1, -1)
        if old.start.size:
            sizes = np.diff(old.start[: len(self) + 1])
            fresh = self._empty(max(count, 8), int(sizes[alive].sum()))
            _keep_words(old.start, old.arena, alive, fresh.start, fresh.arena)
        else:
            fresh = self._empty(max(count, 8), 0)
            kept = old.arena[: len(self) * self._words].reshape(len(self), self._words)[alive]
            fresh.arena[: kept.size] = kept.reshape(-1)
        self._load(fresh, count)
        return renamed

    def _load(self, table: _Table, count: int) -> None:
        """Take a table whose arena holds so many keys and whose slots are empty."""
        table.registers[COUNT] = count
        table.registers[USED] = table.start[count] if table.start.size else count * self._words
        self._table = table
        if self.types:
            _place(self._words, table)
            self._look_near()

    def save(self, section: Section) -> None:
        """Write the keys in order, and their number."""
        table = self._table
        used = int(table.registers[USED])
        section.arrays |= {"count": np.array([len(self)], np.int64), "words": table.arena[:used].copy()}
        if table.start.size:
            section.arrays["start"] = table.start[: len(self) + 1].copy()

    def load(self, section: Section) -> None:
        """Take over the keys that a table of the same types has saved.

        Raises
        ------
        DataError
            The arrays do not fit together, or not with the types.
        """
        arrays = section.arrays
        count = int(section.numbers("count", size=1, least=0)[0])
        words = arrays["words"].astype(np.uint64)
        table = self._empty(max(count, 8), words.size)
        if table.start.size:
            start = np.asarray(arrays.get("start", ()), np.int64)
            if start.size != count + 1 or start[0] or start[-1] != words.size or (np.diff(start) < 1).any():
                raise DataError("these arrays are no table of keys")
            table.start[: start.size] = start
        elif words.size != count * self._words:
            raise DataError("these arrays are no table of keys")
        table.arena[: words.size] = words
        self._load(table, count)


_NO_BOUNDS: I64 = np.zeros(1, np.int64)


# -- columns as words -----------------------------------------------------------------------------------------


class _Part:
    """One key column: words of fixed width, or bytes."""

    def __init__(self, array: pa.Array) -> None:
        #: uint64 by value, one or more.
        self.words: list[U64] = []
        #: By value, one more entry: where its bytes start in ``data``.
        self.offsets: NDArray[Any] | None = None
        self.data: U8 = frozen(np.zeros(0, np.uint8))
        self.valid: Bits | None = valid_of(array)
        self.indices: I64 | None = None
        if pa.types.is_dictionary(array.type):
            self._read_dictionary(array)
        else:
            self._read(array)

    def _read_dictionary(self, array: pa.DictionaryArray) -> None:
        indices = numbers_of(array.indices).astype(np.int64)
        if self.valid is not None:
            indices[~self.valid] = 0
        values = array.dictionary
        if not len(values):
            values = pa.array([None], values.type)
        known = valid_of(values)
        if known is not None:
            here = known[indices]
            self.valid = here if self.valid is None else self.valid & here
        self._read(values)
        if self.words:
            self.words = [frozen(values_of[indices]) for values_of in self.words]
        else:
            self.indices = indices

    def _read(self, array: pa.Array) -> None:
        kind = array.type
        types = pa.types
        if _width(kind) == 1:
            self.words = [_canonical(array)]
        elif types.is_decimal(kind) or types.is_interval(kind):
            if kind.bit_width < 128:
                array = array.cast(pa.decimal128(kind.precision, kind.scale))
            size = array.type.bit_width // 64
            buffer = array.buffers()[1]
            if buffer is None or not len(array):
                self.words = [frozen(np.zeros(len(array), np.uint64))] * size
                return
            values = np.frombuffer(buffer, np.uint64, (array.offset + len(array)) * size)[array.offset * size :]
            self.words = [frozen(np.ascontiguousarray(values[k::size])) for k in range(size)]
        else:
            self._read_bytes(array)

    def _read_bytes(self, array: pa.Array) -> None:
        types = pa.types
        if types.is_fixed_size_binary(array.type):
            array = array.cast(pa.binary())
        elif types.is_string_view(array.type):
            array = array.cast(pa.large_string())
        elif types.is_binary_view(array.type):
            array = array.cast(pa.large_binary())
        wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
        dtype = np.int64 if wide else np.int32
        _, offsets, data = array.buffers()
        if offsets is None or not len(array):
            self.offsets = np.zeros(len(array) + 1, dtype)
        else:
            self.offsets = np.frombuffer(offsets, dtype, array.offset + len(array) + 1)[array.offset :]
        if data is not None:
            self.data = frozen(np.frombuffer(data, np.uint8))

    def spans(self, rows: I64) -> tuple[I64, I64] | None:
        """Where the bytes of some rows start and stop; ``None`` for fixed width."""
        if self.offsets is None:
            return None
        at = rows if self.indices is None else self.indices[rows]
        return self.offsets[at].astype(np.int64), self.offsets[at + 1].astype(np.int64)


def _canonical(array: pa.Array) -> U64:
    """A column of at most 8 bytes a value as words that are equal when the values are."""
    values = numbers_of(array)
    if values.dtype.kind == "f":
        real = values.astype(np.float64) + 0.0  # −0.0 + 0.0 is 0.0
        real[np.isnan(real)] = np.nan
        return frozen(real.view(np.uint64))
    if values.dtype != np.uint64:
        values = values.astype(np.int64, copy=False).view(np.uint64)
    return frozen(values)


def _width(kind: pa.DataType) -> int:
    """Words of a value, 0 where that depends on the value."""
    if pa.types.is_dictionary(kind):
        return _width(kind.value_type)
    types = pa.types
    if types.is_decimal(kind) or types.is_interval(kind):  # an interval is two words: months and days, nanoseconds
        return max(2, int(kind.bit_width) // 64)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_temporal(kind):
        return 1
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return 0
    raise DataError(f"a column of {kind} cannot be a key")


def _plain(kind: pa.DataType) -> str:
    """A type without its encoding."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        kind = pa.binary()
    return str(kind)


def _aligned(
    columns: Sequence[pa.Array | pa.ChunkedArray], rows: I64 | None
) -> Iterator[tuple[list[pa.Array], I64, int]]:
    """Arrays of equal length, the rows wanted of them, and where their ids go."""
    if all(isinstance(column, pa.Array) for column in columns):
        yield list(columns), np.arange(len(columns[0])) if rows is None else rows, 0
        return
    names = [str(k) for k in range(len(columns))]
    chunked = [pa.chunked_array([column]) if isinstance(column, pa.Array) else column for column in columns]
    table = pa.table(chunked, names)
    if rows is not None and (np.diff(rows) < 0).any():
        # Rows in any order: one array of each column.
        arrays = [_one(column) for column in chunked]
        yield arrays, rows, 0
        return
    begin = 0
    for batch in table.to_batches():
        end = begin + batch.num_rows
        if rows is None:
            yield batch.columns, np.arange(batch.num_rows), begin
        else:
            low, high = np.searchsorted(rows, (begin, end))
            if low < high:
                yield batch.columns, rows[low:high] - begin, int(low)
        begin = end


def _one(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], column.type)])


def one_zero(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column of keys in which −0.0 is 0.0, as the two are one key.

    >>> one_zero(pa.array([0.0, -0.0, None])).cast(pa.string()).to_pylist()
    ['0', '0', None]
    """
    if pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
        return pc.add(column, pa.scalar(0, column.type))
    return column
