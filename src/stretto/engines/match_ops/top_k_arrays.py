"""What the choice of a few matches among all of an event works with: the arrays, and how a chosen match is written.

The matches of an event are paths through nodes (:mod:`~stretto.engines.shared.counting`). The best of them are found in
:mod:`~stretto.engines.match_ops.top_k_kernel`, a sample of them is drawn in :mod:`~stretto.engines.match_ops.sample`. Where matches
are sought by window, each window that is open has a memo of its own, since what is best in one may have left another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto._jit import DONE, GROW_OUTPUT, OUTPUT_FULL, inlined
from stretto.engines.shared.counting import Counts, Graph

I64 = NDArray[np.int64]
Bits = NDArray[np.bool_]
#: Scores: int64, or float64.
Reals = NDArray[Any]

# Registers.
MOST = 0  #: how many matches of an event, a window or a group are asked for
SAMPLING = 1  #: 1: they are drawn; 0: the best are taken
BOUNDED = 2  #: 1: what a group or a window already has says what is not good enough
SIZE = 3  #: of windows; 0: there are none
SLIDE = 4  #: how far apart they begin
SEED = 5
SETS = 6  #: how many windows may be open at once
OPEN = 7  #: 1 while the matches of the event at hand are not all written
BEGUN = 8  #: 1 while those of its window at hand are not
WINDOW = 9  #: the number of the window at hand
LAST = 10  #: … and of the last one of the event
GIVEN = 11  #: matches written of the window at hand
ROUND = 12  #: stamps of what is known for one event and window
ENTRIES = 13  #: the first unused entry of lists
DRAWN = 14  #: random numbers taken for the event and window
ROWS = 15  #: rows in the output
CELLS = 16  #: … and their positions
EVENTS = 17  #: events of which the values are known
STEPS = 18  #: nodes looked at since the kernel last paused
EXACT = 19  #: 1: scores are integers
REGISTERS = 20

#: A value that 64 bits do not hold; of floating ones NaN.
LOST = np.iinfo(np.int64).min


#: The mark of nodes that lead to others, where an engine marks them.
UNION = -1


class Paths(NamedTuple):
    """The structure of an engine: number n lies in slot ``n & mask``, and nodes up to ``tail`` are freed."""

    graph: Graph
    mark: NDArray[Any]  #: [slot]: which variables hold the event of a node; those that hold none add nothing
    mask: int
    tail: int
    unmarked: int  #: the mark of a first node whose event is not part of its match; −1: there is none


class Seen(NamedTuple):
    """What the kernel reads beside the events of a batch: for each when it was, and its group."""

    time: I64
    group: I64


class Values(NamedTuple):
    """What visited events add to the scores of matches, in the order of the events."""

    position: I64
    time: I64  #: where windows are asked for
    value: Reals  #: [event, item], the greater the better
    holds: Bits  #: [mark, item]: whether a variable of the item holds the event


class Memo(NamedTuple):
    """The best match behind each node that was looked at, by window and slot."""

    node: I64  #: [window, slot]: the number of the node
    score: Reals  #: [window, slot]
    start: I64  #: [window, slot]: where that match begins, as a key
    choice: I64  #: [window, slot]: of a union: the node through which it goes
    weighed: I64  #: [slot]: the number of the node whose own event adds …
    weight: Reals  #: [slot]: … so much


class Lists(NamedTuple):
    """The matches behind a node from the best one on, as far as they were asked for: linked entries. Entry 0 is none."""

    stamp: I64  #: [slot]: the round in which the next ones are of the node
    first: I64  #: [slot]
    last: I64  #: [slot]
    left: I64  #: [slot]: the entry that was last taken of the node to the left …
    right: I64  #: [slot]: … and to the right
    over: Bits  #: [slot]: there are no more
    score: Reals  #: [entry]
    start: I64  #: [entry]
    node: I64  #: [entry]: whose it is
    below: I64  #: [entry]: the entry that it goes on with
    next: I64  #: [entry]


class Bounds(NamedTuple):
    """What a match must reach to be among those of its group, or of a window of its group."""

    window: I64  #: [group, set]: of which window w the bound is, as 2w + 1; 0: there is none
    score: Reals  #: [group, set]


class Scratch(NamedTuple):
    """Work space."""

    waiting: I64  #: nodes
    cursor: I64  #: [root]: the entry last taken
    spot: I64  #: positions of a path, the last first …
    mark: I64  #: … and their marks
    taken: I64  #: numbers of matches that were drawn, as a hash table …
    round: I64  #: … of the round
    key: NDArray[np.float64]  #: [1]: of the match last drawn


class Picked(NamedTuple):
    """Matches that were chosen: row k has the positions up to ``stop[k]``."""

    start: I64
    end: I64
    stop: I64
    position: I64
    mark: NDArray[np.int32]
    score: Reals  #: the greater the better
    group: I64
    window: I64


class Picker(NamedTuple):
    """All that a choice reads and writes."""

    values: Values
    memo: Memo
    lists: Lists
    counts: Counts  #: by window
    bounds: Bounds
    scratch: Scratch
    out: Picked
    registers: I64


@inlined
def is_union(slot: int, paths: Paths) -> bool:
    """Whether a node is no event, but leads to two others, of which one may be gone."""
    return bool(paths.graph.right[slot] != 0 or paths.mark[slot] == UNION)


@inlined
def other_way(slot: int, low: int, paths: Paths) -> int:
    """The second node that a union leads to, where anything of it is in the window; 0: nothing is."""
    right = paths.graph.right[slot]
    if right <= paths.tail or paths.graph.start[right & paths.mask] < low:
        return 0
    return int(right)


@inlined
def write(length: int, start: int, position: int, score: Any, group: int, paths: Paths, picker: Picker) -> int:
    """The path of so many events in the scratch space into the output, of a match that is completed at a position. O(length)."""
    registers, out, scratch = picker.registers, picker.out, picker.scratch
    end = position if paths.unmarked >= 0 else scratch.spot[0]  # with UNTIL … ONLY a match ends before it is complete
    row, cell = registers[ROWS], registers[CELLS]
    if row == out.start.size or cell + length > out.position.size:
        return OUTPUT_FULL if row else GROW_OUTPUT
    for at in range(length):
        out.position[cell + length - 1 - at] = scratch.spot[at]
        out.mark[cell + length - 1 - at] = scratch.mark[at]
    out.start[row], out.end[row], out.stop[row] = start, end, cell + length
    out.score[row], out.group[row], out.window[row] = score, group, registers[WINDOW]
    registers[ROWS] = row + 1
    registers[CELLS] = cell + length
    registers[GIVEN] += 1
    return DONE
