"""The numbers of a run over columns without values so far, as a run over the types that the values have keeps them.

A column of which nothing but NULL has come may turn out to be of doubles, whose sums are other columns of numbers than those of
integers. This is done once in a stream, when the first value comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from stretto.array_types import I64
from stretto.engines.totals import structure as s
from stretto.engines.totals.plan import Asked, Columns
from stretto.errors import DataError
from stretto.frame import Section
from stretto.query import predicate as p

#: Sources of columns that were not there: of values of which none has come, and of matches in floating point.
NOTHING, COUNTED = -1, -2

#: The words of columns without values that are not 0.
_EMPTY = {
    s.LEAST: s.HIGHEST,
    s.MOST: s.LOST,
    s.REAL_LEAST: int(np.float64(np.inf).view(np.int64)),
    s.REAL_MOST: int(np.float64(-np.inf).view(np.int64)),
}


def sources(mine: Asked, theirs: Asked, unknown: AbstractSet[str]) -> list[int]:
    """By column of numbers of ``mine``, the column of ``theirs`` that has them, or one of the sources above.

    Parameters
    ----------
    mine, theirs
        What one query asks over columns of wider types, and over those that they had.
    unknown
        The columns of events of which nothing but NULL has come.

    Raises
    ------
    DataError
        A number depends on values that have come.
    """
    old = [_meaning(theirs.columns, at) for at in range(len(theirs.columns.kinds))]
    found = []
    for at, (kind, slot) in enumerate(zip(mine.columns.kinds, mine.columns.slots, strict=True)):
        meaning = _meaning(mine.columns, at)
        if meaning in old:
            found.append(old.index(meaning))
        elif (kind, slot) == (s.REAL_COUNT, -1):
            found.append(COUNTED)
        elif slot >= 0 and isinstance(value := mine.slots[slot].value, p.Attribute) and value.name in unknown:
            found.append(NOTHING)
        else:
            raise DataError("what is kept of them depends on it")
    return found


def _meaning(columns: Columns, at: int) -> tuple[object, ...]:
    """What a column counts or adds up, whatever the numbers of slots are."""
    slot = columns.slots[at]
    if slot < 0:
        return (columns.kinds[at],)
    value = columns.values[slot]
    return columns.kinds[at], value.variable, value.value, value.lost >= 0


def retyped(section: Section, columns: int, found: Sequence[int], kinds: Sequence[int]) -> None:
    """Give what a state has saved the columns of another one.

    Parameters
    ----------
    section
        As :meth:`State.save <stretto.engines.totals.state.State.save>` leaves it.
    columns
        How many columns it has.
    found, kinds
        The :func:`sources` and the kinds of the columns that it shall have.

    Raises
    ------
    DataError
        There are more matches than 64 bits count, so that floating point does not know how many.
    """
    arrays = section.arrays
    arrays["sums"] = _columns(arrays["sums"].reshape(-1, columns).T, found, kinds).T.ravel()
    live = arrays["live"].size
    if live:
        blocks = arrays["panes"].reshape(live, columns, -1).transpose(1, 0, 2)
        panes = _columns(blocks.reshape(columns, -1), found, kinds).reshape(len(found), live, -1)
        arrays["panes"] = panes.transpose(1, 0, 2).ravel()
    words = arrays["records"]
    pieces = []
    at = 0
    while at < words.size:  # as ``pack`` of the kernels writes them
        entries, cells = int(words[at + 2]), int(words[at + 3])
        pieces.append(words[at : at + 4 + cells])
        at += 4 + cells
        for _ in range(entries):
            end = at + 3 + columns * cells
            pieces += [words[at : at + 3], _columns(words[at + 3 : end].reshape(columns, cells), found, kinds).ravel()]
            at = end
    arrays["records"] = np.concatenate(pieces) if pieces else words


def _columns(old: I64, found: Sequence[int], kinds: Sequence[int]) -> I64:
    """Numbers of other columns: [column, cell]."""
    made = np.empty((len(found), old.shape[1]), np.int64)
    for row, source, kind in zip(made, found, kinds, strict=True):
        if source >= 0:
            row[:] = old[source]
        elif source == NOTHING:
            row[:] = _EMPTY.get(kind, 0)
        elif (old[0] == s.BEYOND).any():  # the first column counts the matches
            raise DataError("what is kept of them depends on it")
        else:
            row[:] = old[0].astype(np.float64).view(np.int64)
    return made
