"""What a stream leaves behind in the AFA operator, and how its arrays grow."""

from __future__ import annotations

import numpy as np

from stretto.array_types import I64
from stretto.columns.arrays import longer
from stretto.engines.afa import structure as s
from stretto.engines.afa.listing import list_events, list_partial
from stretto.engines.afa.structure import Events, Out, Parts, Work
from stretto.engines.afa.trails import keep, rebuild
from stretto.engines.store import bytes_of, grown, zeros
from stretto.errors import LimitError
from stretto.memory import most_for_state
from stretto.times import BEFORE_ALL

#: Partial matches that take more bytes than this are refused, or than the machine can give:
#: without a window or a punctuation they grow with the stream.
MOST_BYTES = 8 << 30


#: An output buffer for more rows than this, and than it began with, is let go of when it has been emptied.
LARGE_OUTPUT = 1 << 12

TRAIL_ARRAYS = ("trail_before", "trail_row", "trail_label")


def _power(least: int) -> int:
    """A power of two."""
    return 1 << max(4, (least - 1).bit_length())


LINE = 64  #: bytes of a line of the cache


def _slots(count: int) -> I64:
    """Slots of events, each of which fills whole lines of the cache."""
    words = np.zeros(count * s.EVENT_FIELDS + LINE // 8, np.int64)
    first = -words.ctypes.data % LINE // 8
    return words[first : first + count * s.EVENT_FIELDS].reshape(count, s.EVENT_FIELDS)


class AfaState:
    """The arrays of one stream.

    Parameters
    ----------
    fields
        Of the register.
    words
        Of an event.
    ignores
        Whether ignorable arcs make anchors.
    capacity
        The size that the growing arrays start with: tests start with 1, so that every growth point fires.
    """

    def __init__(self, *, fields: int, words: int, ignores: bool, capacity: int) -> None:
        small = max(1, capacity)
        self.fields = fields
        self.ignores = ignores
        self.registers = np.zeros(s.REGISTERS, np.int64)
        #: Where trails were forgotten the last time.
        self.trails_grown_at: tuple[int, ...] = ()
        for bound in (s.PUNCTUATION, s.CLEAN, s.SEEN):
            self.registers[bound] = BEFORE_ALL
        rows = s.REG + fields + (s.EXTRA if ignores else 0)
        self.P = np.zeros((rows, s.SEED + 1), np.int64)
        self.P[s.START, s.SEED] = -1
        self.events = Events(X=_slots(1), E=np.zeros((1, words), np.int64))
        self.parts = zeros(Parts, 1)
        tables = {name: np.zeros((small, s.FIELDS + fields), np.int64) for name in ("lost", "won")}
        trails = {name: np.zeros(small + 1, np.int64) for name in TRAIL_ARRAYS}
        sized = {"seen": np.zeros(64, np.int64), "trail_table": np.zeros(_power(2 * small + 2), np.int64)}
        self.work = zeros(Work, small, **tables, **trails, **sized, F=np.zeros((1, 1), np.int64))
        self.least_output = 16 * small
        self.out = self._output(self.least_output, self.least_output)
        self.grow_partial(small)
        self.grow_events(small)

    def grow_partial(self, more: int | None = None) -> None:
        """More free partial matches; twice as many in all where nothing is said."""
        old = self.P.shape[1]
        more = max(2, more or old)
        P = np.zeros((self.P.shape[0], old + more), np.int64)
        P[:, :old] = self.P
        P[s.NEXT, old:] = np.arange(old + 1, old + more + 1)
        P[s.NEXT, -1] = self.registers[s.FREE]
        self.registers[s.FREE] = old
        self.P = P
        self._check_room()

    def grow_events(self, more: int | None = None) -> None:
        """More free slots of events."""
        old = self.events.X.shape[0]
        more = max(2, more or old)
        X = _slots(old + more)
        X[:old] = self.events.X
        events = Events(X, longer(self.events.E, old + more))
        events.X[old:, s.BEHIND] = np.arange(old + 1, old + more + 1)
        events.X[-1, s.BEHIND] = self.registers[s.FREE_EVENTS]
        self.registers[s.FREE_EVENTS] = old
        self.events = events
        self._check_room()

    def grow_work(self) -> None:
        """Twice the work space, or what is needed."""
        need = int(self.registers[s.NEED]) + 2
        grown = {
            name: longer(array, max(2 * array.shape[0], need))
            for name, array in self.work._asdict().items()
            if name not in ("F", "seen", "trail_table", *TRAIL_ARRAYS)
        }
        seen = np.zeros(_power(max(2 * self.work.seen.size, need)), np.int64)
        self.work = self.work._replace(**grown, seen=seen)

    def forget_trails(self, alive: I64, *, grow: bool) -> I64:
        """Forget trails that no partial match holds, or make room for more; what their numbers become."""
        used, work = int(self.registers[s.TRAILS]), self.work
        place = np.zeros(used + 1, np.int64)
        kept = int(keep(alive, work, place))
        size = work.trail_row.size
        if grow:
            # One step may need more than all that was forgotten: then this is called at the same place again.
            place_of_call = (*map(int, self.registers[[s.CURSOR, s.SEEN, s.LIVE_EVENTS, s.LIVE_PARTIAL]]), kept, size)
            if 2 * kept > size - 2 or place_of_call == self.trails_grown_at:
                size = 2 * size + 16
            self.trails_grown_at = place_of_call
        grown = {name: longer(getattr(work, name)[: kept + 1], size) for name in TRAIL_ARRAYS}
        self.work = work._replace(**grown, trail_table=np.zeros(_power(2 * size), np.int64))
        rebuild(kept, self.work)
        self.registers[s.TRAILS] = kept
        return place

    def load_trails(self, arrays: dict[str, I64]) -> None:
        """Trails of a snapshot, in a state without any."""
        count = arrays["trail_row"].size
        grown = {name: longer(np.concatenate(([0], array)), 2 * count + 16) for name, array in arrays.items()}
        self.work = self.work._replace(**grown, trail_table=np.zeros(_power(4 * count + 32), np.int64))
        rebuild(count, self.work)
        self.registers[s.TRAILS] = count

    def grow_output(self, need: int = 0) -> None:
        """A greater output buffer, which is empty, with room for the rows of a step that gives so many."""
        assert self.registers[s.ROWS] == 0
        self.out = self._output(max(2 * self.out.rows.shape[0], 2 * need), 2 * self.out.cells.size)

    def _output(self, rows: int, cells: int) -> Out:
        return Out(np.zeros((rows, s.FIELDS + self.fields), np.int64), np.zeros(cells, np.int64))

    def shrink_output(self) -> None:
        """Let go of an empty output buffer that has grown large."""
        assert self.registers[s.ROWS] == 0
        if self.out.rows.shape[0] > max(self.least_output, LARGE_OUTPUT):
            self.out = self._output(self.least_output, self.least_output)

    def fit_partitions(self, partitions: int) -> None:
        """Room for ``partitions``."""
        if self.parts.first.size < partitions:
            self.parts = grown(self.parts, max(partitions, 2 * self.parts.first.size))

    def drain(self) -> tuple[I64, I64]:
        """Take the rows out of the output buffer, and the positions of their events."""
        rows, cells = int(self.registers[s.ROWS]), int(self.registers[s.CELLS])
        self.registers[s.ROWS] = self.registers[s.CELLS] = 0
        return self.out.rows[:rows].copy(), self.out.cells[:cells].copy()

    def live_slots(self) -> I64:
        """The slots of live events, by partition and in order."""
        found = np.zeros(self.events.X.shape[0], np.int64)
        return found[: list_events(self.events, self.parts, found)]

    def live_partial(self) -> I64:
        """The partial matches of live events, in the order of their lists."""
        found = np.zeros(self.P.shape[1], np.int64)
        return found[: list_partial(self.live_slots(), self.events, self.P, found)]

    def reset_events(self, used: int) -> None:
        """Slots 1 to ``used`` are taken, of a state without events."""
        self.registers[s.FREE_EVENTS] = s.NIL
        self.events = Events(X=_slots(used + 1), E=np.zeros((used + 1, self.events.E.shape[1]), np.int64))
        self.grow_events(max(16, used))

    def reset_partial(self, used: int) -> None:
        """The first ``used`` partial matches behind the seed are taken, of a state without any."""
        self.registers[s.FREE] = s.NIL
        P = np.zeros((self.P.shape[0], s.SEED + 1 + used), np.int64)
        P[:, : s.SEED + 1] = self.P[:, : s.SEED + 1]
        self.P = P
        self.grow_partial(max(16, used))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return bytes_of(self.events, self.parts, self.work, self.out, (self.P,))

    @property
    def live(self) -> tuple[int, int]:
        """How many events and partial matches there are."""
        return int(self.registers[s.LIVE_EVENTS]), int(self.registers[s.LIVE_PARTIAL])

    def set_seed(self, state: int, words: I64) -> None:
        """The initial ID: the start state and the initial register."""
        self.P[s.STATE, s.SEED] = state
        self.P[s.REG : s.REG + self.fields, s.SEED] = words

    def _check_room(self) -> None:
        taken = self.nbytes
        most = most_for_state(taken, MOST_BYTES)
        if taken > most:
            events, partial = self.live
            raise LimitError(
                f"partial matches take more than {most >> 20:,} MiB ({partial:,} at {events:,} events): a narrower window, "
                "stricter fences, or more frequent punctuations (advance(time)) keep fewer"
            )
