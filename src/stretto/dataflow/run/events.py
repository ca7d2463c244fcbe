"""Events that can still be retracted: those of an input, against which retractions are checked, and those of an output.

Inside, a stream is a sum of weighted intervals, and which event a negative one shortens does not matter. At its borders events
have names: a retraction says payload, Vs and Ve of the one it means (SEMANTICS, iterative queries).
"""

from __future__ import annotations

import numpy as np

from stretto._jit import DONE, OUTPUT_FULL, inlined, jit
from stretto.dataflow.run.index import Chains, Index
from stretto.dataflow.run.rows import (
    NEVER,
    PAYLOAD,
    VE,
    VS,
    WEIGHT,
    Rows,
    combined,
    copy_row,
    each,
    empty,
    hashed,
    same,
)

NEW = WEIGHT  #: of an event row: the Ve that a retraction gives it; NEVER: it is an insertion


class Inputs:
    """The events of an input.

    Parameters
    ----------
    width
        Words of a row.
    """

    def __init__(self, width: int) -> None:
        self.index = Index(width, np.array([VS, VE, *range(PAYLOAD, width)], np.int64))

    def take(self, events: Rows) -> int:
        """Note insertions and retractions, in order; −1, or the number of the first event that is not there: then none is noted."""
        index = self.index
        index.reserve(len(events))
        failed, index.end = _applied(events, index.chains, index.end)
        return failed

    def take_known(self, events: Rows) -> list[int]:
        """Do what :meth:`take` does, without the retractions of events that are not there; their numbers."""
        missing: list[int] = []
        at = 0
        while (failed := self.take(events[at:])) >= 0:
            self.take(events[at : at + failed])
            at += failed + 1
            missing.append(at - 1)
        return missing

    def forget(self, time: int) -> None:
        """Events that ended by a time cannot be retracted any more."""
        _forget(self.index, time)


def _forget(index: Index, time: int) -> None:
    """Drop what has ended, and what is not there any more, where it pays."""
    if len(index) >= 2 * index.swept + 64:
        held = index.held
        index.replace(held[(held[:, VE] > time) & (held[:, WEIGHT] > 0)])
        index.swept = len(index)


@inlined
def _hold(row: int, there: Chains) -> None:
    """Put a row in front of its chain."""
    at = hashed(there.rows, row, there.keys) & (there.heads.size - 1)
    there.following[row] = there.heads[at]
    there.heads[at] = row


@jit
def _find(there: Chains, wanted: Rows, row: int, until: int, least: int) -> int:
    """A row with the same payload and VS, the VE ``until``, and a weight of ``least`` or more; 0: none."""
    kept = wanted[row, VE]
    wanted[row, VE] = until
    keys = there.keys
    at = there.heads[hashed(wanted, row, keys) & (there.heads.size - 1)]
    while at != 0 and not (there.rows[at, WEIGHT] >= least and same(there.rows, at, keys, wanted, row, keys)):
        at = there.following[at]
    wanted[row, VE] = kept
    return int(at)


@jit
def _applied(events: Rows, there: Chains, end: int) -> tuple[int, int]:
    """Carry out events; the first one that is not there (−1: none), and one behind the last row.

    Cost: a hash an event, and a comparison for each row of its bucket.
    """
    rows = there.rows
    for row in range(len(events)):
        until = events[row, NEW]
        if until != NEVER:
            at = _find(there, events, row, events[row, VE], 1)
            if at == 0:
                _undo(events, row, there)
                return row, end
            rows[at, WEIGHT] -= 1
            if until <= events[row, VS]:
                continue
        copy_row(events, row, rows, end)
        rows[end, WEIGHT] = 1
        if until != NEVER:
            rows[end, VE] = until
        _hold(end, there)
        end += 1
    return -1, end


@jit
def _undo(events: Rows, many: int, there: Chains) -> None:
    """Take back the first events, the last of them first."""
    rows = there.rows
    for row in range(many - 1, -1, -1):
        until = events[row, NEW]
        if until == NEVER:
            rows[_find(there, events, row, events[row, VE], 1), WEIGHT] -= 1
            continue
        if until > events[row, VS]:
            rows[_find(there, events, row, until, 1), WEIGHT] -= 1
        rows[_find(there, events, row, events[row, VE], 0), WEIGHT] += 1


class Outputs:
    """The events of an output, made of changes.

    Parameters
    ----------
    width
        Words of a row.
    grows
        Whether nothing is ever taken back, so that no event needs to be remembered.
    """

    def __init__(self, width: int, *, grows: bool) -> None:
        self.index = Index(width, np.arange(PAYLOAD, width, dtype=np.int64))
        self.grows = grows
        #: Changes that take back what is not there yet.
        self.owed = empty(width)

    def events(self, changes: Rows) -> Rows:
        """Changes as insertions and retractions (:data:`NEW`); what takes back what is not there yet waits for the next call."""
        changes = combined(np.concatenate([self.owed, changes]))
        added = changes[changes[:, WEIGHT] > 0]
        if len(added) and added[:, WEIGHT].max() > 1:
            # Beside three copies, the index has room for two.
            added = each(added, added[:, WEIGHT], 5 * added.shape[1])
            added[:, WEIGHT] = 1
        made = added.copy()
        made[:, NEW] = NEVER
        if self.grows:
            return made
        taken = changes[changes[:, WEIGHT] < 0]
        self.owed = empty(made.shape[1])
        if not len(taken):
            self.index.append(added)
            return made
        if taken[:, WEIGHT].min() < -1:
            # What is shortened and what is owed have room for two each, are copied, and are looked at again.
            taken = each(taken, -taken[:, WEIGHT], 14 * taken.shape[1])
            taken[:, WEIGHT] = -1
        # In the order of time, so that what comes and goes again and again is found at once.
        both = np.concatenate([added, taken])
        shortened, owed = self._shortened(both[np.argsort(both[:, VS], kind="stable")])
        parts = [made, shortened]
        if len(owed):
            again, self.owed = self._shortened(owed)  # what lies behind the start of a row was not there yet
            parts.append(again)
        return np.concatenate(parts)

    def _shortened(self, changes: Rows) -> tuple[Rows, Rows]:
        """The events that take rows of negative weight out of those that are there, and what of these rows none covers."""
        index = self.index
        found, owed = [], []
        out = np.zeros((2 * len(changes) + 64, changes.shape[1]), np.int64)
        rest = np.zeros((len(out), changes.shape[1]), np.int64)
        row, since = 0, changes[0, VS]
        while True:
            index.reserve(len(out))
            status, row, since, count, more, index.end = _shorten(
                changes, row, since, index.chains, index.end, out, rest
            )
            found.append(out[:count].copy())
            owed.append(rest[:more].copy())
            if status == DONE:
                break
        return np.concatenate(found), np.concatenate(owed)

    def forget(self, time: int) -> None:
        """Events that ended by a time are never taken back."""
        if not self.grows:
            _forget(self.index, time)


@jit
def _shorten(
    changes: Rows,
    row: int,
    since: int,
    there: Chains,
    end: int,
    out: Rows,
    rest: Rows,
) -> tuple[int, int, int, int, int, int]:
    """Add rows [row, …) to the events that are there, or take them out where their weight is negative, the first from ``since`` on.

    An event that covers a part of a row ends where the row begins; if it reaches further, what is behind is inserted again. Of
    several the one that ends where the row ends is taken, or the one that reaches furthest. What no event covers goes to ``rest``.
    """
    rows = there.rows
    count, more = 0, 0
    while row < len(changes):
        until = changes[row, VE]
        if changes[row, WEIGHT] > 0:
            if end == len(rows):
                return OUTPUT_FULL, row, since, count, more, end
            copy_row(changes, row, rows, end)
            _hold(end, there)
            end += 1
            since = until
        while since < until:
            if count + 2 > len(out) or more == len(rest) or end == len(rows):
                return OUTPUT_FULL, row, since, count, more, end
            best, next_start = _covering(changes, row, since, until, there)
            if best == 0:
                copy_row(changes, row, rest, more)
                rest[more, VS] = since
                rest[more, VE] = next_start
                rest[more, WEIGHT] = -1
                more += 1
                since = next_start
                continue
            rows[best, WEIGHT] -= 1
            ended = rows[best, VE]
            copy_row(rows, best, out, count)
            out[count, NEW] = since
            count += 1
            if rows[best, VS] < since:
                copy_row(rows, best, rows, end)
                rows[end, VE] = since
                rows[end, WEIGHT] = 1
                _hold(end, there)
                end += 1
            if ended > until:
                # It takes the place of the row, whose end the loop has reached: room for it was asked for.
                copy_row(rows, best, out, count)
                out[count, VS] = until
                out[count, NEW] = NEVER
                count += 1
                rows[best, VS] = until
                rows[best, WEIGHT] += 1
            since = min(ended, until)
        row += 1
        if row < len(changes):
            since = changes[row, VS]
    return DONE, row, since, count, more, end


@jit
def _covering(taken: Rows, row: int, since: int, until: int, there: Chains) -> tuple[int, int]:
    """The event to shorten at a time (0: none), and when the next one begins.

    The newest that ends where the row ends is as good as any: what comes and goes again is found at once.
    """
    rows, keys = there.rows, there.keys
    best = 0
    next_start = until
    at = there.heads[hashed(taken, row, keys) & (there.heads.size - 1)]
    while at != 0:
        if rows[at, WEIGHT] > 0 and same(rows, at, keys, taken, row, keys):
            if rows[at, VS] <= since < rows[at, VE]:
                if best == 0 or (rows[best, VE] != until and (rows[at, VE] == until or rows[at, VE] > rows[best, VE])):
                    best = at
                if rows[best, VE] == until:
                    break
            elif since < rows[at, VS] < next_start:
                next_start = rows[at, VS]
        at = there.following[at]
    return int(best), int(next_start)
