"""The streams of the experiments: fair coin tosses in order, disordered and with lulls, and a graph whose links come and go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Graph", "Tick", "components", "events", "graph", "lulls", "shifted", "ticks", "tosses"]

I64 = NDArray[np.int64]


@lru_cache(maxsize=4)
def tosses(count: int, seed: int) -> NDArray[np.bool_]:
    """Whether each toss of a fair coin is an uptick."""
    return np.random.default_rng(seed).random(count) < 0.5


def events(ups: NDArray[np.bool_], times: I64, window: int) -> pa.Table:
    """Symbols at some times, as events that live for a window."""
    names = np.array(["D", "U"])[ups[times].astype(np.int64)]
    return pa.table({"t": times, "sym": names, "vs": times, "ve": times + window})


def shifted(count: int, every: int, ahead: int) -> I64:
    """The places in the order of arrival of events that arrive in order, but for each of ``every`` one that is ``ahead``."""
    places = np.arange(count)
    places[every - 1 :: every] -= ahead
    return places


def lulls(count: int, span: int, likelihood: float, seed: int) -> NDArray[np.bool_]:
    """Which events are left when all of a span between two punctuations are taken away with some likelihood."""
    taken = np.random.default_rng(seed).random(-(-count // span)) < likelihood
    return ~taken[np.arange(count) // span]


@dataclass(frozen=True)
class Tick:
    """What comes in at one moment."""

    table: pa.Table | None
    punctuation: int | None = None  #: behind the events


def ticks(
    ups: NDArray[np.bool_],
    *,
    window: int,
    span: int,
    batch: int,
    places: I64 | None = None,
    left: NDArray[np.bool_] | None = None,
) -> list[Tick]:
    """Tosses as they come in: so many at a moment, and a punctuation every ``span`` of them.

    Parameters
    ----------
    places
        Where each event stands in the order of arrival; ``None``: in order. One before the beginning comes at the beginning.
    left
        Which events there are at all; time goes on without the others.
    """
    count = ups.size
    place = np.arange(count) if places is None else np.maximum(places, 0)
    here = np.arange(count) if left is None else np.flatnonzero(left)
    here = here[np.argsort(place[here], kind="stable")]
    bounds = np.searchsorted(place[here] // batch, np.arange(-(-count // batch) + 1))
    whole = events(ups, here, window)
    found = []
    for number, (begin, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        passed = min((number + 1) * batch, count)
        punctuation = passed if passed // span > number * batch // span or passed == count else None
        table = whole.slice(begin, end - begin).combine_chunks() if end > begin else None
        found.append(Tick(table, punctuation // span * span if punctuation not in (None, count) else punctuation))
    return found


@dataclass(frozen=True)
class Graph:
    """Links that come and go, one change at each unit of time."""

    src: I64
    dst: I64
    begins: I64  #: when the link of each change came
    removed: NDArray[np.bool_]  #: whether it goes

    @property
    def changes(self) -> int:
        """How many there are."""
        return int(self.src.size)

    def batches(self, size: int, *, first: int = 0) -> list[Tick]:
        """Events and retractions, each batch with its punctuation; ``first`` changes are a batch of their own."""
        found = []
        for begin in ([0] if first else []) + list(range(first, self.changes, size)):
            here = slice(begin, first if begin < first else min(begin + size, self.changes))
            moments = np.arange(begin, here.stop)
            ends = pa.array(moments, mask=~self.removed[here])
            columns = {"src": self.src[here], "dst": self.dst[here], "vs": self.begins[here], "ve_new": ends}
            found.append(Tick(pa.table(columns), here.stop))
        return found

    def links(self) -> set[tuple[int, int]]:
        """Those that are there in the end."""
        left: set[tuple[int, int]] = set()
        for src, dst, removed in zip(self.src.tolist(), self.dst.tolist(), self.removed.tolist(), strict=True):
            (left.discard if removed else left.add)((src, dst))
        return left


def graph(changes: int, nodes: int, removals: float, seed: int, *, first: int = 0) -> Graph:
    """Links between random nodes. Behind the first ones a change takes a link away with some likelihood."""
    draw = np.random.default_rng(seed)
    ends = draw.integers(nodes, size=(4 * changes + 16, 2)).tolist()
    goes = (draw.random(changes) < removals) & (np.arange(changes) >= first)
    picks = draw.random(changes)
    live: list[tuple[int, int]] = []
    begun: dict[tuple[int, int], int] = {}
    src, dst, begins, removed = [], [], [], []
    for now in range(changes):
        if goes[now] and live:
            at = int(picks[now] * len(live))
            link, live[at] = live[at], live[-1]
            live.pop()
            begins.append(begun.pop(link))
        else:
            link = _fresh(ends, begun)
            live.append(link)
            begun[link] = now
            begins.append(now)
        removed.append(bool(goes[now] and begins[-1] < now))
        src.append(link[0])
        dst.append(link[1])
    return Graph(np.array(src), np.array(dst), np.array(begins), np.array(removed))


def _fresh(ends: list[list[int]], known: dict[tuple[int, int], int]) -> tuple[int, int]:
    """The next link that is not there yet."""
    while True:
        one = ends.pop()
        if (one[0], one[1]) not in known:
            return one[0], one[1]


def components(count: int, length: int, changes: int, seed: int) -> Graph:
    """Many chains of links. Then the last link of a chain at random goes, and comes again, and ``length`` pairs with it.

    The first ``count · length`` changes make the chains.
    """
    chosen = np.random.default_rng(seed).integers(count, size=changes // 2)
    base = count * length
    chain = np.repeat(np.arange(count), length) * (length + 1)
    place = np.tile(np.arange(length), count)
    last = chosen * (length + 1) + length - 1
    begins = np.arange(base + 2 * chosen.size)
    began = {int(one): int(one * length + length - 1) for one in range(count)}
    for number, one in enumerate(chosen.tolist()):
        begins[base + 2 * number] = began[one]
        began[one] = base + 2 * number + 1
    src = np.concatenate([chain + place, np.repeat(last, 2)])
    removed = np.zeros(begins.size, np.bool_)
    removed[base::2] = True
    return Graph(src, src + 1, begins, removed)
