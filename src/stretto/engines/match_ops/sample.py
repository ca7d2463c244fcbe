"""A uniform sample of the matches of an event, or of all that have been seen, without listing the others.

Each match gets a key at random, all of one distribution, and the matches with the least keys are the sample: so a sample of many
events is that of the samples of each, and nobody need know how many matches are to come. The least keys of N matches are drawn one
after the other (order statistics of exponentials: the next one lies behind the last by an exponential over the number of those that
are left), each for a match that none has been drawn for: its number is drawn, and the path with that number is walked to by the
counts of the nodes. Keys are kept as binary logarithms, so that N may be beyond 64 bits; then a way is chosen at each union by the
logarithms of the counts, and the same match may be drawn twice, with a chance below n² / 2⁶³.

Random numbers are a function of the seed, the event, the window and how many were taken: nothing of them is kept, and cuts of the
stream do not change them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._jit import DONE, GROW_STACK, inlined
from stretto.engines.match_ops import top_k_arrays as k
from stretto.engines.match_ops.top_k_arrays import I64, Paths, Picker, is_union, other_way, write
from stretto.engines.shared.counting import BEYOND, Counts, count_paths

_WORD = np.uint64(0xFFFFFFFF)
_SHIFT32, _SHIFT11 = np.uint64(32), np.uint64(11)
_M0, _M1, _W0, _W1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57), np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@inlined
def pick_sample(paths: Paths, low: int, roots: I64, top: int, position: int, group: int, picker: Picker) -> int:
    """Write a sample of the matches behind ``roots[:top]`` that begin at ``low`` or later: those whose keys are among the least of
    their group. Cost: that of counting, and O(length + roots) for each match.
    """
    registers, scratch = picker.registers, picker.scratch
    place = registers[k.WINDOW] % registers[k.SETS]
    counts = _counts_of(place, picker)
    total = counts.node.size - 1
    live = _live_roots(paths, low, roots, top, picker)
    if live < 0:
        return GROW_STACK
    roots, top = scratch.cursor, live
    if not registers[k.BEGUN]:
        looked = count_paths(paths.graph, paths.mask, paths.tail, low, roots, top, counts, scratch.waiting)
        if looked < 0:
            return GROW_STACK
        registers[k.STEPS] += looked
        registers[k.ROUND] += 1
        registers[k.DRAWN] = 0
        registers[k.BEGUN] = 1
        scratch.key[0] = -np.inf
    number = counts.matches[total]
    bounded = registers[k.BOUNDED] and picker.bounds.window[group, place] == 2 * registers[k.WINDOW] + 1
    every = number != BEYOND and number <= registers[k.MOST]
    while registers[k.GIVEN] < (number if every else registers[k.MOST]):
        drawn = registers[k.DRAWN]  # if there is no room, the same is drawn again
        key = np.log2(-np.log(_real(position, picker)))
        if not every:
            left = np.log2(float(number - registers[k.GIVEN])) if number != BEYOND else counts.bits[total]
            key = _added(scratch.key[0], key - left)
        if bounded and -key < picker.bounds.score[group, place]:
            if not every:
                break
            registers[k.GIVEN] += 1
            continue
        chosen = -1
        if every:
            chosen = registers[k.GIVEN]
        elif number != BEYOND:
            chosen = _another(position, number, picker)
        length, start = _walk(chosen, paths, low, roots, top, position, counts, picker)
        if length < 0:
            registers[k.DRAWN] = drawn
            return GROW_STACK
        status = write(length, start, position, -key, group, paths, picker)
        if status != DONE:
            registers[k.DRAWN] = drawn
            return status
        scratch.key[0] = key
        if chosen >= 0 and not every:
            slot = _slot_of(chosen, picker)
            scratch.taken[slot], scratch.round[slot] = chosen, registers[k.ROUND]
    registers[k.BEGUN] = 0
    return DONE


@inlined
def _live_roots(paths: Paths, low: int, roots: I64, top: int, picker: Picker) -> int:
    """The roots of which anything is in the window into the scratch space; how many, or −1 without room."""
    live = 0
    for at in range(top):
        if paths.graph.start[roots[at] & paths.mask] >= low:
            if live == picker.scratch.cursor.size:
                return -1
            picker.scratch.cursor[live] = roots[at]
            live += 1
    return live


@inlined
def _counts_of(place: int, picker: Picker) -> Counts:
    """The counts of a window."""
    c = picker.counts
    return Counts(c.node[place], c.matches[place], c.bits[place], c.least[place], c.first[place])


@inlined
def _bits(position: int, picker: Picker) -> Any:
    """The next 64 random bits of an event and window: Philox4x32-10, whose products of words of 32 bits never wrap."""
    registers = picker.registers
    place, window, seed = np.uint64(position), np.uint64(registers[k.WINDOW]), np.uint64(registers[k.SEED])
    a, b = place & _WORD, place >> _SHIFT32
    c, d = window & _WORD, np.uint64(registers[k.DRAWN]) & _WORD
    low, high = seed & _WORD, seed >> _SHIFT32
    for _ in range(10):
        one, two = _M0 * a, _M1 * c
        a, b, c, d = (two >> _SHIFT32) ^ b ^ low, two & _WORD, (one >> _SHIFT32) ^ d ^ high, one & _WORD
        low, high = (low + _W0) & _WORD, (high + _W1) & _WORD
    registers[k.DRAWN] += 1
    return (a << _SHIFT32) | b


@inlined
def _real(position: int, picker: Picker) -> float:
    """A random number between 0 and 1, neither of them."""
    return (float(_bits(position, picker) >> _SHIFT11) + 0.5) * 2.0**-53


@inlined
def _below(number: int, position: int, picker: Picker) -> Any:
    """A random number from 0 on and below another, each as likely as the others."""
    most = np.uint64(number - 1)
    cover = most
    for shift in (1, 2, 4, 8, 16, 32):
        cover |= cover >> np.uint64(shift)
    while True:
        found = _bits(position, picker) & cover
        if found <= most:
            return np.int64(found)


@inlined
def _slot_of(number: int, picker: Picker) -> int:
    """Where a number stands in the table of those that were drawn, or would."""
    scratch = picker.scratch
    mask = scratch.taken.size - 1
    slot = int(np.int64((np.uint64(number) & _WORD) * _W0 >> _SHIFT11)) & mask
    while scratch.round[slot] == picker.registers[k.ROUND] and scratch.taken[slot] != number:
        slot = (slot + 1) & mask
    return slot


@inlined
def _another(position: int, number: int, picker: Picker) -> Any:
    """The number of a match that was not drawn yet. A few draws, or O(number) where nearly all were."""
    while True:
        found = _below(number, position, picker)
        if picker.scratch.round[_slot_of(found, picker)] != picker.registers[k.ROUND]:
            return found


@inlined
def _added(a: float, b: float) -> float:
    """The logarithm of a sum."""
    if a < b:
        a, b = b, a
    return float(a + np.log2(1.0 + 2.0 ** (b - a)))


@inlined
def _share(node: int, of: float, paths: Paths, counts: Counts) -> float:
    """The share of a node's matches in so many, which are given as a logarithm."""
    slot = node & paths.mask
    count = counts.matches[slot]
    return float(2.0 ** ((counts.bits[slot] if count == BEYOND else np.log2(float(count))) - of))


@inlined
def _walk(
    chosen: int, paths: Paths, low: int, roots: I64, top: int, position: int, counts: Counts, picker: Picker
) -> tuple[int, int]:
    """The path with a number (−1: a random one) into the scratch space: how many events, or −1 without room; where it begins."""
    graph, scratch = paths.graph, picker.scratch
    node = 0
    real = 0.0
    if chosen < 0:
        real = _real(position, picker)
    for at in range(top):
        root = roots[at]
        node = root
        if chosen >= 0:
            if chosen < counts.matches[root & paths.mask]:
                break
            chosen -= counts.matches[root & paths.mask]
        else:
            real -= _share(root, counts.bits[counts.node.size - 1], paths, counts)
            if real < 0:
                break
    length = 0
    while True:
        slot = node & paths.mask
        if chosen < 0 and counts.matches[slot] != BEYOND:
            chosen = _below(counts.matches[slot], position, picker)
        left = graph.left[slot]
        if is_union(slot, paths):
            right = other_way(slot, low, paths)
            node = left
            if chosen >= 0:
                if chosen >= counts.matches[left & paths.mask]:
                    chosen -= counts.matches[left & paths.mask]
                    node = right
            elif right and _real(position, picker) >= _share(left, counts.bits[slot], paths, counts):
                node = right
            continue
        if left or paths.mark[slot] != paths.unmarked:
            if length == scratch.spot.size:
                return -1, 0
            scratch.spot[length], scratch.mark[length] = graph.position[slot], paths.mark[slot]
            length += 1
        if left == 0:
            return length, graph.position[slot]
        node = left
