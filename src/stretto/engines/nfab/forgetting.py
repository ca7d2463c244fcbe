"""Strings and keys have numbers in value vectors and nodes; those that no run holds any more are forgotten.

Without that a stream of ever new strings would fill the memory, whatever the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stretto.array_types import I64
from stretto.columns.keys import KeyTable
from stretto.engines.nfab.state import NfabState
from stretto.engines.nfab.structure import HEAD
from stretto.engines.shared.values import Op, Values, Vocabulary


class Place(NamedTuple):
    """Where words of one kind stand: a column of V or P."""

    array: I64
    word: int


def forget(state: NfabState, values: Values, partitions: int, words: Vocabulary | None, tests: KeyTable | None) -> None:
    """Keep the strings and keys that runs and nodes hold, with new numbers. O(runs + nodes + strings + keys).

    Parameters
    ----------
    state
        The runs' arrays, with the nodes collected.
    values, partitions
        What V and P hold, and how many partitions there are.
    words, tests
        The numbers of strings, and of the keys that are compared under strict contiguity.
    """
    runs = state.listed(partitions)
    nodes = 1 + np.flatnonzero(state.nodes.label[1 : int(state.registers[HEAD])] >= 0)
    for kind, table in (("string", words), ("key", tests)):
        if table is None:
            continue
        held = []
        for array, word in _places(state, values, kind):
            rows = runs if array is state.runs.V else nodes
            held.append((array, word, rows[(array[rows, 0] >> word) & 1 == 1]))
        used = np.unique(np.concatenate([array[rows, word] for array, word, rows in held] or [runs[:0]]))
        renamed = _keep(table, used)
        for array, word, rows in held:
            array[rows, word] = renamed[array[rows, word]]


def _keep(table: Vocabulary | KeyTable, used: I64) -> I64:
    """Forget all but some numbers; what each becomes."""
    alive = np.zeros(len(table), np.bool_)
    alive[used] = True
    return table.keep(alive)


def move_words(state: NfabState, values: Values, before: I64, after: I64) -> None:
    """Give strings other words: ``before``, ascending, become ``after``. O(runs + nodes)."""
    for array, word in _places(state, values, "string"):
        at = np.minimum(np.searchsorted(before, array[:, word]), before.size - 1)
        array[:, word] = after[at]


def _places(state: NfabState, values: Values, kind: str) -> Iterator[Place]:
    """Where the words of all columns of a kind stand."""
    columns = [number for number, column in enumerate(values.columns, 1) if column.kind == kind]
    for number, slot in enumerate(values.slots, 1):
        if slot.column in columns and slot.op in (Op.FIRST, Op.LAST, Op.MIN, Op.MAX):
            yield Place(state.runs.V, number)
    for number in columns if state.columns else ():
        yield Place(state.nodes.P, number)
