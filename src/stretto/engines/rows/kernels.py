"""Which rows can be taken as what, and the preferred match from each row."""

from __future__ import annotations

import numpy as np

from stretto._jit import DONE, FAULTED, OUTPUT_FULL, inlined, jit
from stretto.engines.rows.structure import (
    FAULT,
    I64,
    MATCHES,
    NEXT,
    NO_TARGET,
    NUMBER,
    PARTITION,
    PAST,
    ROW,
    TO_FIRST,
    TO_START,
    U64,
    USED,
    Bits,
    Found,
    Machine,
)

ONE = np.uint64(1)
ZERO = np.uint64(0)
BYTE = np.uint64(255)
EIGHT = np.uint64(8)


@jit
def narrow_down(bits: U64, bounds: I64, last: np.uint64, always: np.uint64, before: U64) -> None:
    """Keep of each row's positions (at most 64) those from which a match can be completed.

    ``bits[i, 0]`` says what row i may be taken as; the rows of partition k are from ``bounds[k]`` to ``bounds[k + 1]``.
    ``last``: the positions that may end a match at a partition's end; ``always``: anywhere; ``before[c, b]``: those that
    have a follower among the positions of byte c whose bits are b. Loop invariant: the rows behind i are done.
    Cost: a look-up a row and eight positions.
    """
    bytes_ = before.shape[0]
    for k in range(bounds.size - 1):
        word = ZERO
        for i in range(bounds[k + 1] - 1, bounds[k] - 1, -1):
            reach = last if i == bounds[k + 1] - 1 else always
            c = 0
            while word != ZERO and c < bytes_:
                reach |= before[c, np.int64(word & BYTE)]
                word >>= EIGHT
                c += 1
            word = bits[i, 0] & reach
            bits[i, 0] = word


@jit
def narrow_down_wide(bits: U64, bounds: I64, machine: Machine) -> None:
    """Do what :func:`narrow_down` does, for any number of positions. Cost: a row's words, and the followers of what it may be."""
    words = bits.shape[1]
    for k in range(bounds.size - 1):
        for i in range(bounds[k + 1] - 1, bounds[k] - 1, -1):
            at_end = i == bounds[k + 1] - 1
            for w in range(words):
                word = bits[i, w]
                if word == ZERO:
                    continue
                kept = ZERO
                for b in range(64):
                    one = ONE << np.uint64(b)
                    if word & one == ZERO:
                        continue
                    p = w * 64 + b
                    completes = machine.ends[p]
                    if not at_end:
                        completes = False
                        for e in range(machine.begin[p], machine.begin[p + 1]):
                            q = machine.to[e]
                            if q < 0 or bits[i + 1, q >> 6] >> np.uint64(q & 63) & ONE:
                                completes = True
                                break
                    if completes:
                        kept |= one
                bits[i, w] = kept


@inlined
def possible(bits: U64, row: int, position: int) -> bool:
    """Whether a row can be taken as a position."""
    return bool(bits[row, position >> 6] >> np.uint64(position & 63) & ONE != ZERO)


@inlined
def next_start(start: int, length: int, mode: int, machine: Machine, path: I64, at: int, registers: I64) -> int:
    """The row at which the next match may begin; −1: the clause's AFTER MATCH cannot be followed."""
    if mode == PAST:
        return start + max(length, 1)
    if mode == NEXT or length == 0:
        return start + 1
    found = -1
    for j in range(length):
        if machine.target[path[at + j]]:
            found = j
            if mode == TO_FIRST:
                break
    if found <= 0:
        registers[FAULT] = NO_TARGET if found < 0 else TO_START
        return -1
    return start + found


@jit
def walk(bits: U64, bounds: I64, machine: Machine, mode: int, registers: I64, out: Found) -> int:
    """Write the matches, partition by partition, from where the registers are.

    From each start the first follower that is possible is taken, which always completes. Loop invariant: all matches that
    begin before ROW are written. Cost: O(followers) a row of a match, and O(what may come first) for a row that begins none.
    Stops with OUTPUT_FULL before the match that has no room.
    """
    positions = machine.ends.size
    matches = registers[MATCHES]
    used = registers[USED]
    row = registers[ROW]
    number = registers[NUMBER]
    k = registers[PARTITION]
    status = DONE
    while status == DONE and k < bounds.size - 1:
        end = bounds[k + 1]
        while row < end:
            length = 0
            source = positions + 1 if row == bounds[k] else positions
            while source >= 0 and row + length < end:
                taken = -2
                for e in range(machine.begin[source], machine.begin[source + 1]):
                    q = machine.to[e]
                    if q < 0 or possible(bits, row + length, q):
                        taken = q
                        break
                source = taken
                if taken >= 0:
                    if used + length >= out.path.size:
                        status = OUTPUT_FULL
                        break
                    out.path[used + length] = taken
                    length += 1
            if source == -2:
                row += 1
                continue
            if matches == out.start.size:
                status = OUTPUT_FULL
            if status != DONE:
                break
            following = next_start(row, length, mode, machine, out.path, used, registers)
            if following < 0:
                status = FAULTED
                break
            number += 1
            out.partition[matches] = k
            out.start[matches] = row
            out.length[matches] = length
            out.number[matches] = number
            matches += 1
            used += length
            row = following
        if status == DONE:
            number = 0
            k += 1
    registers[PARTITION] = k
    registers[ROW] = row
    registers[NUMBER] = number
    registers[MATCHES] = matches
    registers[USED] = used
    return status


@jit
def combine(truth: Bits, mask: np.uint64, word: int, bits: U64) -> None:
    """Add positions to the rows where their condition holds. O(rows)."""
    for i in range(truth.size):
        if truth[i]:
            bits[i, word] |= mask
