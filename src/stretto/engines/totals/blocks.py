"""Blocks of words in one array, of sizes that are powers of two, and the vectors of cells in them."""

from __future__ import annotations

from stretto._jit import inlined
from stretto.engines.totals import structure as s
from stretto.engines.totals.structure import I64, Plan, Store


@inlined
def class_of(words: int) -> int:
    """The size class of a block with room for so many words."""
    found = 0
    while 8 << found < words:
        found += 1
    return found


@inlined
def taken(size: int, store: Store, registers: I64) -> int:
    """A block of a size class, for which there is room. O(1)."""
    block = registers[s.FREE + size]
    if block:
        registers[s.FREE + size] = store.ints[block]
        return int(block)
    block = registers[s.TOP]
    registers[s.TOP] = block + (8 << size)
    return int(block)


@inlined
def given_back(block: int, size: int, store: Store, registers: I64) -> None:
    """Free a block. O(1)."""
    store.ints[block] = registers[s.FREE + size]
    registers[s.FREE + size] = block


@inlined
def cleared(block: int, cells: int, begin: int, end: int, plan: Plan, store: Store) -> None:
    """Let some cells of a vector have no match."""
    for c in range(plan.kind.size):
        s.clear(plan.kind[c], store.ints, store.reals, block + c * cells + begin, block + c * cells + end)


@inlined
def moved(source: int, have: int, begin: int, length: int, target: int, cells: int, plan: Plan, store: Store) -> None:
    """Copy some cells of a vector of ``have`` cells to the beginning of one of ``cells``, which may be itself."""
    for c in range(plan.kind.size):
        old = source + c * have + begin
        new = target + c * cells
        for k in range(length):
            store.ints[new + k] = store.ints[old + k]
