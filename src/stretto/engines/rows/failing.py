"""The table of configurations that were left without a match, so that none is gone through again.

A *configuration* is a row, the position that it was taken as, and what a later condition may still read of the rows before. Of a
register no more stands in it than what is read of it: of a row the values that are read, of a counter whether there is any. Values
with which all conditions get the harder the greater (or the smaller) they are, are left out, and the *bound* of the others has a word
for each: no values that are no better than these have a match (:mod:`~stretto.engines.rows.harder`). So what failed from one start is
known to fail from most others.

Of one value the bound says all that is known, so that a configuration fails for good from there on, and a search grows with the rows.
Of several it is a corner of what is known: where two conditions are false at a row, one of them is taken, and a start for which the
other one is false may have to go on. Then a configuration keeps the bound of the latest start; what that start cannot join with it is
kept as it is, with all values. The rows that starts go through are a few times those of the table in random walks, and go with their
square at worst, where each start fails for another pair of values than all others, as with two columns that rise and fall together
in no order. The memory is that of the failures of one start, and of as many others as LARGEST_TABLE has room for.
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
from stretto.engines.rows.structure import AS_IS, BESIDE_COLUMN, FLAG, I64, KEYS, Bits
from stretto.engines.shared.scalar import real, word
from stretto.memory import available

# The words of a key before those of registers …
ROW_WORD = 0
POSITION_WORD = 1
NUMBER_WORD = 2  #: of the match, where it matters
START_WORD = 3  #: of the match, or of its frame, where it matters
CLASSES_WORD = 4  #: which values are there, known, and left out: two bits each
FIXED_WORDS = 5
# … and behind them those that do not tell keys apart: the bound, a word at least, and the first row of the match that has written it.

#: Values as far from 0 as this, or further, are not compared with a bound: what is computed of them may not be ordered as they are.
ORDINARY = 1 << 53
ORDINARY_REAL = 1e60


#: A table has no more slots, unless one match needs them.
LARGEST_TABLE = 1 << 23

#: A table of fewer slots doubles when it is full: each time that one is cleared costs some hundred calls.
SMALL_TABLE = 1 << 12

#: A table of no more bytes grows without that the system is asked, which is done by reading files.
UNASKED = 1 << 20

#: Registers that hold rows.
ROWS = (FIRST_ROW, LAST_ROW, ANY_ROW, LEAST_ROW, GREATEST_ROW)


class Failed(NamedTuple):
    """Configurations that failed: open addressing, half empty at least."""

    key: I64  #: (slots, words)
    used: Bits
    told: int  #: so many words tell keys apart


@inlined
def hashed(key: I64, told: int) -> int:
    """Give 31 bits that depend on the words of a key that tell it from others. O(words).

    Products stay below 2^63, compiled or not.
    """
    bits = 0
    for j in range(told):
        bits = (bits ^ (key[j] & 0x7FFFFFFF) ^ ((key[j] >> 31) & 0x7FFFFFFF)) * 0x9E3779B1
        bits = (bits ^ (bits >> 29)) & 0x7FFFFFFF
    return bits


# Values that may be left out are told by their numbers ``i``.


@inlined
def is_ordinary(programs: Programs, i: int, value: int) -> bool:
    """Whether a value may be compared with a bound."""
    if programs.real[i]:
        return bool(abs(real(value)) < ORDINARY_REAL)
    return -ORDINARY < value < ORDINARY


@inlined
def is_better(programs: Programs, i: int, value: int, bound: int) -> bool:
    """Whether a value may have a match where that of a bound has none."""
    if programs.real[i]:
        return bool(real(value) > real(bound) if programs.rising[i] else real(value) < real(bound))
    return value > bound if programs.rising[i] else value < bound


# While a configuration's ways are gone through, its *limit* is kept: as far as they have failed, they fail for all values that are
# no better. Where a comparison is false, all values fail that are on its side of what they are compared with.


@inlined
def unlimited(programs: Programs, i: int) -> int:
    """Give the limit with which no value has a match."""
    if programs.real[i]:
        return word(ORDINARY_REAL if programs.rising[i] else -ORDINARY_REAL)
    return ORDINARY if programs.rising[i] else -ORDINARY


@inlined
def unlimit(programs: Programs, limit: I64) -> None:
    """Write the limit with which no values have a match."""
    for i in range(programs.harder.size):
        limit[i] = unlimited(programs, i)


@inlined
def own_value(programs: Programs, values: Values, i: int, depth: int, scratch: Scratch) -> int:
    """Give the value at ``depth`` that conditions get harder with."""
    read = programs.harder[i]
    held = scratch.registers[depth, programs.read[read]]
    column = programs.stands[read]
    return int(values.words[column, held] if column >= 0 else held)


@inlined
def is_known(programs: Programs, values: Values, i: int, depth: int, scratch: Scratch) -> bool:
    """Whether the value at ``depth`` is known; where that cannot be told, it is not."""
    read = programs.harder[i]
    r = programs.read[read]
    column = programs.stands[read]
    if column >= 0:
        held = scratch.registers[depth, r]
        return bool(held >= 0 and values.known[column, held])
    counted = programs.counted[r]
    return bool(counted < 0 or scratch.registers[depth, counted] > 0)


@inlined
def limit_of_comparison(programs: Programs, values: Values, k: int, row: int, own: int) -> tuple[bool, int]:
    """Tell whether comparison ``k`` of a value, which is known, is false for sure; and the limit with which it is."""
    i = programs.limits[k, 0]
    at = programs.limits[k, 2]
    equal = programs.limits[k, 3]
    if programs.limits[k, 1] == BESIDE_COLUMN:
        if not values.known[at, row]:
            return True, unlimited(programs, i)
        beside = values.words[at, row]
    else:
        beside = programs.constants[at]
    if not is_ordinary(programs, i, beside) or is_better(programs, i, own, beside):
        return False, own
    if programs.real[i]:
        if equal and real(own) == real(beside):
            return False, own
        # It holds for what is equal, too: the last value that fails is the one beside.
        down = -np.inf if programs.rising[i] else np.inf
        return True, word(np.nextafter(real(beside), down)) if equal else int(beside)
    if equal and own == beside:
        return False, own
    return True, int(beside - equal if programs.rising[i] else beside + equal)


@inlined
def limit_of_condition(
    programs: Programs, values: Values, row: int, position: int, depth: int, scratch: Scratch, limit: I64
) -> None:
    """Write the limit of the values at ``depth``, with which the condition of a position, which is false, is so.

    Of comparisons that must all hold, one that is false is enough: the one whose value alone was most often the reason. Where none
    of them is, the condition is false for these values, and for those that are no better.
    """
    chosen = -1
    false = 0
    tightest = 0
    for k in range(programs.limits_begin[position], programs.limits_begin[position + 1]):
        i = programs.limits[k, 0]
        if not is_known(programs, values, i, depth, scratch):
            continue
        is_false, most = limit_of_comparison(programs, values, k, row, own_value(programs, values, i, depth, scratch))
        if is_false:
            false += 1
            if chosen < 0 or scratch.alone[i] > scratch.alone[chosen]:
                chosen = i
                tightest = most
    if false == 1:
        scratch.alone[chosen] += 1
    for i in range(programs.harder.size):
        if chosen < 0 and programs.reads[position, i]:
            limit[i] = own_value(programs, values, i, depth, scratch)
        else:
            limit[i] = unlimited(programs, i)
    if chosen >= 0:
        limit[chosen] = tightest


@inlined
def limit_before(
    programs: Programs, values: Values, position: int, i: int, limit: int, last: int, depth: int, scratch: Scratch
) -> int:
    """Give the limit of a value at ``last``, before a row was taken as a position, from that at ``depth`` behind it."""
    read = programs.harder[i]
    r = programs.read[read]
    if not programs.member[r, position]:
        return limit
    own = own_value(programs, values, i, last, scratch)
    if programs.stands[read] >= 0:
        if programs.continues[r] >= 0:
            return own
        # The row is another one now, or the same.
        same = programs.kind[r] == FIRST_ROW and scratch.registers[last, r] >= 0
        return limit if same else unlimited(programs, i)
    if not is_ordinary(programs, i, scratch.registers[depth, r]):
        return own
    kind = programs.kind[r]
    stays = kind in (MIN, MIN_REAL) if programs.rising[i] else kind in (MAX, MAX_REAL)
    return limit if stays else own


@inlined
def note(
    programs: Programs, values: Values, position: int, limit: I64, last: int, depth: int, scratch: Scratch
) -> None:
    """Note at ``last`` that a way from there, a row as a position at ``depth``, has failed up to a limit of the values here."""
    for i in range(programs.harder.size):
        before = limit_before(programs, values, position, i, limit[i], last, depth, scratch)
        # With the worse one of two limits fewer values fail.
        if is_better(programs, i, scratch.limit[last, i], before):
            scratch.limit[last, i] = before


@inlined
def write_key(
    programs: Programs, values: Values, row: int, position: int, number: int, start: int, depth: int, scratch: Scratch,
    leaving: bool,
) -> None:  # fmt: skip
    """Write the key of a configuration, and the values that are left out of it (``leaving``: some are). O(registers)."""
    key = scratch.key
    bound = scratch.bound
    key[ROW_WORD] = row
    key[POSITION_WORD] = position
    key[NUMBER_WORD] = number if programs.by_number else 0
    key[START_WORD] = 0
    if programs.by_start:
        key[START_WORD] = start
    elif programs.framed:
        key[START_WORD] = min(row - start, programs.reach)
    behind = key.size - 1 - max(1, programs.harder.size)
    key[behind] = 0
    for i in range(programs.harder.size):
        bound[i] = 0
        scratch.left_out[i] = False
    classes = 0
    k = FIXED_WORDS
    for at in range(programs.live_begin[position], programs.live_begin[position + 1]):
        read = programs.live[at]
        held = scratch.registers[depth, programs.read[read]]
        stands = programs.stands[read]
        if stands == FLAG:
            held = min(held, 1)
        elif stands != AS_IS:
            there = 2
            if stands >= 0:
                # A row, of which a column is read: it is there or not, and known or not.
                there = 0
                if held >= 0:
                    there = 2 if values.known[stands, held] else 1
                    held = values.words[stands, held]
                if there < 2:
                    held = 0
            i = programs.left[read]
            if leaving and i >= 0 and there == 2 and is_ordinary(programs, i, held):
                bound[i] = held
                scratch.left_out[i] = True
                held = 0
                there = 3
            classes = 4 * classes + there
        key[k] = held
        k += 1
    while k < behind:
        key[k] = 0
        k += 1
    key[CLASSES_WORD] = classes


@inlined
def slot_of(scratch: Scratch, failed: Failed) -> int:
    """Give the slot of the key that was written last; it is empty where the key is not there.

    O(words), expected: at least half of the slots are empty.
    """
    key = scratch.key
    wrap = failed.used.size - 1
    slot = hashed(key, failed.told) & wrap
    while failed.used[slot]:
        j = 0
        while j < failed.told and failed.key[slot, j] == key[j]:
            j += 1
        if j == failed.told:
            break
        slot = (slot + 1) & wrap
    return slot


@inlined
def is_within(programs: Programs, one: I64, other: I64) -> bool:
    """Whether no value of a bound is better than that of another one."""
    within = True
    for i in range(programs.harder.size):
        within = within and not is_better(programs, i, one[i], other[i])
    return within


@inlined
def has_failed(
    programs: Programs, values: Values, row: int, position: int, number: int, start: int, depth: int, scratch: Scratch,
    failed: Failed,
) -> bool:  # fmt: skip
    """Tell whether a configuration, or one that is no harder, was left without a match; the limit of those is the bound then.

    O(words), expected.
    """
    write_key(programs, values, row, position, number, start, depth, scratch, True)
    slot = slot_of(scratch, failed)
    if not failed.used[slot]:
        return False
    bound = scratch.bound
    kept = failed.key[slot, failed.told : failed.told + programs.harder.size]
    if is_within(programs, bound, kept):
        for i in range(programs.harder.size):
            bound[i] = kept[i] if scratch.left_out[i] else unlimited(programs, i)
        return True
    if programs.harder.size < 2:
        return False
    write_key(programs, values, row, position, number, start, depth, scratch, False)
    if not failed.used[slot_of(scratch, failed)]:
        return False
    unlimit(programs, bound)
    for at in range(programs.live_begin[position], programs.live_begin[position + 1]):
        i = programs.left[programs.live[at]]
        if i >= 0:
            bound[i] = own_value(programs, values, i, depth, scratch)
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
    position = scratch.position[depth]
    write_key(programs, values, row, position, number, start, depth, scratch, True)
    bound = scratch.bound
    limit = scratch.limit[depth]
    known = True
    for i in range(programs.harder.size):
        known = known and not (scratch.left_out[i] and is_better(programs, i, bound[i], limit[i]))
    for i in range(programs.harder.size):
        if known and scratch.left_out[i]:
            bound[i] = limit[i]
    slot = slot_of(scratch, failed)
    if failed.used[slot]:
        kept = failed.key[slot, failed.told : failed.told + programs.harder.size]
        if is_within(programs, bound, kept):
            return True
        # What this match has kept already stays, as it may come to it again.
        if failed.key[slot, key.size - 1] == owner and not is_within(programs, kept, bound):
            write_key(programs, values, row, position, number, start, depth, scratch, False)
            slot = slot_of(scratch, failed)
    key[key.size - 1] = owner
    for i in range(programs.harder.size):
        key[failed.told + i] = bound[i]
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
        slot = hashed(keys[s], table.told) & wrap
        while table.used[slot]:
            slot = (slot + 1) & wrap
        table.used[slot] = True
        for j in range(keys.shape[1]):
            table.key[slot, j] = keys[s, j]


def words_of_key(programs: Programs) -> int:
    """Give how many words a key has, with those behind it."""
    return told_of_key(programs) + max(1, programs.harder.size) + 1


def told_of_key(programs: Programs) -> int:
    """Give how many words tell a key from others."""
    return FIXED_WORDS + int(np.diff(programs.live_begin).max(initial=0))


def width_of_limit(programs: Programs) -> int:
    """Give how many words a limit has: one at least."""
    return max(1, int(programs.harder.size))


def nothing_known(programs: Programs) -> I64:
    """Give the limit of which no values are known to fail."""
    width = width_of_limit(programs)
    found = np.zeros(width, np.int64)
    for i in range(programs.harder.size):
        most = np.float64(ORDINARY_REAL).view(np.int64) if programs.real[i] else ORDINARY
        least = np.float64(-ORDINARY_REAL).view(np.int64) if programs.real[i] else -ORDINARY
        found[i] = least if programs.rising[i] else most
    return found


def left_out_of(programs: Programs) -> tuple[Bits, I64, I64]:
    """Make what the kernel writes of the values that may be left out (``Scratch``)."""
    bound, alone = np.zeros((2, programs.harder.size), np.int64)
    return np.zeros(programs.harder.size, np.bool_), bound, alone


def rows_of(programs: Programs, keys: I64) -> Iterator[tuple[int, Bits]]:
    """Give the words of keys that are rows of the match, each with the keys in which it is one."""
    begin, end = programs.live_begin[keys[:, POSITION_WORD]], programs.live_begin[keys[:, POSITION_WORD] + 1]
    are_rows = np.isin(programs.kind[programs.read], ROWS) & (programs.stands == AS_IS)
    for j in range(told_of_key(programs) - FIXED_WORDS):
        there = begin + j < end
        if there.any():
            is_row = are_rows[programs.live[np.where(there, begin + j, 0)]]
            yield FIXED_WORDS + j, there & is_row & (keys[:, FIXED_WORDS + j] >= 0)


def roomy(kept: Bits, own: Bits, failed: Failed) -> tuple[Bits, int]:
    """Tell which configurations are kept, of those that may come up again, and in how many slots; 0: the memory does not hold these.

    Where that would be more than one match may have, or than the memory holds, others than the ``own`` ones of the match at hand
    are forgotten.
    """
    size = failed.used.size
    left = int(np.count_nonzero(kept))
    grows = size < LARGEST_TABLE and (size < SMALL_TABLE or 4 * left >= size)
    if grows and there_is_room(2 * size, failed):
        size *= 2
    elif 8 * left >= 3 * size:
        kept = kept & own
    while 2 * (int(np.count_nonzero(kept)) + 1) > size:
        size *= 2
    return kept, size if size <= failed.used.size or there_is_room(size, failed) else 0


def there_is_room(size: int, failed: Failed) -> bool:
    """Whether a table of so many slots, beside one that it takes the place of, takes at most half of the memory that is left."""
    need = size * (8 * failed.key.shape[1] + 1)
    return need <= UNASKED or (there := available()) is None or need <= there // 2


def table_of(programs: Programs, keys: I64, size: int) -> Failed:
    """Make a table of so many slots, a power of two, with some configurations."""
    table = Failed(np.zeros((size, keys.shape[1]), np.int64), np.zeros(size, np.bool_), told_of_key(programs))
    fill(np.ascontiguousarray(keys), table)
    return table
