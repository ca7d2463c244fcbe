"""The table of configurations that were left without a match, so that none is gone through again.

A *configuration* is a row, the position that it was taken as, and what a later condition may still read of the rows before. A
register stands in it as no more than what is read of it: of a row the one value, of a counter whether there is any. Where all
conditions get the harder the greater (or the smaller) one of these values is, it is left out, and the *bound* of the others says from
where on none has a match (:mod:`~stretto.engines.rows.harder`). So what failed from one start is known to fail from most others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stretto._jit import inlined, jit
from stretto.engines.rows.interpreter import (
    ANY_ROW,
    FIRST_ROW,
    GREATEST_ROW,
    LAST_ROW,
    LEAST_ROW,
    MAX,
    MAX_REAL,
    MIN,
    MIN_REAL,
    Programs,
    Scratch,
    Values,
)
from stretto.engines.rows.structure import AS_IS, BESIDE_COLUMN, FLAG, I64, KEYS, OTHERWISE, UNREAD, Bits
from stretto.engines.shared.scalar import real, word

# The words of a key before those of registers …
ROW_WORD = 0
POSITION_WORD = 1
NUMBER_WORD = 2  #: of the match, where it matters
START_WORD = 3  #: of the match, or of its frame, where it matters
CLASSES_WORD = 4  #: which values are there, known, and left out: two bits each
FIXED_WORDS = 5
# … and behind them two that do not tell keys apart: the bound, and the first row of the match that has written it.
BEHIND = 2

#: Values as far from 0 as this, or further, are not compared with a bound: what is computed of them may not be ordered as they are.
ORDINARY = 1 << 53
ORDINARY_REAL = 1e60


#: A table has no more slots, unless one match needs them.
LARGEST_TABLE = 1 << 23

#: A table of fewer slots doubles when it is full: each time that one is cleared costs some hundred calls.
SMALL_TABLE = 1 << 12

#: Registers that hold rows.
ROWS = (FIRST_ROW, LAST_ROW, ANY_ROW, LEAST_ROW, GREATEST_ROW)


class Failed(NamedTuple):
    """Configurations that failed: open addressing, half empty at least."""

    key: I64  #: (slots, words)
    used: Bits


@inlined
def hashed(key: I64) -> int:
    """Give 31 bits that depend on all words of a key that tell it from others. O(words).

    Products stay below 2^63, compiled or not.
    """
    bits = 0
    for j in range(key.size - BEHIND):
        bits = (bits ^ (key[j] & 0x7FFFFFFF) ^ ((key[j] >> 31) & 0x7FFFFFFF)) * 0x9E3779B1
        bits = (bits ^ (bits >> 29)) & 0x7FFFFFFF
    return bits


@inlined
def is_ordinary(programs: Programs, value: int) -> bool:
    """Whether a value may be compared with a bound."""
    if programs.real:
        return bool(abs(real(value)) < ORDINARY_REAL)
    return -ORDINARY < value < ORDINARY


@inlined
def is_better(programs: Programs, value: int, bound: int) -> bool:
    """Whether a value may have a match where that of a bound has none."""
    if programs.real:
        return bool(real(value) > real(bound) if programs.rising else real(value) < real(bound))
    return value > bound if programs.rising else value < bound


# While a configuration's ways are gone through, its *limit* is kept: as far as they have failed, they fail for all values that are
# no better. Where a comparison is false, all values fail that are on its side of what they are compared with.


@inlined
def unlimited(programs: Programs) -> int:
    """Give the limit with which no value has a match."""
    if programs.real:
        return word(ORDINARY_REAL if programs.rising else -ORDINARY_REAL)
    return ORDINARY if programs.rising else -ORDINARY


@inlined
def worse(programs: Programs, one: int, other: int) -> int:
    """Give the one of two limits with which fewer values fail."""
    return other if is_better(programs, one, other) else one


@inlined
def own_value(programs: Programs, values: Values, depth: int, scratch: Scratch) -> int:
    """Give the value at ``depth`` that conditions get harder with."""
    held = scratch.registers[depth, programs.harder]
    column = programs.stands[programs.harder]
    return int(values.words[column, held] if column >= 0 else held)


@inlined
def limit_of_condition(
    programs: Programs, values: Values, row: int, position: int, depth: int, scratch: Scratch
) -> int:
    """Give the limit of the value at ``depth``, with which the condition of a position is false."""
    kind = programs.limits[position, 0]
    if kind == UNREAD:
        return unlimited(programs)
    own = own_value(programs, values, depth, scratch)
    if kind == OTHERWISE:
        return own
    at = programs.limits[position, 1]
    if kind == BESIDE_COLUMN:
        if not values.known[at, row]:
            return unlimited(programs)
        beside = values.words[at, row]
    else:
        beside = programs.constants[at]
    if not is_ordinary(programs, beside):
        return own
    if not programs.limits[position, 2]:
        return int(beside)
    # It holds for what is equal, too: the last value that fails is the one beside.
    if programs.real:
        return word(np.nextafter(real(beside), -np.inf if programs.rising else np.inf))
    return int(beside - 1 if programs.rising else beside + 1)


@inlined
def limit_before(
    programs: Programs, values: Values, position: int, limit: int, last: int, depth: int, scratch: Scratch
) -> int:
    """Give the limit of the value at ``last``, before a row was taken as a position, from that at ``depth`` behind it."""
    r = programs.harder
    if not programs.member[r, position]:
        return limit
    own = own_value(programs, values, last, scratch)
    if programs.stands[r] >= 0:
        if programs.continues[r] >= 0:
            return own
        # The row is another one now, or the same.
        same = programs.kind[r] == FIRST_ROW and scratch.registers[last, r] >= 0
        return limit if same else unlimited(programs)
    if not is_ordinary(programs, scratch.registers[depth, r]):
        return own
    kind = programs.kind[r]
    stays = kind in (MIN, MIN_REAL) if programs.rising else kind in (MAX, MAX_REAL)
    return limit if stays else own


@inlined
def note(
    programs: Programs, values: Values, position: int, limit: int, last: int, depth: int, scratch: Scratch
) -> None:
    """Note at ``last`` that a way from there, a row as a position at ``depth``, has failed up to a limit of the value here."""
    if programs.harder >= 0:
        limit = limit_before(programs, values, position, limit, last, depth, scratch)
        scratch.limit[last] = worse(programs, scratch.limit[last], limit)


@inlined
def write_key(
    programs: Programs, values: Values, row: int, position: int, number: int, start: int, depth: int, scratch: Scratch
) -> bool:
    """Write the key of a configuration; give whether a value is left out, which is the bound then. O(registers)."""
    key = scratch.key
    key[ROW_WORD] = row
    key[POSITION_WORD] = position
    key[NUMBER_WORD] = number if programs.by_number else 0
    key[START_WORD] = 0
    if programs.by_start:
        key[START_WORD] = start
    elif programs.framed:
        key[START_WORD] = min(row - start, programs.reach)
    behind = key.size - BEHIND
    key[behind] = 0
    classes = 0
    left_out = False
    k = FIXED_WORDS
    for at in range(programs.live_begin[position], programs.live_begin[position + 1]):
        r = programs.live[at]
        held = scratch.registers[depth, r]
        stands = programs.stands[r]
        if stands == FLAG:
            held = min(held, 1)
        elif stands != AS_IS:
            there = 2
            if stands >= 0:
                # A row, of which one column is read: it is there or not, and known or not.
                there = 0
                if held >= 0:
                    there = 2 if values.known[stands, held] else 1
                    held = values.words[stands, held]
                if there < 2:
                    held = 0
            if r == programs.harder and there == 2 and is_ordinary(programs, held):
                key[behind] = held
                left_out = True
                held = 0
                there = 3
            classes = 4 * classes + there
        key[k] = held
        k += 1
    while k < behind:
        key[k] = 0
        k += 1
    key[CLASSES_WORD] = classes
    return left_out


@inlined
def slot_of(scratch: Scratch, failed: Failed) -> int:
    """Give the slot of the key that was written last; it is empty where the key is not there.

    O(words), expected: at least half of the slots are empty.
    """
    key = scratch.key
    told = key.size - BEHIND
    wrap = failed.used.size - 1
    slot = hashed(key) & wrap
    while failed.used[slot]:
        j = 0
        while j < told and failed.key[slot, j] == key[j]:
            j += 1
        if j == told:
            break
        slot = (slot + 1) & wrap
    return slot


@inlined
def has_failed(
    programs: Programs, values: Values, row: int, position: int, number: int, start: int, depth: int, scratch: Scratch,
    failed: Failed,
) -> bool:  # fmt: skip
    """Tell whether a configuration, or one that is no harder, was left without a match; the bound of those is behind the key then.

    O(words), expected.
    """
    left_out = write_key(programs, values, row, position, number, start, depth, scratch)
    slot = slot_of(scratch, failed)
    bound = scratch.key.size - BEHIND
    if not failed.used[slot] or is_better(programs, scratch.key[bound], failed.key[slot, bound]):
        return False
    scratch.key[bound] = failed.key[slot, bound] if left_out else unlimited(programs)
    return True


@inlined
def remember(
    programs: Programs, values: Values, registers: I64, number: int, scratch: Scratch, failed: Failed, start: int,
    owner: int, row: int, depth: int,
) -> bool:  # fmt: skip
    """Keep the configuration of a row, whose place in the match is ``depth``, as one that failed; false: the table has no room.

    ``owner``: the first row of the match. O(words), expected.
    """
    if 2 * (registers[KEYS] + 1) > failed.used.size:
        return False
    key = scratch.key
    bound = key.size - BEHIND
    if write_key(programs, values, row, scratch.position[depth], number, start, depth, scratch):
        limit = scratch.limit[depth]
        key[bound] = limit if is_better(programs, limit, key[bound]) else key[bound]
    slot = slot_of(scratch, failed)
    key[key.size - 1] = owner
    if failed.used[slot] and not is_better(programs, key[bound], failed.key[slot, bound]):
        return True
    registers[KEYS] += not failed.used[slot]
    failed.used[slot] = True
    for j in range(key.size):
        failed.key[slot, j] = key[j]
    return True


@jit
def fill(keys: I64, table: Failed) -> None:
    """Put configurations, each of which is there once, into an empty table. O(slots)."""
    wrap = table.used.size - 1
    for s in range(keys.shape[0]):
        slot = hashed(keys[s]) & wrap
        while table.used[slot]:
            slot = (slot + 1) & wrap
        table.used[slot] = True
        for j in range(keys.shape[1]):
            table.key[slot, j] = keys[s, j]


def words_of_key(programs: Programs) -> int:
    """Give how many words a key has, with those behind it."""
    return FIXED_WORDS + int(np.diff(programs.live_begin).max(initial=0)) + BEHIND


def rows_of(programs: Programs, keys: I64) -> Iterator[tuple[int, Bits]]:
    """Give the words of keys that are rows of the match, each with the keys in which it is one."""
    begin, end = programs.live_begin[keys[:, POSITION_WORD]], programs.live_begin[keys[:, POSITION_WORD] + 1]
    are_rows = np.isin(programs.kind, ROWS) & (programs.stands == AS_IS)
    for j in range(keys.shape[1] - FIXED_WORDS - BEHIND):
        there = begin + j < end
        if there.any():
            is_row = are_rows[programs.live[np.where(there, begin + j, 0)]]
            yield FIXED_WORDS + j, there & is_row & (keys[:, FIXED_WORDS + j] >= 0)


def roomy(kept: Bits, own: Bits, size: int) -> tuple[Bits, int]:
    """Tell which configurations are kept, of those that may come up again, and in how many slots.

    Where that would be more than one match may have, others than the ``own`` ones of the match at hand are forgotten.
    """
    left = int(np.count_nonzero(kept))
    if size < LARGEST_TABLE and (size < SMALL_TABLE or 4 * left >= size):
        size *= 2
    elif 8 * left >= 3 * size:
        kept = kept & own
    while 2 * (int(np.count_nonzero(kept)) + 1) > size:
        size *= 2
    return kept, size


def table_of(keys: I64, size: int) -> Failed:
    """Make a table of so many slots, a power of two, with some configurations."""
    table = Failed(np.zeros((size, keys.shape[1]), np.int64), np.zeros(size, np.bool_))
    fill(np.ascontiguousarray(keys), table)
    return table
